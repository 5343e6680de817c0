#include "server/ingest/coverage.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json_in.h"
#include "experiment/pointer.h"

static bool same(const cJSON *a, const cJSON *b)
{
    bool no_a = !a || cJSON_IsNull(a);
    bool no_b = !b || cJSON_IsNull(b);

    return no_a || no_b ? no_a == no_b : json_equal(a, b);
}

static bool row_agrees(const cJSON *window, const cJSON *row)
{
    static const char *const keys[][2] = {
        {"requested_coverage_secs", "requested_secs"},
        {"actual_coverage_secs", "actual_secs"},
        {"sample_count", "samples"},
        {"complete", "complete"},
    };
    const cJSON *name = json_get(row, "window");

    if (!cJSON_IsString(name) || strcmp(name->valuestring, window->string) != 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (!same(json_get(window, keys[i][0]), json_get(row, keys[i][1])))
            return false;
    }
    return true;
}

bool coverage_agrees(const struct definition *d, const cJSON *report, const cJSON *coverage)
{
    const cJSON *into = pointer_get(d->experiment, "/sampling/into");
    const cJSON *section = cJSON_IsString(into) ? pointer_get(report, into->valuestring) : NULL;
    const cJSON *windows = json_get(section, "windows");
    const cJSON *window = windows ? windows->child : NULL;
    const cJSON *row = coverage ? coverage->child : NULL;

    for (; window && row; window = window->next, row = row->next) {
        if (!row_agrees(window, row))
            return false;
    }
    return !window && !row;
}
