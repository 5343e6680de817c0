/* The rules "fail closed" 1-7 and 9 of the design, one hole after the other. */
#include "tests/lib/support.h"

#include "tests/audit/sides.h"

static void ok_when_everything_is_the_same_experiment(void **state)
{
    struct sides s;

    (void) state;
    sides_init(&s);
    sides_expect(&s, VERDICT_OK, NULL, NULL);
}

static void ok_lists_what_was_compared(void **state)
{
    struct sides s;
    struct audit a = {0};

    (void) state;
    sides_init(&s);
    sides_audit(&s, &a);
    assert_int_equal(cJSON_GetArraySize(json_get(a.document, "comparisons")), 5);
    assert_int_equal((int) json_get(a.document, "made_comparisons")->valuedouble, 5);
    assert_string_equal(pointer_get(a.document, "/comparisons/2/label")->valuestring, "get p99");
    assert_string_equal(pointer_get(a.document, "/comparisons/2/metric")->valuestring,
                        "/latency/get/p99");
    assert_string_equal(pointer_get(a.document, "/comparisons/4/verdict")->valuestring, "info");
    assert_string_equal(pointer_get(a.document, "/paths/0/status")->valuestring, "compared");
    assert_string_equal(pointer_get(a.document, "/current/commit")->valuestring, "c0ffee");
    assert_true(cJSON_IsFalse(json_get(a.document, "same_executable")));
    for (size_t i = 0; i < facts_count; i++) { /* each fact stands there once */
        const cJSON *row = NULL;
        size_t n = 0;

        cJSON_ArrayForEach(row, pointer_get(a.document, "/identity/equal")) {
            const char *field = json_get(row, "field")->valuestring;
            const char *name = strrchr(field, '/');

            n += strncmp(field, "/machine/facts/", 15) == 0 &&
                 strcmp(name + 1, facts_table[i].name) == 0;
        }
        if (n != 1)
            fail_msg("%s is listed %zu times", facts_table[i].name, n);
    }
    audit_fini(&a);
    sides_fini(&s);
}

static void regression_beyond_the_tolerance_only(void **state)
{
    struct sides s;

    (void) state;
    sides_init(&s);
    sides_put_text(s.current.report, "/results/rate", "900.0");
    sides_expect(&s, VERDICT_OK, NULL, NULL);
    sides_init(&s);
    sides_put_text(s.current.report, "/results/rate", "899.0");
    sides_expect(&s, VERDICT_REGRESSION, NULL, NULL);
    sides_init(&s);
    sides_put_text(s.current.report, "/results/cpu", "99.0"); /* informational */
    sides_expect(&s, VERDICT_OK, NULL, NULL);
}

/* Rule 1: a closed set. */
static void rule1_metric_missing_null_or_not_a_number(void **state)
{
    static const char *const invalid[] = {"\"1000\"", "true", "[1000]", "{}"};
    struct sides s;

    (void) state;
    for (int side = 0; side < 2; side++) {
        sides_init(&s);
        sides_put(side ? s.current.report : s.baseline.report, "/results/rate", NULL);
        sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-METRIC-MISSING", "/results/rate");
        sides_init(&s);
        sides_put_text(side ? s.current.report : s.baseline.report, "/results/rate", "null");
        sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-METRIC-MISSING", "/results/rate");
        for (size_t i = 0; i < ARRAY_LEN(invalid); i++) {
            sides_init(&s);
            sides_put_text(side ? s.current.report : s.baseline.report, "/results/rate",
                           invalid[i]);
            sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-METRIC-INVALID", "/results/rate");
        }
    }
    sides_init(&s); /* on both sides equally: still a refusal */
    sides_put(s.baseline.report, "/results/rate", NULL);
    sides_put(s.current.report, "/results/rate", NULL);
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-METRIC-MISSING", "/results/rate");
}

/* What only informs may be absent; what is gated counts as expected though it is absent. */
static void rule1_only_gated_metrics_must_be_there(void **state)
{
    static const struct {
        const char *pointer;
        const char *json;
        enum verdict verdict;
        int expected, made;
    } rows[] = {
        {"/results/cpu", NULL, VERDICT_OK, 4, 4},
        {"/results/cpu", "null", VERDICT_OK, 4, 4},
        {"/results/cpu", "\"much\"", VERDICT_OK, 4, 4},
        {"/results/rate", NULL, VERDICT_NON_COMPARABLE, 5, 0},
        {"/results/rate", "\"much\"", VERDICT_NON_COMPARABLE, 5, 0},
        {"/latency/get/p99", NULL, VERDICT_NON_COMPARABLE, 5, 0},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct audit a = {0};
        struct sides s;

        sides_init(&s);
        sides_put_text(s.current.report, rows[i].pointer, rows[i].json);
        sides_audit(&s, &a);
        assert_int_equal(a.verdict, rows[i].verdict);
        assert_int_equal(json_get(a.document, "expected_comparisons")->valueint, rows[i].expected);
        assert_int_equal(json_get(a.document, "made_comparisons")->valueint, rows[i].made);
        audit_fini(&a);
        sides_fini(&s);
    }
}

