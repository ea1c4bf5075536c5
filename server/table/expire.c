#include "table/expire_internal.h"
#include "table/watch.h"

/*
 * Expiry: rounds of some snapshots each, beside the commits. A round looks first (nothing is locked), then begins in the mailbox: from there on the
 * table's history starts at `end`, for readers here at once, for others by the hint EARLIEST, and only then are files removed: data, what names
 * them, and the snapshots' own files, the oldest first. So nobody meets a snapshot in part; after a crash the rest is found below EARLIEST.
 */

struct expiring {
    struct tarn_op *op;
    struct tarn_table *table;
    const struct tarn_expire_request *request;
    struct tarn_expiry *out;
    struct tarn_retention retention;
    int64_t now_ms;
    int64_t from;      /* below it all is dealt with, or counted */
    int64_t keep_from; /* what pins and consumers hold */
    int64_t round_size;
    const char *kept_by;
};

/* --- one at a time, and never while the folder is rewritten --- */

static struct tarn_status *enter(struct tarn_table *table, struct tarn_op *op)
{
    pthread_mutex_lock(&table->lock);
    bool runs = table->expire_op != NULL;
    if (!runs)
        table->expire_op = op;
    pthread_mutex_unlock(&table->lock);
    return !runs ? TARN_OK
                 : tarn_status_new(TARN_BUSY, "another expiry of table %s is running",
                                   tarn_table_name(table));
}

void tarn_table__expire_release(struct tarn_table *table)
{
    pthread_mutex_lock(&table->lock);
    table->expire_op = NULL;
    pthread_cond_broadcast(&table->news);
    pthread_mutex_unlock(&table->lock);
}

void tarn_table__expire_hold(struct tarn_op *op, struct tarn_table *table)
{
    tarn_exec_wait_begin();
    pthread_mutex_lock(&table->lock);
    while (table->expire_op != NULL) {
        tarn_op_cancel(table->expire_op);
        pthread_cond_wait(&table->news, &table->lock);
    }
    table->expire_op = op;
    pthread_mutex_unlock(&table->lock);
    tarn_exec_wait_end();
}

static void set_removes(struct tarn_table *table, bool removes)
{
    pthread_mutex_lock(&table->lock);
    table->expire_removes = removes;
    pthread_cond_broadcast(&table->news);
    pthread_mutex_unlock(&table->lock);
}

void tarn_table__expire_cancel(struct tarn_table *table)
{
    pthread_mutex_lock(&table->lock);
    if (table->expire_op != NULL)
        tarn_op_cancel(table->expire_op);
    pthread_mutex_unlock(&table->lock);
}

void tarn_table__expire_wait(struct tarn_table *table)
{
    tarn_exec_wait_begin();
    pthread_mutex_lock(&table->lock);
    if (table->expire_op != NULL)
        tarn_op_cancel(table->expire_op);
    while (table->expire_removes)
        pthread_cond_wait(&table->news, &table->lock);
    pthread_mutex_unlock(&table->lock);
    tarn_exec_wait_end();
}

/* --- which --- */

static void keep_below(struct expiring *x, int64_t id, const char *why)
{
    if (id < x->keep_from) {
        x->keep_from = id;
        x->kept_by = why;
    }
}

/* One that can't be read may stand anywhere: nothing is expired then. */
static struct tarn_status *find_holders(struct expiring *x)
{
    struct tarn_consumer *consumers;
    size_t count;
    int64_t pinned, lost_until_ms;
    x->keep_from = INT64_MAX;
    TARN_TRY(tarn_table__pins_lost_until(x->table, &lost_until_ms));
    if (lost_until_ms > tarn_clock_wall_ms())
        keep_below(x, 0, "the daemon's state was lost lately, and readers' pins with it");
    TARN_TRY(tarn_table_keep_from(x->op, x->table, &pinned));
    keep_below(x, pinned, "a reader has pinned it");
    keep_below(x, x->request->keep_from, "a task reads it");
    TARN_TRY(tarn_table__consumers_strict(x->op, x->table, &consumers, &count));
    for (size_t i = 0; i < count; i++)
        if (consumers[i].next_snapshot < x->keep_from)
            keep_below(x, consumers[i].next_snapshot,
                       tarn_arena_printf(x->op->arena, "consumer %.*s reads it next",
                                         TARN_SLICE_ARG(consumers[i].id)));
    return TARN_OK;
}

