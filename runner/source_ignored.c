/* Files that git ignores, counted before a build: the fingerprint leaves them out, a build may not. */
#include "runner/source.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SUBMODULES_MAX 64 /* as in the fingerprint */

/* Where run directories lie, as paths of git's list. */
struct places {
    char *parent;            /* "" or "a/b/": the directory that holds the run directory */
    const char *own;         /* the run directory's name there; NULL: none is inside */
    char last[NAME_MAX + 1]; /* the entry of `parent` that was asked about last */
    bool last_is_run;
};

struct queue {
    char *prefixes[SUBMODULES_MAX]; /* "a/b/" */
    size_t n;
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "source.memory", "out of memory");
}

static int find_places(const struct git *g, const char *run_directory, struct places *p,
                       struct err *e)
{
    size_t root = strlen(g->root);
    const char *slash;

    if (!run_directory || strncmp(run_directory, g->root, root) != 0 || run_directory[root] != '/')
        return 0;
    slash = strrchr(run_directory, '/');
    p->own = slash + 1;
    p->parent = slash == run_directory + root
                    ? strdup("")
                    : strndup(run_directory + root + 1, (size_t) (slash - run_directory) - root);
    return p->parent ? 0 : no_memory(e);
}

static bool has_file(const struct git *g, const char *parent, const char *name, const char *file)
{
    AUTO_FREE char *path = NULL;
    struct stat st;

    if (asprintf(&path, "%s%s/%s", parent, name, file) < 0) {
        path = NULL;
        return false; /* then it counts */
    }
    return fstatat(g->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* Is it in this run's directory, or in one beside it? */
static bool is_in_run(const struct git *g, struct places *p, const char *path)
{
    const char *name, *end;
    size_t parent;

    if (!p->own)
        return false;
    parent = strlen(p->parent);
    if (strncmp(path, p->parent, parent) != 0)
        return false;
    name = path + parent;
    end = strchr(name, '/');
    if (!end || (size_t) (end - name) >= sizeof(p->last))
        return false;
    if (strncmp(p->last, name, (size_t) (end - name)) == 0 && !p->last[end - name])
        return p->last_is_run;
    memcpy(p->last, name, (size_t) (end - name));
    p->last[end - name] = '\0';
    size_t own = strlen(p->own);

    p->last_is_run = (!strncmp(p->last, p->own, own) &&
                      (!p->last[own] || !strcmp(p->last + own, ".partial"))) ||
                     (has_file(g, p->parent, p->last, "definition.json") &&
                      has_file(g, p->parent, p->last, "source-at-start.json"));
    return p->last_is_run;
}

/* "bench, obj/a.o, …": a terminal must not obey a name. */
static void add_name(struct source_ignored *out, const char *prefix, const char *path)
{
    size_t used = strlen(out->names);
    char *at = out->names + used;

    if (out->n > SOURCE_IGNORED_NAMED + 1)
        return;
    if (out->n == SOURCE_IGNORED_NAMED + 1)
        (void) snprintf(at, sizeof(out->names) - used, ", …"); /* cut where it ends */
    else
        (void) snprintf(at, sizeof(out->names) - used, "%s%.60s%.100s", used ? ", " : "", prefix,
                        path);
    for (; *at; at++)
        if ((unsigned char) *at < ' ' || *at == 127)
            *at = '?';
}

static int count_in(const struct git *g, const char *prefix, struct places *p,
                    struct source_ignored *out, struct err *e)
{
    static const char *const list[] = {"ls-files",  "--others",
                                       "--ignored", "--exclude-per-directory=.gitignore",
                                       "-z",        NULL};
    AUTO_GIT_OUTPUT struct git_output o = {.data = NULL};

    if (git_run(g, list, false, &o, e) < 0)
        return -1;
    for (const char *path = o.data; path < o.data + o.len; path += strlen(path) + 1) {
        if (!*prefix && is_in_run(g, p, path))
            continue;
        out->n++;
        add_name(out, prefix, path);
    }
    return 0;
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
        AUTO_FREE char *dot_git = NULL;
        struct stat st;

        if (strncmp(p, "160000 ", 7) != 0 || !tab)
            continue;
        if (asprintf(&dot_git, "%s/.git", tab + 1) < 0) {
            dot_git = NULL;
            return no_memory(e);
        }
        if (fstatat(g->root_fd, dot_git, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* not checked out: what lies there is for the fingerprint to see */
        if (q->n == SUBMODULES_MAX)
            return err_set(e, ERR_LIMIT, "source.submodules", "more than %d submodules",
                           SUBMODULES_MAX);
        if (asprintf(&q->prefixes[q->n], "%s%s/", prefix, tab + 1) < 0)
            return no_memory(e);
        q->n++;
    }
    return 0;
}

static int count_submodule(const struct git *g, const char *prefix, struct places *p,
                           struct queue *q, struct source_ignored *out, struct err *e)
{
    AUTO_GIT struct git inner = {.root_fd = -1};
    AUTO_FREE char *directory = NULL;

    if (asprintf(&directory, "%s/%s", g->root, prefix) < 0) {
        directory = NULL;
        return no_memory(e);
    }
    if (git_open(directory, g->path, NULL, &inner, e) < 0 ||
        count_in(&inner, prefix, p, out, e) < 0 || queue_submodules(&inner, prefix, q, e) < 0)
        return err_wrap(e, "submodule %s", prefix);
    return 0;
}

int source_count_ignored(const struct git *g, const char *run_directory,
                         struct source_ignored *out, struct err *e)
{
    struct source_ignored found = {.n = 0};
    struct places p = {.own = NULL};
    struct queue q = {.n = 0};
    int r = find_places(g, run_directory, &p, e);

    if (r == 0)
        r = count_in(g, "", &p, &found, e);
    if (r == 0)
        r = queue_submodules(g, "", &q, e);
    for (size_t i = 0; r == 0 && i < q.n; i++)
        r = count_submodule(g, q.prefixes[i], &p, &q, &found, e);
    for (size_t i = 0; i < q.n; i++)
        free(q.prefixes[i]);
    free(p.parent);
    if (r < 0)
        return -1;
    *out = found;
    return 0;
}
