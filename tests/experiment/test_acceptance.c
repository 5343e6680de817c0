/* Each check family by itself, and the comparison of two documents. */
#include "tests/lib/support.h"

#include <stdio.h>
#include <string.h>

#include "base/json_in.h"
#include "base/json_out.h"
#include "base/limits.h"
#include "experiment/acceptance.h"
#include "experiment/pointer.h"

#define YAML_HEAD                                                                                  \
    "version: 1\ngates:\n  g:\n    class: c\n"                                                     \
    "    build: {command: [make], executable: {from: path, path: app}}\n"                          \
    "    run: {command: ['{executable}'], report: s/1.json}\n"                                     \
    "    identity: [{path: /load, require: required}]\n"                                           \
    "    audit: {paths: {required: [s/1.json]}, metrics: [{path: /r, unit: x, worse: lower, "      \
    "tolerance_pct: 5, gated: true}]}\n"

static void judge(const char *accept, const char *report_text, struct acceptance *out)
{
    char yaml[4096];
    AUTO_DEFINITION_FILE struct definition_file f = {0};
    AUTO_JSON cJSON *report = NULL;
    struct err e = ERR_INIT;
    static const struct json_limits limits = {.max_bytes = LIMIT_REPORT};
    struct acceptance_input in = {.report_path = "s/1.json"};

    assert_true(snprintf(yaml, sizeof yaml, "%s    accept: %s\n", YAML_HEAD, accept) <
                (int) sizeof yaml);
    if (definition_file_parse("f.yaml", yaml, strlen(yaml), &f, &e) < 0 ||
        json_parse(report_text, strlen(report_text), &limits, &report, &e) < 0)
        fail_msg("%s", e.text);
    in.definition = &f.gates[0];
    in.report = report;
    if (acceptance_evaluate(&in, out, &e) < 0)
        fail_msg("%s", e.text);
}

static void expect(const char *accept, const char *report, bool passes)
{
    AUTO_ACCEPTANCE struct acceptance a = {0};

    judge(accept, report, &a);
    if ((a.verdict == ACCEPTANCE_PASS) != passes) {
        struct buf b;

        buf_init(&b, LIMIT_KIB(64));
        json_write(&b, a.document, JSON_PRETTY);
        fail_msg("%s on %s:\n%s", accept, report, b.data);
    }
}

static void exact_is_typed(void **state)
{
    (void) state;
    expect("{exact: [{path: /a, equals: 2000}]}", "{\"a\":2000.0}", true);
    expect("{exact: [{path: /a, equals: 2000.0}]}", "{\"a\":2000}", true);
    expect("{exact: [{path: /a, equals: 1}]}", "{\"a\":true}", false);
    expect("{exact: [{path: /a, equals: true}]}", "{\"a\":1}", false);
    expect("{exact: [{path: /a, equals: '1'}]}", "{\"a\":1}", false);
    expect("{exact: [{path: /a, equals: null}]}", "{\"a\":null}", true);
    expect("{exact: [{path: /a, equals: null}]}", "{}", false);
    expect("{exact: [{path: /a, equals: [1, {b: 2}]}]}", "{\"a\":[1,{\"b\":2}]}", true);
    expect("{exact: [{path: /a, equals: [1, {b: 2}]}]}", "{\"a\":[1,{\"b\":2,\"c\":3}]}", false);
}

/* Beyond 2^53-1 two texts are one double: equality would say nothing. */
static void exact_is_exact(void **state)
{
    (void) state;
    expect("{exact: [{path: /a, equals: 9007199254740991}]}", "{\"a\":9007199254740991.0}", true);
    expect("{exact: [{path: /a, equals: -9007199254740991}]}", "{\"a\":-9007199254740991}", true);
    expect("{exact: [{path: /a, equals: 9007199254740990}]}", "{\"a\":9007199254740991}", false);
    expect("{exact: [{path: /a, equals: 9007199254740992.0}]}", "{\"a\":9007199254740993.0}",
           false);
    expect("{exact: [{path: /a, equals: 9007199254740992.0}]}", "{\"a\":9007199254740992.0}",
           false);
    expect("{exact: [{path: /a, equals: 1e300}]}", "{\"a\":1e300}", false);
    expect("{exact: [{path: /a, equals: [1, {b: 1e16}]}]}", "{\"a\":[1,{\"b\":1e16}]}", false);
    expect("{repeated: [{path: /l, count: 1, exact: [{path: /a, equals: 1e16}]}]}",
           "{\"l\":[{\"a\":1e16}]}", false);
    expect("{repeated: [{path: /l, count: 1, exact: [{path: /a, equals: 1e15}]}]}",
           "{\"l\":[{\"a\":1e15}]}", true);
    /* counts are integers */
    expect("{equal: [{paths: [/a, /b]}]}", "{\"a\":1e15,\"b\":1e15}", false);
}

