/* cleanrun package: every evidence row of the seed's cases.json, and what the rows do not say. */
#include "tests/lib/support.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/json_in.h"
#include "evidence/manifest.h"
#include "experiment/pointer.h"
#include "runner/runset_pack.h"
#include "tests/evidence/fixture.h"
#include "tests/lib/cases.h"
#include "tests/runner/release.h"
#include "tests/runner/run_command.h"

enum { EVIDENCE_ROWS = 16 };

static int group_setup(void **state)
{
    struct release *r = calloc(1, sizeof *r);

    assert_non_null(r);
    release_new(r, false, true);
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

/* cleanrun package RUN… with everything named; more: further arguments or NULL. */
static void package(const struct release *r, const char *const runs[], const char *const more[],
                    struct command_result *result)
{
    const char *argv[32] = {"package"};
    size_t n = 1;

    for (size_t i = 0; runs[i]; i++)
        argv[n++] = runs[i];
    for (size_t i = 0; more && more[i]; i++)
        argv[n++] = more[i];
    argv[n++] = "--source-at-start";
    argv[n++] = r->start;
    argv[n++] = "--out";
    argv[n++] = r->out;
    argv[n] = NULL;
    run_command(&command_package, argv, result);
}

static void package_all(const struct release *r, struct command_result *result)
{
    const char *const runs[] = {r->runs[0], r->runs[1], r->runs[2], NULL};
    const char *const more[] = {"--executable", r->executable, "--source", r->repo, NULL};

    package(r, runs, more, result);
}

static void says(const char *id, const struct command_result *r, int code, const char *text)
{
    if (r->code != code || (!strstr(r->out, text) && !strstr(r->err, text)))
        fail_msg("%s: expected exit %d and '%s', found %d\n%s%s", id, code, text, r->code, r->out,
                 r->err);
}

/* Nothing of a package may be left, not even a temporary name. */
static void nothing_left(const struct release *r)
{
    char *packages = test_join(r->dir, "packages");
    char **names = NULL;

    assert_int_equal(test_list(packages, "", &names), 0);
    test_names_free(names);
    free(packages);
}

/* The rows' situations. */

static void run_2_failed(const struct release *r)
{
    const struct release_run how = {.status = "FAIL"};

    release_write_run(r, 1, true, &how);
}

static void run_3_ended_unknown(const struct release *r)
{
    release_edit_manifest(r->runs[2], "/source/end/fingerprint", "\"unknown\"");
}

static void workspace_changed(const struct release *r)
{
    test_write_text(r->repo, "source.txt", "edited since\n");
}

static void run_2_has_another_executable(const struct release *r)
{
    const struct release_run how = {.executable = "another build\n"};

    release_write_run(r, 1, true, &how);
}

static void run_1_baseline_altered(const struct release *r)
{
    release_edit(r->runs[0], "baseline/" RELEASE_REPORT, "/results/achieved_cps", "1");
    release_edit_manifest(r->runs[0], NULL, NULL);
}

static void executable_rebuilt(const struct release *r)
{
    test_write_text(r->dir, "build/perf_call_setup_cps", "rebuilt\n");
}

static void executable_gone(const struct release *r)
{
    assert_int_equal(unlink(r->executable), 0);
}

static void run_2_hides_a_failed_check(const struct release *r)
{
    release_edit(r->runs[1], "acceptance.json", "/checks/7/passed", "false");
    release_edit_manifest(r->runs[1], NULL, NULL);
}

static void run_2_has_no_zone(const struct release *r)
{
    release_edit_manifest(r->runs[1], "/started_at", "\"2026-09-29T20:02:00\"");
}

static void run_2_began_with_run_1(const struct release *r)
{
    release_edit_manifest(r->runs[1], "/started_at", "\"2026-09-29T20:01:00Z\"");
}

static void run_1_has_another_origin(const struct release *r)
{
    release_edit_manifest(r->runs[0], "/baseline/origin", "\"other\"");
}

static void run_3_reports_another_source(const struct release *r)
{
    const struct release_run how = {.commit_in_report = "5d828dd7dbb51615a4e513e8f6053816cd6b29a5"};

    release_write_run(r, 2, true, &how);
}

static void run_1_does_not_know_whether_unchanged(const struct release *r)
{
    release_edit_manifest(r->runs[0], "/source/unchanged", "null");
}

/* EVI-01, EVI-11 and EVI-13 are tests of their own below. */
static const struct {
    const char *id;
    void (*arrange)(const struct release *r);
    int exit;
    const char *says; /* in our words */
} rows[] = {
    {"EVI-03", run_2_failed, 5, "the run's status is FAIL"},
    {"EVI-05", run_3_ended_unknown, 5, "'source': 'end': 'fingerprint'"},
    {"EVI-06", workspace_changed, 5, "the source changed after it was recorded at the start"},
    {"EVI-08", run_2_has_another_executable, 5, "one identical executable"},
    {"EVI-10", run_1_baseline_altered, 5, "content differs"},
    {"EVI-15", executable_rebuilt, 5, "content differs from the hash in the manifest"},
    {"EVI-16", executable_gone, 2, "--executable"},
    {"EVI-18", run_2_hides_a_failed_check, 5, "says PASS but has 1 failed checks"},
    {"EVI-20", run_2_has_no_zone, 5, "started_at"},
    {"EVI-21", run_2_began_with_run_1, 5, "strictly chronological"},
    {"EVI-23", run_1_has_another_origin, 5, "origin"},
    {"EVI-25", run_3_reports_another_source, 5, "the report's source differs"},
    {"EVI-26", run_1_does_not_know_whether_unchanged, 5, "unchanged"},
};

static void every_evidence_row_of_the_seed(void **state)
{
    const struct release *base = *state;
    cJSON *cases = cases_load();
    const cJSON *row = NULL;
    size_t known = 0;

    cJSON_ArrayForEach(row, cases) {
        const char *id = json_get(row, "id")->valuestring;
        bool found =
            strcmp(id, "EVI-01") == 0 || strcmp(id, "EVI-11") == 0 || strcmp(id, "EVI-13") == 0;

        if (strncmp(id, "EVI-", 4) != 0)
            continue;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            struct release r;
            struct command_result result;

            if (strcmp(rows[i].id, id) != 0)
                continue;
            print_message("%s: %s\n", id, json_get(row, "situation")->valuestring);
            release_copy(base, &r);
            rows[i].arrange(&r);
            package_all(&r, &result);
            says(id, &result, rows[i].exit, rows[i].says);
            nothing_left(&r);
            command_result_fini(&result);
            release_free(&r);
            found = true;
        }
        if (!found)
            fail_msg("%s is not replayed", id);
        known++;
    }
    assert_int_equal(known, EVIDENCE_ROWS);
    cJSON_Delete(cases);
}

