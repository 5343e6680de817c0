/* A manifest that says something impossible, unknown or contradictory is no manifest. */
#include "tests/evidence/fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "base/limits.h"

static struct fixture fx;

static int set_up(void **state)
{
    (void) state;
    fixture_init(&fx);
    return 0;
}

static int tear_down(void **state)
{
    (void) state;
    fixture_fini(&fx);
    return 0;
}

struct edit {
    const char *pointer;
    const char *json; /* NULL: removed */
};

static int parse_edited(const struct edit *edits, size_t n, struct manifest *out, struct err *e)
{
    AUTO_JSON cJSON *m = fixture_manifest(&fx);
    AUTO_FREE char *text = NULL;
    size_t len = 0;

    for (size_t i = 0; i < n && edits[i].pointer; i++)
        fixture_set(m, edits[i].pointer, edits[i].json);
    text = fixture_text(m, &len);
    return manifest_parse(text, len, out, e);
}

static void refused(const struct edit *edits, size_t n, const char *expect)
{
    struct manifest m = {.document = NULL};
    struct err e = ERR_INIT;

    if (parse_edited(edits, n, &m, &e) == 0)
        fail_msg("accepted: %s = %s (expected: %s)", edits[0].pointer,
                 edits[0].json ? edits[0].json : "(removed)", expect);
    if (!strstr(e.text, expect))
        fail_msg("%s = %s: expected '%s' in: %s", edits[0].pointer,
                 edits[0].json ? edits[0].json : "(removed)", expect, e.text);
    assert_null(m.document);
}

static void accepted(const struct edit *edits, size_t n)
{
    AUTO_MANIFEST struct manifest m = {.document = NULL};
    struct err e = ERR_INIT;

    if (parse_edited(edits, n, &m, &e) < 0)
        fail_msg("%s = %s: %s", edits[0].pointer, edits[0].json ? edits[0].json : "(removed)",
                 e.text);
}

static void a_valid_manifest_is_read(void **state)
{
    AUTO_MANIFEST struct manifest m = {.document = NULL};
    const struct edit none[] = {{NULL, NULL}};

    (void) state;
    MUST(parse_edited(none, 1, &m, E));
    assert_string_equal(m.project, "demo/kvcache");
    assert_string_equal(m.gate, "kvcache-50k");
    assert_string_equal(m.machine_class, "demo-vm");
    assert_string_equal(m.run, FIXTURE_RUN);
    assert_string_equal(m.mode, "clean");
    assert_int_equal(m.status, MANIFEST_PASS);
    assert_string_equal(m.commit, FIXTURE_COMMIT);
    assert_string_equal(m.report, "kvcache/50000.json");
    assert_int_equal(m.finished_us - m.started_us, 60000000);
    assert_int_equal(m.n_files, 14);
    assert_true(m.has_executable);
    assert_true(m.unchanged);
    assert_false(manifest_is_dirty(&m));
    assert_string_equal(manifest_find(&m, "results/kvcache/50000.json")->role, "report");
    assert_string_equal(manifest_find(&m, "audit.md")->role, "audit-markdown");
    assert_null(manifest_find(&m, "manifest.json"));
}

static void every_member_is_needed_and_no_other_is_known(void **state)
{
    AUTO_JSON cJSON *m = fixture_manifest(&fx);
    size_t n = 0;

    (void) state;
    for (const cJSON *c = m->child; c; c = c->next, n++) {
        char pointer[64];
        const struct edit e[] = {{pointer, NULL}};

        (void) snprintf(pointer, sizeof pointer, "/%s", c->string);
        refused(e, 1, "is missing");
    }
    assert_int_equal(n, 31);
    {
        static const struct edit extra[] = {
            {"/exitcode", "0"},
            {"/source/note", "1"},
            {"/source/start/note", "1"},
            {"/executable/path", "\"x\""},
            {"/definition/x", "1"},
            {"/files/0/mode", "1"},
            {"/machine/host", "1"},
            {"/coverage/0/x", "1"},
            {"/phase_markers/0/x", "1"},
            {"/runner/host", "\"x\""},
            {"/executable/mapped/0/x", "1"},
            {"/build/x", "1"},
            {"/interference/x", "1"},
            {"/conditioning/x", "1"},
        };

        for (size_t i = 0; i < ARRAY_LEN(extra); i++)
            refused(&extra[i], 1, "unknown");
    }
}

