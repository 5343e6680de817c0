/* Several reports and several kinds of metrics: what is gated in one says nothing for another, and
 * what informs neither refuses nor counts. */
#include "tests/audit/sides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                       \
    "version: 1\n"                                                                                 \
    "gates:\n"                                                                                     \
    "  g:\n"                                                                                       \
    "    class: box\n"                                                                             \
    "    build: {command: [make], executable: {from: path, path: app}}\n"                          \
    "    run: {command: ['{executable}'], report: s/1.json}\n"                                     \
    "    identity: [{path: /scenario, require: required}]\n"                                       \
    "    accept: {limits: [{path: /results/rate, op: '>=', value: 10, unit: 1/s}]}\n"              \
    "    audit:\n"
#define RATE "{path: /results/rate, unit: 1/s, worse: lower, tolerance_pct: 5%s}"
#define CPU                                                                                        \
    "{path: /results/cpu, label: CPU, unit: '%%', worse: higher, tolerance_pct: 5, gated: false}"

static char *yaml_of(const char *paths, const char *rate, const char *more)
{
    char *yaml = NULL;

    assert_true(asprintf(&yaml,
                         HEAD "      paths: {required: [%s]}\n"
                              "      metrics: [" RATE ", " CPU "%s]\n",
                         paths, rate, more) > 0);
    return yaml;
}

static size_t reasons_of(const struct audit *a, const char *code)
{
    const cJSON *r = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(r, json_get(a->document, "reasons"))
        n += strcmp(json_get(r, "code")->valuestring, code) == 0;
    return n;
}

/* Two reports that only inform are two reports that nothing was compared of. */
static void informing_metrics_do_not_make_a_comparison(void **state)
{
    char *yaml = yaml_of("s/1.json, s/2.json", ", reports: [s/1.json]", "");
    struct audit a = {0};
    struct sides s;

    (void) state;
    sides_init_with(&s, yaml);
    sides_add_report(&s.baseline, "s/2.json");
    sides_add_report(&s.current, "s/2.json");
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_NON_COMPARABLE);
    assert_int_equal(reasons_of(&a, "NC-METRIC-NONE"), 1);
    assert_string_equal(pointer_get(a.document, "/paths/0/status")->valuestring, "compared");
    assert_string_equal(pointer_get(a.document, "/paths/1/status")->valuestring, "refused");
    audit_fini(&a);
    sides_fini(&s);
    free(yaml);
}

/* It is told once that it is missing, not that there was nothing to compare as well. */
static void a_missing_metric_is_one_reason(void **state)
{
    static const char *const more[] = {
        "", ", {path: '/none/*/p99', unit: ns, worse: higher, tolerance_pct: 5}"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        char *yaml = yaml_of("s/1.json", "", more[i]);
        struct audit a = {0};
        struct sides s;

        sides_init_with(&s, yaml);
        sides_put(s.current.report, "/results/rate", NULL);
        sides_audit(&s, &a);
        assert_int_equal(a.verdict, VERDICT_NON_COMPARABLE);
        assert_int_equal(reasons_of(&a, "NC-METRIC-MISSING"), 1 + i);
        assert_int_equal(reasons_of(&a, "NC-METRIC-NONE"), 0);
        /* the gated ones and the one that informs */
        assert_int_equal(json_get(a.document, "expected_comparisons")->valueint, 2 + (int) i);
        audit_fini(&a);
        sides_fini(&s);
        free(yaml);
    }
}

/* A pattern that informs may match nothing, and a value that informs may be missing. */
static void what_informs_may_be_absent(void **state)
{
    char *yaml =
        yaml_of("s/1.json", "",
                ", {path: '/none/*/p99', unit: ns, worse: higher, tolerance_pct: 5, gated: false}");
    struct sides s;

    (void) state;
    sides_init_with(&s, yaml);
    sides_put(s.current.report, "/results/cpu", NULL);
    sides_expect(&s, VERDICT_OK, NULL, NULL);
    free(yaml);
}

