/* cleanrun baseline verify and package: every baseline row of the seed's cases.json, and our own
 * format. */
#include "tests/lib/support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "experiment/pointer.h"
#include "tests/lib/cases.h"
#include "tests/runner/run_command.h"

enum { BASELINE_ROWS = 13 };

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *j = json_get(object, key);

    return cJSON_IsString(j) ? j->valuestring : "";
}

/* The mutations that the rows describe in words, as operations of cases.h. */
static const struct {
    const char *id;
    const char *ops; /* on the manifest */
} edits[] = {
    {"BAS-05", "[{\"op\":\"append\",\"path\":[\"comparison_paths\"],\"value\":\"fixture.json\"}]"},
    {"BAS-09",
     "[{\"op\":\"set\",\"path\":[\"qualification\",\"release_evidence\"],\"value\":true}]"},
    {"BAS-10", "[{\"op\":\"set\",\"path\":[\"qualification\",\"permitted_use\"],\"value\":\"\"}]"},
    {"BAS-12", "[{\"op\":\"set\",\"path\":[\"baseline_id\"],\"value\":\"2026-09-29\"}]"},
    {"BAS-14", "[{\"op\":\"set\",\"path\":[\"comparison_paths\"],\"value\":[\"other.json\"]}]"},
    {"BAS-15", "[{\"op\":\"set\",\"path\":[\"files\"],\"value\":[]}]"},
    {"BAS-17", "[{\"op\":\"set\",\"path\":[\"files\",0,\"sha256\"],\"value\":"
               "\"08C4F039183B52A22DD83F90863AA69A0ED2E31B5CA8A9FD6BC2E93BD4C24318\"}]"},
    {"BAS-20", "[{\"op\":\"set\",\"path\":[\"files\",0,\"path\"],\"value\":\"./fixture.json\"}]"},
};

static cJSON *parse(const char *text)
{
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    if (json_parse(text, strlen(text), NULL, &j, &e) < 0)
        fail_msg("%s in: %.300s", e.text, text);
    return j;
}

static void write_json(const char *dir, const char *name, const cJSON *j)
{
    struct buf b = {0};

    buf_init(&b, LIMIT_MIB(1));
    json_write(&b, j, JSON_PRETTY);
    assert_false(b.failed);
    test_write(dir, name, b.data, b.len);
    buf_fini(&b);
}

/* dir/root/{fixture.json, manifest.json} as the row says, edited. */
static void lay_out(const char *dir, const cJSON *row)
{
    const char *id = text_of(row, "id");
    cJSON *manifest = cJSON_Duplicate(json_get(json_get(row, "base"), "manifest"), true);
    const char *payload = text_of(json_get(row, "base"), "payload");
    char *fixture = test_join(dir, "root/fixture.json");
    char *real = test_join(dir, "root/real.json");

    test_write_text(dir, "root/fixture.json", payload);
    for (size_t i = 0; i < ARRAY_LEN(edits); i++)
        if (strcmp(edits[i].id, id) == 0) {
            cJSON *ops = parse(edits[i].ops);

            cases_edit_all(manifest, ops);
            cJSON_Delete(ops);
        }
    write_json(dir, "root/manifest.json", manifest);
    if (strcmp(id, "BAS-03") == 0)
        test_write_text(dir, "root/unlisted.json", "{}");
    if (strcmp(id, "BAS-06") == 0)
        test_write_text(dir, "root/fixture.json",
                        "{\"scenario\":\"fixture\",\"results\":{\"achieved_cps\":2}}\n");
    if (strcmp(id, "BAS-08") == 0) {
        assert_int_equal(rename(fixture, real), 0);
        assert_int_equal(symlink("real.json", fixture), 0);
    }
    cJSON_Delete(manifest);
    free(fixture);
    free(real);
}

static void verify(const char *manifest, struct command_result *r)
{
    const char *const argv[] = {"verify", manifest, NULL};

    run_command(&command_baseline_verify, argv, r);
}

