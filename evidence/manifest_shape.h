/* manifest_shape: every member of cleanrun-manifest/2 is there, known, and of its type. Says
 * nothing about coherence. */
#pragma once

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "base/err.h"

int manifest_shape(const cJSON *document, struct err *e) MUST_CHECK;
