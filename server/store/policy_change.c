#include "server/store/policy_change.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "server/store/store_private.h"

#define VALUE_SHOWN 60 /* of one side's value */
#define FIELDS_SHOWN 8

struct changes {
    struct buf *text;
    size_t n;
};

/* The value on one line, cut; "absent" for none. */
static void put_value(struct buf *out, const cJSON *value)
{
    AUTO_BUF struct buf text = {.data = NULL};

    buf_init(&text, LIMIT_JSON_DOCUMENT);
    if (value)
        json_write(&text, value, JSON_COMPACT);
    if (!value || text.failed)
        buf_puts(out, value ? "…" : "absent");
    else
        buf_put_cut(out, text.data, VALUE_SHOWN);
}

static void put_change(struct changes *c, const char *at, const cJSON *before, const cJSON *now)
{
    if (c->n++ >= FIELDS_SHOWN)
        return;
    buf_printf(c->text, "%s%s ", c->n > 1 ? "; " : "", at);
    put_value(c->text, before);
    buf_puts(c->text, " -> ");
    put_value(c->text, now);
}

static void put_changes(struct changes *c, const char *at, const cJSON *before, const cJSON *now,
                        unsigned depth);

/* Recursion is bounded by depth. */
/* NOLINTBEGIN(misc-no-recursion) */
static void put_member(struct changes *c, const char *at, const char *key, const cJSON *before,
                       const cJSON *now, unsigned depth)
{
    AUTO_BUF struct buf below = {.data = NULL};

    buf_init(&below, LIMIT_KIB(64));
    buf_printf(&below, "%s/%s", at, key);
    if (before && now && !below.failed)
        put_changes(c, below.data, before, now, depth + 1);
    else
        put_change(c, below.failed ? at : below.data, before, now);
}

/* The innermost parts that differ, of two lists element by element: one limit among many others
 * would not be seen. */
static void put_changes(struct changes *c, const char *at, const cJSON *before, const cJSON *now,
                        unsigned depth)
{
    bool lists = cJSON_IsArray(before) && cJSON_IsArray(now);
    bool objects = cJSON_IsObject(before) && cJSON_IsObject(now);
    const cJSON *member = NULL, *other = now->child;
    unsigned i = 0;
    char index[16];

    if (json_equal(before, now))
        return;
    if ((!lists && !objects) || depth == LIMIT_JSON_DEPTH) {
        put_change(c, at, before, now);
        return;
    }
    cJSON_ArrayForEach(member, before) {
        (void) snprintf(index, sizeof index, "%u", i++); /* fits */
        put_member(c, at, objects ? member->string : index, member,
                   objects ? json_get(now, member->string) : other, depth);
        other = other ? other->next : NULL;
    }
    for (other = objects ? now->child : other; other; other = other->next) {
        (void) snprintf(index, sizeof index, "%u", i++); /* fits */
        if (!objects || !json_get(before, other->string))
            put_member(c, at, objects ? other->string : index, NULL, other, depth);
    }
}
/* NOLINTEND(misc-no-recursion) */

static int refuse(const char *baseline, const cJSON *before, const cJSON *now, struct err *e)
{
    AUTO_BUF struct buf text = {.data = NULL};
    struct changes c = {.text = &text};

    buf_init(&text, LIMIT_KIB(64));
    put_changes(&c, "", before, now, 0);
    if (c.n > FIELDS_SHOWN)
        buf_printf(&text, "; and %zu more", c.n - FIELDS_SHOWN);
    if (buf_check(&text, e) < 0)
        return -1;
    return err_set(e, ERR_CONFLICT, "review.policy",
                   "this run's definition has another policy than %s, and it would judge from now "
                   "on; say --new-policy if that was reviewed as well: %s",
                   baseline, text.data);
}

int policy_change_check(struct db *db, const char *baseline, const struct definition *now,
                        struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_BASELINE_GET);
    AUTO_DEFINITION struct definition before = {.gate = NULL};
    const char *bytes;
    size_t len = 0;

    query_text(&q, baseline);
    if (query_one(&q, "such baseline", e) < 0)
        return -1;
    bytes = query_get_bytes(&q, BASE_DEFINITION, &len);
    if (!bytes || definition_parse(bytes, len, &before, e) < 0)
        return bytes ? -1
                     : err_set(e, ERR_INTERNAL, "review.policy", "baseline %s has no definition",
                               baseline);
    if (digest_equal(&before.policy_digest, &now->policy_digest))
        return 0;
    return refuse(baseline, before.policy, now->policy, e);
}
