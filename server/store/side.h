/*
 * side: one run as the audit wants it, read from an archive: manifest, definition, reports. Every
 * member's bytes are checked against the index. Also single members.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "audit/audit.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "evidence/manifest.h"
#include "evidence/verify_stream.h"
#include "experiment/definition.h"
#include "experiment/tree.h"

struct side {
    struct manifest manifest;
    struct definition definition;
    struct tree tree;
    bool has_manifest;
    bool has_definition;
};

/* Members below prefix ("" or "baseline/"): manifest.json, definition.json, and the reports that
 * this manifest lists. Without a manifest nothing is read; malformed or differing ones are
 * ERR_INPUT or ERR_TRUST. */
int side_read(int fd, const struct archive_index *index, const char *prefix, struct side *out,
              struct err *e) MUST_CHECK;
void side_fini(struct side *s); /* accepts zeroed */
#define AUTO_SIDE __attribute__((cleanup(side_fini)))

/* The side for an audit; borrows. */
struct audit_side side_for_audit(const struct side *s, const char *id, const char *evidence_hex,
                                 const char *root);

/* A member's bytes (≤ max, NUL after them, caller frees); ERR_NOTFOUND, ERR_LIMIT, ERR_TRUST when
 * they changed. */
int side_member(int fd, const struct archive_index *index, const char *name, size_t max, char **out,
                size_t *out_len, struct err *e) MUST_CHECK;
/* The same at a known place. */
int side_range(int fd, const struct archive_member *m, size_t max, char **out, size_t *out_len,
               struct err *e) MUST_CHECK;
