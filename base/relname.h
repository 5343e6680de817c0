/* relname: the one validator of names inside archives and run directories
 * (docs/evidence-format.md): segments [A-Za-z0-9_][A-Za-z0-9._-]*, joined by '/', at most
 * LIMIT_RELNAME_SEGMENTS of them and LIMIT_RELNAME bytes, no "..". */
#pragma once

#include <stdbool.h>

/* A whole name, and one segment of it by itself. */
bool relname_ok(const char *name);
bool relname_segment_ok(const char *s);
