/*
 * Rows: what we write is byte for byte what Paimon 1.3.1 wrote for the same values ("Vectors" of
 * docs/format.md), hashes to the same number and falls into the same bucket; what an enemy wrote
 * is refused, never read outside.
 */
#include "test.h"

#include <math.h>

#include "format/row.h"

#define T(type_id) (&(const struct tarn_type){.id = TARN_TYPE_##type_id, .nullable = true})
#define T_STRING                                                                                   \
    (&(const struct tarn_type){                                                                    \
        .id = TARN_TYPE_VARCHAR, .nullable = true, .length = TARN_TYPE_LENGTH_MAX})
#define T_DECIMAL(p, s)                                                                            \
    (&(const struct tarn_type){                                                                    \
        .id = TARN_TYPE_DECIMAL, .nullable = true, .precision = (p), .scale = (s)})
#define T_TIMESTAMP(p)                                                                             \
    (&(const struct tarn_type){.id = TARN_TYPE_TIMESTAMP, .nullable = true, .precision = (p)})

#define V_INT(v) ((struct tarn_value){.integer = (v)})
#define V_NULL ((struct tarn_value){.is_null = true})
#define V_STR(s) ((struct tarn_value){.bytes = tarn_slice_str(s)})
#define V_DEC(v) ((struct tarn_value){.decimal = (v)})
#define V_REAL(v) ((struct tarn_value){.real = (v)})
#define V_TIME(m, n) ((struct tarn_value){.time = {.ms = (m), .ns = (n)}})

#define TYPES(...) ((const struct tarn_type *const[]){__VA_ARGS__})
#define VALUES(...) ((const struct tarn_value[]){__VA_ARGS__})

/* hex may hold blanks; what is not given (-1) is not looked at. */
static void expect_row(const struct tarn_type *const *types, const struct tarn_value *values,
                       size_t count, const char *hex, int32_t hash, int b5, int b16, int line)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf want = {0};

    for (const char *p = hex; *p != '\0'; p++) {
        if (*p != ' ')
            tarn_buf_add_byte(&want, (uint8_t)*p);
    }
    tarn_row_serialize(types, values, count, &row);
    tarn_hex_encode(tarn_buf_slice(&row), &got);
    tarn_expect_slice(tarn_buf_slice(&got), tarn_buf_slice(&want), "serialized", __FILE__, line);
    tarn_expect_int(tarn_row_hash(tarn_slice_of(row.data + 4, row.size - 4)), hash, "hash",
                    __FILE__, line);
    tarn_expect_int(tarn_bucket_of(TARN_BUCKET_DEFAULT, types, values, count, 5), b5, "b5",
                    __FILE__, line);
    tarn_expect_int(tarn_bucket_of(TARN_BUCKET_DEFAULT, types, values, count, 16), b16, "b16",
                    __FILE__, line);
}

#define expect_one(type, value, hex, hash, b5, b16)                                                \
    expect_row(TYPES(type), VALUES(value), 1, "00000001 0000000000000000" hex, hash, b5, b16,      \
               __LINE__)
#define expect_one_null(type, hex, hash, b5, b16)                                                  \
    expect_row(TYPES(type), VALUES(V_NULL), 1, "00000001 0001000000000000" hex, hash, b5, b16,     \
               __LINE__)

TARN_TEST(row, vectors_of_numbers)
{
    expect_row(NULL, NULL, 0, "00000000 0000000000000000", -1670924195, 0, 3, __LINE__);
    expect_one(T(INT), V_INT(0), "0000000000000000", -300363099, 4, 11);
    expect_one(T(INT), V_INT(1), "0100000000000000", 1465514398, 3, 14);
    expect_one(T(INT), V_INT(-1), "ffffffff00000000", 1133687267, 2, 3);
    expect_one(T(INT), V_INT(42), "2a00000000000000", 907821237, 2, 5);
    expect_one_null(T(INT), "0000000000000000", -1748325344, 4, 0);
    expect_one(T(BIGINT), V_INT(1), "0100000000000000", 1465514398, 3, 14);
    expect_one(T(BIGINT), V_INT(-1), "ffffffffffffffff", -821098432, 2, 0);
    expect_one(T(BIGINT), V_INT(123456789012345), "79df0d8648700000", 2069159288, 3, 8);
    expect_one(T(DATE), V_INT(19857), "914d000000000000", 1806713378, 3, 2);
    expect_one(T(BOOLEAN), V_INT(1), "0100000000000000", 1465514398, 3, 14);
    expect_one(T(TINYINT), V_INT(-2), "fe00000000000000", 1831745471, 1, 15);
    expect_one(T(DOUBLE), V_REAL(1.5), "000000000000f83f", 1860889473, 3, 1);
}

