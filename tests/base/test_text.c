#include "tests/lib/support.h"

#include <string.h>

#include "base/text.h"

static void utf8_follows_rfc_3629(void **state)
{
    static const char *const good[] = {"",
                                       "plain",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "a\xe2\x82\xacz"};
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xc2z",
                                      "\xe0\x80\x80",
                                      "\xe0\x9f\xbf",
                                      "\xe2\x82",
                                      "\xed\xa0\x80",
                                      "\xed\xbf\xbf",
                                      "\xf0\x80\x80\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf0\x90\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xfe",
                                      "\xff",
                                      "ok\xff"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(text_is_utf8(good[i], strlen(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(text_is_utf8(bad[i], strlen(bad[i])));
    assert_true(text_is_utf8("a\0b", 3));
    assert_int_equal(text_utf8_length("\xe2\x82\xacx", 4), 3);
    assert_int_equal(text_utf8_length("\xe2\x82\xacx", 2), 0);
    assert_int_equal(text_utf8_length("", 0), 0);
}

/* Every code point in its one right encoding is valid; surrogates are not. */
static void utf8_takes_every_code_point_once(void **state)
{
    (void) state;
    for (uint32_t cp = 0; cp <= 0x110000; cp++) {
        char s[4] = {0};
        size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        static const uint32_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
        uint32_t rest = cp;
        bool valid = cp <= 0x10ffff && (cp < 0xd800 || cp > 0xdfff);

        for (size_t i = n - 1; i > 0; i--) {
            s[i] = (char) (0x80 | (rest & 0x3f));
            rest >>= 6;
        }
        s[0] = (char) (lead[n] | rest);
        if (text_is_utf8(s, n) != valid)
            fail_msg("U+%04X", cp);
    }
}

/* Each text at each distance from a word's end, so that what is read in eights is read rightly. */
static void utf8_is_judged_the_same_at_every_offset(void **state)
{
    static const char *const good[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "~"};
    static const char *const bad[] = {"\x80",         "\xc3", "\xe2\x82",
                                      "\xf0\x9f\x98", "\xff", "\xed\xa0\x80"};

    (void) state;
    for (size_t before = 0; before < 18; before++) {
        for (size_t after = 0; after < 18; after++) {
            char text[48];

            for (size_t i = 0; i < ARRAY_LEN(good); i++) {
                memset(text, 'a', sizeof(text));
                memcpy(text + before, good[i], strlen(good[i]));
                assert_true(text_is_utf8(text, before + strlen(good[i]) + after));
            }
            for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                memset(text, 'a', sizeof(text));
                memcpy(text + before, bad[i], strlen(bad[i]));
                assert_false(text_is_utf8(text, before + strlen(bad[i]) + after));
            }
        }
    }
}

static void plain_length_stops_at_what_json_escapes_or_utf8_lengthens(void **state)
{
    (void) state;
    for (size_t at = 0; at < 24; at++) {
        for (int c = 0; c < 256; c++) {
            bool plain = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
            char text[24];

            memset(text, 'x', sizeof(text));
            text[at] = (char) c;
            if (text_plain_length(text, sizeof(text)) != (plain ? sizeof(text) : at) ||
                text_plain_length(text, at) != at)
                fail_msg("byte %d at %zu", c, at);
        }
    }
}

static void hex_goes_round_and_is_lower_case(void **state)
{
    uint8_t bytes[256];
    uint8_t back[256] = {0};
    char text[513];

    (void) state;
    for (size_t i = 0; i < 256; i++)
        bytes[i] = (uint8_t) i;
    text_hex(bytes, 256, text);
    assert_int_equal(strlen(text), 512);
    assert_memory_equal(text, "000102", 6);
    assert_true(text_unhex(text, 512, back));
    assert_memory_equal(bytes, back, 256);
    assert_false(text_unhex("abc", 3, back));
    assert_false(text_unhex("AB", 2, back));
    assert_false(text_unhex("0g", 2, back));
    assert_true(text_unhex("", 0, back));
    assert_false(text_is_hex("0x", 2));
    assert_false(text_is_hex("G", 1));
    assert_true(text_is_hex("09af", 4));
}

/* RFC 4648 §10. */
static void base64_has_the_vectors_of_its_rfc(void **state)
{
    static const char *const rows[][2] = {{"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"fooba", "Zm9vYmE="},
                                          {"foobar", "Zm9vYmFy"}};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[32];
        uint8_t out[32];
        size_t n = 99;
        size_t len = strlen(rows[i][0]);

        text_base64((const uint8_t *) rows[i][0], len, text);
        assert_string_equal(text, rows[i][1]);
        assert_int_equal(text_base64_size(len), strlen(text) + 1);
        assert_true(text_unbase64(text, strlen(text), out, &n));
        assert_int_equal(n, len);
        assert_memory_equal(out, rows[i][0], len);
        assert_true(text_unbase64(text, strcspn(text, "="), out, &n)); /* without padding */
        assert_int_equal(n, len);
    }
}

static void base64_goes_round_in_both_alphabets(void **state)
{
    uint64_t seed = 3;

    (void) state;
    for (size_t len = 0; len < 200; len++) {
        uint8_t bytes[200];
        uint8_t back[220];
        char text[280];
        size_t n = 0;

        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t) test_random(&seed);
        text_base64(bytes, len, text);
        assert_true(text_unbase64(text, strlen(text), back, &n));
        assert_int_equal(n, len);
        assert_memory_equal(back, bytes, len);
        for (char *p = text; *p != '\0'; p++)
            *p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
        assert_true(text_unbase64(text, strlen(text), back, &n));
        assert_memory_equal(back, bytes, len);
    }
}

static void base64_refuses_other_spellings(void **state)
{
    static const char *const bad[] = {
        "A",    "AAAAA", "Zg=",      "Zg===",    "Zh==",  "Zm9=",  "Z===",
        "=",    "==",    "Zg==Zg==", "Zm9v\n",   " Zm9v", "Zm 9v", "+-AA",
        "/_AA", "Zm9v=", "Zm9v==",   "Zm9v====", "Zm*v",  "Zh"};
    uint8_t out[32];
    size_t n = 0;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (text_unbase64(bad[i], strlen(bad[i]), out, &n))
            fail_msg("taken: '%s'", bad[i]);
    }
}

