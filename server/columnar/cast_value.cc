/*
 * cast_value - the casts that may lose something: a column whose type was changed to a narrower one, or from or to text.
 *
 * One value at a time, as Paimon's CastExecutors do it: whole numbers wrap, reals are cut and held at the ends of 32 and 64
 * bits, decimals that don't fit become null, texts are cut or padded. A text that spells no such value is VALUE_INVALID.
 */
#include "columnar/text.h"

#include <algorithm>
#include <arrow/c/bridge.h>
#include <charconv>
#include <cmath>

namespace tarn
{

namespace
{

bool is_binary(const struct tarn_type *t)
{
    return t->id == TARN_TYPE_BINARY || t->id == TARN_TYPE_VARBINARY;
}
bool is_number(const struct tarn_type *t)
{
    return is_integer(t) || is_real(t) || t->id == TARN_TYPE_DECIMAL;
}

[[noreturn]] void unreadable(std::string_view text, const struct tarn_type *to)
{
    fail(TARN_VALUE_INVALID, "\"%.*s\" can't be read as %s", (int)std::min<size_t>(text.size(), 80),
         text.data(), type_text(to).c_str());
}

/* "-12.5e3" to a scale, half up; false: too many digits. */
bool decimal_of_text(std::string_view text, const struct tarn_type *to, __int128 *out)
{
    std::string digits;
    std::string_view rest = text;
    bool negative = false;
    int64_t shift = to->scale;
    if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
        negative = rest[0] == '-';
        rest.remove_prefix(1);
    }
    bool point = false, any = false;
    for (; !rest.empty() && rest[0] != 'e' && rest[0] != 'E'; rest.remove_prefix(1)) {
        if (rest[0] == '.' && !point) {
            point = true;
            continue;
        }
        if (rest[0] < '0' || rest[0] > '9')
            unreadable(text, to);
        any = true;
        shift -= point;
        if (!digits.empty() || rest[0] != '0')
            digits.push_back(rest[0]);
    }
    if (!rest.empty()) {
        int32_t exponent = 0;
        rest.remove_prefix(1);
        if (!rest.empty() && rest[0] == '+')
            rest.remove_prefix(1);
        std::from_chars_result r =
            std::from_chars(rest.data(), rest.data() + rest.size(), exponent);
        if (r.ec != std::errc() || r.ptr != rest.data() + rest.size())
            unreadable(text, to);
        shift += exponent;
    }
    if (!any)
        unreadable(text, to);
    bool up = false;
    if (shift < 0) {
        size_t cut = (size_t)std::min<int64_t>(-shift, (int64_t)digits.size() + 1);
        up = cut <= digits.size() && digits[digits.size() - cut] >= '5';
        digits.resize(digits.size() - std::min(cut, digits.size()));
    }
    if (digits.size() > 38 || (shift > 0 && !digits.empty() && shift > 38 - (int64_t)digits.size()))
        return false;
    __int128 v = 0;
    for (char c : digits)
        v = v * 10 + (c - '0');
    v = (shift > 0 && v != 0 ? v * kPow10[shift] : v) + up;
    *out = negative ? -v : v;
    return v < kPow10[to->precision];
}

int64_t integer_of_real(double v, const struct tarn_type *to)
{
    if (std::isnan(v))
        return 0;
    if (to->id == TARN_TYPE_BIGINT)
        return v >= 9223372036854775808.0    ? INT64_MAX
               : v <= -9223372036854775808.0 ? INT64_MIN
                                             : (int64_t)v;
    return v >= INT32_MAX ? INT32_MAX : v <= INT32_MIN ? INT32_MIN : (int64_t)v;
}

int64_t wrap(int64_t v, const struct tarn_type *to)
{
    return to->id == TARN_TYPE_TINYINT    ? (int8_t)v
           : to->id == TARN_TYPE_SMALLINT ? (int16_t)v
           : to->id == TARN_TYPE_INT      ? (int32_t)v
                                          : v;
}

/* Digits behind a point are taken off unread. */
int64_t integer_of_text(std::string_view text, const struct tarn_type *to)
{
    std::string_view whole = text.substr(0, text.find('.'));
    std::string_view part = whole.size() == text.size() ? "" : text.substr(whole.size() + 1);
    int64_t v = 0;
    if (!whole.empty() && whole[0] == '+')
        whole.remove_prefix(1);
    std::from_chars_result r = std::from_chars(whole.data(), whole.data() + whole.size(), v);
    if (r.ec != std::errc() || r.ptr != whole.data() + whole.size() || wrap(v, to) != v ||
        part.find_first_not_of("0123456789") != part.npos)
        unreadable(text, to);
    return v;
}

bool boolean_of_text(std::string_view text, const struct tarn_type *to)
{
    std::string lower(text);
    for (char &c : lower)
        c = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    for (const char *word : {"t", "true", "y", "yes", "1"})
        if (lower == word)
            return true;
    for (const char *word : {"f", "false", "n", "no", "0"})
        if (lower == word)
            return false;
    unreadable(text, to);
}

double real_of_text(std::string_view text, const struct tarn_type *to)
{
    float single = 0;
    double both = 0;
    std::string_view digits = text;
    if (!digits.empty() && digits[0] == '+')
        digits.remove_prefix(1);
    const char *end = digits.data() + digits.size();
    std::from_chars_result r = to->id == TARN_TYPE_FLOAT
                                   ? std::from_chars(digits.data(), end, single)
                                   : std::from_chars(digits.data(), end, both);
    if (r.ec != std::errc() || r.ptr != end)
        unreadable(text, to);
    return to->id == TARN_TYPE_FLOAT ? single : both;
}

/* Cut to the type's length; CHAR and BINARY padded to it. */
void fit(std::string *text, const struct tarn_type *to)
{
    size_t end = text->size(), points = 0;
    if (is_text(to)) {
        for (end = 0; end < text->size(); end++)
            if (((*text)[end] & 0xC0) != 0x80 && points++ == (size_t)to->length)
                break;
        points = std::min(points, (size_t)to->length);
    } else {
        points = end = std::min(end, (size_t)to->length);
    }
    text->resize(end);
    if (to->id == TARN_TYPE_CHAR || to->id == TARN_TYPE_BINARY)
        text->append((size_t)to->length - points, to->id == TARN_TYPE_CHAR ? ' ' : '\0');
}

/* As Java prints it: 0.001 to 9999999 with a point and at least a digit behind it, all else as 1.0E10. */
std::string spell_real(double v, bool single)
{
    if (std::isnan(v))
        return "NaN";
    if (std::isinf(v))
        return v < 0 ? "-Infinity" : "Infinity";
    std::string sign = std::signbit(v) ? "-" : "";
    if (v == 0)
        return sign + "0.0";
    char text[64];
    v = std::fabs(v);
    auto print = [&](auto real) {
        char *end =
            std::to_chars(text, text + sizeof text, real, std::chars_format::scientific).ptr;
        if (text[1] == 'e') /* of one digit: the nearest of two, as Java has at least two */
            end =
                std::to_chars(text, text + sizeof text, real, std::chars_format::scientific, 1).ptr;
        return end;
    };
    char *end = single ? print((float)v) : print(v);
    std::string_view all(text, (size_t)(end - text));
    size_t e = all.find('e');
    int exponent = 0;
    std::from_chars(text + e + 1 + (text[e + 1] == '+'), end, exponent); /* "+10" or "-05" */
    std::string digits = all[0] + std::string(all.substr(2, e - 2));
    if (digits.size() == 2 && digits[1] == '0')
        digits.pop_back();
    if (exponent < -3 || exponent >= 7)
        return sign + digits[0] + "." + (digits.size() > 1 ? digits.substr(1) : "0") + "E" +
               std::to_string(exponent);
    if (exponent < 0)
        return sign + "0." + std::string((size_t)(-exponent - 1), '0') + digits;
    if (digits.size() < (size_t)exponent + 2)
        digits.append((size_t)exponent + 2 - digits.size(), '0');
    return sign + digits.substr(0, (size_t)exponent + 1) + "." +
           digits.substr((size_t)exponent + 1);
}

/* What a value of one of the types that are spelled here is as text. */
std::string spell(const struct tarn_value &v, const struct tarn_type *from)
{
    if (is_text(from) || is_binary(from))
        return string_of(v.bytes);
    if (from->id == TARN_TYPE_BOOLEAN)
        return v.integer != 0 ? "true" : "false";
    if (is_real(from))
        return spell_real(v.real, from->id == TARN_TYPE_FLOAT);
    struct tarn_buf text = {};
    std::unique_ptr<struct tarn_buf, void (*)(struct tarn_buf *)> drop(&text, tarn_buf_drop);
    tarn_value_print(from, &v, &text);
    std::string out = string_of(tarn_buf_slice(&text));
    if (!is_stamp(from) && from->id != TARN_TYPE_TIME)
        return out;
    /* Java prints all digits of a TIMESTAMP's precision, but of a TIME's part of a second no zeros at its end but one. */
    out.resize(std::min(out.size(), out.find('.')));
    int precision = from->id == TARN_TYPE_TIME ? std::min(from->precision, 3) : from->precision;
    int64_t nanos = from->id == TARN_TYPE_TIME ? v.integer % 1000 * 1000000
                                               : floor_mod(v.time.ms, 1000) * 1000000 + v.time.ns;
    char part[16];
    snprintf(part, sizeof part, ".%09d", (int)nanos);
    size_t size = 10, least = (size_t)(from->id == TARN_TYPE_TIME ? 1 : precision) + 1;
    if (from->id == TARN_TYPE_TIME)
        size = (size_t)precision + 1;
    while (size > least && part[size - 1] == '0')
        size--;
    return size <= 1 || precision == 0 ? out : out + std::string(part, size);
}

/* False: null. `text` keeps the bytes of *out. */
bool cast_one(const struct tarn_value &v, const struct tarn_type *from, const struct tarn_type *to,
              std::string *text, struct tarn_value *out)
{
    std::string_view spelled = is_text(from) ? view_of(v.bytes) : std::string_view();
    *out = {};
    if (is_text(to) || is_binary(to)) {
        *text = spell(v, from);
        if (!is_binary(from) || is_binary(to))
            fit(text, to);
        out->bytes = slice_of(*text);
        return true;
    }
    if (to->id == TARN_TYPE_BOOLEAN) {
        out->integer = is_text(from) ? boolean_of_text(spelled, to) : v.integer != 0;
        return true;
    }
    if (is_integer(to)) {
        int64_t whole = is_text(from)                   ? integer_of_text(spelled, to)
                        : is_stamp(from)                ? v.time.ms / 1000
                        : is_real(from)                 ? integer_of_real(v.real, to)
                        : from->id == TARN_TYPE_DECIMAL ? (int64_t)(v.decimal / kPow10[from->scale])
                                                        : v.integer;
        out->integer = wrap(whole, to);
        return true;
    }
    if (is_real(to)) {
        out->real = is_text(from)   ? real_of_text(spelled, to)
                    : is_real(from) ? v.real
                                    : (double)v.integer;
        return true;
    }
    if (is_stamp(to)) { /* of whole seconds, or of a time of 1970-01-01 */
        int64_t per = from->id == TARN_TYPE_TIME ? 1 : 1000;
        if (__builtin_mul_overflow(v.integer, per, &out->time.ms))
            fail(TARN_VALUE_INVALID, "%" PRId64 " seconds are beyond what %s holds", v.integer,
                 type_text(to).c_str());
        return true;
    }
    /* DECIMAL, of a text, a real or a boolean */
    char digits[64] = "0";
    if (from->id == TARN_TYPE_BOOLEAN)
        digits[0] = (char)('0' + (v.integer != 0));
    size_t size = 1;
    if (is_real(from)) {
        if (!std::isfinite(v.real))
            fail(TARN_VALUE_INVALID, "NaN or infinity can't be read as %s", type_text(to).c_str());
        size = (size_t)(std::to_chars(digits, digits + sizeof digits, v.real).ptr - digits);
    }
    return decimal_of_text(is_text(from) ? spelled : std::string_view(digits, size), to,
                           &out->decimal);
}

} // namespace

