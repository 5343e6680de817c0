#include "evidence/pem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/text.h"

#define PEM_COLUMNS 64

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The wrong half of a pair is told as such. */
static int wrong_kind(const char *text, size_t len, const char *label, struct err *e)
{
    if (memmem(text, len, " PRIVATE KEY-----", 17) && !strstr(label, "PRIVATE"))
        return err_set(e, ERR_INPUT, "pem.private",
                       "THIS IS A PRIVATE KEY, which must not leave the machine that signs: give "
                       "the public key that was made with it (pub.pem)");
    return err_set(e, ERR_INPUT, "pem.begin",
                   "this is no PEM text of the kind \"%s\": it does not begin with -----BEGIN "
                   "%s-----",
                   label, label);
}

/* Body between the two marker lines, without white space, into clean (at least len + 1 bytes). */
static int extract(const char *text, size_t len, const char *label, char *clean, size_t *out_len,
                   struct err *e)
{
    AUTO_BUF struct buf mark = {.data = NULL};
    const char *begin;
    const char *end;
    const char *stop = text + len;
    size_t n = 0;

    buf_init(&mark, 256);
    buf_printf(&mark, "-----BEGIN %s-----", label);
    if (buf_check(&mark, e) < 0)
        return -1;
    while (text < stop && is_space(*text))
        text++;
    while (stop > text && is_space(stop[-1]))
        stop--;
    if ((size_t) (stop - text) < mark.len || memcmp(text, mark.data, mark.len) != 0)
        return wrong_kind(text, (size_t) (stop - text), label, e);
    begin = text + mark.len;
    buf_clear(&mark);
    buf_printf(&mark, "-----END %s-----", label);
    if (buf_check(&mark, e) < 0)
        return -1;
    if ((size_t) (stop - begin) < mark.len || memcmp(stop - mark.len, mark.data, mark.len) != 0)
        return err_set(e, ERR_INPUT, "pem.end", "the PEM text does not end with its \"%s\" line",
                       label);
    end = stop - mark.len;
    if (begin == end || !is_space(*begin) || !is_space(end[-1]))
        return err_set(e, ERR_INPUT, "pem.lines", "the PEM text's marker lines are not lines");
    for (const char *p = begin; p < end; p++) {
        if (!is_space(*p))
            clean[n++] = *p;
    }
    *out_len = n;
    return 0;
}

int pem_decode(const char *text, size_t len, const char *label, uint8_t *out, size_t max,
               size_t *out_len, struct err *e)
{
    AUTO_FREE char *clean = NULL;
    AUTO_FREE uint8_t *der = NULL;
    size_t clean_len = 0;
    size_t der_len = 0;

    if (len > LIMIT_PEM)
        return err_set(e, ERR_LIMIT, "pem.size", "the PEM text has %zu bytes; the limit is %zu",
                       len, LIMIT_PEM);
    clean = malloc(len + 1);
    der = malloc(len + 4);
    if (!clean || !der)
        return err_set(e, ERR_NOMEM, "pem.memory", "no memory to read a PEM text");
    if (extract(text, len, label, clean, &clean_len, e) < 0)
        return -1;
    if (!text_unbase64(clean, clean_len, der, &der_len) || der_len == 0)
        return err_set(e, ERR_INPUT, "pem.base64", "the PEM text's body is not base64");
    if (der_len > max)
        return err_set(e, ERR_INPUT, "pem.long",
                       "the PEM text holds %zu bytes; at most %zu are possible", der_len, max);
    memcpy(out, der, der_len);
    *out_len = der_len;
    explicit_bzero(clean, len + 1); /* it may have been a private key */
    explicit_bzero(der, len + 4);
    return 0;
}

char *pem_encode(const char *label, const uint8_t *der, size_t len)
{
    AUTO_BUF struct buf b = {.data = NULL};
    AUTO_FREE char *body = malloc(text_base64_size(len));
    size_t n;
    size_t out_len = 0;
    struct err e = ERR_INIT;

    if (!body)
        return NULL;
    text_base64(der, len, body);
    n = strlen(body);
    buf_init(&b, LIMIT_PEM);
    buf_printf(&b, "-----BEGIN %s-----\n", label);
    for (size_t i = 0; i < n; i += PEM_COLUMNS) {
        buf_put(&b, body + i, n - i < PEM_COLUMNS ? n - i : PEM_COLUMNS);
        buf_putc(&b, '\n');
    }
    buf_printf(&b, "-----END %s-----\n", label);
    explicit_bzero(body, n);
    if (buf_check(&b, &e) < 0)
        return NULL;
    return buf_take(&b, &out_len);
}
