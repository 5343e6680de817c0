/* Checks of a report: the failed ones by themselves, then all of them. Few stand in one table; many
 * are grouped by the part of the report that their names begin with, and what has no such name by
 * the kind of its rule. */
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "server/pages/view_parts.h"

#define GROUP_NAME 128
#define GROUPS_MAX 64
#define PLAIN_MAX 20    /* so many need no groups */
#define FAMILY_MIN 2    /* one check alone is no group */
#define FAMILY_LARGE 40 /* then the second part of the name counts too */

struct group {
    char name[GROUP_NAME];
    cJSON *node, *checks;
    unsigned all, failed;
};

static struct group *find_group(struct view *v, cJSON *groups, struct group *table, size_t *n,
                                size_t max, const char *name)
{
    struct group *g;

    for (size_t i = 0; i < *n; i++) {
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    if (*n == max)
        return &table[max - 1];
    g = &table[(*n)++];
    memcpy(g->name, name, strlen(name) + 1);
    g->node = json_add_object(&v->doc, groups, NULL);
    json_add_string(&v->doc, g->node, "name", g->name);
    g->checks = json_add_array(&v->doc, g->node, "checks");
    return g;
}

/* Length of the first `parts` parts of a name such as a.b.c, /a/b/c or a:b; 0 when it has no more
 * parts than that, or is prose. */
static size_t family_length(const char *name, unsigned parts)
{
    size_t n = name[0] == '/' ? 1 : 0;

    for (;; n++) {
        char c = name[n];

        if (c == '\0' || c == ' ' || n + 1 >= GROUP_NAME)
            return 0;
        if (strchr("./:", c) && --parts == 0)
            return c == ':' || (name[n + 1] && name[n + 1] != ' ') ? n : 0;
    }
}

/* How many checks begin with the same n bytes and a separator. */
static unsigned relatives(const cJSON *checks, const char *name, size_t n)
{
    unsigned count = 0;

    for (const cJSON *c = view_first(checks); c; c = view_next(c)) {
        const char *other = view_str(c, "name");

        if (strncmp(other, name, n) == 0 && other[n] && strchr("./:", other[n]))
            count++;
    }
    return count;
}

static const char *rule_kind(const char *rule)
{
    static const struct {
        const char *rule;
        const char *kind;
    } kinds[] = {
        {"==", "exact values"},
        {">=", "limits"},
        {"<=", "limits"},
        {"absent", "fields"},
        {"absolute_path", "fields"},
        {"recomputed", "recomputed from samples"},
        {"phases", "phases and windows"},
        {"bound_to_phases", "phases and windows"},
    };

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].rule, rule) == 0)
            return kinds[i].kind;
    }
    return "relations between fields";
}

/* "All checks" when they are few. */
static void group_name(const cJSON *checks, const cJSON *check, bool few, char out[GROUP_NAME])
{
    const char *name = view_str(check, "name");
    size_t n = few ? 0 : family_length(name, 1);
    unsigned count = n ? relatives(checks, name, n) : 0;
    const char *kind = few ? "All checks" : rule_kind(view_str(check, "operator"));

    if (count > FAMILY_LARGE) {
        size_t longer = family_length(name, 2);

        if (longer && relatives(checks, name, longer) >= FAMILY_MIN)
            n = longer;
    }
    if (count >= FAMILY_MIN) {
        memcpy(out, name, n);
        out[n] = '\0';
    } else {
        memcpy(out, kind, strlen(kind) + 1);
    }
}

static void add_check(struct view *v, cJSON *list, const cJSON *check)
{
    cJSON *o = json_add_object(&v->doc, list, NULL);
    const cJSON *limit = json_get(check, "limit");
    const cJSON *actual = json_get(check, "actual");
    bool passed = view_flag(check, "passed");
    bool recomputed = strcmp(view_str(check, "operator"), "recomputed") == 0;

    json_add_string(&v->doc, o, "name", view_str(check, "name"));
    json_add_string(&v->doc, o, "operator", view_str(check, "operator"));
    json_add_string(&v->doc, o, "error", view_str(check, "error"));
    view_word(v, o, "v", passed ? "PASS" : "FAIL");
    if (cJSON_IsNumber(limit))
        view_plain(v, o, "limit_n", limit->valuedouble);
    else if (recomputed && (!limit || cJSON_IsNull(limit)))
        json_add_string(&v->doc, o, "limit_text", "what the samples give");
    else if (limit && !cJSON_IsNull(limit))
        view_value(v, o, "limit_text", limit);
    if (cJSON_IsNumber(actual))
        view_plain(v, o, "actual_n", actual->valuedouble);
    else if (recomputed && cJSON_IsArray(actual) && !actual->child)
        json_add_string(&v->doc, o, "actual_text", "the same, nothing differs");
    else if (actual && !cJSON_IsNull(actual))
        view_value(v, o, "actual_text", actual);
}

static int compare_groups(const cJSON *a, const cJSON *b)
{
    return (int) view_flag(b, "bad") - (int) view_flag(a, "bad");
}

static int compare_checks(const cJSON *a, const cJSON *b)
{
    return (int) view_flag(json_get(a, "v"), "good") - (int) view_flag(json_get(b, "v"), "good");
}

static void finish_groups(struct view *v, cJSON *acceptance, cJSON *groups, struct group *table,
                          size_t n)
{
    unsigned all = 0;
    unsigned failed = 0;

    for (size_t i = 0; i < n; i++) {
        all += table[i].all;
        failed += table[i].failed;
        json_add_bool(&v->doc, table[i].node, "bad", table[i].failed > 0);
        view_format(v, table[i].node, "count", "%u of %u passed", table[i].all - table[i].failed,
                    table[i].all);
        view_word(v, table[i].node, "v", table[i].failed ? "FAIL" : "PASS");
        view_sort(v, table[i].checks, compare_checks);
    }
    view_sort(v, groups, compare_groups);
    json_add_bool(&v->doc, acceptance, "grouped", n > 1);
    view_format(v, acceptance, "n_all", "%u", all);
    view_format(v, acceptance, "n_failed", "%u", failed);
    json_add_bool(&v->doc, acceptance, "bad", failed > 0);
    if (failed)
        view_format(v, acceptance, "summary", "%u of %u check%s failed", failed, all,
                    all == 1 ? "" : "s");
    else
        view_format(v, acceptance, "summary", "%u of %u check%s passed", all, all,
                    all == 1 ? "" : "s");
}

void view_checks(struct view *v, cJSON *acceptance)
{
    const cJSON *checks = json_get(acceptance, "checks");
    AUTO_FREE struct group *table = calloc(GROUPS_MAX, sizeof(*table));
    bool few = view_count(checks) <= PLAIN_MAX;
    cJSON *groups;
    cJSON *failed;
    size_t n = 0;

    if (!table)
        v->doc.failed = true;
    if (!table || !cJSON_IsArray(checks))
        return;
    groups = json_add_array(&v->doc, acceptance, "groups");
    failed = json_add_array(&v->doc, acceptance, "failed_checks");
    for (const cJSON *c = view_first(checks); c; c = view_next(c)) {
        char name[GROUP_NAME];
        struct group *g;

        group_name(checks, c, few, name);
        g = find_group(v, groups, table, &n, GROUPS_MAX, name);
        g->all++;
        add_check(v, g->checks, c);
        if (!view_flag(c, "passed")) {
            g->failed++;
            add_check(v, failed, c);
        }
    }
    finish_groups(v, acceptance, groups, table, n);
}
