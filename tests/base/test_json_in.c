#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"

static cJSON *parsed(const char *text)
{
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    if (json_parse(text, strlen(text), NULL, &j, &e) < 0)
        fail_msg("%s: %s", text, e.text);
    return j;
}

/* Both entries refuse, with this code, and the text ends in "at byte N". */
static void assert_refused(const char *text, size_t len, const char *code)
{
    cJSON *j = NULL;
    struct err e = ERR_INIT;
    char *exact = malloc(len > 0 ? len : 1); /* no NUL behind: a read past the end is seen */
    const char *at = NULL;

    if (len > 0)
        memcpy(exact, text, len);
    if (json_validate(exact, len, NULL, &e) == 0)
        fail_msg("taken: %.*s", (int) len, text);
    assert_string_equal(e.code, code);
    at = strstr(e.text, "at byte ");
    assert_non_null(at);
    assert_int_equal(strspn(at + 8, "0123456789"), strlen(at + 8));
    assert_int_equal(json_parse(exact, len, NULL, &j, &e), -1);
    assert_null(j);
    free(exact);
}

static void every_value_kind_is_read(void **state)
{
    AUTO_JSON cJSON *j = parsed(" {\"n\":null,\"t\":true,\"f\":false,\"i\":-12,\"d\":1.5,\"s\":"
                                "\"x\",\"a\":[1,[]],\"o\":{}}\r\n");

    (void) state;
    assert_string_equal(json_type_name(j), "object");
    assert_string_equal(json_type_name(json_get(j, "n")), "null");
    assert_string_equal(json_type_name(json_get(j, "t")), "boolean");
    assert_string_equal(json_type_name(json_get(j, "f")), "boolean");
    assert_string_equal(json_type_name(json_get(j, "i")), "integer");
    assert_string_equal(json_type_name(json_get(j, "d")), "number");
    assert_string_equal(json_type_name(json_get(j, "s")), "string");
    assert_string_equal(json_type_name(json_get(j, "a")), "array");
    assert_string_equal(json_type_name(json_get(j, "o")), "object");
    assert_string_equal(json_type_name(json_get(j, "x")), "absent");
}