static void absent_and_absolute_path(void **state)
{
    (void) state;
    expect("{absent: [{path: /a}]}", "{}", true);
    expect("{absent: [{path: /a}]}", "{\"a\":null}", false);
    expect("{absent: [{path: /a/*}]}", "{\"a\":{}}", true);
    expect("{absent: [{path: /a/*}]}", "{\"a\":{\"b\":1}}", false);
    expect("{absolute_path: [{path: /a}]}", "{\"a\":\"/tmp\"}", true);
    expect("{absolute_path: [{path: /a}]}", "{\"a\":\"tmp\"}", false);
    expect("{absolute_path: [{path: /a}]}", "{\"a\":1}", false);
    expect("{absolute_path: [{path: /a}]}", "{}", false);
}

static void thresholds_include_their_limit(void **state)
{
    (void) state;
    expect("{floors: [{path: /a, min: 59.0}]}", "{\"a\":59}", true);
    expect("{floors: [{path: /a, min: 59.0}]}", "{\"a\":58.999}", false);
    expect("{floors: [{path: /a, min: 0}]}", "{\"a\":\"5\"}", false);
    expect("{floors: [{path: /a, min: 0}]}", "{\"a\":true}", false);
    expect("{limits: [{path: /a, op: '<=', value: 10, unit: s}]}", "{\"a\":10}", true);
    expect("{limits: [{path: /a, op: '<=', value: 10, unit: s}]}", "{\"a\":10.0000001}", false);
    expect("{limits: [{path: /a, op: '>=', value: 10, unit: s}]}", "{\"a\":9.9999999}", false);
    expect("{limits: [{path: /a, op: '<=', value: 10, unit: s}]}", "{}", false);
    expect("{limits: [{path: /a, op: '<=', value: 10, unit: s}]}", "{\"a\":null}", false);
    expect("{limits: [{path: /a/*/p, op: '<=', value: 10, unit: s}]}",
           "{\"a\":{\"x\":{\"p\":1},\"y\":{\"p\":11}}}", false);
    expect("{limits: [{path: /a/*/p, op: '<=', value: 10, unit: s}]}", "{\"a\":{\"x\":{\"p\":1}}}",
           true);
    expect("{limits: [{path: /a/*/p, op: '<=', value: 10, unit: s}]}", "{\"a\":{}}", false);
    /* every member must have it: what is left out is no way around a threshold */
    expect("{limits: [{path: /a/*/p, op: '<=', value: 10, unit: s}]}",
           "{\"a\":{\"x\":{\"p\":1},\"y\":{\"q\":11}}}", false);
    expect("{limits: [{path: /a/*/p, op: '<=', value: 10, unit: s}]}", "{\"a\":[{\"p\":1},{}]}",
           false);
    expect("{limits: [{path: /a/*/p, op: '<=', value: 10, unit: s}]}", "{\"a\":[{\"p\":1},1]}",
           false);
    expect("{floors: [{path: /a/*/p/*, min: 1}]}", "{\"a\":[{\"p\":[1]},{\"p\":[]}]}", false);
    expect("{floors: [{path: /a/*/p/*, min: 1}]}", "{\"a\":[{\"p\":[1]},{\"p\":[2]}]}", true);
    expect("{exact: [{path: /a/*/p, equals: 1}]}", "{\"a\":[{\"p\":1},{}]}", false);
    expect("{absent: [{path: /a/*/p}]}", "{\"a\":[{\"q\":1},{}]}", true);
}

