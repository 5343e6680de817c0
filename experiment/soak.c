#include "experiment/soak.h"

#include <math.h>
#include <stdio.h>

#include "base/json_in.h"
#include "experiment/stats.h"

enum { MIN_SLOPE_SAMPLES = 3 };

struct range {
    size_t from;
    size_t n;
};

void soak_rule_from(const cJSON *soak, struct soak_rule *out)
{
    *out = (struct soak_rule){
        .window_secs = json_number(soak, "window", 0) / 1000.0,
        .min_coverage_secs = json_number(soak, "min_coverage", 0) / 1000.0,
        .min_samples = (size_t) json_number(soak, "min_samples", MIN_SLOPE_SAMPLES),
        .limit_mb_per_hour = json_number(soak, "limit_mb_per_hour", 0),
    };
}

void soak_window_name(enum soak_window window, const struct soak_rule *rule,
                      char out[SOAK_NAME_SIZE])
{
    const char *suffix = window == SOAK_ACTIVE_TAIL_INCOMPLETE ? "_incomplete" : "";

    switch (window) {
    case SOAK_ACTIVE_TAIL:
    case SOAK_ACTIVE_TAIL_INCOMPLETE:
        (void) snprintf(out, SOAK_NAME_SIZE, "active_tail_%.9gs%s", rule->window_secs, suffix);
        return;
    case SOAK_POST_DRAIN:
        (void) snprintf(out, SOAK_NAME_SIZE, "post_drain");
        return;
    case SOAK_TAIL:
        (void) snprintf(out, SOAK_NAME_SIZE, "tail");
        return;
    }
}

static struct range between(const struct samples *s, double from, double to)
{
    struct range r = {0};

    while (r.from < s->n && s->t_secs[r.from] < from)
        r.from++;
    while (r.from + r.n < s->n && s->t_secs[r.from + r.n] <= to)
        r.n++;
    return r;
}

static struct range choose(const struct samples *s, double active_secs,
                           const struct soak_rule *rule, enum soak_window *out)
{
    double last = s->t_secs[s->n - 1];
    struct range after = between(s, active_secs, last);

    if (active_secs >= rule->window_secs) {
        *out = SOAK_ACTIVE_TAIL_INCOMPLETE;
        return between(s, active_secs - rule->window_secs, active_secs);
    }
    if (after.n >= MIN_SLOPE_SAMPLES) {
        *out = SOAK_POST_DRAIN;
        return after;
    }
    *out = SOAK_TAIL;
    return between(s, last - rule->window_secs, last);
}

int soak_evaluate(const struct samples *s, double active_secs, const struct soak_rule *rule,
                  struct soak *out, struct err *e)
{
    struct soak r = {.window = SOAK_TAIL};
    struct range range = {0};
    struct stats_slope slope = {0};

    if (s->n == 0 || !isfinite(active_secs) || !stats_all_finite(s->t_secs, s->n) ||
        !stats_all_finite(s->value, s->n) || !stats_is_rising(s->t_secs, s->n)) {
        *out = r;
        return 0;
    }
    range = choose(s, active_secs, rule, &r.window);
    r.n = range.n;
    if (range.n > 0)
        r.coverage = s->t_secs[range.from + range.n - 1] - s->t_secs[range.from];
    if (endpoint_estimate(s->t_secs + range.from, s->value + range.from, range.n,
                          &endpoint_rule_default, &r.endpoint, e) < 0 ||
        stats_theil_sen(s->t_secs + range.from, s->value + range.from, range.n, &slope, NULL, e) <
            0)
        return -1;
    r.has_growth = range.n >= MIN_SLOPE_SAMPLES && slope.defined;
    r.theil_sen_per_hour = slope.slope * SECONDS_PER_HOUR;
    r.complete = r.window == SOAK_ACTIVE_TAIL_INCOMPLETE && r.coverage >= rule->min_coverage_secs &&
                 range.n >= rule->min_samples && r.has_growth && r.endpoint.state == ENDPOINT_OK;
    if (r.complete)
        r.window = SOAK_ACTIVE_TAIL;
    r.passes = r.complete && r.theil_sen_per_hour <= rule->limit_mb_per_hour;
    *out = r;
    return 0;
}
