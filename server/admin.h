/*
 * admin: the commands of cleanrun-server that work on a data directory without a running server:
 * project, runner, token, baseline, migrate, fsck, gc, backup, restore, config. They may run while
 * a server works on the same directory (except restore, which refuses).
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"

/* Is this a command of ours ("project")? */
bool admin_knows(const char *command);
/* The command that was meant by one that is not known, or NULL. Static. */
const char *admin_nearest(const char *command);
/* argv[0] is the command. Data on stdout, talk on stderr. Returns the exit code: 0, 2, 5 (fsck
 * found damage). */
int admin_main(int argc, char *const argv[], char *const environment[]) MUST_CHECK;
/* The commands with one line each, for --help. */
void admin_help(FILE *out);
/* Those of one command, or of its verb when there is such a one; false: no such command. */
bool admin_help_of(const char *command, const char *verb, FILE *out);
