#include "tests/runner/release.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/file.h"
#include "base/json_in.h"
#include "evidence/manifest.h"
#include "experiment/acceptance.h"
#include "experiment/definition.h"
#include "experiment/facts.h"
#include "experiment/pointer.h"
#include "experiment/tree.h"
#include "runner/reference.h"
#include "tests/evidence/fixture.h"
#include "tests/lib/cases.h"
#include "tests/runner/run_command.h"

#define GATE "call-setup-2k"
#define REPORT_NAME "perf_call_setup_cps_pbx-media-server/2000.json"
#define HASH "\"b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9\""

static const char program[] = "the program of the canonical experiment\n";

static const char manifest_template[] =
    "{\"schema\":\"cleanrun-manifest/2\",\"project\":\"eisenzopf/rvoip\",\"gate\":\"" GATE
    "\",\"class\":\"ec2-m5-4xlarge\","
    "\"run\":\"\",\"mode\":\"clean\",\"status\":\"PASS\",\"attempt\":1,\"started_at\":\"\","
    "\"finished_at\":\"\","
    "\"exit_code\":0,\"signal\":null,\"report_status\":\"CAPTURED\",\"report\":\"" REPORT_NAME "\","
    "\"acceptance_status\":\"PASS\",\"audit_status\":\"NOT_APPLICABLE\",\"definition\":{},"
    "\"source\":{\"unchanged\":true,\"ignored\":0},"
    "\"executable\":{\"name\":\"perf_call_setup_cps\",\"size\":1,\"resolved\":\"cargo-messages\","
    "\"mapped\":[]},"
    "\"build\":{\"command\":[\"cargo\"],\"exit_code\":0,\"environment\":{},\"rejected_patterns\":[]"
    ",\"profile\":{}},"
    "\"environment\":{},"
    "\"machine\":{\"facts\":{},\"readings\":{}},\"interference\":{\"before\":{},\"during\":{}},"
    "\"ticket\":null,"
    "\"baseline\":null,\"conditioning\":{\"steps\":[],\"sha256\":" HASH
    "},\"phase_markers\":[],\"coverage\":[],"
    "\"control\":null,\"runner\":{\"version\":\"0.1.0\"},\"files\":[]}";

/* Git and the source block. */

static void make_repo(const struct release *r, bool dirty)
{
    struct command_result result;
    const char *const argv[] = {"fingerprint", r->repo, "--scheme", "rvoip-v1", "--json", NULL};

    assert_int_equal(mkdir(r->repo, 0755), 0);
    TEST_GIT(r->repo, "init", "-q", "-b", "main", ".");
    test_write_text(r->repo, "source.txt", "release source\n");
    TEST_GIT(r->repo, "add", ".");
    TEST_GIT(r->repo, "commit", "-q", "-m", "fixture");
    if (dirty)
        test_write_text(r->repo, "source.txt", "uncommitted\n");
    run_command(&command_fingerprint, argv, &result);
    if (result.code != 0)
        fail_msg("%s", result.err);
    test_write_text(r->dir, "start.json", result.out);
    command_result_fini(&result);
}

/* Files. */

cJSON *release_json(const char *dir, const char *name)
{
    char *path = test_join(dir, name);
    size_t len = 0;
    char *text = test_read_path(path, &len);
    cJSON *j = NULL;

    MUST(json_parse(text, len, NULL, &j, E));
    free(text);
    free(path);
    return j;
}

void release_write_json(const char *dir, const char *name, const cJSON *j)
{
    size_t len = 0;
    char *text = fixture_text(j, &len);

    test_write(dir, name, text, len);
    free(text);
}

void release_edit(const char *dir, const char *name, const char *pointer, const char *json)
{
    cJSON *j = release_json(dir, name);

    fixture_set(j, pointer, json);
    release_write_json(dir, name, j);
    json_free(j);
}

