/* Values compared and printed. */
#include "format/value_internal.h"

#include <math.h>

/* ---- comparison */

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Total order: -Infinity < … < -0.0 < 0.0 < … < Infinity < NaN, every NaN the same. */
static int compare_real(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (isnan(a) != 0) - (isnan(b) != 0);
    if (a == b)
        return (signbit(a) == 0) - (signbit(b) == 0);
    return a < b ? -1 : 1;
}

int tarn_value_compare(const struct tarn_type *type, const struct tarn_value *a,
                       const struct tarn_value *b)
{
    if (a->is_null || b->is_null)
        return (int)b->is_null - (int)a->is_null;
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_BIGINT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        return compare_i64(a->integer, b->integer);
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        return compare_real(a->real, b->real);
    case TARN_TYPE_DECIMAL:
        return (a->decimal > b->decimal) - (a->decimal < b->decimal);
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ: {
        int c = compare_i64(a->time.ms, b->time.ms);
        return c != 0 ? c : compare_i64(a->time.ns, b->time.ns);
    }
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
    case TARN_TYPE_BLOB:
    case TARN_TYPE_GEOMETRY:
    case TARN_TYPE_GEOGRAPHY: {
        int c = tarn_slice_compare(a->bytes, b->bytes);
        return (c > 0) - (c < 0);
    }
    default: /* no order: all the same */
        return 0;
    }
}

/* ---- printing */

size_t tarn_format__utf8_next(struct tarn_slice s, uint32_t *code)
{
    uint8_t first = s.data[0];
    size_t size = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;

    *code = size == 1 ? first : first & (0x7fu >> size);
    if (size > s.size)
        size = 1;
    for (size_t i = 1; i < size; i++) {
        if ((s.data[i] & 0xc0) != 0x80)
            return i;
        *code = *code << 6 | (s.data[i] & 0x3f);
    }
    return size;
}

static void print_json_text(struct tarn_slice text, struct tarn_buf *out)
{
    bool valid = tarn_utf8_valid(text);

    tarn_buf_add_byte(out, '"');
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c == '"' || c == '\\')
            tarn_buf_printf(out, "\\%c", c);
        else if (c < 0x20)
            tarn_buf_printf(out, "\\u%04x", c);
        else if (c >= 0x80 && !valid)
            tarn_buf_add_str(out, "\xef\xbf\xbd");
        else
            tarn_buf_add_byte(out, c);
    }
    tarn_buf_add_byte(out, '"');
}

static void print_timestamp(const struct tarn_value *value, struct tarn_buf *out)
{
    int64_t days, nanos;

    tarn_format__split_timestamp(value->time.ms, value->time.ns, &days, &nanos);
    tarn_format__print_date(days, out);
    tarn_buf_add_byte(out, ' ');
    tarn_format__print_clock(nanos, 0, out);
}

static void print_atomic(const struct tarn_type *type, const struct tarn_value *value,
                         struct tarn_buf *out)
{
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        tarn_buf_add_str(out, value->integer != 0 ? "true" : "false");
        break;
    case TARN_TYPE_DATE:
        tarn_format__print_date(value->integer, out);
        break;
    case TARN_TYPE_TIME: /* the day's remainder, whatever a damaged file says */
        tarn_format__print_clock(tarn_format__floor_mod(value->integer, TARN_MS_PER_DAY) * 1000000,
                                 0, out);
        break;
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        tarn_format__print_real(value->real, type->id == TARN_TYPE_FLOAT, out);
        break;
    case TARN_TYPE_DECIMAL:
        tarn_format__print_decimal(value->decimal, type->scale, out);
        break;
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        print_timestamp(value, out);
        break;
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
        tarn_buf_add_slice(out, value->bytes);
        break;
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_BIGINT:
        tarn_buf_printf(out, "%" PRId64, value->integer);
        break;
    default:
        tarn_base64_encode(value->bytes, out);
        break;
    }
}

static void print_json(const struct tarn_type *type, const struct tarn_value *value,
                       struct tarn_buf *out);

static bool is_text(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_CHAR || type->id == TARN_TYPE_VARCHAR;
}

