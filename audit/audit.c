#include "audit/audit.h"

#include <stdlib.h>
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/limits.h"

/* The inferred identity of one required path, or NULL. */
struct inferred {
    cJSON *values;
};

struct run {
    const struct audit_input *in;
    struct policy policy;
    struct findings f;
    struct compared_list *prepared; /* one per required path */
    struct inferred *inferred;
};

static void run_fini(struct run *r)
{
    for (size_t i = 0; i < r->policy.n_required; i++) {
        if (r->prepared)
            compared_list_fini(&r->prepared[i]);
        if (r->inferred)
            json_free(r->inferred[i].values);
    }
    free(r->prepared);
    free(r->inferred);
    policy_fini(&r->policy);
    findings_fini(&r->f);
}

static void say_unreadable(struct run *r, const struct tree_file *file, bool of_current)
{
    struct finding what = {.code = "IN-JSON", .path = file->path};

    findings_reason(&r->f, &what, "the %s's report cannot be read: %s",
                    r->f.self    ? "run"
                    : of_current ? "current run"
                                 : "baseline",
                    file->problem);
    r->f.invalid = true;
}

/* A required report that is no JSON object, or a side where nothing can be read, breaks the
 * evidence. */
static void check_readable(struct run *r, bool of_current)
{
    const struct tree *t = of_current ? r->in->current.tree : r->in->baseline.tree;
    bool any = false;

    for (size_t i = 0; i < t->n; i++)
        any = any || t->files[i].report;
    for (size_t i = 0; i < t->n; i++)
        if (!t->files[i].report && (!any || policy_requires(&r->policy, t->files[i].path)))
            say_unreadable(r, &t->files[i], of_current);
}

static void say_missing(struct run *r, const char *path, bool baseline, bool current)
{
    struct finding what = {.code = "NC-PATH-MISSING", .path = path};

    findings_reason(&r->f, &what, "the required report is missing %s",
                    findings_where(&r->f, baseline, current));
}

static void check_paths(struct run *r)
{
    const struct policy *p = &r->policy;
    size_t nowhere = 0;

    for (size_t i = 0; i < p->n_required; i++)
        if (!tree_find(r->in->baseline.tree, p->required[i]) &&
            !tree_find(r->in->current.tree, p->required[i]))
            nowhere++;
    if (nowhere == p->n_required) {
        struct finding what = {.code = "NC-PATH-NONE"};

        findings_reason(
            &r->f, &what,
            "none of the %zu reports that gate '%s' requires (first: %s) is on either side",
            p->n_required, r->in->policy->gate, p->required[0]);
        return;
    }
    for (size_t i = 0; i < p->n_required; i++) {
        bool baseline = !tree_find(r->in->baseline.tree, p->required[i]);
        bool current = !tree_find(r->in->current.tree, p->required[i]);

        if (baseline || current)
            say_missing(r, p->required[i], baseline, current);
    }
}

static void note_inferred(struct run *r, const char *path, const cJSON *values)
{
    struct json_doc *d = &r->f.marks;
    const cJSON *value = NULL;
    cJSON *row = json_add_object(d, r->f.inferred, NULL);
    cJSON *fields = NULL;

    json_add_string(d, row, "path", path);
    json_add_string(d, row, "side", "baseline");
    json_add_copy(d, row, "source", json_get(r->policy.infer, "name"));
    fields = json_add_array(d, row, "fields");
    cJSON_ArrayForEach(value, values)
        json_add_string(d, fields, NULL, value->string);
}

/* Everything that can refuse one report that both sides have. */
static int check_pair(struct run *r, size_t index, struct err *e)
{
    const char *path = r->policy.required[index];
    const struct tree_file *baseline = tree_find(r->in->baseline.tree, path);
    const struct tree_file *current = tree_find(r->in->current.tree, path);
    AUTO_BUF struct buf why = {0};
    struct pair pair = {.path = path, .legacy = r->in->baseline.legacy};

    if (!baseline || !current)
        return 0;
    buf_init(&why, LIMIT_KIB(1));
    pair.baseline = baseline->report;
    pair.current = current->report;
    if (pair.legacy && infer_identity(r->policy.infer, r->in->baseline.tree, baseline,
                                      &r->inferred[index].values, &why, e) < 0)
        return -1;
    pair.inferred = r->inferred[index].values;
    pair.why_not = why.data ? why.data : "";
    if (pair.inferred)
        note_inferred(r, path, pair.inferred);
    if (identity_compare(&r->policy, &pair, &r->f, e) < 0)
        return -1;
    windows_check(&r->policy, &pair, &r->f);
    return compare_prepare(&r->policy, &pair, &r->f, &r->prepared[index], e);
}

/* One run of each side is compared here; a gate that asks for more gets no answer from one. */
static void check_repeats(struct run *r)
{
    static const char *const sides[][2] = {{"/repeats/baseline", "baseline"},
                                           {"/repeats/candidate", "current run"}};

    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        const cJSON *wanted = pointer_get(r->in->policy->policy, sides[i][0]);
        struct finding what = {.code = "NC-REPEATS", .field = sides[i][0]};

        if (cJSON_IsNumber(wanted) && wanted->valuedouble > 1.5)
            findings_reason(&r->f, &what, "the gate asks for %.0f runs of the %s, one is compared",
                            wanted->valuedouble, sides[i][1]);
    }
}

