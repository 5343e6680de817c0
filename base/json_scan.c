/* json_validate: the automaton over bytes; parsing is in json_in.c. */
#include "base/json_scan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_keys.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/text.h"

#define INTEGER_MAX ((UINT64_C(1) << 53) - 1)
/* A literal of fewer characters that has no exponent is below 10^300: no double overflows. */
#define PLAIN_NUMBER_MAX 300

enum expect {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END, /* after '[' */
    EXPECT_KEY,
    EXPECT_KEY_OR_END, /* after '{' */
    EXPECT_COMMA_OR_END,
    EXPECT_NOTHING, /* after the document's value */
};

struct frame {
    bool is_object;
    struct json_keys_mark keys;
};

struct scan {
    const char *p;
    size_t len;
    size_t at;
    const struct json_limits *limits;
    size_t max_depth;
    size_t max_tokens;
    size_t tokens;
    struct frame *frames; /* max_depth of them */
    size_t depth;
    struct json_keys keys;
    struct json_literals *literals; /* NULL: not wanted */
    enum expect expect;
};

void json_literals_fini(struct json_literals *l)
{
    free(l->items);
    *l = (struct json_literals){.items = NULL};
}

static bool add_literal(struct json_literals *l, struct json_literal literal)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        struct json_literal *grown =
            cap > SIZE_MAX / sizeof(*grown) ? NULL : realloc(l->items, cap * sizeof(*grown));

        if (!grown)
            return false;
        l->items = grown;
        l->cap = cap;
    }
    l->items[l->n++] = literal;
    return true;
}

static int syntax(const struct scan *s, const char *what, struct err *e)
{
    return err_set(e, ERR_INPUT, "json.syntax", "%s at byte %zu", what, s->at);
}

static bool is_digit(const struct scan *s, size_t at)
{
    return at < s->len && s->p[at] >= '0' && s->p[at] <= '9';
}

static void skip_space(struct scan *s)
{
    while (s->at < s->len && (s->p[s->at] == ' ' || s->p[s->at] == '\n' || s->p[s->at] == '\r' ||
                              s->p[s->at] == '\t'))
        s->at++;
}

static int count_token(struct scan *s, struct err *e)
{
    if (s->tokens >= s->max_tokens)
        return err_set(e, ERR_LIMIT, "json.tokens", "more than %zu values and keys at byte %zu",
                       s->max_tokens, s->at);
    s->tokens++;
    return 0;
}

/* Four hexadecimal digits at `at`; -1 when they are not there. */
static int hex4(const struct scan *s, size_t at)
{
    int value = 0;

    if (at > s->len || s->len - at < 4)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        int c = (unsigned char) s->p[i];
        int lower = c | 0x20;

        if (c >= '0' && c <= '9')
            value = value * 16 + c - '0';
        else if (lower >= 'a' && lower <= 'f')
            value = value * 16 + lower - 'a' + 10;
        else
            return -1;
    }
    return value;
}

/* At the 'u' of an escape. */
static int scan_unicode_escape(struct scan *s, struct err *e)
{
    int unit = hex4(s, s->at + 1);
    int low = -1;

    if (unit < 0)
        return syntax(s, "\\u without four hexadecimal digits", e);
    if (unit == 0)
        return err_set(e, ERR_INPUT, "json.nul", "U+0000 in a string at byte %zu", s->at);
    if (unit >= 0xdc00 && unit <= 0xdfff)
        return err_set(e, ERR_INPUT, "json.surrogate", "lone surrogate escape at byte %zu", s->at);
    if (unit >= 0xd800 && unit <= 0xdbff) {
        if (s->len - s->at >= 7 && s->p[s->at + 5] == '\\' && s->p[s->at + 6] == 'u')
            low = hex4(s, s->at + 7);
        if (low < 0xdc00 || low > 0xdfff)
            return err_set(e, ERR_INPUT, "json.surrogate", "lone surrogate escape at byte %zu",
                           s->at);
        s->at += 6;
    }
    s->at += 5;
    return 0;
}

/* At a backslash. */
static int scan_escape(struct scan *s, struct err *e)
{
    s->at++;
    if (s->at >= s->len)
        return syntax(s, "a string has no end", e);
    if (s->p[s->at] == 'u')
        return scan_unicode_escape(s, e);
    if (s->p[s->at] == '\0' || !strchr("\"\\/bfnrt", s->p[s->at]))
        return syntax(s, "unknown escape", e);
    s->at++;
    return 0;
}

