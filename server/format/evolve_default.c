/*
 * Defaults of columns: text that Paimon's writers cast to the column's type where a row has null. Refused is what they could not
 * cast, and what they would make null of silently: a DECIMAL that does not fit.
 *
 * Source   org.apache.paimon.utils.DefaultValueUtils and the casting.StringTo...CastRule classes.
 */
#include "format/evolve_internal.h"

#include "format/ddl.h"
#include "format/options_judge.h"
#include "format/value_internal.h"

#include <strings.h>

static bool is_default(const struct tarn_type *type, struct tarn_slice text,
                       struct tarn_arena *arena);

static bool is_boolean(struct tarn_slice text)
{
    static const char *const words[] = {"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"};
    for (size_t i = 0; i < TARN_COUNT_OF(words); i++)
        if (text.size == strlen(words[i]) &&
            strncasecmp((const char *)text.data, words[i], text.size) == 0)
            return true;
    return false;
}

static size_t digits_at(struct tarn_slice text, size_t from)
{
    size_t at = from;
    while (at < text.size && text.data[at] >= '0' && text.data[at] <= '9')
        at++;
    return at - from;
}

static bool is_digits(struct tarn_slice text)
{
    return text.size > 0 && digits_at(text, 0) == text.size;
}

/* What stands behind the point is cut off. */
static bool is_integer(const struct tarn_type *type, struct tarn_slice text,
                       struct tarn_arena *arena)
{
    struct tarn_number number;
    __int128 low, high, value;
    size_t sign = text.size > 0 && (text.data[0] == '-' || text.data[0] == '+');
    size_t whole = sign + digits_at(text, sign), end = whole;
    if (end < text.size && text.data[end] == '.')
        end += 1 + digits_at(text, end + 1);
    if (end != text.size || whole == sign ||
        !tarn_format__scan_number(tarn_slice_of(text.data, whole), arena, &number))
        return false;
    tarn_format__type_range(type, &low, &high);
    return tarn_format__number_to_integer(&number, 0, low, high, &value) == TARN_FIT_EXACT;
}

/* Digits beyond the scale are rounded. */
static bool is_decimal(const struct tarn_type *type, struct tarn_slice text,
                       struct tarn_arena *arena)
{
    struct tarn_number number;
    __int128 low, high, value;
    if (!tarn_format__scan_number(text, arena, &number))
        return false;
    tarn_format__type_range(type, &low, &high);
    enum tarn_fit fit = tarn_format__number_to_integer(&number, type->scale, low, high, &value);
    return fit == TARN_FIT_EXACT || (fit == TARN_FIT_BETWEEN && value < high);
}

static bool is_real(struct tarn_slice text, struct tarn_arena *arena)
{
    static const char *const words[] = {"NaN", "Infinity", "+Infinity", "-Infinity"};
    struct tarn_number number;
    for (size_t i = 0; i < TARN_COUNT_OF(words); i++)
        if (tarn_slice_is(text, words[i]))
            return true;
    return tarn_format__scan_number(text, arena, &number);
}

/* A number alone counts days, milliseconds, or a timestamp's own unit. */
static bool is_time(const struct tarn_type *type, struct tarn_slice text, struct tarn_arena *arena)
{
    static const struct tarn_type int32 = {.id = TARN_TYPE_INT}, int64 = {.id = TARN_TYPE_BIGINT};
    int64_t whole;
    int32_t ns;
    switch (type->id) {
    case TARN_TYPE_DATE:
        return is_digits(text) ? is_integer(&int32, text, arena)
                               : tarn_format__scan_date(text, &whole);
    case TARN_TYPE_TIME:
        return is_digits(text) ? is_integer(&int32, text, arena)
                               : tarn_format__scan_time(text, &whole);
    default:
        if (is_digits(text))
            return type->id == TARN_TYPE_TIMESTAMP && type->precision % 3 == 0 &&
                   is_integer(&int64, text, arena);
        return tarn_format__scan_timestamp(text, &whole, &ns);
    }
}

/* ---- nested values: [a, b] or ARRAY(a, b); {k -> v} or MAP(k, v); {a, b} or STRUCT(a, b) */

/* The next item of a list, up to a comma that is in no quotes or brackets; empty ones are passed over. */
static bool next_item(struct tarn_slice *rest, struct tarn_slice *item)
{
    while (rest->size > 0) {
        size_t at = 0, depth = 0;
        bool quoted = false;
        for (; at < rest->size; at++) {
            uint8_t c = rest->data[at];
            if (c == '\\')
                at++;
            else if (c == '"')
                quoted = !quoted;
            else if (!quoted && memchr("([{", c, 3) != NULL)
                depth++;
            else if (!quoted && memchr(")]}", c, 3) != NULL && depth > 0)
                depth--;
            else if (!quoted && c == ',' && depth == 0)
                break;
        }
        size_t size = TARN_MIN(at, rest->size), skip = TARN_MIN(at + 1, rest->size);
        *item = tarn_format__trim(tarn_slice_of(rest->data, size));
        *rest = tarn_slice_of(rest->data + skip, rest->size - skip);
        if (size > 0)
            return true;
    }
    return false;
}

