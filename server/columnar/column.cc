/* column - columns built value by value, and values read from text. */
#include "columnar/text.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tarn
{

Column::Column(const struct tarn_type *t) : type(t), width_(0)
{
    static const struct tarn_type kCount = {TARN_TYPE_INT, false, 0,    0, 0, {}, {},
                                            NULL,          NULL,  NULL, 0};
    if (is_bytes() || is_list())
        offsets_.push_back(0);
    if (type->id == TARN_TYPE_MAP || type->id == TARN_TYPE_MULTISET) {
        bool multiset = type->id == TARN_TYPE_MULTISET;
        children_.emplace_back(new Column(multiset ? type->element : type->key));
        children_.emplace_back(new Column(multiset ? &kCount : type->element));
    } else if (is_list()) {
        children_.emplace_back(new Column(type->element));
    } else if (type->id == TARN_TYPE_ROW) {
        for (size_t i = 0; i < type->field_count; i++)
            children_.emplace_back(new Column(type->fields[i].type));
    } else if (type->id == TARN_TYPE_VARIANT) {
        fail(TARN_UNSUPPORTED_FEATURE, "VARIANT columns are not read from text");
    } else if (type->id == TARN_TYPE_BOOLEAN) {
        width_ = 1; /* a byte each until finish */
    } else if (!is_bytes()) {
        width_ = arrow_type(type)->byte_width();
    }
}

bool Column::is_bytes() const
{
    return type->id == TARN_TYPE_CHAR || type->id == TARN_TYPE_VARCHAR ||
           type->id == TARN_TYPE_BINARY || type->id == TARN_TYPE_VARBINARY ||
           type->id == TARN_TYPE_BLOB || type->id == TARN_TYPE_GEOMETRY ||
           type->id == TARN_TYPE_GEOGRAPHY;
}

bool Column::is_list() const
{
    return type->id == TARN_TYPE_ARRAY || type->id == TARN_TYPE_VECTOR ||
           type->id == TARN_TYPE_MAP || type->id == TARN_TYPE_MULTISET;
}

int64_t Column::bytes() const
{
    int64_t n = (int64_t)(values_.size() + offsets_.size() * 4 + valid_.size() / 8);
    for (const std::unique_ptr<Column> &child : children_)
        n += child->bytes();
    return n;
}

void Column::append_null()
{
    valid_.push_back(0);
    if (width_ > 0)
        values_.resize(values_.size() + (size_t)width_);
    else if (type->id == TARN_TYPE_ROW)
        for (std::unique_ptr<Column> &child : children_)
            child->append_null();
    else
        offsets_.push_back(offsets_.back());
}

void Column::append_bytes(std::string_view value)
{
    values_.insert(values_.end(), value.begin(), value.end());
    offsets_.push_back((int32_t)values_.size());
    valid_.push_back(1);
}

void Column::append_list()
{
    offsets_.push_back((int32_t)children_[0]->length());
    valid_.push_back(1);
}

bool Column::append_value(const struct tarn_value &value)
{
    int64_t ticks;
    if (value.is_null) {
        append_null();
        return true;
    }
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
    case TARN_TYPE_TINYINT:
        append_fixed((int8_t)value.integer);
        return true;
    case TARN_TYPE_SMALLINT:
        append_fixed((int16_t)value.integer);
        return true;
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        append_fixed((int32_t)value.integer);
        return true;
    case TARN_TYPE_BIGINT:
        append_fixed(value.integer);
        return true;
    case TARN_TYPE_FLOAT:
        append_fixed((float)value.real);
        return true;
    case TARN_TYPE_DOUBLE:
        append_fixed(value.real);
        return true;
    case TARN_TYPE_DECIMAL:
        append_fixed(value.decimal);
        return true;
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        if (!ticks_from_time(value.time.ms, value.time.ns, type->precision, &ticks))
            return false;
        append_fixed(ticks);
        return true;
    default:
        append_bytes(view_of(value.bytes));
        return true;
    }
}

void Column::add_identity(int64_t row, std::string *out) const
{
    size_t r = (size_t)row;
    out->push_back(valid_[r] ? 'v' : 'n');
    if (!valid_[r])
        return;
    if (width_ > 0) {
        out->append((const char *)&values_[r * (size_t)width_], (size_t)width_);
    } else if (is_bytes() || is_list()) {
        int32_t begin = offsets_[r], size = offsets_[r + 1] - begin;
        out->append((const char *)&size, sizeof size);
        if (is_bytes())
            out->append((const char *)values_.data() + begin, (size_t)size);
        for (int32_t i = begin; is_list() && i < begin + size; i++)
            for (const std::unique_ptr<Column> &child : children_)
                child->add_identity(i, out);
    } else {
        for (const std::unique_ptr<Column> &child : children_)
            child->add_identity(row, out);
    }
}

