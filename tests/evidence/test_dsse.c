/* Published and own DSSE vectors byte for byte, and everything an envelope must not get away with.
 */
#include "tests/lib/must.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/text.h"
#include "evidence/dsse.h"
#include "evidence/keyring.h"
#include "evidence/sign.h"
#include "tests/evidence/vectors.h"

static struct private_key *key;
static struct private_key *other;
static struct keyring *ring; /* both */

static void trust(const struct private_key *k)
{
    const struct keyring_entry anyone = {.name = NULL};
    AUTO_FREE char *pem = NULL;
    struct public_key *public = NULL;

    MUST(public_key_write(private_key_public(k), &pem, E));
    MUST(public_key_parse(pem, strlen(pem), &public, E));
    MUST(keyring_add(ring, public, &anyone, E));
}

static int set_up(void **state)
{
    (void) state;
    key = vector_key();
    MUST(private_key_generate(&other, E));
    ring = keyring_new();
    assert_non_null(ring);
    trust(other);
    trust(key);
    return 0;
}

static int tear_down(void **state)
{
    (void) state;
    keyring_free(ring);
    private_key_free(key);
    private_key_free(other);
    return 0;
}

static void expect_base64(const uint8_t *p, size_t len, const char *want)
{
    char text[128];

    assert_true(text_base64_size(len) <= sizeof text);
    text_base64(p, len, text);
    assert_string_equal(text, want);
}

static void sign_pae(const char *type, const char *payload, const char *want)
{
    uint8_t sig[SIGNATURE_MAX];
    size_t len = 0;
    struct digest d;

    MUST(dsse_pae_digest(type, payload, strlen(payload), &d, E));
    MUST(private_key_sign(key, &d, sig, &len, E));
    expect_base64(sig, len, want);
}

static void the_key_has_the_published_fingerprint(void **state)
{
    char hex[DIGEST_HEX_SIZE];

    (void) state;
    digest_hex(public_key_fingerprint(private_key_public(key)), hex);
    assert_string_equal(hex, VECTOR_FINGERPRINT);
    assert_string_equal(public_key_id(private_key_public(key)), VECTOR_KEYID);
}

