/* BinaryRow: written with every type, read with the atomic ones. */
#include "format/row.h"

#include <endian.h>

#define DECIMAL_SLOT_SIZE 16   /* a large decimal's place behind the slots, null or not */
#define COMPACT_DECIMAL_MAX 18 /* precision that fits a slot */
#define COMPACT_TIMESTAMP_MAX 3
#define INLINE_SIZE_MAX 7

static const struct tarn_type multiset_count = {.id = TARN_TYPE_INT, .nullable = false};

static size_t bit_set_size(size_t count)
{
    return (count + 63 + 8) / 64 * 8;
}

/* ---- writing; positions are in the buffer, since it moves as it grows */

static void put_le(struct tarn_buf *out, size_t at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out->data[at + i] = (uint8_t)(value >> (8 * i));
}

static void pad8(struct tarn_buf *out, size_t base)
{
    tarn_buf_add_zeros(out, (8 - (out->size - base) % 8) % 8);
}

static void set_null(struct tarn_buf *out, size_t bits_at, size_t bit)
{
    out->data[bits_at + bit / 8] |= (uint8_t)(1u << (bit % 8));
}

/* Sizes and offsets are 31 bits. Who fills a row holds its values against limits before. */
static void put_reference(struct tarn_buf *out, size_t base, size_t slot, size_t start, size_t low)
{
    tarn_assert(start - base <= INT32_MAX && low <= INT32_MAX);
    put_le(out, slot, (uint64_t)(start - base) << 32 | low, 8);
}

static void put_bytes(struct tarn_buf *out, size_t base, size_t slot, struct tarn_slice bytes)
{
    if (bytes.size <= INLINE_SIZE_MAX) {
        if (bytes.size > 0)
            memcpy(out->data + slot, bytes.data, bytes.size);
        out->data[slot + 7] = (uint8_t)(0x80 | bytes.size);
        return;
    }
    size_t start = out->size;
    tarn_buf_add_slice(out, bytes);
    pad8(out, base);
    put_reference(out, base, slot, start, bytes.size);
}

/* Big-endian two's complement without needless bytes, left aligned in 16. */
static void put_decimal(struct tarn_buf *out, size_t base, size_t slot, __int128 value,
                        bool is_null)
{
    uint8_t bytes[DECIMAL_SLOT_SIZE];
    size_t first = 0;
    size_t start = out->size;

    tarn_buf_add_zeros(out, DECIMAL_SLOT_SIZE);
    if (is_null) {
        put_reference(out, base, slot, start, 0);
        return;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((unsigned __int128)value >> (8 * (sizeof bytes - 1 - i)));
    while (first < sizeof bytes - 1 && ((bytes[first] == 0 && bytes[first + 1] < 0x80) ||
                                        (bytes[first] == 0xff && bytes[first + 1] >= 0x80)))
        first++;
    memcpy(out->data + start, bytes + first, sizeof bytes - first);
    put_reference(out, base, slot, start, sizeof bytes - first);
}

static void put_timestamp(struct tarn_buf *out, size_t base, size_t slot,
                          const struct tarn_value *value)
{
    size_t start = out->size;

    tarn_buf_add_zeros(out, 8);
    put_le(out, start, value->is_null ? 0 : (uint64_t)value->time.ms, 8);
    put_reference(out, base, slot, start, value->is_null ? 0 : (size_t)(uint32_t)value->time.ns);
}

static uint64_t real_bits(const struct tarn_type *type, double real)
{
    uint32_t bits32;
    uint64_t bits64;
    float narrow = (float)real;

    memcpy(&bits32, &narrow, sizeof bits32);
    memcpy(&bits64, &real, sizeof bits64);
    return type->id == TARN_TYPE_FLOAT ? bits32 : bits64;
}

size_t tarn_row_element_size(const struct tarn_type *type)
{
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
    case TARN_TYPE_TINYINT:
        return 1;
    case TARN_TYPE_SMALLINT:
        return 2;
    case TARN_TYPE_INT:
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        return 4;
    default:
        return 8;
    }
}

