#include "runner/envguard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/text.h"

#define OFFENDERS_MAX 256
#define SOURCES 3

/* The reject lists that hold for this run. */
static void lists_of(const struct plan *p, const cJSON *out[SOURCES])
{
    out[0] = json_get(p->build.env, "reject");
    out[1] = json_get(p->run.env, "reject");
    out[2] = json_get(json_get(p->mode_spec, "env"), "reject");
}

/* Which of them refuses the name; SOURCES: none. */
static size_t rejected(const cJSON *const lists[SOURCES], const char *name)
{
    for (size_t i = 0; i < SOURCES; i++) {
        const cJSON *pattern = NULL;

        cJSON_ArrayForEach(pattern, lists[i]) {
            if (text_glob(pattern->valuestring, name))
                return i;
        }
    }
    return SOURCES;
}

/* "cleanrun.yaml:12:27 (build.env.reject), …" for the lists that refused something. */
static void name_lists(const struct plan *p, const bool used[SOURCES], struct buf *out)
{
    char mode[64], place[DEFINITION_PLACE_SIZE];
    const char *between = "";

    (void) snprintf(mode, sizeof(mode), "/experiment/modes/%s/env/reject",
                    plan_mode_word(p->mode)); /* fits */
    const char *const pointers[SOURCES] = {"/experiment/build/env/reject",
                                           "/experiment/run/env/reject", mode};

    for (size_t i = 0; i < SOURCES; i++) {
        if (!used[i])
            continue;
        buf_printf(out, "%s%s (", between,
                   p->definition ? definition_place(p->definition, pointers[i], place)
                                 : "the definition");
        for (const char *c = pointers[i] + strlen("/experiment/"); *c; c++)
            buf_put(out, *c == '/' ? "." : c, 1);
        buf_puts(out, ")");
        between = ", ";
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

int envguard_check(const struct plan *p, char *const *environment, struct err *e)
{
    const cJSON *lists[SOURCES];
    char *offenders[OFFENDERS_MAX];
    bool used[SOURCES] = {false};
    size_t n = 0;
    AUTO_BUF struct buf b = {.data = NULL};
    AUTO_BUF struct buf by = {.data = NULL};

    lists_of(p, lists);
    buf_init(&b, LIMIT_KIB(64));
    buf_init(&by, LIMIT_KIB(4));
    for (char *const *v = environment; v && *v && n < OFFENDERS_MAX; v++) {
        AUTO_FREE char *name = strndup(*v, strcspn(*v, "="));

        size_t by_list = name ? rejected(lists, name) : SOURCES;

        if (!name)
            b.failed = true; /* told by buf_check below */
        if (by_list == SOURCES)
            continue;
        used[by_list] = true;
        offenders[n++] = STEAL(name);
    }
    qsort(offenders, n, sizeof(*offenders), by_text);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&b, "%s%s", i ? ", " : "", offenders[i]);
        free(offenders[i]);
    }
    if (buf_check(&b, e) < 0)
        return -1;
    if (n == 0)
        return 0;
    name_lists(p, used, &by);
    if (buf_check(&by, e) < 0)
        return -1;
    return err_set(e, ERR_USAGE, "envguard.override",
                   "noncanonical build/allocator override is set: %s; unset %s: refused by %s",
                   b.data, n == 1 ? "it" : "them", by.data);
}

int envguard_patterns(const struct plan *p, cJSON **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc d = {.root = cJSON_CreateArray()};
    const cJSON *lists[SOURCES];

    if (!d.root)
        return err_memory(e, "envguard.memory");
    lists_of(p, lists);
    for (size_t i = 0; i < SOURCES; i++) {
        const cJSON *pattern = NULL;

        cJSON_ArrayForEach(pattern, lists[i]) {
            const cJSON *seen = NULL;
            bool twice = false;

            cJSON_ArrayForEach(seen, d.root) {
                twice = twice || !strcmp(seen->valuestring, pattern->valuestring);
            }
            if (!twice)
                json_add_string(&d, NULL, NULL, pattern->valuestring);
        }
    }
    *out = json_doc_take(&d, e);
    return *out ? 0 : -1;
}

/* Trims spaces, tabs and a carriage return at both ends. */
static void trim(const char **s, size_t *len)
{
    while (*len > 0 && strchr(" \t", **s)) {
        (*s)++;
        (*len)--;
    }
    while (*len > 0 && strchr(" \t\r", (*s)[*len - 1]))
        (*len)--;
}

/* Length of a line's text before a comment that stands outside quotes. */
static size_t without_comment(const char *s, size_t len)
{
    char quote = '\0';

    for (size_t i = 0; i < len; i++) {
        if (quote)
            quote = s[i] == quote ? '\0' : quote;
        else if (s[i] == '"' || s[i] == '\'')
            quote = s[i];
        else if (s[i] == '#')
            return i;
    }
    return len;
}

