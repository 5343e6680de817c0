#include "evidence/agreement.h"

#include <string.h>

#include "base/jcs.h"
#include "base/json_in.h"
#include "experiment/pointer.h"

static const char *text_at(const cJSON *root, const char *pointer)
{
    const cJSON *j = pointer_get(root, pointer);

    return cJSON_IsString(j) ? j->valuestring : NULL;
}

static int differs(struct err *e, const char *text)
{
    return err_set(e, ERR_TRUST, "agreement.differs", "%s", text);
}

static int check_names(const struct manifest *m, const struct definition *d, struct err *e)
{
    const char *machine_class = text_at(d->experiment, "/class");

    if (!digest_equal(&d->experiment_digest, &m->experiment_digest))
        return differs(e,
                       "definition.json is another experiment than the manifest's digest states");
    if (!digest_equal(&d->policy_digest, &m->policy_digest))
        return differs(e, "definition.json is another policy than the manifest's digest states");
    if (strcmp(d->gate, m->gate) != 0)
        return err_set(e, ERR_TRUST, "agreement.gate",
                       "definition.json defines gate %.100s, the manifest names %s", d->gate,
                       m->gate);
    if (d->project && strcmp(d->project, m->project) != 0)
        return err_set(e, ERR_TRUST, "agreement.project",
                       "definition.json belongs to project %.200s, the manifest names %s",
                       d->project, m->project);
    if (!machine_class || strcmp(machine_class, m->machine_class) != 0)
        return err_set(e, ERR_TRUST, "agreement.class",
                       "definition.json is for machine class %.100s, the manifest names %s",
                       machine_class ? machine_class : "(none)", m->machine_class);
    return 0;
}

/* Another report than the gate's could be accepted while the gate's is compared. */
static int check_report(const struct manifest *m, const struct definition *d, struct err *e)
{
    const char *wanted = text_at(d->experiment, "/run/report");

    if (!m->report || (wanted && strcmp(wanted, m->report) == 0))
        return 0;
    return err_set(e, ERR_TRUST, "agreement.report",
                   "the definition's report is %.100s, the manifest names %s",
                   wanted ? wanted : "(none)", m->report);
}

static int check_build(const struct manifest *m, const struct definition *d, struct err *e)
{
    const cJSON *resolved = pointer_get(m->document, "/executable/resolved");

    if (!json_equal(pointer_get(m->document, "/build/command"),
                    pointer_get(d->experiment, "/build/command")))
        return differs(e, "the manifest's build command is not the definition's");
    if (resolved && !json_equal(resolved, pointer_get(d->experiment, "/build/executable/from")))
        return differs(e, "the executable was not found as the definition says");
    return 0;
}

/* Only the digest is compared with the baseline's, so it must be the digest of the steps. */
static int check_conditioning(const struct manifest *m, struct err *e)
{
    const char *stated = text_at(m->document, "/conditioning/sha256");
    struct digest digest;
    char hex[DIGEST_HEX_SIZE];

    if (jcs_digest(pointer_get(m->document, "/conditioning/steps"), &digest, e) < 0)
        return -1;
    digest_hex(&digest, hex);
    return stated && strcmp(stated, hex) == 0
               ? 0
               : differs(e, "conditioning.sha256 is not the digest of conditioning.steps");
}

static int place_of(const cJSON *list, const char *name)
{
    const cJSON *item = NULL;
    int i = 0;

    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsString(item) && strcmp(item->valuestring, name) == 0)
            return i;
        i++;
    }
    return -1;
}

static bool seen(const cJSON *markers, const char *phase)
{
    const cJSON *marker = NULL;

    cJSON_ArrayForEach(marker, markers)
    {
        const char *name = text_at(marker, "/phase");

        if (name && strcmp(name, phase) == 0)
            return true;
    }
    return false;
}

static int check_order(const cJSON *markers, const cJSON *list, struct err *e)
{
    const cJSON *marker = NULL;
    int last = -1;

    cJSON_ArrayForEach(marker, markers)
    {
        const char *name = text_at(marker, "/phase");
        int place = name ? place_of(list, name) : -1;

        if (place <= last)
            return err_set(e, ERR_TRUST, "agreement.marker",
                           "status PASS although phase marker '%.100s' is %s", name ? name : "",
                           place < 0 ? "not in the definition" : "repeated or out of order");
        last = place;
    }
    return 0;
}

/* A runner fails a clean run for each of these. */
static int check_markers(const struct manifest *m, const struct definition *d, struct err *e)
{
    const cJSON *markers = json_get(m->document, "phase_markers");
    const cJSON *phases = json_get(d->experiment, "phases");
    const cJSON *listed = json_get(phases, "markers");
    const char *from = text_at(phases, "/from");
    const cJSON *item = NULL;

    if (m->status != MANIFEST_PASS || strcmp(m->mode, "clean") != 0)
        return 0;
    if (listed && check_order(markers, listed, e) < 0)
        return -1;
    if (from && strcmp(from, "report") == 0)
        return 0;
    cJSON_ArrayForEach(item, json_get(phases, "required"))
    {
        if (cJSON_IsString(item) && !seen(markers, item->valuestring))
            return err_set(e, ERR_TRUST, "agreement.phase",
                           "status PASS without the required phase marker '%.100s'",
                           item->valuestring);
    }
    cJSON_ArrayForEach(item, json_get(d->experiment, "conditioning"))
    {
        const char *name = text_at(item, "/name");

        if (name && !json_get(item, "command") && !json_get(item, "proof") && !seen(markers, name))
            return err_set(e, ERR_TRUST, "agreement.conditioning",
                           "status PASS although conditioning step '%.100s' did not show as a "
                           "phase marker",
                           name);
    }
    return 0;
}

int agreement_check(const struct manifest *m, const struct definition *d, struct err *e)
{
    if (check_names(m, d, e) < 0 || check_report(m, d, e) < 0 || check_build(m, d, e) < 0 ||
        check_conditioning(m, e) < 0)
        return -1;
    return check_markers(m, d, e);
}
