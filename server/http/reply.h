/*
 * reply: every response is made here: representations with their metadata, problems, redirects,
 * preconditions, ranges, security headers. Handlers set an answer on the request; the listener
 * queues it.
 * Thread rule: a content is filled by one thread, then sealed by its first use; sealed contents are
 * immutable and shared between threads by reference.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "server/http/request.h"

#define TYPE_HTML "text/html; charset=utf-8"
#define TYPE_TEXT "text/plain; charset=utf-8"
#define TYPE_MARKDOWN "text/markdown; charset=utf-8"
#define TYPE_JSON "application/json"
#define TYPE_PROBLEM "application/problem+json"
#define TYPE_DSSE "application/vnd.dsse+json"
#define TYPE_TAR "application/x-tar"
#define TYPE_BYTES "application/octet-stream"

enum reply_policy {
    REPLY_DATA,     /* machine answers: nothing may run */
    REPLY_PAGE,     /* our own pages and assets */
    REPLY_EVIDENCE, /* bytes somebody uploaded: sandboxed, never rendered */
    REPLY_SHARED,   /* as data, but other sites may embed it (badges) */
};

enum reply_caching {
    REPLY_NO_STORE,
    REPLY_LIVE,      /* stored but always revalidated */
    REPLY_SETTLED,   /* finished runs' pages: five minutes */
    REPLY_IMMUTABLE, /* named by digest, or a finished run's bytes */
};

/* A piece of a body: bytes (borrowed from the content's memory) or a range of a file. */
struct reply_part {
    const char *bytes; /* NULL: the file */
    int fd;
    uint64_t offset;
    uint64_t size;
};

struct content;

/* Makers: one reference for the caller; NULL without memory (what was handed over is released then,
 * too). `type` and every other string given below must be static or live in the content
 * (content_copy). */
struct content *content_bytes(const char *type, char *bytes,
                              size_t len) MUST_CHECK; /* takes the heap bytes */
struct content *content_static(const char *type, const void *bytes,
                               size_t len) MUST_CHECK; /* borrows for ever */
struct content *content_file(const char *type, int fd, uint64_t offset,
                             uint64_t size) MUST_CHECK; /* takes the descriptor */
/* Copies the list; takes `memory` (heap, may be NULL) that byte parts point into, and each part's
 * descriptor. */
struct content *content_parts(const char *type, const struct reply_part *parts, size_t n,
                              char *memory) MUST_CHECK;
/* The document as JSON (JSON_PRETTY). Frees the tree. */
struct content *content_json(const char *type, cJSON *document) MUST_CHECK;

/* The content releases `object` when it goes (bytes of parts may live in it). Before first use,
 * once. */
void content_keep(struct content *c, void *object, void (*release)(void *object));

void content_ref(struct content *c);
void content_unref(struct content *c); /* accepts NULL */
static inline void cleanup_content(struct content **c)
{
    content_unref(*c);
}
#define AUTO_CONTENT __attribute__((cleanup(cleanup_content)))

/* Before first use only. */
void content_set_policy(struct content *c, enum reply_policy policy);
void content_set_caching(struct content *c, enum reply_caching caching, bool is_private);
/* Strong ETag "sha256-<hex>" and Repr-Digest. */
void content_set_digest(struct content *c, const struct digest *d);
/* The same of the bytes themselves (content_bytes, content_static). */
void content_hash(struct content *c);
/* Up to 8 further fields; name static, value copied. Silently dropped when out of memory or space.
 */
void content_add_header(struct content *c, const char *name, const char *value);
/* "attachment; filename=…": the last segment of a relname. */
void content_set_attachment(struct content *c, const char *name);

uint64_t content_size(const struct content *c);

/* Sets the answer; takes the reference. c NULL: a plain 500. */
void reply_content(struct request *q, unsigned status, struct content *c);
/* RFC 9457 problem: type <base>/help/problems/<slug>. `extra` (taken, may be NULL): an object whose
 * members are added, except those that every problem has. Page routes get the error page instead,
 * in the twin's form. */
void reply_problem(struct request *q, unsigned status, const char *slug, const char *detail,
                   cJSON *extra);
/* Maps an err's kind: LIMIT 413, INPUT 400, NOTFOUND 404, CONFLICT 409, TRUST 422, NOSPACE 507,
 * BUSY 503, else 500 (logged, text not shown). */
void reply_err(struct request *q, const struct err *e);
void reply_redirect(struct request *q, unsigned status, const char *location);
void reply_not_found(struct request *q);
/* 401 with WWW-Authenticate; `error` is NULL or "invalid_token". */
void reply_unauthorized(struct request *q, const char *error);

/* For the listener: hands the answer to libmicrohttpd, evaluating If-Match, If-None-Match, If-Range
 * and Range for a 200 to GET and HEAD. False: the connection must be dropped. */
bool reply_queue(struct request *q) MUST_CHECK;
