#include "runner/runset_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/relname.h"
#include "base/text.h"
#include "runner/runset_sign.h"

#define FILE_MODE 0444
#define PROGRAM_MODE 0555
#define DIR_MODE 0555
#define DIR_MODE_OPEN 0755
#define RANDOM_TAG 8

static const char readme[] = "# Packaged runs\n\n"
                             "Complete clean runs of one source and one executable, in the order "
                             "in which they were made. `index.json`\n"
                             "(`cleanrun-package/1`) says what they are; every part of it can be "
                             "made again from the files here:\n\n"
                             "    cleanrun package verify . [--key PUB.pem] [--require-pass "
                             "--require-clean --require-unchanged-source]\n\n"
                             "`sha256sum -c index.json.sha256` checks the index alone. "
                             "`index.json.dsse.json`, where present, is a DSSE envelope\n"
                             "over an in-toto statement about `index.json`. Integrity says that "
                             "nothing was touched; whether the runs pass is said\n"
                             "by `status` and `shortcomings`.\n";

/* Names. */

static int make_names(const char *out, struct runset_stage *s, char **parent, struct err *e)
{
    size_t len = strlen(out);
    AUTO_FREE char *trimmed = NULL;
    uint8_t tag[RANDOM_TAG];
    char hex[2 * RANDOM_TAG + 1];
    char *slash;

    while (len > 1 && out[len - 1] == '/')
        len--;
    trimmed = strndup(out, len);
    if (!trimmed)
        return err_memory(e, "runset.memory");
    slash = strrchr(trimmed, '/');
    s->name = strdup(slash ? slash + 1 : trimmed);
    if (slash)
        slash[slash == trimmed] = '\0';
    *parent = strdup(slash ? trimmed : ".");
    if (!s->name || !*parent)
        return err_memory(e, "runset.memory");
    if (!s->name[0] || strcmp(s->name, ".") == 0 || strcmp(s->name, "..") == 0)
        return err_set(e, ERR_USAGE, "runset.out", "'%s' names no new directory", out);
    if (random_bytes(tag, sizeof tag, e) < 0)
        return -1;
    text_hex(tag, sizeof tag, hex);
    if (asprintf(&s->partial, ".%s.%s.partial", s->name, hex) < 0) {
        s->partial = NULL; /* asprintf leaves it undefined */
        return err_memory(e, "runset.memory");
    }
    if (asprintf(&s->path, "%s/%s", *parent, s->partial) < 0) {
        s->path = NULL;
        return err_memory(e, "runset.memory");
    }
    return 0;
}

