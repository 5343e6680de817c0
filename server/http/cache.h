/*
 * cache: finished answers by raw path, for requests without credentials. Everything in it belongs
 * to one generation of the stored data: bumping the generation empties it, so an answer is never
 * older than the last change that was seen. An entry may also expire (pages that show ages).
 * Bounded in entries and bytes. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct content;
struct cache;

/* Says whether what an entry was made from is still untouched; called at every hit of an entry with
 * a watch. */
typedef bool (*cache_probe)(void *cls, const void *watch, size_t watch_len);

struct cache *cache_new(size_t max_bytes, cache_probe probe, void *cls) MUST_CHECK;
void cache_free(struct cache *c);
uint64_t cache_generation(const struct cache *c);
void cache_bump(struct cache *c);
/* A reference, or NULL. */
struct content *cache_get(struct cache *c, const char *path, uint64_t now_ns);
/* Keeps a reference when `generation`, read before the answer was computed, is still current.
 * `watch` (copied, may be empty) is handed to the probe later. */
void cache_put(struct cache *c, const char *path, struct content *content, uint64_t generation,
               const void *watch, size_t watch_len, uint64_t expires_ns);
size_t cache_bytes(struct cache *c);
