#include "base/fields.h"

#include <endian.h>

/* Up to eight bytes at once: the one that ends the number is found by its clear top bit, and the groups of seven bits
 * are pushed together in three steps. */
static bool take_within_word(const uint8_t **at, uint64_t *out)
{
    uint64_t word;
    memcpy(&word, *at, sizeof word);
    word = le64toh(word);
    uint64_t ends = ~word & UINT64_C(0x8080808080808080);
    if (ends == 0)
        return false;
    *at += __builtin_ctzll(ends) / 8 + 1;
    word &= ends ^ (ends - 1); /* up to the top bit of the last one, which is clear */
    word &= UINT64_C(0x7f7f7f7f7f7f7f7f);
    word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
    word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
    *out = (word & UINT64_C(0x000000000fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
    return true;
}

bool tarn_take_long_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    const uint8_t *from = *at;
    uint64_t value = 0;
    if (end - from >= 8 && take_within_word(at, out))
        return true;
    for (int shift = 0; from < end && shift < 64; shift += 7) {
        uint8_t byte = *from++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *at = from;
            *out = value;
            return true;
        }
    }
    return false;
}
