/* accept.recompute: each summary that a report states is computed again from its own samples, and
 * one that is not what they give fails by its name. */
#include "tests/lib/must.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "experiment/acceptance.h"
#include "experiment/definition.h"
#include "experiment/pointer.h"

#define SAMPLES                                                                                    \
    21 /* one a second; 100 MB and 2 MB more each; 10 % of a processor, but the first              \
        */

static const char rules[] =
    "{samples: {path: /samples, t: t, value: mb, cpu: cpu%s}, "
    "endpoint: {fraction: 2, cap: 2s, %s}, "
    "totals: [{path: /totals/count, is: sample-count}, {path: /totals/every, is: interval}, "
    "{path: /totals/first, is: first}, {path: /totals/peak, is: peak}, "
    "{path: /totals/cpu, is: mean-cpu}, {path: /totals/minute, is: growth-per-minute}, "
    "{path: /totals/hour, is: growth-per-hour}], "
    "tail: {requested: /tail/requested, fields: [{path: /tail/coverage, is: coverage}, "
    "{path: /tail/count, is: sample-count}, {path: /tail/complete, is: complete}, "
    "{path: /tail/minute, is: growth-per-minute}]}, "
    "windows: [{requested_start: /w/from, requested_end: /w/to, requested_coverage: /w/wanted, "
    "%s"
    "fields: [{path: /w/first, is: first-sample}, {path: /w/last, is: last-sample}, "
    "{path: /w/coverage, is: coverage}, {path: /w/count, is: sample-count}, "
    "{path: /w/tolerance, is: boundary-tolerance}, {path: /w/complete, is: complete}, "
    "{path: /w/minute, is: growth-per-minute}, {path: /w/hour, is: growth-per-hour}, "
    "{path: /w/start_median, is: start-median}, {path: /w/end_median, is: end-median}, "
    "{path: /w/retained, is: retained}, {path: /w/start_time, is: start-time}, "
    "{path: /w/end_time, is: end-time}, {path: /w/separation, is: separation}, "
    "{path: /w/band, is: band}, {path: /w/start_count, is: start-sample-count}, "
    "{path: /w/end_count, is: end-sample-count}, "
    "{path: /w/endpoint, is: endpoint-growth-per-hour}, "
    "{path: /w/theil_sen, is: theil-sen-per-hour}]}]%s}";

static const char summaries[] =
    "{\"totals\":{\"count\":21,\"every\":1,\"first\":100,\"peak\":140,\"cpu\":10,\"minute\":120,"
    "\"hour\":7200},"
    "\"tail\":{\"requested\":10,\"coverage\":10,\"count\":11,\"complete\":true,\"minute\":120},"
    "\"w\":{\"from\":5,\"to\":15,\"wanted\":10,\"first\":5,\"last\":15,\"coverage\":10,\"count\":"
    "11,"
    "\"tolerance\":1.5,\"complete\":true,\"minute\":120,\"hour\":7200,\"start_median\":112,"
    "\"end_median\":128,\"retained\":16,\"start_time\":6,\"end_time\":14,\"separation\":8,"
    "\"band\":2,\"start_count\":3,\"end_count\":3,\"endpoint\":7200,\"theil_sen\":7200,\"x\":0}}";

struct fixture {
    struct definition_file f;
    cJSON *report;
};

static cJSON *json(const char *text)
{
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    if (json_parse(text, strlen(text), NULL, &j, &e) < 0)
        fail_msg("%s in %s", e.text, text);
    return j;
}

static void start_rules(struct fixture *x, const char *accept)
{
    AUTO_FREE char *yaml = NULL;
    struct err e = ERR_INIT;
    cJSON *list = NULL;

    *x = (struct fixture){.report = json(summaries)};
    assert_true(asprintf(&yaml,
                         "version: 1\nproject: o/r\ngates:\n  g:\n    class: box\n"
                         "    build: {command: [make], executable: {from: path, path: app}}\n"
                         "    run: {command: ['{executable}'], report: r.json}\n"
                         "    identity: [{path: /w, require: required}]\n"
                         "    accept: {recompute: %s}\n"
                         "    audit: {paths: {required: [r.json]}, metrics: [{path: /totals/peak, "
                         "unit: MB, worse: higher, tolerance_pct: 1}]}\n",
                         accept) > 0);
    if (definition_file_parse("cleanrun.yaml", yaml, strlen(yaml), &x->f, &e) < 0)
        fail_msg("%s", e.text);
    list = cJSON_AddArrayToObject(x->report, "samples");
    for (int i = 0; i < SAMPLES; i++) {
        cJSON *row = cJSON_CreateObject();

        assert_non_null(cJSON_AddNumberToObject(row, "t", i));
        assert_non_null(cJSON_AddNumberToObject(row, "mb", 100 + 2 * i));
        assert_non_null(cJSON_AddNumberToObject(row, "cpu", i == 0 ? 300 : 10));
        assert_true(cJSON_AddItemToArray(list, row));
    }
}

