/* Comparison, refusal and the reasons that every page may show. */
#include <stdlib.h>
#include <string.h>

#include "audit/advice.h"
#include "audit/comparison_text.h"
#include "audit/verdict.h"
#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "server/pages/view_parts.h"

static void add_put(struct view *v, cJSON *c, const char *key, const struct comparison_text *t,
                    void (*put)(struct buf *, const struct comparison_text *))
{
    AUTO_BUF struct buf b = {0};

    buf_init(&b, LIMIT_KIB(64));
    put(&b, t);
    if (b.failed)
        v->doc.failed = true;
    else
        json_add_string(&v->doc, c, key, b.data ? b.data : "");
}

static void add_comparison(struct view *v, cJSON *c)
{
    struct comparison_text t;
    double value;

    comparison_text(c, v->text, &t);
    if (view_double(c, "baseline", &value))
        view_number_as(v, c, "before", value, t.before, t.unit);
    if (view_double(c, "current", &value))
        view_number_as(v, c, "after", value, t.after, t.unit);
    if (t.has_change && view_double(c, "delta_pct", &value)) {
        cJSON *o = json_add_object(&v->doc, c, "change");

        json_add_double(&v->doc, o, "value", value);
        json_add_string(&v->doc, o, "text", t.change);
    } else {
        add_put(v, c, "change_text", &t, comparison_put_change);
    }
    add_put(v, c, "limit_text", &t, comparison_put_limit);
    json_add_string(&v->doc, c, "label_shown", t.label);
    json_add_string(&v->doc, c, "better",
                    strcmp(view_str(c, "worse"), "lower") == 0 ? "higher is better"
                                                               : "lower is better");
}

/* Gated before informational, regressions before all; then by how much of the limit is used. */
static int compare_badness(const cJSON *a, const cJSON *b)
{
    int rank_a = view_rank(view_str(a, "verdict"));
    int rank_b = view_rank(view_str(b, "verdict"));
    double x = comparison_used(a);
    double y = comparison_used(b);

    if (rank_a != rank_b)
        return rank_a < rank_b ? -1 : 1;
    return x > y ? -1 : x < y;
}

static void count_comparisons(struct view *v, cJSON *audit, const cJSON *comparisons)
{
    unsigned bad = 0;
    unsigned gated = 0;
    unsigned all = 0;

    for (const cJSON *c = view_first(comparisons); c; c = view_next(c)) {
        all++;
        gated += view_flag(c, "gated");
        bad += strcmp(view_str(c, "verdict"), "regression") == 0;
    }
    view_format(v, audit, "n_comparisons", "%u", all);
    view_format(v, audit, "n_gated", "%u", gated);
    view_format(v, audit, "n_regressions", "%u", bad);
}

static void name_worst(struct view *v, cJSON *root, const cJSON *worst)
{
    AUTO_BUF struct buf words = {0};
    struct comparison_text t;

    buf_init(&words, LIMIT_KIB(64));
    comparison_text(worst, v->text, &t);
    comparison_put(&words, &t);
    view_format(v, root, "say_strong", "%s %s.", t.label, words.data ? words.data : "");
}

/* Why acceptance failed, with the first names. */
static void name_failed(struct view *v, cJSON *root)
{
    enum { NAMED = 3 };
    const cJSON *checks = json_get(json_get(root, "acceptance"), "checks");
    AUTO_BUF struct buf names = {0};
    size_t bad = 0;

    buf_init(&names, LIMIT_KIB(64));
    for (const cJSON *c = view_first(checks); c; c = view_next(c)) {
        if (view_flag(c, "passed"))
            continue;
        if (bad < NAMED)
            buf_printf(&names, "%s%s", bad ? ", " : "", view_str(c, "name"));
        bad++;
    }
    view_format(v, root, "say_strong", "Acceptance failed, %zu of %zu check%s: %s%s.", bad,
                view_count(checks), view_count(checks) == 1 ? "" : "s",
                names.data ? names.data : "", bad > NAMED ? ", …" : "");
}

static void add_saying(struct view *v, cJSON *root, const cJSON *audit)
{
    const cJSON *comparisons = json_get(audit, "comparisons");
    const cJSON *worst = cJSON_IsArray(comparisons) ? comparisons->child : NULL;
    const char *bad = view_str(audit, "n_regressions");
    const char *gated = view_str(audit, "n_gated");
    const char *plural = strcmp(gated, "1") == 0 ? "" : "s";

    if (strcmp(view_str(root, "verdict"), "FAIL") == 0) {
        name_failed(v, root);
        if (worst)
            view_format(v, root, "say", "%s of %s gated metric%s beyond the limit. ", bad, gated,
                        plural);
    } else if (worst && strcmp(bad, "0") != 0) {
        name_worst(v, root, worst);
        view_format(v, root, "say", "%s of %s gated metric%s beyond the limit. ", bad, gated,
                    plural);
    } else if (worst) {
        if (plural[0])
            view_format(v, root, "say_strong", "All %s gated metrics are within their limits.",
                        gated);
        else
            json_add_string(&v->doc, root, "say_strong", "The gated metric is within its limit.");
    }
}

