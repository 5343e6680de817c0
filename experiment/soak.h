/*
 * soak: the growth gate of a long run: the Theil-Sen slope over the last part of the active phase,
 * in MB per hour. It qualifies only when that part was really measured; what short runs report
 * instead never does. Knows no report.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/estimator.h"
#include "experiment/samples.h"
#include "experiment/schema.h"

/* policy.soak; acceptance applies it as one more check. */
extern const struct schema schema_soak;

struct soak_rule {
    double window_secs; /* the last so many seconds of the active phase */
    double min_coverage_secs;
    size_t min_samples;
    double limit_mb_per_hour;
};

/* A policy's `soak` that passed its schema. */
void soak_rule_from(const cJSON *soak, struct soak_rule *out);

enum soak_window {
    SOAK_ACTIVE_TAIL,            /* the only one that qualifies */
    SOAK_ACTIVE_TAIL_INCOMPLETE, /* long enough a phase, but too few samples or too little coverage
                                  */
    SOAK_POST_DRAIN,             /* active phase too short: the samples after it */
    SOAK_TAIL, /* … or, without such samples, the last window_secs of what there is */
};

struct soak {
    enum soak_window window;
    size_t n;
    double coverage;
    bool has_growth;
    double theil_sen_per_hour;
    struct endpoint endpoint; /* diagnostic, but must exist for the window to be complete */
    bool complete;
    bool passes; /* complete and within the limit */
};

#define SOAK_NAME_SIZE 64
/* "active_tail_1200s", "active_tail_1200s_incomplete", "post_drain", "tail". */
void soak_window_name(enum soak_window window, const struct soak_rule *rule,
                      char out[SOAK_NAME_SIZE]);

/* active_secs: end of the active phase on the samples' clock, which begins with the phase. Samples
 * are finite and in strictly rising order, else nothing qualifies (n = 0). -1: no memory. */
int soak_evaluate(const struct samples *s, double active_secs, const struct soak_rule *rule,
                  struct soak *out, struct err *e) MUST_CHECK;
