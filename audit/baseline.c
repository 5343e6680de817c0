/* The manifest of a reviewed baseline: shape. Files: baseline_tree.c. */
#include "audit/baseline.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/relname.h"
#include "base/text.h"

#define BASELINE_OURS "cleanrun-baseline/1"
#define BASELINE_SEED "rvoip-perf-regression-baseline-v1"
#define BROKEN ERR_TRUST, "baseline.manifest"

void baseline_fini(struct baseline *b)
{
    for (size_t i = 0; i < b->n_files; i++)
        free(b->files[i].path);
    free(b->files);
    json_free(b->document);
    *b = (struct baseline){0};
}

/* The path without "." and empty components; NULL when it is empty, absolute, or goes up. */
static char *normalise(const char *path)
{
    char *out = path[0] == '/' ? NULL : calloc(1, strlen(path) + 1);
    size_t len = 0;

    while (out && *path) {
        size_t n = strcspn(path, "/");

        if (n == 2 && path[0] == '.' && path[1] == '.') {
            free(out);
            return NULL;
        }
        if (n > 0 && !(n == 1 && path[0] == '.')) {
            if (len > 0)
                out[len++] = '/';
            memcpy(out + len, path, n);
            len += n;
        }
        path += n + (path[n] == '/');
    }
    if (out && len == 0) {
        free(out);
        return NULL;
    }
    return out;
}

/* A safe path of this baseline's format, heap; NULL when it is none. */
static char *safe_path(const struct baseline *b, const cJSON *j)
{
    if (!cJSON_IsString(j))
        return NULL;
    if (!b->legacy)
        return relname_ok(j->valuestring) ? strdup(j->valuestring) : NULL;
    return normalise(j->valuestring);
}

static int read_file_row(struct baseline *b, const cJSON *row, struct err *e)
{
    static const char *const known[] = {"path", "size", "sha256"};
    struct baseline_file *f = &b->files[b->n_files];
    struct err why = ERR_INIT;

    if (!cJSON_IsObject(row))
        return err_set(e, BROKEN, "a file entry of the baseline manifest is no object");
    if (!b->legacy && json_only_keys(row, known, ARRAY_LEN(known), &why) < 0)
        return err_set(e, BROKEN, "baseline manifest: %.300s", why.text);
    f->path = safe_path(b, json_get(row, "path"));
    if (!f->path)
        return err_set(e, BROKEN, "baseline file path is unsafe: %.200s",
                       json_text(row, "path", ""));
    b->n_files++;
    if (json_get_u53(row, b->legacy ? "bytes" : "size", LIMIT_MEMBER, &f->size, &why) < 0)
        return err_set(e, BROKEN, "invalid baseline file size: %.200s (%.100s)", f->path, why.text);
    if (!digest_parse(json_text(row, "sha256", ""), &f->digest))
        return err_set(e, BROKEN, "invalid baseline SHA-256: %.200s", f->path);
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct baseline_file *) a)->path,
                  ((const struct baseline_file *) b)->path);
}

static int read_files(struct baseline *b, struct err *e)
{
    const cJSON *files = json_get(b->document, "files");
    const cJSON *row = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(row, files)
        n++;
    if (!cJSON_IsArray(files) || n == 0)
        return err_set(e, BROKEN, "baseline manifest has no files");
    if (n > LIMIT_TREE_FILES)
        return err_set(e, BROKEN, "baseline manifest has more than %d files", LIMIT_TREE_FILES);
    b->files = calloc(n, sizeof *b->files);
    if (!b->files)
        return err_memory(e, "baseline.memory");
    cJSON_ArrayForEach(row, files) {
        if (read_file_row(b, row, e) < 0)
            return -1;
    }
    qsort(b->files, b->n_files, sizeof *b->files, by_path);
    for (size_t i = 1; i < b->n_files; i++)
        if (strcmp(b->files[i - 1].path, b->files[i].path) == 0)
            return err_set(e, BROKEN, "baseline file paths must be unique: %.200s",
                           b->files[i].path);
    return 0;
}

static bool listed(const struct baseline *b, const char *path)
{
    struct baseline_file wanted = {0};
    AUTO_FREE char *copy = strdup(path);

    wanted.path = copy;
    return copy && b->n_files > 0 &&
           bsearch(&wanted, b->files, b->n_files, sizeof *b->files, by_path) != NULL;
}

static int check_unique(const cJSON *paths, struct err *e)
{
    for (const cJSON *a = paths->child; a; a = a->next)
        for (const cJSON *b = a->next; b; b = b->next)
            if (strcmp(a->valuestring, b->valuestring) == 0)
                return err_set(e, BROKEN,
                               "reviewed baseline comparison paths must be unique: %.200s",
                               a->valuestring);
    return 0;
}

/* Checks the comparison paths and replaces them by their normalised form. */
static int read_paths(struct baseline *b, struct err *e)
{
    cJSON *paths = cJSON_GetObjectItemCaseSensitive(b->document, "comparison_paths");
    cJSON *made = cJSON_CreateArray();
    const cJSON *item = NULL;
    size_t n = 0;

    if (!made || !cJSON_IsArray(paths) || !paths->child) {
        json_free(made);
        return made ? err_set(e, BROKEN, "reviewed baseline manifest has no comparison paths")
                    : err_memory(e, "baseline.memory");
    }
    cJSON_ArrayForEach(item, paths) {
        AUTO_FREE char *path = safe_path(b, item);
        cJSON *copy = path ? cJSON_CreateString(path) : NULL;

        if (!copy || ++n > LIMIT_METRICS) {
            json_free(copy);
            json_free(made);
            return err_set(e, BROKEN, "reviewed baseline comparison path is unsafe: %.200s",
                           cJSON_IsString(item) ? item->valuestring : "(no text)");
        }
        (void) cJSON_AddItemToArray(made, copy); /* fails for NULL or the array itself only */
    }
    if (!cJSON_ReplaceItemInObjectCaseSensitive(b->document, "comparison_paths", made)) {
        json_free(made);
        return err_memory(e, "baseline.memory");
    }
    if (check_unique(made, e) < 0)
        return -1;
    cJSON_ArrayForEach(item, made) {
        if (!b->paths_only && !listed(b, item->valuestring))
            return err_set(
                e, BROKEN,
                "reviewed baseline comparison path is absent from the file inventory: %.200s",
                item->valuestring);
    }
    return 0;
}

