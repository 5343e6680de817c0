/*
 * view_chart: chart geometry. A chart is an SVG as wide as the page: rectangles, ticks and labels
 * are placed in percent; lines live in a nested SVG of 1000 × 1000 that stretches. So one drawing
 * serves a phone and a desk, and letters never shrink. Private to server/pages.
 */
#pragma once

#include "server/pages/view_parts.h"

struct chart_axis {
    double low, high;
};

/* Places in percent, from the left and from the top; a value outside stands at the edge. A line's
 * coordinates are ten times these. */
double chart_x(const struct chart_axis *x, double value);
double chart_y(const struct chart_axis *y, double value);
/* Adds the text "12.34%". */
void chart_percent(struct view *v, cJSON *o, const char *key, double p);
/* The range widened to whole steps. */
struct chart_axis chart_axis_of(double low, double high, double *out_step);
/* Adds [{at, label, anchor}] under key. */
void chart_ticks(struct view *v, cJSON *o, const char *key, const struct chart_axis *a, double step,
                 bool horizontal);
/* Adds x and width of what lasts from one value to another; never too thin to be seen. */
void chart_span(struct view *v, cJSON *o, const struct chart_axis *x, double from, double to);
