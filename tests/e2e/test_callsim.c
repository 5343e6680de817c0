/* The runs of the call-setup experiment (tests/e2e/callsim.h), each with its verdict. */
#include "tests/e2e/callsim.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/json_in.h"
#include "tests/e2e/parts.h"

/* Tests. */

static void clean_run_passes_every_check_and_waits_for_a_baseline(void **state)
{
    static const char *const reports[] = {"50.json", "100.json", "200.json", "400.json",
                                          "800.json"};
    struct fixture *f = *state;
    const char *first = NULL;

    need_baseline(f);
    assert_end(f, BASELINE, 3, "NON_COMPARABLE", "PASS");
    cJSON *acceptance = left_json(f, BASELINE, "acceptance.json");

    assert_string_equal(text_at(acceptance, "verdict"), "PASS");
    assert_int_equal(failed_checks(acceptance, &first), 0);
    assert_true(cJSON_GetArraySize(json_get(acceptance, "checks")) > 100);
    cJSON_Delete(acceptance);
    /* One report for each point of the sweep, each with the point's own numbers, and all of them
     * together. */
    cJSON *sweep = left_json(f, BASELINE, "results/" SCENARIO "/_sweep.json");
    size_t n = 0;

    assert_int_equal(cJSON_GetArraySize(json_get(sweep, "points")), 5);
    for (; n < 5; n++) {
        AUTO_FREE char *name = text("results/" SCENARIO "/%s", reports[n]);
        cJSON *report = left_json(f, BASELINE, name);
        const cJSON *identity = json_get(json_get(report, "diagnostics"), "measurement_identity");

        assert_int_equal(cJSON_GetArraySize(json_get(json_get(identity, "conditioning"), "points")),
                         n);
        assert_true(
            cJSON_Compare(report, cJSON_GetArrayItem(json_get(sweep, "points"), (int) n), true));
        cJSON_Delete(report);
    }
    cJSON_Delete(sweep);
    /* The phases that the runner saw are in the manifest: four conditioning points, then the
     * measured one. */
    cJSON *manifest = left_json(f, BASELINE, "manifest.json");
    const cJSON *marker = cJSON_GetArrayItem(json_get(manifest, "phase_markers"), 3);

    assert_int_equal(cJSON_GetArraySize(json_get(manifest, "phase_markers")), 13);
    assert_string_equal(text_at(marker, "phase"), "point-400");
    cJSON_Delete(manifest);
}

static void sealed_clean_run_verifies(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *exe = cleanrun();
    struct test_run r;

    need_baseline(f);
    AUTO_FREE char *archive = place(f, BASELINE, "out.tar");
    const char *const verify[] = {exe, "verify", archive, "--key", f->public_key, NULL};

    test_run(verify, NULL, NULL, NULL, &r);
    if (r.code != 0)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
}

static void same_source_again_is_ok(void **state)
{
    struct fixture *f = *state;

    need_alone(f, CLEAN);
    assert_end(f, CLEAN, 0, "OK", "PASS");
    cJSON *audit = left_json(f, CLEAN, "audit.json");

    assert_int_equal(json_get(audit, "made_comparisons")->valueint, 15);
    assert_int_equal(json_get(audit, "expected_comparisons")->valueint, 15);
    assert_string_equal(comparison(audit, "/results/datagrams_per_call"), "ok");
    cJSON_Delete(audit);
}

static void slower_answers_are_a_regression(void **state)
{
    struct fixture *f = *state;

    need_alone(f, SLOWER);
    assert_end(f, SLOWER, 1, "REGRESSION", "PASS");
    cJSON *audit = left_json(f, SLOWER, "audit.json");

    assert_string_equal(comparison(audit, "/results/achieved_cps"), "regression");
    assert_string_equal(comparison(audit, "/latency_ns/setup_latency/p50"), "regression");
    /* slower, not other work */
    assert_string_equal(comparison(audit, "/results/datagrams_per_call"), "ok");
    cJSON_Delete(audit);
}

