#include "runner/pace.h"

#include <math.h>
#include <stdio.h>

#include "experiment/phases.h"
#include "experiment/window.h"

#define NS_PER_MS 1e6
/* Beyond the interval. A busy machine lets a process wait for some tens of milliseconds. */
#define STILL_NS UINT64_C(1000000000)
#define GAP_MS 100.0 /* shorter ones are told by nobody, whatever the interval */
/* Those beyond GAP_MS, all together: half a second, and a tenth of the run. */
#define STILL_SUM_NS UINT64_C(500000000)
#define STILL_SHARE 10

void pace_start(struct pace *p, uint64_t start_ns, uint64_t cpu_ns, uint64_t interval_ns)
{
    *p = (struct pace){.start_ns = start_ns,
                       .interval_ns = interval_ns,
                       .last_ns = start_ns,
                       .last_cpu_ns = cpu_ns};
}

static double ms_since(const struct pace *p, uint64_t ns)
{
    return (double) (ns - p->start_ns) / NS_PER_MS;
}

/* Full: the shortest one makes room. */
static void add_gap(struct pace *p, struct pace_gap gap)
{
    size_t at = p->n_gaps;

    if (at < PACE_GAPS_MAX) {
        p->gaps[p->n_gaps++] = gap;
        return;
    }
    at = 0;
    for (size_t i = 1; i < PACE_GAPS_MAX; i++)
        if (p->gaps[i].to_ms - p->gaps[i].from_ms < p->gaps[at].to_ms - p->gaps[at].from_ms)
            at = i;
    if (p->gaps[at].to_ms - p->gaps[at].from_ms < gap.to_ms - gap.from_ms)
        p->gaps[at] = gap;
}

void pace_tick(struct pace *p, uint64_t now_ns, uint64_t cpu_ns)
{
    uint64_t gap = now_ns > p->last_ns ? now_ns - p->last_ns : 0;
    uint64_t worked = cpu_ns > p->last_cpu_ns ? cpu_ns - p->last_cpu_ns : 0;
    uint64_t still = gap > p->interval_ns + worked ? gap - p->interval_ns - worked : 0;

    if (gap > p->interval_ns + p->interval_ns / 2)
        add_gap(p, (struct pace_gap){ms_since(p, p->last_ns), ms_since(p, now_ns)});
    if (still > p->still_ns) {
        p->still_ns = still;
        p->still_end_ns = now_ns;
    }
    if ((double) still > GAP_MS * NS_PER_MS)
        p->still_sum_ns += still;
    p->last_ns = now_ns;
    p->last_cpu_ns = cpu_ns;
}

bool pace_stood_still(const struct pace *p, char *why, size_t size)
{
    uint64_t whole = p->last_ns - p->start_ns;
    double end = ms_since(p, p->still_end_ns) / 1000.0;

    if (p->still_ns >= STILL_NS) {
        (void) snprintf(why, size, "the runner itself stood still for %.1f s, until %.1f s",
                        (double) p->still_ns / 1e9, end); /* a cut text still tells */
        return true;
    }
    if (p->still_sum_ns < STILL_SUM_NS || p->still_sum_ns < whole / STILL_SHARE)
        return false;
    (void) snprintf(
        why, size, "the runner itself stood still for %.1f of %.1f s, the longest until %.1f s",
        (double) p->still_sum_ns / 1e9, (double) whole / 1e9, end); /* a cut text still tells */
    return true;
}

/* A marker that comes meanwhile is stamped at the end, or just behind it when the sample was taken
 * before the marker was read: within an interval. */
static bool is_in(const struct pace_gap *gap, double at_ms, double interval_ms)
{
    return gap->from_ms < at_ms && at_ms <= gap->to_ms + interval_ms;
}

bool pace_breaks_window(const struct pace *p, const cJSON *windows, const cJSON *markers, char *why,
                        size_t size)
{
    const cJSON *entry = NULL;

    cJSON_ArrayForEach(entry, windows) {
        struct window_rule rule;

        window_rule_from(entry, &rule);
        struct phase_found start = phases_find_actual(markers, rule.start_phase);
        struct phase_found end = phases_find_actual(markers, rule.end_phase);
        double interval = (double) p->interval_ns / NS_PER_MS;
        double tolerance = rule.boundary_factor * interval;

        if (start.count != 1 || !start.valid || end.count != 1 || !end.valid)
            continue;
        for (size_t i = 0; i < p->n_gaps; i++) {
            const struct pace_gap *gap = &p->gaps[i];

            if (gap->to_ms - gap->from_ms <= fmax(tolerance, GAP_MS) ||
                (!is_in(gap, start.elapsed_ms, interval) && !is_in(gap, end.elapsed_ms, interval)))
                continue;
            (void) snprintf(why, size,
                            "the runner itself took no sample from %.1f to %.1f s, where window "
                            "'%s' has a boundary",
                            gap->from_ms / 1000.0, gap->to_ms / 1000.0,
                            rule.name); /* a cut text still tells */
            return true;
        }
    }
    return false;
}
