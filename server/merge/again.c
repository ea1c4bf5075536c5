/*
 * again - rows of files that were written and can't be committed, because the buckets of their keys were assigned by an
 * index that is no longer the table's: read back and given to another writer.
 */
#include "merge/internal.h"

static struct tarn_status *add_file(struct tarn_table_writer *writer, struct tarn_op *op,
                                    const struct tarn_merge_layout *layout,
                                    const struct tarn_manifest_entry *file)
{
    int n = layout->column_count;
    TARN_OWN(tarn_free_drop) int *columns = tarn_alloc(((size_t)n + 1) * sizeof *columns);
    TARN_OWN(tarn_merge__input_drop) struct tarn_merge_input *input = NULL;

    for (int i = 0; i < n; i++)
        columns[i] = i;
    struct tarn_merge_run_spec spec = {.layout = layout,
                                       .files = &file,
                                       .file_count = 1,
                                       .columns = columns,
                                       .column_count = (size_t)n,
                                       .with_system = true};
    input = tarn_merge__run_new(&spec);
    columns[n] = n + 1; /* _VALUE_KIND; the sequence number is given anew */
    for (;;) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        TARN_OWN(tarn_batch_drop) struct tarn_batch *rows = NULL;
        uint32_t place;
        TARN_TRY(input->next(input, op, &batch, &place));
        if (batch == NULL)
            return TARN_OK;
        rows = tarn_merge__batch_view(batch, columns, n + 1, 0, batch->row_count);
        TARN_TRY(tarn_table_writer_add(writer, op, rows));
    }
}

struct tarn_status *tarn_table_writer_add_files(struct tarn_table_writer *writer,
                                                struct tarn_op *op,
                                                const struct tarn_merge_table *table,
                                                const struct tarn_manifest_entry *files,
                                                size_t count)
{
    struct tarn_merge_layout layout;

    TARN_TRY(tarn_merge__layout_make(table, op->arena, &layout));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(add_file(writer, op, &layout, &files[i]));
    return TARN_OK;
}
