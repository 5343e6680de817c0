/* Baselines: promoting stored runs, keeping history. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/baseline.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/text.h"
#include "evidence/pack.h"
#include "experiment/definition.h"
#include "server/store/manage.h"
#include "server/store/policy_change.h"
#include "server/store/side.h"
#include "server/store/store_private.h"

#define SPOOL_NAME_BYTES 16
#define REASON_MAX 1000
#define REASONS_TOLD 3 /* an error has 512 bytes */

static int check_review(const struct manage_review *r, struct err *e)
{
    if (!r->reviewer || !r->reviewer[0] || strlen(r->reviewer) > REASON_MAX)
        return err_set(e, ERR_USAGE, "review.reviewer",
                       "a baseline needs the name of its reviewer");
    if (!r->reason || !r->reason[0] || strlen(r->reason) > REASON_MAX)
        return err_set(e, ERR_USAGE, "review.reason", "a baseline needs a reason");
    if (!text_is_utf8(r->reviewer, strlen(r->reviewer)) ||
        !text_is_utf8(r->reason, strlen(r->reason)))
        return err_set(e, ERR_USAGE, "review.text", "reviewer and reason must be UTF-8");
    return 0;
}

/* What a baseline row holds. */
struct row {
    const char *id;
    const struct manage_review *review;
    int64_t project_id;
    const char *machine_class;
    int64_t run_id; /* 0: imported */
    const char *commit;
    struct digest archive, manifest, experiment, policy;
    const char *definition;
    size_t definition_len;
    int64_t at_us;
};

static int insert(struct db *d, const struct row *r, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BASELINE_ADD);

    query_text(&q, r->id);
    query_int(&q, r->project_id);
    query_text(&q, r->review->gate);
    query_text(&q, r->machine_class);
    if (r->run_id)
        query_int(&q, r->run_id);
    else
        query_null(&q);
    query_text(&q, r->commit);
    query_int(&q, r->run_id == 0);
    query_digest(&q, &r->archive);
    query_digest(&q, &r->manifest);
    query_bytes(&q, r->definition, r->definition_len);
    query_digest(&q, &r->experiment);
    query_digest(&q, &r->policy);
    query_text(&q, r->review->reviewer);
    query_text(&q, r->review->reason);
    query_int(&q, r->at_us);
    query_int(&q, r->run_id != 0);
    if (query_run(&q, e) == 0)
        return 0;
    if (e->kind == ERR_CONFLICT)
        err_set(e, ERR_CONFLICT, "review.exists", "baseline %s exists", r->id);
    return -1;
}

/* Approving. */

static int refuse(struct err *e, const char *run, const char *why)
{
    return err_set(e, ERR_CONFLICT, "review.unfit", "run %s cannot be a baseline: %s", run, why);
}

static int check_fit(const struct store_run *run, const struct manage_review *r, struct err *e)
{
    if (strcmp(run->project, r->project) != 0 || strcmp(run->gate, r->gate) != 0)
        return err_set(e, ERR_NOTFOUND, "review.run", "run %s belongs to %s %s", run->run,
                       run->project, run->gate);
    if (strcmp(run->mode, "clean") != 0)
        return refuse(e, run->run, "it was measured in a diagnostic mode");
    if (strcmp(run->status, "PASS") != 0)
        return refuse(e, run->run, "its status is not PASS");
    if (run->dirty)
        return refuse(e, run->run, "its source was not a commit");
    return 0;
}

/* As it is inside the transaction: the key may have been revoked since the run was looked at. */
static int check_runner(struct db *d, const struct store_run *run, struct err *e)
{
    AUTO_STORE_RUN struct store_run now = {.id = 0};

    if (store_run_read(d, run->run, &now, e) < 0)
        return -1;
    return now.revoked_us
               ? refuse(e, run->run, "its runner's key was revoked before it was received")
               : 0;
}

/* The baseline that judges, or with SQL_BASELINE_RETIRED_LAST the one that did; "": none. */
static int find_id(struct db *d, enum sql which, const struct store_run *run,
                   char out[MANAGE_ID_SIZE], struct err *e)
{
    AUTO_QUERY struct query q =
        store_gate_query(d, which, run->project_id, run->gate, run->machine_class);
    bool row = false;

    out[0] = '\0';
    if (query_step(&q, &row, e) < 0)
        return -1;
    if (row)
        (void) snprintf(out, MANAGE_ID_SIZE, "%s", query_get_text(&q, BASE_ID)); /* ids are short */
    return 0;
}

