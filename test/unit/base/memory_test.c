/*
 * Promise: buffers grow without losing bytes, arenas give aligned memory that doesn't overlap, and
 * absent stays apart from empty.
 */
#include "test.h"

TARN_TEST(buf, grows_and_keeps_what_it_has)
{
    struct tarn_buf buf = {0};
    for (int i = 0; i < 10000; i++)
        tarn_buf_printf(&buf, "%04d", i);
    expect_uint(buf.size, 40000);
    expect_bytes(tarn_slice_of(buf.data + 4 * 1234, 8), tarn_slice_str("12341235"));
    tarn_buf_clear(&buf);
    tarn_buf_add_str(&buf, "a");
    tarn_buf_add_byte(&buf, 'b');
    tarn_buf_add_zeros(&buf, 2);
    tarn_buf_add_slice(&buf, tarn_slice_str("c"));
    tarn_buf_add(&buf, NULL, 0);
    expect_bytes(tarn_buf_slice(&buf), tarn_slice_of("ab\0\0c", 5));
    expect_str(tarn_buf_cstr(&buf) + 4, "c");
    expect_uint(buf.size, 5); /* the NUL isn't counted */
    tarn_buf_drop(&buf);
    expect_null(buf.data);
    expect_uint(buf.size, 0);
}

TARN_TEST(arena, gives_aligned_memory_that_does_not_overlap)
{
    struct tarn_arena *arena = tarn_arena_new();
    uint8_t *given[2000];
    size_t sizes[2000];
    for (size_t i = 0; i < TARN_COUNT_OF(given); i++) {
        sizes[i] = tarn_test_random_one_in(t, 50) ? tarn_test_random_below(t, 100000)
                                                  : tarn_test_random_below(t, 100);
        given[i] = tarn_arena_alloc(arena, sizes[i]);
        expect_uint((uintptr_t)given[i] % 16, 0);
        memset(given[i], (int)(i & 0xff), sizes[i]);
    }
    for (size_t i = 0; i < TARN_COUNT_OF(given); i++)
        for (size_t k = 0; k < sizes[i]; k++)
            if (given[i][k] != (i & 0xff))
                expect_unreachable("allocation %zu was overwritten at %zu", i, k);
    expect_true(tarn_arena_size(arena) > 100000);
    tarn_arena_drop(&arena);
    expect_null(arena);
}

TARN_TEST(arena, copies_end_in_a_nul_and_absent_stays_absent)
{
    struct tarn_slice copy = tarn_arena_copy(t->arena, tarn_slice_of("abc", 2));
    expect_slice(copy, "ab");
    expect_int(copy.data[2], 0);
    expect_null(tarn_arena_copy(t->arena, tarn_slice_str(NULL)).data);
    expect_not_null(tarn_arena_copy(t->arena, tarn_slice_str("")).data);
    expect_str(tarn_arena_str(t->arena, tarn_slice_str(NULL)), "");
    expect_str(tarn_arena_printf(t->arena, "%d-%s", 7, "x"), "7-x");
    const uint8_t *zeros = tarn_arena_calloc(t->arena, 100, 3);
    for (int i = 0; i < 300; i++)
        expect_int(zeros[i], 0);
}

TARN_TEST(slice, compares_bytes_unsigned_and_prefixes_first)
{
    expect_true(tarn_slice_compare(tarn_slice_str("a"), tarn_slice_str("ab")) < 0);
    expect_true(tarn_slice_compare(tarn_slice_str("\xff"), tarn_slice_str("a")) > 0);
    expect_int(tarn_slice_compare(tarn_slice_str(NULL), tarn_slice_str("")), 0);
    expect_true(tarn_slice_starts_with(tarn_slice_str("abc"), tarn_slice_str("")));
    expect_true(tarn_slice_starts_with(tarn_slice_str("abc"), tarn_slice_str("ab")));
    expect_false(tarn_slice_starts_with(tarn_slice_str("ab"), tarn_slice_str("abc")));
    expect_true(tarn_slice_is(tarn_slice_of("abc", 2), "ab"));
}

TARN_TEST(alloc, of_nothing_is_something_and_strdup_of_null_is_null)
{
    void *nothing = tarn_alloc(0);
    expect_not_null(nothing);
    nothing = tarn_realloc(nothing, 10);
    expect_not_null(nothing);
    tarn_free_drop(&nothing);
    expect_null(nothing);
    expect_null(tarn_strdup(NULL));
    TARN_OWN(tarn_free_drop) char *text = tarn_format("%d %s", 1, "two");
    expect_str(text, "1 two");
}

TARN_TEST(move, leaves_null_behind)
{
    char *a = tarn_strdup("x");
    char *b = tarn_move(a);
    expect_null(a);
    expect_str(b, "x");
    free(b);
}
