#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/pointer.h"

static cJSON *parse(const char *text)
{
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    assert_int_equal(json_parse(text, strlen(text), NULL, &j, &e), 0);
    return j;
}

/* The document and the answers of RFC 6901 §5. */
static void pointer_reads_the_examples_of_the_rfc(void **state)
{
    AUTO_JSON cJSON *doc = parse(
        "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,\"i\\\\j\":5,"
        "\"k\\\"l\":6,\" \":7,\"m~n\":8}");
    static const struct {
        const char *pointer;
        double value;
    } cases[] = {{"/", 0},     {"/a~1b", 1}, {"/c%d", 2}, {"/e^f", 3}, {"/g|h", 4},
                 {"/i\\j", 5}, {"/k\"l", 6}, {"/ ", 7},   {"/m~0n", 8}};

    (void) state;
    assert_ptr_equal(pointer_get(doc, ""), doc);
    assert_int_equal(cJSON_GetArraySize(pointer_get(doc, "/foo")), 2);
    assert_string_equal(pointer_get(doc, "/foo/0")->valuestring, "bar");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const cJSON *found = pointer_get(doc, cases[i].pointer);

        assert_non_null(found);
        assert_int_equal((int) found->valuedouble, (int) cases[i].value);
    }
    assert_null(pointer_get(doc, "/foo/2"));
    assert_null(pointer_get(doc, "/foo/00"));
    assert_null(pointer_get(doc, "/foo/-"));
    assert_null(pointer_get(doc, "/FOO"));
    assert_null(pointer_get(doc, "foo"));
}

static void pointer_ok_refuses_what_is_no_pointer(void **state)
{
    (void) state;
    assert_true(pointer_ok(""));
    assert_true(pointer_ok("/a/*/b"));
    assert_false(pointer_ok("a"));
    assert_false(pointer_ok("/a~2"));
    assert_false(pointer_ok("/a~"));
    assert_false(pointer_ok("/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"));
}

static void pointer_expands_stars_over_members_and_elements(void **state)
{
    AUTO_JSON cJSON *doc = parse(
        "{\"l\":{\"z\":{\"p\":1},\"a\":{\"p\":2},\"q\":3},\"list\":[{\"x\":1},{\"y\":2}],\"*\":9}");
    AUTO_POINTER_LIST struct pointer_list found = {0};
    AUTO_POINTER_LIST struct pointer_list list = {0};
    AUTO_POINTER_LIST struct pointer_list none = {0};
    struct err e = ERR_INIT;

    (void) state;
    assert_true(pointer_is_pattern("/l/*/p"));
    assert_false(pointer_is_pattern("/l/a*/p"));
    assert_int_equal(pointer_expand(doc, "/l/*/p", 2, &found, &e), 0);
    assert_int_equal(found.n, 2);
    assert_string_equal(found.items[0].pointer, "/l/a/p");
    assert_string_equal(found.items[1].pointer, "/l/z/p");
    assert_int_equal(pointer_expand(doc, "/list/*", 9, &list, &e), 0);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[1].pointer, "/list/1");
    assert_int_equal(pointer_expand(doc, "/nothing/*", 9, &none, &e), 0);
    assert_int_equal(none.n, 0);
}

static void every_member_that_lacks_the_rest_is_listed(void **state)
{
    AUTO_JSON cJSON *doc = parse("{\"m\":{\"a~\":{\"p\":{\"q\":1}},\"b\":{\"p\":2},\"c\":{},\"d\":"
                                 "3,\"e\":{\"p\":{\"q\":4}}}}");
    AUTO_POINTER_LIST struct pointer_list list = {0};
    AUTO_POINTER_LIST struct pointer_list over = {0};
    AUTO_POINTER_LIST struct pointer_list none = {0};
    AUTO_POINTER_LIST struct pointer_list nested = {0};
    static const char *const pointers[] = {"/m/a~0/p/q", "/m/b/p/q", "/m/c/p/q", "/m/d/p/q",
                                           "/m/e/p/q"};
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(pointer_expand_every(doc, "/m/*/p/q", 5, &list, &e), 0);
    assert_int_equal(list.n, ARRAY_LEN(pointers));
    for (size_t i = 0; i < list.n; i++) {
        assert_string_equal(list.items[i].pointer, pointers[i]);
        assert_ptr_equal(list.items[i].value, pointer_get(doc, pointers[i]));
        assert_non_null(pointer_list_find(&list, pointers[i]));
    }
    assert_int_equal(pointer_expand_every(doc, "/m/*/p/q", 4, &over, &e), 0);
    assert_true(over.over);
    assert_int_equal(pointer_expand_every(doc, "/n/*/p", 5, &none, &e), 0);
    assert_int_equal(none.n, 0);
    assert_int_equal(pointer_expand_every(doc, "/m/*/p/*", 5, &nested, &e), 0);
    assert_int_equal(nested.n, 5);
    assert_string_equal(nested.items[1].pointer, "/m/b/p/*");
    assert_null(nested.items[1].value);
}

