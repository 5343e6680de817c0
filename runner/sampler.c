#include "runner/sampler.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"

/* Descriptors stay open of so many processes; others' files are opened at each reading, so that a
 * large tree takes no more descriptors than a process has. */
#define KEPT_MAX 128
/* Beyond this a process's threads are counted, not read one by one: the processes that they started
 * are found by a look at all processes of the machine. */
#define THREADS_READ_MAX 256
#define LOOKS_MAX 8
#define PID_LIMIT 4194304 /* the kernel's own, on 64 bits */
#define TEXT_MAX 4096
/* Switches and I/O are the dearest to read and the least asked for: one in so many samples. */
#define DETAIL_EVERY 4

/* Last readings of one process; they stay in the sums after it is gone. */
struct reading {
    uint64_t ticks, minor, major, voluntary, involuntary, read_bytes, write_bytes;
};

struct watched {
    pid_t pid;
    bool kept; /* its descriptors */
    int stat_fd, io_fd, status_fd, children_fd;
    uint64_t start_ticks;
    uint64_t rss_pages, threads;
    bool zombie; /* ended, not yet waited for: still listed, uses nothing */
    bool known;  /* was read before */
    struct reading last;
};

struct sampler {
    const struct sysroot *root;
    const struct box *box;
    struct watched *processes; /* SAMPLER_PROCESSES_MAX; those never used take no memory */
    size_t n, n_kept;
    uint64_t *tracked;   /* a bit for each number a process can have */
    struct reading gone; /* sums of processes that ended */
    uint64_t ticks_per_second;
    uint64_t page_kib;
    uint64_t last_cpu_us, last_t_ns;
    bool has_last;
    uint64_t box_base_us;
    int orphans_fd;    /* the list of the reaper's children, or -1 */
    int loadavg_fd;    /* or -1 */
    char last_pid[24]; /* the machine's newest when children were looked for; "": not yet */
    bool forked;       /* since the sample before, by anybody: children are looked for */
    bool again;        /* the next time as well: lists that change as they are read skip some */
    bool wide;         /* a process may have children that no list read here names */
    bool too_many;     /* from then on no sample is whole */
    const char *why;   /* what this round lacks; NULL: nothing */
    const char *first_why;
    size_t incomplete;
    uint64_t round;
    size_t capacity, count, lost;
    struct sample *ring;
    char text[TEXT_MAX]; /* of the file read last; one, so that little memory is touched */
};

static int open_in(const struct sampler *s, pid_t pid, const char *name)
{
    char path[96];

    (void) snprintf(path, sizeof(path), "proc/%d/%s", (int) pid, name); /* fits */
    return openat(s->root->fd, path, O_RDONLY | O_CLOEXEC);
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        (void) close(*fd); /* was only read */
    *fd = -1;
}

static void lack(struct sampler *s, const char *why)
{
    if (!s->why)
        s->why = why;
}

static void unwatch(struct sampler *s, struct watched *w)
{
    uint32_t pid = (uint32_t) w->pid;

    s->tracked[pid / 64] &= ~((uint64_t) 1 << pid % 64);
    close_one(&w->stat_fd);
    close_one(&w->io_fd);
    close_one(&w->status_fd);
    close_one(&w->children_fd);
    s->n_kept -= w->kept;
}

/* False when that is no news: not there, tracked already. */
static bool watch(struct sampler *s, pid_t pid)
{
    struct watched w = {.pid = pid, .stat_fd = -1, .io_fd = -1, .status_fd = -1, .children_fd = -1};
    char name[64];

    if (pid <= 0 || sampler_tracks(s, pid))
        return false;
    if (s->n == SAMPLER_PROCESSES_MAX || pid >= PID_LIMIT) {
        s->too_many = true;
        return false;
    }
    if (s->n_kept < KEPT_MAX) {
        w.stat_fd = open_in(s, pid, "stat");
        if (w.stat_fd < 0 && procfs_is_gone(errno))
            return false;
        w.kept = w.stat_fd >= 0;
    }
    if (w.kept) {
        w.io_fd = open_in(s, pid, "io");
        w.status_fd = open_in(s, pid, "status");
        (void) snprintf(name, sizeof(name), "task/%d/children", (int) pid); /* fits */
        w.children_fd = open_in(s, pid, name);
    }
    s->n_kept += w.kept;
    s->tracked[(uint32_t) pid / 64] |= (uint64_t) 1 << (uint32_t) pid % 64;
    s->processes[s->n++] = w;
    return true;
}

