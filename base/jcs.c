#include "base/jcs.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_node.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/text.h"

/* One open container: its members in canonical order. */
struct level {
    const cJSON **members;
    size_t n;
    size_t i;
    bool is_object;
};

struct writer {
    struct buf *out;
    struct level *levels; /* LIMIT_JSON_DEPTH_HARD of them */
    size_t depth;
};

/* The code point of the well-formed sequence at s. */
static uint32_t code_point(const unsigned char *s)
{
    if (s[0] < 0x80)
        return s[0];
    if (s[0] < 0xe0)
        return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    if (s[0] < 0xf0)
        return (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    return (s[0] & 0x07u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
}

/* The UTF-16 code units of a code point as one number that sorts like them. */
static uint32_t utf16_rank(uint32_t cp)
{
    if (cp < 0x10000)
        return cp << 16;
    cp -= 0x10000;
    return (0xd800 + (cp >> 10)) << 16 | (0xdc00 + (cp & 0x3ff));
}

/* Order by UTF-16 code units (RFC 8785 §3.2.3) of two valid UTF-8 texts. */
static int utf16_compare(const char *a, const char *b)
{
    const unsigned char *x = (const unsigned char *) a;
    const unsigned char *y = (const unsigned char *) b;
    size_t i = 0;
    uint32_t rank_x = 0;
    uint32_t rank_y = 0;

    while (x[i] != '\0' && x[i] == y[i])
        i++;
    if (x[i] == y[i])
        return 0;
    while (i > 0 && ((x[i] & 0xc0) == 0x80 || (y[i] & 0xc0) == 0x80))
        i--; /* to the start of the character that differs */
    rank_x = utf16_rank(code_point(x + i));
    rank_y = utf16_rank(code_point(y + i));
    return (rank_x > rank_y) - (rank_x < rank_y);
}

static int by_key(const void *x, const void *y)
{
    return utf16_compare((*(const cJSON *const *) x)->string, (*(const cJSON *const *) y)->string);
}

static int refuse(const char *what, struct err *e)
{
    return err_set(e, ERR_INPUT, "jcs.value", "no canonical form: %s", what);
}

static int check_keys(const struct level *l, struct err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *key = l->members[i]->string;

        if (!key || !text_is_utf8(key, strlen(key)))
            return refuse("a key is no valid text", e);
    }
    return 0;
}

static int sort_members(struct level *l, struct err *e)
{
    if (check_keys(l, e) < 0)
        return -1;
    if (l->n > 1)
        qsort(l->members, l->n, sizeof(const cJSON *), by_key);
    for (size_t i = 1; i < l->n; i++) {
        if (strcmp(l->members[i - 1]->string, l->members[i]->string) == 0)
            return refuse("a key comes twice", e);
    }
    return 0;
}

static int open_container(struct writer *w, const cJSON *j, struct err *e)
{
    struct level *l = NULL;
    size_t n = 0;

    if (w->depth >= LIMIT_JSON_DEPTH_HARD)
        return refuse("nested too deeply", e);
    l = &w->levels[w->depth];
    for (const cJSON *member = j->child; member; member = member->next)
        n++;
    *l = (struct level){.is_object = json_node_kind(j) == cJSON_Object};
    l->members = calloc(n > 0 ? n : 1, sizeof(const cJSON *));
    if (!l->members)
        return err_set(e, ERR_NOMEM, "jcs.memory", "no memory to sort %zu members", n);
    w->depth++;
    for (const cJSON *member = j->child; member; member = member->next)
        l->members[l->n++] = member;
    buf_putc(w->out, l->is_object ? '{' : '[');
    return l->is_object ? sort_members(l, e) : 0;
}

/* RFC 8785 §3.2.2.2: only what JSON itself demands is escaped. */
static int write_string(struct buf *out, const char *s, struct err *e)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";

    size_t len = s ? strlen(s) : 0;

    if (!s || !text_is_utf8(s, len))
        return refuse("a string is no valid text", e);
    buf_putc(out, '"');
    while (len > 0) {
        size_t plain =
            text_plain_length(s, len); /* a run that stands for itself is copied at once */
        const char *simple = NULL;

        while (plain < len && (unsigned char) s[plain] >= 0x80)
            plain++;
        buf_put(out, s, plain);
        s += plain;
        len -= plain;
        if (plain > 0)
            continue;
        simple = strchr(from, *s);
        if (simple)
            buf_printf(out, "\\%c", to[simple - from]);
        else
            buf_printf(out, "\\u%04x", (unsigned) (unsigned char) *s);
        s++;
        len--;
    }
    buf_putc(out, '"');
    return 0;
}

static int write_number(struct buf *out, double v, struct err *e)
{
    char text[NUM_DOUBLE_TEXT];

    if (!isfinite(v))
        return refuse("a number is not finite", e);
    buf_put(out, text, num_double_shortest(v, text));
    return 0;
}

static int write_node(struct writer *w, const cJSON *j, struct err *e)
{
    switch (json_node_kind(j)) {
    case cJSON_NULL:
        buf_puts(w->out, "null");
        return 0;
    case cJSON_True:
        buf_puts(w->out, "true");
        return 0;
    case cJSON_False:
        buf_puts(w->out, "false");
        return 0;
    case cJSON_Number:
        return write_number(w->out, j->valuedouble, e);
    case cJSON_String:
        return write_string(w->out, j->valuestring, e);
    case cJSON_Array:
    case cJSON_Object:
        return open_container(w, j, e);
    default:
        return refuse("a value of no JSON type", e);
    }
}

static int write_member(struct writer *w, struct level *l, struct err *e)
{
    const cJSON *member = l->members[l->i];

    if (l->i++ > 0)
        buf_putc(w->out, ',');
    if (l->is_object) {
        if (write_string(w->out, member->string, e) < 0)
            return -1;
        buf_putc(w->out, ':');
    }
    return write_node(w, member, e);
}

static int write_tree(struct writer *w, const cJSON *j, struct err *e)
{
    if (write_node(w, j, e) < 0)
        return -1;
    while (w->depth > 0 && !w->out->failed) {
        struct level *l = &w->levels[w->depth - 1];

        if (l->i < l->n) {
            if (write_member(w, l, e) < 0)
                return -1;
            continue;
        }
        buf_putc(w->out, l->is_object ? '}' : ']');
        free(l->members);
        w->depth--;
    }
    return buf_check(w->out, e);
}

int jcs_write(struct buf *out, const cJSON *j, struct err *e)
{
    struct writer w = {.out = out};
    int result = 0;

    if (!j)
        return refuse("nothing to write", e);
    w.levels = calloc(LIMIT_JSON_DEPTH_HARD, sizeof(*w.levels));
    if (!w.levels)
        return err_set(e, ERR_NOMEM, "jcs.memory", "no memory to write a canonical form");
    result = write_tree(&w, j, e);
    while (w.depth > 0)
        free(w.levels[--w.depth].members);
    free(w.levels);
    return result;
}

int jcs_digest(const cJSON *j, struct digest *out, struct err *e)
{
    AUTO_BUF struct buf text = {0};

    buf_init(&text, LIMIT_CANONICAL);
    if (jcs_write(&text, j, e) < 0)
        return -1;
    *out = digest_of(text.data, text.len);
    return 0;
}
