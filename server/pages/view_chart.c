/*
 * Chart geometry. A chart is an SVG as wide as the page: rectangles, ticks and labels are placed in
 * percent; lines live in a nested SVG of 1000 × 1000 that stretches. So one drawing serves a phone
 * and a desk, and letters never shrink.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "server/pages/view_parts.h"

#define PLOT_TOP 8.0     /* percent of the height above the highest value */
#define PLOT_HEIGHT 78.0 /* the rest below holds the labels of the x axis */
#define TICKS_MAX 12
#define POINTS_MAX ((size_t) 20000)
#define TABLE_ROWS ((size_t) 25)
#define LABEL_MIN_PERCENT 12.0

struct axis {
    double low, high;
};

static double x_of(const struct axis *x, double value)
{
    double p = x->high > x->low ? (value - x->low) / (x->high - x->low) * 100 : 0;

    return p < 0 ? 0 : p > 100 ? 100 : p;
}

static double y_of(const struct axis *y, double value)
{
    double p = y->high > y->low ? (value - y->low) / (y->high - y->low) : 0.5;

    p = p < 0 ? 0 : p > 1 ? 1 : p;
    return PLOT_TOP + (1 - p) * PLOT_HEIGHT;
}

static void percent(struct view *v, cJSON *o, const char *key, double p)
{
    view_format(v, o, key, "%.2f%%", p);
}

/* Widened to whole steps. */
static struct axis nice_axis(double low, double high, double *out_step)
{
    double span = high - low;
    double step;

    if (!(span > 0))
        span = fabs(high) > 0 ? fabs(high) * 0.1 : 1;
    step = view_nice_step(span, 4);
    *out_step = step;
    return (struct axis){.low = floor(low / step) * step, .high = ceil((low + span) / step) * step};
}

/* With as many decimals as the step has, so that no two ticks read the same. */
static void tick_text(const struct view *v, double value, double step, char out[VIEW_TEXT])
{
    int decimals = step < 1 ? (int) ceil(-log10(step) - 1e-9) : 0;

    if (decimals > 0 && decimals <= 9)
        (void) snprintf(out, VIEW_TEXT, "%.*f", decimals, value); /* cut only beyond reason */
    else
        view_num_text(value, false, v->text, out);
}

static void add_ticks(struct view *v, cJSON *o, const char *key, const struct axis *a, double step,
                      bool horizontal)
{
    cJSON *ticks = json_add_array(&v->doc, o, key);

    for (int i = 0; i <= TICKS_MAX; i++) {
        double value = a->low + i * step;
        double at = horizontal ? x_of(a, value) : y_of(a, value);
        const char *anchor = at < 3 ? "start" : at > 97 ? "end" : "middle";
        char text[VIEW_TEXT];
        cJSON *tick;

        if (value > a->high + step * 1e-6)
            break;
        tick_text(v, value, step, text);
        tick = json_add_object(&v->doc, ticks, NULL);
        percent(v, tick, "at", at);
        json_add_string(&v->doc, tick, "label", text);
        json_add_string(&v->doc, tick, "anchor", anchor);
    }
}

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
    struct axis t, mb;
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

static void add_line(struct view *v, cJSON *chart, const cJSON *samples, const struct axis *x,
                     const struct axis *y)
{
    AUTO_BUF struct buf b;
    size_t n = 0;

    buf_init(&b, LIMIT_MIB(1));
    for (const cJSON *s = samples->child; s && n < POINTS_MAX; s = s->next) {
        double t;
        double kib;

        if (!sample(s, &t, &kib))
            continue;
        buf_printf(&b, "%s%.1f,%.1f", n ? " " : "", x_of(x, t) * 10, y_of(y, kib / 1024) * 10);
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
        view_number(v, row, "t", t, (struct view_unit){.divisor = 1000, .name = "s"});
        view_number(v, row, "rss", kib, (struct view_unit){.divisor = 1024, .name = "MB"});
    }
}

