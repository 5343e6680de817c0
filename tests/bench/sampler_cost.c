/*
 * sampler_cost SECONDS INTERVAL_MS PROCESSES: what observing one run costs. Starts a process tree
 * and watches it as runner/measure.c does: the same loop, timers and callbacks (a sample and the
 * cheap look at the machine each interval, the look at every process and at the mapped files every
 * ten seconds). Prints as JSON the CPU time that this process took between the first and the last
 * sample, how long that was, and what a sample costs when one follows the other.
 * sampler_cost control SECONDS INTERVAL_MS PROCESSES: the same of a process that does nothing but
 * read /proc/PID/stat of as many processes: the least that any sampler takes on this machine.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "runner/child.h"
#include "runner/interference.h"
#include "runner/loop.h"
#include "runner/mapped.h"
#include "runner/sampler.h"

#define NS_PER_MS UINT64_C(1000000)
#define SCAN_MS 10000
#define FIRST_LOOK_MS 20
#define PROCESSES_MAX 200
#define BRANCHES 4 /* children of the first process; the others are theirs */
#define WARM_ROUNDS 200
#define MEMORY ((size_t) 4 << 20)

struct watch {
    struct child child;
    struct sampler *sampler;
    struct mapped *mapped;
    struct interference *interference;
    uint64_t start_ns;
    uint64_t first_ns, last_ns;
    uint64_t first_cpu_us, last_cpu_us;
    uint64_t warm_us; /* of WARM_ROUNDS samples one after the other */
    uint64_t seconds;
    size_t samples;
};

/* The tree. */

/* A process that does a little: wakes ten times a second, touches memory. */
static void live(void)
{
    char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t at = 0;

    if (memory == MAP_FAILED)
        _exit(3);
    for (;;) {
        const struct timespec pause = {0, 100000000};

        memory[at % MEMORY] = (char) at;
        at += 4096;
        (void) nanosleep(&pause, NULL); /* a shorter pause is as good */
    }
}

/* Makes `n` children of this process; each of the first level makes its share of the rest. */
static void grow(uint64_t rest)
{
    uint64_t branches = rest < BRANCHES ? rest : BRANCHES;

    for (uint64_t i = 0; i < branches; i++) {
        uint64_t below = (rest - branches) / branches + (i < (rest - branches) % branches);
        pid_t pid = fork();

        if (pid < 0)
            _exit(4);
        if (pid > 0)
            continue;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* also killed by the loop */
        for (uint64_t k = 0; k < below; k++) {
            if (fork() == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                break;
            }
        }
        live();
    }
    live();
}

/* The observer. */

static uint64_t cpu_us(void)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u) < 0)
        return 0;
    return ((uint64_t) u.ru_utime.tv_sec + (uint64_t) u.ru_stime.tv_sec) * 1000000 +
           (uint64_t) u.ru_utime.tv_usec + (uint64_t) u.ru_stime.tv_usec;
}

/* later_ms: samples must rise, also those that follow each other at once. */
static void take(struct watch *w, uint64_t later_ms)
{
    sampler_take(w->sampler, (clock_monotonic_ns() - w->start_ns) / NS_PER_MS + later_ms);
    interference_tick(w->interference);
}

/* The same work with everything in the processor's caches. */
static void take_warm(struct watch *w)
{
    uint64_t before = cpu_us();

    for (uint64_t i = 0; i < WARM_ROUNDS; i++)
        take(w, i + 1);
    w->warm_us = cpu_us() - before;
}

static int on_sample(void *context, uint64_t missed, struct err *e)
{
    struct watch *w = context;

    (void) missed; /* counted by the caller: wall time is measured, too */
    (void) e;
    if (w->warm_us > 0)
        return 0; /* done */
    w->last_ns = clock_monotonic_ns();
    w->last_cpu_us = cpu_us();
    if (w->samples++ == 0) {
        w->first_ns = w->last_ns;
        w->first_cpu_us = w->last_cpu_us;
    }
    if (w->last_ns - w->first_ns >= w->seconds * 1000 * NS_PER_MS)
        take_warm(w);
    else
        take(w, 0);
    return 0;
}

static int on_scan(void *context, uint64_t missed, struct err *e)
{
    struct watch *w = context;

    (void) missed;
    interference_scan(w->interference);
    return mapped_scan(w->mapped, w->child.pid, e);
}

static int on_first_look(void *context, uint64_t missed, struct err *e)
{
    struct watch *w = context;

    (void) missed;
    return mapped_scan(w->mapped, w->child.pid, e);
}

static bool is_mine(const void *context, pid_t pid)
{
    const struct watch *w = context;

    return sampler_tracks(w->sampler, pid);
}

static int start(struct watch *w, const struct sysroot *root, const char *self,
                 const char *processes, struct err *e)
{
    const char *const argv[] = {self, "tree", processes, NULL};
    const char *const envp[] = {"LC_ALL=C", NULL};
    struct child_spec spec = CHILD_SPEC_INIT;

    spec.argv = argv;
    spec.envp = envp;
    if (child_start(&spec, &w->child, e) < 0)
        return -1;
    w->start_ns = clock_monotonic_ns();
    if (sampler_new(root, w->child.pid, NULL, 100000, &w->sampler, e) < 0 ||
        interference_new(root, is_mine, w, &w->interference, e) < 0 ||
        mapped_new("/", &w->mapped, e) < 0)
        return -1;
    return 0;
}

