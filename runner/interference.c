#include "runner/interference.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/num.h"
#include "runner/others.h"

#define NS_PER_S 1e9
/* The kernel renews pressure averages every 2 s, load every 5 s; a share of stolen time wants some
 * hundred of the clock's ticks. */
#define SLOW_NS UINT64_C(2000000000)
#define STEAL_NS UINT64_C(1000000000)
#define NEARLY(ns) ((ns) - (ns) / 10) /* ticks come when it suits the processor */
#define TEXT_MAX 512                  /* of what is read each interval */

/* What /proc/stat counts by the clock's tick, and processes exactly, differs by so much. */
#define GRAIN_OF_OWN 0.25
#define GRAIN_OF_A_CORE 0.1

enum resource { RES_CPU, RES_MEMORY, RES_IO, RES_MAX };
static const char *const resource_words[RES_MAX] = {"cpu", "memory", "io"};

struct interference {
    const struct sysroot *root;
    struct others others;
    uint64_t start_ns;
    uint64_t slow_ns, steal_ns; /* when load and pressure, and stolen time, were last read */
    struct cpu_times first, last;
    struct pressure pressure_first[RES_MAX], pressure_last[RES_MAX];
    double avg10_max[RES_MAX];
    double load_first, load_max;
    double steal_max_pct;
    uint64_t swap_in_first, swap_out_first;
    uint64_t throttle_first;
    uint64_t self_us_first, children_us_first;  /* CPU time of this process */
    int stat_fd, load_fd, pressure_fd[RES_MAX]; /* or -1: read again and again, so they stay open */
    bool cpu_known, load_known, swap_known, throttle_known;
};

/* The first line is enough. */
static void read_cpu(const struct interference *i, struct cpu_times *out, bool *known)
{
    char text[TEXT_MAX];

    *known = procfs_read_open(i->stat_fd, text, sizeof(text)) && cpu_times_parse(text, out);
}

static void read_pressure(const struct interference *i, struct pressure out[RES_MAX])
{
    for (size_t r = 0; r < RES_MAX; r++) {
        char text[TEXT_MAX];

        pressure_parse(procfs_read_open(i->pressure_fd[r], text, sizeof(text)) ? text : NULL,
                       &out[r]);
    }
}

static bool read_load(const struct interference *i, double *out)
{
    char text[TEXT_MAX];

    return procfs_read_open(i->load_fd, text, sizeof(text)) &&
           num_parse_double(text, strcspn(text, " \n"), out);
}

static bool read_swap(struct interference *i, uint64_t *in, uint64_t *out)
{
    AUTO_FREE char *text = sysroot_read(i->root, "proc/vmstat");

    return text && procfs_field_number(text, "pswpin", in) &&
           procfs_field_number(text, "pswpout", out);
}

/* Sum of the processors' thermal throttle counters; false where there are none. */
static bool read_throttle(struct interference *i, uint64_t *out)
{
    bool known = false;

    *out = 0;
    for (unsigned cpu = 0; cpu < 4096; cpu++) {
        char name[96];
        uint64_t v = 0;

        (void) snprintf(name, sizeof(name),
                        "sys/devices/system/cpu/cpu%u/thermal_throttle/core_throttle_count", cpu);
        if (!sysroot_number(i->root, name, &v))
            break;
        known = true;
        *out += v;
    }
    return known;
}

void interference_scan(struct interference *i)
{
    others_look(&i->others);
}

/* CPU time of this process, or of its children that ended: of the measured tree as well. */
static uint64_t own_us(int who)
{
    struct rusage u;

    if (getrusage(who, &u) < 0)
        return 0;
    return ((uint64_t) u.ru_utime.tv_sec + (uint64_t) u.ru_stime.tv_sec) * 1000000 +
           (uint64_t) u.ru_utime.tv_usec + (uint64_t) u.ru_stime.tv_usec;
}

int interference_new(const struct sysroot *root, bool (*mine)(const void *context, pid_t pid),
                     const void *context, struct interference **out, struct err *e)
{
    struct interference *i = calloc(1, sizeof(*i));

    if (!i)
        return err_memory(e, "interference.memory");
    i->root = root;
    i->others = (struct others){.root = root, .mine = mine, .context = context};
    i->stat_fd = openat(root->fd, "proc/stat", O_RDONLY | O_CLOEXEC);
    i->load_fd = openat(root->fd, "proc/loadavg", O_RDONLY | O_CLOEXEC);
    for (size_t r = 0; r < RES_MAX; r++) {
        char name[48];

        (void) snprintf(name, sizeof(name), "proc/pressure/%s", resource_words[r]); /* fits */
        i->pressure_fd[r] = openat(root->fd, name, O_RDONLY | O_CLOEXEC);
    }
    i->start_ns = clock_monotonic_ns();
    i->self_us_first = own_us(RUSAGE_SELF);
    i->children_us_first = own_us(RUSAGE_CHILDREN);
    read_cpu(i, &i->first, &i->cpu_known);
    i->last = i->first;
    read_pressure(i, i->pressure_first);
    memcpy(i->pressure_last, i->pressure_first, sizeof(i->pressure_last));
    i->load_known = read_load(i, &i->load_first);
    i->load_max = i->load_first;
    i->swap_known = read_swap(i, &i->swap_in_first, &i->swap_out_first);
    i->throttle_known = read_throttle(i, &i->throttle_first);
    interference_scan(i);
    *out = i;
    return 0;
}

