/* cleanrun check: is the definition sound, and what are its digests? */
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/policy.h"
#include "audit/verdict.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/text.h"
#include "experiment/definition.h"
#include "runner/check_names.h"
#include "runner/checkout.h"
#include "runner/commands.h"
#include "runner/host_limits.h"
#include "runner/plan.h"
#include "runner/profiler.h"

#define NAME_SHOWN 300

static int load(const struct cli *c, const struct cli_args *a, struct definition_file *out,
                char **out_name, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    AUTO_FREE char *path = NULL;
    size_t len = 0;

    if (a->n_args)
        path = strdup(a->args[0]);
    else if (checkout_find_definition(c->directory, "/", &path, e) < 0)
        return -1;
    if (!path)
        return err_memory(e, "check.memory");
    if (file_read(path, LIMIT_YAML, &bytes, &len, e) < 0 ||
        definition_file_parse(path, bytes, len, out, e) < 0)
        return -1;
    *out_name = STEAL(path);
    return 0;
}

/* What only the runner can see: each mode it describes must be runnable as data. */
static int check_plans(const struct definition *d, struct err *e)
{
    for (int m = 0; m < PLAN_MODE_MAX; m++) {
        struct plan p;
        const char *word = plan_mode_word((enum plan_mode) m);

        if (m != PLAN_CLEAN && !json_get(json_get(d->experiment, "modes"), word))
            continue;
        if (plan_read(d, (enum plan_mode) m, &p, e) < 0 || profiler_check_tool(&p, e) < 0)
            return d->source ? -1 : err_wrap(e, "gate %s", d->gate);
    }
    return 0;
}

/* Sound, but no run of it could ever be green: facts that nothing tells stay unknown. */
static const struct {
    const char *key, *pointer, *text;
} warnings[] = {
    {"toolchain", "/experiment/build/toolchain",
     "build.toolchain is missing: the compiler stays an unknown fact, and no run can be compared"},
    {"allocator", "/experiment/build/allocator",
     "build.allocator is missing: the allocator stays an unknown fact, and no run can be compared"},
    {NULL, "/policy/accept",
     "accept holds no check: nothing would be accepted, and every run would be a FAIL"},
    {"report", "/policy/audit/paths/required/0",
     "audit.paths.required leaves run.report out: only a program that writes the files named here "
     "as well can be compared"},
};

/* The report that the run is judged by is none of those that are compared. */
static bool leaves_report_out(const struct definition *d)
{
    const cJSON *report = json_get(json_get(d->experiment, "run"), "report");
    const cJSON *path = NULL;

    cJSON_ArrayForEach(path,
                       json_get(json_get(json_get(d->policy, "audit"), "paths"), "required")) {
        if (report && !strcmp(path->valuestring, report->valuestring))
            return false;
    }
    return report != NULL;
}

/* Acceptance without a single check accepts nothing. */
static bool has_check(const struct definition *d)
{
    const cJSON *accept = json_get(d->policy, "accept");

    return accept->child || json_get(d->policy, "soak") ||
           json_get(json_get(d->experiment, "sampling"), "into");
}

static bool applies(const struct definition *d, size_t i)
{
    const char *key = warnings[i].key;

    if (key && !strcmp(key, "report"))
        return leaves_report_out(d);
    return key ? !json_get(json_get(d->experiment, "build"), key) : !has_check(d);
}

/* A gate's warnings go here. */
struct teller {
    const struct definition *definition;
    struct json_doc *doc;
    cJSON *list;
};

static void warn_of_gap(void *context, const struct reach *gap)
{
    const struct teller *t = context;
    char report[NAME_SHOWN + 1];
    char pointer[NAME_SHOWN + 1];
    char text[1024];

    (void) snprintf(text, sizeof text, /* fits */
                    "no report of audit.paths.required is '%s': the %s %s is never looked "
                    "at there, and no run can be compared",
                    text_copy(report, sizeof report, gap->report), gap->what,
                    text_copy(pointer, sizeof pointer, gap->pointer));
    check_warn(t->definition, t->doc, t->list, gap->place, text);
}

/* What is there can fall by 100 % at most, unless it may be negative. */
static void warn_of_full_tolerance(const struct teller *t, const struct policy *p)
{
    for (size_t i = 0; i < p->n_metrics; i++) {
        const struct policy_metric *m = &p->metrics[i];
        char pointer[128];

        if (!m->gated || m->higher_is_worse || m->tolerance_pct < 100)
            continue;
        (void) snprintf(pointer, sizeof pointer, "/policy/audit/metrics/%zu/tolerance_pct",
                        i); /* fits: words of ours */
        check_warn(t->definition, t->doc, t->list, pointer,
                   "100 % or more of a metric that is worse when lower: even a fall to 0 would be "
                   "no regression");
    }
}

static int add_policy_warnings(struct teller *t, struct err *e)
{
    AUTO_POLICY struct policy p = {.n_metrics = 0};

    if (policy_read(t->definition, &p, e) < 0)
        return -1;
    reach_gaps(&p, warn_of_gap, t);
    warn_of_full_tolerance(t, &p);
    return 0;
}

/* "warnings" [{place, text}] of a gate. */
static int add_warnings(struct json_doc *doc, cJSON *row, const struct definition *d, struct err *e)
{
    cJSON *list = json_add_array(doc, row, "warnings");
    struct teller t = {.definition = d, .doc = doc, .list = list};

    for (size_t i = 0; i < ARRAY_LEN(warnings); i++)
        if (applies(d, i))
            check_warn(d, doc, list, warnings[i].pointer, warnings[i].text);
    return add_policy_warnings(&t, e) < 0 ? -1 : check_names(d, doc, list, e);
}

