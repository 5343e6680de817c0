/* The end of a run: run_finish makes evidence of it, run_abort says why there is none. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "evidence/manifest.h"
#include "experiment/acceptance.h"
#include "runner/capture.h"
#include "runner/conditioning.h"
#include "runner/finish.h"
#include "runner/manifest_make.h"
#include "runner/report.h"
#include "runner/run.h"
#include "runner/scrub.h"
#include "runner/source_changed.h"

#define CHANGED_MAX 1024
#define SAMPLES_DIR "samples"
#define SAMPLES_FILE "samples/process.csv"

void run_fault(struct run *r, const char *format, ...)
{
    va_list ap;
    char *text = NULL;

    if (r->n_faults == RUN_FAULTS_MAX)
        return;
    va_start(ap, format);
    int n = vasprintf(&text, format, ap);
    va_end(ap);
    /* Without memory for its words the fault still counts. */
    r->faults[r->n_faults++] = n < 0 ? NULL : text;
}

/* What whoever verifies it reads. */
static int write_json(const struct run *r, const char *name, const cJSON *j, struct err *e)
{
    return rundir_write_json(&r->dir, name, j, LIMIT_JSON_DOCUMENT, e);
}

static int write_source(struct run *r, const char *name, const struct source *s, struct err *e)
{
    AUTO_JSON cJSON *j = NULL;

    return source_to_json(s, &j, e) < 0 ? -1 : write_json(r, name, j, e);
}

/* A program that ended badly by its own doing is a fault; one that something else ended was dealt
 * with before. */
static void judge_end(struct run *r)
{
    const struct child_status *s = &r->measure.loop.status;

    if (!s->exited)
        run_fault(r, "the program died of signal %d (%s)", s->signal, sigdescr_np(s->signal));
    else if (s->code != 0)
        run_fault(r, "the program exited with %d", s->code);
}

static int judge_bytes(struct run *r, struct err *e)
{
    const char *changed = NULL;
    bool same = false;

    if (artifact_unchanged(&r->artifact, &same, e) < 0)
        return -1;
    if (!same)
        run_fault(r, "the executable's bytes changed during the run");
    if (!r->measured)
        return 0;
    if (mapped_check(r->measure.mapped, &changed, e) < 0)
        return -1;
    if (changed)
        run_fault(r, "what the program executes from changed during the run: %s", changed);
    return 0;
}

static int judge_source(struct run *r, struct err *e)
{
    char what[CHANGED_MAX];

    if (source_take(&r->git, r->plan.source_scheme, &r->end, e) < 0)
        return -1;
    if (!source_equal(&r->start, &r->end)) {
        source_changed(&r->git, &r->start, &r->end, r->started_us, what, sizeof(what));
        run_fault(r,
                  "the source changed during the run%s%s (what a build or run writes belongs into "
                  ".gitignore)",
                  what[0] ? ": " : "", what);
    }
    return write_source(r, "source-at-end.json", &r->end, e);
}

/* Now, but never earlier than the run lasted: the clock may have been set back meanwhile. */
static int64_t finish_time(const struct run *r)
{
    int64_t now = clock_realtime_us();
    int64_t least = r->started_us + (int64_t) ((clock_monotonic_ns() - r->started_ns) / 1000U);

    return now > least ? now : least;
}

static int write_samples(struct finish *f, struct err *e)
{
    struct run *r = f->run;

    sampler_write(r->measure.sampler, &f->csv);
    if (buf_check(&f->csv, e) < 0 || file_mkdirs_at(r->dir.fd, SAMPLES_DIR, 0755, e) < 0)
        return -1;
    if (sampler_lost(r->measure.sampler) > 0)
        run_fault(r, "%zu samples did not fit", sampler_lost(r->measure.sampler));
    return file_write_at(r->dir.fd, SAMPLES_FILE, f->csv.data, f->csv.len, 0644, e);
}

static int take_report(struct finish *f, struct err *e)
{
    struct run *r = f->run;
    struct name_list removed;
    const char *misnamed;
    char why[200], fingerprint[DIGEST_HEX_SIZE];

    if (report_clean_results(r->dir.fd, &removed, e) < 0)
        return -1;
    if (removed.n > 0)
        run_fault(r,
                  "%zu entr%s below the results directory can't be packaged and %s removed (links, "
                  "devices, names of other characters, too deep, too many or too large)%s%s",
                  removed.n, removed.n == 1 ? "y" : "ies", removed.n == 1 ? "was" : "were",
                  removed.text[0] ? ": " : "", removed.text);
    if (markers_to_json(r->measure.markers, &f->markers, e) < 0 || write_samples(f, e) < 0)
        return -1;
    if (markers_break(r->measure.markers, &r->plan, why, sizeof(why)))
        run_fault(r, "%s", why);
    if (conditioning_unproven(&r->plan, r->dir.fd, why, sizeof(why)))
        run_fault(r, "%s", why);
    if (report_take(&r->plan, r->dir.fd, f->csv.data, f->csv.len, f->markers, &f->report, e) < 0)
        return -1;
    if (f->report.status == REPORT_MISSING || f->report.status == REPORT_INVALID)
        run_fault(r, "report %s: " RESULTS_DIR "/%s: %s", report_status_word(f->report.status),
                  r->plan.run.report, f->report.why);
    digest_hex(&r->start.fingerprint, fingerprint);
    misnamed = f->report.status == REPORT_CAPTURED
                   ? definition_report_misnames(r->definition, f->report.document, r->start.commit,
                                                fingerprint)
                   : NULL;
    if (misnamed)
        run_fault(r, "the report names another source %s than the run's (run.report_%s)", misnamed,
                  misnamed);
    return 0;
}