/* Keys of the samples, of the endpoint, of the window and of the whole. */
static void start_with(struct fixture *x, const char *samples, const char *endpoint,
                       const char *window, const char *end)
{
    AUTO_FREE char *accept = NULL;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    assert_true(asprintf(&accept, rules, samples, endpoint, window, end) > 0);
#pragma GCC diagnostic pop
    start_rules(x, accept);
}

/* Only this field of the window. */
static void start_field(struct fixture *x, const char *endpoint, const char *field)
{
    AUTO_FREE char *accept = NULL;

    assert_true(asprintf(&accept,
                         "{samples: {path: /samples, t: t, value: mb}, endpoint: {fraction: 2, "
                         "cap: 2s, %s}, windows: [{requested_start: /w/from, requested_end: "
                         "/w/to, fields: [%s]}]}",
                         endpoint, field) > 0);
    start_rules(x, accept);
}

static void start(struct fixture *x, const char *window, const char *end)
{
    start_with(x, "", "min_samples: 5, min_band_samples: 2", window, end);
}

static void stop(struct fixture *x)
{
    json_free(x->report);
    definition_file_fini(&x->f);
}

/* Replaces what the pointer names. */
static void put(struct fixture *x, const char *pointer, const char *text)
{
    cJSON *old = (cJSON *) (uintptr_t) pointer_get(x->report, pointer);
    AUTO_FREE char *parent = strndup(pointer, (size_t) (strrchr(pointer, '/') - pointer));
    cJSON *holder = NULL;

    assert_non_null(old);
    assert_non_null(parent);
    holder = (cJSON *) (uintptr_t) pointer_get(x->report, parent);
    if (text)
        assert_true(
            cJSON_ReplaceItemInObjectCaseSensitive(holder, strrchr(pointer, '/') + 1, json(text)));
    else
        cJSON_Delete(cJSON_DetachItemViaPointer(holder, old));
}

/* The only check passes (error NULL), or fails with this in its error. */
static void expect(const struct fixture *x, const char *what, const char *error)
{
    const struct acceptance_input in = {
        .definition = &x->f.gates[0], .report = x->report, .report_path = "r.json"};
    AUTO_ACCEPTANCE struct acceptance a = {.document = NULL};
    const char *said = NULL;

    MUST(acceptance_evaluate(&in, &a, E));
    said = cJSON_GetStringValue(pointer_get(a.document, "/checks/0/error"));
    if (!error && a.verdict != ACCEPTANCE_PASS)
        fail_msg("%s: %s", what, said ? said : "no error");
    if (error && (a.verdict != ACCEPTANCE_FAIL || !said || !strstr(said, error)))
        fail_msg("%s: '%s', wanted '%s'", what, said ? said : "passes", error);
}

