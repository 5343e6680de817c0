#define MBEDTLS_ALLOW_PRIVATE_ACCESS /* 3.x hides what 2.28 shows */

#include "evidence/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <mbedtls/ecdsa.h>
#include <mbedtls/ecp.h>
#include <mbedtls/pk.h>
#include <mbedtls/version.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/random.h"
#include "evidence/pem.h"

#define SCALAR 32
#define POINT_SIZE 65

struct private_key {
    uint8_t d[SCALAR];
    struct public_key *public;
    uint8_t point[POINT_SIZE];
};

/* PKCS#8 of a P-256 key with its public point has one DER form: head, d, middle, point. */
static const uint8_t pkcs8_head[] = {
    0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d,
    0x03, 0x01, 0x07, 0x04, 0x6d, 0x30, 0x6b, 0x02, 0x01, 0x01, 0x04, 0x20,
};
static const uint8_t pkcs8_middle[] = {0xa1, 0x44, 0x03, 0x42, 0x00};
#define PKCS8_SIZE (sizeof pkcs8_head + SCALAR + sizeof pkcs8_middle + POINT_SIZE)

static int random_for_mbedtls(void *unused, unsigned char *out, size_t len)
{
    struct err e = ERR_INIT;

    (void) unused;
    return random_bytes(out, len, &e) < 0 ? MBEDTLS_ERR_ECP_RANDOM_FAILED : 0;
}

static int fail(struct err *e, int rc, const char *what)
{
    if (rc == MBEDTLS_ERR_ECP_ALLOC_FAILED || rc == MBEDTLS_ERR_MPI_ALLOC_FAILED ||
        rc == MBEDTLS_ERR_PK_ALLOC_FAILED)
        return err_set(e, ERR_NOMEM, "sign.memory", "no memory to %s", what);
    return err_set(e, ERR_INTERNAL, "sign.library", "cannot %s (mbedTLS -0x%04x)", what,
                   (unsigned) -rc);
}

void private_key_free(struct private_key *k)
{
    if (!k)
        return;
    public_key_free(k->public);
    explicit_bzero(k, sizeof *k);
    free(k);
}

/* From the scalar; the public point is always derived, never believed. */
static int from_scalar(mbedtls_ecp_group *group, const mbedtls_mpi *d, struct private_key **out,
                       struct err *e)
{
    AUTO_PRIVATE_KEY struct private_key *k = calloc(1, sizeof *k);
    mbedtls_ecp_point q;
    size_t len = 0;
    int rc;

    if (!k)
        return err_set(e, ERR_NOMEM, "sign.memory", "no memory for a private key");
    mbedtls_ecp_point_init(&q);
    rc = mbedtls_ecp_check_privkey(group, d);
    if (rc == 0)
        rc = mbedtls_mpi_write_binary(d, k->d, sizeof k->d);
    if (rc == 0)
        rc = mbedtls_ecp_mul(group, &q, d, &group->G, random_for_mbedtls, NULL);
    if (rc == 0)
        rc = mbedtls_ecp_point_write_binary(group, &q, MBEDTLS_ECP_PF_UNCOMPRESSED, &len, k->point,
                                            sizeof k->point);
    mbedtls_ecp_point_free(&q);
    if (rc == MBEDTLS_ERR_ECP_INVALID_KEY)
        return err_set(e, ERR_INPUT, "key.scalar", "the private key is out of range");
    if (rc != 0)
        return fail(e, rc, "derive the public key");
    if (public_key_from_point(k->point, len, &k->public, e) < 0)
        return -1;
    *out = STEAL(k);
    return 0;
}

