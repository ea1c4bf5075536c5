/*
 * changes - rows with their kinds: what files of deltas and changelogs hold, and the difference between two states.
 *
 *   files of changes   as they lie, file after file in the order they are given in, without a merge: every record
 *                      was an event. Append files hold inserts alone.
 *   a difference       both states of the bucket are merged, in order of key, and compared: only the end has a row
 *                      +I, only the beginning -D, both with other values -U and +U.
 *
 * The predicate is judged on each row by itself: of an update, one row may pass and the other not.
 */
#include "merge/internal.h"

#define KIND_SIZE 2
static const char kinds[4][KIND_SIZE + 1] = {"+I", "-U", "+U", "-D"};
enum kind { PLUS_I, MINUS_U, PLUS_U, MINUS_D };

/* One state of a bucket, in order of key. */
struct state {
    struct tarn_source *source; /* NULL: at its end */
    struct tarn_batch *batch;
    struct tarn_merge_keys keys; /* of the batch */
    uint32_t row;
};

struct changes {
    struct tarn_source source; /* first */
    struct tarn_arena *arena;
    struct tarn_merge_layout layout;
    const struct tarn_merge_split *splits;
    size_t split_count, next_split;
    int64_t rows_left;
    struct tarn_merge_filter *filter; /* NULL: all rows */
    int *columns, column_count;       /* of the schema: wanted, then the predicate's */
    int wanted_count;
    const struct tarn_type **types;

    struct tarn_arena *split_arena;
    struct tarn_merge_run_spec run;
    struct tarn_merge_input *input; /* files of changes */
    bool differs;                   /* `before` and `after` are in use */
    struct state before, after;
    struct tarn_scan_spec state_spec;
    int *state_columns;
    struct tarn_merge_split state_splits[2];
    struct tarn_merge_key_spec key, order;
};

/* --- rows out --- */

static void put_kinds(const uint8_t *list, int64_t count, struct ArrowArray *out)
{
    tarn_merge__array_init(out, count, 3, 0);
    out->null_count = 0;
    int32_t *offsets =
        tarn_merge__array_buffer(out, 1, ((size_t)count + 1) * sizeof *offsets, false);
    uint8_t *text = tarn_merge__array_buffer(out, 2, (size_t)count * KIND_SIZE, false);
    for (int64_t i = 0; i < count; i++) {
        offsets[i] = (int32_t)(i * KIND_SIZE);
        memcpy(text + i * KIND_SIZE, kinds[list[i]], KIND_SIZE);
    }
    offsets[count] = (int32_t)(count * KIND_SIZE);
}

/* The kinds in front of the first columns of `rows`. */
static struct tarn_batch *with_kinds(const struct changes *c, struct tarn_batch *rows,
                                     const uint8_t *list)
{
    int count = c->wanted_count + 1;
    struct ArrowArray *columns = tarn_calloc((size_t)count, sizeof *columns);
    put_kinds(list, rows->row_count, &columns[0]);
    for (int i = 1; i < count; i++)
        tarn_merge__array_share(tarn_batch_column(rows, i - 1), rows, 0, rows->row_count,
                                &columns[i]);
    struct tarn_batch *out = tarn_merge__batch_of(columns, count, rows->row_count);
    free(columns);
    return out;
}

/* --- files of changes --- */

static struct tarn_status *take_kinds(const struct changes *c, const struct tarn_batch *batch,
                                      uint8_t *out)
{
    if (!c->layout.keyed) {
        memset(out, PLUS_I, (size_t)batch->row_count);
        return TARN_OK;
    }
    const struct ArrowArray *a = tarn_batch_column(batch, c->column_count + 1);
    const int8_t *kind = (const int8_t *)a->buffers[1] + a->offset;
    for (int64_t i = 0; i < batch->row_count; i++) {
        if (kind[i] < PLUS_I || kind[i] > MINUS_D)
            return tarn_status_new(TARN_DATA_FILE_MALFORMED, "a record has _VALUE_KIND %d",
                                   kind[i]);
        out[i] = (uint8_t)kind[i];
    }
    return TARN_OK;
}

