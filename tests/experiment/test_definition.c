#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/definition.h"
#include "experiment/pointer.h"
#include "experiment/schema.h"
#include "tests/lib/support.h"

#define BUILD "    build: {command: [make], executable: {from: path, path: app}}\n"
#define RUN "    run: {command: ['{executable}'], report: s/1.json}\n"
#define POLICY                                                                                     \
    "    identity: [{path: /load/rate, require: required}]\n"                                      \
    "    accept: {limits: [{path: /results/rate, op: '>=', value: 10, unit: 1/s}]}\n"              \
    "    audit: {paths: {required: [s/1.json]}, metrics: [{path: /results/rate, label: rate, "     \
    "unit: 1/s, worse: "                                                                           \
    "lower, tolerance_pct: 5, gated: true}]}\n"
#define HEAD "version: 1\nproject: o/r\ngates:\n  g1:\n    class: box-a\n"
#define GOOD HEAD BUILD RUN POLICY

static void parse(const char *text, struct definition_file *out)
{
    struct err e = ERR_INIT;

    if (definition_file_parse("f.yaml", text, strlen(text), out, &e) < 0)
        fail_msg("%s", e.text);
}

static void refuse(const char *text, const char *expected)
{
    struct definition_file f = {0};
    struct err e = ERR_INIT;

    assert_int_equal(definition_file_parse("f.yaml", text, strlen(text), &f, &e), -1);
    if (!strstr(e.text, expected))
        fail_msg("expected '%s' in: %s", expected, e.text);
}

static void definition_has_two_halves_and_notes(void **state)
{
    AUTO_DEFINITION_FILE struct definition_file f = {0};
    const struct definition *d = NULL;

    (void) state;
    parse(GOOD, &f);
    d = definition_file_gate(&f, NULL);
    assert_non_null(d);
    assert_string_equal(d->gate, "g1");
    assert_string_equal(d->project, "o/r");
    assert_string_equal(pointer_get(d->document, "/experiment/class")->valuestring, "box-a");
    assert_string_equal(pointer_get(d->document, "/experiment/build/command/0")->valuestring,
                        "make");
    assert_null(pointer_get(d->document, "/policy/audit/metrics/0/label"));
    assert_string_equal(definition_note(d, "/policy/audit/metrics/0/label")->valuestring, "rate");
    assert_null(definition_file_gate(&f, "g2"));
}

/* What is measured, what judges, and what only labels: each change moves exactly its own digest. */
static void definition_digests_move_with_their_half_only(void **state)
{
    static const struct {
        const char *text;
        bool experiment;
        bool policy;
    } cases[] = {
        {HEAD BUILD RUN POLICY "    conditioning: [{name: warm}]\n", true, false},
        {HEAD BUILD RUN POLICY "    host: {limits: [{fact: governor, equals: performance}]}\n",
         true, false},
        {HEAD BUILD RUN POLICY "    confirm: 2\n", false, true},
        {HEAD BUILD RUN POLICY "    title: Other words\n", false, false},
        {HEAD BUILD "    run: {command: ['{executable}'], report: s/1.json, timeout: 10m}\n" POLICY,
         false, false},
        {HEAD RUN BUILD POLICY, false, false},
    };
    AUTO_DEFINITION_FILE struct definition_file base = {0};

    (void) state;
    parse(GOOD, &base);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_DEFINITION_FILE struct definition_file f = {0};

        parse(cases[i].text, &f);
        assert_int_equal(
            digest_equal(&base.gates[0].experiment_digest, &f.gates[0].experiment_digest),
            !cases[i].experiment);
        assert_int_equal(digest_equal(&base.gates[0].policy_digest, &f.gates[0].policy_digest),
                         !cases[i].policy);
    }
}

/* The only keys that neither half holds. Every other key of the schema must move a
 * digest: a key that stops being hashed could differ between two runs that are compared. */
static bool may_be_unhashed(const char *key)
{
    static const char *const keys[] = {"title", "description", "label", "why", "timeout"};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (strcmp(key, keys[i]) == 0)
            return true;
    }
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): the tables are some levels deep */
static size_t count_unhashed(const struct schema *s, const char *where)
{
    size_t n = 0;

    if (s->type == SCHEMA_ARRAY || s->type == SCHEMA_MAP)
        return count_unhashed(s->item, where);
    if (s->type != SCHEMA_OBJECT)
        return 0;
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct schema_field *field = &s->fields[i];
        AUTO_FREE char *at = NULL;

        assert_true(asprintf(&at, "%s/%s", where, field->key) > 0);
        if (field->unhashed != may_be_unhashed(field->key))
            fail_msg("%s is %s", at, field->unhashed ? "in no digest" : "hashed, a label");
        n += field->unhashed;
        n += count_unhashed(field->schema, at);
    }
    return n;
}

