/*
 * stats: medians, straight lines and the exact Theil-Sen slope over series of doubles. Knows
 * nothing of memory, windows or verdicts. Every input is finite (callers check at the border). Pure
 * functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

bool stats_all_finite(const double *v, size_t n);
/* Strictly rising. n 0 and 1 count as rising. */
bool stats_is_rising(const double *v, size_t n);

/* Mean of the two middle values when n is even; n ≥ 1 (asserted). -1: no memory. The input is not
 * changed. */
int stats_median(const double *v, size_t n, double *out, struct err *e) MUST_CHECK;

/* Typical distance of neighbours: the upper middle of max(0, t[i+1] - t[i]) (seed-compatible: index
 * (n-1)/2 of the n-1 sorted gaps); 0 when n < 2. */
int stats_interval(const double *t, size_t n, double *out, struct err *e) MUST_CHECK;

struct stats_line {
    double slope; /* of y per unit of t */
    double intercept;
};

/* Least squares by centred sums. Slope 0 through the mean when n < 2 or all t are (nearly) equal. n
 * ≥ 1 (asserted). */
struct stats_line stats_least_squares(const double *t, const double *y, size_t n);

/* Numbers as two programs may compute them: |a - b| ≤ max(rel · max(|a|, |b|), abs). */
bool stats_close(double a, double b, double rel, double abs);

struct stats_slope {
    bool defined; /* false: no pair with different t */
    double slope;
    uint64_t n_slopes; /* pairs with different t */
};

/*
 * Theil-Sen: the median of (y[j]-y[i])/(t[j]-t[i]) over all pairs with different t, the mean of the
 * two middle slopes when their number is even. Order of the points does not matter. Exact when t
 * and y, each times a common power of two, are integers below 2^61; else they are first rounded to
 * 2^-61 of their largest magnitude.
 *
 * O(n log n) comparisons and O(n) memory: an interval of slopes around the wanted rank is narrowed
 * by counting inversions; nothing ever holds all pairs. comparisons may be NULL; it is increased by
 * the number made. n ≤ 2^31. -1: no memory.
 */
int stats_theil_sen(const double *t, const double *y, size_t n, struct stats_slope *out,
                    uint64_t *comparisons, struct err *e) MUST_CHECK;
