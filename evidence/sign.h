/* sign: private keys (P-256, RFC 6979). Every signature is verified again before it leaves
 * (mbedTLS 2.28 may sign wrongly under low memory). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/keyring.h"

#define SIGNATURE_MAX 80 /* strict DER of a P-256 signature is at most 72 bytes */

struct private_key;

/* A new key from the system's random source; *out: private_key_free. */
int private_key_generate(struct private_key **out, struct err *e) MUST_CHECK;
/* Unencrypted PEM of at most LIMIT_PEM, SEC1 or PKCS#8; a curve other than P-256 is ERR_INPUT. The
 * public half is computed, never believed. */
int private_key_parse(const char *pem, size_t len, struct private_key **out,
                      struct err *e) MUST_CHECK;
/* The same from a regular file. One that others may read is ERR_TRUST. */
int private_key_load(const char *path, struct private_key **out, struct err *e) MUST_CHECK;
/* PKCS#8 PEM, caller frees (and wipes it). */
int private_key_write(const struct private_key *k, char **out_pem, struct err *e) MUST_CHECK;
void private_key_free(struct private_key *k); /* wipes; accepts NULL */
/* Borrowed until private_key_free. */
const struct public_key *private_key_public(const struct private_key *k);
/* ECDSA over a SHA-256, deterministic by RFC 6979, as a strict DER ECDSA-Sig-Value. */
int private_key_sign(const struct private_key *k, const struct digest *message_digest,
                     uint8_t out[SIGNATURE_MAX], size_t *out_len, struct err *e) MUST_CHECK;

static inline void cleanup_private_key(struct private_key **k)
{
    private_key_free(*k);
}
#define AUTO_PRIVATE_KEY __attribute__((cleanup(cleanup_private_key)))
