#include "server/http/auth.h"

#include <string.h>
#include <strings.h>

#include "server/http/request.h"

static bool is_token_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~+/=", c) != NULL);
}

enum auth_result auth_bearer(const struct request *q, struct digest *out_hash)
{
    const char *value = request_header(q, "Authorization");
    size_t len = 0;
    size_t i = 0;

    if (!value)
        return AUTH_ABSENT;
    if (strncasecmp(value, "Bearer ", 7) != 0)
        return AUTH_MALFORMED;
    value += 7;
    while (*value == ' ')
        value++;
    len = strnlen(value, AUTH_TOKEN_MAX + 1);
    if (len < AUTH_TOKEN_MIN || len > AUTH_TOKEN_MAX)
        return AUTH_MALFORMED;
    for (i = 0; i < len; i++) {
        if (!is_token_byte(value[i]))
            return AUTH_MALFORMED;
    }
    *out_hash = digest_of(value, len);
    return AUTH_TOKEN;
}

bool auth_allows(unsigned held, unsigned needed)
{
    if (held & AUTH_ADMIN)
        return true;
    if (needed == AUTH_READ)
        return held != 0;
    return (held & needed) == needed;
}

/* Ascending. */
static const struct {
    const char *word;
    unsigned bit;
} scope_table[] = {
    {"read", AUTH_READ},
    {"upload", AUTH_UPLOAD},
    {"review", AUTH_REVIEW},
    {"admin", AUTH_ADMIN},
};

unsigned auth_scope(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(scope_table); i++)
        if (strcmp(word, scope_table[i].word) == 0)
            return scope_table[i].bit;
    return 0;
}

const char *auth_scope_word(unsigned scopes)
{
    for (size_t i = ARRAY_LEN(scope_table); i-- > 0;)
        if (scopes & scope_table[i].bit)
            return scope_table[i].word;
    return scope_table[0].word;
}