static void counts_belong_together(void **state)
{
    (void) state;
    expect("{equal: [{paths: [/a, /b]}]}", "{\"a\":5,\"b\":5}", true);
    expect("{equal: [{paths: [/a, /b]}]}", "{\"a\":5,\"b\":6}", false);
    expect("{equal: [{paths: [/a, /b]}]}", "{\"a\":5,\"b\":5.0}", false);
    expect("{equal: [{paths: [/a, /b]}]}", "{\"a\":5}", false);
    expect("{equal: [{paths: [/a, /b]}]}", "{\"b\":5}", false);
    expect("{equal: [{paths: [/a, /b, /c]}]}", "{\"a\":5,\"b\":6,\"c\":5}", false);
    expect("{sums: [{total: /t, parts: [/a, /b]}]}", "{\"t\":11,\"a\":5,\"b\":6}", true);
    expect("{sums: [{total: /t, parts: [/a, /b]}]}", "{\"t\":10,\"a\":5,\"b\":6}", false);
    expect("{sums: [{total: /t, parts: [/a, /b]}]}", "{\"t\":5,\"a\":5}", false);
    expect("{shares: [{part: /a, of: /b, max: 0.005}]}", "{\"a\":5,\"b\":1000}", true);
    expect("{shares: [{part: /a, of: /b, max: 0.005}]}", "{\"a\":6,\"b\":1000}", false);
    expect("{shares: [{part: /a, of: /b, max: 0.005}]}", "{\"a\":0,\"b\":0}", false);
    expect("{shares: [{part: /a, of: /b, max: 0.005}]}", "{\"a\":-1,\"b\":10}", false);
}

static void zero_tree_needs_integer_leaves(void **state)
{
    static const char accept[] = "{zero_tree: [{path: /e}]}";

    (void) state;
    expect(accept, "{\"e\":{\"a\":0,\"b\":{},\"c\":{\"d\":0}}}", true);
    expect(accept, "{\"e\":{\"a\":0,\"c\":{\"d\":2}}}", false);
    expect(accept, "{\"e\":{\"a\":0.0}}", false);
    expect(accept, "{\"e\":{\"a\":false}}", false);
    expect(accept, "{\"e\":{\"a\":null}}", false);
    expect(accept, "{\"e\":{\"a\":-1,\"b\":1}}", false);
    expect(accept, "{\"e\":{\"a\":{}}}", false);
    expect(accept, "{\"e\":{}}", false);
    expect(accept, "{}", false);
}

#define BURST                                                                                      \
    "{exact: [{path: /load/cps, equals: 160}], limits: [{path: /asr, op: '>=', value: 0.995, "     \
    "unit: ratio}], "                                                                              \
    "shares: [{part: /timeouts, of: /offered, max: 0.005}], sums: [{total: /offered, parts: "      \
    "[/succeeded, /failed]}], "                                                                    \
    "equal: [{paths: [/failed, /timeouts]}]}"

/* The seed's burst rules, as data. */
static void burst_rules_are_data(void **state)
{
    (void) state;
    expect(BURST,
           "{\"load\":{\"cps\":160},\"asr\":0.996,\"offered\":1000,\"succeeded\":996,\"failed\":4,"
           "\"timeouts\":4}",
           true);
    expect(BURST,
           "{\"load\":{\"cps\":161},\"asr\":0.996,\"offered\":1000,\"succeeded\":996,\"failed\":4,"
           "\"timeouts\":4}",
           false);
    expect(BURST,
           "{\"load\":{\"cps\":160},\"asr\":0.994,\"offered\":1000,\"succeeded\":996,\"failed\":4,"
           "\"timeouts\":4}",
           false);
    expect(BURST,
           "{\"load\":{\"cps\":160},\"asr\":0.996,\"offered\":1000,\"succeeded\":994,\"failed\":6,"
           "\"timeouts\":6}",
           false);
    expect(BURST,
           "{\"load\":{\"cps\":160},\"asr\":0.996,\"offered\":1001,\"succeeded\":996,\"failed\":4,"
           "\"timeouts\":4}",
           false);
    expect(BURST,
           "{\"load\":{\"cps\":160},\"asr\":0.996,\"offered\":1000,\"succeeded\":996,\"failed\":4,"
           "\"timeouts\":3}",
           false);
}