static void leak_fails_acceptance_at_retained_growth_alone(void **state)
{
    struct fixture *f = *state;
    const char *first = "";

    need_crowd(f);
    assert_end(f, LEAK, 4, "FAIL", "FAIL");
    cJSON *acceptance = left_json(f, LEAK, "acceptance.json");

    assert_string_equal(text_at(acceptance, "verdict"), "FAIL");
    /* all calls were answered, nothing was counted as kept */
    assert_int_equal(failed_checks(acceptance, &first), 1);
    assert_string_equal(first, "resources.rss_cleanup_endpoint_growth_mb_per_hour");
    cJSON_Delete(acceptance);
    /* The planted leak is far outside, the clean run far inside the limit of 500 MB/h. */
    cJSON *leaking = left_json(f, LEAK, "results/" MEASURED);
    cJSON *clean = left_json(f, BASELINE, "results/" MEASURED);

    assert_true(json_get(json_get(leaking, "resources"), "rss_cleanup_endpoint_growth_mb_per_hour")
                    ->valuedouble > 5000);
    assert_true(json_get(json_get(clean, "resources"), "rss_cleanup_endpoint_growth_mb_per_hour")
                    ->valuedouble < 100);
    cJSON_Delete(leaking);
    cJSON_Delete(clean);
}

static void dropped_conditioning_point_is_not_comparable(void **state)
{
    struct fixture *f = *state;

    need_crowd(f);
    assert_end(f, DROPPED, 3, "NON_COMPARABLE", "PASS");
    cJSON *audit = left_json(f, DROPPED, "audit.json");

    assert_true(has_reason(audit, "NC-IDENTITY-DIFFERS",
                           "/diagnostics/measurement_identity/sweep_points_cps", "200"));
    assert_true(has_reason(audit, "NC-IDENTITY-DIFFERS",
                           "/diagnostics/measurement_identity/conditioning/points", "200"));
    assert_true(has_reason(audit, "NC-DEFINITION", "/conditioning", "point-200"));
    assert_int_equal(cJSON_GetArraySize(json_get(audit, "comparisons")), 0);
    cJSON_Delete(audit);
}

static void source_edited_during_the_run_fails(void **state)
{
    struct fixture *f = *state;

    need_crowd(f);
    assert_end(f, EDITED, 4, "FAIL", "FAIL");
    assert_true(has_fault(f, EDITED, "the source changed during the run"));
    cJSON *manifest = left_json(f, EDITED, "manifest.json");

    assert_true(cJSON_IsFalse(json_get(json_get(manifest, "source"), "unchanged")));
    /* the numbers were fine, their source is not known */
    assert_string_equal(text_at(manifest, "acceptance_status"), "PASS");
    cJSON_Delete(manifest);
}

static void killed_workload_is_an_error_and_nothing_is_sealed(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *exe = cleanrun();
    struct test_run r;

    need_crowd(f);
    assert_int_equal(callsim_finish(f, KILLED)->code, 6);
    assert_null(f->runs[KILLED].result);
    cJSON *error = left_json(f, KILLED, "error.json");

    assert_string_equal(text_at(error, "verdict"), "ERROR");
    assert_string_equal(text_at(error, "code"), "run.killed");
    assert_non_null(strstr(text_at(error, "text"), "SIGKILL"));
    cJSON_Delete(error);
    assert_false(left(f, KILLED, "out/manifest.json"));
    assert_false(left(f, KILLED, "out.tar"));
    /* What it left cannot be made evidence of by hand either. */
    AUTO_FREE char *directory = place(f, KILLED, "out");
    AUTO_FREE char *archive = place(f, KILLED, "by-hand.tar");
    const char *const seal[] = {exe, "seal", directory, "--key", f->key, "--out", archive, NULL};

    test_run(seal, NULL, NULL, NULL, &r);
    assert_int_not_equal(r.code, 0);
    test_run_fini(&r);
    assert_false(left(f, KILLED, "by-hand.tar"));
}

