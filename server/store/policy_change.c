#include "server/store/policy_change.h"

#include "base/buf.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "server/store/store_private.h"

#define VALUE_SHOWN 80 /* of one side's value */
#define FIELDS_SHOWN 8

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

static int refuse(const char *baseline, const cJSON *rows, struct err *e)
{
    AUTO_BUF struct buf text = {.data = NULL};
    const cJSON *row = NULL;
    int n = 0;

    buf_init(&text, LIMIT_KIB(64));
    cJSON_ArrayForEach(row, rows) {
        if (n++ >= FIELDS_SHOWN)
            continue;
        buf_printf(&text, "%s%s ", n > 1 ? "; " : "", json_get(row, "field")->valuestring);
        put_value(&text, json_get(row, "baseline"));
        buf_puts(&text, " -> ");
        put_value(&text, json_get(row, "current"));
    }
    if (n > FIELDS_SHOWN)
        buf_printf(&text, "; and %d more", n - FIELDS_SHOWN);
    if (buf_check(&text, e) < 0)
        return -1;
    return err_set(e, ERR_CONFLICT, "review.policy",
                   "this run's definition has another policy than %s, and it would judge from now "
                   "on: %s. Say --new-policy if that was reviewed as well",
                   baseline, text.data);
}

int policy_change_check(struct db *db, const char *baseline, const struct definition *now,
                        struct err *e)
{
    AUTO_QUERY struct query q = query_begin(db, SQL_BASELINE_GET);
    AUTO_DEFINITION struct definition before = {.gate = NULL};
    AUTO_JSON cJSON *rows = NULL;
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
    return definition_policy_diff(&before, now, &rows, e) < 0 ? -1 : refuse(baseline, rows, e);
}
