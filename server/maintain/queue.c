#include "maintain/internal.h"

#include <time.h>

/* The queue: leasing tasks, keeping leases alive, and committing what comes back. */

#define BACK_OFF_MS 1000
#define RESCALE_BACK_OFF_MS 500 /* as a rule it lost to a commit */
#define SWEEP_MS 60000          /* between two looks for tenants and pictures that are forgotten */

static void tick(void *arg);

struct tarn_maintain *tarn_maintain_new(const struct tarn_maintain_options *options)
{
    struct tarn_maintain *m = tarn_calloc(1, sizeof *m);
    m->options = *options;
    m->started_ms = tarn_clock_mono_ms();
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->pictures_lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    m->ended_end = &m->ended;
    m->ids = tarn_map_new();
    m->open_buckets = tarn_map_new();
    tarn_maintain__init_budgets(m);
    m->next_id = 1;
    m->next_token = (tarn_catalog_epoch(options->catalog) << 32) +
                    1; /* tokens of an earlier epoch are smaller */
    m->dirty = tarn_map_new();
    m->checking = tarn_map_new();
    m->cooling = tarn_map_new();
    m->followed = tarn_map_new();
    m->due = tarn_map_new();
    m->tick_every_ms = TARN_MIN(options->check_interval_ms, (int64_t)TARN_TICK_EVERY_MS);
    m->next_round_ms = m->started_ms + options->check_interval_ms;
    m->timer = tarn_timer_new(options->exec, m->tick_every_ms, m->tick_every_ms, tick, m);
    m->clean_timer = tarn_timer_new(options->exec, options->check_interval_ms,
                                    options->check_interval_ms, tarn_maintain__clean_tick, m);
    if (options->expire_automatic)
        m->expire_timer =
            tarn_timer_new(options->exec, options->expire_interval_ms, options->expire_interval_ms,
                           tarn_maintain__expire_tick, m);
    return m;
}

void tarn_maintain__task_free(struct task *task)
{
    tarn_table_unref(task->table);
    tarn_buf_drop(&task->partition);
    tarn_buf_drop(&task->partition_text);
    tarn_arena_free(task->explained);
    free(task->worker);
    free(task->failure);
    free(task);
}

static void free_maps(struct tarn_maintain *m)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(m->dirty, &cursor, NULL, &value) ||
           tarn_map_next(m->checking, &m->checking_at, NULL, &value))
        tarn_table_unref(value);
    tarn_map_free(m->dirty);
    tarn_map_free(m->checking);
    cursor = 0;
    while (tarn_map_next(m->cooling, &cursor, &key, &value))
        free(value);
    tarn_map_free(m->cooling);
    tarn_map_free(m->ids);
    tarn_map_free(m->open_buckets);
    tarn_maintain__sweep_tenants(m, true);
    tarn_map_free(m->tenants);
}

void tarn_maintain_free(struct tarn_maintain *m)
{
    if (m == NULL)
        return;
    pthread_mutex_lock(&m->lock);
    m->stopping = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    tarn_timer_cancel(m->timer);
    tarn_timer_cancel(m->expire_timer);
    tarn_timer_cancel(m->clean_timer);
    tarn_maintain__clean_end(m);
    tarn_maintain__expire_end(m);
    tarn_maintain__follow_end(m);
    for (size_t i = 0; i < m->open_count; i++)
        tarn_maintain__task_free(m->open[i]);
    free(m->open);
    while (m->ended != NULL) {
        struct task *task = m->ended;
        m->ended = task->next;
        tarn_maintain__task_free(task);
    }
    while (m->workers != NULL) {
        struct worker *w = m->workers;
        m->workers = w->next;
        free(w->id);
        free(w->name);
        free(w->address);
        free(w->version);
        free(w);
    }
    free_maps(m);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->pictures_lock);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void tarn_maintain_notice(struct tarn_maintain *m, struct tarn_table *table)
{
    pthread_mutex_lock(&m->lock);
    if (!m->stopping && m->options.expire_automatic)
        tarn_maintain__expire_notice(m, table);
    if (!m->stopping && m->options.automatic)
        tarn_maintain__mark_dirty(m, table);
    pthread_mutex_unlock(&m->lock);
}

