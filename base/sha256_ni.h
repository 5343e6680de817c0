/*
 * sha256_ni: the SHA-256 compression of the same blocks into two states at once, with the
 * processor's SHA instructions. The rounds of one state leave the unit half idle; two interleaved
 * cost hardly more than one. Only for digest.c. No shared state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Asks the processor; in a virtual machine that takes microseconds, so remember the answer. */
bool sha256_ni_available(void);
/* n blocks of 64 bytes; only where the instructions are available. */
void sha256_ni_two(uint32_t a[8], uint32_t b[8], const uint8_t *blocks, size_t n);
