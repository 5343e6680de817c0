/* The index of a package: every section is made from the loaded runs, so that a verifier makes the
 * same. */
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "runner/runset.h"

/* Why a part is not there. Fixed words: the verifier must arrive at the same. */
#define NO_SOURCE_NOW "not packaged inside the source tree, and no --source was given"
#define NO_EXECUTABLE "no --executable was given"
#define NO_BASELINE "the runs name no common baseline"
#define NO_AUDIT "the run was compared with no baseline"

static void add_hex(struct json_doc *d, cJSON *parent, const char *key, const struct digest *digest)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(digest, hex);
    json_add_string(d, parent, key, hex);
}

static cJSON *add_captured(struct json_doc *d, cJSON *parent, const char *key)
{
    cJSON *o = json_add_object(d, parent, key);

    json_add_string(d, o, "status", "captured");
    return o;
}

static void add_absent(struct json_doc *d, cJSON *parent, const char *key, const char *reason)
{
    cJSON *o = json_add_object(d, parent, key);

    json_add_string(d, o, "status", "absent");
    json_add_string(d, o, "reason", reason);
}

static bool has_shortcoming(const struct runset *s, const char *code)
{
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, s->shortcomings) {
        const cJSON *j = json_get(row, "code");

        if (cJSON_IsString(j) && strcmp(j->valuestring, code) == 0)
            return true;
    }
    return false;
}

static bool passes(const struct runset *s)
{
    return !s->shortcomings || !s->shortcomings->child;
}

static void add_definition(struct json_doc *d, const struct runset *s)
{
    cJSON *o = json_add_object(d, NULL, "definition");

    json_add_string(d, o, "path", RUNSET_DEFINITION);
    add_hex(d, o, "experiment_sha256", &s->definition.experiment_digest);
    add_hex(d, o, "policy_sha256", &s->definition.policy_digest);
}

static void add_sources(struct json_doc *d, const struct runset *s)
{
    bool common = true;

    json_add_copy(d, NULL, "source_at_start", s->start);
    if (s->now)
        json_add_copy(d, add_captured(d, NULL, "source_now"), "source", s->now);
    else
        add_absent(d, NULL, "source_now", NO_SOURCE_NOW);
    for (size_t i = 1; i < s->n; i++)
        common =
            common && strcmp(s->runs[0].manifest.fingerprint, s->runs[i].manifest.fingerprint) == 0;
    json_add_string(d, NULL, "common_source_fingerprint",
                    common ? s->runs[0].manifest.fingerprint : NULL);
}

static void add_executable(struct json_doc *d, const struct runset *s)
{
    const cJSON *name = json_get(json_get(s->runs[0].manifest.document, "executable"), "name");
    cJSON *o;

    if (has_shortcoming(s, "executable"))
        json_add_null(d, NULL, "common_executable_sha256");
    else
        add_hex(d, NULL, "common_executable_sha256", &s->runs[0].manifest.executable_digest);
    if (!s->has_executable) {
        add_absent(d, NULL, "executable", NO_EXECUTABLE);
        return;
    }
    o = add_captured(d, NULL, "executable");
    json_add_string(d, o, "directory", RUNSET_EXECUTABLE);
    json_add_copy(d, o, "name", name);
    json_add_int(d, o, "size", (int64_t) s->executable_size);
    add_hex(d, o, "sha256", &s->executable);
}

static void add_baseline(struct json_doc *d, const struct runset *s)
{
    const struct runset_run *first = &s->runs[0];
    cJSON *o;

    if (!first->reference.present || has_shortcoming(s, "baseline")) {
        add_absent(d, NULL, "baseline", NO_BASELINE);
        return;
    }
    o = add_captured(d, NULL, "baseline");
    json_add_string(d, o, "id", first->reference.id);
    add_hex(d, o, "manifest_sha256", &first->reference.manifest_digest);
    json_add_string(d, o, "path", "run-1/baseline");
    add_hex(d, o, "tree_sha256", &first->baseline_tree);
}

static size_t count(const cJSON *list)
{
    size_t n = 0;
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, list) {
        n++;
    }
    return n;
}

static void add_outcome(struct json_doc *d, cJSON *o, const struct runset_run *r,
                        const cJSON *acceptance)
{
    cJSON *part = json_add_object(d, o, "acceptance");
    const cJSON *check = NULL;
    cJSON *failed;

    json_add_copy(d, part, "verdict", json_get(acceptance, "verdict"));
    json_add_int(d, part, "checks", (int64_t) count(json_get(acceptance, "checks")));
    failed = json_add_array(d, part, "failed");
    cJSON_ArrayForEach(check, json_get(acceptance, "checks")) {
        if (!cJSON_IsTrue(json_get(check, "passed")))
            json_add_copy(d, failed, NULL, json_get(check, "name"));
    }
    if (!r->audit) {
        add_absent(d, o, "audit", NO_AUDIT);
        return;
    }
    part = add_captured(d, o, "audit");
    json_add_string(d, part, "verdict", runset_run_word(r, "audit_status"));
    json_add_copy(d, part, "comparisons", json_get(r->audit, "made_comparisons"));
}

