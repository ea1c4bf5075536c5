#include "merge/engine.h"

/* --- what an engine looks at --- */

static bool computes(const struct tarn_merge_layout *layout)
{
    return layout->keyed && layout->table->options->rules != NULL;
}

size_t tarn_merge__engine_columns(const struct tarn_merge_layout *layout, struct tarn_arena *arena,
                                  const int **out)
{
    const struct tarn_options *options = layout->table->options;
    int *columns = tarn_arena_calloc(arena, (size_t)layout->column_count + 1, sizeof *columns);
    size_t count = 0;

    for (int i = 0; i < layout->column_count && computes(layout); i++) {
        if (options->rules[i].orders)
            columns[count++] = i;
    }
    *out = columns;
    return count;
}

const struct tarn_merge_engine_spec *tarn_merge__engine_spec(const struct tarn_merge_layout *layout,
                                                             const int *columns, int column_count,
                                                             struct tarn_arena *arena)
{
    const struct tarn_options *options = layout->table->options;

    if (!computes(layout))
        return NULL;
    struct tarn_merge_engine_spec *spec = tarn_arena_calloc(arena, 1, sizeof *spec);
    struct tarn_merge_key_spec *groups =
        tarn_arena_calloc(arena, options->group_count + 1, sizeof *groups);
    for (size_t g = 0; g < options->group_count; g++) {
        const struct tarn_sequence_group *group = &options->groups[g];
        struct tarn_merge_key_column *list =
            tarn_arena_calloc(arena, group->column_count, sizeof *list);
        for (size_t i = 0; i < group->column_count; i++) {
            int place = 0;
            while (place < column_count && columns[place] != group->columns[i])
                place++;
            tarn_assert(place < column_count);
            list[i] =
                (struct tarn_merge_key_column){place, layout->types[group->columns[i]], false};
        }
        tarn_merge__key_spec_init(&groups[g], list, group->column_count);
    }
    *spec = (struct tarn_merge_engine_spec){layout, columns, column_count, groups};
    return spec;
}

/* --- which deletes it takes --- */

/* The first column whose function can't take values back. */
static const struct tarn_column_rule *stuck(const struct tarn_merge_layout *layout, int *column)
{
    const struct tarn_options *options = layout->table->options;
    bool partial = options->merge_engine == TARN_MERGE_PARTIAL_UPDATE;

    for (*column = 0; *column < layout->column_count; (*column)++) {
        const struct tarn_column_rule *rule = &options->rules[*column];
        bool concerned = !partial || (rule->group >= 0 && rule->aggregate != TARN_AGGREGATE_NONE);
        if (concerned && !rule->ignore_retract && !tarn_aggregate_retracts(rule->aggregate))
            return rule;
    }
    return NULL;
}

static struct tarn_status *check_functions(const struct tarn_merge_layout *layout, int64_t row)
{
    int column;
    const struct tarn_column_rule *rule = stuck(layout, &column);

    if (rule == NULL)
        return TARN_OK;
    struct tarn_slice name = layout->table->schema->fields[column].name;
    return tarn_status_new(
        TARN_VALUE_INVALID,
        "row %" PRId64 " is a delete: function %s of column %.*s can't take values "
        "back; fields.%.*s.ignore-retract = true lets it ignore them",
        row + 1, tarn_aggregate_name(rule->aggregate), TARN_SLICE_ARG(name), TARN_SLICE_ARG(name));
}

struct tarn_status *tarn_merge__check_kind(const struct tarn_merge_layout *layout, int8_t kind,
                                           int64_t row)
{
    const struct tarn_options *options = layout->table->options;
    bool dropped = options->ignore_delete || (options->ignore_update_before && kind == 1);

    if (!tarn_merge__is_retract(kind) || dropped)
        return TARN_OK;
    switch (options->merge_engine) {
    case TARN_MERGE_FIRST_ROW:
        return tarn_status_new(TARN_VALUE_INVALID,
                               "row %" PRId64 " is a delete: merge-engine = first-row takes none; "
                               "ignore-delete = true lets it ignore them",
                               row + 1);
    case TARN_MERGE_PARTIAL_UPDATE:
        if (options->group_count > 0)
            return check_functions(layout, row);
        if (options->remove_on_delete)
            return TARN_OK;
        return tarn_status_new(
            TARN_VALUE_INVALID,
            "row %" PRId64 " is a delete: merge-engine = partial-update takes deletes only with "
            "ignore-delete = true, partial-update.remove-record-on-delete = true or sequence groups",
            row + 1);
    case TARN_MERGE_AGGREGATION:
        return options->remove_on_delete && kind == 3 ? TARN_OK : check_functions(layout, row);
    default:
        return TARN_OK;
    }
}

