/*
 * bench: a paced load on the cache, as a measured workload for cleanrun.
 *
 * Three conditioning points warm the cache, then the measured point runs at a fixed rate: a settle
 * time, then the window in which memory growth is judged. The sequence of operations is
 * pseudo-random with a fixed seed, so every counter is exact: equal code gives equal counts.
 *
 * Phase markers go, one name a line, to the descriptor named by CLEANRUN_PHASE_FD; the report goes
 * to $CLEANRUN_RESULTS/kvcache/50000.json.
 */
#include "cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CAPACITY 20000
#define KEYS 80000
#define VALUE_BYTES 120
#define RATE 50000
#define SETTLE_SECS 2
#define WINDOW_SECS 10
#define SEED 0x9e3779b97f4a7c15ULL
#define TICK_NS 1000000 /* operations are issued once a millisecond */
#define LATENCY_BUCKETS 4096
#define LATENCY_STEP_NS 16

static const struct {
    unsigned rate;
    unsigned secs;
} conditioning[] = {{5000, 1}, {20000, 1}, {50000, 1}};

struct bench {
    struct cache *cache;
    uint64_t random;
    uint64_t operations;
    uint64_t wrong_values;
    uint64_t failed_puts;
    /* counts by LATENCY_STEP_NS; the last holds everything slower */
    uint64_t latency[LATENCY_BUCKETS];
    int measuring;
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static uint64_t next_random(struct bench *b)
{
    uint64_t z = (b->random += SEED);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static void mark(const char *phase)
{
    const char *fd = getenv("CLEANRUN_PHASE_FD");
    char line[64];
    int n = snprintf(line, sizeof line, "%s\n", phase);

    if (fd && write(atoi(fd), line, (size_t) n) != n)
        perror("phase marker");
}

static void one_operation(struct bench *b)
{
    uint64_t key = next_random(b) % KEYS;
    uint64_t start = now_ns();
    size_t len = 0;
    const char *value = cache_get(b->cache, key, &len);
    char fresh[VALUE_BYTES];

    if (value) {
        if (len != VALUE_BYTES || memcmp(value, &key, sizeof key) != 0)
            b->wrong_values++;
    } else {
        memset(fresh, 'v', sizeof fresh);
        memcpy(fresh, &key, sizeof key);
        if (!cache_put(b->cache, key, fresh, sizeof fresh))
            b->failed_puts++;
    }
    b->operations++;
    if (b->measuring) {
        uint64_t slot = (now_ns() - start) / LATENCY_STEP_NS;

        b->latency[slot < LATENCY_BUCKETS ? slot : LATENCY_BUCKETS - 1]++;
    }
}

static void load(struct bench *b, unsigned rate, unsigned secs)
{
    uint64_t tick = now_ns();

    for (unsigned i = 0; i < secs * 1000; i++) {
        struct timespec until;

        for (unsigned k = 0; k < rate / 1000; k++)
            one_operation(b);
        tick += TICK_NS;
        until.tv_sec = (time_t) (tick / 1000000000u);
        until.tv_nsec = (long) (tick % 1000000000u);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
            ;
    }
}

static uint64_t percentile(const struct bench *b, double share)
{
    uint64_t total = 0, seen = 0;

    for (size_t i = 0; i < LATENCY_BUCKETS; i++)
        total += b->latency[i];
    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        seen += b->latency[i];
        if ((double) seen >= share * (double) total)
            return (i + 1) * LATENCY_STEP_NS;
    }
    return LATENCY_BUCKETS * LATENCY_STEP_NS;
}

static void write_report(const struct bench *b, double measured_secs)
{
    const char *dir = getenv("CLEANRUN_RESULTS");
    const struct cache_counters *c = cache_counters(b->cache);
    char path[4096];
    FILE *f = NULL;

    snprintf(path, sizeof path, "%s/kvcache", dir ? dir : ".");
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        perror(path);
        exit(2);
    }
    snprintf(path, sizeof path, "%s/kvcache/50000.json", dir ? dir : ".");
    f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(2);
    }
    fprintf(f,
            "{\"scenario\": \"kvcache\",\n \"environment\": {\"allocator\": \"malloc\", "
            "\"compiler\": \"%s\"},\n",
            __VERSION__);
    fprintf(f,
            " \"load\": {\"rate\": %d, \"capacity\": %d, \"keys\": %d, \"value_bytes\": %d, "
            "\"settle_secs\": %d, "
            "\"window_secs\": %d,\n          \"conditioning\": [",
            RATE, CAPACITY, KEYS, VALUE_BYTES, SETTLE_SECS, WINDOW_SECS);
    for (size_t i = 0; i < sizeof conditioning / sizeof conditioning[0]; i++)
        fprintf(f, "%s{\"rate\": %u, \"secs\": %u}", i ? ", " : "", conditioning[i].rate,
                conditioning[i].secs);
    fprintf(f,
            "]},\n \"results\": {\"operations\": %llu, \"gets\": %llu, \"puts\": %llu, "
            "\"evictions\": %llu, "
            "\"hit_ratio\": %.6f, \"probes_per_operation\": %.6f, \"achieved_rate\": %.1f,\n"
            "             \"errors\": {\"wrong_values\": %llu, \"failed_puts\": %llu, "
            "\"failed_allocations\": %llu}},\n",
            (unsigned long long) b->operations, (unsigned long long) c->gets,
            (unsigned long long) c->puts, (unsigned long long) c->evictions,
            (double) c->hits / (double) c->gets, (double) c->probes / (double) b->operations,
            (double) (RATE * (SETTLE_SECS + WINDOW_SECS)) / measured_secs,
            (unsigned long long) b->wrong_values, (unsigned long long) b->failed_puts,
            (unsigned long long) c->failures);
    fprintf(f, " \"latency_ns\": {\"operation\": {\"p50\": %llu, \"p95\": %llu, \"p99\": %llu}}}\n",
            (unsigned long long) percentile(b, 0.50), (unsigned long long) percentile(b, 0.95),
            (unsigned long long) percentile(b, 0.99));
    if (fclose(f) != 0) {
        perror(path);
        exit(2);
    }
}

int main(void)
{
    static struct bench b;
    uint64_t start = 0;

    b.random = SEED;
    b.cache = cache_new(CAPACITY);
    if (!b.cache) {
        fputs("out of memory\n", stderr);
        return 2;
    }
    for (size_t i = 0; i < sizeof conditioning / sizeof conditioning[0]; i++) {
        char name[32];

        snprintf(name, sizeof name, "conditioning-%u", conditioning[i].rate);
        mark(name);
        load(&b, conditioning[i].rate, conditioning[i].secs);
    }
    mark("point_start");
    b.measuring = 1;
    start = now_ns();
    load(&b, RATE, SETTLE_SECS);
    mark("window_start");
    load(&b, RATE, WINDOW_SECS);
    mark("window_end");
    b.measuring = 0;
    write_report(&b, (double) (now_ns() - start) / 1e9);
    mark("report_written");
    cache_free(b.cache);
    return 0;
}
