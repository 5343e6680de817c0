/*
 * quantity: a number with its unit as people read it: the only place where a value of the domain
 * becomes digits. Pages, text, Markdown and the terminal show the same digits; ascii gives '-' for
 * the sign, else U+2212. No allocation, no locale.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define QUANTITY_TEXT 64 /* enough for every text below, NUL included */

/* A unit fit for reading: ns → µs, ms, s; bytes → KiB, MiB. divisor 1 and the same name when
 * nothing fits better. */
struct quantity_unit {
    double divisor;
    const char *name; /* "" for a plain number ("1", "ratio"), "/s" for "1/s"; points into `unit` or
                         to a constant */
};
struct quantity_unit quantity_unit(double magnitude, const char *unit);
/* Integers up to 2^53 exactly, with group commas; others rounded, never to a whole number that they
 * are not. */
void quantity_number(double v, bool sign, bool ascii, char out[QUANTITY_TEXT]);
/* Several at once, with as many digits as it takes to tell those apart that differ. */
void quantity_numbers(const double *v, size_t n, bool ascii, char (*out)[QUANTITY_TEXT]);
/* "+7.4 %"; as many digits (≤ 4) as it takes to differ from `limit` and from 0 when it does (NAN:
 * no limit). */
void quantity_percent(double v, double limit, bool ascii, char out[QUANTITY_TEXT]);
