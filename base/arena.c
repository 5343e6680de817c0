#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISON 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISON 1
#endif
#ifdef ARENA_POISON
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define POISON(p, n) ((void) (p), (void) (n))
#define UNPOISON(p, n) ((void) (p), (void) (n))
#endif

#define ARENA_ALIGN alignof(max_align_t)
#define CHUNK_MIN ((size_t) 4096)
#define CHUNK_MAX ((size_t) 1 << 20)

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* of data */
    size_t used;
    alignas(max_align_t) unsigned char data[];
};

void arena_init(struct arena *a, size_t max)
{
    a->chunks = NULL;
    a->used = 0;
    a->max = max;
}

void arena_fini(struct arena *a)
{
    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;

        UNPOISON(a->chunks->data, a->chunks->size);
        free(a->chunks);
        a->chunks = next;
    }
    a->used = 0;
}

/* A new first chunk with at least `need` bytes. */
static struct arena_chunk *add_chunk(struct arena *a, size_t need)
{
    size_t size = a->chunks ? a->chunks->size * 2 : CHUNK_MIN;
    struct arena_chunk *c = NULL;

    if (size > CHUNK_MAX)
        size = CHUNK_MAX;
    if (size < need)
        size = need;
    if (size > SIZE_MAX - sizeof(*c))
        return NULL;
    c = calloc(1, sizeof(*c) + size);
    if (!c)
        return NULL;
    c->size = size;
    c->next = a->chunks;
    a->chunks = c;
    POISON(c->data, c->size);
    return c;
}

void *arena_alloc(struct arena *a, size_t size)
{
    size_t rounded = 0;
    struct arena_chunk *c = a->chunks;
    unsigned char *p = NULL;

    if (!num_add(size > 0 ? size : 1, ARENA_ALIGN - 1, &rounded))
        return NULL;
    rounded &= ~(ARENA_ALIGN - 1);
    if (a->used > a->max || rounded > a->max - a->used)
        return NULL;
    if (!c || rounded > c->size - c->used)
        c = add_chunk(a, rounded);
    if (!c)
        return NULL;
    p = c->data + c->used;
    a->used += rounded;
    c->used += rounded;
#ifdef ARENA_POISON
    if (ARENA_ALIGN <= c->size - c->used)
        c->used += ARENA_ALIGN; /* stays poisoned: the sanitizer sees one allocation running into
                                   the next */
#endif
    UNPOISON(p, size);
    return p;
}

void *arena_calloc(struct arena *a, size_t n, size_t size)
{
    size_t total = 0;

    return num_mul(n, size, &total) ? arena_alloc(a, total) : NULL;
}

char *arena_memdup(struct arena *a, const void *p, size_t len)
{
    size_t size = 0;
    char *copy = num_add(len, 1, &size) ? arena_alloc(a, size) : NULL;

    if (copy && len > 0)
        memcpy(copy, p, len);
    return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_memdup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list ap;
    int need = 0;
    char *text = NULL;

    va_start(ap, format);
    need = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    if (need < 0)
        return NULL;
    text = arena_alloc(a, (size_t) need + 1);
    if (!text)
        return NULL;
    va_start(ap, format);
    (void) vsnprintf(text, (size_t) need + 1, format, ap); /* measured above */
    va_end(ap);
    return text;
}

int arena_full(struct err *e)
{
    return err_set(e, ERR_LIMIT, "arena.full",
                   "the data needs more memory than is allowed for one job");
}
