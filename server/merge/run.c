/*
 * run - the files of one sorted run (or of a raw split), one after the other, as batches of the wanted
 * columns.
 *
 * A file has the columns of the schema it was written by: each wanted column is found there by field
 * id and read by the name it had (format.md 2.3); one that isn't there is null. Partition columns come from the
 * manifest's partition row: files may lack them.
 */
#include "merge/internal.h"

static const struct tarn_type tracked_type = {.id = TARN_TYPE_BIGINT, .nullable = true};

struct run {
    struct tarn_merge_input input; /* first */
    const struct tarn_merge_run_spec *spec;
    size_t next_file;
    struct tarn_source
        *reader;       /* of file next_file - 1; NULL: between files, or it needs no reading */
    int64_t rows_left; /* of a file that isn't read */
    struct tarn_deletions deletions; /* of the file; rows NULL: none */
    int64_t next_row;                /* of the file */
    const struct tarn_type **types;  /* of what comes out */
    int *places;    /* a wanted column's place in the reader's batches; -1: constant */
    int read_count; /* columns read from files */
    struct tarn_batch
        *constants;       /* the partition's values of the current file, repeated; or NULL */
    int *constant_places; /* a wanted column's place there */
    int constant_count;
};

/* --- the partition's values --- */

/* One row of an atomic type. */
void tarn_merge__array_of_value(const struct tarn_type *type, const struct tarn_value *value,
                                struct ArrowArray *out)
{
    int width = tarn_merge__type_width(type);
    bool bytes = width == 0 && type->id != TARN_TYPE_BOOLEAN;
    int64_t number = value->is_null ? 0 : value->integer;

    tarn_merge__array_init(out, 1, bytes ? 3 : 2, 0);
    if (value->is_null) {
        tarn_merge__array_buffer(out, 0, 1, true);
        out->null_count = 1;
    }
    uint8_t *data = tarn_merge__array_buffer(out, 1, 16, true);
    if (bytes) {
        size_t size = value->is_null ? 0 : value->bytes.size;
        int32_t end = (int32_t)size;
        memcpy(data + 4, &end, 4);
        uint8_t *text = tarn_merge__array_buffer(out, 2, size, false);
        if (size > 0)
            memcpy(text, value->bytes.data, size);
        return;
    }
    if (value->is_null)
        return;
    if (type->id == TARN_TYPE_DECIMAL) {
        memcpy(data, &value->decimal, 16);
    } else if (type->id == TARN_TYPE_FLOAT) {
        float real = (float)value->real;
        memcpy(data, &real, 4);
    } else if (type->id == TARN_TYPE_DOUBLE) {
        memcpy(data, &value->real, 8);
    } else {
        if (type->id == TARN_TYPE_TIMESTAMP || type->id == TARN_TYPE_TIMESTAMP_LTZ) {
            int64_t unit = type->precision <= 3 ? 1 : type->precision <= 6 ? 1000 : 1000000;
            number = (int64_t)((uint64_t)value->time.ms * (uint64_t)unit) +
                     value->time.ns / (1000000 / unit);
        }
        memcpy(data, &number, width == 0 ? 1 : (size_t)width); /* little-endian, as Arrow is here */
    }
}

/* The partition columns among the wanted ones, repeated `count` times. */
static struct tarn_status *make_constants(struct run *run, const struct tarn_manifest_entry *entry,
                                          int64_t count)
{
    const struct tarn_merge_layout *layout = run->spec->layout;
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks picks = {0};
    struct tarn_value *values = tarn_calloc(layout->partition_count + 1, sizeof *values);
    struct ArrowArray top;
    struct tarn_status *s = tarn_row_deserialize(entry->partition, layout->partition_types,
                                                 layout->partition_count, values);

    for (int64_t i = 0; i < count; i++)
        tarn_merge__picks_add(&picks, 0, 0, 1);
    tarn_merge__array_init(&top, count, 1, run->constant_count);
    for (size_t i = 0; i < run->spec->column_count && s == TARN_OK; i++) {
        int column = run->spec->columns[i];
        struct ArrowArray one;
        const struct ArrowArray *source = &one;

        if (run->constant_places[i] < 0)
            continue;
        tarn_merge__array_of_value(layout->types[column], &values[layout->partition_place[column]],
                                   &one);
        s = tarn_merge__gather(layout->types[column], &source, 1, &picks,
                               top.children[run->constant_places[i]]);
        tarn_merge__array_drop(&one);
    }
    free(values);
    if (s != TARN_OK) {
        tarn_merge__array_drop(&top);
        return tarn_status_wrap(s, "partition of file %.*s", TARN_SLICE_ARG(entry->file.name));
    }
    tarn_batch_drop(&run->constants);
    run->constants = tarn_batch_take(&top);
    return TARN_OK;
}