static int check_seed_head(const struct baseline *b, struct err *e)
{
    const cJSON *qualification = json_get(b->document, "qualification");
    const cJSON *source = json_get(b->document, "source");
    const char *status = json_text(source, "git_status", "");
    int64_t stamp = 0;

    if (!clock_parse_compact(b->id, &stamp))
        return err_set(e, BROKEN, "baseline_id must be a UTC timestamp identifier, not '%.80s'",
                       b->id);
    if (b->paths_only)
        return 0;
    if (!cJSON_IsFalse(json_get(qualification, "release_evidence")) ||
        !json_text(qualification, "permitted_use", "")[0])
        return err_set(e, BROKEN,
                       "baseline manifest must mark the historical input as non-release evidence");
    if (!json_text(source, "git_revision", "")[0])
        return err_set(e, BROKEN, "baseline manifest has no source git revision");
    if (strcmp(status, "clean") != 0 && strcmp(status, "dirty") != 0)
        return err_set(e, BROKEN, "baseline source git_status must be clean or dirty");
    return 0;
}

static bool our_id_ok(const char *id)
{
    int64_t stamp = 0;

    return strncmp(id, "b-", 2) == 0 &&
           (text_is_run_id(id + 2) || clock_parse_compact(id + 2, &stamp));
}

static int check_our_head(const struct baseline *b, struct err *e)
{
    static const char *const known[] = {
        "schema",          "baseline_id",      "run",  "project", "gate", "class", "reviewed",
        "evidence_sha256", "comparison_paths", "files"};
    static const char *const review_keys[] = {"by", "at", "reason"};
    const cJSON *reviewed = json_get(b->document, "reviewed");
    const cJSON *run = json_get(b->document, "run");
    const cJSON *evidence = json_get(b->document, "evidence_sha256");
    struct err why = ERR_INIT;
    struct digest digest;
    int64_t at = 0;

    if (json_only_keys(b->document, known, ARRAY_LEN(known), &why) < 0 ||
        (reviewed && json_only_keys(reviewed, review_keys, ARRAY_LEN(review_keys), &why) < 0))
        return err_set(e, BROKEN, "baseline manifest: %.300s", why.text);
    if (!our_id_ok(b->id))
        return err_set(e, BROKEN,
                       "baseline_id must be 'b-' and a run id or a UTC timestamp, not '%.80s'",
                       b->id);
    if (run && (!cJSON_IsString(run) || !text_is_run_id(run->valuestring)))
        return err_set(e, BROKEN, "baseline manifest: run is no run id");
    if (!text_is_project(json_text(b->document, "project", "")) ||
        !text_is_slug(json_text(b->document, "gate", "")) ||
        !text_is_slug(json_text(b->document, "class", "")))
        return err_set(e, BROKEN, "baseline manifest: project, gate and class are needed");
    if (!json_text(reviewed, "by", "")[0] || !json_text(reviewed, "reason", "")[0] ||
        !clock_parse_rfc3339(json_text(reviewed, "at", ""), &at))
        return err_set(e, BROKEN, "baseline manifest: a review needs by, at and reason");
    if (evidence && !digest_parse(json_text(b->document, "evidence_sha256", ""), &digest))
        return err_set(e, BROKEN, "invalid baseline SHA-256: evidence_sha256");
    return 0;
}

static int read_document(struct baseline *b, bool allow_paths_only, struct err *e)
{
    const char *schema = json_text(b->document, "schema", "");

    if (strcmp(schema, BASELINE_OURS) != 0 && strcmp(schema, BASELINE_SEED) != 0)
        return err_set(e, BROKEN, "unsupported baseline manifest schema '%.80s'", schema);
    b->legacy = strcmp(schema, BASELINE_SEED) == 0;
    b->id = json_text(b->document, "baseline_id", "");
    b->paths_only = b->legacy && allow_paths_only && !json_get(b->document, "files");
    if ((b->legacy ? check_seed_head(b, e) : check_our_head(b, e)) < 0)
        return -1;
    if (!b->paths_only && read_files(b, e) < 0)
        return -1;
    return read_paths(b, e);
}

int baseline_parse(const char *bytes, size_t len, bool allow_paths_only, struct baseline *out,
                   struct err *e)
{
    static const struct json_limits limits = {.max_bytes = LIMIT_JSON_DOCUMENT};
    struct baseline b = {.digest = digest_of(bytes, len)};
    struct err why = ERR_INIT;
    int rc = -1;

    if (json_parse(bytes, len, &limits, &b.document, &why) < 0)
        return why.kind == ERR_NOMEM
                   ? err_memory(e, "baseline.memory")
                   : err_set(e, BROKEN, "baseline manifest is no JSON: %s", why.text);
    if (!cJSON_IsObject(b.document))
        rc = err_set(e, BROKEN, "baseline manifest is no object");
    else
        rc = read_document(&b, allow_paths_only, e);
    if (rc < 0) {
        baseline_fini(&b);
        return -1;
    }
    *out = b;
    return 0;
}