void interference_free(struct interference *i)
{
    if (!i)
        return;
    cleanup_fd(&i->stat_fd);
    cleanup_fd(&i->load_fd);
    for (size_t r = 0; r < RES_MAX; r++)
        cleanup_fd(&i->pressure_fd[r]);
    others_fini(&i->others);
    free(i);
}

static void tick_steal(struct interference *i)
{
    struct cpu_times now;
    bool known = false;

    read_cpu(i, &now, &known);
    if (known && i->cpu_known) {
        uint64_t all =
            now.busy + now.idle + now.steal - i->last.busy - i->last.idle - i->last.steal;

        /* Too short a step says nothing about a share. */
        if (all >= 20 && now.steal >= i->last.steal) {
            double pct = 100.0 * (double) (now.steal - i->last.steal) / (double) all;

            i->steal_max_pct = pct > i->steal_max_pct ? pct : i->steal_max_pct;
            i->last = now;
        }
    }
}

static void tick_slow(struct interference *i)
{
    double load = 0;

    read_pressure(i, i->pressure_last);
    for (size_t r = 0; r < RES_MAX; r++)
        if (i->pressure_last[r].some_avg10 > i->avg10_max[r])
            i->avg10_max[r] = i->pressure_last[r].some_avg10;
    if (read_load(i, &load) && load > i->load_max)
        i->load_max = load;
}

void interference_tick(struct interference *i, uint64_t now)
{
    if (now - i->steal_ns >= NEARLY(STEAL_NS)) {
        tick_steal(i);
        i->steal_ns = now;
    }
    if (now - i->slow_ns >= NEARLY(SLOW_NS)) {
        tick_slow(i);
        i->slow_ns = now;
    }
}

/* Two decimals are all that such readings carry. */
static double rounded(double v)
{
    return (double) (int64_t) (v * 100.0 + (v < 0 ? -0.5 : 0.5)) / 100.0;
}

static void add_known(struct json_doc *d, cJSON *parent, const char *key, bool known, double v)
{
    if (known)
        json_add_double(d, parent, key, rounded(v));
    else
        json_add_null(d, parent, key);
}

static void add_pressure(struct json_doc *d, const struct interference *i, double secs)
{
    cJSON *all = json_add_object(d, NULL, "pressure_pct");

    for (size_t r = 0; r < RES_MAX; r++) {
        const struct pressure *a = &i->pressure_first[r];
        const struct pressure *b = &i->pressure_last[r];
        bool known = a->known && b->known && b->some_us >= a->some_us && secs > 0;

        add_known(d, all, resource_words[r], known,
                  (double) (b->some_us - a->some_us) / 1e6 / secs * 100.0);
    }
}

static void add_cpu(struct json_doc *d, const struct interference *i, uint64_t own_cpu_us,
                    double secs)
{
    struct cpu_times now;
    bool known = false;
    double hz = (double) sysconf(_SC_CLK_TCK);

    read_cpu(i, &now, &known);
    known = known && i->cpu_known && secs > 0;
    uint64_t busy = known ? now.busy - i->first.busy : 0;
    uint64_t steal = known ? now.steal - i->first.steal : 0;
    uint64_t all = known ? busy + steal + now.idle - i->first.idle : 0;

    add_known(d, NULL, "machine_busy_pct", known, known ? (double) busy / hz / secs * 100.0 : 0);
    add_known(d, NULL, "own_cpu_pct", secs > 0, (double) own_cpu_us / 1e6 / secs * 100.0);
    add_known(d, NULL, "steal_pct", known && all > 0,
              all > 0 ? 100.0 * (double) steal / (double) all : 0);
    add_known(d, NULL, "steal_max_pct", known, i->steal_max_pct);
}

/* Seconds of processor time that no list of processes shows at all: the machine's less ours, less
 * what the two ways of counting may differ by. 0 when there is none, or it is unknown. */