static int step_down(struct db *d, const struct store_run *run, struct err *e)
{
    AUTO_QUERY struct query q =
        store_gate_query(d, SQL_BASELINE_STEP_DOWN, run->project_id, run->gate, run->machine_class);

    return query_run(&q, e);
}

static int supersede(struct db *d, const char *old, const char *by, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BASELINE_SUPERSEDE);

    query_text(&q, old);
    query_text(&q, by);
    return query_run(&q, e);
}

static int restore(struct db *d, const char *id, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BASELINE_RESTORE);

    query_text(&q, id);
    return query_run(&q, e);
}

static int exists(struct db *d, const char *id, bool *out, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BASELINE_GET);

    query_text(&q, id);
    return query_step(&q, out, e);
}

/* Its policy is the reviewed one; so is that of a baseline that was retired without a successor: or
 * retiring would let any policy in behind it. */
static int check_policy(struct db *d, const struct store_run *run, const char *before,
                        const struct definition *policy, struct err *e)
{
    char retired[MANAGE_ID_SIZE] = "";

    if (!before[0] && find_id(d, SQL_BASELINE_RETIRED_LAST, run, retired, e) < 0)
        return -1;
    if (!before[0] && !retired[0])
        return 0;
    return policy_change_check(d, before[0] ? before : retired, policy, e);
}

static int promote(struct store *s, const struct store_run *run, const struct row *r,
                   const struct definition *policy, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    char before[MANAGE_ID_SIZE];
    bool known = false;

    if (store_write_open(s, &w, e) < 0 || check_runner(w.db, run, e) < 0 ||
        find_id(w.db, SQL_BASELINE_CURRENT, run, before, e) < 0 ||
        exists(w.db, r->id, &known, e) < 0)
        return -1;
    if (strcmp(before, r->id) == 0)
        return err_set(e, ERR_CONFLICT, "review.current", "%s is the current baseline already",
                       r->id);
    if (!r->review->new_policy && check_policy(w.db, run, before, policy, e) < 0)
        return -1;
    if (step_down(w.db, run, e) < 0 || (known ? restore(w.db, r->id, e) : insert(w.db, r, e)) < 0)
        return -1;
    if (before[0] && supersede(w.db, before, r->id, e) < 0)
        return -1;
    if (store_log_add(w.db, r->at_us, r->review->reviewer,
                      known ? "baseline.restore" : "baseline.approve", r->id, r->review->reason,
                      e) < 0)
        return -1;
    return store_write_close(&w, e);
}

/* Every reason, the first ones in words. */
static int refuse_reasons(const char *run, const cJSON *reasons, struct err *e)
{
    AUTO_BUF struct buf text = {.data = NULL};
    const cJSON *reason = NULL;
    size_t n = 0;

    buf_init(&text, LIMIT_KIB(64));
    cJSON_ArrayForEach(reason, reasons) {
        if (n++ < REASONS_TOLD)
            buf_printf(&text, "%s%s%s%s %.110s", n > 1 ? "; " : "", json_text(reason, "code", ""),
                       json_text(reason, "path", "")[0] ? " " : "", json_text(reason, "path", ""),
                       json_text(reason, "text", ""));
    }
    if (n > REASONS_TOLD)
        buf_printf(&text, "; and %zu more", n - REASONS_TOLD);
    if (buf_check(&text, e) < 0)
        return -1;
    return err_set(e, ERR_CONFLICT, "review.unfit",
                   "run %s cannot be a baseline, because no run could be compared with it: %s", run,
                   text.data ? text.data : "unknown");
}

/* The evidence is looked at once more: what judges others must be whole, and such that another run
 * of the same experiment can be compared with it. */
static int check_evidence(struct store *s, const struct store_run *run,
                          const struct definition *policy, struct err *e)
{
    AUTO_FD int fd = -1;
    AUTO_SIDE struct side side = {.has_manifest = false};
    struct archive_index *index = NULL;
    struct audit_side looked;
    struct audit a = {.document = NULL};
    uint64_t size = 0;
    int rc;

    if (store_object_open(s, &run->archive, true, &fd, &size, NULL, e) < 0 ||
        blobs_index(store_blobs(s), &run->archive, fd, &index, e) < 0)
        return -1;
    rc = side_read(fd, index, "", &side, e);
    archive_index_free(index);
    if (rc < 0)
        return -1;
    looked = side_for_audit(&side, run->run, NULL, NULL);
    if (audit_would_compare(policy, &looked, &a, e) < 0)
        return -1;
    rc = a.verdict == VERDICT_OK ? 0 : refuse_reasons(run->run, json_get(a.document, "reasons"), e);
    audit_fini(&a);
    return rc;
}

