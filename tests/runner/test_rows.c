/*
 * No row of the seed's cases.json is forgotten. Most areas are replayed by a test that walks all
 * rows of its area and fails at one it does not know; it must really read the list and name the
 * area. The rows of the others are about commands with fixtures of their own: each is named here
 * with its test.
 */
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "tests/lib/cases.h"

struct area {
    const char *name;
    const char *prefix;
    size_t rows;
    const char *walked_by; /* NULL: each row is named below */
};

static const struct area areas[] = {
    {"audit", "AUD-", 41, "tests/runner/test_cmd_audit.c"},
    {"acceptance", "ACC-", 41, "tests/experiment/test_acceptance_cases.c"},
    {"baseline", "BAS-", 13, "tests/runner/test_cmd_baseline.c"},
    {"evidence", "EVI-", 16, "tests/runner/test_package.c"},
    {"attestation", "ATT-", 32, "tests/runner/test_package_verify.c"},
    {"soak-metrics", "MET-", 8, "tests/experiment/test_soak_reports.c"},
    {"soak-rss", "SOK-", 6, "tests/experiment/test_soak.c"},
    {"artifact", "ART-", 5, NULL},
    {"runner", "RUN-", 11, NULL},
    {"fingerprint", "FPR-", 5, NULL},
};

#define ARTIFACT "tests/runner/test_artifact.c"
#define PLAN "tests/runner/test_plan.c"
#define RUN "tests/runner/test_cmd_run.c"
#define SOURCE "tests/runner/test_source.c"
#define ATTESTATION "tests/runner/test_attestation.c"

static const struct {
    const char *id;
    const char *file;
    const char *test;
} named[] = {
    {"ART-01", ARTIFACT, "repeated_messages_and_plain_text_are_fine"},
    {"ART-03", ARTIFACT, "anything_but_one_executable_is_refused"},
    {"ART-05", ARTIFACT, "only_regular_executable_elf_files_are_opened"},
    {"ART-06", ARTIFACT, "anything_but_one_executable_is_refused"},
    {"ART-08", ARTIFACT, "lines_that_are_no_object_are_refused"},
    {"RUN-01", RUN, "run_against_a_baseline_is_ok"},
    {"RUN-03", RUN, "run_against_a_baseline_is_ok"},
    {"RUN-05", RUN, "run_refuses_overrides_before_any_build"},
    {"RUN-06", RUN, "run_refuses_overrides_before_any_build"},
    {"RUN-08", RUN, "run_refuses_overrides_before_any_build"},
    {"RUN-10", RUN, "run_refuses_overrides_before_any_build"},
    {"RUN-11", RUN, "run_refuses_overrides_before_any_build"},
    {"RUN-13", RUN, "run_fails_without_a_report"},
    {"RUN-15", RUN, "run_fails_when_the_source_is_edited_meanwhile"},
    {"RUN-16", RUN, "run_fails_without_required_markers"},
    {"RUN-18", PLAN, "release_profile_must_be_exactly_the_expected_one"},
    {"FPR-01", SOURCE, "seed_vectors_are_reproduced"},
    {"FPR-03", SOURCE, "seed_vectors_are_reproduced"},
    {"FPR-05", SOURCE, "seed_vectors_are_reproduced"},
    {"FPR-06", SOURCE, "seed_vectors_are_reproduced"},
    {"FPR-08", SOURCE, "seed_vectors_are_reproduced"},
    /* Rows that the walk over their area leaves to another file. */
    {"MET-03", "tests/runner/test_package.c", "every_evidence_row_of_the_seed"},
    {"ATT-03", ATTESTATION, "ATT_03_a_configuration_is_bound_by_its_canonical_hash"},
    {"ATT-08", ATTESTATION, "ATT_08_an_input_from_elsewhere_is_named_and_hashed"},
    {"ATT-10", ATTESTATION, "ATT_10_a_reason_without_absence_is_refused"},
    {"ATT-15", ATTESTATION, "ATT_15_a_compared_run_needs_its_baseline"},
    {"ATT-20", ATTESTATION, "ATT_20_a_run_under_its_minimum_is_whole_but_not_eligible"},
    {"ATT-21", ATTESTATION, "ATT_21_a_report_of_other_settings_is_whole_but_not_eligible"},
    {"ATT-28", ATTESTATION, "ATT_28_a_run_that_lacks_a_required_part_is_named"},
    {"ATT-38", ATTESTATION, "ATT_38_a_complete_package_is_eligible_for_everything"},
    {"ATT-40", ATTESTATION, "ATT_40_a_pass_without_its_comparison_is_incomplete"},
    {"ATT-41", ATTESTATION, "ATT_41_a_pass_without_its_report_is_refused"},
    {"ATT-45", ATTESTATION, "ATT_45_a_failed_package_leaves_the_last_good_one"},
    {"ATT-50", ATTESTATION, "ATT_50_a_run_directory_must_hold_the_named_run"},
};

