/*
 * Promise: pieces of keys sort as what they stand for, come back as they went in, and a malformed
 * key is noticed without taking anything of it.
 */
#include "state/state.h"
#include "test.h"

static struct tarn_slice encoded(struct tarn_test *t, struct tarn_slice bytes)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_key_add_bytes(&key, bytes);
    return tarn_arena_copy(t->arena, tarn_buf_slice(&key));
}

TARN_TEST(key, has_the_bytes_on_disk)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0}, hex = {0};
    tarn_key_add_u64(&key, 0x0102030405060708);
    tarn_key_add_i64(&key, -1);
    tarn_key_add_i64(&key, 0);
    tarn_key_add_bytes(&key, tarn_slice_of("a\0b", 3));
    tarn_key_add_bytes(&key, tarn_slice_of("", 0));
    tarn_hex_encode(tarn_buf_slice(&key), &hex);
    expect_slice(tarn_buf_slice(&hex), "0102030405060708"
                                       "7fffffffffffffff"
                                       "8000000000000000"
                                       "6100ff620000"
                                       "0000");
}

TARN_TEST(key, numbers_sort_as_numbers)
{
    static const int64_t values[] = {INT64_MIN, INT64_MIN + 1, -256,          -1,       0, 1,
                                     255,       256,           INT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < TARN_COUNT_OF(values); i++) {
        int64_t back;
        TARN_OWN(tarn_buf_drop) struct tarn_buf low = {0}, high = {0};
        tarn_key_add_i64(&low, values[i]);
        struct tarn_slice rest = tarn_buf_slice(&low);
        expect_true(tarn_key_take_i64(&rest, &back));
        expect_int(back, values[i]);
        expect_int(rest.size, 0);
        if (i + 1 == TARN_COUNT_OF(values))
            break;
        tarn_key_add_i64(&high, values[i + 1]);
        expect_true(tarn_slice_compare(tarn_buf_slice(&low), tarn_buf_slice(&high)) < 0);
    }
}

TARN_TEST(key, bytes_sort_as_bytes_whatever_follows)
{
    for (int round = 0; round < tarn_test_rounds(5000); round++) {
        uint8_t raw[2][6];
        struct tarn_slice value[2], key[2];
        for (int i = 0; i < 2; i++) {
            size_t size = tarn_test_random_below(t, 7);
            for (size_t j = 0; j < size; j++)
                raw[i][j] = (uint8_t[]){0, 1, 0xfe, 0xff}[tarn_test_random_below(t, 4)];
            value[i] = tarn_slice_of(raw[i], size);
            TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0}, back = {0};
            tarn_key_add_bytes(&buf, value[i]);
            tarn_key_add_u64(&buf, tarn_test_random(t));
            key[i] = tarn_arena_copy(t->arena, tarn_buf_slice(&buf));
            struct tarn_slice rest = key[i];
            expect_true(tarn_key_take_bytes(&rest, &back));
            expect_bytes(tarn_buf_slice(&back), value[i]);
            expect_int(rest.size, 8);
        }
        int want = tarn_slice_compare(value[0], value[1]);
        if (want != 0)
            expect_int(tarn_slice_compare(key[0], key[1]) < 0, want < 0);
    }
}

TARN_TEST(key, malformed_ones_are_noticed)
{
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {{"", 0},        {"a", 1},         {"a\0", 2}, {"a\0\1", 3},
               {"a\0\xff", 3}, {"a\0\xff\0", 4}, {"\0", 1},  {"\0\x7f\0\0", 4}};
    uint64_t number;
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
        struct tarn_slice rest = tarn_slice_of(bad[i].bytes, bad[i].size);
        tarn_buf_add_str(&out, "kept");
        expect_false(tarn_key_take_bytes(&rest, &out));
        expect_slice(tarn_buf_slice(&out), "kept");
        expect_int(rest.size, bad[i].size);
        if (bad[i].size < 8)
            expect_false(tarn_key_take_u64(&rest, &number));
    }
    struct tarn_slice good = encoded(t, tarn_slice_str("x"));
    expect_int(good.size, 3);
}