int runset_stage_open(const char *out, struct runset_stage *stage, struct err *e)
{
    AUTO_RUNSET_STAGE struct runset_stage s = {.parent_fd = -1, .fd = -1, .open = true};
    AUTO_FREE char *parent = NULL;
    struct stat st;

    if (make_names(out, &s, &parent, e) < 0 || file_open_dir(parent, &s.parent_fd, e) < 0)
        return -1;
    if (fstatat(s.parent_fd, s.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(e, ERR_CONFLICT, "runset.exists", "'%s' is there already", out);
    if (mkdirat(s.parent_fd, s.partial, DIR_MODE_OPEN) < 0)
        return err_errno(e, "runset.mkdir", "cannot make a directory beside '%s'", out);
    if (file_open_dir_at(s.parent_fd, s.partial, &s.fd, e) < 0)
        return -1;
    *stage = s;
    s = (struct runset_stage){.open = false}; /* moved out */
    return 0;
}

/* Copies. */

static int make_parent(int dirfd, const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *dir = slash ? strndup(path, (size_t) (slash - path)) : NULL;

    if (!slash)
        return 0;
    return dir ? file_mkdirs_at(dirfd, dir, DIR_MODE_OPEN, e) : err_memory(e, "runset.memory");
}

static int copy_member(int from, int to, const char *path, struct err *e)
{
    if (make_parent(to, path, e) < 0)
        return -1;
    return file_copy_at(from, path, to, path, FILE_MODE, e);
}

static int copy_run(const struct runset_stage *s, const struct runset_run *r, size_t i,
                    struct err *e)
{
    char name[RUNSET_RUN_NAME_SIZE];
    AUTO_FD int to = -1;

    runset_run_name(i, name);
    if (file_mkdirs_at(s->fd, name, DIR_MODE_OPEN, e) < 0 ||
        file_open_dir_at(s->fd, name, &to, e) < 0 || copy_member(r->fd, to, MANIFEST_NAME, e) < 0)
        return -1;
    for (size_t k = 0; k < r->manifest.n_files; k++) {
        if (copy_member(r->fd, to, r->manifest.files[k].path, e) < 0)
            return -1;
    }
    return file_sync_dir(to, e);
}

static int copy_executable(const struct runset_stage *s, const struct runset *set, const char *path,
                           struct err *e)
{
    const cJSON *name = json_get(json_get(set->runs[0].manifest.document, "executable"), "name");
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *dir = slash ? strndup(path, (size_t) (slash - path) + 1) : strdup(".");
    AUTO_FREE char *to = NULL;
    AUTO_FD int from = -1;

    if (!dir)
        return err_memory(e, "runset.memory");
    if (!cJSON_IsString(name) || !relname_segment_ok(name->valuestring))
        return err_set(e, ERR_TRUST, "runset.executable",
                       "the manifest gives the executable no usable name");
    if (asprintf(&to, RUNSET_EXECUTABLE "/%s", name->valuestring) < 0) {
        to = NULL; /* asprintf leaves it undefined */
        return err_memory(e, "runset.memory");
    }
    if (file_open_dir(dir, &from, e) < 0 ||
        file_mkdirs_at(s->fd, RUNSET_EXECUTABLE, DIR_MODE_OPEN, e) < 0)
        return -1;
    return file_copy_at(from, slash ? slash + 1 : path, s->fd, to, PROGRAM_MODE, e);
}

static int write_json(const struct runset_stage *s, const char *name, const cJSON *j, struct err *e)
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_JSON_DOCUMENT);
    json_write(&b, j, JSON_PRETTY);
    if (buf_check(&b, e) < 0)
        return err_wrap(e, "%s", name);
    return file_create_at(s->fd, name, b.data, b.len, FILE_MODE, e);
}

static int write_definition(const struct runset_stage *s, const struct definition *d, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (definition_write(d, &bytes, &len, e) < 0)
        return -1;
    return file_create_at(s->fd, RUNSET_DEFINITION, bytes, len, FILE_MODE, e);
}

int runset_stage_copy(struct runset_stage *s, const struct runset *set, const char *executable,
                      struct err *e)
{
    for (size_t i = 0; i < set->n; i++) {
        if (copy_run(s, &set->runs[i], i, e) < 0)
            return -1;
    }
    if (executable && copy_executable(s, set, executable, e) < 0)
        return -1;
    if (write_definition(s, &set->definition, e) < 0 ||
        write_json(s, RUNSET_START, set->start, e) < 0 ||
        (set->now && write_json(s, RUNSET_NOW, set->now, e) < 0))
        return -1;
    return file_create_at(s->fd, RUNSET_README, readme, sizeof readme - 1, FILE_MODE, e);
}

/* The end. */

/* The copies, read as a verifier will, must be what was judged. */
static int check_copies(const struct runset_stage *s, const struct runset *set,
                        struct runset *copies, struct err *e)
{
    bool same;

    if (runset_open_package(s->path, copies, e) < 0)
        return err_wrap(e, "changed while it was being copied");
    same = copies->n == set->n && copies->has_executable == set->has_executable;
    for (size_t i = 0; same && i < set->n; i++)
        same = digest_equal(&copies->runs[i].tree_digest, &set->runs[i].tree_digest);
    return same ? 0
                : err_set(e, ERR_TRUST, "runset.changed",
                          "the runs changed while they were being copied");
}

static int write_checksum(const struct runset_stage *s, const struct digest *index, struct err *e)
{
    char hex[DIGEST_HEX_SIZE];
    char line[DIGEST_HEX_SIZE + 32];
    int len;

    digest_hex(index, hex);
    len = snprintf(line, sizeof line, "%s  " RUNSET_INDEX "\n", hex); /* fits */
    return file_create_at(s->fd, RUNSET_CHECKSUM, line, (size_t) len, FILE_MODE, e);
}

