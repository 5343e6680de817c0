/*
 * callsim: a paced call-setup load over loopback UDP, as a measured workload for cleanrun.
 *
 * One answering side and several caller shards live for the whole sweep, so each point inherits
 * what the earlier ones left behind. A call is five datagrams: INVITE, its 200, ACK, and after a
 * hold time BYE and its 200. Every point writes a full report; the last one, the measured point,
 * goes on with a settle time and a window in which retained memory is judged.
 */
#ifndef CALLSIM_H
#define CALLSIM_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "json.h"

#define SCENARIO "callsim_call_setup"
#define NS_PER_SEC 1000000000ULL
#define NS_PER_MS 1000000ULL
#define MAX_POINTS 16
#define MAX_SHARDS 16
#define MAX_SAMPLES 4096
#define MAX_MARKERS 24
#define SOCKET_BUFFER (4 << 20)
#define CALL_BUCKETS 1024
#define WATCH_TICK_MS 100
#define RESEND_MS 500 /* first retransmission; doubles */

/* What the definition sets; see main.c for the variables' names. */
struct settings {
    unsigned points[MAX_POINTS];
    size_t n_points;
    unsigned ramp_secs, steady_secs, cooldown_secs, settle_secs, window_secs, tail_secs;
    unsigned sample_ms, shards, hold_ms, timeout_secs;
    const char *mode, *output_root;
};

/* util: main.c */
uint64_t now_ns(void);
void sleep_until_ns(uint64_t when);
_Noreturn void die(const char *what);
int open_socket(void); /* bound to a free port of 127.0.0.1 */
uint16_t socket_port(int fd);

/* The datagram: host byte order, since it never leaves the machine. */
enum message { MESSAGE_INVITE = 1, MESSAGE_INVITE_OK, MESSAGE_ACK, MESSAGE_BYE, MESSAGE_BYE_OK };
struct datagram {
    uint32_t message;
    uint32_t shard;
    uint64_t call;
    char body[176]; /* about what a small signalling message weighs */
};

/* answer.c: the answering side */
struct answerer;
struct answerer *answerer_start(void);
uint16_t answerer_port(const struct answerer *a);
/* Calls and unanswered invitations that it still holds. */
void answerer_counts(struct answerer *a, uint64_t *calls, uint64_t *queued);
void answerer_stop(struct answerer *a);

/* caller.c: the caller shards */

/* Logarithmic histogram: 64 steps an octave, so a value is known to 1.6 %. */
#define HISTOGRAM_STEPS 64
struct histogram {
    uint32_t buckets[59 * HISTOGRAM_STEPS];
    uint64_t count, min, max, sum;
};
void histogram_add(struct histogram *h, uint64_t value);
void histogram_merge(struct histogram *into, const struct histogram *from);
uint64_t histogram_at(const struct histogram *h, double share); /* 0 when empty */

enum call_error { ERROR_INVITE_SEND, ERROR_ANSWER, ERROR_BYE, ERROR_TIMEOUT, ERROR_KINDS };

struct tally {
    uint64_t offered, succeeded, datagrams, retransmissions;
    uint64_t errors[ERROR_KINDS];
    uint64_t max_in_flight;
    struct histogram setup, cycle;
};

struct callers;
struct callers *callers_start(const struct settings *s, uint16_t answerer);
uint64_t offered_calls(const struct settings *s, unsigned target);
/* Starts one point at `start`; the two waits return when every shard has sent its last INVITE, and
 * when every call has ended. The second fills *out. */
void callers_point(struct callers *c, unsigned target, uint64_t start);
void callers_wait_dispatched(struct callers *c);
void callers_wait_drained(struct callers *c, struct tally *out);
uint16_t callers_port(const struct callers *c, size_t shard);
uint64_t callers_active(struct callers *c, size_t shard);
void callers_stop(struct callers *c);

/* resource.c: samples of this process, and what follows from them */
struct sample {
    double t_secs, rss_mb, cpu_pct;
};
struct window {
    const char *name, *start_phase, *end_phase;
    double requested_start, requested_end, requested_coverage;
    double first, last, coverage, tolerance, growth_per_minute;
    size_t n, start_count, end_count;
    bool complete, has_ends;
    double start_median, end_median, retained, start_t, end_t, separation, growth_per_hour, band;
};
struct resources {
    struct sample samples[MAX_SAMPLES];
    size_t n;
    double interval, baseline, peak, growth_per_minute, avg_cpu;
    double tail_requested, tail_coverage, tail_growth_per_minute;
    size_t tail_n;
    bool tail_complete, has_cleanup;
    struct window active, cleanup;
};
struct sampler;
struct sampler *sampler_start(unsigned interval_ms);
void sampler_begin(struct sampler *s, struct resources *into); /* first sample: t = 0 */
double sampler_take(struct sampler *s);                        /* one more now; its time */
void sampler_end(struct sampler *s);
void sampler_stop(struct sampler *s);
void resources_finish(struct resources *r, double tail_secs);

/* One point of the sweep, complete. */
struct marker {
    const char *phase, *kind;
    uint64_t elapsed_ms;
};
struct convergence {
    uint64_t answerer_calls, answerer_queued, shard_calls[MAX_SHARDS], total;
};
/* What the peers hold at a phase; taken in the diagnostic modes only. */
#define MAX_SNAPSHOTS 4
struct retention {
    const char *phase;
    uint64_t scheduled_ms, actual_ms;
    struct convergence held;
};
struct point {
    unsigned target;
    size_t index;
    bool measured;
    double elapsed_secs;
    struct tally tally;
    struct marker markers[MAX_MARKERS];
    size_t n_markers;
    struct resources resources;
    struct convergence at_settle, at_drain, at_end;
    uint64_t drained_ms;
    struct retention retention[MAX_SNAPSHOTS];
    size_t n_retention;
};
struct sweep {
    const struct settings *settings;
    struct point *points;
    size_t n;
    uint16_t answerer_port, shard_ports[MAX_SHARDS];
};

/* environment.c */
unsigned physical_cores(void);
void write_environment(struct json *j);

/* report.c */
void report_point(const struct sweep *s,
                  const struct point *p); /* <root>/<scenario>/<target>.json */
void report_sweep(const struct sweep *s); /* <root>/<scenario>/_sweep.json */

#endif
