/* A run whose runner's key was revoked before it was received, and one whose baseline's was, in
 * every form of its comparison. */
#include "tests/http/uploader.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

static void expect(const struct live *l, const char *run, const char *suffix,
                   const char *const wanted[], const char *absent)
{
    struct raw_response r;
    char *target = NULL;
    char *body;

    assert_true(asprintf(&target, "/r/%s%s", run, suffix) > 0);
    raw_ask(l->port, "GET", target, "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    body = strndup(r.body, r.body_len);
    assert_non_null(body);
    for (size_t i = 0; wanted[i]; i++)
        if (!strstr(body, wanted[i]))
            fail_msg("%s lacks '%s':\n%.3000s", target, wanted[i], body);
    if (strstr(body, absent))
        fail_msg("%s has '%s':\n%.3000s", target, absent, body);
    free(body);
    raw_response_fini(&r);
    free(target);
}

static void every_form_says_in_key(void **state)
{
    static const char why[] = "key was revoked before this run was received";
    const char *const revoke[] = {
        "runner",   "revoke", "machine", "--since", "2020-01-01T00:00:00Z",
        "--reason", "stolen", NULL};
    struct live l;
    struct uploads *u;
    const struct package *base;
    const struct package *run;
    char *told = NULL;
    char vs[96];

    (void) state;
    live_init(&l);
    assert_int_equal(live_admin(&l, (const char *const[]){"migrate", NULL}, NULL), 0);
    u = uploads_new(&l);
    live_start(&l, NULL);
    base = uploads_package(u, 0, 0);
    run = uploads_package(u, 1, 0);
    upload_package(&l, u, base);
    upload_approve(&l, base->run);
    upload_package(&l, u, run);
    assert_int_equal(live_admin(&l, revoke, &told), 0);
    (void) snprintf(vs, sizeof vs, "baseline retire b-%s --project " UPLOAD_PROJECT, base->run);
    if (!strstr(told, vs) || !strstr(told, "judges nobody any more"))
        fail_msg("'%s' does not name the baseline that came from it", told);
    free(told);
    (void) snprintf(vs, sizeof vs, "/vs/b-%s", base->run);
    expect(&l, run->run, vs,
           (const char *const[]){"? INVALID", "IN-KEY", why, "trusted again", NULL},
           "cleanrun-server baseline list");
    (void) snprintf(vs, sizeof vs, "/vs/b-%s.txt", base->run);
    expect(&l, run->run, vs,
           (const char *const[]){"? INVALID", "IN-KEY", why, "trusted again", NULL},
           "baseline list");
    (void) snprintf(vs, sizeof vs, "/vs/b-%s.md", base->run);
    expect(&l, run->run, vs, (const char *const[]){"status: INVALID", "IN-KEY", "revoked", NULL},
           "status: OK");
    expect(&l, run->run, ".txt", (const char *const[]){"IN-KEY", "trusted again", NULL},
           "baseline list");
    uploads_free(u);
    live_fini(&l);
}

static struct private_key *second_runner(struct live *l, const char *machine_class)
{
    struct private_key *key = package_key_new();
    char *pem = package_key_pem(key);
    char *path = test_join(l->dir, "second.pem");
    const char *const argv[] = {"runner", "add", "second",    "--class",      machine_class,
                                "--key",  path,  "--project", UPLOAD_PROJECT, NULL};

    test_write_text(l->dir, "second.pem", pem);
    assert_int_equal(live_admin(l, argv, NULL), 0);
    free(path);
    free(pem);
    return key;
}

/* The baseline's own page: only a revoked one's says so. */
static void expect_page(const struct live *l, const char *base, const char *form, const char *words,
                        bool there)
{
    struct raw_response r;
    char *target = NULL;
    char *body;

    assert_true(asprintf(&target, "/b/b-%s%s", base, form) > 0);
    raw_ask(l->port, "GET", target, "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    body = strndup(r.body, r.body_len);
    assert_non_null(body);
    assert_int_equal(strstr(body, words) != NULL, there);
    free(body);
    raw_response_fini(&r);
    free(target);
}

/* Judged by a run that another key signed, which was revoked afterwards. */
static void every_form_says_that_nobody_judged(void **state)
{
    static const char why[] = "the key behind its baseline was revoked";
    const char *const revoke[] = {
        "runner",   "revoke", "machine", "--since", "2020-01-01T00:00:00Z",
        "--reason", "stolen", NULL};
    struct live l;
    struct uploads *u;
    const struct package *base;
    struct private_key *key;
    struct package run;
    char id[64];
    char vs[96];

    (void) state;
    live_init(&l);
    assert_int_equal(live_admin(&l, (const char *const[]){"migrate", NULL}, NULL), 0);
    u = uploads_new(&l);
    live_start(&l, NULL);
    base = uploads_package(u, 0, 0);
    upload_package(&l, u, base);
    upload_approve(&l, base->run);
    key = second_runner(&l, PACKAGE_CLASS);
    package_make(&(struct package_options){.executable = 2}, key, &run);
    upload_package(&l, u, &run);
    (void) snprintf(id, sizeof id, "/vs/b-%s", base->run);
    expect_page(&l, base->run, "", "key is revoked", false);
    /* an address of its own: an answer may be kept for the moment until the server sees a change */
    expect(&l, run.run, ".json", (const char *const[]){"\"verdict\": \"OK\"", NULL}, why);
    assert_int_equal(live_admin(&l, revoke, NULL), 0);
    expect(&l, run.run, id,
           (const char *const[]){"NON_COMPARABLE", "NC-BASELINE-NONE", why,
                                 "No number below counts", "baseline approve", NULL},
           "Nothing to do");
    expect_page(&l, base->run, ".txt", "KEY REVOKED SINCE 2020-01-01", true);
    expect_page(&l, base->run, ".json", "\"revoked_since\": \"2020-01-01", true);
    (void) snprintf(vs, sizeof vs, "%s.txt", id);
    expect(&l, run.run, vs,
           (const char *const[]){"!= NON_COMPARABLE", "NC-BASELINE-NONE", why,
                                 "No number below counts", "baseline approve", NULL},
           "Nothing to do");
    (void) snprintf(vs, sizeof vs, "%s.md", id);
    expect(&l, run.run, vs, (const char *const[]){"status: NON_COMPARABLE", why, NULL},
           "status: OK");
    expect(&l, run.run, ".txt", (const char *const[]){"NON_COMPARABLE", why, "recorded OK", NULL},
           "Nothing to do");
    expect(&l, run.run, "", (const char *const[]){"NON_COMPARABLE", why, "recorded: OK", NULL},
           "3 Audit <span class=\"tag v-ok");
    package_free(&run);
    private_key_free(key);
    uploads_free(u);
    live_fini(&l);
}

static void check_says(const struct live *l, const char *target, const char *verdict)
{
    char want[64];
    struct raw_response r;

    (void) snprintf(want, sizeof want, "\"verdict\": \"%s\",", verdict);
    raw_ask(l->port, "GET", target, "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    if (!strstr(r.body, want))
        fail_msg("%s has no '%s': %.*s", target, want, (int) r.body_len, r.body);
    raw_response_fini(&r);
}

/* Whoever asks for a commit's status acts on it: a green one that was told a moment ago is not told
 * again from memory once the evidence is gone. */
static void green_status_rests_on_evidence_that_is_there(void **state)
{
    static const char check[] =
        "/api/v1/projects/" UPLOAD_PROJECT "/commits/" PACKAGE_COMMIT "/check";
    static const char page[] = "/p/" UPLOAD_PROJECT "/commit/" PACKAGE_COMMIT ".json";
    struct live l;
    struct uploads *u;
    const struct package *run;
    char *object = NULL;
    char *aside = NULL;

    (void) state;
    live_init(&l);
    assert_int_equal(live_admin(&l, (const char *const[]){"migrate", NULL}, NULL), 0);
    u = uploads_new(&l);
    live_start(&l, NULL);
    run = uploads_package(u, 1, 0);
    upload_package(&l, u, uploads_package(u, 0, 0));
    upload_approve(&l, uploads_package(u, 0, 0)->run);
    upload_package(&l, u, run);
    assert_true(asprintf(&object, "%s/objects/%.2s/%s", l.data, run->hex, run->hex + 2) > 0);
    assert_true(asprintf(&aside, "%s/aside", l.dir) > 0);
    for (int i = 0; i < 2; i++) {
        const char *target = i == 0 ? check : page;

        check_says(&l, target, "OK");
        check_says(&l, target, "OK");
        assert_int_equal(rename(object, aside), 0);
        check_says(&l, target, "INVALID");
        assert_int_equal(rename(aside, object), 0);
    }
    free(aside);
    free(object);
    uploads_free(u);
    live_fini(&l);
}

static void badge_says(const struct live *l, const char *word)
{
    char want[64];
    struct raw_response r;

    (void) snprintf(want, sizeof want, "<title>cleanrun: %s</title>", word);
    raw_ask(l->port, "GET", "/p/" UPLOAD_PROJECT "/" UPLOAD_GATE "/badge.svg", "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    if (!strstr(r.body, want))
        fail_msg("no '%s' in %.*s", want, (int) r.body_len, r.body);
    raw_response_fini(&r);
}

/* A gate of two classes is no greener than the worse of them, whichever was measured last. */
static void badge_is_the_worst_class(void **state)
{
    static const char commit[] = "abcdef0123456789abcdef0123456789abcdef01";
    static const char next[] = "abcdef0123456789abcdef0123456789abcdef02";
    struct live l;
    struct uploads *u;
    struct private_key *key;
    struct package other, red, green, later;

    (void) state;
    live_init(&l);
    assert_int_equal(live_admin(&l, (const char *const[]){"migrate", NULL}, NULL), 0);
    u = uploads_new(&l);
    live_start(&l, NULL);
    badge_says(&l, "no data");
    key = second_runner(&l, "second-class");
    upload_package(&l, u, uploads_package(u, 0, 0));
    upload_approve(&l, uploads_package(u, 0, 0)->run);
    package_make(&(struct package_options){.machine_class = "second-class"}, key, &other);
    upload_package(&l, u, &other);
    upload_approve(&l, other.run);
    package_make(
        &(struct package_options){
            .machine_class = "second-class", .commit = commit, .probes = 2, .executable = 2},
        key, &red);
    upload_package(&l, u, &red);
    badge_says(&l, "REGRESSION");
    package_make(&(struct package_options){.commit = commit, .executable = 2}, uploads_key(u),
                 &green);
    upload_package(&l, u, &green);
    badge_says(&l, "REGRESSION");
    package_make(&(struct package_options){.commit = next, .executable = 3}, uploads_key(u),
                 &later);
    upload_package(&l, u, &later);
    badge_says(&l, "PENDING"); /* the other class has not said anything of this commit */
    package_free(&other);
    package_free(&red);
    package_free(&green);
    package_free(&later);
    private_key_free(key);
    uploads_free(u);
    live_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_says_in_key),
        cmocka_unit_test(every_form_says_that_nobody_judged),
        cmocka_unit_test(green_status_rests_on_evidence_that_is_there),
        cmocka_unit_test(badge_is_the_worst_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