static bool is_wide_decimal(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_DECIMAL && type->precision > COMPACT_DECIMAL_MAX;
}

static bool is_wide_timestamp(const struct tarn_type *type)
{
    return (type->id == TARN_TYPE_TIMESTAMP || type->id == TARN_TYPE_TIMESTAMP_LTZ) &&
           type->precision > COMPACT_TIMESTAMP_MAX;
}

static void put_array(const struct tarn_type *element, const struct tarn_value *items, size_t count,
                      struct tarn_buf *out);
static void put_nested(const struct tarn_type *type, const struct tarn_value *value,
                       struct tarn_buf *out);

/* One value that is not null into its slot (of tarn_row_element_size in an array, else 8), what does not fit
 * behind. */
static void put_value(const struct tarn_type *type, const struct tarn_value *value, size_t base,
                      size_t slot, struct tarn_buf *out)
{
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        out->data[slot] = value->integer != 0;
        return;
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME: /* the rest of the slot stays zero: no sign extension */
    case TARN_TYPE_BIGINT:
        put_le(out, slot, (uint64_t)value->integer, tarn_row_element_size(type));
        return;
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        put_le(out, slot, real_bits(type, value->real), tarn_row_element_size(type));
        return;
    case TARN_TYPE_DECIMAL:
        if (is_wide_decimal(type))
            put_decimal(out, base, slot, value->decimal, false);
        else
            put_le(out, slot, (uint64_t)value->decimal, 8);
        return;
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        if (is_wide_timestamp(type))
            put_timestamp(out, base, slot, value);
        else
            put_le(out, slot, (uint64_t)value->time.ms, 8);
        return;
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET:
    case TARN_TYPE_ROW:
    case TARN_TYPE_VECTOR:
    case TARN_TYPE_VARIANT: {
        size_t start = out->size;
        put_nested(type, value, out);
        size_t size = out->size - start;
        pad8(out, start);
        put_reference(out, base, slot, start, size);
        return;
    }
    default:
        put_bytes(out, base, slot, value->bytes);
        return;
    }
}

static void put_array(const struct tarn_type *element, const struct tarn_value *items, size_t count,
                      struct tarn_buf *out)
{
    size_t base = out->size;
    size_t size = tarn_row_element_size(element);
    size_t fixed_at = base + 4 + (count + 31) / 32 * 4;

    tarn_assert(count <= INT32_MAX);
    tarn_buf_add_zeros(out, fixed_at - base + count * size);
    put_le(out, base, count, 4);
    pad8(out, base); /* the variable part begins on a multiple of 8 */
    for (size_t i = 0; i < count; i++) {
        if (items[i].is_null)
            set_null(out, base + 4, i);
        else
            put_value(element, &items[i], base, fixed_at + i * size, out);
    }
}

static void put_map(const struct tarn_type *key, const struct tarn_type *item,
                    const struct tarn_value *value, struct tarn_buf *out)
{
    size_t base = out->size;

    tarn_buf_add_zeros(out, 4);
    put_array(key, value->list.keys, value->list.count, out);
    put_le(out, base, out->size - base - 4, 4);
    put_array(item, value->list.items, value->list.count, out);
}

static void put_vector(const struct tarn_type *type, const struct tarn_value *value,
                       struct tarn_buf *out)
{
    size_t base = out->size;
    size_t size = tarn_row_element_size(type->element);

    tarn_buf_add_zeros(out, 4 + value->list.count * size);
    put_le(out, base, value->list.count, 4);
    for (size_t i = 0; i < value->list.count; i++) {
        if (!value->list.items[i].is_null)
            put_value(type->element, &value->list.items[i], base, base + 4 + i * size, out);
    }
}

static void put_row_value(const struct tarn_type *type, const struct tarn_value *value, size_t base,
                          size_t slot, size_t bit, struct tarn_buf *out)
{
    if (!value->is_null) {
        put_value(type, value, base, slot, out);
        return;
    }
    set_null(out, base, 8 + bit);
    if (is_wide_decimal(type)) /* a null of these keeps its place */
        put_decimal(out, base, slot, 0, true);
    else if (is_wide_timestamp(type))
        put_timestamp(out, base, slot, value);
}