static void repeated_elements_are_alike(void **state)
{
    static const char accept[] =
        "{repeated: [{path: /s, count: 2, exact: [{path: /k, equals: 7}], starts_with: [{path: "
        "/f, text: 'x{index}:'}], series: [{path: /p, values: [10, 20]}]}]}";

    (void) state;
    expect(accept, "{\"s\":[{\"k\":7,\"f\":\"x0:a\",\"p\":10},{\"k\":7,\"f\":\"x1:b\",\"p\":20}]}",
           true);
    expect(accept, "{\"s\":[{\"k\":7,\"f\":\"x0:a\",\"p\":10}]}", false);
    expect(accept, "{\"s\":[{\"k\":7,\"f\":\"x0:a\",\"p\":10},{\"k\":8,\"f\":\"x1:b\",\"p\":20}]}",
           false);
    expect(accept, "{\"s\":[{\"k\":7,\"f\":\"x0:a\",\"p\":10},{\"k\":7,\"f\":\"x0:b\",\"p\":20}]}",
           false);
    expect(accept, "{\"s\":[{\"k\":7,\"f\":\"x0:\",\"p\":10},{\"k\":7,\"f\":\"x1:b\",\"p\":20}]}",
           false);
    expect(accept, "{\"s\":[{\"k\":7,\"f\":\"x0:a\",\"p\":20},{\"k\":7,\"f\":\"x1:b\",\"p\":10}]}",
           false);
    expect(accept, "{\"s\":{}}", false);
    expect(accept, "{}", false);
}

#define MARK(phase, kind, ms)                                                                      \
    "{\"phase\":\"" phase "\",\"kind\":\"" kind "\",\"elapsed_ms\":" ms "}"

static void phases_follow_their_rules(void **state)
{
    static const char accept[] =
        "{phases: {markers: /m, planned: [{phase: r, elapsed: 5s}], required: [a, b], "
        "forbidden_kinds: [bad], monotonic: [a, b], min_spans: [{from: a, to: b, min: 2s}]}}";

    (void) state;
    expect(accept,
           "{\"m\":[" MARK("r", "planned", "5000") "," MARK("a", "actual", "0") "," MARK(
               "b", "actual_late", "2000") "]}",
           true);
    expect(accept,
           "{\"m\":[" MARK("r", "planned", "5001") "," MARK("a", "actual", "0") "," MARK(
               "b", "actual", "2000") "]}",
           false);
    expect(accept,
           "{\"m\":[" MARK("r", "actual", "5000") "," MARK("a", "actual", "0") "," MARK(
               "b", "actual", "2000") "]}",
           false);
    expect(accept,
           "{\"m\":[" MARK("r", "planned", "5000") "," MARK("a", "actual", "0") "," MARK(
               "b", "actual", "1999") "]}",
           false);
    expect(accept,
           "{\"m\":[" MARK("r", "planned", "5000") "," MARK("a", "actual", "0") "," MARK(
               "b", "planned", "2000") "]}",
           false);
    expect(accept,
           "{\"m\":[" MARK("r", "planned", "5000") "," MARK("a", "actual", "0") "," MARK(
               "b", "actual", "2000.0") "]}",
           false);
    expect(accept,
           "{\"m\":[" MARK("r", "planned", "5000") "," MARK("a", "actual", "0") "," MARK(
               "b", "actual", "2000") "," MARK("z", "bad", "1") "]}",
           false);
    expect(accept,
           "{\"m\":[" MARK("r", "planned", "5000") "," MARK("a", "actual", "9000") "," MARK(
               "b", "actual", "2000") "]}",
           false);
    expect(accept, "{\"m\":{}}", false);
    expect(accept, "{}", false);
}

static void bindings_hold_windows_to_markers(void **state)
{
    static const char accept[] =
        "{bindings: [{markers: /m, origin: a, tolerance: 2s, bounds: [{value: /w, phase: b}]}]}";

    (void) state;
    expect(accept,
           "{\"w\":8.0,\"m\":[" MARK("a", "actual", "1000") "," MARK("b", "actual", "11000") "]}",
           true);
    expect(accept,
           "{\"w\":12.0,\"m\":[" MARK("a", "actual", "1000") "," MARK("b", "actual", "11000") "]}",
           true);
    expect(accept,
           "{\"w\":7.999,\"m\":[" MARK("a", "actual", "1000") "," MARK("b", "actual", "11000") "]}",
           false);
    expect(accept,
           "{\"w\":10,\"m\":[" MARK("a", "actual", "1000") "," MARK(
               "b", "actual", "11000") "," MARK("b", "actual", "11000") "]}",
           false);
    expect(accept, "{\"w\":10,\"m\":[" MARK("b", "actual", "11000") "]}", false);
    expect(accept, "{\"m\":[" MARK("a", "actual", "1000") "," MARK("b", "actual", "11000") "]}",
           false);
}

