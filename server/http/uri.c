#include "server/http/uri.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* pchar of RFC 3986 without '%'. */
static bool is_path_byte(char c)
{
    return is_unreserved(c) || (c != '\0' && strchr("!$&'()*+,;=:@", c) != NULL);
}

/* Decodes `len` raw bytes; NULL with *out_why on anything ambiguous. */
static char *decode_segment(struct arena *a, const char *raw, size_t len, const char **out_why)
{
    char *out = arena_alloc(a, len + 1);
    size_t n = 0;
    size_t i = 0;

    if (!out) {
        *out_why = "the path is too long";
        return NULL;
    }
    for (i = 0; i < len; i++) {
        unsigned char c = (unsigned char) raw[i];

        if (raw[i] == '%') {
            int high = len - i > 2 ? hex_value(raw[i + 1]) : -1;
            int low = len - i > 2 ? hex_value(raw[i + 2]) : -1;

            if (high < 0 || low < 0) {
                *out_why = "the path holds a broken %-escape";
                return NULL;
            }
            c = (unsigned char) (high * 16 + low);
            i += 2;
        } else if (!is_path_byte(raw[i])) {
            *out_why = "the path holds a byte that must be percent-encoded";
            return NULL;
        }
        if (c < 0x20 || c == 0x7f || c == '/' || c == '\\') {
            *out_why = "the path holds an encoded separator or control character";
            return NULL;
        }
        out[n++] = (char) c;
    }
    out[n] = '\0';
    return out;
}

bool uri_split(struct arena *a, const char *raw_path, struct uri_path *out, const char **out_why)
{
    struct uri_path path = {.n = 0};
    const char *p = raw_path;

    if (*p != '/') {
        *out_why = "the request target must be a path";
        return false;
    }
    p++;
    while (*p != '\0') {
        size_t len = strcspn(p, "/");
        char *segment = NULL;

        if (len == 0) {
            *out_why = "the path holds an empty segment";
            return false;
        }
        if (path.n == URI_SEGMENTS_MAX) {
            *out_why = "the path holds too many segments";
            return false;
        }
        segment = decode_segment(a, p, len, out_why);
        if (!segment)
            return false;
        if (strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0) {
            *out_why = "the path holds a dot segment";
            return false;
        }
        if (!text_is_utf8(segment, strlen(segment))) {
            *out_why = "the path is not UTF-8";
            return false;
        }
        path.segments[path.n++] = segment;
        p += len;
        if (*p == '/') {
            p++;
            path.trailing_slash = *p == '\0';
        }
    }
    *out = path;
    return true;
}

bool uri_query_is_plain(const char *raw_query)
{
    for (const char *p = raw_query; p && *p != '\0'; p++) {
        if (*p == '%' && (hex_value(p[1]) < 0 || hex_value(p[2]) < 0))
            return false;
        if (*p != '%' && *p != '/' && *p != '?' && !is_path_byte(*p))
            return false;
    }
    return true;
}

static char *decode_query(struct arena *a, const char *raw, size_t len)
{
    char *out = arena_alloc(a, len + 1);
    size_t n = 0;
    size_t i = 0;

    if (!out)
        return NULL;
    for (i = 0; i < len; i++) {
        char c = raw[i];

        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            int high = len - i > 2 ? hex_value(raw[i + 1]) : -1;
            int low = len - i > 2 ? hex_value(raw[i + 2]) : -1;

            if (high < 0 || low < 0)
                return NULL;
            c = (char) (unsigned char) (high * 16 + low);
            i += 2;
        }
        if ((unsigned char) c < 0x20 || c == 0x7f)
            return NULL;
        out[n++] = c;
    }
    out[n] = '\0';
    return text_is_utf8(out, n) ? out : NULL;
}

const char *uri_query_get(struct arena *a, const char *raw_query, const char *name)
{
    size_t name_len = strlen(name);
    const char *found = NULL;
    size_t found_len = 0;
    const char *p = raw_query;

    while (p && *p != '\0') {
        size_t len = strcspn(p, "&");

        if (len > name_len && strncmp(p, name, name_len) == 0 && p[name_len] == '=') {
            if (found)
                return NULL;
            found = p + name_len + 1;
            found_len = len - name_len - 1;
        }
        p += len;
        if (*p == '&')
            p++;
    }
    return found ? decode_query(a, found, found_len) : NULL;
}
