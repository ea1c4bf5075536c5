/*
 * Promise: a map finds what was set last, keeps the order of insertion and allows removal while it
 * is walked; held against a plain array as model.
 */
#include "test.h"

#define MODEL_KEYS 300

static struct tarn_slice key_of(struct tarn_test *t, size_t i)
{
    return tarn_slice_str(tarn_arena_printf(t->arena, "key-%zu", i));
}

TARN_TEST(map, agrees_with_an_array)
{
    struct tarn_map *map = tarn_map_new();
    static int values[10];
    void *model[MODEL_KEYS] = {0};
    size_t live = 0;
    for (int round = 0; round < tarn_test_rounds(20000); round++) {
        size_t i = tarn_test_random_below(t, MODEL_KEYS);
        if (tarn_test_random_one_in(t, 3)) {
            live -= model[i] != NULL;
            expect_true(tarn_map_remove(map, key_of(t, i)) == model[i]);
            model[i] = NULL;
        } else {
            void *value = &values[tarn_test_random_below(t, TARN_COUNT_OF(values))];
            live += model[i] == NULL;
            expect_true(tarn_map_set(map, key_of(t, i), value) == model[i]);
            model[i] = value;
        }
        expect_uint(tarn_map_count(map), live);
    }
    for (size_t i = 0; i < MODEL_KEYS; i++)
        expect_true(tarn_map_find(map, key_of(t, i)) == model[i]);
    tarn_map_drop(&map);
    expect_null(map);
}

TARN_TEST(map, is_walked_in_order_of_insertion_and_may_lose_the_present_one)
{
    struct tarn_map *map = tarn_map_new();
    static int values[100];
    for (size_t i = 0; i < 100; i++)
        tarn_map_set(map, key_of(t, 99 - i), &values[i]);
    tarn_map_set(map, key_of(t, 50), &values[49]); /* set again: keeps its place */

    size_t cursor = 0, seen = 0;
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(map, &cursor, &key, &value)) {
        expect_true(value == &values[seen]);
        expect_bytes(key, key_of(t, 99 - seen));
        if (seen++ % 2 == 0)
            tarn_map_remove(map, key);
    }
    expect_uint(seen, 100);
    expect_uint(tarn_map_count(map), 50);
    cursor = 0, seen = 0;
    while (tarn_map_next(map, &cursor, NULL, &value))
        expect_true(value == &values[seen++ * 2 + 1]);
    expect_uint(seen, 50);
    tarn_map_free(map);
}

TARN_TEST(map, takes_any_bytes_as_key_and_copies_them)
{
    struct tarn_map *map = tarn_map_new();
    char bytes[] = "a\0b";
    tarn_map_set(map, tarn_slice_of(bytes, 3), t);
    bytes[2] = 'c';
    expect_true(tarn_map_find(map, tarn_slice_of("a\0b", 3)) == t);
    expect_null(tarn_map_find(map, tarn_slice_of("a\0c", 3)));
    expect_null(tarn_map_find(map, tarn_slice_str("a")));
    tarn_map_set(map, tarn_slice_str(NULL), map);
    expect_true(tarn_map_find(map, tarn_slice_str("")) == map);
    tarn_map_free(map);
}