static void put_row_type(const struct tarn_type *type, const struct tarn_value *value,
                         struct tarn_buf *out)
{
    static const struct tarn_value null = {.is_null = true};
    size_t base = out->size;
    size_t slots = base + bit_set_size(type->field_count);

    tarn_buf_add_zeros(out, slots - base + 8 * type->field_count);
    for (size_t i = 0; i < type->field_count; i++)
        put_row_value(type->fields[i].type, i < value->list.count ? &value->list.items[i] : &null,
                      base, slots + 8 * i, i, out);
}

/* Recurses over the type, whose depth is at most TARN_TYPE_DEPTH_MAX. */
static void put_nested(const struct tarn_type *type, const struct tarn_value *value,
                       struct tarn_buf *out)
{
    switch (type->id) {
    case TARN_TYPE_ARRAY:
        put_array(type->element, value->list.items, value->list.count, out);
        break;
    case TARN_TYPE_MAP:
        put_map(type->key, type->element, value, out);
        break;
    case TARN_TYPE_MULTISET:
        put_map(type->element, &multiset_count, value, out);
        break;
    case TARN_TYPE_ROW:
        put_row_type(type, value, out);
        break;
    case TARN_TYPE_VECTOR:
        put_vector(type, value, out);
        break;
    default: /* VARIANT: its bytes are what the row holds */
        tarn_buf_add_slice(out, value->bytes);
        break;
    }
}

void tarn_row_encode(const struct tarn_type *const *types, const struct tarn_value *values,
                     size_t count, struct tarn_buf *out)
{
    size_t base = out->size;
    size_t slots = base + bit_set_size(count);

    tarn_buf_add_zeros(out, slots - base + 8 * count);
    for (size_t i = 0; i < count; i++)
        put_row_value(types[i], &values[i], base, slots + 8 * i, i, out);
}

void tarn_row_serialize(const struct tarn_type *const *types, const struct tarn_value *values,
                        size_t count, struct tarn_buf *out)
{
    uint8_t arity[4] = {(uint8_t)(count >> 24), (uint8_t)(count >> 16), (uint8_t)(count >> 8),
                        (uint8_t)count};
    tarn_buf_add(out, arity, sizeof arity);
    tarn_row_encode(types, values, count, out);
}

struct tarn_slice tarn_row_empty(void)
{
    static const uint8_t empty[TARN_ROW_EMPTY_SIZE];
    return tarn_slice_of(empty, sizeof empty);
}

/* ---- reading */

static inline uint64_t get_le(const uint8_t *p, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, p, size);
    return le64toh(value);
}

static double get_real(const struct tarn_type *type, const uint8_t *slot)
{
    float narrow;
    double wide;
    uint32_t bits32 = (uint32_t)get_le(slot, 4);
    uint64_t bits64 = get_le(slot, 8);

    memcpy(&narrow, &bits32, sizeof narrow);
    memcpy(&wide, &bits64, sizeof wide);
    return type->id == TARN_TYPE_FLOAT ? (double)narrow : wide;
}

/* The part of the row that a slot refers to; false where it lies outside. */
static bool get_part(struct tarn_slice row, const uint8_t *slot, size_t size, const uint8_t **out)
{
    size_t offset = (size_t)get_le(slot + 4, 4);
    if (offset > row.size || size > row.size - offset)
        return false;
    *out = row.data + offset;
    return true;
}

static const char *get_decimal(struct tarn_slice row, const uint8_t *slot, __int128 *out)
{
    const uint8_t *bytes;
    size_t size = (size_t)get_le(slot, 4);

    if (size == 0 || size > DECIMAL_SLOT_SIZE || !get_part(row, slot, size, &bytes))
        return "a decimal outside the row";
    unsigned __int128 value = bytes[0] >= 0x80 ? ~(unsigned __int128)0 : 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | bytes[i];
    *out = (__int128)value;
    return NULL;
}

