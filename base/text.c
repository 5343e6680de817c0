#include "base/text.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_lower(c) || is_digit(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

#define EIGHT(byte) (UINT64_C(0x0101010101010101) * (byte))

static uint64_t eight_bytes(const char *s)
{
    uint64_t v = 0;

    memcpy(&v, s, sizeof(v));
    return le64toh(v); /* the first byte is the lowest */
}

/* The highest bit of a byte is set where v's is below n (at most 0x80), and perhaps above such a
 * byte. */
static uint64_t bytes_below(uint64_t v, unsigned char n)
{
    return (v - EIGHT(n)) & ~v & EIGHT(0x80u);
}

/* Length of the well-formed sequence at s (RFC 3629, table 3-7 of Unicode), or 0. */
static size_t utf8_sequence(const unsigned char *s, size_t len)
{
    size_t need = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;

    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    need = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] == 0xe0)
        low = 0xa0; /* shorter forms exist */
    else if (s[0] == 0xed)
        high = 0x9f; /* surrogates */
    else if (s[0] == 0xf0)
        low = 0x90; /* shorter forms exist */
    else if (s[0] == 0xf4)
        high = 0x8f; /* above U+10FFFF */
    if (len < need || s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++) {
        if (s[i] < 0x80 || s[i] > 0xbf)
            return 0;
    }
    return need;
}

size_t text_utf8_length(const char *s, size_t len)
{
    return len > 0 ? utf8_sequence((const unsigned char *) s, len) : 0;
}

size_t text_whole_length(const char *s, size_t max)
{
    size_t len = strnlen(s, max);
    size_t back = 0;

    while (back < 3 && back < len) {
        unsigned char c = (unsigned char) s[len - 1 - back];
        size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

        if (c < 0x80)
            return len;
        back++;
        if (c >= 0xc0)
            return back < need ? len - back : len;
    }
    return len;
}

const char *text_copy(char *out, size_t size, const char *s)
{
    size_t len = text_whole_length(s, size - 1);

    memcpy(out, s, len);
    out[len] = '\0';
    return out;
}

