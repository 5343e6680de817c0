#include "base/json_node.h"

void json_walk_init(struct json_walk *w, cJSON *root)
{
    w->node = NULL;
    w->depth = 0;
    w->next = root;
    w->done = root == NULL;
}

/* The node is finished: its sibling is next, or the way up. */
static void advance(struct json_walk *w)
{
    w->next = w->depth > 0 ? w->node->next : NULL;
    w->done = w->depth == 0;
}

enum json_walk_event json_walk_next(struct json_walk *w)
{
    if (w->done)
        return JSON_WALK_END;
    if (!w->next) {
        w->node = w->up[--w->depth];
        advance(w);
        return JSON_WALK_LEAVE;
    }
    w->node = w->next;
    if (!json_node_is_container(w->node)) {
        advance(w);
        return JSON_WALK_ENTER;
    }
    if (w->depth >= LIMIT_JSON_DEPTH_HARD) {
        w->done = true;
        return JSON_WALK_DEEP;
    }
    w->up[w->depth++] = w->node;
    w->next = w->node->child;
    return JSON_WALK_ENTER;
}
