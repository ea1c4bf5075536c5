/*
 * write - the table writer: rows in any order become sorted files of their partitions and buckets.
 *
 *   batch -> check, row kinds -> assign -> rows of each bucket, batches kept as they are
 *         -> keyed:  buffer full -> each bucket sorted into a spilled run; finish merges spills and memory
 *         -> append: buffer full -> each bucket's rows to its file, in order of arrival
 *
 * changelog-producer = input: whenever a bucket is sorted, all its rows, with those that the merge leaves out, go to a changelog
 * file of their own; of rows that are written as they come, to one beside theirs.
 *
 * bucket = -2: each bucket's rows, all of them, to files of the postpone bucket, by key and within it in order of arrival.
 *
 * Keyed rows of one bucket that come in key order are written as they come, a little buffered: nothing is spilled,
 * and memory stays small. Where the order breaks, that file ends and the rest goes the usual way.
 *
 * Batches aren't copied when they come: a bucket only remembers which of their rows are its own, and
 * they are let go of when all buckets have been written. Sequence numbers are asked for then, so that
 * what a bucket writes at once is numbered in order of arrival.
 */
#include "merge/internal.h"

#define SPILL_RUNS_MAX 64 /* then they are written as files, so that a merge stays narrow */
#define OPEN_FILES_MAX 16 /* append tables: with more buckets, files end with each flush */
#define STREAM_BUFFER                                                                              \
    ((int64_t)12 << 20) /* rows in key order: held so long before they are written */
#define APPEND_BUFFER                                                                              \
    ((int64_t)32 << 20) /* nothing is gained by keeping more rows that aren't sorted */
#define ROW_OVERHEAD 48 /* of sorting: place, item twice, prefix */

struct bucket {
    uint64_t *rows; /* chunk << 32 | row, in order of arrival */
    size_t row_count, row_capacity;
    struct tarn_merge_segment *spills;
    size_t spill_count, spill_capacity;
    struct tarn_merge_roll *roll; /* append tables: the file being written */
    int64_t next_sequence;        /* of bucket-unaware tables */
};

struct tarn_table_writer {
    struct tarn_merge_layout layout;
    struct tarn_write_spec spec;
    struct tarn_arena *arena;
    struct tarn_merge_key_spec key, order;
    bool merges;  /* rows of a key become one otherwise than by the last of them */
    int *columns; /* all, and the two of the system */
    const struct tarn_merge_engine_spec *engine;
    struct tarn_merge_assign *assign;
    struct bucket *buckets; /* by target */
    size_t bucket_count, bucket_capacity;
    struct tarn_batch **chunks;
    size_t chunk_count, chunk_capacity;
    int64_t held_bytes, held_rows;
    uint32_t *targets; /* of a batch's rows */
    size_t target_capacity;
    struct tarn_merge_spill *spill;
    struct tarn_merge_order in_order;
    struct tarn_merge_roll *stream; /* the file that rows in order go to; NULL: none yet */
    bool postpones; /* bucket = -2: all rows, none merged, wait in one bucket to be given theirs */
    bool logs;      /* writes a changelog */
    struct tarn_merge_roll *log; /* the changelog beside `stream` */
    struct tarn_merge_entries entries, changelog;
    struct tarn_merge_index_files indexes; /* of dynamic buckets */
    bool finished, failed;
};

/* --- open --- */

static struct tarn_status *check_table(const struct tarn_merge_layout *layout,
                                       const struct tarn_write_spec *spec)
{
    const struct tarn_options *options = layout->table->options;

    TARN_TRY(tarn_options_check_write(options));
    if (options->bucket < 1 && options->bucket != -1 &&
        !(layout->keyed && options->bucket == TARN_BUCKET_POSTPONE))
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "bucket = %" PRId32 ": such buckets aren't written here",
                               options->bucket);
    tarn_assert(spec->sequence != NULL || (options->bucket == -1 && !layout->keyed));
    return TARN_OK;
}

static void prepare_merge(struct tarn_table_writer *writer)
{
    const struct tarn_merge_layout *layout = &writer->layout;
    int n = layout->column_count + 2;

    tarn_merge__layout_keys(layout, NULL, writer->arena, &writer->key, &writer->order);
    writer->columns = tarn_arena_calloc(writer->arena, (size_t)n, sizeof *writer->columns);
    for (int i = 0; i < n; i++)
        writer->columns[i] = i;
    writer->merges = layout->table->options->merge_engine != TARN_MERGE_DEDUPLICATE;
    writer->engine =
        tarn_merge__engine_spec(layout, writer->columns, layout->column_count, writer->arena);
}

struct tarn_status *tarn_table_writer_open(struct tarn_op *op, const struct tarn_merge_table *table,
                                           const struct tarn_write_spec *spec,
                                           struct tarn_table_writer **out)
{
    struct tarn_table_writer *writer = tarn_calloc(1, sizeof *writer);
    struct tarn_status *s;

