#include "audit/audit.h"

#include <stdlib.h>
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/pointer.h"

#define AUDIT_SCHEMA "cleanrun-audit/1"

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
    bool invalid;
    bool empty_baseline;
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "audit.memory", "out of memory");
}

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

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static bool is_required(const struct policy *p, const char *path)
{
    return p->n_required > 0 &&
           bsearch(&path, p->required, p->n_required, sizeof *p->required, compare_text) != NULL;
}

/* A reviewed baseline's comparison paths are required too (decisions C16). */
static int add_comparison_paths(struct policy *p, const cJSON *manifest, struct err *e)
{
    const cJSON *paths = json_get(manifest, "comparison_paths");
    const cJSON *item = NULL;

    if (!manifest)
        return 0;
    if (!cJSON_IsArray(paths))
        return err_set(e, ERR_INPUT, "audit.baseline", "the baseline manifest has no comparison paths");
    cJSON_ArrayForEach(item, paths)
    {
        const char **grown = NULL;

        if (!cJSON_IsString(item))
            return err_set(e, ERR_INPUT, "audit.baseline", "a comparison path of the baseline manifest is no text");
        if (is_required(p, item->valuestring))
            continue;
        grown = reallocarray(p->required, p->n_required + 1, sizeof *grown);
        if (!grown)
            return no_memory(e);
        p->required = grown;
        p->required[p->n_required++] = item->valuestring;
        qsort(p->required, p->n_required, sizeof *p->required, compare_text);
    }
    return 0;
}

static void say_unreadable(struct run *r, const struct tree_file *file, bool of_current)
{
    struct finding what = { .code = "IN-JSON", .path = file->path };

    findings_reason(&r->f, &what, "the %s's report cannot be read: %s", r->f.self ? "run" : of_current ? "current run" : "baseline", file->problem);
    r->invalid = true;
}

/* A required report that is no JSON object, or a side where nothing can be read, breaks the evidence. */
static void check_readable(struct run *r, bool of_current)
{
    const struct tree *t = of_current ? r->in->current.tree : r->in->baseline.tree;
    bool any = false;

    for (size_t i = 0; i < t->n; i++)
        any = any || t->files[i].report;
    for (size_t i = 0; i < t->n; i++)
        if (!t->files[i].report && (!any || is_required(&r->policy, t->files[i].path)))
            say_unreadable(r, &t->files[i], of_current);
}

static void say_missing(struct run *r, const char *path, bool baseline, bool current)
{
    struct finding what = { .code = "NC-PATH-MISSING", .path = path };

    findings_reason(&r->f, &what, "the required report is missing %s",
                    baseline && current ? findings_both(&r->f) : baseline ? "in the baseline" : "in the current run");
}

