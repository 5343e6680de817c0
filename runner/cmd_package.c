/* cleanrun package: several clean runs of one source as one piece of evidence; cleanrun package
 * verify. */
#include <stdlib.h>
#include <string.h>

#include "audit/verdict.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/plain.h"
#include "evidence/keyring.h"
#include "evidence/sign.h"
#include "runner/commands.h"
#include "runner/definition_load.h"
#include "runner/git.h"
#include "runner/keys.h"
#include "runner/runset.h"
#include "runner/runset_pack.h"
#include "runner/runset_verify.h"
#include "runner/source.h"

#define DEFAULT_COUNT 3

static int read_count(const struct cli_args *a, size_t otherwise, size_t *out, struct err *e)
{
    const char *text = cli_get(a, "count");
    uint64_t n = otherwise;

    if (text && (!num_parse_u64(text, strlen(text), RUNSET_MAX, &n) || n == 0))
        return err_set(e, ERR_USAGE, "package.count", "--count must be a number from 1 to %d",
                       RUNSET_MAX);
    *out = (size_t) n;
    return 0;
}

static int load_start(const struct cli_args *a, struct runset *s, struct err *e)
{
    const char *path = cli_get(a, "source-at-start");
    AUTO_FREE char *bytes = NULL;
    AUTO_JSON cJSON *block = NULL;
    size_t len = 0;

    if (!path)
        return err_set(e, ERR_USAGE, "package.start",
                       "--source-at-start FILE is needed: what cleanrun fingerprint --json wrote "
                       "before the first run");
    if (file_read(path, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0)
        return -1;
    if (json_parse(bytes, len, NULL, &block, e) < 0 || runset_set_start(s, block, e) < 0)
        return err_wrap(e, "%.200s", path);
    return 0;
}

/* Does the work tree's repository know the commit? */
static bool knows_commit(const struct git *g, const char *commit)
{
    const char *const args[] = {"rev-parse",        "--verify", "--quiet",
                                "--end-of-options", commit,     NULL};
    const char *const type[] = {"cat-file", "commit", commit, NULL};
    AUTO_GIT_OUTPUT struct git_output name = {.data = NULL};
    AUTO_GIT_OUTPUT struct git_output object = {.data = NULL};
    struct err ignored = ERR_INIT;

    return git_run(g, args, true, &name, &ignored) == 0 && name.code == 0 &&
           git_run(g, type, false, &object, &ignored) == 0;
}

/* The source as it is now: of --source, or of the work tree we stand in when that is the project's.
 */
static int take_now(const struct cli *c, const struct cli_args *a, struct runset *s, struct err *e)
{
    const char *given = cli_get(a, "source");
    const cJSON *commit = json_get(s->start, "commit");
    const cJSON *scheme = json_get(s->start, "scheme");
    AUTO_GIT struct git g = {.root_fd = -1};
    AUTO_SOURCE struct source now = {.scheme = NULL};
    AUTO_JSON cJSON *block = NULL;
    struct err why = ERR_INIT;

    if (git_open(given ? given : c->directory, cli_env(c, "PATH"), c->environment, &g, &why) < 0)
        return given ? err_set(e, why.kind, why.code, "%s", why.text) : 0;
    if (!given && !knows_commit(&g, commit->valuestring))
        return 0;
    if (source_take(&g, scheme->valuestring, &now, e) < 0 || source_to_json(&now, &block, e) < 0)
        return -1;
    return runset_set_now(s, block, e);
}

static int load_definition(const struct cli_args *a, struct runset *s, struct err *e)
{
    AUTO_DEFINITION_SOURCE struct definition_source d = {.chosen = NULL};
    const char *path = cli_get(a, "definition");

    if (!path)
        return 0;
    if (definition_load(path, s->runs[0].manifest.gate, &d, e) < 0)
        return -1;
    return runset_set_definition(s, d.chosen, e);
}

static int load_executable(const struct cli_args *a, struct runset *s, struct err *e)
{
    const char *path = cli_get(a, "executable");
    const char *slash = path ? strrchr(path, '/') : NULL;
    AUTO_FREE char *dir = slash ? strndup(path, (size_t) (slash - path) + 1) : strdup(".");
    AUTO_FD int dirfd = -1;
    AUTO_FD int fd = -1;
    uint64_t size = 0;
    struct digest digest;

    if (!path)
        return 0;
    if (!dir)
        return err_memory(e, "package.memory");
    if (file_open_dir(dir, &dirfd, e) < 0 ||
        file_open_at(dirfd, slash ? slash + 1 : path, &fd, &size, e) < 0 ||
        digest_of_fd(fd, &digest, &size, e) < 0)
        return err_wrap(e, "--executable");
    return runset_set_executable(s, &digest, size, e);
}

/* What the command found, for --json. */
struct outcome {
    const char *out; /* the package, NULL when there is none */
    const char *status;
    char index[DIGEST_HEX_SIZE];
    const cJSON *shortcomings;
    const char *error; /* why there is no package */
};

static int write_outcome(const struct cli *c, const char *target, const struct outcome *o,
                         struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = NULL};
    AUTO_JSON cJSON *j = NULL;

    json_doc_init_object(&d);
    json_add_string(&d, NULL, "schema", "cleanrun-package-result/1");
    json_add_string(&d, NULL, "verdict", o->out ? "PACKAGED" : "REFUSED");
    json_add_string(&d, NULL, "package", o->out);
    json_add_string(&d, NULL, "status", o->status);
    json_add_string(&d, NULL, "index_sha256", o->out ? o->index : NULL);
    if (o->shortcomings)
        json_add_copy(&d, NULL, "shortcomings", o->shortcomings);
    else
        (void) json_add_array(&d, NULL, "shortcomings");
    json_add_string(&d, NULL, "error", o->error);
    j = json_doc_take(&d, e);
    return j ? cli_write_json(c, target, j, e) : -1;
}

