#include "tests/lib/cases.h"
#include "tests/lib/support.h"

#include <string.h>

#include "base/json_in.h"
#include "experiment/pointer.h"
#include "experiment/stats.h"
#include "experiment/window.h"

static void expect(const cJSON *out, const char *key, double actual)
{
    const cJSON *j = json_get(out, key);

    if (!cJSON_IsNumber(j) || !stats_close(actual, j->valuedouble, 1e-9, 1e-8))
        fail_msg("%s: %.17g, expected %.17g", key, actual, j ? j->valuedouble : 0.0);
}

static void load_series(const cJSON *report, struct samples *s)
{
    const cJSON *array = pointer_get(report, "/resources/rss_samples_mb");
    const cJSON *j = NULL;
    size_t n = (size_t) cJSON_GetArraySize(array);

    s->t_secs = calloc(n, sizeof *s->t_secs);
    s->value = calloc(n, sizeof *s->value);
    assert_non_null(s->t_secs);
    assert_non_null(s->value);
    cJSON_ArrayForEach(j, array) {
        s->t_secs[s->n] = json_get(j, "t_secs")->valuedouble;
        s->value[s->n++] = json_get(j, "rss_mb")->valuedouble;
    }
}

static void free_series(struct samples *s)
{
    free(s->t_secs);
    free(s->value);
}

static struct window evaluate(const struct samples *s, double start, double end)
{
    const struct window_request request = {.start = start,
                                           .end = end,
                                           .boundary_factor = 1.5,
                                           .endpoint = &endpoint_rule_default,
                                           .theil_sen = true};
    struct window w;
    struct err e = ERR_INIT;

    assert_int_equal(window_evaluate(s, &request, &w, &e), 0);
    return w;
}

/* A real report of the seed: its own figures come out. */
static void real_series_gives_the_published_figures(void **state)
{
    cJSON *report = cases_read_json(
        "tests/data/rvoip/baselines/20260929T224805Z/perf_call_setup_cps_pbx-media-server/30.json");
    cJSON *vectors = cases_read_json("tests/data/rvoip/vectors.json");
    const cJSON *real = json_get(vectors, "real_series_30cps");
    const cJSON *active = json_get(real, "active_window");
    const cJSON *claimed = pointer_get(report, "/resources/rss_windows/active_load");
    struct samples s = {0};
    struct window w;
    struct err e = ERR_INIT;
    double interval = 0;

    (void) state;
    load_series(report, &s);
    assert_int_equal(stats_interval(s.t_secs, s.n, &interval, &e), 0);
    expect(real, "interval", interval);
    expect(real, "all_slope_mb_per_min", stats_least_squares(s.t_secs, s.value, s.n).slope * 60);
    w = evaluate(&s, json_get(claimed, "requested_start_secs")->valuedouble,
                 json_get(claimed, "requested_end_secs")->valuedouble);
    assert_int_equal(w.state, WINDOW_OK);
    assert_true(w.complete);
    expect(active, "n", (double) w.n);
    expect(active, "first", w.first);
    expect(active, "last", w.last);
    expect(active, "cov", w.coverage);
    expect(active, "tol", w.tolerance);
    expect(active, "slope_min", w.least_squares_per_sec * 60);
    expect(active, "start_median", w.endpoint.start_median);
    expect(active, "end_median", w.endpoint.end_median);
    expect(active, "retained", w.endpoint.retained);
    expect(active, "start_t", w.endpoint.start_t);
    expect(active, "end_t", w.endpoint.end_t);
    expect(active, "separation", w.endpoint.separation);
    expect(active, "rate", w.endpoint.rate_per_hour);
    expect(active, "band", w.endpoint.band);
    expect(active, "n_start", (double) w.endpoint.start_count);
    expect(active, "n_end", (double) w.endpoint.end_count);
    free_series(&s);
    cJSON_Delete(report);
    cJSON_Delete(vectors);
}

static void fill(struct samples *s, double *t, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        t[i] = (double) i;
        v[i] = 100.0 + (double) i;
    }
    *s = (struct samples){.t_secs = t, .value = v, .n = n};
}