static void members_have_their_types(void **state)
{
    static const struct edit rows[] = {
        {"/schema", "\"cleanrun-manifest/1\""},
        {"/project", "\"demo\""},
        {"/project", "\"../x\""},
        {"/gate", "\"UPPER\""},
        {"/gate", "null"},
        {"/class", "\"a b\""},
        {"/run", "\"20261329T141502Z-9c1e07ab\""},
        {"/run", "\"20241129T141502Z-9C1E07AB\""},
        {"/mode", "\"Clean\""},
        {"/status", "\"OK\""},
        {"/status", "true"},
        {"/attempt", "0"},
        {"/attempt", "1.5"},
        {"/attempt", "\"1\""},
        {"/started_at", "\"2026-11-29 14:15:02\""},
        {"/started_at", "\"2024-11-29T14:15:02+01:00\""},
        {"/exit_code", "256"},
        {"/exit_code", "-1"},
        {"/exit_code", "false"},
        {"/signal", "0"},
        {"/report", "\"../50000.json\""},
        {"/report", "\"/50000.json\""},
        {"/report_status", "\"captured\""},
        {"/acceptance_status", "null"},
        {"/audit_status", "\"PASS\""},
        {"/definition/experiment_sha256", "\"00\""},
        {"/source/start/commit", "\"abc\""},
        {"/source/start/commit", "null"},
        {"/source/start/dirty", "0"},
        {"/source/start/fingerprint", "\"" FIXTURE_COMMIT "\""},
        {"/source/start/files", "-1"},
        {"/source/start/parents", "[1]"},
        {"/source/unchanged", "1"},
        {"/source/ignored", "-1"},
        {"/source/ignored", "null"},
        {"/executable/name", "\"/usr/bin/kvcache\""},
        {"/executable/size", "1e30"},
        {"/executable/resolved", "\"guess\""},
        {"/build/command", "\"make\""},
        {"/machine/facts/cpu_model", "4"},
        {"/control", "\"x\""},
        {"/baseline", "{}"},
        {"/ticket", "\"t\""},
        {"/phase_markers/0/elapsed_ms", "null"},
        {"/coverage/0/samples", "\"50\""},
        {"/files", "{}"},
        {"/files/0/size", "-1"},
        {"/files/0/size", "1.5"},
        {"/files/0/size", "\"3\""},
        {"/files/0/sha256", "\"B94D27B9934D3E08A52E52D7DA7DABFAC484EFE37A5380EE9088F7ACE2EFCDE9\""},
        {"/files/0/role", "\"secret\""},
        {"/files/0/path", "\"./acceptance.json\""},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        refused(&rows[i], 1, "");
}

static void numbers_beyond_2_to_the_53_are_refused(void **state)
{
    AUTO_JSON cJSON *m = fixture_manifest(&fx);
    struct manifest out = {.document = NULL};
    struct err e = ERR_INIT;
    AUTO_FREE char *text = NULL;
    char *at;
    size_t len = 0;

    (void) state;
    text = fixture_text(m, &len);
    at = strstr(text, "\"attempt\": 1,");
    assert_non_null(at);
    {
        AUTO_FREE char *big = NULL;

        assert_true(asprintf(&big, "%.*s\"attempt\": 9007199254740993,%s", (int) (at - text), text,
                             at + strlen("\"attempt\": 1,")) > 0);
        assert_int_equal(manifest_parse(big, strlen(big), &out, &e), -1);
    }
    {
        AUTO_FREE char *nan = NULL;

        assert_true(asprintf(&nan, "%.*s\"attempt\": NaN,%s", (int) (at - text), text,
                             at + strlen("\"attempt\": 1,")) > 0);
        assert_int_equal(manifest_parse(nan, strlen(nan), &out, &e), -1);
    }
}

/* Index of a file in files[], as a pointer. */
static const char *file_pointer(const char *path, const char *member, char out[64])
{
    AUTO_JSON cJSON *m = fixture_manifest(&fx);
    int i = 0;

    for (const cJSON *f = json_get(m, "files")->child; f; f = f->next, i++) {
        if (strcmp(json_get(f, "path")->valuestring, path) == 0)
            break;
    }
    assert_true(i < 13);
    (void) snprintf(out, 64, "/files/%d%s", i, member);
    return out;
}

#define AT(path, member) file_pointer(path, member, (char[64]){0})

static void pass_cannot_be_claimed(void **state)
{
    static const struct {
        struct edit edits[3];
        const char *expect;
    } rows[] = {
        {{{"/exit_code", "1"}}, "did not exit with 0"},
        {{{"/exit_code", "null"}}, "did not exit with 0"},
        {{{"/exit_code", "null"}, {"/signal", "11"}}, "did not exit with 0"},
        {{{"/signal", "9"}}, "no exit code"},
        {{{"/acceptance_status", "\"FAIL\""}}, "acceptance is FAIL"},
        {{{"/executable", "null"}}, "without an executable"},
        {{{"/report_status", "\"MISSING\""}, {"/report", "null"}},
         "acceptance PASS without a captured report"},
        {{{"/report_status", "\"INVALID\""}}, "raw-report"},
        {{{"/report", "null"}}, "CAPTURED without a report"},
        {{{"/report", "\"other/1.json\""}}, "not among the files"},
        {{{"/report_status", "\"NOT_EXPECTED\""}}, "does not exist"},
        {{{"/source/end/commit", "\"1123456789abcdef0123456789abcdef01234567\""}}, "unchanged"},
        {{{"/source/end/dirty", "true"}}, "unchanged"},
        {{{"/source/end/tree", "\"1123456789abcdef0123456789abcdef01234567\""}}, "unchanged"},
        {{{"/source/end/scheme", "\"rvoip-v1\""}}, "unchanged"},
        {{{"/source/unchanged", "false"}}, "unchanged"},
        {{{"/source/unchanged", "false"}, {"/source/end/dirty", "true"}}, "source changed"},
        {{{"/finished_at", "\"2024-11-29T14:15:01Z\""}}, "before started_at"},
        {{{"/source/start/untracked", "4"}, {"/source/end/untracked", "4"}},
         "untracked files is not clean"},
        {{{"/control", "\"" FIXTURE_RUN "\""}}, "no control run"},
        {{{"/status", "\"BUILD_ONLY\""}}, "BUILD_ONLY"},
        {{{"/acceptance_status", "\"NOT_APPLICABLE\""}}, "acceptance.json"},
        {{{"/audit_status", "\"NOT_APPLICABLE\""}}, "audit.json"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        refused(rows[i].edits, ARRAY_LEN(rows[i].edits), rows[i].expect);
}

/* A run that only built has measured nothing, and says so in each of these. */
static void build_only_has_no_outcome(void **state)
{
    const struct edit base[] = {
        {"/status", "\"BUILD_ONLY\""},
        {"/exit_code", "null"},
        {"/report", "null"},
        {"/report_status", "\"NOT_EXPECTED\""},
        {"/acceptance_status", "\"NOT_APPLICABLE\""},
        {AT("acceptance.json", "/path"), "\"acceptance.txt\""},
        {AT("acceptance.json", "/role"), "\"run-log\""},
        {"/audit_status", "\"NOT_APPLICABLE\""},
        {AT("audit.json", "/path"), "\"audit.js\""},
        {AT("audit.json", "/role"), "\"run-log\""},
    };
    const struct edit claims[][3] = {
        {{"/exit_code", "0"}},
        {{"/signal", "11"}},
        {{"/report", "\"kvcache/50000.json\""}, {"/report_status", "\"CAPTURED\""}},
        {{"/report_status", "\"MISSING\""}},
        {{"/acceptance_status", "\"FAIL\""},
         {AT("acceptance.json", "/path"), "\"acceptance.json\""},
         {AT("acceptance.json", "/role"), "\"acceptance\""}},
        {{"/audit_status", "\"OK\""},
         {AT("audit.json", "/path"), "\"audit.json\""},
         {AT("audit.json", "/role"), "\"audit\""}},
    };

    (void) state;
    accepted(base, ARRAY_LEN(base));
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        struct edit edits[ARRAY_LEN(base) + 3];

        memcpy(edits, base, sizeof base);
        memcpy(edits + ARRAY_LEN(base), claims[i], sizeof claims[i]);
        refused(edits, ARRAY_LEN(edits), "a BUILD_ONLY run has no");
    }
}

/* What git ignores may be what was measured: the commit does not say. */
static void ignored_files_make_a_run_dirty(void **state)
{
    AUTO_MANIFEST struct manifest m = {.document = NULL};
    const struct edit edits[] = {{"/source/ignored", "3"}};

    (void) state;
    MUST(parse_edited(edits, 1, &m, E));
    assert_int_equal(m.ignored, 3);
    assert_true(manifest_is_dirty(&m));
}

static void coherent_outcomes_are_accepted(void **state)
{
    static const struct edit rows[][3] = {
        {{"/status", "\"FAIL\""}, {"/exit_code", "1"}, {NULL, NULL}},
        {{"/status", "\"FAIL\""}, {"/exit_code", "null"}, {"/signal", "11"}},
        {{"/status", "\"FAIL\""}, {"/acceptance_status", "\"FAIL\""}, {NULL, NULL}},
        {{"/status", "\"FAIL\""}, {"/executable", "null"}, {NULL, NULL}},
        {{"/audit_status", "\"REGRESSION\""}, {NULL, NULL}, {NULL, NULL}},
        {{"/mode", "\"memory\""}, {"/control", "\"" FIXTURE_RUN "\""}, {NULL, NULL}},
        {{"/baseline", "{\"id\":\"b-x\",\"evidence_sha256\":null,\"manifest_sha256\":null}"},
         {NULL, NULL},
         {NULL, NULL}},
        {{"/ticket", "{}"}, {NULL, NULL}, {NULL, NULL}},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        accepted(rows[i], 3);
}

static void the_list_of_files_is_closed_and_sorted(void **state)
{
    const struct edit empty[] = {{"/files", "[]"}};
    const struct edit self[] = {{AT("run.log", "/path"), "\"manifest.json\""}};
    const struct edit order[] = {{AT("build.log", "/path"), "\"zzz\""},
                                 {AT("build.log", "/role"), "\"run-log\""}};
    const struct edit twice[] = {{AT("build.log", "/path"), "\"build-messages.jsonl\""}};
    const struct edit gone[] = {{AT("definition.json", ""), NULL}};

    (void) state;
    refused(empty, 1, "empty");
    refused(self, 1, "lists itself");
    refused(order, 2, "byte order");
    refused(twice, 1, "byte order");
    refused(gone, 1, "definition.json");
}

static void names_that_collide_are_refused(void **state)
{
    const struct edit as_directory[] = {{AT("build-messages.jsonl", "/path"), "\"audit.md/x\""},
                                        {AT("build-messages.jsonl", "/role"), "\"run-log\""}};
    const struct edit by_case[] = {{AT("acceptance.json", "/path"), "\"Audit.md\""},
                                   {AT("acceptance.json", "/role"), "\"run-log\""},
                                   {"/acceptance_status", "\"NOT_APPLICABLE\""}};

    (void) state;
    refused(as_directory, 2, "also the directory");
    refused(by_case, 3, "differ only in case");
}

static void standard_names_keep_their_roles(void **state)
{
    const struct edit hidden[] = {{AT("acceptance.json", "/role"), "\"samples\""}};
    const struct edit fake[] = {{AT("build-messages.jsonl", "/path"), "\"b.json\""},
                                {AT("build-messages.jsonl", "/role"), "\"acceptance\""}};
    const struct edit outside[] = {{AT("build-messages.jsonl", "/path"), "\"b.json\""},
                                   {AT("build-messages.jsonl", "/role"), "\"report\""}};

    (void) state;
    refused(hidden, 1, "must have the role");
    refused(fake, 2, "cannot have the role");
    refused(outside, 2, "below results/");
    assert_string_equal(manifest_role_of("results/a/b.json"), "report");
    assert_string_equal(manifest_role_of("results/a/b.txt"), "raw-report");
    assert_string_equal(manifest_role_of("baseline/x/y"), "baseline");
    assert_string_equal(manifest_role_of("profile/flame.svg"), "profile");
    assert_null(manifest_role_of("error.json"));
}

static void too_many_files_are_refused(void **state)
{
    AUTO_JSON cJSON *m = fixture_manifest(&fx);
    AUTO_BUF struct buf b = {.data = NULL};
    AUTO_FREE char *text = NULL;
    struct manifest out = {.document = NULL};
    struct err e = ERR_INIT;
    size_t len = 0;

    (void) state;
    buf_init(&b, LIMIT_MIB(4));
    buf_puts(&b, "[");
    for (int i = 0; i < 4096; i++)
        buf_printf(
            &b,
            "%s{\"path\":\"samples/%04d\",\"size\":0,\"sha256\":\"%064d\",\"role\":\"samples\"}",
            i ? "," : "", i, 0);
    buf_puts(&b, "]");
    fixture_set(m, "/files", b.data);
    text = fixture_text(m, &len);
    assert_int_equal(manifest_parse(text, len, &out, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
}

static void not_json_is_refused(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "null", "{}{}", "{\"schema\":\"cleanrun-manifest/2\"}", "\xff"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct manifest m = {.document = NULL};
        struct err e = ERR_INIT;

        assert_int_equal(manifest_parse(texts[i], strlen(texts[i]), &m, &e), -1);
        assert_int_equal(e.kind, ERR_INPUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_valid_manifest_is_read),
        cmocka_unit_test(every_member_is_needed_and_no_other_is_known),
        cmocka_unit_test(members_have_their_types),
        cmocka_unit_test(numbers_beyond_2_to_the_53_are_refused),
        cmocka_unit_test(pass_cannot_be_claimed),
        cmocka_unit_test(build_only_has_no_outcome),
        cmocka_unit_test(ignored_files_make_a_run_dirty),
        cmocka_unit_test(coherent_outcomes_are_accepted),
        cmocka_unit_test(the_list_of_files_is_closed_and_sorted),
        cmocka_unit_test(names_that_collide_are_refused),
        cmocka_unit_test(standard_names_keep_their_roles),
        cmocka_unit_test(too_many_files_are_refused),
        cmocka_unit_test(not_json_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
