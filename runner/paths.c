#include "runner/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"

#define CHUNK 4096

int paths_mkdirs(const char *path, unsigned mode, struct err *e)
{
    AUTO_FREE char *copy = strdup(path);

    if (!copy)
        return err_memory(e, "paths.memory");
    for (char *p = copy + (*copy == '/' ? 1 : 0);; p++) {
        char was = *p;

        if (was != '/' && was != '\0')
            continue;
        *p = '\0';
        if (*copy && mkdir(copy, (mode_t) mode) < 0 && errno != EEXIST)
            return err_errno(e, "paths.mkdir", "cannot make directory '%s'", copy);
        *p = was;
        if (was == '\0')
            return 0;
    }
}

int paths_remove_tree(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *parent =
        slash ? strndup(path, slash == path ? 1 : (size_t) (slash - path)) : strdup(".");
    AUTO_FD int fd = -1;

    if (!parent)
        return err_memory(e, "paths.memory");
    fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return err_errno(e, "paths.remove", "cannot open '%s'", parent);
    return file_remove_tree_at(fd, slash ? slash + 1 : path, e);
}

DIR *paths_open_dir(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int why = errno;

    if (!dir && fd >= 0)
        (void) close(fd); /* was not read */
    errno = why;
    return dir;
}

char *paths_read_pseudo(int dirfd, const char *path, size_t max)
{
    char bytes[CHUNK];
    AUTO_FD int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, max);
    if (fd < 0)
        return NULL;
    for (;;) {
        ssize_t n = read(fd, bytes, sizeof(bytes));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return NULL;
        if (n == 0)
            break;
        buf_put(&b, bytes, (size_t) n);
    }
    buf_puts(&b, "");
    return b.failed ? NULL : buf_take(&b, NULL);
}
