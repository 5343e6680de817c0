#include "runner/sampler.h"

#include "base/clock.h"
#include "runner/process_tree.h"

#define SLACK_MAX_NS UINT64_C(25000000)

struct sampler {
    struct process_tree *tree;
    const struct box *box;
    uint64_t ticks_per_second;
    uint64_t last_cpu_us, last_t_ns;
    bool has_last;
    uint64_t box_base_us;
    const char *first_why;
    size_t incomplete;
    size_t capacity, count, lost;
    struct sample *ring;
};

int sampler_new(const struct sysroot *root, pid_t pid, const struct box *box, size_t capacity,
                struct sampler **out, struct err *e)
{
    struct sampler *s = calloc(1, sizeof(*s));
    struct box_reading r;

    if (s)
        s->ring = calloc(capacity, sizeof(*s->ring));
    if (!s || !s->ring) {
        sampler_free(s);
        return err_memory(e, "sampler.memory");
    }
    if (process_tree_new(root, pid, &s->tree, e) < 0) {
        sampler_free(s);
        return -1;
    }
    s->box = box;
    s->capacity = capacity;
    s->ticks_per_second = (uint64_t) sysconf(_SC_CLK_TCK);
    if (box) {
        box_read(box, &r);
        s->box_base_us = r.usage_us;
    }
    *out = s;
    return 0;
}

void sampler_adopt(struct sampler *s, pid_t reaper)
{
    process_tree_adopt(s->tree, reaper);
}

void sampler_free(struct sampler *s)
{
    if (!s)
        return;
    process_tree_free(s->tree);
    free(s->ring);
    free(s);
}

static uint64_t cpu_us(const struct sampler *s, uint64_t ticks)
{
    struct box_reading r;

    if (s->box && box_present(s->box)) {
        box_read(s->box, &r);
        if (r.has_cpu)
            return r.usage_us - s->box_base_us;
    }
    return ticks * 1000000U / s->ticks_per_second;
}

uint64_t sampler_slack_ns(uint64_t interval_ns)
{
    return interval_ns / 20 < SLACK_MAX_NS ? interval_ns / 20 : SLACK_MAX_NS;
}

void sampler_take(struct sampler *s, uint64_t t_ms)
{
    struct sample x = {.t_ms = t_ms};
    struct tree_look look;
    uint64_t now = clock_monotonic_ns();
    uint64_t cpu;

    if (s->count > 0 && t_ms <= s->ring[s->count - 1].t_ms)
        return;
    process_tree_look(s->tree, &look);
    if (look.lacks) {
        if (s->incomplete++ == 0)
            s->first_why = look.lacks;
        return;
    }
    x.rss_kib = look.rss_kib;
    x.processes = look.processes;
    x.threads = look.threads;
    if (x.processes == 0 || x.rss_kib == 0)
        return; /* the tree is gone or just going: no memory of 0 is claimed */
    cpu = cpu_us(s, look.sum.ticks);
    if (s->has_last && now > s->last_t_ns && cpu > s->last_cpu_us)
        x.cpu_pct =
            (double) (cpu - s->last_cpu_us) * 1000.0 * 100.0 / (double) (now - s->last_t_ns);
    s->has_last = true;
    s->last_t_ns = now;
    s->last_cpu_us = cpu;
    x.minor_faults = look.sum.minor;
    x.major_faults = look.sum.major;
    x.voluntary_switches = look.sum.voluntary;
    x.involuntary_switches = look.sum.involuntary;
    x.read_bytes = look.sum.read_bytes;
    x.write_bytes = look.sum.write_bytes;
    if (s->count == s->capacity) {
        s->lost++;
        return;
    }
    s->ring[s->count++] = x;
}

size_t sampler_list(struct sampler *s, pid_t *out, size_t max)
{
    struct tree_look ignored;

    process_tree_look(s->tree, &ignored);
    return process_tree_list(s->tree, out, max);
}

bool sampler_tracks(const struct sampler *s, pid_t pid)
{
    return process_tree_tracks(s->tree, pid);
}

size_t sampler_count(const struct sampler *s)
{
    return s->count;
}

size_t sampler_lost(const struct sampler *s)
{
    return s->lost;
}

size_t sampler_incomplete(const struct sampler *s, const char **out_why)
{
    if (s->incomplete > 0)
        *out_why = s->first_why;
    return s->incomplete;
}

const struct sample *sampler_at(const struct sampler *s, size_t i)
{
    return i < s->count ? &s->ring[i] : NULL;
}

uint64_t sampler_cpu_us(const struct sampler *s)
{
    return s->last_cpu_us;
}

void sampler_write(const struct sampler *s, struct buf *out)
{
    buf_puts(out,
             "t_ms,rss_kib,cpu_pct,threads,processes,minor_faults,major_faults,voluntary_switches,"
             "involuntary_switches,read_bytes,write_bytes\n");
    for (size_t i = 0; i < s->count; i++) {
        const struct sample *x = &s->ring[i];
        /* Tenths as integers: no locale, and the same text again from the same number. */
        uint64_t tenths = (uint64_t) (x->cpu_pct * 10.0 + 0.5);

        buf_printf(out, "%lu,%lu,%lu.%lu,%u,%u,%lu,%lu,%lu,%lu,%lu,%lu\n", x->t_ms, x->rss_kib,
                   tenths / 10, tenths % 10, x->threads, x->processes, x->minor_faults,
                   x->major_faults, x->voluntary_switches, x->involuntary_switches, x->read_bytes,
                   x->write_bytes);
    }
}
