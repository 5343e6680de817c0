/*
 * run_stages: the stages of a run in their order; cmd_run.c tells them one after the other. A
 * failure of the first is the caller's to resolve, of the others ERROR.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/run.h"

/* Preconditions, definition, lock, checkout, run directory: nothing is built yet. */
int run_prepare(struct run *r, struct err *e) MUST_CHECK;
/* definition.json and the source as it is now. */
int run_fingerprint(struct run *r, struct err *e) MUST_CHECK;
/* Build, then the exact executable. */
int run_build(struct run *r, struct err *e) MUST_CHECK;
/* Facts, readings, and the definition's host limits. */
int run_check_host(struct run *r, struct err *e) MUST_CHECK;
/* Quiet, conditioning, the measured program. */
int run_measure(struct run *r, struct err *e) MUST_CHECK;
