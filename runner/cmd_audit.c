/* cleanrun audit: two result trees or run directories compared offline. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/advice.h"
#include "audit/audit.h"
#include "audit/baseline.h"
#include "audit/comparison_text.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/plain.h"
#include "evidence/manifest.h"
#include "runner/commands.h"
#include "runner/definition_load.h"
#include "runner/mistaken.h"
#include "runner/rundir.h"

#define RESULTS "results"

/* One side as it stands on disk. */
struct loaded {
    struct tree tree;
    struct manifest manifest;
    struct definition definition;
    bool is_run; /* a run directory: manifest and definition are set */
};

/* Evidence that is broken: an answer (exit 5), not a failure to answer. code NULL: nothing broken.
 */
struct broken {
    const char *code;
    char text[ERR_TEXT_MAX];
};

struct session {
    struct definition_source definition;
    struct loaded baseline;
    struct loaded current;
    struct baseline reviewed;
    bool has_reviewed;
    char reviewed_hex[DIGEST_HEX_SIZE];
    struct broken broken;
};

static void loaded_fini(struct loaded *l)
{
    tree_fini(&l->tree);
    manifest_fini(&l->manifest);
    definition_fini(&l->definition);
}

static void session_fini(struct session *s)
{
    definition_source_fini(&s->definition);
    loaded_fini(&s->baseline);
    loaded_fini(&s->current);
    baseline_fini(&s->reviewed);
}

static void set_broken(struct broken *b, const char *code, const char *where, const char *text)
{
    if (b->code)
        return;
    b->code = code;
    (void) snprintf(b->text, sizeof b->text, "%.200s: %.300s", where, text); /* cut is fine */
}

/* The members of a run directory must be the bytes that its manifest lists. */
static void check_members(const struct loaded *l, const char *where, struct broken *b)
{
    size_t prefix = sizeof RESULTS;

    for (size_t i = 0; i < l->manifest.n_files; i++) {
        const struct manifest_file *f = &l->manifest.files[i];
        const struct tree_file *t = NULL;
        size_t len = strlen(f->path);

        if (strncmp(f->path, RESULTS "/", prefix) != 0 || len < 5 ||
            strcmp(f->path + len - 5, ".json") != 0)
            continue;
        t = tree_find(&l->tree, f->path + prefix);
        if (!t)
            set_broken(b, "IN-MANIFEST", where, "a report that the manifest lists is missing");
        else if (t->size != f->size || !digest_equal(&t->digest, &f->digest))
            set_broken(b, "IN-HASH", where, "a report is not the one that the manifest lists");
    }
    for (size_t i = 0; i < l->tree.n; i++) {
        char name[LIMIT_RELNAME * 3];
        int len = snprintf(name, sizeof name, RESULTS "/%s", l->tree.files[i].path);

        if (len < 0 || (size_t) len >= sizeof name || !manifest_find(&l->manifest, name))
            set_broken(b, "IN-MANIFEST", where,
                       "a report is there that the manifest does not list");
    }
}

static int load_run_definition(int dirfd, struct loaded *l, const char *where, struct broken *b,
                               struct err *e)
{
    const struct manifest_file *listed = manifest_find(&l->manifest, RUNDIR_DEFINITION);
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    struct digest digest;
    struct err why = ERR_INIT;

    if (!listed ||
        file_read_at(dirfd, RUNDIR_DEFINITION, LIMIT_JSON_DOCUMENT, &bytes, &len, &why) < 0) {
        set_broken(b, "IN-MANIFEST", where,
                   listed ? why.text : "the manifest lists no definition.json");
        return 0;
    }
    digest = digest_of(bytes, len);
    if (!digest_equal(&digest, &listed->digest)) {
        set_broken(b, "IN-HASH", where, "definition.json is not the one that the manifest lists");
        return 0;
    }
    if (definition_parse(bytes, len, &l->definition, &why) < 0) {
        if (why.kind == ERR_NOMEM)
            return err_set(e, why.kind, why.code, "%s", why.text);
        set_broken(b, "IN-MANIFEST", where, why.text);
        return 0;
    }
    if (!digest_equal(&l->definition.experiment_digest, &l->manifest.experiment_digest) ||
        !digest_equal(&l->definition.policy_digest, &l->manifest.policy_digest))
        set_broken(b, "IN-MANIFEST", where,
                   "definition.json has other digests than the manifest says");
    return 0;
}