static const char *text_at(const cJSON *j, const char *pointer)
{
    const cJSON *v = pointer_get(j, pointer);

    if (!cJSON_IsString(v))
        fail_msg("no text at %s", pointer);
    return v->valuestring;
}

static void file_hex(const char *path, char hex[DIGEST_HEX_SIZE])
{
    size_t len = 0;
    char *bytes = test_read_path(path, &len);
    struct digest d = digest_of(bytes, len);

    digest_hex(&d, hex);
    free(bytes);
}

static void assert_read_only(const char *dir)
{
    const char *const argv[] = {"find", dir, "-perm", "/222", NULL};
    struct test_run r;

    test_run(argv, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "");
    test_run_fini(&r);
}

static void EVI_01_three_clean_runs_become_a_package(void **state)
{
    struct release r;
    struct command_result result;
    cJSON *index;
    cJSON *start;
    char *copied;
    char *original;
    char hex[DIGEST_HEX_SIZE];

    release_copy(*state, &r);
    package_all(&r, &result);
    says("EVI-01", &result, 0, "3 runs packaged: PASS");
    index = release_json(r.out, "index.json");
    start = release_json(r.dir, "start.json");
    assert_string_equal(text_at(index, "/schema"), "cleanrun-package/1");
    assert_string_equal(text_at(index, "/status"), "PASS");
    assert_int_equal((int) pointer_get(index, "/run_count")->valuedouble, 3);
    assert_null(json_get(index, "shortcomings")->child);
    assert_string_equal(text_at(index, "/common_source_fingerprint"),
                        text_at(start, "/fingerprint"));
    assert_true(json_equal(json_get(index, "source_at_start"), start));
    file_hex(r.executable, hex);
    assert_string_equal(text_at(index, "/common_executable_sha256"), hex);
    assert_string_equal(text_at(index, "/executable/sha256"), hex);
    copied = test_join(r.out, "executable/perf_call_setup_cps");
    file_hex(copied, hex);
    assert_string_equal(text_at(index, "/executable/sha256"), hex);
    free(copied);
    assert_string_equal(text_at(index, "/baseline/id"), "b-20260928T201000Z-0000000a");
    assert_int_equal((int) pointer_get(index, "/runs/2/acceptance/checks")->valuedouble, 199);
    assert_string_equal(text_at(index, "/runs/1/audit/verdict"), "OK");
    copied = test_join(r.out, "run-2/manifest.json");
    original = test_join(r.runs[1], "manifest.json");
    file_hex(copied, hex);
    assert_string_equal(text_at(index, "/runs/1/manifest_sha256"), hex);
    file_hex(original, hex);
    assert_string_equal(text_at(index, "/runs/1/manifest_sha256"), hex);
    assert_read_only(r.out);
    free(copied);
    free(original);
    json_free(index);
    json_free(start);
    command_result_fini(&result);
    release_free(&r);
}