bool tarn_maintain__wait(struct tarn_maintain *m, const struct tarn_op *op, int64_t wait_ms)
{
    if (m->stopping || tarn_op_is_cancelled(op))
        return false;
    int64_t ms = TARN_MIN(tarn_op_wait_ms(op, wait_ms),
                          (int64_t)250); /* looks up now and then: is the op over? */
    if (ms <= 0)
        return false;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    tarn_exec_wait_begin();
    pthread_cond_timedwait(&m->changed, &m->lock, &until);
    tarn_exec_wait_end();
    return !m->stopping && !tarn_op_is_cancelled(op);
}

/* --- ends of tasks; the lock is held --- */

static struct tarn_slice id_key(const int64_t *id)
{
    return tarn_slice_of((const uint8_t *)id, sizeof *id);
}

static struct task *find_task(struct tarn_maintain *m, int64_t id)
{
    return tarn_map_find(m->ids, id_key(&id));
}

void tarn_maintain__open(struct tarn_maintain *m, struct task *t)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_GROW(m->open, m->open_count, m->open_capacity);
    t->place = m->open_count;
    m->rescale_count += t->rescale;
    m->open[m->open_count++] = t;
    tarn_map_set(m->ids, id_key(&t->id), t);
    tarn_maintain__bucket_key(t->table, tarn_buf_slice(&t->partition), t->bucket, &key);
    tarn_map_set(m->open_buckets, tarn_buf_slice(&key), t);
    tarn_metric_set(TARN_M_TASKS_QUEUED, NULL, (double)m->open_count);
}

/* From the open ones to those that ended, of which the oldest is forgotten where they are too many. */
static void move_to_ended(struct tarn_maintain *m, struct task *t)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_maintain__bucket_key(t->table, tarn_buf_slice(&t->partition), t->bucket, &key);
    tarn_map_remove(m->open_buckets, tarn_buf_slice(&key));
    tarn_maintain__leave_tenants(t);
    m->rescale_count -= t->rescale;
    m->open[t->place] = m->open[--m->open_count];
    m->open[t->place]->place = t->place;
    tarn_metric_set(TARN_M_TASKS_QUEUED, NULL, (double)m->open_count);
    t->of_database = t->of_table = NULL;
    *m->ended_end = t;
    m->ended_end = &t->next;
    if (++m->ended_count <= TARN_ENDED_TASKS_KEPT)
        return;
    struct task *oldest = m->ended;
    m->ended = oldest->next;
    m->ended_count--;
    tarn_map_remove(m->ids, id_key(&oldest->id));
    tarn_maintain__task_free(oldest);
}

static void leave_worker(struct tarn_maintain *m, struct task *t)
{
    struct worker *w = t->worker == NULL ? NULL : tarn_maintain__worker(m, t->worker);
    if (w != NULL && w->busy > 0)
        w->busy--;
    tarn_maintain__end_running(m, t);
    tarn_metric_add(TARN_M_LEASES, NULL, -1);
}

static void end_task(struct tarn_maintain *m, struct task *t, enum task_state state)
{
    if (state == TASK_DONE &&
        t->full_next) { /* its first half is done; whoever waits for it waits on */
        t->full_next = false;
        t->full = true;
        t->state = TASK_QUEUED;
        t->attempts = 0;
        pthread_cond_broadcast(&m->changed);
        return;
    }
    t->state = state;
    t->ended_ms = tarn_clock_wall_ms();
    tarn_metric_add(TARN_M_COMPACTIONS, state == TASK_DONE ? "done" : "failed", 1);
    if (state == TASK_FAILED) /* not again at once: the same files would fail the same way */
        tarn_maintain__cool(m, t->table, tarn_buf_slice(&t->partition), t->bucket,
                            TARN_COOL_DOWN_MS);
    move_to_ended(m, t);
    pthread_cond_broadcast(&m->changed);
}

/* A broken file is as broken the next time, and a table that was dropped stays so. */
static bool is_final(enum tarn_reason failure)
{
    return failure == TARN_UNSUPPORTED_FEATURE || failure == TARN_TABLE_NOT_FOUND ||
           (failure != TARN_NO_REASON && tarn_reason_code(failure) == TARN_CODE_DATA_LOSS);
}

