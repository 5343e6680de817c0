/* The typed member getters of json_in.h. */
#include <string.h>

#include "base/json_in.h"
#include "base/json_node.h"
#include "base/text.h"

/* The key cut for a message: it may come from outside. */
#define KEY_SHOWN 80

static int wrong(const cJSON *member, const char *key, const char *wanted, struct err *e)
{
    if (!member)
        return err_set(e, ERR_INPUT, "json.missing", "'%.*s' is missing: %s expected", KEY_SHOWN,
                       key, wanted);
    return err_set(e, ERR_INPUT, "json.type", "'%.*s' is %s: %s expected", KEY_SHOWN, key,
                   json_type_name(member), wanted);
}

static bool is_kind(const cJSON *j, int kind)
{
    return j && json_node_kind(j) == kind;
}

const char *json_text(const cJSON *object, const char *key, const char *otherwise)
{
    const cJSON *member = json_get(object, key);

    return is_kind(member, cJSON_String) ? member->valuestring : otherwise;
}

double json_number(const cJSON *object, const char *key, double otherwise)
{
    const cJSON *member = json_get(object, key);

    return is_kind(member, cJSON_Number) ? member->valuedouble : otherwise;
}

int json_get_string(const cJSON *object, const char *key, const char **out, struct err *e)
{
    const cJSON *member = json_get(object, key);

    if (!is_kind(member, cJSON_String))
        return wrong(member, key, "a string", e);
    *out = member->valuestring;
    return 0;
}

int json_get_string_or_null(const cJSON *object, const char *key, const char **out, struct err *e)
{
    const cJSON *member = json_get(object, key);

    if (!is_kind(member, cJSON_String) && !is_kind(member, cJSON_NULL))
        return wrong(member, key, "a string or null", e);
    *out = is_kind(member, cJSON_String) ? member->valuestring : NULL;
    return 0;
}

int json_get_bool(const cJSON *object, const char *key, bool *out, struct err *e)
{
    const cJSON *member = json_get(object, key);

    if (!is_kind(member, cJSON_True) && !is_kind(member, cJSON_False))
        return wrong(member, key, "true or false", e);
    *out = is_kind(member, cJSON_True);
    return 0;
}

int json_get_u53(const cJSON *object, const char *key, uint64_t max, uint64_t *out, struct err *e)
{
    const cJSON *member = json_get(object, key);
    uint64_t value = 0;

    if (!member || !json_is_integer(member))
        return wrong(member, key, "an integer", e);
    if (member->valuedouble < 0)
        return err_set(e, ERR_INPUT, "json.range", "'%.*s' is negative", KEY_SHOWN, key);
    value = (uint64_t) member->valuedouble;
    if (value > max)
        return err_set(e, ERR_INPUT, "json.range", "'%.*s' is %llu: at most %llu allowed",
                       KEY_SHOWN, key, (unsigned long long) value, (unsigned long long) max);
    *out = value;
    return 0;
}

int json_get_object(const cJSON *object, const char *key, const cJSON **out, struct err *e)
{
    const cJSON *member = json_get(object, key);

    if (!is_kind(member, cJSON_Object))
        return wrong(member, key, "an object", e);
    *out = member;
    return 0;
}

int json_get_array(const cJSON *object, const char *key, const cJSON **out, struct err *e)
{
    const cJSON *member = json_get(object, key);

    if (!is_kind(member, cJSON_Array))
        return wrong(member, key, "an array", e);
    *out = member;
    return 0;
}

static bool is_one_of(const char *key, const char *const *known, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(key, known[i]) == 0)
            return true;
    }
    return false;
}

int json_only_keys(const cJSON *object, const char *const *known, size_t n, struct err *e)
{
    const cJSON *member = NULL;

    if (!is_kind(object, cJSON_Object))
        return err_set(e, ERR_INPUT, "json.type", "an object is expected, not %s",
                       json_type_name(object));
    for (member = object->child; member; member = member->next) {
        const char *near = NULL;

        if (is_one_of(member->string, known, n))
            continue;
        near = text_nearest(member->string, known, n);
        if (near)
            return err_set(e, ERR_INPUT, "json.unknown", "unknown key '%.*s': did you mean '%s'?",
                           KEY_SHOWN, member->string, near);
        return err_set(e, ERR_INPUT, "json.unknown", "unknown key '%.*s'", KEY_SHOWN,
                       member->string);
    }
    return 0;
}
