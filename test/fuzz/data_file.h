/* data_file - a data file of any bytes, read whole, in part, and by rows: rows, or a reason of the right kind. */
#ifndef TARN_TEST_FUZZ_DATA_FILE_H
#define TARN_TEST_FUZZ_DATA_FILE_H

#include "columnar/columnar.h"
#include "test/lib/test.h"

/* Columns of every type that the seeds have. */
#define DATA_FILE_COLUMNS                                                                          \
    "id BIGINT, c_bool BOOLEAN, c_tiny TINYINT, c_small SMALLINT, c_int INT, c_float FLOAT, "      \
    "c_double DOUBLE, c_dec9 DECIMAL(9, 2), c_dec38 DECIMAL(38, 10), c_string STRING, "            \
    "c_bytes BYTES, c_date DATE, c_time3 TIME(3), c_ts3 TIMESTAMP(3), c_ts6 TIMESTAMP(6), "        \
    "c_ltz3 TIMESTAMP_LTZ(3), n_array ARRAY<INT>, n_map MAP<STRING, BIGINT>, "                     \
    "n_map2 MAP<INT, DOUBLE>, n_row ROW<x INT, y ARRAY<STRING>>, "                                 \
    "n_rows ARRAY<ROW<a DECIMAL(20, 2), b TIMESTAMP(6)>>, "                                        \
    "n_deep MAP<INT, ARRAY<ROW<t TIMESTAMP(3), m MAP<STRING, DECIMAL(9, 2)>>>>, "                  \
    "n_rr ROW<p ROW<q ROW<r STRING, s BYTES>>, f FLOAT>"

static inline void data_file_read(const char *key, struct tarn_slice bytes, const char *columns,
                                  int64_t row_begin, int64_t row_end)
{
    struct tarn_op own, *op = &own;
    struct tarn_arena *arena = tarn_arena_new();
    struct tarn_store *store = NULL;
    struct tarn_source *source = NULL;
    const struct tarn_field *fields = NULL;
    struct tarn_column_read reads[32] = {0};
    size_t count = 0;

    tarn_op_init(op);
    tarn_assert(tarn_store_open("memory:", &store) == TARN_OK);
    tarn_assert(tarn_store_put(store, op, key, bytes) == TARN_OK);
    tarn_assert(tarn_columns_parse(tarn_slice_str(columns), arena, &fields, &count) == TARN_OK);
    tarn_assert(count <= TARN_COUNT_OF(reads));
    for (size_t i = 0; i < count; i++)
        reads[i] = (struct tarn_column_read){fields[i].name, NULL, fields[i].type};
    struct tarn_file_read spec = {reads, count, 1024, row_begin, row_end};
    struct tarn_status *s = tarn_file_reader_open(store, op, key, &spec, &source);
    while (s == TARN_OK) {
        struct tarn_batch *batch = NULL;
        s = source->next(source, op, &batch);
        if (batch == NULL)
            break;
        tarn_assert(batch->row_count > 0 && batch->column_count == (int)count);
        tarn_batch_unref(batch);
    }
    tarn_assert(s == TARN_OK || tarn_status_reason(s) == TARN_DATA_FILE_MALFORMED ||
                tarn_status_reason(s) == TARN_VALUE_INVALID ||
                tarn_status_reason(s) == TARN_UNSUPPORTED_FEATURE ||
                tarn_status_reason(s) == TARN_MEMORY_EXHAUSTED);
    tarn_status_free(s);
    tarn_source_drop(&source);
    tarn_store_drop(&store);
    tarn_arena_free(arena);
    tarn_op_fini(op);
}

/* Whole, a range of rows of some columns, and where no column is in the file. */
static inline void data_file_try(const char *key, struct tarn_slice bytes)
{
    data_file_read(key, bytes, DATA_FILE_COLUMNS, 0, 0);
    data_file_read(key, bytes, "id BIGINT, n_row ROW<y ARRAY<STRING>>", 3, 7);
    data_file_read(key, bytes, "gone INT", 0, 0);
}

#endif
