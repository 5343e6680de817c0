/* The timeline of a run's phases. */
#include <math.h>
#include <string.h>

#include "server/pages/view_chart.h"

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

static void add_phase(struct view *v, cJSON *list, const cJSON *marker, const struct chart_axis *x,
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
    chart_span(v, o, x, from, to);
    chart_percent(v, o, "middle", (chart_x(x, from) + chart_x(x, to)) / 2);
    view_format(v, o, "number", "%zu", number);
    json_add_bool(&v->doc, o, "bar", to > from);
    json_add_bool(&v->doc, o, "labelled", chart_x(x, to) - chart_x(x, from) >= 4);
    json_add_bool(&v->doc, o, "odd", odd);
    json_add_string(&v->doc, o, "phase", view_str(marker, "phase"));
    json_add_string(&v->doc, o, "kind", view_str(marker, "kind"));
    view_number(v, o, "start", from, (struct quantity_unit){.divisor = 1000, .name = "s"});
    if (to > from) {
        char text[VIEW_TEXT];

        quantity_number((to - from) / 1000, false, v->text, text);
        view_format(v, o, "lasted", "%s s", text);
    }
}

void view_timeline(struct view *v, cJSON *root)
{
    cJSON *phases = view_get(root, "phases");
    struct chart_axis x = {.low = INFINITY, .high = -INFINITY};
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
    x = (struct chart_axis){.low = x.low / 1000, .high = x.high / 1000};
    chart_ticks(v, timeline, "x_ticks", &x, view_nice_step(x.high - x.low, 5), true);
}
