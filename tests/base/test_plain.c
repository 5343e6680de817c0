/* Outside text that people read obeys nobody. */
#include "base/plain.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/cleanup.h"
#include "tests/lib/support.h"

static void expect(const char *given, const char *expected, const char *as_lines)
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_KIB(64));
    plain_puts(&b, given);
    assert_string_equal(b.data ? b.data : "", expected);
    buf_clear(&b);
    plain_put_lines(&b, given, strlen(given));
    assert_string_equal(b.data ? b.data : "", as_lines);
}

static void controls_and_marks_are_told(void **state)
{
    (void) state;
    expect("plain, \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 ~\\\"",
           "plain, \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 ~\\\"",
           "plain, \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 ~\\\"");
    expect("a\nresult     OK\n\tb\r", "a result     OK  b ", "a\nresult     OK\n\tb ");
    expect("\x1b[2J\x07\x7f", "?[2J??", "?[2J??");
    expect("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", "???\xc2\xa0", "???\xc2\xa0");
    expect("\xe2\x80\xa8\xe2\x80\xa9", "  ", "  ");
    expect("\xe2\x80\xaeX\xd8\x9c", "[U+202E]X[U+061C]", "[U+202E]X[U+061C]");
    expect("\x9b\xff\xc2", "???", "???");
    expect("", "", "");
}

/* Every mark of direction, and no neighbour of one. */
static void every_direction_has_its_name(void **state)
{
    static const unsigned ranges[][2] = {{0x200e, 0x200f}, {0x202a, 0x202e}, {0x2066, 0x2069}};

    (void) state;
    for (unsigned point = 0x2000; point < 0x2080; point++) {
        char s[4] = {(char) 0xe2, (char) (0x80 | (point >> 6 & 0x3f)),
                     (char) (0x80 | (point & 0x3f)), 0};
        unsigned seen = 0;
        bool is = false;

        for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
            is = is || (point >= ranges[i][0] && point <= ranges[i][1]);
        assert_int_equal(plain_direction_mark(s, 3, &seen), is ? 3 : 0);
        if (is)
            assert_int_equal(seen, point);
    }
}

static void a_line_is_one_line(void **state)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    (void) state;
    assert_non_null(to);
    plain_line(to, "a %s|%d", "\n::stop-commands::x\x1b[31m", 7);
    plain_line(to, "b");
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, "a  ::stop-commands::x?[31m|7\nb\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls_and_marks_are_told),
        cmocka_unit_test(every_direction_has_its_name),
        cmocka_unit_test(a_line_is_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