static void vector_a_is_reproduced(void **state)
{
    AUTO_BUF struct buf pae = {.data = NULL};
    char hex[DIGEST_HEX_SIZE];
    struct digest d;

    (void) state;
    buf_init(&pae, 1000);
    dsse_pae(&pae, "http://example.com/HelloWorld", "hello world", 11);
    assert_string_equal(pae.data, "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    d = digest_of(pae.data, pae.len);
    digest_hex(&d, hex);
    assert_string_equal(hex, "217751fac2c4f14edb2c9297fbc34abcb016ba88e74757e875ec4ac16fb6b6a1");
    sign_pae("http://example.com/HelloWorld", "hello world",
             "MEQCIANyarEBrVbCdjtsaqyOSHJ14qeRk6CdxfhZ2fjvPEo7AiBR6rDAajabZKciJTfUiHqJPcIAriEGAHTVe"
             "CUjW2JIZA==");
}

static void vector_b_is_reproduced(void **state)
{
    static const char blob[] = "hello world\n";
    struct digest d = digest_of(blob, sizeof blob - 1);
    uint8_t sig[SIGNATURE_MAX];
    size_t len = 0;
    char hex[DIGEST_HEX_SIZE];

    (void) state;
    MUST(private_key_sign(key, &d, sig, &len, E));
    expect_base64(sig, len,
                  "MEUCIDjnQy+/9bSboA0O4erCFdR5ik2xcKhzQ9nzh+LWphUDAiEA9ST4oWHsk5EP/d6mXhPsx/"
                  "kW3hZ671drs1UDqsSw77Q=");
    MUST(dsse_pae_digest("application/vnd.in-toto+json", VECTOR_B_STATEMENT,
                         strlen(VECTOR_B_STATEMENT), &d, E));
    digest_hex(&d, hex);
    assert_string_equal(hex, "38b7d805a49bd847219dfd6a70e18c676a5b123bc9488990fd1a8d681251fd0f");
    sign_pae("application/vnd.in-toto+json", VECTOR_B_STATEMENT,
             "MEUCIH3T1JVm/88G/"
             "9srNMCvu+9YgzQetTZiyYHWKKOHyPJXAiEA8Zzwjot5Hb3eUZgjhnPu7PeeGaCHGaHflub/sm7PCIs=");
}

static void an_empty_payload_has_a_pae(void **state)
{
    AUTO_BUF struct buf pae = {.data = NULL};

    (void) state;
    buf_init(&pae, 1000);
    dsse_pae(&pae, "", "", 0);
    assert_string_equal(pae.data, "DSSEv1 0  0 ");
}

static void written_envelopes_read_back(void **state)
{
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    AUTO_FREE char *text = NULL;
    struct dsse_check check;
    size_t len = 0;

    (void) state;
    MUST(dsse_sign("application/vnd.in-toto+json", VECTOR_B_STATEMENT, strlen(VECTOR_B_STATEMENT),
                   key, &text, &len, E));
    MUST(dsse_parse(text, len, &d, E));
    assert_string_equal(d.payload_type, "application/vnd.in-toto+json");
    assert_int_equal(d.payload_len, strlen(VECTOR_B_STATEMENT));
    assert_memory_equal(d.payload, VECTOR_B_STATEMENT, d.payload_len);
    assert_int_equal(d.n, 1);
    assert_string_equal(d.signatures[0].keyid, VECTOR_KEYID);
    MUST(dsse_check_keys(&d, ring, &check, E));
    assert_int_equal(check.n, 1);
    assert_int_equal(check.keys[0], 1);
    assert_true(check.hint_known);
}

/* Envelopes by hand. */

static char *b64(const void *p, size_t len)
{
    char *s = malloc(text_base64_size(len));

    assert_non_null(s);
    text_base64(p, len, s);
    return s;
}

static void url_safe(char *s)
{
    for (; *s; s++)
        *s = (char) (*s == '+' ? '-' : *s == '/' ? '_' : *s);
}

static char *signature_of(const struct private_key *k, const char *type, const char *payload)
{
    uint8_t sig[SIGNATURE_MAX];
    size_t len = 0;
    struct digest d;

    MUST(dsse_pae_digest(type, payload, strlen(payload), &d, E));
    MUST(private_key_sign(k, &d, sig, &len, E));
    return b64(sig, len);
}

static size_t keys_of(const char *envelope)
{
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    struct dsse_check check;

    MUST(dsse_parse(envelope, strlen(envelope), &d, E));
    MUST(dsse_check_keys(&d, ring, &check, E));
    return check.n;
}

static void refused(const char *envelope, const char *expect)
{
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    struct err e = ERR_INIT;

    assert_int_equal(dsse_parse(envelope, strlen(envelope), &d, &e), -1);
    if (!strstr(e.text, expect))
        fail_msg("expected '%s' in: %s", expect, e.text);
}

static char *format(const char *f, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *f, ...)
{
    AUTO_BUF struct buf b = {.data = NULL};
    size_t len = 0;
    va_list ap;

    buf_init(&b, 1 << 20);
    va_start(ap, f);
    buf_vprintf(&b, f, ap);
    va_end(ap);
    MUST(buf_check(&b, E));
    return buf_take(&b, &len);
}

static void the_hint_is_only_a_hint(void **state)
{
    AUTO_FREE char *sig = signature_of(key, "t", "hello");
    const char *const hints[] = {"", "unknown", VECTOR_KEYID, VECTOR_FINGERPRINT,
                                 public_key_id(private_key_public(other))};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
        AUTO_FREE char *env = format("{\"payload\":\"aGVsbG8=\",\"payloadType\":\"t\","
                                     "\"signatures\":[{\"keyid\":\"%s\",\"sig\":\"%s\"}]}",
                                     hints[i], sig);

        assert_int_equal(keys_of(env), 1);
    }
    {
        AUTO_FREE char *env = format(
            "{\"payload\":\"aGVsbG8=\",\"payloadType\":\"t\",\"signatures\":[{\"sig\":\"%s\"}]}",
            sig);

        assert_int_equal(keys_of(env), 1);
    }
}

