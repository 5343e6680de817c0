/* Replay and judgement: what sound evidence means, and packages that lie. */
#include "tests/server/store_fixture.h"

#include <string.h>

#include "base/json_in.h"

static void same_experiment_inside_limits_is_ok(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package base;
    struct package run;
    AUTO_JSON cJSON *verdict = NULL;

    store_fixture_baseline(f, NULL, &base);
    store_fixture_run(f, &(struct package_options){.probes = 1.315, .executable = 2}, "OK", &run);
    verdict = stored(f, run.run, STORE_VERDICT);
    assert_int_equal(at(verdict, "/expected_comparisons")->valueint, 2);
    assert_int_equal(at(verdict, "/made_comparisons")->valueint, 2);
    assert_int_equal(strncmp(text_at(verdict, "/baseline"), "b-", 2), 0);
    assert_string_equal(text_at(verdict, "/baseline") + 2, base.run);
    package_free(&run);
    store_fixture_run(f, &(struct package_options){.probes = 1.33, .executable = 3}, "REGRESSION",
                      &run);
    package_free(&run);
    store_fixture_run(f, &(struct package_options){.capacity = 40000, .executable = 4},
                      "NON_COMPARABLE", NULL);
    store_fixture_run(f, &(struct package_options){.rate = 10, .executable = 5}, "FAIL", NULL);
    package_free(&base);
}

static void branch_that_loosens_its_policy_gains_nothing(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package base;
    struct package run;
    AUTO_JSON cJSON *verdict = NULL;

    store_fixture_baseline(f, NULL, &base);
    /* Locally OK under 50 %, and accepted under a lower floor. */
    store_fixture_run(
        f,
        &(struct package_options){
            .probes = 1.5, .tolerance_pct = 50, .baseline_run = base.run_dir, .executable = 2},
        "REGRESSION", &run);
    verdict = stored(f, run.run, STORE_VERDICT);
    assert_true(cJSON_IsTrue(at(verdict, "/policy/differs")));
    package_free(&run);
    store_fixture_run(f, &(struct package_options){.rate = 40000, .min_rate = 1, .executable = 3},
                      "FAIL", NULL);
    package_free(&base);
}

/* A branch whose own policy fails the run hides nothing behind that: what the runner found amiss, a
 * phase that did not come, an executable that changed, fails it by any policy. */
static void own_policy_that_fails_hides_no_other_fault(void **state)
{
    static const struct {
        double min_rate; /* of the branch's own policy; the run has 50000, the reviewed 49000 */
        int faults;
        bool untold;
        const char *verdict, *failed;
    } rows[] = {
        {49000, 0, false, "OK", NULL},
        {49000, 0, true, "OK", NULL},
        {49000, 1, false, "FAIL", "run status"},
        {49000, 1, true, "FAIL", "run status"},
        {60000, 0, false, "OK", NULL},
        {60000, 1, false, "FAIL", "run status"},
        {60000, 16, false, "FAIL", "run status"},
        {60000, 0, true, "FAIL", "run status"}, /* who does not say may have had any */
    };
    struct store_fixture *f = fixture(state);

    store_fixture_baseline(f, NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct package p;
        AUTO_JSON cJSON *verdict = NULL;

        store_fixture_run(f,
                          &(struct package_options){.min_rate = rows[i].min_rate,
                                                    .faults = rows[i].faults,
                                                    .faults_untold = rows[i].untold,
                                                    .executable = 2 + (int) i},
                          rows[i].verdict, &p);
        verdict = stored(f, p.run, STORE_VERDICT);
        if (rows[i].failed)
            assert_string_equal(text_at(verdict, "/acceptance/failed/0"), rows[i].failed);
        package_free(&p);
    }
}

static void other_experiment_is_named(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package base;
    struct package run;
    AUTO_JSON cJSON *verdict = NULL;

    store_fixture_baseline(f, NULL, &base);
    store_fixture_run(f, &(struct package_options){.command = "/bin/true", .executable = 2},
                      "NON_COMPARABLE", &run);
    verdict = stored(f, run.run, STORE_VERDICT);
    assert_string_equal(text_at(verdict, "/reasons/0/code"), "NC-DEFINITION");
    package_free(&run);
    package_free(&base);
}

