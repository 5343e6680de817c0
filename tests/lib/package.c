#include "tests/lib/package.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/jcs.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/text.h"
#include "evidence/attest.h"
#include "evidence/manifest.h"
#include "evidence/pack.h"
#include "evidence/seal.h"
#include "experiment/acceptance.h"
#include "experiment/definition.h"
#include "experiment/facts.h"
#include "experiment/pointer.h"
#include "experiment/resources.h"
#include "experiment/samples.h"
#include "experiment/tree.h"
#include "tests/lib/must.h"

#define TEXT_MAX LIMIT_MIB(4)
#define SOURCE_HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER_HASH "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define NO_STEPS                                                                                   \
    "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945" /* SHA-256 of "[]" */
#define DEFAULTS                                                                                   \
    "{\"PATH\":\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\",\"LANG\":"         \
    "\"C.UTF-8\",\"TZ\":\"UTC\",\"TMPDIR\":\"/tmp\"}"
#define RECORD "{\"defaults\":" DEFAULTS ",\"passed\":{},\"set\":{}}"
#define TREE "89abcdef0123456789abcdef0123456789abcdef"

static const char definition_yaml[] =
    "version: 1\n"
    "project: %s\n"
    "gates:\n"
    "  %s:\n"
    "    class: %s\n"
    "    build: {command: [make], executable: {from: path, path: kvcache}}\n"
    "    run: {command: ['%s'], report: " PACKAGE_REPORT "}\n"
    "    modes: {cpu: {command: [prof]}, timing: {command: [prof]}, memory: {command: [prof]}, "
    "boundary: {command: [prof]}}\n"
    "    identity: [{path: /load/capacity, require: required}]\n"
    "    accept: {limits: [{name: achieved rate, path: /results/rate, op: '>=', value: %.17g, "
    "unit: 1/s}]}\n"
    "    audit:\n"
    "      paths: {required: [" PACKAGE_REPORT "]}\n"
    "      metrics:\n"
    "        - {path: /results/probes, label: hash probes, unit: probes/op, worse: higher, "
    "tolerance_pct: %.17g, gated: true}\n"
    "        - {path: /results/rate, label: rate, unit: 1/s, worse: lower, tolerance_pct: 5, "
    "gated: false}\n";

/* What is being made. */
struct maker {
    struct package_options o;
    struct package *p;
    int fd; /* of the run directory */
    struct definition_file definitions;
    const struct definition *gate; /* one of them */
    cJSON *acceptance;
    cJSON *audit;
    struct tree tree;
    char baseline_id[64]; /* of the snapshot; empty: none */
    char baseline_manifest[DIGEST_HEX_SIZE];
    const char *acceptance_status, *audit_status, *status;
};

struct private_key *package_key_new(void)
{
    struct private_key *key = NULL;

    MUST(private_key_generate(&key, E));
    return key;
}

char *package_key_pem(const struct private_key *key)
{
    char *pem = NULL;

    MUST(public_key_write(private_key_public(key), &pem, E));
    return pem;
}

void package_run_id(char out[32])
{
    char stamp[CLOCK_RFC3339_SIZE];
    uint8_t bytes[4];
    char hex[9];

    MUST(random_bytes(bytes, sizeof bytes, E));
    text_hex(bytes, sizeof bytes, hex);
    clock_compact(clock_realtime_us(), stamp);
    assert_true(snprintf(out, 32, "%.16s-%.8s", stamp, hex) == 25);
}

static void set_defaults(struct maker *k)
{
    struct package_options *o = &k->o;

    o->project = o->project ? o->project : PACKAGE_PROJECT;
    o->gate = o->gate ? o->gate : PACKAGE_GATE;
    o->machine_class = o->machine_class ? o->machine_class : PACKAGE_CLASS;
    o->mode = o->mode ? o->mode : "clean";
    o->commit = o->commit ? o->commit : PACKAGE_COMMIT;
    o->probes = o->probes > 0 ? o->probes : 1.31;
    o->rate = o->rate > 0 ? o->rate : 50000;
    o->capacity = o->capacity ? o->capacity : 20000;
    o->tolerance_pct = o->tolerance_pct > 0 ? o->tolerance_pct : 1;
    o->min_rate = o->min_rate > 0 ? o->min_rate : 49000;
    o->command = o->command ? o->command : "{executable}";
    o->executable = o->executable ? o->executable : 1;
    o->fact = o->fact ? o->fact : "same";
    o->samples = o->samples ? o->samples : "t_ms,rss_kib\n0,4096\n100,4100\n200,4104\n";
    o->markers = o->markers ? o->markers : "[]";
    if (o->run)
        assert_true(snprintf(k->p->run, sizeof k->p->run, "%s", o->run) == 25);
    else
        package_run_id(k->p->run);
}