/* A leased task goes back to the queue, or is given up. */
static void fail_lease(struct tarn_maintain *m, struct task *t, enum tarn_reason reason,
                       const char *failure)
{
    leave_worker(m, t);
    free(t->failure);
    t->failure = tarn_strdup(failure);
    t->token = 0; /* M2: whoever still holds the old one is fenced off */
    tarn_log(NULL, TARN_WARN, "task.failed", "id=%" PRId64 " table=%s attempts=%d error=%s", t->id,
             tarn_log_quote(NULL, tarn_table_name(t->table)), t->attempts,
             tarn_log_quote(NULL, failure));
    int tries_max = t->rescale ? TARN_RESCALE_TRIES_MAX : TARN_TASK_TRIES_MAX;
    if (t->attempts >= tries_max || is_final(reason)) {
        end_task(m, t, TASK_FAILED);
        return;
    }
    t->state = TASK_QUEUED;
    int64_t pause_ms = t->rescale ? RESCALE_BACK_OFF_MS : BACK_OFF_MS << TARN_MIN(t->attempts, 10);
    t->not_before_ms = tarn_clock_mono_ms() + pause_ms;
    pthread_cond_broadcast(&m->changed);
}

void tarn_maintain__take_back(struct tarn_maintain *m, const char *worker_id, const char *failure,
                              bool is_dead)
{
    for (size_t i = m->open_count;
         i-- > 0;) { /* from behind: one that ends is replaced by the last */
        struct task *t = m->open[i];
        if (t->state == TASK_LEASED && t->token > 0 && strcmp(t->worker, worker_id) == 0) {
            tarn_maintain__leave_behind(m, t, is_dead ? 0 : m->options.lease_ms);
            fail_lease(m, t, TARN_NO_REASON, failure);
        }
    }
}

void tarn_maintain_undone(struct tarn_maintain *m, struct tarn_table *table,
                          struct tarn_slice partition, int32_t bucket)
{
    int64_t rest_ms = m->options.undone_rest_ms;
    pthread_mutex_lock(&m->lock);
    tarn_maintain__cool(m, table, partition, bucket, rest_ms);
    struct task *t = tarn_maintain__open_task(m, table, partition, bucket);
    if (t != NULL && t->state == TASK_LEASED && t->token > 0) { /* M2 */
        leave_worker(m, t);
        tarn_maintain__leave_behind(m, t, m->options.lease_ms);
        t->token = 0;
        t->attempts--;
        t->state = TASK_QUEUED;
    }
    if (t != NULL && t->state == TASK_QUEUED)
        t->not_before_ms = TARN_MAX(t->not_before_ms, tarn_clock_mono_ms() + rest_ms);
    pthread_mutex_unlock(&m->lock);
    tarn_log(NULL, TARN_INFO, "maintain.undone", "table=%s bucket=%d rest_ms=%" PRId64,
             tarn_log_quote(NULL, tarn_table_name(table)), bucket, rest_ms);
}

static void take_back_late_leases(struct tarn_maintain *m, int64_t now)
{
    for (size_t i = m->open_count;
         i-- > 0;) { /* from behind: one that ends is replaced by the last */
        struct task *t = m->open[i];
        if (t->state != TASK_LEASED || t->deadline_ms >= now)
            continue;
        tarn_maintain__leave_behind(m, t, m->options.lease_ms);
        fail_lease(m, t, TARN_NO_REASON, "its lease ran out: the worker said nothing in time");
    }
    tarn_maintain__drop_silent_workers(m);
}

/* Each check_interval; until a round is through, which TARN_TICK_MS end, more often. */
static void tick(void *arg)
{
    struct tarn_maintain *m = arg;
    int64_t now = tarn_clock_mono_ms();
    bool goes_on = m->round_goes_on, due = now + m->tick_every_ms / 2 >= m->next_round_ms;
    if (!goes_on && !due)
        return;
    if (due) {
        m->next_round_ms = now + m->options.check_interval_ms;
        pthread_mutex_lock(&m->lock);
        take_back_late_leases(m, now);
        bool sweeps = now >= m->sweep_ms;
        if (sweeps) {
            tarn_maintain__sweep_tenants(m, false);
            m->sweep_ms = now + SWEEP_MS;
        }
        pthread_mutex_unlock(&m->lock);
        if (sweeps)
            tarn_maintain__sweep_followed(m);
    }
    m->round_goes_on = tarn_maintain__check(m, TARN_TICK_MS);
    if (!due)
        return;
    tarn_maintain__measure_lag(m);
    if (m->options.state != NULL)
        tarn_state_tidy(m->options.state);
}