static void lying_packages_are_invalid_with_both_values(void **state)
{
    static const struct {
        enum package_lie lie;
        const char *code;
    } lies[] = {{PACKAGE_ACCEPTANCE_PASS, "IN-ACCEPTANCE"},
                {PACKAGE_ACCEPTANCE_VALUE, "IN-ACCEPTANCE"},
                {PACKAGE_AUDIT_OK, "IN-AUDIT"},
                {PACKAGE_AUDIT_VALUE, "IN-AUDIT"}};
    struct store_fixture *f = fixture(state);
    struct package base;

    store_fixture_baseline(f, NULL, &base);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        bool acceptance = lies[i].lie == PACKAGE_ACCEPTANCE_PASS;
        struct package_options o = {
            .lie = lies[i].lie, .baseline_run = base.run_dir, .executable = 2};
        struct ingest_result r;
        struct store_run row;
        struct package p;
        struct err e = ERR_INIT;

        o.probes = acceptance ? 1.31 : 1.5;
        o.rate = acceptance ? 10 : 50000;
        package_make(&o, f->key, &p);
        store_fixture_push(f, &p, &r);
        assert_string_equal(store_fixture_code(&r), lies[i].code);
        assert_non_null(at(r.problem, "/reasons/0/packaged"));
        assert_non_null(at(r.problem, "/reasons/0/recomputed"));
        assert_false(json_equal(at(r.problem, "/reasons/0/packaged"),
                                at(r.problem, "/reasons/0/recomputed")));
        assert_int_equal(store_run_get(f->store, p.run, &row, &e), -1);
        assert_int_equal(e.kind, ERR_NOTFOUND);
        ingest_result_fini(&r);
        package_free(&p);
    }
    package_free(&base);
}

/* The documents hold, and one word of the manifest about them does not. */
static void the_manifests_words_are_those_of_its_documents(void **state)
{
    static const struct {
        const char *pointer, *forged;
        double rate, probes;
        int exit_code;
        bool compared;
        const char *code, *packaged, *recomputed;
    } rows[] = {
        {"/acceptance_status", "\"PASS\"", 10, 1.31, 0, false, "IN-ACCEPTANCE", "PASS", "FAIL"},
        {"/acceptance_status", "\"FAIL\"", 50000, 1.31, 3, false, "IN-ACCEPTANCE", "FAIL", "PASS"},
        {"/audit_status", "\"OK\"", 50000, 1.5, 0, true, "IN-AUDIT", "OK", "REGRESSION"},
    };
    struct store_fixture *f = fixture(state);
    struct package base;

    store_fixture_baseline(f, NULL, &base);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct package_options o = {.rate = rows[i].rate,
                                    .probes = rows[i].probes,
                                    .exit_code = rows[i].exit_code,
                                    .baseline_run = rows[i].compared ? base.run_dir : NULL,
                                    .forge = rows[i].pointer,
                                    .forged = rows[i].forged,
                                    .executable = 2};
        struct ingest_result r;
        struct package p;

        package_make(&o, f->key, &p);
        store_fixture_push(f, &p, &r);
        assert_string_equal(store_fixture_code(&r), rows[i].code);
        assert_string_equal(text_at(r.problem, "/reasons/0/path"), "manifest.json");
        assert_string_equal(text_at(r.problem, "/reasons/0/field"), rows[i].pointer);
        assert_string_equal(text_at(r.problem, "/reasons/0/packaged"), rows[i].packaged);
        assert_string_equal(text_at(r.problem, "/reasons/0/recomputed"), rows[i].recomputed);
        ingest_result_fini(&r);
        package_free(&p);
    }
    package_free(&base);
}

static void honest_local_audit_is_accepted(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package base;

    store_fixture_baseline(f, NULL, &base);
    store_fixture_run(f, &(struct package_options){.baseline_run = base.run_dir, .executable = 2},
                      "OK", NULL);
    store_fixture_run(
        f, &(struct package_options){.probes = 2, .baseline_run = base.run_dir, .executable = 3},
        "REGRESSION", NULL);
    package_free(&base);
}

