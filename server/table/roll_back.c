#include "table/refs.h"

#include "table/index.h"
#include "table/internal.h"
#include "table/watch.h"

/*
 * Roll-back. It is made as every engine makes it, the hint first, then the newest snapshots one by one, so that at each moment the
 * folder holds a history; what the index, receipts and streams make of it is what they make of one that others did (look.c).
 */

struct job {
    struct tarn_op *op;
    struct tarn_table *table;
    const struct tarn_roll_back *request;
    struct tarn_roll_back_result *out;
    struct tarn_slice
        restored; /* the JSON of a snapshot that expired and a tag kept; absent: it is there */
    struct tarn_status *status;
};

/* --- what it means --- */

static struct tarn_status *find_tag_target(struct job *j)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_tag tag;
    struct tarn_snapshot there;
    struct tarn_slice text, there_json;
    bool found;
    TARN_TRY(tarn_table__read_tag(j->op, j->table, j->request->to.tag, &text, &tag));
    int64_t id = tag.snapshot.id;
    TARN_TRY(
        tarn_table__read_snapshot(j->op, j->table, id, j->op->arena, &found, &there_json, &there));
    j->out->to = id;
    if (found && tarn_slice_equal(there.base_list, tag.snapshot.base_list) &&
        tarn_slice_equal(there.delta_list, tag.snapshot.delta_list))
        return TARN_OK;
    if (found || id >= j->table->view->view.earliest_id)
        return tarn_status_new(TARN_SNAPSHOT_ROLLED_BACK,
                               "tag %.*s of table %s names a snapshot %" PRId64
                               " that was rolled back",
                               TARN_SLICE_ARG(tag.name), tarn_table_name(j->table), id);
    TARN_TRY(tarn_tag_encode_snapshot(text, &json));
    j->restored = tarn_arena_copy(j->op->arena, tarn_buf_slice(&json));
    j->out->restored = true;
    return TARN_OK;
}

static struct tarn_status *find_target(struct job *j)
{
    struct tarn_snapshot snapshot;
    if (j->request->to.tag.size > 0)
        return find_tag_target(j);
    bool found;
    TARN_TRY(tarn_table__find_version(j->op, j->table, &j->table->view->view, j->request->to,
                                      &found, &snapshot));
    j->out->to = snapshot.id; /* there is one, or it would not have come so far */
    return TARN_OK;
}

/* Does anybody read it, or go on from it? */
static struct tarn_status *find_passed(struct job *j, const char **by)
{
    struct tarn_consumer *consumers;
    size_t count;
    int64_t kept;
    *by = j->out->tag_count > 0 ? "a tag" : NULL;
    TARN_TRY(tarn_table_consumers(j->op, j->table, &consumers, &count));
    for (size_t i = 0; i < count; i++)
        if (consumers[i].next_snapshot > j->out->from)
            *by = "a consumer";
    TARN_TRY(tarn_table_keep_from(j->op, j->table, &kept)); /* which one is pinned isn't said */
    if (kept <= j->out->from)
        *by = "a pin";
    return TARN_OK;
}

static struct tarn_status *check_compaction(struct job *j)
{
    const struct tarn_snapshot *latest = &j->table->head->snapshot;
    const char *why = NULL;
    if (latest->kind != TARN_COMMIT_COMPACT)
        why = "is none";
    else if (!tarn_slice_equal(latest->commit_user, j->request->only_compaction_by))
        why = "is another writer's";
    else if (latest->changelog_list.data != NULL)
        why = "wrote a changelog";
    if (why == NULL) {
        TARN_TRY(find_passed(j, &why));
        why = why == NULL ? NULL : tarn_arena_printf(j->op->arena, "is held by %s", why);
    }
    return why == NULL ? TARN_OK
                       : tarn_status_new(TARN_COMMIT_CONFLICT,
                                         "snapshot %" PRId64
                                         " of table %s is not undone as a compaction: it %s",
                                         latest->id, tarn_table_name(j->table), why);
}