static void what_bare_cjson_takes_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *code;
    } rows[] = {
        {"", "json.syntax"},
        {"  ", "json.syntax"},
        {"{\"a\":1} xyz", "json.trailing"},
        {"1 2", "json.trailing"},
        {"[1]]", "json.trailing"},
        {"012", "json.syntax"},
        {"-01", "json.syntax"},
        {"-", "json.syntax"},
        {"2.", "json.syntax"},
        {"-.5", "json.syntax"},
        {"0.e1", "json.syntax"},
        {"1e", "json.syntax"},
        {"+1", "json.syntax"},
        {"[1,]", "json.syntax"},
        {"[,1]", "json.syntax"},
        {"[1 2]", "json.syntax"},
        {"{\"a\":1,}", "json.syntax"},
        {"{\"a\" 1}", "json.syntax"},
        {"{a:1}", "json.syntax"},
        {"{1:1}", "json.syntax"},
        {"{\"a\"}", "json.syntax"},
        {"[1}", "json.syntax"},
        {"{\"a\":1]", "json.syntax"},
        {"[", "json.syntax"},
        {"{\"a\":", "json.syntax"},
        {"\"a", "json.syntax"},
        {"\"a\\", "json.syntax"},
        {"\"\\x\"", "json.syntax"},
        {"\"\\u12\"", "json.syntax"},
        {"\"\\u12g4\"", "json.syntax"},
        {"\"a\nb\"", "json.syntax"},
        {"\"a\tb\"", "json.syntax"},
        {"True", "json.syntax"},
        {"nul", "json.syntax"},
        {"NaN", "json.syntax"},
        {"'a'", "json.syntax"},
        {"/**/1", "json.syntax"},
        {"\f1", "json.syntax"},
        {"\xef\xbb\xbf{}", "json.syntax"},
        {"\"\xff\"", "json.utf8"},
        {"\"\xed\xa0\x80\"", "json.utf8"},
        {"\"\xc0\xaf\"", "json.utf8"},
        {"\"\xe2\x82\"", "json.utf8"},
        {"\"\\u0000\"", "json.nul"},
        {"{\"\\u0000\":1}", "json.nul"},
        {"\"\\ud800\"", "json.surrogate"},
        {"\"\\udc00\"", "json.surrogate"},
        {"\"\\ud800\\u0041\"", "json.surrogate"},
        {"\"\\ud800\\ud800\"", "json.surrogate"},
        {"\"\\ud800x\"", "json.surrogate"},
        {"1e999", "json.number"},
        {"-1e999", "json.number"},
        {"9007199254740992", "json.integer"},
        {"-9007199254740992", "json.integer"},
        {"18446744073709551616", "json.integer"},
        {"{\"a\":1,\"a\":1}", "json.duplicate"},
        {"{\"a\":1,\"\\u0061\":2}", "json.duplicate"},
        {"{\"\":1,\"\":2}", "json.duplicate"},
        {"{\"\\/\":1,\"/\":2}", "json.duplicate"},
        {"{\"\\ud83d\\ude02\":1,\"\xf0\x9f\x98\x82\":2}", "json.duplicate"},
        {"{\"\\u00e4\":1,\"\xc3\xa4\":2}", "json.duplicate"},
        {"{\"\\u20ac\":1,\"\xe2\x82\xac\":2}", "json.duplicate"},
        {"{\"\\n\":1,\"\\u000a\":2}", "json.duplicate"},
        {"{\"o\":{\"k\":1,\"b\":{\"k\":2},\"k\":3}}", "json.duplicate"},
        {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "json.depth"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_refused(rows[i].text, strlen(rows[i].text), rows[i].code);
    assert_refused("\"a\0b\"", 5, "json.nul");
    assert_refused("1\0", 2, "json.trailing");
    assert_refused("\0", 1, "json.syntax");
}

static void control_characters_must_be_escaped(void **state)
{
    (void) state;
    for (int c = 1; c < 0x20; c++) {
        char text[16];
        int n = snprintf(text, sizeof(text), "\"a%cb\"", c);
        cJSON *j = NULL;

        assert_refused(text, (size_t) n, "json.syntax");
        (void) snprintf(text, sizeof(text), "\"\\u%04x\"", (unsigned) c);
        j = parsed(text);
        assert_int_equal(j->valuestring[0], c);
        json_free(j);
    }
}

static void look_alikes_are_taken(void **state)
{
    static const char *const good[] = {"0",
                                       "-0",
                                       "9007199254740991",
                                       "-9007199254740991",
                                       "1e-999",
                                       "123456789012345678901234567890.5",
                                       "{\"a\":1,\"A\":2}",
                                       "{\"a\":{\"a\":{\"a\":1}}}",
                                       "[{\"a\":1},{\"a\":1}]",
                                       "{\"a\\u0062\":1,\"a\":2,\"b\":3}",
                                       "\"\\\\u0000\"",
                                       "\"\\\\\\u0041\"",
                                       "\"\\ud83d\\ude02\"",
                                       "\"\x7f\"",
                                       "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]",
                                       "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        json_free(parsed(good[i]));
}

static void backslash_u_zero_letters_are_letters(void **state)
{
    AUTO_JSON cJSON *j = parsed("\"\\\\u0000\"");

    (void) state;
    assert_string_equal(j->valuestring, "\\u0000");
}

static void limits_are_exact(void **state)
{
    struct json_limits limits = {.max_bytes = 9, .max_depth = 2, .max_tokens = 4};
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(json_validate("[[1],[2]]", 9, &limits, &e), -1); /* 5 values */
    assert_string_equal(e.code, "json.tokens");
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_int_equal(json_validate("{\"a\":[1]}", 9, &limits, &e), 0); /* 3 values, 1 key */
    assert_int_equal(json_validate("[[[]]]", 6, &limits, &e), -1);
    assert_string_equal(e.code, "json.depth");
    assert_int_equal(json_validate("[[1,\"\"] ]", 9, &limits, &e), 0);
    assert_int_equal(json_validate("[[1,\"\"]  ]", 10, &limits, &e), -1);
    assert_string_equal(e.code, "json.size");
    assert_int_equal(e.kind, ERR_LIMIT);
}

static void depth_has_a_hard_limit(void **state)
{
    char text[3000];
    struct json_limits limits = {.max_bytes = sizeof(text), .max_depth = 100000};
    cJSON *j = NULL;

    (void) state;
    memset(text, '[', 512);
    memset(text + 512, ']', 512);
    assert_int_equal(json_parse(text, 1024, &limits, &j, NULL), 0);
    json_free(j);
    memset(text, '[', 513);
    memset(text + 513, ']', 513);
    assert_int_equal(json_validate(text, 1026, &limits, NULL), -1);
}

static void integers_keep_how_they_were_written(void **state)
{
    AUTO_JSON cJSON *j =
        parsed("{\"a\":[0,0.0,-5,1e2,9007199254740991,{\"s\":\"-1 [2]\\\"3\",\"n\":7},1E0,42]}");
    static const bool expected[] = {true, false, true, false, true, false, false, true};
    const cJSON *item = NULL;
    size_t i = 0;

    (void) state;
    cJSON_ArrayForEach(item, json_get(j, "a")) {
        assert_true(json_is_integer(item) == expected[i]);
        i++;
    }
    assert_int_equal(i, ARRAY_LEN(expected));
    assert_true(json_is_integer(json_get(cJSON_GetArrayItem(json_get(j, "a"), 5), "n")));
    assert_false(json_is_integer(j));
    assert_false(json_is_integer(NULL));
    assert_true(cJSON_IsNumber(cJSON_GetArrayItem(json_get(j, "a"), 0)));
}

static void big_integers_are_rounded_when_asked_for(void **state)
{
    struct json_limits limits = {.max_bytes = 1000, .big_integers = true};
    static const char text[] = "[9007199254740993,18446744073709551615,7]";
    AUTO_JSON cJSON *j = NULL;

    (void) state;
    assert_int_equal(json_parse(text, strlen(text), &limits, &j, NULL), 0);
    assert_true(num_same(j->child->valuedouble, 9007199254740992.0));
    assert_false(json_is_integer(j->child));
    assert_true(num_same(j->child->next->valuedouble, 18446744073709551616.0));
    assert_true(json_is_integer(j->child->next->next));
}

/* cJSON's own number buffer has 63 bytes: what is longer must not change the value. */
static void long_numbers_are_exact(void **state)
{
    for (size_t zeros = 40; zeros < 400; zeros++) {
        char text[600];
        AUTO_JSON cJSON *j = NULL;
        int n = snprintf(text, sizeof(text), "{\"a\":[0.%0*d1e%zu,3],\"b\":4}", (int) zeros, 0,
                         zeros + 3);

        (void) state;
        assert_true(n > 0);
        j = parsed(text);
        assert_true(num_same(json_get(j, "a")->child->valuedouble, 100.0));
        assert_false(json_is_integer(json_get(j, "a")->child));
        assert_true(json_is_integer(json_get(j, "a")->child->next));
        assert_true(json_is_integer(json_get(j, "b")));
    }
}

/* Without an exponent a number overflows by its mere length. */
static void overflow_needs_no_exponent(void **state)
{
    struct json_limits limits = {.max_bytes = 1000, .big_integers = true};
    struct err e = ERR_INIT;

    (void) state;
    for (size_t digits = 290; digits < 330; digits++) {
        char text[400];
        double unused = 0;

        memset(text, '9', digits);
        memcpy(text + digits, ".5", 3);
        assert_int_equal(json_validate(text, digits + 2, &limits, &e),
                         num_parse_double(text, digits + 2, &unused) ? 0 : -1);
        assert_int_equal(json_validate(text, digits, &limits, &e), digits > 308 ? -1 : 0);
    }
    assert_string_equal(e.code, "json.number");
}

/* cJSON is given the bytes themselves, which need no NUL behind them. */
static void nothing_behind_the_document_is_read(void **state)
{
    static const char *const texts[] = {"12345", "-0.5",         "\"x\"", "true",
                                        "[1]",   "{\"a\":1e3} ", "1.5e-3"};

    (void) state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        size_t len = strlen(texts[i]);
        char *exact = malloc(len);
        cJSON *j = NULL;
        AUTO_JSON cJSON *same = parsed(texts[i]);
        struct err e = ERR_INIT;

        assert_non_null(exact);
        memcpy(exact, texts[i], len);
        assert_int_equal(json_parse(exact, len, NULL, &j, &e), 0);
        assert_true(json_equal(j, same));
        json_free(j);
        free(exact);
    }
}

/* Few and many keys are compared in different ways. */
static void a_key_that_comes_again_is_named(void **state)
{
    (void) state;
    for (int n = 1; n < 40; n++) {
        for (int again = 0; again < n; again++) {
            AUTO_BUF struct buf text = {0};
            char at[32];
            struct err e = ERR_INIT;

            buf_init(&text, LIMIT_KIB(4));
            buf_putc(&text, '{');
            for (int i = 0; i < n; i++)
                buf_printf(&text, "\"k%d\":0,", i);
            (void) snprintf(at, sizeof(at), "at byte %zu", text.len);
            buf_printf(&text, "\"\\u006b%d\":0}", again);
            assert_int_equal(json_validate(text.data, text.len, NULL, &e), -1);
            assert_string_equal(e.code, "json.duplicate");
            assert_non_null(strstr(e.text, at));
        }
    }
}

static void many_keys_are_checked(void **state)
{
    const size_t n = 100000;
    struct json_limits limits = {.max_bytes = LIMIT_MIB(8)};
    AUTO_BUF struct buf text = {0};
    struct err e = ERR_INIT;

    (void) state;
    buf_init(&text, LIMIT_MIB(8));
    buf_putc(&text, '{');
    for (size_t i = 0; i < n; i++)
        buf_printf(&text, "\"key-%zu\":1,", i);
    buf_puts(&text, "\"last\":1}");
    assert_int_equal(json_validate(text.data, text.len, &limits, &e), 0);
    text.len--;
    buf_puts(&text, ",\"key-50000\":1}");
    assert_int_equal(json_validate(text.data, text.len, &limits, &e), -1);
    assert_string_equal(e.code, "json.duplicate");
}

static void lookup_is_case_sensitive(void **state)
{
    AUTO_JSON cJSON *j = parsed("{\"Key\":1,\"key\":2}");

    (void) state;
    assert_true(num_same(json_get(j, "key")->valuedouble, 2));
    assert_null(json_get(j, "KEY"));
    assert_null(json_get(NULL, "key"));
    assert_null(json_get(json_get(j, "key"), "key"));
}

static void getters_give_values_of_their_type_only(void **state)
{
    AUTO_JSON cJSON *j = parsed(
        "{\"s\":\"x\",\"z\":null,\"t\":true,\"i\":5,\"neg\":-1,\"d\":5.0,\"o\":{},\"a\":[]}");
    static const char *const keys[] = {"s", "z", "t", "i", "neg", "d", "o", "a", "absent"};
    /* which getter takes which key: string, string|null, bool, u53, object, array */
    static const char takes[][7] = {"110000", "010000", "001000", "000100", "000000",
                                    "000000", "000010", "000001", "000000"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *s = "unset";
        bool b = false;
        uint64_t u = 0;
        const cJSON *node = NULL;
        struct err e = ERR_INIT;
        int results[6];

        results[0] = json_get_string(j, keys[i], &s, &e);
        results[1] = json_get_string_or_null(j, keys[i], &s, &e);
        results[2] = json_get_bool(j, keys[i], &b, &e);
        results[3] = json_get_u53(j, keys[i], 100, &u, &e);
        results[4] = json_get_object(j, keys[i], &node, &e);
        results[5] = json_get_array(j, keys[i], &node, &e);
        for (size_t k = 0; k < ARRAY_LEN(results); k++) {
            if ((results[k] == 0) != (takes[i][k] == '1'))
                fail_msg("getter %zu and key %s", k, keys[i]);
        }
        assert_int_equal(e.kind, ERR_INPUT);
        assert_non_null(strstr(e.text, keys[i])); /* the last refusal names the key */
    }
}

static void u53_has_a_maximum(void **state)
{
    AUTO_JSON cJSON *j = parsed("{\"n\":9007199254740991}");
    uint64_t n = 0;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(json_get_u53(j, "n", UINT64_MAX, &n, &e), 0);
    assert_true(n == UINT64_C(9007199254740991));
    assert_int_equal(json_get_u53(j, "n", n - 1, &n, &e), -1);
    assert_string_equal(e.text, "'n' is 9007199254740991: at most 9007199254740990 allowed");
}

static void unknown_keys_are_refused_with_a_hint(void **state)
{
    static const char *const known[] = {"class", "build", "run"};
    AUTO_JSON cJSON *good = parsed("{\"run\":1,\"class\":2}");
    AUTO_JSON cJSON *slip = parsed("{\"run\":1,\"biuld\":2}");
    AUTO_JSON cJSON *odd = parsed("{\"Run\":1,\"elephant\":2}");
    AUTO_JSON cJSON *array = parsed("[]");
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(json_only_keys(good, known, 3, &e), 0);
    assert_int_equal(json_only_keys(slip, known, 3, &e), -1);
    assert_string_equal(e.text, "unknown key 'biuld': did you mean 'build'?");
    assert_int_equal(json_only_keys(odd, known, 3, &e), -1);
    assert_int_equal(json_only_keys(array, known, 3, &e), -1);
    assert_int_equal(json_only_keys(NULL, known, 3, &e), -1);
}

static void equality_is_by_value(void **state)
{
    static const struct {
        const char *a;
        const char *b;
        bool equal;
    } rows[] = {
        {"2000", "2000.0", true},
        {"2e3", "2000", true},
        {"1", "true", false},
        {"0", "-0", true},
        {"null", "false", false},
        {"\"a\"", "\"\\u0061\"", true},
        {"\"a\"", "\"A\"", false},
        {"{\"a\":1,\"b\":[2]}", "{\"b\":[2.0],\"a\":1}", true},
        {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":1}", false},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"a\":1}", "{\"A\":1}", false},
        {"[1,2]", "[2,1]", false},
        {"[1,2]", "[1,2,3]", false},
        {"[1,2,3]", "[1,2]", false},
        {"[]", "{}", false},
        {"[[],[[]]]", "[[],[[]]]", true},
        {"[[],[[]]]", "[[],[{}]]", false},
        {"{\"a\":{\"x\":[1,{\"y\":\"z\"}]},\"b\":null}",
         "{\"b\":null,\"a\":{\"x\":[1,{\"y\":\"z\"}]}}", true},
        {"{\"a\":{\"x\":[1,{\"y\":\"z\"}]},\"b\":null}",
         "{\"b\":null,\"a\":{\"x\":[1,{\"y\":\"Z\"}]}}", false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON cJSON *a = parsed(rows[i].a);
        AUTO_JSON cJSON *b = parsed(rows[i].b);

        if (json_equal(a, b) != rows[i].equal || json_equal(b, a) != rows[i].equal)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
    assert_true(json_equal(NULL, NULL));
}

static void equality_of_large_reordered_objects(void **state)
{
    AUTO_BUF struct buf up = {0};
    AUTO_BUF struct buf down = {0};
    const int n = 30000;
    AUTO_JSON cJSON *a = NULL;
    AUTO_JSON cJSON *b = NULL;

    (void) state;
    buf_init(&up, LIMIT_MIB(1));
    buf_init(&down, LIMIT_MIB(1));
    for (int i = 0; i < n; i++) {
        buf_printf(&up, "%s\"k%d\":%d", i == 0 ? "{" : ",", i, i);
        buf_printf(&down, "%s\"k%d\":%d", i == 0 ? "{" : ",", n - 1 - i, n - 1 - i);
    }
    buf_putc(&up, '}');
    buf_putc(&down, '}');
    a = parsed(up.data);
    b = parsed(down.data);
    assert_true(json_equal(a, b));
    cJSON_GetArrayItem(b, n / 2)->valuedouble = -1;
    assert_false(json_equal(a, b));
}

static void text_and_number_have_a_default(void **state)
{
    struct err e = ERR_INIT;
    AUTO_JSON cJSON *j = NULL;
    static const char text[] = "{\"s\": \"x\", \"n\": 2.5, \"null\": null}";

    (void) state;
    assert_int_equal(json_parse(text, strlen(text), NULL, &j, &e), 0);
    assert_string_equal(json_text(j, "s", "-"), "x");
    assert_string_equal(json_text(j, "n", "-"), "-");
    assert_string_equal(json_text(j, "null", "-"), "-");
    assert_null(json_text(j, "S", NULL));
    assert_null(json_text(NULL, "s", NULL));
    assert_true(json_number(j, "n", -1) > 2.4 && json_number(j, "n", -1) < 2.6);
    assert_true(json_number(j, "s", -1) < 0 && json_number(NULL, "n", -1) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_number_have_a_default),
        cmocka_unit_test(every_value_kind_is_read),
        cmocka_unit_test(what_bare_cjson_takes_is_refused),
        cmocka_unit_test(control_characters_must_be_escaped),
        cmocka_unit_test(look_alikes_are_taken),
        cmocka_unit_test(backslash_u_zero_letters_are_letters),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(depth_has_a_hard_limit),
        cmocka_unit_test(integers_keep_how_they_were_written),
        cmocka_unit_test(big_integers_are_rounded_when_asked_for),
        cmocka_unit_test(long_numbers_are_exact),
        cmocka_unit_test(overflow_needs_no_exponent),
        cmocka_unit_test(nothing_behind_the_document_is_read),
        cmocka_unit_test(a_key_that_comes_again_is_named),
        cmocka_unit_test(many_keys_are_checked),
        cmocka_unit_test(lookup_is_case_sensitive),
        cmocka_unit_test(getters_give_values_of_their_type_only),
        cmocka_unit_test(u53_has_a_maximum),
        cmocka_unit_test(unknown_keys_are_refused_with_a_hint),
        cmocka_unit_test(equality_is_by_value),
        cmocka_unit_test(equality_of_large_reordered_objects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
