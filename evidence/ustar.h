/*
 * ustar: the one archive header of the evidence format, written and read. A header is accepted only
 * when it is, byte for byte, the header that ustar_header writes for its name and size: so links,
 * devices, extensions, owners, times and every dialect are refused by construction. No I/O;
 * thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"

#define USTAR_BLOCK ((size_t) 512)
#define USTAR_END (2 * USTAR_BLOCK) /* two zero blocks end an archive */

/* name must satisfy relname_ok and size be ≤ LIMIT_ARCHIVE (asserted). */
void ustar_header(char out[USTAR_BLOCK], const char *name, uint64_t size);

/* Reads a header block; ERR_INPUT "archive.…" with the field at fault, ERR_LIMIT for a size over
 * LIMIT_MEMBER. */
int ustar_parse(const char block[USTAR_BLOCK], char out_name[LIMIT_RELNAME + 1], uint64_t *out_size,
                struct err *e) MUST_CHECK;

bool ustar_is_zero(const char *p, size_t len);
/* Zero bytes after `size` bytes of data up to the next block. */
size_t ustar_padding(uint64_t size);
