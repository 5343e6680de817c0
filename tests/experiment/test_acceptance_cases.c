/* Every acceptance row of the seed's cases against examples/rvoip-sip/cleanrun.yaml. */
#include "tests/lib/cases.h"
#include "tests/lib/support.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "experiment/acceptance.h"
#include "experiment/definition.h"
#include "experiment/pointer.h"
#include "experiment/stats.h"

enum { MAX_SAMPLES = 1500 };

static const char yaml_path[] = "examples/rvoip-sip/cleanrun.yaml";

/* ---- the definition ---- */

static void parse_definition(const char *text, struct definition_file *out)
{
    struct err e = ERR_INIT;

    if (definition_file_parse(yaml_path, text, strlen(text), out, &e) < 0)
        fail_msg("%s", e.text);
    assert_non_null(definition_file_gate(out, "call-setup-2k"));
}

/* The example with one text exchanged (NULL: as it is). */
static void load_definition(const char *from, const char *to, struct definition_file *out)
{
    char *text = test_read(yaml_path, NULL);

    if (from) {
        const char *at = strstr(text, from);
        char *changed = NULL;

        assert_non_null(at);
        assert_true(asprintf(&changed, "%.*s%s%s", (int) (at - text), text, to, at + strlen(from)) >
                    0);
        free(text);
        text = changed;
    }
    parse_definition(text, out);
    free(text);
}

/* ---- the seed's own formulae, written without the product's code ---- */

struct series {
    double t[MAX_SAMPLES];
    double rss[MAX_SAMPLES];
    double cpu[MAX_SAMPLES];
    size_t n;
};

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;

    return (x > y) - (x < y);
}

static double median(const double *v, size_t n)
{
    double copy[MAX_SAMPLES];

    memcpy(copy, v, n * sizeof *v);
    qsort(copy, n, sizeof *copy, compare_double);
    return n % 2 ? copy[n / 2] : (copy[n / 2 - 1] + copy[n / 2]) / 2;
}

static double slope(const double *t, const double *r, size_t n)
{
    double st = 0;
    double sr = 0;
    double stt = 0;
    double str = 0;
    double d = 0;

    for (size_t i = 0; i < n; i++) {
        st += t[i];
        sr += r[i];
        stt += t[i] * t[i];
        str += t[i] * r[i];
    }
    d = (double) n * stt - st * st;
    return n < 2 || fabs(d) < DBL_EPSILON ? 0 : ((double) n * str - st * sr) / d;
}

static double interval(const struct series *s)
{
    double gaps[MAX_SAMPLES];

    for (size_t i = 0; i + 1 < s->n; i++)
        gaps[i] = fmax(0, s->t[i + 1] - s->t[i]);
    qsort(gaps, s->n - 1, sizeof *gaps, compare_double);
    return gaps[(s->n - 1) / 2];
}

static cJSON *at(cJSON *report, const char *pointer)
{
    cJSON *j = report;
    char part[64];
    const char *p = pointer;

    while (j && *p == '/') {
        size_t len = strcspn(p + 1, "/");

        assert_true(len < sizeof part);
        memcpy(part, p + 1, len);
        part[len] = '\0';
        j = cJSON_GetObjectItemCaseSensitive(j, part);
        p += 1 + len;
    }
    return j;
}

static void put(cJSON *report, const char *base, const char *key, double v)
{
    cJSON *parent = at(report, base);

    assert_non_null(parent);
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(parent, key, cJSON_CreateNumber(v)));
}

/* A count must stay a JSON integer: the old node is kept. */
static void put_count(cJSON *report, const char *base, const char *key, size_t n)
{
    cJSON *node = cJSON_GetObjectItemCaseSensitive(at(report, base), key);

    assert_true(json_is_integer(node));
    node->valuedouble = (double) n;
    node->valueint = (int) n;
}

static void put_truth(cJSON *report, const char *base, const char *key, bool v)
{
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(at(report, base), key, cJSON_CreateBool(v)));
}

