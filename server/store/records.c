/* Rows of the store as structs: projects, tokens, blobs, runs, documents, members, baselines. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "audit/verdict.h"
#include "base/clock.h"
#include "server/store/store_private.h"

int store_project_read(struct db *d, const char *name, struct store_project *out, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_PROJECT_GET);

    query_text(&q, name);
    if (query_one(&q, "such project", e) < 0)
        return err_wrap(e, "'%s'", name);
    *out = (struct store_project){
        .id = query_get_int(&q, 0),
        .is_private = query_get_int(&q, 1) != 0,
        .tickets_required = strcmp(query_get_text(&q, 2), "required") == 0,
        .deadline_s = query_get_int(&q, 3),
    };
    return 0;
}

int store_project_get(struct store *s, const char *name, struct store_project *out, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};

    if (store_read_open(s, &r, e) < 0)
        return -1;
    return store_project_read(r.db, name, out, e);
}

int store_token_find(struct store *s, const struct digest *hash, struct store_token *out,
                     struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    struct store_token token = {.found = false};
    bool row = false;

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_TOKEN_FIND);
    query_digest(&q, hash);
    if (query_step(&q, &row, e) < 0)
        return -1;
    if (row) {
        const char *name = query_get_text(&q, 0);

        token.found = true;
        token.scopes = (unsigned) query_get_int(&q, 1);
        token.all_projects = query_is_null(&q, 2);
        token.project_id = query_get_int(&q, 2);
        memcpy(token.name, name, strnlen(name, sizeof token.name - 1));
    }
    *out = token;
    return 0;
}

int store_blob_has(struct store *s, int64_t project_id, const struct digest *digest, bool *out,
                   struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_BLOB_GET);
    query_int(&q, project_id);
    query_digest(&q, digest);
    return query_step(&q, out, e);
}

static int blob_known(struct db *d, int64_t project_id, const struct digest *digest, bool *out,
                      struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BLOB_GET);

    query_int(&q, project_id);
    query_digest(&q, digest);
    return query_step(&q, out, e);
}

int store_blob_put(struct store *s, int64_t project_id, const struct digest *digest, uint64_t size,
                   bool *out_new, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    bool known = false;

    if (store_write_open(s, &w, e) < 0 || blob_known(w.db, project_id, digest, &known, e) < 0)
        return -1;
    /* Collected between its rename and this transaction; collecting needs the same lock. */
    if (!blobs_exists(store_blobs(s), digest))
        return err_set(e, ERR_BUSY, "store.collected",
                       "the object was collected meanwhile; send it again");
    {
        AUTO_QUERY struct query q = query_begin(w.db, SQL_BLOB_PUT);

        query_int(&q, project_id);
        query_digest(&q, digest);
        query_int(&q, (int64_t) size);
        query_int(&q, clock_realtime_us());
        if (query_run(&q, e) < 0)
            return -1;
    }
    if (store_damage_clear(w.db, digest, e) < 0 || store_write_close(&w, e) < 0)
        return -1;
    *out_new = !known;
    return 0;
}

void store_run_fini(struct store_run *r)
{
    free(r->project);
    free(r->gate);
    free(r->run);
    free(r->machine_class);
    free(r->mode);
    free(r->status);
    free(r->commit);
    free(r->verdict);
    free(r->baseline);
    free(r->keyid);
    *r = (struct store_run){.id = 0};
}

