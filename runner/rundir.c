#include "runner/rundir.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/text.h"
#include "runner/paths.h"

#define PARTIAL ".partial"

int rundir_new_id(int64_t started_us, char out[RUN_ID_SIZE], struct err *e)
{
    uint8_t bytes[4];
    char stamp[CLOCK_RFC3339_SIZE];
    char hex[9];

    if (random_bytes(bytes, sizeof(bytes), e) < 0)
        return -1;
    text_hex(bytes, sizeof(bytes), hex);
    clock_compact(started_us, stamp);
    (void) snprintf(out, RUN_ID_SIZE, "%.16s-%s", stamp, hex); /* 16 + 1 + 8 */
    return 0;
}

bool rundir_is_abandoned(int parent_fd, const char *name)
{
    AUTO_FD int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static int split_path(const char *path, struct rundir *d, struct err *e)
{
    AUTO_FREE char *copy = strdup(path);
    AUTO_FREE char *parent = NULL;
    AUTO_FREE char *real = NULL;
    char *slash;

    if (!copy)
        return err_memory(e, "rundir.memory");
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = '\0';
    slash = strrchr(copy, '/');
    d->name = strdup(slash ? slash + 1 : copy);
    parent = slash ? strndup(copy, slash == copy ? 1 : (size_t) (slash - copy)) : strdup(".");
    if (!d->name || !parent)
        return err_memory(e, "rundir.memory");
    if (!*d->name || !strcmp(d->name, ".") || !strcmp(d->name, ".."))
        return err_set(e, ERR_USAGE, "rundir.name", "'%s' can't name a run directory", path);
    if (paths_mkdirs(parent, 0755, e) < 0 || file_open_dir(parent, &d->parent_fd, e) < 0)
        return -1;
    real = realpath(parent, NULL);
    if (!real)
        return err_errno(e, "rundir.parent", "cannot open '%s'", parent);
    if (asprintf(&d->path, "%s/%s", real, d->name) < 0) {
        d->path = NULL;
        return err_memory(e, "rundir.memory");
    }
    if (asprintf(&d->partial, "%s" PARTIAL, d->name) < 0) {
        d->partial = NULL;
        return err_memory(e, "rundir.memory");
    }
    return 0;
}

/* Names that a run gives at the top of its directory. */
static bool is_name_of_run(const char *name)
{
    static const char *const names[] = {"acceptance.json",
                                        "audit.json",
                                        "audit.md",
                                        "baseline",
                                        "build-messages.jsonl",
                                        "build.log",
                                        RUNDIR_DEFINITION,
                                        "environment.json",
                                        RUNDIR_ERROR,
                                        "host.json",
                                        "manifest.json",
                                        "profile",
                                        "results",
                                        "run.log",
                                        "samples",
                                        "snapshots",
                                        "snapshots.json",
                                        "source-at-end.json",
                                        RUNDIR_SOURCE_AT_START};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(names[i], name))
            return true;
    return !strncmp(name, FILE_TEMPORARY_PREFIX, strlen(FILE_TEMPORARY_PREFIX));
}

/* What a dead runner left, and not a directory that somebody else called "….partial". */
static bool holds_only_a_run(int parent_fd, const char *name)
{
    DIR *dir = paths_open_dir(parent_fd, name);
    bool only = true;

    if (!dir)
        return false;
    for (const struct dirent *d = readdir(dir); d && only; d = readdir(dir))
        only = !strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") || is_name_of_run(d->d_name);
    (void) closedir(dir); /* was only read */
    return only;
}

