/* Metrics of one pair: what must be compared, and the rule. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/num.h"

struct preparation {
    const struct policy_metric *metric;
    const struct pair *pair;
    struct findings *f;
    struct compared_list *out;
    size_t gated; /* comparable gated members so far */
};

void compared_list_fini(struct compared_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->items[i].pointer);
        free(l->items[i].label);
    }
    free(l->items);
    *l = (struct compared_list){0};
}

static bool is_unknown(const cJSON *v)
{
    return !v || cJSON_IsNull(v);
}

/* A gated member that cannot be compared becomes a reason. Returns whether it can be compared. */
static bool usable(const struct preparation *p, const struct compared *c)
{
    struct finding what = {.code = "NC-METRIC-MISSING",
                           .path = p->pair->path,
                           .field = c->pointer,
                           .baseline = c->baseline,
                           .current = c->current};
    bool no_baseline = is_unknown(c->baseline);
    bool no_current = is_unknown(c->current);

    if (!no_baseline && !no_current && cJSON_IsNumber(c->baseline) && cJSON_IsNumber(c->current))
        return true;
    if (!p->metric->gated)
        return false;
    if (no_baseline || no_current) {
        findings_reason(p->f, &what, "%s is missing %s", c->label,
                        findings_where(p->f, no_baseline, no_current));
        return false;
    }
    what.code = "NC-METRIC-INVALID";
    if (p->f->self)
        findings_reason(p->f, &what, "%s is %s, not a number", c->label,
                        json_type_name(c->current));
    else
        findings_reason(p->f, &what,
                        "%s is %s in the baseline and %s in the current run, not two numbers",
                        c->label, json_type_name(c->baseline), json_type_name(c->current));
    return false;
}

/* Grows by doubling: capacity is the power of two that holds n, at least 16. */
static int keep(struct compared_list *l, const struct compared *c, struct err *e)
{
    if (l->n == 0 || (l->n >= 16 && (l->n & (l->n - 1)) == 0)) {
        struct compared *grown = reallocarray(l->items, l->n == 0 ? 16 : l->n * 2, sizeof *grown);

        if (!grown)
            return err_memory(e, "audit.memory");
        l->items = grown;
    }
    l->items[l->n++] = *c;
    return 0;
}

/* One member, with what the two reports say. */
static int add(struct preparation *p, const char *pointer, const cJSON *baseline,
               const cJSON *current, struct err *e)
{
    struct compared c = {.metric = p->metric,
                         .pointer = strdup(pointer),
                         .label = pointer_label(p->metric->label, p->metric->pointer, pointer),
                         .baseline = baseline,
                         .current = current};
    bool comparable = false;
    int rc = 0;

    if (p->pair->inferred && p->metric->fallback && is_unknown(c.baseline)) {
        c.from = p->metric->fallback;
        c.baseline = pointer_get(p->pair->baseline, p->metric->fallback);
    }
    if (!c.pointer || !c.label) {
        rc = err_memory(e, "audit.memory");
    } else {
        comparable = usable(p, &c);
        if (p->metric->gated || comparable) {
            p->f->expected++;
            findings_expect(p->f, 1);
        }
        if (comparable && p->metric->gated)
            p->gated++;
        if (comparable && !p->f->over)
            rc = keep(p->out, &c, e);
    }
    if (rc < 0 || !comparable || p->f->over) {
        free(c.pointer);
        free(c.label);
    }
    return rc;
}

static void note_ungated(struct preparation *p, const struct pointer_match *m)
{
    struct json_doc *d = &p->f->marks;
    cJSON *row = NULL;

    findings_expect(p->f, 1);
    if (!findings_room(p->f, strlen(p->pair->path) + strlen(m->pointer)))
        return;
    row = json_add_object(d, p->f->ungated, NULL);
    if (!row)
        return;
    json_add_string(d, row, "path", p->pair->path);
    json_add_string(d, row, "metric", m->pointer);
    p->f->bytes += value_add_bounded(d, row, "current", m->value, VALUE_BYTES_MAX);
}

/* The baseline's members are the closed set; what only the current run has is listed as ungated. */
static int add_pattern(struct preparation *p, struct err *e)
{
    AUTO_EXPANDED struct expanded x = {0};

    if (expand_pair(p->pair, p->metric->pointer, pointer_expand, p->f, &x, e) < 0)
        return -1;
    if (x.refused) {
        p->f->expected++;
        return 0;
    }
    for (size_t i = 0; i < x.baseline.n && !p->f->over; i++) {
        const struct pointer_match *m = &x.baseline.items[i];

        if (add(p, m->pointer, m->value, pointer_list_get(&x.current, m->pointer), e) < 0)
            return -1;
    }
    for (size_t i = 0; i < x.current.n && !p->f->over; i++)
        if (!pointer_list_get(&x.baseline, x.current.items[i].pointer))
            note_ungated(p, &x.current.items[i]);
    if (x.baseline.n == 0 && p->metric->gated) {
        struct finding what = {
            .code = "NC-METRIC-MISSING", .path = p->pair->path, .field = p->metric->pointer};

        p->f->expected++;
        findings_reason(p->f, &what, "%s matches nothing in %s", p->metric->pointer,
                        p->f->self ? "this run" : "the baseline");
    }
    return 0;
}

