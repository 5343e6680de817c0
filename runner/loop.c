#include "runner/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/clock.h"

#define READ_BYTES 8192
#define DRAIN_NS                                                                                   \
    ((uint64_t) 200 * 1000 * 1000) /* how long output of descendants is awaited after the end */
#define GRACE_DEFAULT_MS 2000
#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

/* Order of descriptors in the poll set. */
enum slot { SLOT_CHILD, SLOT_SIGNAL, SLOT_DEADLINE, SLOT_FIXED };
#define SLOT_STREAM(i) (SLOT_FIXED + (i))
#define SLOT_TIMER(i) (SLOT_FIXED + LOOP_STREAMS + (i))
#define SLOTS (SLOT_FIXED + LOOP_STREAMS + LOOP_TIMERS)

struct loop_state {
    struct loop *l;
    struct pollfd poll[SLOTS];
    uint64_t armed_ns;            /* what the deadline's timer is set to; 0: nothing */
    uint64_t due_ns[LOOP_TIMERS]; /* of a timer with slack */
    uint64_t slack_ns;            /* the least of them; 0: none */
    uint64_t started_ns;
    uint64_t kill_ns; /* when SIGKILL follows SIGTERM; 0: nothing was sent yet */
    uint64_t ended_ns;
    uint64_t drain_ns; /* when waiting for output ends; 0: the child lives */
    enum loop_end end;
    int interrupt;
    bool failed; /* a callback failed: *e is filled */
    size_t left_behind;
    bool reaped;
    struct child_status status;
};

int loop_signals_open(int *out_fd, struct err *e)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 || sigaction(SIGPIPE, &ignore, NULL) < 0)
        return err_errno(e, "loop.signals", "cannot block signals");
    *out_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *out_fd < 0 ? err_errno(e, "loop.signals", "cannot watch signals") : 0;
}

bool loop_signals_pending(int signal_fd, int *out_signal)
{
    struct signalfd_siginfo info;

    if (signal_fd < 0 || read(signal_fd, &info, sizeof(info)) != (ssize_t) sizeof(info))
        return false;
    *out_signal = (int) info.ssi_signo;
    return true;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t) (ns / NS_PER_S), .tv_nsec = (long) (ns % NS_PER_S)};
}

/* A timerfd expires at its time exactly. Where there is slack it is the end of it, and what wakes
 * before is the time-out of ppoll, which the kernel may put off (timer slack, prctl(2)). */
