/*
 * convert - whatever a file had, to the canonical layout of a Paimon type.
 *
 * Two kinds of files: data files of the table, which are trusted to mean what the schema says and may
 * use any physical form of it, and files that users bring, where nothing may be lost (rules.exact):
 * a number must fit, digits must not be dropped, text must be UTF-8 and not too long.
 */
#include "columnar/internal.h"

#include <algorithm>
#include <arrow/compute/api_vector.h>
#include <arrow/util/bitmap_ops.h>
#include <cmath>

namespace tarn {

namespace {

using arrow::ArrayData;
using arrow::Buffer;
using BufferPtr = std::shared_ptr<Buffer>;
using T = arrow::Type;

[[noreturn]] void mismatch(const arrow::Array &in, const struct tarn_type *to, const ConvertRules &rules)
{
    fail(rules.reason, "%s: holds %s, which is not %s", rules.what.c_str(), in.type()->ToString().c_str(),
         type_text(to).c_str());
}

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
    return arrow::MakeArray(ArrayData::Make(arrow_type(to), n, {validity_of(in), values}, has_nulls ? in.null_count() : 0));
}

/* The values of a fixed-width array as C numbers, from its first row. */
template <typename C>
const C *raw(const arrow::Array &in)
{
    return in.data()->GetValues<C>(1);
}

/* The same buffers under the canonical type. */
ArrayPtr relabel(const ArrayPtr &in, const struct tarn_type *to)
{
    std::shared_ptr<ArrayData> data = in->data()->Copy();
    data->type = arrow_type(to);
    return arrow::MakeArray(data);
}

/* --- integers --- */

template <typename Out, typename In>
ArrayPtr narrow(const arrow::Array &in, const struct tarn_type *to, BadValues &bad)
{
    const In *values = raw<In>(in);
    return each<Out>(in, to, bad, [values](int64_t i, Out *out) -> const char * {
        return __builtin_add_overflow(values[i], 0, out) ? "the number is out of the type's range" : NULL;
    });
}

template <typename Out>
ArrayPtr integers(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
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
        mismatch(*in, to, rules);
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
            return (In)*out == values[i] || std::isnan(values[i]) ? NULL : "the number needs double precision";
        else
            return (__int128)*out == (__int128)values[i] ? NULL : "the number has more digits than the type holds";
    });
}

