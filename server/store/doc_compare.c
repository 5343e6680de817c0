/* A run beside a baseline or another run: the stored comparison that gave its verdict, or one made
 * now for information. */
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/json_in.h"
#include "server/store/doc.h"
#include "server/store/documents.h"
#include "server/store/side.h"

struct compare {
    struct json_doc d;
    struct store *store;
    struct store_run run;
    struct store_run base;          /* the run behind the other side */
    struct store_baseline baseline; /* when the other side is one */
    struct promotion promotion;     /* of the run */
    bool is_baseline;
    bool stored;
    cJSON *audit;
    cJSON *acceptance;
    cJSON *verdict; /* the stored verdict document; NULL when informational */
};

static void compare_fini(struct compare *c)
{
    json_doc_fini(&c->d);
    store_run_fini(&c->run);
    store_run_fini(&c->base);
    store_baseline_fini(&c->baseline);
    json_free(c->audit);
    json_free(c->acceptance);
    json_free(c->verdict);
}

static int absent(struct err *e, const char *text)
{
    return err_set(e, ERR_NOTFOUND, "compare.absent", "%s", text);
}

static int load_other(struct compare *c, struct db *db, const char *other, struct err *e)
{
    c->is_baseline = strncmp(other, "b-", 2) == 0;
    if (c->is_baseline) {
        if (store_baseline_read(db, other, &c->baseline, e) < 0)
            return -1;
        if (!c->baseline.run)
            return absent(e, "imported history is not compared");
        other = c->baseline.run;
    }
    if (store_run_read(db, other, &c->base, e) < 0)
        return -1;
    if (strcmp(c->base.project, c->run.project) != 0 || strcmp(c->base.gate, c->run.gate) != 0)
        return absent(e, "the two are not of the same gate");
    return 0;
}

static int load(struct compare *c, const char *run, const char *other, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};

    if (store_run_look(c->store, run, e) < 0 || store_read_open(c->store, &r, e) < 0 ||
        store_run_read(r.db, run, &c->run, e) < 0 || load_other(c, r.db, other, e) < 0)
        return -1;
    c->stored = c->is_baseline && c->run.baseline && strcmp(c->run.baseline, other) == 0;
    if (doc_stored(r.db, run, STORE_ACCEPTANCE, &c->acceptance, e) < 0)
        return -1;
    if (!c->stored)
        return 0;
    if (doc_stored(r.db, run, STORE_AUDIT, &c->audit, e) < 0 ||
        doc_verdict_now(r.db, &c->run, &c->verdict, e) < 0)
        return -1;
    return c->audit && c->verdict
               ? 0
               : err_set(e, ERR_INTERNAL, "compare.stored", "run %s lacks its comparison", run);
}

/* Now, from the stored evidence of both. */

static int read_side(struct compare *c, const struct store_run *run, struct side *out,
                     struct err *e)
{
    AUTO_ARCHIVE_INDEX struct archive_index *index = NULL;
    AUTO_FD int fd = -1;
    uint64_t size = 0;

    if (store_object_open(c->store, &run->archive, false, &fd, &size, NULL, e) < 0 ||
        blobs_index(store_blobs(c->store), &run->archive, fd, &index, e) < 0 ||
        side_read(fd, index, "", out, e) < 0)
        return err_wrap(e, "run %s", run->run);
    return out->has_manifest && out->has_definition
               ? 0
               : err_set(e, ERR_INTERNAL, "compare.evidence",
                         "evidence without manifest or definition");
}

static int compute(struct compare *c, struct err *e)
{
    AUTO_SIDE struct side base = {.has_manifest = false};
    AUTO_SIDE struct side current = {.has_manifest = false};
    struct audit a = {.document = NULL};
    struct audit_input in = {.policy = &base.definition};
    char base_hex[DIGEST_HEX_SIZE];
    char current_hex[DIGEST_HEX_SIZE];

    if (read_side(c, &c->base, &base, e) < 0 || read_side(c, &c->run, &current, e) < 0)
        return -1;
    digest_hex(&c->base.archive, base_hex);
    digest_hex(&c->run.archive, current_hex);
    in.baseline =
        side_for_audit(&base, c->is_baseline ? c->baseline.id : c->base.run, base_hex, "baseline");
    in.current = side_for_audit(&current, c->run.run, current_hex, ".");
    if (audit_run(&in, &a, e) < 0)
        return -1;
    c->audit = STEAL(a.document);
    audit_fini(&a);
    return 0;
}

/* Writing. */

