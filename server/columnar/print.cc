/* print - values as text. Common types here, the rest by tarn_value_print, whose spelling is the rule. */
#include "columnar/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tarn
{

namespace
{

void put(struct tarn_buf *out, std::string_view text)
{
    tarn_buf_add(out, text.data(), text.size());
}

void two(char *p, int value)
{
    p[0] = (char)('0' + value / 10);
    p[1] = (char)('0' + value % 10);
}

void print_integer(int64_t value, struct tarn_buf *out)
{
    char text[24];
    put(out, std::string_view(text,
                              (size_t)(std::to_chars(text, text + sizeof text, value).ptr - text)));
}

/* Where plain digits are what the house's rule gives; beyond, the rule itself. */
template <typename Real> bool print_real(Real v, double most, struct tarn_buf *out)
{
    char text[64];
    double size = std::fabs((double)v);
    if (!(size >= 1e-4 && size < most))
        return false;
    std::to_chars_result r = std::to_chars(text, text + sizeof text, v, std::chars_format::fixed);
    put(out, std::string_view(text, (size_t)(r.ptr - text)));
    return r.ec == std::errc();
}

void print_decimal(__int128 value, int scale, struct tarn_buf *out)
{
    char text[48], *end = text + sizeof text, *p = end;
    unsigned __int128 u = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
    for (int i = 0; u != 0 || i <= scale; i++) {
        if (i == scale && scale > 0)
            *--p = '.';
        if (u <= UINT64_MAX) {
            *--p = (char)('0' + (int)((uint64_t)u % 10));
            u = (uint64_t)u / 10;
        } else {
            *--p = (char)('0' + (int)(u % 10));
            u /= 10;
        }
    }
    if (value < 0)
        *--p = '-';
    put(out, std::string_view(p, (size_t)(end - p)));
}

/* False: a year that is not written with four digits. */
bool print_days(int64_t days, struct tarn_buf *out)
{
    int64_t year;
    int month, day;
    tarn_civil_from_days(days, &year, &month, &day);
    if (year < 0 || year > 9999)
        return false;
    char text[10] = {0, 0, 0, 0, '-', 0, 0, '-', 0, 0};
    two(text, (int)(year / 100));
    two(text + 2, (int)(year % 100));
    two(text + 5, month);
    two(text + 8, day);
    put(out, std::string_view(text, 10));
    return true;
}

/* ms of the day and nanoseconds of the millisecond, no more digits than needed. */
void print_clock(int64_t ms, int32_t ns, struct tarn_buf *out)
{
    char text[18] = {0, 0, ':', 0, 0, ':', 0, 0, '.'};
    size_t size = 8;
    int64_t second = ms / 1000;
    two(text, (int)(second / 3600));
    two(text + 3, (int)(second / 60 % 60));
    two(text + 6, (int)(second % 60));
    int64_t fraction = ms % 1000 * 1000000 + ns;
    if (fraction != 0) {
        for (int i = 17; i >= 9; i--, fraction /= 10)
            text[i] = (char)('0' + fraction % 10);
        for (size = 18; text[size - 1] == '0';)
            size--;
    }
    put(out, std::string_view(text, size));
}

bool print_timestamp(int64_t ms, int32_t ns, struct tarn_buf *out)
{
    int64_t days = floor_div(ms, 86400000);
    if (!print_days(days, out))
        return false;
    tarn_buf_add_byte(out, ' ');
    print_clock(floor_mod(ms, 86400000), ns, out);
    return true;
}

bool quick(const struct tarn_type *type, const struct tarn_value &v, struct tarn_buf *out)
{
    switch (type->id) {
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
        tarn_buf_add_slice(out, v.bytes);
        return true;
    case TARN_TYPE_BOOLEAN:
        put(out, v.integer != 0 ? "true" : "false");
        return true;
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_BIGINT:
        print_integer(v.integer, out);
        return true;
    case TARN_TYPE_FLOAT:
        return print_real((float)v.real, 1e7, out);
    case TARN_TYPE_DOUBLE:
        return print_real(v.real, 1e15, out);
    case TARN_TYPE_DECIMAL:
        print_decimal(v.decimal, type->scale, out);
        return true;
    case TARN_TYPE_DATE:
        return print_days(v.integer, out);
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return print_timestamp(v.time.ms, v.time.ns, out);
    default:
        return false;
    }
}

void print_atomic(const struct ArrowArray *column, const struct tarn_type *type, int64_t row,
                  struct tarn_buf *out)
{
    struct tarn_value value = {};
    tarn_column_value(column, type, row, &value);
    size_t size = out->size;
    if (quick(type, value, out))
        return;
    out->size = size;
    tarn_value_print(type, &value, out);
}

/* Never in what we take ourselves, but in others' files. */
bool has_key_twice(const struct ArrowArray *keys, const struct tarn_type *type, int64_t begin,
                   int64_t end)
{
    if (end - begin < 2)
        return false;
    std::vector<std::string_view> all;
    for (int64_t i = begin; i < end; i++) {
        struct tarn_value value = {};
        tarn_column_value(keys, type, i, &value);
        all.push_back(view_of(value.bytes));
    }
    std::sort(all.begin(), all.end());
    return std::adjacent_find(all.begin(), all.end()) != all.end();
}

/* An object where the keys are texts and no two alike, else a list of pairs. */
void print_map(const struct ArrowArray *column, const struct tarn_type *key_type,
               const struct tarn_type *item_type, int64_t row, struct tarn_buf *out)
{
    const int32_t *offsets = (const int32_t *)column->buffers[1] + column->offset + row;
    const struct ArrowArray *pairs = column->children[0];
    bool object =
        is_text(key_type) && !has_key_twice(pairs->children[0], key_type,
                                            offsets[0] + pairs->offset, offsets[1] + pairs->offset);
    tarn_buf_add_byte(out, object ? '{' : '[');
    for (int64_t i = offsets[0]; i < offsets[1]; i++) {
        int64_t at = i + pairs->offset;
        put(out, i > offsets[0] ? ", " : "");
        put(out, object ? "" : "[");
        print_json(pairs->children[0], key_type, at, out);
        put(out, object ? ": " : ", ");
        print_json(pairs->children[1], item_type, at, out);
        put(out, object ? "" : "]");
    }
    tarn_buf_add_byte(out, object ? '}' : ']');
}

void print_list(const struct ArrowArray *column, const struct tarn_type *type, int64_t row,
                struct tarn_buf *out)
{
    const int32_t *offsets = (const int32_t *)column->buffers[1] + column->offset + row;
    tarn_buf_add_byte(out, '[');
    for (int64_t i = offsets[0]; i < offsets[1]; i++) {
        put(out, i > offsets[0] ? ", " : "");
        print_json(column->children[0], type->element, i, out);
    }
    tarn_buf_add_byte(out, ']');
}

void print_row(const struct ArrowArray *column, const struct tarn_type *type, int64_t row,
               struct tarn_buf *out)
{
    tarn_buf_add_byte(out, '{');
    for (size_t i = 0; i < type->field_count; i++) {
        put(out, i > 0 ? ", " : "");
        print_json_text(view_of(type->fields[i].name), out);
        put(out, ": ");
        print_json(column->children[i], type->fields[i].type, row + column->offset, out);
    }
    tarn_buf_add_byte(out, '}');
}

/* Numbers and truth values go without quotes. */
bool is_bare(const struct ArrowArray *column, const struct tarn_type *type, int64_t row)
{
    struct tarn_value value = {};
    if (type->id == TARN_TYPE_FLOAT || type->id == TARN_TYPE_DOUBLE) {
        tarn_column_value(column, type, row, &value);
        return std::isfinite(value.real);
    }
    return type->id == TARN_TYPE_BOOLEAN || type->id == TARN_TYPE_DECIMAL ||
           (type->id >= TARN_TYPE_TINYINT && type->id <= TARN_TYPE_BIGINT);
}

} // namespace

void print_json_text(std::string_view text, struct tarn_buf *out)
{
    tarn_buf_add_byte(out, '"');
    size_t plain = 0; /* start of what needs no escape */
    for (size_t i = 0; i < text.size(); i++) {
        uint8_t c = (uint8_t)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        put(out, text.substr(plain, i - plain));
        plain = i + 1;
        if (c == '"' || c == '\\')
            tarn_buf_printf(out, "\\%c", c);
        else
            tarn_buf_printf(out, "\\u%04x", c);
    }
    put(out, text.substr(plain));
    tarn_buf_add_byte(out, '"');
}

void print_json(const struct ArrowArray *column, const struct tarn_type *type, int64_t row,
                struct tarn_buf *out)
{
    static const struct tarn_type kCount = {TARN_TYPE_INT, false, 0,    0, 0, {}, {},
                                            NULL,          NULL,  NULL, 0};
    if (tarn_column_is_null(column, row)) {
        put(out, "null");
        return;
    }
    switch (type->id) {
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_VECTOR:
        print_list(column, type, row, out);
        return;
    case TARN_TYPE_MAP:
        print_map(column, type->key, type->element, row, out);
        return;
    case TARN_TYPE_MULTISET:
        print_map(column, type->element, &kCount, row, out);
        return;
    case TARN_TYPE_ROW:
        print_row(column, type, row, out);
        return;
    case TARN_TYPE_VARIANT:
        fail(TARN_UNSUPPORTED_FEATURE,
             "VARIANT columns are not printed as text; ask for parquet or arrow");
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR: {
        struct tarn_value value = {};
        tarn_column_value(column, type, row, &value);
        print_json_text(view_of(value.bytes), out);
        return;
    }
    default:
        break;
    }
    bool bare = is_bare(column, type, row);
    put(out, bare ? "" : "\"");
    print_atomic(column, type, row, out);
    put(out, bare ? "" : "\"");
}

void print_value(const struct ArrowArray *column, const struct tarn_type *type, int64_t row,
                 struct tarn_buf *out)
{
    if (tarn_column_is_null(column, row))
        put(out, "null");
    else if (tarn_type_is_nested(type))
        print_json(column, type, row, out);
    else
        print_atomic(column, type, row, out);
}

} // namespace tarn
