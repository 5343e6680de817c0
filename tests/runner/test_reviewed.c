/* The local verdict is by the policy that was reviewed with the baseline, never the branch's. */
#include "tests/runner/project.h"

#include <string.h>

#include "base/digest.h"
#include "base/json_in.h"

/* A measured run of the project as it is, moved to <dir>/base; its manifest's digest. */
static char *baseline_of(const struct project *p, char hex[DIGEST_HEX_SIZE])
{
    char *base = test_join(p->dir, "base");
    char *out = test_join(p->dir, "out");
    struct test_run r;

    project_measure(p, NULL, &r);
    assert_int_equal(r.code, 3);
    test_run_fini(&r);
    assert_int_equal(rename(out, base), 0);
    project_manifest_digest(base, hex);
    free(out);
    return base;
}

static cJSON *last_line(const char *out)
{
    struct err e = ERR_INIT;
    cJSON *j = NULL;
    size_t len = strlen(out);
    const char *line = out;

    while (len > 0 && out[len - 1] == '\n')
        len--;
    for (const char *p = out; p < out + len; p++)
        if (*p == '\n')
            line = p + 1;
    assert_int_equal(json_parse(line, (size_t) (out + len - line), NULL, &j, &e), 0);
    return j;
}

static const char *text_at(const cJSON *object, const char *key)
{
    const cJSON *j = json_get(object, key);

    return cJSON_IsString(j) ? j->valuestring : "";
}

struct case_of_policy {
    const char *source[2], *policy[2]; /* from, to */
    int code;
    const char *verdict, *own_audit, *own_acceptance;
};

static void check(const struct case_of_policy *c)
{
    char hex[DIGEST_HEX_SIZE];
    struct project p;
    struct test_run r;

    project_new(&p, "ok", NULL);
    char *base = baseline_of(&p, hex);

    if (c->source[0])
        project_change(&p, "workload.c", c->source[0], c->source[1]);
    project_change(&p, "cleanrun.yaml", c->policy[0], c->policy[1]);
    const char *const args[] = {"--at", "HEAD", "--baseline", base, "--baseline-sha256", hex, NULL};

    project_measure(&p, args, &r);
    if (r.code != c->code)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, c->code);
    cJSON *j = last_line(r.out);
    const cJSON *policy = json_get(j, "policy");

    assert_string_equal(text_at(j, "verdict"), c->verdict);
    assert_true(cJSON_IsTrue(json_get(policy, "differs")));
    assert_string_equal(text_at(policy, "run_audit"), c->own_audit);
    assert_string_equal(text_at(policy, "run_acceptance"), c->own_acceptance);
    assert_non_null(strstr(text_at(policy, "text"), "gains nothing until reviewed"));
    /* Evidence still replays: it holds what the run's own definition gives. */
    char *path = project_out(&p, "audit.json");
    char *own = test_read_path(path, NULL);

    assert_non_null(strstr(own, c->own_audit));
    free(own);
    free(path);
    path = project_out(&p, "audit.md");
    own = test_read_path(path, NULL);
    assert_non_null(strstr(own, "Judged by the policy reviewed with the baseline"));
    free(own);
    free(path);
    cJSON_Delete(j);
    test_run_fini(&r);
    free(base);
    project_free(&p);
}

static void a_loosened_tolerance_gains_nothing(void **state)
{
    static const struct case_of_policy c = {
        {"\\\"n\\\": 3, \\\"errors", "\\\"n\\\": 5, \\\"errors"},
        {"tolerance_pct: 10", "tolerance_pct: 90"},
        1,
        "REGRESSION",
        "OK",
        "PASS"};

    (void) state;
    check(&c);
}

static void a_loosened_check_gains_nothing(void **state)
{
    static const struct case_of_policy c = {{"\\\"rate\\\": 7}, \\\"results\\\": {\\\"n\\\": 3, ",
                                             "\\\"rate\\\": 8}, \\\"results\\\": {\\\"n\\\": 3, "},
                                            {"equals: 7", "equals: 8"},
                                            4,
                                            "FAIL",
                                            "NON_COMPARABLE",
                                            "PASS"};

    (void) state;
    check(&c);
}

/* As on the server: a check that the branch adds judges nobody before it is reviewed. */
static void a_tightened_check_waits_for_its_review(void **state)
{
    static const struct case_of_policy c = {
        {NULL, NULL},
        {"equals: 7}\n", "equals: 7}\n        - {name: n, path: /results/n, equals: 4}\n"},
        0,
        "OK",
        "OK",
        "FAIL"};

    (void) state;
    check(&c);
}

/* What the runner found amiss fails the run by any policy, also beside an acceptance that failed by
 * the branch's own; and the evidence tells a server how much it was. */
static void an_own_check_that_fails_hides_no_fault(void **state)
{
    char hex[DIGEST_HEX_SIZE];
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    char *base = baseline_of(&p, hex);
    const char *const args[] = {"--at", "HEAD", "--baseline", base, "--baseline-sha256", hex, NULL};

    project_change(&p, "cleanrun.yaml", "equals: 7}\n",
                   "equals: 7}\n        - {name: n, path: /results/n, equals: 4}\n");
    project_change(&p, "workload.c", "window_start", "window_begin");
    project_measure(&p, args, &r);
    if (r.code != 4)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 4);
    cJSON *host = project_json(&p, "host.json");

    assert_int_equal(json_get(host, "faults")->valueint, 1);
    cJSON_Delete(host);
    test_run_fini(&r);
    free(base);
    project_free(&p);
}

