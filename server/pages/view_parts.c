#include "server/pages/view_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/host_rules.h"

struct word_row {
    const char *word;
    const char *shown;
    const char *glyph;
    const char *glyph_ascii;
    const char *css;
    int rank;
};

/* Never colour alone: each class has its glyph and its word. Ranks: red first. */
static const struct word_row word_rows[] = {
    {"INVALID", "INVALID", "?", "?", "v-bad", 0},
    {"ERROR", "ERROR", "!", "!", "v-ref", 1},
    {"FAIL", "FAIL", "✗", "x", "v-bad", 2},
    {"REGRESSION", "REGRESSION", "▲", "^", "v-bad", 3},
    {"NON_COMPARABLE", "NON_COMPARABLE", "≠", "!=", "v-ref", 4},
    {"PENDING", "PENDING", "…", "..", "v-run", 5},
    {"OK", "OK", "✓", "+", "v-ok", 6},
    {"PASS", "PASS", "✓", "+", "v-ok", 6},
    {"BUILD_ONLY", "BUILD ONLY", "–", "-", "v-none", 7},
    {"regression", "REGRESSION", "▲", "^", "v-bad", 3},
    {"ok", "OK", "✓", "+", "v-ok", 6},
    {"info", "not gated", "·", ".", "v-none", 7},
    {"failed", "FAILED", "✗", "x", "v-bad", 2},
    {"not_run", "not run", "–", "-", "v-none", 7},
    {"VALID", "VERIFIED", "✓", "+", "v-ok", 6},
    {"DAMAGED", "DAMAGED", "✗", "x", "v-bad", 0},
    {"NO_VERDICT", "no verdict", "–", "-", "v-none", 7},
};

static const struct word_row *find_word(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(word_rows); i++) {
        if (strcmp(word_rows[i].word, word) == 0)
            return &word_rows[i];
    }
    return NULL;
}

cJSON *view_get(const cJSON *object, const char *key)
{
    if (!cJSON_IsObject(object))
        return NULL;
    for (cJSON *c = object->child; c; c = c->next) {
        if (c->string && strcmp(c->string, key) == 0)
            return c;
    }
    return NULL;
}

const char *view_str(const cJSON *object, const char *key)
{
    return json_text(object, key, "");
}

bool view_flag(const cJSON *object, const char *key)
{
    return cJSON_IsTrue(json_get(object, key));
}

bool view_double(const cJSON *object, const char *key, double *out)
{
    const cJSON *n = json_get(object, key);

    if (!cJSON_IsNumber(n) || !isfinite(n->valuedouble))
        return false;
    *out = n->valuedouble;
    return true;
}

size_t view_count(const cJSON *array)
{
    size_t n = 0;

    if (!cJSON_IsArray(array))
        return 0;
    for (const cJSON *c = array->child; c; c = c->next)
        n++;
    return n;
}

static cJSON *object_from(cJSON *c)
{
    while (c && !cJSON_IsObject(c))
        c = c->next;
    return c;
}

cJSON *view_first(const cJSON *array)
{
    return cJSON_IsArray(array) ? object_from(array->child) : NULL;
}

cJSON *view_next(const cJSON *element)
{
    return object_from(element->next);
}

void view_format(struct view *v, cJSON *o, const char *key, const char *format, ...)
{
    AUTO_BUF struct buf b;
    va_list ap;

    buf_init(&b, LIMIT_KIB(64));
    va_start(ap, format);
    buf_vprintf(&b, format, ap);
    va_end(ap);
    if (b.failed)
        v->doc.failed = true;
    else
        json_add_string(&v->doc, o, key, b.data ? b.data : "");
}

void view_word(struct view *v, cJSON *o, const char *key, const char *word)
{
    const struct word_row *row = find_word(word);
    cJSON *w = json_add_object(&v->doc, o, key);

    json_add_string(&v->doc, w, "word", row ? row->shown : word);
    if (row)
        json_add_string(&v->doc, w, "glyph", v->text ? row->glyph_ascii : row->glyph);
    else
        json_add_string(&v->doc, w, "glyph", "–");
    json_add_string(&v->doc, w, "css", row ? row->css : "v-none");
    json_add_bool(&v->doc, w, "good", row && strcmp(row->css, "v-ok") == 0);
}

int view_rank(const char *verdict)
{
    const struct word_row *row = find_word(verdict);

    return row ? row->rank : 8;
}

