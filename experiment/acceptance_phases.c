/* Checks of phase markers, and of window boundaries against them. */
#include "experiment/acceptance_check.h"

#include <math.h>
#include <string.h>

#include "base/json_in.h"
#include "base/num.h"
#include "experiment/phases.h"
#include "experiment/pointer.h"

#define MS_PER_SEC 1000.0

static void check_planned(const cJSON *markers, const cJSON *planned, struct problems *p)
{
    const cJSON *entry = NULL;

    cJSON_ArrayForEach(entry, planned) {
        const char *phase = check_text(entry, "phase");
        double expected = check_number(entry, "elapsed", -1);
        struct phase_found found = phases_find_kind(markers, phase, "planned");

        if (found.count != 1)
            problems_add(p, "planned marker '%s': %zu instead of one", phase, found.count);
        else if (!found.valid)
            problems_add(p, "planned marker '%s': elapsed_ms is not a JSON integer of 0 or more",
                         phase);
        else if (!num_same(found.elapsed_ms, expected))
            problems_add(p, "planned marker '%s' at %.0f ms, expected at %.0f ms", phase,
                         found.elapsed_ms, expected);
    }
}

static void check_required(const cJSON *markers, const cJSON *required, struct problems *p)
{
    const cJSON *phase = NULL;

    cJSON_ArrayForEach(phase, required) {
        struct phase_found found = phases_find_actual(markers, phase->valuestring);

        if (found.count == 0)
            problems_add(p, "marker '%s' is missing", phase->valuestring);
        else if (!found.valid)
            problems_add(p, "marker '%s': elapsed_ms is not a JSON integer of 0 or more",
                         phase->valuestring);
    }
}

static void check_order(const cJSON *markers, const cJSON *names, struct problems *p)
{
    const cJSON *phase = NULL;
    const char *before = NULL;
    double last = 0;

    cJSON_ArrayForEach(phase, names) {
        struct phase_found found = phases_find_actual(markers, phase->valuestring);

        if (!found.valid) {
            problems_add(p, "marker '%s' has no place in the order", phase->valuestring);
            continue;
        }
        if (before && found.elapsed_ms < last)
            problems_add(p, "marker '%s' at %.0f ms lies before '%s' at %.0f ms",
                         phase->valuestring, found.elapsed_ms, before, last);
        before = phase->valuestring;
        last = found.elapsed_ms;
    }
}

static void check_spans(const cJSON *markers, const cJSON *spans, struct problems *p)
{
    const cJSON *span = NULL;

    cJSON_ArrayForEach(span, spans) {
        struct phase_found from = phases_find_actual(markers, check_text(span, "from"));
        struct phase_found to = phases_find_actual(markers, check_text(span, "to"));
        double min = check_number(span, "min", 0);

        if (!from.valid || !to.valid)
            problems_add(p, "'%s' to '%s' cannot be measured", check_text(span, "from"),
                         check_text(span, "to"));
        else if (!(to.elapsed_ms - from.elapsed_ms >= min))
            problems_add(p, "'%s' to '%s' took %.0f ms, at least %.0f ms are needed",
                         check_text(span, "from"), check_text(span, "to"),
                         to.elapsed_ms - from.elapsed_ms, min);
    }
}

static void check_rules(struct checks *c, const cJSON *rules)
{
    const char *path = check_text(rules, "markers");
    const cJSON *markers = pointer_get(c->report, path);
    const cJSON *kind = NULL;
    AUTO_PROBLEMS struct problems p;

    problems_init(&p);
    if (!cJSON_IsArray(markers))
        problems_add(&p, "%s", markers ? "not a list" : "absent");
    check_planned(markers, json_get(rules, "planned"), &p);
    check_required(markers, json_get(rules, "required"), &p);
    cJSON_ArrayForEach(kind, json_get(rules, "forbidden_kinds"))
        if (phases_has_kind(markers, kind->valuestring))
            problems_add(&p, "a marker of the kind '%s' must not exist", kind->valuestring);
    check_order(markers, json_get(rules, "monotonic"), &p);
    check_spans(markers, json_get(rules, "min_spans"), &p);
    checks_add_problems(c, check_name(rules, path), "phases", NULL, &p);
}

static void check_bound(struct checks *c, const cJSON *markers, const char *origin,
                        double tolerance, const cJSON *bound, struct problems *p)
{
    const char *path = check_text(bound, "value");
    const char *phase = check_text(bound, "phase");
    const cJSON *value = pointer_get(c->report, path);
    struct phase_found zero = phases_find_actual(markers, origin);
    struct phase_found at = phases_find_actual(markers, phase);
    double expected = (at.elapsed_ms - zero.elapsed_ms) / MS_PER_SEC;

    if (!cJSON_IsNumber(value))
        problems_add(p, "%s is %s", path, value ? "not a number" : "absent");
    else if (zero.count != 1 || !zero.valid || at.count != 1 || !at.valid)
        problems_add(p, "marker '%s' or '%s' is missing, repeated or malformed", origin, phase);
    else if (!(fabs(value->valuedouble - expected) <= tolerance))
        problems_add(p, "%s is %.9g s, marker '%s' lies at %.9g s: more than %.9g s apart", path,
                     value->valuedouble, phase, expected, tolerance);
}

static int check_binding(struct checks *c, const cJSON *entry, struct err *e)
{
    const char *path = check_text(entry, "markers");
    const cJSON *markers = pointer_get(c->report, path);
    double tolerance = check_number(entry, "tolerance", 0) / MS_PER_SEC;
    AUTO_JSON cJSON *limit = cJSON_CreateNumber(tolerance);
    const cJSON *bound = NULL;
    AUTO_PROBLEMS struct problems p;

    problems_init(&p);
    if (!limit)
        return err_memory(e, "acceptance.memory");
    cJSON_ArrayForEach(bound, json_get(entry, "bounds"))
        check_bound(c, markers, check_text(entry, "origin"), tolerance, bound, &p);
    checks_add_problems(c, check_name(entry, path), "bound_to_phases", limit, &p);
    return 0;
}

int checks_phases(struct checks *c, const cJSON *accept, struct err *e)
{
    const cJSON *rules = json_get(accept, "phases");
    const cJSON *entry = NULL;

    if (rules)
        check_rules(c, rules);
    cJSON_ArrayForEach(entry, json_get(accept, "bindings"))
        if (check_binding(c, entry, e) < 0)
            return -1;
    return 0;
}