static struct tarn_status *shape(struct changes *c, struct tarn_batch *batch,
                                 struct tarn_batch **out)
{
    TARN_OWN(tarn_batch_drop) struct tarn_batch *from = batch;
    TARN_OWN(tarn_batch_drop) struct tarn_batch *rows = NULL;
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks picks = {0};
    TARN_OWN(tarn_free_drop) uint8_t *list = tarn_alloc((size_t)from->row_count + 1);
    int64_t kept = 0;

    TARN_TRY(take_kinds(c, from, list));
    if (c->filter != NULL)
        tarn_merge__filter_select(c->filter, from, c->rows_left, &picks);
    else
        tarn_merge__picks_add(&picks, 0, 0, (uint32_t)TARN_MIN(from->row_count, c->rows_left));
    if (picks.row_count == 0)
        return TARN_OK;
    c->rows_left -= picks.row_count;
    for (size_t p = 0; p < picks.count; p++)
        for (uint32_t i = 0; i < picks.items[p].count; i++)
            list[kept++] = list[picks.items[p].row + i];
    TARN_TRY(tarn_merge__gather_batch(&from, 1, NULL, c->types, c->wanted_count, &picks, &rows));
    *out = with_kinds(c, rows, list);
    return TARN_OK;
}

static void open_files(struct changes *c, const struct tarn_merge_split *split)
{
    const struct tarn_manifest_entry **files =
        tarn_arena_calloc(c->split_arena, split->file_count + 1, sizeof *files);
    for (size_t i = 0; i < split->file_count; i++)
        files[i] = &split->files[i];
    c->run = (struct tarn_merge_run_spec){.layout = &c->layout,
                                          .files = files,
                                          .file_count = split->file_count,
                                          .columns = c->columns,
                                          .column_count = (size_t)c->column_count,
                                          .with_system = c->layout.keyed};
    c->input = tarn_merge__run_new(&c->run);
}

/* --- a difference --- */

static bool same_row(const struct changes *c)
{
    for (int i = 0; i < c->layout.column_count; i++)
        if (!tarn_merge__same_value(tarn_batch_column(c->before.batch, i), c->before.row,
                                    tarn_batch_column(c->after.batch, i), c->after.row,
                                    c->layout.types[i]))
            return false;
    return true;
}

static void state_close(struct state *state)
{
    tarn_source_drop(&state->source);
    tarn_merge__keys_drop(&state->keys);
    state->keys = (struct tarn_merge_keys){0};
    tarn_batch_drop(&state->batch);
}

static struct tarn_status *state_open(struct changes *c, struct tarn_op *op, struct state *state,
                                      struct tarn_merge_split *split)
{
    *state = (struct state){0};
    return tarn_scan_open(op, c->layout.table, split, 1, &c->state_spec, &state->source);
}

static struct tarn_status *open_difference(struct changes *c, struct tarn_op *op,
                                           const struct tarn_merge_split *split)
{
    c->state_splits[0] = *split;
    c->state_splits[0].files = split->before_files;
    c->state_splits[0].file_count = split->before_count;
    c->state_splits[1] = *split;
    c->state_splits[0].raw = c->state_splits[1].raw = !c->layout.keyed;
    c->differs = true;
    TARN_TRY(state_open(c, op, &c->before, &c->state_splits[0]));
    return state_open(c, op, &c->after, &c->state_splits[1]);
}

/* A row to look at, unless the state is at its end: batch NULL. */
static struct tarn_status *state_fill(struct changes *c, struct tarn_op *op, struct state *state)
{
    if (state->batch != NULL && state->row < state->batch->row_count)
        return TARN_OK;
    tarn_merge__keys_drop(&state->keys);
    state->keys = (struct tarn_merge_keys){0};
    tarn_batch_drop(&state->batch);
    state->row = 0;
    if (state->source == NULL)
        return TARN_OK;
    TARN_TRY(state->source->next(state->source, op, &state->batch));
    if (state->batch == NULL)
        tarn_source_drop(&state->source);
    else if (c->layout.keyed)
        TARN_TRY(tarn_merge__keys_build(&c->key, state->batch, &state->keys));
    return TARN_OK;
}

struct picked {
    struct tarn_merge_picks picks;
    uint8_t *list;
    size_t count;
};