static int write_index(const struct runset_stage *s, struct runset *copies,
                       const struct runset_frame *given, const struct private_key *key,
                       struct digest *out, struct err *e)
{
    AUTO_JSON cJSON *files = NULL;
    AUTO_JSON cJSON *index = NULL;
    AUTO_BUF struct buf b = {.data = NULL};
    AUTO_FREE char *envelope = NULL;
    struct runset_frame frame = *given;
    size_t len = 0;

    if (runset_judge(copies, frame.required, e) < 0 ||
        runset_files(s->fd, copies->n, &files, e) < 0)
        return -1;
    frame.files = files;
    buf_init(&b, LIMIT_PACKAGE_INDEX);
    if (runset_index(copies, &frame, &index, e) < 0)
        return -1;
    json_write(&b, index, JSON_PRETTY);
    if (buf_check(&b, e) < 0 ||
        file_create_at(s->fd, RUNSET_INDEX, b.data, b.len, FILE_MODE, e) < 0)
        return -1;
    *out = digest_of(b.data, b.len);
    if (write_checksum(s, out, e) < 0)
        return -1;
    if (!key)
        return 0;
    if (runset_sign(index, out, key, &envelope, &len, e) < 0)
        return -1;
    return file_create_at(s->fd, RUNSET_ENVELOPE, envelope, len, FILE_MODE, e);
}

/* Every directory of the package gets the mode; the deepest first does not matter to fchmodat. */
static int set_directories(int dirfd, mode_t mode, struct err *e)
{
    AUTO_FILE_LIST struct file_list names = {.names = NULL};

    if (file_list_at(dirfd, LIMIT_PACKAGE_FILES, &names, e) < 0)
        return -1;
    for (size_t i = 0; i < names.n; i++) {
        for (char *slash = strrchr(names.names[i], '/'); slash;
             slash = strrchr(names.names[i], '/')) {
            *slash = '\0';
            if (fchmodat(dirfd, names.names[i], mode, 0) < 0)
                return err_errno(e, "runset.mode", "cannot make '%s' read-only", names.names[i]);
        }
    }
    return fchmod(dirfd, mode) < 0
               ? err_errno(e, "runset.mode", "cannot make the package read-only")
               : 0;
}

int runset_stage_finish(struct runset_stage *s, const struct runset *set,
                        const struct runset_frame *frame, const struct private_key *key,
                        struct digest *out_index, struct err *e)
{
    AUTO_RUNSET struct runset copies = {.runs = NULL};
    struct digest index;

    if (check_copies(s, set, &copies, e) < 0 ||
        write_index(s, &copies, frame, key, &index, e) < 0 || file_sync_dir(s->fd, e) < 0 ||
        set_directories(s->fd, DIR_MODE, e) < 0)
        return -1;
    if (renameat2(s->parent_fd, s->partial, s->parent_fd, s->name, RENAME_NOREPLACE) < 0)
        return errno == EEXIST
                   ? err_set(e, ERR_CONFLICT, "runset.exists", "'%s' is there already", s->name)
                   : err_errno(e, "runset.rename", "cannot name the package '%s'", s->name);
    s->finished = true;
    *out_index = index;
    return file_sync_dir(s->parent_fd, e);
}

void runset_stage_close(struct runset_stage *s)
{
    struct err ignored = ERR_INIT;

    if (!s->open)
        return;
    if (s->fd >= 0 && !s->finished) {
        IGNORE(set_directories(s->fd, DIR_MODE_OPEN, &ignored)); /* so that it can be removed */
        IGNORE(file_remove_tree_at(s->parent_fd, s->partial,
                                   &ignored)); /* the first failure is the one to tell */
    }
    if (s->fd >= 0)
        (void) close(s->fd); /* a directory */
    if (s->parent_fd >= 0)
        (void) close(s->parent_fd); /* a directory */
    free(s->name);
    free(s->partial);
    free(s->path);
    *s = (struct runset_stage){.open = false};
}