int private_key_generate(struct private_key **out, struct err *e)
{
    mbedtls_ecp_group group;
    mbedtls_mpi d;
    int rc;

    mbedtls_ecp_group_init(&group);
    mbedtls_mpi_init(&d);
    rc = mbedtls_ecp_group_load(&group, MBEDTLS_ECP_DP_SECP256R1);
    if (rc == 0)
        rc = mbedtls_ecp_gen_privkey(&group, &d, random_for_mbedtls, NULL);
    rc = rc == 0 ? from_scalar(&group, &d, out, e) : fail(e, rc, "make a private key");
    mbedtls_mpi_free(&d); /* wipes */
    mbedtls_ecp_group_free(&group);
    return rc;
}

static int parse_any(mbedtls_pk_context *pk, const unsigned char *text, size_t len)
{
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
    return mbedtls_pk_parse_key(pk, text, len, NULL, 0, random_for_mbedtls, NULL);
#else
    return mbedtls_pk_parse_key(pk, text, len, NULL, 0);
#endif
}

int private_key_parse(const char *pem, size_t len, struct private_key **out, struct err *e)
{
    mbedtls_pk_context pk;
    mbedtls_ecp_keypair *pair = NULL;
    unsigned char *text;
    int rc;

    if (len > LIMIT_PEM)
        return err_set(e, ERR_LIMIT, "pem.size", "the PEM text has %zu bytes; the limit is %zu",
                       len, LIMIT_PEM);
    text = calloc(len + 1, 1); /* PEM is read up to and including a NUL */
    if (!text)
        return err_set(e, ERR_NOMEM, "sign.memory", "no memory to read a private key");
    memcpy(text, pem, len);
    mbedtls_pk_init(&pk);
    rc = memchr(pem, 0, len) ? MBEDTLS_ERR_PK_KEY_INVALID_FORMAT : parse_any(&pk, text, len + 1);
    explicit_bzero(text, len + 1);
    free(text);
    if (rc == MBEDTLS_ERR_PK_ALLOC_FAILED)
        rc = fail(e, rc, "read a private key");
    else if (rc != 0)
        rc = err_set(
            e, ERR_INPUT, "key.parse",
            "this is no unencrypted private key in PEM form (SEC1 or PKCS#8) that can be read");
    else
        pair = mbedtls_pk_can_do(&pk, MBEDTLS_PK_ECDSA) ? mbedtls_pk_ec(pk) : NULL;
    if (rc == 0 && (!pair || pair->grp.id != MBEDTLS_ECP_DP_SECP256R1))
        rc = err_set(e, ERR_INPUT, "key.kind",
                     "the private key is not of the one accepted kind: ECDSA P-256");
    else if (rc == 0)
        rc = from_scalar(&pair->grp, &pair->d, out, e);
    mbedtls_pk_free(&pk);
    return rc;
}

static int read_key_file(int fd, char *text, size_t max, size_t *out_len, struct err *e)
{
    size_t len = 0;

    while (len < max) {
        ssize_t n = read(fd, text + len, max - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "key.read", "cannot read the private key");
        if (n == 0)
            break;
        len += (size_t) n;
    }
    *out_len = len;
    return 0;
}

int private_key_load(const char *path, struct private_key **out, struct err *e)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char text[LIMIT_PEM / 2];
    struct stat st;
    size_t len = 0;
    int rc = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "key.open", "cannot open '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INPUT, "key.file", "'%s' is not a regular file", path);
    if (read_key_file(fd, text, sizeof text - 1, &len, e) < 0)
        return -1;
    text[len] = '\0';
    if (strstr(text, "-----BEGIN PUBLIC KEY-----"))
        rc = err_set(e, ERR_INPUT, "key.public",
                     "'%s' holds a public key; the private one is wanted", path);
    else if (st.st_mode & (S_IRWXG | S_IRWXO))
        rc = err_set(e, ERR_TRUST, "key.mode",
                     "'%s' can be read by others (mode %04o): chmod 600 it", path,
                     (unsigned) (st.st_mode & 07777));
    else if (private_key_parse(text, len, out, e) < 0)
        rc = err_wrap(e, "'%s'", path);
    explicit_bzero(text, sizeof text);
    return rc;
}

