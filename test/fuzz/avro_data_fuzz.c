/* Promise: any bytes taken for an Avro data file are rows or a reason, whole, in a range of rows, and where no column is wanted. */
#include "data_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    data_file_try("f.avro", tarn_slice_of(data, size));
    return 0;
}
