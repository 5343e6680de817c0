#include "tests/lib/syncs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/support.h"

#define EVENTS 4096
/* SQLite, a shared library, must find them too. */
#define EVERYBODYS __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sync_event events[EVENTS];
static char root[PATH_MAX];
static size_t n_events;
static size_t n_syncs;
static size_t fail_from;
static size_t fail_to;
static bool on;

void syncs_begin(const char *dir)
{
    (void) pthread_mutex_lock(&lock);
    assert_non_null(realpath(dir, root));
    n_events = 0;
    n_syncs = 0;
    fail_from = 0;
    fail_to = 0;
    on = true;
    (void) pthread_mutex_unlock(&lock);
}

void syncs_fail(size_t from, size_t to)
{
    (void) pthread_mutex_lock(&lock);
    fail_from = n_syncs + from;
    fail_to = to > SIZE_MAX - n_syncs ? SIZE_MAX : n_syncs + to;
    (void) pthread_mutex_unlock(&lock);
}

void syncs_end(void)
{
    (void) pthread_mutex_lock(&lock);
    on = false;
    (void) pthread_mutex_unlock(&lock);
}

size_t syncs_count(void)
{
    return n_events;
}

const struct sync_event *syncs_at(size_t i)
{
    return i < n_events ? &events[i] : NULL;
}

size_t syncs_find(size_t from, enum sync_kind kind, const char *path)
{
    for (size_t i = from; i < n_events; i++) {
        const char *p = events[i].path;

        if (events[i].kind == kind &&
            (path[0] == '=' ? strcmp(p, path + 1) == 0 : strncmp(p, path, strlen(path)) == 0))
            return i;
    }
    for (size_t i = 0; i < n_events; i++)
        print_message("%zu %s %s\n", i, events[i].kind == SYNC_BYTES ? "sync" : "rename",
                      events[i].path);
    fail_msg("no %s of %s from event %zu on", kind == SYNC_BYTES ? "sync" : "rename", path, from);
    return 0;
}

/* Writes it down when it lies below the root. */
static bool note(enum sync_kind kind, int fd, const char *name)
{
    char link[64];
    char path[PATH_MAX] = "";
    ssize_t n = 0;
    size_t len = strlen(root);

    (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    if (n < 0 || strncmp(path, root, len) != 0 || (path[len] != '/' && path[len] != '\0'))
        return false;
    if (n_events < EVENTS) {
        struct sync_event *e = &events[n_events++];
        const char *below = path[len] == '/' ? path + len + 1 : ".";

        e->kind = kind;
        (void) snprintf(e->path, sizeof e->path, "%.180s%s%.70s",
                        name && below[0] == '.' ? "" : below, name && below[0] != '.' ? "/" : "",
                        name ? name : "");
    }
    return true;
}

/* Whether this sync is one of those that fail. */
static bool noted_sync_fails(int fd)
{
    bool fails = false;

    (void) pthread_mutex_lock(&lock);
    if (on && note(SYNC_BYTES, fd, NULL)) {
        fails = n_syncs >= fail_from && n_syncs < fail_to;
        n_syncs++;
    }
    (void) pthread_mutex_unlock(&lock);
    return fails;
}

static int failed(void)
{
    errno = EIO;
    return -1;
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's are reserved */
EVERYBODYS int fsync(int fd)
{
    return noted_sync_fails(fd) ? failed() : (int) syscall(SYS_fsync, fd);
}

EVERYBODYS int fdatasync(int fd)
{
    return noted_sync_fails(fd) ? failed() : (int) syscall(SYS_fdatasync, fd);
}

static void note_rename(int rc, int dirfd, const char *name)
{
    (void) pthread_mutex_lock(&lock);
    if (on && rc == 0)
        (void) note(SYNC_RENAME, dirfd, name);
    (void) pthread_mutex_unlock(&lock);
}

EVERYBODYS int renameat(int from, const char *old, int to, const char *name)
{
    int rc = (int) syscall(SYS_renameat2, from, old, to, name, 0);

    note_rename(rc, to, name);
    return rc;
}

EVERYBODYS int renameat2(int from, const char *old, int to, const char *name, unsigned flags)
{
    int rc = (int) syscall(SYS_renameat2, from, old, to, name, flags);

    note_rename(rc, to, name);
    return rc;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
