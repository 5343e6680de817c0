/*
 * proof: what a conditioning step must have left in its own report (`conditioning[].proof` of the
 * definition). The runner asks it before it calls a run PASS, a verifier asks it again.
 */
#pragma once

#include <cjson/cJSON.h>

/* NULL, or what the report lacks in words; *out_pointer then names the place. report NULL lacks
 * everything. Both are borrowed from proof or static. */
const char *proof_break(const cJSON *proof, const cJSON *report, const char **out_pointer);
