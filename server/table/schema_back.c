#include "table/internal.h"

/* Schemas that nothing was written by go again, the newest first, in the mailbox: in order with commits and with changes of the schema. */

struct job {
    struct tarn_op *op;
    struct tarn_table *table;
    int64_t to, from;
    int64_t used; /* the smallest above `to` that something is of; INT64_MAX: none */
    struct tarn_status *status;
};

static void use(struct job *j, int64_t schema_id)
{
    if (schema_id > j->to)
        j->used = TARN_MIN(j->used, schema_id);
}

/* Files outlive the snapshots that brought them, and may be of a later schema than the snapshot that still has them says. */
static struct tarn_status *use_files(struct job *j)
{
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST, .no_splits = true};
    TARN_OWN(tarn_plan_cursor_drop) struct tarn_plan_cursor *cursor = NULL;
    struct tarn_plan_batch batch;
    TARN_TRY(tarn_table_plan_begin(j->op, j->table, &request, &cursor));
    do {
        TARN_TRY(tarn_plan_cursor_next(cursor, &batch));
        for (size_t i = 0; i < batch.file_count; i++)
            use(j, batch.files[i].entry.file.schema_id);
    } while (batch.file_count > 0);
    return TARN_OK;
}

static struct tarn_status *use_snapshots(struct job *j)
{
    int64_t latest = j->table->head->id;
    for (int64_t id = j->table->view->view.earliest_id; id > 0 && id <= latest; id++) {
        TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
        struct tarn_snapshot snapshot;
        bool found;
        TARN_TRY(tarn_table__past(j->table, id, arena, &found, &snapshot));
        if (found)
            use(j, snapshot.schema_id);
    }
    return TARN_OK;
}

static struct tarn_status *use_tags(struct job *j)
{
    struct tarn_named *named;
    size_t count;
    TARN_TRY(tarn_table__list_named(j->op, j->table, "tag", "tag-", &named, &count));
    for (size_t i = 0; i < count; i++) {
        struct tarn_tag tag;
        struct tarn_slice json;
        struct tarn_status *s = tarn_table__read_tag(j->op, j->table, named[i].name, &json, &tag);
        if (s == TARN_OK)
            use(j, tag.snapshot.schema_id);
        if (tarn_status_reason(s) == TARN_TAG_NOT_FOUND) { /* it went meanwhile */
            tarn_status_free(s);
            continue;
        }
        TARN_TRY(s);
    }
    return TARN_OK;
}

/* Snapshots that expired, and whose changelogs other engines keep. */
static struct tarn_status *use_changelogs(struct job *j)
{
    struct tarn_named *named;
    size_t count;
    TARN_TRY(tarn_table__list_named(j->op, j->table, "changelog", "changelog-", &named, &count));
    for (size_t i = 0; i < count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
        struct tarn_snapshot snapshot;
        bool found;
        TARN_TRY(tarn_store_find(j->table->env->store, j->op,
                                 tarn_table__key(j->op, j->table, "changelog/changelog-%.*s",
                                                 TARN_SLICE_ARG(named[i].name)),
                                 &found, &json));
        if (!found)
            continue;
        TARN_TRY(tarn_snapshot_decode(tarn_arena_copy(j->op->arena, tarn_buf_slice(&json)),
                                      j->op->arena, &snapshot));
        use(j, snapshot.schema_id);
    }
    return TARN_OK;
}

static struct tarn_status *check(struct job *j)
{
    struct tarn_table *table = j->table;
    struct tarn_schema schema;
    bool found = false;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_table__settle(j->op, table));
    TARN_TRY(tarn_table__refresh(j->op, table));
    j->from = table->view->view.schema.id;
    if (j->to >= 0 && j->to <= j->from)
        TARN_TRY(tarn_table__read_schema(j->op, table, j->to, j->op->arena, &found, &schema));
    if (!found)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "Schema %" PRId64 " of table %s does not exist.", j->to,
                               table->name);
    TARN_TRY(use_snapshots(j));
    TARN_TRY(use_tags(j));
    TARN_TRY(use_changelogs(j));
    if (j->used == INT64_MAX)
        return TARN_OK;
    return tarn_status_new(TARN_SCHEMA_IN_USE,
                           "Cannot rollback to schema %" PRId64 ", schema %" PRId64
                           " is still referenced by snapshots/tags/changelogs.",
                           j->to, j->used);
}

static struct tarn_status *remove_schemas(struct job *j)
{
    for (int64_t id = j->from; id > j->to; id--)
        TARN_TRY(tarn_store_remove(j->table->env->store, j->op,
                                   tarn_table__key(j->op, j->table, "schema/schema-%" PRId64, id)));
    return TARN_OK;
}

static struct tarn_status *go_back(struct job *j)
{
    TARN_TRY(check(j));
    if (j->from == j->to)
        return TARN_OK;
    tarn_exec_wait_begin();
    struct tarn_status *s = remove_schemas(j);
    tarn_exec_wait_end();
    j->table->related_to = -1; /* another schema may have its id soon */
    j->table->own_schema_id = TARN_MIN(j->table->own_schema_id, j->to);
    struct tarn_status *looked = tarn_table__look_schema_from(j->op, j->table, j->to);
    if (s != TARN_OK) {
        tarn_status_free(looked);
        return s;
    }
    TARN_TRY(looked);
    tarn_log(j->op, TARN_INFO, "table.schema_rolled_back", "table=%s from=%" PRId64 " to=%" PRId64,
             tarn_log_quote(j->op, tarn_table_name(j->table)), j->from, j->to);
    return TARN_OK;
}

static void run(void *arg)
{
    struct job *j = arg;
    j->status = go_back(j);
}

struct tarn_status *tarn_table__follow_schema(struct tarn_op *op, struct tarn_table *table)
{
    const struct tarn_schema *now = &table->view->view.schema;
    struct tarn_schema then;
    bool found = false;
    struct job j = {
        .op = op, .table = table, .to = table->head->snapshot.schema_id, .used = INT64_MAX};
    if (table->head->id == 0 || j.to >= now->id)
        return TARN_OK;
    TARN_TRY(tarn_table__read_schema(op, table, j.to, op->arena, &found, &then));
    return !found || tarn_table__schemas_related(&then, now) ? TARN_OK : go_back(&j);
}

struct tarn_status *tarn_table_roll_back_schema(struct tarn_op *op, struct tarn_table *table,
                                                int64_t to, int64_t *from)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct job j = {.op = op, .table = table, .to = to, .used = INT64_MAX};
    TARN_TRY(use_files(&j));
    tarn_mailbox_call(table->mailbox, run, &j);
    *from = j.from;
    return j.status;
}