static void slugs_names_projects(void **state)
{
    static const char *const slugs[] = {"a", "call-setup-2k", "0", "a-"};
    static const char *const no_slugs[] = {"", "-a", "A", "a_b", "a.b", "a b", "\xc3\xa4", "a/b"};
    static const char *const projects[] = {"acme/phone", "A_1/x.y-z", "a/b.jsonx"};
    static const char *const no_projects[] = {"acme",    "/a",     "a/",      "a/b/c", "a/b.json",
                                              "a/b.txt", "a/b.md", "a/b.git", "a/..",  "../b",
                                              "a/.b",    "a//b",   "",        "a b/c", "a/b..c"};
    char longest[66];

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(slugs); i++)
        assert_true(text_is_slug(slugs[i]));
    for (size_t i = 0; i < ARRAY_LEN(no_slugs); i++)
        assert_false(text_is_slug(no_slugs[i]));
    for (size_t i = 0; i < ARRAY_LEN(projects); i++)
        assert_true(text_is_project(projects[i]));
    for (size_t i = 0; i < ARRAY_LEN(no_projects); i++)
        assert_false(text_is_project(no_projects[i]));
    memset(longest, 'a', sizeof(longest));
    longest[65] = '\0';
    assert_false(text_is_name(longest));
    longest[64] = '\0';
    assert_true(text_is_name(longest));
    assert_false(text_is_slug(longest));
    longest[63] = '\0';
    assert_true(text_is_slug(longest));
}

static void run_ids_hold_a_real_date(void **state)
{
    static const char *const bad[] = {"",
                                      "20261129T141502Z",
                                      "20261129T141502Z-",
                                      "20261129T141502Z-0123456",
                                      "20261129T141502Z-012345678",
                                      "20261129T141502Z-0123456G",
                                      "20261129T141502Z-0123456A",
                                      "20260229T141502Z-01234567",
                                      "20261129T241502Z-01234567",
                                      "20261129 141502Z-01234567",
                                      "20261129T141502Z_01234567"};

    (void) state;
    assert_true(text_is_run_id("20261129T141502Z-0123abcf"));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(text_is_run_id(bad[i]));
}

