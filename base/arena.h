/*
 * arena: bump allocator with a byte cap; everything in it lives until arena_fini.
 * Knows nothing of what is stored. One thread at a time.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
    size_t used; /* bytes handed out, rounded up to alignment */
    size_t max;  /* cap on `used` */
};

void arena_init(struct arena *a, size_t max);
void arena_fini(struct arena *a); /* accepts zeroed */

/* Zeroed memory aligned for any type; NULL when the cap or the heap is exhausted. size 0 gives a
 * unique pointer. */
void *arena_alloc(struct arena *a, size_t size) MUST_CHECK;
/* n * size with overflow check. */
void *arena_calloc(struct arena *a, size_t n, size_t size) MUST_CHECK;
/* NUL-terminated copies; NULL as above. */
char *arena_strdup(struct arena *a, const char *s) MUST_CHECK;
/* adds a NUL after the copy */
char *arena_memdup(struct arena *a, const void *p, size_t len) MUST_CHECK;
char *arena_printf(struct arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3))) MUST_CHECK;
/* err_set(e, ERR_LIMIT, "arena.full", …); for the one-line `if (!p) return arena_full(e);` */
int arena_full(struct err *e);

#define AUTO_ARENA __attribute__((cleanup(arena_fini)))
