/*
 * interference: what else the machine did, before and during the run: load, pressure stalls, stolen
 * time, other processes' CPU, throttling, swapping, memory limits. A record and a check against the
 * definition's `host.quiet`, never identity. Reads below a root that tests make up.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "experiment/host_rules.h"
#include "runner/box.h"
#include "runner/procfs.h"

struct interference;

/* Starts an interval now. mine: true for processes of the measured tree (context passed back); may
 * be NULL. */
int interference_new(const struct sysroot *root, bool (*mine)(const void *context, pid_t pid),
                     const void *context, struct interference **out, struct err *e) MUST_CHECK;
void interference_free(struct interference *i);
/* The cheap part: every second stolen time, every two load and pressure. now: of the monotonic
 * clock, nanoseconds. */
void interference_tick(struct interference *i, uint64_t now);
/* The part that looks at every process: every ten seconds and at the end. */
void interference_scan(struct interference *i);
/* Ends the interval and describes it. own_cpu_us: CPU time of the measured tree within it. box may
 * be NULL. */
int interference_record(struct interference *i, uint64_t own_cpu_us, const struct box *box,
                        cJSON **out, struct err *e) MUST_CHECK;