static void write_json(struct maker *k, const char *name, const cJSON *j)
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, TEXT_MAX);
    json_write(&b, j, JSON_PRETTY);
    MUST(buf_check(&b, E));
    test_write(k->p->run_dir, name, b.data, b.len);
}

static void write_definition(struct maker *k)
{
    AUTO_BUF struct buf yaml = {.data = NULL};
    AUTO_FREE char *text = NULL;
    size_t len = 0;

    buf_init(&yaml, TEXT_MAX);
    if (k->o.definition)
        buf_puts(&yaml, k->o.definition);
    else
        buf_printf(&yaml, definition_yaml, k->o.project, k->o.gate, k->o.machine_class,
                   k->o.command, k->o.min_rate, k->o.tolerance_pct);
    if (k->o.confirm)
        buf_printf(&yaml, "    confirm: %d\n", k->o.confirm);
    MUST(buf_check(&yaml, E));
    MUST(definition_file_parse("cleanrun.yaml", yaml.data, yaml.len, &k->definitions, E));
    k->gate = definition_file_gate(&k->definitions, k->o.gate);
    assert_non_null(k->gate);
    if (!k->o.report_name)
        k->o.report_name = pointer_get(k->gate->experiment, "/run/report")->valuestring;
    MUST(definition_write(k->gate, &text, &len, E));
    test_write(k->p->run_dir, "definition.json", text, len);
}

static void source_text(const struct maker *k, bool end, struct buf *out)
{
    const cJSON *scheme = pointer_get(k->gate->experiment, "/run/source_scheme");

    buf_printf(
        out,
        "{\"schema\":\"cleanrun-source/1\",\"scheme\":\"%s\",\"commit\":\"%s\",\"tree\":\"" TREE
        "\",\"parents\":[],\"dirty\":%s,\"fingerprint\":\"%s\",\"files\":3,\"untracked\":0}",
        scheme ? scheme->valuestring : "cleanrun-source/1", k->o.commit,
        k->o.dirty ? "true" : "false", end && k->o.source_changed ? OTHER_HASH : SOURCE_HASH);
}

static void write_file(struct maker *k, const char *name, const struct buf *b)
{
    MUST(buf_check(b, E));
    test_write(k->p->run_dir, name, b->data, b->len);
}

/* Printable bytes that differ from run to run and hardly compress. */
static void put_padding(struct buf *b, size_t len, const char *run)
{
    const struct digest d = digest_of(run, strlen(run));
    uint64_t state = 0;
    char piece[sizeof state];

    memcpy(&state, d.bytes, sizeof state);
    for (size_t i = 0; i < len; i += sizeof piece) {
        uint64_t bits =
            (test_random(&state) & UINT64_C(0x3f3f3f3f3f3f3f3f)) + UINT64_C(0x2020202020202020);

        memcpy(piece, &bits, sizeof piece);
        buf_put(b, piece, len - i < sizeof piece ? len - i : sizeof piece);
    }
}

static void put_facts(const struct maker *k, struct buf *b)
{
    for (size_t i = 0; i < facts_count; i++)
        buf_printf(b, "%s\"%s\":\"%s\"", i ? "," : "", facts_table[i].name, k->o.fact);
}

/* As long as the last sample or marker needs; a second at least. */
static int64_t lasted_ms(const struct maker *k)
{
    AUTO_SAMPLES struct samples samples = {.n = 0};
    AUTO_JSON cJSON *markers = NULL;
    const cJSON *marker = NULL;
    double last = 1000;

    MUST(samples_parse_csv(k->o.samples, strlen(k->o.samples), &samples, E));
    MUST(json_parse(k->o.markers, strlen(k->o.markers), NULL, &markers, E));
    for (size_t i = 0; i < samples.n; i++)
        last = (double) samples.t_ms[i] > last ? (double) samples.t_ms[i] : last;
    cJSON_ArrayForEach(marker, markers) {
        double at = json_get(marker, "elapsed_ms")->valuedouble;

        last = at > last ? at : last;
    }
    return (int64_t) last;
}

