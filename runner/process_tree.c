#include "runner/process_tree.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/num.h"
#include "runner/paths.h"

/* Descriptors stay open of so many processes; others' files are opened at each reading, so that a
 * large tree takes no more descriptors than a process has. */
#define KEPT_MAX 128
/* Beyond this a process's threads are counted, not read one by one: the processes that they started
 * are found by a look at all processes of the machine. */
#define THREADS_READ_MAX 256
#define LOOKS_MAX 8
#define TEXT_MAX 4096
/* Switches and I/O are the dearest to read and the least asked for: one in so many samples. */
#define DETAIL_EVERY 4

struct watched {
    pid_t pid, parent;
    bool kept; /* its descriptors */
    int stat_fd, io_fd, status_fd, children_fd;
    uint64_t start_ticks;
    uint64_t rss_pages, threads;
    bool zombie; /* ended, not yet waited for: still listed, uses nothing */
    bool known;  /* was read before */
    struct tree_reading last;
};

struct process_tree {
    const struct sysroot *root;
    struct watched *processes; /* PROCESS_TREE_MAX; those never used take no memory */
    size_t n, n_kept;
    uint64_t *tracked;        /* a bit for each number a process can have */
    struct tree_reading gone; /* sums of processes that ended */
    uint64_t page_kib;
    pid_t first, reaper; /* reaper 0: none */
    int orphans_fd;      /* the list of the reaper's children, or -1 */
    int loadavg_fd;      /* or -1 */
    char last_pid[24];   /* the machine's newest when children were looked for; "": not yet */
    bool forked;         /* since the look before, by anybody: children are looked for */
    bool again;          /* the next time as well: lists that change as they are read skip some */
    bool wide;           /* a process may have children that no list read here names */
    bool too_many;       /* from then on no look is whole */
    const char *why;     /* what this round lacks; NULL: nothing */
    uint64_t round;
    char text[TEXT_MAX]; /* of the file read last; one, so that little memory is touched */
};

static int open_in(const struct process_tree *t, pid_t pid, const char *name)
{
    char path[96];

    (void) snprintf(path, sizeof(path), "proc/%d/%s", (int) pid, name); /* fits */
    return openat(t->root->fd, path, O_RDONLY | O_CLOEXEC);
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        (void) close(*fd); /* was only read */
    *fd = -1;
}

static void lack(struct process_tree *t, const char *why)
{
    if (!t->why)
        t->why = why;
}

static void unwatch(struct process_tree *t, struct watched *w)
{
    uint32_t pid = (uint32_t) w->pid;

    t->tracked[pid / 64] &= ~((uint64_t) 1 << pid % 64);
    close_one(&w->stat_fd);
    close_one(&w->io_fd);
    close_one(&w->status_fd);
    close_one(&w->children_fd);
    t->n_kept -= w->kept;
}

/* False when that is no news: not there, tracked already. */
static bool watch(struct process_tree *t, pid_t pid)
{
    struct watched w = {.pid = pid, .stat_fd = -1, .io_fd = -1, .status_fd = -1, .children_fd = -1};
    char name[64];

    if (pid <= 0 || process_tree_tracks(t, pid))
        return false;
    if (t->n == PROCESS_TREE_MAX || pid >= PROCESS_TREE_NUMBERS) {
        t->too_many = true;
        return false;
    }
    if (t->n_kept < KEPT_MAX) {
        w.stat_fd = open_in(t, pid, "stat");
        if (w.stat_fd < 0 && procfs_is_gone(errno))
            return false;
        w.kept = w.stat_fd >= 0;
    }
    if (w.kept) {
        w.io_fd = open_in(t, pid, "io");
        w.status_fd = open_in(t, pid, "status");
        (void) snprintf(name, sizeof(name), "task/%d/children", (int) pid); /* fits */
        w.children_fd = open_in(t, pid, name);
    }
    t->n_kept += w.kept;
    t->tracked[(uint32_t) pid / 64] |= (uint64_t) 1 << (uint32_t) pid % 64;
    t->processes[t->n++] = w;
    return true;
}

