/*
 * num: checked arithmetic on outside sizes, and the only places where text becomes a number and
 * back. Locale free (the C locale is pinned by newlocale inside num.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define NUM_SAFE_MAX 9007199254740991.0 /* 2^53-1: every integer up to it is a double */
#define NUM_DOUBLE_TEXT 32 /* enough for every text that num_double_* writes, NUL included */

bool num_add(size_t a, size_t b, size_t *out) MUST_CHECK; /* false on overflow */
bool num_mul(size_t a, size_t b, size_t *out) MUST_CHECK;

/* Decimal digits only (no sign, no space, no leading zero but "0"), value ≤ max. */
bool num_parse_u64(const char *s, size_t len, uint64_t max, uint64_t *out) MUST_CHECK;
/* Optional '-', then as above. */
bool num_parse_i64(const char *s, size_t len, int64_t *out) MUST_CHECK;
/* The JSON number grammar (RFC 8259 §6), correctly rounded; false on grammar or overflow to
 * infinity. */
bool num_parse_double(const char *s, size_t len, double *out) MUST_CHECK;
/* True if the text has neither '.', 'e' nor 'E' (given the JSON grammar already holds). */
bool num_is_integer_literal(const char *s, size_t len);

/* Shortest text that reads back as the same double, in ECMAScript's Number::toString form
 * (RFC 8785 §3.2.2.3). Finite only (asserted). Returns the length. */
size_t num_double_shortest(double v, char out[NUM_DOUBLE_TEXT]);
/* Equality on doubles said on purpose (same value; NaN unequal); keeps -Wfloat-equal on elsewhere.
 */
bool num_same(double a, double b);
/* Integral, and |v| ≤ 2^53-1. */
bool num_is_safe_integer(double v);
