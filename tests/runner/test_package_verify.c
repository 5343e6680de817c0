/* cleanrun package verify: the seed's attestation rows, and what they do not say. */
#include "tests/lib/support.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/json_in.h"
#include "evidence/sign.h"
#include "experiment/pointer.h"
#include "runner/tree_hash.h"
#include "base/file.h"
#include "tests/evidence/fixture.h"
#include "tests/lib/cases.h"
#include "tests/runner/packages.h"
#include "tests/runner/release.h"
#include "tests/runner/run_command.h"

/* Rows about the seed's own inventory, in our words: test_attestation.c. */
static const char *const rows_elsewhere[] = {"ATT-03", "ATT-08", "ATT-10", "ATT-15",
                                             "ATT-20", "ATT-21", "ATT-28", "ATT-38",
                                             "ATT-40", "ATT-41", "ATT-45", "ATT-50"};
enum { ATTESTATION_ROWS = 32 };

struct fixtures {
    struct release plain; /* three compared clean runs, packaged as packages/release, unsigned */
    struct release dirty; /* three clean runs of an uncommitted source, no baseline */
};

static void pack_complete(const struct release *r)
{
    const char *const args[] = {r->runs[0],    r->runs[1], r->runs[2], "--executable",
                                r->executable, "--source", r->repo,    NULL};

    packages_make(r, args, 0);
}

static int group_setup(void **state)
{
    struct fixtures *f = calloc(1, sizeof *f);

    assert_non_null(f);
    release_new(&f->plain, false, true);
    pack_complete(&f->plain);
    release_new(&f->dirty, true, false);
    *state = f;
    return 0;
}

static int group_teardown(void **state)
{
    struct fixtures *f = *state;

    if (f) {
        release_free(&f->plain);
        release_free(&f->dirty);
    }
    free(f);
    return 0;
}

/* What the rows do to a package. */

static void file_removed(const struct release *r)
{
    packages_remove_file(r, "run-2/run.log");
}

static void file_changed(const struct release *r)
{
    test_write_text(r->out, "source-at-start.json", "{}\n");
}

static void definition_rewritten(const struct release *r)
{
    packages_rewrite(r, "/definition/policy_sha256",
                     "\"0000000000000000000000000000000000000000000000000000000000000000\"");
}

static void result_emptied(const struct release *r)
{
    test_write_text(r->out, "run-1/" RELEASE_REPORT, "{}");
}

static void section_rewritten(const struct release *r)
{
    packages_rewrite(r, "/class", "\"another-machine\"");
}

static void runs_emptied(const struct release *r)
{
    packages_rewrite(r, "/runs", "[]");
}

/* The executable is there, but the index says that it is not, consistently. */
static void absence_claimed(const struct release *r)
{
    packages_rewrite(r, "/executable",
                     "{\"status\":\"absent\",\"reason\":\"no --executable was given\"}");
    packages_rewrite(r, "/eligibility/no_skips", "false");
}

static void schema_replaced(const struct release *r)
{
    packages_rewrite(r, "/schema", "\"cleanrun-package/9\"");
}

static void file_added(const struct release *r)
{
    test_write_text(r->out, "run-3/notes.txt", "added\n");
}

static void baseline_altered(const struct release *r)
{
    release_edit(r->out, "run-1/baseline/" RELEASE_REPORT, "/results/achieved_cps", "1");
}

/* The forger lists the altered file and redoes every hash that he can. */
static void baseline_altered_consistently(const struct release *r)
{
    char *run = test_join(r->out, "run-1");

    baseline_altered(r);
    release_edit_manifest(run, NULL, NULL);
    packages_relist(r);
    free(run);
}

static void index_edited(const struct release *r)
{
    release_edit(r->out, "index.json", "/status", "\"FAIL\"");
}

static void link_added(const struct release *r)
{
    char *path = test_join(r->out, "run-1/link");

    assert_int_equal(symlink("run.log", path), 0);
    free(path);
}