/* At the opening quote; leaves `at` behind the closing one. */
static int scan_string(struct scan *s, struct err *e)
{
    s->at++;
    while (s->at < s->len) {
        unsigned char c = 0;
        size_t n = 0;

        s->at += text_plain_length(s->p + s->at, s->len - s->at);
        if (s->at == s->len)
            break;
        c = (unsigned char) s->p[s->at];
        if (c == '"') {
            s->at++;
            return 0;
        }
        if (c == '\\') {
            if (scan_escape(s, e) < 0)
                return -1;
            continue;
        }
        if (c == 0)
            return err_set(e, ERR_INPUT, "json.nul", "U+0000 in a string at byte %zu", s->at);
        if (c < 0x20)
            return syntax(s, "control character in a string", e);
        n = text_utf8_length(s->p + s->at, s->len - s->at);
        if (n == 0)
            return err_set(e, ERR_INPUT, "json.utf8", "invalid UTF-8 at byte %zu", s->at);
        s->at += n;
    }
    return syntax(s, "a string has no end", e);
}

static void skip_digits(struct scan *s)
{
    while (is_digit(s, s->at))
        s->at++;
}

/* The grammar of RFC 8259 §6; leaves `at` behind the number. */
static int scan_number_grammar(struct scan *s, bool *out_integer, bool *out_exponent, struct err *e)
{
    *out_integer = true;
    *out_exponent = false;
    if (s->p[s->at] == '-')
        s->at++;
    if (!is_digit(s, s->at))
        return syntax(s, "a number needs digits", e);
    if (s->p[s->at] == '0' && is_digit(s, s->at + 1))
        return syntax(s, "a number starts with 0", e);
    skip_digits(s);
    if (s->at < s->len && s->p[s->at] == '.') {
        *out_integer = false;
        s->at++;
        if (!is_digit(s, s->at))
            return syntax(s, "no digit after the point of a number", e);
        skip_digits(s);
    }
    if (s->at < s->len && (s->p[s->at] == 'e' || s->p[s->at] == 'E')) {
        *out_integer = false;
        *out_exponent = true;
        s->at++;
        if (s->at < s->len && (s->p[s->at] == '+' || s->p[s->at] == '-'))
            s->at++;
        if (!is_digit(s, s->at))
            return syntax(s, "no digit in the exponent of a number", e);
        skip_digits(s);
    }
    return 0;
}

static int scan_number(struct scan *s, struct err *e)
{
    size_t start = s->at;
    size_t len = 0;
    bool integer = false;
    bool exponent = false;
    bool negative = s->p[start] == '-';
    uint64_t magnitude = 0;
    double value = 0;

    if (scan_number_grammar(s, &integer, &exponent, e) < 0)
        return -1;
    len = s->at - start;
    if (integer && !s->limits->big_integers &&
        !num_parse_u64(s->p + start + negative, len - negative, INTEGER_MAX, &magnitude))
        return err_set(e, ERR_INPUT, "json.integer", "an integer beyond 2^53-1 at byte %zu", start);
    if ((exponent || len >= PLAIN_NUMBER_MAX) && !num_parse_double(s->p + start, len, &value))
        return err_set(e, ERR_INPUT, "json.number", "a number too large for a double at byte %zu",
                       start);
    if (s->literals && !add_literal(s->literals, (struct json_literal){start, len, integer}))
        return err_set(e, ERR_NOMEM, "json.memory", "no memory for numbers at byte %zu", start);
    return 0;
}

static int scan_word(struct scan *s, const char *word, struct err *e)
{
    size_t n = strlen(word);

    if (s->len - s->at < n || memcmp(s->p + s->at, word, n) != 0)
        return syntax(s, "no JSON value", e);
    s->at += n;
    return 0;
}

