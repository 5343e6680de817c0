/*
 * keep: a second copy of a file that the runner writes while foreign programs run, in memory and
 * without a name, so that what they do to the file is seen and undone. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct keep {
    const char *name; /* the file's, below the run directory; NULL: nothing is kept */
    int fd;
    size_t len;
};

/* Starts an empty copy of the file `name` (static); one that is there goes on. */
int keep_open(struct keep *k, const char *name, struct err *e) MUST_CHECK;
int keep_put(struct keep *k, const char *bytes, size_t len, struct err *e) MUST_CHECK;
/* Makes the file below dir_fd what was kept; *out_changed: it was something else (other bytes,
 * gone, no regular file, or known by a second name). Without a copy nothing is done. */
int keep_restore(const struct keep *k, int dir_fd, bool *out_changed, struct err *e) MUST_CHECK;
void keep_close(struct keep *k); /* accepts zeroed */