static void check_paths(struct run *r)
{
    const struct policy *p = &r->policy;
    size_t nowhere = 0;

    for (size_t i = 0; i < p->n_required; i++)
        if (!tree_find(r->in->baseline.tree, p->required[i]) && !tree_find(r->in->current.tree, p->required[i]))
            nowhere++;
    if (nowhere == p->n_required) {
        struct finding what = { .code = "NC-PATH-NONE" };

        findings_reason(&r->f, &what, "none of the %zu reports that gate '%s' requires (first: %s) is on either side",
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
    cJSON_ArrayForEach(value, values) json_add_string(d, fields, NULL, value->string);
}

/* Everything that can refuse one report that both sides have. */
static int check_pair(struct run *r, size_t index, struct err *e)
{
    const char *path = r->policy.required[index];
    const struct tree_file *baseline = tree_find(r->in->baseline.tree, path);
    const struct tree_file *current = tree_find(r->in->current.tree, path);
    AUTO_BUF struct buf why = { 0 };
    struct pair pair = { .path = path, .legacy = r->in->baseline.legacy };

    if (!baseline || !current)
        return 0;
    buf_init(&why, LIMIT_KIB(1));
    pair.baseline = baseline->report;
    pair.current = current->report;
    if (pair.legacy &&
        infer_identity(r->policy.infer, r->in->baseline.tree, baseline, &r->inferred[index].values, &why, e) < 0)
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
    static const char *const sides[][2] = { { "/repeats/baseline", "baseline" }, { "/repeats/candidate", "current run" } };

    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        const cJSON *wanted = pointer_get(r->in->policy->policy, sides[i][0]);
        struct finding what = { .code = "NC-REPEATS", .field = sides[i][0] };

        if (cJSON_IsNumber(wanted) && wanted->valuedouble > 1.5)
            findings_reason(&r->f, &what, "the gate asks for %.0f runs of the %s, one is compared", wanted->valuedouble,
                            sides[i][1]);
    }
}

static int evaluate(struct run *r, struct err *e)
{
    struct finding empty = { .code = "NC-BASELINE-EMPTY" };
    struct finding none = { .code = "NC-METRIC-NONE" };

    if (!r->f.self)
        check_readable(r, false);
    check_readable(r, true);
    if (r->invalid)
        return 0;
    if (r->in->baseline.tree->n == 0) {
        findings_reason(&r->f, &empty, "the baseline holds no report at all");
        return 0;
    }
    check_paths(r);
    check_repeats(r);
    if (comparable_manifests(r->in, &r->policy, &r->f, e) < 0)
        return -1;
    for (size_t i = 0; i < r->policy.n_required; i++)
        if (check_pair(r, i, e) < 0)
            return -1;
    if (!r->f.self)
        comparable_same_evidence(r->in, &r->policy, &r->f);
    for (size_t i = 0; i < r->policy.n_required && !r->f.refused_all; i++)
        if (!findings_refused(&r->f, r->policy.required[i]))
            compare_rows(r->policy.required[i], &r->prepared[i], &r->f);
    if (!r->f.reasons->child && r->f.made == 0)
        findings_reason(&r->f, &none, "not a single comparison was made");
    return 0;
}

/* The document. */

static void add_hex(struct json_doc *d, cJSON *parent, const char *key, const struct digest *digest)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(digest, hex);
    json_add_string(d, parent, key, hex);
}

static const cJSON *executable_of(const struct audit_side *side)
{
    const cJSON *hex = pointer_get(side->manifest, "/executable/sha256");

    return cJSON_IsString(hex) ? hex : NULL;
}

static void add_optional(struct json_doc *d, cJSON *parent, const char *key, const char *text)
{
    if (text)
        json_add_string(d, parent, key, text);
}

static void add_side(struct json_doc *d, const char *key, const struct audit_side *side)
{
    cJSON *made = json_add_object(d, NULL, key);

    add_optional(d, made, "id", side->id);
    json_add_copy(d, made, "run", pointer_get(side->manifest, "/run"));
    json_add_copy(d, made, "commit", pointer_get(side->manifest, "/source/start/commit"));
    json_add_copy(d, made, "class", pointer_get(side->manifest, "/class"));
    json_add_copy(d, made, "executable_sha256", executable_of(side));
    add_optional(d, made, "evidence_sha256", side->evidence_sha256);
    if (side->definition)
        add_hex(d, made, "experiment_sha256", &side->definition->experiment_digest);
    if (side->legacy)
        json_add_bool(d, made, "legacy", true);
    add_optional(d, made, "root", side->root);
}

static void add_reviewed(struct json_doc *d, const struct audit_input *in)
{
    cJSON *made = NULL;

    if (!in->baseline_manifest)
        return;
    made = json_add_object(d, cJSON_GetObjectItemCaseSensitive(d->root, "baseline"), "reviewed");
    json_add_copy(d, made, "id", json_get(in->baseline_manifest, "baseline_id"));
    json_add_string(d, made, "manifest_sha256", in->baseline_manifest_sha256);
}

static void add_unreadable(struct json_doc *d, cJSON *list, const char *side, const struct tree *t)
{
    for (size_t i = 0; t && i < t->n; i++) {
        cJSON *row = NULL;

        if (t->files[i].report)
            continue;
        row = json_add_object(d, list, NULL);
        json_add_string(d, row, "side", side);
        json_add_string(d, row, "path", t->files[i].path);
        json_add_string(d, row, "problem", t->files[i].problem);
    }
}

/* Readable files of one side that the other side lacks. */
static void add_only(struct json_doc *d, cJSON *list, const struct tree *t, const struct tree *other)
{
    for (size_t i = 0; t && i < t->n; i++)
        if (t->files[i].report && (!other || !tree_find(other, t->files[i].path)))
            json_add_string(d, list, NULL, t->files[i].path);
}

