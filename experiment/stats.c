/* Medians, gaps and least squares; the Theil-Sen selection is in theil_sen.c. */
#include "experiment/stats.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

bool stats_all_finite(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return false;
    return true;
}

bool stats_is_rising(const double *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!(v[i] > v[i - 1]))
            return false;
    return true;
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;

    return (x > y) - (x < y);
}

/* Orders v. n > 0. */
static double median_in_place(double *v, size_t n)
{
    assert(n > 0);
    qsort(v, n, sizeof *v, compare_double);
    if (n % 2)
        return v[n / 2];
    return (v[n / 2 - 1] + v[n / 2]) / 2.0;
}

int stats_median(const double *v, size_t n, double *out, struct err *e)
{
    AUTO_FREE double *copy = reallocarray(NULL, n, sizeof *copy);

    if (!copy)
        return err_memory(e, "stats.memory");
    memcpy(copy, v, n * sizeof *copy);
    *out = median_in_place(copy, n);
    return 0;
}

int stats_interval(const double *t, size_t n, double *out, struct err *e)
{
    AUTO_FREE double *gaps = NULL;

    if (n < 2) {
        *out = 0;
        return 0;
    }
    gaps = reallocarray(NULL, n - 1, sizeof *gaps);
    if (!gaps)
        return err_memory(e, "stats.memory");
    for (size_t i = 0; i + 1 < n; i++)
        gaps[i] = t[i + 1] > t[i] ? t[i + 1] - t[i] : 0;
    qsort(gaps, n - 1, sizeof *gaps, compare_double);
    *out = gaps[(n - 1) / 2];
    return 0;
}

static double mean(const double *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i] - v[0];
    return v[0] + sum / (double) n;
}

struct stats_line stats_least_squares(const double *t, const double *y, size_t n)
{
    struct stats_line line = {0};
    double mean_t = 0;
    double mean_y = 0;
    double sum_tt = 0;
    double sum_ty = 0;

    assert(n > 0);
    mean_t = mean(t, n);
    mean_y = mean(y, n);
    for (size_t i = 0; i < n; i++) {
        sum_tt += (t[i] - mean_t) * (t[i] - mean_t);
        sum_ty += (t[i] - mean_t) * (y[i] - mean_y);
    }
    if (n >= 2 && (double) n * sum_tt >= DBL_EPSILON)
        line.slope = sum_ty / sum_tt;
    line.intercept = mean_y - line.slope * mean_t;
    return line;
}

bool stats_close(double a, double b, double rel, double abs)
{
    double larger = fmax(fabs(a), fabs(b));

    if (!isfinite(a) || !isfinite(b))
        return false;
    return num_same(a, b) || fabs(a - b) <= fmax(rel * larger, abs);
}
