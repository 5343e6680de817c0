#include "experiment/exact.h"

#include <math.h>

#include "base/json_in.h"
#include "base/num.h"

/* Documents are at most LIMIT_JSON_DEPTH deep. */
/* NOLINTNEXTLINE(misc-no-recursion) */
bool exact_numbers(const cJSON *v)
{
    const cJSON *item = NULL;

    if (cJSON_IsNumber(v))
        return fabs(v->valuedouble) <= NUM_SAFE_MAX; /* a NaN is not */
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
