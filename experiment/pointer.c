#include "experiment/pointer.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"

enum { POINTER_MAX_TOKENS = 16, POINTER_MAX_MATCHES = 100000 };

bool pointer_ok(const char *pointer)
{
    size_t tokens = 0;

    if (strlen(pointer) > POINTER_MAX_BYTES || (pointer[0] != 0 && pointer[0] != '/'))
        return false;
    for (const char *p = pointer; *p; p++) {
        if (*p == '/')
            tokens++;
        if (*p == '~' && p[1] != '0' && p[1] != '1')
            return false;
    }
    return tokens <= POINTER_MAX_TOKENS;
}

bool pointer_is_pattern(const char *pointer)
{
    for (const char *p = strstr(pointer, "/*"); p; p = strstr(p + 1, "/*"))
        if (p[2] == 0 || p[2] == '/')
            return true;
    return false;
}

void pointer_token(const char **p, char out[POINTER_MAX_BYTES + 1])
{
    size_t n = 0;

    while (**p && **p != '/') {
        char c = **p;

        if (c == '~') {
            (*p)++;
            c = **p == '1' ? '/' : '~';
        }
        out[n++] = c;
        (*p)++;
    }
    out[n] = 0;
}

static const cJSON *array_at(const cJSON *array, const char *token)
{
    uint64_t index = 0;
    const cJSON *item = NULL;

    if (!num_parse_u64(token, strlen(token), INT32_MAX, &index))
        return NULL;
    cJSON_ArrayForEach(item, array)
    {
        if (index-- == 0)
            return item;
    }
    return NULL;
}

static const cJSON *child_at(const cJSON *parent, const char *token)
{
    if (cJSON_IsArray(parent))
        return array_at(parent, token);
    return json_get(parent, token);
}

const cJSON *pointer_get(const cJSON *root, const char *pointer)
{
    const char *p = pointer;
    const cJSON *at = root;
    char token[POINTER_MAX_BYTES + 1];

    if (!pointer_ok(pointer))
        return NULL;
    while (at && *p == '/') {
        p++;
        pointer_token(&p, token);
        at = child_at(at, token);
    }
    return at;
}

static void put_token(struct buf *b, const char *token)
{
    buf_putc(b, '/');
    for (const char *t = token; *t; t++) {
        if (*t == '~')
            buf_puts(b, "~0");
        else if (*t == '/')
            buf_puts(b, "~1");
        else
            buf_putc(b, *t);
    }
}

char *pointer_join(const char *base, const char *token)
{
    AUTO_BUF struct buf b = { 0 };
    size_t len = 0;

    buf_init(&b, (size_t) 64 * 1024);
    buf_puts(&b, base);
    put_token(&b, token);
    if (buf_check(&b, NULL) < 0)
        return NULL;
    return buf_take(&b, &len);
}

/* One plain pointer found so far, with the value it stands for. */
struct match {
    char *pointer;
    const cJSON *value;
};

struct match_list {
    struct match *items;
    size_t n;
    size_t cap;
};

static void match_list_fini(struct match_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].pointer);
    free(l->items);
    *l = (struct match_list){ 0 };
}

static int match_add(struct match_list *l, const char *base, const char *token, const cJSON *value,
                     struct err *e)
{
    if (l->n == POINTER_MAX_MATCHES)
        return err_set(e, ERR_LIMIT, "pointer.matches", "a pointer with '*' matches more than %d values",
                       POINTER_MAX_MATCHES);
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 8;
        struct match *grown = realloc(l->items, cap * sizeof *grown);

        if (!grown)
            return err_set(e, ERR_NOMEM, "pointer.memory", "out of memory");
        l->items = grown;
        l->cap = cap;
    }
    l->items[l->n].pointer = token ? pointer_join(base, token) : strdup(base);
    l->items[l->n].value = value;
    if (!l->items[l->n].pointer)
        return err_set(e, ERR_NOMEM, "pointer.memory", "out of memory");
    l->n++;
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const cJSON *const *x = a;
    const cJSON *const *y = b;

    return strcmp((*x)->string, (*y)->string);
}