static bool window_span(const cJSON *w, struct axis *out)
{
    const cJSON *bound = json_get(w, "bound");
    double start;
    double end;

    if (view_double(bound, "start_ms", &start) && view_double(bound, "end_ms", &end)) {
        *out = (struct axis){.low = start, .high = end};
        return end >= start;
    }
    if (!view_double(w, "requested_start_secs", &start) ||
        !view_double(w, "requested_end_secs", &end))
        return false;
    *out = (struct axis){.low = start * 1000, .high = end * 1000};
    return end >= start;
}

static void add_span(struct view *v, cJSON *o, const struct axis *x, double from, double to)
{
    double at = x_of(x, from);

    percent(v, o, "x", at);
    percent(v, o, "width", fmax(x_of(x, to) - at, 0.2));
}

/* Bands with their representative points, joined by a line. */
static void add_bands(struct view *v, cJSON *o, const cJSON *bound, const struct axis *x,
                      const struct axis *y)
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
            add_span(v, json_add_object(&v->doc, bands, NULL), x, from, to);
        if (view_double(b, "t_ms", &t) && view_double(b, "median_mb", &mb)) {
            cJSON *p = json_add_object(&v->doc, points, NULL);

            percent(v, p, "x", x_of(x, t));
            percent(v, p, "y", y_of(y, mb));
            buf_printf(&line, "%s%.1f,%.1f", line.len ? " " : "", x_of(x, t) * 10,
                       y_of(y, mb) * 10);
        }
    }
    if (!line.failed && line.data)
        json_add_string(&v->doc, o, "slope", line.data);
}

static void add_windows(struct view *v, cJSON *chart, const cJSON *windows, const struct axis *x,
                        const struct axis *y)
{
    cJSON *list = json_add_array(&v->doc, chart, "windows");

    for (const cJSON *w = view_first(windows); w; w = view_next(w)) {
        struct axis span;
        cJSON *o;

        if (!window_span(w, &span))
            continue;
        o = json_add_object(&v->doc, list, NULL);
        add_span(v, o, x, span.low, span.high);
        json_add_string(&v->doc, o, "name", view_str(w, "name"));
        json_add_bool(&v->doc, o, "labelled",
                      x_of(x, span.high) - x_of(x, span.low) >= LABEL_MIN_PERCENT);
        add_bands(v, o, json_get(w, "bound"), x, y);
    }
}

static void add_sentence(struct view *v, cJSON *chart, const struct extent *x, const cJSON *series)
{
    char first[VIEW_TEXT];
    char last[VIEW_TEXT];
    char span[VIEW_TEXT];
    double total = 0;

    view_num_text(x->first, false, v->text, first);
    view_num_text(x->last, false, v->text, last);
    view_num_text((x->t.high - x->t.low) / 1000, false, v->text, span);
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
    struct axis x;
    struct axis y;
    double step = 1;
    cJSON *chart;

    if (!cJSON_IsArray(samples))
        return;
    extent = measure(samples);
    if (extent.n < 2 || !(extent.t.high > extent.t.low))
        return;
    chart = json_add_object(&v->doc, root, "chart");
    x = extent.t;
    y = nice_axis(extent.mb.low, extent.mb.high, &step);
    add_ticks(v, chart, "y_ticks", &y, step, false);
    add_line(v, chart, samples, &x, &y);
    add_windows(v, chart, json_get(root, "windows"), &x, &y);
    add_rows(v, chart, samples, extent.n);
    add_sentence(v, chart, &extent, series);
    x = (struct axis){.low = x.low / 1000, .high = x.high / 1000};
    add_ticks(v, chart, "x_ticks", &x, view_nice_step(x.high - x.low, 5), true);
}

/* A plan is no event: it has a row in the table, but nothing lasts from it or until it. */
static bool is_planned(const cJSON *marker)
{
    return strncmp(view_str(marker, "kind"), "planned", 7) == 0;
}

