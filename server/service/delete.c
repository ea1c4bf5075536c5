#include "service/internal.h"

/* Deletes by predicate in append tables: what is decided before a worker marks rows, and the commit after it. */

static struct tarn_status *check_table(const struct tarn_table_view *view, const char *table,
                                       struct tarn_slice where)
{
    TARN_TRY(tarn_options_check_write(&view->options));
    TARN_TRY(tarn_options_check_merge(&view->options));
    if (!tarn_schema_is_append(&view->schema))
        return tarn_status_new(
            TARN_INVALID_ARGUMENT,
            "table %s has a primary key: its rows are deleted by key, with a load "
            "of mode delete",
            table);
    if (!view->options.deletion_vectors)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "rows of table %s can be deleted where deletion-vectors.enabled is "
                               "true, and it isn't",
                               table);
    if (where.size == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "a delete says which rows; to remove all, truncate the table");
    return TARN_OK;
}

static struct tarn_status *begin(struct tarn_op *op, struct tarn_service *service,
                                 struct tarn_slice where, struct tarn_delete *d)
{
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST, .where = where};
    struct tarn_plan plan;
    struct tarn_index_file *files;
    size_t count;
    TARN_TRY(tarn_table_plan(op, d->table, &request, &plan));
    if (plan.split_count == 0)
        return TARN_OK;
    d->base_id = plan.snapshot.id;
    d->base_proof = tarn_snapshot_proof(&plan.snapshot);
    TARN_TRY(tarn_table_vector_files(op, d->table, &plan.snapshot, &files, &count));
    TARN_TRY(tarn_service__pack_indexes(op, files, count, &d->indexes));
    return tarn_service__scan_of_plan(op, service, d->table, &plan, &d->scan);
}

struct tarn_status *tarn_service_delete_begin(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_table_ref ref, struct tarn_slice where,
                                              struct tarn_slice user, struct tarn_delete *out)
{
    struct tarn_delete d = {0};
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_WRITE, &table));
    TARN_TRY(tarn_service__check_name("commit_user", user));
    TARN_TRY(tarn_table_look_now(op, table, &view));
    TARN_TRY(check_table(view, tarn_table_name(table), where));
    char random[TARN_UUID_SIZE];
    tarn_uuid_random(random);
    d.user = tarn_arena_copy(op->arena, user.size > 0 ? user : tarn_slice_str(random));
    d.table = table;
    d.view = view;
    TARN_TRY(begin(op, service, where, &d));
    tarn_move(table);
    tarn_move(view);
    *out = d;
    return TARN_OK;
}

/* Under the path that the worker was given, by an op of its own: the caller may be gone. */
static void remove_index_files(const struct tarn_delete *d, const struct tarn_index_file *files,
                               size_t count)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    for (size_t i = 0; i < count; i++) {
        struct tarn_slice path;
        if (files[i].kind != TARN_ENTRY_ADD)
            continue;
        struct tarn_status *s =
            tarn_index_file_path(&d->view->schema, &d->view->options, &files[i], op.arena, &path);
        if (s == TARN_OK)
            s = tarn_store_remove(tarn_table_store(d->table), &op,
                                  tarn_arena_printf(op.arena, "%s/%.*s", d->scan.description.path,
                                                    TARN_SLICE_ARG(path)));
        tarn_log_status(&op, TARN_WARN, "delete.file_left", s);
    }
}

/* What goes is told by name alone: the rest is what the table has. */
static struct tarn_status *fill_removed(struct tarn_op *op, const struct tarn_delete *d,
                                        struct tarn_index_file *files, size_t count)
{
    struct tarn_index_file *known;
    size_t known_count = 0;
    if (d->indexes.size > 0)
        TARN_TRY(tarn_index_manifest_decode(d->indexes, op->arena, &known, &known_count));
    for (size_t i = 0; i < count; i++) {
        bool found = files[i].kind == TARN_ENTRY_ADD;
        for (size_t k = 0; k < known_count && !found; k++) {
            found = tarn_slice_equal(known[k].name, files[i].name);
            if (found) {
                files[i] = known[k];
                files[i].kind = TARN_ENTRY_DELETE;
            }
        }
        if (!found)
            return tarn_status_new(TARN_INTERNAL,
                                   "a worker replaces an index file that it wasn't given: %.*s",
                                   TARN_SLICE_ARG(files[i].name));
    }
    return TARN_OK;
}

struct tarn_status *tarn_service_delete_commit(struct tarn_op *op, struct tarn_service *service,
                                               const struct tarn_delete *d,
                                               const struct tarn_index_names *indexes,
                                               int64_t *snapshot_id)
{
    struct tarn_index_file *files;
    size_t count;
    *snapshot_id = 0;
    TARN_TRY(tarn_service__unpack_indexes(op, indexes->added, indexes->removed,
                                          indexes->removed_count, &files, &count));
    TARN_TRY(fill_removed(op, d, files, count));
    if (count == 0)
        return TARN_OK;
    struct tarn_commit commit = {
        .user = d->user,
        .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
        .watermark = TARN_SNAPSHOT_NONE,
        .base_snapshot_id = d->base_id,
        .base_snapshot_proof = d->base_proof,
        .append.index = files,
        .append.index_count = count,
        .operation = tarn_slice_str("DELETE"),
        .check_files = true,
    };
    commit.kind = tarn_commit_append_kind(&commit);
    struct tarn_commit_result result;
    struct tarn_status *s = tarn_service__still_there(op, service, d->table, &d->scan.description);
    if (s == TARN_OK)
        s = tarn_table_commit(op, d->table, &commit, &result);
    if (s != TARN_OK && tarn_status_reason(s) != TARN_OUTCOME_UNKNOWN)
        remove_index_files(d, files, count);
    TARN_TRY(s);
    *snapshot_id = result.append_snapshot_id;
    return TARN_OK;
}

void tarn_service_delete_end(struct tarn_service *service, struct tarn_delete *d,
                             bool worker_failed)
{
    tarn_service_stream_end(service, d->scan.worker_id, worker_failed);
    tarn_table_view_drop(&d->view);
    tarn_table_drop_ref(&d->table);
}
