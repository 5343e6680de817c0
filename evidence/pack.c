#include "evidence/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "evidence/manifest.h"
#include "evidence/ustar.h"

#define COPY_STEP LIMIT_KIB(256)

struct packer {
    int out_fd;
    char *chunk;
    struct digest_state *archive;
    struct digest_state *member;
};

uint64_t pack_size(const struct pack_file *files, size_t n)
{
    uint64_t total = USTAR_END;

    for (size_t i = 0; i < n; i++)
        total += USTAR_BLOCK + files[i].size + ustar_padding(files[i].size);
    return total;
}

static int check_order(const struct pack_file *files, size_t n, struct err *e)
{
    if (n == 0 || strcmp(files[0].name, MANIFEST_NAME) != 0)
        return err_set(e, ERR_INTERNAL, "pack.order",
                       "the first file to pack must be " MANIFEST_NAME);
    if (n > LIMIT_MEMBERS)
        return err_set(e, ERR_LIMIT, "pack.members", "%zu files; the limit is %d", n,
                       LIMIT_MEMBERS);
    for (size_t i = 2; i < n; i++) {
        if (strcmp(files[i - 1].name, files[i].name) >= 0)
            return err_set(e, ERR_INTERNAL, "pack.order", "'%s' is not in byte order",
                           files[i].name);
    }
    for (size_t i = 0; i < n; i++) {
        if (files[i].size > LIMIT_MEMBER)
            return err_set(e, ERR_LIMIT, "pack.member", "'%s' is larger than the limit",
                           files[i].name);
    }
    if (pack_size(files, n) > LIMIT_ARCHIVE)
        return err_set(e, ERR_LIMIT, "pack.archive", "the archive would be larger than the limit");
    return 0;
}

static int put(struct packer *p, const void *bytes, size_t len, struct err *e)
{
    digest_update(p->archive, bytes, len);
    return file_write_all(p->out_fd, bytes, len, e);
}

/* Copies the file's bytes; stops one byte after the stated size, which is then a fault. */
static int copy_content(struct packer *p, int fd, const struct pack_file *f, struct err *e)
{
    uint64_t done = 0;
    struct digest found;

    for (;;) {
        ssize_t n = read(fd, p->chunk, COPY_STEP);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "pack.read", "cannot read '%s'", f->name);
        if (n == 0)
            break;
        done += (uint64_t) n;
        if (done > f->size)
            break;
        digest_update(p->member, p->chunk, (size_t) n);
        if (put(p, p->chunk, (size_t) n, e) < 0)
            return -1;
    }
    digest_finish(p->member, &found);
    if (done != f->size)
        return err_set(e, ERR_TRUST, "pack.size",
                       "'%s' does not have the %llu bytes its manifest states", f->name,
                       (unsigned long long) f->size);
    if (!digest_equal(&found, f->digest))
        return err_set(e, ERR_TRUST, "pack.digest",
                       "'%s' does not have the sha256 its manifest states", f->name);
    return 0;
}

static int pack_one(struct packer *p, int dirfd, const struct pack_file *f, struct err *e)
{
    static const char zeros[USTAR_BLOCK];
    char header[USTAR_BLOCK];
    uint64_t size = 0;
    AUTO_FD int fd = -1;

    if (file_open_at(dirfd, f->name, &fd, &size, e) < 0) {
        if (e && (e->kind == ERR_NOTFOUND || e->kind == ERR_INPUT))
            e->kind = ERR_TRUST;
        return -1;
    }
    ustar_header(header, f->name, f->size);
    if (put(p, header, sizeof header, e) < 0 || copy_content(p, fd, f, e) < 0)
        return -1;
    return put(p, zeros, ustar_padding(f->size), e);
}

static int pack_all(struct packer *p, int dirfd, const struct pack_file *files, size_t n,
                    struct err *e)
{
    static const char end[USTAR_END];

    if (!p->chunk || !p->archive || !p->member)
        return err_set(e, ERR_NOMEM, "pack.memory", "no memory to write an archive");
    for (size_t i = 0; i < n; i++) {
        if (pack_one(p, dirfd, &files[i], e) < 0)
            return -1;
    }
    return put(p, end, sizeof end, e);
}

int pack_write(int dirfd, const struct pack_file *files, size_t n, int out_fd,
               struct digest *out_digest, struct err *e)
{
    struct packer p = {.out_fd = out_fd};
    int rc;

    if (check_order(files, n, e) < 0)
        return -1;
    p.chunk = malloc(COPY_STEP);
    p.archive = digest_new();
    p.member = digest_new();
    rc = pack_all(&p, dirfd, files, n, e);
    if (rc == 0)
        digest_finish(p.archive, out_digest);
    free(p.chunk);
    digest_free(p.archive);
    digest_free(p.member);
    return rc;
}
