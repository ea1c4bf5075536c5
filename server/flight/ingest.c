/*
 * ingest - rows of files that a client sends become new files of a table.
 *
 *   task -> writer; for each file: its bytes -> (spool) -> input -> batches -> writer; end -> entries
 *   or: the files of a load whose dynamic buckets were assigned by an old index -> writer
 *
 * Nothing of it is visible before the daemon commits the entries. Until the answer is handed over the files
 * are this call's, and go with it when it fails.
 */
#include "internal.h"

#include "tarn/v1/worker.pb-c.h"

#define BUFFER_MIN ((int64_t)8 << 20)
#define NULL_TEXTS_MAX 1000

struct ingest {
    struct tarn_flight *flight;
    struct tarn_flight__parts parts;
    const Tarn__V1__IngestTask *task;
    const Tarn__V1__IngestStart *start;
    const char *table_uuid;
    struct tarn_merge_table table;
    struct tarn_input_options input; /* all but the file's own */
    bool deletes;                    /* every row is one */
    struct tarn_table_writer *writer;
    int64_t row_count, bad_count;
    Tarn__V1__BadRow *bad_rows[TARN_BAD_ROWS_KEPT];
    size_t bad_kept;
};

/* --- the writer's numbers --- */

static struct tarn_status *reserve_sequences(void *arg, struct tarn_op *op,
                                             struct tarn_slice partition, int32_t bucket,
                                             int64_t count, int64_t *first)
{
    const struct ingest *ingest = arg;
    return tarn_flight_reserve_sequences(ingest->flight->options.daemon, op, ingest->table_uuid,
                                         partition, bucket, count, first);
}

static struct tarn_status *ask_bucket_count(void *arg, struct tarn_op *op,
                                            struct tarn_slice partition, int32_t *count)
{
    const struct ingest *ingest = arg;
    Tarn__V1__GetBucketCountRequest request = TARN__V1__GET_BUCKET_COUNT_REQUEST__INIT;
    const void *message;

    request.table_uuid = (char *)(uintptr_t)ingest->table_uuid;
    request.partition = tarn_flight_data(partition);
    TARN_TRY(tarn_flight_ask(ingest->flight->options.daemon, op,
                             "/tarn.v1.WorkerService/GetBucketCount", &request.base,
                             &tarn__v1__get_bucket_count_response__descriptor, &message));
    *count = ((const Tarn__V1__GetBucketCountResponse *)message)->buckets;
    return TARN_OK;
}

/* --- what the client asked for --- */

/* A delete says which row by the primary key. Where the kinds are a column of the table, the writer looks. */
static void refuse_deletes(const struct ingest *ingest, struct tarn_input_options *input)
{
    const struct tarn_options *options = ingest->table.options;
    bool may = ingest->table.schema->primary_key_count > 0 || options->rowkind_column >= 0 ||
               options->ignore_delete;
    input->refused_kinds[1] = !may && !options->ignore_update_before;
    input->refused_kinds[3] = !may;
}

static struct tarn_status *read_options(struct ingest *ingest, struct tarn_op *op)
{
    const Tarn__V1__IngestStart *start = ingest->start;
    struct tarn_input_options *input = &ingest->input;

    if (start->delimiter.len > 1)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the delimiter has %zu bytes; it must be one",
                               start->delimiter.len);
    if (start->skip_bad_max < 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "skip_bad_max is %" PRId64,
                               start->skip_bad_max);
    if (start->n_null_texts > NULL_TEXTS_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%zu spellings of null; at most %d",
                               start->n_null_texts, NULL_TEXTS_MAX);
    struct tarn_slice *nulls = tarn_arena_calloc(op->arena, start->n_null_texts + 1, sizeof *nulls);
    for (size_t i = 0; i < start->n_null_texts; i++)
        nulls[i] = tarn_flight_slice(start->null_texts[i]);
    input->null_texts = nulls;
    input->null_text_count = start->n_null_texts;
    input->delimiter = start->delimiter.len == 1 ? (char)start->delimiter.data[0] : '\0';
    if (start->op_column.len > 0)
        TARN_TRY(tarn_flight__text(tarn_flight_slice(start->op_column),
                                   "the column with the row kinds", op->arena, &input->op_column));
    input->fields = ingest->table.schema->fields;
    input->field_count = ingest->table.schema->field_count;
    refuse_deletes(ingest, input);
    ingest->deletes = start->mode == TARN__V1__LOAD_MODE__DELETE_ROWS;
    input->only_keys_required = ingest->deletes;
    return TARN_OK;
}

