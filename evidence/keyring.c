#define MBEDTLS_ALLOW_PRIVATE_ACCESS /* 3.x hides what 2.28 shows */

#include "evidence/keyring.h"

#include <mbedtls/ecdsa.h>
#include <mbedtls/ecp.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"
#include "evidence/pem.h"

#define POINT_SIZE 65 /* 0x04, X, Y */
#define COORDINATE 32

/* SubjectPublicKeyInfo of an uncompressed P-256 point has one DER form: this head, then the point.
 */
static const uint8_t spki_head[] = {
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
    0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
};
#define SPKI_SIZE (sizeof spki_head + POINT_SIZE)

struct public_key {
    uint8_t spki[SPKI_SIZE];
    struct digest fingerprint;
    char id[KEYID_SIZE];
};

struct ring_item {
    struct public_key *key;
    struct keyring_entry entry; /* strings owned */
    char *name;
    char *machine_class;
    char **projects;
};

struct keyring {
    struct ring_item *items;
    size_t n;
};

/* On the curve, not at infinity. */
static int check_point(const uint8_t *point, struct err *e)
{
    mbedtls_ecp_group group;
    mbedtls_ecp_point q;
    int rc;

    mbedtls_ecp_group_init(&group);
    mbedtls_ecp_point_init(&q);
    rc = mbedtls_ecp_group_load(&group, MBEDTLS_ECP_DP_SECP256R1);
    if (rc == 0)
        rc = mbedtls_ecp_point_read_binary(&group, &q, point, POINT_SIZE);
    if (rc == 0)
        rc = mbedtls_ecp_check_pubkey(&group, &q);
    mbedtls_ecp_point_free(&q);
    mbedtls_ecp_group_free(&group);
    if (rc == MBEDTLS_ERR_ECP_ALLOC_FAILED || rc == MBEDTLS_ERR_MPI_ALLOC_FAILED)
        return err_set(e, ERR_NOMEM, "key.memory", "no memory to check a public key");
    if (rc != 0)
        return err_set(e, ERR_INPUT, "key.point", "the public key is no point of P-256");
    return 0;
}

int public_key_from_point(const uint8_t *point, size_t len, struct public_key **out, struct err *e)
{
    struct public_key *k;

    if (len != POINT_SIZE || point[0] != 0x04)
        return err_set(e, ERR_INPUT, "key.form", "the public key is no uncompressed P-256 point");
    if (check_point(point, e) < 0)
        return -1;
    k = calloc(1, sizeof *k);
    if (!k)
        return err_set(e, ERR_NOMEM, "key.memory", "no memory for a public key");
    memcpy(k->spki, spki_head, sizeof spki_head);
    memcpy(k->spki + sizeof spki_head, point, POINT_SIZE);
    k->fingerprint = digest_of(k->spki, sizeof k->spki);
    text_base64(k->fingerprint.bytes, DIGEST_SIZE, k->id);
    *out = k;
    return 0;
}

int public_key_parse(const char *pem, size_t len, struct public_key **out, struct err *e)
{
    uint8_t der[1024]; /* any RSA key fits, to be refused by kind */
    size_t der_len = 0;

    if (pem_decode(pem, len, "PUBLIC KEY", der, sizeof der, &der_len, e) < 0)
        return -1;
    if (der_len != SPKI_SIZE || memcmp(der, spki_head, sizeof spki_head) != 0)
        return err_set(e, ERR_INPUT, "key.kind",
                       "the public key is not of the one accepted kind: ECDSA P-256 (prime256v1), "
                       "uncompressed");
    return public_key_from_point(der + sizeof spki_head, POINT_SIZE, out, e);
}

void public_key_free(struct public_key *k)
{
    free(k);
}

const char *public_key_id(const struct public_key *k)
{
    return k->id;
}

const struct digest *public_key_fingerprint(const struct public_key *k)
{
    return &k->fingerprint;
}

int public_key_write(const struct public_key *k, char **out_pem, struct err *e)
{
    char *pem = pem_encode("PUBLIC KEY", k->spki, sizeof k->spki);

    if (!pem)
        return err_set(e, ERR_NOMEM, "key.memory", "no memory for a public key");
    *out_pem = pem;
    return 0;
}

/* One DER INTEGER of a signature: minimal, positive, at most 32 bytes. Returns the bytes used, 0
 * when refused. */
static size_t read_integer(const uint8_t *p, size_t len, uint8_t out[COORDINATE])
{
    size_t n;

    if (len < 3 || p[0] != 0x02)
        return 0;
    n = p[1];
    if (n == 0 || n > COORDINATE + 1 || n > len - 2)
        return 0;
    p += 2;
    if (p[0] & 0x80)
        return 0; /* negative */
    if (n > 1 && p[0] == 0 && !(p[1] & 0x80))
        return 0; /* a needless leading zero */
    if (n == COORDINATE + 1 && p[0] != 0)
        return 0;
    memset(out, 0, COORDINATE);
    if (n == COORDINATE + 1)
        memcpy(out, p + 1, COORDINATE);
    else
        memcpy(out + COORDINATE - n, p, n);
    return n + 2;
}

/* ECDSA-Sig-Value in DER and nothing else: mbedTLS's own reader takes BER forms too. */
static bool read_signature(const uint8_t *sig, size_t len, uint8_t r[COORDINATE],
                           uint8_t s[COORDINATE])
{
    size_t used_r;
    size_t used_s;

    if (len < 8 || len > 2 + 2 * (COORDINATE + 3) || sig[0] != 0x30 || sig[1] != len - 2)
        return false;
    used_r = read_integer(sig + 2, len - 2, r);
    if (used_r == 0)
        return false;
    used_s = read_integer(sig + 2 + used_r, len - 2 - used_r, s);
    return used_s != 0 && 2 + used_r + used_s == len;
}

