/*
 * value_internal - texts of numbers, dates and times that the files of this room share.
 *
 * The scanners take the whole slice or answer false; who calls them says what was expected.
 */
#ifndef TARN_FORMAT_VALUE_INTERNAL_H
#define TARN_FORMAT_VALUE_INTERNAL_H

#include "format/value.h"

#define TARN_MS_PER_DAY INT64_C(86400000)
#define TARN_NUMBER_TEXT_MAX 2000 /* longer numbers are refused; no double needs more digits */

/* Floored quotient and remainder of a positive divisor: time before 1970 is negative. */
static inline int64_t tarn_format__floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}
static inline int64_t tarn_format__floor_mod(int64_t a, int64_t b)
{
    int64_t r = a % b;
    return r < 0 ? r + b : r;
}

/* --- reals --- */

/* The fewest digits, at least `least`, that read back as v (finite, not zero); a trailing zero is
 * never kept. |v| = d.ddd * 10^*exponent. Returns their count; digits is NUL terminated. */
int tarn_format__real_digits(double v, bool is_float, int least, char digits[32], int *exponent);
/* As Java's Double.toString and Float.toString: 1.0, 1.0E10, 1.0E-5, NaN, Infinity. */
void tarn_format__print_java_real(double v, bool is_float, struct tarn_buf *out);
/* 1.5, 100, 1e+20, NaN, Infinity; reads back as v and is JSON where finite. */
void tarn_format__print_real(double v, bool is_float, struct tarn_buf *out);

/* --- exact decimal numbers --- */

/* ±digits * 10^exponent, exactly; digits have no zeros at either end, zero has none at all. */
struct tarn_number {
    bool negative;
    const char *digits;
    size_t digit_count;
    int64_t exponent;
};
/* How a number lies among the values of a type: one of them, between `floor` and its successor (or
 * beyond the largest when that is floor), or outside on either side. */
enum tarn_fit { TARN_FIT_EXACT, TARN_FIT_BETWEEN, TARN_FIT_BELOW, TARN_FIT_ABOVE };

bool tarn_format__scan_number(struct tarn_slice text, struct tarn_arena *arena,
                              struct tarn_number *out);
int tarn_format__number_compare(const struct tarn_number *a, const struct tarn_number *b);
/* Among the multiples of 10^-scale from low to high; *floor in those units. */
enum tarn_fit tarn_format__number_to_integer(const struct tarn_number *n, int scale, __int128 low,
                                             __int128 high, __int128 *floor);
/* Among the doubles or floats. EXACT too where n is the correctly rounded text of *floor with as
 * many digits as n has: 0.1 names a double, 9007199254740993 does not. Never BELOW or ABOVE. */
enum tarn_fit tarn_format__number_to_real(const struct tarn_number *n, bool is_float,
                                          double *floor);
/* Least and greatest of an integer type or an unscaled DECIMAL. */
void tarn_format__type_range(const struct tarn_type *type, __int128 *low, __int128 *high);
void tarn_format__print_decimal(__int128 unscaled, int scale, struct tarn_buf *out);

/* --- dates and times --- */

bool tarn_format__scan_date(struct tarn_slice text, int64_t *days);
bool tarn_format__scan_time(struct tarn_slice text, int64_t *nanos); /* of the day */
/* A date alone is its midnight; T or a blank; Z or an offset is applied. */
bool tarn_format__scan_timestamp(struct tarn_slice text, int64_t *ms, int32_t *ns);
void tarn_format__print_date(int64_t days, struct tarn_buf *out);
/* HH:MM:SS and as many of nine digits as needed, at least `digits_min`. */
void tarn_format__print_clock(int64_t nanos, int digits_min, struct tarn_buf *out);
/* Splits a timestamp; *nanos of the day, 0 .. 86399999999999. */
void tarn_format__split_timestamp(int64_t ms, int32_t ns, int64_t *days, int64_t *nanos);

/* The size of the UTF-8 sequence at the start of s (at least 1, at most s.size, garbage counts
 * bytewise); *code is its code point. */
size_t tarn_format__utf8_next(struct tarn_slice s, uint32_t *code);

#endif
