/*
 * roll - batches into data files, a new one whenever the target size or row count is reached.
 *
 * A primary key table's file has _KEY_ columns (the same arrays as the value columns; left out in thin
 * mode), _SEQUENCE_NUMBER, _VALUE_KIND and the table's columns; an append table's only those. What the
 * manifest wants to know (bounds, counts, statistics) is gathered on the way.
 */
#include "merge/internal.h"

#include <time.h>

#define FIELD_ID_KEY 1073741823
#define FIELD_ID_SEQUENCE 2147483646
#define FIELD_ID_KIND 2147483645
#define FIELD_ID_ROW 2147483642
#define SYSTEM_STATS_LENGTH 128 /* of keys, whatever the table's stats-mode */

struct tarn_merge_roll {
    struct tarn_merge_roll_spec spec;
    struct tarn_column_write *columns; /* of the file; in the spec's arena */
    int *places;                       /* where the file's columns lie in the batches */
    int column_count, key_count;       /* key_count: _KEY_ columns in front; 0 in thin mode */
    char uuid[TARN_UUID_SIZE];
    int file_number;
    struct tarn_file_writer *writer; /* NULL: no file begun */
    struct tarn_slice name;          /* of the file begun */
    int64_t row_count, delete_count, min_sequence, max_sequence;
    struct tarn_buf min_key, max_key;
    struct tarn_file_index_writer *indexes; /* of the file begun; NULL: none are asked for */
};

/* Compactions store what rows had: from now on neither their place nor their file gives it. */
static bool stores_tracking(const struct tarn_merge_roll *roll)
{
    return roll->spec.layout->table->options->row_tracking &&
           roll->spec.source == TARN_SOURCE_COMPACT;
}

static void add_column(struct tarn_merge_roll *roll, struct tarn_slice name, int32_t id,
                       const struct tarn_type *type, int place)
{
    roll->columns[roll->column_count] = (struct tarn_column_write){name, id, type};
    roll->places[roll->column_count++] = place;
}

static void plan_columns(struct tarn_merge_roll *roll)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;
    const struct tarn_schema *schema = layout->table->schema;
    struct tarn_arena *arena = roll->spec.arena;
    size_t most = layout->key_count + 2 + schema->field_count;

    roll->columns = tarn_arena_calloc(arena, most, sizeof *roll->columns);
    roll->places = tarn_arena_calloc(arena, most, sizeof *roll->places);
    if (layout->keyed && !layout->table->options->thin_mode) {
        roll->key_count = (int)layout->key_count;
        for (size_t i = 0; i < layout->key_count; i++) {
            const struct tarn_field *field = &schema->fields[layout->key_columns[i]];
            const char *name = tarn_arena_printf(arena, "_KEY_%.*s", TARN_SLICE_ARG(field->name));
            add_column(roll, tarn_slice_str(name), FIELD_ID_KEY + field->id, field->type,
                       layout->key_columns[i]);
        }
    }
    if (layout->keyed) {
        add_column(roll, tarn_slice_str("_SEQUENCE_NUMBER"), FIELD_ID_SEQUENCE,
                   &tarn_merge__sequence_type, layout->column_count);
        add_column(roll, tarn_slice_str("_VALUE_KIND"), FIELD_ID_KIND, &tarn_merge__kind_type,
                   layout->column_count + 1);
    }
    for (size_t i = 0; i < schema->field_count; i++)
        add_column(roll, schema->fields[i].name, schema->fields[i].id, schema->fields[i].type,
                   (int)i);
    if (stores_tracking(roll)) {
        add_column(roll, tarn_slice_str("_ROW_ID"), FIELD_ID_ROW, &tarn_merge__sequence_type,
                   layout->column_count);
        add_column(roll, tarn_slice_str("_SEQUENCE_NUMBER"), FIELD_ID_SEQUENCE,
                   &tarn_merge__sequence_type, layout->column_count + 1);
    }
}

struct tarn_merge_roll *tarn_merge__roll_new(const struct tarn_merge_roll_spec *spec)
{
    struct tarn_merge_roll *roll = tarn_calloc(1, sizeof *roll);

    roll->spec = *spec;
    roll->spec.partition = tarn_arena_copy(spec->arena, spec->partition);
    tarn_uuid_random(roll->uuid);
    if (spec->file_uuid != NULL)
        memcpy(roll->uuid, spec->file_uuid, TARN_FILE_UUID_SHARED);
    plan_columns(roll);
    return roll;
}