static double unseen_secs(const struct interference *i, uint64_t own_cpu_us, double secs)
{
    double hz = (double) sysconf(_SC_CLK_TCK);
    /* The last sample is older than the end. */
    uint64_t ended_us = own_us(RUSAGE_CHILDREN) - i->children_us_first;
    uint64_t tree_us = own_cpu_us > ended_us ? own_cpu_us : ended_us;
    double own = (double) (tree_us + own_us(RUSAGE_SELF) - i->self_us_first) / 1e6;
    struct cpu_times now;
    bool known = false;
    double unseen;

    read_cpu(i, &now, &known);
    if (!known || !i->cpu_known)
        return 0;
    unseen = (double) (now.busy - now.interrupts - (i->first.busy - i->first.interrupts)) / hz -
             own - own * GRAIN_OF_OWN - secs * GRAIN_OF_A_CORE;
    return unseen > 0 ? unseen : 0;
}

static void add_others(struct json_doc *d, const struct interference *i, uint64_t own_cpu_us,
                       double secs)
{
    double hz = (double) sysconf(_SC_CLK_TCK);
    double listed = (double) i->others.ticks / hz;
    double unseen = unseen_secs(i, own_cpu_us, secs);
    cJSON *rows;

    add_known(d, NULL, "other_cpu_pct", i->others.looks > 1 && secs > 0,
              (unseen > listed ? unseen : listed) / secs * 100.0);
    rows = json_add_array(d, NULL, "busiest_others");
    for (size_t k = 0; k < OTHERS_BUSIEST; k++) {
        cJSON *row;

        if (i->others.busiest[k].ticks == 0)
            continue;
        row = json_add_object(d, rows, NULL);
        json_add_string(d, row, "name", i->others.busiest[k].comm);
        add_known(d, row, "cpu_pct", secs > 0,
                  (double) i->others.busiest[k].ticks / hz / secs * 100.0);
    }
}

/* Memory limit of this process's group: v2 first, then v1. "max" is no limit. */
static void add_memory(struct json_doc *d, const struct interference *i, const struct box *box)
{
    AUTO_FREE char *meminfo = sysroot_read(i->root, "proc/meminfo");
    AUTO_FREE char *v2 = sysroot_line(i->root, "sys/fs/cgroup/memory.max");
    AUTO_FREE char *v1 = sysroot_line(i->root, "sys/fs/cgroup/memory/memory.limit_in_bytes");
    const char *limit = v2 ? v2 : v1;
    uint64_t total = 0, available = 0, swap_total = 0, swap_free = 0;
    struct box_reading r = {.has_cpu = false};

    bool known = meminfo && procfs_field_number(meminfo, "MemTotal", &total) &&
                 procfs_field_number(meminfo, "MemAvailable", &available);
    bool swap = meminfo && procfs_field_number(meminfo, "SwapTotal", &swap_total) &&
                procfs_field_number(meminfo, "SwapFree", &swap_free);

    json_add_string(d, NULL, "memory_limit", limit);
    add_known(d, NULL, "memory_available_mb", known, (double) available / 1024.0);
    add_known(d, NULL, "swap_used_mb", swap,
              (double) (swap_total - (swap ? swap_free : 0)) / 1024.0);
    if (box)
        box_read(box, &r);
    json_add_bool(d, NULL, "box", box && box_present(box));
    if (r.has_throttle)
        json_add_int(d, NULL, "box_throttled_us", (int64_t) r.throttled_us);
    else
        json_add_null(d, NULL, "box_throttled_us");
}

int interference_record(struct interference *i, uint64_t own_cpu_us, const struct box *box,
                        cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    uint64_t in = 0, swap_out = 0, throttle = 0;
    bool swap, throttled;
    double secs;

    tick_steal(i);
    tick_slow(i);
    interference_scan(i);
    secs = (double) (clock_monotonic_ns() - i->start_ns) / NS_PER_S;
    swap = read_swap(i, &in, &swap_out) && i->swap_known;
    throttled = read_throttle(i, &throttle) && i->throttle_known;
    json_doc_init_object(&d);
    add_known(&d, NULL, "secs", true, secs);
    add_known(&d, NULL, "load_first", i->load_known, i->load_first);
    add_known(&d, NULL, "load_max", i->load_known, i->load_max);
    add_cpu(&d, i, own_cpu_us, secs);
    add_others(&d, i, own_cpu_us, secs);
    add_pressure(&d, i, secs);
    add_known(&d, NULL, "swapped_in_pages", swap, swap ? (double) (in - i->swap_in_first) : 0);
    add_known(&d, NULL, "swapped_out_pages", swap,
              swap ? (double) (swap_out - i->swap_out_first) : 0);
    add_known(&d, NULL, "thermal_throttles", throttled,
              throttled ? (double) (throttle - i->throttle_first) : 0);
    add_memory(&d, i, box);
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}
