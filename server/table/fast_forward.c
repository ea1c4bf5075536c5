#include "table/refs.h"

#include "table/internal.h"

/*
 * Fast-forward: the table's history becomes a branch's. What both have stays; what the table alone has goes, the newest first; then come
 * the branch's schemas, snapshots and tags, the oldest first. Index, receipts and streams take it as a history that others rewrote.
 */

struct job {
    struct tarn_op *op;
    struct tarn_table *table, *branch;
    int64_t first, last; /* of the branch's snapshots */
    int64_t common;      /* up to here both have the same; first - 1: nothing */
    struct tarn_undone undone;
    struct tarn_status *status;
};

static struct tarn_status *read_snapshot(struct job *j, struct tarn_table *table, int64_t id,
                                         bool *found, struct tarn_slice *json)
{
    struct tarn_snapshot snapshot;
    return tarn_table__read_snapshot(j->op, table, id, j->op->arena, found, json, &snapshot);
}

/* What has expired in the table stays so, though the branch may have it still. */
static struct tarn_status *find_common(struct job *j)
{
    const struct tarn_table_view *view = &j->table->view->view;
    j->common = j->first - 1;
    for (int64_t id = TARN_MAX(j->first, view->earliest_id); id <= j->last && view->has_snapshot;
         id++) {
        struct tarn_slice ours, theirs;
        bool in_table, in_branch;
        TARN_TRY(read_snapshot(j, j->table, id, &in_table, &ours));
        TARN_TRY(read_snapshot(j, j->branch, id, &in_branch, &theirs));
        if (!in_branch)
            return tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                                   "snapshot %" PRId64 " of %s expired while it was read", id,
                                   tarn_table_name(j->branch));
        if (!in_table || !tarn_slice_equal(ours, theirs))
            return TARN_OK;
        j->common = id;
    }
    return TARN_OK;
}

/* Nothing is common: what the table has below the branch's first is none of that one's past. */
static bool is_apart(const struct job *j)
{
    return j->common < j->first;
}

static struct tarn_status *read_object(struct job *j, struct tarn_table *table, const char *rest,
                                       bool *found, struct tarn_slice *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
    TARN_TRY(tarn_store_find(table->env->store, j->op, tarn_table__key(j->op, table, "%s", rest),
                             found, &body));
    *out = tarn_arena_copy(j->op->arena, tarn_buf_slice(&body));
    return TARN_OK;
}

/* Replaces what is there under the same name, unless it is the same. */
static struct tarn_status *copy(struct job *j, const char *rest, bool *found)
{
    struct tarn_slice theirs, ours;
    bool has;
    TARN_TRY(read_object(j, j->branch, rest, found, &theirs));
    if (!*found)
        return TARN_OK;
    TARN_TRY(read_object(j, j->table, rest, &has, &ours));
    return has && tarn_slice_equal(ours, theirs)
               ? TARN_OK
               : tarn_store_put(j->table->env->store, j->op,
                                tarn_table__key(j->op, j->table, "%s", rest), theirs);
}

/* The branch's, and none behind its last. */
static struct tarn_status *copy_schemas(struct job *j)
{
    int64_t id = 0, newest;
    bool found;
    TARN_TRY(tarn_table__latest_schema_id(j->op, j->table, -1, &newest));
    for (;; id++) {
        const char *rest = tarn_arena_printf(j->op->arena, "schema/schema-%" PRId64, id);
        TARN_TRY(copy(j, rest, &found));
        if (!found)
            break;
    }
    for (; newest >= id; newest--)
        TARN_TRY(
            tarn_store_remove(j->table->env->store, j->op,
                              tarn_table__key(j->op, j->table, "schema/schema-%" PRId64, newest)));
    return TARN_OK;
}

