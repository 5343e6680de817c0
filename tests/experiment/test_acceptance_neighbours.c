/*
 * Neighbours of the seed's acceptance rows: every value of the passing report taken away, made
 * null, and given every other type; lists one element shorter and longer; every threshold at its
 * limit and one step beyond. What may change without a failure is listed here and nothing else may.
 */
#include "tests/lib/cases.h"
#include "tests/lib/pointers.h"
#include "tests/lib/support.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"
#include "experiment/acceptance.h"
#include "experiment/definition.h"
#include "experiment/pointer.h"

#define REPORT "tests/data/rvoip/reports/canonical-pass-2000.json"
#define LONG_LIST 200 /* of the raw samples a few stand for all */

struct fixture {
    struct definition_file file;
    const struct definition *definition;
    cJSON *report;
};

static int group_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    char *text = test_read("examples/rvoip-sip/cleanrun.yaml", NULL);
    struct err e = ERR_INIT;

    assert_non_null(f);
    if (definition_file_parse("cleanrun.yaml", text, strlen(text), &f->file, &e) < 0)
        fail_msg("%s", e.text);
    free(text);
    f->definition = definition_file_gate(&f->file, "call-setup-2k");
    assert_non_null(f->definition);
    f->report = cases_read_json(REPORT);
    *state = f;
    return 0;
}

static int group_teardown(void **state)
{
    struct fixture *f = *state;

    definition_file_fini(&f->file);
    cJSON_Delete(f->report);
    free(f);
    return 0;
}

static bool passes(const struct fixture *f, const cJSON *report, const char *check)
{
    struct acceptance_input in = {.definition = f->definition,
                                  .report = report,
                                  .report_path = "perf_call_setup_cps_pbx-media-server/2000.json"};
    AUTO_ACCEPTANCE struct acceptance a = {0};
    struct err e = ERR_INIT;
    const cJSON *row = NULL;

    if (acceptance_evaluate(&in, &a, &e) < 0)
        fail_msg("%s", e.text);
    if (!check)
        return a.verdict == ACCEPTANCE_PASS;
    cJSON_ArrayForEach(row, json_get(a.document, "checks")) {
        if (strcmp(json_get(row, "name")->valuestring, check) == 0)
            return cJSON_IsTrue(json_get(row, "passed"));
    }
    fail_msg("no check '%s'", check);
    return false;
}

static bool passes_with(struct fixture *f, const char *pointer, const char *json, const char *check)
{
    cJSON *node = pointers_at(f->report, pointer);
    cJSON *value = NULL;
    struct err e = ERR_INIT;
    bool passed = false;

    if (json_parse(json, strlen(json), NULL, &value, &e) < 0)
        fail_msg("%s: %s", json, e.text);
    if (json_equal(node, value)) {
        json_free(value);
        return false; /* no neighbour */
    }
    pointers_swap(node, value);
    passed = passes(f, f->report, check);
    pointers_swap(node, value);
    json_free(value);
    return passed;
}

static bool passes_without(const struct fixture *f, const char *pointer, const char *check)
{
    cJSON *copy = cJSON_Duplicate(f->report, true);
    bool passed = false;

    pointers_remove(copy, pointer);
    passed = passes(f, copy, check);
    cJSON_Delete(copy);
    return passed;
}

static const char *const others[] = {"null",  "true", "false", "7",  "-1",
                                     "\"x\"", "\"\"", "[]",    "{}", "1e300"};

#define FEW "removed null 7 \"x\""
#define ANYTHING "removed null true false 7 -1 \"x\" \"\" [] {} 1e300"

/* Changes that leave a pass a pass. */
static const struct {
    const char *pointer;
    const char *changes;
} allowed[] = {
    /* an observed marker may come at any time and without a kind; windows are bound to their own */
    {"/diagnostics/phase_markers/0/elapsed_ms", "7"},
    {"/diagnostics/phase_markers/0/kind", "removed"},
    {"/diagnostics/phase_markers/4/elapsed_ms", "7"},
    {"/diagnostics/phase_markers/4/kind", "removed"},
    {"/diagnostics/phase_markers/5/kind", "removed"},
    {"/diagnostics/phase_markers/6/kind", "removed"},
    {"/diagnostics/phase_markers/7/elapsed_ms", "7"},
    {"/diagnostics/phase_markers/7/kind", "removed"},
    {"/diagnostics/phase_markers/8/kind", "removed"},
    {"/diagnostics/phase_markers/9/kind", "removed"},
    {"/diagnostics/phase_markers/10/kind", "removed"},
    {"/diagnostics/phase_markers/11/kind", "removed"},
    /* identity and provenance: the manifest and the audit judge them */
    {"/environment/git_commit", FEW},
    {"/environment/git_dirty", FEW},
    {"/environment/git_rev", FEW},
    {"/environment/source_fingerprint_sha256", FEW},
    /* limits from above */
    {"/latency_ns/full_cycle/p50", "7 -1"},
    {"/latency_ns/full_cycle/p95", "7 -1"},
    {"/latency_ns/full_cycle/p99", "7 -1"},
    {"/latency_ns/setup_latency/p50", "7 -1"},
    {"/latency_ns/setup_latency/p95", "7 -1"},
    {"/latency_ns/setup_latency/p99", "7 -1"},
    /* the first sample measures no interval */
    {"/resources/rss_samples_mb/0/cpu_pct", "7 -1 1e300"},
    /* where a full series lies */
    {"/resources/rss_samples_path", "removed true false 7 -1 \"x\" \"\" [] {} 1e300"},
    /* floors */
    {"/results/achieved_cps", "1e300"},
    {"/results/asr", "7 1e300"},
    /* informational */
    {"/results/cps_per_core", ANYTHING},
    /* a tree of counters may have other branches, but a counter in it is an integer and zero */
    {"/results/errors/answer_failed", "removed [] {}"},
    {"/results/errors/bye_failed", "removed [] {}"},
    {"/results/errors/harness_backpressure_rejected", "removed [] {}"},
    {"/results/errors/invite_send_error_counts", "removed []"},
    {"/results/errors/invite_send_failed", "removed [] {}"},
    {"/results/errors/timeout", "removed [] {}"},
    /* floors */
    {"/results/ner", "7 1e300"},
};

