/* Refused uploads: what is answered, and what is kept of the attempt. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/text.h"
#include "server/ingest/job.h"
#include "server/ingest/record.h"

#define KEYID_MAX 128

struct refusal {
    const char *code;
    const char *detail;
    const char *run;      /* or NULL */
    const cJSON *reasons; /* array */
    const cJSON *stages;  /* array */
    struct record_attempt attempt;
    char keyid[KEYID_MAX]; /* when the envelope only hints at it */
};

/* The key that signed, or the one that the envelope names without proof. */
static const char *keyid_of(const struct job *j, char out[KEYID_MAX])
{
    const cJSON *keyid = json_get(j->report.document, "keyid");
    const char *text = NULL;

    if (cJSON_IsString(keyid))
        return keyid->valuestring;
    if (j->envelope.n > 0)
        text = j->envelope.signatures[0].keyid;
    if (!text || !text[0] || strlen(text) >= KEYID_MAX)
        return NULL;
    (void) snprintf(out, KEYID_MAX, "%s", text); /* fits */
    return out;
}

static int build_problem(const struct job *j, const struct refusal *r, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_BUF struct buf link = {.data = NULL};
    char when[CLOCK_RFC3339_SIZE];
    char hex[DIGEST_HEX_SIZE] = "";

    if (j->has_archive)
        digest_hex(&j->archive, hex);
    clock_rfc3339(j->received_us, false, when);
    buf_init(&link, LIMIT_KIB(1));
    buf_printf(&link, "/p/%s", j->request->project);
    if (buf_check(&link, e) < 0)
        return -1;
    json_doc_init_object(&d);
    json_add_string(&d, NULL, "verdict", "INVALID");
    json_add_string(&d, NULL, "project", j->request->project);
    json_add_string(&d, NULL, "gate", j->request->gate);
    json_add_string(&d, NULL, "run", r->run);
    json_add_string(&d, NULL, "archive_sha256", hex[0] ? hex : NULL);
    json_add_string(&d, NULL, "keyid", r->attempt.keyid);
    json_add_string(&d, NULL, "received_at", when);
    json_add_copy(&d, NULL, "reasons", r->reasons);
    json_add_copy(&d, NULL, "stages", r->stages);
    json_add_string(&d, json_add_object(&d, NULL, "links"), "project", link.data);
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}

/* Keeps the attempt, then answers: an attempt that could not be kept is not answered as if it were.
 */
static int finish(struct job *j, struct refusal *r, struct err *e)
{
    AUTO_JSON cJSON *problem = NULL;
    AUTO_BUF struct buf bytes = {.data = NULL};

    r->attempt.keyid = keyid_of(j, r->keyid);
    if (build_problem(j, r, &problem, e) < 0)
        return -1;
    buf_init(&bytes, LIMIT_JSON_DOCUMENT * 4);
    json_write(&bytes, problem, JSON_COMPACT);
    if (buf_check(&bytes, e) < 0)
        return -1;
    r->attempt.project_id = j->project.id;
    r->attempt.at_us = j->received_us;
    r->attempt.code = r->code;
    r->attempt.detail = r->detail;
    r->attempt.archive = j->has_archive ? &j->archive : NULL;
    r->attempt.problem = bytes.data;
    r->attempt.problem_len = bytes.len;
    if (record_attempt_add(j->store, &r->attempt, e) < 0)
        return -1;
    if (r->run) {
        j->out->run = strdup(r->run);
        if (!j->out->run)
            return err_memory(e, "refuse.memory");
    }
    j->out->outcome = INGEST_INVALID;
    j->out->problem = STEAL(problem);
    err_set(&j->out->err, ERR_TRUST, r->code, "%s", r->detail);
    return 0;
}

static int one_reason(const char *code, const char *text, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *root = NULL;
    cJSON *list;
    cJSON *reason;

    json_doc_init_object(&d);
    list = json_add_array(&d, NULL, "reasons");
    reason = json_add_object(&d, list, NULL);
    json_add_string(&d, reason, "code", code);
    json_add_null(&d, reason, "path");
    json_add_null(&d, reason, "field");
    json_add_string(&d, reason, "text", text);
    root = json_doc_take(&d, e);
    if (!root)
        return -1;
    *out = cJSON_DetachItemFromObjectCaseSensitive(root, "reasons");
    return 0;
}

