/* The documents have the fields that the pages' examples show, and say what is stored. */
#include "tests/server/store_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"

static cJSON *example(const char *name)
{
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    assert_true(asprintf(&path, "tests/data/pages/%s.json", name) > 0);
    bytes = test_read(path, &len);
    return parsed(bytes, len);
}

static void check_keys(const cJSON *wanted, const cJSON *have, const char *where,
                       const char *const *skip)
{
    const cJSON *w = NULL;

    cJSON_ArrayForEach(w, wanted) {
        const cJSON *h = json_get(have, w->string);
        char path[512];
        bool skipped = false;

        (void) snprintf(path, sizeof path, "%s/%s", where, w->string);
        for (size_t i = 0; skip && skip[i]; i++)
            skipped = skipped || strcmp(skip[i], path) == 0;
        if (skipped)
            continue;
        if (!h)
            fail_msg("%s is missing", path);
        if (cJSON_IsObject(w) && cJSON_IsObject(h))
            check_keys(w, h, path, skip);
        else if (cJSON_IsArray(w) && cJSON_IsArray(h) && cJSON_IsObject(w->child) &&
                 cJSON_IsObject(h->child))
            check_keys(w->child, h->child, path, skip);
        else if (!cJSON_IsNull(w) && !cJSON_IsNull(h) &&
                 strcmp(json_type_name(w), json_type_name(h)) != 0 &&
                 !(cJSON_IsNumber(w) && cJSON_IsNumber(h)))
            fail_msg("%s is %s, the example has %s", path, json_type_name(h), json_type_name(w));
    }
}

/* Parts that come from other documents, or from what the fixture's workload does not have. */
static const char *const foreign[] = {"/manifest",          "/acceptance/checks",
                                      "/verdict/audit",     "/audit",
                                      "/acceptance/report", "/series",
                                      "/verdict/ticket",    NULL};

/* A baseline, an OK, a REGRESSION (damaged or not), a refused one. */
static void fill(struct store_fixture *f, struct package *base, struct package *ok,
                 struct package *bad)
{
    struct ingest_result r;
    struct package lie;

    store_fixture_run(f, NULL, "NON_COMPARABLE", base);
    store_fixture_approve(f, base->run);
    store_fixture_run(f, &(struct package_options){.probes = 1.312, .executable = 2}, "OK", ok);
    store_fixture_run(f, &(struct package_options){.probes = 2, .executable = 3}, "REGRESSION",
                      bad);
    package_make(&(struct package_options){.lie = PACKAGE_ACCEPTANCE_VALUE}, f->key, &lie);
    store_fixture_push(f, &lie, &r);
    assert_int_equal(r.outcome, INGEST_INVALID);
    ingest_result_fini(&r);
    package_free(&lie);
}

static void drop(struct package *a, struct package *b, struct package *c)
{
    package_free(a);
    package_free(b);
    package_free(c);
}

static void lists_have_the_fields_of_their_pages(void **state)
{
    struct store_fixture *f = fixture(state);
    const struct store_viewer all = {.all = true};
    struct package base;
    struct package ok;
    struct package bad;
    struct private_key *stranger = package_key_new();
    struct ingest_result r;
    struct package unsigned_one;
    AUTO_JSON cJSON *home = NULL;
    AUTO_JSON cJSON *project = NULL;
    AUTO_JSON cJSON *gate = NULL;
    AUTO_JSON cJSON *baselines = NULL;
    AUTO_JSON cJSON *baseline = NULL;
    AUTO_JSON cJSON *commit = NULL;
    AUTO_JSON cJSON *w1 = example("home");
    AUTO_JSON cJSON *w2 = example("project");
    AUTO_JSON cJSON *w3 = example("gate");
    AUTO_JSON cJSON *w4 = example("baselines");
    AUTO_JSON cJSON *w5 = example("baseline");
    AUTO_JSON cJSON *w6 = example("commit");
    char id[64];

    fill(f, &base, &ok, &bad);
    package_make(&(struct package_options){.probes = 1}, stranger, &unsigned_one);
    store_fixture_push(f, &unsigned_one, &r);
    ingest_result_fini(&r);
    (void) snprintf(id, sizeof id, "b-%s", base.run);
    MUST(doc_home(f->store, &all, &home, E));
    MUST(doc_project(f->store, PACKAGE_PROJECT, &project, E));
    MUST(doc_gate(f->store, PACKAGE_PROJECT, PACKAGE_GATE, &gate, E));
    MUST(doc_baselines(f->store, PACKAGE_PROJECT, PACKAGE_GATE, &baselines, E));
    MUST(doc_baseline(f->store, id, &baseline, E));
    MUST(doc_check(f->store, PACKAGE_PROJECT, PACKAGE_COMMIT, &commit, E));
    check_keys(w1, home, "", NULL);
    check_keys(w2, project, "", NULL);
    check_keys(w3, gate, "", NULL);
    check_keys(w4, baselines, "", NULL);
    check_keys(w5, baseline, "", NULL);
    check_keys(w6, commit, "", NULL);
    assert_int_equal(at(home, "/totals/REGRESSION")->valueint, 1);
    assert_int_equal(at(home, "/totals/OK")->valueint, 0);
    assert_int_equal(cJSON_GetArraySize(at(home, "/gates/0/recent")), 3);
    assert_string_equal(text_at(home, "/gates/0/recent/2"), "REGRESSION");
    assert_int_equal(cJSON_GetArraySize(at(project, "/unsigned_attempts")), 1);
    assert_int_equal(cJSON_GetArraySize(at(gate, "/runs")), 3);
    assert_int_equal(at(gate, "/runs/0/attempt/n")->valueint, 3);
    assert_int_equal(at(gate, "/runs/0/attempt/of")->valueint, 4);
    assert_int_equal(cJSON_GetArraySize(at(gate, "/history/0/points")), 3);
    assert_string_equal(text_at(gate, "/history/0/label"), "hash probes");
    assert_true(at(gate, "/history/0/points/2/value")->valuedouble > 1.99);
    assert_int_equal(cJSON_GetArraySize(at(baseline, "/uses")), 2);
    package_free(&unsigned_one);
    private_key_free(stranger);
    drop(&base, &ok, &bad);
}