/* Children may have more than their rows tell: items of a value that was refused halfway. */
void Column::truncate(int64_t n)
{
    valid_.resize((size_t)std::min(n, length()));
    if (width_ > 0) {
        values_.resize(valid_.size() * (size_t)width_);
    } else if (is_bytes()) {
        offsets_.resize(std::min((size_t)n + 1, offsets_.size()));
        values_.resize((size_t)offsets_.back());
    } else if (is_list()) {
        offsets_.resize(std::min((size_t)n + 1, offsets_.size()));
        for (std::unique_ptr<Column> &child : children_)
            child->truncate(offsets_.back());
    } else {
        for (std::unique_ptr<Column> &child : children_)
            child->truncate(n);
    }
}

static std::shared_ptr<arrow::Buffer> bitmap_of(const std::vector<uint8_t> &bytes)
{
    std::shared_ptr<arrow::Buffer> out = new_buffer((int64_t)(bytes.size() + 7) / 8);
    uint8_t *bits = out->mutable_data();
    memset(bits, 0, (size_t)out->size());
    for (size_t i = 0; i < bytes.size(); i++)
        bits[i >> 3] |= (uint8_t)((bytes[i] & 1) << (i & 7));
    return out;
}

template <typename C> static std::shared_ptr<arrow::Buffer> buffer_of(std::vector<C> &&values)
{
    values.shrink_to_fit();
    return arrow::Buffer::FromVector(std::move(values));
}

ArrayPtr Column::finish()
{
    TypePtr arrow = arrow_type(type);
    int64_t n = length();
    int64_t nulls = (int64_t)std::count(valid_.begin(), valid_.end(), 0);
    std::vector<std::shared_ptr<arrow::Buffer>> buffers = {nulls == 0 ? nullptr
                                                                      : bitmap_of(valid_)};
    std::vector<std::shared_ptr<arrow::ArrayData>> children;
    for (std::unique_ptr<Column> &child : children_)
        children.push_back(child->finish()->data());
    if (is_bytes() || is_list())
        buffers.push_back(buffer_of(std::exchange(offsets_, {0})));
    if (type->id == TARN_TYPE_MAP || type->id == TARN_TYPE_MULTISET)
        children = {arrow::ArrayData::Make(arrow->field(0)->type(), children[0]->length, {nullptr},
                                           children, 0)};
    if (type->id == TARN_TYPE_BOOLEAN)
        buffers.push_back(bitmap_of(values_));
    else if (width_ > 0 || is_bytes())
        buffers.push_back(buffer_of(std::exchange(values_, {})));
    values_.clear();
    valid_.clear();
    return arrow::MakeArray(arrow::ArrayData::Make(arrow, n, buffers, children, nulls));
}

/* --- values from text: the common spellings here, the rest and all refusals by tarn_value_parse --- */

namespace
{

bool digits(const char *p, int count, int *out)
{
    int v = 0;
    for (int i = 0; i < count; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        v = v * 10 + (p[i] - '0');
    }
    *out = v;
    return true;
}

template <typename C> bool quick_integer(Column &column, std::string_view t)
{
    C value;
    std::from_chars_result r = std::from_chars(t.data(), t.data() + t.size(), value);
    if (r.ec != std::errc() || r.ptr != t.data() + t.size())
        return false;
    column.append_fixed(value);
    return true;
}

template <typename Real> bool quick_real(Column &column, std::string_view t)
{
    Real value;
    size_t first = !t.empty() && t[0] == '-';
    if (t.size() <= first || t.size() > 64 || t[first] < '0' || t[first] > '9' || t.back() < '0' ||
        t.back() > '9')
        return false;
    std::from_chars_result r = std::from_chars(t.data(), t.data() + t.size(), value);
    if (r.ec != std::errc() || r.ptr != t.data() + t.size())
        return false;
    column.append_fixed(value);
    return true;
}

bool quick_decimal(Column &column, std::string_view t)
{
    const struct tarn_type *type = column.type;
    size_t i = !t.empty() && t[0] == '-';
    bool negative = i == 1;
    unsigned __int128 value = 0;
    int count = 0, after = -1;
    for (; i < t.size(); i++) {
        if (t[i] == '.' && after < 0 && count > 0) {
            after = 0;
            continue;
        }
        if (t[i] < '0' || t[i] > '9' || ++count > 38)
            return false;
        value = value * 10 + (unsigned)(t[i] - '0');
        after += after >= 0;
    }
    if (count == 0 || after == 0)
        return false;
    int up = type->scale - std::max(after, 0);
    if (up < 0 || count + up > 38)
        return false;
    value *= (unsigned __int128)kPow10[up];
    if (value >= (unsigned __int128)kPow10[type->precision])
        return false;
    column.append_fixed(negative ? -(__int128)value : (__int128)value);
    return true;
}

/* "2026-01-31" at the start. */
bool quick_days(std::string_view t, int64_t *days)
{
    static const int8_t kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day;
    if (t.size() < 10 || t[4] != '-' || t[7] != '-' || !digits(t.data(), 4, &year) ||
        !digits(t.data() + 5, 2, &month) || !digits(t.data() + 8, 2, &day) || year == 0 ||
        month < 1 || month > 12 || day < 1)
        return false;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day > kDays[month - 1] + (month == 2 && leap))
        return false;
    int y = month <= 2 ? year - 1 : year, era = y / 400, of_era = y - era * 400;
    int of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    *days = (int64_t)era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    return true;
}