static int compare_marks(const cJSON *a, const cJSON *b)
{
    double x = 0;
    double y = 0;
    bool has_x = view_double(a, "elapsed_ms", &x);
    bool has_y = view_double(b, "elapsed_ms", &y);

    if (has_x != has_y)
        return has_x ? -1 : 1;
    return x < y ? -1 : x > y;
}

static double next_mark(const cJSON *marker, double otherwise)
{
    double t = otherwise;

    if (is_planned(marker))
        return otherwise;
    for (const cJSON *p = view_next(marker); p; p = view_next(p)) {
        if (!is_planned(p) && view_double(p, "elapsed_ms", &t))
            return t;
    }
    return otherwise;
}

/* Neighbours differ in shade: bars count, not marks. */
static bool is_after_dark(const cJSON *list)
{
    bool dark = true;

    for (const cJSON *p = view_first(list); p; p = view_next(p))
        dark = view_flag(p, "bar") ? !view_flag(p, "odd") : dark;
    return dark;
}

static void add_phase(struct view *v, cJSON *list, const cJSON *marker, const struct axis *x,
                      size_t number)
{
    bool odd = is_after_dark(list);

    double from = 0;
    double to;
    cJSON *o;

    if (!view_double(marker, "elapsed_ms", &from))
        return;
    to = next_mark(marker, from);
    o = json_add_object(&v->doc, list, NULL);
    add_span(v, o, x, from, to);
    percent(v, o, "middle", (x_of(x, from) + x_of(x, to)) / 2);
    view_format(v, o, "number", "%zu", number);
    json_add_bool(&v->doc, o, "bar", to > from);
    json_add_bool(&v->doc, o, "labelled", x_of(x, to) - x_of(x, from) >= 4);
    json_add_bool(&v->doc, o, "odd", odd);
    json_add_string(&v->doc, o, "phase", view_str(marker, "phase"));
    json_add_string(&v->doc, o, "kind", view_str(marker, "kind"));
    view_number(v, o, "start", from, (struct view_unit){.divisor = 1000, .name = "s"});
    if (to > from) {
        char text[VIEW_TEXT];

        view_num_text((to - from) / 1000, false, v->text, text);
        view_format(v, o, "lasted", "%s s", text);
    }
}

void view_timeline(struct view *v, cJSON *root)
{
    cJSON *phases = view_get(root, "phases");
    struct axis x = {.low = INFINITY, .high = -INFINITY};
    size_t number = 1;
    cJSON *timeline;
    cJSON *list;

    if (view_count(phases) < 2)
        return;
    for (const cJSON *p = view_first(phases); p; p = view_next(p)) {
        double t;

        if (view_double(p, "elapsed_ms", &t)) {
            x.low = fmin(x.low, t);
            x.high = fmax(x.high, t);
        }
    }
    if (!(x.high > x.low))
        return;
    view_sort(v, phases, compare_marks);
    timeline = json_add_object(&v->doc, root, "timeline");
    list = json_add_array(&v->doc, timeline, "phases");
    for (const cJSON *p = view_first(phases); p; p = view_next(p))
        add_phase(v, list, p, &x, number++);
    view_format(v, timeline, "sentence", "%zu phase marks in %.1f seconds.", number - 1,
                (x.high - x.low) / 1000);
    x = (struct axis){.low = x.low / 1000, .high = x.high / 1000};
    add_ticks(v, timeline, "x_ticks", &x, view_nice_step(x.high - x.low, 5), true);
}

/* A point of another experiment, or one that was refused: nothing may be read from its distance to
 * the others. */
static bool is_apart(const cJSON *point)
{
    const cJSON *same = json_get(point, "same_experiment");
    const char *verdict = view_str(point, "verdict");

    if (cJSON_IsFalse(same) || strcmp(verdict, "INVALID") == 0)
        return true;
    /* without a baseline there was nothing to differ from */
    return strcmp(verdict, "NON_COMPARABLE") == 0 && (!same || view_str(point, "baseline")[0]);
}

