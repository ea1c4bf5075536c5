/*
 * value - one value of an atomic or nested type, outside any file.
 *
 * Units    DATE: days. TIME: milliseconds of the day. TIMESTAMP(_LTZ): milliseconds since 1970 and
 *          nanoseconds of the millisecond, 0..999999. DECIMAL: unscaled.
 * Memory   bytes and items are borrowed.
 * Source   docs/format.md, "Values": comparison as 7.6 (null first; floats in total order, -0.0 < 0.0,
 *          NaN largest).
 */
#ifndef TARN_FORMAT_VALUE_H
#define TARN_FORMAT_VALUE_H

#include "format/type.h"

struct tarn_value {
    bool is_null;
    union {
        int64_t integer;  /* BOOLEAN 0/1, TINYINT … BIGINT, DATE, TIME */
        double real;      /* FLOAT, DOUBLE */
        __int128 decimal; /* DECIMAL, unscaled */
        struct {
            int64_t ms;
            int32_t ns;
        } time;                  /* TIMESTAMP(_LTZ) */
        struct tarn_slice bytes; /* CHAR, VARCHAR, BINARY, VARBINARY, BLOB, GEOMETRY, GEOGRAPHY;
                                     VARIANT: as a row holds it (value's size, value, metadata) */
        struct {
            const struct tarn_value *items;
            const struct tarn_value *keys;
            size_t count;
        } list;
        /* ARRAY, VECTOR, ROW: items; MAP, MULTISET: keys and items */
    };
};

/* -1, 0, 1; null sorts first. Both of `type`. Ordered types only. */
int tarn_value_compare(const struct tarn_type *type, const struct tarn_value *a,
                       const struct tarn_value *b);
/* As docs/compatibility.md says: 2026-01-31, 12:00:00.123, 2026-01-31 12:00:00.123, exact decimals, base64 for
 * binary; null gives "null". Nested values as JSON. Appends. */
void tarn_value_print(const struct tarn_type *type, const struct tarn_value *value,
                      struct tarn_buf *out);
/* The reverse, for atomic types; the slice is not "null". VALUE_INVALID says what was expected and
 * refuses what does not fit (overflow, digits beyond the scale or precision, length). bytes lie in arena. */
TARN_MUST struct tarn_status *tarn_value_parse(const struct tarn_type *type, struct tarn_slice text,
                                               struct tarn_arena *arena, struct tarn_value *out);

/* Calendar: days since 1970 and back (proleptic Gregorian). */
int64_t tarn_days_from_civil(int64_t year, int month, int day);
void tarn_civil_from_days(int64_t days, int64_t *year, int *month, int *day);

#endif