/* --- leasing --- */

static void lease(struct tarn_maintain *m, const struct choice *choice, struct task *t,
                  struct worker *w)
{
    tarn_maintain__keep_decision(m, choice, t);
    t->charged = 0;
    tarn_maintain__charge(m, t, t->bytes);
    tarn_maintain__begin_running(m, t, w);
    t->state = TASK_LEASED;
    t->token = m->next_token++;
    tarn_uuid_random(t->file_uuid);
    t->seen_id = 0;
    t->attempts++;
    t->deadline_ms = tarn_clock_mono_ms() + m->options.lease_ms;
    free(t->worker);
    t->worker = tarn_strdup(w->id);
    w->busy++;
    tarn_metric_add(TARN_M_LEASES, NULL, 1);
}

/* The files that stay: rows of theirs may have been superseded. */
static void take_upper(struct tarn_op *op, const struct tarn_bucket_files *files,
                       const struct tarn_pick *pick, struct tarn_task *out)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *picked = tarn_map_new();
    out->upper = tarn_arena_calloc(op->arena, files->file_count + 1, sizeof *out->upper);
    for (size_t i = 0; i < pick->file_count; i++)
        tarn_map_set(picked, pick->files[i]->file.name, out);
    for (size_t i = 0; i < files->file_count; i++)
        if (tarn_map_find(picked, files->files[i].file.name) == NULL)
            out->upper[out->upper_count++] = files->files[i];
}

/* What the worker will do, from what is live now (M3). *nothing: there is no work left in that bucket. */
static struct tarn_status *fill_task(struct tarn_op *op, struct tarn_catalog *catalog,
                                     struct tarn_table *table, struct tarn_slice partition,
                                     int32_t bucket, bool full, struct tarn_task *out,
                                     struct tarn_explained_pick **explained, bool *nothing)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(op, table, &view));
    TARN_TRY(tarn_options_check_write(&view->options));
    TARN_TRY(tarn_options_check_merge(&view->options));
    struct tarn_bucket_files files;
    out->seen_id = view->has_snapshot ? view->snapshot.id : 0;
    TARN_TRY(tarn_table_bucket(op, table, partition, bucket, &files));
    TARN_TRY(tarn_table_bucket_vectors(op, table, view, &files, &out->indexes, &out->index_count));
    struct tarn_pick pick;
    int64_t local = tarn_maintain__local_ms();
    *nothing =
        !tarn_pick_compaction(&view->schema, &view->options, &files, full, local, op->arena, &pick);
    if (*nothing) /* nor is there any in a table whose folder others removed */
        return tarn_catalog_check_table(op, catalog, table);
    out->partition = partition;
    out->bucket = bucket;
    out->files = tarn_arena_calloc(op->arena, pick.file_count, sizeof *out->files);
    out->file_count = pick.file_count;
    for (size_t i = 0; i < pick.file_count; i++)
        out->files[i] = *pick.files[i];
    out->output_level = pick.output_level;
    out->drop_delete = pick.drop_delete;
    out->why = pick.why;
    if (bucket == TARN_BUCKET_POSTPONE)
        TARN_TRY(tarn_maintain__fill_postponed(table, view, &files, out));
    *explained = tarn_maintain__explain_pick(op->arena, view, &files, full, local);
    out->top_level = pick.top_level;
    out->above = tarn_arena_calloc(op->arena, files.file_count + 1, sizeof *out->above);
    for (size_t i = 0; i < files.file_count; i++)
        if (view->options.changelog_producer == TARN_CHANGELOG_LOOKUP &&
            files.files[i].file.level > pick.output_level)
            out->above[out->above_count++] = files.files[i];
    if (!tarn_schema_is_append(&view->schema) && view->options.deletion_vectors)
        take_upper(op, &files, &pick, out);
    return TARN_OK;
}

/* What it will do is known now, and what it takes of the budgets. */
static void note_filled(struct tarn_maintain *m, struct task *t, const struct tarn_task *filled,
                        const struct tarn_explained_pick *explained)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < filled->file_count; i++)
        bytes += filled->files[i].file.size;
    t->seen_id = filled->seen_id;
    t->why = filled->why;
    t->bytes = bytes;
    t->file_count = (int32_t)filled->file_count;
    t->output_level = filled->output_level;
    tarn_maintain__charge(m, t, bytes - t->charged);
    if (explained != NULL)
        tarn_maintain__keep_pick(t, explained);
}