static void add_run(struct json_doc *d, cJSON *list, const struct runset *s, size_t i)
{
    const struct runset_run *r = &s->runs[i];
    cJSON *o = json_add_object(d, list, NULL);
    char name[RUNSET_RUN_NAME_SIZE];

    runset_run_name(i, name);
    json_add_int(d, o, "sequence", (int64_t) i + 1);
    json_add_string(d, o, "run", r->manifest.run);
    json_add_string(d, o, "path", name);
    json_add_string(d, o, "started_at", runset_run_word(r, "started_at"));
    json_add_string(d, o, "finished_at", runset_run_word(r, "finished_at"));
    json_add_string(d, o, "status", manifest_status_name(r->manifest.status));
    json_add_bool(d, o, "dirty", r->manifest.dirty);
    json_add_string(d, o, "source_fingerprint", r->manifest.fingerprint);
    if (r->manifest.has_executable)
        add_hex(d, o, "executable_sha256", &r->manifest.executable_digest);
    else
        json_add_null(d, o, "executable_sha256");
    json_add_string(d, o, "baseline_id", r->reference.present ? r->reference.id : NULL);
    add_hex(d, o, "manifest_sha256", &r->manifest.digest);
    add_hex(d, o, "tree_sha256", &r->tree_digest);
    add_outcome(d, o, r, cJSON_GetArrayItem(s->acceptances, (int) i));
}

static bool is_dirty(const cJSON *block)
{
    return block && !cJSON_IsFalse(json_get(block, "dirty"));
}

static void add_eligibility(struct json_doc *d, const struct runset *s)
{
    cJSON *o = json_add_object(d, NULL, "eligibility");
    bool clean = !is_dirty(s->start) && !is_dirty(s->now);
    bool unchanged = !has_shortcoming(s, "source-start") && !has_shortcoming(s, "source-changed") &&
                     !has_shortcoming(s, "source-now");
    bool complete = s->now && s->has_executable && s->runs[0].reference.present &&
                    !has_shortcoming(s, "baseline");

    for (size_t i = 0; i < s->n; i++) {
        clean = clean && !s->runs[i].manifest.dirty;
        complete = complete && s->runs[i].audit != NULL;
    }
    json_add_bool(d, o, "clean", clean);
    json_add_bool(d, o, "unchanged_source", unchanged);
    json_add_bool(d, o, "no_skips", complete);
    json_add_bool(d, o, "pass", passes(s));
}

static int check_created(const struct runset *s, const char *created_at, struct err *e)
{
    int64_t created_us = 0;

    if (!clock_parse_rfc3339(created_at, &created_us))
        return err_set(e, ERR_TRUST, "runset.created", "created_at is no time");
    for (size_t i = 0; i < s->n; i++) {
        if (created_us < s->runs[i].manifest.finished_us)
            return err_set(e, ERR_TRUST, "runset.created",
                           "created_at lies before the end of run %s", s->runs[i].manifest.run);
    }
    return 0;
}

int runset_index(const struct runset *s, const struct runset_frame *frame, cJSON **out,
                 struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    const struct manifest *m = &s->runs[0].manifest;
    cJSON *made = NULL;
    cJSON *runs;

    if (check_created(s, frame->created_at, e) < 0)
        return -1;
    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", RUNSET_SCHEMA);
    json_add_string(&d, NULL, "created_at", frame->created_at);
    json_add_int(&d, NULL, "required_count", (int64_t) frame->required);
    json_add_string(&d, NULL, "status", passes(s) ? "PASS" : "FAIL");
    json_add_string(&d, NULL, "project", m->project);
    json_add_string(&d, NULL, "gate", m->gate);
    json_add_string(&d, NULL, "class", m->machine_class);
    json_add_int(&d, NULL, "run_count", (int64_t) s->n);
    add_definition(&d, s);
    add_sources(&d, s);
    add_executable(&d, s);
    add_baseline(&d, s);
    runs = json_add_array(&d, NULL, "runs");
    for (size_t i = 0; i < s->n; i++)
        add_run(&d, runs, s, i);
    json_add_copy(&d, NULL, "shortcomings", s->shortcomings);
    add_eligibility(&d, s);
    json_add_copy(&d, NULL, "files", frame->files);
    made = json_doc_take(&d, e);
    if (!made)
        return -1;
    *out = made;
    return 0;
}