static void distinct_keys_are_counted_not_signatures(void **state)
{
    AUTO_FREE char *one = signature_of(key, "t", "hello");
    AUTO_FREE char *two = signature_of(other, "t", "hello");
    AUTO_FREE char *same =
        format("{\"payload\":\"aGVsbG8=\",\"payloadType\":\"t\",\"signatures\":"
               "[{\"keyid\":\"a\",\"sig\":\"%s\"},{\"keyid\":\"b\",\"sig\":\"%s\"}]}",
               one, one);
    AUTO_FREE char *both = format("{\"payload\":\"aGVsbG8=\",\"payloadType\":\"t\",\"signatures\":"
                                  "[{\"sig\":\"%s\"},{\"sig\":\"%s\"}]}",
                                  one, two);

    (void) state;
    assert_int_equal(keys_of(same), 1);
    assert_int_equal(keys_of(both), 2);
}

static void what_was_signed_is_what_counts(void **state)
{
    AUTO_FREE char *sig = signature_of(key, "t", "hello");
    struct digest bare = digest_of("hello", 5);
    uint8_t raw[SIGNATURE_MAX];
    size_t raw_len = 0;
    AUTO_FREE char *bare_sig = NULL;
    static const char f[] =
        "{\"payload\":\"%s\",\"payloadType\":\"%s\",\"signatures\":[{\"sig\":\"%s\"}]}";
    const struct {
        const char *payload;
        const char *type;
        const char *sig;
    } rows[] = {
        {"aGVsbG4=", "t", sig},  /* another payload */
        {"aGVsbG8=", "tt", sig}, /* another type */
        {"aGVsbG8=", "", sig},     {"", "t", sig},          {"aGVsbG8=", "t", ""},
        {"aGVsbG8=", "t", "AAAA"}, {"aGVsbG8=", "t", NULL}, /* signature of the bare payload */
    };

    (void) state;
    MUST(private_key_sign(key, &bare, raw, &raw_len, E));
    bare_sig = b64(raw, raw_len);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *env =
            format(f, rows[i].payload, rows[i].type, rows[i].sig ? rows[i].sig : bare_sig);

        assert_int_equal(keys_of(env), 0);
    }
}

static void both_alphabets_are_read(void **state)
{
    static const char payload[] = "\xfb\xff\xbe>>>???";
    AUTO_FREE char *sig = signature_of(key, "t", payload);
    AUTO_FREE char *body = b64(payload, sizeof payload - 1);
    AUTO_FREE char *env = NULL;

    (void) state;
    url_safe(sig);
    url_safe(body);
    assert_non_null(strpbrk(body, "-_"));
    env = format("{\"payload\":\"%s\",\"payloadType\":\"t\",\"signatures\":[{\"sig\":\"%s\"}]}",
                 body, sig);
    assert_int_equal(keys_of(env), 1);
}

static void unknown_members_are_ignored(void **state)
{
    AUTO_FREE char *sig = signature_of(key, "t", "hello");
    AUTO_FREE char *env =
        format("{\"x\":[1,18446744073709551616],\"payload\":\"aGVsbG8=\",\"payloadType\":\"t\","
               "\"signatures\":[{\"cert\":null,\"sig\":\"%s\"}]}",
               sig);

    (void) state;
    assert_int_equal(keys_of(env), 1);
}

