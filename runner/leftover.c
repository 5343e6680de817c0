#include "runner/leftover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/num.h"
#include "runner/box.h"
#include "runner/paths.h"

#define ENVIRONMENT_MAX LIMIT_MIB(8)
#define PATIENCE_MS 5000
#define LOOK_AGAIN_MS 50
#define AT_ONCE 256 /* processes ended in one round: each takes a descriptor */
#define TOLD 4
#define ANCESTORS_MAX 4096

enum bearing {
    BEARS_NONE,
    BEARS_LIVE, /* its runner lives, or is of another PID namespace: not to be told from here */
    BEARS_DEAD,
};

struct entry {
    struct proc_stat stat;
    pid_t pid;
    uid_t uid;
    enum bearing bearing;
    bool left, own; /* own: this process, or one that it descends from */
};

struct table {
    struct entry *items;
    size_t n, room;
};

struct mark {
    uint64_t namespace, pid, start;
};

/* Number of the PID namespace that `root`'s /proc shows; 0 when it can't be told. */
static uint64_t own_namespace(const struct sysroot *root)
{
    char link[64];
    uint64_t number = 0;
    ssize_t n = readlinkat(root->fd, "proc/self/ns/pid", link, sizeof(link) - 1);

    if (n < 7 || memcmp(link, "pid:[", 5) != 0 ||
        !num_parse_u64(link + 5, (size_t) n - 6, UINT32_MAX, &number))
        return 0;
    return number;
}

static bool process_stat(const struct sysroot *root, pid_t pid, struct proc_stat *out)
{
    char name[64];

    (void) snprintf(name, sizeof(name), "proc/%d/stat", (int) pid); /* fits */
    return proc_stat_read(root->fd, name, out);
}

/* The number that `root` knows this process by; 0: a made-up root that does not. */
static pid_t self(const struct sysroot *root, struct proc_stat *out)
{
    return proc_stat_read(root->fd, "proc/self/stat", out) ? out->pid : 0;
}

int leftover_mark(const struct sysroot *root, char out[LEFTOVER_MARK_SIZE], struct err *e)
{
    struct proc_stat st;
    pid_t pid = self(root, &st);
    char text[64];

    if (pid == 0)
        return err_set(e, ERR_SYS, "leftover.self", "cannot read /proc/self/stat");
    (void) snprintf(text, sizeof(text), "%010" PRIu64 "-%010d-%020" PRIu64, own_namespace(root),
                    (int) pid, st.start_ticks);
    memcpy(out, text, LEFTOVER_MARK_SIZE - 1); /* 10 + 1 + 10 + 1 + 20 */
    out[LEFTOVER_MARK_SIZE - 1] = '\0';
    return 0;
}

/* A number with zeros before it. */
static bool parse_padded(const char *text, size_t len, uint64_t max, uint64_t *out)
{
    size_t zeros = strspn(text, "0");

    if (zeros >= len)
        zeros = len - 1;
    return num_parse_u64(text + zeros, len - zeros, max, out);
}

static bool parse_mark(const char *text, size_t len, struct mark *out)
{
    return len == LEFTOVER_MARK_SIZE - 1 && text[10] == '-' && text[21] == '-' &&
           parse_padded(text, 10, UINT64_MAX, &out->namespace) &&
           parse_padded(text + 11, 10, INT32_MAX, &out->pid) &&
           parse_padded(text + 22, 20, UINT64_MAX, &out->start);
}

static bool is_over(const struct proc_stat *st)
{
    return st->state == 'Z' || st->state == 'X';
}

/* Asked after the mark was read: a runner that started it is there by now, or gone for good. */
static enum bearing judge_mark(const struct sysroot *root, const struct mark *m)
{
    uint64_t here = own_namespace(root);
    struct proc_stat st;

    if (m->namespace == 0 || m->namespace != here)
        return BEARS_LIVE;
    if (!process_stat(root, (pid_t) m->pid, &st))
        return BEARS_DEAD;
    return st.start_ticks == m->start && !is_over(&st) ? BEARS_LIVE : BEARS_DEAD;
}

/* What is in a box needs no mark. */
static enum bearing look_at_box(const struct sysroot *root, int mount_fd, pid_t pid)
{
    AUTO_FREE char *group = NULL;
    char name[64];

    (void) snprintf(name, sizeof(name), "proc/%d/cgroup", (int) pid); /* fits */
    group = sysroot_read(root, name);
    return group && box_is_left(mount_fd, group) ? BEARS_DEAD : BEARS_NONE;
}

static enum bearing look_for_mark(const struct sysroot *root, pid_t pid)
{
    static const char before[] = LEFTOVER_VARIABLE "=";
    AUTO_FREE char *text = NULL;
    char name[64];
    size_t len = 0;
    struct err ignored = ERR_INIT; /* another user's, or gone */

