/* Summaries computed again from the report's own raw samples. */
#include "experiment/acceptance_check.h"

#include <math.h>
#include <string.h>

#include "base/json_in.h"
#include "base/num.h"
#include "experiment/pointer.h"
#include "experiment/stats.h"
#include "experiment/window.h"

#define MS_PER_SEC 1000.0

enum value_kind { VALUE_COUNT, VALUE_TRUTH, VALUE_NUMBER, VALUE_UNKNOWN };

struct value {
    enum value_kind kind;
    double v; /* count and truth too */
};

struct recompute {
    struct checks *c;
    const cJSON *rules;
    struct samples samples;
    double rel;
    double abs;
    double boundary_factor;
    struct endpoint_rule endpoint;
    struct problems *p;
};

static struct value number(double v)
{
    return (struct value){.kind = isfinite(v) ? VALUE_NUMBER : VALUE_UNKNOWN, .v = v};
}

static struct value count(size_t n)
{
    return (struct value){.kind = VALUE_COUNT, .v = (double) n};
}

static struct value truth(bool t)
{
    return (struct value){.kind = VALUE_TRUTH, .v = t ? 1 : 0};
}

static struct value known(bool is_known, double v)
{
    return is_known ? number(v) : (struct value){.kind = VALUE_UNKNOWN};
}

static bool agrees(const struct recompute *r, const cJSON *reported, struct value v)
{
    switch (v.kind) {
    case VALUE_COUNT:
        return check_is_count(reported) && num_same(reported->valuedouble, v.v);
    case VALUE_TRUTH:
        return cJSON_IsBool(reported) && cJSON_IsTrue(reported) == (v.v > 0);
    case VALUE_NUMBER:
        return cJSON_IsNumber(reported) && stats_close(reported->valuedouble, v.v, r->rel, r->abs);
    case VALUE_UNKNOWN:
        break;
    }
    return false;
}

static void compare(struct recompute *r, const cJSON *field, struct value v)
{
    const char *path = check_text(field, "path");
    const cJSON *reported = pointer_get(r->c->report, path);

    if (agrees(r, reported, v))
        return;
    if (v.kind == VALUE_UNKNOWN)
        problems_add(r->p, "%s cannot be computed from the samples", path);
    else if (cJSON_IsNumber(reported))
        problems_add(r->p, "%s is %.17g, the samples give %.17g", path, reported->valuedouble, v.v);
    else
        problems_add(r->p, "%s is %s, the samples give %.17g", path,
                     reported ? json_type_name(reported) : "absent", v.v);
}

static bool is(const cJSON *field, const char *word)
{
    return strcmp(check_text(field, "is"), word) == 0;
}

static double peak_of(const struct samples *s)
{
    double peak = s->value[0];

    for (size_t i = 1; i < s->n; i++)
        peak = fmax(peak, s->value[i]);
    return peak;
}

/* Without the first sample: it has no interval before it. */
static struct value mean_cpu(const struct samples *s)
{
    double sum = 0;

    for (size_t i = 1; s->cpu_pct && i < s->n; i++)
        sum += s->cpu_pct[i];
    return known(s->cpu_pct && s->n > 1, s->n > 1 ? sum / (double) (s->n - 1) : 0);
}

static int compare_totals(struct recompute *r, struct err *e)
{
    const struct samples *s = &r->samples;
    double per_sec = stats_least_squares(s->t_secs, s->value, s->n).slope;
    double interval = 0;
    const cJSON *field = NULL;

    if (stats_interval(s->t_secs, s->n, &interval, e) < 0)
        return -1;
    cJSON_ArrayForEach(field, json_get(r->rules, "totals")) {
        if (is(field, "sample-count"))
            compare(r, field, count(s->n));
        else if (is(field, "interval"))
            compare(r, field, number(interval));
        else if (is(field, "first"))
            compare(r, field, number(s->value[0]));
        else if (is(field, "peak"))
            compare(r, field, number(peak_of(s)));
        else if (is(field, "mean-cpu"))
            compare(r, field, mean_cpu(s));
        else if (is(field, "growth-per-minute"))
            compare(r, field, number(per_sec * SECONDS_PER_MINUTE));
        else if (is(field, "growth-per-hour"))
            compare(r, field, number(per_sec * SECONDS_PER_HOUR));
        else
            return err_set(e, ERR_INTERNAL, "acceptance.word", "no rule for '%s'",
                           check_text(field, "is"));
    }
    return 0;
}

