/* The sweep: settings from the environment, one point after the other, phases, snapshots. */
#include "callsim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ns(void)
{
    struct timespec t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * NS_PER_SEC + (uint64_t) t.tv_nsec;
}

void sleep_until_ns(uint64_t when)
{
    struct timespec t = {.tv_sec = (time_t) (when / NS_PER_SEC),
                         .tv_nsec = (long) (when % NS_PER_SEC)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

_Noreturn void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

int open_socket(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), room = SOCKET_BUFFER;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (fd < 0 || bind(fd, (struct sockaddr *) &here, sizeof(here)) < 0)
        die("socket");
    /* As much as the system gives: what does not fit is sent again. */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0)
        (void) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    return fd;
}

uint16_t socket_port(int fd)
{
    struct sockaddr_in here = {0};
    socklen_t len = sizeof(here);

    if (getsockname(fd, (struct sockaddr *) &here, &len) < 0)
        die("socket");
    return ntohs(here.sin_port);
}

/* Settings. */

static unsigned number(const char *name, const char *text, unsigned least, unsigned most)
{
    char *end = NULL;
    unsigned long v = 0;

    errno = 0;
    if (*text >= '0' && *text <= '9')
        v = strtoul(text, &end, 10);
    if (!end || *end || errno || v < least || v > most) {
        (void) fprintf(stderr, "callsim: %s=%s: a number from %u to %u is wanted\n", name, text,
                       least, most);
        exit(2);
    }
    return (unsigned) v;
}

static unsigned setting(const char *name, unsigned otherwise, unsigned least, unsigned most)
{
    const char *text = getenv(name);

    return text ? number(name, text, least, most) : otherwise;
}

static void read_sweep(struct settings *s)
{
    const char *text = getenv("CALLSIM_SWEEP");
    char *copy = strdup(text ? text : "50,100,200,400,800"), *rest = copy;

    if (!copy)
        die("memory");
    for (char *item = strsep(&rest, ","); item; item = strsep(&rest, ",")) {
        if (s->n_points == MAX_POINTS) {
            (void) fputs("callsim: too many points\n", stderr);
            exit(2);
        }
        s->points[s->n_points++] = number("CALLSIM_SWEEP", item, 2, 100000) & ~1U; /* whole calls */
    }
    free(copy);
}

static struct settings read_settings(void)
{
    struct settings s = {
        .ramp_secs = setting("CALLSIM_RAMP_SECS", 1, 1, 3600),
        .steady_secs = setting("CALLSIM_STEADY_SECS", 1, 1, 3600),
        .cooldown_secs = setting("CALLSIM_COOLDOWN_SECS", 1, 0, 3600),
        .settle_secs = setting("CALLSIM_SETTLE_SECS", 2, 0, 3600),
        .window_secs = setting("CALLSIM_WINDOW_SECS", 20, 1, 3600),
        .tail_secs = setting("CALLSIM_TAIL_SECS", 5, 1, 3600),
        .sample_ms = setting("CALLSIM_SAMPLE_MS", 100, 10, 60000),
        .shards = setting("CALLSIM_SHARDS", 4, 1, MAX_SHARDS),
        .hold_ms = setting("CALLSIM_HOLD_MS", 100, 0, 60000),
        .timeout_secs = setting("CALLSIM_TIMEOUT_SECS", 15, 1, 3600),
        .mode = getenv("CALLSIM_RUN_MODE"),
        .output_root = getenv("CALLSIM_OUTPUT_ROOT"),
    };

    read_sweep(&s);
    if (!s.mode)
        s.mode = "clean";
    if (!s.output_root) {
        (void) fputs("callsim: CALLSIM_OUTPUT_ROOT is not set\n", stderr);
        exit(2);
    }
    return s;
}

/* Phases: into the point's report, and to whoever started us. */

struct running {
    const struct settings *s;
    struct answerer *answerer;
    struct callers *callers;
    struct sampler *sampler;
    int phase_fd; /* -1: nobody listens */
};