static struct tarn_status *time_of(struct expiring *x, int64_t id, bool *found, int64_t *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_snapshot snapshot;
    TARN_TRY(tarn_table__indexed_snapshot(x->table, id, found, &json));
    if (!*found)
        return TARN_OK;
    TARN_TRY(tarn_snapshot_decode(tarn_buf_slice(&json), arena, &snapshot));
    *out = snapshot.time_ms;
    return TARN_OK;
}

/* Those from x->from on that go in one round by count and age: [x->from, *end). One goes once the next one is old enough. */
static struct tarn_status *find_end(struct expiring *x, const struct tarn_table_view *view,
                                    int64_t *end)
{
    const struct tarn_retention *r = &x->retention;
    int64_t latest = view->snapshot.id, from = x->from;
    int64_t min = TARN_MAX(latest - r->most + 1, from);
    int64_t least = latest - r->least + 1;
    int64_t round = from <= INT64_MAX - x->round_size ? from + x->round_size : INT64_MAX;
    *end = TARN_MIN(least, round);
    x->kept_by = *end == least ? "it is one of the last that stay in any case" : "";
    x->out->next_ms = INT64_MAX;
    for (int64_t id = min; id < *end; id++) {
        int64_t time_ms = 0;
        bool found;
        TARN_TRY(time_of(x, id + 1, &found, &time_ms));
        if (found && time_ms < x->now_ms - r->time_ms)
            continue;
        *end = id;
        x->kept_by = "the one after it is too young";
        if (found)
            x->out->next_ms =
                time_ms < INT64_MAX - r->time_ms - 1 ? time_ms + r->time_ms + 1 : INT64_MAX;
    }
    *end = TARN_MAX(*end, from);
    return TARN_OK;
}

/* --- the deed --- */

struct begin_job {
    struct tarn_leave *leave;
    int64_t before; /* the earliest until then */
    bool moved;     /* what was looked at isn't any more what there is */
    struct tarn_status *status;
};

static struct tarn_status *is_as_looked_at(struct tarn_leave *leave, int64_t id,
                                           struct tarn_slice json, bool *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf now = {0};
    TARN_TRY(tarn_table__indexed_snapshot(leave->table, id, out, &now));
    *out = *out && tarn_slice_equal(tarn_buf_slice(&now), json);
    return TARN_OK;
}

/* In the mailbox, so that no commit is under way: its files may be any while its outcome isn't known. */
static struct tarn_status *begin_removal(struct begin_job *job)
{
    struct tarn_leave *leave = job->leave;
    struct tarn_table *table = leave->table;
    bool end_stands, head_stands;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_table__settle(leave->op, table));
    TARN_TRY(tarn_table__refresh(leave->op, table));
    job->before = table->view->view.earliest_id;
    TARN_TRY(is_as_looked_at(leave, leave->end, leave->end_json, &end_stands));
    TARN_TRY(is_as_looked_at(leave, leave->head_id, leave->head_json, &head_stands));
    job->moved = !end_stands || !head_stands || job->before > leave->end;
    if (job->moved)
        return TARN_OK;
    TARN_TRY(tarn_leave__keep_indexed(leave, leave->head_id)); /* of commits since */
    TARN_TRY(tarn_table__set_earliest(leave->op, table, leave->end));
    table->expired_below = leave->end;
    set_removes(table, true);
    return TARN_OK;
}

static void run_begin(void *arg)
{
    struct begin_job *job = arg;
    job->status = begin_removal(job);
}

/* Nothing was removed: somebody took hold of one of them before it was said that they go. */
static void run_take_back(void *arg)
{
    struct begin_job *job = arg;
    struct tarn_table *table = job->leave->table;
    if (table->expired_below == job->leave->end) {
        table->expired_below = 0;
        if (table->head != NULL) /* else the next look finds it in the folder */
            job->status = tarn_table__set_earliest(job->leave->op, table, job->before);
    }
    set_removes(table, false);
}

static void run_forget(void *arg)
{
    struct begin_job *job = arg;
    struct tarn_leave *leave = job->leave;
    struct tarn_table *table = leave->table;
    if (table->expired_below != leave->end || table->view->view.earliest_id < leave->end)
        return; /* others rewrote it meanwhile */
    job->status = tarn_table__index_forget_below(leave->op, table, leave->end);
    table->expired_below = 0; /* the folder says it */
    if (job->status == TARN_OK)
        job->status = tarn_table__receipts_forget(table, leave->end);
}

