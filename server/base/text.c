#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "base/digest.h"

/* Values from outside are quoted in messages up to this many bytes. */
#define SHOWN_MAX 80

static struct tarn_status *invalid(struct tarn_slice text, const char *expected)
{
    return tarn_status_new(TARN_VALUE_INVALID, "\"%.*s%s\" is not %s",
                           (int)TARN_MIN(text.size, (size_t)SHOWN_MAX), (const char *)text.data,
                           text.size > SHOWN_MAX ? "..." : "", expected);
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

struct tarn_slice tarn_trim(struct tarn_slice s)
{
    while (s.size > 0 && (s.data[0] == ' ' || s.data[0] == '\t'))
        s.data++, s.size--;
    while (s.size > 0 && (s.data[s.size - 1] == ' ' || s.data[s.size - 1] == '\t'))
        s.size--;
    return s;
}

/* False: no digits, something else, or beyond 64 bit. */
static bool read_i64(struct tarn_slice s, int64_t *out)
{
    bool negative = s.size > 0 && s.data[0] == '-';
    size_t i = s.size > 0 && (s.data[0] == '-' || s.data[0] == '+');
    int64_t value = 0;
    if (i == s.size)
        return false;
    for (; i < s.size; i++) {
        int digit = s.data[i] - '0';
        if (!is_digit(s.data[i]) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return false;
    }
    *out = value;
    return true;
}

struct tarn_status *tarn_parse_i64(struct tarn_slice text, int64_t *out)
{
    return read_i64(text, out) ? TARN_OK : invalid(text, "an integer of 64 bit");
}

static bool is_word(struct tarn_slice s, const char *word)
{
    return s.size == strlen(word) && strncasecmp((const char *)s.data, word, s.size) == 0;
}

struct tarn_status *tarn_parse_bool(struct tarn_slice text, bool *out)
{
    if (!is_word(text, "true") && !is_word(text, "false"))
        return invalid(text, "true or false");
    *out = is_word(text, "true");
    return TARN_OK;
}

struct unit {
    const char *name;
    int64_t factor;
};

/* Splits "<n> [unit]"; false: no number, negative, or an unknown unit. */
static bool read_with_unit(struct tarn_slice text, const struct unit *units, size_t unit_count,
                           int64_t *number, int64_t *factor)
{
    text = tarn_trim(text);
    size_t digits = 0;
    while (digits < text.size && is_digit(text.data[digits]))
        digits++;
    if (!read_i64(tarn_slice_of(text.data, digits), number))
        return false;
    struct tarn_slice word = tarn_trim(tarn_slice_of(text.data + digits, text.size - digits));
    for (size_t i = 0; i < unit_count; i++) {
        if (is_word(word, units[i].name)) {
            *factor = units[i].factor;
            return true;
        }
    }
    return false;
}

struct tarn_status *tarn_parse_size(struct tarn_slice text, int64_t *bytes)
{
    static const char expected[] = "a size: a number and b, kb, mb, gb or tb (powers of 1024)";
    static const struct unit units[] = {
        {"", 1},          {"b", 1},          {"byte", 1},        {"bytes", 1},
        {"k", 1 << 10},   {"kb", 1 << 10},   {"kib", 1 << 10},   {"kibibytes", 1 << 10},
        {"m", 1 << 20},   {"mb", 1 << 20},   {"mib", 1 << 20},   {"mebibytes", 1 << 20},
        {"g", 1 << 30},   {"gb", 1 << 30},   {"gib", 1 << 30},   {"gibibytes", 1 << 30},
        {"t", 1LL << 40}, {"tb", 1LL << 40}, {"tib", 1LL << 40}, {"tebibytes", 1LL << 40},
    };
    int64_t number, factor, result;
    if (!read_with_unit(text, units, TARN_COUNT_OF(units), &number, &factor) ||
        __builtin_mul_overflow(number, factor, &result))
        return invalid(text, expected);
    *bytes = result;
    return TARN_OK;
}

struct tarn_status *tarn_parse_duration(struct tarn_slice text, int64_t *ms)
{
    static const char expected[] = "a duration: a number and d, h, min, s, ms, us or ns";
    /* A negative factor divides. */
    static const struct unit units[] = {
        {"", 1},
        {"ms", 1},
        {"milli", 1},
        {"millis", 1},
        {"millisecond", 1},
        {"milliseconds", 1},
        {"s", 1000},
        {"sec", 1000},
        {"secs", 1000},
        {"second", 1000},
        {"seconds", 1000},
        {"m", 60000},
        {"min", 60000},
        {"mins", 60000},
        {"minute", 60000},
        {"minutes", 60000},
        {"h", 3600000},
        {"hour", 3600000},
        {"hours", 3600000},
        {"d", 86400000},
        {"day", 86400000},
        {"days", 86400000},
        {"us", -1000},
        {"\u00b5s", -1000},
        {"micro", -1000},
        {"micros", -1000},
        {"microsecond", -1000},
        {"microseconds", -1000},
        {"ns", -1000000},
        {"nano", -1000000},
        {"nanos", -1000000},
        {"nanosecond", -1000000},
        {"nanoseconds", -1000000},
    };
    int64_t number, factor, result;
    if (!read_with_unit(text, units, TARN_COUNT_OF(units), &number, &factor))
        return invalid(text, expected);
    if (factor < 0)
        result = number / -factor;
    else if (__builtin_mul_overflow(number, factor, &result))
        return invalid(text, expected);
    *ms = result;
    return TARN_OK;
}

void tarn_format_size(int64_t bytes, struct tarn_buf *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t u = 0;
    while ((value >= 1023.95 || value <= -1023.95) && u + 1 < TARN_COUNT_OF(units)) {
        value /= 1024;
        u++;
    }
    if (u == 0)
        tarn_buf_printf(out, "%" PRId64 " B", bytes);
    else
        tarn_buf_printf(out, "%.1f %s", value, units[u]);
}

/* --- hex and base64 --- */

void tarn_hex_encode(struct tarn_slice bytes, struct tarn_buf *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.size; i++) {
        tarn_buf_add_byte(out, (uint8_t)digits[bytes.data[i] >> 4]);
        tarn_buf_add_byte(out, (uint8_t)digits[bytes.data[i] & 15]);
    }
}

static int hex_value(uint8_t c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct tarn_status *tarn_hex_decode(struct tarn_slice text, struct tarn_buf *out)
{
    size_t size_before = out->size;
    for (size_t i = 0; i < text.size; i += 2) {
        int high = hex_value(text.data[i]);
        int low = i + 1 < text.size ? hex_value(text.data[i + 1]) : -1;
        if (high < 0 || low < 0) {
            out->size = size_before;
            return invalid(text, "hexadecimal: pairs of 0-9 and a-f");
        }
        tarn_buf_add_byte(out, (uint8_t)(high << 4 | low));
    }
    return TARN_OK;
}

bool tarn_url_decode(struct tarn_slice text, struct tarn_arena *arena, struct tarn_slice *out)
{
    uint8_t *to = tarn_arena_alloc(arena, text.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c == '%') {
            int high = i + 2 < text.size ? hex_value(text.data[i + 1]) : -1;
            int low = i + 2 < text.size ? hex_value(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (uint8_t)(high << 4 | low);
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        to[size++] = c;
    }
    to[size] = 0;
    *out = tarn_slice_of(to, size);
    return true;
}

void tarn_base64_encode(struct tarn_slice bytes, struct tarn_buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t n = TARN_MIN(bytes.size - i, (size_t)3);
        uint32_t v = (uint32_t)bytes.data[i] << 16;
        v |= n > 1 ? (uint32_t)bytes.data[i + 1] << 8 : 0;
        v |= n > 2 ? bytes.data[i + 2] : 0;
        for (size_t k = 0; k < 4; k++)
            tarn_buf_add_byte(out, k <= n ? (uint8_t)digits[v >> (18 - 6 * k) & 63] : '=');
    }
}

static int base64_value(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (is_digit(c))
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* One group of four; false: not base64. The bits that padding leaves over must be zero. */
static bool read_base64_group(const uint8_t *p, bool is_last, struct tarn_buf *out)
{
    size_t padding = !is_last || p[3] != '=' ? 0 : p[2] == '=' ? 2 : 1;
    uint32_t v = 0;
    for (size_t k = 0; k < 4; k++) {
        int digit = k >= 4 - padding ? 0 : base64_value(p[k]);
        if (digit < 0)
            return false;
        v = v << 6 | (uint32_t)digit;
    }
    if ((padding == 1 && (v & 0xff) != 0) || (padding == 2 && (v & 0xffff) != 0))
        return false;
    for (size_t k = 0; k < 3 - padding; k++)
        tarn_buf_add_byte(out, (uint8_t)(v >> (16 - 8 * k)));
    return true;
}

struct tarn_status *tarn_base64_decode(struct tarn_slice text, struct tarn_buf *out)
{
    size_t size_before = out->size;
    bool valid = text.size % 4 == 0;
    for (size_t i = 0; valid && i < text.size; i += 4)
        valid = read_base64_group(text.data + i, i + 4 == text.size, out);
    if (valid)
        return TARN_OK;
    out->size = size_before;
    return invalid(text, "base64 with padding");
}

/* --- UTF-8, UUIDs, near names --- */

bool tarn_utf8_valid(struct tarn_slice text)
{
    if (text.size == 0) /* no pointer is needed for nothing */
        return true;
    const uint8_t *p = text.data, *end = p + text.size;
    while (p < end) {
        uint8_t c = *p++;
        if (c < 0x80)
            continue;
        size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        if (c < 0xc2 || c > 0xf4 || (size_t)(end - p) < more)
            return false;
        /* The first continuation byte rules out overlong forms, surrogates and what is past U+10FFFF. */
        uint8_t low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        uint8_t high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (*p < low || *p > high)
            return false;
        for (size_t i = 1; i < more; i++)
            if ((p[i] & 0xc0) != 0x80)
                return false;
        p += more;
    }
    return true;
}

void tarn_uuid_random(char out[TARN_UUID_SIZE])
{
    uint8_t b[16];
    tarn_random_bytes(b, sizeof b);
    b[6] = (b[6] & 0x0f) | 0x40; /* version 4 */
    b[8] = (b[8] & 0x3f) | 0x80; /* RFC 4122's variant */
    snprintf(out, TARN_UUID_SIZE,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}

bool tarn_uuid_valid(struct tarn_slice text)
{
    if (text.size != TARN_UUID_SIZE - 1)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_dash ? text.data[i] != '-' : hex_value(text.data[i]) < 0)
            return false;
    }
    return true;
}

#define NEAREST_NAME_SIZE_MAX 63

/* Edits to get from a to b; two neighbours swapped count as one. Both at most 63 bytes. */
static size_t edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t rows[3][NEAREST_NAME_SIZE_MAX + 1]; /* two before, the one before, this one */
    size_t *two = rows[0], *one = rows[1], *now = rows[2];

    for (size_t j = 0; j <= b_size; j++)
        one[j] = two[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t best = one[j - 1] + (a[i - 1] != b[j - 1]);
            best = TARN_MIN(best, one[j] + 1);
            best = TARN_MIN(best, now[j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = TARN_MIN(best, two[j - 2] + 1);
            now[j] = best;
        }
        size_t *oldest = two;
        two = one;
        one = now;
        now = oldest;
    }
    return one[b_size];
}

const char *tarn_nearest(const char *text, const char *const *names, size_t name_count)
{
    size_t size = strnlen(text, NEAREST_NAME_SIZE_MAX + 1);
    if (size == 0 || size > NEAREST_NAME_SIZE_MAX)
        return NULL;
    const char *nearest = NULL;
    size_t best = TARN_MAX(size / 3, (size_t)1) + 1;
    for (size_t i = 0; i < name_count; i++) {
        size_t name_size = strlen(names[i]);
        if (name_size > NEAREST_NAME_SIZE_MAX)
            continue;
        size_t distance = edit_distance(text, size, names[i], name_size);
        if (distance < best) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}
