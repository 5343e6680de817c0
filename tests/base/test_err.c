#include "tests/lib/support.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

static void set_fills_kind_code_and_text(void **state)
{
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(err_set(&e, ERR_LIMIT, "x.size", "larger than %d", 7), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_string_equal(e.code, "x.size");
    assert_string_equal(e.text, "larger than 7");
    assert_int_equal(err_set(NULL, ERR_LIMIT, "x", "ignored"), -1);
}

static void wrap_puts_context_before_and_keeps_kind(void **state)
{
    struct err e = ERR_INIT;

    (void) state;
    (void) err_set(&e, ERR_TRUST, "key.unknown", "no such key");
    assert_int_equal(err_wrap(&e, "run '%s'", "r1"), -1);
    assert_string_equal(e.text, "run 'r1': no such key");
    assert_int_equal(e.kind, ERR_TRUST);
    assert_string_equal(e.code, "key.unknown");
    assert_int_equal(err_wrap(NULL, "ignored"), -1);
}

static void errno_maps_to_kinds(void **state)
{
    const struct {
        int number;
        enum err_kind kind;
    } rows[] = {{ENOSPC, ERR_NOSPACE}, {EDQUOT, ERR_NOSPACE}, {ENOENT, ERR_NOTFOUND},
                {ENOMEM, ERR_NOMEM},   {EACCES, ERR_SYS},     {EIO, ERR_SYS}};

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err e = ERR_INIT;

        errno = rows[i].number;
        assert_int_equal(err_errno(&e, "f.open", "cannot open %s", "a"), -1);
        assert_int_equal(e.kind, rows[i].kind);
    }
}

static void errno_text_names_what_and_why(void **state)
{
    struct err e = ERR_INIT;

    (void) state;
    errno = EACCES;
    (void) err_errno(&e, "f.open", "cannot open '%s'", "a/b");
    assert_string_equal(e.text, "cannot open 'a/b': Permission denied");
    errno = 99999;
    (void) err_errno(&e, "f.open", "odd");
    assert_string_equal(e.text, "odd: error 99999");
}

static void memory_says_its_kind_and_code(void **state)
{
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(err_memory(&e, "f.memory"), -1);
    assert_int_equal(e.kind, ERR_NOMEM);
    assert_string_equal(e.code, "f.memory");
    assert_string_equal(e.text, "out of memory");
    assert_int_equal(err_memory(NULL, "f.memory"), -1);
}

/* Every cut place of a text of two-, three- and four-byte characters leaves valid UTF-8. */
static void long_text_is_cut_at_a_character(void **state)
{
    static const char *const characters[] = {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x82"};

    (void) state;
    for (size_t c = 0; c < 3; c++) {
        for (size_t lead = 0; lead < 5; lead++) {
            char text[1200] = "";
            size_t n = lead;
            struct err e = ERR_INIT;

            memset(text, 'a', lead);
            while (n < 1000) {
                memcpy(text + n, characters[c], strlen(characters[c]));
                n += strlen(characters[c]);
            }
            (void) err_set(&e, ERR_INPUT, "x", "%s", text);
            assert_true(strlen(e.text) < ERR_TEXT_MAX);
            assert_true(strlen(e.text) >= ERR_TEXT_MAX - 5);
            assert_true(text_is_utf8(e.text, strlen(e.text)));
            (void) err_wrap(&e, "context %zu", lead);
            assert_true(text_is_utf8(e.text, strlen(e.text)));
            assert_memory_equal(e.text, "context ", 8);
        }
    }
}

/* "%.60s" cuts in the middle of a text, and names of files may be anything: what is told is written
 * as JSON all the same. */
static void what_is_no_utf8_is_told_by_a_question_mark(void **state)
{
    struct err e = ERR_INIT;

    (void) state;
    (void) err_set(&e, ERR_INPUT, "x", "the key '%.4s' is %s", "ab\xe2\x82\xac", "\xc3\xa4");
    assert_string_equal(e.text, "the key 'ab?' is \xc3\xa4");
    (void) err_wrap(&e, "file 'caf\xe9' of %.1s", "\xc3\xa4");
    assert_string_equal(e.text, "file 'caf?' of : the key 'ab?' is \xc3\xa4");
    errno = ENOENT;
    (void) err_errno(&e, "x", "cannot open '\xff\xfe\x80z'");
    assert_string_equal(e.text, "cannot open '?z': No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_fills_kind_code_and_text),
        cmocka_unit_test(wrap_puts_context_before_and_keeps_kind),
        cmocka_unit_test(errno_maps_to_kinds),
        cmocka_unit_test(errno_text_names_what_and_why),
        cmocka_unit_test(memory_says_its_kind_and_code),
        cmocka_unit_test(long_text_is_cut_at_a_character),
        cmocka_unit_test(what_is_no_utf8_is_told_by_a_question_mark),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