/* "12:00:00" with up to nine digits behind a point, to the end. */
bool quick_clock(std::string_view t, int64_t *ms, int32_t *ns)
{
    int hour, minute, second, fraction = 0;
    if (t.size() < 8 || t[2] != ':' || t[5] != ':' || !digits(t.data(), 2, &hour) ||
        !digits(t.data() + 3, 2, &minute) || !digits(t.data() + 6, 2, &second) || hour > 23 ||
        minute > 59 || second > 59)
        return false;
    if (t.size() > 8) {
        int count = (int)t.size() - 9;
        if (t[8] != '.' || count < 1 || count > 9 || !digits(t.data() + 9, count, &fraction))
            return false;
        for (; count < 9; count++)
            fraction *= 10;
    }
    *ms = ((hour * 60 + minute) * 60 + second) * 1000LL + fraction / 1000000;
    *ns = fraction % 1000000;
    return true;
}

bool quick_time(Column &column, std::string_view t)
{
    int64_t ms;
    int32_t ns;
    if (column.type->precision < 3 || !quick_clock(t, &ms, &ns) || ns != 0)
        return false;
    column.append_fixed((int32_t)ms);
    return true;
}

bool quick_timestamp(Column &column, std::string_view t)
{
    int precision = column.type->precision;
    int64_t days, ms, ticks;
    int32_t ns;
    if (!t.empty() && t.back() == 'Z')
        t.remove_suffix(1);
    if (t.size() < 19 || (t[10] != ' ' && t[10] != 'T') || !quick_days(t, &days) ||
        !quick_clock(t.substr(11), &ms, &ns))
        return false;
    int64_t nanos = ms % 1000 * 1000000 + ns;
    if (precision < 9 && nanos % (int64_t)kPow10[9 - precision] != 0)
        return false;
    if (!ticks_from_time(days * 86400000 + ms, ns, precision, &ticks))
        return false;
    column.append_fixed(ticks);
    return true;
}

bool ascii(std::string_view t)
{
    uint64_t seen = 0;
    size_t i = 0;
    for (; i + 8 <= t.size(); i += 8) {
        uint64_t word;
        memcpy(&word, t.data() + i, 8);
        seen |= word;
    }
    for (; i < t.size(); i++)
        seen |= (uint8_t)t[i];
    return (seen & 0x8080808080808080ULL) == 0;
}

bool quick_text(Column &column, std::string_view t)
{
    if ((int64_t)t.size() > column.type->length || !(ascii(t) || tarn_utf8_valid(slice_of(t))))
        return false;
    column.append_bytes(t);
    return true;
}

bool quick(Column &column, std::string_view t)
{
    int64_t days;
    switch (column.type->id) {
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
        return quick_text(column, t);
    case TARN_TYPE_BOOLEAN:
        if (t != "true" && t != "false")
            return false;
        column.append_fixed((int8_t)(t == "true"));
        return true;
    case TARN_TYPE_TINYINT:
        return quick_integer<int8_t>(column, t);
    case TARN_TYPE_SMALLINT:
        return quick_integer<int16_t>(column, t);
    case TARN_TYPE_INT:
        return quick_integer<int32_t>(column, t);
    case TARN_TYPE_BIGINT:
        return quick_integer<int64_t>(column, t);
    case TARN_TYPE_FLOAT:
        return quick_real<float>(column, t);
    case TARN_TYPE_DOUBLE:
        return quick_real<double>(column, t);
    case TARN_TYPE_DECIMAL:
        return quick_decimal(column, t);
    case TARN_TYPE_DATE:
        if (t.size() != 10 || !quick_days(t, &days))
            return false;
        column.append_fixed((int32_t)days);
        return true;
    case TARN_TYPE_TIME:
        return quick_time(column, t);
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return quick_timestamp(column, t);
    default:
        return false;
    }
}

} // namespace

bool append_text(Column &column, std::string_view text, std::string *why)
{
    if (quick(column, text))
        return true;
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_value value = {};
    TARN_OWN(tarn_status_drop) struct tarn_status *status =
        tarn_value_parse(column.type, slice_of(text), arena, &value);
    if (status != TARN_OK) {
        *why = tarn_status_message(status);
        return false;
    }
    if (!column.append_value(value)) {
        *why = "the time is outside what " + type_text(column.type) + " holds here (1677 to 2262)";
        return false;
    }
    return true;
}

} // namespace tarn