/* The descriptor's text from its beginning, in s->text; false, with errno, when there is none. */
static bool read_fd(struct sampler *s, int fd)
{
    ssize_t n = fd < 0 ? -1 : pread(fd, s->text, TEXT_MAX - 1, 0);

    if (n < 0)
        return false;
    s->text[n] = '\0';
    return true;
}

/* The same of a process's file, whether it is kept open or not. */
static bool read_of(struct sampler *s, const struct watched *w, int fd, const char *name)
{
    if (w->kept)
        return read_fd(s, fd);
    AUTO_FD int opened = open_in(s, w->pid, name);

    return opened >= 0 && read_fd(s, opened);
}

static void watch_number(void *context, uint64_t number)
{
    (void) watch(context, number < PID_LIMIT ? (pid_t) number : PID_LIMIT);
}

static void watch_listed(struct sampler *s, int fd)
{
    if (!procfs_each_number(fd, watch_number, s))
        lack(s, "a list of child processes can't be read");
}

static void watch_children(struct sampler *s, const struct watched *w)
{
    char name[64];

    if (w->kept && w->children_fd >= 0) {
        watch_listed(s, w->children_fd);
        return;
    }
    (void) snprintf(name, sizeof(name), "task/%d/children", (int) w->pid); /* fits */
    AUTO_FD int fd = open_in(s, w->pid, name);

    if (fd >= 0)
        watch_listed(s, fd);
    else
        s->wide = true; /* a kernel without these lists, or no descriptor for it */
}

/* Whether the machine has made a process or thread since the last call: /proc/loadavg ends in the
 * newest one's number. Read before the lists of children, so that one made meanwhile is found the
 * next time. */
static bool has_forked(struct sampler *s)
{
    const char *at = NULL;
    size_t len = 0;

    if (!read_fd(s, s->loadavg_fd) || !(at = strrchr(s->text, ' ')))
        return true;
    at++;
    len = strcspn(at, "\n");
    if (len == 0 || len >= sizeof(s->last_pid))
        return true;
    if (strlen(s->last_pid) == len && memcmp(s->last_pid, at, len) == 0)
        return false;
    memcpy(s->last_pid, at, len);
    s->last_pid[len] = '\0';
    return true;
}

/* Looks at all processes for children of those tracked; returns how many were new. */
static size_t watch_by_parent(struct sampler *s)
{
    int fd = openat(s->root->fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    size_t found = 0;

    if (!dir) {
        close_one(&fd);
        lack(s, "the machine's processes can't be listed");
        return 0;
    }
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        struct proc_stat st;
        uint64_t pid = 0;

        if (!num_parse_u64(d->d_name, strlen(d->d_name), PID_LIMIT - 1, &pid) ||
            sampler_tracks(s, (pid_t) pid))
            continue;
        AUTO_FD int stat = open_in(s, (pid_t) pid, "stat");

        if (stat < 0 || !read_fd(s, stat)) {
            if (!procfs_is_gone(errno))
                lack(s, "a process's state can't be read");
            continue;
        }
        if (proc_stat_parse(s->text, &st) && sampler_tracks(s, st.ppid))
            found += watch(s, (pid_t) pid);
    }
    (void) closedir(dir); /* was only read */
    return found;
}

static uint64_t find(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    uint64_t v = 0;

    if (!at)
        return 0;
    at += strlen(key);
    at += strspn(at, " \t");
    return num_parse_u64(at, strspn(at, "0123456789"), UINT64_MAX, &v) ? v : 0;
}

static void add_switches(const char *status, struct reading *r)
{
    /* The longer key holds the shorter one, hence the line start. */
    r->voluntary += find(status, "\nvoluntary_ctxt_switches:");
    r->involuntary += find(status, "\nnonvoluntary_ctxt_switches:");
}

/* Threads other than the first: their switches, and the processes they started. */
static void read_threads(struct sampler *s, const struct watched *w, struct reading *r)
{
    int fd = open_in(s, w->pid, "task");
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    size_t read_count = 0;

    if (!dir) {
        s->wide = true;
        close_one(&fd);
        return;
    }
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        char name[300];
        uint64_t tid = 0;

        if (!num_parse_u64(d->d_name, strlen(d->d_name), INT32_MAX, &tid) || (pid_t) tid == w->pid)
            continue;
        if (read_count++ == THREADS_READ_MAX) {
            s->wide = true;
            break;
        }
        (void) snprintf(name, sizeof(name), "%s/status", d->d_name); /* fits */
        AUTO_FD int status = openat(dirfd(dir), name, O_RDONLY | O_CLOEXEC);
        if (read_fd(s, status))
            add_switches(s->text, r);
        (void) snprintf(name, sizeof(name), "%s/children", d->d_name); /* fits */
        AUTO_FD int children = openat(dirfd(dir), name, O_RDONLY | O_CLOEXEC);
        if (children >= 0)
            watch_listed(s, children);
        else if (!procfs_is_gone(errno))
            s->wide = true;
    }
    (void) closedir(dir); /* was only read */
}

