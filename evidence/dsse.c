#include "evidence/dsse.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/text.h"

/* Checks of one signature by one key that an envelope may cost (1.4 ms each): two full keyrings. */
#define CHECKS_MAX ((size_t) 2 * LIMIT_KEYS)

#define BUNDLE_TYPE "application/vnd.dev.sigstore.bundle.v0.3+json"

void dsse_pae(struct buf *out, const char *payload_type, const void *payload, size_t len)
{
    buf_printf(out, "DSSEv1 %zu %s %zu ", strlen(payload_type), payload_type, len);
    buf_put(out, payload, len);
}

int dsse_pae_digest(const char *payload_type, const void *payload, size_t len, struct digest *out,
                    struct err *e)
{
    AUTO_BUF struct buf pae = {.data = NULL};

    buf_init(&pae, LIMIT_ENVELOPE);
    dsse_pae(&pae, payload_type, payload, len);
    if (buf_check(&pae, e) < 0)
        return -1;
    *out = digest_of(pae.data, pae.len);
    return 0;
}

static int decode(const char *what, const char *text, uint8_t **out, size_t *out_len, struct err *e)
{
    size_t len = strlen(text);
    AUTO_FREE uint8_t *bytes = malloc(len + 4);
    size_t n = 0;

    if (!bytes)
        return err_set(e, ERR_NOMEM, "dsse.memory", "no memory to read an envelope");
    if (!text_unbase64(text, len, bytes, &n))
        return err_set(e, ERR_INPUT, "dsse.base64", "the envelope's %s is not base64", what);
    bytes[n] = 0;
    *out = STEAL(bytes);
    *out_len = n;
    return 0;
}

static int read_signature(const cJSON *item, struct dsse_signature *out, struct err *e)
{
    const char *keyid = "";
    const char *sig = NULL;

    if (json_get(item, "keyid") && json_get_string(item, "keyid", &keyid, e) < 0)
        return -1;
    if (json_get_string(item, "sig", &sig, e) < 0)
        return -1;
    out->keyid = strdup(keyid);
    if (!out->keyid)
        return err_set(e, ERR_NOMEM, "dsse.memory", "no memory to read an envelope");
    return decode("signature", sig, &out->sig, &out->sig_len, e);
}

static int read_signatures(const cJSON *list, struct dsse *out, struct err *e)
{
    const cJSON *item;

    for (item = list->child; item; item = item->next) {
        if (out->n == LIMIT_SIGNATURES)
            return err_set(e, ERR_LIMIT, "dsse.signatures",
                           "the envelope has more than %d signatures", LIMIT_SIGNATURES);
        if (read_signature(item, &out->signatures[out->n++], e) < 0)
            return -1;
    }
    if (out->n == 0)
        return err_set(e, ERR_INPUT, "dsse.unsigned", "the envelope has no signature");
    return 0;
}

static int read_envelope(const cJSON *root, struct dsse *out, struct err *e)
{
    const char *type = NULL;
    const char *payload = NULL;
    const cJSON *list = NULL;

    if (json_get_string(root, "payloadType", &type, e) < 0 ||
        json_get_string(root, "payload", &payload, e) < 0 ||
        json_get_array(root, "signatures", &list, e) < 0)
        return -1;
    out->payload_type = strdup(type);
    if (!out->payload_type)
        return err_set(e, ERR_NOMEM, "dsse.memory", "no memory to read an envelope");
    if (decode("payload", payload, &out->payload, &out->payload_len, e) < 0)
        return -1;
    return read_signatures(list, out, e);
}

int dsse_parse(const char *bytes, size_t len, struct dsse *out, struct err *e)
{
    static const struct json_limits limits = {.max_bytes = LIMIT_ENVELOPE, .big_integers = true};
    AUTO_JSON cJSON *root = NULL;
    AUTO_DSSE struct dsse d = {.payload_type = NULL};

    if (json_parse(bytes, len, &limits, &root, e) < 0)
        return err_wrap(e, "envelope");
    if (read_envelope(root, &d, e) < 0)
        return -1;
    *out = d;
    d = (struct dsse){.payload_type = NULL};
    return 0;
}

void dsse_fini(struct dsse *d)
{
    free(d->payload_type);
    free(d->payload);
    for (size_t i = 0; i < d->n; i++) {
        free(d->signatures[i].keyid);
        free(d->signatures[i].sig);
    }
    *d = (struct dsse){.payload_type = NULL};
}