static int add_metric(struct preparation *p, struct err *e)
{
    const char *pointer = p->metric->pointer;

    if (pointer_is_pattern(pointer))
        return add_pattern(p, e);
    return add(p, pointer, pointer_get(p->pair->baseline, pointer),
               pointer_get(p->pair->current, pointer), e);
}

int compare_prepare(const struct policy *p, const struct pair *pair, struct findings *f,
                    struct compared_list *out, struct err *e)
{
    struct preparation prep = {.pair = pair, .f = f, .out = out};
    bool any_missing = false;
    size_t before = f->expected;

    for (size_t i = 0; i < p->n_metrics && !f->over; i++) {
        prep.metric = &p->metrics[i];
        if (!policy_applies(prep.metric->reports, pair->path))
            continue;
        if (add_metric(&prep, e) < 0)
            return -1;
    }
    any_missing = f->expected - before > out->n;
    if (prep.gated == 0 && !any_missing && !f->over) {
        struct finding what = {.code = "NC-METRIC-NONE", .path = pair->path};

        findings_reason(
            f, &what, "no gated metric of the definition applies to this report: zero comparisons");
    }
    return 0;
}

static double limit_of(const struct policy_metric *m, double baseline, bool near_zero)
{
    double room = fabs(baseline) * m->tolerance_pct / 100;

    if (!near_zero)
        return m->higher_is_worse ? baseline + room : baseline - room;
    return m->higher_is_worse ? fmax(m->floor, 2 * baseline) : (double) NAN;
}

struct judged compare_judge(const struct policy_metric *m, double baseline, double current)
{
    struct judged j = {.delta = current - baseline};
    bool near_zero = m->has_floor && fabs(baseline) < m->floor;

    /* This order of operations is part of the rule: 1.0 → 0.98 is -2.0000000000000018 %. */
    if (!num_same(baseline, 0))
        j.delta_pct = (current - baseline) / fabs(baseline) * 100;
    else if (!num_same(current, 0))
        j.delta_pct = current > 0 ? (double) INFINITY : -(double) INFINITY;
    j.limit = limit_of(m, baseline, near_zero);
    if (near_zero && m->higher_is_worse)
        j.regression = current > m->floor && current > 2 * baseline;
    else if (near_zero)
        j.regression = false; /* what is next to nothing cannot fall by much */
    else if (m->higher_is_worse)
        j.regression = j.delta_pct > m->tolerance_pct;
    else
        j.regression = j.delta_pct < -m->tolerance_pct;
    return j;
}

void compare_rows(const char *path, const struct compared_list *l, struct findings *f)
{
    struct json_doc *d = &f->marks;

    for (size_t i = 0; i < l->n; i++) {
        const struct compared *c = &l->items[i];
        const struct policy_metric *m = c->metric;
        struct judged j = compare_judge(m, c->baseline->valuedouble, c->current->valuedouble);
        cJSON *row = NULL;

        if (!findings_room(f,
                           strlen(path) + strlen(c->pointer) + strlen(c->label) + strlen(m->unit)))
            return;
        row = json_add_object(d, f->comparisons, NULL);
        if (!row)
            return;
        json_add_string(d, row, "path", path);
        json_add_string(d, row, "metric", c->pointer);
        json_add_string(d, row, "label", c->label);
        json_add_string(d, row, "unit", m->unit);
        json_add_string(d, row, "worse", m->higher_is_worse ? "higher" : "lower");
        json_add_copy(d, row, "baseline", c->baseline);
        json_add_copy(d, row, "current", c->current);
        json_add_double(d, row, "delta", j.delta);
        json_add_double(d, row, "delta_pct", j.delta_pct);
        json_add_double(d, row, "tolerance_pct", m->tolerance_pct);
        json_add_double(d, row, "floor", m->has_floor ? m->floor : (double) NAN);
        json_add_double(d, row, "limit", m->gated ? j.limit : (double) NAN);
        json_add_bool(d, row, "gated", m->gated);
        json_add_string(d, row, "verdict", !m->gated ? "info" : j.regression ? "regression" : "ok");
        if (c->from)
            json_add_string(d, row, "baseline_from", c->from);
        f->made++;
        f->regression = f->regression || (m->gated && j.regression);
    }
}
