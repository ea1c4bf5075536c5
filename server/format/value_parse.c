/* Values read from text: exactly, or refused with what was expected. */
#include "format/value_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define SHOWN_MAX 60 /* of the text in a message */

static struct tarn_status *invalid(const struct tarn_type *type, struct tarn_slice text,
                                   const char *why)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    struct tarn_slice shown = text;

    if (shown.size > SHOWN_MAX) { /* never half a code point */
        shown.size = SHOWN_MAX;
        while (shown.size > 0 && (text.data[shown.size] & 0xc0) == 0x80)
            shown.size--;
    }
    tarn_type_print(type, &name);
    return tarn_status_new(TARN_VALUE_INVALID, "'%.*s'%s is not a value of %s: %s",
                           TARN_SLICE_ARG(shown), shown.size < text.size ? "..." : "",
                           tarn_buf_cstr(&name), why);
}

static bool word_is(struct tarn_slice text, const char *word)
{
    return text.size == strlen(word) && strncasecmp((const char *)text.data, word, text.size) == 0;
}

static struct tarn_status *parse_bool(const struct tarn_type *type, struct tarn_slice text,
                                      struct tarn_value *out)
{
    if (word_is(text, "true") || word_is(text, "t") || word_is(text, "1"))
        out->integer = 1;
    else if (word_is(text, "false") || word_is(text, "f") || word_is(text, "0"))
        out->integer = 0;
    else
        return invalid(type, text, "expected true or false");
    return TARN_OK;
}

/* Text without a point or an exponent: what an integer column takes. */
static bool is_whole(struct tarn_slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if ((c < '0' || c > '9') && !(i == 0 && (c == '+' || c == '-')))
            return false;
    }
    return true;
}

static struct tarn_status *parse_integer(const struct tarn_type *type, struct tarn_slice text,
                                         struct tarn_arena *arena, struct tarn_value *out)
{
    struct tarn_number number;
    __int128 low, high, value;

    if (!is_whole(text) || !tarn_format__scan_number(text, arena, &number))
        return invalid(type, text, "expected a whole number");
    tarn_format__type_range(type, &low, &high);
    if (tarn_format__number_to_integer(&number, 0, low, high, &value) != TARN_FIT_EXACT) {
        char why[96];
        snprintf(why, sizeof why, "expected %" PRId64 " to %" PRId64, (int64_t)low, (int64_t)high);
        return invalid(type, text, why);
    }
    out->integer = (int64_t)value;
    return TARN_OK;
}

static struct tarn_status *parse_decimal(const struct tarn_type *type, struct tarn_slice text,
                                         struct tarn_arena *arena, struct tarn_value *out)
{
    struct tarn_number number;
    __int128 low, high, value = 0;
    char why[96];

    if (!tarn_format__scan_number(text, arena, &number))
        return invalid(type, text, "expected a decimal number");
    tarn_format__type_range(type, &low, &high);
    switch (tarn_format__number_to_integer(&number, type->scale, low, high, &value)) {
    case TARN_FIT_EXACT:
        out->decimal = value;
        return TARN_OK;
    case TARN_FIT_BETWEEN:
        snprintf(why, sizeof why, "expected at most %d digits after the point", type->scale);
        break;
    default:
        snprintf(why, sizeof why, "expected at most %d digits before the point",
                 type->precision - type->scale);
        break;
    }
    return invalid(type, text, why);
}

static bool real_word(struct tarn_slice text, double *out)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"NaN", NAN},       {"Infinity", INFINITY}, {"+Infinity", INFINITY},
                 {"inf", INFINITY},  {"+inf", INFINITY},     {"-Infinity", -INFINITY},
                 {"-inf", -INFINITY}};

    for (size_t i = 0; i < TARN_COUNT_OF(words); i++) {
        if (word_is(text, words[i].word)) {
            *out = words[i].value;
            return true;
        }
    }
    return false;
}

static struct tarn_status *parse_real(const struct tarn_type *type, struct tarn_slice text,
                                      struct tarn_arena *arena, struct tarn_value *out)
{
    struct tarn_number number;

    if (real_word(text, &out->real))
        return TARN_OK;
    if (!tarn_format__scan_number(text, arena, &number))
        return invalid(type, text, "expected a number, NaN, Infinity or -Infinity");
    const char *copy = tarn_arena_str(arena, text);
    double value = type->id == TARN_TYPE_FLOAT ? (double)strtof(copy, NULL) : strtod(copy, NULL);
    if (isinf(value))
        return invalid(type, text, "the number is too large");
    out->real = value;
    return TARN_OK;
}