static void rule1_pattern_expands_over_the_baseline(void **state)
{
    struct sides s;
    struct audit a = {0};

    (void) state;
    sides_init(&s);
    sides_put(s.current.report, "/latency/put", NULL);
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-METRIC-MISSING", "/latency/put/p99");
    sides_init(&s);
    sides_put_text(s.baseline.report, "/latency", "{}");
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-METRIC-MISSING", "/latency/*/p99");
    sides_init(&s);
    sides_put_text(s.current.report, "/latency/scan", "{\"p99\":5}");
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_OK);
    assert_string_equal(pointer_get(a.document, "/coverage/ungated/0/metric")->valuestring,
                        "/latency/scan/p99");
    assert_int_equal(cJSON_GetArraySize(json_get(a.document, "comparisons")), 5);
    audit_fini(&a);
    sides_fini(&s);
}

/* A member of the pattern that neither side says anything about is no match, and no skip. */
static void rule3_pattern_asks_every_member(void **state)
{
    static const struct {
        const char *baseline, *current, *field;
    } rows[] = {
        {"[{\"n\":1},{\"m\":2}]", "[{\"n\":1},{\"m\":2}]", "/load/steps/1/n"},
        {"[{\"n\":1},{\"m\":2}]", "[{\"n\":1},{\"n\":2}]", "/load/steps/1/n"},
        {"[{\"n\":1},{\"n\":2}]", "[{\"n\":1},3]", "/load/steps/1/n"},
        {"[{\"n\":1},null]", "[{\"n\":1}]", "/load/steps/1/n"},
    };
    static const char plain[] = "{path: /load/steps,";
    const char *at = strstr(sides_yaml, plain);
    AUTO_FREE char *yaml = NULL;
    struct sides s;

    (void) state;
    assert_non_null(at);
    assert_true(asprintf(&yaml, "%.*s{path: /load/steps/*/n,%s", (int) (at - sides_yaml),
                         sides_yaml, at + strlen(plain)) > 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct audit a = {0};

        sides_init_with(&s, yaml);
        sides_put_text(s.baseline.report, "/load/steps", rows[i].baseline);
        sides_put_text(s.current.report, "/load/steps", rows[i].current);
        sides_audit(&s, &a);
        assert_int_equal(a.verdict, VERDICT_NON_COMPARABLE);
        assert_int_equal(cJSON_GetArraySize(json_get(a.document, "reasons")), 1);
        assert_string_equal(pointer_text(a.document, "/reasons/0/code"), "NC-IDENTITY-MISSING");
        assert_string_equal(pointer_text(a.document, "/reasons/0/field"), rows[i].field);
        audit_fini(&a);
        sides_fini(&s);
    }
}

static void rule1_report_missing_on_a_side(void **state)
{
    struct sides s;

    (void) state;
    sides_init(&s);
    json_free(s.current.report);
    s.current.report = NULL;
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-PATH-MISSING", NULL);
    sides_init(&s);
    s.path = "other/1.json";
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-PATH-NONE", NULL);
    sides_init(&s);
    json_free(s.baseline.report);
    s.baseline.report = NULL;
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-BASELINE-EMPTY", NULL);
}

static void rule1_comparison_paths_of_a_reviewed_baseline_are_required(void **state)
{
    cJSON *manifest =
        sides_json("{\"baseline_id\":\"b-20261129T141502Z\",\"comparison_paths\":[\"s/2.json\"]}");
    struct sides s;

    (void) state;
    sides_init(&s);
    s.baseline_manifest = manifest;
    sides_add_report(&s.baseline, "s/2.json");
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-PATH-MISSING", NULL);
    json_free(manifest);
}

static void rule1_zero_comparisons_is_a_refusal(void **state)
{
    static const char *const only_other_reports =
        "version: 1\ngates:\n  g:\n    class: box\n    build: {command: [make], executable: {from: "
        "path, path: app}}\n"
        "    run: {command: ['{executable}'], report: s/1.json}\n    identity: [{path: /scenario, "
        "require: required}]\n"
        "    accept: {limits: [{path: /results/rate, op: '>=', value: 10, unit: 1/s}]}\n"
        "    audit: {paths: {required: [s/1.json]}, metrics: [{path: /results/rate, unit: 1/s, "
        "worse: lower, "
        "tolerance_pct: 5, reports: ['t/*']}]}\n";
    struct sides s;

    (void) state;
    sides_init_with(&s, only_other_reports);
    s.bare = true;
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-METRIC-NONE", NULL);
}

/* One report with comparisons does not make up for another without. */
static void rule1_zero_comparisons_of_one_report_is_a_refusal(void **state)
{
    cJSON *manifest =
        sides_json("{\"baseline_id\":\"b-20261129T141502Z\",\"comparison_paths\":[\"s/2.json\"]}");
    char *yaml = malloc(sizeof sides_yaml + 1000);
    const char *at = sides_yaml;
    char *out = yaml;
    struct sides s;
    struct audit a = {0};

    (void) state;
    assert_non_null(yaml);
    for (const char *next = strstr(at, "worse: "); next; next = strstr(at, "worse: ")) {
        memcpy(out, at, (size_t) (next - at));
        out += next - at;
        out += snprintf(out, 40, "reports: [s/1.json], worse: ");
        at = next + 7;
    }
    memcpy(out, at, strlen(at) + 1);
    sides_init_with(&s, yaml);
    free(yaml);
    s.baseline_manifest = manifest;
    sides_add_report(&s.baseline, "s/2.json");
    sides_add_report(&s.current, "s/2.json");
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_NON_COMPARABLE);
    assert_true(sides_has(a.document, "NC-METRIC-NONE", NULL));
    assert_string_equal(pointer_get(a.document, "/paths/0/status")->valuestring, "compared");
    assert_string_equal(pointer_get(a.document, "/paths/1/status")->valuestring, "refused");
    audit_fini(&a);
    sides_fini(&s);
    json_free(manifest);
}

static void rule1_unreadable_report_is_invalid(void **state)
{
    static const char *const broken[] = {"{\"results\":{\"rate\":NaN}}", "[1]", "{",
                                         "{\"a\":1,\"a\":1}", ""};
    struct sides s;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        sides_init(&s);
        sides_add_file(&s.current, SIDES_REPORT, broken[i]);
        sides_expect(&s, VERDICT_INVALID, "IN-JSON", NULL);
    }
    sides_init(&s); /* another file that is broken is only listed */
    sides_add_file(&s.current, "notes.json", "[]");
    sides_expect(&s, VERDICT_OK, NULL, NULL);
}

