/* The Markdown twin, and the comparison of a packaged document with a recomputed one. */
#include "tests/lib/support.h"

#include "tests/audit/sides.h"

static char *markdown_of(struct sides *s, enum verdict expected)
{
    struct audit a = {0};
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

/* After every heading something that is no heading. */
static void no_empty_section(const char *text)
{
    for (const char *at = text; (at = strstr(at, "## ")); at += 3) {
        const char *next = strchr(at, '\n');

        while (next && *next == '\n')
            next++;
        if (!next || !*next || *next == '#')
            fail_msg("an empty section in:\n%s", text);
    }
}

static void ok_has_the_layout_readers_know(void **state)
{
    struct sides s;
    char *text = NULL;

    (void) state;
    sides_init(&s);
    text = markdown_of(&s, VERDICT_OK);
    contains(text, "# Performance audit: g\n\nstatus: OK\n\ncomparisons made: 5 of 5\n\n## All "
                   "metrics (5)\n\n| scenario |");
    contains(text, "| s/1.json | get p99 | 2 ms | 2 ms | 0 % | +25 % | ok |");
    contains(text, "| s/1.json | CPU | 50 % | 50 % | 0 % | none | info |");
    contains(text, "\nscenarios compared: 1 (baseline-only: 0, current-only: 0)\n");
    assert_true(strstr(text, "## Both sides") > strstr(text, "CPU"));
    assert_true(strstr(text, "## Measurement identity and coverage") >
                strstr(text, "## Both sides"));
    assert_null(strstr(text, "## Refused"));
    assert_null(strstr(text, "## Regressions"));
    assert_null(strstr(text, "## Coverage notes"));
    no_empty_section(text);
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
    contains(text, "## All metrics (5)");
    contains(text, "| s/1.json | RSS growth | 9.3 MB/h | 1,499.2 MB/h | +1,489.95 MB/h | 100 MB/h "
                   "(near-zero floor) | REGRESSION |\n");
    assert_true(strstr(text, "RSS growth") < strstr(text, "## Both sides"));
    no_empty_section(text);
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
    assert_true(strstr(text, "## Refused") < strstr(text, "## Both sides"));
    no_empty_section(text);
    contains(text, "| NC-IDENTITY-MISSING | s/1.json | /load/steps | \\[10,20\\] | (absent) |");
    contains(text, "No scalar comparison was performed");
    contains(text, "- NC-IDENTITY-MISSING: Runner owner");
    assert_null(strchr(text, '%'));
    assert_null(strstr(text, "## All metrics"));
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
    struct audit a = {0};
    struct err e = ERR_INIT;
    AUTO_FREE char *without = NULL;
    AUTO_FREE char *with = NULL;
    char *at;
    size_t without_len = 0;
    size_t len = 0;
    static const struct audit_markdown_options options = {.remark = "check: NON_COMPARABLE [x]"};
    static const char line[] = "check: NON_COMPARABLE \\[x\\]\n\n";

    (void) state;
    sides_init(&s);
    sides_audit(&s, &a);
    assert_int_equal(audit_markdown(a.document, NULL, &without, &without_len, &e), 0);
    assert_int_equal(audit_markdown(a.document, &options, &with, &len, &e), 0);
    contains(with, "\nstatus: OK\n\ncheck: NON_COMPARABLE \\[x\\]\n\ncomparisons made: ");
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
              cJSON_CreateString(
                  "a|b<img src=x>`c`[d](e)*f*_g_ h_h @h #1 \\|\n## Regressions (0)&amp;~~x~~"));
    text = markdown_of(&s, VERDICT_NON_COMPARABLE);
    contains(text,
             "a\\|b&lt;img src=x&gt;\\`c\\`\\[d\\](e)\\*f\\*\\_g\\_ h_h &#64;h &#35;1 \\\\\\|");
    assert_null(strstr(text, "<img"));
    assert_null(strstr(text, "\n## Regressions (0)&"));
    assert_null(strstr(text, "@h"));
    free(text);
}

/* A comment is read elsewhere: it says where it comes from, before anything long. */
static void links_come_first_and_equal_fields_are_folded(void **state)
{
    static const struct audit_link links[] = {
        {"this comparison", "https://h.example/r/1/vs/b-1"},
        {"the [run]", "https://h.example/r/1)[x](http://evil"},
    };
    static const struct audit_markdown_options options = {.links = links, .n_links = 2};
    static const struct audit_markdown_options terminal = {.unfolded = true};
    struct sides s;
    struct audit a = {0};
    struct err e = ERR_INIT;
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *open = NULL;
    size_t len = 0;
    const char *fold;

    (void) state;
    sides_init(&s);
    sides_audit(&s, &a);
    assert_int_equal(audit_markdown(a.document, &options, &text, &len, &e), 0);
    contains(text, "status: OK\n\n[this comparison](https://h.example/r/1/vs/b-1) · "
                   "[the \\[run\\]](https://h.example/r/1%29%5Bx%5D%28http://evil)\n\n");
    fold = strstr(text, "\n<details><summary>equal on both sides: ");
    assert_non_null(fold);
    contains(fold, " fields</summary>\n\n- ");
    contains(fold, "/load/rate = 100\n");
    contains(fold, "\n\n</details>\n");
    *(char *) strstr(text, "\n<details>") = '\0';
    assert_null(strstr(text, "/load/rate"));
    assert_int_equal(audit_markdown(a.document, &terminal, &open, &len, &e), 0);
    assert_null(strstr(open, "<details>"));
    contains(open, "\nequal on both sides:\n\n- ");
    audit_fini(&a);
    sides_fini(&s);
}

/* No line of its own, no control, no turned direction. */
static void outside_text_obeys_nobody(void **state)
{
    struct sides s;
    char *text = NULL;

    (void) state;
    sides_init(&s);
    sides_put(s.current.report, "/scenario",
              cJSON_CreateString("\x1b[2J\xc2\x9b"
                                 "31m\n\n# OK\r\xe2\x80\xaex\xd8\x9c"));
    text = markdown_of(&s, VERDICT_NON_COMPARABLE);
    contains(text, "?\\[2J?31m  &#35; OK \\[U+202E\\]x\\[U+061C\\]");
    assert_null(strstr(text, "\n# OK"));
    assert_null(strchr(text, 0x1b));
    assert_null(strstr(text, "\xc2\x9b"));
    free(text);
}

static void replay_finds_every_difference(void **state)
{
    static const struct {
        const char *pointer;
        const char *json;
        const char *field;
    } cases[] = {
        {"/verdict", "\"OK\"", "/verdict"},
        {"/made_comparisons", "4", "/made_comparisons"},
        {"/comparisons/0/current", "1001", "/comparisons/0/current"},
        {"/comparisons/1/verdict", "\"ok\"", "/comparisons/1/verdict"},
        {"/comparisons/1/tolerance_pct", "90", "/comparisons/1/tolerance_pct"},
        {"/comparisons/4", NULL, "/comparisons/4"},
        {"/comparisons", NULL, "/comparisons"},
        {"/definition/policy_sha256", "\"x\"", "/definition"},
        {"/same_executable", "true", "/same_executable"},
    };
    struct sides s;
    struct audit a = {0};
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
    struct audit a = {0};
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
        cmocka_unit_test(links_come_first_and_equal_fields_are_folded),
        cmocka_unit_test(outside_text_obeys_nobody),
        cmocka_unit_test(replay_finds_every_difference),
        cmocka_unit_test(replay_ignores_roots_and_wording),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
