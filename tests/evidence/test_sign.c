/* Signatures and keys, with openssl and Project Wycheproof as judges. */
#include "tests/lib/must.h"
#include "tests/lib/support.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/text.h"
#include "evidence/keyring.h"
#include "evidence/pem.h"
#include "evidence/sign.h"
#include "tests/evidence/vectors.h"

static const char *member(const cJSON *o, const char *key)
{
    const char *s = NULL;

    MUST(json_get_string(o, key, &s, E));
    return s;
}

static uint8_t *bytes_of(const char *hex, size_t *out_len)
{
    size_t n = strlen(hex);
    uint8_t *p = malloc(n / 2 + 1);

    assert_non_null(p);
    if (!text_unhex(hex, n, p))
        fail_msg("no hex: %s", hex);
    *out_len = n / 2;
    return p;
}

static void judge_group(const cJSON *group, size_t counts[2])
{
    AUTO_PUBLIC_KEY struct public_key *k = NULL;
    const char *pem = member(group, "publicKeyPem");
    const cJSON *t;

    MUST(public_key_parse(pem, strlen(pem), &k, E));
    cJSON_ArrayForEach(t, json_get(group, "tests")) {
        bool valid = strcmp(member(t, "result"), "valid") == 0;
        size_t msg_len = 0;
        size_t sig_len = 0;
        AUTO_FREE uint8_t *msg = bytes_of(member(t, "msg"), &msg_len);
        AUTO_FREE uint8_t *sig = bytes_of(member(t, "sig"), &sig_len);
        struct digest d = digest_of(msg, msg_len);

        if (public_key_verify(k, &d, sig, sig_len) != valid)
            fail_msg("case %s (%s): %s", member(t, "result"), member(t, "comment"),
                     member(t, "sig"));
        counts[valid]++;
    }
}

static void wycheproof_is_judged_rightly(void **state)
{
    const struct json_limits limits = {
        .max_bytes = LIMIT_MIB(1), .max_depth = 16, .big_integers = true};
    AUTO_FREE char *path = test_shared("data/corpora/wycheproof/ecdsa_secp256r1_sha256_test.json");
    AUTO_FREE char *text = NULL;
    AUTO_JSON cJSON *root = NULL;
    size_t counts[2] = {0, 0};
    const cJSON *group;
    size_t len = 0;

    (void) state;
    if (!path)
        skip();
    text = test_read_path(path, &len);
    MUST(json_parse(text, len, &limits, &root, E));
    cJSON_ArrayForEach(group, json_get(root, "testGroups"))
        judge_group(group, counts);
    assert_true(counts[0] >= 300);
    assert_true(counts[1] >= 170);
    print_message("wycheproof: %zu valid accepted, %zu invalid refused\n", counts[1], counts[0]);
}

static void signatures_are_deterministic_and_strict(void **state)
{
    struct private_key *k = vector_key();
    uint64_t seed = 7;

    (void) state;
    for (int i = 0; i < 50; i++) {
        uint64_t r = test_random(&seed);
        struct digest d = digest_of(&r, sizeof r);
        uint8_t a[SIGNATURE_MAX];
        uint8_t b[SIGNATURE_MAX];
        size_t n = 0;
        size_t m = 0;

        MUST(private_key_sign(k, &d, a, &n, E));
        MUST(private_key_sign(k, &d, b, &m, E));
        assert_int_equal(n, m);
        assert_memory_equal(a, b, n);
        assert_true(public_key_verify(private_key_public(k), &d, a, n));
        assert_false(public_key_verify(private_key_public(k), &d, a, n - 1));
        assert_false(public_key_verify(private_key_public(k), &d, a, n + 1));
        assert_false(public_key_verify(private_key_public(k), &d, a, 0));
        for (size_t bit = 0; bit < 8 * n; bit += 37) {
            memcpy(b, a, n);
            b[bit / 8] ^= (uint8_t) (1u << bit % 8);
            assert_false(public_key_verify(private_key_public(k), &d, b, n));
        }
        d.bytes[0] ^= 1;
        assert_false(public_key_verify(private_key_public(k), &d, a, n));
    }
    private_key_free(k);
}

