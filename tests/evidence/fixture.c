#include "tests/evidence/fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/num.h"
#include "evidence/attest.h"
#include "evidence/seal.h"
#include "evidence/ustar.h"
#include "experiment/definition.h"

#define SOURCE                                                                                     \
    "{\"schema\":\"cleanrun-source/1\",\"scheme\":\"cleanrun-source/"                              \
    "1\",\"commit\":\"" FIXTURE_COMMIT "\","                                                       \
    "\"tree\":\"89abcdef0123456789abcdef0123456789abcdef\",\"parents\":[],\"dirty\":false,"        \
    "\"fingerprint\":\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\","        \
    "\"files\":3,\"untracked\":0}"
#define DEFAULTS                                                                                   \
    "\"PATH\":\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\",\"LANG\":"          \
    "\"C.UTF-8\",\"TMPDIR\":\"/tmp\""
#define HASH "\"b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9\""

/* SHA-256 of "[]". */
#define NO_STEPS "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"

static const char template[] =
    "{\"schema\":\"cleanrun-manifest/2\",\"project\":\"demo/"
    "kvcache\",\"gate\":\"kvcache-50k\",\"class\":\"demo-vm\","
    "\"run\":\"" FIXTURE_RUN "\",\"mode\":\"clean\",\"status\":\"PASS\",\"attempt\":1,"
    "\"started_at\":\"2024-11-29T14:15:02Z\",\"finished_at\":\"2024-11-29T14:16:02Z\",\"exit_"
    "code\":0,\"signal\":null,"
    "\"report_status\":\"CAPTURED\",\"report\":\"kvcache/"
    "50000.json\",\"acceptance_status\":\"PASS\","
    "\"audit_status\":\"OK\",\"definition\":{\"experiment_sha256\":" HASH ",\"policy_sha256\":" HASH
    "},"
    "\"source\":{\"start\":" SOURCE ",\"end\":" SOURCE ",\"unchanged\":true,\"ignored\":0},"
    "\"executable\":{\"name\":\"kvcache\",\"sha256\":" HASH
    ",\"size\":12,\"resolved\":\"meson-introspection\","
    "\"mapped\":[{\"name\":\"libc.so.6\",\"sha256\":" HASH "}]},"
    "\"build\":{\"command\":[\"meson\",\"compile\"],\"exit_code\":0,\"environment\":{" DEFAULTS
    ",\"TZ\":\"UTC\",\"LC_ALL\":\"C\"},"
    "\"rejected_patterns\":[\"LD_*\"],\"profile\":{}},"
    "\"environment\":{" DEFAULTS ",\"TZ\":\"CET\"},"
    "\"machine\":{\"facts\":{\"cpu_model\":\"Test CPU\",\"governor\":null},\"readings\":"
    "{\"load\":0.5}},\"interference\":{\"before\":{\"secs\":1,\"other_cpu_pct\":1},\"during\":"
    "{\"secs\":59,\"other_cpu_pct\":2}},\"ticket\":null,\"baseline\":null,"
    "\"conditioning\":{\"steps\":[],\"sha256\":\"" NO_STEPS "\"},"
    "\"phase_markers\":[{\"phase\":\"window_start\",\"kind\":\"actual\",\"elapsed_ms\":12}],"
    "\"coverage\":[{\"window\":\"steady\",\"requested_secs\":5,\"actual_secs\":5.1,\"samples\":50,"
    "\"complete\":true}],"
    "\"control\":null,\"runner\":{\"version\":\"0.1.0\"},\"files\":[]}";

static const char definition_yaml[] =
    "version: 1\n"
    "project: demo/kvcache\n"
    "gates:\n"
    "  kvcache-50k:\n"
    "    class: demo-vm\n"
    "    build: {command: [meson, compile], executable: {from: meson-introspection, target: "
    "kvcache}, env: {allow: ['LC_*', LD_BIND_NOW], reject: ['LD_*']}}\n"
    "    run: {command: ['{executable}'], report: kvcache/50000.json, env: {set: {TZ: CET}}}\n"
    "    sampling: {interval: 100ms, into: /resources}\n"
    "    host: {limits: [{reading: load, max: 4}], quiet: {max_other_cpu_pct: 5}}\n"
    "    phases: {markers: [window_start], required: [window_start]}\n"
    "    identity: [{path: /load/rate, require: required}]\n"
    "    accept: {limits: [{path: /results/rate, op: '>=', value: 10, unit: 1/s}]}\n"
    "    audit: {paths: {required: [kvcache/50000.json]}, metrics: [{path: /results/rate, label: "
    "rate, unit: 1/s, "
    "worse: lower, tolerance_pct: 5, gated: true}]}\n";

