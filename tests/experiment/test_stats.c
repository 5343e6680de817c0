#include "tests/lib/cases.h"
#include "tests/lib/support.h"

#include <math.h>
#include <string.h>

#include "base/json_in.h"
#include "base/num.h"
#include "experiment/stats.h"

static double *numbers(const cJSON *array, size_t *n)
{
    const cJSON *j = NULL;
    double *v = calloc((size_t) cJSON_GetArraySize(array) + 1, sizeof *v);

    assert_non_null(v);
    *n = 0;
    cJSON_ArrayForEach(j, array)
        v[(*n)++] = j->valuedouble;
    return v;
}

static struct stats_slope theil_sen(const double *t, const double *y, size_t n)
{
    struct stats_slope s = {0};
    struct err e = ERR_INIT;

    assert_int_equal(stats_theil_sen(t, y, n, &s, NULL, &e), 0);
    return s;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;

    return (x > y) - (x < y);
}

/* Every pair, sorted. */
static struct stats_slope brute_force(const double *t, const double *y, size_t n)
{
    struct stats_slope r = {0};
    double *all = calloc(n * n + 1, sizeof *all);
    size_t k = 0;

    assert_non_null(all);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (t[j] > t[i])
                all[k++] = (y[j] - y[i]) / (t[j] - t[i]);
    qsort(all, k, sizeof *all, compare);
    r.n_slopes = k;
    r.defined = k > 0;
    if (k > 0)
        r.slope = k % 2 ? all[k / 2] : (all[k / 2 - 1] + all[k / 2]) / 2.0;
    free(all);
    return r;
}

static void theil_sen_and_least_squares_equal_the_vectors(void **state)
{
    cJSON *file = cases_read_json("tests/data/stats/theil_sen.json");
    const cJSON *row = NULL;
    size_t rows = 0;

    (void) state;
    cJSON_ArrayForEach(row, json_get(file, "cases")) {
        size_t n = 0;
        double *t = numbers(json_get(row, "t"), &n);
        double *y = numbers(json_get(row, "y"), &n);
        const cJSON *slope = json_get(json_get(row, "out"), "theil_sen");
        const cJSON *line = json_get(json_get(row, "out"), "ols");
        struct stats_slope s = theil_sen(t, y, n);

        print_message("%s\n", json_get(row, "name")->valuestring);
        assert_int_equal(s.defined, cJSON_IsObject(slope));
        if (s.defined) {
            assert_int_equal(s.n_slopes, (uint64_t) json_get(slope, "n_slopes")->valuedouble);
            assert_true(stats_close(s.slope, json_get(slope, "slope")->valuedouble, 1e-10, 1e-12));
        }
        if (cJSON_IsObject(line)) {
            struct stats_line l = stats_least_squares(t, y, n);

            assert_true(stats_close(l.slope, json_get(line, "slope")->valuedouble, 1e-10, 1e-12));
            assert_true(
                stats_close(l.intercept, json_get(line, "intercept")->valuedouble, 1e-10, 1e-12));
        }
        free(t);
        free(y);
        rows++;
    }
    assert_int_equal(rows, 13);
    cJSON_Delete(file);
}

/* Small coordinates make ties in t, in y, in slopes and in whole points. */
static void theil_sen_equals_brute_force_on_tied_sets(void **state)
{
    uint64_t random = 1;

    (void) state;
    for (size_t round = 0; round < 20000; round++) {
        double t[40];
        double y[40];
        size_t n = 1 + test_random_below(&random, 40);
        size_t spread = 1 + test_random_below(&random, 30);
        struct stats_slope fast;
        struct stats_slope slow;

        for (size_t i = 0; i < n; i++) {
            t[i] = (double) test_random_below(&random, spread);
            y[i] = (double) test_random_below(&random, spread) - (double) spread;
        }
        fast = theil_sen(t, y, n);
        slow = brute_force(t, y, n);
        assert_int_equal(fast.n_slopes, slow.n_slopes);
        assert_int_equal(fast.defined, slow.defined);
        if (!num_same(fast.slope, slow.slope))
            fail_msg("round %zu, n %zu: %.17g, brute force %.17g", round, n, fast.slope,
                     slow.slope);
    }
}

/* Larger than what is listed at once, so that the interval really is narrowed; heavy ties put the
 * median on a bracket. */
static void theil_sen_equals_brute_force_when_narrowing(void **state)
{
    static const size_t spreads[] = {2, 3, 10, 100, 5000, 1000000};
    static double t[700];
    static double y[700];
    uint64_t random = 7;

    (void) state;
    for (size_t round = 0; round < 120; round++) {
        size_t spread = spreads[round % ARRAY_LEN(spreads)];
        size_t n = 150 + test_random_below(&random, 550);
        struct stats_slope fast;
        struct stats_slope slow;

        for (size_t i = 0; i < n; i++) {
            t[i] = (double) (round % 2 ? i * 500 : test_random_below(&random, 4 * spread));
            y[i] = (double) test_random_below(&random, spread) + (round % 3 ? 0.0 : (double) i);
        }
        fast = theil_sen(t, y, n);
        slow = brute_force(t, y, n);
        assert_int_equal(fast.n_slopes, slow.n_slopes);
        if (!num_same(fast.slope, slow.slope))
            fail_msg("round %zu, n %zu: %.17g, brute force %.17g", round, n, fast.slope,
                     slow.slope);
    }
}

