/* parquet_stats - internal: what is known of the columns of a written file. */
#ifndef TARN_COLUMNAR_PARQUET_STATS_H
#define TARN_COLUMNAR_PARQUET_STATS_H

#include "columnar/internal.h"

#include <parquet/metadata.h>

namespace tarn
{

/* Seen while a column is written: what the file's metadata does not tell. */
struct ColumnFacts {
    enum tarn_type_id id;
    int precision;
    int leaf_count; /* columns of Parquet's schema */
    bool nested;
    int64_t null_count = 0;
    bool has_nan = false; /* Parquet's bounds leave NaN out, Paimon's order has it largest */

    void see(const arrow::Array &column);
};
ColumnFacts column_facts(const struct tarn_type *type);
struct tarn_column_stats *file_stats(const parquet::FileMetaData &metadata,
                                     const std::vector<ColumnFacts> &facts, int64_t row_count,
                                     struct tarn_arena *arena);
/* Bounds of one row group in a leaf that isn't nested; false: there are none. */
bool group_bounds(const parquet::FileMetaData &metadata, int group, int leaf, const ColumnFacts &f,
                  struct tarn_arena *arena, struct tarn_value *min, struct tarn_value *max);
/* Bytes of an array's rows, about. */
int64_t array_bytes(const arrow::Array &array);

} // namespace tarn

#endif
