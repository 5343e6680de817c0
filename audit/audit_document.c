/* What one audit found, as its document (cleanrun-audit/1, audit.h). */
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/pointer.h"

#define AUDIT_SCHEMA "cleanrun-audit/1"

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
static void add_only(struct json_doc *d, cJSON *list, const struct tree *t,
                     const struct tree *other)
{
    for (size_t i = 0; t && i < t->n; i++)
        if (t->files[i].report && (!other || !tree_find(other, t->files[i].path)))
            json_add_string(d, list, NULL, t->files[i].path);
}

static void add_coverage(struct json_doc *d, const struct audit_input *in, const struct policy *p,
                         struct findings *f)
{
    const struct tree *baseline = f->over ? NULL : in->baseline.tree;
    const struct tree *current = f->over ? NULL : in->current.tree;
    cJSON *made = json_add_object(d, NULL, "coverage");
    cJSON *list = NULL;

    add_only(d, json_add_array(d, made, "baseline_only"), baseline, current);
    add_only(d, json_add_array(d, made, "current_only"), current, baseline);
    list = json_add_array(d, made, "not_compared");
    for (size_t i = 0; baseline && current && i < baseline->n; i++)
        if (tree_find(current, baseline->files[i].path) &&
            !policy_requires(p, baseline->files[i].path))
            json_add_string(d, list, NULL, baseline->files[i].path);
    list = json_add_array(d, made, "unreadable");
    add_unreadable(d, list, "baseline", baseline);
    add_unreadable(d, list, "current", current);
    (void) json_add(d, made, "ungated", STEAL(f->ungated)); /* failure stays in d */
}

static const char *path_status(const struct audit_input *in, const struct findings *f,
                               const char *path)
{
    const struct tree_file *baseline =
        in->baseline.tree ? tree_find(in->baseline.tree, path) : NULL;
    const struct tree_file *current = in->current.tree ? tree_find(in->current.tree, path) : NULL;

    if (!baseline || !current)
        return "missing";
    if (!baseline->report || !current->report)
        return "unreadable";
    return f->refused_all || findings_refused(f, path) || f->invalid ? "refused" : "compared";
}

static void add_paths(struct json_doc *d, const struct audit_input *in, const struct policy *p,
                      const struct findings *f)
{
    cJSON *list = json_add_array(d, NULL, "paths");

    for (size_t i = 0; i < p->n_required; i++) {
        cJSON *row = json_add_object(d, list, NULL);

        json_add_string(d, row, "path", p->required[i]);
        json_add_string(d, row, "status", path_status(in, f, p->required[i]));
    }
}

static void add_identity(struct json_doc *d, struct findings *f)
{
    cJSON *made = json_add_object(d, NULL, "identity");

    /* A failed add marks the document as failed. */
    (void) json_add(d, made, "equal", STEAL(f->equal));
    (void) json_add(d, made, "different", STEAL(f->different));
    (void) json_add(d, made, "inferred", STEAL(f->inferred));
    (void) json_add(d, made, "not_recorded", STEAL(f->not_recorded));
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

    return cJSON_IsString(baseline) && baseline->valuestring[0] && cJSON_IsString(current) &&
           json_equal(baseline, current);
}

static enum verdict verdict_of(const struct findings *f)
{
    if (f->invalid)
        return VERDICT_INVALID;
    if (f->reasons->child || f->made == 0 || f->made != f->expected)
        return VERDICT_NON_COMPARABLE;
    return f->regression ? VERDICT_REGRESSION : VERDICT_OK;
}

static int build(const struct audit_input *in, const struct policy *p, struct findings *f,
                 struct json_doc *d, struct err *e)
{
    cJSON *made = NULL;

    if (findings_ok(f, e) < 0 || findings_sort_reasons(f, e) < 0)
        return -1;
    json_doc_init_object(d);
    json_add_string(d, NULL, "schema", AUDIT_SCHEMA);
    json_add_string(d, NULL, "verdict", verdict_word(verdict_of(f)));
    json_add_string(d, NULL, "gate", in->policy->gate);
    made = json_add_object(d, NULL, "definition");
    add_hex(d, made, "experiment_sha256", &in->policy->experiment_digest);
    add_hex(d, made, "policy_sha256", &in->policy->policy_digest);
    add_side(d, "baseline", &in->baseline);
    add_reviewed(d, in);
    add_side(d, "current", &in->current);
    json_add_bool(d, NULL, "same_executable", same_executable(in));
    json_add_bool(d, NULL, "same_source", same_source(in));
    json_add_int(d, NULL, "expected_comparisons", (int64_t) f->expected);
    json_add_int(d, NULL, "made_comparisons", (int64_t) f->made);
    add_paths(d, in, p, f);
    (void) json_add(d, NULL, "reasons", STEAL(f->reasons)); /* failure stays in d */
    (void) json_add(d, NULL, "comparisons", STEAL(f->comparisons));
    add_identity(d, f);
    add_coverage(d, in, p, f);
    return 0;
}

enum {
    /* ids, digests and names of the two sides, which runner and server do not call alike */
    SIDES_BYTES = 32 << 10,
    /* how much longer a comparison with other numbers may be than one of a run with itself */
    LATER_BYTES = 100,
};

static size_t lines_of(const struct buf *b)
{
    size_t n = 0;

    for (const char *p = b->data; p && (p = memchr(p, '\n', b->len - (size_t) (p - b->data))); p++)
        n++;
    return n;
}

/* Whether the document, as it is stored, is one that every reader takes. The same findings always
 * get the same answer, whatever the sides are called. */
static bool fits(const cJSON *document, const struct findings *f)
{
    size_t bytes = SIDES_BYTES + (f->self ? f->made * LATER_BYTES : 0);
    const cJSON *part = NULL;

    cJSON_ArrayForEach(part, document) {
        AUTO_BUF struct buf b = {0};

        if (strcmp(part->string, "baseline") == 0 || strcmp(part->string, "current") == 0)
            continue;
        buf_init(&b, LIMIT_JSON_DOCUMENT);
        json_write(&b, part, JSON_PRETTY);
        bytes += b.len + 2 * lines_of(&b) + strlen(part->string) + sizeof "\"\": ,\n";
        if (b.failed || bytes > LIMIT_JSON_DOCUMENT)
            return false;
    }
    return true;
}

int audit_document(const struct audit_input *in, const struct policy *p, struct findings *f,
                   struct audit *out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = {0};
    AUTO_JSON cJSON *made = NULL;
    enum verdict verdict = verdict_of(f); /* before build takes the lists */

    if (!f->over) {
        if (build(in, p, f, &doc, e) < 0)
            return -1;
        made = json_doc_take(&doc, e);
        if (!made)
            return -1;
        f->over = !fits(made, f);
    }
    if (f->over) {
        json_free(STEAL(made));
        json_doc_fini(&doc);
        if (findings_too_many(f, e) < 0)
            return -1;
        verdict = verdict_of(f);
        if (build(in, p, f, &doc, e) < 0)
            return -1;
        made = json_doc_take(&doc, e);
    }
    if (!made)
        return -1;
    out->verdict = verdict;
    out->document = STEAL(made);
    return 0;
}
