/* cleanrun seal, verify, key gen, key show: exit codes, what stands on standard output, what is
 * left on disk. */
#include "tests/evidence/fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "audit/verdict.h"
#include "base/limits.h"
#include "base/json_in.h"
#include "runner/commands.h"

static struct fixture fx;
static char *key_path;
static char *pub_path;

struct result {
    int code;
    char *out;
    char *err;
};

static void result_fini(struct result *r)
{
    free(r->out);
    free(r->err);
}
#define AUTO_RESULT __attribute__((cleanup(result_fini)))

static struct result run(const struct command *cmd, const char *const *words)
{
    struct result r = {0};
    size_t out_len = 0;
    size_t err_len = 0;
    struct cli c = {.out = open_memstream(&r.out, &out_len),
                    .err = open_memstream(&r.err, &err_len),
                    .command = cmd->name,
                    .directory = "."};
    static struct cli_args args;
    struct err e = ERR_INIT;
    char *argv[24];
    int argc = 0;

    assert_non_null(c.out);
    assert_non_null(c.err);
    for (; words[argc]; argc++) {
        assert_true(argc < 23);
        argv[argc] = strdup(words[argc]);
    }
    argv[argc] = NULL;
    memset(&args, 0, sizeof args);
    r.code = cli_parse(&c, cmd, argc, argv, &args, &e) < 0 ? cli_fail(&c, &e) : cmd->run(&c, &args);
    assert_int_equal(fclose(c.out), 0);
    assert_int_equal(fclose(c.err), 0);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return r;
}

#define RUN(cmd, ...) run(&(cmd), (const char *const[]){__VA_ARGS__, NULL})

static int set_up(void **state)
{
    AUTO_FREE char *pem = NULL;

    (void) state;
    fixture_init(&fx);
    key_path = test_join(fx.dir, "key.pem");
    pub_path = test_join(fx.dir, "pub.pem");
    MUST(private_key_write(fx.key, &pem, E));
    test_write_text(fx.dir, "key.pem", pem);
    assert_int_equal(chmod(key_path, 0600), 0);
    fixture_seal(&fx);
    return 0;
}

static int tear_down(void **state)
{
    (void) state;
    free(key_path);
    free(pub_path);
    fixture_fini(&fx);
    return 0;
}

static void expect(const char *label, const struct result *r, int code, const char *out,
                   const char *err)
{
    if (r->code != code || !strstr(r->out, out) || !strstr(r->err, err))
        fail_msg("%s: exit %d (expected %d)\n%s%s", label, r->code, code, r->out, r->err);
}

static void seal_prints_the_digest(void **state)
{
    AUTO_FREE char *out = test_join(fx.dir, "again.tar");
    AUTO_RESULT struct result r = RUN(command_seal, fx.run, "--key", key_path, "--out", out);
    AUTO_FREE char *bytes = NULL;
    char hex[DIGEST_HEX_SIZE];
    struct digest d;
    size_t len = 0;

    (void) state;
    expect("seal", &r, EXIT_OK, "again.tar", "sealed with key");
    bytes = test_read_path(out, &len);
    d = digest_of(bytes, len);
    digest_hex(&d, hex);
    assert_memory_equal(r.out, hex, 64);
}

