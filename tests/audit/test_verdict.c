/* Verdict words, exits, ranking, the verdict document and its one line. */
#include "tests/lib/support.h"

#include "base/text.h"
#include "tests/audit/sides.h"

static void words_and_exits_are_the_contract(void **state)
{
    static const struct {
        const char *word;
        int code;
    } rows[] = {{"OK", 0},      {"REGRESSION", 1}, {"NON_COMPARABLE", 3}, {"FAIL", 4},
                {"INVALID", 5}, {"ERROR", 6},      {"PENDING", 8}};
    enum verdict v = VERDICT_MAX;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(verdict_parse(rows[i].word, &v));
        assert_int_equal(verdict_exit(v), rows[i].code);
        assert_string_equal(verdict_word(v), rows[i].word);
    }
    assert_false(verdict_parse("ok", &v));
    assert_false(verdict_parse("", &v));
}

static void worst_follows_5_6_4_1_3_8_0(void **state)
{
    static const enum verdict order[] = {
        VERDICT_INVALID,        VERDICT_ERROR,   VERDICT_FAIL, VERDICT_REGRESSION,
        VERDICT_NON_COMPARABLE, VERDICT_PENDING, VERDICT_OK};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        for (size_t j = 0; j < ARRAY_LEN(order); j++)
            assert_int_equal(verdict_worse(order[i], order[j]), order[i < j ? i : j]);
}

static const char pass[] = "{\"verdict\":\"PASS\",\"checks\":[{\"name\":\"a\",\"passed\":true}]}";
static const char failed[] =
    "{\"verdict\":\"FAIL\",\"checks\":[{\"name\":\"a\",\"passed\":true},{\"name\":\"/x/p99\","
    "\"passed\":false}]}";

static struct verdict_input input_of(const cJSON *audit, const cJSON *acceptance)
{
    return (struct verdict_input){.project = "o/r",
                                  .gate = "g",
                                  .run = "20261130T141502Z-11111111",
                                  .commit = "c0ffee",
                                  .mode = "clean",
                                  .machine_class = "box",
                                  .audit = audit,
                                  .acceptance = acceptance};
}

/* Builds the document of an input; the caller frees it. */
static cJSON *document_of(const struct verdict_input *in, enum verdict *out)
{
    struct err e = ERR_INIT;
    cJSON *document = NULL;
    const char *description = NULL;

    if (verdict_document(in, out, &document, &e) < 0)
        fail_msg("%s", e.text);
    description = json_get(document, "description")->valuestring;
    assert_true(strlen(description) <= VERDICT_DESCRIPTION_MAX);
    assert_true(text_is_utf8(description, strlen(description)));
    if (*out != VERDICT_MAX) {
        assert_string_equal(json_get(document, "verdict")->valuestring, verdict_word(*out));
        assert_memory_equal(description, verdict_word(*out), strlen(verdict_word(*out)));
    }
    return document;
}

static void audited(struct sides *s, struct audit *a)
{
    sides_audit(s, a);
    sides_fini(s);
}

/* INVALID, ERROR, FAIL, then the audit's. */
static void the_first_stage_that_fails_decides(void **state)
{
    struct sides s;
    struct audit ok = {0};
    cJSON *accepted = sides_json(pass);
    cJSON *rejected = sides_json(failed);
    cJSON *broken =
        sides_json("[{\"code\":\"IN-HASH\",\"path\":null,\"field\":null,\"text\":\"x differs\"}]");
    struct verdict_input in;
    enum verdict v = VERDICT_OK;

    (void) state;
    sides_init(&s);
    audited(&s, &ok);
    in = input_of(ok.document, accepted);
    json_free(document_of(&in, &v));
    assert_int_equal(v, VERDICT_OK);
    in.acceptance = rejected;
    json_free(document_of(&in, &v));
    assert_int_equal(v, VERDICT_FAIL);
    in.error_text = "runner lost";
    json_free(document_of(&in, &v));
    assert_int_equal(v, VERDICT_ERROR);
    in.invalid_reasons = broken;
    json_free(document_of(&in, &v));
    assert_int_equal(v, VERDICT_INVALID);
    in = input_of(NULL, accepted);
    json_free(document_of(&in, &v));
    assert_int_equal(v, VERDICT_NON_COMPARABLE);
    audit_fini(&ok);
    json_free(accepted);
    json_free(rejected);
    json_free(broken);
}