int finish_accept(const struct finish *f, const struct definition *d, struct acceptance *out,
                  struct err *e)
{
    const struct run *r = f->run;
    struct acceptance_input in = {
        .definition = d,
        .report = f->report.document,
        .report_path = r->plan.run.report,
        .samples_csv = r->plan.sampling_into ? f->csv.data : NULL,
        .samples_len = r->plan.sampling_into ? f->csv.len : 0,
        .phase_markers = r->plan.sampling_into ? f->markers : NULL,
    };

    return acceptance_evaluate(&in, out, e);
}

static int accept(struct finish *f, struct err *e)
{
    struct run *r = f->run;

    if (r->plan.mode != PLAN_CLEAN || f->report.status != REPORT_CAPTURED)
        return 0;
    if (finish_accept(f, r->definition, &f->acceptance, e) < 0)
        return -1;
    f->has_acceptance = true;
    f->acceptance_status = f->acceptance.verdict == ACCEPTANCE_PASS ? "PASS" : "FAIL";
    return write_json(r, "acceptance.json", f->acceptance.document, e);
}

int finish_manifest(const struct finish *f, cJSON **out, struct err *e)
{
    struct manifest_parts parts = {
        .run = f->run,
        .report = &f->report,
        .status = f->status,
        .acceptance_status = f->acceptance_status,
        .audit_status = f->audit_status,
        .markers = f->markers,
        .has_baseline = f->has_baseline,
        .finished_us = f->finished_us,
    };

    return manifest_make(&parts, out, e);
}

struct roles {
    struct finish *finish;
    struct err *e;
    bool failed;
};

/* The standard role, but a malformed report is listed as raw. */
static const char *role_of(void *context, const char *path)
{
    struct roles *roles = context;
    const char *role = manifest_role_of(path);
    bool json = false;

    if (!role || strcmp(role, "report") != 0)
        return role;
    if (roles->finish->report.status == REPORT_INVALID && !strncmp(path, RESULTS_DIR "/", 8) &&
        !strcmp(path + 8, roles->finish->run->plan.run.report))
        return "raw-report";
    if (report_is_json(roles->finish->run->dir.fd, path, &json, roles->e) < 0) {
        roles->failed = true;
        return NULL;
    }
    return json ? "report" : "raw-report";
}

