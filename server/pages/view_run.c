/* The run page: three stages that fail for different people, checks grouped, charts. */
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "server/pages/view_parts.h"

#define GROUP_NAME 128

static const char *evidence_word(const cJSON *evidence)
{
    const cJSON *stages = json_get(evidence, "stages");
    bool ok = view_count(stages) > 0;

    if (view_flag(evidence, "damaged"))
        return "DAMAGED";
    for (const cJSON *s = view_first(stages); s; s = view_next(s))
        ok = ok && strcmp(view_str(s, "result"), "ok") == 0;
    return ok ? "VALID" : "INVALID";
}

static const char *failed_stage(const cJSON *evidence)
{
    const cJSON *stages = json_get(evidence, "stages");

    for (const cJSON *s = view_first(stages); s; s = view_next(s)) {
        if (strcmp(view_str(s, "result"), "failed") == 0)
            return view_str(s, "detail");
    }
    return "";
}

/* The part before the first separator: "results" of "/results/x" and of "results.x". */
static void group_name(const char *check, char out[GROUP_NAME])
{
    size_t n = 0;

    if (check[0] == '/')
        check++;
    while (check[n] && !strchr("./ ", check[n]) && n + 1 < GROUP_NAME) {
        out[n] = check[n];
        n++;
    }
    out[n] = '\0';
}

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

static void add_check(struct view *v, cJSON *list, const cJSON *check)
{
    cJSON *o = json_add_object(&v->doc, list, NULL);
    const cJSON *limit = json_get(check, "limit");
    const cJSON *actual = json_get(check, "actual");
    bool passed = view_flag(check, "passed");

    json_add_string(&v->doc, o, "name", view_str(check, "name"));
    json_add_string(&v->doc, o, "operator", view_str(check, "operator"));
    json_add_string(&v->doc, o, "error", view_str(check, "error"));
    view_word(v, o, "v", passed ? "PASS" : "FAIL");
    if (cJSON_IsNumber(limit))
        view_plain(v, o, "limit_n", limit->valuedouble);
    else if (limit && !cJSON_IsNull(limit))
        view_value(v, o, "limit_text", limit);
    if (cJSON_IsNumber(actual))
        view_plain(v, o, "actual_n", actual->valuedouble);
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
    view_format(v, acceptance, "n_all", "%u", all);
    view_format(v, acceptance, "n_failed", "%u", failed);
    json_add_bool(&v->doc, acceptance, "bad", failed > 0);
    if (failed)
        view_format(v, acceptance, "summary", "%u of %u checks failed", failed, all);
    else
        view_format(v, acceptance, "summary", "%u of %u checks passed", all, all);
}