/* After it was said that they go: who takes hold of one since then is refused; who did before is seen here. */
static struct tarn_status *is_free(struct expiring *x, struct tarn_leave *leave, bool *out)
{
    TARN_TRY(find_holders(x));
    TARN_TRY(tarn_leave__check_refs(leave, out));
    *out = *out && x->keep_from >= leave->end;
    return TARN_OK;
}

#define REMOVE_AT_ONCE 1000
#define REMOVE_SNAPSHOTS_AT_ONCE 100 /* in order: what is left has no gaps */

struct keys {
    const char **list;
    size_t count, capacity;
};

static void keys_fini(struct keys *k)
{
    free(k->list);
}

static void add_key(struct keys *k, const char *key)
{
    TARN_GROW(k->list, k->count, k->capacity);
    k->list[k->count++] = key;
}

static void take_kind(struct tarn_map *files, enum tarn_leaving_kind kind, struct keys *keys)
{
    size_t cursor = 0;
    struct tarn_slice name;
    void *value;
    while (tarn_map_next(files, &cursor, &name, &value)) {
        const struct tarn_leaving *l = value;
        if (l->kept || l->kind != kind || l->key == NULL)
            continue;
        add_key(keys, l->key);
        for (size_t i = 0; i < l->extra_count; i++)
            add_key(keys, l->extra_keys[i]);
    }
}

static struct tarn_status *remove_keys(struct tarn_leave *leave, const struct keys *keys,
                                       size_t at_once)
{
    for (size_t i = 0; i < keys->count; i += at_once) {
        TARN_TRY(tarn_op_check(leave->op));
        TARN_TRY(tarn_store_remove_many(leave->table->env->store, leave->op, keys->list + i,
                                        TARN_MIN(at_once, keys->count - i)));
    }
    return TARN_OK;
}

/* All of a kind before the next: what names a file goes after it, so that it can be found again. */
static struct tarn_status *remove_files(struct tarn_leave *leave)
{
    for (int kind = 0; kind < TARN_LEAVING_KINDS; kind++) {
        TARN_OWN(keys_fini) struct keys keys = {0};
        take_kind(leave->files, (enum tarn_leaving_kind)kind, &keys);
        take_kind(leave->meta, (enum tarn_leaving_kind)kind, &keys);
        TARN_TRY(remove_keys(leave, &keys, REMOVE_AT_ONCE));
    }
    TARN_OWN(keys_fini) struct keys snapshots = {0};
    for (int64_t id = leave->begin; id < leave->end; id++)
        add_key(&snapshots,
                tarn_table__key(leave->op, leave->table, "snapshot/snapshot-%" PRId64, id));
    return remove_keys(leave, &snapshots, REMOVE_SNAPSHOTS_AT_ONCE);
}

static struct tarn_status *call(struct tarn_leave *leave, tarn_job_fn fn, struct begin_job *job)
{
    job->status = TARN_OK;
    tarn_mailbox_call(leave->table->mailbox, fn, job);
    return job->status;
}

static void expire_pages(struct tarn_table *table, int64_t earliest)
{
    pthread_mutex_lock(&table->index_lock);
    tarn_table__pages_expire(table, earliest);
    pthread_mutex_unlock(&table->index_lock);
}

/* *done false: it is to be looked at anew. */
static struct tarn_status *remove_round(struct expiring *x, struct tarn_leave *leave, bool *done)
{
    struct tarn_table *table = leave->table;
    struct begin_job job = {.leave = leave};
    bool is_ours = false;
    *done = false;
    TARN_TRY(call(leave, run_begin, &job));
    if (job.moved)
        return TARN_OK;
    struct tarn_status *s = is_free(x, leave, &is_ours);
    if (s == TARN_OK && is_ours)
        s = tarn_table__put_hint(leave->op, table, "EARLIEST", leave->end);
    if (s != TARN_OK || !is_ours) {
        tarn_log_status(leave->op, TARN_WARN, "table.expire_failed",
                        call(leave, run_take_back, &job));
        return s;
    }
    table->expire_clean = false;
    expire_pages(table, leave->end); /* before: plans of them must not find half */
    s = remove_files(leave);
    set_removes(table, false);
    TARN_TRY(s);
    table->expire_clean = true;
    *done = true;
    return call(leave, run_forget, &job);
}

/* --- a round --- */

