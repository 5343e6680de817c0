/* What the server says of a run that it judged: its signed statement, the documents that it keeps,
 * and by whose policy each was made. */
#include "tests/server/store_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "evidence/dsse.h"
#include "evidence/statement.h"
#include "experiment/definition.h"

#define BASE_URL "https://perf.example"

/* The statement inside the signed verdict of the run. */
static cJSON *signed_statement(struct store_fixture *f, const char *run)
{
    AUTO_FREE char *bytes = NULL;
    struct dsse d = {.payload = NULL};
    size_t len = 0;
    cJSON *statement = NULL;

    MUST(store_run_document(f->store, run, STORE_VERDICT_ENVELOPE, &bytes, &len, E));
    MUST(dsse_parse(bytes, len, &d, E));
    statement = parsed((const char *) d.payload, d.payload_len);
    dsse_fini(&d);
    return statement;
}

static void is(const cJSON *j, const char *pointer, const char *wanted)
{
    if (strcmp(text_at(j, pointer), wanted) != 0)
        fail_msg("%s is '%s', wanted '%s'", pointer, text_at(j, pointer), wanted);
}

static const char *policy_of(const struct definition *d, char hex[DIGEST_HEX_SIZE])
{
    digest_hex(&d->policy_digest, hex);
    return hex;
}

/* The stored definition of a run. */
static void definition_of(struct store_fixture *f, const char *run, struct definition *out)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    MUST(store_run_document(f->store, run, STORE_DEFINITION, &bytes, &len, E));
    MUST(definition_parse(bytes, len, out, E));
}

static void the_signed_verdict_names_what_it_is_about(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_JSON cJSON *first = NULL;
    AUTO_JSON cJSON *second = NULL;
    AUTO_DEFINITION struct definition reviewed = {.gate = NULL};
    AUTO_DEFINITION struct definition own = {.gate = NULL};
    struct package base;
    struct package p;
    struct digest envelope;
    struct store_run row;
    char hex[DIGEST_HEX_SIZE];
    char other[DIGEST_HEX_SIZE];
    char when[CLOCK_RFC3339_SIZE];
    char uri[256];

    store_fixture_baseline(f, NULL, &base);
    first = signed_statement(f, base.run);
    is(first, "/subject/0/digest/sha256", base.hex);
    is(first, "/subject/1/digest/gitCommit", PACKAGE_COMMIT);
    is(first, "/predicate/policy/uri", BASE_URL "/p/" PACKAGE_PROJECT "/" PACKAGE_GATE);
    is(first, "/predicate/verificationResult", "FAILED");

    store_fixture_run(f, &(struct package_options){.tolerance_pct = 50, .executable = 2}, "OK", &p);
    second = signed_statement(f, p.run);
    definition_of(f, base.run, &reviewed);
    definition_of(f, p.run, &own);
    assert_string_not_equal(policy_of(&reviewed, hex), policy_of(&own, other));
    is(second, "/predicate/verificationResult", "PASSED");
    is(second, "/predicate/verifier/id", BASE_URL);
    is(second, "/predicate/policy/digest/sha256", hex); /* the reviewed one */
    (void) snprintf(uri, sizeof uri, BASE_URL "/b/b-%s", base.run);
    is(second, "/predicate/policy/uri", uri);
    (void) snprintf(uri, sizeof uri, BASE_URL "/r/%s", p.run);
    is(second, "/predicate/resourceUri", uri);
    (void) snprintf(uri, sizeof uri,
                    BASE_URL "/api/v1/projects/" PACKAGE_PROJECT "/runs/%s/attestation", p.run);
    is(second, "/predicate/inputAttestations/0/uri", uri);
    envelope = digest_of(p.envelope, p.envelope_len);
    digest_hex(&envelope, hex);
    is(second, "/predicate/inputAttestations/0/digest/sha256", hex);
    MUST(store_run_get(f->store, p.run, &row, E));
    clock_rfc3339(row.received_us, false, when);
    is(second, "/predicate/timeVerified", when);
    store_run_fini(&row);
    package_free(&p);
    package_free(&base);
}

static void the_signed_verdict_says_why_and_of_no_commit_when_dirty(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_JSON cJSON *statement = NULL;
    const cJSON *ours = NULL;
    struct package p;

    store_fixture_run(f, &(struct package_options){.dirty = true}, "NON_COMPARABLE", &p);
    statement = signed_statement(f, p.run);
    assert_null(at(statement, "/subject/1"));
    ours = json_get(at(statement, "/predicate"), STATEMENT_VERDICT_FIELD);
    is(ours, "/state", "NON_COMPARABLE");
    assert_int_equal(cJSON_GetArraySize(at(ours, "/reasons")), 2);
    package_free(&p);
}

