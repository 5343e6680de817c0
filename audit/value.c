/* Values for people: short texts, numbers, differences element by element. */
#include <stdlib.h>
#include <string.h>

#include "audit/parts.h"
#include "base/digest.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/align.h"
#include "experiment/pointer.h"

void value_text(struct buf *out, const cJSON *v, size_t max)
{
    AUTO_BUF struct buf all = {0};

    if (!v) {
        buf_puts(out, "absent");
        return;
    }
    buf_init(&all, LIMIT_REPORT);
    if (cJSON_IsString(v) && v->valuestring[0])
        buf_puts(&all, v->valuestring);
    else
        json_write(&all, v, JSON_COMPACT);
    buf_put_cut(out, all.failed || !all.data ? "…" : all.data, max);
}

/* Depth is counted down. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static bool is_deeper(const cJSON *v, size_t levels)
{
    const cJSON *item = NULL;

    if (!cJSON_IsArray(v) && !cJSON_IsObject(v))
        return false;
    if (levels == 0)
        return true;
    cJSON_ArrayForEach(item, v) {
        if (is_deeper(item, levels - 1))
            return true;
    }
    return false;
}

size_t value_add_bounded(struct json_doc *d, cJSON *parent, const char *key, const cJSON *v,
                         size_t max)
{
    AUTO_BUF struct buf text = {0};
    cJSON *made = NULL;
    char hex[DIGEST_HEX_SIZE];
    struct digest digest;

    buf_init(&text, LIMIT_CANONICAL);
    if (cJSON_IsArray(v) || cJSON_IsObject(v) || cJSON_IsString(v))
        json_write(&text, v, JSON_COMPACT);
    if (text.failed) {
        d->failed = true;
        return 0;
    }
    if (text.len <= max && !is_deeper(v, VALUE_DEPTH_MAX)) {
        json_add_copy(d, parent, key, v);
        return text.len;
    }
    digest = digest_of(text.data, text.len);
    digest_hex(&digest, hex);
    made = json_add_object(d, json_add_object(d, parent, key), "omitted");
    json_add_int(d, made, "bytes", (int64_t) text.len);
    json_add_string(d, made, "sha256", hex);
    return sizeof hex;
}

struct differences {
    struct json_doc doc;
    cJSON *list;
    size_t n;
    struct err *e;
};

enum { DIFFERENCES_MAX = 50, ELEMENT_BYTES_MAX = 1 << 10 };

static void difference_add(struct differences *d, const char *pointer, const cJSON *b,
                           const cJSON *c)
{
    AUTO_BUF struct buf field = {0};
    cJSON *row = NULL;

    if (d->n++ >= DIFFERENCES_MAX)
        return;
    buf_init(&field, (size_t) ELEMENT_BYTES_MAX + 8);
    buf_put_cut(&field, pointer, ELEMENT_BYTES_MAX);
    row = json_add_object(&d->doc, d->list, NULL);
    json_add_string(&d->doc, row, "field", field.data);
    json_add_string(&d->doc, row, "change", !b ? "added" : !c ? "removed" : "changed");
    value_add_bounded(&d->doc, row, "baseline", b, ELEMENT_BYTES_MAX);
    value_add_bounded(&d->doc, row, "current", c, ELEMENT_BYTES_MAX);
}

/* An object's members by key: a wide object is looked up in for each of its members. */
struct members {
    const cJSON **items;
    size_t n;
};

static void members_fini(struct members *m)
{
    free(m->items);
}
#define AUTO_MEMBERS __attribute__((cleanup(members_fini)))

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *) a)->string, (*(const cJSON *const *) b)->string);
}

static int members_of(const cJSON *object, struct members *out, struct err *e)
{
    size_t n = (size_t) cJSON_GetArraySize(object);
    const cJSON *member = NULL;

    out->items = calloc(n + 1, sizeof *out->items);
    if (!out->items)
        return err_memory(e, "audit.memory");
    cJSON_ArrayForEach(member, object) {
        if (out->n < n)
            out->items[out->n++] = member;
    }
    qsort(out->items, out->n, sizeof *out->items, by_key);
    return 0;
}

static int key_against(const void *key, const void *member)
{
    return strcmp(key, (*(const cJSON *const *) member)->string);
}

static const cJSON *members_get(const struct members *m, const char *key)
{
    const cJSON **found = bsearch(key, m->items, m->n, sizeof *m->items, key_against);

    return found ? *found : NULL;
}

/* Depth is bounded: both values come from documents of at most LIMIT_JSON_DEPTH levels. */
/* NOLINTBEGIN(misc-no-recursion) */
static int difference_walk(struct differences *d, const char *pointer, const cJSON *b,
                           const cJSON *c);

