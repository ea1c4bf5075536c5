/*
 * Promise: any bytes expand to at most the limit or are refused without a trace; what is compressed
 * expands to itself. The first byte chooses the kind.
 */
#include "base/base.h"

#define LIMIT 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf packed = {0};
    if (size == 0)
        return 0;
    enum tarn_zip kind = (enum tarn_zip)(data[0] % 5);
    struct tarn_slice in = tarn_slice_of(data + 1, size - 1);

    struct tarn_status *s = tarn_zip_expand(kind, in, LIMIT, &out);
    tarn_assert(s == NULL ? out.size <= LIMIT : out.size == 0);
    tarn_assert(out.capacity <= 4 * LIMIT);
    tarn_status_free(s);

    s = tarn_zip_compress(kind, 0, in, &packed);
    tarn_assert(s == NULL);
    tarn_buf_clear(&out);
    s = tarn_zip_expand(kind, tarn_buf_slice(&packed), in.size, &out);
    tarn_assert(s == NULL && tarn_slice_equal(tarn_buf_slice(&out), in));
    return 0;
}
