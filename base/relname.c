#include "base/relname.h"

#include <stddef.h>

#include "base/limits.h"

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Length of the segment that s starts with, 0 when it is none. */
static size_t segment(const char *s)
{
    size_t n = 0;

    if (!is_word(s[0]))
        return 0;
    for (n = 1; s[n] != '\0' && s[n] != '/'; n++) {
        if (!is_word(s[n]) && s[n] != '.' && s[n] != '-')
            return 0;
        if (s[n] == '.' && s[n - 1] == '.')
            return 0;
        if (n >= LIMIT_RELNAME)
            return 0;
    }
    return n;
}

bool relname_segment_ok(const char *s)
{
    size_t n = segment(s);

    return n > 0 && n <= LIMIT_RELNAME && s[n] == '\0';
}

bool relname_ok(const char *name)
{
    size_t total = 0;

    for (size_t segments = 1; segments <= LIMIT_RELNAME_SEGMENTS; segments++) {
        size_t n = segment(name + total);

        total += n;
        if (n == 0 || total > LIMIT_RELNAME)
            return false;
        if (name[total] == '\0')
            return true;
        total++; /* the '/' */
    }
    return false;
}
