/* From upload to verdict: what is stored, repeated, refused, and what a refusal leaves behind. */
#include "tests/server/store_fixture.h"

#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "evidence/dsse.h"

static void first_run_has_no_baseline(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package p;
    AUTO_JSON cJSON *verdict = NULL;

    store_fixture_run(f, NULL, "NON_COMPARABLE", &p);
    verdict = stored(f, p.run, STORE_VERDICT);
    assert_string_equal(text_at(verdict, "/schema"), "cleanrun-verdict/1");
    assert_string_equal(text_at(verdict, "/reasons/0/code"), "NC-BASELINE-NONE");
    assert_true(cJSON_IsNull(at(verdict, "/baseline")));
    assert_string_equal(text_at(verdict, "/acceptance/verdict"), "PASS");
    package_free(&p);
}

/* While it stands, and no longer when its evidence is damaged. */
static void a_verdict_is_given_as_it_was_stored(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_FREE char *stored_text = NULL;
    AUTO_FREE char *given = NULL;
    AUTO_FREE char *fallen = NULL;
    struct package p;
    size_t stored_len = 0;
    size_t len = 0;

    store_fixture_run(f, NULL, "NON_COMPARABLE", &p);
    MUST(store_run_document(f->store, p.run, STORE_VERDICT, &stored_text, &stored_len, E));
    MUST(doc_verdict(f->store, p.run, &given, &len, E));
    assert_int_equal(len, stored_len);
    assert_memory_equal(given, stored_text, len);
    store_fixture_flip(f, p.hex, 3000);
    MUST(doc_verdict(f->store, p.run, &fallen, &len, E));
    assert_int_equal(len, strlen(fallen));
    assert_non_null(strstr(fallen, "\"verdict\": \"INVALID\""));
    assert_non_null(strstr(fallen, "\"IN-HASH\""));
    package_free(&p);
}

static void repeated_upload_gets_the_same_answer(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package p;
    struct ingest_result first;
    struct ingest_result again;

    package_make(&(struct package_options){.probes = 1.3}, f->key, &p);
    assert_true(store_fixture_put(f, p.archive, p.archive_len));
    assert_false(store_fixture_put(f, p.archive, p.archive_len));
    store_fixture_post(f, PACKAGE_GATE, p.envelope, p.envelope_len, &first);
    assert_int_equal(first.outcome, INGEST_STORED);
    store_fixture_post(f, PACKAGE_GATE, p.envelope, p.envelope_len, &again);
    assert_int_equal(again.outcome, INGEST_REPEATED);
    assert_int_equal(first.body_len, again.body_len);
    assert_memory_equal(first.body, again.body, first.body_len);
    ingest_result_fini(&again);
    store_fixture_reopen(f);
    store_fixture_post(f, PACKAGE_GATE, p.envelope, p.envelope_len, &again);
    assert_int_equal(again.outcome, INGEST_REPEATED);
    assert_memory_equal(first.body, again.body, first.body_len);
    ingest_result_fini(&again);
    ingest_result_fini(&first);
    package_free(&p);
}

static void other_archive_for_a_used_run_is_a_conflict(void **state)
{
    struct store_fixture *f = fixture(state);
    struct package p;
    struct package other;
    struct ingest_result r;
    struct store_run row;

    store_fixture_run(f, NULL, "NON_COMPARABLE", &p);
    package_make(&(struct package_options){.run = p.run, .probes = 1.2}, f->key, &other);
    store_fixture_push(f, &other, &r);
    assert_int_equal(r.outcome, INGEST_CONFLICT);
    assert_null(r.body);
    ingest_result_fini(&r);
    MUST(store_run_get(f->store, p.run, &row, E));
    assert_true(digest_equal(&row.archive, &p.digest));
    store_run_fini(&row);
    package_free(&other);
    package_free(&p);
}

