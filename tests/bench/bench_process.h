/* What the programs that measure the sampler share: the processes that are watched, and a clock. */
#ifndef TESTS_BENCH_BENCH_PROCESS_H
#define TESTS_BENCH_BENCH_PROCESS_H

#include <stdint.h>

/* The life of a watched process: wakes ten times a second, touches memory. */
__attribute__((noreturn)) void bench_live(void);

/* Microseconds of processor time that this process has used; 0 when that can't be asked. */
uint64_t bench_cpu_us(void);

#endif