static void nearest_finds_slips_only(void **state)
{
    static const char *const words[] = {"conditioning", "sampling", "run", "class", "windows"};
    const size_t n = ARRAY_LEN(words);
    char hint[TEXT_HINT_SIZE];

    (void) state;
    assert_string_equal(text_nearest("condtioning", words, n), "conditioning"); /* left out */
    assert_string_equal(text_nearest("smapling", words, n), "sampling");        /* swapped */
    assert_string_equal(text_nearest("claxx", words, n), "class");              /* two changed */
    assert_string_equal(text_nearest("window", words, n), "windows");
    assert_string_equal(text_nearest("rum", words, n), "run");
    assert_null(text_nearest("rxm", words, n)); /* short words: one slip */
    assert_null(text_nearest("clxyz", words, n));
    assert_null(text_nearest("", words, n));
    assert_null(text_nearest(
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        words, n));
    assert_null(text_nearest("run", words, 0));
    assert_string_equal(text_hint("sampling", hint), "; did you mean 'sampling'?");
    assert_string_equal(text_hint(NULL, hint), "");
}

static void glob_knows_the_star(void **state)
{
    static const char *const yes[][2] = {
        {"MIMALLOC_*", "MIMALLOC_SHOW"}, {"*", ""},     {"*", "x"},
        {"a*b*c", "aXXbYYbc"},           {"", ""},      {"a**b", "ab"},
        {"*_DIR", "TARGET_DIR"},         {"a?b", "a?b"}};
    static const char *const no[][2] = {{"MIMALLOC_*", "MIMALLO"},
                                        {"", "x"},
                                        {"a*b", "abc"},
                                        {"a", "A"},
                                        {"a?b", "axb"},
                                        {"*a", "b"},
                                        {"a*b*c", "acb"}};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        assert_true(text_glob(yes[i][0], yes[i][1]));
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        assert_false(text_glob(no[i][0], no[i][1]));
}

static void whole_length_cuts_no_character(void **state)
{
    static const struct {
        const char *text;
        size_t max, expected;
    } cases[] = {
        {"", 5, 0},
        {"abc", 5, 3},
        {"abc", 2, 2},
        {"ab\xc3\xa4", 4, 4},
        {"ab\xc3\xa4", 3, 2},
        {"\xe2\x82\xac\xe2\x82\xac", 6, 6},
        {"\xe2\x82\xac\xe2\x82\xac", 5, 3},
        {"\xe2\x82\xac\xe2\x82\xac", 4, 3},
        {"\xe2\x82\xac", 2, 0},
        {"a\xf0\x9f\x98\x82", 4, 1},
        {"a\xe2\x82", 9, 1}, /* cut before */
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(text_whole_length(cases[i].text, cases[i].max), cases[i].expected);
}

static void copy_keeps_whole_characters_that_fit(void **state)
{
    char out[6];

    (void) state;
    assert_string_equal(text_copy(out, sizeof out, "ab"), "ab");
    assert_string_equal(text_copy(out, sizeof out,
                                  "a\xe2\x82\xac"
                                  "b"),
                        "a\xe2\x82\xac"
                        "b");
    assert_string_equal(text_copy(out, sizeof out, "abc\xe2\x82\xac"), "abc");
    assert_string_equal(text_copy(out, 1, "ab"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_follows_rfc_3629),
        cmocka_unit_test(utf8_takes_every_code_point_once),
        cmocka_unit_test(utf8_is_judged_the_same_at_every_offset),
        cmocka_unit_test(plain_length_stops_at_what_json_escapes_or_utf8_lengthens),
        cmocka_unit_test(hex_goes_round_and_is_lower_case),
        cmocka_unit_test(base64_has_the_vectors_of_its_rfc),
        cmocka_unit_test(base64_goes_round_in_both_alphabets),
        cmocka_unit_test(base64_refuses_other_spellings),
        cmocka_unit_test(slugs_names_projects),
        cmocka_unit_test(run_ids_hold_a_real_date),
        cmocka_unit_test(nearest_finds_slips_only),
        cmocka_unit_test(glob_knows_the_star),
        cmocka_unit_test(whole_length_cuts_no_character),
        cmocka_unit_test(copy_keeps_whole_characters_that_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
