/* The files of a reviewed baseline: verification and packaging. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/baseline.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/text.h"

#define PACKAGE_NAME "perf-regression-baseline"
#define RESULTS_NAME "perf-results"
#define MANIFEST_FILE "manifest.json"
#define BROKEN ERR_TRUST, "baseline.tree"

static int check_file(const struct baseline_file *f, int rootfd, struct err *e)
{
    AUTO_FD int fd = -1;
    uint64_t size = 0;
    uint64_t hashed = 0;
    struct digest digest;
    struct err why = ERR_INIT;

    if (file_open_at(rootfd, f->path, &fd, &size, &why) < 0)
        return err_set(e, BROKEN, "baseline file is unavailable: %s (%.200s)", f->path, why.text);
    if (size != f->size)
        return err_set(e, BROKEN, "baseline file size changed: %s", f->path);
    if (digest_of_fd(fd, &digest, &hashed, e) < 0)
        return -1;
    if (hashed != f->size || !digest_equal(&digest, &f->digest))
        return err_set(e, BROKEN, "baseline file SHA-256 changed: %s", f->path);
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct baseline_file *) a)->path,
                  ((const struct baseline_file *) b)->path);
}

/* Whether the name in the root is the manifest itself. */
static bool is_manifest(int rootfd, const char *name, const struct stat *manifest)
{
    struct stat st;

    return manifest && fstatat(rootfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_dev == manifest->st_dev && st.st_ino == manifest->st_ino;
}

static int check_inventory(const struct baseline *b, int rootfd, const struct stat *manifest,
                           struct err *e)
{
    AUTO_FILE_LIST struct file_list list = {0};
    AUTO_BUF struct buf unlisted = {0};
    struct err why = ERR_INIT;

    if (file_list_at(rootfd, LIMIT_TREE_FILES, &list, &why) < 0)
        return err_set(e, BROKEN, "baseline inventory: %s", why.text);
    buf_init(&unlisted, LIMIT_MIB(2));
    for (size_t i = 0; i < list.n; i++) {
        struct baseline_file wanted = {.path = list.names[i]};

        if (!bsearch(&wanted, b->files, b->n_files, sizeof *b->files, by_path) &&
            !is_manifest(rootfd, list.names[i], manifest))
            buf_printf(&unlisted, " %s", list.names[i]);
    }
    if (unlisted.len > 0 || unlisted.failed)
        return err_set(e, BROKEN, "baseline inventory differs: unlisted%.300s",
                       unlisted.data ? unlisted.data : "");
    return 0;
}

int baseline_verify_tree(const struct baseline *b, int rootfd,
                         struct baseline_manifest_place manifest, struct err *e)
{
    struct stat st;
    bool known =
        manifest.name && fstatat(manifest.dirfd, manifest.name, &st, AT_SYMLINK_NOFOLLOW) == 0;

    for (size_t i = 0; i < b->n_files; i++)
        if (check_file(&b->files[i], rootfd, e) < 0)
            return -1;
    return check_inventory(b, rootfd, known ? &st : NULL, e);
}

/* A manifest opened where the user said. */
struct source {
    int dirfd; /* directory of the manifest */
    int rootfd;
    const char *name;
    char *bytes;
    size_t len;
};

static void source_fini(struct source *s)
{
    cleanup_fd(&s->dirfd);
    cleanup_fd(&s->rootfd);
    free(s->bytes);
}

static int source_open(const char *manifest_path, const char *root, struct source *s, struct err *e)
{
    const char *slash = strrchr(manifest_path, '/');
    AUTO_FREE char *dir =
        slash
            ? strndup(manifest_path, slash == manifest_path ? 1 : (size_t) (slash - manifest_path))
            : strdup(".");
    struct stat st;
    struct err why = ERR_INIT;

    s->name = slash ? slash + 1 : manifest_path;
    if (!dir)
        return err_memory(e, "baseline.memory");
    if (file_open_dir(dir, &s->dirfd, e) < 0)
        return -1;
    if (fstatat(s->dirfd, s->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(e, "baseline.open", "baseline manifest '%s'", manifest_path);
    if (file_read_at(s->dirfd, s->name, LIMIT_JSON_DOCUMENT, &s->bytes, &s->len, &why) < 0)
        return err_set(e, BROKEN, "baseline manifest is not a regular file: %.300s", why.text);
    if (root)
        return file_open_dir(root, &s->rootfd, e);
    if (fstatat(s->dirfd, RESULTS_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return file_open_dir_at(s->dirfd, RESULTS_NAME, &s->rootfd, e);
    return file_open_dir(dir, &s->rootfd, e);
}

static int source_verify(const struct source *s, struct baseline *b, struct err *e)
{
    if (baseline_parse(s->bytes, s->len, false, b, e) < 0)
        return -1;
    return baseline_verify_tree(b, s->rootfd, (struct baseline_manifest_place){s->dirfd, s->name},
                                e);
}

int baseline_verify(const char *manifest_path, const char *root, struct baseline *out,
                    struct err *e)
{
    struct source s = {.dirfd = -1, .rootfd = -1};
    struct baseline b = {0};
    int rc = source_open(manifest_path, root, &s, e);

    if (rc == 0)
        rc = source_verify(&s, &b, e);
    source_fini(&s);
    if (rc < 0) {
        baseline_fini(&b);
        return -1;
    }
    *out = b;
    return 0;
}

static int copy_file(const struct baseline_file *f, int from, int to, struct err *e)
{
    const char *slash = strrchr(f->path, '/');
    AUTO_FREE char *dir = slash ? strndup(f->path, (size_t) (slash - f->path)) : NULL;

    if (slash && !dir)
        return err_memory(e, "baseline.memory");
    if (dir && file_mkdirs_at(to, dir, 0755, e) < 0)
        return -1;
    return file_copy_at(from, f->path, to, f->path, 0644, e);
}

/* Copies into the empty directory `name` and verifies the copy as if it had been found there. */
static int fill(const struct source *s, const struct baseline *b, int outfd, const char *name,
                struct err *e)
{
    AUTO_FD int dirfd = -1;
    AUTO_FD int rootfd = -1;
    AUTO_BASELINE struct baseline copy = {0};
    struct baseline_manifest_place nowhere = {.dirfd = -1};

    if (file_open_dir_at(outfd, name, &dirfd, e) < 0 ||
        file_mkdirs_at(dirfd, RESULTS_NAME, 0755, e) < 0 ||
        file_open_dir_at(dirfd, RESULTS_NAME, &rootfd, e) < 0 ||
        file_create_at(dirfd, MANIFEST_FILE, s->bytes, s->len, 0644, e) < 0)
        return -1;
    for (size_t i = 0; i < b->n_files; i++)
        if (copy_file(&b->files[i], s->rootfd, rootfd, e) < 0)
            return -1;
    if (baseline_parse(s->bytes, s->len, false, &copy, e) < 0 ||
        baseline_verify_tree(&copy, rootfd, nowhere, e) < 0)
        return err_wrap(e, "the copy");
    return file_sync_dir(dirfd, e);
}

/* The package appears under its name at once, or not at all. */
static int publish(const struct source *s, const struct baseline *b, int outfd, struct err *e)
{
    uint8_t noise[8];
    char hex[2 * sizeof noise + 1];
    char name[64];
    struct err ignored = ERR_INIT;
    int rc = 0;

    if (random_bytes(noise, sizeof noise, e) < 0)
        return -1;
    text_hex(noise, sizeof noise, hex);
    (void) snprintf(name, sizeof name, ".%s.%s", PACKAGE_NAME, hex);
    rc = file_mkdirs_at(outfd, name, 0755, e);
    if (rc == 0)
        rc = fill(s, b, outfd, name, e);
    if (rc == 0 && renameat2(outfd, name, outfd, PACKAGE_NAME, RENAME_NOREPLACE) < 0)
        rc = errno == EEXIST
                 ? err_set(e, ERR_CONFLICT, "baseline.exists", "baseline package already exists")
                 : err_errno(e, "baseline.rename", "cannot name the package '%s'", PACKAGE_NAME);
    if (rc < 0) {
        /* the first failure is the one to tell */
        IGNORE(file_remove_tree_at(outfd, name, &ignored));
        return -1;
    }
    return file_sync_dir(outfd, e);
}

static int open_out(const char *out_dir, int *out_fd, struct err *e)
{
    struct stat st;

    if (mkdir(out_dir, 0755) < 0 && errno != EEXIST)
        return err_errno(e, "baseline.out", "cannot make directory '%s'", out_dir);
    if (file_open_dir(out_dir, out_fd, e) < 0)
        return -1;
    if (fstatat(*out_fd, PACKAGE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(e, ERR_CONFLICT, "baseline.exists", "baseline package already exists: %s/%s",
                       out_dir, PACKAGE_NAME);
    return 0;
}

int baseline_package(const char *manifest_path, const char *root, const char *out_dir,
                     struct baseline *out, struct err *e)
{
    struct source s = {.dirfd = -1, .rootfd = -1};
    struct baseline b = {0};
    AUTO_FD int outfd = -1;
    int rc = source_open(manifest_path, root, &s, e);

    if (rc == 0)
        rc = source_verify(&s, &b, e);
    if (rc == 0)
        rc = open_out(out_dir, &outfd, e);
    if (rc == 0)
        rc = publish(&s, &b, outfd, e);
    source_fini(&s);
    if (rc < 0) {
        baseline_fini(&b);
        return -1;
    }
    *out = b;
    return 0;
}
