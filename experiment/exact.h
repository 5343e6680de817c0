/*
 * exact: numbers that can be told apart. Beyond 2^53-1 different decimal texts are one double
 * (9007199254740993.0 and 9007199254740992.0), so equality there says nothing: such values are
 * equal to none, not even to themselves.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

/* Whether every number inside lies within ±(2^53-1). v may be NULL. */
bool exact_numbers(const cJSON *v);
/* json_equal, and every number is exact. */
bool exact_equal(const cJSON *a, const cJSON *b);
