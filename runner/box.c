#include "runner/box.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <time.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/num.h"

#define BOX_FILE_MAX 8192
#define REMOVE_TRIES 50

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
static int open_root(const char *mount)
{
    AUTO_FD int root = open_dir(AT_FDCWD, mount);
    AUTO_FD int unified = -1;

    if (root < 0 || faccessat(root, "cgroup.controllers", R_OK, 0) == 0)
        return fd_steal(&root);
    unified = open_dir(root, "unified");
    if (unified < 0 || faccessat(unified, "cgroup.controllers", R_OK, 0) < 0)
        return -1;
    return fd_steal(&unified);
}

void box_open(struct box *b, const char *mount, const char *self, const char *name)
{
    char group[512];
    char why[160];
    struct box made;

    box_none(&made, "");
    AUTO_FD int root = open_root(mount);

    if (root < 0) {
        box_none(b, "no cgroup v2 is mounted");
        return;
    }
    if (!own_group(self, group, sizeof(group))) {
        box_none(b, "this process is in no cgroup v2");
        return;
    }
    made.parent_fd = open_dir(root, group);
    (void) snprintf(made.name, sizeof(made.name), "%s", name); /* our own run id: fits */
    if (made.parent_fd < 0 || mkdirat(made.parent_fd, made.name, 0755) < 0) {
        (void) snprintf(why, sizeof(why), "cannot make a group: %s", strerrordesc_np(errno));
        if (made.parent_fd >= 0)
            (void) close(made.parent_fd);
        box_none(b, why);
        return;
    }
    made.dir_fd = open_dir(made.parent_fd, made.name);
    if (made.dir_fd >= 0)
        made.procs_fd = openat(made.dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (made.procs_fd < 0) {
        (void) snprintf(why, sizeof(why), "cannot use the group: %s", strerrordesc_np(errno));
        box_close(&made);
        box_none(b, why);
        return;
    }
    *b = made;
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
