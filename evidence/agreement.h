/*
 * agreement: what a manifest says that was done, against what the definition beside it asks for.
 * The manifest's own shape and words were checked before.
 */
#pragma once

#include "base/err.h"
#include "evidence/manifest.h"
#include "experiment/definition.h"

/* ERR_TRUST with the first thing in which they differ: gate, project, class, digests, the report's
 * place, how the program was built and found, the conditioning's digest and, of a clean run that
 * passed, its phase markers. */
int agreement_check(const struct manifest *m, const struct definition *d, struct err *e) MUST_CHECK;
