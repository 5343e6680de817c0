#include "server/http/reply.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "server/http/conditional.h"
#include "server/http/content.h"

#define CSP_PAGE                                                                                   \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "  \
    "'self'; "                                                                                     \
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
#define CSP_DATA "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
#define CSP_EVIDENCE                                                                               \
    "sandbox; default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* A window of a content, as libmicrohttpd reads it. */
struct stream {
    struct content *content; /* one reference, or NULL when the content itself owns the response */
    const struct content *view;
    uint64_t first;
};

static bool add(struct MHD_Response *r, const char *name, const char *value)
{
    return MHD_add_response_header(r, name, value) == MHD_YES;
}

static const char *caching_value(const struct content *c)
{
    switch (c->caching) {
    case REPLY_LIVE:
        return c->is_private ? "private, no-cache" : "no-cache";
    case REPLY_SETTLED:
        return c->is_private ? "private, max-age=300" : "public, max-age=300";
    case REPLY_IMMUTABLE:
        return c->is_private ? "private, max-age=31536000, immutable"
                             : "public, max-age=31536000, immutable";
    case REPLY_NO_STORE:
        break;
    }
    return "no-store";
}

/* What a 304 repeats of a 200. */
static bool add_validators(struct MHD_Response *r, const struct content *c)
{
    return (c->etag[0] == '\0' || add(r, "ETag", c->etag)) &&
           add(r, "Cache-Control", caching_value(c)) &&
           (!c->is_private || add(r, "Vary", "Authorization"));
}

static bool add_security(struct MHD_Response *r, enum reply_policy policy)
{
    const char *csp = policy == REPLY_PAGE       ? CSP_PAGE
                      : policy == REPLY_EVIDENCE ? CSP_EVIDENCE
                                                 : CSP_DATA;

    return add(r, "Content-Security-Policy", csp) && add(r, "X-Content-Type-Options", "nosniff") &&
           add(r, "Referrer-Policy", "same-origin") &&
           add(r, "Cross-Origin-Opener-Policy", "same-origin") &&
           add(r, "Cross-Origin-Resource-Policy",
               policy == REPLY_SHARED ? "cross-origin" : "same-origin");
}

static bool add_fields(struct MHD_Response *r, const struct content *c)
{
    char base64[48];
    char repr[80];
    size_t i = 0;

    if (!add(r, "Content-Type", c->type) || !add_validators(r, c) || !add_security(r, c->policy))
        return false;
    if (c->etag[0] != '\0' && !add(r, "Accept-Ranges", "bytes"))
        return false;
    if (c->has_digest) {
        text_base64(c->digest.bytes, DIGEST_SIZE, base64);
        if (snprintf(repr, sizeof repr, "sha-256=:%s:", base64) < 0 || !add(r, "Repr-Digest", repr))
            return false;
    }
    for (i = 0; i < c->n_extra; i++) {
        if (!add(r, c->extra[i].name, c->extra[i].value))
            return false;
    }
    return true;
}

/* Finds the part that holds byte `at`; *at becomes relative to it. */
static const struct reply_part *part_at(const struct content *c, uint64_t *at)
{
    size_t i = 0;

    for (i = 0; i < c->n_parts; i++) {
        if (*at < c->parts[i].size)
            return &c->parts[i];
        *at -= c->parts[i].size;
    }
    return NULL;
}

