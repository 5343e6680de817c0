/* Lists and removes trees (file.h): no recursion, directories are held open by descriptor. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_open.h"

#define LIST_DEPTH 16
#define REMOVE_DEPTH 64 /* directories held open; deeper trees are folded */
#define PATH_BYTES ((size_t) 64 << 10)

struct level {
    DIR *dir;
    size_t path_len; /* of walk.path before this level's name was added */
};

/* A depth-first walk: path is the place of the innermost open directory, "" or "a/b/". */
struct walk {
    struct level levels[REMOVE_DEPTH];
    size_t depth;
    size_t folded; /* names given by fold */
    size_t files;  /* removed, other than directories */
    struct buf path;
};

static void walk_fini(struct walk *w)
{
    while (w->depth > 0)
        (void) closedir(w->levels[--w->depth].dir); /* was only read */
    buf_fini(&w->path);
}

#define AUTO_WALK __attribute__((cleanup(walk_fini)))

/* Opens directory `name` of the descriptor as the new innermost level. */
static int walk_down(struct walk *w, int dirfd, const char *name, size_t max_depth, struct err *e)
{
    AUTO_FD int fd = -1;
    DIR *dir = NULL;

    if (w->depth >= max_depth)
        return err_set(e, ERR_LIMIT, "file.depth",
                       "directories are nested more than %zu deep at '%s'", max_depth, name);
    fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return err_errno(e, "file.directory", "cannot read directory '%s'", name);
    (void) fd_steal(&fd); /* closedir closes it */
    w->levels[w->depth++] = (struct level){.dir = dir, .path_len = w->path.len};
    return 0;
}

static void walk_up(struct walk *w)
{
    struct level *l = &w->levels[--w->depth];

    (void) closedir(l->dir); /* was only read */
    w->path.len = l->path_len;
    if (w->path.data)
        w->path.data[w->path.len] = '\0';
}

static DIR *walk_dir(const struct walk *w)
{
    return w->levels[w->depth - 1].dir;
}

/* The next entry but "." and ".."; *out NULL at the end. */
static int next_entry(DIR *dir, struct dirent **out, struct err *e)
{
    do {
        errno = 0;
        *out = readdir(dir);
        if (!*out && errno != 0)
            return err_errno(e, "file.directory", "cannot read a directory");
    } while (*out && (strcmp((*out)->d_name, ".") == 0 || strcmp((*out)->d_name, "..") == 0));
    return 0;
}

/* The next entry of the innermost directory that has one left; *out NULL when the walk is over.
 * again: a directory that is come back to is read from its start, since what was gone down into
 * stands in it still. */
static int walk_next(struct walk *w, bool again, struct dirent **out, struct err *e)
{
    struct dirent *entry = NULL;

    while (w->depth > 0) {
        if (next_entry(walk_dir(w), &entry, e) < 0)
            return -1;
        if (entry)
            break;
        walk_up(w);
        if (again && w->depth > 0)
            rewinddir(walk_dir(w));
    }
    *out = entry;
    return 0;
}

/* S_IFREG, S_IFDIR, …; 0 with *e when it cannot be found out. */
static mode_t entry_kind(DIR *dir, const struct dirent *entry, struct err *e)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return (mode_t) DTTOIF(entry->d_type);
    if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        (void) err_errno(e, "file.stat", "cannot look at '%s'", entry->d_name);
        return 0;
    }
    return st.st_mode & S_IFMT;
}

void file_list_fini(struct file_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->names[i]);
    free(l->names);
    l->names = NULL;
    l->n = 0;
}

static int list_add(struct file_list *l, size_t *cap, size_t max, char *name, struct err *e)
{
    AUTO_FREE char *owned = name;

    if (!owned)
        return err_set(e, ERR_NOMEM, "file.memory", "no memory for a list of files");
    if (l->n >= max)
        return err_set(e, ERR_LIMIT, "file.count", "more than %zu files", max);
    if (l->n == *cap) {
        size_t more = *cap ? *cap * 2 : 64;
        char **names = reallocarray(l->names, more, sizeof(*names));

        if (!names)
            return err_set(e, ERR_NOMEM, "file.memory", "no memory for a list of files");
        l->names = names;
        *cap = more;
    }
    l->names[l->n++] = STEAL(owned);
    return 0;
}

/* "path" + "name" on the heap; NULL without memory. */
static char *join(const struct buf *path, const char *name)
{
    size_t n = strlen(name);
    char *joined = malloc(path->len + n + 1);

    if (!joined)
        return NULL;
    if (path->len > 0)
        memcpy(joined, path->data, path->len);
    memcpy(joined + path->len, name, n + 1);
    return joined;
}

struct listing {
    struct file_list *list;
    size_t cap;
    size_t max;
    bool all; /* links, pipes and so on, too */
};