int store_run_read(struct db *d, const char *run, struct store_run *out, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_RUN_GET);
    AUTO_STORE_RUN struct store_run r = {.id = 0};
    bool failed = false;

    query_text(&q, run);
    if (query_one(&q, "such run", e) < 0)
        return err_wrap(e, "'%s'", run);
    r.id = query_get_int(&q, RUN_ID);
    r.project_id = query_get_int(&q, RUN_PROJECT);
    r.project = query_copy_text(&q, RUN_PROJECT_NAME, &failed);
    r.gate = query_copy_text(&q, RUN_GATE, &failed);
    r.run = query_copy_text(&q, RUN_RUN, &failed);
    r.machine_class = query_copy_text(&q, RUN_CLASS, &failed);
    r.mode = query_copy_text(&q, RUN_MODE, &failed);
    r.status = query_copy_text(&q, RUN_STATUS, &failed);
    r.commit = query_copy_text(&q, RUN_COMMIT, &failed);
    r.verdict = query_copy_text(&q, RUN_VERDICT, &failed);
    r.baseline = query_copy_text(&q, RUN_BASELINE, &failed);
    r.keyid = query_copy_text(&q, RUN_KEYID, &failed);
    r.is_private = query_get_int(&q, RUN_PRIVATE) != 0;
    r.dirty = query_get_int(&q, RUN_DIRTY) != 0;
    r.archive_size = (uint64_t) query_get_int(&q, RUN_ARCHIVE_SIZE);
    r.started_us = query_get_int(&q, RUN_STARTED);
    r.finished_us = query_get_int(&q, RUN_FINISHED);
    r.received_us = query_get_int(&q, RUN_RECEIVED);
    r.revoked_us = query_get_int(&q, RUN_REVOKED);
    r.judge_revoked_us = query_get_int(&q, RUN_JUDGE_REVOKED);
    r.damaged = query_get_int(&q, RUN_DAMAGED) != 0;
    if (failed || !query_get_digest(&q, RUN_ARCHIVE, &r.archive))
        return err_memory(e, "store.memory");
    *out = r;
    memset(&r, 0, sizeof r); /* moved out */
    return 0;
}

int store_run_get(struct store *s, const char *run, struct store_run *out, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};

    if (store_read_open(s, &r, e) < 0)
        return -1;
    return store_run_read(r.db, run, out, e);
}

const char *store_document_kind(enum store_document kind)
{
    static const char *const kinds[STORE_DOCUMENTS] = {
        [STORE_MANIFEST] = "manifest",
        [STORE_DEFINITION] = "definition",
        [STORE_ACCEPTANCE] = "acceptance",
        [STORE_AUDIT] = "audit",
        [STORE_VERDICT] = "verdict",
        [STORE_ANSWER] = "answer",
        [STORE_VERIFY] = "verify",
        [STORE_ENVELOPE] = "envelope",
        [STORE_VERDICT_ENVELOPE] = "verdict-envelope",
    };

    assert((unsigned) kind < STORE_DOCUMENTS);
    return kinds[kind];
}

struct query store_gate_query(struct db *d, enum sql which, int64_t project_id, const char *gate,
                              const char *machine_class)
{
    struct query q = query_begin(d, which);

    query_int(&q, project_id);
    query_text(&q, gate);
    query_text(&q, machine_class);
    return q;
}

int store_document_read(struct db *d, const char *run, enum store_document kind, char **out,
                        size_t *out_len, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_DOCUMENT_GET);
    size_t len = 0;
    const void *bytes;
    char *copy;

    query_text(&q, run);
    query_text(&q, store_document_kind(kind));
    if (query_one(&q, "such document of the run", e) < 0)
        return -1;
    bytes = query_get_bytes(&q, 0, &len);
    copy = malloc(len + 1);
    if (!copy)
        return err_memory(e, "store.memory");
    if (len > 0)
        memcpy(copy, bytes, len);
    copy[len] = 0;
    *out = copy;
    *out_len = len;
    return 0;
}

int store_run_document(struct store *s, const char *run, enum store_document kind, char **out,
                       size_t *out_len, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};

    if (store_read_open(s, &r, e) < 0)
        return -1;
    return store_document_read(r.db, run, kind, out, out_len, e);
}

int store_run_member(struct store *s, const char *run, const char *path, struct store_member *out,
                     struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    struct store_member m = {.offset = 0};
    const char *role;

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_MEMBER_GET);
    query_text(&q, run);
    query_text(&q, path);
    if (query_one(&q, "such file in the evidence", e) < 0)
        return -1;
    m.offset = (uint64_t) query_get_int(&q, 0);
    m.size = (uint64_t) query_get_int(&q, 1);
    role = query_get_text(&q, 3);
    if (!role || !query_get_digest(&q, 2, &m.digest))
        return err_memory(e, "store.memory");
    memcpy(m.role, role, strnlen(role, sizeof m.role - 1));
    *out = m;
    return 0;
}

int store_run_open(struct store *s, const char *run, int *out_fd, struct store_run *out_run,
                   struct err *e)
{
    AUTO_STORE_RUN struct store_run r = {.id = 0};
    uint64_t size = 0;
    int fd = -1;