static void raw_and_zero_signatures_are_refused(void **state)
{
    static const uint8_t zero_r[] = {0x30, 0x06, 0x02, 0x01, 0x00, 0x02, 0x01, 0x01};
    static const uint8_t zero_s[] = {0x30, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x00};
    AUTO_PUBLIC_KEY struct public_key *k = NULL;
    struct digest d = digest_of("x", 1);
    uint8_t raw[64];

    (void) state;
    memset(raw, 1, sizeof raw);
    MUST(public_key_parse(VECTOR_PUBLIC, strlen(VECTOR_PUBLIC), &k, E));
    assert_false(public_key_verify(k, &d, raw, sizeof raw));
    assert_false(public_key_verify(k, &d, zero_r, sizeof zero_r));
    assert_false(public_key_verify(k, &d, zero_s, sizeof zero_s));
}

static void openssl(const char *dir, const char *command)
{
    const char *const argv[] = {"sh", "-ec", command, NULL};
    struct test_run r = {0};

    test_run(argv, NULL, dir, NULL, &r);
    if (r.code != 0)
        fail_msg("%s: exit %d: %s", command, r.code, r.err);
    test_run_fini(&r);
}

static void openssl_accepts_our_keys_and_signatures(void **state)
{
    AUTO_PRIVATE_KEY struct private_key *k = NULL;
    AUTO_FREE char *private_pem = NULL;
    AUTO_FREE char *public_pem = NULL;
    char *dir = test_dir_new();
    struct digest d = digest_of("message\n", 8);
    uint8_t sig[SIGNATURE_MAX];
    size_t len = 0;

    (void) state;
    MUST(private_key_generate(&k, E));
    MUST(private_key_write(k, &private_pem, E));
    MUST(public_key_write(private_key_public(k), &public_pem, E));
    MUST(private_key_sign(k, &d, sig, &len, E));
    test_write_text(dir, "key.pem", private_pem);
    test_write_text(dir, "pub.pem", public_pem);
    test_write_text(dir, "message", "message\n");
    test_write(dir, "sig", sig, len);
    openssl(dir, "openssl dgst -sha256 -verify pub.pem -signature sig message");
    openssl(dir, "openssl pkey -in key.pem -check -noout");
    openssl(dir, "openssl pkey -in key.pem -pubout | cmp - pub.pem");
    openssl(dir, "openssl dgst -sha256 -sign key.pem -out sig2 message && openssl dgst -sha256 "
                 "-verify pub.pem "
                 "-signature sig2 message");
    test_dir_free(dir);
}

static char *made_by(const char *dir, const char *command, const char *name, size_t *len)
{
    AUTO_FREE char *path = test_join(dir, name);

    openssl(dir, command);
    return test_read_path(path, len);
}

static void openssl_keys_are_read_in_both_forms(void **state)
{
    static const char *const commands[] = {
        "openssl ecparam -name prime256v1 -genkey -noout -out k.pem",
        "openssl ecparam -name prime256v1 -genkey -out k.pem", /* with a parameters block before the
                                                                  key */
        "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out k.pem",
    };
    char *dir = test_dir_new();

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        AUTO_PRIVATE_KEY struct private_key *k = NULL;
        AUTO_PUBLIC_KEY struct public_key *p = NULL;
        size_t len = 0;
        AUTO_FREE char *pem = made_by(dir, commands[i], "k.pem", &len);
        AUTO_FREE char *pub =
            made_by(dir, "openssl pkey -in k.pem -pubout -out p.pem", "p.pem", &(size_t){0});

        MUST(private_key_parse(pem, len, &k, E));
        MUST(public_key_parse(pub, strlen(pub), &p, E));
        assert_string_equal(public_key_id(p), public_key_id(private_key_public(k)));
    }
    test_dir_free(dir);
}

static void other_keys_are_refused(void **state)
{
    static const char *const commands[] = {
        "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out k.pem",
        "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:secp256k1 -out k.pem",
        "openssl genpkey -algorithm ED25519 -out k.pem",
        "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out k.pem",
    };
    char *dir = test_dir_new();

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        struct private_key *k = NULL;
        struct public_key *p = NULL;
        struct err e = ERR_INIT;
        size_t len = 0;
        AUTO_FREE char *pem = made_by(dir, commands[i], "k.pem", &len);
        AUTO_FREE char *pub =
            made_by(dir, "openssl pkey -in k.pem -pubout -out p.pem", "p.pem", &(size_t){0});

        assert_int_equal(private_key_parse(pem, len, &k, &e), -1);
        assert_int_equal(e.kind, ERR_INPUT);
        assert_int_equal(public_key_parse(pub, strlen(pub), &p, &e), -1);
        assert_int_equal(e.kind, ERR_INPUT);
        assert_null(k);
        assert_null(p);
    }
    test_dir_free(dir);
}

