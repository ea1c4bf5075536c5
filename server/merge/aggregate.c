/*
 * aggregate - one value more for a column: which function, and those that only choose among the versions' values.
 */
#include "merge/engine.h"

static struct tarn_status *refuse_retract(const struct tarn_merge_column *column)
{
    return tarn_status_new(
        TARN_VALUE_INVALID,
        "a delete among the versions of a key: function %s of column %.*s can't "
        "take values back; fields.%.*s.ignore-retract = true lets it ignore them",
        tarn_aggregate_name(column->rule->aggregate), TARN_SLICE_ARG(column->name),
        TARN_SLICE_ARG(column->name));
}

static int compare(const struct tarn_merge_combiner *engine, const struct tarn_merge_column *column,
                   struct tarn_merge_ref in)
{
    struct tarn_value a, b;

    tarn_column_value(tarn_merge__source(engine, column, column->at.source), column->type,
                      column->at.row, &a);
    tarn_column_value(tarn_merge__source(engine, column, in.source), column->type, in.row, &b);
    return tarn_value_compare(column->type, &a, &b);
}

/* max, min, bool_or, bool_and: the extreme of two, neither of which is null. */
static void keep_extreme(const struct tarn_merge_combiner *engine, struct tarn_merge_column *column,
                         struct tarn_merge_ref in, int sign)
{
    if (column->cell == TARN_CELL_NULL || compare(engine, column, in) * sign < 0)
        tarn_merge__cell_set(engine, column, in);
}

/* The first of all; an older value takes the place of one that is there. */
static void keep_first(const struct tarn_merge_combiner *engine, struct tarn_merge_column *column,
                       struct tarn_merge_ref in, bool older)
{
    if (older || !column->begun)
        tarn_merge__cell_set(engine, column, in);
    column->begun = true;
}

/* A version's value into a column that chooses; `null`: it is null. */
static void choose(const struct tarn_merge_combiner *engine, struct tarn_merge_column *column,
                   bool older, struct tarn_merge_ref in, bool null)
{
    switch (column->rule->aggregate) {
    case TARN_AGGREGATE_KEY:
    case TARN_AGGREGATE_LAST:
        if (!older)
            tarn_merge__cell_set(engine, column, in);
        break;
    case TARN_AGGREGATE_FIRST:
        keep_first(engine, column, in, older);
        break;
    case TARN_AGGREGATE_FIRST_NON_NULL:
        if (!null)
            keep_first(engine, column, in, older);
        break;
    case TARN_AGGREGATE_MIN:
    case TARN_AGGREGATE_BOOL_AND:
        if (!null)
            keep_extreme(engine, column, in, -1);
        break;
    case TARN_AGGREGATE_MAX:
    case TARN_AGGREGATE_BOOL_OR:
        if (!null)
            keep_extreme(engine, column, in, 1);
        break;
    default: /* the last that is not null */
        if (!null && (!older || column->cell == TARN_CELL_NULL))
            tarn_merge__cell_set(engine, column, in);
        break;
    }
}

static struct tarn_status *take_back(const struct tarn_merge_combiner *engine,
                                     struct tarn_merge_column *column, struct tarn_merge_ref in,
                                     bool null)
{
    switch (column->rule->aggregate) {
    case TARN_AGGREGATE_KEY:
        tarn_merge__cell_set(engine, column, in);
        return TARN_OK;
    case TARN_AGGREGATE_LAST:
        column->cell = TARN_CELL_NULL;
        return TARN_OK;
    case TARN_AGGREGATE_LAST_NON_NULL:
        if (!null)
            column->cell = TARN_CELL_NULL;
        return TARN_OK;
    default:
        return refuse_retract(column);
    }
}

struct tarn_status *tarn_merge__aggregate(struct tarn_merge_combiner *engine,
                                          struct tarn_merge_column *column,
                                          enum tarn_merge_step step, struct tarn_merge_ref in)
{
    enum tarn_aggregate aggregate = column->rule->aggregate;
    bool null = tarn_merge__ref_is_null(engine, column, in);

    if (step == TARN_STEP_RETRACT && column->rule->ignore_retract)
        return TARN_OK;
    if (step == TARN_STEP_RETRACT && !tarn_aggregate_retracts(aggregate))
        return refuse_retract(column);
    switch (aggregate) {
    case TARN_AGGREGATE_SUM:
    case TARN_AGGREGATE_PRODUCT:
        return null ? TARN_OK : tarn_merge__aggregate_number(engine, column, step, in);
    case TARN_AGGREGATE_LISTAGG:
        tarn_merge__aggregate_text(engine, column, step, in);
        return TARN_OK;
    case TARN_AGGREGATE_BITMAP:
        return null ? TARN_OK : tarn_merge__aggregate_bitmap(engine, column, in);
    case TARN_AGGREGATE_COLLECT:
    case TARN_AGGREGATE_MERGE_MAP:
    case TARN_AGGREGATE_MERGE_MAP_BY_TIME:
    case TARN_AGGREGATE_NESTED_UPDATE:
    case TARN_AGGREGATE_NESTED_PARTIAL_UPDATE:
        return tarn_merge__aggregate_nested(engine, column, step, in);
    default:
        break;
    }
    if (step == TARN_STEP_RETRACT)
        return take_back(engine, column, in, null);
    choose(engine, column, step == TARN_STEP_ADD_OLDER, in, null);
    return TARN_OK;
}