static struct tarn_status *copy_snapshots(struct job *j)
{
    for (int64_t id = j->common + 1; id <= j->last; id++) {
        struct tarn_slice json;
        bool found, created;
        TARN_TRY(read_snapshot(j, j->branch, id, &found, &json));
        if (!found)
            return tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                                   "snapshot %" PRId64 " of %s expired while it was copied", id,
                                   tarn_table_name(j->branch));
        TARN_TRY(tarn_store_put_if_absent(
            j->table->env->store, j->op,
            tarn_table__key(j->op, j->table, "snapshot/snapshot-%" PRId64, id), json, &created));
        if (!created)
            return tarn_status_new(TARN_SNAPSHOT_TAKEN,
                                   "another writer put snapshot %" PRId64 " of table %s meanwhile",
                                   id, tarn_table_name(j->table));
    }
    return TARN_OK;
}

static struct tarn_status *copy_tags(struct job *j)
{
    const struct tarn_slice *names;
    size_t count;
    bool found;
    TARN_TRY(tarn_table__tags_above(j->op, j->branch, j->common, &names, &count));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(copy(j, tarn_arena_printf(j->op->arena, "tag/tag-%.*s", TARN_SLICE_ARG(names[i])),
                      &found));
    return TARN_OK;
}

static struct tarn_status *rewrite(struct job *j)
{
    struct tarn_op *op = j->op;
    struct tarn_table *table = j->table;
    const struct tarn_slice *tags;
    size_t tag_count;
    bool unhinted, apart = is_apart(j);
    TARN_TRY(tarn_table__tags_above(op, table, j->common, &tags, &tag_count));
    tarn_table__hint_wait(table);
    tarn_table__expire_wait(table);
    TARN_TRY(apart ? tarn_table__hint_back(op, table, 0, &unhinted)
                   : tarn_table__put_hint(op, table, "LATEST", j->common));
    TARN_TRY(
        tarn_table__truncate(op, table, table->head->id, apart ? 0 : j->common, tags, tag_count));
    if (apart) /* the old one may name a snapshot that is there again before those below it count */
        TARN_TRY(tarn_table__put_hint(op, table, "EARLIEST", j->first));
    TARN_TRY(copy_schemas(j));
    /* Before the snapshots: they have all they need, and whoever goes on from here copies only those above what is common. */
    TARN_TRY(copy_tags(j));
    TARN_TRY(copy_snapshots(j));
    return tarn_table__put_hint(op, table, "LATEST", j->last);
}

static struct tarn_status *settle(struct job *j)
{
    TARN_TRY(tarn_table__check_here(j->table));
    TARN_TRY(tarn_table__settle(j->op, j->table));
    TARN_TRY(tarn_table__refresh(j->op, j->table));
    return find_common(j);
}

static void run(void *arg)
{
    struct job *j = arg;
    j->status = settle(j);
    if (j->status != TARN_OK)
        return;
    int64_t from = j->table->head->id;
    int64_t lowest = is_apart(j) ? j->table->view->view.earliest_id : j->common + 1;
    if (j->table->view->view.has_snapshot && lowest <= from)
        j->undone = (struct tarn_undone){lowest, from};
    tarn_exec_wait_begin();
    j->status = rewrite(j);
    tarn_exec_wait_end();
    j->status = tarn_table__rewritten(j->op, j->table, j->status);
    if (j->status == TARN_OK)
        tarn_log(j->op, TARN_INFO, "table.fast_forwarded",
                 "table=%s branch=%s from=%" PRId64 " to=%" PRId64,
                 tarn_log_quote(j->op, tarn_table_name(j->table)),
                 tarn_log_quote(j->op, tarn_table_branch(j->branch)), from, j->last);
}

struct tarn_status *tarn_table_fast_forward(struct tarn_op *op, struct tarn_table *table,
                                            struct tarn_table *branch, struct tarn_undone *undone)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct job j = {.op = op, .table = table, .branch = branch};
    TARN_OWN(tarn_op_fini) struct tarn_op hold;
    tarn_op_init_child(&hold, op);
    TARN_TRY(tarn_table_look_now(op, branch, &view));
    if (!view->has_snapshot)
        return tarn_status_new(TARN_SNAPSHOT_NOT_FOUND, "branch %s has no snapshot yet",
                               tarn_table_name(branch));
    j.first = view->earliest_id;
    j.last = view->snapshot.id;
    tarn_table__expire_hold(&hold, branch);
    tarn_mailbox_call(table->mailbox, run, &j);
    tarn_table__expire_release(branch);
    *undone = j.undone;
    return j.status;
}
