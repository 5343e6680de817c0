/* YAML nodes → typed canonical values by schema tables, with places in every message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/text.h"
#include "experiment/pointer.h"
#include "experiment/schema.h"

enum { SUGGEST_MAX = 64, WORDS_SIZE = 256, NAME_SIZE = 32, WHERE_SIZE = 256 };

struct place {
    const char *file;
    const struct yaml_node *node;
};

static int fail(struct place at, const char *code, const char *what, struct err *e)
{
    return err_set(e, ERR_INPUT, code, "%s:%zu:%zu: %s", at.file, at.node->line, at.node->column,
                   what);
}

/* "cleanrun.yaml:12:5", a long name cut: it is for people. */
static void place_text(struct place at, char out[WHERE_SIZE])
{
    (void) snprintf(out, WHERE_SIZE, "%.200s:%zu:%zu", at.file, at.node->line, at.node->column);
}

static const char *kind_name(enum yaml_kind kind)
{
    switch (kind) {
    case YAML_SCALAR:
        return "a single value";
    case YAML_LIST:
        return "a list";
    case YAML_MAPPING:
        return "a mapping";
    }
    return "something else";
}

static int wrong_kind(struct place at, const char *expected, struct err *e)
{
    return err_set(e, ERR_INPUT, "definition.type", "%s:%zu:%zu: expected %s, found %s", at.file,
                   at.node->line, at.node->column, expected, kind_name(at.node->kind));
}

static int deliver(cJSON *made, cJSON **out, struct err *e)
{
    if (!made)
        return err_memory(e, "definition.memory");
    *out = made;
    return 0;
}

/* "95s" → 95000, of any length; the unit is mandatory. */
static bool parse_duration(const char *text, double *out_ms)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}};
    size_t digits = strspn(text, "0123456789");
    uint64_t n = 0;

    if (!num_parse_u64(text, digits, UINT64_MAX, &n))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(text + digits, units[i].unit) == 0) {
            *out_ms = (double) n * units[i].ms;
            return true;
        }
    return false;
}

/* A plain scalar by the JSON grammar, everything else is text. */
static cJSON *any_scalar(const struct yaml_node *node)
{
    double v = 0;

    if (!node->plain)
        return cJSON_CreateString(node->text);
    if (strcmp(node->text, "true") == 0)
        return cJSON_CreateTrue();
    if (strcmp(node->text, "false") == 0)
        return cJSON_CreateFalse();
    if (strcmp(node->text, "null") == 0)
        return cJSON_CreateNull();
    if (num_parse_double(node->text, strlen(node->text), &v))
        return cJSON_CreateNumber(v);
    return cJSON_CreateString(node->text);
}

static int number_from(const struct schema *s, struct place at, cJSON **out, struct err *e)
{
    const char *text = at.node->text;
    char where[WHERE_SIZE];
    double v = 0;

    if (s->type == SCHEMA_DURATION) {
        if (!parse_duration(text, &v))
            return fail(at, "definition.duration",
                        "expected a duration with its unit: 500ms, 95s, 10m or 1h", e);
    } else {
        if (!at.node->plain || !num_parse_double(text, strlen(text), &v))
            return fail(at, "definition.number",
                        s->type == SCHEMA_INTEGER ? "expected an integer" : "expected a number", e);
        if (s->type == SCHEMA_INTEGER && !num_is_safe_integer(v))
            return fail(at, "definition.number", "expected an integer within ±(2^53-1)", e);
    }
    place_text(at, where);
    if (schema_check_range(s, v, text, where, e) < 0)
        return -1;
    return deliver(cJSON_CreateNumber(v), out, e);
}

static int enum_error(const struct schema *s, struct place at, struct err *e)
{
    size_t n = 0;
    char words[WORDS_SIZE];
    char hint[TEXT_HINT_SIZE];

    while (s->words[n])
        n++;
    schema_list_words(s->words, words, sizeof words);
    return err_set(e, ERR_INPUT, "definition.word",
                   "%s:%zu:%zu: '%.60s' is not allowed here (allowed: %s)%s", at.file,
                   at.node->line, at.node->column, at.node->text, words,
                   text_hint(text_nearest(at.node->text, s->words, n), hint));
}

/* The known name that was probably meant: a slip of the pen, or its beginning. */
static const char *near_name(const char *const *known, const char *name)
{
    size_t n = 0;

    while (known[n])
        n++;
    for (size_t i = 0; i < n && strlen(name) >= 3; i++)
        if (strncmp(known[i], name, strlen(name)) == 0)
            return known[i];
    return text_nearest(name, known, n);
}

/* A word in braces that nothing will replace. Braces may mean something to the program that is
 * called, so inside a longer text only what looks like a known name is refused. */