static void diagnostic_and_build_only_runs_have_no_verdict(void **state)
{
    struct store_fixture *f = fixture(state);
    static const struct package_options options[] = {{.mode = "memory"}, {.build_only = true}};

    for (size_t i = 0; i < 2; i++) {
        AUTO_FREE char *bytes = NULL;
        struct err e = ERR_INIT;
        struct store_run row;
        struct package p;
        size_t len = 0;

        store_fixture_run(f, &options[i], "null", &p);
        MUST(store_run_get(f->store, p.run, &row, E));
        assert_null(row.verdict);
        assert_int_equal(store_run_document(f->store, p.run, STORE_VERDICT, &bytes, &len, &e), -1);
        assert_int_equal(e.kind, ERR_NOTFOUND);
        store_run_fini(&row);
        package_free(&p);
    }
}

static size_t attempts(struct store_fixture *f, bool with_gate)
{
    AUTO_JSON cJSON *doc = NULL;
    struct err e = ERR_INIT;

    if (with_gate) {
        if (doc_gate(f->store, PACKAGE_PROJECT, PACKAGE_GATE, &doc, &e) < 0)
            return 0;
        return (size_t) cJSON_GetArraySize(at(doc, "/invalid_attempts"));
    }
    MUST(doc_project(f->store, PACKAGE_PROJECT, &doc, E));
    return (size_t) cJSON_GetArraySize(at(doc, "/unsigned_attempts"));
}

static void unsigned_uploads_touch_no_gate_and_no_commit(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_JSON cJSON *check = NULL;
    struct private_key *stranger = package_key_new();
    struct ingest_result r;
    struct package p;
    struct package good;

    package_make(&(struct package_options){.probes = 1}, stranger, &p);
    store_fixture_push(f, &p, &r);
    assert_string_equal(store_fixture_code(&r), "IN-KEY");
    ingest_result_fini(&r);
    store_fixture_post(f, PACKAGE_GATE, "not an envelope", 15, &r);
    assert_string_equal(store_fixture_code(&r), "IN-SIGNATURE");
    ingest_result_fini(&r);
    /* A valid envelope about an archive that was changed afterwards. */
    package_make(&(struct package_options){.probes = 1}, f->key, &good);
    good.envelope[good.envelope_len / 2] ^= 1;
    store_fixture_push(f, &good, &r);
    assert_int_equal(r.outcome, INGEST_INVALID);
    ingest_result_fini(&r);
    assert_int_equal(attempts(f, false), 3);
    assert_int_equal(attempts(f, true), 0);
    MUST(doc_check(f->store, PACKAGE_PROJECT, PACKAGE_COMMIT, &check, E));
    assert_string_equal(text_at(check, "/verdict"), "PENDING");
    package_free(&good);
    package_free(&p);
    private_key_free(stranger);
}

static void signed_lies_are_attempts_of_the_gate(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_JSON cJSON *check = NULL;
    AUTO_JSON cJSON *verdict = NULL;
    struct package p;

    store_fixture_refuse(f, f->key, &(struct package_options){.lie = PACKAGE_ACCEPTANCE_VALUE},
                         "IN-ACCEPTANCE");
    assert_int_equal(attempts(f, true), 1);
    assert_int_equal(attempts(f, false), 0);
    MUST(doc_check(f->store, PACKAGE_PROJECT, PACKAGE_COMMIT, &check, E));
    assert_string_equal(text_at(check, "/verdict"), "INVALID");
    /* The next run counts it. */
    store_fixture_run(f, NULL, "NON_COMPARABLE", &p);
    verdict = stored(f, p.run, STORE_VERDICT);
    assert_int_equal(at(verdict, "/attempt/n")->valueint, 2);
    assert_int_equal(at(verdict, "/attempt/of")->valueint, 2);
    assert_string_equal(text_at(verdict, "/attempt/previous/0/verdict"), "INVALID");
    package_free(&p);
}

/* Wherever a message cuts it: the refusal is answered and kept, and every page that tells of it is
 * made. */
static void lies_in_any_script_are_refused_like_others(void **state)
{
    struct store_fixture *f = fixture(state);
    static const char *const leads[] = {"", "a", "ab"};
    static const struct store_viewer viewer = {.all = true};

    for (size_t i = 0; i < ARRAY_LEN(leads); i++) {
        AUTO_JSON cJSON *home = NULL;
        char forged[256];
        size_t n = (size_t) snprintf(forged, sizeof forged, "[\"%s", leads[i]);

        for (size_t k = 0; k < 60; k++)
            n += (size_t) snprintf(forged + n, sizeof forged - n, "\xe2\x82\xac");
        (void) snprintf(forged + n, sizeof forged - n, "\"]"); /* fits */
        store_fixture_refuse(
            f, f->key,
            &(struct package_options){.forge = "/build/rejected_patterns", .forged = forged},
            "IN-MANIFEST");
        assert_int_equal(attempts(f, true), i + 1);
        MUST(doc_home(f->store, &viewer, &home, E));
        assert_string_equal(text_at(home, "/gates/0/verdict"), "INVALID");
    }
}

