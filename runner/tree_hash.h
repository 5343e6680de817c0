/*
 * tree_hash: one digest for the regular files below a directory: SHA-256 over a domain and NUL,
 * then for each file F(path) F(bytes), F(x) = u64 little-endian length, then x. Files come in the
 * order of their path components ("a/b" before "a-b"). Directories, modes and times are not hashed;
 * a link or device is refused. One thread.
 */
#pragma once

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"

/* The tree of a packaged run. */
#define TREE_HASH_DOMAIN "cleanrun-package-tree/1"

/* At most LIMIT_TREE_FILES + 1 files. A link, a device, or a file that changes while it is read is
 * ERR_TRUST. */
int tree_hash(const char *domain, int dirfd, struct digest *out, struct err *e) MUST_CHECK;
/* Order of two paths by their components; for qsort over names use it on the strings themselves. */
int tree_hash_compare(const char *a, const char *b);
