/* A run against itself: could a later run be compared with it? */
#include "tests/lib/support.h"

#include "tests/audit/sides.h"

/* Looks at the current side alone. */
static void look(struct sides *s, struct audit *out)
{
    struct audit_side side = {.tree = &s->current.tree,
                              .manifest = s->current.manifest,
                              .definition = &s->current.definition};
    struct err e = ERR_INIT;

    sides_add_report(&s->current, s->path);
    if (audit_would_compare(&s->current.definition, &side, out, &e) < 0)
        fail_msg("%s", e.text);
}

/* Exactly one reason, with this code, field and text. */
static void expect(struct sides *s, const char *code, const char *field, const char *text)
{
    struct audit a = {0};
    const cJSON *reasons = NULL;

    look(s, &a);
    reasons = json_get(a.document, "reasons");
    if (a.verdict != VERDICT_NON_COMPARABLE || !sides_has(a.document, code, field) ||
        reasons->child->next || strcmp(json_get(reasons->child, "text")->valuestring, text) != 0) {
        sides_show(a.document);
        fail_msg("expected %s %s, found %s", code, field, verdict_word(a.verdict));
    }
    assert_null(json_get(a.document, "comparisons")->child);
    audit_fini(&a);
    sides_fini(s);
}

static void good_run_could_be_compared(void **state)
{
    struct sides s;
    struct audit a = {0};

    (void) state;
    sides_init(&s);
    look(&s, &a);
    if (a.verdict != VERDICT_OK)
        sides_show(a.document);
    assert_int_equal(a.verdict, VERDICT_OK);
    assert_null(json_get(a.document, "reasons")->child);
    audit_fini(&a);
    sides_fini(&s);
}

static void what_is_not_there_is_told(void **state)
{
    struct sides s;

    (void) state;
    sides_init(&s);
    sides_put(s.current.report, "/results/rate", NULL);
    expect(&s, "NC-METRIC-MISSING", "/results/rate", "rate is missing in this run");
    sides_init(&s);
    sides_put_text(s.current.report, "/results/rate", "\"1000\"");
    expect(&s, "NC-METRIC-INVALID", "/results/rate", "rate is string, not a number");
    sides_init(&s);
    sides_put_text(s.current.report, "/latency", "{}");
    expect(&s, "NC-METRIC-MISSING", "/latency/*/p99", "/latency/*/p99 matches nothing in this run");
    sides_init(&s);
    sides_put(s.current.report, "/load/steps", NULL);
    expect(&s, "NC-IDENTITY-MISSING", "/load/steps", "steps is unknown in this run");
    sides_init(&s);
    sides_put_text(s.current.report, "/windows/w/complete", "false");
    expect(&s, "NC-WINDOW-INCOMPLETE", "/windows/w/complete",
           "steady: the window is incomplete in the current run");
}

static void manifest_counts_too(void **state)
{
    char pointer[200];
    char text[200];
    struct sides s;

    (void) state;
    for (size_t i = 0; i < facts_count; i++) {
        sides_init(&s);
        (void) snprintf(pointer, sizeof pointer, "/machine/facts/%s", facts_table[i].name);
        (void) snprintf(text, sizeof text, "%s is unknown in this run", facts_table[i].label);
        sides_put_text(s.current.manifest, pointer, "\"unknown\"");
        expect(&s, "NC-IDENTITY-MISSING", pointer, text);
    }
    sides_init(&s);
    sides_put_text(s.current.manifest, "/source/end/dirty", "true");
    expect(&s, "NC-SOURCE-DIRTY", "/source/end/dirty",
           "the current run's source has changes that no commit holds");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_run_could_be_compared),
        cmocka_unit_test(what_is_not_there_is_told),
        cmocka_unit_test(manifest_counts_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
