#include "evidence/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"

#define IGNORED_MAX UINT32_MAX

const char *manifest_status_name(enum manifest_status s)
{
    switch (s) {
    case MANIFEST_BUILD_ONLY:
        return "BUILD_ONLY";
    case MANIFEST_PASS:
        return "PASS";
    case MANIFEST_FAIL:
        return "FAIL";
    }
    return "FAIL";
}

static const struct standard_name {
    const char *path;
    const char *role;
} standard_names[] = {
    {"definition.json", "definition"},   {"build-messages.jsonl", "build-messages"},
    {"build.log", "build-log"},          {"run.log", "run-log"},
    {"source-at-start.json", "source"},  {"source-at-end.json", "source"},
    {"environment.json", "environment"}, {"host.json", "host"},
    {"acceptance.json", "acceptance"},   {"audit.json", "audit"},
    {"audit.md", "audit-markdown"},
};

static const char *const roles[] = {
    "definition",  "build-messages", "build-log",      "run-log",    "source",
    "environment", "host",           "report",         "raw-report", "samples",
    "acceptance",  "audit",          "audit-markdown", "baseline",   "profile",
};

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s);
    size_t m = strlen(suffix);

    return n >= m && strcmp(s + n - m, suffix) == 0;
}

const char *manifest_role_of(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(standard_names); i++) {
        if (strcmp(path, standard_names[i].path) == 0)
            return standard_names[i].role;
    }
    if (starts_with(path, "results/"))
        return ends_with(path, ".json") ? "report" : "raw-report";
    if (starts_with(path, "samples/"))
        return "samples";
    if (starts_with(path, "baseline/"))
        return "baseline";
    if (starts_with(path, "profile/"))
        return "profile";
    return NULL;
}

bool manifest_role_known(const char *role)
{
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        if (strcmp(role, roles[i]) == 0)
            return true;
    }
    return false;
}

static int read_digest(const cJSON *parent, const char *key, struct digest *out, struct err *e)
{
    const char *hex = NULL;

    if (json_get_string(parent, key, &hex, e) < 0)
        return -1;
    if (!digest_parse(hex, out))
        return err_set(e, ERR_INPUT, "manifest.digest", "'%s' is not 64 lower-case hex digits",
                       key);
    return 0;
}

static int read_file(const cJSON *item, struct manifest_file *out, struct err *e)
{
    if (json_get_string(item, "path", &out->path, e) < 0 ||
        json_get_string(item, "role", &out->role, e) < 0 ||
        json_get_u53(item, "size", LIMIT_MEMBER, &out->size, e) < 0)
        return -1;
    return read_digest(item, "sha256", &out->digest, e);
}

static int read_files(struct manifest *m, struct err *e)
{
    const cJSON *list = NULL;
    size_t n = 0;

    if (json_get_array(m->document, "files", &list, e) < 0)
        return -1;
    for (const cJSON *item = list->child; item; item = item->next)
        n++;
    m->files = calloc(n + 1, sizeof *m->files);
    if (!m->files)
        return err_set(e, ERR_NOMEM, "manifest.memory", "no memory for %zu files", n);
    for (const cJSON *item = list->child; item; item = item->next) {
        if (read_file(item, &m->files[m->n_files++], e) < 0)
            return -1;
    }
    return 0;
}

static int read_source(struct manifest *m, struct err *e)
{
    const cJSON *source = json_get(m->document, "source");
    const cJSON *start = json_get(source, "start");
    bool start_dirty = false;
    bool end_dirty = false;

    if (json_get_string(start, "commit", &m->commit, e) < 0 ||
        json_get_string(start, "fingerprint", &m->fingerprint, e) < 0 ||
        json_get_bool(start, "dirty", &start_dirty, e) < 0 ||
        json_get_bool(json_get(source, "end"), "dirty", &end_dirty, e) < 0 ||
        json_get_bool(source, "unchanged", &m->unchanged, e) < 0 ||
        json_get_u53(source, "ignored", IGNORED_MAX, &m->ignored, e) < 0)
        return -1;
    m->dirty = start_dirty || end_dirty || m->ignored > 0;
    return 0;
}

