/*
 * attest: signed statements: the runner's about a sealed run, the server's about a verdict (a SLSA
 * Verification Summary v1). Verdicts come in as words: what they mean is decided elsewhere.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/manifest.h"
#include "evidence/sign.h"

/* DSSE envelope (one line of JSON, caller frees) over statement_write_run. */
int attest_run(const struct manifest *m, const struct digest *archive_digest, uint64_t archive_size,
               const struct private_key *key, char **out, size_t *out_len,
               struct err *e) MUST_CHECK;

#define ATTEST_LEVEL_PROVENANCE "CLEANRUN_PROVENANCE_VERIFIED"
#define ATTEST_LEVEL_COMPARABLE "CLEANRUN_COMPARABLE"
#define ATTEST_LEVEL_NO_REGRESSION "CLEANRUN_NO_REGRESSION"

struct attest_verdict_input {
    const char *verdict; /* "OK" is PASSED with the three levels; every other word is FAILED */
    const struct digest *archive_digest;
    const char *commit;           /* second subject; NULL when the source was dirty or unknown */
    const char *verifier_id;      /* URI of this server as a verifier */
    const char *verifier_version; /* NULL: left out */
    const char *resource_uri;     /* where the run is found */
    const char *policy_uri;       /* the gate's reviewed policy */
    const struct digest *policy_digest;   /* NULL: left out */
    const char *envelope_uri;             /* the runner's attestation */
    const struct digest *envelope_digest; /* SHA-256 of its bytes */
    const char *baseline;                 /* id or NULL */
    const cJSON *reasons; /* array; the first 100 are copied, the total is stated; NULL: none */
    int64_t verified_at_us;
};

/* DSSE envelope over the verification summary. Deterministic for equal input and key. Caller frees.
 */
int attest_verdict(const struct attest_verdict_input *in, const struct private_key *key, char **out,
                   size_t *out_len, struct err *e) MUST_CHECK;
