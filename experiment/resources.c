#include "experiment/resources.h"

#include <math.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/num.h"
#include "experiment/phases.h"
#include "experiment/pointer.h"
#include "experiment/stats.h"
#include "experiment/window.h"

struct derived {
    struct window_rule rule;
    const char *reason; /* "" when the window could be evaluated */
    double start;       /* NAN: unknown */
    double end;
    struct window window;
    bool evaluated;
    bool complete;
};

static bool find_marker(const cJSON *markers, const char *phase, double *out_secs)
{
    struct phase_found found = phases_find_actual(markers, phase);

    if (found.count != 1 || !found.valid)
        return false;
    *out_secs = found.elapsed_ms / 1000.0;
    return true;
}

/* Is this value of the report bound to the phase? */
static bool is_bound(const cJSON *accept, const char *pointer, const char *phase)
{
    const cJSON *binding = NULL, *bound = NULL;

    cJSON_ArrayForEach(binding, json_get(accept, "bindings")) {
        cJSON_ArrayForEach(bound, json_get(binding, "bounds")) {
            const cJSON *value = json_get(bound, "value"), *name = json_get(bound, "phase");

            if (cJSON_IsString(value) && cJSON_IsString(name) &&
                !strcmp(value->valuestring, pointer) && !strcmp(name->valuestring, phase))
                return true;
        }
    }
    return false;
}

/* Both boundaries of a window as the report states them, when the policy binds them to its phases
 * and recomputes that window. */
static bool find_stated(const struct definition *def, const cJSON *report,
                        const struct window_rule *rule, double *out_start, double *out_end)
{
    const cJSON *accept = json_get(def->policy, "accept"), *entry = NULL;

    cJSON_ArrayForEach(entry, json_get(json_get(accept, "recompute"), "windows")) {
        const cJSON *from = json_get(entry, "requested_start");
        const cJSON *to = json_get(entry, "requested_end");
        const cJSON *start, *end;

        if (!cJSON_IsString(from) || !cJSON_IsString(to) ||
            !is_bound(accept, from->valuestring, rule->start_phase) ||
            !is_bound(accept, to->valuestring, rule->end_phase))
            continue;
        start = pointer_get(report, from->valuestring);
        end = pointer_get(report, to->valuestring);
        if (!cJSON_IsNumber(start) || !cJSON_IsNumber(end))
            continue;
        *out_start = start->valuedouble;
        *out_end = end->valuedouble;
        return true;
    }
    return false;
}

/* report: NULL, or where boundaries may be stated. */
static int derive_window(const struct definition *def, const struct samples *s,
                         const cJSON *markers, const cJSON *report, struct derived *d,
                         struct err *e)
{
    struct window_request request = {.boundary_factor = d->rule.boundary_factor,
                                     .endpoint = &d->rule.endpoint,
                                     .theil_sen = true};
    bool has_start = find_marker(markers, d->rule.start_phase, &d->start);
    bool has_end = find_marker(markers, d->rule.end_phase, &d->end);

    if (has_start && has_end && report)
        (void) find_stated(def, report, &d->rule, &d->start, &d->end); /* else the markers' */
    if (!has_start || !has_end) {
        d->reason = !has_start ? "the start marker is missing, repeated or malformed"
                               : "the end marker is missing, repeated or malformed";
        return 0;
    }
    request.start = d->start;
    request.end = d->end;
    if (window_evaluate(s, &request, &d->window, e) < 0)
        return -1;
    d->reason = window_state_name(d->window.state);
    d->evaluated = d->window.state == WINDOW_OK;
    if (!d->evaluated)
        return 0;
    d->complete = d->window.complete && d->window.n >= d->rule.min_samples &&
                  d->window.coverage >= d->rule.min_coverage_secs;
    if (!d->window.complete)
        d->reason = "the samples do not reach the window's boundaries";
    else if (!d->complete)
        d->reason = "too few samples or too little coverage";
    else if (d->rule.estimator == WINDOW_ENDPOINT_BANDS && d->window.endpoint.state != ENDPOINT_OK)
        d->reason = endpoint_state_name(d->window.endpoint.state);
    return 0;
}

