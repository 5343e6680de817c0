/*
 * sampler: what one process tree (process_tree.h) uses, at a fixed interval, into a ring of fixed
 * size. With a box, CPU time is the kernel's own for the whole group. One thread.
 *
 * A sample counts the whole tree or is left out: what can't be counted (more than PROCESS_TREE_MAX
 * processes, no descriptors left) is told by sampler_incomplete, never a smaller number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "runner/box.h"
#include "runner/procfs.h"

struct sample {
    uint64_t t_ms;
    uint64_t rss_kib;
    double cpu_pct; /* of one core, since the sample before */
    uint32_t processes, threads;
    uint64_t minor_faults, major_faults; /* since the start, of everything seen */
    /* The same, but of each process as it was at most three samples ago: dear to read. */
    uint64_t voluntary_switches, involuntary_switches;
    uint64_t read_bytes, write_bytes;
};

struct sampler;

/* Watches `pid` and all its descendants. capacity: samples kept; more are counted as lost. */
int sampler_new(const struct sysroot *root, pid_t pid, const struct box *box, size_t capacity,
                struct sampler **out, struct err *e) MUST_CHECK;
void sampler_free(struct sampler *s);
/* Orphans of the tree become children of `reaper` (child_adopt_orphans): from now on all its
 * children are watched, so nothing leaves the sums by losing its parent between two samples, and
 * those that ended are waited for. */
void sampler_adopt(struct sampler *s, pid_t reaper);
/* How late a sample of this interval may be (loop.h): a twentieth, at most 25 ms. A process that
 * wakes less wakes the measured program's processors less. */
uint64_t sampler_slack_ns(uint64_t interval_ns);
/* Takes one sample stamped t_ms (since the point's start). Never fails. Times rise: a second one of
 * the same millisecond is dropped. */
void sampler_take(struct sampler *s, uint64_t t_ms);
/* The processes that run now, looked up anew; returns how many (≤ max). */
size_t sampler_list(struct sampler *s, pid_t *out, size_t max);
bool sampler_tracks(const struct sampler *s, pid_t pid);
size_t sampler_count(const struct sampler *s);
size_t sampler_lost(const struct sampler *s);
/* How many samples were left out because they would not have counted everything; *out_why: what the
 * first of them lacked, static, untouched when none. */
size_t sampler_incomplete(const struct sampler *s, const char **out_why);
const struct sample *sampler_at(const struct sampler *s, size_t i);
uint64_t sampler_cpu_us(const struct sampler *s); /* of everything seen so far */
/* CSV with its header line. */
void sampler_write(const struct sampler *s, struct buf *out);
