#include "runner/tidy.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "runner/build.h"
#include "runner/measure.h"

#define DEFINITION "definition.json"
#define SOURCE_AT_START "source-at-start.json"

/* What a run directory holds when the program has ended. */
static bool is_ours(const struct run *r, const char *name, mode_t mode)
{
    static const char *const files[] = {DEFINITION, SOURCE_AT_START, BUILD_LOG, BUILD_MESSAGES,
                                        RUN_LOG};

    if (!strcmp(name, RESULTS_DIR))
        return S_ISDIR(mode);
    if (!strcmp(name, PROFILE_DIR))
        return S_ISDIR(mode) && r->plan.mode != PLAN_CLEAN;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (!strcmp(name, files[i]))
            return S_ISREG(mode);
    }
    return false;
}

static int sweep(struct run *r, DIR *dir, size_t *out_removed, struct err *e)
{
    for (const struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        struct stat st;

        if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
            continue;
        if (fstatat(r->dir.fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return err_errno(e, "tidy.look", "cannot look at '%s'", d->d_name);
        if (is_ours(r, d->d_name, st.st_mode))
            continue;
        if (file_remove_tree_at(r->dir.fd, d->d_name, e) < 0)
            return -1;
        (*out_removed)++;
    }
    return 0;
}

static int remove_strangers(struct run *r, struct err *e)
{
    AUTO_FD int fd = openat(r->dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    size_t removed = 0;
    int result;

    if (!dir)
        return err_errno(e, "tidy.open", "cannot read the run directory");
    (void) fd_steal(&fd); /* closedir closes it */
    result = sweep(r, dir, &removed, e);
    (void) closedir(dir); /* was only read */
    if (removed > 0)
        run_fault(r, "the program left %zu entries outside its results directory; they were removed",
                  removed);
    return result;
}

static int restore_directory(struct run *r, const char *name, struct err *e)
{
    if (mkdirat(r->dir.fd, name, 0755) == 0) {
        run_fault(r, "the program removed or replaced its %s directory", name);
        return 0;
    }
    return file_mkdirs_at(r->dir.fd, name, 0755, e); /* it is there, or says what is wrong */
}

/* The bytes that were written before the program started. */
static int restore_file(struct run *r, const char *name, const char *bytes, size_t len,
                        struct err *e)
{
    AUTO_FREE char *now = NULL;
    size_t now_len = 0;
    struct err why = ERR_INIT;

    if (file_read_at(r->dir.fd, name, LIMIT_JSON_DOCUMENT, &now, &now_len, &why) == 0 &&
        now_len == len && memcmp(now, bytes, len) == 0)
        return 0;
    run_fault(r, "the program removed or changed %s", name);
    return file_write_at(r->dir.fd, name, bytes, len, 0644, e);
}

static int restore_files(struct run *r, struct err *e)
{
    AUTO_FREE char *definition = NULL;
    AUTO_JSON cJSON *source = NULL;
    AUTO_BUF struct buf b = {.data = NULL};
    size_t len = 0;

    buf_init(&b, LIMIT_KIB(64));
    if (definition_write(r->definition, &definition, &len, e) < 0 ||
        source_to_json(&r->start, &source, e) < 0)
        return -1;
    json_write(&b, source, JSON_PRETTY);
    if (buf_check(&b, e) < 0)
        return -1;
    return restore_file(r, DEFINITION, definition, len, e) < 0
               ? -1
               : restore_file(r, SOURCE_AT_START, b.data, b.len, e);
}

int run_tidy(struct run *r, struct err *e)
{
    bool moved = false;

    if (rundir_restore(&r->dir, &moved, e) < 0)
        return -1;
    if (moved)
        run_fault(r, "the program moved or removed the run directory");
    if (remove_strangers(r, e) < 0 || restore_directory(r, RESULTS_DIR, e) < 0)
        return -1;
    if (r->plan.mode != PLAN_CLEAN && restore_directory(r, PROFILE_DIR, e) < 0)
        return -1;
    return restore_files(r, e);
}