static void rule1_no_baseline_is_a_refusal(void **state)
{
    struct sides s;
    struct audit a = {0};
    struct err e = ERR_INIT;
    struct audit_side current = {0};

    (void) state;
    sides_init(&s);
    sides_add_report(&s.current, SIDES_REPORT);
    current.tree = &s.current.tree;
    assert_int_equal(audit_no_baseline(&s.policy, &current, NULL, &a, &e), 0);
    assert_int_equal(a.verdict, VERDICT_NON_COMPARABLE);
    assert_true(sides_has(a.document, "NC-BASELINE-NONE", NULL));
    assert_int_equal((int) json_get(a.document, "expected_comparisons")->valuedouble, 4);
    assert_int_equal((int) json_get(a.document, "made_comparisons")->valuedouble, 0);
    audit_fini(&a);
    sides_fini(&s);
}

/* Rule 2: never against itself. */
static void rule2_same_evidence(void **state)
{
    struct sides s;

    (void) state;
    sides_init(&s);
    sides_put_text(s.current.report, "/results/serial", "1"); /* now the same bytes */
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-SAME-EVIDENCE", NULL);
    sides_init(&s);
    sides_put_text(s.current.manifest, "/run", "\"20261129T141502Z-9c1e07ab\"");
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-SAME-EVIDENCE", "/run");
    sides_init(&s);
    s.evidence_baseline = "abc";
    s.evidence_current = "abc";
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-SAME-EVIDENCE", NULL);
}

static void rule2_same_binary_is_shown_not_refused(void **state)
{
    struct sides s;
    struct audit a = {0};

    (void) state;
    sides_init(&s);
    sides_put_text(s.current.manifest, "/executable/sha256", "\"aa\"");
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_OK);
    assert_true(cJSON_IsTrue(json_get(a.document, "same_executable")));
    assert_true(cJSON_IsFalse(json_get(a.document, "same_source"))); /* unknown is not the same */
    audit_fini(&a);
    sides_fini(&s);
}

/* An interpreter is the same file whatever it reads: only with the same source is a difference
 * noise. */
static void rule2_same_binary_is_noise_only_with_the_same_source(void **state)
{
    static const char *const trees[] = {"\"f1\"", "\"f2\""};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        struct sides s;
        struct audit a = {0};
        struct err e = ERR_INIT;
        char *text = NULL;
        size_t len = 0;

        sides_init(&s);
        sides_put_text(s.current.manifest, "/executable/sha256", "\"aa\"");
        sides_put_text(s.baseline.manifest, "/source/start/fingerprint", "\"f1\"");
        sides_put_text(s.current.manifest, "/source/start/fingerprint", trees[i]);
        sides_audit(&s, &a);
        assert_int_equal(cJSON_IsTrue(json_get(a.document, "same_source")), i == 0);
        assert_int_equal(audit_markdown(a.document, NULL, &text, &len, &e), 0);
        assert_int_equal(strstr(text, "every difference below is noise") != NULL, i == 0);
        assert_int_equal(strstr(text, "the same program file; its source tree differs") != NULL,
                         i == 1);
        free(text);
        audit_fini(&a);
        sides_fini(&s);
    }
}

/* Rule 3: unknown is a refusal; the one exception is written in the definition and needs a legacy
 * baseline. */
static void rule3_both_may_lack_needs_a_legacy_baseline_and_absence_on_both(void **state)
{
    struct sides s;
    struct audit a = {0};

    (void) state;
    sides_init(&s); /* not legacy: /note is unknown */
    sides_put(s.baseline.report, "/note", NULL);
    sides_put(s.current.report, "/note", NULL);
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_NON_COMPARABLE);
    assert_true(sides_has(a.document, "NC-IDENTITY-MISSING", "/note"));
    audit_fini(&a);
    sides_fini(&s);

    sides_init(&s);
    s.legacy = true;
    sides_put(s.baseline.report, "/note", NULL);
    sides_put(s.current.report, "/note", NULL);
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_OK);
    assert_string_equal(pointer_get(a.document, "/identity/not_recorded/0/field")->valuestring,
                        "/note");
    audit_fini(&a);
    sides_fini(&s);

    for (int side = 0; side < 2; side++) {
        sides_init(&s);
        s.legacy = true;
        sides_put(s.baseline.report, "/note", NULL);
        sides_put(s.current.report, "/note", NULL);
        sides_put_text(side ? s.current.report : s.baseline.report, "/note", "\"x\"");
        sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-MISSING", "/note");
    }
}

static void rule3_malformed_identity_on_both_sides_is_not_equal(void **state)
{
    static const struct {
        const char *pointer;
        const char *json; /* NULL: removed */
    } cases[] = {
        {"/load/rate", NULL},
        {"/load/rate", "\"100\""},
        {"/load/steps", "[]"},
        {"/load/steps", "\"\""},
        {"/load/steps", "[null]"},
        {"/scenario", "\"\""},
        {"/load/steps", "{}"},
        {"/load", "[]"},
        {"/scenario", "1"},
        {"/load/steps", "[[{\"a\":null}]]"},
        {"/load/rate", "9007199254740992.0"},
        {"/load/rate", "-9.1e15"},
        {"/load/rate", "1e300"},
        {"/load/steps", "[10,{\"a\":[9007199254740993.0]}]"},
        {"/environment/alloc", "1e16"},
    };
    struct sides s;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        sides_init(&s);
        sides_put_text(s.baseline.report, cases[i].pointer, cases[i].json);
        sides_put_text(s.current.report, cases[i].pointer, cases[i].json);
        sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-INVALID", NULL);
    }
}

