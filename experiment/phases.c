#include "experiment/phases.h"

#include <string.h>

#include "base/json_in.h"

static bool text_is(const cJSON *object, const char *key, const char *word)
{
    const cJSON *j = json_get(object, key);

    return cJSON_IsString(j) && strcmp(j->valuestring, word) == 0;
}

static bool is_actual(const cJSON *marker)
{
    const cJSON *kind = json_get(marker, "kind");

    if (!kind)
        return true;
    return cJSON_IsString(kind) && (strcmp(kind->valuestring, "actual") == 0 ||
                                    strncmp(kind->valuestring, "actual_", 7) == 0);
}

/* kind NULL: observed ones. */
static struct phase_found find(const cJSON *markers, const char *phase, const char *kind)
{
    struct phase_found found = {0};
    const cJSON *marker = NULL;

    if (!cJSON_IsArray(markers))
        return found;
    cJSON_ArrayForEach(marker, markers) {
        const cJSON *elapsed = json_get(marker, "elapsed_ms");

        if (!text_is(marker, "phase", phase) ||
            !(kind ? text_is(marker, "kind", kind) : is_actual(marker)))
            continue;
        if (found.count++ == 0 && json_is_integer(elapsed) && elapsed->valuedouble >= 0) {
            found.valid = true;
            found.elapsed_ms = elapsed->valuedouble;
        }
    }
    return found;
}

struct phase_found phases_find_actual(const cJSON *markers, const char *phase)
{
    return find(markers, phase, NULL);
}

struct phase_found phases_find_kind(const cJSON *markers, const char *phase, const char *kind)
{
    return find(markers, phase, kind);
}

bool phases_has_kind(const cJSON *markers, const char *kind)
{
    const cJSON *marker = NULL;

    if (!cJSON_IsArray(markers))
        return false;
    cJSON_ArrayForEach(marker, markers)
        if (text_is(marker, "kind", kind))
            return true;
    return false;
}