    writer->spec = *spec;
    writer->arena = tarn_arena_new();
    s = tarn_merge__layout_make(table, writer->arena, &writer->layout);
    if (s == TARN_OK)
        s = check_table(&writer->layout, spec);
    if (s != TARN_OK) {
        tarn_table_writer_free(writer);
        return s;
    }
    if (writer->layout.keyed)
        prepare_merge(writer);
    writer->postpones = writer->layout.keyed && table->options->bucket == TARN_BUCKET_POSTPONE;
    writer->in_order.broken = writer->postpones; /* a key may come more than once */
    writer->logs = writer->layout.keyed && !spec->no_changelog && !writer->postpones &&
                   table->options->changelog_producer == TARN_CHANGELOG_INPUT;
    writer->assign = tarn_merge__assign_new(&writer->layout, &writer->spec);
    s = tarn_merge__assign_learn(writer->assign, op);
    if (s != TARN_OK) {
        tarn_table_writer_free(writer);
        return s;
    }
    *out = writer;
    return TARN_OK;
}

/* --- row kinds and nulls --- */

static struct tarn_status *kind_of_text(struct tarn_slice text, int64_t row, int8_t *out)
{
    static const char *const names[] = {"+I", "-U", "+U", "-D"};

    for (int8_t i = 0; i < 4; i++) {
        if (tarn_slice_is(text, names[i])) {
            *out = i;
            return TARN_OK;
        }
    }
    return tarn_status_new(TARN_VALUE_INVALID,
                           "row %" PRId64 ": row kind \"%.*s\" is none of +I, -U, +U, -D", row + 1,
                           TARN_SLICE_ARG(text));
}

/* The kinds of a batch's rows: the batch's own, or those of column rowkind.field. */
static struct tarn_status *read_kinds(const struct tarn_table_writer *writer,
                                      const struct tarn_batch *batch, int8_t *kinds)
{
    int column = writer->layout.table->options->rowkind_column;
    const struct ArrowArray *a = tarn_batch_column(batch, writer->layout.column_count);
    bool append = !writer->layout.keyed;

    for (int64_t i = 0; i < batch->row_count; i++) {
        if (column >= 0) {
            struct tarn_value v;
            tarn_column_value(tarn_batch_column(batch, column), writer->layout.types[column], i,
                              &v);
            if (v.is_null)
                return tarn_status_new(TARN_VALUE_INVALID, "row %" PRId64 ": the row kind is null",
                                       i + 1);
            TARN_TRY(kind_of_text(v.bytes, i, &kinds[i]));
        } else {
            kinds[i] = ((const int8_t *)a->buffers[1])[a->offset + i];
        }
        if (kinds[i] < 0 || kinds[i] > 3 || tarn_column_is_null(a, i))
            return tarn_status_new(TARN_VALUE_INVALID, "row %" PRId64 ": row kind %d", i + 1,
                                   kinds[i]);
        if (writer->merges)
            TARN_TRY(tarn_merge__check_kind(&writer->layout, kinds[i], i));
    }
    const struct tarn_options *options = writer->layout.table->options;
    for (int64_t i = 0; i < batch->row_count && append; i++) {
        bool dropped = options->ignore_delete || (options->ignore_update_before && kinds[i] == 1);
        if (tarn_merge__is_retract(kinds[i]) && !dropped)
            return tarn_status_new(TARN_VALUE_INVALID,
                                   "row %" PRId64 " is a delete: the table has no primary key",
                                   i + 1);
    }
    return TARN_OK;
}

static bool may_lack(const struct tarn_merge_layout *layout, int column)
{
    for (size_t i = 0; i < layout->key_count; i++) {
        if (layout->key_columns[i] == column)
            return false;
    }
    return layout->keyed && layout->partition_place[column] < 0;
}

/* A delete needs only its key: other NOT NULL columns of it may be null, and their slots' zeros are
 * what is written. *patch: such nulls were met. */
static struct tarn_status *check_nulls(const struct tarn_merge_layout *layout,
                                       const struct tarn_batch *batch, const int8_t *kinds,
                                       int column, bool *patch)
{
    const struct tarn_field *field = &layout->table->schema->fields[column];
    const struct ArrowArray *a = tarn_batch_column(batch, column);

    *patch = false;
    if (field->type->nullable || !tarn_merge__has_nulls(a))
        return TARN_OK;
    for (int64_t i = 0; i < batch->row_count; i++) {
        if (!tarn_column_is_null(a, i))
            continue;
        if (!tarn_merge__is_retract(kinds[i]) || !may_lack(layout, column))
            return tarn_status_new(TARN_VALUE_INVALID, "row %" PRId64 ": column %.*s is NOT NULL",
                                   i + 1, TARN_SLICE_ARG(field->name));
        *patch = true;
    }
    return TARN_OK;
}

