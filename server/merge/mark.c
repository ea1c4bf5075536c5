/*
 * mark - rows of append tables that a predicate names, marked as deleted in the vectors of their files.
 *
 * Each file is read whole, with the columns of the predicate alone: positions count its rows, also those that are deleted already. All
 * vectors of a bucket are held, one bit a row, until its index files are written.
 */
#include "merge/internal.h"

struct marking {
    struct tarn_op *op;
    struct tarn_merge_layout layout;
    const struct tarn_mark_spec *spec;
    struct tarn_arena *arena;
    struct tarn_merge_filter *filter;
    struct tarn_vector_mark *marks; /* of the present bucket */
    size_t mark_count, mark_capacity;
    struct tarn_mark_result result;
    size_t index_capacity;
    struct tarn_index_file *indexes; /* on the heap until all is there */
};

static void drop_marks(struct marking *m)
{
    for (size_t i = 0; i < m->mark_count; i++)
        tarn_deletions_fini(&m->marks[i].deletions);
    m->mark_count = 0;
}

static struct tarn_status *mark_batches(struct marking *m, struct tarn_merge_input *input,
                                        const struct tarn_data_file *file,
                                        struct tarn_deletions *deletions)
{
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks picks = {0};
    for (int64_t first = 0;;) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        uint32_t place;
        TARN_TRY(input->next(input, m->op, &batch, &place));
        if (batch == NULL)
            return TARN_OK;
        if (batch->row_count > deletions->row_count - first)
            return tarn_status_new(TARN_DATA_FILE_MALFORMED,
                                   "file %.*s has more than the %" PRId64
                                   " rows that its manifest says",
                                   TARN_SLICE_ARG(file->name), file->row_count);
        tarn_merge__picks_clear(&picks);
        tarn_merge__filter_select(m->filter, batch, INT64_MAX, &picks);
        for (size_t p = 0; p < picks.count; p++)
            for (uint32_t i = 0; i < picks.items[p].count; i++)
                tarn_deletions_add(deletions, first + picks.items[p].row + i);
        first += batch->row_count;
    }
}

static struct tarn_status *mark_file(struct marking *m, const struct tarn_manifest_entry *entry)
{
    TARN_OWN(tarn_deletions_fini) struct tarn_deletions deletions = {0};
    struct tarn_manifest_entry whole = *entry;
    const struct tarn_manifest_entry *files[] = {&whole};
    TARN_TRY(tarn_merge__deletions_read(m->op, m->layout.table, &entry->file, &deletions));
    if (deletions.rows == NULL)
        TARN_TRY(tarn_deletions_init(&deletions, entry->file.row_count));
    int64_t before = deletions.count;
    whole.file.vector = (struct tarn_vector_ref){0};
    struct tarn_merge_run_spec spec = {.layout = &m->layout,
                                       .files = files,
                                       .file_count = 1,
                                       .columns = m->spec->where->columns,
                                       .column_count = m->spec->where->column_count};
    struct tarn_merge_input *input = tarn_merge__run_new(&spec);
    struct tarn_status *s = mark_batches(m, input, &entry->file, &deletions);
    tarn_merge__input_drop(&input);
    TARN_TRY(s);
    if (deletions.count == before)
        return TARN_OK;
    m->result.row_count += deletions.count - before;
    m->result.file_count++;
    TARN_GROW(m->marks, m->mark_count, m->mark_capacity);
    m->marks[m->mark_count++] = (struct tarn_vector_mark){entry->file.name, deletions};
    deletions = (struct tarn_deletions){0};
    return TARN_OK;
}

