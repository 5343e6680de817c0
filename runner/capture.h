/*
 * capture: a capped log file that a loop writes into, and the replacing of personal paths in it.
 * Knows nothing of whose output it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "runner/keep.h"

struct capture {
    const char *name;
    int fd;            /* -1 when closed */
    struct keep *keep; /* gets the same bytes; NULL: none */
    size_t written, max;
    bool cut;
};

/* Creates the file (which must not exist); keep (may be NULL) is opened for it. */
int capture_open(struct capture *c, int dir_fd, const char *name, size_t max, struct keep *keep,
                 struct err *e) MUST_CHECK;
/* The same for a file that goes on: what was kept of it counts to the maximum. */
int capture_append(struct capture *c, int dir_fd, const char *name, size_t max, struct keep *keep,
                   struct err *e) MUST_CHECK;
/* A loop_stream callback: context is the capture. Bytes beyond the maximum are dropped with one
 * note. */
int capture_data(void *context, const char *bytes, size_t len, struct err *e) MUST_CHECK;
int capture_note(struct capture *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void capture_close(struct capture *c); /* accepts a closed one */

struct capture_rename {
    const char *from, *to;
};
/* Appends the text to `out` (check that) with `to` for every `from` that is followed by '/', '\0',
 * a quote or white space; says whether there was one. */
bool capture_replace(const char *text, size_t len, const struct capture_rename *renames, size_t n,
                     struct buf *out);
/* The same in a file, whole at once. */
int capture_scrub(int dir_fd, const char *name, const struct capture_rename *renames, size_t n,
                  struct err *e) MUST_CHECK;
