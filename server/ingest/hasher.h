/*
 * hasher: feeds a file to a verify_stream on a thread of its own while another still appends to it,
 * so that receiving a large archive and hashing it use two processors. The thread reads only bytes
 * that were announced as written.
 * One owner calls these functions; the stream is the thread's until hasher_finish or hasher_free.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "evidence/verify_stream.h"

struct hasher;

/* fd and stream are borrowed; reading starts at offset 0. */
int hasher_start(int fd, struct verify_stream *stream, struct hasher **out,
                 struct err *e) MUST_CHECK;
/* Bytes up to `size` are in the file. */
void hasher_advance(struct hasher *h, uint64_t size);
/* Waits until all announced bytes are in the stream; ERR_SYS when the file could not be read. */
int hasher_finish(struct hasher *h, struct err *e) MUST_CHECK;
/* Ends the thread, finished or not. Accepts NULL. */
void hasher_free(struct hasher *h);
