/*
 * convert - whatever a file had, to the canonical layout of a Paimon type.
 *
 * Two kinds of files: data files of the table, which are trusted to mean what the schema says and may
 * use any physical form of it, and files that users bring, where nothing may be lost (rules.exact):
 * a number must fit, digits must not be dropped, text must be UTF-8 and not too long.
 */
#include "columnar/convert.h"

#include <algorithm>
#include <arrow/compute/api_vector.h>
#include <arrow/util/bitmap_ops.h>
#include <cmath>

namespace tarn
{

[[noreturn]] void convert_mismatch(const arrow::Array &in, const struct tarn_type *to,
                                   const ConvertRules &rules)
{
    fail(rules.reason, "%s: holds %s, which is not %s", rules.what.c_str(),
         in.type()->ToString().c_str(), type_text(to).c_str());
}

/* The same buffers under the canonical type. */
ArrayPtr convert_relabel(const ArrayPtr &in, const struct tarn_type *to)
{
    std::shared_ptr<arrow::ArrayData> data = in->data()->Copy();
    data->type = arrow_type(to);
    return arrow::MakeArray(data);
}

namespace
{

using arrow::ArrayData;
using arrow::Buffer;
using BufferPtr = std::shared_ptr<Buffer>;
using T = arrow::Type;

/* Fixed-width values one by one; get(i, &value) gives NULL or why the value can't be held. */
template <typename Out, typename Get>
ArrayPtr each(const arrow::Array &in, const struct tarn_type *to, BadValues &bad, Get get)
{
    int64_t n = in.length();
    BufferPtr values = new_buffer(n * (int64_t)sizeof(Out));
    Out *out = (Out *)values->mutable_data();
    bool has_nulls = in.null_count() != 0;
    for (int64_t i = 0; i < n; i++) {
        if (has_nulls && in.IsNull(i)) {
            out[i] = Out();
            continue;
        }
        const char *why = get(i, &out[i]);
        if (__builtin_expect(why != NULL, 0)) {
            out[i] = Out();
            bad.bad(i, why);
        }
    }
    return arrow::MakeArray(ArrayData::Make(arrow_type(to), n, {validity_of(in), values},
                                            has_nulls ? in.null_count() : 0));
}

/* The values of a fixed-width array as C numbers, from its first row. */
template <typename C> const C *raw(const arrow::Array &in)
{
    return in.data()->GetValues<C>(1);
}

/* --- integers --- */

template <typename Out, typename In>
ArrayPtr narrow(const arrow::Array &in, const struct tarn_type *to, BadValues &bad)
{
    const In *values = raw<In>(in);
    return each<Out>(in, to, bad, [values](int64_t i, Out *out) -> const char * {
        return __builtin_add_overflow(values[i], 0, out) ? "the number is out of the type's range"
                                                         : NULL;
    });
}

template <typename Out>
ArrayPtr integers(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                  BadValues &bad)
{
    switch (in->type_id()) {
    case T::INT8:
        return narrow<Out, int8_t>(*in, to, bad);
    case T::INT16:
        return narrow<Out, int16_t>(*in, to, bad);
    case T::INT32:
        return narrow<Out, int32_t>(*in, to, bad);
    case T::INT64:
        return narrow<Out, int64_t>(*in, to, bad);
    case T::UINT8:
        return narrow<Out, uint8_t>(*in, to, bad);
    case T::UINT16:
        return narrow<Out, uint16_t>(*in, to, bad);
    case T::UINT32:
        return narrow<Out, uint32_t>(*in, to, bad);
    case T::UINT64:
        return narrow<Out, uint64_t>(*in, to, bad);
    default:
        convert_mismatch(*in, to, rules);
    }
}

/* --- floating point: exact, or it doesn't go --- */

template <typename Out, typename In>
ArrayPtr real_of(const arrow::Array &in, const struct tarn_type *to, BadValues &bad)
{
    const In *values = raw<In>(in);
    return each<Out>(in, to, bad, [values](int64_t i, Out *out) -> const char * {
        *out = (Out)values[i];
        if constexpr (std::is_floating_point_v<In>)
            return (In)*out == values[i] || std::isnan(values[i])
                       ? NULL
                       : "the number needs double precision";
        else
            return (__int128)*out == (__int128)values[i]
                       ? NULL
                       : "the number has more digits than the type holds";
    });
}

template <typename Out>
ArrayPtr reals(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
               BadValues &bad)
{
    switch (in->type_id()) {
    case T::FLOAT:
        return real_of<Out, float>(*in, to, bad);
    case T::DOUBLE:
        return real_of<Out, double>(*in, to, bad);
    case T::INT8:
        return real_of<Out, int8_t>(*in, to, bad);
    case T::INT16:
        return real_of<Out, int16_t>(*in, to, bad);
    case T::INT32:
        return real_of<Out, int32_t>(*in, to, bad);
    case T::INT64:
        return real_of<Out, int64_t>(*in, to, bad);
    default:
        convert_mismatch(*in, to, rules);
    }
}

/* --- decimals --- */

const char *rescale(__int128 value, int from_scale, const struct tarn_type *to, __int128 *out)
{
    int up = to->scale - from_scale;
    if (up >= 0) {
        if (up > 38 || __builtin_mul_overflow(value, kPow10[up], &value))
            return "the number has more digits than the column's precision";
    } else {
        if (up < -38 || value % kPow10[-up] != 0)
            return "the number has more digits than the column's scale";
        value /= kPow10[-up];
    }
    if (value >= kPow10[to->precision] || value <= -kPow10[to->precision])
        return "the number has more digits than the column's precision";
    *out = value;
    return NULL;
}

template <typename In>
ArrayPtr decimal_of_integer(const arrow::Array &in, int scale, const struct tarn_type *to,
                            BadValues &bad)
{
    const In *values = raw<In>(in);
    return each<__int128>(
        in, to, bad, [=](int64_t i, __int128 *out) { return rescale(values[i], scale, to, out); });
}

/* Two's complement of `width` (16 or 32) bytes, little-endian as Arrow keeps it. */
ArrayPtr decimal_of_wide(const arrow::Array &in, int width, int scale, const struct tarn_type *to,
                         BadValues &bad)
{
    const uint8_t *bytes =
        in.data()->buffers[1] == NULL ? NULL : in.data()->buffers[1]->data() + in.offset() * width;
    return each<__int128>(in, to, bad, [=](int64_t i, __int128 *out) -> const char * {
        __int128 value, high = 0;
        memcpy(&value, bytes + i * width, 16);
        if (width == 32) {
            memcpy(&high, bytes + i * width + 16, 16);
            if (high != (value < 0 ? -1 : 0))
                return "the number has more digits than the column's precision";
        }
        return rescale(value, scale, to, out);
    });
}

ArrayPtr decimals(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                  BadValues &bad)
{
    int scale = arrow::is_decimal(in->type_id())
                    ? static_cast<const arrow::DecimalType &>(*in->type()).scale()
                    : 0;
    switch (in->type_id()) {
    case T::DECIMAL32:
        return decimal_of_integer<int32_t>(*in, scale, to, bad);
    case T::DECIMAL64:
        return decimal_of_integer<int64_t>(*in, scale, to, bad);
    case T::DECIMAL128:
        return decimal_of_wide(*in, 16, scale, to, bad);
    case T::DECIMAL256:
        return decimal_of_wide(*in, 32, scale, to, bad);
    case T::INT8:
        return decimal_of_integer<int8_t>(*in, 0, to, bad);
    case T::INT16:
        return decimal_of_integer<int16_t>(*in, 0, to, bad);
    case T::INT32:
        return decimal_of_integer<int32_t>(*in, 0, to, bad);
    case T::INT64:
        return decimal_of_integer<int64_t>(*in, 0, to, bad);
    case T::UINT64:
        return decimal_of_integer<uint64_t>(*in, 0, to, bad);
    default:
        convert_mismatch(*in, to, rules);
    }
}

/* --- time --- */

/* Ticks of one unit in another: floor, or in exact mode no remainder. */
struct Ticks {
    int64_t mul, div;
    bool exact;
    int64_t grain; /* exact: the result must be a multiple (digits beyond the precision) */
    const char *operator()(int64_t value, int64_t *out) const
    {
        if (mul > 1 && __builtin_mul_overflow(value, mul, &value))
            return "the time is out of the type's range";
        int64_t result = div > 1 ? floor_div(value, div) : value;
        if (exact && ((div > 1 && value % div != 0) || (grain > 1 && result % grain != 0)))
            return "the time has more digits than the column's precision";
        *out = result;
        return NULL;
    }
};

Ticks ticks_between(int64_t from, int64_t to, bool exact, int64_t grain)
{
    return Ticks{from < to ? to / from : 1, from > to ? from / to : 1, exact, grain};
}

int64_t per_second(arrow::TimeUnit::type unit)
{
    static const int64_t kTicks[] = {1, 1000, 1000000, 1000000000};
    return kTicks[(int)unit];
}

int64_t pow10_small(int n)
{
    return (int64_t)kPow10[n];
}

ArrayPtr timestamps(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                    BadValues &bad)
{
    if (in->type_id() != T::TIMESTAMP)
        convert_mismatch(*in, to, rules);
    int64_t from = per_second(static_cast<const arrow::TimestampType &>(*in->type()).unit());
    int64_t target = ticks_of(to->precision);
    int64_t grain = rules.exact ? target / pow10_small(std::min(to->precision, 9)) : 1;
    if (from == target && grain <= 1)
        return convert_relabel(in, to);
    Ticks ticks = ticks_between(from, target, rules.exact, grain);
    const int64_t *values = raw<int64_t>(*in);
    return each<int64_t>(*in, to, bad,
                         [=](int64_t i, int64_t *out) { return ticks(values[i], out); });
}

ArrayPtr times(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
               BadValues &bad)
{
    int64_t grain = rules.exact && to->precision < 3 ? pow10_small(3 - to->precision) : 1;
    auto check = [](Ticks ticks, int64_t value, int32_t *out) -> const char * {
        int64_t ms = 0;
        const char *why = ticks(value, &ms);
        if (why != NULL)
            return why;
        *out = (int32_t)ms;
        return ms < 0 || ms >= 86400000 ? "the time of day is outside 00:00:00..23:59:59.999"
                                        : NULL;
    };
    if (in->type_id() == T::TIME32 || (in->type_id() == T::INT32 && !rules.exact)) {
        int64_t from = in->type_id() == T::INT32
                           ? 1000
                           : per_second(static_cast<const arrow::Time32Type &>(*in->type()).unit());
        Ticks ticks = ticks_between(from, 1000, rules.exact, grain);
        const int32_t *values = raw<int32_t>(*in);
        return each<int32_t>(*in, to, bad,
                             [=](int64_t i, int32_t *out) { return check(ticks, values[i], out); });
    }
    if (in->type_id() == T::TIME64) {
        int64_t from = per_second(static_cast<const arrow::Time64Type &>(*in->type()).unit());
        Ticks ticks = ticks_between(from, 1000, rules.exact, grain);
        const int64_t *values = raw<int64_t>(*in);
        return each<int32_t>(*in, to, bad,
                             [=](int64_t i, int32_t *out) { return check(ticks, values[i], out); });
    }
    convert_mismatch(*in, to, rules);
}

ArrayPtr dates(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
               BadValues &bad)
{
    if (in->type_id() == T::INT32 && !rules.exact)
        return convert_relabel(in, to);
    if (in->type_id() != T::DATE64)
        convert_mismatch(*in, to, rules);
    const int64_t *values = raw<int64_t>(*in);
    bool exact = rules.exact;
    return each<int32_t>(*in, to, bad, [=](int64_t i, int32_t *out) -> const char * {
        int64_t days = floor_div(values[i], 86400000);
        if (__builtin_add_overflow(days, 0, out))
            return "the date is out of the type's range";
        return exact && values[i] % 86400000 != 0 ? "the date has a time of day" : NULL;
    });
}

/* --- bytes --- */

template <typename Get>
ArrayPtr build_bytes(const arrow::Array &in, const struct tarn_type *to, Get get)
{
    arrow::BinaryBuilder builder;
    for (int64_t i = 0; i < in.length(); i++) {
        if (in.IsNull(i)) {
            must(builder.AppendNull(), TARN_MEMORY_EXHAUSTED, "bytes");
            continue;
        }
        std::string_view v = get(i);
        must(builder.Append(v.data(), (int32_t)std::min(v.size(), (size_t)INT32_MAX)),
             TARN_MEMORY_EXHAUSTED, "bytes");
    }
    return convert_relabel(must(builder.Finish(), TARN_MEMORY_EXHAUSTED, "bytes"), to);
}

int64_t code_points(std::string_view s)
{
    int64_t n = 0;
    for (char c : s)
        n += (c & 0xC0) != 0x80;
    return n;
}

void check_bytes(const arrow::BinaryArray &in, const struct tarn_type *to, BadValues &bad)
{
    bool sized = to->id == TARN_TYPE_CHAR || to->id == TARN_TYPE_VARCHAR ||
                 to->id == TARN_TYPE_BINARY || to->id == TARN_TYPE_VARBINARY;
    for (int64_t i = 0; i < in.length(); i++) {
        if (in.IsNull(i))
            continue;
        std::string_view v = in.GetView(i);
        if (is_text(to) && !tarn_utf8_valid(slice_of(v)))
            bad.bad(i, "the text is not UTF-8");
        else if (sized && (int64_t)v.size() > to->length &&
                 (!is_text(to) || code_points(v) > to->length))
            bad.bad(i, "the value is longer than " + type_text(to));
    }
}

ArrayPtr plain_bytes(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules)
{
    switch (in->type_id()) {
    case T::STRING:
    case T::BINARY:
        return convert_relabel(in, to);
    case T::LARGE_STRING:
    case T::LARGE_BINARY: {
        const arrow::LargeBinaryArray &a = static_cast<const arrow::LargeBinaryArray &>(*in);
        return build_bytes(a, to, [&a](int64_t i) { return a.GetView(i); });
    }
    case T::STRING_VIEW:
    case T::BINARY_VIEW: {
        const arrow::BinaryViewArray &a = static_cast<const arrow::BinaryViewArray &>(*in);
        return build_bytes(a, to, [&a](int64_t i) { return a.GetView(i); });
    }
    case T::FIXED_SIZE_BINARY: {
        const arrow::FixedSizeBinaryArray &a =
            static_cast<const arrow::FixedSizeBinaryArray &>(*in);
        return build_bytes(a, to, [&a](int64_t i) { return a.GetView(i); });
    }
    default:
        convert_mismatch(*in, to, rules);
    }
}

ArrayPtr bytes(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
               BadValues &bad)
{
    if (rules.exact &&
        is_text(to) != (arrow::is_string(in->type_id()) || in->type_id() == T::STRING_VIEW))
        convert_mismatch(*in, to, rules);
    ArrayPtr out = plain_bytes(in, to, rules);
    if (rules.exact)
        check_bytes(static_cast<const arrow::BinaryArray &>(*out), to, bad);
    return out;
}

ArrayPtr unwrap(ArrayPtr in, const ConvertRules &rules)
{
    for (int depth = 0; depth < 4; depth++) {
        if (in->type_id() == T::EXTENSION)
            in = static_cast<const arrow::ExtensionArray &>(*in).storage();
        else if (in->type_id() == T::DICTIONARY) {
            const arrow::DictionaryArray &d = static_cast<const arrow::DictionaryArray &>(*in);
            in =
                must(arrow::compute::Take(*d.dictionary(), *d.indices()), rules.reason, rules.what);
        } else
            return in;
    }
    return in;
}

} // namespace

std::shared_ptr<arrow::Buffer> validity_of(const arrow::Array &in)
{
    if (in.null_count() == 0)
        return nullptr;
    if (in.type_id() == T::NA || in.data()->buffers.empty() || in.data()->buffers[0] == nullptr)
        return nullptr;
    if (in.offset() == 0)
        return in.data()->buffers[0];
    return must(arrow::internal::CopyBitmap(memory_pool(), in.data()->buffers[0]->data(),
                                            in.offset(), in.length()),
                TARN_MEMORY_EXHAUSTED, "nulls");
}

ArrayPtr convert(const ArrayPtr &wrapped, const struct tarn_type *to, const ConvertRules &rules,
                 BadValues &bad)
{
    ArrayPtr in = unwrap(wrapped, rules);
    if (in->type_id() == T::NA)
        return null_array(to, in->length());
    bool simple = !tarn_type_is_nested(to) && to->id != TARN_TYPE_DECIMAL &&
                  to->id != TARN_TYPE_TIMESTAMP && to->id != TARN_TYPE_TIMESTAMP_LTZ &&
                  to->id != TARN_TYPE_TIME;
    bool same = in->type()->Equals(*arrow_type(to));
    if (same && (simple || (!rules.exact && !tarn_type_is_nested(to))) &&
        !(rules.exact && arrow::is_base_binary_like(in->type_id())))
        return in;
    switch (to->id) {
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
    case TARN_TYPE_BLOB:
    case TARN_TYPE_GEOMETRY:
    case TARN_TYPE_GEOGRAPHY:
        return bytes(in, to, rules, bad);
    case TARN_TYPE_BOOLEAN:
        convert_mismatch(*in, to, rules);
    case TARN_TYPE_TINYINT:
        return integers<int8_t>(in, to, rules, bad);
    case TARN_TYPE_SMALLINT:
        return integers<int16_t>(in, to, rules, bad);
    case TARN_TYPE_INT:
        return integers<int32_t>(in, to, rules, bad);
    case TARN_TYPE_BIGINT:
        return integers<int64_t>(in, to, rules, bad);
    case TARN_TYPE_FLOAT:
        return reals<float>(in, to, rules, bad);
    case TARN_TYPE_DOUBLE:
        return reals<double>(in, to, rules, bad);
    case TARN_TYPE_DECIMAL:
        return decimals(in, to, rules, bad);
    case TARN_TYPE_DATE:
        return dates(in, to, rules, bad);
    case TARN_TYPE_TIME:
        return times(in, to, rules, bad);
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return timestamps(in, to, rules, bad);
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_VECTOR:
        return convert_lists(in, to, rules, bad);
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET:
        return convert_maps(in, to, rules, bad);
    case TARN_TYPE_ROW:
        return convert_structs(in, to, rules, bad);
    case TARN_TYPE_VARIANT:
        return convert_variants(in, to, rules, bad);
    }
    convert_mismatch(*in, to, rules);
}

} // namespace tarn