/* The table's index files, as of the snapshot that the daemon will hold the load against. */
static struct tarn_status *read_indexes(struct ingest *ingest, struct tarn_op *op,
                                        struct tarn_index_file **files, size_t *count)
{
    struct tarn_slice name = tarn_flight_slice(ingest->task->index_manifest);
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};

    *files = NULL;
    *count = 0;
    if (name.size == 0)
        return TARN_OK;
    const char *key =
        tarn_arena_printf(op->arena, "%s/manifest/%.*s", ingest->table.path, TARN_SLICE_ARG(name));
    TARN_TRY(tarn_store_get(ingest->table.store, op, key, &bytes));
    return tarn_index_manifest_decode(tarn_arena_copy(op->arena, tarn_buf_slice(&bytes)), op->arena,
                                      files, count);
}

static struct tarn_status *open_writer(struct ingest *ingest, struct tarn_op *op, int running)
{
    const struct tarn_flight_options *options = &ingest->flight->options;
    struct tarn_index_file *indexes;
    size_t index_count;
    struct tarn_merge_split *known;
    TARN_TRY(read_indexes(ingest, op, &indexes, &index_count));
    TARN_TRY(tarn_flight__splits(ingest->task->known, ingest->task->n_known, op->arena, &known));
    struct tarn_write_spec spec = {
        .sequence = reserve_sequences,
        .sequence_arg = ingest,
        .bucket_count = ingest->task->ask_bucket_counts ? ask_bucket_count : NULL,
        /* The n-th at a time takes an n-th: together they stay near one buffer, however many there are. */
        .buffer_size = TARN_MAX(BUFFER_MIN, options->write_buffer_size / running),
        .scratch_dir = options->scratch_dir,
        .no_changelog = ingest->parts.part.task->no_changelog != 0,
        .indexes = indexes,
        .index_count = index_count,
        .known = known,
        .known_count = ingest->task->n_known,
    };
    return tarn_table_writer_open(op, &ingest->table, &spec, &ingest->writer);
}

static struct tarn_status *begin(struct ingest *ingest, struct tarn_op *op, struct tarn_call *call,
                                 int running)
{
    TARN_TRY(tarn_flight__parts_open(&ingest->parts, op, call));
    const Tarn__V1__IngestTask *task = ingest->parts.part.task;
    if (ingest->parts.part.kind != TARN_PART_TASK || task->start == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the first message is no task with a start");
    ingest->task = task;
    ingest->start = task->start;
    TARN_TRY(tarn_flight_table_open(ingest->flight->options.tables, task->table, op->arena,
                                    &ingest->table));
    ingest->table_uuid = task->table->uuid;
    TARN_TRY(read_options(ingest, op));
    return open_writer(ingest, op, running);
}

/* --- all rows are deletes --- */

struct deletes { /* a batch whose row kinds are -D, the columns being another's */
    struct tarn_batch *holder;
    struct ArrowArray *children;
    struct ArrowArray **pointers;
    const void *no_buffer;
    const void *kind_buffers[2];
    int8_t *kinds;
};

static void nothing_to_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void deletes_release(struct ArrowArray *array)
{
    struct deletes *d = array->private_data;

    for (int64_t i = 0; i < array->n_children; i++)
        if (d->children[i].release != NULL)
            d->children[i].release(&d->children[i]);
    tarn_batch_unref(d->holder);
    free(d->children);
    free(d->pointers);
    free(d->kinds);
    free(d);
    array->release = NULL;
}

static struct tarn_batch *as_deletes(struct tarn_batch *batch)
{
    struct deletes *d = tarn_calloc(1, sizeof *d);
    int n = batch->column_count;
    struct ArrowArray top = {.length = batch->row_count,
                             .n_buffers = 1,
                             .n_children = n,
                             .buffers = &d->no_buffer,
                             .release = deletes_release,
                             .private_data = d};

    d->holder = tarn_batch_ref(batch);
    d->children = tarn_calloc((size_t)n, sizeof *d->children);
    d->pointers = tarn_calloc((size_t)n, sizeof(struct ArrowArray *));
    d->kinds = tarn_alloc((size_t)batch->row_count + 1);
    memset(d->kinds, 3, (size_t)batch->row_count);
    d->kind_buffers[1] = d->kinds;
    for (int i = 0; i < n; i++) {
        d->pointers[i] = &d->children[i];
        d->children[i] = *tarn_batch_column(batch, i);
        d->children[i].release = nothing_to_release;
    }
    d->children[n - 1] = (struct ArrowArray){.length = batch->row_count,
                                             .n_buffers = 2,
                                             .buffers = d->kind_buffers,
                                             .release = nothing_to_release};
    top.children = d->pointers;
    return tarn_batch_take(&top);
}

/* --- one file --- */

static struct tarn_status *write_rows(struct ingest *ingest, struct tarn_op *op,
                                      struct tarn_input *input, const char *name)
{
    for (;;) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;

        TARN_TRY(tarn_op_check(op));
        TARN_TRY(tarn_input_next(input, op, &batch));
        if (batch == NULL)
            return TARN_OK;
        if (ingest->deletes) {
            struct tarn_batch *marked = as_deletes(batch);
            tarn_batch_drop(&batch);
            batch = marked;
        }
        ingest->row_count += batch->row_count;
        struct tarn_status *s = tarn_table_writer_add(ingest->writer, op, batch);
        if (tarn_status_reason(s) ==
            TARN_VALUE_INVALID) /* it knows rows, not where they come from */
            return tarn_status_wrap(s, "%s", name);
        TARN_TRY(s);
    }
}