size_t tarn_merge__key_place(const struct tarn_merge_roll *roll, size_t key)
{
    /* thin mode: the value column, behind the two system columns */
    return roll->key_count > 0 ? key : 2 + (size_t)roll->spec.layout->key_columns[key];
}

size_t tarn_merge__sequence_place(const struct tarn_merge_roll *roll)
{
    return (size_t)roll->key_count;
}

void tarn_merge__roll_free(struct tarn_merge_roll *roll)
{
    if (roll == NULL)
        return;
    tarn_file_writer_abort(roll->writer);
    tarn_file_index_writer_free(roll->indexes);
    tarn_buf_drop(&roll->min_key);
    tarn_buf_drop(&roll->max_key);
    free(roll);
}

/* --- a file begins --- */

static struct tarn_file_write file_write(const struct tarn_merge_roll *roll)
{
    const struct tarn_options *options = roll->spec.layout->table->options;
    struct tarn_arena *arena = roll->spec.arena;
    bool log = roll->spec.is_changelog;

    return (struct tarn_file_write){
        .format = log ? tarn_options_changelog_format(options, roll->spec.level)
                      : tarn_options_file_format(options, roll->spec.level),
        .compression = tarn_arena_str(
            arena, log ? tarn_options_changelog_compression(options, roll->spec.level)
                       : tarn_options_file_compression(options, roll->spec.level)),
        .zstd_level = options->zstd_level,
        .row_group_size = tarn_options_block_size(options, roll->spec.level),
        .columns = roll->columns,
        .column_count = (size_t)roll->column_count,
    };
}

/* Who moves them reads files of one writer in order (docs/format.md, "Postpone bucket"): all of ours are, by the time they were made. */
#define POSTPONE_WRITER "-u-tarn-s-0-w-"

static struct tarn_status *begin_file(struct tarn_merge_roll *roll, struct tarn_op *op)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;
    const struct tarn_options *options = layout->table->options;
    struct tarn_arena *arena = roll->spec.arena;
    struct tarn_data_file file = {0};
    struct tarn_file_write write = file_write(roll);
    const char *key = NULL;

    struct tarn_slice prefix =
        roll->spec.is_changelog ? options->changelog_file_prefix : options->data_file_prefix;

    tarn_assert(write.format != NULL); /* options that say another one are refused before */
    const char *writer = roll->spec.bucket == TARN_BUCKET_POSTPONE && !roll->spec.is_changelog
                             ? POSTPONE_WRITER
                             : "";
    roll->name =
        tarn_slice_str(tarn_arena_printf(arena, "%.*s%s%s-%d.%s", TARN_SLICE_ARG(prefix), writer,
                                         roll->uuid, roll->file_number++, write.format));
    file.name = roll->name;
    TARN_TRY(
        tarn_merge__file_key(layout, roll->spec.partition, roll->spec.bucket, &file, arena, &key));
    roll->row_count = roll->delete_count = 0;
    roll->min_sequence = INT64_MAX;
    roll->max_sequence = INT64_MIN;
    if (!roll->spec.is_changelog) {
        tarn_file_index_writer_free(roll->indexes);
        roll->indexes = tarn_file_index_writer_new(layout->table->schema, options);
    }
    return tarn_file_writer_open(layout->table->store, op, key, &write, &roll->writer);
}

/* --- rows --- */

static void serialize_key(const struct tarn_merge_roll *roll, const struct tarn_batch *batch,
                          int64_t row, struct tarn_buf *out)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;
    struct tarn_value *values = tarn_calloc(layout->key_count + 1, sizeof *values);

    for (size_t i = 0; i < layout->key_count; i++)
        tarn_column_value(tarn_batch_column(batch, layout->key_columns[i]), layout->key_types[i],
                          row, &values[i]);
    tarn_buf_clear(out);
    tarn_row_serialize(layout->key_types, values, layout->key_count, out);
    free(values);
}

/* Rows [begin, begin + count) of a column for index i of the file. */
static void index_column(struct tarn_merge_roll *roll, size_t i, const struct ArrowArray *column,
                         int64_t begin, int64_t count)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;
    const struct tarn_type *type = layout->types[layout->table->options->file_indexes[i].column];
    struct tarn_value value;

    for (int64_t row = begin; row < begin + count; row++) {
        tarn_column_value(column, type, row, &value);
        tarn_file_index_writer_add(roll->indexes, i, &value);
    }
}