/* One task for the worker; *got false: none is due. The lock is held, and let go while the bucket is read. */
static struct tarn_status *lease_one(struct tarn_op *op, struct tarn_maintain *m,
                                     const char *worker_id, struct tarn_task *out, bool *got)
{
    *got = false;
    for (;;) {
        struct worker *w = tarn_maintain__worker(m, worker_id);
        if (w == NULL)
            return tarn_status_new(TARN_WORKER_LOST, "worker %s is not registered here", worker_id);
        struct choice choice;
        struct task *t = tarn_maintain__choose(m, w, &choice);
        if (t == NULL)
            return TARN_OK;
        lease(m, &choice, t, w);
        int64_t id = t->id, token = t->token;
        struct tarn_slice partition = tarn_arena_copy(op->arena, tarn_buf_slice(&t->partition));
        int32_t bucket = t->bucket;
        bool full = t->full, rescale = t->rescale, nothing = false;
        const char *file_uuid = tarn_arena_str(op->arena, tarn_slice_str(t->file_uuid));
        *out = (struct tarn_task){.id = id,
                                  .token = token,
                                  .lease_ms = m->options.lease_ms,
                                  .file_uuid = file_uuid,
                                  .table = tarn_table_ref(t->table)};
        struct tarn_explained_pick *explained = NULL;
        pthread_mutex_unlock(&m->lock);
        struct tarn_status *s =
            rescale ? tarn_maintain__fill_rescale(op, out->table, partition, out, &nothing)
                    : fill_task(op, m->options.catalog, out->table, partition, bucket, full, out,
                                &explained, &nothing);
        pthread_mutex_lock(&m->lock);
        if (s == TARN_OK && !nothing) {
            t = find_task(m, id);
            if (t != NULL && t->token == token)
                note_filled(m, t, out, explained);
            *got = true;
            return TARN_OK;
        }
        tarn_table_drop_ref(&out->table);
        t = find_task(m, id);
        if (t != NULL && t->token == token) /* nothing was read */
            tarn_maintain__charge(m, t, -t->charged);
        if (t != NULL && t->token == token && s != TARN_OK)
            fail_lease(m, t, tarn_status_reason(s), tarn_status_message(s));
        else if (t != NULL && t->token == token) {
            leave_worker(m, t);
            end_task(m, t, TASK_DONE);
        }
        tarn_status_free(s);
    }
}

static void seen(struct worker *w)
{
    if (w == NULL)
        return;
    w->seen_ms = tarn_clock_mono_ms();
    w->last_seen_ms = tarn_clock_wall_ms();
}

struct tarn_status *tarn_maintain_poll(struct tarn_op *op, struct tarn_maintain *m,
                                       const char *worker_id, size_t max, int64_t wait_ms,
                                       struct tarn_task **out, size_t *count)
{
    *out = tarn_arena_calloc(op->arena, max + 1, sizeof **out);
    *count = 0;
    int64_t until = tarn_clock_mono_ms() + wait_ms;
    struct tarn_status *s = TARN_OK;
    pthread_mutex_lock(&m->lock);
    seen(tarn_maintain__worker(m, worker_id)); /* once: while we wait it says nothing */
    for (;;) {
        if (tarn_maintain__worker(m, worker_id) == NULL) {
            s = tarn_status_new(TARN_WORKER_LOST, "worker %s is not registered here", worker_id);
            break;
        }
        bool got = true;
        while (s == TARN_OK && got && *count < max) {
            s = lease_one(op, m, worker_id, &(*out)[*count], &got);
            *count += s == TARN_OK && got;
        }
        int64_t left = until - tarn_clock_mono_ms();
        if (s != TARN_OK || *count > 0 || left <= 0 || !tarn_maintain__wait(m, op, left))
            break;
    }
    pthread_mutex_unlock(&m->lock);
    return s;
}