static void malformed_public_keys_are_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\n!!!!\n-----END PUBLIC KEY-----\n",
        /* a coordinate changed: not on the curve */
        "-----BEGIN PUBLIC "
        "KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZ805D3eqNZywjCI19lInBJOp7YMr\n"
        "CrzAH3CVTAOQ0jgMeCvVTiaRJaRPRDOv8UMs6U4SvKc6pnrIDOoSYI3fdQ==\n-----END PUBLIC KEY-----\n",
        "x" VECTOR_PUBLIC,
        VECTOR_PUBLIC "x",
        VECTOR_PUBLIC VECTOR_PUBLIC,
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct public_key *k = NULL;
        struct err e = ERR_INIT;

        if (public_key_parse(texts[i], strlen(texts[i]), &k, &e) != -1)
            fail_msg("accepted: %s", texts[i]);
        assert_null(k);
    }
}

/* The one accepted form, 91 bytes: with any bit changed, cut or lengthened it is no key. */
static void no_other_encoding_of_a_public_key_is_accepted(void **state)
{
    uint8_t der[128] = {0};
    size_t len = 0;

    (void) state;
    MUST(pem_decode(VECTOR_PUBLIC, strlen(VECTOR_PUBLIC), "PUBLIC KEY", der, sizeof der, &len, E));
    assert_int_equal(len, 91);
    for (size_t bit = 0; bit <= 8 * len + 2; bit++) {
        uint8_t changed[sizeof der];
        size_t n = bit == 8 * len ? len - 1 : bit == 8 * len + 1 ? len + 1 : len;
        struct public_key *k = NULL;
        struct err e = ERR_INIT;
        AUTO_FREE char *pem = NULL;
        bool as_it_is = bit == 8 * len + 2;

        memcpy(changed, der, sizeof der);
        if (bit < 8 * len)
            changed[bit / 8] ^= (uint8_t) (1u << bit % 8);
        pem = pem_encode("PUBLIC KEY", changed, n);
        assert_non_null(pem);
        if ((public_key_parse(pem, strlen(pem), &k, &e) == 0) != as_it_is)
            fail_msg("bit %zu, %zu bytes", bit, n);
        public_key_free(k);
    }
}

/* Neither with a bit changed, nor cut, nor lengthened, inside or behind. */
static void no_other_encoding_of_a_signature_is_accepted(void **state)
{
    static const uint8_t long_r[] = {
        /* 34 bytes: more than a coordinate can have */
        0x30, 0x29, 0x02, 0x22, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b,
        0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a,
        0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x02, 0x01, 0x01, 0x00, 0x00};
    static const uint8_t beyond[] = {0x30, 0x06, 0x02, 0x20, 0x01, 0x02, 0x01, 0x01};
    static const uint8_t nothing[] = {0x30, 0x06, 0x02, 0x00, 0x02, 0x02, 0x01, 0x01};
    AUTO_PRIVATE_KEY struct private_key *key = NULL;
    const struct public_key *k = NULL;
    struct digest d = digest_of("message", 7);
    uint8_t sig[SIGNATURE_MAX + 1] = {0};
    size_t len = 0;

    (void) state;
    MUST(private_key_generate(&key, E));
    k = private_key_public(key);
    MUST(private_key_sign(key, &d, sig, &len, E));
    assert_true(public_key_verify(k, &d, sig, len));
    for (size_t bit = 0; bit < 8 * len; bit++) {
        AUTO_FREE uint8_t *changed = malloc(len);

        assert_non_null(changed);
        memcpy(changed, sig, len);
        changed[bit / 8] ^= (uint8_t) (1u << bit % 8);
        if (public_key_verify(k, &d, changed, len))
            fail_msg("bit %zu", bit);
    }
    for (size_t n = 0; n <= len + 1; n++) {
        AUTO_FREE uint8_t *cut = malloc(n + 1); /* so that reading beyond it is seen */

        assert_non_null(cut);
        memcpy(cut, sig, n);
        assert_int_equal(public_key_verify(k, &d, cut, n), n == len);
        if (n >= 2) { /* its own length is right, the numbers' are not */
            cut[1] = (uint8_t) (n - 2);
            assert_int_equal(public_key_verify(k, &d, cut, n), n == len);
        }
    }
    assert_false(public_key_verify(k, &d, long_r, sizeof long_r));
    assert_false(public_key_verify(k, &d, long_r, sizeof long_r - 2));
    assert_false(public_key_verify(k, &d, beyond, sizeof beyond));
    assert_false(public_key_verify(k, &d, nothing, sizeof nothing));
}