static struct tarn_status *parse_text(const struct tarn_type *type, struct tarn_slice text,
                                      struct tarn_arena *arena, struct tarn_value *out)
{
    int64_t count = 0;
    char why[64];

    if (!tarn_utf8_valid(text))
        return invalid(type, tarn_slice_str("?"), "expected UTF-8");
    for (size_t i = 0; i < text.size; i++)
        count += (text.data[i] & 0xc0) != 0x80;
    if (count > type->length) {
        snprintf(why, sizeof why, "expected at most %d characters, found %" PRId64, type->length,
                 count);
        return invalid(type, text, why);
    }
    out->bytes = tarn_arena_copy(arena, text);
    return TARN_OK;
}

static struct tarn_status *parse_binary(const struct tarn_type *type, struct tarn_slice text,
                                        struct tarn_arena *arena, struct tarn_value *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    TARN_OWN(tarn_status_drop) struct tarn_status *s = tarn_base64_decode(text, &bytes);
    bool bounded = type->id == TARN_TYPE_BINARY || type->id == TARN_TYPE_VARBINARY;
    char why[64];

    if (s != NULL)
        return invalid(type, text, "expected base64");
    if (bounded && bytes.size > (size_t)type->length) {
        snprintf(why, sizeof why, "expected at most %d bytes, found %zu", type->length, bytes.size);
        return invalid(type, text, why);
    }
    out->bytes = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    return TARN_OK;
}

/* Has a fraction of a second, in nanoseconds, no digit beyond the precision? */
static bool fits_precision(int64_t nanos, int precision)
{
    for (int i = precision; i < 9; i++) {
        if (nanos % 10 != 0)
            return false;
        nanos /= 10;
    }
    return true;
}

static struct tarn_status *parse_date(const struct tarn_type *type, struct tarn_slice text,
                                      struct tarn_value *out)
{
    int64_t days;
    if (!tarn_format__scan_date(text, &days) || days != (int32_t)days)
        return invalid(type, text, "expected a date such as 2026-01-31");
    out->integer = days;
    return TARN_OK;
}

static struct tarn_status *parse_time(const struct tarn_type *type, struct tarn_slice text,
                                      struct tarn_value *out)
{
    int64_t nanos;
    if (!tarn_format__scan_time(text, &nanos))
        return invalid(type, text, "expected a time such as 12:00:00.123");
    /* Kept in milliseconds, whatever the type says. */
    if (!fits_precision(nanos % 1000000000, TARN_MIN(type->precision, 3)))
        return invalid(type, text, "more digits after the second than the type keeps");
    out->integer = nanos / 1000000;
    return TARN_OK;
}

static struct tarn_status *parse_timestamp(const struct tarn_type *type, struct tarn_slice text,
                                           struct tarn_value *out)
{
    int64_t ms;
    int32_t ns;
    if (!tarn_format__scan_timestamp(text, &ms, &ns))
        return invalid(type, text, "expected a time such as 2026-01-31 12:00:00.123");
    if (!fits_precision(tarn_format__floor_mod(ms, 1000) * 1000000 + ns, type->precision))
        return invalid(type, text, "more digits after the second than the type keeps");
    out->time.ms = ms;
    out->time.ns = ns;
    return TARN_OK;
}

static struct tarn_status *parse_atomic(const struct tarn_type *type, struct tarn_slice text,
                                        struct tarn_arena *arena, struct tarn_value *value)
{
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        return parse_bool(type, text, value);
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_BIGINT:
        return parse_integer(type, text, arena, value);
    case TARN_TYPE_DECIMAL:
        return parse_decimal(type, text, arena, value);
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        return parse_real(type, text, arena, value);
    case TARN_TYPE_DATE:
        return parse_date(type, text, value);
    case TARN_TYPE_TIME:
        return parse_time(type, text, value);
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return parse_timestamp(type, text, value);
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
        return parse_text(type, text, arena, value);
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
    case TARN_TYPE_BLOB:
    case TARN_TYPE_GEOMETRY:
    case TARN_TYPE_GEOGRAPHY:
        return parse_binary(type, text, arena, value);
    default:
        return invalid(type, text, "nested values are not read from a single text");
    }
}

struct tarn_status *tarn_value_parse(const struct tarn_type *type, struct tarn_slice text,
                                     struct tarn_arena *arena, struct tarn_value *out)
{
    struct tarn_value value = {.is_null = false};

    TARN_TRY(parse_atomic(type, text, arena, &value));
    *out = value;
    return TARN_OK;
}
