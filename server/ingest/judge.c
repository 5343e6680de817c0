#include "server/ingest/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "experiment/acceptance.h"
#include "experiment/pointer.h"

#define SAMPLES "samples/process.csv"
#define SNAPSHOT "baseline/"
#define HOST "host.json"

bool judge_has_verdict(const struct manifest *m)
{
    return strcmp(m->mode, "clean") == 0 && m->status != MANIFEST_BUILD_ONLY;
}

static const char *status_of(const struct package *p, const char *key)
{
    const cJSON *j = json_get(p->side.manifest.document, key);

    return cJSON_IsString(j) ? j->valuestring : "";
}

/* Its own acceptance is by the branch's policy: what else the runner found amiss must not hide
 * behind it. A host.json that does not say how much that was says nothing for the run. */
static int read_faults(const struct evidence *ev, struct package *p, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    AUTO_JSON cJSON *host = NULL;
    const cJSON *faults;
    size_t len = 0;

    if (p->side.manifest.status != MANIFEST_FAIL || !archive_index_find(evidence_index(ev), HOST))
        return 0;
    if (evidence_read(ev, HOST, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0 ||
        json_parse(bytes, len, NULL, &host, e) < 0)
        return -1;
    faults = json_get(host, "faults");
    p->only_acceptance = strcmp(status_of(p, "acceptance_status"), "FAIL") == 0 &&
                         json_is_integer(faults) && faults->valueint == 0;
    return 0;
}

int package_read(const struct evidence *ev, struct package *out, struct err *e)
{
    AUTO_PACKAGE struct package p = {.report = NULL};
    const struct archive_index *index = evidence_index(ev);
    const struct manifest *m = evidence_manifest(ev);
    const struct archive_member *samples = archive_index_find(index, SAMPLES);

    if (side_read(evidence_fd(ev), index, "", &p.side, e) < 0)
        return -1;
    if (samples &&
        side_range(evidence_fd(ev), samples, LIMIT_SAMPLES_FILE, &p.samples, &p.samples_len, e) < 0)
        return -1;
    if (m->report) {
        const struct tree_file *f = tree_find(&p.side.tree, m->report);

        p.report = f ? f->report : NULL;
    }
    if (read_faults(ev, &p, e) < 0)
        return -1;
    *out = p;
    memset(&p, 0, sizeof p); /* moved out */
    return 0;
}

void package_fini(struct package *p)
{
    side_fini(&p->side);
    free(p->samples);
    *p = (struct package){.report = NULL};
}

static int accept_with(const struct package *p, const struct definition *d, struct acceptance *out,
                       struct err *e)
{
    /* The runner's samples and markers count only where the definition derives a section from them.
     */
    bool derived = pointer_get(d->experiment, "/sampling/into") != NULL;
    const struct acceptance_input in = {
        .definition = d,
        .report = p->report,
        .report_path = p->side.manifest.report,
        .samples_csv = derived ? p->samples : NULL,
        .samples_len = derived ? p->samples_len : 0,
        .phase_markers = derived ? json_get(p->side.manifest.document, "phase_markers") : NULL,
    };

    return acceptance_evaluate(&in, out, e);
}

/* Replay. */

static void add_reason(struct json_doc *d, cJSON *list, const char *code, const char *path,
                       const cJSON *differs, const char *text)
{
    cJSON *r = json_add_object(d, list, NULL);
    const cJSON *field = json_get(differs, "field");

    json_add_string(d, r, "code", code);
    json_add_string(d, r, "path", path);
    json_add_string(d, r, "field", cJSON_IsString(field) ? field->valuestring : "");
    json_add_copy(d, r, "packaged", json_get(differs, "packaged"));
    json_add_copy(d, r, "recomputed", json_get(differs, "recomputed"));
    /* In the words of every reason: what the package says, what it should say. */
    json_add_copy(d, r, "baseline", json_get(differs, "recomputed"));
    json_add_copy(d, r, "current", json_get(differs, "packaged"));
    json_add_string(d, r, "text", text);
}

/* The manifest's word against the recomputed one. */
static void check_status(struct json_doc *d, cJSON *list, const struct package *p, const char *key,
                         const char *recomputed, const char *code)
{
    const char *stated = status_of(p, key);
    cJSON *r;

    if (strcmp(stated, "NOT_APPLICABLE") == 0 || strcmp(stated, recomputed) == 0)
        return;
    r = json_add_object(d, list, NULL);
    json_add_string(d, r, "code", code);
    json_add_string(d, r, "path", "manifest.json");
    json_add_string(d, r, "field",
                    strcmp(key, "audit_status") == 0 ? "/audit_status" : "/acceptance_status");
    json_add_string(d, r, "packaged", stated);
    json_add_string(d, r, "recomputed", recomputed);
    json_add_string(d, r, "baseline", recomputed);
    json_add_string(d, r, "current", stated);
    json_add_string(d, r, "text", "the manifest's word is not what the evidence gives");
}

static int read_document(const struct evidence *ev, const char *name, cJSON **out, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (!archive_index_find(evidence_index(ev), name))
        return 0;
    if (evidence_read(ev, name, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0)
        return -1;
    return json_parse(bytes, len, NULL, out, e);
}

static int replay_acceptance(const struct evidence *ev, const struct package *p, struct json_doc *d,
                             cJSON *list, struct err *e)
{
    AUTO_ACCEPTANCE struct acceptance own = {.document = NULL};
    AUTO_JSON cJSON *packaged = NULL;
    AUTO_JSON cJSON *differs = NULL;

    if (read_document(ev, "acceptance.json", &packaged, e) < 0)
        return -1;
    if (!packaged && strcmp(status_of(p, "acceptance_status"), "NOT_APPLICABLE") == 0)
        return 0;
    if (accept_with(p, &p->side.definition, &own, e) < 0)
        return -1;
    if (packaged && acceptance_compare(packaged, own.document, &differs, e) < 0)
        return -1;
    if (differs)
        add_reason(d, list, "IN-ACCEPTANCE", "acceptance.json", differs,
                   "acceptance.json does not say what the packaged report and definition give");
    check_status(d, list, p, "acceptance_status", acceptance_verdict_name(own.verdict),
                 "IN-ACCEPTANCE");
    return 0;
}

/* The comparison as the runner made it: its own policy, its own snapshot of the baseline. */
static int own_audit(const struct evidence *ev, const struct package *p, struct audit *out,
                     struct err *e)
{
    AUTO_SIDE struct side snapshot = {.has_manifest = false};
    const cJSON *named = json_get(p->side.manifest.document, "baseline");
    const cJSON *id = json_get(named, "id");
    const cJSON *hex = json_get(named, "evidence_sha256");
    struct audit_input in = {.policy = &p->side.definition};

    in.current = side_for_audit(&p->side, p->side.manifest.run, NULL, ".");
    if (side_read(evidence_fd(ev), evidence_index(ev), SNAPSHOT, &snapshot, e) < 0)
        return -1;
    if (!snapshot.has_manifest)
        return audit_no_baseline(&p->side.definition, &in.current, NULL, out, e);
    in.baseline = side_for_audit(&snapshot, cJSON_IsString(id) ? id->valuestring : NULL,
                                 cJSON_IsString(hex) ? hex->valuestring : NULL, "baseline");
    return audit_run(&in, out, e);
}

static int replay_audit(const struct evidence *ev, const struct package *p, struct json_doc *d,
                        cJSON *list, struct err *e)
{
    AUTO_JSON cJSON *packaged = NULL;
    AUTO_JSON cJSON *differs = NULL;
    struct audit own = {.document = NULL};
    struct err why = ERR_INIT;
    int rc = 0;

    if (read_document(ev, "audit.json", &packaged, e) < 0)
        return -1;
    if (!packaged && strcmp(status_of(p, "audit_status"), "NOT_APPLICABLE") == 0)
        return 0;
    if (own_audit(ev, p, &own, &why) < 0) {
        if (why.kind != ERR_INPUT && why.kind != ERR_TRUST && why.kind != ERR_LIMIT)
            return err_set(e, why.kind, why.code, "%s", why.text);
        add_reason(d, list, "IN-AUDIT", "audit.json", NULL,
                   why.text); /* a snapshot that cannot be read proves nothing */
        return 0;
    }
    if (packaged)
        rc = audit_compare_documents(packaged, own.document, &differs, e);
    if (rc == 0 && differs)
        add_reason(d, list, "IN-AUDIT", "audit.json", differs,
                   "audit.json does not say what the packaged baseline and reports give");
    if (rc == 0)
        check_status(d, list, p, "audit_status", verdict_word(own.verdict), "IN-AUDIT");
    audit_fini(&own);
    return rc;
}

int judge_replay(const struct evidence *ev, const struct package *p, cJSON **out_reasons,
                 struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *root = NULL;
    cJSON *list;

    json_doc_init_object(&d);
    list = json_add_array(&d, NULL, "reasons");
    if (replay_acceptance(ev, p, &d, list, e) < 0 || replay_audit(ev, p, &d, list, e) < 0)
        return -1;
    root = json_doc_take(&d, e);
    if (!root)
        return -1;
    list = cJSON_DetachItemFromObjectCaseSensitive(root, "reasons");
    if (!list->child) {
        json_free(list);
        list = NULL;
    }
    *out_reasons = list;
    return 0;
}

/* Judgement. */

/* A check that the manifest's own words fail: the program's end, the report, the source. */
static cJSON *status_check(const char *name, cJSON *limit, cJSON *actual, const char *error)
{
    AUTO_JSON cJSON *check = cJSON_CreateObject();
    cJSON *parts[] = {cJSON_CreateString(name), cJSON_CreateString("=="), limit, actual,
                      cJSON_CreateFalse(),      cJSON_CreateString(error)};
    static const char *const keys[] = {"name", "operator", "limit", "actual", "passed", "error"};
    bool ok = check != NULL;

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (!ok || !parts[i] || !cJSON_AddItemToObject(check, keys[i], parts[i])) {
            json_free(parts[i]);
            ok = false;
        }
    }
    return ok ? STEAL(check) : NULL;
}

static cJSON *copy_or_null(const cJSON *j)
{
    return j ? cJSON_Duplicate(j, true) : cJSON_CreateNull();
}

static int append(cJSON *checks, cJSON *check, struct err *e)
{
    if (check && cJSON_AddItemToArray(checks, check))
        return 0;
    json_free(check);
    return err_memory(e, "judge.memory");
}

/* The report does not name its source where the definition asks. */
static cJSON *source_check(const struct manifest *m, const char *misnamed)
{
    bool commit = strcmp(misnamed, "commit") == 0;

    return status_check(commit ? "report commit" : "report fingerprint",
                        cJSON_CreateString(commit ? m->commit : m->fingerprint), cJSON_CreateNull(),
                        commit ? "the report does not name the run's commit (run.report_commit)"
                               : "the report does not name the fingerprint of the run's source "
                                 "(run.report_fingerprint)");
}

/* A run passes only when its program, report and source did, too: what the manifest
 * says against it becomes a failed check beside those of the policy. */
static int add_status_checks(const struct package *p, cJSON *acceptance, struct err *e)
{
    const struct manifest *m = &p->side.manifest;
    const cJSON *exit_code = json_get(m->document, "exit_code");
    const cJSON *signal = json_get(m->document, "signal");
    cJSON *checks = cJSON_GetObjectItemCaseSensitive(acceptance, "checks");
    bool bad_end =
        !json_is_integer(exit_code) || exit_code->valueint != 0 || cJSON_IsNumber(signal);
    bool bad_report = strcmp(status_of(p, "report_status"), "CAPTURED") != 0;
    const char *misnamed = p->report ? definition_report_misnames(&p->side.definition, p->report,
                                                                  m->commit, m->fingerprint)
                                     : NULL;
    bool bad_other = m->status != MANIFEST_PASS && !bad_end && !bad_report && !misnamed &&
                     m->unchanged && !p->only_acceptance;

    /* what is no report fails one check, not two: the manifest's word says more */
    while (bad_report && !p->report && checks->child)
        cJSON_DeleteItemFromArray(checks, 0);
    if (bad_end &&
        append(checks,
               status_check("exit code", cJSON_CreateNumber(0),
                            copy_or_null(cJSON_IsNumber(signal) ? signal : exit_code),
                            cJSON_IsNumber(signal) ? "the program was ended by this signal"
                                                   : "the program ended with this exit code"),
               e) < 0)
        return -1;
    if (bad_report && append(checks,
                             status_check("report", cJSON_CreateString("CAPTURED"),
                                          cJSON_CreateString(status_of(p, "report_status")),
                                          "the run left no complete report"),
                             e) < 0)
        return -1;
    if (!m->unchanged &&
        append(checks,
               status_check("source unchanged", cJSON_CreateTrue(), cJSON_CreateFalse(),
                            "the source changed while it was measured"),
               e) < 0)
        return -1;
    if (misnamed && append(checks, source_check(m, misnamed), e) < 0)
        return -1;
    if (bad_other && append(checks,
                            status_check("run status", cJSON_CreateString("PASS"),
                                         cJSON_CreateString(manifest_status_name(m->status)),
                                         "the runner says that the run failed"),
                            e) < 0)
        return -1;
    if (!(bad_end || bad_report || !m->unchanged || misnamed || bad_other))
        return 0;
    return cJSON_ReplaceItemInObjectCaseSensitive(acceptance, "verdict", cJSON_CreateString("FAIL"))
               ? 0
               : err_memory(e, "judge.memory");
}

static int add_policy(const struct package *p, const struct judge_baseline *baseline, cJSON **out,
                      struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    char reviewed[DIGEST_HEX_SIZE];
    char run[DIGEST_HEX_SIZE];

    digest_hex(&baseline->side->definition.policy_digest, reviewed);
    digest_hex(&p->side.definition.policy_digest, run);
    json_doc_init_object(&d);
    json_add_bool(&d, NULL, "differs", strcmp(reviewed, run) != 0);
    json_add_string(&d, NULL, "reviewed_sha256", reviewed);
    json_add_string(&d, NULL, "run_sha256", run);
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}

/* Without a baseline nothing else says that this run can never become one. */
static int add_dirty(cJSON *audit, const struct manifest *m, struct err *e)
{
    const cJSON *source = json_get(m->document, "source");
    bool changed = !cJSON_IsFalse(json_get(json_get(source, "start"), "dirty")) ||
                   !cJSON_IsFalse(json_get(json_get(source, "end"), "dirty"));
    char text[256] = "the work tree had changes that no commit holds";
    cJSON *reasons = cJSON_GetObjectItemCaseSensitive(audit, "reasons");
    cJSON *reason = cJSON_CreateObject();

    if (!changed)
        (void) snprintf(text, sizeof(text), /* fits */
                        "%" PRIu64 " file%s that git ignores lay in the work tree before the "
                        "build: the program may not be this commit's; `cleanrun run GATE --at "
                        "HEAD` measures a fresh checkout",
                        m->ignored, m->ignored == 1 ? "" : "s");
    if (reason && cJSON_AddStringToObject(reason, "code", "NC-SOURCE-DIRTY") &&
        cJSON_AddNullToObject(reason, "path") &&
        cJSON_AddStringToObject(reason, "field",
                                changed ? "/source/start/dirty" : "/source/ignored") &&
        (changed ? cJSON_AddTrueToObject(reason, "current")
                 : cJSON_AddNumberToObject(reason, "current", (double) m->ignored)) &&
        cJSON_AddStringToObject(reason, "text", text) && cJSON_AddItemToArray(reasons, reason))
        return 0;
    json_free(reason);
    return err_memory(e, "judge.memory");
}

static int judge_audit(const struct package *p, const struct judge_baseline *baseline,
                       const char *why_none, const char *evidence_hex, cJSON **out, struct err *e)
{
    struct audit a = {.document = NULL};
    struct audit_input in = {.policy =
                                 baseline ? &baseline->side->definition : &p->side.definition};
    char hex[DIGEST_HEX_SIZE];

    in.current = side_for_audit(&p->side, p->side.manifest.run, evidence_hex, ".");
    if (!baseline) {
        if (audit_no_baseline(in.policy, &in.current, why_none, &a, e) < 0)
            return -1;
        if (p->side.manifest.dirty && add_dirty(a.document, &p->side.manifest, e) < 0) {
            audit_fini(&a);
            return -1;
        }
    } else {
        digest_hex(&baseline->evidence, hex);
        in.baseline = side_for_audit(baseline->side, baseline->id, hex, "baseline");
        if (audit_run(&in, &a, e) < 0)
            return -1;
    }
    *out = STEAL(a.document);
    audit_fini(&a);
    return 0;
}

int judge_run(const struct package *p, const char *evidence_hex,
              const struct judge_baseline *baseline, const char *why_none, struct judgement *out,
              struct err *e)
{
    AUTO_JUDGEMENT struct judgement j = {.acceptance = NULL};
    const struct manifest *m = &p->side.manifest;
    struct definition policy;
    bool verdict = judge_has_verdict(m);

    if (!verdict)
        baseline =
            NULL; /* a diagnostic run is measured by its own definition and compared with nothing */
    policy = baseline ? definition_judging(&p->side.definition, &baseline->side->definition)
                      : p->side.definition;
    if (m->status != MANIFEST_BUILD_ONLY && (verdict || p->report)) {
        struct acceptance a = {.document = NULL};

        if (accept_with(p, &policy, &a, e) < 0)
            return -1;
        j.acceptance = STEAL(a.document);
        acceptance_fini(&a);
        if (add_status_checks(p, j.acceptance, e) < 0)
            return -1;
    }
    if (verdict && judge_audit(p, baseline, why_none, evidence_hex, &j.audit, e) < 0)
        return -1;
    if (baseline && add_policy(p, baseline, &j.policy, e) < 0)
        return -1;
    j.definition = baseline ? &baseline->side->definition : &p->side.definition;
    *out = j;
    memset(&j, 0, sizeof j); /* moved out */
    return 0;
}

void judgement_fini(struct judgement *j)
{
    json_free(j->acceptance);
    json_free(j->audit);
    json_free(j->policy);
    *j = (struct judgement){.acceptance = NULL};
}
