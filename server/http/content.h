/*
 * content: the inside of a representation, shared by content.c (making) and reply.c (sending) only.
 * A response made by libmicrohttpd for it holds one reference, except `full`, which the content
 * owns: that one borrows the content's memory, so whoever queues `full` keeps the content until the
 * request ends (request.content).
 */
#pragma once

#include <stdatomic.h>

#include "server/http/reply.h"

#define CONTENT_EXTRA_MAX 8
#define CONTENT_BLOCK ((size_t) 64 << 10) /* piece that libmicrohttpd asks a stream for */

struct MHD_Response;

struct content {
    atomic_size_t refs;
    const char *type;
    enum reply_policy policy;
    enum reply_caching caching;
    bool is_private;
    bool has_digest;
    struct digest digest;
    char etag[80];
    uint64_t size;
    const char *bytes; /* whole body in memory, or NULL */
    char *memory;      /* owned */
    void *kept;        /* owned, with the function that releases it */
    void (*kept_release)(void *object);
    struct reply_part *parts; /* owned, with their descriptors; used when bytes is NULL */
    size_t n_parts;
    struct {
        const char *name;
        char *value;
    } extra[CONTENT_EXTRA_MAX];
    size_t n_extra;
    struct MHD_Response *full; /* the 200, made once; its headers are the content's */
};

/* Makes `full` if it is not there yet. Not thread-safe: before the content is shared. */
bool content_seal(struct content *c) MUST_CHECK;