static void keys_count_at_the_time_of_receipt(void **state)
{
    struct store_fixture *f = fixture(state);
    struct ingest_result r;
    struct package p;
    struct package q;

    store_fixture_run(f, NULL, "NON_COMPARABLE", &p);
    MUST(manage_runner_revoke(f->store, "metal-01", "lost", 0, NULL, E));
    package_make(&(struct package_options){.probes = 1}, f->key, &q);
    store_fixture_push(f, &q, &r);
    assert_string_equal(store_fixture_code(&r), "IN-KEY");
    ingest_result_fini(&r);
    /* What was accepted before stays accepted. */
    store_fixture_post(f, PACKAGE_GATE, p.envelope, p.envelope_len, &r);
    assert_int_equal(r.outcome, INGEST_REPEATED);
    ingest_result_fini(&r);
    package_free(&q);
    package_free(&p);
}

static void expired_and_future_keys_are_refused(void **state)
{
    struct store_fixture *f = fixture(state);
    static const struct {
        const char *name;
        int64_t from, to;
    } times[] = {{"old", 1, 2}, {"new", INT64_C(32503680000000000), 0}};

    for (size_t i = 0; i < 2; i++) {
        struct private_key *key = package_key_new();
        AUTO_FREE char *pem = package_key_pem(key);
        const struct manage_runner runner = {.name = times[i].name,
                                             .machine_class = PACKAGE_CLASS,
                                             .project = PACKAGE_PROJECT,
                                             .key_pem = pem,
                                             .not_before_us = times[i].from,
                                             .not_after_us = times[i].to};

        MUST(manage_runner_add(f->store, &runner, E));
        store_fixture_refuse(f, key, &(struct package_options){.probes = 1}, "IN-KEY");
        private_key_free(key);
    }
}

static void evidence_of_elsewhere_is_refused(void **state)
{
    struct store_fixture *f = fixture(state);
    struct private_key *other_key;

    store_fixture_refuse(f, f->key, &(struct package_options){.project = "demo/other"},
                         "IN-MANIFEST");
    store_fixture_refuse(f, f->key, &(struct package_options){.gate = "other-gate"}, "IN-MANIFEST");
    store_fixture_refuse(f, f->key, &(struct package_options){.machine_class = "faster"}, "IN-KEY");
    MUST(manage_project_add(f->store, "demo/other", false, E));
    other_key = store_fixture_runner(f, "elsewhere", PACKAGE_CLASS, "demo/other");
    store_fixture_refuse(f, other_key, &(struct package_options){.probes = 1}, "IN-KEY");
    private_key_free(other_key);
}

/* A signed definition that cannot judge is refused with its reason, not as a bad request. */
static void definition_that_cannot_judge_is_invalid(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "project: " PACKAGE_PROJECT "\n"
        "gates:\n"
        "  " PACKAGE_GATE ":\n"
        "    class: " PACKAGE_CLASS "\n"
        "    build: {command: [make], executable: {from: path, path: kvcache}}\n"
        "    run: {command: ['{executable}'], report: " PACKAGE_REPORT "}\n"
        "    modes: {cpu: {command: [prof]}}\n"
        "    identity: [{path: /load/capacity, require: required}]\n"
        "    accept: {limits: [{path: /results/rate, op: '>=', value: 1, unit: 1/s}]}\n"
        "    audit:\n"
        "      paths: {required: [" PACKAGE_REPORT "]}\n"
        "      metrics: [{path: /results/rate, unit: 1/s, worse: lower, tolerance_pct: 1, gated: "
        "false}]\n";
    static const char *const modes[] = {"clean", "cpu"};
    struct store_fixture *f = fixture(state);

    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct ingest_result r;
        struct package p;

        package_make(&(struct package_options){.definition = yaml, .mode = modes[i]}, f->key, &p);
        store_fixture_push(f, &p, &r);
        assert_string_equal(store_fixture_code(&r), "IN-JSON");
        assert_non_null(strstr(r.err.text, "at least one metric must be gated"));
        assert_int_equal(attempts(f, true), i + 1);
        ingest_result_fini(&r);
        package_free(&p);
    }
}

