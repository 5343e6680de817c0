#include "server/http/route.h"

#include <string.h>

static const struct {
    const char *suffix;
    enum request_twin twin;
} twin_suffixes[] = {
    {".json", TWIN_JSON},
    {".txt", TWIN_TEXT},
    {".md", TWIN_MARKDOWN},
};

/* Removes a twin suffix that the route knows; the rest is copied. Returns `segment` itself when
 * there is none. */
static const char *strip_twin(const struct route *r, struct request *q, const char *segment,
                              enum request_twin *out)
{
    size_t len = strlen(segment);
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(twin_suffixes); i++) {
        size_t suffix = strlen(twin_suffixes[i].suffix);

        if ((r->twins & (1u << twin_suffixes[i].twin)) == 0 || len <= suffix ||
            strcmp(segment + len - suffix, twin_suffixes[i].suffix) != 0)
            continue;
        segment = arena_memdup(&q->arena, segment, len - suffix);
        *out = twin_suffixes[i].twin;
        return segment;
    }
    return segment;
}

static const char *join_rest(struct request *q, size_t from)
{
    char *joined = arena_strdup(&q->arena, q->path.segments[from]);
    size_t i = 0;

    for (i = from + 1; joined && i < q->path.n; i++)
        joined = arena_printf(&q->arena, "%s/%s", joined, q->path.segments[i]);
    return joined;
}

static bool bind(struct request *q, const char *name, size_t name_len, const char *value)
{
    if (!value || q->n_params == REQUEST_PARAMS_MAX)
        return false;
    q->params[q->n_params++] =
        (struct request_param){.name = name, .name_len = name_len, .value = value};
    return true;
}

/* Matches piece [p, p+len) of the pattern with segment i; *rest is set for "{x...}". */
static bool match_piece(const struct route *r, struct request *q, const char *p, size_t len,
                        size_t i, bool *rest)
{
    bool last = i + 1 == q->path.n;
    const char *segment = q->path.segments[i];

    if (p[0] == '{' && len > 5 && memcmp(p + len - 4, "...}", 4) == 0) {
        *rest = true;
        return bind(q, p + 1, len - 5, join_rest(q, i));
    }
    if (last && r->twins)
        segment = strip_twin(r, q, segment, &q->twin);
    if (!segment)
        return false;
    if (p[0] == '{')
        return bind(q, p + 1, len - 2, segment);
    return strlen(segment) == len && memcmp(segment, p, len) == 0;
}

static bool match(const struct route *r, struct request *q)
{
    const char *p = r->pattern + 1;
    size_t i = 0;
    bool rest = false;

    q->n_params = 0;
    q->twin = TWIN_HTML;
    while (*p != '\0' && !rest) {
        size_t len = strcspn(p, "/");

        if (i >= q->path.n || !match_piece(r, q, p, len, i, &rest))
            return false;
        i++;
        p += len;
        if (*p == '/')
            p++;
    }
    return rest || i == q->path.n;
}

static const char *method_words(enum http_method m)
{
    switch (m) {
    case HTTP_GET:
        return "GET, HEAD";
    case HTTP_PUT:
        return "PUT";
    case HTTP_POST:
        return "POST";
    case HTTP_HEAD:
    case HTTP_OPTIONS:
    case HTTP_KNOWN_OTHER:
    case HTTP_UNKNOWN:
        break;
    }
    return "";
}

enum route_match route_find(const struct route *routes, size_t n, struct request *q,
                            const char **out_allow)
{
    enum http_method wanted = q->method == HTTP_HEAD ? HTTP_GET : q->method;
    char *allow = NULL;
    size_t i = 0;

    if (q->path.trailing_slash)
        return ROUTE_NOT_FOUND;
    for (i = 0; i < n; i++) {
        if (!match(&routes[i], q))
            continue;
        if (routes[i].method == wanted) {
            q->route = &routes[i];
            return ROUTE_FOUND;
        }
        if (!allow || !strstr(allow, method_words(routes[i].method)))
            allow = arena_printf(&q->arena, "%s%s%s", allow ? allow : "", allow ? ", " : "",
                                 method_words(routes[i].method));
    }
    if (!allow)
        return ROUTE_NOT_FOUND;
    *out_allow = arena_printf(&q->arena, "%s, OPTIONS", allow);
    return ROUTE_NOT_METHOD;
}
