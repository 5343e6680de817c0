/*
 * view: what a template needs beside the document: formatted numbers, verdict words with their
 * glyph and class, ages, list differences, chart geometry. All of it is added to a copy; the
 * numbers of the document stay beside the formatted ones. Knows the documents' shapes, no HTML.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "server/pages/pages.h"

/*
 * page: "run", "compare", … ; text: for the .txt twin. *out_data is owned by the caller;
 * *out_template (static) is the template to use, which is another than `page` for a refusal
 * ("refusal") and for INVALID ("invalid").
 */
int view_build(const char *page, bool text, const cJSON *document, const struct page_context *ctx,
               cJSON **out_data, const char **out_template, struct err *e) MUST_CHECK;
