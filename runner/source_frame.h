/* source_frame: length-prefixed hashing, and what else the fingerprint schemes share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "runner/git.h"
#include "runner/source.h"

/* u64 little-endian length, then the bytes. */
void source_frame(struct digest_state *d, const void *p, size_t len);
void source_frame_text(struct digest_state *d, const char *s);
/* An object's whole name: SHA-1 or SHA-256 in lower-case hex, so shorter than SOURCE_OID_SIZE. */
bool source_is_oid(const char *s, size_t len);
/* Commit, tree and parents of HEAD, read from the commit object itself. */
int source_head(const struct git *g, struct source *out, struct err *e) MUST_CHECK;
/* The schemes. */
int source_take_cleanrun(const struct git *g, struct source *out, struct err *e) MUST_CHECK;
int source_take_rvoip(const struct git *g, struct source *out, struct err *e) MUST_CHECK;