bool cast_value_known(const struct tarn_type *from, const struct tarn_type *to)
{
    if (is_text(to))
        return is_text(from) || is_binary(from) || is_number(from) ||
               from->id == TARN_TYPE_BOOLEAN || from->id == TARN_TYPE_DATE ||
               from->id == TARN_TYPE_TIME || is_stamp(from);
    if (is_binary(to))
        return is_text(from) || is_binary(from);
    if (to->id == TARN_TYPE_BOOLEAN)
        return is_text(from) || is_integer(from);
    if (to->id == TARN_TYPE_DATE || to->id == TARN_TYPE_TIME)
        return is_text(from);
    if (is_stamp(to))
        return is_text(from) || from->id == TARN_TYPE_TIME || from->id == TARN_TYPE_INT ||
               from->id == TARN_TYPE_BIGINT;
    if ((to->id == TARN_TYPE_INT || to->id == TARN_TYPE_BIGINT) && is_stamp(from))
        return true;
    if (is_integer(to) || is_real(to))
        return is_text(from) || is_integer(from) || is_real(from) ||
               from->id == TARN_TYPE_BOOLEAN || from->id == TARN_TYPE_DECIMAL;
    return to->id == TARN_TYPE_DECIMAL &&
           (is_text(from) || is_number(from) || from->id == TARN_TYPE_BOOLEAN);
}

ArrayPtr cast_values(const arrow::Array &in, const struct tarn_type *from,
                     const struct tarn_type *to)
{
    struct ArrowArray array;
    Column column(to);
    std::string text;
    bool parses =
        is_text(from) && (to->id == TARN_TYPE_DATE || to->id == TARN_TYPE_TIME || is_stamp(to));
    must(arrow::ExportArray(in, &array), TARN_INTERNAL, "cast");
    std::unique_ptr<struct ArrowArray, void (*)(struct ArrowArray *)> release(
        &array, [](struct ArrowArray *a) { a->release(a); });
    for (int64_t row = 0; row < in.length(); row++) {
        struct tarn_value value = {}, made;
        tarn_column_value(&array, from, row, &value);
        if (!value.is_null && parses) {
            if (!append_text(column, view_of(value.bytes), &text))
                fail(TARN_VALUE_INVALID, "%s", text.c_str());
        } else if (value.is_null || !cast_one(value, from, to, &text, &made)) {
            column.append_null();
        } else if (!column.append_value(made)) {
            fail(TARN_VALUE_INVALID, "a time is outside what %s holds here", type_text(to).c_str());
        }
    }
    return column.finish();
}

} // namespace tarn
