/*
 * snapshots: what a process tree holds at named phase markers of a diagnostic run and by the clock,
 * from the kernel's own sums (/proc/PID/smaps_rollup and status). The program is not stopped: a
 * snapshot begins when its marker arrives and tells how long it took. One thread.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/procfs.h"

#define SNAPSHOTS_FILE "profile/snapshots.json"

struct snapshots;

/* phases: the markers of interest (borrowed, outlives the snapshots). mode: its word.
 * executable_fd: the measured program's file, which tells its processes from those of a profiler.
 */
struct snapshots_plan {
    const cJSON *phases; /* NULL: none */
    const char *mode;
    int executable_fd;
    uint64_t every_ms; /* 0: not by the clock */
    int dump_signal;   /* 0: none */
};
int snapshots_new(const struct snapshots_plan *p, struct snapshots **out, struct err *e) MUST_CHECK;
void snapshots_free(struct snapshots *s); /* accepts NULL */
bool snapshots_want(const struct snapshots *s, const char *phase);
/* One snapshot of these processes; phase NULL: by the clock, and then those of the measured program
 * get the dump signal after it. Never fails: what can't be read is null, a process that is gone is
 * left out. */
void snapshots_take(struct snapshots *s, const struct sysroot *root, const pid_t *pids, size_t n,
                    const char *phase, uint64_t elapsed_ms);
/* First listed phase that has no snapshot, or NULL. */
const char *snapshots_missing(const struct snapshots *s);
/* The document, cleanrun-snapshots/1: {schema, mode, phases[], every_ms or null, lost,
 * snapshots[{phase (null: by the clock), elapsed_ms, took_us, signalled, processes[{pid, name,
 * measured, rss_kib, pss_kib, anonymous_kib, private_dirty_kib, swap_kib, peak_rss_kib, threads}],
 * total{the same sums but peak_rss_kib}, measured{those of processes that run the measured
 * executable}}]}. Once. */
int snapshots_document(struct snapshots *s, cJSON **out, struct err *e) MUST_CHECK;
