/* An intent of a commit to several tables: any bytes are refused or make one that stays the same when it is written and read. */
#include "service/intent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The checksum is made right, so that what lies behind it is reached. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_intent_part *parts;
    size_t count;
    tarn_buf_add(&bytes, "TARNINT\x01", 8);
    tarn_buf_add(&bytes, data, size);
    uint32_t crc = tarn_crc32(tarn_buf_slice(&bytes));
    for (int shift = 24; shift >= 0; shift -= 8)
        tarn_buf_add_byte(&bytes, (uint8_t)(crc >> shift));
    struct tarn_status *s = tarn_intent_decode(tarn_buf_slice(&bytes), arena, &parts, &count);
    if (s == TARN_OK) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf first = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf second = {0};
        tarn_intent_encode(parts, count, &first);
        s = tarn_intent_decode(tarn_buf_slice(&first), arena, &parts, &count);
        tarn_assert(s == TARN_OK);
        tarn_intent_encode(parts, count, &second);
        tarn_assert(tarn_slice_equal(tarn_buf_slice(&first), tarn_buf_slice(&second)));
    }
    tarn_status_free(s);
    return 0;
}