/* Switches and I/O; what cannot be read stays as it was. */
static void read_details(struct sampler *s, const struct watched *w, struct reading *r)
{

    r->voluntary = 0;
    r->involuntary = 0;
    if (read_of(s, w, w->io_fd, "io")) {
        r->read_bytes = find(s->text, "\nread_bytes:");
        r->write_bytes = find(s->text, "\nwrite_bytes:");
    }
    if (read_of(s, w, w->status_fd, "status"))
        add_switches(s->text, r);
    if (w->threads > 1)
        read_threads(s, w, r);
    /* Threads that ended take their switches with them: a sum never falls. */
    if (r->voluntary < w->last.voluntary)
        r->voluntary = w->last.voluntary;
    if (r->involuntary < w->last.involuntary)
        r->involuntary = w->last.involuntary;
}

/* Memory and threads as they are now. */
static void read_size(struct sampler *s, struct watched *w, const struct proc_stat *st)
{
    struct proc_stat live = *st;

    w->zombie = st->state == 'Z';
    if (w->zombie && st->threads > 1) {
        switch (proc_live_thread(s->root, w->pid, &live)) {
        case PROC_LIVE_FOUND:
            w->zombie = false;
            break;
        case PROC_LIVE_NONE:
            break;
        case PROC_LIVE_UNKNOWN:
            lack(s, "the threads of a process whose first one ended can't be read");
            break;
        }
    }
    w->rss_pages = live.rss_pages;
    w->threads = st->threads;
}

/* False when the process is gone: its last readings are kept. */
static bool read_process(struct sampler *s, size_t i)
{
    struct proc_stat st;
    struct watched *w = &s->processes[i];
    struct reading r = w->last;

    if (!read_of(s, w, w->stat_fd, "stat")) {
        if (procfs_is_gone(errno))
            return false;
        lack(s, "a process of the tree can't be read");
        return true;
    }
    if (!proc_stat_parse(s->text, &st)) {
        lack(s, "a process's state is none");
        return true;
    }
    /* Not kept open: the number may be another process's by now. */
    if (st.state == 'X' || (w->known && w->start_ticks != st.start_ticks))
        return false;
    w->start_ticks = st.start_ticks;
    r.ticks = st.user_ticks + st.system_ticks;
    r.minor = st.minor_faults;
    r.major = st.major_faults;
    read_size(s, w, &st);
    if (st.threads > THREADS_READ_MAX)
        s->wide = true;
    /* In turn, not all in the same sample. A process with threads is read whole when one of them
     * may have a new child. */
    if (!w->known || (s->round + (uint64_t) w->pid) % DETAIL_EVERY == 0 ||
        (s->forked && st.threads > 1))
        read_details(s, w, &r);
    if (s->forked || !w->known)
        watch_children(s, w);
    w->known = true;
    w->last = r;
    return true;
}

static void add(struct reading *to, const struct reading *r)
{
    to->ticks += r->ticks;
    to->minor += r->minor;
    to->major += r->major;
    to->voluntary += r->voluntary;
    to->involuntary += r->involuntary;
    to->read_bytes += r->read_bytes;
    to->write_bytes += r->write_bytes;
}

int sampler_new(const struct sysroot *root, pid_t pid, const struct box *box, size_t capacity,
                struct sampler **out, struct err *e)
{
    struct sampler *s = calloc(1, sizeof(*s));
    struct box_reading r;

    if (s) {
        s->orphans_fd = -1;
        s->loadavg_fd = -1;
        s->ring = calloc(capacity, sizeof(*s->ring));
        s->processes = calloc(SAMPLER_PROCESSES_MAX, sizeof(*s->processes));
        s->tracked = calloc(PID_LIMIT / 64, sizeof(*s->tracked));
    }
    if (!s || !s->ring || !s->processes || !s->tracked) {
        sampler_free(s);
        return err_set(e, ERR_NOMEM, "sampler.memory", "out of memory");
    }
    s->root = root;
    s->box = box;
    s->loadavg_fd = openat(root->fd, "proc/loadavg", O_RDONLY | O_CLOEXEC);
    s->capacity = capacity;
    s->ticks_per_second = (uint64_t) sysconf(_SC_CLK_TCK);
    s->page_kib = (uint64_t) sysconf(_SC_PAGESIZE) / 1024;
    if (box) {
        box_read(box, &r);
        s->box_base_us = r.usage_us;
    }
    (void) watch(s, pid); /* a program that is gone already has no samples */
    *out = s;
    return 0;
}