static void only_labels_and_timeouts_are_in_neither_half(void **state)
{
    (void) state;
    assert_true(count_unhashed(&schema_gate, "") >= 10);
    /* of what is measured, time-outs alone */
    assert_int_equal(count_unhashed(&schema_experiment, ""), 4);
}

static void definition_json_reads_back_with_equal_digests(void **state)
{
    AUTO_DEFINITION_FILE struct definition_file f = {0};
    AUTO_DEFINITION struct definition again = {0};
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;

    (void) state;
    parse(GOOD "    title: A gate\n    sampling: {interval: 500ms, into: /resources}\n", &f);
    assert_int_equal(definition_write(&f.gates[0], &text, &len, &e), 0);
    if (definition_parse(text, len, &again, &e) < 0)
        fail_msg("%s", e.text);
    assert_true(digest_equal(&f.gates[0].experiment_digest, &again.experiment_digest));
    assert_true(digest_equal(&f.gates[0].policy_digest, &again.policy_digest));
    assert_string_equal(definition_note(&again, "/title")->valuestring, "A gate");
    assert_int_equal((int) pointer_get(again.experiment, "/sampling/interval")->valuedouble, 500);
}

static void definition_json_refuses_what_the_yaml_could_not_say(void **state)
{
    static const struct {
        const char *from;
        const char *to;
        const char *expected;
    } cases[] = {
        {"\"class\": \"box-a\"", "\"class\": 1", "/experiment/class"},
        {"\"class\": \"box-a\"", "\"clas\": \"box-a\"", "unknown key"},
        {"\"worse\": \"lower\"", "\"worse\": \"sideways\"", "/policy/audit/metrics/0/worse"},
        {"cleanrun-definition/1", "cleanrun-definition/2", "schema"},
        {"/policy/audit/metrics/0/label", "/policy/audit/metrics/0/path", "not an unhashed key"},
        {"\"gate\": \"g1\"", "\"gate\": \"G 1\"", "gate name"},
        {"\"gate\": \"g1\"", "\"gate\": \"commit\"", "gate name"},
    };
    AUTO_DEFINITION_FILE struct definition_file f = {0};
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    struct err e = ERR_INIT;

    (void) state;
    parse(GOOD, &f);
    assert_int_equal(definition_write(&f.gates[0], &text, &len, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_DEFINITION struct definition d = {0};
        AUTO_BUF struct buf b = {0};
        const char *at = strstr(text, cases[i].from);

        assert_non_null(at);
        buf_init(&b, LIMIT_MIB(1));
        buf_put(&b, text, (size_t) (at - text));
        buf_puts(&b, cases[i].to);
        buf_puts(&b, at + strlen(cases[i].from));
        assert_int_equal(definition_parse(b.data, b.len, &d, &e), -1);
        if (!strstr(e.text, cases[i].expected))
            fail_msg("case %zu: expected '%s' in: %s", i, cases[i].expected, e.text);
    }
}

static void definition_errors_name_the_place_and_the_likely_word(void **state)
{
    (void) state;
    refuse("version: 1\ngates:\n  g:\n    clas: a\n",
           "f.yaml:4:5: unknown key 'clas'; did you mean 'class'?");
    refuse("version: 1\ngate: {}\n", "f.yaml:2:1: unknown key 'gate'; did you mean 'gates'?");
    refuse("version: 2\ngates: {g: {}}\n", "'version: 1' is required");
    /* The number, written as one: what a stricter reader refuses is refused here. */
    refuse("version: \"1\"\ngates: {g: {}}\n",
           "f.yaml:1:10: version is the number 1, without quotes");
    refuse("version: '1'\ngates: {g: {}}\n",
           "f.yaml:1:10: version is the number 1, without quotes");
    refuse("version: 1.0\ngates: {g: {}}\n", "f.yaml:1:10: 'version: 1' is required, not '1.0'");
    refuse("version: 0x1\ngates: {g: {}}\n", "f.yaml:1:10: 'version: 1' is required");
    refuse("version: [1]\ngates: {g: {}}\n", "f.yaml:1:10: 'version: 1' is required");
    refuse("{\"version\": \"1\", \"gates\": {\"g\": {}}}\n",
           "f.yaml:1:13: version is the number 1");
    refuse("gates: {g: {}}\n", "f.yaml:1:1: 'version: 1' is required");
    refuse("version: 1\ngates:\n  Bad_Name: {}\n", "f.yaml:3:3: gate name 'Bad_Name'");
    refuse("version: 1\ngates:\n  commit: {}\n", "f.yaml:3:3: 'commit' is a reserved word");
    refuse("version: 1\ngates:\n  pull: {}\n", "f.yaml:3:3: 'pull' is a reserved word");
    refuse("version: 1\ngates:\n  baselines: {}\n", "f.yaml:3:3: 'baselines' is a reserved word");
    refuse("version: 1\ngates:\n  h: {}\n", "f.yaml:3:3: 'h' is a reserved word");
    refuse("version: 1\ngates:\n  badge: {}\n", "f.yaml:3:3: 'badge' is a reserved word");
    refuse("version: 1\ngates:\n  badge.svg: {}\n", "f.yaml:3:3: gate name 'badge.svg'");
    refuse("version: 1\ngates:\n  g:\n    class: a\n    class: b\n",
           "f.yaml:5:5: key 'class' again, first at line 4");
    refuse(HEAD BUILD RUN, "key 'identity' is missing");
    refuse(HEAD "    build: {command: make, executable: {from: path}}\n" RUN POLICY,
           "f.yaml:6:22: expected a list");
    refuse(HEAD "    build: {command: [make], executable: {from: guess}}\n" RUN POLICY,
           "'guess' is not allowed here (allowed: path, cargo-messages, meson-introspection)");
    refuse(HEAD "    build: {command: [make], executable: {from: paht, path: a}}\n" RUN POLICY,
           "f.yaml:6:49: 'paht' is not allowed here (allowed: path, cargo-messages, "
           "meson-introspection); did you mean 'path'?");
    refuse(HEAD BUILD RUN POLICY "    sampling: {interval: 5s, into: resources}\n",
           "'resources' is not a JSON Pointer: it begins with '/'");
    refuse(HEAD BUILD RUN POLICY "    sampling: {interval: 500}\n",
           "expected a duration with its unit");
    refuse(HEAD BUILD RUN POLICY "    sampling: {interval: 9ms, into: /resources}\n",
           "9ms is outside 10ms … 366 days (8784h)");
    refuse(HEAD BUILD RUN POLICY "    sampling: {interval: 8785h, into: /resources}\n",
           "8785h is outside 10ms … 366 days (8784h)");
    refuse(HEAD BUILD "    run: {command: [a], report: x.json, timeout: 5124096h}\n" POLICY,
           "5124096h is outside 1ms … 366 days (8784h)");
    refuse(HEAD BUILD "    run: {command: [a], report: x.json, timeout: 31622400001ms}\n" POLICY,
           "31622400001ms is outside 1ms … 366 days (8784h)");
    refuse(HEAD BUILD "    run: {command: [a], report: x.json, timeout: 0s}\n" POLICY,
           "0s is outside 1ms … 366 days (8784h)");
    refuse(HEAD BUILD "    run: {command: [a], report: ../x.json}\n" POLICY,
           "not a safe relative name");
}

static void definition_refuses_words_in_braces_that_nothing_replaces(void **state)
{
    struct definition_file f = {0};

    (void) state;
    refuse(HEAD BUILD "    run: {command: ['{exe}'], report: s/1.json}\n" POLICY,
           "f.yaml:7:21: nothing replaces '{exe}' here (known: executable, results, profile, "
           "rate); did you mean '{executable}'?");
    refuse(HEAD BUILD
           "    run: {command: ['{executable}', '--out={result}'], report: s/1.json}\n" POLICY,
           "did you mean '{results}'?");
    refuse(HEAD BUILD "    run: {command: ['{prog}'], report: s/1.json}\n" POLICY,
           "nothing replaces '{prog}' here (known: ");
    refuse(HEAD BUILD "    run: {command: ['{executable}'], report: s/1.json, env: {set: {A: "
                      "'{executabel}/x'}}}\n" POLICY,
           "did you mean '{executable}'?");
    refuse(HEAD BUILD RUN "    modes: {cpu: {command: [perf, '{profil}/a']}}\n" POLICY,
           "did you mean '{profile}'?");
    /* Braces of the program's own language stay. */
    parse(HEAD BUILD "    run: {command: ['{executable}', '{\"a\": {}}', 'x{print}', '{A}', '{ exe "
                     "}'], report: s/1.json}\n" POLICY,
          &f);
    definition_file_fini(&f);
}

static void definition_remembers_where_its_parts_stand(void **state)
{
    struct definition_file f = {0};
    struct definition read = {0};
    struct err e = ERR_INIT;
    char *bytes = NULL;
    size_t len = 0;
    char place[DEFINITION_PLACE_SIZE];

    (void) state;
    parse(GOOD, &f);
    assert_string_equal(definition_place(&f.gates[0], "/experiment/build/executable/path", place),
                        "f.yaml:6:55");
    assert_string_equal(definition_place(&f.gates[0], "/experiment/build/executable/target", place),
                        "f.yaml:6:30");
    assert_string_equal(definition_place(&f.gates[0], "/policy/audit/metrics/0/path", place),
                        "f.yaml:10:55");
    assert_string_equal(definition_place(&f.gates[0], "/policy/audit/metrics/0/none/below", place),
                        "f.yaml:10:54");
    assert_string_equal(definition_place(&f.gates[0], "/policy/soak", place), "/policy/soak");
    assert_string_equal(definition_place(&f.gates[0], "/experiment", place), "/experiment");
    assert_string_equal(definition_place(&f.gates[0], "no pointer", place), "no pointer");
    assert_int_equal(definition_write(&f.gates[0], &bytes, &len, &e), 0);
    assert_int_equal(definition_parse(bytes, len, &read, &e), 0);
    assert_string_equal(definition_place(&read, "/experiment/run", place), "/experiment/run");
    definition_fini(&read);
    free(bytes);
    definition_file_fini(&f);
}

static void definition_refuses_yaml_beyond_the_strict_subset(void **state)
{
    (void) state;
    refuse("version: 1\ngates: &a {}\n", "anchors");
    refuse("version: 1\ngates: *a\n", "aliases");
    refuse("version: !!int 1\n", "tags");
    refuse("version: 1\n<<: {a: b}\n", "merge");
    refuse("version: 1\n---\nversion: 1\n", "only one document");
    refuse("version:\n", "a value is missing");
    refuse("", "empty");
    refuse("version: [\n", "f.yaml:");
    refuse("v: {v: {v: {v: {v: {v: {v: {v: {v: {v: {v: {v: {v: 1}}}}}}}}}}}}}\n", "deep");
    refuse("version: \xff\n", "UTF-8");
}

/* No schema-less typing: `no`, `12:30:45` and 1e2 stay what the schema says they are. */
static void definition_types_come_from_the_schema(void **state)
{
    AUTO_DEFINITION_FILE struct definition_file f = {0};
    const cJSON *x = NULL;

    (void) state;
    parse(
        HEAD
        "    build: {command: [no, 12:30:45, 5, 'true'], executable: {from: path, path: 1e2}}\n" RUN
        "    identity: [{path: /a, require: required}]\n"
        "    accept: {exact: [{path: /a, equals: 1e2}, {path: /b, equals: '1e2'}, {path: /c, "
        "equals: no}, "
        "{path: /d, equals: true}, {path: /e, equals: null}, {path: /f, equals: [1, {k: '2'}]}]}\n"
        "    audit: {paths: {required: [s/1.json]}, metrics: [{path: /r, label: r, unit: s, worse: "
        "higher, "
        "tolerance_pct: 5, gated: true}]}\n",
        &f);
    x = f.gates[0].experiment;
    assert_string_equal(pointer_get(x, "/build/command/0")->valuestring, "no");
    assert_string_equal(pointer_get(x, "/build/command/1")->valuestring, "12:30:45");
    assert_string_equal(pointer_get(x, "/build/command/2")->valuestring, "5");
    assert_string_equal(pointer_get(x, "/build/executable/path")->valuestring, "1e2");
    x = f.gates[0].policy;
    assert_true(cJSON_IsNumber(pointer_get(x, "/accept/exact/0/equals")));
    assert_string_equal(pointer_get(x, "/accept/exact/1/equals")->valuestring, "1e2");
    assert_string_equal(pointer_get(x, "/accept/exact/2/equals")->valuestring, "no");
    assert_true(cJSON_IsTrue(pointer_get(x, "/accept/exact/3/equals")));
    assert_true(cJSON_IsNull(pointer_get(x, "/accept/exact/4/equals")));
    assert_string_equal(pointer_get(x, "/accept/exact/5/equals/1/k")->valuestring, "2");
}

static void definition_diff_names_each_differing_key(void **state)
{
    AUTO_DEFINITION_FILE struct definition_file a = {0};
    AUTO_DEFINITION_FILE struct definition_file b = {0};
    AUTO_JSON cJSON *rows = NULL;
    struct err e = ERR_INIT;

    (void) state;
    parse(GOOD, &a);
    parse("version: 1\nproject: o/r\ngates:\n  g1:\n    class: box-b\n" BUILD RUN POLICY
          "    conditioning: [{name: x}]\n",
          &b);
    assert_int_equal(definition_experiment_diff(&a.gates[0], &b.gates[0], &rows, &e), 0);
    assert_int_equal(cJSON_GetArraySize(rows), 2);
    assert_string_equal(pointer_get(rows, "/0/field")->valuestring, "/class");
    assert_string_equal(pointer_get(rows, "/0/baseline")->valuestring, "box-a");
    assert_string_equal(pointer_get(rows, "/1/field")->valuestring, "/conditioning");
    assert_null(pointer_get(rows, "/1/baseline"));
}

static void definition_publishes_a_json_schema_of_every_key(void **state)
{
    AUTO_JSON cJSON *schema = NULL;
    struct err e = ERR_INIT;
    static const char *const keys[] = {"class",    "build",   "run",   "conditioning", "phases",
                                       "sampling", "windows", "modes", "host",         "identity",
                                       "infer",    "accept",  "audit", "repeats",      "confirm"};
    const cJSON *gate = NULL;

    (void) state;
    assert_int_equal(definition_json_schema(&schema, &e), 0);
    gate = pointer_get(schema, "/properties/gates/additionalProperties");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        assert_non_null(json_get(json_get(gate, "properties"), keys[i]));
    assert_true(cJSON_IsFalse(json_get(gate, "additionalProperties")));
}

/* A key counts as named when it stands as code: `key`, or as the last word of `part.key`. */
static bool is_named(const char *page, const char *key)
{
    char plain[100], dotted[100];

    (void) snprintf(plain, sizeof plain, "`%s`", key);
    (void) snprintf(dotted, sizeof dotted, ".%s`", key);
    return strstr(page, plain) || strstr(page, dotted);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as our own tables */
static size_t unnamed_keys(const struct schema *s, const char *page)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_fields; i++) {
        if (!is_named(page, s->fields[i].key)) {
            print_error("docs/definition.md does not name the key %s\n", s->fields[i].key);
            n++;
        }
        n += unnamed_keys(s->fields[i].schema, page);
    }
    for (size_t i = 0; s->words && s->words[i]; i++) {
        if (!is_named(page, s->words[i])) {
            print_error("docs/definition.md does not name the word %s\n", s->words[i]);
            n++;
        }
    }
    return s->item ? n + unnamed_keys(s->item, page) : n;
}

