#include "evidence/agreement.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/jcs.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/pointer.h"

static int differs(struct err *e, const char *text)
{
    return err_set(e, ERR_TRUST, "agreement.differs", "%s", text);
}

int agreement_times(const struct manifest *m, int64_t received_us, struct err *e)
{
    const char *started = pointer_text(m->document, "/started_at");
    const char *finished = pointer_text(m->document, "/finished_at");
    char stamp[CLOCK_RFC3339_SIZE];
    int64_t id_us = 0;

    (void) snprintf(stamp, sizeof stamp, "%.16s", m->run); /* fits */
    if (!started || !finished || !clock_parse_compact(stamp, &id_us))
        return err_set(e, ERR_INTERNAL, "agreement.time", "a manifest without times");
    if (m->started_us < id_us || m->started_us >= id_us + LIMIT_RUN_ID_LAG_S * INT64_C(1000000))
        return err_set(e, ERR_TRUST, "agreement.start",
                       "started_at is %.40s, the run id %s says another moment", started, m->run);
    if (m->started_us < LIMIT_EARLIEST_US)
        return err_set(e, ERR_TRUST, "agreement.early",
                       "started_at is %.40s, before any run that this format knows", started);
    clock_rfc3339(received_us, false, stamp);
    if (m->finished_us > received_us + LIMIT_CLOCK_SKEW_S * INT64_C(1000000))
        return err_set(e, ERR_TRUST, "agreement.late",
                       "finished_at is %.40s, which is after the time of receipt, %s", finished,
                       stamp);
    return 0;
}

static int check_names(const struct manifest *m, const struct definition *d, struct err *e)
{
    const char *machine_class = pointer_text(d->experiment, "/class");

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
    const char *wanted = pointer_text(d->experiment, "/run/report");

    if (!m->report || (wanted && strcmp(wanted, m->report) == 0))
        return 0;
    return err_set(e, ERR_TRUST, "agreement.report",
                   "the definition's report is %.100s, the manifest names %s",
                   wanted ? wanted : "(none)", m->report);
}

/* A program that is named by its path has that path's last name. */
static int check_executable(const struct manifest *m, const struct definition *d, struct err *e)
{
    const char *name = pointer_text(m->document, "/executable/name");
    const cJSON *size = pointer_get(m->document, "/executable/size");
    const char *path = pointer_text(d->experiment, "/build/executable/path");
    const char *slash = path ? strrchr(path, '/') : NULL;

    if (!m->has_executable)
        return 0;
    if (!cJSON_IsNumber(size) || size->valuedouble < 1)
        return differs(e, "the manifest's executable has 0 bytes");
    if (path && name && strcmp(name, slash ? slash + 1 : path) != 0)
        return err_set(e, ERR_TRUST, "agreement.executable",
                       "the definition's executable is %.100s, the manifest names %.100s", path,
                       name);
    return 0;
}

static bool same(const cJSON *a, const cJSON *b)
{
    bool no_a = !a || cJSON_IsNull(a);
    bool no_b = !b || cJSON_IsNull(b);

    return no_a || no_b ? no_a == no_b : json_equal(a, b);
}

static int check_profile(const struct manifest *m, const struct definition *d, struct err *e)
{
    const cJSON *profile = pointer_get(m->document, "/build/profile");
    const cJSON *build = json_get(d->experiment, "build");

    if (!same(json_get(profile, "expected"), pointer_get(build, "/profile/expect")))
        return differs(e, "the manifest's build.profile.expected is not the definition's");
    if (!same(json_get(profile, "allocator"), json_get(build, "allocator")))
        return differs(e, "the manifest's build.profile.allocator is not the definition's");
    return 0;
}

static bool holds(const cJSON *list, const char *text)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, list) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, text) == 0)
            return true;
    }
    return false;
}

/* The patterns that a runner refuses in its caller's environment are those of the definition, each
 * once. */
static int check_patterns(const struct manifest *m, const struct definition *d, struct err *e)
{
    const cJSON *stated = pointer_get(m->document, "/build/rejected_patterns");
    const cJSON *mode = json_get(json_get(d->experiment, "modes"), m->mode);
    const cJSON *const lists[] = {
        pointer_get(d->experiment, "/build/env/reject"),
        pointer_get(d->experiment, "/run/env/reject"),
        pointer_get(mode, "/env/reject"),
    };
    const cJSON *item = NULL;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        cJSON_ArrayForEach(item, lists[i]) {
            if (cJSON_IsString(item) && !holds(stated, item->valuestring))
                return err_set(e, ERR_TRUST, "agreement.reject",
                               "the definition rejects %.100s, the manifest's rejected_patterns do "
                               "not hold it",
                               item->valuestring);
        }
    }
    cJSON_ArrayForEach(item, stated) {
        bool known = false;

        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
            known = known || holds(lists[i], item->valuestring);
        if (!known)
            return err_set(e, ERR_TRUST, "agreement.reject",
                           "the manifest rejects %.100s, the definition does not",
                           item->valuestring);
    }
    return 0;
}