static void created_too_early(const struct release *r)
{
    packages_rewrite(r, "/created_at", "\"2026-09-29T20:02:00Z\"");
}

static void path_leads_out(const struct release *r)
{
    packages_rewrite(r, "/files/0/path", "\"../start.json\"");
}

static const struct {
    const char *id;
    void (*change)(const struct release *r);
    const char *stage;
    const char *says;
} invalid_rows[] = {
    {"ATT-05", file_removed, "inventory", "missing"},
    {"ATT-06", file_changed, "inventory", "'source-at-start.json' changed"},
    {"ATT-11", definition_rewritten, "sections", "'definition' is not what the files give"},
    {"ATT-13", result_emptied, "inventory", "changed"},
    {"ATT-16", baseline_altered_consistently, "runs", "content differs"},
    {"ATT-23", section_rewritten, "sections", "'class' is not what the files give"},
    {"ATT-25", runs_emptied, "sections", "'runs' is not what the files give"},
    {"ATT-26", absence_claimed, "sections", "'executable' is not what the files give"},
    {"ATT-35", schema_replaced, "index", "unsupported"},
    {"ATT-36", file_added, "inventory", "'run-3/notes.txt' is in the package but not in its index"},
    {"ATT-43", baseline_altered, "inventory", "'run-1/baseline/" RELEASE_REPORT "' changed"},
    {"ATT-46", index_edited, "checksum", "does not match"},
    {"ATT-48", link_added, "inventory", "run-1/link"},
    {"ATT-51", created_too_early, "sections", "created_at lies before the end of run"},
    {"ATT-53", path_leads_out, "inventory", "does not stay inside"},
};

/* ATT-01, -18, -30, -31, -33: tests of their own below. */
static const char *const rows_apart[] = {"ATT-01", "ATT-18", "ATT-30", "ATT-31", "ATT-33"};

static bool is_one_of(const char *id, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i], id) == 0)
            return true;
    }
    return false;
}

static bool replay(const struct release *plain, const char *id)
{
    for (size_t i = 0; i < ARRAY_LEN(invalid_rows); i++) {
        struct release r;

        if (strcmp(invalid_rows[i].id, id) != 0)
            continue;
        packages_copy(plain, &r);
        invalid_rows[i].change(&r);
        packages_expect_invalid(id, r.out, invalid_rows[i].stage, invalid_rows[i].says);
        release_free(&r);
        return true;
    }
    return false;
}

static void every_attestation_row_is_replayed(void **state)
{
    const struct fixtures *f = *state;
    cJSON *cases = cases_load();
    const cJSON *row = NULL;
    size_t rows = 0;

    cJSON_ArrayForEach(row, cases) {
        const char *id = json_get(row, "id")->valuestring;
        const char *what = json_get(row, "situation")->valuestring;

        if (strncmp(id, "ATT-", 4) != 0)
            continue;
        rows++;
        if (is_one_of(id, rows_elsewhere, ARRAY_LEN(rows_elsewhere)) ||
            is_one_of(id, rows_apart, ARRAY_LEN(rows_apart)) || replay(&f->plain, id))
            print_message("%s: %s\n", id, what);
        else
            fail_msg("%s is not replayed", id);
    }
    assert_int_equal(rows, ATTESTATION_ROWS);
    cJSON_Delete(cases);
}

/* JSON can name no such file, so that the package is broken, not the verifier. */
static void a_name_that_is_no_text_is_invalid(void **state)
{
    const struct fixtures *f = *state;
    struct release r;

    packages_copy(&f->plain, &r);
    test_write_text(r.out, "run-1/a\xff", "x");
    packages_expect_invalid("name", r.out, "inventory",
                            "a file whose name is no UTF-8 ('run-1/a?') has no place");
    release_free(&r);
}

