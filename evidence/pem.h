/* pem: one PEM block to bytes and back (RFC 7468, strict: one block, nothing but white space around
 * it). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Decodes the only block, which must carry `label`; at most max bytes are written to out. */
int pem_decode(const char *text, size_t len, const char *label, uint8_t *out, size_t max,
               size_t *out_len, struct err *e) MUST_CHECK;
/* Heap text with 64-column lines and a newline at the end; NULL: no memory. Caller frees. */
char *pem_encode(const char *label, const uint8_t *der, size_t len) MUST_CHECK;
