#include "tests/lib/support.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/relname.h"

static void takes_plain_relative_names(void **state)
{
    static const char *const good[] = {"a",
                                       "manifest.json",
                                       "results/call_setup/2000.json",
                                       "_x/A-b.c",
                                       "1/2/3/4/5/6/7/8",
                                       "a.b.c",
                                       "a-",
                                       "a."};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        if (!relname_ok(good[i]))
            fail_msg("refused: %s", good[i]);
    }
}

static void refuses_everything_that_could_lead_elsewhere(void **state)
{
    static const char *const bad[] = {"",         "/",
                                      "/a",       "a/",
                                      "a//b",     ".",
                                      "..",       "../a",
                                      "a/..",     "a/./b",
                                      ".hidden",  "a/.b",
                                      "-a",       "a/-b",
                                      "a..b",     "a b",
                                      "a\\b",     "a:b",
                                      "a\nb",     "a\x7f",
                                      "\xc3\xa4", "a/b\xff",
                                      "a*",       "~",
                                      "C:",       "1/2/3/4/5/6/7/8/9"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (relname_ok(bad[i]))
            fail_msg("taken: %s", bad[i]);
    }
}

static void length_ends_at_100_bytes(void **state)
{
    char name[200];

    (void) state;
    memset(name, 'a', sizeof(name));
    name[100] = '\0';
    assert_true(relname_ok(name));
    assert_true(relname_segment_ok(name));
    name[50] = '/';
    assert_true(relname_ok(name));
    assert_false(relname_segment_ok(name));
    name[100] = 'a';
    name[101] = '\0';
    assert_false(relname_ok(name));
    name[50] = 'a';
    assert_false(relname_ok(name));
    assert_false(relname_segment_ok(name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_plain_relative_names),
        cmocka_unit_test(refuses_everything_that_could_lead_elsewhere),
        cmocka_unit_test(length_ends_at_100_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
