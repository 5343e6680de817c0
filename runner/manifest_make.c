#include "runner/manifest_make.h"

#include <string.h>

#include "base/clock.h"
#include "base/jcs.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "experiment/environment.h"
#include "runner/version.h"

static void add_digest(struct json_doc *d, cJSON *parent, const char *key,
                       const struct digest *digest)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(digest, hex);
    json_add_string(d, parent, key, hex);
}

static void add_time(struct json_doc *d, const char *key, int64_t us)
{
    char text[CLOCK_RFC3339_SIZE];

    clock_rfc3339(us, true, text);
    json_add_string(d, NULL, key, text);
}

static void add_head(struct json_doc *d, const struct manifest_parts *p)
{
    const struct run *r = p->run;

    json_add_string(d, NULL, "schema", "cleanrun-manifest/2");
    json_add_string(d, NULL, "project", r->project);
    json_add_string(d, NULL, "gate", r->definition->gate);
    json_add_string(d, NULL, "class", r->plan.machine_class);
    json_add_string(d, NULL, "run", r->id);
    json_add_string(d, NULL, "mode", plan_mode_word(r->plan.mode));
    json_add_string(d, NULL, "status", p->status);
    json_add_int(d, NULL, "attempt", (int64_t) r->options.attempt);
    add_time(d, "started_at", r->started_us);
    add_time(d, "finished_at", p->finished_us);
}

static void add_outcome(struct json_doc *d, const struct manifest_parts *p)
{
    const struct child_status *s = &p->run->measure.loop.status;
    bool named = p->report->status == REPORT_CAPTURED || p->report->status == REPORT_INVALID;
    cJSON *part;

    if (p->run->measured && s->exited)
        json_add_int(d, NULL, "exit_code", s->code);
    else
        json_add_null(d, NULL, "exit_code");
    if (p->run->measured && !s->exited)
        json_add_int(d, NULL, "signal", s->signal);
    else
        json_add_null(d, NULL, "signal");
    json_add_string(d, NULL, "report_status", report_status_word(p->report->status));
    json_add_string(d, NULL, "report", named ? p->run->plan.run.report : NULL);
    json_add_string(d, NULL, "acceptance_status", p->acceptance_status);
    json_add_string(d, NULL, "audit_status", p->audit_status);
    part = json_add_object(d, NULL, "definition");
    add_digest(d, part, "experiment_sha256", &p->run->definition->experiment_digest);
    add_digest(d, part, "policy_sha256", &p->run->definition->policy_digest);
}

static int add_source(struct json_doc *d, const struct run *r, struct err *e)
{
    cJSON *start = NULL, *end = NULL;
    cJSON *part = json_add_object(d, NULL, "source");

    if (source_to_json(&r->start, &start, e) < 0)
        return -1;
    json_add(d, part, "start", start);
    if (source_to_json(&r->end, &end, e) < 0)
        return -1;
    json_add(d, part, "end", end);
    json_add_bool(d, part, "unchanged", source_equal(&r->start, &r->end));
    json_add_int(d, part, "ignored", (int64_t) r->ignored.n);
    return 0;
}

static int add_executable(struct json_doc *d, const struct run *r, struct err *e)
{
    cJSON *part = json_add_object(d, NULL, "executable");
    cJSON *mapped = NULL;

    json_add_string(d, part, "name", r->artifact.name);
    add_digest(d, part, "sha256", &r->artifact.digest);
    json_add_int(d, part, "size", (int64_t) r->artifact.size);
    json_add_string(d, part, "resolved", r->artifact.resolved);
    if (!r->measured) {
        (void) json_add_array(d, part, "mapped"); /* nothing ran */
        return 0;
    }
    if (mapped_to_json(r->measure.mapped, &mapped, e) < 0)
        return -1;
    json_add(d, part, "mapped", mapped);
    return 0;
}