static void acceptance_is_computed_even_when_none_is_packaged(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package p;
    AUTO_JSON cJSON *acceptance = NULL;

    store_fixture_run(f, &(struct package_options){.lie = PACKAGE_ACCEPTANCE_NONE}, "FAIL", &p);
    acceptance = stored(f, p.run, STORE_ACCEPTANCE);
    assert_string_equal(text_at(acceptance, "/checks/0/name"), "achieved rate");
    assert_true(cJSON_IsTrue(at(acceptance, "/checks/0/passed")));
    assert_true(at(acceptance, "/checks/0/actual")->valuedouble > 49999);
    package_free(&p);
}

static void coverage_is_that_of_the_windows(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "project: " PACKAGE_PROJECT "\n"
        "gates:\n"
        "  " PACKAGE_GATE ":\n"
        "    class: " PACKAGE_CLASS "\n"
        "    build: {command: [make], executable: {from: path, path: kvcache}}\n"
        "    run: {command: ['{executable}'], report: " PACKAGE_REPORT "}\n"
        "    phases: {markers: [a, b], required: [a, b]}\n"
        "    sampling: {interval: 100ms, into: /resources}\n"
        "    windows: {steady: {start_phase: a, end_phase: b, estimator: endpoint-bands}}\n"
        "    identity: [{path: /load/capacity, require: required}]\n"
        "    accept: {limits: [{path: /results/rate, op: '>=', value: 1, unit: 1/s}]}\n"
        "    audit:\n"
        "      paths: {required: [" PACKAGE_REPORT "]}\n"
        "      metrics: [{path: /results/rate, unit: 1/s, worse: lower, tolerance_pct: 1}]\n";
    struct store_fixture *f = fixture(state);
    struct package_options o = {
        .definition = yaml,
        .report = "{\"load\":{\"capacity\":1},\"results\":{\"rate\":9}}",
        .markers = "[{\"phase\":\"a\",\"kind\":\"actual\",\"elapsed_ms\":0},"
                   "{\"phase\":\"b\",\"kind\":\"actual\",\"elapsed_ms\":200}]",
        .derive = true,
    };
    struct ingest_result r;
    struct package p;

    store_fixture_run(f, &o, "NON_COMPARABLE", &p); /* no baseline yet */
    package_free(&p);
    o.lie = PACKAGE_COVERAGE_VALUE;
    package_make(&o, f->key, &p);
    store_fixture_push(f, &p, &r);
    assert_string_equal(store_fixture_code(&r), "IN-MANIFEST");
    assert_non_null(strstr(text_at(r.problem, "/reasons/0/text"), "the report says"));
    ingest_result_fini(&r);
    package_free(&p);
}

/* A report of another commit's program is no evidence for this one. */
static void report_must_name_the_commit_where_the_definition_asks(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "project: " PACKAGE_PROJECT "\n"
        "gates:\n"
        "  " PACKAGE_GATE ":\n"
        "    class: " PACKAGE_CLASS "\n"
        "    build: {command: [make], executable: {from: path, path: kvcache}}\n"
        "    run: {command: ['{executable}'], report: " PACKAGE_REPORT ", report_commit: /commit}\n"
        "    identity: [{path: /load/capacity, require: required}]\n"
        "    accept: {limits: [{path: /results/rate, op: '>=', value: 1, unit: 1/s}]}\n"
        "    audit:\n"
        "      paths: {required: [" PACKAGE_REPORT "]}\n"
        "      metrics: [{path: /results/rate, unit: 1/s, worse: lower, tolerance_pct: 1}]\n";
    static const struct {
        const char *commit; /* JSON */
        const char *verdict;
    } rows[] = {
        {"\"" PACKAGE_COMMIT "\"", "NON_COMPARABLE"}, /* no baseline yet */
        {"\"1123456789abcdef0123456789abcdef01234567\"", "FAIL"},
        {"\"0123456\"", "FAIL"},
        {"null", "FAIL"},
    };
    struct store_fixture *f = fixture(state);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON cJSON *acceptance = NULL;
        AUTO_FREE char *report = NULL;
        struct package p;

        assert_true(asprintf(&report,
                             "{\"load\":{\"capacity\":1},\"results\":{\"rate\":9},\"commit\":%s}",
                             rows[i].commit) > 0);
        store_fixture_run(f, &(struct package_options){.definition = yaml, .report = report},
                          rows[i].verdict, &p);
        acceptance = stored(f, p.run, STORE_ACCEPTANCE);
        assert_string_equal(text_at(acceptance, "/verdict"), i > 0 ? "FAIL" : "PASS");
        if (i > 0) {
            assert_string_equal(text_at(acceptance, "/checks/1/name"), "report commit");
            assert_string_equal(text_at(acceptance, "/checks/1/limit"), PACKAGE_COMMIT);
        }
        package_free(&p);
    }
}

