/* The writing half of file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_open.h"
#include "base/random.h"
#include "base/text.h"

#define COPY_BLOCK ((size_t) 128 << 10)
#define TEMPORARY_SIZE (sizeof(FILE_TEMPORARY_PREFIX) + 16)

/* A file being written: under a temporary name until it is complete. */
struct pending {
    int dirfd; /* directory of the final name */
    int fd;
    const char *base; /* final name in dirfd; borrowed */
    char temporary[TEMPORARY_SIZE];
};

#define PENDING_INIT                                                                               \
    {                                                                                              \
        .dirfd = -1, .fd = -1, .base = "", .temporary = ""                                         \
    }

static void pending_fini(struct pending *p)
{
    if (p->fd >= 0)
        (void) close(p->fd); /* given up, or already synced */
    if (p->temporary[0] != '\0')
        (void) unlinkat(p->dirfd, p->temporary, 0); /* nothing more can be done about a leftover */
    if (p->dirfd >= 0)
        (void) close(p->dirfd);
}

#define AUTO_PENDING __attribute__((cleanup(pending_fini)))

static int pending_open(struct pending *p, int dirfd, const char *name, struct err *e)
{
    uint8_t random[8];

    p->dirfd = file_open_parent(dirfd, name, &p->base);
    if (p->dirfd < 0)
        return err_errno(e, "file.directory", "cannot open the directory of '%s'", name);
    if (random_bytes(random, sizeof(random), e) < 0)
        return -1;
    memcpy(p->temporary, FILE_TEMPORARY_PREFIX, sizeof(FILE_TEMPORARY_PREFIX));
    text_hex(random, sizeof(random), p->temporary + sizeof(FILE_TEMPORARY_PREFIX) - 1);
    p->fd =
        openat(p->dirfd, p->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (p->fd < 0) {
        p->temporary[0] = '\0';
        return err_errno(e, "file.create", "cannot create '%s'", name);
    }
    return 0;
}

/* Gives the complete file its name without replacing another. */
static int rename_new(const struct pending *p)
{
    if (renameat2(p->dirfd, p->temporary, p->dirfd, p->base, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* A file system without that flag: a hard link never replaces. */
    if (linkat(p->dirfd, p->temporary, p->dirfd, p->base, 0) < 0)
        return -1;
    return unlinkat(p->dirfd, p->temporary, 0);
}

static int pending_commit(struct pending *p, mode_t mode, bool replace, struct err *e)
{
    int result = 0;

    if (fchmod(p->fd, mode) < 0 || fsync(p->fd) < 0)
        return err_errno(e, "file.sync", "cannot complete '%s'", p->base);
    if (close(fd_steal(&p->fd)) < 0)
        return err_errno(e, "file.sync", "cannot close '%s'", p->base);
    result = replace ? renameat(p->dirfd, p->temporary, p->dirfd, p->base) : rename_new(p);
    if (result < 0 && !replace && errno == EEXIST)
        return err_set(e, ERR_CONFLICT, "file.exists", "'%s' exists already", p->base);
    if (result < 0)
        return err_errno(e, "file.rename", "cannot name '%s'", p->base);
    p->temporary[0] = '\0';
    return file_sync_dir(p->dirfd, e);
}

int file_write_all(int fd, const void *p, size_t len, struct err *e)
{
    const char *bytes = p;

    while (len > 0) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "file.write", "cannot write");
        bytes += n;
        len -= (size_t) n;
    }
    return 0;
}

static int write_new(int dirfd, const char *name, const void *bytes, size_t len, mode_t mode,
                     bool replace, struct err *e)
{
    AUTO_PENDING struct pending p = PENDING_INIT;

    if (pending_open(&p, dirfd, name, e) < 0)
        return -1;
    if (file_write_all(p.fd, bytes, len, e) < 0)
        return err_wrap(e, "'%s'", name);
    return pending_commit(&p, mode, replace, e);
}

int file_write_at(int dirfd, const char *name, const void *p, size_t len, mode_t mode,
                  struct err *e)
{
    return write_new(dirfd, name, p, len, mode, true, e);
}

int file_create_at(int dirfd, const char *name, const void *p, size_t len, mode_t mode,
                   struct err *e)
{
    return write_new(dirfd, name, p, len, mode, false, e);
}

/* A pipe, terminal or device that the user named as a place for output. */
static int write_special(const char *path, const void *p, size_t len, struct err *e)
{
    AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return err_errno(e, "file.open", "cannot open '%s'", path);
    if (file_write_all(fd, p, len, e) < 0)
        return err_wrap(e, "'%s'", path);
    return 0;
}

int file_write(const char *path, const void *p, size_t len, mode_t mode, struct err *e)
{
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *parent =
        slash ? strndup(path, slash == path ? 1 : (size_t) (slash - path)) : strdup(".");
    AUTO_FD int dirfd = -1;
    struct stat st;

    if (!parent)
        return err_set(e, ERR_NOMEM, "file.memory", "no memory for a path");
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        if (S_ISDIR(st.st_mode))
            return err_set(e, ERR_USAGE, "file.type", "'%s' is a directory", path);
        return write_special(path, p, len, e);
    }
    if (file_open_dir(parent, &dirfd, e) < 0)
        return -1;
    return file_write_at(dirfd, slash ? slash + 1 : path, p, len, mode, e);
}