static void package(const char *manifest, const char *out, struct command_result *r)
{
    const char *const argv[] = {"package", manifest, "--out", out, NULL};

    run_command(&command_baseline_package, argv, r);
}

static void says(const char *id, const struct command_result *r, int code, const char *text)
{
    if (r->code != code || (!strstr(r->out, text) && !strstr(r->err, text)))
        fail_msg("%s: expected exit %d and '%s', found %d\n%s%s", id, code, text, r->code, r->out,
                 r->err);
}

/* Nothing of a package may be left, not even a temporary name. */
static void nothing_left(const char *out)
{
    char **names = NULL;

    if (access(out, F_OK) != 0)
        return;
    assert_int_equal(test_list(out, "", &names), 0);
    test_names_free(names);
}

static void check_row(const cJSON *row)
{
    const char *id = text_of(row, "id");
    const cJSON *expect = json_get(row, "expect");
    bool broken = (int) json_get(expect, "exit")->valuedouble != 0;
    char *dir = test_dir_new();
    char *manifest = test_join(dir, "root/manifest.json");
    char *out = test_join(dir, "out");
    struct command_result r;

    lay_out(dir, row);
    if (strcmp(id, "BAS-19") == 0) {
        package(manifest, out, &r);
        says(id, &r, 0, "packaged");
        command_result_fini(&r);
        package(manifest, out, &r);
        says(id, &r, 2, text_of(expect, "output_contains"));
    } else {
        verify(manifest, &r);
        says(id, &r, broken ? 5 : 0, text_of(expect, "output_contains"));
        command_result_fini(&r);
        package(manifest, out, &r);
        assert_int_equal(r.code, broken ? 5 : 0);
        if (broken)
            nothing_left(out);
    }
    command_result_fini(&r);
    free(manifest);
    free(out);
    test_dir_free(dir);
}

static void every_baseline_row_of_the_seed(void **state)
{
    cJSON *rows = cases_load();
    const cJSON *row = NULL;
    size_t replayed = 0;

    (void) state;
    cJSON_ArrayForEach(row, rows) {
        if (strcmp(text_of(row, "area"), "baseline") != 0)
            continue;
        print_message("%s: %s\n", text_of(row, "id"), text_of(row, "situation"));
        check_row(row);
        replayed++;
    }
    assert_int_equal(replayed, BASELINE_ROWS);
    cJSON_Delete(rows);
}

static void a_package_verifies_by_itself(void **state)
{
    char *dir = test_dir_new();
    char *out = test_join(dir, "out");
    char *packaged = test_join(out, "perf-regression-baseline/manifest.json");
    char *source = test_path("tests/data/rvoip/baselines/20260706T181609Z/manifest.json");
    char *original = test_read_path(source, NULL);
    char *copy = NULL;
    struct command_result r;

    (void) state;
    package(source, out, &r);
    says("package", &r, 0, "performance regression baseline packaged: 20260706T181609Z (6 files)");
    command_result_fini(&r);
    verify(packaged, &r);
    says("verify", &r, 0, "performance regression baseline verified: 20260706T181609Z (6 files)");
    command_result_fini(&r);
    copy = test_read_path(packaged, NULL);
    assert_string_equal(copy, original);
    free(copy);
    free(original);
    test_write_text(out, "perf-regression-baseline/perf-results/more.json", "{}");
    verify(packaged, &r);
    says("more", &r, 5, "unlisted more.json");
    command_result_fini(&r);
    free(packaged);
    free(out);
    free(source);
    test_dir_free(dir);
}

