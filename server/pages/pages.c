#include "server/pages/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "server/pages/tmpl.h"
#include "server/pages/view.h"
#include "tools/embed.h"

#define TEMPLATE_MAX LIMIT_KIB(256)
#define TEMPLATES_MAX 256
#define PAGE_NAME_MAX 64

struct pages {
    struct tmpl_set *templates;
};

static int compile_embedded(struct tmpl_set **out, struct err *e)
{
    size_t n = embed_templates.n;
    AUTO_FREE struct tmpl_source *sources = calloc(n ? n : 1, sizeof(*sources));

    if (!sources)
        return err_set(e, ERR_NOMEM, "page.memory", "no memory for templates");
    for (size_t i = 0; i < n; i++) {
        const struct embed_file *f = &embed_templates.files[i];

        sources[i] =
            (struct tmpl_source){.name = f->name, .text = (const char *) f->bytes, .len = f->size};
    }
    return tmpl_set_new(sources, n, TMPL_STRICT, out, e);
}

static bool is_template(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && (strcmp(dot, ".html") == 0 || strcmp(dot, ".txt") == 0) && !strchr(name, '/');
}

static int read_sources(int dirfd, const struct file_list *list, struct tmpl_source *sources,
                        char **texts, size_t *out_n, struct err *e)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++) {
        if (!is_template(list->names[i]))
            continue;
        sources[n].name = list->names[i];
        if (file_read_at(dirfd, list->names[i], TEMPLATE_MAX, &texts[n], &sources[n].len, e) < 0)
            return -1;
        sources[n].text = texts[n];
        n++;
    }
    *out_n = n;
    return 0;
}

static int compile_directory(const char *path, struct tmpl_set **out, struct err *e)
{
    AUTO_FD int dirfd = -1;
    AUTO_FILE_LIST struct file_list list = {0};
    AUTO_FREE struct tmpl_source *sources = calloc(TEMPLATES_MAX, sizeof(*sources));
    AUTO_FREE char **texts = calloc(TEMPLATES_MAX, sizeof(*texts));
    size_t n = 0;
    int result;

    if (!sources || !texts)
        return err_set(e, ERR_NOMEM, "page.memory", "no memory for templates");
    if (file_open_dir(path, &dirfd, e) < 0 || file_list_at(dirfd, TEMPLATES_MAX, &list, e) < 0)
        return -1;
    result = read_sources(dirfd, &list, sources, texts, &n, e);
    if (result == 0)
        result = tmpl_set_new(sources, n, TMPL_STRICT, out, e);
    for (size_t i = 0; i < TEMPLATES_MAX; i++)
        free(texts[i]);
    return result;
}

int pages_load(const char *directory_or_null, struct pages **out, struct err *e)
{
    AUTO_PAGES struct pages *p = calloc(1, sizeof(*p));
    int result;

    if (!p)
        return err_set(e, ERR_NOMEM, "page.memory", "no memory for templates");
    result = directory_or_null ? compile_directory(directory_or_null, &p->templates, e)
                               : compile_embedded(&p->templates, e);
    if (result < 0)
        return -1;
    *out = STEAL(p);
    return 0;
}

void pages_free(struct pages *p)
{
    if (!p)
        return;
    tmpl_set_free(p->templates);
    free(p);
}

/* "run.txt" → "run", true */
static bool split_name(const char *name, char out[PAGE_NAME_MAX], bool *out_text)
{
    const char *dot = strrchr(name, '.');
    size_t n = dot ? (size_t) (dot - name) : 0;

    if (!dot || n == 0 || n >= PAGE_NAME_MAX)
        return false;
    *out_text = strcmp(dot, ".txt") == 0;
    if (!*out_text && strcmp(dot, ".html") != 0)
        return false;
    memcpy(out, name, n);
    out[n] = '\0';
    return true;
}

const char *page_content_type(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && strcmp(dot, ".html") == 0 ? "text/html; charset=utf-8"
                                            : "text/plain; charset=utf-8";
}

int page_render(const struct pages *p, const char *name, const cJSON *document,
                const struct page_context *ctx, struct buf *out, struct err *e)
{
    char page[PAGE_NAME_MAX];
    char file[PAGE_NAME_MAX + 8];
    const char *template = NULL;
    bool text = false;
    AUTO_JSON cJSON *data = NULL;
    size_t n;

    if (!split_name(name, page, &text))
        return err_set(e, ERR_NOTFOUND, "page.unknown", "no page '%s'", name);
    if (view_build(page, text, document, ctx, &data, &template, e) < 0)
        return -1;
    n = strlen(template);
    memcpy(file, template, n);
    memcpy(file + n, text ? ".txt" : ".html", text ? 5 : 6);
    return tmpl_render(p->templates, file, data, out, e);
}
