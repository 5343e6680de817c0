/*
 * dsse: Dead Simple Signing Envelope v1: pre-authentication encoding, strict reading, writing, and
 * checking against a keyring. Knows nothing of what the payload says. No shared state.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/limits.h"
#include "evidence/keyring.h"
#include "evidence/sign.h"

struct dsse_signature {
    char *keyid; /* an unauthenticated hint; "" when absent */
    uint8_t *sig;
    size_t sig_len;
};

struct dsse {
    char *payload_type;
    uint8_t *payload; /* payload_len bytes and a NUL that is not counted */
    size_t payload_len;
    struct dsse_signature signatures[LIMIT_SIGNATURES];
    size_t n;
};

/* Which keys of a ring made a valid signature. */
struct dsse_check {
    size_t keys[LIMIT_SIGNATURES]; /* indices into the ring, distinct */
    size_t n;                      /* distinct keys; two signatures by one key count once */
    bool hint_known;               /* some signature's keyid names a key of the ring */
};

/* "DSSEv1 LEN TYPE LEN BODY" */
void dsse_pae(struct buf *out, const char *payload_type, const void *payload, size_t len);
int dsse_pae_digest(const char *payload_type, const void *payload, size_t len, struct digest *out,
                    struct err *e) MUST_CHECK;

/* Strict JSON ≤ LIMIT_ENVELOPE; unknown members ignored; both base64 alphabets; 1 to
 * LIMIT_SIGNATURES signatures. */
int dsse_parse(const char *bytes, size_t len, struct dsse *out, struct err *e) MUST_CHECK;
void dsse_fini(struct dsse *d); /* accepts zeroed */
#define AUTO_DSSE __attribute__((cleanup(dsse_fini)))

/* keyid is tried first, then every other key. -1 only for lack of memory. */
int dsse_check_keys(const struct dsse *d, const struct keyring *ring, struct dsse_check *out,
                    struct err *e) MUST_CHECK;

/* Signs; the envelope is one line of JSON (heap, NUL-terminated, caller frees). */
int dsse_sign(const char *payload_type, const void *payload, size_t len,
              const struct private_key *key, char **out, size_t *out_len, struct err *e) MUST_CHECK;

/* The envelope as a Sigstore bundle v0.3 with a public-key hint. Exactly one signature is required.
 * Caller frees. */
int dsse_sigstore_bundle(const struct dsse *d, char **out, size_t *out_len,
                         struct err *e) MUST_CHECK;