static void release_evidence_must_be_there_and_false(void **state)
{
    static const char *const ops[] = {
        "[{\"op\":\"del\",\"path\":[\"qualification\",\"release_evidence\"]}]",
        "[{\"op\":\"set\",\"path\":[\"qualification\",\"release_evidence\"],\"value\":0}]",
        "[{\"op\":\"del\",\"path\":[\"qualification\"]}]"};
    cJSON *rows = cases_load();

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        char *dir = test_dir_new();
        char *manifest = test_join(dir, "root/manifest.json");
        cJSON *document = cJSON_Duplicate(
            json_get(json_get(cases_find(rows, "BAS-01"), "base"), "manifest"), true);
        cJSON *edit = parse(ops[i]);
        struct command_result r;

        lay_out(dir, cases_find(rows, "BAS-01"));
        cases_edit_all(document, edit);
        write_json(dir, "root/manifest.json", document);
        verify(manifest, &r);
        says(ops[i], &r, 5, "must mark the historical input as non-release evidence");
        command_result_fini(&r);
        cJSON_Delete(edit);
        cJSON_Delete(document);
        free(manifest);
        test_dir_free(dir);
    }
    cJSON_Delete(rows);
}

static void paths_that_lead_out_are_refused(void **state)
{
    static const char *const paths[] = {
        "../fixture.json", "/etc/passwd", "a/../../fixture.json", "", ".", "./", "a/.."};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        cJSON *rows = cases_load();
        cJSON *row = cJSON_Duplicate(cases_find(rows, "BAS-01"), true);
        cJSON *files = cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(row, "base"),
                                             "manifest"),
            "files");
        char *dir = test_dir_new();
        char *manifest = test_join(dir, "root/manifest.json");
        struct command_result r;

        assert_true(cJSON_ReplaceItemInObjectCaseSensitive(files->child, "path",
                                                           cJSON_CreateString(paths[i])));
        lay_out(dir, row);
        verify(manifest, &r);
        says(paths[i], &r, 5, "baseline file path is unsafe");
        command_result_fini(&r);
        free(manifest);
        test_dir_free(dir);
        cJSON_Delete(row);
        cJSON_Delete(rows);
    }
}

static void a_linked_directory_or_manifest_is_refused(void **state)
{
    cJSON *rows = cases_load();
    char *dir = test_dir_new();
    char *link = test_join(dir, "link.json");
    char *manifest = test_join(dir, "root/manifest.json");
    char *inside = test_join(dir, "root/sub");
    struct command_result r;

    (void) state;
    lay_out(dir, cases_find(rows, "BAS-01"));
    assert_int_equal(symlink("root/manifest.json", link), 0);
    verify(link, &r);
    says("manifest", &r, 5, "not a regular file");
    command_result_fini(&r);
    assert_int_equal(symlink(".", inside), 0);
    verify(manifest, &r);
    says("directory", &r, 5, "inventory");
    command_result_fini(&r);
    free(link);
    free(manifest);
    free(inside);
    test_dir_free(dir);
    cJSON_Delete(rows);
}

/* Our own format: closed, with a review. */

static const char fixture[] = "{\"scenario\":\"fixture\"}\n";

static cJSON *our_manifest(void)
{
    struct digest digest = digest_of(fixture, strlen(fixture));
    char hex[DIGEST_HEX_SIZE];
    char text[1200];

    digest_hex(&digest, hex);
    (void) snprintf(
        text, sizeof text,
        "{\"schema\":\"cleanrun-baseline/1\",\"baseline_id\":\"b-20261129T141502Z-9c1e07ab\","
        "\"run\":\"20261129T141502Z-9c1e07ab\",\"project\":\"o/"
        "r\",\"gate\":\"g\",\"class\":\"box\","
        "\"reviewed\":{\"by\":\"kim\",\"at\":\"2026-11-29T15:00:00Z\",\"reason\":\"first\"},"
        "\"comparison_paths\":[\"s/1.json\"],\"files\":[{\"path\":\"s/"
        "1.json\",\"size\":%zu,\"sha256\":\"%s\"}]}",
        strlen(fixture), hex);
    return parse(text);
}

