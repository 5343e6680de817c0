#include "server/admin_commands.h"

#include <string.h>

#include "audit/verdict.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/plain.h"
#include "base/text.h"
#include "server/config.h"
#include "server/http/auth.h"
#include "server/store/manage.h"
#include "server/store/store_private.h"
#include "server/store/upkeep.h"

static int need_number(const struct admin_args *a, const char *name, uint64_t max, uint64_t *out,
                       bool *out_given, struct err *e)
{
    const char *text = admin_args_get(a, name);

    *out_given = text != NULL;
    if (text && !num_parse_u64(text, strlen(text), max, out))
        return err_set(e, ERR_USAGE, "args.number", "--%s must be a whole number, not '%s'", name,
                       text);
    return 0;
}

/* Projects. */

int admin_project_add(struct store *s, const struct admin_args *a, struct err *e)
{
    if (manage_project_add(s, a->words[0], admin_args_has(a, "private"), e) < 0)
        return -1;
    admin_say(a, "project %s added\n", a->words[0]);
    return 0;
}

int admin_check_project_add(const struct admin_args *a, struct err *e)
{
    return text_is_project(a->words[0])
               ? 0
               : err_set(e, ERR_USAGE, "manage.name",
                         "'%s' is no project name: " MANAGE_PROJECT_RULE, a->words[0]);
}

int admin_check_project_set(const struct admin_args *a, struct err *e)
{
    bool is_private = admin_args_has(a, "private");
    bool is_public = admin_args_has(a, "public");

    if (is_private && is_public)
        return err_set(e, ERR_USAGE, "args.both", "--private and --public exclude each other");
    if (!is_private && !is_public && !admin_args_has(a, "tickets") &&
        !admin_args_has(a, "deadline"))
        return err_set(e, ERR_USAGE, "args.nothing",
                       "what to set? --private, --public, --tickets or --deadline");
    return 0;
}

int admin_check_token_add(const struct admin_args *a, struct err *e)
{
    const char *word = NULL;

    if (admin_args_need(a, "scope", &word, e) < 0)
        return -1;
    return auth_scope(word) ? 0
                            : err_set(e, ERR_USAGE, "args.scope",
                                      "a scope is read, upload, review or admin, not '%s'", word);
}

int admin_project_set(struct store *s, const struct admin_args *a, struct err *e)
{
    bool is_private = admin_args_has(a, "private");
    struct manage_project change = {.tickets = admin_args_get(a, "tickets")};
    uint64_t seconds = 0;
    int64_t deadline_s = 0;
    bool given = false;

    if (need_number(a, "deadline", UINT64_C(86400) * 365, &seconds, &given, e) < 0)
        return -1;
    deadline_s = (int64_t) seconds;
    change.deadline_s = given ? &deadline_s : NULL;
    change.is_private = is_private || admin_args_has(a, "public") ? &is_private : NULL;
    if (manage_project_set(s, a->words[0], &change, e) < 0)
        return -1;
    admin_say(a, "project %s changed\n", a->words[0]);
    return 0;
}

int admin_project_list(struct store *s, const struct admin_args *a, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    bool row = false;
    int rc;

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_PROJECT_LIST);
    while ((rc = query_step(&q, &row, e)) == 0 && row)
        admin_say(a, "%s\t%s\ttickets %s\tdeadline %lld s\t%lld runs\n", query_get_text(&q, 1),
                  query_get_int(&q, 2) ? "private" : "public", query_get_text(&q, 3),
                  (long long) query_get_int(&q, 4), (long long) query_get_int(&q, 5));
    return rc;
}

/* Runners. */

