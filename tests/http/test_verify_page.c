/* What a run's page says under "Verify it yourself" is typed as it stands: in an empty directory,
 * with other people's tools and cleanrun. */
#include "tests/http/uploader.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct place {
    struct live live;
    struct uploads *uploads;
    const struct package *run;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct raw_response r;

    assert_non_null(p);
    live_init(&p->live);
    assert_int_equal(live_admin(&p->live, (const char *const[]){"migrate", NULL}, NULL), 0);
    p->uploads = uploads_new(&p->live);
    live_start(&p->live, NULL);
    p->run = uploads_package(p->uploads, 0, 0);
    upload_archive(&p->live, p->uploads, UPLOAD_PROJECT, p->run, &r);
    assert_int_equal(r.status, 201);
    raw_response_fini(&r);
    upload_statement(&p->live, p->uploads, UPLOAD_PROJECT, UPLOAD_GATE, p->run, &r);
    assert_int_equal(r.status, 201);
    raw_response_fini(&r);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    uploads_free(p->uploads);
    live_fini(&p->live);
    free(p);
    return 0;
}

/* The page's body; caller frees. */
static char *get(const struct place *p, const char *suffix)
{
    struct raw_response r;
    char target[96];
    char *body;

    (void) snprintf(target, sizeof target, "/r/%s%s", p->run->run, suffix);
    raw_ask(p->live.port, "GET", target, "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    body = strndup(r.body, r.body_len);
    assert_non_null(body);
    raw_response_fini(&r);
    return body;
}

/* The only entities that commands need. */
static void unescape(char *s)
{
    static const struct {
        const char *entity;
        char c;
    } entities[] = {{"&quot;", '"'}, {"&#34;", '"'}, {"&#39;", '\''}, {"&amp;", '&'}};
    char *to = s;

    while (*s) {
        size_t i = 0;

        while (i < 4 && strncmp(s, entities[i].entity, strlen(entities[i].entity)) != 0)
            i++;
        *to++ = i < 4 ? entities[i].c : *s;
        s += i < 4 ? strlen(entities[i].entity) : 1;
    }
    *to = '\0';
}

/* The block of commands of that section; caller frees. */
static char *commands_of(const char *page)
{
    const char *section = strstr(page, "Verify it yourself");
    const char *from = section ? strstr(section, "<code>curl") : NULL;
    const char *to = from ? strstr(from, "</code></pre>") : NULL;
    char *text =
        to ? strndup(from + strlen("<code>"), (size_t) (to - from) - strlen("<code>")) : NULL;

    if (text)
        unescape(text);
    else
        fail_msg("no commands on the page");
    return text;
}

static void the_pages_own_commands_verify_the_run(void **state)
{
    struct place *p = *state;
    const char *build = getenv("CLEANRUN_BUILD_ROOT"); /* NOLINT(concurrency-mt-unsafe) */
    char *page = get(p, "");
    char *text = get(p, ".txt");
    char *commands = commands_of(page);
    char *dir = test_dir_new();
    char *path = NULL;
    char *printed = NULL;
    struct test_run r;

    assert_non_null(build);
    assert_true(asprintf(&path, "PATH=%s/runner:/usr/bin:/bin", build) > 0);
    {
        const char *const argv[] = {"/bin/sh", "-eu", "-c", commands, NULL};
        const char *const env[] = {path, NULL};

        test_run(argv, env, dir, NULL, &r);
    }
    if (r.code != 0)
        fail_msg("%s\nexit %d\n%s%s", commands, r.code, r.out, r.err);
    assert_non_null(strstr(r.out, "Verified OK"));
    /* the fingerprint that openssl and sha256sum print is the one that the page shows */
    printed = strstr(r.out, "  -");
    assert_true(printed && printed - r.out >= 64);
    printed = strndup(printed - 64, 64);
    assert_non_null(strstr(page, printed));
    assert_non_null(strstr(text, printed));
    assert_non_null(strstr(text, "cleanrun verify evidence.tar --key keys/runner.pem"));
    test_run_fini(&r);
    free(printed);
    free(path);
    test_dir_free(dir);
    free(commands);
    free(text);
    free(page);
}

/* The two links beside the bundle are saved under the names that cleanrun verify looks for. */
static void downloads_have_the_names_that_verify_looks_for(void **state)
{
    static const struct {
        const char *before;
        const char *after;
        const char *name;
    } links[] = {
        {"/api/v1/projects/" UPLOAD_PROJECT "/runs/", "/attestation", "evidence.tar.dsse.json"},
        {"/api/v1/projects/" UPLOAD_PROJECT "/runs/", "/verdict/attestation", "verdict.dsse.json"},
        {"/r/", "/evidence.tar", "\"evidence.tar\""},
    };
    struct place *p = *state;

    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        char *target = NULL;
        char *disposition;
        struct raw_response r;

        assert_true(asprintf(&target, "%s%s%s", links[i].before, p->run->run, links[i].after) > 0);
        raw_ask(p->live.port, "GET", target, "", NULL, 0, &r);
        assert_int_equal(r.status, 200);
        disposition = raw_header(&r, "Content-Disposition");
        if (!disposition || !strstr(disposition, links[i].name))
            fail_msg("%s: %s", target, disposition ? disposition : "no name");
        free(disposition);
        raw_response_fini(&r);
        free(target);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pages_own_commands_verify_the_run),
        cmocka_unit_test(downloads_have_the_names_that_verify_looks_for),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