/* A zero before a number that needs none names the same number: BER, not DER. */
static void padded_signatures_are_refused(void **state)
{
    AUTO_PRIVATE_KEY struct private_key *key = NULL;
    size_t tried = 0;

    (void) state;
    MUST(private_key_generate(&key, E));
    for (uint8_t i = 0; i < 200 && tried < 10; i++) {
        struct digest d = digest_of(&i, 1);
        uint8_t sig[SIGNATURE_MAX] = {0};
        uint8_t padded[SIGNATURE_MAX + 1] = {0};
        size_t len = 0;

        MUST(private_key_sign(key, &d, sig, &len, E));
        if (sig[3] > 32) /* its first bit is set: the zero before it is needed */
            continue;
        memcpy(padded, sig, 4);
        memcpy(padded + 5, sig + 4, len - 4);
        padded[1]++;
        padded[3]++;
        assert_true(public_key_verify(private_key_public(key), &d, sig, len));
        assert_false(public_key_verify(private_key_public(key), &d, padded, len + 1));
        memcpy(padded, sig, len); /* and a byte behind both numbers */
        padded[1]++;
        padded[len] = 0;
        assert_false(public_key_verify(private_key_public(key), &d, padded, len + 1));
        tried++;
    }
    assert_true(tried > 0);
}

static void a_key_file_that_others_can_read_is_refused(void **state)
{
    static const struct {
        mode_t mode;
        int result;
    } rows[] = {{0600, 0}, {0400, 0}, {0640, -1}, {0604, -1}, {0660, -1}, {0644, -1}};
    AUTO_PRIVATE_KEY struct private_key *k = NULL;
    AUTO_FREE char *pem = NULL;
    char *dir = test_dir_new();
    AUTO_FREE char *path = test_join(dir, "key.pem");

    (void) state;
    MUST(private_key_generate(&k, E));
    MUST(private_key_write(k, &pem, E));
    test_write_text(dir, "key.pem", pem);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_PRIVATE_KEY struct private_key *loaded = NULL;
        struct err e = ERR_INIT;

        assert_int_equal(chmod(path, rows[i].mode), 0);
        assert_int_equal(private_key_load(path, &loaded, &e), rows[i].result);
        if (rows[i].result < 0)
            assert_non_null(strstr(e.text, "can be read by others"));
        else
            assert_string_equal(public_key_id(private_key_public(loaded)),
                                public_key_id(private_key_public(k)));
    }
    /* What it holds is told first: a public key needs no chmod. */
    AUTO_FREE char *public = NULL;
    AUTO_PRIVATE_KEY struct private_key *none = NULL;
    struct err e = ERR_INIT;

    MUST(public_key_write(private_key_public(k), &public, E));
    test_write_text(dir, "key.pem", public);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(private_key_load(path, &none, &e), -1);
    assert_non_null(strstr(e.text, "holds a public key"));
    test_dir_free(dir);
}

