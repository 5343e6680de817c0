/* The downloadable bundle: the same bytes however it is read, and its own instructions work without
 * us. */
#include "tests/evidence/fixture.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/json_in.h"
#include "evidence/attest.h"
#include "evidence/bundle.h"
#include "evidence/dsse.h"
#include "evidence/statement.h"

static struct fixture fx;
static struct private_key *server;
static char *tar;
static size_t tar_len;
static int tar_fd = -1;
static struct bundle *bundle;

static char *verdict_envelope(const char *verdict, size_t *out_len)
{
    struct digest d = digest_of(tar, tar_len);
    AUTO_FREE char *env = NULL;
    AUTO_JSON cJSON *reasons = NULL;
    struct digest env_digest;
    char *out = NULL;
    size_t len = 0;

    env = fixture_envelope(&fx, &len);
    env_digest = digest_of(env, len);
    MUST(json_parse("[{\"code\":\"NC-MODE\"}]", 20, NULL, &reasons, E));
    MUST(attest_verdict(
        &(struct attest_verdict_input){.verdict = verdict,
                                       .archive_digest = &d,
                                       .commit = FIXTURE_COMMIT,
                                       .verifier_id = "https://perf.example/verifier/v1",
                                       .verifier_version = "0.1.0",
                                       .resource_uri =
                                           "https://perf.example/demo/kvcache/" FIXTURE_RUN,
                                       .policy_uri = "https://perf.example/policies/kvcache-50k",
                                       .envelope_uri = "https://perf.example/x/attestation",
                                       .envelope_digest = &env_digest,
                                       .reasons = strcmp(verdict, "OK") == 0 ? NULL : reasons,
                                       .verified_at_us = 1795964400000000},
        server, &out, out_len, E));
    return out;
}

static int set_up(void **state)
{
    AUTO_FREE char *env = NULL;
    AUTO_FREE char *sig_path = NULL;
    AUTO_FREE char *sig = NULL;
    AUTO_FREE char *verdict = NULL;
    struct digest d;
    size_t env_len = 0;
    size_t sig_len = 0;
    size_t verdict_len = 0;

    (void) state;
    fixture_init(&fx);
    fixture_seal(&fx);
    MUST(private_key_generate(&server, E));
    tar = fixture_archive(&fx, &tar_len);
    tar_fd = open(fx.tar, O_RDONLY | O_CLOEXEC);
    assert_true(tar_fd >= 0);
    env = fixture_envelope(&fx, &env_len);
    sig_path = test_join(fx.dir, "evidence.tar.sig");
    sig = test_read_path(sig_path, &sig_len);
    verdict = verdict_envelope("OK", &verdict_len);
    d = digest_of(tar, tar_len);
    MUST(bundle_new(&(struct bundle_input){.run = FIXTURE_RUN,
                                           .archive_digest = &d,
                                           .archive_size = tar_len,
                                           .envelope = env,
                                           .envelope_len = env_len,
                                           .archive_sig = (const uint8_t *) sig,
                                           .archive_sig_len = sig_len,
                                           .verdict_envelope = verdict,
                                           .verdict_envelope_len = verdict_len,
                                           .runner_key = private_key_public(fx.key),
                                           .server_key = private_key_public(server)},
                    &bundle, E));
    return 0;
}

static int tear_down(void **state)
{
    (void) state;
    bundle_free(bundle);
    private_key_free(server);
    (void) close(tar_fd);
    free(tar);
    fixture_fini(&fx);
    return 0;
}

static char *read_whole(size_t step)
{
    size_t size = (size_t) bundle_size(bundle);
    char *out = malloc(size + step);
    size_t at = 0;

    assert_non_null(out);
    for (;;) {
        size_t n = 0;

        MUST(bundle_read(bundle, tar_fd, at, out + at, step, &n, E));
        if (n == 0)
            break;
        at += n;
    }
    assert_int_equal(at, size);
    return out;
}

static void every_way_of_reading_gives_the_same_bytes(void **state)
{
    AUTO_FREE char *whole = read_whole(1 << 20);
    AUTO_FREE char *parts = read_whole(777);
    size_t size = (size_t) bundle_size(bundle);
    uint64_t seed = 5;
    size_t at = 0;

    (void) state;
    assert_memory_equal(whole, parts, size);
    for (size_t i = 0; i < bundle_part_count(bundle); i++) {
        struct bundle_part p = bundle_part_get(bundle, i);

        assert_memory_equal(whole + at, p.bytes ? p.bytes : tar, (size_t) p.len);
        at += (size_t) p.len;
    }
    assert_int_equal(at, size);
    for (int i = 0; i < 500; i++) {
        size_t from = test_random_below(&seed, size);
        char piece[64];
        size_t n = 0;

        MUST(bundle_read(bundle, tar_fd, from, piece, sizeof piece, &n, E));
        assert_true(n > 0);
        assert_memory_equal(piece, whole + from, n);
    }
}