/* Two texts of one double are two numbers; the largest that is exact still compares. */
/* A pattern that finds nothing on either side has compared nothing: unknown, not equal. */
static void rule3_a_pattern_that_finds_nothing_is_unknown(void **state)
{
    static const char *const nothing[] = {"{}", "[]", "null", NULL};
    struct sides s;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
        sides_init(&s);
        sides_put_text(s.baseline.report, "/environment", nothing[i]);
        sides_put_text(s.current.report, "/environment", nothing[i]);
        sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-MISSING", "/environment/*");
    }
}

/* An identity of some reports is one of those: another report has none, and that is a refusal. */
static void rule3_a_report_without_any_identity_is_refused(void **state)
{
    static const char yaml[] =
        "version: 1\ngates:\n  g:\n    class: box\n    build: {command: [make], executable: {from: "
        "path, path: app}}\n"
        "    run: {command: ['{executable}'], report: s/1.json}\n    identity: [{path: /scenario, "
        "require: required, reports: [%s]}]\n"
        "    accept: {limits: [{path: /results/rate, op: '>=', value: 10, unit: 1/s}]}\n"
        "    audit: {paths: {required: [s/1.json]}, metrics: [{path: /results/rate, unit: 1/s, "
        "worse: lower, tolerance_pct: 5}]}\n";
    static const struct {
        const char *reports;
        const char *scenario; /* of the current report */
        enum verdict verdict;
        const char *code;
    } rows[] = {
        {"s/1.json", "\"s\"", VERDICT_OK, NULL},
        {"s/1.json", "\"t\"", VERDICT_NON_COMPARABLE, "NC-IDENTITY-DIFFERS"},
        {"'t/*'", "\"s\"", VERDICT_NON_COMPARABLE, "NC-IDENTITY-MISSING"},
        {"'t/*'", "\"t\"", VERDICT_NON_COMPARABLE, "NC-IDENTITY-MISSING"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *text = NULL;
        struct sides s;

        assert_true(asprintf(&text, yaml, rows[i].reports) > 0);
        sides_init_with(&s, text);
        free(text);
        s.bare = true;
        sides_put_text(s.current.report, "/scenario", rows[i].scenario);
        sides_expect(&s, rows[i].verdict, rows[i].code, NULL);
    }
}

/* A slip in the name of a report takes nothing out of the comparison: it is refused. */
static void rule1_entries_for_reports_that_are_not_compared(void **state)
{
    static const struct {
        const char *from, *to, *code, *field;
    } rows[] = {
        {"path: /load/rate,", "path: /load/rate, reports: [S/1.json],", "NC-IDENTITY-MISSING",
         "/load/rate"},
        {"path: /load/rate,", "path: /load/rate, reports: [s/1.json, t/*],", "NC-IDENTITY-MISSING",
         "/load/rate"},
        {"path: /results/growth,", "path: /results/growth, reports: ['*.jsn'],", "NC-METRIC-NONE",
         "/results/growth"},
        {"path: /windows/w,", "path: /windows/w, reports: [s/2.json],", "NC-WINDOW-INCOMPLETE",
         "/windows/w"},
        {"path: /results/cpu,", "path: /results/cpu, reports: [s/2.json],", NULL, NULL},
        {"path: /load/rate,", "path: /load/rate, reports: ['s/*', '*'],", NULL, NULL},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *at = strstr(sides_yaml, rows[i].from);
        AUTO_FREE char *yaml = NULL;
        struct sides s;

        assert_non_null(at);
        assert_true(asprintf(&yaml, "%.*s%s%s", (int) (at - sides_yaml), sides_yaml, rows[i].to,
                             at + strlen(rows[i].from)) > 0);
        sides_init_with(&s, yaml);
        sides_expect(&s, rows[i].code ? VERDICT_NON_COMPARABLE : VERDICT_OK, rows[i].code,
                     rows[i].field);
    }
}

static void rule3_numbers_that_no_double_tells_apart_are_not_equal(void **state)
{
    struct sides s;

    (void) state;
    sides_init(&s);
    sides_put_text(s.baseline.report, "/load/rate", "9007199254740992.0");
    sides_put_text(s.current.report, "/load/rate", "9007199254740993.0");
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-INVALID", "/load/rate");
    sides_init(&s);
    sides_put_text(s.baseline.report, "/load/rate", "9007199254740991");
    sides_put_text(s.current.report, "/load/rate", "9007199254740991.0");
    sides_expect(&s, VERDICT_OK, NULL, NULL);
    sides_init(&s);
    sides_put_text(s.baseline.report, "/load/rate", "9007199254740990");
    sides_put_text(s.current.report, "/load/rate", "9007199254740991");
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-DIFFERS", "/load/rate");
    sides_init(&s); /* written as an integer it is no document */
    sides_add_file(&s.current, SIDES_REPORT, "{\"load\":{\"rate\":9007199254740993}}");
    sides_expect(&s, VERDICT_INVALID, "IN-JSON", NULL);
}

static void rule3_estimators_are_known_and_equal(void **state)
{
    static const char *const values[] = {"null", "\"ols\"", "1e300", NULL,
                                         "{\"name\":\"theil-sen\"}"};
    struct sides s;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        for (int side = 0; side < 2; side++) {
            sides_init(&s);
            sides_put_text(side ? s.current.report : s.baseline.report, "/windows/w/estimator",
                           values[i]);
            sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-ESTIMATOR", "/windows/w/estimator");
        }
    sides_init(&s);
    sides_put_text(s.baseline.report, "/windows/w/estimator", "null");
    sides_put_text(s.current.report, "/windows/w/estimator", "null");
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-ESTIMATOR", "/windows/w/estimator");
}

static void rule3_a_side_without_manifest_is_unknown(void **state)
{
    struct sides s;

    (void) state;
    for (int side = 0; side < 2; side++) {
        cJSON **manifest = NULL;

        sides_init(&s);
        manifest = side ? &s.current.manifest : &s.baseline.manifest;
        json_free(*manifest);
        *manifest = NULL;
        sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-MISSING", "/machine/facts");
    }
}

static void rule3_element_wise_difference_is_told(void **state)
{
    struct sides s;
    struct audit a = {0};

    (void) state;
    sides_init(&s);
    sides_put_text(s.current.report, "/load/steps", "[10,30,40]");
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_NON_COMPARABLE);
    assert_true(sides_has(a.document, "NC-IDENTITY-DIFFERS", "/load/steps"));
    assert_string_equal(
        pointer_get(a.document, "/identity/different/0/elements/0/field")->valuestring,
        "/load/steps/1");
    assert_int_equal(
        (int) pointer_get(a.document, "/identity/different/0/elements/0/current")->valuedouble, 30);
    assert_null(pointer_get(a.document, "/identity/different/0/elements/1/baseline"));
    assert_string_equal(pointer_get(a.document, "/identity/different/0/why")->valuestring,
                        "order matters");
    assert_int_equal(cJSON_GetArraySize(json_get(a.document, "comparisons")), 0);
    audit_fini(&a);
    sides_fini(&s);
}

/* Rule 4: what conditioning did is identity. */
static void rule4_conditioning_is_identity(void **state)
{
    static const char *const values[] = {"\"dd\"", "null", NULL, "\"\"", "7"};
    struct sides s;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        sides_init(&s);
        sides_put_text(s.current.manifest, "/conditioning/sha256", values[i]);
        sides_expect(&s, VERDICT_NON_COMPARABLE, NULL, NULL);
    }
    sides_init(&s);
    sides_put(s.current.manifest, "/conditioning", NULL);
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-MISSING", "/conditioning/sha256");
}

