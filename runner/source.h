/*
 * source: which exact source tree was built: commit, tree and a fingerprint over the real bytes.
 *
 * `cleanrun-source/1`: SHA-256 over frames F(x) = u64 little-endian length, then x:
 *   "cleanrun-source/1" NUL, F(commit), F(tree), then for every path of HEAD, of the index and of
 * the untracked files, in byte order: F(path) F(class) F(mode) F(content), where class is "T" (in
 * HEAD), "A" (only in the index) or "U" (untracked); mode is git's (100644, 100755, 120000, 160000)
 * as the work tree has it, "absent" or "special"; content is the SHA-256 of the file's bytes or of
 * the link's target, or empty (a submodule, an absent path). Then, for index entries that differ
 * from HEAD: F("index") F(mode) F(object) F(path), and all of it again for each checked-out
 * submodule, in the order they were met, after F("submodule") F(path) F(its commit) F(its tree).
 * Rule for ignored files: a path is left out when a .gitignore inside the tree ignores it;
 * .git/info/exclude and personal ignore files are not asked. Flags that hide changes
 * (skip-worktree, assume-unchanged) and every git setting are without effect, since bytes are read
 * from disk. What can't be read is an error.
 *
 * dirty: a path, a mode or a byte differs from HEAD, or a submodule is not checked out. Bytes are
 * compared with HEAD's blobs, and only when the commit itself holds a .gitattributes, with what a
 * fresh checkout writes (line ends, ident, working-tree-encoding; no filter program is ever run).
 *
 * `rvoip-v1`: the first seed's digest over git's status and diff output, kept to reproduce its
 * history.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "runner/git.h"
#include "runner/name_list.h"

#define SOURCE_SCHEMA "cleanrun-source/1"
#define SOURCE_SCHEME_RVOIP "rvoip-v1"
#define SOURCE_OID_SIZE 65

struct source {
    const char *scheme; /* static */
    char commit[SOURCE_OID_SIZE];
    char tree[SOURCE_OID_SIZE];
    char (*parents)[SOURCE_OID_SIZE];
    size_t n_parents;
    bool dirty; /* anything differs from the commit */
    struct digest fingerprint;
    size_t files;     /* paths of HEAD */
    size_t untracked; /* other paths that were read */
};

/* scheme NULL: cleanrun-source/1. */
int source_take(const struct git *g, const char *scheme, struct source *out,
                struct err *e) MUST_CHECK;
void source_fini(struct source *s); /* accepts zeroed */
/* Same commit, tree, fingerprint and dirtiness. */
bool source_equal(const struct source *a, const struct source *b);
/* The block of the manifest and of `fingerprint --json`. New tree, caller frees. */
int source_to_json(const struct source *s, cJSON **out, struct err *e) MUST_CHECK;

struct source_ignored {
    size_t n;
    struct name_list list; /* of them, for people */
};

/* How many files lie in the work tree and its submodules that a .gitignore of the tree ignores: the
 * fingerprint can't speak for a program built beside them. What lies below a directory named .git
 * that is none of the repository's counts, too. run_directory: absolute, the one that is being
 * written ("….partial") is left out; may be NULL. */
int source_count_ignored(const struct git *g, const char *run_directory, struct source_ignored *out,
                         struct err *e) MUST_CHECK;

/* The seed's digest from its parts: untracked (path, content) pairs in any order. */
struct source_untracked {
    const char *path;
    const void *content;
    size_t len;
};
struct source_seed_parts {
    const char *commit;
    const void *status, *diff; /* what git printed */
    size_t status_len, diff_len;
    const struct source_untracked *untracked;
    size_t n_untracked;
};
int source_rvoip_digest(const struct source_seed_parts *parts, struct digest *out,
                        struct err *e) MUST_CHECK;

#define AUTO_SOURCE __attribute__((cleanup(source_fini)))
