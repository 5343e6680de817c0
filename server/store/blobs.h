/*
 * blobs: content-addressed files, DATA/objects/ab/cdef…, named by SHA-256, written once and never
 * changed. Durable when blobs_adopt returns; checked against their name before use: a file whose
 * identity on disk (inode, size, times) is the one last hashed is not hashed again.
 * Knows nothing of projects. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/verify_stream.h"

struct blobs;

/* What stat says about the file that was checked; compared as bytes. */
struct blob_stamp {
    uint64_t dev, ino, size;
    int64_t mtime_ns, ctime_ns;
};

/* data_fd is borrowed for the life of the object; makes objects/ and spool/ when absent. */
int blobs_new(int data_fd, struct blobs **out, struct err *e) MUST_CHECK;
void blobs_free(struct blobs *b); /* accepts NULL */
/* Removes everything in spool/ (what a killed server left). Only while nobody else uses the
 * directory. */
int blobs_clean_spool(struct blobs *b, struct err *e) MUST_CHECK;
int blobs_spool_dir(const struct blobs *b); /* descriptor, borrowed */

/* Moves a file of spool/, open as fd and fully written, to its name: fsync, rename, fsync of the
 * directories. The caller vouches for digest and size, having hashed what it wrote; an existing
 * object is replaced by these sound bytes. index (taken, may be NULL) is remembered for
 * blobs_index. On failure the spool file is still there. */
int blobs_adopt(struct blobs *b, int fd, const char *spool_name, const struct digest *digest,
                struct archive_index *index, struct err *e) MUST_CHECK;

/* Opens for pread. The content is hashed unless its stamp is the one last found sound. ERR_NOTFOUND
 * when absent, ERR_TRUST "blob.damaged" when its bytes are others (text says which digest they
 * have). out_stamp may be NULL. */
int blobs_open(struct blobs *b, const struct digest *digest, int *out_fd, uint64_t *out_size,
               struct blob_stamp *out_stamp, struct err *e) MUST_CHECK;
/* The same, hashing always: for what decides something. */
int blobs_open_rehash(struct blobs *b, const struct digest *digest, int *out_fd, uint64_t *out_size,
                      struct err *e) MUST_CHECK;
/* Is the file still the one that the stamp was taken from? One stat; false also when it cannot
 * tell. */
bool blobs_untouched(struct blobs *b, const struct digest *digest, const struct blob_stamp *stamp);
/* Is there a file of this name? Its content is not looked at. */
bool blobs_exists(struct blobs *b, const struct digest *digest);
/* Members of the archive: remembered from receiving, or computed now from the file. Caller frees
 * the copy. */
int blobs_index(struct blobs *b, const struct digest *digest, int fd, struct archive_index **out,
                struct err *e) MUST_CHECK;
/* Seconds since the file was put in its place; 0 when it is absent or the clock stands before that.
 */
uint64_t blobs_age_s(struct blobs *b, const struct digest *digest);
/* Deletes; absent is success. The caller has made sure that nobody needs it. */
int blobs_remove(struct blobs *b, const struct digest *digest, struct err *e) MUST_CHECK;
/* Calls visit for every object; names that are no objects come with digest NULL. Stops when visit
 * returns -1. */
int blobs_each(struct blobs *b,
               int (*visit)(void *ctx, const struct digest *digest, const char *name,
                            struct err *e),
               void *ctx, struct err *e) MUST_CHECK;