TARN_TEST(row, vectors_of_texts)
{
    expect_one(T_STRING, V_STR(""), "0000000000000080", 302122119, 4, 7);
    expect_one(T_STRING, V_STR("abc"), "6162630000000083", -101922419, 4, 3);
    expect_one(T_STRING, V_STR("abcdefg"), "6162636465666787", -1431907323, 3, 11);
    expect_one(T_STRING, V_STR("abcdefgh"), "0800000010000000 6162636465666768", -843760178, 3, 2);
    expect_one(T_STRING, V_STR("hello world"), "0b00000010000000 68656c6c6f20776f726c640000000000",
               161593394, 4, 2);
    expect_row(TYPES(T(INT), T_STRING), VALUES(V_INT(1), V_STR("abc")), 2,
               "00000002 0000000000000000 0100000000000000 6162630000000083", 261371745, 0, 1,
               __LINE__);
    expect_row(TYPES(T(BIGINT), T_STRING), VALUES(V_INT(7), V_STR("hello world")), 2,
               "00000002 0000000000000000 0700000000000000 0b00000018000000"
               "68656c6c6f20776f726c640000000000",
               1628449581, 1, 13, __LINE__);
    expect_row(TYPES(T_STRING, T(INT)), VALUES(V_STR("20240514"), V_INT(3)), 2,
               "00000002 0000000000000000 0800000018000000 0300000000000000 3230323430353134",
               -588898420, 0, 4, __LINE__);
}

TARN_TEST(row, vectors_of_decimals_and_timestamps)
{
    expect_one(T_DECIMAL(10, 2), V_DEC(1234), "d204000000000000", -1096042293, 3, 5);
    expect_one(T_DECIMAL(38, 2), V_DEC(1234), "0200000010000000 04d20000000000000000000000000000",
               -531788649, 4, 9);
    expect_one(T_DECIMAL(38, 2), V_DEC(-100), "0100000010000000 9c000000000000000000000000000000",
               -2092338868, 3, 4);
    expect_one_null(T_DECIMAL(38, 2), "0000000010000000 00000000000000000000000000000000",
                    -1380280760, 0, 8);
    expect_one(T_TIMESTAMP(3), V_TIME(1000, 0), "e803000000000000", 18631685, 0, 5);
    expect_one(T_TIMESTAMP(6), V_TIME(1000, 123000), "78e0010010000000 e803000000000000",
               -203698517, 2, 5);
    expect_one_null(T_TIMESTAMP(6), "0000000010000000 0000000000000000", -340882661, 1, 5);
}

TARN_TEST(row, vectors_of_nested_types)
{
    struct tarn_value ints[] = {V_INT(1), V_NULL, V_INT(3)};
    struct tarn_value texts[] = {V_STR("a"), V_STR("longer-string")};
    struct tarn_value row[] = {V_INT(5), V_STR("xyz")};
    struct tarn_field fields[] = {{.name = tarn_slice_str("x"), .type = T(INT)},
                                  {.name = tarn_slice_str("y"), .type = T_STRING}};
    struct tarn_type int_array = {.id = TARN_TYPE_ARRAY, .element = T(INT)};
    struct tarn_type text_array = {.id = TARN_TYPE_ARRAY, .element = T_STRING};
    struct tarn_type map = {.id = TARN_TYPE_MAP, .key = T(INT), .element = T_STRING};
    struct tarn_type row_type = {.id = TARN_TYPE_ROW, .fields = fields, .field_count = 2};
    struct tarn_value v;

    v = (struct tarn_value){.list = {.items = ints, .count = 3}};
    expect_one(&int_array, v,
               "1800000010000000 03000000 02000000 01000000 00000000 03000000 00000000", 1830759751,
               1, 7);
    v = (struct tarn_value){.list = {.items = texts, .count = 2}};
    expect_one(&text_array, v,
               "2800000010000000 02000000 00000000 6100000000000081 0d00000018000000"
               "6c6f6e6765722d737472696e67000000",
               871464034, 4, 2);
    v = (struct tarn_value){.list = {.items = texts, .keys = ints, .count = 1}};
    expect_one(&map, v,
               "2400000010000000 10000000 01000000 00000000 01000000 00000000"
               "01000000 00000000 6100000000000081 00000000",
               285182560, 0, 0);
    v = (struct tarn_value){.list = {.items = row, .count = 2}};
    expect_one(&row_type, v, "1800000010000000 0000000000000000 0500000000000000 78797a0000000083",
               771292135, 0, 7);
}

