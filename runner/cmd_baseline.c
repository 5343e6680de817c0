/* cleanrun baseline verify, baseline package: reviewed baselines on disk. */
#include <stdlib.h>
#include <string.h>

#include "audit/baseline.h"
#include "audit/verdict.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/plain.h"
#include "runner/commands.h"

#define BASELINE_CHECK_SCHEMA "cleanrun-baseline-check/1"

/* What was found, also when the baseline is broken: {schema, verdict, baseline_id|null, files,
 * package?, error|null}. */
static int write_json(const struct cli *c, const char *target, const struct baseline *b,
                      const char *package, const char *error, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {0};
    AUTO_JSON cJSON *root = NULL;
    char hex[DIGEST_HEX_SIZE];

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", BASELINE_CHECK_SCHEMA);
    json_add_string(&d, NULL, "verdict", error ? "INVALID" : "VALID");
    json_add_string(&d, NULL, "baseline_id", error ? NULL : b->id);
    json_add_int(&d, NULL, "files", (int64_t) b->n_files);
    if (!error) {
        digest_hex(&b->digest, hex);
        json_add_string(&d, NULL, "manifest_sha256", hex);
    }
    if (package)
        json_add_string(&d, NULL, "package", package);
    json_add_string(&d, NULL, "error", error);
    root = json_doc_take(&d, e);
    return root ? cli_write_json(c, target, root, e) : -1;
}

/* Tells the end of either command; `e` holds the failure when rc is negative. */
static int finish(struct cli *c, const struct cli_args *a, const struct baseline *b,
                  const char *verb, int rc, struct err *e)
{
    const char *json = cli_has(a, "json") ? cli_get(a, "json") : NULL;
    const char *target = json && json[0] ? json : "-";
    const char *package = cli_get(a, "out");
    struct err failed = ERR_INIT;

    if (rc < 0) {
        if (json && e->kind == ERR_TRUST && write_json(c, target, b, NULL, e->text, &failed) < 0)
            return cli_fail(c, &failed);
        return cli_fail(c, e);
    }
    if (json && write_json(c, target, b, package, NULL, &failed) < 0)
        return cli_fail(c, &failed);
    if (!json || strcmp(target, "-") != 0)
        plain_line(c->out, "performance regression baseline %s: %s (%zu files)", verb, b->id,
                   b->n_files); /* main flushes and checks */
    return EXIT_OK;
}

static int run_verify(struct cli *c, const struct cli_args *a)
{
    AUTO_BASELINE struct baseline b = {0};
    struct err e = ERR_INIT;
    int rc = baseline_verify(a->args[0], cli_get(a, "root"), &b, &e);

    return finish(c, a, &b, "verified", rc, &e);
}

static int run_package(struct cli *c, const struct cli_args *a)
{
    AUTO_BASELINE struct baseline b = {0};
    struct err e = ERR_INIT;
    const char *out = cli_get(a, "out");
    int rc = out ? baseline_package(a->args[0], cli_get(a, "root"), out, &b, &e)
                 : err_set(&e, ERR_USAGE, "baseline.usage", "--out DIR is needed");

    return finish(c, a, &b, "packaged", rc, &e);
}

static const struct cli_option verify_options[] = {
    {.name = "root",
     .value = "DIR",
     .help = "where the files are (default: perf-results beside the manifest, else its directory)"},
    {.name = "json",
     .value = "FILE|-",
     .help = "write cleanrun-baseline-check/1; --json alone is standard output",
     .optional = true},
};

const struct command command_baseline_verify = {
    .name = "baseline verify",
    .summary = "re-hash every file of a reviewed baseline",
    .synopsis = "MANIFEST [--root DIR] [--json[=FILE|-]]",
    .examples = "  cleanrun baseline verify perf-regression-baseline/manifest.json\n",
    .notes = "Every listed file must be there, a regular file, with its size and SHA-256, and no "
             "other file.\n"
             "Exit: 0 verified, 5 broken, 2 the check could not be made.\n",
    COMMAND_OPTIONS(verify_options),
    .min_args = 1,
    .max_args = 1,
    .run = run_verify,
};

static const struct cli_option package_options[] = {
    {.name = "out", .value = "DIR", .help = "where DIR/perf-regression-baseline appears"},
    {.name = "root",
     .value = "DIR",
     .help = "where the files are (default: perf-results beside the manifest, else its directory)"},
    {.name = "json",
     .value = "FILE|-",
     .help = "write cleanrun-baseline-check/1; --json alone is standard output",
     .optional = true},
};

const struct command command_baseline_package = {
    .name = "baseline package",
    .summary = "copy a reviewed baseline, verified on both ends",
    .synopsis = "MANIFEST --out DIR [--root DIR] [--json[=FILE|-]]",
    .examples =
        "  cleanrun baseline package baselines/20260929T034251Z/manifest.json --out release\n",
    .notes = "The package appears whole or not at all, and never replaces one that is there.\n"
             "Exit: 0 packaged, 5 broken, 2 it exists already or could not be written.\n",
    COMMAND_OPTIONS(package_options),
    .min_args = 1,
    .max_args = 1,
    .run = run_package,
};
