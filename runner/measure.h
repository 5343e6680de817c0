/*
 * measure: the measured program from its start to its end: started by descriptor, sampled, its
 * markers stamped, what it executes from hashed, what else the machine did recorded. Judges
 * nothing: finalize does.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "runner/artifact.h"
#include "runner/box.h"
#include "runner/keep.h"
#include "runner/loop.h"
#include "runner/mapped.h"
#include "runner/markers.h"
#include "runner/pace.h"
#include "runner/plan.h"
#include "runner/procfs.h"
#include "runner/sampler.h"
#include "runner/snapshots.h"

#define RUN_LOG "run.log"
#define RESULTS_DIR "results"
#define PROFILE_DIR "profile"

struct measure_input {
    const struct plan *plan;
    const struct artifact *artifact;
    const struct sysroot *sysroot;
    const char *source_root;
    int source_fd;
    int run_fd;               /* the run directory; RUN_LOG is appended to */
    struct keep *log;         /* the copy of RUN_LOG */
    const char *results_path; /* absolute */
    const char *profile_path; /* absolute; NULL in clean mode */
    char *const *environment; /* the caller's */
    const char *run_id;
    const char *fingerprint; /* of the source, hex: the program is told */
    const char *mark;        /* leftover.h */
    int signal_fd;
    int lock_fd; /* the machine's: the program is noted there */
    struct arena *arena;
    void (*progress)(void *context, const char *phase, uint64_t elapsed_ms); /* NULL: none */
    void *progress_context;
};

struct measure {
    struct loop_result loop;
    struct pace pace; /* of the samples */
    struct markers *markers;
    struct sampler *sampler;
    struct mapped *mapped;
    struct snapshots *snapshots; /* NULL when the mode takes none */
    struct box_reading box;
    cJSON *interference; /* during */
    cJSON *environment;  /* record */
    bool had_box;
    bool log_cut;
    char why_no_box[160];
};

/* -1: the tools failed (nothing can be said about the program). */
int measure_run(const struct measure_input *in, struct measure *out, struct err *e) MUST_CHECK;
void measure_fini(struct measure *m); /* accepts zeroed */

/* One conditioning step that has a command, in the run's environment. The result says how it ended.
 */
int measure_step(const struct measure_input *in, const cJSON *step, uint64_t timeout_ms,
                 struct loop_result *out, struct err *e) MUST_CHECK;
