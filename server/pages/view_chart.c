#include "server/pages/view_chart.h"

#include <math.h>
#include <stdio.h>

#define PLOT_TOP 8.0     /* percent of the height above the highest value */
#define PLOT_HEIGHT 78.0 /* the rest below holds the labels of the x axis */
#define TICKS_MAX 12
#define EDGE 0.02 /* of a step */

/* Where a value stands on an axis, 0 to 1. Reports may hold numbers whose distance is no number. */
static double fraction(const struct chart_axis *a, double value)
{
    double span = a->high - a->low;
    double p = isfinite(span) ? (value - a->low) / span
                              : (value / 2 - a->low / 2) / (a->high / 2 - a->low / 2);

    return p > 0 ? fmin(p, 1) : 0;
}

double chart_x(const struct chart_axis *x, double value)
{
    return x->high > x->low ? fraction(x, value) * 100 : 0;
}

double chart_y(const struct chart_axis *y, double value)
{
    return PLOT_TOP + (1 - (y->high > y->low ? fraction(y, value) : 0.5)) * PLOT_HEIGHT;
}

void chart_percent(struct view *v, cJSON *o, const char *key, double p)
{
    view_format(v, o, key, "%.2f%%", p);
}

struct chart_axis chart_axis_of(double low, double high, double *out_step)
{
    double span = high - low;
    struct chart_axis wide;
    double step;

    if (!(span > 0))
        span = fabs(high) > 0 ? fabs(high) * 0.1 : 1;
    step = view_nice_step(span, 4);
    wide = (struct chart_axis){.low = floor(low / step) * step,
                               .high = ceil((low + span) / step) * step};
    if (isfinite(span) && isfinite(wide.low) && isfinite(wide.high)) {
        *out_step = step;
        return wide;
    }
    /* no whole steps at the ends of what a double holds */
    *out_step = high / 4 - low / 4;
    return (struct chart_axis){.low = low, .high = high};
}

/* With as many decimals as the step has, so that no two ticks read the same. */
static void tick_text(const struct view *v, double value, double step, char out[VIEW_TEXT])
{
    int decimals = step < 1 ? (int) ceil(-log10(step) - 1e-9) : 0;

    if (decimals > 0 && decimals <= 9)
        (void) snprintf(out, VIEW_TEXT, "%.*f", decimals, value); /* cut only beyond reason */
    else
        quantity_number(value, false, v->text, out);
}

void chart_ticks(struct view *v, cJSON *o, const char *key, const struct chart_axis *a, double step,
                 bool horizontal)
{
    cJSON *ticks = json_add_array(&v->doc, o, key);
    /* round numbers; one that is only just outside stands at the edge */
    double first = ceil(a->low / step - EDGE) * step;

    for (int i = 0; i <= TICKS_MAX; i++) {
        double value = first + i * step;
        double at = horizontal ? chart_x(a, value) : chart_y(a, value);
        const char *anchor = at < 3 ? "start" : at > 97 ? "end" : "middle";
        char text[VIEW_TEXT];
        cJSON *tick;

        if (value > a->high + step * EDGE)
            break;
        tick_text(v, value, step, text);
        tick = json_add_object(&v->doc, ticks, NULL);
        chart_percent(v, tick, "at", at);
        json_add_string(&v->doc, tick, "label", text);
        json_add_string(&v->doc, tick, "anchor", anchor);
    }
}

void chart_span(struct view *v, cJSON *o, const struct chart_axis *x, double from, double to)
{
    double at = chart_x(x, from);

    chart_percent(v, o, "x", at);
    chart_percent(v, o, "width", fmax(chart_x(x, to) - at, 0.2));
}