static void list_files(const char *run, cJSON *manifest)
{
    cJSON *files = NULL;
    int fd = -1;

    MUST(file_open_dir(run, &fd, E));
    MUST(manifest_files_from_dir(fd, NULL, NULL, &files, E));
    assert_int_equal(close(fd), 0);
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(manifest, "files", files));
}

void release_edit_manifest(const char *run, const char *pointer, const char *json)
{
    cJSON *m = release_json(run, MANIFEST_NAME);

    if (pointer)
        fixture_set(m, pointer, json);
    list_files(run, m);
    release_write_json(run, MANIFEST_NAME, m);
    json_free(m);
}

/* Runs. */

static void set_text(cJSON *document, const char *pointer, const char *text)
{
    char json[200];

    assert_true(snprintf(json, sizeof json, "\"%s\"", text) < (int) sizeof json);
    fixture_set(document, pointer, json);
}

static void set_digest(cJSON *document, const char *pointer, const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(d, hex);
    set_text(document, pointer, hex);
}

/* Everything that makes one run directory. */
struct maker {
    const struct release *release;
    const struct release_run *how;
    const char *dir;
    const struct definition *definition;
    cJSON *report;
    cJSON *manifest;
    size_t i; /* which run; the baseline is 9 */
};

static void write_report(struct maker *k)
{
    cJSON *start = release_json(k->release->dir, "start.json");
    const char *commit = json_get(start, "commit")->valuestring;
    char note[32];

    k->report = cases_read_json("tests/data/rvoip/reports/canonical-pass-2000.json");
    set_text(k->report, "/environment/git_commit",
             k->how->commit_in_report ? k->how->commit_in_report : commit);
    set_text(k->report, "/environment/source_fingerprint_sha256",
             json_get(start, "fingerprint")->valuestring);
    fixture_set(k->report, "/environment/cpu_model", "\"Xeon\"");
    fixture_set(k->report, "/environment/cpu_count_logical", "16");
    fixture_set(k->report, "/environment/cpu_count_physical", "8");
    fixture_set(k->report, "/environment/os", "\"Ubuntu 24.04\"");
    fixture_set(k->report, "/environment/total_ram_gb", "61.4");
    fixture_set(k->report, "/environment/rustc", "\"rustc 1.91.0\"");
    (void) snprintf(note, sizeof note, "run %zu", k->i);
    set_text(k->report, "/note", note);
    if (k->how->achieved > 0) {
        (void) snprintf(note, sizeof note, "%.9g", k->how->achieved);
        fixture_set(k->report, "/results/achieved_cps", note);
    }
    release_write_json(k->dir, RELEASE_REPORT, k->report);
    json_free(start);
}

static void write_definition(const struct maker *k)
{
    char *text = NULL;
    size_t len = 0;

    MUST(definition_write(k->definition, &text, &len, E));
    test_write(k->dir, "definition.json", text, len);
    free(text);
}

static void write_source(struct maker *k)
{
    char *path = test_join(k->release->dir, "start.json");
    size_t len = 0;
    char *said = test_read_path(path, &len);
    cJSON *block = cJSON_Parse(said);

    cJSON_DeleteItemFromObjectCaseSensitive(block, "ignored"); /* what only `fingerprint` says */
    char *text = cJSON_Print(block);

    assert_non_null(text);
    test_write_text(k->dir, "source-at-start.json", text);
    test_write_text(k->dir, "source-at-end.json", text);
    cJSON_Delete(block);
    free(said);
    fixture_set(k->manifest, "/source/start", text);
    fixture_set(k->manifest, "/source/end", text);
    free(text);
    free(path);
}

static void write_acceptance(struct maker *k)
{
    const struct acceptance_input in = {
        .definition = k->definition, .report = k->report, .report_path = REPORT_NAME};
    struct acceptance a = {.document = NULL};

    MUST(acceptance_evaluate(&in, &a, E));
    set_text(k->manifest, "/acceptance_status", acceptance_verdict_name(a.verdict));
    if (a.verdict == ACCEPTANCE_FAIL)
        set_text(k->manifest, "/status", "FAIL");
    release_write_json(k->dir, "acceptance.json", a.document);
    acceptance_fini(&a);
}

