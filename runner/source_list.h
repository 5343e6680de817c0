/*
 * source_list: which paths a repository's tree has, by HEAD, by its index and on disk (without what
 * its own .gitignore files leave out). Lists; reads no file. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "runner/git.h"

#define SOURCE_MODE_SIZE 8

/* One path, with what HEAD and the index say about it. */
struct source_path {
    const char *path; /* borrowed from git's output, or owned by `extra` */
    bool in_head, in_index, on_disk;
    char head_mode[SOURCE_MODE_SIZE], index_mode[SOURCE_MODE_SIZE];
    const char *head_oid, *index_oid; /* borrowed, not NUL-ended: SOURCE_OID_SIZE - 1 at most */
    size_t oid_len;
    /* Filled in by who reads the work tree. What it showed: something else than HEAD's, or a file
     * with other bytes than HEAD's blob, which a checkout may have converted. */
    bool differs, other_bytes;
    struct digest bytes; /* of a regular file */
};

struct source_list {
    struct source_path *items;
    size_t n, cap;
    char **extra; /* heap strings of paths found by walking */
    size_t n_extra;
    struct git_output listed[3]; /* what git printed */
};

/* In byte order of the paths, each once. */
int source_list_read(const struct git *g, struct source_list *out, struct err *e) MUST_CHECK;
void source_list_fini(struct source_list *l); /* accepts zeroed */
#define AUTO_SOURCE_LIST __attribute__((cleanup(source_list_fini)))
