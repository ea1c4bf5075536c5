/*
 * scan - splits as batches of the wanted columns: raw files as they lie, sections merged.
 *
 * What is read of a file: the wanted columns, those of the predicate, and where versions are merged
 * the key and the sequence fields too. The predicate is judged after the merge (a version it would drop
 * may hide an older one that it wouldn't); the columns that only helped are left out at the end.
 */
#include "merge/internal.h"

struct scan {
    struct tarn_source source; /* first */
    struct tarn_arena *arena;  /* of the scan */
    struct tarn_merge_layout layout;
    const struct tarn_merge_split *splits;
    size_t split_count, next_split;
    int64_t rows_left;
    struct tarn_merge_filter *filter; /* NULL: all rows */

    int *columns, column_count; /* of the schema: wanted, then the predicate's */
    int wanted_count;
    const struct tarn_type **types;
    int *merge_columns,
        merge_count; /* those, then key and sequence fields that aren't among them */
    struct tarn_merge_key_spec key, order;
    struct tarn_merge_tree_spec tree;

    /* the present split, in an arena of its own */
    struct tarn_arena *split_arena;
    struct tarn_merge_section *sections;
    size_t section_count, next_section;
    struct tarn_source *current; /* NULL: take the next */
};

/* --- a run without a merge, as a source --- */

struct raw {
    struct tarn_source source; /* first */
    struct tarn_merge_input *input;
    int kind_column; /* -1: no deletes are among the rows */
    int column_count;
    const struct tarn_type *const *types;
    struct tarn_merge_run_spec spec;
};

/* Leaves out retracts. *batch is consumed; NULL where nothing stays. */
static struct tarn_status *drop_retracts(const struct raw *raw, struct tarn_batch **batch)
{
    TARN_OWN(tarn_batch_drop) struct tarn_batch *from = tarn_move(*batch);
    const struct ArrowArray *a = tarn_batch_column(from, raw->kind_column);
    const int8_t *kind = (const int8_t *)a->buffers[1] + a->offset;
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks picks = {0};

    for (int64_t i = 0; i < from->row_count; i++) {
        if (!tarn_merge__is_retract(kind[i]))
            tarn_merge__picks_add(&picks, 0, (uint32_t)i, 1);
    }
    if (picks.row_count == 0)
        return TARN_OK;
    return tarn_merge__gather_batch(&from, 1, NULL, raw->types, raw->column_count, &picks, batch);
}

static struct tarn_status *raw_next(struct tarn_source *self, struct tarn_op *op,
                                    struct tarn_batch **out)
{
    struct raw *raw = (struct raw *)self;
    uint32_t place;

    for (;;) {
        TARN_TRY(raw->input->next(raw->input, op, out, &place));
        if (*out == NULL || raw->kind_column < 0)
            return TARN_OK;
        TARN_TRY(drop_retracts(raw, out));
        if (*out != NULL)
            return TARN_OK;
    }
}

static void raw_close(struct tarn_source *self)
{
    struct raw *raw = (struct raw *)self;
    tarn_merge__input_drop(&raw->input);
    free(raw);
}

/* Files may hold deletes that nobody counted: then kinds are read too. */
static bool may_hold_deletes(const struct scan *scan, const struct tarn_manifest_entry *file)
{
    return scan->layout.keyed && file->file.delete_row_count != 0;
}

static struct tarn_source *raw_new(struct scan *scan, const struct tarn_manifest_entry **files,
                                   size_t count)
{
    struct raw *raw = tarn_calloc(1, sizeof *raw);
    bool deletes = false;

    for (size_t i = 0; i < count; i++)
        deletes = deletes || may_hold_deletes(scan, files[i]);
    raw->source = (struct tarn_source){raw_next, raw_close};
    raw->spec = (struct tarn_merge_run_spec){.layout = &scan->layout,
                                             .files = files,
                                             .file_count = count,
                                             .columns = scan->columns,
                                             .column_count = (size_t)scan->column_count,
                                             .with_system = deletes};
    raw->kind_column = deletes ? scan->column_count + 1 : -1;
    raw->column_count = scan->column_count;
    raw->types = scan->types;
    raw->input = tarn_merge__run_new(&raw->spec);
    return &raw->source;
}

/* --- sections --- */