static cJSON *parse(const char *text)
{
    cJSON *j = NULL;

    MUST(json_parse(text, strlen(text), NULL, &j, E));
    return j;
}

char *fixture_text(const cJSON *document, size_t *out_len)
{
    AUTO_BUF struct buf b = {.data = NULL};

    buf_init(&b, LIMIT_MIB(4));
    json_write(&b, document, JSON_PRETTY);
    MUST(buf_check(&b, E));
    return buf_take(&b, out_len);
}

static int number(const char *digits)
{
    uint64_t v = 0;

    assert_true(num_parse_u64(digits, strlen(digits), 9999, &v));
    return (int) v;
}

void fixture_set(cJSON *document, const char *pointer, const char *json)
{
    char copy[256];
    char *token = copy + 1;
    cJSON *at = document;

    assert_true(strlen(pointer) < sizeof copy && pointer[0] == '/');
    memcpy(copy, pointer, strlen(pointer) + 1);
    for (char *slash = strchr(token, '/'); slash; slash = strchr(token, '/')) {
        *slash = '\0';
        at = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, number(token))
                               : cJSON_GetObjectItemCaseSensitive(at, token);
        assert_non_null(at);
        token = slash + 1;
    }
    if (cJSON_IsArray(at)) {
        if (!json)
            cJSON_DeleteItemFromArray(at, number(token));
        else
            assert_true(cJSON_ReplaceItemInArray(at, number(token), parse(json)));
        return;
    }
    if (!json)
        cJSON_DeleteItemFromObjectCaseSensitive(at, token);
    else if (cJSON_GetObjectItemCaseSensitive(at, token))
        assert_true(cJSON_ReplaceItemInObjectCaseSensitive(at, token, parse(json)));
    else
        assert_true(cJSON_AddItemToObject(at, token, parse(json)));
}

static void set_digest(cJSON *document, const char *pointer, const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];
    char json[DIGEST_HEX_SIZE + 2];

    digest_hex(d, hex);
    (void) snprintf(json, sizeof json, "\"%s\"", hex);
    fixture_set(document, pointer, json);
}

cJSON *fixture_manifest(const struct fixture *f)
{
    AUTO_DEFINITION_FILE struct definition_file file = {.gates = NULL};
    cJSON *files = NULL;
    cJSON *m = parse(template);

    MUST(
        definition_file_parse("cleanrun.yaml", definition_yaml, strlen(definition_yaml), &file, E));
    set_digest(m, "/definition/experiment_sha256", &file.gates[0].experiment_digest);
    set_digest(m, "/definition/policy_sha256", &file.gates[0].policy_digest);
    MUST(manifest_files_from_dir(f->run_fd, NULL, NULL, &files, E));
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(m, "files", files));
    return m;
}

void fixture_write_manifest(const struct fixture *f, const cJSON *document)
{
    size_t len = 0;
    char *text = fixture_text(document, &len);

    test_write(f->run, MANIFEST_NAME, text, len);
    free(text);
}

void fixture_refresh(const struct fixture *f)
{
    cJSON *m = fixture_manifest(f);

    fixture_write_manifest(f, m);
    json_free(m);
}

static void write_definition(const struct fixture *f)
{
    AUTO_DEFINITION_FILE struct definition_file file = {.gates = NULL};
    AUTO_FREE char *text = NULL;
    size_t len = 0;

    MUST(
        definition_file_parse("cleanrun.yaml", definition_yaml, strlen(definition_yaml), &file, E));
    MUST(definition_write(&file.gates[0], &text, &len, E));
    test_write(f->run, "definition.json", text, len);
}

