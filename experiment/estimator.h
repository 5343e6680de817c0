/*
 * estimator: growth between the two ends of a window: medians of the first and the last band of
 * samples, and the rate between their representative times. Noise inside the window does not count,
 * only what is retained. Units: seconds, MB, MB per hour. Knows no phases and no verdicts.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

#define SECONDS_PER_MINUTE 60.0
#define SECONDS_PER_HOUR 3600.0

struct endpoint_rule {
    double fraction;    /* a band is at most coverage / fraction … */
    double cap_secs;    /* … and at most this long */
    size_t min_samples; /* of the whole window */
    size_t min_band;    /* of each band */
};

/* The seed's: a sixth, at most 60 s, 6 samples, 3 in each band. */
extern const struct endpoint_rule endpoint_rule_default;

enum endpoint_state {
    ENDPOINT_OK,
    ENDPOINT_NOT_SORTED,    /* a decreasing time */
    ENDPOINT_TOO_FEW,       /* fewer than min_samples */
    ENDPOINT_NO_COVERAGE,   /* last time = first time */
    ENDPOINT_BAND_TOO_FEW,  /* fewer than min_band in a band */
    ENDPOINT_NO_SEPARATION, /* representative times do not rise */
};

struct endpoint {
    enum endpoint_state state; /* other than OK: only what was known by then is set */
    double coverage;
    double band;
    size_t start_count;
    size_t end_count;
    double start_median;
    double end_median;
    double start_t; /* median time of the band */
    double end_t;
    double separation;
    double retained;
    double rate_per_hour;
};

/* "too_few_samples", … as used in documents; "" for OK. */
const char *endpoint_state_name(enum endpoint_state state);

/* Finite samples in time order (equal times allowed). -1: no memory. */
int endpoint_estimate(const double *t, const double *y, size_t n, const struct endpoint_rule *rule,
                      struct endpoint *out, struct err *e) MUST_CHECK;
