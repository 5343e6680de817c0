/* control: the clean run that a diagnostic run is compared by eye with: same source, program and
 * experiment. */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/run.h"

/* Looks up r->options.control (a directory, or a run id below `state`/runs) after the build. Sets
 * r->control when it fits, else leaves it empty and says why. */
int control_find(struct run *r, const char *state, char *why, size_t size,
                 struct err *e) MUST_CHECK;
