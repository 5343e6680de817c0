/* cleanrun accept and cleanrun leak as commands: exits, streams, documents. */
#include "tests/lib/support.h"

#include "base/json_in.h"
#include "base/json_out.h"
#include "experiment/pointer.h"
#include "tests/runner/run_command.h"

static const char yaml[] =
    "version: 1\n"
    "gates:\n"
    "  g:\n"
    "    class: box\n"
    "    build: {command: [make], executable: {from: path, path: app}}\n"
    "    run: {command: ['{executable}'], report: s/1.json}\n"
    "    identity: [{path: /scenario, require: required}]\n"
    "    accept:\n"
    "      exact: [{name: who, path: /scenario, equals: s}]\n"
    "      limits: [{name: rate, path: /results/rate, op: '>=', value: 10, unit: 1/s}]\n"
    "    audit: {paths: {required: [s/1.json]}, metrics: [{path: /results/rate, unit: 1/s, worse: "
    "lower, tolerance_pct: 5}]}\n";

struct desk {
    char *dir;
    char *definition;
    char *input;
    struct command_result result;
};

static void desk_init(struct desk *d, const char *text)
{
    *d = (struct desk){.dir = test_dir_new()};
    d->definition = test_join(d->dir, "cleanrun.yaml");
    d->input = test_join(d->dir, "input");
    test_write_text(d->dir, "cleanrun.yaml", yaml);
    if (text)
        test_write_text(d->dir, "input", text);
}

static void desk_fini(struct desk *d)
{
    command_result_fini(&d->result);
    free(d->definition);
    free(d->input);
    test_dir_free(d->dir);
}

static void accept(struct desk *d, const char *more, const char *value)
{
    const char *const argv[] = {"accept", "--definition", d->definition, d->input,
                                more,     value,          NULL};

    run_command(&command_accept, argv, &d->result);
}

static cJSON *parse(const char *text)
{
    struct err e = ERR_INIT;
    cJSON *j = NULL;

    if (json_parse(text, strlen(text), NULL, &j, &e) < 0)
        fail_msg("%s in: %.300s", e.text, text);
    return j;
}

static void accept_exits_0_4_and_2(void **state)
{
    static const struct {
        const char *report;
        int code;
    } cases[] = {
        {"{\"scenario\":\"s\",\"results\":{\"rate\":10}}", 0},
        {"{\"scenario\":\"s\",\"results\":{\"rate\":9.9}}", 4},
        {"{\"scenario\":\"t\",\"results\":{\"rate\":10}}", 4},
        {"{}", 4},
        {"[1,2]", 4},
        {"7", 4},
        {"{\"results\":{\"rate\":NaN}}", 2},
        {"", 2},
        {NULL, 2},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct desk d;

        desk_init(&d, cases[i].report);
        accept(&d, NULL, NULL);
        if (d.result.code != cases[i].code)
            fail_msg("%s: exit %d\n%s%s", cases[i].report ? cases[i].report : "no file",
                     d.result.code, d.result.out, d.result.err);
        desk_fini(&d);
    }
}

static void accept_lists_every_check(void **state)
{
    struct desk d;
    cJSON *document = NULL;

    (void) state;
    desk_init(&d, "{\"scenario\":\"t\",\"results\":{\"rate\":1}}");
    accept(&d, "--json", "-");
    assert_int_equal(d.result.code, 4);
    document = parse(d.result.out);
    assert_string_equal(json_get(document, "schema")->valuestring, "cleanrun-acceptance/1");
    assert_string_equal(json_get(document, "verdict")->valuestring, "FAIL");
    assert_int_equal(cJSON_GetArraySize(json_get(document, "checks")), 2);
    assert_true(cJSON_IsFalse(pointer_get(document, "/checks/0/passed")));
    assert_true(cJSON_IsFalse(pointer_get(document, "/checks/1/passed")));
    assert_non_null(strstr(d.result.err, "FAIL  2 of 2 checks failed"));
    assert_non_null(strstr(d.result.err, ": 1, must be at "));
    json_free(document);
    desk_fini(&d);
}

static void accept_of_no_object_has_the_one_check_report(void **state)
{
    struct desk d;
    cJSON *document = NULL;

    (void) state;
    desk_init(&d, "[]");
    accept(&d, "--json", "-");
    document = parse(d.result.out);
    assert_int_equal(cJSON_GetArraySize(json_get(document, "checks")), 1);
    assert_string_equal(pointer_get(document, "/checks/0/name")->valuestring, "report");
    json_free(document);
    desk_fini(&d);
}