static ssize_t stream_read(void *cls, uint64_t pos, char *out, size_t max)
{
    const struct stream *s = cls;
    uint64_t at = s->first + pos;
    const struct reply_part *p = part_at(s->view, &at);
    size_t n = max;
    ssize_t got = 0;

    if (!p)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (p->size - at < n)
        n = (size_t) (p->size - at);
    if (p->bytes) {
        memcpy(out, p->bytes + at, n);
        return (ssize_t) n;
    }
    do {
        got = pread(p->fd, out, n, (off_t) (p->offset + at));
    } while (got < 0 && errno == EINTR);
    return got > 0 ? got : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void stream_free(void *cls)
{
    struct stream *s = cls;

    content_unref(s->content);
    free(s);
}

static void release_content(void *cls)
{
    content_unref(cls);
}

static struct MHD_Response *stream_response(const struct content *c, struct content *owner,
                                            uint64_t first, uint64_t size)
{
    struct MHD_Response *r = NULL;
    struct stream *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->view = c;
    s->first = first;
    r = MHD_create_response_from_callback(size, CONTENT_BLOCK, stream_read, s, stream_free);
    if (!r) {
        free(s);
        return NULL;
    }
    if (owner) {
        content_ref(owner);
        s->content = owner;
    }
    return r;
}

/* One file range: sendfile. libmicrohttpd closes the descriptor it is given. */
static struct MHD_Response *file_response(const struct reply_part *p, uint64_t first, uint64_t size)
{
    struct MHD_Response *r = NULL;
    int fd = dup(p->fd);

    if (fd < 0)
        return NULL;
    r = MHD_create_response_from_fd_at_offset64(size, fd, p->offset + first);
    if (!r)
        (void) close(fd); /* was only read */
    return r;
}

/* Body [first, first+size). owner NULL: the response is the content's own and may borrow its memory
 * freely. */
static struct MHD_Response *body_response(const struct content *c, struct content *owner,
                                          uint64_t first, uint64_t size)
{
    struct MHD_Response *r = NULL;

    if (c->bytes || c->size == 0) {
        /* The signature wants void *; the buffer is never written. */
        char *start = c->bytes ? (char *) (uintptr_t) (c->bytes + first) : (char *) (uintptr_t) "";

        if (!owner)
            return MHD_create_response_from_buffer((size_t) size, start, MHD_RESPMEM_PERSISTENT);
        r = MHD_create_response_from_buffer_with_free_callback_cls((size_t) size, start,
                                                                   release_content, owner);
        if (r)
            content_ref(owner);
        return r;
    }
    if (c->n_parts == 1 && !c->parts[0].bytes)
        return file_response(&c->parts[0], first, size);
    return stream_response(c, owner, first, size);
}

bool content_seal(struct content *c)
{
    struct MHD_Response *r = NULL;

    if (c->full)
        return true;
    r = body_response(c, NULL, 0, c->size);
    if (!r)
        return false;
    if (!add_fields(r, c)) {
        MHD_destroy_response(r);
        return false;
    }
    c->full = r;
    return true;
}

void reply_content(struct request *q, unsigned status, struct content *c)
{
    content_unref(q->content);
    q->content = c;
    q->status = c ? status : 500;
}

/* Queues a response made for this request alone and forgets it. */
static bool queue_own(struct request *q, unsigned status, struct MHD_Response *r, bool complete)
{
    bool queued = r && complete && MHD_queue_response(q->connection, status, r) == MHD_YES;

    if (r)
        MHD_destroy_response(r);
    q->status = status;
    return queued;
}

static struct MHD_Response *empty_response(void)
{
    return MHD_create_response_from_buffer(0, (char *) (uintptr_t) "", MHD_RESPMEM_PERSISTENT);
}

static bool queue_not_modified(struct request *q)
{
    struct MHD_Response *r = empty_response();

    return queue_own(q, 304, r,
                     r && add_validators(r, q->content) && add_security(r, q->content->policy));
}

static bool queue_range(struct request *q, uint64_t first, uint64_t last)
{
    struct content *c = q->content;
    struct MHD_Response *r = body_response(c, c, first, last - first + 1);
    char value[80];

    (void) snprintf(value, sizeof value, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first, last,
                    c->size);
    return queue_own(q, 206, r, r && add_fields(r, c) && add(r, "Content-Range", value));
}

static bool queue_problem(struct request *q, unsigned status, const char *slug, const char *detail,
                          const char *field, const char *value)
{
    reply_problem(q, status, slug, detail, NULL);
    if (!q->content)
        return false;
    if (field)
        content_add_header(q->content, field, value);
    return content_seal(q->content) &&
           MHD_queue_response(q->connection, status, q->content->full) == MHD_YES;
}

/* RFC 9110 §13.2.2 order, for contents with a validator. *out_done: an answer was queued (or
 * failed). */
static bool queue_conditional(struct request *q, bool *out_done)
{
    const struct content *c = q->content;
    const char *if_match = request_header(q, "If-Match");
    const char *if_none_match = request_header(q, "If-None-Match");
    const char *range = request_header(q, "Range");
    const char *if_range = request_header(q, "If-Range");
    uint64_t first = 0;
    uint64_t last = 0;
    char value[48];

    *out_done = true;
    if (if_match && !conditional_lists(if_match, c->etag, false))
        return queue_problem(q, 412, "precondition", "the entity tag is another", NULL, NULL);
    if (if_none_match && conditional_lists(if_none_match, c->etag, true))
        return queue_not_modified(q);
    /* A HEAD has no range (RFC 9110 §14.2). A weak or date If-Range never matches. */
    if (range && q->method == HTTP_GET && (!if_range || strcmp(if_range, c->etag) == 0)) {
        switch (conditional_range(range, c->size, &first, &last)) {
        case RANGE_ONE:
            return queue_range(q, first, last);
        case RANGE_UNSATISFIABLE:
            (void) snprintf(value, sizeof value, "bytes */%" PRIu64, c->size);
            return queue_problem(q, 416, "range", "the range is outside the file", "Content-Range",
                                 value);
        case RANGE_IGNORED:
            break;
        }
    }
    *out_done = false;
    return true;
}

bool reply_queue(struct request *q)
{
    bool done = false;
    bool queued = false;

    q->phase = REQUEST_ANSWERED;
    if (!q->content) { /* out of memory before: say so with what needs none */
        struct MHD_Response *r = empty_response();

        return queue_own(q, q->status >= 500 ? q->status : 500, r, r != NULL);
    }
    if (q->status == 200 && q->content->etag[0] != '\0' && request_is_read(q) && q->n_headers > 0) {
        queued = queue_conditional(q, &done);
        if (done)
            return queued;
    }
    return content_seal(q->content) &&
           MHD_queue_response(q->connection, q->status, q->content->full) == MHD_YES;
}