/* A fresh column in which rows that are null have zeros or nothing. */
static void without_nulls(const struct tarn_type *type, const struct ArrowArray *a,
                          struct ArrowArray *out)
{
    int width = tarn_merge__type_width(type);
    int64_t n = a->length;

    if (type->id == TARN_TYPE_BOOLEAN) {
        const uint8_t *from = a->buffers[1];
        tarn_merge__array_init(out, n, 2, 0);
        uint8_t *bits = tarn_merge__array_buffer(out, 1, (size_t)(n + 7) / 8, true);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = i + a->offset;
            if (!tarn_column_is_null(a, i) && (from[at >> 3] >> (at & 7) & 1) != 0)
                bits[i >> 3] |= (uint8_t)(1u << (i & 7));
        }
        return;
    }
    if (width > 0) {
        tarn_merge__array_init(out, n, 2, 0);
        uint8_t *to = tarn_merge__array_buffer(out, 1, (size_t)(n * width), true);
        for (int64_t i = 0; i < n; i++) {
            if (!tarn_column_is_null(a, i))
                memcpy(to + i * width, (const uint8_t *)a->buffers[1] + (a->offset + i) * width,
                       (size_t)width);
        }
        return;
    }
    const int32_t *offsets = (const int32_t *)a->buffers[1] + a->offset;
    int32_t at = 0;
    tarn_merge__array_init(out, n, 3, 0);
    int32_t *to = tarn_merge__array_buffer(out, 1, ((size_t)n + 1) * 4, true);
    uint8_t *bytes = tarn_merge__array_buffer(out, 2, (size_t)(offsets[n] - offsets[0]), false);
    for (int64_t i = 0; i < n; i++) {
        int32_t size = tarn_column_is_null(a, i) ? 0 : offsets[i + 1] - offsets[i];
        if (size > 0)
            memcpy(bytes + at, (const uint8_t *)a->buffers[2] + offsets[i], (size_t)size);
        at += size;
        to[i + 1] = at;
    }
}

/* The batch as it is buffered: kinds as they count, no null where there must be none. */
static struct tarn_status *adopt(const struct tarn_table_writer *writer, struct tarn_batch *batch,
                                 const int8_t *kinds, struct tarn_batch **out)
{
    const struct tarn_merge_layout *layout = &writer->layout;
    int n = layout->column_count;
    struct tarn_status *s = TARN_OK;
    struct ArrowArray top;
    bool changed = layout->table->options->rowkind_column >= 0;

    tarn_merge__array_init(&top, batch->row_count, 1, n + 1);
    for (int i = 0; i < n && s == TARN_OK; i++) {
        const struct tarn_type *type = layout->types[i];
        bool patch;
        s = check_nulls(layout, batch, kinds, i, &patch);
        if (s == TARN_OK && patch && tarn_type_is_nested(type))
            s = tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                                "deletes without a value for column %.*s, which "
                                "is nested and NOT NULL",
                                TARN_SLICE_ARG(layout->table->schema->fields[i].name));
        if (s != TARN_OK)
            break;
        if (patch)
            without_nulls(type, tarn_batch_column(batch, i), top.children[i]);
        else
            tarn_merge__array_share(tarn_batch_column(batch, i), batch, 0, batch->row_count,
                                    top.children[i]);
        changed = changed || patch;
    }
    if (s != TARN_OK || !changed) {
        tarn_merge__array_drop(&top);
        *out = s == TARN_OK ? tarn_batch_ref(batch) : NULL;
        return s;
    }
    tarn_merge__array_init(top.children[n], batch->row_count, 2, 0);
    memcpy(tarn_merge__array_buffer(top.children[n], 1, (size_t)batch->row_count, false), kinds,
           (size_t)batch->row_count);
    *out = tarn_batch_take(&top);
    return TARN_OK;
}

/* --- what is in memory becomes runs and files --- */

static void forget_chunks(struct tarn_table_writer *writer)
{
    for (size_t i = 0; i < writer->chunk_count; i++)
        tarn_batch_unref(writer->chunks[i]);
    writer->chunk_count = 0;
    writer->held_bytes = writer->held_rows = 0;
    for (size_t i = 0; i < writer->bucket_count; i++) {
        free(writer->buckets[i].rows); /* its memory counts too: give it back */
        writer->buckets[i].rows = NULL;
        writer->buckets[i].row_count = writer->buckets[i].row_capacity = 0;
    }
}

static int64_t batch_rows(const struct tarn_table_writer *writer)
{
    int64_t row_size = writer->held_rows == 0 ? 1 : writer->held_bytes / writer->held_rows + 1;
    return TARN_MAX(INT64_C(1),
                    TARN_MIN((int64_t)TARN_MERGE_BATCH_ROWS, TARN_MERGE_BATCH_BYTES / row_size));
}