static void tell_phase(const struct running *r, const char *phase)
{
    char line[80];
    int n = snprintf(line, sizeof(line), "%s\n", phase);

    if (r->phase_fd >= 0 && write(r->phase_fd, line, (size_t) n) != n)
        die("phase marker");
}

static void add_marker(struct point *p, const char *phase, const char *kind, uint64_t elapsed_ms)
{
    p->markers[p->n_markers++] = (struct marker){phase, kind, elapsed_ms};
}

/* Phases of the conditioning points are in their reports only; what is outside sees them end. */
static void phase(const struct running *r, struct point *p, const char *name, uint64_t start)
{
    add_marker(p, name, "actual", (now_ns() - start) / NS_PER_MS);
    if (p->measured)
        tell_phase(r, name);
}

static struct convergence snapshot(const struct running *r)
{
    struct convergence c = {0};

    answerer_counts(r->answerer, &c.answerer_calls, &c.answerer_queued);
    c.total = c.answerer_calls + c.answerer_queued;
    for (size_t i = 0; i < r->s->shards; i++) {
        c.shard_calls[i] = callers_active(r->callers, i);
        c.total += c.shard_calls[i];
    }
    return c;
}

static void planned_markers(struct point *p, const struct settings *s)
{
    uint64_t ramp = s->ramp_secs * 1000ULL, steady = ramp + s->steady_secs * 1000ULL;

    add_marker(p, "ramp_end", "planned", ramp);
    add_marker(p, "steady_end", "planned", steady);
    if (p->measured)
        add_marker(p, "cooldown_end", "planned", steady + s->cooldown_secs * 1000ULL);
}

static bool is_mode(const struct settings *s, const char *mode)
{
    return !strcmp(s->mode, mode);
}

/* Memory mode: what is held at this phase. It is due `scheduled_ms` after the start. */
static void retain(const struct running *r, struct point *p, const char *name,
                   uint64_t scheduled_ms, uint64_t start)
{
    uint64_t now;

    if (!p->measured || !is_mode(r->s, "memory"))
        return;
    now = (now_ns() - start) / NS_PER_MS;
    p->retention[p->n_retention++] = (struct retention){
        .phase = name, .scheduled_ms = scheduled_ms, .actual_ms = now, .held = snapshot(r)};
    add_marker(p, name, "retention_snapshot_actual", now);
}

/* Memory mode: the two while the load runs. The callers go on by themselves. */
static void retain_under_load(const struct running *r, struct point *p, uint64_t start)
{
    uint64_t ramp = r->s->ramp_secs * 1000ULL, steady = ramp + r->s->steady_secs * 1000ULL;

    if (!p->measured || !is_mode(r->s, "memory"))
        return;
    sleep_until_ns(start + ramp * NS_PER_MS);
    tell_phase(r, "ramp_end");
    retain(r, p, "ramp_end", ramp, start);
    sleep_until_ns(start + steady * NS_PER_MS);
    tell_phase(r, "steady_end");
    retain(r, p, "steady_end", steady, start);
}

/* After the load: settle, then the window in which nothing may grow. */
static void watch_memory(const struct running *r, struct point *p, uint64_t start)
{
    const struct settings *s = r->s;
    struct window *w = &p->resources.cleanup;
    uint64_t settle = now_ns(), window, drained = (settle - start) / NS_PER_MS;

    phase(r, p, "post_drain_settle_start", start);
    sleep_until_ns(settle + s->cooldown_secs * NS_PER_SEC);
    phase(r, p, "cooldown_end", start);
    retain(r, p, "cooldown_end", drained + s->cooldown_secs * 1000ULL, start);
    sleep_until_ns(settle + s->settle_secs * NS_PER_SEC);
    phase(r, p, "post_drain_settle_end", start);
    retain(r, p, "post_drain_settle_end", drained + s->settle_secs * 1000ULL, start);
    p->at_settle = snapshot(r);
    p->resources.has_cleanup = true;
    *w = (struct window){.name = "post_drain_cleanup",
                         .start_phase = "post_drain_cleanup_start",
                         .end_phase = "post_drain_cleanup_end",
                         .requested_coverage = s->window_secs,
                         .requested_start = sampler_take(r->sampler)};
    window = now_ns();
    phase(r, p, "post_drain_cleanup_start", start);
    sleep_until_ns(window + s->window_secs * NS_PER_SEC);
    w->requested_end = sampler_take(r->sampler);
    phase(r, p, "post_drain_cleanup_end", start);
}

