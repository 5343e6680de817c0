/*
 * render: one page of a document on standard output, for the browser tests.
 *   render [--base URL] [--path PATH] [--style URL] NAME.html|NAME.txt DOCUMENT.json
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "server/pages/pages.h"

struct arguments {
    struct page_context ctx;
    const char *now, *templates, *name, *document;
};

static int fail(const struct err *e)
{
    (void) fprintf(stderr, "render: %s\n", e->text);
    return 1;
}

static bool take_option(struct arguments *a, const char *option, const char *value)
{
    if (strcmp(option, "--base") == 0)
        a->ctx.base_url = value;
    else if (strcmp(option, "--path") == 0)
        a->ctx.path = value;
    else if (strcmp(option, "--style") == 0)
        a->ctx.style = value;
    else if (strcmp(option, "--now") == 0)
        a->now = value;
    else if (strcmp(option, "--templates") == 0)
        a->templates = value;
    else
        return false;
    return true;
}

static bool read_arguments(int argc, char **argv, struct arguments *a)
{
    int i = 1;

    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        if (!take_option(a, argv[i], argv[i + 1]))
            return false;
    }
    if (argc - i != 2)
        return false;
    a->name = argv[i];
    a->document = argv[i + 1];
    return clock_parse_rfc3339(a->now, &a->ctx.now_us);
}

static int render(const struct arguments *a, struct err *e)
{
    AUTO_FREE char *bytes = NULL;
    size_t len = 0;
    AUTO_JSON cJSON *document = NULL;
    AUTO_PAGES struct pages *pages = NULL;
    AUTO_BUF struct buf out;

    buf_init(&out, LIMIT_PAGE);
    if (file_read(a->document, LIMIT_REPORT, &bytes, &len, e) < 0 ||
        json_parse(bytes, len, &(struct json_limits){.max_bytes = LIMIT_REPORT}, &document, e) <
            0 ||
        pages_load(a->templates, &pages, e) < 0 ||
        page_render(pages, a->name, document, &a->ctx, &out, e) < 0)
        return -1;
    return fwrite(out.data, 1, out.len, stdout) == out.len && fflush(stdout) == 0
               ? 0
               : err_set(e, ERR_SYS, "render.write", "cannot write the page");
}

int main(int argc, char **argv)
{
    struct arguments a = {.ctx = {.path = "/", .version = "test"}, .now = "2026-11-29T15:11:00Z"};
    struct err e = ERR_INIT;

    if (!read_arguments(argc, argv, &a)) {
        (void) fprintf(
            stderr,
            "usage: render [--base URL] [--path PATH] [--style URL] [--now TIME] [--templates DIR] "
            "NAME.html|NAME.txt DOCUMENT.json\n");
        return 2;
    }
    return render(&a, &e) < 0 ? fail(&e) : 0;
}
