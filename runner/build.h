/*
 * build: the definition's prepare steps and build command, in the pinned environment, with all
 * output kept. A build that fails, hangs or is killed is an infrastructure error: no evidence comes
 * of it.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "runner/keep.h"
#include "runner/plan.h"

#define BUILD_LOG "build.log"
#define BUILD_MESSAGES "build-messages.jsonl"

struct build_input {
    const struct plan *plan;
    int source_fd;               /* root of the work tree */
    int run_fd;                  /* where the logs go */
    struct keep *log, *messages; /* copies of BUILD_LOG and BUILD_MESSAGES */
    char *const *environment;    /* the caller's */
    int signal_fd;
    int lock_fd; /* the machine's: each program is noted there */
    struct arena *arena;
};

struct build_result {
    cJSON *environment; /* record of plan_environment; owned */
    char *toolchain; /* first line of build.toolchain's output, NULL when none is defined; owned */
    bool interrupted;
};

/* ERR_SYS "build.failed" with the exit code when the build does not succeed; `interrupted` when a
 * signal ended it. */
int build_run(const struct build_input *in, struct build_result *out, struct err *e) MUST_CHECK;
void build_result_fini(struct build_result *r); /* accepts zeroed */

/* One program of the build's kind in the build's environment, its standard output whole into *out
 * (caller frees, ≤ max). */
int build_query(const struct build_input *in, const cJSON *command, size_t max, char **out,
                size_t *out_len, struct err *e) MUST_CHECK;
