/* Sealing: four files or none, and only from a directory that says exactly what it holds. */
#include "tests/evidence/fixture.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_in.h"
#include "evidence/seal.h"

static void shell(const char *dir, const char *command)
{
    const char *const argv[] = {"sh", "-ec", command, NULL};
    struct test_run r = {0};

    test_run(argv, NULL, dir, NULL, &r);
    if (r.code != 0)
        fail_msg("%s: exit %d: %s%s", command, r.code, r.out, r.err);
    test_run_fini(&r);
}

static void sealing_leaves_four_files(void **state)
{
    struct fixture f;
    char **names = NULL;

    (void) state;
    fixture_init(&f);
    fixture_seal(&f);
    assert_int_equal(test_list(f.dir, "", &names), 6);
    assert_string_equal(names[0], "evidence.tar");
    assert_string_equal(names[1], "evidence.tar.dsse.json");
    assert_string_equal(names[2], "evidence.tar.sig");
    assert_string_equal(names[3], "evidence.tar.sigstore.json");
    test_names_free(names);
    fixture_fini(&f);
}

static void openssl_verifies_archive_and_statement(void **state)
{
    struct fixture f;

    (void) state;
    fixture_init(&f);
    fixture_seal(&f);
    shell(f.dir, "openssl dgst -sha256 -verify pub.pem -signature evidence.tar.sig evidence.tar");
    shell(f.dir,
          "sed 's/.*\"payload\":\"\\([^\"]*\\)\".*/\\1/' evidence.tar.dsse.json | base64 -d > "
          "statement\n"
          "sed 's/.*\"sig\":\"\\([^\"]*\\)\".*/\\1/' evidence.tar.dsse.json | base64 -d > sig\n"
          "{ printf 'DSSEv1 28 application/vnd.in-toto+json %s ' $(stat -c %s statement); cat "
          "statement; } > pae\n"
          "openssl dgst -sha256 -verify pub.pem -signature sig pae\n"
          "grep -q $(sha256sum evidence.tar | cut -d' ' -f1) statement");
    fixture_fini(&f);
}

static void the_statement_names_archive_executable_and_commit(void **state)
{
    struct fixture f;
    AUTO_FREE char *env = NULL;
    size_t len = 0;

    (void) state;
    fixture_init(&f);
    fixture_seal(&f);
    shell(f.dir,
          "sed 's/.*\"payload\":\"\\([^\"]*\\)\".*/\\1/' evidence.tar.dsse.json | base64 -d > "
          "statement\n"
          "grep -q '\"subject\":\\[{\"name\":\"evidence.tar\",' statement\n"
          "grep -q '{\"name\":\"kvcache\",\"digest\":{\"sha256\":\"b94d' statement\n"
          "grep -q '{\"digest\":{\"gitCommit\":\"" FIXTURE_COMMIT "\"}}' statement\n"
          "grep -q '\"predicateType\":\"https://cleanrun.dev/attestation/run/v1\"' statement");
    env = fixture_envelope(&f, &len);
    assert_non_null(strstr(env, public_key_id(private_key_public(f.key))));
    fixture_fini(&f);
}

static void a_dirty_source_is_no_commit(void **state)
{
    struct fixture f;
    cJSON *m;

    (void) state;
    fixture_init(&f);
    shell(f.run,
          "sed -i 's/\"dirty\":false/\"dirty\":true/' source-at-start.json source-at-end.json");
    m = fixture_manifest(&f);
    fixture_set(m, "/source/start/dirty", "true");
    fixture_set(m, "/source/end/dirty", "true");
    fixture_write_manifest(&f, m);
    json_free(m);
    fixture_seal(&f);
    shell(f.dir, "sed 's/.*\"payload\":\"\\([^\"]*\\)\".*/\\1/' evidence.tar.dsse.json | base64 -d "
                 "> statement\n"
                 "! grep -q gitCommit statement\n"
                 "grep -q '\"dirty\":true' statement");
    fixture_fini(&f);
}