/* A run without a verdict is measured by its own definition, whatever was reviewed for others, and
 * claims no comparison. */
static void a_diagnostic_run_is_its_own_measure(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_JSON cJSON *answer = NULL;
    AUTO_JSON cJSON *acceptance = NULL;
    struct err e = ERR_INIT;
    AUTO_FREE char *bytes = NULL;
    struct package p;
    size_t len = 0;

    store_fixture_baseline(f, NULL, NULL);
    store_fixture_run(
        f, &(struct package_options){.mode = "memory", .rate = 10, .min_rate = 1, .executable = 2},
        "null", &p);
    acceptance = stored(f, p.run, STORE_ACCEPTANCE);
    is(acceptance, "/verdict", "PASS");
    answer = stored(f, p.run, STORE_ANSWER);
    is(answer, "/mode", "memory");
    assert_true(cJSON_IsNull(at(answer, "/baseline")));
    assert_null(strstr(text_at(answer, "/links/page"), "/vs/"));
    assert_null(at(answer, "/policy"));
    assert_int_equal(store_run_document(f->store, p.run, STORE_AUDIT, &bytes, &len, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    package_free(&p);
    store_fixture_run(f, &(struct package_options){.build_only = true, .executable = 3}, "null",
                      &p);
    e = (struct err) ERR_INIT;
    assert_int_equal(store_run_document(f->store, p.run, STORE_ACCEPTANCE, &bytes, &len, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    {
        AUTO_JSON cJSON *built = stored(f, p.run, STORE_ANSWER);

        is(built, "/mode", "build-only");
    }
    package_free(&p);
}

/* The kept comparison names both archives; the kept verification has the replay as a stage. */
static void kept_documents_name_both_sides(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_JSON cJSON *audit = NULL;
    AUTO_JSON cJSON *verify = NULL;
    AUTO_JSON cJSON *verdict = NULL;
    const cJSON *stage = NULL;
    const cJSON *last = NULL;
    struct package base;
    struct package p;
    char link[128];

    store_fixture_baseline(f, NULL, &base);
    store_fixture_run(f, &(struct package_options){.executable = 2}, "OK", &p);
    audit = stored(f, p.run, STORE_AUDIT);
    is(audit, "/baseline/evidence_sha256", base.hex);
    is(audit, "/current/evidence_sha256", p.hex);
    verify = stored(f, p.run, STORE_VERIFY);
    cJSON_ArrayForEach(stage, at(verify, "/stages")) {
        last = stage;
        is(stage, "/result", "ok");
    }
    is(last, "/name", "replay");
    verdict = stored(f, p.run, STORE_VERDICT);
    (void) snprintf(link, sizeof link, "/r/%s/vs/b-%s", p.run, base.run);
    is(verdict, "/links/page", link);
    (void) snprintf(link, sizeof link, "/r/%s", p.run);
    is(verdict, "/links/run", link);
    (void) snprintf(link, sizeof link, "/api/v1/projects/" PACKAGE_PROJECT "/runs/%s/verdict",
                    p.run);
    is(verdict, "/links/self", link);
    (void) snprintf(link, sizeof link, "/api/v1/projects/" PACKAGE_PROJECT "/runs/%s/attestation",
                    p.run);
    is(verdict, "/links/attestation", link);
    package_free(&p);
    package_free(&base);
}

/* Sent again, too, it is told what stands against it in its commit's check. */
static void a_repeated_answer_says_what_stands_against_it(void **state)
{
    static const char commit[] = "abcdef0123456789abcdef0123456789abcdef01";
    struct store_fixture *f = fixture(state);
    struct package green;

    store_fixture_baseline(f, NULL, NULL);
    store_fixture_run(f, &(struct package_options){.commit = commit, .probes = 2, .executable = 2},
                      "REGRESSION", NULL);
    package_make(&(struct package_options){.commit = commit, .executable = 2}, f->key, &green);
    for (size_t i = 0; i < 2; i++) {
        AUTO_JSON cJSON *answer = NULL;
        struct ingest_result r;

        store_fixture_push(f, &green, &r);
        assert_int_equal(r.outcome, i == 0 ? INGEST_STORED : INGEST_REPEATED);
        answer = parsed(r.body, r.body_len);
        is(answer, "/verdict", "OK");
        is(answer, "/check/verdict", "REGRESSION");
        ingest_result_fini(&r);
    }
    package_free(&green);
}

#define T(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_signed_verdict_names_what_it_is_about),
        T(the_signed_verdict_says_why_and_of_no_commit_when_dirty),
        T(a_diagnostic_run_is_its_own_measure),
        T(kept_documents_name_both_sides),
        T(a_repeated_answer_says_what_stands_against_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