#define OTHER_ARCHIVE "1111111111111111111111111111111111111111111111111111111111111111"
#define OTHER_SCHEME                                                                               \
    "{\"schema\":\"cleanrun-source/1\",\"scheme\":\"rvoip-v1\",\"commit\":"                        \
    "\"1f0c2a34b56d78e90123456789abcdef01234567\",\"tree\":"                                       \
    "\"1f0c2a34b56d78e90123456789abcdef01234567\",\"parents\":[],\"dirty\":false,"                 \
    "\"fingerprint\":\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\","        \
    "\"files\":3,\"untracked\":0}"

/* Signed words that something else in the package, or the clock, contradicts. */
static void forged_words_are_refused_with_both_values(void **state)
{
    static const struct {
        const char *pointer;
        const char *json;
        const char *text;
    } rows[] = {
        {"/started_at", "\"0001-01-01T00:00:00Z\"",
         "started_at is 0001-01-01T00:00:00Z, the run id"},
        {"/started_at", "\"2020-01-01T00:00:00Z\"",
         "started_at is 2020-01-01T00:00:00Z, the run id"},
        {"/finished_at", "\"2099-01-01T00:00:00Z\"",
         "finished_at is 2099-01-01T00:00:00Z, which is after the time of receipt, 20"},
        {"/executable/size", "0", "executable has 0 bytes"},
        {"/executable/name", "\"other\"",
         "the definition's executable is kvcache, the manifest names other"},
        {"/machine/facts/cpu_model", "\"fast\"",
         "machine/facts/cpu_model is \"fast\", host.json says \"same\""},
        {"/executable/mapped", "[{\"name\":\"kvcache\",\"sha256\":\"" OTHER_ARCHIVE "\"}]",
         "executed kvcache of sha256 1111"},
        {"/machine/readings/load", "0.5", "machine/readings/load is 0.5, host.json says nothing"},
        {"/interference/during", "{\"steal_pct\":0}", "interference/during/steal_pct is 0"},
        {"/build/rejected_patterns", "[\"LD_*\"]", "rejects LD_*, the definition does not"},
        {"/build/profile", "{\"allocator\":\"x\"}", "build.profile.allocator"},
        {"/baseline",
         "{\"id\":\"b-20241129T141502Z-9c1e07ab\",\"evidence_sha256\":null,\"manifest_sha256\":"
         "null}",
         "holds no snapshot"},
        {"/source",
         "{\"start\":" OTHER_SCHEME ",\"end\":" OTHER_SCHEME ",\"unchanged\":true,\"ignored\":0}",
         "the definition's fingerprint is cleanrun-source/1, the manifest's is rvoip-v1"},
        {"/coverage",
         "[{\"window\":\"steady\",\"requested_secs\":1,\"actual_secs\":1,\"samples\":9,"
         "\"complete\":"
         "true}]",
         "names window steady"},
    };
    struct store_fixture *f = fixture(state);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ingest_result r;
        struct package p;

        package_make(&(struct package_options){.forge = rows[i].pointer, .forged = rows[i].json},
                     f->key, &p);
        store_fixture_push(f, &p, &r);
        assert_int_equal(r.outcome, INGEST_INVALID);
        assert_string_equal(store_fixture_code(&r), "IN-MANIFEST");
        if (!strstr(text_at(r.problem, "/reasons/0/text"), rows[i].text))
            fail_msg("%s: %s", rows[i].pointer, text_at(r.problem, "/reasons/0/text"));
        assert_int_equal(attempts(f, true), i + 1);
        ingest_result_fini(&r);
        package_free(&p);
    }
}