/* The descriptor's text in t->text; false, with errno, when there is none. */
static bool read_fd(struct process_tree *t, int fd)
{
    return procfs_read_open(fd, t->text, sizeof(t->text));
}

/* The same of a process's file, whether it is kept open or not. */
static bool read_of(struct process_tree *t, const struct watched *w, int fd, const char *name)
{
    if (w->kept)
        return read_fd(t, fd);
    AUTO_FD int opened = open_in(t, w->pid, name);

    return opened >= 0 && read_fd(t, opened);
}

static void watch_number(void *context, uint64_t number)
{
    (void) watch(context, number < PROCESS_TREE_NUMBERS ? (pid_t) number : PROCESS_TREE_NUMBERS);
}

static void watch_listed(struct process_tree *t, int fd)
{
    if (!procfs_each_number(fd, watch_number, t))
        lack(t, "a list of child processes can't be read");
}

static void watch_children(struct process_tree *t, const struct watched *w)
{
    char name[64];

    if (w->kept && w->children_fd >= 0) {
        watch_listed(t, w->children_fd);
        return;
    }
    (void) snprintf(name, sizeof(name), "task/%d/children", (int) w->pid); /* fits */
    AUTO_FD int fd = open_in(t, w->pid, name);

    if (fd >= 0)
        watch_listed(t, fd);
    else
        t->wide = true; /* a kernel without these lists, or no descriptor for it */
}

/* Whether the machine has made a process or thread since the last call: /proc/loadavg ends in the
 * newest one's number. Read before the lists of children, so that one made meanwhile is found the
 * next time. */
static bool has_forked(struct process_tree *t)
{
    const char *at = NULL;
    size_t len = 0;

    if (!read_fd(t, t->loadavg_fd) || !(at = strrchr(t->text, ' ')))
        return true;
    at++;
    len = strcspn(at, "\n");
    if (len == 0 || len >= sizeof(t->last_pid))
        return true;
    if (strlen(t->last_pid) == len && memcmp(t->last_pid, at, len) == 0)
        return false;
    memcpy(t->last_pid, at, len);
    t->last_pid[len] = '\0';
    return true;
}

/* Looks at all processes for children of those tracked; returns how many were new. */
static size_t watch_by_parent(struct process_tree *t)
{
    DIR *dir = paths_open_dir(t->root->fd, "proc");
    size_t found = 0;

    if (!dir) {
        lack(t, "the machine's processes can't be listed");
        return 0;
    }
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        struct proc_stat st;
        uint64_t pid = 0;

        if (!num_parse_u64(d->d_name, strlen(d->d_name), PROCESS_TREE_NUMBERS - 1, &pid) ||
            process_tree_tracks(t, (pid_t) pid))
            continue;
        AUTO_FD int stat = open_in(t, (pid_t) pid, "stat");

        if (stat < 0 || !read_fd(t, stat)) {
            if (!procfs_is_gone(errno))
                lack(t, "a process's state can't be read");
            continue;
        }
        if (proc_stat_parse(t->text, &st) && process_tree_tracks(t, st.ppid))
            found += watch(t, (pid_t) pid);
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

static void add_switches(const char *status, struct tree_reading *r)
{
    /* The longer key holds the shorter one, hence the line start. */
    r->voluntary += find(status, "\nvoluntary_ctxt_switches:");
    r->involuntary += find(status, "\nnonvoluntary_ctxt_switches:");
}

/* Threads other than the first: their switches, and the processes they started. */
static void read_threads(struct process_tree *t, const struct watched *w, struct tree_reading *r)
{
    size_t read_count = 0;
    char path[64];
    DIR *dir;

    (void) snprintf(path, sizeof(path), "proc/%d/task", (int) w->pid); /* fits */
    dir = paths_open_dir(t->root->fd, path);
    if (!dir) {
        t->wide = true;
        return;
    }
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        char name[300];
        uint64_t tid = 0;

        if (!num_parse_u64(d->d_name, strlen(d->d_name), INT32_MAX, &tid) || (pid_t) tid == w->pid)
            continue;
        if (read_count++ == THREADS_READ_MAX) {
            t->wide = true;
            break;
        }
        (void) snprintf(name, sizeof(name), "%s/status", d->d_name); /* fits */
        AUTO_FD int status = openat(dirfd(dir), name, O_RDONLY | O_CLOEXEC);
        if (read_fd(t, status))
            add_switches(t->text, r);
        (void) snprintf(name, sizeof(name), "%s/children", d->d_name); /* fits */
        AUTO_FD int children = openat(dirfd(dir), name, O_RDONLY | O_CLOEXEC);
        if (children >= 0)
            watch_listed(t, children);
        else if (!procfs_is_gone(errno))
            t->wide = true;
    }
    (void) closedir(dir); /* was only read */
}