struct tarn_status *tarn_maintain_renew(struct tarn_op *op, struct tarn_maintain *m,
                                        const char *worker_id, const struct tarn_lease_ref *leases,
                                        size_t count, int64_t **lost, size_t *lost_count)
{
    *lost = tarn_arena_calloc(op->arena, count + 1, sizeof **lost);
    *lost_count = 0;
    pthread_mutex_lock(&m->lock);
    seen(tarn_maintain__worker(m, worker_id));
    for (size_t i = 0; i < count; i++) {
        struct task *t = find_task(m, leases[i].task_id);
        if (t != NULL && t->state == TASK_LEASED && t->token == leases[i].token)
            t->deadline_ms = tarn_clock_mono_ms() + m->options.lease_ms;
        else
            (*lost)[(*lost_count)++] = leases[i].task_id;
    }
    pthread_mutex_unlock(&m->lock);
    return TARN_OK;
}

/* --- reports --- */

/* Of a rescale: an overwrite whose DELETEs are given. It is refused where they are not all that there is (conflict.c). */
static struct tarn_status *commit_result(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_report *report,
                                         struct tarn_slice partition, int32_t bucket, bool rescale,
                                         int64_t *snapshot_id)
{
    for (size_t i = 0; i < report->index_count; i++) {
        report->indexes[i].partition = partition;
        report->indexes[i].bucket = bucket;
        report->indexes[i].type = tarn_slice_str(TARN_INDEX_DELETION_VECTORS);
    }
    struct tarn_commit_part part = {
        .entries = report->entries,
        .count = report->entry_count,
        .changelog = report->changelog,
        .changelog_count = report->changelog_count,
        .index = report->indexes,
        .index_count = report->index_count,
    };
    struct tarn_commit commit = {
        .user = tarn_slice_str(TARN_COMPACTION_USER),
        .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
        .watermark = TARN_SNAPSHOT_NONE,
        .base_snapshot_id = TARN_SNAPSHOT_NONE,
        .check_files = true,
    };
    *(rescale ? &commit.append : &commit.compact) = part;
    if (rescale)
        commit.kind = TARN_COMMIT_OVERWRITE;
    struct tarn_commit_result result;
    TARN_TRY(tarn_table_commit(op, table, &commit, &result));
    *snapshot_id = rescale ? result.append_snapshot_id : result.compact_snapshot_id;
    return TARN_OK;
}

/* Checks the lease (M2) and takes a ref of its table; the token is used up, so that a second report of the same
 * lease, sent while the first is being committed, is refused. *done: it was reported before, here is its answer. */
static struct tarn_status *open_report(struct tarn_maintain *m, const char *worker_id,
                                       const struct tarn_report *report, struct tarn_table **table,
                                       bool *done, int64_t *snapshot_id)
{
    struct task *t = find_task(m, report->lease.task_id);
    *done = t != NULL && t->state == TASK_DONE && t->token == report->lease.token;
    if (*done) {
        *snapshot_id = t->snapshot_id;
        return TARN_OK;
    }
    if (t == NULL || t->state != TASK_LEASED || t->token != report->lease.token ||
        t->worker == NULL || strcmp(t->worker, worker_id) != 0)
        return tarn_status_new(TARN_LEASE_LOST,
                               "task %" PRId64 " is not leased to worker %s under token %" PRId64,
                               report->lease.task_id, worker_id, report->lease.token);
    *table = tarn_table_ref(t->table);
    t->deadline_ms = INT64_MAX; /* the commit decides now */
    t->token = -t->token;
    return TARN_OK;
}

static void close_report(struct tarn_maintain *m, const struct tarn_report *report,
                         const struct tarn_status *outcome, int64_t snapshot_id)
{
    struct task *t = find_task(m, report->lease.task_id);
    if (t == NULL || t->state != TASK_LEASED || t->token != -report->lease.token)
        return;
    t->token = report->lease.token;
    if (outcome != TARN_OK) {
        if (tarn_status_reason(outcome) == TARN_COMMIT_CONFLICT) /* its worker may be dead */
            tarn_maintain__leave_behind(m, t, m->options.lease_ms);
        fail_lease(m, t, tarn_status_reason(outcome), tarn_status_message(outcome));
        return;
    }
    leave_worker(m, t);
    t->snapshot_id = snapshot_id;
    t->bytes_rewritten = report->bytes_out;
    t->rows_in = report->rows_in;
    t->rows_out = report->rows_out;
    t->cpu_ns = report->cpu_ns;
    tarn_metric_add(TARN_M_COMPACTED_BYTES, NULL, (double)report->bytes_in);
    end_task(m, t, TASK_DONE);
}

