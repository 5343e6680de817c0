/* The part of reply.h that says what went wrong. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/log.h"
#include "server/http/listener.h"
#include "server/http/reply.h"
#include "server/http/route.h"

static const char *title_of(unsigned status)
{
    static const struct {
        unsigned status;
        const char *title;
    } table[] = {
        {400, "Bad request"},
        {401, "Authentication required"},
        {403, "Not allowed"},
        {404, "Not found"},
        {405, "Method not allowed"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length required"},
        {412, "Precondition failed"},
        {413, "Too large"},
        {414, "Address too long"},
        {415, "Unsupported media type"},
        {416, "Range not satisfiable"},
        {417, "Expectation failed"},
        {422, "Refused"},
        {431, "Header fields too large"},
        {500, "Internal error"},
        {501, "Not implemented"},
        {503, "Busy"},
        {505, "HTTP version not supported"},
        {507, "Insufficient storage"},
    };
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(table); i++) {
        if (table[i].status == status)
            return table[i].title;
    }
    return "Error";
}

static bool is_problem_member(const char *name)
{
    return strcmp(name, "type") == 0 || strcmp(name, "status") == 0 || strcmp(name, "title") == 0 ||
           strcmp(name, "detail") == 0 || strcmp(name, "instance") == 0;
}

static cJSON *problem_document(const struct request *q, unsigned status, const char *slug,
                               const char *detail, const cJSON *extra)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    const struct listener_options *options = q->listener ? listener_get_options(q->listener) : NULL;
    const cJSON *member = NULL;
    char text[256];

    json_doc_init_object(&d);
    (void) snprintf(text, sizeof text, "%s/help/problems/%s", options ? options->base_url : "",
                    slug);
    json_add_string(&d, NULL, "type", text);
    json_add_int(&d, NULL, "status", (int64_t) status);
    json_add_string(&d, NULL, "title", title_of(status));
    json_add_string(&d, NULL, "detail", detail);
    if (status >= 500) {
        (void) snprintf(text, sizeof text, "urn:cleanrun:request:%" PRIu64, q->id);
        json_add_string(&d, NULL, "instance", text);
    }
    cJSON_ArrayForEach(member, extra) {
        if (!is_problem_member(member->string))
            json_add_copy(&d, NULL, member->string, member);
    }
    return json_doc_take(&d, NULL);
}

/* Without a route nobody said what the address is; a browser says what it wants. */
static bool wants_page(const struct request *q)
{
    const char *accept = NULL;

    if (q->route)
        return q->route->kind == ROUTE_PAGE;
    if (q->path.n > 0 && strcmp(q->path.segments[0], "api") == 0)
        return false;
    accept = request_header(q, "Accept");
    return accept && strstr(accept, "text/html");
}

void reply_problem(struct request *q, unsigned status, const char *slug, const char *detail,
                   cJSON *extra)
{
    AUTO_JSON cJSON *held = extra;
    AUTO_JSON cJSON *document = problem_document(q, status, slug, detail, held);
    const struct listener_options *options = q->listener ? listener_get_options(q->listener) : NULL;
    struct content *c = NULL;

    if (document && options && options->error_page && wants_page(q))
        c = options->error_page(q, document);
    if (!c)
        c = content_json(TYPE_PROBLEM, STEAL(document));
    reply_content(q, status, c);
}

void reply_err(struct request *q, const struct err *e)
{
    char quoted[256];

    switch (e->kind) {
    case ERR_USAGE:
    case ERR_INPUT:
        reply_problem(q, 400, "malformed", e->text, NULL);
        return;
    case ERR_LIMIT:
        reply_problem(q, 413, "too-large", e->text, NULL);
        return;
    case ERR_NOTFOUND:
        reply_problem(q, 404, "not-found", e->text, NULL);
        return;
    case ERR_CONFLICT:
        reply_problem(q, 409, "conflict", e->text, NULL);
        return;
    case ERR_TRUST:
        reply_problem(q, 422, "refused", e->text, NULL);
        return;
    case ERR_NOSPACE:
        reply_problem(q, 507, "insufficient-storage", "the server's storage is full", NULL);
        break;
    case ERR_BUSY:
        reply_problem(q, 503, "busy", "the server is busy; try again", NULL);
        break;
    case ERR_NONE:
    case ERR_SYS:
    case ERR_NOMEM:
    case ERR_INTERNAL:
        reply_problem(q, 500, "internal", "the server could not answer; the log has the reason",
                      NULL);
        break;
    }
    log_event(LOG_ERROR, "request.failed", "request=%" PRIu64 " status=%u code=%s text=%s", q->id,
              q->status, e->code, log_q(e->text, quoted, sizeof quoted));
}

void reply_redirect(struct request *q, unsigned status, const char *location)
{
    struct content *c = content_static(TYPE_TEXT, "", 0);

    if (c)
        content_add_header(c, "Location", location);
    reply_content(q, status, c);
}

void reply_not_found(struct request *q)
{
    reply_problem(q, 404, "not-found", "there is nothing at this address", NULL);
}

void reply_unauthorized(struct request *q, const char *error)
{
    reply_problem(q, 401, "unauthorized",
                  error ? "the token is not valid" : "this needs a bearer token", NULL);
    if (q->content)
        content_add_header(q->content, "WWW-Authenticate",
                           error ? "Bearer realm=\"cleanrun\", error=\"invalid_token\""
                                 : "Bearer realm=\"cleanrun\"");
}
