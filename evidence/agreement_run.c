/* The manifest against what the run left: its times, how quiet the machine was, what was executed,
 * the files every run writes, and the report as the program wrote it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "evidence/agreement.h"
#include "evidence/agreement_parts.h"
#include "experiment/host_rules.h"
#include "experiment/pointer.h"
#include "experiment/samples.h"

#define SAMPLES "samples/process.csv"
#define AS_WRITTEN ".as-written"
#define NAME_SIZE ((size_t) LIMIT_RELNAME * 2)
#define LOOKED_MS 1000 /* a program that ran this long was looked at while it ran */
#define PROFILES "profile/"

static bool program_ran(const struct manifest *m)
{
    return cJSON_IsObject(json_get(m->document, "environment"));
}

static bool is_clean(const struct manifest *m)
{
    return strcmp(m->mode, "clean") == 0;
}

/* Files. */

static int need(const struct manifest *m, const char *path, struct err *e)
{
    return manifest_find(m, path)
               ? 0
               : err_set(e, ERR_TRUST, "agreement.absent", "'%s' is not in the archive", path);
}

/* Every runner writes these. */
static int check_members(const struct manifest *m, struct err *e)
{
    bool audit = manifest_find(m, "audit.json") != NULL;

    if (need(m, "build.log", e) < 0)
        return -1;
    if (program_ran(m) && (need(m, "run.log", e) < 0 || need(m, SAMPLES, e) < 0))
        return -1;
    if (audit != (manifest_find(m, "audit.md") != NULL))
        return err_set(e, ERR_TRUST, "agreement.audit", "'%s' is in the archive, '%s' is not",
                       audit ? "audit.json" : "audit.md", audit ? "audit.md" : "audit.json");
    for (size_t i = 0; is_clean(m) && i < m->n_files; i++) {
        if (strncmp(m->files[i].path, PROFILES, strlen(PROFILES)) == 0)
            return err_set(e, ERR_TRUST, "agreement.profile",
                           "mode clean although '%.100s' is what a profiler leaves",
                           m->files[i].path);
    }
    return 0;
}

/* Quiet. A runner makes no evidence where one of these is broken. */

static int check_quiet(const struct manifest *m, const struct definition *d, struct err *e)
{
    const cJSON *limits = pointer_get(d->experiment, "/host/limits");
    const cJSON *quiet = pointer_get(d->experiment, "/host/quiet");
    char why[200];

    if (host_breaks(limits, pointer_get(m->document, "/machine/facts"),
                    pointer_get(m->document, "/machine/readings"), why, sizeof why))
        return err_set(e, ERR_TRUST, "agreement.host",
                       "the machine is not what the gate demands: %s", why);
    if (!program_ran(m))
        return 0;
    if (interference_breaks(quiet, pointer_get(m->document, "/interference/before"), true, why,
                            sizeof why))
        return err_set(e, ERR_TRUST, "agreement.quiet",
                       "the machine was not quiet before the run: %s", why);
    if (interference_breaks(quiet, pointer_get(m->document, "/interference/during"), false, why,
                            sizeof why))
        return err_set(e, ERR_TRUST, "agreement.quiet",
                       "the machine was not quiet during the run: %s", why);
    return 0;
}

/* Times. */

/* Clocks are set and slewed while runs last (at most 0.05 %), and a program's last words are read
 * after its end. */
static double slack(double ms)
{
    return LIMIT_WALL_SLACK_S * 1e3 + ms / 1e3;
}

static int outlasts(const char *what, double ms, const char *whole, double whole_ms, struct err *e)
{
    if (ms >= 0 && ms <= whole_ms + slack(whole_ms))
        return 0;
    return err_set(e, ERR_TRUST, "agreement.wall", "%s %.0f ms, %s %.0f ms", what, ms, whole,
                   whole_ms);
}