static void window_boundaries_are_inclusive_and_tolerant(void **state)
{
    double t[41];
    double v[41];
    struct samples s;
    struct window w;

    (void) state;
    fill(&s, t, v, 41);
    w = evaluate(&s, 10, 30);
    assert_int_equal(w.n, 21);
    assert_true(w.complete);
    assert_close(w.theil_sen_per_hour, 3600.0, 0);
    assert_close(w.endpoint.rate_per_hour, 3600.0, 0);
    w = evaluate(&s, -1.5, 30);
    assert_true(w.complete);
    w = evaluate(&s, -1.51, 30);
    assert_false(w.complete);
    w = evaluate(&s, 10, 41.5);
    assert_true(w.complete);
    w = evaluate(&s, 10, 41.51);
    assert_false(w.complete);
}

static void window_refuses_what_is_no_series(void **state)
{
    double t[10];
    double v[10];
    struct samples s;

    (void) state;
    fill(&s, t, v, 10);
    assert_int_equal(evaluate(&s, 5, 4).state, WINDOW_REVERSED);
    assert_int_equal(evaluate(&s, 4.2, 5.9).state, WINDOW_TOO_FEW);
    t[5] = t[4];
    assert_int_equal(evaluate(&s, 0, 9).state, WINDOW_NOT_RISING);
    s.n = 0;
    assert_int_equal(evaluate(&s, 0, 9).state, WINDOW_TOO_FEW);
}

static void tail_takes_the_last_seconds(void **state)
{
    double t[100];
    double v[100];
    struct samples s;
    struct tail tail;
    struct err e = ERR_INIT;

    (void) state;
    fill(&s, t, v, 100);
    assert_int_equal(tail_evaluate(&s, 60, 1.5, &tail, &e), 0);
    assert_int_equal(tail.n, 61);
    assert_close(tail.coverage, 60.0, 0);
    assert_true(tail.complete);
    assert_close(tail.per_minute, 60.0, 1e-12);
    assert_int_equal(tail_evaluate(&s, 100.5, 1.5, &tail, &e), 0);
    assert_int_equal(tail.n, 100);
    assert_true(tail.complete);
    assert_int_equal(tail_evaluate(&s, 100.6, 1.5, &tail, &e), 0);
    assert_false(tail.complete);
    s.n = 1;
    assert_int_equal(tail_evaluate(&s, 0, 1.5, &tail, &e), 0);
    assert_int_equal(tail.n, 1);
}

static void rule_takes_defaults_and_given_values(void **state)
{
    cJSON *entry =
        cJSON_Parse("{\"start_phase\":\"a\",\"end_phase\":\"b\",\"estimator\":\"theil-sen\"}");
    cJSON *full = cJSON_Parse(
        "{\"start_phase\":\"a\",\"end_phase\":\"b\",\"estimator\":\"least-squares\",\"fraction\":4,"
        "\"cap\":30000,\"min_samples\":10,\"min_band_samples\":5,\"min_coverage\":1500,"
        "\"boundary_factor\":2}");
    struct window_rule r;

    (void) state;
    window_rule_from(entry, &r);
    assert_int_equal(r.estimator, WINDOW_THEIL_SEN);
    assert_string_equal(r.start_phase, "a");
    assert_close(r.endpoint.fraction, 6.0, 0);
    assert_close(r.endpoint.cap_secs, 60.0, 0);
    assert_int_equal(r.min_samples, 6);
    assert_close(r.boundary_factor, 1.5, 0);
    window_rule_from(full, &r);
    assert_int_equal(r.estimator, WINDOW_LEAST_SQUARES);
    assert_close(r.endpoint.fraction, 4.0, 0);
    assert_close(r.endpoint.cap_secs, 30.0, 0);
    assert_int_equal(r.endpoint.min_band, 5);
    assert_int_equal(r.min_samples, 10);
    assert_close(r.min_coverage_secs, 1.5, 0);
    cJSON_Delete(entry);
    cJSON_Delete(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_series_gives_the_published_figures),
        cmocka_unit_test(window_boundaries_are_inclusive_and_tolerant),
        cmocka_unit_test(window_refuses_what_is_no_series),
        cmocka_unit_test(tail_takes_the_last_seconds),
        cmocka_unit_test(rule_takes_defaults_and_given_values),
    };

    return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