static void run_and_comparison_have_the_fields_of_their_pages(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package base;
    struct package ok;
    struct package bad;
    AUTO_JSON cJSON *run = NULL;
    AUTO_JSON cJSON *compare = NULL;
    AUTO_JSON cJSON *w1 = example("run-regression");
    AUTO_JSON cJSON *w2 = example("compare-regression");
    char id[64];

    fill(f, &base, &ok, &bad);
    (void) snprintf(id, sizeof id, "b-%s", base.run);
    MUST(doc_run(f->store, bad.run, &run, E));
    MUST(doc_compare(f->store, bad.run, id, &compare, E));
    check_keys(w1, run, "", foreign);
    check_keys(w2, compare, "", foreign);
    assert_true(cJSON_IsFalse(at(run, "/evidence/damaged")));
    assert_string_equal(text_at(run, "/manifest/run"), bad.run);
    assert_string_equal(text_at(run, "/verdict/verdict"), "REGRESSION");
    assert_int_equal(cJSON_GetArraySize(at(run, "/series/samples")), 3);
    assert_true(cJSON_IsFalse(at(compare, "/informational")));
    assert_string_equal(text_at(compare, "/verdict"), "REGRESSION");
    assert_string_equal(text_at(compare, "/audit/comparisons/0/verdict"), "regression");
    assert_string_equal(text_at(compare, "/baseline/reviewed/by"), "a.reviewer");
    drop(&base, &ok, &bad);
}

/* The first step of what to do next, "" when there is none. */
static const char *first_step(const cJSON *document)
{
    return text_at(document, "/next/0/text");
}

static void a_promoted_run_is_not_to_be_promoted_again(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package first;
    struct package twin;
    struct package bad;
    AUTO_JSON cJSON *before = NULL;
    AUTO_JSON cJSON *after = NULL;
    AUTO_JSON cJSON *beside = NULL;
    AUTO_JSON cJSON *compare = NULL;
    AUTO_JSON cJSON *old = NULL;
    char id[64];

    store_fixture_run(f, NULL, "NON_COMPARABLE", &first);
    store_fixture_run(f, &(struct package_options){.executable = 4}, "NON_COMPARABLE", &twin);
    MUST(doc_run(f->store, first.run, &before, E));
    assert_true(cJSON_IsNull(at(before, "/promoted")));
    assert_non_null(strstr(text_at(before, "/next/0/command"), "baseline approve"));
    store_fixture_approve(f, first.run);
    (void) snprintf(id, sizeof id, "b-%s", first.run);
    MUST(doc_run(f->store, first.run, &after, E));
    assert_string_equal(text_at(after, "/promoted/id"), id);
    assert_string_equal(text_at(after, "/promoted/state"), "current");
    assert_non_null(strstr(first_step(after), "This run is the reviewed baseline now"));
    assert_null(strstr(text_at(after, "/next/0/command"), "approve"));
    MUST(doc_run(f->store, twin.run, &beside, E)); /* nor another one, now that there is one */
    assert_true(cJSON_IsNull(at(beside, "/promoted")));
    assert_non_null(strstr(first_step(beside), "has been reviewed since"));

    store_fixture_run(f, &(struct package_options){.probes = 2, .executable = 3}, "REGRESSION",
                      &bad);
    store_fixture_approve(f, bad.run);
    MUST(doc_compare(f->store, bad.run, id, &compare, E));
    assert_non_null(strstr(text_at(compare, "/next/1/text"), "a reviewer made this run"));
    assert_true(cJSON_IsNull(at(compare, "/next/1/command")));
    MUST(doc_run(f->store, first.run, &old, E));
    assert_string_equal(text_at(old, "/promoted/state"), "superseded");
    drop(&first, &twin, &bad);
}

