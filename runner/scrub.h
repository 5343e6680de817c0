/* scrub: the caller's own paths are taken out of what a run leaves before any of it is hashed. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/run.h"

/* build.log, build-messages.jsonl and run.log, those that are there. */
int scrub_logs(struct run *r, struct err *e) MUST_CHECK;
/* The values of passed variables in the environments of build and program. */
int scrub_environments(struct run *r, struct err *e) MUST_CHECK;
