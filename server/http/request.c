#include "server/http/request.h"

#include <assert.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "server/http/listener.h"
#include "server/http/reply.h"

struct request *request_new(void)
{
    struct request *q = calloc(1, sizeof *q);

    if (!q)
        return NULL;
    arena_init(&q->arena, LIMIT_ARENA_REQUEST);
    return q;
}

void request_free(struct request *q)
{
    if (!q)
        return;
    if (q->state && q->state_free)
        q->state_free(q->state);
    content_unref(q->content);
    buf_fini(&q->body);
    arena_fini(&q->arena);
    free(q);
}

static enum MHD_Result take_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct request *q = cls;

    (void) kind; /* only headers are asked for */
    if (q->n_headers == REQUEST_HEADERS_MAX) {
        q->too_many_headers = true;
        return MHD_NO;
    }
    q->headers[q->n_headers++] = (struct request_header){.name = name, .value = value ? value : ""};
    return MHD_YES;
}

void request_read_headers(struct request *q)
{
    q->n_headers = 0;
    (void) MHD_get_connection_values(q->connection, MHD_HEADER_KIND, take_header,
                                     q); /* the count is in q */
}

const char *request_header(const struct request *q, const char *name)
{
    size_t i = 0;

    for (i = 0; i < q->n_headers; i++) {
        if (strcasecmp(q->headers[i].name, name) == 0)
            return q->headers[i].value;
    }
    return NULL;
}

size_t request_header_count(const struct request *q, const char *name)
{
    size_t count = 0;
    size_t i = 0;

    for (i = 0; i < q->n_headers; i++)
        count += strcasecmp(q->headers[i].name, name) == 0;
    return count;
}

const char *request_param(const struct request *q, const char *name)
{
    size_t len = strlen(name);
    size_t i = 0;

    for (i = 0; i < q->n_params; i++) {
        if (q->params[i].name_len == len && memcmp(q->params[i].name, name, len) == 0)
            return q->params[i].value;
    }
    assert(!"the route has no such parameter");
    return "";
}

const char *request_query(struct request *q, const char *name)
{
    return uri_query_get(&q->arena, q->raw_query, name);
}

bool request_is_read(const struct request *q)
{
    return q->method == HTTP_GET || q->method == HTTP_HEAD;
}

enum http_method request_method_parse(const char *text)
{
    static const struct {
        const char *text;
        enum http_method method;
    } table[] = {
        {"GET", HTTP_GET},           {"HEAD", HTTP_HEAD},         {"PUT", HTTP_PUT},
        {"POST", HTTP_POST},         {"OPTIONS", HTTP_OPTIONS},   {"DELETE", HTTP_KNOWN_OTHER},
        {"PATCH", HTTP_KNOWN_OTHER}, {"TRACE", HTTP_KNOWN_OTHER}, {"CONNECT", HTTP_KNOWN_OTHER},
    };
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(text, table[i].text) == 0)
            return table[i].method;
    }
    return HTTP_UNKNOWN;
}

bool request_suspend(struct request *q)
{
    if (!listener_enter(q->listener)) {
        reply_problem(q, 503, "busy", "the server is stopping; try again", NULL);
        return false;
    }
    q->phase = REQUEST_SUSPENDED;
    MHD_suspend_connection(q->connection);
    return true;
}

void request_handed_over(struct request *q)
{
    listener_leave(q->listener);
}

void request_resume(struct request *q)
{
    MHD_resume_connection(q->connection);
}
