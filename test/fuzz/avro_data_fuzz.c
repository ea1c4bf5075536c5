/* Promise: any bytes taken for an Avro data file are rows or a reason, whole, in a range of rows, and where no column is wanted. */
#include "data_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tarn_slice bytes = tarn_slice_of(data, size);
    const char *columns =
        "id BIGINT, c_bool BOOLEAN, c_tiny TINYINT, c_small SMALLINT, c_int INT, c_float FLOAT, c_double DOUBLE, c_dec9 DECIMAL(9, 2), c_dec38 DECIMAL(38, 10), c_string STRING, "
        "c_bytes BYTES, c_date DATE, c_time3 TIME(3), c_ts3 TIMESTAMP(3), c_ts6 TIMESTAMP(6), c_ltz3 TIMESTAMP_LTZ(3), n_array ARRAY<INT>, n_map MAP<STRING, BIGINT>, "
        "n_map2 MAP<INT, DOUBLE>, n_row ROW<x INT, y ARRAY<STRING>>, n_rows ARRAY<ROW<a DECIMAL(20, 2), b TIMESTAMP(6)>>, "
        "n_deep MAP<INT, ARRAY<ROW<t TIMESTAMP(3), m MAP<STRING, DECIMAL(9, 2)>>>>, n_rr ROW<p ROW<q ROW<r STRING, s BYTES>>, f FLOAT>";

    data_file_read("f.avro", bytes, columns, 0, 0);
    data_file_read("f.avro", bytes, "id BIGINT, n_row ROW<y ARRAY<STRING>>", 3, 7);
    data_file_read("f.avro", bytes, "gone INT", 0, 0);
    return 0;
}