/* A document that lies about itself cannot make a run green. */
static void acceptance_that_contradicts_itself_is_a_failure(void **state)
{
    static const char *const lies[] = {
        "{\"verdict\":\"PASS\",\"checks\":[{\"name\":\"a\",\"passed\":false}]}",
        "{\"verdict\":\"pass\",\"checks\":[]}", "{\"checks\":[]}", "{\"verdict\":null}"};
    struct sides s;
    struct audit ok = {0};

    (void) state;
    sides_init(&s);
    audited(&s, &ok);
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        cJSON *acceptance = sides_json(lies[i]);
        struct verdict_input in = input_of(ok.document, acceptance);
        enum verdict v = VERDICT_OK;

        json_free(document_of(&in, &v));
        assert_int_equal(v, VERDICT_FAIL);
        json_free(acceptance);
    }
    audit_fini(&ok);
}

static void no_decision_is_an_error_not_a_verdict(void **state)
{
    struct verdict_input in = input_of(NULL, NULL);
    struct err e = ERR_INIT;
    cJSON *document = NULL;
    enum verdict v = VERDICT_OK;

    (void) state;
    assert_int_equal(verdict_document(&in, &v, &document, &e), -1);
    assert_null(document);
}

static void a_diagnostic_run_has_no_verdict(void **state)
{
    cJSON *accepted = sides_json(pass);
    struct verdict_input in = input_of(NULL, accepted);
    enum verdict v = VERDICT_OK;
    cJSON *d = NULL;

    (void) state;
    in.mode = "cpu";
    d = document_of(&in, &v);
    assert_int_equal(v, VERDICT_MAX);
    assert_true(cJSON_IsNull(json_get(d, "verdict")));
    json_free(d);
    json_free(accepted);
}

static void descriptions_say_the_worst_and_its_limit(void **state)
{
    struct sides s;
    struct audit a = {0};
    cJSON *accepted = sides_json(pass);
    cJSON *rejected = sides_json(failed);
    struct verdict_input in;
    enum verdict v = VERDICT_OK;
    cJSON *d = NULL;

    (void) state;
    sides_init(&s);
    sides_put_text(s.current.report, "/results/growth", "1499.25");
    sides_put_text(s.current.report, "/results/rate", "800.0");
    audited(&s, &a);
    in = input_of(a.document, accepted);
    d = document_of(&in, &v);
    assert_string_equal(json_get(d, "description")->valuestring,
                        "REGRESSION 2 of 4 metrics: RSS growth 1,499.2 MB/h, before 9.3 MB/h, "
                        "+1,489.95 MB/h; limit 100 MB/h "
                        "(near-zero floor)");
    assert_int_equal((int) json_get(d, "expected_comparisons")->valuedouble, 5);
    json_free(d);
    in.no_ticket = true;
    d = document_of(&in, &v);
    assert_null(strstr(json_get(d, "description")->valuestring, "ticket"));
    assert_string_equal(pointer_get(d, "/notes/0")->valuestring, "no ticket");
    json_free(d);
    in = input_of(a.document, rejected);
    d = document_of(&in, &v);
    assert_string_equal(json_get(d, "description")->valuestring,
                        "FAIL 1 of 2 acceptance checks: /x/p99");
    assert_string_equal(pointer_get(d, "/acceptance/failed/0")->valuestring, "/x/p99");
    assert_int_equal((int) pointer_get(d, "/attempt/n")->valuedouble, 1);
    json_free(d);
    audit_fini(&a);

    sides_init(&s);
    sides_put_text(s.current.report, "/latency/put/p99", "3300000");
    audited(&s, &a);
    in = input_of(a.document, accepted);
    d = document_of(&in, &v);
    assert_string_equal(json_get(d, "description")->valuestring,
                        "OK 4 metrics within limits, worst put p99 +10 % of +25 %");
    json_free(d);
    audit_fini(&a);

    sides_init(&s);
    sides_put_text(s.current.report, "/load/rate", "200");
    audited(&s, &a);
    in = input_of(a.document, accepted);
    d = document_of(&in, &v);
    assert_string_equal(json_get(d, "description")->valuestring,
                        "NON_COMPARABLE NC-IDENTITY-DIFFERS: /load/rate differs: 100 → 200");
    assert_string_equal(pointer_get(d, "/reasons/0/code")->valuestring, "NC-IDENTITY-DIFFERS");
    json_free(d);
    audit_fini(&a);
    json_free(accepted);
    json_free(rejected);
}

