/* check_names: names in a definition that mean something said elsewhere in it, and do not: markers
 * that may not come, members that the runner's section of the report never has. Sound, so the
 * digests and the runner take it, but no run of it could be green. One thread. */
#pragma once

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json_out.h"
#include "experiment/definition.h"

/* Adds a row {place, text} to list for each. */
int check_names(const struct definition *d, struct json_doc *doc, cJSON *list,
                struct err *e) MUST_CHECK;
/* One such row. pointer: into the canonical definition. */
void check_warn(const struct definition *d, struct json_doc *doc, cJSON *list, const char *pointer,
                const char *text);