static void malformed_envelopes_are_refused(void **state)
{
    (void) state;
    refused("", "");
    refused("[]", "payloadType");
    refused("{\"payload\":\"\",\"payloadType\":\"t\",\"signatures\":[]}", "no signature");
    refused("{\"payload\":\"\",\"payloadType\":\"t\"}", "signatures");
    refused("{\"payload\":\"\",\"payloadType\":\"t\",\"signatures\":[{}]}", "sig");
    refused("{\"payload\":\"\",\"payloadType\":\"t\",\"signatures\":[{\"sig\":1}]}", "sig");
    refused("{\"payload\":\"\",\"payloadType\":\"t\",\"signatures\":[{\"sig\":\"\",\"keyid\":1}]}",
            "keyid");
    refused("{\"payload\":\"a\",\"payloadType\":\"t\",\"signatures\":[{\"sig\":\"\"}]}", "base64");
    refused("{\"payload\":\"aGVsbG8\\n=\",\"payloadType\":\"t\",\"signatures\":[{\"sig\":\"\"}]}",
            "base64");
    refused("{\"payload\":\"+_==\",\"payloadType\":\"t\",\"signatures\":[{\"sig\":\"\"}]}",
            "base64");
    refused("{\"payload\":\"aGVsbG9=\",\"payloadType\":\"t\",\"signatures\":[{\"sig\":\"\"}]}",
            "base64");
    refused(
        "{\"payload\":\"\",\"payload\":\"\",\"payloadType\":\"t\",\"signatures\":[{\"sig\":\"\"}]}",
        "duplicate");
    refused("{\"payload\":\"\",\"payloadType\":\"t\",\"signatures\":[{\"sig\":\"\"}]} x", "");
    refused("{\"payload\":\"\",\"payloadType\":\"t\\u0000\",\"signatures\":[{\"sig\":\"\"}]}", "");
}

static void too_many_signatures_are_refused(void **state)
{
    static const size_t counts[] = {17, 5000};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        AUTO_BUF struct buf b = {.data = NULL};

        buf_init(&b, 1 << 20);
        buf_puts(&b, "{\"payload\":\"\",\"payloadType\":\"t\",\"signatures\":[{\"sig\":\"\"}");
        for (size_t k = 1; k < counts[i]; k++)
            buf_puts(&b, ",{\"sig\":\"\"}");
        buf_puts(&b, "]}");
        refused(b.data, "more than 16 signatures");
    }
}

static void a_sigstore_bundle_repeats_the_hint(void **state)
{
    AUTO_DSSE struct dsse d = {.payload_type = NULL};
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *bundle = NULL;
    size_t len = 0;

    (void) state;
    MUST(dsse_sign("application/vnd.in-toto+json", VECTOR_B_STATEMENT, strlen(VECTOR_B_STATEMENT),
                   key, &text, &len, E));
    MUST(dsse_parse(text, len, &d, E));
    MUST(dsse_sigstore_bundle(&d, &bundle, &len, E));
    assert_non_null(
        strstr(bundle, "\"mediaType\":\"application/vnd.dev.sigstore.bundle.v0.3+json\""));
    assert_non_null(strstr(bundle, "\"publicKey\":{\"hint\":\"" VECTOR_KEYID "\"}"));
    assert_non_null(strstr(bundle, "\"keyid\":\"" VECTOR_KEYID "\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_has_the_published_fingerprint),
        cmocka_unit_test(vector_a_is_reproduced),
        cmocka_unit_test(vector_b_is_reproduced),
        cmocka_unit_test(an_empty_payload_has_a_pae),
        cmocka_unit_test(written_envelopes_read_back),
        cmocka_unit_test(the_hint_is_only_a_hint),
        cmocka_unit_test(distinct_keys_are_counted_not_signatures),
        cmocka_unit_test(what_was_signed_is_what_counts),
        cmocka_unit_test(both_alphabets_are_read),
        cmocka_unit_test(unknown_members_are_ignored),
        cmocka_unit_test(malformed_envelopes_are_refused),
        cmocka_unit_test(too_many_signatures_are_refused),
        cmocka_unit_test(a_sigstore_bundle_repeats_the_hint),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
