/* Differences of two values, element by element, so that a reader sees which element it is. */
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "experiment/align.h"
#include "server/pages/view_parts.h"

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

static void align_arrays(struct slots *s, const cJSON *a, const cJSON *b)
{
    AUTO_ALIGNMENT struct alignment made = {0};
    struct err e = ERR_INIT;

    if (align_lists(a, b, &made, &e) < 0) {
        s->failed = true;
        return;
    }
    for (size_t i = 0; i < made.n; i++)
        add_slot(s, (struct slot){
                        .baseline = made.steps[i].baseline,
                        .current = made.steps[i].current,
                        .equal = made.steps[i].kind == ALIGN_EQUAL,
                    });
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