static void add_number(struct json_doc *doc, cJSON *parent, const char *key, bool known, double v)
{
    if (known)
        json_add_double(doc, parent, key, v);
    else
        json_add_null(doc, parent, key);
}

static double growth(const struct derived *d, bool *out_known)
{
    const struct window *w = &d->window;

    *out_known = d->evaluated;
    switch (d->rule.estimator) {
    case WINDOW_ENDPOINT_BANDS:
        *out_known = d->evaluated && w->endpoint.state == ENDPOINT_OK;
        return w->endpoint.rate_per_hour;
    case WINDOW_THEIL_SEN:
        *out_known = d->evaluated && w->has_theil_sen;
        return w->theil_sen_per_hour;
    case WINDOW_LEAST_SQUARES:
        break;
    }
    return w->least_squares_per_sec * SECONDS_PER_HOUR;
}

static void write_window(struct json_doc *doc, cJSON *parent, const struct derived *d)
{
    const struct window *w = &d->window;
    cJSON *o = json_add_object(doc, parent, d->rule.name);
    bool bands = d->evaluated && w->endpoint.state == ENDPOINT_OK;
    bool markers = isfinite(d->start) && isfinite(d->end);
    bool known = false;
    double rate = growth(d, &known);

    json_add_string(doc, o, "start_phase", d->rule.start_phase);
    json_add_string(doc, o, "end_phase", d->rule.end_phase);
    json_add_string(doc, o, "estimator", window_estimator_name(d->rule.estimator));
    add_number(doc, o, "requested_start_secs", isfinite(d->start), d->start);
    add_number(doc, o, "requested_end_secs", isfinite(d->end), d->end);
    add_number(doc, o, "requested_coverage_secs", markers, d->end - d->start);
    add_number(doc, o, "first_sample_secs", d->evaluated, w->first);
    add_number(doc, o, "last_sample_secs", d->evaluated, w->last);
    add_number(doc, o, "actual_coverage_secs", d->evaluated, w->coverage);
    json_add_int(doc, o, "sample_count", (int64_t) w->n);
    json_add_bool(doc, o, "complete", d->complete && d->reason[0] == '\0');
    add_number(doc, o, "band_secs", bands, w->endpoint.band);
    add_number(doc, o, "start_median_mb", bands, w->endpoint.start_median);
    add_number(doc, o, "end_median_mb", bands, w->endpoint.end_median);
    add_number(doc, o, "start_representative_secs", bands, w->endpoint.start_t);
    add_number(doc, o, "end_representative_secs", bands, w->endpoint.end_t);
    add_number(doc, o, "retained_mb", bands, w->endpoint.retained);
    add_number(doc, o, "separation_secs", bands, w->endpoint.separation);
    add_number(doc, o, "endpoint_mb_per_hour", bands, w->endpoint.rate_per_hour);
    add_number(doc, o, "theil_sen_mb_per_hour", d->evaluated && w->has_theil_sen,
               w->theil_sen_per_hour);
    add_number(doc, o, "ols_mb_per_hour", d->evaluated,
               w->least_squares_per_sec * SECONDS_PER_HOUR);
    add_number(doc, o, "growth_mb_per_hour", known, rate);
    if (d->reason[0] != '\0')
        json_add_string(doc, o, "reason", d->reason);
}

/* Mean without the first sample: that one has no interval before it. */
static void write_cpu(struct json_doc *doc, const struct samples *s)
{
    double sum = 0;

    for (size_t i = 1; s->cpu_pct && i < s->n; i++)
        sum += s->cpu_pct[i];
    add_number(doc, NULL, "avg_cpu_pct", s->cpu_pct && s->n > 1,
               s->n > 1 ? sum / (double) (s->n - 1) : 0);
}

static int write_totals(struct json_doc *doc, const struct samples *s, struct err *e)
{
    double interval = 0;
    double peak = s->n > 0 ? s->value[0] : 0;

    if (stats_interval(s->t_secs, s->n, &interval, e) < 0)
        return -1;
    for (size_t i = 1; i < s->n; i++)
        peak = fmax(peak, s->value[i]);
    json_add_string(doc, NULL, "source", "cleanrun-runner");
    json_add_int(doc, NULL, "sample_count", (int64_t) s->n);
    add_number(doc, NULL, "sample_interval_ms", s->n > 1, round(interval * 1000.0));
    add_number(doc, NULL, "baseline_rss_mb", s->n > 0, s->n > 0 ? s->value[0] : 0);
    add_number(doc, NULL, "peak_rss_mb", s->n > 0, peak);
    write_cpu(doc, s);
    return 0;
}