static void add_identity(struct view *v, cJSON *audit)
{
    cJSON *identity = view_get(audit, "identity");
    cJSON *equal = view_get(identity, "equal");
    cJSON *inferred = view_get(identity, "inferred");

    for (cJSON *f = view_first(equal); f; f = view_next(f)) {
        if (cJSON_IsObject(f))
            view_value(v, f, "value_text", json_get(f, "value"));
    }
    for (cJSON *r = view_first(inferred); r; r = view_next(r))
        view_format(v, r, "n_fields", "%zu", view_count(json_get(r, "fields")));
    json_add_bool(&v->doc, audit, "has_equal", view_count(equal) > 0);
    json_add_bool(&v->doc, audit, "has_inferred", view_count(inferred) > 0);
    json_add_bool(&v->doc, audit, "has_not_recorded",
                  view_count(json_get(identity, "not_recorded")) > 0);
    view_format(v, audit, "n_equal", "%zu", view_count(equal));
    view_format(v, audit, "n_different", "%zu", view_count(view_get(identity, "different")));
}

/* What was seen but not compared: never left out silently. */
static void add_coverage(struct view *v, cJSON *audit)
{
    static const char *const lists[] = {"baseline_only", "current_only", "not_compared",
                                        "unreadable", "ungated"};
    const cJSON *coverage = json_get(audit, "coverage");
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        n += view_count(json_get(coverage, lists[i]));
    view_format(v, audit, "n_not_compared", "%zu", n);
    json_add_bool(&v->doc, audit, "has_not_compared", n > 0);
}

/* The definition's own words on why a field counts, where the audit carries them. */
static const char *why_of(const cJSON *different, const cJSON *reason)
{
    for (const cJSON *d = view_first(different); d; d = view_next(d)) {
        if (strcmp(view_str(d, "field"), view_str(reason, "field")) == 0 && view_str(d, "why")[0])
            return view_str(d, "why");
    }
    return view_str(reason, "text");
}

/* What of a list differs, in words: [{change, text}], and how many more there are. */
static void add_elements(struct view *v, cJSON *o, const cJSON *reason)
{
    const cJSON *omitted = json_get(reason, "elements_omitted");
    cJSON *list = json_add_array(&v->doc, o, "elements");
    size_t skip = strlen(view_str(reason, "field"));

    for (const cJSON *d = view_first(json_get(reason, "elements")); d; d = view_next(d)) {
        cJSON *row = json_add_object(&v->doc, list, NULL);
        const cJSON *baseline = json_get(d, "baseline");
        const cJSON *current = json_get(d, "current");
        bool mixed = baseline && current && cJSON_IsString(baseline) != cJSON_IsString(current);
        AUTO_FREE char *was = view_value_text(baseline, mixed && cJSON_IsString(baseline));
        AUTO_FREE char *is = view_value_text(current, mixed && cJSON_IsString(current));
        const char *at = view_str(d, "field");

        at = strlen(at) > skip ? at + skip : at;
        json_add_string(&v->doc, row, "change", view_str(d, "change"));
        if (!was || !is)
            v->doc.failed = true;
        else if (baseline && current)
            view_format(v, row, "text", "%s: %s → %s", at, was, is);
        else
            view_format(v, row, "text", "%s: %s", at, baseline ? was : is);
    }
    json_add_bool(&v->doc, o, "has_elements", list && list->child);
    if (cJSON_IsNumber(omitted))
        view_format(v, o, "elements_more", "%.0f", omitted->valuedouble);
}

static void add_reason(struct view *v, cJSON *fields, cJSON *plain, const cJSON *different,
                       const cJSON *reason)
{
    const char *code = view_str(reason, "code");
    const struct reason_info *info = reason_find(code);
    const cJSON *baseline = json_get(reason, "baseline");
    const cJSON *current = json_get(reason, "current");
    bool has_values = view_str(reason, "field")[0] || baseline || current;
    cJSON *o = json_add_object(&v->doc, has_values ? fields : plain, NULL);
    const char *where =
        view_str(reason, "field")[0] ? view_str(reason, "field") : view_str(reason, "path");
    const char *why = why_of(different, reason);

    json_add_string(&v->doc, o, "code", code);
    json_add_string(&v->doc, o, "field", where[0] ? where : code);
    json_add_string(&v->doc, o, "path", view_str(reason, "path"));
    json_add_string(&v->doc, o, "why", !why[0] && info ? info->title : why);
    view_format(v, o, "help", "%s/help/reasons/%s", v->prefix, code);
    add_elements(v, o, reason);
    if (has_values)
        view_difference(v, o, baseline, current);
}

