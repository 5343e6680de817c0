#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_open.h"

#define READ_FIRST ((size_t) 16 << 10)

int file_open_beneath(int dirfd, const char *name, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t) (unsigned) (flags | O_CLOEXEC),
        .mode = (flags & O_CREAT) != 0 ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };
    long fd = -1;

    do
        fd = syscall(SYS_openat2, dirfd, name, &how, sizeof(how));
    while (fd < 0 &&
           (errno == EINTR || errno == EAGAIN)); /* EAGAIN: a rename raced with the walk */
    return (int) fd;
}

int file_open_parent(int dirfd, const char *name, const char **out_base)
{
    const char *slash = strrchr(name, '/');
    AUTO_FREE char *parent = NULL;

    *out_base = slash ? slash + 1 : name;
    if (**out_base == '\0' || strcmp(*out_base, ".") == 0 || strcmp(*out_base, "..") == 0 ||
        slash == name) {
        errno = EINVAL;
        return -1;
    }
    parent = slash ? strndup(name, (size_t) (slash - name)) : strdup(".");
    if (!parent)
        return -1;
    return file_open_beneath(dirfd, parent, O_RDONLY | O_DIRECTORY, 0);
}

int file_open_dir(const char *path, int *out_fd, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_errno(e, "file.directory", "cannot open directory '%s'", path);
    *out_fd = fd;
    return 0;
}

int file_open_dir_at(int dirfd, const char *name, int *out_fd, struct err *e)
{
    int fd = file_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);

    if (fd < 0)
        return err_errno(e, "file.directory", "cannot open directory '%s'", name);
    *out_fd = fd;
    return 0;
}

int file_open_at(int dirfd, const char *name, int *out_fd, uint64_t *out_size, struct err *e)
{
    struct stat st;
    AUTO_FD int fd = file_open_beneath(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

    if (fd < 0)
        return err_errno(e, "file.open", "cannot open '%s'", name);
    if (fstat(fd, &st) < 0)
        return err_errno(e, "file.open", "cannot look at '%s'", name);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INPUT, "file.type", "'%s' is not a regular file", name);
    *out_size = (uint64_t) st.st_size;
    *out_fd = fd_steal(&fd);
    return 0;
}

/* Everything up to end of file; `first` is the expected size. */
static int read_stream(int fd, const char *name, size_t first, size_t max, char **out,
                       size_t *out_len, struct err *e)
{
    size_t cap = (first < max ? first : max) + 1;
    size_t len = 0;
    AUTO_FREE char *bytes = malloc(cap + 1);

    for (;;) {
        ssize_t got = 0;

        if (!bytes)
            return err_set(e, ERR_NOMEM, "file.memory", "no memory to read '%s'", name);
        got = read(fd, bytes + len, cap - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(e, "file.read", "cannot read '%s'", name);
        if (got == 0)
            break;
        len += (size_t) got;
        if (len > max)
            return err_set(e, ERR_LIMIT, "file.size", "'%s' is larger than %zu bytes", name, max);
        if (len == cap) {
            char *more = NULL;

            cap = cap > max / 2 ? max + 1 : cap * 2;
            more = realloc(bytes, cap + 1);
            if (!more)
                return err_set(e, ERR_NOMEM, "file.memory", "no memory to read '%s'", name);
            bytes = more;
        }
    }
    bytes[len] = '\0';
    *out_len = len;
    *out = STEAL(bytes);
    return 0;
}

static int read_sized(int fd, const char *name, uint64_t size, size_t max, char **out,
                      size_t *out_len, struct err *e)
{
    if (size > max)
        return err_set(e, ERR_LIMIT, "file.size", "'%s' is larger than %zu bytes", name, max);
    return read_stream(fd, name, (size_t) size, max, out, out_len, e);
}

int file_read_at(int dirfd, const char *name, size_t max, char **out, size_t *out_len,
                 struct err *e)
{
    AUTO_FD int fd = -1;
    uint64_t size = 0;

    if (file_open_at(dirfd, name, &fd, &size, e) < 0)
        return -1;
    return read_sized(fd, name, size, max, out, out_len, e);
}

int file_open(const char *path, int *out_fd, uint64_t *out_size, struct err *e)
{
    struct stat st;
    /* Not blocking: opening a pipe that nobody writes would wait for ever. */
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0)
        return err_errno(e, "file.open", "cannot open '%s'", path);
    if (fstat(fd, &st) < 0)
        return err_errno(e, "file.open", "cannot look at '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_USAGE, "file.type", "'%s' is %s, not a regular file", path,
                       S_ISDIR(st.st_mode)    ? "a directory"
                       : S_ISFIFO(st.st_mode) ? "a pipe"
                                              : "a device");
    *out_size = (uint64_t) st.st_size;
    *out_fd = fd_steal(&fd);
    return 0;
}

int file_read(const char *path, size_t max, char **out, size_t *out_len, struct err *e)
{
    AUTO_FD int fd = -1;
    uint64_t size = 0;

    if (strcmp(path, "-") == 0)
        return read_stream(STDIN_FILENO, "standard input", READ_FIRST, max, out, out_len, e);
    if (file_open(path, &fd, &size, e) < 0)
        return -1;
    return read_sized(fd, path, size, max, out, out_len, e);
}

int file_read_pseudo_at(int dirfd, const char *name, size_t max, char **out, size_t *out_len,
                        struct err *e)
{
    AUTO_FD int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return err_errno(e, "file.open", "cannot open '%s'", name);
    return read_stream(fd, name, READ_FIRST, max, out, out_len, e);
}

int file_sync_dir(int dirfd, struct err *e)
{
    if (fsync(dirfd) < 0 && errno != EINVAL) /* some file systems cannot sync a directory */
        return err_errno(e, "file.sync", "cannot sync a directory");
    return 0;
}
