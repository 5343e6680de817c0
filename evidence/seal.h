/*
 * seal: a finished run directory becomes evidence.tar and its signatures (docs/evidence-format.md,
 * 4): OUT, OUT.dsse.json (DSSE over an in-toto Statement v1), OUT.sigstore.json (bundle v0.3),
 * OUT.sig (DER over the archive bytes).
 */
#pragma once

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "evidence/sign.h"

/* The directory must hold a valid manifest.json whose file list is exactly the other files; else
 * ERR_TRUST. Writes all four files atomically (archive first); nothing is left on failure. */
int seal_run(int run_dirfd, const struct private_key *key, const char *out_path,
             struct digest *out_digest, struct err *e) MUST_CHECK;
