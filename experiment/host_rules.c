#include "experiment/host_rules.h"

#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "base/quantity.h"

#define NAME_SHOWN 40

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
        char text[QUANTITY_TEXT];

        quantity_number(seen->valuedouble, false, true, text);
        (void) snprintf(why, size, "host reading %s is %s, outside the gate's limits", name, text);
        return true;
    }
    return false;
}

bool host_breaks(const cJSON *limits, const cJSON *facts, const cJSON *readings, char *why,
                 size_t size)
{
    const cJSON *limit = NULL;

    cJSON_ArrayForEach(limit, limits) {
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

/* Up to two decimals, none that say nothing. */
static void put_number(struct buf *out, double v)
{
    char text[64];
    size_t n = (size_t) snprintf(text, sizeof(text), v >= 100 ? "%.0f" : "%.2f", v);

    if (n >= sizeof(text))
        n = sizeof(text) - 1; /* no reading is that large */
    if (memchr(text, '.', n)) {
        while (text[n - 1] == '0')
            n--;
        n -= text[n - 1] == '.';
    }
    buf_put(out, text, n);
}

static void put_reading(struct buf *out, const char *name, const cJSON *reading, const char *unit)
{
    if (!cJSON_IsNumber(reading))
        return;
    buf_printf(out, "%s%s ", out->len > 0 ? ", " : "", name);
    put_number(out, reading->valuedouble);
    buf_puts(out, unit);
}

/* Only what happened at all. */
static void put_event(struct buf *out, const char *name, const cJSON *reading, const char *unit)
{
    if (cJSON_IsNumber(reading) && reading->valuedouble > 0)
        put_reading(out, name, reading, unit);
}

static void put_names(struct buf *out, const cJSON *others)
{
    const cJSON *other = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(other, others) {
        const cJSON *name = json_get(other, "name");

        if (!cJSON_IsString(name))
            continue;
        buf_puts(out, n++ > 0 ? ", " : " (");
        buf_put_cut(out, name->valuestring, NAME_SHOWN);
    }
    if (n > 0)
        buf_putc(out, ')');
}

void interference_describe(const cJSON *record, struct buf *out)
{
    const cJSON *pressure = json_get(record, "pressure_pct");

    put_reading(out, "other processes", json_get(record, "other_cpu_pct"), " % of a core");
    if (out->len > 0)
        put_names(out, json_get(record, "busiest_others"));
    put_reading(out, "measured program", json_get(record, "own_cpu_pct"), " %");
    put_reading(out, "whole machine", json_get(record, "machine_busy_pct"), " %");
    put_reading(out, "stolen", json_get(record, "steal_pct"), " %");
    put_reading(out, "CPU pressure", json_get(pressure, "cpu"), " %");
    put_reading(out, "memory pressure", json_get(pressure, "memory"), " %");
    put_reading(out, "I/O pressure", json_get(pressure, "io"), " %");
    put_reading(out, "load up to", json_get(record, "load_max"), "");
    put_event(out, "swapped in", json_get(record, "swapped_in_pages"), " pages");
    put_event(out, "swapped out", json_get(record, "swapped_out_pages"), " pages");
    put_event(out, "throttled", json_get(record, "thermal_throttles"), " times");
}

static bool above(const cJSON *record, const char *key, double limit)
{
    const cJSON *reading = json_get(record, key);

    return cJSON_IsNumber(reading) && reading->valuedouble > limit;
}

bool interference_is_loud(const cJSON *record)
{
    return above(record, "other_cpu_pct", 10) || above(record, "steal_pct", 1) ||
           above(record, "swapped_in_pages", 0) || above(record, "swapped_out_pages", 0) ||
           above(record, "thermal_throttles", 0);
}
