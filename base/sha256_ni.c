#include "base/sha256_ni.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define NI __attribute__((target("sha,ssse3,sse4.1")))

static const uint32_t round_constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

bool sha256_ni_available(void)
{
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;

    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & bit_SSE4_1) == 0 ||
        (ecx & bit_SSSE3) == 0)
        return false;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & bit_SHA) != 0;
}

static inline const __m128i *vectors(const void *p)
{
    return p;
}

/* The instructions' order of the eight words. */
struct halves {
    __m128i abef, cdgh;
};

NI static inline struct halves load_state(const uint32_t words[8])
{
    __m128i abcd = _mm_loadu_si128(vectors(words));
    __m128i efgh = _mm_loadu_si128(vectors(words + 4));
    struct halves h;

    abcd = _mm_shuffle_epi32(abcd, 0xb1);
    efgh = _mm_shuffle_epi32(efgh, 0x1b);
    h.abef = _mm_alignr_epi8(abcd, efgh, 8);
    h.cdgh = _mm_blend_epi16(efgh, abcd, 0xf0);
    return h;
}

NI static inline void store_state(uint32_t words[8], struct halves h)
{
    __m128i feba = _mm_shuffle_epi32(h.abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(h.cdgh, 0xb1);
    void *out = words;
    __m128i *to = out;

    _mm_storeu_si128(to, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(to + 1, _mm_alignr_epi8(dchg, feba, 8));
}

/* Four rounds of both states with the message words w. */
NI static inline void rounds(struct halves *a, struct halves *b, __m128i w)
{
    a->cdgh = _mm_sha256rnds2_epu32(a->cdgh, a->abef, w);
    b->cdgh = _mm_sha256rnds2_epu32(b->cdgh, b->abef, w);
    w = _mm_shuffle_epi32(w, 0x0e);
    a->abef = _mm_sha256rnds2_epu32(a->abef, a->cdgh, w);
    b->abef = _mm_sha256rnds2_epu32(b->abef, b->cdgh, w);
}

NI static inline struct halves add_state(struct halves x, struct halves y)
{
    x.abef = _mm_add_epi32(x.abef, y.abef);
    x.cdgh = _mm_add_epi32(x.cdgh, y.cdgh);
    return x;
}

NI static inline void compress(struct halves *a, struct halves *b, const uint8_t *block)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i *k = vectors(round_constants);
    const struct halves a_before = *a;
    const struct halves b_before = *b;
    __m128i m[4];
    int i = 0;

    for (i = 0; i < 4; i++)
        m[i] = _mm_shuffle_epi8(_mm_loadu_si128(vectors(block + (ptrdiff_t) 16 * i)), swap);
#pragma GCC unroll 16
    for (i = 0; i < 16; i++) {
        __m128i current = m[i & 3];

        rounds(a, b, _mm_add_epi32(current, k[i]));
        if (i >= 3 && i <= 14) { /* the words four groups on */
            __m128i next =
                _mm_add_epi32(m[(i + 1) & 3], _mm_alignr_epi8(current, m[(i + 3) & 3], 4));

            m[(i + 1) & 3] = _mm_sha256msg2_epu32(next, current);
        }
        if (i >= 1 && i <= 12)
            m[(i + 3) & 3] = _mm_sha256msg1_epu32(m[(i + 3) & 3], current);
    }
    *a = add_state(*a, a_before);
    *b = add_state(*b, b_before);
}

NI void sha256_ni_two(uint32_t a[8], uint32_t b[8], const uint8_t *blocks, size_t n)
{
    struct halves one = load_state(a);
    struct halves two = load_state(b);

    for (; n > 0; n--, blocks += 64)
        compress(&one, &two, blocks);
    store_state(a, one);
    store_state(b, two);
}

#else

#include <assert.h>

bool sha256_ni_available(void)
{
    return false;
}

void sha256_ni_two(uint32_t a[8], uint32_t b[8], const uint8_t *blocks, size_t n)
{
    (void) a; /* never called: not available */
    (void) b;
    (void) blocks;
    (void) n;
    assert(!"SHA instructions are not available");
}

#endif