/* Each rule by itself: where all stand together, another one may refuse what this one let pass. */
static void each_phase_rule_refuses_alone(void **state)
{
    static const char planned[] = "{phases: {markers: /m, planned: [{phase: r, elapsed: 5s}]}}";
    static const char required[] = "{phases: {markers: /m, required: [a]}}";
    static const char order[] = "{phases: {markers: /m, monotonic: [a, b]}}";
    static const char span[] = "{phases: {markers: /m, min_spans: [{from: a, to: b, min: 1s}]}}";
    static const char forbidden[] = "{phases: {markers: /m, forbidden_kinds: [bad]}}";
    static const char bound[] =
        "{bindings: [{markers: /m, origin: a, tolerance: 2s, bounds: [{value: /w, phase: b}]}]}";
    static const struct {
        const char *accept;
        const char *report;
        bool passes;
    } rows[] = {
        {planned, "{\"m\":[" MARK("r", "planned", "5000") "]}", true},
        {planned, "{\"m\":[" MARK("r", "planned", "5000") "," MARK("r", "planned", "5000") "]}",
         false},
        {planned, "{\"m\":[]}", false},
        {planned, "{\"m\":[" MARK("r", "planned", "\"5000\"") "]}", false},
        {planned, "{\"m\":[" MARK("r", "planned", "5000.0") "]}", false},
        {required, "{\"m\":[" MARK("a", "actual", "0") "]}", true},
        {required, "{\"m\":[" MARK("a", "planned", "0") "]}", false},
        {required, "{\"m\":[" MARK("a", "actual", "-1") "]}", false},
        {required, "{\"m\":[" MARK("a", "actual", "null") "]}", false},
        {required, "{\"m\":[]}", false},
        {order, "{\"m\":[" MARK("a", "actual", "5") "," MARK("b", "actual", "5") "]}", true},
        {order, "{\"m\":[" MARK("a", "actual", "5") "," MARK("b", "actual", "4") "]}", false},
        {order, "{\"m\":[" MARK("a", "actual", "5") "]}", false},
        {order, "{\"m\":[" MARK("b", "actual", "5") "]}", false},
        {order, "{\"m\":[" MARK("a", "actual", "5") "," MARK("b", "actual", "6.5") "]}", false},
        {span, "{\"m\":[" MARK("a", "actual", "5") "," MARK("b", "actual", "1005") "]}", true},
        {span, "{\"m\":[" MARK("a", "actual", "5") "," MARK("b", "actual", "1004") "]}", false},
        {span, "{\"m\":[" MARK("b", "actual", "1005") "]}", false},
        {span, "{\"m\":[" MARK("a", "actual", "\"0\"") "," MARK("b", "actual", "1005") "]}", false},
        {"{phases: {markers: /m, min_spans: [{from: a, to: b, min: 0s}]}}",
         "{\"m\":[" MARK("a", "actual", "0") "]}", false},
        {forbidden, "{\"m\":[]}", true},
        {forbidden, "{\"m\":[" MARK("a", "bad", "0") "]}", false},
        {forbidden, "{\"m\":{}}", false},
        {forbidden, "{\"m\":null}", false},
        {forbidden, "{}", false},
        {bound, "{\"w\":1,\"m\":[" MARK("a", "actual", "0") "," MARK("b", "actual", "1000") "]}",
         true},
        {bound,
         "{\"w\":1,\"m\":[" MARK("a", "actual", "0") "," MARK("a", "actual", "0") "," MARK(
             "b", "actual", "1000") "]}",
         false},
        {bound, "{\"w\":1,\"m\":[" MARK("b", "actual", "1000") "]}", false},
        {bound,
         "{\"w\":1,\"m\":[" MARK("a", "actual", "\"0\"") "," MARK("b", "actual", "1000") "]}",
         false},
        {bound, "{\"w\":1,\"m\":[" MARK("a", "actual", "0") "," MARK("b", "actual", "true") "]}",
         false},
        {bound, "{\"w\":1,\"m\":[" MARK("a", "actual", "0") "]}", false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        expect(rows[i].accept, rows[i].report, rows[i].passes);
}

static void nothing_checked_is_not_accepted(void **state)
{
    (void) state;
    expect("{}", "{\"a\":1}", false);
    expect("{exact: []}", "{\"a\":1}", false);
}

static void every_check_is_listed(void **state)
{
    AUTO_ACCEPTANCE struct acceptance a = {0};

    (void) state;
    judge("{exact: [{name: first, path: /a, equals: 1}, {path: /b, equals: 2}], limits: [{path: "
          "/c, op: '<=', value: 3, "
          "unit: s}]}",
          "{\"a\":2}", &a);
    assert_int_equal(cJSON_GetArraySize(json_get(a.document, "checks")), 3);
    assert_string_equal(pointer_get(a.document, "/checks/0/name")->valuestring, "first");
    assert_string_equal(pointer_get(a.document, "/checks/0/operator")->valuestring, "==");
    assert_int_equal((int) pointer_get(a.document, "/checks/0/limit")->valuedouble, 1);
    assert_int_equal((int) pointer_get(a.document, "/checks/0/actual")->valuedouble, 2);
    assert_true(cJSON_IsNull(pointer_get(a.document, "/checks/0/error")));
    assert_string_equal(pointer_get(a.document, "/checks/1/name")->valuestring, "/b");
    assert_string_equal(pointer_get(a.document, "/checks/1/error")->valuestring, "absent");
    assert_true(cJSON_IsNull(pointer_get(a.document, "/checks/2/actual")));
    assert_string_equal(json_get(a.document, "report")->valuestring, "s/1.json");
}

/* A hostile report must not blow up the document that shows it. */
static void huge_values_are_not_copied(void **state)
{
    AUTO_ACCEPTANCE struct acceptance a = {0};
    char report[3000] = "{\"a\":[";

    (void) state;
    for (size_t i = 0; i < 1000; i++)
        memcpy(report + 6 + 2 * i, "1,", 2);
    memcpy(report + 6 + 2000 - 1, "]}", 3);
    judge("{exact: [{path: /a, equals: 1}]}", report, &a);
    assert_string_equal(pointer_get(a.document, "/checks/0/actual")->valuestring,
                        "(array too large to show)");
}

/* {"m":{"k000000":1,…}} with n members below m; caller frees. */
static char *wide_report(size_t n, const char *key)
{
    struct buf b;
    char *text = NULL;

    buf_init(&b, LIMIT_MIB(8));
    buf_puts(&b, "{\"m\":");
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s\"%s%06zu\":1", i == 0 ? "{" : ",", key, i);
    buf_puts(&b, "}}");
    text = buf_take(&b, NULL);
    assert_non_null(text);
    return text;
}

static void readers_take(const cJSON *document)
{
    struct buf b;
    struct err e = ERR_INIT;

    buf_init(&b, LIMIT_MIB(64));
    json_write(&b, document, JSON_PRETTY);
    assert_false(b.failed);
    if (json_validate(b.data, b.len, NULL, &e) < 0)
        fail_msg("%s", e.text);
    buf_fini(&b);
}

/* The report is its author's: more checks than a document holds is a FAIL that says so, no error.
 */
static void too_many_checks_fail_with_one(void **state)
{
    static const struct {
        size_t n;
        const char *key;
        const char *text;
    } rows[] = {
        {LIMIT_CHECKS + 1, "k",
         "2049 checks of one report, at most 2048 are allowed (/m/* matches 2049 values)"},
        {150000, "k", "150000 checks of one report, at most 2048 are allowed"},
        {LIMIT_CHECKS,
         "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
         "kkkkkkkkkkkkkkkkkkk"
         "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
         "kkkkkkkkkkkkkkkkkkkkkkkkkkkk"
         "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
         "kkkkkkkkkkkkkkkkkkkkkkkkkkkk",
         "2048 checks of one report take more than the 1048576 bytes of a document"},
    };
    AUTO_FREE char *most = wide_report(LIMIT_CHECKS, "k");
    AUTO_ACCEPTANCE struct acceptance fits = {0};

    (void) state;
    judge("{floors: [{path: '/m/*', min: 0}]}", most, &fits);
    assert_int_equal(fits.verdict, ACCEPTANCE_PASS);
    assert_int_equal(cJSON_GetArraySize(json_get(fits.document, "checks")), LIMIT_CHECKS);
    readers_take(fits.document);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *report = wide_report(rows[i].n, rows[i].key);
        AUTO_ACCEPTANCE struct acceptance a = {0};
        const cJSON *check = NULL;

        judge("{floors: [{path: '/m/*', min: 0}]}", report, &a);
        assert_int_equal(a.verdict, ACCEPTANCE_FAIL);
        assert_string_equal(json_get(a.document, "verdict")->valuestring, "FAIL");
        assert_int_equal(cJSON_GetArraySize(json_get(a.document, "checks")), 1);
        check = json_get(a.document, "checks")->child;
        assert_string_equal(json_get(check, "operator")->valuestring, "report");
        assert_true(cJSON_IsFalse(json_get(check, "passed")));
        assert_int_equal((int) json_get(check, "actual")->valuedouble, (int) rows[i].n);
        assert_int_equal((int) json_get(check, "limit")->valuedouble, LIMIT_CHECKS);
        if (strncmp(json_get(check, "error")->valuestring, rows[i].text, strlen(rows[i].text)) != 0)
            fail_msg("%s", json_get(check, "error")->valuestring);
        readers_take(a.document);
    }
}

