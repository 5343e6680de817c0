/* The check of a commit and the count of attempts. */
#include "tests/server/store_fixture.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"
#include "server/ingest/record.h"
#include "server/store/upkeep.h"

#define OTHER_COMMIT "fedcba9876543210fedcba9876543210fedcba98"
#define CONFIRMED_COMMIT "1111111111111111111111111111111111111111"
#define LATER_COMMIT "2222222222222222222222222222222222222222"

/* A baseline measured at OTHER_COMMIT. */
static void baseline(struct store_fixture *f, const struct package_options *o)
{
    struct package_options with = o ? *o : (struct package_options){.commit = NULL};

    with.commit = OTHER_COMMIT;
    store_fixture_baseline(f, &with, NULL);
}

static void run(struct store_fixture *f, double probes, int executable, const char *verdict)
{
    store_fixture_run(f, &(struct package_options){.probes = probes, .executable = executable},
                      verdict, NULL);
}

static void unknown_commit_is_pending(void **state)
{
    struct store_fixture *f = fixture(state);
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    store_fixture_expect(f, PACKAGE_COMMIT, "PENDING");
    baseline(f, NULL);
    store_fixture_expect(f, PACKAGE_COMMIT, "PENDING");
    assert_int_equal(doc_check(f->store, PACKAGE_PROJECT, "main", &j, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);
    assert_int_equal(doc_check(f->store, "no/such", PACKAGE_COMMIT, &j, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
}

static void verdict_of_the_only_gate_is_the_check(void **state)
{
    struct store_fixture *f = fixture(state);

    baseline(f, NULL);
    run(f, 1.31, 2, "OK");
    store_fixture_expect(f, PACKAGE_COMMIT, "OK");
}

static void deleted_gate_is_not_green(void **state)
{
    struct store_fixture *f = fixture(state);
    const int64_t short_deadline = 1;
    const struct manage_project change = {.deadline_s = &short_deadline};
    const struct manage_review review = {
        .project = PACKAGE_PROJECT, .gate = "second", .reviewer = "r", .reason = "why"};
    AUTO_JSON cJSON *j = NULL;
    AUTO_JSON cJSON *late = NULL;
    struct ingest_result r;
    struct package p;
    char id[MANAGE_ID_SIZE];

    baseline(f, NULL);
    package_make(&(struct package_options){.gate = "second", .commit = OTHER_COMMIT}, f->key, &p);
    (void) store_fixture_put(f, p.archive, p.archive_len);
    store_fixture_post(f, "second", p.envelope, p.envelope_len, &r);
    assert_int_equal(r.outcome, INGEST_STORED);
    ingest_result_fini(&r);
    MUST(manage_baseline_approve(f->store, p.run, &review, id, E));
    package_free(&p);
    run(f, 1.31, 2, "OK");
    j = store_fixture_check(f, PACKAGE_COMMIT);
    assert_string_equal(text_at(j, "/verdict"), "PENDING");
    assert_int_equal(cJSON_GetArraySize(at(j, "/gates")), 2);
    assert_string_equal(text_at(j, "/gates/1/gate"), "second");
    assert_string_equal(text_at(j, "/gates/1/verdict"), "PENDING");
    assert_true(cJSON_IsNull(at(j, "/gates/1/run")));
    assert_non_null(
        strstr(text_at(j, "/gates/1/description"), /* what it waits for, and until when */
               "PENDING no run of this commit yet, deadline 20"));
    /* And not pending for ever. */
    MUST(manage_project_set(f->store, PACKAGE_PROJECT, &change, E));
    (void) nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 100000000},
                     NULL); /* the deadline passes */
    store_fixture_expect(f, PACKAGE_COMMIT, "ERROR");
    late = store_fixture_check(f, PACKAGE_COMMIT);
    assert_non_null(strstr(text_at(late, "/gates/1/description"),
                           "ERROR no run of this commit came before the deadline 20"));
}

static void retrying_until_green_is_red(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_JSON cJSON *j = NULL;
    AUTO_JSON cJSON *j2 = NULL;

    baseline(f, NULL);
    run(f, 2, 2, "REGRESSION");
    store_fixture_expect(f, PACKAGE_COMMIT, "REGRESSION");
    run(f, 1.31, 2, "OK");
    j = store_fixture_check(f, PACKAGE_COMMIT);
    assert_string_equal(text_at(j, "/verdict"), "REGRESSION");
    assert_int_equal(cJSON_GetArraySize(at(j, "/gates/0/attempts")), 2);
    assert_string_equal(text_at(j, "/gates/0/attempts/0/verdict"), "REGRESSION");
    assert_string_equal(text_at(j, "/gates/0/attempts/1/verdict"), "OK");
    for (int i = 0; i < 3; i++)
        run(f, 1.3 - i / 1000.0, 2, "OK");
    store_fixture_expect(f, PACKAGE_COMMIT, "REGRESSION");
    /* Nor does another executable of the same source: some builds are never the same twice. */
    run(f, 1.31, 3, "OK");
    store_fixture_expect(f, PACKAGE_COMMIT, "REGRESSION");
    j2 = store_fixture_check(f, PACKAGE_COMMIT);
    assert_non_null(strstr(text_at(j2, "/gates/0/description"), "of the same source in run"));
}

/* Wherever the green run shows, so does what stands against it. */
static void standing_regression_shows_everywhere(void **state)
{
    static const char said[] =
        "OK, but an earlier run of this program was REGRESSION: the check stays REGRESSION";
    struct store_fixture *f = fixture(state);
    const struct store_viewer viewer = {.all = true};
    AUTO_JSON cJSON *home = NULL;
    AUTO_JSON cJSON *project = NULL;
    AUTO_JSON cJSON *gate = NULL;
    AUTO_JSON cJSON *run_doc = NULL;
    AUTO_JSON cJSON *compare = NULL;
    AUTO_JSON cJSON *answer = NULL;
    struct ingest_result r;
    struct package red;
    struct package green;

    baseline(f, NULL);
    store_fixture_run(f, &(struct package_options){.probes = 2, .executable = 2}, "REGRESSION",
                      &red);
    package_make(&(struct package_options){.probes = 1.31, .executable = 3}, f->key, &green);
    store_fixture_push(f, &green, &r);
    assert_int_equal(r.outcome, INGEST_STORED);
    answer = parsed(r.body, r.body_len);
    assert_string_equal(text_at(answer, "/verdict"), "OK");
    assert_string_equal(text_at(answer, "/check/verdict"), "REGRESSION");
    assert_string_equal(text_at(answer, "/check/description"), said);
    assert_string_equal(text_at(answer, "/check/run"), red.run);
    ingest_result_fini(&r);
    MUST(doc_home(f->store, &viewer, &home, E));
    MUST(doc_project(f->store, PACKAGE_PROJECT, &project, E));
    MUST(doc_gate(f->store, PACKAGE_PROJECT, PACKAGE_GATE, &gate, E));
    MUST(doc_run(f->store, green.run, &run_doc, E));
    MUST(doc_compare(f->store, green.run, text_at(answer, "/baseline"), &compare, E));
    assert_string_equal(text_at(home, "/gates/0/verdict"), "REGRESSION");
    assert_string_equal(text_at(home, "/gates/0/run_verdict"), "OK");
    assert_string_equal(text_at(home, "/gates/0/description"), said);
    assert_true(at(home, "/totals/OK")->valuedouble < 1);
    assert_string_equal(text_at(project, "/gates/0/verdict"), "REGRESSION");
    assert_string_equal(text_at(gate, "/runs/0/verdict"), "OK");
    assert_string_equal(text_at(gate, "/runs/0/check/description"), said);
    assert_true(cJSON_IsNull(at(gate, "/runs/1/check")));
    assert_string_equal(text_at(run_doc, "/check/run"), red.run);
    assert_string_equal(text_at(compare, "/check/description"), said);
    assert_null(strstr(text_at(compare, "/next/0/text"), "Nothing to do"));
    package_free(&red);
    package_free(&green);
}

static void confirm_rule_lets_agreeing_runs_decide(void **state)
{
    struct store_fixture *f = fixture(state);

    baseline(f, &(struct package_options){.confirm = 2});
    run(f, 2, 2, "REGRESSION");
    run(f, 1.31, 2, "OK");
    store_fixture_expect(f, PACKAGE_COMMIT, "REGRESSION");
    run(f, 1.3, 2, "OK");
    store_fixture_expect(f, PACKAGE_COMMIT, "OK");
    run(f, 2.5, 2, "REGRESSION");
    run(f, 1.31, 2, "OK");
    store_fixture_expect(f, PACKAGE_COMMIT, "REGRESSION");
}

/* A commit's check is by the policy that judged its runs: one that is reviewed later neither lets
 * an old REGRESSION go nor raises one again. */
static void later_confirm_rule_changes_no_earlier_check(void **state)
{
    struct store_fixture *f = fixture(state);
    struct manage_review review = {.project = PACKAGE_PROJECT,
                                   .gate = PACKAGE_GATE,
                                   .reviewer = "r",
                                   .reason = "two agree",
                                   .new_policy = true};
    char first[MANAGE_ID_SIZE];
    char id[MANAGE_ID_SIZE];
    struct package base, confirmed;

    store_fixture_baseline(f, &(struct package_options){.commit = OTHER_COMMIT}, &base);
    run(f, 2, 2, "REGRESSION");
    run(f, 1.31, 2, "OK");
    run(f, 1.3, 2, "OK");
    store_fixture_expect(f, PACKAGE_COMMIT, "REGRESSION");
    store_fixture_run(
        f, &(struct package_options){.commit = CONFIRMED_COMMIT, .confirm = 2, .executable = 3},
        "OK", &confirmed);
    MUST(manage_baseline_approve(f->store, confirmed.run, &review, id, E));
    store_fixture_expect(f, PACKAGE_COMMIT, "REGRESSION");
    MUST(manage_baseline_retire(f->store, id, &review, E));
    store_fixture_expect(f, PACKAGE_COMMIT, "REGRESSION");
    MUST(manage_baseline_approve(f->store, confirmed.run, &review, id, E));
    for (int i = 0; i < 3; i++)
        store_fixture_run(
            f,
            &(struct package_options){
                .commit = LATER_COMMIT, .confirm = 2, .probes = i == 0 ? 2 : 1.31, .executable = 4},
            i == 0 ? "REGRESSION" : "OK", NULL);
    store_fixture_expect(f, LATER_COMMIT, "OK");
    MUST(manage_baseline_approve(f->store, base.run, &review, first, E));
    store_fixture_expect(f, LATER_COMMIT, "OK");
    store_fixture_expect(f, PACKAGE_COMMIT, "REGRESSION");
    MUST(manage_baseline_retire(f->store, first, &review, E));
    store_fixture_expect(f, LATER_COMMIT, "OK");
    package_free(&base);
    package_free(&confirmed);
}

static void latest_complete_attempt_decides(void **state)
{
    struct store_fixture *f = fixture(state);

    baseline(f, NULL);
    run(f, 1.31, 2, "OK");
    store_fixture_refuse(f, f->key, &(struct package_options){.lie = PACKAGE_ACCEPTANCE_VALUE},
                         "IN-ACCEPTANCE");
    /* A refused upload is listed but is no measurement. */
    {
        AUTO_JSON cJSON *j = store_fixture_check(f, PACKAGE_COMMIT);

        assert_string_equal(text_at(j, "/verdict"), "OK");
        assert_string_equal(text_at(j, "/gates/0/attempts/1/verdict"), "INVALID");
    }
    store_fixture_run(f, &(struct package_options){.rate = 5, .executable = 3}, "FAIL", NULL);
    store_fixture_expect(f, PACKAGE_COMMIT, "FAIL");
}

static void diagnostic_run_is_no_answer(void **state)
{
    struct store_fixture *f = fixture(state);

    baseline(f, NULL);
    store_fixture_run(f, &(struct package_options){.mode = "cpu"}, "null", NULL);
    store_fixture_expect(f, PACKAGE_COMMIT, "PENDING");
}

static void runner_cannot_spoil_another_class(void **state)
{
    struct store_fixture *f = fixture(state);
    struct private_key *other;
    AUTO_JSON cJSON *j = NULL;
    struct ingest_result r;
    struct package p;

    baseline(f, NULL);
    run(f, 1.31, 2, "OK");
    other = store_fixture_runner(f, "slow-01", "slow", PACKAGE_PROJECT);
    package_make(&(struct package_options){.probes = 1}, other, &p); /* says class demo */
    store_fixture_push(f, &p, &r);
    assert_string_equal(store_fixture_code(&r), "IN-KEY");
    ingest_result_fini(&r);
    package_free(&p);
    private_key_free(other);
    j = store_fixture_check(f, PACKAGE_COMMIT);
    assert_string_equal(text_at(j, "/verdict"), "OK");
    assert_int_equal(cJSON_GetArraySize(at(j, "/gates")), 1);
    assert_int_equal(cJSON_GetArraySize(at(j, "/gates/0/attempts")), 1);
}

/* Each attempt keeps its own word; only the check is the commit's. */
static void rows_of_a_gate_say_their_own_verdict(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_JSON cJSON *gate = NULL;
    AUTO_JSON cJSON *first = NULL;
    struct package ok;
    struct package later;

    baseline(f, NULL);
    store_fixture_run(f, &(struct package_options){.executable = 2}, "OK", &ok);
    store_fixture_run(f, &(struct package_options){.executable = 2, .capacity = 7},
                      "NON_COMPARABLE", &later);
    MUST(doc_gate(f->store, PACKAGE_PROJECT, PACKAGE_GATE, &gate, E));
    MUST(doc_run(f->store, ok.run, &first, E));
    assert_string_equal(text_at(gate, "/runs/0/verdict"), "NON_COMPARABLE");
    assert_string_equal(text_at(gate, "/runs/1/verdict"), "OK");
    assert_string_equal(text_at(gate, "/runs/1/check/verdict"), "NON_COMPARABLE");
    assert_string_equal(text_at(gate, "/runs/1/check/run"), later.run);
    assert_true(cJSON_Compare(at(gate, "/runs/1/attempt"), at(first, "/attempt"), true));
    assert_true(num_same(at(first, "/attempt/of")->valuedouble, 2));
    package_free(&ok);
    package_free(&later);
}

static void note(void *ctx, bool problem, const char *text)
{
    (void) ctx;
    (void) problem;
    (void) text;
}

static cJSON *verdict_of(struct store_fixture *f, const char *run)
{
    AUTO_FREE char *text = NULL;
    size_t len = 0;

    MUST(doc_verdict(f->store, run, &text, &len, E));
    return parsed(text, len);
}

/* The gate's verdict in home, project and gate documents. */
static void expect_everywhere(struct store_fixture *f, const char *run, const char *verdict)
{
    const struct store_viewer viewer = {.all = true};
    AUTO_JSON cJSON *home = NULL;
    AUTO_JSON cJSON *project = NULL;
    AUTO_JSON cJSON *gate = NULL;
    AUTO_JSON cJSON *given = NULL;

    MUST(doc_home(f->store, &viewer, &home, E));
    MUST(doc_project(f->store, PACKAGE_PROJECT, &project, E));
    MUST(doc_gate(f->store, PACKAGE_PROJECT, PACKAGE_GATE, &gate, E));
    given = verdict_of(f, run);
    assert_string_equal(text_at(home, "/gates/0/verdict"), verdict);
    assert_string_equal(text_at(project, "/gates/0/verdict"), verdict);
    assert_string_equal(text_at(project, "/commits/0/verdict"), verdict);
    assert_string_equal(text_at(gate, "/runs/0/verdict"), verdict);
    assert_string_equal(text_at(given, "/verdict"), verdict);
    assert_int_equal(strncmp(text_at(given, "/description"), verdict, strlen(verdict)), 0);
}

/* However it is found: asking for the commit's status, looking at the run, checking the store. */
static void damaged_evidence_is_never_green(void **state)
{
    struct store_fixture *f = fixture(state);
    struct upkeep_fsck n;
    struct package p;

    baseline(f, NULL);
    store_fixture_run(f, &(struct package_options){.executable = 2}, "OK", &p);
    store_fixture_expect(f, PACKAGE_COMMIT, "OK");
    expect_everywhere(f, p.run, "OK");
    for (int way = 0; way < 3; way++) {
        AUTO_JSON cJSON *run_doc = NULL;
        AUTO_JSON cJSON *again = NULL;
        AUTO_JSON cJSON *j = NULL;
        struct digest cursor = {.bytes = {0}};

        store_fixture_flip(f, p.hex, 3000);
        if (way == 0) { /* the first look says it at once */
            MUST(doc_run(f->store, p.run, &run_doc, E));
            assert_string_equal(text_at(run_doc, "/verdict/verdict"), "INVALID");
            assert_string_equal(text_at(run_doc, "/verdict/reasons/0/code"), "IN-HASH");
            assert_int_equal(strncmp(text_at(run_doc, "/verdict/description"), "INVALID ", 8), 0);
        }
        if (way == 1)
            MUST(upkeep_fsck(f->store, note, NULL, &n, E));
        for (int i = 0; way == 2 && i < 3; i++)
            store_scrub(f->store, &cursor);
        expect_everywhere(f, p.run, "INVALID");
        j = store_fixture_check(f, PACKAGE_COMMIT);
        assert_string_equal(text_at(j, "/verdict"), "INVALID");
        assert_non_null(strstr(text_at(j, "/gates/0/description"), "IN-HASH"));
        MUST(doc_run(f->store, p.run, &again, E));
        assert_true(cJSON_IsTrue(at(again, "/evidence/damaged")));
        assert_string_equal(text_at(again, "/verdict/verdict"), "INVALID");
        assert_string_equal(text_at(again, "/verdict/reasons/0/code"), "IN-HASH");
        store_fixture_flip(f, p.hex, 3000); /* the same bytes again */
        store_fixture_expect(f, PACKAGE_COMMIT, "OK");
        expect_everywhere(f, p.run, "OK");
    }
    store_fixture_flip(f, p.hex, 3000); /* nobody has looked yet */
    store_fixture_expect(f, PACKAGE_COMMIT, "INVALID");
    expect_everywhere(f, p.run, "INVALID");
    assert_false(store_fixture_put(f, p.archive, p.archive_len)); /* heals */
    expect_everywhere(f, p.run, "OK");
    package_free(&p);
}

static void execute(struct store_fixture *f, const char *sql)
{
    AUTO_FREE char *path = test_join(f->data, "cleanrun.db");
    sqlite3 *other = NULL;

    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
}

/* On a full disk damage can be seen but not recorded: then there is no answer, never a green one.
 */
static void damage_that_cannot_be_recorded_is_never_green(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_JSON cJSON *run_doc = NULL;
    AUTO_FREE char *text = NULL;
    cJSON *none = NULL;
    struct store_run row;
    struct package p;
    struct err e = ERR_INIT;
    size_t len = 0;

    baseline(f, NULL);
    store_fixture_run(f, &(struct package_options){.executable = 2}, "OK", &p);
    MUST(store_run_get(f->store, p.run, &row, E));
    execute(f, "CREATE TRIGGER full BEFORE INSERT ON damage BEGIN SELECT RAISE(FAIL, 'full'); END");
    store_fixture_flip(f, p.hex, 3000);
    assert_int_equal(doc_check(f->store, PACKAGE_PROJECT, PACKAGE_COMMIT, &none, &e), -1);
    assert_int_equal(e.kind, ERR_SYS);
    assert_int_equal(doc_verdict(f->store, p.run, &text, &len, &e), -1);
    assert_int_equal(doc_compare(f->store, p.run, row.baseline, &none, &e), -1);
    MUST(doc_run(f->store, p.run, &run_doc, E));
    assert_string_equal(text_at(run_doc, "/verdict/verdict"), "INVALID");
    assert_string_equal(text_at(run_doc, "/verdict/reasons/0/code"), "IN-HASH");
    assert_int_equal(strncmp(text_at(run_doc, "/verdict/description"), "INVALID IN-HASH", 15), 0);
    execute(f, "DROP TRIGGER full");
    store_fixture_expect(f, PACKAGE_COMMIT, "INVALID");
    store_run_fini(&row);
    package_free(&p);
}

/* A REGRESSION does not go away by damaging what shows it. */
static void damaged_regression_still_stands(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package red;
    struct package green;

    baseline(f, NULL);
    store_fixture_run(f, &(struct package_options){.executable = 2, .probes = 2}, "REGRESSION",
                      &red);
    store_fixture_run(f, &(struct package_options){.executable = 2}, "OK", &green);
    store_fixture_expect(f, PACKAGE_COMMIT, "REGRESSION");
    store_fixture_flip(f, red.hex, 3000);
    store_fixture_expect(f, PACKAGE_COMMIT, "REGRESSION");
    package_free(&red);
    package_free(&green);
}

/* The order of arrival is the order of the rows, whatever the server's clock said. */
static void clock_that_steps_back_decides_nothing(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package green;
    struct package red;

    baseline(f, NULL);
    store_fixture_run(f, &(struct package_options){.executable = 2}, "OK", &green);
    store_fixture_expect(f, PACKAGE_COMMIT, "OK");
    f->clock_off_us = -INT64_C(60000000);
    store_fixture_run(f, &(struct package_options){.executable = 3, .rate = 5}, "FAIL", &red);
    store_fixture_expect(f, PACKAGE_COMMIT, "FAIL");
    expect_everywhere(f, red.run, "FAIL");
    package_free(&green);
    package_free(&red);
}

static void refused_upload(struct store_fixture *f, const char *gate)
{
    const struct record_attempt a = {.project_id = f->project_id,
                                     .is_signed = true,
                                     .gate = gate,
                                     .machine_class = PACKAGE_CLASS,
                                     .commit = PACKAGE_COMMIT,
                                     .code = "IN-JSON",
                                     .detail = "why",
                                     .problem = "{}",
                                     .problem_len = 2,
                                     .at_us = clock_realtime_us()};

    MUST(record_attempt_add(f->store, &a, E));
}

/* The same again and again must not close the check of a commit. */
static void uploads_of_a_commit_are_bounded(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_JSON cJSON *j = NULL;
    AUTO_JSON cJSON *project = NULL;
    struct ingest_result r;
    struct package p;

    baseline(f, NULL);
    for (int i = 0; i < LIMIT_COMMIT_UPLOADS; i++)
        refused_upload(f, PACKAGE_GATE);
    package_make(&(struct package_options){.executable = 2}, f->key, &p);
    store_fixture_push(f, &p, &r);
    assert_int_equal(r.outcome, INGEST_CONFLICT);
    assert_non_null(strstr(r.err.text, "make a new commit"));
    ingest_result_fini(&r);
    package_free(&p);
    j = store_fixture_check(f, PACKAGE_COMMIT);
    assert_int_equal(cJSON_GetArraySize(at(j, "/gates/0/attempts")), LIMIT_COMMIT_UPLOADS);
    assert_string_equal(text_at(j, "/verdict"), "INVALID");
    MUST(doc_project(f->store, PACKAGE_PROJECT, &project, E));
    assert_null(at(project, "/commits/0/gates/0/attempts"));
    store_fixture_run(f, &(struct package_options){.commit = OTHER_COMMIT}, "OK", NULL);
}

/* A key that is registered may be stolen: it must not close the project's pages. */
static void gates_of_a_project_are_bounded(void **state)
{
    struct store_fixture *f = fixture(state);
    const struct store_viewer viewer = {.all = true};
    AUTO_JSON cJSON *j = NULL;
    AUTO_JSON cJSON *project = NULL;
    AUTO_JSON cJSON *home = NULL;
    struct ingest_result r;
    struct package p;

    baseline(f, NULL);
    for (int i = 1; i < LIMIT_PROJECT_GATES; i++) {
        char gate[32];

        (void) snprintf(gate, sizeof gate, "many-%d", i);
        refused_upload(f, gate);
    }
    for (int lie = 0; lie < 2; lie++) { /* sound evidence, and a refused one */
        package_make(
            &(struct package_options){.gate = "one-more",
                                      .lie = lie ? PACKAGE_ACCEPTANCE_VALUE : PACKAGE_HONEST},
            f->key, &p);
        (void) store_fixture_put(f, p.archive, p.archive_len);
        store_fixture_post(f, "one-more", p.envelope, p.envelope_len, &r);
        assert_int_equal(r.outcome, INGEST_CONFLICT);
        assert_non_null(strstr(r.err.text, "or use another project"));
        ingest_result_fini(&r);
        package_free(&p);
    }
    j = store_fixture_check(f, PACKAGE_COMMIT);
    assert_int_equal(cJSON_GetArraySize(at(j, "/gates")), LIMIT_PROJECT_GATES);
    assert_string_equal(text_at(j, "/verdict"), "INVALID");
    run(f, 1.31, 2, "OK"); /* a known gate still takes runs */
    store_fixture_expect(f, PACKAGE_COMMIT, "INVALID");
    MUST(doc_project(f->store, PACKAGE_PROJECT, &project, E));
    assert_int_equal(cJSON_GetArraySize(at(project, "/gates")), LIMIT_PROJECT_GATES);
    MUST(doc_home(f->store, &viewer, &home, E));
}

static void object_exchanged_for_a_pipe_is_damage(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package p;
    char path[512];

    baseline(f, NULL);
    store_fixture_run(f, &(struct package_options){.executable = 2}, "OK", &p);
    store_fixture_expect(f, PACKAGE_COMMIT, "OK");
    (void) snprintf(path, sizeof path, "%s/objects/%.2s/%s", f->data, p.hex, p.hex + 2);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    store_fixture_expect(f, PACKAGE_COMMIT, "INVALID");
    expect_everywhere(f, p.run, "INVALID");
    (void) store_fixture_put(f, p.archive, p.archive_len); /* heals */
    store_fixture_expect(f, PACKAGE_COMMIT, "OK");
    package_free(&p);
}

#define T(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(unknown_commit_is_pending),
        T(verdict_of_the_only_gate_is_the_check),
        T(deleted_gate_is_not_green),
        T(retrying_until_green_is_red),
        T(standing_regression_shows_everywhere),
        T(confirm_rule_lets_agreeing_runs_decide),
        T(later_confirm_rule_changes_no_earlier_check),
        T(latest_complete_attempt_decides),
        T(diagnostic_run_is_no_answer),
        T(runner_cannot_spoil_another_class),
        T(rows_of_a_gate_say_their_own_verdict),
        T(damaged_evidence_is_never_green),
        T(damage_that_cannot_be_recorded_is_never_green),
        T(damaged_regression_still_stands),
        T(clock_that_steps_back_decides_nothing),
        T(gates_of_a_project_are_bounded),
        T(uploads_of_a_commit_are_bounded),
        T(object_exchanged_for_a_pipe_is_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
