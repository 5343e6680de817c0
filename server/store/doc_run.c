/* One run: what was measured, what the evidence is, what was answered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "evidence/keyring.h"
#include "evidence/verify.h"
#include "server/store/doc.h"
#include "server/store/documents.h"
#include "server/store/side.h"

#define SAMPLES "samples/process.csv"

struct run_doc {
    struct json_doc d;
    struct store *store;
    struct db *db;
    const struct store_run *run;
    struct promotion promotion;
    int fd; /* of the archive; -1 when damaged */
    char damage[ERR_TEXT_MAX];
};

/* Evidence. */

static void add_damaged_stages(struct run_doc *r, cJSON *evidence)
{
    cJSON *list = json_add_array(&r->d, evidence, "stages");
    char hex[DIGEST_HEX_SIZE];

    digest_hex(&r->run->archive, hex);
    for (unsigned i = 0; i < VERIFY_STAGES; i++) {
        cJSON *s = json_add_object(&r->d, list, NULL);

        json_add_string(&r->d, s, "name", verify_stage_name((enum verify_stage) i));
        json_add_string(&r->d, s, "result", i == VERIFY_DIGEST ? "failed" : "not_run");
        json_add_string(&r->d, s, "code", i == VERIFY_DIGEST ? "IN-HASH" : NULL);
        if (i == VERIFY_DIGEST)
            doc_format(&r->d, s, "detail", "%s, the accepted package had %s", r->damage, hex);
        else
            json_add_null(&r->d, s, "detail");
    }
}

/* The stages as they went, but for the key: it was revoked before the run was received. */
static void add_revoked_stages(struct run_doc *r, cJSON *evidence, const cJSON *stages)
{
    cJSON *list = json_add_array(&r->d, evidence, "stages");
    char since[CLOCK_RFC3339_SIZE];
    const cJSON *stage = NULL;

    clock_rfc3339(r->run->revoked_us, false, since);
    cJSON_ArrayForEach(stage, stages) {
        const cJSON *name = json_get(stage, "name");
        cJSON *s;

        if (!cJSON_IsString(name) ||
            strcmp(name->valuestring, verify_stage_name(VERIFY_SIGNATURE)) != 0) {
            json_add_copy(&r->d, list, NULL, stage);
            continue;
        }
        s = json_add_object(&r->d, list, NULL);
        json_add_string(&r->d, s, "name", name->valuestring);
        json_add_string(&r->d, s, "result", "failed");
        json_add_string(&r->d, s, "code", "IN-KEY");
        doc_format(&r->d, s, "detail",
                   "the runner's key was revoked since %s, before this run was received", since);
    }
}

/* Of the runner's key, in hex as `openssl … | sha256sum` prints it. */
static int add_fingerprint(struct run_doc *r, cJSON *evidence, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(r->db, SQL_RUN_KEY);
    struct public_key *key = NULL;
    const char *pem;

    query_text(&q, r->run->run);
    if (query_one(&q, "such run", e) < 0)
        return -1;
    pem = query_get_text(&q, 0);
    if (public_key_parse(pem, strlen(pem), &key, e) < 0)
        return -1;
    doc_hex(&r->d, evidence, "key_sha256", public_key_fingerprint(key));
    public_key_free(key);
    return 0;
}

static int add_evidence(struct run_doc *r, const char *runner, struct err *e)
{
    AUTO_JSON cJSON *verify = NULL;
    cJSON *o = json_add_object(&r->d, NULL, "evidence");

    if (doc_stored(r->db, r->run->run, STORE_VERIFY, &verify, e) < 0)
        return -1;
    doc_hex(&r->d, o, "archive_sha256", &r->run->archive);
    json_add_int(&r->d, o, "size", (int64_t) r->run->archive_size);
    json_add_string(&r->d, o, "keyid", r->run->keyid);
    if (add_fingerprint(r, o, e) < 0)
        return -1;
    json_add_string(&r->d, o, "runner", runner);
    doc_time(&r->d, o, "received_at", r->run->received_us);
    if (r->fd < 0)
        add_damaged_stages(r, o);
    else if (r->run->revoked_us)
        add_revoked_stages(r, o, json_get(verify, "stages"));
    else
        json_add_copy(&r->d, o, "stages", json_get(verify, "stages"));
    json_add_bool(&r->d, o, "damaged", r->fd < 0);
    return 0;
}