static void run_against_run_is_only_information(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package base;
    struct package ok;
    struct package bad;
    AUTO_JSON cJSON *compare = NULL;
    AUTO_JSON cJSON *self = NULL;
    struct err e = ERR_INIT;

    fill(f, &base, &ok, &bad);
    MUST(doc_compare(f->store, bad.run, ok.run, &compare, E));
    assert_true(cJSON_IsTrue(at(compare, "/informational")));
    assert_true(cJSON_IsNull(at(compare, "/verdict")));
    assert_string_equal(text_at(compare, "/audit/verdict"), "REGRESSION");
    MUST(doc_compare(f->store, ok.run, ok.run, &self, E));
    assert_string_equal(text_at(self, "/audit/verdict"), "NON_COMPARABLE");
    assert_string_equal(text_at(self, "/audit/reasons/0/code"), "NC-SAME-EVIDENCE");
    json_free(self);
    self = NULL;
    assert_int_equal(doc_compare(f->store, ok.run, "b-20200101T000000Z-00000000", &self, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    drop(&base, &ok, &bad);
}

static void damaged_object_is_said_and_not_shown(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package base;
    struct package ok;
    struct package bad;
    AUTO_JSON cJSON *run = NULL;
    AUTO_JSON cJSON *compare = NULL;
    AUTO_JSON cJSON *again = NULL;
    char id[64];

    fill(f, &base, &ok, &bad);
    (void) snprintf(id, sizeof id, "b-%s", base.run);
    store_fixture_flip(f, ok.hex, ok.archive_len / 2);
    MUST(doc_run(f->store, ok.run, &run, E));
    assert_true(cJSON_IsTrue(at(run, "/evidence/damaged")));
    assert_string_equal(text_at(run, "/evidence/stages/0/result"), "failed");
    assert_string_equal(text_at(run, "/evidence/stages/0/code"), "IN-HASH");
    assert_true(cJSON_IsNull(at(run, "/series")));
    MUST(doc_compare(f->store, ok.run, id, &compare, E));
    assert_true(cJSON_IsTrue(at(compare, "/current/evidence/damaged")));
    store_fixture_flip(f, ok.hex, ok.archive_len / 2);
    MUST(doc_run(f->store, ok.run, &again, E));
    assert_true(cJSON_IsFalse(at(again, "/evidence/damaged")));
    drop(&base, &ok, &bad);
}

static void private_project_is_seen_by_its_own_only(void **state)
{
    struct store_fixture *f = fixture(state);
    const bool yes = true;
    const struct manage_project change = {.is_private = &yes};
    const struct store_viewer stranger = {.project_id = 0};
    const struct store_viewer own = {.project_id = f->project_id};
    struct package p;
    AUTO_JSON cJSON *a = NULL;
    AUTO_JSON cJSON *b = NULL;

    store_fixture_run(f, NULL, "NON_COMPARABLE", &p);
    MUST(manage_project_set(f->store, PACKAGE_PROJECT, &change, E));
    MUST(doc_home(f->store, &stranger, &a, E));
    assert_int_equal(cJSON_GetArraySize(at(a, "/gates")), 0);
    assert_int_equal(cJSON_GetArraySize(at(a, "/runners")), 0);
    MUST(doc_home(f->store, &own, &b, E));
    assert_int_equal(cJSON_GetArraySize(at(b, "/gates")), 1);
    assert_int_equal(cJSON_GetArraySize(at(b, "/runners")), 1);
    package_free(&p);
}

static void unknown_things_are_absent(void **state)
{
    struct store_fixture *f = fixture(state);
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    assert_int_equal(doc_gate(f->store, PACKAGE_PROJECT, "none", &j, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    assert_int_equal(doc_run(f->store, "20261129T141502Z-9c1e07ab", &j, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    assert_int_equal(doc_baseline(f->store, "b-x", &j, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    MUST(doc_keys(f->store, &j, E));
    assert_string_equal(text_at(j, "/keys/0/use"), "verdicts");
    json_free(j);
}

static void invalid_answer_has_the_fields_of_its_page(void **state)
{
    static const char *const by_http[] = {"/type",
                                          "/title",
                                          "/status",
                                          "/detail",
                                          "/instance",
                                          "/reasons/baseline",
                                          "/reasons/current",
                                          NULL};
    struct store_fixture *f = fixture(state);
    AUTO_JSON cJSON *w = example("invalid");
    struct private_key *stranger = package_key_new();
    struct ingest_result r;
    struct package p;

    package_make(&(struct package_options){.probes = 1}, stranger, &p);
    store_fixture_push(f, &p, &r);
    check_keys(w, r.problem, "", by_http);
    ingest_result_fini(&r);
    package_free(&p);
    private_key_free(stranger);
}

#define T(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(lists_have_the_fields_of_their_pages),
        T(run_and_comparison_have_the_fields_of_their_pages),
        T(a_promoted_run_is_not_to_be_promoted_again),
        T(run_against_run_is_only_information),
        T(damaged_object_is_said_and_not_shown),
        T(private_project_is_seen_by_its_own_only),
        T(unknown_things_are_absent),
        T(invalid_answer_has_the_fields_of_its_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