void view_time(struct view *v, cJSON *o, const char *key, const char *stamp)
{
    cJSON *t = json_add_object(&v->doc, o, key);
    int64_t us = 0;
    char iso[CLOCK_RFC3339_SIZE];
    char age[VIEW_TEXT];

    if (!clock_parse_rfc3339(stamp, &us)) {
        json_add_string(&v->doc, t, "text", stamp);
        return;
    }
    clock_rfc3339(us, false, iso);
    view_age_text(v->ctx->now_us - us, age);
    json_add_string(&v->doc, t, "iso", iso);
    view_format(v, t, "text", "%.10s %.5s UTC", iso, iso + 11);
    json_add_string(&v->doc, t, "age", age);
}

void view_number_as(struct view *v, cJSON *o, const char *key, double value, const char *text,
                    const char *unit)
{
    cJSON *n = json_add_object(&v->doc, o, key);

    json_add_double(&v->doc, n, "value", value);
    json_add_string(&v->doc, n, "text", text);
    json_add_string(&v->doc, n, "unit", unit);
    view_format(v, n, "shown", "%s%s%s", text, unit[0] ? " " : "", unit);
}

void view_number(struct view *v, cJSON *o, const char *key, double value, struct quantity_unit unit)
{
    char text[QUANTITY_TEXT];

    quantity_number(value / unit.divisor, false, v->text, text);
    view_number_as(v, o, key, value, text, unit.name);
}

void view_plain(struct view *v, cJSON *o, const char *key, double value)
{
    view_number(v, o, key, value, (struct quantity_unit){.divisor = 1, .name = ""});
}

char *view_value_text(const cJSON *value, bool quoted)
{
    AUTO_BUF struct buf b = {0};
    size_t len = 0;

    if (!value)
        return strdup("(absent)");
    if (cJSON_IsString(value) && value->valuestring && !quoted)
        return strdup(value->valuestring[0] ? value->valuestring : "(empty)");
    buf_init(&b, LIMIT_KIB(256));
    json_write(&b, value, JSON_COMPACT);
    if (b.failed)
        return strdup("(too long to show)");
    return buf_take(&b, &len);
}

void view_value(struct view *v, cJSON *o, const char *key, const cJSON *value)
{
    AUTO_FREE char *text = view_value_text(value, false);

    if (!text)
        v->doc.failed = true;
    else
        json_add_string(&v->doc, o, key, text);
}

void view_marked(struct view *v, cJSON *o, const char *key, const char *text)
{
    cJSON *parts = json_add_array(&v->doc, o, key);
    bool code = false;

    while (*text) {
        size_t n = strcspn(text, "`");
        cJSON *part;

        if (n > 0) {
            part = json_add_object(&v->doc, parts, NULL);
            view_format(v, part, "text", "%.*s", (int) n, text);
            json_add_bool(&v->doc, part, "code", code && text[n] == '`');
        }
        text += n;
        if (*text == '`') {
            code = !code;
            text++;
        }
    }
}

void view_interference(struct view *v, cJSON *o, const cJSON *record)
{
    AUTO_BUF struct buf b = {.data = NULL};
    cJSON *quiet = NULL;

    buf_init(&b, LIMIT_KIB(4));
    interference_describe(record, &b);
    if (b.failed || b.len == 0)
        return;
    quiet = json_add_object(&v->doc, o, "quiet");
    json_add_string(&v->doc, quiet, "text", b.data);
    json_add_bool(&v->doc, quiet, "loud", interference_is_loud(record));
}

struct sort_item {
    cJSON *node;
    size_t index;
    int (*compare)(const cJSON *, const cJSON *);
};

static int compare_items(const void *a, const void *b)
{
    const struct sort_item *x = a;
    const struct sort_item *y = b;
    int order = x->compare(x->node, y->node);

    if (order != 0)
        return order;
    return x->index < y->index ? -1 : x->index > y->index;
}

void view_sort(struct view *v, cJSON *array, int (*compare)(const cJSON *, const cJSON *))
{
    size_t n = view_count(array);
    AUTO_FREE struct sort_item *items = NULL;

    if (n < 2)
        return;
    items = calloc(n, sizeof(*items));
    if (!items) {
        v->doc.failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        items[i] = (struct sort_item){.node = array->child, .index = i, .compare = compare};
        (void) cJSON_DetachItemViaPointer(array, array->child); /* kept in items */
    }
    qsort(items, n, sizeof(*items), compare_items);
    for (size_t i = 0; i < n; i++)
        (void) json_add(&v->doc, array, NULL,
                        items[i].node); /* a failure is kept in the document */
}
