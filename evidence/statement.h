/*
 * statement: in-toto Statement v1 about one sealed run, written by the runner and read by the
 * server. Fixed names live here and nowhere else. Knows nothing of signatures.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/json_out.h"
#include "evidence/manifest.h"

#define STATEMENT_PAYLOAD_TYPE "application/vnd.in-toto+json"
#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"
/* Opaque names, compared byte for byte and never fetched. The number is the major version: minor
 * ones only add. */
#define STATEMENT_PREDICATE_RUN "https://cleanrun.dev/attestation/run/v1"
#define STATEMENT_PREDICATE_PACKAGE "https://cleanrun.dev/attestation/package/v1"
#define STATEMENT_PREDICATE_VSA "https://slsa.dev/verification_summary/v1"
#define STATEMENT_VERDICT_FIELD                                                                    \
    "https://cleanrun.dev/verdict/v1" /* our extension inside the VSA predicate */
#define STATEMENT_ARCHIVE_NAME "evidence.tar"

struct statement {
    cJSON *document; /* owned */
    const char *predicate_type;
    const cJSON *predicate; /* NULL when absent */
};

/* The run statement's bytes (compact JSON, caller frees). Subjects: archive, executable when there
 * is one, commit when the source was clean. */
int statement_write_run(const struct manifest *m, const struct digest *archive_digest,
                        uint64_t archive_size, char **out, size_t *out_len,
                        struct err *e) MUST_CHECK;

/* The bytes of a statement that was built: compact JSON, half of LIMIT_ENVELOPE at most, since it
 * becomes longer in its envelope. Takes d's root. */
int statement_bytes(struct json_doc *d, struct buf *out, struct err *e) MUST_CHECK;

/* Strict JSON; unknown members ignored, as in-toto asks. */
int statement_parse(const void *bytes, size_t len, struct statement *out, struct err *e) MUST_CHECK;
void statement_fini(struct statement *s); /* accepts zeroed */
#define AUTO_STATEMENT __attribute__((cleanup(statement_fini)))

/* Some subject carries this sha256. Other digest algorithms are ignored. */
bool statement_names(const struct statement *s, const struct digest *sha256);
/* The predicate says the same as the manifest, and the subjects are exactly those that
 * statement_write_run names, in its order: ERR_TRUST tells the first difference with both values.
 * Members of the predicate that it does not write are ignored. */
int statement_agrees(const struct statement *s, const struct manifest *m,
                     const struct digest *archive_digest, uint64_t archive_size,
                     struct err *e) MUST_CHECK;
