/* json_equal of json_in.h: deep equality without recursion and without quadratic member look-ups.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_node.h"
#include "base/num.h"

/* Above this many members an object is searched through a sorted index. */
#define INDEX_FROM 16

/* One open container: what of `a` comes next, and where its counterpart in `b` is looked for. */
struct level {
    const cJSON *next_a;
    const cJSON *b;
    const cJSON *hint;   /* b's member in the same place: documents often agree in order */
    const cJSON **index; /* b's members by key, when order differs in a large object */
    size_t n;
};

static int by_key(const void *x, const void *y)
{
    return strcmp((*(const cJSON *const *) x)->string, (*(const cJSON *const *) y)->string);
}

static int key_against(const void *key, const void *y)
{
    return strcmp(key, (*(const cJSON *const *) y)->string);
}

static size_t count(const cJSON *container)
{
    size_t n = 0;

    for (const cJSON *j = container->child; j; j = j->next)
        n++;
    return n;
}

static void make_index(struct level *l)
{
    size_t i = 0;

    l->index = calloc(l->n, sizeof(const cJSON *));
    if (!l->index)
        return; /* the slow way stays right */
    for (const cJSON *j = l->b->child; j; j = j->next)
        l->index[i++] = j;
    qsort(l->index, l->n, sizeof(const cJSON *), by_key);
}

static const cJSON *find(struct level *l, const char *key)
{
    const cJSON **slot = NULL;

    if (!l->index && l->n > INDEX_FROM)
        make_index(l);
    if (!l->index)
        return json_get(l->b, key);
    slot = bsearch(key, l->index, l->n, sizeof(const cJSON *), key_against);
    return slot ? *slot : NULL;
}

/* The counterpart in b of a's member, or NULL. */
static const cJSON *counterpart(struct level *l, const cJSON *a)
{
    const cJSON *hint = l->hint;

    if (hint)
        l->hint = hint->next;
    if (json_node_kind(l->b) == cJSON_Array || (hint && strcmp(hint->string, a->string) == 0))
        return hint;
    return find(l, a->string);
}

static bool same_kind(const cJSON *a, const cJSON *b)
{
    return json_node_kind(a) == json_node_kind(b);
}

static bool same_scalar(const cJSON *a, const cJSON *b)
{
    if (json_node_kind(a) == cJSON_Number)
        return num_same(a->valuedouble, b->valuedouble);
    if (json_node_kind(a) == cJSON_String)
        return strcmp(a->valuestring, b->valuestring) == 0;
    return true;
}

struct comparison {
    struct level levels[LIMIT_JSON_DEPTH_HARD];
    size_t depth;
};

/* Compares two nodes by themselves; containers of equal size are opened. */
static bool enter(struct comparison *c, const cJSON *a, const cJSON *b)
{
    size_t n = 0;

    if (!b || !same_kind(a, b))
        return false;
    if (!json_node_is_container(a))
        return same_scalar(a, b);
    n = count(a);
    if (n != count(b) || c->depth >= LIMIT_JSON_DEPTH_HARD)
        return false;
    c->levels[c->depth++] = (struct level){.next_a = a->child, .b = b, .hint = b->child, .n = n};
    return true;
}

static bool compare(struct comparison *c, const cJSON *a, const cJSON *b)
{
    if (!enter(c, a, b))
        return false;
    while (c->depth > 0) {
        struct level *l = &c->levels[c->depth - 1];
        const cJSON *member = l->next_a;

        if (!member) {
            free(l->index);
            c->depth--;
            continue;
        }
        l->next_a = member->next;
        if (!enter(c, member, counterpart(l, member)))
            return false;
    }
    return true;
}

bool json_equal(const cJSON *a, const cJSON *b)
{
    struct comparison *c = NULL;
    bool equal = false;

    if (!a || !b)
        return a == b;
    c = calloc(1, sizeof(*c));
    if (!c)
        return false; /* never a wrong "equal" */
    equal = compare(c, a, b);
    while (c->depth > 0)
        free(c->levels[--c->depth].index);
    free(c);
    return equal;
}
