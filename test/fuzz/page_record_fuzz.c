/* The record of a page: any bytes are decoded or refused; what is decoded comes back from what it is encoded as. */
#include "table/pages_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tarn_page_record record, again;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    if (!tarn_page_record_decode(tarn_slice_of(data, size), &record))
        return 0;
    tarn_page_record_encode(&record, &bytes);
    tarn_assert(tarn_page_record_decode(tarn_buf_slice(&bytes), &again));
    tarn_assert(again.count == record.count);
    tarn_assert((again.bounds == NULL) == (record.bounds == NULL));
    tarn_assert(again.bounds == NULL || again.bounds->count == record.bounds->count);
    tarn_page_bounds_unref(record.bounds);
    tarn_page_bounds_unref(again.bounds);
    return 0;
}