/* The same for the fingerprint of the source that the runner told the program. */
static void report_must_name_the_fingerprint_where_the_definition_asks(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "project: " PACKAGE_PROJECT "\n"
        "gates:\n"
        "  " PACKAGE_GATE ":\n"
        "    class: " PACKAGE_CLASS "\n"
        "    build: {command: [make], executable: {from: path, path: kvcache}}\n"
        "    run: {command: ['{executable}'], report: " PACKAGE_REPORT
        ", report_fingerprint: /source}\n"
        "    identity: [{path: /load/capacity, require: required}]\n"
        "    accept: {limits: [{path: /results/rate, op: '>=', value: 1, unit: 1/s}]}\n"
        "    audit:\n"
        "      paths: {required: [" PACKAGE_REPORT "]}\n"
        "      metrics: [{path: /results/rate, unit: 1/s, worse: lower, tolerance_pct: 1}]\n";
    static const struct {
        const char *source; /* JSON */
        const char *verdict;
    } rows[] = {
        {"\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"",
         "NON_COMPARABLE"}, /* of every test package; no baseline yet */
        {"\"" PACKAGE_COMMIT "\"", "FAIL"},
        {"null", "FAIL"},
    };
    struct store_fixture *f = fixture(state);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON cJSON *acceptance = NULL;
        AUTO_FREE char *report = NULL;
        struct package p;

        assert_true(asprintf(&report,
                             "{\"load\":{\"capacity\":1},\"results\":{\"rate\":9},\"source\":%s}",
                             rows[i].source) > 0);
        store_fixture_run(f, &(struct package_options){.definition = yaml, .report = report},
                          rows[i].verdict, &p);
        acceptance = stored(f, p.run, STORE_ACCEPTANCE);
        assert_string_equal(text_at(acceptance, "/verdict"), i > 0 ? "FAIL" : "PASS");
        if (i > 0) {
            assert_string_equal(text_at(acceptance, "/checks/1/name"), "report fingerprint");
            assert_int_equal(strncmp(text_at(acceptance, "/checks/1/limit"), "00112233", 8), 0);
        }
        package_free(&p);
    }
}