TARN_TEST(row, buckets_of_pypaimon)
{
    const int64_t keys[] = {1, 4, 2, 123456789012345, 3};
    const int buckets[] = {2, 2, 0, 0, 1};

    for (size_t i = 0; i < TARN_COUNT_OF(keys); i++)
        expect_int(
            tarn_bucket_of(TARN_BUCKET_DEFAULT, TYPES(T(BIGINT)), VALUES(V_INT(keys[i])), 1, 4),
            buckets[i]);
    expect_row(TYPES(T_STRING), VALUES(V_STR("x")), 1, "00000001 0000000000000000 7800000000000081",
               tarn_row_hash(tarn_slice_of("\0\0\0\0\0\0\0\0x\0\0\0\0\0\0\x81", 16)),
               tarn_bucket_of(TARN_BUCKET_DEFAULT, TYPES(T_STRING), VALUES(V_STR("x")), 1, 5),
               tarn_bucket_of(TARN_BUCKET_DEFAULT, TYPES(T_STRING), VALUES(V_STR("x")), 1, 16),
               __LINE__);
}

TARN_TEST(row, hash_of_any_bytes)
{
    expect_int(tarn_bytes_hash(tarn_slice_str("abc")), 1322437556);
    expect_int(tarn_bytes_hash(tarn_slice_str("abcd")), -396302900);
    expect_int(tarn_bytes_hash(tarn_slice_str("")), 142593372);
    expect_int(tarn_row_hash(tarn_slice_of("\0\0\0\0\0\0\0\0", 8)), -1670924195);
}

TARN_TEST(row, mod_is_floored)
{
    expect_int(tarn_bucket_of(TARN_BUCKET_MOD, TYPES(T(INT)), VALUES(V_INT(-1)), 1, 5), 4);
    expect_int(tarn_bucket_of(TARN_BUCKET_MOD, TYPES(T(INT)), VALUES(V_INT(-5)), 1, 5), 0);
    expect_int(tarn_bucket_of(TARN_BUCKET_MOD, TYPES(T(BIGINT)), VALUES(V_INT(INT64_MIN)), 1, 4),
               0);
    expect_int(tarn_bucket_of(TARN_BUCKET_MOD, TYPES(T(BIGINT)), VALUES(V_INT(7)), 1, 4), 3);
    expect_int(tarn_bucket_of(TARN_BUCKET_MOD, TYPES(T(INT)), VALUES(V_NULL), 1, 4), 0);
    expect_true(tarn_bucket_takes(TARN_BUCKET_MOD, TYPES(T(INT)), 1));
    expect_false(tarn_bucket_takes(TARN_BUCKET_MOD, TYPES(T_STRING), 1));
    expect_false(tarn_bucket_takes(TARN_BUCKET_MOD, TYPES(T(INT), T(INT)), 2));
}

static int32_t hive(const struct tarn_type *type, struct tarn_value value)
{
    return tarn_bucket_of(TARN_BUCKET_HIVE, TYPES(type), VALUES(value), 1, INT32_MAX);
}

