#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Text that others write as JSON: what is no UTF-8, such as a character that "%.60s" cut in two or
 * the name of a file, becomes a '?'. */
static void mend(char text[ERR_TEXT_MAX])
{
    size_t len = text_whole_length(text, ERR_TEXT_MAX - 1);
    size_t to = 0;
    bool broken = false;

    for (size_t i = 0; i < len;) {
        size_t n = text_utf8_length(text + i, len - i);

        if (n == 0 && !broken)
            text[to++] = '?';
        memmove(text + to, text + i, n);
        to += n;
        broken = n == 0;
        i += n > 0 ? n : 1;
    }
    text[to] = '\0';
}

__attribute__((format(printf, 2, 0))) static void fill(struct err *e, const char *format,
                                                       va_list ap)
{
    if (vsnprintf(e->text, sizeof(e->text), format, ap) < 0)
        e->text[0] = '\0';
    mend(e->text);
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
    joined[text_whole_length(joined, n)] = '\0';
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