static void our_own_format_is_closed_and_reviewed(void **state)
{
    static const struct {
        const char *ops;
        const char *text;
    } cases[] = {
        {"[]", "verified: b-20261129T141502Z-9c1e07ab (1 files)"},
        {"[{\"op\":\"set\",\"path\":[\"more\"],\"value\":1}]", "more"},
        {"[{\"op\":\"set\",\"path\":[\"files\",0,\"bytes\"],\"value\":1}]", "bytes"},
        {"[{\"op\":\"set\",\"path\":[\"baseline_id\"],\"value\":\"20261129T141502Z\"}]",
         "baseline_id"},
        {"[{\"op\":\"set\",\"path\":[\"reviewed\",\"by\"],\"value\":\"\"}]", "a review needs"},
        {"[{\"op\":\"set\",\"path\":[\"reviewed\",\"at\"],\"value\":\"yesterday\"}]",
         "a review needs"},
        {"[{\"op\":\"del\",\"path\":[\"reviewed\",\"reason\"]}]", "a review needs"},
        {"[{\"op\":\"del\",\"path\":[\"reviewed\"]}]", "a review needs"},
        {"[{\"op\":\"set\",\"path\":[\"project\"],\"value\":\"r\"}]", "project"},
        {"[{\"op\":\"set\",\"path\":[\"run\"],\"value\":\"x\"}]", "run"},
        {"[{\"op\":\"set\",\"path\":[\"evidence_sha256\"],\"value\":\"x\"}]", "evidence_sha256"},
        {"[{\"op\":\"set\",\"path\":[\"files\",0,\"path\"],\"value\":\"./s/1.json\"}]", "unsafe"},
        {"[{\"op\":\"set\",\"path\":[\"files\",0,\"size\"],\"value\":1}]", "size changed"},
        {"[{\"op\":\"set\",\"path\":[\"files\",0,\"size\"],\"value\":-1}]", "size"},
        {"[{\"op\":\"set\",\"path\":[\"schema\"],\"value\":\"cleanrun-baseline/2\"}]",
         "unsupported"},
        {"[{\"op\":\"set\",\"path\":[\"comparison_paths\"],\"value\":[]}]", "no comparison paths"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *dir = test_dir_new();
        char *manifest = test_join(dir, "manifest.json");
        cJSON *document = our_manifest();
        cJSON *ops = parse(cases[i].ops);
        struct command_result r;

        cases_edit_all(document, ops);
        test_write_text(dir, "perf-results/s/1.json", fixture);
        write_json(dir, "manifest.json", document);
        verify(manifest, &r);
        says(cases[i].ops, &r, i == 0 ? 0 : 5, cases[i].text);
        command_result_fini(&r);
        json_free(document);
        json_free(ops);
        free(manifest);
        test_dir_free(dir);
    }
}

/* The shipped ones: each verifies, and no two of them are comparable. */

static const char *const shipped[] = {"20260706T181609Z", "20260929T034251Z", "20260929T224805Z"};

static char *shipped_manifest(const char *id)
{
    char name[128];

    (void) snprintf(name, sizeof name, "baselines/rvoip-sip/call-setup-2k/%s/manifest.json", id);
    return test_path(name);
}

static void shipped_baselines_verify(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(shipped); i++) {
        char *manifest = shipped_manifest(shipped[i]);
        struct command_result r;

        verify(manifest, &r);
        says(shipped[i], &r, 0, shipped[i]);
        command_result_fini(&r);
        free(manifest);
    }
}

