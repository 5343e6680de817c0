#include "cache.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    uint64_t key;
    struct entry *chain;         /* next in the same bucket */
    struct entry *newer, *older; /* recency list */
    char *value;
    size_t len;
};

struct cache {
    size_t capacity;
    size_t count;
    size_t mask; /* buckets - 1, a power of two less one */
    struct entry **buckets;
    struct entry *newest, *oldest;
    struct cache_counters counters;
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    return x;
}

struct cache *cache_new(size_t capacity)
{
    struct cache *c = calloc(1, sizeof *c);
    size_t buckets = 16;

    if (!c)
        return NULL;
    while (buckets < capacity)
        buckets *= 2;
    c->buckets = calloc(buckets, sizeof(struct entry *));
    if (!c->buckets) {
        free(c);
        return NULL;
    }
    c->capacity = capacity;
    c->mask = buckets - 1;
    return c;
}

static void release(struct cache *c, struct entry *old)
{
    (void) c;
    free(old->value);
    free(old);
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    while (c->newest) {
        struct entry *next = c->newest->older;

        release(c, c->newest);
        c->newest = next;
    }
    free(c->buckets);
    free(c);
}

static struct entry **find(struct cache *c, uint64_t key)
{
    struct entry **at = &c->buckets[mix(key) & c->mask];

    while (*at) {
        c->counters.probes++;
        if ((*at)->key == key)
            break;
        at = &(*at)->chain;
    }
    return at;
}

static void unlink_recency(struct cache *c, struct entry *e)
{
    if (e->newer)
        e->newer->older = e->older;
    else
        c->newest = e->older;
    if (e->older)
        e->older->newer = e->newer;
    else
        c->oldest = e->newer;
}

static void make_newest(struct cache *c, struct entry *e)
{
    e->newer = NULL;
    e->older = c->newest;
    if (c->newest)
        c->newest->newer = e;
    else
        c->oldest = e;
    c->newest = e;
}

static void evict(struct cache *c)
{
    struct entry *old = c->oldest;
    struct entry **at = find(c, old->key);

    *at = old->chain;
    unlink_recency(c, old);
    c->count--;
    c->counters.evictions++;
    release(c, old);
}

const char *cache_get(struct cache *c, uint64_t key, size_t *out_len)
{
    struct entry **at = find(c, key);

    c->counters.gets++;
    if (!*at)
        return NULL;
    c->counters.hits++;
    unlink_recency(c, *at);
    make_newest(c, *at);
    *out_len = (*at)->len;
    return (*at)->value;
}

static bool replace(struct cache *c, struct entry *e, const char *value, size_t len)
{
    char *copy = malloc(len);

    if (!copy) {
        c->counters.failures++;
        return false;
    }
    memcpy(copy, value, len);
    free(e->value);
    e->value = copy;
    e->len = len;
    return true;
}

bool cache_put(struct cache *c, uint64_t key, const char *value, size_t len)
{
    struct entry **at = find(c, key);
    struct entry *fresh = NULL;

    c->counters.puts++;
    if (*at)
        return replace(c, *at, value, len);
    if (c->count == c->capacity)
        evict(c);
    fresh = calloc(1, sizeof *fresh);
    if (!fresh || !replace(c, fresh, value, len)) {
        free(fresh);
        return false;
    }
    fresh->key = key;
    fresh->chain = c->buckets[mix(key) & c->mask];
    c->buckets[mix(key) & c->mask] = fresh;
    make_newest(c, fresh);
    c->count++;
    return true;
}

const struct cache_counters *cache_counters(const struct cache *c)
{
    return &c->counters;
}
