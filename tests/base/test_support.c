/* The helpers themselves: a helper that cannot fail would hide every other test. */
#include "tests/lib/support.h"

#include <string.h>
#include <unistd.h>

static void run_reports_output_and_exit_code(void **state)
{
    struct test_run r = {0};
    const char *const argv[] = {"sh", "-c", "cat; echo \"$MARK\"; echo bad >&2; exit 7", NULL};
    const char *const env[] = {"MARK=seen", NULL};

    (void) state;
    test_run(argv, env, "/", "in:", &r);
    assert_int_equal(r.code, 7);
    assert_string_equal(r.out, "in:seen\n");
    assert_string_equal(r.err, "bad\n");
    test_run_fini(&r);
}

static void run_reports_death_by_signal(void **state)
{
    struct test_run r = {0};
    const char *const argv[] = {"sh", "-c", "kill -9 $$", NULL};

    (void) state;
    test_run(argv, NULL, NULL, NULL, &r);
    assert_int_equal(r.code, 137);
    test_run_fini(&r);
}

static void dir_is_removed_with_its_content(void **state)
{
    char *dir = test_dir_new();
    char *copy = strdup(dir);
    char **names = NULL;
    char *inner = NULL;

    (void) state;
    test_write_text(dir, "a/b/c.txt", "text");
    test_write_text(dir, "a/b/d.bin", "");
    inner = test_join(dir, "a/b");
    assert_int_equal(test_list(inner, ".txt", &names), 1);
    assert_string_equal(names[0], "c.txt");
    test_names_free(names);
    free(inner);
    test_dir_free(dir);
    assert_int_not_equal(access(copy, F_OK), 0);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_reports_output_and_exit_code),
        cmocka_unit_test(run_reports_death_by_signal),
        cmocka_unit_test(dir_is_removed_with_its_content),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
