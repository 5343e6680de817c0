/* The two steps of an upload (docs/api.md): the archive, then the signed statement
 * about it. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/digest.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/text.h"
#include "server/api/access.h"
#include "server/api/api.h"
#include "server/http/auth.h"
#include "server/http/cache.h"
#include "server/ingest/ingest.h"
#include "server/ingest/spool.h"

static void free_spool(void *state)
{
    spool_free(state);
}

/* "sha256:HEX"; 400 when it is not. */
static bool blob_digest(struct request *q, struct digest *out)
{
    const char *text = request_param(q, "digest");

    if (strncmp(text, "sha256:", 7) == 0 && digest_parse(text + 7, out))
        return true;
    reply_problem(q, 400, "digest", "the blob's name must be sha256: and 64 lower-case hex digits",
                  NULL);
    return false;
}

bool upload_blob_begin(struct request *q)
{
    struct digest digest = {.bytes = {0}};
    struct store_project project = {.id = 0};
    struct spool *spool = NULL;
    const char *name = NULL;
    struct err e = ERR_INIT;

    if (!access_write_project(q, AUTH_UPLOAD, &name, &project) || !blob_digest(q, &digest))
        return false;
    if (q->content_length > LIMIT_ARCHIVE) {
        reply_problem(q, 413, "too-large", "an archive may have at most 2 GiB", NULL);
        return false;
    }
    if (spool_open(api_of(q)->store, project.id, &digest, q->content_length, &spool, &e) < 0) {
        reply_err(q, &e);
        return false;
    }
    q->state = spool;
    q->state_free = free_spool;
    return true;
}

bool upload_blob_data(struct request *q, const char *bytes, size_t len)
{
    struct err e = ERR_INIT;

    if (spool_write(q->state, bytes, len, &e) == 0)
        return true;
    spool_free(q->state); /* at once: the disk may be full */
    q->state = NULL;
    reply_err(q, &e);
    return false;
}

enum route_result upload_blob_handle(struct request *q)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    const char *location = NULL;
    bool is_new = false;
    int rc = 0;
    struct err e = ERR_INIT;

    rc = spool_commit(q->state, &is_new, &e);
    spool_free(q->state);
    q->state = NULL;
    if (rc < 0) {
        if (e.kind == ERR_TRUST)
            reply_problem(q, 422, "digest", e.text, NULL);
        else
            reply_err(q, &e);
        return ROUTE_DONE;
    }
    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-blob/1");
    json_add_string(&d, NULL, "digest", request_param(q, "digest"));
    json_add_int(&d, NULL, "size", (int64_t) q->content_length);
    reply_content(q, is_new ? 201 : 200, content_json(TYPE_JSON, json_doc_take(&d, NULL)));
    location = arena_printf(&q->arena, "%s%s", api_of(q)->base_url, q->raw_path);
    if (q->content && location)
        content_add_header(q->content, "Location", location);
    return ROUTE_DONE;
}

/* What a submitted run waits for. */
struct submission {
    struct request *request;
    const char *project, *gate; /* in the request's arena */
    struct digest archive;      /* that the client means, when has_archive */
    bool has_archive;
    struct ingest_result result;
};

static void free_submission(void *state)
{
    struct submission *s = state;

    ingest_result_fini(&s->result);
    free(s);
}

/* "application/vnd.dsse+json", parameters ignored. */
static bool is_envelope_type(const char *type)
{
    size_t len = type ? strcspn(type, "; \t") : 0;

    return len == strlen(TYPE_DSSE) && strncasecmp(type, TYPE_DSSE, len) == 0;
}

/* "?archive=sha256:HEX", optional: an altered archive posted with its old envelope is then told so.
 * 400 when malformed. */
static bool read_archive(struct request *q, struct submission *s)
{
    const char *text = request_query(q, "archive");

    if (!text)
        return true;
    s->has_archive = strncmp(text, "sha256:", 7) == 0 && digest_parse(text + 7, &s->archive);
    if (!s->has_archive)
        reply_problem(q, 400, "digest", "archive must be sha256: and 64 lower-case hex digits",
                      NULL);
    return s->has_archive;
}

bool upload_run_begin(struct request *q)
{
    struct store_project project = {.id = 0};
    const char *name = NULL;
    struct submission *s = NULL;

    if (!access_write_project(q, AUTH_UPLOAD, &name, &project))
        return false;
    if (!text_is_slug(request_param(q, "gate"))) {
        reply_not_found(q);
        return false;
    }
    if (!is_envelope_type(request_header(q, "Content-Type"))) {
        reply_problem(q, 415, "media-type", "the body must be application/vnd.dsse+json", NULL);
        return false;
    }
    if (q->content_length > LIMIT_ENVELOPE) {
        reply_problem(q, 413, "too-large", "an envelope may have at most 256 KiB", NULL);
        return false;
    }
    s = calloc(1, sizeof *s);
    if (!s) {
        reply_content(q, 500, NULL);
        return false;
    }
    s->request = q;
    s->project = name;
    s->gate = request_param(q, "gate");
    q->state = s;
    q->state_free = free_submission;
    buf_init(&q->body, LIMIT_ENVELOPE);
    return read_archive(q, s);
}

/* On the ingest thread. */
static void judged(void *ctx, struct ingest_result *result)
{
    struct submission *s = ctx;

    s->result = *result;
    memset(result, 0, sizeof *result);
    request_resume(s->request);
}

enum route_result upload_run_handle(struct request *q)
{
    struct submission *s = q->state;
    const struct ingest_request r = {
        .project = s->project,
        .gate = s->gate,
        .envelope = q->body.data ? q->body.data : "",
        .envelope_len = q->body.len,
        .archive = s->has_archive ? &s->archive : NULL,
        .done = judged,
        .ctx = s,
    };
    struct err e = ERR_INIT;

    if (!request_suspend(q))
        return ROUTE_DONE;
    if (ingest_submit(api_of(q)->ingest, &r, &e) < 0) {
        s->result.outcome = INGEST_FAILED;
        s->result.err = e;
        request_resume(q);
    }
    request_handed_over(q);
    return ROUTE_WAIT;
}

static void reply_judged(struct request *q, struct submission *s, unsigned status)
{
    const char *location =
        arena_printf(&q->arena, "%s/api/v1/projects/%s/runs/%s", api_of(q)->base_url, s->project,
                     s->result.run ? s->result.run : "");

    reply_content(q, status, content_bytes(TYPE_JSON, STEAL(s->result.body), s->result.body_len));
    if (q->content && location && s->result.run)
        content_add_header(q->content, "Location", location);
}

void upload_run_resume(struct request *q)
{
    struct submission *s = q->state;

    cache_bump(api_of(q)->cache); /* whatever happened was stored, a refused attempt too */
    switch (s->result.outcome) {
    case INGEST_STORED:
        reply_judged(q, s, 201);
        return;
    case INGEST_REPEATED:
        reply_judged(q, s, 200);
        return;
    case INGEST_INVALID:
        reply_problem(q, 422, "invalid", s->result.err.text, STEAL(s->result.problem));
        return;
    case INGEST_CONFLICT:
        reply_problem(q, 409, "conflict", s->result.err.text, NULL);
        return;
    case INGEST_NO_BLOB:
        reply_problem(q, 404, "blob-missing", s->result.err.text, NULL);
        return;
    case INGEST_FAILED:
        break;
    }
    reply_err(q, &s->result.err);
}
