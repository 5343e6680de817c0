/* Values for people: short texts, numbers, differences element by element. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/parts.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"
#include "experiment/pointer.h"

void value_cut(struct buf *out, const char *s, size_t max)
{
    size_t len = strlen(s);
    size_t keep = max > 3 ? max - 3 : 0;

    if (len <= max) {
        buf_puts(out, s);
        return;
    }
    while (keep > 0 && ((unsigned char) s[keep] & 0xc0) == 0x80)
        keep--;
    buf_put(out, s, keep);
    buf_puts(out, "…");
}

void value_text(struct buf *out, const cJSON *v, size_t max)
{
    AUTO_BUF struct buf all = { 0 };

    if (!v) {
        buf_puts(out, "absent");
        return;
    }
    buf_init(&all, LIMIT_REPORT);
    if (cJSON_IsString(v) && v->valuestring[0])
        buf_puts(&all, v->valuestring);
    else
        json_write(&all, v, JSON_COMPACT);
    value_cut(out, all.failed || !all.data ? "…" : all.data, max);
}

void value_number(struct buf *out, double v, int digits)
{
    char text[512];
    int len = 0;

    if (fabs(v) >= 1e15 || !isfinite(v)) {
        buf_printf(out, "%.6g", v);
        return;
    }
    digits = digits < 0 ? 0 : digits > 9 ? 9 : digits;
    len = snprintf(text, sizeof text, "%.*f", digits, v);
    if (digits > 0)
        while (len > 0 && text[len - 1] == '0')
            len--;
    if (len > 0 && text[len - 1] == '.')
        len--;
    if (len == 2 && text[0] == '-' && text[1] == '0') {
        buf_putc(out, '0');
        return;
    }
    /* A small value that the rounding would hide is shown in significant digits. */
    if (len == 1 && text[0] == '0' && !num_same(v, 0))
        buf_printf(out, "%.3g", v);
    else
        buf_put(out, text, (size_t) len);
}

void value_metric(struct buf *out, double v, const char *unit, const char *label)
{
    bool nanoseconds = strcmp(unit, "ns") == 0;
    const char *shown = nanoseconds ? "ms" : unit;
    size_t label_len = strlen(label);
    size_t unit_len = strlen(shown);

    value_number(out, nanoseconds ? v / 1e6 : v, 3);
    /* "setup p50 (ms)" already says the unit. */
    if (label_len > unit_len + 2 && label[label_len - 1] == ')' &&
        label[label_len - unit_len - 2] == '(' &&
        strncmp(label + label_len - unit_len - 1, shown, unit_len) == 0)
        return;
    if (strcmp(shown, "%") == 0)
        buf_putc(out, '%');
    else if (strncmp(shown, "1/", 2) == 0)
        buf_puts(out, shown + 1);
    else if (strcmp(shown, "ratio") != 0 && strcmp(shown, "1") != 0)
        buf_printf(out, " %s", shown);
}

void value_delta(struct buf *out, const cJSON *delta_pct, int digits)
{
    if (cJSON_IsNumber(delta_pct))
        buf_printf(out, "%+.*f%%", digits, delta_pct->valuedouble);
    else
        buf_puts(out, "n/a");
}

struct differences {
    struct json_doc doc;
    cJSON *list;
    size_t n;
};

enum { DIFFERENCES_MAX = 100 };

static void difference_add(struct differences *d, const char *pointer, const cJSON *b, const cJSON *c)
{
    cJSON *row = NULL;

    if (d->n++ >= DIFFERENCES_MAX)
        return;
    row = json_add_object(&d->doc, d->list, NULL);
    json_add_string(&d->doc, row, "field", pointer);
    json_add_copy(&d->doc, row, "baseline", b);
    json_add_copy(&d->doc, row, "current", c);
}

/* Depth is bounded: both values come from documents of at most LIMIT_JSON_DEPTH levels. */
/* NOLINTBEGIN(misc-no-recursion) */
static void difference_walk(struct differences *d, const char *pointer, const cJSON *b, const cJSON *c);

static void difference_arrays(struct differences *d, const char *pointer, const cJSON *b, const cJSON *c)
{
    const cJSON *left = b->child;
    const cJSON *right = c->child;

    for (size_t i = 0; left || right; i++) {
        char index[24];
        AUTO_FREE char *at = NULL;

        (void) snprintf(index, sizeof index, "%zu", i);
        at = pointer_join(pointer, index);
        if (!at)
            d->doc.failed = true;
        else
            difference_walk(d, at, left, right);
        left = left ? left->next : NULL;
        right = right ? right->next : NULL;
    }
}

static void difference_member(struct differences *d, const char *pointer, const char *key, const cJSON *b,
                              const cJSON *c)
{
    AUTO_FREE char *at = pointer_join(pointer, key);

    if (!at)
        d->doc.failed = true;
    else
        difference_walk(d, at, json_get(b, key), json_get(c, key));
}

static void difference_walk(struct differences *d, const char *pointer, const cJSON *b, const cJSON *c)
{
    const cJSON *member = NULL;

    if (!b || !c) {
        difference_add(d, pointer, b, c);
        return;
    }
    if (json_equal(b, c))
        return;
    if (cJSON_IsArray(b) && cJSON_IsArray(c)) {
        difference_arrays(d, pointer, b, c);
        return;
    }
    if (!cJSON_IsObject(b) || !cJSON_IsObject(c)) {
        difference_add(d, pointer, b, c);
        return;
    }
    cJSON_ArrayForEach(member, b) difference_member(d, pointer, member->string, b, c);
    cJSON_ArrayForEach(member, c)
    {
        if (!json_get(b, member->string))
            difference_member(d, pointer, member->string, b, c);
    }
}
/* NOLINTEND(misc-no-recursion) */

int value_differences(const char *pointer, const cJSON *baseline, const cJSON *current, cJSON **out, struct err *e)
{
    struct differences d = { 0 };
    cJSON *root = NULL;

    json_doc_init_object(&d.doc);
    d.list = json_add_array(&d.doc, NULL, "elements");
    if (d.list)
        difference_walk(&d, pointer, baseline, current);
    root = json_doc_take(&d.doc, e);
    json_doc_fini(&d.doc);
    if (!root)
        return -1;
    *out = cJSON_DetachItemViaPointer(root, root->child);
    json_free(root);
    return 0;
}
