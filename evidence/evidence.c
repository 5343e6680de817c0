/* The accessors of struct evidence; verify.c makes it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_in.h"
#include "evidence/evidence_parts.h"
#include "evidence/verify.h"

static int read_range(int fd, uint64_t offset, size_t len, char *out, struct err *e)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = pread(fd, out + done, len - done, (off_t) (offset + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "evidence.read", "cannot read the archive");
        if (n == 0)
            return err_set(e, ERR_TRUST, "evidence.short", "the archive has become shorter");
        done += (size_t) n;
    }
    return 0;
}

int evidence_read_member(const struct evidence *ev, const struct archive_member *m, size_t max,
                         char **out, size_t *out_len, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    struct digest found;

    if (m->size > max)
        return err_set(e, ERR_LIMIT, "evidence.size",
                       "'%s' has %" PRIu64 " bytes; at most %zu are read", m->name, m->size, max);
    bytes = malloc((size_t) m->size + 1);
    if (!bytes)
        return err_set(e, ERR_NOMEM, "evidence.memory", "no memory for '%s'", m->name);
    if (read_range(ev->fd, m->offset, (size_t) m->size, bytes, e) < 0)
        return -1;
    bytes[m->size] = '\0';
    found = digest_of(bytes, (size_t) m->size);
    if (!digest_equal(&found, &m->digest))
        return err_set(e, ERR_TRUST, "evidence.changed", "'%s' in the archive is damaged", m->name);
    *out_len = (size_t) m->size;
    *out = STEAL(bytes);
    return 0;
}

void evidence_free(struct evidence *ev)
{
    if (!ev)
        return;
    if (ev->fd >= 0)
        (void) close(ev->fd); /* was only read */
    archive_index_free(ev->index);
    manifest_fini(&ev->manifest);
    free(ev->keyid);
    free(ev->key_name);
    free(ev);
}

const struct manifest *evidence_manifest(const struct evidence *ev)
{
    return &ev->manifest;
}

const struct digest *evidence_digest(const struct evidence *ev)
{
    return &ev->index->digest;
}

const char *evidence_keyid(const struct evidence *ev)
{
    return ev->keyid;
}

const char *evidence_key_name(const struct evidence *ev)
{
    return ev->key_name;
}

int evidence_fd(const struct evidence *ev)
{
    return ev->fd;
}

const struct archive_index *evidence_index(const struct evidence *ev)
{
    return ev->index;
}

int evidence_read(const struct evidence *ev, const char *name, size_t max, char **out,
                  size_t *out_len, struct err *e)
{
    const struct archive_member *m = archive_index_find(ev->index, name);

    if (!m)
        return err_set(e, ERR_NOTFOUND, "evidence.member", "there is no '%.100s' in the evidence",
                       name);
    return evidence_read_member(ev, m, max, out, out_len, e);
}
