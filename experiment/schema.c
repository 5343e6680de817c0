#include "experiment/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/relname.h"
#include "base/text.h"
#include "experiment/pointer.h"

enum { WORDS_SIZE = 256 };

static const struct schema_field *schema_field_find(const struct schema *s, const char *key)
{
    for (size_t i = 0; i < s->n_fields; i++)
        if (strcmp(s->fields[i].key, key) == 0)
            return &s->fields[i];
    return NULL;
}

static int wrong(const char *where, const char *expected, const cJSON *value, struct err *e)
{
    return err_set(e, ERR_INPUT, "definition.type", "%s: expected %s, found %s", where, expected,
                   json_type_name(value));
}

int schema_check_range(const struct schema *s, double value, const char *found, const char *where,
                       struct err *e)
{
    bool duration = s->type == SCHEMA_DURATION;
    double max = duration ? (double) LIMIT_DURATION_MS : s->max;
    char canonical[NUM_DOUBLE_TEXT + sizeof "ms"];

    if (s->min >= max || (value >= s->min && value <= max))
        return 0;
    (void) snprintf(canonical, sizeof canonical, "%.17g%s", value, duration ? "ms" : ""); /* fits */
    if (!found)
        found = canonical;
    if (duration)
        return err_set(e, ERR_INPUT, "definition.range",
                       "%s: %.60s is outside %gms … 366 days (8784h)", where, found, s->min);
    return err_set(e, ERR_INPUT, "definition.range", "%s: %.60s is outside %g … %g", where, found,
                   s->min, s->max);
}

static int check_number(const struct schema *s, const cJSON *value, const char *where,
                        struct err *e)
{
    if (!cJSON_IsNumber(value))
        return wrong(where, s->type == SCHEMA_NUMBER ? "a number" : "an integer", value, e);
    if (s->type != SCHEMA_NUMBER && !num_is_safe_integer(value->valuedouble))
        return wrong(where, "an integer", value, e);
    return schema_check_range(s, value->valuedouble, NULL, where, e);
}

void schema_list_words(const char *const *words, char *out, size_t size)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; words[i]; i++) {
        size_t need = strlen(words[i]) + 2;

        if (len + need + sizeof ", …" > size) {
            (void) snprintf(out + len, size - len, ", …"); /* room was kept for it */
            return;
        }
        (void) snprintf(out + len, size - len, "%s%s", i ? ", " : "", words[i]); /* fits */
        len = strlen(out);
    }
}

static int check_text(const struct schema *s, const char *text, const char *where, struct err *e)
{
    char words[WORDS_SIZE];

    switch (s->type) {
    case SCHEMA_ENUM:
        for (size_t i = 0; s->words[i]; i++)
            if (strcmp(s->words[i], text) == 0)
                return 0;
        schema_list_words(s->words, words, sizeof words);
        return err_set(e, ERR_INPUT, "definition.word",
                       "%s: '%.80s' is not one of the allowed words: %s", where, text, words);
    case SCHEMA_POINTER:
        if (pointer_ok(text))
            return 0;
        return err_set(e, ERR_INPUT, "definition.pointer",
                       "%s: '%.80s' is not a JSON Pointer%s (RFC 6901)", where, text,
                       *text == '/' ? "" : ": it begins with '/', like /results/p99");
    case SCHEMA_RELNAME:
        if (relname_ok(text))
            return 0;
        return err_set(e, ERR_INPUT, "definition.name", "%s: '%.80s' is not a safe relative name",
                       where, text);
    case SCHEMA_SLUG:
        if (text_is_slug(text))
            return 0;
        return err_set(e, ERR_INPUT, "definition.slug",
                       "%s: '%.80s' must be [a-z0-9][a-z0-9-]*, at most 63 characters", where,
                       text);
    case SCHEMA_STRING:
    case SCHEMA_BOOL:
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
    case SCHEMA_DURATION:
    case SCHEMA_ANY:
    case SCHEMA_ARRAY:
    case SCHEMA_OBJECT:
    case SCHEMA_MAP:
        break;
    }
    return 0;
}

int schema_check_leaf(const struct schema *s, const cJSON *value, const char *where, struct err *e)
{
    switch (s->type) {
    case SCHEMA_BOOL:
        return cJSON_IsBool(value) ? 0 : wrong(where, "true or false", value, e);
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
    case SCHEMA_DURATION:
        return check_number(s, value, where, e);
    case SCHEMA_STRING:
    case SCHEMA_ENUM:
    case SCHEMA_POINTER:
    case SCHEMA_RELNAME:
    case SCHEMA_SLUG:
        if (!cJSON_IsString(value))
            return wrong(where, "text", value, e);
        return check_text(s, value->valuestring, where, e);
    case SCHEMA_ANY:
        return 0;
    case SCHEMA_ARRAY:
    case SCHEMA_OBJECT:
    case SCHEMA_MAP:
        break;
    }
    return err_set(e, ERR_INTERNAL, "definition.leaf", "%s: not a leaf type", where);
}

