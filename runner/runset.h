/*
 * runset: several runs of one experiment as one piece of evidence: what they lack to pass together,
 * and the index that says so. Loaded from run directories, or from a package. Knows nothing of how
 * a package is written or signed. One thread.
 *
 * A package, everything in it read-only:
 *   index.json  index.json.sha256  [index.json.dsse.json]  README.md  definition.json
 * source-at-start.json [source-now.json]  [executable/<name>]  run-1/ … run-N/ (complete run
 * directories)
 *
 * cleanrun-package/1, closed: {schema, created_at, required_count, status: PASS|FAIL, project,
 * gate, class, run_count, definition{path, experiment_sha256, policy_sha256},
 * source_at_start{cleanrun-source/1}, source_now: CAPTURED{source}, common_source_fingerprint|null,
 * common_executable_sha256|null, executable: CAPTURED{directory, name, size, sha256}, baseline:
 * CAPTURED{id, manifest_sha256, path, tree_sha256}, runs[{sequence, run, path, started_at,
 * finished_at, status, dirty, source_fingerprint, executable_sha256|null, baseline_id|null,
 * manifest_sha256, tree_sha256, acceptance{verdict, checks, failed[]}, audit: CAPTURED{verdict,
 * comparisons}}], shortcomings[{code, run|null, text}], eligibility{clean, unchanged_source,
 * no_skips, pass}, files[{path, size, sha256}]} CAPTURED is {status: "captured", …} or {status:
 * "absent", reason}. `acceptance` is computed now, by definition.json. Everything but created_at
 * and required_count is a function of the files.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "experiment/definition.h"
#include "runner/runset_run.h"

#define RUNSET_SCHEMA "cleanrun-package/1"
#define RUNSET_MAX 32 /* runs in a package */

#define RUNSET_INDEX "index.json"
#define RUNSET_CHECKSUM "index.json.sha256"
#define RUNSET_ENVELOPE "index.json.dsse.json"
#define RUNSET_README "README.md"
#define RUNSET_DEFINITION "definition.json"
#define RUNSET_START "source-at-start.json"
#define RUNSET_NOW "source-now.json"
#define RUNSET_EXECUTABLE "executable"
#define RUNSET_RUN_NAME_SIZE 16

struct runset {
    struct runset_run *runs;
    size_t n;
    struct definition definition; /* that judges */
    bool has_definition;
    cJSON *start; /* source block taken before the first run */
    cJSON *now;   /* source block taken when packaging; NULL: not taken */
    bool has_executable;
    struct digest executable;
    uint64_t executable_size;
    cJSON *acceptances;  /* array: for each run its acceptance document by `definition`, or null
                            without a report */
    cJSON *shortcomings; /* array, by runset_judge */
};

/* From run directories, in the order given. Distinct directories and runs of one project, gate and
 * class, each begun after the one before, else ERR_TRUST. */
int runset_open(const char *const *paths, size_t n, struct runset *out, struct err *e) MUST_CHECK;
/* From a package's directory (its index is not looked at). ERR_TRUST when it is no package or holds
 * anything that has no place in one. */
int runset_open_package(const char *dir, struct runset *out, struct err *e) MUST_CHECK;
void runset_close(struct runset *s); /* accepts zeroed */

/* A source block as `cleanrun fingerprint --json` writes it; else ERR_INPUT. Takes a copy. */
int runset_set_start(struct runset *s, const cJSON *block, struct err *e) MUST_CHECK;
int runset_set_now(struct runset *s, const cJSON *block, struct err *e) MUST_CHECK;
/* The definition that judges; without it the first run's own. Takes a copy. */
int runset_set_definition(struct runset *s, const struct definition *d, struct err *e) MUST_CHECK;
/* Digest and size of the executable's file; another one than a run's is ERR_TRUST. */
int runset_set_executable(struct runset *s, const struct digest *digest, uint64_t size,
                          struct err *e) MUST_CHECK;

/* Fills shortcomings: everything that keeps these runs from being evidence of `required` passes of
 * one experiment. The start must be set. */
int runset_judge(struct runset *s, size_t required, struct err *e) MUST_CHECK;

struct runset_frame {
    const char *created_at; /* RFC 3339 */
    size_t required;
    const cJSON *files; /* array of {path, size, sha256} */
};
/* The index of a judged set. New tree, caller frees. created_at before the last run's end is
 * ERR_TRUST. */
int runset_index(const struct runset *s, const struct runset_frame *frame, cJSON **out,
                 struct err *e) MUST_CHECK;

/* files[] of a package's directory: all but index, checksum and envelope; n: its runs. A file that
 * has no place in a package is ERR_TRUST. */
int runset_files(int dirfd, size_t n, cJSON **out, struct err *e) MUST_CHECK;

/* "run-3" of 2 */
void runset_run_name(size_t i, char out[RUNSET_RUN_NAME_SIZE]);
/* The same commit, tree, fingerprint and dirtiness by the same scheme. */
bool runset_same_source(const cJSON *a, const cJSON *b);

#define AUTO_RUNSET __attribute__((cleanup(runset_close)))
