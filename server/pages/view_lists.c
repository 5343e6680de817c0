/* Home, project, gate, commit, baselines, problems. */
#include <string.h>

#include "base/clock.h"
#include "base/json_in.h"
#include "server/pages/view_parts.h"

#define OFFLINE_US ((int64_t) 60 * 1000000)

static int compare_verdicts(const cJSON *a, const cJSON *b)
{
    return view_rank(view_str(a, "verdict")) - view_rank(view_str(b, "verdict"));
}

/* "1 REGRESSION, 2 OK": zero counts left out. */
static void add_totals(struct view *v, cJSON *root)
{
    const cJSON *totals = json_get(root, "totals");
    cJSON *list = json_add_array(&v->doc, root, "total_list");

    for (const cJSON *t = cJSON_IsObject(totals) ? totals->child : NULL; t; t = t->next) {
        cJSON *o;

        if (!cJSON_IsNumber(t) || !(t->valuedouble > 0))
            continue;
        o = json_add_object(&v->doc, list, NULL);
        json_add_string(&v->doc, o, "verdict", t->string);
        view_word(v, o, "v", t->string);
        view_plain(v, o, "n", t->valuedouble);
    }
    view_sort(v, list, compare_verdicts);
}

static void add_recent(struct view *v, cJSON *row)
{
    const cJSON *recent = json_get(row, "recent");
    cJSON *list = json_add_array(&v->doc, row, "recent_v");

    for (const cJSON *w = view_count(recent) ? recent->child : NULL; w; w = w->next) {
        cJSON *o = json_add_object(&v->doc, list, NULL);

        view_word(v, o, "v", cJSON_IsString(w) && w->valuestring ? w->valuestring : "NO_VERDICT");
    }
    json_add_bool(&v->doc, row, "has_recent", list && list->child);
}

static void add_gates(struct view *v, cJSON *root)
{
    cJSON *gates = view_get(root, "gates");

    for (cJSON *g = view_first(gates); g; g = view_next(g)) {
        add_recent(v, g);
        if (!view_str(g, "gate_url")[0] && view_str(g, "project")[0])
            view_format(v, g, "gate_url", "%s/p/%s/%s", v->prefix, view_str(g, "project"),
                        view_str(g, "gate"));
    }
    view_sort(v, gates, compare_verdicts);
    json_add_bool(&v->doc, root, "has_gates", view_count(gates) > 0);
}

static const char *done_word(const char *action, bool first)
{
    static const struct {
        const char *action, *word;
    } words[] = {{"approve", "approved"},
                 {"import", "imported"},
                 {"restore", "approved again"},
                 {"retire", "retired"}};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(words[i].action, action) == 0)
            return words[i].word;
    }
    return first ? "reviewed" : action;
}

/* Documents of before the history was told have the first review only. */
static void add_reviews(struct view *v, cJSON *baseline)
{
    cJSON *list = json_add_array(&v->doc, baseline, "review_list");
    const cJSON *reviews = json_get(baseline, "reviews");
    cJSON *o;

    for (const cJSON *r = view_first(reviews); r; r = view_next(r)) {
        o = json_add_object(&v->doc, list, NULL);
        json_add_string(&v->doc, o, "done", done_word(view_str(r, "action"), false));
        view_time(v, o, "at_t", view_str(r, "at"));
        json_add_string(&v->doc, o, "by", view_str(r, "by"));
        json_add_string(&v->doc, o, "reason", view_str(r, "reason"));
    }
    if (view_count(reviews) > 0)
        return;
    o = json_add_object(&v->doc, list, NULL);
    json_add_string(&v->doc, o, "done", done_word("", true));
    view_time(v, o, "at_t", view_str(baseline, "at"));
    json_add_string(&v->doc, o, "by", view_str(baseline, "reviewer"));
    json_add_string(&v->doc, o, "reason", view_str(baseline, "reason"));
}

void view_reviewed(struct view *v, cJSON *baseline)
{
    add_reviews(v, baseline);
    if (view_str(baseline, "revoked_since")[0])
        view_time(v, baseline, "revoked_t", view_str(baseline, "revoked_since"));
    json_add_bool(&v->doc, baseline, "judges",
                  view_flag(baseline, "current") && !view_flag(baseline, "damaged") &&
                      !view_str(baseline, "revoked_since")[0]);
}

void view_reviews(struct view *v, cJSON *root)
{
    for (cJSON *b = view_first(json_get(root, "baselines")); b; b = view_next(b))
        view_reviewed(v, b);
}

