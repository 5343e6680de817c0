/* What the server keeps in memory falls with the bytes it is about: a stored archive is altered
 * behind its back, and no answer goes on saying what it said. */
#include "tests/http/uploader.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

struct fixture {
    struct live live;
    struct uploads *uploads;
    struct package base, run;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    live_init(&f->live);
    f->uploads = uploads_new(&f->live);
    live_start(&f->live, NULL);
    package_make(&(struct package_options){.padding = 5000}, uploads_key(f->uploads), &f->base);
    upload_package(&f->live, f->uploads, &f->base);
    upload_approve(&f->live, f->base.run);
    package_make(&(struct package_options){.padding = 5000, .executable = 2},
                 uploads_key(f->uploads), &f->run);
    upload_package(&f->live, f->uploads, &f->run);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    package_free(&f->base);
    package_free(&f->run);
    uploads_free(f->uploads);
    live_fini(&f->live);
    free(f);
    return 0;
}

/* Inverts one byte of the stored archive. */
static void flip(const struct fixture *f, const struct package *p)
{
    AUTO_FREE char *path = NULL;
    char byte = 0;
    int fd = -1;

    assert_true(asprintf(&path, "%s/objects/%.2s/%s", f->live.data, p->hex, p->hex + 2) > 0);
    assert_int_equal(chmod(path, 0600), 0);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, 3000), 1);
    byte = (char) ~byte;
    assert_int_equal(pwrite(fd, &byte, 1, 3000), 1);
    (void) close(fd);
}

static char *body_of(const struct fixture *f, const char *target)
{
    struct raw_response a;
    char *body = NULL;

    raw_ask(f->live.port, "GET", target, NULL, NULL, 0, &a);
    body = strndup(a.body, a.body_len);
    assert_non_null(body);
    raw_response_fini(&a);
    return body;
}

static void says(const struct fixture *f, const char *target, const char *word, bool wanted)
{
    AUTO_FREE char *body = body_of(f, target);

    if ((strstr(body, word) != NULL) != wanted)
        fail_msg("%s %s %s: %.3000s", target, wanted ? "lacks" : "says", word, body);
}

/* Kept by a first look, then asked for again. */
static void falls(const struct fixture *f, const char *target, const struct package *damaged,
                  const char *word)
{
    says(f, target, word, false);
    says(f, target, word, false);
    flip(f, damaged);
    says(f, target, word, true);
    flip(f, damaged);
    says(f, target, word, false);
}

static void a_kept_answer_falls_with_the_runs_archive(void **state)
{
    static const struct {
        const char *pattern, *word;
    } rows[] = {
        {"/api/v1/projects/" UPLOAD_PROJECT "/runs/{1}/verdict", "\"verdict\": \"INVALID\""},
        {"/api/v1/projects/" UPLOAD_PROJECT "/runs/{1}", "\"verdict\": \"INVALID\""},
        {"/r/{1}", "DAMAGED"},
        {"/r/{1}/vs/b-{2}", "INVALID"},
        {"/r/{1}/vs/b-{2}.json", "\"verdict\": \"INVALID\""},
        {"/r/{1}/vs/b-{2}.md", "INVALID"},
        {"/api/v1/projects/" UPLOAD_PROJECT "/compare/{1}/b-{2}", "\"verdict\": \"INVALID\""},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *target = NULL;

        target = test_fill(rows[i].pattern, f->run.run, f->base.run);
        falls(f, target, &f->run, rows[i].word);
    }
}

/* A run beside another one, which is no verdict of anybody's: it needs both archives. */
static void a_kept_comparison_falls_with_the_other_archive(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *target = NULL;
    struct raw_response a;

    assert_true(asprintf(&target, "/r/%s/vs/%s.json", f->run.run, f->base.run) > 0);
    falls(f, target, &f->base, "/help/problems/damaged");
    flip(f, &f->run);
    raw_ask(f->live.port, "GET", target, NULL, NULL, 0, &a);
    assert_int_equal(a.status, 500);
    assert_non_null(strstr(a.body, f->run.run)); /* which of them */
    raw_response_fini(&a);
    flip(f, &f->run);
}

/* The verdict may fall at any time, so nobody keeps it without asking. */
static void a_verdict_is_asked_for_again(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *target = NULL;
    AUTO_FREE char *caching = NULL;
    struct raw_response a;

    assert_true(
        asprintf(&target, "/api/v1/projects/" UPLOAD_PROJECT "/runs/%s/verdict", f->run.run) > 0);
    raw_ask(f->live.port, "GET", target, NULL, NULL, 0, &a);
    caching = raw_header(&a, "Cache-Control");
    assert_string_equal(caching, "no-cache");
    raw_response_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_answer_falls_with_the_runs_archive),
        cmocka_unit_test(a_kept_comparison_falls_with_the_other_archive),
        cmocka_unit_test(a_verdict_is_asked_for_again),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