static int evaluate(struct run *r, struct err *e)
{
    struct finding empty = {.code = "NC-BASELINE-EMPTY"};
    struct finding none = {.code = "NC-METRIC-NONE"};

    if (!r->f.self)
        check_readable(r, false);
    check_readable(r, true);
    if (r->f.invalid)
        return 0;
    if (r->in->baseline.tree->n == 0) {
        findings_reason(&r->f, &empty, "the baseline holds no report at all");
        return 0;
    }
    check_paths(r);
    check_repeats(r);
    reach_check(&r->policy, &r->f);
    if (comparable_manifests(r->in, &r->policy, &r->f, e) < 0)
        return -1;
    for (size_t i = 0; i < r->policy.n_required && !r->f.over; i++)
        if (check_pair(r, i, e) < 0)
            return -1;
    if (!r->f.self)
        comparable_same_evidence(r->in, &r->policy, &r->f);
    for (size_t i = 0; i < r->policy.n_required && !r->f.refused_all && !r->f.over; i++)
        if (!findings_refused(&r->f, r->policy.required[i]))
            compare_rows(r->policy.required[i], &r->prepared[i], &r->f);
    if (!r->f.reasons->child && r->f.made == 0 && !r->f.over)
        findings_reason(&r->f, &none, "not a single comparison was made");
    return 0;
}

static int run_init(struct run *r, const struct audit_input *in, struct err *e)
{
    r->in = in;
    if (findings_init(&r->f, e) < 0 || policy_read(in->policy, &r->policy, e) < 0 ||
        policy_add_required(&r->policy, in->baseline_manifest, e) < 0)
        return -1;
    r->prepared = calloc(r->policy.n_required + 1, sizeof *r->prepared);
    r->inferred = calloc(r->policy.n_required + 1, sizeof *r->inferred);
    return r->prepared && r->inferred ? 0 : err_memory(e, "audit.memory");
}

int audit_run(const struct audit_input *in, struct audit *out, struct err *e)
{
    struct run r = {0};
    int rc = -1;

    if (run_init(&r, in, e) == 0 && evaluate(&r, e) == 0)
        rc = audit_document(r.in, &r.policy, &r.f, out, e);
    run_fini(&r);
    return rc;
}

int audit_would_compare(const struct definition *policy, const struct audit_side *side,
                        struct audit *out, struct err *e)
{
    struct audit_input in = {.policy = policy, .baseline = *side, .current = *side};
    struct run r = {0};
    int rc = -1;

    if (run_init(&r, &in, e) == 0) {
        r.f.self = true;
        if (evaluate(&r, e) == 0)
            rc = audit_document(r.in, &r.policy, &r.f, out, e);
    }
    run_fini(&r);
    return rc;
}

/* How many comparisons the policy asks for when there is nothing to expand over but the current
 * run. */
static int count_expected(struct run *r, struct err *e)
{
    for (size_t i = 0; r->in->current.tree && i < r->policy.n_required; i++) {
        const struct tree_file *file = tree_find(r->in->current.tree, r->policy.required[i]);

        for (size_t m = 0; m < r->policy.n_metrics; m++) {
            const struct policy_metric *metric = &r->policy.metrics[m];
            AUTO_POINTER_LIST struct pointer_list matched = {0};

            if (!metric->gated || !policy_applies(metric->reports, r->policy.required[i]))
                continue;
            if (!pointer_is_pattern(metric->pointer)) {
                r->f.expected++;
                continue;
            }
            if (file && file->report &&
                pointer_expand(file->report, metric->pointer, LIMIT_COMPARISONS, &matched, e) < 0)
                return -1;
            r->f.expected += matched.total;
        }
    }
    return 0;
}

int audit_refuse(const struct definition *policy, const struct audit_side *baseline,
                 const struct audit_side *current, const struct audit_refusal *why,
                 struct audit *out, struct err *e)
{
    struct audit_input in = {.policy = policy, .baseline = *baseline, .current = *current};
    struct finding what = {.code = why->code, .path = why->path};
    struct run r = {0};
    int rc = -1;

    if (run_init(&r, &in, e) == 0 && count_expected(&r, e) == 0) {
        findings_reason(&r.f, &what, "%.2000s", why->text);
        r.f.invalid = strncmp(why->code, "IN-", 3) == 0;
        rc = audit_document(r.in, &r.policy, &r.f, out, e);
    }
    run_fini(&r);
    return rc;
}

int audit_no_baseline(const struct definition *policy, const struct audit_side *current,
                      const char *why, struct audit *out, struct err *e)
{
    static const struct audit_side nothing = {0};
    const struct audit_refusal refusal = {
        .code = "NC-BASELINE-NONE",
        .text = why ? why
                    : "no reviewed baseline of this gate on this machine class; this run may be "
                      "proposed as the first one",
    };

    return audit_refuse(policy, &nothing, current, &refusal, out, e);
}

int audit_check_policy(const struct definition *d, struct err *e)
{
    AUTO_POLICY struct policy p = {0};

    return policy_read(d, &p, e);
}

void audit_fini(struct audit *a)
{
    json_free(a->document);
    *a = (struct audit){0};
}