static void seal_exits_by_cause(void **state)
{
    AUTO_FREE char *out = test_join(fx.dir, "never.tar");
    AUTO_FREE char *nowhere = test_join(fx.dir, "nowhere");
    AUTO_FREE char *samples = test_join(fx.run, "samples");
    AUTO_FREE char *open_key = test_join(fx.dir, "open.pem");
    AUTO_FREE char *pem = test_read_path(key_path, NULL);

    (void) state;
    test_write_text(fx.dir, "open.pem", pem);
    assert_int_equal(chmod(open_key, 0644), 0);
    {
        AUTO_RESULT struct result r = RUN(command_seal, nowhere, "--key", key_path, "--out", out);
        expect("no directory", &r, EXIT_USAGE, "", "nowhere");
    }
    {
        AUTO_RESULT struct result r = RUN(command_seal, samples, "--key", key_path, "--out", out);
        expect("no run directory", &r, EXIT_INVALID, "", "manifest.json");
    }
    {
        AUTO_RESULT struct result r = RUN(command_seal, fx.run, "--key", open_key, "--out", out);
        expect("open key", &r, EXIT_USAGE, "", "can be read by others");
    }
    {
        AUTO_RESULT struct result r = RUN(command_seal, fx.run, "--key", pub_path, "--out", out);
        expect("public key", &r, EXIT_USAGE, "", "pub.pem");
    }
    {
        AUTO_RESULT struct result r = RUN(command_seal, fx.run, "--key", key_path);
        expect("no --out", &r, EXIT_USAGE, "", "--out");
    }
    {
        AUTO_RESULT struct result r = RUN(command_seal, fx.run, "--kee", key_path, "--out", out);
        expect("misspelt", &r, EXIT_USAGE, "", "--key");
    }
}

static void verify_shows_every_stage(void **state)
{
    static const char *const stages[] = {"digest",  "signature", "archive", "manifest",
                                         "members", "json",      "source"};
    AUTO_RESULT struct result r = RUN(command_verify, fx.tar, "--key", pub_path);

    (void) state;
    expect("verify", &r, EXIT_OK, "VALID. This says who measured what", "");
    for (size_t i = 0; i < ARRAY_LEN(stages); i++) {
        char line[32];

        (void) snprintf(line, sizeof line, "\u2713 %s", stages[i]);
        assert_non_null(strstr(r.out, line));
    }
    assert_non_null(strstr(r.out, FIXTURE_RUN));
}

static void verify_without_proof_is_invalid(void **state)
{
    AUTO_FREE char *alone = test_join(fx.dir, "alone.tar");
    AUTO_FREE char *big = test_join(fx.dir, "big.json");
    AUTO_FREE char *bytes = calloc(1, 300000);
    size_t len = 0;
    AUTO_FREE char *archive = fixture_archive(&fx, &len);

    (void) state;
    assert_non_null(bytes);
    memset(bytes, ' ', 299999);
    test_write_text(fx.dir, "big.json", bytes);
    test_write(fx.dir, "alone.tar", archive, len);
    {
        AUTO_RESULT struct result r = RUN(command_verify, fx.tar);
        expect("no key", &r, EXIT_INVALID, "INVALID (IN-KEY)", "the signature names key ");
    }
    {
        AUTO_RESULT struct result r = RUN(command_verify, alone, "--key", pub_path);
        expect("no attestation", &r, EXIT_INVALID, "INVALID (IN-SIGNATURE)", "alone.tar.dsse.json");
    }
    {
        AUTO_RESULT struct result r =
            RUN(command_verify, fx.tar, "--key", pub_path, "--attestation", big);
        expect("huge attestation", &r, EXIT_INVALID, "INVALID (IN-SIGNATURE)", "big.json");
    }
    {
        AUTO_RESULT struct result r =
            RUN(command_verify, fx.tar, "--key", pub_path, "--attestation", pub_path);
        expect("no envelope", &r, EXIT_INVALID, "INVALID (IN-SIGNATURE)", "");
    }
    {
        AUTO_RESULT struct result r = RUN(command_verify, pub_path, "--key", pub_path);
        expect("no archive, nothing beside it", &r, EXIT_INVALID, "INVALID", "");
    }
}

