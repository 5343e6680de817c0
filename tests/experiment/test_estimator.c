#include "tests/lib/cases.h"
#include "tests/lib/support.h"

#include <string.h>

#include "base/json_in.h"
#include "experiment/estimator.h"
#include "experiment/stats.h"

static double *numbers(const cJSON *array, double divisor, size_t *n)
{
    const cJSON *j = NULL;
    double *v = calloc((size_t) cJSON_GetArraySize(array) + 1, sizeof *v);

    assert_non_null(v);
    *n = 0;
    cJSON_ArrayForEach(j, array)
        v[(*n)++] = j->valuedouble / divisor;
    return v;
}

static void expect(const cJSON *out, const char *key, double actual, double tolerance)
{
    const cJSON *j = json_get(out, key);

    if (!cJSON_IsNumber(j) || !stats_close(actual, j->valuedouble, tolerance, tolerance))
        fail_msg("%s: %.17g, expected %.17g", key, actual, j ? j->valuedouble : 0.0);
}

static void expect_endpoint(const struct endpoint *r, const cJSON *out, double tolerance)
{
    expect(out, "coverage", r->coverage, tolerance);
    expect(out, "band", r->band, tolerance);
    expect(out, "start_count", (double) r->start_count, 0);
    expect(out, "end_count", (double) r->end_count, 0);
    expect(out, "start_median", r->start_median, tolerance);
    expect(out, "end_median", r->end_median, tolerance);
    expect(out, "start_t", r->start_t, tolerance);
    expect(out, "end_t", r->end_t, tolerance);
    expect(out, "separation", r->separation, tolerance);
    expect(out, "retained", r->retained, tolerance);
    expect(out, "rate_per_hour", r->rate_per_hour, tolerance);
}

static void endpoint_equals(const char *path, size_t expected)
{
    cJSON *file = cases_read_json(path);
    const cJSON *row = NULL;
    size_t rows = 0;

    cJSON_ArrayForEach(row, json_get(file, "cases")) {
        size_t n = 0;
        double *t = numbers(json_get(row, "t"), 1, &n);
        double *y = numbers(json_get(row, "y"), 1, &n);
        const cJSON *out = json_get(row, "out");
        const cJSON *error = json_get(out, "error");
        struct endpoint r;
        struct err e = ERR_INIT;

        print_message("%s\n", json_get(row, "name")->valuestring);
        assert_int_equal(endpoint_estimate(t, y, n, &endpoint_rule_default, &r, &e), 0);
        if (error) {
            assert_string_equal(endpoint_state_name(r.state), error->valuestring);
            if (json_get(out, "start_count")) {
                expect(out, "start_count", (double) r.start_count, 0);
                expect(out, "end_count", (double) r.end_count, 0);
            }
        } else {
            assert_int_equal(r.state, ENDPOINT_OK);
            expect_endpoint(&r, out, 1e-12);
        }
        free(t);
        free(y);
        rows++;
    }
    assert_int_equal(rows, expected);
    cJSON_Delete(file);
}

static void endpoint_equals_the_edge_vectors(void **state)
{
    (void) state;
    endpoint_equals("tests/data/stats/endpoint_band_edges.json", 9);
}

/* One sample, one time, equal times, a band's edge and the next double, the cap, epoch times, a
 * hole, a spike, unsorted. */
static void endpoint_equals_the_reference_on_neighbours(void **state)
{
    (void) state;
    endpoint_equals("tests/data/stats/endpoint_more.json", 26);
}

/* A day at one sample a second, and the longest series that is read at all. */
static void endpoint_takes_long_series(void **state)
{
    static const size_t counts[] = {86401, 200000};

    (void) state;
    for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
        size_t n = counts[k];
        double *t = calloc(n, sizeof *t);
        double *y = calloc(n, sizeof *y);
        struct endpoint r;
        struct stats_slope s;
        struct err e = ERR_INIT;

        assert_true(t && y);
        for (size_t i = 0; i < n; i++) {
            t[i] = (double) i;
            y[i] = 1000 + (double) i / 4096; /* exact */
        }
        assert_int_equal(endpoint_estimate(t, y, n, &endpoint_rule_default, &r, &e), 0);
        assert_int_equal(r.state, ENDPOINT_OK);
        assert_int_equal(r.start_count, 61);
        assert_int_equal(r.end_count, 61);
        assert_true(stats_close(r.rate_per_hour, 3600.0 / 4096, 1e-12, 0));
        assert_int_equal(stats_theil_sen(t, y, n, &s, NULL, &e), 0);
        assert_true(stats_close(s.slope, 1.0 / 4096, 1e-12, 0));
        assert_true(s.n_slopes == (uint64_t) n * (n - 1) / 2);
        free(t);
        free(y);
    }
}

