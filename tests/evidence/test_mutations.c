/* Random damage to every parser of outside bytes: no crash (the sanitizers watch), and nothing
 * damaged is taken for whole. */
#include "tests/evidence/fixture.h"

#include <string.h>

#include "evidence/dsse.h"
#include "evidence/statement.h"

#define ROUNDS 10000

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

/* Flips, copies, cuts, doubles, or writes a telling byte. Returns the new length; p holds 2·len. */
static size_t mutate(char *p, size_t len, uint64_t *seed)
{
    static const char telling[] = "\0\xff{}[]\",:0-9e\\/'u ";
    size_t times = 1 + test_random_below(seed, 4);

    for (size_t i = 0; i < times && len > 0; i++) {
        size_t at = test_random_below(seed, len);
        size_t n = 1 + test_random_below(seed, len - at < 600 ? len - at : 600);

        switch (test_random_below(seed, 6)) {
        case 0:
            p[at] ^= (char) (1u << test_random_below(seed, 8));
            break;
        case 1:
            p[at] = telling[test_random_below(seed, sizeof telling)];
            break;
        case 2:
            memmove(p + test_random_below(seed, len - n + 1), p + at, n);
            break;
        case 3:
            memmove(p + at, p + at + n, len - at - n);
            len -= n;
            break;
        case 4:
            len = at;
            break;
        default:
            memset(p + at, telling[test_random_below(seed, sizeof telling)], n);
            break;
        }
    }
    return len;
}

/* A copy on the heap at its exact size, so that reading one byte too far is seen. */
static char *damaged(const char *from, size_t len, uint64_t *seed, size_t *out_len)
{
    AUTO_FREE char *work = malloc(2 * len + 1);
    char *exact;

    assert_non_null(work);
    memcpy(work, from, len);
    *out_len = mutate(work, len, seed);
    exact = malloc(*out_len ? *out_len : 1);
    assert_non_null(exact);
    memcpy(exact, work, *out_len);
    return exact;
}

static void damaged_archives(void **state)
{
    uint64_t seed = 101;
    size_t whole = 0;

    (void) state;
    for (int i = 0; i < ROUNDS; i++) {
        AUTO_VERIFY_STREAM struct verify_stream *s = verify_stream_new();
        AUTO_ARCHIVE_INDEX struct archive_index *x = NULL;
        AUTO_FREE char *p = NULL;
        size_t len = 0;

        assert_non_null(s);
        p = damaged(tar, tar_len, &seed, &len);
        for (size_t at = 0; at < len;) {
            size_t n = 1 + test_random_below(&seed, len - at);

            verify_stream_feed(s, p + at, n);
            at += n;
        }
        MUST(verify_stream_finish(s, &x, E));
        assert_true((x->problem != NULL) == (x->n == 0));
        for (size_t k = 0; k < x->n; k++)
            assert_true(x->members[k].offset + x->members[k].size <= len);
        whole += x->problem == NULL;
    }
    assert_true(whole > 0); /* damage inside a member's data is no damage of the format */
    assert_true(whole < ROUNDS / 2);
}

static void damaged_envelopes(void **state)
{
    AUTO_DSSE struct dsse want = {.payload_type = NULL};
    uint64_t seed = 103;

    (void) state;
    MUST(dsse_parse(envelope, envelope_len, &want, E));
    for (int i = 0; i < ROUNDS; i++) {
        AUTO_DSSE struct dsse d = {.payload_type = NULL};
        AUTO_FREE char *p = NULL;
        struct err e = ERR_INIT;
        struct dsse_check check;
        size_t len = 0;

        p = damaged(envelope, envelope_len, &seed, &len);
        if (dsse_parse(p, len, &d, &e) < 0) {
            assert_int_not_equal(e.kind, ERR_NONE);
            continue;
        }
        MUST(dsse_check_keys(&d, fx.ring, &check, E));
        if (check.n > 0) {
            assert_int_equal(d.payload_len, want.payload_len);
            assert_memory_equal(d.payload, want.payload, d.payload_len);
        }
    }
}

