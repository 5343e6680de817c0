#include "tests/lib/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/limits.h"
#include "experiment/samples.h"

static void csv_keeps_integers_and_makes_seconds_and_megabytes(void **state)
{
    static const char csv[] =
        "t_ms,rss_kib,threads,cpu_pct\n0,2048,4,\n500,3072,4,12.5\r\n1500,1,4,0";
    AUTO_SAMPLES struct samples s = {0};
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(samples_parse_csv(csv, sizeof csv - 1, &s, &e), 0);
    assert_int_equal(s.n, 3);
    assert_close(s.t_secs[1], 0.5, 0);
    assert_close(s.value[0], 2.0, 0);
    assert_close(s.cpu_pct[0], 0.0, 0);
    assert_close(s.cpu_pct[1], 12.5, 0);
    assert_int_equal(s.t_ms[2], 1500);
    assert_int_equal(s.rss_kib[1], 3072);
}

static void csv_without_cpu_has_none(void **state)
{
    static const char csv[] = "t_ms,rss_kib\n0,2048\n";
    AUTO_SAMPLES struct samples s = {0};
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(samples_parse_csv(csv, sizeof csv - 1, &s, &e), 0);
    assert_int_equal(s.n, 1);
    assert_null(s.cpu_pct);
}

/* The bytes end where they end: nothing behind them is looked at. */
static void csv_is_read_no_further_than_its_bytes(void **state)
{
    static const char *const rows[] = {"1,1e9", "1,-na", "1,na", "1,-", "1,+in", "1e", "1,"};
    static const char header[] = "t_ms,rss_kib\n";

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = strlen(header) + strlen(rows[i]);
        AUTO_FREE char *bytes = malloc(len);
        AUTO_SAMPLES struct samples s = {0};
        const char *problem = NULL;
        struct err e = ERR_INIT;

        assert_non_null(bytes);
        memcpy(bytes, header, strlen(header));
        memcpy(bytes + strlen(header), rows[i], strlen(rows[i]));
        assert_int_equal(samples_read_csv(bytes, len, &s, &problem, &e), 0);
        assert_string_not_equal(problem, "");
    }
}

static void csv_refuses_malformed_rows(void **state)
{
    static const char *const files[] = {
        "t_ms,rss_kib,cpu_pct\n0,1,1\n1,1,\n", /* only the first may lack CPU */
        "t_ms,rss_kib,cpu_pct\n0,1,nan\n",
        "t_ms,rss_kib\n0x10,1\n",
        "t_ms,rss_kib\n+1,1\n",
        "t_ms,rss_kib\n01,1\n",
        "t_ms,rss_kib\n1,1\n\n",
        "t_ms;rss_kib\n1;1\n",
        "",
        "\n",
        "t_ms\n1\n",
        "t_ms,rss\n1,1\n",
        "t_ms,rss_kibs\n1,1\n",
        "x_ms,rss_kib\n1,1\n",
        " t_ms,rss_kib\n1,1\n",
        "rss_kib,t_ms\n1,1\n",
        "t_ms,rss_kib\n1\n",
        "t_ms,rss_kib\n1,1,1\n",
        "t_ms,rss_kib\n1,-1\n",
        "t_ms,rss_kib\n1,1.5\n",
        "t_ms,rss_kib\n1,1e999\n",
        "t_ms,rss_kib\n1,9007199254740993\n",
        "t_ms,rss_kib\n9007199254740993,1\n",
        "t_ms,rss_kib\n-9007199254740993,1\n",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct samples s = {0};
        struct err e = ERR_INIT;

        if (samples_parse_csv(files[i], strlen(files[i]), &s, &e) == 0)
            fail_msg("accepted: %s", files[i]);
        assert_int_equal(e.kind, ERR_INPUT);
        assert_null(s.t_secs);
    }
}