static struct tarn_status *settle_request(struct job *j)
{
    struct tarn_table *table = j->table;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_table__settle(j->op, table));
    TARN_TRY(tarn_table__refresh(j->op, table));
    j->out->from = table->head->id;
    if (table->head->id == 0)
        return tarn_status_new(TARN_SNAPSHOT_NOT_FOUND, "table %s has no snapshot yet",
                               tarn_table_name(table));
    int64_t only = j->request->only_from;
    if (only != TARN_SNAPSHOT_NONE && only != table->head->id)
        return tarn_status_new(TARN_SNAPSHOT_TAKEN,
                               "the latest snapshot of table %s is %" PRId64 ", not %" PRId64,
                               tarn_table_name(table), table->head->id, only);
    TARN_TRY(find_target(j));
    TARN_TRY(tarn_table__tags_above(j->op, table, j->out->to, &j->out->tags, &j->out->tag_count));
    return j->request->only_compaction_by.data == NULL ? TARN_OK : check_compaction(j);
}

/* --- the deed --- */

/* Below the history, where no reader looks before the rest is gone: so there is a snapshot at each moment. */
static struct tarn_status *restore(struct job *j)
{
    bool created;
    return j->restored.data == NULL
               ? TARN_OK
               : tarn_store_put_if_absent(
                     j->table->env->store, j->op,
                     tarn_table__key(j->op, j->table, "snapshot/snapshot-%" PRId64, j->out->to),
                     j->restored, &created);
}

/* `to` may lie right below the history, which then begins with it; whoever believed the old hint would miss it once the rest has been replaced. */
static struct tarn_status *lower_earliest(struct job *j)
{
    int64_t earliest;
    TARN_TRY(tarn_table__read_hint(j->op, j->table, "EARLIEST", &earliest));
    return earliest > j->out->to ? tarn_table__put_hint(j->op, j->table, "EARLIEST", j->out->to)
                                 : TARN_OK;
}

static struct tarn_status *rewrite(struct job *j)
{
    struct tarn_op *op = j->op;
    struct tarn_table *table = j->table;
    bool unhinted = false;
    tarn_table__hint_wait(table);
    tarn_table__expire_wait(table);
    TARN_TRY(restore(j));
    TARN_TRY(j->out->from == j->out->to ? tarn_table__put_hint(op, table, "LATEST", j->out->to)
                                        : tarn_table__hint_back(op, table, j->out->to, &unhinted));
    if (!unhinted)
        TARN_TRY(lower_earliest(j));
    TARN_TRY(
        tarn_table__truncate(op, table, j->out->from, j->out->to, j->out->tags, j->out->tag_count));
    if (unhinted) { /* `to` lay below the history, now or when this was cut off before */
        TARN_TRY(tarn_table__put_hint(op, table, "EARLIEST", j->out->to));
        TARN_TRY(tarn_table__put_hint(op, table, "LATEST", j->out->to));
    }
    return TARN_OK;
}

static void run(void *arg)
{
    struct job *j = arg;
    j->status = settle_request(j);
    if (j->status != TARN_OK || j->request->dry_run)
        return;
    tarn_exec_wait_begin();
    j->status = rewrite(j);
    tarn_exec_wait_end();
    j->status = tarn_table__rewritten(j->op, j->table, j->status);
    if (j->status == TARN_OK)
        j->status = tarn_table__follow_schema(j->op, j->table);
    if (j->status == TARN_OK)
        tarn_log(j->op, TARN_INFO, "table.rolled_back",
                 "table=%s from=%" PRId64 " to=%" PRId64 " tags=%zu",
                 tarn_log_quote(j->op, tarn_table_name(j->table)), j->out->from, j->out->to,
                 j->out->tag_count);
}

struct tarn_status *tarn_table_roll_back(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_roll_back *request,
                                         struct tarn_roll_back_result *out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct job j = {.op = op, .table = table, .request = request, .out = out};
    *out = (struct tarn_roll_back_result){0};
    tarn_mailbox_call(table->mailbox, run, &j);
    return j.status;
}