static void count_map(const struct tarn_map *files, struct tarn_expiry *out)
{
    size_t cursor = 0;
    struct tarn_slice name;
    void *value;
    int64_t *counts[TARN_LEAVING_KINDS] = {
        [TARN_LEAVING_DATA] = &out->data_file_count,
        [TARN_LEAVING_CHANGELOG] = &out->changelog_file_count,
        [TARN_LEAVING_MANIFEST] = &out->manifest_count,
        [TARN_LEAVING_LIST] = &out->manifest_count,
        [TARN_LEAVING_INDEX] = &out->index_file_count,
        [TARN_LEAVING_STATISTICS] = &out->statistics_count,
    };
    while (tarn_map_next(files, &cursor, &name, &value)) {
        const struct tarn_leaving *l = value;
        if (l->kept)
            continue;
        if (l->key == NULL) {
            out->outside_count++;
            continue;
        }
        (*counts[l->kind])++;
        if (l->kind == TARN_LEAVING_DATA)
            out->data_byte_count += l->size;
    }
}

static void tell(struct expiring *x, const struct tarn_leave *leave,
                 const struct tarn_expiry *before)
{
    const struct tarn_expiry *now = x->out;
    int64_t files = now->data_file_count - before->data_file_count;
    tarn_metric_add(TARN_M_SNAPSHOTS_EXPIRED, NULL, leave->end - leave->begin);
    tarn_metric_add(TARN_M_FILES_EXPIRED, NULL,
                    files + now->changelog_file_count - before->changelog_file_count);
    tarn_log(x->op, TARN_INFO, "table.expired",
             "table=%s from=%" PRId64 " to=%" PRId64 " data_files=%" PRId64 " bytes=%" PRId64
             " manifests=%" PRId64 " outside=%" PRId64,
             tarn_log_quote(x->op, tarn_table_name(x->table)), leave->begin, leave->end - 1, files,
             now->data_byte_count - before->data_byte_count,
             now->manifest_count - before->manifest_count,
             now->outside_count - before->outside_count);
}

static void count_round(struct expiring *x, const struct tarn_leave *leave)
{
    struct tarn_expiry before = *x->out;
    x->out->from = before.from == before.to ? leave->begin : before.from;
    x->out->to = leave->end;
    x->out->snapshot_count += leave->end - leave->begin;
    count_map(leave->files, x->out);
    count_map(leave->meta, x->out);
    if (!x->request->dry_run)
        tell(x, leave, &before);
    x->from = leave->end;
}

static struct tarn_status *keep_json(struct tarn_leave *leave, int64_t id, struct tarn_slice *out)
{
    struct tarn_snapshot snapshot;
    bool found;
    TARN_TRY(tarn_leave__snapshot(leave, leave->op, id, &found, &snapshot));
    *out = snapshot.json;
    return TARN_OK;
}

static void leave_fini(struct tarn_leave *leave)
{
    tarn_map_free(leave->files);
    tarn_map_free(leave->meta);
    tarn_map_free(leave->seen);
}

static struct tarn_status *run_round(struct expiring *x, struct tarn_op *op,
                                     const struct tarn_table_view *view, int64_t begin, int64_t end,
                                     bool *done)
{
    TARN_OWN(leave_fini)
    struct tarn_leave leave = {.op = op,
                               .table = x->table,
                               .view = view,
                               .begin = begin,
                               .end = end,
                               .head_id = view->snapshot.id,
                               .files = tarn_map_new(),
                               .meta = tarn_map_new(),
                               .seen = tarn_map_new()};
    TARN_TRY(keep_json(&leave, leave.head_id, &leave.head_json));
    TARN_TRY(tarn_leave__collect(&leave));
    TARN_TRY(keep_json(&leave, leave.end, &leave.end_json));
    TARN_TRY(tarn_leave__keep(&leave));
    *done = true;
    if (!x->request->dry_run)
        TARN_TRY(remove_round(x, &leave, done));
    if (*done)
        count_round(x, &leave);
    return TARN_OK;
}

/* *begin == *end: there is nothing more. */
static struct tarn_status *find_round(struct expiring *x, const struct tarn_table_view *view,
                                      int64_t *begin, int64_t *end)
{
    bool is_first = !x->request->dry_run || x->from == 0;
    if (is_first)
        x->from = view->earliest_id;
    *begin = x->from;
    TARN_TRY(find_end(x, view, end));
    if (*end > x->from) {
        const char *why = x->kept_by;
        TARN_TRY(find_holders(x));
        x->out->is_held = x->keep_from < *end;
        if (!x->out->is_held)
            x->kept_by = why;
        *end = TARN_MAX(TARN_MIN(*end, x->keep_from), x->from);
    }
    return is_first ? tarn_expire__find_leftover(x->op, x->table, x->from, *end > x->from, begin)
                    : TARN_OK;
}

