#include "runner/report.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
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
#include "base/relname.h"
#include "evidence/names.h"
#include "experiment/pointer.h"
#include "experiment/resources.h"
#include "experiment/samples.h"
#include "runner/measure.h"

#define RESULTS_DEPTH 32 /* directories; no name in a package has as many */
#define AS_WRITTEN ".as-written"
/* Half of what a package may hold: a snapshot of the baseline and the run's own files come with it.
 */
#define RESULTS_MAX (LIMIT_MEMBERS / 2 - 64)
#define RESULTS_SIZE_MAX (LIMIT_ARCHIVE / 2)
#define PATH_SIZE (LIMIT_RELNAME + 32)

static const struct json_limits report_limits = {.max_bytes = LIMIT_REPORT};

static const char *const status_words[] = {
    [REPORT_NOT_EXPECTED] = "NOT_EXPECTED",
    [REPORT_MISSING] = "MISSING",
    [REPORT_INVALID] = "INVALID",
    [REPORT_CAPTURED] = "CAPTURED",
};

const char *report_status_word(enum report_status s)
{
    return status_words[s];
}

static int invalid(struct report *r, const char *why)
{
    r->status = REPORT_INVALID;
    (void) snprintf(r->why, sizeof(r->why), "%s", why); /* a cut reason still explains */
    json_free(r->document);
    r->document = NULL;
    return 0;
}

/* Parent object of a pointer's last token. *out_key points into the pointer. */
static cJSON *parent_of(cJSON *root, const char *pointer, const char **out_key)
{
    const char *slash = strrchr(pointer, '/');
    AUTO_FREE char *head = slash ? strndup(pointer, (size_t) (slash - pointer)) : NULL;
    const cJSON *found = head ? pointer_get(root, head) : NULL;

    if (!cJSON_IsObject(found))
        return NULL;
    *out_key = slash + 1;
    return (cJSON *) (uintptr_t) found; /* below `root`, which the caller owns */
}

static int add_member(cJSON *parent, const char *key, const cJSON *value, struct err *e)
{
    cJSON *copy = cJSON_Duplicate(value, true);

    if (!copy || !cJSON_AddItemToObject(parent, key, copy)) {
        json_free(copy);
        return err_memory(e, "report.memory");
    }
    return 0;
}

/* diagnostics.phase_markers, unless the workload wrote its own. */
static int add_markers(struct report *r, const cJSON *markers, struct err *e)
{
    cJSON *diagnostics = (cJSON *) (uintptr_t) json_get(r->document, "diagnostics");

    if (!diagnostics) {
        diagnostics = cJSON_CreateObject();
        if (!diagnostics || !cJSON_AddItemToObject(r->document, "diagnostics", diagnostics)) {
            json_free(diagnostics);
            return err_memory(e, "report.memory");
        }
    }
    if (!cJSON_IsObject(diagnostics))
        return invalid(r, "diagnostics is no object");
    return json_get(diagnostics, "phase_markers")
               ? 0
               : add_member(diagnostics, "phase_markers", markers, e);
}

static int derive(const struct plan *p, const char *csv, size_t csv_len, const cJSON *markers,
                  struct report *r, struct err *e)
{
    AUTO_SAMPLES struct samples samples = {.n = 0};
    const char *key = NULL;
    cJSON *parent = parent_of(r->document, p->sampling_into, &key);

    if (!parent)
        return invalid(
            r, "the place for the runner's resources (sampling.into) does not exist in the report");
    if (json_get(parent, key))
        return invalid(
            r, "the workload wrote the part of the report that the runner derives (sampling.into)");
    if (samples_parse_csv(csv, csv_len, &samples, e) < 0 ||
        resources_derive(p->definition, &samples, markers, &r->resources, e) < 0 ||
        add_member(parent, key, r->resources, e) < 0)
        return -1;
    return add_markers(r, markers, e);
}

/* The name for the workload's own bytes is ours: what the program put there would be lost, or be
 * taken for them. */
