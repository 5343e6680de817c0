/* Digits and units as people read them. */
#include "base/quantity.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/support.h"

static void expect_number(double v, const char *expected)
{
    char text[QUANTITY_TEXT];

    quantity_number(v, false, true, text);
    assert_string_equal(text, expected);
}

static void numbers_read_well_and_never_lie(void **state)
{
    (void) state;
    expect_number(0, "0");
    expect_number(-0.0, "0");
    expect_number(65000, "65,000");
    expect_number(9007199254740991.0, "9,007,199,254,740,991");
    expect_number(14.203125, "14.2");
    expect_number(14.256, "14.26");
    expect_number(1499.5203, "1,499.5");
    expect_number(-1353.257859905872, "-1,353.3");
    expect_number(0.8993, "0.8993");
    expect_number(0.00123456, "0.001235");
    expect_number(1e-9, "1e-9");
    /* Almost one is not one. */
    expect_number(0.99998, "0.99998");
    expect_number(9.9996, "9.9996");
    expect_number(64999.9999, "64,999.9999");
    /* Whole but for the last bits of a double. */
    expect_number(16.000000000000004, "16");
}

static void expect_percent(double v, double limit, const char *expected)
{
    char text[QUANTITY_TEXT];

    quantity_percent(v, limit, true, text);
    assert_string_equal(text, expected);
}

static void percentages_keep_what_tells_them_from_the_limit(void **state)
{
    (void) state;
    expect_percent(7.4211, 15, "+7.4 %");
    expect_percent(-39.9, 25, "-39.9 %");
    expect_percent(15, 15, "+15 %");
    expect_percent(15.04, 15, "+15.04 %");
    expect_percent(15.004, 15, "+15.004 %");
    expect_percent(0, 15, "0 %");
    expect_percent(-0.001, 15, "-0.001 %");
    expect_percent(16024.5, 15, "+16,024.5 %");
}

static void units_become_readable(void **state)
{
    (void) state;
    assert_string_equal(quantity_unit(41834211, "ns").name, "ms");
    assert_string_equal(quantity_unit(950, "ns").name, "ns");
    assert_string_equal(quantity_unit(2e9, "ns").name, "s");
    assert_string_equal(quantity_unit(61440, "B").name, "KiB");
    assert_string_equal(quantity_unit(5, "MB/h").name, "MB/h");
    assert_string_equal(quantity_unit(5, "1").name, "");
    assert_string_equal(quantity_unit(5, "ratio").name, "");
    assert_string_equal(quantity_unit(5, "1/s").name, "/s");
    assert_string_equal(quantity_unit(1776, "ns").name, "µs");
}

static void no_number_breaks_it(void **state)
{
    static const double values[] = {1e300,  -1e300, 1e15,       999999999999999.9,
                                    5e-324, 1e-4,   0.00099999, -0.5};
    char text[QUANTITY_TEXT];

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        quantity_number(values[i], true, false, text);
        assert_true(strlen(text) > 0 && strlen(text) < QUANTITY_TEXT - 1);
        quantity_percent(values[i], 0, false, text);
        assert_true(strlen(text) > 0 && strlen(text) < QUANTITY_TEXT - 1);
    }
    quantity_number((double) NAN, false, true, text);
    assert_string_equal(text, "–");
    quantity_number((double) INFINITY, false, true, text);
    assert_string_equal(text, "–");
}

static void expect_apart(double a, double b, const char *text_a, const char *text_b)
{
    const double v[] = {a, b};
    char text[2][QUANTITY_TEXT];

    quantity_numbers(v, 2, true, text);
    assert_string_equal(text[0], text_a);
    assert_string_equal(text[1], text_b);
}

static void what_differs_looks_different(void **state)
{
    (void) state;
    expect_apart(41.834211, 61.2, "41.83", "61.2");
    expect_apart(41.834211, 41.834311, "41.8342", "41.8343");
    expect_apart(1, 1 + 1.0 / 1073741824, "1", "1.000000001");
    expect_apart(100, 100.0000001, "100", "100.0000001");
    expect_apart(0.5, 0.5, "0.5", "0.5");
    expect_apart(0.1, nextafter(0.1, 1), "0.1", "0.10000000000000002");
    expect_apart(1e20, 1e20, "100000000000000000000", "100000000000000000000");
    expect_apart(9007199254740990.0, 9007199254740991.0, "9,007,199,254,740,990",
                 "9,007,199,254,740,991");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_read_well_and_never_lie),
        cmocka_unit_test(percentages_keep_what_tells_them_from_the_limit),
        cmocka_unit_test(units_become_readable),
        cmocka_unit_test(no_number_breaks_it),
        cmocka_unit_test(what_differs_looks_different),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
