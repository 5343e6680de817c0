/*
 * ingest: from a stored archive and an envelope to a verdict, on one thread: verify, replay, judge,
 * store in one transaction, answer. Knows nothing of HTTP: the caller hands over a function that is
 * called with the result.
 * ingest_submit may be called from any thread; `done` is called exactly once for every accepted
 * request, on the ingest thread (or inside ingest_stop).
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "server/store/store.h"

enum ingest_outcome {
    INGEST_STORED,   /* 201: body is the answer, run its id */
    INGEST_REPEATED, /* 200: the same bytes as the first time */
    INGEST_INVALID, /* 422: problem holds the members of the problem document (reasons, stages, …)
                     */
    INGEST_CONFLICT, /* 409: the run id is taken by another archive; err.text says which */
    INGEST_NO_BLOB,  /* 404: the envelope's subject is not stored for this project */
    INGEST_FAILED,   /* no decision could be reached: err */
};

struct ingest_result {
    enum ingest_outcome outcome;
    char *run;  /* or NULL */
    char *body; /* JSON: cleanrun-verdict/1; for diagnostic and build-only runs its "verdict" is
                   null */
    size_t body_len;
    cJSON *problem; /* {verdict, detail, project, gate, run, archive_sha256, keyid, received_at,
                       reasons[], stages[], links} */
    struct err err; /* INGEST_CONFLICT, INGEST_NO_BLOB, INGEST_FAILED; for INGEST_INVALID its text
                       is the detail */
};
void ingest_result_fini(struct ingest_result *r); /* accepts zeroed */

struct ingest_request {
    const char *project, *gate; /* of the URL; the project exists */
    const char *envelope;       /* the POST body, ≤ LIMIT_ENVELOPE */
    size_t envelope_len;
    /* The archive that the sender means; NULL: the one that the envelope names. Another one than
     * named is IN-HASH, so that an altered archive sent with its old envelope is told so, whatever
     * is stored of the run already. Copied. */
    const struct digest *archive;
    /* Called with the result, which the callee now owns (ingest_result_fini). */
    void (*done)(void *ctx, struct ingest_result *result);
    void *ctx;
};

struct ingest;

/* Starts the thread. The store outlives it. */
int ingest_start(struct store *s, struct ingest **out, struct err *e) MUST_CHECK;
/* Copies the request. ERR_BUSY when LIMIT_QUEUE jobs wait or it is stopping (done is not called
 * then). */
int ingest_submit(struct ingest *i, const struct ingest_request *r, struct err *e) MUST_CHECK;
size_t ingest_waiting(struct ingest *i);
/* Finishes the jobs that wait, then ends the thread. Accepts NULL. */
void ingest_stop(struct ingest *i);

/* One request on the calling thread (tests, commands); the writer must not be used by another
 * ingest. */
void ingest_process(struct store *s, const struct ingest_request *r, int64_t received_us,
                    struct ingest_result *out);
