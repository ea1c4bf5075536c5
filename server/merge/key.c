/*
 * key - normalized keys: bytes whose unsigned order is the order of the keys.
 *
 * Shape    per column: a byte 0 (null) or 1 where it may be null, then the value: integers, dates,
 *          timestamps and decimals big-endian with the sign turned over (decimals of up to 18 digits in 8
 *          bytes, else 16); floats by their bits in total order, all NaN alike; text and binary with 00
 *          written 00 ff and an end 00 00, which the last column does without. descending: the
 *          value's bytes are inverted, the null byte isn't (format.md 7.6).
 *
 * Most keys are one integer: 8 bytes hold it, and the prefix alone is the key (`exact`). One NOT NULL text
 * uses the batch's own bytes. What is left is written once per batch, column by column.
 */
#include "merge/internal.h"

#define DECIMAL_SMALL_PRECISION 18 /* fits into 8 bytes */

static bool is_bytes(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_CHAR || type->id == TARN_TYPE_VARCHAR ||
           type->id == TARN_TYPE_BINARY || type->id == TARN_TYPE_VARBINARY;
}

/* Bytes of an encoded value without its null byte; 0: varies. */
static uint32_t encoded_width(const struct tarn_type *type)
{
    if (type->id == TARN_TYPE_BOOLEAN)
        return 1;
    if (type->id == TARN_TYPE_DECIMAL)
        return type->precision <= DECIMAL_SMALL_PRECISION ? 8 : 16;
    return (uint32_t)tarn_merge__type_width(type);
}

void tarn_merge__key_spec_init(struct tarn_merge_key_spec *spec,
                               const struct tarn_merge_key_column *columns, size_t count)
{
    uint32_t size = 0;
    bool varies = false;

    for (size_t i = 0; i < count; i++) {
        varies = varies || is_bytes(columns[i].type);
        size += encoded_width(columns[i].type) + (columns[i].type->nullable ? 1 : 0);
    }
    *spec = (struct tarn_merge_key_spec){
        .columns = columns,
        .column_count = count,
        .exact = !varies && size <= 8,
        .fixed_size = varies ? 0 : size,
        .borrowed = count == 1 && is_bytes(columns[0].type) && !columns[0].type->nullable &&
                    !columns[0].descending,
    };
}

void tarn_merge__keys_drop(struct tarn_merge_keys *keys)
{
    free(keys->prefix);
    free(keys->owned_bytes);
    free(keys->owned_offsets);
    *keys = (struct tarn_merge_keys){0};
}

static const int32_t *offsets_of(const struct ArrowArray *a)
{
    return (const int32_t *)a->buffers[1] + a->offset;
}

/* --- values of a column as numbers in unsigned order, right aligned in 64 bits --- */

static inline uint64_t order_f64(double value)
{
    uint64_t bits;
    if (value != value)
        return UINT64_C(0xfff8000000000000); /* positive quiet NaN, sign turned over */
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 != 0 ? ~bits : bits | UINT64_C(1) << 63;
}

static inline uint32_t order_f32(float value)
{
    uint32_t bits;
    if (value != value)
        return 0xffc00000u;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 31 != 0 ? ~bits : bits | UINT32_C(1) << 31;
}

#define EACH(expression)                                                                           \
    for (int64_t i = 0; i < n; i++)                                                                \
    to[i] = (uint64_t)(expression)

