/* cache: a fixed-capacity map from 64-bit keys to byte strings that forgets the least recently used
 * entry. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache;

struct cache_counters {
    uint64_t gets;
    uint64_t hits;
    uint64_t puts;
    uint64_t evictions;
    uint64_t probes;   /* hash chain entries looked at */
    uint64_t failures; /* allocations that failed */
};

struct cache *cache_new(size_t capacity); /* NULL: no memory */
void cache_free(struct cache *c);
/* The value lives until the next put; NULL: not cached. */
const char *cache_get(struct cache *c, uint64_t key, size_t *out_len);
/* Copies the value; evicts the least recently used entry when full. False: no memory. */
bool cache_put(struct cache *c, uint64_t key, const char *value, size_t len);
const struct cache_counters *cache_counters(const struct cache *c);
