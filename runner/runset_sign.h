/* runset_sign: the signature of a package's index: a DSSE envelope over an in-toto statement about
 * its bytes. */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/keyring.h"
#include "evidence/sign.h"

/* The envelope, one line of JSON, caller frees. digest: of the index's bytes. */
int runset_sign(const cJSON *index, const struct digest *digest, const struct private_key *key,
                char **out, size_t *out_len, struct err *e) MUST_CHECK;
/* ERR_TRUST unless a key of the ring signed exactly this index. *out_keyid is borrowed from the
 * ring. */
int runset_check_signature(const char *envelope, size_t len, const struct digest *digest,
                           const struct keyring *ring, const char **out_keyid,
                           struct err *e) MUST_CHECK;