    if (store_run_get(s, run, &r, e) < 0 ||
        store_object_open(s, &r.archive, false, &fd, &size, NULL, e) < 0)
        return -1;
    *out_fd = fd;
    *out_run = r;
    memset(&r, 0, sizeof r); /* moved out */
    return 0;
}

int store_run_key_pem(struct store *s, const char *run, char **out_pem, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    bool failed = false;
    char *pem;

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_RUN_KEY);
    query_text(&q, run);
    if (query_one(&q, "such run", e) < 0)
        return -1;
    pem = query_copy_text(&q, 0, &failed);
    if (!pem)
        return err_memory(e, "store.memory");
    *out_pem = pem;
    return 0;
}

void store_baseline_fini(struct store_baseline *b)
{
    free(b->id);
    free(b->project);
    free(b->gate);
    free(b->machine_class);
    free(b->run);
    free(b->commit);
    free(b->reviewer);
    free(b->reason);
    *b = (struct store_baseline){.id = NULL};
}

int store_baseline_read(struct db *d, const char *id, struct store_baseline *out, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BASELINE_GET);
    AUTO_STORE_BASELINE struct store_baseline b = {.id = NULL};
    bool failed = false;

    query_text(&q, id);
    if (query_one(&q, "such baseline", e) < 0)
        return -1;
    b.id = query_copy_text(&q, BASE_ID, &failed);
    b.project = query_copy_text(&q, BASE_PROJECT_NAME, &failed);
    b.gate = query_copy_text(&q, BASE_GATE, &failed);
    b.machine_class = query_copy_text(&q, BASE_CLASS, &failed);
    b.run = query_copy_text(&q, BASE_RUN, &failed);
    b.commit = query_copy_text(&q, BASE_COMMIT, &failed);
    b.reviewer = query_copy_text(&q, BASE_REVIEWER, &failed);
    b.reason = query_copy_text(&q, BASE_REASON, &failed);
    if (failed)
        return err_memory(e, "store.memory");
    b.project_id = query_get_int(&q, BASE_PROJECT);
    b.at_us = query_get_int(&q, BASE_AT);
    b.is_private = query_get_int(&q, BASE_PRIVATE) != 0;
    b.legacy = query_get_int(&q, BASE_LEGACY) != 0;
    b.current = query_get_int(&q, BASE_CURRENT) != 0;
    *out = b;
    memset(&b, 0, sizeof b); /* moved out */
    return 0;
}

int store_baseline_get(struct store *s, const char *id, struct store_baseline *out, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};

    if (store_read_open(s, &r, e) < 0)
        return -1;
    return store_baseline_read(r.db, id, out, e);
}

int store_figures(struct store *s, struct store_figures *out, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    AUTO_QUERY struct query verdicts = {.statement = NULL};
    struct store_figures f = {.projects = 0};
    bool row = false;
    int rc;

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_FIGURES);
    if (query_one(&q, "figures", e) < 0)
        return -1;
    f.projects = (uint64_t) query_get_int(&q, 0);
    f.runs = (uint64_t) query_get_int(&q, 1);
    f.baselines = (uint64_t) query_get_int(&q, 2);
    f.attempts = (uint64_t) query_get_int(&q, 3);
    f.blobs = (uint64_t) query_get_int(&q, 4);
    f.blob_bytes = (uint64_t) query_get_int(&q, 5);
    verdicts = query_begin(r.db, SQL_FIGURE_VERDICTS);
    while ((rc = query_step(&verdicts, &row, e)) == 0 && row) {
        enum verdict v;

        if (verdict_parse(query_get_text(&verdicts, 0), &v))
            f.verdicts[v] = (uint64_t) query_get_int(&verdicts, 1);
    }
    if (rc < 0)
        return -1;
    *out = f;
    return 0;
}

int store_log_add(struct db *d, int64_t at_us, const char *actor, const char *action,
                  const char *subject, const char *detail, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_LOG_ADD);

    query_int(&q, at_us);
    query_text(&q, actor);
    query_text(&q, action);
    query_text(&q, subject);
    query_text(&q, detail);
    return query_run(&q, e);
}
