#include "experiment/host_rules.h"

#include <stdio.h>
#include <string.h>

#include "base/json_in.h"

static bool breaks_fact(const cJSON *limit, const char *name, const cJSON *facts, char *why,
                        size_t size)
{
    const cJSON *wanted = json_get(limit, "equals");
    const cJSON *seen = json_get(facts, name);

    if (wanted && json_equal(wanted, seen))
        return false;
    (void) snprintf(why, size, "host fact %s is %s, the gate demands %s", name,
                    cJSON_IsString(seen) ? seen->valuestring : "unknown",
                    wanted && cJSON_IsString(wanted)
                        ? wanted->valuestring
                        : "another value"); /* a cut text still tells */
    return true;
}

static bool breaks_reading(const cJSON *limit, const char *name, const cJSON *readings, char *why,
                           size_t size)
{
    const cJSON *seen = json_get(readings, name);
    const cJSON *min = json_get(limit, "min");
    const cJSON *max = json_get(limit, "max");

    if (!cJSON_IsNumber(seen)) {
        (void) snprintf(why, size, "host reading %s is unknown and the gate limits it", name);
        return true;
    }
    if ((min && seen->valuedouble < min->valuedouble) ||
        (max && seen->valuedouble > max->valuedouble)) {
        (void) snprintf(why, size, "host reading %s is %.6g, outside the gate's limits", name,
                        seen->valuedouble);
        return true;
    }
    return false;
}

bool host_breaks(const cJSON *limits, const cJSON *facts, const cJSON *readings, char *why,
                 size_t size)
{
    const cJSON *limit = NULL;

    cJSON_ArrayForEach(limit, limits)
    {
        const cJSON *fact = json_get(limit, "fact");
        const cJSON *reading = json_get(limit, "reading");

        if (fact && breaks_fact(limit, fact->valuestring, facts, why, size))
            return true;
        if (reading && breaks_reading(limit, reading->valuestring, readings, why, size))
            return true;
    }
    return false;
}

static bool over(const cJSON *quiet, const char *limit, const cJSON *reading, const char *what,
                 char *why, size_t size)
{
    const cJSON *max = json_get(quiet, limit);

    if (!max)
        return false;
    if (!cJSON_IsNumber(reading)) {
        (void) snprintf(why, size, "%s is unknown here and the gate limits it",
                        what); /* a cut reason still explains */
        return true;
    }
    if (reading->valuedouble <= max->valuedouble)
        return false;
    (void) snprintf(why, size, "%s is %.2f, the gate allows %.2f", what, reading->valuedouble,
                    max->valuedouble);
    return true;
}

bool interference_breaks(const cJSON *quiet, const cJSON *record, bool alone, char *why,
                         size_t size)
{
    const cJSON *pressure = json_get(record, "pressure_pct");

    if (over(quiet, "max_other_cpu_pct", json_get(record, "other_cpu_pct"),
             "CPU of other processes (% of a core)", why, size) ||
        over(quiet, "max_steal_pct", json_get(record, "steal_pct"), "stolen time (%)", why, size))
        return true;
    return alone && (over(quiet, "max_load", json_get(record, "load_first"), "load", why, size) ||
                     over(quiet, "max_pressure_pct", json_get(pressure, "cpu"), "CPU pressure (%)",
                          why, size) ||
                     over(quiet, "max_pressure_pct", json_get(pressure, "memory"),
                          "memory pressure (%)", why, size));
}
