/* One upload from envelope to answer, on the calling thread. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "evidence/dsse.h"
#include "evidence/keyring.h"
#include "evidence/statement.h"
#include "server/ingest/ingest.h"
#include "server/ingest/job.h"
#include "server/ingest/judge.h"
#include "server/store/doc.h"
#include "server/store/documents.h"

void ingest_result_fini(struct ingest_result *r)
{
    free(r->run);
    free(r->body);
    json_free(r->problem);
    *r = (struct ingest_result){.outcome = INGEST_FAILED};
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

    cJSON_ArrayForEach(subject, json_get(j->statement.document, "subject")) {
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
        return err_set(e, ERR_INPUT, "ingest.payload",
                       "the payload type is not " STATEMENT_PAYLOAD_TYPE);
    if (statement_parse(j->envelope.payload, j->envelope.payload_len, &j->statement, e) < 0)
        return -1;
    return find_subject(j)
               ? 0
               : err_set(e, ERR_INPUT, "ingest.subject", "the statement names no archive");
}

static int add_runner(struct job *j, const struct query *q, const char *project, struct err *e)
{
    const char *const projects[] = {project};
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
        return err_memory(e, "ingest.memory");
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
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    bool row = false;
    int rc;

    j->ring = keyring_new();
    j->runners = calloc(LIMIT_KEYS, sizeof *j->runners);
    if (!j->ring || !j->runners)
        return err_memory(e, "ingest.memory");
    if (store_read_open(j->store, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_RUNNERS_OF_PROJECT);
    query_int(&q, j->project.id);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        if (keyring_count(j->ring) >= LIMIT_KEYS)
            return err_set(e, ERR_LIMIT, "ingest.keys", "more than %d runners for one project",
                           LIMIT_KEYS);
        if (add_runner(j, &q, j->request->project, e) < 0)
            return -1;
    }
    return rc;
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
    if (has &&
        store_object_open(j->store, &j->archive, false, &j->fd, &j->size, &j->stamp, &why) == 0 &&
        blobs_index(store_blobs(j->store), &j->archive, j->fd, &j->index, &why) == 0) {
        *out_there = true;
        return 0;
    }
    if (has && why.kind != ERR_NOTFOUND && why.kind != ERR_TRUST)
        return err_set(e, why.kind, why.code, "%s", why.text);
    j->out->outcome = INGEST_NO_BLOB;
    err_set(&j->out->err, ERR_NOTFOUND, "ingest.blob",
            "the archive sha256:%s is not stored for this project%s", hex,
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

const struct keyring_entry *job_signer(const struct job *j, int64_t *out_id)
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

static int count_gates(const struct job *j, const char *machine_class, bool *out_known,
                       int64_t *out_n, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query known = {.statement = NULL};
    AUTO_QUERY struct query count = {.statement = NULL};

    if (store_read_open(j->store, &r, e) < 0)
        return -1;
    known = query_begin(r.db, SQL_GATE_KNOWN);
    query_int(&known, j->project.id);
    query_text(&known, j->request->gate);
    query_text(&known, machine_class);
    if (query_one(&known, "gate", e) < 0)
        return -1;
    *out_known = query_get_int(&known, 0) != 0;
    *out_n = 0;
    if (*out_known)
        return 0;
    count = query_begin(r.db, SQL_GATE_COUNT);
    query_int(&count, j->project.id);
    if (query_one(&count, "gate", e) < 0)
        return -1;
    *out_n = query_get_int(&count, 0);
    return 0;
}

static int no_room(struct job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int no_room(struct job *j, const char *format, ...)
{
    char text[ERR_TEXT_MAX];
    va_list ap;

    va_start(ap, format);
    (void) vsnprintf(text, sizeof text, format, ap); /* may be cut */
    va_end(ap);
    j->out->outcome = INGEST_CONFLICT;
    err_set(&j->out->err, ERR_CONFLICT, "ingest.room", "%s", text);
    return 0;
}

static int count_uploads(const struct job *j, const char *commit, int64_t *out_n, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};

    if (store_read_open(j->store, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_COMMIT_COUNT);
    query_int(&q, j->project.id);
    query_text(&q, commit);
    if (query_one(&q, "commit", e) < 0)
        return -1;
    *out_n = query_get_int(&q, 0);
    return 0;
}

/* What a key has signed may name any gate, and may come any number of times; the check of a commit
 * names every gate there ever was, and every upload: there is room for so many. One more is
 * refused, and not kept as an attempt, which would be one more. */
static int check_room(struct job *j, bool *out_done, struct err *e)
{
    const struct keyring_entry *signer = job_signer(j, NULL);
    const cJSON *commit = json_get(json_get(j->statement.predicate, "source"), "commit");
    bool known = false;
    int64_t n = 0;

    *out_done = false;
    if (!signer || (!j->evidence && j->report.failed_stage <= VERIFY_SIGNATURE)) /* nobody's */
        return 0;
    if (count_gates(j, signer->machine_class, &known, &n, e) < 0)
        return -1;
    if (!known && n >= LIMIT_PROJECT_GATES) {
        *out_done = true;
        return no_room(j,
                       "gate %s in class %s is new, and the project has %" PRId64
                       " gates already (limit %d): nothing was stored; measure one of its gates, "
                       "or use another project",
                       j->request->gate, signer->machine_class, n, LIMIT_PROJECT_GATES);
    }
    if (!cJSON_IsString(commit))
        return 0;
    if (count_uploads(j, commit->valuestring, &n, e) < 0)
        return -1;
    if (n < LIMIT_COMMIT_UPLOADS)
        return 0;
    *out_done = true;
    return no_room(j,
                   "commit %.64s has %" PRId64 " uploads already (limit %d): nothing was stored; "
                   "make a new commit to measure again",
                   commit->valuestring, n, LIMIT_COMMIT_UPLOADS);
}

