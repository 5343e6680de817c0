/*
 * ci/demo --once, the main job end to end: the verdicts come out of real measurements, and a demo
 * whose branch does not leak must fail.
 */
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

struct demo {
    char *dir;
    struct test_run run;
};

static int setup(void **state)
{
    struct demo *d = calloc(1, sizeof *d);

    assert_non_null(d);
    d->dir = test_dir_new();
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    struct demo *d = *state;

    test_run_fini(&d->run);
    test_dir_free(d->dir);
    free(d);
    return 0;
}

static void run_demo(struct demo *d, const char *more)
{
    char *demo = test_path("ci/demo");
    char *data = test_join(d->dir, "state");
    char *build = NULL;
    char *lock = NULL; /* other tests measure at the same time */
    /* meson sets what the gate refuses */
    const char *const argv[] = {"env", "-u", "MALLOC_PERTURB_", demo, "--once", "--state", data,
                                more,  NULL};
    const char *env[] = {NULL, NULL, NULL};

    assert_true(asprintf(&build, "CLEANRUN_BUILD=%s", test_build_root()) > 0);
    assert_true(asprintf(&lock, "CLEANRUN_LOCK=%s/lock", d->dir) > 0);
    env[0] = build;
    env[1] = lock;
    test_run(argv, env, d->dir, NULL, &d->run);
    free(lock);
    free(build);
    free(data);
    free(demo);
}

/* The line that begins with `name`, without its blanks doubled; fails when there is none. */
static void assert_row(const struct demo *d, const char *name, const char *verdict,
                       const char *because)
{
    const char *at = d->run.out;
    size_t len = strlen(name);

    while (at && (strncmp(at, name, len) != 0 || at[len] != ' ')) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    if (!at) {
        fail_msg("no row of %s in:\n%s%s", name, d->run.out, d->run.err);
    } else {
        const char *word = at + len + strspn(at + len, " ");
        const char *end = strchr(at, '\n');
        const char *found = strstr(at, because);
        const char *page = strstr(at, "http://127.0.0.1:");

        if (strncmp(word, verdict, strlen(verdict)) != 0 || word[strlen(verdict)] != ' ' || !end ||
            !found || found > end || !page || strspn(end + 1, " ") != (size_t) (page - end - 1))
            fail_msg("%s is not %s because of '%s' with a page in:\n%s", name, verdict, because,
                     d->run.out);
    }
}

static void assert_code(const struct demo *d, int code)
{
    if (d->run.code != code)
        fail_msg("exit %d, wanted %d:\n%s%s", d->run.code, code, d->run.out, d->run.err);
}

static void the_four_verdicts_come_out_of_measurements(void **state)
{
    struct demo *d = *state;

    run_demo(d, NULL);
    assert_code(d, 0);
    assert_row(d, "tidy-names", "OK", "within limits");
    assert_row(d, "forget-to-free", "REGRESSION", "RSS growth");
    assert_row(d, "more-work", "REGRESSION", "hash probes per operation");
    assert_row(d, "bigger-cache", "NON_COMPARABLE", "apacity");
    assert_null(strstr(d->run.out, "expected REGRESSION"));
    /* the flipped byte, on a copy and where the server keeps it */
    assert_non_null(strstr(d->run.out, "exit 5, IN-HASH"));
    assert_non_null(strstr(d->run.out, "exit 5, INVALID"));
    assert_non_null(strstr(d->run.out, "damaged: true, INVALID"));
    assert_non_null(strstr(d->run.out, "the four verdicts are the expected ones"));
}

static void without_its_leak_the_demo_fails(void **state)
{
    struct demo *d = *state;
    const char *told = NULL;

    run_demo(d, "--sabotage");
    assert_code(d, 1);
    assert_row(d, "tidy-names", "OK", "within limits");
    assert_row(d, "forget-to-free", "OK", "within limits");
    assert_row(d, "more-work", "REGRESSION", "hash probes per operation");
    told = strstr(d->run.out, "expected ");
    assert_non_null(told);
    assert_memory_equal(told, "expected REGRESSION\n", strlen("expected REGRESSION\n"));
    assert_null(strstr(told + 1, "expected ")); /* nothing else went wrong */
    assert_non_null(strstr(d->run.out, "demo: FAILED"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_four_verdicts_come_out_of_measurements, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(without_its_leak_the_demo_fails, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