/* The steps, so that something can happen between them. */
static void EVI_11_a_change_during_the_copy_is_found(void **state)
{
    struct release r;
    struct runset set;
    struct runset_stage stage;
    struct runset_frame frame = {.created_at = "2026-09-30T00:00:00Z", .required = 3};
    struct digest index;
    struct err e = ERR_INIT;
    cJSON *start;

    release_copy(*state, &r);
    start = release_json(r.dir, "start.json");
    MUST(runset_open((const char *const *) r.runs, 3, &set, E));
    MUST(runset_set_start(&set, start, E));
    MUST(runset_judge(&set, 3, E));
    assert_null(set.shortcomings->child);
    MUST(runset_stage_open(r.out, &stage, E));
    test_write_text(r.runs[1], "run.log", "written to since\n");
    MUST(runset_stage_copy(&stage, &set, NULL, E));
    assert_int_equal(runset_stage_finish(&stage, &set, &frame, NULL, &index, &e), -1);
    assert_int_equal(e.kind, ERR_TRUST);
    assert_non_null(strstr(e.text, "changed while it was being copied"));
    runset_stage_close(&stage);
    nothing_left(&r);

    /* A manifest that changed together with its file is found as well. */
    MUST(runset_stage_open(r.out, &stage, E));
    release_edit_manifest(r.runs[1], NULL, NULL);
    MUST(runset_stage_copy(&stage, &set, NULL, E));
    assert_int_equal(runset_stage_finish(&stage, &set, &frame, NULL, &index, &e), -1);
    assert_non_null(strstr(e.text, "changed while they were being copied"));
    runset_stage_close(&stage);
    nothing_left(&r);
    runset_close(&set);
    json_free(start);
    release_free(&r);
}

static void EVI_13_the_same_run_three_times_is_refused(void **state)
{
    struct release r;
    struct command_result result;
    char *again;
    const char *argv[5] = {NULL};

    release_copy(*state, &r);
    argv[0] = argv[1] = argv[2] = r.runs[0];
    package(&r, argv, NULL, &result);
    says("EVI-13", &result, 5, "must be distinct");
    nothing_left(&r);
    command_result_fini(&result);

    /* Under another name it is the same run. */
    again = test_join(r.dir, "measured-1b");
    {
        const char *const copy[] = {"cp", "-a", r.runs[0], again, NULL};
        struct test_run copied;

        test_run(copy, NULL, NULL, NULL, &copied);
        assert_int_equal(copied.code, 0);
        test_run_fini(&copied);
    }
    argv[1] = again;
    argv[2] = r.runs[1];
    package(&r, argv, NULL, &result);
    says("EVI-13 renamed", &result, 5, "must be distinct");
    nothing_left(&r);
    command_result_fini(&result);
    free(again);
    release_free(&r);
}

