#include "tests/bench/bench_process.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MEMORY ((size_t) 4 << 20)
#define PAGE 4096

void bench_live(void)
{
    char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t at = 0;

    if (memory == MAP_FAILED)
        _exit(3);
    for (;;) {
        const struct timespec pause = {0, 100000000};

        memory[at % MEMORY] = (char) at;
        at += PAGE;
        (void) nanosleep(&pause, NULL); /* a shorter pause is as good */
    }
}

uint64_t bench_cpu_us(void)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u) < 0)
        return 0;
    return ((uint64_t) u.ru_utime.tv_sec + (uint64_t) u.ru_stime.tv_sec) * 1000000 +
           (uint64_t) u.ru_utime.tv_usec + (uint64_t) u.ru_stime.tv_usec;
}