/* Source 0: the beginning, 1: the end. */
static void pick(struct picked *picked, uint32_t source, uint32_t row, enum kind kind)
{
    tarn_merge__picks_add(&picked->picks, source, row, 1);
    picked->list[picked->count++] = (uint8_t)kind;
}

/* Goes on until one of the batches is used up. */
static void compare(struct changes *c, struct picked *out)
{
    struct state *b = &c->before, *a = &c->after;
    while ((b->batch == NULL || b->row < b->batch->row_count) &&
           (a->batch == NULL || a->row < a->batch->row_count) &&
           (a->batch != NULL || b->batch != NULL)) {
        int order = b->batch == NULL   ? 1
                    : a->batch == NULL ? -1
                    : c->layout.keyed ? tarn_merge__keys_compare(&b->keys, b->row, &a->keys, a->row)
                                      : -1;
        if (order < 0) {
            pick(out, 0, b->row++, MINUS_D);
        } else if (order > 0) {
            pick(out, 1, a->row++, PLUS_I);
        } else {
            if (!same_row(c)) {
                pick(out, 0, b->row, MINUS_U);
                pick(out, 1, a->row, PLUS_U);
            }
            a->row++;
            b->row++;
        }
    }
}

/* The rows that were picked as one batch of all columns of the schema; then as any others. */
static struct tarn_status *gather(struct changes *c, struct picked *picked, struct tarn_batch **out)
{
    TARN_OWN(tarn_batch_drop) struct tarn_batch *all = NULL;
    TARN_OWN(tarn_batch_drop) struct tarn_batch *rows = NULL;
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks keep = {0};
    struct tarn_batch *sources[2] = {c->before.batch, c->after.batch};
    int64_t kept = 0;

    if (sources[0] == NULL)
        sources[0] = sources[1];
    if (sources[1] == NULL)
        sources[1] = sources[0];
    TARN_TRY(tarn_merge__gather_batch(sources, 2, c->columns, c->types, c->column_count,
                                      &picked->picks, &all));
    if (c->filter != NULL)
        tarn_merge__filter_select(c->filter, all, c->rows_left, &keep);
    else
        tarn_merge__picks_add(&keep, 0, 0, (uint32_t)TARN_MIN(all->row_count, c->rows_left));
    if (keep.row_count == 0)
        return TARN_OK;
    c->rows_left -= keep.row_count;
    for (size_t p = 0; p < keep.count; p++)
        for (uint32_t i = 0; i < keep.items[p].count; i++)
            picked->list[kept++] = picked->list[keep.items[p].row + i];
    TARN_TRY(tarn_merge__gather_batch(&all, 1, NULL, c->types, c->wanted_count, &keep, &rows));
    *out = with_kinds(c, rows, picked->list);
    return TARN_OK;
}

/* *out NULL: nothing of these batches differs; `differs` false: the states are at their end. */
static struct tarn_status *next_difference(struct changes *c, struct tarn_op *op,
                                           struct tarn_batch **out)
{
    TARN_TRY(state_fill(c, op, &c->before));
    TARN_TRY(state_fill(c, op, &c->after));
    if (c->before.batch == NULL && c->after.batch == NULL) {
        c->differs = false;
        return TARN_OK;
    }
    size_t most = (c->before.batch == NULL ? 0 : (size_t)c->before.batch->row_count) +
                  (c->after.batch == NULL ? 0 : (size_t)c->after.batch->row_count);
    struct picked picked = {.list = tarn_alloc(most + 1)};
    compare(c, &picked);
    struct tarn_status *s = picked.count == 0 ? TARN_OK : gather(c, &picked, out);
    tarn_merge__picks_drop(&picked.picks);
    free(picked.list);
    return s;
}

/* --- the source --- */

static struct tarn_status *open_split(struct changes *c, struct tarn_op *op)
{
    const struct tarn_merge_split *split = &c->splits[c->next_split++];
    tarn_arena_drop(&c->split_arena);
    c->split_arena = tarn_arena_new();
    if (split->differs)
        return open_difference(c, op, split);
    open_files(c, split);
    return TARN_OK;
}

