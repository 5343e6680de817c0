/* The badge of a gate: what the check of its newest commit says of it, as a small picture that
 * other sites may show. */
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

/* The commit of the gate's newest run that has a verdict, or NULL. */
static const char *newest_commit(const cJSON *gate)
{
    const cJSON *run = NULL;

    cJSON_ArrayForEach(run, json_get(gate, "runs")) {
        if (cJSON_IsString(json_get(run, "verdict")))
            return json_text(run, "commit", NULL);
    }
    return NULL;
}

/* The worst that the commit's check says of the gate, over its classes. Words of the registry only.
 */
static const char *worst_word(const cJSON *check, const char *gate)
{
    enum verdict worst = VERDICT_MAX;
    enum verdict v = VERDICT_MAX;
    const cJSON *row = NULL;

    cJSON_ArrayForEach(row, json_get(check, "gates")) {
        if (strcmp(json_text(row, "gate", ""), gate) != 0)
            continue;
        if (!verdict_parse(json_text(row, "verdict", ""), &v))
            return verdict_word(VERDICT_ERROR);
        worst = worst == VERDICT_MAX ? v : verdict_worse(worst, v);
    }
    return verdict_word(worst == VERDICT_MAX ? VERDICT_ERROR : worst);
}

/* "no data" before there is a run with a verdict. */
static int find_word(struct store *s, const char *project, const char *gate, const char **out,
                     struct err *e)
{
    AUTO_JSON cJSON *document = NULL;
    AUTO_JSON cJSON *check = NULL;
    const char *commit;

    *out = "no data";
    if (doc_gate(s, project, gate, &document, e) < 0)
        return e->kind == ERR_NOTFOUND ? 0 : -1;
    commit = newest_commit(document);
    if (!commit)
        return 0;
    if (doc_check(s, project, commit, &check, e) < 0)
        return -1;
    *out = worst_word(check, gate);
    return 0;
}

enum route_result page_badge(struct request *q)
{
    struct store_project project = {.id = 0};
    const char *name = NULL;
    const char *word = NULL;
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
    if (find_word(api_of(q)->store, name, request_param(q, "gate"), &word, &e) < 0) {
        reply_err(q, &e);
        return ROUTE_DONE;
    }
    buf_init(&b, LIMIT_PAGE);
    draw(&b, word);
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
