/*
 * route: one table decides which handler sees a request; nothing else dispatches.
 * Patterns: "/a/{x}/b" binds one segment, "/a/{x...}" the rest (joined with '/', at least one).
 * A route with twins takes ".json", ".txt" or ".md" at its last segment as the wanted rendering.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "server/http/request.h"

enum route_result {
    ROUTE_DONE, /* status and content are set */
    ROUTE_WAIT, /* the handler has suspended the request; `resume` is called after request_resume */
};

enum route_kind {
    ROUTE_PAGE, /* errors are pages, or text/JSON by twin */
    ROUTE_API,  /* errors are application/problem+json */
};

#define ROUTE_TWIN_JSON (1u << TWIN_JSON)
#define ROUTE_TWIN_TEXT (1u << TWIN_TEXT)
#define ROUTE_TWIN_MARKDOWN (1u << TWIN_MARKDOWN)

struct route {
    enum http_method method; /* HTTP_GET serves HEAD too */
    enum route_kind kind;
    unsigned twins;
    bool cacheable; /* GET: a 200 may be kept by raw path when the request carries no credentials */
    bool offload;   /* handle runs on a worker thread, as it may block; it must return ROUTE_DONE */
    const char *pattern;
    /* Called with everything but the body; for body routes before the body. False: the answer is
     * set. NULL: the request takes no body. */
    bool (*begin)(struct request *q);
    /* Body pieces in order; NULL: collected in q->body. False: the answer is set, the rest is
     * dropped. */
    bool (*data)(struct request *q, const char *bytes, size_t len);
    /* The request is complete. */
    enum route_result (*handle)(struct request *q);
    /* After a suspension; the answer must be set. */
    void (*resume)(struct request *q);
};

enum route_match {
    ROUTE_FOUND,      /* q->route, params, twin are set */
    ROUTE_NOT_FOUND,  /* 404 */
    ROUTE_NOT_METHOD, /* 405; *out_allow is the Allow field's value, in the arena */
};

/* OPTIONS on a known path gives ROUTE_NOT_METHOD with its Allow list. */
enum route_match route_find(const struct route *routes, size_t n, struct request *q,
                            const char **out_allow);