static struct tarn_status *changes_next(struct tarn_source *self, struct tarn_op *op,
                                        struct tarn_batch **out)
{
    struct changes *c = (struct changes *)self;
    *out = NULL;
    while (*out == NULL && c->rows_left > 0) {
        struct tarn_batch *batch = NULL;
        uint32_t place;
        TARN_TRY(tarn_op_check(op));
        if (c->differs) {
            TARN_TRY(next_difference(c, op, out));
        } else if (c->input != NULL) {
            TARN_TRY(c->input->next(c->input, op, &batch, &place));
            if (batch == NULL)
                tarn_merge__input_drop(&c->input);
            else
                TARN_TRY(shape(c, batch, out));
        } else if (c->next_split < c->split_count) {
            TARN_TRY(open_split(c, op));
        } else {
            return TARN_OK;
        }
    }
    return TARN_OK;
}

static void changes_close(struct tarn_source *self)
{
    struct changes *c = (struct changes *)self;
    tarn_merge__input_drop(&c->input);
    state_close(&c->before);
    state_close(&c->after);
    tarn_merge__filter_free(c->filter);
    tarn_arena_drop(&c->split_arena);
    tarn_arena_drop(&c->arena);
    free(c);
}

static void plan_columns(struct changes *c, const struct tarn_scan_spec *spec)
{
    size_t most = spec->column_count + (size_t)c->layout.column_count + 1;
    int *places = tarn_arena_calloc(c->arena, (size_t)c->layout.column_count + 1, sizeof *places);

    c->columns = tarn_arena_calloc(c->arena, most, sizeof *c->columns);
    for (size_t i = 0; i < spec->column_count; i++)
        c->columns[c->column_count++] = spec->columns[i];
    c->wanted_count = c->column_count;
    for (int i = 0; i < c->layout.column_count; i++)
        places[i] = -1;
    for (int i = 0; i < c->column_count; i++)
        places[c->columns[i]] = i;
    for (size_t i = 0; spec->where != NULL && i < spec->where->column_count; i++) {
        int column = spec->where->columns[i];
        if (places[column] < 0) {
            places[column] = c->column_count;
            c->columns[c->column_count++] = column;
        }
    }
    c->types = tarn_arena_calloc(c->arena, most, sizeof *c->types);
    for (int i = 0; i < c->column_count; i++)
        c->types[i] = c->layout.types[c->columns[i]];
    if (spec->where != NULL)
        c->filter = tarn_merge__filter_new(spec->where, c->layout.table->schema, places);

    /* States are read with all columns, in the order of the schema: any of them may differ. */
    c->state_columns =
        tarn_arena_calloc(c->arena, (size_t)c->layout.column_count + 1, sizeof *c->state_columns);
    for (int i = 0; i < c->layout.column_count; i++)
        c->state_columns[i] = i;
    c->state_spec = (struct tarn_scan_spec){.columns = c->state_columns,
                                            .column_count = (size_t)c->layout.column_count,
                                            .limit = -1,
                                            .scratch_dir = spec->scratch_dir};
    if (c->layout.keyed)
        tarn_merge__layout_keys(&c->layout, c->state_columns, c->arena, &c->key, &c->order);
}

static struct tarn_status *check(const struct changes *c, const struct tarn_scan_spec *spec)
{
    for (size_t i = 0; i < spec->column_count; i++)
        if (spec->columns[i] < 0 || spec->columns[i] >= c->layout.column_count)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "column %d of %d", spec->columns[i],
                                   c->layout.column_count);
    return TARN_OK;
}

struct tarn_status *tarn_changes_open(struct tarn_op *op TARN_UNUSED,
                                      const struct tarn_merge_table *table,
                                      const struct tarn_merge_split *splits, size_t split_count,
                                      const struct tarn_scan_spec *spec, struct tarn_source **out)
{
    struct changes *c = tarn_calloc(1, sizeof *c);
    c->source = (struct tarn_source){changes_next, changes_close};
    c->arena = tarn_arena_new();
    c->splits = splits;
    c->split_count = split_count;
    c->rows_left = spec->limit < 0 ? INT64_MAX : spec->limit;
    struct tarn_status *s = tarn_merge__layout_make(table, c->arena, &c->layout);
    if (s == TARN_OK)
        s = check(c, spec);
    if (s != TARN_OK) {
        changes_close(&c->source);
        return s;
    }
    plan_columns(c, spec);
    *out = &c->source;
    return TARN_OK;
}
