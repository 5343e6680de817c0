#include "server/http/assets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "server/http/content.h"
#include "tools/embed.h"

struct asset {
    const char *name;
    char *address; /* with "/web/" */
    struct content *plain, *versioned;
};

struct assets {
    size_t n;
    struct asset items[];
};

static const char *type_of(const char *name)
{
    static const struct {
        const char *suffix;
        const char *type;
    } table[] = {
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".ico", "image/vnd.microsoft.icon"},
        {".txt", TYPE_TEXT},
        {".woff2", "font/woff2"},
    };
    size_t len = strlen(name);
    size_t i = 0;

    for (i = 0; i < ARRAY_LEN(table); i++) {
        size_t suffix = strlen(table[i].suffix);

        if (len > suffix && strcmp(name + len - suffix, table[i].suffix) == 0)
            return table[i].type;
    }
    return TYPE_BYTES;
}

static struct content *make(const struct embed_file *f, enum reply_caching caching)
{
    struct content *c = content_static(type_of(f->name), f->bytes, f->size);

    if (!c)
        return NULL;
    content_set_policy(c, REPLY_PAGE);
    content_set_caching(c, caching, false);
    content_hash(c);
    if (!content_seal(c)) {
        content_unref(c);
        return NULL;
    }
    return c;
}

static bool asset_init(struct asset *a, const struct embed_file *f)
{
    const char *dot = strrchr(f->name, '.');
    size_t stem = dot ? (size_t) (dot - f->name) : strlen(f->name);
    struct digest d = digest_of(f->bytes, f->size);
    char hex[DIGEST_HEX_SIZE];

    digest_hex(&d, hex);
    a->name = f->name;
    if (asprintf(&a->address, "/web/%.*s-%.12s%s", (int) stem, f->name, hex, dot ? dot : "") < 0) {
        a->address = NULL;
        return false;
    }
    a->plain = make(f, REPLY_LIVE);
    a->versioned = make(f, REPLY_IMMUTABLE);
    return a->plain && a->versioned;
}

struct assets *assets_new(const struct embed_table *files)
{
    struct assets *a = calloc(1, sizeof *a + files->n * sizeof a->items[0]);
    size_t i = 0;

    if (!a)
        return NULL;
    for (i = 0; i < files->n; i++) {
        a->n = i + 1;
        if (!asset_init(&a->items[i], &files->files[i])) {
            assets_free(a);
            return NULL;
        }
    }
    return a;
}

void assets_free(struct assets *a)
{
    size_t i = 0;

    if (!a)
        return;
    for (i = 0; i < a->n; i++) {
        content_unref(a->items[i].plain);
        content_unref(a->items[i].versioned);
        free(a->items[i].address);
    }
    free(a);
}

const char *assets_address(const struct assets *a, const char *name)
{
    size_t i = 0;

    for (i = 0; i < a->n; i++) {
        if (strcmp(a->items[i].name, name) == 0)
            return a->items[i].address;
    }
    return "/web/style.css";
}

struct content *assets_get(const struct assets *a, const char *name)
{
    size_t i = 0;

    for (i = 0; i < a->n; i++) {
        struct content *c = NULL;

        if (strcmp(a->items[i].name, name) == 0)
            c = a->items[i].plain;
        else if (strcmp(a->items[i].address + strlen("/web/"), name) == 0)
            c = a->items[i].versioned;
        if (!c)
            continue;
        content_ref(c);
        return c;
    }
    return NULL;
}
