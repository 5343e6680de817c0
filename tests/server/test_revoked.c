/* What a revoked key leaves behind: runs that it signed, and runs that were judged by one of them.
 */
#include "tests/server/store_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "server/store/upkeep.h"

#define BASELINE_COMMIT "fedcba9876543210fedcba9876543210fedcba98"
#define SLOW_COMMIT "1111111111111111111111111111111111111111"
#define FAILED_COMMIT "2222222222222222222222222222222222222222"
#define NEXT_COMMIT "3333333333333333333333333333333333333333"
#define LAST_COMMIT "4444444444444444444444444444444444444444"
#define UNKNOWN_COMMIT "5555555555555555555555555555555555555555"

static void baseline(struct store_fixture *f, struct package *out)
{
    store_fixture_baseline(f, &(struct package_options){.commit = BASELINE_COMMIT}, out);
}

static void a_run_that_it_signed_is_no_longer_believed(void **state)
{
    struct store_fixture *f = fixture(state);
    struct store_run row;
    struct package p;
    AUTO_JSON cJSON *run_doc = NULL;
    AUTO_JSON cJSON *compare = NULL;
    AUTO_JSON cJSON *j = NULL;

    MUST(store_set_base_url(f->store, "https://perf.example", E));
    baseline(f, NULL);
    store_fixture_run(f, &(struct package_options){.executable = 2}, "OK", &p);
    MUST(store_run_get(f->store, p.run, &row, E));
    store_fixture_expect(f, PACKAGE_COMMIT, "OK");
    MUST(manage_runner_revoke(f->store, "metal-01", "sold with its key", row.received_us + 1, NULL,
                              E));
    store_fixture_expect(f, PACKAGE_COMMIT, "OK"); /* it was received before */
    MUST(manage_runner_revoke(f->store, "metal-01", "stolen earlier", row.received_us, NULL, E));
    store_fixture_expect(f, PACKAGE_COMMIT, "INVALID");
    j = store_fixture_check(f, PACKAGE_COMMIT);
    assert_string_equal(text_at(j, "/gates/0/run"), p.run);
    MUST(doc_run(f->store, p.run, &run_doc, E));
    assert_string_equal(text_at(run_doc, "/evidence/stages/1/code"), "IN-KEY");
    assert_non_null(strstr(text_at(run_doc, "/next/0/text"), "revoked key"));
    /* its comparison is not about its numbers any more */
    MUST(doc_compare(f->store, p.run, row.baseline, &compare, E));
    assert_string_equal(text_at(compare, "/verdict"), "INVALID");
    assert_string_equal(text_at(compare, "/reasons/0/code"), "IN-KEY");
    assert_non_null(strstr(text_at(compare, "/description"), "key was revoked"));
    assert_non_null(strstr(text_at(compare, "/next/0/text"), "revoked key"));
    assert_string_equal(text_at(compare, "/next/1/command"),
                        "cleanrun run " PACKAGE_GATE " --at 01234567 --key key.pem --push "
                        "--token-file FILE --server https://perf.example");
    store_run_fini(&row);
    package_free(&p);
}

static void revoke_behind(struct store_fixture *f, const char *run)
{
    AUTO_STORE_RUN struct store_run row = {.id = 0};

    MUST(store_run_get(f->store, run, &row, E));
    MUST(manage_runner_revoke(f->store, "metal-01", "stolen", row.received_us, NULL, E));
}

/* What is left of the answers of a baseline that judges nobody. */
static void expect_unjudged(struct store_fixture *f, const char *run, const char *base)
{
    static const char why[] = "the key behind its baseline was revoked";
    AUTO_JSON cJSON *verdict = NULL;
    AUTO_JSON cJSON *run_doc = NULL;
    AUTO_JSON cJSON *compare = NULL;
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    char id[MANAGE_ID_SIZE];

    (void) snprintf(id, sizeof id, "b-%s", base);
    MUST(doc_verdict(f->store, run, &text, &len, E));
    verdict = parsed(text, len);
    assert_string_equal(text_at(verdict, "/verdict"), "NON_COMPARABLE");
    assert_string_equal(text_at(verdict, "/reasons/0/code"), "NC-BASELINE-NONE");
    assert_non_null(strstr(text_at(verdict, "/reasons/0/text"), why));
    assert_non_null(strstr(text_at(verdict, "/description"), why));
    MUST(doc_run(f->store, run, &run_doc, E));
    assert_string_equal(text_at(run_doc, "/verdict/verdict"), "NON_COMPARABLE");
    assert_non_null(strstr(text_at(run_doc, "/next/0/command"), "baseline approve"));
    MUST(doc_compare(f->store, run, id, &compare, E));
    assert_string_equal(text_at(compare, "/verdict"), "NON_COMPARABLE");
    assert_string_equal(text_at(compare, "/reasons/0/code"), "NC-BASELINE-NONE");
    assert_non_null(strstr(text_at(compare, "/next/0/command"), "baseline approve"));
}