/* Numbers worked out from Java's rules by hand. */
TARN_TEST(row, hive_hashes_as_java)
{
    expect_int(hive(T(INT), V_INT(42)), 42);
    expect_int(hive(T(INT), V_NULL), 0);
    expect_int(hive(T(BOOLEAN), V_INT(1)), 1);
    expect_int(hive(T(BIGINT), V_INT(42)), 42);
    expect_int(hive(T(BIGINT), V_INT(-42)), 41);
    /* 31 * n + hash("val_n"), as Hive gives it */
    const struct {
        int n;
        const char *text;
        int32_t hash;
    } pairs[] = {{84, "val_84", -823832826}, {19, "val_19", -823835053}, {8, "val_8", 111972242}};
    for (size_t i = 0; i < TARN_COUNT_OF(pairs); i++)
        expect_int(tarn_bucket_of(TARN_BUCKET_HIVE, TYPES(T(INT), T_STRING),
                                  VALUES(V_INT(pairs[i].n), V_STR(pairs[i].text)), 2, INT32_MAX),
                   pairs[i].hash & 0x7fffffff);
    expect_int(hive(T(DOUBLE), V_REAL(-0.0)), 0);
    expect_int(hive(T(FLOAT), V_REAL(1.0)), 0x3f800000);
    expect_int(hive(T_DECIMAL(10, 4), V_DEC(123400)), 31 * 1234 + 2); /* 12.34 */
    expect_int(hive(T_DECIMAL(10, 2), V_DEC(120000)), 31 * 1200);     /* 1200 */
    expect_int(hive(T_DECIMAL(38, 0), V_DEC((__int128)1 << 64)), 31 * 31 * 31);
    /* 7, 'hello', x'010203', 12.3400 in eight buckets */
    struct tarn_value values[] = {V_INT(7), V_STR("hello"), V_STR("\1\2\3"), V_DEC(123400)};
    uint32_t bytes = (1 * 31 + 2) * 31 + 3;
    uint32_t h = ((7u * 31 + 99162322u) * 31 + bytes) * 31 + 31 * 1234 + 2;
    expect_int(tarn_bucket_of(TARN_BUCKET_HIVE,
                              TYPES(T(INT), T_STRING, T(VARBINARY), T_DECIMAL(10, 4)), values, 4,
                              8),
               (h & 0x7fffffff) % 8);
    expect_false(tarn_bucket_takes(TARN_BUCKET_HIVE, TYPES(T_TIMESTAMP(3)), 1));
    expect_true(tarn_bucket_takes(TARN_BUCKET_DEFAULT, TYPES(T_TIMESTAMP(3)), 1));
}

/* K36: sizes around the limits, the wide null bitmap. */
TARN_TEST(row, texts_of_every_size_come_back)
{
    const size_t sizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 42, 1000};

    for (size_t i = 0; i < TARN_COUNT_OF(sizes); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
        struct tarn_value in[] = {{.bytes = tarn_test_random_bytes(t, sizes[i])}, V_INT(-7)};
        struct tarn_value out[2];

        tarn_row_serialize(TYPES(T(VARBINARY), T(SMALLINT)), in, 2, &row);
        size_t behind = sizes[i] <= 7 ? 0 : (sizes[i] + 7) / 8 * 8;
        expect_uint(row.size, 4 + 8 + 16 + behind);
        expect_ok(
            tarn_row_deserialize(tarn_buf_slice(&row), TYPES(T(VARBINARY), T(SMALLINT)), 2, out));
        expect_bytes(out[0].bytes, in[0].bytes);
        expect_int(out[1].integer, -7);
    }
}

TARN_TEST(row, two_hundred_columns)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    const struct tarn_type *types[200];
    const struct tarn_type *integer = T(INT);
    struct tarn_value in[200], out[200];

    for (int i = 0; i < 200; i++) {
        types[i] = integer;
        in[i] = i % 3 == 0 ? V_NULL : V_INT(i - 100);
    }
    tarn_row_serialize(types, in, 200, &row);
    expect_uint(row.size, 4 + 32 + 1600); /* (200 + 71) / 64 * 8 = 32 */
    expect_ok(tarn_row_deserialize(tarn_buf_slice(&row), types, 200, out));
    for (int i = 0; i < 200; i++) {
        expect_int(out[i].is_null, i % 3 == 0);
        if (i % 3 != 0)
            expect_int(out[i].integer, i - 100);
    }
}

TARN_TEST(row, bit_set_grows_after_56_columns)
{
    const struct tarn_type *types[121];
    const struct tarn_type *bigint = T(BIGINT);
    struct tarn_value in[121] = {V_INT(0)};
    const struct {
        size_t count, size;
    } cases[] = {{56, 8}, {57, 16}, {120, 16}, {121, 24}};

    for (size_t i = 0; i < 121; i++)
        types[i] = bigint;
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
        tarn_row_encode(types, in, cases[i].count, &row);
        expect_uint(row.size, cases[i].size + 8 * cases[i].count);
    }
}

/* A row in a buffer that already holds something is the same row. */
TARN_TEST(row, offsets_count_from_the_row)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf behind = {0};
    struct tarn_value v = V_STR("hello world");

    tarn_row_encode(TYPES(T_STRING), &v, 1, &row);
    tarn_buf_add_str(&behind, "abc");
    tarn_row_encode(TYPES(T_STRING), &v, 1, &behind);
    expect_bytes(tarn_slice_of(behind.data + 3, behind.size - 3), tarn_buf_slice(&row));
}

