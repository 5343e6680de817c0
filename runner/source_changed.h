/* source_changed: which paths made two fingerprints of one work tree differ. For messages only:
 * what it can't find out it leaves out. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runner/git.h"
#include "runner/source.h"

/* "a.c (changed), out/b (new) and 3 more" of what changed since start was taken, not before
 * since_us (real time); "" when nothing is found. The text is UTF-8. */
void source_changed(const struct git *g, const struct source *start, const struct source *end,
                    int64_t since_us, char *out, size_t size);
