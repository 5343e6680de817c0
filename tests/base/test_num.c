#include "tests/lib/support.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static double from_bits(uint64_t bits)
{
    double v = 0;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static uint64_t to_bits(double v)
{
    uint64_t bits = 0;

    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

static void checked_arithmetic_sees_overflow(void **state)
{
    size_t out = 7;

    (void) state;
    assert_true(num_add(SIZE_MAX - 1, 1, &out));
    assert_true(out == SIZE_MAX);
    assert_false(num_add(SIZE_MAX, 1, &out));
    assert_true(num_mul(SIZE_MAX / 2, 2, &out));
    assert_false(num_mul(SIZE_MAX / 2 + 1, 2, &out));
}

static void u64_takes_plain_decimals_only(void **state)
{
    static const char *const bad[] = {"",
                                      "00",
                                      "01",
                                      "+1",
                                      "-1",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "1e3",
                                      "0x1",
                                      "a",
                                      "18446744073709551616",
                                      "99999999999999999999999"};
    uint64_t v = 0;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(num_parse_u64(bad[i], strlen(bad[i]), UINT64_MAX, &v));
    assert_true(num_parse_u64("18446744073709551615", 20, UINT64_MAX, &v));
    assert_true(v == UINT64_MAX);
    assert_true(num_parse_u64("0", 1, 0, &v));
    assert_true(v == 0);
    assert_true(num_parse_u64("100", 3, 100, &v));
    assert_false(num_parse_u64("101", 3, 100, &v));
    assert_true(num_parse_u64("12x", 2, 100, &v));
    assert_true(v == 12);
}

static void i64_takes_its_whole_range(void **state)
{
    int64_t v = 1;

    (void) state;
    assert_true(num_parse_i64("-9223372036854775808", 20, &v));
    assert_true(v == INT64_MIN);
    assert_true(num_parse_i64("9223372036854775807", 19, &v));
    assert_true(v == INT64_MAX);
    assert_false(num_parse_i64("9223372036854775808", 19, &v));
    assert_false(num_parse_i64("-9223372036854775809", 20, &v));
    assert_true(num_parse_i64("-0", 2, &v));
    assert_true(v == 0);
    assert_false(num_parse_i64("-", 1, &v));
    assert_false(num_parse_i64("--1", 3, &v));
    assert_false(num_parse_i64("-01", 3, &v));
}

static void double_takes_the_json_grammar_only(void **state)
{
    static const char *const bad[] = {"",    "-",     "+1",     ".5",     "1.",    "01",
                                      "-01", "1e",    "1e+",    "1.e3",   "0x1",   "inf",
                                      "NaN", "1 ",    " 1",     "1,5",    "1e5.",  "--1",
                                      "1_0", "1e999", "-1e999", "1E+400", "0.1.2", "1ee2"};
    static const char *const good[] = {"0",
                                       "-0",
                                       "1",
                                       "-1.5",
                                       "1e3",
                                       "1E-3",
                                       "1e+3",
                                       "0.1",
                                       "0e0",
                                       "1e-999",
                                       "123456789012345678901234567890"};
    double v = 0;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(num_parse_double(bad[i], strlen(bad[i]), &v));
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(num_parse_double(good[i], strlen(good[i]), &v));
}

/* Cases where sloppy algorithms round wrongly. */
static void double_is_correctly_rounded(void **state)
{
    static const struct {
        const char *text;
        uint64_t bits;
    } rows[] = {
        {"9007199254740993", UINT64_C(0x4340000000000000)}, /* 2^53 + 1: tie to even */
        {"9007199254740993.00000000000000000001", UINT64_C(0x4340000000000001)},
        {"2.2250738585072011e-308", UINT64_C(0x000fffffffffffff)}, /* the PHP and Java hang */
        {"2.2250738585072014e-308", UINT64_C(0x0010000000000000)},
        {"1.7976931348623157e308", UINT64_C(0x7fefffffffffffff)},
        {"4.9406564584124654e-324", UINT64_C(1)},
        {"2.4703282292062327e-324", 0},
        {"0.1", UINT64_C(0x3fb999999999999a)},
        {"8.5e-5", UINT64_C(0x3f164840e1719f80)},
        {"-0", UINT64_C(0x8000000000000000)},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double v = 1;

        assert_true(num_parse_double(rows[i].text, strlen(rows[i].text), &v));
        assert_true(to_bits(v) == rows[i].bits);
    }
}

static void long_literal_is_read_whole(void **state)
{
    char text[5000];
    double v = 0;

    (void) state;
    memset(text, '0', sizeof(text));
    memcpy(text, "0.", 2);
    memcpy(text + sizeof(text) - 6, "1e4998", 6);
    /* 0.00…01e4998: the digit counts only if nothing was cut */
    assert_true(num_parse_double(text, sizeof(text), &v));
    assert_close(v, 1e5, 1e-12);
}

static void integer_literals_have_no_point_and_exponent(void **state)
{
    (void) state;
    assert_true(num_is_integer_literal("-12", 3));
    assert_false(num_is_integer_literal("1.0", 3));
    assert_false(num_is_integer_literal("1e2", 3));
    assert_false(num_is_integer_literal("1E2", 3));
}

static void shortest_has_the_samples_of_rfc_8785(void **state)
{
    static const struct {
        uint64_t bits;
        const char *text;
    } rows[] = {
        {0, "0"},
        {UINT64_C(0x8000000000000000), "0"},
        {1, "5e-324"},
        {UINT64_C(0x8000000000000001), "-5e-324"},
        {UINT64_C(0x7fefffffffffffff), "1.7976931348623157e+308"},
        {UINT64_C(0xffefffffffffffff), "-1.7976931348623157e+308"},
        {UINT64_C(0x4340000000000000), "9007199254740992"},
        {UINT64_C(0xc340000000000000), "-9007199254740992"},
        {UINT64_C(0x4430000000000000), "295147905179352830000"},
        {UINT64_C(0x44b52d02c7e14af5), "9.999999999999997e+22"},
        {UINT64_C(0x44b52d02c7e14af6), "1e+23"},
        {UINT64_C(0x44b52d02c7e14af7), "1.0000000000000001e+23"},
        {UINT64_C(0x444b1ae4d6e2ef4e), "999999999999999700000"},
        {UINT64_C(0x444b1ae4d6e2ef4f), "999999999999999900000"},
        {UINT64_C(0x444b1ae4d6e2ef50), "1e+21"},
        {UINT64_C(0x3eb0c6f7a0b5ed8c), "9.999999999999997e-7"},
        {UINT64_C(0x3eb0c6f7a0b5ed8d), "0.000001"},
        {UINT64_C(0x41b3de4355555553), "333333333.3333332"},
        {UINT64_C(0x41b3de4355555554), "333333333.33333325"},
        {UINT64_C(0x41b3de4355555555), "333333333.3333333"},
        {UINT64_C(0x41b3de4355555556), "333333333.3333334"},
        {UINT64_C(0x41b3de4355555557), "333333333.33333343"},
        {UINT64_C(0xbecbf647612f3696), "-0.0000033333333333333333"},
        {UINT64_C(0x43143ff3c1cb0959), "1424953923781206.2"},
        {UINT64_C(0x4340000000000001), "9007199254740994"},
        {UINT64_C(0x3d30000000000000),
         "5.684341886080802e-14"}, /* 2^-44: the gap below is half as wide */
        {UINT64_C(0x0010000000000000), "2.2250738585072014e-308"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[NUM_DOUBLE_TEXT];
        size_t n = num_double_shortest(from_bits(rows[i].bits), text);

        assert_string_equal(text, rows[i].text);
        assert_int_equal(n, strlen(text));
    }
}

/* Random bit patterns, powers of two and ten and their neighbours, short decimals. */
static double sample(uint64_t *seed, size_t i)
{
    double v = 0;

    switch (i % 4) {
    case 0:
        do
            v = from_bits(test_random(seed));
        while (!isfinite(v));
        return v;
    case 1:
        v = ldexp(1.0, (int) test_random_below(seed, 2098) - 1074);
        break;
    case 2:
        v = pow(10.0, (double) test_random_below(seed, 600) - 300);
        break;
    default:
        v = (double) test_random_below(seed, 100000000) /
            pow(10, (double) test_random_below(seed, 12));
        break;
    }
    switch (test_random_below(seed, 3)) {
    case 0:
        return nextafter(v, 0);
    case 1:
        return v < DBL_MAX ? nextafter(v, DBL_MAX) : v;
    default:
        return v;
    }
}

static void shortest_reads_back_equal(void **state)
{
    uint64_t seed = 1;

    (void) state;
    for (size_t i = 0; i < 100000; i++) {
        char text[NUM_DOUBLE_TEXT];
        double v = sample(&seed, i);
        double back = 0;
        size_t n = num_double_shortest(v, text);

        assert_true(n < NUM_DOUBLE_TEXT);
        assert_true(num_parse_double(text, n, &back));
        if (!num_same(v, back))
            fail_msg("%.17g was written as %s", v, text);
    }
}

/* An independent implementation of the same rule: any ECMAScript engine. */
static void shortest_agrees_with_an_ecmascript_engine(void **state)
{
    static const char script[] =
        "const b = new DataView(new ArrayBuffer(8));"
        "for (const l of require('fs').readFileSync(0, 'ascii').trim().split('\\n')) {"
        "b.setBigUint64(0, BigInt('0x' + l)); console.log(String(b.getFloat64(0))); }";
    const char *const argv[] = {"node", "-e", script, NULL};
    const char *const probe[] = {"sh", "-c", "command -v node", NULL};
    const size_t n = 20000;
    struct test_run r = {0};
    char *input = malloc(n * 17 + 1);
    uint64_t seed = 2;
    size_t checked = 0;
    char *line = NULL;

    (void) state;
    test_run(probe, NULL, NULL, NULL, &r);
    test_run_fini(&r);
    if (r.code != 0) {
        (void) printf("SKIPPED corpus: node is not installed\n");
        free(input);
        skip();
    }
    for (size_t i = 0; i < n; i++)
        (void) snprintf(input + 17 * i, 18, "%016" PRIx64 "\n", to_bits(sample(&seed, i)));
    test_run(argv, NULL, NULL, input, &r);
    assert_int_equal(r.code, 0);
    seed = 2;
    for (line = r.out; *line != '\0' && checked < n; checked++) {
        char text[NUM_DOUBLE_TEXT];
        size_t len = strcspn(line, "\n");

        line[len] = '\0';
        (void) num_double_shortest(sample(&seed, checked), text);
        assert_string_equal(text, line);
        line += len + 1;
    }
    assert_int_equal(checked, n);
    test_run_fini(&r);
    free(input);
}

static void numbers_ignore_the_locale(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"};
    char text[NUM_DOUBLE_TEXT];
    double v = 0;

    (void) state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (setlocale(LC_NUMERIC, names[i]))
            break; /* none of them installed: the C locale is all there is, and is tested */
    }
    (void) num_double_shortest(1.5, text);
    assert_string_equal(text, "1.5");
    assert_true(num_parse_double("2.5", 3, &v));
    assert_true(num_same(v, 2.5));
    (void) setlocale(LC_NUMERIC, "C");
}

static void same_is_value_equality(void **state)
{
    (void) state;
    assert_true(num_same(0.0, -0.0));
    assert_true(num_same(INFINITY, INFINITY));
    assert_false(num_same(NAN, NAN));
    assert_false(num_same(1.0, 1.0 + DBL_EPSILON));
}

static void safe_integers_end_at_two_to_53(void **state)
{
    (void) state;
    assert_true(num_is_safe_integer(9007199254740991.0));
    assert_true(num_is_safe_integer(-9007199254740991.0));
    assert_false(num_is_safe_integer(9007199254740992.0));
    assert_false(num_is_safe_integer(0.5));
    assert_false(num_is_safe_integer(NAN));
    assert_false(num_is_safe_integer(INFINITY));
    assert_true(num_is_safe_integer(-0.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checked_arithmetic_sees_overflow),
        cmocka_unit_test(u64_takes_plain_decimals_only),
        cmocka_unit_test(i64_takes_its_whole_range),
        cmocka_unit_test(double_takes_the_json_grammar_only),
        cmocka_unit_test(double_is_correctly_rounded),
        cmocka_unit_test(long_literal_is_read_whole),
        cmocka_unit_test(integer_literals_have_no_point_and_exponent),
        cmocka_unit_test(shortest_has_the_samples_of_rfc_8785),
        cmocka_unit_test(shortest_reads_back_equal),
        cmocka_unit_test(shortest_agrees_with_an_ecmascript_engine),
        cmocka_unit_test(numbers_ignore_the_locale),
        cmocka_unit_test(same_is_value_equality),
        cmocka_unit_test(safe_integers_end_at_two_to_53),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
