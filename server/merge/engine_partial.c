/*
 * partial-update: values that are not null overwrite; columns of a sequence group only where the version is not
 * below what the group was set by (format.md 8.4).
 */
#include "merge/engine.h"

enum { EMPTY, OLDER, NEWER }; /* a version, as a group sees it */

static struct tarn_status *refuse_delete(void)
{
    return tarn_status_new(
        TARN_VALUE_INVALID,
        "a delete among the versions of a key, which merge-engine = partial-update takes only with "
        "ignore-delete = true, partial-update.remove-record-on-delete = true or sequence groups");
}

/* The row becomes the version's. */
static void take_row(struct tarn_merge_combiner *engine, struct tarn_merge_ref version)
{
    for (int i = 0; i < engine->column_count; i++)
        tarn_merge__cell_set(engine, &engine->columns[i], version);
    for (size_t g = 0; g < engine->options->group_count; g++)
        engine->group_at[g] = version;
}

static int8_t judge(const struct tarn_merge_combiner *engine, size_t group,
                    struct tarn_merge_ref version)
{
    const struct tarn_merge_key_spec *spec = &engine->spec->groups[group];
    struct tarn_merge_ref at = engine->group_at[group];
    const struct tarn_batch *batch = engine->batches[version.source - 1];
    bool empty = true;

    for (size_t i = 0; i < spec->column_count && empty; i++)
        empty = tarn_column_is_null(tarn_batch_column(batch, spec->columns[i].column), version.row);
    if (empty)
        return EMPTY;
    if (at.source == 0)
        return NEWER;
    return tarn_merge__keys_compare(&engine->keys[version.source - 1][group], version.row,
                                    &engine->keys[at.source - 1][group], at.row) >= 0
               ? NEWER
               : OLDER;
}

static void judge_groups(struct tarn_merge_combiner *engine, struct tarn_merge_ref version)
{
    for (size_t g = 0; g < engine->options->group_count; g++)
        engine->group_verdict[g] = judge(engine, g, version);
}

static void advance_groups(struct tarn_merge_combiner *engine, struct tarn_merge_ref version)
{
    for (size_t g = 0; g < engine->options->group_count; g++) {
        if (engine->group_verdict[g] == NEWER)
            engine->group_at[g] = version;
    }
}

/* A column of a group that has something to say. */
static struct tarn_status *add_grouped(struct tarn_merge_combiner *engine,
                                       struct tarn_merge_column *column,
                                       struct tarn_merge_ref version)
{
    bool newer = engine->group_verdict[column->rule->group] == NEWER;

    if (column->rule->aggregate != TARN_AGGREGATE_NONE)
        return tarn_merge__aggregate(engine, column, newer ? TARN_STEP_ADD : TARN_STEP_ADD_OLDER,
                                     version);
    if (newer)
        tarn_merge__cell_set(engine, column, version);
    return TARN_OK;
}

static struct tarn_status *add(struct tarn_merge_combiner *engine, struct tarn_merge_ref version)
{
    judge_groups(engine, version);
    for (int i = 0; i < engine->column_count; i++) {
        struct tarn_merge_column *column = &engine->columns[i];
        int group = column->rule->group;

        if (group >= 0) {
            if (engine->group_verdict[group] != EMPTY)
                TARN_TRY(add_grouped(engine, column, version));
        } else if (!tarn_merge__ref_is_null(engine, column, version)) {
            column->cell = TARN_CELL_ROW;
            column->at = version;
        }
    }
    advance_groups(engine, version);
    return TARN_OK;
}

static bool removes(const struct tarn_merge_combiner *engine)
{
    for (size_t g = 0; g < engine->options->group_count; g++) {
        if (engine->options->groups[g].removes_record && engine->group_verdict[g] == NEWER)
            return true;
    }
    return false;
}

/* *removed: the whole row is. */
static struct tarn_status *retract(struct tarn_merge_combiner *engine,
                                   struct tarn_merge_ref version, int8_t kind, bool *removed)
{
    judge_groups(engine, version);
    *removed = kind == 3 && removes(engine);
    if (*removed) {
        take_row(engine, version);
        return TARN_OK;
    }
    for (int i = 0; i < engine->column_count; i++) {
        struct tarn_merge_column *column = &engine->columns[i];
        int group = column->rule->group;

        if (group < 0 || engine->group_verdict[group] == EMPTY)
            continue;
        bool newer = engine->group_verdict[group] == NEWER;
        if (column->rule->aggregate != TARN_AGGREGATE_NONE)
            TARN_TRY(tarn_merge__aggregate(engine, column, TARN_STEP_RETRACT, version));
        else if (column->rule->orders && newer)
            tarn_merge__cell_set(engine, column, version);
        else if (newer)
            column->cell = TARN_CELL_NULL;
    }
    advance_groups(engine, version);
    return TARN_OK;
}

struct tarn_status *tarn_merge__partial_update(struct tarn_merge_combiner *engine,
                                               const struct tarn_merge_version *versions,
                                               size_t count)
{
    const struct tarn_options *options = engine->options;
    bool filled = false, inserted = false, removed = false;

    for (size_t g = 0; g < options->group_count; g++)
        engine->group_at[g] = (struct tarn_merge_ref){0};
    for (size_t i = 0; i < count; i++) {
        struct tarn_merge_ref version = {versions[i].source, versions[i].row};
        bool is_retract = tarn_merge__is_retract(versions[i].kind);

        removed = false;
        if (is_retract && !filled)
            take_row(engine, version);
        filled = true;
        if (is_retract && options->ignore_delete) /* from before the option was set */
            continue;
        engine->last = version;
        if (!is_retract) {
            TARN_TRY(add(engine, version));
            inserted = true;
        } else if (options->group_count > 0) {
            TARN_TRY(retract(engine, version, versions[i].kind, &removed));
        } else if (!options->remove_on_delete) {
            return refuse_delete();
        } else if (versions[i].kind == 3) {
            take_row(engine, version);
            removed = true;
        }
    }
    engine->kind = removed || !inserted ? 3 : 0;
    return TARN_OK;
}
