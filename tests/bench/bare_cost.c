/*
 * What this machine takes for waking again and again, whatever is done then: the sampler's
 * yardsticks.
 *
 * bare_cost files SECONDS INTERVAL_MS N: a process that reads /proc/PID/stat of N processes each
 * interval: the least that a sampler of so many processes takes here.
 * bare_cost memory SECONDS INTERVAL_MS N: a process that writes one byte to each of N pages of its
 * own each interval, and calls nothing. Where pages stay mapped this takes next to nothing; a
 * virtual machine whose host takes them away from who sleeps pays each again with a fault that the
 * process can't see. Such touches are counted as slow.
 * Both print as JSON the processor time that they took.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "tests/bench/bench_process.h"

#define NS_PER_MS UINT64_C(1000000)
#define N_MAX 200
/* Each page has a page table of its own, as those of different processes do. */
#define STRIDE ((size_t) 2 << 20)
/* A hundred times what a touch takes out of the slowest cache. */
#define SLOW_NS 20000

struct bare {
    uint64_t n;
    int fds[N_MAX]; /* of the other processes */
    char *memory;   /* n * STRIDE bytes */
    uint64_t touches, slow;
};

static bool read_files(struct bare *b)
{
    char text[1024];

    for (uint64_t i = 0; i < b->n; i++)
        if (pread(b->fds[i], text, sizeof text, 0) <= 0)
            return false;
    return true;
}

static bool touch_memory(struct bare *b)
{
    uint64_t before = clock_monotonic_ns();

    for (uint64_t i = 0; i < b->n; i++) {
        volatile char *at = b->memory + i * STRIDE;
        uint64_t now = 0;

        *at = (char) (*at + 1);
        now = clock_monotonic_ns();
        b->touches++;
        b->slow += now - before > SLOW_NS;
        before = now;
    }
    return true;
}

/* Starts a process that lives; its open /proc/PID/stat, or -1. */
static int start_one(void)
{
    char name[64];
    pid_t pid = fork();

    if (pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* and ends with this process */
        bench_live();
    }
    (void) snprintf(name, sizeof name, "/proc/%d/stat", (int) pid); /* fits */
    return pid < 0 ? -1 : open(name, O_RDONLY | O_CLOEXEC);
}

static bool prepare_files(struct bare *b)
{
    for (uint64_t i = 0; i < b->n; i++) {
        b->fds[i] = start_one();
        if (b->fds[i] < 0)
            return false;
    }
    return true;
}

static bool prepare_memory(struct bare *b)
{
    b->memory =
        mmap(NULL, b->n * STRIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->memory == MAP_FAILED || madvise(b->memory, b->n * STRIDE, MADV_NOHUGEPAGE) < 0)
        return false;
    for (uint64_t i = 0; i < b->n; i++)
        b->memory[i * STRIDE] = 1;
    return true;
}

static int repeat(struct bare *b, bool (*work)(struct bare *b), uint64_t seconds,
                  uint64_t interval_ms)
{
    const struct timespec pause = {(time_t) (interval_ms / 1000),
                                   (long) (interval_ms % 1000 * NS_PER_MS)};
    uint64_t start_ns = clock_monotonic_ns();
    uint64_t before = bench_cpu_us();

    while (clock_monotonic_ns() - start_ns < seconds * 1000 * NS_PER_MS) {
        (void) nanosleep(&pause, NULL); /* a shorter pause is as good */
        if (!work(b))
            return 1;
    }
    return printf("{\"cpu_us\":%" PRIu64 ",\"wall_us\":%" PRIu64 ",\"touches\":%" PRIu64
                  ",\"slow\":%" PRIu64 "}\n",
                  bench_cpu_us() - before, (clock_monotonic_ns() - start_ns) / 1000, b->touches,
                  b->slow) > 0
               ? 0
               : 1;
}

static bool number(const char *text, uint64_t max, uint64_t *out)
{
    return num_parse_u64(text, strlen(text), max, out) && *out > 0;
}

int main(int argc, char **argv)
{
    struct bare b = {.n = 0};
    uint64_t seconds = 0;
    uint64_t interval_ms = 0;
    bool files = argc == 5 && strcmp(argv[1], "files") == 0;
    bool memory = argc == 5 && strcmp(argv[1], "memory") == 0;

    if ((!files && !memory) || !number(argv[2], 3600, &seconds) ||
        !number(argv[3], 60000, &interval_ms) || !number(argv[4], N_MAX, &b.n)) {
        (void) fputs("usage: bare_cost files|memory SECONDS INTERVAL_MS N\n", stderr);
        return 2;
    }
    if (!(files ? prepare_files(&b) : prepare_memory(&b)))
        return 1;
    return repeat(&b, files ? read_files : touch_memory, seconds, interval_ms);
}
