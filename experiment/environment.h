/*
 * environment: the variables that programs are started with, as evidence records them:
 * {"defaults": {…}, "passed": {…}, "set": {…}}, the later ones stronger. What a definition may say
 * of them is its `env {set, allow, reject}`.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct environment_variable {
    const char *name, *value;
};
/* What every program gets unless the definition says otherwise: fixed, so it is the same
 * everywhere. */
const struct environment_variable *environment_defaults(size_t *out_n);
/* {name: value} that results from a record. */
int environment_effective(const cJSON *record, cJSON **out, struct err *e) MUST_CHECK;