static bool has_raw(int run_fd, const char *path)
{
    char raw[PATH_SIZE + sizeof(AS_WRITTEN)];
    struct stat st;

    (void) snprintf(raw, sizeof(raw), "%s" AS_WRITTEN, path); /* fits: path is a relname */
    return fstatat(run_fd, raw, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Keeps the workload's bytes and writes the completed document in their place. */
static int replace(int run_fd, const char *path, const struct report *r, struct err *e)
{
    char raw[PATH_SIZE + sizeof(AS_WRITTEN)];
    AUTO_BUF struct buf b = {.data = NULL};

    (void) snprintf(raw, sizeof(raw), "%s" AS_WRITTEN, path); /* fits: path is a relname */
    if (renameat(run_fd, path, run_fd, raw) < 0)
        return err_errno(e, "report.keep", "cannot keep the report as written");
    buf_init(&b, LIMIT_REPORT);
    json_write(&b, r->document, JSON_PRETTY);
    if (buf_check(&b, e) < 0)
        return -1;
    return file_write_at(run_fd, path, b.data, b.len, 0644, e);
}

int report_take(const struct plan *p, int run_fd, const char *csv, size_t csv_len,
                const cJSON *markers, struct report *out, struct err *e)
{
    struct report r = {.status = REPORT_MISSING};
    char path[PATH_SIZE];
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    struct err why = ERR_INIT;

    (void) snprintf(path, sizeof(path), RESULTS_DIR "/%.*s", LIMIT_RELNAME,
                    p->run.report); /* a relname */
    if (file_read_at(run_fd, path, LIMIT_REPORT, &bytes, &len, &why) < 0) {
        if (why.kind == ERR_NOTFOUND) {
            (void) snprintf(r.why, sizeof(r.why), "the program wrote no %s below $CLEANRUN_RESULTS",
                            p->run.report);
        } else if (why.kind == ERR_LIMIT) {
            (void) invalid(&r, why.text); /* always 0 */
        } else {
            *e = why;
            return -1;
        }
        *out = r;
        return 0;
    }
    if (json_parse(bytes, len, &report_limits, &r.document, &why) < 0) {
        (void) invalid(&r, why.text); /* always 0 */
    } else if (!cJSON_IsObject(r.document)) {
        (void) invalid(&r, "the report is no object"); /* always 0 */
    } else if (p->sampling_into && has_raw(run_fd, path)) {
        (void) invalid(&r,
                       "the program wrote <report>" AS_WRITTEN " itself, where the runner keeps "
                       "the report as it was written (sampling.into)"); /* always 0 */
    } else {
        r.status = REPORT_CAPTURED;
        if (p->sampling_into && derive(p, csv, csv_len, markers, &r, e) < 0) {
            report_fini(&r);
            return -1;
        }
    }
    if (r.status == REPORT_CAPTURED && p->sampling_into && replace(run_fd, path, &r, e) < 0) {
        report_fini(&r);
        return -1;
    }
    *out = r;
    return 0;
}

void report_fini(struct report *r)
{
    json_free(r->document);
    json_free(r->resources);
    *r = (struct report){.status = REPORT_MISSING};
}

/* What the results directory holds that a package can take. */
struct results {
    char **kept; /* relative names, owned */
    size_t n;
    uint64_t size;
    struct name_list removed;
};

static void results_fini(struct results *k)
{
    for (size_t i = 0; i < k->n; i++)
        free(k->kept[i]);
    free(k->kept);
}

static bool may_stay(const struct results *k, const FTSENT *f, const char *relative)
{
    return f->fts_info == FTS_F && relname_ok(relative) && k->n < RESULTS_MAX &&
           f->fts_statp->st_size >= 0 && (uint64_t) f->fts_statp->st_size <= LIMIT_MEMBER &&
           k->size + (uint64_t) f->fts_statp->st_size <= RESULTS_SIZE_MAX;
}

static int keep(struct results *k, const FTSENT *f, const char *relative, struct err *e)
{
    k->kept[k->n] = strdup(relative);
    if (!k->kept[k->n])
        return err_memory(e, "report.memory");
    k->n++;
    k->size += (uint64_t) f->fts_statp->st_size;
    return 0;
}

static int drop(struct results *k, int run_fd, const char *relative, struct err *e)
{
    if (unlinkat(run_fd, relative, 0) < 0)
        return err_errno(e, "report.results", "cannot remove '%s'", relative);
    name_list_add(&k->removed, "", relative);
    return 0;
}

/* A directory that is left empty goes too: it may stand where the report should, or too deep. */
static int leave_directory(int run_fd, const FTSENT *f, const char *relative, struct err *e)
{
    if (f->fts_level == FTS_ROOTLEVEL || unlinkat(run_fd, relative, AT_REMOVEDIR) == 0 ||
        errno == ENOTEMPTY || errno == EEXIST)
        return 0;
    return err_errno(e, "report.results", "cannot remove '%s'", relative);
}

/* Permissions that the program took away from us. */
static int make_readable(int run_fd, const FTSENT *f, const char *relative, mode_t needed,
                         struct err *e)
{
    mode_t mode = f->fts_statp->st_mode & 07777;

    if ((mode & needed) == needed || fchmodat(run_fd, relative, mode | needed, 0) == 0)
        return 0;
    return err_errno(e, "report.results", "cannot read '%s'", relative);
}

static int visit(struct results *k, int run_fd, const FTSENT *f, const char *relative,
                 struct err *e)
{
    if (f->fts_info == FTS_D)
        return make_readable(run_fd, f, relative, S_IRWXU, e);
    if (f->fts_info == FTS_DP)
        return leave_directory(run_fd, f, relative, e);
    if (f->fts_info == FTS_DNR || f->fts_info == FTS_ERR)
        return err_set(e, ERR_SYS, "report.results", "cannot read '%s'", relative);
    if (!may_stay(k, f, relative))
        return drop(k, run_fd, relative, e);
    return make_readable(run_fd, f, relative, S_IRUSR, e) < 0 ? -1 : keep(k, f, relative, e);
}

static int walk_results(struct results *k, int run_fd, struct err *e)
{
    char root[64];
    size_t skip;
    int r = 0;
    FTS *fts;

    (void) snprintf(root, sizeof(root), "/proc/self/fd/%d/" RESULTS_DIR, run_fd); /* fits */
    char *const roots[] = {root, NULL};

    skip = strlen(root) - strlen(RESULTS_DIR);
    fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!fts)
        return err_errno(e, "report.results", "cannot read the results");
    for (FTSENT *f = fts_read(fts); f && r == 0; f = fts_read(fts))
        r = visit(k, run_fd, f, f->fts_path + skip, e);
    (void) fts_close(fts); /* nothing was written through it */
    return r;
}

/* Names that no archive holds together: which of them is meant cannot be told, so none stays. */
static int drop_clashes(struct results *k, int run_fd, struct err *e)
{
    struct err why = ERR_INIT;

    if (names_check((const char *const *) k->kept, k->n, &why) == 0)
        return 0;
    if (why.kind != ERR_INPUT) {
        *e = why;
        return -1;
    }
    for (size_t i = 0; i < k->n; i++) {
        if (drop(k, run_fd, k->kept[i], e) < 0)
            return -1;
    }
    return 0;
}

int report_clean_results(int run_fd, struct name_list *out_removed, struct err *e)
{
    __attribute__((cleanup(results_fini))) struct results k = {
        .kept = calloc(RESULTS_MAX, sizeof *k.kept)};

    if (!k.kept)
        return err_memory(e, "report.memory");
    /* What is so deep can't even be named by a path. */
    size_t deep = 0;

    if (file_prune_at(run_fd, RESULTS_DIR, RESULTS_DEPTH, &deep, e) < 0 ||
        walk_results(&k, run_fd, e) < 0 || drop_clashes(&k, run_fd, e) < 0)
        return -1;
    *out_removed = k.removed;
    out_removed->n += deep;
    return 0;
}

int report_is_json(int run_fd, const char *path, bool *out, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    struct err why = ERR_INIT;

    *out = false;
    if (file_read_at(run_fd, path, LIMIT_REPORT, &bytes, &len, &why) < 0) {
        if (why.kind == ERR_LIMIT)
            return 0;
        *e = why;
        return -1;
    }
    *out = json_validate(bytes, len, &report_limits, &why) == 0;
    return 0;
}
