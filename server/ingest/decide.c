/* From verified evidence to a stored answer: the reviewed baseline, the judgement, the signed
 * verdict, one transaction. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "evidence/attest.h"
#include "server/ingest/job.h"
#include "server/ingest/record.h"
#include "server/store/doc.h"

#define REHASH_MAX                                                                                 \
    LIMIT_MIB(64)     /* stored objects up to this size are read once more before the commit */
#define JUDGE_TRIES 3 /* a baseline may be approved while a run is judged */

struct reviewed {
    char *id;
    struct digest archive;
    struct side side;
    bool present;
    char *why_none; /* there is one, but it must not judge; or NULL */
};

static void reviewed_fini(struct reviewed *r)
{
    free(r->id);
    free(r->why_none);
    side_fini(&r->side);
    *r = (struct reviewed){.id = NULL};
}

/* The run behind the baseline would be INVALID today, so it says nothing about another. */
static int name_revoked(const struct query *q, struct reviewed *out, struct err *e)
{
    char since[CLOCK_RFC3339_SIZE];

    clock_rfc3339(query_get_int(q, BASE_REVOKED), false, since);
    if (asprintf(
            &out->why_none,
            "the reviewed baseline %s judges nobody: the key that signed its run is revoked since "
            "%s, before the run was received; another run may be proposed in its place",
            query_get_text(q, BASE_ID), since) >= 0)
        return 0;
    out->why_none = NULL;
    return err_memory(e, "ingest.memory");
}

static int read_current(struct db *d, const struct job *j, const struct manifest *m,
                        struct reviewed *out, struct digest *out_policy,
                        struct digest *out_experiment, struct err *e)
{
    AUTO_QUERY struct query q =
        store_gate_query(d, SQL_BASELINE_CURRENT, j->project.id, m->gate, m->machine_class);
    bool failed = false;
    bool row = false;

    if (query_step(&q, &row, e) < 0)
        return -1;
    if (!row)
        return 0;
    if (query_get_int(&q, BASE_REVOKED) != 0)
        return name_revoked(&q, out, e);
    out->id = query_copy_text(&q, BASE_ID, &failed);
    if (failed || !query_get_digest(&q, BASE_ARCHIVE, &out->archive) ||
        !query_get_digest(&q, BASE_POLICY, out_policy) ||
        !query_get_digest(&q, BASE_EXPERIMENT, out_experiment))
        return err_memory(e, "ingest.memory");
    out->present = true;
    return 0;
}

/* The stored evidence of the baseline is read and hashed again each time: a damaged one judges
 * nobody. */
static int load_reviewed(const struct job *j, struct reviewed *r, struct err *e)
{
    const struct manifest *m = evidence_manifest(j->evidence);
    AUTO_ARCHIVE_INDEX struct archive_index *index = NULL;
    AUTO_FD int fd = -1;
    struct digest policy;
    struct digest experiment;
    uint64_t size = 0;

    {
        AUTO_STORE_READ struct store_read read = {.db = NULL};

        if (store_read_open(j->store, &read, e) < 0 ||
            read_current(read.db, j, m, r, &policy, &experiment, e) < 0)
            return -1;
    }
    if (!r->present)
        return 0;
    if (store_object_open(j->store, &r->archive, true, &fd, &size, NULL, e) < 0 ||
        blobs_index(store_blobs(j->store), &r->archive, fd, &index, e) < 0 ||
        side_read(fd, index, "", &r->side, e) < 0) {
        e->kind = ERR_SYS; /* the server's own trouble, not the upload's */
        return err_wrap(e, "baseline %s cannot judge", r->id);
    }
    if (!r->side.has_manifest || !r->side.has_definition ||
        !digest_equal(&r->side.definition.policy_digest, &policy) ||
        !digest_equal(&r->side.definition.experiment_digest, &experiment))
        return err_set(e, ERR_SYS, "ingest.baseline",
                       "baseline %s is not the one that was reviewed", r->id);
    return 0;
}