static struct tarn_status *ask_sequence(struct tarn_table_writer *writer, struct tarn_op *op,
                                        uint32_t target, int64_t count, int64_t *first)
{
    struct tarn_slice partition;
    int32_t number;

    tarn_merge__assign_get(writer->assign, target, &partition, &number);
    return writer->spec.sequence(writer->spec.sequence_arg, op, partition, number, count, first);
}

static struct tarn_merge_roll *new_roll(struct tarn_table_writer *writer, uint32_t target,
                                        bool is_changelog)
{
    struct tarn_merge_roll_spec spec = {
        .layout = &writer->layout,
        .total_buckets = tarn_merge__assign_total(writer->assign, target),
        .source = TARN_SOURCE_APPEND,
        .is_changelog = is_changelog,
        .arena = writer->arena,
        .entries = is_changelog ? &writer->changelog : &writer->entries,
    };

    tarn_merge__assign_get(writer->assign, target, &spec.partition, &spec.bucket);
    return tarn_merge__roll_new(&spec);
}

/* Keys of all chunks, for sorting whichever bucket. */
struct chunk_keys {
    struct tarn_merge_keys *keys, *orders; /* orders NULL: no sequence fields */
    size_t count;
};

static void chunk_keys_drop(struct chunk_keys *all)
{
    for (size_t i = 0; i < all->count; i++) {
        tarn_merge__keys_drop(&all->keys[i]);
        if (all->orders != NULL)
            tarn_merge__keys_drop(&all->orders[i]);
    }
    free(all->keys);
    free(all->orders);
    *all = (struct chunk_keys){0};
}

static struct tarn_status *build_keys(const struct tarn_table_writer *writer,
                                      struct chunk_keys *all)
{
    all->keys = tarn_calloc(writer->chunk_count + 1, sizeof *all->keys);
    if (writer->order.column_count > 0)
        all->orders = tarn_calloc(writer->chunk_count + 1, sizeof *all->orders);
    all->count = writer->chunk_count;
    for (size_t i = 0; i < writer->chunk_count; i++) {
        TARN_TRY(tarn_merge__keys_build(&writer->key, writer->chunks[i], &all->keys[i]));
        if (all->orders != NULL)
            TARN_TRY(tarn_merge__keys_build(&writer->order, writer->chunks[i], &all->orders[i]));
    }
    return TARN_OK;
}

static struct tarn_status *drain_input(struct tarn_merge_input *input, struct tarn_op *op,
                                       struct tarn_merge_roll *roll)
{
    for (;;) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        uint32_t place;
        TARN_TRY(input->next(input, op, &batch, &place));
        if (batch == NULL)
            return TARN_OK;
        TARN_TRY(tarn_merge__roll_add(roll, op, batch, 0));
    }
}

static struct tarn_status *end_log(struct tarn_table_writer *writer, struct tarn_op *op)
{
    if (writer->log == NULL)
        return TARN_OK;
    TARN_TRY(tarn_merge__roll_cut(writer->log, op));
    tarn_merge__roll_free(tarn_move(writer->log));
    return TARN_OK;
}

/* All rows of a bucket that was sorted go to the changelog, to a file that stays open where rows come in order. */
static struct tarn_status *log_bucket(struct tarn_table_writer *writer, struct tarn_op *op,
                                      const struct tarn_merge_buffer_spec *sorted, uint32_t target)
{
    struct tarn_merge_buffer_spec spec = *sorted;
    bool in_order = !writer->in_order.broken;

    if (!writer->logs)
        return TARN_OK;
    spec.keep_all = true;
    TARN_OWN(tarn_merge__input_drop) struct tarn_merge_input *input =
        tarn_merge__buffer_sort(&spec);
    if (writer->log == NULL)
        writer->log = new_roll(writer, target, true);
    TARN_TRY(drain_input(input, op, writer->log));
    return in_order ? TARN_OK : end_log(writer, op);
}

/* The bucket's rows in memory, sorted. `spec` outlives the input. */
static struct tarn_status *sort_bucket(struct tarn_table_writer *writer, struct tarn_op *op,
                                       const struct chunk_keys *all, uint32_t target,
                                       struct tarn_merge_buffer_spec *spec,
                                       struct tarn_merge_input **out)
{
    const struct bucket *bucket = &writer->buckets[target];
    int64_t first = 0;

    TARN_TRY(ask_sequence(writer, op, target, (int64_t)bucket->row_count, &first));
    *spec = (struct tarn_merge_buffer_spec){
        .layout = &writer->layout,
        .chunks = writer->chunks,
        .chunk_count = writer->chunk_count,
        .keys = all->keys,
        .orders = all->orders,
        .rows = bucket->rows,
        .row_count = bucket->row_count,
        .first_sequence = first,
        .batch_rows = batch_rows(writer),
        .place = SPILL_RUNS_MAX + 1,
        .keep_all = writer->merges || writer->postpones,
    };
    TARN_TRY(log_bucket(writer, op, spec, target));
    *out = tarn_merge__buffer_sort(spec);
    return TARN_OK;
}

