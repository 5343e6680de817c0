#include "tests/lib/pointers.h"

#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

#include "experiment/pointer.h"

static void add(struct pointers *p, const char *at)
{
    char **items = reallocarray(p->items, p->n + 1, sizeof *items);

    assert_non_null(items);
    p->items = items;
    p->items[p->n] = strdup(at);
    assert_non_null(p->items[p->n]);
    p->n++;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the document */
static void collect(const cJSON *j, const char *at, size_t whole, struct pointers *out)
{
    const cJSON *item = NULL;
    size_t first = SIZE_MAX;
    size_t i = 0;

    if (at[0])
        add(out, at);
    if (!cJSON_IsArray(j) && !cJSON_IsObject(j))
        return;
    if (cJSON_IsArray(j) && (size_t) cJSON_GetArraySize(j) > whole)
        first = 3;
    cJSON_ArrayForEach(item, j) {
        char index[24];
        char *below = NULL;

        (void) snprintf(index, sizeof index, "%zu", i);
        below = pointer_join(at, item->string ? item->string : index);
        assert_non_null(below);
        if (i < first || !item->next)
            collect(item, below, whole, out);
        i++;
        free(below);
    }
}

void pointers_of(const cJSON *root, size_t whole, struct pointers *out)
{
    *out = (struct pointers){.n = 0};
    collect(root, "", whole, out);
}

void pointers_fini(struct pointers *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->items[i]);
    free(p->items);
    *p = (struct pointers){.n = 0};
}

cJSON *pointers_at(cJSON *root, const char *pointer)
{
    cJSON *node = (cJSON *) (uintptr_t) pointer_get(root, pointer); /* of a tree that is ours */

    if (!node)
        fail_msg("nothing at %s", pointer);
    return node;
}

void pointers_swap(cJSON *a, cJSON *b)
{
    cJSON old = *a;

    a->type = b->type;
    a->child = b->child;
    a->valuestring = b->valuestring;
    a->valuedouble = b->valuedouble;
    a->valueint = b->valueint;
    b->type = old.type;
    b->child = old.child;
    b->valuestring = old.valuestring;
    b->valuedouble = old.valuedouble;
    b->valueint = old.valueint;
}

void pointers_remove(cJSON *root, const char *pointer)
{
    char *parent = strdup(pointer);

    assert_non_null(parent);
    *strrchr(parent, '/') = 0;
    cJSON_Delete(cJSON_DetachItemViaPointer(pointers_at(root, parent), pointers_at(root, pointer)));
    free(parent);
}
