/* submit: what `run --key [--push]` does after the run: seal, upload. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/cli.h"

/* --push without what it needs (a key, a server, a token file that can be read) is ERR_USAGE before
 * anything starts. */
int submit_check_options(const struct cli *c, const struct cli_args *a, struct err *e) MUST_CHECK;
/* Seals the directory as <directory>.tar when --key is given, pushes with --push. Returns the exit
 * code: `code` when neither was asked, the server's verdict after a push. */
int submit_run(struct cli *c, const struct cli_args *a, const char *directory, const char *project,
               const char *gate, int code);