static void note_bad_rows(struct ingest *ingest, struct tarn_op *op, const struct tarn_input *input,
                          const char *name)
{
    const struct tarn_bad_row *rows;
    size_t kept;

    ingest->bad_count += tarn_input_bad_rows(input, &rows, &kept);
    for (size_t i = 0; i < kept && ingest->bad_kept < TARN_BAD_ROWS_KEPT; i++) {
        Tarn__V1__BadRow *bad = tarn_arena_alloc(op->arena, sizeof *bad);
        tarn__v1__bad_row__init(bad);
        bad->file = tarn_flight_data(tarn_slice_str(name));
        bad->line = rows[i].line;
        bad->column = tarn_flight_data(tarn_arena_copy(op->arena, rows[i].column));
        bad->reason = tarn_flight_data(tarn_arena_copy(op->arena, rows[i].reason));
        ingest->bad_rows[ingest->bad_kept++] = bad;
    }
}

static void input_drop(struct tarn_input **input)
{
    if (*input != NULL)
        tarn_input_close(*input);
}

static struct tarn_status *load_file(struct ingest *ingest, struct tarn_op *op, const char *name,
                                     enum tarn_data_format format)
{
    TARN_OWN(tarn_flight__spool_drop) struct tarn_flight__spool spool = {.fd = -1};
    TARN_OWN(input_drop) struct tarn_input *input = NULL;
    struct tarn_input_options options = ingest->input;
    bool spooled = tarn_input_needs_file(format);

    options.name = name;
    options.format = format;
    options.skip_bad_max = ingest->start->skip_bad_max - ingest->bad_count; /* over all files */
    if (spooled)
        TARN_TRY(tarn_flight__spool_fill(&spool, ingest->flight->options.scratch_dir,
                                         &ingest->parts, op));
    TARN_TRY(tarn_input_open(op, &options, spooled ? spool.path : NULL,
                             spooled ? NULL : tarn_flight__parts_pull, &ingest->parts, &input));
    struct tarn_status *s = write_rows(ingest, op, input, name);
    note_bad_rows(ingest, op, input, name);
    return s;
}

/* --- the whole --- */

struct files {
    struct tarn_manifest_entry *entries, *changelog;
    size_t count, changelog_count;
};
/* As an index manifest; empty: none. */
static struct tarn_status *pack_indexes(const struct tarn_index_file *files, size_t count,
                                        struct tarn_buf *out)
{
    static const uint8_t sync[16];
    if (count == 0)
        return TARN_OK;
    return tarn_index_manifest_encode(files, count, tarn_slice_str("none"), 0, sync, out);
}

