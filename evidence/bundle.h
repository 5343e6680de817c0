/*
 * bundle: the attestation bundle for download: a tar of the archive, its signatures, statements,
 * public keys and VERIFY.md, as parts in memory around one range of the archive file. The size is
 * known beforehand and any range can be read, so HTTP can answer with Content-Length and ranges.
 * The same input gives the same bytes. Immutable once made; reading is thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/keyring.h"

struct bundle_input {
    const char *run; /* the directory inside the tar */
    const struct digest *archive_digest;
    uint64_t archive_size;
    const char *envelope; /* the runner's DSSE, bytes as received */
    size_t envelope_len;
    const uint8_t *archive_sig; /* the runner's DER signature over the archive's bytes; NULL: not in
                                   the bundle */
    size_t archive_sig_len;
    const char *verdict_envelope; /* the server's DSSE; NULL: not in the bundle */
    size_t verdict_envelope_len;
    const struct public_key *runner_key;
    const struct public_key *server_key; /* NULL allowed when there is no verdict envelope */
};

struct bundle;

/* Copies everything it needs. */
int bundle_new(const struct bundle_input *in, struct bundle **out, struct err *e) MUST_CHECK;
void bundle_free(struct bundle *b); /* accepts NULL */
/* Bytes of the whole bundle, the archive included. */
uint64_t bundle_size(const struct bundle *b);
/* Reads at most len bytes from position pos into p; archive_fd is the archive's file (pread).
 * *out_len 0 only at the end. */
int bundle_read(const struct bundle *b, int archive_fd, uint64_t pos, void *p, size_t len,
                size_t *out_len, struct err *e) MUST_CHECK;

/* For sendfile: the parts in order. */
struct bundle_part {
    const void *bytes; /* NULL: `len` bytes of the archive file from its start */
    uint64_t len;
};
size_t bundle_part_count(const struct bundle *b);
struct bundle_part bundle_part_get(const struct bundle *b, size_t i);