static struct tarn_status *spill_bucket(struct tarn_table_writer *writer, struct tarn_op *op,
                                        const struct chunk_keys *all, uint32_t target)
{
    struct bucket *bucket = &writer->buckets[target];
    struct tarn_merge_buffer_spec spec;
    TARN_OWN(tarn_merge__input_drop) struct tarn_merge_input *input = NULL;
    struct tarn_merge_segment segment;

    TARN_TRY(sort_bucket(writer, op, all, target, &spec, &input));
    TARN_TRY(tarn_merge__spill_write(writer->spill, op, input, &segment));
    TARN_GROW(bucket->spills, bucket->spill_count, bucket->spill_capacity);
    bucket->spills[bucket->spill_count++] = segment;
    return TARN_OK;
}

static struct tarn_status *drain_source(struct tarn_source *source, struct tarn_op *op,
                                        struct tarn_merge_roll *roll)
{
    for (;;) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        TARN_TRY(source->next(source, op, &batch));
        if (batch == NULL)
            return TARN_OK;
        TARN_TRY(tarn_merge__roll_add(roll, op, batch, 0));
    }
}

/* Spilled runs and `memory`, which is consumed and may be NULL, into files. */
static struct tarn_status *merge_spills(struct tarn_table_writer *writer, struct tarn_op *op,
                                        struct bucket *bucket, struct tarn_merge_input *memory,
                                        struct tarn_merge_roll *roll)
{
    const struct tarn_merge_layout *layout = &writer->layout;
    struct tarn_merge_input *inputs[SPILL_RUNS_MAX + 2];
    size_t count = 0;
    TARN_OWN(tarn_source_drop) struct tarn_source *merged = NULL;
    struct tarn_merge_tree_spec spec = {
        .key = &writer->key,
        .order = &writer->order,
        .sequence_column = layout->column_count,
        .kind_column = layout->column_count + 1,
        .keep_first = layout->table->options->merge_engine == TARN_MERGE_FIRST_ROW,
        .engine = writer->engine,
        .columns = writer->columns,
        .types = layout->types,
        .column_count = layout->column_count + 2,
    };
    for (size_t i = 0; i < bucket->spill_count; i++)
        inputs[count++] = tarn_merge__spill_read(writer->spill, bucket->spills[i], (uint32_t)i);
    if (memory != NULL)
        inputs[count++] = memory;
    TARN_TRY(tarn_merge__tree_open(op, &spec, inputs, count, &merged));
    return drain_source(merged, op, roll);
}

static struct tarn_status *finish_bucket(struct tarn_table_writer *writer, struct tarn_op *op,
                                         const struct chunk_keys *all, uint32_t target)
{
    struct bucket *bucket = &writer->buckets[target];
    struct tarn_merge_buffer_spec spec;
    TARN_OWN(tarn_merge__input_drop) struct tarn_merge_input *memory = NULL;

    if (bucket->row_count > 0)
        TARN_TRY(sort_bucket(writer, op, all, target, &spec, &memory));
    if (memory == NULL && bucket->spill_count == 0)
        return TARN_OK;

    struct tarn_merge_roll *roll = new_roll(writer, target, false);
    struct tarn_status *s = bucket->spill_count == 0 && (!writer->merges || writer->postpones)
                                ? drain_input(memory, op, roll)
                                : merge_spills(writer, op, bucket, tarn_move(memory), roll);
    if (s == TARN_OK)
        s = tarn_merge__roll_cut(roll, op);
    tarn_merge__roll_free(roll);
    bucket->spill_count = 0;
    return s;
}

/* Rows so far are one bucket's and in order: those in memory go to the file that is open. */
static struct tarn_status *stream_out(struct tarn_table_writer *writer, struct tarn_op *op)
{
    TARN_OWN(chunk_keys_drop) struct chunk_keys all = {0};
    struct tarn_merge_buffer_spec spec;
    TARN_OWN(tarn_merge__input_drop) struct tarn_merge_input *input = NULL;

    if (writer->buckets[0].row_count == 0)
        return TARN_OK; /* deletes that are ignored */
    TARN_TRY(build_keys(writer, &all));
    TARN_TRY(sort_bucket(writer, op, &all, 0, &spec, &input));
    if (writer->stream == NULL)
        writer->stream = new_roll(writer, 0, false);
    return drain_input(input, op, writer->stream);
}

static struct tarn_status *end_stream(struct tarn_table_writer *writer, struct tarn_op *op)
{
    TARN_TRY(end_log(writer, op));
    if (writer->stream == NULL)
        return TARN_OK;
    TARN_TRY(tarn_merge__roll_cut(writer->stream, op));
    tarn_merge__roll_free(tarn_move(writer->stream));
    return TARN_OK;
}

