#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
    memset(b, 0, sizeof(*b));
    b->max = max;
}

void buf_fini(struct buf *b)
{
    free(b->data);
    memset(b, 0, sizeof(*b));
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

void buf_fail(struct buf *b, enum buf_failure why)
{
    if (b->failed)
        return;
    b->failed = true;
    b->failure = why;
}

/* Room for `more` bytes and the NUL; false and failed otherwise. */
static bool reserve(struct buf *b, size_t more)
{
    size_t cap = b->cap ? b->cap : 64;
    char *data = NULL;

    if (b->failed)
        return false;
    if (more > b->max || b->len > b->max - more || more >= SIZE_MAX - b->len) {
        buf_fail(b, BUF_FULL);
        return false;
    }
    if (b->data && b->len + more < b->cap)
        return true;
    while (cap <= b->len + more)
        cap = cap > SIZE_MAX / 2 ? SIZE_MAX : cap * 2;
    data = realloc(b->data, cap);
    if (!data) {
        buf_fail(b, BUF_NOMEM);
        return false;
    }
    b->data = data;
    b->cap = cap;
    b->data[b->len] = '\0';
    return true;
}

void buf_put(struct buf *b, const void *p, size_t len)
{
    if (!reserve(b, len))
        return;
    if (len > 0)
        memcpy(b->data + b->len, p, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}

void buf_put_cut(struct buf *b, const char *s, size_t max)
{
    size_t len = strlen(s);
    size_t keep = max > 3 ? max - 3 : 0;

    if (len <= max) {
        buf_puts(b, s);
        return;
    }
    while (keep > 0 && ((unsigned char) s[keep] & 0xc0) == 0x80)
        keep--;
    buf_put(b, s, keep);
    buf_puts(b, "…");
}

void buf_putc(struct buf *b, char c)
{
    if (!reserve(b, 1))
        return;
    b->data[b->len++] = c;
    b->data[b->len] = '\0';
}

void buf_vprintf(struct buf *b, const char *format, va_list ap)
{
    va_list again;
    int need = 0;

    va_copy(again, ap);
    need = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (need < 0) {
        buf_fail(b, BUF_CONTENT);
        return;
    }
    if (!reserve(b, (size_t) need))
        return;
    (void) vsnprintf(b->data + b->len, (size_t) need + 1, format, ap); /* measured above */
    b->len += (size_t) need;
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    buf_vprintf(b, format, ap);
    va_end(ap);
}

int buf_check(const struct buf *b, struct err *e)
{
    if (!b->failed)
        return 0;
    switch (b->failure) {
    case BUF_FULL:
        return err_set(e, ERR_LIMIT, "buf.full", "text is longer than %zu bytes", b->max);
    case BUF_NOMEM:
        return err_set(e, ERR_NOMEM, "buf.memory", "no memory for a text of %zu bytes", b->len);
    case BUF_CONTENT:
        return err_set(e, ERR_INTERNAL, "buf.content", "a value cannot be written in this format");
    }
    return err_set(e, ERR_INTERNAL, "buf.content", "a value cannot be written in this format");
}

char *buf_take(struct buf *b, size_t *out_len)
{
    char *data = NULL;

    if (!reserve(b, 0))
        return NULL;
    data = STEAL(b->data);
    if (out_len)
        *out_len = b->len;
    b->len = 0;
    b->cap = 0;
    return data;
}
