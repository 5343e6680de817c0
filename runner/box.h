/*
 * box: a cgroup v2 around the measured program, when one can be made: exact CPU time, peak memory,
 * out-of-memory kills, throttling, and a kill that nothing escapes. Without one (no v2 mounted, not
 * writable) every function does nothing and says so. The mount point is a parameter, so tests use a
 * made-up directory. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

#define BOX_MOUNT "sys/fs/cgroup" /* below the root */

struct box {
    int dir_fd; /* -1: no box; locked as long as its maker lives */
    int parent_fd;
    int procs_fd; /* for struct child_spec.cgroup_procs_fd; -1: no box */
    char name[64];
    char why_not[160]; /* reason when there is no box, else "" */
};

struct box_reading {
    bool has_cpu, has_memory, has_events, has_throttle;
    uint64_t usage_us, user_us, system_us;
    uint64_t memory_peak_bytes, memory_current_bytes;
    uint64_t oom_kills;
    uint64_t throttled_us, throttled_periods;
};

/* Makes "cleanrun-`run`" below `mount` (or its "unified", where v1 is mounted beside v2) joined
 * with this process's own group (`self`: contents of /proc/self/cgroup). Never an error: without a
 * box the run goes on with /proc alone, and the manifest says which. */
void box_open(struct box *b, const char *mount, const char *self, const char *run);
void box_none(struct box *b, const char *why);
bool box_present(const struct box *b);
void box_read(const struct box *b, struct box_reading *out); /* zeroed without a box */
void box_kill(const struct box *b);
/* Whether the group that `self` tells, or one above it, is a box of this user whose maker is
 * gone. mount_fd: where cgroups are mounted; -1: nowhere. */
bool box_is_left(int mount_fd, const char *self);
/* Removes such boxes, when they are empty, from this process's own group. */
void box_sweep(int mount_fd, const char *self);
void box_close(struct box *b); /* removes the group; accepts a box that is not there */