/* --- the engine of a tree --- */

struct tarn_merge_combiner *tarn_merge__engine_new(const struct tarn_merge_tree_spec *tree)
{
    const struct tarn_merge_engine_spec *spec = tree->engine;
    const struct tarn_merge_layout *layout = spec->layout;
    struct tarn_merge_combiner *engine = tarn_calloc(1, sizeof *engine);
    int n = spec->column_count;

    engine->spec = spec;
    engine->options = layout->table->options;
    engine->column_count = n;
    engine->columns = tarn_calloc((size_t)n + 2, sizeof *engine->columns);
    engine->group_at = tarn_calloc(engine->options->group_count + 1, sizeof *engine->group_at);
    engine->group_verdict = tarn_calloc(engine->options->group_count + 1, 1);
    for (int i = 0; i < n; i++) {
        engine->columns[i].type = layout->types[spec->columns[i]];
        engine->columns[i].rule = &engine->options->rules[spec->columns[i]];
        engine->columns[i].name = layout->table->schema->fields[spec->columns[i]].name;
        engine->columns[i].place = i;
    }
    engine->columns[n] = (struct tarn_merge_column){.type = &tarn_merge__sequence_type,
                                                    .name = tarn_slice_str("_SEQUENCE_NUMBER"),
                                                    .place = tree->sequence_column};
    engine->columns[n + 1] = (struct tarn_merge_column){.type = &tarn_merge__kind_type,
                                                        .name = tarn_slice_str("_VALUE_KIND"),
                                                        .place = tree->kind_column};
    for (int i = 0; i < tree->column_count; i++) {
        for (int c = 0; c < n + 2; c++)
            engine->columns[c].wanted =
                engine->columns[c].wanted || engine->columns[c].place == tree->columns[i];
    }
    return engine;
}

void tarn_merge__engine_free(struct tarn_merge_combiner *engine)
{
    if (engine == NULL)
        return;
    for (int i = 0; i < engine->column_count + 2; i++) {
        struct tarn_merge_column *column = &engine->columns[i];
        for (size_t f = 0; column->made_fields != NULL && f < column->type->element->field_count;
             f++)
            tarn_merge__picks_drop(&column->made_fields[f]);
        free(column->made_fields);
        tarn_merge__picks_drop(&column->picks);
        tarn_merge__picks_drop(&column->made_elements);
        tarn_buf_drop(&column->made);
        tarn_buf_drop(&column->bytes);
        free(column->made_ends);
        free(column->elements.items);
        free(column->spare.items);
        free(column->composed.items);
    }
    free(engine->columns);
    free(engine->group_at);
    free(engine->group_verdict);
    free(engine);
}

/* --- rows out --- */

/* From here on picks are by column: those so far become each one's. Sources count from 1 there. */
static void begin_composing(struct tarn_merge_combiner *engine,
                            const struct tarn_merge_picks *so_far)
{
    engine->composing = true;
    for (int c = 0; c < engine->column_count + 2; c++) {
        struct tarn_merge_column *column = &engine->columns[c];
        for (size_t p = 0; column->wanted && p < so_far->count; p++)
            tarn_merge__picks_add(&column->picks, so_far->items[p].source + 1, so_far->items[p].row,
                                  so_far->items[p].count);
    }
}

void tarn_merge__engine_pass(struct tarn_merge_combiner *engine, uint32_t source, uint32_t row)
{
    for (int c = 0; c < engine->column_count + 2; c++) {
        if (engine->columns[c].wanted)
            tarn_merge__picks_add(&engine->columns[c].picks, source, row, 1);
    }
}

/* What the cell is, as a pick. */
static struct tarn_status *pick_cell(struct tarn_merge_combiner *engine,
                                     struct tarn_merge_column *column)
{
    uint32_t made = 0;

    if (column->cell == TARN_CELL_NULL && !column->type->nullable)
        return tarn_status_new(TARN_VALUE_INVALID,
                               "merging the versions of a key makes column %.*s null, which is NOT "
                               "NULL",
                               TARN_SLICE_ARG(column->name));
    if (column->cell == TARN_CELL_ROW) {
        tarn_merge__picks_add(&column->picks, column->at.source, column->at.row, 1);
        return TARN_OK;
    }
    if (column->cell != TARN_CELL_NULL)
        TARN_TRY(tarn_merge__made_add(engine, column, &made));
    tarn_merge__picks_add(&column->picks, 0, made, 1);
    return TARN_OK;
}