static struct tarn_status *answer(struct ingest *ingest, struct tarn_op *op, struct tarn_call *call,
                                  const struct files *files)
{
    Tarn__V1__IngestResponse response = TARN__V1__INGEST_RESPONSE__INIT;
    TARN_OWN(tarn_buf_drop) struct tarn_buf indexes = {0};
    const struct tarn_index_file *index_files;
    size_t index_count;

    response.rows = ingest->row_count;
    response.files_written = (int64_t)files->count;
    for (size_t i = 0; i < files->count; i++)
        response.bytes_written += files->entries[i].file.size;
    response.bad_row_count = ingest->bad_count;
    response.bad_rows = ingest->bad_rows;
    response.n_bad_rows = ingest->bad_kept;
    response.entries = tarn_flight_entries_pack(files->entries, files->count, op->arena);
    response.n_entries = files->count;
    response.changelog =
        tarn_flight_entries_pack(files->changelog, files->changelog_count, op->arena);
    response.n_changelog = files->changelog_count;
    tarn_table_writer_indexes(ingest->writer, &index_files, &index_count);
    TARN_TRY(pack_indexes(index_files, index_count, &indexes));
    response.indexes = tarn_flight_data(tarn_buf_slice(&indexes));
    TARN_TRY(tarn_op_check(op)); /* nobody would commit them */
    return tarn_call_write(call, tarn_flight_pack(&response.base));
}

static struct tarn_status *load_files(struct ingest *ingest, struct tarn_op *op)
{
    for (;;) {
        const char *name;
        enum tarn_data_format format;
        bool found;

        TARN_TRY(tarn_flight__parts_next_file(&ingest->parts, op, &name, &format, &found));
        if (!found)
            return TARN_OK;
        TARN_TRY(load_file(ingest, op, name, format));
    }
}

static struct tarn_status *load_again(struct ingest *ingest, struct tarn_op *op)
{
    size_t count = ingest->task->n_written;
    struct tarn_manifest_entry *files = tarn_arena_calloc(op->arena, count + 1, sizeof *files);

    for (size_t i = 0; i < count; i++)
        TARN_TRY(tarn_manifest_entry_unpack(tarn_flight_slice(ingest->task->written[i]), op->arena,
                                            &files[i]));
    return tarn_table_writer_add_files(ingest->writer, op, &ingest->table, files, count);
}

/* What nobody will commit. This operation may be cancelled. */
static void remove_written(struct ingest *ingest, const struct files *files)
{
    const struct tarn_index_file *indexes;
    size_t index_count;
    struct tarn_op cleaning;

    tarn_table_writer_indexes(ingest->writer, &indexes, &index_count);
    tarn_op_init(&cleaning);
    tarn_merge_remove_files(&cleaning, &ingest->table, files->entries, files->count);
    tarn_merge_remove_files(&cleaning, &ingest->table, files->changelog, files->changelog_count);
    tarn_merge_remove_index_files(&cleaning, &ingest->table, indexes, index_count);
    tarn_op_fini(&cleaning);
}

static struct tarn_status *load(struct ingest *ingest, struct tarn_op *op, struct tarn_call *call,
                                int running)
{
    struct files files;

    TARN_TRY(begin(ingest, op, call, running));
    TARN_TRY(ingest->task->n_written > 0 ? load_again(ingest, op) : load_files(ingest, op));
    TARN_TRY(tarn_table_writer_finish(ingest->writer, op, op->arena, &files.entries, &files.count));
    tarn_table_writer_changelog(ingest->writer, op->arena, &files.changelog,
                                &files.changelog_count);
    struct tarn_status *s = answer(ingest, op, call, &files);
    if (s != TARN_OK)
        remove_written(ingest, &files);
    return s;
}

struct tarn_status *tarn_flight__ingest(void *self, struct tarn_op *op, struct tarn_call *call)
{
    struct tarn_flight *flight = self;
    struct ingest ingest = {.flight = flight};
    int running = atomic_fetch_add(&flight->ingest_count, 1) + 1;
    struct tarn_status *s = load(&ingest, op, call, running);

    atomic_fetch_sub(&flight->ingest_count, 1);
    tarn_table_writer_free(ingest.writer);
    tarn_flight__parts_drop(&ingest.parts);
    return s;
}