static void verify_exits_2_when_it_cannot_look(void **state)
{
    AUTO_FREE char *none = test_join(fx.dir, "none");

    (void) state;
    {
        AUTO_FREE char *huge = test_join(fx.dir, "huge.tar");

        test_write_text(fx.dir, "huge.tar", "");
        assert_int_equal(truncate(huge, (off_t) LIMIT_ARCHIVE + 1), 0);
        AUTO_RESULT struct result r = RUN(command_verify, huge, "--key", pub_path);
        expect("too large", &r, EXIT_USAGE, "", "has 2147483649 bytes; evidence has at most");
    }
    {
        AUTO_RESULT struct result r = RUN(command_verify, none, "--key", pub_path);
        expect("no archive", &r, EXIT_USAGE, "", "none");
    }
    {
        AUTO_RESULT struct result r =
            RUN(command_verify, fx.tar, "--key", pub_path, "--attestation", none);
        expect("no such attestation", &r, EXIT_USAGE, "", "attestation: ");
    }
    {
        AUTO_RESULT struct result r = RUN(command_verify, fx.dir, "--key", pub_path);
        expect("a directory", &r, EXIT_USAGE, "", "not a regular file");
    }
    {
        AUTO_RESULT struct result r = RUN(command_verify, fx.tar, "--key", none);
        expect("no key file", &r, EXIT_USAGE, "", "none");
    }
    {
        AUTO_RESULT struct result r = RUN(command_verify, fx.tar, "--key", fx.tar);
        expect("no key in it", &r, EXIT_USAGE, "", "evidence.tar");
    }
}

static void a_changed_byte_is_invalid(void **state)
{
    AUTO_FREE char *path = test_join(fx.dir, "changed.tar");
    AUTO_FREE char *envelope = NULL;
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    size_t env_len = 0;

    (void) state;
    bytes = fixture_archive(&fx, &len);
    envelope = fixture_envelope(&fx, &env_len);
    bytes[len / 2] ^= 1;
    test_write(fx.dir, "changed.tar", bytes, len);
    test_write(fx.dir, "changed.tar.dsse.json", envelope, env_len);
    {
        AUTO_RESULT struct result r = RUN(command_verify, path, "--key", pub_path);
        expect("changed", &r, EXIT_INVALID, "INVALID (IN-HASH)", "");
        assert_null(strstr(r.out, "\nVALID"));
    }
}

static void requirements_are_not_integrity(void **state)
{
    static const struct {
        const char *words;
        int code;
    } rows[] = {
        {"clean", EXIT_OK},
        {"pass", EXIT_OK},
        {"clean,pass,mode=clean,commit=" FIXTURE_COMMIT, EXIT_OK},
        {"mode=cpu", EXIT_FAIL},
        {"pass,commit=1123456789abcdef0123456789abcdef01234567", EXIT_FAIL},
        {"commit=0123", EXIT_USAGE},
        {"mode=fast", EXIT_USAGE},
        {"green", EXIT_USAGE},
        {"", EXIT_USAGE},
        {"clean,", EXIT_USAGE},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_RESULT struct result r =
            RUN(command_verify, fx.tar, "--key", pub_path, "--require", rows[i].words);
        AUTO_RESULT struct result broken =
            RUN(command_verify, pub_path, "--key", pub_path, "--require", rows[i].words);

        if (r.code != rows[i].code)
            fail_msg("%s: %d (expected %d)", rows[i].words, r.code, rows[i].code);
        if (r.code == EXIT_FAIL) { /* the failure is the last that is said */
            const char *unmet = strstr(r.out, "\nREQUIREMENT NOT MET: ");

            assert_non_null(unmet);
            assert_null(strstr(unmet, "VALID"));
        }
        assert_int_equal(broken.code, rows[i].code == EXIT_USAGE ? EXIT_USAGE : EXIT_INVALID);
    }
}

static void verify_writes_json(void **state)
{
    AUTO_FREE char *file = test_join(fx.dir, "verify.json");
    AUTO_JSON cJSON *j = NULL;

    (void) state;
    {
        AUTO_RESULT struct result r = RUN(command_verify, fx.tar, "--key", pub_path, "--json", "-");

        assert_int_equal(r.code, EXIT_OK);
        MUST(json_parse(r.out, strlen(r.out), NULL, &j, E)); /* nothing else on standard output */
        assert_string_equal(json_get(j, "schema")->valuestring, "cleanrun-verify/1");
        assert_string_equal(json_get(j, "verdict")->valuestring, "VALID");
        assert_string_equal(json_get(json_get(j, "run"), "commit")->valuestring, FIXTURE_COMMIT);
        assert_int_equal(cJSON_GetArraySize(json_get(j, "stages")), 7);
    }
    {
        AUTO_RESULT struct result r = RUN(command_verify, fx.tar, "--json", file);
        AUTO_FREE char *text = test_read_path(file, NULL);

        assert_int_equal(r.code, EXIT_INVALID);
        assert_non_null(strstr(text, "\"verdict\": \"INVALID\""));
    }
}