/* What the manifest says against the run is one failed check, whatever the report has. */
static void failed_runs_say_why(void **state)
{
    static const struct {
        struct package_options o;
        const char *name, *limit, *actual, *error;
    } rows[] = {
        {{.exit_code = 3}, "exit code", "0", "3", "the program ended with this exit code"},
        {{.signal = 11}, "exit code", "0", "11", "the program was ended by this signal"},
        {{.exit_code = 3, .forge = "/exit_code", .forged = "null"},
         "exit code",
         "0",
         "null",
         "the program ended with this exit code"},
        {{.report_missing = true},
         "report",
         "\"CAPTURED\"",
         "\"MISSING\"",
         "the run left no complete report"},
        {{.source_changed = true},
         "source unchanged",
         "true",
         "false",
         "the source changed while it was measured"},
        {{.forge = "/status", .forged = "\"FAIL\""},
         "run status",
         "\"PASS\"",
         "\"FAIL\"",
         "the runner says that the run failed"},
        {{.rate = 10}, "achieved rate", "49000", "10", NULL},
    };
    struct store_fixture *f = fixture(state);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON cJSON *verdict = NULL;
        AUTO_JSON cJSON *acceptance = NULL;
        AUTO_JSON cJSON *limit = parsed(rows[i].limit, strlen(rows[i].limit));
        AUTO_JSON cJSON *actual = parsed(rows[i].actual, strlen(rows[i].actual));
        const cJSON *check = NULL;
        struct package p;

        store_fixture_run(f, &rows[i].o, "FAIL", &p);
        verdict = stored(f, p.run, STORE_VERDICT);
        assert_string_equal(text_at(verdict, "/acceptance/verdict"), "FAIL");
        assert_string_equal(text_at(verdict, "/acceptance/failed/0"), rows[i].name);
        assert_int_equal(cJSON_GetArraySize(at(verdict, "/acceptance/failed")), 1);
        acceptance = stored(f, p.run, STORE_ACCEPTANCE);
        assert_string_equal(text_at(acceptance, "/verdict"), "FAIL");
        cJSON_ArrayForEach(check, at(acceptance, "/checks"))
            if (cJSON_IsFalse(at(check, "/passed")))
                break;
        assert_true(json_equal(at(check, "/limit"), limit));
        assert_true(json_equal(at(check, "/actual"), actual));
        if (rows[i].error)
            assert_string_equal(text_at(check, "/error"), rows[i].error);
        if (rows[i].o.report_missing)
            assert_string_equal(text_at(verdict, "/description"),
                                "FAIL 1 of 1 acceptance check: report");
        package_free(&p);
    }
}

static void dirty_source_is_never_compared(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package base;
    struct package p;
    AUTO_JSON cJSON *verdict = NULL;

    store_fixture_baseline(f, NULL, &base);
    store_fixture_run(f, &(struct package_options){.dirty = true, .executable = 2},
                      "NON_COMPARABLE", &p);
    verdict = stored(f, p.run, STORE_VERDICT);
    assert_string_equal(text_at(verdict, "/reasons/0/code"), "NC-SOURCE-DIRTY");
    package_free(&p);
    package_free(&base);
}

static void dirty_first_run_says_so(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package p;
    AUTO_JSON cJSON *verdict = NULL;

    store_fixture_run(f, &(struct package_options){.dirty = true}, "NON_COMPARABLE", &p);
    verdict = stored(f, p.run, STORE_VERDICT);
    assert_string_equal(text_at(verdict, "/reasons/0/code"), "NC-BASELINE-NONE");
    assert_string_equal(text_at(verdict, "/reasons/1/code"), "NC-SOURCE-DIRTY");
    package_free(&p);
}

static void damaged_baseline_judges_nobody(void **state)
{
    struct store_fixture *f = fixture(state);
    struct ingest_result r;
    struct store_run row;
    struct package base;
    struct package p;
    struct err e = ERR_INIT;

    store_fixture_baseline(f, NULL, &base);
    store_fixture_flip(f, base.hex, base.archive_len / 2);
    package_make(&(struct package_options){.executable = 2}, f->key, &p);
    store_fixture_push(f, &p, &r);
    assert_int_equal(r.outcome, INGEST_FAILED);
    assert_int_equal(store_run_get(f->store, p.run, &row, &e), -1);
    ingest_result_fini(&r);
    store_fixture_flip(f, base.hex, base.archive_len / 2);
    store_fixture_push(f, &p, &r);
    assert_int_equal(r.outcome, INGEST_STORED);
    ingest_result_fini(&r);
    package_free(&p);
    package_free(&base);
}

#define T(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(same_experiment_inside_limits_is_ok),
        T(branch_that_loosens_its_policy_gains_nothing),
        T(own_policy_that_fails_hides_no_other_fault),
        T(other_experiment_is_named),
        T(lying_packages_are_invalid_with_both_values),
        T(the_manifests_words_are_those_of_its_documents),
        T(honest_local_audit_is_accepted),
        T(acceptance_is_computed_even_when_none_is_packaged),
        T(coverage_is_that_of_the_windows),
        T(report_must_name_the_commit_where_the_definition_asks),
        T(report_must_name_the_fingerprint_where_the_definition_asks),
        T(failed_runs_say_why),
        T(dirty_source_is_never_compared),
        T(dirty_first_run_says_so),
        T(damaged_baseline_judges_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