static void definition_page_names_every_key(void **state)
{
    AUTO_FREE char *path = test_join(test_source_root(), "docs/definition.md");
    AUTO_FREE char *page = test_read_path(path, NULL);

    (void) state;
    assert_int_equal(unnamed_keys(&schema_gate, page), 0);
}

static void definition_page_begins_with_a_definition_that_is_accepted(void **state)
{
    AUTO_FREE char *path = test_join(test_source_root(), "docs/definition.md");
    AUTO_FREE char *page = test_read_path(path, NULL);
    AUTO_DEFINITION_FILE struct definition_file f = {0};
    AUTO_BUF struct buf b = {0};
    const char *line = strstr(page, "    version: 1");

    (void) state;
    assert_non_null(line);
    buf_init(&b, LIMIT_YAML);
    for (; strncmp(line, "    ", 4) == 0; line += strcspn(line, "\n") + 1)
        buf_put(&b, line + 4, strcspn(line, "\n") - 3);
    buf_putc(&b, '\0');
    parse(b.data, &f);
    assert_int_equal(f.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definition_has_two_halves_and_notes),
        cmocka_unit_test(definition_digests_move_with_their_half_only),
        cmocka_unit_test(only_labels_and_timeouts_are_in_neither_half),
        cmocka_unit_test(definition_json_reads_back_with_equal_digests),
        cmocka_unit_test(definition_json_refuses_what_the_yaml_could_not_say),
        cmocka_unit_test(definition_errors_name_the_place_and_the_likely_word),
        cmocka_unit_test(definition_refuses_words_in_braces_that_nothing_replaces),
        cmocka_unit_test(definition_remembers_where_its_parts_stand),
        cmocka_unit_test(definition_refuses_yaml_beyond_the_strict_subset),
        cmocka_unit_test(definition_types_come_from_the_schema),
        cmocka_unit_test(definition_diff_names_each_differing_key),
        cmocka_unit_test(definition_publishes_a_json_schema_of_every_key),
        cmocka_unit_test(definition_page_names_every_key),
        cmocka_unit_test(definition_page_begins_with_a_definition_that_is_accepted),
    };

    return cmocka_run_group_tests_name("definition", tests, NULL, NULL);
}