static void read_series(cJSON *report, struct series *s)
{
    const cJSON *j = NULL;

    s->n = 0;
    cJSON_ArrayForEach(j, at(report, "/resources/rss_samples_mb")) {
        assert_true(s->n < MAX_SAMPLES);
        s->t[s->n] = json_get(j, "t_secs")->valuedouble;
        s->rss[s->n] = json_get(j, "rss_mb")->valuedouble;
        s->cpu[s->n++] = (double) (float) json_get(j, "cpu_pct")->valuedouble;
    }
}

struct ends {
    double retained;
    double rate;
    double per_sec;
};

static struct ends recompute_window(cJSON *report, const struct series *s, const char *base)
{
    double start = at(at(report, base), "/requested_start_secs")->valuedouble;
    double end = at(at(report, base), "/requested_end_secs")->valuedouble;
    double tolerance = 1.5 * fmax(interval(s), 0.001);
    size_t a = 0;
    size_t b = s->n;
    size_t n_start = 0;
    size_t n_end = 0;
    double first = 0;
    double last = 0;
    double band = 0;
    double m[4];
    struct ends r;

    while (s->t[a] < start)
        a++;
    while (s->t[b - 1] > end)
        b--;
    first = s->t[a];
    last = s->t[b - 1];
    band = fmin((last - first) / 6, 60);
    while (s->t[a + n_start] <= first + band)
        n_start++;
    while (s->t[b - 1 - n_end] >= last - band)
        n_end++;
    m[0] = median(s->rss + a, n_start);
    m[1] = median(s->rss + b - n_end, n_end);
    m[2] = median(s->t + a, n_start);
    m[3] = median(s->t + b - n_end, n_end);
    r.retained = m[1] - m[0];
    r.rate = r.retained * 3600 / (m[3] - m[2]);
    r.per_sec = slope(s->t + a, s->rss + a, b - a);
    put(report, base, "first_sample_secs", first);
    put(report, base, "last_sample_secs", last);
    put(report, base, "actual_coverage_secs", last - first);
    put_count(report, base, "sample_count", b - a);
    put(report, base, "boundary_tolerance_secs", tolerance);
    put_truth(report, base, "complete", first <= start + tolerance && last + tolerance >= end);
    put(report, base, "rss_growth_mb_per_min", r.per_sec * 60);
    put(report, base, "rss_start_median_mb", m[0]);
    put(report, base, "rss_end_median_mb", m[1]);
    put(report, base, "rss_retained_growth_mb", r.retained);
    put(report, base, "rss_start_representative_secs", m[2]);
    put(report, base, "rss_end_representative_secs", m[3]);
    put(report, base, "rss_endpoint_separation_secs", m[3] - m[2]);
    put(report, base, "rss_endpoint_growth_mb_per_hour", r.rate);
    put(report, base, "rss_endpoint_band_secs", band);
    put_count(report, base, "rss_start_sample_count", n_start);
    put_count(report, base, "rss_end_sample_count", n_end);
    return r;
}

static void recompute_tail(cJSON *report, const struct series *s)
{
    double requested = at(report, "/resources/rss_tail_window_requested_secs")->valuedouble;
    double begin = fmax(0, s->t[s->n - 1] - requested);
    size_t a = 0;
    double coverage = 0;

    while (s->t[a] < begin)
        a++;
    coverage = s->t[s->n - 1] - s->t[a];
    put(report, "/resources", "rss_tail_window_secs", coverage);
    put_count(report, "/resources", "rss_tail_sample_count", s->n - a);
    put_truth(report, "/resources", "rss_tail_window_complete",
              coverage + 1.5 * fmax(interval(s), 0.001) >= requested);
    put(report, "/resources", "rss_tail_growth_mb_per_min",
        slope(s->t + a, s->rss + a, s->n - a) * 60);
}

