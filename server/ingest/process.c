/* One upload from envelope to answer, on the calling thread. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/text.h"
#include "evidence/attest.h"
#include "evidence/dsse.h"
#include "evidence/keyring.h"
#include "evidence/statement.h"
#include "server/ingest/ingest.h"
#include "server/ingest/job.h"
#include "server/ingest/judge.h"
#include "server/ingest/record.h"
#include "server/store/doc.h"

#define REHASH_MAX LIMIT_MIB(64) /* stored objects up to this size are read once more before the commit */
#define JUDGE_TRIES 3            /* a baseline may be approved while a run is judged */

void ingest_result_fini(struct ingest_result *r)
{
    free(r->run);
    free(r->body);
    json_free(r->problem);
    *r = (struct ingest_result){ .outcome = INGEST_FAILED };
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "ingest.memory", "out of memory");
}

static void job_fini(struct job *j)
{
    dsse_fini(&j->envelope);
    statement_fini(&j->statement);
    keyring_free(j->ring);
    free(j->runners);
    cleanup_fd(&j->fd);
    archive_index_free(j->index);
    verify_report_fini(&j->report);
    evidence_free(j->evidence);
}

/* What the statement says before anything is believed: which archive it is about. */
static bool find_subject(struct job *j)
{
    const cJSON *subject = NULL;
    const cJSON *first = NULL;

    cJSON_ArrayForEach(subject, json_get(j->statement.document, "subject"))
    {
        const cJSON *name = json_get(subject, "name");
        const cJSON *hex = json_get(json_get(subject, "digest"), "sha256");

        if (!cJSON_IsString(hex))
            continue;
        if (cJSON_IsString(name) && strcmp(name->valuestring, STATEMENT_ARCHIVE_NAME) == 0) {
            first = hex;
            break;
        }
        if (!first)
            first = hex;
    }
    j->has_archive = first && digest_parse(first->valuestring, &j->archive);
    return j->has_archive;
}

/* -1 with ERR_INPUT or ERR_LIMIT when the body is no statement of ours. */
static int read_envelope(struct job *j, struct err *e)
{
    if (dsse_parse(j->request->envelope, j->request->envelope_len, &j->envelope, e) < 0)
        return -1;
    if (strcmp(j->envelope.payload_type, STATEMENT_PAYLOAD_TYPE) != 0)
        return err_set(e, ERR_INPUT, "ingest.payload", "the payload type is not " STATEMENT_PAYLOAD_TYPE);
    if (statement_parse(j->envelope.payload, j->envelope.payload_len, &j->statement, e) < 0)
        return -1;
    return find_subject(j) ? 0 : err_set(e, ERR_INPUT, "ingest.subject", "the statement names no archive");
}

static int add_runner(struct job *j, const struct query *q, const char *project, struct err *e)
{
    const char *const projects[] = { project };
    const char *pem = query_get_text(q, 3);
    struct public_key *key = NULL;
    struct keyring_entry entry = {
        .name = query_get_text(q, 1),
        .machine_class = query_get_text(q, 2),
        .projects = projects,
        .n_projects = 1,
        .not_before_us = query_get_int(q, 4),
        .not_after_us = query_get_int(q, 5),
        .revoked_since_us = query_get_int(q, 6),
    };

    if (!pem || !entry.name || !entry.machine_class)
        return no_memory(e);
    if (public_key_parse(pem, strlen(pem), &key, e) < 0)
        return err_wrap(e, "key of runner '%s'", entry.name);
    if (keyring_add(j->ring, key, &entry, e) < 0)
        return -1;
    j->runners[keyring_count(j->ring) - 1] = query_get_int(q, 0);
    return 0;
}

/* The keys of the project's runners as they are registered now. */
static int build_keyring(struct job *j, struct err *e)
{
    AUTO_STORE_READ struct store_read r = { .db = NULL };
    AUTO_QUERY struct query q = { .statement = NULL };
    bool row = false;
    int rc;

    j->ring = keyring_new();
    j->runners = calloc(LIMIT_KEYS, sizeof *j->runners);
    if (!j->ring || !j->runners)
        return no_memory(e);
    if (store_read_open(j->store, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_RUNNERS_OF_PROJECT);
    query_int(&q, j->project.id);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        if (keyring_count(j->ring) >= LIMIT_KEYS)
            return err_set(e, ERR_LIMIT, "ingest.keys", "more than %d runners for one project", LIMIT_KEYS);
        if (add_runner(j, &q, j->request->project, e) < 0)
            return -1;
    }
    return rc;
}

