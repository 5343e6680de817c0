/* The seed's SOK rows and the edges of the active-tail rule. */
#include "tests/lib/cases.h"
#include "tests/lib/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "experiment/acceptance.h"
#include "experiment/definition.h"
#include "experiment/soak.h"
#include "experiment/stats.h"

enum { MAX = 400 };

struct series {
    double t[MAX];
    double v[MAX];
    struct samples s;
};

static double linear(double t, double rate)
{
    return 500 + rate * t / 3600;
}

static double value_of(const char *what, double t)
{
    if (strcmp(what, "500 + 15.01*t/3600") == 0)
        return linear(t, 15.01);
    if (strcmp(what, "500 + 14.99*t/3600") == 0)
        return linear(t, 14.99);
    if (strcmp(what, "step +5 MB at t=300") == 0)
        return t < 300 ? 500 : 505;
    if (strcmp(what, "step +5 MB at t=600 (middle)") == 0)
        return t < 600 ? 500 : 505;
    if (strcmp(what, "step +35 MB at t=1150") == 0)
        return t < 1150 ? 500 : 535;
    if (strcmp(what, "sawtooth 8 MB / 200 s") == 0)
        return 500 + 8 * fmod(t, 200) / 200;
    if (strcmp(what, "sawtooth 8 MB / 200 s plus 3 MB/h") == 0)
        return linear(t, 3) + 8 * fmod(t, 200) / 200;
    fail_msg("no series '%s'", what);
    return 0;
}

static void fill(struct series *x, const char *what, size_t n, double step)
{
    for (size_t i = 0; i < n; i++) {
        x->t[i] = (double) i * step;
        x->v[i] = value_of(what, x->t[i]);
    }
    x->s = (struct samples){.t_secs = x->t, .value = x->v, .n = n};
}

#define YAML                                                                                       \
    "version: 1\ngates:\n  soak:\n    class: c\n"                                                  \
    "    build: {command: [make], executable: {from: path, path: app}}\n"                          \
    "    run: {command: ['{executable}'], report: soak/1.json}\n"                                  \
    "    identity: [{path: /load, require: required}]\n"                                           \
    "    audit: {paths: {required: [soak/1.json]}, metrics: [{path: /r, unit: x, worse: lower, "   \
    "tolerance_pct: 5, gated: true}]}\n"                                                           \
    "    accept: {exact: [{path: /ok, equals: true}]}\n"                                           \
    "    soak: {window: 1200s, min_coverage: 1190s, min_samples: 230, limit_mb_per_hour: 15, "     \
    "active_secs: /active, "                                                                       \
    "samples: {path: /samples, t: t, value: mb}, reported: /growth}\n"

static void load_definition(struct definition_file *f)
{
    struct err e = ERR_INIT;

    if (definition_file_parse("cleanrun.yaml", YAML, sizeof YAML - 1, f, &e) < 0)
        fail_msg("%s", e.text);
}

/* The seed's rule from its facts; the definition above must say the same. */
static struct soak_rule load_rule(void)
{
    cJSON *facts = cases_read_json("tests/data/rvoip/definition-canonical-2k.json");
    const cJSON *soak = json_get(facts, "soak");
    AUTO_DEFINITION_FILE struct definition_file f = {0};
    struct soak_rule rule;

    load_definition(&f);
    soak_rule_from(json_get(f.gates[0].policy, "soak"), &rule);
    assert_close(rule.window_secs, json_get(soak, "window_secs")->valuedouble, 0);
    assert_close(rule.min_coverage_secs, json_get(soak, "min_coverage_secs")->valuedouble, 0);
    assert_close((double) rule.min_samples, json_get(soak, "min_samples")->valuedouble, 0);
    assert_close(rule.limit_mb_per_hour, json_get(soak, "limit_mb_per_hr")->valuedouble, 0);
    cJSON_Delete(facts);
    return rule;
}

static struct soak evaluate(const struct samples *s, double active, const struct soak_rule *rule)
{
    struct soak r;
    struct err e = ERR_INIT;

    assert_int_equal(soak_evaluate(s, active, rule, &r, &e), 0);
    return r;
}