static int add_files(struct run_doc *r, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(r->db, SQL_MEMBER_LIST);
    cJSON *list = json_add_array(&r->d, NULL, "files");
    bool row = false;
    int rc;

    query_int(&q, r->run->id);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        cJSON *o = json_add_object(&r->d, list, NULL);
        const char *path = query_get_text(&q, 0);
        struct digest digest;

        if (!query_get_digest(&q, 4, &digest))
            return err_memory(e, "doc.memory");
        json_add_string(&r->d, o, "path", path);
        json_add_int(&r->d, o, "size", query_get_int(&q, 3));
        doc_hex(&r->d, o, "sha256", &digest);
        json_add_string(&r->d, o, "role", query_get_text(&q, 1));
        doc_format(&r->d, o, "url", "/r/%s/f/%s", r->run->run, path);
    }
    return rc;
}

/* Members. */

/* Bytes of a member; *out NULL when the run has none of this name, or the object is damaged. */
static int read_member(struct run_doc *r, const char *path, size_t max, char **out, size_t *out_len,
                       struct err *e)
{
    AUTO_QUERY struct query q = query_begin(r->db, SQL_MEMBER_GET);
    struct archive_member m = {.name = ""};
    bool row = false;

    *out = NULL;
    query_text(&q, r->run->run);
    query_text(&q, path);
    if (r->fd < 0)
        return 0;
    if (query_step(&q, &row, e) < 0)
        return -1;
    if (!row)
        return 0;
    (void) snprintf(m.name, sizeof m.name, "%s", path); /* a member's name fits */
    m.offset = (uint64_t) query_get_int(&q, 0);
    m.size = (uint64_t) query_get_int(&q, 1);
    if (!query_get_digest(&q, 2, &m.digest))
        return err_memory(e, "doc.memory");
    return side_range(r->fd, &m, max, out, out_len, e);
}

static int add_measured(struct run_doc *r, const cJSON *manifest, struct err *e)
{
    const struct json_limits limits = {.max_bytes = LIMIT_REPORT};
    AUTO_JSON cJSON *definition = NULL;
    AUTO_JSON cJSON *report = NULL;
    AUTO_FREE char *csv = NULL;
    AUTO_FREE char *bytes = NULL;
    const cJSON *name = json_get(manifest, "report");
    struct measured m = {.markers = json_get(manifest, "phase_markers")};
    struct err ignored = ERR_INIT;
    char path[LIMIT_RELNAME + 1];
    size_t len = 0;

    if (doc_stored(r->db, r->run->run, STORE_DEFINITION, &definition, e) < 0 ||
        read_member(r, SAMPLES, LIMIT_SAMPLES_FILE, &csv, &m.csv_len, e) < 0)
        return -1;
    if (cJSON_IsString(name)) {
        (void) snprintf(path, sizeof path, "results/%s",
                        name->valuestring); /* a cut name is not found */
        if (read_member(r, path, LIMIT_REPORT, &bytes, &len, e) < 0)
            return -1;
        if (bytes)
            IGNORE(json_parse(bytes, len, &limits, &report,
                              &ignored)); /* a malformed report shows no windows */
    }
    m.definition = definition;
    m.report = report;
    m.csv = csv;
    return doc_measured(&r->d, &m, e);
}

static void add_links(struct run_doc *r)
{
    cJSON *links = json_add_object(&r->d, NULL, "links");
    const struct store_run *run = r->run;

    doc_format(&r->d, links, "json", "/r/%s.json", run->run);
    doc_format(&r->d, links, "text", "/r/%s.txt", run->run);
    doc_format(&r->d, links, "bundle", "/api/v1/projects/%s/runs/%s/bundle", run->project,
               run->run);
    doc_format(&r->d, links, "attestation", "/api/v1/projects/%s/runs/%s/attestation", run->project,
               run->run);
    doc_format(&r->d, links, "archive", "/r/%s/evidence.tar", run->run);
    if (run->baseline)
        doc_run_url(&r->d, links, "compare", run->run, run->baseline);
    else
        json_add_null(&r->d, links, "compare");
}