/* Rule 5: the reviewed baseline named, or a refusal: the class and the gate must be its own. */
static void rule5_another_class_gate_mode_or_source(void **state)
{
    static const struct {
        const char *pointer;
        const char *json;
        const char *code;
    } cases[] = {
        {"/class", "\"laptop\"", "NC-MACHINE-CLASS"},
        {"/class", NULL, "NC-MACHINE-CLASS"},
        {"/mode", "\"cpu\"", "NC-MODE"},
        {"/mode", NULL, "NC-MODE"},
        {"/gate", "\"other\"", "NC-DEFINITION"},
        {"/project", "\"o/other\"", "NC-DEFINITION"},
        {"/source/start/dirty", "true", "NC-SOURCE-DIRTY"},
        {"/source/start/dirty", NULL, "NC-SOURCE-DIRTY"},
        {"/source/end/dirty", "true", "NC-SOURCE-DIRTY"},
        {"/source/end/dirty", "null", "NC-SOURCE-DIRTY"},
        {"/source/ignored", "1", "NC-SOURCE-DIRTY"},
        {"/source/ignored", "null", "NC-SOURCE-DIRTY"},
        {"/source/ignored", NULL, "NC-SOURCE-DIRTY"},
    };
    struct sides s;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int side = 0; side < 2; side++) {
            sides_init(&s);
            sides_put_text(side ? s.current.manifest : s.baseline.manifest, cases[i].pointer,
                           cases[i].json);
            sides_expect(&s, VERDICT_NON_COMPARABLE, cases[i].code, NULL);
        }
    sides_init(&s); /* both measured in a diagnostic mode: equal, and still no answer */
    sides_put_text(s.baseline.manifest, "/mode", "\"cpu\"");
    sides_put_text(s.current.manifest, "/mode", "\"cpu\"");
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-MODE", NULL);
}

static void rule5_another_definition_names_its_keys(void **state)
{
    struct sides s;
    char *yaml = strdup(sides_yaml);
    char *at = NULL;

    (void) state;
    assert_non_null(yaml);
    at = strstr(yaml, "value: 20");
    assert_non_null(at);
    at[7] = '3';
    sides_init(&s);
    definition_fini(&s.current.definition);
    sides_definition(yaml, &s.current.definition);
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-DEFINITION", "/conditioning/1/value");
    /* Both runs agree, but not with the definition that judges. */
    sides_init(&s);
    definition_fini(&s.policy);
    sides_definition(yaml, &s.policy);
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-DEFINITION", NULL);
    /* The run agrees with the definition that judges; the baseline was another experiment. */
    sides_init(&s);
    definition_fini(&s.baseline.definition);
    sides_definition(yaml, &s.baseline.definition);
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-DEFINITION", "/conditioning/1/value");
    free(yaml);
}

/* Without the definitions themselves, the digests in the manifests say that they differ. */
static void rule5_another_digest_is_another_definition(void **state)
{
    static const char field[] = "/definition/experiment_sha256";
    struct sides s;

    (void) state;
    for (int side = 0; side < 2; side++) {
        sides_init(&s);
        s.digests_only = true;
        sides_put_text(side ? s.current.manifest : s.baseline.manifest, field,
                       "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"");
        sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-DEFINITION", field);
        sides_init(&s);
        s.digests_only = true;
        sides_put_text(side ? s.current.manifest : s.baseline.manifest, field, "null");
        sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-IDENTITY-MISSING", field);
    }
    sides_init(&s);
    s.digests_only = true;
    sides_expect(&s, VERDICT_OK, NULL, NULL);
}

/* Bare trees whose keeper knows on which class each was measured. */
static void rule5_bare_trees_of_two_classes(void **state)
{
    static const char *const classes[][2] = {
        {"box", "box"}, {"box", NULL}, {NULL, "box"}, {"box", "other"}};
    struct sides s;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        bool differ = i == ARRAY_LEN(classes) - 1;

        sides_init(&s);
        s.bare = true;
        s.class_baseline = classes[i][0];
        s.class_current = classes[i][1];
        sides_expect(&s, differ ? VERDICT_NON_COMPARABLE : VERDICT_OK,
                     differ ? "NC-MACHINE-CLASS" : NULL, "/class");
    }
}

