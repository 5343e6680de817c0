/* schema tables → JSON Schema 2020-12, for editors. */
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "experiment/schema.h"

static const char *leaf_type(enum schema_type type)
{
    switch (type) {
    case SCHEMA_BOOL:
        return "boolean";
    case SCHEMA_INTEGER:
        return "integer";
    case SCHEMA_NUMBER:
        return "number";
    case SCHEMA_ARRAY:
        return "array";
    case SCHEMA_OBJECT:
    case SCHEMA_MAP:
        return "object";
    case SCHEMA_STRING:
    case SCHEMA_DURATION:
    case SCHEMA_ENUM:
    case SCHEMA_POINTER:
    case SCHEMA_RELNAME:
    case SCHEMA_SLUG:
        return "string";
    case SCHEMA_ANY:
        break;
    }
    return NULL;
}

static const char *leaf_pattern(enum schema_type type)
{
    switch (type) {
    case SCHEMA_DURATION:
        return "^[0-9]+(ms|s|m|h)$";
    case SCHEMA_POINTER:
        return "^(/([^~/]|~[01])*)*$";
    case SCHEMA_RELNAME:
        return "^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$";
    case SCHEMA_SLUG:
        return "^[a-z0-9][a-z0-9-]{0,62}$";
    case SCHEMA_STRING:
    case SCHEMA_BOOL:
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
    case SCHEMA_ENUM:
    case SCHEMA_ANY:
    case SCHEMA_ARRAY:
    case SCHEMA_OBJECT:
    case SCHEMA_MAP:
        break;
    }
    return NULL;
}

static void publish_leaf(struct json_doc *d, cJSON *into, const struct schema *s)
{
    if (s->about)
        json_add_string(d, into, "description", s->about);
    if (s->type == SCHEMA_STRING) {
        /* YAML text may look like another scalar: [sleep, 5] */
        cJSON *types = json_add_array(d, into, "type");

        json_add_string(d, types, NULL, "string");
        json_add_string(d, types, NULL, "number");
        json_add_string(d, types, NULL, "boolean");
        return;
    }
    if (leaf_type(s->type))
        json_add_string(d, into, "type", leaf_type(s->type));
    if (leaf_pattern(s->type))
        json_add_string(d, into, "pattern", leaf_pattern(s->type));
    if (s->type == SCHEMA_ENUM) {
        cJSON *words = json_add_array(d, into, "enum");

        for (size_t i = 0; s->words[i]; i++)
            json_add_string(d, words, NULL, s->words[i]);
    }
    if (s->min < s->max) {
        json_add_double(d, into, "minimum", s->min);
        json_add_double(d, into, "maximum", s->max);
    }
}

/* Recursion is bounded by the tables, which are finite trees of constants. */
/* NOLINTBEGIN(misc-no-recursion) */
static void publish(struct json_doc *d, cJSON *into, const struct schema *s)
{
    publish_leaf(d, into, s);
    if (s->type == SCHEMA_ARRAY) {
        publish(d, json_add_object(d, into, "items"), s->item);
        if (s->min_items)
            json_add_int(d, into, "minItems", (int64_t) s->min_items);
    }
    if (s->type == SCHEMA_MAP) {
        publish(d, json_add_object(d, into, "additionalProperties"), s->item);
        if (s->min_items)
            json_add_int(d, into, "minProperties", (int64_t) s->min_items);
    }
    if (s->type == SCHEMA_OBJECT) {
        cJSON *properties = json_add_object(d, into, "properties");
        cJSON *required = NULL;

        for (size_t i = 0; i < s->n_fields; i++)
            publish(d, json_add_object(d, properties, s->fields[i].key), s->fields[i].schema);
        for (size_t i = 0; i < s->n_fields; i++) {
            if (!s->fields[i].required)
                continue;
            if (!required)
                required = json_add_array(d, into, "required");
            json_add_string(d, required, NULL, s->fields[i].key);
        }
        json_add_bool(d, into, "additionalProperties", false);
    }
}
/* NOLINTEND(misc-no-recursion) */

int schema_to_json_schema(const struct schema *s, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {0};

    json_doc_init_object(&d);
    publish(&d, d.root, s);
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}