struct tarn_status *tarn_maintain_report(struct tarn_op *op, struct tarn_maintain *m,
                                         const char *worker_id, const struct tarn_report *report,
                                         int64_t *snapshot_id)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf partition = {0};
    int32_t bucket = 0;
    bool done = false, rescale = false;
    *snapshot_id = 0;
    pthread_mutex_lock(&m->lock);
    struct tarn_status *s = open_report(m, worker_id, report, &table, &done, snapshot_id);
    if (s == TARN_OK && !done) {
        tarn_maintain__charge_cpu(m, find_task(m, report->lease.task_id), report->cpu_ns);
        tarn_metric_add(TARN_M_COMPACTION_CPU, NULL, (double)report->cpu_ns / 1e9);
    }
    const struct task *reported = find_task(m, report->lease.task_id);
    if (reported != NULL) {
        tarn_buf_add_slice(&partition, tarn_buf_slice(&reported->partition));
        bucket = reported->bucket;
        rescale = reported->rescale;
    }
    if (s == TARN_OK && !done && report->failure != TARN_NO_REASON) {
        struct task *t = find_task(m, report->lease.task_id);
        t->token = report->lease.token;
        fail_lease(m, t, report->failure, tarn_arena_str(op->arena, report->failure_message));
        done = true;
    }
    pthread_mutex_unlock(&m->lock);
    if (s != TARN_OK || done)
        return s;
    if (report->entry_count > 0 || report->index_count > 0)
        s = commit_result(op, table, report, tarn_buf_slice(&partition), bucket, rescale,
                          snapshot_id);
    tarn_log(op, TARN_INFO, "task.reported",
             "id=%" PRId64 " table=%s snapshot=%" PRId64 " rows_in=%" PRId64 " rows_out=%" PRId64
             " bytes_in=%" PRId64 " bytes_out=%" PRId64 " cpu_ms=%" PRId64 " error=%s",
             report->lease.task_id, tarn_log_quote(op, tarn_table_name(table)), *snapshot_id,
             report->rows_in, report->rows_out, report->bytes_in, report->bytes_out,
             report->cpu_ns / 1000000, tarn_log_quote(op, tarn_status_message(s)));
    pthread_mutex_lock(&m->lock);
    close_report(m, report, s, *snapshot_id);
    pthread_mutex_unlock(&m->lock);
    if (!rescale) /* there may be more to do in it */
        tarn_table_touch(table, tarn_buf_slice(&partition), bucket);
    tarn_maintain_notice(m, table);
    return s;
}

struct tarn_status *tarn_maintain_cancel(struct tarn_op *op, struct tarn_maintain *m, int64_t id)
{
    struct tarn_status *s = TARN_OK;
    pthread_mutex_lock(&m->lock);
    struct task *t = find_task(m, id);
    if (t == NULL || (t->state != TASK_QUEUED && t->state != TASK_LEASED)) {
        s = tarn_status_new(TARN_INVALID_ARGUMENT,
                            "job %" PRId64 " is not queued and does not run; tarn jobs lists them",
                            id);
    } else if (t->state == TASK_LEASED && t->token < 0) {
        s = tarn_status_new(TARN_INVALID_ARGUMENT,
                            "job %" PRId64 " is done, and being committed: too late", id);
    } else {
        if (t->state == TASK_LEASED) {
            tarn_maintain__leave_behind(m, t, m->options.lease_ms);
            leave_worker(m, t);
        }
        t->token = 0; /* M2 */
        t->full_next = false;
        free(t->failure);
        t->failure = tarn_strdup("cancelled");
        tarn_log(op, TARN_INFO, "task.cancelled", "id=%" PRId64 " table=%s", id,
                 tarn_log_quote(op, tarn_table_name(t->table)));
        end_task(m, t, TASK_FAILED);
    }
    pthread_mutex_unlock(&m->lock);
    return s;
}

/* --- looking --- */

static const char *state_name(enum task_state state)
{
    static const char *const names[] = {"queued", "leased", "done", "failed"};
    return names[state];
}

static const char *copy(struct tarn_op *op, const char *text)
{
    return text == NULL ? "" : tarn_arena_str(op->arena, tarn_slice_str(text));
}

