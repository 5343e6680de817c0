/* What the view adds to a document: numbers in words, differences element by element, order,
 * answers. */
#include "server/pages/view.h"

#include "base/json_in.h"
#include "experiment/pointer.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "server/pages/view_parts.h"
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

static const struct page_context context = {
    .base_url = "",
    .path = "/x",
    .now_us = 1795965060000000, /* 2026-11-29T15:11:00Z */
    .version = "test",
};

static cJSON *parse(const char *text)
{
    cJSON *j = NULL;
    struct err e = ERR_INIT;

    if (json_parse(text, strlen(text), &(struct json_limits){.max_bytes = LIMIT_REPORT}, &j, &e) <
        0)
        fail_msg("%s: %s", text, e.text);
    return j;
}

static cJSON *example(const char *name)
{
    char path[128];
    AUTO_FREE char *bytes = NULL;

    (void) snprintf(path, sizeof(path), "tests/data/pages/%s.json", name);
    bytes = test_read(path, NULL);
    return parse(bytes);
}

static cJSON *view_of(const char *page, const cJSON *document, const char *expected_template)
{
    cJSON *data = NULL;
    const char *template = NULL;
    struct err e = ERR_INIT;

    if (view_build(page, false, document, &context, &data, &template, &e) < 0)
        fail_msg("%s: %s", page, e.text);
    assert_string_equal(template, expected_template);
    return data;
}

static const char *text_at(const cJSON *o, const char *key)
{
    const cJSON *s = json_get(o, key);

    assert_non_null(s);
    assert_true(cJSON_IsString(s));
    return s->valuestring;
}

static void ages_are_in_words(void **state)
{
    char text[VIEW_TEXT];

    (void) state;
    view_age_text(26 * (int64_t) 60000000, text);
    assert_string_equal(text, "26 min ago");
    view_age_text(-3 * (int64_t) 3600000000, text);
    assert_string_equal(text, "in 3 h");
    view_age_text(145 * (int64_t) 86400000000, text);
    assert_string_equal(text, "145 days ago");
}

/* "5000, -20000-, 50000 | 5000, +(absent)+, 50000" */
static void expect_difference(const char *baseline, const char *current, const char *expected)
{
    struct view v = {.ctx = &context};
    AUTO_JSON cJSON *a = baseline ? parse(baseline) : NULL;
    AUTO_JSON cJSON *b = current ? parse(current) : NULL;
    AUTO_BUF struct buf out;
    const char *const sides[] = {"base_items", "now_items"};

    buf_init(&out, LIMIT_KIB(64));
    json_doc_init_object(&v.doc);
    view_difference(&v, v.doc.root, a, b);
    assert_false(v.doc.failed);
    for (size_t i = 0; i < 2; i++) {
        const char *mark = i ? "+" : "-";

        buf_puts(&out, i ? " | " : "");
        for (const cJSON *item = json_get(v.doc.root, sides[i])->child; item; item = item->next) {
            bool marked = cJSON_IsTrue(json_get(item, "mark"));

            buf_printf(&out, "%s%s%s%s", marked ? mark : "", text_at(item, "text"),
                       marked ? mark : "", text_at(item, "sep"));
        }
    }
    assert_string_equal(out.data, expected);
    json_doc_fini(&v.doc);
}

static void lists_differ_element_by_element(void **state)
{
    (void) state;
    expect_difference("[30,100,300,1000]", "[30,100,1000]",
                      "30, 100, -300-, 1000 | 30, 100, +(absent)+, 1000");
    expect_difference("[30,1000]", "[30,100,1000]", "30, -(absent)-, 1000 | 30, +100+, 1000");
    expect_difference("[1,2,3]", "[1,5,3]", "1, -2-, 3 | 1, +5+, 3");
    expect_difference("[]", "[1]", "-(absent)- | +1+");
    expect_difference("[1,2]", "[2,1]", "-1-, 2, -(absent)- | +(absent)+, 2, +1+");
    expect_difference("[1,2,3,4,5,6,7,8,9]", "[1,2,3,4,5,6,7,8,0]",
                      "(8 equal), -9- | (8 equal), +0+");
    expect_difference("{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":3}",
                      "-a: 1-, b: 2, -c: (absent)- | +a: (absent)+, b: 2, +c: 3+");
}

