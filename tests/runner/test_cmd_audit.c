/*
 * cleanrun audit replays every audit row of the seed's cases.json through the command: exit,
 * verdict, codes, rows. Where our product is stricter, `ours` says how.
 */
#include "tests/lib/support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "experiment/definition.h"
#include "experiment/pointer.h"
#include "tests/lib/cases.h"
#include "tests/runner/run_command.h"

#define GATE "call-setup-2k"
#define EXAMPLE "examples/rvoip-sip/cleanrun.yaml"

enum { AUDIT_ROWS = 41 };

static const struct {
    const char *id;
    int code;
    const char *verdict;
    const char *reason;
} ours[] = {
    {"AUD-03", 3, "NON_COMPARABLE", "NC-PATH-MISSING"},
    {"AUD-05", 3, "NON_COMPARABLE", "NC-WINDOW-INCOMPLETE"},
    {"AUD-06", 3, "NON_COMPARABLE", "NC-BASELINE-EMPTY"},
    {"AUD-08", 5, "INVALID", "IN-JSON"},
    {"AUD-10", 3, "NON_COMPARABLE", "NC-PATH-NONE"},
    {"AUD-11", 3, "NON_COMPARABLE", "NC-IDENTITY-MISSING"},
    {"AUD-13", 3, "NON_COMPARABLE", "NC-IDENTITY-MISSING"},
    {"AUD-15", 3, "NON_COMPARABLE", "NC-IDENTITY-MISSING"},
    {"AUD-16", 3, "NON_COMPARABLE", "NC-IDENTITY-DIFFERS"},
    {"AUD-20", 3, "NON_COMPARABLE", "NC-IDENTITY-DIFFERS"},
    {"AUD-21", 3, "NON_COMPARABLE", "NC-IDENTITY-DIFFERS"},
    {"AUD-23", 3, "NON_COMPARABLE", "NC-WINDOW-INCOMPLETE"},
    {"AUD-25", 3, "NON_COMPARABLE", "NC-WINDOW-INCOMPLETE"},
    {"AUD-26", 3, "NON_COMPARABLE", "NC-WINDOW-INCOMPLETE"},
    {"AUD-28", 3, "NON_COMPARABLE", "NC-IDENTITY-INVALID"},
    {"AUD-48", 3, "NON_COMPARABLE", "NC-METRIC-MISSING"},
    {"AUD-50", 5, "INVALID", "IN-JSON"},
    {"AUD-53", 3, "NON_COMPARABLE", "NC-WINDOW-INCOMPLETE"},
    {"AUD-55", 3, "NON_COMPARABLE", "NC-PATH-NONE"},
    {"AUD-56", 3, "NON_COMPARABLE", "NC-PATH-NONE"},
    {"AUD-58", 5, "INVALID", "IN-MANIFEST"},
    {"AUD-60", 5, "INVALID", "IN-MANIFEST"},
    {"AUD-65", 3, "NON_COMPARABLE", "NC-IDENTITY-DIFFERS"},
    {"AUD-66", 3, "NON_COMPARABLE", "NC-IDENTITY-DIFFERS"},
};

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *j = json_get(object, key);

    return cJSON_IsString(j) ? j->valuestring : "";
}

static cJSON *parse(const char *text)
{
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    if (json_parse(text, strlen(text), NULL, &j, &e) < 0)
        fail_msg("%s in: %.300s", e.text, text);
    return j;
}

/* The example gate with the row's tolerances, as dir/definition.json. */
static void write_definition(const char *dir, const cJSON *args)
{
    struct definition_file f = {0};
    struct definition copy = {0};
    struct err e = ERR_INIT;
    size_t len = 0;
    char *yaml = test_read(EXAMPLE, &len);
    char *text = NULL;
    const cJSON *tolerance = json_get(args, "latency_tolerance_pct");
    const cJSON *informational = json_get(args, "report_only_latency_percentiles");
    const cJSON *name = NULL;
    cJSON *metric = NULL;

    if (definition_file_parse("cleanrun.yaml", yaml, len, &f, &e) < 0)
        fail_msg("%s", e.text);
    free(yaml);
    cJSON_ArrayForEach(metric,
                       pointer_get(definition_file_gate(&f, GATE)->policy, "/audit/metrics")) {
        const char *path = text_of(metric, "path");

        if (strncmp(path, "/latency_ns/", 12) != 0)
            continue;
        if (tolerance)
            assert_true(cJSON_ReplaceItemInObjectCaseSensitive(
                metric, "tolerance_pct", cJSON_CreateNumber(tolerance->valuedouble)));
        cJSON_ArrayForEach(name, informational) {
            if (strcmp(strrchr(path, '/') + 1, name->valuestring) == 0)
                assert_true(
                    cJSON_ReplaceItemInObjectCaseSensitive(metric, "gated", cJSON_CreateFalse()));
        }
    }
    assert_int_equal(definition_write(definition_file_gate(&f, GATE), &text, &len, &e), 0);
    assert_int_equal(definition_parse(text, len, &copy, &e), 0);
    test_write(dir, "definition.json", text, len);
    free(text);
    definition_fini(&copy);
    definition_file_fini(&f);
}