static int take_body(struct store *s, const char *run, struct ingest_result *out, struct err *e)
{
    char *body = NULL;
    size_t len = 0;

    if (store_run_document(s, run, STORE_ANSWER, &body, &len, e) < 0)
        return -1;
    out->run = strdup(run);
    if (!out->run) {
        free(body);
        return no_memory(e);
    }
    out->body = body;
    out->body_len = len;
    return 0;
}

static void fill_conflict(struct job *j, const struct store_run *known)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(&known->archive, hex);
    j->out->outcome = INGEST_CONFLICT;
    err_set(&j->out->err, ERR_CONFLICT, "ingest.conflict", "run %s is taken by the archive with SHA-256 %s", known->run,
            hex);
}

/* *out_done: the run is known, and the result says how it relates. */
static int check_known(struct job *j, const char *run, bool *out_done, struct err *e)
{
    AUTO_STORE_RUN struct store_run known = { .id = 0 };
    struct err why = ERR_INIT;

    *out_done = false;
    if (store_run_get(j->store, run, &known, &why) < 0)
        return why.kind == ERR_NOTFOUND ? 0 : err_set(e, why.kind, why.code, "%s", why.text);
    *out_done = true;
    if (!digest_equal(&known.archive, &j->archive) || strcmp(known.project, j->request->project) != 0 ||
        strcmp(known.gate, j->request->gate) != 0) {
        fill_conflict(j, &known);
        return 0;
    }
    j->out->outcome = INGEST_REPEATED;
    return take_body(j->store, run, j->out, e);
}

/* The very bytes that were accepted before need no second look, whatever became of the key since. */
static int check_repeated(struct job *j, bool *out_done, struct err *e)
{
    const cJSON *run = json_get(j->statement.predicate, "runId");
    AUTO_STORE_RUN struct store_run known = { .id = 0 };
    AUTO_FREE char *stored = NULL;
    size_t len = 0;
    struct err why = ERR_INIT;

    *out_done = false;
    if (!cJSON_IsString(run) || !text_is_run_id(run->valuestring))
        return 0;
    if (store_run_get(j->store, run->valuestring, &known, &why) < 0 ||
        store_run_document(j->store, run->valuestring, STORE_ENVELOPE, &stored, &len, &why) < 0)
        return why.kind == ERR_NOTFOUND ? 0 : err_set(e, why.kind, why.code, "%s", why.text);
    if (!digest_equal(&known.archive, &j->archive) || strcmp(known.project, j->request->project) != 0 ||
        strcmp(known.gate, j->request->gate) != 0 || len != j->request->envelope_len ||
        memcmp(stored, j->request->envelope, len) != 0)
        return 0;
    *out_done = true;
    j->out->outcome = INGEST_REPEATED;
    return take_body(j->store, run->valuestring, j->out, e);
}

static int open_blob(struct job *j, bool *out_there, struct err *e)
{
    struct err why = ERR_INIT;
    bool has = false;
    char hex[DIGEST_HEX_SIZE];

    *out_there = false;
    digest_hex(&j->archive, hex);
    if (store_blob_has(j->store, j->project.id, &j->archive, &has, e) < 0)
        return -1;
    if (has && blobs_open(store_blobs(j->store), &j->archive, &j->fd, &j->size, &j->stamp, &why) == 0 &&
        blobs_index(store_blobs(j->store), &j->archive, j->fd, &j->index, &why) == 0) {
        *out_there = true;
        return 0;
    }
    if (has && why.kind != ERR_NOTFOUND && why.kind != ERR_TRUST)
        return err_set(e, why.kind, why.code, "%s", why.text);
    j->out->outcome = INGEST_NO_BLOB;
    err_set(&j->out->err, ERR_NOTFOUND, "ingest.blob", "the archive sha256:%s is not stored for this project%s", hex,
            has ? " in a sound state; upload it again" : "; upload it first");
    return 0;
}

static int verify(struct job *j, struct err *e)
{
    const struct verify_input in = {
        .archive_fd = j->fd,
        .archive_digest = &j->archive,
        .index = j->index,
        .envelope = j->request->envelope,
        .envelope_len = j->request->envelope_len,
        .keyring = j->ring,
        .project = j->request->project,
        .gate = j->request->gate,
        .now_us = j->received_us,
    };

    return evidence_verify(&in, &j->evidence, &j->report, e);
}

