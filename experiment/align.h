/*
 * align: which element of one list became which of another. What stands in both in the same order
 * is equal (a longest common subsequence; of very long lists one close to it); between two equal
 * ones an element is removed, added, or changed into another. Objects of a list that carry a name
 * (name, id, path or key) change into the object of the same name, or get another name and keep the
 * rest.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

enum align_kind { ALIGN_EQUAL, ALIGN_CHANGED, ALIGN_REMOVED, ALIGN_ADDED };

struct align_step {
    enum align_kind kind;
    const cJSON *baseline; /* borrowed; NULL when added */
    const cJSON *current;  /* borrowed; NULL when removed */
    size_t at_baseline;    /* index; of an added one: where it would stand */
    size_t at_current;
};

/* In the order of both lists. The steps borrow from them. */
struct alignment {
    struct align_step *steps; /* heap */
    size_t n;
};

/* Both must be arrays. Values are equal as json_equal says. Memory is O(n + m) beside a table of at
 * most 8 MiB. */
int align_lists(const cJSON *baseline, const cJSON *current, struct alignment *out,
                struct err *e) MUST_CHECK;
void alignment_fini(struct alignment *a);
#define AUTO_ALIGNMENT __attribute__((cleanup(alignment_fini)))