static void say_shortcomings(const struct cli *c, const cJSON *list)
{
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, list) {
        const char *run = json_text(row, "run", "");

        cli_say(c, "  %s: %s%s%s", json_text(row, "code", ""), run, run[0] ? ": " : "",
                json_text(row, "text", ""));
    }
}

static int check_eligible(const struct cli *c, const struct cli_args *a, const struct runset *s,
                          struct err *e)
{
    const cJSON *first = s->shortcomings->child;

    if (!first)
        return 0;
    say_shortcomings(c, s->shortcomings);
    if (cli_has(a, "even-if-failed"))
        return 0;
    return err_set(e, ERR_TRUST, "package.refused",
                   "%s%s%s (--even-if-failed packages what there is, as FAIL)",
                   json_text(first, "run", ""), json_text(first, "run", "")[0] ? ": " : "",
                   json_text(first, "text", ""));
}

static int make(struct cli *c, const struct cli_args *a, struct runset *s, struct outcome *o,
                struct err *e)
{
    AUTO_RUNSET_STAGE struct runset_stage stage = {.open = false};
    AUTO_PRIVATE_KEY struct private_key *key = NULL;
    char created[CLOCK_RFC3339_SIZE];
    struct runset_frame frame = {.created_at = created};
    struct digest index;
    const char *out = cli_get(a, "out");

    if (!out)
        return err_set(e, ERR_USAGE, "package.out", "--out DIR is needed");
    if (read_count(a, DEFAULT_COUNT, &frame.required, e) < 0)
        return -1;
    if (a->n_args != frame.required && !cli_has(a, "even-if-failed"))
        return err_set(e, ERR_USAGE, "package.count",
                       "%zu run directories were named, --count is %zu", a->n_args, frame.required);
    if (cli_get(a, "key") && private_key_load(cli_get(a, "key"), &key, e) < 0) {
        e->kind = ERR_USAGE; /* the key is the caller's, not evidence that is broken */
        return -1;
    }
    if (runset_stage_open(out, &stage, e) < 0 || runset_open(a->args, a->n_args, s, e) < 0 ||
        load_start(a, s, e) < 0 || load_definition(a, s, e) < 0 || take_now(c, a, s, e) < 0 ||
        runset_judge(s, frame.required, e) < 0 || check_eligible(c, a, s, e) < 0 ||
        load_executable(a, s, e) < 0)
        return -1;
    clock_rfc3339(clock_realtime_us(), true, created); /* as fine as the runs' own ends */
    if (runset_stage_copy(&stage, s, cli_get(a, "executable"), e) < 0 ||
        runset_stage_finish(&stage, s, &frame, key, &index, e) < 0)
        return -1;
    digest_hex(&index, o->index);
    o->out = out;
    o->status = s->shortcomings->child ? "FAIL" : "PASS";
    return 0;
}

