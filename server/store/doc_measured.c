/* What a run measured over time: the memory series, the phase marks, the windows between them. */
#include <string.h>

#include "base/json_in.h"
#include "experiment/pointer.h"
#include "experiment/resources.h"
#include "experiment/samples.h"
#include "experiment/window.h"
#include "server/store/doc.h"

/* Of the drawn series: minimum and maximum of each of half as many stretches. */
#define POINTS_MAX 500

static void add_point(struct json_doc *d, cJSON *list, const struct samples *s, size_t i)
{
    cJSON *p = json_add_array(d, list, NULL);

    json_add_double(d, p, NULL, s->t_ms ? (double) s->t_ms[i] : s->t_secs[i] * 1000);
    json_add_double(d, p, NULL, s->rss_kib ? (double) s->rss_kib[i] : s->value[i] * 1024);
}

/* Extremes of each stretch in their order, so that no spike vanishes from the drawing. */
static void add_points(struct json_doc *d, cJSON *list, const struct samples *s)
{
    size_t stretches = POINTS_MAX / 2;

    if (s->n <= POINTS_MAX) {
        for (size_t i = 0; i < s->n; i++)
            add_point(d, list, s, i);
        return;
    }
    for (size_t k = 0; k < stretches; k++) {
        size_t from = k * s->n / stretches;
        size_t to = (k + 1) * s->n / stretches;
        size_t low = from;
        size_t high = from;

        for (size_t i = from; i < to; i++) {
            low = s->value[i] < s->value[low] ? i : low;
            high = s->value[i] > s->value[high] ? i : high;
        }
        add_point(d, list, s, low < high ? low : high);
        if (low != high)
            add_point(d, list, s, low < high ? high : low);
    }
}

static void add_series(struct json_doc *d, const struct samples *s)
{
    cJSON *o;

    if (s->n == 0) {
        json_add_null(d, NULL, "series");
        return;
    }
    o = json_add_object(d, NULL, "series");
    add_points(d, json_add_array(d, o, "samples"), s);
    json_add_int(d, o, "n_total", (int64_t) s->n);
}

/* Windows: what the report says of each, and where its bands lie on the raw samples. */

static void add_band(struct json_doc *d, cJSON *list, double from, double to, double t,
                     double median)
{
    cJSON *o = json_add_object(d, list, NULL);

    json_add_double(d, o, "from_ms", from * 1000);
    json_add_double(d, o, "to_ms", to * 1000);
    json_add_double(d, o, "t_ms", t * 1000);
    json_add_double(d, o, "median_mb", median);
}

static int add_bound(struct json_doc *d, cJSON *parent, const struct window_rule *rule,
                     double start, double end, const struct samples *s, struct err *e)
{
    cJSON *bound = json_add_object(d, parent, "bound");
    cJSON *bands;
    struct window w = {.n = 0};
    const struct window_request request = {
        .start = start,
        .end = end,
        .boundary_factor = rule->boundary_factor,
        .endpoint = &rule->endpoint,
    };

    json_add_double(d, bound, "start_ms", start * 1000);
    json_add_double(d, bound, "end_ms", end * 1000);
    bands = json_add_array(d, bound, "bands");
    if (s->n == 0)
        return 0;
    if (window_evaluate(s, &request, &w, e) < 0)
        return -1;
    if (w.state != WINDOW_OK || w.endpoint.state != ENDPOINT_OK)
        return 0;
    add_band(d, bands, w.first, w.first + w.endpoint.band, w.endpoint.start_t,
             w.endpoint.start_median);
    add_band(d, bands, w.last - w.endpoint.band, w.last, w.endpoint.end_t, w.endpoint.end_median);
    return 0;
}

static int add_window(struct json_doc *d, cJSON *list, const cJSON *said, const cJSON *rule_entry,
                      const struct samples *s, struct err *e)
{
    const cJSON *start = json_get(said, "requested_start_secs");
    const cJSON *end = json_get(said, "requested_end_secs");
    const cJSON *field = NULL;
    struct window_rule rule;
    cJSON *o = json_add_object(d, list, NULL);

    json_add_string(d, o, "name", said->string);
    cJSON_ArrayForEach(field, said) {
        if (strcmp(field->string, "name") != 0 && strcmp(field->string, "bound") != 0)
            json_add_copy(d, o, field->string, field);
    }
    if (!rule_entry || !cJSON_IsNumber(start) || !cJSON_IsNumber(end)) {
        json_add_null(d, o, "bound");
        return 0;
    }
    window_rule_from(rule_entry, &rule);
    return add_bound(d, o, &rule, start->valuedouble, end->valuedouble, s, e);
}

