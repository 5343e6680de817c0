/*
 * yaml_in: the strict YAML subset of cleanrun.yaml as a tree of nodes with their places. Built on
 * libyaml's events: anchors, aliases, tags, merge keys, several documents and duplicate keys are
 * refused. Scalars stay text: the schema decides types (no "Norway problem").
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAPPING };

struct yaml_node {
    enum yaml_kind kind;
    size_t line; /* from 1 */
    size_t column;
    const char *text;        /* scalar */
    bool plain;              /* scalar written without quotes */
    struct yaml_node *first; /* children: list elements, or mapping values */
    struct yaml_node *last;
    struct yaml_node *next;
    const char *key; /* of a mapping's value */
    size_t key_line, key_column;
    size_t count;
};

/* `name` is the file name used in messages ("name:line:column: …"). Nodes live in the arena. */
int yaml_parse(const char *name, const char *bytes, size_t len, struct arena *a,
               struct yaml_node **out, struct err *e) MUST_CHECK;
