/* The part of YAML that a definition may use: everything else is refused with its line, and nothing
 * is read in two ways. */
#include "tests/lib/must.h"
#include "tests/lib/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "experiment/yaml_in.h"

static int parse(struct arena *a, const char *bytes, size_t len, struct yaml_node **out,
                 struct err *e)
{
    *e = (struct err) ERR_INIT;
    return yaml_parse("f.yaml", bytes, len, a, out, e);
}

static void what_is_not_plain_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text;
        size_t len; /* 0: up to the NUL */
        const char *code, *place;
    } rows[] = {
        {"a: 1\n? [b]\n: 2\n", 0, "yaml.key", "f.yaml:2:3: "},
        {"a: 1\n{b: 1}: 2\n", 0, "yaml.key", "f.yaml:2:1: "},
        {"a: 1\n\"\": 2\n", 0, "yaml.key", "f.yaml:2:1: "},
        {"a: 1\n\"b\\0c\": 2\n", 0, "yaml.key", "f.yaml:2:1: "},
        {"a: 1\nb: \"x\\0y\"\n", 0, "yaml.nul", "f.yaml:2:4: "},
        {"a: 1\nb:\n", 0, "yaml.empty", "f.yaml:2:"},
        {"a: 1\nb: 2\na: 3\n", 0, "yaml.duplicate", "f.yaml:3:1: "},
        {"a: {<<: 1}\n", 0, "yaml.merge", "f.yaml:1:5: "},
        {"a: &x 1\n", 0, "yaml.anchor", "f.yaml:1:"},
        {"a: &x [1]\n", 0, "yaml.anchor", "f.yaml:1:"},
        {"a: &x {b: 1}\n", 0, "yaml.anchor", "f.yaml:1:"},
        {"a: !!str 1\n", 0, "yaml.tag", "f.yaml:1:"},
        {"a: !!seq [1]\n", 0, "yaml.tag", "f.yaml:1:"},
        {"a: !!map {b: 1}\n", 0, "yaml.tag", "f.yaml:1:"},
        {"!!map {b: 1}\n", 0, "yaml.tag", "f.yaml:1:"},
        {"a: 1\n---\nb: 2\n", 0, "yaml.documents", "f.yaml:2:1: "},
        {"a: [1\n", 0, "yaml.syntax", "f.yaml:"},
        {"", 0, "yaml.empty", "f.yaml: "},
        {"# nothing\n", 0, "yaml.empty", "f.yaml: "},
        {"a: \xff\n", 0, "yaml.utf8", "f.yaml: "},
        {"a: \xc0\xaf\n", 0, "yaml.utf8", "f.yaml: "},
        {"a: 1\0b\n", 7, "yaml.utf8", "f.yaml: "},
        {"\xff\xfe"
         "a\0:\0 \0"
         "1\0",
         10, "yaml.utf8", "f.yaml: "},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena a;
        struct yaml_node *root = NULL;
        struct err e;

        arena_init(&a, LIMIT_MIB(1));
        if (parse(&a, rows[i].text, rows[i].len ? rows[i].len : strlen(rows[i].text), &root, &e) ==
            0)
            fail_msg("row %zu is accepted", i);
        if (strcmp(e.code, rows[i].code) != 0 ||
            strncmp(e.text, rows[i].place, strlen(rows[i].place)) != 0)
            fail_msg("row %zu: %s %s", i, e.code, e.text);
        assert_int_equal(e.kind, ERR_INPUT);
        assert_null(root);
        arena_fini(&a);
    }
}

/* What is written as empty is meant. */
static void quoted_text_is_text(void **state)
{
    static const char text[] = "a: \"\"\nb: ''\nc: \"1\"\nd: 1\n";
    static const struct {
        const char *key, *text;
        bool plain;
    } rows[] = {{"a", "", false}, {"b", "", false}, {"c", "1", false}, {"d", "1", true}};
    struct arena a;
    struct yaml_node *root = NULL;
    const struct yaml_node *n = NULL;
    struct err e;
    size_t i = 0;

    (void) state;
    arena_init(&a, LIMIT_MIB(1));
    assert_int_equal(parse(&a, text, strlen(text), &root, &e), 0);
    for (n = root->first; n; n = n->next, i++) {
        assert_true(i < ARRAY_LEN(rows));
        assert_string_equal(n->key, rows[i].key);
        assert_string_equal(n->text, rows[i].text);
        assert_int_equal(n->plain, rows[i].plain);
        assert_int_equal(n->line, i + 1);
    }
    assert_int_equal(i, ARRAY_LEN(rows));
    arena_fini(&a);
}

static int nested(size_t depth, struct err *e)
{
    char text[2 * LIMIT_YAML_DEPTH + 8];
    struct arena a;
    struct yaml_node *root = NULL;
    int rc = 0;

    assert_true(2 * depth <= sizeof text);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    arena_init(&a, LIMIT_MIB(1));
    rc = parse(&a, text, 2 * depth, &root, e);
    arena_fini(&a);
    return rc;
}

static void depth_and_size_end_at_their_limits(void **state)
{
    char *text = malloc(LIMIT_YAML + 1);
    struct arena a;
    struct yaml_node *root = NULL;
    struct err e;

    (void) state;
    assert_int_equal(nested(LIMIT_YAML_DEPTH, &e), 0);
    assert_int_equal(nested(LIMIT_YAML_DEPTH + 1, &e), -1);
    assert_string_equal(e.code, "yaml.depth");
    assert_non_null(text);
    memset(text, '\n', LIMIT_YAML + 1);
    memcpy(text, "a: 1", 4);
    arena_init(&a, LIMIT_MIB(1));
    assert_int_equal(parse(&a, text, LIMIT_YAML, &root, &e), 0);
    assert_int_equal(parse(&a, text, LIMIT_YAML + 1, &root, &e), -1);
    assert_string_equal(e.code, "yaml.size");
    assert_int_equal(e.kind, ERR_LIMIT);
    arena_fini(&a);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_plain_is_refused_with_its_place),
        cmocka_unit_test(quoted_text_is_text),
        cmocka_unit_test(depth_and_size_end_at_their_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