/* Every member (sorted by key) or element of one value. */
static int expand_all(const struct match *m, struct match_list *out, struct err *e)
{
    size_t n = cJSON_IsObject(m->value) || cJSON_IsArray(m->value)
                       ? (size_t) cJSON_GetArraySize(m->value)
                       : 0;
    AUTO_FREE const cJSON **children = NULL;
    const cJSON *child = NULL;
    size_t found = 0;

    if (n == 0)
        return 0;
    children = calloc(n, sizeof *children);
    if (!children)
        return err_set(e, ERR_NOMEM, "pointer.memory", "out of memory");
    cJSON_ArrayForEach(child, m->value)
    {
        if (found < n)
            children[found++] = child;
    }
    if (cJSON_IsObject(m->value))
        qsort(children, found, sizeof *children, by_key);
    for (size_t i = 0; i < found; i++) {
        char index[24];
        const char *key = children[i] ? children[i]->string : NULL;

        (void) snprintf(index, sizeof index, "%zu", i);
        if (match_add(out, m->pointer, key ? key : index, children[i], e) < 0)
            return -1;
    }
    return 0;
}

static int expand_token(const struct match_list *from, const char *token, bool all, struct match_list *to,
                        struct err *e)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct match *m = &from->items[i];
        const cJSON *child = NULL;

        if (all) {
            if (expand_all(m, to, e) < 0)
                return -1;
            continue;
        }
        child = child_at(m->value, token);
        if (child && match_add(to, m->pointer, token, child, e) < 0)
            return -1;
    }
    return 0;
}

static int list_from(struct match_list *matches, struct pointer_list *out, struct err *e)
{
    struct pointer_list l = { 0 };

    l.items = calloc(matches->n + 1, sizeof *l.items);
    if (!l.items)
        return err_set(e, ERR_NOMEM, "pointer.memory", "out of memory");
    for (size_t i = 0; i < matches->n; i++)
        l.items[i] = STEAL(matches->items[i].pointer);
    l.n = matches->n;
    *out = l;
    return 0;
}

int pointer_expand(const cJSON *root, const char *pattern, struct pointer_list *out, struct err *e)
{
    const char *p = pattern;
    struct match_list at = { 0 };
    char token[POINTER_MAX_BYTES + 1];
    int rc = 0;

    if (!pointer_ok(pattern))
        return err_set(e, ERR_INPUT, "pointer.syntax", "'%s' is not a JSON Pointer", pattern);
    if (root)
        rc = match_add(&at, "", NULL, root, e);
    while (rc == 0 && *p == '/') {
        struct match_list next = { 0 };
        bool all = p[1] == '*' && (p[2] == 0 || p[2] == '/');

        p++;
        pointer_token(&p, token);
        rc = expand_token(&at, token, all, &next, e);
        match_list_fini(&at);
        at = next;
    }
    if (rc == 0)
        rc = list_from(&at, out, e);
    match_list_fini(&at);
    return rc;
}

void pointer_list_fini(struct pointer_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    free(l->items);
    *l = (struct pointer_list){ 0 };
}

/* The n-th token (from 1) that a '*' of the pattern matched in a plain pointer. */
static void put_matched(struct buf *out, const char *pattern, const char *pointer, size_t n)
{
    while (*pattern == '/' && *pointer == '/') {
        size_t a = strcspn(pattern + 1, "/");
        size_t b = strcspn(pointer + 1, "/");

        if (a == 1 && pattern[1] == '*' && --n == 0) {
            buf_put(out, pointer + 1, b);
            return;
        }
        pattern += a + 1;
        pointer += b + 1;
    }
}

char *pointer_label(const char *label, const char *pattern, const char *pointer)
{
    AUTO_BUF struct buf out = { 0 };
    size_t len = 0;

    buf_init(&out, LIMIT_KIB(4));
    for (const char *p = label ? label : pointer; *p; p++) {
        if (label && p[0] == '{' && p[1] >= '1' && p[1] <= '9' && p[2] == '}') {
            put_matched(&out, pattern, pointer, (size_t) (p[1] - '0'));
            p += 2;
        } else {
            buf_putc(&out, *p);
        }
    }
    return buf_take(&out, &len);
}
