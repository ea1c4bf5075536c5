/*
 * fields - the wire format of protocol buffers, for what is written and read by hand: messages of which a plan has a
 * million, where a library's objects would cost ten times as much.
 *
 * Shape    a message is fields one after the other, in any order, each a key (number and type) and a value.
 * Threads  any; nothing here waits.
 * Errors   false: the bytes are no fields. What is taken points into the bytes.
 * Source   protobuf.dev, "Encoding"; held against the library by test/unit/rpc/file_bytes_test.c.
 */
#ifndef TARN_BASE_FIELDS_H
#define TARN_BASE_FIELDS_H

#include <string.h>

#include "base/memory.h"
#include "base/slice.h"

#define TARN_FIELD_ROOM 20 /* a key and a number or size are at most as large */

enum tarn_field_form {
    TARN_FORM_VARINT = 0,
    TARN_FORM_FIXED64 = 1,
    TARN_FORM_BYTES = 2,
    TARN_FORM_FIXED32 = 5
};

/* --- writing: at `to`, where there is room; what is behind it comes back --- */

static inline size_t tarn_varint_size(uint64_t value)
{
    return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}

static inline uint8_t *tarn_put_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

static inline uint8_t *tarn_put_key(uint8_t *to, uint32_t number, enum tarn_field_form form)
{
    return tarn_put_varint(to, (uint64_t)number << 3 | form);
}

static inline uint8_t *tarn_put_number(uint8_t *to, uint32_t number, int64_t value)
{
    return tarn_put_varint(tarn_put_key(to, number, TARN_FORM_VARINT), (uint64_t)value);
}

static inline uint8_t *tarn_put_bytes(uint8_t *to, uint32_t number, struct tarn_slice bytes)
{
    to = tarn_put_varint(tarn_put_key(to, number, TARN_FORM_BYTES), bytes.size);
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    return to + bytes.size;
}

/* As proto3 has it: what is 0 or empty isn't said. */
static inline uint8_t *tarn_put_some_number(uint8_t *to, uint32_t number, int64_t value)
{
    return value == 0 ? to : tarn_put_number(to, number, value);
}

static inline uint8_t *tarn_put_some_bytes(uint8_t *to, uint32_t number, struct tarn_slice bytes)
{
    return bytes.size == 0 ? to : tarn_put_bytes(to, number, bytes);
}

/* --- reading --- */

struct tarn_taken_field {
    uint32_t number;
    enum tarn_field_form form;
    uint64_t value;          /* VARINT */
    struct tarn_slice bytes; /* all others */
};

/* Most numbers are one byte: those are taken where this is called. */
bool tarn_take_long_varint(const uint8_t **at, const uint8_t *end, uint64_t *out);

static inline bool tarn_take_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    const uint8_t *from = *at;
    if (from == end || *from >= 0x80)
        return tarn_take_long_varint(at, end, out);
    *out = *from;
    *at = from + 1;
    return true;
}

/* False: at the end (*at == end), or malformed. */
TARN_INLINE bool tarn_take_field(const uint8_t **at, const uint8_t *end,
                                 struct tarn_taken_field *out)
{
    uint64_t key, size;
    out->value = 0;
    if (!tarn_take_varint(at, end, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX)
        return false;
    out->number = (uint32_t)(key >> 3);
    out->form = (enum tarn_field_form)(key & 7);
    switch (out->form) {
    case TARN_FORM_VARINT:
        return tarn_take_varint(at, end, &out->value);
    case TARN_FORM_BYTES:
        if (!tarn_take_varint(at, end, &size))
            return false;
        break;
    case TARN_FORM_FIXED64:
    case TARN_FORM_FIXED32:
        size = out->form == TARN_FORM_FIXED64 ? 8 : 4;
        break;
    default:
        return false;
    }
    if (size > (uint64_t)(end - *at))
        return false;
    out->bytes = tarn_slice_of(*at, (size_t)size);
    *at += size;
    return true;
}

/* How often these fields of bytes occur: lists are counted before room is made for them. False: malformed. */
static inline bool tarn_count_fields(struct tarn_slice message, uint32_t a, uint32_t b,
                                     size_t *a_count, size_t *b_count)
{
    const uint8_t *at = message.data, *end = at + message.size;
    struct tarn_taken_field f;
    *a_count = *b_count = 0;
    while (at < end) {
        if (!tarn_take_field(&at, end, &f))
            return false;
        *a_count += f.number == a && f.form == TARN_FORM_BYTES;
        *b_count += f.number == b && f.form == TARN_FORM_BYTES;
    }
    return true;
}

#endif
