/*
 * spool: one archive being received: every piece is hashed, indexed and written as it comes.
 * Nothing of it is visible until spool_commit returns; spool_free before that leaves nothing. One
 * thread at a time per spool.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "server/store/store.h"

struct spool;

/* length is the announced size: over LIMIT_ARCHIVE is ERR_LIMIT; space for it is reserved where the
 * file system can, so a full disk is ERR_NOSPACE already here. */
int spool_open(struct store *s, int64_t project_id, const struct digest *expected, uint64_t length,
               struct spool **out, struct err *e) MUST_CHECK;
/* ERR_NOSPACE, ERR_LIMIT (more than announced), ERR_SYS. After a failure only spool_free is
 * allowed. */
int spool_write(struct spool *sp, const void *bytes, size_t len, struct err *e) MUST_CHECK;
/* All bytes are there: ERR_INPUT "spool.short" when not; ERR_TRUST "spool.digest" when they have
 * another digest (422). Durable when it returns 0. *out_new: the project did not have it before
 * (201, else 200). The spool is to be freed. */
int spool_commit(struct spool *sp, bool *out_new, struct err *e) MUST_CHECK;
void spool_free(struct spool *sp); /* accepts NULL; removes an uncommitted file */