/* Each: exit 5, the text, nothing left. */
static void refused(const struct release *base, void (*arrange)(const struct release *r),
                    const char *text)
{
    struct release r;
    struct command_result result;

    release_copy(base, &r);
    arrange(&r);
    package_all(&r, &result);
    says(text, &result, 5, text);
    nothing_left(&r);
    command_result_fini(&result);
    release_free(&r);
}

static void a_file_of_a_run_changed(const struct release *r)
{
    test_write_text(r->runs[1], "run.log", "measured?\n");
}

static void a_file_of_a_run_added(const struct release *r)
{
    test_write_text(r->runs[1], "samples/more.csv", "t_ms,rss_kib\n");
}

static void a_link_in_a_run(const struct release *r)
{
    char *link = test_join(r->runs[0], "extra.json");

    assert_int_equal(symlink("manifest.json", link), 0);
    free(link);
}

static void a_directory_that_is_no_run(const struct release *r)
{
    char *manifest = test_join(r->runs[0], "manifest.json");

    assert_int_equal(unlink(manifest), 0);
    free(manifest);
}

static void audit_says_something_else(const struct release *r)
{
    release_edit(r->runs[2], "audit.json", "/comparisons/0/current", "1");
    release_edit_manifest(r->runs[2], NULL, NULL);
}

static void a_run_failed_acceptance(const struct release *r)
{
    const struct release_run how = {.achieved = 100};

    release_write_run(r, 0, true, &how);
}

static void runs_in_another_order(const struct release *r)
{
    char *other = test_join(r->dir, "other");

    assert_int_equal(rename(r->runs[0], other), 0);
    assert_int_equal(rename(r->runs[1], r->runs[0]), 0);
    assert_int_equal(rename(other, r->runs[1]), 0);
    free(other);
}

static void started_from_another_commit(const struct release *r)
{
    release_edit(r->dir, "start.json", "/commit", "\"5d828dd7dbb51615a4e513e8f6053816cd6b29a5\"");
}

static void another_conditioning(const struct release *r)
{
    const struct release_run plain = {.status = NULL};

    for (size_t i = 0; i < 3; i++)
        release_write_run(r, i, false, &plain); /* with a baseline the audit would say so first */
    release_edit_manifest(r->runs[2], "/conditioning/sha256",
                          "\"0000000000000000000000000000000000000000000000000000000000000000\"");
}

static void source_record_is_another(const struct release *r)
{
    release_edit(r->runs[1], "source-at-end.json", "/files", "77");
    release_edit_manifest(r->runs[1], NULL, NULL);
}

static void runs_that_do_not_belong_together_are_refused(void **state)
{
    refused(*state, a_file_of_a_run_changed, "'run.log' is not what its manifest lists");
    refused(*state, a_file_of_a_run_added, "'samples/more.csv' is not listed in the manifest");
    refused(*state, a_link_in_a_run, "extra.json");
    refused(*state, a_directory_that_is_no_run, "manifest.json");
    refused(*state, audit_says_something_else, "audit.json does not say");
    refused(*state, a_run_failed_acceptance, "the run's status is FAIL");
    refused(*state, runs_in_another_order, "strictly chronological");
    refused(*state, started_from_another_commit, "another source than the one at the start");
    refused(*state, another_conditioning,
            "/conditioning/sha256 of the manifest is not the first run's");
    refused(*state, source_record_is_another,
            "source-at-end.json is not the manifest's source.end");
}

/* The runs pass by their own definition, not by a stricter one. */
static void todays_rules_judge(void **state)
{
    struct release r;
    struct command_result result;
    char *yaml = test_path("examples/rvoip-sip/cleanrun.yaml");
    char *text = test_read_path(yaml, NULL);
    char *limit = strstr(text, "value: 1578.53");
    char *rules;

    release_copy(*state, &r);
    assert_non_null(limit);
    memcpy(limit, "value: 9578.53", strlen("value: 9578.53"));
    test_write_text(r.dir, "today.yaml", text);
    rules = test_join(r.dir, "today.yaml");
    {
        const char *const runs[] = {r.runs[0], r.runs[1], r.runs[2], NULL};
        const char *const more[] = {"--definition", rules, NULL};

        package(&r, runs, more, &result);
        says("stricter", &result, 5,
             "1 acceptance checks fail by today's rules, the first is results.achieved_cps");
        nothing_left(&r);
        command_result_fini(&result);
        memcpy(limit, "value: 0578.53", strlen("value: 0578.53"));
    }
    free(rules);
    free(text);
    free(yaml);
    release_free(&r);
}

