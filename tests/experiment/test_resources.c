#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "experiment/acceptance.h"
#include "experiment/pointer.h"
#include "experiment/resources.h"

#define YAML(windows)                                                                              \
    "version: 1\ngates:\n  g:\n    class: c\n"                                                     \
    "    build: {command: [make], executable: {from: path, path: app}}\n"                          \
    "    run: {command: ['{executable}'], report: s/1.json}\n"                                     \
    "    sampling: {interval: 1s, into: /resources, embed: true}\n"                                \
    "    windows:\n" windows "    identity: [{path: /load, require: required}]\n"                  \
    "    accept: {exact: [{path: /ok, equals: true}]}\n"                                           \
    "    audit: {paths: {required: [s/1.json]}, metrics: [{path: /r, unit: x, worse: lower, "      \
    "tolerance_pct: 5, gated: true}]}\n"

static const char yaml[] =
    YAML("      steady: {start_phase: a, end_phase: b, estimator: endpoint-bands}\n"
         "      all: {start_phase: a, end_phase: c, estimator: theil-sen, min_coverage: 100s}\n"
         "      line: {start_phase: a, end_phase: b, estimator: least-squares, min_samples: 200}\n"
         "      never: {start_phase: a, end_phase: nowhere, estimator: theil-sen}\n");

static const char markers_text[] = "[{\"phase\":\"a\",\"kind\":\"actual\",\"elapsed_ms\":10000},"
                                   "{\"phase\":\"b\",\"kind\":\"planned\",\"elapsed_ms\":1},"
                                   "{\"phase\":\"b\",\"kind\":\"actual\",\"elapsed_ms\":70000},"
                                   "{\"phase\":\"c\",\"kind\":\"actual\",\"elapsed_ms\":110000}]";

struct fixture {
    struct definition_file file;
    char *csv;
    size_t csv_len;
    cJSON *markers;
    cJSON *section;
};

static char *make_csv(void)
{
    struct buf b;

    buf_init(&b, LIMIT_MIB(1));
    buf_puts(&b, "t_ms,rss_kib,cpu_pct,threads\n");
    for (int i = 0; i <= 120; i++)
        buf_printf(&b, "%d,%d,%s,3\n", i * 1000, 102400 + i * 1024, i == 0 ? "" : "50.5");
    return buf_take(&b, NULL);
}