static void write_files(const struct fixture *f)
{
    write_definition(f);
    test_write_text(f->run, "build.log", "built\n");
    test_write_text(f->run, "build-messages.jsonl", "");
    test_write_text(f->run, "run.log", "ran\n");
    test_write_text(f->run, "source-at-start.json", SOURCE "\n");
    test_write_text(f->run, "source-at-end.json", SOURCE "\n");
    test_write_text(f->run, "environment.json",
                    "{\"build\":{\"defaults\":{" DEFAULTS
                    ",\"TZ\":\"UTC\"},\"passed\":{\"LC_ALL\":\"C\"},\"set\":{}},"
                    "\"run\":{\"defaults\":{" DEFAULTS
                    ",\"TZ\":\"UTC\"},\"passed\":{},\"set\":{\"TZ\":\"CET\"}},"
                    "\"rejected_patterns\":[\"LD_*\"]}\n");
    test_write_text(f->run, "host.json",
                    "{\"facts\":{\"cpu_model\":\"Test CPU\",\"governor\":null},\"readings\":{"
                    "\"load\":0.5},\"before\":{\"secs\":1,\"other_cpu_pct\":1},\"during\":"
                    "{\"secs\":59,\"other_cpu_pct\":2},\"usage\":{\"wall_ms\":59000}}\n");
    test_write_text(
        f->run, "results/kvcache/50000.json",
        "{\"scenario\":\"kvcache\",\"results\":{\"rate\":50000},\"resources\":{\"windows\":{"
        "\"steady\":{\"requested_coverage_secs\":5,\"actual_coverage_secs\":5.1,"
        "\"sample_count\":50,\"complete\":true}}},\"diagnostics\":{\"phase_markers\":"
        "[{\"phase\":\"window_start\",\"kind\":\"actual\",\"elapsed_ms\":12}]}}\n");
    test_write_text(f->run, "results/kvcache/50000.json.as-written",
                    "{\"scenario\":\"kvcache\",\"results\":{\"rate\":50000}}\n");
    test_write_text(f->run, "samples/process.csv", "t_ms,rss_kib\n0,4096\n100,4100\n");
    test_write_text(f->run, "acceptance.json",
                    "{\"schema\":\"cleanrun-acceptance/1\",\"verdict\":\"PASS\"}\n");
    test_write_text(f->run, "audit.json", "{\"schema\":\"cleanrun-audit/1\",\"verdict\":\"OK\"}\n");
    test_write_text(f->run, "audit.md", "# OK\n");
}

static void make_ring(struct fixture *f)
{
    const struct keyring_entry anyone = {.name = NULL};
    AUTO_FREE char *pem = NULL;
    struct public_key *public = NULL;

    f->ring = keyring_new();
    assert_non_null(f->ring);
    MUST(public_key_write(private_key_public(f->key), &pem, E));
    MUST(public_key_parse(pem, strlen(pem), &public, E));
    MUST(keyring_add(f->ring, public, &anyone, E));
    test_write_text(f->dir, "pub.pem", pem);
}

void fixture_init(struct fixture *f)
{
    f->dir = test_dir_new();
    f->run = test_join(f->dir, "run");
    f->tar = test_join(f->dir, "evidence.tar");
    f->run_fd = -1;
    write_files(f);
    MUST(file_open_dir(f->run, &f->run_fd, E));
    MUST(private_key_generate(&f->key, E));
    make_ring(f);
    fixture_refresh(f);
}

void fixture_fini(struct fixture *f)
{
    (void) close(f->run_fd);
    keyring_free(f->ring);
    private_key_free(f->key);
    test_dir_free(f->dir);
    free(f->run);
    free(f->tar);
}

void fixture_seal(const struct fixture *f)
{
    struct digest ignored;

    MUST(seal_run(f->run_fd, f->key, f->tar, &ignored, E));
}

char *fixture_archive(const struct fixture *f, size_t *out_len)
{
    return test_read_path(f->tar, out_len);
}

char *fixture_envelope(const struct fixture *f, size_t *out_len)
{
    char *path = test_join(f->dir, "evidence.tar.dsse.json");
    char *bytes = test_read_path(path, out_len);

    free(path);
    return bytes;
}

static struct archive_index *index_of(const char *archive, size_t len)
{
    AUTO_VERIFY_STREAM struct verify_stream *s = verify_stream_new();
    struct archive_index *x = NULL;

    assert_non_null(s);
    verify_stream_feed(s, archive, len);
    MUST(verify_stream_finish(s, &x, E));
    return x;
}

static void put_member(struct buf *out, const char *name, const char *bytes, size_t len)
{
    static const char zeros[USTAR_BLOCK];
    char header[USTAR_BLOCK];

    ustar_header(header, name, len);
    buf_put(out, header, sizeof header);
    buf_put(out, bytes, len);
    buf_put(out, zeros, ustar_padding(len));
}

