#include "evidence/shape.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/json_in.h"
#include "base/relname.h"
#include "base/text.h"

#define TEXT_MAX 4096

int shape_refuse(struct err *e, const char *what, const cJSON *value)
{
    return err_set(e, ERR_INPUT, "manifest.value", "must be %s, is %s", what,
                   json_type_name(value));
}

int shape_object(const cJSON *object, const struct shape_member *members, size_t n, struct err *e)
{
    const char *keys[32];

    if (!cJSON_IsObject(object))
        return shape_refuse(e, "an object", object);
    if (n > ARRAY_LEN(keys))
        return err_set(e, ERR_INTERNAL, "manifest.table", "a table of members is too long");
    for (size_t i = 0; i < n; i++)
        keys[i] = members[i].key;
    if (json_only_keys(object, keys, n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const cJSON *value = json_get(object, members[i].key);

        if (!value)
            return err_set(e, ERR_INPUT, "manifest.missing", "'%s' is missing", members[i].key);
        if (members[i].check(value, e) < 0)
            return err_wrap(e, "'%s'", members[i].key);
    }
    return 0;
}

int shape_each(const cJSON *array, shape_checker check, struct err *e)
{
    size_t n = 0;

    if (!cJSON_IsArray(array))
        return shape_refuse(e, "an array", array);
    for (const cJSON *item = array->child; item; item = item->next, n++) {
        if (check(item, e) < 0)
            return err_wrap(e, "[%zu]", n);
    }
    return 0;
}

static const char *text_of(const cJSON *v)
{
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

bool shape_one_of(const cJSON *v, const char *const *words, size_t n)
{
    const char *s = text_of(v);

    for (size_t i = 0; s && i < n; i++) {
        if (strcmp(s, words[i]) == 0)
            return true;
    }
    return false;
}

int shape_any_object(const cJSON *v, struct err *e)
{
    return cJSON_IsObject(v) ? 0 : shape_refuse(e, "an object", v);
}

int shape_object_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsObject(v) || cJSON_IsNull(v) ? 0 : shape_refuse(e, "an object or null", v);
}

int shape_bool(const cJSON *v, struct err *e)
{
    return cJSON_IsBool(v) ? 0 : shape_refuse(e, "true or false", v);
}

int shape_any_array(const cJSON *v, struct err *e)
{
    return cJSON_IsArray(v) ? 0 : shape_refuse(e, "an array", v);
}

int shape_some_text(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && s[0] && strlen(s) <= TEXT_MAX ? 0 : shape_refuse(e, "a text that is not empty", v);
}

int shape_any_text(const cJSON *v, struct err *e)
{
    return cJSON_IsString(v) ? 0 : shape_refuse(e, "a text", v);
}

int shape_text_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsString(v) || cJSON_IsNull(v) ? 0 : shape_refuse(e, "a text or null", v);
}

int shape_texts(const cJSON *v, struct err *e)
{
    return shape_each(v, shape_any_text, e);
}

int shape_text_map(const cJSON *v, struct err *e)
{
    if (!cJSON_IsObject(v))
        return shape_refuse(e, "an object", v);
    for (const cJSON *item = v->child; item; item = item->next) {
        if (shape_text_or_null(item, e) < 0)
            return err_wrap(e, "'%.100s'", item->string);
    }
    return 0;
}

int shape_count(const cJSON *v, struct err *e)
{
    return json_is_integer(v) && v->valuedouble >= 0 ? 0
                                                     : shape_refuse(e, "a whole number from 0", v);
}

int shape_number(const cJSON *v, struct err *e)
{
    return cJSON_IsNumber(v) && isfinite(v->valuedouble) ? 0 : shape_refuse(e, "a number", v);
}

int shape_number_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsNull(v) ? 0 : shape_number(v, e);
}

int shape_hash(const cJSON *v, struct err *e)
{
    struct digest ignored;
    const char *s = text_of(v);

    return s && digest_parse(s, &ignored) ? 0 : shape_refuse(e, "64 lower-case hex digits", v);
}

int shape_hash_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsNull(v) ? 0 : shape_hash(v, e);
}

/* A git object id, SHA-1 or SHA-256. */
int shape_object_id(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);
    size_t n = s ? strlen(s) : 0;

    return (n == 40 || n == 64) && text_is_hex(s, n)
               ? 0
               : shape_refuse(e, "40 or 64 lower-case hex digits", v);
}

int shape_object_ids(const cJSON *v, struct err *e)
{
    return shape_each(v, shape_object_id, e);
}

int shape_stamp(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);
    int64_t ignored = 0;

    if (!s || !clock_parse_rfc3339(s, &ignored) || s[strlen(s) - 1] != 'Z')
        return shape_refuse(e, "a time in UTC like 2026-11-29T14:15:02Z", v);
    return 0;
}

int shape_project(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && text_is_project(s) ? 0 : shape_refuse(e, "a project, owner/name", v);
}

int shape_gate(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && text_is_slug(s) ? 0 : shape_refuse(e, "a gate's name", v);
}

int shape_name(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && text_is_name(s) ? 0 : shape_refuse(e, "a name", v);
}

int shape_run_id(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && text_is_run_id(s) ? 0 : shape_refuse(e, "a run id", v);
}

int shape_run_id_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsNull(v) ? 0 : shape_run_id(v, e);
}

int shape_relname(const cJSON *v, struct err *e)
{
    const char *s = text_of(v);

    return s && relname_ok(s) ? 0 : shape_refuse(e, "an allowed relative file name", v);
}

int shape_relname_or_null(const cJSON *v, struct err *e)
{
    return cJSON_IsNull(v) ? 0 : shape_relname(v, e);
}
