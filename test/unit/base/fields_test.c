/* Numbers of the wire format of protocol buffers are read as protobuf.dev's "Encoding" has them, whatever their length and
 * however little lies behind them; what is cut off or has no end is refused, and nothing behind the end is read. */
#include "base/fields.h"
#include "lib/test.h"

/* In memory of just this size, so that a sanitizer sees a byte too far. */
static bool take(const uint8_t *bytes, size_t size, uint64_t *out, size_t *taken)
{
    uint8_t *copy = tarn_alloc(size + (size == 0));
    memcpy(copy, bytes, size);
    const uint8_t *at = copy;
    bool good = tarn_take_varint(&at, copy + size, out);
    *taken = (size_t)(at - copy);
    free(copy);
    return good;
}

TARN_TEST(fields, known_numbers)
{
    static const struct {
        uint64_t value;
        uint8_t bytes[11];
        size_t size;
    } known[] = {
        {0, {0}, 1},
        {1, {1}, 1},
        {127, {0x7f}, 1},
        {128, {0x80, 1}, 2},
        {150, {0x96, 1}, 2}, /* the example of "Encoding" */
        {300, {0xac, 2}, 2},
        {128, {0x80, 0x81, 0}, 3}, /* longer than it need be */
        {UINT64_MAX, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 10},
        {(uint64_t)-2, {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 10},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(known); i++)
        for (size_t behind = 0; behind < 12; behind++) {
            uint8_t bytes[32] = {0};
            uint64_t value = 7;
            size_t taken;
            memcpy(bytes, known[i].bytes, known[i].size);
            memset(bytes + known[i].size, 0xff, behind);
            expect_true(take(bytes, known[i].size + behind, &value, &taken));
            expect_true(value == known[i].value);
            expect_int(taken, known[i].size);
        }
}

TARN_TEST(fields, every_length_comes_back)
{
    for (int bit = 0; bit < 64; bit++)
        for (int less = 0; less < 2; less++)
            for (size_t behind = 0; behind < 10; behind++) {
                uint64_t value = (UINT64_C(1) << bit) - (uint64_t)less, read = 0;
                uint8_t bytes[32];
                size_t taken, size = (size_t)(tarn_put_varint(bytes, value) - bytes);
                memset(bytes + size, 0x80, behind);
                expect_int(size, tarn_varint_size(value));
                expect_true(take(bytes, size + behind, &read, &taken));
                expect_true(read == value);
                expect_int(taken, size);
                for (size_t cut = 0; cut < size; cut++)
                    expect_false(take(bytes, cut, &read, &taken));
            }
}

TARN_TEST(fields, one_without_an_end_is_refused)
{
    uint8_t bytes[16];
    uint64_t value;
    size_t taken;
    memset(bytes, 0x80, sizeof bytes);
    for (size_t size = 0; size <= sizeof bytes; size++)
        expect_false(take(bytes, size, &value, &taken));
}