static void write_logs(struct maker *k)
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, TEXT_MAX + k->o.padding);
    source_text(k, false, &b);
    write_file(k, "source-at-start.json", &b);
    buf_clear(&b);
    source_text(k, true, &b);
    write_file(k, "source-at-end.json", &b);
    buf_clear(&b);
    buf_printf(&b, "run %s\n", k->p->run);
    put_padding(&b, k->o.padding, k->p->run);
    write_file(k, "run.log", &b);
    test_write_text(k->p->run_dir, "build.log", "built\n");
    test_write_text(k->p->run_dir, "build-messages.jsonl", "");
    test_write_text(k->p->run_dir, "environment.json",
                    k->o.build_only ? "{\"build\":" RECORD ",\"rejected_patterns\":[]}\n"
                                    : "{\"build\":" RECORD ",\"run\":" RECORD
                                      ",\"rejected_patterns\":[]}\n");
    buf_clear(&b);
    buf_puts(&b, "{\"facts\":{");
    put_facts(k, &b);
    buf_printf(&b, "},\"readings\":{},\"before\":{},\"during\":{},\"usage\":{\"wall_ms\":%lld}",
               (long long) lasted_ms(k));
    if (!k->o.faults_untold)
        buf_printf(&b, ",\"faults\":%d", k->o.faults);
    buf_puts(&b, "}\n");
    write_file(k, "host.json", &b);
}

/* The report's text with the section that a runner adds. */
static void put_derived(const struct maker *k, struct buf *out)
{
    AUTO_SAMPLES struct samples samples = {.n = 0};
    AUTO_JSON cJSON *report = NULL;
    AUTO_JSON cJSON *markers = NULL;
    cJSON *section = NULL;

    MUST(json_parse(k->o.report, strlen(k->o.report), NULL, &report, E));
    MUST(json_parse(k->o.markers, strlen(k->o.markers), NULL, &markers, E));
    MUST(samples_parse_csv(k->o.samples, strlen(k->o.samples), &samples, E));
    MUST(resources_derive(k->gate, &samples, markers, &section, E));
    assert_true(cJSON_AddItemToObject(report, "resources", section));
    section = cJSON_AddObjectToObject(report, "diagnostics");
    assert_true(cJSON_AddItemToObject(section, "phase_markers", STEAL(markers)));
    json_write(out, report, JSON_PRETTY);
}

static void write_report(struct maker *k)
{
    AUTO_BUF struct buf b = {.data = NULL};
    AUTO_FREE char *name = NULL;

    tree_init(&k->tree);
    if (k->o.build_only)
        return;
    test_write_text(k->p->run_dir, "samples/process.csv", k->o.samples);
    if (k->o.report_missing)
        return;
    buf_init(&b, TEXT_MAX);
    if (k->o.derive) {
        put_derived(k, &b);
        assert_true(asprintf(&name, "results/%s.as-written", k->o.report_name) > 0);
        test_write_text(k->p->run_dir, name, k->o.report);
        free(STEAL(name));
    } else if (k->o.report)
        buf_puts(&b, k->o.report);
    else
        buf_printf(
            &b,
            "{\"scenario\":\"kvcache\",\"load\":{\"capacity\":%d},\"results\":{\"rate\":%.17g,"
            "\"probes\":%.17g},"
            "\"note\":\"%s\"}\n",
            k->o.capacity, k->o.rate, k->o.probes, k->p->run);
    assert_true(asprintf(&name, "results/%s", k->o.report_name) > 0);
    write_file(k, name, &b);
    if (k->o.step_report)
        test_write_text(k->p->run_dir, "results/warm/1.json", k->o.step_report);
    MUST(tree_add(&k->tree, k->o.report_name, b.data, b.len, E));
}

static bool captured(const struct maker *k)
{
    return k->tree.n > 0;
}

