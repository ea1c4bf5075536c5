#include "catalog/internal.h"

/* Changing a schema: format/evolve.h says what it becomes, and the store whether somebody else was faster. */

#define ALTER_TRIES_MAX 10 /* then SCHEMA_CONFLICT: try again */

static struct tarn_status *try_alter(struct tarn_op *op, struct tarn_table *table,
                                     const struct tarn_schema_change *changes, size_t count)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_schema next;
    TARN_TRY(tarn_table_look(op, table, &view));
    TARN_TRY(tarn_status_wrap(tarn_schema_evolve(&view->schema, changes, count, view->has_snapshot,
                                                 tarn_clock_wall_ms(), op->arena, &next),
                              "table %s", tarn_table_name(table)));
    return tarn_table_put_schema(op, table, &next, view->has_snapshot);
}

struct tarn_status *tarn_catalog_alter_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_table *table,
                                             const struct tarn_schema_change *changes, size_t count)
{
    struct tarn_status *s = TARN_OK;
    for (int tries = 0; tries < ALTER_TRIES_MAX; tries++) {
        tarn_status_free(s); /* another change came first: apply ours to what it made */
        s = try_alter(op, table, changes, count);
        if (tarn_status_reason(s) != TARN_SCHEMA_CONFLICT)
            break;
    }
    tarn_catalog__changed(catalog);
    return s;
}