/* The same of rows that go in as they are: only the columns that have indexes are read. */
static struct tarn_status *index_copied(struct tarn_merge_roll *roll, struct tarn_op *op,
                                        const struct tarn_file_copy *copy, int64_t row_begin,
                                        int64_t row_end)
{
    const struct tarn_merge_table *table = roll->spec.layout->table;
    size_t n = table->options->file_index_count;
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_source_drop) struct tarn_source *source = NULL;
    struct tarn_column_read *columns = tarn_arena_calloc(arena, n + 1, sizeof *columns);
    struct tarn_file_read spec = {
        .columns = columns, .column_count = n, .row_begin = row_begin, .row_end = row_end};

    if (roll->indexes == NULL || row_begin == row_end)
        return TARN_OK;
    for (size_t i = 0; i < n; i++) {
        const struct tarn_field *field =
            &table->schema->fields[table->options->file_indexes[i].column];
        columns[i] = (struct tarn_column_read){.file_name = field->name, .type = field->type};
    }
    TARN_TRY(tarn_file_reader_open(table->store, op, tarn_file_copy_key(copy), &spec, &source));
    for (;;) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        TARN_TRY(tarn_op_check(op));
        TARN_TRY(source->next(source, op, &batch));
        if (batch == NULL)
            return TARN_OK;
        for (size_t i = 0; i < n; i++)
            index_column(roll, i, tarn_batch_column(batch, (int)i), 0, batch->row_count);
    }
}

/* What the manifest's entry says of rows [begin, begin + count). */
static void note_rows(struct tarn_merge_roll *roll, const struct tarn_batch *batch, int64_t begin,
                      int64_t count, int64_t first_sequence)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;

    if (stores_tracking(roll)) {
        const struct ArrowArray *s = tarn_batch_column(batch, layout->column_count + 1);
        const int64_t *sequence = (const int64_t *)s->buffers[1] + s->offset + begin;
        for (int64_t i = 0; i < count; i++) {
            roll->min_sequence = TARN_MIN(roll->min_sequence, sequence[i]);
            roll->max_sequence = TARN_MAX(roll->max_sequence, sequence[i]);
        }
    } else if (!layout->keyed) {
        roll->min_sequence = TARN_MIN(roll->min_sequence, first_sequence);
        roll->max_sequence = TARN_MAX(roll->max_sequence, first_sequence + count - 1);
    } else {
        const struct ArrowArray *s = tarn_batch_column(batch, layout->column_count);
        const struct ArrowArray *k = tarn_batch_column(batch, layout->column_count + 1);
        const int64_t *sequence = (const int64_t *)s->buffers[1] + s->offset + begin;
        const int8_t *kind = (const int8_t *)k->buffers[1] + k->offset + begin;

        for (int64_t i = 0; i < count; i++) {
            roll->min_sequence = TARN_MIN(roll->min_sequence, sequence[i]);
            roll->max_sequence = TARN_MAX(roll->max_sequence, sequence[i]);
            roll->delete_count += tarn_merge__is_retract(kind[i]);
        }
        if (roll->row_count == 0)
            serialize_key(roll, batch, begin, &roll->min_key);
        serialize_key(roll, batch, begin + count - 1, &roll->max_key);
    }
    roll->row_count += count;
}

struct tarn_status *tarn_merge__roll_add(struct tarn_merge_roll *roll, struct tarn_op *op,
                                         struct tarn_batch *batch, int64_t first_sequence)
{
    const struct tarn_options *options = roll->spec.layout->table->options;

    for (int64_t begin = 0, count; begin < batch->row_count; begin += count) {
        TARN_TRY(tarn_op_check(op));
        if (roll->writer == NULL)
            TARN_TRY(begin_file(roll, op));
        count = batch->row_count - begin;
        if (options->target_file_row_count > 0)
            count = TARN_MIN(
                count, TARN_MAX(options->target_file_row_count - roll->row_count, INT64_C(1)));
        {
            TARN_OWN(tarn_batch_drop) struct tarn_batch *view =
                tarn_merge__batch_view(batch, roll->places, roll->column_count, begin, count);
            TARN_TRY(tarn_file_writer_add(roll->writer, op, view));
        }
        note_rows(roll, batch, begin, count, first_sequence + begin);
        for (size_t i = 0; roll->indexes != NULL && i < options->file_index_count; i++)
            index_column(roll, i, tarn_batch_column(batch, options->file_indexes[i].column), begin,
                         count);
        if (tarn_file_writer_size(roll->writer) >= options->target_file_size ||
            (options->target_file_row_count > 0 &&
             roll->row_count >= options->target_file_row_count))
            TARN_TRY(tarn_merge__roll_cut(roll, op));
    }
    return TARN_OK;
}

