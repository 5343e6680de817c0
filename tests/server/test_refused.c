/* What is answered to a refused upload, what is kept of it, and on whom it counts: a statement
 * speaks for a commit only within what its signer, its address and its mode allow. And the queue in
 * front of all that. */
#include "tests/server/store_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "evidence/dsse.h"

#define COMMIT_64 PACKAGE_COMMIT "0123456789abcdef01234567"

/* What the commit's check says now. */
static void check_is(struct store_fixture *f, const char *commit, const char *verdict)
{
    AUTO_JSON cJSON *check = NULL;

    MUST(doc_check(f->store, PACKAGE_PROJECT, commit, &check, E));
    if (strcmp(text_at(check, "/verdict"), verdict) != 0)
        fail_msg("check of %s is %s, wanted %s", commit, text_at(check, "/verdict"), verdict);
}

static void refusal_counts_on_the_commit_it_may_speak_for(void **state)
{
    static const struct {
        struct package_options o;
        const char *verdict;
    } rows[] = {
        {{.commit = "1123456789abcdef0123456789abcdef01234567", .project = "demo/other"},
         "PENDING"},
        {{.commit = "2123456789abcdef0123456789abcdef01234567", .gate = "other-gate"}, "PENDING"},
        {{.commit = "3123456789abcdef0123456789abcdef01234567", .machine_class = "faster"},
         "PENDING"},
        {{.commit = "4123456789abcdef0123456789abcdef01234567",
          .mode = "memory",
          .forge = "/executable/size",
          .forged = "0"},
         "PENDING"},
        {{.commit = "5123456789abcdef0123456789abcdef01234567",
          .forge = "/executable/size",
          .forged = "0"},
         "INVALID"},
        {{.commit = COMMIT_64, .lie = PACKAGE_ACCEPTANCE_VALUE}, "INVALID"},
    };
    struct store_fixture *f = fixture(state);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ingest_result r;
        struct package p;

        package_make(&rows[i].o, f->key, &p);
        store_fixture_push(f, &p, &r);
        assert_int_equal(r.outcome, INGEST_INVALID);
        ingest_result_fini(&r);
        package_free(&p);
        check_is(f, rows[i].o.commit, rows[i].verdict);
    }
}

/* Whoever holds a revoked key, or none, says nothing about anybody's commit. */
static void refusal_of_nobodys_key_counts_on_no_commit(void **state)
{
    struct store_fixture *f = fixture(state);
    struct private_key *stranger = package_key_new();
    AUTO_JSON cJSON *gate = NULL;
    struct err e = ERR_INIT;

    store_fixture_refuse(f, stranger, &(struct package_options){.probes = 1}, "IN-KEY");
    MUST(manage_runner_revoke(f->store, "metal-01", "lost", 0, NULL, E));
    store_fixture_refuse(f, f->key, &(struct package_options){.probes = 1}, "IN-KEY");
    check_is(f, PACKAGE_COMMIT, "PENDING");
    assert_int_equal(doc_gate(f->store, PACKAGE_PROJECT, PACKAGE_GATE, &gate, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    private_key_free(stranger);
}

static const cJSON *last_stage(const cJSON *problem)
{
    const cJSON *stages = at(problem, "/stages");
    int n = cJSON_GetArraySize(stages);

    return n > 0 ? cJSON_GetArrayItem(stages, n - 1) : NULL;
}

static void refusal_says_where_it_stopped(void **state)
{
    static const struct {
        struct package_options o;
        bool tickets;
        const char *stage, *code;
    } rows[] = {
        {{.lie = PACKAGE_ACCEPTANCE_VALUE}, false, "replay", "IN-ACCEPTANCE"},
        {{.forge = "/ticket", .forged = "{\"id\":\"t\"}"}, false, "ticket", "IN-TICKET"},
        {{.probes = 1}, true, "ticket", "IN-TICKET"},
    };
    static const struct manage_project tickets = {.tickets = "required"};
    struct store_fixture *f = fixture(state);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ingest_result r;
        struct package p;

        if (rows[i].tickets)
            MUST(manage_project_set(f->store, PACKAGE_PROJECT, &tickets, E));
        package_make(&rows[i].o, f->key, &p);
        store_fixture_push(f, &p, &r);
        assert_int_equal(r.outcome, INGEST_INVALID);
        assert_string_equal(text_at(last_stage(r.problem), "/name"), rows[i].stage);
        assert_string_equal(text_at(last_stage(r.problem), "/result"), "failed");
        assert_string_equal(text_at(last_stage(r.problem), "/code"), rows[i].code);
        assert_string_equal(text_at(r.problem, "/verdict"), "INVALID");
        assert_string_equal(text_at(r.problem, "/project"), PACKAGE_PROJECT);
        assert_string_equal(text_at(r.problem, "/gate"), PACKAGE_GATE);
        assert_string_equal(text_at(r.problem, "/run"), p.run);
        assert_string_equal(text_at(r.problem, "/archive_sha256"), p.hex);
        assert_string_equal(r.run, p.run);
        ingest_result_fini(&r);
        package_free(&p);
    }
}

/* The key that an unsigned upload names is a hint, and is told as one; what names none has none. */
static void refusal_of_a_stranger_names_the_key_he_claims(void **state)
{
    struct store_fixture *f = fixture(state);
    struct private_key *stranger = package_key_new();
    struct dsse d = {.payload = NULL};
    struct ingest_result r;
    struct package p;

    package_make(&(struct package_options){.probes = 1}, stranger, &p);
    MUST(dsse_parse(p.envelope, p.envelope_len, &d, E));
    store_fixture_push(f, &p, &r);
    assert_string_equal(text_at(r.problem, "/keyid"), d.signatures[0].keyid);
    assert_string_equal(text_at(r.problem, "/gate"), PACKAGE_GATE);
    assert_true(cJSON_IsNull(at(r.problem, "/run"))); /* he may name anybody's */
    assert_null(r.run);
    ingest_result_fini(&r);
    dsse_fini(&d);
    store_fixture_post(f, PACKAGE_GATE, "{}", 2, &r);
    assert_string_equal(text_at(r.problem, "/stages/1/result"), "failed");
    assert_string_equal(text_at(r.problem, "/stages/1/code"), "IN-SIGNATURE");
    assert_string_equal(text_at(last_stage(r.problem), "/result"), "not_run");
    assert_true(cJSON_IsNull(at(r.problem, "/archive_sha256")));
    assert_true(cJSON_IsNull(at(r.problem, "/keyid")));
    ingest_result_fini(&r);
    package_free(&p);
    private_key_free(stranger);
}

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t answered; /* under lock, as is the next */
    bool open;
};

