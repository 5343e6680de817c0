/*
 * scratch: a temporary directory below the state directory. It is locked while its maker lives, so
 * what a killed runner leaves is told from what is in use, and removed at the next start. One
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct scratch {
    char *path; /* absolute; NULL: none */
    int fd;     /* the directory, locked */
};

/* Makes an empty directory with mode 0700. state NULL, or one that can't be written: below /tmp. */
int scratch_open(const char *state, struct scratch *out, struct err *e) MUST_CHECK;
/* Removes it with everything in it; accepts zeroed. */
void scratch_close(struct scratch *s);
/* Removes (with dry_run only counts) what makers that died left below `state`. */
size_t scratch_sweep(const char *state, bool dry_run);

#define AUTO_SCRATCH __attribute__((cleanup(scratch_close)))
