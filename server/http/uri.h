/*
 * uri: the raw request target becomes decoded path segments and query values. libmicrohttpd's own
 * decoding is switched off, because it cuts at %00 and turns %2f into a separator.
 * Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"

#define URI_SEGMENTS_MAX 24

struct uri_path {
    const char *segments[URI_SEGMENTS_MAX]; /* decoded, in the arena */
    size_t n;
    bool trailing_slash; /* "/a/": not set for "/" itself */
};

/*
 * Splits at '/', then decodes each segment. Refuses (false, *out_why static text) everything that
 * could mean another path to another reader: no leading '/', empty, "." and ".." segments before or
 * after decoding, encoded '/', '\', NUL or other control characters, broken %-escapes, bytes that a
 * URI may not hold plainly, text that is not UTF-8, too many segments.
 */
bool uri_split(struct arena *a, const char *raw_path, struct uri_path *out,
               const char **out_why) MUST_CHECK;

/* Nothing in a raw query (NULL allowed) that should have been percent-encoded, no broken escape. */
bool uri_query_is_plain(const char *raw_query) MUST_CHECK;

/* Value of `name` in a raw query ("a=1&b=2", NULL allowed), decoded ('+' is a space); NULL when
 * absent, given twice or broken. In the arena. */
const char *uri_query_get(struct arena *a, const char *raw_query, const char *name);