int admin_runner_add(struct store *s, const struct admin_args *a, struct err *e)
{
    struct manage_runner r = {.name = a->words[0]};
    AUTO_FREE char *pem = NULL;
    const char *key = NULL;
    size_t len = 0;

    if (admin_args_need(a, "class", &r.machine_class, e) < 0 ||
        admin_args_need(a, "key", &key, e) < 0 ||
        admin_args_need(a, "project", &r.project, e) < 0 ||
        admin_args_time(a, "not-before", &r.not_before_us, e) < 0 ||
        admin_args_time(a, "not-after", &r.not_after_us, e) < 0 ||
        file_read(key, LIMIT_PEM, &pem, &len, e) < 0)
        return -1;
    if (strlen(pem) != len)
        return err_set(e, ERR_INPUT, "args.key", "'%s' is no PEM file", key);
    r.key_pem = pem;
    if (manage_runner_add(s, &r, e) < 0)
        return strncmp(e->code, "pem.", 4) == 0 ? err_wrap(e, "'%.200s'", key) : -1;
    admin_say(a, "runner %s may measure %s in class %s\n", r.name, r.project, r.machine_class);
    return 0;
}

int admin_check_runner_set(const struct admin_args *a, struct err *e)
{
    if (!admin_args_has(a, "not-before") && !admin_args_has(a, "not-after"))
        return err_set(e, ERR_USAGE, "args.nothing",
                       "what to set? --not-before or --not-after, each a time or 'none'");
    return 0;
}

/* *out NULL: the flag is absent; "none" is 0, no limit. */
static int limit_of(const struct admin_args *a, const char *name, int64_t *us, const int64_t **out,
                    struct err *e)
{
    const char *text = admin_args_get(a, name);

    *us = 0;
    *out = text ? us : NULL;
    return !text || strcmp(text, "none") == 0 ? 0 : admin_args_time(a, name, us, e);
}

int admin_runner_set(struct store *s, const struct admin_args *a, struct err *e)
{
    struct manage_validity change = {.not_before_us = NULL};
    int64_t from_us = 0;
    int64_t to_us = 0;

    if (limit_of(a, "not-before", &from_us, &change.not_before_us, e) < 0 ||
        limit_of(a, "not-after", &to_us, &change.not_after_us, e) < 0 ||
        manage_runner_set(s, a->words[0], &change, e) < 0)
        return -1;
    admin_say(a, "runner %s changed\n", a->words[0]);
    return 0;
}

/* The baselines that judge nobody from now on: their gates refuse until another one is approved. */
static int say_unjudged(struct store *s, const struct admin_args *a, int64_t since_us,
                        struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    bool row = false;
    int rc;

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_RUNNER_BASELINES);
    query_text(&q, a->words[0]);
    query_int(&q, since_us);
    while ((rc = query_step(&q, &row, e)) == 0 && row)
        admin_say(
            a,
            "baseline %s (%s %s, class %s) came from it since and judges nobody any more; what it "
            "judged is NON_COMPARABLE: approve a run of another runner, or retire it: "
            "cleanrun-server baseline retire %s --project %s --reviewer NAME --reason TEXT\n",
            query_get_text(&q, 0), query_get_text(&q, 1), query_get_text(&q, 2),
            query_get_text(&q, 3), query_get_text(&q, 0), query_get_text(&q, 1));
    return rc;
}

int admin_runner_revoke(struct store *s, const struct admin_args *a, struct err *e)
{
    struct manage_revoked now = {.since_us = 0};
    char at[CLOCK_RFC3339_SIZE];
    const char *reason = NULL;
    int64_t since_us = 0;

    if (admin_args_need(a, "reason", &reason, e) < 0 ||
        admin_args_time(a, "since", &since_us, e) < 0 ||
        manage_runner_revoke(s, a->words[0], reason, since_us, &now, e) < 0)
        return -1;
    clock_rfc3339(now.since_us, false, at);
    if (now.stands)
        admin_say(a, "runner %s was revoked since %s already, and that stays\n", a->words[0], at);
    else
        admin_say(a, "runner %s is revoked since %s\n", a->words[0], at);
    return say_unjudged(s, a, now.since_us, e);
}