/* Fingerprints of two schemes say nothing about each other. */
static int check_scheme(const struct manifest *m, const struct definition *d, struct err *e)
{
    const char *asked = pointer_text(d->experiment, "/run/source_scheme");
    const char *made = pointer_text(m->document, "/source/start/scheme");

    if (!asked)
        asked = "cleanrun-source/1";
    if (!made || strcmp(made, asked) == 0)
        return 0;
    return err_set(e, ERR_TRUST, "agreement.scheme",
                   "the definition's fingerprint is %.40s, the manifest's is %.40s", asked, made);
}

static int check_mode(const struct manifest *m, const struct definition *d, struct err *e)
{
    if (strcmp(m->mode, "clean") == 0 || json_get(json_get(d->experiment, "modes"), m->mode))
        return 0;
    return err_set(e, ERR_TRUST, "agreement.mode",
                   "the manifest's mode is %s, the definition has no such mode", m->mode);
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
static int check_conditioning(const struct manifest *m, const struct definition *d, struct err *e)
{
    const cJSON *steps = pointer_get(m->document, "/conditioning/steps");
    const cJSON *asked = json_get(d->experiment, "conditioning");
    bool none = cJSON_GetArraySize(steps) == 0;
    const char *stated = pointer_text(m->document, "/conditioning/sha256");
    struct digest digest;
    char hex[DIGEST_HEX_SIZE];

    if (jcs_digest(pointer_get(m->document, "/conditioning/steps"), &digest, e) < 0)
        return -1;
    digest_hex(&digest, hex);
    if (!stated || strcmp(stated, hex) != 0)
        return differs(e, "conditioning.sha256 is not the digest of conditioning.steps");
    if (cJSON_IsNull(json_get(m->document, "environment")) || /* nothing ran */
        cJSON_GetArraySize(asked) == 0)
        return none ? 0 : differs(e, "conditioning.steps holds steps that were not to be done");
    return json_equal(steps, asked)
               ? 0
               : differs(e, "conditioning.steps are not the steps of the definition");
}

static int place_of(const cJSON *list, const char *name)
{
    const cJSON *item = NULL;
    int i = 0;

    cJSON_ArrayForEach(item, list) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, name) == 0)
            return i;
        i++;
    }
    return -1;
}

static bool seen(const cJSON *markers, const char *phase)
{
    const cJSON *marker = NULL;

    cJSON_ArrayForEach(marker, markers) {
        const char *name = pointer_text(marker, "/phase");

        if (name && strcmp(name, phase) == 0)
            return true;
    }
    return false;
}

static int check_order(const cJSON *markers, const cJSON *list, struct err *e)
{
    const cJSON *marker = NULL;
    int last = -1;

    cJSON_ArrayForEach(marker, markers) {
        const char *name = pointer_text(marker, "/phase");
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
    const char *from = pointer_text(phases, "/from");
    const cJSON *item = NULL;

    if (m->status != MANIFEST_PASS || strcmp(m->mode, "clean") != 0)
        return 0;
    if (listed && check_order(markers, listed, e) < 0)
        return -1;
    if (from && strcmp(from, "report") == 0)
        return 0;
    cJSON_ArrayForEach(item, json_get(phases, "required")) {
        if (cJSON_IsString(item) && !seen(markers, item->valuestring))
            return err_set(e, ERR_TRUST, "agreement.phase",
                           "status PASS without the required phase marker '%.100s'",
                           item->valuestring);
    }
    cJSON_ArrayForEach(item, json_get(d->experiment, "conditioning")) {
        const char *name = pointer_text(item, "/name");

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
    if (check_names(m, d, e) < 0 || check_mode(m, d, e) < 0 || check_scheme(m, d, e) < 0 ||
        check_report(m, d, e) < 0 || check_build(m, d, e) < 0 || check_executable(m, d, e) < 0 ||
        check_profile(m, d, e) < 0 || check_patterns(m, d, e) < 0 ||
        check_conditioning(m, d, e) < 0)
        return -1;
    return check_markers(m, d, e);
}
