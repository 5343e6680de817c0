/* Checks of counts that belong together: equal, sums, shares, zero_tree. */
#include "experiment/acceptance_check.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "base/num.h"
#include "experiment/pointer.h"

/* "/a == /b": the default name of a check over several paths. NULL: no memory. */
static char *joined(const cJSON *paths, const char *first, const char *between)
{
    AUTO_BUF struct buf b;
    const cJSON *path = NULL;

    buf_init(&b, LIMIT_JSON_DOCUMENT);
    buf_puts(&b, first);
    cJSON_ArrayForEach(path, paths)
        buf_printf(&b, "%s%s", b.len > 0 ? between : "", path->valuestring);
    return b.failed ? NULL : buf_take(&b, NULL);
}

static int check_equal(struct checks *c, const cJSON *entry, struct err *e)
{
    const cJSON *paths = json_get(entry, "paths");
    AUTO_FREE char *name = joined(paths, "", " == ");
    const cJSON *first = pointer_get(c->report, paths->child->valuestring);
    const cJSON *odd = NULL; /* the last value that is not like the first */
    const char *error = NULL;
    const cJSON *path = NULL;

    if (!name)
        return err_memory(e, "acceptance.memory");
    cJSON_ArrayForEach(path, paths) {
        const cJSON *value = pointer_get(c->report, path->valuestring);

        if (!check_is_count(value))
            error = value ? "not a JSON integer of 0 or more" : "absent";
        else if (check_is_count(first) && !num_same(value->valuedouble, first->valuedouble))
            odd = value;
    }
    checks_add(c, check_name(entry, name), "equal_counts", first,
               odd     ? odd
               : error ? NULL
                       : first,
               !odd && !error,
               error ? error
               : odd ? "the counts differ"
                     : NULL);
    return 0;
}

static int check_sum(struct checks *c, const cJSON *entry, struct err *e)
{
    const cJSON *parts = json_get(entry, "parts");
    const cJSON *total = pointer_get(c->report, check_text(entry, "total"));
    AUTO_FREE char *right = joined(parts, "", " + ");
    AUTO_FREE char *name = NULL;
    AUTO_JSON cJSON *sum = cJSON_CreateNumber(0);
    const cJSON *path = NULL;
    bool valid = check_is_count(total);
    bool passed = false;

    if (!right || !sum || asprintf(&name, "%s == %s", check_text(entry, "total"), right) < 0) {
        name = NULL;
        return err_memory(e, "acceptance.memory");
    }
    cJSON_ArrayForEach(path, parts) {
        const cJSON *part = pointer_get(c->report, path->valuestring);

        valid = valid && check_is_count(part);
        if (valid)
            sum->valuedouble += part->valuedouble;
    }
    passed = valid && num_same(sum->valuedouble, total->valuedouble);
    checks_add(c, check_name(entry, name), "sum_of", valid ? sum : NULL, total, passed,
               !valid   ? "a count is absent or not a JSON integer of 0 or more"
               : passed ? NULL
                        : "the parts make another total");
    return 0;
}

static int check_share(struct checks *c, const cJSON *entry, struct err *e)
{
    const cJSON *part = pointer_get(c->report, check_text(entry, "part"));
    const cJSON *of = pointer_get(c->report, check_text(entry, "of"));
    bool valid =
        cJSON_IsNumber(part) && cJSON_IsNumber(of) && part->valuedouble >= 0 && of->valuedouble > 0;
    AUTO_JSON cJSON *share = cJSON_CreateNumber(valid ? part->valuedouble / of->valuedouble : 0);
    AUTO_FREE char *name = NULL;

    if (!share ||
        asprintf(&name, "%s / %s", check_text(entry, "part"), check_text(entry, "of")) < 0) {
        name = NULL;
        return err_memory(e, "acceptance.memory");
    }
    checks_add(c, check_name(entry, name), "share_of", json_get(entry, "max"), valid ? share : NULL,
               valid && share->valuedouble <= check_number(entry, "max", 0),
               valid ? NULL : "a number is absent, negative, or nothing to take a share of");
    return 0;
}

struct counters {
    double sum;
    size_t leaves;
    const char *error; /* of the first leaf that is no counter or not zero */
};

/* Reports are at most LIMIT_JSON_DEPTH deep. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void count_leaves(const cJSON *j, size_t depth, struct counters *out)
{
    const cJSON *item = NULL;

    if (cJSON_IsObject(j) || cJSON_IsArray(j)) {
        if (depth > LIMIT_JSON_DEPTH)
            out->error = "the tree is too deep";
        else
            cJSON_ArrayForEach(item, j)
                count_leaves(item, depth + 1, out);
        return;
    }
    out->leaves++;
    if (!check_is_count(j)) {
        out->error = "a leaf is not a JSON integer of 0 or more";
        return;
    }
    out->sum += j->valuedouble;
}

static int check_zero_tree(struct checks *c, const cJSON *entry, struct err *e)
{
    const char *path = check_text(entry, "path");
    const cJSON *tree = pointer_get(c->report, path);
    struct counters found = {0};
    AUTO_JSON cJSON *zero = cJSON_CreateNumber(0);
    AUTO_JSON cJSON *sum = NULL;

    if (tree)
        count_leaves(tree, 0, &found);
    if (!tree)
        found.error = "absent";
    else if (!found.error && found.leaves == 0)
        found.error = "no counter at all";
    sum = cJSON_CreateNumber(found.sum);
    if (!zero || !sum)
        return err_memory(e, "acceptance.memory");
    checks_add(c, check_name(entry, path), "zero_tree", zero, found.error ? NULL : sum,
               !found.error && num_same(found.sum, 0), found.error);
    return 0;
}

int checks_counts(struct checks *c, const cJSON *accept, struct err *e)
{
    static const struct {
        const char *key;
        int (*check)(struct checks *c, const cJSON *entry, struct err *e);
    } families[] = {{"equal", check_equal},
                    {"sums", check_sum},
                    {"shares", check_share},
                    {"zero_tree", check_zero_tree}};

    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        const cJSON *entry = NULL;

        cJSON_ArrayForEach(entry, json_get(accept, families[i].key))
            if (families[i].check(c, entry, e) < 0)
                return -1;
    }
    return 0;
}
