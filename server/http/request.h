/*
 * request: one HTTP request from its first byte to its last: arena, headers, route parameters,
 * body, the answer. Made when libmicrohttpd has parsed a request line, freed when it reports
 * completion. Knows nothing of projects or runs: `app` and `state` belong to the handlers. Thread
 * rule: one pool thread at a time; while suspended it belongs to whoever holds the pointer, and
 * comes back through request_resume.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "server/http/uri.h"

#define REQUEST_HEADERS_MAX 64
#define REQUEST_PARAMS_MAX 6
#define REQUEST_WATCH_MAX 160

struct MHD_Connection;
struct content;
struct listener;
struct route;

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_PUT,
    HTTP_POST,
    HTTP_OPTIONS,
    HTTP_KNOWN_OTHER, /* DELETE, PATCH, …: 405 wherever it goes */
    HTTP_UNKNOWN,     /* 501 */
};

/* Which rendering of a document the last suffix of the path asks for. */
enum request_twin { TWIN_HTML, TWIN_JSON, TWIN_TEXT, TWIN_MARKDOWN };

enum request_phase {
    REQUEST_NEW,       /* request line seen */
    REQUEST_READING,   /* body goes to the route */
    REQUEST_SWALLOW,   /* answer is ready, the rest of the body is read and dropped */
    REQUEST_SUSPENDED, /* a job works for it */
    REQUEST_ANSWERED,
};

struct request_header {
    const char *name, *value; /* libmicrohttpd's memory, valid until the request ends */
};

struct request_param {
    const char *name; /* in the pattern, name_len bytes */
    size_t name_len;
    const char *value; /* in the arena */
};

struct request {
    struct listener *listener;
    struct MHD_Connection *connection;
    void *app; /* listener_options.app */

    struct arena arena; /* LIMIT_ARENA_REQUEST */
    uint64_t id;        /* counts from 1 in one process; shown in the log and in 5xx problems */
    uint64_t started_ns;

    const char *method_text, *version;
    const char *target;    /* as received, with the query; cut at LIMIT_URL + 1 */
    const char *raw_path;  /* as received, without the query */
    const char *raw_query; /* after '?', or NULL */
    struct uri_path path;
    struct request_header headers[REQUEST_HEADERS_MAX];
    size_t n_headers;
    uint64_t content_length;

    const struct route *route;
    struct request_param params[REQUEST_PARAMS_MAX];
    size_t n_params;

    struct buf body;    /* without route.data */
    uint64_t body_seen; /* bytes delivered so far */

    struct content *content;   /* of the answer; owned */
    uint64_t cache_generation; /* of the stored data, read before the handler ran */
    size_t watch_len;
    unsigned char watch[REQUEST_WATCH_MAX]; /* what a cached answer depends on beside the
                                               generation; the handler's form */

    void *state; /* the handler's, released by state_free */
    void (*state_free)(void *state);

    enum request_phase phase;
    enum http_method method;
    enum request_twin twin;
    unsigned status; /* of the answer; 0: none yet */
    bool too_many_headers;
    bool has_length;
    bool expects_continue;
    bool from_cache;
    bool counted;     /* among the active ones: its head is complete */
    bool never_cache; /* this answer must not be kept, though its route is cacheable */
};

/* First value of a header, case-insensitive; NULL when absent. */
const char *request_header(const struct request *q, const char *name);
size_t request_header_count(const struct request *q, const char *name);
/* Value of a route parameter; asserts that the route has it. */
const char *request_param(const struct request *q, const char *name);
const char *request_query(struct request *q, const char *name);
bool request_is_read(const struct request *q); /* GET or HEAD */
enum http_method request_method_parse(const char *text);

/* Only for the listener and tests: an empty request; NULL without memory. */
struct request *request_new(void) MUST_CHECK;
void request_free(struct request *q);
/* Takes the header list from libmicrohttpd. */
void request_read_headers(struct request *q);

/* Stops reading and writing on the connection until request_resume (any thread, once). Order:
 * suspend, hand the job over (or resume at once when that fails), request_handed_over. False: the
 * server is stopping and 503 is answered; then neither of the others may be called. */
bool request_suspend(struct request *q) MUST_CHECK;
void request_handed_over(struct request *q);
void request_resume(struct request *q);
