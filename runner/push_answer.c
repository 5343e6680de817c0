#include "runner/push_answer.h"

#include <stdio.h>
#include <string.h>

#include "audit/verdict.h"
#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "base/plain.h"
#include "evidence/dsse.h"
#include "runner/key_way.h"

#define VERDICT_SCHEMA "cleanrun-verdict/1"

/* "detail" of a problem document, or the first bytes of whatever came. */
static void explain(const struct http_reply *r, char *out, size_t size)
{
    AUTO_JSON cJSON *j = NULL;
    struct err ignored = ERR_INIT;
    const char *why = "no explanation";

    if (json_parse(r->body, r->len, NULL, &j, &ignored) == 0)
        why = json_text(j, json_get(j, "detail") ? "detail" : "title", why);
    (void) snprintf(out, size, "%s", why); /* may be cut */
}

int push_refused(const struct push_upload *u, const char *step, const struct http_reply *r,
                 struct err *e)
{
    char why[300];
    enum err_kind kind = ERR_USAGE;

    explain(r, why, sizeof(why));
    if (r->status >= 500 || r->status == 429)
        kind = ERR_BUSY;
    else if (r->status == 409 || r->status == 422)
        kind = ERR_TRUST;
    return err_set(e, kind, "push.refused", "%s for %s: the server answered %ld: %s%s", step,
                   u->project, r->status, why, push_hint(r->status, u->target));
}

/* Who signed is what has to be registered. */
static void tell_signer(const struct push_upload *u)
{
    AUTO_DSSE struct dsse d = {.payload = NULL};
    struct err ignored = ERR_INIT;

    if (!u->envelope || dsse_parse(u->envelope, u->envelope_len, &d, &ignored) < 0)
        return;
    for (size_t i = 0; i < d.n; i++)
        if (d.signatures[i].keyid[0])
            cli_say(u->c,
                    "the archive is signed with key %.100s, which the server does not know; its "
                    "administrator registers this runner's key with: cleanrun-server runner add "
                    "NAME --class CLASS --key PUB.pem --project %s",
                    d.signatures[i].keyid, u->project);
}

/* Why it is INVALID: told even when nothing else is. */
static void tell_refusal(const struct push_upload *u, const cJSON *document)
{
    const cJSON *reason = NULL;
    const char *way = NULL;
    bool of_key = false;
    size_t n = 0;

    cJSON_ArrayForEach(reason, json_get(document, "reasons")) {
        const char *code = json_text(reason, "code", "?");
        const char *text = json_text(reason, "text", "");

        plain_line(u->c->err, "  %-22s %s", code, text);
        of_key = of_key || strcmp(code, "IN-KEY") == 0;
        way = way ? way : key_way(text);
        n++;
    }
    if (n == 0)
        plain_line(u->c->err, "%s", json_text(document, "detail", "no explanation"));
    if (of_key && way)
        cli_say(u->c, "%s", way);
    else if (of_key)
        tell_signer(u);
}

static void tell_reasons(struct cli *c, const cJSON *document)
{
    const cJSON *reason = NULL;

    cJSON_ArrayForEach(reason, json_get(document, "reasons")) {
        cli_say(c, "  %-22s %s", json_text(reason, "code", "?"), json_text(reason, "text", ""));
    }
}

/* What stands in the commit's check instead of this run's OK decides, so that measuring again until
 * it is green gains nothing where only the exit code is looked at. */
static void tell_check(struct cli *c, const cJSON *document, int *io_exit)
{
    const cJSON *check = json_get(document, "check");
    const char *text = json_text(check, "description", NULL);

    if (check && *io_exit == EXIT_OK)
        *io_exit = push_verdict_exit(json_text(check, "verdict", NULL));
    if (text)
        cli_say(c, "%s (run %s)", text, json_text(check, "run", "?"));
}

static int unsound(const char *what, struct err *e)
{
    return err_set(e, ERR_BUSY, "push.answer",
                   "the server's answer is no verdict on this run: %s; nothing is known of it",
                   what);
}

static bool says(const cJSON *document, const char *key, const char *expected)
{
    const cJSON *j = json_get(document, key);

    return cJSON_IsString(j) && strcmp(j->valuestring, expected) == 0;
}

