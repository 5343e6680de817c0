/* The fingerprint of rvoip's own scripts (`--scheme rvoip-v1`, docs/seed-rvoip.md): kept so
 * that its published digests can be checked. */
#include "runner/source_frame.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define DOMAIN "rvoip-source-fingerprint-v1" /* hashed with its NUL */

/* Frames of what is known only as a descriptor: its size first, then its bytes. */
static int frame_fd(struct digest_state *d, int fd, uint64_t size, const char *name, struct err *e)
{
    uint8_t head[8];
    char bytes[8192];
    uint64_t left = size;

    for (size_t i = 0; i < sizeof(head); i++)
        head[i] = (uint8_t) (size >> (8 * i));
    digest_update(d, head, sizeof(head));
    while (left > 0) {
        ssize_t n = read(fd, bytes, left < sizeof(bytes) ? (size_t) left : sizeof(bytes));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(e, ERR_SYS, "source.read", "'%s' changed while it was read", name);
        digest_update(d, bytes, (size_t) n);
        left -= (uint64_t) n;
    }
    return 0;
}

static int by_path(const void *a, const void *b)
{
    const struct source_untracked *x = a;
    const struct source_untracked *y = b;

    return strcmp(x->path, y->path);
}

static struct digest_state *begin(const struct source_seed_parts *p)
{
    struct digest_state *d = digest_new();

    if (!d)
        return NULL;
    digest_update(d, DOMAIN, sizeof(DOMAIN));
    source_frame_text(d, p->commit);
    source_frame(d, p->status, p->status_len);
    source_frame(d, p->diff, p->diff_len);
    return d;
}

int source_rvoip_digest(const struct source_seed_parts *parts, struct digest *out, struct err *e)
{
    size_t n = parts->n_untracked;
    AUTO_FREE struct source_untracked *sorted = calloc(n ? n : 1, sizeof(*sorted));
    struct digest_state *d = begin(parts);

    if (!sorted || !d) {
        digest_free(d);
        return err_memory(e, "source.memory");
    }
    if (n > 0) {
        memcpy(sorted, parts->untracked, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), by_path);
    }
    for (size_t i = 0; i < n; i++) {
        source_frame_text(d, sorted[i].path);
        source_frame(d, sorted[i].content, sorted[i].len);
    }
    digest_finish(d, out);
    digest_free(d);
    return 0;
}

/* Content of one untracked path; links are followed as the seed did. */
static int frame_file(struct digest_state *d, const struct git *g, const char *path, struct err *e)
{
    struct stat st;
    AUTO_FD int fd = openat(g->root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    source_frame_text(d, path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "source.read", "cannot read '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INPUT, "source.kind",
                       "'%s' is not a file: the " SOURCE_SCHEME_RVOIP " scheme can't cover it",
                       path);
    return frame_fd(d, fd, (uint64_t) st.st_size, path, e);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static int frame_untracked(struct digest_state *d, const struct git *g,
                           const struct git_output *list, size_t *out_n, struct err *e)
{
    size_t n = 0;
    AUTO_FREE const char **names = NULL;

    for (const char *p = list->data; p < list->data + list->len; p += strlen(p) + 1)
        n++;
    names = calloc(n ? n : 1, sizeof(*names));
    if (!names)
        return err_memory(e, "source.memory");
    n = 0;
    for (const char *p = list->data; p < list->data + list->len; p += strlen(p) + 1)
        names[n++] = p;
    qsort(names, n, sizeof(*names), by_name);
    for (size_t i = 0; i < n; i++)
        if (frame_file(d, g, names[i], e) < 0)
            return -1;
    *out_n = n;
    return 0;
}

static int count_files(const struct git *g, size_t *out, struct err *e)
{
    static const char *const args[] = {"ls-tree", "-r", "-z", "--name-only", "HEAD", NULL};
    AUTO_GIT_OUTPUT struct git_output list = {.data = NULL};

    if (git_run(g, args, false, &list, e) < 0)
        return -1;
    *out = 0;
    for (size_t i = 0; i < list.len; i++)
        *out += list.data[i] == '\0' ? 1 : 0;
    return 0;
}

int source_take_rvoip(const struct git *g, struct source *out, struct err *e)
{
    static const char *const status_args[] = {"status", "--porcelain=v1", "-z",
                                              "--untracked-files=all", NULL};
    static const char *const diff_args[] = {"diff", "--no-ext-diff", "--binary", "HEAD", "--", ".",
                                            NULL};
    static const char *const list_args[] = {"ls-files", "--others", "--exclude-standard", "-z",
                                            NULL};
    AUTO_GIT_OUTPUT struct git_output status = {.data = NULL};
    AUTO_GIT_OUTPUT struct git_output diff = {.data = NULL};
    AUTO_GIT_OUTPUT struct git_output list = {.data = NULL};

    if (source_head(g, out, e) < 0 || count_files(g, &out->files, e) < 0 ||
        git_run(g, status_args, false, &status, e) < 0 ||
        git_run(g, diff_args, false, &diff, e) < 0 || git_run(g, list_args, false, &list, e) < 0)
        return -1;
    struct source_seed_parts parts = {.commit = out->commit,
                                      .status = status.data,
                                      .status_len = status.len,
                                      .diff = diff.data,
                                      .diff_len = diff.len};
    struct digest_state *d = begin(&parts);

    if (!d)
        return err_memory(e, "source.memory");
    int r = frame_untracked(d, g, &list, &out->untracked, e);

    if (r == 0)
        digest_finish(d, &out->fingerprint);
    digest_free(d);
    out->dirty = status.len > 0;
    return r;
}