static void ATT_01_a_copy_verifies_without_the_original(void **state)
{
    const struct fixtures *f = *state;
    struct release r;
    char *elsewhere = test_dir_new();
    char *copy = test_join(elsewhere, "copied");
    const char *argv[] = {"cp", "-a", NULL, copy, NULL};
    struct test_run done;

    packages_copy(&f->plain, &r);
    argv[2] = r.out;
    test_run(argv, NULL, NULL, NULL, &done);
    assert_int_equal(done.code, 0);
    test_run_fini(&done);
    release_free(&r); /* runs, repository, executable and all */
    packages_expect_exit("ATT-01", copy, packages_require_all, 0);
    free(copy);
    test_dir_free(elsewhere);
}

static bool eligible(const cJSON *document, const char *key)
{
    return cJSON_IsTrue(json_get(json_get(document, "eligibility"), key));
}

static const char *const require_pass[] = {"--require-pass", NULL};
static const char *const require_clean[] = {"--require-clean", NULL};
static const char *const require_unchanged[] = {"--require-unchanged-source", NULL};
static const char *const require_no_skips[] = {"--require-no-skips", NULL};
static const char *const require_three[] = {"--count", "3", NULL};

static const char *first_code(const cJSON *document)
{
    const cJSON *first = json_get(document, "shortcomings")->child;

    return first ? json_get(first, "code")->valuestring : "none";
}

static void ATT_18_a_missing_run_is_whole_but_not_eligible(void **state)
{
    const struct fixtures *f = *state;
    struct release r;
    int code = -1;
    cJSON *j;

    packages_copy(&f->plain, &r);
    free(r.out);
    r.out = test_join(r.dir, "packages/two");
    {
        const char *const args[] = {r.runs[0], r.runs[1], "--even-if-failed", NULL};

        packages_make(&r, args, 0);
    }
    j = packages_verify(r.out, NULL, &code);
    assert_int_equal(code, 0);
    assert_string_equal(json_get(j, "status")->valuestring, "FAIL");
    assert_string_equal(first_code(j), "count");
    assert_false(eligible(j, "pass"));
    json_free(j);
    packages_expect_exit("pass", r.out, require_pass, 4);
    packages_expect_exit("three", r.out, require_three, 4);
    /* Two runs that say two were enough: only the count that the verifier asks for tells. */
    packages_rewrite(&r, "/required_count", "2");
    packages_expect_invalid("fewer required", r.out, "sections",
                            "'status' is not what the files give");
    release_free(&r);
}

static void ATT_30_a_dirty_source_is_whole_but_not_clean(void **state)
{
    const struct fixtures *f = *state;
    struct release r;
    int code = -1;
    cJSON *j;

    packages_copy(&f->dirty, &r);
    pack_complete(&r);
    j = packages_verify(r.out, NULL, &code);
    assert_int_equal(code, 0);
    assert_false(eligible(j, "clean"));
    assert_true(eligible(j, "unchanged_source"));
    json_free(j);
    packages_expect_exit("ATT-30", r.out, require_clean, 4);
    packages_expect_exit("ATT-30 unchanged", r.out, require_unchanged, 0);
    release_free(&r);
}

static void ATT_31_a_source_that_changed_is_whole_but_not_unchanged(void **state)
{
    const struct fixtures *f = *state;
    struct release r;
    int code = -1;
    cJSON *j;

    packages_copy(&f->plain, &r);
    free(r.out);
    r.out = test_join(r.dir, "packages/changed");
    test_write_text(r.repo, "source.txt", "edited since\n");
    {
        const char *const args[] = {r.runs[0], r.runs[1],          r.runs[2], "--source",
                                    r.repo,    "--even-if-failed", NULL};

        packages_make(&r, args, 0);
    }
    j = packages_verify(r.out, NULL, &code);
    assert_int_equal(code, 0);
    assert_string_equal(first_code(j), "source-now");
    assert_false(eligible(j, "unchanged_source"));
    json_free(j);
    packages_expect_exit("ATT-31", r.out, require_unchanged, 4);
    release_free(&r);
}

