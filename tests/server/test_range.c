/* Preconditions and byte ranges as RFC 9110 defines them. */
#include "tests/lib/support.h"

#include "base/cleanup.h"
#include "server/http/conditional.h"

static void ranges_follow_the_rfc(void **state)
{
    static const struct {
        const char *value;
        uint64_t size;
        enum range_result result;
        uint64_t first, last;
    } rows[] = {
        {"bytes=0-499", 10000, RANGE_ONE, 0, 499},
        {"bytes=500-999", 10000, RANGE_ONE, 500, 999},
        {"bytes=-500", 10000, RANGE_ONE, 9500, 9999},
        {"bytes=9500-", 10000, RANGE_ONE, 9500, 9999},
        {"bytes=0-0", 10000, RANGE_ONE, 0, 0},
        {"bytes=-1", 10000, RANGE_ONE, 9999, 9999},
        {"bytes=9999-20000", 10000, RANGE_ONE, 9999, 9999},
        {"bytes=-20000", 10000, RANGE_ONE, 0, 9999},
        {"bytes=0-", 1, RANGE_ONE, 0, 0},
        {"bytes=10000-", 10000, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=10000-10001", 10000, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=-0", 10000, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=-5", 0, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=5-4", 10000, RANGE_IGNORED, 0, 0},
        {"bytes=-", 10000, RANGE_IGNORED, 0, 0},
        {"bytes=", 10000, RANGE_IGNORED, 0, 0},
        {"bytes=0-1,3-4", 10000, RANGE_IGNORED, 0, 0},
        {"items=0-1", 10000, RANGE_IGNORED, 0, 0},
        {"bytes=a-b", 10000, RANGE_IGNORED, 0, 0},
        {"bytes= 0-1", 10000, RANGE_IGNORED, 0, 0},
        {"bytes=0-1x", 10000, RANGE_IGNORED, 0, 0},
        {"bytes=0-99999999999999999999999", 10000, RANGE_IGNORED, 0, 0},
        {"bytes=99999999999999999999999-", 10000, RANGE_IGNORED, 0, 0},
    };
    size_t i = 0;

    (void) state;
    for (i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t first = 0;
        uint64_t last = 0;

        if (conditional_range(rows[i].value, rows[i].size, &first, &last) != rows[i].result)
            fail_msg("'%s' of %llu", rows[i].value, (unsigned long long) rows[i].size);
        assert_int_equal(first, rows[i].first);
        assert_int_equal(last, rows[i].last);
    }
}

static void entity_tags_are_compared_weakly_or_strongly(void **state)
{
    (void) state;
    assert_true(conditional_lists("\"a\"", "\"a\"", true));
    assert_true(conditional_lists("*", "\"a\"", true));
    assert_true(conditional_lists(" \"x\" , \"a\"", "\"a\"", true));
    assert_true(conditional_lists("\"x\",W/\"a\"", "\"a\"", true));
    assert_false(conditional_lists("\"x\",W/\"a\"", "\"a\"", false));
    assert_true(conditional_lists("\"x,y\", \"a\"", "\"a\"", false));
    assert_false(conditional_lists("\"b\"", "\"a\"", true));
    assert_false(conditional_lists("a", "\"a\"", true));
    assert_false(conditional_lists("\"a", "\"a\"", true));
    assert_false(conditional_lists("", "\"a\"", true));
    assert_false(conditional_lists("\"ab\"", "\"a\"", true));
    assert_false(conditional_lists("* x", "\"a\"", true));
    assert_false(conditional_lists("\"x\" \"a\"", "\"a\"", true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_follow_the_rfc),
        cmocka_unit_test(entity_tags_are_compared_weakly_or_strongly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
