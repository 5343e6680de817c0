#include "server/http/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "server/http/content.h"

#define SLOTS 1024 /* direct mapped: a newer path replaces an older one with the same slot */
#define WATCH_MAX REQUEST_WATCH_MAX
#define ENTRY_OVERHEAD 1024 /* response and headers */

struct entry {
    struct content *content; /* NULL: empty */
    char *path;
    size_t bytes;
    uint64_t generation, expires_ns;
    unsigned char watch[WATCH_MAX];
    size_t watch_len;
};

struct cache {
    cache_probe probe;
    void *cls;
    size_t max_bytes;
    atomic_uint_fast64_t generation;
    pthread_rwlock_t entries_lock;
    struct entry entries[SLOTS]; /* under entries_lock, as is the rest */
    size_t bytes;
    size_t hand; /* next slot to evict */
};

struct cache *cache_new(size_t max_bytes, cache_probe probe, void *cls)
{
    struct cache *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    if (pthread_rwlock_init(&c->entries_lock, NULL) != 0) {
        free(c);
        return NULL;
    }
    c->max_bytes = max_bytes;
    c->probe = probe;
    c->cls = cls;
    return c;
}

static void entry_drop(struct cache *c, struct entry *e)
{
    if (!e->content)
        return;
    content_unref(e->content);
    free(e->path);
    c->bytes -= e->bytes;
    e->content = NULL;
    e->path = NULL;
    e->bytes = 0;
}

void cache_free(struct cache *c)
{
    size_t i = 0;

    if (!c)
        return;
    for (i = 0; i < SLOTS; i++)
        entry_drop(c, &c->entries[i]);
    (void) pthread_rwlock_destroy(&c->entries_lock);
    free(c);
}

uint64_t cache_generation(const struct cache *c)
{
    return atomic_load(&c->generation);
}

void cache_bump(struct cache *c)
{
    (void) atomic_fetch_add(&c->generation, 1);
}

/* FNV-1a. */
static size_t slot_of(const char *path)
{
    uint64_t h = 14695981039346656037u;

    for (; *path != '\0'; path++)
        h = (h ^ (unsigned char) *path) * 1099511628211u;
    return (size_t) ((h ^ (h >> 32)) % SLOTS);
}

/* What a probe needs, copied out of the lock. */
struct found {
    struct content *content;
    unsigned char watch[WATCH_MAX];
    size_t watch_len;
};

static bool look_up(struct cache *c, const char *path, uint64_t now_ns, struct found *out)
{
    const struct entry *e = &c->entries[slot_of(path)];
    bool hit = false;

    (void) pthread_rwlock_rdlock(&c->entries_lock);
    hit = e->content && e->generation == atomic_load(&c->generation) && now_ns < e->expires_ns &&
          strcmp(e->path, path) == 0;
    if (hit) {
        content_ref(e->content);
        out->content = e->content;
        out->watch_len = e->watch_len;
        if (e->watch_len > 0)
            memcpy(out->watch, e->watch, e->watch_len);
    }
    (void) pthread_rwlock_unlock(&c->entries_lock);
    return hit;
}

static void drop_if(struct cache *c, const char *path, const struct content *content)
{
    struct entry *e = &c->entries[slot_of(path)];

    (void) pthread_rwlock_wrlock(&c->entries_lock);
    if (e->content == content)
        entry_drop(c, e);
    (void) pthread_rwlock_unlock(&c->entries_lock);
}

struct content *cache_get(struct cache *c, const char *path, uint64_t now_ns)
{
    struct found found = {.content = NULL};

    if (!look_up(c, path, now_ns, &found))
        return NULL;
    if (found.watch_len == 0 || c->probe(c->cls, found.watch, found.watch_len))
        return found.content;
    drop_if(c, path, found.content);
    content_unref(found.content);
    return NULL;
}

void cache_put(struct cache *c, const char *path, struct content *content, uint64_t generation,
               const void *watch, size_t watch_len, uint64_t expires_ns)
{
    struct entry *e = &c->entries[slot_of(path)];
    size_t bytes = (size_t) content_size(content) + ENTRY_OVERHEAD + strlen(path);
    char *copy = NULL;

    if (bytes > c->max_bytes / 8 || watch_len > WATCH_MAX || !content_seal(content))
        return;
    copy = strdup(path);
    if (!copy)
        return;
    (void) pthread_rwlock_wrlock(&c->entries_lock);
    if (generation != atomic_load(&c->generation)) {
        (void) pthread_rwlock_unlock(&c->entries_lock);
        free(copy);
        return;
    }
    entry_drop(c, e);
    while (c->bytes + bytes > c->max_bytes) {
        entry_drop(c, &c->entries[c->hand]);
        c->hand = (c->hand + 1) % SLOTS;
    }
    content_ref(content);
    e->content = content;
    e->path = copy;
    e->bytes = bytes;
    e->generation = generation;
    e->expires_ns = expires_ns;
    e->watch_len = watch_len;
    if (watch_len > 0)
        memcpy(e->watch, watch, watch_len);
    c->bytes += bytes;
    (void) pthread_rwlock_unlock(&c->entries_lock);
}

size_t cache_bytes(struct cache *c)
{
    size_t bytes = 0;

    (void) pthread_rwlock_rdlock(&c->entries_lock);
    bytes = c->bytes;
    (void) pthread_rwlock_unlock(&c->entries_lock);
    return bytes;
}
