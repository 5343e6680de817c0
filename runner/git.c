#include "runner/git.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/limits.h"
#include "runner/child.h"

#define GIT_OUTPUT_MAX LIMIT_MIB(512)
#define GIT_ARGS_MAX 96
#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Every setting that could change what our commands print, whatever the repository or the user
 * configured. */
static const char *const pinned[] = {
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.eol=lf",
    "core.quotePath=true",
    "core.abbrev=auto",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "core.hooksPath=/dev/null",
    "core.sparseCheckout=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.whitespace=",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.renames=true",
    "diff.algorithm=default",
    "diff.context=3",
    "diff.interHunkContext=0",
    "diff.indentHeuristic=true",
    "diff.submodule=short",
    "diff.ignoreSubmodules=none",
    "diff.suppressBlankEmpty=false",
    "diff.orderFile=/dev/null",
    "diff.relative=false",
    "status.showUntrackedFiles=all",
    "status.renames=true",
    "status.relativePaths=false",
    "status.submoduleSummary=false",
    "color.ui=false",
    "submodule.recurse=false",
    "protocol.file.allow=always",
    "advice.detachedHead=false",
    "gc.auto=0",
};

static int memory_file(const char *name, int *out, struct err *e)
{
    *out = memfd_create(name, MFD_CLOEXEC);
    return *out < 0 ? err_errno(e, "git.memory", "cannot keep git's output") : 0;
}

/* The whole memory file as a heap string. */
static int slurp(int fd, char **out, size_t *out_len, struct err *e)
{
    struct stat st;
    AUTO_FREE char *data = NULL;
    size_t size, done = 0;

    if (fstat(fd, &st) < 0)
        return err_errno(e, "git.memory", "cannot read git's output");
    if (st.st_size < 0 || (uint64_t) st.st_size > GIT_OUTPUT_MAX)
        return err_set(e, ERR_LIMIT, "git.size", "git printed more than %zu bytes", GIT_OUTPUT_MAX);
    size = (size_t) st.st_size;
    data = malloc(size + 1);
    if (!data)
        return err_memory(e, "git.memory");
    while (done < size) {
        ssize_t n = pread(fd, data + done, size - done, (off_t) done);

        if (n <= 0)
            return err_errno(e, "git.memory", "cannot read git's output");
        done += (size_t) n;
    }
    data[size] = '\0';
    *out = STEAL(data);
    *out_len = size;
    return 0;
}

/* "-c" pairs, then the caller's arguments. Returns the count, 0 when there are too many. */
static size_t build_argv(const struct git *g, const char *const *args, const char **argv,
                         size_t max)
{
    size_t n = 0;

    argv[n++] = "git";
    for (size_t i = 0; i < ARRAY_LEN(pinned); i++) {
        argv[n++] = "-c";
        argv[n++] = pinned[i];
    }
    if (g->safe) {
        argv[n++] = "-c";
        argv[n++] = g->safe;
    }
    for (; *args; args++) {
        if (n + 1 >= max)
            return 0;
        argv[n++] = *args;
    }
    argv[n] = NULL;
    return n;
}

/* Starts git in cwd_fd with both outputs in memory. */
static int spawn(const char *const *argv, const char *const *envp, const char *path, int cwd_fd,
                 struct git_output *out, char **out_err, struct err *e)
{
    struct child_spec spec = CHILD_SPEC_INIT;
    struct child child;
    struct child_status status;
    AUTO_FD int out_fd = -1;
    AUTO_FD int err_fd = -1;
    size_t err_len = 0;

    if (memory_file("git-out", &out_fd, e) < 0 || memory_file("git-err", &err_fd, e) < 0)
        return -1;
    spec.argv = argv;
    spec.envp = envp;
    spec.path = path;
    spec.cwd_fd = cwd_fd;
    spec.stdout_fd = out_fd;
    spec.stderr_fd = err_fd;
    if (child_start(&spec, &child, e) < 0)
        return -1;
    int waited = child_wait(&child, &status, e);

    child_fini(&child);
    if (waited < 0)
        return -1;
    if (!status.exited)
        return err_set(e, ERR_SYS, "git.killed", "git was killed by signal %d", status.signal);
    if (slurp(out_fd, &out->data, &out->len, e) < 0 || slurp(err_fd, out_err, &err_len, e) < 0)
        return -1;
    out->code = status.code;
    return 0;
}

static int run(const struct git *g, const char *const *args, struct git_output *out, char **out_err,
               struct err *e)
{
    const char *argv[ARRAY_LEN(pinned) * 2 + GIT_ARGS_MAX];
    AUTO_FREE char *path_var = NULL;
    AUTO_FREE char *index_var = NULL;

    if (asprintf(&path_var, "PATH=%s", g->path) < 0) {
        path_var = NULL;
        return err_memory(e, "git.memory");
    }
    if (asprintf(&index_var, "GIT_INDEX_FILE=%s", g->index_file ? g->index_file : "") < 0) {
        index_var = NULL;
        return err_memory(e, "git.memory");
    }
    const char *envp[] = {
        path_var,
        "HOME=/nonexistent",
        "LC_ALL=C",
        "GIT_CONFIG_NOSYSTEM=1",
        "GIT_CONFIG_GLOBAL=/dev/null",
        "GIT_ATTR_NOSYSTEM=1",
        "GIT_NO_REPLACE_OBJECTS=1",
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_TERMINAL_PROMPT=0",
        "GIT_PAGER=cat",
        g->index_file ? index_var : NULL,
        NULL,
    };

