/* What explains: reasons, problem types, schemas, the API description, public keys. Constant while
 * the program runs. */
#include <string.h>

#include "audit/verdict.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "experiment/definition.h"
#include "server/api/api.h"
#include "server/api/page.h"
#include "server/store/documents.h"
#include "tools/embed.h"

static const struct {
    enum verdict verdict;
    const char *means;
    const char *forge;
} meanings[] = {
    {VERDICT_OK, "same experiment, inside all limits", "success"},
    {VERDICT_REGRESSION, "same experiment, at least one gated metric beyond its limit", "failure"},
    {VERDICT_NON_COMPARABLE,
     "no scalar claim is made: identity differs, coverage incomplete, nothing to compare, no "
     "baseline",
     "error"},
    {VERDICT_FAIL, "acceptance failed", "failure"},
    {VERDICT_INVALID, "evidence broken: hash, signature, provenance, replay, malformed", "error"},
    {VERDICT_ERROR, "infrastructure: runner lost, build machine, timeout", "error"},
    {VERDICT_PENDING, "queued or measuring", "pending"},
};

static const struct {
    const char *slug;
    const char *text;
} problems[] = {
    {"blob-missing",
     "The statement speaks of an archive that is not stored for this project. Send it first: "
     "PUT …/blobs/sha256:HEX. An archive stored for another project does not count."},
    {"busy", "The queue is full. Nothing was stored; the same request may be sent again."},
    {"conflict",
     "The run id is taken by another archive. Run ids are never reused: measure again."},
    {"damaged", "The stored bytes no longer have the digest they are named by. Restore the object "
                "from a backup, or "
                "upload the same archive again."},
    {"digest", "The bytes do not have the digest in the address. Nothing was kept."},
    {"expectation", "Only Expect: 100-continue is understood."},
    {"forbidden", "The token is valid, but has neither the scope nor the project for this."},
    {"framing", "The request could be read in more than one way (lengths, encodings, header "
                "fields), so it is not "
                "read at all and the connection is closed."},
    {"insufficient-storage", "The disk is full. Nothing was kept."},
    {"internal",
     "The server's mistake. Its log has the reason under the request number in `instance`."},
    {"invalid", "The evidence is broken; `reasons` says where. The attempt is kept and listed "
                "under the project."},
    {"length-required", "A body must come with Content-Length."},
    {"malformed", "The request is malformed; `detail` says where."},
    {"media-type", "The body must be application/vnd.dsse+json."},
    {"method", "The address exists but does not take this method; Allow lists those it takes."},
    {"not-found", "There is nothing at this address, or the asker may not see it."},
    {"precondition", "If-Match names another entity tag than the current one."},
    {"range", "The range lies outside the file."},
    {"refused", "The bytes do not hold what they promise; `detail` says what."},
    {"target", "The address could mean another one to another reader (encoded separators, dot "
               "segments, bytes that "
               "must be encoded), so it is refused."},
    {"too-large", "Larger than the server takes; `detail` says what."},
    {"unauthorized", "A bearer token is missing or not valid: Authorization: Bearer TOKEN."},
    {"version", "The server speaks HTTP/1.1."},
};

static const char *verdict_of_code(const char *code)
{
    return strncmp(code, "IN-", 3) == 0 ? "INVALID" : "NON_COMPARABLE";
}

static cJSON *index_document(struct request *q)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    cJSON *list = NULL;
    cJSON *links = NULL;
    size_t i = 0;

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-help/1");
    list = json_add_array(&d, NULL, "verdicts");
    for (i = 0; i < ARRAY_LEN(meanings); i++) {
        cJSON *row = json_add_object(&d, list, NULL);

        json_add_string(&d, row, "verdict", verdict_word(meanings[i].verdict));
        json_add_string(&d, row, "means", meanings[i].means);
        json_add_int(&d, row, "exit", verdict_exit(meanings[i].verdict));
        json_add_string(&d, row, "forge", meanings[i].forge);
    }
    list = json_add_array(&d, NULL, "reasons");
    for (i = 0; i < reasons_count; i++) {
        cJSON *row = json_add_object(&d, list, NULL);

        json_add_string(&d, row, "code", reasons_table[i].code);
        json_add_string(&d, row, "title", reasons_table[i].title);
        json_add_string(&d, row, "url",
                        arena_printf(&q->arena, "/help/reasons/%s", reasons_table[i].code));
    }
    links = json_add_object(&d, NULL, "links");
    json_add_string(&d, links, "json", "/help.json");
    json_add_string(&d, links, "text", "/help.txt");
    return json_doc_take(&d, NULL);
}

