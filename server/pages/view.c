#include "server/pages/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "base/text.h"
#include "server/pages/view_parts.h"

#define OBJECTS_MAX ((size_t) 200000)
#define RUN_SHORT 8 /* the random part of a run id */

/* Every object of a document, parents first; found without recursion. */
struct objects {
    cJSON **at;
    size_t n, cap;
};

static bool add_object(struct objects *o, cJSON *node)
{
    if (o->n == o->cap) {
        size_t cap = o->cap ? o->cap * 2 : 256;
        cJSON **at = cap > OBJECTS_MAX * 2 ? NULL : reallocarray(o->at, cap, sizeof(cJSON *));

        if (!at)
            return false;
        o->at = at;
        o->cap = cap;
    }
    o->at[o->n++] = node;
    return true;
}

/* Values that the document only carries (a field of a report, a machine fact) must stay as they
 * are. */
static bool is_foreign(const cJSON *parent, const char *key)
{
    static const char *const values[] = {"baseline", "current", "limit", "actual", "value"};

    if (!key)
        return false;
    if (strcmp(key, "facts") == 0 || strcmp(key, "readings") == 0 ||
        strcmp(key, "environment") == 0)
        return true;
    if (!json_get(parent, "code") && !json_get(parent, "operator") && !json_get(parent, "field"))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        if (strcmp(values[i], key) == 0)
            return true;
    }
    return false;
}

/* Containers are queued; the queue is the list. */
static bool find_objects(struct objects *o, cJSON *root)
{
    if (!add_object(o, root))
        return false;
    for (size_t i = 0; i < o->n; i++) {
        for (cJSON *c = o->at[i]->child; c; c = c->next) {
            bool inner = cJSON_IsObject(c) || (cJSON_IsArray(c) && !cJSON_IsArray(o->at[i]));

            if (inner && !is_foreign(o->at[i], c->string) && !add_object(o, c))
                return false;
        }
    }
    return true;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s);
    size_t m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

static bool is_time_key(const char *key)
{
    return strcmp(key, "at") == 0 || ends_with(key, "_at") || strcmp(key, "last_seen") == 0;
}

/* "commit" → "commit_short", and so on; the key must be short. */
static void add_short(struct view *v, cJSON *o, const char *key, const char *value, size_t keep)
{
    char name[64];
    size_t n = strlen(key);

    if (n + sizeof("_short") > sizeof(name))
        return;
    memcpy(name, key, n);
    memcpy(name + n, "_short", sizeof("_short"));
    view_format(v, o, name, "%.*s", (int) text_whole_length(value, keep), value);
}

static void add_stamp(struct view *v, cJSON *o, const char *key, const char *value)
{
    char name[64];
    size_t n = strlen(key);

    if (n + 3 > sizeof(name))
        return;
    memcpy(name, key, n);
    memcpy(name + n, "_t", 3);
    view_time(v, o, name, value);
}

static void decorate_string(struct view *v, cJSON *o, const char *key, const char *value)
{
    if (is_time_key(key))
        add_stamp(v, o, key, value);
    else if (strcmp(key, "commit") == 0)
        add_short(v, o, key, value, 8);
    else if (ends_with(key, "sha256") || strcmp(key, "keyid") == 0 ||
             strcmp(key, "fingerprint") == 0)
        add_short(v, o, key, value, 12);
    else if (strcmp(key, "run") == 0)
        view_format(v, o, "run_short", "%s",
                    text_is_run_id(value) ? value + strlen(value) - RUN_SHORT : value);
    else if (strcmp(key, "verdict") == 0)
        view_word(v, o, "v", value);
    else if (strcmp(key, "result") == 0)
        view_word(v, o, "result_v", value);
}

/* Additions that depend on nothing but the key, at every object as it came. */
static void decorate(struct view *v, cJSON *o)
{
    cJSON *last = o->child ? o->child->prev : NULL;

    if (!cJSON_IsObject(o))
        return;
    for (cJSON *c = o->child; c; c = c == last ? NULL : c->next) {
        if (!c->string)
            continue;
        if (cJSON_IsString(c) && c->valuestring)
            decorate_string(v, o, c->string, c->valuestring);
        else if (cJSON_IsNumber(c) && strcmp(c->string, "size") == 0)
            view_number(v, o, "size_n", c->valuedouble, quantity_unit(c->valuedouble, "B"));
        else if (cJSON_IsNull(c) && strcmp(c->string, "verdict") == 0)
            view_word(v, o, "v", "NO_VERDICT");
    }
}