static void tails_of_the_vectors_pass_or_fail_as_published(void **state)
{
    cJSON *vectors = cases_read_json("tests/data/rvoip/vectors.json");
    struct soak_rule rule = load_rule();
    const cJSON *row = NULL;
    size_t rows = 0;

    (void) state;
    cJSON_ArrayForEach(row, json_get(vectors, "soak_tail")) {
        const char *what = json_get(row, "desc")->valuestring;
        struct series x;
        struct soak r;

        fill(&x, what, 241, 5);
        r = evaluate(&x.s, 1200, &rule);
        assert_int_equal(r.window, SOAK_ACTIVE_TAIL);
        assert_true(r.complete);
        if (!stats_close(r.theil_sen_per_hour, json_get(row, "theil_sen_mb_per_hr")->valuedouble,
                         1e-9, 1e-9) ||
            !stats_close(r.endpoint.rate_per_hour, json_get(row, "endpoint_mb_per_hr")->valuedouble,
                         1e-9, 1e-9))
            fail_msg("%s: %.17g, %.17g", what, r.theil_sen_per_hour, r.endpoint.rate_per_hour);
        if (r.passes != cJSON_IsTrue(json_get(row, "passes_15")))
            fail_msg("%s: passes %d", what, r.passes);
        rows++;
    }
    assert_int_equal(rows, 7);
    cJSON_Delete(vectors);
}

static const char *series_of(const char *situation)
{
    const char *colon = strchr(situation, ':');

    return colon ? colon + 2 : NULL;
}

static void every_row_is_answered_as_the_seed_does(void **state)
{
    cJSON *rows = cases_load();
    struct soak_rule rule = load_rule();
    const cJSON *row = NULL;
    size_t replayed = 0;

    (void) state;
    cJSON_ArrayForEach(row, rows) {
        const char *id = json_get(row, "id")->valuestring;
        const cJSON *expect = json_get(row, "expect");
        const char *what = series_of(json_get(row, "situation")->valuestring);
        char name[SOAK_NAME_SIZE];
        struct series x;
        struct soak r;

        if (strcmp(json_get(row, "area")->valuestring, "soak-rss") != 0)
            continue;
        if (what) {
            fill(&x, what, 241, 5);
            r = evaluate(&x.s, 1200, &rule);
            assert_true(r.complete);
            if (!stats_close(r.theil_sen_per_hour,
                             json_get(expect, "theil_sen_mb_per_hr")->valuedouble, 1e-9, 1e-9) ||
                r.passes != cJSON_IsTrue(json_get(expect, "passes_15")))
                fail_msg("%s: %.17g, passes %d", id, r.theil_sen_per_hour, r.passes);
        } else if (strcmp(id, "SOK-08") == 0) {
            fill(&x, "500 + 14.99*t/3600", 229, 1200.0 / 228);
            r = evaluate(&x.s, 1200, &rule);
            soak_window_name(r.window, &rule, name);
            assert_string_equal(name, json_get(expect, "window")->valuestring);
            assert_int_equal(r.complete, cJSON_IsTrue(json_get(expect, "complete")));
            assert_false(r.passes);
        } else if (strcmp(id, "SOK-10") == 0) {
            fill(&x, "500 + 14.99*t/3600", 241, 5);
            r = evaluate(&x.s, 1199, &rule);
            assert_int_equal(r.window, SOAK_TAIL);
            assert_false(r.complete);
            assert_false(r.passes);
            r = evaluate(&x.s, 600, &rule);
            assert_int_equal(r.window, SOAK_POST_DRAIN);
            assert_true(r.has_growth);
            assert_false(r.passes);
        } else {
            fail_msg("%s is not replayed", id);
        }
        replayed++;
    }
    assert_int_equal(replayed, 6);
    cJSON_Delete(rows);
}

