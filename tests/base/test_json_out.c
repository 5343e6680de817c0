#include "tests/lib/support.h"

#include <math.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/num.h"

static char *written(const cJSON *j, enum json_style style)
{
    AUTO_BUF struct buf text = {0};
    size_t n = 0;

    buf_init(&text, LIMIT_MIB(1));
    json_write(&text, j, style);
    return buf_take(&text, &n);
}

static void assert_written(const char *source, enum json_style style, const char *expected)
{
    cJSON *j = NULL;
    char *text = NULL;

    assert_int_equal(json_parse(source, strlen(source), NULL, &j, NULL), 0);
    text = written(j, style);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
    json_free(j);
}

static void compact_form_is_exact(void **state)
{
    (void) state;
    assert_written(" { \"b\" : [ 1 , 2.50, -0.0, 1e22, 9007199254740991, 5e-324 ] , \"a\" : { } , "
                   "\"\" : [ ] } ",
                   JSON_COMPACT,
                   "{\"b\":[1,2.5,0,1e+22,9007199254740991,5e-324],\"a\":{},\"\":[]}");
    assert_written("[null,true,false]", JSON_COMPACT, "[null,true,false]");
    assert_written("7", JSON_COMPACT, "7");
    assert_written("\"x\"", JSON_COMPACT, "\"x\"");
}

static void pretty_form_is_exact(void **state)
{
    (void) state;
    assert_written("{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[]}", JSON_PRETTY,
                   "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": {},\n  "
                   "\"d\": []\n}\n");
    assert_written("3", JSON_PRETTY, "3\n");
}

static void strings_are_safe_inside_html(void **state)
{
    AUTO_BUF struct buf text = {0};

    (void) state;
    buf_init(&text, 1000);
    json_write_string(&text, "</script> \"\\/\b\f\n\r\t\x01\x1f\x7f \xe2\x82\xac");
    assert_string_equal(
        text.data, "\"\\u003c/script> \\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f \xe2\x82\xac\"");
}

static void large_integers_stay_readable(void **state)
{
    static const struct {
        double v;
        const char *text;
    } rows[] = {{9007199254740991.0, "9007199254740991"},
                {9007199254740992.0, "9007199254740992.0"},
                {-1e20, "-100000000000000000000.0"},
                {1e21, "1e+21"},
                {0.1, "0.1"}};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf text = {0};
        AUTO_JSON cJSON *j = NULL;

        buf_init(&text, 100);
        json_write_number(&text, rows[i].v);
        assert_string_equal(text.data, rows[i].text);
        assert_int_equal(json_parse(text.data, text.len, NULL, &j, NULL), 0);
        assert_true(num_same(j->valuedouble, rows[i].v));
    }
}

static void what_json_cannot_hold_fails_the_buffer(void **state)
{
    AUTO_BUF struct buf text = {0};
    AUTO_JSON cJSON *raw = cJSON_CreateRaw("1");
    AUTO_JSON cJSON *nan = cJSON_CreateNumber(NAN);
    const cJSON *const trees[] = {raw, nan, NULL};

    (void) state;
    buf_init(&text, 1000);
    json_write_number(&text, INFINITY);
    assert_true(text.failed);
    buf_clear(&text);
    json_write_string(&text, "\xff");
    assert_true(text.failed);
    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        buf_clear(&text);
        json_write(&text, trees[i], JSON_COMPACT);
        assert_true(text.failed);
    }
}

static void too_deep_a_tree_fails_the_buffer(void **state)
{
    for (size_t depth = LIMIT_JSON_DEPTH_HARD; depth <= LIMIT_JSON_DEPTH_HARD + 1; depth++) {
        AUTO_JSON cJSON *root = cJSON_CreateArray();
        cJSON *inner = root;
        AUTO_BUF struct buf text = {0};

        (void) state;
        for (size_t i = 1; i < depth; i++) {
            cJSON *next = cJSON_CreateArray();

            assert_true(cJSON_AddItemToArray(inner, next));
            inner = next;
        }
        buf_init(&text, LIMIT_MIB(1));
        json_write(&text, root, JSON_COMPACT);
        assert_true(text.failed == (depth > LIMIT_JSON_DEPTH_HARD));
    }
}