/* What of a verdict denies its OK, or NULL: green is what says so throughout. */
static const char *denies_ok(const cJSON *document)
{
    const cJSON *expected = json_get(document, "expected_comparisons");
    const cJSON *made = json_get(document, "made_comparisons");
    const cJSON *reasons = json_get(document, "reasons");

    if (!says(document, "mode", "clean"))
        return "its mode";
    if (!cJSON_IsString(json_get(document, "baseline")))
        return "its baseline";
    if (!says(json_get(document, "acceptance"), "verdict", "PASS"))
        return "its acceptance";
    if (!says(json_get(document, "audit"), "verdict", verdict_word(VERDICT_OK)))
        return "its comparison";
    if (!json_is_integer(made) || made->valuedouble < 1 || !json_is_integer(expected) ||
        !json_equal(made, expected))
        return "the number of its comparisons";
    return cJSON_IsArray(reasons) && !reasons->child ? NULL : "its list of reasons";
}

static int check_ok(const cJSON *document, struct err *e)
{
    const char *member = denies_ok(document);
    char text[100];

    if (!member)
        return 0;
    (void) snprintf(text, sizeof text, "it says OK and %s denies it", member); /* fits */
    return unsound(text, e);
}

/* Whatever answers with 200 may be something else than this server, or of something else than what
 * was sent. What stands behind a run id is one archive for ever (the server answers 409 for
 * another one). */
static int check_answer(const struct push_upload *u, const cJSON *document, struct err *e)
{
    const cJSON *word = json_get(document, "verdict");
    enum verdict v;

    if (!says(document, "schema", VERDICT_SCHEMA))
        return unsound("it has not the schema " VERDICT_SCHEMA, e);
    if (!says(document, "project", u->project) || !says(document, "gate", u->gate))
        return unsound("it is of another project or gate", e);
    if (!u->manifest)
        return unsound("the archive's manifest cannot be read, so no server can judge it", e);
    if (!says(document, "run", u->manifest->run))
        return unsound("it is of another run", e);
    if (!says(document, "commit", u->manifest->commit))
        return unsound("it is of another commit", e);
    if (!cJSON_IsNull(word) && !(cJSON_IsString(word) && verdict_parse(word->valuestring, &v)))
        return unsound("its verdict is no word that is known here", e);
    return says(document, "verdict", verdict_word(VERDICT_OK)) ? check_ok(document, e) : 0;
}

/* The document as it came, or as one line among others. */
static int print_answer(const struct push_upload *u, const cJSON *document,
                        const struct http_reply *reply, struct err *e)
{
    AUTO_BUF struct buf line = {.data = NULL};

    if (!u->target->one_line)
        return cli_write_text(u->c, NULL, reply->body, reply->len, e);
    buf_init(&line, LIMIT_MIB(16));
    json_write(&line, document, JSON_COMPACT);
    buf_puts(&line, "\n");
    return buf_check(&line, e) < 0 ? -1 : cli_write_text(u->c, NULL, line.data, line.len, e);
}

/* 200 and 201 carry the verdict; 422 a problem with reasons, which is the verdict INVALID. */
int push_tell_verdict(const struct push_upload *u, const struct http_reply *reply, int *out_exit,
                      struct err *e)
{
    AUTO_JSON cJSON *j = NULL;
    struct json_limits limits = {.max_bytes = LIMIT_MIB(16)};
    bool judged = reply->status == 200 || reply->status == 201;

    if (!judged && reply->status != 422)
        return push_refused(u, "submitting the run", reply, e);
    if (json_parse(reply->body, reply->len, &limits, &j, e) < 0)
        return unsound("it is no JSON", e);
    if (judged && check_answer(u, j, e) < 0)
        return -1;
    const char *text = json_text(j, "description", NULL);

    *out_exit = judged ? push_verdict_exit(json_text(j, "verdict", NULL)) : EXIT_INVALID;
    if (u->target->json) {
        if (print_answer(u, j, reply, e) < 0)
            return -1;
    } else {
        plain_line(u->c->out, "%s", judged ? json_text(j, "verdict", "no verdict") : "INVALID");
    }
    if (!judged) {
        tell_refusal(u, j);
        return 0;
    }
    if (text)
        cli_say(u->c, "%s", text);
    tell_reasons(u->c, j);
    tell_check(u->c, j, out_exit);
    const cJSON *page = json_get(json_get(j, "links"), "page");

    if (cJSON_IsString(page)) {
        AUTO_FREE char *url = push_page(u->target->server, page->valuestring);

        cli_say(u->c, "%s", url ? url : page->valuestring);
    }
    return 0;
}