int private_key_write(const struct private_key *k, char **out_pem, struct err *e)
{
    uint8_t der[PKCS8_SIZE];
    uint8_t *p = der;
    char *pem;

    memcpy(p, pkcs8_head, sizeof pkcs8_head);
    p += sizeof pkcs8_head;
    memcpy(p, k->d, SCALAR);
    p += SCALAR;
    memcpy(p, pkcs8_middle, sizeof pkcs8_middle);
    p += sizeof pkcs8_middle;
    memcpy(p, k->point, POINT_SIZE);
    pem = pem_encode("PRIVATE KEY", der, sizeof der);
    explicit_bzero(der, sizeof der);
    if (!pem)
        return err_set(e, ERR_NOMEM, "sign.memory", "no memory for a private key");
    *out_pem = pem;
    return 0;
}

const struct public_key *private_key_public(const struct private_key *k)
{
    return k->public;
}

/* DER INTEGER of 32 big-endian bytes; returns its length. */
static size_t write_integer(const uint8_t value[SCALAR], uint8_t *out)
{
    size_t skip = 0;
    size_t n = 0;

    while (skip < SCALAR - 1 && value[skip] == 0)
        skip++;
    out[n++] = 0x02;
    out[n++] = (uint8_t) (SCALAR - skip + (value[skip] >> 7));
    if (value[skip] & 0x80)
        out[n++] = 0;
    memcpy(out + n, value + skip, SCALAR - skip);
    return n + SCALAR - skip;
}

static size_t write_signature(const uint8_t r[SCALAR], const uint8_t s[SCALAR],
                              uint8_t out[SIGNATURE_MAX])
{
    size_t n = 2;

    n += write_integer(r, out + n);
    n += write_integer(s, out + n);
    out[0] = 0x30;
    out[1] = (uint8_t) (n - 2);
    return n;
}

/* RFC 6979; the blinding is random, the signature is not. */
static int sign_raw(const struct private_key *k, const struct digest *m, uint8_t r_out[SCALAR],
                    uint8_t s_out[SCALAR])
{
    mbedtls_ecp_group group;
    mbedtls_mpi d;
    mbedtls_mpi r;
    mbedtls_mpi s;
    int rc;

    mbedtls_ecp_group_init(&group);
    mbedtls_mpi_init(&d);
    mbedtls_mpi_init(&r);
    mbedtls_mpi_init(&s);
    rc = mbedtls_ecp_group_load(&group, MBEDTLS_ECP_DP_SECP256R1);
    if (rc == 0)
        rc = mbedtls_mpi_read_binary(&d, k->d, SCALAR);
    if (rc == 0)
        rc = mbedtls_ecdsa_sign_det_ext(&group, &r, &s, &d, m->bytes, DIGEST_SIZE,
                                        MBEDTLS_MD_SHA256, random_for_mbedtls, NULL);
    if (rc == 0)
        rc = mbedtls_mpi_write_binary(&r, r_out, SCALAR);
    if (rc == 0)
        rc = mbedtls_mpi_write_binary(&s, s_out, SCALAR);
    mbedtls_mpi_free(&s);
    mbedtls_mpi_free(&r);
    mbedtls_mpi_free(&d);
    mbedtls_ecp_group_free(&group);
    return rc;
}

int private_key_sign(const struct private_key *k, const struct digest *message_digest,
                     uint8_t out[SIGNATURE_MAX], size_t *out_len, struct err *e)
{
    uint8_t r[SCALAR];
    uint8_t s[SCALAR];
    uint8_t sig[SIGNATURE_MAX];
    size_t len;
    int rc = sign_raw(k, message_digest, r, s);

    if (rc != 0)
        return fail(e, rc, "sign");
    len = write_signature(r, s, sig);
    if (!public_key_verify(k->public, message_digest, sig, len))
        return err_set(e, ERR_INTERNAL, "sign.wrong",
                       "a signature just made does not verify; it was thrown away");
    memcpy(out, sig, len);
    *out_len = len;
    return 0;
}
