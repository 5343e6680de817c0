/* Uploads of a run that is stored already: the same again, or another one under its name. */
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/text.h"
#include "server/ingest/job.h"
#include "server/store/documents.h"

/* The answer that was given, unless it no longer stands: then how it stands now. */
static int stored_answer(struct store *s, const char *run, char **out, size_t *out_len,
                         struct err *e)
{
    struct err why = ERR_INIT;

    if (doc_verdict(s, run, out, out_len, &why) == 0)
        return 0;
    if (why.kind == ERR_NOTFOUND) /* a run without a verdict: the answer says just that */
        return store_run_document(s, run, STORE_ANSWER, out, out_len, e);
    return err_set(e, why.kind, why.code, "%s", why.text);
}

static int take_body(struct store *s, const char *run, struct ingest_result *out, struct err *e)
{
    char *body = NULL;
    size_t len = 0;

    if (stored_answer(s, run, &body, &len, e) < 0)
        return -1;
    out->run = strdup(run);
    if (!out->run) {
        free(body);
        return err_memory(e, "ingest.memory");
    }
    out->body = body;
    out->body_len = len;
    return 0;
}

static void fill_conflict(struct job *j, const struct store_run *known)
{
    char hex[DIGEST_HEX_SIZE];

    j->out->outcome = INGEST_CONFLICT;
    if (strcmp(known->project, j->request->project) != 0) { /* whose it is, is not this sender's */
        err_set(&j->out->err, ERR_CONFLICT, "ingest.conflict", "run id %s is taken", known->run);
        return;
    }
    digest_hex(&known->archive, hex);
    err_set(&j->out->err, ERR_CONFLICT, "ingest.conflict",
            "run %s is taken by the archive with SHA-256 %s", known->run, hex);
}

int job_known(struct job *j, const char *run, bool *out_done, struct err *e)
{
    AUTO_STORE_RUN struct store_run known = {.id = 0};
    struct err why = ERR_INIT;

    *out_done = false;
    if (store_run_get(j->store, run, &known, &why) < 0)
        return why.kind == ERR_NOTFOUND ? 0 : err_set(e, why.kind, why.code, "%s", why.text);
    *out_done = true;
    if (!digest_equal(&known.archive, &j->archive) ||
        strcmp(known.project, j->request->project) != 0 ||
        strcmp(known.gate, j->request->gate) != 0) {
        fill_conflict(j, &known);
        return 0;
    }
    j->out->outcome = INGEST_REPEATED;
    return take_body(j->store, run, j->out, e);
}

int job_repeated(struct job *j, bool *out_done, struct err *e)
{
    const cJSON *run = json_get(j->statement.predicate, "runId");
    AUTO_STORE_RUN struct store_run known = {.id = 0};
    AUTO_FREE char *stored = NULL;
    size_t len = 0;
    struct err why = ERR_INIT;

    *out_done = false;
    if (!cJSON_IsString(run) || !text_is_run_id(run->valuestring))
        return 0;
    if (store_run_get(j->store, run->valuestring, &known, &why) < 0 ||
        store_run_document(j->store, run->valuestring, STORE_ENVELOPE, &stored, &len, &why) < 0)
        return why.kind == ERR_NOTFOUND ? 0 : err_set(e, why.kind, why.code, "%s", why.text);
    if (!digest_equal(&known.archive, &j->archive) ||
        strcmp(known.project, j->request->project) != 0 ||
        strcmp(known.gate, j->request->gate) != 0 || len != j->request->envelope_len ||
        memcmp(stored, j->request->envelope, len) != 0)
        return 0;
    *out_done = true;
    j->out->outcome = INGEST_REPEATED;
    return take_body(j->store, run->valuestring, j->out, e);
}