static void several_keys_may_be_trusted(void **state)
{
    AUTO_PRIVATE_KEY struct private_key *other = NULL;
    AUTO_FREE char *pem = NULL;
    AUTO_FREE char *path = test_join(fx.dir, "other.pem");

    (void) state;
    MUST(private_key_generate(&other, E));
    MUST(public_key_write(private_key_public(other), &pem, E));
    test_write_text(fx.dir, "other.pem", pem);
    {
        AUTO_RESULT struct result r = RUN(command_verify, fx.tar, "--key", path);
        expect("another key", &r, EXIT_INVALID, "INVALID (IN-KEY)", "");
    }
    {
        AUTO_RESULT struct result r =
            RUN(command_verify, fx.tar, "--key", path, "--key", pub_path, "--key", pub_path);
        expect("both", &r, EXIT_OK, "VALID", "");
    }
}

static void key_gen_makes_a_pair_and_never_overwrites(void **state)
{
    AUTO_FREE char *dir = test_join(fx.dir, "keys");
    AUTO_FREE char *secret = test_join(dir, "key.pem");
    AUTO_FREE char *public = test_join(dir, "pub.pem");
    struct stat st;

    (void) state;
    {
        AUTO_RESULT struct result r = RUN(command_key_gen, "--out", dir);
        expect("gen", &r, EXIT_OK, "fingerprint", "keep it secret");
        assert_int_equal(stat(secret, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        {
            AUTO_RESULT struct result a = RUN(command_key_show, secret);
            AUTO_RESULT struct result b = RUN(command_key_show, public);

            assert_int_equal(a.code, EXIT_OK);
            assert_string_equal(a.out, r.out);
            assert_string_equal(b.out, r.out);
        }
    }
    {
        AUTO_FREE char *before = test_read_path(secret, NULL);
        AUTO_RESULT struct result r = RUN(command_key_gen, "--out", dir);
        AUTO_FREE char *after = test_read_path(secret, NULL);

        assert_int_equal(r.code, EXIT_USAGE);
        assert_string_equal(before, after);
    }
    assert_int_equal(chmod(secret, 0640), 0);
    {
        AUTO_RESULT struct result r = RUN(command_key_show, secret);
        expect("open key", &r, EXIT_USAGE, "", "can be read by others");
    }
}

static void a_made_key_seals_and_verifies(void **state)
{
    AUTO_FREE char *dir = test_join(fx.dir, "pair");
    AUTO_FREE char *secret = test_join(dir, "key.pem");
    AUTO_FREE char *public = test_join(dir, "pub.pem");
    AUTO_FREE char *tar = test_join(fx.dir, "made.tar");

    (void) state;
    {
        AUTO_RESULT struct result g = RUN(command_key_gen, "--out", dir, "--json", "-");
        AUTO_RESULT struct result s = RUN(command_seal, fx.run, "--key", secret, "--out", tar);
        AUTO_RESULT struct result v = RUN(command_verify, tar, "--key", public);

        expect("gen", &g, EXIT_OK, "cleanrun-key/1", "");
        expect("seal", &s, EXIT_OK, "made.tar", "");
        expect("verify", &v, EXIT_OK, "VALID", "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seal_prints_the_digest),
        cmocka_unit_test(seal_exits_by_cause),
        cmocka_unit_test(verify_shows_every_stage),
        cmocka_unit_test(verify_without_proof_is_invalid),
        cmocka_unit_test(verify_exits_2_when_it_cannot_look),
        cmocka_unit_test(a_changed_byte_is_invalid),
        cmocka_unit_test(requirements_are_not_integrity),
        cmocka_unit_test(verify_writes_json),
        cmocka_unit_test(several_keys_may_be_trusted),
        cmocka_unit_test(key_gen_makes_a_pair_and_never_overwrites),
        cmocka_unit_test(a_made_key_seals_and_verifies),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