static int add_windows(struct json_doc *d, const struct measured *m, const cJSON *section,
                       const struct samples *s, struct err *e)
{
    const cJSON *rules = pointer_get(m->definition, "/experiment/windows");
    cJSON *list = json_add_array(d, NULL, "windows");
    const cJSON *said = NULL;

    cJSON_ArrayForEach(said, json_get(section, "windows")) {
        if (cJSON_IsObject(said) &&
            add_window(d, list, said, json_get(rules, said->string), s, e) < 0)
            return -1;
    }
    return 0;
}

/* The series that the acceptance rests on: the report's own where the definition recomputes from
 * it, else the runner's. What is no series is not drawn. */
static int read_series(const struct measured *m, bool derived, struct samples *out,
                       bool *out_of_report, struct err *e)
{
    const cJSON *rule = pointer_get(m->definition, "/policy/accept/recompute/samples");
    const cJSON *path = json_get(rule, "path");
    const cJSON *t = json_get(rule, "t");
    const cJSON *value = json_get(rule, "value");
    const char *problem = "";

    if (!derived && m->report && cJSON_IsString(path) && cJSON_IsString(t) &&
        cJSON_IsString(value)) {
        const struct samples_members members = {.t = t->valuestring, .value = value->valuestring};

        if (samples_from_json(pointer_get(m->report, path->valuestring), &members, out, &problem,
                              e) < 0)
            return -1;
        *out_of_report = out->n > 0;
        if (*out_of_report)
            return 0;
    }
    if (m->csv) {
        struct err ignored = ERR_INIT;

        IGNORE(samples_parse_csv(m->csv, m->csv_len, out, &ignored)); /* see above */
    }
    return 0;
}

/* The marks on the series' own clock: those that the report holds where the definition says, or
 * the runner's. Without a series, or without marks of its own, whatever there is: then no window
 * lies on it. */
static const cJSON *markers_of(const struct measured *m, bool of_report, bool *out_same_clock)
{
    const cJSON *path = pointer_get(m->definition, "/policy/accept/phases/markers");
    const cJSON *own = NULL;

    if (cJSON_IsString(path) && m->report)
        own = pointer_get(m->report, path->valuestring);
    if (!own || !cJSON_IsArray(own) || !own->child)
        own = NULL;
    *out_same_clock = of_report ? own != NULL : m->markers && m->markers->child;
    if (of_report && own)
        return own;
    return m->markers && m->markers->child ? m->markers : own;
}

int doc_measured(struct json_doc *d, const struct measured *m, struct err *e)
{
    const struct definition def = {.experiment = json_get(m->definition, "experiment"),
                                   .policy = json_get(m->definition, "policy")};
    const cJSON *into = pointer_get(m->definition, "/experiment/sampling/into");
    const cJSON *markers = NULL, *section = NULL;
    AUTO_SAMPLES struct samples s = {.n = 0};
    AUTO_JSON cJSON *made = NULL;

    bool of_report = false, same_clock = false;

    if (read_series(m, into != NULL, &s, &of_report, e) < 0)
        return -1;
    markers = markers_of(m, of_report, &same_clock);
    add_series(d, &s);
    if (markers)
        json_add_copy(d, NULL, "phases", markers);
    else
        (void) json_add_array(d, NULL, "phases"); /* failure stays in d */
    if (into && cJSON_IsString(into)) {
        section = m->report ? pointer_get(m->report, into->valuestring) : NULL;
    } else if (s.n > 0 && same_clock && json_get(def.experiment, "windows")) {
        const cJSON *report = of_report ? m->report : NULL;

        if (resources_derive_stated(&def, &s, markers, report, &made, e) < 0)
            return -1;
        section = made;
    }
    return add_windows(d, m, section, &s, e);
}
