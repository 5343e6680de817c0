#include "experiment/exact.h"

#include <math.h>

#include "base/json_in.h"

#define LARGEST_EXACT 9007199254740991.0 /* 2^53-1 */

/* Documents are at most LIMIT_JSON_DEPTH deep. */
/* NOLINTNEXTLINE(misc-no-recursion) */
bool exact_numbers(const cJSON *v)
{
    const cJSON *item = NULL;

    if (cJSON_IsNumber(v))
        return fabs(v->valuedouble) <= LARGEST_EXACT; /* a NaN is not */
    if (!cJSON_IsArray(v) && !cJSON_IsObject(v))
        return true;
    cJSON_ArrayForEach(item, v) {
        if (!exact_numbers(item))
            return false;
    }
    return true;
}

bool exact_equal(const cJSON *a, const cJSON *b)
{
    return json_equal(a, b) && exact_numbers(a);
}