static int compare_tail(struct recompute *r, const cJSON *rules, struct err *e)
{
    const char *path = check_text(rules, "requested");
    const cJSON *requested = pointer_get(r->c->report, path);
    struct tail tail = {0};
    const cJSON *field = NULL;

    if (!cJSON_IsNumber(requested)) {
        problems_add(r->p, "%s is %s", path, requested ? "not a number" : "absent");
        return 0;
    }
    if (tail_evaluate(&r->samples, requested->valuedouble, r->boundary_factor, &tail, e) < 0)
        return -1;
    cJSON_ArrayForEach(field, json_get(rules, "fields")) {
        if (is(field, "coverage"))
            compare(r, field, number(tail.coverage));
        else if (is(field, "sample-count"))
            compare(r, field, count(tail.n));
        else if (is(field, "complete"))
            compare(r, field, truth(tail.complete));
        else if (is(field, "growth-per-minute"))
            compare(r, field, number(tail.per_minute));
        else
            return err_set(e, ERR_INTERNAL, "acceptance.word", "no rule for '%s'",
                           check_text(field, "is"));
    }
    return 0;
}

static struct value window_value(const struct window *w, const char *word)
{
    const struct endpoint *ends = &w->endpoint;
    bool bands = ends->state == ENDPOINT_OK;
    const struct {
        const char *word;
        struct value value;
    } values[] = {
        {"first-sample", number(w->first)},
        {"last-sample", number(w->last)},
        {"coverage", number(w->coverage)},
        {"sample-count", count(w->n)},
        {"boundary-tolerance", number(w->tolerance)},
        {"complete", truth(w->complete)},
        {"growth-per-minute", number(w->least_squares_per_sec * SECONDS_PER_MINUTE)},
        {"growth-per-hour", number(w->least_squares_per_sec * SECONDS_PER_HOUR)},
        {"start-median", known(bands, ends->start_median)},
        {"end-median", known(bands, ends->end_median)},
        {"retained", known(bands, ends->retained)},
        {"start-time", known(bands, ends->start_t)},
        {"end-time", known(bands, ends->end_t)},
        {"separation", known(bands, ends->separation)},
        {"band", known(bands, ends->band)},
        {"start-sample-count", bands ? count(ends->start_count) : known(false, 0)},
        {"end-sample-count", bands ? count(ends->end_count) : known(false, 0)},
        {"endpoint-growth-per-hour", known(bands, ends->rate_per_hour)},
        {"theil-sen-per-hour", known(w->has_theil_sen, w->theil_sen_per_hour)},
    };

    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        if (strcmp(values[i].word, word) == 0)
            return values[i].value;
    return known(false, 0);
}

static bool read_number(struct recompute *r, const char *path, double *out)
{
    const cJSON *j = pointer_get(r->c->report, path);

    if (!cJSON_IsNumber(j) || !isfinite(j->valuedouble)) {
        problems_add(r->p, "%s is %s", path, j ? "not a number" : "absent");
        return false;
    }
    *out = j->valuedouble;
    return true;
}

/* The requested span must be what was asked for, within the definition's slack. */
static bool check_span(struct recompute *r, const cJSON *rules, double start, double end)
{
    const char *path = check_text(rules, "requested_coverage");
    double under = check_number(rules, "span_under", 1) / MS_PER_SEC;
    double over = check_number(rules, "span_over", 0) / MS_PER_SEC;
    double coverage = 0;

    if (path[0] == '\0')
        return true;
    if (!read_number(r, path, &coverage))
        return false;
    if (end - start >= coverage - under && end - start <= coverage + over)
        return true;
    problems_add(r->p, "%s to %s spans %.9g s, %s asks for %.9g s",
                 check_text(rules, "requested_start"), check_text(rules, "requested_end"),
                 end - start, path, coverage);
    return false;
}