static int list_entry(struct walk *w, const struct dirent *entry, struct listing *l, struct err *e)
{
    DIR *dir = walk_dir(w);
    mode_t kind = entry_kind(dir, entry, e);

    if (kind == 0)
        return -1;
    if (S_ISREG(kind) || (l->all && !S_ISDIR(kind)))
        return list_add(l->list, &l->cap, l->max, join(&w->path, entry->d_name), e);
    if (!S_ISDIR(kind))
        return err_set(e, ERR_INPUT, "file.kind",
                       "'%s%s' is neither a regular file nor a directory",
                       w->path.len > 0 ? w->path.data : "", entry->d_name);
    if (walk_down(w, dirfd(dir), entry->d_name, LIST_DEPTH, e) < 0)
        return -1;
    buf_printf(&w->path, "%s/", entry->d_name);
    return buf_check(&w->path, e);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

static int list_at(int dirfd, size_t max, bool all, struct file_list *out, struct err *e)
{
    AUTO_WALK struct walk w = {.depth = 0};
    AUTO_FILE_LIST struct file_list list = {0};
    struct listing listing = {.list = &list, .max = max, .all = all};
    struct dirent *entry = NULL;

    buf_init(&w.path, PATH_BYTES);
    if (walk_down(&w, dirfd, ".", LIST_DEPTH, e) < 0)
        return -1;
    do {
        if (walk_next(&w, false, &entry, e) < 0 ||
            (entry && list_entry(&w, entry, &listing, e) < 0))
            return -1;
    } while (entry);
    if (list.n > 0)
        qsort(list.names, list.n, sizeof(*list.names), by_bytes);
    *out = list;
    list = (struct file_list){0};
    return 0;
}

int file_list_at(int dirfd, size_t max, struct file_list *out, struct err *e)
{
    return list_at(dirfd, max, false, out, e);
}

int file_list_all_at(int dirfd, size_t max, struct file_list *out, struct err *e)
{
    return list_at(dirfd, max, true, out, e);
}

/* A directory that its owner shut: openable and writable again, as far as that is ours to do. */
static void unlock(int dirfd, const char *name)
{
    char link[64];
    struct stat st;
    AUTO_FD int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & S_IRWXU) == S_IRWXU)
        return;
    (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* fits */
    (void) chmod(link, S_IRWXU); /* what stays shut is told by what needs it open */
}

/* Too deep to go down: the directory moves up to the outermost one, which is read again. */
static int fold(struct walk *w, const char *name, struct err *e)
{
    char moved[32];
    int from = dirfd(walk_dir(w));
    int to = dirfd(w->levels[0].dir);

    for (;;) {
        (void) snprintf(moved, sizeof(moved), ".deep-%zu", w->folded++); /* fits */
        if (renameat2(from, name, to, moved, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EEXIST)
            return err_errno(e, "file.remove", "cannot remove '%s'", name);
    }
}

/* Removes one entry, or goes down into it. */
static int remove_entry(struct walk *w, const struct dirent *entry, struct err *e)
{
    DIR *dir = walk_dir(w);
    mode_t kind = entry_kind(dir, entry, e);

    if (kind == 0)
        return -1;
    if (!S_ISDIR(kind)) {
        if (unlinkat(dirfd(dir), entry->d_name, 0) < 0 && errno != ENOENT)
            return err_errno(e, "file.remove", "cannot remove '%s'", entry->d_name);
        w->files++;
        return 0;
    }
    if (unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return err_errno(e, "file.remove", "cannot remove '%s'", entry->d_name);
    unlock(dirfd(dir), entry->d_name);
    return w->depth == REMOVE_DEPTH ? fold(w, entry->d_name, e)
                                    : walk_down(w, dirfd(dir), entry->d_name, REMOVE_DEPTH, e);
}

/* Empties the directory `name` of dirfd. A directory that was emptied is removed when its parent is
 * read again from the start. */
static int empty(int dirfd, const char *name, size_t *out_files, struct err *e)
{
    AUTO_WALK struct walk w = {.depth = 0};
    struct dirent *entry = NULL;

    unlock(dirfd, name);
    if (walk_down(&w, dirfd, name, REMOVE_DEPTH, e) < 0)
        return -1;
    do {
        if (walk_next(&w, true, &entry, e) < 0 || (entry && remove_entry(&w, entry, e) < 0))
            return -1;
    } while (entry);
    *out_files = w.files;
    return 0;
}

/* A directory that is too deep goes with all that is in it; any other is gone down into. */
static int prune_entry(struct walk *w, const struct dirent *entry, size_t max_depth, struct err *e)
{
    DIR *dir = walk_dir(w);
    mode_t kind = entry_kind(dir, entry, e);
    size_t files = 0;

    if (kind == 0)
        return -1;
    if (!S_ISDIR(kind))
        return 0;
    if (w->depth < max_depth) {
        unlock(dirfd(dir), entry->d_name);
        return walk_down(w, dirfd(dir), entry->d_name, REMOVE_DEPTH, e);
    }
    if (empty(dirfd(dir), entry->d_name, &files, e) < 0)
        return -1;
    w->files += files;
    return unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) < 0 && errno != ENOENT
               ? err_errno(e, "file.remove", "cannot remove '%s'", entry->d_name)
               : 0;
}

int file_prune_at(int dirfd, const char *name, size_t max_depth, size_t *out_files, struct err *e)
{
    AUTO_WALK struct walk w = {.depth = 0};
    struct dirent *entry = NULL;

    assert(max_depth > 0 && max_depth <= REMOVE_DEPTH);
    unlock(dirfd, name);
    if (walk_down(&w, dirfd, name, REMOVE_DEPTH, e) < 0)
        return -1;
    do {
        if (walk_next(&w, false, &entry, e) < 0 ||
            (entry && prune_entry(&w, entry, max_depth, e) < 0))
            return -1;
    } while (entry);
    *out_files = w.files;
    return 0;
}

int file_remove_tree_at(int dirfd, const char *name, struct err *e)
{
    size_t files = 0;
    const char *base = NULL;
    AUTO_FD int parent = file_open_parent(dirfd, name, &base);

    if (parent < 0 && errno == ENOENT)
        return 0;
    if (parent < 0)
        return err_errno(e, "file.directory", "cannot open the directory of '%s'", name);
    if (unlinkat(parent, base, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return err_errno(e, "file.remove", "cannot remove '%s'", name);
    if (empty(parent, base, &files, e) < 0)
        return err_wrap(e, "'%s'", name);
    if (unlinkat(parent, base, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_errno(e, "file.remove", "cannot remove '%s'", name);
    return 0;
}