static struct tarn_status *put_row(struct tarn_merge_combiner *engine)
{
    int n = engine->column_count;

    for (int c = 0; c < n; c++) {
        if (engine->columns[c].wanted)
            TARN_TRY(pick_cell(engine, &engine->columns[c]));
    }
    if (engine->columns[n].wanted)
        tarn_merge__picks_add(&engine->columns[n].picks, engine->last.source, engine->last.row, 1);
    if (engine->columns[n + 1].wanted)
        tarn_merge__picks_add(&engine->columns[n + 1].picks, 0, (uint32_t)engine->kind, 1);
    return TARN_OK;
}

static void reset_cells(struct tarn_merge_combiner *engine)
{
    for (int c = 0; c < engine->column_count; c++) {
        engine->columns[c].cell = TARN_CELL_NULL;
        engine->columns[c].begun = false;
        engine->columns[c].composed.count = 0;
    }
}

struct tarn_status *tarn_merge__engine_merge(struct tarn_merge_combiner *engine,
                                             const struct tarn_merge_version *versions,
                                             size_t count, bool drop_retract,
                                             const struct tarn_merge_picks *so_far, bool *put)
{
    reset_cells(engine);
    engine->last = (struct tarn_merge_ref){versions[count - 1].source, versions[count - 1].row};
    TARN_TRY(engine->options->merge_engine == TARN_MERGE_PARTIAL_UPDATE
                 ? tarn_merge__partial_update(engine, versions, count)
                 : tarn_merge__aggregation(engine, versions, count));
    *put = !drop_retract || !tarn_merge__is_retract(engine->kind);
    if (!*put)
        return TARN_OK;
    if (!engine->composing)
        begin_composing(engine, so_far);
    return put_row(engine);
}

/* The kinds a result can have, by number. */
static void kinds_array(struct ArrowArray *out)
{
    tarn_merge__array_init(out, 4, 2, 0);
    int8_t *kinds = tarn_merge__array_buffer(out, 1, 4, false);

    for (int8_t i = 0; i < 4; i++)
        kinds[i] = i;
}

static struct tarn_status *gather_column(struct tarn_merge_combiner *engine,
                                         struct tarn_merge_column *column, size_t source_count,
                                         const struct ArrowArray **arrays, struct ArrowArray *out)
{
    struct ArrowArray made;

    if (column->rule == NULL)
        kinds_array(&made); /* sequence numbers are always a version's */
    else
        TARN_TRY(tarn_merge__made_take(engine, column, source_count, &made));
    arrays[0] = &made;
    for (uint32_t i = 1; i <= source_count; i++)
        arrays[i] = tarn_merge__source(engine, column, i);
    struct tarn_status *s =
        tarn_merge__gather(column->type, arrays, source_count + 1, &column->picks, out);
    tarn_merge__array_drop(&made);
    return s;
}

struct tarn_status *tarn_merge__engine_gather(struct tarn_merge_combiner *engine,
                                              const struct tarn_merge_tree_spec *tree,
                                              size_t source_count, int64_t row_count,
                                              struct tarn_batch **out)
{
    const struct ArrowArray **arrays = tarn_alloc((source_count + 1) * sizeof *arrays);
    struct tarn_status *s = TARN_OK;
    struct ArrowArray top;

    tarn_merge__array_init(&top, row_count, 1, tree->column_count);
    for (int i = 0; i < tree->column_count && s == TARN_OK; i++) {
        int c = 0;
        while (engine->columns[c].place != tree->columns[i])
            c++;
        s = gather_column(engine, &engine->columns[c], source_count, arrays, top.children[i]);
    }
    free(arrays);
    if (s == TARN_OK)
        *out = tarn_batch_take(&top);
    else
        tarn_merge__array_drop(&top);
    return s;
}

void tarn_merge__engine_clear(struct tarn_merge_combiner *engine)
{
    engine->composing = false;
    engine->made_bytes = 0;
    for (int c = 0; c < engine->column_count + 2; c++) {
        tarn_merge__picks_clear(&engine->columns[c].picks);
        if (engine->columns[c].rule != NULL)
            tarn_merge__made_clear(&engine->columns[c]);
    }
}