static bool wants_theil_sen(const cJSON *rules)
{
    const cJSON *field = NULL;

    cJSON_ArrayForEach(field, json_get(rules, "fields"))
        if (is(field, "theil-sen-per-hour"))
            return true;
    return false;
}

static int compare_window(struct recompute *r, const cJSON *rules, struct err *e)
{
    struct window_request request = {.boundary_factor = r->boundary_factor,
                                     .endpoint = &r->endpoint,
                                     .theil_sen = wants_theil_sen(rules)};
    struct window w = {0};
    const cJSON *field = NULL;
    bool has_start = read_number(r, check_text(rules, "requested_start"), &request.start);
    bool has_end = read_number(r, check_text(rules, "requested_end"), &request.end);

    if (!has_start || !has_end || !check_span(r, rules, request.start, request.end))
        return 0;
    if (window_evaluate(&r->samples, &request, &w, e) < 0)
        return -1;
    if (w.state != WINDOW_OK) {
        problems_add(r->p, "%s: %s", check_text(rules, "requested_start"),
                     window_state_name(w.state));
        return 0;
    }
    cJSON_ArrayForEach(field, json_get(rules, "fields"))
        compare(r, field, window_value(&w, check_text(field, "is")));
    return 0;
}

static int compare_all(struct recompute *r, struct err *e)
{
    const cJSON *tail = json_get(r->rules, "tail");
    const cJSON *window = NULL;

    if (!stats_is_rising(r->samples.t_secs, r->samples.n)) {
        problems_add(r->p, "the times of the raw samples are not strictly rising");
        return 0;
    }
    if (compare_totals(r, e) < 0 || (tail && compare_tail(r, tail, e) < 0))
        return -1;
    cJSON_ArrayForEach(window, json_get(r->rules, "windows"))
        if (compare_window(r, window, e) < 0)
            return -1;
    return 0;
}

static void read_rules(struct recompute *r, struct samples_members *out_members)
{
    const cJSON *samples = json_get(r->rules, "samples");
    const cJSON *endpoint = json_get(r->rules, "endpoint");
    const struct endpoint_rule *d = &endpoint_rule_default;
    const char *cpu = check_text(samples, "cpu");

    r->rel = check_number(r->rules, "rel_tolerance", 1e-9);
    r->abs = check_number(r->rules, "abs_tolerance", 1e-8);
    r->boundary_factor = check_number(r->rules, "boundary_factor", 1.5);
    r->endpoint = (struct endpoint_rule){
        .fraction = check_number(endpoint, "fraction", d->fraction),
        .cap_secs = check_number(endpoint, "cap", d->cap_secs * MS_PER_SEC) / MS_PER_SEC,
        .min_samples = (size_t) check_number(endpoint, "min_samples", (double) d->min_samples),
        .min_band = (size_t) check_number(endpoint, "min_band_samples", (double) d->min_band),
    };
    *out_members = (struct samples_members){
        .t = check_text(samples, "t"),
        .value = check_text(samples, "value"),
        .cpu = cpu[0] != '\0' ? cpu : NULL,
        .cpu_binary32 = strcmp(check_text(samples, "cpu_type"), "binary32") == 0,
    };
}

int checks_recompute(struct checks *c, const cJSON *accept, struct err *e)
{
    const cJSON *rules = json_get(accept, "recompute");
    const char *path = check_text(json_get(rules, "samples"), "path");
    struct samples_members members = {0};
    const char *problem = "";
    struct problems p;
    struct recompute r = {.c = c, .rules = rules, .p = &p};
    int result = 0;

    if (!rules)
        return 0;
    problems_init(&p);
    read_rules(&r, &members);
    result = samples_from_json(pointer_get(c->report, path), &members, &r.samples, &problem, e);
    if (result == 0 && problem[0] != '\0')
        problems_add(&p, "%s: %s", path, problem);
    else if (result == 0)
        result = compare_all(&r, e);
    if (result == 0)
        checks_add_problems(c, check_name(rules, path), "recomputed", NULL, &p);
    samples_fini(&r.samples);
    problems_fini(&p);
    return result;
}