static int add_baseline(struct compare *c, struct db *db, struct err *e)
{
    AUTO_JSON cJSON *manifest = NULL;
    cJSON *o = json_add_object(&c->d, NULL, "baseline");
    char runner[DOC_RUNNER_SIZE];

    if (doc_runner_name(db, c->base.run, runner, e) < 0 ||
        doc_stored(db, c->base.run, STORE_MANIFEST, &manifest, e) < 0)
        return -1;
    json_add_string(&c->d, o, "id", c->is_baseline ? c->baseline.id : c->base.run);
    json_add_string(&c->d, o, "run", c->base.run);
    json_add_string(&c->d, o, "commit", c->base.commit);
    json_add_string(&c->d, o, "class", c->base.machine_class);
    json_add_string(&c->d, o, "runner", runner);
    doc_time(&c->d, o, "at", c->base.received_us);
    json_add_copy(&c->d, o, "interference", json_get(json_get(manifest, "interference"), "during"));
    if (c->is_baseline) {
        cJSON *reviewed = json_add_object(&c->d, o, "reviewed");

        json_add_string(&c->d, reviewed, "by", c->baseline.reviewer);
        doc_time(&c->d, reviewed, "at", c->baseline.at_us);
        json_add_string(&c->d, reviewed, "reason", c->baseline.reason);
        doc_format(&c->d, o, "url", "/b/%s", c->baseline.id);
    } else {
        json_add_null(&c->d, o, "reviewed");
        doc_format(&c->d, o, "url", "/r/%s", c->base.run);
    }
    return 0;
}

static int add_evidence(struct compare *c, struct db *db, cJSON *parent, bool damaged,
                        struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_MEMBER_LIST);
    cJSON *o = json_add_object(&c->d, parent, "evidence");
    int64_t files = -1; /* the manifest lists every member but itself */
    bool row = false;
    int rc;

    query_int(&q, c->run.id);
    while ((rc = query_step(&q, &row, e)) == 0 && row)
        files++;
    json_add_int(&c->d, o, "files", files < 0 ? 0 : files);
    json_add_int(&c->d, o, "size", (int64_t) c->run.archive_size);
    json_add_bool(&c->d, o, "damaged", damaged);
    return rc;
}

static int add_current(struct compare *c, struct db *db, bool damaged, struct err *e)
{
    AUTO_ATTEMPT_LIST struct attempt_list attempts = {.items = NULL};
    AUTO_JSON cJSON *manifest = NULL;
    cJSON *o = json_add_object(&c->d, NULL, "current");
    char runner[DOC_RUNNER_SIZE];

    if (doc_runner_name(db, c->run.run, runner, e) < 0 ||
        doc_stored(db, c->run.run, STORE_MANIFEST, &manifest, e) < 0)
        return -1;
    json_add_string(&c->d, o, "run", c->run.run);
    json_add_string(&c->d, o, "commit", c->run.commit);
    json_add_string(&c->d, o, "class", c->run.machine_class);
    json_add_string(&c->d, o, "runner", runner);
    doc_time(&c->d, o, "at", c->run.received_us);
    json_add_bool(&c->d, o, "dirty", c->run.dirty);
    json_add_string(&c->d, o, "mode", c->run.mode);
    json_add_copy(&c->d, o, "interference", json_get(json_get(manifest, "interference"), "during"));
    if (c->run.verdict && attempt_list_read(db, c->run.project_id, c->run.gate,
                                            c->run.machine_class, c->run.commit, &attempts, e) < 0)
        return -1;
    attempt_list_write(&attempts, c->run.verdict ? c->run.run : NULL, &c->d, o);
    if (add_evidence(c, db, o, damaged, e) < 0)
        return -1;
    doc_format(&c->d, o, "url", "/r/%s", c->run.run);
    return 0;
}

/* What to do next. */

/* May a reviewer promote the run? Only then it is advised. */
static bool may_be_baseline(const struct compare *c)
{
    return strcmp(c->run.status, "PASS") == 0 && !c->run.dirty && strcmp(c->run.mode, "clean") == 0;
}

static const char again[] = "cleanrun run GATE --at COMMIT";
static const char approve[] =
    "cleanrun-server baseline approve RUN --project PROJECT --gate GATE --reviewer NAME --reason "
    "TEXT";

static void add_approve_step(struct compare *c, cJSON *list, const struct advice_names *names)
{
    if (c->promotion.current)
        doc_step(&c->d, list,
                 "The change was meant: a reviewer made this run the baseline that judges now. The "
                 "run's own verdict stays as it was given.",
                 NULL);
    else
        doc_step_for(&c->d, list, "If the change was meant, a reviewer promotes this run:", approve,
                     names);
}

static void add_refusal_steps(struct compare *c, cJSON *list, const struct advice_names *names)
{
    const cJSON *reason = NULL;
    const char *last = "";
    bool meant = false;

    cJSON_ArrayForEach(reason, json_get(c->verdict, "reasons")) {
        const cJSON *code = json_get(reason, "code");

        if (!cJSON_IsString(code) || strcmp(code->valuestring, last) == 0)
            continue; /* in registry order: equal codes stand together */
        last = code->valuestring;
        doc_advice(&c->d, list, last, names);
        meant =
            meant || strcmp(last, "NC-IDENTITY-DIFFERS") == 0 || strcmp(last, "NC-DEFINITION") == 0;
    }
    if (meant && may_be_baseline(c))
        add_approve_step(c, list, names);
}

