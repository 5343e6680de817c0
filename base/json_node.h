/*
 * json_node: what the readers and writers of cJSON trees share: the integer mark, and a walk over a
 * tree in document order without recursion. Private to base/json_*.c and base/jcs.c.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/limits.h"

/* In node->type beside cJSON's own bits 0 to 9: the number was written without point and exponent.
 */
#define JSON_NODE_INTEGER (1 << 12)

static inline int json_node_kind(const cJSON *j)
{
    return j->type & 0xff;
}

static inline bool json_node_is_container(const cJSON *j)
{
    return json_node_kind(j) == cJSON_Object || json_node_kind(j) == cJSON_Array;
}

enum json_walk_event {
    JSON_WALK_ENTER, /* a scalar, or a container before its members */
    JSON_WALK_LEAVE, /* a container after its members */
    JSON_WALK_END,
    JSON_WALK_DEEP, /* nested over LIMIT_JSON_DEPTH_HARD: the walk stops here */
};

struct json_walk {
    cJSON *node;  /* of the last event */
    size_t depth; /* open containers: an entered one counts, a left one no longer */
    cJSON *up[LIMIT_JSON_DEPTH_HARD];
    cJSON *next; /* to enter; NULL: leave the innermost open container */
    bool done;
};

void json_walk_init(struct json_walk *w, cJSON *root);
enum json_walk_event json_walk_next(struct json_walk *w) MUST_CHECK;