int manage_baseline_approve(struct store *s, const char *run, const struct manage_review *review,
                            char out_id[MANAGE_ID_SIZE], struct err *e)
{
    AUTO_STORE_RUN struct store_run row = {.id = 0};
    AUTO_DEFINITION struct definition def = {.gate = NULL};
    AUTO_FREE char *definition = NULL;
    AUTO_FREE char *manifest = NULL;
    char id[MANAGE_ID_SIZE];
    size_t len = 0;
    size_t manifest_len = 0;
    struct row r = {.id = id, .review = review, .at_us = clock_realtime_us()};

    if (check_review(review, e) < 0 || store_run_get(s, run, &row, e) < 0 ||
        check_fit(&row, review, e) < 0 ||
        store_run_document(s, run, STORE_DEFINITION, &definition, &len, e) < 0 ||
        store_run_document(s, run, STORE_MANIFEST, &manifest, &manifest_len, e) < 0 ||
        definition_parse(definition, len, &def, e) < 0 || check_evidence(s, &row, &def, e) < 0)
        return -1;
    (void) snprintf(id, sizeof id, "b-%s", row.run); /* run ids have 25 characters */
    r.project_id = row.project_id;
    r.machine_class = row.machine_class;
    r.run_id = row.id;
    r.commit = row.commit;
    r.archive = row.archive;
    r.manifest = digest_of(manifest, manifest_len);
    r.experiment = def.experiment_digest;
    r.policy = def.policy_digest;
    r.definition = definition;
    r.definition_len = len;
    if (promote(s, &row, &r, &def, e) < 0)
        return -1;
    memcpy(out_id, id, sizeof id);
    return 0;
}

/* Retiring. */

static int withdraw(struct db *d, const char *id, const struct manage_review *r, int64_t now_us,
                    struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_BASELINE_RETIRE);

    query_text(&q, id);
    query_int(&q, now_us);
    query_text(&q, r->reviewer);
    query_text(&q, r->reason);
    return query_run(&q, e);
}

int manage_baseline_retire(struct store *s, const char *id, const struct manage_review *review,
                           struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    AUTO_STORE_BASELINE struct store_baseline b = {.id = NULL};
    int64_t now_us = clock_realtime_us();

    if (check_review(review, e) < 0 || store_write_open(s, &w, e) < 0)
        return -1;
    if (store_baseline_read(w.db, id, &b, e) < 0)
        return e->kind == ERR_NOTFOUND
                   ? err_set(e, ERR_NOTFOUND, "review.baseline",
                             "there is no baseline '%.200s'; cleanrun-server baseline list has the "
                             "ids%s",
                             id, text_is_run_id(id) ? ": b- and the run's id" : "")
                   : -1;
    if (strcmp(b.project, review->project) != 0)
        return err_set(e, ERR_NOTFOUND, "review.baseline", "baseline %s belongs to %s", id,
                       b.project);
    if (!b.current)
        return err_set(e, ERR_CONFLICT, "review.current",
                       "%s is not a current baseline: there is nothing to retire", id);
    if (withdraw(w.db, id, review, now_us, e) < 0 ||
        store_log_add(w.db, now_us, review->reviewer, "baseline.retire", id, review->reason, e) < 0)
        return -1;
    return store_write_close(&w, e);
}

/* Importing. */

