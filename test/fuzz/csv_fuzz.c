/* Promise: any bytes are rows or a reason, in pieces of any size; what was read prints and reads back the same. */
#include "test/lib/text_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tarn_test_text_input(
        TARN_DATA_CSV,
        "a INT, b STRING, c DECIMAL(10,2), d TIMESTAMP(9), e ARRAY<ROW<x DOUBLE>>, f BYTES",
        tarn_slice_of(data, size));
    return 0;
}