static int check_placeholders(const struct schema *s, struct place at, struct err *e)
{
    const char *text = at.node->text;
    char known[WORDS_SIZE];

    for (const char *p = strchr(text, '{'); p; p = strchr(p + 1, '{')) {
        size_t len = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz_");
        char name[NAME_SIZE];
        const char *near = NULL;

        if (len == 0 || len >= sizeof name || p[1 + len] != '}')
            continue;
        memcpy(name, p + 1, len);
        name[len] = '\0';
        near = near_name(s->placeholders, name);
        if ((near && strcmp(near, name) == 0) ||
            (!near && (!s->only_placeholders || p != text || p[2 + len])))
            continue;
        schema_list_words(s->placeholders, known, sizeof known);
        return err_set(e, ERR_INPUT, "definition.placeholder",
                       "%s:%zu:%zu: nothing replaces '{%s}' here (known: %s)%s%s%s", at.file,
                       at.node->line, at.node->column, name, known, near ? "; did you mean '{" : "",
                       near ? near : "", near ? "}'?" : "");
    }
    return 0;
}

static int text_from(const struct schema *s, struct place at, cJSON **out, struct err *e)
{
    AUTO_JSON cJSON *made = cJSON_CreateString(at.node->text);
    char where[WHERE_SIZE];

    if (!made)
        return err_memory(e, "definition.memory");
    if (schema_check_leaf(s, made, "", NULL) == 0) {
        if (s->placeholders && check_placeholders(s, at, e) < 0)
            return -1;
        *out = STEAL(made);
        return 0;
    }
    if (s->type == SCHEMA_ENUM)
        return enum_error(s, at, e);
    place_text(at, where);
    return schema_check_leaf(s, made, where, e);
}

static int leaf_from(const struct schema *s, struct place at, cJSON **out, struct err *e)
{
    if (at.node->kind != YAML_SCALAR)
        return wrong_kind(at, "a single value", e);
    if (s->type == SCHEMA_BOOL) {
        if (!at.node->plain ||
            (strcmp(at.node->text, "true") != 0 && strcmp(at.node->text, "false") != 0))
            return fail(at, "definition.bool", "expected true or false", e);
        return deliver(cJSON_CreateBool(at.node->text[0] == 't'), out, e);
    }
    if (s->type == SCHEMA_INTEGER || s->type == SCHEMA_NUMBER || s->type == SCHEMA_DURATION)
        return number_from(s, at, out, e);
    return text_from(s, at, out, e);
}

static int unknown_key(const struct schema *s, const char *file, const struct yaml_node *child,
                       struct err *e)
{
    const char *keys[SUGGEST_MAX];
    char hint[TEXT_HINT_SIZE];
    size_t n = 0;

    for (; n < s->n_fields && n < SUGGEST_MAX; n++)
        keys[n] = s->fields[n].key;
    return err_set(e, ERR_INPUT, "definition.key", "%s:%zu:%zu: unknown key '%.60s'%s", file,
                   child->key_line, child->key_column, child->key,
                   text_hint(text_nearest(child->key, keys, n), hint));
}

static const struct yaml_node *child_of(const struct yaml_node *node, const char *key)
{
    for (const struct yaml_node *c = node->first; c; c = c->next)
        if (strcmp(c->key, key) == 0)
            return c;
    return NULL;
}

static bool put(cJSON *parent, const char *key, cJSON *value)
{
    bool ok = key ? cJSON_AddItemToObject(parent, key, value) : cJSON_AddItemToArray(parent, value);

    if (!ok)
        json_free(value);
    return ok;
}

/* The way from the root to a value: its pointer is written only when it is wanted. */
struct trail {
    const struct trail *up; /* NULL: the root */
    const char *key;        /* NULL: a list's item */
    size_t index;
};

/* The JSON Pointer below `where`; caller frees, NULL without memory. */
static char *trail_pointer(const struct trail *t, const char *where)
{
    const struct trail *way[LIMIT_YAML_DEPTH + 1];
    char *pointer = strdup(where);
    size_t n = 0;

    for (; t && n < ARRAY_LEN(way); t = t->up)
        way[n++] = t;
    while (pointer && n-- > 0) {
        char number[24];
        char *longer = NULL;

        (void) snprintf(number, sizeof number, "%zu", way[n]->index); /* always fits */
        longer = pointer_join(pointer, way[n]->key ? way[n]->key : number);
        free(pointer);
        pointer = longer;
    }
    return pointer;
}

/* What every level of one document shares. */
struct reading {
    const char *file;
    const char *where; /* pointer of the root */
    cJSON *notes;
};

static int value_from(const struct schema *s, const struct reading *r, const struct yaml_node *node,
                      const struct trail *trail, cJSON **out, struct err *e);

