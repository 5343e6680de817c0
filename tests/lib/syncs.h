/*
 * syncs: what a program makes durable, in which order. A test that links this has its own fsync,
 * fdatasync, renameat and renameat2, which do the same, are written down, and can be told to fail:
 * a killed process loses nothing that the kernel has, so only this shows a forgotten fsync.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum sync_kind { SYNC_BYTES, SYNC_RENAME };

struct sync_event {
    enum sync_kind kind;
    char path[256]; /* below the root; of a rename the new one. "." is the root */
};

/* Begins to write down what happens below an existing directory, the root; forgets what was there
 * before. */
void syncs_begin(const char *dir);
/* The syncs below the root from here on fail with EIO from number `from` (0 is the next) to before
 * `to`. */
void syncs_fail(size_t from, size_t to);
/* Ends it, and no sync fails any more. */
void syncs_end(void);
size_t syncs_count(void);
const struct sync_event *syncs_at(size_t i);
/* Place of the first event from `from` on whose path begins with `path` ("=x": is exactly x);
 * the test fails when there is none. */
size_t syncs_find(size_t from, enum sync_kind kind, const char *path);