/* The first answer is held back until the gate opens, and with it the thread. */
static void hold(void *ctx, struct ingest_result *result)
{
    struct gate *g = ctx;

    ingest_result_fini(result);
    (void) pthread_mutex_lock(&g->lock);
    g->answered++;
    (void) pthread_cond_broadcast(&g->changed);
    while (!g->open)
        (void) pthread_cond_wait(&g->changed, &g->lock);
    (void) pthread_mutex_unlock(&g->lock);
}

static void queue_takes_its_limit_and_no_more(void **state)
{
    struct store_fixture *f = fixture(state);
    struct gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const struct ingest_request r = {.project = "demo/none",
                                     .gate = "g",
                                     .envelope = "{}",
                                     .envelope_len = 2,
                                     .done = hold,
                                     .ctx = &g};
    static const char envelope[LIMIT_ENVELOPE + 1];
    struct ingest_request big = r;
    struct ingest *ingest = NULL;
    struct err e = ERR_INIT;

    MUST(ingest_start(f->store, &ingest, E));
    big.envelope = envelope;
    big.envelope_len = sizeof envelope;
    assert_int_equal(ingest_submit(ingest, &big, &e), -1); /* is not even read */
    assert_int_equal(e.kind, ERR_LIMIT);
    MUST(ingest_submit(ingest, &r, E));
    (void) pthread_mutex_lock(&g.lock);
    while (g.answered == 0)
        (void) pthread_cond_wait(&g.changed, &g.lock);
    (void) pthread_mutex_unlock(&g.lock);
    assert_int_equal(ingest_waiting(ingest), 0);
    for (size_t i = 0; i < LIMIT_QUEUE; i++)
        MUST(ingest_submit(ingest, &r, E));
    assert_int_equal(ingest_waiting(ingest), LIMIT_QUEUE);
    e = (struct err) ERR_INIT;
    assert_int_equal(ingest_submit(ingest, &r, &e), -1);
    assert_int_equal(e.kind, ERR_BUSY);
    (void) pthread_mutex_lock(&g.lock);
    g.open = true;
    (void) pthread_cond_broadcast(&g.changed);
    (void) pthread_mutex_unlock(&g.lock);
    ingest_stop(ingest); /* what was taken is answered first */
    assert_int_equal(g.answered, LIMIT_QUEUE + 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(refusal_counts_on_the_commit_it_may_speak_for),
        T(refusal_of_nobodys_key_counts_on_no_commit),
        T(refusal_says_where_it_stopped),
        T(refusal_of_a_stranger_names_the_key_he_claims),
        T(queue_takes_its_limit_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
