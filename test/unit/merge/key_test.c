/*
 * Normalized keys order as format's values do, for every type that may be a key or sequence field, one
 * or several, ascending or descending, null first in both; and equal exactly when the values are.
 */
#include "test.h"
#include "batch.h"

#include <math.h>

#include "merge/internal.h"

#define TYPE(t, ...)                                                                               \
    {                                                                                              \
        .id = TARN_TYPE_##t, __VA_ARGS__                                                           \
    }
static const struct tarn_type types[] = {
    TYPE(BOOLEAN),
    TYPE(TINYINT),
    TYPE(SMALLINT),
    TYPE(INT),
    TYPE(BIGINT),
    TYPE(FLOAT),
    TYPE(DOUBLE),
    TYPE(DATE),
    TYPE(TIME),
    TYPE(DECIMAL, .precision = 12, .scale = 2),
    TYPE(DECIMAL, .precision = 38, .scale = 2),
    TYPE(TIMESTAMP, .precision = 3),
    TYPE(TIMESTAMP_LTZ, .precision = 6),
    TYPE(TIMESTAMP, .precision = 9),
    TYPE(VARCHAR, .length = INT32_MAX),
    TYPE(VARBINARY, .length = INT32_MAX),
};

static int64_t small_or_edge(struct tarn_test *t, int bits)
{
    int64_t high = (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
    switch (tarn_test_random_below(t, 4)) {
    case 0:
        return high;
    case 1:
        return -high - 1;
    default:
        return tarn_test_random_between(t, -3, 3);
    }
}

static struct tarn_value random_key(struct tarn_test *t, const struct tarn_type *type)
{
    static const double reals[] = {0.0, -0.0, 1.5, -1.5, INFINITY, -INFINITY, NAN};

    if (type->nullable && tarn_test_random_one_in(t, 4))
        return tarn_test_null();
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        return tarn_test_int((int64_t)tarn_test_random_below(t, 2));
    case TARN_TYPE_TINYINT:
        return tarn_test_int(small_or_edge(t, 8));
    case TARN_TYPE_SMALLINT:
        return tarn_test_int(small_or_edge(t, 16));
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        return tarn_test_int(small_or_edge(t, 32));
    case TARN_TYPE_BIGINT:
        return tarn_test_int(small_or_edge(t, 64));
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        return tarn_test_real(reals[tarn_test_random_below(t, 7)]);
    case TARN_TYPE_DECIMAL: {
        __int128 v = tarn_test_random_between(t, -3, 3);
        if (type->precision > 18 && tarn_test_random_one_in(t, 2))
            v *= (__int128)INT64_MAX * 1000;
        return tarn_test_decimal(v);
    }
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return tarn_test_time(tarn_test_random_between(t, -2, 2),
                              type->precision <= 3 ? 0 : 1000 * (int)tarn_test_random_below(t, 3));
    default: { /* few letters, zeros among them, so that prefixes and equals occur */
        size_t size = tarn_test_random_below(t, 11);
        uint8_t *bytes = tarn_arena_calloc(t->arena, size + 1, 1);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)(i < 7 ? 'a' : "\0a\xff"[tarn_test_random_below(t, 3)]);
        if (size > 0 && tarn_test_random_one_in(t, 3))
            bytes[tarn_test_random_below(t, size)] = (uint8_t)tarn_test_random_below(t, 2);
        return (struct tarn_value){.bytes = {bytes, size}};
    }
    }
}

static int compare_rows(const struct tarn_merge_key_column *columns, size_t count,
                        const struct tarn_value *a, const struct tarn_value *b)
{
    for (size_t i = 0; i < count; i++) {
        int c = tarn_value_compare(columns[i].type, &a[i], &b[i]);
        if (columns[i].descending && !a[i].is_null && !b[i].is_null)
            c = -c;
        if (c != 0)
            return c;
    }
    return 0;
}

#define ROWS 24