/* Recursion is bounded: yaml_in refuses nesting deeper than LIMIT_YAML_DEPTH. */
/* NOLINTBEGIN(misc-no-recursion) */
static int any_from(const struct yaml_node *node, cJSON **out, struct err *e)
{
    AUTO_JSON cJSON *made = NULL;

    if (node->kind == YAML_SCALAR)
        return deliver(any_scalar(node), out, e);
    made = node->kind == YAML_LIST ? cJSON_CreateArray() : cJSON_CreateObject();
    for (const struct yaml_node *c = node->first; made && c; c = c->next) {
        cJSON *child = NULL;

        if (any_from(c, &child, e) < 0)
            return -1;
        if (!put(made, c->key, child))
            return err_memory(e, "definition.memory");
    }
    return deliver(STEAL(made), out, e);
}

static int field_from(const struct schema_field *field, const struct reading *r,
                      const struct yaml_node *child, const struct trail *up, cJSON *object,
                      struct err *e)
{
    const struct trail trail = {.up = up, .key = field->key};
    AUTO_FREE char *at = NULL;
    cJSON *value = NULL;

    if (value_from(field->schema, r, child, &trail, &value, e) < 0)
        return -1;
    if (field->unhashed)
        at = trail_pointer(&trail, r->where);
    if (field->unhashed && !at) {
        json_free(value);
        return err_memory(e, "definition.memory");
    }
    if (!put(field->unhashed ? r->notes : object, field->unhashed ? at : field->key, value))
        return err_memory(e, "definition.memory");
    return 0;
}

/* Members in the order of the table, so that the canonical document reads the same for every
 * author. */
static int object_from(const struct schema *s, const struct reading *r,
                       const struct yaml_node *node, const struct trail *trail, cJSON **out,
                       struct err *e)
{
    AUTO_JSON cJSON *made = cJSON_CreateObject();
    struct place at = {r->file, node};

    if (!made)
        return err_memory(e, "definition.memory");
    if (node->kind != YAML_MAPPING)
        return wrong_kind(at, "a mapping", e);
    for (const struct yaml_node *c = node->first; c; c = c->next) {
        bool known = false;

        for (size_t i = 0; i < s->n_fields && !known; i++)
            known = strcmp(s->fields[i].key, c->key) == 0;
        if (!known)
            return unknown_key(s, r->file, c, e);
    }
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct yaml_node *c = child_of(node, s->fields[i].key);

        if (!c && s->fields[i].required)
            return err_set(e, ERR_INPUT, "definition.missing", "%s:%zu:%zu: key '%s' is missing",
                           r->file, node->line, node->column, s->fields[i].key);
        if (c && field_from(&s->fields[i], r, c, trail, made, e) < 0)
            return -1;
    }
    *out = STEAL(made);
    return 0;
}

static int items_from(const struct schema *s, const struct reading *r, const struct yaml_node *node,
                      const struct trail *trail, cJSON **out, struct err *e)
{
    bool map = s->type == SCHEMA_MAP;
    AUTO_JSON cJSON *made = map ? cJSON_CreateObject() : cJSON_CreateArray();
    struct place at = {r->file, node};
    struct trail below = {.up = trail};

    if (!made)
        return err_memory(e, "definition.memory");
    if (node->kind != (map ? YAML_MAPPING : YAML_LIST))
        return wrong_kind(at, map ? "a mapping" : "a list", e);
    if (node->count < s->min_items)
        return err_set(e, ERR_INPUT, "definition.items",
                       "%s:%zu:%zu: at least %zu needed, %zu given", r->file, node->line,
                       node->column, s->min_items, node->count);
    for (const struct yaml_node *c = node->first; c; c = c->next, below.index++) {
        cJSON *child = NULL;

        below.key = map ? c->key : NULL;
        if (value_from(s->item, r, c, &below, &child, e) < 0)
            return -1;
        if (!put(made, map ? c->key : NULL, child))
            return err_memory(e, "definition.memory");
    }
    *out = STEAL(made);
    return 0;
}

static int value_from(const struct schema *s, const struct reading *r, const struct yaml_node *node,
                      const struct trail *trail, cJSON **out, struct err *e)
{
    switch (s->type) {
    case SCHEMA_OBJECT:
        return object_from(s, r, node, trail, out, e);
    case SCHEMA_ARRAY:
    case SCHEMA_MAP:
        return items_from(s, r, node, trail, out, e);
    case SCHEMA_ANY:
        return any_from(node, out, e);
    case SCHEMA_STRING:
    case SCHEMA_BOOL:
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
    case SCHEMA_DURATION:
    case SCHEMA_ENUM:
    case SCHEMA_POINTER:
    case SCHEMA_RELNAME:
    case SCHEMA_SLUG:
        break;
    }
    return leaf_from(s, (struct place){r->file, node}, out, e);
}
/* NOLINTEND(misc-no-recursion) */

int schema_from_yaml(const struct schema *s, const char *file, const struct yaml_node *node,
                     const char *where, cJSON *notes, cJSON **out, struct err *e)
{
    const struct reading reading = {.file = file, .where = where, .notes = notes};

    return value_from(s, &reading, node, NULL, out, e);
}
