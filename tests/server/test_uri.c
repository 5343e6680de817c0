/* Paths and queries: what is decoded, and everything ambiguous that is refused. */
#include "tests/lib/support.h"

#include <string.h>

#include "base/limits.h"
#include "server/http/uri.h"

static void path_is_decoded_per_segment(void **state)
{
    AUTO_ARENA struct arena a = {.max = 0};
    struct uri_path p = {.n = 0};
    const char *why = NULL;

    (void) state;
    arena_init(&a, LIMIT_ARENA_REQUEST);
    assert_true(uri_split(&a, "/", &p, &why));
    assert_int_equal(p.n, 0);
    assert_false(p.trailing_slash);
    assert_true(uri_split(&a, "/p/d%65mo/k%c3%A4se/a+b", &p, &why));
    assert_int_equal(p.n, 4);
    assert_string_equal(p.segments[1], "demo");
    assert_string_equal(p.segments[2], "k\xc3\xa4se");
    assert_string_equal(p.segments[3], "a+b");
    assert_true(uri_split(&a, "/help/", &p, &why));
    assert_int_equal(p.n, 1);
    assert_true(p.trailing_slash);
}

static void ambiguous_paths_are_refused(void **state)
{
    static const char *const bad[] = {
        "",       "a/b",    "*",         "http://h/x", "//",           "/a//b",
        "/./a",   "/a/..",  "/a/%2e%2e", "/a/.%2E/b",  "/a%2fb",       "/a%5Cb",
        "/a%00b", "/a%00",  "/a%0ab",    "/a%7f",      "/a%",          "/a%4",
        "/a%zz",  "/a%c3",  "/a%ff",     "/a%c0%af",   "/a b",         "/a\"b",
        "/a\\b",  "/a\x80", "/a<b>",     "/a^b",       "/a%ed%a0%80b",
    };
    size_t i = 0;

    (void) state;
    for (i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_ARENA struct arena a = {.max = 0};
        struct uri_path p = {.n = 77};
        const char *why = NULL;

        arena_init(&a, LIMIT_ARENA_REQUEST);
        if (uri_split(&a, bad[i], &p, &why))
            fail_msg("accepted '%s'", bad[i]);
        assert_non_null(why);
        assert_int_equal(p.n, 77);
    }
}

static void too_many_segments_are_refused(void **state)
{
    AUTO_ARENA struct arena a = {.max = 0};
    struct uri_path p = {.n = 0};
    const char *why = NULL;
    char path[2 * (URI_SEGMENTS_MAX + 1) + 1] = "";
    size_t i = 0;

    (void) state;
    arena_init(&a, LIMIT_ARENA_REQUEST);
    for (i = 0; i <= URI_SEGMENTS_MAX; i++)
        memcpy(path + 2 * i, "/a", 2);
    path[2 * URI_SEGMENTS_MAX] = '\0';
    assert_true(uri_split(&a, path, &p, &why));
    path[2 * URI_SEGMENTS_MAX] = '/';
    path[2 * (URI_SEGMENTS_MAX + 1)] = '\0';
    assert_false(uri_split(&a, path, &p, &why));
}

static void query_values_are_found_and_decoded(void **state)
{
    AUTO_ARENA struct arena a = {.max = 0};

    (void) state;
    arena_init(&a, LIMIT_ARENA_REQUEST);
    assert_true(uri_query_is_plain(NULL));
    assert_true(uri_query_is_plain(""));
    assert_true(uri_query_is_plain("a=b+c%20%e2%82%ac&d=/?:@!$'()*,;-._~"));
    for (size_t i = 0; i < strlen(" \"<>#[]{}|\\^`\x01\x7f\x80\xff"); i++) {
        const char query[] = {'a', " \"<>#[]{}|\\^`\x01\x7f\x80\xff"[i], '\0'};

        assert_false(uri_query_is_plain(query));
    }
    assert_false(uri_query_is_plain("a=%"));
    assert_false(uri_query_is_plain("a=%4"));
    assert_false(uri_query_is_plain("a=%g0"));
    assert_null(uri_query_get(&a, NULL, "a"));
    assert_string_equal(uri_query_get(&a, "a=1&b=x+y%20z", "b"), "x y z");
    assert_string_equal(uri_query_get(&a, "aa=2&a=", "a"), "");
    assert_null(uri_query_get(&a, "ab=1", "a"));
    assert_null(uri_query_get(&a, "a=1&a=2", "a"));
    assert_null(uri_query_get(&a, "a=%0", "a"));
    assert_null(uri_query_get(&a, "a=%00", "a"));
    assert_null(uri_query_get(&a, "a=%ff", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_is_decoded_per_segment),
        cmocka_unit_test(ambiguous_paths_are_refused),
        cmocka_unit_test(too_many_segments_are_refused),
        cmocka_unit_test(query_values_are_found_and_decoded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
