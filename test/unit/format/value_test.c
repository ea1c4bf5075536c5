/*
 * Values: texts are the same in and out (docs/compatibility.md, "Values as text"); what a type cannot hold is
 * refused and never rounded; order is Paimon's; time before 1970 is time.
 */
#include "test.h"

#include <math.h>

#include "format/value_internal.h"

static const struct tarn_type *type_of(enum tarn_type_id id, int32_t a, int32_t b)
{
    static _Thread_local struct tarn_type pool[16];
    static _Thread_local size_t next;
    struct tarn_type *type = &pool[next++ % TARN_COUNT_OF(pool)];

    *type = (struct tarn_type){.id = id, .nullable = true, .length = a, .precision = a, .scale = b};
    return type;
}
#define T(id) type_of(TARN_TYPE_##id, 9, 0)
#define TEXT type_of(TARN_TYPE_VARCHAR, TARN_TYPE_LENGTH_MAX, 0)

static struct tarn_value parsed(struct tarn_test *t, const struct tarn_type *type, const char *text)
{
    struct tarn_value v;
    expect_ok(tarn_value_parse(type, tarn_slice_str(text), t->arena, &v));
    return v;
}

static const char *printed(struct tarn_test *t, const struct tarn_type *type,
                           const struct tarn_value *v)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    tarn_value_print(type, v, &out);
    return tarn_arena_str(t->arena, tarn_buf_slice(&out));
}

#define expect_round(type, text, want)                                                             \
    do {                                                                                           \
        const struct tarn_type *round_type = (type);                                               \
        struct tarn_value round_value = parsed(t, round_type, (text));                             \
        expect_str(printed(t, round_type, &round_value), (want));                                  \
    } while (0)
#define expect_same(type, text) expect_round(type, text, text)
#define expect_refused(type, text, why)                                                            \
    do {                                                                                           \
        struct tarn_value refused_value;                                                           \
        expect_status(tarn_value_parse((type), tarn_slice_str(text), t->arena, &refused_value),    \
                      TARN_VALUE_INVALID, (why));                                                  \
    } while (0)

TARN_TEST(value, integers)
{
    expect_same(T(TINYINT), "-128");
    expect_round(T(TINYINT), "+127", "127");
    expect_refused(T(TINYINT), "128", "expected -128 to 127");
    expect_refused(T(SMALLINT), "32768", "32767");
    expect_same(T(INT), "-2147483648");
    expect_refused(T(INT), "2147483648", "2147483647");
    expect_same(T(BIGINT), "9223372036854775807");
    expect_same(T(BIGINT), "-9223372036854775808");
    expect_refused(T(BIGINT), "9223372036854775808", "9223372036854775807");
    expect_refused(T(BIGINT), "-99999999999999999999999999999999999999999999", "expected");
    expect_refused(T(INT), "1.0", "whole number");
    expect_refused(T(INT), "", "whole number");
    expect_refused(T(INT), "-", "whole number");
    expect_refused(T(INT), " 1", "whole number");
    expect_round(T(BOOLEAN), "TRUE", "true");
    expect_round(T(BOOLEAN), "0", "false");
    expect_refused(T(BOOLEAN), "maybe", "true or false");
}

TARN_TEST(value, decimals_are_exact)
{
    const struct tarn_type *d52 = type_of(TARN_TYPE_DECIMAL, 5, 2);

    expect_same(d52, "-0.05");
    expect_round(d52, "12.3", "12.30");
    expect_round(d52, "12.3400", "12.34");
    expect_round(d52, "1.2e2", "120.00");
    expect_round(d52, "-0", "0.00");
    expect_same(d52, "999.99");
    expect_refused(d52, "1000", "3 digits before");
    expect_refused(d52, "0.001", "2 digits after");
    expect_refused(d52, "111.321", "2 digits after");
    expect_refused(d52, "1,5", "decimal number");
    expect_refused(d52, ".", "decimal number");
    expect_refused(d52, "1e", "decimal number");
    expect_refused(d52, "1e999999999999999999999", "before");
    expect_same(type_of(TARN_TYPE_DECIMAL, 38, 0), "99999999999999999999999999999999999999");
    expect_same(type_of(TARN_TYPE_DECIMAL, 38, 38), "-0.99999999999999999999999999999999999999");
    expect_refused(type_of(TARN_TYPE_DECIMAL, 38, 0), "100000000000000000000000000000000000000",
                   "before");
}

