#include "runner/runset_verify.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "runner/runset.h"
#include "runner/runset_sign.h"

enum stage {
    STAGE_CHECKSUM,
    STAGE_SIGNATURE,
    STAGE_INDEX,
    STAGE_INVENTORY,
    STAGE_RUNS,
    STAGE_SECTIONS,
    STAGES
};

static const char *const stage_names[STAGES] = {"checksum",  "signature", "index",
                                                "inventory", "runs",      "sections"};

struct work {
    const char *dir;
    int fd;
    const struct keyring *keys;
    char *bytes; /* of the index */
    size_t len;
    struct digest digest;
    cJSON *index;
    struct runset set;
    cJSON *files;
    char detail[STAGES][ERR_TEXT_MAX];
    bool asked[STAGES];
    size_t done; /* stages that were ok */
    bool failed; /* stage `done` was not */
    bool is_signed;
    const char *keyid;
};

/* The sections in the order of the index; frame values come first. */
static const char *const sections[] = {
    "schema",
    "created_at",
    "required_count",
    "status",
    "project",
    "gate",
    "class",
    "run_count",
    "definition",
    "source_at_start",
    "source_now",
    "common_source_fingerprint",
    "common_executable_sha256",
    "executable",
    "baseline",
    "runs",
    "shortcomings",
    "eligibility",
    "files",
};

static void work_fini(struct work *w)
{
    cleanup_fd(&w->fd);
    free(w->bytes);
    json_free(w->index);
    json_free(w->files);
    runset_close(&w->set);
}

__attribute__((format(printf, 3, 4))) static int broken(struct err *e, const char *code,
                                                        const char *format, ...)
{
    char text[ERR_TEXT_MAX];
    va_list ap;

    va_start(ap, format);
    (void) vsnprintf(text, sizeof text, format, ap); /* cut is fine */
    va_end(ap);
    return err_set(e, ERR_TRUST, code, "%s", text);
}

/* A part of the package that can't be read is a broken package; a machine that can't read is not.
 */
static int read_part(const struct work *w, const char *name, size_t max, char **out,
                     size_t *out_len, struct err *e)
{
    if (file_read_at(w->fd, name, max, out, out_len, e) == 0)
        return 0;
    if (e->kind == ERR_NOTFOUND || e->kind == ERR_INPUT || e->kind == ERR_LIMIT)
        e->kind = ERR_TRUST;
    return -1;
}

static int check_checksum(struct work *w, struct err *e)
{
    AUTO_FREE char *line = NULL;
    char hex[DIGEST_HEX_SIZE];
    char wanted[DIGEST_HEX_SIZE + 32];
    size_t len = 0;

    if (read_part(w, RUNSET_INDEX, LIMIT_PACKAGE_INDEX, &w->bytes, &w->len, e) < 0 ||
        read_part(w, RUNSET_CHECKSUM, 4096, &line, &len, e) < 0)
        return -1;
    w->digest = digest_of(w->bytes, w->len);
    digest_hex(&w->digest, hex);
    (void) snprintf(wanted, sizeof wanted, "%s  " RUNSET_INDEX "\n", hex); /* fits */
    if (len != strlen(wanted) || memcmp(line, wanted, len) != 0)
        return broken(e, "runset.checksum",
                      "the checksum of the index does not match " RUNSET_CHECKSUM);
    (void) snprintf(w->detail[STAGE_CHECKSUM], ERR_TEXT_MAX, "%s", hex);
    return 0;
}

static int check_signature(struct work *w, struct err *e)
{
    AUTO_FREE char *envelope = NULL;
    struct stat st;
    size_t len = 0;

    w->is_signed = fstatat(w->fd, RUNSET_ENVELOPE, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!w->keys) {
        w->asked[STAGE_SIGNATURE] = false;
        (void) snprintf(w->detail[STAGE_SIGNATURE], ERR_TEXT_MAX, "%s",
                        w->is_signed ? "signed, but no --key was given to check it" : "not signed");
        return 0;
    }
    if (!w->is_signed)
        return broken(e, "runset.signature", "the package is not signed");
    if (read_part(w, RUNSET_ENVELOPE, LIMIT_ENVELOPE, &envelope, &len, e) < 0 ||
        runset_check_signature(envelope, len, &w->digest, w->keys, &w->keyid, e) < 0)
        return -1;
    (void) snprintf(w->detail[STAGE_SIGNATURE], ERR_TEXT_MAX, "by %.100s", w->keyid);
    return 0;
}

/* An absence must say why. */
static int check_absence(const cJSON *owner, const char *key, struct err *e)
{
    const cJSON *part = json_get(owner, key);
    const cJSON *status = json_get(part, "status");
    const cJSON *reason = json_get(part, "reason");

    if (cJSON_IsString(status) && strcmp(status->valuestring, "captured") == 0)
        return 0;
    return cJSON_IsString(reason) && reason->valuestring[0]
               ? 0
               : broken(e, "runset.absence", "'%s' is absent without a reason", key);
}

