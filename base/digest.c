#include "base/digest.h"

#include <errno.h>
#include <nettle/memops.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sha256_ni.h"
#include "base/text.h"

#define READ_BLOCK ((size_t) 128 << 10)
#define PAIR_MIN ((size_t) 128) /* shorter pieces are not worth the set-up */

struct digest_state {
    struct sha256_ctx sha;
    enum { UNASKED, FAST, PLAIN } two; /* how digest_update_two works, asked once */
};

struct digest_state *digest_new(void)
{
    struct digest_state *s = calloc(1, sizeof(*s));

    if (s)
        sha256_init(&s->sha);
    return s;
}

void digest_free(struct digest_state *s)
{
    free(s);
}

void digest_update(struct digest_state *s, const void *p, size_t len)
{
    sha256_update(&s->sha, len, p);
}

static bool is_fast(struct digest_state *s)
{
    if (s->two == UNASKED)
        s->two = sha256_ni_available() ? FAST : PLAIN;
    return s->two == FAST;
}

static size_t update_both(struct digest_state *a, struct digest_state *b, const uint8_t *p,
                          size_t len)
{
    sha256_update(&a->sha, len, p);
    sha256_update(&b->sha, len, p);
    return len;
}

void digest_update_two(struct digest_state *a, struct digest_state *b, const void *p, size_t len)
{
    const uint8_t *bytes = p;
    size_t start = 0;
    size_t n = 0;

    if (len < PAIR_MIN || a->sha.index != b->sha.index || !is_fast(a)) {
        (void) update_both(a, b, bytes, len);
        return;
    }
    if (a->sha.index > 0) /* up to a block's end */
        start = update_both(a, b, bytes, SHA256_BLOCK_SIZE - a->sha.index);
    n = (len - start) / SHA256_BLOCK_SIZE;
    sha256_ni_two(a->sha.state, b->sha.state, bytes + start, n);
    a->sha.count += n;
    b->sha.count += n;
    start += n * SHA256_BLOCK_SIZE;
    (void) update_both(a, b, bytes + start, len - start);
}

void digest_finish(struct digest_state *s, struct digest *out)
{
    sha256_digest(&s->sha, DIGEST_SIZE, out->bytes);
}

struct digest digest_of(const void *p, size_t len)
{
    struct sha256_ctx sha;
    struct digest d;

    sha256_init(&sha);
    if (len > 0)
        sha256_update(&sha, len, p);
    sha256_digest(&sha, DIGEST_SIZE, d.bytes);
    return d;
}

/* A blob's name in the making. */
struct blob {
    struct sha1_ctx sha1;
    struct sha256_ctx sha256;
    bool wide;
};

static void blob_update(struct blob *b, const void *p, size_t len)
{
    if (b->wide)
        sha256_update(&b->sha256, len, p);
    else
        sha1_update(&b->sha1, len, p);
}

static void blob_begin(struct blob *b, uint64_t size, size_t name_len)
{
    char head[32];
    int n = snprintf(head, sizeof(head), "blob %llu", (unsigned long long) size); /* fits */

    b->wide = name_len == (size_t) DIGEST_SIZE * 2;
    sha1_init(&b->sha1);
    sha256_init(&b->sha256);
    blob_update(b, head, (size_t) n + 1);
}

static void blob_finish(struct blob *b, char out_name[DIGEST_HEX_SIZE])
{
    uint8_t bytes[DIGEST_SIZE];

    if (b->wide)
        sha256_digest(&b->sha256, SHA256_DIGEST_SIZE, bytes);
    else
        sha1_digest(&b->sha1, SHA1_DIGEST_SIZE, bytes);
    text_hex(bytes, b->wide ? SHA256_DIGEST_SIZE : SHA1_DIGEST_SIZE, out_name);
}

void digest_blob_name(const void *p, size_t len, size_t name_len, char out_name[DIGEST_HEX_SIZE])
{
    struct blob b;

    blob_begin(&b, len, name_len);
    blob_update(&b, p, len);
    blob_finish(&b, out_name);
}

/* blob may be NULL. */
static int hash_fd(int fd, struct blob *blob, struct digest *out, uint64_t *out_size, struct err *e)
{
    struct sha256_ctx sha;
    uint64_t size = 0;
    AUTO_FREE uint8_t *block = malloc(READ_BLOCK);

    if (!block)
        return err_set(e, ERR_NOMEM, "digest.memory", "no memory to read a file");
    sha256_init(&sha);
    for (;;) {
        ssize_t got = read(fd, block, READ_BLOCK);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(e, "digest.read", "cannot read a file to hash it");
        if (got == 0)
            break;
        sha256_update(&sha, (size_t) got, block);
        if (blob)
            blob_update(blob, block, (size_t) got);
        size += (uint64_t) got;
    }
    sha256_digest(&sha, DIGEST_SIZE, out->bytes);
    *out_size = size;
    return 0;
}

int digest_of_fd(int fd, struct digest *out, uint64_t *out_size, struct err *e)
{
    uint64_t size = 0;

    if (hash_fd(fd, NULL, out, &size, e) < 0)
        return -1;
    if (out_size)
        *out_size = size;
    return 0;
}

int digest_of_fd_as_blob(int fd, uint64_t size, size_t name_len, struct digest *out,
                         char out_name[DIGEST_HEX_SIZE], struct err *e)
{
    struct blob b;
    uint64_t got = 0;

    blob_begin(&b, size, name_len);
    if (hash_fd(fd, &b, out, &got, e) < 0)
        return -1;
    blob_finish(&b, out_name);
    if (got != size)
        out_name[0] = '\0';
    return 0;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
    return memeql_sec(a->bytes, b->bytes, DIGEST_SIZE) != 0;
}

void digest_hex(const struct digest *d, char out[DIGEST_HEX_SIZE])
{
    text_hex(d->bytes, DIGEST_SIZE, out);
}

bool digest_parse(const char *hex, struct digest *out)
{
    size_t len = 0;
    struct digest d;

    while (len < DIGEST_HEX_SIZE && hex[len] != '\0')
        len++;
    if (len != DIGEST_HEX_SIZE - 1 || !text_unhex(hex, len, d.bytes))
        return false;
    *out = d;
    return true;
}
