#include "catalog/internal.h"
#include "catalog/partition_notes.h"

/*
 * Changing a schema: format/evolve.h says what it becomes, and the store whether somebody else was faster. Replacing a table: it is emptied by a
 * commit, and gets the new schema if it still is; who commits in between is overwritten, too.
 */

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

static struct tarn_status *empty_table(struct tarn_op *op, struct tarn_table *table)
{
    char user[TARN_UUID_SIZE];
    tarn_uuid_random(
        user); /* nobody commits it again: what would be removed then may be other rows */
    struct tarn_commit commit = {
        .user = tarn_slice_str(user),
        .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
        .watermark = TARN_SNAPSHOT_NONE,
        .operation = tarn_slice_str("TRUNCATE"),
        .kind = TARN_COMMIT_OVERWRITE,
        .overwrite = TARN_OVERWRITE_TABLE,
        .base_snapshot_id = TARN_SNAPSHOT_NONE,
    };
    struct tarn_commit_result result;
    return tarn_table_commit(op, table, &commit, &result);
}

static struct tarn_status *try_replace(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_schema *draft, bool *done)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_schema next;
    struct tarn_options options;
    TARN_TRY(tarn_table_look(op, table, &view));
    TARN_TRY(tarn_status_wrap(
        tarn_schema_replace(&view->schema, draft, tarn_clock_wall_ms(), op->arena, &next),
        "table %s", tarn_table_name(table)));
    TARN_TRY(tarn_options_parse(&next, op->arena, &options));
    TARN_TRY(tarn_table_put_schema_if_empty(op, table, &next, done));
    return *done ? TARN_OK : empty_table(op, table);
}

struct tarn_status *tarn_catalog_replace_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_table *table,
                                               const struct tarn_schema *draft)
{
    bool done = false;
    TARN_TRY(tarn_catalog_check_main(table, "a branch isn't replaced"));
    for (int tries = 0; tries < ALTER_TRIES_MAX && !done; tries++) {
        struct tarn_status *s = try_replace(op, table, draft, &done);
        if (tarn_status_reason(s) != TARN_SCHEMA_CONFLICT)
            TARN_TRY(s);
        else
            tarn_status_free(s); /* another change came first: this one follows it */
    }
    if (!done)
        return tarn_status_new(TARN_BUSY, "others commit to table %s faster than it is replaced",
                               tarn_table_name(table));
    return tarn_catalog_forget_partition_notes(op, catalog, table);
}