static void ATT_33_what_was_skipped_is_said_and_counts_when_demanded(void **state)
{
    const struct fixtures *f = *state;
    struct release r;
    int code = -1;
    cJSON *j;
    cJSON *index;

    packages_copy(&f->dirty, &r);
    {
        const char *const args[] = {r.runs[0], r.runs[1], r.runs[2], NULL};

        packages_make(&r, args, 0);
    }
    index = release_json(r.out, "index.json");
    assert_string_equal(pointer_get(index, "/executable/status")->valuestring, "absent");
    assert_string_equal(pointer_get(index, "/executable/reason")->valuestring,
                        "no --executable was given");
    assert_string_equal(pointer_get(index, "/baseline/status")->valuestring, "absent");
    assert_string_equal(pointer_get(index, "/runs/2/audit/status")->valuestring, "absent");
    assert_string_equal(pointer_get(index, "/source_now/status")->valuestring, "absent");
    json_free(index);
    j = packages_verify(r.out, NULL, &code);
    assert_int_equal(code, 0);
    assert_true(eligible(j, "pass"));
    assert_false(eligible(j, "no_skips"));
    json_free(j);
    packages_expect_exit("ATT-33", r.out, require_no_skips, 4);
    packages_expect_exit("ATT-33 pass", r.out, require_pass, 0);

    packages_rewrite(&r, "/executable/reason", "\"\"");
    packages_expect_invalid("empty reason", r.out, "index",
                            "'executable' is absent without a reason");
    packages_rewrite(&r, "/executable/reason", NULL);
    packages_expect_invalid("no reason", r.out, "index", "'executable' is absent without a reason");
    packages_rewrite(&r, "/executable/reason", "\"lost\"");
    packages_expect_invalid("another reason", r.out, "sections", "'executable'");
    release_free(&r);
}

/* What the rows do not say. */

static void a_consistent_forgery_is_still_found(void **state)
{
    const struct fixtures *f = *state;
    struct release r;
    char *run;

    /* A run's report made better, its manifest and the index redone. */
    packages_copy(&f->plain, &r);
    run = test_join(r.out, "run-2");
    release_edit(run, RELEASE_REPORT, "/results/achieved_cps", "2500");
    release_edit_manifest(run, NULL, NULL);
    packages_relist(&r);
    packages_expect_invalid("report", r.out, "runs",
                            "acceptance.json does not say what the run's own files give");
    free(run);
    release_free(&r);

    /* A file that no run and no index knows, listed. */
    packages_copy(&f->plain, &r);
    test_write_text(r.out, "CHANGES.txt", "look here\n");
    packages_relist(&r);
    packages_expect_invalid("stranger", r.out, "inventory", "has no place in a package");
    release_free(&r);

    /* One run taken out, the others renumbered, the list redone. */
    packages_copy(&f->plain, &r);
    {
        char *two = test_join(r.out, "run-2");
        char *three = test_join(r.out, "run-3");
        const char *const gone[] = {"rm", "-rf", two, NULL};
        struct test_run done;

        test_run(gone, NULL, NULL, NULL, &done);
        test_run_fini(&done);
        assert_int_equal(rename(three, two), 0);
        free(two);
        free(three);
    }
    packages_relist(&r);
    packages_rewrite(&r, "/run_count", "2");
    packages_expect_invalid("run taken out", r.out, "sections",
                            "'status' is not what the files give");
    release_free(&r);

    /* The judging definition loosened: its digest is in the index. */
    packages_copy(&f->plain, &r);
    release_edit(r.out, "definition.json", "/policy/accept/limits/0/value", "1");
    packages_relist(&r);
    packages_expect_invalid("definition", r.out, "sections",
                            "'definition' is not what the files give");
    release_free(&r);
}

