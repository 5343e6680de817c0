#include "server/ingest/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"

/* The run. */

static int add_row(struct db *d, const struct record_run *r, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_RUN_ADD);
    const struct manifest *m = evidence_manifest(r->evidence);

    query_text(&q, m->run);
    query_int(&q, r->project_id);
    query_text(&q, m->gate);
    query_text(&q, m->machine_class);
    query_text(&q, m->mode);
    query_text(&q, manifest_status_name(m->status));
    query_text(&q, m->commit);
    query_int(&q, m->dirty);
    query_text(&q, m->fingerprint);
    query_digest(&q, m->has_executable ? &m->executable_digest : NULL);
    query_digest(&q, &m->experiment_digest);
    query_digest(&q, &m->policy_digest);
    query_digest(&q, evidence_digest(r->evidence));
    query_int(&q, (int64_t) evidence_index(r->evidence)->size);
    query_text(&q, evidence_keyid(r->evidence));
    query_int(&q, r->runner_id);
    query_int(&q, m->started_us);
    query_int(&q, m->finished_us);
    query_int(&q, r->received_us);
    query_text(&q, r->verdict);
    query_text(&q, r->description);
    query_text(&q, r->baseline);
    return query_run(&q, e);
}

static int add_documents(struct db *d, int64_t run, const struct record_run *r, struct err *e)
{
    for (size_t i = 0; i < STORE_DOCUMENTS; i++) {
        AUTO_QUERY struct query q = {.statement = NULL};

        if (!r->documents[i].p)
            continue;
        q = query_begin(d, SQL_DOCUMENT_ADD);
        query_int(&q, run);
        query_text(&q, store_document_kind((enum store_document) i));
        query_bytes(&q, r->documents[i].p, r->documents[i].len);
        if (query_run(&q, e) < 0)
            return -1;
    }
    return 0;
}

static int add_members(struct db *d, int64_t run, const struct record_run *r, struct err *e)
{
    const struct archive_index *x = evidence_index(r->evidence);
    const struct manifest *m = evidence_manifest(r->evidence);

    for (size_t i = 0; i < x->n; i++) {
        AUTO_QUERY struct query q = query_begin(d, SQL_MEMBER_ADD);
        const struct manifest_file *f = manifest_find(m, x->members[i].name);

        query_int(&q, run);
        query_text(&q, x->members[i].name);
        query_text(&q, f ? f->role : "manifest");
        query_int(&q, (int64_t) x->members[i].offset);
        query_int(&q, (int64_t) x->members[i].size);
        query_digest(&q, &x->members[i].digest);
        if (query_run(&q, e) < 0)
            return -1;
    }
    return 0;
}

static int add_metrics(struct db *d, int64_t run, const struct metric_values *m, struct err *e)
{
    for (size_t i = 0; i < m->n; i++) {
        AUTO_QUERY struct query q = query_begin(d, SQL_METRIC_ADD);

        query_int(&q, run);
        query_text(&q, m->items[i].path);
        query_text(&q, m->items[i].metric);
        query_double(&q, m->items[i].value);
        if (query_run(&q, e) < 0)
            return -1;
    }
    return 0;
}

static int runner_seen(struct db *d, int64_t runner, int64_t at_us, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_RUNNER_SEEN);

    query_int(&q, runner);
    query_int(&q, at_us);
    return query_run(&q, e);
}

int record_run_add(struct db *d, const struct record_run *r, struct err *e)
{
    const struct manifest *m = evidence_manifest(r->evidence);
    int64_t run;

    if (add_row(d, r, e) < 0)
        return -1;
    run = db_last_id(d);
    if (add_documents(d, run, r, e) < 0 || add_members(d, run, r, e) < 0 ||
        add_metrics(d, run, &r->metrics, e) < 0 ||
        runner_seen(d, r->runner_id, r->received_us, e) < 0)
        return -1;
    return store_log_add(d, r->received_us, evidence_key_name(r->evidence), "run.store", m->run,
                         r->verdict ? r->verdict : "no verdict", e);
}

/* Attempts. */

int record_attempt_add(struct store *s, const struct record_attempt *a, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};

    if (store_write_open(s, &w, e) < 0)
        return -1;
    {
        AUTO_QUERY struct query q = query_begin(w.db, SQL_ATTEMPT_ADD);

        query_int(&q, a->project_id);
        query_int(&q, a->is_signed);
        query_text(&q, a->is_signed ? a->gate : NULL);
        query_text(&q, a->is_signed ? a->machine_class : NULL);
        query_text(&q, a->is_signed ? a->commit : NULL);
        query_text(&q, a->is_signed ? a->run : NULL);
        query_text(&q, a->code);
        query_text(&q, a->detail);
        query_text(&q, a->keyid);
        query_digest(&q, a->archive);
        query_bytes(&q, a->problem, a->problem_len);
        query_int(&q, a->at_us);
        if (query_run(&q, e) < 0)
            return -1;
    }
    return store_write_close(&w, e);
}