    (void) snprintf(name, sizeof(name), "proc/%d/environ", (int) pid); /* fits */
    if (file_read_pseudo_at(root->fd, name, ENVIRONMENT_MAX, &text, &len, &ignored) < 0)
        return BEARS_NONE;
    for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
        const char *value = text + at + sizeof(before) - 1;
        struct mark m;

        if (strncmp(text + at, before, sizeof(before) - 1) != 0)
            continue;
        return parse_mark(value, strlen(value), &m) ? judge_mark(root, &m) : BEARS_NONE;
    }
    return BEARS_NONE;
}

static int add(struct table *t, const struct entry *entry, struct err *e)
{
    if (t->n == t->room) {
        size_t room = t->room ? t->room * 2 : 256;
        struct entry *grown = reallocarray(t->items, room, sizeof(*grown));

        if (!grown)
            return err_memory(e, "leftover.memory");
        t->items = grown;
        t->room = room;
    }
    t->items[t->n++] = *entry;
    return 0;
}

static int read_processes(const struct sysroot *root, DIR *dir, struct table *t, struct err *e)
{
    AUTO_FD int mount_fd = openat(root->fd, BOX_MOUNT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (const struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        struct entry entry = {.bearing = BEARS_NONE};
        uint64_t pid = 0;
        struct stat st;

        if (!num_parse_u64(d->d_name, strlen(d->d_name), INT32_MAX, &pid) ||
            fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        entry.pid = (pid_t) pid;
        entry.uid = st.st_uid;
        if (!process_stat(root, entry.pid, &entry.stat) || is_over(&entry.stat))
            continue;
        entry.bearing = look_for_mark(root, entry.pid);
        if (entry.bearing == BEARS_NONE)
            entry.bearing = look_at_box(root, mount_fd, entry.pid);
        if (add(t, &entry, e) < 0)
            return -1;
    }
    return 0;
}

static int read_table(const struct sysroot *root, struct table *t, struct err *e)
{
    DIR *dir = paths_open_dir(root->fd, "proc");
    int r;

    if (!dir)
        return err_errno(e, "leftover.processes", "cannot read /proc");
    r = read_processes(root, dir, t, e);
    (void) closedir(dir); /* was only read */
    return r;
}

static struct entry *find(const struct table *t, pid_t pid)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->items[i].pid == pid)
            return &t->items[i];
    return NULL;
}

static void exclude_own(struct table *t, pid_t pid)
{
    for (size_t i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
        struct entry *entry = find(t, pid);

        if (!entry || entry->own)
            return;
        entry->own = true;
        pid = entry->stat.ppid;
    }
}

/* The marked ones, and what descends from them with an environment of its own. */
static void spread(struct table *t)
{
    bool more = false;

    for (size_t i = 0; i < t->n; i++) {
        t->items[i].left = t->items[i].bearing == BEARS_DEAD && !t->items[i].own;
        more = more || t->items[i].left;
    }
    while (more) {
        more = false;
        for (size_t i = 0; i < t->n; i++) {
            struct entry *entry = &t->items[i];

            if (entry->left || entry->own || entry->bearing != BEARS_NONE)
                continue;
            const struct entry *parent = find(t, entry->stat.ppid);

            entry->left = parent && parent->left;
            more = more || entry->left;
        }
    }
}

/* Of the session that the machine's lock names? A leader that started at another time is another
 * session's. */
static bool in_session(const struct table *t, const struct machine_program *last, pid_t own_session,
                       const struct entry *entry)
{
    const struct entry *leader;

    if (!last || entry->own || entry->bearing == BEARS_LIVE ||
        entry->stat.session != last->session || own_session == last->session ||
        entry->stat.start_ticks < last->start_ticks)
        return false;
    leader = find(t, last->session);
    return !leader || leader->stat.start_ticks == last->start_ticks;
}

static void list(struct leftovers *to, const struct entry *entry, bool certain)
{
    struct leftover *l = &to->items[to->n++];

    *l = (struct leftover){
        .pid = entry->pid, .start_ticks = entry->stat.start_ticks, .certain = certain};
    memcpy(l->name, entry->stat.comm, sizeof(l->name));
}

int leftovers_find(const struct sysroot *root, const struct machine_program *last,
                   struct leftovers *out, struct err *e)
{
    struct table t = {.items = NULL};
    struct proc_stat own = {.session = 0};
    AUTO_LEFTOVERS struct leftovers found = {.items = NULL};