static void recompute(cJSON *report)
{
    static struct series s;
    struct ends ends;
    double peak = 0;
    double cpu = 0;

    read_series(report, &s);
    for (size_t i = 0; i < s.n; i++) {
        peak = fmax(peak, s.rss[i]);
        cpu += i > 0 ? s.cpu[i] : 0;
    }
    put_count(report, "/resources", "rss_sample_count", s.n);
    put(report, "/resources", "rss_sample_interval_estimate_secs", interval(&s));
    put(report, "/resources", "baseline_rss_mb", s.rss[0]);
    put(report, "/resources", "peak_rss_mb", peak);
    put(report, "/resources", "rss_growth_mb_per_min", slope(s.t, s.rss, s.n) * 60);
    put(report, "/resources", "avg_cpu_pct", cpu / (double) (s.n - 1));
    recompute_tail(report, &s);
    ends = recompute_window(report, &s, "/resources/rss_windows/active_load");
    put(report, "/resources", "rss_active_growth_mb_per_min", ends.per_sec * 60);
    ends = recompute_window(report, &s, "/resources/rss_windows/post_drain_cleanup");
    put(report, "/resources", "rss_cleanup_growth_mb_per_min", ends.per_sec * 60);
    put(report, "/resources", "rss_cleanup_growth_mb_per_hour", ends.per_sec * 3600);
    put(report, "/resources", "rss_cleanup_retained_growth_mb", ends.retained);
    put(report, "/resources", "rss_cleanup_endpoint_growth_mb_per_hour", ends.rate);
}

/* ---- the rows' rewriting of memory ---- */

static double plateau(double x)
{
    return x >= 270 && x < 540 ? 1005 : 1000;
}

static double early_step(double x)
{
    return x < 70 ? 1000 : 1002;
}

static double late_step(double x)
{
    return x < 540 ? 1000 : 1000 + 10.0 * 600 / 3600;
}

static double falling(double x)
{
    return 1001 - x / 600;
}

static double ten_an_hour(double x)
{
    return 1000 + 10 * x / 3600;
}

static double middle_step(double x)
{
    return x < 300 ? 1000 : 1001.5;
}

static void rewrite(cJSON *report, const char *text)
{
    static const struct {
        const char *text;
        double (*rss)(double elapsed);
    } rules[] = {
        {"rss = 1005 when 270 <= elapsed < 540 else 1000 (elapsed = t-130)", plateau},
        {"rss = 1000 when elapsed < 70 else 1002", early_step},
        {"rss = 1000 when elapsed < 540 else 1000 + 10*600/3600", late_step},
        {"rss = 1001 - elapsed/600", falling},
        {"rss = 1000 + 10*elapsed/3600", ten_an_hour},
        {"rss = 1000 when elapsed < 300 else 1001.5", middle_step},
    };
    cJSON *sample = NULL;
    size_t k = 0;

    while (k < ARRAY_LEN(rules) && strcmp(rules[k].text, text) != 0)
        k++;
    assert_true(k < ARRAY_LEN(rules));
    cJSON_ArrayForEach(sample, at(report, "/resources/rss_samples_mb")) {
        double t = json_get(sample, "t_secs")->valuedouble;

        if (t >= 130)
            assert_true(cJSON_ReplaceItemInObjectCaseSensitive(
                sample, "rss_mb", cJSON_CreateNumber(rules[k].rss(t - 130))));
    }
}

/* ---- replay ---- */

static cJSON *make_report(const cJSON *row)
{
    const cJSON *base = json_get(row, "base");
    const cJSON *rule = json_get(row, "rewrite_cleanup_rss");
    cJSON *report = NULL;
    char *path = NULL;

    if (!cJSON_IsString(base))
        return cJSON_CreateArray();
    path = test_join("tests/data/rvoip", base->valuestring);
    report = cases_read_json(path);
    free(path);
    if (rule) {
        rewrite(report, rule->valuestring);
        recompute(report);
    }
    cases_edit_all(report, json_get(row, "ops"));
    if (cJSON_IsTrue(json_get(row, "recompute_summaries_after")))
        recompute(report);
    return report;
}

static void evaluate(const struct definition *d, const cJSON *report, struct acceptance *out)
{
    struct acceptance_input in = {.definition = d, .report = report, .report_path = "2000.json"};
    struct err e = ERR_INIT;

    if (acceptance_evaluate(&in, out, &e) < 0)
        fail_msg("%s", e.text);
}

static const cJSON *find_check(const struct acceptance *a, const char *name)
{
    const cJSON *check = NULL;

    cJSON_ArrayForEach(check, json_get(a->document, "checks"))
        if (strcmp(json_get(check, "name")->valuestring, name) == 0)
            return check;
    return NULL;
}

