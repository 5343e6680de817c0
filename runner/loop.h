/*
 * loop: supervises one child with ppoll over its pidfd, a timerfd per timer and for the
 * deadline, a signalfd and its output pipes. Everything happens in callbacks of one thread; no
 * signal handler runs. Knows nothing of what the child is for.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/box.h"
#include "runner/child.h"

#define LOOP_STREAMS 4
#define LOOP_TIMERS 4

/* A readable end whose bytes go to a callback; the callback's failure ends the child and the loop.
 */
struct loop_stream {
    int fd;
    int (*data)(void *context, const char *bytes, size_t len, struct err *e);
    void *context;
};

struct loop_timer {
    uint64_t first_ns, interval_ns;
    /* How much later than due it may be called, so that this process wakes when the processor is
     * awake for another anyway; the next one is due as if it had not been late. 0: at once. Only
     * with an interval. */
    uint64_t slack_ns;
    /* `missed`: expirations since the last call beyond the first. */
    int (*tick)(void *context, uint64_t missed, struct err *e);
    void *context;
};

struct loop {
    struct child *child;
    const struct box *box; /* NULL: none */
    struct loop_stream streams[LOOP_STREAMS];
    size_t n_streams;
    struct loop_timer timers[LOOP_TIMERS];
    size_t n_timers;
    uint64_t timeout_ms; /* 0: none */
    uint64_t grace_ms;   /* between SIGTERM and SIGKILL */
    int signal_fd;       /* loop_signals_open's, or -1 */
};

enum loop_end {
    LOOP_ENDED,       /* by itself: status says how */
    LOOP_TIMED_OUT,   /* we ended it */
    LOOP_INTERRUPTED, /* we ended it because of our own SIGINT, SIGTERM or SIGHUP */
};

struct loop_result {
    enum loop_end end;
    struct child_status status;
    int interrupt;      /* the signal, for LOOP_INTERRUPTED */
    size_t left_behind; /* orphans that had to be killed */
    uint64_t wall_ns;
};

/* Blocks SIGINT, SIGTERM, SIGHUP and SIGPIPE for this process and gives a descriptor that reports
 * the first three. */
int loop_signals_open(int *out_fd, struct err *e) MUST_CHECK;
/* True when one of them is waiting (it is taken). */
bool loop_signals_pending(int signal_fd, int *out_signal);

/* Runs until the child ended and its streams are drained. The child is reaped in every case, also
 * on failure. */
int loop_run(struct loop *l, struct loop_result *out, struct err *e) MUST_CHECK;
