/*
 * git: runs the real git with a pinned configuration, so that what it says depends on the
 * repository and not on who asks. Knows nothing of fingerprints. Output is whole and bounded. One
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct git {
    char *root; /* absolute path of the work tree */
    int root_fd;
    char *path;          /* search path for the git program */
    char *index_file;    /* GIT_INDEX_FILE, or NULL for the repository's own */
    const char *scratch; /* state directory for temporary files (runner/scratch.h), borrowed;
                            NULL: /tmp */
    char *safe;          /* safe.directory taken over from the user's own configuration, or NULL */
};

struct git_output {
    char *data; /* NUL after it */
    size_t len;
    int code; /* exit code */
};

/* Finds the work tree that holds `directory`. path: PATH of the environment, or NULL for the
 * system's default; environment: the caller's, asked only for its safe.directory when git refuses
 * the owner. */
int git_open(const char *directory, const char *path, char *const *environment, struct git *out,
             struct err *e) MUST_CHECK;
void git_close(struct git *g); /* accepts zeroed */

/* Arguments after "git", NULL-ended. A code other than 0 (or 1 when one_is_fine) is an error with
 * git's own words. */
int git_run(const struct git *g, const char *const *args, bool one_is_fine, struct git_output *out,
            struct err *e) MUST_CHECK;
void git_output_fini(struct git_output *o); /* accepts zeroed */

#define AUTO_GIT __attribute__((cleanup(git_close)))
#define AUTO_GIT_OUTPUT __attribute__((cleanup(git_output_fini)))
