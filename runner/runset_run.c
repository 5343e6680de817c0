#include "runner/runset_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/pointer.h"
#include "runner/rundir.h"
#include "runner/tree_hash.h"

#define RESULTS "results/"
#define SAMPLES "samples/process.csv"
#define SNAPSHOT "baseline"

/* What outside bytes are guilty of is evidence that does not hold; what the machine is guilty of
 * stays as it is. */
static int distrust(struct err *e)
{
    switch (e->kind) {
    case ERR_USAGE:
    case ERR_INPUT:
    case ERR_LIMIT:
    case ERR_NOTFOUND:
    case ERR_CONFLICT:
        e->kind = ERR_TRUST;
        break;
    case ERR_NONE:
    case ERR_TRUST:
    case ERR_SYS:
    case ERR_NOSPACE:
    case ERR_NOMEM:
    case ERR_BUSY:
    case ERR_INTERNAL:
        break;
    }
    return -1;
}

void runset_run_close(struct runset_run *r)
{
    if (r->manifest.document)
        (void) close(r->fd); /* a directory that was only read */
    manifest_fini(&r->manifest);
    definition_fini(&r->definition);
    tree_fini(&r->tree);
    reference_close(&r->reference);
    json_free(r->acceptance);
    json_free(r->audit);
    free(r->samples);
    *r = (struct runset_run){.fd = -1};
}

const char *runset_run_word(const struct runset_run *r, const char *key)
{
    const cJSON *j = json_get(r->manifest.document, key);

    return cJSON_IsString(j) ? j->valuestring : "";
}

const cJSON *runset_run_report(const struct runset_run *r)
{
    const struct tree_file *f = r->manifest.report ? tree_find(&r->tree, r->manifest.report) : NULL;

    return f ? f->report : NULL;
}

const char *runset_first_failed(const cJSON *acceptance, size_t *out_failed)
{
    const cJSON *check = NULL;
    const char *first = NULL;

    *out_failed = 0;
    cJSON_ArrayForEach(check, json_get(acceptance, "checks")) {
        const cJSON *name = json_get(check, "name");

        if (cJSON_IsTrue(json_get(check, "passed")))
            continue;
        if (!first)
            first = cJSON_IsString(name) ? name->valuestring : "?";
        (*out_failed)++;
    }
    return first;
}

/* Files. */

static int check_file(int fd, const struct manifest_file *f, struct err *e)
{
    AUTO_FD int file = -1;
    uint64_t size = 0;
    struct digest digest;

    if (file_open_at(fd, f->path, &file, &size, e) < 0 || digest_of_fd(file, &digest, &size, e) < 0)
        return distrust(e);
    if (size != f->size || !digest_equal(&digest, &f->digest))
        return err_set(e, ERR_TRUST, "runset.file", "'%s' is not what its manifest lists", f->path);
    return 0;
}

static int check_files(const struct runset_run *r, struct err *e)
{
    AUTO_FILE_LIST struct file_list names = {.names = NULL};

    if (file_list_at(r->fd, LIMIT_MEMBERS, &names, e) < 0)
        return distrust(e);
    for (size_t i = 0; i < names.n; i++) {
        if (strcmp(names.names[i], MANIFEST_NAME) != 0 &&
            !manifest_find(&r->manifest, names.names[i]))
            return err_set(e, ERR_TRUST, "runset.unlisted", "'%s' is not listed in the manifest",
                           names.names[i]);
    }
    for (size_t i = 0; i < r->manifest.n_files; i++) {
        if (check_file(r->fd, &r->manifest.files[i], e) < 0)
            return -1;
    }
    return 0;
}