/* Many checks of large values: each is bounded, and so are all together. */
static void large_values_of_many_checks_fail_with_one(void **state)
{
    AUTO_ACCEPTANCE struct acceptance a = {0};
    struct buf b;

    (void) state;
    buf_init(&b, LIMIT_MIB(4));
    buf_puts(&b, "{\"m\":[");
    for (size_t i = 0; i < 1000; i++)
        buf_printf(&b, "%s[\"%0900d\",\"%0900d\"]", i == 0 ? "" : ",", 1, 2);
    buf_puts(&b, "]}");
    judge("{exact: [{path: '/m/*', equals: 1}]}", b.data, &a);
    assert_int_equal(a.verdict, ACCEPTANCE_FAIL);
    assert_int_equal(cJSON_GetArraySize(json_get(a.document, "checks")), 1);
    readers_take(a.document);
    buf_fini(&b);
}

/* A member is there however long its name is. */
static void long_names_hide_nothing(void **state)
{
    char report[800] = "{\"errors\":{\"";

    (void) state;
    memset(report + 12, 'k', 600);
    memcpy(report + 612, "\":5}}", 6);
    expect("{absent: [{path: '/errors/*'}]}", report, false);
    expect("{limits: [{path: '/errors/*', op: '<=', value: 9, unit: x}]}", report, true);
    expect("{limits: [{path: '/errors/*', op: '<=', value: 4, unit: x}]}", report, false);
}

