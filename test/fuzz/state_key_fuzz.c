/*
 * Pieces taken from any bytes: no overrun, and what was taken is written back as it was read.
 */
#include "state/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tarn_buf piece = {0}, again = {0};
    struct tarn_slice rest = tarn_slice_of(data, size);
    for (;;) {
        struct tarn_slice before = rest;
        int64_t number;
        if (tarn_key_take_bytes(&rest, &piece))
            tarn_key_add_bytes(&again, tarn_buf_slice(&piece));
        else if (tarn_key_take_i64(&rest, &number))
            tarn_key_add_i64(&again, number);
        else
            break;
        struct tarn_slice taken = tarn_slice_of(before.data, before.size - rest.size);
        tarn_assert(tarn_slice_equal(taken, tarn_buf_slice(&again)));
        tarn_buf_clear(&piece);
        tarn_buf_clear(&again);
    }
    tarn_buf_drop(&piece);
    tarn_buf_drop(&again);
    return 0;
}