TARN_TEST(value, reals_in_fewest_digits)
{
    expect_same(T(DOUBLE), "0.1");
    expect_same(T(DOUBLE), "-1.5");
    expect_same(T(DOUBLE), "100");
    expect_same(T(DOUBLE), "1e+20");
    expect_same(T(DOUBLE), "1.7976931348623157e+308");
    expect_same(T(DOUBLE), "5e-324");
    expect_same(T(DOUBLE), "0.00001");
    expect_same(T(DOUBLE), "1e-06");
    expect_same(T(DOUBLE), "-0");
    expect_same(T(DOUBLE), "NaN");
    expect_same(T(DOUBLE), "Infinity");
    expect_round(T(DOUBLE), "-inf", "-Infinity");
    expect_same(T(FLOAT), "0.1");
    expect_same(T(FLOAT), "16777216");
    expect_same(T(FLOAT), "3.4028235e+38");
    expect_refused(T(FLOAT), "1e39", "too large");
    expect_refused(T(DOUBLE), "1e400", "too large");
    expect_refused(T(DOUBLE), "0x10", "number");
    expect_refused(T(DOUBLE), "nan(1)", "number");
}

static const char *java(struct tarn_test *t, double v, bool is_float)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    tarn_format__print_java_real(v, is_float, &out);
    return tarn_arena_str(t->arena, tarn_buf_slice(&out));
}

TARN_TEST(value, reals_as_java_prints_them)
{
    expect_str(java(t, 1, false), "1.0");
    expect_str(java(t, 1e10, false), "1.0E10");
    expect_str(java(t, 1e-5, false), "1.0E-5");
    expect_str(java(t, 0.001, false), "0.001");
    expect_str(java(t, 0.0001, false), "1.0E-4");
    expect_str(java(t, 9999999, false), "9999999.0");
    expect_str(java(t, 1e7, false), "1.0E7");
    expect_str(java(t, 123456.789, false), "123456.789");
    expect_str(java(t, 1.2345678e15, false), "1.2345678E15");
    expect_str(java(t, 5e-324, false), "4.9E-324");
    expect_str(java(t, 2e23, false), "2.0E23");
    expect_str(java(t, 1.7976931348623157e308, false), "1.7976931348623157E308");
    expect_str(java(t, -0.0, false), "-0.0");
    expect_str(java(t, 0.0, false), "0.0");
    expect_str(java(t, NAN, false), "NaN");
    expect_str(java(t, -INFINITY, false), "-Infinity");
    expect_str(java(t, (double)0.1f, true), "0.1");
    expect_str(java(t, (double)16777216.0f, true), "1.6777216E7");
    expect_str(java(t, (double)3.4028235e38f, true), "3.4028235E38");
    expect_str(java(t, (double)1.4e-45f, true), "1.4E-45");
}

TARN_TEST(value, texts_count_characters)
{
    const struct tarn_type *v3 = type_of(TARN_TYPE_VARCHAR, 3, 0);

    expect_same(v3, "stü");
    expect_same(v3, "");
    expect_refused(v3, "stür", "at most 3 characters, found 4");
    expect_refused(v3, "\xff", "UTF-8");
}

TARN_TEST(value, binary_is_base64)
{
    const struct tarn_type *b2 = type_of(TARN_TYPE_VARBINARY, 2, 0);
    struct tarn_value v = parsed(t, b2, "AP8=");

    expect_bytes(v.bytes, tarn_slice_of("\0\xff", 2));
    expect_str(printed(t, b2, &v), "AP8=");
    expect_refused(b2, "AAAA", "at most 2 bytes, found 3");
    expect_refused(b2, "?", "base64");
}

/* K35 */
TARN_TEST(value, calendar)
{
    expect_int(tarn_days_from_civil(1970, 1, 1), 0);
    expect_int(tarn_days_from_civil(1969, 12, 31), -1);
    expect_int(tarn_days_from_civil(2024, 5, 14), 19857);
    expect_int(tarn_days_from_civil(2000, 2, 29), 11016);
    expect_int(tarn_days_from_civil(1, 1, 1), -719162);
    for (int64_t days = -800000; days < 3000000; days += 17) {
        int64_t year;
        int month, day;
        tarn_civil_from_days(days, &year, &month, &day);
        expect_int(tarn_days_from_civil(year, month, day), days);
    }
}

