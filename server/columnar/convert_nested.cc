/* convert_nested - lists, maps and rows of any layout, to the canonical one. */
#include "columnar/convert.h"

#include <algorithm>
#include <unordered_set>

namespace tarn
{

namespace
{

using arrow::ArrayData;
using BufferPtr = std::shared_ptr<arrow::Buffer>;
using T = arrow::Type;

/* Faults of the items of a list, told to the list's row. */
class ItemFaults : public BadValues
{
  public:
    ItemFaults(const int32_t *offsets, int64_t rows, BadValues &outer)
        : offsets_(offsets), rows_(rows), outer_(outer)
    {
    }
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
        if (offsets[i + 1] < offsets[i] || offsets[0] < 0 ||
            (int64_t)offsets[i + 1] > child_length ||
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
void check_not_null(const arrow::Array &in, const struct tarn_type *type, const ConvertRules &rules,
                    BadValues &bad)
{
    if (type->nullable || !rules.exact || in.null_count() == 0)
        return;
    for (int64_t i = 0; i < in.length(); i++)
        if (in.IsNull(i))
            bad.bad(i, "a part that is NOT NULL is null");
}

/* The value as bytes: two of one type are alike where these are. `in` is of a canonical layout. */
void add_identity(const arrow::Array &in, int64_t i, std::string *out)
{
    if (in.IsNull(i)) {
        out->push_back('n');
        return;
    }
    out->push_back('v');
    if (in.type_id() == T::LIST || in.type_id() == T::MAP) {
        const arrow::ListArray &list = static_cast<const arrow::ListArray &>(in);
        int32_t count = list.value_length(i);
        out->append((const char *)&count, sizeof count);
        for (int64_t at = list.value_offset(i); at < list.value_offset(i) + count; at++)
            add_identity(*list.values(), at, out);
    } else if (in.type_id() == T::STRUCT) {
        for (const ArrayPtr &field : static_cast<const arrow::StructArray &>(in).fields())
            add_identity(*field, i, out);
    } else if (arrow::is_binary_like(in.type_id())) {
        std::string_view text = static_cast<const arrow::BinaryArray &>(in).GetView(i);
        uint64_t size = text.size();
        out->append((const char *)&size, sizeof size).append(text);
    } else if (in.type_id() == T::BOOL) {
        out->push_back(static_cast<const arrow::BooleanArray &>(in).Value(i) ? 't' : 'f');
    } else {
        size_t width = (size_t)in.type()->byte_width();
        const uint8_t *values = in.data()->GetValues<uint8_t>(1, 0);
        out->append((const char *)values + (size_t)(in.offset() + i) * width, width);
    }
}

/* Of two values under one key a reader takes the first, another the last: the row's fault, as in text. */
void check_keys_once(const arrow::Array &in, const arrow::Array &keys, const int32_t *offsets,
                     BadValues &bad)
{
    for (int64_t row = 0; row < in.length(); row++) {
        if (offsets[row + 1] - offsets[row] < 2 || in.IsNull(row))
            continue;
        std::unordered_set<std::string> seen;
        for (int64_t i = offsets[row]; i < offsets[row + 1]; i++) {
            std::string identity;
            add_identity(keys, i, &identity);
            if (seen.insert(std::move(identity)).second)
                continue;
            bad.bad(row, "a map has the key " +
                             must(keys.GetScalar(i), TARN_INTERNAL, "a map's key")->ToString() +
                             " twice");
            break;
        }
    }
}

} // namespace

ArrayPtr convert_lists(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                       BadValues &bad)
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
        convert_mismatch(*in, to, rules);
    }
    ItemFaults faults((const int32_t *)items.offsets->data(), in->length(), bad);
    ArrayPtr values = convert(child->Slice(items.first, items.count), to->element, rules, faults);
    check_not_null(*values, to->element, rules, faults);
    return arrow::MakeArray(ArrayData::Make(arrow_type(to), in->length(),
                                            {validity_of(*in), items.offsets}, {values->data()},
                                            in->null_count()));
}

ArrayPtr convert_maps(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                      BadValues &bad)
{
    static const struct tarn_type kCount = {TARN_TYPE_INT, false, 0,    0, 0, {}, {},
                                            NULL,          NULL,  NULL, 0};
    const struct tarn_type *key_type = to->id == TARN_TYPE_MULTISET ? to->element : to->key;
    const struct tarn_type *value_type = to->id == TARN_TYPE_MULTISET ? &kCount : to->element;
    if (in->type_id() != T::MAP && in->type_id() != T::LIST)
        convert_mismatch(*in, to, rules);
    ArrayPtr entries = static_cast<const arrow::ListArray &>(*in).values();
    if (entries->type_id() != T::STRUCT || entries->type()->num_fields() != 2)
        convert_mismatch(*in, to, rules);
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
    if (rules.exact)
        check_keys_once(*in, *keys, (const int32_t *)items.offsets->data(), bad);
    TypePtr type = arrow_type(to);
    std::shared_ptr<ArrayData> pair_data = ArrayData::Make(
        type->field(0)->type(), items.count, {nullptr}, {keys->data(), values->data()}, 0);
    return arrow::MakeArray(ArrayData::Make(type, in->length(), {validity_of(*in), items.offsets},
                                            {pair_data}, in->null_count()));
}

ArrayPtr convert_structs(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                         BadValues &bad)
{
    if (in->type_id() != T::STRUCT)
        convert_mismatch(*in, to, rules);
    const arrow::StructArray &from = static_cast<const arrow::StructArray &>(*in);
    const arrow::StructType &from_type = static_cast<const arrow::StructType &>(*in->type());
    std::vector<std::shared_ptr<ArrayData>> children;
    for (size_t i = 0; i < to->field_count; i++) {
        const struct tarn_field *f = &to->fields[i];
        std::vector<int> found = from_type.GetAllFieldIndices(string_of(f->name));
        if (found.size() > 1)
            fail(rules.reason, "%s: two fields are named %s", rules.what.c_str(),
                 string_of(f->name).c_str());
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
                fail(TARN_COLUMN_NOT_FOUND, "%s: the table's ROW has no field %s",
                     rules.what.c_str(), f->name().c_str());
        }
    return arrow::MakeArray(ArrayData::Make(arrow_type(to), in->length(), {validity_of(*in)},
                                            children, in->null_count()));
}

ArrayPtr convert_variants(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                          BadValues &bad)
{
    static const struct tarn_type kBytes = {
        TARN_TYPE_VARBINARY, false, TARN_TYPE_LENGTH_MAX, 0, 0, {}, {}, NULL, NULL, NULL, 0};
    const struct tarn_field parts[2] = {{0, tarn_slice_str("value"), &kBytes, {}, {}, {}},
                                        {1, tarn_slice_str("metadata"), &kBytes, {}, {}, {}}};
    struct tarn_type row = *to;
    row.id = TARN_TYPE_ROW;
    row.fields = parts;
    row.field_count = 2;
    return convert_relabel(convert_structs(in, &row, rules, bad), to);
}

} // namespace tarn