/* A removed element is one difference of one list, not one per index behind it. */
static void rule5_a_list_of_another_definition_is_one_reason(void **state)
{
    static const char from[] = "conditioning: [{name: warm, value: 10}, {name: hot, value: 20}]";
    static const struct {
        const char *list;
        const char *fields[3]; /* of the elements, in order */
        const char *changes[3];
        const char *text; /* a part of the reason's */
    } cases[] = {
        {"conditioning: [{name: b, value: 1}, {name: warm, value: 10}, {name: hot, value: 20}]",
         {"/conditioning/0"},
         {"added"},
         "/0 {\"name\":\"b\",\"value\":1} added"},
        {"conditioning: [{name: hot, value: 20}]", {"/conditioning/0"}, {"removed"}, "removed"},
        {"conditioning: [{name: hot, value: 25}]",
         {"/conditioning/0", "/conditioning/0/value"},
         {"removed", "changed"},
         "/0/value 20 → 25"},
        {"conditioning: [{name: hot, value: 20}, {name: warm, value: 10}]",
         {"/conditioning/0", "/conditioning/1"},
         {"removed", "added"},
         "/1 {"},
        {"conditioning: [{name: warm, value: 11}, {name: x, value: 2}, {name: hot, value: 20}]",
         {"/conditioning/0/value", "/conditioning/1"},
         {"changed", "added"},
         "/0/value 10 → 11, /1 {"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sides s;
        struct audit a = {0};
        char yaml[sizeof sides_yaml + 200];
        const char *at = strstr(sides_yaml, from);
        const cJSON *reason = NULL;
        const cJSON *element = NULL;
        size_t k = 0;

        assert_non_null(at);
        (void) snprintf(yaml, sizeof yaml, "%.*s%s%s", (int) (at - sides_yaml), sides_yaml,
                        cases[i].list, at + strlen(from));
        sides_init(&s);
        definition_fini(&s.current.definition);
        sides_definition(yaml, &s.current.definition);
        sides_audit(&s, &a);
        assert_int_equal(a.verdict, VERDICT_NON_COMPARABLE);
        assert_int_equal(cJSON_GetArraySize(json_get(a.document, "reasons")), 1);
        reason = pointer_get(a.document, "/reasons/0");
        assert_string_equal(json_get(reason, "code")->valuestring, "NC-DEFINITION");
        assert_string_equal(json_get(reason, "field")->valuestring, "/conditioning");
        assert_int_equal(cJSON_GetArraySize(json_get(reason, "baseline")), 2);
        assert_non_null(strstr(json_get(reason, "text")->valuestring, cases[i].text));
        cJSON_ArrayForEach(element, json_get(reason, "elements")) {
            assert_true(k < 3 && cases[i].fields[k]);
            assert_string_equal(json_get(element, "field")->valuestring, cases[i].fields[k]);
            assert_string_equal(json_get(element, "change")->valuestring, cases[i].changes[k]);
            k++;
        }
        assert_true(k == 3 || !cases[i].fields[k]);
        audit_fini(&a);
        sides_fini(&s);
    }
}

/* However long the lists are, the document stays readable and says how much it leaves out. */
static void rule3_long_lists_are_told_in_bounds(void **state)
{
    struct sides s;
    struct audit a = {0};
    cJSON *left = cJSON_CreateArray();
    cJSON *right = cJSON_CreateArray();
    char *text = NULL;

    (void) state;
    for (int i = 0; i < 60000; i++) {
        cJSON_AddItemToArray(left, cJSON_CreateNumber(i));
        if (i % 1000 != 7) /* sixty removed, far apart */
            cJSON_AddItemToArray(right, cJSON_CreateNumber(i));
    }
    sides_init(&s);
    sides_put(s.baseline.report, "/load/steps", left);
    sides_put(s.current.report, "/load/steps", right);
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_NON_COMPARABLE);
    assert_int_equal(cJSON_GetArraySize(json_get(a.document, "reasons")), 1);
    assert_int_equal(cJSON_GetArraySize(pointer_get(a.document, "/reasons/0/elements")), 50);
    assert_int_equal((int) pointer_get(a.document, "/reasons/0/elements_omitted")->valuedouble, 10);
    assert_string_equal(pointer_get(a.document, "/reasons/0/elements/1/field")->valuestring,
                        "/load/steps/1007");
    assert_string_equal(pointer_get(a.document, "/reasons/0/elements/1/change")->valuestring,
                        "removed");
    assert_non_null(pointer_get(a.document, "/reasons/0/baseline/omitted/sha256"));
    text = sides_print(a.document);
    assert_true(strlen(text) < LIMIT_KIB(64));
    free(text);
    audit_fini(&a);
    sides_fini(&s);
}

static void rule5_policy_alone_may_differ(void **state)
{
    struct sides s;
    char *yaml = strdup(sides_yaml);
    char *at = NULL;

    (void) state;
    assert_non_null(yaml);
    at = strstr(yaml, "tolerance_pct: 10");
    assert_non_null(at);
    at[15] = '9';
    sides_init(&s);
    definition_fini(&s.current.definition);
    sides_definition(yaml, &s.current.definition);
    sides_put_text(s.current.report, "/results/rate", "500.0"); /* judged by the reviewed policy */
    sides_expect(&s, VERDICT_REGRESSION, NULL, NULL);
    free(yaml);
}

/* Rule 9: unit and direction. */
static void rule9_unit_and_direction(void **state)
{
    static const struct {
        const char *from;
        const char *to; /* same length */
    } cases[] = {{"unit: 1/s, worse: lower", "unit: k/s, worse: lower"},
                 {"unit: MB/h, worse: higher", "unit: MB/h, worse: lower "}};
    struct sides s;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *yaml = strdup(sides_yaml);
        char *at = NULL;

        assert_non_null(yaml);
        at = strstr(yaml, cases[i].from);
        assert_non_null(at);
        memcpy(at, cases[i].to, strlen(cases[i].to));
        for (int side = 0; side < 2; side++) {
            struct definition *d = NULL;

            sides_init(&s);
            d = side ? &s.current.definition : &s.baseline.definition;
            definition_fini(d);
            sides_definition(yaml, d);
            sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-UNIT", NULL);
        }
        free(yaml);
    }
}

/* One number may be listed for each report by itself: every entry has its unit. */
static void rule9_unit_of_every_entry(void **state)
{
    static const char first[] = "        - {path: /results/rate, label: rate,";
    static const char more[] = "%.*s"
                               "        - {path: /results/cpu, reports: [s/2.json], unit: x, "
                               "worse: higher, tolerance_pct: 5, gated: false}\n"
                               "        - {path: /results/cpu, reports: [s/1.json], unit: '%s', "
                               "worse: higher, tolerance_pct: 5, gated: false}\n%s";
    const char *at = strstr(sides_yaml, first);

    (void) state;
    assert_non_null(at);
    for (int side = 0; side < 3; side++) {
        char *yaml[2] = {NULL, NULL};
        struct sides s;

        for (size_t i = 0; i < 2; i++)
            assert_true(asprintf(&yaml[i], more, (int) (at - sides_yaml), sides_yaml,
                                 i == 0 ? "%" : "cores", at) > 0);
        sides_init_with(&s, yaml[0]);
        if (side < 2) {
            struct definition *d = side ? &s.current.definition : &s.baseline.definition;

            definition_fini(d);
            sides_definition(yaml[1], d);
            sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-UNIT", "/results/cpu");
        } else {
            sides_expect(&s, VERDICT_OK, NULL, NULL);
        }
        free(yaml[0]);
        free(yaml[1]);
    }
}

