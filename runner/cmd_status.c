/* cleanrun status: what the server says about a commit. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audit/verdict.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/text.h"
#include "runner/commands.h"
#include "runner/definition_load.h"
#include "runner/git.h"
#include "runner/http.h"
#include "runner/push.h"

#define WATCH_SECONDS 5
#define CHECK_SCHEMA "cleanrun-check/1"

/* A full object id, or a revision of the repository here. Heap. */
static int commit_of(const struct cli *c, const char *word, char **out, struct err *e)
{
    AUTO_GIT struct git g = {.root_fd = -1};
    AUTO_GIT_OUTPUT struct git_output o = {.data = NULL};
    AUTO_FREE char *spec = NULL;
    size_t len = strlen(word);

    if ((len == 40 || len == 64) && text_is_hex(word, len)) {
        *out = strdup(word);
        return *out ? 0 : err_memory(e, "status.memory");
    }
    if (asprintf(&spec, "%s^{commit}", word) < 0) {
        spec = NULL;
        return err_memory(e, "status.memory");
    }
    const char *const args[] = {"rev-parse", "--verify", "--quiet", "--end-of-options", spec, NULL};

    if (git_open(c->directory, cli_env(c, "PATH"), c->environment, &g, e) < 0 ||
        git_run(&g, args, true, &o, e) < 0)
        return -1;
    if (o.code != 0)
        return err_set(e, ERR_USAGE, "status.commit", "no commit '%s' here", word);
    *out = strndup(o.data, strcspn(o.data, "\n"));
    return *out ? 0 : err_memory(e, "status.memory");
}

/* GitHub, GitLab and others set CI=true in their jobs. */
static bool is_ci(const struct cli *c)
{
    const char *ci = cli_env(c, "CI");

    return ci && *ci && strcmp(ci, "false") != 0 && strcmp(ci, "0") != 0;
}

/* --project, or what the definition says. *owned keeps it. */
static int choose_project(const struct cli *c, struct push_target *t, char **owned, struct err *e)
{
    if (t->project)
        return 0;
    if (is_ci(c))
        return err_set(e, ERR_USAGE, "status.project",
                       "which project? in CI (CI is set) --project OWNER/NAME is needed: "
                       "cleanrun.yaml is part of the change that is asked about");
    if (definition_project_here(c, owned, e) < 0)
        return err_wrap(e, "which project? --project OWNER/NAME, or");
    t->project = *owned;
    if (!t->project)
        return err_set(e, ERR_USAGE, "status.project",
                       "which project? --project OWNER/NAME (cleanrun.yaml names none)");
    cli_say(c, "project %.200s, as the nearest cleanrun.yaml says; --project names another",
            t->project);
    return 0;
}

static int ask(const struct push_target *t, const char *commit, struct http_reply *reply,
               struct err *e)
{
    AUTO_FREE char *token = NULL;
    AUTO_FREE char *url = NULL;

    if (!text_is_project(t->project))
        return err_set(e, ERR_USAGE, "status.project", "'%.200s' is no project, OWNER/NAME",
                       t->project);
    if (t->token_file && push_read_token(t->token_file, &token, e) < 0)
        return -1;
    url = push_url(t->server, "/api/v1/projects/%s/commits/%s/check", t->project, commit);
    if (!url)
        return err_set(e, ERR_USAGE, "status.url", "the server's address is too long");
    struct http_request q = {.method = "GET", .url = url, .token = token, .file_fd = -1};

    if (http_retry(&q, reply, e) < 0)
        return -1;
    if (reply->status != 200)
        return err_set(e, reply->status >= 500 ? ERR_BUSY : ERR_USAGE, "status.refused",
                       "%s: the server answered %ld%s", t->project, reply->status,
                       push_hint(reply->status, t));
    return 0;
}

/* A description begins with its verdict, which stands before it here already. */
static const char *without_verdict(const cJSON *object)
{
    const char *text = json_text(object, "description", "");
    size_t len = strlen(json_text(object, "verdict", ""));

    return strncmp(text, json_text(object, "verdict", ""), len) == 0 && text[len] == ' '
               ? text + len + 1
               : text;
}

static int unsound(const char *what, const char *commit, struct err *e)
{
    return err_set(e, ERR_BUSY, "status.answer",
                   "the server's answer is no check of this commit (%.64s): %s; nothing is known "
                   "of it",
                   commit, what);
}

/* The worst verdict of the gates. False: there is no gate, or one without a known verdict. */
static bool worst_of(const cJSON *gates, enum verdict *out)
{
    const cJSON *gate = NULL;
    enum verdict worst = VERDICT_OK;
    enum verdict v;

    cJSON_ArrayForEach(gate, gates) {
        if (!json_text(gate, "gate", "")[0] || !verdict_parse(json_text(gate, "verdict", ""), &v))
            return false;
        worst = gate == gates->child ? v : verdict_worse(worst, v);
    }
    *out = worst;
    return cJSON_GetArraySize(gates) > 0;
}

/* Whatever answers with 200 may be something else than this server, or of something else than this
 * commit: a verdict counts only when the whole answer says so. A commit of which nothing is known
 * has no gates, and is PENDING. */