static int check_absences(const cJSON *index, struct err *e)
{
    const cJSON *run = NULL;

    if (check_absence(index, "source_now", e) < 0 || check_absence(index, "executable", e) < 0 ||
        check_absence(index, "baseline", e) < 0)
        return -1;
    cJSON_ArrayForEach(run, json_get(index, "runs")) {
        if (check_absence(run, "audit", e) < 0)
            return -1;
    }
    return 0;
}

static int check_index(struct work *w, struct err *e)
{
    static const struct json_limits limits = {.max_bytes = LIMIT_PACKAGE_INDEX};
    const char *schema = NULL;
    uint64_t n = 0;
    struct err why = ERR_INIT;

    if (json_parse(w->bytes, w->len, &limits, &w->index, &why) < 0)
        return why.kind == ERR_NOMEM ? err_set(e, ERR_NOMEM, why.code, "%s", why.text)
                                     : broken(e, "runset.json", "%.400s", why.text);
    if (json_get_string(w->index, "schema", &schema, &why) < 0 ||
        strcmp(schema, RUNSET_SCHEMA) != 0)
        return broken(e, "runset.schema", "unsupported index schema '%.80s'",
                      schema ? schema : "(none)");
    if (json_only_keys(w->index, sections, ARRAY_LEN(sections), &why) < 0 ||
        json_get_u53(w->index, "required_count", RUNSET_MAX, &n, &why) < 0)
        return broken(e, "runset.shape", "%.400s", why.text);
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        if (!json_get(w->index, sections[i]))
            return broken(e, "runset.shape", "the section '%s' is missing", sections[i]);
    }
    if (check_absences(w->index, e) < 0)
        return -1;
    (void) snprintf(w->detail[STAGE_INDEX], ERR_TEXT_MAX, RUNSET_SCHEMA);
    return 0;
}

static const char *path_of(const cJSON *row)
{
    const cJSON *path = json_get(row, "path");

    return cJSON_IsString(path) ? path->valuestring : "";
}

/* Whatever is listed must lie inside and be there. */
static int check_listed(const struct work *w, const cJSON *listed, struct err *e)
{
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, listed) {
        const char *path = path_of(row);
        AUTO_FD int fd = -1;
        uint64_t size = 0;
        struct err why = ERR_INIT;

        if (!path[0] || path[0] == '/' || strstr(path, ".."))
            return broken(e, "runset.path",
                          "a listed path does not stay inside the package: '%.200s'", path);
        if (file_open_at(w->fd, path, &fd, &size, &why) < 0)
            return broken(e, "runset.missing", "a listed file is missing: %.300s", why.text);
    }
    return 0;
}

/* Both lists are in byte order of their paths. */
static int compare_lists(const cJSON *listed, const cJSON *found, size_t *out_n, struct err *e)
{
    const cJSON *claimed = cJSON_IsArray(listed) ? listed->child : NULL;
    const cJSON *row = NULL;

    *out_n = 0;
    cJSON_ArrayForEach(row, found) {
        int order = claimed ? strcmp(path_of(claimed), path_of(row)) : 1;

        if (order > 0)
            return broken(e, "runset.unlisted", "'%.200s' is in the package but not in its index",
                          path_of(row));
        if (order < 0)
            break;
        if (!json_equal(claimed, row))
            return broken(e, "runset.changed", "'%.200s' changed", path_of(row));
        claimed = claimed->next;
        (*out_n)++;
    }
    return claimed ? broken(e, "runset.order", "'%.200s' is listed twice or out of order",
                            path_of(claimed))
                   : 0;
}

static int check_inventory(struct work *w, struct err *e)
{
    const cJSON *listed = json_get(w->index, "files");
    uint64_t runs = 0;
    size_t n = 0;

    if (json_get_u53(w->index, "run_count", RUNSET_MAX, &runs, e) < 0) {
        e->kind = ERR_TRUST;
        return -1;
    }
    if (check_listed(w, listed, e) < 0 || runset_files(w->fd, (size_t) runs, &w->files, e) < 0 ||
        compare_lists(listed, w->files, &n, e) < 0)
        return -1;
    (void) snprintf(w->detail[STAGE_INVENTORY], ERR_TEXT_MAX, "%zu files", n);
    return 0;
}

static int check_runs(struct work *w, struct err *e)
{
    if (runset_open_package(w->dir, &w->set, e) < 0)
        return -1;
    (void) snprintf(w->detail[STAGE_RUNS], ERR_TEXT_MAX, "%zu runs", w->set.n);
    return 0;
}

