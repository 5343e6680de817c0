/* The Markdown twin, and the comparison of a packaged document with a recomputed one. */
#include "tests/lib/support.h"

#include "tests/audit/sides.h"

static char *markdown_of(struct sides *s, enum verdict expected)
{
    struct audit a = { 0 };
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t len = 0;

    sides_audit(s, &a);
    assert_int_equal(a.verdict, expected);
    if (audit_markdown(a.document, NULL, &text, &len, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(strlen(text), len);
    audit_fini(&a);
    sides_fini(s);
    return text;
}

static void contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void ok_has_the_layout_readers_know(void **state)
{
    struct sides s;
    char *text = NULL;

    (void) state;
    sides_init(&s);
    text = markdown_of(&s, VERDICT_OK);
    contains(text, "\nstatus: OK\n");
    contains(text, "\nscenarios compared: 1 (baseline-only: 0, current-only: 0)\n");
    contains(text, "\ncomparisons made: 5 of 5\n");
    contains(text, "## Measurement identity and coverage");
    contains(text, "## Regressions (0)");
    contains(text, "| s/1.json | get p99 | 2 ms | 2 ms | +0.0% | 2.5 ms | ok |");
    contains(text, "| s/1.json | CPU | 50% | 50% | +0.0% | none | info |");
    assert_null(strstr(text, "## Refused"));
    free(text);
}

static void regression_is_listed_twice(void **state)
{
    struct sides s;
    char *text = NULL;

    (void) state;
    sides_init(&s);
    sides_put_text(s.current.report, "/results/growth", "1499.25");
    text = markdown_of(&s, VERDICT_REGRESSION);
    contains(text, "\nstatus: REGRESSION\n");
    contains(text, "## Regressions (1)");
    contains(text, "| s/1.json | RSS growth | 9.3 MB/h | 1499.25 MB/h |");
    contains(text, "| REGRESSION |");
    free(text);
}

static void refusal_shows_both_values_and_no_number(void **state)
{
    struct sides s;
    char *text = NULL;

    (void) state;
    sides_init(&s);
    sides_put(s.current.report, "/load/steps", NULL);
    text = markdown_of(&s, VERDICT_NON_COMPARABLE);
    contains(text, "\nstatus: NON_COMPARABLE\n");
    contains(text, "## Refused comparisons (1)");
    contains(text, "| NC-IDENTITY-MISSING | s/1.json | /load/steps | \\[10,20\\] | (absent) |");
    contains(text, "No scalar comparison was performed");
    contains(text, "- NC-IDENTITY-MISSING: Runner owner");
    assert_null(strchr(text, '%'));
    free(text);
}

static void refusal_tells_lists_element_by_element(void **state)
{
    struct sides s;
    char *text = NULL;

    (void) state;
    sides_init(&s);
    sides_put_text(s.baseline.report, "/load/steps", "[10,20,30,40]");
    sides_put_text(s.current.report, "/load/steps", "[10,30,45,50]");
    text = markdown_of(&s, VERDICT_NON_COMPARABLE);
    contains(text, "| steps differs: /1 20 removed, /2 40 → 45, /3 50 added |\n");
    contains(text, "\ns/1.json /load/steps:\n\n- /1 20 removed\n- /2 40 → 45\n- /3 50 added\n\n");
    free(text);
}

/* What its reader must know beside the document stands below the status; it is text, too. */
static void a_remark_stands_below_the_status(void **state)
{
    struct sides s;
    struct audit a = { 0 };
    struct err e = ERR_INIT;
    AUTO_FREE char *without = NULL;
    AUTO_FREE char *with = NULL;
    char *at;
    size_t without_len = 0;
    size_t len = 0;
    static const char line[] = "check: NON_COMPARABLE \\[x\\]\n\n";

    (void) state;
    sides_init(&s);
    sides_audit(&s, &a);
    assert_int_equal(audit_markdown(a.document, NULL, &without, &without_len, &e), 0);
    assert_int_equal(audit_markdown(a.document, "check: NON_COMPARABLE [x]", &with, &len, &e), 0);
    contains(with, "\nstatus: OK\n\ncheck: NON_COMPARABLE \\[x\\]\n\nbaseline: ");
    at = strstr(with, line); /* and nothing else changes */
    memmove(at, at + sizeof line - 1, strlen(at + sizeof line - 1) + 1);
    assert_string_equal(with, without);
    audit_fini(&a);
    sides_fini(&s);
}

/* Outside text is text: no cell, no link, no HTML, no mention, no new line. */
static void outside_text_forms_no_markup(void **state)
{
    struct sides s;
    char *text = NULL;

    (void) state;
    sides_init(&s);
    sides_put(s.current.report, "/scenario",
              cJSON_CreateString("a|b<img src=x>`c`[d](e)*f*_g_ h_h @h #1 \\|\n## Regressions (0)&amp;~~x~~"));
    text = markdown_of(&s, VERDICT_NON_COMPARABLE);
    contains(text, "a\\|b&lt;img src=x&gt;\\`c\\`\\[d\\](e)\\*f\\*\\_g\\_ h_h &#64;h &#35;1 \\\\\\|");
    assert_null(strstr(text, "<img"));
    assert_null(strstr(text, "\n## Regressions (0)&"));
    assert_null(strstr(text, "@h"));
    free(text);
}

static void replay_finds_every_difference(void **state)
{
    static const struct {
        const char *pointer;
        const char *json;
        const char *field;
    } cases[] = {
        { "/verdict", "\"OK\"", "/verdict" },
        { "/made_comparisons", "4", "/made_comparisons" },
        { "/comparisons/0/current", "1001", "/comparisons/0/current" },
        { "/comparisons/1/verdict", "\"ok\"", "/comparisons/1/verdict" },
        { "/comparisons/1/tolerance_pct", "90", "/comparisons/1/tolerance_pct" },
        { "/comparisons/4", NULL, "/comparisons/4" },
        { "/comparisons", NULL, "/comparisons" },
        { "/definition/policy_sha256", "\"x\"", "/definition" },
        { "/same_executable", "true", "/same_executable" },
    };
    struct sides s;
    struct audit a = { 0 };
    struct err e = ERR_INIT;
    cJSON *differs = NULL;

    (void) state;
    sides_init(&s);
    sides_put_text(s.current.report, "/results/growth", "1499.25");
    sides_audit(&s, &a);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cJSON *packaged = cJSON_Duplicate(a.document, true);

        sides_put_text(packaged, cases[i].pointer, cases[i].json);
        assert_int_equal(audit_compare_documents(packaged, a.document, &differs, &e), 0);
        assert_non_null(differs);
        assert_string_equal(json_get(differs, "field")->valuestring, cases[i].field);
        json_free(differs);
        json_free(packaged);
    }
    audit_fini(&a);
    sides_fini(&s);
}

static void replay_ignores_roots_and_wording(void **state)
{
    struct sides s;
    struct audit a = { 0 };
    struct err e = ERR_INIT;
    cJSON *packaged = NULL;
    cJSON *differs = NULL;

    (void) state;
    sides_init(&s);
    sides_put_text(s.current.report, "/load/rate", "1");
    sides_audit(&s, &a);
    packaged = cJSON_Duplicate(a.document, true);
    sides_put_text(packaged, "/baseline/root", "\"elsewhere\"");
    sides_put_text(packaged, "/reasons/0/text", "\"in other words\"");
    assert_int_equal(audit_compare_documents(packaged, a.document, &differs, &e), 0);
    assert_null(differs);
    sides_put_text(packaged, "/reasons/0/baseline", "7");
    assert_int_equal(audit_compare_documents(packaged, a.document, &differs, &e), 0);
    assert_string_equal(json_get(differs, "field")->valuestring, "/reasons/0/baseline");
    json_free(differs);
    json_free(packaged);
    audit_fini(&a);
    sides_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ok_has_the_layout_readers_know),
        cmocka_unit_test(regression_is_listed_twice),
        cmocka_unit_test(refusal_shows_both_values_and_no_number),
        cmocka_unit_test(refusal_tells_lists_element_by_element),
        cmocka_unit_test(a_remark_stands_below_the_status),
        cmocka_unit_test(outside_text_forms_no_markup),
        cmocka_unit_test(replay_finds_every_difference),
        cmocka_unit_test(replay_ignores_roots_and_wording),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