static void accept_refuses_what_it_cannot_use(void **state)
{
    struct desk d;

    (void) state;
    desk_init(&d, "{\"scenario\":\"s\",\"results\":{\"rate\":10}}");
    accept(&d, "--gate", "nope");
    assert_int_equal(d.result.code, 2);
    command_result_fini(&d.result);
    accept(&d, "--samples", d.dir); /* this gate derives nothing from the runner's samples */
    assert_int_equal(d.result.code, 2);
    command_result_fini(&d.result);
    test_write_text(d.dir, "cleanrun.yaml", "version: 1\n");
    accept(&d, NULL, NULL);
    assert_int_equal(d.result.code, 2);
    desk_fini(&d);
}

/* Two hours at 2 Hz; growth in MB an hour. */
static char *series(double growth)
{
    size_t cap = 14400 * 32;
    char *text = malloc(cap);
    size_t len = 0;
    uint64_t seed = 11;

    assert_non_null(text);
    len += (size_t) snprintf(text, cap, "t_ms,rss_kib\n");
    for (int i = 0; i < 14400; i++) {
        double kib = 500000 + growth * 1024 * i / 7200 + (double) test_random_below(&seed, 200);

        len += (size_t) snprintf(text + len, cap - len, "%d,%d\n", i * 500, (int) kib);
    }
    return text;
}

static void leak(struct desk *d, const char *limit, const char *more, const char *value)
{
    const char *const argv[] = {"leak", d->input, "--limit", limit, more, value, NULL};

    run_command(&command_leak, argv, &d->result);
}

static void leak_exits_0_1_and_3(void **state)
{
    static const struct {
        double growth;
        int code;
        const char *word;
    } cases[] = {{0, 0, "PASS"}, {60, 1, "FAIL"}};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text = series(cases[i].growth);
        struct desk d;
        cJSON *document = NULL;

        desk_init(&d, text);
        leak(&d, "10", "--json", "-");
        assert_int_equal(d.result.code, cases[i].code);
        document = parse(d.result.out);
        assert_string_equal(json_get(document, "schema")->valuestring, "cleanrun-leak/1");
        assert_string_equal(json_get(document, "verdict")->valuestring, cases[i].word);
        assert_close(pointer_get(document, "/estimators/theil_sen_mb_per_hour")->valuedouble,
                     cases[i].growth, 0.05);
        json_free(document);
        command_result_fini(&d.result);
        leak(&d, "10", "--window", "0..2000"); /* four samples decide nothing */
        assert_int_equal(d.result.code, 3);
        assert_non_null(strstr(
            d.result.out, "INCONCLUSIVE window_too_short  limit 10 MB/h\n"
                          "  the window must hold 8 whole minutes with 3 samples or more in each; "
                          "it holds 0\n"));
        desk_fini(&d);
        free(text);
    }
}

static void leak_of_bad_rows_is_3_and_of_another_file_2(void **state)
{
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        {"t_ms,rss_kib\n", 3},
        {"t_ms,rss_kib\n1000,5\n500,5\n", 3},
        {"t_ms,rss_kib\n0,5\n500,NaN\n", 3},
        {"time,memory\n0,5\n", 2},
        {"", 2},
        {NULL, 2},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct desk d;

        desk_init(&d, cases[i].text);
        leak(&d, "10", NULL, NULL);
        if (d.result.code != cases[i].code)
            fail_msg("case %zu: exit %d\n%s%s", i, d.result.code, d.result.out, d.result.err);
        desk_fini(&d);
    }
}

static void leak_needs_a_sound_limit_and_window(void **state)
{
    static const char *const limits[] = {"-1", "x", "", "1e999", "10MB"};
    static const char *const windows[] = {"5", "9..5", "a..b", "1.5..2"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct desk d;

        desk_init(&d, "t_ms,rss_kib\n0,5\n");
        leak(&d, limits[i], NULL, NULL);
        assert_int_equal(d.result.code, 2);
        desk_fini(&d);
    }
    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        struct desk d;

        desk_init(&d, "t_ms,rss_kib\n0,5\n");
        leak(&d, "10", "--window", windows[i]);
        assert_int_equal(d.result.code, 2);
        desk_fini(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accept_exits_0_4_and_2),
        cmocka_unit_test(accept_lists_every_check),
        cmocka_unit_test(accept_of_no_object_has_the_one_check_report),
        cmocka_unit_test(accept_refuses_what_it_cannot_use),
        cmocka_unit_test(leak_exits_0_1_and_3),
        cmocka_unit_test(leak_of_bad_rows_is_3_and_of_another_file_2),
        cmocka_unit_test(leak_needs_a_sound_limit_and_window),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
