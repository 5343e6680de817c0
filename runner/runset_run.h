/*
 * runset_run: one finished run directory, read whole and checked by itself: every member against
 * the manifest, the definition against its digests, the source records, acceptance and audit
 * computed again from what is there. Knows nothing of other runs. One thread.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/manifest.h"
#include "experiment/acceptance.h"
#include "experiment/definition.h"
#include "experiment/tree.h"
#include "runner/reference.h"

struct runset_run {
    int fd;
    dev_t device; /* which directory it is, however it was named */
    ino_t inode;
    struct manifest manifest;
    struct definition definition; /* its own */
    struct tree tree;             /* reports, by their path below results/ */
    struct reference reference;   /* its snapshot of the baseline; not present when it names none */
    struct digest baseline_tree;  /* of the snapshot, when present */
    struct digest tree_digest;    /* of the whole directory */
    cJSON *acceptance;            /* acceptance.json and audit.json; NULL when there is none */
    cJSON *audit;
    char *samples; /* the runner's samples; NULL when there are none */
    size_t samples_len;
};

/* A directory that can't be opened is what the system said of it; everything else that is wrong is
 * ERR_TRUST. */
int runset_run_open(const char *path, struct runset_run *out, struct err *e) MUST_CHECK;
void runset_run_close(struct runset_run *r); /* accepts zeroed */
/* The report that the manifest names, borrowed; NULL when there is none that can be read. */
const cJSON *runset_run_report(const struct runset_run *r);
/* Acceptance of the report by this definition's policy, computed now. */
int runset_run_accept(const struct runset_run *r, const struct definition *d,
                      struct acceptance *out, struct err *e) MUST_CHECK;
/* The comparison with its baseline, and acceptance, by the policy that was reviewed with that,
 * computed now; *out_word is NULL, and *out not made, when there is no baseline or the run's own
 * policy is that one. */
int runset_run_reviewed(const struct runset_run *r, const char **out_word, struct acceptance *out,
                        struct err *e) MUST_CHECK;
/* A text member of the manifest, "" when it is null. */
const char *runset_run_word(const struct runset_run *r, const char *key);
/* Name of the first check of an acceptance document that did not pass, NULL when all did;
 * *out_failed counts them. */
const char *runset_first_failed(const cJSON *acceptance, size_t *out_failed);
