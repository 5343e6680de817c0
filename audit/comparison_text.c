/* One compared metric in words. */
#include "audit/comparison_text.h"

#include <math.h>
#include <string.h>

#include "base/json_in.h"

struct row {
    double baseline, current, delta, tolerance, floor, limit;
    bool has_baseline, has_current, has_delta, has_tolerance, has_floor, has_limit;
    bool gated;
    bool lower_is_worse;
    bool near_zero; /* the floor decides, not the percentage */
};

static bool number_of(const cJSON *object, const char *key, double *out)
{
    const cJSON *j = json_get(object, key);

    *out = 0;
    if (!cJSON_IsNumber(j) || !isfinite(j->valuedouble))
        return false;
    *out = j->valuedouble;
    return true;
}

static struct row read_row(const cJSON *row)
{
    struct row r = {.gated = cJSON_IsTrue(json_get(row, "gated")),
                    .lower_is_worse = strcmp(json_text(row, "worse", ""), "lower") == 0};

    r.has_baseline = number_of(row, "baseline", &r.baseline);
    r.has_current = number_of(row, "current", &r.current);
    r.has_delta = number_of(row, "delta_pct", &r.delta);
    r.has_tolerance = number_of(row, "tolerance_pct", &r.tolerance);
    r.has_floor = number_of(row, "floor", &r.floor);
    r.has_limit = number_of(row, "limit", &r.limit);
    r.near_zero = r.has_floor && r.has_baseline && fabs(r.baseline) < r.floor;
    return r;
}

/* Near zero a percentage says nothing: the floor is the limit, or twice the baseline when that is
 * more. */
static double near_zero_limit(const struct row *r)
{
    return r->has_limit ? r->limit : r->floor;
}

/* What differs must look different: before, after and, near zero, the limit. */
static void write_values(const struct row *r, double divisor, bool ascii,
                         struct comparison_text *out)
{
    const double values[] = {(r->has_baseline ? r->baseline : r->current) / divisor,
                             (r->has_current ? r->current : r->baseline) / divisor,
                             near_zero_limit(r) / divisor};
    char texts[3][QUANTITY_TEXT];

    quantity_numbers(values, r->near_zero ? 3 : 2, ascii, texts);
    if (r->has_baseline)
        memcpy(out->before, texts[0], QUANTITY_TEXT);
    if (r->has_current)
        memcpy(out->after, texts[1], QUANTITY_TEXT);
    if (r->near_zero)
        memcpy(out->limit, texts[2], QUANTITY_TEXT);
}

static void write_change(const struct row *r, double divisor, bool ascii,
                         struct comparison_text *out)
{
    out->has_change = r->has_delta && !r->near_zero;
    if (out->has_change)
        quantity_percent(r->delta, r->has_tolerance ? r->tolerance : (double) NAN, ascii,
                         out->change);
    else if (r->has_baseline && r->has_current)
        quantity_number((r->current - r->baseline) / divisor, true, ascii, out->change);
}

static void write_limit(const struct row *r, bool ascii, struct comparison_text *out)
{
    if (!r->gated || (!r->near_zero && !r->has_tolerance))
        out->limit_is = "none";
    else if (r->near_zero && r->lower_is_worse)
        out->limit_is = "none below the near-zero floor";
    else if (r->near_zero)
        out->limit_why =
            near_zero_limit(r) > r->floor ? "twice the baseline, near zero" : "near-zero floor";
    else
        quantity_percent(r->lower_is_worse ? -r->tolerance : r->tolerance, (double) NAN, ascii,
                         out->limit);
}

/* The unit fits the smaller side, so that neither reads 0.0001; nothing at all says nothing. */
static double smaller(double a, double b)
{
    return a > 0 && (a < b || !(b > 0)) ? a : b;
}

void comparison_text(const cJSON *row, bool ascii, struct comparison_text *out)
{
    struct row r = read_row(row);
    struct quantity_unit unit =
        quantity_unit(smaller(fabs(r.baseline), fabs(r.current)), json_text(row, "unit", ""));
    const char *label = json_text(row, "label", "");

    *out = (struct comparison_text){.label = label[0] ? label : json_text(row, "metric", ""),
                                    .unit = unit.name,
                                    .has_before = r.has_baseline,
                                    .has_after = r.has_current};
    write_values(&r, unit.divisor, ascii, out);
    write_change(&r, unit.divisor, ascii, out);
    write_limit(&r, ascii, out);
}

double comparison_used(const cJSON *row)
{
    struct row r = read_row(row);
    double used = 0;
    double limit = r.near_zero ? near_zero_limit(&r) : 0;

    if (r.near_zero)
        used = r.has_current && limit > 0 ? r.current / limit : 0;
    else if (r.has_delta)
        used = r.delta / (r.has_tolerance && r.tolerance > 0 ? r.tolerance : 1);
    return r.lower_is_worse ? -used : used;
}

static void put_value(struct buf *out, const char *text, const char *unit)
{
    buf_puts(out, text);
    if (unit[0])
        buf_printf(out, " %s", unit);
}

void comparison_put_before(struct buf *out, const struct comparison_text *t)
{
    if (t->has_before)
        put_value(out, t->before, t->unit);
    else
        buf_puts(out, "n/a");
}

void comparison_put_after(struct buf *out, const struct comparison_text *t)
{
    if (t->has_after)
        put_value(out, t->after, t->unit);
    else
        buf_puts(out, "n/a");
}

void comparison_put_change(struct buf *out, const struct comparison_text *t)
{
    if (t->has_change)
        buf_puts(out, t->change);
    else if (t->change[0])
        put_value(out, t->change, t->unit);
    else
        buf_puts(out, "n/a");
}

void comparison_put_limit(struct buf *out, const struct comparison_text *t)
{
    if (t->limit_is) {
        buf_puts(out, t->limit_is);
        return;
    }
    put_value(out, t->limit, t->limit_why ? t->unit : "");
    if (t->limit_why)
        buf_printf(out, " (%s)", t->limit_why);
}

void comparison_put(struct buf *out, const struct comparison_text *t)
{
    comparison_put_after(out, t);
    buf_puts(out, ", before ");
    comparison_put_before(out, t);
    buf_puts(out, ", ");
    comparison_put_change(out, t);
    buf_puts(out, "; limit ");
    comparison_put_limit(out, t);
}