static void failed_and_partial_runs_can_be_sealed(void **state)
{
    struct fixture f;
    cJSON *m;

    (void) state;
    fixture_init(&f);
    shell(f.run,
          "rm acceptance.json audit.json audit.md; echo '{\"cut' > results/kvcache/50000.json");
    m = fixture_manifest(&f);
    fixture_set(m, "/status", "\"FAIL\"");
    fixture_set(m, "/exit_code", "1");
    fixture_set(m, "/report_status", "\"INVALID\"");
    fixture_set(m, "/acceptance_status", "\"NOT_APPLICABLE\"");
    fixture_set(m, "/audit_status", "\"NOT_APPLICABLE\"");
    fixture_set(m, "/coverage", "[]");
    fixture_set(m, "/files/5/role", "\"raw-report\"");
    assert_string_equal(json_get(cJSON_GetArrayItem(json_get(m, "files"), 5), "path")->valuestring,
                        "results/kvcache/50000.json");
    fixture_write_manifest(&f, m);
    json_free(m);
    fixture_seal(&f);
    fixture_fini(&f);
}

static void build_only_runs_can_be_sealed(void **state)
{
    struct fixture f;
    cJSON *m;

    (void) state;
    fixture_init(&f);
    shell(f.run, "rm -r acceptance.json audit.json audit.md results samples run.log");
    shell(f.run, "sed -i 's/,\"run\":.*,\"rejected/,\"rejected/' environment.json");
    m = fixture_manifest(&f);
    fixture_set(m, "/environment", "null");
    fixture_set(m, "/status", "\"BUILD_ONLY\"");
    fixture_set(m, "/exit_code", "null");
    fixture_set(m, "/report", "null");
    fixture_set(m, "/report_status", "\"NOT_EXPECTED\"");
    fixture_set(m, "/acceptance_status", "\"NOT_APPLICABLE\"");
    fixture_set(m, "/audit_status", "\"NOT_APPLICABLE\"");
    fixture_set(m, "/coverage", "[]");
    fixture_write_manifest(&f, m);
    json_free(m);
    fixture_seal(&f);
    fixture_fini(&f);
}

/* Nothing of a failed seal is left: the root holds pub.pem and run/ as before. */
static void refused(const struct fixture *f, const char *label, const char *expect)
{
    struct err e = ERR_INIT;
    struct digest d;
    char **names = NULL;

    if (seal_run(f->run_fd, f->key, f->tar, &d, &e) == 0)
        fail_msg("%s: sealed", label);
    if (e.kind != ERR_TRUST || !strstr(e.text, expect))
        fail_msg("%s: expected '%s' in: %s (kind %d)", label, expect, e.text, (int) e.kind);
    assert_int_equal(test_list(f->dir, "", &names), 2);
    test_names_free(names);
}