/* The runner that made the signature; only after that stage was ok. */
static const struct keyring_entry *signer(const struct job *j, int64_t *out_id)
{
    const cJSON *keyid = json_get(j->report.document, "keyid");
    size_t i;

    if (!cJSON_IsString(keyid))
        return NULL;
    i = keyring_index(j->ring, keyid->valuestring);
    if (i >= keyring_count(j->ring))
        return NULL;
    if (out_id)
        *out_id = j->runners[i];
    return keyring_entry(j->ring, i);
}

const struct keyring_entry *job_signer(const struct job *j)
{
    return signer(j, NULL);
}

/* Judging. */

struct reviewed {
    char *id;
    struct digest archive;
    struct side side;
    bool present;
};

static void reviewed_fini(struct reviewed *r)
{
    free(r->id);
    side_fini(&r->side);
    *r = (struct reviewed){ .id = NULL };
}

static int read_current(struct db *d, const struct job *j, const struct manifest *m, struct reviewed *out,
                        struct digest *out_policy, struct digest *out_experiment, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BASELINE_CURRENT);
    bool failed = false;
    bool row = false;

    query_int(&q, j->project.id);
    query_text(&q, m->gate);
    query_text(&q, m->machine_class);
    if (query_step(&q, &row, e) < 0)
        return -1;
    if (!row)
        return 0;
    out->id = query_copy_text(&q, BASE_ID, &failed);
    if (failed || !query_get_digest(&q, BASE_ARCHIVE, &out->archive) || !query_get_digest(&q, BASE_POLICY, out_policy) ||
        !query_get_digest(&q, BASE_EXPERIMENT, out_experiment))
        return no_memory(e);
    out->present = true;
    return 0;
}

/* The stored evidence of the baseline is read and hashed again each time: a damaged one judges nobody. */
static int load_reviewed(const struct job *j, struct reviewed *r, struct err *e)
{
    const struct manifest *m = evidence_manifest(j->evidence);
    AUTO_STORE_READ struct store_read read = { .db = NULL };
    AUTO_ARCHIVE_INDEX struct archive_index *index = NULL;
    AUTO_FD int fd = -1;
    struct digest policy;
    struct digest experiment;
    uint64_t size = 0;

    if (store_read_open(j->store, &read, e) < 0 || read_current(read.db, j, m, r, &policy, &experiment, e) < 0)
        return -1;
    if (!r->present)
        return 0;
    if (blobs_open_rehash(store_blobs(j->store), &r->archive, &fd, &size, e) < 0 ||
        blobs_index(store_blobs(j->store), &r->archive, fd, &index, e) < 0 || side_read(fd, index, "", &r->side, e) < 0) {
        e->kind = ERR_SYS; /* the server's own trouble, not the upload's */
        return err_wrap(e, "baseline %s cannot judge", r->id);
    }
    if (!r->side.has_manifest || !r->side.has_definition ||
        !digest_equal(&r->side.definition.policy_digest, &policy) ||
        !digest_equal(&r->side.definition.experiment_digest, &experiment))
        return err_set(e, ERR_SYS, "ingest.baseline", "baseline %s is not the one that was reviewed", r->id);
    return 0;
}

static int make_links(const struct job *j, const struct manifest *m, const char *baseline, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d;
    AUTO_BUF struct buf b = { .data = NULL };

    json_doc_init_object(&d);
    buf_init(&b, LIMIT_KIB(4));
    buf_printf(&b, "/api/v1/projects/%s/runs/%s/verdict", j->request->project, m->run);
    json_add_string(&d, NULL, "self", b.data);
    buf_clear(&b);
    buf_printf(&b, "/r/%s", m->run);
    json_add_string(&d, NULL, "run", b.data);
    if (baseline)
        buf_printf(&b, "/vs/%s", baseline);
    json_add_string(&d, NULL, "page", b.data);
    buf_clear(&b);
    buf_printf(&b, "/api/v1/projects/%s/runs/%s/attestation", j->request->project, m->run);
    json_add_string(&d, NULL, "attestation", b.data);
    if (buf_check(&b, e) < 0)
        return -1;
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}

/* What is written and answered. */
struct answer {
    struct judgement judgement;
    cJSON *verdict;
    enum verdict word;
    struct buf bytes[STORE_DOCUMENTS]; /* of computed documents */
    char *manifest, *definition, *signed_verdict;
    size_t manifest_len, definition_len, signed_verdict_len;
};

