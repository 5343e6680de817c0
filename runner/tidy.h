/*
 * tidy: the run directory after a build, a conditioning step or the measured program, which had the
 * same rights in it as we have. What they did to it is a fault of the run (FAIL), never an error of
 * the machine.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/run.h"

/* Removes what is not ours, puts back what is missing or changed, and adds a fault of `who` for
 * each kind. has_places: the results and profile directories are made already. The directory's
 * descriptor may be another one afterwards. */
int run_tidy(struct run *r, const char *who, bool has_places, struct err *e) MUST_CHECK;
