#include "tests/lib/support.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/tree.h"

static void load(const char *dir, struct tree *t)
{
    struct err e = ERR_INIT;
    int fd = -1;

    tree_init(t);
    assert_int_equal(file_open_dir(dir, &fd, &e), 0);
    if (tree_load(t, fd, &e) < 0)
        fail_msg("%s", e.text);
    (void) close(fd);
}

static void load_takes_every_visible_json_file_sorted(void **state)
{
    char *dir = test_dir_new();
    struct tree t;

    (void) state;
    test_write_text(dir, "s/1000.json", "{\"a\":1}");
    test_write_text(dir, "s/100.json", "{\"a\":2}");
    test_write_text(dir, "s/_sweep.json", "{}");
    test_write_text(dir, "root.json", "{}");
    test_write_text(dir, "s/notes.txt", "x");
    test_write_text(dir, "s/.hidden.json", "{}");
    test_write_text(dir, ".git/x.json", "{}");
    test_write_text(dir, "s/.json", "{}");
    load(dir, &t);
    assert_int_equal(t.n, 4);
    assert_string_equal(t.files[0].path, "root.json");
    assert_string_equal(t.files[1].path, "s/100.json");
    assert_string_equal(t.files[2].path, "s/1000.json");
    assert_string_equal(t.files[3].path, "s/_sweep.json");
    assert_int_equal((int) json_get(tree_find(&t, "s/100.json")->report, "a")->valuedouble, 2);
    assert_null(tree_find(&t, "s/10.json"));
    assert_null(tree_find(&t, "z"));
    tree_fini(&t);
    test_dir_free(dir);
}

static void unreadable_reports_are_kept_with_their_reason(void **state)
{
    static const char *const broken[] = {"",
                                         "{",
                                         "[1]",
                                         "7",
                                         "{\"a\":NaN}",
                                         "{\"a\":1,\"a\":2}",
                                         "{\"a\":9007199254740993}",
                                         "{}x",
                                         "{\"a\":\"\xff\"}"};
    struct tree t;
    struct err e = ERR_INIT;

    (void) state;
    tree_init(&t);
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        char name[16];

        (void) snprintf(name, sizeof name, "%zu.json", i);
        assert_int_equal(tree_add(&t, name, broken[i], strlen(broken[i]), &e), 0);
        assert_null(tree_find(&t, name)->report);
        assert_true(tree_find(&t, name)->problem[0]);
    }
    assert_string_equal(tree_find(&t, "2.json")->problem, "not an object");
    tree_fini(&t);
}

static void a_report_over_the_limit_is_kept_with_its_reason(void **state)
{
    char *dir = test_dir_new();
    char *big = calloc(1, LIMIT_REPORT + 2);
    struct tree t;

    (void) state;
    assert_non_null(big);
    memset(big, ' ', LIMIT_REPORT + 1);
    big[0] = '{';
    big[LIMIT_REPORT] = '}';
    test_write(dir, "big.json", big, LIMIT_REPORT + 1);
    load(dir, &t);
    assert_int_equal(t.n, 1);
    assert_null(t.files[0].report);
    assert_non_null(t.files[0].problem);
    tree_fini(&t);
    free(big);
    test_dir_free(dir);
}

static void links_are_refused(void **state)
{
    char *dir = test_dir_new();
    char *link = test_join(dir, "s/2.json");
    struct tree t;
    struct err e = ERR_INIT;
    int fd = -1;

    (void) state;
    test_write_text(dir, "s/1.json", "{}");
    assert_int_equal(symlink("1.json", link), 0);
    tree_init(&t);
    assert_int_equal(file_open_dir(dir, &fd, &e), 0);
    assert_int_equal(tree_load(&t, fd, &e), -1);
    (void) close(fd);
    tree_fini(&t);
    free(link);
    test_dir_free(dir);
}

static void a_path_twice_is_an_error(void **state)
{
    struct tree t;
    struct err e = ERR_INIT;

    (void) state;
    tree_init(&t);
    assert_int_equal(tree_add(&t, "a.json", "{}", 2, &e), 0);
    assert_int_equal(tree_add(&t, "a.json", "{}", 2, &e), -1);
    assert_int_equal(tree_add(&t, "\xff.json", "{}", 2, &e), -1);
    assert_int_equal(t.n, 1);
    tree_fini(&t);
}

static void order_of_adding_does_not_matter(void **state)
{
    struct tree t;
    struct err e = ERR_INIT;
    uint64_t seed = 3;
    size_t order[500];

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        order[i] = i;
    for (size_t i = ARRAY_LEN(order) - 1; i > 0; i--) {
        size_t j = test_random_below(&seed, i + 1);
        size_t swap = order[i];

        order[i] = order[j];
        order[j] = swap;
    }
    tree_init(&t);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        char name[32];

        (void) snprintf(name, sizeof name, "s/%zu.json", order[i]);
        assert_int_equal(tree_add(&t, name, "{}", 2, &e), 0);
    }
    assert_int_equal(t.n, ARRAY_LEN(order));
    for (size_t i = 1; i < t.n; i++)
        assert_true(strcmp(t.files[i - 1].path, t.files[i].path) < 0);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        char name[32];

        (void) snprintf(name, sizeof name, "s/%zu.json", i);
        assert_non_null(tree_find(&t, name));
    }
    tree_fini(&t);
}

static void too_many_files_is_an_error(void **state)
{
    struct tree t;
    struct err e = ERR_INIT;
    char name[32];

    (void) state;
    tree_init(&t);
    for (int i = 0; i < LIMIT_TREE_FILES; i++) {
        (void) snprintf(name, sizeof name, "%d.json", i);
        assert_int_equal(tree_add(&t, name, "{}", 2, &e), 0);
    }
    assert_int_equal(tree_add(&t, "one-more.json", "{}", 2, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    tree_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_takes_every_visible_json_file_sorted),
        cmocka_unit_test(unreadable_reports_are_kept_with_their_reason),
        cmocka_unit_test(a_report_over_the_limit_is_kept_with_its_reason),
        cmocka_unit_test(links_are_refused),
        cmocka_unit_test(a_path_twice_is_an_error),
        cmocka_unit_test(order_of_adding_does_not_matter),
        cmocka_unit_test(too_many_files_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