static void answer_fini(struct answer *a)
{
    judgement_fini(&a->judgement);
    json_free(a->verdict);
    for (size_t i = 0; i < STORE_DOCUMENTS; i++)
        buf_fini(&a->bytes[i]);
    free(a->manifest);
    free(a->definition);
    free(a->signed_verdict);
    *a = (struct answer){ .verdict = NULL };
}

/* {n, of, previous[]} of a run that comes now. */
static int count_attempts(const struct job *j, const struct manifest *m, cJSON **out, struct err *e)
{
    AUTO_STORE_READ struct store_read read = { .db = NULL };
    AUTO_ATTEMPT_LIST struct attempt_list list = { .items = NULL };
    AUTO_JSON_DOC struct json_doc d;
    AUTO_JSON cJSON *root = NULL;

    json_doc_init_object(&d);
    if (store_read_open(j->store, &read, e) < 0 ||
        attempt_list_read(read.db, j->project.id, m->gate, m->machine_class, m->commit, &list, e) < 0)
        return -1;
    attempt_list_write(&list, NULL, &d, NULL);
    root = json_doc_take(&d, e);
    if (!root)
        return -1;
    *out = cJSON_DetachItemFromObjectCaseSensitive(root, "attempt");
    return 0;
}

static int decide(const struct job *j, const struct package *p, const struct reviewed *r, struct answer *a, struct err *e)
{
    const struct manifest *m = evidence_manifest(j->evidence);
    AUTO_JSON cJSON *attempt = NULL;
    AUTO_JSON cJSON *links = NULL;
    struct judge_baseline baseline = { .id = r->id, .side = &r->side, .evidence = r->archive };
    bool counts = judge_has_verdict(m);
    char hex[DIGEST_HEX_SIZE];
    struct verdict_input in = { .project = m->project, .gate = m->gate, .run = m->run, .commit = m->commit };

    digest_hex(&j->archive, hex);
    if (judge_run(p, hex, r->present ? &baseline : NULL, &a->judgement, e) < 0)
        return -1;
    if (counts && count_attempts(j, m, &attempt, e) < 0)
        return -1;
    if (make_links(j, m, counts ? r->id : NULL, &links, e) < 0)
        return -1;
    in.mode = m->status == MANIFEST_BUILD_ONLY ? "build-only" : m->mode;
    in.machine_class = m->machine_class;
    in.baseline = counts ? r->id : NULL;
    in.attempt = attempt;
    in.acceptance = a->judgement.acceptance;
    in.audit = a->judgement.audit;
    in.links = links;
    in.policy_note = a->judgement.policy;
    in.no_ticket = !cJSON_IsObject(json_get(m->document, "ticket"));
    return verdict_document(&in, &a->word, &a->verdict, e);
}

static int write_document(struct answer *a, enum store_document kind, const cJSON *j, struct err *e)
{
    struct buf *b = &a->bytes[kind];

    if (!j)
        return 0;
    buf_init(b, LIMIT_CANONICAL);
    json_write(b, j, JSON_PRETTY);
    return buf_check(b, e);
}

/* The server's own statement about the verdict, kept as signed. */
static int sign_verdict(const struct job *j, const struct answer *a, const char *baseline, char **out, size_t *out_len,
                        struct err *e)
{
    const struct manifest *m = evidence_manifest(j->evidence);
    struct digest envelope = digest_of(j->request->envelope, j->request->envelope_len);
    const char *base = store_base_url(j->store);
    AUTO_BUF struct buf run = { .data = NULL };
    AUTO_BUF struct buf policy = { .data = NULL };
    AUTO_BUF struct buf attestation = { .data = NULL };
    struct attest_verdict_input in = { .verdict = verdict_word(a->word), .archive_digest = &j->archive };

    buf_init(&run, LIMIT_KIB(4));
    buf_init(&policy, LIMIT_KIB(4));
    buf_init(&attestation, LIMIT_KIB(4));
    buf_printf(&run, "%s/r/%s", base, m->run);
    if (baseline)
        buf_printf(&policy, "%s/b/%s", base, baseline);
    else
        buf_printf(&policy, "%s/p/%s/%s", base, m->project, m->gate);
    buf_printf(&attestation, "%s/api/v1/projects/%s/runs/%s/attestation", base, m->project, m->run);
    if (buf_check(&run, e) < 0 || buf_check(&policy, e) < 0 || buf_check(&attestation, e) < 0)
        return -1;
    in.commit = m->dirty ? NULL : m->commit;
    in.verifier_id = base[0] ? base : "urn:cleanrun:server";
    in.resource_uri = run.data;
    in.policy_uri = policy.data;
    in.policy_digest = &a->judgement.definition->policy_digest;
    in.envelope_uri = attestation.data;
    in.envelope_digest = &envelope;
    in.baseline = baseline;
    in.reasons = json_get(a->verdict, "reasons");
    in.verified_at_us = j->received_us;
    return attest_verdict(&in, store_key(j->store), out, out_len, e);
}

