/*
 * record: what ingest writes: a judged run with everything that belongs to it, or a refused
 * attempt, each in one transaction. Also the count of attempts. Knows nothing of how a verdict is
 * reached.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/verify.h"
#include "server/store/metrics.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

struct record_bytes {
    const char *p; /* NULL: there is no such document */
    size_t len;
};

struct record_run {
    const struct evidence *evidence;
    int64_t project_id;
    int64_t runner_id;
    int64_t received_us;
    const char *verdict; /* word or NULL */
    const char *description;
    const char *baseline; /* id or NULL */
    bool build_only;      /* stored without a verdict whatever the mode */
    struct record_bytes documents[STORE_DOCUMENTS];
    struct metric_values metrics;
};
/* Inside a write transaction. ERR_CONFLICT when the run id is taken. */
int record_run_add(struct db *d, const struct record_run *r, struct err *e) MUST_CHECK;

struct record_attempt {
    int64_t project_id;
    int64_t at_us;
    bool is_signed; /* false: gate, class, commit, run are not recorded */
    const char *gate, *machine_class, *commit, *run; /* NULL: unknown */
    const char *code, *detail, *keyid;
    const struct digest *archive; /* NULL: unknown */
    const char *problem;
    size_t problem_len;
};
int record_attempt_add(struct store *s, const struct record_attempt *a, struct err *e) MUST_CHECK;