static void usage_is_exit_2_and_leaves_nothing(void **state)
{
    struct release r;
    struct command_result result;

    release_copy(*state, &r);
    {
        const char *const two[] = {r.runs[0], r.runs[1], NULL};
        const char *const none[] = {r.runs[0], r.runs[1], r.repo, NULL};
        const char *const count[] = {"--count", "0", NULL};
        const char *const all[] = {r.runs[0], r.runs[1], r.runs[2], NULL};
        const char *const missing[] = {r.runs[0], r.runs[1], "/nowhere/at-all", NULL};
        const char *const key[] = {"--key", r.start, NULL};

        package(&r, two, NULL, &result);
        says("two", &result, 2, "--count is 3");
        command_result_fini(&result);
        package(&r, all, count, &result);
        says("count", &result, 2, "--count");
        command_result_fini(&result);
        package(&r, missing, NULL, &result);
        says("missing", &result, 2, "/nowhere/at-all");
        command_result_fini(&result);
        package(&r, none, NULL, &result);
        says("no run", &result, 5, "manifest.json");
        command_result_fini(&result);
        package(&r, all, key, &result);
        assert_int_equal(result.code, 2);
        command_result_fini(&result);
        nothing_left(&r);
        test_write_text(r.dir, "packages/release/kept", "mine\n");
        package(&r, all, NULL, &result);
        says("exists", &result, 2, "is there already");
        command_result_fini(&result);
        test_write_text(r.dir, "start.json",
                        "{\"schema\":\"cleanrun-source/1\",\"scheme\":\"x\",\"dirty\":false}");
    }
    {
        char *kept = test_join(r.out, "kept");
        char *text = test_read_path(kept, NULL);

        assert_string_equal(text, "mine\n");
        assert_int_equal(unlink(kept), 0);
        assert_int_equal(rmdir(r.out), 0);
        free(text);
        free(kept);
    }
    package_all(&r, &result);
    says("start", &result, 2, "invalid or unknown");
    nothing_left(&r);
    command_result_fini(&result);
    release_free(&r);
}

/* All of them are told, not only the first; --json says the same. */
static void every_shortcoming_is_told(void **state)
{
    struct release r;
    struct command_result result;
    cJSON *j = NULL;

    release_copy(*state, &r);
    a_run_failed_acceptance(&r);
    run_3_reports_another_source(&r);
    {
        const char *const runs[] = {r.runs[0], r.runs[1], r.runs[2], NULL};
        const char *const more[] = {"--json", NULL};
        const cJSON *row = NULL;
        size_t n = 0;

        package(&r, runs, more, &result);
        says("shortcomings", &result, 5, "report-source");
        MUST(json_parse(result.out, strlen(result.out), NULL, &j, E));
        assert_string_equal(text_at(j, "/verdict"), "REFUSED");
        assert_string_equal(text_at(j, "/shortcomings/0/code"), "status");
        cJSON_ArrayForEach(row, json_get(j, "shortcomings")) {
            n++;
        }
        assert_true(n >= 4); /* status, acceptance, acceptance now, the report's source */
        json_free(j);
    }
    nothing_left(&r);
    command_result_fini(&result);
    release_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_evidence_row_of_the_seed),
        cmocka_unit_test(EVI_01_three_clean_runs_become_a_package),
        cmocka_unit_test(EVI_11_a_change_during_the_copy_is_found),
        cmocka_unit_test(EVI_13_the_same_run_three_times_is_refused),
        cmocka_unit_test(runs_that_do_not_belong_together_are_refused),
        cmocka_unit_test(todays_rules_judge),
        cmocka_unit_test(usage_is_exit_2_and_leaves_nothing),
        cmocka_unit_test(every_shortcoming_is_told),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
