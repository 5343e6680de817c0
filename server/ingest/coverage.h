/* coverage: the manifest's word on how long its windows were covered, against the report. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "experiment/definition.h"

/* A runner copies the rows from the section that it derives into the report (sampling.into): does
 * the manifest say the same, window by window? Without such a section it has none. */
bool coverage_agrees(const struct definition *d, const cJSON *report, const cJSON *coverage);
