/*
 * tmpl: templates in a subset of mustache, compiled once, rendered over a JSON tree. Knows nothing
 * of pages. There is no raw output: `{{{x}}}`, `{{&x}}` and set-delimiter tags are refused at
 * compile time, so escaping can't be switched off. A compiled set is constant and may be shared by
 * threads.
 *
 * {{name}} {{a.b}} {{.}}   value; strings, numbers in their shortest exact form, true, false;
 * others nothing
 * {{#x}}…{{/x}}            false for absent, null, false, "" and []; once for any other value; per
 * element of an array
 * {{^x}}…{{/x}}            the opposite
 * {{>part}}                the template "part" of the same suffix
 * {{! comment }}
 * Tags alone on their line take the line with them; a partial alone on its line is indented like
 * its tag.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

#define TMPL_PARTIAL_DEPTH 8  /* partials inside partials while rendering */
#define TMPL_SECTION_DEPTH 16 /* sections inside sections of one template */

/* The suffix of a template's name fixes how its values are written; nothing else does. */
enum tmpl_kind {
    TMPL_HTML, /* ".html": & < > " ' are escaped; control characters become U+FFFD */
    TMPL_TEXT, /* ".txt": control characters (line ends too) become '?' or a space */
};

struct tmpl_source {
    const char *name; /* "run.html" */
    const char *text;
    size_t len;
};

struct tmpl_set;

enum tmpl_mode {
    TMPL_STRICT, /* everywhere in the product */
    TMPL_SPEC, /* only to be judged by the mustache specification: an unknown partial is nothing, no
                  HTML rules */
};

/*
 * Compiles all sources; texts are copied. ERR_INPUT with "name:line: …" for a syntax error, an
 * unknown suffix, an unclosed section, a duplicate name, an unknown partial; and in HTML for a
 * value or partial anywhere but in text or a quoted attribute, a section that does not end where in
 * the markup it began, comments, inline scripts, styles and event handlers (the pages' CSP forbids
 * them). A value that begins a URL attribute (href, src, action, formaction) is only written if it
 * is a local path, a fragment, a query or http(s); "#" stands in its place otherwise.
 */
int tmpl_set_new(const struct tmpl_source *sources, size_t n, enum tmpl_mode mode,
                 struct tmpl_set **out, struct err *e) MUST_CHECK;
void tmpl_set_free(struct tmpl_set *set); /* accepts NULL */

/* Appends to `out`, whose maximum bounds the page. ERR_NOTFOUND: no such template; ERR_LIMIT:
 * partial depth or size. */
int tmpl_render(const struct tmpl_set *set, const char *name, const cJSON *data, struct buf *out,
                struct err *e) MUST_CHECK;

static inline void cleanup_tmpl_set(struct tmpl_set **set)
{
    tmpl_set_free(*set);
}
#define AUTO_TMPL_SET __attribute__((cleanup(cleanup_tmpl_set)))