/* Switches and I/O; what cannot be read stays as it was. */
static void read_details(struct process_tree *t, const struct watched *w, struct tree_reading *r)
{
    r->voluntary = 0;
    r->involuntary = 0;
    if (read_of(t, w, w->io_fd, "io")) {
        r->read_bytes = find(t->text, "\nread_bytes:");
        r->write_bytes = find(t->text, "\nwrite_bytes:");
    }
    if (read_of(t, w, w->status_fd, "status"))
        add_switches(t->text, r);
    if (w->threads > 1)
        read_threads(t, w, r);
    /* Threads that ended take their switches with them: a sum never falls. */
    if (r->voluntary < w->last.voluntary)
        r->voluntary = w->last.voluntary;
    if (r->involuntary < w->last.involuntary)
        r->involuntary = w->last.involuntary;
}

/* Memory and threads as they are now. */
static void read_size(struct process_tree *t, struct watched *w, const struct proc_stat *st)
{
    struct proc_stat live = *st;

    w->zombie = st->state == 'Z';
    if (w->zombie && st->threads > 1) {
        switch (proc_live_thread(t->root, w->pid, &live)) {
        case PROC_LIVE_FOUND:
            w->zombie = false;
            break;
        case PROC_LIVE_NONE:
            break;
        case PROC_LIVE_UNKNOWN:
            lack(t, "the threads of a process whose first one ended can't be read");
            break;
        }
    }
    w->rss_pages = live.rss_pages;
    w->threads = st->threads;
}

/* False when the process is gone: its last readings are kept. */
static bool read_process(struct process_tree *t, size_t i)
{
    struct proc_stat st;
    struct watched *w = &t->processes[i];
    struct tree_reading r = w->last;

    if (!read_of(t, w, w->stat_fd, "stat")) {
        if (procfs_is_gone(errno))
            return false;
        lack(t, "a process of the tree can't be read");
        return true;
    }
    if (!proc_stat_parse(t->text, &st)) {
        lack(t, "a process's state is none");
        return true;
    }
    /* Not kept open: the number may be another process's by now. */
    if (st.state == 'X' || (w->known && w->start_ticks != st.start_ticks))
        return false;
    w->start_ticks = st.start_ticks;
    w->parent = st.ppid;
    r.ticks = st.user_ticks + st.system_ticks;
    r.minor = st.minor_faults;
    r.major = st.major_faults;
    read_size(t, w, &st);
    if (st.threads > THREADS_READ_MAX)
        t->wide = true;
    /* All in the same sample: the first reading of a kind is the dear one. A process with threads
     * is read whole when one of them may have a new child. */
    if (!w->known || t->round % DETAIL_EVERY == 0 || (t->forked && st.threads > 1))
        read_details(t, w, &r);
    if (t->forked || !w->known)
        watch_children(t, w);
    w->known = true;
    w->last = r;
    return true;
}

static void add(struct tree_reading *to, const struct tree_reading *r)
{
    to->ticks += r->ticks;
    to->minor += r->minor;
    to->major += r->major;
    to->voluntary += r->voluntary;
    to->involuntary += r->involuntary;
    to->read_bytes += r->read_bytes;
    to->write_bytes += r->write_bytes;
}

