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
#include "runner/keep.h"
#include "runner/measure.h"
#include "runner/name_list.h"
#include "runner/paths.h"

/* What a run directory holds when the program has ended. */
static bool is_ours(const struct run *r, const char *name, mode_t mode)
{
    static const char *const files[] = {RUNDIR_DEFINITION, RUNDIR_SOURCE_AT_START, BUILD_LOG,
                                        BUILD_MESSAGES, RUN_LOG};

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

static int sweep(struct run *r, DIR *dir, bool has_places, struct name_list *removed, struct err *e)
{
    for (const struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        struct stat st;

        if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
            continue;
        if (fstatat(r->dir.fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return err_errno(e, "tidy.look", "cannot look at '%s'", d->d_name);
        if (is_ours(r, d->d_name, st.st_mode) && (has_places || !S_ISDIR(st.st_mode)))
            continue;
        if (file_remove_tree_at(r->dir.fd, d->d_name, e) < 0)
            return -1;
        name_list_add(removed, "", d->d_name);
    }
    return 0;
}

static int remove_strangers(struct run *r, const char *who, bool has_places, struct err *e)
{
    DIR *dir = paths_open_dir(r->dir.fd, ".");
    struct name_list removed = {.n = 0};
    int result;

    if (!dir)
        return err_errno(e, "tidy.open", "cannot read the run directory");
    result = sweep(r, dir, has_places, &removed, e);
    (void) closedir(dir); /* was only read */
    if (removed.n > 0)
        run_fault(r, "%s left %zu entr%s outside its results directory; %s removed: %s", who,
                  removed.n, removed.n == 1 ? "y" : "ies", removed.n == 1 ? "it was" : "they were",
                  removed.text);
    return result;
}

static int restore_directory(struct run *r, const char *who, const char *name, struct err *e)
{
    if (mkdirat(r->dir.fd, name, 0755) == 0) {
        run_fault(r, "%s removed or replaced its %s directory", who, name);
        return 0;
    }
    return file_mkdirs_at(r->dir.fd, name, 0755, e); /* it is there, or says what is wrong */
}

static int restore(struct run *r, const char *who, const struct keep *k, struct err *e)
{
    bool changed = false;

    if (keep_restore(k, r->dir.fd, &changed, e) < 0)
        return -1;
    if (changed)
        run_fault(r, "%s removed or changed %s", who, k->name);
    return 0;
}

/* A document that we can make again is its own copy. */
static int restore_document(struct run *r, const char *who, const char *name, const char *bytes,
                            size_t len, struct err *e)
{
    __attribute__((cleanup(keep_close))) struct keep k = {.name = NULL};

    return keep_open(&k, name, e) < 0 || keep_put(&k, bytes, len, e) < 0 ? -1
                                                                         : restore(r, who, &k, e);
}

static int restore_files(struct run *r, const char *who, struct err *e)
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
    if (restore_document(r, who, RUNDIR_DEFINITION, definition, len, e) < 0 ||
        restore_document(r, who, RUNDIR_SOURCE_AT_START, b.data, b.len, e) < 0)
        return -1;
    return restore(r, who, &r->kept.build_log, e) < 0 ||
                   restore(r, who, &r->kept.build_messages, e) < 0
               ? -1
               : restore(r, who, &r->kept.run_log, e);
}

/* Where it is, and that we may work in it. */
static int restore_place(struct run *r, const char *who, struct err *e)
{
    bool moved = false;
    struct stat st;

    if (rundir_restore(&r->dir, &moved, e) < 0)
        return -1;
    if (moved)
        run_fault(r, "%s moved or removed the run directory", who);
    if (fstat(r->dir.fd, &st) < 0)
        return err_errno(e, "tidy.look", "cannot look at the run directory");
    if ((st.st_mode & S_IRWXU) == S_IRWXU)
        return 0;
    run_fault(r, "%s changed the permissions of the run directory", who);
    return fchmod(r->dir.fd, 0755) < 0
               ? err_errno(e, "tidy.mode", "cannot open the run directory again")
               : 0;
}

int run_tidy(struct run *r, const char *who, bool has_places, struct err *e)
{
    if (restore_place(r, who, e) < 0 || remove_strangers(r, who, has_places, e) < 0)
        return -1;
    if (has_places && restore_directory(r, who, RESULTS_DIR, e) < 0)
        return -1;
    if (has_places && r->plan.mode != PLAN_CLEAN && restore_directory(r, who, PROFILE_DIR, e) < 0)
        return -1;
    return restore_files(r, who, e);
}
