/* digest: SHA-256 as a 32-byte value (nettle lives only in digest.c: SHA-NI makes it four times
 * mbedTLS's speed). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

#define DIGEST_SIZE 32
#define DIGEST_HEX_SIZE 65 /* with NUL */

struct digest {
    uint8_t bytes[DIGEST_SIZE];
};

struct digest_state; /* running hash, heap */

struct digest_state *digest_new(void) MUST_CHECK; /* NULL: no memory */
void digest_free(struct digest_state *s);
void digest_update(struct digest_state *s, const void *p, size_t len);
/* The same bytes into both, at hardly more than the price of one where the processor has SHA
 * instructions and both have taken a like number of bytes modulo 64. */
void digest_update_two(struct digest_state *a, struct digest_state *b, const void *p, size_t len);
void digest_finish(struct digest_state *s, struct digest *out); /* resets the state */

struct digest digest_of(const void *p, size_t len);
/* From the descriptor's current offset to its end; out_size may be NULL. */
int digest_of_fd(int fd, struct digest *out, uint64_t *out_size, struct err *e) MUST_CHECK;
/* The same, and git's name of these bytes as a blob: hex digits, 40 (SHA-1) or 64 (SHA-256) of
 * them; "" when the file does not hold the `size` bytes that were promised. */
int digest_of_fd_as_blob(int fd, uint64_t size, size_t name_len, struct digest *out,
                         char out_name[DIGEST_HEX_SIZE], struct err *e) MUST_CHECK;
void digest_blob_name(const void *p, size_t len, size_t name_len, char out_name[DIGEST_HEX_SIZE]);
bool digest_equal(const struct digest *a, const struct digest *b); /* constant time */
void digest_hex(const struct digest *d, char out[DIGEST_HEX_SIZE]);
bool digest_parse(const char *hex,
                  struct digest *out) MUST_CHECK; /* exactly 64 lower-case hex digits */
