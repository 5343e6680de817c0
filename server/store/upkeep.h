/*
 * upkeep: collecting what nobody needs, checking everything against everything, copying it away and
 * back. gc and backup keep each other out (upkeep.lock); both may run beside a server.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "server/store/store.h"

#define UPKEEP_KEEP_S 86400 /* an object that no run names is kept this long */

struct upkeep_gc {
    uint64_t blobs;   /* rows whose object no run and no baseline of the project names */
    uint64_t objects; /* files removed, those without any row included */
    uint64_t bytes;
};
/* dry_run: only counts. keep_s: age from which things are collected. */
int upkeep_gc(struct store *s, bool dry_run, int64_t keep_s, struct upkeep_gc *out,
              struct err *e) MUST_CHECK;

struct upkeep_fsck {
    uint64_t blobs, runs, baselines; /* looked at */
    uint64_t orphans;                /* objects without a row: no damage */
    uint64_t problems;
};
/* Calls say for every finding ("damaged: …", "orphan: …"). 0 also with problems: see out. */
int upkeep_fsck(struct store *s, void (*say)(void *ctx, bool problem, const char *text), void *ctx,
                struct upkeep_fsck *out, struct err *e) MUST_CHECK;

/* A complete copy in dir, which is made and must not exist or be empty: database, objects, key. Its
 * every object is hashed. *out_objects: how many. */
int upkeep_backup(struct store *s, const char *dir, uint64_t *out_objects,
                  struct err *e) MUST_CHECK;
/* The copy becomes the data directory, which must not exist or be empty. Objects are hashed on the
 * way. */
int upkeep_restore(const char *dir, const char *data, uint64_t *out_objects,
                   struct err *e) MUST_CHECK;