/* Local addresses get the path under which the server is reached. */
static void prefix_urls(struct view *v, cJSON *o, bool all)
{
    for (cJSON *c = o->child; c; c = c->next) {
        bool url = all || (c->string && ends_with(c->string, "url"));
        char *full;
        size_t n = strlen(v->prefix);
        size_t len;

        if (!url || !cJSON_IsString(c) || !c->valuestring || c->valuestring[0] != '/')
            continue;
        len = strlen(c->valuestring);
        full = cJSON_malloc(n + len + 1);
        if (!full) {
            v->doc.failed = true;
            return;
        }
        memcpy(full, v->prefix, n);
        memcpy(full + n, c->valuestring, len + 1);
        cJSON_free(c->valuestring);
        c->valuestring = full;
    }
}

static int decorate_all(struct view *v, struct err *e)
{
    struct objects objects = {0};
    bool found = find_objects(&objects, v->doc.root);

    for (size_t i = 0; found && i < objects.n; i++) {
        cJSON *o = objects.at[i];

        if (v->prefix[0])
            prefix_urls(v, o, o->string && strcmp(o->string, "links") == 0);
        decorate(v, o);
    }
    free(objects.at);
    return found ? 0
                 : err_set(e, ERR_LIMIT, "page.document", "the document is too large for a page");
}