TARN_TEST(row, wide_decimals_at_their_ends)
{
    const __int128 max38 =
        ((__int128)9999999999999999999u * 10000000000000000000u) + 9999999999999999999u;
    const __int128 cases[] = {
        0, 1, -1, 127, 128, -128, -129, 255, -256, 32767, max38, -max38, (__int128)INT64_MAX + 1};

    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
        struct tarn_value in = V_DEC(cases[i]), out;
        tarn_row_serialize(TYPES(T_DECIMAL(38, 10)), &in, 1, &row);
        expect_ok(tarn_row_deserialize(tarn_buf_slice(&row), TYPES(T_DECIMAL(38, 10)), 1, &out));
        expect_true(out.decimal == cases[i]);
    }
}

static struct tarn_status *read_hex(const char *hex, const struct tarn_type *const *types,
                                    size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_value values[8];
    char text[256];
    size_t n = 0;

    for (const char *p = hex; *p != '\0'; p++) {
        if (*p != ' ')
            text[n++] = *p;
    }
    expect_ok(tarn_hex_decode(tarn_slice_of(text, n), &bytes));
    /* an exact heap copy, so that the sanitizer sees each byte beyond */
    uint8_t *exact = tarn_alloc(bytes.size + 1);
    memcpy(exact, bytes.data, bytes.size);
    exact = tarn_realloc(exact, bytes.size == 0 ? 1 : bytes.size);
    struct tarn_status *s =
        tarn_row_deserialize(tarn_slice_of(exact, bytes.size), types, count, values);
    free(exact);
    return s;
}

TARN_TEST(row, refuses_what_does_not_fit)
{
    const struct tarn_type *const *text = TYPES(T_STRING);

    expect_status(read_hex("000000", text, 1), TARN_ROW_MALFORMED, "arity");
    expect_status(read_hex("00000002 0000000000000000 0000000000000080", text, 1),
                  TARN_ROW_MALFORMED, "2 fields, expected 1");
    expect_status(read_hex("ffffffff 0000000000000000 0000000000000080", text, 1),
                  TARN_ROW_MALFORMED, "expected 1");
    expect_status(read_hex("00000001 0000000000000000", text, 1), TARN_ROW_MALFORMED,
                  "at least 16");
    expect_status(read_hex("00000001 0000000000000000 0000000000000088", text, 1),
                  TARN_ROW_MALFORMED, "more than seven");
    expect_status(read_hex("00000001 0000000000000000 0900000008000000", text, 1),
                  TARN_ROW_MALFORMED, "outside");
    expect_status(read_hex("00000001 0000000000000000 ffffff7fffffff7f", text, 1),
                  TARN_ROW_MALFORMED, "outside");
    expect_ok(read_hex("00000001 0000000000000000 0800000008000000", text, 1));
    expect_status(
        read_hex("00000001 0000000000000000 1100000008000000", TYPES(T_DECIMAL(38, 2)), 1),
        TARN_ROW_MALFORMED, "decimal");
    expect_status(
        read_hex("00000001 0000000000000000 0000000008000000", TYPES(T_DECIMAL(38, 2)), 1),
        TARN_ROW_MALFORMED, "decimal");
    expect_status(read_hex("00000001 0000000000000000 40420f0008000000", TYPES(T_TIMESTAMP(6)), 1),
                  TARN_ROW_MALFORMED, "nanoseconds");
    expect_status(read_hex("00000001 0000000000000000 0000000009000000", TYPES(T_TIMESTAMP(6)), 1),
                  TARN_ROW_MALFORMED, "outside");
}

TARN_TEST(row, nested_values_are_left_null)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    struct tarn_type array = {.id = TARN_TYPE_ARRAY, .element = T(INT)};
    struct tarn_value in = {.list = {.count = 0}}, out;

    tarn_row_serialize(TYPES(&array), &in, 1, &row);
    expect_ok(tarn_row_deserialize(tarn_buf_slice(&row), TYPES(&array), 1, &out));
    expect_true(out.is_null);
}

TARN_TEST(row, the_empty_row)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};

    tarn_row_serialize(NULL, NULL, 0, &row);
    expect_bytes(tarn_row_empty(), tarn_buf_slice(&row));
    expect_uint(tarn_row_empty().size, TARN_ROW_EMPTY_SIZE);
    expect_ok(tarn_row_deserialize(tarn_row_empty(), NULL, 0, NULL));
}