/* A point that stands apart is hollow and no line goes through it. */
static void add_history_point(struct view *v, cJSON *chart, const cJSON *point, double x, double y)
{
    cJSON *o = json_add_object(&v->doc, view_get(chart, "points"), NULL);
    const char *verdict = view_str(point, "verdict");

    percent(v, o, "x", x);
    percent(v, o, "y", y);
    json_add_bool(&v->doc, o, "bad",
                  strcmp(verdict, "REGRESSION") == 0 || strcmp(verdict, "FAIL") == 0);
    json_add_bool(&v->doc, o, "hollow", is_apart(point));
    json_add_bool(&v->doc, o, "mark", view_flag(point, "new_baseline"));
    json_add_string(&v->doc, o, "run", view_str(point, "run"));
}

static void add_history_line(struct view *v, cJSON *chart, struct buf *b)
{
    if (b->failed)
        v->doc.failed = true;
    else if (b->data && strchr(b->data, ' ')) {
        cJSON *line = json_add_object(&v->doc, view_get(chart, "lines"), NULL);

        json_add_string(&v->doc, line, "line", b->data);
    }
    buf_clear(b);
}

static void draw_history(struct view *v, cJSON *chart, const cJSON *points, const struct axis *y,
                         size_t n, double divisor)
{
    AUTO_BUF struct buf b;
    size_t i = 0;

    buf_init(&b, LIMIT_KIB(256));
    (void) json_add_array(&v->doc, chart, "lines"); /* found again by name */
    (void) json_add_array(&v->doc, chart, "points");
    for (const cJSON *p = view_first(points); p; p = view_next(p)) {
        double value;
        double x = n > 1 ? 2 + 96 * (double) i / (double) (n - 1) : 50;

        if (!view_double(p, "value", &value))
            continue;
        value /= divisor;
        i++;
        add_history_point(v, chart, p, x, y_of(y, value));
        if (is_apart(p) || strcmp(view_str(p, "verdict"), "FAIL") == 0)
            add_history_line(v, chart, &b);
        else
            buf_printf(&b, "%s%.1f,%.1f", b.len ? " " : "", x * 10, y_of(y, value) * 10);
    }
    add_history_line(v, chart, &b);
}

void view_history(struct view *v, cJSON *metric)
{
    const cJSON *points = json_get(metric, "points");
    struct view_unit unit;
    struct axis y = {.low = INFINITY, .high = -INFINITY};
    double step = 1;
    size_t n = 0;
    char low[VIEW_TEXT];
    char high[VIEW_TEXT];
    cJSON *chart;

    for (cJSON *p = view_first(points); p; p = view_next(p)) {
        double value;

        if (!view_double(p, "value", &value))
            continue;
        json_add_bool(&v->doc, p, "apart", is_apart(p));
        y.low = fmin(y.low, value);
        y.high = fmax(y.high, value);
        n++;
    }
    if (n == 0)
        return;
    unit = view_unit_for(fmax(fabs(y.low), fabs(y.high)), view_str(metric, "unit"));
    for (cJSON *p = view_first(points); p; p = view_next(p)) {
        double value;

        if (view_double(p, "value", &value))
            view_number(v, p, "value_n", value, unit);
    }
    if (n < 2)
        return;
    y = (struct axis){.low = y.low / unit.divisor, .high = y.high / unit.divisor};
    view_num_text(y.low, false, v->text, low);
    view_num_text(y.high, false, v->text, high);
    chart = json_add_object(&v->doc, metric, "chart");
    view_format(v, chart, "sentence", "%s over %zu runs: %s to %s%s%s", view_str(metric, "label"),
                n, low, high, unit.name[0] ? " " : "", unit.name);
    y = nice_axis(y.low, y.high, &step);
    add_ticks(v, chart, "y_ticks", &y, step, false);
    draw_history(v, chart, points, &y, n, unit.divisor);
}
