#include "base/num.h"

#include <assert.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 17

bool num_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

bool num_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool num_parse_u64(const char *s, size_t len, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;

    if (len == 0 || (len > 1 && s[0] == '0'))
        return false;
    for (size_t i = 0; i < len; i++) {
        uint64_t digit = (uint64_t) (s[i] - '0');

        if (!is_digit(s[i]) || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (value > max)
        return false;
    *out = value;
    return true;
}

bool num_parse_i64(const char *s, size_t len, int64_t *out)
{
    bool negative = len > 0 && s[0] == '-';
    uint64_t magnitude = 0;
    uint64_t max = negative ? (uint64_t) INT64_MAX + 1 : (uint64_t) INT64_MAX;

    if (!num_parse_u64(s + negative, len - negative, max, &magnitude))
        return false;
    if (!negative)
        *out = (int64_t) magnitude;
    else
        *out = magnitude == 0 ? 0 : -(int64_t) (magnitude - 1) - 1;
    return true;
}

static size_t skip_digits(const char *s, size_t len, size_t i)
{
    while (i < len && is_digit(s[i]))
        i++;
    return i;
}

/* RFC 8259 §6, the whole of s. */
static bool is_json_number(const char *s, size_t len)
{
    size_t i = len > 0 && s[0] == '-' ? 1 : 0;
    size_t end = skip_digits(s, len, i);

    if (end == i || (s[i] == '0' && end > i + 1))
        return false;
    i = end;
    if (i < len && s[i] == '.') {
        end = skip_digits(s, len, i + 1);
        if (end == i + 1)
            return false;
        i = end;
    }
    if (i < len && (s[i] == 'e' || s[i] == 'E')) {
        i++;
        if (i < len && (s[i] == '+' || s[i] == '-'))
            i++;
        end = skip_digits(s, len, i);
        if (end == i)
            return false;
        i = end;
    }
    return i == len;
}

/* The C locale. glibc hands out its static object for it: no allocation, nothing to free. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t) 0);
}

bool num_parse_double(const char *s, size_t len, double *out)
{
    char small[128];
    AUTO_FREE char *large = NULL;
    char *text = small;
    double value = 0;
    locale_t c = c_locale();

    if (!is_json_number(s, len) || c == (locale_t) 0)
        return false;
    if (len >= sizeof(small)) {
        large = malloc(len + 1);
        if (!large)
            return false;
        text = large;
    }
    memcpy(text, s, len);
    text[len] = '\0';
    value = strtod_l(text, NULL, c);
    if (!isfinite(value))
        return false;
    *out = value;
    return true;
}

bool num_is_integer_literal(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '.' || s[i] == 'e' || s[i] == 'E')
            return false;
    }
    return true;
}

bool num_same(double a, double b)
{
    return a <= b && a >= b;
}

bool num_is_safe_integer(double v)
{
    return isfinite(v) && fabs(v) <= NUM_SAFE_MAX && num_same(v, trunc(v));
}

/* v = 0.digits · 10^point, v > 0 */
struct decimal {
    char digits[DIGITS_MAX + 1];
    int n;
    int point;
};

/* The nearest decimal of n digits. */
static void decimal_round(double v, int n, struct decimal *d)
{
    char text[40];
    int exponent = 0;
    const char *p = NULL;

    (void) snprintf(text, sizeof(text), "%.*e", n - 1, v); /* at most 24 characters for 17 digits */
    d->n = 0;
    for (p = text; *p && *p != 'e'; p++) {
        if (is_digit(*p))
            d->digits[d->n++] = *p;
    }
    for (p += 2; is_digit(*p); p++)
        exponent = exponent * 10 + (*p - '0');
    if (strchr(text, 'e')[1] == '-')
        exponent = -exponent;
    d->point = exponent + 1;
    d->digits[d->n] = '\0';
}

/* The next larger decimal of the same length. */
static void decimal_up(struct decimal *d)
{
    int i = d->n - 1;

    while (i >= 0 && d->digits[i] == '9')
        d->digits[i--] = '0';
    if (i >= 0) {
        d->digits[i]++;
        return;
    }
    d->digits[0] = '1';
    d->point++;
}

static bool decimal_reads_as(const struct decimal *d, double v, locale_t c)
{
    char text[48];

    (void) snprintf(text, sizeof(text), "0.%se%d", d->digits,
                    d->point); /* at most 2 + 17 + 5 characters */
    return num_same(strtod_l(text, NULL, c), v);
}

/*
 * The shortest decimal that reads as v, and among those of that length the nearest. In the normal
 * range every decimal of ≤ 15 digits survives the way through a double, so 15 digits without their
 * trailing zeros are already the shortest if they read back at all. Only at powers of two, where
 * the gap above is twice the gap below, may the nearest decimal fail and its upper neighbour
 * succeed.
 */
static void decimal_shortest(double v, struct decimal *d)
{
    locale_t c = c_locale();
    locale_t before = uselocale(c);
    int n = v < DBL_MIN ? 1 : DBL_DIG;

    for (; n < DIGITS_MAX; n++) {
        decimal_round(v, n, d);
        if (decimal_reads_as(d, v, c))
            break;
        decimal_up(d);
        if (decimal_reads_as(d, v, c))
            break;
    }
    if (n == DIGITS_MAX)
        decimal_round(v, n, d);
    (void) uselocale(before); /* gives back what was in force; cannot fail */
    while (d->n > 1 && d->digits[d->n - 1] == '0')
        d->n--;
}

static char *put(char *out, const char *p, int n)
{
    memcpy(out, p, (size_t) n);
    return out + n;
}

static char *put_zeros(char *out, int n)
{
    memset(out, '0', (size_t) n);
    return out + n;
}

/* "e+21", "e-7": no zero padding; |exponent| < 1000 for every double. */
static char *put_exponent(char *out, int exponent)
{
    int magnitude = exponent < 0 ? -exponent : exponent;

    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    if (magnitude >= 100)
        *out++ = (char) ('0' + magnitude / 100);
    if (magnitude >= 10)
        *out++ = (char) ('0' + magnitude / 10 % 10);
    *out++ = (char) ('0' + magnitude % 10);
    return out;
}

/* ECMAScript Number::toString, steps 6 to 12. */
static char *decimal_write(const struct decimal *d, char *out)
{
    if (d->n <= d->point && d->point <= 21) {
        out = put(out, d->digits, d->n);
        return put_zeros(out, d->point - d->n);
    }
    if (0 < d->point && d->point <= 21) {
        out = put(out, d->digits, d->point);
        *out++ = '.';
        return put(out, d->digits + d->point, d->n - d->point);
    }
    if (-6 < d->point && d->point <= 0) {
        out = put(out, "0.", 2);
        out = put_zeros(out, -d->point);
        return put(out, d->digits, d->n);
    }
    *out++ = d->digits[0];
    if (d->n > 1) {
        *out++ = '.';
        out = put(out, d->digits + 1, d->n - 1);
    }
    return put_exponent(out, d->point - 1);
}

/* Digits of an integer: exact, so nothing shorter reads as the same double below 2^53. */
static char *put_integer(char *out, uint64_t n)
{
    char digits[24];
    size_t i = sizeof(digits);

    do {
        digits[--i] = (char) ('0' + n % 10);
        n /= 10;
    } while (n > 0);
    return put(out, digits + i, (int) (sizeof(digits) - i));
}

size_t num_double_shortest(double v, char out[NUM_DOUBLE_TEXT])
{
    struct decimal d;
    char *p = out;

    assert(isfinite(v));
    if (v < 0)
        *p++ = '-';
    if (num_is_safe_integer(v)) {
        p = put_integer(p, (uint64_t) fabs(v));
    } else {
        decimal_shortest(fabs(v), &d);
        p = decimal_write(&d, p);
    }
    *p = '\0';
    return (size_t) (p - out);
}