static void say_nothing(void *context, bool problem, const char *text)
{
    (void) context;
    if (problem)
        print_error("%s\n", text);
}

/* Who stole a key could have had any number reviewed. */
static void a_baseline_that_it_signed_judges_nobody(void **state)
{
    struct store_fixture *f = fixture(state);
    struct private_key *first = f->key;
    const struct store_viewer viewer = {.all = true};
    struct upkeep_fsck found = {0};
    struct package base;
    struct package green;
    struct package red;
    struct package next;

    baseline(f, &base);
    f->key = store_fixture_runner(f, "metal-02", PACKAGE_CLASS, PACKAGE_PROJECT);
    store_fixture_run(f, &(struct package_options){.executable = 2}, "OK", &green);
    store_fixture_run(
        f, &(struct package_options){.commit = SLOW_COMMIT, .probes = 2, .executable = 3},
        "REGRESSION", &red);
    store_fixture_run(
        f, &(struct package_options){.commit = FAILED_COMMIT, .rate = 5, .executable = 4}, "FAIL",
        NULL);
    store_fixture_expect(f, PACKAGE_COMMIT, "OK");
    store_fixture_expect(f, SLOW_COMMIT, "REGRESSION");
    revoke_behind(f, base.run);

    /* neither a green nor a red of it stands; what failed its own acceptance did */
    store_fixture_expect(f, PACKAGE_COMMIT, "NON_COMPARABLE");
    store_fixture_expect(f, SLOW_COMMIT, "NON_COMPARABLE");
    store_fixture_expect(f, FAILED_COMMIT, "FAIL");
    store_fixture_expect(f, UNKNOWN_COMMIT, "PENDING"); /* the gate is asked for as before */
    expect_unjudged(f, green.run, base.run);
    expect_unjudged(f, red.run, base.run);
    {
        AUTO_JSON cJSON *gate = NULL;
        AUTO_JSON cJSON *home = NULL;
        AUTO_JSON cJSON *record = NULL;

        MUST(doc_gate(f->store, PACKAGE_PROJECT, PACKAGE_GATE, &gate, E));
        assert_true(cJSON_IsTrue(at(gate, "/baselines/0/current")));
        assert_int_equal(strncmp(text_at(gate, "/baselines/0/revoked_since"), "20", 2), 0);
        assert_string_equal(text_at(gate, "/runs/1/verdict"), "NON_COMPARABLE");
        MUST(doc_home(f->store, &viewer, &home, E));
        assert_true(at(home, "/totals/OK")->valuedouble < 1);
        MUST(doc_baseline(f->store, text_at(gate, "/baselines/0/id"), &record, E));
        assert_int_equal(strncmp(text_at(record, "/revoked_since"), "20", 2), 0);
        assert_string_equal(text_at(record, "/uses/2/verdict"), "NON_COMPARABLE");
    }

    /* nor does it judge who comes now, until another one is reviewed */
    store_fixture_run(f, &(struct package_options){.commit = NEXT_COMMIT, .executable = 5},
                      "NON_COMPARABLE", &next);
    {
        AUTO_JSON cJSON *verdict = stored(f, next.run, STORE_VERDICT);

        assert_string_equal(text_at(verdict, "/reasons/0/code"), "NC-BASELINE-NONE");
        assert_non_null(strstr(text_at(verdict, "/reasons/0/text"), base.run));
        assert_non_null(strstr(text_at(verdict, "/reasons/0/text"), "judges nobody"));
        assert_true(cJSON_IsNull(at(verdict, "/baseline")));
    }
    store_fixture_approve(f, next.run);
    store_fixture_run(f, &(struct package_options){.commit = LAST_COMMIT, .executable = 6}, "OK",
                      NULL);
    store_fixture_expect(f, LAST_COMMIT, "OK");
    store_fixture_expect(f, PACKAGE_COMMIT, "NON_COMPARABLE");
    MUST(upkeep_fsck(f->store, say_nothing, NULL, &found, E));
    assert_int_equal(found.problems, 0);
    package_free(&base);
    package_free(&green);
    package_free(&red);
    package_free(&next);
    private_key_free(first);
}

#define T(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_run_that_it_signed_is_no_longer_believed),
        T(a_baseline_that_it_signed_judges_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