static void describe(struct tarn_op *op, struct tarn_maintain *m, const struct choice *choice,
                     struct task *t, struct tarn_job_info *out)
{
    *out = (struct tarn_job_info){.id = t->id,
                                  .table = copy(op, tarn_table_name(t->table)),
                                  .partition = copy(op, tarn_buf_cstr(&t->partition_text)),
                                  .state = state_name(t->state),
                                  .kind = t->rescale ? "rescale" : "compact",
                                  .why = t->why,
                                  .worker = copy(op, t->worker),
                                  .failure = copy(op, t->failure),
                                  .bucket = t->rescale ? -1 : t->bucket,
                                  .file_count = t->file_count,
                                  .output_level = t->output_level,
                                  .attempts = t->attempts,
                                  .bytes = t->bytes,
                                  .created_ms = t->created_ms,
                                  .ended_ms = t->ended_ms,
                                  .snapshot_id = t->snapshot_id,
                                  .bytes_written = t->bytes_rewritten,
                                  .rows_in = t->rows_in,
                                  .rows_out = t->rows_out,
                                  .cpu_ns = t->cpu_ns};
    out->priority = t->state == TASK_QUEUED ? tarn_maintain__priority(m, choice, t)
                    : t->decision != NULL   ? t->decision->score.total
                                            : 0;
}

static int by_id(const void *a, const void *b)
{
    const struct tarn_job_info *l = a, *r = b;
    return l->id < r->id ? -1 : l->id > r->id;
}

struct tarn_status *tarn_maintain_jobs(struct tarn_op *op, struct tarn_maintain *m,
                                       struct tarn_table *table, bool ended, bool explain,
                                       struct tarn_job_info **out, size_t *count)
{
    struct choice choice;
    pthread_mutex_lock(&m->lock);
    tarn_maintain__begin_choice(m, &choice);
    *out = tarn_arena_calloc(op->arena, m->open_count + m->ended_count + 1, sizeof **out);
    *count = 0;
    struct task *next_ended = ended ? m->ended : NULL;
    for (size_t i = 0; i < m->open_count || next_ended != NULL;) {
        struct task *t = i < m->open_count ? m->open[i++] : next_ended;
        if (t == next_ended)
            next_ended = t->next;
        if (table != NULL && t->table != table)
            continue;
        struct tarn_job_info *info = &(*out)[(*count)++];
        describe(op, m, &choice, t, info);
        if (explain)
            tarn_maintain__explain_task(op, m, &choice, t, info);
    }
    pthread_mutex_unlock(&m->lock);
    qsort(*out, *count, sizeof **out, by_id);
    return TARN_OK;
}

static void sum_up(struct tarn_op *op, struct tarn_maintain *m, const int64_t *ids, size_t count,
                   struct tarn_compact_state *out)
{
    memset(out, 0, sizeof *out);
    out->finished = true;
    for (size_t i = 0; i < count; i++) {
        struct task *t = find_task(m, ids[i]);
        if (t == NULL || t->state == TASK_DONE) { /* a task that was forgotten had ended */
            out->done++;
            out->bytes_rewritten += t == NULL ? 0 : t->bytes_rewritten;
            out->last_snapshot_id = TARN_MAX(out->last_snapshot_id, t == NULL ? 0 : t->snapshot_id);
        } else if (t->state == TASK_FAILED) {
            out->failed++;
            if (out->failure == NULL)
                out->failure = copy(op, t->failure);
        } else {
            out->finished = false;
        }
    }
}

struct tarn_status *tarn_maintain_wait(struct tarn_op *op, struct tarn_maintain *m,
                                       const int64_t *ids, size_t count, int64_t wait_ms,
                                       struct tarn_compact_state *out)
{
    struct tarn_compact_state before;
    int64_t until = tarn_clock_mono_ms() + wait_ms;
    pthread_mutex_lock(&m->lock);
    sum_up(op, m, ids, count, &before);
    *out = before;
    while (!out->finished && out->done == before.done && out->failed == before.failed &&
           tarn_clock_mono_ms() < until && tarn_maintain__wait(m, op, until - tarn_clock_mono_ms()))
        sum_up(op, m, ids, count, out);
    pthread_mutex_unlock(&m->lock);
    return tarn_op_check(op);
}
