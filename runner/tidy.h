/*
 * tidy: the run directory after the measured program, which had the same rights in it as we have.
 * What the program did to it is a fault of the run (FAIL), never an error of the machine.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/run.h"

/* Removes what is not ours, puts back what is missing or changed, and adds a fault for each kind. */
int run_tidy(struct run *r, struct err *e) MUST_CHECK;
