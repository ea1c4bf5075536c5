/*
 * Statistics: bounds are cut and raised as docs/format.md, "Statistics", says; where no honest
 * bound exists there is none; dense storage leaves out only columns of which nothing is known.
 */
#include "test.h"

#include <math.h>

#include "format/stats.h"

static const struct tarn_type text = {
    .id = TARN_TYPE_VARCHAR, .nullable = true, .length = TARN_TYPE_LENGTH_MAX};
static const struct tarn_type bytes = {
    .id = TARN_TYPE_VARBINARY, .nullable = true, .length = TARN_TYPE_LENGTH_MAX};
static const struct tarn_type real = {.id = TARN_TYPE_DOUBLE, .nullable = true};
static const struct tarn_type list = {.id = TARN_TYPE_ARRAY, .nullable = true, .element = &real};

/* The bounds that one column of text or bytes gets. */
static void bounds(struct tarn_test *t, const struct tarn_type *type, struct tarn_slice min,
                   struct tarn_slice max, enum tarn_stats_mode mode, int32_t length,
                   struct tarn_value out[2])
{
    struct tarn_column_stats column = {.has_bounds = true, .null_count = 3};
    struct tarn_stats stats;
    column.min.bytes = min;
    column.max.bytes = max;
    tarn_stats_build(&type, &column, &mode, &length, 1, t->arena, &stats);
    expect_int(stats.count, 1);
    expect_ok(tarn_row_deserialize(stats.min, &type, 1, &out[0]));
    expect_ok(tarn_row_deserialize(stats.max, &type, 1, &out[1]));
}

static void expect_bounds(struct tarn_test *t, const struct tarn_type *type, const char *min,
                          const char *max, int32_t length, const char *want_min,
                          const char *want_max)
{
    struct tarn_value got[2];
    bounds(t, type, tarn_slice_str(min), tarn_slice_str(max), TARN_STATS_TRUNCATE, length, got);
    expect_int(got[0].is_null, want_min == NULL);
    expect_int(got[1].is_null, want_max == NULL);
    if (want_min != NULL)
        expect_slice(got[0].bytes, want_min);
    if (want_max != NULL)
        expect_slice(got[1].bytes, want_max);
}

TARN_TEST(stats, texts_are_cut_by_code_points)
{
    expect_bounds(t, &text, "abc", "abd", 3, "abc", "abd");
    expect_bounds(t, &text, "abcd", "abcd", 3, "abc", "abd");
    expect_bounds(t, &text, "ä€😀x", "ä€😀x", 3, "ä€😀", "ä€😁");
    expect_bounds(t, &text, "", "", 3, "", "");
    /* U+10FFFF has no successor: the one before it is raised */
    expect_bounds(t, &text, "a", "a\xf4\x8f\xbf\xbfx", 2, "a", "b");
    expect_bounds(t, &text, "a", "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbfx", 2, NULL, NULL);
    /* the successor of U+D7FF is U+E000, for surrogates are no text */
    expect_bounds(t, &text, "a", "\xed\x9f\xbfz", 1, "a", "\xee\x80\x80");
    expect_bounds(t, &text, "a", "\x7fz", 1, "a", "\xc2\x80");
    expect_bounds(t, &text, "\xff", "z", 1, NULL, NULL);
}

TARN_TEST(stats, bytes_are_cut_by_bytes)
{
    expect_bounds(t, &bytes, "ab\x01", "ab\xff\x01", 3, "ab\x01", "ac");
    expect_bounds(t, &bytes, "\xff\xff\xff\xff", "\xff\xff\xff\xff", 3, NULL, NULL);
    expect_bounds(t, &bytes, "\xff\xff\xff", "\xff\xff\xff", 3, "\xff\xff\xff", "\xff\xff\xff");
}

TARN_TEST(stats, modes)
{
    struct tarn_value got[2];
    bounds(t, &text, tarn_slice_str("abcd"), tarn_slice_str("abcd"), TARN_STATS_FULL, 2, got);
    expect_slice(got[1].bytes, "abcd");
    bounds(t, &text, tarn_slice_str("a"), tarn_slice_str("b"), TARN_STATS_COUNTS, 2, got);
    expect_true(got[0].is_null && got[1].is_null);
    bounds(t, &text, tarn_slice_str("a"), tarn_slice_str("b"), TARN_STATS_NONE, 2, got);
    expect_true(got[0].is_null && got[1].is_null);
}

TARN_TEST(stats, nan_is_no_bound)
{
    const struct tarn_type *type = &real;
    struct tarn_column_stats column = {.has_bounds = true, .null_count = 0};
    enum tarn_stats_mode mode = TARN_STATS_FULL;
    int32_t length = 0;
    struct tarn_stats stats;
    struct tarn_value got;
    column.min.real = 1;
    column.max.real = NAN;
    tarn_stats_build(&type, &column, &mode, &length, 1, t->arena, &stats);
    expect_ok(tarn_row_deserialize(stats.min, &type, 1, &got));
    expect_true(got.is_null);
    expect_int(stats.null_counts[0], 0);
}

TARN_TEST(stats, empty_ones_are_two_empty_rows)
{
    struct tarn_stats stats = tarn_stats_empty();
    expect_int(stats.count, 0);
    expect_bytes(stats.min, tarn_slice_of("\0\0\0\0\0\0\0\0\0\0\0\0", 12));
    expect_bytes(stats.max, stats.min);
}

TARN_TEST(stats, dense_leaves_out_the_unknown)
{
    const struct tarn_type *types[] = {&text, &list, &real};
    const struct tarn_slice names[] = {tarn_slice_str("a"), tarn_slice_str("l"),
                                       tarn_slice_str("r")};
    struct tarn_column_stats columns[] = {{.null_count = 4}, {.none = true}, {.null_count = 1}};
    enum tarn_stats_mode modes[] = {TARN_STATS_FULL, TARN_STATS_FULL, TARN_STATS_NONE};
    int32_t lengths[] = {16, 16, 16};
    const struct tarn_slice *covered = NULL;
    struct tarn_stats stats;
    size_t count = 0;
    bool all = true;
    tarn_stats_build_dense(names, types, columns, modes, lengths, 3, t->arena, &stats, &covered,
                           &count, &all);
    expect_int(count, 1); /* all null: no bounds, but a null count */
    expect_false(all);
    expect_slice(covered[0], "a");
    expect_int(stats.null_counts[0], 4);
    tarn_stats_build_dense(names, types, columns, modes, lengths, 1, t->arena, &stats, &covered,
                           &count, &all);
    expect_true(all);
}
