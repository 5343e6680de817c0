#include "server/http/conditional.h"

#include <stddef.h>
#include <string.h>

#include "base/num.h"

static const char *skip_space(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* One entity tag at p: its length including quotes, 0 when malformed. */
static size_t tag_length(const char *p)
{
    const char *end = NULL;

    if (*p != '"')
        return 0;
    end = strchr(p + 1, '"');
    return end ? (size_t) (end - p) + 1 : 0;
}

bool conditional_lists(const char *list, const char *etag, bool weak)
{
    const char *p = skip_space(list);
    size_t etag_len = strlen(etag);

    if (*p == '*')
        return *skip_space(p + 1) == '\0';
    while (*p != '\0') {
        bool is_weak = p[0] == 'W' && p[1] == '/';
        size_t len = 0;

        if (is_weak)
            p += 2;
        len = tag_length(p);
        if (len == 0)
            return false;
        if (len == etag_len && memcmp(p, etag, len) == 0 && (weak || !is_weak))
            return true;
        p = skip_space(p + len);
        if (*p != ',' && *p != '\0')
            return false;
        while (*p == ',' || *p == ' ' || *p == '\t')
            p++;
    }
    return false;
}

enum range_result conditional_range(const char *value, uint64_t size, uint64_t *out_first,
                                    uint64_t *out_last)
{
    const char *p = value;
    size_t first_len = 0;
    size_t last_len = 0;
    uint64_t first = 0;
    uint64_t last = 0;

    if (strncmp(p, "bytes=", 6) != 0)
        return RANGE_IGNORED;
    p += 6;
    first_len = strspn(p, "0123456789");
    if (p[first_len] != '-')
        return RANGE_IGNORED;
    last_len = strspn(p + first_len + 1, "0123456789");
    if (p[first_len + 1 + last_len] != '\0' || first_len + last_len == 0 || first_len > 18 ||
        last_len > 18)
        return RANGE_IGNORED;
    if (first_len > 0 && !num_parse_u64(p, first_len, UINT64_MAX, &first))
        return RANGE_IGNORED;
    if (last_len > 0 && !num_parse_u64(p + first_len + 1, last_len, UINT64_MAX, &last))
        return RANGE_IGNORED;
    if (first_len == 0) { /* the last `last` bytes */
        if (last == 0 || size == 0)
            return RANGE_UNSATISFIABLE;
        first = last >= size ? 0 : size - last;
        last = size - 1;
    } else {
        if (last_len > 0 && last < first)
            return RANGE_IGNORED;
        if (first >= size)
            return RANGE_UNSATISFIABLE;
        if (last_len == 0 || last >= size)
            last = size - 1;
    }
    *out_first = first;
    *out_last = last;
    return RANGE_ONE;
}