static void shipped_baselines_refuse_one_another(void **state)
{
    char *dir = test_dir_new();
    char *definition = test_path("examples/rvoip-sip/cleanrun.yaml");
    char *trees[ARRAY_LEN(shipped)];
    char *manifests[ARRAY_LEN(shipped)];

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(shipped); i++) {
        char *manifest = shipped_manifest(shipped[i]);
        char *out = test_join(dir, shipped[i]);
        struct command_result r;

        package(manifest, out, &r);
        says(shipped[i], &r, 0, "packaged");
        command_result_fini(&r);
        trees[i] = test_join(out, "perf-regression-baseline/perf-results");
        manifests[i] = test_join(out, "perf-regression-baseline/manifest.json");
        free(out);
        free(manifest);
    }
    for (size_t i = 0; i < ARRAY_LEN(shipped); i++)
        for (size_t k = 0; k < ARRAY_LEN(shipped); k++) {
            const char *const argv[] = {"audit",
                                        "--definition",
                                        definition,
                                        "--gate",
                                        "call-setup-2k",
                                        "--baseline",
                                        trees[i],
                                        "--baseline-manifest",
                                        manifests[i],
                                        "--current",
                                        trees[k],
                                        "--json",
                                        "-",
                                        NULL};
            struct command_result r;
            cJSON *document = NULL;

            run_command(&command_audit, argv, &r);
            if (r.code != 3)
                fail_msg("%s against %s: exit %d\n%s", shipped[k], shipped[i], r.code, r.err);
            document = parse(r.out);
            assert_null(json_get(document, "comparisons")->child);
            if (i != k)
                /* the machine itself differs */
                assert_non_null(strstr(r.out, "/environment/total_ram_gb"));
            json_free(document);
            command_result_fini(&r);
        }
    for (size_t i = 0; i < ARRAY_LEN(shipped); i++) {
        free(trees[i]);
        free(manifests[i]);
    }
    free(definition);
    test_dir_free(dir);
}

static void json_tells_the_same(void **state)
{
    char *manifest = test_path("tests/data/rvoip/baselines/20260929T034251Z/manifest.json");
    char *dir = test_dir_new();
    char *broken = test_join(dir, "manifest.json");
    const char *const good[] = {"verify", manifest, "--json", NULL};
    const char *const bad[] = {"verify", broken, "--json", NULL};
    struct command_result r;
    cJSON *document = NULL;

    (void) state;
    run_command(&command_baseline_verify, good, &r);
    assert_int_equal(r.code, 0);
    document = parse(r.out);
    assert_string_equal(text_of(document, "verdict"), "VALID");
    assert_string_equal(text_of(document, "baseline_id"), "20260929T034251Z");
    json_free(document);
    command_result_fini(&r);
    test_write_text(dir, "manifest.json", "[]");
    run_command(&command_baseline_verify, bad, &r);
    assert_int_equal(r.code, 5);
    document = parse(r.out);
    assert_string_equal(text_of(document, "verdict"), "INVALID");
    json_free(document);
    command_result_fini(&r);
    free(manifest);
    free(broken);
    test_dir_free(dir);
}

static void what_is_not_there_exits_2(void **state)
{
    char *dir = test_dir_new();
    char *manifest = test_join(dir, "none.json");
    const char *const no_out[] = {"package", manifest, NULL};
    struct command_result r;

    (void) state;
    verify(manifest, &r);
    assert_int_equal(r.code, 2);
    command_result_fini(&r);
    run_command(&command_baseline_package, no_out, &r);
    assert_int_equal(r.code, 2);
    command_result_fini(&r);
    free(manifest);
    test_dir_free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_baseline_row_of_the_seed),
        cmocka_unit_test(a_package_verifies_by_itself),
        cmocka_unit_test(release_evidence_must_be_there_and_false),
        cmocka_unit_test(paths_that_lead_out_are_refused),
        cmocka_unit_test(a_linked_directory_or_manifest_is_refused),
        cmocka_unit_test(our_own_format_is_closed_and_reviewed),
        cmocka_unit_test(shipped_baselines_verify),
        cmocka_unit_test(shipped_baselines_refuse_one_another),
        cmocka_unit_test(json_tells_the_same),
        cmocka_unit_test(what_is_not_there_exits_2),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