static int add_replay_stage(struct job *j, struct err *e)
{
    AUTO_JSON cJSON *stage = cJSON_CreateObject();
    cJSON *stages = cJSON_GetObjectItemCaseSensitive(j->report.document, "stages");

    if (!stage || !cJSON_AddStringToObject(stage, "name", "replay") || !cJSON_AddStringToObject(stage, "result", "ok") ||
        !cJSON_AddNullToObject(stage, "code") ||
        !cJSON_AddStringToObject(stage, "detail", "acceptance and comparison computed again, both equal"))
        return no_memory(e);
    if (!cJSON_AddItemToArray(stages, stage))
        return no_memory(e);
    stage = NULL;
    return 0;
}

static int write_answer(struct job *j, struct answer *a, const char *baseline, struct err *e)
{
    bool has_verdict = a->word != VERDICT_MAX;

    if (write_document(a, STORE_ACCEPTANCE, a->judgement.acceptance, e) < 0 ||
        write_document(a, STORE_AUDIT, a->judgement.audit, e) < 0 ||
        write_document(a, STORE_VERDICT, has_verdict ? a->verdict : NULL, e) < 0 ||
        write_document(a, STORE_ANSWER, a->verdict, e) < 0 || write_document(a, STORE_VERIFY, j->report.document, e) < 0)
        return -1;
    if (has_verdict && sign_verdict(j, a, baseline, &a->signed_verdict, &a->signed_verdict_len, e) < 0)
        return -1;
    if (evidence_read(j->evidence, MANIFEST_NAME, LIMIT_JSON_DOCUMENT, &a->manifest, &a->manifest_len, e) < 0)
        return -1;
    return evidence_read(j->evidence, "definition.json", LIMIT_JSON_DOCUMENT, &a->definition, &a->definition_len, e);
}

static int still_sound(const struct job *j, struct err *e)
{
    uint64_t size = 0;
    AUTO_FD int fd = -1;

    if (j->size <= REHASH_MAX)
        return blobs_open_rehash(store_blobs(j->store), &j->archive, &fd, &size, e);
    if (!blobs_untouched(store_blobs(j->store), &j->archive, &j->stamp))
        return err_set(e, ERR_BUSY, "ingest.touched", "the stored archive was exchanged meanwhile; send the run again");
    return 0;
}

static void fill_record(const struct job *j, const struct answer *a, const char *baseline, struct record_run *r)
{
    const cJSON *description = json_get(a->verdict, "description");

    r->evidence = j->evidence;
    r->project_id = j->project.id;
    r->received_us = j->received_us;
    r->verdict = a->word == VERDICT_MAX ? NULL : verdict_word(a->word);
    r->description = cJSON_IsString(description) ? description->valuestring : "";
    r->baseline = a->word == VERDICT_MAX ? NULL : baseline;
    for (size_t i = 0; i < STORE_DOCUMENTS; i++)
        r->documents[i] = (struct record_bytes){ a->bytes[i].data, a->bytes[i].len };
    r->documents[STORE_MANIFEST] = (struct record_bytes){ a->manifest, a->manifest_len };
    r->documents[STORE_DEFINITION] = (struct record_bytes){ a->definition, a->definition_len };
    r->documents[STORE_ENVELOPE] = (struct record_bytes){ j->request->envelope, j->request->envelope_len };
    r->documents[STORE_VERDICT_ENVELOPE] = (struct record_bytes){ a->signed_verdict, a->signed_verdict_len };
}

/* *out_moved: another baseline is current now, so nothing was written. */
static int commit_run(struct job *j, struct record_run *r, const struct reviewed *judged, bool *out_moved, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = { .db = NULL };
    __attribute__((cleanup(reviewed_fini))) struct reviewed now = { .id = NULL };
    struct digest policy;
    struct digest experiment;

    if (store_write_open(j->store, &w, e) < 0 ||
        read_current(w.db, j, evidence_manifest(j->evidence), &now, &policy, &experiment, e) < 0)
        return -1;
    *out_moved = now.present != judged->present || (now.present && strcmp(now.id, judged->id) != 0);
    if (*out_moved)
        return 0;
    if (record_run_add(w.db, r, e) < 0)
        return -1;
    return store_write_close(&w, e);
}

