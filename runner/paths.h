/* paths: the few operations on user-given absolute paths (links on the way allowed: the user named
 * them). */
#pragma once

#include <dirent.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Makes every missing directory of an absolute or relative path. */
int paths_mkdirs(const char *path, unsigned mode, struct err *e) MUST_CHECK;
/* Removes the tree that the path's last segment names; a missing one is success. */
int paths_remove_tree(const char *path, struct err *e) MUST_CHECK;
/* A directory to be read, no link; closedir ends it. NULL, with errno, when there is none. */
DIR *paths_open_dir(int dirfd, const char *name) MUST_CHECK;
/* A kernel file (/proc, /sys) below dirfd or absolute, whole, ≤ max bytes; heap, NUL-ended, NULL
 * when it can't be read. */
char *paths_read_pseudo(int dirfd, const char *path, size_t max) MUST_CHECK;