static void builders_make_the_document(void **state)
{
    AUTO_JSON_DOC struct json_doc d = {0};
    AUTO_JSON cJSON *source = NULL;
    AUTO_JSON cJSON *root = NULL;
    cJSON *list = NULL;
    cJSON *object = NULL;
    char *text = NULL;
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(json_parse("{\"k\":[1,2.5]}", 13, NULL, &source, &e), 0);
    json_doc_init_object(&d);
    json_add_string(&d, NULL, "s", "x<y");
    json_add_string(&d, NULL, "none", NULL);
    json_add_bool(&d, NULL, "yes", true);
    list = json_add_array(&d, NULL, "list");
    json_add_int(&d, list, NULL, -9007199254740991);
    json_add_double(&d, list, NULL, 0.5);
    json_add_double(&d, list, NULL, NAN);
    json_add_null(&d, list, NULL);
    json_add_copy(&d, list, NULL, json_get(source, "k"));
    object = json_add_object(&d, NULL, "o");
    json_add_copy(&d, object, "copy", json_get(source, "k"));
    json_add_copy(&d, object, "nothing", json_get(source, "absent"));
    root = json_doc_take(&d, &e);
    assert_non_null(root);
    text = written(root, JSON_COMPACT);
    assert_string_equal(text, "{\"s\":\"x\\u003cy\",\"none\":null,\"yes\":true,\"list\":[-"
                              "9007199254740991,0.5,null,null,[1,2.5]],"
                              "\"o\":{\"copy\":[1,2.5]}}");
    free(text);
    assert_true(json_is_integer(json_get(root, "list")->child));
    assert_false(json_is_integer(json_get(root, "list")->child->next));
    assert_true(json_is_integer(
        json_get(json_get(root, "o"), "copy")->child)); /* the copy keeps the mark */
}

static void one_failed_add_fails_the_document(void **state)
{
    for (int kind = 0; kind < 7; kind++) {
        AUTO_JSON_DOC struct json_doc d = {0};
        struct err e = ERR_INIT;
        cJSON *list = NULL;

        (void) state;
        json_doc_init_object(&d);
        list = json_add_array(&d, NULL, "list");
        switch (kind) {
        case 0:
            json_add_int(&d, NULL, "n", INT64_C(9007199254740992));
            break;
        case 1:
            json_add_string(&d, NULL, "s", "\xff");
            break;
        case 2:
            json_add_string(&d, NULL, NULL, "no key in an object");
            break;
        case 3:
            json_add_string(&d, list, "key", "a key in an array");
            break;
        case 4:
            assert_null(json_add(&d, NULL, "k", NULL));
            break;
        case 5:
            json_add_null(&d, NULL, "\xff");
            break;
        default:
            assert_null(json_add(&d, json_add(&d, NULL, "n", cJSON_CreateNumber(1)), "k",
                                 cJSON_CreateNull()));
            break;
        }
        json_add_string(&d, NULL, "later", "fine");
        assert_null(json_doc_take(&d, &e));
        assert_int_not_equal(e.kind, ERR_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compact_form_is_exact),
        cmocka_unit_test(pretty_form_is_exact),
        cmocka_unit_test(strings_are_safe_inside_html),
        cmocka_unit_test(large_integers_stay_readable),
        cmocka_unit_test(what_json_cannot_hold_fails_the_buffer),
        cmocka_unit_test(too_deep_a_tree_fails_the_buffer),
        cmocka_unit_test(builders_make_the_document),
        cmocka_unit_test(one_failed_add_fails_the_document),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