/* An element is called by its index on the current side; a removed one by that of the baseline. */
static int difference_arrays(struct differences *d, const char *pointer, const cJSON *b,
                             const cJSON *c)
{
    AUTO_ALIGNMENT struct alignment a = {0};

    if (align_lists(b, c, &a, d->e) < 0)
        return -1;
    for (size_t i = 0; i < a.n; i++) {
        const struct align_step *s = &a.steps[i];
        char index[24];
        AUTO_FREE char *at = NULL;

        if (s->kind == ALIGN_EQUAL)
            continue;
        (void) snprintf(index, sizeof index, "%zu",
                        s->kind == ALIGN_REMOVED ? s->at_baseline : s->at_current);
        at = pointer_join(pointer, index);
        if (!at)
            return err_memory(d->e, "audit.memory");
        if (difference_walk(d, at, s->baseline, s->current) < 0)
            return -1;
    }
    return 0;
}

static int difference_member(struct differences *d, const char *pointer, const char *key,
                             const cJSON *b, const cJSON *c)
{
    AUTO_FREE char *at = pointer_join(pointer, key);

    if (!at)
        return err_memory(d->e, "audit.memory");
    return difference_walk(d, at, b, c);
}

static int difference_objects(struct differences *d, const char *pointer, const cJSON *b,
                              const cJSON *c)
{
    AUTO_MEMBERS struct members of_b = {0};
    AUTO_MEMBERS struct members of_c = {0};
    const cJSON *member = NULL;

    if (members_of(b, &of_b, d->e) < 0 || members_of(c, &of_c, d->e) < 0)
        return -1;
    cJSON_ArrayForEach(member, b) {
        if (difference_member(d, pointer, member->string, member,
                              members_get(&of_c, member->string)) < 0)
            return -1;
    }
    cJSON_ArrayForEach(member, c) {
        if (!members_get(&of_b, member->string) &&
            difference_member(d, pointer, member->string, NULL, member) < 0)
            return -1;
    }
    return 0;
}

static int difference_walk(struct differences *d, const char *pointer, const cJSON *b,
                           const cJSON *c)
{
    if (b && c && json_equal(b, c))
        return 0;
    if (cJSON_IsArray(b) && cJSON_IsArray(c))
        return difference_arrays(d, pointer, b, c);
    if (!cJSON_IsObject(b) || !cJSON_IsObject(c)) {
        difference_add(d, pointer, b, c);
        return 0;
    }
    return difference_objects(d, pointer, b, c);
}
/* NOLINTEND(misc-no-recursion) */

int value_differences(const char *pointer, const cJSON *baseline, const cJSON *current,
                      struct value_elements *out, struct err *e)
{
    struct differences d = {.e = e};
    cJSON *root = NULL;
    int rc = 0;

    json_doc_init_object(&d.doc);
    d.list = json_add_array(&d.doc, NULL, "elements");
    if (d.list)
        rc = difference_walk(&d, pointer, baseline, current);
    root = rc == 0 ? json_doc_take(&d.doc, e) : NULL;
    json_doc_fini(&d.doc);
    if (!root)
        return -1;
    out->list = cJSON_DetachItemViaPointer(root, root->child);
    out->omitted = d.n > DIFFERENCES_MAX ? d.n - DIFFERENCES_MAX : 0;
    json_free(root);
    return 0;
}

void value_elements_fini(struct value_elements *v)
{
    json_free(v->list);
    *v = (struct value_elements){0};
}

size_t value_add_elements(struct json_doc *d, cJSON *parent, const struct value_elements *v)
{
    AUTO_BUF struct buf text = {0};

    buf_init(&text, LIMIT_CANONICAL);
    json_write(&text, v->list, JSON_COMPACT);
    json_add_copy(d, parent, "elements", v->list);
    if (v->omitted > 0)
        json_add_int(d, parent, "elements_omitted", (int64_t) v->omitted);
    return text.len;
}

void value_element_text(struct buf *out, const cJSON *element, size_t skip, size_t max)
{
    const char *field = json_get(element, "field")->valuestring;
    const cJSON *baseline = json_get(element, "baseline");
    const cJSON *current = json_get(element, "current");

    if (strlen(field) > skip) {
        buf_put_cut(out, field + skip, max);
        buf_putc(out, ' ');
    }
    value_text(out, baseline ? baseline : current, max);
    if (!baseline || !current) {
        buf_puts(out, baseline ? " removed" : " added");
        return;
    }
    buf_puts(out, " → ");
    value_text(out, current, max);
}

void value_elements_text(struct buf *out, const struct value_elements *v, size_t skip, size_t max)
{
    const cJSON *element = NULL;
    size_t shown = 0;

    cJSON_ArrayForEach(element, v->list) {
        if (++shown > 3)
            continue;
        if (shown > 1)
            buf_puts(out, ", ");
        value_element_text(out, element, skip, max);
    }
    if (shown + v->omitted > 3)
        buf_printf(out, " and %zu more", shown + v->omitted - 3);
}