/* Constant text that is no page. */
static void reply_text(struct request *q, struct buf *b)
{
    struct content *c = NULL;
    size_t len = 0;
    char *bytes = buf_take(b, &len);

    c = bytes ? content_bytes(TYPE_TEXT, bytes, len) : NULL;
    if (c) {
        content_set_caching(c, REPLY_SETTLED, false);
        content_hash(c);
    }
    reply_content(q, 200, c);
}

enum route_result help_index(struct request *q)
{
    page_reply(q, "help", index_document(q), REPLY_SETTLED, false);
    return ROUTE_DONE;
}

static cJSON *reason_document(struct request *q, const struct reason_info *r)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    cJSON *links = NULL;

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-reason/1");
    json_add_string(&d, NULL, "code", r->code);
    json_add_string(&d, NULL, "verdict", verdict_of_code(r->code));
    json_add_string(&d, NULL, "title", r->title);
    json_add_string(&d, NULL, "text", r->text);
    json_add_string(&d, NULL, "resolve", r->resolve);
    links = json_add_object(&d, NULL, "links");
    json_add_string(&d, links, "json", arena_printf(&q->arena, "/help/reasons/%s.json", r->code));
    json_add_string(&d, links, "text", arena_printf(&q->arena, "/help/reasons/%s.txt", r->code));
    return json_doc_take(&d, NULL);
}

enum route_result help_reason(struct request *q)
{
    const struct reason_info *r = reason_find(request_param(q, "code"));

    if (r)
        page_reply(q, "reason", reason_document(q, r), REPLY_SETTLED, false);
    else
        reply_not_found(q);
    return ROUTE_DONE;
}

enum route_result help_problem(struct request *q)
{
    const char *slug = request_param(q, "slug");
    AUTO_BUF struct buf b = {.data = NULL};
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(problems); i++) {
        if (strcmp(problems[i].slug, slug) != 0)
            continue;
        buf_init(&b, LIMIT_PAGE);
        buf_printf(&b, "%s\n\n%s\n", slug, problems[i].text);
        reply_text(q, &b);
        return ROUTE_DONE;
    }
    reply_not_found(q);
    return ROUTE_DONE;
}

enum route_result help_openapi(struct request *q)
{
    const struct embed_file *f = embed_find(&embed_openapi, "openapi.json");
    struct content *c = f ? content_static(TYPE_JSON, f->bytes, f->size) : NULL;

    if (c) {
        content_set_caching(c, REPLY_SETTLED, false);
        content_hash(c);
    }
    reply_content(q, 200, c);
    return ROUTE_DONE;
}

enum route_result help_schema(struct request *q)
{
    cJSON *schema = NULL;
    struct content *c = NULL;
    struct err e = ERR_INIT;

    if (strcmp(request_param(q, "name"), "cleanrun-v1.json") != 0) {
        reply_not_found(q);
        return ROUTE_DONE;
    }
    if (definition_json_schema(&schema, &e) < 0) {
        reply_err(q, &e);
        return ROUTE_DONE;
    }
    c = content_json("application/schema+json", schema);
    if (c) {
        content_set_caching(c, REPLY_SETTLED, false);
        content_hash(c);
    }
    reply_content(q, 200, c);
    return ROUTE_DONE;
}

enum route_result help_keys(struct request *q)
{
    cJSON *document = NULL;
    struct err e = ERR_INIT;

    if (doc_keys(api_of(q)->store, &document, &e) < 0)
        reply_err(q, &e);
    else
        page_reply(q, "keys", document, REPLY_LIVE, false);
    return ROUTE_DONE;
}
