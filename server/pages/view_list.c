/* Differences of two values, element by element, so that a reader sees which element it is. */
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "server/pages/view_parts.h"

#define ALIGN_MAX ((size_t) 256)   /* longer lists are compared by position */
#define EQUAL_RUN_MAX ((size_t) 6) /* more equal elements in a row are only counted */

/* One row of the alignment; baseline or current is NULL where the side has nothing. */
struct slot {
    const char *key; /* objects only */
    const cJSON *baseline, *current;
    bool equal;
};

struct slots {
    struct slot *at;
    size_t n, cap;
    bool failed;
};

static void add_slot(struct slots *s, struct slot slot)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 32;
        struct slot *at = reallocarray(s->at, cap, sizeof(*at));

        if (!at) {
            s->failed = true;
            return;
        }
        s->at = at;
        s->cap = cap;
    }
    s->at[s->n++] = slot;
}

/* An element only in the baseline followed by one only in the current is one changed element. */
static void add_one_sided(struct slots *s, const cJSON *baseline, const cJSON *current)
{
    struct slot *last = s->n ? &s->at[s->n - 1] : NULL;

    if (last && !last->equal && baseline && !last->baseline)
        last->baseline = baseline;
    else if (last && !last->equal && current && !last->current)
        last->current = current;
    else
        add_slot(s, (struct slot){.baseline = baseline, .current = current});
}

static void align_by_position(struct slots *s, const cJSON *a, const cJSON *b)
{
    const cJSON *x = a->child;
    const cJSON *y = b->child;

    while ((x || y) && !s->failed) {
        add_slot(s,
                 (struct slot){.baseline = x, .current = y, .equal = x && y && json_equal(x, y)});
        x = x ? x->next : NULL;
        y = y ? y->next : NULL;
    }
}

struct matrix {
    const cJSON **a, **b;
    size_t n, m;
    uint16_t *length; /* longest common subsequence of a[i..], b[j..] at i * (m + 1) + j */
};

static size_t cell(const struct matrix *x, size_t i, size_t j)
{
    return i * (x->m + 1) + j;
}

static void fill(struct matrix *x)
{
    for (size_t i = x->n; i-- > 0;) {
        for (size_t j = x->m; j-- > 0;) {
            uint16_t down = x->length[cell(x, i + 1, j)];
            uint16_t right = x->length[cell(x, i, j + 1)];

            if (json_equal(x->a[i], x->b[j]))
                x->length[cell(x, i, j)] = (uint16_t) (x->length[cell(x, i + 1, j + 1)] + 1);
            else
                x->length[cell(x, i, j)] = down > right ? down : right;
        }
    }
}

static void walk(const struct matrix *x, struct slots *s)
{
    size_t i = 0;
    size_t j = 0;

    while ((i < x->n || j < x->m) && !s->failed) {
        if (i < x->n && j < x->m && json_equal(x->a[i], x->b[j])) {
            add_slot(s, (struct slot){.baseline = x->a[i], .current = x->b[j], .equal = true});
            i++;
            j++;
        } else if (j == x->m ||
                   (i < x->n && x->length[cell(x, i + 1, j)] >= x->length[cell(x, i, j + 1)])) {
            add_one_sided(s, x->a[i++], NULL);
        } else {
            add_one_sided(s, NULL, x->b[j++]);
        }
    }
}

static void collect(const cJSON *array, const cJSON **out)
{
    for (const cJSON *c = array->child; c; c = c->next)
        *out++ = c;
}

static void align_arrays(struct slots *s, const cJSON *a, const cJSON *b)
{
    struct matrix x = {.n = view_count(a), .m = view_count(b)};
    AUTO_FREE const cJSON **elements = NULL;
    AUTO_FREE uint16_t *length = NULL;

    if (x.n > ALIGN_MAX || x.m > ALIGN_MAX) {
        align_by_position(s, a, b);
        return;
    }
    elements = calloc(x.n + x.m + 1, sizeof(*elements));
    length = calloc((x.n + 1) * (x.m + 1), sizeof(*length));
    if (!elements || !length) {
        s->failed = true;
        return;
    }
    x.a = elements;
    x.b = elements + x.n;
    x.length = length;
    collect(a, x.a);
    collect(b, x.b);
    fill(&x);
    walk(&x, s);
}

static void align_objects(struct slots *s, const cJSON *a, const cJSON *b)
{
    for (const cJSON *c = a->child; c; c = c->next) {
        const cJSON *other = json_get(b, c->string);

        add_slot(s, (struct slot){
                        .key = c->string,
                        .baseline = c,
                        .current = other,
                        .equal = other && json_equal(c, other),
                    });
    }
    for (const cJSON *c = b->child; c; c = c->next) {
        if (!json_get(a, c->string))
            add_slot(s, (struct slot){.key = c->string, .current = c});
    }
}

/* 8 and "8" must not look the same. */
static bool needs_quotes(const cJSON *value, const cJSON *other)
{
    return cJSON_IsString(value) && other && !cJSON_IsString(other);
}

static void add_item(struct view *v, cJSON *items, const struct slot *slot, const cJSON *value,
                     const cJSON *other, bool last)
{
    cJSON *item = json_add_object(&v->doc, items, NULL);
    AUTO_FREE char *text = view_value_text(value, needs_quotes(value, other));

    if (!text) {
        v->doc.failed = true;
        return;
    }
    if (slot->key)
        view_format(v, item, "text", "%s: %s", slot->key, text);
    else
        json_add_string(&v->doc, item, "text", text);
    json_add_bool(&v->doc, item, "mark", !slot->equal);
    json_add_string(&v->doc, item, "sep", last ? "" : ", ");
}

static void add_folded(struct view *v, cJSON *items, size_t n, bool last)
{
    cJSON *item = json_add_object(&v->doc, items, NULL);

    view_format(v, item, "text", "(%zu equal)", n);
    json_add_string(&v->doc, item, "sep", last ? "" : ", ");
}

static size_t equal_run(const struct slots *s, size_t from)
{
    size_t n = 0;

    while (from + n < s->n && s->at[from + n].equal)
        n++;
    return n;
}

static void add_items(struct view *v, cJSON *o, const struct slots *s)
{
    cJSON *base = json_add_array(&v->doc, o, "base_items");
    cJSON *now = json_add_array(&v->doc, o, "now_items");

    for (size_t i = 0; i < s->n; i++) {
        const struct slot *slot = &s->at[i];
        size_t run = equal_run(s, i);
        bool last = i + (run > EQUAL_RUN_MAX ? run : 1) == s->n;

        if (run > EQUAL_RUN_MAX) {
            add_folded(v, base, run, last);
            add_folded(v, now, run, last);
            i += run - 1;
            continue;
        }
        add_item(v, base, slot, slot->baseline, slot->current, last);
        add_item(v, now, slot, slot->current, slot->baseline, last);
    }
}

void view_difference(struct view *v, cJSON *o, const cJSON *baseline, const cJSON *current)
{
    struct slots s = {0};

    if (cJSON_IsArray(baseline) && cJSON_IsArray(current) && (baseline->child || current->child))
        align_arrays(&s, baseline, current);
    else if (cJSON_IsObject(baseline) && cJSON_IsObject(current) &&
             (baseline->child || current->child))
        align_objects(&s, baseline, current);
    else
        add_slot(&s, (struct slot){
                         .baseline = baseline,
                         .current = current,
                         .equal = baseline && current && json_equal(baseline, current),
                     });
    if (s.failed)
        v->doc.failed = true;
    else
        add_items(v, o, &s);
    free(s.at);
}
