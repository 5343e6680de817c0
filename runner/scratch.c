#include "runner/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/file.h"
#include "runner/paths.h"
#include "runner/rundir.h"

#define SCRATCH_DIR "scratch"
#define PREFIX "tmp-"
#define TRIES 8

/* Where new directories go; heap, ends with the template's prefix. */
static char *template_below(const char *state)
{
    AUTO_FREE char *parent = NULL;
    struct err ignored = ERR_INIT; /* an unusable state directory means /tmp */
    char *made = NULL;

    if (state && asprintf(&parent, "%s/" SCRATCH_DIR, state) < 0) {
        parent = NULL;
        return NULL;
    }
    if (parent &&
        (paths_mkdirs(parent, 0700, &ignored) < 0 || faccessat(AT_FDCWD, parent, W_OK, 0) < 0)) {
        free(parent);
        parent = NULL;
    }
    if (asprintf(&made, "%s/" PREFIX "XXXXXX", parent ? parent : "/tmp") < 0)
        return NULL;
    return made;
}

/* A sweeper may come between making and locking: what it removed has no links any more. */
static bool lock(int fd)
{
    struct stat st;

    return fd >= 0 && flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0;
}

int scratch_open(const char *state, struct scratch *out, struct err *e)
{
    for (int i = 0; i < TRIES; i++) {
        AUTO_FREE char *path = template_below(state);

        if (!path)
            return err_memory(e, "scratch.memory");
        if (!mkdtemp(path))
            return err_errno(e, "scratch.create", "cannot make a temporary directory");
        AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (!lock(fd))
            continue;
        *out = (struct scratch){.path = STEAL(path), .fd = fd_steal(&fd)};
        return 0;
    }
    return err_set(e, ERR_BUSY, "scratch.create", "cannot keep a temporary directory");
}

void scratch_close(struct scratch *s)
{
    struct err ignored = ERR_INIT; /* what is left is swept at the next start */

    if (!s->path)
        return;
    if (paths_remove_tree(s->path, &ignored) < 0)
        ignored = (struct err) ERR_INIT;
    (void) close(s->fd); /* a directory that was only locked */
    free(s->path);
    *s = (struct scratch){.fd = -1};
}

size_t scratch_sweep(const char *state, bool dry_run)
{
    AUTO_FREE char *path = NULL;
    size_t found = 0;
    DIR *dir;

    if (asprintf(&path, "%s/" SCRATCH_DIR, state) < 0) {
        path = NULL;
        return 0;
    }
    dir = opendir(path);
    for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
        struct err ignored = ERR_INIT; /* tried again at the next start */

        if (!strncmp(d->d_name, PREFIX, strlen(PREFIX)) &&
            rundir_is_abandoned(dirfd(dir), d->d_name) &&
            (dry_run || file_remove_tree_at(dirfd(dir), d->d_name, &ignored) == 0))
            found++;
    }
    if (dir)
        (void) closedir(dir); /* was only read */
    return found;
}