static void fill_manifest(struct maker *k)
{
    const char *bytes = k->how->executable ? k->how->executable : program;
    struct digest executable = digest_of(bytes, strlen(bytes));
    char text[64];

    k->manifest = NULL;
    MUST(json_parse(manifest_template, strlen(manifest_template), NULL, &k->manifest, E));
    (void) snprintf(text, sizeof text, "20260929T20%02zu00Z-%08zx", k->i + 1, k->i + 1);
    set_text(k->manifest, "/run", text);
    (void) snprintf(text, sizeof text, "2026-09-29T20:%02zu:00Z", k->i + 1);
    set_text(k->manifest, "/started_at", text);
    (void) snprintf(text, sizeof text, "2026-09-29T20:%02zu:40Z", k->i + 1);
    set_text(k->manifest, "/finished_at", text);
    set_digest(k->manifest, "/executable/sha256", &executable);
    set_digest(k->manifest, "/definition/experiment_sha256", &k->definition->experiment_digest);
    set_digest(k->manifest, "/definition/policy_sha256", &k->definition->policy_digest);
    for (size_t i = 0; i < facts_count; i++) {
        (void) snprintf(text, sizeof text, "/machine/facts/%s", facts_table[i].name);
        fixture_set(k->manifest, text, "\"as always\"");
    }
    if (k->how->status)
        set_text(k->manifest, "/status", k->how->status);
    if (k->how->mode)
        set_text(k->manifest, "/mode", k->how->mode);
}

static void snapshot(struct maker *k, struct reference *ref)
{
    char *path = test_join(k->release->baseline, MANIFEST_NAME);
    size_t len = 0;
    char *bytes = test_read_path(path, &len);
    struct digest digest = digest_of(bytes, len);
    char hex[DIGEST_HEX_SIZE];
    char *json = NULL;
    int fd = -1;

    digest_hex(&digest, hex);
    MUST(reference_open(k->release->baseline, hex, ref, E));
    MUST(file_open_dir(k->dir, &fd, E));
    MUST(reference_snapshot(ref, fd, E));
    assert_int_equal(close(fd), 0);
    assert_true(asprintf(&json,
                         "{\"id\":\"%s\",\"evidence_sha256\":" HASH ",\"manifest_sha256\":\"%s\"}",
                         ref->id, hex) > 0);
    fixture_set(k->manifest, "/baseline", json);
    free(json);
    free(bytes);
    free(path);
}

static void write_audit(struct maker *k)
{
    struct reference ref = {.present = false};
    struct tree tree;
    struct audit a = {.document = NULL};
    char *path = test_join(k->dir, "results");
    const char *run = json_get(k->manifest, "run")->valuestring;
    int fd = -1;

    snapshot(k, &ref);
    tree_init(&tree);
    MUST(file_open_dir(path, &fd, E));
    MUST(tree_load(&tree, fd, E));
    assert_int_equal(close(fd), 0);
    const struct audit_input in = {
        .policy = k->definition,
        .baseline = {.tree = &ref.tree,
                     .manifest = ref.manifest.document,
                     .definition = &ref.definition,
                     .id = ref.id,
                     .root = "baseline"},
        .current = {.tree = &tree,
                    .manifest = k->manifest,
                    .definition = k->definition,
                    .id = run,
                    .root = "."},
    };

    MUST(audit_run(&in, &a, E));
    release_write_json(k->dir, "audit.json", a.document);
    set_text(k->manifest, "/audit_status", verdict_word(a.verdict));
    audit_fini(&a);
    tree_fini(&tree);
    reference_close(&ref);
    free(path);
}

