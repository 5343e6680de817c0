/* Fitness of this machine for measuring: every check says what it found and how to mend it. */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/num.h"
#include "runner/host.h"
#include "runner/host_facts.h"
#include "runner/leftover.h"

#define LEFTOVERS_TOLD 8
#define VALUE_SIZE 352 /* any double in fixed notation */

struct rows {
    struct json_doc doc;
    const struct sysroot *root;
};

static void row(struct rows *r, const char *name, const char *state, const char *value,
                const char *text, const char *fix)
{
    cJSON *o = json_add_object(&r->doc, NULL, NULL);

    json_add_string(&r->doc, o, "name", name);
    json_add_string(&r->doc, o, "state", state);
    json_add_string(&r->doc, o, "value", value);
    json_add_string(&r->doc, o, "text", text);
    if (fix)
        json_add_string(&r->doc, o, "fix", fix);
}

/* Facts that have one good value. */
static const struct {
    const char *fact, *good, *bad_state, *text, *fix;
} wanted[] = {
    {"governor", "performance", "bad", "another governor moves the clock with the load",
     "cpupower frequency-set -g performance"},
    {"boost", "off", "warn", "a boosted clock varies with heat and neighbours",
     "echo 0 > /sys/devices/system/cpu/cpufreq/boost"},
    {"smt", "off", "warn", "two threads share a core's units",
     "echo off > /sys/devices/system/cpu/smt/control"},
    {"swap", "off", "warn", "memory may leave RAM during a run", "swapoff -a"},
    {"clocksource", "tsc", "warn", "reading the time is slow or coarse", NULL},
    {"thp", "madvise", "warn", "huge pages change RSS and page faults from run to run",
     "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"},
    {"hypervisor", "none", "warn",
     "a hypervisor shares this machine: latencies can't be gated tightly", NULL},
};

static void check_fact(struct rows *r, size_t i)
{
    const struct host_reader *reader = host_reader_find(wanted[i].fact);
    AUTO_FREE char *value = reader ? reader->read(r->root) : NULL;
    /* What the machine does not have can't disturb. */
    bool none = value && !strcmp(value, "none");
    bool fine = none || (value && !strcmp(value, wanted[i].good));
    bool absent = none && strcmp(wanted[i].good, "none") != 0; /* a virtual machine shows little */

    if (!value)
        row(r, wanted[i].fact, "unknown", NULL, "could not be read", NULL);
    else
        row(r, wanted[i].fact, fine ? "ok" : wanted[i].bad_state, value,
            absent ? "not visible here"
            : fine ? "as it should be"
                   : wanted[i].text,
            fine ? NULL : wanted[i].fix);
}

static void check_load(struct rows *r)
{
    AUTO_FREE char *line = sysroot_line(r->root, "proc/loadavg");
    double load = 0;
    char value[VALUE_SIZE];

    if (!line || !num_parse_double(line, strcspn(line, " "), &load)) {
        row(r, "load", "unknown", NULL, "could not be read", NULL);
        return;
    }
    (void) snprintf(value, sizeof(value), "%.2f", load); /* fits */
    row(r, "load",
        load < 0.5   ? "ok"
        : load < 1.5 ? "warn"
                     : "bad",
        value, load < 0.5 ? "quiet" : "something else is running",
        load < 0.5 ? NULL : "stop other work, or wait");
}

static void check_pressure(struct rows *r)
{
    AUTO_FREE char *text = sysroot_read(r->root, "proc/pressure/cpu");
    struct pressure p;
    char value[VALUE_SIZE];

    pressure_parse(text, &p);
    if (!p.known) {
        row(r, "pressure", "warn", NULL, "the kernel does not report stalls (psi=1)", NULL);
        return;
    }
    (void) snprintf(value, sizeof(value), "%.2f %%", p.some_avg10); /* fits */
    row(r, "pressure", p.some_avg10 < 1 ? "ok" : "warn", value,
        p.some_avg10 < 1 ? "nobody waits for a CPU" : "programs wait for a CPU", NULL);
}