/* The archive that the manifest calls its baseline is the one that is stored. */
static void the_baselines_archive_is_the_stored_one(void **state)
{
    struct store_fixture *f = fixture(state);
    struct ingest_result r;
    struct package base;
    struct package p;

    package_make(&(struct package_options){.rate = 50000}, f->key, &base);
    store_fixture_push(f, &base, &r);
    assert_int_equal(r.outcome, INGEST_STORED);
    ingest_result_fini(&r);
    for (size_t i = 0; i < 2; i++) {
        AUTO_FREE char *stated = NULL;

        assert_true(asprintf(&stated, "\"%s\"", i ? base.hex : OTHER_ARCHIVE) > 0);
        package_make(&(struct package_options){.baseline_run = base.run_dir,
                                               .forge = "/baseline/evidence_sha256",
                                               .forged = stated},
                     f->key, &p);
        store_fixture_push(f, &p, &r);
        if (i == 0) {
            assert_int_equal(r.outcome, INGEST_INVALID);
            assert_string_equal(store_fixture_code(&r), "IN-AUDIT");
            assert_non_null(strstr(text_at(r.problem, "/reasons/0/text"), base.hex));
            assert_non_null(strstr(text_at(r.problem, "/reasons/0/text"), OTHER_ARCHIVE));
        } else {
            assert_int_equal(r.outcome, INGEST_STORED);
        }
        ingest_result_fini(&r);
        package_free(&p);
    }
    package_free(&base);
}

/* And its snapshot is the one of which the manifest states the digest. */
static void the_snapshot_is_the_stated_one(void **state)
{
    struct store_fixture *f = fixture(state);
    static const char *const stated[] = {"\"" OTHER_ARCHIVE "\"", "null"};
    struct ingest_result r;
    struct package base;
    struct package p;

    store_fixture_baseline(f, NULL, &base);
    for (size_t i = 0; i < ARRAY_LEN(stated); i++) {
        package_make(&(struct package_options){.baseline_run = base.run_dir,
                                               .forge = "/baseline/manifest_sha256",
                                               .forged = stated[i]},
                     f->key, &p);
        store_fixture_push(f, &p, &r);
        assert_string_equal(store_fixture_code(&r), "IN-MANIFEST");
        assert_non_null(strstr(text_at(r.problem, "/reasons/0/text"), "the snapshot has "));
        ingest_result_fini(&r);
        package_free(&p);
    }
    package_free(&base);
}

/* What a conditioning step must have left is looked for again. */
static void steps_without_proof_are_invalid(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "project: " PACKAGE_PROJECT "\n"
        "gates:\n"
        "  " PACKAGE_GATE ":\n"
        "    class: " PACKAGE_CLASS "\n"
        "    build: {command: [make], executable: {from: path, path: kvcache}}\n"
        "    run: {command: ['{executable}'], report: " PACKAGE_REPORT "}\n"
        "    conditioning: [{name: warm, proof: {report: warm/1.json, equal: [/sent, /got], "
        "values: {/errors: 0}}}]\n"
        "    identity: [{path: /load/capacity, require: required}]\n"
        "    accept: {limits: [{path: /results/rate, op: '>=', value: 1, unit: 1/s}]}\n"
        "    audit:\n"
        "      paths: {required: [" PACKAGE_REPORT "]}\n"
        "      metrics: [{path: /results/rate, unit: 1/s, worse: lower, tolerance_pct: 1}]\n";
    static const struct {
        const char *report;
        const char *text; /* NULL: accepted */
    } rows[] = {
        {"{\"sent\":5,\"got\":5,\"errors\":0}", NULL},
        {"{\"sent\":5,\"got\":4,\"errors\":0}",
         "step 'warm' is unproven: /got of warm/1.json is not equal to the others"},
        {"{\"sent\":5,\"got\":5,\"errors\":1}", "/errors of warm/1.json has another value"},
        {"{\"sent\":5,\"got\":5}", "/errors of warm/1.json is absent"},
    };
    struct store_fixture *f = fixture(state);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ingest_result r;
        struct package p;

        package_make(&(struct package_options){.definition = yaml,
                                               .report = "{\"load\":{\"capacity\":1},"
                                                         "\"results\":{\"rate\":9}}",
                                               .step_report = rows[i].report},
                     f->key, &p);
        store_fixture_push(f, &p, &r);
        assert_int_equal(r.outcome, rows[i].text ? INGEST_INVALID : INGEST_STORED);
        if (rows[i].text) {
            assert_string_equal(store_fixture_code(&r), "IN-MANIFEST");
            assert_non_null(strstr(text_at(r.problem, "/reasons/0/text"), rows[i].text));
        }
        ingest_result_fini(&r);
        package_free(&p);
    }
}

