/*
 * fetch: the current reviewed baseline of a gate and machine class from a server, checked before
 * anything is built: with a keyring the signature, and always the listed digest, the strict
 * archive, its manifest, every member. Trusts the server only to say which run was reviewed, and
 * without a keyring also who measured it.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "evidence/keyring.h"
#include "runner/reference.h"

struct fetch_question {
    const char *server, *token_file; /* token_file NULL: a public project */
    const char *project, *gate, *machine_class;
    const char *state; /* directory for scratch; NULL: /tmp */
    /* NULL: who signed it is not asked, the server's word is taken */
    const struct keyring *keyring;
};

/* *out is not present when no baseline was reviewed for this class; note says so, or whose review
 * it was. -1 before any build: ERR_TRUST when what came is not what was reviewed, ERR_BUSY when the
 * server can't be reached or has no sound answer, ERR_USAGE when it refuses to answer us. */
int fetch_baseline(const struct fetch_question *q, struct reference *out, char *note, size_t size,
                   struct err *e) MUST_CHECK;
