/* Protobuf's wire format, by hand: the few messages this room speaks are small and fixed. */
#include "internal.h"

struct tarn_wire__pb tarn_wire__pb_of(struct tarn_slice bytes)
{
    if (bytes.size == 0)
        return (struct tarn_wire__pb){NULL, NULL, false};
    return (struct tarn_wire__pb){bytes.data, bytes.data + bytes.size, false};
}

static bool read_varint(struct tarn_wire__pb *reader, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (reader->at == reader->end)
            return false;
        uint8_t byte = *reader->at++;
        if (shift == 63 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool read_fixed(struct tarn_wire__pb *reader, size_t size, uint64_t *out)
{
    if ((size_t)(reader->end - reader->at) < size)
        return false;
    *out = 0;
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)reader->at[i] << (8 * i);
    reader->at += size;
    return true;
}

static bool read_bytes(struct tarn_wire__pb *reader, struct tarn_slice *out)
{
    uint64_t size;
    if (!read_varint(reader, &size) || size > (uint64_t)(reader->end - reader->at))
        return false;
    *out = tarn_slice_of(reader->at, (size_t)size);
    reader->at += size;
    return true;
}

static bool read_value(struct tarn_wire__pb *reader, struct tarn_wire__field *out)
{
    switch (out->type) {
    case PB_VARINT:
        return read_varint(reader, &out->value);
    case PB_FIXED64:
        return read_fixed(reader, 8, &out->value);
    case PB_FIXED32:
        return read_fixed(reader, 4, &out->value);
    case PB_BYTES:
        return read_bytes(reader, &out->bytes);
    }
    return false; /* groups are of proto1: nobody sends them */
}

bool tarn_wire__pb_next(struct tarn_wire__pb *reader, struct tarn_wire__field *out)
{
    uint64_t key;

    if (reader->bad || reader->at == reader->end)
        return false;
    *out = (struct tarn_wire__field){0};
    if (!read_varint(reader, &key) || key > UINT32_MAX || key >> 3 == 0) {
        reader->bad = true;
        return false;
    }
    out->number = (uint32_t)(key >> 3);
    out->type = (enum tarn_wire__pb_type)(key & 7);
    if (!read_value(reader, out)) {
        reader->bad = true;
        return false;
    }
    return true;
}

struct tarn_slice tarn_wire__pb_find(struct tarn_slice message, uint32_t field)
{
    struct tarn_wire__pb reader = tarn_wire__pb_of(message);
    struct tarn_wire__field f;
    struct tarn_slice found = {NULL, 0};

    while (tarn_wire__pb_next(&reader, &f))
        if (f.number == field && f.type == PB_BYTES)
            found = f.bytes;
    return found;
}

static void put_varint(struct tarn_buf *out, uint64_t value)
{
    while (value >= 0x80) {
        tarn_buf_add_byte(out, (uint8_t)(value | 0x80));
        value >>= 7;
    }
    tarn_buf_add_byte(out, (uint8_t)value);
}

void tarn_wire__pb_put_number(struct tarn_buf *out, uint32_t field, uint64_t value)
{
    put_varint(out, (uint64_t)field << 3 | PB_VARINT);
    put_varint(out, value);
}

void tarn_wire__pb_put_bytes(struct tarn_buf *out, uint32_t field, struct tarn_slice bytes)
{
    put_varint(out, (uint64_t)field << 3 | PB_BYTES);
    put_varint(out, bytes.size);
    tarn_buf_add_slice(out, bytes);
}

void tarn_wire__pb_put_str(struct tarn_buf *out, uint32_t field, const char *text)
{
    tarn_wire__pb_put_bytes(out, field, tarn_slice_str(text));
}