int process_tree_new(const struct sysroot *root, pid_t pid, struct process_tree **out,
                     struct err *e)
{
    struct process_tree *t = calloc(1, sizeof(*t));

    if (t) {
        t->orphans_fd = -1;
        t->loadavg_fd = -1;
        t->processes = calloc(PROCESS_TREE_MAX, sizeof(*t->processes));
        t->tracked = calloc(PROCESS_TREE_NUMBERS / 64, sizeof(*t->tracked));
    }
    if (!t || !t->processes || !t->tracked) {
        process_tree_free(t);
        return err_memory(e, "sampler.memory");
    }
    t->root = root;
    t->loadavg_fd = openat(root->fd, "proc/loadavg", O_RDONLY | O_CLOEXEC);
    t->page_kib = (uint64_t) sysconf(_SC_PAGESIZE) / 1024;
    t->first = pid;
    (void) watch(t, pid); /* a program that is gone already has nothing to look at */
    *out = t;
    return 0;
}

void process_tree_adopt(struct process_tree *t, pid_t reaper)
{
    char name[64];

    close_one(&t->orphans_fd);
    t->reaper = reaper;
    (void) snprintf(name, sizeof(name), "task/%d/children", (int) reaper); /* fits */
    t->orphans_fd = open_in(t, reaper, name);
    t->last_pid[0] = '\0';
}

void process_tree_free(struct process_tree *t)
{
    if (!t)
        return;
    close_one(&t->orphans_fd);
    close_one(&t->loadavg_fd);
    for (size_t i = 0; i < t->n; i++)
        unwatch(t, &t->processes[i]);
    free(t->processes);
    free(t->tracked);
    free(t);
}

/* An orphan that ended has nobody but us to wait for it: thousands of them would fill the machine's
 * table of processes. Its last readings stay in the sums. The first one is its starter's. */
static void reap(const struct process_tree *t, const struct watched *w)
{
    if (t->reaper > 0 && w->parent == t->reaper && w->pid != t->first)
        (void) waitpid(w->pid, NULL, WNOHANG); /* not ours after all: nothing happens */
}

/* Reads the processes from the given one on. The list grows while it is read: children found on the
 * way are read in the same round. */
static void sum_from(struct process_tree *t, size_t first, struct tree_look *out)
{
    for (size_t i = first; i < t->n;) {
        struct watched *w = &t->processes[i];

        if (!read_process(t, i)) {
            add(&t->gone, &w->last);
            add(&out->sum, &w->last);
            unwatch(t, w);
            t->processes[i] = t->processes[--t->n];
            t->again = true;
            continue;
        }
        add(&out->sum, &w->last);
        i++;
        if (w->zombie) {
            reap(t, w);
            continue;
        }
        out->rss_kib += w->rss_pages * t->page_kib;
        out->threads += (uint32_t) w->threads;
        out->processes++;
    }
}

void process_tree_look(struct process_tree *t, struct tree_look *out)
{
    bool forked = has_forked(t);
    size_t first = 0;
    int looks = 0;

    t->forked = forked || t->again;
    t->again = forked;
    t->wide = false;
    t->why = NULL;
    t->round++;
    if (t->forked && t->orphans_fd >= 0)
        watch_listed(t, t->orphans_fd);
    *out = (struct tree_look){.sum = t->gone};
    do {
        sum_from(t, first, out);
        first = t->n;
    } while (t->wide && t->forked && looks++ < LOOKS_MAX && watch_by_parent(t) > 0);
    static_assert(PROCESS_TREE_MAX == 4096, "the text below says how many");
    if (t->too_many)
        lack(t, "more than 4096 processes");
    out->lacks = t->why;
}

size_t process_tree_list(const struct process_tree *t, pid_t *out, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n && n < max; i++)
        if (!t->processes[i].zombie)
            out[n++] = t->processes[i].pid;
    return n;
}

bool process_tree_tracks(const struct process_tree *t, pid_t pid)
{
    return pid > 0 && pid < PROCESS_TREE_NUMBERS &&
           (t->tracked[(uint32_t) pid / 64] >> (uint32_t) pid % 64 & 1) != 0;
}