static int load_results(int dirfd, struct loaded *l, struct err *e)
{
    AUTO_FD int results = -1;
    struct stat st;

    if (fstatat(dirfd, RESULTS, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 0; /* a run that left nothing: its required reports are missing */
    if (file_open_dir_at(dirfd, RESULTS, &results, e) < 0)
        return -1;
    return tree_load(&l->tree, results, e);
}

static int load_run(int dirfd, struct loaded *l, const char *where, struct broken *b, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    struct err why = ERR_INIT;

    if (file_read_at(dirfd, MANIFEST_NAME, LIMIT_JSON_DOCUMENT, &bytes, &len, &why) < 0 ||
        manifest_parse(bytes, len, &l->manifest, &why) < 0) {
        if (why.kind == ERR_NOMEM || why.kind == ERR_SYS)
            return err_set(e, why.kind, why.code, "%s", why.text);
        set_broken(b, "IN-MANIFEST", where,
                   bytes && strstr(bytes, "comparison_paths")
                       ? "its manifest.json is a baseline manifest, not a run's: keep it outside "
                         "the directory and name "
                         "it with --baseline-manifest"
                       : why.text);
        return 0;
    }
    l->is_run = true;
    if (load_results(dirfd, l, e) < 0 || load_run_definition(dirfd, l, where, b, e) < 0)
        return -1;
    check_members(l, where, b);
    return 0;
}

/* A directory with a manifest.json is a run directory, any other is a result tree. */
static int load_side(const char *path, const char *where, struct loaded *l, struct broken *b,
                     struct err *e)
{
    AUTO_FD int dirfd = -1;
    struct stat st;

    tree_init(&l->tree);
    if (file_open_dir(path, &dirfd, e) < 0) {
        (void) mistaken_file(path, e); /* says more, or leaves it */
        return err_wrap(e, "%s", where);
    }
    if (fstatat(dirfd, MANIFEST_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return load_run(dirfd, l, where, b, e);
    if (tree_load(&l->tree, dirfd, e) < 0)
        return err_wrap(e, "%s", where);
    return 0;
}

static int verify_reviewed(struct session *s, const char *manifest_path, const char *baseline_path,
                           struct err *e)
{
    const char *slash = strrchr(manifest_path, '/');
    AUTO_FREE char *dir =
        slash ? strndup(manifest_path, (size_t) (slash - manifest_path) + 1) : strdup(".");
    struct baseline_manifest_place place = {.dirfd = -1, .name = slash ? slash + 1 : manifest_path};
    AUTO_FD int dirfd = -1;
    AUTO_FD int root = -1;
    AUTO_FD int results = -1;
    struct err why = ERR_INIT;

    if (!dir)
        return err_memory(e, "audit.memory");
    if (file_open_dir(dir, &dirfd, e) < 0 || file_open_dir(baseline_path, &root, e) < 0)
        return -1;
    if (s->baseline.is_run && file_open_dir_at(root, RESULTS, &results, e) < 0)
        return -1;
    place.dirfd = dirfd;
    if (baseline_verify_tree(&s->reviewed, s->baseline.is_run ? results : root, place, &why) == 0)
        return 0;
    if (why.kind != ERR_TRUST)
        return err_set(e, why.kind, why.code, "%s", why.text);
    set_broken(&s->broken, "IN-HASH", "baseline", why.text);
    return 0;
}

static int load_reviewed(struct session *s, const char *manifest_path, const char *baseline_path,
                         struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    struct err why = ERR_INIT;

    if (file_read(manifest_path, LIMIT_JSON_DOCUMENT, &bytes, &len, e) < 0)
        return -1;
    if (baseline_parse(bytes, len, true, &s->reviewed, &why) < 0) {
        if (why.kind != ERR_TRUST)
            return err_set(e, why.kind, why.code, "%s", why.text);
        set_broken(&s->broken, "IN-MANIFEST", "baseline manifest", why.text);
        return 0;
    }
    s->has_reviewed = true;
    digest_hex(&s->reviewed.digest, s->reviewed_hex);
    return s->reviewed.paths_only ? 0 : verify_reviewed(s, manifest_path, baseline_path, e);
}

/* The file that was named; without one, of two run directories the definition that was reviewed
 * with the baseline. */
static int load_definition(const struct cli *c, const struct cli_args *a, struct session *s,
                           struct err *e)
{
    const char *gate = cli_get(a, "gate");

    if (cli_get(a, "definition") || !s->baseline.definition.gate || !s->current.definition.gate)
        return definition_load(cli_get(a, "definition"), gate, &s->definition, e);
    if (gate && strcmp(gate, s->baseline.definition.gate) != 0)
        return err_set(e, ERR_USAGE, "audit.gate",
                       "the baseline was measured for gate %s, not %.80s",
                       s->baseline.definition.gate, gate);
    s->definition.chosen = &s->baseline.definition;
    cli_say(c, "judged by the baseline's own definition.json (--definition FILE takes another)");
    return 0;
}

static int load_all(const struct cli *c, const struct cli_args *a, struct session *s, struct err *e)
{
    const char *baseline = cli_get(a, "baseline");
    const char *current = cli_get(a, "current");
    const char *manifest = cli_get(a, "baseline-manifest");

    if (!baseline || !current)
        return err_set(e, ERR_USAGE, "audit.usage", "--baseline DIR and --current DIR are needed");
    if (cli_get(a, "definition") && load_definition(c, a, s, e) < 0)
        return -1;
    if (load_side(baseline, "baseline", &s->baseline, &s->broken, e) < 0 ||
        load_side(current, "current", &s->current, &s->broken, e) < 0)
        return -1;
    if (!cli_get(a, "definition") && load_definition(c, a, s, e) < 0)
        return -1;
    return manifest ? load_reviewed(s, manifest, baseline, e) : 0;
}

static struct audit_side side_of(const struct loaded *l, const char *root)
{
    return (struct audit_side){.tree = &l->tree,
                               .manifest = l->is_run ? l->manifest.document : NULL,
                               .definition =
                                   l->is_run && l->definition.gate ? &l->definition : NULL,
                               .root = root};
}

static int judge(const struct cli_args *a, const struct session *s, struct audit *out,
                 struct err *e)
{
    const cJSON *evidence =
        s->has_reviewed ? json_get(s->reviewed.document, "evidence_sha256") : NULL;
    struct audit_input in = {.policy = s->definition.chosen,
                             .baseline = side_of(&s->baseline, cli_get(a, "baseline")),
                             .current = side_of(&s->current, cli_get(a, "current"))};
    struct audit_refusal why = {.code = s->broken.code, .text = s->broken.text};

    in.baseline.legacy = !s->baseline.is_run;
    if (s->has_reviewed) {
        in.baseline.id = s->reviewed.id;
        in.baseline.evidence_sha256 = evidence ? evidence->valuestring : NULL;
        in.baseline_manifest = s->reviewed.document;
        in.baseline_manifest_sha256 = s->reviewed_hex;
    }
    if (s->broken.code)
        return audit_refuse(in.policy, &in.baseline, &in.current, &why, out, e);
    return audit_run(&in, out, e);
}

static void summarise_regression(FILE *to, const cJSON *row)
{
    AUTO_BUF struct buf words = {0};
    struct comparison_text t;

    buf_init(&words, LIMIT_KIB(64));
    comparison_text(row, true, &t);
    comparison_put(&words, &t);
    plain_line(to, "  %s: %s %s", json_text(row, "path", "?"), t.label,
               words.data ? words.data : "");
}

/* The registry's words, its command with the names of this audit. */
static void put_way_out(FILE *to, const cJSON *document, const char *code, const char *resolve)
{
    const cJSON *current = json_get(document, "current");
    const struct advice_names names = {
        .gate = json_text(document, "gate", NULL),
        .run = json_text(current, "run", NULL),
        .commit = json_text(current, "commit", NULL),
        .baseline_commit = json_text(json_get(document, "baseline"), "commit", NULL),
    };
    AUTO_BUF struct buf words = {0};

    buf_init(&words, LIMIT_KIB(4));
    advice_prose(&words, resolve, &names);
    plain_line(to, "  what ends %s: %s", code, words.data && !words.failed ? words.data : resolve);
}

/* What to read first, for people. main flushes and checks the stream. */
static void summarise(FILE *to, const struct audit *audit)
{
    const cJSON *row = NULL;
    const char *last = "";

    plain_line(to, "%s  gate %s, %.0f of %.0f comparisons made", verdict_word(audit->verdict),
               json_text(audit->document, "gate", "?"),
               json_get(audit->document, "made_comparisons")->valuedouble,
               json_get(audit->document, "expected_comparisons")->valuedouble);
    cJSON_ArrayForEach(row, json_get(audit->document, "comparisons")) {
        if (strcmp(json_text(row, "verdict", ""), "regression") == 0)
            summarise_regression(to, row);
    }
    cJSON_ArrayForEach(row, json_get(audit->document, "reasons")) {
        const char *path = json_text(row, "path", NULL);

        plain_line(to, "  %s %s%s%s", json_text(row, "code", "?"), path ? path : "",
                   path ? ": " : "", json_text(row, "text", ""));
    }
    cJSON_ArrayForEach(row, json_get(audit->document, "reasons")) {
        const char *code = json_text(row, "code", "");
        const struct reason_info *info = strcmp(code, last) != 0 ? reason_find(code) : NULL;

        if (info)
            put_way_out(to, audit->document, code, info->resolve);
        last = code;
    }
}

static bool is_stdout(const char *target)
{
    return target && strcmp(target, "-") == 0;
}

static int write_outputs(struct cli *c, const struct cli_args *a, const struct audit *audit,
                         struct err *e)
{
    const char *json = cli_get(a, "json");
    const char *md = cli_get(a, "md");
    AUTO_FREE char *text = NULL;
    size_t len = 0;

    if (is_stdout(json) && is_stdout(md))
        return err_set(e, ERR_USAGE, "audit.usage",
                       "only one of --json and --md can be standard output");
    if (json && cli_write_json(c, json, audit->document, e) < 0)
        return -1;
    if (md && (audit_markdown(audit->document, NULL, &text, &len, e) < 0 ||
               cli_write_text(c, md, text, len, e) < 0))
        return -1;
    if (!c->quiet)
        summarise(is_stdout(json) || is_stdout(md) ? c->err : c->out, audit);
    return 0;
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct session s = {0};
    struct audit audit = {0};
    struct err e = ERR_INIT;
    int code = EXIT_USAGE;

    if (load_all(c, a, &s, &e) < 0 || judge(a, &s, &audit, &e) < 0 ||
        write_outputs(c, a, &audit, &e) < 0)
        code = cli_fail(c, &e);
    else if (audit.verdict == VERDICT_REGRESSION && cli_has(a, "report-only"))
        code = EXIT_OK;
    else
        code = verdict_exit(audit.verdict);
    audit_fini(&audit);
    session_fini(&s);
    return code;
}

static const struct cli_option options[] = {
    {.name = "definition",
     .value = "FILE",
     .help = "cleanrun.yaml, or a definition.json (default: the baseline's, of two run "
             "directories; else cleanrun.yaml)"},
    {.name = "gate",
     .value = "GATE",
     .help = "which gate of the definition (default: its only one)"},
    {.name = "baseline", .value = "DIR", .help = "run directory or result tree to compare with"},
    {.name = "current", .value = "DIR", .help = "run directory or result tree that is judged"},
    {.name = "baseline-manifest",
     .value = "FILE",
     .help = "reviewed baseline manifest: verified, and its comparison paths are required"},
    {.name = "md", .value = "FILE", .help = "write the comparison as Markdown"},
    {.name = "json", .value = "FILE|-", .help = "write cleanrun-audit/1"},
    {.name = "report-only", .help = "a REGRESSION exits 0; a refusal never does"},
};

const struct command command_audit = {
    .name = "audit",
    .summary = "compare a run with a baseline, or say why not",
    .synopsis = "--baseline DIR --current DIR [--definition FILE] [--gate GATE] "
                "[--baseline-manifest FILE] [--md FILE] "
                "[--json FILE|-] [--report-only]",
    .examples = "  cleanrun audit --definition cleanrun.yaml --gate call-setup --baseline base "
                "--current run --json -\n",
    .notes =
        "A directory with a manifest.json is a run directory: its machine, mode, source and "
        "definition are compared\n"
        "as well. Any other directory is a result tree: only the reports' own identity counts.\n"
        "Exit: 0 OK, 1 REGRESSION, 3 NON_COMPARABLE, 5 INVALID, 2 the comparison could not be "
        "made.\n",
    COMMAND_OPTIONS(options),
    .min_args = 0,
    .max_args = 0,
    .run = run,
};
