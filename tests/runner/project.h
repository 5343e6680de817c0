/*
 * project: a git repository with the test workload, a gate for it, and the real cleanrun program
 * run on it, each in a directory of its own. Helpers fail the running test themselves. Include
 * after support.h.
 */
#pragma once

#include <cjson/cJSON.h>
#include <sys/types.h>

#include "base/digest.h"
#include "tests/lib/support.h"

struct project {
    char *dir; /* removed by project_free */
    char *repo;
    char *state; /* XDG_STATE_HOME */
    char *env[8];
};

/* behaviour: the workload's arguments as YAML list items, such as "ok" or "edit-source, REPO". The
 * word REPO becomes the repository's path. extra: lines added to the gate (six spaces deep by their
 * own), or NULL. */
void project_new(struct project *p, const char *behaviour, const char *extra);
void project_free(struct project *p);
/* Replaces the first `from` of cleanrun.yaml, which must be there. Nothing is committed. */
void project_edit(const struct project *p, const char *from, const char *to);
/* The same of any file of the repository, and everything is committed. */
void project_change(const struct project *p, const char *name, const char *from, const char *to);
/* Runs git in the repository with a fixed identity. */
void project_git(const struct project *p, const char *const argv[]);
/* cleanrun with these arguments (without the program's name), in the repository; env: more
 * variables or NULL. */
void project_cleanrun(const struct project *p, const char *const args[], const char *const env[],
                      struct test_run *r);
/* `cleanrun run g --out <dir>/out --json …`; args may be NULL. */
void project_measure(const struct project *p, const char *const args[], struct test_run *r);
/* `cleanrun run g --out <dir>/out`, not waited for. */
pid_t project_start(const struct project *p);
/* "<dir>/out/<name>" */
char *project_out(const struct project *p, const char *name);
/* A JSON document of the run directory, freed with cJSON_Delete; and whether there is such a file.
 */
cJSON *project_json(const struct project *p, const char *name);
bool project_has(const struct project *p, const char *name);
/* The run directory's manifest, read as a verifier reads it, with every listed file's bytes
 * checked; freed with cJSON_Delete. */
cJSON *project_manifest(const struct project *p);
/* SHA-256 of the run directory's manifest.json. */
void project_manifest_digest(const char *dir, char hex[DIGEST_HEX_SIZE]);
