/* Resume tokens and consumer files come from outside: any bytes, and never more than a status. */
#include "service/subscribe_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tarn_slice bytes = tarn_slice_of(data, size);
    struct tarn_position position;
    struct tarn_status *s = tarn_service__token_decode(bytes, &position);
    if (s == TARN_OK) { /* what was taken is written as it was read */
        TARN_OWN(tarn_buf_drop) struct tarn_buf again = {0};
        tarn_service__token_encode(&position, &again);
        tarn_assert(again.size == size);
    }
    tarn_status_free(s);

    /* Most inputs fail at the check sum: one that passes it gets to the rest. */
    if (size > 4 && size < 400) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf token = {0};
        tarn_buf_add(&token, data, size);
        uint32_t sum = (uint32_t)tarn_xxh64(bytes, 1);
        for (int i = 0; i < 4; i++)
            tarn_buf_add_byte(&token, (uint8_t)(sum >> (8 * i)));
        tarn_status_free(tarn_service__token_decode(tarn_buf_slice(&token), &position));
    }
    int64_t next;
    tarn_status_free(tarn_consumer_decode(bytes, &next));
    tarn_status_free(tarn_consumer_check_id(bytes));
    return 0;
}