/* --- files that go in as they are --- */

static bool same_fields(const struct tarn_schema *a, const struct tarn_schema *b)
{
    bool same = a == b || (a != NULL && a->field_count == b->field_count);

    for (size_t i = 0; a != b && same && i < a->field_count; i++)
        same = a->fields[i].id == b->fields[i].id &&
               tarn_slice_equal(a->fields[i].name, b->fields[i].name) &&
               tarn_type_equal(a->fields[i].type, b->fields[i].type, false);
    return same;
}

/* Are the file's rows, all of them as they are, what merging them alone gives? */
static bool is_plain(const struct tarn_merge_roll *roll, const struct tarn_data_file *file)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;
    bool no_deletes =
        file->delete_row_count == 0 || (!layout->keyed && file->delete_row_count == TARN_FILE_NONE);

    return no_deletes && !file->has_write_columns && file->first_row_id == TARN_FILE_NONE &&
           !file->unknown && file->vector.path.data == NULL &&
           layout->table->options->target_file_row_count == INT64_MAX &&
           same_fields(tarn_merge__schema_of(layout->table, file->schema_id),
                       layout->table->schema);
}

static bool is_covered(const struct tarn_data_file *file, struct tarn_slice name, size_t *at)
{
    for (*at = 0; *at < file->value_stats_column_count; (*at)++) {
        if (tarn_slice_equal(file->value_stats_columns[*at], name))
            return true;
    }
    return false;
}

/* Which of the file's columns have bounds in the manifest: those hold no NaN, which Parquet's bounds leave out. */
static struct tarn_status *find_bounded(const struct tarn_merge_roll *roll,
                                        const struct tarn_data_file *file, struct tarn_arena *arena,
                                        bool *bounded)
{
    const struct tarn_schema *schema = roll->spec.layout->table->schema;
    size_t n = file->has_value_stats_columns ? file->value_stats_column_count : schema->field_count;
    const struct tarn_type **types = tarn_arena_calloc(arena, n + 1, sizeof *types);
    size_t *covered = tarn_arena_calloc(arena, n + 1, sizeof *covered); /* fields of the schema */
    struct tarn_value *values = tarn_arena_calloc(arena, n + 1, sizeof *values);
    size_t found = 0, at;

    if (file->value_stats.count != n) /* none were kept */
        return TARN_OK;
    for (size_t i = 0; i < schema->field_count; i++) {
        at = i;
        if (file->has_value_stats_columns && !is_covered(file, schema->fields[i].name, &at))
            continue;
        types[at] = schema->fields[i].type;
        covered[at] = i;
        found++;
    }
    if (found != n)
        return TARN_OK;
    TARN_TRY(tarn_row_deserialize(file->value_stats.max, types, n, values));
    for (size_t i = 0; i < n; i++)
        bounded[(size_t)roll->column_count - schema->field_count + covered[i]] = !values[i].is_null;
    return TARN_OK;
}

/* A file that was small stays in one with its neighbours; one that is large enough is not blown up. */
static bool cut_before(const struct tarn_merge_roll *roll, int64_t size)
{
    const struct tarn_options *options = roll->spec.layout->table->options;
    int64_t now = roll->writer == NULL ? 0 : tarn_file_writer_size(roll->writer);

    return (double)now >= (double)options->target_file_size * options->small_file_ratio &&
           now + size > options->target_file_size;
}

static void note_file(struct tarn_merge_roll *roll, const struct tarn_data_file *file,
                      int64_t first_sequence)
{
    bool keyed = roll->spec.layout->keyed;
    int64_t first = keyed ? file->min_sequence : first_sequence;
    int64_t last = keyed ? file->max_sequence : first_sequence + file->row_count - 1;

    roll->min_sequence = TARN_MIN(roll->min_sequence, first);
    roll->max_sequence = TARN_MAX(roll->max_sequence, last);
    if (keyed && roll->row_count == 0) {
        tarn_buf_clear(&roll->min_key);
        tarn_buf_add_slice(&roll->min_key, file->min_key);
    }
    if (keyed) {
        tarn_buf_clear(&roll->max_key);
        tarn_buf_add_slice(&roll->max_key, file->max_key);
    }
    roll->row_count += file->row_count;
}

