/*
 * verify_stream: reads an evidence archive while it is being received and computes, in one pass,
 * the archive's digest and the digest and position of every member. It accepts exactly the archives
 * that pack.c writes; anything else is remembered as a problem and only the archive's digest goes
 * on. Knows nothing of manifests. One thread at a time per stream.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/limits.h"

struct archive_member {
    char name[LIMIT_RELNAME + 1];
    uint64_t offset; /* of the data in the archive */
    uint64_t size;
    struct digest digest;
};

/* Immutable once finished; may be shared between threads. */
struct archive_index {
    /* [0] is manifest.json, then byte order; empty when problem is set. */
    struct archive_member *members;
    size_t n;
    uint64_t size; /* of the archive in bytes */
    struct digest digest;
    char *problem; /* why this is no canonical archive (IN-ARCHIVE); NULL when it is one */
};

struct verify_stream;

struct verify_stream *verify_stream_new(void) MUST_CHECK; /* NULL: no memory */
void verify_stream_free(struct verify_stream *s);         /* accepts NULL */
/* Never fails: content faults go to index->problem, lack of memory to verify_stream_finish. */
void verify_stream_feed(struct verify_stream *s, const void *bytes, size_t len);
/* Ends the archive. The stream can only be freed afterwards. Caller frees *out. -1: ERR_NOMEM only.
 */
int verify_stream_finish(struct verify_stream *s, struct archive_index **out,
                         struct err *e) MUST_CHECK;

void archive_index_free(struct archive_index *x); /* accepts NULL */
/* Deep copy. */
int archive_index_copy(const struct archive_index *x, struct archive_index **out,
                       struct err *e) MUST_CHECK;
/* Borrowed; NULL when absent. */
const struct archive_member *archive_index_find(const struct archive_index *x, const char *name);
/* The same over a file that is already on disk (pread from 0 to its end; offset untouched). */
int archive_index_of_fd(int fd, struct archive_index **out, struct err *e) MUST_CHECK;

static inline void cleanup_archive_index(struct archive_index **x)
{
    archive_index_free(*x);
}
#define AUTO_ARCHIVE_INDEX __attribute__((cleanup(cleanup_archive_index)))
static inline void cleanup_verify_stream(struct verify_stream **s)
{
    verify_stream_free(*s);
}
#define AUTO_VERIFY_STREAM __attribute__((cleanup(cleanup_verify_stream)))