static void single_values_differ_in_words(void **state)
{
    (void) state;
    expect_difference("\"mimalloc\"", "\"system\"", "-mimalloc- | +system+");
    expect_difference("20000", "40000", "-20000- | +40000+");
    expect_difference("8", "\"8\"", "-8- | +\"8\"+");
    expect_difference("\"x\"", NULL, "-x- | +(absent)+");
    expect_difference(NULL, "null", "-(absent)- | +null+");
    expect_difference("\"\"", "\"x\"", "-(empty)- | +x+");
    expect_difference("[1]", "7", "-[1]- | +7+");
}

static void long_lists_are_compared_too(void **state)
{
    AUTO_BUF struct buf a;
    AUTO_BUF struct buf b;

    (void) state;
    buf_init(&a, LIMIT_KIB(64));
    buf_init(&b, LIMIT_KIB(64));
    for (int i = 0; i < 1000; i++) {
        buf_printf(&a, "%s%d", i ? "," : "[", i);
        buf_printf(&b, "%s%d", i ? "," : "[", i == 999 ? -1 : i);
    }
    buf_putc(&a, ']');
    buf_putc(&b, ']');
    expect_difference(a.data, b.data, "(999 equal), -999- | (999 equal), +-1+");
}

static void metrics_stand_worst_first(void **state)
{
    static const char *const order[] = {"RSS growth, settled window", "peak RSS"};
    AUTO_JSON cJSON *document = example("compare-regression");
    AUTO_JSON cJSON *data = view_of("compare", document, "compare");
    const cJSON *c = json_get(json_get(data, "audit"), "comparisons")->child;
    size_t regressions = 0;
    bool over = false;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(order); i++, c = c->next) {
        assert_string_equal(text_at(c, "label"), order[i]);
        assert_string_equal(text_at(c, "verdict"), "regression");
        regressions++;
    }
    for (; c; c = c->next) {
        bool gated = cJSON_IsTrue(json_get(c, "gated"));

        assert_string_not_equal(text_at(c, "verdict"), "regression");
        assert_false(over && gated); /* informational ones come last */
        over = over || !gated;
    }
    assert_int_equal(regressions, 2);
    assert_non_null(strstr(text_at(data, "say_strong"), "1,499.5 MB/h"));
}

static void a_refusal_has_its_own_template_and_groups_reasons(void **state)
{
    AUTO_JSON cJSON *document = example("refusal");
    AUTO_JSON cJSON *data = view_of("compare", document, "refusal");

    (void) state;
    assert_string_equal(text_at(data, "n_fields"), "5");
    assert_string_equal(text_at(data, "n_reasons"), "6");
    assert_string_equal(text_at(json_get(data, "plain_reasons")->child, "code"), "NC-SOURCE-DIRTY");
    /* Why a field counts, in the definition's words. */
    assert_string_equal(text_at(json_get(data, "fields")->child->next, "why"),
                        "the measured point inherits the state of every earlier point");
}

static void one_check_is_no_checks(void **state)
{
    AUTO_JSON cJSON *document = parse(
        "{\"acceptance\":{\"verdict\":\"PASS\",\"checks\":[{\"name\":\"a\",\"operator\":\"==\","
        "\"limit\":1,\"actual\":1,\"passed\":true}]}}");
    AUTO_JSON cJSON *data = view_of("run", document, "run");

    (void) state;
    assert_string_equal(text_at(json_get(data, "acceptance"), "summary"), "1 of 1 check passed");
}

