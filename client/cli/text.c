#include "text.h"

#include <time.h>
#include <wchar.h>

/* Decodes one code point; 0 bytes used: not UTF-8 at this place. */
static size_t decode(struct tarn_slice text, size_t at, uint32_t *out)
{
    const uint8_t *p = text.data + at;
    size_t left = text.size - at;
    size_t size = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
    if (size == 0 || size > left || !tarn_utf8_valid(tarn_slice_of(p, size)))
        return 0;
    static const uint8_t mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t point = p[0] & mask[size];
    for (size_t i = 1; i < size; i++)
        point = point << 6 | (p[i] & 0x3f);
    *out = point;
    return size;
}

static bool turns_direction(uint32_t point)
{
    return point == 0x061c || (point >= 0x200b && point <= 0x200f) ||
           (point >= 0x2028 && point <= 0x202e) || (point >= 0x2060 && point <= 0x206f) ||
           point == 0xfeff || (point >= 0xe0000 && point <= 0xe007f);
}

static void escape_point(uint32_t point, struct tarn_slice bytes, struct tarn_buf *out)
{
    if (point == '\n')
        tarn_buf_add_str(out, "\\n");
    else if (point == '\r')
        tarn_buf_add_str(out, "\\r");
    else if (point == '\t')
        tarn_buf_add_str(out, "\\t");
    else if (point < 0x20 || (point >= 0x7f && point < 0xa0))
        tarn_buf_printf(out, "\\x%02x", (unsigned)point);
    else if (turns_direction(point))
        tarn_buf_printf(out, "\\u{%04x}", (unsigned)point);
    else
        tarn_buf_add_slice(out, bytes);
}

void tarn_cli_escape(struct tarn_slice text, struct tarn_buf *out)
{
    for (size_t i = 0; i < text.size;) {
        uint32_t point = 0;
        size_t size = decode(text, i, &point);
        if (size == 0)
            tarn_buf_printf(out, "\\x%02x", text.data[i++]);
        else
            escape_point(point, tarn_slice_of(text.data + i, size), out);
        i += size;
    }
}

size_t tarn_cli_width(struct tarn_slice escaped)
{
    size_t width = 0;
    for (size_t i = 0; i < escaped.size;) {
        uint32_t point = 0;
        size_t size = decode(escaped, i, &point);
        int columns = size <= 1 ? 1 : wcwidth((wchar_t)point);
        width += columns < 0 ? 1 : (size_t)columns; /* not known to the locale */
        i += size == 0 ? 1 : size;
    }
    return width;
}

void tarn_cli_local_time(int64_t wall_ms, struct tarn_buf *out)
{
    int64_t ms = wall_ms % 1000;
    time_t seconds = (time_t)(wall_ms / 1000);
    if (ms < 0) {
        ms += 1000;
        seconds--;
    }
    struct tm tm;
    if (localtime_r(&seconds, &tm) == NULL) {
        tarn_buf_printf(out, "%" PRId64, wall_ms);
        return;
    }
    long zone = tm.tm_gmtoff / 60;
    char sign = zone < 0 ? '-' : '+';
    zone = zone < 0 ? -zone : zone;
    tarn_buf_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%03d%c%02ld:%02ld", tm.tm_year + 1900,
                    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)ms, sign,
                    zone / 60, zone % 60);
}

static size_t skip_digits(struct tarn_slice text, size_t *at)
{
    size_t from = *at;
    while (*at < text.size && text.data[*at] >= '0' && text.data[*at] <= '9')
        ++*at;
    return *at - from;
}

static bool skip_one_of(struct tarn_slice text, size_t *at, const char *set)
{
    bool found = *at < text.size && text.data[*at] != 0 && strchr(set, text.data[*at]) != NULL;
    *at += found;
    return found;
}

bool tarn_cli_is_number(struct tarn_slice text)
{
    size_t at = 0;
    skip_one_of(text, &at, "+-");
    size_t digits = skip_digits(text, &at);
    if (skip_one_of(text, &at, "."))
        digits += skip_digits(text, &at);
    if (digits == 0)
        return false;
    if (skip_one_of(text, &at, "eE")) {
        skip_one_of(text, &at, "+-");
        if (skip_digits(text, &at) == 0)
            return false;
    }
    return at == text.size;
}
