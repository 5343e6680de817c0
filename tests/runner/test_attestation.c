/*
 * The seed's attestation rows about its own inventory (peers, state table, gates, soak settings,
 * pointer files), in our words: an inventory entry is a member of a run, a setting is a field of
 * the report that the definition demands, a pointer is the package's place. What each row is about
 * (bound by a canonical hash, absence with a reason, whole but not eligible, nothing moved on
 * failure) holds for our packages as well. The other rows: test_package_verify.c.
 */
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/jcs.h"
#include "base/json_in.h"
#include "experiment/acceptance.h"
#include "experiment/definition.h"
#include "experiment/pointer.h"
#include "tests/evidence/fixture.h"
#include "tests/runner/packages.h"

static const char *const require_pass[] = {"--require-pass", NULL};
static const char *const require_no_skips[] = {"--require-no-skips", NULL};

static void pack_complete(const struct release *r, int code)
{
    const char *const args[] = {r->runs[0],    r->runs[1], r->runs[2], "--executable",
                                r->executable, "--source", r->repo,    NULL};

    packages_make(r, args, code);
}

static void pack_as_it_is(const struct release *r, int code)
{
    const char *const args[] = {r->runs[0],     r->runs[1],         r->runs[2],
                                "--executable", r->executable,      "--source",
                                r->repo,        "--even-if-failed", NULL};

    packages_make(r, args, code);
}

static int group_setup(void **state)
{
    struct release *r = calloc(1, sizeof *r);

    assert_non_null(r);
    release_new(r, false, true);
    pack_complete(r, 0);
    *state = r;
    return 0;
}

static int group_teardown(void **state)
{
    if (*state)
        release_free(*state);
    free(*state);
    return 0;
}

/* A copy whose package is still to be made, in a place of its own. */
static void unpacked(const struct release *base, struct release *r, const char *out)
{
    packages_copy(base, r);
    free(r->out);
    r->out = test_join(r->dir, out);
}

static bool eligible(const cJSON *document, const char *key)
{
    return cJSON_IsTrue(json_get(json_get(document, "eligibility"), key));
}

static bool lacks(const cJSON *document, const char *code, const char *text)
{
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, json_get(document, "shortcomings")) {
        if (strcmp(json_get(row, "code")->valuestring, code) == 0 &&
            strstr(json_get(row, "text")->valuestring, text))
            return true;
    }
    return false;
}

/* The package made of the runs as they are is whole, but lacks this and does not pass. */
static void expect_not_eligible(const char *id, const struct release *r, const char *code,
                                const char *text)
{
    int exit = -1;
    cJSON *j = NULL;

    pack_complete(r, 5); /* without --even-if-failed there is no package at all */
    assert_int_equal(access(r->out, F_OK), -1);
    pack_as_it_is(r, 0);
    j = packages_verify(r->out, NULL, &exit);
    assert_int_equal(exit, 0);
    assert_string_equal(json_get(j, "status")->valuestring, "FAIL");
    assert_false(eligible(j, "pass"));
    assert_true(eligible(j, "clean")); /* one thing at a time */
    if (!lacks(j, code, text)) {
        size_t len = 0;
        char *list = fixture_text(json_get(j, "shortcomings"), &len);

        fail_msg("%s: no '%s' with '%s' in %s", id, code, text, list);
    }
    json_free(j);
    packages_expect_exit(id, r->out, require_pass, 4);
}

/* A configuration is bound by the hash of its canonical JSON, whatever bytes carry it. */
static void ATT_03_a_configuration_is_bound_by_its_canonical_hash(void **state)
{
    struct release r;
    cJSON *index = NULL;
    cJSON *definition = NULL;
    struct digest d;
    char hex[DIGEST_HEX_SIZE];

    packages_copy(*state, &r);
    index = release_json(r.out, "index.json");
    definition = release_json(r.out, "definition.json");
    MUST(jcs_digest(json_get(definition, "experiment"), &d, E));
    digest_hex(&d, hex);
    assert_string_equal(hex, pointer_get(index, "/definition/experiment_sha256")->valuestring);
    MUST(jcs_digest(json_get(definition, "policy"), &d, E));
    digest_hex(&d, hex);
    assert_string_equal(hex, pointer_get(index, "/definition/policy_sha256")->valuestring);
    packages_expect_exit("ATT-03", r.out, packages_require_all, 0);
    /* Another configuration of the same name. */
    release_edit(r.out, "definition.json", "/experiment/run/timeout", "1");
    packages_relist(&r);
    packages_expect_exit("ATT-03 other", r.out, NULL, 5);
    json_free(definition);
    json_free(index);
    release_free(&r);
}