static void embed(struct json_doc *doc, const struct samples *s)
{
    cJSON *o = json_add_object(doc, NULL, "samples");
    cJSON *t = json_add_array(doc, o, "t_ms");
    cJSON *rss = json_add_array(doc, o, "rss_kib");
    cJSON *cpu = s->cpu_pct ? json_add_array(doc, o, "cpu_pct") : NULL;

    for (size_t i = 0; i < s->n; i++) {
        json_add_int(doc, t, NULL, s->t_ms[i]);
        json_add_int(doc, rss, NULL, s->rss_kib[i]);
        if (cpu)
            json_add_double(doc, cpu, NULL, s->cpu_pct[i]);
    }
}

int resources_derive(const struct definition *d, const struct samples *s, const cJSON *markers,
                     cJSON **out, struct err *e)
{
    return resources_derive_stated(d, s, markers, NULL, out, e);
}

int resources_derive_stated(const struct definition *d, const struct samples *s,
                            const cJSON *markers, const cJSON *report, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = {0};
    const cJSON *windows = json_get(d->experiment, "windows");
    const cJSON *entry = NULL;
    cJSON *parent = NULL;

    json_doc_init_object(&doc);
    if (write_totals(&doc, s, e) < 0)
        return -1;
    parent = json_add_object(&doc, NULL, "windows");
    cJSON_ArrayForEach(entry, windows) {
        struct derived w = {.reason = "", .start = (double) NAN, .end = (double) NAN};

        window_rule_from(entry, &w.rule);
        if (derive_window(d, s, markers, report, &w, e) < 0)
            return -1;
        write_window(&doc, parent, &w);
    }
    if (s->t_ms && cJSON_IsTrue(json_get(json_get(d->experiment, "sampling"), "embed")))
        embed(&doc, s);
    *out = json_doc_take(&doc, e);
    return *out ? 0 : -1;
}

static bool read_column(const cJSON *array, size_t n, bool integer, double *out)
{
    const cJSON *j = NULL;
    size_t i = 0;

    cJSON_ArrayForEach(j, array) {
        if (i == n || !cJSON_IsNumber(j) || !isfinite(j->valuedouble) ||
            (integer && !num_is_safe_integer(j->valuedouble)))
            return false;
        out[i++] = j->valuedouble;
    }
    return cJSON_IsArray(array) && i == n;
}

int resources_embedded_samples(const cJSON *section, struct samples *out, const char **out_problem,
                               struct err *e)
{
    const cJSON *columns = json_get(section, "samples");
    const cJSON *t = json_get(columns, "t_ms");
    const cJSON *cpu = json_get(columns, "cpu_pct");
    const cJSON *j = NULL;
    AUTO_SAMPLES struct samples s = {0};
    size_t n = 0;

    *out_problem = "";
    cJSON_ArrayForEach(j, t)
        n++;
    if (!cJSON_IsArray(t)) {
        *out_problem = "no_samples";
        return 0;
    }
    if (n > LIMIT_SAMPLES)
        return err_set(e, ERR_LIMIT, "samples.count", "more than %zu samples", LIMIT_SAMPLES);
    if (samples_alloc(n, cpu != NULL, true, &s, e) < 0)
        return -1;
    if (!read_column(t, n, true, s.t_secs) ||
        !read_column(json_get(columns, "rss_kib"), n, true, s.value) ||
        (cpu && !read_column(cpu, n, false, s.cpu_pct))) {
        *out_problem = "not_number";
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        s.t_ms[i] = (int64_t) s.t_secs[i];
        s.rss_kib[i] = (int64_t) s.value[i];
        s.t_secs[i] = (double) s.t_ms[i] / 1000.0;
        s.value[i] = (double) s.rss_kib[i] / 1024.0;
    }
    *out = s;
    s = (struct samples){0};
    return 0;
}
