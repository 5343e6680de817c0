#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "experiment/definition.h"
#include "experiment/pointer.h"
#include "experiment/yaml_in.h"

static const struct yaml_node *item_at(const struct yaml_node *list, const char *token)
{
    const struct yaml_node *n = list->first;
    uint64_t index = 0;

    if (!num_parse_u64(token, strlen(token), UINT32_MAX, &index))
        return NULL;
    while (n && index-- > 0)
        n = n->next;
    return n;
}

static const struct yaml_node *child_at(const struct yaml_node *parent, const char *token)
{
    if (parent->kind == YAML_LIST)
        return item_at(parent, token);
    for (const struct yaml_node *n = parent->first; n; n = n->next)
        if (strcmp(n->key, token) == 0)
            return n;
    return NULL;
}

/* The two halves are the document's; a gate of cleanrun.yaml has their keys side by side. */
static const char *below_half(const char *pointer)
{
    static const char *const halves[] = {"/experiment", "/policy"};

    for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
        size_t len = strlen(halves[i]);

        if (strncmp(pointer, halves[i], len) == 0 && (pointer[len] == '/' || pointer[len] == '\0'))
            return pointer + len;
    }
    return pointer;
}

/* The innermost node on the pointer's way; NULL when not even its first token is there. */
static const struct yaml_node *innermost(const struct yaml_node *gate, const char *pointer)
{
    const struct yaml_node *found = NULL;
    const char *p = pointer_ok(pointer) ? below_half(pointer) : "";

    for (const struct yaml_node *at = gate; at && *p;) {
        char token[POINTER_MAX_BYTES + 1];

        p++;
        pointer_token(&p, token);
        at = child_at(at, token);
        found = at ? at : found;
    }
    return found;
}

const char *definition_place(const struct definition *d, const char *pointer,
                             char out[DEFINITION_PLACE_SIZE])
{
    const struct yaml_node *n = d->source ? innermost(d->source, pointer) : NULL;

    if (n) /* what is too long is cut: it is for people */
        (void) snprintf(out, DEFINITION_PLACE_SIZE, "%.240s:%zu:%zu", d->file,
                        n->key ? n->key_line : n->line, n->key ? n->key_column : n->column);
    else
        (void) snprintf(out, DEFINITION_PLACE_SIZE, "%s", pointer);
    out[text_whole_length(out, DEFINITION_PLACE_SIZE)] = '\0';
    return out;
}

int definition_blame(const struct definition *d, const char *pointer, struct err *e)
{
    char place[DEFINITION_PLACE_SIZE];

    return err_wrap(e, "%s", definition_place(d, pointer, place));
}