static void all_estimators_equal_the_gate_vectors(void **state)
{
    cJSON *file = cases_read_json("tests/data/stats/rss_gates.json");
    const cJSON *row = NULL;
    size_t rows = 0;

    (void) state;
    cJSON_ArrayForEach(row, json_get(file, "cases")) {
        size_t n = 0;
        double *t = numbers(json_get(row, "t_ms"), 1000.0, &n);
        double *y = numbers(json_get(row, "rss_kib"), 1024.0, &n);
        const cJSON *out = json_get(row, "out");
        struct endpoint r;
        struct stats_slope s;
        struct err e = ERR_INIT;

        print_message("%s\n", json_get(row, "name")->valuestring);
        assert_int_equal(endpoint_estimate(t, y, n, &endpoint_rule_default, &r, &e), 0);
        expect_endpoint(&r, json_get(out, "endpoint"), 1e-9);
        assert_int_equal(stats_theil_sen(t, y, n, &s, NULL, &e), 0);
        expect(out, "theil_sen_mb_per_hour", s.slope * SECONDS_PER_HOUR, 1e-9);
        expect(out, "n_slopes", (double) s.n_slopes, 0);
        expect(out, "ols_mb_per_hour", stats_least_squares(t, y, n).slope * SECONDS_PER_HOUR, 1e-9);
        expect(out, "ols_mb_per_min", stats_least_squares(t, y, n).slope * SECONDS_PER_MINUTE,
               1e-9);
        free(t);
        free(y);
        rows++;
    }
    assert_int_equal(rows, 16);
    cJSON_Delete(file);
}

static void split(const cJSON *pairs, double *t, double *y, size_t *n)
{
    const cJSON *pair = NULL;

    *n = 0;
    cJSON_ArrayForEach(pair, pairs) {
        t[*n] = cJSON_GetArrayItem(pair, 0)->valuedouble;
        y[(*n)++] = cJSON_GetArrayItem(pair, 1)->valuedouble;
    }
}

static void tiny_vectors_agree(void **state)
{
    cJSON *file = cases_read_json("tests/data/rvoip/vectors.json");
    const cJSON *tiny = json_get(file, "tiny");
    const cJSON *expected = json_get(tiny, "endpoint");
    double t[16];
    double y[16];
    size_t n = 0;
    struct endpoint r;
    struct stats_slope s;
    struct err e = ERR_INIT;

    (void) state;
    split(json_get(tiny, "samples"), t, y, &n);
    assert_int_equal(endpoint_estimate(t, y, n, &endpoint_rule_default, &r, &e), 0);
    expect(expected, "start_median", r.start_median, 0);
    expect(expected, "retained", r.retained, 0);
    expect(expected, "rate", r.rate_per_hour, 0);
    expect(expected, "band", r.band, 0);
    expect(expected, "n_start", (double) r.start_count, 0);
    assert_int_equal(stats_theil_sen(t, y, n, &s, NULL, &e), 0);
    expect(tiny, "theil_sen", s.slope * SECONDS_PER_HOUR, 0);
    expect(tiny, "ols_mb_per_hour", stats_least_squares(t, y, n).slope * SECONDS_PER_HOUR, 1e-12);

    tiny = json_get(file, "tiny_too_short");
    split(json_get(tiny, "samples"), t, y, &n);
    assert_int_equal(endpoint_estimate(t, y, n, &endpoint_rule_default, &r, &e), 0);
    assert_int_equal(r.state, ENDPOINT_BAND_TOO_FEW);
    assert_int_equal(r.start_count, 2);
    expect(tiny, "ols_mb_per_min", stats_least_squares(t, y, n).slope * SECONDS_PER_MINUTE, 1e-12);
    cJSON_Delete(file);
}

/* Who replays which section of vectors.json; a new one must be given a test. */
static void every_section_of_the_vectors_is_replayed(void **state)
{
    static const struct {
        const char *section;
        const char *test; /* NULL: a foreign form, which is not ours */
        const char *call;
    } sections[] = {
        {"source_fingerprint", "tests/runner/test_source.c",
         "cmocka_unit_test(seed_vectors_are_reproduced)"},
        {"tree_hash", "tests/runner/test_package_verify.c",
         "cmocka_unit_test(tree_hash_is_the_seeds)"},
        /* Sorted keys, but 1.0 stays 1.0: not RFC 8785, which ours is (there 1.0 is 1). */
        {"canonical_json_sha256", NULL, NULL},
        {"real_series_30cps", "tests/experiment/test_window.c",
         "cmocka_unit_test(real_series_gives_the_published_figures)"},
        {"soak_tail", "tests/experiment/test_soak.c",
         "cmocka_unit_test(tails_of_the_vectors_pass_or_fail_as_published)"},
        {"tiny", "tests/experiment/test_estimator.c", "cmocka_unit_test(tiny_vectors_agree)"},
        {"tiny_too_short", "tests/experiment/test_estimator.c",
         "cmocka_unit_test(tiny_vectors_agree)"},
    };
    cJSON *file = cases_read_json("tests/data/rvoip/vectors.json");
    const cJSON *section = NULL;

    (void) state;
    cJSON_ArrayForEach(section, file) {
        bool known = false;

        for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
            char *source = NULL;

            if (strcmp(sections[i].section, section->string) != 0)
                continue;
            known = true;
            if (!sections[i].test)
                continue;
            source = test_read(sections[i].test, NULL);
            assert_non_null(strstr(source, sections[i].call));
            free(source);
        }
        if (!known)
            fail_msg("'%s' of vectors.json has no test", section->string);
    }
    cJSON_Delete(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoint_equals_the_edge_vectors),
        cmocka_unit_test(endpoint_equals_the_reference_on_neighbours),
        cmocka_unit_test(endpoint_takes_long_series),
        cmocka_unit_test(all_estimators_equal_the_gate_vectors),
        cmocka_unit_test(tiny_vectors_agree),
        cmocka_unit_test(every_section_of_the_vectors_is_replayed),
    };

    return cmocka_run_group_tests_name("estimator", tests, NULL, NULL);
}