/* An input taken from a configured place: its name and hash are in the index, its bytes in the
 * package. */
static void ATT_08_an_input_from_elsewhere_is_named_and_hashed(void **state)
{
    struct release r;
    cJSON *index = NULL;
    char *path = NULL;
    char *bytes = NULL;
    size_t len = 0;
    struct digest d;
    char hex[DIGEST_HEX_SIZE];
    char name[100];

    packages_copy(*state, &r);
    index = release_json(r.out, "index.json");
    assert_string_equal(pointer_get(index, "/executable/name")->valuestring, "perf_call_setup_cps");
    (void) snprintf(name, sizeof name, "%s/perf_call_setup_cps",
                    pointer_get(index, "/executable/directory")->valuestring);
    path = test_join(r.out, name);
    bytes = test_read_path(path, &len);
    d = digest_of(bytes, len);
    digest_hex(&d, hex);
    assert_string_equal(hex, pointer_get(index, "/executable/sha256")->valuestring);
    packages_expect_exit("ATT-08", r.out, packages_require_all, 0);
    test_write_text(r.out, name, "another\n");
    packages_relist(&r);
    packages_expect_exit("ATT-08 other bytes", r.out, NULL, 5);
    free(bytes);
    free(path);
    json_free(index);
    release_free(&r);
}

/* A reason belongs to what is absent, and only to that. */
static void ATT_10_a_reason_without_absence_is_refused(void **state)
{
    static const char *const sections[] = {"/executable/reason", "/baseline/reason",
                                           "/source_now/reason", "/runs/1/audit/reason"};

    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        struct release r;

        packages_copy(*state, &r);
        packages_rewrite(&r, sections[i], "\"it was not at hand\"");
        packages_expect_exit(sections[i], r.out, NULL, 5);
        packages_rewrite(&r, sections[i], NULL);
        packages_expect_exit("ATT-10 as it was", r.out, NULL, 0);
        release_free(&r);
    }
}

/* A run that says it was compared needs its baseline with it. */
static void ATT_15_a_compared_run_needs_its_baseline(void **state)
{
    struct release r;
    const char *argv[] = {"rm", "-rf", NULL, NULL};
    struct test_run done;
    char *snapshot = NULL;

    packages_copy(*state, &r); /* in the package */
    snapshot = test_join(r.out, "run-2/baseline");
    argv[2] = snapshot;
    test_run(argv, NULL, NULL, NULL, &done);
    test_run_fini(&done);
    packages_expect_invalid("ATT-15", r.out, "inventory", "missing");
    packages_relist(&r);
    packages_expect_exit("ATT-15 listed", r.out, NULL, 5);
    free(snapshot);
    release_free(&r);

    packages_copy(*state, &r); /* the section */
    packages_rewrite(&r, "/baseline", NULL);
    packages_expect_invalid("ATT-15 section", r.out, "index", "'baseline' is missing");
    release_free(&r);

    unpacked(*state, &r, "packages/without"); /* before packaging, the manifest redone */
    snapshot = test_join(r.runs[1], "baseline");
    argv[2] = snapshot;
    test_run(argv, NULL, NULL, NULL, &done);
    test_run_fini(&done);
    release_edit_manifest(r.runs[1], NULL, NULL);
    pack_as_it_is(&r, 5);
    release_edit_manifest(r.runs[1], "/baseline", "null"); /* an audit of nothing */
    pack_as_it_is(&r, 5);
    assert_int_equal(access(r.out, F_OK), -1);
    free(snapshot);
    release_free(&r);
}

/* Writes acceptance and manifest of a run again after its report was changed, as the runner would
 * have. */