/* JSON knows these without quotes. */
static bool is_json_word(const struct tarn_type *type, const struct tarn_value *value)
{
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_BIGINT:
    case TARN_TYPE_DECIMAL:
        return true;
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        return isfinite(value->real) != 0;
    default:
        return false;
    }
}

static int by_bytes(const void *a, const void *b)
{
    return tarn_slice_compare(*(const struct tarn_slice *)a, *(const struct tarn_slice *)b);
}

/* Never in what we take ourselves, but in others' files. */
static bool has_key_twice(const struct tarn_value *value)
{
    size_t count = value->list.count, twice = 0;
    if (count < 2)
        return false;
    struct tarn_slice *all = tarn_calloc(count, sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = value->list.keys[i].bytes;
    qsort(all, count, sizeof *all, by_bytes);
    for (size_t i = 1; i < count; i++)
        twice += tarn_slice_equal(all[i - 1], all[i]);
    free(all);
    return twice > 0;
}

/* An object where every key is a text and no two are alike, else a list of pairs. */
static void print_map(const struct tarn_type *key_type, const struct tarn_type *item_type,
                      const struct tarn_value *value, struct tarn_buf *out)
{
    bool object = is_text(key_type);

    for (size_t i = 0; i < value->list.count; i++)
        object = object && !value->list.keys[i].is_null;
    object = object && !has_key_twice(value);
    tarn_buf_add_byte(out, object ? '{' : '[');
    for (size_t i = 0; i < value->list.count; i++) {
        tarn_buf_add_str(out, i > 0 ? ", " : "");
        tarn_buf_add_str(out, object ? "" : "[");
        print_json(key_type, &value->list.keys[i], out);
        tarn_buf_add_str(out, object ? ": " : ", ");
        print_json(item_type, &value->list.items[i], out);
        tarn_buf_add_str(out, object ? "" : "]");
    }
    tarn_buf_add_byte(out, object ? '}' : ']');
}

static void print_list(const struct tarn_type *type, const struct tarn_value *value,
                       struct tarn_buf *out)
{
    tarn_buf_add_byte(out, '[');
    for (size_t i = 0; i < value->list.count; i++) {
        tarn_buf_add_str(out, i > 0 ? ", " : "");
        print_json(type->element, &value->list.items[i], out);
    }
    tarn_buf_add_byte(out, ']');
}

static void print_row(const struct tarn_type *type, const struct tarn_value *value,
                      struct tarn_buf *out)
{
    tarn_buf_add_byte(out, '{');
    for (size_t i = 0; i < type->field_count && i < value->list.count; i++) {
        tarn_buf_add_str(out, i > 0 ? ", " : "");
        print_json_text(type->fields[i].name, out);
        tarn_buf_add_str(out, ": ");
        print_json(type->fields[i].type, &value->list.items[i], out);
    }
    tarn_buf_add_byte(out, '}');
}

/* Recurses over the type, whose depth is at most TARN_TYPE_DEPTH_MAX. */
static void print_json(const struct tarn_type *type, const struct tarn_value *value,
                       struct tarn_buf *out)
{
    static const struct tarn_type multiset_count = {.id = TARN_TYPE_INT};

    if (value->is_null) {
        tarn_buf_add_str(out, "null");
        return;
    }
    switch (type->id) {
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_VECTOR:
        print_list(type, value, out);
        return;
    case TARN_TYPE_MAP:
        print_map(type->key, type->element, value, out);
        return;
    case TARN_TYPE_MULTISET:
        print_map(type->element, &multiset_count, value, out);
        return;
    case TARN_TYPE_ROW:
        print_row(type, value, out);
        return;
    default:
        break;
    }
    if (is_text(type)) {
        print_json_text(value->bytes, out);
        return;
    }
    bool quoted = !is_json_word(type, value);
    tarn_buf_add_str(out, quoted ? "\"" : "");
    print_atomic(type, value, out);
    tarn_buf_add_str(out, quoted ? "\"" : "");
}

void tarn_value_print(const struct tarn_type *type, const struct tarn_value *value,
                      struct tarn_buf *out)
{
    if (value->is_null)
        tarn_buf_add_str(out, "null");
    else if (tarn_type_is_nested(type) && type->id != TARN_TYPE_VARIANT)
        print_json(type, value, out);
    else
        print_atomic(type, value, out);
}