static int say_projects(const struct admin_args *a, struct db *d, int64_t runner, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_RUNNER_PROJECTS);
    const char *between = "\t";
    bool row = false;
    int rc;

    query_int(&q, runner);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        admin_say(a, "%s%s", between, query_get_text(&q, 0));
        between = ",";
    }
    return rc;
}

/* The reason is free text: it stays in its field. */
static void say_revoked(const struct admin_args *a, const char *when, const char *reason)
{
    AUTO_BUF struct buf plain = {.data = NULL};

    buf_init(&plain, LIMIT_MIB(1));
    plain_puts(&plain, reason);
    admin_say(a, "\trevoked since %s: %s", when, plain.data ? plain.data : "");
}

int admin_runner_list(struct store *s, const struct admin_args *a, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    char from[CLOCK_RFC3339_SIZE];
    char to[CLOCK_RFC3339_SIZE];
    char seen[CLOCK_RFC3339_SIZE];
    char revoked[CLOCK_RFC3339_SIZE];
    bool row = false;
    int rc;

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_RUNNER_LIST);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        admin_say(a, "%s\t%s\t%s\tvalid %s..%s\tseen %s", query_get_text(&q, 1),
                  query_get_text(&q, 2), query_get_text(&q, 3),
                  admin_when(query_get_int(&q, 4), from), admin_when(query_get_int(&q, 5), to),
                  admin_when(query_get_int(&q, 8), seen));
        if (query_get_int(&q, 6))
            say_revoked(a, admin_when(query_get_int(&q, 6), revoked), query_get_text(&q, 7));
        if (say_projects(a, r.db, query_get_int(&q, 0), e) < 0)
            return -1;
        admin_say(a, "\n");
    }
    return rc;
}

/* Tokens. */

static int show_token(void *ctx, const char *token, struct err *e)
{
    const struct admin_args *a = ctx;

    admin_say(a, "%s\n", token);
    return fflush(a->out) == 0 && !ferror(a->out)
               ? 0
               : err_set(e, ERR_SYS, "token.shown",
                         "the token cannot be written to standard output, so it was not made");
}

int admin_token_add(struct store *s, const struct admin_args *a, struct err *e)
{
    struct admin_args copy = *a;
    const char *word = NULL;

    if (admin_args_need(a, "scope", &word, e) < 0)
        return -1;
    if (manage_token_add(s, a->words[0], auth_scope(word), admin_args_get(a, "project"), show_token,
                         &copy, e) < 0)
        return -1;
    (void) fprintf(stderr, "token %s (%s); it is shown only now\n", a->words[0], word);
    return 0;
}

int admin_token_revoke(struct store *s, const struct admin_args *a, struct err *e)
{
    if (manage_token_revoke(s, a->words[0], e) < 0)
        return -1;
    admin_say(a, "token %s revoked\n", a->words[0]);
    return 0;
}

int admin_token_list(struct store *s, const struct admin_args *a, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    char made[CLOCK_RFC3339_SIZE];
    char revoked[CLOCK_RFC3339_SIZE];
    bool row = false;
    int rc;

    if (store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_TOKEN_LIST);
    while ((rc = query_step(&q, &row, e)) == 0 && row)
        admin_say(a, "%s\t%s\t%s\tmade %s\trevoked %s\n", query_get_text(&q, 0),
                  auth_scope_word((unsigned) query_get_int(&q, 1)),
                  query_get_text(&q, 2) ? query_get_text(&q, 2) : "every project",
                  admin_when(query_get_int(&q, 3), made),
                  admin_when(query_get_int(&q, 4), revoked));
    return rc;
}

/* Upkeep. */

int admin_migrate(struct store *s, const struct admin_args *a, struct err *e)
{
    (void) e; /* opening the store has applied what was missing, or failed */
    admin_say(a, "%s is up to date\n", store_data_path(s));
    return 0;
}

static void say_finding(void *ctx, bool is_problem, const char *text)
{
    const struct admin_args *a = (const struct admin_args *) ctx;

    plain_line(a->out, "%s%s", is_problem ? "damaged: " : "", text);
}