static size_t count_failed(const struct acceptance *a, bool print)
{
    const cJSON *check = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(check, json_get(a->document, "checks"))
        if (!cJSON_IsTrue(json_get(check, "passed"))) {
            const cJSON *error = json_get(check, "error");

            if (print)
                print_message("  failed: %s: %s\n", json_get(check, "name")->valuestring,
                              cJSON_IsString(error) ? error->valuestring : "");
            n++;
        }
    return n;
}

static void expect_failed(const struct acceptance *a, const char *id, const cJSON *names)
{
    const cJSON *name = NULL;
    size_t n = count_failed(a, false);

    cJSON_ArrayForEach(name, names) {
        const cJSON *check = find_check(a, name->valuestring);

        if (!check || !cJSON_IsFalse(json_get(check, "passed")))
            fail_msg("%s: '%s' should have failed", id, name->valuestring);
    }
    if (n != (size_t) cJSON_GetArraySize(names)) {
        (void) count_failed(a, true);
        fail_msg("%s: %zu checks failed instead of %d", id, n, cJSON_GetArraySize(names));
    }
}

static void expect_rates(cJSON *report, const char *id, const cJSON *expected)
{
    static const char *const keys[][2] = {
        {"cleanup_endpoint_mb_per_hour", "/resources/rss_cleanup_endpoint_growth_mb_per_hour"},
        {"cleanup_ols_mb_per_hour", "/resources/rss_cleanup_growth_mb_per_hour"},
    };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const cJSON *j = json_get(expected, keys[i][0]);

        if (j && !stats_close(at(report, keys[i][1])->valuedouble, j->valuedouble, 1e-8, 1e-8))
            fail_msg("%s: %s %.17g", id, keys[i][0], at(report, keys[i][1])->valuedouble);
    }
}

