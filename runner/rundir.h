/*
 * rundir: the run directory's life: written as "<name>.partial" under a lock, renamed when it is
 * complete, so a runner that dies leaves nothing that looks like evidence. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Files of it that more than their writer knows; the others are named in evidence/manifest.c. */
#define RUNDIR_DEFINITION "definition.json"
#define RUNDIR_SOURCE_AT_START "source-at-start.json"
#define RUNDIR_ERROR "error.json" /* instead of a manifest: the runner could not measure */

#define RUN_ID_SIZE 26 /* "20261129T141502Z-9c1e07ab" and NUL */

struct rundir {
    int parent_fd;
    int fd;        /* the directory while it is being written, locked */
    char *path;    /* absolute path it will have */
    char *name;    /* its last segment */
    char *partial; /* "<name>.partial" */
    bool committed;
};

/* A fresh run id: UTC start and eight random hex digits. */
int rundir_new_id(int64_t started_us, char out[RUN_ID_SIZE], struct err *e) MUST_CHECK;

/* path must not exist (ERR_USAGE); its parents are made. A partial directory of the same name whose
 * runner is gone is removed first. */
int rundir_open(const char *path, struct rundir *out, struct err *e) MUST_CHECK;
/* After a program that could move or remove it: when it is no longer at its name, an empty one
 * takes its place. */
int rundir_restore(struct rundir *d, bool *out_moved, struct err *e) MUST_CHECK;
/* Writes a document into it: pretty JSON of at most `max` bytes. The error names the file. */
int rundir_write_json(const struct rundir *d, const char *name, const cJSON *j, size_t max,
                      struct err *e) MUST_CHECK;
/* Makes everything durable and gives the directory its name. */
int rundir_commit(struct rundir *d, struct err *e) MUST_CHECK;
/* Removes it unless it was committed; accepts zeroed. */
void rundir_close(struct rundir *d);
/* Removes partial directories of dead runners among run ids in `path`; returns how many. A live one
 * is left alone. */
size_t rundir_sweep(const char *path);
/* True when the directory's writer is gone (its lock can be had); the lock is released again. */
bool rundir_is_abandoned(int parent_fd, const char *name);