static void derive(struct fixture *f)
{
    AUTO_SAMPLES struct samples s = {0};
    struct err e = ERR_INIT;

    json_free(f->section);
    f->section = NULL;
    assert_int_equal(samples_parse_csv(f->csv, f->csv_len, &s, &e), 0);
    if (resources_derive(&f->file.gates[0], &s, f->markers, &f->section, &e) < 0)
        fail_msg("%s", e.text);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct err e = ERR_INIT;

    assert_non_null(f);
    if (definition_file_parse("f.yaml", yaml, sizeof yaml - 1, &f->file, &e) < 0 ||
        json_parse(markers_text, sizeof markers_text - 1, NULL, &f->markers, &e) < 0)
        fail_msg("%s", e.text);
    f->csv = make_csv();
    f->csv_len = strlen(f->csv);
    derive(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    definition_file_fini(&f->file);
    free(f->csv);
    json_free(f->markers);
    json_free(f->section);
    free(f);
    return 0;
}

static double number(const struct fixture *f, const char *pointer)
{
    const cJSON *j = pointer_get(f->section, pointer);

    if (!cJSON_IsNumber(j))
        fail_msg("%s is no number", pointer);
    return j->valuedouble;
}

static void section_has_totals_and_windows(void **state)
{
    const struct fixture *f = *state;

    assert_string_equal(pointer_get(f->section, "/source")->valuestring, "cleanrun-runner");
    assert_close(number(f, "/sample_count"), 121, 0);
    assert_close(number(f, "/sample_interval_ms"), 1000, 0);
    assert_close(number(f, "/baseline_rss_mb"), 100, 0);
    assert_close(number(f, "/peak_rss_mb"), 220, 0);
    assert_close(number(f, "/avg_cpu_pct"), 50.5, 1e-12);
    assert_close(number(f, "/windows/steady/requested_start_secs"), 10, 0);
    assert_close(number(f, "/windows/steady/requested_end_secs"), 70, 0);
    assert_close(number(f, "/windows/steady/actual_coverage_secs"), 60, 0);
    assert_close(number(f, "/windows/steady/sample_count"), 61, 0);
    assert_true(cJSON_IsTrue(pointer_get(f->section, "/windows/steady/complete")));
    assert_close(number(f, "/windows/steady/growth_mb_per_hour"), 3600, 1e-12);
    assert_close(number(f, "/windows/steady/theil_sen_mb_per_hour"), 3600, 1e-12);
    assert_close(number(f, "/windows/steady/ols_mb_per_hour"), 3600, 1e-12);
    assert_close(number(f, "/windows/steady/retained_mb"), 50, 1e-12);
    assert_true(cJSON_IsTrue(pointer_get(f->section, "/windows/all/complete")));
    assert_null(pointer_get(f->section, "/windows/steady/reason"));
    assert_int_equal(cJSON_GetArraySize(pointer_get(f->section, "/samples/rss_kib")), 121);
}

static void incomplete_windows_say_why(void **state)
{
    const struct fixture *f = *state;

    assert_true(cJSON_IsFalse(pointer_get(f->section, "/windows/line/complete")));
    assert_non_null(
        strstr(pointer_get(f->section, "/windows/line/reason")->valuestring, "too few samples"));
    assert_true(cJSON_IsFalse(pointer_get(f->section, "/windows/never/complete")));
    assert_true(cJSON_IsNull(pointer_get(f->section, "/windows/never/growth_mb_per_hour")));
    assert_non_null(
        strstr(pointer_get(f->section, "/windows/never/reason")->valuestring, "end marker"));
}

static void a_repeated_marker_makes_its_windows_incomplete(void **state)
{
    struct fixture *f = *state;
    cJSON *again = cJSON_Duplicate(cJSON_GetArrayItem(f->markers, 0), true);

    assert_true(cJSON_AddItemToArray(f->markers, again));
    derive(f);
    assert_true(cJSON_IsFalse(pointer_get(f->section, "/windows/steady/complete")));
    assert_true(cJSON_IsNull(pointer_get(f->section, "/windows/steady/growth_mb_per_hour")));
}

/* {"ok": true, "resources": section} judged with the given samples. */
static enum acceptance_verdict judge(const struct fixture *f, const char *csv, size_t len,
                                     char *out_error, size_t size)
{
    cJSON *report = cJSON_CreateObject();
    struct acceptance_input in = {.definition = &f->file.gates[0],
                                  .report = report,
                                  .report_path = "s/1.json",
                                  .samples_csv = csv,
                                  .samples_len = len,
                                  .phase_markers = f->markers};
    AUTO_ACCEPTANCE struct acceptance a = {0};
    struct err e = ERR_INIT;
    const cJSON *check = NULL;

    assert_true(cJSON_AddItemToObject(report, "ok", cJSON_CreateTrue()));
    assert_true(cJSON_AddItemToObject(report, "resources", cJSON_Duplicate(f->section, true)));
    if (acceptance_evaluate(&in, &a, &e) < 0)
        fail_msg("%s", e.text);
    check = pointer_get(a.document, "/checks/1");
    assert_string_equal(json_get(check, "name")->valuestring, "/resources");
    assert_string_equal(json_get(check, "operator")->valuestring, "recomputed");
    (void) snprintf(out_error, size, "%s",
                    cJSON_IsString(json_get(check, "error")) ? json_get(check, "error")->valuestring
                                                             : "");
    cJSON_Delete(report);
    return a.verdict;
}

static void replace(cJSON *section, const char *window, const char *key, cJSON *value)
{
    cJSON *o = window ? cJSON_GetObjectItemCaseSensitive(
                            cJSON_GetObjectItemCaseSensitive(section, "windows"), window)
                      : section;

    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(o, key, value));
}

static void acceptance_derives_the_section_again(void **state)
{
    struct fixture *f = *state;
    char error[256];

    assert_int_equal(judge(f, f->csv, f->csv_len, error, sizeof error), ACCEPTANCE_PASS);
    assert_int_equal(judge(f, NULL, 0, error, sizeof error),
                     ACCEPTANCE_PASS); /* the embedded samples */

    replace(f->section, "steady", "growth_mb_per_hour", cJSON_CreateNumber(3599.999));
    assert_int_equal(judge(f, f->csv, f->csv_len, error, sizeof error), ACCEPTANCE_FAIL);
    assert_non_null(strstr(error, "/resources/windows/steady/growth_mb_per_hour"));
    derive(f);
    replace(f->section, "never", "complete", cJSON_CreateTrue());
    assert_int_equal(judge(f, f->csv, f->csv_len, error, sizeof error), ACCEPTANCE_FAIL);
    derive(f);
    replace(f->section, NULL, "peak_rss_mb", cJSON_CreateNull());
    assert_int_equal(judge(f, f->csv, f->csv_len, error, sizeof error), ACCEPTANCE_FAIL);
}

static void other_or_missing_samples_fail(void **state)
{
    struct fixture *f = *state;
    char error[256];
    char *row = strstr(f->csv, "\n50000,");

    assert_non_null(row);
    row[7] = '9'; /* one sample has another size */
    assert_int_equal(judge(f, f->csv, f->csv_len, error, sizeof error), ACCEPTANCE_FAIL);
    assert_int_equal(judge(f, "nonsense", 8, error, sizeof error), ACCEPTANCE_FAIL);
    assert_int_equal(judge(f, "t_ms,rss_kib\n0,x\n", 17, error, sizeof error), ACCEPTANCE_FAIL);
    cJSON_DeleteItemFromObjectCaseSensitive(f->section, "samples");
    assert_int_equal(judge(f, NULL, 0, error, sizeof error), ACCEPTANCE_FAIL);
    assert_non_null(strstr(error, "no raw samples"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(section_has_totals_and_windows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(incomplete_windows_say_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_repeated_marker_makes_its_windows_incomplete, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(acceptance_derives_the_section_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_or_missing_samples_fail, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("resources", tests, NULL, NULL);
}
