#include "server/store/manage.h"

#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/text.h"
#include "evidence/keyring.h"
#include "server/store/store_private.h"

#define ACTOR "admin"
#define TOKEN_PREFIX "clr_"
#define TOKEN_BYTES 32
#define REASON_MAX 1000

/* What both places that refuse one say. */
#define PROJECT_NAME "project name: " MANAGE_PROJECT_RULE

static int bad_name(struct err *e, const char *what, const char *name)
{
    return err_set(e, ERR_USAGE, "manage.name", "'%s' is no %s", name, what);
}

/* Projects. */

static int insert_project(struct db *d, const char *name, bool is_private, int64_t now_us,
                          struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_PROJECT_ADD);

    query_text(&q, name);
    query_int(&q, is_private);
    query_int(&q, now_us);
    if (query_run(&q, e) == 0)
        return 0;
    if (e->kind == ERR_CONFLICT)
        err_set(e, ERR_CONFLICT, "manage.exists", "project '%s' exists", name);
    return -1;
}

int manage_project_add(struct store *s, const char *name, bool is_private, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    int64_t now_us = clock_realtime_us();

    if (!text_is_project(name))
        return bad_name(e, PROJECT_NAME, name);
    if (store_write_open(s, &w, e) < 0 || insert_project(w.db, name, is_private, now_us, e) < 0 ||
        store_log_add(w.db, now_us, ACTOR, "project.add", name, is_private ? "private" : "public",
                      e) < 0)
        return -1;
    return store_write_close(&w, e);
}

/* "public → private, deadline 86400 s → 60 s": what a change changes. */
static void describe_change(struct buf *out, const struct store_project *before,
                            const struct manage_project *change)
{
    const char *tickets = before->tickets_required ? "required" : "optional";

    if (change->is_private && *change->is_private != before->is_private)
        buf_printf(out, "%s → %s", before->is_private ? "private" : "public",
                   *change->is_private ? "private" : "public");
    if (change->tickets && strcmp(change->tickets, tickets) != 0)
        buf_printf(out, "%stickets %s → %s", out->len ? ", " : "", tickets, change->tickets);
    if (change->deadline_s && *change->deadline_s != before->deadline_s)
        buf_printf(out, "%sdeadline %lld s → %lld s", out->len ? ", " : "",
                   (long long) before->deadline_s, (long long) *change->deadline_s);
    if (out->len == 0)
        buf_puts(out, "nothing: it was so");
}

int manage_project_set(struct store *s, const char *name, const struct manage_project *change,
                       struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    AUTO_BUF struct buf what = {.data = NULL};
    struct store_project p;

    if (change->tickets && strcmp(change->tickets, "optional") != 0 &&
        strcmp(change->tickets, "required") != 0)
        return err_set(e, ERR_USAGE, "manage.tickets",
                       "tickets are 'optional' or 'required', not '%s'", change->tickets);
    if (change->deadline_s && *change->deadline_s <= 0)
        return err_set(e, ERR_USAGE, "manage.deadline",
                       "a deadline is a number of seconds above 0");
    if (store_write_open(s, &w, e) < 0 || store_project_read(w.db, name, &p, e) < 0)
        return -1;
    {
        AUTO_QUERY struct query q = query_begin(w.db, SQL_PROJECT_SET);

        query_text(&q, name);
        if (change->is_private)
            query_int(&q, *change->is_private);
        else
            query_null(&q);
        query_text(&q, change->tickets);
        if (change->deadline_s)
            query_int(&q, *change->deadline_s);
        else
            query_null(&q);
        if (query_run(&q, e) < 0)
            return -1;
    }
    buf_init(&what, LIMIT_KIB(1));
    describe_change(&what, &p, change);
    if (buf_check(&what, e) < 0 ||
        store_log_add(w.db, clock_realtime_us(), ACTOR, "project.set", name, what.data, e) < 0)
        return -1;
    return store_write_close(&w, e);
}

/* Runners. */

/* A key names one runner in one class, for ever: what it signed before must stay attributable. */
static int check_key_free(struct db *d, const struct manage_runner *r, const char *keyid,
                          struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_RUNNER_BY_KEY);
    bool row = false;

    query_text(&q, keyid);
    if (query_step(&q, &row, e) < 0)
        return -1;
    if (!row || strcmp(query_get_text(&q, 0), r->name) == 0)
        return 0;
    return err_set(e, ERR_CONFLICT, "manage.key",
                   "this key belongs to runner '%s' (class %s%s), and a key names one runner for "
                   "ever: make a new key with 'cleanrun key gen' and add it as '%s'",
                   query_get_text(&q, 0), query_get_text(&q, 1),
                   query_get_int(&q, 2) ? ", revoked" : "", r->name);
}

