/*
 * Promise: a data file of any bytes is copied, not taken, or an error that names it; a copy has the rows that its
 * footer tells and can be opened again.
 */
#include "columnar/columnar.h"

#include <stdlib.h>

static const char columns_text[] =
    "k BIGINT NOT NULL, s STRING, d DECIMAL(20,2), f DOUBLE, l ARRAY<INT>";

struct target {
    struct tarn_op op;
    struct tarn_store *store;
    struct tarn_column_write columns[8];
    struct tarn_file_write spec;
};

static void must(struct tarn_status *s)
{
    if (s != TARN_OK)
        abort();
}

static struct tarn_file_copy *open_copy(struct target *target, const char *key)
{
    struct tarn_file_copy *copy = NULL;
    tarn_status_free(
        tarn_file_copy_open(target->store, &target->op, key, &target->spec, NULL, &copy));
    return copy;
}

static void copy_file(struct target *target, struct tarn_file_copy *copy)
{
    const struct tarn_row_group *groups;
    size_t count = tarn_file_copy_groups(copy, &groups);
    struct tarn_file_writer *writer = NULL;
    struct tarn_file_result result;
    struct tarn_status *s = TARN_OK;

    must(tarn_file_writer_open(target->store, &target->op, "t/b.parquet", &target->spec, &writer));
    for (size_t i = 0; i < count && s == TARN_OK; i++)
        s = tarn_file_writer_copy(writer, &target->op, copy, i);
    if (s != TARN_OK) {
        tarn_status_free(s);
        tarn_file_writer_abort(writer);
        return;
    }
    s = tarn_file_writer_finish(writer, &target->op, target->op.arena, &result);
    if (s != TARN_OK) {
        tarn_status_free(s);
        return;
    }
    struct tarn_file_copy *again = open_copy(target, "t/b.parquet");
    if (result.row_count != tarn_file_copy_row_count(copy) || again == NULL ||
        tarn_file_copy_row_count(again) != result.row_count)
        abort();
    tarn_file_copy_close(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct target target = {0};
    const struct tarn_field *fields;
    size_t count;

    tarn_op_init(&target.op);
    must(tarn_store_open("memory:", &target.store));
    must(tarn_columns_parse(tarn_slice_str(columns_text), target.op.arena, &fields, &count));
    for (size_t i = 0; i < count; i++)
        target.columns[i] = (struct tarn_column_write){fields[i].name, (int32_t)i, fields[i].type};
    target.spec = (struct tarn_file_write){"parquet", "zstd", 1, 1, target.columns, count};
    must(tarn_store_put(target.store, &target.op, "t/a.parquet", tarn_slice_of(data, size)));
    struct tarn_file_copy *copy = open_copy(&target, "t/a.parquet");
    if (copy != NULL)
        copy_file(&target, copy);
    tarn_file_copy_close(copy);
    tarn_store_drop(&target.store);
    tarn_op_fini(&target.op);
    return 0;
}
