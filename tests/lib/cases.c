/* The operations of tests/data/rvoip/cases.json, on trees and on files. */
#include "tests/lib/cases.h"

#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/num.h"

static const char data_root[] = "tests/data/rvoip";

static cJSON *parse(const char *text, size_t len, const char *name)
{
    static const struct json_limits limits = {.max_bytes = LIMIT_MIB(8), .max_tokens = 2000000};
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    if (json_parse(text, len, &limits, &j, &e) < 0)
        fail_msg("%s: %s", name, e.text);
    return j;
}

cJSON *cases_read_json(const char *relative)
{
    size_t len = 0;
    char *text = test_read(relative, &len);
    cJSON *j = parse(text, len, relative);

    free(text);
    return j;
}

cJSON *cases_load(void)
{
    return cases_read_json("tests/data/rvoip/cases.json");
}

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *j = json_get(object, key);

    if (!cJSON_IsString(j))
        fail_msg("case: '%s' is missing or no text", key);
    return j->valuestring;
}

const cJSON *cases_find(const cJSON *rows, const char *id)
{
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, rows)
        if (strcmp(text_of(row, "id"), id) == 0)
            return row;
    fail_msg("no case '%s'", id);
    return NULL;
}

/* cJSON trees are edited in place; json_get answers a borrowed const node of a tree the caller
 * owns. */
static cJSON *step(cJSON *node, const cJSON *token)
{
    if (cJSON_IsString(token))
        return cJSON_GetObjectItemCaseSensitive(node, token->valuestring);
    return cJSON_GetArrayItem(node, (int) token->valuedouble);
}

static cJSON *duplicate(const cJSON *value)
{
    cJSON *copy = cJSON_Duplicate(value, true);

    assert_non_null(copy);
    return copy;
}

static void put(cJSON *parent, const cJSON *token, cJSON *value)
{
    cJSON *old = step(parent, token);

    if (cJSON_IsString(token)) {
        assert_true(cJSON_IsObject(parent));
        if (old)
            assert_true(cJSON_ReplaceItemInObjectCaseSensitive(parent, token->valuestring, value));
        else
            assert_true(cJSON_AddItemToObject(parent, token->valuestring, value));
        return;
    }
    assert_non_null(old);
    assert_true(cJSON_ReplaceItemViaPointer(parent, old, value));
}

static void add_number(cJSON *node, const cJSON *value)
{
    if (!node || !value || !cJSON_IsNumber(node) || !cJSON_IsNumber(value)) {
        fail_msg("case: add needs numbers");
        return;
    }
    (void) cJSON_SetNumberHelper(node, node->valuedouble + value->valuedouble);
}

/* The node that holds the last token, making missing objects for `set`. */
static cJSON *walk(cJSON *root, const cJSON *path, bool make)
{
    cJSON *node = root;

    for (const cJSON *token = path->child; token && token->next; token = token->next) {
        cJSON *next = step(node, token);

        if (!next && make && cJSON_IsString(token)) {
            put(node, token, cJSON_CreateObject());
            next = step(node, token);
        }
        if (!next)
            fail_msg("case: path leads nowhere at '%s'",
                     cJSON_IsString(token) ? token->valuestring : "index");
        node = next;
    }
    return node;
}

void cases_edit(cJSON *root, const cJSON *op)
{
    const char *word = text_of(op, "op");
    const cJSON *path = json_get(op, "path");
    const cJSON *value = json_get(op, "value");
    const cJSON *last = cJSON_IsArray(path) ? path->child : NULL;
    cJSON *parent = NULL;
    cJSON *target = NULL;

    if (!path || !last) {
        fail_msg("case: '%s' without a path", word);
        return;
    }
    while (last->next)
        last = last->next;
    parent = walk(root, path, strcmp(word, "set") == 0);
    if (strcmp(word, "set") == 0) {
        put(parent, last, duplicate(value));
        return;
    }
    target = step(parent, last);
    if (!target)
        fail_msg("case: '%s' on something absent", word);
    if (strcmp(word, "del") == 0)
        cJSON_Delete(cJSON_DetachItemViaPointer(parent, target));
    else if (strcmp(word, "add") == 0)
        add_number(target, value);
    else if (strcmp(word, "append") == 0)
        assert_true(cJSON_AddItemToArray(target, duplicate(value)));
    else if (strcmp(word, "pop_last") == 0)
        cJSON_DeleteItemFromArray(target, cJSON_GetArraySize(target) - 1);
    else
        fail_msg("case: unknown operation '%s'", word);
}

void cases_edit_all(cJSON *root, const cJSON *ops)
{
    const cJSON *op = NULL;

    cJSON_ArrayForEach(op, ops) {
        assert_null(json_get(op, "file"));
        cases_edit(root, op);
    }
}

static void print_number(struct buf *out, const cJSON *j)
{
    char text[NUM_DOUBLE_TEXT];
    size_t len = num_double_shortest(j->valuedouble, text);

    buf_put(out, text, len);
    if (!json_is_integer(j) && num_is_integer_literal(text, len))
        buf_puts(out, ".0");
}