static void load_small(const struct ArrowArray *a, const struct tarn_type *type, uint64_t *to)
{
    const int64_t n = a->length;
    const void *data = a->buffers[1];

    switch (type->id) {
    case TARN_TYPE_BOOLEAN: {
        const uint8_t *bits = data;
        EACH(bits[(i + a->offset) >> 3] >> ((i + a->offset) & 7) & 1);
        break;
    }
    case TARN_TYPE_TINYINT: {
        const uint8_t *v = (const uint8_t *)data + a->offset;
        EACH((uint8_t)(v[i] ^ 0x80));
        break;
    }
    case TARN_TYPE_SMALLINT: {
        const uint16_t *v = (const uint16_t *)data + a->offset;
        EACH((uint16_t)(v[i] ^ 0x8000));
        break;
    }
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME: {
        const uint32_t *v = (const uint32_t *)data + a->offset;
        EACH(v[i] ^ UINT32_C(0x80000000));
        break;
    }
    case TARN_TYPE_FLOAT: {
        const float *v = (const float *)data + a->offset;
        EACH(order_f32(v[i]));
        break;
    }
    case TARN_TYPE_DOUBLE: {
        const double *v = (const double *)data + a->offset;
        EACH(order_f64(v[i]));
        break;
    }
    case TARN_TYPE_DECIMAL: { /* up to 18 digits: the low half says all */
        const uint64_t *v = (const uint64_t *)data + 2 * a->offset;
        EACH(v[2 * i] ^ UINT64_C(1) << 63);
        break;
    }
    default: { /* BIGINT, TIMESTAMP, TIMESTAMP_LTZ */
        const uint64_t *v = (const uint64_t *)data + a->offset;
        EACH(v[i] ^ UINT64_C(1) << 63);
        break;
    }
    }
}

static inline uint64_t mask_of(uint32_t width)
{
    return width == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * width)) - 1;
}

/* --- keys that fit into the prefix --- */

/* Shifts the column in behind what is there: one pass a column. */
static void push_exact(const struct tarn_merge_key_column *column, const struct ArrowArray *a,
                       uint64_t *scratch, uint64_t *prefix)
{
    const uint32_t width = encoded_width(column->type);
    const uint64_t flip = column->descending ? mask_of(width) : 0;
    const int64_t n = a->length;

    load_small(a, column->type, scratch);
    if (width == 8) { /* the only column, and NOT NULL */
        for (int64_t i = 0; i < n; i++)
            prefix[i] = scratch[i] ^ flip;
        return;
    }
    if (!column->type->nullable) {
        for (int64_t i = 0; i < n; i++)
            prefix[i] = prefix[i] << (8 * width) | (scratch[i] ^ flip);
        return;
    }
    /* Null byte 1 and the value, or 0 and zeros. */
    for (int64_t i = 0; i < n; i++) {
        uint64_t value =
            tarn_column_is_null(a, i) ? 0 : (scratch[i] ^ flip) | UINT64_C(1) << (8 * width);
        prefix[i] = prefix[i] << (8 * (width + 1)) | value;
    }
}

static void build_exact(const struct tarn_merge_key_spec *spec, const struct tarn_batch *batch,
                        struct tarn_merge_keys *keys)
{
    size_t n = (size_t)batch->row_count;
    uint64_t *scratch = tarn_alloc((n + 1) * sizeof *scratch);

    memset(keys->prefix, 0, n * sizeof *keys->prefix);
    for (size_t c = 0; c < spec->column_count; c++)
        push_exact(&spec->columns[c], tarn_batch_column(batch, spec->columns[c].column), scratch,
                   keys->prefix);
    free(scratch);
}

/* --- keys with bytes behind the prefix --- */

static inline uint64_t load_prefix(const uint8_t *bytes, size_t size)
{
    uint64_t v = 0;

    if (size >= 8) {
        memcpy(&v, bytes, 8);
        return __builtin_bswap64(v);
    }
    for (size_t i = 0; i < size; i++)
        v |= (uint64_t)bytes[i] << (56 - 8 * i);
    return v;
}

static void load_prefixes(struct tarn_merge_keys *keys, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        keys->prefix[i] =
            load_prefix(keys->bytes + keys->offsets[i], keys->offsets[i + 1] - keys->offsets[i]);
}

static void build_borrowed(const struct tarn_merge_key_spec *spec, const struct tarn_batch *batch,
                           struct tarn_merge_keys *keys)
{
    static const uint8_t nothing[1];
    const struct ArrowArray *a = tarn_batch_column(batch, spec->columns[0].column);

