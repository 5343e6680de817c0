/* From bytes to trusted evidence: nothing but complete agreement is VALID. */
#include "tests/evidence/fixture.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "evidence/attest.h"
#include "evidence/dsse.h"
#include "evidence/statement.h"

static struct fixture fx;
static char *tar;
static size_t tar_len;
static char *envelope;
static size_t envelope_len;

static int set_up(void **state)
{
    (void) state;
    fixture_init(&fx);
    fixture_seal(&fx);
    tar = fixture_archive(&fx, &tar_len);
    envelope = fixture_envelope(&fx, &envelope_len);
    return 0;
}

static int tear_down(void **state)
{
    (void) state;
    free(tar);
    free(envelope);
    fixture_fini(&fx);
    return 0;
}

static void expect(const char *label, const char *code, const char *detail, const char *want_code,
                   const char *want_detail)
{
    if (strcmp(code, want_code) != 0 || !strstr(detail, want_detail))
        fail_msg("%s: %s: %s (expected %s: …%s…)", label, code, detail, want_code, want_detail);
}

static void judge(const char *label, const struct verify_input *in, const char *env, size_t len,
                  const char *want_code, const char *want_detail)
{
    char detail[ERR_TEXT_MAX] = "";
    const char *code = fixture_judge(&fx, tar, tar_len, env, len, in, detail);

    expect(label, code, detail, want_code, want_detail);
}

