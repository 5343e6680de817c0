/* The rule of one metric, and inference of legacy identity. */
#include "tests/lib/support.h"

#include <math.h>

#include "audit/parts.h"
#include "tests/audit/sides.h"

static struct judged judge(bool higher, double tolerance, double floor, double baseline,
                           double current)
{
    struct policy_metric m = {.higher_is_worse = higher,
                              .tolerance_pct = tolerance,
                              .has_floor = floor > 0,
                              .floor = floor,
                              .gated = true};

    return compare_judge(&m, baseline, current);
}

static void boundary_is_strict_on_the_unrounded_double(void **state)
{
    (void) state;
    assert_false(judge(true, 25, 1e6, 3e6, 3.75e6).regression); /* exactly +25 % passes */
    assert_true(judge(true, 25, 1e6, 3e6, 3.7500001e6).regression);
    assert_true(judge(false, 2, 0, 1.0, 0.98).regression); /* -2.0000000000000018 % */
    assert_false(judge(false, 2, 0, 1.0, 0.981).regression);
    assert_true(judge(false, 15, 0, 1840, 1562.16).regression);
    assert_true(judge(true, 0, 0, 1000, nextafter(1000, 2000)).regression);
    assert_false(judge(true, 0, 0, 1000, 1000).regression);
}

static void denominator_is_the_absolute_baseline(void **state)
{
    struct judged j = judge(true, 15, 0.5, -100, -50);

    (void) state;
    assert_true(j.regression);
    assert_close(j.delta_pct, 50.0, 1e-12);
    assert_close(j.limit, -85.0, 1e-12);
    assert_false(judge(true, 15, 0.5, -100, -150).regression);
    assert_true(judge(false, 15, 0, -100, -150).regression);
}

static void near_zero_needs_floor_and_doubling(void **state)
{
    (void) state;
    assert_false(judge(true, 15, 0.5, 0.4, 0.7).regression); /* above the floor, not doubled */
    assert_true(judge(true, 15, 0.5, 0.4, 0.81).regression);
    assert_false(judge(true, 25, 1e6, 0.4e6, 0.99e6).regression); /* doubled, under the floor */
    assert_true(judge(true, 25, 1e6, 0.9e6, 1.81e6).regression);
    /* at the floor the percentage rules */
    assert_true(judge(true, 25, 1e6, 1e6, 1.3e6).regression);
    assert_true(judge(true, 15, 100, 9.3, 1499).regression);
    assert_close(judge(true, 15, 100, 9.3, 1499).limit, 100, 1e-12);
    assert_close(judge(true, 15, 100, 80, 1).limit, 160, 1e-12);
    /* lower-is-worse near zero never regresses */
    assert_false(judge(false, 15, 100, 80, 1).regression);
    assert_true(isnan(judge(false, 15, 100, 80, 1).limit));
}

static void baseline_zero_is_an_infinite_change(void **state)
{
    (void) state;
    assert_true(judge(true, 1000, 0, 0, 1e-9).regression);
    assert_false(judge(true, 15, 0, 0, 0).regression);
    assert_true(judge(false, 15, 0, 0, -1).regression);
    assert_false(judge(false, 15, 0, 0, 1).regression);
    assert_false(judge(true, 15, 0, 0, -1).regression); /* it got better */
    assert_false(judge(true, 15, 100, 0, 99).regression);
    assert_true(judge(true, 15, 100, 0, 101).regression);
}

/* The same rule, said in another way. */
static bool oracle(bool higher, double tolerance, double floor, double b, double c)
{
    if (!higher) {
        if (floor > 0 && fabs(b) < floor)
            return false;
        b = -b;
        c = -c;
    } else if (floor > 0 && fabs(b) < floor) {
        return c > floor && c > 2 * b;
    }
    if (num_same(b, 0))
        return c > 0;
    return (c - b) / fabs(b) * 100 > tolerance;
}

static void rule_agrees_with_an_oracle_on_random_values(void **state)
{
    uint64_t seed = 7;
    size_t regressions = 0;

    (void) state;
    for (int i = 0; i < 200000; i++) {
        double b = ((double) test_random_below(&seed, 4001) - 2000) / 10;
        double c = ((double) test_random_below(&seed, 4001) - 2000) / 10;
        double tolerance = (double) test_random_below(&seed, 100);
        double floor = (double) test_random_below(&seed, 3) * 50;
        bool higher = test_random_below(&seed, 2) == 1;
        struct judged j = judge(higher, tolerance, floor, b, c);

        assert_int_equal(j.regression, oracle(higher, tolerance, floor, b, c));
        regressions += j.regression;
        /* The limit is the border: what lies clearly on its good side passes, on its bad side
         * regresses. */
        if (!isnan(j.limit) && fabs(c - j.limit) > 1e-6)
            assert_int_equal(j.regression, higher ? c > j.limit : c < j.limit);
    }
    assert_true(regressions > 10000);
}