struct replay {
    char *dir;
    char *definition;
    char *baseline;
    char *current;
    char *manifest;
    char *json;
    char *md;
    struct command_result result;
    cJSON *document; /* NULL when none was written */
    char *markdown;
};

static void replay_fini(struct replay *r)
{
    free(r->definition);
    free(r->baseline);
    free(r->current);
    free(r->manifest);
    free(r->json);
    free(r->md);
    free(r->markdown);
    json_free(r->document);
    command_result_fini(&r->result);
    test_dir_free(r->dir);
}

static void replay_paths(struct replay *r)
{
    r->dir = test_dir_new();
    r->definition = test_join(r->dir, "definition.json");
    r->baseline = test_join(r->dir, "baseline");
    r->current = test_join(r->dir, "current");
    r->manifest = test_join(r->dir, "manifest.json");
    r->json = test_join(r->dir, "audit.json");
    r->md = test_join(r->dir, "audit.md");
}

static void replay_run(struct replay *r, bool with_manifest, bool report_only)
{
    const char *argv[20] = {"audit",      "--definition", r->definition, "--gate",   GATE,
                            "--baseline", r->baseline,    "--current",   r->current, "--json",
                            r->json,      "--md",         r->md};
    size_t n = 13;
    char *text = NULL;

    if (with_manifest) {
        argv[n++] = "--baseline-manifest";
        argv[n++] = r->manifest;
    }
    if (report_only)
        argv[n++] = "--report-only";
    run_command(&command_audit, argv, &r->result);
    if (access(r->json, F_OK) != 0)
        return;
    text = test_read_path(r->json, NULL);
    r->document = parse(text);
    free(text);
    r->markdown = test_read_path(r->md, NULL);
}

static bool has_code(const cJSON *document, const char *code)
{
    const cJSON *reason = NULL;

    cJSON_ArrayForEach(reason, json_get(document, "reasons")) {
        if (strcmp(text_of(reason, "code"), code) == 0)
            return true;
    }
    return false;
}

static void check_regressed(const char *id, const cJSON *expected, const cJSON *document)
{
    const cJSON *row = NULL;
    const cJSON *label = expected ? expected->child : NULL;

    cJSON_ArrayForEach(row, json_get(document, "comparisons")) {
        if (strcmp(text_of(row, "verdict"), "regression") != 0)
            continue;
        if (!label) {
            fail_msg("%s: unexpected regression of %s", id, text_of(row, "label"));
            return;
        }
        assert_string_equal(text_of(row, "label"), label->valuestring);
        label = label->next;
    }
    if (label)
        fail_msg("%s: no regression of %s", id, label->valuestring);
}

static void check_coverage(const cJSON *expect, const cJSON *document, const char *key)
{
    const cJSON *wanted = json_get(expect, key);

    if (wanted)
        assert_true(json_equal(wanted, json_get(json_get(document, "coverage"), key)));
}

/* A row that our product answers as the seed did, in our words. */
static void check_same(const char *id, const cJSON *row, const struct replay *r)
{
    const cJSON *expect = json_get(row, "expect");
    const cJSON *sources = pointer_get(expect, "/identity_sources/0/0");

    assert_int_equal(r->result.code, (int) json_get(expect, "exit")->valuedouble);
    assert_string_equal(text_of(r->document, "verdict"), text_of(expect, "status"));
    assert_int_equal(cJSON_GetArraySize(json_get(r->document, "comparisons")),
                     (int) json_get(expect, "metric_rows")->valuedouble);
    assert_true(json_equal(json_get(r->document, "made_comparisons"),
                           json_get(r->document, "expected_comparisons")));
    check_regressed(id, json_get(expect, "regressed"), r->document);
    check_coverage(expect, r->document, "baseline_only");
    check_coverage(expect, r->document, "current_only");
    if (cJSON_IsString(sources) && strcmp(sources->valuestring, "explicit") != 0)
        assert_string_equal(pointer_get(r->document, "/identity/inferred/0/source")->valuestring,
                            sources->valuestring);
    else
        assert_null(json_get(json_get(r->document, "identity"), "inferred")->child);
}