static void failed_checks_are_first_among_199(void **state)
{
    AUTO_JSON cJSON *document = example("run-fail");
    AUTO_JSON cJSON *data = view_of("run", document, "run");
    const cJSON *acceptance = json_get(data, "acceptance");
    const cJSON *group = json_get(acceptance, "groups")->child;
    size_t checks = 0;

    (void) state;
    assert_int_equal(view_count(json_get(acceptance, "failed_checks")), 4);
    assert_string_equal(text_at(acceptance, "summary"), "4 of 199 checks failed");
    assert_true(cJSON_IsTrue(json_get(group, "bad")));
    assert_string_equal(text_at(json_get(json_get(group, "checks")->child, "v"), "word"), "FAIL");
    for (; group; group = group->next)
        checks += view_count(json_get(group, "checks"));
    assert_int_equal(checks, 199);
}

static void expect_answer(const char *name, const char *word, bool good)
{
    AUTO_JSON cJSON *document = example(name);
    AUTO_JSON cJSON *data = view_of("run", document, "run");

    assert_string_equal(text_at(json_get(data, "answer"), "word"), word);
    assert_int_equal(cJSON_IsTrue(json_get(json_get(data, "answer"), "good")), good);
}

static void only_a_verified_clean_run_is_ever_green(void **state)
{
    (void) state;
    expect_answer("run-ok", "OK", true);
    expect_answer("run-regression", "REGRESSION", false);
    expect_answer("run-fail", "FAIL", false);
    expect_answer("run-diagnostic", "no verdict", false);
    expect_answer("run-damaged", "DAMAGED", false);
}

/* Whatever a document claims, one broken or missing stage of the evidence is enough. */
static void no_stage_may_be_missing_for_green(void **state)
{
    static const char *const broken[] = {
        "{\"mode\":\"clean\",\"verdict\":{\"verdict\":\"OK\"}}",
        "{\"mode\":\"clean\",\"verdict\":{\"verdict\":\"OK\"},\"evidence\":{}}",
        "{\"mode\":\"clean\",\"verdict\":{\"verdict\":\"OK\"},\"evidence\":{\"stages\":[]}}",
        "{\"mode\":\"clean\",\"verdict\":{\"verdict\":\"OK\"},\"evidence\":{\"stages\":[{"
        "\"result\":\"ok\"},{\"result\":\"not_run\"}]}}",
        "{\"mode\":\"clean\",\"verdict\":{\"verdict\":\"OK\"},\"evidence\":{\"stages\":[{\"name\":"
        "\"x\"}]}}",
        "{\"mode\":\"cpu\",\"verdict\":{\"verdict\":\"OK\"},\"evidence\":{\"stages\":[{\"result\":"
        "\"ok\"}]}}",
        "{\"verdict\":{\"verdict\":\"OK\"},\"evidence\":{\"stages\":[{\"result\":\"ok\"}]}}",
        "{\"mode\":\"clean\",\"evidence\":{\"stages\":[{\"result\":\"ok\"}]}}",
        "{\"mode\":\"clean\",\"verdict\":null,\"evidence\":{\"stages\":[{\"result\":\"ok\"}]}}",
        "{\"mode\":\"clean\",\"verdict\":{\"verdict\":\"ok!\"},\"evidence\":{\"stages\":[{"
        "\"result\":\"ok\"}]}}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        AUTO_JSON cJSON *document = parse(broken[i]);
        AUTO_JSON cJSON *data = view_of("run", document, "run");

        if (cJSON_IsTrue(json_get(json_get(data, "answer"), "good")))
            fail_msg("green: %s", broken[i]);
    }
}

static void red_gates_come_first(void **state)
{
    static const char *const order[] = {"ERROR",   "FAIL", "REGRESSION", "NON_COMPARABLE",
                                        "PENDING", "OK",   "OK"};
    AUTO_JSON cJSON *document = example("home");
    AUTO_JSON cJSON *data = view_of("home", document, "home");
    const cJSON *g = json_get(data, "gates")->child;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(order); i++, g = g->next)
        assert_string_equal(text_at(g, "verdict"), order[i]);
    g = json_get(data, "gates")->child;
    assert_int_equal(view_count(json_get(g, "recent_v")), 3);
    assert_string_equal(text_at(json_get(json_get(g, "recent_v")->child->prev, "v"), "word"),
                        "ERROR");
}

