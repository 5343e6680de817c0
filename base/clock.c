#include "base/clock.h"

#include <time.h>

#define US_PER_S INT64_C(1000000)
#define S_PER_DAY INT64_C(86400)

struct civil {
    int64_t year;
    int64_t month; /* 1 to 12 */
    int64_t day;
    int64_t hour;
    int64_t minute;
    int64_t second;
    int64_t us;
};

uint64_t clock_monotonic_ns(void)
{
    struct timespec t = {0};

    (void) clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
    return (uint64_t) t.tv_sec * UINT64_C(1000000000) + (uint64_t) t.tv_nsec;
}

int64_t clock_realtime_us(void)
{
    struct timespec t = {0};

    (void) clock_gettime(CLOCK_REALTIME, &t); /* cannot fail for this clock */
    return (int64_t) t.tv_sec * US_PER_S + t.tv_nsec / 1000;
}

/* Days since 1970-01-01 of a Gregorian date; years of 400-year eras that start in March. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

static struct civil civil_of(int64_t us)
{
    struct civil c;
    int64_t seconds = us / US_PER_S - (us % US_PER_S < 0 ? 1 : 0);
    int64_t days = seconds / S_PER_DAY - (seconds % S_PER_DAY < 0 ? 1 : 0);
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;

    c.day = doy - (153 * mp + 2) / 5 + 1;
    c.month = mp < 10 ? mp + 3 : mp - 9;
    c.year = yoe + era * 400 + (c.month <= 2 ? 1 : 0);
    c.us = us - seconds * US_PER_S;
    seconds -= days * S_PER_DAY;
    c.hour = seconds / 3600;
    c.minute = seconds / 60 % 60;
    c.second = seconds % 60;
    return c;
}

/* Four-digit years only: what lies outside becomes the first or last moment that can be written. */
static int64_t writable(int64_t us)
{
    const int64_t first = days_of(0, 1, 1) * S_PER_DAY * US_PER_S;
    const int64_t last = days_of(10000, 1, 1) * S_PER_DAY * US_PER_S - 1;

    if (us < first)
        return first;
    return us > last ? last : us;
}

/* Two or more decimal digits, zero padded; returns the place behind them. */
static char *put_number(char *out, int64_t value, int digits)
{
    for (int i = digits - 1; i >= 0; i--) {
        out[i] = (char) ('0' + value % 10);
        value /= 10;
    }
    return out + digits;
}

/* The date and time with the given separators ('\0' for none). */
static char *put_civil(char *p, const struct civil *c, char date, char time)
{
    const int64_t parts[] = {c->year, c->month, c->day, c->hour, c->minute, c->second};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        char separator = i == 0 ? '\0' : i < 3 ? date : i == 3 ? 'T' : time;

        if (separator != '\0')
            *p++ = separator;
        p = put_number(p, parts[i], i == 0 ? 4 : 2);
    }
    return p;
}

void clock_rfc3339(int64_t realtime_us, bool us_digits, char out[CLOCK_RFC3339_SIZE])
{
    struct civil c = civil_of(writable(realtime_us));
    char *p = put_civil(out, &c, '-', ':');

    if (us_digits) {
        *p++ = '.';
        p = put_number(p, c.us, 6);
    }
    *p++ = 'Z';
    *p = '\0';
}

void clock_compact(int64_t realtime_us, char out[CLOCK_RFC3339_SIZE])
{
    struct civil c = civil_of(writable(realtime_us));
    char *p = put_civil(out, &c, '\0', '\0');

    *p++ = 'Z';
    *p = '\0';
}

/* Exactly n digits at *s, which moves behind them. */
static bool take_number(const char **s, int n, int64_t *out)
{
    int64_t value = 0;

    for (int i = 0; i < n; i++) {
        char c = (*s)[i];

        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (c - '0');
    }
    *s += n;
    *out = value;
    return true;
}

static bool take_char(const char **s, char c)
{
    if (**s != c)
        return false;
    (*s)++;
    return true;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return month == 2 && leap ? 29 : days[month - 1];
}

/* Date and time with the given separators; *s moves behind the seconds. */
static bool take_civil(const char **s, char date, char time, struct civil *c)
{
    int64_t *const parts[] = {&c->year, &c->month, &c->day, &c->hour, &c->minute, &c->second};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        char separator = i == 0 ? '\0' : i < 3 ? date : i == 3 ? 'T' : time;

        if (separator != '\0' && !take_char(s, separator))
            return false;
        if (!take_number(s, i == 0 ? 4 : 2, parts[i]))
            return false;
    }
    return c->month >= 1 && c->month <= 12 && c->day >= 1 &&
           c->day <= days_in_month(c->year, c->month) && c->hour <= 23 && c->minute <= 59 &&
           c->second <= 59;
}

static int64_t us_of(const struct civil *c)
{
    int64_t seconds = days_of(c->year, c->month, c->day) * S_PER_DAY + c->hour * 3600 +
                      c->minute * 60 + c->second;

    return seconds * US_PER_S + c->us;
}

/* "" or "." and 1 to 9 digits; digits beyond microseconds are cut. */
static bool take_fraction(const char **s, int64_t *out_us)
{
    int64_t unit = US_PER_S / 10;
    int64_t digit = 0;
    int n = 0;

    *out_us = 0;
    if (!take_char(s, '.'))
        return true;
    while (take_number(s, 1, &digit)) {
        *out_us += digit * unit;
        unit /= 10;
        n++;
    }
    return n >= 1 && n <= 9;
}

static bool take_offset(const char **s, int64_t *out_seconds)
{
    int64_t hours = 0;
    int64_t minutes = 0;
    int64_t sign = 1;

    *out_seconds = 0;
    if (take_char(s, 'Z'))
        return true;
    if (take_char(s, '-'))
        sign = -1;
    else if (!take_char(s, '+'))
        return false;
    if (!take_number(s, 2, &hours) || !take_char(s, ':') || !take_number(s, 2, &minutes) ||
        hours > 23 || minutes > 59)
        return false;
    *out_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

bool clock_parse_rfc3339(const char *s, int64_t *out_us)
{
    struct civil c = {0};
    int64_t offset = 0;

    if (!take_civil(&s, '-', ':', &c) || !take_fraction(&s, &c.us) || !take_offset(&s, &offset) ||
        *s != '\0')
        return false;
    *out_us = us_of(&c) - offset * US_PER_S;
    return true;
}

bool clock_parse_compact(const char *s, int64_t *out_us)
{
    struct civil c = {0};

    if (!take_civil(&s, '\0', '\0', &c) || !take_char(&s, 'Z') || *s != '\0')
        return false;
    *out_us = us_of(&c);
    return true;
}