static void run_point(const struct running *r, struct point *p)
{
    const struct settings *s = r->s;
    struct window *w = &p->resources.active;
    uint64_t start;

    sampler_begin(r->sampler, &p->resources);
    *w = (struct window){.name = "active_load",
                         .start_phase = "point_start",
                         .end_phase = "calls_drained",
                         .requested_coverage = s->ramp_secs + s->steady_secs};
    start = now_ns();
    phase(r, p, "point_start", start);
    planned_markers(p, s);
    callers_point(r->callers, p->target, start);
    retain_under_load(r, p, start);
    callers_wait_dispatched(r->callers);
    phase(r, p, "dispatch_complete", start);
    callers_wait_drained(r->callers, &p->tally);
    p->elapsed_secs = (double) (now_ns() - start) / 1e9;
    w->requested_end = sampler_take(r->sampler);
    phase(r, p, "calls_drained", start);
    if (is_mode(s, "boundary")) { /* at once: it goes on with what the calls left */
        p->drained_ms = (now_ns() - start) / NS_PER_MS;
        p->at_drain = snapshot(r);
    }
    if (p->measured)
        watch_memory(r, p, start);
    p->at_end = snapshot(r);
    sampler_end(r->sampler);
    phase(r, p, "resource_sampling_stopped", start);
    resources_finish(&p->resources, p->measured ? s->tail_secs : s->steady_secs);
}

static int listener(void)
{
    const char *fd = getenv("CLEANRUN_PHASE_FD");

    return fd ? (int) number("CLEANRUN_PHASE_FD", fd, 3, 1023) : -1;
}

static void announce(const struct running *r, const struct point *p)
{
    char name[32];

    (void) snprintf(name, sizeof(name), "point-%u", p->target); /* fits */
    if (!p->measured)
        tell_phase(r, name);
    (void) printf("%s: %llu of %llu calls in %.3f s, setup p99 %.3f ms, %llu sent again\n", name,
                  (unsigned long long) p->tally.succeeded, (unsigned long long) p->tally.offered,
                  p->elapsed_secs, (double) histogram_at(&p->tally.setup, 0.99) / 1e6,
                  (unsigned long long) p->tally.retransmissions);
    (void) fflush(stdout);
}

int main(void)
{
    struct settings s = read_settings();
    struct running r = {.s = &s, .phase_fd = listener()};
    struct sweep sweep = {.settings = &s, .n = s.n_points};

    sweep.points = malloc(s.n_points * sizeof(*sweep.points));
    if (!sweep.points)
        die("memory");
    /* Touched now, so that what is kept of the points does not show as growth. */
    memset(sweep.points, 0xff, s.n_points * sizeof(*sweep.points));
    memset(sweep.points, 0, s.n_points * sizeof(*sweep.points));
    r.answerer = answerer_start();
    sweep.answerer_port = answerer_port(r.answerer);
    r.callers = callers_start(&s, sweep.answerer_port);
    for (size_t i = 0; i < s.shards; i++)
        sweep.shard_ports[i] = callers_port(r.callers, i);
    r.sampler = sampler_start(s.sample_ms);
    for (size_t i = 0; i < s.n_points; i++) {
        struct point *p = &sweep.points[i];

        p->target = s.points[i];
        p->index = i;
        p->measured = i + 1 == s.n_points;
        run_point(&r, p);
        announce(&r, p);
        report_point(&sweep, p);
    }
    report_sweep(&sweep);
    sampler_stop(r.sampler);
    callers_stop(r.callers);
    answerer_stop(r.answerer);
    free(sweep.points);
    return 0;
}