static void add_ok_step(struct compare *c, cJSON *list)
{
    if (cJSON_IsObject(json_get(c->d.root, "check")))
        doc_step(&c->d, list,
                 "This run is inside all limits, but the commit's check is not: look at the run "
                 "whose verdict stands. Measuring again does not change it unless the gate's "
                 "`confirm` rule says so; a commit that cures it does.",
                 NULL);
    else
        doc_step(&c->d, list, "Nothing to do: the run is inside all limits.", NULL);
}

static void add_steps(struct compare *c)
{
    cJSON *list = json_add_array(&c->d, NULL, "next");
    struct advice_names names;
    enum verdict v;

    if (!c->stored || !verdict_parse(c->run.verdict, &v))
        return;
    doc_names(c->store, &c->run, &names);
    names.baseline_commit = c->base.commit;
    if (v == VERDICT_OK) {
        add_ok_step(c, list);
    } else if (v == VERDICT_REGRESSION) {
        doc_step_for(&c->d, list, "Measure this commit again on your machine:", again, &names);
        add_approve_step(c, list, &names);
    } else if (v == VERDICT_NON_COMPARABLE) {
        add_refusal_steps(c, list, &names);
    } else if (v == VERDICT_FAIL) {
        doc_step_for(&c->d, list, "Correct what the failed checks name, commit, then measure:",
                     "cleanrun run GATE", &names);
    } else if (v == VERDICT_INVALID) {
        doc_fallen_steps(&c->d, list, &c->run, &names);
    }
}

/* What the verdict rests on as it stands now: not always what the comparison says. */
static void add_verdict(struct compare *c)
{
    const cJSON *description = json_get(c->verdict, "description");
    const cJSON *reasons = json_get(c->verdict, "reasons");

    json_add_string(&c->d, NULL, "verdict", c->stored ? c->run.verdict : NULL);
    json_add_string(&c->d, NULL, "description",
                    cJSON_IsString(description) ? description->valuestring : NULL);
    if (cJSON_IsArray(reasons))
        json_add_copy(&c->d, NULL, "reasons", reasons);
    else
        (void) json_add_array(&c->d, NULL, "reasons"); /* failure stays in d */
}

static void add_policy(struct compare *c)
{
    const cJSON *policy = json_get(c->verdict, "policy");

    if (cJSON_IsObject(policy))
        json_add_copy(&c->d, NULL, "policy", policy);
    else
        json_add_null(&c->d, NULL, "policy");
}

static void add_links(struct compare *c, const char *other)
{
    cJSON *links = json_add_object(&c->d, NULL, "links");

    doc_format(&c->d, links, "json", "/r/%s/vs/%s.json", c->run.run, other);
    doc_format(&c->d, links, "text", "/r/%s/vs/%s.txt", c->run.run, other);
    doc_format(&c->d, links, "markdown", "/r/%s/vs/%s.md", c->run.run, other);
    doc_format(&c->d, links, "run", "/r/%s", c->run.run);
    if (c->is_baseline)
        doc_format(&c->d, links, "baseline", "/b/%s", other);
    else
        doc_format(&c->d, links, "baseline", "/r/%s", other);
}

static int write_compare(struct compare *c, const char *other, bool damaged, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};

    if (store_read_open(c->store, &r, e) < 0)
        return -1;
    json_add_string(&c->d, NULL, "schema", "cleanrun-compare/1");
    json_add_bool(&c->d, NULL, "informational", !c->stored);
    json_add_string(&c->d, NULL, "project", c->run.project);
    json_add_string(&c->d, NULL, "gate", c->run.gate);
    add_verdict(c);
    if (!c->stored)
        json_add_null(&c->d, NULL, "check");
    else if (check_of_stored(r.db, &c->run, &c->d, e) < 0)
        return -1;
    json_add_copy(&c->d, NULL, "audit", c->audit);
    if (c->acceptance)
        json_add_copy(&c->d, NULL, "acceptance", c->acceptance);
    else
        json_add_null(&c->d, NULL, "acceptance");
    if (add_baseline(c, r.db, e) < 0 || add_current(c, r.db, damaged, e) < 0 ||
        promotion_read(NULL, r.db, &c->run, &c->promotion, e) < 0)
        return -1;
    add_policy(c);
    add_steps(c);
    add_links(c, other);
    return 0;
}

int doc_compare(struct store *s, const char *run, const char *other, cJSON **out, struct err *e)
{
    __attribute__((cleanup(compare_fini))) struct compare c = {.store = s};
    cJSON *made;

    json_doc_init_object(&c.d);
    if (load(&c, run, other, e) < 0)
        return -1;
    if (!c.stored && compute(&c, e) < 0)
        return -1;
    if (write_compare(&c, other, c.run.damaged, e) < 0)
        return -1;
    made = json_doc_take(&c.d, e);
    if (!made)
        return -1;
    *out = made;
    return 0;
}
