#include "runner/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"

#define BOX_FILE_MAX 8192
#define REMOVE_TRIES 50
#define MAKE_TRIES 3
#define GROUP_MAX 512
#define PREFIX "cleanrun-" /* of groups whose maker holds a lock on them */

void box_none(struct box *b, const char *why)
{
    *b = (struct box){.dir_fd = -1, .parent_fd = -1, .procs_fd = -1};
    (void) snprintf(b->why_not, sizeof(b->why_not), "%s", why); /* a cut reason still explains */
}

bool box_present(const struct box *b)
{
    return b->dir_fd >= 0;
}

/* The path of the "0::" line of /proc/PID/cgroup, without its leading '/'. False: no v2 group. */
static bool own_group(const char *self, char *out, size_t size)
{
    for (const char *line = self; line && *line;) {
        size_t len = strcspn(line, "\n");

        if (len >= 4 && !strncmp(line, "0::/", 4)) {
            if (len - 4 >= size)
                return false;
            memcpy(out, line + 4, len - 4);
            out[len - 4] = '\0';
            return !strstr(out, "..");
        }
        line += len + (line[len] == '\n' ? 1 : 0);
    }
    return false;
}

static int open_dir(int at, const char *name)
{
    return openat(at, *name ? name : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The root of the cgroup v2 tree: the mount itself, or "unified" in it where v1 is mounted beside
 * it (systemd's hybrid layout). -1: there is none. */
static int open_root(int at, const char *mount)
{
    AUTO_FD int root = open_dir(at, mount);
    AUTO_FD int unified = -1;

    if (root < 0 || faccessat(root, "cgroup.controllers", R_OK, 0) == 0)
        return fd_steal(&root);
    unified = open_dir(root, "unified");
    if (unified < 0 || faccessat(unified, "cgroup.controllers", R_OK, 0) < 0)
        return -1;
    return fd_steal(&unified);
}

/* Makes the group and locks it. A sweeper may come between the two: what it removed can't be used
 * any more, and is made again. False with errno. */
static bool make(struct box *b)
{
    for (int i = 0; i < MAKE_TRIES; i++) {
        if (mkdirat(b->parent_fd, b->name, 0755) < 0)
            return false;
        b->dir_fd = open_dir(b->parent_fd, b->name);
        if (b->dir_fd >= 0 && flock(b->dir_fd, LOCK_EX) == 0)
            b->procs_fd = openat(b->dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        if (b->procs_fd >= 0)
            return true;
        if (faccessat(b->parent_fd, b->name, F_OK, 0) == 0)
            return false;
        if (b->dir_fd >= 0)
            (void) close(fd_steal(&b->dir_fd)); /* a directory that is no more */
    }
    return false;
}

void box_open(struct box *b, const char *mount, const char *self, const char *run)
{
    char group[GROUP_MAX];
    char why[160];
    struct box made;

    box_none(&made, "");
    AUTO_FD int root = open_root(AT_FDCWD, mount);

    if (root < 0) {
        box_none(b, "no cgroup v2 is mounted");
        return;
    }
    if (!own_group(self, group, sizeof(group))) {
        box_none(b, "this process is in no cgroup v2");
        return;
    }
    made.parent_fd = open_dir(root, group);
    (void) snprintf(made.name, sizeof(made.name), PREFIX "%s", run); /* a run id: fits */
    if (made.parent_fd < 0 || !make(&made)) {
        (void) snprintf(why, sizeof(why), "cannot %s group: %s",
                        made.dir_fd < 0 ? "make a" : "use the", strerrordesc_np(errno));
        if (made.dir_fd >= 0)
            box_close(&made);
        else if (made.parent_fd >= 0)
            (void) close(made.parent_fd);
        box_none(b, why);
        return;
    }
    *b = made;
}

/* A box, this user's, and nobody holds it. The lock is released again. */
static bool is_left(int parent_fd, const char *name)
{
    struct stat st;

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || !text_is_run_id(name + strlen(PREFIX)))
        return false;
    AUTO_FD int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
           flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* group[0..at) and the segment behind it. */
static bool segment_is_left(int root, char *group, size_t at, size_t len)
{
    char end = group[at + len];
    AUTO_FD int parent = -1;
    bool left;

    group[at + len] = '\0';
    if (at > 0)
        group[at - 1] = '\0';
    parent = open_dir(root, at > 0 ? group : "");
    left = parent >= 0 && is_left(parent, group + at);
    group[at + len] = end;
    if (at > 0)
        group[at - 1] = '/';
    return left;
}

bool box_is_left(int mount_fd, const char *self)
{
    char group[GROUP_MAX];
    AUTO_FD int root = -1;

    if (mount_fd < 0 || !own_group(self, group, sizeof(group)))
        return false;
    root = open_root(mount_fd, "");
    for (size_t at = 0, len; root >= 0 && group[at]; at += len + (group[at + len] == '/' ? 1 : 0)) {
        len = strcspn(group + at, "/");
        if (segment_is_left(root, group, at, len))
            return true;
    }
    return false;
}

void box_sweep(int mount_fd, const char *self)
{
    char group[GROUP_MAX];
    AUTO_FD int root = mount_fd < 0 ? -1 : open_root(mount_fd, "");
    AUTO_FD int parent = -1;
    DIR *dir;

    if (root < 0 || !own_group(self, group, sizeof(group)))
        return;
    parent = open_dir(root, group);
    dir = parent < 0 ? NULL : fdopendir(parent);
    if (!dir)
        return;
    for (const struct dirent *d = readdir(dir); d; d = readdir(dir))
        if (is_left(dirfd(dir), d->d_name))
            (void) unlinkat(dirfd(dir), d->d_name, AT_REMOVEDIR); /* EBUSY: not empty, stays */
    (void) fd_steal(&parent);                                     /* closedir closes it */
    (void) closedir(dir);                                         /* was only read */
}

/* The number after `key` and a space on its own line. */
static bool find_number(const char *text, const char *key, uint64_t *out)
{
    size_t key_len = strlen(key);

    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");

        if (len > key_len + 1 && !strncmp(line, key, key_len) && line[key_len] == ' ')
            return num_parse_u64(line + key_len + 1, len - key_len - 1, UINT64_MAX, out);
        line += len + (line[len] == '\n' ? 1 : 0);
    }
    return false;
}

static char *read_file(const struct box *b, const char *name)
{
    char *text = NULL;
    size_t len = 0;
    struct err ignored = ERR_INIT; /* an absent controller is not an error: the reading says so */

    if (file_read_pseudo_at(b->dir_fd, name, BOX_FILE_MAX, &text, &len, &ignored) < 0)
        return NULL;
    return text;
}

static bool read_number(const struct box *b, const char *name, uint64_t *out)
{
    AUTO_FREE char *text = read_file(b, name);

    return text && num_parse_u64(text, strcspn(text, "\n"), UINT64_MAX, out);
}

void box_read(const struct box *b, struct box_reading *out)
{
    struct box_reading r = {.has_cpu = false};

    *out = r;
    if (!box_present(b))
        return;
    AUTO_FREE char *cpu = read_file(b, "cpu.stat");
    AUTO_FREE char *events = read_file(b, "memory.events");

    if (cpu) {
        r.has_cpu = find_number(cpu, "usage_usec", &r.usage_us) &&
                    find_number(cpu, "user_usec", &r.user_us) &&
                    find_number(cpu, "system_usec", &r.system_us);
        r.has_throttle = find_number(cpu, "nr_throttled", &r.throttled_periods) &&
                         find_number(cpu, "throttled_usec", &r.throttled_us);
    }
    r.has_memory = read_number(b, "memory.current", &r.memory_current_bytes) &&
                   read_number(b, "memory.peak", &r.memory_peak_bytes);
    r.has_events = events && find_number(events, "oom_kill", &r.oom_kills);
    *out = r;
}

void box_kill(const struct box *b)
{
    if (!box_present(b))
        return;
    AUTO_FD int fd = openat(b->dir_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && write(fd, "1", 1) != 1) {
        /* An old kernel: the process group and the orphans are killed as well, so nothing is lost.
         */
    }
}

void box_close(struct box *b)
{
    if (b->procs_fd >= 0)
        (void) close(b->procs_fd);
    if (b->dir_fd >= 0)
        (void) close(b->dir_fd);
    if (b->parent_fd >= 0) {
        /* The kernel empties a killed group a moment later. */
        for (int i = 0; i < REMOVE_TRIES; i++) {
            struct timespec pause = {.tv_nsec = 2000000};

            if (unlinkat(b->parent_fd, b->name, AT_REMOVEDIR) == 0 || errno != EBUSY)
                break;
            (void) nanosleep(&pause, NULL);
        }
        (void) close(b->parent_fd);
    }
    *b = (struct box){.dir_fd = -1, .parent_fd = -1, .procs_fd = -1};
}
