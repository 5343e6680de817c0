#include "experiment/definition.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/jcs.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/text.h"
#include "experiment/definition_parts.h"
#include "experiment/pointer.h"
#include "experiment/schema.h"

int definition_settle(struct definition *d, struct err *e)
{
    const cJSON *project = json_get(d->document, "project");

    d->gate = strdup(json_get(d->document, "gate")->valuestring);
    d->project = project ? strdup(project->valuestring) : NULL;
    if (!d->gate || (project && !d->project))
        return err_memory(e, "definition.memory");
    d->experiment = json_get(d->document, "experiment");
    d->policy = json_get(d->document, "policy");
    d->notes = json_get(d->document, "notes");
    if (jcs_digest(d->experiment, &d->experiment_digest, e) < 0)
        return -1;
    return jcs_digest(d->policy, &d->policy_digest, e);
}

bool definition_gate_reserved(const char *name)
{
    static const char *const reserved[] = {"commit", "pull", "baselines", "h", "badge"};

    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        if (strcmp(reserved[i], name) == 0)
            return true;
    return false;
}

static int check_notes(const cJSON *notes, struct err *e)
{
    const cJSON *note = NULL;

    cJSON_ArrayForEach(note, notes) {
        const char *at = note->string;
        const struct schema *s = NULL;
        bool unhashed = false;

        if (strncmp(at, "/experiment/", 12) == 0)
            s = schema_at(&schema_experiment, at + 11, &unhashed);
        else if (strncmp(at, "/policy/", 8) == 0)
            s = schema_at(&schema_policy, at + 7, &unhashed);
        else
            s = schema_at(&schema_gate, at, &unhashed);
        if (!s || !unhashed)
            return err_set(e, ERR_INPUT, "definition.notes",
                           "/notes: '%.200s' is not an unhashed key", at);
        if (schema_check_leaf(s, note, at, e) < 0)
            return -1;
    }
    return 0;
}

static int check_document(const cJSON *document, struct err *e)
{
    static const char *const known[] = {"schema",     "gate",   "project",
                                        "experiment", "policy", "notes"};
    const char *text = NULL;
    const cJSON *part = NULL;

    if (json_only_keys(document, known, ARRAY_LEN(known), e) < 0 ||
        json_get_string(document, "schema", &text, e) < 0)
        return -1;
    if (strcmp(text, DEFINITION_SCHEMA) != 0)
        return err_set(e, ERR_INPUT, "definition.schema",
                       "schema is '%.60s', expected " DEFINITION_SCHEMA, text);
    if (json_get_string(document, "gate", &text, e) < 0)
        return -1;
    if (!text_is_slug(text) || definition_gate_reserved(text))
        return err_set(e, ERR_INPUT, "definition.gate", "gate '%.80s' is not a gate name", text);
    if (json_get(document, "project")) {
        if (json_get_string(document, "project", &text, e) < 0)
            return -1;
        if (!text_is_project(text))
            return err_set(e, ERR_INPUT, "definition.project", "project '%.140s' is not owner/name",
                           text);
    }
    if (json_get_object(document, "experiment", &part, e) < 0 ||
        schema_check(&schema_experiment, part, "/experiment", e) < 0)
        return -1;
    if (json_get_object(document, "policy", &part, e) < 0 ||
        schema_check(&schema_policy, part, "/policy", e) < 0)
        return -1;
    if (json_get_object(document, "notes", &part, e) < 0)
        return -1;
    return check_notes(part, e);
}

int definition_parse(const char *bytes, size_t len, struct definition *out, struct err *e)
{
    struct definition made = {0};
    int rc = 0;

    if (json_parse(bytes, len, NULL, &made.document, e) < 0 || check_document(made.document, e) < 0)
        rc = err_wrap(e, "definition.json");
    else
        rc = definition_settle(&made, e);
    if (rc < 0)
        definition_fini(&made);
    else
        *out = made;
    return rc;
}

struct definition definition_judging(const struct definition *run,
                                     const struct definition *reviewed)
{
    struct definition d = *run;

    d.policy = reviewed->policy;
    d.policy_digest = reviewed->policy_digest;
    d.document = reviewed->document;
    d.notes = reviewed->notes;
    return d;
}

void definition_fini(struct definition *d)
{
    free(d->gate);
    free(d->project);
    json_free(d->document);
    *d = (struct definition){0};
}

int definition_write(const struct definition *d, char **out, size_t *out_len, struct err *e)
{
    AUTO_BUF struct buf b = {0};

    buf_init(&b, LIMIT_JSON_DOCUMENT);
    json_write(&b, d->document, JSON_PRETTY);
    if (buf_check(&b, e) < 0)
        return -1;
    *out = buf_take(&b, out_len);
    return *out ? 0 : err_memory(e, "definition.memory");
}

const cJSON *definition_note(const struct definition *d, const char *pointer)
{
    return json_get(d->notes, pointer);
}

/* Does the report say this where the pointer at `key` of the experiment leads? True when nothing is
 * asked. */
static bool report_says(const struct definition *d, const char *key, const cJSON *report,
                        const char *text)
{
    const cJSON *pointer = pointer_get(d->experiment, key);
    const cJSON *said =
        pointer && cJSON_IsString(pointer) ? pointer_get(report, pointer->valuestring) : NULL;

    return !pointer || (said && cJSON_IsString(said) && strcmp(said->valuestring, text) == 0);
}

const char *definition_report_misnames(const struct definition *d, const cJSON *report,
                                       const char *commit, const char *fingerprint)
{
    if (!report_says(d, "/run/report_commit", report, commit))
        return "commit";
    return report_says(d, "/run/report_fingerprint", report, fingerprint) ? NULL : "fingerprint";
}