    keys->bytes = a->buffers[2] == NULL ? nothing : a->buffers[2];
    keys->offsets = (const uint32_t *)offsets_of(a); /* canonical offsets are never negative */
    load_prefixes(keys, batch->row_count);
}

/* Bytes of an escaped text: 00 becomes two. */
static size_t escaped_size(const uint8_t *data, size_t size)
{
    size_t extra = 0;
    const uint8_t *end = data + size;

    for (const uint8_t *p = data; p < end && (p = memchr(p, 0, (size_t)(end - p))) != NULL; p++)
        extra++;
    return size + extra;
}

static uint8_t *escape(const uint8_t *data, size_t size, uint8_t *to)
{
    for (size_t i = 0; i < size; i++) {
        *to++ = data[i];
        if (data[i] == 0)
            *to++ = 0xff;
    }
    return to;
}

/* Is the text written as it lies, its end being the key's? */
static bool is_open_ended(const struct tarn_merge_key_spec *spec, size_t column)
{
    return column + 1 == spec->column_count && !spec->columns[column].descending;
}

/* Adds each row's size of this column to sizes[]. */
static void add_sizes(const struct tarn_merge_key_spec *spec, size_t c, const struct ArrowArray *a,
                      size_t *sizes)
{
    const struct tarn_type *type = spec->columns[c].type;
    const bool open = is_open_ended(spec, c), bytes = is_bytes(type);
    const int32_t *offsets = bytes && a->length > 0 ? offsets_of(a) : NULL;
    const uint8_t *data = bytes ? a->buffers[2] : NULL;

    for (int64_t i = 0; i < a->length; i++) {
        sizes[i] += type->nullable ? 1 : 0;
        if (!bytes) {
            sizes[i] += encoded_width(type); /* nulls too: zeros */
        } else if (!tarn_column_is_null(a, i)) {
            size_t size = (size_t)(offsets[i + 1] - offsets[i]);
            sizes[i] += open || size == 0 ? size : escaped_size(data + offsets[i], size);
            sizes[i] += open ? 0 : 2;
        }
    }
}

static void invert(uint8_t *from, const uint8_t *to)
{
    for (; from < to; from++)
        *from = (uint8_t) ~*from;
}

static uint8_t *put_bytes(const struct ArrowArray *a, int64_t row, bool open, uint8_t *to)
{
    const int32_t *offsets = offsets_of(a) + row;
    const uint8_t *data = (const uint8_t *)a->buffers[2] + offsets[0];
    size_t size = (size_t)(offsets[1] - offsets[0]);

    if (open) {
        if (size > 0)
            memcpy(to, data, size);
        return to + size;
    }
    to = escape(data, size, to);
    *to++ = 0;
    *to++ = 0;
    return to;
}

static inline uint8_t *put_big_endian(uint64_t value, uint32_t width, uint8_t *to)
{
    for (uint32_t i = 0; i < width; i++)
        to[i] = (uint8_t)(value >> (8 * (width - 1 - i)));
    return to + width;
}

/* A decimal of more than 18 digits. */
static uint8_t *put_wide(const struct ArrowArray *a, int64_t row, uint8_t *to)
{
    const uint64_t *v = (const uint64_t *)a->buffers[1] + 2 * (a->offset + row);

    to = put_big_endian(v[1] ^ UINT64_C(1) << 63, 8, to);
    return put_big_endian(v[0], 8, to);
}

