/*
 * checkout: a fresh checkout of one revision, at a place that stays the same for one repository
 * (build paths end up in executables), and finding cleanrun.yaml.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/cli.h"
#include "runner/git.h"

/* $XDG_STATE_HOME/cleanrun, or ~/.local/state/cleanrun. Heap. */
int checkout_state_dir(const struct cli *c, char **out, struct err *e) MUST_CHECK;
/* Replaces *g (the user's repository) by a clean checkout of rev below `state`. Submodules are
 * refused. */
int checkout_at(struct git *g, const char *rev, const char *state, struct err *e) MUST_CHECK;
/* What a fresh checkout of commit `oid` has, in the new directory `dir`: without the repository's
 * own configuration and attributes, so only what the commit holds decides. */
int checkout_fresh(const struct git *g, const char *oid, const char *dir, struct git *out,
                   struct err *e) MUST_CHECK;
/* Nearest cleanrun.yaml from `directory` upward, not above root. Heap path. */
int checkout_find_definition(const char *directory, const char *root, char **out,
                             struct err *e) MUST_CHECK;
/* ERR_USAGE when `path` lies in the work tree and no .gitignore of the tree ignores it. */
int checkout_check_ignored(const struct git *g, const char *path, struct err *e) MUST_CHECK;