static int insert_runner(struct db *d, const struct manage_runner *r, const char *pem,
                         const char *keyid, int64_t now_us, int64_t *out_id, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_RUNNER_ADD);

    query_text(&q, r->name);
    query_text(&q, r->machine_class);
    query_text(&q, pem);
    query_text(&q, keyid);
    query_int(&q, r->not_before_us);
    query_int(&q, r->not_after_us);
    query_int(&q, now_us);
    if (query_run(&q, e) < 0)
        return -1;
    *out_id = db_last_id(d);
    return 0;
}

/* "2026-01-01T00:00:00Z..-" */
static void write_validity(struct buf *out, int64_t not_before_us, int64_t not_after_us)
{
    char from[CLOCK_RFC3339_SIZE] = "-";
    char to[CLOCK_RFC3339_SIZE] = "-";

    if (not_before_us)
        clock_rfc3339(not_before_us, false, from);
    if (not_after_us)
        clock_rfc3339(not_after_us, false, to);
    buf_printf(out, "%s..%s", from, to);
}

static int check_validity(int64_t not_before_us, int64_t not_after_us, struct err *e)
{
    if (not_before_us && not_after_us && not_before_us >= not_after_us)
        return err_set(e, ERR_USAGE, "manage.validity", "the key's time ends before it begins");
    return 0;
}

/* Limits that are given and would not hold must not seem to. */
static int check_same_validity(const struct query *q, const struct manage_runner *r, struct err *e)
{
    AUTO_BUF struct buf held = {.data = NULL};
    int64_t not_before_us = query_get_int(q, 5);
    int64_t not_after_us = query_get_int(q, 6);

    if ((!r->not_before_us || r->not_before_us == not_before_us) &&
        (!r->not_after_us || r->not_after_us == not_after_us))
        return 0;
    buf_init(&held, LIMIT_KIB(1));
    write_validity(&held, not_before_us, not_after_us);
    if (buf_check(&held, e) < 0)
        return -1;
    return err_set(e, ERR_CONFLICT, "manage.exists",
                   "runner '%s' exists and its key is valid %s; adding it again does not change "
                   "that: 'cleanrun-server runner set %s [--not-before TIME] [--not-after TIME]' "
                   "does",
                   r->name, held.data, r->name);
}

/* *out_id 0: the name is free. */
static int known_runner(struct db *d, const struct manage_runner *r, const char *keyid,
                        int64_t *out_id, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_RUNNER_GET);
    bool row = false;

    *out_id = 0;
    query_text(&q, r->name);
    if (query_step(&q, &row, e) < 0)
        return -1;
    if (!row)
        return 0;
    if (query_get_int(&q, 4) != 0)
        return err_set(e, ERR_CONFLICT, "manage.revoked",
                       "runner '%s' is revoked: make a new key with 'cleanrun key gen' and add it "
                       "under a new name",
                       r->name);
    if (strcmp(query_get_text(&q, 3), keyid) != 0)
        return err_set(e, ERR_CONFLICT, "manage.exists",
                       "runner '%s' exists with another key (%s, not %s): add this key under a new "
                       "name",
                       r->name, query_get_text(&q, 3), keyid);
    if (strcmp(query_get_text(&q, 1), r->machine_class) != 0)
        return err_set(e, ERR_CONFLICT, "manage.exists",
                       "runner '%s' exists with this key in class '%s', not '%s', and a class does "
                       "not change: revoke it ('cleanrun-server runner revoke %s --reason TEXT'), "
                       "make a new key with 'cleanrun key gen' and add it under a new name",
                       r->name, query_get_text(&q, 1), r->machine_class, r->name);
    if (check_same_validity(&q, r, e) < 0)
        return -1;
    *out_id = query_get_int(&q, 0);
    return 0;
}

static int allow(struct db *d, int64_t runner, int64_t project, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_RUNNER_ALLOW);

    query_int(&q, runner);
    query_int(&q, project);
    return query_run(&q, e);
}

