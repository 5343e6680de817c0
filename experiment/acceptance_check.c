/* Rows of the acceptance document, and what the check families share. */
#include "experiment/acceptance_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/text.h"
#include "experiment/pointer.h"

enum {
    SHOWN_NODES = 256,
    SHOWN_DEPTH = 6,
    SHOWN_TEXT = 1024,
    SHOWN_BYTES = 256 * 1024,
    PROBLEMS_MAX = 50
};

/* Counts nodes up to SHOWN_NODES and stops at SHOWN_DEPTH: the bound on the recursion. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static bool is_small(const cJSON *j, size_t depth, size_t *nodes, size_t *bytes)
{
    const cJSON *item = NULL;

    if (++*nodes > SHOWN_NODES || depth > SHOWN_DEPTH)
        return false;
    *bytes += 1 + (j->string ? strlen(j->string) : 0);
    if (cJSON_IsString(j)) {
        *bytes += strlen(j->valuestring);
        return strlen(j->valuestring) <= SHOWN_TEXT;
    }
    cJSON_ArrayForEach(item, j)
        if (!is_small(item, depth + 1, nodes, bytes))
            return false;
    return *bytes <= SHOWN_BYTES;
}

static void add_shown(struct checks *c, cJSON *row, const char *key, const cJSON *value)
{
    struct json_doc *doc = c->doc;
    size_t nodes = 0;
    size_t bytes = 0;
    char text[64];

    if (!value) {
        json_add_null(doc, row, key);
    } else if (is_small(value, 0, &nodes, &bytes)) {
        json_add_copy(doc, row, key, value);
        c->bytes += bytes;
    } else {
        (void) snprintf(text, sizeof text, "(%s too large to show)", json_type_name(value));
        json_add_string(doc, row, key, text);
    }
}

bool checks_fit(const struct checks *c)
{
    return c->n <= LIMIT_CHECKS && c->bytes <= LIMIT_JSON_DOCUMENT;
}

void checks_add(struct checks *c, const char *name, const char *operator, const cJSON * limit,
                const cJSON *actual, bool passed, const char *error)
{
    cJSON *row = NULL;

    c->n++;
    c->failed += !passed;
    c->bytes += strlen(name) + (error ? strlen(error) : 0);
    if (!checks_fit(c))
        return; /* told at the end */
    row = json_add_object(c->doc, c->list, NULL);
    json_add_string(c->doc, row, "name", name);
    json_add_string(c->doc, row, "operator", operator);
    add_shown(c, row, "limit", limit);
    add_shown(c, row, "actual", actual);
    json_add_bool(c->doc, row, "passed", passed);
    json_add_string(c->doc, row, "error", error);
}

void problems_init(struct problems *p)
{
    *p = (struct problems){.list = cJSON_CreateArray()};
}

void problems_fini(struct problems *p)
{
    json_free(p->list);
    *p = (struct problems){0};
}

void problems_add(struct problems *p, const char *format, ...)
{
    AUTO_BUF struct buf b;
    cJSON *text = NULL;
    va_list ap;

    buf_init(&b, LIMIT_KIB(4));
    va_start(ap, format);
    buf_vprintf(&b, format, ap);
    va_end(ap);
    p->n++;
    if (p->n > PROBLEMS_MAX || !p->list)
        return;
    text = cJSON_CreateString(b.failed || !text_is_utf8(b.data, b.len) ? "a value too large to show"
                                                                       : b.data);
    if (!text || !cJSON_AddItemToArray(p->list, text))
        cJSON_Delete(text);
}

void checks_add_problems(struct checks *c, const char *name, const char *operator,
                         const cJSON * limit, const struct problems *p)
{
    const char *first = p->list && p->list->child ? p->list->child->valuestring : "out of memory";
    bool passed = p->list && p->n == 0;

    if (!p->list)
        c->doc->failed = true;
    checks_add(c, name, operator, limit, p->list, passed, passed ? NULL : first);
}

const char *check_text(const cJSON *entry, const char *key)
{
    const cJSON *j = json_get(entry, key);

    return cJSON_IsString(j) ? j->valuestring : "";
}

const char *check_name(const cJSON *entry, const char *otherwise)
{
    const char *name = check_text(entry, "name");

    return name[0] != '\0' ? name : otherwise;
}

double check_number(const cJSON *entry, const char *key, double otherwise)
{
    const cJSON *j = json_get(entry, key);

    return cJSON_IsNumber(j) ? j->valuedouble : otherwise;
}

bool check_is_count(const cJSON *j)
{
    return json_is_integer(j) && j->valuedouble >= 0;
}

const cJSON *check_markers(const struct checks *c, const cJSON *accept)
{
    if (c->in->phase_markers)
        return c->in->phase_markers;
    return pointer_get(c->report, check_text(json_get(accept, "phases"), "markers"));
}
