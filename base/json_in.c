#include "base/json_in.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_node.h"
#include "base/json_scan.h"
#include "base/num.h"

/* cJSON as released copies a number into 64 bytes and drops what is longer; not every system's is
 * patched. */
#define CJSON_NUMBER_MAX 62

static bool any_is_long(const struct json_literals *literals)
{
    for (size_t i = 0; i < literals->n; i++) {
        if (literals->items[i].len > CJSON_NUMBER_MAX)
            return true;
    }
    return false;
}

/* A copy in which the numbers that cJSON would cut are the same doubles in fewer digits, filled up
 * with spaces. */
static char *shorten_numbers(const char *bytes, size_t len, const struct json_literals *literals)
{
    char *p = malloc(len);

    if (!p)
        return NULL;
    memcpy(p, bytes, len);
    for (size_t i = 0; i < literals->n; i++) {
        const struct json_literal *l = &literals->items[i];
        char text[NUM_DOUBLE_TEXT];
        double value = 0;
        size_t n = 0;

        if (l->len <= CJSON_NUMBER_MAX || !num_parse_double(p + l->at, l->len, &value))
            continue;
        n = num_double_shortest(value, text);
        memcpy(p + l->at, text, n);
        memset(p + l->at + n, ' ', l->len - n);
    }
    return p;
}

/* Marks the numbers of the tree that stand without point and exponent in the document; false when
 * tree and document do not match, which would be our mistake. */
static bool mark_integers(cJSON *root, const struct json_literals *literals)
{
    struct json_walk w;
    size_t i = 0;
    enum json_walk_event event = JSON_WALK_ENTER;

    json_walk_init(&w, root);
    while ((event = json_walk_next(&w)) == JSON_WALK_ENTER || event == JSON_WALK_LEAVE) {
        if (event == JSON_WALK_LEAVE || json_node_kind(w.node) != cJSON_Number)
            continue;
        if (i == literals->n)
            return false;
        if (literals->items[i++].integer)
            w.node->type |= JSON_NODE_INTEGER;
    }
    return event == JSON_WALK_END && i == literals->n;
}

int json_parse(const char *bytes, size_t len, const struct json_limits *limits, cJSON **out,
               struct err *e)
{
    AUTO_JSON_LITERALS struct json_literals literals = {.items = NULL};
    AUTO_FREE char *copy = NULL;
    AUTO_JSON cJSON *root = NULL;
    const char *end = NULL;

    if (json_scan(bytes, len, limits, &literals, e) < 0)
        return -1;
    if (any_is_long(&literals)) {
        copy = shorten_numbers(bytes, len, &literals);
        if (!copy)
            return err_set(e, ERR_NOMEM, "json.memory", "no memory for a document of %zu bytes",
                           len);
    }
    /* What follows the value was looked at: no NUL is needed. */
    root = cJSON_ParseWithLengthOpts(copy ? copy : bytes, len, &end, 0);
    if (!root)
        return err_set(e, ERR_NOMEM, "json.memory",
                       "no memory for the values of a document of %zu bytes", len);
    if (!mark_integers(root, &literals))
        return err_set(e, ERR_INTERNAL, "json.mark", "two readings of one document differ");
    *out = STEAL(root);
    return 0;
}

void json_free(cJSON *j)
{
    cJSON_Delete(j);
}

const cJSON *json_get(const cJSON *object, const char *key)
{
    const cJSON *member = NULL;

    if (!object || json_node_kind(object) != cJSON_Object)
        return NULL;
    for (member = object->child; member; member = member->next) {
        if (member->string && strcmp(member->string, key) == 0)
            return member;
    }
    return NULL;
}

bool json_is_integer(const cJSON *j)
{
    return j && json_node_kind(j) == cJSON_Number && (j->type & JSON_NODE_INTEGER) != 0 &&
           num_is_safe_integer(j->valuedouble);
}

const char *json_type_name(const cJSON *j)
{
    if (!j)
        return "absent";
    switch (json_node_kind(j)) {
    case cJSON_NULL:
        return "null";
    case cJSON_True:
    case cJSON_False:
        return "boolean";
    case cJSON_Number:
        return json_is_integer(j) ? "integer" : "number";
    case cJSON_String:
        return "string";
    case cJSON_Array:
        return "array";
    case cJSON_Object:
        return "object";
    default:
        return "absent";
    }
}
