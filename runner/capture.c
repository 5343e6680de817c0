#include "runner/capture.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"

#define NOTE_MAX 1024
#define CUT_NOTE "\n[cleanrun] the output was cut here\n"

static int open_at(struct capture *c, int dir_fd, const char *name, size_t max, int flags,
                   struct keep *keep, struct err *e)
{
    AUTO_FD int fd =
        openat(dir_fd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | flags, 0644);

    if (fd < 0)
        return err_errno(e, "capture.open", "cannot create %s", name);
    if (keep && keep_open(keep, name, e) < 0)
        return -1;
    *c = (struct capture){.name = name,
                          .fd = fd_steal(&fd),
                          .keep = keep,
                          .written = keep && keep->len < max ? keep->len : 0,
                          .max = max};
    c->cut = keep && keep->len >= max;
    return 0;
}

int capture_open(struct capture *c, int dir_fd, const char *name, size_t max, struct keep *keep,
                 struct err *e)
{
    return open_at(c, dir_fd, name, max, O_EXCL, keep, e);
}

int capture_append(struct capture *c, int dir_fd, const char *name, size_t max, struct keep *keep,
                   struct err *e)
{
    return open_at(c, dir_fd, name, max, 0, keep, e);
}

static int put(struct capture *c, const char *bytes, size_t len, struct err *e)
{
    if (file_write_all(c->fd, bytes, len, e) < 0)
        return err_wrap(e, "%s", c->name);
    return c->keep ? keep_put(c->keep, bytes, len, e) : 0;
}

int capture_data(void *context, const char *bytes, size_t len, struct err *e)
{
    struct capture *c = context;
    size_t left = c->max - c->written;
    size_t take = len < left ? len : left;

    if (c->cut)
        return 0;
    if (put(c, bytes, take, e) < 0)
        return -1;
    c->written += take;
    if (take == len)
        return 0;
    c->cut = true;
    return put(c, CUT_NOTE, sizeof(CUT_NOTE) - 1, e);
}

int capture_note(struct capture *c, const char *format, ...)
{
    char text[NOTE_MAX];
    struct err ignored = ERR_INIT; /* a note is talk: what it tells is also in the documents */
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (n < 0 || c->fd < 0)
        return 0;
    size_t len = (size_t) n < sizeof(text) ? (size_t) n : sizeof(text) - 1;

    if (put(c, "[cleanrun] ", 11, &ignored) < 0 || put(c, text, len, &ignored) < 0)
        return -1;
    return put(c, "\n", 1, &ignored);
}

void capture_close(struct capture *c)
{
    if (c->fd >= 0)
        (void) close(c->fd); /* the whole run directory is synced before it counts */
    c->fd = -1;
}

static bool ends_here(char after)
{
    return after == '\0' || strchr("/\"' \t\r\n:;,)]}>#?", after) != NULL;
}

static const struct capture_rename *rename_at(const char *p, size_t left,
                                              const struct capture_rename *renames, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(renames[i].from);

        if (len > 1 && len <= left && !memcmp(p, renames[i].from, len) && ends_here(p[len]))
            return &renames[i];
    }
    return NULL;
}

bool capture_replace(const char *text, size_t len, const struct capture_rename *renames, size_t n,
                     struct buf *out)
{
    size_t kept = 0;

    for (size_t i = 0; i < len;) {
        const struct capture_rename *r =
            text[i] == '/' ? rename_at(text + i, len - i, renames, n) : NULL;

        if (!r) {
            i++;
            continue;
        }
        buf_put(out, text + kept, i - kept);
        buf_puts(out, r->to);
        i += strlen(r->from);
        kept = i;
    }
    buf_put(out, text + kept, len - kept);
    return kept > 0;
}

int capture_scrub(int dir_fd, const char *name, const struct capture_rename *renames, size_t n,
                  struct err *e)
{
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_LOG * 4);
    if (file_read_at(dir_fd, name, LIMIT_LOG + LIMIT_MIB(1), &text, &len, e) < 0)
        return -1;
    if (!capture_replace(text, len, renames, n, &b))
        return 0;
    if (buf_check(&b, e) < 0)
        return -1;
    return file_write_at(dir_fd, name, b.data, b.len, 0644, e);
}
