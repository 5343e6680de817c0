/*
 * pipeline: a large archive on its way from the network: one thread hashes it, another writes it,
 * while the caller receives more. The file is written past the page cache where the file system
 * allows (O_DIRECT): nothing is copied twice, and the last fsync has nothing left to write.
 * Memory is PIPELINE_BYTES, whatever the archive's size. One owner calls these functions; file and
 * stream are the threads' until pipeline_finish or pipeline_free.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "evidence/verify_stream.h"

#define PIPELINE_BLOCK ((size_t) 256 << 10) /* stays in a processor's cache until it is hashed */
#define PIPELINE_BLOCKS 8u
#define PIPELINE_BYTES (PIPELINE_BLOCK * PIPELINE_BLOCKS)

struct pipeline;

/* fd (an empty file, at offset 0) and stream are borrowed. ERR_NOMEM, ERR_SYS. */
int pipeline_start(int fd, struct verify_stream *stream, struct pipeline **out,
                   struct err *e) MUST_CHECK;
/* Copies the bytes; waits while all blocks are in use. -1: what writing failed with (ERR_NOSPACE,
 * ERR_SYS); only pipeline_free is allowed then. */
int pipeline_put(struct pipeline *p, const void *bytes, size_t len, struct err *e) MUST_CHECK;
/* Waits until every byte is in the stream and in the file (not durable: fsync is the caller's). */
int pipeline_finish(struct pipeline *p, struct err *e) MUST_CHECK;
/* Ends the threads, finished or not. Accepts NULL. */
void pipeline_free(struct pipeline *p);
