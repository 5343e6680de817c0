/* Metrics of one pair: what must be compared, and the rule. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"
#include "experiment/pointer.h"

struct preparation {
    const struct policy_metric *metric;
    const struct pair *pair;
    struct findings *f;
    struct compared_list *out;
    size_t gated; /* comparable gated members so far */
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "audit.memory", "out of memory");
}

void compared_list_fini(struct compared_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->items[i].pointer);
        free(l->items[i].label);
    }
    free(l->items);
    *l = (struct compared_list) { 0 };
}

static bool is_unknown(const cJSON *v)
{
    return !v || cJSON_IsNull(v);
}

/* A gated member that cannot be compared becomes a reason. Returns whether it can be compared. */
static bool usable(const struct preparation *p, const struct compared *c)
{
    struct finding what = { .code = "NC-METRIC-MISSING",
                            .path = p->pair->path,
                            .field = c->pointer,
                            .baseline = c->baseline,
                            .current = c->current };
    bool no_baseline = is_unknown(c->baseline);
    bool no_current = is_unknown(c->current);

    if (!no_baseline && !no_current && cJSON_IsNumber(c->baseline) && cJSON_IsNumber(c->current))
        return true;
    if (!p->metric->gated)
        return false;
    if (no_baseline || no_current) {
        findings_reason(p->f, &what, "%s is missing %s", c->label,
                        no_baseline && no_current ? findings_both(p->f)
                        : no_baseline             ? "in the baseline"
                                                  : "in the current run");
        return false;
    }
    what.code = "NC-METRIC-INVALID";
    if (p->f->self)
        findings_reason(p->f, &what, "%s is %s, not a number", c->label, json_type_name(c->current));
    else
        findings_reason(p->f, &what, "%s is %s in the baseline and %s in the current run, not two numbers", c->label,
                        json_type_name(c->baseline), json_type_name(c->current));
    return false;
}

static int add(struct preparation *p, const char *pointer, struct err *e)
{
    struct compared c = { .metric = p->metric,
                          .pointer = strdup(pointer),
                          .label = pointer_label(p->metric->label, p->metric->pointer, pointer),
                          .baseline = pointer_get(p->pair->baseline, pointer),
                          .current = pointer_get(p->pair->current, pointer) };
    struct compared *grown = NULL;
    bool keep = false;

    if (p->pair->inferred && p->metric->fallback && is_unknown(c.baseline)) {
        c.from = p->metric->fallback;
        c.baseline = pointer_get(p->pair->baseline, p->metric->fallback);
    }
    keep = c.pointer && c.label && usable(p, &c);
    if (p->metric->gated || keep)
        p->f->expected++;
    if (keep) {
        if (p->metric->gated)
            p->gated++;
        grown = realloc(p->out->items, (p->out->n + 1) * sizeof *grown);
        if (grown) {
            p->out->items = grown;
            grown[p->out->n++] = c;
            return 0;
        }
    }
    if (c.pointer && c.label && !keep) {
        free(c.pointer);
        free(c.label);
        return 0;
    }
    free(c.pointer);
    free(c.label);
    return no_memory(e);
}

static void note_ungated(struct preparation *p, const char *pointer)
{
    struct json_doc *d = &p->f->marks;
    cJSON *row = json_add_object(d, p->f->ungated, NULL);

    json_add_string(d, row, "path", p->pair->path);
    json_add_string(d, row, "metric", pointer);
    json_add_copy(d, row, "current", pointer_get(p->pair->current, pointer));
}

static bool listed(const struct pointer_list *l, const char *pointer)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->items[i], pointer) == 0)
            return true;
    return false;
}

/* The baseline's members are the closed set; what only the current run has is listed as ungated. */
static int add_pattern(struct preparation *p, struct err *e)
{
    AUTO_POINTER_LIST struct pointer_list baseline = { 0 };
    AUTO_POINTER_LIST struct pointer_list current = { 0 };

    if (pointer_expand(p->pair->baseline, p->metric->pointer, &baseline, e) < 0 ||
        pointer_expand(p->pair->current, p->metric->pointer, &current, e) < 0)
        return -1;
    for (size_t i = 0; i < baseline.n; i++)
        if (add(p, baseline.items[i], e) < 0)
            return -1;
    for (size_t i = 0; i < current.n; i++)
        if (!listed(&baseline, current.items[i]))
            note_ungated(p, current.items[i]);
    if (baseline.n == 0 && p->metric->gated) {
        struct finding what = { .code = "NC-METRIC-MISSING", .path = p->pair->path, .field = p->metric->pointer };

        p->f->expected++;
        findings_reason(p->f, &what, "%s matches nothing in %s", p->metric->pointer,
                        p->f->self ? "this run" : "the baseline");
    }
    return 0;
}

int compare_prepare(const struct policy *p, const struct pair *pair, struct findings *f, struct compared_list *out,
                    struct err *e)
{
    struct preparation prep = { .pair = pair, .f = f, .out = out };
    bool any_missing = false;
    size_t before = f->expected;

    for (size_t i = 0; i < p->n_metrics; i++) {
        prep.metric = &p->metrics[i];
        if (!policy_applies(prep.metric->reports, pair->path))
            continue;
        if ((pointer_is_pattern(prep.metric->pointer) ? add_pattern(&prep, e) : add(&prep, prep.metric->pointer, e)) < 0)
            return -1;
    }
    any_missing = f->expected - before > out->n;
    if (prep.gated == 0 && !any_missing) {
        struct finding what = { .code = "NC-METRIC-NONE", .path = pair->path };

        findings_reason(f, &what, "no gated metric of the definition applies to this report: zero comparisons");
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
    struct judged j = { .delta = current - baseline };
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
        j.regression = baseline > m->floor && current < baseline / 2;
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
        cJSON *row = json_add_object(d, f->comparisons, NULL);

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