template <typename Out>
ArrayPtr reals(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
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
        mismatch(*in, to, rules);
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
ArrayPtr decimal_of_integer(const arrow::Array &in, int scale, const struct tarn_type *to, BadValues &bad)
{
    const In *values = raw<In>(in);
    return each<__int128>(in, to, bad, [=](int64_t i, __int128 *out) { return rescale(values[i], scale, to, out); });
}

/* Two's complement of `width` (16 or 32) bytes, little-endian as Arrow keeps it. */
ArrayPtr decimal_of_wide(const arrow::Array &in, int width, int scale, const struct tarn_type *to, BadValues &bad)
{
    const uint8_t *bytes = in.data()->buffers[1] == NULL ? NULL : in.data()->buffers[1]->data() + in.offset() * width;
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

ArrayPtr decimals(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
{
    int scale = arrow::is_decimal(in->type_id()) ? static_cast<const arrow::DecimalType &>(*in->type()).scale() : 0;
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
        mismatch(*in, to, rules);
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

ArrayPtr timestamps(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
{
    if (in->type_id() != T::TIMESTAMP)
        mismatch(*in, to, rules);
    int64_t from = per_second(static_cast<const arrow::TimestampType &>(*in->type()).unit());
    int64_t target = ticks_of(to->precision);
    int64_t grain = rules.exact ? target / pow10_small(std::min(to->precision, 9)) : 1;
    if (from == target && grain <= 1)
        return relabel(in, to);
    Ticks ticks = ticks_between(from, target, rules.exact, grain);
    const int64_t *values = raw<int64_t>(*in);
    return each<int64_t>(*in, to, bad, [=](int64_t i, int64_t *out) { return ticks(values[i], out); });
}

ArrayPtr times(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
{
    int64_t grain = rules.exact && to->precision < 3 ? pow10_small(3 - to->precision) : 1;
    auto check = [](Ticks ticks, int64_t value, int32_t *out) -> const char * {
        int64_t ms = 0;
        const char *why = ticks(value, &ms);
        if (why != NULL)
            return why;
        *out = (int32_t)ms;
        return ms < 0 || ms >= 86400000 ? "the time of day is outside 00:00:00..23:59:59.999" : NULL;
    };
    if (in->type_id() == T::TIME32 || (in->type_id() == T::INT32 && !rules.exact)) {
        int64_t from = in->type_id() == T::INT32 ? 1000 : per_second(static_cast<const arrow::Time32Type &>(*in->type()).unit());
        Ticks ticks = ticks_between(from, 1000, rules.exact, grain);
        const int32_t *values = raw<int32_t>(*in);
        return each<int32_t>(*in, to, bad, [=](int64_t i, int32_t *out) { return check(ticks, values[i], out); });
    }
    if (in->type_id() == T::TIME64) {
        int64_t from = per_second(static_cast<const arrow::Time64Type &>(*in->type()).unit());
        Ticks ticks = ticks_between(from, 1000, rules.exact, grain);
        const int64_t *values = raw<int64_t>(*in);
        return each<int32_t>(*in, to, bad, [=](int64_t i, int32_t *out) { return check(ticks, values[i], out); });
    }
    mismatch(*in, to, rules);
}

ArrayPtr dates(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
{
    if (in->type_id() == T::INT32 && !rules.exact)
        return relabel(in, to);
    if (in->type_id() != T::DATE64)
        mismatch(*in, to, rules);
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
        must(builder.Append(v.data(), (int32_t)std::min(v.size(), (size_t)INT32_MAX)), TARN_MEMORY_EXHAUSTED, "bytes");
    }
    return relabel(must(builder.Finish(), TARN_MEMORY_EXHAUSTED, "bytes"), to);
}

bool is_text(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_CHAR || type->id == TARN_TYPE_VARCHAR;
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
    bool sized = to->id == TARN_TYPE_CHAR || to->id == TARN_TYPE_VARCHAR || to->id == TARN_TYPE_BINARY ||
                 to->id == TARN_TYPE_VARBINARY;
    for (int64_t i = 0; i < in.length(); i++) {
        if (in.IsNull(i))
            continue;
        std::string_view v = in.GetView(i);
        if (is_text(to) && !tarn_utf8_valid(slice_of(v)))
            bad.bad(i, "the text is not UTF-8");
        else if (sized && (int64_t)v.size() > to->length && (!is_text(to) || code_points(v) > to->length))
            bad.bad(i, "the value is longer than " + type_text(to));
    }
}

ArrayPtr plain_bytes(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules)
{
    switch (in->type_id()) {
    case T::STRING:
    case T::BINARY:
        return relabel(in, to);
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
        const arrow::FixedSizeBinaryArray &a = static_cast<const arrow::FixedSizeBinaryArray &>(*in);
        return build_bytes(a, to, [&a](int64_t i) { return a.GetView(i); });
    }
    default:
        mismatch(*in, to, rules);
    }
}

ArrayPtr bytes(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
{
    if (rules.exact && is_text(to) != (arrow::is_string(in->type_id()) || in->type_id() == T::STRING_VIEW))
        mismatch(*in, to, rules);
    ArrayPtr out = plain_bytes(in, to, rules);
    if (rules.exact)
        check_bytes(static_cast<const arrow::BinaryArray &>(*out), to, bad);
    return out;
}

/* --- nested --- */

/* Faults of the items of a list, told to the list's row. */
class ItemFaults : public BadValues {
public:
    ItemFaults(const int32_t *offsets, int64_t rows, BadValues &outer) : offsets_(offsets), rows_(rows), outer_(outer) {}
    void bad(int64_t item, const std::string &reason) override
    {
        const int32_t *end = std::upper_bound(offsets_, offsets_ + rows_ + 1, (int32_t)item);
        outer_.bad(end - offsets_ - 1, reason);
    }

private:
    const int32_t *offsets_;
    int64_t rows_;
    BadValues &outer_;
};

/* A list or map as offsets from 0 (checked to rise) and the items between them. */
struct Items {
    BufferPtr offsets;
    int64_t count;
    int64_t first;
};

template <typename Offset>
Items rebase(const arrow::Array &in, int64_t child_length, const ConvertRules &rules)
{
    Items items = {new_buffer((in.length() + 1) * 4), 0, 0};
    int32_t *out = (int32_t *)items.offsets->mutable_data();
    out[0] = 0;
    if (in.length() == 0)
        return items;
    const Offset *offsets = in.data()->GetValues<Offset>(1);
    items.first = offsets[0];
    for (int64_t i = 0; i < in.length(); i++) {
        if (offsets[i + 1] < offsets[i] || offsets[0] < 0 || (int64_t)offsets[i + 1] > child_length ||
            (int64_t)(offsets[i + 1] - offsets[0]) > INT32_MAX)
            fail(rules.reason, "%s: list offsets are out of order", rules.what.c_str());
        out[i + 1] = (int32_t)(offsets[i + 1] - offsets[0]);
    }
    items.count = out[in.length()];
    return items;
}

Items fixed_items(const arrow::FixedSizeListArray &in, const ConvertRules &rules)
{
    int64_t width = in.value_length();
    if (width < 0 || (width > 0 && in.length() > INT32_MAX / width))
        fail(rules.reason, "%s: lists are too long", rules.what.c_str());
    Items items = {new_buffer((in.length() + 1) * 4), in.length() * width, in.value_offset(0)};
    int32_t *out = (int32_t *)items.offsets->mutable_data();
    for (int64_t i = 0; i <= in.length(); i++)
        out[i] = (int32_t)(i * width);
    return items;
}

/* NOT NULL inside a nested value: the row's fault. */
void check_not_null(const arrow::Array &in, const struct tarn_type *type, const ConvertRules &rules, BadValues &bad)
{
    if (type->nullable || !rules.exact || in.null_count() == 0)
        return;
    for (int64_t i = 0; i < in.length(); i++)
        if (in.IsNull(i))
            bad.bad(i, "a part that is NOT NULL is null");
}

ArrayPtr lists(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
{
    Items items;
    ArrayPtr child;
    if (in->type_id() == T::LIST || in->type_id() == T::MAP) {
        child = static_cast<const arrow::ListArray &>(*in).values();
        items = rebase<int32_t>(*in, child->length(), rules);
    } else if (in->type_id() == T::LARGE_LIST) {
        child = static_cast<const arrow::LargeListArray &>(*in).values();
        items = rebase<int64_t>(*in, child->length(), rules);
    } else if (in->type_id() == T::FIXED_SIZE_LIST) {
        child = static_cast<const arrow::FixedSizeListArray &>(*in).values();
        items = fixed_items(static_cast<const arrow::FixedSizeListArray &>(*in), rules);
    } else {
        mismatch(*in, to, rules);
    }
    ItemFaults faults((const int32_t *)items.offsets->data(), in->length(), bad);
    ArrayPtr values = convert(child->Slice(items.first, items.count), to->element, rules, faults);
    check_not_null(*values, to->element, rules, faults);
    return arrow::MakeArray(ArrayData::Make(arrow_type(to), in->length(), {validity_of(*in), items.offsets},
                                            {values->data()}, in->null_count()));
}

ArrayPtr maps(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
{
    static const struct tarn_type kCount = {TARN_TYPE_INT, false, 0, 0, 0, {}, {}, NULL, NULL, NULL, 0};
    const struct tarn_type *key_type = to->id == TARN_TYPE_MULTISET ? to->element : to->key;
    const struct tarn_type *value_type = to->id == TARN_TYPE_MULTISET ? &kCount : to->element;
    if (in->type_id() != T::MAP && in->type_id() != T::LIST)
        mismatch(*in, to, rules);
    ArrayPtr entries = static_cast<const arrow::ListArray &>(*in).values();
    if (entries->type_id() != T::STRUCT || entries->type()->num_fields() != 2)
        mismatch(*in, to, rules);
    Items items = rebase<int32_t>(*in, entries->length(), rules);
    entries = entries->Slice(items.first, items.count);
    const arrow::StructArray &pairs = static_cast<const arrow::StructArray &>(*entries);
    ItemFaults faults((const int32_t *)items.offsets->data(), in->length(), bad);
    ArrayPtr keys = convert(pairs.field(0), key_type, rules, faults);
    ArrayPtr values = convert(pairs.field(1), value_type, rules, faults);
    if (keys->null_count() != 0) {
        if (!rules.exact)
            fail(rules.reason, "%s: a map has a null key", rules.what.c_str());
        for (int64_t i = 0; i < keys->length(); i++)
            if (keys->IsNull(i))
                faults.bad(i, "a map has a null key");
    }
    check_not_null(*values, value_type, rules, faults);
    TypePtr type = arrow_type(to);
    std::shared_ptr<ArrayData> pair_data =
        ArrayData::Make(type->field(0)->type(), items.count, {nullptr}, {keys->data(), values->data()}, 0);
    return arrow::MakeArray(ArrayData::Make(type, in->length(), {validity_of(*in), items.offsets}, {pair_data},
                                            in->null_count()));
}

ArrayPtr structs(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
{
    if (in->type_id() != T::STRUCT)
        mismatch(*in, to, rules);
    const arrow::StructArray &from = static_cast<const arrow::StructArray &>(*in);
    const arrow::StructType &from_type = static_cast<const arrow::StructType &>(*in->type());
    std::vector<std::shared_ptr<ArrayData>> children;
    for (size_t i = 0; i < to->field_count; i++) {
        const struct tarn_field *f = &to->fields[i];
        std::vector<int> found = from_type.GetAllFieldIndices(string_of(f->name));
        if (found.size() > 1)
            fail(rules.reason, "%s: two fields are named %s", rules.what.c_str(), string_of(f->name).c_str());
        ConvertRules inner = {rules.exact, rules.reason, rules.what + "." + string_of(f->name)};
        ArrayPtr child;
        if (found.empty())
            child = null_array(f->type, in->length());
        else
            child = convert(from.field(found[0]), f->type, inner, bad);
        if (!f->type->nullable && rules.exact && child->null_count() != 0)
            for (int64_t row = 0; row < in->length(); row++)
                if (child->IsNull(row) && in->IsValid(row))
                    bad.bad(row, "field " + string_of(f->name) + " is NOT NULL");
        children.push_back(child->data());
    }
    if (rules.exact)
        for (const std::shared_ptr<arrow::Field> &f : from_type.fields()) {
            bool known = false;
            for (size_t i = 0; i < to->field_count && !known; i++)
                known = f->name() == view_of(to->fields[i].name);
            if (!known)
                fail(TARN_COLUMN_NOT_FOUND, "%s: the table's ROW has no field %s", rules.what.c_str(), f->name().c_str());
        }
    return arrow::MakeArray(ArrayData::Make(arrow_type(to), in->length(), {validity_of(*in)}, children, in->null_count()));
}

ArrayPtr variants(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
{
    static const struct tarn_type kBytes = {TARN_TYPE_VARBINARY, false, TARN_TYPE_LENGTH_MAX, 0, 0, {}, {}, NULL, NULL, NULL, 0};
    const struct tarn_field parts[2] = {{0, tarn_slice_str("value"), &kBytes, {}, {}, {}},
                                        {1, tarn_slice_str("metadata"), &kBytes, {}, {}, {}}};
    struct tarn_type row = *to;
    row.id = TARN_TYPE_ROW;
    row.fields = parts;
    row.field_count = 2;
    return relabel(structs(in, &row, rules, bad), to);
}

ArrayPtr unwrap(ArrayPtr in, const ConvertRules &rules)
{
    for (int depth = 0; depth < 4; depth++) {
        if (in->type_id() == T::EXTENSION)
            in = static_cast<const arrow::ExtensionArray &>(*in).storage();
        else if (in->type_id() == T::DICTIONARY) {
            const arrow::DictionaryArray &d = static_cast<const arrow::DictionaryArray &>(*in);
            in = must(arrow::compute::Take(*d.dictionary(), *d.indices()), rules.reason, rules.what);
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
    return must(arrow::internal::CopyBitmap(arrow::default_memory_pool(), in.data()->buffers[0]->data(), in.offset(),
                                            in.length()),
                TARN_MEMORY_EXHAUSTED, "nulls");
}

ArrayPtr convert(const ArrayPtr &wrapped, const struct tarn_type *to, const ConvertRules &rules, BadValues &bad)
{
    ArrayPtr in = unwrap(wrapped, rules);
    if (in->type_id() == T::NA)
        return null_array(to, in->length());
    bool simple = !tarn_type_is_nested(to) && to->id != TARN_TYPE_DECIMAL && to->id != TARN_TYPE_TIMESTAMP &&
                  to->id != TARN_TYPE_TIMESTAMP_LTZ && to->id != TARN_TYPE_TIME;
    bool same = in->type()->Equals(*arrow_type(to));
    if (same && (simple || (!rules.exact && !tarn_type_is_nested(to))) && !(rules.exact && arrow::is_base_binary_like(in->type_id())))
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
        mismatch(*in, to, rules);
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
        return lists(in, to, rules, bad);
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET:
        return maps(in, to, rules, bad);
    case TARN_TYPE_ROW:
        return structs(in, to, rules, bad);
    case TARN_TYPE_VARIANT:
        return variants(in, to, rules, bad);
    }
    mismatch(*in, to, rules);
}

} // namespace tarn