static void directories_that_differ_from_their_manifest_are_refused(void **state)
{
    static const struct {
        const char *command;
        const char *expect;
    } rows[] = {
        {"echo x >> run.log", "run.log"},
        {"printf RAN > run.log", "run.log"},
        {"printf 'RAN\\n' > run.log", "does not have the sha256"},
        {"rm run.log", "'run.log' is in the manifest but not in the run directory"},
        {"rm source-at-start.json", "in the manifest but not"},
        {"echo x > extra", "'extra' is in the run directory but not in its manifest"},
        {"echo x > zzz", "'zzz' is in the run directory"},
        {"echo x > .hidden", ".hidden"},
        {"mkdir sub && echo x > sub/x", "'sub/x' is in the run directory"},
        {"mv run.log log && ln -s log run.log", ""},
        {"ln -s /etc/passwd passwd", ""},
        {"mkfifo fifo", ""},
        {"rm run.log && mkdir run.log", "run.log"},
        {"rm manifest.json", "manifest.json"},
        {"echo > manifest.json", "manifest.json"},
        {"rm manifest.json && ln -s /etc/passwd manifest.json", ""},
        {"sed -i 's/\"PASS\"/\"FINE\"/' manifest.json", "manifest.json"},
        {"sed -i 's/\"exit_code\": 0,$/\"exit_code\": 1,/' manifest.json", "did not exit with 0"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f;

        fixture_init(&f);
        shell(f.run, rows[i].command);
        refused(&f, rows[i].command, rows[i].expect);
        fixture_fini(&f);
    }
}

static void what_would_not_verify_is_not_sealed(void **state)
{
    static const struct {
        const char *command;
        const char *expect;
    } rows[] = {
        {"echo '{\"a\":1,\"a\":2}' > results/kvcache/50000.json", "IN-JSON"},
        {"echo '{}' > source-at-end.json", "IN-SOURCE"},
        {"echo '{}' > definition.json", "IN-JSON"},
        {"sed -i 's/50000.json/50001.json/' definition.json", "IN-MANIFEST"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f;

        fixture_init(&f);
        shell(f.run, rows[i].command);
        fixture_refresh(&f);
        refused(&f, rows[i].command, rows[i].expect);
        fixture_fini(&f);
    }
}

static void a_hard_linked_file_is_just_a_file(void **state)
{
    struct fixture f;

    (void) state;
    fixture_init(&f);
    shell(f.run, "ln run.log ../other");
    fixture_seal(&f);
    fixture_fini(&f);
}

static void places_that_cannot_take_it_are_refused(void **state)
{
    struct fixture f;
    struct err e = ERR_INIT;
    struct digest d;
    AUTO_FREE char *inside = NULL;
    AUTO_FREE char *nowhere = NULL;
    AUTO_FREE char *slash = NULL;

    (void) state;
    fixture_init(&f);
    inside = test_join(f.run, "evidence.tar");
    nowhere = test_join(f.dir, "no/such/evidence.tar");
    slash = test_join(f.dir, "");
    assert_int_equal(seal_run(f.run_fd, f.key, inside, &d, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);
    assert_int_equal(seal_run(f.run_fd, f.key, nowhere, &d, &e), -1);
    assert_int_equal(e.kind, ERR_NOTFOUND);
    assert_int_equal(seal_run(f.run_fd, f.key, slash, &d, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);
    fixture_seal(&f); /* the run directory is as it was */
    fixture_fini(&f);
}

static void a_full_disk_leaves_nothing(void **state)
{
    struct fixture f;
    struct err e = ERR_INIT;
    struct digest d;
    AUTO_FREE char *small = NULL;
    AUTO_FREE char *tar = NULL;
    char **names = NULL;
    const char *argv[] = {"mount", "-t", "tmpfs", "-o", "size=8k", "none", NULL, NULL};
    const char *undo[] = {"umount", NULL, NULL};
    struct test_run r = {0};

    (void) state;
    fixture_init(&f);
    small = test_join(f.dir, "small");
    assert_int_equal(mkdir(small, 0700), 0);
    argv[6] = small;
    undo[1] = small;
    test_run(argv, NULL, NULL, NULL, &r);
    if (r.code != 0) {
        test_run_fini(&r);
        fixture_fini(&f);
        skip();
    }
    test_run_fini(&r);
    tar = test_join(small, "evidence.tar");
    assert_int_equal(seal_run(f.run_fd, f.key, tar, &d, &e), -1);
    assert_int_equal(e.kind, ERR_NOSPACE);
    assert_int_equal(test_list(small, "", &names), 0);
    test_names_free(names);
    test_run(undo, NULL, NULL, NULL, &r);
    test_run_fini(&r);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealing_leaves_four_files),
        cmocka_unit_test(openssl_verifies_archive_and_statement),
        cmocka_unit_test(the_statement_names_archive_executable_and_commit),
        cmocka_unit_test(a_dirty_source_is_no_commit),
        cmocka_unit_test(failed_and_partial_runs_can_be_sealed),
        cmocka_unit_test(build_only_runs_can_be_sealed),
        cmocka_unit_test(directories_that_differ_from_their_manifest_are_refused),
        cmocka_unit_test(what_would_not_verify_is_not_sealed),
        cmocka_unit_test(a_hard_linked_file_is_just_a_file),
        cmocka_unit_test(places_that_cannot_take_it_are_refused),
        cmocka_unit_test(a_full_disk_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