/* Writes the column of every row at at[row], and moves that on. */
static void put_column(const struct tarn_merge_key_spec *spec, size_t c, const struct ArrowArray *a,
                       const uint64_t *small, uint8_t *bytes, uint32_t *at)
{
    const struct tarn_merge_key_column *column = &spec->columns[c];
    const uint32_t width = encoded_width(column->type);
    const bool text = is_bytes(column->type), open = is_open_ended(spec, c);

    for (int64_t i = 0; i < a->length; i++) {
        uint8_t *to = bytes + at[i], *value;

        if (column->type->nullable) {
            bool null = tarn_column_is_null(a, i);
            *to++ = null ? 0 : 1;
            if (null) {
                memset(to, 0, width);
                at[i] = (uint32_t)(to + width - bytes);
                continue;
            }
        }
        value = to;
        if (text)
            to = put_bytes(a, i, open, to);
        else
            to = width == 16 ? put_wide(a, i, to) : put_big_endian(small[i], width, to);
        if (column->descending)
            invert(value, to);
        at[i] = (uint32_t)(to - bytes);
    }
}

static struct tarn_status *place_keys(const struct tarn_merge_key_spec *spec,
                                      const struct tarn_batch *batch, uint32_t **out)
{
    size_t n = (size_t)batch->row_count, total = 0;
    size_t *sizes = tarn_calloc(n + 1, sizeof *sizes);
    uint32_t *offsets = tarn_alloc((n + 1) * sizeof *offsets);

    for (size_t c = 0; c < spec->column_count; c++)
        add_sizes(spec, c, tarn_batch_column(batch, spec->columns[c].column), sizes);
    for (size_t i = 0; i < n; i++) {
        offsets[i] = (uint32_t)total;
        total += sizes[i];
        if (total > UINT32_MAX)
            break;
    }
    free(sizes);
    if (total > UINT32_MAX) {
        free(offsets);
        return tarn_status_new(TARN_TOO_LARGE, "the keys of %zu rows take more than 4 GiB", n);
    }
    offsets[n] = (uint32_t)total;
    *out = offsets;
    return TARN_OK;
}

static struct tarn_status *build_bytes(const struct tarn_merge_key_spec *spec,
                                       const struct tarn_batch *batch, struct tarn_merge_keys *keys)
{
    size_t n = (size_t)batch->row_count;
    uint32_t *offsets = NULL;
    TARN_TRY(place_keys(spec, batch, &offsets));

    uint8_t *bytes = tarn_alloc((size_t)offsets[n] + 1);
    uint32_t *at = tarn_alloc((n + 1) * sizeof *at);
    uint64_t *small = tarn_alloc((n + 1) * sizeof *small);
    memcpy(at, offsets, n * sizeof *at);
    for (size_t c = 0; c < spec->column_count; c++) {
        const struct ArrowArray *a = tarn_batch_column(batch, spec->columns[c].column);
        const uint32_t width = encoded_width(spec->columns[c].type);
        if (width > 0 && width <= 8)
            load_small(a, spec->columns[c].type, small);
        put_column(spec, c, a, small, bytes, at);
    }
    free(at);
    free(small);
    keys->bytes = keys->owned_bytes = bytes;
    keys->offsets = keys->owned_offsets = offsets;
    load_prefixes(keys, batch->row_count);
    return TARN_OK;
}

struct tarn_status *tarn_merge__keys_build(const struct tarn_merge_key_spec *spec,
                                           const struct tarn_batch *batch,
                                           struct tarn_merge_keys *out)
{
    struct tarn_merge_keys keys = {0};

    for (size_t c = 0; c < spec->column_count; c++) {
        if (!spec->columns[c].type->nullable &&
            tarn_merge__has_nulls(tarn_batch_column(batch, spec->columns[c].column)))
            return tarn_status_new(TARN_DATA_FILE_MALFORMED,
                                   "a null in key column %zu, which is NOT NULL", c + 1);
    }
    keys.prefix = tarn_alloc(((size_t)batch->row_count + 1) * sizeof *keys.prefix);
    if (spec->exact) {
        build_exact(spec, batch, &keys);
    } else if (spec->borrowed) {
        build_borrowed(spec, batch, &keys);
    } else {
        struct tarn_status *s = build_bytes(spec, batch, &keys);
        if (s != TARN_OK) {
            tarn_merge__keys_drop(&keys);
            return s;
        }
    }
    *out = keys;
    return TARN_OK;
}