static void every_section_is_compared(void **state)
{
    static const struct {
        const char *pointer;
        const char *json;
    } edits[] = {
        {"/status", "\"FAIL\""},
        {"/project", "\"other/one\""},
        {"/gate", "\"other\""},
        {"/common_source_fingerprint", "null"},
        {"/common_executable_sha256", "null"},
        {"/source_at_start/untracked", "5"},
        {"/source_now/source/dirty", "true"},
        {"/executable/size", "1"},
        {"/baseline/id", "\"b-20260929T200900Z-0000000a\""},
        {"/runs/0/acceptance/checks", "198"},
        {"/runs/1/tree_sha256",
         "\"0000000000000000000000000000000000000000000000000000000000000000\""},
        {"/runs/2/dirty", "true"},
        {"/eligibility/clean", "false"},
        {"/shortcomings", "[{\"code\":\"status\",\"run\":null,\"text\":\"x\"}]"},
        {"/required_count", "4"},
    };
    const struct fixtures *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
        struct release r;

        packages_copy(&f->plain, &r);
        packages_rewrite(&r, edits[i].pointer, edits[i].json);
        packages_expect_invalid(edits[i].pointer, r.out, "sections", "is not what the files give");
        release_free(&r);
    }
    {
        struct release r;

        packages_copy(&f->plain, &r);
        packages_rewrite(&r, "/approved", "true");
        packages_expect_invalid("unknown section", r.out, "index", "approved");
        packages_rewrite(&r, "/approved", NULL);
        packages_expect_exit("as it was", r.out, NULL, 0);
        packages_rewrite(&r, "/eligibility", NULL);
        packages_expect_invalid("section left out", r.out, "index", "'eligibility' is missing");
        release_free(&r);
    }
}

/* Keys in files: key.pem, pub.pem of the release, other.pem of somebody else. */
static void write_keys(const struct release *r)
{
    static const char *const names[][2] = {{"key.pem", "pub.pem"}, {"other-key.pem", "other.pem"}};

    for (size_t i = 0; i < 2; i++) {
        struct private_key *key = NULL;
        char *pem = NULL;
        char *path = test_join(r->dir, names[i][0]);

        MUST(private_key_generate(&key, E));
        MUST(private_key_write(key, &pem, E));
        test_write_text(r->dir, names[i][0], pem);
        assert_int_equal(chmod(path, 0600), 0);
        free(pem);
        MUST(public_key_write(private_key_public(key), &pem, E));
        test_write_text(r->dir, names[i][1], pem);
        free(pem);
        free(path);
        private_key_free(key);
    }
}

static void a_signature_says_who_made_the_index(void **state)
{
    const struct fixtures *f = *state;
    struct release r;
    char *key;
    char *pub;
    char *other;

    packages_copy(&f->plain, &r);
    write_keys(&r);
    key = test_join(r.dir, "key.pem");
    pub = test_join(r.dir, "pub.pem");
    other = test_join(r.dir, "other.pem");
    {
        const char *const ours[] = {"--key", pub, NULL};
        const char *const theirs[] = {"--key", other, NULL};
        const char *const args[] = {r.runs[0], r.runs[1], r.runs[2], "--key", key, NULL};
        int code = -1;
        cJSON *j;

        packages_expect_exit("unsigned, key asked", r.out, ours, 5);
        free(r.out);
        r.out = test_join(r.dir, "packages/signed");
        packages_make(&r, args, 0);
        j = packages_verify(r.out, ours, &code);
        assert_int_equal(code, 0);
        assert_true(cJSON_IsString(json_get(j, "keyid")));
        json_free(j);
        packages_expect_exit("signed, key not asked", r.out, NULL, 0);
        packages_expect_exit("another key", r.out, theirs, 5);
        {
            const char *const open[] = {"chmod", "-R", "u+w", r.out, NULL};
            struct test_run opened;

            test_run(open, NULL, NULL, NULL, &opened);
            test_run_fini(&opened);
        }
        /* A valid index of later date with its checksum: whole, but not what was signed. */
        packages_rewrite(&r, "/created_at", "\"2026-12-31T00:00:00Z\"");
        packages_expect_exit("rewritten, key not asked", r.out, NULL, 0);
        packages_expect_exit("rewritten", r.out, ours, 5);
        packages_remove_file(&r, "index.json.dsse.json");
        packages_expect_exit("signature removed", r.out, ours, 5);
    }
    free(key);
    free(pub);
    free(other);
    release_free(&r);
}