/* Commands that check the bundle, one after the other in an empty directory. */
static void add_verify(struct run_doc *r)
{
    const struct store_run *run = r->run;
    const char *base = store_base_url(r->store);
    cJSON *list = json_add_array(&r->d, NULL, "verify");

    if (r->fd < 0) /* it is not given out */
        return;
    doc_format(&r->d, list, NULL,
               "curl -fsS%s %s/api/v1/projects/%s/runs/%s/bundle -o cleanrun-%s.tar",
               run->is_private ? " -H \"Authorization: Bearer $TOKEN\"" : "",
               base && base[0] ? base : "$SERVER", run->project, run->run, run->run);
    doc_format(&r->d, list, NULL, "tar xf cleanrun-%s.tar", run->run);
    doc_format(&r->d, list, NULL, "cd %s", run->run);
    json_add_string(&r->d, list, NULL,
                    "openssl pkey -pubin -in keys/runner.pem -outform DER | sha256sum");
    json_add_string(&r->d, list, NULL,
                    "openssl dgst -sha256 -verify keys/runner.pem -signature "
                    "evidence.tar.statement.sig evidence.tar.statement.pae");
    json_add_string(&r->d, list, NULL, "cleanrun verify evidence.tar --key keys/runner.pem");
}

static int add_stored(struct run_doc *r, const char *key, enum store_document kind, struct err *e)
{
    AUTO_JSON cJSON *doc = NULL;

    if (doc_stored(r->db, r->run->run, kind, &doc, e) < 0)
        return -1;
    if (doc)
        (void) json_add(&r->d, NULL, key, STEAL(doc)); /* failure stays in d */
    else
        json_add_null(&r->d, NULL, key);
    return 0;
}

static int add_verdict(struct run_doc *r, struct err *e)
{
    AUTO_JSON cJSON *verdict = NULL;

    if (doc_verdict_now(r->db, r->run, &verdict, e) < 0)
        return -1;
    if (verdict)
        (void) json_add(&r->d, NULL, "verdict", STEAL(verdict)); /* failure stays in d */
    else
        json_add_null(&r->d, NULL, "verdict");
    return 0;
}

/* "No baseline" of a run may have been overtaken: it is one itself, or there is another one now.
 * Also true for a run that can't be promoted: nothing is advised. */
static bool add_since(struct run_doc *r, cJSON *list, const struct advice_names *names)
{
    static const char again[] = "cleanrun run GATE --at COMMIT";

    if (r->promotion.current)
        doc_step_for(&r->d, list,
                     "This run is the reviewed baseline now; its own verdict stays as it was "
                     "given. For one that compares, measure its commit again:",
                     again, names);
    else if (r->promotion.judge[0])
        doc_step_for(&r->d, list,
                     "A baseline has been reviewed since this run was judged. To be compared with "
                     "it, measure this commit again:",
                     again, names);
    else
        return strcmp(r->run->status, "PASS") != 0 || r->run->dirty;
    return true;
}

/* What to do next, where no comparison says it: there was nothing to compare with, or the evidence
 * is no longer good. */
static void add_steps(struct run_doc *r)
{
    const struct store_run *run = r->run;
    struct advice_names names;
    const cJSON *verdict = json_get(r->d.root, "verdict");
    cJSON *list = json_add_array(&r->d, NULL, "next");
    const cJSON *reason = NULL;

    doc_names(r->store, run, &names);
    if (run->damaged || (run->revoked_us && cJSON_IsObject(verdict))) {
        doc_fallen_steps(&r->d, list, run, &names);
        return;
    }
    if (!cJSON_IsObject(verdict) ||
        (cJSON_IsString(json_get(verdict, "baseline")) && !run->judge_revoked_us))
        return;
    cJSON_ArrayForEach(reason, json_get(verdict, "reasons")) {
        const cJSON *code = json_get(reason, "code");

        if (!cJSON_IsString(code))
            continue;
        if (strcmp(code->valuestring, "NC-BASELINE-NONE") != 0 || !add_since(r, list, &names))
            doc_advice(&r->d, list, code->valuestring, &names);
    }
}