bool public_key_verify(const struct public_key *k, const struct digest *message_digest,
                       const uint8_t *sig, size_t sig_len)
{
    uint8_t r_bytes[COORDINATE];
    uint8_t s_bytes[COORDINATE];
    mbedtls_ecp_group group; /* per call: mbedTLS keeps tables in it */
    mbedtls_ecp_point q;
    mbedtls_mpi r;
    mbedtls_mpi s;
    int rc;

    if (!read_signature(sig, sig_len, r_bytes, s_bytes))
        return false;
    mbedtls_ecp_group_init(&group);
    mbedtls_ecp_point_init(&q);
    mbedtls_mpi_init(&r);
    mbedtls_mpi_init(&s);
    rc = mbedtls_ecp_group_load(&group, MBEDTLS_ECP_DP_SECP256R1);
    if (rc == 0)
        rc = mbedtls_ecp_point_read_binary(&group, &q, k->spki + sizeof spki_head, POINT_SIZE);
    if (rc == 0)
        rc = mbedtls_mpi_read_binary(&r, r_bytes, sizeof r_bytes);
    if (rc == 0)
        rc = mbedtls_mpi_read_binary(&s, s_bytes, sizeof s_bytes);
    if (rc == 0)
        rc = mbedtls_ecdsa_verify(&group, message_digest->bytes, DIGEST_SIZE, &q, &r, &s);
    mbedtls_mpi_free(&s);
    mbedtls_mpi_free(&r);
    mbedtls_ecp_point_free(&q);
    mbedtls_ecp_group_free(&group);
    return rc == 0;
}

struct keyring *keyring_new(void)
{
    return calloc(1, sizeof(struct keyring));
}

static void item_fini(struct ring_item *it)
{
    public_key_free(it->key);
    free(it->name);
    free(it->machine_class);
    for (size_t i = 0; it->projects && i < it->entry.n_projects; i++)
        free(it->projects[i]);
    free(it->projects);
    *it = (struct ring_item){.key = NULL};
}

void keyring_free(struct keyring *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        item_fini(&r->items[i]);
    free(r->items);
    free(r);
}

static bool copy_text(const char *from, char **out)
{
    if (!from)
        return true;
    *out = strdup(from);
    return *out != NULL;
}

static bool copy_entry(struct ring_item *it, const struct keyring_entry *entry)
{
    it->entry = *entry;
    it->entry.projects = NULL;
    if (!copy_text(entry->name, &it->name) || !copy_text(entry->machine_class, &it->machine_class))
        return false;
    it->entry.name = it->name;
    it->entry.machine_class = it->machine_class;
    if (!entry->projects) {
        it->entry.n_projects = 0;
        return true;
    }
    it->projects = calloc(entry->n_projects + 1, sizeof *it->projects);
    if (!it->projects)
        return false;
    for (size_t i = 0; i < entry->n_projects; i++) {
        if (!copy_text(entry->projects[i] ? entry->projects[i] : "", &it->projects[i]))
            return false;
    }
    it->entry.projects = (const char *const *) it->projects;
    return true;
}

int keyring_add(struct keyring *r, struct public_key *key, const struct keyring_entry *entry,
                struct err *e)
{
    struct ring_item item = {.key = key};
    struct ring_item *grown;

    if (r->n == LIMIT_KEYS) {
        item_fini(&item);
        return err_set(e, ERR_LIMIT, "keyring.full", "more than %d keys", LIMIT_KEYS);
    }
    if (keyring_index(r, public_key_id(key)) < r->n) {
        err_set(e, ERR_CONFLICT, "keyring.twice", "the key %s is there already",
                public_key_id(key));
        item_fini(&item);
        return -1;
    }
    grown = realloc(r->items, (r->n + 1) * sizeof *grown);
    if (grown)
        r->items = grown;
    if (!grown || !copy_entry(&item, entry)) {
        item_fini(&item);
        return err_set(e, ERR_NOMEM, "keyring.memory", "no memory for a key");
    }
    r->items[r->n++] = item;
    return 0;
}

size_t keyring_count(const struct keyring *r)
{
    return r->n;
}

const struct public_key *keyring_key(const struct keyring *r, size_t i)
{
    return r->items[i].key;
}

const struct keyring_entry *keyring_entry(const struct keyring *r, size_t i)
{
    return &r->items[i].entry;
}

size_t keyring_index(const struct keyring *r, const char *keyid)
{
    struct digest fingerprint;
    bool is_hex = digest_parse(keyid, &fingerprint);

    for (size_t i = 0; i < r->n; i++) {
        const struct public_key *k = r->items[i].key;

        if (strcmp(k->id, keyid) == 0 || (is_hex && digest_equal(&k->fingerprint, &fingerprint)))
            return i;
    }
    return r->n;
}

const char *keyring_entry_refusal(const struct keyring_entry *en, int64_t now_us)
{
    if (en->revoked_since_us != 0 && now_us >= en->revoked_since_us)
        return "the key was revoked";
    if (en->not_before_us != 0 && now_us < en->not_before_us)
        return "the key is not valid yet";
    if (en->not_after_us != 0 && now_us > en->not_after_us)
        return "the key has expired";
    return NULL;
}

const char *keyring_refusal(const struct keyring *r, size_t i, const char *project, int64_t now_us)
{
    const struct keyring_entry *en = &r->items[i].entry;
    const char *refusal = keyring_entry_refusal(en, now_us);
    bool allowed = !project || !en->projects;

    if (refusal)
        return refusal;
    for (size_t k = 0; !allowed && k < en->n_projects; k++)
        allowed = strcmp(en->projects[k], project) == 0;
    return allowed ? NULL : "the key may not sign for this project";
}