static const struct change *find_change(const struct change *changes, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(changes[i].name, name) == 0)
            return &changes[i];
    }
    return NULL;
}

static void put_new(struct buf *out, const struct archive_index *x, const struct change *changes,
                    size_t n, const char *after, const char *before)
{
    for (size_t i = 0; i < n; i++) {
        if (changes[i].bytes && !archive_index_find(x, changes[i].name) &&
            strcmp(changes[i].name, after) > 0 && (!before || strcmp(changes[i].name, before) < 0))
            put_member(out, changes[i].name, changes[i].bytes, changes[i].len);
    }
}

void fixture_rebuild(const char *archive, size_t len, const struct change *changes, size_t n,
                     struct buf *out)
{
    static const char end[USTAR_END];
    AUTO_ARCHIVE_INDEX struct archive_index *x = index_of(archive, len);
    const char *after = "";

    buf_init(out, LIMIT_MIB(16));
    assert_null(x->problem);
    for (size_t i = 0; i < x->n; i++) {
        const struct archive_member *m = &x->members[i];
        const struct change *c = find_change(changes, n, m->name);

        if (i > 0) {
            put_new(out, x, changes, n, after, m->name);
            after = m->name;
        }
        if (!c)
            put_member(out, m->name, archive + m->offset, (size_t) m->size);
        else if (c->bytes)
            put_member(out, m->name, c->bytes, c->len);
    }
    put_new(out, x, changes, n, after, NULL);
    buf_put(out, end, sizeof end);
    MUST(buf_check(out, E));
}

char *fixture_sign(const struct fixture *f, const char *archive, size_t len, size_t *out_len)
{
    AUTO_ARCHIVE_INDEX struct archive_index *x = index_of(archive, len);
    AUTO_MANIFEST struct manifest m = {.document = NULL};
    AUTO_FREE char *text = NULL;
    struct digest d = digest_of(archive, len);
    struct err e = ERR_INIT;
    char *envelope = NULL;
    size_t text_len = 0;

    if (x->n == 0 ||
        manifest_parse(archive + x->members[0].offset, (size_t) x->members[0].size, &m, &e) < 0) {
        AUTO_FREE char *path = test_join(f->run, MANIFEST_NAME);

        text = test_read_path(path, &text_len);
        MUST(manifest_parse(text, text_len, &m, E));
        if (x->n > 0)
            m.digest = x->members[0].digest;
    }
    MUST(attest_run(&m, &d, len, f->key, &envelope, out_len, E));
    return envelope;
}

const char *fixture_judge(const struct fixture *f, const char *archive, size_t len,
                          const char *envelope, size_t envelope_len,
                          const struct verify_input *more, char *detail)
{
    AUTO_EVIDENCE struct evidence *ev = NULL;
    AUTO_VERIFY_REPORT struct verify_report report = {.document = NULL};
    AUTO_FD int fd = memfd_create("archive", MFD_CLOEXEC);
    struct verify_input in = {.keyring = f->ring};
    const char *verdict;

    assert_true(fd >= 0);
    MUST(file_write_all(fd, archive, len, E));
    if (more)
        in = *more;
    if (in.now_us == 0)
        in.now_us = FIXTURE_NOW_US;
    in.archive_fd = fd;
    in.envelope = envelope;
    in.envelope_len = envelope_len;
    MUST(evidence_verify(&in, &ev, &report, E));
    verdict = cJSON_GetObjectItemCaseSensitive(report.document, "verdict")->valuestring;
    assert_string_equal(verdict, ev ? "VALID" : "INVALID");
    assert_true((ev == NULL) == (report.code != NULL));
    if (detail && report.code) {
        const cJSON *stage = cJSON_GetArrayItem(
            cJSON_GetObjectItemCaseSensitive(report.document, "stages"), (int) report.failed_stage);
        const char *text = cJSON_GetObjectItemCaseSensitive(stage, "detail")->valuestring;

        memcpy(detail, text, strlen(text) + 1);
    }
    return report.code ? report.code : "VALID";
}

const char *fixture_judge_signed(const struct fixture *f, const char *archive, size_t len,
                                 char *detail)
{
    AUTO_FREE char *envelope = NULL;
    size_t n = 0;

    envelope = fixture_sign(f, archive, len, &n);
    return fixture_judge(f, archive, len, envelope, n, NULL, detail);
}