static int read_head(struct manifest *m, struct err *e)
{
    const cJSON *d = m->document;
    const cJSON *executable = json_get(d, "executable");
    const char *status = NULL;
    const char *started = NULL;
    const char *finished = NULL;

    if (json_get_string(d, "project", &m->project, e) < 0 ||
        json_get_string(d, "gate", &m->gate, e) < 0 ||
        json_get_string(d, "class", &m->machine_class, e) < 0 ||
        json_get_string(d, "run", &m->run, e) < 0 || json_get_string(d, "mode", &m->mode, e) < 0 ||
        json_get_string(d, "status", &status, e) < 0 ||
        json_get_string_or_null(d, "report", &m->report, e) < 0 ||
        json_get_string(d, "started_at", &started, e) < 0 ||
        json_get_string(d, "finished_at", &finished, e) < 0 ||
        read_digest(json_get(d, "definition"), "experiment_sha256", &m->experiment_digest, e) < 0 ||
        read_digest(json_get(d, "definition"), "policy_sha256", &m->policy_digest, e) < 0)
        return -1;
    if (!clock_parse_rfc3339(started, &m->started_us) ||
        !clock_parse_rfc3339(finished, &m->finished_us))
        return err_set(e, ERR_INPUT, "manifest.time", "started_at or finished_at is no time");
    m->status = strcmp(status, "PASS") == 0         ? MANIFEST_PASS
                : strcmp(status, "BUILD_ONLY") == 0 ? MANIFEST_BUILD_ONLY
                                                    : MANIFEST_FAIL;
    m->has_executable = cJSON_IsObject(executable);
    return m->has_executable ? read_digest(executable, "sha256", &m->executable_digest, e) : 0;
}

int manifest_parse(const char *bytes, size_t len, struct manifest *out, struct err *e)
{
    AUTO_MANIFEST struct manifest m = {.document = NULL};

    if (json_parse(bytes, len, NULL, &m.document, e) < 0 || manifest_check(m.document, e) < 0 ||
        read_head(&m, e) < 0 || read_source(&m, e) < 0 || read_files(&m, e) < 0)
        return err_wrap(e, MANIFEST_NAME);
    m.digest = digest_of(bytes, len);
    *out = m;
    m = (struct manifest){.document = NULL};
    return 0;
}

void manifest_fini(struct manifest *m)
{
    json_free(m->document);
    free(m->files);
    *m = (struct manifest){.document = NULL};
}

static int compare_file(const void *key, const void *file)
{
    const struct manifest_file *f = file;

    return strcmp(key, f->path);
}

const struct manifest_file *manifest_find(const struct manifest *m, const char *path)
{
    if (m->n_files == 0)
        return NULL;
    return bsearch(path, m->files, m->n_files, sizeof *m->files, compare_file);
}

bool manifest_is_dirty(const struct manifest *m)
{
    return m->dirty;
}

static const char *standard_role(void *ctx, const char *path)
{
    (void) ctx;
    return manifest_role_of(path);
}

static int add_file(struct json_doc *d, cJSON *list, int dirfd, const char *path, const char *role,
                    struct err *e)
{
    AUTO_FD int fd = -1;
    uint64_t size = 0;
    struct digest digest;
    char hex[DIGEST_HEX_SIZE];
    cJSON *item;

    if (file_open_at(dirfd, path, &fd, &size, e) < 0 || digest_of_fd(fd, &digest, &size, e) < 0)
        return -1;
    digest_hex(&digest, hex);
    item = json_add_object(d, list, NULL);
    json_add_string(d, item, "path", path);
    json_add_int(d, item, "size", (int64_t) size);
    json_add_string(d, item, "sha256", hex);
    json_add_string(d, item, "role", role);
    return 0;
}

int manifest_files_from_dir(int dirfd, const char *(*role)(void *ctx, const char *path), void *ctx,
                            cJSON **out, struct err *e)
{
    AUTO_FILE_LIST struct file_list names = {.names = NULL};
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *root = NULL;
    cJSON *list;

    json_doc_init_object(&d);
    list = json_add_array(&d, NULL, "files");
    if (file_list_at(dirfd, LIMIT_MEMBERS, &names, e) < 0)
        return -1;
    for (size_t i = 0; i < names.n; i++) {
        const char *name_role;

        if (strcmp(names.names[i], MANIFEST_NAME) == 0)
            continue;
        name_role = role ? role(ctx, names.names[i]) : standard_role(NULL, names.names[i]);
        if (!name_role)
            return err_set(e, ERR_INPUT, "manifest.role", "'%s' is no file of a run directory",
                           names.names[i]);
        if (add_file(&d, list, dirfd, names.names[i], name_role, e) < 0)
            return -1;
    }
    root = json_doc_take(&d, e);
    if (!root)
        return -1;
    *out = cJSON_DetachItemViaPointer(root, root->child);
    return 0;
}