static const char *allowed_at(const char *pointer)
{
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (strcmp(allowed[i].pointer, pointer) == 0)
            return allowed[i].changes;
    return "";
}

/* Of the many configuration values, each demanded as one exact value, a few changes are enough. */
static bool is_tried(const char *pointer, const char *json)
{
    static const char *const few[] = {"null", "7", "\"x\""};

    if (strncmp(pointer, "/environment/", 13) != 0 &&
        strncmp(pointer, "/diagnostics/effective_config/", 30) != 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(few); i++)
        if (strcmp(few[i], json) == 0)
            return true;
    return false;
}

static void note(struct buf *out, const char *change)
{
    buf_printf(out, "%s%s", out->len > 0 ? " " : "", change);
}

static void only_what_is_listed_may_change(void **state)
{
    struct fixture *f = *state;
    struct pointers p;

    pointers_of(f->report, LONG_LIST, &p);
    assert_true(p.n > 400);
    assert_true(passes(f, f->report, NULL));
    for (size_t i = 0; i < p.n; i++) {
        AUTO_BUF struct buf found = {0};

        buf_init(&found, LIMIT_KIB(4));
        buf_puts(&found, "");
        if (passes_without(f, p.items[i], NULL))
            note(&found, "removed");
        for (size_t k = 0; k < ARRAY_LEN(others); k++)
            if (is_tried(p.items[i], others[k]) && passes_with(f, p.items[i], others[k], NULL))
                note(&found, others[k]);
        if (strcmp(found.data ? found.data : "", allowed_at(p.items[i])) != 0)
            fail_msg("%s passes with: %s; allowed: %s", p.items[i], found.data,
                     allowed_at(p.items[i]));
    }
    pointers_fini(&p);
}

/* A list that has one element more is another list. */
static void lists_have_no_more_elements(void **state)
{
    struct fixture *f = *state;
    static const char *const lists[] = {
        "/environment/cargo_features", "/diagnostics/measurement_identity/sweep_points_cps",
        "/diagnostics/measurement_identity/conditioning/points", "/resources/rss_samples_mb"};

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        cJSON *list = pointers_at(f->report, lists[i]);
        int n = cJSON_GetArraySize(list);

        assert_true(cJSON_IsArray(list));
        assert_true(cJSON_AddItemToArray(list, cJSON_CreateNull()));
        if (passes(f, f->report, NULL))
            fail_msg("%s with a null at its end passes", lists[i]);
        cJSON_DeleteItemFromArray(list, n);
        assert_true(
            cJSON_AddItemToArray(list, cJSON_Duplicate(cJSON_GetArrayItem(list, n - 1), true)));
        if (passes(f, f->report, NULL))
            fail_msg("%s with its last element twice passes", lists[i]);
        cJSON_DeleteItemFromArray(list, n);
    }
    assert_true(passes(f, f->report, NULL));
}

static void at_and_beyond(struct fixture *f, const cJSON *entry, double limit, bool upper)
{
    const char *path = json_get(entry, "path")->valuestring;
    const char *name = json_get(entry, "name")->valuestring;
    double beyond = nextafter(limit, upper ? DBL_MAX : -DBL_MAX);
    char text[2][40];

    (void) snprintf(text[0], sizeof text[0], "%.17g", limit);
    (void) snprintf(text[1], sizeof text[1], "%.17g", beyond);
    if (!num_same(pointer_get(f->report, path)->valuedouble, limit) &&
        !passes_with(f, path, text[0], name))
        fail_msg("'%s' fails at its limit %s", name, text[0]);
    if (passes_with(f, path, text[1], name))
        fail_msg("'%s' passes beyond its limit: %s", name, text[1]);
}

/* Every threshold lets its limit pass, and nothing of the next double. */
static void thresholds_are_exact(void **state)
{
    struct fixture *f = *state;
    const cJSON *entry = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(entry, pointer_get(f->definition->policy, "/accept/floors")) {
        at_and_beyond(f, entry, json_get(entry, "min")->valuedouble, false);
        n++;
    }
    cJSON_ArrayForEach(entry, pointer_get(f->definition->policy, "/accept/limits")) {
        at_and_beyond(f, entry, json_get(entry, "value")->valuedouble,
                      strcmp(json_get(entry, "op")->valuestring, "<=") == 0);
        n++;
    }
    assert_true(n >= 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_listed_may_change),
        cmocka_unit_test(lists_have_no_more_elements),
        cmocka_unit_test(thresholds_are_exact),
    };

    return cmocka_run_group_tests_name("acceptance_neighbours", tests, group_setup, group_teardown);
}
