#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The length of text[0..len) without a UTF-8 sequence that its end has cut in two. */
static size_t whole_length(const char *text, size_t len)
{
    size_t back = 0;

    while (back < 3 && back < len) {
        unsigned char c = (unsigned char) text[len - 1 - back];
        size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

        if (c < 0x80)
            return len;
        back++;
        if (c >= 0xc0)
            return back < need ? len - back : len;
    }
    return len;
}

/* What the vsnprintf-like result `written` left in text. */
static void cut(char text[ERR_TEXT_MAX], int written)
{
    if (written < 0)
        text[0] = '\0';
    else if (written >= ERR_TEXT_MAX)
        text[whole_length(text, ERR_TEXT_MAX - 1)] = '\0';
}

__attribute__((format(printf, 2, 0))) static void fill(struct err *e, const char *format,
                                                       va_list ap)
{
    cut(e->text, vsnprintf(e->text, sizeof(e->text), format, ap));
}

int err_set(struct err *e, enum err_kind kind, const char *code, const char *format, ...)
{
    va_list ap;

    if (!e)
        return -1;
    e->kind = kind;
    e->code = code;
    va_start(ap, format);
    fill(e, format, ap);
    va_end(ap);
    return -1;
}

/* Copies what fits of s to out[at…], always leaving room for a NUL; returns the new end. */
static size_t append(char out[ERR_TEXT_MAX], size_t at, const char *s)
{
    size_t len = strlen(s);
    size_t room = ERR_TEXT_MAX - 1 - at;

    if (len > room)
        len = room;
    memcpy(out + at, s, len);
    return at + len;
}

/* Puts "context: " before e->text. */
static void prepend(struct err *e, const char *context)
{
    char joined[ERR_TEXT_MAX];
    size_t n = append(joined, 0, context);

    n = append(joined, n, ": ");
    n = append(joined, n, e->text);
    joined[n == ERR_TEXT_MAX - 1 ? whole_length(joined, n) : n] = '\0';
    memcpy(e->text, joined, sizeof(joined));
}

int err_wrap(struct err *e, const char *format, ...)
{
    struct err context = ERR_INIT;
    va_list ap;

    if (!e)
        return -1;
    va_start(ap, format);
    fill(&context, format, ap);
    va_end(ap);
    prepend(e, context.text);
    return -1;
}

static enum err_kind kind_of(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT:
        return ERR_NOSPACE;
    case ENOENT:
        return ERR_NOTFOUND;
    case ENOMEM:
        return ERR_NOMEM;
    default:
        return ERR_SYS;
    }
}

int err_errno(struct err *e, const char *code, const char *format, ...)
{
    int number = errno;
    const char *description = strerrordesc_np(number);
    struct err context = ERR_INIT;
    va_list ap;

    if (!e)
        return -1;
    va_start(ap, format);
    fill(&context, format, ap);
    va_end(ap);
    if (description)
        (void) err_set(e, kind_of(number), code, "%s", description);
    else
        (void) err_set(e, kind_of(number), code, "error %d", number);
    prepend(e, context.text);
    return -1;
}

int err_memory(struct err *e, const char *code)
{
    return err_set(e, ERR_NOMEM, code, "out of memory");
}
