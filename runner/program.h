/* program: from argv to one command's exit code: dispatch, help, --version, "did you mean". */
#pragma once

#include "runner/cli.h"

/* Runs the command that argv names. The exit code is the command's, or EXIT_USAGE when standard
 * output broke. */
int program_main(struct cli *c, int argc, char **argv);