/* Whether what the runner's key signs now is believed, with the time that decides it. */
static void add_key_state(struct view *v, cJSON *runner)
{
    const struct {
        const char *key, *word, *css;
        bool reached; /* it counts when the time has come; else while it has not */
    } states[] = {{"revoked_since", "revoked since", "v-bad", true},
                  {"valid_to", "expired", "v-ref", true},
                  {"valid_from", "not valid before", "v-ref", false}};
    cJSON *o = json_add_object(&v->doc, runner, "key_state");

    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        const char *stamp = view_str(runner, states[i].key);
        int64_t us = 0;

        if (!clock_parse_rfc3339(stamp, &us) || (us <= v->ctx->now_us) != states[i].reached)
            continue;
        json_add_string(&v->doc, o, "word", states[i].word);
        json_add_string(&v->doc, o, "css", states[i].css);
        view_time(v, o, "at_t", stamp);
        return;
    }
    json_add_string(&v->doc, o, "word", "valid");
    json_add_string(&v->doc, o, "css", "v-ok");
}

static void add_runners(struct view *v, cJSON *root)
{
    cJSON *runners = view_get(root, "runners");

    for (cJSON *r = view_first(runners); r; r = view_next(r)) {
        int64_t us = 0;

        add_key_state(v, r);
        json_add_bool(&v->doc, r, "seen_lately",
                      clock_parse_rfc3339(view_str(r, "last_seen"), &us) &&
                          v->ctx->now_us - us < OFFLINE_US);
    }
    json_add_bool(&v->doc, root, "has_runners", view_count(runners) > 0);
}

void view_home(struct view *v, cJSON *root)
{
    add_totals(v, root);
    add_gates(v, root);
    add_runners(v, root);
}

void view_project(struct view *v, cJSON *root)
{
    add_gates(v, root);
    json_add_bool(&v->doc, root, "has_commits", view_count(json_get(root, "commits")) > 0);
    json_add_bool(&v->doc, root, "has_attempts",
                  view_count(json_get(root, "unsigned_attempts")) > 0);
}

void view_definition(struct view *v, cJSON *definition)
{
    cJSON *metrics = view_get(definition, "metrics");
    double count;

    for (cJSON *m = view_first(metrics); m; m = view_next(m)) {
        char text[VIEW_TEXT];
        double value;
        bool lower = strcmp(view_str(m, "worse"), "lower") == 0;
        struct quantity_unit unit = {.divisor = 1, .name = view_str(m, "unit")};

        if (view_double(m, "tolerance_pct", &value)) {
            quantity_percent(lower ? -value : value, value, v->text, text);
            json_add_string(&v->doc, m, "tolerance_text", text);
        }
        if (view_double(m, "floor", &value))
            view_number(v, m, "floor_n", value, quantity_unit(value, unit.name));
        json_add_string(&v->doc, m, "better", lower ? "higher is better" : "lower is better");
    }
    if (view_double(definition, "acceptance_count", &count)) {
        view_plain(v, definition, "acceptance_n", count);
        json_add_bool(&v->doc, definition, "acceptance_many", count < 1 || count > 1);
    }
    if (cJSON_IsObject(definition))
        json_add_bool(&v->doc, definition, "has_metrics", view_count(metrics) > 0);
}

/* The description in full: a forge takes 140 characters, a page has room. */
static void add_whole_description(struct view *v, cJSON *root, const cJSON *gates)
{
    static const char more[] = "…";
    const char *word = view_str(root, "verdict");
    const char *cut = view_str(root, "description");
    const cJSON *worst = NULL;
    const char *rest;
    size_t len = strlen(cut);
    size_t n = 0;

    for (const cJSON *g = view_first(gates); g; g = view_next(g)) {
        if (strcmp(view_str(g, "verdict"), word) != 0)
            continue;
        worst = worst ? worst : g;
        n++;
    }
    rest = worst ? strchr(view_str(worst, "description"), ' ') : NULL;
    if (!rest || len < sizeof more || strcmp(cut + len - (sizeof more - 1), more) != 0) {
        json_add_string(&v->doc, root, "say", cut);
        return;
    }
    view_format(v, root, "say", "%s %zu of %zu gate%s: %s%s", word, n, view_count(gates),
                view_count(gates) == 1 ? "" : "s", view_str(worst, "gate"), rest);
}

void view_commit(struct view *v, cJSON *root)
{
    cJSON *gates = view_get(root, "gates");

    add_whole_description(v, root, gates);

    for (cJSON *g = view_first(gates); g; g = view_next(g))
        json_add_bool(&v->doc, g, "several", view_count(json_get(g, "attempts")) > 1);
    view_sort(v, gates, compare_verdicts);
    json_add_bool(&v->doc, root, "has_gates", view_count(gates) > 0);
}

void view_problem(struct view *v, cJSON *root)
{
    double status;

    if (view_double(root, "status", &status))
        view_plain(v, root, "status_n", status);
    view_reasons(v, root, json_get(root, "reasons"), NULL);
    json_add_bool(&v->doc, root, "has_stages", view_count(json_get(root, "stages")) > 0);
}
