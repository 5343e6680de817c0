/* The gate page: its runs, who can judge them, the charts of its metrics. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "server/pages/view_parts.h"

static void add_attempt(struct view *v, cJSON *run)
{
    const cJSON *attempt = json_get(run, "attempt");
    double n;
    double of;

    if (view_double(attempt, "n", &n) && view_double(attempt, "of", &of) && of > 1)
        view_format(v, run, "attempt_text", "attempt %.0f of %.0f", n, of);
}

/* The newest value of a metric that is not charted. */
static void add_newest(struct view *v, cJSON *metric)
{
    const cJSON *newest = NULL;

    for (const cJSON *p = view_first(json_get(metric, "points")); p; p = view_next(p))
        newest = p;
    if (newest)
        json_add_copy(&v->doc, metric, "newest", newest);
    view_format(v, metric, "n_points", "%zu", view_count(json_get(metric, "points")));
}

/* Charts of the metrics that can fail a run; the others wait in a table until they are asked for,
 * and when nothing is gated all are charted. */
static void add_histories(struct view *v, cJSON *root, cJSON *history)
{
    bool all = v->ctx->all_metrics;
    bool gated = false;
    bool more = false;

    for (const cJSON *m = view_first(history); m; m = view_next(m))
        gated = gated || !cJSON_IsFalse(json_get(m, "gated"));
    for (cJSON *m = view_first(history); m; m = view_next(m)) {
        bool charted = all || !gated || !cJSON_IsFalse(json_get(m, "gated"));

        view_history(v, m);
        json_add_bool(&v->doc, m, "charted", charted);
        if (!charted)
            add_newest(v, m);
        more = more || !charted;
    }
    json_add_bool(&v->doc, root, "more_metrics", more);
}

/* How many baselines a class has, by what keeps them from judging. */
struct tally {
    size_t n, current, judging, damaged, revoked, legacy, retired, superseded;
};

static struct tally count_baselines(const cJSON *baselines, const char *class_or_null)
{
    struct tally t = {0};

    for (const cJSON *b = view_first(baselines); b; b = view_next(b)) {
        bool current = view_flag(b, "current");

        if (class_or_null && strcmp(view_str(b, "class"), class_or_null) != 0)
            continue;
        t.n++;
        t.current += current;
        t.damaged += current && view_flag(b, "damaged");
        t.revoked += current && view_str(b, "revoked_since")[0];
        t.judging += view_flag(b, "judges");
        t.legacy += !current && view_flag(b, "legacy");
        t.retired += !current && !view_flag(b, "legacy") && json_get(b, "retired") &&
                     !cJSON_IsNull(json_get(b, "retired"));
    }
    t.superseded = t.n - t.current - t.legacy - t.retired;
    return t;
}

/* "class metal: 2 imported (history never judges), 1 retired" */
static void add_because(struct view *v, cJSON *list, const char *machine_class, struct tally t)
{
    const struct {
        size_t n;
        const char *what;
    } parts[] = {{t.damaged, "damaged (it judges nobody until it is healed)"},
                 {t.revoked, "signed by a key that is revoked (it judges nobody)"},
                 {t.legacy, "imported (history never judges)"},
                 {t.retired, "retired"},
                 {t.superseded, "superseded"}};
    cJSON *o = json_add_object(&v->doc, list, NULL);
    AUTO_BUF struct buf text = {.data = NULL};

    buf_init(&text, VIEW_TEXT);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i].n > 0)
            buf_printf(&text, "%s%zu %s", text.len ? ", " : "", parts[i].n, parts[i].what);
    }
    view_format(v, o, "text", "class %s has %s", machine_class, text.len ? text.data : "none");
    json_add_string(&v->doc, o, "class", machine_class);
}

static bool is_named(const cJSON *list, const char *machine_class)
{
    for (const cJSON *o = view_first(list); o; o = view_next(o)) {
        if (strcmp(view_str(o, "class"), machine_class) == 0)
            return true;
    }
    return false;
}

/* The classes of these rows that no baseline judges. */
static void name_unjudged(struct view *v, cJSON *because, const cJSON *rows, const cJSON *baselines)
{
    for (const cJSON *r = view_first(rows); r; r = view_next(r)) {
        const char *machine_class = view_str(r, "class");
        struct tally t = count_baselines(baselines, machine_class);

        if (machine_class[0] && t.judging == 0 && !is_named(because, machine_class))
            add_because(v, because, machine_class, t);
    }
}

/* The newest run that a reviewer could promote, else the word RUN. */
static const char *promotable(const cJSON *runs)
{
    for (const cJSON *r = view_first(runs); r; r = view_next(r)) {
        const char *verdict = view_str(r, "verdict");

        if (strcmp(view_str(r, "mode"), "clean") == 0 && !view_flag(r, "dirty") &&
            (strcmp(verdict, "NON_COMPARABLE") == 0 || strcmp(verdict, "OK") == 0))
            return view_str(r, "run");
    }
    return "RUN";
}

/* Why a run of some class can't be compared here: imported, retired and damaged baselines are
 * reviewed, but judge nobody. */
static void add_no_judge(struct view *v, cJSON *root)
{
    const cJSON *baselines = json_get(root, "baselines");
    const cJSON *runs = json_get(root, "runs");
    struct tally all = count_baselines(baselines, NULL);
    cJSON *because = json_add_array(&v->doc, root, "unjudged");
    cJSON *o;

    if (all.n > 0)
        name_unjudged(v, because, runs, baselines);
    if (all.judging == 0)
        name_unjudged(v, because, baselines, baselines);
    for (cJSON *b = view_first(because); b; b = view_next(b))
        json_add_string(&v->doc, b, "sep", view_next(b) ? ";" : ".");
    if (view_count(because) == 0 && all.n > 0)
        return;
    o = json_add_object(&v->doc, root, "no_judge");
    json_add_string(&v->doc, o, "head",
                    all.n == 0 ? "No baseline is reviewed." : "No baseline can judge:");
    json_add_string(&v->doc, o, "promotable", promotable(runs));
}

void view_gate(struct view *v, cJSON *root)
{
    cJSON *runs = view_get(root, "runs");
    cJSON *history = view_get(root, "history");
    const cJSON *baselines = json_get(root, "baselines");

    for (cJSON *r = view_first(runs); r; r = view_next(r)) {
        add_attempt(v, r);
        json_add_bool(&v->doc, r, "diagnostic", strcmp(view_str(r, "mode"), "clean") != 0);
    }
    add_histories(v, root, history);
    view_reviews(v, root);
    add_no_judge(v, root);
    view_definition(v, view_get(root, "definition"));
    json_add_bool(&v->doc, root, "has_baselines", view_count(baselines) > 0);
    json_add_bool(&v->doc, root, "has_runs", view_count(runs) > 0);
    json_add_bool(&v->doc, root, "has_history", view_count(history) > 0);
    json_add_bool(&v->doc, root, "has_definition", cJSON_IsObject(json_get(root, "definition")));
    json_add_bool(&v->doc, root, "has_attempts",
                  view_count(json_get(root, "invalid_attempts")) > 0);
}