static void invalid_problems_have_their_own_template(void **state)
{
    AUTO_JSON cJSON *invalid = example("invalid");
    AUTO_JSON cJSON *error = example("error");
    AUTO_JSON cJSON *a = view_of("error", invalid, "invalid");
    AUTO_JSON cJSON *b = view_of("error", error, "error");

    (void) state;
    assert_non_null(a);
    assert_non_null(b);
}

static void the_document_itself_is_not_touched(void **state)
{
    AUTO_JSON cJSON *document = example("run-fail");
    AUTO_JSON cJSON *copy = cJSON_Duplicate(document, true);
    AUTO_JSON cJSON *data = view_of("run", document, "run");

    (void) state;
    assert_true(json_equal(document, copy));
    assert_non_null(data);
}

static void a_line_is_not_drawn_through_refused_runs(void **state)
{
    AUTO_JSON cJSON *document = parse("{\"history\":[{\"label\":\"m\",\"unit\":\"s\",\"points\":["
                                      "{\"run\":\"1\",\"value\":1,\"verdict\":\"OK\"},{\"run\":"
                                      "\"2\",\"value\":2,\"verdict\":\"OK\"},"
                                      "{\"run\":\"3\",\"value\":9,\"verdict\":\"NON_COMPARABLE\"},"
                                      "{\"run\":\"4\",\"value\":2,\"verdict\":\"OK\"},{\"run\":"
                                      "\"5\",\"value\":3,\"verdict\":\"REGRESSION\"}]}]}");
    AUTO_JSON cJSON *data = view_of("gate", document, "gate");
    const cJSON *chart = json_get(json_get(data, "history")->child, "chart");

    (void) state;
    assert_int_equal(view_count(json_get(chart, "lines")), 2);
    assert_int_equal(view_count(json_get(chart, "points")), 5);
}

static const char *charted(const cJSON *data)
{
    static char out[8];
    const cJSON *m = NULL;
    size_t n = 0;

    cJSON_ArrayForEach(m, json_get(data, "history"))
        out[n++] = cJSON_IsTrue(json_get(m, "charted")) ? 'y' : 'n';
    out[n] = '\0';
    return out;
}

/* What no limit holds waits in a table until all is asked for. */
static void gated_metrics_are_charted_first(void **state)
{
#define POINTS                                                                                     \
    "\"points\":[{\"run\":\"1\",\"value\":1,\"verdict\":\"OK\"},{\"run\":\"2\",\"value\":7,"       \
    "\"verdict\":\"OK\"}]"
    AUTO_JSON cJSON *document = parse("{\"history\":[{\"label\":\"a\",\"gated\":true," POINTS "},"
                                      "{\"label\":\"b\",\"gated\":false," POINTS "}]}");
    AUTO_JSON cJSON *nothing =
        parse("{\"history\":[{\"label\":\"b\",\"gated\":false," POINTS "}]}");
    struct page_context all = context;
    AUTO_JSON cJSON *some = view_of("gate", document, "gate");
    AUTO_JSON cJSON *none = view_of("gate", nothing, "gate");
    AUTO_JSON cJSON *every = NULL;
    const char *template = NULL;
    struct err e = ERR_INIT;

    (void) state;
    assert_string_equal(charted(some), "yn");
    assert_true(cJSON_IsTrue(json_get(some, "more_metrics")));
    assert_float_equal(pointer_get(some, "/history/1/newest/value")->valuedouble, 7, 0);
    assert_string_equal(charted(none), "y");
    all.all_metrics = true;
    assert_int_equal(view_build("gate", false, document, &all, &every, &template, &e), 0);
    assert_string_equal(charted(every), "yy");
    assert_true(cJSON_IsFalse(json_get(every, "more_metrics")));
#undef POINTS
}