static int read_manifest(struct runset_run *r, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (file_read_at(r->fd, MANIFEST_NAME, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0 ||
        manifest_parse(bytes, len, &r->manifest, e) < 0)
        return distrust(e);
    return 0;
}

/* A member that may be absent: *out NULL then. */
static int read_document(const struct runset_run *r, const char *name, cJSON **out, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (!manifest_find(&r->manifest, name))
        return 0;
    if (file_read_at(r->fd, name, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0)
        return distrust(e);
    if (json_parse(bytes, len, NULL, out, e) < 0) {
        (void) err_wrap(e, "%s", name);
        return distrust(e);
    }
    return 0;
}

static int read_definition(struct runset_run *r, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (file_read_at(r->fd, RUNDIR_DEFINITION, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0 ||
        definition_parse(bytes, len, &r->definition, e) < 0)
        return distrust(e);
    if (!digest_equal(&r->definition.experiment_digest, &r->manifest.experiment_digest) ||
        !digest_equal(&r->definition.policy_digest, &r->manifest.policy_digest) ||
        strcmp(r->definition.gate, r->manifest.gate) != 0)
        return err_set(e, ERR_TRUST, "runset.definition",
                       "definition.json is not the one that the manifest names");
    return 0;
}

static int check_source(const struct runset_run *r, const char *name, const char *key,
                        struct err *e)
{
    AUTO_JSON cJSON *member = NULL;

    if (read_document(r, name, &member, e) < 0)
        return -1;
    if (!member || !json_equal(member, json_get(json_get(r->manifest.document, "source"), key)))
        return err_set(e, ERR_TRUST, "runset.source", "%s is not the manifest's source.%s", name,
                       key);
    return 0;
}

static int read_reports(struct runset_run *r, struct err *e)
{
    size_t prefix = strlen(RESULTS);

    for (size_t i = 0; i < r->manifest.n_files; i++) {
        const struct manifest_file *f = &r->manifest.files[i];
        AUTO_FREE char *bytes = NULL;
        size_t len = 0;

        if (strcmp(f->role, "report") != 0)
            continue;
        if (file_read_at(r->fd, f->path, LIMIT_REPORT, &bytes, &len, e) < 0 ||
            tree_add(&r->tree, f->path + prefix, bytes, len, e) < 0)
            return distrust(e);
    }
    return 0;
}

static int read_samples(struct runset_run *r, struct err *e)
{
    if (!manifest_find(&r->manifest, SAMPLES))
        return 0;
    return file_read_at(r->fd, SAMPLES, LIMIT_SAMPLES_FILE, &r->samples, &r->samples_len, e) < 0
               ? distrust(e)
               : 0;
}

/* The snapshot of the baseline must be the one that the manifest names, byte for byte. */
static int read_snapshot(struct runset_run *r, const char *path, struct err *e)
{
    const cJSON *named = json_get(r->manifest.document, "baseline");
    AUTO_FREE char *dir = NULL;
    AUTO_FD int fd = -1;
    const char *hex = NULL;
    const char *id = NULL;

    if (!cJSON_IsObject(named))
        return 0;
    if (json_get_string(named, "manifest_sha256", &hex, e) < 0 ||
        json_get_string(named, "id", &id, e) < 0)
        return distrust(e);
    if (asprintf(&dir, "%s/" SNAPSHOT, path) < 0) {
        dir = NULL; /* asprintf leaves it undefined */
        return err_memory(e, "runset.memory");
    }
    if (reference_open(dir, hex, &r->reference, e) < 0)
        return distrust(e);
    if (strcmp(id, r->reference.id) != 0)
        return err_set(e, ERR_TRUST, "runset.baseline", "the baseline snapshot is of %s, not of %s",
                       r->reference.id, id);
    if (file_open_dir_at(r->fd, SNAPSHOT, &fd, e) < 0)
        return distrust(e);
    return tree_hash(TREE_HASH_DOMAIN, fd, &r->baseline_tree, e);
}

/* Replay. */

int runset_run_accept(const struct runset_run *r, const struct definition *d,
                      struct acceptance *out, struct err *e)
{
    /* The runner's samples and markers count only where the definition derives a section from them.
     */
    bool derived = pointer_get(d->experiment, "/sampling/into") != NULL;
    const struct acceptance_input in = {
        .definition = d,
        .report = runset_run_report(r),
        .report_path = r->manifest.report,
        .samples_csv = derived ? r->samples : NULL,
        .samples_len = derived ? r->samples_len : 0,
        .phase_markers = derived ? json_get(r->manifest.document, "phase_markers") : NULL,
    };

    return acceptance_evaluate(&in, out, e);
}

static int says_otherwise(const char *name, const cJSON *differs, struct err *e)
{
    const cJSON *field = json_get(differs, "field");

    return err_set(e, ERR_TRUST, "runset.replay",
                   "%s does not say what the run's own files give (at %.200s)", name,
                   cJSON_IsString(field) ? field->valuestring : "its verdict");
}

static int replay_acceptance(const struct runset_run *r, struct err *e)
{
    AUTO_ACCEPTANCE struct acceptance own = {.document = NULL};
    AUTO_JSON cJSON *differs = NULL;
    const cJSON *verdict = json_get(r->acceptance, "verdict");
    const char *failed;
    size_t n = 0;

    if (!r->acceptance)
        return 0;
    failed = runset_first_failed(r->acceptance, &n);
    if (failed && cJSON_IsString(verdict) && strcmp(verdict->valuestring, "PASS") == 0)
        return err_set(e, ERR_TRUST, "runset.acceptance",
                       "acceptance.json says PASS but has %zu failed checks, the first is %.200s",
                       n, failed);
    if (runset_run_accept(r, &r->definition, &own, e) < 0 ||
        acceptance_compare(r->acceptance, own.document, &differs, e) < 0)
        return distrust(e);
    if (differs ||
        strcmp(runset_run_word(r, "acceptance_status"), acceptance_verdict_name(own.verdict)) != 0)
        return says_otherwise("acceptance.json", differs, e);
    return 0;
}

static int audit_by(const struct runset_run *r, const struct definition *policy, struct audit *out,
                    struct err *e)
{
    struct audit_input in = {
        .policy = policy,
        .current = {.tree = &r->tree,
                    .manifest = r->manifest.document,
                    .definition = &r->definition,
                    .id = r->manifest.run,
                    .root = "."},
    };

    if (!r->reference.present)
        return audit_no_baseline(policy, &in.current, NULL, out, e);
    in.baseline = (struct audit_side){.tree = &r->reference.tree,
                                      .manifest = r->reference.manifest.document,
                                      .definition = &r->reference.definition,
                                      .id = r->reference.id,
                                      .root = SNAPSHOT};
    return audit_run(&in, out, e);
}

static int replay_audit(const struct runset_run *r, struct err *e)
{
    struct audit own = {.document = NULL};
    AUTO_JSON cJSON *differs = NULL;
    int rc;

    if (!r->audit)
        return 0;
    if (audit_by(r, &r->definition, &own, e) < 0)
        return distrust(e);
    rc = audit_compare_documents(r->audit, own.document, &differs, e);
    if (rc == 0 &&
        (differs || strcmp(runset_run_word(r, "audit_status"), verdict_word(own.verdict)) != 0))
        rc = says_otherwise("audit.json", differs, e);
    audit_fini(&own);
    return rc;
}

int runset_run_reviewed(const struct runset_run *r, const char **out_word, struct acceptance *out,
                        struct err *e)
{
    const struct definition *reviewed = &r->reference.definition;
    struct definition d = definition_judging(&r->definition, reviewed);
    struct audit a = {.document = NULL};

    *out_word = NULL;
    if (!r->audit || !r->reference.present ||
        digest_equal(&r->definition.policy_digest, &reviewed->policy_digest))
        return 0;
    if (audit_by(r, reviewed, &a, e) < 0)
        return distrust(e);
    *out_word = verdict_word(a.verdict);
    audit_fini(&a);
    return runset_run_accept(r, &d, out, e) < 0 ? distrust(e) : 0;
}

static int read_all(struct runset_run *r, const char *path, struct err *e)
{
    if (check_files(r, e) < 0 || read_definition(r, e) < 0 ||
        check_source(r, RUNDIR_SOURCE_AT_START, "start", e) < 0 ||
        check_source(r, "source-at-end.json", "end", e) < 0 || read_reports(r, e) < 0 ||
        read_samples(r, e) < 0 || read_document(r, "acceptance.json", &r->acceptance, e) < 0 ||
        read_document(r, "audit.json", &r->audit, e) < 0 || read_snapshot(r, path, e) < 0 ||
        replay_acceptance(r, e) < 0 || replay_audit(r, e) < 0)
        return -1;
    return tree_hash(TREE_HASH_DOMAIN, r->fd, &r->tree_digest, e);
}

int runset_run_open(const char *path, struct runset_run *out, struct err *e)
{
    struct runset_run r = {.fd = -1};
    struct stat st;

    if (file_open_dir(path, &r.fd, e) < 0)
        return -1;
    tree_init(&r.tree);
    if (read_manifest(&r, e) < 0) {
        (void) close(r.fd); /* a directory that was only read */
        return err_wrap(e, "%.200s", path);
    }
    if (read_all(&r, path, e) < 0) {
        (void) err_wrap(e, "run %s", r.manifest.run);
        runset_run_close(&r);
        return -1;
    }
    if (fstat(r.fd, &st) < 0) {
        runset_run_close(&r);
        return err_errno(e, "runset.stat", "%.200s", path);
    }
    r.device = st.st_dev;
    r.inode = st.st_ino;
    *out = r;
    return 0;
}