static void a_keyring_knows_validity_and_scope(void **state)
{
    static const char *const projects[] = {"o/a", "o/b"};
    const struct keyring_entry entry = {.name = "r1",
                                        .machine_class = "box",
                                        .projects = projects,
                                        .n_projects = 2,
                                        .not_before_us = 100,
                                        .not_after_us = 200,
                                        .revoked_since_us = 150};
    AUTO_KEYRING struct keyring *r = keyring_new();
    struct public_key *k = NULL;
    struct err e = ERR_INIT;

    (void) state;
    assert_non_null(r);
    MUST(public_key_parse(VECTOR_PUBLIC, strlen(VECTOR_PUBLIC), &k, E));
    MUST(keyring_add(r, k, &entry, E));
    assert_int_equal(keyring_index(r, VECTOR_KEYID), 0);
    assert_int_equal(keyring_index(r, VECTOR_FINGERPRINT), 0);
    assert_int_equal(keyring_index(r, "else"), 1);
    assert_null(keyring_refusal(r, 0, "o/a", 120));
    assert_null(keyring_refusal(r, 0, NULL, 120));
    assert_string_equal(keyring_refusal(r, 0, "o/c", 120), "the key may not sign for this project");
    assert_string_equal(keyring_refusal(r, 0, "o/a", 99), "the key is not valid yet");
    assert_string_equal(keyring_refusal(r, 0, "o/a", 150), "the key was revoked");
    assert_string_equal(keyring_entry(r, 0)->name, "r1");
    MUST(public_key_parse(VECTOR_PUBLIC, strlen(VECTOR_PUBLIC), &k, E));
    assert_int_equal(keyring_add(r, k, &entry, &e), -1);
    assert_int_equal(e.kind, ERR_CONFLICT);
    assert_int_equal(keyring_count(r), 1);
}

static void an_expired_key_is_refused(void **state)
{
    const struct keyring_entry entry = {.not_after_us = 200};
    AUTO_KEYRING struct keyring *r = keyring_new();
    struct public_key *k = NULL;

    (void) state;
    MUST(public_key_parse(VECTOR_PUBLIC, strlen(VECTOR_PUBLIC), &k, E));
    MUST(keyring_add(r, k, &entry, E));
    assert_null(keyring_refusal(r, 0, "o/a", 200));
    assert_string_equal(keyring_refusal(r, 0, "o/a", 201), "the key has expired");
}

#if !defined(__SANITIZE_ADDRESS__)
/* mbedTLS 2.28.3 may sign wrongly when memory is short. Every allocation fails once here. */
static unsigned long fail_at;
static unsigned long calls;

void *__libc_calloc(size_t n, size_t size);
__attribute__((visibility("default"))) void *calloc(size_t nmemb, size_t size)
{
    if (fail_at && ++calls == fail_at)
        return NULL;
    return __libc_calloc(nmemb, size);
}

static void short_memory_gives_an_error_or_the_right_signature(void **state)
{
    struct private_key *k = vector_key();
    struct digest d = digest_of("x", 1);
    uint8_t want[SIGNATURE_MAX];
    size_t want_len = 0;
    size_t refused = 0;

    (void) state;
    MUST(private_key_sign(k, &d, want, &want_len, E));
    for (unsigned long i = 1; i < 4000; i += i < 200 ? 1 : 17) {
        uint8_t sig[SIGNATURE_MAX];
        size_t len = 0;
        struct err e = ERR_INIT;
        int rc;

        calls = 0;
        fail_at = i;
        rc = private_key_sign(k, &d, sig, &len, &e);
        fail_at = 0;
        if (rc < 0) {
            refused++;
            continue;
        }
        assert_int_equal(len, want_len);
        assert_memory_equal(sig, want, len);
    }
    assert_true(refused > 50);
    private_key_free(k);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wycheproof_is_judged_rightly),
        cmocka_unit_test(signatures_are_deterministic_and_strict),
        cmocka_unit_test(raw_and_zero_signatures_are_refused),
        cmocka_unit_test(openssl_accepts_our_keys_and_signatures),
        cmocka_unit_test(openssl_keys_are_read_in_both_forms),
        cmocka_unit_test(other_keys_are_refused),
        cmocka_unit_test(malformed_public_keys_are_refused),
        cmocka_unit_test(no_other_encoding_of_a_public_key_is_accepted),
        cmocka_unit_test(no_other_encoding_of_a_signature_is_accepted),
        cmocka_unit_test(padded_signatures_are_refused),
        cmocka_unit_test(a_key_file_that_others_can_read_is_refused),
        cmocka_unit_test(a_keyring_knows_validity_and_scope),
        cmocka_unit_test(an_expired_key_is_refused),
#if !defined(__SANITIZE_ADDRESS__)
        cmocka_unit_test(short_memory_gives_an_error_or_the_right_signature),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