/* The manifest with its file list, written and read back as a verifier will. */
static int seal_manifest(struct finish *f, struct err *e)
{
    struct run *r = f->run;
    struct err role_error = ERR_INIT;
    struct roles roles = {.finish = f, .e = &role_error};
    AUTO_JSON cJSON *document = NULL;
    AUTO_MANIFEST struct manifest check = {.document = NULL};
    AUTO_FREE char *bytes = NULL;
    cJSON *files = NULL;
    size_t len = 0;

    if (finish_manifest(f, &document, e) < 0)
        return -1;
    if (manifest_files_from_dir(r->dir.fd, role_of, &roles, &files, e) < 0) {
        if (roles.failed)
            *e = role_error;
        return -1;
    }
    if (!cJSON_ReplaceItemInObjectCaseSensitive(document, "files", files)) {
        json_free(files);
        return err_memory(e, "finalize.memory");
    }
    if (write_json(r, MANIFEST_NAME, document, e) < 0 ||
        file_read_at(r->dir.fd, MANIFEST_NAME, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0)
        return -1;
    if (manifest_parse(bytes, len, &check, e) < 0) {
        e->kind = ERR_INTERNAL; /* we wrote it */
        return err_wrap(e, "our own manifest");
    }
    return 0;
}

static int write_environment(struct run *r, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *j = NULL;

    json_doc_init_object(&d);
    json_add_copy(&d, NULL, "build", r->build.environment);
    json_add_copy(&d, NULL, "run", r->measure.environment);
    json_add_copy(&d, NULL, "rejected_patterns", r->patterns);
    j = json_doc_take(&d, e);
    return j ? write_json(r, "environment.json", j, e) : -1;
}

/* Totals of the measured program, for people: the samples hold the course. */
static void add_usage(struct json_doc *d, const struct measure *m)
{
    const struct child_status *s = &m->loop.status;
    cJSON *o = json_add_object(d, NULL, "usage");

    json_add_int(d, o, "wall_ms", (int64_t) (m->loop.wall_ns / 1000000U));
    json_add_int(d, o, "user_us", (int64_t) s->user_us);
    json_add_int(d, o, "system_us", (int64_t) s->system_us);
    json_add_int(d, o, "max_rss_kib", (int64_t) s->max_rss_kib);
    json_add_int(d, o, "minor_faults", (int64_t) s->minor_faults);
    json_add_int(d, o, "major_faults", (int64_t) s->major_faults);
    json_add_int(d, o, "voluntary_switches", (int64_t) s->voluntary_switches);
    json_add_int(d, o, "involuntary_switches", (int64_t) s->involuntary_switches);
    json_add_int(d, o, "processes_left_behind", (int64_t) m->loop.left_behind);
    json_add_bool(d, o, "box", m->had_box);
    json_add_string(d, o, "why_no_box", m->had_box ? NULL : m->why_no_box);
    if (m->box.has_memory)
        json_add_int(d, o, "box_memory_peak_bytes", (int64_t) m->box.memory_peak_bytes);
}

static int write_host(const struct finish *f, struct err *e)
{
    const struct run *r = f->run;
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *j = NULL;

    json_doc_init_object(&d);
    json_add_copy(&d, NULL, "facts", r->facts);
    json_add_copy(&d, NULL, "readings", r->readings);
    json_add_copy(&d, NULL, "before", r->before);
    if (r->measured) {
        json_add_copy(&d, NULL, "during", r->measure.interference);
        add_usage(&d, &r->measure);
    }
    /* Behind an acceptance that failed by the run's own policy they would not be seen. */
    json_add_int(&d, NULL, "faults", (int64_t) (r->n_faults - (f->own_acceptance_failed ? 1 : 0)));
    j = json_doc_take(&d, e);
    return j ? write_json(r, "host.json", j, e) : -1;
}

static void note_faults(struct run *r)
{
    struct capture log = {.fd = -1};
    struct err ignored = ERR_INIT; /* talk: the faults are told and in the verdict's way as well */

    if (r->n_faults == 0 || capture_append(&log, r->dir.fd, RUN_LOG, LIMIT_LOG, NULL, &ignored) < 0)
        return;
    for (size_t i = 0; i < r->n_faults; i++)
        (void) capture_note(&log, "FAIL: %s", r->faults[i] ? r->faults[i] : "?"); /* talk */
    capture_close(&log);
}

/* A window that lacks samples because nobody took them is no failure of the program. */
static int judge_pace(const struct finish *f, struct err *e)
{
    const struct run *r = f->run;
    char why[200];

    if (f->own_acceptance_failed && r->plan.sampling_into &&
        pace_breaks_window(&r->measure.pace, json_get(r->definition->experiment, "windows"),
                           f->markers, why, sizeof(why)))
        return err_set(e, ERR_SYS, "run.stall",
                       "acceptance failed, but the machine was disturbed during the run: %s", why);
    return 0;
}

static int finish_measured(struct finish *f, struct err *e)
{
    struct run *r = f->run;

    judge_end(r);
    if (take_report(f, e) < 0 || accept(f, e) < 0)
        return -1;
    f->own_acceptance_failed = r->plan.mode == PLAN_CLEAN && f->acceptance_status[0] == 'F';
    if (judge_pace(f, e) < 0)
        return -1;
    if (f->own_acceptance_failed)
        run_fault(r, "acceptance failed");
    return 0;
}

static int finish(struct finish *f, struct err *e)
{
    struct run *r = f->run;

    r->stage = "finish";
    if (scrub_environments(r, e) < 0)
        return -1;
    if (r->measured && finish_measured(f, e) < 0)
        return -1;
    if (judge_source(r, e) < 0 || judge_bytes(r, e) < 0 || write_environment(r, e) < 0)
        return -1;
    f->finished_us = finish_time(r);
    f->status = r->options.build_only && r->n_faults == 0 ? "BUILD_ONLY"
                : r->n_faults == 0                        ? "PASS"
                                                          : "FAIL";
    if (finish_compare(f, e) < 0 || finish_foresee(f, e) < 0)
        return -1;
    note_faults(r);
    if (write_host(f, e) < 0)
        return -1;
    if (scrub_logs(r, e) < 0 || seal_manifest(f, e) < 0)
        return -1;
    return rundir_commit(&r->dir, e);
}

int run_finish(struct run *r, int *out_exit, struct err *e)
{
    struct finish f = {
        .run = r,
        .report = {.status = r->measured ? REPORT_MISSING : REPORT_NOT_EXPECTED},
        .acceptance_status = "NOT_APPLICABLE",
        .audit_status = "NOT_APPLICABLE",
    };
    int result;

    buf_init(&f.csv, LIMIT_SAMPLES_FILE);
    f.markers = r->measured ? NULL : cJSON_CreateArray();
    result = !r->measured && !f.markers ? err_memory(e, "finalize.memory") : finish(&f, e);
    if (result == 0) {
        *out_exit = finish_exit(&f);
        finish_tell(&f, *out_exit);
    }
    buf_fini(&f.csv);
    json_free(f.markers);
    report_fini(&f.report);
    if (f.has_acceptance)
        acceptance_fini(&f.acceptance);
    if (f.has_audit)
        audit_fini(&f.audit);
    if (f.has_foreseen)
        audit_fini(&f.foreseen);
    reviewed_fini(&f.reviewed);
    return result;
}
