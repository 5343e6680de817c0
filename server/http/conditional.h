/*
 * conditional: RFC 9110's preconditions and byte ranges as pure functions over header text.
 * Entity tags given here are strong and quoted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* True when `list` is "*" or names `etag`; weak: W/ prefixes are ignored (If-None-Match), otherwise
 * a weak tag never matches (If-Match). A malformed list matches nothing. */
bool conditional_lists(const char *list, const char *etag, bool weak);

enum range_result {
    RANGE_IGNORED,       /* absent, another unit, several ranges, malformed: send all of it */
    RANGE_ONE,           /* *out_first..*out_last, inclusive, inside size */
    RANGE_UNSATISFIABLE, /* 416 */
};

enum range_result conditional_range(const char *value, uint64_t size, uint64_t *out_first,
                                    uint64_t *out_last);
