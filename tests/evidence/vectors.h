/* vectors: the published DSSE test key (protocol.md) as this product's key types. Never a real key.
 */
#pragma once

#include "tests/lib/support.h"

#include <string.h>

#include "evidence/pem.h"
#include "evidence/sign.h"

#define VECTOR_FINGERPRINT "f793580060562d6ff075d814ea698c282fcc779b0cde64d79ffc6301df00d14b"
#define VECTOR_KEYID "95NYAGBWLW/wddgU6mmMKC/Md5sM3mTXn/xjAd8A0Us="
#define VECTOR_PUBLIC                                                                              \
    "-----BEGIN PUBLIC KEY-----\n"                                                                 \
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZ805D3eqNZywjCI19lInBJOp7YMr\n"                           \
    "CrzAH3CVTAOQ0jgMeCvVTiaRJaRPRDOv8UMs6U4SvKc6pnrIDOoSYI3fdA==\n"                               \
    "-----END PUBLIC KEY-----\n"
#define VECTOR_B_STATEMENT                                                                         \
    "{\"_type\":\"https://in-toto.io/Statement/"                                                   \
    "v1\",\"subject\":[{\"name\":\"evidence.bin\",\"digest\":{\"sha256\":"                         \
    "\"a948904f2f0f479b8f8197694b30184b0d2ed1c1cd2a1ec0fb85d299a192a447\"}}],\"predicateType\":"   \
    "\"https://in-toto.io/attestation/test-result/"                                                \
    "v0.1\",\"predicate\":{\"result\":\"PASSED\",\"configuration\":"                               \
    "[{\"name\":\"scenario.json\",\"digest\":{\"sha256\":"                                         \
    "\"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\"}}],\"passedTests\":"     \
    "[\"call_setup/2000\"],\"warnedTests\":[],\"failedTests\":[]}}"

/* The private half, as SEC1 without its public point: the smallest form that must be read. */
static inline struct private_key *vector_key(void)
{
    static const uint8_t sec1[] = {
        0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20, 0xd7, 0x3e, 0xc4, 0x37, 0xfd, 0x63,
        0x46, 0xe3, 0x61, 0x9c, 0x5e, 0xbf, 0xdf, 0xff, 0x0f, 0x69, 0x16, 0x80, 0x49,
        0x55, 0xad, 0x32, 0xac, 0x9a, 0xc4, 0x92, 0xb0, 0xed, 0xe1, 0xf6, 0xff, 0xb7,
        0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
    };
    struct private_key *k = NULL;
    struct err e = ERR_INIT;
    char *pem = pem_encode("EC PRIVATE KEY", sec1, sizeof sec1);

    assert_non_null(pem);
    if (private_key_parse(pem, strlen(pem), &k, &e) < 0)
        fail_msg("%s", e.text);
    free(pem);
    return k;
}
