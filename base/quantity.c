/* Digits and units of numbers for people. */
#include "base/quantity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"

struct unit_row {
    const char *from;
    double at; /* magnitude from which it reads better */
    struct quantity_unit to;
};

/* Largest first within one unit. */
static const struct unit_row unit_rows[] = {
    {"ns", 1e9, {1e9, "s"}},
    {"ns", 1e6, {1e6, "ms"}},
    {"ns", 1e3, {1e3, "µs"}},
    {"us", 1e6, {1e6, "s"}},
    {"us", 1e3, {1e3, "ms"}},
    {"us", 0, {1, "µs"}},
    {"ms", 1e4, {1e3, "s"}},
    {"B", 1073741824.0, {1073741824.0, "GiB"}},
    {"B", 1048576.0, {1048576.0, "MiB"}},
    {"B", 1024.0, {1024.0, "KiB"}},
    {"1", 0, {1, ""}}, /* a plain number */
    {"ratio", 0, {1, ""}},
};

struct quantity_unit quantity_unit(double magnitude, const char *unit)
{
    for (size_t i = 0; i < ARRAY_LEN(unit_rows); i++) {
        if (strcmp(unit_rows[i].from, unit) == 0 && fabs(magnitude) >= unit_rows[i].at)
            return unit_rows[i].to;
    }
    return (struct quantity_unit){.divisor = 1,
                                  .name = strncmp(unit, "1/", 2) == 0 ? unit + 1 : unit};
}

#define DIGITS 384 /* "%.15f" of the largest double */
#define DECIMALS_MAX 15

static bool is_whole(double v)
{
    return num_same(v, trunc(v));
}

static double round_to(double v, int decimals)
{
    double p = pow(10, decimals);

    return round(v * p) / p;
}

static int decimals_for(double magnitude)
{
    int decimals = 4;

    if (magnitude >= 100)
        decimals = 1;
    else if (magnitude >= 10)
        decimals = 2;
    else if (magnitude >= 1)
        decimals = 3;
    else
        decimals += (int) floor(-log10(magnitude));
    for (int more = decimals; more <= 6; more++) {
        if (!is_whole(round_to(magnitude, more)))
            return more;
    }
    return decimals; /* whole but for the last bits */
}

/* Digits with commas between groups of three before the point. */
static void group(const char *digits, char *out, size_t size)
{
    size_t whole = strcspn(digits, ".");
    size_t n = 0;

    for (size_t i = 0; digits[i] && n + 2 < size; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0)
            out[n++] = ',';
        out[n++] = digits[i];
    }
    out[n] = '\0';
}

static void strip_zeros(char *s)
{
    size_t n = strlen(s);

    if (!strchr(s, '.'))
        return;
    while (n > 0 && s[n - 1] == '0')
        s[--n] = '\0';
    if (n > 0 && s[n - 1] == '.')
        s[n - 1] = '\0';
}

static const char *sign_of(double v, bool sign, bool ascii)
{
    if (signbit(v))
        return ascii ? "-" : "−";
    return sign && v > 0 ? "+" : "";
}

static void write_shortest(double v, bool sign, bool ascii, char out[QUANTITY_TEXT])
{
    char shortest[NUM_DOUBLE_TEXT];

    (void) num_double_shortest(fabs(v), shortest);
    (void) snprintf(out, QUANTITY_TEXT, "%s%s", sign_of(v, sign, ascii), shortest);
}

/* Four significant digits, and `more`. */
static double few_digits(double v, int more)
{
    char text[QUANTITY_TEXT];
    int len = snprintf(text, sizeof(text), "%.*e", more < 14 ? 3 + more : 16, v);
    double rounded = v;

    return num_parse_double(text, len > 0 ? (size_t) len : 0, &rounded) ? rounded : v;
}

/* With `more` decimals than reads best. */
static void write_number(double v, bool sign, bool ascii, int more, char out[QUANTITY_TEXT])
{
    char digits[DIGITS];
    char grouped[QUANTITY_TEXT - 16];
    double magnitude = fabs(v);

    if (!isfinite(v)) {
        (void) snprintf(out, QUANTITY_TEXT, "–");
        return;
    }
    if (num_is_safe_integer(v)) {
        (void) snprintf(digits, sizeof(digits), "%.0f", magnitude); /* 17 digits at most */
    } else if (magnitude < 1e-4) {
        write_shortest(few_digits(v, more), sign, ascii, out);
        return;
    } else if (magnitude >= 1e15) {
        write_shortest(v, sign, ascii, out);
        return;
    } else {
        int decimals = decimals_for(magnitude) + more;

        if (decimals < 0 || decimals > DECIMALS_MAX) /* the compiler wants to see it */
            decimals = DECIMALS_MAX;
        (void) snprintf(digits, sizeof(digits), "%.*f", decimals, magnitude);
        strip_zeros(digits);
    }
    group(digits, grouped, sizeof(grouped));
    (void) snprintf(out, QUANTITY_TEXT, "%s%s", sign_of(num_same(v, 0) ? 0 : v, sign, ascii),
                    grouped);
}

void quantity_number(double v, bool sign, bool ascii, char out[QUANTITY_TEXT])
{
    write_number(v, sign, ascii, 0, out);
}

static bool look_alike(const double *v, size_t n, char (*out)[QUANTITY_TEXT])
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = i + 1; k < n; k++) {
            if (!num_same(v[i], v[k]) && strcmp(out[i], out[k]) == 0)
                return true;
        }
    }
    return false;
}

void quantity_numbers(const double *v, size_t n, bool ascii, char (*out)[QUANTITY_TEXT])
{
    for (int more = 0; more <= DECIMALS_MAX; more++) {
        for (size_t i = 0; i < n; i++)
            write_number(v[i], false, ascii, more, out[i]);
        if (!look_alike(v, n, out))
            return;
    }
    for (size_t i = 0; i < n; i++) {
        if (isfinite(v[i]) && !num_is_safe_integer(v[i]))
            write_shortest(v[i], false, ascii, out[i]);
    }
}

void quantity_percent(double v, double limit, bool ascii, char out[QUANTITY_TEXT])
{
    char digits[DIGITS];
    char grouped[QUANTITY_TEXT - 16];
    double magnitude = fabs(v);
    int decimals = 1;

    if (!isfinite(v) || magnitude >= 1e15) {
        (void) snprintf(out, QUANTITY_TEXT, "%s", isfinite(v) ? "over 10^15 %" : "–");
        return;
    }
    if (num_is_safe_integer(v))
        decimals = 0;
    while (decimals > 0 && decimals < 4 && !num_same(magnitude, limit) &&
           (num_same(round_to(magnitude, decimals), limit) ||
            num_same(round_to(magnitude, decimals), 0)))
        decimals++;
    (void) snprintf(digits, sizeof(digits), "%.*f", decimals, magnitude);
    group(digits, grouped, sizeof(grouped));
    (void) snprintf(out, QUANTITY_TEXT, "%s%s %%", sign_of(num_same(v, 0) ? 0 : v, true, ascii),
                    grouped);
}
