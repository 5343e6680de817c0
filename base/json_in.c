#include "base/json_in.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_node.h"
#include "base/num.h"

/* cJSON as released copies a number into 64 bytes and drops what is longer; not every system's is
 * patched. */
#define CJSON_NUMBER_MAX 62

struct literal {
    size_t at;
    size_t len;
};

static bool is_number_char(char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* The next number at or behind `from` in a valid document; false at its end. */
static bool next_literal(const char *p, size_t len, size_t from, struct literal *out)
{
    size_t i = from;

    while (i < len) {
        if (p[i] == '"') {
            for (i++; p[i] != '"'; i++)
                i += p[i] == '\\';
        } else if (p[i] == '-' || (p[i] >= '0' && p[i] <= '9')) {
            out->at = i;
            while (i < len && is_number_char(p[i]))
                i++;
            out->len = i - out->at;
            return true;
        }
        i++;
    }
    return false;
}

/* Rewrites numbers that cJSON would cut: same double, fewer digits, filled up with spaces. */
static void shorten_numbers(char *p, size_t len)
{
    struct literal l = {0};

    while (next_literal(p, len, l.at + l.len, &l)) {
        char text[NUM_DOUBLE_TEXT];
        double value = 0;
        size_t n = 0;

        if (l.len <= CJSON_NUMBER_MAX || !num_parse_double(p + l.at, l.len, &value))
            continue;
        n = num_double_shortest(value, text);
        memcpy(p + l.at, text, n);
        memset(p + l.at + n, ' ', l.len - n);
    }
}

/* Marks the numbers of the tree that stand without point and exponent in the document; false when
 * tree and document do not match, which would be our mistake. */
static bool mark_integers(cJSON *root, const char *p, size_t len)
{
    struct json_walk w;
    struct literal l = {0};
    enum json_walk_event event = JSON_WALK_ENTER;

    json_walk_init(&w, root);
    while ((event = json_walk_next(&w)) == JSON_WALK_ENTER || event == JSON_WALK_LEAVE) {
        if (event == JSON_WALK_LEAVE || json_node_kind(w.node) != cJSON_Number)
            continue;
        if (!next_literal(p, len, l.at + l.len, &l))
            return false;
        if (num_is_integer_literal(p + l.at, l.len))
            w.node->type |= JSON_NODE_INTEGER;
    }
    return event == JSON_WALK_END && !next_literal(p, len, l.at + l.len, &l);
}

int json_parse(const char *bytes, size_t len, const struct json_limits *limits, cJSON **out,
               struct err *e)
{
    AUTO_FREE char *copy = NULL;
    AUTO_JSON cJSON *root = NULL;
    const char *end = NULL;

    if (json_validate(bytes, len, limits, e) < 0)
        return -1;
    copy = malloc(len + 1);
    if (!copy)
        return err_set(e, ERR_NOMEM, "json.memory", "no memory for a document of %zu bytes", len);
    memcpy(copy, bytes, len);
    copy[len] = '\0';
    shorten_numbers(copy, len);
    root = cJSON_ParseWithLengthOpts(copy, len + 1, &end, 1);
    if (!root)
        return err_set(e, ERR_NOMEM, "json.memory",
                       "no memory for the values of a document of %zu bytes", len);
    if (!mark_integers(root, bytes, len))
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
