/* jcs: JSON Canonicalization Scheme (RFC 8785) of a parsed tree; for identity digests only, never
 * for verifying signatures. */
#pragma once

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"

int jcs_write(struct buf *out, const cJSON *j, struct err *e) MUST_CHECK;
/* SHA-256 of the canonical form. */
int jcs_digest(const cJSON *j, struct digest *out, struct err *e) MUST_CHECK;