static void rule9_definition_without_unit_or_direction_is_refused(void **state)
{
    static const char *const cut[] = {"unit: 1/s, worse: lower, tol", "worse: lower, tolerance",
                                      "tolerance_pct: 10, "};
    static const size_t lengths[] = {11, 14, 19};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cut); i++) {
        struct definition_file f = {0};
        struct err e = ERR_INIT;
        char *yaml = strdup(sides_yaml);
        char *at = NULL;

        assert_non_null(yaml);
        at = strstr(yaml, cut[i]);
        assert_non_null(at);
        memmove(at, at + lengths[i], strlen(at + lengths[i]) + 1);
        assert_int_equal(definition_file_parse("f.yaml", yaml, strlen(yaml), &f, &e), -1);
        assert_non_null(strstr(e.text, i == 0 ? "unit" : i == 1 ? "worse" : "tolerance_pct"));
        free(yaml);
    }
}

/* Below such a floor nothing would ever be a regression. */
static void gated_metric_that_can_never_fail_is_refused(void **state)
{
    static const char gated[] = "worse: lower, tolerance_pct: 10, gated: true";
    static const char floored[] = "worse: lower, tolerance_pct: 10, floor: 5000";
    struct definition d = {0};
    struct err e = ERR_INIT;
    char *yaml = strdup(sides_yaml);
    char *at = NULL;

    (void) state;
    assert_non_null(yaml);
    assert_int_equal(sizeof gated, sizeof floored);
    at = strstr(yaml, gated);
    assert_non_null(at);
    memcpy(at, floored, sizeof floored - 1);
    sides_definition(yaml, &d);
    assert_int_equal(audit_check_policy(&d, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.text, "can't have a floor"));
    definition_fini(&d);
    free(yaml);
}

/* A gate that asks for several runs of a side gets no answer from one. */
static void one_run_does_not_answer_for_several(void **state)
{
    static const struct {
        const char *yaml;
        const char *field; /* NULL: nothing is asked for */
    } rows[] = {
        {"    repeats: {candidate: 3}\n", "/repeats/candidate"},
        {"    repeats: {baseline: 2}\n", "/repeats/baseline"},
        {"    repeats: {baseline: 1, candidate: 1}\n", NULL},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sides s;
        char *yaml = NULL;

        assert_true(asprintf(&yaml, "%s%s", sides_yaml, rows[i].yaml) > 0);
        sides_init(&s);
        definition_fini(&s.policy);
        sides_definition(yaml, &s.policy);
        sides_expect(&s, rows[i].field ? VERDICT_NON_COMPARABLE : VERDICT_OK,
                     rows[i].field ? "NC-REPEATS" : NULL, rows[i].field);
        free(yaml);
    }
}

static void windows_must_be_covered(void **state)
{
    static const struct {
        const char *pointer;
        const char *json;
    } cases[] = {
        {"/windows/w/complete", "false"},
        {"/windows/w/complete", "\"true\""},
        {"/windows/w/sample_count", "1"},
        {"/windows/w/sample_count", "2.5"},
        {"/windows/w/sample_count", NULL},
        {"/windows/w/actual_coverage_secs", "0"},
        {"/windows/w/actual_coverage_secs", "\"9\""},
        {"/windows/w", NULL},
        {"/windows/w", "[]"},
        {"/results/growth", NULL},
    };
    struct sides s;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int side = 0; side < 2; side++) {
            sides_init(&s);
            sides_put_text(side ? s.current.report : s.baseline.report, cases[i].pointer,
                           cases[i].json);
            sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-WINDOW-INCOMPLETE", NULL);
        }
    sides_init(&s);
    sides_put_text(s.current.report, "/windows/w/estimator", "\"endpoint-bands\"");
    sides_expect(&s, VERDICT_NON_COMPARABLE, "NC-ESTIMATOR", "/windows/w/estimator");
}

/* A refusal of one report beats a regression of another, whose rows stay listed. */
static void refusal_beats_regression_and_rows_of_others_stay(void **state)
{
    cJSON *manifest =
        sides_json("{\"baseline_id\":\"b-20261129T141502Z\",\"comparison_paths\":[\"s/2.json\"]}");
    struct sides s;
    struct audit a = {0};
    const cJSON *row = NULL;
    int regressed = 0;

    (void) state;
    sides_init(&s);
    s.baseline_manifest = manifest;
    sides_add_report(&s.baseline, "s/2.json");
    sides_put_text(s.current.report, "/results/rate", "1.0");
    sides_add_report(&s.current, "s/2.json");
    sides_put_text(s.current.report, "/windows/w/complete", "false");
    sides_audit(&s, &a);
    assert_int_equal(a.verdict, VERDICT_NON_COMPARABLE);
    cJSON_ArrayForEach(row, json_get(a.document, "comparisons")) {
        assert_string_equal(json_get(row, "path")->valuestring, "s/2.json");
        regressed += strcmp(json_get(row, "verdict")->valuestring, "regression") == 0 ? 1 : 0;
    }
    assert_int_equal(regressed, 1);
    assert_string_equal(pointer_get(a.document, "/paths/0/status")->valuestring, "refused");
    assert_string_equal(pointer_get(a.document, "/paths/1/status")->valuestring, "compared");
    audit_fini(&a);
    sides_fini(&s);
    json_free(manifest);
}

