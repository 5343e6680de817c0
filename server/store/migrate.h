/*
 * migrate: numbered scripts ("0001_name.sql", without gaps), each applied once in one transaction
 * and remembered with its SHA-256. A file that was changed after it was applied, or a database that
 * is newer than the program, is refused.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "server/store/db.h"
#include "tools/embed.h"

/* The writer, under the write lock, before db_prepare. *out_applied: how many were applied now. */
int migrate_run(struct db *writer, const struct embed_table *files, size_t *out_applied,
                struct err *e) MUST_CHECK;