static struct tarn_status *copy_file(struct tarn_merge_roll *roll, struct tarn_op *op,
                                     const struct tarn_data_file *file, struct tarn_file_copy *copy,
                                     int64_t first_sequence)
{
    const struct tarn_row_group *groups;
    size_t count = tarn_file_copy_groups(copy, &groups);

    if (cut_before(roll, file->size))
        TARN_TRY(tarn_merge__roll_cut(roll, op));
    if (roll->writer == NULL)
        TARN_TRY(begin_file(roll, op));
    for (size_t i = 0; i < count; i++) {
        TARN_TRY(tarn_op_check(op));
        if (groups[i].row_count > 0)
            TARN_TRY(tarn_file_writer_copy(roll->writer, op, copy, i));
    }
    TARN_TRY(index_copied(roll, op, copy, 0, file->row_count));
    note_file(roll, file, first_sequence);
    if (tarn_file_writer_size(roll->writer) >= roll->spec.layout->table->options->target_file_size)
        return tarn_merge__roll_cut(roll, op);
    return TARN_OK;
}

struct tarn_status *tarn_merge__copy_open(const struct tarn_merge_roll *roll, struct tarn_op *op,
                                          const struct tarn_manifest_entry *entry,
                                          struct tarn_file_copy **copy)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    bool *bounded = tarn_arena_calloc(arena, (size_t)roll->column_count + 1, sizeof *bounded);
    struct tarn_file_write write = file_write(roll);
    const char *key = NULL;

    *copy = NULL;
    if (!is_plain(roll, &entry->file) || entry->file.row_count <= 0)
        return TARN_OK;
    TARN_TRY(
        tarn_merge__file_key(layout, entry->partition, entry->bucket, &entry->file, arena, &key));
    TARN_TRY(find_bounded(roll, &entry->file, arena, bounded));
    TARN_TRY(tarn_file_copy_open(layout->table->store, op, key, &write, bounded, copy));
    if (*copy != NULL && tarn_file_copy_row_count(*copy) != entry->file.row_count) {
        tarn_file_copy_close(*copy);
        *copy = NULL;
    }
    return TARN_OK;
}

struct tarn_status *tarn_merge__roll_copy(struct tarn_merge_roll *roll, struct tarn_op *op,
                                          const struct tarn_manifest_entry *entry,
                                          int64_t first_sequence, bool *copied)
{
    struct tarn_file_copy *copy = NULL;

    *copied = false;
    TARN_TRY(tarn_merge__copy_open(roll, op, entry, &copy));
    if (copy == NULL)
        return TARN_OK;
    struct tarn_status *s = copy_file(roll, op, &entry->file, copy, first_sequence);
    tarn_file_copy_close(copy);
    *copied = s == TARN_OK;
    return s;
}

static int64_t first_row(const struct tarn_merge_group *group)
{
    const struct tarn_row_group *groups;
    int64_t row = 0;

    tarn_file_copy_groups(group->copy, &groups);
    for (size_t i = 0; i < group->index; i++)
        row += groups[i].row_count;
    return row;
}

struct tarn_status *tarn_merge__roll_copy_group(struct tarn_merge_roll *roll, struct tarn_op *op,
                                                const struct tarn_merge_group *group)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;

    TARN_TRY(tarn_op_check(op));
    if (roll->writer == NULL)
        TARN_TRY(begin_file(roll, op));
    TARN_TRY(tarn_file_writer_copy(roll->writer, op, group->copy, group->index));
    TARN_TRY(
        index_copied(roll, op, group->copy, first_row(group), first_row(group) + group->row_count));
    roll->min_sequence = TARN_MIN(roll->min_sequence, group->min_sequence);
    roll->max_sequence = TARN_MAX(roll->max_sequence, group->max_sequence);
    if (roll->row_count == 0) {
        tarn_buf_clear(&roll->min_key);
        tarn_row_serialize(layout->key_types, &group->min, 1, &roll->min_key);
    }
    tarn_buf_clear(&roll->max_key);
    tarn_row_serialize(layout->key_types, &group->max, 1, &roll->max_key);
    roll->row_count += group->row_count;
    if (tarn_file_writer_size(roll->writer) >= layout->table->options->target_file_size)
        return tarn_merge__roll_cut(roll, op);
    return TARN_OK;
}