/* A step without a command is the program's own: a clean run that passed must have shown it. */
static void steps_that_did_not_show_are_invalid(void **state)
{
    static const char yaml[] =
        "version: 1\n"
        "project: " PACKAGE_PROJECT "\n"
        "gates:\n"
        "  " PACKAGE_GATE ":\n"
        "    class: " PACKAGE_CLASS "\n"
        "    build: {command: [make], executable: {from: path, path: kvcache}}\n"
        "    run: {command: ['{executable}'], report: " PACKAGE_REPORT "}\n"
        "    conditioning: [{name: warm}]\n"
        "    phases: {%smarkers: [warm, a], required: [a]}\n"
        "    modes: {cpu: {command: [prof]}}\n"
        "    identity: [{path: /load/capacity, require: required}]\n"
        "    accept: {limits: [{path: /results/rate, op: '>=', value: 1, unit: 1/s}]}\n"
        "    audit:\n"
        "      paths: {required: [" PACKAGE_REPORT "]}\n"
        "      metrics: [{path: /results/rate, unit: 1/s, worse: lower, tolerance_pct: 1}]\n";
    static const char shown[] = "[{\"phase\":\"warm\",\"kind\":\"actual\",\"elapsed_ms\":0},"
                                "{\"phase\":\"a\",\"kind\":\"actual\",\"elapsed_ms\":0}]";
    static const char only_a[] = "[{\"phase\":\"a\",\"kind\":\"actual\",\"elapsed_ms\":0}]";
    static const char only_warm[] = "[{\"phase\":\"warm\",\"kind\":\"actual\",\"elapsed_ms\":0}]";
    static const char backwards[] = "[{\"phase\":\"warm\",\"kind\":\"actual\",\"elapsed_ms\":5},"
                                    "{\"phase\":\"a\",\"kind\":\"actual\",\"elapsed_ms\":3}]";
    static const struct {
        const char *from;
        const char *markers;
        const char *mode;
        int exit_code;
        const char *text; /* NULL: accepted */
    } rows[] = {
        {"", shown, NULL, 0, NULL},
        {"", only_a, NULL, 0, "conditioning step 'warm' did not show as a phase marker"},
        {"", only_warm, NULL, 0, "without the required phase marker 'a'"},
        {"", backwards, NULL, 0, "came after 3 ms, the one before it after 5 ms"},
        {"", "[]", NULL, 3, NULL}, /* a run that failed says so */
        {"", "[]", "cpu", 0, NULL},
        {"from: report, ", "[]", NULL, 0, NULL}, /* acceptance looks for them in the report */
    };
    struct store_fixture *f = fixture(state);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *definition = NULL;
        struct ingest_result r;
        struct package p;

        assert_true(asprintf(&definition, yaml, rows[i].from) > 0);
        package_make(&(struct package_options){.definition = definition,
                                               .report = "{\"load\":{\"capacity\":1},"
                                                         "\"results\":{\"rate\":9}}",
                                               .markers = rows[i].text ? shown : rows[i].markers,
                                               .forge = rows[i].text ? "/phase_markers" : NULL,
                                               .forged = rows[i].markers,
                                               .mode = rows[i].mode,
                                               .exit_code = rows[i].exit_code},
                     f->key, &p);
        store_fixture_push(f, &p, &r);
        if (r.outcome != (rows[i].text ? INGEST_INVALID : INGEST_STORED))
            fail_msg("row %zu: outcome %d: %s", i, r.outcome, r.err.text);
        if (rows[i].text) {
            assert_string_equal(store_fixture_code(&r), "IN-MANIFEST");
            assert_non_null(strstr(text_at(r.problem, "/reasons/0/text"), rows[i].text));
        }
        ingest_result_fini(&r);
        package_free(&p);
    }
}

