/*
 * Any row that is written reads back the same, and equal rows are equal bytes: partitions, keys and
 * statistics rely on both. Damaged rows are refused or read, never read outside.
 */
#include "test.h"

#include <math.h>

#include "format/format.h"

#define COLUMNS_MAX 130

static void random_type(struct tarn_test *t, struct tarn_type *type)
{
    *type = (struct tarn_type){
        .id = (enum tarn_type_id)tarn_test_random_below(t, TARN_TYPE_TIMESTAMP_LTZ + 1),
        .nullable = true,
        .length = TARN_TYPE_LENGTH_MAX};
    if (type->id == TARN_TYPE_DECIMAL) {
        type->precision = (int32_t)tarn_test_random_between(t, 1, 38);
        type->scale = (int32_t)tarn_test_random_between(t, 0, type->precision);
    } else {
        type->precision = (int32_t)tarn_test_random_below(t, 10);
    }
}

static __int128 random_decimal(struct tarn_test *t, int precision)
{
    __int128 value = 0;
    int digits = (int)tarn_test_random_between(t, 0, precision);

    for (int i = 0; i < digits; i++)
        value = value * 10 + (__int128)tarn_test_random_below(t, 10);
    return tarn_test_random_one_in(t, 2) ? -value : value;
}

static void random_value(struct tarn_test *t, const struct tarn_type *type, struct tarn_value *v)
{
    static const int bits[] = {
        [TARN_TYPE_TINYINT] = 8, [TARN_TYPE_SMALLINT] = 16, [TARN_TYPE_INT] = 32,
        [TARN_TYPE_BIGINT] = 64, [TARN_TYPE_DATE] = 32,     [TARN_TYPE_TIME] = 32};

    *v = (struct tarn_value){.is_null = tarn_test_random_one_in(t, 4)};
    if (v->is_null)
        return;
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        v->integer = (int64_t)tarn_test_random_below(t, 2);
        break;
    case TARN_TYPE_FLOAT:
        v->real = (double)(float)((double)(int64_t)tarn_test_random(t) / 1e15);
        break;
    case TARN_TYPE_DOUBLE:
        v->real = (double)(int64_t)tarn_test_random(t) / 1e15;
        break;
    case TARN_TYPE_DECIMAL:
        v->decimal = random_decimal(t, type->precision);
        break;
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        v->time.ms = (int64_t)tarn_test_random(t) >> tarn_test_random_below(t, 60);
        v->time.ns = type->precision <= 3 ? 0 : (int32_t)tarn_test_random_below(t, 1000000);
        break;
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        v->bytes = tarn_test_random_bytes(t, tarn_test_random_below(t, 50));
        break;
    default:
        v->integer = (int64_t)tarn_test_random(t) >> (64 - bits[type->id]);
        break;
    }
}

struct random_row {
    size_t count;
    struct tarn_type storage[COLUMNS_MAX];
    const struct tarn_type *types[COLUMNS_MAX];
    struct tarn_value values[COLUMNS_MAX];
};

static void random_row(struct tarn_test *t, struct random_row *row)
{
    row->count = tarn_test_random_below(t, tarn_test_random_one_in(t, 10) ? COLUMNS_MAX : 8);
    for (size_t i = 0; i < row->count; i++) {
        random_type(t, &row->storage[i]);
        row->types[i] = &row->storage[i];
        random_value(t, row->types[i], &row->values[i]);
    }
}

TARN_TEST(row_property, comes_back)
{
    static struct random_row row;
    struct tarn_value back[COLUMNS_MAX];

    for (int round = 0; round < tarn_test_rounds(3000); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf first = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf second = {0};

        random_row(t, &row);
        tarn_row_serialize(row.types, row.values, row.count, &first);
        expect_uint((first.size - 4) % 8, 0);
        expect_ok(tarn_row_deserialize(tarn_buf_slice(&first), row.types, row.count, back));
        for (size_t i = 0; i < row.count; i++) {
            expect_int(back[i].is_null, row.values[i].is_null);
            expect_int(tarn_value_compare(row.types[i], &row.values[i], &back[i]), 0);
        }
        tarn_row_serialize(row.types, back, row.count, &second);
        expect_bytes(tarn_buf_slice(&second), tarn_buf_slice(&first));
        int32_t bucket = tarn_bucket_of(TARN_BUCKET_DEFAULT, row.types, row.values, row.count, 7);
        expect_true(bucket >= 0 && bucket < 7);
    }
}

TARN_TEST(row_property, damage_is_refused_or_read)
{
    static struct random_row row;
    struct tarn_value back[COLUMNS_MAX];

    for (int round = 0; round < tarn_test_rounds(3000); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};

        random_row(t, &row);
        tarn_row_serialize(row.types, row.values, row.count, &bytes);
        for (int i = 0; i < 3; i++)
            bytes.data[tarn_test_random_below(t, bytes.size)] ^= (uint8_t)tarn_test_random(t);
        size_t size =
            tarn_test_random_one_in(t, 2) ? bytes.size : tarn_test_random_below(t, bytes.size + 1);
        uint8_t *exact = tarn_alloc(size == 0 ? 1 : size); /* the sanitizer sees a byte beyond */
        memcpy(exact, bytes.data, size);
        TARN_OWN(tarn_status_drop) struct tarn_status *s =
            tarn_row_deserialize(tarn_slice_of(exact, size), row.types, row.count, back);
        for (size_t i = 0; s == NULL && i < row.count; i++)
            tarn_value_print(row.types[i], &back[i], &text);
        free(exact);
    }
}

/* What is printed reads as the same value (texts of random bytes aside). */
TARN_TEST(row_property, text_comes_back)
{
    for (int round = 0; round < tarn_test_rounds(5000); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
        struct tarn_type type;
        struct tarn_value v, back;

        random_type(t, &type);
        random_value(t, &type, &v);
        if (v.is_null || type.id == TARN_TYPE_CHAR || type.id == TARN_TYPE_VARCHAR)
            continue;
        if (type.id == TARN_TYPE_TIME)
            v.integer = (int64_t)((uint64_t)v.integer % 86400000);
        if (type.id == TARN_TYPE_TIMESTAMP || type.id == TARN_TYPE_TIMESTAMP_LTZ)
            v.time.ms >>= 8; /* nine digits of a year */
        if (type.id >= TARN_TYPE_TIME)
            type.precision = 9;
        tarn_value_print(&type, &v, &text);
        expect_ok(tarn_value_parse(&type, tarn_buf_slice(&text), t->arena, &back));
        expect_int(tarn_value_compare(&type, &v, &back), 0);
    }
}