static int add_build(struct json_doc *d, const struct run *r, struct err *e)
{
    cJSON *part = json_add_object(d, NULL, "build");
    cJSON *environment = NULL, *profile;

    json_add_copy(d, part, "command", r->plan.build.command);
    json_add_int(d, part, "exit_code", 0); /* a build that fails makes no manifest */
    if (environment_effective(r->build.environment, &environment, e) < 0)
        return -1;
    json_add(d, part, "environment", environment);
    json_add_copy(d, part, "rejected_patterns", r->patterns);
    profile = json_add_object(d, part, "profile");
    json_add_string(d, profile, "toolchain", r->build.toolchain);
    json_add_string(d, profile, "allocator", r->plan.build.allocator);
    json_add_copy(d, profile, "expected", json_get(r->plan.build.profile, "expect"));
    json_add_copy(d, profile, "messages", r->artifact.details);
    return 0;
}

/* Of the measured program; null when nothing ran. */
static int add_environment(struct json_doc *d, const struct run *r, struct err *e)
{
    cJSON *environment = NULL;

    if (!r->measured) {
        json_add_null(d, NULL, "environment");
        return 0;
    }
    if (environment_effective(r->measure.environment, &environment, e) < 0)
        return -1;
    json_add(d, NULL, "environment", environment);
    return 0;
}

static int add_conditioning(struct json_doc *d, const struct run *r, struct err *e)
{
    cJSON *part = json_add_object(d, NULL, "conditioning");
    struct digest digest;

    if (jcs_digest(r->steps, &digest, e) < 0)
        return -1;
    json_add_copy(d, part, "steps", r->steps);
    add_digest(d, part, "sha256", &digest);
    return 0;
}

static void add_machine(struct json_doc *d, const struct run *r)
{
    cJSON *part = json_add_object(d, NULL, "machine");

    json_add_copy(d, part, "facts", r->facts);
    json_add_copy(d, part, "readings", r->readings);
    part = json_add_object(d, NULL, "interference");
    if (r->before)
        json_add_copy(d, part, "before", r->before);
    else
        json_add_null(d, part, "before");
    if (r->measured)
        json_add_copy(d, part, "during", r->measure.interference);
    else
        json_add_null(d, part, "during");
    json_add_null(d, NULL, "ticket");
}

static void add_baseline(struct json_doc *d, const struct reference *ref, bool kept)
{
    cJSON *part;

    if (!kept) {
        json_add_null(d, NULL, "baseline");
        return;
    }
    part = json_add_object(d, NULL, "baseline");
    json_add_string(d, part, "id", ref->id);
    if (ref->has_evidence)
        add_digest(d, part, "evidence_sha256", &ref->evidence_digest);
    else
        json_add_null(d, part, "evidence_sha256");
    add_digest(d, part, "manifest_sha256", &ref->manifest_digest);
}

/* One row a window of the derived section. */
static void add_coverage(struct json_doc *d, const struct report *report)
{
    cJSON *rows = json_add_array(d, NULL, "coverage");
    const cJSON *window = NULL;

    cJSON_ArrayForEach(window, json_get(report->resources, "windows")) {
        cJSON *row = json_add_object(d, rows, NULL);

        json_add_string(d, row, "window", window->string);
        json_add_copy(d, row, "requested_secs", json_get(window, "requested_coverage_secs"));
        json_add_copy(d, row, "actual_secs", json_get(window, "actual_coverage_secs"));
        json_add_copy(d, row, "samples", json_get(window, "sample_count"));
        json_add_copy(d, row, "complete", json_get(window, "complete"));
    }
}

int manifest_make(const struct manifest_parts *p, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    const struct run *r = p->run;

    json_doc_init_object(&d);
    add_head(&d, p);
    add_outcome(&d, p);
    if (add_source(&d, r, e) < 0 || add_executable(&d, r, e) < 0 || add_build(&d, r, e) < 0 ||
        add_environment(&d, r, e) < 0)
        return -1;
    add_machine(&d, r);
    add_baseline(&d, &r->reference, p->has_baseline);
    if (add_conditioning(&d, r, e) < 0)
        return -1;
    json_add_copy(&d, NULL, "phase_markers", p->markers);
    add_coverage(&d, p->report);
    json_add_string(&d, NULL, "control", r->control[0] ? r->control : NULL);
    json_add_string(&d, json_add_object(&d, NULL, "runner"), "version", CLEANRUN_VERSION);
    (void) json_add_array(&d, NULL, "files"); /* filled in when every other file is written */
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}