int manage_runner_add(struct store *s, const struct manage_runner *r, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    AUTO_PUBLIC_KEY struct public_key *key = NULL;
    AUTO_FREE char *pem = NULL;
    AUTO_BUF struct buf what = {.data = NULL};
    int64_t now_us = clock_realtime_us();
    struct store_project p;
    int64_t id = 0;

    if (!text_is_name(r->name))
        return bad_name(e, "runner name (letters, digits, . _ -, at most 64)", r->name);
    if (!text_is_slug(r->machine_class))
        return bad_name(e, "machine class ([a-z0-9][a-z0-9-]*, at most 63 characters)",
                        r->machine_class);
    if (check_validity(r->not_before_us, r->not_after_us, e) < 0)
        return -1;
    if (public_key_parse(r->key_pem, strlen(r->key_pem), &key, e) < 0 ||
        public_key_write(key, &pem, e) < 0)
        return -1;
    if (store_write_open(s, &w, e) < 0 || store_project_read(w.db, r->project, &p, e) < 0 ||
        known_runner(w.db, r, public_key_id(key), &id, e) < 0)
        return -1;
    if (id == 0 && (check_key_free(w.db, r, public_key_id(key), e) < 0 ||
                    insert_runner(w.db, r, pem, public_key_id(key), now_us, &id, e) < 0))
        return -1;
    buf_init(&what, LIMIT_KIB(1));
    buf_printf(&what, "%s, class %s, key %s", r->project, r->machine_class, public_key_id(key));
    if (r->not_before_us || r->not_after_us) {
        buf_puts(&what, ", valid ");
        write_validity(&what, r->not_before_us, r->not_after_us);
    }
    if (buf_check(&what, e) < 0 || allow(w.db, id, p.id, e) < 0 ||
        store_log_add(w.db, now_us, ACTOR, "runner.add", r->name, what.data, e) < 0)
        return -1;
    return store_write_close(&w, e);
}

/* The validity of a known runner that is not revoked, and what the change makes of it. */
static int change_validity(struct db *d, const char *name, const struct manage_validity *change,
                           struct buf *what, struct err *e)
{
    AUTO_QUERY struct query get = query_begin(d, SQL_RUNNER_GET);
    AUTO_QUERY struct query set = query_begin(d, SQL_RUNNER_SET);
    int64_t from_us;
    int64_t to_us;
    bool row = false;

    query_text(&get, name);
    if (query_step(&get, &row, e) < 0)
        return -1;
    if (!row)
        return err_set(e, ERR_NOTFOUND, "manage.runner", "there is no runner '%s'", name);
    if (query_get_int(&get, 4) != 0)
        return err_set(e, ERR_CONFLICT, "manage.revoked",
                       "runner '%s' is revoked: no time makes its key valid again", name);
    from_us = change->not_before_us ? *change->not_before_us : query_get_int(&get, 5);
    to_us = change->not_after_us ? *change->not_after_us : query_get_int(&get, 6);
    if (check_validity(from_us, to_us, e) < 0)
        return -1;
    buf_puts(what, "valid ");
    write_validity(what, query_get_int(&get, 5), query_get_int(&get, 6));
    buf_puts(what, " → ");
    write_validity(what, from_us, to_us);
    query_int(&set, query_get_int(&get, 0));
    query_int(&set, from_us);
    query_int(&set, to_us);
    return query_run(&set, e);
}

int manage_runner_set(struct store *s, const char *name, const struct manage_validity *change,
                      struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    AUTO_BUF struct buf what = {.data = NULL};

    buf_init(&what, LIMIT_KIB(1));
    if (store_write_open(s, &w, e) < 0 || change_validity(w.db, name, change, &what, e) < 0 ||
        buf_check(&what, e) < 0 ||
        store_log_add(w.db, clock_realtime_us(), ACTOR, "runner.set", name, what.data, e) < 0)
        return -1;
    return store_write_close(&w, e);
}

/* Since when a known runner is revoked; 0: it is not. */
static int revoked_since(struct db *d, const char *name, int64_t *out_us, struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_RUNNER_GET);
    bool row = false;

    query_text(&q, name);
    if (query_step(&q, &row, e) < 0)
        return -1;
    if (!row)
        return err_set(e, ERR_NOTFOUND, "manage.runner", "there is no runner '%s'", name);
    *out_us = query_get_int(&q, 4);
    return 0;
}

static int set_revoked(struct db *d, const char *name, int64_t since_us, const char *reason,
                       struct err *e)
{
    AUTO_QUERY struct query q = query_begin(d, SQL_RUNNER_REVOKE);