/* A TOML scalar as it is written against a JSON value. */
static bool value_equals(const char *s, size_t len, const cJSON *expected)
{
    double number = 0;

    if (cJSON_IsBool(expected)) {
        const char *word = cJSON_IsTrue(expected) ? "true" : "false";

        return len == strlen(word) && !strncmp(s, word, len);
    }
    if (cJSON_IsNumber(expected))
        return num_parse_double(s, len, &number) && num_same(number, expected->valuedouble);
    if (cJSON_IsString(expected))
        return len >= 2 && (s[0] == '"' || s[0] == '\'') && s[len - 1] == s[0] &&
               len - 2 == strlen(expected->valuestring) &&
               !strncmp(s + 1, expected->valuestring, len - 2);
    return false;
}

struct profile_check {
    const char *section;
    const cJSON *expect;
    bool inside, seen;
    size_t matched;
};

static int mismatch(const struct profile_check *c, const char *what, struct err *e)
{
    return err_set(e, ERR_USAGE, "envguard.profile", "canonical [%s] mismatch: %s", c->section,
                   what);
}

/* The first bytes of a section's name as it is usually written: TOML lets blanks stand around its
 * dots and quotes around its parts. Returns how many. */
static size_t plain_name(const char *s, size_t len, char *out, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n < size; i++) {
        if (s[i] == '\0' || !strchr(" \t\"'", s[i]))
            out[n++] = s[i];
    }
    return n;
}

static int on_header(struct profile_check *c, const char *s, size_t len, struct err *e)
{
    char name[512]; /* one that is cut is longer than any section that is asked for */
    size_t n = strlen(c->section);
    size_t name_len = plain_name(s + 1, len - 2, name, sizeof name);

    c->inside = name_len == n && !strncmp(name, c->section, n);
    if (c->inside && c->seen)
        return mismatch(c, "the section stands twice", e);
    c->seen = c->seen || c->inside;
    if (name_len > n && !strncmp(name, c->section, n) && name[n] == '.')
        return mismatch(c, "it has a sub-table", e);
    return 0;
}

static int on_pair(struct profile_check *c, const char *s, size_t len, struct err *e)
{
    const char *equals = memchr(s, '=', len);
    const char *key = s, *value = equals ? equals + 1 : NULL;
    size_t key_len = equals ? (size_t) (equals - s) : 0;
    size_t value_len = equals ? len - key_len - 1 : 0;
    char name[64], what[320];
    const cJSON *expected;

    if (!equals)
        return mismatch(c, "a line is not understood", e);
    trim(&key, &key_len);
    trim(&value, &value_len);
    if (key_len >= 2 && key[0] == '"' && key[key_len - 1] == '"') {
        key++;
        key_len -= 2;
    }
    if (key_len == 0 || key_len >= sizeof(name))
        return mismatch(c, "a key is not understood", e);
    memcpy(name, key, key_len);
    name[key_len] = '\0';
    expected = json_get(c->expect, name);
    if (!expected)
        (void) snprintf(what, sizeof(what), "%s is set and not expected", name); /* fits */
    else if (!value_equals(value, value_len, expected))
        (void) snprintf(what, sizeof(what), "%s is %.*s", name,
                        (int) (value_len < 80 ? value_len : 80), value);
    else {
        c->matched++;
        return 0;
    }
    return mismatch(c, what, e);
}

static int check_text(struct profile_check *c, const char *text, struct err *e)
{
    for (const char *line = text; *line;) {
        size_t whole = strcspn(line, "\n");
        const char *s = line;
        size_t len = without_comment(line, whole);

        trim(&s, &len);
        if (len >= 3 && s[0] == '[') {
            if (on_header(c, s, len, e) < 0)
                return -1;
        } else if (len > 0 && c->inside && on_pair(c, s, len, e) < 0) {
            return -1;
        }
        line += whole + (line[whole] == '\n' ? 1 : 0);
    }
    return 0;
}

int envguard_profile(const struct plan *p, int source_fd, struct err *e)
{
    struct profile_check c = {.section = NULL};
    AUTO_FREE char *text = NULL;
    size_t len = 0;

    if (!p->build.profile)
        return 0;
    c.section = json_get(p->build.profile, "section")->valuestring;
    c.expect = json_get(p->build.profile, "expect");
    if (file_read_at(source_fd, json_get(p->build.profile, "file")->valuestring, LIMIT_MIB(1),
                     &text, &len, e) < 0)
        return err_wrap(e, "build.profile");
    if (check_text(&c, text, e) < 0)
        return -1;
    if (!c.seen)
        return mismatch(&c, "there is no such section", e);
    if (c.matched != (size_t) cJSON_GetArraySize(c.expect))
        return mismatch(&c, "an expected key is missing", e);
    return 0;
}
