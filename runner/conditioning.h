/*
 * conditioning: did the steps before the measured point happen? A step's proof is its phase marker,
 * or the report of its own that it leaves (`proof` in the definition).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/plan.h"

/* What a definition may not say: ERR_USAGE. */
int conditioning_check(const struct plan *p, struct err *e) MUST_CHECK;
/* True when a step with a proof is not proven below the run's results: why says which and what.
 * Markers are judged by markers.h. */
bool conditioning_unproven(const struct plan *p, int run_fd, char *why, size_t size);