static void compare_finds_the_first_difference(void **state)
{
    static const char accept[] = "{exact: [{path: /a, equals: 1}, {path: /b, equals: 2}]}";
    static const struct {
        const char *from;
        const char *to;
        const char *field;
    } cases[] = {
        {"\"verdict\":\"FAIL\"", "\"verdict\":\"PASS\"", "/verdict"},
        {"\"actual\":3", "\"actual\":2", "/checks/1/actual"},
        {"\"limit\":2", "\"limit\":3", "/checks/1/limit"},
        {"\"passed\":false", "\"passed\":true", "/checks/1/passed"},
        {"\"name\":\"/a\"", "\"name\":\"/c\"", "/checks/0/name"},
        {"\"operator\":\"==\"", "\"operator\":\">=\"", "/checks/0/operator"},
        {"\"report\":\"s/1.json\"", "\"report\":\"s/2.json\"", "/report"},
        {"\"checks\":", "\"cheques\":", "/checks"},
    };
    AUTO_ACCEPTANCE struct acceptance a = {0};
    struct buf b;
    cJSON *differs = NULL;
    struct err e = ERR_INIT;

    (void) state;
    judge(accept, "{\"a\":1,\"b\":3}", &a);
    assert_int_equal(acceptance_compare(a.document, a.document, &differs, &e), 0);
    assert_null(differs);
    buf_init(&b, LIMIT_KIB(64));
    json_write(&b, a.document, JSON_COMPACT);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *found = strstr(b.data, cases[i].from);
        AUTO_JSON cJSON *packaged = NULL;
        char *text = NULL;

        assert_non_null(found);
        assert_true(asprintf(&text, "%.*s%s%s", (int) (found - b.data), b.data, cases[i].to,
                             found + strlen(cases[i].from)) > 0);
        assert_int_equal(json_parse(text, strlen(text), NULL, &packaged, &e), 0);
        assert_int_equal(acceptance_compare(packaged, a.document, &differs, &e), 0);
        assert_non_null(differs);
        assert_string_equal(json_get(differs, "field")->valuestring, cases[i].field);
        json_free(differs);
        differs = NULL;
        free(text);
    }
    buf_fini(&b);
}

