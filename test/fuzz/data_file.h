/* data_file - a data file of any bytes, read whole, in part, and by rows: rows, or a reason of the right kind. */
#ifndef TARN_TEST_FUZZ_DATA_FILE_H
#define TARN_TEST_FUZZ_DATA_FILE_H

#include "columnar/columnar.h"
#include "test/lib/test.h"

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

#endif