static struct tarn_status *open_section(struct scan *scan, struct tarn_op *op,
                                        const struct tarn_merge_section *section)
{
    /* One run: its keys are unique, so there is nothing to merge. */
    if (section->run_count == 1) {
        scan->current = raw_new(scan, section->runs[0].files, section->runs[0].file_count);
        return TARN_OK;
    }
    struct tarn_merge_input **inputs = tarn_merge__section_inputs(
        &scan->layout, section, scan->merge_columns, (size_t)scan->merge_count, scan->split_arena);
    return tarn_merge__tree_open(op, &scan->tree, inputs, section->run_count, &scan->current);
}

static struct tarn_status *open_split(struct scan *scan, const struct tarn_merge_split *split)
{
    tarn_arena_drop(&scan->split_arena);
    scan->split_arena = tarn_arena_new();
    scan->section_count = scan->next_section = 0;
    if (!split->raw && scan->layout.keyed)
        return tarn_merge__sections(scan->layout.key_types, scan->layout.key_count, split->files,
                                    split->file_count, scan->split_arena, &scan->sections,
                                    &scan->section_count);

    const struct tarn_manifest_entry **files =
        tarn_arena_calloc(scan->split_arena, split->file_count + 1, sizeof *files);
    for (size_t i = 0; i < split->file_count; i++)
        files[i] = &split->files[i];
    scan->current = raw_new(scan, files, split->file_count);
    return TARN_OK;
}

/* Makes `current` the next thing to read; leaves it NULL at the end. */
static struct tarn_status *advance(struct scan *scan, struct tarn_op *op)
{
    while (scan->current == NULL) {
        if (scan->next_section < scan->section_count) {
            TARN_TRY(open_section(scan, op, &scan->sections[scan->next_section++]));
        } else {
            if (scan->next_split == scan->split_count)
                return TARN_OK;
            TARN_TRY(open_split(scan, &scan->splits[scan->next_split++]));
        }
    }
    return TARN_OK;
}

/* --- rows out --- */

/* The wanted columns of rows that pass, as many as are left. Consumes the batch; *out NULL: none. */
static struct tarn_status *shape(struct scan *scan, struct tarn_batch *batch,
                                 struct tarn_batch **out)
{
    TARN_OWN(tarn_batch_drop) struct tarn_batch *from = batch;
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks picks = {0};

    *out = NULL;
    if (scan->filter != NULL)
        tarn_merge__filter_select(scan->filter, from, scan->rows_left, &picks);
    else
        tarn_merge__picks_add(&picks, 0, 0, (uint32_t)TARN_MIN(from->row_count, scan->rows_left));
    if (picks.row_count == 0)
        return TARN_OK;
    scan->rows_left -= picks.row_count;
    if (picks.row_count == from->row_count && from->column_count == scan->wanted_count) {
        *out = tarn_move(from);
        return TARN_OK;
    }
    return tarn_merge__gather_batch(&from, 1, NULL, scan->types, scan->wanted_count, &picks, out);
}

static struct tarn_status *scan_next(struct tarn_source *self, struct tarn_op *op,
                                     struct tarn_batch **out)
{
    struct scan *scan = (struct scan *)self;

    *out = NULL;
    while (*out == NULL && scan->rows_left > 0) {
        struct tarn_batch *batch = NULL;

        TARN_TRY(tarn_op_check(op));
        TARN_TRY(advance(scan, op));
        if (scan->current == NULL)
            return TARN_OK;
        TARN_TRY(scan->current->next(scan->current, op, &batch));
        if (batch == NULL)
            tarn_source_drop(&scan->current);
        else
            TARN_TRY(shape(scan, batch, out));
    }
    return TARN_OK;
}

static void scan_close(struct tarn_source *self)
{
    struct scan *scan = (struct scan *)self;

    tarn_source_drop(&scan->current);
    tarn_merge__filter_free(scan->filter);
    tarn_arena_drop(&scan->split_arena);
    tarn_arena_drop(&scan->arena);
    free(scan);
}

/* --- what to read --- */

static int place_in(const int *columns, int count, int column)
{
    for (int i = 0; i < count; i++) {
        if (columns[i] == column)
            return i;
    }
    return -1;
}

static void add_missing(int *columns, int *count, const int *more, size_t more_count)
{
    for (size_t i = 0; i < more_count; i++) {
        if (place_in(columns, *count, more[i]) < 0)
            columns[(*count)++] = more[i];
    }
}

