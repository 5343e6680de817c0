/* cleanrun gc, and what killed runners leave behind. */
#include "tests/runner/project.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "runner/scratch.h"

struct home {
    char *dir, *state;
    char *env[3];
};

static void home_new(struct home *h)
{
    *h = (struct home){.dir = test_dir_new()};
    h->state = test_join(h->dir, "cleanrun");
    assert_true(asprintf(&h->env[0], "XDG_STATE_HOME=%s", h->dir) > 0);
    assert_true(asprintf(&h->env[1], "CLEANRUN_LOCK=%s/lock", h->dir) > 0);
    assert_int_equal(mkdir(h->state, 0755), 0);
}

static void home_free(struct home *h)
{
    test_dir_free(h->dir);
    free(h->state);
    free(h->env[0]);
    free(h->env[1]);
}

static void make(const struct home *h, const char *name)
{
    const char *const argv[] = {"mkdir", "-p", name, NULL};
    struct test_run r;

    test_run(argv, NULL, h->state, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    char *path = test_join(h->state, name);

    test_write_text(path, "file", "x");
    free(path);
}

static bool there(const struct home *h, const char *name)
{
    char *path = test_join(h->state, name);
    struct stat st;
    bool found = lstat(path, &st) == 0;

    free(path);
    return found;
}

static void gc(const struct home *h, const char *const args[], struct test_run *r)
{
    char *program = test_join(test_build_root(), "runner/cleanrun");
    const char *full[8] = {program, "gc"};
    const char *env[] = {h->env[0], h->env[1], NULL};
    size_t n = 2;

    for (size_t i = 0; args && args[i]; i++)
        full[n++] = args[i];
    test_run(full, env, h->dir, NULL, r);
    free(program);
}

static void old_runs_go_and_everything_else_stays(void **state)
{
    static const char *const dry[] = {"--dry-run", NULL};
    static const char *const all[] = {"--older-than", "0", NULL};
    static const char *const gone[] = {"runs/20200101T000000Z-00000001",
                                       "runs/20200101T000000Z-00000002.partial",
                                       "checkout/0123456789abcdef", "scratch/tmp-aaaaaa"};
    static const char *const kept[] = {"runs/20990101T000000Z-00000001", "runs/mine",
                                       "runs/20200101T000000Z-00000001.tar.note", "checkout/mine",
                                       "other"};
    struct home h;
    struct test_run r;

    (void) state;
    home_new(&h);
    for (size_t i = 0; i < 4; i++)
        make(&h, gone[i]);
    for (size_t i = 0; i < 5; i++)
        make(&h, kept[i]);
    test_write_text(h.state, "runs/20200101T000000Z-00000001.tar", "x");
    const char *const age[] = {"touch", "-d", "2020-01-01", "checkout/0123456789abcdef", NULL};

    test_run(age, NULL, h.state, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    make(&h, "checkout/fedcba9876543210"); /* used today */

    gc(&h, dry, &r);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "runs/20200101T000000Z-00000001\n"));
    assert_non_null(strstr(r.out, "runs/20200101T000000Z-00000001.tar\n"));
    assert_non_null(strstr(r.out, "checkout/0123456789abcdef\n"));
    assert_non_null(strstr(r.err, "would remove 4 runs, archives and checkouts, 1 leftovers"));
    for (size_t i = 0; i < 4; i++)
        assert_true(there(&h, gone[i]));
    test_run_fini(&r);

    gc(&h, NULL, &r);
    if (r.code != 0)
        print_error("%s%s\n", r.out, r.err);
    assert_int_equal(r.code, 0);
    for (size_t i = 0; i < 4; i++)
        assert_false(there(&h, gone[i]));
    assert_false(there(&h, "runs/20200101T000000Z-00000001.tar"));
    for (size_t i = 0; i < 5; i++)
        assert_true(there(&h, kept[i]));
    assert_true(there(&h, "checkout/fedcba9876543210"));
    test_run_fini(&r);

    gc(&h, all, &r);
    assert_int_equal(r.code, 0);
    assert_false(there(&h, "checkout/fedcba9876543210"));
    assert_true(there(&h, "runs/20990101T000000Z-00000001")); /* it is not even made yet */
    test_run_fini(&r);
    home_free(&h);
}

/* A live directory's lock is honoured, and so is the machine's. */
static void what_is_in_use_stays(void **state)
{
    struct home h;
    struct test_run r;
    struct scratch mine = {.fd = -1};
    struct err e = ERR_INIT;

    (void) state;
    home_new(&h);
    make(&h, "runs/20200101T000000Z-00000001.partial");
    char *partial = test_join(h.state, "runs/20200101T000000Z-00000001.partial");
    int held = open(partial, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(flock(held, LOCK_EX), 0);
    assert_int_equal(scratch_open(h.state, &mine, &e), 0);
    assert_non_null(strstr(mine.path, h.state));
    test_write_text(mine.path, "index", "x");
    gc(&h, NULL, &r);
    assert_int_equal(r.code, 0);
    test_run_fini(&r);
    assert_true(there(&h, "runs/20200101T000000Z-00000001.partial"));
    assert_int_equal(access(mine.path, F_OK), 0);
    assert_int_equal(scratch_sweep(h.state, false), 0);
    close(held);

    char *lock = test_join(h.dir, "lock");
    int machine = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(flock(machine, LOCK_EX), 0);
    gc(&h, NULL, &r);
    assert_int_equal(r.code, 6);
    assert_non_null(strstr(r.err, "another measurement is active"));
    test_run_fini(&r);
    close(machine);

    /* Whose maker is gone goes: here the maker lets go of it. */
    char *path = strdup(mine.path);

    close(mine.fd);
    mine.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(scratch_sweep(h.state, true), 1);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(scratch_sweep(h.state, false), 1);
    assert_int_not_equal(access(path, F_OK), 0);
    scratch_close(&mine);
    free(path);
    free(lock);
    free(partial);
    home_free(&h);
}

static void scratch_is_private_and_leaves_nothing(void **state)
{
    struct home h;
    struct scratch s = {.fd = -1}, elsewhere = {.fd = -1};
    struct stat st;
    struct err e = ERR_INIT;

    (void) state;
    home_new(&h);
    assert_int_equal(scratch_open(h.state, &s, &e), 0);
    assert_int_equal(stat(s.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    char *path = strdup(s.path);

    test_write_text(s.path, "x", "x");
    scratch_close(&s);
    assert_int_not_equal(access(path, F_OK), 0);
    /* Without a usable state directory there is still a place. */
    assert_int_equal(scratch_open("/proc/no/such", &elsewhere, &e), 0);
    assert_int_equal(strncmp(elsewhere.path, "/tmp/", 5), 0);
    scratch_close(&elsewhere);
    free(path);
    home_free(&h);
}

static void days_must_be_a_number(void **state)
{
    static const char *const bad[] = {"--older-than", "-1", NULL};
    struct home h;
    struct test_run r;

    (void) state;
    home_new(&h);
    gc(&h, bad, &r);
    assert_int_equal(r.code, 2);
    test_run_fini(&r);
    home_free(&h);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_runs_go_and_everything_else_stays),
        cmocka_unit_test(what_is_in_use_stays),
        cmocka_unit_test(scratch_is_private_and_leaves_nothing),
        cmocka_unit_test(days_must_be_a_number),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("runner/gc", tests, NULL, NULL);
}
