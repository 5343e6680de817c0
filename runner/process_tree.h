/*
 * process_tree: one program's processes as they are now: found through their parents' lists of
 * children, their descriptors kept open, so that a look costs a few preads. Sums what they use,
 * with what those that ended had used. Keeps no history. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/procfs.h"

#define PROCESS_TREE_MAX 4096
#define PROCESS_TREE_NUMBERS 4194304 /* the kernel's own limit of process numbers, on 64 bits */

/* Of one process, or of many; what it used stays in the sums after it is gone. */
struct tree_reading {
    uint64_t ticks, minor, major, voluntary, involuntary, read_bytes, write_bytes;
};

/* What one look saw. */
struct tree_look {
    struct tree_reading sum; /* since the start, of everything seen */
    uint64_t rss_kib;
    uint32_t processes, threads;
    const char *lacks; /* static: what could not be counted; NULL: it is whole */
};

struct process_tree;

/* Watches `pid` and all its descendants. root is borrowed. */
int process_tree_new(const struct sysroot *root, pid_t pid, struct process_tree **out,
                     struct err *e) MUST_CHECK;
void process_tree_free(struct process_tree *t);
/* All children of `reaper`, this process, now and later, belong to the tree; those that ended are
 * waited for by the look that finds them, all but the first one. */
void process_tree_adopt(struct process_tree *t, pid_t reaper);
/* Never fails: what is missing is told. */
void process_tree_look(struct process_tree *t, struct tree_look *out);
/* The processes of the last look that run; returns how many (≤ max). */
size_t process_tree_list(const struct process_tree *t, pid_t *out, size_t max);
bool process_tree_tracks(const struct process_tree *t, pid_t pid);