static void charts_survive_odd_series(void **state)
{
    static const char backwards[] = "{\"series\":{\"samples\":[[0,10],[9,20]]},"
                                    "\"windows\":[{\"bound\":{\"start_ms\":9,\"end_ms\":1}}]}";
    static const char *const odd[] = {
        "{\"series\":{\"samples\":[]}}",
        "{\"series\":{\"samples\":[[0,1024]]}}",
        "{\"series\":{\"samples\":[[5,1024],[5,2048]]}}",
        "{\"series\":{\"samples\":[[0,0],[1000,0]]}}",
        "{\"series\":{\"samples\":[[0,\"x\"],[null],7,[1,2],[2,3]]}}",
        "{\"series\":{\"samples\":[[0,1e308],[1e300,-1e308]]}}",
        backwards,
        "{\"series\":{\"samples\":[[0,1],[9,2]]},\"windows\":[{},7,{\"requested_end_secs\":-5}]}",
        "{\"phases\":[{\"elapsed_ms\":5},{\"elapsed_ms\":5}]}",
        "{\"phases\":[{\"elapsed_ms\":9},{\"phase\":\"x\"},{\"elapsed_ms\":5}]}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        AUTO_JSON cJSON *document = parse(odd[i]);
        AUTO_JSON cJSON *data = view_of("run", document, "run");

        assert_non_null(data);
    }
}

/* Ticks stand at round numbers, though neither samples nor marks begin at one. */
static void ticks_are_round(void **state)
{
    AUTO_JSON cJSON *document =
        parse("{\"series\":{\"samples\":[[103,1024],[7000,2048],[15120,1500]]},\"phases\":["
              "{\"phase\":\"begin\",\"elapsed_ms\":2},{\"phase\":\"end\",\"elapsed_ms\":15002}]}");
    AUTO_JSON cJSON *data = view_of("run", document, "run");
    static const char *const charts[] = {"chart", "timeline"};
    static const char *const wanted[] = {"0", "5", "10", "15"};

    (void) state;
    for (size_t c = 0; c < ARRAY_LEN(charts); c++) {
        const cJSON *ticks = json_get(json_get(data, charts[c]), "x_ticks");
        const cJSON *tick = ticks->child;

        /* a series that begins at 0.103 s has no tick before 5 */
        for (size_t i = c == 0 ? 1 : 0; i < ARRAY_LEN(wanted); i++, tick = tick->next) {
            assert_non_null(tick);
            assert_string_equal(json_get(tick, "label")->valuestring, wanted[i]);
        }
        assert_null(tick);
    }
}