static int print_schema(const struct cli *c, struct err *e)
{
    AUTO_JSON cJSON *j = NULL;

    return definition_json_schema(&j, e) < 0 ? -1 : cli_write_json(c, NULL, j, e);
}

static int print_canonical(const struct cli *c, const struct definition_file *f, const char *gate,
                           struct err *e)
{
    const struct definition *d = definition_file_gate(f, gate);
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (!d) {
        AUTO_BUF struct buf names = {.data = NULL};

        buf_init(&names, LIMIT_KIB(4));
        for (size_t i = 0; i < f->n; i++)
            buf_printf(&names, "%s%s", i ? ", " : "", f->gates[i].gate);
        return err_set(e, ERR_USAGE, "check.gate", "%s%s%s; there are: %s",
                       gate ? "no gate '" : "which gate? --gate NAME", gate ? gate : "",
                       gate ? "'" : "", names.data ? names.data : "none");
    }
    return definition_write(d, &bytes, &len, e) < 0 ? -1 : cli_write_text(c, NULL, bytes, len, e);
}

static int print_json(const struct cli *c, const struct definition_file *f, const char *name,
                      struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *j = NULL;
    cJSON *rows;

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-check-definition/1");
    json_add_string(&d, NULL, "file", name);
    rows = json_add_array(&d, NULL, "gates");
    for (size_t i = 0; i < f->n; i++) {
        cJSON *row = json_add_object(&d, rows, NULL);
        char hex[DIGEST_HEX_SIZE];

        json_add_string(&d, row, "gate", f->gates[i].gate);
        json_add_string(&d, row, "project", f->gates[i].project);
        digest_hex(&f->gates[i].experiment_digest, hex);
        json_add_string(&d, row, "experiment_sha256", hex);
        digest_hex(&f->gates[i].policy_digest, hex);
        json_add_string(&d, row, "policy_sha256", hex);
        if (add_warnings(&d, row, &f->gates[i], e) < 0)
            return -1;
    }
    j = json_doc_take(&d, e);
    return j ? cli_write_json(c, NULL, j, e) : -1;
}

static int print_text(const struct cli *c, const struct definition_file *f, struct err *e)
{
    for (size_t i = 0; i < f->n; i++) {
        AUTO_JSON_DOC struct json_doc d = {.root = NULL};
        AUTO_JSON cJSON *j = NULL;
        const cJSON *warning = NULL;
        char experiment[DIGEST_HEX_SIZE], policy[DIGEST_HEX_SIZE];

        json_doc_init_object(&d);
        if (add_warnings(&d, NULL, &f->gates[i], e) < 0)
            return -1;
        j = json_doc_take(&d, e);
        if (!j)
            return -1;
        digest_hex(&f->gates[i].experiment_digest, experiment);
        digest_hex(&f->gates[i].policy_digest, policy);
        /* Flushed and checked by main. */
        (void) fprintf(c->out, "%s\n  experiment %s\n  policy     %s\n", f->gates[i].gate,
                       experiment, policy);
        cJSON_ArrayForEach(warning, json_get(j, "warnings"))
            cli_say(c, "%s: warning: gate %s: %s", json_text(warning, "place", "?"),
                    f->gates[i].gate, json_text(warning, "text", ""));
    }
    return 0;
}

static int check(const struct cli *c, const struct cli_args *a, struct err *e)
{
    AUTO_DEFINITION_FILE struct definition_file f = {.n = 0};
    AUTO_FREE char *name = NULL;

    if (cli_has(a, "schema"))
        return print_schema(c, e);
    if (load(c, a, &f, &name, e) < 0)
        return -1;
    for (size_t i = 0; i < f.n; i++)
        if (audit_check_policy(&f.gates[i], e) < 0 || host_limits_check(&f.gates[i], e) < 0 ||
            check_plans(&f.gates[i], e) < 0)
            return -1;
    if (cli_has(a, "canonical"))
        return print_canonical(c, &f, cli_get(a, "gate"), e);
    if (cli_has(a, "json"))
        return print_json(c, &f, name, e);
    return print_text(c, &f, e);
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;

    return check(c, a, &e) < 0 ? cli_fail(c, &e) : EXIT_OK;
}

static const struct cli_option options[] = {
    {.name = "json", .help = "gates and digests as JSON"},
    {.name = "canonical", .help = "print a gate's definition.json"},
    {.name = "gate", .value = "NAME", .help = "which gate, for --canonical"},
    {.name = "schema", .help = "print the JSON Schema of cleanrun.yaml"},
};

const struct command command_check = {
    .name = "check",
    .summary = "check cleanrun.yaml and print its digests",
    .synopsis = "[FILE] [OPTION...]",
    .examples = "  cleanrun check\n  cleanrun check --schema > cleanrun.schema.json\n",
    .notes =
        "A changed experiment digest means that the next run is another experiment: "
        "NON_COMPARABLE with the baseline.\n"
        "A warning names what is allowed but keeps every run from being compared or accepted,\n"
        "such as a marker that phases.markers does not list, or a metric from ever regressing.\n"
        "Exit: 0 sound (warnings are told), 2 not (with file:line:column).\n",
    COMMAND_OPTIONS(options),
    .max_args = 1,
    .run = run,
};
