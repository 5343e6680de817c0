#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "server/pages/view_parts.h"

struct unit_row {
    const char *from;
    double at; /* magnitude from which it reads better */
    struct view_unit to;
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
};

struct view_unit view_unit_for(double magnitude, const char *unit)
{
    for (size_t i = 0; i < sizeof(unit_rows) / sizeof(unit_rows[0]); i++) {
        if (strcmp(unit_rows[i].from, unit) == 0 && fabs(magnitude) >= unit_rows[i].at)
            return unit_rows[i].to;
    }
    return (struct view_unit){.divisor = 1, .name = unit};
}

#define DIGITS 384 /* "%.6f" of the largest double */

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

void view_num_text(double v, bool sign, bool ascii, char out[VIEW_TEXT])
{
    char digits[DIGITS];
    char grouped[VIEW_TEXT - 16];
    double magnitude = fabs(v);

    if (num_is_safe_integer(v)) {
        (void) snprintf(digits, sizeof(digits), "%.0f", magnitude); /* 17 digits at most */
    } else if (magnitude < 1e-4 || magnitude >= 1e15) {
        char shortest[NUM_DOUBLE_TEXT];

        (void) num_double_shortest(magnitude, shortest);
        (void) snprintf(out, VIEW_TEXT, "%s%s", sign_of(v, sign, ascii), shortest);
        return;
    } else {
        int decimals = decimals_for(magnitude);

        if (decimals < 0 || decimals > 9) /* can't be; the compiler wants to see it */
            decimals = 9;
        (void) snprintf(digits, sizeof(digits), "%.*f", decimals, magnitude);
        strip_zeros(digits);
    }
    group(digits, grouped, sizeof(grouped));
    (void) snprintf(out, VIEW_TEXT, "%s%s", sign_of(num_same(v, 0) ? 0 : v, sign, ascii), grouped);
}

void view_pct_text(double v, double limit, bool ascii, char out[VIEW_TEXT])
{
    char digits[DIGITS];
    char grouped[VIEW_TEXT - 16];
    double magnitude = fabs(v);
    int decimals = 1;

    if (!isfinite(v) || magnitude >= 1e15) {
        (void) snprintf(out, VIEW_TEXT, "%s", isfinite(v) ? "over 10^15 %" : "–");
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
    (void) snprintf(out, VIEW_TEXT, "%s%s %%", sign_of(num_same(v, 0) ? 0 : v, true, ascii),
                    grouped);
}

void view_age_text(int64_t age_us, char out[VIEW_TEXT])
{
    int64_t s = (age_us < 0 ? -age_us : age_us) / 1000000;
    const char *before = age_us < 0 ? "in " : "";
    const char *after = age_us < 0 ? "" : " ago";

    if (s < 60)
        (void) snprintf(out, VIEW_TEXT, "%s%lld s%s", before, (long long) s, after);
    else if (s < 7200)
        (void) snprintf(out, VIEW_TEXT, "%s%lld min%s", before, (long long) (s / 60), after);
    else if (s < 172800)
        (void) snprintf(out, VIEW_TEXT, "%s%lld h%s", before, (long long) (s / 3600), after);
    else
        (void) snprintf(out, VIEW_TEXT, "%s%lld days%s", before, (long long) (s / 86400), after);
}

double view_nice_step(double span, unsigned max)
{
    double raw = span / max;
    double power;

    if (!(raw > 0) || !isfinite(raw))
        return 1;
    power = pow(10, floor(log10(raw)));
    for (int i = 0; i < 2; i++) {
        static const double factors[] = {1, 2, 5};

        for (size_t k = 0; k < sizeof(factors) / sizeof(factors[0]); k++) {
            if (factors[k] * power >= raw)
                return factors[k] * power;
        }
        power *= 10;
    }
    return power;
}