static int check_answer(const cJSON *j, const struct push_target *t, const char *commit,
                        enum verdict *out, struct err *e)
{
    const cJSON *gates = json_get(j, "gates");
    enum verdict said = VERDICT_ERROR;
    enum verdict worst = VERDICT_ERROR;

    if (strcmp(json_text(j, "schema", ""), CHECK_SCHEMA) != 0)
        return unsound("it has not the schema " CHECK_SCHEMA, commit, e);
    if (!t->project || strcmp(json_text(j, "project", ""), t->project) != 0)
        return unsound("it is of another project", commit, e);
    if (strcmp(json_text(j, "commit", ""), commit) != 0)
        return unsound("it is of another commit", commit, e);
    if (!verdict_parse(json_text(j, "verdict", ""), &said))
        return unsound("its verdict is no word that is known here", commit, e);
    if (!cJSON_IsArray(gates))
        return unsound("it has no list of gates", commit, e);
    if (said == VERDICT_PENDING && cJSON_GetArraySize(gates) == 0) {
        *out = said;
        return 0;
    }
    if (!worst_of(gates, &worst))
        return unsound("it names no gate, or a gate without a verdict that is known here", commit,
                       e);
    if (worst != said)
        return unsound("its verdict is not the worst of its gates", commit, e);
    *out = said;
    return 0;
}

static int tell(struct cli *c, const struct push_target *t, const char *commit,
                const struct http_reply *reply, int *out_exit, struct err *e)
{
    AUTO_JSON cJSON *j = NULL;
    struct json_limits limits = {.max_bytes = LIMIT_MIB(16)};
    const cJSON *gate = NULL;
    enum verdict v = VERDICT_ERROR;

    if (json_parse(reply->body, reply->len, &limits, &j, e) < 0)
        return unsound("it is no JSON", commit, e);
    if (check_answer(j, t, commit, &v, e) < 0)
        return -1;
    *out_exit = verdict_exit(v);
    if (t->json)
        return cli_write_text(c, NULL, reply->body, reply->len, e);
    plain_line(c->out, "%s  %s", json_text(j, "verdict", ""),
               without_verdict(j)); /* flushed and checked by main */
    cJSON_ArrayForEach(gate, json_get(j, "gates")) {
        AUTO_FREE char *url = push_page(t->server, json_text(gate, "url", ""));

        plain_line(c->out, "  %-24s %-16s %s", json_text(gate, "gate", ""),
                   json_text(gate, "verdict", ""), without_verdict(gate));
        if (url && *url)
            plain_line(c->out, "  %-24s %s", "", url);
    }
    return 0;
}

static int status(struct cli *c, const struct cli_args *a, int *out_exit, struct err *e)
{
    struct push_target t;
    AUTO_FREE char *commit = NULL;
    AUTO_FREE char *project = NULL;

    push_target_from(c, a, &t);
    if (!t.server || !*t.server)
        return err_set(e, ERR_USAGE, "status.server",
                       "which server? --server URL or CLEANRUN_SERVER");
    if (choose_project(c, &t, &project, e) < 0)
        return -1;
    if (commit_of(c, a->n_args ? a->args[0] : "HEAD", &commit, e) < 0 || !commit)
        return -1;
    for (bool first = true;; first = false) {
        AUTO_HTTP_REPLY struct http_reply reply = {.status = 0};
        struct timespec pause = {.tv_sec = WATCH_SECONDS};

        if (ask(&t, commit, &reply, e) < 0 || tell(c, &t, commit, &reply, out_exit, e) < 0)
            return -1;
        if (!cli_has(a, "watch") || *out_exit != EXIT_PENDING)
            return 0;
        (void) fflush(c->out); /* checked by main */
        if (first)
            cli_say(c, "%.12s has no verdict yet; asked again every %d s until it has one", commit,
                    WATCH_SECONDS);
        if (nanosleep(&pause, NULL) < 0 && errno == EINTR)
            return 0;
    }
}

static int run(struct cli *c, const struct cli_args *a)
{
    struct err e = ERR_INIT;
    int code = EXIT_ERROR;

    return status(c, a, &code, &e) < 0 ? cli_fail(c, &e) : code;
}

static const struct cli_option options[] = {
    {.name = "server", .value = "URL", .help = "the server (or CLEANRUN_SERVER)"},
    {.name = "project",
     .value = "OWNER/NAME",
     .help = "the project (default: of cleanrun.yaml; needed in CI)"},
    {.name = "token-file",
     .value = "FILE",
     .help = "for private projects (or CLEANRUN_TOKEN_FILE)"},
    {.name = "watch", .help = "ask again every five seconds while the answer is PENDING"},
    {.name = "json", .help = "print the server's answer as it came"},
};

const struct command command_status = {
    .name = "status",
    .summary = "verdicts of all gates for a commit",
    .synopsis = "[COMMIT] --server URL [--project OWNER/NAME] [OPTION...]",
    .examples = "  cleanrun status HEAD --server https://perf.example.org\n",
    .notes = "Exit: by the worst verdict; 8 while it is PENDING; 2 when the server refuses the "
             "request,\n"
             "6 when it can't be reached.\n",
    COMMAND_OPTIONS(options),
    .max_args = 1,
    .run = run,
};
