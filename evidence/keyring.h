/* keyring: public keys that may sign, each with validity and project scope. mbedTLS stays in sign.c
 * and keyring.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"

struct public_key; /* P-256, checked on load */

#define KEYID_SIZE 45 /* base64 of 32 bytes, NUL included */

/* SPKI PEM of at most LIMIT_PEM; anything but P-256 is ERR_INPUT. *out: public_key_free. */
int public_key_parse(const char *pem, size_t len, struct public_key **out,
                     struct err *e) MUST_CHECK;
void public_key_free(struct public_key *k);
/* keyid: base64 of the SHA-256 of the SPKI DER, and that digest itself. Borrowed. */
const char *public_key_id(const struct public_key *k);
const struct digest *public_key_fingerprint(const struct public_key *k);
/* Strict DER ECDSA-Sig-Value over a SHA-256; false for anything but a valid signature. */
bool public_key_verify(const struct public_key *k, const struct digest *message_digest,
                       const uint8_t *sig, size_t sig_len) MUST_CHECK;
/* An uncompressed point (0x04, X, Y: 65 bytes) on the curve. */
int public_key_from_point(const uint8_t *point, size_t len, struct public_key **out,
                          struct err *e) MUST_CHECK;
/* SPKI PEM text, caller frees. */
int public_key_write(const struct public_key *k, char **out_pem, struct err *e) MUST_CHECK;

struct keyring_entry {
    const char *name;            /* runner name; NULL offline */
    const char *machine_class;   /* NULL offline */
    const char *const *projects; /* NULL: every project (offline) */
    size_t n_projects;
    int64_t not_before_us, not_after_us; /* 0: unbounded */
    int64_t revoked_since_us; /* 0: not revoked; a signature received at or after it is refused */
};

struct keyring;
struct keyring *keyring_new(void) MUST_CHECK;
void keyring_free(struct keyring *r);
/* Takes the key in every case (freed on failure); copies the entry. The same key twice is
 * ERR_CONFLICT. */
int keyring_add(struct keyring *r, struct public_key *key, const struct keyring_entry *entry,
                struct err *e) MUST_CHECK;
size_t keyring_count(const struct keyring *r);
/* Borrowed until keyring_free; i < keyring_count. */
const struct public_key *keyring_key(const struct keyring *r, size_t i);
const struct keyring_entry *keyring_entry(const struct keyring *r, size_t i);
/* Index of the key with this id (base64, or the hex fingerprint); keyring_count when there is none.
 */
size_t keyring_index(const struct keyring *r, const char *keyid);
/* NULL when a key of this validity may sign at now_us; else why not (static text). Projects are not
 * asked. */
const char *keyring_entry_refusal(const struct keyring_entry *en, int64_t now_us);
/* The same of the i-th key, and for `project` (NULL: no project asked). */
const char *keyring_refusal(const struct keyring *r, size_t i, const char *project, int64_t now_us);

static inline void cleanup_public_key(struct public_key **k)
{
    public_key_free(*k);
}
#define AUTO_PUBLIC_KEY __attribute__((cleanup(cleanup_public_key)))
static inline void cleanup_keyring(struct keyring **r)
{
    keyring_free(*r);
}
#define AUTO_KEYRING __attribute__((cleanup(cleanup_keyring)))