/* The stages when verification could not even begin. */
static int unread_stages(const char *why, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *root = NULL;
    cJSON *list;

    json_doc_init_object(&d);
    list = json_add_array(&d, NULL, "stages");
    for (unsigned i = 0; i < VERIFY_STAGES; i++) {
        cJSON *s = json_add_object(&d, list, NULL);
        bool here = i == VERIFY_SIGNATURE;

        json_add_string(&d, s, "name", verify_stage_name((enum verify_stage) i));
        json_add_string(&d, s, "result", here ? "failed" : "not_run");
        json_add_string(&d, s, "code", here ? "IN-SIGNATURE" : NULL);
        json_add_string(&d, s, "detail", here ? why : NULL);
    }
    root = json_doc_take(&d, e);
    if (!root)
        return -1;
    *out = cJSON_DetachItemFromObjectCaseSensitive(root, "stages");
    return 0;
}

int job_refuse_unreadable(struct job *j, const char *why, struct err *e)
{
    AUTO_JSON cJSON *reasons = NULL;
    AUTO_JSON cJSON *stages = NULL;
    struct refusal r = {.code = "IN-SIGNATURE", .detail = why};

    if (one_reason(r.code, why, &reasons, e) < 0 || unread_stages(why, &stages, e) < 0)
        return -1;
    r.reasons = reasons;
    r.stages = stages;
    return finish(j, &r, e);
}

/* Whose attempt this is, by a statement whose signature verified. A runner speaks only for its own
 * class, and an upload only for the gate it was sent to; otherwise the commit stays untouched by
 * it.
 */
static void attribute(const struct job *j, struct refusal *r)
{
    const struct keyring_entry *signer = job_signer(j, NULL);
    const cJSON *p = j->statement.predicate;
    const char *commit = json_text(json_get(p, "source"), "commit", "");
    const char *run = json_text(p, "runId", "");
    size_t len = strlen(commit);

    if (!signer)
        return;
    r->attempt.is_signed = true;
    r->attempt.gate = j->request->gate;
    r->attempt.machine_class = signer->machine_class;
    if (text_is_run_id(run)) {
        r->attempt.run = run;
        r->run = run;
    }
    if (strcmp(json_text(p, "project", ""), j->request->project) == 0 &&
        strcmp(json_text(p, "gate", ""), j->request->gate) == 0 &&
        strcmp(json_text(p, "machineClass", ""), signer->machine_class) == 0 &&
        strcmp(json_text(p, "mode", ""), "clean") == 0 && (len == 40 || len == 64) &&
        text_is_hex(commit, len))
        r->attempt.commit = commit;
}

int job_refuse_evidence(struct job *j, struct err *e)
{
    AUTO_JSON cJSON *reasons = NULL;
    const cJSON *stage = NULL;
    struct refusal r = {.code = j->report.code, .detail = ""};

    r.stages = json_get(j->report.document, "stages");
    cJSON_ArrayForEach(stage, r.stages) {
        if (strcmp(json_text(stage, "result", ""), "failed") == 0)
            r.detail = json_text(stage, "detail", "");
    }
    if (!r.code)
        return err_set(e, ERR_INTERNAL, "refuse.code", "refused evidence without a code");
    if (j->report.failed_stage > VERIFY_SIGNATURE)
        attribute(j, &r);
    if (one_reason(r.code, r.detail, &reasons, e) < 0)
        return -1;
    r.reasons = reasons;
    return finish(j, &r, e);
}

int job_refuse(struct job *j, const char *code, const char *text, const cJSON *reasons,
               struct err *e)
{
    AUTO_JSON cJSON *made = NULL;
    AUTO_JSON cJSON *stages = cJSON_Duplicate(json_get(j->report.document, "stages"), true);
    cJSON *stage = cJSON_CreateObject();
    struct refusal r = {.code = code, .detail = text};
    const char *name = reasons ? "replay" : strcmp(code, "IN-TICKET") == 0 ? "ticket" : "judgement";

    if (reasons) {
        r.code = json_text(reasons->child, "code", "");
        r.detail = json_text(reasons->child, "text", "");
        r.reasons = reasons;
    } else {
        if (one_reason(code, text, &made, e) < 0) {
            json_free(stage);
            return -1;
        }
        r.reasons = made;
    }
    if (!stages || !stage || !cJSON_AddStringToObject(stage, "name", name) ||
        !cJSON_AddStringToObject(stage, "result", "failed") ||
        !cJSON_AddStringToObject(stage, "code", r.code) ||
        !cJSON_AddStringToObject(stage, "detail", r.detail) ||
        !cJSON_AddItemToArray(stages, stage)) {
        json_free(stage);
        return err_memory(e, "refuse.memory");
    }
    r.stages = stages;
    attribute(j, &r);
    return finish(j, &r, e);
}