static void edges_of_coverage_and_count(void **state)
{
    struct soak_rule rule = load_rule();
    struct series x;
    struct soak r;

    (void) state;
    fill(&x, "500 + 14.99*t/3600", 230, 1200.0 / 229);
    assert_true(evaluate(&x.s, 1200, &rule).complete);
    fill(&x, "500 + 14.99*t/3600", 239, 5); /* last sample at 1190 s */
    assert_true(evaluate(&x.s, 1200, &rule).complete);
    x.t[238] = 1189.9;
    assert_false(evaluate(&x.s, 1200, &rule).complete);
    fill(&x, "500 + 14.99*t/3600", 241, 5);
    x.t[7] = x.t[6];
    r = evaluate(&x.s, 1200, &rule);
    assert_false(r.complete);
    assert_false(r.passes);
    x.s.n = 0;
    r = evaluate(&x.s, 1200, &rule);
    assert_false(r.passes);
}

/* A report with the series' samples, its active phase and its own figure. */
static enum acceptance_verdict judge(const char *what, size_t n, double active, double reported,
                                     char *out_error, size_t size)
{
    AUTO_DEFINITION_FILE struct definition_file f = {0};
    AUTO_ACCEPTANCE struct acceptance a = {0};
    AUTO_JSON cJSON *report = cJSON_CreateObject();
    cJSON *samples = cJSON_CreateArray();
    struct acceptance_input in = {.report = report, .report_path = "soak/1.json"};
    const cJSON *check = NULL;
    struct err e = ERR_INIT;

    load_definition(&f);
    in.definition = &f.gates[0];
    for (size_t i = 0; i < n; i++) {
        cJSON *sample = cJSON_CreateObject();

        assert_non_null(cJSON_AddNumberToObject(sample, "t", (double) i * 5));
        assert_non_null(cJSON_AddNumberToObject(sample, "mb", value_of(what, (double) i * 5)));
        assert_true(cJSON_AddItemToArray(samples, sample));
    }
    assert_true(cJSON_AddItemToObject(report, "samples", samples));
    assert_non_null(cJSON_AddTrueToObject(report, "ok"));
    assert_non_null(cJSON_AddNumberToObject(report, "active", active));
    assert_non_null(cJSON_AddNumberToObject(report, "growth", reported));
    if (acceptance_evaluate(&in, &a, &e) < 0)
        fail_msg("%s", e.text);
    check = cJSON_GetArrayItem(json_get(a.document, "checks"), 1);
    assert_string_equal(json_get(check, "name")->valuestring, "soak");
    (void) snprintf(out_error, size, "%s",
                    cJSON_IsString(json_get(check, "error")) ? json_get(check, "error")->valuestring
                                                             : "");
    return a.verdict;
}

static void acceptance_applies_the_rule(void **state)
{
    static const char just_under[] = "500 + 14.99*t/3600";
    char error[256];

    (void) state;
    assert_int_equal(judge(just_under, 241, 1200, 14.99, error, sizeof error), ACCEPTANCE_PASS);
    assert_string_equal(error, "");
    assert_int_equal(judge("500 + 15.01*t/3600", 241, 1200, 15.01, error, sizeof error),
                     ACCEPTANCE_FAIL);
    assert_int_equal(judge(just_under, 241, 1200, 14.9, error, sizeof error), ACCEPTANCE_FAIL);
    assert_non_null(strstr(error, "/growth is not what the samples give"));
    assert_int_equal(judge(just_under, 229, 1200, 14.99, error, sizeof error), ACCEPTANCE_FAIL);
    assert_non_null(strstr(error, "active_tail_1200s_incomplete"));
    assert_int_equal(judge(just_under, 241, 1199, 14.99, error, sizeof error), ACCEPTANCE_FAIL);
    assert_non_null(strstr(error, "only tail"));
    assert_int_equal(judge(just_under, 0, 1200, 14.99, error, sizeof error), ACCEPTANCE_FAIL);
    assert_non_null(strstr(error, "no raw samples"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tails_of_the_vectors_pass_or_fail_as_published),
        cmocka_unit_test(every_row_is_answered_as_the_seed_does),
        cmocka_unit_test(edges_of_coverage_and_count),
        cmocka_unit_test(acceptance_applies_the_rule),
    };

    return cmocka_run_group_tests_name("soak", tests, NULL, NULL);
}
