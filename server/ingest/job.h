/* job: one upload in work; private to process.c, known.c, decide.c and refuse.c.
 * One thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "evidence/dsse.h"
#include "evidence/keyring.h"
#include "evidence/statement.h"
#include "evidence/verify.h"
#include "server/ingest/ingest.h"
#include "server/ingest/judge.h"
#include "server/store/store_private.h"

struct job {
    struct store *store;
    const struct ingest_request *request;
    int64_t received_us;
    struct ingest_result *out;
    struct store_project project;
    struct dsse envelope;
    struct statement statement; /* unverified until evidence is set, or the signature stage is ok */
    struct digest archive;
    bool has_archive;
    struct keyring *ring;
    int64_t *runners; /* ids, by index in the ring */
    int fd;
    uint64_t size;
    struct blob_stamp stamp;
    struct archive_index *index;
    struct verify_report report;
    struct evidence *evidence; /* NULL unless VALID */
};

/* The runner whose key verified, NULL before that. out_id (its row) may be NULL. */
const struct keyring_entry *job_signer(const struct job *j, int64_t *out_id);

/* Is the run of verified evidence stored? *out_done: it is, and the result is INGEST_REPEATED with
 * the answer that holds now, or INGEST_CONFLICT for other evidence under its name. */
int job_known(struct job *j, const char *run, bool *out_done, struct err *e) MUST_CHECK;
/* The very bytes that were accepted before need no second look, whatever became of the key since:
 * asked before anything is verified. *out_done: these are they, and the result is INGEST_REPEATED.
 */
int job_repeated(struct job *j, bool *out_done, struct err *e) MUST_CHECK;

/* Judges verified evidence by the reviewed baseline and policy, signs and stores the verdict, fills
 * the result. */
int job_decide(struct job *j, const struct package *p, struct err *e) MUST_CHECK;

/* Refusals: the attempt is kept, the result is INGEST_INVALID. */
/* The body is no statement: nothing is known but the project. */
int job_refuse_unreadable(struct job *j, const char *why, struct err *e) MUST_CHECK;
/* A stage of evidence_verify failed. */
int job_refuse_evidence(struct job *j, struct err *e) MUST_CHECK;
/* Sound evidence that lies: either one code with its text, or the reasons of a replay (copied). */
int job_refuse(struct job *j, const char *code, const char *text, const cJSON *reasons,
               struct err *e) MUST_CHECK;
