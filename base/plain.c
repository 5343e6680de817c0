#include "base/plain.h"

#include <stdbool.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"

static unsigned code_point(const char *s, size_t len)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned point = (unsigned char) s[0] & first[len];

    for (size_t i = 1; i < len; i++)
        point = point << 6 | ((unsigned char) s[i] & 0x3fU);
    return point;
}

static bool is_direction(unsigned point)
{
    return point == 0x61c || point == 0x200e || point == 0x200f ||
           (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

size_t plain_direction_mark(const char *s, size_t len, unsigned *out_point)
{
    size_t n = len > 0 && (unsigned char) s[0] >= 0x80 ? text_utf8_length(s, len) : 0;

    if (n == 0)
        return 0;
    *out_point = code_point(s, n);
    return is_direction(*out_point) ? n : 0;
}

static void put_point(struct buf *out, const char *s, size_t n, bool lines)
{
    unsigned point = code_point(s, n);
    bool kept = lines && (point == '\n' || point == '\t');

    if (!kept &&
        (point == '\n' || point == '\t' || point == '\r' || point == 0x2028 || point == 0x2029))
        buf_putc(out, ' ');
    else if (!kept && (point < 0x20 || (point >= 0x7f && point <= 0x9f)))
        buf_putc(out, '?');
    else if (is_direction(point))
        buf_printf(out, "[U+%04X]", point);
    else
        buf_put(out, s, n);
}

static size_t printable_length(const char *s, size_t len)
{
    size_t n = 0;

    while (n < len && s[n] >= 0x20 && s[n] < 0x7f)
        n++;
    return n;
}

static void put(struct buf *out, const char *s, size_t len, bool lines)
{
    for (size_t i = 0; i < len;) {
        size_t n = printable_length(s + i, len - i);

        if (n > 0) {
            buf_put(out, s + i, n);
            i += n;
            continue;
        }
        n = text_utf8_length(s + i, len - i);
        if (n == 0)
            buf_putc(out, '?');
        else
            put_point(out, s + i, n, lines);
        i += n > 0 ? n : 1;
    }
}

void plain_put(struct buf *out, const char *s, size_t len)
{
    put(out, s, len, false);
}

void plain_puts(struct buf *out, const char *s)
{
    if (s)
        put(out, s, strlen(s), false);
}

void plain_put_lines(struct buf *out, const char *s, size_t len)
{
    put(out, s, len, true);
}

void plain_vline(FILE *to, const char *format, va_list ap)
{
    AUTO_BUF struct buf raw = {0};
    AUTO_BUF struct buf line = {0};

    buf_init(&raw, LIMIT_MIB(1));
    buf_init(&line, LIMIT_MIB(8)); /* a byte becomes eight at most */
    buf_vprintf(&raw, format, ap);
    if (raw.data)
        plain_put(&line, raw.data, raw.len);
    if (raw.failed || line.failed)
        (void) fputs("(a line too long to show)\n", to); /* whoever flushes the stream checks it */
    else
        (void) fprintf(to, "%s\n", line.data ? line.data : ""); /* as above */
}

void plain_line(FILE *to, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    plain_vline(to, format, ap);
    va_end(ap);
}
