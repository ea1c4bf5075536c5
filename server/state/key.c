#include "state/state.h"

/* Strings inside a key: a zero byte is written 00 ff, the end 00 00, so that a shorter string comes
 * first and whatever follows it in the key doesn't mix with it. */
#define ESCAPE 0x00
#define ESCAPED_ZERO 0xff
#define END 0x00

void tarn_key_add_u64(struct tarn_buf *key, uint64_t value)
{
    uint8_t bytes[8];
    for (int i = 7; i >= 0; i--, value >>= 8)
        bytes[i] = (uint8_t)value;
    tarn_buf_add(key, bytes, sizeof bytes);
}

void tarn_key_add_i64(struct tarn_buf *key, int64_t value)
{
    tarn_key_add_u64(key, (uint64_t)value ^ (UINT64_C(1) << 63));
}

void tarn_key_add_bytes(struct tarn_buf *key, struct tarn_slice bytes)
{
    tarn_buf_reserve(key, bytes.size * 2 + 2);
    uint8_t *to = key->data + key->size;
    for (const uint8_t *at = bytes.data, *end = at + bytes.size; at < end;) {
        if (*at == ESCAPE) { /* rows of few columns are mostly zeros */
            *to++ = ESCAPE;
            *to++ = ESCAPED_ZERO;
            at++;
            continue;
        }
        const uint8_t *zero = memchr(at, ESCAPE, (size_t)(end - at));
        size_t plain = (size_t)((zero == NULL ? end : zero) - at);
        memcpy(to, at, plain);
        to += plain;
        at += plain;
    }
    *to++ = ESCAPE;
    *to++ = END;
    key->size = (size_t)(to - key->data);
}

bool tarn_key_take_u64(struct tarn_slice *key, uint64_t *out)
{
    uint64_t value = 0;
    if (key->size < 8)
        return false;
    for (int i = 0; i < 8; i++)
        value = value << 8 | key->data[i];
    *key = tarn_slice_of(key->data + 8, key->size - 8);
    *out = value;
    return true;
}

bool tarn_key_take_i64(struct tarn_slice *key, int64_t *out)
{
    uint64_t value;
    if (!tarn_key_take_u64(key, &value))
        return false;
    *out = (int64_t)(value ^ (UINT64_C(1) << 63));
    return true;
}

bool tarn_key_take_bytes(struct tarn_slice *key, struct tarn_buf *out)
{
    size_t size_before = out->size;
    struct tarn_slice rest = *key;
    while (rest.size > 0) {
        const uint8_t *mark = memchr(rest.data, ESCAPE, rest.size);
        size_t plain = mark == NULL ? rest.size : (size_t)(mark - rest.data);
        if (rest.size - plain < 2 || (mark[1] != END && mark[1] != ESCAPED_ZERO))
            break;
        tarn_buf_add(out, rest.data, plain);
        rest = tarn_slice_of(mark + 2, rest.size - plain - 2);
        if (mark[1] == END) {
            *key = rest;
            return true;
        }
        tarn_buf_add_byte(out, 0);
    }
    out->size = size_before; /* malformed: nothing taken, nothing given */
    return false;
}