static int check_sections(struct work *w, struct err *e)
{
    AUTO_JSON cJSON *made = NULL;
    const cJSON *created = json_get(w->index, "created_at");
    const cJSON *required = json_get(w->index, "required_count");
    struct runset_frame frame = {.created_at = cJSON_IsString(created) ? created->valuestring : "",
                                 .required = (size_t) required->valuedouble,
                                 .files = w->files};

    if (runset_judge(&w->set, frame.required, e) < 0 || runset_index(&w->set, &frame, &made, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        if (!json_equal(json_get(made, sections[i]), json_get(w->index, sections[i])))
            return broken(e, "runset.section", "the section '%s' is not what the files give",
                          sections[i]);
    }
    (void) snprintf(w->detail[STAGE_SECTIONS], ERR_TEXT_MAX, "%zu made again and equal",
                    ARRAY_LEN(sections));
    return 0;
}

static int run_stages(struct work *w, struct err *e)
{
    static int (*const checks[STAGES])(struct work *, struct err *) = {
        check_checksum, check_signature, check_index, check_inventory, check_runs, check_sections};

    for (; w->done < STAGES; w->done++) {
        struct err why = ERR_INIT;

        w->asked[w->done] = true;
        if (checks[w->done](w, &why) == 0)
            continue;
        if (why.kind != ERR_TRUST)
            return err_set(e, why.kind, why.code, "%s", why.text);
        w->failed = true;
        (void) snprintf(w->detail[w->done], ERR_TEXT_MAX, "%s", why.text);
        return 0;
    }
    return 0;
}

/* What is demanded and not so. */
static bool add_unmet(struct json_doc *d, const struct work *w, const struct runset_demand *demand)
{
    const struct {
        bool demanded;
        const char *key;
    } rows[] = {
        {demand->clean, "clean"},
        {demand->unchanged_source, "unchanged_source"},
        {demand->no_skips, "no_skips"},
        {demand->pass, "pass"},
    };
    cJSON *list = json_add_array(d, NULL, "unmet");
    bool met = true;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!rows[i].demanded ||
            cJSON_IsTrue(json_get(json_get(w->index, "eligibility"), rows[i].key)))
            continue;
        json_add_string(d, list, NULL, rows[i].key);
        met = false;
    }
    if (demand->count && demand->count != w->set.n) {
        json_add_string(d, list, NULL, "count");
        met = false;
    }
    return met;
}

static void add_stages(struct json_doc *d, const struct work *w)
{
    cJSON *list = json_add_array(d, NULL, "stages");

    for (size_t i = 0; i < STAGES; i++) {
        cJSON *o = json_add_object(d, list, NULL);
        const char *result = i > w->done || !w->asked[i] ? "not_run" : "ok";

        if (i == w->done && w->failed)
            result = "failed";
        else if (i < w->done && !w->asked[i])
            result = "not_asked";
        json_add_string(d, o, "name", stage_names[i]);
        json_add_string(d, o, "result", result);
        json_add_string(d, o, "detail", w->detail[i]);
    }
}

static int report(const struct work *w, const struct runset_demand *demand,
                  struct runset_verdict *out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    bool valid = !w->failed && w->done == STAGES;
    char hex[DIGEST_HEX_SIZE];
    bool met = false;
    cJSON *made = NULL;

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-package-verify/1");
    json_add_string(&d, NULL, "verdict", valid ? "VALID" : "INVALID");
    digest_hex(&w->digest, hex);
    json_add_string(&d, NULL, "index_sha256", w->done > STAGE_CHECKSUM ? hex : NULL);
    json_add_bool(&d, NULL, "signed", w->is_signed);
    json_add_string(&d, NULL, "keyid", w->keyid);
    add_stages(&d, w);
    if (valid) {
        json_add_copy(&d, NULL, "status", json_get(w->index, "status"));
        json_add_copy(&d, NULL, "eligibility", json_get(w->index, "eligibility"));
        json_add_copy(&d, NULL, "shortcomings", json_get(w->index, "shortcomings"));
        met = add_unmet(&d, w, demand);
    } else {
        json_add_null(&d, NULL, "status");
        json_add_null(&d, NULL, "eligibility");
        (void) json_add_array(&d, NULL, "shortcomings");
        (void) json_add_array(&d, NULL, "unmet");
    }
    made = json_doc_take(&d, e);
    if (!made)
        return -1;
    *out = (struct runset_verdict){.document = made, .valid = valid, .eligible = valid && met};
    return 0;
}

int runset_verify(const char *dir, const struct keyring *keys, const struct runset_demand *demand,
                  struct runset_verdict *out, struct err *e)
{
    struct work w = {.dir = dir, .fd = -1, .keys = keys};
    int rc = file_open_dir(dir, &w.fd, e);

    if (rc == 0)
        rc = run_stages(&w, e);
    if (rc == 0)
        rc = report(&w, demand, out, e);
    work_fini(&w);
    return rc;
}

void runset_verdict_fini(struct runset_verdict *v)
{
    json_free(v->document);
    *v = (struct runset_verdict){.document = NULL};
}
