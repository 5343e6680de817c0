#include "tests/lib/support.h"

#include <math.h>
#include <string.h>

#include "base/jcs.h"
#include "base/json_in.h"
#include "base/limits.h"

#define CORPUS "data/corpora/jcs"

/* The canonical form of a text, on the heap. */
static char *canonical(const char *text, size_t len, size_t *out_len)
{
    AUTO_JSON cJSON *j = NULL;
    AUTO_BUF struct buf out = {0};
    struct err e = ERR_INIT;

    if (json_parse(text, len, NULL, &j, &e) < 0)
        fail_msg("%s", e.text);
    buf_init(&out, LIMIT_CANONICAL);
    if (jcs_write(&out, j, &e) < 0)
        fail_msg("%s", e.text);
    return buf_take(&out, out_len);
}

static void assert_canonical(const char *text, const char *expected)
{
    size_t n = 0;
    char *out = canonical(text, strlen(text), &n);

    assert_string_equal(out, expected);
    free(out);
}

static void published_pairs_agree(void **state)
{
    char *dir = test_shared(CORPUS);
    char *input = NULL;
    char **names = NULL;
    size_t n = 0;

    (void) state;
    if (!dir)
        skip();
    input = test_join(dir, "input");
    n = test_list(input, ".json", &names);
    assert_true(n >= 6);
    for (size_t i = 0; i < n; i++) {
        char *in_path = test_join(input, names[i]);
        char *out_dir = test_join(dir, "output");
        char *out_path = test_join(out_dir, names[i]);
        size_t in_len = 0;
        size_t want_len = 0;
        size_t got_len = 0;
        char *in = test_read_path(in_path, &in_len);
        char *want = test_read_path(out_path, &want_len);
        char *got = canonical(in, in_len, &got_len);

        while (want_len > 0 && want[want_len - 1] == '\n')
            want_len--; /* the files may end in a line feed, the form does not */
        if (got_len != want_len || memcmp(got, want, want_len) != 0)
            fail_msg("%s: %s", names[i], got);
        free(got);
        free(want);
        free(in);
        free(out_path);
        free(out_dir);
        free(in_path);
    }
    test_names_free(names);
    free(input);
    free(dir);
}