/* The failed ones first and alone; then all, by the part of the report that they look at. */
static void add_acceptance(struct view *v, cJSON *root)
{
    enum { GROUPS_MAX = 64 };
    cJSON *acceptance = view_get(root, "acceptance");
    const cJSON *checks = json_get(acceptance, "checks");
    AUTO_FREE struct group *table = calloc(GROUPS_MAX, sizeof(*table));
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

        group_name(view_str(c, "name"), name);
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

static void add_numbers(struct view *v, cJSON *w, const char *const *keys, size_t n,
                        const char *unit)
{
    for (size_t i = 0; i < n; i++) {
        char name[GROUP_NAME];
        size_t len = strlen(keys[i]);
        double value;

        if (!view_double(w, keys[i], &value) || len + 3 > sizeof(name))
            continue;
        memcpy(name, keys[i], len);
        memcpy(name + len, "_n", 3);
        view_number(v, w, name, value, view_unit_for(value, unit));
    }
}

static void add_windows(struct view *v, cJSON *root)
{
    static const char *const rates[] = {"endpoint_mb_per_hour", "theil_sen_mb_per_hour",
                                        "ols_mb_per_hour", "growth_mb_per_hour"};
    static const char *const seconds[] = {"requested_coverage_secs", "actual_coverage_secs",
                                          "separation_secs", "requested_start_secs",
                                          "requested_end_secs"};
    static const char *const sizes[] = {"start_median_mb", "end_median_mb", "retained_mb"};
    static const char *const counts[] = {"sample_count"};
    cJSON *windows = view_get(root, "windows");

    for (cJSON *w = view_first(windows); w; w = view_next(w)) {
        add_numbers(v, w, rates, ARRAY_LEN(rates), "MB/h");
        add_numbers(v, w, seconds, ARRAY_LEN(seconds), "s");
        add_numbers(v, w, sizes, ARRAY_LEN(sizes), "MB");
        add_numbers(v, w, counts, ARRAY_LEN(counts), "");
    }
    json_add_bool(&v->doc, root, "has_windows", view_count(windows) > 0);
}

/* Scalars and lists of machine.facts as rows. */
static void add_facts(struct view *v, cJSON *root)
{
    const cJSON *facts = json_get(json_get(json_get(root, "manifest"), "machine"), "facts");
    cJSON *rows = json_add_array(&v->doc, root, "facts");

    for (const cJSON *f = cJSON_IsObject(facts) ? facts->child : NULL; f; f = f->next) {
        cJSON *row = json_add_object(&v->doc, rows, NULL);

        json_add_string(&v->doc, row, "name", f->string);
        view_value(v, row, "text", f);
    }
    json_add_bool(&v->doc, root, "has_facts", rows && rows->child);
}

static void add_mapped(struct view *v, cJSON *root)
{
    const cJSON *source = json_get(json_get(root, "manifest"), "source");
    const cJSON *executable = json_get(json_get(root, "manifest"), "executable");

    json_add_bool(&v->doc, root, "has_executable", cJSON_IsObject(executable));
    json_add_bool(&v->doc, root, "source_unchanged", view_flag(source, "unchanged"));
    json_add_bool(&v->doc, root, "has_source", cJSON_IsObject(source));
    json_add_bool(&v->doc, root, "has_files", view_count(json_get(root, "files")) > 0);
    view_format(v, root, "n_files", "%zu", view_count(json_get(root, "files")));
}

/* Damage and broken evidence come before whatever was decided when it was whole. */
static void add_answer(struct view *v, cJSON *root)
{
    const cJSON *evidence = json_get(root, "evidence");
    const cJSON *verdict = json_get(root, "verdict");
    const char *word = evidence_word(evidence);
    bool clean = strcmp(view_str(root, "mode"), "clean") == 0;

    json_add_string(&v->doc, root, "evidence_detail", failed_stage(evidence));
    view_word(v, root, "evidence_v", word);
    json_add_bool(&v->doc, root, "damaged", strcmp(word, "DAMAGED") == 0);
    json_add_bool(&v->doc, root, "evidence_bad", strcmp(word, "VALID") != 0);
    if (strcmp(word, "VALID") != 0)
        view_word(v, root, "answer", word);
    else if (!clean || !cJSON_IsObject(verdict))
        view_word(v, root, "answer", "NO_VERDICT");
    else
        view_word(v, root, "answer", view_str(verdict, "verdict"));
    json_add_bool(&v->doc, root, "diagnostic", !clean);
    json_add_bool(&v->doc, root, "build_only", strcmp(view_str(root, "status"), "BUILD_ONLY") == 0);
    json_add_bool(&v->doc, root, "has_verdict", cJSON_IsObject(verdict));
    json_add_bool(&v->doc, root, "has_acceptance", cJSON_IsObject(json_get(root, "acceptance")));
    json_add_bool(&v->doc, root, "has_audit", cJSON_IsObject(json_get(verdict, "audit")));
}

void view_run(struct view *v, cJSON *root)
{
    add_answer(v, root);
    add_acceptance(v, root);
    add_windows(v, root);
    add_facts(v, root);
    add_mapped(v, root);
    view_timeline(v, root);
    view_series(v, root);
    view_reasons(
        v, root, json_get(json_get(root, "verdict"), "reasons"),
        json_get(json_get(json_get(json_get(root, "verdict"), "audit"), "identity"), "different"));
}