bool text_is_utf8(const char *s, size_t len)
{
    size_t i = 0;

    while (i < len) {
        size_t n = 0;

        if (len - i >= 8 &&
            (eight_bytes(s + i) & EIGHT(0x80u)) == 0) { /* nearly all of nearly all texts */
            i += 8;
            continue;
        }
        if ((unsigned char) s[i] < 0x80) {
            i++;
            continue;
        }
        n = utf8_sequence((const unsigned char *) s + i, len - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

size_t text_plain_length(const char *s, size_t len)
{
    size_t i = 0;

    while (len - i >= 8) {
        uint64_t v = eight_bytes(s + i);
        uint64_t other = (v & EIGHT(0x80u)) | bytes_below(v, 0x20) |
                         bytes_below(v ^ EIGHT('"'), 1) | bytes_below(v ^ EIGHT('\\'), 1);

        if (other != 0)
            return i + (size_t) __builtin_ctzll(other) / 8;
        i += 8;
    }
    while (i < len && (unsigned char) s[i] >= 0x20 && (unsigned char) s[i] < 0x80 && s[i] != '"' &&
           s[i] != '\\')
        i++;
    return i;
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool text_is_hex(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (hex_value(s[i]) < 0)
            return false;
    }
    return true;
}

void text_hex(const uint8_t *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * len] = '\0';
}

bool text_unhex(const char *s, size_t len, uint8_t *out)
{
    if (len % 2 != 0 || !text_is_hex(s, len))
        return false;
    for (size_t i = 0; i < len; i += 2)
        out[i / 2] = (uint8_t) (hex_value(s[i]) * 16 + hex_value(s[i + 1]));
    return true;
}

size_t text_base64_size(size_t len)
{
    return (len + 2) / 3 * 4 + 1;
}

void text_base64(const uint8_t *p, size_t len, char *out)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t group = (uint32_t) p[i] << 16;

        if (left > 1)
            group |= (uint32_t) p[i + 1] << 8;
        if (left > 2)
            group |= p[i + 2];
        *out++ = alphabet[group >> 18];
        *out++ = alphabet[(group >> 12) & 63];
        *out++ = left > 1 ? alphabet[(group >> 6) & 63] : '=';
        *out++ = left > 2 ? alphabet[group & 63] : '=';
    }
    *out = '\0';
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (is_lower(c))
        return c - 'a' + 26;
    if (is_digit(c))
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

/* All of s is of one alphabet. */
static bool base64_is_plain(const char *s, size_t len)
{
    bool standard = false;
    bool url_safe = false;

    for (size_t i = 0; i < len; i++) {
        if (base64_value(s[i]) < 0)
            return false;
        standard = standard || s[i] == '+' || s[i] == '/';
        url_safe = url_safe || s[i] == '-' || s[i] == '_';
    }
    return !(standard && url_safe);
}

bool text_unbase64(const char *s, size_t len, uint8_t *out, size_t *out_len)
{
    size_t n = len;
    size_t written = 0;
    uint32_t group = 0;
    unsigned bits = 0;

    while (n > 0 && len - n < 2 && s[n - 1] == '=')
        n--;
    if ((n < len && len % 4 != 0) || n % 4 == 1 || !base64_is_plain(s, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        group = (group << 6 | (uint32_t) base64_value(s[i])) & 0xffffff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out[written++] = (uint8_t) (group >> bits);
        }
    }
    if ((group & ((1u << bits) - 1)) != 0)
        return false; /* two texts for the same bytes */
    *out_len = written;
    return true;
}

bool text_is_slug(const char *s)
{
    size_t n = 0;

    for (; s[n] != '\0'; n++) {
        if (n >= 63 || !(is_lower(s[n]) || is_digit(s[n]) || (n > 0 && s[n] == '-')))
            return false;
    }
    return n > 0;
}

static bool is_name(const char *s, size_t len)
{
    if (len == 0 || len > 64 || !is_word(s[0]))
        return false;
    for (size_t i = 1; i < len; i++) {
        if (!is_word(s[i]) && s[i] != '.' && s[i] != '-')
            return false;
        if (s[i] == '.' && s[i - 1] == '.')
            return false;
    }
    return true;
}

bool text_is_name(const char *s)
{
    return is_name(s, strlen(s));
}

static bool ends_with(const char *s, const char *suffix)
{
    size_t len = strlen(s);
    size_t n = strlen(suffix);

    return len >= n && memcmp(s + len - n, suffix, n) == 0;
}

bool text_is_project(const char *s)
{
    const char *slash = strchr(s, '/');

    return slash && is_name(s, (size_t) (slash - s)) && text_is_name(slash + 1) &&
           !ends_with(s, ".json") && !ends_with(s, ".txt") && !ends_with(s, ".md") &&
           !ends_with(s, ".git");
}

bool text_is_run_id(const char *s)
{
    char stamp[17];
    int64_t us = 0;

    if (strlen(s) != 25 || s[16] != '-' || !text_is_hex(s + 17, 8))
        return false;
    memcpy(stamp, s, 16);
    stamp[16] = '\0';
    return clock_parse_compact(stamp, &us);
}

#define NEAREST_MAX 64 /* longer words are no typing slip of ours */

static size_t min2(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment distance: insert, delete, change, swap of neighbours cost 1 each. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][NEAREST_MAX + 1];
    size_t *before = rows[0];
    size_t *last = rows[1];
    size_t *row = rows[2];

    for (size_t j = 0; j <= m; j++) {
        before[j] = 0;
        last[j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        size_t *spare = before;

        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t change = a[i - 1] == b[j - 1] ? 0 : 1;

            row[j] = min2(min2(last[j] + 1, row[j - 1] + 1), last[j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min2(row[j], before[j - 2] + 1);
        }
        before = last;
        last = row;
        row = spare;
    }
    return last[m];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t n)
{
    size_t len = strnlen(word, NEAREST_MAX + 1);
    size_t best = len < 4 ? 2 : 3;
    const char *found = NULL;

    if (len > NEAREST_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t m = strnlen(candidates[i], NEAREST_MAX + 1);
        size_t d = m > NEAREST_MAX ? best : distance(word, len, candidates[i], m);

        if (d < best) {
            best = d;
            found = candidates[i];
        }
    }
    return found;
}

const char *text_hint(const char *near, char out[TEXT_HINT_SIZE])
{
    out[0] = '\0';
    if (near)
        (void) snprintf(out, TEXT_HINT_SIZE, "; did you mean '%.70s'?", near); /* fits */
    return out;
}

bool text_glob(const char *pattern, const char *s)
{
    const char *star = NULL;  /* last '*' seen */
    const char *retry = NULL; /* where its match may grow to */

    while (*s != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            retry = s;
        } else if (*pattern == *s) {
            pattern++;
            s++;
        } else if (star) {
            pattern = star + 1;
            s = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}
