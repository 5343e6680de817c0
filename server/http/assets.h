/*
 * assets: the files of web/, embedded in the program. Each has two addresses: /web/NAME,
 * revalidated by its tag, and /web/STEM-DIGEST.EXT, immutable. Constant after assets_new: any
 * thread may read.
 */
#pragma once

#include "base/cleanup.h"

struct assets;
struct content;
struct embed_table;

struct assets *assets_new(const struct embed_table *files) MUST_CHECK; /* NULL: out of memory */
void assets_free(struct assets *a);                                    /* accepts NULL */
/* The immutable address of a file ("/web/style-0123456789ab.css"); the plain one when there is no
 * such file. */
const char *assets_address(const struct assets *a, const char *name);
/* By the last part of either address: a reference, or NULL. */
struct content *assets_get(const struct assets *a, const char *name);
