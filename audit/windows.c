/* Evidence that the windows behind the metrics were covered. The first thing wrong with a window is
 * its reason. */
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "experiment/exact.h"
#include "experiment/pointer.h"

/* What is wrong with one side's window, or NULL; *out_member is the member's name, or NULL for the
 * whole window. */
static const char *window_problem(const struct policy_window *w, const cJSON *report,
                                  const char **out_member)
{
    const cJSON *window = pointer_get(report, w->pointer);
    const cJSON *samples = json_get(window, w->samples);
    const cJSON *coverage = json_get(window, w->coverage);

    *out_member = NULL;
    if (!cJSON_IsObject(window))
        return "has no evidence";
    *out_member = w->complete;
    if (!cJSON_IsTrue(json_get(window, w->complete)))
        return "is incomplete";
    *out_member = w->samples;
    if (!json_is_integer(samples) || samples->valuedouble < w->min_samples)
        return "has too few samples";
    *out_member = w->coverage;
    if (!cJSON_IsNumber(coverage) || coverage->valuedouble <= 0 ||
        coverage->valuedouble < w->min_coverage)
        return "covers too little time";
    *out_member = NULL;
    if (w->value && !cJSON_IsNumber(pointer_get(report, w->value)))
        return "has no value";
    return NULL;
}

static void check_side(const struct policy_window *w, const struct pair *pair, bool current,
                       struct findings *f)
{
    const cJSON *report = current ? pair->current : pair->baseline;
    const char *member = NULL;
    const char *problem = window_problem(w, report, &member);
    const cJSON *window = pointer_get(report, w->pointer);
    bool value = problem && !member && cJSON_IsObject(window);
    AUTO_FREE char *field = NULL;
    struct finding what = {.code = "NC-WINDOW-INCOMPLETE", .path = pair->path};

    if (!problem)
        return;
    field = member ? pointer_join(w->pointer, member) : strdup(value ? w->value : w->pointer);
    if (!field) {
        f->marks.failed = true;
        return;
    }
    what.field = field;
    what.baseline = pointer_get(pair->baseline, field);
    what.current = pointer_get(pair->current, field);
    findings_reason(f, &what, "%s: the window %s in the %s", w->label ? w->label : w->pointer,
                    problem, current ? "current run" : "baseline");
}

/* A value of another estimator is another quantity. */
static void check_estimator(const struct policy_window *w, const struct pair *pair,
                            struct findings *f)
{
    AUTO_FREE char *field = pointer_join(w->pointer, "estimator");
    struct finding what = {.code = "NC-ESTIMATOR", .path = pair->path, .field = field};

    if (!field) {
        f->marks.failed = true;
        return;
    }
    what.baseline = pointer_get(pair->baseline, field);
    what.current = pointer_get(pair->current, field);
    if (!what.baseline && !what.current)
        return;
    if (!what.baseline || cJSON_IsNull(what.baseline) || !what.current ||
        !exact_equal(what.baseline, what.current))
        findings_reason(f, &what, "%s: the estimators differ", w->label ? w->label : w->pointer);
}

void windows_check(const struct policy *p, const struct pair *pair, struct findings *f)
{
    for (size_t i = 0; i < p->n_windows; i++) {
        if (!policy_applies(p->windows[i].reports, pair->path))
            continue;
        /* A report old enough to need inference never recorded its windows. */
        if (!pair->inferred) {
            if (!f->self)
                check_side(&p->windows[i], pair, false, f);
            check_estimator(&p->windows[i], pair, f);
        }
        check_side(&p->windows[i], pair, true, f);
    }
}