/* Replaces what a pointer names by JSON text. */
static void exchange(cJSON *root, const char *parent, const char *key, cJSON *value)
{
    cJSON *at = root;

    if (strcmp(parent, "/checks/0") == 0)
        at = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "checks"), 0);
    else if (strcmp(parent, "/comparisons/0") == 0)
        at = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "comparisons"), 0);
    assert_non_null(at);
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(at, key, value));
}

static void make_acceptance(struct maker *k)
{
    struct acceptance a = {.document = NULL};
    AUTO_JSON cJSON *markers = NULL;
    bool derived = k->gate && json_get(json_get(k->gate->experiment, "sampling"), "into");
    struct acceptance_input in = {
        .definition = k->gate,
        .report = captured(k) ? k->tree.files[0].report : NULL,
        .report_path = k->o.report_name,
        .samples_csv = derived ? k->o.samples : NULL,
        .samples_len = derived ? strlen(k->o.samples) : 0,
    };

    k->acceptance_status = "NOT_APPLICABLE";
    if (!captured(k) || strcmp(k->o.mode, "clean") != 0)
        return;
    MUST(json_parse(k->o.markers, strlen(k->o.markers), NULL, &markers, E));
    in.phase_markers = derived ? markers : NULL;
    MUST(acceptance_evaluate(&in, &a, E));
    k->acceptance_status = a.verdict == ACCEPTANCE_PASS ? "PASS" : "FAIL";
    k->acceptance = a.document;
    if (k->o.lie == PACKAGE_ACCEPTANCE_NONE) {
        k->acceptance_status = "NOT_APPLICABLE";
        return;
    }
    if (k->o.lie == PACKAGE_ACCEPTANCE_PASS) {
        k->acceptance_status = "PASS";
        exchange(k->acceptance, "", "verdict", cJSON_CreateString("PASS"));
        exchange(k->acceptance, "/checks/0", "passed", cJSON_CreateTrue());
        exchange(k->acceptance, "/checks/0", "error", cJSON_CreateNull());
    }
    if (k->o.lie == PACKAGE_ACCEPTANCE_VALUE)
        exchange(k->acceptance, "/checks/0", "actual", cJSON_CreateNumber(49999));
    write_json(k, "acceptance.json", k->acceptance);
}

static void set_status(struct maker *k)
{
    if (k->o.build_only)
        k->status = "BUILD_ONLY";
    else if (k->o.exit_code != 0 || k->o.signal != 0 || k->o.source_changed || k->o.faults > 0 ||
             !captured(k) ||
             (strcmp(k->o.mode, "clean") == 0 && strcmp(k->acceptance_status, "PASS") != 0))
        k->status = "FAIL";
    else
        k->status = "PASS";
}

static void put_executable(const struct maker *k, struct buf *b)
{
    struct digest d = digest_of(&k->o.executable, sizeof k->o.executable);
    char hex[DIGEST_HEX_SIZE];

    digest_hex(&d, hex);
    buf_printf(b,
               "\"executable\":{\"name\":\"kvcache\",\"sha256\":\"%s\",\"size\":12,\"resolved\":"
               "\"%s\",\"mapped\":[{\"name\":\"kvcache\",\"sha256\":\"%s\"}]},",
               hex, pointer_get(k->gate->experiment, "/build/executable/from")->valuestring, hex);
}

/* What a runner says of the windows that it derived. */
static void put_coverage(const struct maker *k, struct buf *b)
{
    AUTO_JSON_DOC struct json_doc d = {.root = cJSON_CreateArray()};
    const cJSON *windows = captured(k) && k->o.derive
                               ? pointer_get(k->tree.files[0].report, "/resources/windows")
                               : NULL;
    const cJSON *w = NULL;

    cJSON_ArrayForEach(w, windows) {
        cJSON *row = json_add_object(&d, NULL, NULL);
        int more = k->o.lie == PACKAGE_COVERAGE_VALUE ? 1 : 0;

        json_add_string(&d, row, "window", w->string);
        json_add_copy(&d, row, "requested_secs", json_get(w, "requested_coverage_secs"));
        json_add_copy(&d, row, "actual_secs", json_get(w, "actual_coverage_secs"));
        json_add_int(&d, row, "samples", json_get(w, "sample_count")->valueint + more);
        json_add_copy(&d, row, "complete", json_get(w, "complete"));
    }
    json_write(b, d.root, JSON_COMPACT);
}