static void what_can_not_be_read_is_exit_2(void **state)
{
    const struct fixtures *f = *state;
    const char *const bad_key[] = {"--key", f->plain.start, NULL};
    int code = -1;
    cJSON *j = packages_verify("/nowhere/at-all", NULL, &code);

    assert_null(j);
    assert_int_equal(code, 2);
    j = packages_verify(f->plain.out, bad_key, &code);
    assert_null(j);
    assert_int_equal(code, 2);
    /* a directory that is no package is a broken one */
    j = packages_verify(f->plain.repo, NULL, &code);
    assert_int_equal(code, 5);
    json_free(j);
}

static void tree_hash_is_the_seeds(void **state)
{
    cJSON *vectors = cases_read_json("tests/data/rvoip/vectors.json");
    const cJSON *v = json_get(vectors, "tree_hash");
    const cJSON *file = NULL;
    char *dir = test_dir_new();
    char *link = test_join(dir, "zz");
    char hex[DIGEST_HEX_SIZE];
    struct digest d;
    struct err e = ERR_INIT;
    int fd = -1;

    (void) state;
    cJSON_ArrayForEach(file, json_get(v, "files")) {
        uint8_t bytes[8];
        size_t len = strlen(file->valuestring) / 2;

        assert_true(len <= sizeof bytes);
        for (size_t i = 0; i < len && i < sizeof bytes; i++) {
            unsigned byte = 0;

            for (size_t k = 0; k < 2; k++) {
                char c = file->valuestring[2 * i + k];

                byte = byte * 16 + (unsigned) (c <= '9' ? c - '0' : c - 'a' + 10);
            }
            bytes[i] = (uint8_t) byte;
        }
        test_write(dir, file->string, bytes, len);
    }
    MUST(file_open_dir(dir, &fd, E));
    MUST(tree_hash("rvoip-canonical-evidence-tree-v1", fd, &d, E));
    digest_hex(&d, hex);
    assert_string_equal(hex, json_get(v, "sha256")->valuestring);
    assert_string_not_equal(hex, json_get(v, "sha256_if_sorted_as_plain_bytes")->valuestring);
    assert_true(tree_hash_compare("a/b", "a-b") < 0);
    assert_true(tree_hash_compare("a-b", "a/b") > 0);
    assert_true(tree_hash_compare("a", "ab") < 0);
    assert_int_equal(tree_hash_compare("a/b", "a/b"), 0);
    assert_int_equal(symlink("report.json", link), 0);
    assert_int_equal(tree_hash("x", fd, &d, &e), -1);
    assert_int_equal(e.kind, ERR_TRUST);
    assert_int_equal(close(fd), 0);
    free(link);
    test_dir_free(dir);
    cJSON_Delete(vectors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_attestation_row_is_replayed),
        cmocka_unit_test(a_name_that_is_no_text_is_invalid),
        cmocka_unit_test(ATT_01_a_copy_verifies_without_the_original),
        cmocka_unit_test(ATT_18_a_missing_run_is_whole_but_not_eligible),
        cmocka_unit_test(ATT_30_a_dirty_source_is_whole_but_not_clean),
        cmocka_unit_test(ATT_31_a_source_that_changed_is_whole_but_not_unchanged),
        cmocka_unit_test(ATT_33_what_was_skipped_is_said_and_counts_when_demanded),
        cmocka_unit_test(a_consistent_forgery_is_still_found),
        cmocka_unit_test(every_section_is_compared),
        cmocka_unit_test(a_signature_says_who_made_the_index),
        cmocka_unit_test(what_can_not_be_read_is_exit_2),
        cmocka_unit_test(tree_hash_is_the_seeds),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