/* RFC 8785 §3.2.2 and §3.2.3. */
static void rfc_examples(void **state)
{
    (void) state;
    assert_canonical(
        "{\"numbers\":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"
        "\"string\":\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\","
        "\"literals\":[null,true,false]}",
        "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
        "\"string\":\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
    assert_canonical(
        "{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\",\"\\ufb33\":\"Hebrew Letter Dalet "
        "With Dagesh\","
        "\"1\":\"One\",\"\\ud83d\\ude00\":\"Emoji: Grinning Face\",\"\\u0080\":\"Control\","
        "\"\\u00f6\":\"Latin Small Letter O With Diaeresis\"}",
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\","
        "\"\xc3\xb6\":\"Latin Small Letter O With Diaeresis\",\"\xe2\x82\xac\":\"Euro Sign\","
        "\"\xf0\x9f\x98\x80\":\"Emoji: Grinning Face\",\"\xef\xac\xb3\":\"Hebrew Letter Dalet With "
        "Dagesh\"}");
}

static void only_what_must_be_is_escaped(void **state)
{
    (void) state;
    assert_canonical("\"<\\/\\u007f\\u001f\\u0008\\u2028\"", "\"</\x7f\\u001f\\b\xe2\x80\xa8\"");
}

static void keys_sort_by_utf16_units(void **state)
{
    (void) state;
    /* prefixes first; the astral plane (D83D…) before U+E000 and U+FFFF, after U+D7FF */
    assert_canonical("{\"ab\":1,\"a\":2,\"\":3,\"B\":4}", "{\"\":3,\"B\":4,\"a\":2,\"ab\":1}");
    assert_canonical("{\"x\\uffff\":1,\"x\\ud83d\\ude02\":2,\"x\\ue000\":3,\"x\\ud7ff\":4,"
                     "\"x\\udbff\\udfff\":5,\"x\":6}",
                     "{\"x\":6,\"x\xed\x9f\xbf\":4,\"x\xf0\x9f\x98\x82\":2,\"x\xf4\x8f\xbf\xbf\":5,"
                     "\"x\xee\x80\x80\":3,"
                     "\"x\xef\xbf\xbf\":1}");
    /* same lead byte, different rest */
    assert_canonical("{\"\\u00e9\":1,\"\\u00e8\":2}", "{\"\xc3\xa8\":2,\"\xc3\xa9\":1}");
}

static struct digest digest_text(const char *text)
{
    AUTO_JSON cJSON *j = NULL;
    struct digest d = {0};

    assert_int_equal(json_parse(text, strlen(text), NULL, &j, NULL), 0);
    assert_int_equal(jcs_digest(j, &d, NULL), 0);
    return d;
}

static void digest_sees_value_and_type_not_spelling(void **state)
{
    struct digest a = digest_text("{\"cps\":2000,\"v\":[1.50]}");
    struct digest same = digest_text("{ \"v\" : [15e-1], \"cps\" : 2000.0 }");
    struct digest value = digest_text("{\"cps\":2001,\"v\":[1.5]}");
    struct digest one = digest_text("1");
    struct digest truth = digest_text("true");
    struct digest word = digest_text("\"1\"");
    struct digest plain = digest_of("{\"cps\":2000,\"v\":[1.5]}", 22);

    (void) state;
    assert_true(digest_equal(&a, &same));
    assert_true(digest_equal(&a, &plain));
    assert_false(digest_equal(&a, &value));
    assert_false(digest_equal(&one, &truth));
    assert_false(digest_equal(&one, &word));
}

static void what_has_no_canonical_form_is_refused(void **state)
{
    AUTO_JSON cJSON *nan = cJSON_CreateNumber(NAN);
    AUTO_JSON cJSON *text = cJSON_CreateString("\xff");
    AUTO_JSON cJSON *raw = cJSON_CreateRaw("1");
    AUTO_JSON cJSON *twice = cJSON_CreateObject();
    AUTO_JSON cJSON *key = cJSON_CreateObject();
    AUTO_JSON cJSON *deep = cJSON_CreateArray();
    const cJSON *trees[] = {nan, text, raw, twice, key, deep, NULL};
    cJSON *inner = deep;

    (void) state;
    assert_non_null(cJSON_AddNullToObject(twice, "k"));
    assert_non_null(cJSON_AddNullToObject(twice, "k"));
    assert_non_null(cJSON_AddNullToObject(key, "\xff"));
    for (size_t i = 0; i < LIMIT_JSON_DEPTH_HARD; i++) {
        cJSON *next = cJSON_CreateArray();

        assert_true(cJSON_AddItemToArray(inner, next));
        inner = next;
    }
    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        struct digest d;
        struct err e = ERR_INIT;

        assert_int_equal(jcs_digest(trees[i], &d, &e), -1);
        assert_int_equal(e.kind, ERR_INPUT);
    }
}

static void full_buffer_is_an_error(void **state)
{
    AUTO_JSON cJSON *j = cJSON_CreateString("0123456789");
    AUTO_BUF struct buf out = {0};
    struct err e = ERR_INIT;

    (void) state;
    buf_init(&out, 5);
    assert_int_equal(jcs_write(&out, j, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_pairs_agree),
        cmocka_unit_test(rfc_examples),
        cmocka_unit_test(only_what_must_be_is_escaped),
        cmocka_unit_test(keys_sort_by_utf16_units),
        cmocka_unit_test(digest_sees_value_and_type_not_spelling),
        cmocka_unit_test(what_has_no_canonical_form_is_refused),
        cmocka_unit_test(full_buffer_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
