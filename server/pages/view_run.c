/* The run page: three stages that fail for different people, checks grouped, charts. */
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "server/pages/view_parts.h"

#define NAME_MAX_BYTES 128

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

static void add_numbers(struct view *v, cJSON *w, const char *const *keys, size_t n,
                        const char *unit)
{
    for (size_t i = 0; i < n; i++) {
        char name[NAME_MAX_BYTES];
        size_t len = strlen(keys[i]);
        double value;

        if (!view_double(w, keys[i], &value) || len + 3 > sizeof(name))
            continue;
        memcpy(name, keys[i], len);
        memcpy(name + len, "_n", 3);
        view_number(v, w, name, value, quantity_unit(value, unit));
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
    json_add_bool(&v->doc, root, "audit_fell",
                  strcmp(word, "VALID") != 0 || page_verdict_fell(verdict));
    json_add_bool(&v->doc, root, "has_audit", cJSON_IsObject(json_get(verdict, "audit")));
}

/* The verdict's, else (acceptance failed first) those that the audit has none the less. */
static const cJSON *audit_reasons(const cJSON *root)
{
    const cJSON *verdict = json_get(root, "verdict");
    const cJSON *own = json_get(verdict, "reasons");

    return view_count(own) > 0 ? own : json_get(json_get(verdict, "audit"), "reasons");
}

void view_run(struct view *v, cJSON *root)
{
    add_answer(v, root);
    view_checks(v, view_get(root, "acceptance"));
    add_windows(v, root);
    add_facts(v, root);
    add_mapped(v, root);
    view_interference(v, root,
                      json_get(json_get(json_get(root, "manifest"), "interference"), "during"));
    json_add_bool(&v->doc, root, "has_next", view_count(json_get(root, "next")) > 0);
    json_add_bool(&v->doc, root, "has_verify", view_count(json_get(root, "verify")) > 0);
    json_add_bool(&v->doc, root, "has_way_out", view_count(json_get(root, "next")) > 0);
    view_timeline(v, root);
    view_series(v, root);
    view_reasons(
        v, root, audit_reasons(root),
        json_get(json_get(json_get(json_get(root, "verdict"), "audit"), "identity"), "different"));
}
