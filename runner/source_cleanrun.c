/* The fingerprint `cleanrun-source/1`; its exact definition stands in source.h. */
#include "runner/source_frame.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "runner/checkout.h"
#include "runner/scratch.h"
#include "runner/source_list.h"

#define REPOSITORIES_MAX 64 /* the tree and its submodules, whatever their nesting */

struct repository {
    char *prefix;              /* path below the outermost root, "" for itself */
    char oid[SOURCE_OID_SIZE]; /* the commit that the tree around it names */
};

struct walk {
    struct digest_state *digest;
    struct source *source;
    struct repository queue[REPOSITORIES_MAX];
    size_t n_queue;
};

/* Opens a path for looking only; its parents must be real directories. -1 with errno. */
static int look_at(int root_fd, const char *path)
{
    struct open_how how = {
        .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    return (int) syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
}

/* blob NULL: its name as git's blob is not asked; else of blob_len hex digits. */
static int hash_regular(int look_fd, const char *path, size_t blob_len, struct digest *out,
                        char blob[DIGEST_HEX_SIZE], struct err *e)
{
    char link[64];
    struct stat st;

    (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", look_fd); /* fits */
    /* The same file that was looked at, whatever its name means by now. */
    AUTO_FD int fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "source.read", "cannot read '%s'", path);
    if (digest_of_fd_as_blob(fd, (uint64_t) st.st_size, blob_len, out, blob, e) < 0)
        return err_wrap(e, "%s", path);
    return 0;
}

static bool is_head_blob(const struct source_path *x, const char *blob)
{
    return strlen(blob) == x->oid_len && memcmp(blob, x->head_oid, x->oid_len) == 0;
}

static int frame_link(struct digest_state *d, int look_fd, struct source_path *x, struct err *e)
{
    char target[PATH_MAX];
    char blob[DIGEST_HEX_SIZE];
    ssize_t n = readlinkat(look_fd, "", target, sizeof(target));
    struct digest digest;

    if (n < 0 || (size_t) n == sizeof(target))
        return err_errno(e, "source.read", "cannot read link '%s'", x->path);
    digest = digest_of(target, (size_t) n);
    source_frame_text(d, "120000");
    source_frame(d, digest.bytes, sizeof(digest.bytes));
    if (x->in_head && !strcmp(x->head_mode, "120000")) {
        digest_blob_name(target, (size_t) n, x->oid_len, blob);
        x->differs = !is_head_blob(x, blob);
    }
    return 0;
}

static bool is_gone(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EXDEV;
}

/* Mode and content of one path as the work tree has it; git's own idea of what changed is not
 * asked. */
static int frame_on_disk(struct walk *w, const struct git *g, struct source_path *x, struct err *e)
{
    struct stat st;
    char blob[DIGEST_HEX_SIZE];
    bool executable;
    AUTO_FD int fd = look_at(g->root_fd, x->path);

    x->differs = true; /* until it is known to be HEAD's */
    if (fd < 0 && is_gone(errno)) {
        source_frame_text(w->digest, "absent");
        source_frame(w->digest, "", 0);
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "source.read", "cannot read '%s'", x->path);
    if (S_ISLNK(st.st_mode))
        return frame_link(w->digest, fd, x, e);
    if (!S_ISREG(st.st_mode)) {
        source_frame_text(w->digest, "special");
        source_frame(w->digest, "", 0);
        return 0;
    }
    if (hash_regular(fd, x->path, x->oid_len, &x->bytes, blob, e) < 0)
        return -1;
    executable = st.st_mode & S_IXUSR;
    source_frame_text(w->digest, executable ? "100755" : "100644");
    source_frame(w->digest, x->bytes.bytes, sizeof(x->bytes.bytes));
    if (x->in_head && !strncmp(x->head_mode, "100", 3)) {
        x->differs = executable != !strcmp(x->head_mode, "100755");
        x->other_bytes = !is_head_blob(x, blob);
    }
    return 0;
}

static bool is_checked_out(const struct git *g, const char *path)
{
    AUTO_FREE char *dot_git = NULL;
    struct stat st;

    if (asprintf(&dot_git, "%s/.git", path) < 0) {
        dot_git = NULL;
        return false;
    }
    return fstatat(g->root_fd, dot_git, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A submodule: its checked-out commit here, its own tree later, after all paths of this one. */
static int frame_submodule(struct walk *w, const struct git *g, const char *prefix,
                           const struct source_path *x, struct err *e)
{
    const char *oid = x->in_head ? x->head_oid : x->index_oid;
    char *full = NULL;

    if (!is_checked_out(g, x->path)) {
        w->source->dirty = true; /* what is built is not all that the commit holds */
        source_frame_text(w->digest, "absent");
        source_frame(w->digest, "", 0);
        return 0;
    }
    if (w->n_queue == REPOSITORIES_MAX)
        return err_set(e, ERR_LIMIT, "source.submodules", "more than %d submodules",
                       REPOSITORIES_MAX);
    if (asprintf(&full, "%s%s%s", prefix, *prefix ? "/" : "", x->path) < 0)
        return err_memory(e, "source.memory");
    memcpy(w->queue[w->n_queue].oid, oid, x->oid_len); /* below SOURCE_OID_SIZE */
    w->queue[w->n_queue].oid[x->oid_len] = '\0';
    w->queue[w->n_queue++].prefix = full;
    source_frame_text(w->digest, "160000");
    source_frame(w->digest, "", 0);
    return 0;
}

static int frame_entry(struct walk *w, const struct git *g, const char *prefix,
                       struct source_path *x, struct err *e)
{
    const char *mode = x->in_head ? x->head_mode : x->index_mode;

    source_frame_text(w->digest, x->path);
    source_frame_text(w->digest, x->in_head ? "T" : x->in_index ? "A" : "U");
    if (x->in_head)
        w->source->files++;
    else
        w->source->untracked++;
    return !strcmp(mode, "160000") ? frame_submodule(w, g, prefix, x, e)
                                   : frame_on_disk(w, g, x, e);
}

static bool index_differs(const struct source_path *x)
{
    if (x->in_head != x->in_index)
        return x->in_head || x->in_index;
    return x->in_head && (strcmp(x->head_mode, x->index_mode) != 0 ||
                          memcmp(x->head_oid, x->index_oid, x->oid_len) != 0);
}

static void frame_index(struct walk *w, const struct source_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct source_path *x = &l->items[i];

        if (!index_differs(x))
            continue;
        w->source->dirty = true;
        source_frame_text(w->digest, "index");
        source_frame_text(w->digest, x->index_mode);
        source_frame(w->digest, x->index_oid, x->in_index ? x->oid_len : 0);
        source_frame_text(w->digest, x->path);
    }
}

/* Only attributes that HEAD itself holds may make a checkout write other bytes than the blob's. */
static bool has_attributes(const struct source_list *l)
{
    static const char name[] = ".gitattributes";

    for (size_t i = 0; i < l->n; i++) {
        const char *slash = strrchr(l->items[i].path, '/');

        if (l->items[i].in_head && !strcmp(slash ? slash + 1 : l->items[i].path, name))
            return true;
    }
    return false;
}

/* Do the files with other bytes than their blobs have those of a fresh checkout? */
static int compare_fresh(const struct git *fresh, const struct source_list *l, bool *out_differ,
                         struct err *e)
{
    for (size_t i = 0; i < l->n && !*out_differ; i++) {
        const struct source_path *x = &l->items[i];
        char blob[DIGEST_HEX_SIZE];
        struct digest bytes;
        struct stat st;

        if (!x->other_bytes)
            continue;
        AUTO_FD int fd = look_at(fresh->root_fd, x->path);

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
            *out_differ = true;
            continue;
        }
        if (hash_regular(fd, x->path, x->oid_len, &bytes, blob, e) < 0)
            return -1;
        *out_differ = !digest_equal(&bytes, &x->bytes);
    }
    return 0;
}

static int differs_from_fresh(const struct git *g, const char *commit, const struct source_list *l,
                              bool *out_differ, struct err *e)
{
    AUTO_SCRATCH struct scratch dir = {.fd = -1};
    AUTO_GIT struct git fresh = {.root_fd = -1};
    AUTO_FREE char *path = NULL;

    if (scratch_open(g->scratch, &dir, e) < 0)
        return -1;
    if (asprintf(&path, "%s/fresh", dir.path) < 0) {
        path = NULL;
        return err_memory(e, "source.memory");
    }
    if (checkout_fresh(g, commit, path, &fresh, e) < 0)
        return -1;
    return compare_fresh(&fresh, l, out_differ, e);
}

/* Does any path of HEAD differ on disk? No setting, attribute file or filter of this repository, no
 * flag and no cached time stamp of its index is asked: bytes are compared. */
static int differs_from_head(const struct git *g, const char *commit, const struct source_list *l,
                             bool *out, struct err *e)
{
    bool other_bytes = false;
    bool differs = false;

    for (size_t i = 0; i < l->n && !differs; i++) {
        other_bytes = other_bytes || l->items[i].other_bytes;
        differs = l->items[i].differs;
    }
    if (!differs && other_bytes) {
        differs = !has_attributes(l);
        if (!differs && differs_from_fresh(g, commit, l, &differs, e) < 0)
            return -1;
    }
    *out = differs;
    return 0;
}

/* Everything of one repository into the hash. */
static int take_repository(struct walk *w, const struct git *g, const char *commit,
                           const char *prefix, struct err *e)
{
    AUTO_SOURCE_LIST struct source_list l = {.n = 0};
    bool differs = false;
    int r = source_list_read(g, &l, e);

    for (size_t i = 0; r == 0 && i < l.n; i++) {
        r = frame_entry(w, g, prefix, &l.items[i], e);
        if (!l.items[i].in_head)
            w->source->dirty = true;
    }
    if (r == 0 && !w->source->dirty)
        r = differs_from_head(g, commit, &l, &differs, e);
    if (r == 0) {
        frame_index(w, &l);
        w->source->dirty = w->source->dirty || differs;
    }
    return r;
}

static int take_submodule(struct walk *w, const struct git *g, const struct repository *sub,
                          struct err *e)
{
    const char *prefix = sub->prefix;
    AUTO_GIT struct git inner = {.root_fd = -1};
    AUTO_SOURCE struct source head = {.scheme = NULL};
    AUTO_FREE char *directory = NULL;

    if (asprintf(&directory, "%s/%s", g->root, prefix) < 0) {
        directory = NULL;
        return err_memory(e, "source.memory");
    }
    if (git_open(directory, g->path, NULL, &inner, e) < 0)
        return err_wrap(e, "submodule %s", prefix);
    inner.scratch = g->scratch;
    if (source_head(&inner, &head, e) < 0)
        return err_wrap(e, "submodule %s", prefix);
    /* A broken one would make git answer for the tree around it. */
    if (strcmp(inner.root, directory) != 0)
        return err_set(e, ERR_INPUT, "source.submodule", "submodule %s is no work tree of its own",
                       prefix);
    if (strcmp(head.commit, sub->oid) != 0)
        w->source->dirty = true;
    source_frame_text(w->digest, "submodule");
    source_frame_text(w->digest, prefix);
    source_frame_text(w->digest, head.commit);
    source_frame_text(w->digest, head.tree);
    return take_repository(w, &inner, head.commit, prefix, e);
}

int source_take_cleanrun(const struct git *g, struct source *out, struct err *e)
{
    struct walk w = {.digest = digest_new(), .source = out};
    int r;

    if (!w.digest)
        return err_memory(e, "source.memory");
    r = source_head(g, out, e);
    if (r == 0) {
        digest_update(w.digest, SOURCE_SCHEMA, sizeof(SOURCE_SCHEMA));
        source_frame_text(w.digest, out->commit);
        source_frame_text(w.digest, out->tree);
        r = take_repository(&w, g, out->commit, "", e);
    }
    for (size_t i = 0; r == 0 && i < w.n_queue; i++)
        r = take_submodule(&w, g, &w.queue[i], e);
    if (r == 0)
        digest_finish(w.digest, &out->fingerprint);
    for (size_t i = 0; i < w.n_queue; i++)
        free(w.queue[i].prefix);
    digest_free(w.digest);
    return r;
}
