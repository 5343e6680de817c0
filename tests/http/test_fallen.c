/* A run whose runner's key was revoked before it was received, in every form of its comparison. */
#include "tests/http/uploader.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

static void push(struct live *l, const struct uploads *u, const struct package *p)
{
    struct raw_response r;

    upload_archive(l, u, UPLOAD_PROJECT, p, &r);
    assert_int_equal(r.status, 201);
    raw_response_fini(&r);
    upload_statement(l, u, UPLOAD_PROJECT, UPLOAD_GATE, p, &r);
    assert_int_equal(r.status, 201);
    raw_response_fini(&r);
}

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
    push(&l, u, base);
    {
        const char *const approve[] = {
            "baseline",  "approve",    base->run, "--project", UPLOAD_PROJECT, "--gate",
            UPLOAD_GATE, "--reviewer", "r",       "--reason",  "first",        NULL};

        assert_int_equal(live_admin(&l, approve, NULL), 0);
    }
    push(&l, u, run);
    assert_int_equal(live_admin(&l, revoke, &told), 0);
    (void) snprintf(vs, sizeof vs, "baseline retire b-%s --project " UPLOAD_PROJECT, base->run);
    if (!strstr(told, vs) || !strstr(told, "still judges"))
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_says_in_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
