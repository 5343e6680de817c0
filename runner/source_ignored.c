/* Files that git ignores, counted before a build: the fingerprint leaves them out, a build may not.
 */
#include "runner/source.h"

#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SUBMODULES_MAX 64 /* as in the fingerprint */

struct queue {
    char *prefixes[SUBMODULES_MAX]; /* "a/b/" */
    size_t n;
};

/* One repository of the tree being looked at. */
struct look {
    const struct git *git;
    const char *prefix; /* "" or where the submodule lies, "a/b/" */
    const char *own;    /* the run's own directory below the root, "a/run.partial/", or NULL */
    const struct queue *submodules; /* known so far: this repository's are among them */
    struct source_ignored *out;
};

/* The directory that this run is writing, as git lists it. Nothing else is left out: what another
 * run left in the tree may be what the program is built from. */
static int find_own(const struct git *g, const char *run_directory, char **out, struct err *e)
{
    size_t root = strlen(g->root);

    *out = NULL;
    if (!run_directory || strncmp(run_directory, g->root, root) != 0 || run_directory[root] != '/')
        return 0;
    if (asprintf(out, "%s.partial/", run_directory + root + 1) >= 0)
        return 0;
    *out = NULL;
    return err_memory(e, "source.memory");
}

static bool is_below(const char *path, const char *directory)
{
    return strncmp(path, directory, strlen(directory)) == 0;
}

static void count(const struct look *l, const char *path)
{
    name_list_add(&l->out->list, l->prefix, path);
    l->out->n = l->out->list.n;
}

static bool has_dot_git(const struct git *g, const char *directory)
{
    AUTO_FREE char *path = NULL;
    struct stat st;

    if (asprintf(&path, "%s/.git", directory) < 0) {
        path = NULL;
        return false;
    }
    return fstatat(g->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Is the directory a repository that git listed as one entry, "a/b/", or a submodule? */
static bool is_counted(const struct look *l, const struct git_output *listed, const char *path)
{
    size_t len = strlen(path), prefix = strlen(l->prefix);

    for (size_t i = 0; i < l->submodules->n; i++) {
        const char *at = l->submodules->prefixes[i];

        if (is_below(at, l->prefix) && !strncmp(at + prefix, path, len) &&
            !strcmp(at + prefix + len, "/"))
            return true;
    }
    for (const char *p = listed->data; p < listed->data + listed->len; p += strlen(p) + 1)
        if (!strncmp(p, path, len) && !strcmp(p + len, "/"))
            return true;
    return false;
}

/* A directory entry named ".git" (or what is below one) that is no part of this repository. */
static bool is_hidden(const char *path)
{
    for (const char *p = path; p; p = strchr(p, '/')) {
        p += *p == '/' ? 1 : 0;
        if (!strncmp(p, ".git", 4) && (p[4] == '/' || !p[4]))
            return true;
    }
    return false;
}

static void visit(const struct look *l, const struct git_output *listed, FTS *fts, FTSENT *f,
                  const char *path)
{
    if (f->fts_level == FTS_ROOTLEVEL)
        return;
    if (f->fts_info != FTS_D) {
        if (f->fts_info != FTS_DP && is_hidden(path) && strcmp(path, ".git") != 0)
            count(l, path);
        return;
    }
    /* Asked for few: a listed repository or submodule holds a .git. */
    if (!strcmp(path, ".git") ||
        (!is_hidden(path) && has_dot_git(l->git, path) && is_counted(l, listed, path)))
        (void) fts_set(fts, f, FTS_SKIP); /* can't fail for an entry just read */
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* git lists nothing below a directory named .git, wherever it is. */
static int count_hidden(const struct look *l, const struct git_output *listed, struct err *e)
{
    char *const roots[] = {l->git->root, NULL};
    size_t skip = strlen(l->git->root) + 1;
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, by_name);

    if (!fts)
        return err_errno(e, "source.walk", "cannot read the work tree");
    for (FTSENT *f = fts_read(fts); f; f = fts_read(fts))
        visit(l, listed, fts, f, f->fts_pathlen >= skip ? f->fts_path + skip : "");
    (void) fts_close(fts); /* was only read */
    return 0;
}

static int count_in(const struct look *l, struct err *e)
{
    static const char *const list[] = {
        "ls-files", "--others", "--ignored", "--exclude-per-directory=.gitignore", "-z", NULL};
    AUTO_GIT_OUTPUT struct git_output o = {.data = NULL};

    if (git_run(l->git, list, false, &o, e) < 0)
        return -1;
    for (const char *path = o.data; path < o.data + o.len; path += strlen(path) + 1)
        if (!l->own || !is_below(path, l->own))
            count(l, path);
    return count_hidden(l, &o, e);
}

/* The checked-out submodules of one repository, for later. */
static int queue_submodules(const struct git *g, const char *prefix, struct queue *q, struct err *e)
{
    static const char *const index[] = {"ls-files", "-s", "-z", NULL};
    AUTO_GIT_OUTPUT struct git_output o = {.data = NULL};

    if (git_run(g, index, false, &o, e) < 0)
        return -1;
    for (const char *p = o.data; p < o.data + o.len; p += strlen(p) + 1) {
        const char *tab = strchr(p, '\t');

        if (strncmp(p, "160000 ", 7) != 0 || !tab || !has_dot_git(g, tab + 1))
            continue; /* not checked out: what lies there is for the fingerprint to see */
        if (q->n == SUBMODULES_MAX)
            return err_set(e, ERR_LIMIT, "source.submodules", "more than %d submodules",
                           SUBMODULES_MAX);
        if (asprintf(&q->prefixes[q->n], "%s%s/", prefix, tab + 1) < 0)
            return err_memory(e, "source.memory");
        q->n++;
    }
    return 0;
}

static int count_submodule(const struct git *g, const char *prefix, struct queue *q,
                           struct source_ignored *out, struct err *e)
{
    AUTO_GIT struct git inner = {.root_fd = -1};
    AUTO_FREE char *directory = NULL;
    const struct look l = {.git = &inner, .prefix = prefix, .submodules = q, .out = out};

    if (asprintf(&directory, "%s/%s", g->root, prefix) < 0) {
        directory = NULL;
        return err_memory(e, "source.memory");
    }
    if (git_open(directory, g->path, NULL, &inner, e) < 0 ||
        queue_submodules(&inner, prefix, q, e) < 0 || count_in(&l, e) < 0)
        return err_wrap(e, "submodule %s", prefix);
    return 0;
}

int source_count_ignored(const struct git *g, const char *run_directory, struct source_ignored *out,
                         struct err *e)
{
    struct source_ignored found = {.n = 0};
    struct queue q = {.n = 0};
    AUTO_FREE char *own = NULL;
    struct look l = {.git = g, .prefix = "", .submodules = &q, .out = &found};
    int r = find_own(g, run_directory, &own, e);

    l.own = own;
    if (r == 0)
        r = queue_submodules(g, "", &q, e);
    if (r == 0)
        r = count_in(&l, e);
    for (size_t i = 0; r == 0 && i < q.n; i++)
        r = count_submodule(g, q.prefixes[i], &q, &found, e);
    for (size_t i = 0; i < q.n; i++)
        free(q.prefixes[i]);
    if (r < 0)
        return -1;
    *out = found;
    return 0;
}