/* Canonical bytes (heap) and digests of the gate's definition. */
static int read_definition(const struct manage_import *in, const char *gate, struct row *r,
                           char **out, struct err *e)
{
    AUTO_DEFINITION_FILE struct definition_file file = {.gates = NULL};
    AUTO_DEFINITION struct definition canonical = {.gate = NULL};
    AUTO_FREE char *bytes = NULL;
    const struct definition *d;
    size_t len = 0;
    struct err why = ERR_INIT;

    if (file_read(in->definition, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0)
        return -1;
    if (definition_parse(bytes, len, &canonical, &why) == 0) {
        d = strcmp(canonical.gate, gate) == 0 ? &canonical : NULL;
    } else {
        if (definition_file_parse(in->definition, bytes, len, &file, e) < 0)
            return -1;
        d = definition_file_gate(&file, gate);
    }
    if (!d)
        return err_set(e, ERR_USAGE, "import.gate", "'%s' defines no gate '%s'", in->definition,
                       gate);
    r->experiment = d->experiment_digest;
    r->policy = d->policy_digest;
    return definition_write(d, out, &r->definition_len, e);
}

/* The tree as a tar in the spool, to become an object: manifest.json, then the listed files. */
static int pack_tree(struct store *s, int dirfd, const struct baseline *b,
                     struct digest *out_archive, uint64_t *out_size, struct err *e)
{
    AUTO_FREE struct pack_file *files = calloc(b->n_files + 1, sizeof *files);
    AUTO_FD int fd = -1;
    uint8_t random[SPOOL_NAME_BYTES];
    char name[2 * SPOOL_NAME_BYTES + 1];
    int rc;

    if (!files)
        return err_memory(e, "import.memory");
    files[0] = (struct pack_file){.name = "manifest.json", .digest = &b->digest};
    for (size_t i = 0; i < b->n_files; i++)
        files[i + 1] = (struct pack_file){
            .name = b->files[i].path, .size = b->files[i].size, .digest = &b->files[i].digest};
    {
        AUTO_FREE char *manifest = NULL;
        size_t len = 0;

        if (file_read_at(dirfd, "manifest.json", LIMIT_JSON_DOCUMENT, &manifest, &len, e) < 0)
            return -1;
        files[0].size = len;
    }
    if (random_bytes(random, sizeof random, e) < 0)
        return -1;
    text_hex(random, sizeof random, name);
    fd = openat(blobs_spool_dir(store_blobs(s)), name,
                O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, "import.spool", "cannot make a spool file");
    *out_size = pack_size(files, b->n_files + 1);
    rc = pack_write(dirfd, files, b->n_files + 1, fd, out_archive, e);
    if (rc == 0)
        rc = blobs_adopt(store_blobs(s), fd, name, out_archive, NULL, e);
    if (rc < 0)
        (void) unlinkat(blobs_spool_dir(store_blobs(s)), name,
                        0); /* the next start removes it otherwise */
    return rc;
}

static int insert_import(struct store *s, const struct row *r, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};

    if (store_write_open(s, &w, e) < 0 || insert(w.db, r, e) < 0 ||
        store_log_add(w.db, r->at_us, r->review->reviewer, "baseline.import", r->id,
                      r->review->reason, e) < 0)
        return -1;
    return store_write_close(&w, e);
}

static const char *commit_of(const struct manage_import *in, const struct baseline *b)
{
    static const char *const keys[] = {"commit", "source_commit", "git_commit"};

    if (in->commit)
        return in->commit;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const cJSON *j = json_get(b->document, keys[i]);

        if (cJSON_IsString(j))
            return j->valuestring;
    }
    return "";
}

int manage_baseline_import(struct store *s, const struct manage_import *in,
                           const struct manage_review *review, char out_id[MANAGE_ID_SIZE],
                           struct err *e)
{
    AUTO_BASELINE struct baseline b = {.document = NULL};
    AUTO_FREE char *definition = NULL;
    AUTO_FREE char *manifest = NULL;
    AUTO_FD int dirfd = -1;
    struct store_project p;
    char id[MANAGE_ID_SIZE];
    uint64_t size = 0;
    size_t len = 0;
    bool is_new = false;
    struct row r = {.id = id,
                    .review = review,
                    .machine_class = in->machine_class,
                    .at_us = clock_realtime_us()};

    if (check_review(review, e) < 0 || store_project_get(s, review->project, &p, e) < 0)
        return -1;
    if (!text_is_slug(review->gate) || !text_is_slug(in->machine_class))
        return err_set(e, ERR_USAGE, "import.name", "gate and class are lower-case names");
    if (read_definition(in, review->gate, &r, &definition, e) < 0)
        return -1;
    if (file_open_dir(in->dir, &dirfd, e) < 0 ||
        file_read_at(dirfd, "manifest.json", LIMIT_JSON_DOCUMENT, &manifest, &len, e) < 0 ||
        baseline_parse(manifest, len, false, &b, e) < 0 ||
        baseline_verify_tree(
            &b, dirfd, (struct baseline_manifest_place){.dirfd = dirfd, .name = "manifest.json"},
            e) < 0)
        return err_wrap(e, "'%s'", in->dir);
    if (snprintf(id, sizeof id, "%s%s", strncmp(b.id, "b-", 2) == 0 ? "" : "b-", b.id) >=
        (int) sizeof id)
        return err_set(e, ERR_USAGE, "import.id", "the baseline's id is too long");
    if (pack_tree(s, dirfd, &b, &r.archive, &size, e) < 0 ||
        store_blob_put(s, p.id, &r.archive, size, &is_new, e) < 0)
        return -1;
    r.project_id = p.id;
    r.commit = commit_of(in, &b);
    r.manifest = b.digest;
    r.definition = definition;
    if (insert_import(s, &r, e) < 0)
        return -1;
    memcpy(out_id, id, sizeof id);
    return 0;
}