/* --- a file ends --- */

/* Milliseconds of the local wall clock, as if it were UTC: what Java stores. */
static int64_t local_wall_ms(void)
{
    int64_t now = tarn_clock_wall_ms();
    time_t seconds = (time_t)(now / 1000);
    struct tm local;

    if (localtime_r(&seconds, &local) == NULL)
        return now;
    return now + (int64_t)local.tm_gmtoff * 1000;
}

static void fill_key_stats(const struct tarn_merge_roll *roll,
                           const struct tarn_column_stats *columns, struct tarn_data_file *file)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;
    struct tarn_arena *arena = roll->spec.arena;
    size_t n = layout->key_count;
    struct tarn_column_stats *picked = tarn_arena_calloc(arena, n, sizeof *picked);
    enum tarn_stats_mode *modes = tarn_arena_calloc(arena, n, sizeof *modes);
    int32_t *lengths = tarn_arena_calloc(arena, n, sizeof *lengths);

    for (size_t i = 0; i < n; i++) {
        picked[i] = columns[tarn_merge__key_place(roll, i)];
        modes[i] = TARN_STATS_TRUNCATE;
        lengths[i] = SYSTEM_STATS_LENGTH;
    }
    tarn_stats_build(layout->key_types, picked, modes, lengths, n, arena, &file->key_stats);
}

static bool is_key(const struct tarn_merge_layout *layout, int column)
{
    for (size_t i = 0; i < layout->key_count; i++) {
        if (layout->key_columns[i] == column)
            return true;
    }
    return false;
}

/* Statistics of the value columns; those without any are left out, and then the rest is named. */
static void fill_value_stats(const struct tarn_merge_roll *roll,
                             const struct tarn_column_stats *columns, struct tarn_data_file *file)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;
    struct tarn_options of_changelog = *layout->table->options;
    const struct tarn_options *options =
        roll->spec.is_changelog ? &of_changelog : layout->table->options;
    const struct tarn_schema *schema = layout->table->schema;
    struct tarn_arena *arena = roll->spec.arena;
    size_t n = schema->field_count, kept = 0;
    struct tarn_column_stats *picked = tarn_arena_calloc(arena, n, sizeof *picked);
    enum tarn_stats_mode *modes = tarn_arena_calloc(arena, n, sizeof *modes);
    int32_t *lengths = tarn_arena_calloc(arena, n, sizeof *lengths);
    const struct tarn_type **types = tarn_arena_calloc(arena, n, sizeof *types);
    struct tarn_slice *names = tarn_arena_calloc(arena, n, sizeof *names);
    int first = stores_tracking(roll) ? 0 : roll->column_count - (int)n;

    of_changelog.stats_mode = of_changelog.changelog_stats_mode;
    of_changelog.stats_length = of_changelog.changelog_stats_length;
    for (size_t i = 0; i < n; i++) {
        enum tarn_stats_mode mode;
        int32_t length;

        tarn_options_stats_mode(options, schema, (int)i, &mode, &length);
        if (layout->keyed && options->thin_mode && is_key(layout, (int)i)) {
            mode = TARN_STATS_TRUNCATE;
            length = SYSTEM_STATS_LENGTH;
        }
        if (mode == TARN_STATS_NONE || columns[first + (int)i].none)
            continue;
        picked[kept] = columns[first + (int)i];
        modes[kept] = mode;
        lengths[kept] = length;
        types[kept] = schema->fields[i].type;
        names[kept++] = tarn_arena_copy(arena, schema->fields[i].name);
    }
    tarn_stats_build(types, picked, modes, lengths, kept, arena, &file->value_stats);
    file->has_value_stats_columns = kept < n;
    if (file->has_value_stats_columns) {
        file->value_stats_columns = names;
        file->value_stats_column_count = kept;
    }
}

/* Tables that track rows: of new ones the committer knows the numbers, and looks for 0; those of compactions lie in
 * the file, which is said by naming its columns. */