static void write_run(const struct release *r, const char *dir, size_t i, bool compared,
                      const struct release_run *how)
{
    char *yaml = test_path("examples/rvoip-sip/cleanrun.yaml");
    size_t len = 0;
    char *text = test_read_path(yaml, &len);
    struct definition_file file = {.gates = NULL};
    struct maker k = {.release = r, .how = how, .dir = dir, .i = i};
    const char *const clear[] = {"rm", "-rf", dir, NULL};
    struct test_run cleared;

    test_run(clear, NULL, NULL, NULL, &cleared);
    test_run_fini(&cleared);
    assert_int_equal(mkdir(dir, 0755), 0);
    MUST(definition_file_parse("cleanrun.yaml", text, len, &file, E));
    k.definition = definition_file_gate(&file, GATE);
    assert_non_null(k.definition);
    fill_manifest(&k);
    write_definition(&k);
    write_report(&k);
    write_source(&k);
    test_write_text(dir, "run.log", "measured\n");
    write_acceptance(&k);
    if (compared)
        write_audit(&k);
    list_files(dir, k.manifest);
    release_write_json(dir, MANIFEST_NAME, k.manifest);
    json_free(k.manifest);
    cJSON_Delete(k.report);
    definition_file_fini(&file);
    free(text);
    free(yaml);
}

void release_write_run(const struct release *r, size_t i, bool compared,
                       const struct release_run *how)
{
    write_run(r, r->runs[i], i, compared, how);
}

/* The whole. */

static void name_parts(struct release *r)
{
    r->repo = test_join(r->dir, "repo");
    r->executable = test_join(r->dir, "build/perf_call_setup_cps");
    r->start = test_join(r->dir, "start.json");
    r->out = test_join(r->dir, "packages/release");
    r->baseline = test_join(r->dir, "reviewed");
    for (size_t i = 0; i < 3; i++) {
        char name[16];

        (void) snprintf(name, sizeof name, "measured-%zu", i + 1);
        r->runs[i] = test_join(r->dir, name);
    }
}

void release_new(struct release *r, bool dirty, bool compared)
{
    const struct release_run plain = {.status = NULL};
    char *packages;

    *r = (struct release){.dir = test_dir_new()};
    name_parts(r);
    packages = test_join(r->dir, "packages");
    assert_int_equal(mkdir(packages, 0755), 0);
    free(packages);
    test_write_text(r->dir, "build/perf_call_setup_cps", program);
    make_repo(r, dirty);
    write_run(r, r->baseline, 9, false, &plain);
    release_edit_manifest(r->baseline, "/started_at", "\"2026-09-28T20:10:00Z\"");
    release_edit_manifest(r->baseline, "/run", "\"20260928T201000Z-0000000a\"");
    for (size_t i = 0; i < 3; i++)
        write_run(r, r->runs[i], i, compared, &plain);
}

void release_copy(const struct release *from, struct release *r)
{
    char *source = test_join(from->dir, ".");
    const char *argv[] = {"cp", "-a", source, NULL, NULL};
    struct test_run copied;

    *r = (struct release){.dir = test_dir_new()};
    name_parts(r);
    argv[3] = r->dir;
    test_run(argv, NULL, NULL, NULL, &copied);
    assert_int_equal(copied.code, 0);
    test_run_fini(&copied);
    free(source);
}

void release_free(struct release *r)
{
    const char *const argv[] = {"chmod", "-R", "u+w", r->dir, NULL};
    struct test_run opened;

    if (r->dir) {
        test_run(argv, NULL, NULL, NULL, &opened); /* packages are read-only */
        test_run_fini(&opened);
    }
    test_dir_free(r->dir);
    free(r->repo);
    free(r->executable);
    free(r->start);
    free(r->out);
    free(r->baseline);
    for (size_t i = 0; i < 3; i++)
        free(r->runs[i]);
    *r = (struct release){.dir = NULL};
}
