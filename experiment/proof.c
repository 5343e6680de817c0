#include "experiment/proof.h"

#include "base/json_in.h"
#include "experiment/pointer.h"

const char *proof_break(const cJSON *proof, const cJSON *report, const char **out_pointer)
{
    const cJSON *first = NULL, *item = NULL;

    cJSON_ArrayForEach(item, json_get(proof, "equal")) {
        const cJSON *value = pointer_get(report, item->valuestring);

        *out_pointer = item->valuestring;
        if (!cJSON_IsNumber(value))
            return "is no number";
        if (first && !json_equal(first, value))
            return "is not equal to the others";
        first = value;
    }
    cJSON_ArrayForEach(item, json_get(proof, "values")) {
        const cJSON *value = pointer_get(report, item->string);

        *out_pointer = item->string;
        if (!value)
            return "is absent";
        if (!json_equal(value, item))
            return "has another value";
    }
    return NULL;
}
