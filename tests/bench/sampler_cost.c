/*
 * sampler_cost SECONDS INTERVAL_MS PROCESSES: what observing one run costs. Starts a process tree
 * and watches it as runner/measure.c does: the same loop, timers and callbacks (a sample and the
 * cheap look at the machine each interval, the look at every process and at the mapped files every
 * ten seconds). Prints as JSON
 * - the processor time that this process took between the first and the last sample, and how long
 *   that was;
 * - what a sample costs when one follows the other;
 * - what one costs, and what the ten-second look does, when much other memory was used since the
 *   one before.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "runner/child.h"
#include "runner/interference.h"
#include "runner/loop.h"
#include "runner/mapped.h"
#include "runner/sampler.h"
#include "tests/bench/bench_process.h"

#define NS_PER_MS UINT64_C(1000000)
#define SCAN_MS 10000
#define FIRST_LOOK_MS 20
#define PROCESSES_MAX 200
#define BRANCHES 4 /* children of the first process; the others are theirs */
#define WARM_ROUNDS 200
#define COLD_ROUNDS 60
#define COLD_LOOKS 6 /* of COLD_ROUNDS */
/* More than a processor's own caches hold, and many times what its table of pages does. */
#define OTHER_MEMORY ((size_t) 64 << 20)
#define CACHE_LINE 64

struct watch {
    struct child child;
    struct sampler *sampler;
    struct mapped *mapped;
    struct interference *interference;
    uint64_t start_ns;
    uint64_t first_ns, last_ns;
    uint64_t first_cpu_us, last_cpu_us;
    uint64_t warm_us; /* of WARM_ROUNDS samples one after the other */
    uint64_t cold_us; /* of COLD_ROUNDS samples with other work between them */
    uint64_t look_us; /* of COLD_LOOKS ten-second looks, the same */
    char *other_memory;
    uint64_t seconds, interval_ms;
    size_t samples;
};

/* The tree. */

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
        bench_live();
    }
    bench_live();
}

/* The observer. */

/* later_ms: what samples that follow each other at once do as if so much time had passed. */
static void take(struct watch *w, uint64_t later_ms)
{
    uint64_t now = clock_monotonic_ns() + later_ms * NS_PER_MS;

    sampler_take(w->sampler, (now - w->start_ns) / NS_PER_MS);
    interference_tick(w->interference, now);
}

/* The same work with everything in the processor's caches. */
static void take_warm(struct watch *w)
{
    uint64_t before = bench_cpu_us();

    for (uint64_t i = 0; i < WARM_ROUNDS; i++)
        take(w, (i + 1) * w->interval_ms);
    w->warm_us = bench_cpu_us() - before;
}

static int look(struct watch *w, struct err *e)
{
    interference_scan(w->interference);
    return mapped_scan(w->mapped, w->child.pid, e);
}

/* As a program that was busy with something else would leave the caches. */
static void use_other_memory(const struct watch *w)
{
    for (size_t at = 0; at < OTHER_MEMORY; at += CACHE_LINE)
        w->other_memory[at]++;
}

static int take_cold(struct watch *w, struct err *e)
{
    int r = 0;

    for (uint64_t i = 0; i < COLD_ROUNDS && r == 0; i++) {
        uint64_t before;

        use_other_memory(w);
        before = bench_cpu_us();
        take(w, (WARM_ROUNDS + 1 + i) * w->interval_ms);
        w->cold_us += bench_cpu_us() - before;
        if (i % (COLD_ROUNDS / COLD_LOOKS) != 0)
            continue;
        use_other_memory(w);
        before = bench_cpu_us();
        r = look(w, e);
        w->look_us += bench_cpu_us() - before;
    }
    return r;
}

static int on_sample(void *context, uint64_t missed, struct err *e)
{
    struct watch *w = context;

    (void) missed; /* counted by the caller: wall time is measured, too */
    if (w->warm_us > 0)
        return 0; /* done */
    w->last_ns = clock_monotonic_ns();
    w->last_cpu_us = bench_cpu_us();
    if (w->samples++ == 0) {
        w->first_ns = w->last_ns;
        w->first_cpu_us = w->last_cpu_us;
    }
    if (w->last_ns - w->first_ns < w->seconds * 1000 * NS_PER_MS) {
        take(w, 0);
        return 0;
    }
    take_warm(w);
    return take_cold(w, e);
}

static int on_scan(void *context, uint64_t missed, struct err *e)
{
    struct watch *w = context;

    (void) missed;
    return look(w, e);
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
    w->interval_ms = interval_ms;
    w->other_memory = calloc(1, OTHER_MEMORY);
    if (!w->other_memory)
        return err_memory(e, "bench.memory");
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

    if (!last || w->samples < 2 || w->warm_us == 0 ||
        n != w->samples - 1 + WARM_ROUNDS + COLD_ROUNDS)
        return 1;
    return printf("{\"cpu_us\":%" PRIu64 ",\"wall_us\":%" PRIu64
                  ",\"samples\":%zu,\"processes\":%u,\"warm_us_per_sample\":%.1f"
                  ",\"cold_us_per_sample\":%.1f,\"cold_us_per_look\":%.1f}\n",
                  w->last_cpu_us - w->first_cpu_us, (w->last_ns - w->first_ns) / 1000, w->samples,
                  last->processes, (double) w->warm_us / WARM_ROUNDS,
                  (double) w->cold_us / COLD_ROUNDS, (double) w->look_us / COLD_LOOKS) > 0
               ? 0
               : 1;
}

static bool number(const char *text, uint64_t max, uint64_t *out)
{
    return num_parse_u64(text, strlen(text), max, out) && *out > 0;
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
    if (argc != 4 || !number(argv[1], 3600, &seconds) || !number(argv[2], 60000, &interval_ms) ||
        !number(argv[3], PROCESSES_MAX, &processes)) {
        (void) fputs("usage: sampler_cost SECONDS INTERVAL_MS PROCESSES\n", stderr);
        return 2;
    }
    if (observe(&w, argv[0], seconds, interval_ms, argv[3], &e) < 0)
        (void) fprintf(stderr, "sampler_cost: %s\n", e.text);
    else
        code = report(&w);
    free(w.other_memory);
    interference_free(w.interference);
    mapped_free(w.mapped);
    sampler_free(w.sampler);
    return code;
}