static bool already(const struct dsse_check *c, size_t key)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->keys[i] == key)
            return true;
    }
    return false;
}

int dsse_check_keys(const struct dsse *d, const struct keyring *ring, struct dsse_check *out,
                    struct err *e)
{
    struct dsse_check c = {.n = 0};
    size_t count = keyring_count(ring);
    size_t checks = 0;
    struct digest pae;

    if (dsse_pae_digest(d->payload_type, d->payload, d->payload_len, &pae, e) < 0)
        return -1;
    for (size_t i = 0; i < d->n; i++) {
        const struct dsse_signature *s = &d->signatures[i];
        size_t hint = s->keyid[0] ? keyring_index(ring, s->keyid) : count;

        c.hint_known |= hint < count;
        for (size_t turn = hint < count ? 0 : 1; turn <= count && checks < CHECKS_MAX; turn++) {
            size_t key = turn == 0 ? hint : turn - 1;

            if (turn > 0 && key == hint)
                continue;
            checks++;
            if (!public_key_verify(keyring_key(ring, key), &pae, s->sig, s->sig_len))
                continue;
            if (!already(&c, key))
                c.keys[c.n++] = key;
            break;
        }
    }
    *out = c;
    return 0;
}

static char *base64_text(const void *p, size_t len)
{
    char *text = malloc(text_base64_size(len));

    if (text)
        text_base64(p, len, text);
    return text;
}

/* One JSON shape for what we write ourselves and for what we pass on inside a bundle. */
static void put_envelope(struct buf *out, const char *type, const char *payload, const char *keyid,
                         const char *sig)
{
    buf_printf(out, "{\"payload\":\"%s\",\"payloadType\":", payload);
    json_write_string(out, type);
    buf_puts(out, ",\"signatures\":[{\"keyid\":");
    json_write_string(out, keyid);
    buf_printf(out, ",\"sig\":\"%s\"}]}", sig);
}

int dsse_sign(const char *payload_type, const void *payload, size_t len,
              const struct private_key *key, char **out, size_t *out_len, struct err *e)
{
    AUTO_BUF struct buf b = {.data = NULL};
    AUTO_FREE char *payload_text = NULL;
    AUTO_FREE char *sig_text = NULL;
    uint8_t sig[SIGNATURE_MAX];
    size_t sig_len = 0;
    struct digest pae;

    if (dsse_pae_digest(payload_type, payload, len, &pae, e) < 0 ||
        private_key_sign(key, &pae, sig, &sig_len, e) < 0)
        return -1;
    payload_text = base64_text(payload, len);
    sig_text = base64_text(sig, sig_len);
    if (!payload_text || !sig_text)
        return err_set(e, ERR_NOMEM, "dsse.memory", "no memory to write an envelope");
    buf_init(&b, LIMIT_ENVELOPE);
    put_envelope(&b, payload_type, payload_text, public_key_id(private_key_public(key)), sig_text);
    buf_putc(&b, '\n');
    if (buf_check(&b, e) < 0)
        return -1;
    *out = buf_take(&b, out_len);
    return 0;
}

int dsse_sigstore_bundle(const struct dsse *d, char **out, size_t *out_len, struct err *e)
{
    AUTO_BUF struct buf b = {.data = NULL};
    AUTO_FREE char *payload_text = NULL;
    AUTO_FREE char *sig_text = NULL;

    if (d->n != 1)
        return err_set(e, ERR_INPUT, "dsse.signatures",
                       "a Sigstore bundle carries exactly one signature, not %zu", d->n);
    payload_text = base64_text(d->payload, d->payload_len);
    sig_text = base64_text(d->signatures[0].sig, d->signatures[0].sig_len);
    if (!payload_text || !sig_text)
        return err_set(e, ERR_NOMEM, "dsse.memory", "no memory to write a bundle");
    buf_init(&b, 2 * LIMIT_ENVELOPE);
    buf_puts(&b, "{\"mediaType\":\"" BUNDLE_TYPE
                 "\",\"verificationMaterial\":{\"publicKey\":{\"hint\":");
    json_write_string(&b, d->signatures[0].keyid);
    buf_puts(&b, "},\"tlogEntries\":[]},\"dsseEnvelope\":");
    put_envelope(&b, d->payload_type, payload_text, d->signatures[0].keyid, sig_text);
    buf_puts(&b, "}\n");
    if (buf_check(&b, e) < 0)
        return -1;
    *out = buf_take(&b, out_len);
    return 0;
}