static void after_value(struct scan *s)
{
    s->expect = s->depth > 0 ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

/* At '{' or '['. */
static int open_container(struct scan *s, struct err *e)
{
    struct frame *f = NULL;

    if (s->depth >= s->max_depth)
        return err_set(e, ERR_LIMIT, "json.depth", "deeper than %zu levels at byte %zu",
                       s->max_depth, s->at);
    f = &s->frames[s->depth++];
    f->is_object = s->p[s->at] == '{';
    f->keys = json_keys_open(&s->keys);
    s->expect = f->is_object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    s->at++;
    return 0;
}

/* At '}' or ']' where an end is allowed. */
static int close_container(struct scan *s, struct err *e)
{
    struct frame *f = &s->frames[s->depth - 1];
    size_t again = 0;

    if (s->p[s->at] != (f->is_object ? '}' : ']'))
        return syntax(s, f->is_object ? "an object is closed by ']'" : "an array is closed by '}'",
                      e);
    if (!json_keys_close(&s->keys, f->keys, &again))
        return err_set(e, ERR_INPUT, "json.duplicate", "duplicate key at byte %zu", again);
    s->depth--;
    s->at++;
    after_value(s);
    return 0;
}

static int scan_scalar(struct scan *s, struct err *e)
{
    switch (s->p[s->at]) {
    case '"':
        return scan_string(s, e);
    case 't':
        return scan_word(s, "true", e);
    case 'f':
        return scan_word(s, "false", e);
    case 'n':
        return scan_word(s, "null", e);
    default:
        if (s->p[s->at] == '-' || is_digit(s, s->at))
            return scan_number(s, e);
        return syntax(s, "no JSON value", e);
    }
}

static int scan_value(struct scan *s, struct err *e)
{
    if (count_token(s, e) < 0)
        return -1;
    if (s->p[s->at] == '{' || s->p[s->at] == '[')
        return open_container(s, e);
    if (scan_scalar(s, e) < 0)
        return -1;
    after_value(s);
    return 0;
}

/* A key and its colon. */
static int scan_key(struct scan *s, struct err *e)
{
    size_t start = s->at;

    if (s->p[s->at] != '"')
        return syntax(s, "no key", e);
    if (count_token(s, e) < 0 || scan_string(s, e) < 0)
        return -1;
    if (!json_keys_add(&s->keys, s->p + start + 1, s->at - start - 2, start))
        return err_set(e, ERR_NOMEM, "json.memory", "no memory for keys at byte %zu", start);
    skip_space(s);
    if (s->at >= s->len || s->p[s->at] != ':')
        return syntax(s, "no ':' after a key", e);
    s->at++;
    s->expect = EXPECT_VALUE;
    return 0;
}

/* One token of the document; `at` is on a byte that is no white space. */
static int scan_step(struct scan *s, struct err *e)
{
    char c = s->p[s->at];
    bool is_end = c == '}' || c == ']';

    switch (s->expect) {
    case EXPECT_VALUE_OR_END:
        return is_end ? close_container(s, e) : scan_value(s, e);
    case EXPECT_VALUE:
        return scan_value(s, e);
    case EXPECT_KEY_OR_END:
        return is_end ? close_container(s, e) : scan_key(s, e);
    case EXPECT_KEY:
        return scan_key(s, e);
    case EXPECT_COMMA_OR_END:
        if (is_end)
            return close_container(s, e);
        if (c != ',')
            return syntax(s, "no ',' or end after a value", e);
        s->at++;
        s->expect = s->frames[s->depth - 1].is_object ? EXPECT_KEY : EXPECT_VALUE;
        return 0;
    case EXPECT_NOTHING:
        return err_set(e, ERR_INPUT, "json.trailing", "something follows the value at byte %zu",
                       s->at);
    }
    return err_set(e, ERR_INTERNAL, "json.state", "impossible state at byte %zu", s->at);
}

static int scan_document(struct scan *s, struct err *e)
{
    for (skip_space(s); s->at < s->len; skip_space(s)) {
        if (scan_step(s, e) < 0)
            return -1;
    }
    if (s->expect != EXPECT_NOTHING)
        return syntax(s, s->tokens == 0 ? "no value" : "the value has no end", e);
    return 0;
}

int json_scan(const char *bytes, size_t len, const struct json_limits *limits,
              struct json_literals *literals, struct err *e)
{
    static const struct json_limits document = {.max_bytes = LIMIT_JSON_DOCUMENT};
    struct scan s = {
        .p = bytes,
        .len = len,
        .limits = limits ? limits : &document,
        .literals = literals,
        .expect = EXPECT_VALUE,
    };
    int result = 0;

    s.max_depth = s.limits->max_depth ? s.limits->max_depth : LIMIT_JSON_DEPTH;
    s.max_tokens = s.limits->max_tokens ? s.limits->max_tokens : LIMIT_JSON_TOKENS;
    if (s.max_depth > LIMIT_JSON_DEPTH_HARD)
        s.max_depth = LIMIT_JSON_DEPTH_HARD;
    if (len > s.limits->max_bytes)
        return err_set(e, ERR_LIMIT, "json.size", "larger than %zu bytes: refused at byte %zu",
                       s.limits->max_bytes, s.limits->max_bytes);
    s.frames = calloc(s.max_depth, sizeof(*s.frames));
    if (!s.frames)
        return err_set(e, ERR_NOMEM, "json.memory", "no memory to read JSON at byte 0");
    json_keys_init(&s.keys, len);
    result = scan_document(&s, e);
    json_keys_fini(&s.keys);
    free(s.frames);
    return result;
}

int json_validate(const char *bytes, size_t len, const struct json_limits *limits, struct err *e)
{
    return json_scan(bytes, len, limits, NULL, e);
}