#define ANEW_MAX 5

static struct tarn_status *run_rounds(struct expiring *x)
{
    for (int anew = 0; anew < ANEW_MAX;) {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        tarn_op_init_child(&op, x->op);
        TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
        TARN_OWN(tarn_table__leave)
        TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(x->table);
        int64_t begin, end;
        bool done;
        TARN_TRY(tarn_op_check(&op));
        TARN_TRY(tarn_table_look(&op, x->table, &view));
        if (!view->has_snapshot)
            return TARN_OK;
        TARN_TRY(find_round(x, view, &begin, &end));
        if (begin == end) {
            x->out->kept_by = tarn_arena_str(x->op->arena, tarn_slice_str(x->kept_by));
            return TARN_OK;
        }
        TARN_TRY(run_round(x, &op, view, begin, end, &done));
        anew += !done;
    }
    return tarn_status_new(TARN_BUSY,
                           "tags, branches or readers of table %s change all the time, try again",
                           tarn_table_name(x->table));
}

/* --- what is asked --- */

/* Changelogs that outlive their snapshots name files of those, and this version doesn't keep them. */
static struct tarn_status *check_changelogs(struct expiring *x)
{
    struct tarn_named *named;
    size_t count;
    const char *option = x->retention.longer_changelog;
    if (option != NULL)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "table %s keeps changelogs longer than snapshots (%s): this version "
                               "doesn't expire such a table",
                               tarn_table_name(x->table), option);
    TARN_TRY(tarn_table__list_named(x->op, x->table, "changelog", "changelog-", &named, &count));
    return count == 0 ? TARN_OK
                      : tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                                        "table %s has changelogs that outlived their snapshots "
                                        "(changelog/): this version doesn't expire such a table",
                                        tarn_table_name(x->table));
}

static struct tarn_status *read_request(struct expiring *x, const struct tarn_schema *schema)
{
    const struct tarn_expire_request *q = x->request;
    struct tarn_retention *r = &x->retention;
    bool has_count = q->keep_last != TARN_EXPIRE_OPTION,
         has_age = q->older_than_ms != TARN_EXPIRE_OPTION;
    if (has_count && q->keep_last < 1)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "%" PRId64 " snapshots can't be kept: at least the latest one stays",
                               q->keep_last);
    if (has_age && q->older_than_ms < 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "an age of %" PRId64 " ms", q->older_than_ms);
    TARN_TRY(tarn_retention_parse(schema, r));
    if (has_count)
        r->least = q->keep_last;
    if (has_count && !has_age)
        r->most = q->keep_last;
    if (has_age)
        r->time_ms = q->older_than_ms;
    r->most = TARN_MAX(r->most, r->least);
    x->now_ms = q->now_ms != 0 ? q->now_ms : tarn_clock_wall_ms();
    x->round_size = TARN_EXPIRE_ROUND;
    struct tarn_slice limit = tarn_schema_option(schema, "snapshot.expire.limit");
    if (limit.data != NULL)
        tarn_status_free(
            tarn_parse_i64(limit, &x->round_size)); /* no number: as if it wasn't said */
    x->round_size = TARN_MAX(x->round_size, (int64_t)1);
    return TARN_OK;
}

static struct tarn_status *expire(struct expiring *x)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(x->op, x->table, &view));
    TARN_TRY(read_request(x, &view->schema));
    TARN_TRY(check_changelogs(x));
    return run_rounds(x);
}

struct tarn_status *tarn_table_expire(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_expire_request *request,
                                      struct tarn_expiry *out)
{
    TARN_OWN(tarn_op_fini) struct tarn_op own; /* cancelled from outside */
    tarn_op_init_child(&own, op);
    struct expiring x = {.op = &own, .table = table, .request = request, .out = out};
    *out = (struct tarn_expiry){.kept_by = "", .next_ms = INT64_MAX};
    TARN_TRY(enter(table, &own));
    struct tarn_status *s = expire(&x);
    tarn_table__expire_release(table);
    out->kept_by = tarn_arena_str(op->arena, tarn_slice_str(out->kept_by));
    if (tarn_status_reason(s) != TARN_CANCELLED || tarn_op_is_cancelled(op))
        return s;
    tarn_status_free(s);
    return tarn_status_new(TARN_BUSY, "the history of table %s is rewritten, or the table moved",
                           tarn_table_name(table));
}
