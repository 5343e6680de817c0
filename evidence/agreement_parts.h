/* What the parts of agreement share; nobody else includes it. */
#pragma once

#include <cjson/cJSON.h>

#include "base/err.h"
#include "evidence/agreement.h"
#include "evidence/manifest.h"
#include "experiment/definition.h"

/* Two values, or the first member in which two objects differ: ERR_TRUST with both. */
int agreement_compare(const char *field, const cJSON *stated, const char *other, const cJSON *found,
                      struct err *e) MUST_CHECK;
/* A member that must be there, parsed; caller frees. */
int agreement_member(const struct agreement_reader *reader, const char *name, cJSON **out,
                     struct err *e) MUST_CHECK;
/* Files, quiet, times, what was executed, and the report as written: ERR_TRUST with the first thing
 * in which they contradict each other. host: host.json. */
int agreement_run(const struct manifest *m, const struct definition *d, const cJSON *host,
                  const struct agreement_reader *reader, struct err *e) MUST_CHECK;