/* --- what to read of a file --- */

const struct tarn_schema *tarn_merge__schema_of(const struct tarn_merge_table *table, int64_t id)
{
    if (table->schema->id == id)
        return table->schema;
    for (size_t i = 0; i < table->old_schema_count; i++) {
        if (table->old_schemas[i]->id == id)
            return table->old_schemas[i];
    }
    return NULL;
}

static bool is_written(const struct tarn_data_file *file, struct tarn_slice name)
{
    for (size_t i = 0; i < file->write_column_count; i++) {
        if (tarn_slice_equal(file->write_columns[i], name))
            return true;
    }
    return !file->has_write_columns;
}

static struct tarn_column_read column_of(const struct tarn_merge_layout *layout, int column,
                                         const struct tarn_schema *written,
                                         const struct tarn_data_file *file)
{
    const struct tarn_field *field = &layout->table->schema->fields[column];
    int there = tarn_schema_find_id(written, field->id);
    struct tarn_column_read read = {.file_type = field->type, .type = field->type};

    if (there >= 0 && is_written(file, written->fields[there].name)) {
        read.file_name = written->fields[there].name;
        read.file_type = written->fields[there].type;
    }
    return read;
}

/* Stored by compactions only. */
static struct tarn_column_read tracking_column(const struct tarn_data_file *file, const char *name)
{
    struct tarn_column_read read = {.file_type = &tracked_type, .type = &tracked_type};

    if (file->has_write_columns && is_written(file, tarn_slice_str(name)))
        read.file_name = tarn_slice_str(name);
    return read;
}

static struct tarn_status *open_file(struct run *run, struct tarn_op *op,
                                     const struct tarn_manifest_entry *entry)
{
    const struct tarn_merge_run_spec *spec = run->spec;
    const struct tarn_schema *written =
        tarn_merge__schema_of(spec->layout->table, entry->file.schema_id);
    struct tarn_column_read *columns = NULL;
    const char *key = NULL;
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();

    if (written == NULL)
        return tarn_status_new(TARN_DATA_FILE_MALFORMED,
                               "file %.*s was written by schema %" PRId64 ", which is not known",
                               TARN_SLICE_ARG(entry->file.name), entry->file.schema_id);
    TARN_TRY(tarn_merge__file_key(spec->layout, entry->partition, entry->bucket, &entry->file,
                                  arena, &key));
    columns = tarn_arena_calloc(arena, (size_t)run->read_count + 1, sizeof *columns);
    for (size_t i = 0; i < spec->column_count; i++) {
        if (run->places[i] >= 0)
            columns[run->places[i]] =
                column_of(spec->layout, spec->columns[i], written, &entry->file);
    }
    if (spec->with_system) {
        columns[run->read_count - 2] =
            (struct tarn_column_read){tarn_slice_str("_SEQUENCE_NUMBER"),
                                      &tarn_merge__sequence_type, &tarn_merge__sequence_type};
        columns[run->read_count - 1] = (struct tarn_column_read){
            tarn_slice_str("_VALUE_KIND"), &tarn_merge__kind_type, &tarn_merge__kind_type};
    }
    if (spec->with_tracking) {
        columns[run->read_count - 2] = tracking_column(&entry->file, "_ROW_ID");
        columns[run->read_count - 1] = tracking_column(&entry->file, "_SEQUENCE_NUMBER");
    }
    struct tarn_file_read read = {.columns = columns,
                                  .column_count = (size_t)run->read_count,
                                  .batch_row_count = spec->batch_rows > 0 ? spec->batch_rows
                                                                          : TARN_MERGE_BATCH_ROWS};
    if (spec->rows != NULL) {
        read.row_begin = spec->rows[run->next_file - 1].begin;
        read.row_end = spec->rows[run->next_file - 1].end;
    }
    return tarn_file_reader_open(spec->layout->table->store, op, key, &read, &run->reader);
}