static void put_baseline(const struct maker *k, struct buf *b)
{
    if (k->baseline_id[0])
        buf_printf(b, "{\"id\":\"%s\",\"evidence_sha256\":null,\"manifest_sha256\":\"%s\"}",
                   k->baseline_id, k->baseline_manifest);
    else
        buf_puts(b, "null");
}

static void put_conditioning(const struct maker *k, struct buf *b)
{
    const cJSON *steps = json_get(k->gate->experiment, "conditioning");
    struct digest d;
    char hex[DIGEST_HEX_SIZE] = NO_STEPS;

    buf_puts(b, ",\"conditioning\":{\"steps\":");
    if (steps && !k->o.build_only) {
        MUST(jcs_digest(steps, &d, E));
        digest_hex(&d, hex);
        json_write(b, steps, JSON_COMPACT);
    } else {
        buf_puts(b, "[]");
    }
    buf_printf(b, ",\"sha256\":\"%s\"}", hex);
}

/* The manifest without its file list. */
static cJSON *make_manifest(const struct maker *k)
{
    AUTO_BUF struct buf b = {.data = NULL};
    char experiment[DIGEST_HEX_SIZE];
    char policy[DIGEST_HEX_SIZE];
    const char *report_status = k->o.build_only ? "NOT_EXPECTED"
                                : captured(k)   ? "CAPTURED"
                                                : "MISSING";
    char report_name[256] = "null";
    char started[CLOCK_RFC3339_SIZE];
    char finished[CLOCK_RFC3339_SIZE];
    int64_t at = 0;
    cJSON *j = NULL;

    (void) snprintf(started, sizeof started, "%.16s", k->p->run);
    assert_true(clock_parse_compact(started, &at));
    clock_rfc3339(at, false, started);
    clock_rfc3339(at + lasted_ms(k) * 1000, true, finished);
    if (captured(k))
        (void) snprintf(report_name, sizeof report_name, "\"%s\"", k->o.report_name);
    digest_hex(&k->gate->experiment_digest, experiment);
    digest_hex(&k->gate->policy_digest, policy);
    buf_init(&b, TEXT_MAX);
    buf_printf(
        &b,
        "{\"schema\":\"cleanrun-manifest/"
        "2\",\"project\":\"%s\",\"gate\":\"%s\",\"class\":\"%s\",\"run\":\"%s\",\"mode\":\"%s\","
        "\"status\":\"%s\",\"attempt\":1,\"started_at\":\"%s\",\"finished_at\":\"%s\",",
        k->o.project, k->o.gate, k->o.machine_class, k->p->run, k->o.mode, k->status, started,
        finished);
    if (k->o.build_only)
        buf_puts(&b, "\"exit_code\":null,\"signal\":null,");
    else if (k->o.signal != 0)
        buf_printf(&b, "\"exit_code\":null,\"signal\":%d,", k->o.signal);
    else
        buf_printf(&b, "\"exit_code\":%d,\"signal\":null,", k->o.exit_code);
    buf_printf(&b,
               "\"report_status\":\"%s\",\"report\":%s,\"acceptance_status\":\"%"
               "s\",\"audit_status\":\"%s\","
               "\"definition\":{\"experiment_sha256\":\"%s\",\"policy_sha256\":\"%s\"},\"source\":{"
               "\"start\":",
               report_status, report_name, k->acceptance_status, k->audit_status, experiment,
               policy);
    source_text(k, false, &b);
    buf_puts(&b, ",\"end\":");
    source_text(k, true, &b);
    buf_printf(&b, ",\"unchanged\":%s,\"ignored\":0},", k->o.source_changed ? "false" : "true");
    put_executable(k, &b);
    buf_puts(&b, "\"build\":{\"command\":");
    json_write(&b, pointer_get(k->gate->experiment, "/build/command"), JSON_COMPACT);
    buf_printf(&b,
               ",\"exit_code\":0,\"environment\":" DEFAULTS
               ",\"rejected_patterns\":[],\"profile\":{}},\"environment\":%s,",
               k->o.build_only ? "null" : DEFAULTS);
    buf_puts(&b, "\"machine\":{\"facts\":{");
    put_facts(k, &b);
    buf_puts(&b, "},\"readings\":{}},\"interference\":{\"before\":{},\"during\":{}},\"ticket\":"
                 "null,\"baseline\":");
    put_baseline(k, &b);
    put_conditioning(k, &b);
    buf_puts(&b, ",\"phase_markers\":");
    buf_puts(&b, k->o.markers);
    buf_puts(&b, ",\"coverage\":");
    put_coverage(k, &b);
    buf_printf(&b,
               ",\"control\":%s%s%s,\"runner\":{\"version\":\"0.1.0\"},"
               "\"files\":[]}",
               k->o.control ? "\"" : "", k->o.control ? k->o.control : "null",
               k->o.control ? "\"" : "");
    MUST(buf_check(&b, E));
    MUST(json_parse(b.data, b.len, NULL, &j, E));
    return j;
}