static void check_row(const cJSON *row, const struct replay *r)
{
    const char *id = text_of(row, "id");
    char status[64];

    assert_non_null(r->document);
    assert_string_equal(text_of(r->document, "schema"), "cleanrun-audit/1");
    (void) snprintf(status, sizeof status, "\nstatus: %s\n", text_of(r->document, "verdict"));
    assert_non_null(strstr(r->markdown, status));
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        if (strcmp(ours[i].id, id) != 0)
            continue;
        if (r->result.code != ours[i].code ||
            strcmp(text_of(r->document, "verdict"), ours[i].verdict) != 0 ||
            !has_code(r->document, ours[i].reason))
            fail_msg("%s: exit %d, %s without %s\n%s%s", id, r->result.code,
                     text_of(r->document, "verdict"), ours[i].reason, r->result.out, r->result.err);
        assert_null(json_get(r->document, "comparisons")->child);
        assert_int_equal((int) json_get(r->document, "made_comparisons")->valuedouble, 0);
        return;
    }
    check_same(id, row, r);
}

static void every_audit_row_of_the_seed(void **state)
{
    cJSON *rows = cases_load();
    const cJSON *row = NULL;
    size_t replayed = 0;

    (void) state;
    cJSON_ArrayForEach(row, rows) {
        const cJSON *args = json_get(row, "args");
        struct replay r = {0};

        if (strcmp(text_of(row, "area"), "audit") != 0)
            continue;
        print_message("%s: %s\n", text_of(row, "id"), text_of(row, "situation"));
        replay_paths(&r);
        cases_audit_tree(r.dir, row);
        cases_apply(r.dir, json_get(row, "ops"));
        write_definition(r.dir, args);
        replay_run(&r, cJSON_IsTrue(json_get(args, "baseline_manifest")),
                   cJSON_IsFalse(json_get(args, "fail_on_regression")));
        check_row(row, &r);
        replay_fini(&r);
        replayed++;
    }
    assert_int_equal(replayed, AUDIT_ROWS);
    cJSON_Delete(rows);
}

/* A row's trees and edits, ready to run. */
static void prepare(struct replay *r, const char *id)
{
    cJSON *rows = cases_load();
    const cJSON *row = cases_find(rows, id);

    *r = (struct replay){0};
    replay_paths(r);
    cases_audit_tree(r->dir, row);
    cases_apply(r->dir, json_get(row, "ops"));
    write_definition(r->dir, NULL);
    cJSON_Delete(rows);
}

static void report_only_never_hides_a_refusal(void **state)
{
    static const struct {
        const char *id;
        int code;
    } cases[] = {{"AUD-01", 0}, {"AUD-30", 0}, {"AUD-05", 3}, {"AUD-50", 5}};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct replay r;

        prepare(&r, cases[i].id);
        replay_run(&r, false, true);
        assert_int_equal(r.result.code, cases[i].code);
        replay_fini(&r);
    }
}

/* What ends a refusal is a command that can be typed. */
static void the_way_out_names_the_gate(void **state)
{
    struct replay r;

    (void) state;
    prepare(&r, "AUD-16");
    replay_run(&r, false, false);
    assert_true(has_code(r.document, "NC-IDENTITY-DIFFERS"));
    assert_non_null(strstr(r.result.out, "`cleanrun run " GATE "`"));
    assert_null(strstr(r.result.out, "run GATE"));
    replay_fini(&r);
}

static void the_same_tree_twice_is_refused(void **state)
{
    struct replay r;

    (void) state;
    prepare(&r, "AUD-01");
    free(r.baseline);
    r.baseline = strdup(r.current);
    replay_run(&r, false, false);
    assert_int_equal(r.result.code, 3);
    assert_true(has_code(r.document, "NC-SAME-EVIDENCE"));
    replay_fini(&r);
}

/* The current side is never inferred: a run that drops its identity is refused, however complete
 * its sweep is. */