static int judge_once(struct job *j, const struct package *p, bool *out_moved, struct err *e)
{
    __attribute__((cleanup(reviewed_fini))) struct reviewed reviewed = { .id = NULL };
    __attribute__((cleanup(answer_fini))) struct answer a = { .verdict = NULL };
    struct record_run r = { .evidence = NULL };
    size_t len = 0;
    int rc;

    if (load_reviewed(j, &reviewed, e) < 0 || decide(j, p, &reviewed, &a, e) < 0 ||
        write_answer(j, &a, reviewed.id, e) < 0 || still_sound(j, e) < 0)
        return -1;
    fill_record(j, &a, reviewed.id, &r);
    if (!signer(j, &r.runner_id))
        return err_set(e, ERR_INTERNAL, "ingest.signer", "verified evidence without a signer");
    if (record_metrics_collect(a.judgement.definition, &p->side.tree, &r.metrics, e) < 0)
        return -1;
    rc = commit_run(j, &r, &reviewed, out_moved, e);
    record_metrics_fini(&r.metrics);
    if (rc < 0 || *out_moved)
        return rc;
    j->out->run = strdup(evidence_manifest(j->evidence)->run);
    j->out->body = buf_take(&a.bytes[STORE_ANSWER], &len);
    j->out->body_len = len;
    j->out->outcome = INGEST_STORED;
    return j->out->run ? 0 : no_memory(e);
}

static int judge(struct job *j, const struct package *p, struct err *e)
{
    bool moved = true;

    if (add_replay_stage(j, e) < 0)
        return -1;
    for (int i = 0; i < JUDGE_TRIES && moved; i++) {
        if (judge_once(j, p, &moved, e) < 0)
            return -1;
    }
    return moved ? err_set(e, ERR_BUSY, "ingest.moved", "the baseline keeps changing; send the run again") : 0;
}

static int process_valid(struct job *j, struct err *e)
{
    AUTO_PACKAGE struct package p = { .report = NULL };
    AUTO_JSON cJSON *reasons = NULL;
    const struct manifest *m = evidence_manifest(j->evidence);
    const cJSON *ticket = json_get(m->document, "ticket");
    bool known = false;

    if (check_known(j, m->run, &known, e) < 0 || known)
        return known ? 0 : -1;
    if (cJSON_IsObject(ticket))
        return job_refuse(j, "IN-TICKET", "this server has issued no such ticket", NULL, e);
    if (j->project.tickets_required)
        return job_refuse(j, "IN-TICKET", "the project takes only runs with a ticket", NULL, e);
    if (package_read(j->evidence, &p, e) < 0 || judge_replay(j->evidence, &p, &reasons, e) < 0)
        return -1;
    if (reasons)
        return job_refuse(j, NULL, NULL, reasons, e);
    return judge(j, &p, e);
}

static int process(struct job *j, struct err *e)
{
    struct err why = ERR_INIT;
    bool done = false;

    if (store_project_get(j->store, j->request->project, &j->project, e) < 0)
        return -1;
    if (read_envelope(j, &why) < 0) {
        if (why.kind == ERR_NOMEM)
            return err_set(e, why.kind, why.code, "%s", why.text);
        return job_refuse_unreadable(j, why.text, e);
    }
    if (j->request->archive)
        j->archive = *j->request->archive;
    if (check_repeated(j, &done, e) < 0 || done)
        return done ? 0 : -1;
    if (open_blob(j, &done, e) < 0 || !done)
        return done || j->out->outcome == INGEST_NO_BLOB ? 0 : -1;
    if (build_keyring(j, e) < 0 || verify(j, e) < 0)
        return -1;
    if (!j->evidence)
        return job_refuse_evidence(j, e);
    return process_valid(j, e);
}

void ingest_process(struct store *s, const struct ingest_request *r, int64_t received_us, struct ingest_result *out)
{
    struct job j = { .store = s, .request = r, .received_us = received_us, .out = out, .fd = -1 };
    struct err e = ERR_INIT;

    *out = (struct ingest_result){ .outcome = INGEST_FAILED };
    if (process(&j, &e) < 0) {
        ingest_result_fini(out);
        out->outcome = INGEST_FAILED;
        out->err = e;
    }
    job_fini(&j);
}