/* --- the input --- */

static const struct tarn_manifest_entry *current(const struct run *run)
{
    return run->spec->files[run->next_file - 1];
}

static int system_count(const struct tarn_merge_run_spec *spec)
{
    return spec->with_system || spec->with_tracking ? 2 : 0;
}

/* Columns read and constants in the wanted order. Consumes `read`, which may be NULL. */
static struct tarn_status *assemble(struct run *run, struct tarn_batch *read, int64_t count,
                                    struct tarn_batch **out)
{
    const struct tarn_merge_run_spec *spec = run->spec;
    TARN_OWN(tarn_batch_drop) struct tarn_batch *owned = read;
    int system = system_count(spec);
    struct ArrowArray top;

    if (run->constant_count == 0 && read != NULL) {
        *out = tarn_move(owned);
        return TARN_OK;
    }
    if (run->constant_count > 0 && (run->constants == NULL || run->constants->row_count < count))
        TARN_TRY(
            make_constants(run, current(run), TARN_MAX(count, (int64_t)TARN_MERGE_BATCH_ROWS)));
    tarn_merge__array_init(&top, count, 1, (int)spec->column_count + system);
    for (size_t i = 0; i < spec->column_count; i++) {
        bool constant = run->places[i] < 0;
        struct tarn_batch *from = constant ? run->constants : owned;
        tarn_merge__array_share(
            tarn_batch_column(from, constant ? run->constant_places[i] : run->places[i]), from, 0,
            count, top.children[i]);
    }
    for (int i = 0; i < system; i++)
        tarn_merge__array_share(tarn_batch_column(owned, run->read_count - 2 + i), owned, 0, count,
                                top.children[(int)spec->column_count + i]);
    *out = tarn_batch_take(&top);
    return TARN_OK;
}

/* The next rows of the file that is open; *out NULL at its end. */
static struct tarn_status *next_of_file(struct run *run, struct tarn_op *op,
                                        struct tarn_batch **out)
{
    struct tarn_batch *read = NULL;
    int64_t count = TARN_MIN(run->rows_left, (int64_t)TARN_MERGE_BATCH_ROWS);

    if (run->reader != NULL) {
        TARN_TRY(run->reader->next(run->reader, op, &read));
        if (read == NULL) {
            tarn_source_drop(&run->reader);
            return TARN_OK;
        }
        return assemble(run, read, read->row_count, out);
    }
    if (count <= 0)
        return TARN_OK;
    run->rows_left -= count;
    return assemble(run, NULL, count, out);
}

/* The column with first, first + step ... where it is null. */
static void fill_tracked(struct tarn_batch *batch, int column, int64_t first, int64_t step,
                         struct ArrowArray *out)
{
    const struct ArrowArray *a = tarn_batch_column(batch, column);
    const int64_t *from = (const int64_t *)a->buffers[1] + a->offset;

    tarn_merge__array_init(out, batch->row_count, 2, 0);
    int64_t *to = tarn_merge__array_buffer(out, 1, (size_t)batch->row_count * sizeof *to, false);
    for (int64_t i = 0; i < batch->row_count; i++)
        to[i] = tarn_column_is_null(a, i) ? first + step * i : from[i];
}

/* A row's id and sequence number are stored, or those that its place and its file give it. Consumes *batch. */
static struct tarn_status *track(struct run *run, int64_t first, struct tarn_batch **batch)
{
    const struct tarn_data_file *file = &current(run)->file;
    TARN_OWN(tarn_batch_drop) struct tarn_batch *from = tarn_move(*batch);
    int n = (int)run->spec->column_count;
    struct ArrowArray top;

