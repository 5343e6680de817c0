#include "experiment/window.h"

#include <assert.h>
#include <math.h>

#include "experiment/stats.h"

#define SHORTEST_INTERVAL_SECS 0.001

const char *window_state_name(enum window_state state)
{
    switch (state) {
    case WINDOW_OK:
        return "";
    case WINDOW_REVERSED:
        return "the window ends before it starts";
    case WINDOW_NOT_RISING:
        return "sample times are not strictly rising finite numbers";
    case WINDOW_TOO_FEW:
        return "fewer than two samples in the window";
    }
    return "";
}

static int boundary_tolerance(const struct samples *s, double factor, double *out, struct err *e)
{
    double interval = 0;

    if (stats_interval(s->t_secs, s->n, &interval, e) < 0)
        return -1;
    *out = factor * fmax(interval, SHORTEST_INTERVAL_SECS);
    return 0;
}

static bool select_samples(const struct samples *s, const struct window_request *request,
                           struct window *w)
{
    while (w->from < s->n && s->t_secs[w->from] < request->start)
        w->from++;
    while (w->from + w->n < s->n && s->t_secs[w->from + w->n] <= request->end)
        w->n++;
    return w->n >= 2;
}

static int estimate(const struct samples *s, const struct window_request *request, struct window *w,
                    struct err *e)
{
    const double *t = s->t_secs + w->from;
    const double *v = s->value + w->from;

    w->first = t[0];
    w->last = t[w->n - 1];
    w->coverage = w->last - w->first;
    w->complete =
        w->first <= request->start + w->tolerance && w->last + w->tolerance >= request->end;
    w->least_squares_per_sec = stats_least_squares(t, v, w->n).slope;
    if (request->theil_sen) {
        struct stats_slope slope = {0};

        if (stats_theil_sen(t, v, w->n, &slope, NULL, e) < 0)
            return -1;
        w->has_theil_sen = slope.defined;
        w->theil_sen_per_hour = slope.slope * SECONDS_PER_HOUR;
    }
    return endpoint_estimate(t, v, w->n, request->endpoint, &w->endpoint, e);
}

int window_evaluate(const struct samples *s, const struct window_request *request,
                    struct window *out, struct err *e)
{
    struct window w = {.state = WINDOW_OK};

    if (!stats_all_finite(s->t_secs, s->n) || !stats_all_finite(s->value, s->n) ||
        !stats_is_rising(s->t_secs, s->n))
        w.state = WINDOW_NOT_RISING;
    else if (!(request->end >= request->start))
        w.state = WINDOW_REVERSED;
    else if (boundary_tolerance(s, request->boundary_factor, &w.tolerance, e) < 0)
        return -1;
    else if (!select_samples(s, request, &w))
        w.state = WINDOW_TOO_FEW;
    if (w.state == WINDOW_OK && estimate(s, request, &w, e) < 0)
        return -1;
    *out = w;
    return 0;
}

int tail_evaluate(const struct samples *s, double requested, double boundary_factor,
                  struct tail *out, struct err *e)
{
    struct tail r = {0};
    double tolerance = 0;
    double begin = 0;
    size_t from = 0;

    assert(s->n > 0);
    begin = fmax(0, s->t_secs[s->n - 1] - requested);
    if (boundary_tolerance(s, boundary_factor, &tolerance, e) < 0)
        return -1;
    while (from + 1 < s->n && s->t_secs[from] < begin)
        from++;
    r.n = s->n - from;
    r.coverage = s->t_secs[s->n - 1] - s->t_secs[from];
    r.complete = r.coverage + tolerance >= requested;
    r.per_minute =
        stats_least_squares(s->t_secs + from, s->value + from, r.n).slope * SECONDS_PER_MINUTE;
    *out = r;
    return 0;
}