static int make_links(const struct job *j, const struct manifest *m, const char *baseline,
                      cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_BUF struct buf b = {.data = NULL};

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
    *a = (struct answer){.verdict = NULL};
}

/* {n, of, previous[]} of a run that comes now. */
static int count_attempts(const struct job *j, const struct manifest *m, cJSON **out, struct err *e)
{
    AUTO_STORE_READ struct store_read read = {.db = NULL};
    AUTO_ATTEMPT_LIST struct attempt_list list = {.items = NULL};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *root = NULL;

    json_doc_init_object(&d);
    if (store_read_open(j->store, &read, e) < 0 ||
        attempt_list_read(read.db, j->project.id, m->gate, m->machine_class, m->commit, &list, e) <
            0)
        return -1;
    attempt_list_write(&list, NULL, &d, NULL);
    root = json_doc_take(&d, e);
    if (!root)
        return -1;
    *out = cJSON_DetachItemFromObjectCaseSensitive(root, "attempt");
    return 0;
}

static int decide(const struct job *j, const struct package *p, const struct reviewed *r,
                  struct answer *a, struct err *e)
{
    const struct manifest *m = evidence_manifest(j->evidence);
    AUTO_JSON cJSON *attempt = NULL;
    AUTO_JSON cJSON *links = NULL;
    struct judge_baseline baseline = {.id = r->id, .side = &r->side, .evidence = r->archive};
    bool counts = judge_has_verdict(m);
    char hex[DIGEST_HEX_SIZE];
    struct verdict_input in = {
        .project = m->project, .gate = m->gate, .run = m->run, .commit = m->commit};

    digest_hex(&j->archive, hex);
    if (judge_run(p, hex, r->present ? &baseline : NULL, r->why_none, &a->judgement, e) < 0)
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
static int sign_verdict(const struct job *j, const struct answer *a, const char *baseline,
                        char **out, size_t *out_len, struct err *e)
{
    const struct manifest *m = evidence_manifest(j->evidence);
    struct digest envelope = digest_of(j->request->envelope, j->request->envelope_len);
    const char *base = store_base_url(j->store);
    AUTO_BUF struct buf run = {.data = NULL};
    AUTO_BUF struct buf policy = {.data = NULL};
    AUTO_BUF struct buf attestation = {.data = NULL};
    struct attest_verdict_input in = {.verdict = verdict_word(a->word),
                                      .archive_digest = &j->archive};

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

    if (!stage || !cJSON_AddStringToObject(stage, "name", "replay") ||
        !cJSON_AddStringToObject(stage, "result", "ok") || !cJSON_AddNullToObject(stage, "code") ||
        !cJSON_AddStringToObject(stage, "detail",
                                 "acceptance and comparison computed again, both equal"))
        return err_memory(e, "ingest.memory");
    if (!cJSON_AddItemToArray(stages, stage))
        return err_memory(e, "ingest.memory");
    stage = NULL;
    return 0;
}

static int write_answer(struct job *j, struct answer *a, const char *baseline, struct err *e)
{
    bool has_verdict = a->word != VERDICT_MAX;

    if (write_document(a, STORE_ACCEPTANCE, a->judgement.acceptance, e) < 0 ||
        write_document(a, STORE_AUDIT, a->judgement.audit, e) < 0 ||
        write_document(a, STORE_VERDICT, has_verdict ? a->verdict : NULL, e) < 0 ||
        write_document(a, STORE_ANSWER, a->verdict, e) < 0 ||
        write_document(a, STORE_VERIFY, j->report.document, e) < 0)
        return -1;
    if (has_verdict &&
        sign_verdict(j, a, baseline, &a->signed_verdict, &a->signed_verdict_len, e) < 0)
        return -1;
    if (evidence_read(j->evidence, MANIFEST_NAME, LIMIT_JSON_DOCUMENT, &a->manifest,
                      &a->manifest_len, e) < 0)
        return -1;
    return evidence_read(j->evidence, "definition.json", LIMIT_JSON_DOCUMENT, &a->definition,
                         &a->definition_len, e);
}

static int still_sound(const struct job *j, struct err *e)
{
    uint64_t size = 0;
    AUTO_FD int fd = -1;

    if (j->size <= REHASH_MAX)
        return blobs_open_rehash(store_blobs(j->store), &j->archive, &fd, &size, e);
    if (!blobs_untouched(store_blobs(j->store), &j->archive, &j->stamp))
        return err_set(e, ERR_BUSY, "ingest.touched",
                       "the stored archive was exchanged meanwhile; send the run again");
    return 0;
}

static void fill_record(const struct job *j, const struct answer *a, const char *baseline,
                        struct record_run *r)
{
    const cJSON *description = json_get(a->verdict, "description");