static void only_the_baseline_may_be_inferred(void **state)
{
    struct replay r;

    (void) state;
    prepare(&r, "AUD-01");
    free(r.current);
    r.current = strdup(r.baseline);
    replay_run(&r, false, false);
    assert_int_equal(r.result.code, 3);
    assert_true(has_code(r.document, "NC-IDENTITY-MISSING"));
    replay_fini(&r);
}

static void what_cannot_be_asked_exits_2_without_json(void **state)
{
    struct replay r;

    (void) state;
    for (int i = 0; i < 5; i++) {
        prepare(&r, "AUD-01");
        if (i == 0) {
            free(r.current);
            r.current = test_join(r.dir, "nowhere");
        } else if (i == 1) {
            free(r.baseline);
            r.baseline = test_join(r.dir, "definition.json");
        } else if (i == 2) {
            free(r.definition);
            r.definition = test_join(r.dir, "none.yaml");
        } else if (i == 3) {
            test_write_text(r.dir, "definition.json", "version: 1\nunknown: 2\n");
        } else {
            free(r.manifest);
            r.manifest = test_join(r.dir, "none.json");
        }
        replay_run(&r, i == 4, false);
        assert_int_equal(r.result.code, 2);
        assert_null(r.document);
        assert_true(r.result.err[0]);
        replay_fini(&r);
    }
}

static void unknown_gate_exits_2(void **state)
{
    struct replay r;
    struct command_result result;

    (void) state;
    prepare(&r, "AUD-01");
    {
        const char *const argv[] = {"audit",      "--definition", r.definition, "--gate",  "nope",
                                    "--baseline", r.baseline,     "--current",  r.current, NULL};

        run_command(&command_audit, argv, &result);
    }
    assert_int_equal(result.code, 2);
    assert_non_null(strstr(result.err, "no gate 'nope'"));
    command_result_fini(&result);
    replay_fini(&r);
}

static void json_on_standard_output_is_only_json(void **state)
{
    struct replay r;
    struct command_result result;
    cJSON *document = NULL;

    (void) state;
    prepare(&r, "AUD-30");
    {
        const char *const argv[] = {
            "audit",     "--definition", r.definition, "--baseline", r.baseline,
            "--current", r.current,      "--json",     "-",          NULL};

        run_command(&command_audit, argv, &result);
    }
    assert_int_equal(result.code, 1);
    document = parse(result.out);
    assert_string_equal(text_of(document, "verdict"), "REGRESSION");
    assert_non_null(strstr(result.err, "REGRESSION"));
    json_free(document);
    command_result_fini(&result);
    replay_fini(&r);
}

/* A reviewed manifest with an inventory vouches for the bytes of the baseline. */
static void reviewed_manifest_is_verified_against_the_baseline(void **state)
{
    struct replay r;

    (void) state;
    prepare(&r, "AUD-68");
    test_write_text(r.baseline, "extra.json", "{}");
    replay_run(&r, true, false);
    assert_int_equal(r.result.code, 5);
    assert_true(has_code(r.document, "IN-HASH"));
    assert_null(json_get(r.document, "comparisons")->child);
    replay_fini(&r);
}

static void a_directory_with_a_broken_manifest_is_invalid(void **state)
{
    static const char *const manifests[] = {
        "{", "{}", "{\"schema\":\"cleanrun-manifest/2\"}",
        "{\"schema\":\"rvoip-perf-regression-baseline-v1\",\"comparison_paths\":[]}"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(manifests); i++) {
        struct replay r;

        prepare(&r, "AUD-01");
        test_write_text(r.current, "manifest.json", manifests[i]);
        replay_run(&r, false, false);
        assert_int_equal(r.result.code, 5);
        assert_true(has_code(r.document, "IN-MANIFEST"));
        replay_fini(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_audit_row_of_the_seed),
        cmocka_unit_test(report_only_never_hides_a_refusal),
        cmocka_unit_test(the_way_out_names_the_gate),
        cmocka_unit_test(the_same_tree_twice_is_refused),
        cmocka_unit_test(only_the_baseline_may_be_inferred),
        cmocka_unit_test(what_cannot_be_asked_exits_2_without_json),
        cmocka_unit_test(unknown_gate_exits_2),
        cmocka_unit_test(json_on_standard_output_is_only_json),
        cmocka_unit_test(reviewed_manifest_is_verified_against_the_baseline),
        cmocka_unit_test(a_directory_with_a_broken_manifest_is_invalid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