static bool print_bare(struct buf *out, const cJSON *j)
{
    const cJSON *word = json_get(j, "$num");

    if (!cJSON_IsString(word))
        return false;
    buf_puts(out, strcmp(word->valuestring, "nan") == 0 ? "NaN" : "Infinity");
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): fixtures are shallow */
static void print(struct buf *out, const cJSON *j)
{
    const cJSON *item = NULL;

    if (cJSON_IsNumber(j)) {
        print_number(out, j);
        return;
    }
    if (!cJSON_IsArray(j) && !cJSON_IsObject(j)) {
        json_write(out, j, JSON_COMPACT);
        return;
    }
    if (cJSON_IsObject(j) && print_bare(out, j))
        return;
    buf_putc(out, cJSON_IsArray(j) ? '[' : '{');
    cJSON_ArrayForEach(item, j) {
        if (item != j->child)
            buf_putc(out, ',');
        if (cJSON_IsObject(j)) {
            json_write_string(out, item->string);
            buf_putc(out, ':');
        }
        print(out, item);
    }
    buf_putc(out, cJSON_IsArray(j) ? ']' : '}');
}

char *cases_print(const cJSON *j)
{
    struct buf out;
    size_t len = 0;

    buf_init(&out, LIMIT_MIB(16));
    print(&out, j);
    assert_false(out.failed);
    return buf_take(&out, &len);
}

static void shell(const char *const argv[])
{
    struct test_run r;

    test_run(argv, NULL, NULL, NULL, &r);
    if (r.code != 0)
        fail_msg("%s: exit %d: %s", argv[0], r.code, r.err);
    test_run_fini(&r);
}

static void copy_tree(const char *from, const char *to)
{
    const char *const copy[] = {"cp", "-R", "--", from, to, NULL};
    const char *const open[] = {"chmod", "-R", "u+rwX", "--", to, NULL};

    shell(copy);
    shell(open);
}

static void copy_fixture(const char *relative, const char *to)
{
    char *from = test_path(relative);

    copy_tree(from, to);
    free(from);
}

static void copy_side(const char *dir, const char *side, const char *base)
{
    char *to = test_join(dir, side);
    char *below = test_join(data_root, base);
    char *manifest = NULL;

    copy_fixture(below, to);
    manifest = test_join(to, "manifest.json");
    if (strcmp(side, "baseline") == 0) {
        char *beside = test_join(dir, "manifest.json");
        const char *const argv[] = {"mv", "--", manifest, beside, NULL};

        shell(argv);
        free(beside);
    } else {
        const char *const argv[] = {"rm", "-f", "--", manifest, NULL};

        shell(argv);
    }
    free(manifest);
    free(below);
    free(to);
}

void cases_audit_tree(const char *dir, const cJSON *row)
{
    const cJSON *base = json_get(row, "base");

    if (cJSON_IsString(base)) {
        static const char *const parts[] = {"baseline", "current", "manifest.json"};
        char *below = test_join(data_root, base->valuestring);

        for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
            char *from = test_join(below, parts[i]);
            char *to = test_join(dir, parts[i]);

            copy_fixture(from, to);
            free(from);
            free(to);
        }
        free(below);
        return;
    }
    copy_side(dir, "baseline", text_of(base, "baseline"));
    copy_side(dir, "current", text_of(base, "current"));
}

static void edit_file(const char *dir, const char *file, const cJSON *op)
{
    char *path = test_join(dir, file);
    size_t len = 0;
    char *text = test_read_path(path, &len);
    cJSON *j = parse(text, len, file);
    char *edited = NULL;

    cases_edit(j, op);
    edited = cases_print(j);
    test_write_text(dir, file, edited);
    free(edited);
    cJSON_Delete(j);
    free(text);
    free(path);
}

static void move_or_copy(const char *dir, const cJSON *op, const char *word)
{
    char *from = test_join(dir, text_of(op, "from"));
    char *to = test_join(dir, text_of(op, "to"));
    const char *const move[] = {"mv", "--", from, to, NULL};

    if (strcmp(word, "mv") == 0)
        shell(move);
    else
        copy_tree(from, to);
    free(from);
    free(to);
}

static void apply_one(const char *dir, const cJSON *op)
{
    const char *word = text_of(op, "op");

    if (strcmp(word, "mv") == 0 || strcmp(word, "copy") == 0) {
        move_or_copy(dir, op, word);
    } else if (strcmp(word, "write") == 0) {
        test_write_text(dir, text_of(op, "file"), text_of(op, "text"));
    } else if (strcmp(word, "rm") == 0 || strcmp(word, "mkdir") == 0) {
        char *path = test_join(dir, text_of(op, "file"));
        const char *const remove[] = {"rm", "-R", "--", path, NULL};
        const char *const make[] = {"mkdir", "-p", "--", path, NULL};

        shell(strcmp(word, "rm") == 0 ? remove : make);
        free(path);
    } else {
        edit_file(dir, text_of(op, "file"), op);
    }
}

void cases_apply(const char *dir, const cJSON *ops)
{
    const cJSON *op = NULL;

    cJSON_ArrayForEach(op, ops)
        apply_one(dir, op);
}