/* The project that has the run may be private. */
static void conflict_tells_nothing_of_another_project(void **state)
{
    struct store_fixture *f = fixture(state);
    struct ingest_request request = {.gate = PACKAGE_GATE, .project = "demo/other"};
    struct private_key *other_key = NULL;
    struct ingest_result r;
    struct package mine;
    struct package other;

    store_fixture_run(f, NULL, "NON_COMPARABLE", &mine);
    MUST(manage_project_add(f->store, "demo/other", false, E));
    other_key = store_fixture_runner(f, "elsewhere", PACKAGE_CLASS, "demo/other");
    package_make(&(struct package_options){.project = "demo/other", .run = mine.run}, other_key,
                 &other);
    {
        struct store_project project;
        bool is_new = false;

        (void) store_fixture_put(f, other.archive, other.archive_len);
        MUST(store_project_get(f->store, "demo/other", &project, E));
        MUST(store_blob_put(f->store, project.id, &other.digest, other.archive_len, &is_new, E));
    }
    request.envelope = other.envelope;
    request.envelope_len = other.envelope_len;
    ingest_process(f->store, &request, clock_realtime_us(), &r);
    assert_int_equal(r.outcome, INGEST_CONFLICT);
    assert_null(strstr(r.err.text, mine.hex));
    assert_null(strstr(r.err.text, PACKAGE_PROJECT));
    ingest_result_fini(&r);
    package_free(&other);
    package_free(&mine);
    private_key_free(other_key);
}

static void archive_of_another_project_is_not_there(void **state)
{
    struct store_fixture *f = fixture(state);
    struct ingest_request request = {.gate = PACKAGE_GATE};
    struct ingest_result r;
    struct package p;

    MUST(manage_project_add(f->store, "demo/other", false, E));
    package_make(&(struct package_options){.project = "demo/other"}, f->key, &p);
    (void) store_fixture_put(f, p.archive, p.archive_len); /* in demo/kvcache */
    request.project = "demo/other";
    request.envelope = p.envelope;
    request.envelope_len = p.envelope_len;
    ingest_process(f->store, &request, clock_realtime_us(), &r);
    assert_int_equal(r.outcome, INGEST_NO_BLOB);
    ingest_result_fini(&r);
    package_free(&p);
}

static void tickets_can_be_required(void **state)
{
    struct store_fixture *f = fixture(state);
    const struct manage_project change = {.tickets = "required"};

    MUST(manage_project_set(f->store, PACKAGE_PROJECT, &change, E));
    store_fixture_refuse(f, f->key, &(struct package_options){.probes = 1}, "IN-TICKET");
}

static void damaged_upload_must_be_sent_again(void **state)
{
    struct store_fixture *f = fixture(state);
    struct ingest_result r;
    struct package p;

    package_make(&(struct package_options){.probes = 1.3}, f->key, &p);
    (void) store_fixture_put(f, p.archive, p.archive_len);
    store_fixture_flip(f, p.hex, p.archive_len / 2);
    store_fixture_post(f, PACKAGE_GATE, p.envelope, p.envelope_len, &r);
    assert_int_equal(r.outcome, INGEST_NO_BLOB);
    ingest_result_fini(&r);
    store_fixture_push(f, &p, &r);
    assert_int_equal(r.outcome, INGEST_STORED);
    ingest_result_fini(&r);
    package_free(&p);
}

static void altered_archive_with_its_old_envelope_is_refused(void **state)
{
    struct store_fixture *f = fixture(state);
    struct ingest_request request = {.project = PACKAGE_PROJECT, .gate = PACKAGE_GATE};
    struct digest altered;
    struct ingest_result r;
    struct package p;

    store_fixture_run(f, NULL, "NON_COMPARABLE", &p);
    p.archive[p.archive_len / 2] ^= 1;
    altered = digest_of(p.archive, p.archive_len);
    (void) store_fixture_put(f, p.archive, p.archive_len);
    request.envelope = p.envelope;
    request.envelope_len = p.envelope_len;
    request.archive = &altered;
    ingest_process(f->store, &request, clock_realtime_us(), &r);
    assert_string_equal(store_fixture_code(&r), "IN-HASH");
    ingest_result_fini(&r);
    /* Without naming it, the envelope speaks for the archive that it is about. */
    request.archive = NULL;
    ingest_process(f->store, &request, clock_realtime_us(), &r);
    assert_int_equal(r.outcome, INGEST_REPEATED);
    ingest_result_fini(&r);
    request.archive = &p.digest;
    ingest_process(f->store, &request, clock_realtime_us(), &r);
    assert_int_equal(r.outcome, INGEST_REPEATED);
    ingest_result_fini(&r);
    package_free(&p);
}