static int make_partial(struct rundir *d, struct err *e)
{
    struct stat st;

    assert(d->name && d->partial); /* split_path succeeded */
    if (fstatat(d->parent_fd, d->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(e, ERR_USAGE, "rundir.exists", "'%s' exists already", d->path);
    if (fstatat(d->parent_fd, d->partial, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!rundir_is_abandoned(d->parent_fd, d->partial))
            return err_set(e, ERR_BUSY, "rundir.busy", "another runner is writing '%s'", d->path);
        if (!holds_only_a_run(d->parent_fd, d->partial))
            return err_set(e, ERR_USAGE, "rundir.partial",
                           "'%s" PARTIAL "' exists and is not what an unfinished run left: move it "
                           "away, or name another directory",
                           d->path);
        if (file_remove_tree_at(d->parent_fd, d->partial, e) < 0)
            return -1;
    }
    if (mkdirat(d->parent_fd, d->partial, 0755) < 0)
        return err_errno(e, "rundir.create", "cannot create '%s'", d->path);
    d->fd = openat(d->parent_fd, d->partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (d->fd < 0 || flock(d->fd, LOCK_EX | LOCK_NB) < 0)
        return err_errno(e, "rundir.lock", "cannot lock '%s'", d->path);
    return 0;
}

int rundir_open(const char *path, struct rundir *out, struct err *e)
{
    struct rundir d = {.parent_fd = -1, .fd = -1};

    if (split_path(path, &d, e) < 0 || make_partial(&d, e) < 0) {
        d.committed = d.fd < 0; /* nothing of ours to remove */
        rundir_close(&d);
        return -1;
    }
    *out = d;
    return 0;
}

int rundir_restore(struct rundir *d, bool *out_moved, struct err *e)
{
    struct stat named, open;

    if (fstat(d->fd, &open) < 0)
        return err_errno(e, "rundir.look", "cannot look at '%s'", d->path);
    *out_moved = fstatat(d->parent_fd, d->partial, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
                 named.st_dev != open.st_dev || named.st_ino != open.st_ino;
    if (!*out_moved)
        return 0;
    if (file_remove_tree_at(d->parent_fd, d->partial, e) < 0)
        return -1;
    (void) close(fd_steal(&d->fd)); /* of no use any more: it has no name of ours */
    return make_partial(d, e);
}

/* The file, and every directory on its way. */
static int sync_path(int root_fd, const char *name, struct err *e)
{
    AUTO_FREE char *copy = strdup(name);
    AUTO_FD int fd = openat(root_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (!copy)
        return err_memory(e, "rundir.memory");
    if (fd < 0 || fsync(fd) < 0)
        return err_errno(e, "rundir.sync", "cannot make '%s' durable", name);
    for (char *slash = strrchr(copy, '/'); slash; slash = strrchr(copy, '/')) {
        *slash = '\0';
        AUTO_FD int dir = openat(root_fd, copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (dir < 0 || fsync(dir) < 0)
            return err_errno(e, "rundir.sync", "cannot make '%s' durable", copy);
    }
    return 0;
}

int rundir_write_json(const struct rundir *d, const char *name, const cJSON *j, size_t max,
                      struct err *e)
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, max);
    json_write(&b, j, JSON_PRETTY);
    if (buf_check(&b, e) < 0)
        return err_wrap(e, "%s", name);
    return file_write_at(d->fd, name, b.data, b.len, 0644, e);
}

int rundir_commit(struct rundir *d, struct err *e)
{
    AUTO_FILE_LIST struct file_list list = {.n = 0};

    if (file_list_at(d->fd, LIMIT_MEMBERS, &list, e) < 0)
        return -1;
    for (size_t i = 0; i < list.n; i++)
        if (sync_path(d->fd, list.names[i], e) < 0)
            return -1;
    if (file_sync_dir(d->fd, e) < 0)
        return -1;
    if (renameat2(d->parent_fd, d->partial, d->parent_fd, d->name, RENAME_NOREPLACE) < 0)
        return err_errno(e, "rundir.rename", "cannot name '%s'", d->path);
    d->committed = true;
    return file_sync_dir(d->parent_fd, e);
}

void rundir_close(struct rundir *d)
{
    struct err ignored = ERR_INIT; /* what is left is swept at the next start */

    if (d->path && !d->committed && d->parent_fd >= 0 && d->partial &&
        file_remove_tree_at(d->parent_fd, d->partial, &ignored) < 0)
        d->committed = false;
    if (d->path && d->fd >= 0)
        (void) close(d->fd); /* synced by commit, or removed */
    if (d->name && d->parent_fd >= 0)
        (void) close(d->parent_fd);
    free(d->path);
    free(d->name);
    free(d->partial);
    *d = (struct rundir){.parent_fd = -1, .fd = -1};
}

static bool is_partial_run(const char *name)
{
    size_t n = strlen(name), tail = strlen(PARTIAL);
    char id[RUN_ID_SIZE];

    if (n != RUN_ID_SIZE - 1 + tail || strcmp(name + n - tail, PARTIAL) != 0)
        return false;
    memcpy(id, name, RUN_ID_SIZE - 1);
    id[RUN_ID_SIZE - 1] = '\0';
    return text_is_run_id(id);
}

size_t rundir_sweep(const char *path)
{
    DIR *dir = opendir(path);
    size_t removed = 0;

    if (!dir)
        return 0;
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        struct err ignored = ERR_INIT; /* tried again at the next start */

        if (is_partial_run(d->d_name) && rundir_is_abandoned(dirfd(dir), d->d_name) &&
            file_remove_tree_at(dirfd(dir), d->d_name, &ignored) == 0)
            removed++;
    }
    (void) closedir(dir); /* was only read */
    return removed;
}
