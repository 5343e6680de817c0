#include "runner/reference.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "runner/rundir.h"

#define SNAPSHOT_DIR "baseline"

/* The manifest is the one that was named, and what it lists is not what is there: broken evidence.
 */
static int differs(const char *what, struct err *e)
{
    return err_set(e, ERR_TRUST, "reference.differs", "reviewed baseline content differs: %s",
                   what);
}

bool reference_keeps(const char *path)
{
    return !strcmp(path, RUNDIR_DEFINITION) || !strncmp(path, "results/", 8);
}

/* One listed file of `dir` against the manifest. */
static int check_file(int dir_fd, const char *path, const struct manifest_file *f, struct err *e)
{
    AUTO_FD int fd = -1;
    uint64_t size = 0;
    struct digest digest;

    if (file_open_at(dir_fd, path, &fd, &size, e) < 0 || digest_of_fd(fd, &digest, &size, e) < 0)
        return differs(f->path, e);
    return size == f->size && digest_equal(&digest, &f->digest) ? 0 : differs(f->path, e);
}

static int read_manifest(struct reference *r, const char *sha256, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    struct digest wanted;

    if (!digest_parse(sha256, &wanted))
        return err_set(e, ERR_USAGE, "reference.sha256",
                       "--baseline-sha256 must be 64 lower-case hex digits");
    if (file_read_at(r->dir_fd, MANIFEST_NAME, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0) {
        e->kind = ERR_USAGE;
        return err_wrap(e, "baseline");
    }
    r->manifest_digest = digest_of(bytes, len);
    /* Another manifest than the caller named: nothing says which of the two is right. */
    if (!digest_equal(&r->manifest_digest, &wanted))
        return err_set(e, ERR_USAGE, "reference.other",
                       "reviewed baseline content differs: " MANIFEST_NAME
                       " is not the one that --baseline-sha256 names");
    if (manifest_parse(bytes, len, &r->manifest, e) < 0) {
        e->kind = ERR_USAGE;
        return err_wrap(e, "baseline");
    }
    if (r->manifest.status != MANIFEST_PASS)
        return err_set(e, ERR_USAGE, "reference.status",
                       "run %s cannot be a baseline: its status is %s", r->manifest.run,
                       manifest_status_name(r->manifest.status));
    return 0;
}

static int read_definition(struct reference *r, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (file_read_at(r->dir_fd, RUNDIR_DEFINITION, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0 ||
        definition_parse(bytes, len, &r->definition, e) < 0) {
        e->kind = ERR_USAGE;
        return err_wrap(e, "baseline");
    }
    if (!digest_equal(&r->definition.experiment_digest, &r->manifest.experiment_digest) ||
        !digest_equal(&r->definition.policy_digest, &r->manifest.policy_digest))
        return differs(RUNDIR_DEFINITION, e);
    return 0;
}

/* Only members of role report are compared; raw-report members are kept but not read. */
static int read_tree(struct reference *r, struct err *e)
{
    tree_init(&r->tree);
    for (size_t i = 0; i < r->manifest.n_files; i++) {
        const struct manifest_file *f = &r->manifest.files[i];
        AUTO_FREE char *bytes = NULL;
        size_t len = 0;

        if (strcmp(f->role, "report") != 0 || strncmp(f->path, "results/", 8) != 0)
            continue;
        if (file_read_at(r->dir_fd, f->path, LIMIT_REPORT, &bytes, &len, e) < 0 ||
            tree_add(&r->tree, f->path + 8, bytes, len, e) < 0)
            return -1;
    }
    return 0;
}

static int check_snapshot(const struct reference *r, int dir_fd, const char *prefix, struct err *e)
{
    for (size_t i = 0; i < r->manifest.n_files; i++) {
        const struct manifest_file *f = &r->manifest.files[i];
        AUTO_FREE char *path = NULL;

        if (!reference_keeps(f->path))
            continue;
        if (asprintf(&path, "%s%s", prefix, f->path) < 0) {
            path = NULL;
            return err_memory(e, "reference.memory");
        }
        if (check_file(dir_fd, path, f, e) < 0)
            return -1;
    }
    return 0;
}

int reference_open(const char *dir, const char *sha256, struct reference *out, struct err *e)
{
    struct reference r = {.dir_fd = -1};

    if (!dir && !sha256) {
        *out = r;
        return 0;
    }
    if (!dir)
        return err_set(e, ERR_USAGE, "reference.dir", "--baseline-sha256 requires --baseline");
    if (!sha256)
        return err_set(e, ERR_USAGE, "reference.sha256", "--baseline requires --baseline-sha256");
    if (file_open_dir(dir, &r.dir_fd, e) < 0) {
        e->kind = ERR_USAGE;
        return err_wrap(e, "baseline");
    }
    r.present = true;
    if (read_manifest(&r, sha256, e) < 0 || read_definition(&r, e) < 0 ||
        check_snapshot(&r, r.dir_fd, "", e) < 0 || read_tree(&r, e) < 0) {
        reference_close(&r);
        return -1;
    }
    (void) snprintf(r.id, sizeof(r.id), "b-%s", r.manifest.run); /* a run id has 25 characters */
    *out = r;
    return 0;
}

static int copy_in(const struct reference *ref, int run_fd, const char *path, struct err *e)
{
    AUTO_FREE char *to = NULL;
    char *slash;

    if (asprintf(&to, SNAPSHOT_DIR "/%s", path) < 0) {
        to = NULL;
        return err_memory(e, "reference.memory");
    }
    slash = strrchr(to, '/');
    *slash = '\0';
    if (file_mkdirs_at(run_fd, to, 0755, e) < 0)
        return -1;
    *slash = '/';
    return file_copy_at(ref->dir_fd, path, run_fd, to, 0644, e);
}

int reference_snapshot(const struct reference *ref, int run_fd, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    struct digest now;

    if (!ref->present)
        return 0;
    if (copy_in(ref, run_fd, MANIFEST_NAME, e) < 0)
        return -1;
    for (size_t i = 0; i < ref->manifest.n_files; i++)
        if (reference_keeps(ref->manifest.files[i].path) &&
            copy_in(ref, run_fd, ref->manifest.files[i].path, e) < 0)
            return -1;
    if (file_read_at(run_fd, SNAPSHOT_DIR "/" MANIFEST_NAME, LIMIT_JSON_DOCUMENT, &bytes, &len, e) <
        0)
        return -1;
    now = digest_of(bytes, len);
    if (!digest_equal(&now, &ref->manifest_digest))
        return differs(MANIFEST_NAME, e);
    return check_snapshot(ref, run_fd, SNAPSHOT_DIR "/", e);
}

void reference_close(struct reference *r)
{
    if (!r->present)
        return;
    if (r->dir_fd >= 0)
        (void) close(r->dir_fd); /* a directory that was only read */
    manifest_fini(&r->manifest);
    definition_fini(&r->definition);
    tree_fini(&r->tree);
    scratch_close(&r->scratch);
    *r = (struct reference){.dir_fd = -1};
}