/* A report holds whatever a branch writes into it; a chart of it is drawn with numbers. */
static void charts_hold_only_numbers(void **state)
{
    static const char *const pairs[][2] = {
        {"1e308", "-1e308"},
        {"1.7976931348623157e308", "-1.7976931348623157e308"},
        {"1.7976931348623157e308", "1.7976931348623157e308"},
        {"-1.7976931348623157e308", "0"},
        {"0", "1.7976931348623157e308"},
        {"5e-324", "0"},
        {"5e-324", "5e-324"},
        {"-5e-324", "5e-324"},
        {"0", "0"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        AUTO_FREE char *text = NULL;
        AUTO_FREE char *drawn = NULL;
        AUTO_JSON cJSON *document = NULL;
        AUTO_JSON cJSON *data = NULL;
        const cJSON *chart;

        assert_true(asprintf(&text,
                             "{\"history\":[{\"metric\":\"/a\",\"label\":\"a\",\"unit\":\"1\","
                             "\"points\":[{\"run\":\"r\",\"at\":\"2026-11-29T14:15:02Z\","
                             "\"value\":%s,\"verdict\":\"OK\"},{\"run\":\"s\",\"at\":"
                             "\"2026-11-29T14:15:03Z\",\"value\":%s,\"verdict\":\"OK\"}]}]}",
                             pairs[i][0], pairs[i][1]) > 0);
        document = parse(text);
        data = view_of("gate", document, "gate");
        chart = json_get(json_get(data, "history")->child, "chart");
        assert_non_null(chart);
        assert_true(cJSON_GetArraySize(json_get(chart, "y_ticks")) >= 1);
        assert_int_equal(cJSON_GetArraySize(json_get(chart, "points")), 2);
        drawn = cJSON_PrintUnformatted(chart);
        assert_non_null(drawn);
        if (strstr(drawn, "nan") || strstr(drawn, "inf") || strstr(drawn, "null"))
            fail_msg("%s and %s: %s", pairs[i][0], pairs[i][1], drawn);
    }
}

/* The first point stands clear of the axis' labels, and the axis of time says from when to when. */
static void history_has_both_axes(void **state)
{
    AUTO_JSON cJSON *document = parse(
        "{\"history\":[{\"metric\":\"/a\",\"label\":\"a\",\"unit\":\"1\",\"points\":["
        "{\"run\":\"r1\",\"value\":210,\"verdict\":\"OK\",\"at\":\"2026-11-29T15:00:12Z\"},"
        "{\"run\":\"r2\",\"value\":228,\"verdict\":\"OK\",\"at\":\"2026-11-30T16:00:12Z\"}]}]}");
    AUTO_JSON cJSON *data = view_of("gate", document, "gate");
    const cJSON *chart = json_get(json_get(data, "history")->child, "chart");
    const cJSON *first = json_get(chart, "points")->child;
    const cJSON *ticks = json_get(chart, "x_ticks");

    (void) state;
    assert_string_equal(json_get(first, "x")->valuestring, "12.00%");
    assert_int_equal(cJSON_GetArraySize(ticks), 2);
    assert_string_equal(json_get(ticks->child, "label")->valuestring, "2026-11-29 15:00");
    assert_string_equal(json_get(ticks->child->next, "label")->valuestring, "2026-11-30 16:00");
    assert_string_equal(json_get(ticks->child->next, "anchor")->valuestring, "end");
}

/* Marks at the same time make no bar; the bars beside them still differ. */
static void neighbouring_phases_differ_in_shade(void **state)
{
    AUTO_JSON cJSON *document =
        parse("{\"phases\":[{\"phase\":\"a\",\"elapsed_ms\":0},{\"phase\":\"b\",\"elapsed_ms\":5},"
              "{\"phase\":\"c\",\"elapsed_ms\":5},{\"phase\":\"d\",\"elapsed_ms\":8},"
              "{\"phase\":\"e\",\"elapsed_ms\":8},{\"phase\":\"f\",\"elapsed_ms\":9}]}");
    AUTO_JSON cJSON *data = view_of("run", document, "run");
    const cJSON *phase = NULL;
    int last = -1, bars = 0;

    (void) state;
    cJSON_ArrayForEach(phase, pointer_get(data, "/timeline/phases")) {
        int shade = cJSON_IsTrue(json_get(phase, "odd"));

        if (!cJSON_IsTrue(json_get(phase, "bar")))
            continue;
        assert_int_not_equal(shade, last);
        last = shade;
        bars++;
    }
    assert_int_equal(bars, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ages_are_in_words),
        cmocka_unit_test(lists_differ_element_by_element),
        cmocka_unit_test(single_values_differ_in_words),
        cmocka_unit_test(long_lists_are_compared_too),
        cmocka_unit_test(metrics_stand_worst_first),
        cmocka_unit_test(a_refusal_has_its_own_template_and_groups_reasons),
        cmocka_unit_test(one_check_is_no_checks),
        cmocka_unit_test(failed_checks_are_first_among_199),
        cmocka_unit_test(only_a_verified_clean_run_is_ever_green),
        cmocka_unit_test(no_stage_may_be_missing_for_green),
        cmocka_unit_test(red_gates_come_first),
        cmocka_unit_test(invalid_problems_have_their_own_template),
        cmocka_unit_test(the_document_itself_is_not_touched),
        cmocka_unit_test(a_line_is_not_drawn_through_refused_runs),
        cmocka_unit_test(gated_metrics_are_charted_first),
        cmocka_unit_test(charts_survive_odd_series),
        cmocka_unit_test(neighbouring_phases_differ_in_shade),
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(charts_hold_only_numbers),
        cmocka_unit_test(history_has_both_axes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
