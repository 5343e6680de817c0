/* The registry: complete, actionable, and the documentation says the same. CLEANRUN_UPDATE=1
 * rewrites docs/reasons.md. */
#include "tests/lib/support.h"

#include "tests/audit/sides.h"

static const char *const contract[] = {
    "IN-HASH",
    "IN-SIGNATURE",
    "IN-KEY",
    "IN-MANIFEST",
    "IN-ARCHIVE",
    "IN-JSON",
    "IN-TICKET",
    "IN-SOURCE",
    "IN-ACCEPTANCE",
    "IN-AUDIT",
    "NC-BASELINE-NONE",
    "NC-BASELINE-EMPTY",
    "NC-PATH-MISSING",
    "NC-PATH-NONE",
    "NC-TOO-MANY",
    "NC-METRIC-NONE",
    "NC-METRIC-MISSING",
    "NC-METRIC-INVALID",
    "NC-IDENTITY-MISSING",
    "NC-IDENTITY-INVALID",
    "NC-IDENTITY-DIFFERS",
    "NC-WINDOW-INCOMPLETE",
    "NC-MACHINE-CLASS",
    "NC-DEFINITION",
    "NC-MODE",
    "NC-SOURCE-DIRTY",
    "NC-UNIT",
    "NC-HOST-LIMIT",
    "NC-SAME-EVIDENCE",
    "NC-ESTIMATOR",
    "NC-ORDER",
    "NC-REPEATS",
};

static void registry_is_the_contract_in_its_order(void **state)
{
    (void) state;
    assert_int_equal(reasons_count, ARRAY_LEN(contract));
    for (size_t i = 0; i < ARRAY_LEN(contract); i++) {
        assert_string_equal(reasons_table[i].code, contract[i]);
        assert_ptr_equal(reason_find(contract[i]), &reasons_table[i]);
    }
    assert_null(reason_find("NC-"));
    assert_null(reason_find("nc-mode"));
}

/* Rule 7: a refusal names who can resolve it and the one command that does. */
static void every_reason_names_who_and_one_command(void **state)
{
    (void) state;
    for (size_t i = 0; i < reasons_count; i++) {
        const struct reason_info *r = &reasons_table[i];
        const char *first = strchr(r->resolve, '`');
        const char *second = first ? strchr(first + 1, '`') : NULL;

        assert_true(r->title[0] && r->text[0]);
        assert_non_null(strchr(r->resolve, ':'));
        if (!first || !second || strchr(second + 1, '`') || strncmp(first + 1, "cleanrun", 8) != 0)
            fail_msg("%s: exactly one command is needed: %s", r->code, r->resolve);
    }
}

static void documentation_says_the_same(void **state)
{
    struct buf b = {0};
    char *found = NULL;
    char *path = NULL;

    (void) state;
    buf_init(&b, LIMIT_MIB(1));
    buf_puts(&b, "# Reasons\n\nEvery refusal carries codes of this list. A code never changes its "
                 "meaning. `IN-` codes make a "
                 "run INVALID\n(exit 5), `NC-` codes make it NON_COMPARABLE (exit 3). This file is "
                 "checked against "
                 "`audit/reasons.def`.\n");
    for (size_t i = 0; i < reasons_count; i++)
        buf_printf(&b, "\n## %s\n\n**%s.** %s\n\n%s\n", reasons_table[i].code,
                   reasons_table[i].title, reasons_table[i].text, reasons_table[i].resolve);
    assert_false(b.failed);
    if (getenv("CLEANRUN_UPDATE")) { /* NOLINT(concurrency-mt-unsafe): one thread */
        path = test_path("docs");
        test_write(path, "reasons.md", b.data, b.len);
        free(path);
    }
    found = test_read("docs/reasons.md", NULL);
    assert_string_equal(found, b.data);
    free(found);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registry_is_the_contract_in_its_order),
        cmocka_unit_test(every_reason_names_who_and_one_command),
        cmocka_unit_test(documentation_says_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