struct answers {
    pthread_mutex_t lock;
    pthread_cond_t all;
    size_t n;
    size_t stored;
};

static void note(void *ctx, struct ingest_result *r)
{
    struct answers *a = ctx;

    (void) pthread_mutex_lock(&a->lock);
    a->n++;
    a->stored += r->outcome == INGEST_STORED;
    (void) pthread_cond_signal(&a->all);
    (void) pthread_mutex_unlock(&a->lock);
    ingest_result_fini(r);
}

static void queue_answers_every_request_once(void **state)
{
    struct store_fixture *f = fixture(state);
    struct answers a = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = PTHREAD_COND_INITIALIZER};
    struct ingest *ingest = NULL;
    struct package p[6];
    struct err e = ERR_INIT;

    MUST(ingest_start(f->store, &ingest, E));
    for (size_t i = 0; i < 6; i++) {
        struct ingest_request r = {
            .project = PACKAGE_PROJECT, .gate = PACKAGE_GATE, .done = note, .ctx = &a};

        package_make(&(struct package_options){.probes = 1 + (double) i / 10}, f->key, &p[i]);
        (void) store_fixture_put(f, p[i].archive, p[i].archive_len);
        r.envelope = p[i].envelope;
        r.envelope_len = p[i].envelope_len;
        MUST(ingest_submit(ingest, &r, E));
    }
    ingest_stop(ingest); /* finishes what waits */
    assert_int_equal(a.n, 6);
    assert_int_equal(a.stored, 6);
    for (size_t i = 0; i < 6; i++)
        package_free(&p[i]);
    (void) e;
}

static void signed_verdict_is_stored_and_verifies(void **state)
{
    struct store_fixture *f = fixture(state);
    AUTO_FREE char *envelope = NULL;
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    AUTO_JSON cJSON *statement = NULL;
    struct digest pae;
    struct package p;
    size_t len = 0;

    store_fixture_run(f, NULL, "NON_COMPARABLE", &p);
    MUST(store_run_document(f->store, p.run, STORE_VERDICT_ENVELOPE, &envelope, &len, E));
    MUST(dsse_parse(envelope, len, &d, E));
    MUST(dsse_pae_digest(d.payload_type, d.payload, d.payload_len, &pae, E));
    assert_true(public_key_verify(private_key_public(store_key(f->store)), &pae,
                                  d.signatures[0].sig, d.signatures[0].sig_len));
    statement = parsed((const char *) d.payload, d.payload_len);
    assert_string_equal(text_at(statement, "/predicate/verificationResult"), "FAILED");
    assert_string_equal(text_at(statement, "/subject/0/digest/sha256"), p.hex);
    package_free(&p);
}

#define T(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(first_run_has_no_baseline),
        T(a_verdict_is_given_as_it_was_stored),
        T(repeated_upload_gets_the_same_answer),
        T(other_archive_for_a_used_run_is_a_conflict),
        T(diagnostic_and_build_only_runs_have_no_verdict),
        T(unsigned_uploads_touch_no_gate_and_no_commit),
        T(signed_lies_are_attempts_of_the_gate),
        T(lies_in_any_script_are_refused_like_others),
        T(keys_count_at_the_time_of_receipt),
        T(expired_and_future_keys_are_refused),
        T(evidence_of_elsewhere_is_refused),
        T(definition_that_cannot_judge_is_invalid),
        T(forged_words_are_refused_with_both_values),
        T(the_baselines_archive_is_the_stored_one),
        T(the_snapshot_is_the_stated_one),
        T(steps_without_proof_are_invalid),
        T(steps_that_did_not_show_are_invalid),
        T(conflict_tells_nothing_of_another_project),
        T(archive_of_another_project_is_not_there),
        T(tickets_can_be_required),
        T(damaged_upload_must_be_sent_again),
        T(altered_archive_with_its_old_envelope_is_refused),
        T(queue_answers_every_request_once),
        T(signed_verdict_is_stored_and_verifies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
