#include "runner/source_changed.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/text.h"

#define TOLD 3
#define US_PER_S 1000000

struct list {
    const struct git *git;
    struct buf text;
    bool all; /* the tree was clean at the start: everything that differs now has changed */
    int64_t since_us;
    size_t n;
};

/* Where something differed already at the start only what was touched since is of interest; the
 * change time can't be set back. */
static bool is_recent(const struct list *l, const char *path)
{
    struct stat st;

    if (l->all || fstatat(l->git->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return true;
    return (int64_t) st.st_ctim.tv_sec * US_PER_S + st.st_ctim.tv_nsec / 1000 >= l->since_us;
}

static void add(struct list *l, const char *path, const char *how)
{
    if (!is_recent(l, path))
        return;
    if (l->n++ >= TOLD)
        return;
    buf_printf(&l->text, "%s%.200s (%s)", l->n > 1 ? ", " : "",
               text_is_utf8(path, strlen(path)) && strlen(path) <= 200 ? path : "a path", how);
}

/* NUL-ended records; the path starts after `skip` bytes. */
static void add_all(struct list *l, const struct git_output *o, size_t skip, const char *how)
{
    for (size_t at = 0; at < o->len; at += strlen(o->data + at) + 1) {
        if (strlen(o->data + at) > skip)
            add(l, o->data + at + skip, how);
    }
}

void source_changed(const struct git *g, const struct source *start, const struct source *end,
                    int64_t since_us, char *out, size_t size)
{
    static const char *const tracked[] = {"status",       "--porcelain=v1",       "-z",
                                          "--no-renames", "--untracked-files=no", NULL};
    static const char *const others[] = {"ls-files", "--others",
                                         "--exclude-per-directory=.gitignore", "-z", NULL};
    AUTO_GIT_OUTPUT struct git_output o = {.data = NULL};
    AUTO_GIT_OUTPUT struct git_output new = {.data = NULL};
    struct list l = {.git = g, .all = !start->dirty, .since_us = since_us};
    struct err ignored = ERR_INIT;

    buf_init(&l.text, LIMIT_KIB(4));
    if (strcmp(start->commit, end->commit) != 0)
        buf_printf(&l.text, "HEAD moved from %.12s to %.12s; ", start->commit, end->commit);
    if (git_run(g, tracked, false, &o, &ignored) == 0)
        add_all(&l, &o, strlen("XY "), "changed");
    if (git_run(g, others, false, &new, &ignored) == 0)
        add_all(&l, &new, 0, "new");
    if (l.n > TOLD)
        buf_printf(&l.text, " and %zu more", l.n - TOLD);
    (void) snprintf(out, size, "%s", l.text.failed || !l.text.data ? "" : l.text.data);
    buf_fini(&l.text);
}
