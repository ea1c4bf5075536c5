/* parquet_stats - bounds and null counts of a written file, out of its metadata. */
#include "columnar/parquet_stats.h"

#include <cmath>
#include <parquet/statistics.h>

namespace tarn
{

static int leaves_of(const struct tarn_type *type)
{
    switch (type->id) {
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_VECTOR:
        return leaves_of(type->element);
    case TARN_TYPE_MAP:
        return leaves_of(type->key) + leaves_of(type->element);
    case TARN_TYPE_MULTISET:
        return leaves_of(type->element) + 1;
    case TARN_TYPE_VARIANT:
        return 2;
    case TARN_TYPE_ROW: {
        int n = 0;
        for (size_t i = 0; i < type->field_count; i++)
            n += leaves_of(type->fields[i].type);
        return n;
    }
    default:
        return 1;
    }
}

ColumnFacts column_facts(const struct tarn_type *type)
{
    ColumnFacts facts = {type->id, type->precision, leaves_of(type), tarn_type_is_nested(type)};
    return facts;
}

template <typename Real> static bool any_nan(const arrow::Array &column)
{
    const Real *values = column.data()->GetValues<Real>(1);
    bool found =
        false; /* no early end: this way the loop runs in vectors; null slots only make it cautious */
    for (int64_t i = 0; i < column.length(); i++)
        found |= values[i] != values[i];
    return found;
}

void ColumnFacts::see(const arrow::Array &column)
{
    null_count += column.null_count();
    if (!has_nan && id == TARN_TYPE_FLOAT)
        has_nan = any_nan<float>(column);
    if (!has_nan && id == TARN_TYPE_DOUBLE)
        has_nan = any_nan<double>(column);
}

int64_t array_bytes(const arrow::Array &a)
{
    int64_t size = 0;
    if (arrow::is_base_binary_like(a.type_id()))
        size += 4 * a.length() + static_cast<const arrow::BinaryArray &>(a).total_values_length();
    else if (a.type_id() == arrow::Type::BOOL)
        size += a.length() / 8;
    else if (arrow::is_fixed_width(a.type_id()))
        size += a.length() * a.type()->byte_width();
    for (const std::shared_ptr<arrow::ArrayData> &child : a.data()->child_data)
        if (child->length > 0)
            size += array_bytes(*arrow::MakeArray(child));
    return size;
}

/* --- values out of statistics --- */

static void value_of(const ColumnFacts &f, int64_t v, struct tarn_value *out)
{
    if (f.id == TARN_TYPE_DECIMAL)
        out->decimal = v;
    else if (f.id == TARN_TYPE_TIMESTAMP || f.id == TARN_TYPE_TIMESTAMP_LTZ)
        time_from_ticks(v, f.precision, &out->time.ms, &out->time.ns);
    else
        out->integer = v;
}
static void value_of(const ColumnFacts &f, double v, struct tarn_value *out)
{
    out->real = v;
}
static void value_of(const ColumnFacts &f, struct tarn_slice bytes, struct tarn_value *out)
{
    if (f.id != TARN_TYPE_DECIMAL) {
        out->bytes = bytes;
        return;
    }
    unsigned __int128 v = bytes.size > 0 && (bytes.data[0] & 0x80) != 0 ? ~(unsigned __int128)0 : 0;
    for (size_t i = 0; i < bytes.size; i++)
        v = v << 8 | bytes.data[i];
    out->decimal = (__int128)v;
}

/* Widens [min, max] of `out` by one row group's. */
static void widen(const ColumnFacts &f, const struct tarn_value &min, const struct tarn_value &max,
                  struct tarn_column_stats *out, struct tarn_arena *arena)
{
    struct tarn_type type = {};
    type.id = f.id;
    type.precision = f.precision;
    bool text = f.id == TARN_TYPE_CHAR || f.id == TARN_TYPE_VARCHAR || f.id == TARN_TYPE_BINARY ||
                f.id == TARN_TYPE_VARBINARY;
    if (!out->has_bounds || tarn_value_compare(&type, &min, &out->min) < 0) {
        out->min = min;
        if (text)
            out->min.bytes = tarn_arena_copy(arena, min.bytes);
    }
    if (!out->has_bounds || tarn_value_compare(&type, &max, &out->max) > 0) {
        out->max = max;
        if (text)
            out->max.bytes = tarn_arena_copy(arena, max.bytes);
    }
    out->has_bounds = true;
}

/* One typed chunk. False: no bounds though there are values. */
template <typename Stats, typename Conv>
static void typed_bounds(const parquet::Statistics &stats, const ColumnFacts &f, Conv conv,
                         struct tarn_value *min, struct tarn_value *max)
{
    const Stats &typed = static_cast<const Stats &>(stats);
    value_of(f, conv(typed.min()), min);
    value_of(f, conv(typed.max()), max);
}

static bool chunk_bounds(const parquet::Statistics &stats, const ColumnFacts &f,
                         struct tarn_value *min, struct tarn_value *max)
{
    auto to_int = [](auto v) { return (int64_t)v; };
    auto to_real = [](auto v) { return (double)v; };
    auto to_bytes = [](const parquet::ByteArray &v) { return tarn_slice_of(v.ptr, v.len); };
    switch (stats.physical_type()) {
    case parquet::Type::BOOLEAN:
        typed_bounds<parquet::BoolStatistics>(stats, f, to_int, min, max);
        return true;
    case parquet::Type::INT32:
        typed_bounds<parquet::Int32Statistics>(stats, f, to_int, min, max);
        return true;
    case parquet::Type::INT64:
        typed_bounds<parquet::Int64Statistics>(stats, f, to_int, min, max);
        return true;
    case parquet::Type::FLOAT:
        typed_bounds<parquet::FloatStatistics>(stats, f, to_real, min, max);
        return true;
    case parquet::Type::DOUBLE:
        typed_bounds<parquet::DoubleStatistics>(stats, f, to_real, min, max);
        return true;
    case parquet::Type::BYTE_ARRAY:
        typed_bounds<parquet::ByteArrayStatistics>(stats, f, to_bytes, min, max);
        return true;
    case parquet::Type::FIXED_LEN_BYTE_ARRAY: {
        size_t size = (size_t)arrow::DecimalType::DecimalSize(f.precision);
        typed_bounds<parquet::FLBAStatistics>(
            stats, f,
            [size](const parquet::FixedLenByteArray &v) { return tarn_slice_of(v.ptr, size); }, min,
            max);
        return true;
    }
    default:
        return false;
    }
}

bool group_bounds(const parquet::FileMetaData &metadata, int g, int leaf, const ColumnFacts &f,
                  struct tarn_arena *arena, struct tarn_value *min, struct tarn_value *max)
{
    struct tarn_column_stats found = {};
    struct tarn_value least = {}, most = {};
    std::unique_ptr<parquet::ColumnChunkMetaData> chunk = metadata.RowGroup(g)->ColumnChunk(leaf);
    std::shared_ptr<parquet::Statistics> stats =
        chunk->is_stats_set() ? chunk->statistics() : nullptr;
    if (f.nested || f.has_nan || stats == nullptr || !stats->HasMinMax() ||
        !chunk_bounds(*stats, f, &least, &most))
        return false;
    widen(f, least, most, &found, arena);
    *min = found.min;
    *max = found.max;
    return true;
}

static void leaf_stats(const parquet::FileMetaData &metadata, int leaf, const ColumnFacts &f,
                       struct tarn_column_stats *out, struct tarn_arena *arena)
{
    for (int g = 0; g < metadata.num_row_groups(); g++) {
        std::unique_ptr<parquet::RowGroupMetaData> group = metadata.RowGroup(g);
        std::unique_ptr<parquet::ColumnChunkMetaData> chunk = group->ColumnChunk(leaf);
        std::shared_ptr<parquet::Statistics> stats =
            chunk->is_stats_set() ? chunk->statistics() : nullptr;
        if (stats != nullptr && stats->HasNullCount() && stats->null_count() == group->num_rows())
            continue;
        struct tarn_value min = {}, max = {};
        if (stats == nullptr || !stats->HasMinMax() || !chunk_bounds(*stats, f, &min, &max)) {
            out->has_bounds = false; /* one row group without bounds: none for the file */
            return;
        }
        widen(f, min, max, out, arena);
    }
}

struct tarn_column_stats *file_stats(const parquet::FileMetaData &metadata,
                                     const std::vector<ColumnFacts> &facts, int64_t row_count,
                                     struct tarn_arena *arena)
{
    struct tarn_column_stats *out =
        (struct tarn_column_stats *)tarn_arena_calloc(arena, facts.size(), sizeof *out);
    int leaf = 0;
    for (size_t i = 0; i < facts.size(); i++) {
        const ColumnFacts &f = facts[i];
        out[i].null_count = f.null_count;
        out[i].none = f.nested;
        if (!f.nested && !f.has_nan && f.null_count < row_count)
            leaf_stats(metadata, leaf, f, &out[i], arena);
        leaf += f.leaf_count;
    }
    return out;
}

} // namespace tarn
