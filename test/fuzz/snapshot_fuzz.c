/* Promise: any bytes are a snapshot, SNAPSHOT_MALFORMED, or of a version not known here; one written and read again is the same. */
#include "format/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf first = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf second = {0};
    struct tarn_snapshot snapshot, again;
    struct tarn_status *s = tarn_snapshot_decode(tarn_slice_of(data, size), arena, &snapshot);
    if (s != NULL) {
        tarn_assert(tarn_status_reason(s) == TARN_SNAPSHOT_MALFORMED ||
                    tarn_status_reason(s) == TARN_UNSUPPORTED_FEATURE);
        tarn_status_free(s);
        return 0;
    }
    tarn_snapshot_encode(&snapshot, &first);
    s = tarn_snapshot_decode(tarn_buf_slice(&first), arena, &again);
    tarn_assert(s == NULL);
    tarn_snapshot_encode(&again, &second);
    tarn_assert(tarn_slice_equal(tarn_buf_slice(&first), tarn_buf_slice(&second)));
    return 0;
}