static void judge_again(const char *run, const char *report_pointer, const char *json)
{
    struct definition d = {0};
    struct acceptance a = {.document = NULL};
    cJSON *report = NULL;
    char *path = test_join(run, "definition.json");
    size_t len = 0;
    char *bytes = test_read_path(path, &len);

    release_edit(run, RELEASE_REPORT, report_pointer, json);
    report = release_json(run, RELEASE_REPORT);
    MUST(definition_parse(bytes, len, &d, E));
    {
        const struct acceptance_input in = {
            .definition = &d, .report = report, .report_path = &RELEASE_REPORT[strlen("results/")]};

        MUST(acceptance_evaluate(&in, &a, E));
    }
    assert_int_equal(a.verdict, ACCEPTANCE_FAIL);
    release_write_json(run, "acceptance.json", a.document);
    release_edit_manifest(run, "/acceptance_status", "\"FAIL\"");
    release_edit_manifest(run, "/status", "\"FAIL\"");
    acceptance_fini(&a);
    definition_fini(&d);
    json_free(report);
    free(bytes);
    free(path);
}

/* Without the audit, which would be of the other report. */
static void drop_audit(const char *run)
{
    char *path = test_join(run, "audit.json");

    assert_int_equal(unlink(path), 0);
    free(path);
    release_edit_manifest(run, "/audit_status", "\"NOT_APPLICABLE\"");
}

static void ATT_20_a_run_under_its_minimum_is_whole_but_not_eligible(void **state)
{
    struct release r;

    unpacked(*state, &r, "packages/short");
    drop_audit(r.runs[1]);
    judge_again(r.runs[1], "/resources/rss_tail_window_secs", "58.999"); /* at least 59 */
    expect_not_eligible("ATT-20", &r, "acceptance", "resources.rss_tail_window_secs");
    release_free(&r);
}

static void ATT_21_a_report_of_other_settings_is_whole_but_not_eligible(void **state)
{
    struct release r;

    unpacked(*state, &r, "packages/settings");
    drop_audit(r.runs[2]);
    judge_again(r.runs[2], "/load/steady_secs", "2");
    expect_not_eligible("ATT-21", &r, "acceptance",
                        "1 acceptance checks failed in the run, the first is load.steady_secs");
    release_free(&r);
}

/* One of the things that every run must have is missing in one of them. */
static void ATT_28_a_run_that_lacks_a_required_part_is_named(void **state)
{
    const struct release_run failed = {.status = "FAIL"};
    struct release r;

    unpacked(*state, &r, "packages/one-failed");
    release_write_run(&r, 1, true, &failed);
    expect_not_eligible("ATT-28", &r, "status", "FAIL");
    release_free(&r);
}

static void ATT_38_a_complete_package_is_eligible_for_everything(void **state)
{
    const struct release *base = *state;
    int exit = -1;
    cJSON *j = packages_verify(base->out, packages_require_all, &exit);
    static const char *const keys[] = {"clean", "unchanged_source", "no_skips", "pass"};

    assert_int_equal(exit, 0);
    assert_string_equal(json_get(j, "status")->valuestring, "PASS");
    assert_null(json_get(j, "shortcomings")->child);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        assert_true(eligible(j, keys[i]));
    json_free(j);
}

/* A pass whose comparison was never made: whole, and said. */
static void ATT_40_a_pass_without_its_comparison_is_incomplete(void **state)
{
    struct release r;
    int exit = -1;
    cJSON *j = NULL;

    unpacked(*state, &r, "packages/not-compared");
    drop_audit(r.runs[0]);
    pack_complete(&r, 0);
    j = packages_verify(r.out, NULL, &exit);
    assert_int_equal(exit, 0);
    assert_false(eligible(j, "no_skips"));
    json_free(j);
    packages_expect_exit("ATT-40", r.out, require_no_skips, 4);
    release_free(&r);

    unpacked(*state, &r, "packages/claimed"); /* the status says OK, the document is gone */
    drop_audit(r.runs[0]);
    release_edit_manifest(r.runs[0], "/audit_status", "\"OK\"");
    pack_as_it_is(&r, 5);
    release_free(&r);
}