int admin_fsck(struct store *s, const struct admin_args *a, struct err *e)
{
    struct admin_args copy = *a;
    struct upkeep_fsck n;

    if (upkeep_fsck(s, say_finding, &copy, &n, e) < 0)
        return -1;
    admin_say(a, "%llu objects, %llu runs, %llu baselines, %llu orphans, %llu problems\n",
              (unsigned long long) n.blobs, (unsigned long long) n.runs,
              (unsigned long long) n.baselines, (unsigned long long) n.orphans,
              (unsigned long long) n.problems);
    return n.problems ? EXIT_INVALID : EXIT_OK;
}

int admin_gc(struct store *s, const struct admin_args *a, struct err *e)
{
    bool dry_run = admin_args_has(a, "dry-run");
    uint64_t keep_s = UPKEEP_KEEP_S;
    struct upkeep_gc n;
    bool given = false;

    if (need_number(a, "keep", UINT64_C(86400) * 365, &keep_s, &given, e) < 0 ||
        upkeep_gc(s, dry_run, (int64_t) keep_s, &n, e) < 0)
        return -1;
    admin_say(a, "%s %llu uploads without a run, %llu files, %llu bytes\n",
              dry_run ? "would remove" : "removed", (unsigned long long) n.blobs,
              (unsigned long long) n.objects, (unsigned long long) n.bytes);
    return 0;
}

int admin_backup(struct store *s, const struct admin_args *a, struct err *e)
{
    uint64_t objects = 0;

    if (upkeep_backup(s, a->words[0], &objects, e) < 0)
        return -1;
    admin_say(a, "%s holds the database and %llu objects\n", a->words[0],
              (unsigned long long) objects);
    return 0;
}

int admin_restore(struct store *s, const struct admin_args *a, struct err *e)
{
    uint64_t objects = 0;

    (void) s; /* there is none yet */
    if (upkeep_restore(a->words[0], admin_data(a), &objects, e) < 0)
        return -1;
    admin_say(a, "%s holds the database and %llu objects; run fsck next\n", admin_data(a),
              (unsigned long long) objects);
    return 0;
}

int admin_log(struct store *s, const struct admin_args *a, struct err *e)
{
    AUTO_STORE_READ struct store_read r = {.db = NULL};
    AUTO_QUERY struct query q = {.statement = NULL};
    char at[CLOCK_RFC3339_SIZE];
    uint64_t limit = 100;
    bool given = false;
    bool row = false;
    int rc;

    if (need_number(a, "limit", 1000000, &limit, &given, e) < 0 || store_read_open(s, &r, e) < 0)
        return -1;
    q = query_begin(r.db, SQL_LOG_LIST);
    query_int(&q, (int64_t) limit);
    while ((rc = query_step(&q, &row, e)) == 0 && row) {
        const char *const fields[] = {admin_when(query_get_int(&q, 0), at), query_get_text(&q, 1),
                                      query_get_text(&q, 2), query_get_text(&q, 3),
                                      query_get_text(&q, 4)};

        admin_row(a, fields, ARRAY_LEN(fields));
    }
    return rc;
}

int admin_config(struct store *s, const struct admin_args *a, struct err *e)
{
    struct config c = {.data = NULL};

    (void) s;
    if (config_parse(0, NULL, a->environment, &c, e) < 0)
        return -1;
    admin_say(a, "data\t%s\nlisten\t%s\nbase-url\t%s\ntemplates\t%s\nthreads\t%u\n", admin_data(a),
              c.listen, c.base_url ? c.base_url : "(http://listen)",
              c.templates ? c.templates : "(in the program)", c.threads);
    admin_say(a, "idle-timeout\t%u\nheader-timeout\t%u\ndrain-timeout\t%u\n", c.idle_s, c.header_s,
              c.drain_s);
    return 0;
}
