/* Promise: any bytes are a tag or an error; what is made of a snapshot and read again is the same snapshot. */
#include "format/tag.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf snapshot = {0}, tagged = {0}, first = {0}, second = {0};
    struct tarn_tag tag = {0}, again = {0};
    struct tarn_status *s = tarn_tag_decode(tarn_slice_of(data, size), arena, &tag);
    if (s != NULL) {
        tarn_assert(tarn_status_reason(s) == TARN_SNAPSHOT_MALFORMED ||
                    tarn_status_reason(s) == TARN_UNSUPPORTED_FEATURE);
        tarn_status_free(s);
        return 0;
    }
    s = tarn_tag_encode_snapshot(tarn_slice_of(data, size), &snapshot);
    tarn_assert(s == NULL);
    tarn_tag_encode(tarn_buf_slice(&snapshot), tag.create_time_ms, tag.retained_ms, &tagged);
    s = tarn_tag_decode(tarn_buf_slice(&tagged), arena, &again);
    tarn_assert(s == NULL && again.retained_ms == tag.retained_ms);
    tarn_snapshot_encode(&tag.snapshot, &first);
    tarn_snapshot_encode(&again.snapshot, &second);
    tarn_assert(tarn_slice_equal(tarn_buf_slice(&first), tarn_buf_slice(&second)));
    return 0;
}