static void reasons_stand_in_registry_order(void **state)
{
    struct sides s;
    struct audit a = {0};
    const cJSON *r = NULL;
    size_t last = 0;

    (void) state;
    sides_init(&s);
    sides_put_text(s.current.manifest, "/class", "\"laptop\"");
    sides_put_text(s.current.manifest, "/mode", "\"cpu\"");
    sides_put(s.current.report, "/results/rate", NULL);
    sides_put(s.current.report, "/scenario", NULL);
    sides_put_text(s.current.report, "/load/rate", "5");
    sides_audit(&s, &a);
    cJSON_ArrayForEach(r, json_get(a.document, "reasons")) {
        const struct reason_info *info = reason_find(json_get(r, "code")->valuestring);

        assert_non_null(info);
        assert_true((size_t) (info - reasons_table) >= last);
        last = (size_t) (info - reasons_table);
    }
    /* An absent value is a missing key, not null. */
    cJSON_ArrayForEach(r, json_get(a.document, "reasons")) {
        const cJSON *field = json_get(r, "field");

        if (cJSON_IsString(field) && strcmp(field->valuestring, "/scenario") == 0)
            assert_true(json_get(r, "baseline") && !json_get(r, "current"));
    }
    audit_fini(&a);
    sides_fini(&s);
}

/* The order of files and of members changes nothing. */
static void order_of_files_and_members_does_not_matter(void **state)
{
    static const char *const shuffled =
        "{\"windows\":{\"w\":{\"estimator\":\"theil-sen\",\"actual_coverage_secs\":30.5,\"sample_"
        "count\":90,\"complete\":"
        "true}},\"latency\":{\"put\":{\"p99\":3000000},\"get\":{\"p99\":2000000}},"
        "\"results\":{\"serial\":2,\"cpu\":50.0,\"growth\":9.3,\"rate\":1000.0},"
        "\"environment\":{\"alloc\":\"mi\",\"cc\":\"gcc "
        "12\"},\"load\":{\"steps\":[10,20],\"rate\":100},\"note\":\"n\","
        "\"scenario\":\"s\"}";
    struct sides one, two;
    struct audit a = {0}, b = {0};
    cJSON *differs = NULL;
    struct err e = ERR_INIT;

    (void) state;
    sides_init(&one);
    one.legacy = true;
    sides_add_file(&one.current, "a.json", "{}");
    sides_add_file(&one.current, "z.json", "{}");
    sides_audit(&one, &a);
    sides_init(&two);
    two.legacy = true;
    sides_add_file(&two.current, "z.json", "{}");
    sides_add_file(&two.current, SIDES_REPORT, shuffled);
    sides_add_file(&two.current, "a.json", "{}");
    sides_audit(&two, &b);
    assert_int_equal(audit_compare_documents(a.document, b.document, &differs, &e), 0);
    assert_null(differs);
    assert_true(json_equal(a.document, b.document));
    audit_fini(&a);
    audit_fini(&b);
    sides_fini(&one);
    sides_fini(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ok_when_everything_is_the_same_experiment),
        cmocka_unit_test(ok_lists_what_was_compared),
        cmocka_unit_test(regression_beyond_the_tolerance_only),
        cmocka_unit_test(rule1_metric_missing_null_or_not_a_number),
        cmocka_unit_test(rule1_only_gated_metrics_must_be_there),
        cmocka_unit_test(rule1_pattern_expands_over_the_baseline),
        cmocka_unit_test(rule1_entries_for_reports_that_are_not_compared),
        cmocka_unit_test(rule3_pattern_asks_every_member),
        cmocka_unit_test(rule1_report_missing_on_a_side),
        cmocka_unit_test(rule1_comparison_paths_of_a_reviewed_baseline_are_required),
        cmocka_unit_test(rule1_zero_comparisons_is_a_refusal),
        cmocka_unit_test(rule1_zero_comparisons_of_one_report_is_a_refusal),
        cmocka_unit_test(rule1_unreadable_report_is_invalid),
        cmocka_unit_test(rule1_no_baseline_is_a_refusal),
        cmocka_unit_test(rule2_same_evidence),
        cmocka_unit_test(rule2_same_binary_is_shown_not_refused),
        cmocka_unit_test(rule2_same_binary_is_noise_only_with_the_same_source),
        cmocka_unit_test(rule3_both_may_lack_needs_a_legacy_baseline_and_absence_on_both),
        cmocka_unit_test(rule3_malformed_identity_on_both_sides_is_not_equal),
        cmocka_unit_test(rule3_a_pattern_that_finds_nothing_is_unknown),
        cmocka_unit_test(rule3_a_report_without_any_identity_is_refused),
        cmocka_unit_test(rule3_numbers_that_no_double_tells_apart_are_not_equal),
        cmocka_unit_test(rule3_estimators_are_known_and_equal),
        cmocka_unit_test(rule3_a_side_without_manifest_is_unknown),
        cmocka_unit_test(rule3_element_wise_difference_is_told),
        cmocka_unit_test(rule4_conditioning_is_identity),
        cmocka_unit_test(rule5_another_class_gate_mode_or_source),
        cmocka_unit_test(rule5_another_definition_names_its_keys),
        cmocka_unit_test(rule5_another_digest_is_another_definition),
        cmocka_unit_test(rule5_bare_trees_of_two_classes),
        cmocka_unit_test(rule5_a_list_of_another_definition_is_one_reason),
        cmocka_unit_test(rule3_long_lists_are_told_in_bounds),
        cmocka_unit_test(rule5_policy_alone_may_differ),
        cmocka_unit_test(rule9_unit_and_direction),
        cmocka_unit_test(rule9_unit_of_every_entry),
        cmocka_unit_test(rule9_definition_without_unit_or_direction_is_refused),
        cmocka_unit_test(gated_metric_that_can_never_fail_is_refused),
        cmocka_unit_test(one_run_does_not_answer_for_several),
        cmocka_unit_test(windows_must_be_covered),
        cmocka_unit_test(refusal_beats_regression_and_rows_of_others_stay),
        cmocka_unit_test(reasons_stand_in_registry_order),
        cmocka_unit_test(order_of_files_and_members_does_not_matter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
