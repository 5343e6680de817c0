/* The builders of json_out.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_node.h"
#include "base/json_out.h"
#include "base/text.h"

void json_doc_init_object(struct json_doc *d)
{
    d->root = cJSON_CreateObject();
    d->failed = d->root == NULL;
}

void json_doc_fini(struct json_doc *d)
{
    json_free(d->root);
    d->root = NULL;
    d->failed = false;
}

cJSON *json_doc_take(struct json_doc *d, struct err *e)
{
    if (d->failed || !d->root) {
        (void) err_set(e, ERR_NOMEM, "json.build", "a document could not be built completely");
        return NULL;
    }
    return STEAL(d->root);
}

static bool is_utf8(const char *s)
{
    return text_is_utf8(s, strlen(s));
}

/* Adds the value, which the parent then owns. */
static bool attach(cJSON *parent, const char *key, cJSON *value)
{
    if (!parent || !value)
        return false;
    if (json_node_kind(parent) == cJSON_Array)
        return !key && cJSON_AddItemToArray(parent, value);
    return json_node_kind(parent) == cJSON_Object && key && is_utf8(key) &&
           cJSON_AddItemToObject(parent, key, value);
}

cJSON *json_add(struct json_doc *d, cJSON *parent, const char *key, cJSON *value)
{
    if (attach(parent ? parent : d->root, key, value))
        return value;
    json_free(value);
    d->failed = true;
    return NULL;
}

cJSON *json_add_object(struct json_doc *d, cJSON *parent, const char *key)
{
    return json_add(d, parent, key, cJSON_CreateObject());
}

cJSON *json_add_array(struct json_doc *d, cJSON *parent, const char *key)
{
    return json_add(d, parent, key, cJSON_CreateArray());
}

void json_add_string(struct json_doc *d, cJSON *parent, const char *key, const char *s)
{
    if (!s) {
        json_add_null(d, parent, key);
        return;
    }
    (void) json_add(d, parent, key,
                    is_utf8(s) ? cJSON_CreateString(s) : NULL); /* failure stays in d */
}

void json_add_bool(struct json_doc *d, cJSON *parent, const char *key, bool v)
{
    (void) json_add(d, parent, key, cJSON_CreateBool(v)); /* failure stays in d */
}

void json_add_int(struct json_doc *d, cJSON *parent, const char *key, int64_t v)
{
    bool safe = v >= -INT64_C(9007199254740991) && v <= INT64_C(9007199254740991);
    cJSON *node = safe ? cJSON_CreateNumber((double) v) : NULL;

    if (node)
        node->type |= JSON_NODE_INTEGER;
    (void) json_add(d, parent, key, node); /* failure stays in d */
}

void json_add_double(struct json_doc *d, cJSON *parent, const char *key, double v)
{
    (void) json_add(d, parent, key,
                    isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull()); /* as above */
}

void json_add_null(struct json_doc *d, cJSON *parent, const char *key)
{
    (void) json_add(d, parent, key, cJSON_CreateNull()); /* failure stays in d */
}

void json_add_copy(struct json_doc *d, cJSON *parent, const char *key, const cJSON *v)
{
    cJSON *copy = NULL;

    if (!v)
        return;
    copy = cJSON_Duplicate(v, 1);
    if (copy && copy->string) { /* the copied member's old key */
        if ((copy->type & cJSON_StringIsConst) == 0)
            free(copy->string);
        copy->string = NULL;
        copy->type &= ~cJSON_StringIsConst;
    }
    (void) json_add(d, parent, key, copy); /* failure stays in d */
}
