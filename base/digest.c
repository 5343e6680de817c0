#include "base/digest.h"

#include <errno.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"

#define READ_BLOCK ((size_t) 128 << 10)

struct digest_state {
    struct sha256_ctx sha;
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

int digest_of_fd(int fd, struct digest *out, uint64_t *out_size, struct err *e)
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
        size += (uint64_t) got;
    }
    sha256_digest(&sha, DIGEST_SIZE, out->bytes);
    if (out_size)
        *out_size = size;
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