static int arm(const struct loop_state *s, size_t slot, uint64_t at_ns, uint64_t interval_ns)
{
    struct itimerspec when = {.it_value = timespec_of(at_ns),
                              .it_interval = timespec_of(interval_ns)};

    return timerfd_settime(s->poll[slot].fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static int make_timer(struct loop_state *s, size_t slot)
{
    s->poll[slot].fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return s->poll[slot].fd < 0 ? -1 : 0;
}

static int open_timer(struct loop_state *s, size_t i, struct err *e)
{
    const struct loop_timer *t = &s->l->timers[i];
    uint64_t due = s->started_ns + t->first_ns;

    if (make_timer(s, SLOT_TIMER(i)) < 0 ||
        arm(s, SLOT_TIMER(i), due + t->slack_ns, t->slack_ns > 0 ? 0 : t->interval_ns) < 0)
        return err_errno(e, "loop.timer", "cannot set a timer");
    if (t->slack_ns == 0)
        return 0;
    s->due_ns[i] = due;
    if (s->slack_ns == 0 || t->slack_ns < s->slack_ns)
        s->slack_ns = t->slack_ns;
    return 0;
}

static int open_all(struct loop_state *s, struct err *e)
{
    for (size_t i = 0; i < SLOTS; i++)
        s->poll[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    s->poll[SLOT_CHILD].fd = s->l->child->pidfd;
    s->poll[SLOT_SIGNAL].fd = s->l->signal_fd;
    for (size_t i = 0; i < s->l->n_streams; i++) {
        int fd = s->l->streams[i].fd;
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
            return err_errno(e, "loop.stream", "cannot watch the program's output");
        s->poll[SLOT_STREAM(i)].fd = fd;
    }
    if (make_timer(s, SLOT_DEADLINE) < 0)
        return err_errno(e, "loop.timer", "cannot set a timer");
    for (size_t i = 0; i < s->l->n_timers; i++)
        if (open_timer(s, i, e) < 0)
            return -1;
    return 0;
}

static void close_timer(const struct loop_state *s, size_t slot)
{
    if (s->poll[slot].fd >= 0)
        (void) close(s->poll[slot].fd); /* a timer has nothing to lose */
}

static void close_all(struct loop_state *s)
{
    close_timer(s, SLOT_DEADLINE);
    for (size_t i = 0; i < s->l->n_timers; i++)
        close_timer(s, SLOT_TIMER(i));
}

/* First SIGTERM, and SIGKILL when the grace is over. */
static void stop_child(struct loop_state *s, enum loop_end why)
{
    uint64_t grace = s->l->grace_ms ? s->l->grace_ms : GRACE_DEFAULT_MS;

    if (s->end != LOOP_ENDED)
        return; /* is being stopped already */
    s->end = why;
    if (s->drain_ns)
        return; /* it ended by itself, but what would follow is not wanted any more */
    s->kill_ns = clock_monotonic_ns() + grace * NS_PER_MS;
    child_signal(s->l->child, SIGTERM);
}

static void kill_child(struct loop_state *s)
{
    if (s->reaped)
        return; /* its number may be another's by now */
    if (s->l->box)
        box_kill(s->l->box);
    child_signal(s->l->child, SIGKILL);
}

static void on_signal(struct loop_state *s)
{
    int signal = 0;

    if (!loop_signals_pending(s->l->signal_fd, &signal))
        return;
    if (s->kill_ns)
        kill_child(s); /* asked twice: no grace */
    s->interrupt = signal;
    stop_child(s, LOOP_INTERRUPTED);
}

static void fail(struct loop_state *s)
{
    s->failed = true;
    kill_child(s);
}

/* Reads some of what is there; how much. Closed or broken: the slot leaves the set. */
static size_t on_stream(struct loop_state *s, size_t i, struct err *e)
{
    const struct loop_stream *in = &s->l->streams[i];
    char bytes[READ_BYTES];
    ssize_t n = read(in->fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        s->poll[SLOT_STREAM(i)].fd = -1;
        return 0;
    }
    if (!s->failed && in->data(in->context, bytes, (size_t) n, e) < 0)
        fail(s);
    return (size_t) n;
}

/* Reads what was written until now, and no more: somebody may go on writing. */
static void finish_stream(struct loop_state *s, size_t i, struct err *e)
{
    int waiting = 0;
    size_t left = ioctl(s->poll[SLOT_STREAM(i)].fd, FIONREAD, &waiting) < 0 ? 0 : (size_t) waiting;

    while (left > 0 && s->poll[SLOT_STREAM(i)].fd >= 0) {
        size_t n = on_stream(s, i, e);

        left = n > 0 && n < left ? left - n : 0;
    }
    s->poll[SLOT_STREAM(i)].fd = -1;
}

static bool is_due(const struct loop_state *s, size_t i, uint64_t now)
{
    if (s->l->timers[i].slack_ns > 0)
        return now >= s->due_ns[i];
    return s->poll[SLOT_TIMER(i)].revents != 0;
}

/* How often it expired since it was last asked; 0: not at all. */
static uint64_t expirations(struct loop_state *s, size_t i, uint64_t now, struct err *e)
{
    const struct loop_timer *t = &s->l->timers[i];
    uint64_t count = 0;

    if (t->slack_ns == 0)
        return read(s->poll[SLOT_TIMER(i)].fd, &count, sizeof(count)) == (ssize_t) sizeof(count)
                   ? count
                   : 0;
    count = 1 + (now - s->due_ns[i]) / t->interval_ns;
    s->due_ns[i] += count * t->interval_ns;
    if (arm(s, SLOT_TIMER(i), s->due_ns[i] + t->slack_ns, 0) < 0 && !s->failed) {
        (void) err_errno(e, "loop.timer", "cannot set a timer");
        fail(s);
    }
    return count;
}

static void on_timer(struct loop_state *s, size_t i, uint64_t now, struct err *e)
{
    uint64_t count = expirations(s, i, now, e);

    if (count == 0)
        return;
    if (!s->failed && !s->drain_ns &&
        s->l->timers[i].tick(s->l->timers[i].context, count - 1, e) < 0)
        fail(s);
}

/* The child has ended: what it left behind is killed before it is reaped. */
static int on_end(struct loop_state *s, struct err *e)
{
    s->poll[SLOT_CHILD].fd = -1;
    s->ended_ns = clock_monotonic_ns();
    s->drain_ns = s->ended_ns + DRAIN_NS;
    if (s->l->box)
        box_kill(s->l->box);
    s->left_behind = child_kill_rest(s->l->child);
    if (child_wait(s->l->child, &s->status, e) < 0)
        return -1;
    s->reaped = true;
    return 0;
}

static bool streams_open(const struct loop_state *s)
{
    for (size_t i = 0; i < s->l->n_streams; i++)
        if (s->poll[SLOT_STREAM(i)].fd >= 0)
            return true;
    return false;
}

/* When something ends by force; UINT64_MAX: never. */
static uint64_t deadline(const struct loop_state *s)
{
    if (s->drain_ns)
        return s->drain_ns;
    if (s->kill_ns)
        return s->kill_ns;
    return s->l->timeout_ms ? s->started_ns + s->l->timeout_ms * NS_PER_MS : UINT64_MAX;
}

static void on_deadline(struct loop_state *s)
{
    if (!s->kill_ns) {
        stop_child(s, LOOP_TIMED_OUT);
        return;
    }
    kill_child(s);
    s->kill_ns = clock_monotonic_ns() + GRACE_DEFAULT_MS * NS_PER_MS;
}

/* ppoll, whose time-out may be put off by the slack: of this wait alone, so that no program that a
 * callback starts inherits it. */
static int poll_with_slack(struct loop_state *s, const struct timespec *wait)
{
    int before = s->slack_ns > 0 ? prctl(PR_GET_TIMERSLACK) : -1;
    int n;
    int why;

    if (before > 0)
        (void) prctl(PR_SET_TIMERSLACK, (unsigned long) s->slack_ns); /* without, it is exact */
    n = ppoll(s->poll, SLOTS, wait, NULL);
    why = errno;
    if (before > 0)
        (void) prctl(PR_SET_TIMERSLACK, (unsigned long) before); /* as it was */
    errno = why;
    return n;
}

/* A timer by the clock, not ppoll's time-out: that one is longer by the time that this process was
 * stopped meanwhile. */
static int set_deadline(struct loop_state *s, struct err *e)
{
    uint64_t at = deadline(s) == UINT64_MAX ? 0 : deadline(s);

    if (at == s->armed_ns)
        return 0;
    if (arm(s, SLOT_DEADLINE, at, 0) < 0)
        return err_errno(e, "loop.timer", "cannot set a timer");
    s->armed_ns = at;
    return 0;
}

static int wait_events(struct loop_state *s, struct err *e)
{
    uint64_t now = clock_monotonic_ns();
    uint64_t until = UINT64_MAX;
    struct timespec wait;
    int n;

    if (set_deadline(s, e) < 0)
        return -1;
    for (size_t i = 0; i < s->l->n_timers; i++)
        if (s->l->timers[i].slack_ns > 0 && s->due_ns[i] < until)
            until = s->due_ns[i];
    wait = timespec_of(until > now ? until - now : 0);
    n = poll_with_slack(s, until == UINT64_MAX ? NULL : &wait);
    if (n < 0 && errno != EINTR)
        return err_errno(e, "loop.poll", "cannot wait for the program");
    for (size_t i = 0; n < 0 && i < SLOTS; i++)
        s->poll[i].revents = 0;
    return 0;
}

static int step(struct loop_state *s, struct err *e)
{
    struct err quiet = ERR_INIT; /* after the first failure only the first is told */
    bool timed_out;
    uint64_t now;

    if (wait_events(s, e) < 0)
        return -1;
    if (s->poll[SLOT_SIGNAL].revents)
        on_signal(s);
    now = clock_monotonic_ns();
    /* Also when there is output, since one without end must not put it off, and when the program
     * has ended: whether that was in time is not known. A signal that came first goes first. */
    timed_out = now >= deadline(s);
    if (timed_out && s->drain_ns) {
        for (size_t i = 0; i < s->l->n_streams; i++)
            finish_stream(s, i, s->failed ? &quiet : e);
        return 0;
    }
    if (timed_out)
        on_deadline(s);
    for (size_t i = 0; i < s->l->n_streams; i++)
        if (s->poll[SLOT_STREAM(i)].revents)
            (void) on_stream(s, i, s->failed ? &quiet : e); /* the rest the next time */
    for (size_t i = 0; i < s->l->n_timers; i++)
        if (is_due(s, i, now))
            on_timer(s, i, now, s->failed ? &quiet : e);
    if (s->poll[SLOT_CHILD].fd >= 0 && s->poll[SLOT_CHILD].revents)
        return on_end(s, e);
    return 0;
}

/* A loop that can't go on must not leave the child behind. */
static void abandon(struct loop_state *s)
{
    struct err ignored = ERR_INIT;

    if (s->reaped)
        return;
    kill_child(s);
    (void) child_kill_rest(s->l->child);
    if (child_wait(s->l->child, &s->status, &ignored) < 0)
        return;
    s->reaped = true;
}

int loop_run(struct loop *l, struct loop_result *out, struct err *e)
{
    struct loop_state s = {.l = l, .started_ns = clock_monotonic_ns(), .end = LOOP_ENDED};
    int r = open_all(&s, e);

    while (r == 0 && (s.poll[SLOT_CHILD].fd >= 0 || streams_open(&s)))
        r = step(&s, e);
    if (r < 0)
        abandon(&s);
    close_all(&s);
    if (r < 0 || s.failed)
        return -1;
    *out = (struct loop_result){
        .end = s.end,
        .status = s.status,
        .interrupt = s.interrupt,
        .left_behind = s.left_behind,
        .wall_ns = s.ended_ns - s.started_ns,
    };
    return 0;
}