    if (file->first_row_id == TARN_FILE_NONE && tarn_merge__has_nulls(tarn_batch_column(from, n)))
        return tarn_status_new(TARN_DATA_FILE_MALFORMED,
                               "rows have no ids, neither in the file nor in its manifest");
    tarn_merge__array_init(&top, from->row_count, 1, n + 2);
    for (int i = 0; i < n; i++)
        tarn_merge__array_share(tarn_batch_column(from, i), from, 0, from->row_count,
                                top.children[i]);
    fill_tracked(from, n, file->first_row_id + first, 1, top.children[n]);
    fill_tracked(from, n + 1, file->max_sequence, 0, top.children[n + 1]);
    *batch = tarn_batch_take(&top);
    return TARN_OK;
}

/* The same without what is deleted. *out NULL: the file is at its end. */
static struct tarn_status *next_living(struct run *run, struct tarn_op *op, struct tarn_batch **out)
{
    int column_count = (int)run->spec->column_count + system_count(run->spec);

    for (;;) {
        TARN_TRY(next_of_file(run, op, out));
        if (*out == NULL)
            return TARN_OK;
        int64_t first = run->next_row;
        run->next_row += (*out)->row_count;
        if (run->spec->with_tracking)
            TARN_TRY(track(run, first, out));
        if (run->deletions.rows == NULL)
            return TARN_OK;
        TARN_TRY(
            tarn_merge__deletions_apply(&run->deletions, first, run->types, column_count, out));
        if (*out != NULL)
            return TARN_OK;
        TARN_TRY(tarn_op_check(op));
    }
}

/* All rows but the chosen ones. */
static struct tarn_status *leave_out(const struct tarn_merge_choice *choice,
                                     struct tarn_deletions *out)
{
    TARN_TRY(tarn_deletions_init(out, choice->rows->row_count));
    for (int64_t i = 0; i < (out->row_count + 63) / 64; i++)
        out->rows[i] = ~choice->rows->rows[i];
    out->count = out->row_count - choice->rows->count;
    return TARN_OK;
}

static struct tarn_status *find_deletions(struct run *run, struct tarn_op *op,
                                          const struct tarn_data_file *file)
{
    const struct tarn_merge_layout *layout = run->spec->layout;

    for (size_t i = 0; i < layout->choice_count; i++)
        if (tarn_slice_equal(layout->choices[i].data_file, file->name))
            return leave_out(&layout->choices[i], &run->deletions);
    return tarn_merge__deletions_read(op, layout->table, file, &run->deletions);
}

static struct tarn_status *open_next(struct run *run, struct tarn_op *op)
{
    const struct tarn_manifest_entry *entry = run->spec->files[run->next_file++];

    tarn_batch_drop(&run->constants);
    tarn_deletions_fini(&run->deletions);
    run->next_row = run->spec->rows == NULL ? 0 : run->spec->rows[run->next_file - 1].begin;
    TARN_TRY(find_deletions(run, op, &entry->file));
    if (run->read_count > 0)
        return open_file(run, op, entry);
    run->rows_left = entry->file.row_count;
    return TARN_OK;
}

static struct tarn_status *run_next(struct tarn_merge_input *self, struct tarn_op *op,
                                    struct tarn_batch **out, uint32_t *place)
{
    struct run *run = (struct run *)self;

    *out = NULL;
    for (;;) {
        TARN_TRY(tarn_op_check(op));
        if (run->next_file > 0) {
            struct tarn_status *s = next_living(run, op, out);
            if (s != TARN_OK)
                return tarn_status_wrap(s, "%.*s", TARN_SLICE_ARG(current(run)->file.name));
            if (*out != NULL) {
                *place = run->spec->places == NULL ? 0 : run->spec->places[run->next_file - 1];
                return TARN_OK;
            }
        }
        if (run->next_file == run->spec->file_count)
            return TARN_OK;
        TARN_TRY(open_next(run, op));
    }
}

static void run_close(struct tarn_merge_input *self)
{
    struct run *run = (struct run *)self;

    tarn_source_drop(&run->reader);
    tarn_batch_drop(&run->constants);
    tarn_deletions_fini(&run->deletions);
    free(run->types);
    free(run->places);
    free(run->constant_places);
    free(run);
}