static void csv_is_limited(void **state)
{
    size_t n = LIMIT_SAMPLES + 1;
    char *csv = calloc(13 + 4 * n + 1, 1);
    struct samples s = {0};
    struct err e = ERR_INIT;

    (void) state;
    assert_non_null(csv);
    memcpy(csv, "t_ms,rss_kib\n", 13);
    for (size_t i = 0; i < n; i++)
        memcpy(csv + 13 + 4 * i, "1,1\n", 4);
    assert_int_equal(samples_parse_csv(csv, 13 + 4 * n, &s, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_int_equal(samples_parse_csv(csv, 13 + 4 * (n - 1), &s, &e), 0);
    assert_int_equal(s.n, LIMIT_SAMPLES);
    samples_fini(&s);
    free(csv);
}

static void embedded_objects_become_a_series(void **state)
{
    static const char text[] = "[{\"t\":0,\"m\":1.5,\"c\":0.1},{\"t\":0.5,\"m\":2,\"c\":7}]";
    static const struct samples_members narrow = {
        .t = "t", .value = "m", .cpu = "c", .cpu_binary32 = true};
    static const struct samples_members wide = {.t = "t", .value = "m", .cpu = "c"};
    static const struct samples_members wrong = {.t = "t", .value = "x"};
    AUTO_JSON cJSON *j = NULL;
    AUTO_SAMPLES struct samples s = {0};
    AUTO_SAMPLES struct samples w = {0};
    AUTO_SAMPLES struct samples none = {0};
    const char *problem = "";
    struct err e = ERR_INIT;

    (void) state;
    assert_int_equal(json_parse(text, sizeof text - 1, NULL, &j, &e), 0);
    assert_int_equal(samples_from_json(j, &narrow, &s, &problem, &e), 0);
    assert_string_equal(problem, "");
    assert_int_equal(s.n, 2);
    assert_close(s.cpu_pct[0], (double) 0.1f, 0);
    assert_int_equal(samples_from_json(j, &wide, &w, &problem, &e), 0);
    assert_true(w.cpu_pct[0] < s.cpu_pct[0]);
    assert_int_equal(samples_from_json(j, &wrong, &none, &problem, &e), 0);
    assert_string_equal(problem, "not_number");
    assert_int_equal(none.n, 0);
    assert_int_equal(samples_from_json(NULL, &wide, &none, &problem, &e), 0);
    assert_string_equal(problem, "no_samples");
}

/* One member that is no number, and there is no series: a gap is not filled. */
static void embedded_objects_without_numbers_are_none(void **state)
{
    static const char *const texts[] = {
        "[{\"t\":0,\"m\":1,\"c\":1},{\"t\":\"1\",\"m\":1,\"c\":1}]",
        "[{\"t\":0,\"m\":1,\"c\":1},{\"t\":null,\"m\":1,\"c\":1}]",
        "[{\"t\":0,\"m\":1,\"c\":1},{\"m\":1,\"c\":1}]",
        "[{\"t\":0,\"m\":1,\"c\":1},{\"t\":1,\"m\":\"1\",\"c\":1}]",
        "[{\"t\":0,\"m\":1,\"c\":1},{\"t\":1,\"m\":true,\"c\":1}]",
        "[{\"t\":0,\"m\":1,\"c\":1},{\"t\":1,\"c\":1}]",
        "[{\"t\":0,\"m\":1,\"c\":1},{\"t\":1,\"m\":1,\"c\":\"1\"}]",
        "[{\"t\":0,\"m\":1,\"c\":1},{\"t\":1,\"m\":1}]",
        "[{\"t\":0,\"m\":1,\"c\":1},7]",
        "{\"0\":{\"t\":0,\"m\":1,\"c\":1}}",
        "[]",
        "7",
    };
    static const struct samples_members members = {.t = "t", .value = "m", .cpu = "c"};

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO_JSON cJSON *j = NULL;
        AUTO_SAMPLES struct samples s = {0};
        const char *problem = "";
        struct err e = ERR_INIT;

        assert_int_equal(json_parse(texts[i], strlen(texts[i]), NULL, &j, &e), 0);
        assert_int_equal(samples_from_json(j, &members, &s, &problem, &e), 0);
        if (problem[0] == '\0' || s.n != 0)
            fail_msg("%s is a series of %zu", texts[i], s.n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_keeps_integers_and_makes_seconds_and_megabytes),
        cmocka_unit_test(csv_without_cpu_has_none),
        cmocka_unit_test(csv_is_read_no_further_than_its_bytes),
        cmocka_unit_test(csv_refuses_malformed_rows),
        cmocka_unit_test(csv_is_limited),
        cmocka_unit_test(embedded_objects_become_a_series),
        cmocka_unit_test(embedded_objects_without_numbers_are_none),
    };

    return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}