static void plan_columns(struct scan *scan, const struct tarn_scan_spec *spec)
{
    const struct tarn_options *options = scan->layout.table->options;
    size_t most = spec->column_count + (size_t)scan->layout.column_count + 1;
    const int *looked_at;
    int *places =
        tarn_arena_calloc(scan->arena, (size_t)scan->layout.column_count + 1, sizeof *places);

    scan->columns = tarn_arena_calloc(scan->arena, most, sizeof *scan->columns);
    for (size_t i = 0; i < spec->column_count; i++)
        scan->columns[scan->column_count++] = spec->columns[i];
    scan->wanted_count = scan->column_count;
    if (spec->where != NULL)
        add_missing(scan->columns, &scan->column_count, spec->where->columns,
                    spec->where->column_count);
    scan->types = tarn_arena_calloc(scan->arena, most, sizeof *scan->types);
    for (int i = 0; i < scan->column_count; i++)
        scan->types[i] = scan->layout.types[scan->columns[i]];

    scan->merge_columns = tarn_arena_calloc(scan->arena, most, sizeof *scan->merge_columns);
    scan->merge_count = scan->column_count;
    memcpy(scan->merge_columns, scan->columns, (size_t)scan->column_count * sizeof *scan->columns);
    if (scan->layout.keyed) {
        add_missing(scan->merge_columns, &scan->merge_count, scan->layout.key_columns,
                    scan->layout.key_count);
        add_missing(scan->merge_columns, &scan->merge_count, options->sequence_columns,
                    options->sequence_column_count);
        size_t looked_at_count = tarn_merge__engine_columns(&scan->layout, scan->arena, &looked_at);
        add_missing(scan->merge_columns, &scan->merge_count, looked_at, looked_at_count);
    }
    for (int i = 0; i < scan->layout.column_count; i++)
        places[i] = place_in(scan->merge_columns, scan->merge_count, i);
    if (spec->where != NULL)
        scan->filter = tarn_merge__filter_new(spec->where, scan->layout.table->schema, places);
    if (!scan->layout.keyed)
        return;
    tarn_merge__layout_keys(&scan->layout, places, scan->arena, &scan->key, &scan->order);
    int *identity =
        tarn_arena_calloc(scan->arena, (size_t)scan->column_count + 1, sizeof *identity);
    for (int i = 0; i < scan->column_count; i++)
        identity[i] = i;
    scan->tree = (struct tarn_merge_tree_spec){
        .key = &scan->key,
        .order = &scan->order,
        .sequence_column = scan->merge_count,
        .kind_column = scan->merge_count + 1,
        .ignore_delete = options->ignore_delete,
        .drop_retract = true,
        .keep_first = options->merge_engine == TARN_MERGE_FIRST_ROW,
        .engine = tarn_merge__engine_spec(&scan->layout, scan->merge_columns, scan->merge_count,
                                          scan->arena),
        .columns = identity,
        .types = scan->types,
        .column_count = scan->column_count};
}

static struct tarn_status *check_spec(const struct scan *scan, const struct tarn_scan_spec *spec)
{
    for (size_t i = 0; i < spec->column_count; i++) {
        if (spec->columns[i] < 0 || spec->columns[i] >= scan->layout.column_count)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "column %d of %d", spec->columns[i],
                                   scan->layout.column_count);
    }
    return tarn_options_check_merge(scan->layout.table->options);
}

struct tarn_status *tarn_scan_open(struct tarn_op *op, const struct tarn_merge_table *table,
                                   const struct tarn_merge_split *splits, size_t split_count,
                                   const struct tarn_scan_spec *spec, struct tarn_source **out)
{
    struct scan *scan = tarn_calloc(1, sizeof *scan);
    struct tarn_status *s;

    scan->source = (struct tarn_source){scan_next, scan_close};
    scan->arena = tarn_arena_new();
    scan->splits = splits;
    scan->split_count = split_count;
    scan->rows_left = spec->limit < 0 ? INT64_MAX : spec->limit;
    s = tarn_merge__layout_make(table, scan->arena, &scan->layout);
    if (s == TARN_OK)
        s = check_spec(scan, spec);
    if (s != TARN_OK) {
        scan_close(&scan->source);
        return s;
    }
    plan_columns(scan, spec);
    *out = &scan->source;
    return TARN_OK;
}