static void add_coverage(struct json_doc *d, struct run *r)
{
    const struct tree *baseline = r->in->baseline.tree;
    const struct tree *current = r->in->current.tree;
    cJSON *made = json_add_object(d, NULL, "coverage");
    cJSON *list = NULL;

    add_only(d, json_add_array(d, made, "baseline_only"), baseline, current);
    add_only(d, json_add_array(d, made, "current_only"), current, baseline);
    list = json_add_array(d, made, "not_compared");
    for (size_t i = 0; baseline && current && i < baseline->n; i++)
        if (tree_find(current, baseline->files[i].path) && !is_required(&r->policy, baseline->files[i].path))
            json_add_string(d, list, NULL, baseline->files[i].path);
    list = json_add_array(d, made, "unreadable");
    add_unreadable(d, list, "baseline", baseline);
    add_unreadable(d, list, "current", current);
    (void) json_add(d, made, "ungated", STEAL(r->f.ungated)); /* failure stays in d */
}

static const char *path_status(const struct run *r, const char *path)
{
    const struct tree_file *baseline = r->in->baseline.tree ? tree_find(r->in->baseline.tree, path) : NULL;
    const struct tree_file *current = r->in->current.tree ? tree_find(r->in->current.tree, path) : NULL;

    if (!baseline || !current)
        return "missing";
    if (!baseline->report || !current->report)
        return "unreadable";
    return r->f.refused_all || findings_refused(&r->f, path) || r->invalid ? "refused" : "compared";
}

static void add_paths(struct json_doc *d, struct run *r)
{
    cJSON *list = json_add_array(d, NULL, "paths");

    for (size_t i = 0; i < r->policy.n_required; i++) {
        cJSON *row = json_add_object(d, list, NULL);

        json_add_string(d, row, "path", r->policy.required[i]);
        json_add_string(d, row, "status", path_status(r, r->policy.required[i]));
    }
}

static void add_identity(struct json_doc *d, struct run *r)
{
    cJSON *made = json_add_object(d, NULL, "identity");

    /* A failed add marks the document as failed. */
    (void) json_add(d, made, "equal", STEAL(r->f.equal));
    (void) json_add(d, made, "different", STEAL(r->f.different));
    (void) json_add(d, made, "inferred", STEAL(r->f.inferred));
    (void) json_add(d, made, "not_recorded", STEAL(r->f.not_recorded));
}

static bool same_executable(const struct audit_input *in)
{
    const cJSON *baseline = executable_of(&in->baseline);
    const cJSON *current = executable_of(&in->current);

    return baseline && current && json_equal(baseline, current);
}

/* Known to be the same tree; an interpreter is the same executable whatever it reads from there. */
static bool same_source(const struct audit_input *in)
{
    const cJSON *baseline = pointer_get(in->baseline.manifest, "/source/start/fingerprint");
    const cJSON *current = pointer_get(in->current.manifest, "/source/start/fingerprint");

    return cJSON_IsString(baseline) && baseline->valuestring[0] && cJSON_IsString(current) && json_equal(baseline, current);
}

static enum verdict verdict_of(const struct run *r)
{
    if (r->invalid)
        return VERDICT_INVALID;
    if (r->f.reasons->child || r->f.made == 0 || r->f.made != r->f.expected)
        return VERDICT_NON_COMPARABLE;
    return r->f.regression ? VERDICT_REGRESSION : VERDICT_OK;
}

static int write_document(struct run *r, struct audit *out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct json_doc *d = &doc;
    enum verdict verdict = verdict_of(r);
    cJSON *made = NULL;

    if (findings_ok(&r->f, e) < 0 || findings_sort_reasons(&r->f, e) < 0)
        return -1;
    json_doc_init_object(d);
    json_add_string(d, NULL, "schema", AUDIT_SCHEMA);
    json_add_string(d, NULL, "verdict", verdict_word(verdict));
    json_add_string(d, NULL, "gate", r->in->policy->gate);
    made = json_add_object(d, NULL, "definition");
    add_hex(d, made, "experiment_sha256", &r->in->policy->experiment_digest);
    add_hex(d, made, "policy_sha256", &r->in->policy->policy_digest);
    add_side(d, "baseline", &r->in->baseline);
    add_reviewed(d, r->in);
    add_side(d, "current", &r->in->current);
    json_add_bool(d, NULL, "same_executable", same_executable(r->in));
    json_add_bool(d, NULL, "same_source", same_source(r->in));
    json_add_int(d, NULL, "expected_comparisons", (int64_t) r->f.expected);
    json_add_int(d, NULL, "made_comparisons", (int64_t) r->f.made);
    add_paths(d, r);
    (void) json_add(d, NULL, "reasons", STEAL(r->f.reasons)); /* failure stays in d */
    (void) json_add(d, NULL, "comparisons", STEAL(r->f.comparisons));
    add_identity(d, r);
    add_coverage(d, r);
    out->document = json_doc_take(d, e);
    out->verdict = verdict;
    return out->document ? 0 : -1;
}

