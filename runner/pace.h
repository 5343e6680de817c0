/*
 * pace: whether samples were taken when they should have been. A runner that stands still (stopped,
 * not scheduled) measures nothing meanwhile and stamps markers late: that is the machine's doing,
 * never the program's. A value; times in nanoseconds of one clock.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE_GAPS_MAX 32

struct pace_gap {
    double from_ms, to_ms; /* since the start: no sample between them */
};

struct pace {
    uint64_t start_ns, interval_ns;
    uint64_t last_ns, last_cpu_ns;
    uint64_t still_ns; /* the longest time that neither brought a sample nor used CPU */
    uint64_t still_end_ns;
    uint64_t still_sum_ns;               /* of all such times of more than a tenth of a second */
    struct pace_gap gaps[PACE_GAPS_MAX]; /* the longest ones; a missed sample or more each */
    size_t n_gaps;
};

/* cpu_ns: what this process has used so far, here and below. */
void pace_start(struct pace *p, uint64_t start_ns, uint64_t cpu_ns, uint64_t interval_ns);
/* A sample is taken, or the program has ended. */
void pace_tick(struct pace *p, uint64_t now_ns, uint64_t cpu_ns);
/* So long, or so often, that a peak may be missed and markers are wrong, whatever the definition's
 * windows. */
bool pace_stood_still(const struct pace *p, char *why, size_t size);
/* Whether samples are missing at a boundary of one of the definition's windows (schema_windows) for
 * want of pace: that such a window is incomplete says nothing of the program. markers: as
 * resources_derive. */
bool pace_breaks_window(const struct pace *p, const cJSON *windows, const cJSON *markers, char *why,
                        size_t size);
