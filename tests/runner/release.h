/*
 * release: what a maintainer has before packaging: a git repository, its executable, a reviewed
 * baseline run and three clean runs of the seed's canonical experiment with the seed's passing
 * report. Everything in the run directories is really computed. Helpers fail the running test
 * themselves. Include after support.h.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "tests/lib/support.h"

#define RELEASE_REPORT "results/perf_call_setup_cps_pbx-media-server/2000.json"

struct release_run {
    const char *executable;       /* its bytes; NULL: those of the executable file */
    const char *commit_in_report; /* NULL: the repository's */
    const char *status;           /* NULL: PASS */
    const char *mode;             /* NULL: clean */
    double achieved;              /* 0: as in the fixture, which passes */
};

struct release {
    char *dir; /* everything, removed by release_free */
    char *repo;
    char *executable;
    char *start; /* source block, a file */
    char *out;   /* where the package goes; its directory holds nothing else */
    char *runs[3];
    char *baseline; /* run directory */
};

/* dirty: the source has an uncommitted change from the start. compared: the runs have the baseline.
 */
void release_new(struct release *r, bool dirty, bool compared);
/* A copy in a directory of its own. */
void release_copy(const struct release *from, struct release *r);
void release_free(struct release *r); /* accepts zeroed */

/* Writes run i (0 to 2) again. */
void release_write_run(const struct release *r, size_t i, bool compared,
                       const struct release_run *how);
/* Sets a value in the manifest of a run directory (json NULL: removes it; pointer NULL: nothing)
 * and lists the files as they are now. */
void release_edit_manifest(const char *run, const char *pointer, const char *json);
/* Sets a value in a JSON file of a directory. */
void release_edit(const char *dir, const char *name, const char *pointer, const char *json);
cJSON *release_json(const char *dir, const char *name);
void release_write_json(const char *dir, const char *name, const cJSON *j);
