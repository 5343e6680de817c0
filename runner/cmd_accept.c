/* cleanrun accept: one report against the absolute checks of its gate. */
#include <stdlib.h>
#include <string.h>

#include "audit/verdict.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/plain.h"
#include "experiment/acceptance.h"
#include "experiment/pointer.h"
#include "runner/commands.h"
#include "runner/definition_load.h"
#include "runner/mistaken.h"

#define SAMPLES_NAME "process.csv"

struct session {
    struct definition_source definition;
    cJSON *report;
    char *samples; /* NULL: none */
    size_t samples_len;
    cJSON *manifest; /* NULL: none */
    struct acceptance acceptance;
};

static void session_fini(struct session *s)
{
    definition_source_fini(&s->definition);
    json_free(s->report);
    free(s->samples);
    json_free(s->manifest);
    acceptance_fini(&s->acceptance);
}

static int join(struct buf *out, const char *dir, const char *name, struct err *e)
{
    buf_clear(out);
    buf_printf(out, "%s/%s", dir, name);
    return buf_check(out, e);
}

/* "<run directory>" of a report that lies at results/<scenario>/<point>.json, relative to the
 * report. */
static char *run_directory(const char *report)
{
    const char *slash = strrchr(report, '/');
    AUTO_BUF struct buf out = {0};
    size_t len = 0;

    buf_init(&out, LIMIT_KIB(8));
    if (slash)
        buf_put(&out, report, (size_t) (slash - report) + 1);
    buf_puts(&out, "../..");
    return buf_take(&out, &len);
}

/* An absent file is none; anything else that can't be read is a failure. */
static int read_optional(const char *path, size_t max, char **out, size_t *out_len, struct err *e)
{
    struct err why = ERR_INIT;

    if (file_read(path, max, out, out_len, &why) == 0 || why.kind == ERR_NOTFOUND)
        return 0;
    return err_set(e, why.kind, why.code, "%s", why.text);
}

/* The runner's own samples and markers of a definition that derives a section from them. */
static int load_samples(const struct cli_args *a, struct session *s, struct err *e)
{
    const char *given = cli_get(a, "samples");
    AUTO_FREE char *run = run_directory(a->args[0]);
    AUTO_BUF struct buf path = {0};
    AUTO_FREE char *manifest = NULL;
    size_t len = 0;

    if (!pointer_get(s->definition.chosen->experiment, "/sampling/into"))
        return given ? err_set(e, ERR_USAGE, "accept.samples",
                               "this gate's reports carry their own samples")
                     : 0;
    if (!run)
        return err_memory(e, "accept.memory");
    buf_init(&path, LIMIT_KIB(8));
    if (given) {
        if (join(&path, given, SAMPLES_NAME, e) < 0 ||
            file_read(path.data, LIMIT_SAMPLES_FILE, &s->samples, &s->samples_len, e) < 0)
            return -1;
    } else if (join(&path, run, "samples/" SAMPLES_NAME, e) < 0 ||
               read_optional(path.data, LIMIT_SAMPLES_FILE, &s->samples, &s->samples_len, e) < 0) {
        return -1;
    }
    if (!s->samples)
        return 0;
    if (join(&path, run, "manifest.json", e) < 0 ||
        read_optional(path.data, LIMIT_JSON_DOCUMENT, &manifest, &len, e) < 0)
        return -1;
    return manifest ? json_parse(manifest, len, NULL, &s->manifest, e) : 0;
}

static int load(const struct cli_args *a, struct session *s, struct err *e)
{
    static const struct json_limits limits = {.max_bytes = LIMIT_REPORT};
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;

    if (definition_load(cli_get(a, "definition"), cli_get(a, "gate"), &s->definition, e) < 0)
        return -1;
    if (file_read(a->args[0], LIMIT_REPORT, &bytes, &len, e) < 0)
        return mistaken_run(a->args[0], e);
    if (json_parse(bytes, len, &limits, &s->report, e) < 0)
        return err_wrap(e, "%s", a->args[0]);
    return load_samples(a, s, e);
}

static int evaluate(const struct cli_args *a, struct session *s, struct err *e)
{
    struct acceptance_input in = {.definition = s->definition.chosen,
                                  .report = s->report,
                                  .report_path = a->args[0],
                                  .samples_csv = s->samples,
                                  .samples_len = s->samples_len,
                                  .phase_markers = json_get(s->manifest, "phase_markers")};

    return acceptance_evaluate(&in, &s->acceptance, e);
}

/* main flushes and checks the stream. */
static void summarise(FILE *to, const struct acceptance *acceptance)
{
    const cJSON *check = NULL;
    size_t failed = 0;
    size_t n = 0;

    cJSON_ArrayForEach(check, json_get(acceptance->document, "checks")) {
        n++;
        failed += cJSON_IsTrue(json_get(check, "passed")) ? 0 : 1;
    }
    plain_line(to, "%s  %zu of %zu check%s failed",
               acceptance->verdict == ACCEPTANCE_PASS ? "PASS" : "FAIL", failed, n,
               n == 1 ? "" : "s");
    cJSON_ArrayForEach(check, json_get(acceptance->document, "checks")) {
        AUTO_BUF struct buf words = {.data = NULL};

        if (cJSON_IsTrue(json_get(check, "passed")))
            continue;
        buf_init(&words, LIMIT_KIB(4));
        acceptance_put_check(&words, check);
        plain_line(to, "  %s", words.data ? words.data : "?");
    }
}

static int run(struct cli *c, const struct cli_args *a)
{
    const char *json = cli_get(a, "json");
    bool to_stdout = json && strcmp(json, "-") == 0;
    struct session s = {0};
    struct err e = ERR_INIT;
    int code = EXIT_OK;

    if (load(a, &s, &e) < 0 || evaluate(a, &s, &e) < 0 ||
        (json && cli_write_json(c, json, s.acceptance.document, &e) < 0)) {
        code = cli_fail(c, &e);
    } else {
        code = s.acceptance.verdict == ACCEPTANCE_PASS ? EXIT_OK : EXIT_FAIL;
        if (!c->quiet)
            summarise(to_stdout ? c->err : c->out, &s.acceptance);
    }
    session_fini(&s);
    return code;
}

static const struct cli_option options[] = {
    {.name = "definition",
     .value = "FILE",
     .help = "cleanrun.yaml, or a definition.json (default: cleanrun.yaml)"},
    {.name = "gate",
     .value = "GATE",
     .help = "which gate of the definition (default: its only one)"},
    {.name = "samples",
     .value = "DIR",
     .help = "the runner's samples (default: those of the report's run directory)"},
    {.name = "json", .value = "FILE|-", .help = "write cleanrun-acceptance/1"},
};

const struct command command_accept = {
    .name = "accept",
    .summary = "check one report against its gate's absolute limits",
    .synopsis = "--definition FILE --gate GATE REPORT [--samples DIR] [--json FILE|-]",
    .examples =
        "  cleanrun accept --definition cleanrun.yaml --gate call-setup results/s/2000.json\n",
    .notes = "Every check is made and listed, none is skipped because another failed.\n"
             "Exit: 0 PASS, 4 FAIL, 2 the report could not be read.\n",
    COMMAND_OPTIONS(options),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
