#include "base/json_keys.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FEW_KEYS 16

void json_keys_init(struct json_keys *k, size_t document_len)
{
    memset(k, 0, sizeof(*k));
    k->document_len = document_len;
}

void json_keys_fini(struct json_keys *k)
{
    free(k->keys);
    free(k->unescaped);
    memset(k, 0, sizeof(*k));
}

struct json_keys_mark json_keys_open(const struct json_keys *k)
{
    return (struct json_keys_mark){.n = k->n, .unescaped_len = k->unescaped_len};
}

static unsigned hex4(const char *s)
{
    unsigned value = 0;

    for (int i = 0; i < 4; i++) {
        unsigned c = (unsigned char) s[i];

        value = value * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

static size_t put_utf8(char *out, unsigned cp)
{
    size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};

    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char) (0x80 | (cp & 0x3f));
        cp >>= 6;
    }
    out[0] = (char) (lead[n] | cp);
    return n;
}

/* Unescapes well-formed text; the result is never longer than the source. */
static size_t unescape(const char *raw, size_t len, char *out)
{
    static const char from[] = "bfnrt";
    static const char to[] = "\b\f\n\r\t";
    size_t n = 0;
    size_t i = 0;

    while (i < len) {
        const char *simple = NULL;
        unsigned cp = 0;

        if (raw[i] != '\\') {
            out[n++] = raw[i++];
            continue;
        }
        if (raw[i + 1] != 'u') {
            simple = strchr(from, raw[i + 1]);
            out[n++] = simple ? to[simple - from] : raw[i + 1];
            i += 2;
            continue;
        }
        cp = hex4(raw + i + 2);
        i += 6;
        if (cp >= 0xd800 && cp <= 0xdbff) {
            cp = 0x10000 + ((cp - 0xd800) << 10) + (hex4(raw + i + 2) - 0xdc00);
            i += 6;
        }
        n += put_utf8(out + n, cp);
    }
    return n;
}

static bool reserve(struct json_keys *k)
{
    size_t cap = k->cap ? k->cap * 2 : 32;
    struct json_key *keys = NULL;

    if (k->n < k->cap)
        return true;
    keys = cap > SIZE_MAX / sizeof(*keys) ? NULL : realloc(k->keys, cap * sizeof(*keys));
    if (!keys)
        return false;
    k->keys = keys;
    k->cap = cap;
    return true;
}

bool json_keys_add(struct json_keys *k, const char *raw, size_t len, size_t at)
{
    struct json_key key = {.text = raw, .len = len, .at = at};

    if (!reserve(k))
        return false;
    if (len > 0 && memchr(raw, '\\', len)) {
        if (!k->unescaped)
            k->unescaped = malloc(k->document_len);
        if (!k->unescaped)
            return false;
        key.text = k->unescaped + k->unescaped_len;
        key.len = unescape(raw, len, k->unescaped + k->unescaped_len);
        k->unescaped_len += key.len;
    }
    k->keys[k->n++] = key;
    return true;
}

static int by_text(const void *a, const void *b)
{
    const struct json_key *x = a;
    const struct json_key *y = b;
    int order = 0;

    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    order = x->len > 0 ? memcmp(x->text, y->text, x->len) : 0;
    if (order != 0)
        return order;
    return (x->at > y->at) - (x->at < y->at);
}

static bool same_key(const struct json_key *a, const struct json_key *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->text, b->text, a->len) == 0);
}

/* Few: each against those before it. The first that comes again is in *out_at. */
static bool few_differ(const struct json_key *keys, size_t n, size_t *out_at)
{
    for (size_t i = 1; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (same_key(&keys[i], &keys[j])) {
                *out_at = keys[i].at;
                return false;
            }
        }
    }
    return true;
}

/* Sorted, so that a hundred thousand keys cost no hundred thousand squared. */
static bool many_differ(struct json_key *keys, size_t n, size_t *out_at)
{
    qsort(keys, n, sizeof(*keys), by_text);
    for (size_t i = 1; i < n; i++) {
        if (same_key(&keys[i], &keys[i - 1])) {
            *out_at = keys[i].at;
            return false;
        }
    }
    return true;
}

bool json_keys_close(struct json_keys *k, struct json_keys_mark mark, size_t *out_at)
{
    size_t n = k->n - mark.n;
    bool differ = true;

    if (n > 1)
        differ = n <= FEW_KEYS ? few_differ(k->keys + mark.n, n, out_at)
                               : many_differ(k->keys + mark.n, n, out_at);
    k->n = mark.n;
    k->unescaped_len = mark.unescaped_len;
    return differ;
}