static int copy_bytes(int from, int to, struct err *e)
{
    AUTO_FREE char *block = malloc(COPY_BLOCK);

    if (!block)
        return err_set(e, ERR_NOMEM, "file.memory", "no memory to copy a file");
    for (;;) {
        ssize_t got = read(from, block, COPY_BLOCK);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(e, "file.read", "cannot read");
        if (got == 0)
            return 0;
        if (file_write_all(to, block, (size_t) got, e) < 0)
            return -1;
    }
}

int file_copy_at(int src_dirfd, const char *src, int dst_dirfd, const char *dst, mode_t mode,
                 struct err *e)
{
    AUTO_FD int from = -1;
    AUTO_PENDING struct pending p = PENDING_INIT;
    uint64_t size = 0;

    if (file_open_at(src_dirfd, src, &from, &size, e) < 0 ||
        pending_open(&p, dst_dirfd, dst, e) < 0)
        return -1;
    if (copy_bytes(from, p.fd, e) < 0)
        return err_wrap(e, "'%s' to '%s'", src, dst);
    return pending_commit(&p, mode, true, e);
}

/* One level: makes `name` in dirfd when it is missing, and opens it. */
static int make_and_open(int dirfd, const char *name, mode_t mode)
{
    if (mkdirat(dirfd, name, mode) == 0) {
        if (fsync(dirfd) < 0 && errno != EINVAL)
            return -1;
    } else if (errno != EEXIST) {
        return -1;
    }
    return file_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
}

int file_mkdirs_at(int dirfd, const char *path, mode_t mode, struct err *e)
{
    AUTO_FREE char *copy = strdup(path);
    AUTO_FD int fd = -1;
    char *segment = copy;

    if (!copy)
        return err_set(e, ERR_NOMEM, "file.memory", "no memory for a path");
    while (segment && *segment != '\0') {
        char *slash = strchr(segment, '/');
        int next = -1;

        if (slash)
            *slash = '\0';
        if (*segment == '\0' || strcmp(segment, "..") == 0)
            return err_set(e, ERR_INPUT, "file.name", "'%s' is no path below a directory", path);
        next = make_and_open(fd >= 0 ? fd : dirfd, segment, mode);
        if (next < 0)
            return err_errno(e, "file.mkdir", "cannot make directory '%s'", path);
        if (fd >= 0)
            (void) close(fd); /* only looked at */
        fd = next;
        segment = slash ? slash + 1 : NULL;
    }
    return 0;
}