static void each_summary_is_what_the_samples_give(void **state)
{
    static const struct {
        const char *pointer, *other;
    } rows[] = {
        {"/totals/count", "20"},     {"/totals/count", "21.5"},   {"/totals/count", "\"21\""},
        {"/totals/every", "1.1"},    {"/totals/first", "101"},    {"/totals/peak", "138"},
        {"/totals/cpu", "9.9"},      {"/totals/minute", "121"},   {"/totals/hour", "7201"},
        {"/totals/hour", "120"},     {"/tail/coverage", "9"},     {"/tail/count", "10"},
        {"/tail/complete", "false"}, {"/tail/complete", "1"},     {"/tail/minute", "119"},
        {"/w/first", "6"},           {"/w/last", "14"},           {"/w/coverage", "9"},
        {"/w/count", "10"},          {"/w/tolerance", "1"},       {"/w/complete", "false"},
        {"/w/minute", "7200"},       {"/w/hour", "120"},          {"/w/start_median", "111"},
        {"/w/end_median", "127"},    {"/w/retained", "15"},       {"/w/start_time", "5"},
        {"/w/end_time", "15"},       {"/w/separation", "10"},     {"/w/band", "1"},
        {"/w/start_count", "2"},     {"/w/end_count", "4"},       {"/w/endpoint", "7199"},
        {"/w/theil_sen", "7199"},    {"/w/theil_sen", "\"7200\""}};
    struct fixture x;

    (void) state;
    start(&x, "", "");
    expect(&x, "as computed", NULL);
    stop(&x);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char error[96];

        start(&x, "", "");
        put(&x, rows[i].pointer, rows[i].other);
        (void) snprintf(error, sizeof error, "%s is ", rows[i].pointer);
        expect(&x, rows[i].other, error);
        put(&x, rows[i].pointer, NULL);
        (void) snprintf(error, sizeof error, "%s is absent", rows[i].pointer);
        expect(&x, "absent", error);
        stop(&x);
    }
}

/* Within the tolerances, which are narrow unless the definition says otherwise. */
static void numbers_agree_within_the_tolerances(void **state)
{
    static const struct {
        const char *end, *hour;
        bool passes;
    } rows[] = {
        {"", "7200.000001", true},
        {"", "7200.001", false},
        {", rel_tolerance: 0.01", "7250", true},
        {", rel_tolerance: 0.01", "7300", false},
        {", abs_tolerance: 20", "7219", true},
        {", abs_tolerance: 20", "7221", false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture x;

        start(&x, "", rows[i].end);
        put(&x, "/totals/hour", rows[i].hour);
        expect(&x, rows[i].hour, rows[i].passes ? NULL : "/totals/hour is ");
        stop(&x);
    }
}

static void what_was_asked_for_must_be_there(void **state)
{
    static const struct {
        const char *pointer, *value, *error;
    } rows[] = {
        {"/tail/requested", NULL, "/tail/requested is absent"},
        {"/tail/requested", "\"10\"", "/tail/requested is not a number"},
        {"/w/from", NULL, "/w/from is absent"},
        {"/w/to", "\"15\"", "/w/to is not a number"},
        {"/w/wanted", NULL, "/w/wanted is absent"},
        {"/w/wanted", "true", "/w/wanted is not a number"},
        {"/samples/3/t", "2", "not strictly rising"},
        {"/samples/3/t", "\"3\"", "/samples: "},
        {"/samples/3/mb", NULL, "/samples: "},
        {"/samples", "[]", "/samples: "},
        {"/samples", NULL, "/samples: "},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture x;

        start(&x, "", "");
        put(&x, rows[i].pointer, rows[i].value);
        expect(&x, rows[i].pointer, rows[i].error);
        stop(&x);
    }
}

/* From the requested start to its end it is what was wanted, less or more what is allowed. */
static void a_window_spans_what_was_wanted(void **state)
{
    static const struct {
        const char *window, *wanted;
        bool passes;
    } rows[] = {
        {"", "10.0005", true},
        {"", "10.5", false},
        {"", "9.9995", false},
        {"span_under: 500ms, ", "10.4", true},
        {"span_under: 500ms, ", "10.6", false},
        {"span_under: 500ms, ", "9.9", false},
        {"span_over: 250ms, ", "9.8", true},
        {"span_over: 250ms, ", "9.7", false},
        {"span_over: 250ms, ", "10.1", false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture x;

        start(&x, rows[i].window, "");
        put(&x, "/w/wanted", rows[i].wanted);
        expect(&x, rows[i].wanted, rows[i].passes ? NULL : "/w/from to /w/to spans 10 s");
        stop(&x);
    }
}

/* A window that lies where no samples are has no numbers, whatever the report says. */
static void a_window_without_samples_fails(void **state)
{
    struct fixture x;

    (void) state;
    start(&x, "", "");
    put(&x, "/w/from", "105");
    put(&x, "/w/to", "115");
    expect(&x, "beyond the samples", "/w/from");
    stop(&x);
}

/* A truth is a truth: nothing, or a zero, does not say that a tail is incomplete. */
static void an_incomplete_tail_is_said_to_be_one(void **state)
{
    static const char *const others[] = {"true", "null", "0", NULL};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct fixture x;

        start(&x, "", "");
        put(&x, "/tail/requested", "30");
        put(&x, "/tail/coverage", "20");
        put(&x, "/tail/count", "21");
        put(&x, "/tail/complete", "false");
        expect(&x, "more than there is", NULL);
        put(&x, "/tail/complete", others[i]);
        expect(&x, "not false", "/tail/complete is ");
        stop(&x);
    }
}

/* Too few samples for the bands: no number stands for what they would have given. */
static void bands_need_the_samples_that_the_definition_asks_for(void **state)
{
    static const struct {
        const char *endpoint, *field, *pointer, *value, *error;
    } rows[] = {
        {"min_samples: 11, min_band_samples: 3", "start-median", "/w/x", "112", NULL},
        {"min_samples: 12, min_band_samples: 3", "start-median", "/w/x", "112", "/w/x cannot be"},
        {"min_samples: 11, min_band_samples: 4", "start-median", "/w/x", "112", "/w/x cannot be"},
        {"min_samples: 12, min_band_samples: 3", "start-sample-count", "/w/x", "0",
         "/w/x cannot be"},
        {"min_samples: 12, min_band_samples: 3", "end-sample-count", "/w/x", "0", "/w/x cannot be"},
        {"min_samples: 5, min_band_samples: 2", "end-sample-count", "/samples/14", NULL,
         "/w/x is 3, the samples give 2"},
        {"min_samples: 5, min_band_samples: 2", "start-sample-count", "/samples/14", NULL, NULL},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *field = NULL;
        struct fixture x;

        assert_true(asprintf(&field, "{path: /w/x, is: %s}", rows[i].field) > 0);
        start_field(&x, rows[i].endpoint, field);
        put(&x, "/w/x", "3");
        put(&x, rows[i].pointer, rows[i].value);
        expect(&x, rows[i].endpoint, rows[i].error);
        stop(&x);
    }
}

/* One sample far off moves the least squares and not the median of the slopes. */
static void theil_sen_is_not_least_squares(void **state)
{
    static const struct {
        const char *field;
        bool moves;
    } rows[] = {{"{path: /w/theil_sen, is: theil-sen-per-hour}", false},
                {"{path: /w/hour, is: growth-per-hour}", true}};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture x;

        start_field(&x, "min_samples: 5", rows[i].field);
        put(&x, "/samples/8/mb", "125");
        expect(&x, rows[i].field, rows[i].moves ? "/w/hour is 7200, the samples give" : NULL);
        stop(&x);
    }
}

