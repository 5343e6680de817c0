#include "experiment/pointer.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"

enum { POINTER_MAX_TOKENS = 16 };

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
    cJSON_ArrayForEach(item, array) {
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

const char *pointer_text(const cJSON *root, const char *pointer)
{
    const cJSON *j = pointer_get(root, pointer);

    return cJSON_IsString(j) ? j->valuestring : NULL;
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
    AUTO_BUF struct buf b = {0};
    size_t len = 0;

    buf_init(&b, LIMIT_CANONICAL);
    buf_puts(&b, base);
    put_token(&b, token);
    if (buf_check(&b, NULL) < 0)
        return NULL;
    return buf_take(&b, &len);
}

/* One expansion under way: first everything is counted, then what fits is collected. */
struct expansion {
    struct pointer_list *out; /* room for `total` matches; NULL while counting */
    struct buf at;            /* the plain pointer of where the walk stands */
    size_t bytes;             /* of the pointers collected */
    size_t total;
    size_t stars; /* passed on the way to where the walk stands */
    bool every;   /* what lacks the rest of the pattern is a match too */
    bool too_long;
    struct err *e;
};

static int found(struct expansion *x, const cJSON *value)
{
    struct pointer_match *m = NULL;

    if (!x->out) {
        x->total++;
        return 0;
    }
    x->bytes += x->at.len;
    if (x->bytes > LIMIT_JSON_DOCUMENT || x->out->n == x->total) {
        x->too_long = true;
        return 0;
    }
    m = &x->out->items[x->out->n];
    m->pointer = strdup(x->at.data ? x->at.data : "");
    if (!m->pointer)
        return err_memory(x->e, "pointer.memory");
    m->value = value;
    x->out->n++;
    return 0;
}

/* A member that a star passed has nothing at the rest of the pattern. */
static int lacks(struct expansion *x, const char *rest)
{
    size_t len = x->at.len;
    int rc = 0;

    if (!x->every || x->stars == 0)
        return 0;
    if (!x->out)
        return found(x, NULL);
    buf_puts(&x->at, rest);
    if (x->at.failed && x->at.failure == BUF_NOMEM)
        return err_memory(x->e, "pointer.memory");
    if (x->at.failed) {
        x->too_long = true;
        return 0;
    }
    rc = found(x, NULL);
    x->at.len = len;
    x->at.data[len] = 0;
    return rc;
}

/* Every level of the recursion is a token of the pattern, of which pointer_ok allows
 * POINTER_MAX_TOKENS. */
/* NOLINTBEGIN(misc-no-recursion) */
static int visit(struct expansion *x, const cJSON *value, const char *p);

static int visit_child(struct expansion *x, const cJSON *child, const char *token, const char *p)
{
    size_t len = x->at.len;
    int rc = 0;

    if (!x->out)
        return visit(x, child, p);
    put_token(&x->at, token);
    if (x->at.failed && x->at.failure == BUF_NOMEM)
        return err_memory(x->e, "pointer.memory");
    if (x->at.failed) {
        x->too_long = true;
        return 0;
    }
    rc = visit(x, child, p);
    if (!x->at.failed) {
        x->at.len = len;
        x->at.data[len] = 0;
    }
    return rc;
}

static int by_key(const void *a, const void *b)
{
    const cJSON *const *x = a;
    const cJSON *const *y = b;

    return strcmp((*x)->string, (*y)->string);
}

/* Members sorted by key, elements in their order. */
static int visit_sorted(struct expansion *x, const cJSON *parent, const char *p)
{
    size_t n = (size_t) cJSON_GetArraySize(parent);
    AUTO_FREE const cJSON **children = calloc(n + 1, sizeof *children);
    const cJSON *child = NULL;
    size_t have = 0;

    if (!children)
        return err_memory(x->e, "pointer.memory");
    cJSON_ArrayForEach(child, parent) {
        if (have < n)
            children[have++] = child;
    }
    if (cJSON_IsObject(parent))
        qsort(children, have, sizeof *children, by_key);
    for (size_t i = 0; i < have && !x->too_long; i++) {
        char index[24];

        (void) snprintf(index, sizeof index, "%zu", i);
        if (visit_child(x, children[i], cJSON_IsObject(parent) ? children[i]->string : index, p) <
            0)
            return -1;
    }
    return 0;
}

static int visit_all(struct expansion *x, const cJSON *parent, const char *p)
{
    const cJSON *child = NULL;

    if (x->out)
        return visit_sorted(x, parent, p);
    cJSON_ArrayForEach(child, parent) {
        if (visit(x, child, p) < 0)
            return -1;
    }
    return 0;
}

static int visit(struct expansion *x, const cJSON *value, const char *p)
{
    const char *rest = p;
    bool all = p[0] == '/' && p[1] == '*' && (p[2] == 0 || p[2] == '/');
    char token[POINTER_MAX_BYTES + 1];
    const cJSON *child = NULL;
    int rc = 0;

    if (*p == 0)
        return found(x, value);
    p++;
    pointer_token(&p, token);
    if (!all) {
        child = child_at(value, token);
        return child ? visit_child(x, child, token, p) : lacks(x, rest);
    }
    if ((!cJSON_IsObject(value) && !cJSON_IsArray(value)) || !value->child)
        return lacks(x, rest);
    x->stars++;
    rc = visit_all(x, value, p);
    x->stars--;
    return rc;
}
/* NOLINTEND(misc-no-recursion) */

static int by_pointer(const void *a, const void *b)
{
    return strcmp(((const struct pointer_match *) a)->pointer,
                  ((const struct pointer_match *) b)->pointer);
}

static int collect(struct expansion *x, const cJSON *root, const char *pattern,
                   struct pointer_list *l)
{
    l->items = calloc(x->total + 1, sizeof *l->items);
    l->sorted = calloc(x->total + 1, sizeof *l->sorted);
    if (!l->items || !l->sorted)
        return err_memory(x->e, "pointer.memory");
    x->out = l;
    if (root && visit(x, root, pattern) < 0)
        return -1;
    if (l->n > 0)
        memcpy(l->sorted, l->items, l->n * sizeof *l->items);
    qsort(l->sorted, l->n, sizeof *l->sorted, by_pointer);
    return 0;
}

static int expand(const cJSON *root, const char *pattern, bool every, size_t max,
                  struct pointer_list *out, struct err *e)
{
    struct expansion x = {.every = every, .e = e};
    AUTO_POINTER_LIST struct pointer_list l = {0};
    int rc = 0;

    if (!pointer_ok(pattern))
        return err_set(e, ERR_INPUT, "pointer.syntax", "'%s' is not a JSON Pointer", pattern);
    if (root && visit(&x, root, pattern) < 0)
        return -1;
    l.total = x.total;
    l.over = x.total > max;
    if (!l.over) {
        buf_init(&x.at, LIMIT_JSON_DOCUMENT);
        rc = collect(&x, root, pattern, &l);
        buf_fini(&x.at);
    }
    if (rc < 0)
        return -1;
    if (x.too_long) {
        size_t total = l.total;

        pointer_list_fini(&l);
        l.total = total;
        l.over = true;
    }
    *out = l;
    l = (struct pointer_list){0}; /* moved out */
    return 0;
}

int pointer_expand(const cJSON *root, const char *pattern, size_t max, struct pointer_list *out,
                   struct err *e)
{
    return expand(root, pattern, false, max, out, e);
}

int pointer_expand_every(const cJSON *root, const char *pattern, size_t max,
                         struct pointer_list *out, struct err *e)
{
    return expand(root, pattern, true, max, out, e);
}

const struct pointer_match *pointer_list_find(const struct pointer_list *l, const char *pointer)
{
    size_t from = 0;
    size_t end = l->n;

    while (from < end) {
        size_t middle = from + (end - from) / 2;
        int order = strcmp(pointer, l->sorted[middle].pointer);

        if (order == 0)
            return &l->sorted[middle];
        if (order < 0)
            end = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

const cJSON *pointer_list_get(const struct pointer_list *l, const char *pointer)
{
    const struct pointer_match *m = pointer_list_find(l, pointer);

    return m ? m->value : NULL;
}

void pointer_list_fini(struct pointer_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].pointer);
    free(l->items);
    free(l->sorted);
    *l = (struct pointer_list){0};
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

/* At most POINTER_LABEL_MAX bytes, whole characters. */
static void cut_label(struct buf *out)
{
    size_t keep = POINTER_LABEL_MAX - strlen("…");

    if (out->len <= POINTER_LABEL_MAX)
        return;
    while (keep > 0 && ((unsigned char) out->data[keep] & 0xc0) == 0x80)
        keep--;
    out->len = keep;
    buf_puts(out, "…");
}

char *pointer_label(const char *label, const char *pattern, const char *pointer)
{
    AUTO_BUF struct buf out = {0};
    size_t len = 0;

    buf_init(&out, LIMIT_CANONICAL);
    for (const char *p = label ? label : pointer; *p && out.len <= POINTER_LABEL_MAX; p++) {
        if (label && p[0] == '{' && p[1] >= '1' && p[1] <= '9' && p[2] == '}') {
            put_matched(&out, pattern, pointer, (size_t) (p[1] - '0'));
            p += 2;
        } else {
            buf_putc(&out, *p);
        }
    }
    if (!out.failed)
        cut_label(&out);
    return buf_take(&out, &len);
}