/* Never a part that looks like the whole. */
static void more_than_fit_is_told_and_nothing_listed(void **state)
{
    AUTO_JSON cJSON *doc =
        parse("{\"m\":{\"b-\":[1,2],\"b\":[3],\"a/c\":[4,5,6,7,8,9,10,11,12,13,14]}}");
    AUTO_POINTER_LIST struct pointer_list list = {0};
    AUTO_POINTER_LIST struct pointer_list over = {0};
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(pointer_expand(doc, "/m/*/*", 14, &list, &e), 0);
    assert_int_equal(list.n, 14);
    assert_int_equal(list.total, 14);
    assert_false(list.over);
    for (size_t i = 0; i < list.n; i++) {
        assert_ptr_equal(list.items[i].value, pointer_get(doc, list.items[i].pointer));
        assert_ptr_equal(list.items[i].value, pointer_list_get(&list, list.items[i].pointer));
    }
    assert_string_equal(list.items[10].pointer, "/m/a~1c/10");
    assert_string_equal(list.items[11].pointer, "/m/b/0");
    assert_null(pointer_list_get(&list, "/m/b/1"));
    assert_null(pointer_list_get(&list, ""));
    assert_int_equal(pointer_expand(doc, "/m/*/*", 13, &over, &e), 0);
    assert_true(over.over);
    assert_int_equal(over.n, 0);
    assert_int_equal(over.total, 14);
}

static void long_keys_are_values_too(void **state)
{
    AUTO_JSON cJSON *doc = cJSON_CreateObject();
    AUTO_FREE char *key = calloc(1, LIMIT_JSON_DOCUMENT + 1);
    AUTO_POINTER_LIST struct pointer_list list = {0};
    AUTO_POINTER_LIST struct pointer_list over = {0};
    AUTO_FREE char *label = NULL;
    struct err e = ERR_INIT;

    (void) state;
    assert_non_null(key);
    memset(key, 'k', 2000);
    assert_non_null(cJSON_AddNumberToObject(doc, key, 7));
    assert_int_equal(pointer_expand(doc, "/*", 1, &list, &e), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal((int) list.items[0].value->valuedouble, 7);
    label = pointer_label("{1}{1}{1}{1}{1}", "/*", list.items[0].pointer);
    assert_non_null(label);
    assert_true(strlen(label) <= POINTER_LABEL_MAX);
    memset(key, 'k', LIMIT_JSON_DOCUMENT);
    assert_non_null(cJSON_AddNumberToObject(doc, key, 8));
    assert_int_equal(pointer_expand(doc, "/*", 2, &over, &e), 0);
    assert_true(over.over);
    assert_int_equal(over.total, 2);
}

static void pointer_label_names_what_the_stars_matched(void **state)
{
    static const char *const rows[][4] = {
        {"{1} p50", "/latency/*/p50", "/latency/setup/p50", "setup p50"},
        {"{2} of {1}", "/a/*/b/*", "/a/x/b/7", "7 of x"},
        {"{3}|{0}|{a}", "/a/*", "/a/x", "|{0}|{a}"},
        {NULL, "/a/*", "/a/x", "/a/x"},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *label = pointer_label(rows[i][0], rows[i][1], rows[i][2]);

        assert_string_equal(label, rows[i][3]);
        free(label);
    }
}

static void pointer_join_escapes(void **state)
{
    AUTO_FREE char *joined = pointer_join("/a", "b/c~d");

    (void) state;
    assert_string_equal(joined, "/a/b~1c~0d");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointer_reads_the_examples_of_the_rfc),
        cmocka_unit_test(pointer_ok_refuses_what_is_no_pointer),
        cmocka_unit_test(pointer_expands_stars_over_members_and_elements),
        cmocka_unit_test(every_member_that_lacks_the_rest_is_listed),
        cmocka_unit_test(more_than_fit_is_told_and_nothing_listed),
        cmocka_unit_test(long_keys_are_values_too),
        cmocka_unit_test(pointer_label_names_what_the_stars_matched),
        cmocka_unit_test(pointer_join_escapes),
    };

    return cmocka_run_group_tests_name("pointer", tests, NULL, NULL);
}