void view_reasons(struct view *v, cJSON *parent, const cJSON *reasons, const cJSON *different)
{
    cJSON *fields = json_add_array(&v->doc, parent, "fields");
    cJSON *plain = json_add_array(&v->doc, parent, "plain_reasons");

    for (const cJSON *r = view_first(reasons); r; r = view_next(r))
        add_reason(v, fields, plain, different, r);
    if (!fields || !plain)
        return;
    json_add_bool(&v->doc, parent, "has_fields", fields->child != NULL);
    json_add_bool(&v->doc, parent, "has_plain_reasons", plain->child != NULL);
    view_format(v, parent, "n_fields", "%zu", view_count(fields));
    view_format(v, parent, "n_reasons", "%zu", view_count(reasons));
    view_format(v, parent, "reasons_said", "%zu reason%s", view_count(reasons),
                view_count(reasons) == 1 ? "" : "s");
}

/* The names of the first fields, for the sentence. */
static void name_fields(struct view *v, cJSON *root)
{
    const cJSON *fields = json_get(root, "fields");
    cJSON *list = json_add_array(&v->doc, root, "named");
    size_t n = view_count(fields);
    size_t i = 0;

    for (const cJSON *f = n ? fields->child : NULL; f && i < 5; f = f->next, i++) {
        cJSON *o = json_add_object(&v->doc, list, NULL);

        json_add_string(&v->doc, o, "field", view_str(f, "field"));
        json_add_string(&v->doc, o, "sep", i + 1 == n ? "." : i == 4 ? ", …" : ", ");
    }
}

/* The registry's words with the names of this page. */
static void add_resolve(struct view *v, cJSON *root, const char *resolve)
{
    const cJSON *current = json_get(root, "current");
    const struct advice_names names = {
        .project = view_str(root, "project"),
        .gate = view_str(root, "gate"),
        .machine_class = view_str(current, "class"),
        .run = view_str(current, "run"),
        .commit = view_str(current, "commit"),
        .baseline_commit = view_str(json_get(root, "baseline"), "commit"),
        .server = v->ctx->base_url,
    };
    AUTO_BUF struct buf text = {.data = NULL};

    buf_init(&text, LIMIT_KIB(4));
    advice_prose(&text, resolve, &names);
    if (text.failed || !text.data)
        v->doc.failed = true;
    else
        json_add_string(&v->doc, root, "resolve", text.data);
}

/* What to do, when the document does not say: the registry's words for the first reason. */
static void add_way_out(struct view *v, cJSON *root, const cJSON *reasons)
{
    const cJSON *first = cJSON_IsArray(reasons) ? reasons->child : NULL;
    const struct reason_info *info = first ? reason_find(view_str(first, "code")) : NULL;

    if (view_count(json_get(root, "next")) == 0 && info)
        add_resolve(v, root, info->resolve);
    if (view_str(root, "resolve")[0])
        view_marked(v, root, "resolve_parts", view_str(root, "resolve"));
    json_add_bool(&v->doc, root, "has_way_out",
                  view_str(root, "resolve")[0] || view_count(json_get(root, "next")) > 0);
}

bool page_verdict_fell(const cJSON *document)
{
    const char *verdict = view_str(document, "verdict");

    return strcmp(verdict, "INVALID") == 0 ||
           (strcmp(verdict, "NON_COMPARABLE") == 0 &&
            strcmp(view_str(json_get(document, "audit"), "verdict"), verdict) != 0);
}

/* A verdict that no longer stands, whatever the comparison found: {code, why, help}. */
static void add_fallen(struct view *v, cJSON *root)
{
    const cJSON *reason = view_first(json_get(root, "reasons"));
    const char *code = view_str(reason, "code");
    cJSON *o;

    if (!page_verdict_fell(root))
        return;
    o = json_add_object(&v->doc, root, "fallen");
    json_add_string(&v->doc, o, "code", code);
    json_add_string(&v->doc, o, "why",
                    reason ? view_str(reason, "text") : view_str(root, "description"));
    if (code[0])
        view_format(v, o, "help", "%s/help/reasons/%s", v->prefix, code);
}

void view_compare(struct view *v, cJSON *root)
{
    cJSON *audit = view_get(root, "audit");
    cJSON *comparisons = view_get(audit, "comparisons");
    const cJSON *reasons = json_get(audit, "reasons");

    for (cJSON *c = view_first(comparisons); c; c = view_next(c))
        add_comparison(v, c);
    view_sort(v, comparisons, compare_badness);
    json_add_bool(&v->doc, root, "refused",
                  strcmp(view_str(audit, "verdict"), "NON_COMPARABLE") == 0);
    json_add_bool(&v->doc, root, "has_comparisons", view_count(comparisons) > 0);
    if (cJSON_IsObject(audit)) {
        count_comparisons(v, audit, comparisons);
        add_identity(v, audit);
        add_coverage(v, audit);
        add_saying(v, root, audit);
    }
    view_interference(v, view_get(root, "baseline"),
                      json_get(json_get(root, "baseline"), "interference"));
    view_interference(v, view_get(root, "current"),
                      json_get(json_get(root, "current"), "interference"));
    view_reasons(v, root, reasons, json_get(json_get(audit, "identity"), "different"));
    name_fields(v, root);
    add_fallen(v, root);
    add_way_out(v, root, reasons);
    view_checks(v, view_get(root, "acceptance"));
    json_add_bool(&v->doc, root, "has_next", view_count(json_get(root, "next")) > 0);
}
