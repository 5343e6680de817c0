#include "tests/lib/support.h"

#include <string.h>

#include "base/clock.h"

static void known_stamps_are_read_and_written(void **state)
{
    static const struct {
        const char *text;
        const char *compact;
        int64_t seconds;
    } rows[] = {
        {"1970-01-01T00:00:00Z", "19700101T000000Z", 0},
        {"2026-11-29T14:15:02Z", "20261129T141502Z", 1795961702},
        {"2000-02-29T23:59:59Z", "20000229T235959Z", 951868799},
        {"2024-02-29T12:00:00Z", "20240229T120000Z", 1709208000},
        {"2100-03-01T00:00:00Z", "21000301T000000Z", 4107542400},
        {"1969-12-31T23:59:59Z", "19691231T235959Z", -1},
        {"9999-12-31T23:59:59Z", "99991231T235959Z", 253402300799},
        {"0000-01-01T00:00:00Z", "00000101T000000Z", -62167219200},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[CLOCK_RFC3339_SIZE];
        int64_t us = 1;

        assert_true(clock_parse_rfc3339(rows[i].text, &us));
        assert_true(us == rows[i].seconds * 1000000);
        clock_rfc3339(us, false, text);
        assert_string_equal(text, rows[i].text);
        clock_compact(us, text);
        assert_string_equal(text, rows[i].compact);
        assert_true(clock_parse_compact(text, &us));
        assert_true(us == rows[i].seconds * 1000000);
    }
}

static void fractions_and_offsets_count(void **state)
{
    int64_t us = 0;
    char text[CLOCK_RFC3339_SIZE];

    (void) state;
    assert_true(clock_parse_rfc3339("1970-01-01T01:00:00.25+01:00", &us));
    assert_true(us == 250000);
    assert_true(clock_parse_rfc3339("1969-12-31T19:00:00.123456789-05:00", &us));
    assert_true(us == 123456);
    clock_rfc3339(us, true, text);
    assert_string_equal(text, "1970-01-01T00:00:00.123456Z");
    clock_rfc3339(-1, true, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999999Z");
}

static void bad_stamps_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "2026-11-29",
        "2026-11-29T14:15:02",
        "2026-11-29 14:15:02Z",
        "2026-11-29T14:15:60Z",
        "2026-11-29T24:00:00Z",
        "2026-11-29T14:60:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-11-00T00:00:00Z",
        "2026-11-29T14:15:02.Z",
        "2026-11-29T14:15:02.1234567890Z",
        "2026-11-29T14:15:02+0100",
        "2026-11-29T14:15:02+24:00",
        "2026-11-29T14:15:02Zx",
        "2026-1-29T14:15:02Z",
        "+026-11-29T14:15:02Z",
        "2026-11-29t14:15:02z",
    };
    static const char *const bad_compact[] = {"", "20261129T141502", "20261129141502Z",
                                              "20260229T000000Z", "20261129T141502ZZ"};
    int64_t us = 0;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (clock_parse_rfc3339(bad[i], &us))
            fail_msg("taken: %s", bad[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad_compact); i++) {
        if (clock_parse_compact(bad_compact[i], &us))
            fail_msg("taken: %s", bad_compact[i]);
    }
}

static void every_day_of_800_years_goes_round(void **state)
{
    (void) state;
    for (int64_t day = -146097; day < 146097; day++) {
        char text[CLOCK_RFC3339_SIZE];
        int64_t us = day * INT64_C(86400000000) + 86399999999;
        int64_t back = 0;

        clock_rfc3339(us, true, text);
        assert_true(clock_parse_rfc3339(text, &back));
        assert_true(back == us);
    }
}

static void years_without_four_digits_are_clamped(void **state)
{
    char text[CLOCK_RFC3339_SIZE];

    (void) state;
    clock_rfc3339(INT64_MAX, true, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999999Z");
    clock_rfc3339(INT64_MIN, false, text);
    assert_string_equal(text, "0000-01-01T00:00:00Z");
}

static void clocks_run(void **state)
{
    uint64_t a = clock_monotonic_ns();
    uint64_t b = clock_monotonic_ns();

    (void) state;
    assert_true(b >= a);
    assert_true(a > 0);
    assert_true(clock_realtime_us() > INT64_C(1700000000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_stamps_are_read_and_written),
        cmocka_unit_test(fractions_and_offsets_count),
        cmocka_unit_test(bad_stamps_are_refused),
        cmocka_unit_test(every_day_of_800_years_goes_round),
        cmocka_unit_test(years_without_four_digits_are_clamped),
        cmocka_unit_test(clocks_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
