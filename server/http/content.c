/* The representation half of reply.h. */
#include <assert.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "server/http/content.h"

struct content *content_static(const char *type, const void *bytes, size_t len)
{
    struct content *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    atomic_init(&c->refs, 1);
    c->type = type;
    c->size = len;
    c->bytes = bytes;
    return c;
}

struct content *content_bytes(const char *type, char *bytes, size_t len)
{
    AUTO_FREE char *held = bytes;
    struct content *c = content_static(type, bytes, len);

    if (c)
        c->memory = STEAL(held);
    return c;
}

static void close_parts(const struct reply_part *parts, size_t n)
{
    size_t i = 0;

    for (i = 0; i < n; i++) {
        if (!parts[i].bytes && parts[i].fd >= 0)
            (void) close(parts[i].fd); /* was only read */
    }
}

struct content *content_parts(const char *type, const struct reply_part *parts, size_t n,
                              char *memory)
{
    AUTO_FREE char *held = memory;
    struct content *c = calloc(1, sizeof *c);
    size_t i = 0;

    if (c)
        c->parts = calloc(n > 0 ? n : 1, sizeof *c->parts);
    if (!c || !c->parts) {
        close_parts(parts, n);
        free(c);
        return NULL;
    }
    atomic_init(&c->refs, 1);
    c->type = type;
    c->memory = STEAL(held);
    c->n_parts = n;
    for (i = 0; i < n; i++) {
        c->parts[i] = parts[i];
        c->size += parts[i].size;
    }
    return c;
}

struct content *content_file(const char *type, int fd, uint64_t offset, uint64_t size)
{
    const struct reply_part part = {.bytes = NULL, .fd = fd, .offset = offset, .size = size};

    return content_parts(type, &part, 1, NULL);
}

struct content *content_json(const char *type, cJSON *document)
{
    AUTO_JSON cJSON *held = document;
    AUTO_BUF struct buf b = {.data = NULL};
    char *bytes = NULL;
    size_t len = 0;

    buf_init(&b, LIMIT_PAGE);
    if (!held)
        return NULL;
    json_write(&b, held, JSON_PRETTY);
    if (buf_check(&b, NULL) < 0)
        return NULL;
    bytes = buf_take(&b, &len);
    return bytes ? content_bytes(type, bytes, len) : NULL;
}

void content_ref(struct content *c)
{
    (void) atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

void content_unref(struct content *c)
{
    size_t i = 0;

    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (c->full)
        MHD_destroy_response(c->full);
    /* Responses made from this content hold a reference, so nothing of it is in use here. */
    close_parts(c->parts, c->n_parts);
    free(c->parts);
    for (i = 0; i < c->n_extra; i++)
        free(c->extra[i].value);
    free(c->memory);
    if (c->kept)
        c->kept_release(c->kept);
    free(c);
}

void content_keep(struct content *c, void *object, void (*release)(void *object))
{
    assert(!c->kept);
    c->kept = object;
    c->kept_release = release;
}

void content_set_policy(struct content *c, enum reply_policy policy)
{
    c->policy = policy;
}

void content_set_caching(struct content *c, enum reply_caching caching, bool is_private)
{
    c->caching = caching;
    c->is_private = is_private;
}

void content_set_digest(struct content *c, const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(d, hex);
    (void) snprintf(c->etag, sizeof c->etag, "\"sha256-%s\"", hex); /* fits: 7 + 64 + 2 */
    c->digest = *d;
    c->has_digest = true;
}

void content_hash(struct content *c)
{
    struct digest d = {.bytes = {0}};

    assert(c->bytes || c->size == 0);
    d = digest_of(c->bytes ? c->bytes : "", (size_t) c->size);
    content_set_digest(c, &d);
}

void content_add_header(struct content *c, const char *name, const char *value)
{
    char *copy = NULL;

    if (c->n_extra == CONTENT_EXTRA_MAX)
        return;
    copy = strdup(value);
    if (!copy)
        return;
    c->extra[c->n_extra].name = name;
    c->extra[c->n_extra++].value = copy;
}

void content_set_attachment(struct content *c, const char *name)
{
    const char *slash = strrchr(name, '/');
    char value[192];

    /* relname segments hold no quote, no space, nothing to escape. */
    if (snprintf(value, sizeof value, "attachment; filename=\"%s\"", slash ? slash + 1 : name) <
        (int) sizeof value)
        content_add_header(c, "Content-Disposition", value);
}

uint64_t content_size(const struct content *c)
{
    return c->size;
}