    r->evidence = j->evidence;
    r->project_id = j->project.id;
    r->received_us = j->received_us;
    r->verdict = a->word == VERDICT_MAX ? NULL : verdict_word(a->word);
    r->description = cJSON_IsString(description) ? description->valuestring : "";
    r->baseline = a->word == VERDICT_MAX ? NULL : baseline;
    for (size_t i = 0; i < STORE_DOCUMENTS; i++)
        r->documents[i] = (struct record_bytes){a->bytes[i].data, a->bytes[i].len};
    r->documents[STORE_MANIFEST] = (struct record_bytes){a->manifest, a->manifest_len};
    r->documents[STORE_DEFINITION] = (struct record_bytes){a->definition, a->definition_len};
    r->documents[STORE_ENVELOPE] =
        (struct record_bytes){j->request->envelope, j->request->envelope_len};
    r->documents[STORE_VERDICT_ENVELOPE] =
        (struct record_bytes){a->signed_verdict, a->signed_verdict_len};
}

/* *out_moved: another baseline is current now, so nothing was written. */
static int commit_run(struct job *j, struct record_run *r, const struct reviewed *judged,
                      bool *out_moved, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    __attribute__((cleanup(reviewed_fini))) struct reviewed now = {.id = NULL};
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
    __attribute__((cleanup(reviewed_fini))) struct reviewed reviewed = {.id = NULL};
    __attribute__((cleanup(answer_fini))) struct answer a = {.verdict = NULL};
    struct record_run r = {.evidence = NULL};
    size_t len = 0;
    int rc;

    if (load_reviewed(j, &reviewed, e) < 0 || decide(j, p, &reviewed, &a, e) < 0 ||
        write_answer(j, &a, reviewed.id, e) < 0 || still_sound(j, e) < 0)
        return -1;
    fill_record(j, &a, reviewed.id, &r);
    if (!job_signer(j, &r.runner_id))
        return err_set(e, ERR_INTERNAL, "ingest.signer", "verified evidence without a signer");
    if (metric_values_collect(a.judgement.definition, &p->side.tree, &r.metrics, e) < 0)
        return -1;
    rc = commit_run(j, &r, &reviewed, out_moved, e);
    metric_values_fini(&r.metrics);
    if (rc < 0 || *out_moved)
        return rc;
    j->out->run = strdup(evidence_manifest(j->evidence)->run);
    j->out->body = buf_take(&a.bytes[STORE_ANSWER], &len);
    j->out->body_len = len;
    j->out->outcome = INGEST_STORED;
    return j->out->run ? 0 : err_memory(e, "ingest.memory");
}

int job_decide(struct job *j, const struct package *p, struct err *e)
{
    bool moved = true;

    if (add_replay_stage(j, e) < 0)
        return -1;
    for (int i = 0; i < JUDGE_TRIES && moved; i++) {
        if (judge_once(j, p, &moved, e) < 0)
            return -1;
    }
    return moved ? err_set(e, ERR_BUSY, "ingest.moved",
                           "the baseline keeps changing; send the run again")
                 : 0;
}