/* The baseline that the manifest names, when this project has its run: is it that archive?
 * Returns false and a text when another one is stored. */
static bool baseline_is_known(struct job *j, char text[ERR_TEXT_MAX])
{
    const cJSON *named = json_get(evidence_manifest(j->evidence)->document, "baseline");
    const cJSON *id = json_get(named, "id");
    const cJSON *stated = json_get(named, "evidence_sha256");
    AUTO_STORE_RUN struct store_run known = {.id = 0};
    struct err ignored = ERR_INIT;
    char hex[DIGEST_HEX_SIZE];

    if (!cJSON_IsString(id) || strncmp(id->valuestring, "b-", 2) != 0 || !cJSON_IsString(stated) ||
        store_run_get(j->store, id->valuestring + 2, &known, &ignored) < 0 ||
        strcmp(known.project, j->request->project) != 0)
        return true; /* nothing to compare with */
    digest_hex(&known.archive, hex);
    if (strcmp(stated->valuestring, hex) == 0)
        return true;
    (void) snprintf(text, ERR_TEXT_MAX,
                    "the manifest's baseline.evidence_sha256 is %.64s, the archive of %.60s is %s",
                    stated->valuestring, id->valuestring, hex); /* fits */
    return false;
}

static int judge_evidence(struct job *j, struct err *e)
{
    char text[ERR_TEXT_MAX];

    AUTO_PACKAGE struct package p = {.report = NULL};
    AUTO_JSON cJSON *reasons = NULL;

    if (package_read(j->evidence, &p, e) < 0 || audit_check_policy(&p.side.definition, e) < 0 ||
        judge_replay(j->evidence, &p, &reasons, e) < 0)
        return -1;
    if (reasons)
        return job_refuse(j, NULL, NULL, reasons, e);
    if (!baseline_is_known(j, text))
        return job_refuse(j, "IN-AUDIT", text, NULL, e);
    return job_decide(j, &p, e);
}

static int process_valid(struct job *j, struct err *e)
{
    const struct manifest *m = evidence_manifest(j->evidence);
    const cJSON *ticket = json_get(m->document, "ticket");
    struct err why = ERR_INIT;
    bool known = false;

    if (job_known(j, m->run, &known, e) < 0 || known)
        return known ? 0 : -1;
    if (cJSON_IsObject(ticket))
        return job_refuse(j, "IN-TICKET", "this server has issued no such ticket", NULL, e);
    if (j->project.tickets_required)
        return job_refuse(j, "IN-TICKET", "the project takes only runs with a ticket", NULL, e);
    if (judge_evidence(j, &why) == 0)
        return 0;
    /* A definition that cannot judge, or too much of something, is the package's fault. */
    if (why.kind == ERR_INPUT || why.kind == ERR_LIMIT)
        return job_refuse(j, "IN-JSON", why.text, NULL, e);
    *e = why;
    return -1;
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
    if (job_repeated(j, &done, e) < 0 || done)
        return done ? 0 : -1;
    if (open_blob(j, &done, e) < 0 || !done)
        return done || j->out->outcome == INGEST_NO_BLOB ? 0 : -1;
    if (build_keyring(j, e) < 0 || verify(j, e) < 0)
        return -1;
    if (check_room(j, &done, e) < 0 || done)
        return done ? 0 : -1;
    if (!j->evidence)
        return job_refuse_evidence(j, e);
    return process_valid(j, e);
}

/* Where something stands in the commit's check instead of this run's OK, the answer says so
 * ("check"). The stored answer is not touched: it says what was found, this says what holds. */
static int add_check(struct store *s, struct ingest_result *out, struct err *e)
{
    const struct json_limits limits = {.max_bytes = LIMIT_CANONICAL,
                                       .max_tokens = LIMIT_JSON_TOKENS * 4};
    AUTO_STORE_RUN struct store_run run = {.id = 0};
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_BUF struct buf b = {.data = NULL};
    char *bytes;
    size_t len = 0;

    if (json_parse(out->body, out->body_len, &limits, &d.root, e) < 0 ||
        store_read_open(s, &r, e) < 0 || store_run_read(r.db, out->run, &run, e) < 0 ||
        check_of_stored(r.db, &run, &d, e) < 0)
        return -1;
    if (d.failed)
        return err_memory(e, "ingest.memory");
    if (!cJSON_IsObject(json_get(d.root, "check")))
        return 0;
    buf_init(&b, LIMIT_CANONICAL);
    json_write(&b, d.root, JSON_PRETTY);
    if (buf_check(&b, e) < 0)
        return -1;
    bytes = buf_take(&b, &len);
    if (!bytes)
        return err_memory(e, "ingest.memory");
    free(out->body);
    out->body = bytes;
    out->body_len = len;
    return 0;
}

void ingest_process(struct store *s, const struct ingest_request *r, int64_t received_us,
                    struct ingest_result *out)
{
    struct job j = {.store = s, .request = r, .received_us = received_us, .out = out, .fd = -1};
    struct err e = ERR_INIT;

    *out = (struct ingest_result){.outcome = INGEST_FAILED};
    if (process(&j, &e) < 0 ||
        ((out->outcome == INGEST_STORED || out->outcome == INGEST_REPEATED) &&
         add_check(s, out, &e) < 0)) {
        ingest_result_fini(out);
        out->outcome = INGEST_FAILED;
        out->err = e;
    }
    job_fini(&j);
}