static void check(struct tarn_test *t, const struct tarn_merge_key_column *columns, size_t count)
{
    struct tarn_value values[ROWS * 4];
    const struct tarn_type *column_types[4];
    struct tarn_merge_key_spec spec;
    struct tarn_merge_keys keys;

    for (size_t c = 0; c < count; c++)
        column_types[c] = columns[c].type;
    for (size_t i = 0; i < ROWS * count; i++)
        values[i] = random_key(t, columns[i % count].type);
    struct tarn_batch *batch = tarn_test_batch(column_types, (int)count, values, ROWS);
    tarn_merge__key_spec_init(&spec, columns, count);
    expect_ok(tarn_merge__keys_build(&spec, batch, &keys));
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t j = 0; j < ROWS; j++) {
            int want = compare_rows(columns, count, &values[i * count], &values[j * count]);
            int got = tarn_merge__keys_compare(&keys, i, &keys, j);
            expect_int((got > 0) - (got < 0), (want > 0) - (want < 0));
        }
    }
    tarn_merge__keys_drop(&keys);
    tarn_batch_drop(&batch);
}

TARN_TEST(key, orders_as_values_for_each_type)
{
    for (int round = 0; round < tarn_test_rounds(20); round++) {
        for (size_t i = 0; i < TARN_COUNT_OF(types) * 4; i++) {
            struct tarn_type type = types[i / 4];
            type.nullable = (i & 1) != 0;
            struct tarn_merge_key_column column = {0, &type, (i & 2) != 0};
            check(t, &column, 1);
        }
    }
}

TARN_TEST(key, orders_as_values_for_several_columns)
{
    for (int round = 0; round < tarn_test_rounds(2000); round++) {
        struct tarn_type picked[4];
        struct tarn_merge_key_column columns[4];
        size_t count = 1 + tarn_test_random_below(t, 4);

        for (size_t c = 0; c < count; c++) {
            picked[c] = types[tarn_test_random_below(t, TARN_COUNT_OF(types))];
            picked[c].nullable = tarn_test_random_one_in(t, 2);
            columns[c] =
                (struct tarn_merge_key_column){(int)c, &picked[c], tarn_test_random_one_in(t, 2)};
        }
        check(t, columns, count);
    }
}

TARN_TEST(key, one_bigint_is_its_prefix)
{
    static const struct tarn_type bigint = {.id = TARN_TYPE_BIGINT};
    struct tarn_merge_key_column column = {0, &bigint, false};
    const struct tarn_type *column_types[] = {&bigint};
    struct tarn_value rows[] = {tarn_test_int(INT64_MIN), tarn_test_int(0),
                                tarn_test_int(INT64_MAX)};
    struct tarn_batch *batch = tarn_test_batch(column_types, 1, rows, 3);
    struct tarn_merge_key_spec spec;
    struct tarn_merge_keys keys;

    tarn_merge__key_spec_init(&spec, &column, 1);
    expect_true(spec.exact);
    expect_ok(tarn_merge__keys_build(&spec, batch, &keys));
    expect_uint(keys.prefix[0], 0);
    expect_uint(keys.prefix[1], UINT64_C(1) << 63);
    expect_uint(keys.prefix[2], UINT64_MAX);
    expect_null(keys.bytes);
    tarn_merge__keys_drop(&keys);
    tarn_batch_drop(&batch);
}

TARN_TEST(key, refuses_a_null_where_there_must_be_none)
{
    static const struct tarn_type bigint = {.id = TARN_TYPE_BIGINT};
    struct tarn_merge_key_column column = {0, &bigint, false};
    const struct tarn_type *column_types[] = {&bigint};
    struct tarn_value rows[] = {tarn_test_int(1), tarn_test_null()};
    struct tarn_batch *batch = tarn_test_batch(column_types, 1, rows, 2);
    struct tarn_merge_key_spec spec;
    struct tarn_merge_keys keys;

    tarn_merge__key_spec_init(&spec, &column, 1);
    expect_status(tarn_merge__keys_build(&spec, batch, &keys), TARN_DATA_FILE_MALFORMED, "null");
    tarn_batch_drop(&batch);
}