static void copy_in(struct maker *k, const char *from_dir, const char *name)
{
    AUTO_FREE char *path = test_join(from_dir, name);
    AUTO_FREE char *bytes = NULL;
    char to[256];
    size_t len = 0;

    bytes = test_read_path(path, &len);
    (void) snprintf(to, sizeof to, "baseline/%s", name);
    test_write(k->p->run_dir, to, bytes, len);
}

/* The local comparison as a runner makes it. */
static void make_audit(struct maker *k)
{
    AUTO_TREE struct tree base;
    AUTO_MANIFEST struct manifest base_manifest = {.document = NULL};
    AUTO_DEFINITION struct definition base_definition = {.gate = NULL};
    AUTO_JSON cJSON *manifest = NULL;
    struct audit a = {.document = NULL};
    char *paths[3];
    char *bytes[3];
    size_t len[3];
    char report[256];
    const char *const names[] = {"manifest.json", "definition.json", report};

    tree_init(&base);
    k->audit_status = "NOT_APPLICABLE";
    if (!k->o.baseline_run || !captured(k) || strcmp(k->o.mode, "clean") != 0)
        return;
    (void) snprintf(report, sizeof report, "results/%s", k->o.report_name);
    for (size_t i = 0; i < 3; i++) {
        copy_in(k, k->o.baseline_run, names[i]);
        paths[i] = test_join(k->o.baseline_run, names[i]);
        bytes[i] = test_read_path(paths[i], &len[i]);
    }
    MUST(manifest_parse(bytes[0], len[0], &base_manifest, E));
    MUST(definition_parse(bytes[1], len[1], &base_definition, E));
    MUST(tree_add(&base, k->o.report_name, bytes[2], len[2], E));
    for (size_t i = 0; i < 3; i++) {
        free(paths[i]);
        free(bytes[i]);
    }
    (void) snprintf(k->baseline_id, sizeof k->baseline_id, "b-%s", base_manifest.run);
    digest_hex(&base_manifest.digest, k->baseline_manifest);
    manifest = make_manifest(k);
    {
        const struct audit_input in = {
            .policy = k->gate,
            .baseline = {.tree = &base,
                         .manifest = base_manifest.document,
                         .definition = &base_definition,
                         .id = k->baseline_id,
                         .root = "baseline"},
            .current = {.tree = &k->tree,
                        .manifest = manifest,
                        .definition = k->gate,
                        .id = k->p->run,
                        .root = "."},
        };

        MUST(audit_run(&in, &a, E));
    }
    k->audit_status = verdict_word(a.verdict);
    k->audit = a.document;
    if (k->o.lie == PACKAGE_AUDIT_OK) {
        k->audit_status = "OK";
        exchange(k->audit, "", "verdict", cJSON_CreateString("OK"));
        exchange(k->audit, "/comparisons/0", "verdict", cJSON_CreateString("ok"));
    }
    if (k->o.lie == PACKAGE_AUDIT_VALUE)
        exchange(k->audit, "/comparisons/0", "current", cJSON_CreateNumber(1.3100001));
    write_json(k, "audit.json", k->audit);
    test_write_text(k->p->run_dir, "audit.md", "# audit\n");
}

