/*
 * cast - a column written under an older schema, as the column's type of today.
 *
 * From canonical layout to canonical layout (convert.cc comes first). The widening casts of docs/format.md
 * "Schema evolution"; narrowing ones and those from and to text are in cast_value.cc.
 */
#include "columnar/internal.h"

#include <algorithm>
#include <charconv>

namespace tarn
{

namespace
{

using arrow::ArrayData;
using BufferPtr = std::shared_ptr<arrow::Buffer>;

/* get(value, &out) is false where the result is null: an overflow, as in Paimon's casts. */
template <typename In, typename Out, typename Get>
ArrayPtr map_values(const arrow::Array &in, const struct tarn_type *to, Get get)
{
    int64_t n = in.length();
    const In *values = in.data()->GetValues<In>(1);
    BufferPtr out = new_buffer(n * (int64_t)sizeof(Out));
    BufferPtr valid = must(arrow::AllocateEmptyBitmap(n), TARN_MEMORY_EXHAUSTED, "cast");
    Out *slots = (Out *)out->mutable_data();
    uint8_t *bits = valid->mutable_data();
    int64_t null_count = 0;
    for (int64_t i = 0; i < n; i++) {
        In value;
        slots[i] = Out();
        if (in.IsValid(i) && (memcpy(&value, &values[i], sizeof value), get(value, &slots[i])))
            bits[i >> 3] |= (uint8_t)(1 << (i & 7));
        else
            null_count++;
    }
    return arrow::MakeArray(
        ArrayData::Make(arrow_type(to), n, {null_count == 0 ? nullptr : valid, out}, null_count));
}

template <typename In> ArrayPtr integer_to(const arrow::Array &in, const struct tarn_type *to)
{
    switch (to->id) {
    case TARN_TYPE_SMALLINT:
        return map_values<In, int16_t>(in, to, [](In v, int16_t *out) {
            *out = (int16_t)v;
            return true;
        });
    case TARN_TYPE_INT:
        return map_values<In, int32_t>(in, to, [](In v, int32_t *out) {
            *out = (int32_t)v;
            return true;
        });
    case TARN_TYPE_BIGINT:
        return map_values<In, int64_t>(in, to, [](In v, int64_t *out) {
            *out = v;
            return true;
        });
    case TARN_TYPE_FLOAT:
        return map_values<In, float>(in, to, [](In v, float *out) {
            *out = (float)v;
            return true;
        });
    case TARN_TYPE_DOUBLE:
        return map_values<In, double>(in, to, [](In v, double *out) {
            *out = (double)v;
            return true;
        });
    default: /* DECIMAL */
        return map_values<In, __int128>(in, to, [to](In v, __int128 *out) {
            return !__builtin_mul_overflow((__int128)v, kPow10[to->scale], out) &&
                   *out < kPow10[to->precision] && *out > -kPow10[to->precision];
        });
    }
}

/* Correctly rounded, by way of its digits: dividing two doubles would round twice. */
template <typename Real> bool real_of_decimal(__int128 v, int scale, Real *out)
{
    char text[64], *end = text + sizeof text, *p = end;
    unsigned __int128 u = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;
    char exponent[8];
    int exponent_size = snprintf(exponent, sizeof exponent, "e-%d", scale);
    p -= exponent_size;
    memcpy(p, exponent, (size_t)exponent_size);
    do
        *--p = (char)('0' + (int)(u % 10));
    while ((u /= 10) != 0);
    if (v < 0)
        *--p = '-';
    return std::from_chars(p, end, *out).ec == std::errc();
}

bool decimal_of_decimal(__int128 v, int from_scale, const struct tarn_type *to, __int128 *out)
{
    int up = to->scale - from_scale;
    if (up >= 0) {
        if (__builtin_mul_overflow(v, kPow10[up], &v))
            return false;
    } else { /* half up, away from zero, as BigDecimal */
        __int128 unit = kPow10[-up], rest = v % unit;
        v /= unit;
        if ((rest < 0 ? -rest : rest) * 2 >= unit)
            v += rest < 0 ? -1 : 1;
    }
    *out = v;
    return v < kPow10[to->precision] && v > -kPow10[to->precision];
}

ArrayPtr decimal_to(const arrow::Array &in, const struct tarn_type *from,
                    const struct tarn_type *to)
{
    int scale = from->scale;
    if (to->id == TARN_TYPE_FLOAT)
        return map_values<__int128, float>(
            in, to, [=](__int128 v, float *out) { return real_of_decimal(v, scale, out); });
    if (to->id == TARN_TYPE_DOUBLE)
        return map_values<__int128, double>(
            in, to, [=](__int128 v, double *out) { return real_of_decimal(v, scale, out); });
    return map_values<__int128, __int128>(
        in, to, [=](__int128 v, __int128 *out) { return decimal_of_decimal(v, scale, to, out); });
}

/* Time before 1970 goes down, not towards zero (known-traps K35). */
ArrayPtr stamp_to(const arrow::Array &in, const struct tarn_type *from, const struct tarn_type *to)
{
    int64_t ticks = ticks_of(from->precision);
    if (to->id == TARN_TYPE_DATE)
        return map_values<int64_t, int32_t>(in, to, [=](int64_t v, int32_t *out) {
            return !__builtin_add_overflow(floor_div(v, ticks * 86400), 0, out);
        });
    if (to->id == TARN_TYPE_TIME)
        return map_values<int64_t, int32_t>(in, to, [=](int64_t v, int32_t *out) {
            *out = (int32_t)(floor_mod(v, ticks * 86400) / (ticks / 1000));
            return true;
        });
    int64_t target = ticks_of(to->precision),
            grain = target / (int64_t)kPow10[std::min(to->precision, 9)];
    return map_values<int64_t, int64_t>(in, to, [=](int64_t v, int64_t *out) {
        if (target > ticks) {
            if (__builtin_mul_overflow(v, target / ticks, out))
                fail(TARN_VALUE_INVALID, "a time is outside what TIMESTAMP(%d) holds here",
                     to->precision);
        } else {
            *out = floor_div(v, ticks / target);
        }
        return grain <= 1 || !__builtin_sub_overflow(*out, floor_mod(*out, grain), out);
    });
}

ArrayPtr date_to(const arrow::Array &in, const struct tarn_type *to)
{
    int64_t per_day = ticks_of(to->precision) * 86400;
    return map_values<int32_t, int64_t>(in, to, [=](int32_t v, int64_t *out) {
        if (__builtin_mul_overflow((int64_t)v, per_day, out))
            fail(TARN_VALUE_INVALID, "a date is outside what TIMESTAMP(%d) holds here",
                 to->precision);
        return true;
    });
}

size_t code_point_end(std::string_view v, int64_t length)
{
    size_t end = 0;
    for (int64_t points = 0; end < v.size(); end++)
        if ((v[end] & 0xC0) != 0x80 && points++ == length)
            break;
    return end;
}

/* The first `length` code points or bytes. */
ArrayPtr cut_bytes(const arrow::Array &in, const struct tarn_type *to)
{
    const arrow::BinaryArray &from = static_cast<const arrow::BinaryArray &>(in);
    bool text = to->id == TARN_TYPE_VARCHAR;
    arrow::BinaryBuilder builder;
    for (int64_t i = 0; i < in.length(); i++) {
        if (in.IsNull(i)) {
            must(builder.AppendNull(), TARN_MEMORY_EXHAUSTED, "cast");
            continue;
        }
        std::string_view v = from.GetView(i);
        size_t end = text ? code_point_end(v, to->length) : std::min(v.size(), (size_t)to->length);
        must(builder.Append(v.data(), (int32_t)end), TARN_MEMORY_EXHAUSTED, "cast");
    }
    std::shared_ptr<ArrayData> data =
        must(builder.Finish(), TARN_MEMORY_EXHAUSTED, "cast")->data()->Copy();
    data->type = arrow_type(to);
    return arrow::MakeArray(data);
}

ArrayPtr relabel(const ArrayPtr &in, const struct tarn_type *to)
{
    std::shared_ptr<ArrayData> data = in->data()->Copy();
    data->type = arrow_type(to);
    return arrow::MakeArray(data);
}

ArrayPtr list_to(const ArrayPtr &in, const struct tarn_type *from, const struct tarn_type *to)
{
    std::shared_ptr<ArrayData> data = in->data()->Copy();
    data->type = arrow_type(to);
    data->child_data[0] =
        cast(arrow::MakeArray(data->child_data[0]), from->element, to->element)->data();
    return arrow::MakeArray(data);
}

ArrayPtr map_to(const ArrayPtr &in, const struct tarn_type *from, const struct tarn_type *to)
{
    std::shared_ptr<ArrayData> data = in->data()->Copy();
    data->type = arrow_type(to);
    std::shared_ptr<ArrayData> pairs = data->child_data[0]->Copy();
    pairs->type = data->type->field(0)->type();
    pairs->child_data[0] = cast(arrow::MakeArray(pairs->child_data[0]), from->key, to->key)->data();
    pairs->child_data[1] =
        cast(arrow::MakeArray(pairs->child_data[1]), from->element, to->element)->data();
    data->child_data[0] = pairs;
    return arrow::MakeArray(data);
}

const struct tarn_field *field_with_id(const struct tarn_type *row, int32_t id)
{
    for (size_t i = 0; i < row->field_count; i++)
        if (row->fields[i].id == id)
            return &row->fields[i];
    return NULL;
}

ArrayPtr row_to(const ArrayPtr &in, const struct tarn_type *from, const struct tarn_type *to)
{
    const arrow::StructArray &row = static_cast<const arrow::StructArray &>(*in);
    std::vector<std::shared_ptr<ArrayData>> children;
    for (size_t i = 0; i < to->field_count; i++) {
        const struct tarn_field *old = field_with_id(from, to->fields[i].id);
        children.push_back(
            old == NULL ? null_array(to->fields[i].type, in->length())->data()
                        : cast(row.field((int)(old - from->fields)), old->type, to->fields[i].type)
                              ->data());
    }
    return arrow::MakeArray(ArrayData::Make(arrow_type(to), in->length(), {validity_of(*in)},
                                            children, in->null_count()));
}

/* The same buffers serve both. */
bool same_layout(const struct tarn_type *from, const struct tarn_type *to)
{
    if (tarn_type_equal(from, to, true))
        return true;
    if (to->id == TARN_TYPE_VARCHAR &&
        (from->id == TARN_TYPE_CHAR || from->id == TARN_TYPE_VARCHAR))
        return to->length >= from->length;
    if (to->id == TARN_TYPE_VARBINARY &&
        (from->id == TARN_TYPE_BINARY || from->id == TARN_TYPE_VARBINARY))
        return to->length >= from->length;
    if (to->id == TARN_TYPE_TIME && from->id == TARN_TYPE_TIME)
        return to->precision >= from->precision || to->precision >= 3;
    return is_stamp(from) && is_stamp(to) && ticks_of(from->precision) == ticks_of(to->precision) &&
           to->precision >= from->precision;
}

/* Casts of atomic types that lose nothing but what doesn't fit: a column at a time, below. */
bool widens(const struct tarn_type *from, const struct tarn_type *to)
{
    if (is_integer(from))
        return (is_integer(to) && to->id > from->id) || is_real(to) || to->id == TARN_TYPE_DECIMAL;
    if (from->id == TARN_TYPE_FLOAT)
        return to->id == TARN_TYPE_DOUBLE;
    if (from->id == TARN_TYPE_DECIMAL)
        return to->id == TARN_TYPE_DECIMAL || is_real(to);
    if (is_stamp(from))
        return is_stamp(to) || to->id == TARN_TYPE_DATE || to->id == TARN_TYPE_TIME;
    if (from->id == TARN_TYPE_DATE)
        return is_stamp(to);
    if (from->id == TARN_TYPE_CHAR || from->id == TARN_TYPE_VARCHAR)
        return to->id == TARN_TYPE_VARCHAR;
    if (from->id == TARN_TYPE_BINARY || from->id == TARN_TYPE_VARBINARY)
        return to->id == TARN_TYPE_VARBINARY;
    return false;
}

} // namespace

bool cast_known(const struct tarn_type *from, const struct tarn_type *to)
{
    if (same_layout(from, to))
        return true;
    if (!tarn_type_is_nested(from) && !tarn_type_is_nested(to))
        return widens(from, to) || cast_value_known(from, to);
    if (from->id != to->id)
        return false;
    if (from->id == TARN_TYPE_ARRAY)
        return cast_known(from->element, to->element);
    if (from->id == TARN_TYPE_MAP)
        return cast_known(from->key, to->key) && cast_known(from->element, to->element);
    if (from->id != TARN_TYPE_ROW)
        return false;
    for (size_t i = 0; i < to->field_count; i++) {
        const struct tarn_field *old = field_with_id(from, to->fields[i].id);
        if (old != NULL && !cast_known(old->type, to->fields[i].type))
            return false;
    }
    return true;
}

ArrayPtr cast(const ArrayPtr &in, const struct tarn_type *from, const struct tarn_type *to)
{
    if (same_layout(from, to))
        return tarn_type_is_nested(to) || is_stamp(to) ? relabel(in, to) : in;
    if (!tarn_type_is_nested(from) && !widens(from, to))
        return cast_values(*in, from, to);
    switch (from->id) {
    case TARN_TYPE_TINYINT:
        return integer_to<int8_t>(*in, to);
    case TARN_TYPE_SMALLINT:
        return integer_to<int16_t>(*in, to);
    case TARN_TYPE_INT:
        return integer_to<int32_t>(*in, to);
    case TARN_TYPE_BIGINT:
        return integer_to<int64_t>(*in, to);
    case TARN_TYPE_FLOAT:
        return map_values<float, double>(*in, to, [](float v, double *out) {
            *out = v;
            return true;
        });
    case TARN_TYPE_DECIMAL:
        return decimal_to(*in, from, to);
    case TARN_TYPE_DATE:
        return date_to(*in, to);
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return stamp_to(*in, from, to);
    case TARN_TYPE_ARRAY:
        return list_to(in, from, to);
    case TARN_TYPE_MAP:
        return map_to(in, from, to);
    case TARN_TYPE_ROW:
        return row_to(in, from, to);
    default:
        return cut_bytes(*in, to);
    }
}

} // namespace tarn