static void theil_sen_does_not_depend_on_the_order_of_points(void **state)
{
    static double t[1201];
    static double y[1201];
    uint64_t random = 3;
    struct stats_slope before;
    struct stats_slope after;

    (void) state;
    for (size_t i = 0; i < 1201; i++) {
        t[i] = (double) i / 2.0 + (double) test_random_below(&random, 9) / 1000.0;
        y[i] = 800.0 + (double) test_random_below(&random, 4000) / 1024.0;
    }
    before = theil_sen(t, y, 1201);
    for (size_t i = 1200; i > 0; i--) {
        size_t j = test_random_below(&random, i + 1);
        double swap = t[i];

        t[i] = t[j];
        t[j] = swap;
        swap = y[i];
        y[i] = y[j];
        y[j] = swap;
    }
    after = theil_sen(t, y, 1201);
    assert_memory_equal(&before.slope, &after.slope, sizeof before.slope);
    assert_int_equal(before.n_slopes, after.n_slopes);
}

/* A day at one sample a second: counts comparisons, not time. */
static void theil_sen_stays_within_n_log_n(void **state)
{
    enum { N = 86401 };
    double *t = calloc(N, sizeof *t);
    double *y = calloc(N, sizeof *y);
    uint64_t limit = (uint64_t) (200.0 * N * log2(N));
    uint64_t random = 11;

    (void) state;
    assert_non_null(t);
    assert_non_null(y);
    for (size_t shape = 0; shape < 4; shape++) {
        uint64_t comparisons = 0;
        struct stats_slope s = {0};
        struct err e = ERR_INIT;

        for (size_t i = 0; i < N; i++) {
            t[i] = (double) (i * 1000 + test_random_below(&random, 20));
            y[i] = shape == 0   ? 4096.0
                   : shape == 1 ? (double) test_random_below(&random, 1024)
                   : shape == 2 ? (double) (i - i % 400)
                                : (double) (i * 3) + (double) test_random_below(&random, 100000);
        }
        assert_int_equal(stats_theil_sen(t, y, N, &s, &comparisons, &e), 0);
        print_message("shape %zu: slope %.17g, %.1f n log2 n\n", shape, s.slope,
                      (double) comparisons / (N * log2(N)));
        assert_true(s.defined);
        assert_int_equal(s.n_slopes, (uint64_t) N * (N - 1) / 2);
        assert_true(comparisons > 0 && comparisons < limit);
        if (shape == 0)
            assert_true(fpclassify(s.slope) == FP_ZERO);
        if (shape == 3)
            assert_true(stats_close(s.slope, 0.003, 0.01, 0));
    }
    free(t);
    free(y);
}

static void median_takes_the_mean_of_the_middle_two(void **state)
{
    const double v[] = {9, 1, 4, 2};
    double m = 0;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(stats_median(v, 4, &m, &e), 0);
    assert_close(m, 3.0, 0);
    assert_int_equal(stats_median(v, 3, &m, &e), 0);
    assert_close(m, 4.0, 0);
    assert_close(v[0], 9.0, 0);
}

static void interval_takes_the_upper_middle_gap(void **state)
{
    const double t[] = {0, 1, 3, 2.5, 6.5};
    double gap = 9;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(stats_interval(t, 5, &gap, &e), 0); /* 0 1 2 4 */
    assert_close(gap, 2.0, 0);
    assert_int_equal(stats_interval(t, 1, &gap, &e), 0);
    assert_close(gap, 0.0, 0);
}

static void least_squares_is_flat_without_a_spread_of_times(void **state)
{
    const double t[] = {5, 5};
    const double y[] = {1, 3};

    (void) state;
    assert_close(stats_least_squares(t, y, 2).slope, 0.0, 0);
    assert_close(stats_least_squares(t, y, 1).slope, 0.0, 0);
}

static void close_has_a_relative_and_an_absolute_part(void **state)
{
    (void) state;
    assert_true(stats_close(1e6, 1e6 + 0.9e-3, 1e-9, 1e-8));
    assert_false(stats_close(1e6, 1e6 + 1.1e-3, 1e-9, 1e-8));
    assert_true(stats_close(0, 1e-8, 1e-9, 1e-8));
    assert_false(stats_close(0, 1.1e-8, 1e-9, 1e-8));
    assert_false(stats_close((double) NAN, (double) NAN, 1, 1));
    assert_false(stats_close((double) INFINITY, (double) INFINITY, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(theil_sen_and_least_squares_equal_the_vectors),
        cmocka_unit_test(theil_sen_equals_brute_force_on_tied_sets),
        cmocka_unit_test(theil_sen_equals_brute_force_when_narrowing),
        cmocka_unit_test(theil_sen_does_not_depend_on_the_order_of_points),
        cmocka_unit_test(theil_sen_stays_within_n_log_n),
        cmocka_unit_test(median_takes_the_mean_of_the_middle_two),
        cmocka_unit_test(interval_takes_the_upper_middle_gap),
        cmocka_unit_test(least_squares_is_flat_without_a_spread_of_times),
        cmocka_unit_test(close_has_a_relative_and_an_absolute_part),
    };

    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