/* Notices whether rows still come in order. If not, the file ends: what is in memory is newer than all of it, and is
 * numbered later. */
static struct tarn_status *follow_order(struct tarn_table_writer *writer, struct tarn_op *op,
                                        struct tarn_batch *chunk)
{
    if (writer->in_order.broken)
        return TARN_OK;
    TARN_TRY(tarn_merge__order_follow(&writer->in_order, &writer->key, chunk));
    if (tarn_merge__assign_count(writer->assign) > 1)
        writer->in_order.broken = true;
    return writer->in_order.broken ? end_stream(writer, op) : TARN_OK;
}

/* Everything, spilled or in memory, becomes level-0 files. */
static struct tarn_status *write_keyed(struct tarn_table_writer *writer, struct tarn_op *op)
{
    TARN_OWN(chunk_keys_drop) struct chunk_keys all = {0};

    TARN_TRY(build_keys(writer, &all));
    for (uint32_t i = 0; i < writer->bucket_count; i++)
        TARN_TRY(finish_bucket(writer, op, &all, i));
    if (writer->spill != NULL)
        tarn_merge__spill_clear(writer->spill);
    return TARN_OK;
}

static bool has_many_spills(const struct tarn_table_writer *writer)
{
    for (size_t i = 0; i < writer->bucket_count; i++) {
        if (writer->buckets[i].spill_count >= SPILL_RUNS_MAX)
            return true;
    }
    return false;
}

static struct tarn_status *spill_all(struct tarn_table_writer *writer, struct tarn_op *op)
{
    TARN_OWN(chunk_keys_drop) struct chunk_keys all = {0};

    if (writer->spec.scratch_dir == NULL || writer->postpones || has_many_spills(writer))
        return write_keyed(writer, op);
    if (writer->spill == NULL)
        TARN_TRY(tarn_merge__spill_open(writer->spec.scratch_dir, writer->layout.types,
                                        writer->layout.column_count + 2, &writer->spill));
    TARN_TRY(build_keys(writer, &all));
    for (uint32_t i = 0; i < writer->bucket_count; i++) {
        if (writer->buckets[i].row_count > 0)
            TARN_TRY(spill_bucket(writer, op, &all, i));
    }
    return TARN_OK;
}

/* Append tables: the bucket's rows in order of arrival, to the file that is open. */
static struct tarn_status *append_bucket(struct tarn_table_writer *writer, struct tarn_op *op,
                                         uint32_t target, struct tarn_merge_picks *picks)
{
    struct bucket *bucket = &writer->buckets[target];
    const struct tarn_merge_layout *layout = &writer->layout;
    size_t most = (size_t)batch_rows(writer);
    int64_t first = bucket->next_sequence;

    if (layout->table->options->bucket > 0)
        TARN_TRY(ask_sequence(writer, op, target, (int64_t)bucket->row_count, &first));
    bucket->next_sequence = first + (int64_t)bucket->row_count;
    if (bucket->roll == NULL)
        bucket->roll = new_roll(writer, target, false);
    for (size_t begin = 0, end; begin < bucket->row_count; begin = end) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;

        end = TARN_MIN(bucket->row_count, begin + most);
        tarn_merge__picks_clear(picks);
        for (size_t i = begin; i < end; i++)
            tarn_merge__picks_add(picks, (uint32_t)(bucket->rows[i] >> 32),
                                  (uint32_t)bucket->rows[i], 1);
        TARN_TRY(tarn_merge__gather_batch(writer->chunks, writer->chunk_count, NULL, layout->types,
                                          layout->column_count, picks, &batch));
        TARN_TRY(tarn_merge__roll_add(bucket->roll, op, batch, first + (int64_t)begin));
    }
    return TARN_OK;
}

static struct tarn_status *append_all(struct tarn_table_writer *writer, struct tarn_op *op,
                                      bool last)
{
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks picks = {0};

    for (uint32_t i = 0; i < writer->bucket_count; i++) {
        struct bucket *bucket = &writer->buckets[i];
        if (bucket->row_count > 0)
            TARN_TRY(append_bucket(writer, op, i, &picks));
        if (bucket->roll != NULL && (last || writer->bucket_count > OPEN_FILES_MAX)) {
            TARN_TRY(tarn_merge__roll_cut(bucket->roll, op));
            tarn_merge__roll_free(tarn_move(bucket->roll));
        }
    }
    return TARN_OK;
}

/* --- add --- */

static void keep_row(struct tarn_table_writer *writer, uint32_t target, size_t chunk, uint32_t row,
                     int8_t kind)
{
    const struct tarn_options *options = writer->layout.table->options;
    struct bucket *bucket = &writer->buckets[target];

    if (tarn_merge__is_retract(kind) &&
        (options->ignore_delete || (options->ignore_update_before && kind == 1)))
        return;
    TARN_GROW(bucket->rows, bucket->row_count, bucket->row_capacity);
    bucket->rows[bucket->row_count++] = (uint64_t)chunk << 32 | row;
}

