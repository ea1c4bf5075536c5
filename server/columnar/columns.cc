/* columns - the columns of a written file, for formats whose own statistics are not asked. */
#include "columnar/data_file.h"

#include <cmath>

namespace tarn
{

static const size_t kBoundSizeMax = 4096; /* longer texts: no bounds, as in Parquet */

Columns::Columns(const struct tarn_file_write *spec)
    : count(spec->column_count), bounds_(spec->column_count), arena_(tarn_arena_new())
{
    struct tarn_field *copies =
        (struct tarn_field *)tarn_arena_calloc(arena_, count + 1, sizeof *copies);
    for (size_t i = 0; i < count; i++) {
        const struct tarn_column_write *c = &spec->columns[i];
        copies[i].id = c->field_id;
        copies[i].name = tarn_arena_copy(arena_, c->name);
        copies[i].type = copy_type(c->type, arena_);
    }
    fields = copies;
    schema = arrow_schema(fields, count);
}

template <typename C, typename Bound>
static void widen_fixed(const arrow::Array &column, bool *any, Bound *min, Bound *max)
{
    const C *values = column.data()->GetValues<C>(1);
    for (int64_t i = 0; i < column.length(); i++) {
        if (column.IsNull(i))
            continue;
        C read;
        memcpy(&read, &values[i], sizeof read);
        Bound v = (Bound)read;
        *min = *any && *min <= v ? *min : v;
        *max = *any && *max >= v ? *max : v;
        *any = true;
    }
}

/* Bounds of reals: -0.0 comes before 0.0, as in Paimon's order, and a NaN leaves none. */
template <typename Real>
static void widen_reals(const arrow::Array &column, bool *any, bool *unknown, double *min,
                        double *max)
{
    const Real *values = column.data()->GetValues<Real>(1);
    for (int64_t i = 0; i < column.length(); i++) {
        if (column.IsNull(i))
            continue;
        double v = values[i];
        *unknown = *unknown || v != v;
        if (!*any || v < *min || (v == *min && std::signbit(v)))
            *min = v;
        if (!*any || v > *max || (v == *max && !std::signbit(v)))
            *max = v;
        *any = true;
    }
}

static void widen_texts(const arrow::Array &column, bool *any, std::string *min, std::string *max)
{
    const arrow::BinaryArray &texts = static_cast<const arrow::BinaryArray &>(column);
    for (int64_t i = 0; i < column.length(); i++) {
        if (column.IsNull(i))
            continue;
        std::string_view v = texts.GetView(i);
        if (!*any || v < *min)
            min->assign(v);
        if (!*any || v > *max)
            max->assign(v);
        *any = true;
    }
}

void Columns::see(const arrow::Array &column, const struct tarn_type *type, Bounds &b)
{
    b.null_count += column.null_count();
    if (b.unknown)
        return;
    switch (column.type_id()) {
    case arrow::Type::BOOL:
        for (int64_t i = 0; i < column.length(); i++) {
            if (column.IsNull(i))
                continue;
            bool v = static_cast<const arrow::BooleanArray &>(column).Value(i);
            b.min = b.any && b.min <= v ? b.min : v;
            b.max = b.any && b.max >= v ? b.max : v;
            b.any = true;
        }
        return;
    case arrow::Type::INT8:
        return widen_fixed<int8_t>(column, &b.any, &b.min, &b.max);
    case arrow::Type::INT16:
        return widen_fixed<int16_t>(column, &b.any, &b.min, &b.max);
    case arrow::Type::INT32:
    case arrow::Type::DATE32:
    case arrow::Type::TIME32:
        return widen_fixed<int32_t>(column, &b.any, &b.min, &b.max);
    case arrow::Type::INT64:
        return widen_fixed<int64_t>(column, &b.any, &b.min, &b.max);
    case arrow::Type::TIMESTAMP:
        b.unknown = type->precision > 6; /* as for Parquet's INT96 */
        return widen_fixed<int64_t>(column, &b.any, &b.min, &b.max);
    case arrow::Type::DECIMAL128:
        return widen_fixed<__int128>(column, &b.any, &b.min, &b.max);
    case arrow::Type::FLOAT:
        return widen_reals<float>(column, &b.any, &b.unknown, &b.real_min, &b.real_max);
    case arrow::Type::DOUBLE:
        return widen_reals<double>(column, &b.any, &b.unknown, &b.real_min, &b.real_max);
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
        widen_texts(column, &b.any, &b.text_min, &b.text_max);
        b.unknown = b.text_min.size() > kBoundSizeMax || b.text_max.size() > kBoundSizeMax;
        return;
    default:
        b.unknown = true; /* nested: its nulls are counted */
    }
}

RecordBatchPtr Columns::take(const struct tarn_batch *in)
{
    if ((size_t)in->column_count != count)
        fail(TARN_INTERNAL, "a batch has %d columns, the file %zu", in->column_count, count);
    RecordBatchPtr batch = import_batch(in, schema);
    for (size_t i = 0; i < count; i++) {
        const arrow::Array &column = *batch->column((int)i);
        if (!fields[i].type->nullable && column.null_count() != 0)
            fail(TARN_VALUE_INVALID, "column %s is NOT NULL, and a value is null",
                 string_of(fields[i].name).c_str());
        see(column, fields[i].type, bounds_[i]);
    }
    row_count += batch->num_rows();
    return batch;
}

static void value_of(const struct tarn_type *type, __int128 whole, double real,
                     const std::string &text, struct tarn_arena *arena, struct tarn_value *out)
{
    switch (type->id) {
    case TARN_TYPE_DECIMAL:
        out->decimal = whole;
        break;
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        out->real = real;
        break;
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        time_from_ticks((int64_t)whole, type->precision, &out->time.ms, &out->time.ns);
        break;
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        out->bytes = tarn_arena_copy(arena, slice_of(text));
        break;
    default:
        out->integer = (int64_t)whole;
    }
}

struct tarn_column_stats *Columns::stats(struct tarn_arena *arena) const
{
    struct tarn_column_stats *out =
        (struct tarn_column_stats *)tarn_arena_calloc(arena, count, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        const Bounds &b = bounds_[i];
        out[i].null_count = b.null_count;
        out[i].has_bounds = b.any && !b.unknown;
        if (!out[i].has_bounds)
            continue;
        value_of(fields[i].type, b.min, b.real_min, b.text_min, arena, &out[i].min);
        value_of(fields[i].type, b.max, b.real_max, b.text_max, arena, &out[i].max);
    }
    return out;
}

} // namespace tarn