static void damaged_statements(void **state)
{
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    uint64_t seed = 107;

    (void) state;
    MUST(dsse_parse(envelope, envelope_len, &d, E));
    for (int i = 0; i < ROUNDS; i++) {
        AUTO_STATEMENT struct statement s = {.document = NULL};
        AUTO_FREE char *p = NULL;
        struct err e = ERR_INIT;
        size_t len = 0;

        p = damaged((const char *) d.payload, d.payload_len, &seed, &len);
        if (statement_parse(p, len, &s, &e) < 0)
            assert_int_not_equal(e.kind, ERR_NONE);
    }
}

static void damaged_manifests(void **state)
{
    AUTO_FREE char *path = test_join(fx.run, MANIFEST_NAME);
    AUTO_FREE char *text = NULL;
    uint64_t seed = 109;
    size_t len = 0;

    (void) state;
    text = test_read_path(path, &len);
    for (int i = 0; i < ROUNDS; i++) {
        AUTO_MANIFEST struct manifest m = {.document = NULL};
        AUTO_FREE char *p = NULL;
        struct err e = ERR_INIT;
        size_t n = 0;

        p = damaged(text, len, &seed, &n);
        if (manifest_parse(p, n, &m, &e) < 0) {
            assert_int_not_equal(e.kind, ERR_NONE);
            assert_null(m.document);
        }
    }
}

static void damaged_keys_and_signatures(void **state)
{
    AUTO_FREE char *pem = NULL;
    const struct public_key *own = private_key_public(fx.key);
    struct digest d = digest_of("x", 1);
    uint8_t sig[SIGNATURE_MAX];
    uint64_t seed = 113;
    size_t sig_len = 0;

    (void) state;
    MUST(public_key_write(own, &pem, E));
    MUST(private_key_sign(fx.key, &d, sig, &sig_len, E));
    for (int i = 0; i < ROUNDS; i++) {
        AUTO_PUBLIC_KEY struct public_key *k = NULL;
        AUTO_FREE char *p = NULL;
        AUTO_FREE char *q = NULL;
        struct err e = ERR_INIT;
        size_t len = 0;

        p = damaged(pem, strlen(pem), &seed, &len);
        if (public_key_parse(p, len, &k, &e) == 0)
            assert_string_equal(
                public_key_id(k),
                public_key_id(
                    own)); /* only white space may differ: points off the curve are refused */
        q = damaged((const char *) sig, sig_len, &seed, &len);
        if (len != sig_len || memcmp(q, sig, len) != 0)
            assert_false(public_key_verify(own, &d, (const uint8_t *) q, len));
    }
}

/* The whole way, with both inputs damaged at once. */
static void damaged_evidence_is_never_valid(void **state)
{
    uint64_t seed = 127;

    (void) state;
    for (int i = 0; i < ROUNDS / 5; i++) {
        AUTO_FREE char *a = NULL;
        AUTO_FREE char *b = NULL;
        size_t a_len = 0;
        size_t b_len = 0;
        const char *code;

        a = damaged(tar, tar_len, &seed, &a_len);
        b = damaged(envelope, envelope_len, &seed, &b_len);
        if (i % 2)
            code = fixture_judge(&fx, a, a_len, b, b_len, NULL, NULL);
        else
            code = fixture_judge(&fx, a, a_len, envelope, envelope_len, NULL, NULL);
        if (a_len != tar_len || memcmp(a, tar, tar_len) != 0)
            assert_string_not_equal(code, "VALID");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_archives),
        cmocka_unit_test(damaged_envelopes),
        cmocka_unit_test(damaged_statements),
        cmocka_unit_test(damaged_manifests),
        cmocka_unit_test(damaged_keys_and_signatures),
        cmocka_unit_test(damaged_evidence_is_never_valid),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
