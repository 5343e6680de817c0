/*
 * tree: the reports of one run by their path, "<scenario>/<point>.json": read from a directory, or
 * added from memory (members of an evidence archive). Every file is read strictly; what cannot be
 * read is kept with its reason, never dropped silently.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"

struct tree_file {
    char *path;    /* relative to the tree's root */
    cJSON *report; /* NULL when unreadable */
    char *problem; /* why unreadable; NULL otherwise. "not an object" counts as unreadable */
    struct digest digest;
    size_t size;
};

struct tree {
    struct tree_file *files; /* sorted by path, bytewise */
    size_t n;
};

void tree_init(struct tree *t);
void tree_fini(struct tree *t);
/* Takes a copy of nothing: parses the bytes. A malformed report is an entry with a problem, not an
 * error; errors are duplicate path, too many files, no memory. */
int tree_add(struct tree *t, const char *path, const char *bytes, size_t len,
             struct err *e) MUST_CHECK;
/* Every *.json below the directory, hidden names skipped, links refused. */
int tree_load(struct tree *t, int dirfd, struct err *e) MUST_CHECK;
const struct tree_file *tree_find(const struct tree *t, const char *path);
#define AUTO_TREE __attribute__((cleanup(tree_fini)))
