#include "base/text.h"

#include <inttypes.h>

/*
 * Dates are of the Gregorian calendar without end in both directions, as Java's. Days are counted
 * in years that begin on 1 March, which puts the leap day last.
 */
static int64_t days_of_date(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static void date_of_days(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted_month = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * shifted_month + 2) / 5 + 1);
    *month = (int)(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

static int days_of_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && is_leap);
}

struct reader {
    const uint8_t *p;
    const uint8_t *end;
};

static bool take_char(struct reader *r, char c)
{
    if (r->p == r->end || *r->p != (uint8_t)c)
        return false;
    r->p++;
    return true;
}

/* Exactly `count` digits with a value of at most `max`. */
static bool take_number(struct reader *r, int count, int max, int *out)
{
    int value = 0;
    if (r->end - r->p < count)
        return false;
    for (int i = 0; i < count; i++) {
        uint8_t c = *r->p++;
        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (c - '0');
    }
    *out = value;
    return value <= max;
}

/* One to nine digits after the point; beyond milliseconds they are dropped. */
static bool take_fraction(struct reader *r, int *ms)
{
    int value = 0, count = 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9' && count < 9; r->p++, count++)
        value = count < 3 ? value * 10 + (*r->p - '0') : value;
    for (int i = count; i < 3; i++)
        value *= 10;
    *ms = value;
    return count > 0;
}

/* Nothing, Z, +01:00, +0100 or +01. */
static bool take_zone(struct reader *r, int *offset_minutes)
{
    int hours = 0, minutes = 0;
    bool negative = false;
    *offset_minutes = 0;
    if (r->p == r->end || take_char(r, 'Z'))
        return true;
    if (!take_char(r, '+')) {
        if (!take_char(r, '-'))
            return false;
        negative = true;
    }
    if (!take_number(r, 2, 18, &hours))
        return false;
    bool has_colon = take_char(r, ':');
    if ((has_colon || r->p < r->end) && !take_number(r, 2, 59, &minutes))
        return false;
    *offset_minutes = (negative ? -1 : 1) * (hours * 60 + minutes);
    return true;
}

static bool read_time(struct tarn_slice text, int64_t *wall_ms)
{
    struct reader r = {text.data, text.data + text.size};
    int year, month, day, hour = 0, minute = 0, second = 0, ms = 0, offset_minutes = 0;

    if (!take_number(&r, 4, 9999, &year) || !take_char(&r, '-') ||
        !take_number(&r, 2, 12, &month) || !take_char(&r, '-') || !take_number(&r, 2, 31, &day) ||
        month < 1 || day < 1 || day > days_of_month(year, month))
        return false;
    if (r.p < r.end) {
        if (!take_char(&r, 'T') && !take_char(&r, ' '))
            return false;
        if (!take_number(&r, 2, 23, &hour) || !take_char(&r, ':') ||
            !take_number(&r, 2, 59, &minute))
            return false;
        if (take_char(&r, ':')) {
            if (!take_number(&r, 2, 59, &second))
                return false;
            if (take_char(&r, '.') && !take_fraction(&r, &ms))
                return false;
        }
        if (!take_zone(&r, &offset_minutes) || r.p != r.end)
            return false;
    }
    int64_t minutes = (days_of_date(year, month, day) * 24 + hour) * 60 + minute - offset_minutes;
    *wall_ms = (minutes * 60 + second) * 1000 + ms;
    return true;
}

struct tarn_status *tarn_parse_time(struct tarn_slice text, int64_t *wall_ms)
{
    if (read_time(text, wall_ms))
        return TARN_OK;
    int64_t value;
    struct tarn_status *bad = tarn_parse_i64(text, &value);
    if (bad == NULL) {
        *wall_ms = value;
        return TARN_OK;
    }
    tarn_status_free(bad);
    return tarn_status_new(TARN_VALUE_INVALID,
                           "\"%.*s\" is not a time: 2026-01-31, 2026-01-31 12:00:00.123 with Z or "
                           "+01:00 (none: UTC), or milliseconds since 1970",
                           (int)TARN_MIN(text.size, (size_t)80), (const char *)text.data);
}

void tarn_format_time(int64_t wall_ms, struct tarn_buf *out)
{
    int64_t days = wall_ms / 86400000, rest = wall_ms % 86400000, year;
    int month, day;
    if (rest < 0) {
        rest += 86400000;
        days--;
    }
    date_of_days(days, &year, &month, &day);
    tarn_buf_printf(out, "%s%04" PRId64 "-%02d-%02dT%02d:%02d:%02d.%03dZ", year < 0 ? "-" : "",
                    year < 0 ? -year : year, month, day, (int)(rest / 3600000),
                    (int)(rest / 60000 % 60), (int)(rest / 1000 % 60), (int)(rest % 1000));
}