void sampler_adopt(struct sampler *s, pid_t reaper)
{
    char name[64];

    close_one(&s->orphans_fd);
    (void) snprintf(name, sizeof(name), "task/%d/children", (int) reaper); /* fits */
    s->orphans_fd = open_in(s, reaper, name);
    s->last_pid[0] = '\0';
}

void sampler_free(struct sampler *s)
{
    if (!s)
        return;
    close_one(&s->orphans_fd);
    close_one(&s->loadavg_fd);
    for (size_t i = 0; i < s->n; i++)
        unwatch(s, &s->processes[i]);
    free(s->processes);
    free(s->tracked);
    free(s->ring);
    free(s);
}

/* Reads the processes from the given one on. The list grows while it is read: children found on the
 * way are read in the same round. */
static void sum_from(struct sampler *s, size_t first, struct sample *out, struct reading *sum)
{
    for (size_t i = first; i < s->n;) {
        struct watched *w = &s->processes[i];

        if (!read_process(s, i)) {
            add(&s->gone, &w->last);
            add(sum, &w->last);
            unwatch(s, w);
            s->processes[i] = s->processes[--s->n];
            s->again = true;
            continue;
        }
        add(sum, &w->last);
        i++;
        if (w->zombie)
            continue;
        out->rss_kib += w->rss_pages * s->page_kib;
        out->threads += (uint32_t) w->threads;
        out->processes++;
    }
}

static void sum_all(struct sampler *s, struct sample *out, struct reading *sum)
{
    bool forked = has_forked(s);
    size_t first = 0;
    int looks = 0;

    s->forked = forked || s->again;
    s->again = forked;
    s->wide = false;
    s->why = NULL;
    s->round++;
    if (s->forked && s->orphans_fd >= 0)
        watch_listed(s, s->orphans_fd);
    *sum = s->gone;
    do {
        sum_from(s, first, out, sum);
        first = s->n;
    } while (s->wide && s->forked && looks++ < LOOKS_MAX && watch_by_parent(s) > 0);
    static_assert(SAMPLER_PROCESSES_MAX == 4096, "the text below says how many");
    if (s->too_many)
        lack(s, "more than 4096 processes");
}

static uint64_t cpu_us(const struct sampler *s, const struct reading *sum)
{
    struct box_reading r;

    if (s->box && box_present(s->box)) {
        box_read(s->box, &r);
        if (r.has_cpu)
            return r.usage_us - s->box_base_us;
    }
    return sum->ticks * 1000000U / s->ticks_per_second;
}

void sampler_take(struct sampler *s, uint64_t t_ms)
{
    struct sample x = {.t_ms = t_ms};
    struct reading sum;
    uint64_t now = clock_monotonic_ns();
    uint64_t cpu;

    if (s->count > 0 && t_ms <= s->ring[s->count - 1].t_ms)
        return;
    sum_all(s, &x, &sum);
    if (s->why) {
        if (s->incomplete++ == 0)
            s->first_why = s->why;
        return;
    }
    if (x.processes == 0 || x.rss_kib == 0)
        return; /* the tree is gone or just going: no memory of 0 is claimed */
    cpu = cpu_us(s, &sum);
    if (s->has_last && now > s->last_t_ns && cpu > s->last_cpu_us)
        x.cpu_pct =
            (double) (cpu - s->last_cpu_us) * 1000.0 * 100.0 / (double) (now - s->last_t_ns);
    s->has_last = true;
    s->last_t_ns = now;
    s->last_cpu_us = cpu;
    x.minor_faults = sum.minor;
    x.major_faults = sum.major;
    x.voluntary_switches = sum.voluntary;
    x.involuntary_switches = sum.involuntary;
    x.read_bytes = sum.read_bytes;
    x.write_bytes = sum.write_bytes;
    if (s->count == s->capacity) {
        s->lost++;
        return;
    }
    s->ring[s->count++] = x;
}

size_t sampler_list(struct sampler *s, pid_t *out, size_t max)
{
    struct sample ignored = {.t_ms = 0};
    struct reading sum;
    size_t n = 0;

    sum_all(s, &ignored, &sum);
    for (size_t i = 0; i < s->n && n < max; i++)
        if (!s->processes[i].zombie)
            out[n++] = s->processes[i].pid;
    return n;
}

bool sampler_tracks(const struct sampler *s, pid_t pid)
{
    return pid > 0 && pid < PID_LIMIT &&
           (s->tracked[(uint32_t) pid / 64] >> (uint32_t) pid % 64 & 1) != 0;
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