static void check_steal(struct rows *r)
{
    AUTO_FREE char *text = sysroot_read(r->root, "proc/stat");
    struct cpu_times t;
    char value[VALUE_SIZE];

    if (!text || !cpu_times_parse(text, &t)) {
        row(r, "steal", "unknown", NULL, "could not be read", NULL);
        return;
    }
    double all = (double) (t.busy + t.idle + t.steal);
    double pct = all > 0 ? 100.0 * (double) t.steal / all : 0;

    (void) snprintf(value, sizeof(value), "%.2f %%", pct); /* fits */
    row(r, "steal",
        pct < 0.1 ? "ok"
        : pct < 1 ? "warn"
                  : "bad",
        value,
        pct < 0.1 ? "the hypervisor takes no time" : "the hypervisor takes time away (since boot)",
        NULL);
}

static void check_disk(struct rows *r)
{
    struct statvfs v;
    char value[VALUE_SIZE];

    if (fstatvfs(r->root->fd, &v) < 0) {
        row(r, "disk", "unknown", NULL, "could not be read", NULL);
        return;
    }
    double gb = (double) v.f_bavail * (double) v.f_frsize / 1e9;

    (void) snprintf(value, sizeof(value), "%.1f GB free", gb); /* fits */
    row(r, "disk",
        gb > 5   ? "ok"
        : gb > 1 ? "warn"
                 : "bad",
        value, gb > 5 ? "enough" : "runs may not fit", NULL);
}

static void check_cgroup(struct rows *r)
{
    bool v2 = faccessat(r->root->fd, "sys/fs/cgroup/cgroup.controllers", R_OK, 0) == 0;

    row(r, "cgroup", v2 ? "ok" : "warn", v2 ? "v2" : "no v2",
        v2 ? "CPU time and memory of a run are exact" : "a run is measured through /proc alone",
        NULL);
}

static void check_perf(struct rows *r)
{
    AUTO_FREE char *line = sysroot_line(r->root, "proc/sys/kernel/perf_event_paranoid");
    int64_t level = 0;
    bool known = line && num_parse_i64(line, strlen(line), &level);

    row(r, "perf events", known && level <= 1 ? "ok" : "warn", line,
        known && level <= 1 ? "profilers work" : "mode cpu may be refused by the kernel",
        known && level <= 1 ? NULL : "sysctl kernel.perf_event_paranoid=1");
}

/* Of earlier runs whose runner was killed. */
static void check_leftovers(struct rows *r, const struct machine_program *last)
{
    AUTO_LEFTOVERS struct leftovers l = {.items = NULL};
    struct err ignored = ERR_INIT; /* unknown is a value here */
    char value[VALUE_SIZE];
    bool certain = true;

    if (leftovers_find(r->root, last, &l, &ignored) < 0) {
        row(r, "leftovers", "unknown", NULL, "could not be read", NULL);
        return;
    }
    for (size_t i = 0; i < l.n; i++)
        certain = certain && l.items[i].certain;
    leftovers_list(&l, LEFTOVERS_TOLD, value, sizeof(value));
    row(r, "leftovers", l.n ? "bad" : "ok", l.n ? value : "none",
        l.n ? "an earlier run whose runner was killed is still at work"
            : "nothing of an earlier run is at work",
        !l.n      ? NULL
        : certain ? "the next cleanrun run ends them; or kill -9 with these numbers"
                  : "wait for their end, or kill -9 with these numbers");
}

int host_fitness(const struct sysroot *root, const struct machine_program *last, cJSON **out,
                 struct err *e)
{
    struct rows r = {.doc = {.root = cJSON_CreateArray()}, .root = root};

    if (!r.doc.root)
        return err_memory(e, "host.memory");
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        check_fact(&r, i);
    check_load(&r);
    check_pressure(&r);
    check_steal(&r);
    check_disk(&r);
    check_cgroup(&r);
    check_perf(&r);
    check_leftovers(&r, last);
    *out = json_doc_take(&r.doc, e);
    json_doc_fini(&r.doc);
    return *out ? 0 : -1;
}
