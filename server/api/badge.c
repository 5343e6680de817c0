/* The badge of a gate: its newest verdict as a small picture that other sites may show. */
#include <string.h>

#include "audit/verdict.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/text.h"
#include "server/api/access.h"
#include "server/api/api.h"
#include "server/store/documents.h"

#define CHAR_WIDTH 7u
#define PADDING 12u
#define LABEL "cleanrun"

static const char *colour_of(const char *word)
{
    enum verdict v = VERDICT_MAX;

    if (!verdict_parse(word, &v))
        return "#57606a";
    switch (v) {
    case VERDICT_OK:
        return "#0a6b32";
    case VERDICT_REGRESSION:
    case VERDICT_FAIL:
    case VERDICT_INVALID:
        return "#b00020";
    case VERDICT_NON_COMPARABLE:
    case VERDICT_ERROR:
        return "#7a4700";
    case VERDICT_PENDING:
        return "#3b4aa8";
    case VERDICT_MAX:
        break;
    }
    return "#57606a";
}

static void draw(struct buf *out, const char *word)
{
    unsigned left = (unsigned) strlen(LABEL) * CHAR_WIDTH + PADDING;
    unsigned right = (unsigned) strlen(word) * CHAR_WIDTH + PADDING;

    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"20\" role=\"img\" "
               "aria-label=\"" LABEL ": %s\"><title>" LABEL ": %s</title>"
               "<rect width=\"%u\" height=\"20\" fill=\"#24292f\"/><rect x=\"%u\" width=\"%u\" "
               "height=\"20\" fill=\"%s\"/>"
               "<g fill=\"#fff\" text-anchor=\"middle\" font-family=\"Verdana,DejaVu "
               "Sans,sans-serif\" font-size=\"11\">"
               "<text x=\"%u\" y=\"14\">" LABEL
               "</text><text x=\"%u\" y=\"14\">%s</text></g></svg>\n",
               left + right, word, word, left, left, right, colour_of(word), left / 2,
               left + right / 2, word);
}

/* The newest run that has a verdict, or what stands against its OK in its commit's check; "no data"
 * before there is one. Words of the registry only. */
static const char *newest_word(const cJSON *gate)
{
    const cJSON *run = NULL;

    cJSON_ArrayForEach(run, json_get(gate, "runs")) {
        const char *stands = cJSON_GetStringValue(json_get(json_get(run, "check"), "verdict"));
        const char *own = cJSON_GetStringValue(json_get(run, "verdict"));
        const char *word = stands ? stands : own;
        enum verdict v = VERDICT_MAX;

        if (word && verdict_parse(word, &v))
            return verdict_word(v);
    }
    return "no data";
}

enum route_result page_badge(struct request *q)
{
    struct store_project project = {.id = 0};
    const char *name = NULL;
    AUTO_JSON cJSON *document = NULL;
    AUTO_BUF struct buf b = {.data = NULL};
    struct content *c = NULL;
    char *bytes = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;

    if (!access_read_project(q, &name, &project))
        return ROUTE_DONE;
    if (!text_is_slug(request_param(q, "gate"))) {
        reply_not_found(q);
        return ROUTE_DONE;
    }
    if (doc_gate(api_of(q)->store, name, request_param(q, "gate"), &document, &e) < 0 &&
        e.kind != ERR_NOTFOUND) {
        reply_err(q, &e);
        return ROUTE_DONE;
    }
    buf_init(&b, LIMIT_PAGE);
    draw(&b, newest_word(document));
    bytes = buf_take(&b, &len);
    c = bytes ? content_bytes("image/svg+xml", bytes, len) : NULL;
    if (c) {
        content_set_policy(c, REPLY_SHARED);
        content_set_caching(c, REPLY_LIVE, project.is_private);
        content_hash(c);
    }
    reply_content(q, 200, c);
    return ROUTE_DONE;
}