/* The rows of the chunk that was added last; where keys leave other partitions, their deletes there go before, and are a
 * chunk of their own. */
static struct tarn_status *keep_rows(struct tarn_table_writer *writer, const int8_t *kinds,
                                     int64_t row_count)
{
    size_t chunk = writer->chunk_count - 1, leave_count, next = 0;
    const struct tarn_merge_leave *leaves = tarn_merge__assign_leaves(writer->assign, &leave_count);

    while (writer->bucket_count < tarn_merge__assign_count(writer->assign)) {
        TARN_GROW(writer->buckets, writer->bucket_count, writer->bucket_capacity);
        writer->buckets[writer->bucket_count++] = (struct bucket){0};
    }
    for (uint32_t i = 0; i < (uint32_t)row_count; i++) {
        if (next < leave_count && leaves[next].row == i) {
            keep_row(writer, leaves[next].target, chunk + 1, (uint32_t)next,
                     TARN_MERGE_KIND_DELETE);
            next++;
        }
        keep_row(writer, writer->targets[i], chunk, i, kinds[i]);
    }
    if (leave_count == 0)
        return TARN_OK;
    struct tarn_batch *deletes;
    TARN_TRY(tarn_merge__cross_deletes(&writer->layout, writer->chunks[chunk], leaves, leave_count,
                                       &deletes));
    TARN_GROW(writer->chunks, writer->chunk_count, writer->chunk_capacity);
    writer->chunks[writer->chunk_count++] = deletes;
    writer->held_bytes += tarn_batch_size(deletes);
    writer->held_rows += deletes->row_count;
    return TARN_OK;
}

static struct tarn_status *add_batch(struct tarn_table_writer *writer, struct tarn_op *op,
                                     struct tarn_batch *batch)
{
    int64_t n = batch->row_count;
    TARN_OWN(tarn_free_drop) int8_t *kinds = tarn_alloc((size_t)n + 1);
    struct tarn_batch *chunk = NULL;
    int64_t limit = writer->layout.keyed ? writer->spec.buffer_size
                                         : TARN_MIN(writer->spec.buffer_size, APPEND_BUFFER);

    if (batch->column_count != writer->layout.column_count + 1)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "%d columns were given, expected %d and row kinds",
                               batch->column_count, writer->layout.column_count);
    TARN_TRY(tarn_op_check(op));
    TARN_TRY(read_kinds(writer, batch, kinds));
    TARN_TRY(adopt(writer, batch, kinds, &chunk));
    if (writer->target_capacity < (size_t)n) {
        writer->targets = tarn_realloc(writer->targets, (size_t)n * sizeof *writer->targets);
        writer->target_capacity = (size_t)n;
    }
    TARN_GROW(writer->chunks, writer->chunk_count, writer->chunk_capacity);
    writer->chunks[writer->chunk_count++] = chunk;
    TARN_TRY(tarn_merge__assign_rows(writer->assign, op, chunk, writer->targets));
    TARN_TRY(keep_rows(writer, kinds, n));
    writer->held_bytes += tarn_batch_size(chunk);
    writer->held_rows += n;
    if (writer->layout.keyed)
        TARN_TRY(follow_order(writer, op, chunk));
    bool ordered = writer->layout.keyed && !writer->in_order.broken;
    if (ordered)
        limit = TARN_MIN(limit, STREAM_BUFFER);
    if (writer->held_bytes + writer->held_rows * ROW_OVERHEAD < limit &&
        writer->held_rows < INT32_MAX)
        return TARN_OK;
    if (ordered)
        TARN_TRY(stream_out(writer, op));
    else
        TARN_TRY(writer->layout.keyed ? spill_all(writer, op) : append_all(writer, op, false));
    forget_chunks(writer);
    return TARN_OK;
}

struct tarn_status *tarn_table_writer_add(struct tarn_table_writer *writer, struct tarn_op *op,
                                          struct tarn_batch *batch)
{
    struct tarn_status *s = TARN_OK;

    tarn_assert(!writer->finished);
    if (writer->failed)
        return tarn_status_new(TARN_INTERNAL, "the writer has failed before");
    if (batch->row_count > 0)
        s = add_batch(writer, op, batch);
    writer->failed = s != TARN_OK;
    return s;
}

/* --- the end --- */

static void copy_entries(const struct tarn_merge_entries *entries, struct tarn_arena *arena,
                         struct tarn_manifest_entry **out, size_t *count)
{
    /* What entries point to lies in the writer's arena: through bytes into the caller's. */
    struct tarn_manifest_entry *copies =
        tarn_arena_calloc(arena, entries->count + 1, sizeof *copies);

