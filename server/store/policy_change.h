/*
 * policy_change: a baseline's policy judges every run after it, so that approving a run whose
 * definition has other limits changes them. That has to be said.
 */
#pragma once

#include "base/cleanup.h"
#include "experiment/definition.h"
#include "server/store/db.h"

/* ERR_CONFLICT, with each part that differs, when `now` has another policy than the baseline with
 * this id; 0 when it is the same. */
int policy_change_check(struct db *db, const char *baseline, const struct definition *now,
                        struct err *e) MUST_CHECK;
