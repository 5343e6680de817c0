#include "runner/host_limits.h"

#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "base/text.h"
#include "experiment/facts.h"
#include "experiment/host_rules.h"
#include "runner/host.h"

#define FACTS_MAX 128

static const char *const readings[] = {
    "cpu_khz",
    "temperature_millidegrees",
    "memory_limit",
    "open_files",
    "perf_event_paranoid",
    "memory_available_kib",
    "uptime_secs",
    "load",
};
static const char *const of_the_build[] = {"toolchain", "allocator", "features"};

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static int unknown(const struct definition *d, size_t number, const char *kind, const char *name,
                   const char *const *names, size_t n, struct err *e)
{
    char pointer[80], place[DEFINITION_PLACE_SIZE];
    char hint[TEXT_HINT_SIZE];

    (void) snprintf(pointer, sizeof(pointer), "/experiment/host/limits/%zu/%s", number,
                    kind); /* fits */
    return err_set(e, ERR_USAGE, "host.limit", "%s: no machine has the %s '%.80s'%s",
                   definition_place(d, pointer, place), kind, name,
                   text_hint(text_nearest(name, names, n), hint));
}

static const cJSON *limits_of(const struct definition *d)
{
    return json_get(json_get(d->experiment, "host"), "limits");
}

int host_limits_check(const struct definition *d, struct err *e)
{
    const char *facts[FACTS_MAX];
    const cJSON *limit = NULL;
    size_t n = 0, number = 0;

    for (; n < facts_count && n < FACTS_MAX; n++)
        facts[n] = facts_table[n].name;
    cJSON_ArrayForEach(limit, limits_of(d)) {
        const cJSON *fact = json_get(limit, "fact"), *reading = json_get(limit, "reading");

        if (fact && !is_one_of(fact->valuestring, facts, n))
            return unknown(d, number, "fact", fact->valuestring, facts, n, e);
        if (reading && !is_one_of(reading->valuestring, readings, ARRAY_LEN(readings)))
            return unknown(d, number, "reading", reading->valuestring, readings,
                           ARRAY_LEN(readings), e);
        number++;
    }
    return 0;
}

int host_limits_before_build(const struct definition *d, const struct sysroot *root, struct err *e)
{
    AUTO_JSON cJSON *facts = NULL;
    AUTO_JSON cJSON *early = cJSON_CreateArray();
    AUTO_JSON cJSON *none = cJSON_CreateObject();
    const cJSON *limit = NULL;
    char why[200];

    if (!limits_of(d))
        return 0;
    if (host_facts(root, NULL, &facts, e) < 0)
        return -1;
    cJSON_ArrayForEach(limit, limits_of(d)) {
        const cJSON *fact = json_get(limit, "fact");
        cJSON *copy;

        if (!fact || json_get(limit, "reading") ||
            is_one_of(fact->valuestring, of_the_build, ARRAY_LEN(of_the_build)))
            continue;
        copy = cJSON_Duplicate(limit, true);
        if (!cJSON_AddItemToArray(early, copy)) {
            cJSON_Delete(copy);
            return err_memory(e, "host.memory");
        }
    }
    if (host_breaks(early, facts, none, why, sizeof(why)))
        return err_set(e, ERR_SYS, "run.host", "this machine is not what the gate demands: %s",
                       why);
    return 0;
}