    if (read_table(root, &t, e) < 0) {
        free(t.items);
        return -1;
    }
    exclude_own(&t, self(root, &own));
    spread(&t);
    found.items = calloc(t.n ? t.n : 1, sizeof(*found.items));
    for (size_t i = 0; found.items && i < t.n; i++)
        if (t.items[i].left && t.items[i].uid == geteuid())
            list(&found, &t.items[i], true);
    for (size_t i = 0; found.items && i < t.n; i++)
        if (t.items[i].left ? t.items[i].uid != geteuid()
                            : in_session(&t, last, own.session, &t.items[i]))
            list(&found, &t.items[i], false);
    free(t.items);
    if (!found.items)
        return err_memory(e, "leftover.memory");
    *out = found;
    found = (struct leftovers){.items = NULL};
    return 0;
}

void leftovers_fini(struct leftovers *l)
{
    free(l->items);
    *l = (struct leftovers){.items = NULL};
}

void leftovers_list(const struct leftovers *l, size_t max, char *out, size_t size)
{
    AUTO_BUF struct buf b = {.data = NULL};
    size_t n = l->n < max ? l->n : max;

    buf_init(&b, LIMIT_KIB(64));
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%s (%d)", i > 0 ? ", " : "", l->items[i].name, (int) l->items[i].pid);
    if (l->n > n)
        buf_printf(&b, " and %zu more", l->n - n);
    (void) snprintf(out, size, "%s",
                    b.data && !b.failed ? b.data : ""); /* a cut list still tells */
}

/* Only the process that was found: another one of its number started later. -1 when it is gone. */
static int end_one(const struct sysroot *root, const struct leftover *l)
{
    AUTO_FD int fd = pidfd_open(l->pid, 0);
    struct proc_stat st;

    if (fd < 0 || !process_stat(root, l->pid, &st) || st.start_ticks != l->start_ticks)
        return -1;
    if (pidfd_send_signal(fd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
        return -1;
    return fd_steal(&fd);
}

static int ms_until(uint64_t deadline_ns)
{
    uint64_t now = clock_monotonic_ns();

    return now < deadline_ns ? (int) ((deadline_ns - now) / 1000000U) + 1 : 0;
}

/* Returns how many were ended. */
static size_t end_certain(const struct sysroot *root, const struct leftovers *l,
                          uint64_t deadline_ns)
{
    int fds[AT_ONCE];
    size_t n = 0;

    for (size_t i = 0; i < l->n && n < AT_ONCE; i++) {
        int fd = l->items[i].certain ? end_one(root, &l->items[i]) : -1;

        if (fd >= 0)
            fds[n++] = fd;
    }
    for (size_t i = 0; i < n; i++) {
        struct pollfd p = {.fd = fds[i], .events = POLLIN};

        /* Early or late, the next look says who is still there. */
        (void) poll(&p, 1, ms_until(deadline_ns));
        (void) close(fds[i]);
    }
    return n;
}

static int refuse(const struct leftovers *l, struct err *e)
{
    AUTO_BUF struct buf numbers = {.data = NULL};
    char names[160];

    leftovers_list(l, TOLD, names, sizeof(names));
    buf_init(&numbers, LIMIT_KIB(4));
    for (size_t i = 0; i < l->n && i < TOLD; i++)
        buf_printf(&numbers, " %d", (int) l->items[i].pid);
    return err_set(e, ERR_BUSY, "run.leftovers",
                   "an earlier run whose runner was killed is still at work beside this one: %s; "
                   "wait for its end or end it (kill -9%s), then run again",
                   names, numbers.data ? numbers.data : "");
}

/* Keeps the first names, for the talk. The certain ones stand first. */
static void remember(struct leftovers_ended *ended, const struct leftovers *l, size_t n)
{
    const struct leftovers these = {.items = l->items, .n = n};

    if (ended->n == 0 && n > 0)
        leftovers_list(&these, TOLD, ended->names, sizeof(ended->names));
    ended->n += n;
}

int leftovers_end(const struct sysroot *root, const struct machine_program *last,
                  struct leftovers_ended *out, struct err *e)
{
    uint64_t deadline_ns = clock_monotonic_ns() + PATIENCE_MS * (uint64_t) 1000000U;
    struct leftovers_ended ended = {.n = 0};

    for (;;) {
        AUTO_LEFTOVERS struct leftovers l = {.items = NULL};
        struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};

        if (leftovers_find(root, last, &l, e) < 0)
            return -1;
        if (l.n == 0)
            break;
        size_t n = end_certain(root, &l, deadline_ns);

        remember(&ended, &l, n);
        if (ms_until(deadline_ns) == 0)
            return refuse(&l, e);
        if (n == 0)
            (void) nanosleep(&pause, NULL);
    }
    *out = ended;
    return 0;
}