/* A sweep set from outside would be another experiment under the same name. */
static void overrides_are_refused_before_any_build(void **state)
{
    static const char *const env[] = {"CALLSIM_SWEEP=800", NULL};
    struct fixture *f = *state;
    AUTO_FREE char *exe = cleanrun();
    AUTO_FREE char *out = test_join(f->dir, "refused");
    const char *const run[] = {"env", "-u", "MALLOC_PERTURB_", exe, "run", "callsim", "--out",
                               out,   NULL};
    struct test_run r;
    struct stat st;

    test_run(run, env, f->repo, NULL, &r);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "CALLSIM_SWEEP"));
    assert_int_equal(stat(out, &st), -1);
    test_run_fini(&r);
}

/* The program leaves a point out that the definition wants: not other numbers, but no measurement
 * of this gate. */
static void skipped_conditioning_point_fails(void **state)
{
    struct fixture *f = *state;

    need_second_crowd(f);
    assert_end(f, SKIPPED, 4, "FAIL", "FAIL");
    assert_true(
        has_fault(f, SKIPPED, "conditioning step 'point-200' left no sound " SCENARIO "/200.json"));
    assert_false(left(f, SKIPPED, "out/results/" SCENARIO "/200.json"));
    assert_true(left(f, SKIPPED, "out/results/" SCENARIO "/400.json"));
}

/* It announces the point and reports on it; its own count of calls tells. */
static void thinner_conditioning_point_fails(void **state)
{
    struct fixture *f = *state;

    need_second_crowd(f);
    assert_end(f, THINNER, 4, "FAIL", "FAIL");
    assert_true(has_fault(f, THINNER,
                          "conditioning step 'point-200': /results/calls_offered of " SCENARIO
                          "/200.json has another value"));
    cJSON *report = left_json(f, THINNER, "results/" SCENARIO "/200.json");

    assert_int_equal(json_get(json_get(report, "results"), "calls_offered")->valueint, 30);
    cJSON_Delete(report);
}

/* The report names the source it was built from, as the runner told it, or it is no report of this
 * run. */
static void report_of_another_source_fails(void **state)
{
    struct fixture *f = *state;

    need_second_crowd(f);
    assert_end(f, FORGED, 4, "FAIL", "FAIL");
    assert_true(has_fault(f, FORGED, "the report names another source fingerprint than the run's"));
    cJSON *report = left_json(f, BASELINE, "results/" MEASURED),
          *manifest = left_json(f, BASELINE, "manifest.json");

    assert_string_equal(text_at(json_get(report, "environment"), "source_fingerprint_sha256"),
                        text_at(json_get(json_get(manifest, "source"), "start"), "fingerprint"));
    cJSON_Delete(report);
    cJSON_Delete(manifest);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overrides_are_refused_before_any_build),
        cmocka_unit_test(clean_run_passes_every_check_and_waits_for_a_baseline),
        cmocka_unit_test(sealed_clean_run_verifies),
        cmocka_unit_test(same_source_again_is_ok),
        cmocka_unit_test(slower_answers_are_a_regression),
        cmocka_unit_test(killed_workload_is_an_error_and_nothing_is_sealed),
        cmocka_unit_test(source_edited_during_the_run_fails),
        cmocka_unit_test(leak_fails_acceptance_at_retained_growth_alone),
        cmocka_unit_test(dropped_conditioning_point_is_not_comparable),
        cmocka_unit_test(skipped_conditioning_point_fails),
        cmocka_unit_test(thinner_conditioning_point_fails),
        cmocka_unit_test(report_of_another_source_fails),
        cmocka_unit_test(cpu_mode_samples_stacks),
        cmocka_unit_test(timing_mode_records_switches),
        cmocka_unit_test(memory_mode_takes_retention_snapshots_at_four_phases),
        cmocka_unit_test(boundary_mode_takes_a_snapshot_after_each_point),
        cmocka_unit_test(build_only_is_never_a_result),
        cmocka_unit_test(server_judges_as_the_runner_did),
        cmocka_unit_test(server_pages_say_what_the_documents_say),
        cmocka_unit_test(server_refusal_marks_the_missing_element),
        cmocka_unit_test(server_takes_no_diagnostic_run_as_evidence),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("e2e/callsim", tests, callsim_setup, callsim_teardown);
}
