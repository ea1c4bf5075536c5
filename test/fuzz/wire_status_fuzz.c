/* Promise: no google.rpc.Status bytes of a peer bring the client down; what it says is bounded. */
#include "wire/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int code = size == 0 ? 0 : data[0] % 20;
    size_t skip = size == 0 ? 0 : 1;
    struct tarn_slice details = tarn_slice_of(data + skip, size - skip);
    struct tarn_slice text = tarn_slice_of(details.data, details.size / 2);
    struct tarn_status *status = tarn_wire__status_restore(code, text, details);

    tarn_assert((status == NULL) == (code == 0));
    tarn_assert(strlen(tarn_status_message(status)) <= 8192);
    tarn_status_free(status);
    return 0;
}
