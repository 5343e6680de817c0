#include "runner/keep.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"

#define CHUNK LIMIT_KIB(64)

int keep_open(struct keep *k, const char *name, struct err *e)
{
    int fd;

    if (k->name)
        return 0;
    fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "keep.open", "cannot keep a copy of %s", name);
    *k = (struct keep){.name = name, .fd = fd};
    return 0;
}

int keep_put(struct keep *k, const char *bytes, size_t len, struct err *e)
{
    if (file_write_all(k->fd, bytes, len, e) < 0)
        return err_wrap(e, "the copy of %s", k->name);
    k->len += len;
    return 0;
}

/* Are these the bytes of the file, all of them? A file that can't be read is another one. */
static bool same_bytes(int fd, const char *bytes, size_t len)
{
    char *chunk = malloc(CHUNK);
    size_t at = 0;

    while (chunk && at < len) {
        ssize_t n = pread(fd, chunk, len - at < CHUNK ? len - at : CHUNK, (off_t) at);

        if (n <= 0 || memcmp(chunk, bytes + at, (size_t) n) != 0)
            break;
        at += (size_t) n;
    }
    free(chunk);
    return at == len;
}

static bool is_same(int dir_fd, const struct keep *k, const char *bytes)
{
    AUTO_FD int fd = -1;
    struct err why = ERR_INIT; /* why it is not the file that was written is of no interest */
    struct stat st;
    uint64_t size = 0;

    return file_open_at(dir_fd, k->name, &fd, &size, &why) == 0 && size == k->len &&
           fstat(fd, &st) == 0 && st.st_nlink == 1 && same_bytes(fd, bytes, k->len);
}

int keep_restore(const struct keep *k, int dir_fd, bool *out_changed, struct err *e)
{
    void *bytes = NULL;
    int result = 0;

    *out_changed = false;
    if (!k->name)
        return 0;
    if (k->len > 0) {
        bytes = mmap(NULL, k->len, PROT_READ, MAP_PRIVATE, k->fd, 0);
        if (bytes == MAP_FAILED)
            return err_errno(e, "keep.map", "cannot read the copy of %s", k->name);
    }
    if (!is_same(dir_fd, k, bytes)) {
        *out_changed = true;
        result = file_remove_tree_at(dir_fd, k->name, e);
        if (result == 0)
            result = file_write_at(dir_fd, k->name, bytes ? bytes : "", k->len, 0644, e);
    }
    if (bytes)
        (void) munmap(bytes, k->len); /* what was mapped can be unmapped */
    return result;
}

void keep_close(struct keep *k)
{
    if (k->name)
        (void) close(k->fd); /* memory: nothing is lost that counts */
    *k = (struct keep){.name = NULL};
}