static void tell(const struct cli *c, const struct cli_args *a, const struct runset *s,
                 const struct outcome *o)
{
    (void) fprintf(c->out, "%s  %s/" RUNSET_INDEX "\n", o->index,
                   o->out); /* main flushes and checks */
    cli_say(c, "%zu runs packaged: %s", s->n, o->status);
    if (!s->now)
        cli_say(c, "not recorded: the source as it is now (run it inside the source tree, or give "
                   "--source DIR)");
    if (!s->has_executable)
        cli_say(c, "not recorded: the executable (give --executable FILE)");
    if (!cli_get(a, "key"))
        cli_say(c, "not signed: anyone who can write the directory can write another index (give "
                   "--key FILE)");
}

static int run(struct cli *c, const struct cli_args *a)
{
    AUTO_RUNSET struct runset s = {.runs = NULL};
    struct outcome o = {.out = NULL};
    struct err e = ERR_INIT;
    struct err failed = ERR_INIT;
    const char *json = cli_has(a, "json") ? cli_get(a, "json") : NULL;
    const char *target = json && json[0] ? json : "-";
    int rc = make(c, a, &s, &o, &e);

    o.shortcomings = s.shortcomings;
    o.error = rc < 0 ? e.text : NULL;
    if (json && (rc == 0 || e.kind == ERR_TRUST) && write_outcome(c, target, &o, &failed) < 0)
        return cli_fail(c, &failed);
    if (rc < 0)
        return cli_fail(c, &e);
    if (!json || strcmp(target, "-") != 0)
        tell(c, a, &s, &o);
    return EXIT_OK;
}

static const struct cli_option options[] = {
    {.name = "count", .value = "N", .help = "how many runs there must be (default 3)"},
    {.name = "source-at-start",
     .value = "FILE",
     .help = "what cleanrun fingerprint --json wrote before the first run"},
    {.name = "out", .value = "DIR", .help = "the package to make; must not exist"},
    {.name = "executable",
     .value = "FILE",
     .help = "the executable that was measured, to go into the package"},
    {.name = "source",
     .value = "DIR",
     .help = "the source tree as it is now (default: the one we are in)"},
    {.name = "definition",
     .value = "FILE",
     .help = "today's rules (default: the runs' own definition)"},
    {.name = "key",
     .value = "FILE",
     .help = "sign the index with this private key (PEM, mode 0600)"},
    {.name = "even-if-failed",
     .help = "package runs that lack something as well; the index then says FAIL, and why"},
    {.name = "json",
     .value = "FILE|-",
     .help = "write cleanrun-package-result/1",
     .optional = true},
};

const struct command command_package = {
    .name = "package",
    .summary = "pack several clean runs of one source as release evidence",
    .synopsis =
        "RUN_DIR… --source-at-start FILE --out DIR [--count N] [--executable FILE] [--source DIR]\n"
        "                        [--definition FILE] [--key FILE] [--even-if-failed] "
        "[--json[=FILE|-]]",
    .examples = "  cleanrun fingerprint --json >start.json\n"
                "  cleanrun run call-setup --out run-1      (and run-2, run-3)\n"
                "  cleanrun package run-1 run-2 run-3 --source-at-start start.json --executable "
                "build/app --out evidence\n",
    .notes = "The runs must be distinct, given in the order in which they were made, clean, PASS, "
             "of one source (that of the\n"
             "start block, and unchanged until now), one executable, one definition, one machine "
             "and one baseline. Every\n"
             "file is hashed again, acceptance and audit are computed again. The copy is read "
             "again after it was made,\n"
             "everything is made read-only, and the package appears at once or not at all.\n"
             "Exit: 0 packaged, 5 refused with every reason named, 2 usage, or something could not "
             "be read or written.\n",
    COMMAND_OPTIONS(options),
    .min_args = 1,
    .max_args = RUNSET_MAX,
    .run = run,
};

/* Verification. */