/* A required report is gone: there is nothing that could pass. */
static void ATT_41_a_pass_without_its_report_is_refused(void **state)
{
    struct release r;
    char *report = NULL;

    unpacked(*state, &r, "packages/no-report");
    report = test_join(r.runs[1], RELEASE_REPORT);
    assert_int_equal(unlink(report), 0);
    release_edit_manifest(r.runs[1], NULL, NULL);
    pack_as_it_is(&r, 5);
    assert_int_equal(access(r.out, F_OK), -1);
    free(report);
    release_free(&r);

    packages_copy(*state, &r);
    packages_remove_file(&r, "run-2/" RELEASE_REPORT);
    packages_relist(&r);
    packages_expect_exit("ATT-41", r.out, NULL, 5);
    release_free(&r);
}

/* Nothing that stands is moved or overwritten by a package that fails, nor by one that would pass.
 */
static void ATT_45_a_failed_package_leaves_the_last_good_one(void **state)
{
    const struct release_run failed = {.status = "FAIL"};
    struct release r;
    char *path = NULL;
    char *before = NULL;
    char *after = NULL;
    size_t len = 0;

    packages_copy(*state, &r);
    path = test_join(r.out, "index.json");
    before = test_read_path(path, &len);
    pack_complete(&r, 2); /* it exists already */
    release_write_run(&r, 1, true, &failed);
    pack_as_it_is(&r, 2);
    pack_complete(&r, 2);
    after = test_read_path(path, &len);
    assert_string_equal(before, after);
    packages_expect_exit("ATT-45", r.out, packages_require_all, 0);
    free(after);
    free(before);
    free(path);
    release_free(&r);
}

static void swap(const struct release *r, const char *one, const char *two)
{
    char *a = test_join(r->out, one);
    char *b = test_join(r->out, two);
    char *c = test_join(r->out, "aside");

    assert_int_equal(rename(a, c), 0);
    assert_int_equal(rename(b, a), 0);
    assert_int_equal(rename(c, b), 0);
    free(a);
    free(b);
    free(c);
}

/* A run stands where its place in the package says, and is the run that the index names. */
static void ATT_50_a_run_directory_must_hold_the_named_run(void **state)
{
    struct release r;

    packages_copy(*state, &r);
    swap(&r, "run-1", "run-2");
    packages_expect_exit("ATT-50 swapped", r.out, NULL, 5);
    packages_relist(&r);
    packages_expect_exit("ATT-50 swapped and listed", r.out, NULL, 5);
    release_free(&r);

    packages_copy(*state, &r);
    packages_rewrite(&r, "/runs/0/run", "\"20260929T200100Z-000000ff\"");
    packages_expect_invalid("ATT-50", r.out, "sections", "'runs' is not what the files give");
    packages_rewrite(&r, "/runs/0/run", "\"20260929T200100Z-00000001\"");
    packages_expect_exit("ATT-50 as it was", r.out, NULL, 0);
    packages_rewrite(&r, "/runs/0/path", "\"run-2\"");
    packages_expect_invalid("ATT-50 path", r.out, "sections", "'runs' is not what the files give");
    release_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ATT_03_a_configuration_is_bound_by_its_canonical_hash),
        cmocka_unit_test(ATT_08_an_input_from_elsewhere_is_named_and_hashed),
        cmocka_unit_test(ATT_10_a_reason_without_absence_is_refused),
        cmocka_unit_test(ATT_15_a_compared_run_needs_its_baseline),
        cmocka_unit_test(ATT_20_a_run_under_its_minimum_is_whole_but_not_eligible),
        cmocka_unit_test(ATT_21_a_report_of_other_settings_is_whole_but_not_eligible),
        cmocka_unit_test(ATT_28_a_run_that_lacks_a_required_part_is_named),
        cmocka_unit_test(ATT_38_a_complete_package_is_eligible_for_everything),
        cmocka_unit_test(ATT_40_a_pass_without_its_comparison_is_incomplete),
        cmocka_unit_test(ATT_41_a_pass_without_its_report_is_refused),
        cmocka_unit_test(ATT_45_a_failed_package_leaves_the_last_good_one),
        cmocka_unit_test(ATT_50_a_run_directory_must_hold_the_named_run),
    };

    return cmocka_run_group_tests_name("attestation", tests, group_setup, group_teardown);
}