static void processor_numbers_may_be_binary32(void **state)
{
    static const char *const types[] = {"", ", cpu_type: binary64", ", cpu_type: binary32"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct fixture x;

        start_with(&x, types[i], "min_samples: 5, min_band_samples: 2", "", "");
        for (int k = 0; k < SAMPLES; k++) {
            char pointer[32];

            (void) snprintf(pointer, sizeof pointer, "/samples/%d/cpu", k);
            put(&x, pointer, "10.1");
        }
        put(&x, "/totals/cpu", "10.100000381469727");
        expect(&x, types[i], i == 2 ? NULL : "/totals/cpu is ");
        stop(&x);
    }
}

static void the_boundary_factor_is_the_definitions(void **state)
{
    static const char yaml_end[] = ", boundary_factor: 2";
    struct fixture x;

    (void) state;
    start(&x, "", yaml_end);
    expect(&x, "another factor", "/w/tolerance is 1.5, the samples give 2");
    put(&x, "/w/tolerance", "2");
    expect(&x, "another factor, as stated", NULL);
    stop(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_summary_is_what_the_samples_give),
        cmocka_unit_test(numbers_agree_within_the_tolerances),
        cmocka_unit_test(what_was_asked_for_must_be_there),
        cmocka_unit_test(a_window_spans_what_was_wanted),
        cmocka_unit_test(a_window_without_samples_fails),
        cmocka_unit_test(an_incomplete_tail_is_said_to_be_one),
        cmocka_unit_test(bands_need_the_samples_that_the_definition_asks_for),
        cmocka_unit_test(theil_sen_is_not_least_squares),
        cmocka_unit_test(processor_numbers_may_be_binary32),
        cmocka_unit_test(the_boundary_factor_is_the_definitions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
