/*
 * names: rules over a whole set of member names: each a relname, unique also without regard to
 * ASCII case, and none a directory of another. The same function judges manifests and archives.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

/* ERR_INPUT "names.…" naming the culprit; ERR_NOMEM. Names are borrowed. */
int names_check(const char *const *names, size_t n, struct err *e) MUST_CHECK;