static const char *get_timestamp(struct tarn_slice row, const uint8_t *slot, struct tarn_value *out)
{
    const uint8_t *bytes;
    uint64_t ns = get_le(slot, 4);

    if (ns > 999999)
        return "a timestamp with more than 999999 nanoseconds";
    if (!get_part(row, slot, 8, &bytes))
        return "a timestamp outside the row";
    out->time.ms = (int64_t)get_le(bytes, 8);
    out->time.ns = (int32_t)ns;
    return NULL;
}

static const char *get_bytes(struct tarn_slice row, const uint8_t *slot, struct tarn_slice *out)
{
    const uint8_t *bytes;

    if ((slot[7] & 0x80) != 0) {
        size_t size = slot[7] & 0x7f;
        *out = tarn_slice_of(slot, size);
        return size <= INLINE_SIZE_MAX ? NULL : "more than seven bytes in a slot";
    }
    size_t size = (size_t)get_le(slot, 4);
    if (!get_part(row, slot, size, &bytes))
        return "bytes outside the row";
    *out = tarn_slice_of(bytes, size);
    return NULL;
}

/* NULL, or what is wrong. */
static const char *get_value(const struct tarn_type *type, struct tarn_slice row,
                             const uint8_t *slot, struct tarn_value *out)
{
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        out->integer = slot[0] != 0;
        return NULL;
    case TARN_TYPE_TINYINT:
        out->integer = (int8_t)slot[0];
        return NULL;
    case TARN_TYPE_SMALLINT:
        out->integer = (int16_t)get_le(slot, 2);
        return NULL;
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        out->integer = (int32_t)get_le(slot, 4);
        return NULL;
    case TARN_TYPE_BIGINT:
        out->integer = (int64_t)get_le(slot, 8);
        return NULL;
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        out->real = get_real(type, slot);
        return NULL;
    case TARN_TYPE_DECIMAL:
        if (is_wide_decimal(type))
            return get_decimal(row, slot, &out->decimal);
        out->decimal = (int64_t)get_le(slot, 8);
        return NULL;
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        if (is_wide_timestamp(type))
            return get_timestamp(row, slot, out);
        out->time.ms = (int64_t)get_le(slot, 8);
        out->time.ns = 0;
        return NULL;
    default:
        if (!tarn_type_is_nested(type))
            return get_bytes(row, slot, &out->bytes);
        out->is_null = true;
        return NULL;
    }
}

struct tarn_status *tarn_row_deserialize(struct tarn_slice in, const struct tarn_type *const *types,
                                         size_t count, struct tarn_value *values)
{
    if (in.size < 4)
        return tarn_status_new(TARN_ROW_MALFORMED, "a row of %zu bytes has no arity", in.size);
    uint32_t arity = (uint32_t)in.data[0] << 24 | (uint32_t)in.data[1] << 16 |
                     (uint32_t)in.data[2] << 8 | in.data[3];
    if (arity != count)
        return tarn_status_new(TARN_ROW_MALFORMED, "the row has %" PRIu32 " fields, expected %zu",
                               arity, count);
    struct tarn_slice row = tarn_slice_of(in.data + 4, in.size - 4);
    size_t slots = bit_set_size(count); /* count is 32 bits: no overflow */
    if (row.size < slots + 8 * count)
        return tarn_status_new(TARN_ROW_MALFORMED, "the row has %zu bytes, expected at least %zu",
                               row.size, slots + 8 * count);
    for (size_t i = 0; i < count; i++) {
        struct tarn_value value = {.is_null = (row.data[(8 + i) / 8] >> ((8 + i) % 8) & 1) != 0};
        const char *wrong =
            value.is_null ? NULL : get_value(types[i], row, row.data + slots + 8 * i, &value);
        if (wrong != NULL)
            return tarn_status_new(TARN_ROW_MALFORMED, "field %zu holds %s", i, wrong);
        values[i] = value;
    }
    return TARN_OK;
}