static int check_value(const struct schema *s, const cJSON *value, const char *where,
                       struct err *e);

/* The pointer of a member; *out stays NULL when nobody wants to know (where is NULL). */
static int place_of(const char *where, const char *token, char **out, struct err *e)
{
    if (!where)
        return 0;
    *out = pointer_join(where, token);
    return *out ? 0 : err_memory(e, "definition.memory");
}

/* Recursion is bounded: json_in refuses documents deeper than LIMIT_JSON_DEPTH. */
/* NOLINTBEGIN(misc-no-recursion) */
static int check_object(const struct schema *s, const cJSON *value, const char *where,
                        struct err *e)
{
    const cJSON *member = NULL;

    cJSON_ArrayForEach(member, value) {
        const struct schema_field *field = schema_field_find(s, member->string);
        AUTO_FREE char *at = NULL;

        if (place_of(where, member->string, &at, e) < 0)
            return -1;
        if (!field || field->unhashed)
            return err_set(e, ERR_INPUT, "definition.key", "%s: unknown key", at);
        if (check_value(field->schema, member, at, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < s->n_fields; i++)
        if (s->fields[i].required && !s->fields[i].unhashed && !json_get(value, s->fields[i].key))
            return err_set(e, ERR_INPUT, "definition.missing", "%s: key '%s' is missing", where,
                           s->fields[i].key);
    return 0;
}

static int check_items(const struct schema *s, const cJSON *value, const char *where, struct err *e)
{
    const cJSON *item = NULL;
    size_t index = 0;

    cJSON_ArrayForEach(item, value) {
        char number[24] = "";
        AUTO_FREE char *at = NULL;

        if (where)
            (void) snprintf(number, sizeof number, "%zu", index); /* always fits */
        index++;
        if (place_of(where, item->string ? item->string : number, &at, e) < 0)
            return -1;
        if (check_value(s->item, item, at, e) < 0)
            return -1;
    }
    if (index < s->min_items)
        return err_set(e, ERR_INPUT, "definition.items", "%s: at least %zu needed, %zu given",
                       where, s->min_items, index);
    return 0;
}

static int check_value(const struct schema *s, const cJSON *value, const char *where, struct err *e)
{
    switch (s->type) {
    case SCHEMA_ARRAY:
        if (!cJSON_IsArray(value))
            return wrong(where, "a list", value, e);
        return check_items(s, value, where, e);
    case SCHEMA_MAP:
        if (!cJSON_IsObject(value))
            return wrong(where, "a mapping", value, e);
        return check_items(s, value, where, e);
    case SCHEMA_OBJECT:
        if (!cJSON_IsObject(value))
            return wrong(where, "a mapping", value, e);
        return check_object(s, value, where, e);
    case SCHEMA_STRING:
    case SCHEMA_BOOL:
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
    case SCHEMA_DURATION:
    case SCHEMA_ENUM:
    case SCHEMA_POINTER:
    case SCHEMA_RELNAME:
    case SCHEMA_SLUG:
    case SCHEMA_ANY:
        break;
    }
    return schema_check_leaf(s, value, where, e);
}
/* NOLINTEND(misc-no-recursion) */

int schema_check(const struct schema *s, const cJSON *value, const char *where, struct err *e)
{
    if (check_value(s, value, NULL, NULL) == 0)
        return 0;
    return check_value(s, value, where, e); /* again, for the place of what is wrong */
}

const struct schema *schema_at(const struct schema *s, const char *pointer, bool *out_unhashed)
{
    const char *p = pointer;
    bool unhashed = false;

    if (!pointer_ok(pointer))
        return NULL;
    while (s && *p == '/') {
        size_t len = strcspn(p + 1, "/");

        unhashed = false;
        if (s->type == SCHEMA_OBJECT) {
            const struct schema_field *found = NULL;

            for (size_t i = 0; i < s->n_fields; i++)
                if (strlen(s->fields[i].key) == len && memcmp(s->fields[i].key, p + 1, len) == 0)
                    found = &s->fields[i];
            unhashed = found && found->unhashed;
            s = found ? found->schema : NULL;
        } else {
            s = s->type == SCHEMA_ARRAY || s->type == SCHEMA_MAP ? s->item : NULL;
        }
        p += 1 + len;
    }
    *out_unhashed = unhashed;
    return s;
}