static void delta_pct_is_null_in_the_document_when_the_baseline_is_zero(void **state)
{
    struct sides s;
    struct audit a = {0};

    (void) state;
    sides_init(&s);
    sides_put_text(s.baseline.report, "/results/growth", "0");
    sides_put_text(s.current.report, "/results/growth", "101.5");
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_REGRESSION);
    assert_true(cJSON_IsNull(pointer_get(a.document, "/comparisons/1/delta_pct")));
    assert_close(pointer_get(a.document, "/comparisons/1/delta")->valuedouble, 101.5, 1e-12);
    assert_close(pointer_get(a.document, "/comparisons/1/limit")->valuedouble, 100, 1e-12);
    audit_fini(&a);
    sides_fini(&s);
}

/* Inference. */

static const char rule[] =
    "{\"name\":\"sweep\",\"explicit\":\"/id\",\"scenario\":{\"path\":\"/"
    "scenario\",\"prefix\":\"call\"},"
    "\"skip_prefix\":\"_\",\"sweep\":{\"file\":\"_all.json\",\"points\":\"/"
    "points\",\"alone_at_root\":true},"
    "\"point\":\"/"
    "load\",\"sibling\":\"p{point}.json\",\"earlier\":{\"point\":\"load\",\"counts\":{\"n\":\"/"
    "n\"}},"
    "\"integers\":[\"/samples\"],\"produce\":[{\"path\":\"/id/kind\",\"constant\":\"shared\"},"
    "{\"path\":\"/id/points\",\"from\":\"points\"},{\"path\":\"/id/point\",\"from\":\"point\"},"
    "{\"path\":\"/id/earlier\",\"from\":\"earlier\"}]}";

struct file {
    const char *path;
    const char *text;
};

/* Infers for `of`; NULL when nothing was inferred, with the reason in `why`. */
static cJSON *infer(const struct file *files, size_t n, const char *of, char why[400])
{
    struct tree t;
    cJSON *r = sides_json(rule);
    cJSON *values = NULL;
    struct buf text = {0};
    struct err e = ERR_INIT;

    tree_init(&t);
    buf_init(&text, 4096);
    for (size_t i = 0; i < n; i++)
        if (files[i].text)
            assert_int_equal(tree_add(&t, files[i].path, files[i].text, strlen(files[i].text), &e),
                             0);
    assert_int_equal(infer_identity(r, &t, tree_find(&t, of), &values, &text, &e), 0);
    (void) snprintf(why, 400, "%s", text.data ? text.data : "");
    buf_fini(&text);
    tree_fini(&t);
    json_free(r);
    return values;
}

#define SWEEP                                                                                      \
    {                                                                                              \
        "s/_all.json", "{\"points\":[30.0,1000,2000]}"                                             \
    }
#define P30                                                                                        \
    {                                                                                              \
        "s/p30.json", "{\"scenario\":\"call\",\"load\":30,\"n\":9}"                                \
    }
#define P1000                                                                                      \
    {                                                                                              \
        "s/p1000.json", "{\"scenario\":\"call\",\"load\":1000,\"n\":99}"                           \
    }
#define P2000                                                                                      \
    {                                                                                              \
        "s/p2000.json", "{\"scenario\":\"call x\",\"load\":2000.0,\"n\":1,\"samples\":5}"          \
    }

static void infers_from_a_complete_sweep(void **state)
{
    static const struct file files[] = {SWEEP, P30, P1000, P2000};
    char why[400];
    cJSON *v = infer(files, 4, "s/p2000.json", why);
    char *text = NULL;

    (void) state;
    assert_non_null(v);
    assert_string_equal(json_get(v, "/id/kind")->valuestring, "shared");
    text = sides_print(json_get(v, "/id/earlier"));
    assert_string_equal(text, "[{\"load\":30,\"n\":9},{\"load\":1000,\"n\":99}]");
    free(text);
    assert_close(json_get(v, "/id/point")->valuedouble, 2000, 0);
    assert_int_equal(cJSON_GetArraySize(json_get(v, "/id/points")), 3);
    json_free(v);
}