/* Exchanges the member of an object that the pointer names. */
static void forge(cJSON *m, const char *pointer, const char *json)
{
    char parent[256];
    char *slash;
    cJSON *value = NULL;
    cJSON *at = m;

    (void) snprintf(parent, sizeof parent, "%s", pointer);
    slash = strrchr(parent, '/');
    assert_non_null(slash);
    *slash = '\0';
    if (parent[0])
        at = (cJSON *) (uintptr_t) pointer_get(m, parent);
    assert_true(cJSON_IsObject(at));
    MUST(json_parse(json, strlen(json), NULL, &value, E));
    cJSON_DeleteItemFromObjectCaseSensitive(at, slash + 1);
    assert_true(cJSON_AddItemToObject(at, slash + 1, value));
}

static void write_manifest(struct maker *k)
{
    cJSON *m = make_manifest(k);
    cJSON *files = NULL;

    MUST(manifest_files_from_dir(k->fd, NULL, NULL, &files, E));
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(m, "files", files));
    if (k->o.forge)
        forge(m, k->o.forge, k->o.forged);
    write_json(k, MANIFEST_NAME, m);
    json_free(m);
}

/* As a liar seals who holds the key: cleanrun's own check is left out. */
static __attribute__((noinline)) void seal_forged(struct maker *k, const struct private_key *key,
                                                  const char *envelope)
{
    AUTO_MANIFEST struct manifest m = {.document = NULL};
    AUTO_FREE char *path = test_join(k->p->run_dir, MANIFEST_NAME);
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *attested = NULL;
    AUTO_FREE struct pack_file *files = NULL;
    AUTO_FD int fd = open(k->p->tar, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    struct digest own;
    size_t len = 0;

    text = test_read_path(path, &len);
    MUST(manifest_parse(text, len, &m, E));
    files = calloc(m.n_files + 1, sizeof *files);
    assert_true(fd >= 0 && files);
    own = digest_of(text, len);
    files[0] = (struct pack_file){.name = MANIFEST_NAME, .size = len, .digest = &own};
    for (size_t i = 0; i < m.n_files; i++)
        files[i + 1] = (struct pack_file){
            .name = m.files[i].path, .size = m.files[i].size, .digest = &m.files[i].digest};
    MUST(pack_write(k->fd, files, m.n_files + 1, fd, &k->p->digest, E));
    MUST(attest_run(&m, &k->p->digest, pack_size(files, m.n_files + 1), key, &attested, &len, E));
    test_write(k->p->dir, strrchr(envelope, '/') + 1, attested, len);
}

static void seal(struct maker *k, const struct private_key *key)
{
    AUTO_FREE char *envelope = NULL;

    if (k->o.forge || k->o.step_report || k->o.lie == PACKAGE_COVERAGE_VALUE) {
        assert_true(asprintf(&envelope, "%s.dsse.json", k->p->tar) > 0);
        seal_forged(k, key, envelope);
        free(STEAL(envelope));
    } else {
        MUST(seal_run(k->fd, key, k->p->tar, &k->p->digest, E));
    }
    digest_hex(&k->p->digest, k->p->hex);
    k->p->archive = test_read_path(k->p->tar, &k->p->archive_len);
    assert_true(asprintf(&envelope, "%s.dsse.json", k->p->tar) > 0);
    k->p->envelope = test_read_path(envelope, &k->p->envelope_len);
}

void package_make(const struct package_options *options, const struct private_key *key,
                  struct package *out)
{
    struct maker k = {.o = *options, .p = out};

    *out = (struct package){.dir = test_dir_new()};
    out->run_dir = test_join(out->dir, "run");
    out->tar = test_join(out->dir, "evidence.tar");
    assert_int_equal(mkdir(out->run_dir, 0700), 0);
    MUST(file_open_dir(out->run_dir, &k.fd, E));
    set_defaults(&k);
    write_definition(&k);
    write_logs(&k);
    write_report(&k);
    make_acceptance(&k);
    k.audit_status = "NOT_APPLICABLE";
    set_status(&k);
    make_audit(&k);
    write_manifest(&k);
    seal(&k, key);
    (void) close(k.fd);
    json_free(k.acceptance);
    json_free(k.audit);
    tree_fini(&k.tree);
    definition_file_fini(&k.definitions);
}

void package_free(struct package *p)
{
    test_dir_free(p->dir);
    free(p->run_dir);
    free(p->tar);
    free(p->archive);
    free(p->envelope);
    *p = (struct package){.dir = NULL};
}
