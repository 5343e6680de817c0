/*
 * Neighbours of the seed's audit rows: every value of either side's report taken away, made null,
 * and given other types and values. What leaves the answer OK is listed here, with its reason, and
 * nothing else may. A refusal never carries a number.
 */
#include "tests/lib/cases.h"
#include "tests/lib/pointers.h"
#include "tests/lib/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "experiment/pointer.h"

#define PAIR "tests/data/rvoip/audit-pair/"
#define REPORT "perf_call_setup_cps_pbx-media-server/2000.json"

struct fixture {
    struct definition_file file;
    const struct definition *definition;
    struct tree baseline;
    struct tree current;
};

static void load_tree(const char *relative, struct tree *out)
{
    char *path = test_path(relative);
    struct err e = ERR_INIT;
    int fd = -1;

    tree_init(out);
    if (file_open_dir(path, &fd, &e) < 0 || tree_load(out, fd, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(close(fd), 0);
    free(path);
}

static int group_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    char *text = test_read("examples/rvoip-sip/cleanrun.yaml", NULL);
    struct err e = ERR_INIT;

    assert_non_null(f);
    if (definition_file_parse("cleanrun.yaml", text, strlen(text), &f->file, &e) < 0)
        fail_msg("%s", e.text);
    free(text);
    f->definition = definition_file_gate(&f->file, "call-setup-2k");
    assert_non_null(f->definition);
    load_tree(PAIR "baseline", &f->baseline);
    load_tree(PAIR "current", &f->current);
    *state = f;
    return 0;
}

static int group_teardown(void **state)
{
    struct fixture *f = *state;

    definition_file_fini(&f->file);
    tree_fini(&f->baseline);
    tree_fini(&f->current);
    free(f);
    return 0;
}

static enum verdict judge(const struct fixture *f)
{
    const struct audit_input in = {
        .policy = f->definition,
        .baseline = {.tree = &f->baseline, .legacy = true, .root = "baseline"},
        .current = {.tree = &f->current, .root = "current"}};
    struct audit a = {0};
    struct err e = ERR_INIT;
    enum verdict verdict = VERDICT_MAX;

    if (audit_run(&in, &a, &e) < 0)
        fail_msg("%s", e.text);
    verdict = a.verdict;
    if (verdict == VERDICT_OK || verdict == VERDICT_REGRESSION) {
        assert_null(json_get(a.document, "reasons")->child);
    } else {
        assert_non_null(json_get(a.document, "reasons")->child);
        assert_null(json_get(a.document, "comparisons")->child);
    }
    audit_fini(&a);
    return verdict;
}

/* The side's report; its tree is ours to change. */
static cJSON *report_of(struct fixture *f, bool of_current)
{
    return ((struct tree_file *) (uintptr_t) tree_find(of_current ? &f->current : &f->baseline,
                                                       REPORT))
        ->report;
}

static enum verdict with(struct fixture *f, bool of_current, const char *pointer, const char *json)
{
    cJSON *node = pointers_at(report_of(f, of_current), pointer);
    cJSON *value = NULL;
    struct err e = ERR_INIT;
    enum verdict verdict = VERDICT_MAX;

    if (json_parse(json, strlen(json), NULL, &value, &e) < 0)
        fail_msg("%s: %s", json, e.text);
    if (!json_equal(node, value)) {
        pointers_swap(node, value);
        verdict = judge(f);
        pointers_swap(node, value);
    }
    json_free(value);
    return verdict; /* VERDICT_MAX: no neighbour */
}

static enum verdict without(struct fixture *f, bool of_current, const char *pointer)
{
    struct tree_file *file =
        (struct tree_file *) (uintptr_t) tree_find(of_current ? &f->current : &f->baseline, REPORT);
    cJSON *original = file->report;
    enum verdict verdict = VERDICT_MAX;

    file->report = cJSON_Duplicate(original, true);
    pointers_remove(file->report, pointer);
    verdict = judge(f);
    cJSON_Delete(file->report);
    file->report = original;
    return verdict;
}

static const char *const others[] = {"null",  "true", "false", "7",  "-1",    "0",
                                     "\"x\"", "\"\"", "[]",    "{}", "1e300", "9007199254740993.0"};

#define ANYTHING "removed null true false 7 -1 0 \"x\" \"\" [] {} 1e300 9007199254740993.0"

/* Changes after which there is still an answer: OK, or with '!' REGRESSION. */
static const struct {
    const char *place;
    const char *changes;
} allowed[] = {
    /* Neither identity nor gated: informational, or facts that both sides lack. */
    {"baseline/environment", ANYTHING},
    {"baseline/environment/git_rev", ANYTHING},
    {"baseline/resources/avg_cpu_pct", ANYTHING},
    {"baseline/resources/rss_tail_window_secs", ANYTHING},
    {"baseline/results/calls_offered", ANYTHING},
    {"baseline/results/calls_succeeded", ANYTHING},
    {"current/diagnostics/measurement_identity/point_index", ANYTHING},
    {"current/diagnostics/measurement_identity/schema", ANYTHING},
    {"current/environment", ANYTHING},
    {"current/environment/git_rev", ANYTHING},
    {"current/load", ANYTHING},
    {"current/load/target_cps", ANYTHING},
    {"current/resources/avg_cpu_pct", ANYTHING},
    {"current/resources/rss_sample_count", ANYTHING},
    {"current/resources/rss_tail_growth_mb_per_min", ANYTHING},
    {"current/resources/rss_tail_window_requested_secs", ANYTHING},
    {"current/resources/rss_tail_window_secs", ANYTHING},
    {"current/results/calls_offered", ANYTHING},
    {"current/results/calls_succeeded", ANYTHING},
    /* Gated metrics: other numbers are judged; '!' is a regression. */
    {"baseline/latency_ns/setup_latency/p50", "7 -1 0 1e300 9007199254740993.0"},
    {"baseline/latency_ns/setup_latency/p95", "7! -1! 0! 1e300 9007199254740993.0"},
    {"baseline/latency_ns/setup_latency/p99", "7! -1! 0! 1e300 9007199254740993.0"},
    {"baseline/resources/peak_rss_mb", "7! -1! 0! 1e300 9007199254740993.0"},
    {"baseline/resources/rss_tail_growth_mb_per_min", "7! -1! 0! 1e300 9007199254740993.0"},
    {"baseline/results/achieved_cps", "7 -1 0 1e300! 9007199254740993.0!"},
    {"baseline/results/asr", "7! -1 0 1e300! 9007199254740993.0!"},
    {"baseline/results/cps_per_core", "7 -1 0 1e300! 9007199254740993.0!"},
    {"baseline/results/ner", "7! -1 0 1e300! 9007199254740993.0!"},
    {"current/latency_ns/setup_latency/p50", "7 -1 0 1e300! 9007199254740993.0!"},
    {"current/latency_ns/setup_latency/p95", "7 -1 0 1e300! 9007199254740993.0!"},
    {"current/latency_ns/setup_latency/p99", "7 -1 0 1e300! 9007199254740993.0!"},
    {"current/resources/peak_rss_mb", "7 -1 0 1e300! 9007199254740993.0!"},
    {"current/resources/rss_active_growth_mb_per_min", "7 -1 0 1e300! 9007199254740993.0!"},
    {"current/results/achieved_cps", "7! -1! 0! 1e300 9007199254740993.0"},
    {"current/results/asr", "7 -1! 0! 1e300 9007199254740993.0"},
    {"current/results/cps_per_core", "7! -1! 0! 1e300 9007199254740993.0"},
    {"current/results/ner", "7 -1! 0! 1e300 9007199254740993.0"},
    /* Evidence of coverage: any that is enough. */
    {"baseline/resources/rss_sample_count", "7 -1 0"},
    {"current/resources/rss_windows/active_load/actual_coverage_secs",
     "7 1e300 9007199254740993.0"},
    {"current/resources/rss_windows/active_load/sample_count", "7"},
};

static const char *allowed_at(const char *place)
{
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (strcmp(allowed[i].place, place) == 0)
            return allowed[i].changes;
    return "";
}

static void note(struct buf *out, const char *change, enum verdict verdict)
{
    if (verdict == VERDICT_OK || verdict == VERDICT_REGRESSION)
        buf_printf(out, "%s%s%s", out->len > 0 ? " " : "", change,
                   verdict == VERDICT_OK ? "" : "!");
}

static void change_everything(struct fixture *f, bool of_current)
{
    struct pointers p;

    pointers_of(report_of(f, of_current), SIZE_MAX, &p);
    assert_true(p.n > 20);
    for (size_t i = 0; i < p.n; i++) {
        AUTO_BUF struct buf found = {0};
        char place[300];

        buf_init(&found, LIMIT_KIB(4));
        buf_puts(&found, "");
        (void) snprintf(place, sizeof place, "%s%s", of_current ? "current" : "baseline",
                        p.items[i]);
        note(&found, "removed", without(f, of_current, p.items[i]));
        for (size_t k = 0; k < ARRAY_LEN(others); k++)
            note(&found, others[k], with(f, of_current, p.items[i], others[k]));
        if (strcmp(found.data ? found.data : "", allowed_at(place)) != 0)
            fail_msg("%s is answered with: %s; allowed: %s", place, found.data, allowed_at(place));
    }
    pointers_fini(&p);
}

static void only_what_is_listed_may_change(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(judge(f), VERDICT_OK);
    change_everything(f, false);
    change_everything(f, true);
}

/* The same change on both sides makes no broken identity equal (AUD-28 and its neighbours). */
static void the_same_break_on_both_sides_is_no_match(void **state)
{
    static const char *const fields[] = {
        "/peer_lifecycle",
        "/sweep_points_cps",
        "/measured_point_cps",
        "/conditioning",
        "/conditioning/points",
        "/resource_window",
        "/resource_window/kind",
        "/resource_window/start_phase",
        "/resource_window/end_phase",
        "/resource_window/sample_interval_ms",
    };
    static const char *const values[] = {"null", "\"\"", "[]", "{}", "true", "1e300", "[null]"};
    struct fixture *f = *state;
    struct tree_file *file = (struct tree_file *) (uintptr_t) tree_find(&f->baseline, REPORT);
    cJSON *original = file->report;
    struct digest digest = file->digest;
    size_t n = 0;

    /* an explicit identity on both sides */
    file->report = cJSON_Duplicate(report_of(f, true), true);
    assert_int_equal(judge(f), VERDICT_OK); /* their bytes still differ, by their digests */
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        for (size_t k = 0; k < ARRAY_LEN(values); k++) {
            cJSON *sides[2] = {report_of(f, false), report_of(f, true)};
            cJSON *changed[2] = {NULL};
            char pointer[200];
            enum verdict verdict = VERDICT_MAX;

            (void) snprintf(pointer, sizeof pointer, "/diagnostics/measurement_identity%s",
                            fields[i]);
            for (size_t s = 0; s < 2; s++) {
                changed[s] = cJSON_Parse(values[k]);
                pointers_swap(pointers_at(sides[s], pointer), changed[s]);
            }
            verdict = judge(f);
            for (size_t s = 0; s < 2; s++) {
                pointers_swap(pointers_at(sides[s], pointer), changed[s]);
                cJSON_Delete(changed[s]);
            }
            if (verdict != VERDICT_NON_COMPARABLE)
                fail_msg("%s = %s on both sides: %s", pointer, values[k], verdict_word(verdict));
            n++;
        }
    assert_int_equal(n, ARRAY_LEN(fields) * ARRAY_LEN(values));
    cJSON_Delete(file->report);
    file->report = original;
    file->digest = digest;
}

/* Tolerances are exact: the last double that passes, and the next one (AUD-33, -35, -36 and their
 * neighbours). */
static void tolerances_are_exact(void **state)
{
    static const struct {
        const char *pointer;
        double sign; /* of worse */
    } rows[] = {
        {"/results/achieved_cps", -1},
        {"/results/cps_per_core", -1},
        {"/resources/peak_rss_mb", +1},
        {"/latency_ns/setup_latency/p99", +1},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double base = pointer_get(report_of(f, false), rows[i].pointer)->valuedouble;
        double tolerance = strstr(rows[i].pointer, "latency") ? 25 : 15;
        double low = 0;
        double high = 1; /* as a share of base; bisect to the last double that passes */
        char text[40];

        for (int round = 0; round < 200 && nextafter(low, high) < high; round++) {
            double middle = low + (high - low) / 2;

            (void) snprintf(text, sizeof text, "%.17g", base + rows[i].sign * middle * base);
            if (with(f, true, rows[i].pointer, text) == VERDICT_REGRESSION)
                high = middle;
            else
                low = middle;
        }
        if (fabs(low * 100 - tolerance) > 1e-9)
            fail_msg("%s regresses at %.17g %%", rows[i].pointer, low * 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_listed_may_change),
        cmocka_unit_test(the_same_break_on_both_sides_is_no_match),
        cmocka_unit_test(tolerances_are_exact),
    };

    return cmocka_run_group_tests_name("audit_neighbours", tests, group_setup, group_teardown);
}