static void every_row_is_answered_as_the_seed_does(void **state)
{
    AUTO_DEFINITION_FILE struct definition_file plain = {0};
    AUTO_DEFINITION_FILE struct definition_file other = {0};
    cJSON *rows = cases_load();
    const cJSON *row = NULL;
    size_t replayed = 0;

    (void) state;
    load_definition(NULL, NULL, &plain);
    load_definition("path: /scenario, equals: 'perf_call_setup_cps_pbx-media-server'",
                    "path: /scenario, equals: 'other'", &other);
    cJSON_ArrayForEach(row, rows) {
        const char *id = json_get(row, "id")->valuestring;
        const cJSON *expect = json_get(row, "expect");
        const cJSON *failed = json_get(expect, "failed_metrics");
        const cJSON *count = json_get(expect, "failed_count");
        AUTO_ACCEPTANCE struct acceptance a = {0};
        cJSON *report = NULL;

        if (strcmp(json_get(row, "area")->valuestring, "acceptance") != 0)
            continue;
        report = make_report(row);
        evaluate(definition_file_gate(strcmp(id, "ACC-61") == 0 ? &other : &plain, "call-setup-2k"),
                 report, &a);
        if (strcmp(acceptance_verdict_name(a.verdict), json_get(expect, "status")->valuestring) !=
            0) {
            (void) count_failed(&a, true);
            fail_msg("%s: %s", id, acceptance_verdict_name(a.verdict));
        }
        assert_string_equal(json_get(a.document, "verdict")->valuestring,
                            acceptance_verdict_name(a.verdict));
        if (cJSON_IsArray(failed))
            expect_failed(&a, id, failed);
        if (count && count_failed(&a, false) != (size_t) count->valuedouble)
            fail_msg("%s: %zu checks failed", id, count_failed(&a, false));
        if (cJSON_IsObject(report)) {
            assert_int_equal(cJSON_GetArraySize(json_get(a.document, "checks")), 199);
            expect_rates(report, id, expect);
        } else {
            assert_int_equal(cJSON_GetArraySize(json_get(a.document, "checks")), 1);
            assert_non_null(find_check(&a, "report"));
        }
        cJSON_Delete(report);
        replayed++;
    }
    assert_int_equal(replayed, 41);
    cJSON_Delete(rows);
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static void the_199_names_are_distinct(void **state)
{
    AUTO_DEFINITION_FILE struct definition_file f = {0};
    AUTO_ACCEPTANCE struct acceptance a = {0};
    cJSON *report = cases_read_json("tests/data/rvoip/reports/canonical-pass-2000.json");
    const char *names[199];
    const cJSON *check = NULL;
    size_t n = 0;

    (void) state;
    load_definition(NULL, NULL, &f);
    evaluate(definition_file_gate(&f, "call-setup-2k"), report, &a);
    cJSON_ArrayForEach(check, json_get(a.document, "checks")) {
        assert_true(n < ARRAY_LEN(names));
        names[n++] = json_get(check, "name")->valuestring;
    }
    qsort(names, n, sizeof *names, compare_text);
    for (size_t i = 1; i < n; i++)
        assert_string_not_equal(names[i - 1], names[i]);
    cJSON_Delete(report);
}

/* The real 16-vCPU report with all of its samples recomputes (its point is another one, so other
 * checks fail). */
static void a_real_full_report_recomputes(void **state)
{
    AUTO_DEFINITION_FILE struct definition_file f = {0};
    AUTO_ACCEPTANCE struct acceptance a = {0};
    cJSON *report = cases_read_json(
        "tests/data/rvoip/baselines/20260929T224805Z/perf_call_setup_cps_pbx-media-server/30.json");
    const cJSON *problems = NULL;
    const cJSON *problem = NULL;

    (void) state;
    load_definition(NULL, NULL, &f);
    evaluate(definition_file_gate(&f, "call-setup-2k"), report, &a);
    problems = json_get(find_check(&a, "resources.raw_resource_sample_consistency"), "actual");
    /* Only the cleanup window, which a 30-CPS point does not have, is missing. */
    cJSON_ArrayForEach(problem, problems)
        if (!strstr(problem->valuestring, "cleanup") || !strstr(problem->valuestring, "absent"))
            fail_msg("%s", problem->valuestring);
    cJSON_Delete(report);
}

static cJSON *other_value(const cJSON *v)
{
    if (cJSON_IsBool(v))
        return cJSON_CreateBool(!cJSON_IsTrue(v));
    if (cJSON_IsNumber(v))
        return cJSON_CreateNumber(v->valuedouble + 1);
    if (cJSON_IsNull(v))
        return cJSON_CreateFalse();
    return cJSON_CreateNull();
}

static void set_at(cJSON *report, const char *pointer, cJSON *value)
{
    char parent[512];
    const char *last = strrchr(pointer, '/');

    assert_true(last && (size_t) (last - pointer) < sizeof parent);
    memcpy(parent, pointer, (size_t) (last - pointer));
    parent[last - pointer] = '\0';
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(at(report, parent), last + 1, value));
}

/* Takes one check after the other out of reach: each must be able to fail by its own value. */
static void every_exact_check_can_fail(void **state)
{
    AUTO_DEFINITION_FILE struct definition_file f = {0};
    const struct definition *d = NULL;
    cJSON *original = cases_read_json("tests/data/rvoip/reports/canonical-pass-2000.json");
    const cJSON *entry = NULL;
    size_t n = 0;

    (void) state;
    load_definition(NULL, NULL, &f);
    d = definition_file_gate(&f, "call-setup-2k");
    cJSON_ArrayForEach(entry, pointer_get(d->policy, "/accept/exact")) {
        cJSON *report = cJSON_Duplicate(original, true);
        const char *name = json_get(entry, "name")->valuestring;
        AUTO_ACCEPTANCE struct acceptance a = {0};

        set_at(report, json_get(entry, "path")->valuestring,
               other_value(json_get(entry, "equals")));
        evaluate(d, report, &a);
        assert_int_equal(a.verdict, ACCEPTANCE_FAIL);
        if (!cJSON_IsFalse(json_get(find_check(&a, name), "passed")))
            fail_msg("'%s' passes with another value", name);
        cJSON_Delete(report);
        n++;
    }
    assert_int_equal(n, 122 + 25 + 22);
    cJSON_Delete(original);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_answered_as_the_seed_does),
        cmocka_unit_test(the_199_names_are_distinct),
        cmocka_unit_test(a_real_full_report_recomputes),
        cmocka_unit_test(every_exact_check_can_fail),
    };

    return cmocka_run_group_tests_name("acceptance_cases", tests, NULL, NULL);
}
