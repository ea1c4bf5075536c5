/* Dates and times as text, and the proleptic Gregorian calendar they stand on. */
#include "format/value_internal.h"

#define NANOS_PER_SECOND INT64_C(1000000000)
#define YEAR_DIGITS_MAX 9 /* a year of nine digits is the last that Java knows */

int64_t tarn_days_from_civil(int64_t year, int month, int day)
{
    /* Years begin in March, so that the leap day is the last one. */
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = tarn_format__floor_div(y, 400);
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + day_of_era - 719468;
}

void tarn_civil_from_days(int64_t days, int64_t *year, int *month, int *day)
{
    /* Far beyond any date; keeps the sums below from overflowing. */
    days = days > INT64_MAX / 2 ? INT64_MAX / 2 : days < INT64_MIN / 2 ? INT64_MIN / 2 : days;
    int64_t shifted = days + 719468;
    int64_t era = tarn_format__floor_div(shifted, 146097);
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int march = (int)((5 * day_of_year + 2) / 153);

    *day = (int)(day_of_year - (153 * march + 2) / 5 + 1);
    *month = march < 10 ? march + 3 : march - 9;
    *year = year_of_era + era * 400 + (*month <= 2);
}

static int days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

struct cursor {
    const uint8_t *p, *end;
};

static struct cursor cursor_of(struct tarn_slice text)
{
    return (struct cursor){text.data, text.size == 0 ? text.data : text.data + text.size};
}

static bool take_char(struct cursor *c, char wanted)
{
    if (c->p == c->end || *c->p != (uint8_t)wanted)
        return false;
    c->p++;
    return true;
}

/* Between `least` and `most` digits. */
static bool take_digits(struct cursor *c, int least, int most, int64_t *out)
{
    int count = 0;
    *out = 0;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9' && count < most; c->p++, count++)
        *out = *out * 10 + (*c->p - '0');
    return count >= least;
}

static bool take_two(struct cursor *c, int64_t most, int64_t *out)
{
    return take_digits(c, 2, 2, out) && *out <= most;
}

static bool take_date(struct cursor *c, int64_t *days)
{
    int64_t year, month, day;
    bool negative = take_char(c, '-');

    if (!negative)
        take_char(c, '+');
    if (!take_digits(c, 4, YEAR_DIGITS_MAX, &year) || !take_char(c, '-') ||
        !take_two(c, 12, &month) || !take_char(c, '-') || !take_two(c, 31, &day))
        return false;
    year = negative ? -year : year;
    if (month == 0 || day == 0 || day > days_in_month(year, (int)month))
        return false;
    *days = tarn_days_from_civil(year, (int)month, (int)day);
    return true;
}

/* Up to nine digits after the point; more of them only where they are zero. */
static bool take_fraction(struct cursor *c, int64_t *nanos)
{
    int count = 0;
    *nanos = 0;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++, count++) {
        if (count < 9)
            *nanos = *nanos * 10 + (*c->p - '0');
        else if (*c->p != '0')
            return false;
    }
    for (int i = count; i < 9; i++)
        *nanos *= 10;
    return count > 0;
}

static bool take_clock(struct cursor *c, int64_t *nanos)
{
    int64_t hour, minute, second = 0, fraction = 0;

    if (!take_two(c, 23, &hour) || !take_char(c, ':') || !take_two(c, 59, &minute))
        return false;
    if (take_char(c, ':')) {
        if (!take_two(c, 59, &second))
            return false;
        if (take_char(c, '.') && !take_fraction(c, &fraction))
            return false;
    }
    *nanos = ((hour * 60 + minute) * 60 + second) * NANOS_PER_SECOND + fraction;
    return true;
}

/* Z, +01, +0100, +01:00 or nothing, after one blank or none. */
static bool take_zone(struct cursor *c, int64_t *offset_ms)
{
    int64_t hour, minute = 0;

    *offset_ms = 0;
    if (c->p == c->end)
        return true;
    take_char(c, ' ');
    if (take_char(c, 'Z') || take_char(c, 'z'))
        return true;
    bool west = take_char(c, '-');
    if ((!west && !take_char(c, '+')) || !take_two(c, 18, &hour))
        return false;
    if (c->p < c->end) {
        take_char(c, ':');
        if (!take_two(c, 59, &minute))
            return false;
    }
    *offset_ms = (hour * 60 + minute) * 60000 * (west ? -1 : 1);
    return true;
}

bool tarn_format__scan_date(struct tarn_slice text, int64_t *days)
{
    struct cursor c = cursor_of(text);
    return take_date(&c, days) && c.p == c.end;
}

bool tarn_format__scan_time(struct tarn_slice text, int64_t *nanos)
{
    struct cursor c = cursor_of(text);
    return take_clock(&c, nanos) && c.p == c.end;
}

bool tarn_format__scan_timestamp(struct tarn_slice text, int64_t *ms, int32_t *ns)
{
    struct cursor c = cursor_of(text);
    int64_t days, nanos = 0, offset_ms = 0;

    if (!take_date(&c, &days))
        return false;
    if (c.p < c.end) {
        if (!take_char(&c, 'T') && !take_char(&c, 't') && !take_char(&c, ' '))
            return false;
        if (!take_clock(&c, &nanos) || !take_zone(&c, &offset_ms) || c.p != c.end)
            return false;
    }
    *ns = (int32_t)(nanos % 1000000);
    return !__builtin_mul_overflow(days, TARN_MS_PER_DAY, ms) &&
           !__builtin_add_overflow(*ms, nanos / 1000000 - offset_ms, ms);
}

void tarn_format__print_date(int64_t days, struct tarn_buf *out)
{
    int64_t year;
    int month, day;

    tarn_civil_from_days(days, &year, &month, &day);
    if (year < 0)
        tarn_buf_printf(out, "-%04" PRId64 "-%02d-%02d", -year, month, day);
    else
        tarn_buf_printf(out, "%s%04" PRId64 "-%02d-%02d", year > 9999 ? "+" : "", year, month, day);
}

void tarn_format__print_clock(int64_t nanos, int digits_min, struct tarn_buf *out)
{
    int64_t second = nanos / NANOS_PER_SECOND;
    int64_t fraction = nanos % NANOS_PER_SECOND;
    int digits = 9;

    tarn_buf_printf(out, "%02d:%02d:%02d", (int)(second / 3600), (int)(second / 60 % 60),
                    (int)(second % 60));
    while (digits > digits_min && fraction % 10 == 0) {
        digits--;
        fraction /= 10;
    }
    if (digits > 0)
        tarn_buf_printf(out, ".%0*" PRId64, digits, fraction);
}

void tarn_format__split_timestamp(int64_t ms, int32_t ns, int64_t *days, int64_t *nanos)
{
    *days = tarn_format__floor_div(ms, TARN_MS_PER_DAY);
    *nanos = tarn_format__floor_mod(ms, TARN_MS_PER_DAY) * 1000000 + ns;
}