    query_text(&q, name);
    query_int(&q, since_us);
    query_text(&q, reason);
    return query_run(&q, e);
}

int manage_runner_revoke(struct store *s, const char *name, const char *reason, int64_t since_us,
                         struct manage_revoked *out, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    AUTO_BUF struct buf what = {.data = NULL};
    int64_t now_us = clock_realtime_us();
    struct manage_revoked r = {.since_us = since_us ? since_us : now_us};
    char at[CLOCK_RFC3339_SIZE];
    int64_t before_us = 0;

    if (!reason || !reason[0] || strlen(reason) > REASON_MAX)
        return err_set(e, ERR_USAGE, "manage.reason",
                       "a revocation needs a reason of at most %d bytes", REASON_MAX);
    clock_rfc3339(r.since_us, false, at);
    if (r.since_us > now_us)
        return err_set(e, ERR_USAGE, "manage.since",
                       "%s is in the future, and until then the key would be believed: revoke it "
                       "from now (without --since) or from an earlier time",
                       at);
    if (store_write_open(s, &w, e) < 0 || revoked_since(w.db, name, &before_us, e) < 0)
        return -1;
    r.stands = before_us != 0 && before_us <= r.since_us;
    if (!r.stands && set_revoked(w.db, name, r.since_us, reason, e) < 0)
        return -1;
    if (r.stands)
        r.since_us = before_us;
    clock_rfc3339(r.since_us, false, at);
    buf_init(&what, LIMIT_KIB(2));
    buf_printf(&what, "%s (%ssince %s)", reason, r.stands ? "stays revoked " : "", at);
    if (buf_check(&what, e) < 0 ||
        store_log_add(w.db, now_us, ACTOR, "runner.revoke", name, what.data, e) < 0 ||
        store_write_close(&w, e) < 0)
        return -1;
    if (out)
        *out = r;
    return 0;
}

/* Tokens. */

int manage_token_add(struct store *s, const char *name, unsigned scopes, const char *project,
                     manage_token_shown show, void *ctx, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    uint8_t random[TOKEN_BYTES];
    char token[MANAGE_TOKEN_SIZE] = TOKEN_PREFIX;
    struct store_project p = {.id = 0};
    struct digest hash;
    int64_t now_us = clock_realtime_us();

    if (!text_is_name(name))
        return bad_name(e, "token name (letters, digits, . _ -, at most 64)", name);
    if (random_bytes(random, sizeof random, e) < 0)
        return -1;
    text_hex(random, sizeof random, token + strlen(TOKEN_PREFIX));
    hash = digest_of(token, strlen(token));
    if (store_write_open(s, &w, e) < 0 || (project && store_project_read(w.db, project, &p, e) < 0))
        return -1;
    {
        AUTO_QUERY struct query q = query_begin(w.db, SQL_TOKEN_ADD);

        query_text(&q, name);
        query_digest(&q, &hash);
        query_int(&q, scopes);
        if (project)
            query_int(&q, p.id);
        else
            query_null(&q);
        query_int(&q, now_us);
        if (query_run(&q, e) < 0) {
            if (e->kind == ERR_CONFLICT)
                err_set(e, ERR_CONFLICT, "manage.exists", "token '%s' exists", name);
            return -1;
        }
    }
    if (store_log_add(w.db, now_us, ACTOR, "token.add", name, project ? project : "every project",
                      e) < 0 ||
        show(ctx, token, e) < 0)
        return -1;
    return store_write_close(&w, e);
}

int manage_token_revoke(struct store *s, const char *name, struct err *e)
{
    AUTO_STORE_WRITE struct store_write w = {.db = NULL};
    int64_t now_us = clock_realtime_us();

    if (store_write_open(s, &w, e) < 0)
        return -1;
    {
        AUTO_QUERY struct query q = query_begin(w.db, SQL_TOKEN_REVOKE);

        query_text(&q, name);
        query_int(&q, now_us);
        if (query_run(&q, e) < 0)
            return -1;
    }
    if (db_changes(w.db) != 1)
        return err_set(e, ERR_NOTFOUND, "manage.token",
                       "there is no token '%s' that is still valid", name);
    if (store_log_add(w.db, now_us, ACTOR, "token.revoke", name, "", e) < 0)
        return -1;
    return store_write_close(&w, e);
}