TARN_TEST(value, dates)
{
    expect_int(parsed(t, T(DATE), "1969-12-31").integer, -1);
    expect_same(T(DATE), "2024-02-29");
    expect_same(T(DATE), "0001-01-01");
    expect_same(T(DATE), "-0044-03-15");
    expect_same(T(DATE), "+10000-01-01");
    expect_refused(T(DATE), "2023-02-29", "date");
    expect_refused(T(DATE), "1900-02-29", "date");
    expect_refused(T(DATE), "2023-13-01", "date");
    expect_refused(T(DATE), "2023-00-01", "date");
    expect_refused(T(DATE), "2023-1-1", "date");
    expect_refused(T(DATE), "2023-01-01 00:00", "date");
    expect_refused(T(DATE), "999999999-01-01", "date"); /* beyond 32 bits */
}

TARN_TEST(value, times)
{
    expect_int(parsed(t, T(TIME), "23:00:00").integer, 82800000);
    expect_same(T(TIME), "12:00:00.123");
    expect_same(T(TIME), "12:00:00");
    expect_round(T(TIME), "12:00", "12:00:00");
    expect_refused(T(TIME), "24:00:00", "time");
    expect_refused(T(TIME), "12:00:00.1234", "digits");
    expect_refused(type_of(TARN_TYPE_TIME, 0, 0), "12:00:00.1", "digits");
}

TARN_TEST(value, timestamps)
{
    const struct tarn_type *ts3 = type_of(TARN_TYPE_TIMESTAMP, 3, 0);
    const struct tarn_type *ts9 = type_of(TARN_TYPE_TIMESTAMP, 9, 0);
    const struct tarn_type *ltz = type_of(TARN_TYPE_TIMESTAMP_LTZ, 6, 0);

    expect_same(ts3, "2026-01-31 12:00:00.123");
    expect_round(ts3, "2026-01-31T12:00:00Z", "2026-01-31 12:00:00");
    expect_round(ltz, "2026-01-31 00:30:00.5+01:00", "2026-01-30 23:30:00.5");
    expect_round(ltz, "2026-01-31 00:30 -0130", "2026-01-31 02:00:00");
    expect_round(ts3, "2026-01-31", "2026-01-31 00:00:00");
    expect_same(ts9, "1969-12-31 23:59:59.999999999");
    struct tarn_value v = parsed(t, ts9, "1969-12-31 23:59:59.999999999");
    expect_int(v.time.ms, -1);
    expect_int(v.time.ns, 999999);
    expect_refused(ts3, "2026-01-31 12:00:00.1234", "digits");
    expect_round(ts3, "2026-01-31 12:00:00.12300000000", "2026-01-31 12:00:00.123");
    expect_refused(ts3, "2024-01-0112:30", "time"); /* K37 */
    expect_refused(ts3, "2024-01-01 12:30x", "time");
    expect_refused(ts3, "2024-01-01 12:30+", "time");
    expect_refused(ts3, "999999999-01-01 00:00:00", "time");
    expect_refused(ts9, "2026-01-31 12:00:00.1234567891", "time");
}

static int compared(const struct tarn_type *type, struct tarn_value a, struct tarn_value b)
{
    int c = tarn_value_compare(type, &a, &b);
    expect_int(tarn_value_compare(type, &b, &a), -c);
    return c;
}
#define REAL(v) ((struct tarn_value){.real = (v)})