/* The index files of the bucket that was marked. */
static struct tarn_status *write_bucket(struct marking *m, const struct tarn_merge_split *split)
{
    struct tarn_index_file *all =
        tarn_arena_calloc(m->arena, m->spec->index_count + 1, sizeof *all);
    struct tarn_index_file *out;
    struct tarn_vector_changes changes = {.partition = split->partition,
                                          .bucket = split->bucket,
                                          .indexes = all,
                                          .marks = m->marks,
                                          .mark_count = m->mark_count};
    size_t count;
    if (m->mark_count == 0)
        return TARN_OK;
    for (size_t i = 0; i < m->spec->index_count; i++)
        if (m->spec->indexes[i].bucket == split->bucket &&
            tarn_slice_equal(m->spec->indexes[i].partition, split->partition))
            all[changes.index_count++] = m->spec->indexes[i];
    TARN_TRY(tarn_merge__vectors_rewrite(m->op, m->layout.table, &changes, m->arena, &out, &count));
    for (size_t i = 0; i < count; i++) {
        TARN_GROW(m->indexes, m->result.index_count, m->index_capacity);
        m->indexes[m->result.index_count++] = out[i];
    }
    drop_marks(m);
    return TARN_OK;
}

static bool same_bucket(const struct tarn_merge_split *a, const struct tarn_merge_split *b)
{
    return a->bucket == b->bucket && tarn_slice_equal(a->partition, b->partition);
}

static struct tarn_status *mark_all(struct marking *m, const struct tarn_merge_split *splits,
                                    size_t split_count)
{
    int *places = tarn_arena_calloc(m->arena, (size_t)m->layout.column_count + 1, sizeof *places);
    for (int i = 0; i < m->layout.column_count; i++)
        places[i] = -1;
    for (size_t i = 0; i < m->spec->where->column_count; i++)
        places[m->spec->where->columns[i]] = (int)i;
    m->filter = tarn_merge__filter_new(m->spec->where, m->layout.table->schema, places);
    for (size_t i = 0; i < split_count; i++) {
        for (size_t f = 0; f < splits[i].file_count; f++)
            TARN_TRY(mark_file(m, &splits[i].files[f]));
        if (i + 1 == split_count || !same_bucket(&splits[i], &splits[i + 1]))
            TARN_TRY(write_bucket(m, &splits[i]));
    }
    return TARN_OK;
}

/* What goes comes before what is added, as in the commit. */
static void settle_indexes(struct marking *m, struct tarn_mark_result *out)
{
    size_t n = 0;
    m->result.indexes =
        tarn_arena_calloc(m->arena, m->result.index_count + 1, sizeof *m->result.indexes);
    for (int kind = 1; kind >= 0; kind--)
        for (size_t i = 0; i < m->result.index_count; i++)
            if ((m->indexes[i].kind == TARN_ENTRY_DELETE) == (kind == 1))
                m->result.indexes[n++] = m->indexes[i];
    *out = m->result;
}

struct tarn_status *tarn_mark_rows(struct tarn_op *op, const struct tarn_merge_table *table,
                                   const struct tarn_merge_split *splits, size_t split_count,
                                   const struct tarn_mark_spec *spec, struct tarn_arena *arena,
                                   struct tarn_mark_result *out)
{
    struct marking m = {.op = op, .spec = spec, .arena = arena};
    struct tarn_status *s = tarn_options_check_merge(table->options);
    if (s == TARN_OK)
        s = tarn_options_check_write(table->options);
    if (s == TARN_OK)
        s = tarn_merge__layout_make(table, arena, &m.layout);
    if (s == TARN_OK && m.layout.keyed)
        s = tarn_status_new(TARN_INVALID_ARGUMENT, "rows are marked in append tables only");
    if (s == TARN_OK)
        s = mark_all(&m, splits, split_count);
    if (s == TARN_OK) {
        settle_indexes(&m, out);
    } else {
        struct tarn_op cleaning; /* this operation may be cancelled */
        tarn_op_init(&cleaning);
        tarn_merge_remove_index_files(&cleaning, table, m.indexes, m.result.index_count);
        tarn_op_fini(&cleaning);
    }
    drop_marks(&m);
    tarn_merge__filter_free(m.filter);
    free(m.marks);
    free(m.indexes);
    return s;
}
