/* relname: the one validator of names inside archives and run directories
 * (docs/evidence-format.md): segments [A-Za-z0-9_][A-Za-z0-9._-]*, joined by '/', ≤ 8 segments, ≤
 * 100 bytes, no "..". */
#pragma once

#include <stdbool.h>

bool relname_ok(const char *name);
bool relname_segment_ok(const char *s);