static void text_names_policy_metric_and_limit(void **state)
{
    char hex[DIGEST_HEX_SIZE];
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    char *base = baseline_of(&p, hex);
    char *out = test_join(p.dir, "out");

    project_change(&p, "workload.c", "\\\"n\\\": 3, \\\"errors", "\\\"n\\\": 5, \\\"errors");
    project_change(&p, "cleanrun.yaml", "tolerance_pct: 10", "tolerance_pct: 90");
    const char *const args[] = {
        "run", "g", "--at", "HEAD", "--out", out, "--baseline", base, "--baseline-sha256",
        hex,   NULL};

    project_cleanrun(&p, args, NULL, &r);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "gains nothing until reviewed"));
    assert_non_null(strstr(r.err, "s/p.json: n 5 items, before 3 items, +66.7 %; limit +10 %\n"));
    assert_non_null(strstr(r.err, "REGRESSION"));
    test_run_fini(&r);
    const char *const show[] = {"show", out, NULL};

    project_cleanrun(&p, show, NULL, &r);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "differs from the one reviewed with the baseline"));
    assert_non_null(strstr(r.out, "reviewed with the baseline: REGRESSION"));
    test_run_fini(&r);
    /* Nor does a package of such runs pass. */
    char *start = test_join(out, "source-at-start.json");
    char *packed = test_join(p.dir, "packed");
    const char *const package[] = {"package", out,     "--count", "1", "--source-at-start",
                                   start,     "--out", packed,    NULL};

    project_cleanrun(&p, package, NULL, &r);
    if (r.code != 5)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 5);
    assert_non_null(strstr(r.err, "its comparison is REGRESSION"));
    test_run_fini(&r);
    free(packed);
    free(start);
    free(out);
    free(base);
    project_free(&p);
}

/* The absolute limits of the reviewed policy stand in a package, too. */
static void a_loosened_check_is_not_packaged(void **state)
{
    char hex[DIGEST_HEX_SIZE];
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    project_change(&p, "cleanrun.yaml", "equals: 7}\n",
                   "equals: 7}\n        - {name: many, path: /results/n, equals: 3}\n");
    char *base = baseline_of(&p, hex);
    char *out = test_join(p.dir, "out");
    char *start = test_join(out, "source-at-start.json");
    char *packed = test_join(p.dir, "packed");
    const char *const args[] = {"--at", "HEAD", "--baseline", base, "--baseline-sha256", hex, NULL};
    const char *const package[] = {"package", out,     "--count", "1", "--source-at-start",
                                   start,     "--out", packed,    NULL};

    project_change(&p, "workload.c", "\\\"n\\\": 3, \\\"errors", "\\\"n\\\": 2, \\\"errors");
    project_change(&p, "cleanrun.yaml", "/results/n, equals: 3", "/results/n, equals: 2");
    project_measure(&p, args, &r);
    assert_int_equal(r.code, 4);
    test_run_fini(&r);
    project_cleanrun(&p, package, NULL, &r);
    if (r.code != 5)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 5);
    assert_non_null(strstr(r.err, "by the policy reviewed with the baseline"));
    test_run_fini(&r);
    free(packed);
    free(start);
    free(out);
    free(base);
    project_free(&p);
}

/* As on the server: what failed by its own rules is nothing to be measured by. */
static void a_failed_run_is_no_baseline(void **state)
{
    char hex[DIGEST_HEX_SIZE];
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    char *base = test_join(p.dir, "base");
    char *out = test_join(p.dir, "out");
    const char *const args[] = {"--at", "HEAD", "--baseline", base, "--baseline-sha256", hex, NULL};

    project_change(&p, "workload.c", "window_start", "window_begin");
    project_measure(&p, NULL, &r);
    assert_int_equal(r.code, 4);
    test_run_fini(&r);
    assert_int_equal(rename(out, base), 0);
    project_manifest_digest(base, hex);
    project_change(&p, "workload.c", "window_begin", "window_start");
    project_measure(&p, args, &r);
    if (r.code != 2)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "its status is FAIL"));
    test_run_fini(&r);
    free(out);
    free(base);
    project_free(&p);
}

/* A package made in the second of the run's end. */
static void a_run_can_be_packaged_at_once(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "ok", NULL);
    char *out = test_join(p.dir, "out");
    char *start = test_join(out, "source-at-start.json");
    char *packed = test_join(p.dir, "packed");
    const char *const package[] = {"package", out,     "--count", "1", "--source-at-start",
                                   start,     "--out", packed,    NULL};

    project_measure(&p, NULL, &r);
    assert_int_equal(r.code, 3);
    test_run_fini(&r);
    project_cleanrun(&p, package, NULL, &r);
    if (r.code != 0)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    free(packed);
    free(start);
    free(out);
    project_free(&p);
}

static void show_tells_why_a_run_failed(void **state)
{
    struct project p;
    struct test_run r;

    (void) state;
    project_new(&p, "edit-source, REPO", NULL);
    char *out = test_join(p.dir, "out");
    const char *const show[] = {"show", out, NULL};

    project_measure(&p, NULL, &r);
    assert_int_equal(r.code, 4);
    test_run_fini(&r);
    project_cleanrun(&p, show, NULL, &r);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "fault     the source changed during the run: "));
    test_run_fini(&r);
    free(out);
    project_free(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loosened_tolerance_gains_nothing),
        cmocka_unit_test(a_loosened_check_gains_nothing),
        cmocka_unit_test(a_tightened_check_waits_for_its_review),
        cmocka_unit_test(an_own_check_that_fails_hides_no_fault),
        cmocka_unit_test(a_loosened_check_is_not_packaged),
        cmocka_unit_test(a_failed_run_is_no_baseline),
        cmocka_unit_test(a_run_can_be_packaged_at_once),
        cmocka_unit_test(show_tells_why_a_run_failed),
        cmocka_unit_test(text_names_policy_metric_and_limit),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/reviewed", tests, NULL, NULL);
}