static void print_stages(const struct cli *c, const cJSON *document)
{
    const cJSON *s = NULL;

    cJSON_ArrayForEach(s, json_get(document, "stages")) {
        const char *result = json_text(s, "result", "");

        plain_line(c->out, "%s %-10s %s", /* main flushes and checks */
                   strcmp(result, "ok") == 0       ? "\u2713"
                   : strcmp(result, "failed") == 0 ? "\u2717"
                                                   : "\u00b7",
                   json_text(s, "name", ""),
                   strcmp(result, "not_run") == 0 ? "not run" : json_text(s, "detail", ""));
    }
}

static void print_verdict(const struct cli *c, const struct runset_verdict *v)
{
    const cJSON *row = NULL;

    print_stages(c, v->document);
    (void) fprintf(c->out, "%s",
                   json_text(v->document, "verdict", "")); /* main flushes and checks */
    if (v->valid)
        (void) fprintf(c->out, ", the runs: %s",
                       json_text(v->document, "status", "")); /* as above */
    (void) fputc('\n', c->out);                               /* as above */
    say_shortcomings(c, json_get(v->document, "shortcomings"));
    cJSON_ArrayForEach(row, json_get(v->document, "unmet")) {
        cli_say(c, "required, but not so: %s", row->valuestring);
    }
}

static int verify(struct cli *c, const struct cli_args *a, int *out_exit, struct err *e)
{
    AUTO_KEYRING struct keyring *ring = keyring_new();
    AUTO_RUNSET_VERDICT struct runset_verdict v = {.document = NULL};
    struct runset_demand demand = {.clean = cli_has(a, "require-clean"),
                                   .unchanged_source = cli_has(a, "require-unchanged-source"),
                                   .no_skips = cli_has(a, "require-no-skips"),
                                   .pass = cli_has(a, "require-pass")};
    const char *json = cli_has(a, "json") ? cli_get(a, "json") : NULL;
    const char *target = json && json[0] ? json : "-";

    if (!ring)
        return err_memory(e, "package.memory");
    if (read_count(a, 0, &demand.count, e) < 0 || keys_load(a, "key", ring, e) < 0)
        return -1;
    if (runset_verify(a->args[0], cli_has(a, "key") ? ring : NULL, &demand, &v, e) < 0) {
        return -1;
    }
    if (json && cli_write_json(c, target, v.document, e) < 0)
        return -1;
    if (!json || strcmp(target, "-") != 0)
        print_verdict(c, &v);
    *out_exit = !v.valid ? EXIT_INVALID : v.eligible ? EXIT_OK : EXIT_FAIL;
    return 0;
}

static int run_verify(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;
    int code = EXIT_INVALID;

    return verify(c, a, &code, &e) < 0 ? cli_fail(c, &e) : code;
}

static const struct cli_option verify_options[] = {
    {.name = "key",
     .value = "FILE",
     .help = "a trusted public key (PEM): the index must be signed by one",
     .repeats = true},
    {.name = "require-clean", .help = "also demand: no run had uncommitted changes"},
    {.name = "require-unchanged-source",
     .help = "also demand: one source from the start to the end"},
    {.name = "require-no-skips", .help = "also demand: nothing is absent"},
    {.name = "require-pass", .help = "also demand: the runs lack nothing"},
    {.name = "count", .value = "N", .help = "also demand: exactly so many runs"},
    {.name = "json",
     .value = "FILE|-",
     .help = "write cleanrun-package-verify/1",
     .optional = true},
};

const struct command command_package_verify = {
    .name = "package verify",
    .summary = "check a package of runs from its directory alone",
    .synopsis = "DIR [--key PUB.pem] [--require-clean] [--require-unchanged-source]\n"
                "                        [--require-no-skips] [--require-pass] [--count N] "
                "[--json[=FILE|-]]",
    .examples = "  cleanrun package verify evidence --key pub.pem --require-pass --require-clean "
                "--count 3\n",
    .notes = "Every section of index.json is made again from the files and compared whole, so that "
             "a rewritten index with a\n"
             "fresh checksum is caught. Only a signature says who made it. Whether the runs pass "
             "is another question than\n"
             "whether the package is whole: the --require options ask it.\n"
             "Exit: 0 valid, 5 INVALID, 4 valid but a demand is not met, 2 the check could not be "
             "made.\n",
    COMMAND_OPTIONS(verify_options),
    .min_args = 1,
    .max_args = 1,
    .run = run_verify,
};