static int check_markers(const struct manifest *m, double wall_ms, struct err *e)
{
    const cJSON *marker = NULL;
    double last = 0;

    cJSON_ArrayForEach(marker, json_get(m->document, "phase_markers")) {
        double at = json_get(marker, "elapsed_ms")->valuedouble;
        char what[120];

        (void) snprintf(what, sizeof what, "phase marker '%.60s' came after",
                        pointer_text(marker, "/phase")); /* fits */
        if (outlasts(what, at, "host.json says that the program ran for", wall_ms, e) < 0)
            return -1;
        if (at < last)
            return err_set(e, ERR_TRUST, "agreement.marker",
                           "%s %.0f ms, the one before it after %.0f ms", what, at, last);
        last = at;
    }
    return 0;
}

static int check_samples(const struct agreement_reader *reader, double wall_ms, struct err *e)
{
    AUTO_SAMPLES struct samples s = {.n = 0};
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (reader->bytes(reader->ctx, SAMPLES, LIMIT_SAMPLES_FILE, &bytes, &len, e) < 0)
        return -1;
    if (samples_parse_csv(bytes, len, &s, e) < 0)
        return err_wrap(e, "'" SAMPLES "'");
    for (size_t i = 0; i < s.n; i++) {
        if (outlasts("a sample was taken after", (double) s.t_ms[i],
                     "host.json says that the program ran for", wall_ms, e) < 0)
            return -1;
    }
    return 0;
}

/* Both looks at the machine lie within the run, and the second one lasted as long as the program.
 */
static int check_looks(const struct manifest *m, double wall_ms, double lasted_ms, struct err *e)
{
    const cJSON *before = pointer_get(m->document, "/interference/before/secs");
    const cJSON *during = pointer_get(m->document, "/interference/during/secs");
    const char *run = "the run lasted";

    if (cJSON_IsNumber(before) &&
        outlasts("interference.before says", before->valuedouble * 1e3, run, lasted_ms, e) < 0)
        return -1;
    if (!cJSON_IsNumber(during))
        return 0;
    if (outlasts("interference.during says", during->valuedouble * 1e3, run, lasted_ms, e) < 0)
        return -1;
    return outlasts("host.json says that the program ran for", wall_ms, "interference.during says",
                    during->valuedouble * 1e3, e);
}

static int check_run_times(const struct manifest *m, const cJSON *host,
                           const struct agreement_reader *reader, struct err *e)
{
    const cJSON *wall = pointer_get(host, "/usage/wall_ms");
    double lasted_ms = (double) (m->finished_us - m->started_us) / 1e3;

    if (!program_ran(m))
        return 0;
    if (!cJSON_IsNumber(wall))
        return err_set(e, ERR_TRUST, "agreement.wall",
                       "host.json does not say how long the program ran (usage.wall_ms)");
    if (outlasts("host.json says that the program ran for", wall->valuedouble,
                 "the manifest that the run lasted", lasted_ms, e) < 0 ||
        check_markers(m, wall->valuedouble, e) < 0 ||
        check_looks(m, wall->valuedouble, lasted_ms, e) < 0)
        return -1;
    return check_samples(reader, wall->valuedouble, e);
}

/* What was executed. */

static int other_bytes(const char *name, const char *mapped, const char *stated, struct err *e)
{
    return err_set(e, ERR_TRUST, "agreement.mapped",
                   "the program executed %.80s of sha256 %.64s, the executable's is %.64s", name,
                   mapped ? mapped : "(none)", stated);
}

static bool starts_executable(const struct definition *d)
{
    const char *first = pointer_text(d->experiment, "/run/command/0");

    return first && strcmp(first, "{executable}") == 0;
}

static int check_mapped(const struct manifest *m, const struct definition *d, const cJSON *host,
                        struct err *e)
{
    const char *stated = pointer_text(m->document, "/executable/sha256");
    const char *path = pointer_text(d->experiment, "/build/executable/path");
    const cJSON *wall = pointer_get(host, "/usage/wall_ms");
    const cJSON *item = NULL;
    bool found = false;

    if (!program_ran(m) || m->status != MANIFEST_PASS || !stated)
        return 0;
    cJSON_ArrayForEach(item, pointer_get(m->document, "/executable/mapped")) {
        const char *name = pointer_text(item, "/name");
        const char *hex = pointer_text(item, "/sha256");
        bool same = strcmp(hex, stated) == 0;

        if (path && strcmp(name, path) == 0 && !same)
            return other_bytes(name, hex, stated, e);
        found = found || same;
    }
    if (found || !is_clean(m) || !starts_executable(d) || wall->valuedouble < LOOKED_MS)
        return 0;
    return other_bytes("nothing", NULL, stated, e);
}