    if (build_argv(g, args, argv, ARRAY_LEN(argv)) == 0)
        return err_set(e, ERR_INTERNAL, "git.args", "too many arguments for git");
    return spawn(argv, envp, g->path, g->root_fd, out, out_err, e);
}

/* git's own last words, without the line end. */
static int explain(const char *const *args, int code, char *words, struct err *e)
{
    if (!words)
        return err_set(e, ERR_INPUT, "git.failed", "git %s failed (exit %d)", args[0], code);
    /* Whose repository it is: git says how to trust it, on lines of their own. */
    bool whole = strstr(words, "safe.directory") != NULL;

    for (char *end = words + strcspn(words, "\n"); *end; end = end + strcspn(end, "\n")) {
        size_t gap = strspn(end, "\n\t ");

        if (!whole || !end[gap]) {
            *end = '\0';
            break;
        }
        memmove(end + 1, end + gap, strlen(end + gap) + 1);
        *end++ = ' ';
    }
    if (!strncmp(words, "fatal: ", 7))
        words += 7;
    return err_set(e, ERR_INPUT, "git.failed", "git %s: %s (exit %d)", args[0],
                   *words ? words : "failed", code);
}

int git_run(const struct git *g, const char *const *args, bool one_is_fine, struct git_output *out,
            struct err *e)
{
    struct git_output made = {.data = NULL};
    AUTO_FREE char *words = NULL;
    int r = run(g, args, &made, &words, e);

    if (r == 0 && made.code != 0 && !(one_is_fine && made.code == 1))
        r = explain(args, made.code, words, e);
    if (r < 0) {
        git_output_fini(&made);
        return -1;
    }
    *out = made;
    return 0;
}

/* The user's own answer to "is this owner trusted", since the pinned configuration hides it. */
static char *user_safe_directory(const struct git *g, char *const *environment)
{
    static const char *const argv[] = {"git", "config", "--get-all", "safe.directory", NULL};
    AUTO_GIT_OUTPUT struct git_output out = {.data = NULL};
    AUTO_FREE char *words = NULL;
    char *made = NULL;
    const char *const *envp = (const char *const *) (uintptr_t) environment;
    struct err ignored = ERR_INIT; /* no configuration is a normal answer */
    const char *chosen = NULL;

    if (!environment || spawn(argv, envp, g->path, g->root_fd, &out, &words, &ignored) < 0 ||
        out.code != 0 || !out.data)
        return NULL;
    for (char *line = out.data; *line;) {
        size_t len = strcspn(line, "\n");
        bool last = line[len] == '\0';

        line[len] = '\0';
        if (!strcmp(line, "*") || !strcmp(line, g->root))
            chosen = line;
        line += len + (last ? 0 : 1);
    }
    if (!chosen || asprintf(&made, "safe.directory=%s", chosen) < 0)
        return NULL;
    return made;
}

/* Where, and what to do. */
static int no_repository(const struct git *g, struct err *e)
{
    return err_set(
        e, ERR_INPUT, "git.none",
        "'%s' is in no git repository, and a run is of a commit: go to the work tree (or "
        "-C DIR), or make a repository there: git init && git add . && git commit",
        g->root);
}

static int find_root(struct git *g, char *const *environment, struct err *e)
{
    static const char *const args[] = {"rev-parse", "--show-toplevel", NULL};
    AUTO_GIT_OUTPUT struct git_output out = {.data = NULL};
    AUTO_FREE char *words = NULL;

    if (run(g, args, &out, &words, e) < 0)
        return -1;
    if (out.code != 0 && words && strstr(words, "safe.directory")) {
        g->safe = user_safe_directory(g, environment);
        free(STEAL(words));
        git_output_fini(&out);
        if (run(g, args, &out, &words, e) < 0)
            return -1;
    }
    if (out.code != 0)
        return words && strstr(words, "not a git repository") ? no_repository(g, e)
                                                              : explain(args, out.code, words, e);
    if (out.len < 2 || out.data[0] != '/')
        return err_set(e, ERR_INPUT, "git.root", "no work tree here (a bare repository?)");
    out.data[out.len - 1] = '\0';
    free(g->root);
    g->root = STEAL(out.data);
    return 0;
}

int git_open(const char *directory, const char *path, char *const *environment, struct git *out,
             struct err *e)
{
    AUTO_GIT struct git g = {.root_fd = -1};
    int fd = -1;

    g.path = strdup(path ? path : PATH_DEFAULT);
    g.root = realpath(directory, NULL);
    if (!g.path || !g.root)
        return err_errno(e, "git.open", "cannot open '%s'", directory);
    if (file_open_dir(g.root, &g.root_fd, e) < 0)
        return -1;
    if (find_root(&g, environment, e) < 0)
        return -1;
    if (file_open_dir(g.root, &fd, e) < 0)
        return -1;
    (void) close(g.root_fd); /* a directory that was only read */
    g.root_fd = fd;
    *out = g;
    g = (struct git){.root_fd = -1};
    return 0;
}

void git_close(struct git *g)
{
    if (g->root && g->root_fd >= 0)
        (void) close(g->root_fd); /* a directory that was only read */
    free(g->root);
    free(g->path);
    free(g->index_file);
    free(g->safe);
    *g = (struct git){.root_fd = -1};
}

void git_output_fini(struct git_output *o)
{
    free(o->data);
    *o = (struct git_output){.data = NULL};
}
