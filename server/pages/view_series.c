/* The chart of a run's resident memory, with its windows. */
#include <math.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "server/pages/view_chart.h"

#define POINTS_MAX ((size_t) 20000)
#define TABLE_ROWS ((size_t) 25)
#define LABEL_MIN_PERCENT 12.0

/* [t_ms, rss_kib]; false for anything else. */
static bool sample(const cJSON *pair, double *out_t, double *out_kib)
{
    const cJSON *t = cJSON_IsArray(pair) ? pair->child : NULL;

    if (!t || !cJSON_IsNumber(t) || !cJSON_IsNumber(t->next))
        return false;
    *out_t = t->valuedouble;
    *out_kib = t->next->valuedouble;
    return isfinite(*out_t) && isfinite(*out_kib);
}

struct extent {
    struct chart_axis t, mb;
    double first, last;
    size_t n;
};

static struct extent measure(const cJSON *samples)
{
    struct extent x = {0};

    for (const cJSON *s = samples->child; s && x.n < POINTS_MAX; s = s->next) {
        double t;
        double kib;
        double mb;

        if (!sample(s, &t, &kib))
            continue;
        mb = kib / 1024;
        if (x.n == 0) {
            x.t.low = x.t.high = t;
            x.mb.low = x.mb.high = x.first = mb;
        }
        x.t.low = fmin(x.t.low, t);
        x.t.high = fmax(x.t.high, t);
        x.mb.low = fmin(x.mb.low, mb);
        x.mb.high = fmax(x.mb.high, mb);
        x.last = mb;
        x.n++;
    }
    return x;
}

static void add_line(struct view *v, cJSON *chart, const cJSON *samples, const struct chart_axis *x,
                     const struct chart_axis *y)
{
    AUTO_BUF struct buf b;
    size_t n = 0;

    buf_init(&b, LIMIT_MIB(1));
    for (const cJSON *s = samples->child; s && n < POINTS_MAX; s = s->next) {
        double t;
        double kib;

        if (!sample(s, &t, &kib))
            continue;
        buf_printf(&b, "%s%.1f,%.1f", n ? " " : "", chart_x(x, t) * 10,
                   chart_y(y, kib / 1024) * 10);
        n++;
    }
    if (b.failed)
        v->doc.failed = true;
    else
        json_add_string(&v->doc, chart, "line", b.data ? b.data : "");
}

/* About TABLE_ROWS samples, evenly; the first and the last are among them. */
static void add_rows(struct view *v, cJSON *chart, const cJSON *samples, size_t n)
{
    cJSON *rows = json_add_array(&v->doc, chart, "rows");
    size_t every = n > TABLE_ROWS ? (n + TABLE_ROWS - 2) / (TABLE_ROWS - 1) : 1;
    size_t i = 0;

    for (const cJSON *s = samples->child; s && i < n; s = s->next) {
        double t;
        double kib;
        cJSON *row;

        if (!sample(s, &t, &kib))
            continue;
        if (i++ % every != 0 && i != n)
            continue;
        row = json_add_object(&v->doc, rows, NULL);
        view_number(v, row, "t", t, (struct quantity_unit){.divisor = 1000, .name = "s"});
        view_number(v, row, "rss", kib, (struct quantity_unit){.divisor = 1024, .name = "MB"});
    }
}

static bool window_span(const cJSON *w, struct chart_axis *out)
{
    const cJSON *bound = json_get(w, "bound");
    double start;
    double end;

    if (view_double(bound, "start_ms", &start) && view_double(bound, "end_ms", &end)) {
        *out = (struct chart_axis){.low = start, .high = end};
        return end >= start;
    }
    if (!view_double(w, "requested_start_secs", &start) ||
        !view_double(w, "requested_end_secs", &end))
        return false;
    *out = (struct chart_axis){.low = start * 1000, .high = end * 1000};
    return end >= start;
}

