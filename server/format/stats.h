/*
 * stats - SimpleStats: bounds and null counts of some columns of a file.
 *
 * Shape    min and max are serialized rows with one field a covered column (null: no bound known);
 *          null_counts has one number a covered column, TARN_STATS_UNKNOWN where not known. Empty stats
 *          are two empty rows and no counts. Bounds are bounds, not values that occur.
 * Source   docs/format.md, "Statistics".
 */
#ifndef TARN_FORMAT_STATS_H
#define TARN_FORMAT_STATS_H

#include "format/options.h"
#include "format/row.h"
#include "format/snapshot.h"

#define TARN_STATS_UNKNOWN INT64_C(-1)

struct tarn_stats {
    struct tarn_slice min, max;
    const int64_t *null_counts;
    size_t count;
};

struct tarn_column_stats { /* what a writer knows of one column of a file */
    bool has_bounds;       /* min and max are set (non-null, not truncated) */
    struct tarn_value min, max;
    int64_t null_count; /* or TARN_STATS_UNKNOWN */
    bool none;          /* the column yields no statistics at all (nested types) */
};

struct tarn_stats tarn_stats_empty(void);
/* Builds stats of columns as option stats-mode wants them: truncation to `length` code points or
 * bytes with the maximum rounded up; both bounds null where it can't be. */
void tarn_stats_build(const struct tarn_type *const *types, const struct tarn_column_stats *columns,
                      const enum tarn_stats_mode *modes, const int32_t *lengths, size_t count,
                      struct tarn_arena *arena, struct tarn_stats *out);
/* As Java's dense store: columns of which nothing is known are left out. covered: the names of the
 * others, in the arena; *all: none was left out, and _VALUE_STATS_COLS is null. */
void tarn_stats_build_dense(const struct tarn_slice *names, const struct tarn_type *const *types,
                            const struct tarn_column_stats *columns,
                            const enum tarn_stats_mode *modes, const int32_t *lengths, size_t count,
                            struct tarn_arena *arena, struct tarn_stats *out,
                            const struct tarn_slice **covered, size_t *covered_count, bool *all);

#endif
