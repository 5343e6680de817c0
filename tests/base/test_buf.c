#include "tests/lib/support.h"

#include <string.h>

#include "base/buf.h"

static void appends_and_stays_terminated(void **state)
{
    AUTO_BUF struct buf b = {0};

    (void) state;
    buf_init(&b, 1000);
    assert_null(b.data);
    buf_puts(&b, "one");
    buf_putc(&b, ',');
    buf_put(&b, "t\0o", 3);
    buf_printf(&b, "-%d-%s", 42, "x");
    assert_int_equal(buf_check(&b, NULL), 0);
    assert_int_equal(b.len, 12);
    assert_memory_equal(b.data, "one,t\0o-42-x", 13);
}

static void maximum_is_exact_and_failure_sticks(void **state)
{
    AUTO_BUF struct buf b = {0};
    struct err e = ERR_INIT;

    (void) state;
    buf_init(&b, 5);
    buf_puts(&b, "12345");
    assert_int_equal(buf_check(&b, &e), 0);
    buf_putc(&b, '6');
    assert_int_equal(buf_check(&b, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_string_equal(b.data, "12345");
    buf_puts(&b, "");
    assert_true(b.failed);
    buf_clear(&b);
    buf_printf(&b, "%s", "abc");
    buf_printf(&b, "%s", "def"); /* 6 > 5 */
    buf_putc(&b, 'x');           /* would fit, but the text already lost something */
    assert_string_equal(b.data, "abc");
    assert_int_equal(buf_check(&b, &e), -1);
}

static void content_failure_is_not_called_full(void **state)
{
    AUTO_BUF struct buf b = {0};
    struct err e = ERR_INIT;

    (void) state;
    buf_init(&b, 5);
    buf_fail(&b, BUF_CONTENT);
    buf_fail(&b, BUF_FULL);
    assert_int_equal(buf_check(&b, &e), -1);
    assert_int_equal(e.kind, ERR_INTERNAL);
}

static void take_moves_out_and_leaves_it_usable(void **state)
{
    AUTO_BUF struct buf b = {0};
    size_t len = 99;
    char *taken = NULL;

    (void) state;
    buf_init(&b, 100);
    taken = buf_take(&b, &len);
    assert_non_null(taken);
    assert_int_equal(len, 0);
    assert_string_equal(taken, "");
    free(taken);
    buf_puts(&b, "text");
    taken = buf_take(&b, &len);
    assert_int_equal(len, 4);
    assert_string_equal(taken, "text");
    free(taken);
    assert_null(b.data);
    buf_puts(&b, "again");
    assert_string_equal(b.data, "again");
    buf_fail(&b, BUF_FULL);
    assert_null(buf_take(&b, &len));
}

static void grows_over_many_appends(void **state)
{
    AUTO_BUF struct buf b = {0};

    (void) state;
    buf_init(&b, (size_t) 1 << 20);
    for (int i = 0; i < 100000; i++)
        buf_printf(&b, "%d,", i % 10);
    assert_int_equal(buf_check(&b, NULL), 0);
    assert_int_equal(b.len, 200000);
    assert_memory_equal(b.data + 199990, "5,6,7,8,9,", 11);
}

static void a_cut_text_ends_between_characters(void **state)
{
    static const struct {
        const char *text, *cut;
        size_t max;
    } cases[] = {{"abc", "abc", 3},
                 {"abcd", "…", 3},
                 {"abcdefgh", "abcd…", 7},
                 {"abc\xc3\xa9"
                  "def",
                  "abc…", 7},
                 {"", "", 3}};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = {.data = NULL};

        buf_init(&b, 100);
        buf_put_cut(&b, cases[i].text, cases[i].max);
        assert_string_equal(b.data, cases[i].cut);
        assert_true(b.len <= cases[i].max);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_text_ends_between_characters),
        cmocka_unit_test(appends_and_stays_terminated),
        cmocka_unit_test(maximum_is_exact_and_failure_sticks),
        cmocka_unit_test(content_failure_is_not_called_full),
        cmocka_unit_test(take_moves_out_and_leaves_it_usable),
        cmocka_unit_test(grows_over_many_appends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