static bool is_named(const char *id)
{
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        if (strcmp(named[i].id, id) == 0)
            return true;
    return false;
}

static const struct area *area_of(const cJSON *row)
{
    const char *name = json_get(row, "area")->valuestring;

    for (size_t i = 0; i < ARRAY_LEN(areas); i++)
        if (strcmp(areas[i].name, name) == 0)
            return &areas[i];
    fail_msg("nobody tests the area '%s'", name);
    return NULL;
}

static bool file_has(const char *path, const char *text)
{
    size_t len = 0;
    char *source = test_read(path, &len);

    if (!strstr(source, text)) {
        free(source);
        return false;
    }
    free(source);
    return true;
}

static void every_row_has_its_test(void **state)
{
    cJSON *rows = cases_load();
    const cJSON *row = NULL;
    size_t counted[ARRAY_LEN(areas)] = {0};

    (void) state;
    cJSON_ArrayForEach(row, rows) {
        const char *id = json_get(row, "id")->valuestring;
        const struct area *a = area_of(row);
        assert_memory_equal(id, a->prefix, strlen(a->prefix));
        counted[a - areas]++;
        if (!a->walked_by && !is_named(id))
            fail_msg("%s (%s) has no test", id, json_get(row, "situation")->valuestring);
    }
    for (size_t i = 0; i < ARRAY_LEN(areas); i++)
        assert_int_equal(counted[i], areas[i].rows);
    cJSON_Delete(rows);
}

static void named_tests_are_there_and_run(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        char call[160];

        (void) snprintf(call, sizeof call, "cmocka_unit_test(%s)", named[i].test);
        if (!file_has(named[i].file, call))
            fail_msg("%s: %s is not run by %s", named[i].id, named[i].test, named[i].file);
    }
}

static void walking_tests_read_the_list(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(areas); i++) {
        const struct area *a = &areas[i];
        char quoted[40];

        if (!a->walked_by)
            continue;
        (void) snprintf(quoted, sizeof quoted, "\"%s\"", a->name);
        assert_true(file_has(a->walked_by, "cases_load()"));
        if (!file_has(a->walked_by, quoted)) {
            (void) snprintf(quoted, sizeof quoted, "\"%s\", 4", a->prefix);
            assert_true(file_has(a->walked_by, quoted));
        }
    }
}

/* The list is the published one, where that is at hand. */
static void the_list_is_the_published_one(void **state)
{
    size_t len = 0;
    char *ours = test_read("tests/data/rvoip/cases.json", &len);
    char *path = test_shared("data/rvoip/cases.json");
    size_t theirs_len = 0;
    char *theirs = NULL;

    (void) state;
    if (!path) {
        free(ours);
        skip();
    }
    theirs = test_read_path(path, &theirs_len);
    assert_int_equal(len, theirs_len);
    assert_memory_equal(ours, theirs, len);
    free(theirs);
    free(path);
    free(ours);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_its_test),
        cmocka_unit_test(named_tests_are_there_and_run),
        cmocka_unit_test(walking_tests_read_the_list),
        cmocka_unit_test(the_list_is_the_published_one),
    };

    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