static int run_init(struct run *r, const struct audit_input *in, struct err *e)
{
    r->in = in;
    if (findings_init(&r->f, e) < 0 || policy_read(in->policy, &r->policy, e) < 0 ||
        add_comparison_paths(&r->policy, in->baseline_manifest, e) < 0)
        return -1;
    r->prepared = calloc(r->policy.n_required + 1, sizeof *r->prepared);
    r->inferred = calloc(r->policy.n_required + 1, sizeof *r->inferred);
    return r->prepared && r->inferred ? 0 : no_memory(e);
}

int audit_run(const struct audit_input *in, struct audit *out, struct err *e)
{
    struct run r = { 0 };
    int rc = -1;

    if (run_init(&r, in, e) == 0 && evaluate(&r, e) == 0)
        rc = write_document(&r, out, e);
    run_fini(&r);
    return rc;
}

int audit_would_compare(const struct definition *policy, const struct audit_side *side, struct audit *out, struct err *e)
{
    struct audit_input in = { .policy = policy, .baseline = *side, .current = *side };
    struct run r = { 0 };
    int rc = -1;

    if (run_init(&r, &in, e) == 0) {
        r.f.self = true;
        if (evaluate(&r, e) == 0)
            rc = write_document(&r, out, e);
    }
    run_fini(&r);
    return rc;
}

/* How many comparisons the policy asks for when there is nothing to expand over but the current run. */
static int count_expected(struct run *r, struct err *e)
{
    for (size_t i = 0; r->in->current.tree && i < r->policy.n_required; i++) {
        const struct tree_file *file = tree_find(r->in->current.tree, r->policy.required[i]);

        for (size_t m = 0; m < r->policy.n_metrics; m++) {
            const struct policy_metric *metric = &r->policy.metrics[m];
            AUTO_POINTER_LIST struct pointer_list matched = { 0 };

            if (!metric->gated || !policy_applies(metric->reports, r->policy.required[i]))
                continue;
            if (!pointer_is_pattern(metric->pointer)) {
                r->f.expected++;
                continue;
            }
            if (file && file->report && pointer_expand(file->report, metric->pointer, &matched, e) < 0)
                return -1;
            r->f.expected += matched.n;
        }
    }
    return 0;
}

int audit_refuse(const struct definition *policy, const struct audit_side *baseline, const struct audit_side *current,
                 const struct audit_refusal *why, struct audit *out, struct err *e)
{
    struct audit_input in = { .policy = policy, .baseline = *baseline, .current = *current };
    struct finding what = { .code = why->code, .path = why->path };
    struct run r = { 0 };
    int rc = -1;

    if (run_init(&r, &in, e) == 0 && count_expected(&r, e) == 0) {
        findings_reason(&r.f, &what, "%.2000s", why->text);
        r.invalid = strncmp(why->code, "IN-", 3) == 0;
        rc = write_document(&r, out, e);
    }
    run_fini(&r);
    return rc;
}

int audit_no_baseline(const struct definition *policy, const struct audit_side *current, struct audit *out, struct err *e)
{
    static const struct audit_side nothing = { 0 };
    static const struct audit_refusal why = {
        .code = "NC-BASELINE-NONE",
        .text = "no reviewed baseline of this gate on this machine class; this run may be proposed as the first one",
    };

    return audit_refuse(policy, &nothing, current, &why, out, e);
}

int audit_check_policy(const struct definition *d, struct err *e)
{
    AUTO_POLICY struct policy p = { 0 };

    return policy_read(d, &p, e);
}

void audit_fini(struct audit *a)
{
    json_free(a->document);
    *a = (struct audit) { 0 };
}
