#include "server/pages/tmpl_markup.h"

#include <string.h>
#include <strings.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool starts_with(const char *text, size_t at, size_t to, const char *word)
{
    size_t n = strlen(word);

    return to - at >= n && strncasecmp(text + at, word, n) == 0;
}

/* The attribute whose opening quote is at `quote`: text[*out_from, quote - 1), the '=' left out. */
static bool attribute_name(const char *text, size_t from, size_t quote, size_t *out_from)
{
    size_t i;

    if (quote == from || text[quote - 1] != '=')
        return false;
    i = quote - 1;
    while (i > from && (is_letter(text[i - 1]) || text[i - 1] == '-' || text[i - 1] == ':' ||
                        (text[i - 1] >= '0' && text[i - 1] <= '9')))
        i--;
    *out_from = i;
    return i < quote - 1;
}

static bool name_is(const char *name, size_t len, const char *word)
{
    return strlen(word) == len && strncasecmp(name, word, len) == 0;
}

static const char *open_value(struct tmpl_markup *m, const char *text, size_t from, size_t quote)
{
    static const char *const urls[] = {"href", "src", "action", "formaction", "xlink:href"};
    size_t name = 0;
    size_t len;

    if (!attribute_name(text, from, quote, &name))
        return "a quote that begins no attribute value";
    len = quote - 1 - name;
    if (name_is(text + name, len, "style"))
        return "an inline style";
    if (len > 2 && strncasecmp(text + name, "on", 2) == 0)
        return "an inline event handler";
    m->place = text[quote] == '"' ? TMPL_IN_DOUBLE : TMPL_IN_SINGLE;
    m->url = false;
    for (size_t i = 0; i < ARRAY_LEN(urls); i++)
        m->url = m->url || name_is(text + name, len, urls[i]);
    m->url_start = m->url;
    m->url_value = false;
    return NULL;
}

static const char *in_tag(struct tmpl_markup *m, const char *text, size_t from, size_t at)
{
    char c = text[at];
    char last = m->last;

    m->last = c;
    if (c == '>') {
        m->place = TMPL_IN_DATA;
        return NULL;
    }
    if (c == '"' || c == '\'')
        return open_value(m, text, from, at);
    if (last == '=')
        return "an attribute value without quotes";
    return NULL;
}

static const char *after_lt(struct tmpl_markup *m, const char *text, size_t at, size_t to)
{
    if (starts_with(text, at, to, "!--"))
        return "an HTML comment (use {{! }})";
    if (starts_with(text, at, to, "style"))
        return "an inline style";
    if (starts_with(text, at, to, "script") && !starts_with(text, at, to, "script src=\""))
        return "an inline script";
    m->last = text[at];
    m->place =
        is_letter(text[at]) || text[at] == '/' || text[at] == '!' ? TMPL_IN_TAG : TMPL_IN_DATA;
    return NULL;
}

static const char *in_value(struct tmpl_markup *m, char c)
{
    if (c == (m->place == TMPL_IN_DOUBLE ? '"' : '\''))
        m->place = TMPL_IN_TAG;
    m->url_start = false;
    m->url_value = false;
    return NULL;
}

const char *tmpl_markup_feed(struct tmpl_markup *m, const char *text, size_t from, size_t to,
                             size_t *out_at)
{
    for (size_t at = from; at < to; at++) {
        const char *refusal = NULL;

        switch (m->place) {
        case TMPL_IN_DATA:
            if (text[at] == '<')
                m->place = TMPL_AFTER_LT;
            break;
        case TMPL_AFTER_LT:
            refusal = after_lt(m, text, at, to);
            break;
        case TMPL_IN_TAG:
            refusal = in_tag(m, text, from, at);
            break;
        case TMPL_IN_DOUBLE:
        case TMPL_IN_SINGLE:
            refusal = in_value(m, text[at]);
            break;
        }
        if (refusal) {
            *out_at = at;
            return refusal;
        }
    }
    return NULL;
}

const char *tmpl_markup_value(struct tmpl_markup *m, bool *out_url)
{
    *out_url = false;
    switch (m->place) {
    case TMPL_IN_DATA:
        return NULL;
    case TMPL_AFTER_LT:
    case TMPL_IN_TAG:
        return "a value inside a tag but outside of quotes";
    case TMPL_IN_DOUBLE:
    case TMPL_IN_SINGLE:
        break;
    }
    if (m->url_value)
        return "two values at the beginning of a URL";
    if (m->url_start) {
        *out_url = true;
        m->url_value = true;
        m->url_start = false;
    }
    return NULL;
}
