/*
 * aggregation: each column by its function (format.md 8.5).
 */
#include "merge/engine.h"

/* The row becomes that of a -D, and what comes then begins anew. */
static void remove_record(struct tarn_merge_combiner *engine, struct tarn_merge_ref version)
{
    for (int i = 0; i < engine->column_count; i++) {
        tarn_merge__cell_set(engine, &engine->columns[i], version);
        engine->columns[i].begun = false;
    }
}

struct tarn_status *tarn_merge__aggregation(struct tarn_merge_combiner *engine,
                                            const struct tarn_merge_version *versions, size_t count)
{
    engine->kind = 0;
    for (size_t i = 0; i < count; i++) {
        struct tarn_merge_ref version = {versions[i].source, versions[i].row};
        bool removed = engine->options->remove_on_delete && versions[i].kind == 3;
        enum tarn_merge_step step =
            tarn_merge__is_retract(versions[i].kind) ? TARN_STEP_RETRACT : TARN_STEP_ADD;

        engine->last = version;
        engine->kind = removed ? 3 : 0;
        if (removed) {
            remove_record(engine, version);
            continue;
        }
        for (int c = 0; c < engine->column_count; c++)
            TARN_TRY(tarn_merge__aggregate(engine, &engine->columns[c], step, version));
    }
    return TARN_OK;
}
