/*
 * window: one stretch of a sample series between two requested times: what the samples really
 * cover, whether that is complete, and how the value grew in it (endpoint bands, least squares,
 * Theil-Sen side by side). Also the last seconds of a series ("tail"). Units: seconds, MB. Knows no
 * report and no phase markers.
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

/* experiment.windows: {name: {start_phase, end_phase, estimator, …}} */
extern const struct schema schema_windows;

enum window_estimator { WINDOW_ENDPOINT_BANDS, WINDOW_THEIL_SEN, WINDOW_LEAST_SQUARES };

struct window_rule {
    const char *name; /* borrowed from the definition */
    const char *start_phase;
    const char *end_phase;
    enum window_estimator estimator;
    struct endpoint_rule endpoint;
    double boundary_factor; /* a boundary may be missed by this many sample intervals */
    size_t min_samples;
    double min_coverage_secs; /* 0: only the boundaries count */
};

/* One entry of experiment.windows that passed schema_windows; defaults filled in. */
void window_rule_from(const cJSON *entry, struct window_rule *out);
const char *window_estimator_name(enum window_estimator estimator_kind);

enum window_state {
    WINDOW_OK,
    WINDOW_REVERSED,   /* end before start */
    WINDOW_NOT_RISING, /* times of the series are not strictly rising, or a number is not finite */
    WINDOW_TOO_FEW,    /* fewer than two samples selected */
};
const char *window_state_name(enum window_state state);

struct window_request {
    double start; /* seconds on the samples' clock */
    double end;
    double boundary_factor;
    const struct endpoint_rule *endpoint;
    bool theil_sen; /* it costs O(n log n) */
};

struct window {
    enum window_state state; /* other than OK: nothing below is known */
    size_t from;             /* first selected sample */
    size_t n;                /* selected: start ≤ t ≤ end */
    double first;
    double last;
    double coverage;
    double tolerance; /* boundary_factor · max(sample interval of the whole series, 1 ms) */
    bool complete;    /* first and last within tolerance of the request */
    double least_squares_per_sec;
    bool has_theil_sen;
    double theil_sen_per_hour;
    struct endpoint endpoint;
};

/* Evaluates one window of a series. -1: no memory. */
int window_evaluate(const struct samples *s, const struct window_request *request,
                    struct window *out, struct err *e) MUST_CHECK;

struct tail {
    size_t n;
    double coverage;
    bool complete;
    double per_minute; /* least squares */
};

/* The samples of the last `requested` seconds. s->n ≥ 1 (asserted), times strictly rising. -1: no
 * memory. */
int tail_evaluate(const struct samples *s, double requested, double boundary_factor,
                  struct tail *out, struct err *e) MUST_CHECK;