/* "http://host/below/" → "/below" */
static void set_prefix(struct view *v)
{
    const char *base = v->ctx->base_url ? v->ctx->base_url : "";
    const char *host = strstr(base, "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;
    size_t n = path ? strlen(path) : 0;

    while (n > 0 && path[n - 1] == '/')
        n--;
    if (n < sizeof(v->prefix) && n > 0)
        memcpy(v->prefix, path, n);
    v->prefix[n < sizeof(v->prefix) ? n : 0] = '\0';
}

static void add_twin(struct view *v, cJSON *page, const char *key, const char *suffix)
{
    const char *path = v->ctx->path && v->ctx->path[0] ? v->ctx->path : "/";
    size_t n = strlen(path);
    const char *stem = "";

    if (ends_with(path, ".txt") || ends_with(path, ".json"))
        n = (size_t) (strrchr(path, '.') - path);
    else if (path[n - 1] == '/')
        stem = "index";
    view_format(v, page, key, "%s%.*s%s%s", v->prefix, (int) n, path, stem, suffix);
}

/* "http://host:port": what stands before an address that has its prefix already. */
static void add_origin(struct view *v, cJSON *page)
{
    const char *base = v->ctx->base_url ? v->ctx->base_url : "";
    const char *host = strstr(base, "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;
    size_t n = path ? (size_t) (path - base) : strlen(base);

    view_format(v, page, "origin", "%.*s", (int) n, base);
}

/* What `--server` is given; URL when nothing is known. */
static void add_base(struct view *v, cJSON *page)
{
    const char *base = v->ctx->base_url ? v->ctx->base_url : "";
    size_t n = strlen(base);

    while (n > 0 && base[n - 1] == '/')
        n--;
    if (n == 0)
        view_format(v, page, "server", "URL");
    else
        view_format(v, page, "server", "%.*s", (int) n, base);
}

static void add_page(struct view *v, const char *name)
{
    cJSON *page = json_add_object(&v->doc, v->doc.root, "page");
    char iso[CLOCK_RFC3339_SIZE];

    clock_rfc3339(v->ctx->now_us, false, iso);
    json_add_string(&v->doc, page, "name", name);
    json_add_string(&v->doc, page, "prefix", v->prefix);
    json_add_string(&v->doc, page, "version", v->ctx->version ? v->ctx->version : "");
    view_format(v, page, "style", "%s%s", v->prefix,
                v->ctx->style ? v->ctx->style : "/web/style.css");
    add_origin(v, page);
    add_base(v, page);
    view_time(v, page, "rendered", iso);
    add_twin(v, page, "json", ".json");
    add_twin(v, page, "text", ".txt");
    add_twin(v, page, "markdown", ".md");
}

struct page_row {
    const char *name;
    void (*build)(struct view *, cJSON *);
    bool no_twin; /* the address has no other form */
};

static void view_baselines(struct view *v, cJSON *root)
{
    view_reviews(v, root);
    json_add_bool(&v->doc, root, "has_baselines", view_count(json_get(root, "baselines")) > 0);
}

static void view_baseline(struct view *v, cJSON *root)
{
    cJSON *measured = view_get(root, "measured");

    view_reviewed(v, root);
    for (cJSON *m = view_first(measured); m; m = view_next(m)) {
        double value;

        if (view_double(m, "value", &value))
            view_number(v, m, "value_n", value, quantity_unit(value, view_str(m, "unit")));
    }
    json_add_bool(&v->doc, root, "has_measured", view_count(measured) > 0);
    view_definition(v, view_get(root, "definition"));
    json_add_bool(&v->doc, root, "has_others", view_count(json_get(root, "others")) > 0);
    json_add_bool(&v->doc, root, "has_uses", view_count(json_get(root, "uses")) > 0);
    json_add_bool(&v->doc, root, "has_definition", cJSON_IsObject(json_get(root, "definition")));
}

static void view_nothing(struct view *v, cJSON *root)
{
    (void) v; /* the document is enough */
    (void) root;
}

static void view_reason(struct view *v, cJSON *root)
{
    view_marked(v, root, "text_parts", view_str(root, "text"));
    view_marked(v, root, "resolve_parts", view_str(root, "resolve"));
}

static const struct page_row page_rows[] = {
    {"home", view_home, false},           {"project", view_project, false},
    {"gate", view_gate, false},           {"run", view_run, false},
    {"compare", view_compare, false},     {"commit", view_commit, false},
    {"baselines", view_baselines, false}, {"baseline", view_baseline, false},
    {"help", view_nothing, false},        {"reason", view_reason, false},
    {"error", view_problem, true},
};

/* Which template shows it: a refusal is a page of its own. */
static const char *template_for(const char *page, const cJSON *document)
{
    const char *verdict = view_str(document, "verdict");

    if (strcmp(page, "compare") == 0 && strcmp(verdict, "NON_COMPARABLE") == 0)
        return page_verdict_fell(document) ? NULL : "refusal";
    if (strcmp(page, "compare") == 0 && view_flag(document, "informational") &&
        strcmp(view_str(json_get(document, "audit"), "verdict"), "NON_COMPARABLE") == 0)
        return "refusal";
    if (strcmp(page, "error") == 0 && strcmp(verdict, "INVALID") == 0)
        return "invalid";
    return NULL;
}

static int copy_document(struct view *v, const cJSON *document, struct err *e)
{
    if (!cJSON_IsObject(document))
        return err_set(e, ERR_INTERNAL, "page.document", "a page's document is an object");
    for (const cJSON *c = document->child; c; c = c->next)
        json_add_copy(&v->doc, v->doc.root, c->string, c);
    return v->doc.failed ? err_set(e, ERR_NOMEM, "page.memory", "no memory for a page") : 0;
}

static int build(struct view *v, const struct page_row *row, const cJSON *document, struct err *e)
{
    if (copy_document(v, document, e) < 0 || decorate_all(v, e) < 0)
        return -1;
    add_page(v, row->name);
    json_add_bool(&v->doc, view_get(v->doc.root, "page"), "twins", !row->no_twin);
    row->build(v, v->doc.root);
    return 0;
}

int view_build(const char *page, bool text, const cJSON *document, const struct page_context *ctx,
               cJSON **out_data, const char **out_template, struct err *e)
{
    struct view v = {.ctx = ctx, .text = text};
    const struct page_row *row = NULL;
    const char *other = template_for(page, document);
    cJSON *data;

    for (size_t i = 0; i < ARRAY_LEN(page_rows) && !row; i++) {
        if (strcmp(page_rows[i].name, page) == 0)
            row = &page_rows[i];
    }
    if (!row)
        return err_set(e, ERR_NOTFOUND, "page.unknown", "no page '%s'", page);
    set_prefix(&v);
    json_doc_init_object(&v.doc);
    if (build(&v, row, document, e) < 0) {
        json_doc_fini(&v.doc);
        return -1;
    }
    data = json_doc_take(&v.doc, e);
    if (!data)
        return -1;
    *out_data = data;
    *out_template = other ? other : row->name;
    return 0;
}