static void a_shortened_archive_is_an_error_not_a_short_download(void **state)
{
    AUTO_FD int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct err e = ERR_INIT;
    char piece[16];
    size_t n = 0;

    (void) state;
    assert_int_equal(
        bundle_read(bundle, empty, bundle_part_get(bundle, 0).len, piece, sizeof piece, &n, &e),
        -1);
    assert_int_equal(e.kind, ERR_TRUST);
}

static void shell(const char *dir, const char *command)
{
    const char *const argv[] = {"bash", "-ec", command, NULL};
    struct test_run r = {0};

    test_run(argv, NULL, dir, NULL, &r);
    if (r.code != 0)
        fail_msg("%s: exit %d: %s%s", command, r.code, r.out, r.err);
    test_run_fini(&r);
}

static void its_own_instructions_work(void **state)
{
    AUTO_FREE char *whole = read_whole(4096);

    (void) state;
    test_write(fx.dir, "bundle.tar", whole, (size_t) bundle_size(bundle));
    shell(fx.dir, "tar -xf bundle.tar && cmp evidence.tar " FIXTURE_RUN "/evidence.tar");
    /* Every indented command of VERIFY.md, but Sigstore's and jq's clients, which may not be here.
     */
    shell(fx.dir, "cd " FIXTURE_RUN " && grep '^    ' VERIFY.md | grep -v '^    *#' | grep -v "
                  "'cosign\\|--insecure\\|jq' > do.sh &&"
                  " test $(wc -l < do.sh) -ge 8 && bash -e do.sh");
    /* What it says must be is so. */
    shell(fx.dir, "cd " FIXTURE_RUN
                  " && grep -q \"must be: $(sha256sum evidence.tar | cut -c1-64)\" VERIFY.md &&"
                  " grep -q \"here: $(openssl pkey -pubin -in keys/runner.pem -outform DER | "
                  "sha256sum | cut -c1-64)\" VERIFY.md &&"
                  " grep -q \"here: $(openssl pkey -pubin -in keys/server.pem -outform DER | "
                  "sha256sum | cut -c1-64)\" VERIFY.md");
    /* And they fail when a byte is another. */
    shell(
        fx.dir,
        "cd " FIXTURE_RUN
        " && printf x | dd of=evidence.tar bs=1 seek=600 conv=notrunc status=none &&"
        " ! openssl dgst -sha256 -verify keys/runner.pem -signature evidence.tar.sig evidence.tar");
}

static void check_verdict(const char *verdict, const char *result, const char *levels)
{
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    AUTO_FREE char *env = NULL;
    AUTO_FREE char *again = NULL;
    size_t len = 0;

    env = verdict_envelope(verdict, &len);
    again = verdict_envelope(verdict, &len);
    assert_string_equal(env, again);
    MUST(dsse_parse(env, len, &d, E));
    assert_string_equal(d.payload_type, STATEMENT_PAYLOAD_TYPE);
    if (!strstr((const char *) d.payload, result) || !strstr((const char *) d.payload, levels))
        fail_msg("%s: %s", verdict, (const char *) d.payload);
    assert_non_null(strstr((const char *) d.payload, "\"timeVerified\":\"2026-11-29T15:00:00Z\""));
}

static void only_ok_is_passed(void **state)
{
    static const char *const others[] = {"REGRESSION", "NON_COMPARABLE", "FAIL", "INVALID",
                                         "ERROR",      "PENDING",        "",     "ok"};

    (void) state;
    check_verdict("OK", "\"verificationResult\":\"PASSED\"",
                  "\"verifiedLevels\":[\"CLEANRUN_PROVENANCE_VERIFIED\",\"CLEANRUN_COMPARABLE\","
                  "\"CLEANRUN_NO_REGRESSION\"]");
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        check_verdict(others[i], "\"verificationResult\":\"FAILED\"",
                      "\"verifiedLevels\":[\"FAILED\"]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_of_reading_gives_the_same_bytes),
        cmocka_unit_test(a_shortened_archive_is_an_error_not_a_short_download),
        cmocka_unit_test(only_ok_is_passed),
        cmocka_unit_test(its_own_instructions_work),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
