/*
 * agreement: what a manifest says that was done, against everything beside it: the definition, the
 * environment and host records, the reports, the snapshot of the baseline, the clock. One place for
 * `cleanrun verify` and the server. The manifest's own shape and words were checked before.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/err.h"
#include "evidence/manifest.h"
#include "experiment/definition.h"

/* ERR_TRUST with both values: the run id and started_at name the same moment, not before
 * LIMIT_EARLIEST_US, and finished_at is not after received_us and the allowed skew. */
int agreement_times(const struct manifest *m, int64_t received_us, struct err *e) MUST_CHECK;

/* ERR_TRUST with the first thing in which they differ: gate, project, class, digests, the report's
 * place, how the program was built, found and named, mode, rejected patterns, the conditioning's
 * steps and digest and, of a clean run that passed, its phase markers. */
int agreement_check(const struct manifest *m, const struct definition *d, struct err *e) MUST_CHECK;

/* How members are read: their verified bytes, parsed (caller frees); *out NULL when the archive has
 * none of this name. */
struct agreement_reader {
    int (*read)(void *ctx, const char *name, cJSON **out, struct err *e);
    /* The bytes of a member that must be there and has at most max of them (caller frees). */
    int (*bytes)(void *ctx, const char *name, size_t max, char **out, size_t *out_len,
                 struct err *e);
    void *ctx;
};

/* ERR_TRUST with the first thing in which the manifest differs from environment.json, host.json and
 * the definition's host limits, the times in them, what was executed, the files that every run
 * leaves, the report as the program wrote it, the reports' windows, the reports that prove
 * conditioning steps, and the baseline's snapshot; other errors are the reader's. */
int agreement_files(const struct manifest *m, const struct definition *d,
                    const struct agreement_reader *reader, struct err *e) MUST_CHECK;