/* The text between the brackets: of "[..]", where `brackets` is "[]", or of "WORD (..)". */
static bool open_brackets(struct tarn_slice text, const char *brackets, const char *word,
                          bool *called, struct tarn_slice *inner)
{
    text = tarn_format__trim(text);
    size_t n = strlen(word);
    *called = text.size > n && strncasecmp((const char *)text.data, word, n) == 0;
    if (*called) {
        text = tarn_format__trim(tarn_slice_of(text.data + n, text.size - n));
        brackets = "()";
    }
    if (text.size < 2 || text.data[0] != (uint8_t)brackets[0] ||
        text.data[text.size - 1] != (uint8_t)brackets[1])
        return false;
    *inner = tarn_format__trim(tarn_slice_of(text.data + 1, text.size - 2));
    return true;
}

static bool is_item(const struct tarn_type *type, struct tarn_slice text, struct tarn_arena *arena)
{
    return tarn_slice_is(text, "null") || is_default(type, text, arena);
}

static bool is_array(const struct tarn_type *type, struct tarn_slice text, struct tarn_arena *arena)
{
    struct tarn_slice rest, item;
    bool called;
    if (!open_brackets(text, "[]", "ARRAY", &called, &rest))
        return false;
    while (next_item(&rest, &item))
        if (!is_item(type->element, item, arena))
            return false;
    return true;
}

static bool is_row(const struct tarn_type *type, struct tarn_slice text, struct tarn_arena *arena)
{
    struct tarn_slice rest, item;
    bool called;
    size_t n = 0;
    if (!open_brackets(text, "{}", "STRUCT", &called, &rest))
        return false;
    if (rest.size == 0)
        return true;
    for (; next_item(&rest, &item); n++)
        if (n == type->field_count || !is_item(type->fields[n].type, item, arena))
            return false;
    return n == type->field_count;
}

/* "key -> value" */
static bool is_entry(const struct tarn_type *type, struct tarn_slice entry,
                     struct tarn_arena *arena)
{
    for (size_t i = 1; i + 2 < entry.size; i++)
        if (entry.data[i] == '-' && entry.data[i + 1] == '>')
            return is_item(type->key, tarn_format__trim(tarn_slice_of(entry.data, i)), arena) &&
                   is_item(type->element,
                           tarn_format__trim(tarn_slice_of(entry.data + i + 2, entry.size - i - 2)),
                           arena);
    return false;
}

static bool is_map(const struct tarn_type *type, struct tarn_slice text, struct tarn_arena *arena)
{
    struct tarn_slice rest, item;
    bool called;
    size_t n = 0;
    if (!open_brackets(text, "{}", "MAP", &called, &rest))
        return false;
    for (; next_item(&rest, &item); n++)
        if (called ? !is_item(n % 2 == 0 ? type->key : type->element, item, arena)
                   : !is_entry(type, item, arena))
            return false;
    return !called || n % 2 == 0;
}

static bool is_default(const struct tarn_type *type, struct tarn_slice text,
                       struct tarn_arena *arena)
{
    switch (type->id) {
    case TARN_TYPE_CHAR: /* cut or filled up to their length */
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        return true;
    case TARN_TYPE_BOOLEAN:
        return is_boolean(text);
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_BIGINT:
        return is_integer(type, text, arena);
    case TARN_TYPE_DECIMAL:
        return is_decimal(type, text, arena);
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        return is_real(text, arena);
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return is_time(type, text, arena);
    case TARN_TYPE_ARRAY:
        return is_array(type, text, arena);
    case TARN_TYPE_MAP:
        return is_map(type, text, arena);
    case TARN_TYPE_ROW:
        return is_row(type, text, arena);
    default:
        return false; /* no text is cast to these */
    }
}

struct tarn_status *tarn_format__check_default(const struct tarn_type *type, struct tarn_slice text,
                                               struct tarn_arena *arena)
{
    struct tarn_slice bare = text;
    bool quoted = text.size > 0 && text.data[0] == '\'' && text.data[text.size - 1] == '\'';
    if (quoted && text.size > 1)
        bare = tarn_slice_of(text.data + 1, text.size - 2);
    if (!(quoted && text.size == 1) && is_default(type, bare, arena))
        return TARN_OK;
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    tarn_type_print(type, &name);
    return tarn_status_new(TARN_SCHEMA_INVALID, "\"%.*s\" can't be the default of %s",
                           (int)TARN_MIN(text.size, (size_t)60), (const char *)text.data,
                           tarn_buf_cstr(&name));
}