/* Rule 6: every attempt is kept and counted. */
static void attempts_are_part_of_the_answer(void **state)
{
    cJSON *accepted = sides_json(pass);
    cJSON *attempt =
        sides_json("{\"n\":2,\"of\":2,\"previous\":[{\"run\":\"x\",\"verdict\":\"INVALID\"}]}");
    struct verdict_input in = input_of(NULL, accepted);
    enum verdict v = VERDICT_OK;
    cJSON *d = NULL;

    (void) state;
    in.attempt = attempt;
    d = document_of(&in, &v);
    assert_string_equal(pointer_get(d, "/attempt/previous/0/verdict")->valuestring, "INVALID");
    assert_true(sides_has(d, "NC-BASELINE-NONE", NULL));
    json_free(d);
    json_free(accepted);
    json_free(attempt);
}

/* Whatever outside text says, the line stays short, whole UTF-8 and free of control characters. */
static void descriptions_stay_short_with_any_text(void **state)
{
    static const char *const parts[] = {"ä", "→", "🙂", "x", " ", "\\n", "\\u0007", "\\\""};
    uint64_t seed = 5;

    (void) state;
    for (int round = 0; round < 2000; round++) {
        char text[2048] = "";
        char json[4096];
        size_t n = test_random_below(&seed, 200);
        size_t len = 0;
        cJSON *reasons = NULL;
        struct verdict_input in = input_of(NULL, NULL);
        enum verdict v = VERDICT_OK;
        cJSON *d = NULL;

        for (size_t i = 0; i < n; i++) {
            const char *part = parts[test_random_below(&seed, ARRAY_LEN(parts))];

            memcpy(text + len, part, strlen(part) + 1);
            len += strlen(part);
        }
        (void) snprintf(json, sizeof json, "[{\"code\":\"IN-JSON\",\"text\":\"%s\"}]", text);
        reasons = sides_json(json);
        in.invalid_reasons = reasons;
        d = document_of(&in, &v);
        for (const char *p = json_get(d, "description")->valuestring; *p; p++)
            assert_true((unsigned char) *p >= 0x20);
        json_free(d);
        in.invalid_reasons = NULL;
        in.error_text = pointer_get(reasons, "/0/text")->valuestring;
        d = document_of(&in, &v);
        json_free(d);
        json_free(reasons);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_exits_are_the_contract),
        cmocka_unit_test(worst_follows_5_6_4_1_3_8_0),
        cmocka_unit_test(the_first_stage_that_fails_decides),
        cmocka_unit_test(acceptance_that_contradicts_itself_is_a_failure),
        cmocka_unit_test(no_decision_is_an_error_not_a_verdict),
        cmocka_unit_test(a_diagnostic_run_has_no_verdict),
        cmocka_unit_test(descriptions_say_the_worst_and_its_limit),
        cmocka_unit_test(attempts_are_part_of_the_answer),
        cmocka_unit_test(descriptions_stay_short_with_any_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