/* Bands with their representative points, joined by a line. */
static void add_bands(struct view *v, cJSON *o, const cJSON *bound, const struct chart_axis *x,
                      const struct chart_axis *y)
{
    cJSON *bands = json_add_array(&v->doc, o, "bands");
    cJSON *points = json_add_array(&v->doc, o, "points");
    const cJSON *list = json_get(bound, "bands");
    AUTO_BUF struct buf line;

    buf_init(&line, LIMIT_KIB(4));
    for (const cJSON *b = view_first(list); b; b = view_next(b)) {
        double from;
        double to;
        double t;
        double mb;

        if (view_double(b, "from_ms", &from) && view_double(b, "to_ms", &to))
            chart_span(v, json_add_object(&v->doc, bands, NULL), x, from, to);
        if (view_double(b, "t_ms", &t) && view_double(b, "median_mb", &mb)) {
            cJSON *p = json_add_object(&v->doc, points, NULL);

            chart_percent(v, p, "x", chart_x(x, t));
            chart_percent(v, p, "y", chart_y(y, mb));
            buf_printf(&line, "%s%.1f,%.1f", line.len ? " " : "", chart_x(x, t) * 10,
                       chart_y(y, mb) * 10);
        }
    }
    if (!line.failed && line.data)
        json_add_string(&v->doc, o, "slope", line.data);
}

static void add_windows(struct view *v, cJSON *chart, const cJSON *windows,
                        const struct chart_axis *x, const struct chart_axis *y)
{
    cJSON *list = json_add_array(&v->doc, chart, "windows");

    for (const cJSON *w = view_first(windows); w; w = view_next(w)) {
        struct chart_axis span;
        cJSON *o;

        if (!window_span(w, &span))
            continue;
        o = json_add_object(&v->doc, list, NULL);
        chart_span(v, o, x, span.low, span.high);
        json_add_string(&v->doc, o, "name", view_str(w, "name"));
        json_add_bool(&v->doc, o, "labelled",
                      chart_x(x, span.high) - chart_x(x, span.low) >= LABEL_MIN_PERCENT);
        add_bands(v, o, json_get(w, "bound"), x, y);
    }
}

static void add_sentence(struct view *v, cJSON *chart, const struct extent *x, const cJSON *series)
{
    char first[VIEW_TEXT];
    char last[VIEW_TEXT];
    char span[VIEW_TEXT];
    double total = 0;

    quantity_number(x->first, false, v->text, first);
    quantity_number(x->last, false, v->text, last);
    quantity_number((x->t.high - x->t.low) / 1000, false, v->text, span);
    if (!view_double(series, "n_total", &total))
        total = (double) x->n;
    view_format(v, chart, "sentence",
                "Resident memory from %s MB at the beginning to %s MB at the end, over %s s.",
                first, last, span);
    view_format(v, chart, "drawn", "%zu of %.0f samples are drawn.", x->n, total);
}

void view_series(struct view *v, cJSON *root)
{
    const cJSON *series = json_get(root, "series");
    const cJSON *samples = json_get(series, "samples");
    struct extent extent;
    struct chart_axis x;
    struct chart_axis y;
    double step = 1;
    cJSON *chart;

    if (!cJSON_IsArray(samples))
        return;
    extent = measure(samples);
    if (extent.n < 2 || !(extent.t.high > extent.t.low))
        return;
    chart = json_add_object(&v->doc, root, "chart");
    x = extent.t;
    y = chart_axis_of(extent.mb.low, extent.mb.high, &step);
    chart_ticks(v, chart, "y_ticks", &y, step, false);
    add_line(v, chart, samples, &x, &y);
    add_windows(v, chart, json_get(root, "windows"), &x, &y);
    add_rows(v, chart, samples, extent.n);
    add_sentence(v, chart, &extent, series);
    x = (struct chart_axis){.low = x.low / 1000, .high = x.high / 1000};
    chart_ticks(v, chart, "x_ticks", &x, view_nice_step(x.high - x.low, 5), true);
}