static int check_toolchain(const struct manifest *m, struct err *e)
{
    const char *built = pointer_text(m->document, "/build/profile/toolchain");
    const char *fact = pointer_text(m->document, "/machine/facts/toolchain");

    if (!built || (fact && strcmp(built, fact) == 0))
        return 0;
    return err_set(e, ERR_TRUST, "agreement.toolchain",
                   "the manifest's build.profile.toolchain is %.100s, its machine.facts.toolchain "
                   "is %.100s",
                   built, fact ? fact : "nothing");
}

/* The report: what the program wrote, and what the runner adds (sampling.into). */

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "agreement.memory", "no memory for a report");
}

/* Copies a member of `from`, when it is there, to the object that `to` is. */
static int add_copy(cJSON *to, const char *key, const cJSON *value, struct err *e)
{
    cJSON *copy = cJSON_Duplicate(value, true);

    if (copy && cJSON_AddItemToObject(to, key, copy))
        return 0;
    json_free(copy);
    return no_memory(e);
}

/* The owner of what pointer_get finds. */
static cJSON *object_at(cJSON *root, const char *pointer, size_t len)
{
    AUTO_FREE char *head = strndup(pointer, len);
    const cJSON *found = head ? pointer_get(root, head) : NULL;

    return cJSON_IsObject(found) ? (cJSON *) (uintptr_t) found : NULL;
}

static int complete(cJSON *written, const cJSON *report, const char *into, const cJSON *markers,
                    struct err *e)
{
    const char *key = strrchr(into, '/');
    cJSON *parent = key ? object_at(written, into, (size_t) (key - into)) : NULL;
    const cJSON *section = pointer_get(report, into);
    cJSON *diagnostics;

    if (!parent || !section || json_get(parent, key + 1))
        return err_set(e, ERR_TRUST, "agreement.report",
                       "the report's %.60s is not a section that a runner added", into);
    if (add_copy(parent, key + 1, section, e) < 0)
        return -1;
    if (!json_get(written, "diagnostics")) {
        diagnostics = cJSON_CreateObject();
        if (!diagnostics || !cJSON_AddItemToObject(written, "diagnostics", diagnostics)) {
            json_free(diagnostics);
            return no_memory(e);
        }
    }
    diagnostics = object_at(written, "/diagnostics", strlen("/diagnostics"));
    if (!diagnostics || json_get(diagnostics, "phase_markers"))
        return 0;
    return add_copy(diagnostics, "phase_markers", markers, e);
}

static int check_as_written(const struct manifest *m, const struct definition *d,
                            const struct agreement_reader *reader, struct err *e)
{
    const char *into = pointer_text(d->experiment, "/sampling/into");
    const char *status = pointer_text(m->document, "/report_status");
    AUTO_JSON cJSON *report = NULL;
    AUTO_JSON cJSON *written = NULL;
    char path[NAME_SIZE];
    char raw[NAME_SIZE + sizeof AS_WRITTEN];

    if (!into || !m->report || !status || strcmp(status, "CAPTURED") != 0)
        return 0;
    (void) snprintf(path, sizeof path, "results/%.*s", LIMIT_RELNAME, m->report); /* fits */
    (void) snprintf(raw, sizeof raw, "%s" AS_WRITTEN, path);                      /* fits */
    if (agreement_member(reader, path, &report, e) < 0 ||
        agreement_member(reader, raw, &written, e) < 0 ||
        complete(written, report, into, json_get(m->document, "phase_markers"), e) < 0)
        return -1;
    return agreement_compare("report", report, raw, written, e);
}

int agreement_run(const struct manifest *m, const struct definition *d, const cJSON *host,
                  const struct agreement_reader *reader, struct err *e)
{
    if (check_members(m, e) < 0 || check_quiet(m, d, e) < 0 ||
        check_run_times(m, host, reader, e) < 0 || check_mapped(m, d, host, e) < 0 ||
        check_toolchain(m, e) < 0)
        return -1;
    return check_as_written(m, d, reader, e);
}
