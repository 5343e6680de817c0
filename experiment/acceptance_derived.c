/* The section that the runner derived from its own samples, derived again. */
#include "experiment/acceptance_check.h"

#include <string.h>

#include "base/json_in.h"
#include "experiment/pointer.h"
#include "experiment/resources.h"
#include "experiment/stats.h"

#define REL_TOLERANCE 1e-9
#define ABS_TOLERANCE 1e-8

static bool same_leaf(const cJSON *derived, const cJSON *reported)
{
    if (cJSON_IsNumber(derived))
        return cJSON_IsNumber(reported) && stats_close(derived->valuedouble, reported->valuedouble,
                                                       REL_TOLERANCE, ABS_TOLERANCE);
    return reported && json_equal(derived, reported);
}

/* The derived tree is our own and four levels deep. */
/* NOLINTBEGIN(misc-no-recursion) */
static void compare(const cJSON *derived, const cJSON *reported, const char *at,
                    struct problems *p);

static void compare_members(const cJSON *derived, const cJSON *reported, const char *at,
                            struct problems *p)
{
    const cJSON *d = NULL;

    cJSON_ArrayForEach(d, derived) {
        AUTO_FREE char *below = pointer_join(at, d->string);

        compare(d, json_get(reported, d->string), below ? below : at, p);
    }
}

static void compare_elements(const cJSON *derived, const cJSON *reported, const char *at,
                             struct problems *p)
{
    const cJSON *d = derived->child;
    const cJSON *r = cJSON_IsArray(reported) ? reported->child : NULL;

    for (; d && r; d = d->next, r = r->next)
        compare(d, r, at, p);
    if (d || r || !cJSON_IsArray(reported))
        problems_add(p, "%s is another list", at);
}

static void compare(const cJSON *derived, const cJSON *reported, const char *at, struct problems *p)
{
    if (cJSON_IsObject(derived) && derived->child) {
        if (cJSON_IsObject(reported))
            compare_members(derived, reported, at, p);
        else
            problems_add(p, "%s is %s", at, reported ? "no object" : "absent");
    } else if (cJSON_IsArray(derived)) {
        compare_elements(derived, reported, at, p);
    } else if (same_leaf(derived, reported)) {
        return;
    } else if (cJSON_IsNumber(derived) && cJSON_IsNumber(reported)) {
        problems_add(p, "%s is %.17g, the samples give %.17g", at, reported->valuedouble,
                     derived->valuedouble);
    } else {
        problems_add(p, "%s is %s, the samples give another value", at, json_type_name(reported));
    }
}

/* NOLINTEND(misc-no-recursion) */

static int load_samples(struct checks *c, const cJSON *section, struct samples *out,
                        const char **out_problem, struct err *e)
{
    if (c->in->samples_csv)
        return samples_read_csv(c->in->samples_csv, c->in->samples_len, out, out_problem, e);
    return resources_embedded_samples(section, out, out_problem, e);
}

int checks_derived(struct checks *c, const cJSON *accept, struct err *e)
{
    const char *into = check_text(json_get(c->in->definition->experiment, "sampling"), "into");
    const cJSON *section = into[0] == '/' ? pointer_get(c->report, into) : NULL;
    const char *problem = "";
    AUTO_SAMPLES struct samples samples = {0};
    AUTO_JSON cJSON *derived = NULL;
    AUTO_PROBLEMS struct problems p = {0};

    if (into[0] != '/')
        return 0;
    problems_init(&p);
    if (load_samples(c, section, &samples, &problem, e) < 0) {
        /* A file that is no series is evidence that does not hold, not a failure of ours. */
        if (!e || e->kind == ERR_NOMEM)
            return -1;
        problems_add(&p, "the raw samples: %s", e->text);
    } else if (problem[0] != '\0') {
        problems_add(&p, "no raw samples to derive %s from: %s", into, problem);
    } else if (resources_derive(c->in->definition, &samples, check_markers(c, accept), &derived,
                                e) < 0) {
        return -1;
    } else {
        compare(derived, section, into, &p);
    }
    checks_add_problems(c, into, "recomputed", NULL, &p);
    return 0;
}
