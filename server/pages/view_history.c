/* The chart of one metric over the runs of its gate. */
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "server/pages/view_chart.h"

#define GUTTER 12.0 /* percent of the width, for the labels of the y axis on a phone */

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

    chart_percent(v, o, "x", x);
    chart_percent(v, o, "y", y);
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

/* When the first and the last run were received. */
static void add_x_tick(struct view *v, cJSON *chart, const cJSON *point, double x)
{
    const char *at = view_str(json_get(point, "at_t"), "text");
    cJSON *o;

    if (!at[0])
        return;
    o = json_add_object(&v->doc, view_get(chart, "x_ticks"), NULL);
    chart_percent(v, o, "at", x);
    json_add_string(&v->doc, o, "anchor", x > 50 ? "end" : "start");
    view_format(v, o, "label", "%.16s", at);
}

static void draw_history(struct view *v, cJSON *chart, const cJSON *points,
                         const struct chart_axis *y, size_t n, double divisor)
{
    AUTO_BUF struct buf b;
    size_t i = 0;

    buf_init(&b, LIMIT_KIB(256));
    (void) json_add_array(&v->doc, chart, "lines"); /* found again by name */
    (void) json_add_array(&v->doc, chart, "points");
    (void) json_add_array(&v->doc, chart, "x_ticks");
    for (const cJSON *p = view_first(points); p; p = view_next(p)) {
        double value;
        double x = n > 1 ? GUTTER + (98 - GUTTER) * (double) i / (double) (n - 1) : 50;

        if (!view_double(p, "value", &value))
            continue;
        value /= divisor;
        i++;
        if (i == 1 || i == n)
            add_x_tick(v, chart, p, x);
        add_history_point(v, chart, p, x, chart_y(y, value));
        if (is_apart(p) || strcmp(view_str(p, "verdict"), "FAIL") == 0)
            add_history_line(v, chart, &b);
        else
            buf_printf(&b, "%s%.1f,%.1f", b.len ? " " : "", x * 10, chart_y(y, value) * 10);
    }
    add_history_line(v, chart, &b);
}

void view_history(struct view *v, cJSON *metric)
{
    const cJSON *points = json_get(metric, "points");
    struct quantity_unit unit;
    struct chart_axis y = {.low = INFINITY, .high = -INFINITY};
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
    unit = quantity_unit(fmax(fabs(y.low), fabs(y.high)), view_str(metric, "unit"));
    for (cJSON *p = view_first(points); p; p = view_next(p)) {
        double value;

        if (view_double(p, "value", &value))
            view_number(v, p, "value_n", value, unit);
    }
    if (n < 2)
        return;
    y = (struct chart_axis){.low = y.low / unit.divisor, .high = y.high / unit.divisor};
    quantity_number(y.low, false, v->text, low);
    quantity_number(y.high, false, v->text, high);
    chart = json_add_object(&v->doc, metric, "chart");
    view_format(v, chart, "sentence", "%s over %zu runs: %s to %s%s%s", view_str(metric, "label"),
                n, low, high, unit.name[0] ? " " : "", unit.name);
    y = chart_axis_of(y.low, y.high, &step);
    chart_ticks(v, chart, "y_ticks", &y, step, false);
    draw_history(v, chart, points, &y, n, unit.divisor);
}