/* A limit belongs to what is gated, a floor to what has one. */
static void rows_state_the_limits_that_they_have(void **state)
{
    char *yaml = yaml_of("s/1.json", "",
                         ", {path: /results/growth, unit: MB/h, worse: higher, tolerance_pct: 15, "
                         "floor: 100}");
    struct audit a = {0};
    struct sides s;

    (void) state;
    sides_init_with(&s, yaml);
    sides_put_text(s.current.report, "/results/cpu", "99");
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_OK);
    assert_close(pointer_get(a.document, "/comparisons/0/limit")->valuedouble, 950, 1e-9);
    assert_true(cJSON_IsNull(pointer_get(a.document, "/comparisons/0/floor")));
    assert_string_equal(pointer_get(a.document, "/comparisons/1/verdict")->valuestring, "info");
    assert_true(cJSON_IsNull(pointer_get(a.document, "/comparisons/1/limit")));
    assert_close(pointer_get(a.document, "/comparisons/2/floor")->valuedouble, 100, 1e-9);
    assert_close(pointer_get(a.document, "/comparisons/2/limit")->valuedouble, 100, 1e-9);
    audit_fini(&a);
    sides_fini(&s);
    free(yaml);
}

/* Another pointer stands in only for what an inferred legacy report does not have itself. */
static void a_fallback_is_for_inferred_history_only(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "gates:\n"
        "  g:\n"
        "    class: box\n"
        "    build: {command: [make], executable: {from: path, path: app}}\n"
        "    run: {command: ['{executable}'], report: p100.json}\n"
        "    identity: [{path: /scenario, require: required}]\n"
        "    accept: {limits: [{path: /results/rate, op: '>=', value: 10, unit: 1/s}]}\n"
        "    infer:\n"
        "      name: sweep\n"
        "      explicit: /id\n"
        "      scenario: {path: /scenario, prefix: s}\n"
        "      sweep: {file: _all.json, points: /points, alone_at_root: true}\n"
        "      point: /load/rate\n"
        "      sibling: 'p{point}.json'\n"
        "      earlier: {point: load, counts: {n: /n}}\n"
        "      produce: [{path: /id/kind, constant: shared}]\n"
        "    audit:\n"
        "      paths: {required: [p100.json]}\n"
        "      metrics: [{path: /results/served, fallback: /results/rate, unit: 1/s, worse: lower, "
        "tolerance_pct: 5}]\n";
    static const struct {
        const char *own; /* the baseline's own value */
        const char *from;
        double baseline;
        enum verdict verdict;
        bool legacy;
    } rows[] = {
        {NULL, "/results/rate", 1000, VERDICT_OK, true},
        {"1200", NULL, 1200, VERDICT_REGRESSION, true},
        {"1000", NULL, 1000, VERDICT_OK, false},
        {NULL, NULL, 0, VERDICT_NON_COMPARABLE, false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct audit a = {0};
        struct sides s;
        const cJSON *row = NULL;

        sides_init_with(&s, yaml);
        s.path = "p100.json";
        s.legacy = rows[i].legacy;
        if (rows[i].own)
            sides_put_text(s.baseline.report, "/results/served", rows[i].own);
        sides_put_text(s.current.report, "/results/served", "1000");
        sides_audit(&s, &a);
        if (a.verdict != rows[i].verdict) {
            sides_show(a.document);
            fail_msg("row %zu: %s", i, verdict_word(a.verdict));
        }
        row = pointer_get(a.document, "/comparisons/0");
        if (rows[i].verdict == VERDICT_NON_COMPARABLE) {
            assert_int_equal(reasons_of(&a, "NC-METRIC-MISSING"), 1);
        } else {
            assert_close(json_get(row, "baseline")->valuedouble, rows[i].baseline, 1e-9);
            assert_int_equal(json_get(row, "baseline_from") != NULL, rows[i].from != NULL);
            if (rows[i].from)
                assert_string_equal(json_get(row, "baseline_from")->valuestring, rows[i].from);
        }
        audit_fini(&a);
        sides_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(informing_metrics_do_not_make_a_comparison),
        cmocka_unit_test(a_missing_metric_is_one_reason),
        cmocka_unit_test(what_informs_may_be_absent),
        cmocka_unit_test(a_fallback_is_for_inferred_history_only),
        cmocka_unit_test(rows_state_the_limits_that_they_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
