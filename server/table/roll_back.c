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

static const char *snapshot_key(struct job *j, int64_t id)
{
    return tarn_table__key(j->op, j->table, "snapshot/snapshot-%" PRId64, id);
}

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
    TARN_TRY(tarn_tag_encode_snapshot(text, &json));
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

static struct tarn_status *find_tags(struct job *j)
{
    struct tarn_named *named;
    struct tarn_slice *above;
    size_t count;
    TARN_TRY(tarn_table__list_named(j->op, j->table, "tag", "tag-", &named, &count));
    above = tarn_arena_calloc(j->op->arena, count + 1, sizeof *above);
    for (size_t i = 0; i < count; i++) {
        struct tarn_tag tag;
        struct tarn_slice json;
        struct tarn_status *s = tarn_table__read_tag(j->op, j->table, named[i].name, &json, &tag);
        if (tarn_status_reason(s) == TARN_TAG_NOT_FOUND) { /* it went meanwhile */
            tarn_status_free(s);
            continue;
        }
        TARN_TRY(s);
        if (tag.snapshot.id > j->out->to)
            above[j->out->tag_count++] = named[i].name;
    }
    j->out->tags = above;
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
    TARN_TRY(find_tags(j));
    return j->request->only_compaction_by.data == NULL ? TARN_OK : check_compaction(j);
}

/* --- the deed --- */

static struct tarn_status *put_hint(struct job *j, const char *name, int64_t id)
{
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRId64, id);
    return tarn_store_put(j->table->env->store, j->op,
                          tarn_table__key(j->op, j->table, "snapshot/%s", name),
                          tarn_slice_of(text, (size_t)size));
}

/* Below the history, where no reader looks before the rest is gone: so there is a snapshot at each moment. */
static struct tarn_status *restore(struct job *j)
{
    bool created;
    return j->restored.data == NULL
               ? TARN_OK
               : tarn_store_put_if_absent(j->table->env->store, j->op, snapshot_key(j, j->out->to),
                                          j->restored, &created);
}

/* What the index doesn't know under this id is another writer's, who went on from what is left already. */
static struct tarn_status *remove_snapshot(struct job *j, int64_t id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf indexed = {0};
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    bool there, known;
    TARN_TRY(
        tarn_table__read_snapshot(j->op, j->table, id, j->op->arena, &there, &json, &snapshot));
    if (!there)
        return TARN_OK;
    TARN_TRY(tarn_table__indexed_snapshot(j->table, id, &known, &indexed));
    if (known && !tarn_slice_equal(tarn_buf_slice(&indexed), json))
        return tarn_status_new(TARN_SNAPSHOT_TAKEN,
                               "another writer put snapshot %" PRId64
                               " of table %s while it was rolled back",
                               id, tarn_table_name(j->table));
    return tarn_store_remove(j->table->env->store, j->op, snapshot_key(j, id));
}

static int falling(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Of `folder`, those above the target, the newest first, each once. */
static struct tarn_status *ids_above(struct job *j, const char *folder, const char *prefix,
                                     int64_t newest, int64_t **out, size_t *count)
{
    struct tarn_named *named;
    size_t named_count;
    TARN_TRY(tarn_table__list_named(j->op, j->table, folder, prefix, &named, &named_count));
    size_t known = newest > j->out->to ? (size_t)(newest - j->out->to) : 0, n = 0;
    *out = tarn_arena_calloc(j->op->arena, named_count + known + 1, sizeof **out);
    for (size_t i = 0; i < known; i++) /* a list may be short or old */
        (*out)[n++] = newest - (int64_t)i;
    for (size_t i = 0; i < named_count; i++) {
        int64_t id;
        struct tarn_status *s = tarn_parse_i64(named[i].name, &id);
        if (s == TARN_OK && id > TARN_MAX(newest, j->out->to))
            (*out)[n++] = id;
        tarn_status_free(s);
    }
    qsort(*out, n, sizeof **out, falling);
    *count = n;
    return TARN_OK;
}

/* Another writer may have put one on top of what went: behind a gap it is none of a history. What begins right behind the target is. */
static struct tarn_status *remove_strays(struct job *j)
{
    int64_t *ids, next = j->out->to + 1;
    size_t count;
    TARN_TRY(ids_above(j, "snapshot", "snapshot-", 0, &ids, &count));
    while (count > 0 && ids[count - 1] == next) {
        count--;
        next++;
    }
    for (size_t i = 0; i < count; i++) {
        tarn_log(j->op, TARN_WARN, "table.stray_removed", "table=%s snapshot=%" PRId64,
                 tarn_table_name(j->table), ids[i]);
        TARN_TRY(tarn_store_remove(j->table->env->store, j->op, snapshot_key(j, ids[i])));
    }
    return TARN_OK;
}

static struct tarn_status *remove_snapshots(struct job *j)
{
    int64_t *ids;
    size_t count;
    TARN_TRY(ids_above(j, "snapshot", "snapshot-", j->out->from, &ids, &count));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(remove_snapshot(j, ids[i]));
    return count == 0 ? TARN_OK : remove_strays(j);
}

static struct tarn_status *remove_changelogs(struct job *j)
{
    int64_t *ids;
    size_t count;
    TARN_TRY(ids_above(j, "changelog", "changelog-", 0, &ids, &count));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(tarn_store_remove(
            j->table->env->store, j->op,
            tarn_table__key(j->op, j->table, "changelog/changelog-%" PRId64, ids[i])));
    return TARN_OK;
}

static struct tarn_status *remove_tags(struct job *j)
{
    for (size_t i = 0; i < j->out->tag_count; i++)
        TARN_TRY(tarn_store_remove(
            j->table->env->store, j->op,
            tarn_table__key(j->op, j->table, "tag/tag-%.*s", TARN_SLICE_ARG(j->out->tags[i]))));
    return TARN_OK;
}

static struct tarn_status *rewrite(struct job *j)
{
    tarn_table__hint_wait(j->table);
    TARN_TRY(restore(j));
    TARN_TRY(put_hint(j, "LATEST", j->out->to));
    TARN_TRY(remove_snapshots(j));
    TARN_TRY(remove_changelogs(j));
    TARN_TRY(remove_tags(j));
    return j->restored.data == NULL ? TARN_OK : put_hint(j, "EARLIEST", j->out->to);
}

static void run(void *arg)
{
    struct job *j = arg;
    j->status = settle_request(j);
    if (j->status != TARN_OK || j->request->dry_run)
        return;
    tarn_exec_wait_begin();
    j->status = tarn_status_wrap(rewrite(j), "table %s may be rolled back in part",
                                 tarn_table_name(j->table));
    tarn_exec_wait_end();
    /* Whatever became of it is what the table is now. */
    struct tarn_status *looked = tarn_table__refresh(j->op, j->table);
    if (j->status == TARN_OK)
        j->status = looked;
    else
        tarn_status_free(looked);
    if (j->status == TARN_OK)
        tarn_log(j->op, TARN_INFO, "table.rolled_back",
                 "table=%s from=%" PRId64 " to=%" PRId64 " tags=%zu", tarn_table_name(j->table),
                 j->out->from, j->out->to, j->out->tag_count);
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