static void compare_sees_a_missing_check(void **state)
{
    AUTO_ACCEPTANCE struct acceptance one = {0};
    AUTO_ACCEPTANCE struct acceptance two = {0};
    cJSON *differs = NULL;
    struct err e = ERR_INIT;

    (void) state;
    judge("{exact: [{path: /a, equals: 1}]}", "{\"a\":1}", &one);
    judge("{exact: [{path: /a, equals: 1}, {path: /a, equals: 1.0}]}", "{\"a\":1}", &two);
    assert_int_equal(acceptance_compare(one.document, two.document, &differs, &e), 0);
    assert_string_equal(json_get(differs, "field")->valuestring, "/checks/1");
    json_free(differs);
    assert_int_equal(acceptance_compare(NULL, two.document, &differs, &e), 0);
    assert_non_null(differs);
    json_free(differs);
}

static void failed_checks_are_told_in_words(void **state)
{
    static const struct {
        const char *accept, *told;
    } cases[] = {
        {"{exact: [{name: load, path: /a, equals: 2}]}", "load: 1, must be 2"},
        {"{exact: [{path: /text, equals: b}]}", "/text: \"a\", must be \"b\""},
        {"{floors: [{name: samples, path: /a, min: 10}]}", "samples: 1, must be at least 10"},
        {"{limits: [{path: /a, op: '<=', value: 0.5, unit: s}]}", "/a: 1, must be at most 0.5"},
        {"{zero_tree: [{name: no errors, path: /errors}]}", "no errors: 7, must be 0"},
        {"{floors: [{path: /b, min: 10}]}", "/b: must be at least 10; "},
        {"{absolute_path: [{path: /a}]}", "/a: "},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_ACCEPTANCE struct acceptance a = {0};
        AUTO_BUF struct buf words = {.data = NULL};

        judge(cases[i].accept, "{\"a\":1,\"text\":\"a\",\"errors\":{\"x\":3,\"y\":4}}", &a);
        buf_init(&words, LIMIT_KIB(4));
        acceptance_put_check(&words, json_get(a.document, "checks")->child);
        assert_non_null(words.data);
        if (strncmp(words.data, cases[i].told, strlen(cases[i].told)) != 0)
            fail_msg("'%s', not '%s'", words.data, cases[i].told);
    }
}

static void long_values_of_a_check_are_cut(void **state)
{
    AUTO_ACCEPTANCE struct acceptance a = {0};
    AUTO_BUF struct buf words = {.data = NULL};
    char report[1024];

    (void) state;
    (void) snprintf(report, sizeof report, "{\"a\":\"%0900d\"}", 0);
    judge("{exact: [{path: /a, equals: b}]}", report, &a);
    buf_init(&words, LIMIT_KIB(4));
    acceptance_put_check(&words, json_get(a.document, "checks")->child);
    assert_true(words.len < 200);
    assert_non_null(strstr(words.data, "…, must be \"b\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_is_typed),
        cmocka_unit_test(exact_is_exact),
        cmocka_unit_test(absent_and_absolute_path),
        cmocka_unit_test(thresholds_include_their_limit),
        cmocka_unit_test(counts_belong_together),
        cmocka_unit_test(zero_tree_needs_integer_leaves),
        cmocka_unit_test(burst_rules_are_data),
        cmocka_unit_test(repeated_elements_are_alike),
        cmocka_unit_test(phases_follow_their_rules),
        cmocka_unit_test(bindings_hold_windows_to_markers),
        cmocka_unit_test(each_phase_rule_refuses_alone),
        cmocka_unit_test(nothing_checked_is_not_accepted),
        cmocka_unit_test(every_check_is_listed),
        cmocka_unit_test(huge_values_are_not_copied),
        cmocka_unit_test(too_many_checks_fail_with_one),
        cmocka_unit_test(large_values_of_many_checks_fail_with_one),
        cmocka_unit_test(long_names_hide_nothing),
        cmocka_unit_test(failed_checks_are_told_in_words),
        cmocka_unit_test(long_values_of_a_check_are_cut),
        cmocka_unit_test(compare_finds_the_first_difference),
        cmocka_unit_test(compare_sees_a_missing_check),
    };

    return cmocka_run_group_tests_name("acceptance", tests, NULL, NULL);
}