struct tarn_merge_input *tarn_merge__run_new(const struct tarn_merge_run_spec *spec)
{
    struct run *run = tarn_calloc(1, sizeof *run);

    run->input = (struct tarn_merge_input){run_next, run_close};
    run->spec = spec;
    run->places = tarn_calloc(spec->column_count + 1, sizeof *run->places);
    run->constant_places = tarn_calloc(spec->column_count + 1, sizeof *run->constant_places);
    run->types = tarn_calloc(spec->column_count + 2, sizeof(struct tarn_type *));
    for (size_t i = 0; i < spec->column_count; i++)
        run->types[i] = spec->layout->types[spec->columns[i]];
    run->types[spec->column_count] = &tarn_merge__sequence_type;
    run->types[spec->column_count + 1] =
        spec->with_tracking ? &tarn_merge__sequence_type : &tarn_merge__kind_type;
    for (size_t i = 0; i < spec->column_count; i++) {
        bool constant = spec->layout->partition_place[spec->columns[i]] >= 0;
        run->places[i] = constant ? -1 : run->read_count++;
        run->constant_places[i] = constant ? run->constant_count++ : -1;
    }
    run->read_count += system_count(spec);
    tarn_assert(!spec->with_tracking ||
                spec->rows == NULL); /* a row's place counts from the file's begin */
    return &run->input;
}

/* --- the runs of a section --- */

static int by_age(const void *a, const void *b)
{
    return tarn_merge__file_age_compare(*(const struct tarn_manifest_entry *const *)a,
                                        *(const struct tarn_manifest_entry *const *)b);
}

/* Of many runs each holds less, so that a wide merge takes no more memory than one of this many. */
#define FULL_BATCH_RUNS 16
#define BATCH_ROWS_MIN 256

struct tarn_merge_input **tarn_merge__section_inputs(const struct tarn_merge_layout *layout,
                                                     const struct tarn_merge_section *section,
                                                     const int *columns, size_t column_count,
                                                     struct tarn_arena *arena)
{
    struct tarn_merge_input **inputs =
        tarn_arena_calloc(arena, section->run_count + 1, sizeof(struct tarn_merge_input *));
    const struct tarn_manifest_entry **all;
    size_t file_count = 0, n = 0;
    size_t share = (size_t)TARN_MERGE_BATCH_ROWS * FULL_BATCH_RUNS / section->run_count;
    int batch_rows =
        (int)TARN_MAX((size_t)BATCH_ROWS_MIN, TARN_MIN(share, (size_t)TARN_MERGE_BATCH_ROWS));

    for (size_t r = 0; r < section->run_count; r++)
        file_count += section->runs[r].file_count;
    all = tarn_arena_calloc(arena, file_count + 1, sizeof *all);
    for (size_t r = 0; r < section->run_count; r++) {
        for (size_t f = 0; f < section->runs[r].file_count; f++)
            all[n++] = section->runs[r].files[f];
    }
    qsort(all, n, sizeof *all, by_age);
    for (size_t r = 0; r < section->run_count; r++) {
        const struct tarn_merge_run *run = &section->runs[r];
        uint32_t *places = tarn_arena_calloc(arena, run->file_count, sizeof *places);
        struct tarn_merge_run_spec *spec = tarn_arena_calloc(arena, 1, sizeof *spec);

        for (size_t f = 0; f < run->file_count; f++) {
            const struct tarn_manifest_entry **found =
                bsearch(&run->files[f], all, n, sizeof *all, by_age);
            places[f] = (uint32_t)(found - all);
        }
        *spec = (struct tarn_merge_run_spec){.layout = layout,
                                             .files = run->files,
                                             .rows = run->rows,
                                             .places = places,
                                             .file_count = run->file_count,
                                             .columns = columns,
                                             .column_count = column_count,
                                             .with_system = true,
                                             .batch_rows = batch_rows};
        inputs[r] = tarn_merge__run_new(spec);
    }
    return inputs;
}