static void fill_tracking(const struct tarn_merge_roll *roll, struct tarn_data_file *file)
{
    struct tarn_arena *arena = roll->spec.arena;
    size_t n = (size_t)roll->column_count;

    if (stores_tracking(roll)) {
        struct tarn_slice *names = tarn_arena_calloc(arena, n, sizeof *names);
        for (size_t i = 0; i < n; i++)
            names[i] = tarn_arena_copy(arena, roll->columns[i].name);
        file->has_write_columns = true;
        file->write_columns = names;
        file->write_column_count = n;
    } else if (roll->spec.layout->table->options->row_tracking) {
        file->min_sequence = file->max_sequence = 0;
    }
}

static void fill_entry(const struct tarn_merge_roll *roll, const struct tarn_file_result *result,
                       struct tarn_manifest_entry *entry)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;
    struct tarn_arena *arena = roll->spec.arena;
    struct tarn_data_file *file = &entry->file;

    *entry = (struct tarn_manifest_entry){
        .kind = TARN_ENTRY_ADD,
        .partition = roll->spec.partition,
        .bucket = roll->spec.bucket,
        .total_buckets = roll->spec.total_buckets,
        .file =
            {
                .name = roll->name,
                .size = result->size,
                .row_count = roll->row_count,
                .min_key = tarn_row_empty(),
                .max_key = tarn_row_empty(),
                .key_stats = tarn_stats_empty(),
                .min_sequence = roll->min_sequence,
                .max_sequence = roll->max_sequence,
                .schema_id = layout->table->schema->id,
                .level = roll->spec.level,
                .creation_time_ms = local_wall_ms(),
                .delete_row_count = roll->delete_count,
                .source = roll->spec.source,
                .first_row_id = TARN_FILE_NONE,
            },
    };
    if (layout->keyed) {
        file->min_key = tarn_arena_copy(arena, tarn_buf_slice(&roll->min_key));
        file->max_key = tarn_arena_copy(arena, tarn_buf_slice(&roll->max_key));
        fill_key_stats(roll, result->columns, file);
    }
    fill_value_stats(roll, result->columns, file);
    fill_tracking(roll, file);
}

/* The file's indexes, in its entry or, where they are large, beside it. The entry is listed before, so that whoever
 * removes the file knows of both. */
static struct tarn_status *write_indexes(struct tarn_merge_roll *roll, struct tarn_op *op,
                                         struct tarn_manifest_entry *entry)
{
    const struct tarn_merge_layout *layout = roll->spec.layout;
    struct tarn_arena *arena = roll->spec.arena;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_data_file beside = {0};
    const char *key = NULL;

    if (roll->indexes == NULL)
        return TARN_OK;
    tarn_file_index_writer_finish(roll->indexes, &bytes);
    if (bytes.size == 0)
        return TARN_OK;
    if ((int64_t)bytes.size <= layout->table->options->file_index_threshold) {
        entry->file.embedded_index = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
        return TARN_OK;
    }
    struct tarn_slice *names = tarn_arena_calloc(arena, 1, sizeof *names);
    names[0] = tarn_slice_str(tarn_arena_printf(arena, "%.*s.index", TARN_SLICE_ARG(roll->name)));
    beside.name = names[0];
    entry->file.extra_files = names;
    entry->file.extra_file_count = 1;
    TARN_TRY(tarn_merge__file_key(layout, entry->partition, entry->bucket, &beside, arena, &key));
    return tarn_store_put(layout->table->store, op, key, tarn_buf_slice(&bytes));
}

struct tarn_status *tarn_merge__roll_cut(struct tarn_merge_roll *roll, struct tarn_op *op)
{
    struct tarn_merge_entries *entries = roll->spec.entries;
    struct tarn_file_result result;

    if (roll->writer == NULL)
        return TARN_OK;
    TARN_TRY(tarn_file_writer_finish(tarn_move(roll->writer), op, roll->spec.arena, &result));
    if (result.row_count != roll->row_count)
        return tarn_status_new(TARN_INTERNAL,
                               "file %.*s has %" PRId64 " rows, %" PRId64 " were given",
                               TARN_SLICE_ARG(roll->name), result.row_count, roll->row_count);
    TARN_GROW(entries->items, entries->count, entries->capacity);
    fill_entry(roll, &result, &entries->items[entries->count++]);
    return write_indexes(roll, op, &entries->items[entries->count - 1]);
}