    for (size_t i = 0; i < entries->count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf packed = {0};
        tarn_manifest_entry_pack(&entries->items[i], true, &packed);
        struct tarn_status *s = tarn_manifest_entry_unpack(
            tarn_arena_copy(arena, tarn_buf_slice(&packed)), arena, &copies[i]);
        tarn_assert(s == TARN_OK); /* our own bytes, just made */
    }
    *out = copies;
    *count = entries->count;
}

void tarn_table_writer_changelog(struct tarn_table_writer *writer, struct tarn_arena *arena,
                                 struct tarn_manifest_entry **entries, size_t *count)
{
    tarn_assert(writer->finished);
    copy_entries(&writer->changelog, arena, entries, count);
}

struct tarn_status *tarn_table_writer_finish(struct tarn_table_writer *writer, struct tarn_op *op,
                                             struct tarn_arena *arena,
                                             struct tarn_manifest_entry **entries, size_t *count)
{
    tarn_assert(!writer->finished);
    if (writer->failed)
        return tarn_status_new(TARN_INTERNAL, "the writer has failed before");
    writer->failed = true; /* unless all goes well */
    if (writer->stream != NULL) {
        TARN_TRY(stream_out(writer, op));
        TARN_TRY(end_stream(writer, op));
    } else {
        TARN_TRY(writer->layout.keyed ? write_keyed(writer, op) : append_all(writer, op, true));
    }
    TARN_TRY(end_log(writer, op));
    forget_chunks(writer);
    TARN_TRY(tarn_merge__assign_write(writer->assign, op, writer->arena, &writer->indexes));
    copy_entries(&writer->entries, arena, entries, count);
    writer->finished = true;
    writer->failed = false;
    return TARN_OK;
}

void tarn_table_writer_indexes(const struct tarn_table_writer *writer,
                               const struct tarn_index_file **files, size_t *count)
{
    *files = writer->indexes.items;
    *count = writer->indexes.count;
}

void tarn_table_writer_free(struct tarn_table_writer *writer)
{
    if (writer == NULL)
        return;
    forget_chunks(writer);
    tarn_merge__order_drop(&writer->in_order);
    tarn_merge__roll_free(writer->stream);
    tarn_merge__roll_free(writer->log);
    for (size_t i = 0; i < writer->bucket_count; i++) {
        tarn_merge__roll_free(writer->buckets[i].roll);
        free(writer->buckets[i].spills);
    }
    if (!writer->finished && writer->entries.count + writer->changelog.count > 0) {
        struct tarn_op cleaning; /* the writer's own operation may be cancelled */
        tarn_op_init(&cleaning);
        tarn_merge_remove_files(&cleaning, writer->layout.table, writer->entries.items,
                                writer->entries.count);
        tarn_merge_remove_files(&cleaning, writer->layout.table, writer->changelog.items,
                                writer->changelog.count);
        tarn_merge_remove_index_files(&cleaning, writer->layout.table, writer->indexes.items,
                                      writer->indexes.count);
        tarn_op_fini(&cleaning);
    }
    tarn_merge__spill_close(writer->spill);
    tarn_merge__assign_free(writer->assign);
    free(writer->buckets);
    free(writer->chunks);
    free(writer->targets);
    free(writer->entries.items);
    free(writer->changelog.items);
    free(writer->indexes.items);
    tarn_arena_free(writer->arena);
    free(writer);
}

/* Is the file taken away in the same list? Then it was only moved to another level, and stays. */
static bool is_moved(const struct tarn_manifest_entry *entries, size_t count,
                     struct tarn_slice name)
{
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind == TARN_ENTRY_DELETE && tarn_slice_equal(entries[i].file.name, name))
            return true;
    }
    return false;
}

void tarn_merge_remove_files(struct tarn_op *op, const struct tarn_merge_table *table,
                             const struct tarn_manifest_entry *entries, size_t count)
{
    struct tarn_merge_layout layout = {.table = table};

    for (size_t i = 0; i < count; i++) {
        const char *key = NULL;
        if (entries[i].kind != TARN_ENTRY_ADD || is_moved(entries, count, entries[i].file.name))
            continue;
        struct tarn_status *s = tarn_merge__file_key(
            &layout, entries[i].partition, entries[i].bucket, &entries[i].file, op->arena, &key);
        if (s == TARN_OK)
            s = tarn_store_remove(table->store, op, key);
        tarn_status_free(s); /* what can't be removed now is an orphan, and removed as one */
        for (size_t k = 0; k < entries[i].file.extra_file_count; k++) {
            struct tarn_data_file beside = {.name = entries[i].file.extra_files[k]};
            s = tarn_merge__file_key(&layout, entries[i].partition, entries[i].bucket, &beside,
                                     op->arena, &key);
            if (s == TARN_OK)
                s = tarn_store_remove(table->store, op, key);
            tarn_status_free(s);
        }
    }
}
