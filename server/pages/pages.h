/*
 * pages: a page is a template over the document that the API returns, with view-only fields added
 * to a copy (view.h). Knows nothing of HTTP or the store. Constant after pages_load: any thread may
 * render.
 *
 * Names: "home" "project" "gate" "run" "compare" "commit" "baselines" "baseline" "help" "reason"
 * "error", each with ".html" and ".txt". "compare" shows a refusal
 * or INVALID with the template for it, and "error" shows a problem that carries a verdict as such,
 * so callers never choose by verdict. The documents: tests/data/pages/<name>.json.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

struct pages;

struct page_context {
    const char *base_url; /* "http://host:port" or with a path prefix, no '/' at the end; NULL or ""
                             means none */
    const char *path;     /* of this page as requested, without query */
    int64_t now_us;       /* "rendered at" and ages */
    const char *version;  /* of the program */
    const char *style;    /* address of the style sheet; NULL: "/web/style.css" */
    bool all_metrics;     /* the gate page charts every metric, not only gated ones */
};

/* Compiles every template: those in the program, or those of a directory (developing). A broken one
 * stops the start. */
int pages_load(const char *directory_or_null, struct pages **out, struct err *e) MUST_CHECK;
void pages_free(struct pages *p); /* accepts NULL */

/* The HTTP content type that belongs to the name's suffix. */
const char *page_content_type(const char *name);

/* Appends the page. The document is not changed; fields it lacks are left out of the page or named
 * as not recorded. */
int page_render(const struct pages *p, const char *name, const cJSON *document,
                const struct page_context *ctx, struct buf *out, struct err *e) MUST_CHECK;

/* Whether the verdict of a cleanrun-compare/1 or cleanrun-verdict/1 fell after its audit was
 * recorded: the evidence is INVALID now, or the baseline judges nobody any more. */
bool page_verdict_fell(const cJSON *document);

static inline void cleanup_pages(struct pages **p)
{
    pages_free(*p);
}
#define AUTO_PAGES __attribute__((cleanup(cleanup_pages)))
