#include "experiment/estimator.h"

#include <math.h>

#include "experiment/stats.h"

const struct endpoint_rule endpoint_rule_default = {
    .fraction = 6.0, .cap_secs = 60.0, .min_samples = 6, .min_band = 3};

const char *endpoint_state_name(enum endpoint_state state)
{
    switch (state) {
    case ENDPOINT_OK:
        return "";
    case ENDPOINT_NOT_SORTED:
        return "not_sorted";
    case ENDPOINT_TOO_FEW:
        return "too_few_samples";
    case ENDPOINT_NO_COVERAGE:
        return "no_coverage";
    case ENDPOINT_BAND_TOO_FEW:
        return "band_too_few_samples";
    case ENDPOINT_NO_SEPARATION:
        return "no_separation";
    }
    return "";
}

/* Counts of both bands; both ends inclusive. */
static void find_bands(const double *t, size_t n, struct endpoint *out)
{
    size_t first_of_end = n;

    while (out->start_count < n && t[out->start_count] <= t[0] + out->band)
        out->start_count++;
    while (first_of_end > 0 && t[first_of_end - 1] >= t[n - 1] - out->band)
        first_of_end--;
    out->end_count = n - first_of_end;
}

static enum endpoint_state check_samples(const double *t, size_t n,
                                         const struct endpoint_rule *rule, struct endpoint *out)
{
    for (size_t i = 1; i < n; i++)
        if (t[i] < t[i - 1])
            return ENDPOINT_NOT_SORTED;
    if (n < rule->min_samples || n == 0)
        return ENDPOINT_TOO_FEW;
    out->coverage = t[n - 1] - t[0];
    if (!(out->coverage > 0))
        return ENDPOINT_NO_COVERAGE;
    out->band = fmin(out->coverage / rule->fraction, rule->cap_secs);
    find_bands(t, n, out);
    if (out->start_count < rule->min_band || out->end_count < rule->min_band)
        return ENDPOINT_BAND_TOO_FEW;
    return ENDPOINT_OK;
}

int endpoint_estimate(const double *t, const double *y, size_t n, const struct endpoint_rule *rule,
                      struct endpoint *out, struct err *e)
{
    struct endpoint r = {0};
    size_t tail = 0;

    r.state = check_samples(t, n, rule, &r);
    if (r.state != ENDPOINT_OK) {
        *out = r;
        return 0;
    }
    tail = n - r.end_count;
    if (stats_median(y, r.start_count, &r.start_median, e) < 0 ||
        stats_median(y + tail, r.end_count, &r.end_median, e) < 0 ||
        stats_median(t, r.start_count, &r.start_t, e) < 0 ||
        stats_median(t + tail, r.end_count, &r.end_t, e) < 0)
        return -1;
    r.separation = r.end_t - r.start_t;
    r.retained = r.end_median - r.start_median;
    if (r.separation > 0)
        r.rate_per_hour = r.retained * SECONDS_PER_HOUR / r.separation;
    else
        r.state = ENDPOINT_NO_SEPARATION;
    *out = r;
    return 0;
}