static void infers_a_lone_report_at_the_root(void **state)
{
    static const struct file files[] = {
        {"p7.json", "{\"scenario\":\"call\",\"load\":7,\"samples\":5}"}};
    char why[400];
    cJSON *v = infer(files, 1, "p7.json", why);

    (void) state;
    assert_non_null(v);
    assert_int_equal(cJSON_GetArraySize(json_get(v, "/id/earlier")), 0);
    assert_int_equal(cJSON_GetArraySize(json_get(v, "/id/points")), 1);
    json_free(v);
}

static void every_broken_condition_says_why(void **state)
{
    static const struct {
        struct file files[4];
        const char *of;
        const char *why;
    } cases[] = {
        {{P30, P1000, P2000}, "s/p2000.json", "s/_all.json has no list"},
        {{{"s/_all.json", "{\"points\":[30,\"x\",2000]}"}, P30, P1000, P2000},
         "s/p2000.json",
         "no number"},
        {{{"s/_all.json", "{\"points\":30}"}, P30, P1000, P2000}, "s/p2000.json", "no list"},
        {{{"s/_all.json", "{\"points\":[30,1000]}"}, P30, P1000, P2000},
         "s/p2000.json",
         "not in the sweep"},
        {{SWEEP, P30, P2000}, "s/p2000.json", "s/p1000.json is missing"},
        {{SWEEP, {"s/p30.json", "{"}, P1000, P2000}, "s/p2000.json", "s/p30.json is missing"},
        {{SWEEP, {"s/p30.json", "{\"n\":\"9\"}"}, P1000, P2000},
         "s/p2000.json",
         "s/p30.json has no integer at /n"},
        {{SWEEP, {"s/p30.json", "{\"n\":9.5}"}, P1000, P2000},
         "s/p2000.json",
         "has no integer at /n"},
        {{SWEEP, {"s/p30.json", "{\"n\":null}"}, P1000, P2000},
         "s/p2000.json",
         "has no integer at /n"},
        {{SWEEP,
          P30,
          P1000,
          {"s/p2000.json", "{\"scenario\":\"call\",\"load\":2000,\"samples\":5.5}"}},
         "s/p2000.json",
         "/samples is no integer"},
        {{SWEEP, P30, P1000, {"s/p2000.json", "{\"scenario\":\"call\",\"load\":2000}"}},
         "s/p2000.json",
         "/samples is no integer"},
        {{SWEEP,
          P30,
          P1000,
          {"s/p2000.json", "{\"scenario\":\"reg\",\"load\":2000,\"samples\":5}"}},
         "s/p2000.json",
         "does not begin with"},
        {{SWEEP,
          P30,
          P1000,
          {"s/p2000.json", "{\"scenario\":\"call\",\"load\":\"2000\",\"samples\":5}"}},
         "s/p2000.json",
         "/load is no number"},
        {{SWEEP, P30, P1000, {"s/_x.json", "{\"scenario\":\"call\",\"load\":30,\"samples\":5}"}},
         "s/_x.json",
         "begins with '_'"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char why[400];
        cJSON *v = infer(cases[i].files, 4, cases[i].of, why);

        if (v || !strstr(why, cases[i].why))
            fail_msg("case %zu: expected '%s', found '%s'", i, cases[i].why, why);
    }
}

static void an_explicit_identity_is_never_inferred(void **state)
{
    static const struct file files[] = {
        SWEEP,
        P30,
        P1000,
        {"s/p2000.json", "{\"scenario\":\"call\",\"load\":2000,\"samples\":5,\"id\":{}}"}};
    char why[400];

    (void) state;
    assert_null(infer(files, 4, "s/p2000.json", why));
    assert_string_equal(why, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boundary_is_strict_on_the_unrounded_double),
        cmocka_unit_test(denominator_is_the_absolute_baseline),
        cmocka_unit_test(near_zero_needs_floor_and_doubling),
        cmocka_unit_test(baseline_zero_is_an_infinite_change),
        cmocka_unit_test(rule_agrees_with_an_oracle_on_random_values),
        cmocka_unit_test(delta_pct_is_null_in_the_document_when_the_baseline_is_zero),
        cmocka_unit_test(infers_from_a_complete_sweep),
        cmocka_unit_test(infers_a_lone_report_at_the_root),
        cmocka_unit_test(every_broken_condition_says_why),
        cmocka_unit_test(an_explicit_identity_is_never_inferred),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