static void sealed_evidence_is_valid(void **state)
{
    AUTO_EVIDENCE struct evidence *ev = NULL;
    AUTO_VERIFY_REPORT struct verify_report report = {.document = NULL};
    AUTO_FREE char *bytes = NULL;
    AUTO_FREE char *want = NULL;
    AUTO_FREE char *text = NULL;
    AUTO_FD int fd = memfd_create("archive", MFD_CLOEXEC);
    struct digest d = digest_of(tar, tar_len);
    struct err e = ERR_INIT;
    const struct archive_member *member = NULL;
    size_t len = 0;
    size_t want_len = 0;
    const cJSON *s;

    (void) state;
    MUST(file_write_all(fd, tar, tar_len, E));
    MUST(evidence_verify(&(struct verify_input){.archive_fd = fd,
                                                .archive_digest = &d,
                                                .envelope = envelope,
                                                .envelope_len = envelope_len,
                                                .keyring = fx.ring,
                                                .project = "demo/kvcache",
                                                .gate = "kvcache-50k",
                                                .now_us = FIXTURE_NOW_US},
                         &ev, &report, E));
    assert_non_null(ev);
    assert_null(report.code);
    assert_true(digest_equal(evidence_digest(ev), &d));
    assert_string_equal(evidence_keyid(ev), public_key_id(private_key_public(fx.key)));
    assert_null(evidence_key_name(ev));
    assert_string_equal(evidence_manifest(ev)->run, FIXTURE_RUN);
    assert_string_equal(json_get(report.document, "verdict")->valuestring, "VALID");
    cJSON_ArrayForEach(s, json_get(report.document, "stages"))
        assert_string_equal(json_get(s, "result")->valuestring, "ok");
    MUST(evidence_read(ev, "results/kvcache/50000.json", LIMIT_REPORT, &bytes, &len, E));
    text = test_join(fx.run, "results/kvcache/50000.json");
    want = test_read_path(text, &want_len);
    assert_int_equal(len, want_len);
    assert_memory_equal(bytes, want, len);
    member = archive_index_find(evidence_index(ev), "run.log");
    assert_non_null(member);
    assert_memory_equal(tar + member->offset, "ran\n", 4);
    assert_int_equal(member->size, 4);
    assert_int_equal(evidence_read(ev, "nothing", LIMIT_REPORT, &bytes, &len, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    assert_int_equal(evidence_read(ev, "run.log", 3, &bytes, &len, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
}

/* A large archive takes long to read: that nobody signed it is said without that. Here it can't be
 * read at all. */
static void an_archive_without_attestation_is_not_read(void **state)
{
    AUTO_FREE char *path = test_join(fx.dir, "unread.tar");
    AUTO_FD int fd = -1;
    static const char *const broken[] = {NULL, "", "{}"};

    (void) state;
    test_write(fx.dir, "unread.tar", tar, tar_len);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        AUTO_EVIDENCE struct evidence *ev = NULL;
        AUTO_VERIFY_REPORT struct verify_report report = {.document = NULL};

        MUST(evidence_verify(
            &(struct verify_input){.archive_fd = fd,
                                   .envelope = broken[i],
                                   .envelope_len = broken[i] ? strlen(broken[i]) : 0,
                                   .keyring = fx.ring,
                                   .now_us = FIXTURE_NOW_US},
            &ev, &report, E));
        assert_null(ev);
        assert_string_equal(report.code, "IN-SIGNATURE");
        assert_true(cJSON_IsNull(json_get(report.document, "archive_sha256")));
    }
}

static void without_any_one_proof_nothing_is_valid(void **state)
{
    AUTO_KEYRING struct keyring *empty = keyring_new();
    const struct verify_input no_ring = {.keyring = NULL};
    const struct verify_input empty_ring = {.keyring = empty};
    const struct verify_input ring = {.keyring = fx.ring};

    (void) state;
    assert_non_null(empty);
    judge("no envelope", &ring, NULL, 0, "IN-SIGNATURE", "no attestation");
    judge("empty envelope", &ring, "", 0, "IN-SIGNATURE", "no attestation");
    judge("no keyring", &no_ring, envelope, envelope_len, "IN-KEY", "no key is trusted");
    judge("empty keyring", &empty_ring, envelope, envelope_len, "IN-KEY", "no key is trusted");
    judge("nothing at all", &no_ring, NULL, 0, "IN-SIGNATURE", "");
    judge("cut envelope", &ring, envelope, envelope_len / 2, "IN-SIGNATURE", "");
    judge("everything", &ring, envelope, envelope_len, "VALID", "");
}

static void later_stages_are_not_run(void **state)
{
    AUTO_EVIDENCE struct evidence *ev = NULL;
    AUTO_VERIFY_REPORT struct verify_report report = {.document = NULL};
    AUTO_KEYRING struct keyring *empty = keyring_new();
    AUTO_FD int fd = memfd_create("archive", MFD_CLOEXEC);
    static const char *const want[] = {"ok",      "failed",  "not_run", "not_run",
                                       "not_run", "not_run", "not_run"};
    static const char *const names[] = {"digest",  "signature", "archive", "manifest",
                                        "members", "json",      "source"};
    const cJSON *s;
    size_t i = 0;

    (void) state;
    MUST(file_write_all(fd, tar, tar_len, E));
    MUST(evidence_verify(
        &(struct verify_input){
            .archive_fd = fd, .envelope = envelope, .envelope_len = envelope_len, .keyring = empty},
        &ev, &report, E));
    assert_null(ev);
    assert_int_equal(report.failed_stage, VERIFY_SIGNATURE);
    cJSON_ArrayForEach(s, json_get(report.document, "stages")) {
        assert_string_equal(json_get(s, "name")->valuestring, names[i]);
        assert_string_equal(json_get(s, "result")->valuestring, want[i++]);
    }
    assert_int_equal(i, VERIFY_STAGES);
    assert_true(cJSON_IsNull(json_get(report.document, "run")));
}

static struct keyring *ring_with(const struct private_key *key, const struct keyring_entry *entry)
{
    struct keyring *r = keyring_new();
    AUTO_FREE char *pem = NULL;
    struct public_key *k = NULL;

    assert_non_null(r);
    MUST(public_key_write(private_key_public(key), &pem, E));
    MUST(public_key_parse(pem, strlen(pem), &k, E));
    MUST(keyring_add(r, k, entry, E));
    return r;
}

static void the_key_must_be_trusted_for_this(void **state)
{
    static const char *const mine[] = {"demo/kvcache"};
    static const char *const others[] = {"demo/other"};
    const struct {
        const char *label;
        struct keyring_entry entry;
        const char *project;
        const char *gate;
        int64_t now;
        const char *code;
        const char *detail;
    } rows[] = {
        {"right",
         {.name = "r1", .machine_class = "demo-vm", .projects = mine, .n_projects = 1},
         "demo/kvcache",
         "kvcache-50k",
         5,
         "VALID",
         ""},
        {"other project's key",
         {.projects = others, .n_projects = 1},
         "demo/kvcache",
         NULL,
         5,
         "IN-KEY",
         "may not sign"},
        {"no project's key",
         {.projects = others, .n_projects = 0},
         "demo/kvcache",
         NULL,
         5,
         "IN-KEY",
         "may not sign"},
        {"uploaded elsewhere",
         {.name = "r1"},
         "demo/other",
         NULL,
         5,
         "IN-MANIFEST",
         "belongs to project demo/kvcache"},
        {"other gate",
         {.name = "r1"},
         "demo/kvcache",
         "other",
         5,
         "IN-MANIFEST",
         "belongs to gate"},
        {"other class",
         {.name = "r1", .machine_class = "epyc"},
         NULL,
         NULL,
         5,
         "IN-KEY",
         "machine class demo-vm"},
        {"scoped, offline",
         {.projects = others, .n_projects = 1},
         NULL,
         NULL,
         5,
         "IN-KEY",
         "may not sign"},
        {"expired", {.not_after_us = 4}, NULL, NULL, 5, "IN-KEY", "expired (valid until 20"},
        {"not yet", {.not_before_us = 6}, NULL, NULL, 5, "IN-KEY", "not valid yet (valid from 20"},
        {"revoked", {.revoked_since_us = 5}, NULL, NULL, 5, "IN-KEY", "revoked (since 20"},
        {"revoked later", {.revoked_since_us = 6}, NULL, NULL, 5, "VALID", ""},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct keyring_entry entry = rows[i].entry;
        AUTO_KEYRING struct keyring *ring = NULL;
        struct verify_input in = {.project = rows[i].project,
                                  .gate = rows[i].gate,
                                  .now_us = FIXTURE_NOW_US + rows[i].now};

        if (entry.not_after_us)
            entry.not_after_us += FIXTURE_NOW_US;
        if (entry.not_before_us)
            entry.not_before_us += FIXTURE_NOW_US;
        if (entry.revoked_since_us)
            entry.revoked_since_us += FIXTURE_NOW_US;
        ring = ring_with(fx.key, &entry);
        in.keyring = ring;
        judge(rows[i].label, &in, envelope, envelope_len, rows[i].code, rows[i].detail);
    }
}

static void a_signature_by_a_stranger_is_refused(void **state)
{
    const struct keyring_entry anyone = {.name = NULL};
    AUTO_PRIVATE_KEY struct private_key *stranger = NULL;
    AUTO_KEYRING struct keyring *ring = NULL;
    struct verify_input in = {.now_us = 0};

    (void) state;
    MUST(private_key_generate(&stranger, E));
    ring = ring_with(stranger, &anyone);
    in.keyring = ring;
    judge("stranger", &in, envelope, envelope_len, "IN-KEY", "no trusted key made this signature");
}

/* A signature of a known key that does not verify is broken; one that names an unknown key is a
 * stranger's; one that names none could be anybody's. */
static void a_broken_signature_is_told_from_a_strangers(void **state)
{
    static const char at_sig[] = "\"sig\":\"";
    static const char at_keyid[] = "\"keyid\":\"";
    const struct verify_input in = {.keyring = fx.ring};
    AUTO_PRIVATE_KEY struct private_key *stranger = NULL;
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    AUTO_FREE char *broken = strdup(envelope);
    AUTO_FREE char *foreign = NULL;
    AUTO_FREE char *nameless = NULL;
    char *at = strstr(broken, at_sig);
    size_t len = 0;

    (void) state;
    assert_non_null(at);
    at += sizeof at_sig - 1 + 20; /* inside the first of the two numbers */
    *at = *at == 'A' ? 'B' : 'A';
    judge("known key", &in, broken, strlen(broken), "IN-SIGNATURE", "no trusted key made this");

    MUST(private_key_generate(&stranger, E));
    MUST(dsse_parse(envelope, envelope_len, &d, E));
    MUST(dsse_sign(d.payload_type, d.payload, d.payload_len, stranger, &foreign, &len, E));
    judge("unknown key", &in, foreign, len, "IN-KEY", public_key_id(private_key_public(stranger)));
    at = strstr(foreign, at_keyid);
    assert_non_null(at);
    at += sizeof at_keyid - 1;
    assert_true(asprintf(&nameless, "%.*s%s", (int) (at - foreign), foreign, strchr(at, '"')) > 0);
    judge("no key named", &in, nameless, strlen(nameless), "IN-SIGNATURE",
          "no trusted key made this signature");
}

/* Signs what the caller says, with the right key. */
static char *sign_payload(const char *type, const void *payload, size_t len, size_t *out_len)
{
    char *out = NULL;

    MUST(dsse_sign(type, payload, len, fx.key, &out, out_len, E));
    return out;
}

static void the_statement_must_be_ours_and_about_these_bytes(void **state)
{
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    const struct verify_input in = {.keyring = fx.ring};
    const struct {
        const char *label;
        const char *from;
        const char *to;
        const char *type;
        const char *code;
        const char *detail;
    } rows[] = {
        {"unchanged", "", "", STATEMENT_PAYLOAD_TYPE, "VALID", ""},
        {"payload type", "", "", "application/json", "IN-SIGNATURE", "payload type"},
        {"statement type", "Statement/v1", "Statement/v2", STATEMENT_PAYLOAD_TYPE, "IN-SIGNATURE",
         "_type"},
        {"predicate type", "attestation/run/v1", "attestation/run/v2", STATEMENT_PAYLOAD_TYPE,
         "IN-SIGNATURE", "predicate type"},
        {"gate", "\"gate\":\"kvcache-50k\"", "\"gate\":\"kvcache-51k\"", STATEMENT_PAYLOAD_TYPE,
         "IN-MANIFEST", "gate"},
        {"status", "\"status\":\"PASS\"", "\"status\":\"FAIL\"", STATEMENT_PAYLOAD_TYPE,
         "IN-MANIFEST", "status"},
        {"mode", "\"mode\":\"clean\"", "\"mode\":\"timed\"", STATEMENT_PAYLOAD_TYPE, "IN-MANIFEST",
         "mode"},
        {"dirty", "\"dirty\":false", "\"dirty\":true ", STATEMENT_PAYLOAD_TYPE, "IN-MANIFEST",
         "dirty"},
        {"size", "\"archiveSize\":\"", "\"archivesize\":\"", STATEMENT_PAYLOAD_TYPE, "IN-MANIFEST",
         "archiveSize"},
        {"run", "\"runId\":\"2024", "\"runId\":\"2025", STATEMENT_PAYLOAD_TYPE, "IN-MANIFEST",
         "runId"},
        {"finish", "\"finishedOn\":\"2024", "\"finishedOn\":\"2023", STATEMENT_PAYLOAD_TYPE,
         "IN-MANIFEST", "finishedOn"},
        {"runner", "\"runner\":{\"version\":\"0", "\"runner\":{\"version\":\"9",
         STATEMENT_PAYLOAD_TYPE, "IN-MANIFEST",
         "runner.version is \"9.1.0\", the manifest and the archive say \"0.1.0\""},
        {"other commit", "{\"gitCommit\":\"0", "{\"gitCommit\":\"1", STATEMENT_PAYLOAD_TYPE,
         "IN-MANIFEST", "subject 3 is {\"digest\":{\"gitCommit\":\"1123"},
        {"other executable", "{\"sha256\":\"b94d", "{\"sha256\":\"b94e", STATEMENT_PAYLOAD_TYPE,
         "IN-MANIFEST", "subject 2"},
        {"other name", "{\"name\":\"kvcache\"", "{\"name\":\"kvcachf\"", STATEMENT_PAYLOAD_TYPE,
         "IN-MANIFEST", "subject 2"},
        {"no commit", ",{\"digest\":{\"gitCommit\":\"" FIXTURE_COMMIT "\"}}", "",
         STATEMENT_PAYLOAD_TYPE, "IN-MANIFEST", "subject 3 is nothing"},
        {"second archive", "\"subject\":[",
         "\"subject\":[{\"name\":\"evidence.tar\",\"digest\":{\"sha256\":\"" FIXTURE_COMMIT
         "0123456789abcdef01234567\"}},",
         STATEMENT_PAYLOAD_TYPE, "IN-MANIFEST", "subject 1"},
        {"a subject more", "}],\"predicateType\"",
         "},{\"name\":\"x\",\"digest\":{\"sha256\":\"00\"}}],\"predicateType\"",
         STATEMENT_PAYLOAD_TYPE, "IN-MANIFEST", "subject 4 is {\"name\":\"x\""},
        {"more digests", "{\"gitCommit\":", "{\"sha1\":\"00\",\"gitCommit\":",
         STATEMENT_PAYLOAD_TYPE, "IN-MANIFEST", "subject 3"},
        {"a member more", "\"predicate\":{", "\"predicate\":{\"more\":1,", STATEMENT_PAYLOAD_TYPE,
         "VALID", ""},
    };

    (void) state;
    MUST(dsse_parse(envelope, envelope_len, &d, E));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf copy = {.data = NULL};
        AUTO_FREE char *env = NULL;
        const char *payload = (const char *) d.payload;
        const char *at = strstr(payload, rows[i].from);
        size_t len = 0;

        assert_non_null(at);
        buf_init(&copy, LIMIT_ENVELOPE);
        buf_put(&copy, payload, (size_t) (at - payload));
        buf_puts(&copy, rows[i].to);
        buf_puts(&copy, at + strlen(rows[i].from));
        MUST(buf_check(&copy, E));
        env = sign_payload(rows[i].type, copy.data, copy.len, &len);
        judge(rows[i].label, &in, env, len, rows[i].code, rows[i].detail);
    }
}

static void other_archives_do_not_fit_the_statement(void **state)
{
    AUTO_BUF struct buf other = {.data = NULL};
    const struct change change = {"run.log", "RAN\n", 4};
    struct digest wrong = digest_of("x", 1);
    const struct verify_input announced = {.keyring = fx.ring, .archive_digest = &wrong};
    char detail[ERR_TEXT_MAX] = "";
    const char *code;

    (void) state;
    fixture_rebuild(tar, tar_len, &change, 1, &other);
    code = fixture_judge(&fx, other.data, other.len, envelope, envelope_len, NULL, detail);
    expect("other archive", code, detail, "IN-HASH", "about other bytes");
    judge("other announcement", &announced, envelope, envelope_len, "IN-HASH",
          "another one was announced");
}

/* A runner that holds the key lies about its files: the signature is right, the package is not. */
static void members_must_be_what_the_manifest_lists(void **state)
{
    static const struct {
        const char *label;
        struct change change;
        const char *detail;
    } rows[] = {
        {"changed", {"run.log", "RAN\n", 4}, "'run.log' does not have the sha256"},
        {"longer", {"run.log", "ran\nx", 5}, "'run.log' has 5 bytes, the manifest says 4"},
        {"emptied", {"run.log", "", 0}, "'run.log' has 0 bytes"},
        {"missing", {"run.log", NULL, 0}, "'run.log' is listed but is not in the archive"},
        {"missing at the end",
         {"source-at-start.json", NULL, 0},
         "is listed but is not in the archive"},
        {"extra", {"extra.txt", "x", 1}, "'extra.txt' is in the archive but is not listed"},
        {"extra at the end", {"zzz", "x", 1}, "'zzz' is in the archive but is not listed"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf forged = {.data = NULL};
        char detail[ERR_TEXT_MAX] = "";
        const char *code;

        fixture_rebuild(tar, tar_len, &rows[i].change, 1, &forged);
        code = fixture_judge_signed(&fx, forged.data, forged.len, detail);
        expect(rows[i].label, code, detail, "IN-HASH", rows[i].detail);
    }
}

/* The same with a manifest that fits the changed file (text NULL: removed): every hash is right,
 * the content is not. */
static const char *judge_with_file(const char *name, const char *text, const char *pointer,
                                   const char *json, char detail[ERR_TEXT_MAX])
{
    struct fixture other;
    AUTO_JSON cJSON *m = NULL;
    AUTO_FREE char *manifest = NULL;
    AUTO_BUF struct buf forged = {.data = NULL};
    const char *code;
    size_t len = 0;

    fixture_init(&other);
    if (name && text)
        test_write_text(other.run, name, text);
    else if (name)
        assert_int_equal(unlinkat(other.run_fd, name, 0), 0);
    m = fixture_manifest(&other);
    if (pointer)
        fixture_set(m, pointer, json);
    manifest = fixture_text(m, &len);
    {
        const struct change changes[] = {{MANIFEST_NAME, manifest, len},
                                         {name ? name : "zzz", text, text ? strlen(text) : 0}};

        fixture_rebuild(tar, tar_len, changes, 2, &forged);
    }
    code = fixture_judge_signed(&fx, forged.data, forged.len, detail);
    fixture_fini(&other);
    return code;
}

static void json_members_must_be_strict_json(void **state)
{
    static const struct {
        const char *name;
        const char *text;
        const char *code;
        const char *detail;
    } rows[] = {
        {"results/kvcache/50000.json", "{\"a\":1,\"a\":2}", "IN-JSON",
         "results/kvcache/50000.json"},
        {"results/kvcache/50000.json", "{\"a\":NaN}", "IN-JSON", "results/kvcache/50000.json"},
        {"results/kvcache/50000.json", "{\"a\":9007199254740993}", "IN-JSON",
         "results/kvcache/50000.json"},
        {"results/kvcache/50000.json", "{\"a\":1e999}", "IN-JSON", "results/kvcache/50000.json"},
        {"results/kvcache/50000.json", "{\"a\":-1e999}", "IN-JSON", "results/kvcache/50000.json"},
        {"results/kvcache/50000.json", "{} {}", "IN-JSON", "results/kvcache/50000.json"},
        {"results/kvcache/50000.json", "", "IN-JSON", "results/kvcache/50000.json"},
        {"acceptance.json", "{\"verdict\":\"PASS\",}", "IN-JSON", "acceptance.json"},
        {"audit.json", "\xff", "IN-JSON", "audit.json"},
        {"host.json", "[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]", "IN-JSON", "host.json"},
        {"environment.json", "", "IN-JSON", "environment.json"},
        {"definition.json", "{}", "IN-JSON", "definition.json"},
        {"definition.json", "x", "IN-JSON", "definition.json"},
        {"source-at-start.json", "{}", "IN-SOURCE", "source-at-start.json"},
        {"source-at-end.json", "[]", "IN-SOURCE", "source-at-end.json"},
        {"source-at-end.json", "x", "IN-JSON", "source-at-end.json"},
        {"run.log", "not json, and free to be", "VALID", ""},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char detail[ERR_TEXT_MAX] = "";
        const char *code = judge_with_file(rows[i].name, rows[i].text, NULL, NULL, detail);

        expect(rows[i].name, code, detail, rows[i].code, rows[i].detail);
    }
}

static void a_deep_or_huge_report_is_refused(void **state)
{
    AUTO_BUF struct buf b = {.data = NULL};
    char detail[ERR_TEXT_MAX] = "";
    const char *code;

    (void) state;
    buf_init(&b, LIMIT_MIB(8));
    buf_puts(&b, "[0");
    while (b.len < LIMIT_REPORT)
        buf_puts(&b, ",0");
    buf_puts(&b, "]");
    code = judge_with_file("results/kvcache/50000.json", b.data, NULL, NULL, detail);
    expect("4 MiB and one", code, detail, "IN-JSON", "results/kvcache/50000.json");
}

static void the_manifest_must_tell_the_truth(void **state)
{
    static const char other[] =
        "\"1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"";
    static const struct {
        const char *pointer;
        const char *json;
        const char *code;
        const char *detail;
    } rows[] = {
        {"/definition/experiment_sha256", other, "IN-MANIFEST", "another experiment"},
        {"/definition/policy_sha256", other, "IN-MANIFEST", "another policy"},
        {"/gate", "\"other\"", "IN-MANIFEST", "definition.json defines gate kvcache-50k"},
        {"/project", "\"demo/other\"", "IN-MANIFEST", "belongs to project demo/kvcache"},
        {"/source/start/files", "4", "IN-MANIFEST", "have one fingerprint and differ"},
        {"/source/end/files", "4", "IN-MANIFEST", "have one fingerprint and differ"},
        {"/source/end/untracked", "4", "IN-MANIFEST", "have one fingerprint and differ"},
        {"/source/start/scheme", "\"mine\"", "IN-MANIFEST", "known fingerprint scheme"},
        {"/class", "\"other\"", "IN-MANIFEST", "is for machine class demo-vm"},
        {"/build/exit_code", "3", "IN-MANIFEST", "build did not exit with 0"},
        {"/build/exit_code", "null", "IN-MANIFEST", "build did not exit with 0"},
        {"/build/command", "[\"make\"]", "IN-MANIFEST", "build command is not the definition's"},
        {"/executable/resolved", "\"path\"", "IN-MANIFEST", "was not found as"},
        {"/conditioning/steps", "[{\"name\":\"warm\"}]", "IN-MANIFEST", "not the digest of"},
        {"/conditioning/sha256", other, "IN-MANIFEST", "not the digest of"},
        {"/phase_markers", "[]", "IN-MANIFEST", "required phase marker 'window_start'"},
        {"/phase_markers/0/phase", "\"late\"", "IN-MANIFEST", "'late' is not in the definition"},
        {"/phase_markers",
         "[{\"phase\":\"window_start\",\"kind\":\"actual\",\"elapsed_ms\":1},"
         "{\"phase\":\"window_start\",\"kind\":\"actual\",\"elapsed_ms\":2}]",
         "IN-MANIFEST", "repeated or out of order"},
        {"/exit_code", "1", "IN-MANIFEST", "did not exit with 0"},
        {"/files/0/size", "1", "IN-HASH", "bytes, the manifest says 1"},
        {"/files/0/sha256", other, "IN-HASH", "does not have the sha256"},
        {"/files", "[]", "IN-MANIFEST", "empty"},
        {"/attempt", "2", "VALID", ""},
        {"/started_at", "\"0001-01-01T00:00:00Z\"", "IN-MANIFEST", "0001-01-01T00:00:00Z"},
        {"/started_at", "\"2024-11-29T14:15:01Z\"", "IN-MANIFEST", "says another moment"},
        {"/started_at", "\"2024-11-29T14:15:04Z\"", "IN-MANIFEST", "says another moment"},
        {"/started_at", "\"2024-11-29T14:15:03.9Z\"", "VALID", ""},
        {"/run", "\"20241129T141502Z-00000000\"", "VALID", ""},
        {"/run", "\"20991129T141502Z-9c1e07ab\"", "IN-MANIFEST", "20991129T141502Z"},
        {"/finished_at", "\"2024-11-29T14:22:01Z\"", "IN-MANIFEST",
         "finished_at is 2024-11-29T14:22:01Z, which is after the time of receipt, "
         "2024-11-29T14:17:00Z"},
        {"/finished_at", "\"2024-11-29T14:22:00Z\"", "VALID", ""},
        {"/finished_at", "\"2024-11-29T14:15:30Z\"", "IN-MANIFEST",
         "ran for 59000 ms, the manifest that the run lasted 28000 ms"},
        {"/mode", "\"cpu\"", "IN-MANIFEST", "has no such mode"},
        {"/executable/size", "0", "IN-MANIFEST", "0 bytes"},
        {"/build/rejected_patterns", "[]", "IN-MANIFEST", "rejects LD_*"},
        {"/build/rejected_patterns", "[\"LD_*\",\"X\"]", "IN-MANIFEST", "rejects X"},
        {"/build/profile", "{\"allocator\":\"jemalloc\"}", "IN-MANIFEST", "profile.allocator"},
        {"/build/profile", "{\"expected\":{\"lto\":true}}", "IN-MANIFEST", "profile.expected"},
        {"/machine/facts/cpu_model", "\"Better CPU\"", "IN-MANIFEST",
         "machine/facts/cpu_model is \"Better CPU\", host.json says \"Test CPU\""},
        {"/machine/facts", "{\"cpu_model\":\"Test CPU\",\"more\":\"x\"}", "IN-MANIFEST",
         "machine/facts/more is \"x\", host.json says nothing"},
        {"/machine/readings", "{\"mhz\":1}", "IN-MANIFEST", "machine/readings/mhz is 1"},
        {"/interference/before", "{\"load\":1}", "IN-MANIFEST", "interference/before/load is 1"},
        {"/interference/during", "null", "IN-MANIFEST", "interference/during is null"},
        {"/coverage/0/samples", "51", "IN-MANIFEST", "samples, is 51, the report says 50"},
        {"/coverage/0/complete", "false", "IN-MANIFEST", "complete, is false"},
        {"/coverage/0/window", "\"x\"", "IN-MANIFEST", "names window x"},
        {"/coverage", "[]", "IN-MANIFEST", "have steady"},
        {"/build/environment/CFLAGS", "\"-O0\"", "IN-MANIFEST",
         "environment of the build/CFLAGS is \"-O0\", environment.json says nothing"},
        {"/build/environment/LC_ALL", "\"de\"", "IN-MANIFEST",
         "environment of the build/LC_ALL is \"de\", environment.json says \"C\""},
        {"/environment/TZ", "\"UTC\"", "IN-MANIFEST",
         "environment of the program/TZ is \"UTC\", environment.json says \"CET\""},
        {"/environment", "{}", "IN-MANIFEST", "environment of the program/PATH is nothing"},
        {"/environment", "null", "IN-MANIFEST", "environment is null"},
        {"/baseline",
         "{\"id\":\"b-20241129T141502Z-9c1e07ab\",\"evidence_sha256\":null,"
         "\"manifest_sha256\":null}",
         "IN-MANIFEST", "holds no snapshot"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char detail[ERR_TEXT_MAX] = "";
        const char *code = judge_with_file(NULL, NULL, rows[i].pointer, rows[i].json, detail);

        expect(rows[i].pointer, code, detail, rows[i].code, rows[i].detail);
    }
}

#define DEFAULTS_OPEN                                                                              \
    "{\"PATH\":\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\",\"LANG\":"         \
    "\"C.UTF-8\",\"TZ\":\"UTC\",\"TMPDIR\":\"/tmp\""
#define DEFAULTS DEFAULTS_OPEN "}"
#define ENVIRONMENT(more, passed, set)                                                             \
    "{\"build\":{\"defaults\":" DEFAULTS_OPEN more "},\"passed\":{" passed "},\"set\":{" set "}}}"

/* Companion documents say the same as the manifest. */
static void companions_must_agree(void **state)
{
    static const struct {
        const char *name;
        const char *text;
        const char *detail;
    } rows[] = {
        {"host.json", "{}", "machine/facts is {"},
        {"host.json",
         "{\"facts\":{\"cpu_model\":\"Test CPU\",\"governor\":\"powersave\"},\"readings\":{},"
         "\"before\":{},\"during\":{}}",
         "machine/facts/governor is null, host.json says \"powersave\""},
        {"environment.json", "{}", "gives the build PATH nothing by default"},
        {"environment.json", "[]", "gives the build PATH nothing by default"},
        {"environment.json", "{\"build\":{\"defaults\":" DEFAULTS "}}",
         "environment.json says nothing"},
        {"environment.json",
         "{\"build\":{\"defaults\":{\"PATH\":\"/evil\",\"LANG\":\"C.UTF-8\",\"TZ\":\"UTC\","
         "\"TMPDIR\":\"/tmp\"},\"passed\":{},\"set\":{}}}",
         "gives the build PATH \"/evil\" by default, every runner gives /usr/local/sbin"},
        {"environment.json",
         "{\"build\":{\"defaults\":{\"PATH\":7,\"LANG\":\"C.UTF-8\",\"TZ\":\"UTC\","
         "\"TMPDIR\":\"/tmp\"},\"passed\":{},\"set\":{}}}",
         "gives the build PATH 7 by default"},
        {"environment.json", ENVIRONMENT(",\"HOME\":\"/\"", "", ""), "gives the build 5 variables"},
        {"environment.json", ENVIRONMENT("", "\"CFLAGS\":\"-O0\"", ""),
         "passes CFLAGS to the build, the definition does not allow it"},
        {"environment.json", ENVIRONMENT("", "\"LD_BIND_NOW\":\"1\"", ""),
         "passes LD_BIND_NOW to the build, the definition rejects it"},
        {"environment.json", ENVIRONMENT("", "\"LC_ALL\":\"de\"", ""),
         "environment of the build/LC_ALL is \"C\", environment.json says \"de\""},
        {"environment.json", ENVIRONMENT("", "", "\"CFLAGS\":\"-O0\""),
         "sets {\"CFLAGS\":\"-O0\"} for the build, the definition sets nothing"},
        {"baseline/manifest.json", "{}", "names no baseline, the archive holds a snapshot"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char detail[ERR_TEXT_MAX] = "";
        const char *code = judge_with_file(rows[i].name, rows[i].text, NULL, NULL, detail);

        expect(rows[i].name, code, detail, "IN-MANIFEST", rows[i].detail);
    }
}

#define HOST(readings, before, during, usage)                                                      \
    "{\"facts\":{\"cpu_model\":\"Test CPU\",\"governor\":null},\"readings\":" readings             \
    ",\"before\":" before ",\"during\":" during usage "}"
#define LOAD "{\"load\":0.5}"
#define BEFORE "{\"secs\":1,\"other_cpu_pct\":1}"
#define DURING "{\"secs\":59,\"other_cpu_pct\":2}"
#define WALL(ms) ",\"usage\":{\"wall_ms\":" ms "}"
#define NOISY "{\"secs\":1,\"other_cpu_pct\":50}"
#define LONG "{\"secs\":99999,\"other_cpu_pct\":2}"
#define SHORT "{\"secs\":3,\"other_cpu_pct\":2}"

/* A package whose parts contradict each other, though every hash is right. */
static void what_a_run_left_must_agree(void **state)
{
    static const char profile[] = "profile/perf.data";
    static const char host[] = "host.json";
    static const char written[] = "results/kvcache/50000.json.as-written";
    static const struct {
        const char *file;
        const char *text;
        const char *pointer;
        const char *json;
        const char *detail;
    } rows[] = {
        {host, HOST("{\"load\":9}", BEFORE, DURING, WALL("59000")), "/machine/readings",
         "{\"load\":9}", "host reading load is 9"},
        {host, HOST("{}", BEFORE, DURING, WALL("59000")), "/machine/readings", "{}",
         "host reading load is unknown"},
        {host, HOST(LOAD, NOISY, DURING, WALL("59000")), "/interference/before", NOISY,
         "not quiet before the run: CPU of other processes (% of a core) is 50.00, the gate allows "
         "5.00"},
        {host, HOST(LOAD, BEFORE, NOISY, WALL("59000")), "/interference/during", NOISY,
         "not quiet during the run"},
        {host, HOST(LOAD, BEFORE, "{}", WALL("59000")), "/interference/during", "{}",
         "is unknown here and the gate limits it"},
        {host, HOST(LOAD, BEFORE, "null", WALL("59000")), "/interference/during", "null",
         "is unknown here and the gate limits it"},
        {host, HOST(LOAD, BEFORE, LONG, WALL("59000")), "/interference/during", LONG,
         "interference.during says 99999000 ms, the run lasted 60000 ms"},
        {host, HOST(LOAD, LONG, DURING, WALL("59000")), "/interference/before", LONG,
         "interference.before says 99999000 ms, the run lasted 60000 ms"},
        {host, HOST(LOAD, BEFORE, SHORT, WALL("59000")), "/interference/during", SHORT,
         "the program ran for 59000 ms, interference.during says 3000 ms"},
        {host, HOST(LOAD, BEFORE, DURING, ""), NULL, NULL, "how long the program ran"},
        {host, HOST(LOAD, BEFORE, DURING, WALL("-1")), NULL, NULL, "ran for -1 ms"},
        {"samples/process.csv", "t_ms,rss_kib\n0,4096\n70000,4100\n", NULL, NULL,
         "a sample was taken after 70000 ms, host.json says that the program ran for 59000 ms"},
        {"samples/process.csv", "t_ms,rss_kib\n0,x\n", NULL, NULL, "samples/process.csv"},
        {NULL, NULL, "/phase_markers/0/elapsed_ms", "1000000000",
         "phase marker 'window_start' came after 1000000000 ms, host.json says that the program "
         "ran "
         "for 59000 ms"},
        {NULL, NULL, "/environment", "null", "environment is null"},
        {NULL, NULL, "/finished_at", "\"2024-11-29T14:15:02Z\"", "the run lasted 0 ms"},
        {NULL, NULL, "/executable/mapped", "[]", "executed nothing of sha256 (none)"},
        {NULL, NULL, "/executable/sha256",
         "\"0000000000000000000000000000000000000000000000000000000000000000\"",
         "the executable's is 0000"},
        {NULL, NULL, "/build/profile", "{\"toolchain\":\"evil\"}",
         "build.profile.toolchain is evil, its machine.facts.toolchain is nothing"},
        {written, "{\"scenario\":\"kvcache\",\"results\":{\"rate\":5000}}\n", NULL, NULL,
         "report/results is {\"rate\":50000}, results/kvcache/50000.json.as-written says "
         "{\"rate\":5000}"},
        {written, "{\"scenario\":\"kvcache\"}\n", NULL, NULL, "report/results is"},
        {written, "{\"resources\":{}}\n", NULL, NULL, "not a section that a runner added"},
        {written, "[]", NULL, NULL, "not a section that a runner added"},
        {written, "x", NULL, NULL, "as-written"},
        {written, NULL, NULL, NULL, "as-written' is not in the archive"},
        {"build.log", NULL, NULL, NULL, "'build.log' is not in the archive"},
        {"run.log", NULL, NULL, NULL, "'run.log' is not in the archive"},
        {"samples/process.csv", NULL, NULL, NULL, "'samples/process.csv' is not in the archive"},
        {"audit.md", NULL, NULL, NULL, "'audit.json' is in the archive, 'audit.md' is not"},
        {profile, "x", NULL, NULL, "mode clean although 'profile/perf.data'"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char detail[ERR_TEXT_MAX] = "";
        const char *code =
            judge_with_file(rows[i].file, rows[i].text, rows[i].pointer, rows[i].json, detail);

        expect(rows[i].detail, code, detail, "IN-MANIFEST", rows[i].detail);
    }
}

/* What is accepted and what is compared must be the same report. */
static void the_report_is_the_one_the_definition_names(void **state)
{
    char detail[ERR_TEXT_MAX] = "";
    const char *code =
        judge_with_file("results/other/1.json", "{\"load\":{\"rate\":1},\"results\":{\"rate\":99}}",
                        "/report", "\"other/1.json\"", detail);

    (void) state;
    expect("/report", code, detail, "IN-MANIFEST",
           "the definition's report is kvcache/50000.json, the manifest names other/1.json");
}

static void a_manifest_that_is_not_json_is_refused(void **state)
{
    static const char *const texts[] = {"", "{}", "{\"schema\":\"cleanrun-manifest/2\"",
                                        "\xff\xfe"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO_BUF struct buf forged = {.data = NULL};
        const struct change change = {MANIFEST_NAME, texts[i], strlen(texts[i])};
        char detail[ERR_TEXT_MAX] = "";
        const char *code;

        fixture_rebuild(tar, tar_len, &change, 1, &forged);
        code = fixture_judge_signed(&fx, forged.data, forged.len, detail);
        expect(texts[i], code, detail, "IN-MANIFEST", "manifest.json");
    }
}

static void an_index_made_while_receiving_gives_the_same_answer(void **state)
{
    AUTO_VERIFY_STREAM struct verify_stream *s = verify_stream_new();
    AUTO_ARCHIVE_INDEX struct archive_index *x = NULL;
    AUTO_FREE char *copy = malloc(tar_len);
    struct verify_input in = {.keyring = fx.ring};
    char detail[ERR_TEXT_MAX] = "";
    const char *code;

    (void) state;
    assert_non_null(s);
    assert_non_null(copy);
    for (size_t i = 0; i < tar_len; i += 1000)
        verify_stream_feed(s, tar + i, tar_len - i < 1000 ? tar_len - i : 1000);
    MUST(verify_stream_finish(s, &x, E));
    in.index = x;
    judge("indexed", &in, envelope, envelope_len, "VALID", "");
    /* The stored file was damaged after it was received: what is read is checked again. */
    memcpy(copy, tar, tar_len);
    copy[x->members[0].offset + 3] ^= 1;
    code = fixture_judge(&fx, copy, tar_len, envelope, envelope_len, &in, detail);
    expect("damaged manifest", code, detail, "IN-HASH", "damaged");
    memcpy(copy, tar, tar_len);
    copy[archive_index_find(x, "definition.json")->offset] ^= 1;
    code = fixture_judge(&fx, copy, tar_len, envelope, envelope_len, &in, detail);
    expect("damaged definition", code, detail, "IN-HASH", "damaged");
    code = fixture_judge(&fx, tar, tar_len - 1, envelope, envelope_len, &in, detail);
    expect("shortened", code, detail, "IN-HASH", "size");
}

/* Property: whatever byte of the archive changes, the answer is not VALID. */
static void no_changed_byte_of_the_archive_is_valid(void **state)
{
    AUTO_FREE char *copy = malloc(tar_len);
    uint64_t seed = 11;

    (void) state;
    assert_non_null(copy);
    memcpy(copy, tar, tar_len);
    for (size_t i = 0; i < tar_len; i++) {
        char mask = (char) (1u << test_random_below(&seed, 8));

        copy[i] ^= mask;
        if (strcmp(fixture_judge(&fx, copy, tar_len, envelope, envelope_len, NULL, NULL),
                   "IN-HASH") != 0)
            fail_msg("byte %zu", i);
        copy[i] ^= mask;
    }
}

/* The same when the liar also holds the key and signs the changed archive, but cannot change what
 * was stated about its manifest. */
static void no_changed_byte_is_valid_even_when_signed_again(void **state)
{
    AUTO_MANIFEST struct manifest m = {.document = NULL};
    AUTO_FREE char *path = test_join(fx.run, MANIFEST_NAME);
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *copy = malloc(tar_len);
    size_t text_len = 0;
    uint64_t seed = 13;

    (void) state;
    assert_non_null(copy);
    text = test_read_path(path, &text_len);
    MUST(manifest_parse(text, text_len, &m, E));
    memcpy(copy, tar, tar_len);
    for (size_t k = 0; k < 2000; k++) {
        size_t i =
            k < 600 ? k : test_random_below(&seed, tar_len); /* the first header, then anywhere */
        char mask = (char) (1u << test_random_below(&seed, 8));
        AUTO_FREE char *env = NULL;
        struct digest d;
        size_t len = 0;

        copy[i] ^= mask;
        d = digest_of(copy, tar_len);
        MUST(attest_run(&m, &d, tar_len, fx.key, &env, &len, E));
        if (strcmp(fixture_judge(&fx, copy, tar_len, env, len, NULL, NULL), "VALID") == 0)
            fail_msg("byte %zu", i);
        copy[i] ^= mask;
    }
}

/* Only the hint and unknown members are outside the signature; a change there must leave the signed
 * parts as they were. */
static void no_changed_byte_of_the_envelope_is_valid(void **state)
{
    AUTO_DSSE struct dsse want = {.payload_type = NULL};
    AUTO_FREE char *copy = malloc(envelope_len);
    uint64_t seed = 17;
    size_t valid = 0;

    (void) state;
    assert_non_null(copy);
    MUST(dsse_parse(envelope, envelope_len, &want, E));
    memcpy(copy, envelope, envelope_len);
    for (size_t i = 0; i < envelope_len; i++) {
        char mask = (char) (1u << test_random_below(&seed, 8));

        copy[i] ^= mask;
        if (strcmp(fixture_judge(&fx, tar, tar_len, copy, envelope_len, NULL, NULL), "VALID") ==
            0) {
            AUTO_DSSE struct dsse got = {.payload_type = NULL};

            MUST(dsse_parse(copy, envelope_len, &got, E));
            assert_int_equal(got.payload_len, want.payload_len);
            assert_memory_equal(got.payload, want.payload, got.payload_len);
            assert_string_equal(got.payload_type, want.payload_type);
            assert_int_equal(got.signatures[0].sig_len, want.signatures[0].sig_len);
            assert_memory_equal(got.signatures[0].sig, want.signatures[0].sig,
                                got.signatures[0].sig_len);
            assert_string_not_equal(got.signatures[0].keyid, want.signatures[0].keyid);
            valid++;
        }
        copy[i] ^= mask;
    }
    assert_true(valid < 60); /* "keyid" and its value; a final newline may become another space */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealed_evidence_is_valid),
        cmocka_unit_test(without_any_one_proof_nothing_is_valid),
        cmocka_unit_test(an_archive_without_attestation_is_not_read),
        cmocka_unit_test(later_stages_are_not_run),
        cmocka_unit_test(the_key_must_be_trusted_for_this),
        cmocka_unit_test(a_signature_by_a_stranger_is_refused),
        cmocka_unit_test(a_broken_signature_is_told_from_a_strangers),
        cmocka_unit_test(the_statement_must_be_ours_and_about_these_bytes),
        cmocka_unit_test(other_archives_do_not_fit_the_statement),
        cmocka_unit_test(members_must_be_what_the_manifest_lists),
        cmocka_unit_test(json_members_must_be_strict_json),
        cmocka_unit_test(a_deep_or_huge_report_is_refused),
        cmocka_unit_test(the_manifest_must_tell_the_truth),
        cmocka_unit_test(companions_must_agree),
        cmocka_unit_test(what_a_run_left_must_agree),
        cmocka_unit_test(the_report_is_the_one_the_definition_names),
        cmocka_unit_test(a_manifest_that_is_not_json_is_refused),
        cmocka_unit_test(an_index_made_while_receiving_gives_the_same_answer),
        cmocka_unit_test(no_changed_byte_of_the_archive_is_valid),
        cmocka_unit_test(no_changed_byte_is_valid_even_when_signed_again),
        cmocka_unit_test(no_changed_byte_of_the_envelope_is_valid),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