/* Its place among all attempts of its commit as they are now; the verdict says what it was then. */
static int add_attempt(struct run_doc *r, struct err *e)
{
    AUTO_ATTEMPT_LIST struct attempt_list attempts = {.items = NULL};
    const struct store_run *run = r->run;

    if (!run->verdict) {
        json_add_null(&r->d, NULL, "attempt");
        return 0;
    }
    if (attempt_list_read(r->db, run->project_id, run->gate, run->machine_class, run->commit,
                          &attempts, e) < 0)
        return -1;
    attempt_list_write(&attempts, run->run, &r->d, NULL);
    return 0;
}

static int write_run(struct run_doc *r, struct err *e)
{
    const struct store_run *run = r->run;
    AUTO_JSON cJSON *manifest = NULL;
    char runner[DOC_RUNNER_SIZE];

    json_add_string(&r->d, NULL, "schema", "cleanrun-run/1");
    json_add_string(&r->d, NULL, "project", run->project);
    json_add_string(&r->d, NULL, "gate", run->gate);
    json_add_string(&r->d, NULL, "run", run->run);
    json_add_string(&r->d, NULL, "mode", run->mode);
    json_add_string(&r->d, NULL, "class", run->machine_class);
    json_add_string(&r->d, NULL, "status", run->status);
    json_add_string(&r->d, NULL, "commit", run->commit);
    json_add_bool(&r->d, NULL, "dirty", run->dirty);
    if (doc_runner_name(r->db, run->run, runner, e) < 0 ||
        doc_stored(r->db, run->run, STORE_MANIFEST, &manifest, e) < 0)
        return -1;
    json_add_copy(&r->d, NULL, "manifest", manifest);
    if (add_evidence(r, runner, e) < 0 || add_stored(r, "acceptance", STORE_ACCEPTANCE, e) < 0 ||
        add_verdict(r, e) < 0 || add_attempt(r, e) < 0 ||
        promotion_read(&r->d, r->db, run, &r->promotion, e) < 0 ||
        check_of_stored(r->db, run, &r->d, e) < 0 || add_files(r, e) < 0 ||
        add_measured(r, manifest, e) < 0)
        return -1;
    add_steps(r);
    add_verify(r);
    add_links(r);
    return 0;
}

/* The object is looked at before the read transaction: hashing a large one takes a while. */
static int open_object(struct run_doc *r, struct err *e)
{
    struct err why = ERR_INIT;
    uint64_t size = 0;

    if (store_object_open(r->store, &r->run->archive, false, &r->fd, &size, NULL, &why) == 0)
        return 0;
    r->fd = -1;
    if (why.kind == ERR_TRUST)
        (void) snprintf(r->damage, sizeof r->damage, "%s", why.text); /* of the same size */
    else if (why.kind == ERR_NOTFOUND)
        (void) snprintf(r->damage, sizeof r->damage, "stored object is missing");
    else
        return err_set(e, why.kind, why.code, "%s", why.text);
    return 0;
}

/* The run as it is after the look at its object, recorded or not. */
static int read_row(struct run_doc *r, const char *run, struct store_run *out, struct err *e)
{
    char *word = NULL;

    store_run_fini(out);
    if (store_run_read(r->db, run, out, e) < 0)
        return -1;
    if (r->fd >= 0)
        return 0;
    out->damaged = true;
    if (!out->verdict)
        return 0;
    word = strdup(verdict_word(VERDICT_INVALID));
    if (!word)
        return err_memory(e, "doc.memory");
    free(out->verdict);
    out->verdict = word;
    return 0;
}

int doc_run(struct store *s, const char *run, cJSON **out, struct err *e)
{
    AUTO_STORE_RUN struct store_run row = {.id = 0};
    AUTO_STORE_READ struct store_read read = {.db = NULL};
    struct run_doc r = {.store = s, .run = &row, .fd = -1};
    cJSON *made = NULL;
    int rc = -1;

    if (store_run_get(s, run, &row, e) < 0 || open_object(&r, e) < 0)
        return -1;
    json_doc_init_object(&r.d);
    if (store_read_open(s, &read, e) == 0) {
        r.db = read.db;
        if (read_row(&r, run, &row, e) == 0 && write_run(&r, e) == 0)
            made = json_doc_take(&r.d, e);
    }
    if (made) {
        *out = made;
        rc = 0;
    }
    json_doc_fini(&r.d);
    cleanup_fd(&r.fd);
    return rc;
}