static int observe(struct watch *w, const char *self, uint64_t seconds, uint64_t interval_ms,
                   const char *processes, struct err *e)
{
    uint64_t every = interval_ms * NS_PER_MS;
    uint64_t slack = sampler_slack_ns(every);
    struct loop loop = {
        .child = &w->child,
        .timers = {{every, every, slack, on_sample, w},
                   {SCAN_MS * NS_PER_MS, SCAN_MS * NS_PER_MS, slack, on_scan, w},
                   {FIRST_LOOK_MS * NS_PER_MS, 0, 0, on_first_look, w}},
        .n_timers = 3,
        .timeout_ms = seconds * 1000 + 3 * interval_ms + 100,
        .signal_fd = -1,
    };
    struct loop_result result;
    struct sysroot root;
    int r = 0;

    w->seconds = seconds;
    if (child_adopt_orphans(e) < 0 || loop_signals_open(&loop.signal_fd, e) < 0 ||
        sysroot_open("/", &root, e) < 0)
        return -1;
    r = start(w, &root, self, processes, e);
    if (r == 0)
        r = loop_run(&loop, &result, e);
    else
        child_signal(&w->child, SIGKILL);
    child_fini(&w->child);
    if (r == 0 && result.end != LOOP_TIMED_OUT)
        r = err_set(e, ERR_INTERNAL, "bench.tree",
                    "the process tree ended by itself, or it was interrupted");
    sysroot_close(&root);
    return r;
}

static int report(const struct watch *w)
{
    size_t n = sampler_count(w->sampler);
    const struct sample *last = n > 0 ? sampler_at(w->sampler, n - 1) : NULL;

    if (!last || w->samples < 2 || w->warm_us == 0 || n != w->samples - 1 + WARM_ROUNDS)
        return 1;
    return printf("{\"cpu_us\":%" PRIu64 ",\"wall_us\":%" PRIu64
                  ",\"samples\":%zu,\"processes\":%u,\"warm_us_per_sample\":%.1f}\n",
                  w->last_cpu_us - w->first_cpu_us, (w->last_ns - w->first_ns) / 1000, w->samples,
                  last->processes, (double) w->warm_us / WARM_ROUNDS) > 0
               ? 0
               : 1;
}

static bool number(const char *text, uint64_t max, uint64_t *out)
{
    return num_parse_u64(text, strlen(text), max, out) && *out > 0;
}

/* Starts a process that lives; its open /proc/PID/stat, or -1. */
static int start_one(void)
{
    char name[64];
    pid_t pid = fork();

    if (pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* and ends with this process */
        live();
    }
    (void) snprintf(name, sizeof name, "/proc/%d/stat", (int) pid); /* fits */
    return pid < 0 ? -1 : open(name, O_RDONLY | O_CLOEXEC);
}

static int control(uint64_t seconds, uint64_t interval_ms, uint64_t processes)
{
    const struct timespec pause = {(time_t) (interval_ms / 1000),
                                   (long) (interval_ms % 1000 * NS_PER_MS)};
    int fds[PROCESSES_MAX];
    uint64_t start_ns = 0;
    uint64_t before = 0;
    char text[1024];

    for (uint64_t i = 0; i < processes; i++) {
        fds[i] = start_one();
        if (fds[i] < 0)
            return 1;
    }
    start_ns = clock_monotonic_ns();
    before = cpu_us();
    while (clock_monotonic_ns() - start_ns < seconds * 1000 * NS_PER_MS) {
        (void) nanosleep(&pause, NULL); /* a shorter pause is as good */
        for (uint64_t i = 0; i < processes; i++)
            if (pread(fds[i], text, sizeof text, 0) <= 0)
                return 1;
    }
    return printf("{\"cpu_us\":%" PRIu64 ",\"wall_us\":%" PRIu64 "}\n", cpu_us() - before,
                  (clock_monotonic_ns() - start_ns) / 1000) > 0
               ? 0
               : 1;
}

int main(int argc, char **argv)
{
    struct watch w = {.child = {.pid = -1, .pidfd = -1}};
    struct err e = ERR_INIT;
    uint64_t seconds = 0;
    uint64_t interval_ms = 0;
    uint64_t processes = 0;
    int code = 1;

    if (argc == 3 && strcmp(argv[1], "tree") == 0 && number(argv[2], PROCESSES_MAX, &processes))
        grow(processes - 1);
    if (argc == 5 && strcmp(argv[1], "control") == 0 && number(argv[2], 3600, &seconds) &&
        number(argv[3], 60000, &interval_ms) && number(argv[4], PROCESSES_MAX, &processes))
        return control(seconds, interval_ms, processes);
    if (argc != 4 || !number(argv[1], 3600, &seconds) || !number(argv[2], 60000, &interval_ms) ||
        !number(argv[3], PROCESSES_MAX, &processes)) {
        (void) fputs("usage: sampler_cost [control] SECONDS INTERVAL_MS PROCESSES\n", stderr);
        return 2;
    }
    if (observe(&w, argv[0], seconds, interval_ms, argv[3], &e) < 0)
        (void) fprintf(stderr, "sampler_cost: %s\n", e.text);
    else
        code = report(&w);
    interference_free(w.interference);
    mapped_free(w.mapped);
    sampler_free(w.sampler);
    return code;
}
