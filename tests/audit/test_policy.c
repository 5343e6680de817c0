/* What a schema cannot see of a policy: each mistake is told with the line and column of the part
 * that is wrong, or with its pointer when the definition is a definition.json. */
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "base/json_in.h"
#include "tests/lib/support.h"

/* Lines 9 to 15 are the parts that rows replace. */
static const char *const sound[] = {
    "version: 1",
    "gates:",
    "  g:",
    "    class: c",
    "    build: {command: [make], executable: {from: path, path: p}}",
    "    run: {command: ['{executable}'], report: r.json}",
    "    accept: {}",
    "    identity:",
    "      - {path: /n, require: required}",
    "    audit:",
    "      paths: {required: [a.json, r.json]}",
    "      metrics:",
    "        - {path: /m, unit: s, worse: higher, tolerance_pct: 1}",
    "        - {path: /k, unit: s, worse: lower, tolerance_pct: 1, gated: false}",
};

#define INFER_FROM                                                                                 \
    "    infer: {name: x, explicit: /e, scenario: {path: /s, prefix: p}, skip_prefix: _,\n"        \
    "      sweep: {file: s.json, points: /p}, point: /l,\n"
#define INFER_TO "      earlier: {point: t, counts: {a: /a}}, integers: [/i],\n"

static const struct {
    size_t line; /* replaced, from 1 */
    const char *by;
    const char *says;    /* of cleanrun.yaml */
    const char *pointer; /* of definition.json; NULL: the schema sees it there */
} rows[] = {
    {14, "        - {path: /m, unit: s, worse: lower, tolerance_pct: 1}",
     "f.yaml:14:12: '/m' is listed twice", "/policy/audit/metrics/1/path: '/m' is listed twice"},
    {14, "        - {path: /k, unit: s, worse: lower, tolerance_pct: 1, floor: 5}",
     "f.yaml:14:63: a gated metric that is worse when lower can't have a floor",
     "/policy/audit/metrics/1/floor: a gated metric"},
    {14, "        - {path: /k, unit: '', worse: lower, tolerance_pct: 1}",
     "f.yaml:14:22: a metric needs a unit", "/policy/audit/metrics/1/unit: a metric needs"},
    {13, "        - {path: /m, unit: s, worse: higher, tolerance_pct: 1, gated: false}",
     "f.yaml:12:7: at least one metric must be gated", "/policy/audit/metrics: at least one"},
    {11, "      paths: {required: [b.json, a.json, r.json, a.json]}",
     "f.yaml:11:50: 'a.json' is listed twice",
     "/policy/audit/paths/required/3: 'a.json' is listed twice"},
    {7,
     "    accept: {}\n" INFER_FROM "      sibling: 'x.json',\n" INFER_TO
     "      produce: [{path: /a, constant: 1}]}",
     "f.yaml:10:7: must hold {point}", "/policy/infer/sibling: must hold {point}"},
    {7,
     "    accept: {}\n" INFER_FROM "      sibling: '{point}.json',\n" INFER_TO
     "      produce: [{path: /b, constant: 1}, {path: /a}]}",
     "f.yaml:12:42: exactly one of 'from' and 'constant' is needed",
     "/policy/infer/produce/1: exactly one"},
    {7,
     "    accept: {}\n" INFER_FROM "      sibling: '{point}.json',\n" INFER_TO
     "      produce: [{path: /b, constant: 1}, {path: /a/*, constant: 1}]}",
     "f.yaml:12:43: '*' cannot be produced", "/policy/infer/produce/1/path: '*' cannot"},
};

/* The sound definition with one line replaced. */
static char *text_with(size_t line, const char *by)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    for (size_t i = 0; i < sizeof sound / sizeof sound[0]; i++)
        (void) fprintf(f, "%s\n", i + 1 == line ? by : sound[i]);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void told(const struct definition *d, const char *gate, const char *says)
{
    struct err e = ERR_INIT;
    char *wanted = NULL;

    assert_int_equal(audit_check_policy(d, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_true(asprintf(&wanted, "%s%s", gate, says) > 0);
    if (strncmp(e.text, wanted, strlen(wanted)) != 0)
        fail_msg("'%s' does not begin with '%s'", e.text, wanted);
    free(wanted);
}

static void mistakes_are_told_with_their_place(void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_DEFINITION_FILE struct definition_file f = {.n = 0};
        AUTO_DEFINITION struct definition read = {.gate = NULL};
        struct err e = ERR_INIT;
        char *text = text_with(rows[i].line, rows[i].by);
        char *json = NULL;
        size_t len = 0;

        if (definition_file_parse("f.yaml", text, strlen(text), &f, &e) < 0)
            fail_msg("row %zu: %s", i, e.text);
        told(&f.gates[0], "", rows[i].says);
        assert_int_equal(definition_write(&f.gates[0], &json, &len, &e), 0);
        assert_int_equal(definition_parse(json, len, &read, &e), 0);
        told(&read, "gate 'g': ", rows[i].pointer);
        free(json);
        free(text);
    }
}

static void too_many_entries_are_told_with_their_place(void **state)
{
    AUTO_DEFINITION_FILE struct definition_file f = {.n = 0};
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t len = 0;
    FILE *list = open_memstream(&text, &len);
    char *whole;

    (void) state;
    assert_non_null(list);
    (void) fprintf(list, "      - {path: /n, require: required}");
    for (int i = 0; i < 5000; i++)
        (void) fprintf(list, "\n      - {path: /n%d, require: required}", i);
    assert_int_equal(fclose(list), 0);
    whole = text_with(9, text);
    assert_int_equal(definition_file_parse("f.yaml", whole, strlen(whole), &f, &e), 0);
    assert_int_equal(audit_check_policy(&f.gates[0], &e), -1);
    assert_memory_equal(e.text, "f.yaml:8:5: 5001 entries", 24);
    free(whole);
    free(text);
}

static void sound_policy_is_accepted(void **state)
{
    AUTO_DEFINITION_FILE struct definition_file f = {.n = 0};
    struct err e = ERR_INIT;
    char *text = text_with(0, "");

    (void) state;
    assert_int_equal(definition_file_parse("f.yaml", text, strlen(text), &f, &e), 0);
    assert_int_equal(audit_check_policy(&f.gates[0], &e), 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_told_with_their_place),
        cmocka_unit_test(too_many_entries_are_told_with_their_place),
        cmocka_unit_test(sound_policy_is_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