TARN_TEST(value, order)
{
    struct tarn_value null = {.is_null = true};

    expect_int(compared(T(DOUBLE), REAL(-0.0), REAL(0.0)), -1);
    expect_int(compared(T(DOUBLE), REAL(NAN), REAL(INFINITY)), 1);
    expect_int(compared(T(DOUBLE), REAL(NAN), REAL(-NAN)), 0);
    expect_int(compared(T(DOUBLE), REAL(-INFINITY), REAL(-1e308)), -1);
    expect_int(compared(T(DOUBLE), null, REAL(-INFINITY)), -1);
    expect_int(compared(T(DOUBLE), null, null), 0);
    expect_int(compared(T(BOOLEAN), parsed(t, T(BOOLEAN), "false"), parsed(t, T(BOOLEAN), "true")),
               -1);
    expect_int(compared(TEXT, parsed(t, TEXT, "ab"), parsed(t, TEXT, "abc")), -1);
    expect_int(compared(TEXT, parsed(t, TEXT, "\xef\xbf\xbd"), parsed(t, TEXT, "\xf0\x90\x80\x80")),
               -1); /* UTF-8 order, not that of UTF-16 */
    expect_int(compared(T(TIMESTAMP), parsed(t, T(TIMESTAMP), "1969-12-31 23:59:59.999999999"),
                        parsed(t, T(TIMESTAMP), "1970-01-01")),
               -1);
    expect_int(compared(T(TIMESTAMP), parsed(t, T(TIMESTAMP), "1970-01-01 00:00:00.000000001"),
                        parsed(t, T(TIMESTAMP), "1970-01-01")),
               1);
}

TARN_TEST(value, nested_values_are_json)
{
    struct tarn_value ints[] = {{.integer = 1}, {.is_null = true}};
    struct tarn_value texts[] = {{.bytes = tarn_slice_str("a\"\n")},
                                 {.bytes = tarn_slice_str("ü")}};
    struct tarn_value reals[] = {REAL(NAN), REAL(0.5)};
    struct tarn_type text = *TEXT, integer = *T(INT), real = *T(DOUBLE), date = *T(DATE);
    struct tarn_type array = {.id = TARN_TYPE_ARRAY, .element = &real};
    struct tarn_type by_text = {.id = TARN_TYPE_MAP, .key = &text, .element = &integer};
    struct tarn_type by_int = {.id = TARN_TYPE_MAP, .key = &integer, .element = &text};
    struct tarn_field fields[] = {{.name = tarn_slice_str("x"), .type = &date},
                                  {.name = tarn_slice_str("y"), .type = &text}};
    struct tarn_type row = {.id = TARN_TYPE_ROW, .fields = fields, .field_count = 2};
    struct tarn_value row_items[] = {{.integer = 0}, {.is_null = true}};
    struct tarn_value v;

    v = (struct tarn_value){.list = {.items = reals, .count = 2}};
    expect_str(printed(t, &array, &v), "[\"NaN\", 0.5]");
    v = (struct tarn_value){.list = {.keys = texts, .items = ints, .count = 2}};
    expect_str(printed(t, &by_text, &v), "{\"a\\\"\\u000a\": 1, \"ü\": null}");
    struct tarn_value alike[] = {texts[1], texts[1]}; /* not JSON as an object */
    v = (struct tarn_value){.list = {.keys = alike, .items = ints, .count = 2}};
    expect_str(printed(t, &by_text, &v), "[[\"ü\", 1], [\"ü\", null]]");
    v = (struct tarn_value){.list = {.keys = ints, .items = texts, .count = 1}};
    expect_str(printed(t, &by_int, &v), "[[1, \"a\\\"\\u000a\"]]");
    v = (struct tarn_value){.list = {.items = row_items, .count = 2}};
    expect_str(printed(t, &row, &v), "{\"x\": \"1970-01-01\", \"y\": null}");
    v = (struct tarn_value){.is_null = true};
    expect_str(printed(t, &row, &v), "null");
}

/* Whatever bytes a damaged file held, printing them ends. */
TARN_TEST(value, prints_the_impossible)
{
    struct tarn_value v = {.integer = INT64_MIN};
    printed(t, T(TIME), &v);
    printed(t, T(DATE), &v);
    v.integer = INT64_MAX;
    printed(t, T(DATE), &v);
    v = (struct tarn_value){.time = {.ms = INT64_MIN, .ns = 999999}};
    printed(t, T(TIMESTAMP), &v);
    v = (struct tarn_value){.decimal = (__int128)((unsigned __int128)1 << 127)};
    expect_str(printed(t, type_of(TARN_TYPE_DECIMAL, 38, 38), &v),
               "-1.70141183460469231731687303715884105728");
}
