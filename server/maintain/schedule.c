#include "maintain/internal.h"

#include <time.h>

/* From pictures of buckets to queued tasks: of tables that changed, and of those that `tarn compact` names. */

int64_t tarn_maintain__local_ms(void)
{
    int64_t now = tarn_clock_wall_ms();
    time_t seconds = (time_t)(now / 1000);
    struct tm local;
    localtime_r(&seconds, &local);
    return now + (int64_t)local.tm_gmtoff * 1000;
}

void tarn_maintain__bucket_key(struct tarn_table *table, struct tarn_slice partition,
                               int32_t bucket, struct tarn_buf *key)
{
    tarn_buf_add_str(key, tarn_table_uuid(table));
    tarn_key_add_bytes(key, partition);
    tarn_key_add_i64(key, bucket);
}

/* More sorted runs to merge at each read, the sooner; `tarn compact` before everything. */
static double priority_of(const struct tarn_options *options,
                          const struct tarn_bucket_files *bucket, bool ordered)
{
    double runs = tarn_run_count(bucket->files, bucket->file_count);
    return (ordered ? 1000 : 0) + runs / TARN_MAX(options->run_trigger, 1);
}

struct task *tarn_maintain__open_task(struct tarn_maintain *m, struct tarn_table *table,
                                      struct tarn_slice partition, int32_t bucket)
{
    for (struct task *t = m->tasks; t != NULL; t = t->next)
        if ((t->state == TASK_QUEUED || t->state == TASK_LEASED) && t->table == table &&
            t->bucket == bucket && tarn_slice_equal(tarn_buf_slice(&t->partition), partition))
            return t;
    return NULL;
}

static bool is_cooling(struct tarn_maintain *m, struct tarn_table *table,
                       struct tarn_slice partition, int32_t bucket)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_maintain__bucket_key(table, partition, bucket, &key);
    int64_t *until = tarn_map_find(m->cooling, tarn_buf_slice(&key));
    if (until == NULL)
        return false;
    if (*until > tarn_clock_mono_ms())
        return true;
    free(tarn_map_remove(m->cooling, tarn_buf_slice(&key)));
    return false;
}

void tarn_maintain__cool(struct tarn_maintain *m, struct tarn_table *table,
                         struct tarn_slice partition, int32_t bucket, int64_t for_ms)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_maintain__bucket_key(table, partition, bucket, &key);
    int64_t *until = tarn_map_find(m->cooling, tarn_buf_slice(&key));
    if (until == NULL) {
        until = tarn_calloc(1, sizeof *until);
        tarn_map_set(m->cooling, tarn_buf_slice(&key), until);
    }
    *until = TARN_MAX(*until, tarn_clock_mono_ms() + for_ms);
}

int64_t tarn_maintain__enqueue(struct tarn_maintain *m, struct tarn_table *table,
                               const struct tarn_schema *schema,
                               const struct tarn_bucket_files *bucket, const struct tarn_pick *pick,
                               bool full)
{
    struct task *t = tarn_maintain__open_task(m, table, bucket->partition, bucket->bucket);
    if (t !=
        NULL) { /* M1: a queued one becomes what is wanted now; a running one goes on in full afterwards */
        if (full && t->state == TASK_QUEUED)
            t->full = true;
        if (full && t->state == TASK_LEASED && !t->full)
            t->full_next = true;
        return t->id;
    }
    if (m->open_count >= TARN_QUEUE_MAX)
        return 0;
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_options options;
    struct tarn_status *s = tarn_options_parse(schema, arena, &options);
    t = tarn_calloc(1, sizeof *t);
    t->priority = s == TARN_OK ? priority_of(&options, bucket, full) : 0;
    tarn_status_free(s);
    t->id = m->next_id++;
    t->table = tarn_table_ref(table);
    tarn_buf_add_slice(&t->partition, bucket->partition);
    tarn_status_free(tarn_partition_print(schema, bucket->partition, &t->partition_text));
    t->bucket = bucket->bucket;
    t->full = full;
    t->why = pick->why;
    t->file_count = (int32_t)pick->file_count;
    t->output_level = pick->output_level;
    for (size_t i = 0; i < pick->file_count; i++)
        t->bytes += pick->files[i]->file.size;
    t->created_ms = tarn_clock_wall_ms();
    *m->tasks_end = t;
    m->tasks_end = &t->next;
    m->open_count++;
    tarn_metric_set(TARN_M_TASKS_QUEUED, NULL, (double)m->open_count);
    pthread_cond_broadcast(&m->changed);
    return t->id;
}

/* --- tables that changed --- */

#define UNAWARE_FILES_MAX 20000 /* of a partition without buckets: more than one pick takes */
#define RESTING_MIN_MS 5        /* a look at a bucket that took at least so long … */
#define RESTING_FACTOR 20       /* … isn't repeated before so many times that */
#define FULL_LOOK_MIN_MS 10000  /* between looks at all buckets, where time alone calls for work */

/* What is known of a table that is followed; of the thread that checks. */
struct followed {
    int64_t schema_id;
    int64_t full_look_ms; /* monotonic: not before */
};

static struct followed *followed_of(struct tarn_maintain *m, struct tarn_table *table)
{
    struct tarn_slice uuid = tarn_slice_str(tarn_table_uuid(table));
    struct followed *f = tarn_map_find(m->followed, uuid);
    if (f == NULL) {
        f = tarn_calloc(1, sizeof *f);
        f->schema_id = -1;
        tarn_map_set(m->followed, uuid, f);
    }
    return f;
}

static void rest(struct tarn_maintain *m, struct tarn_slice bucket_key, int64_t looked_ms)
{
    if (looked_ms < RESTING_MIN_MS)
        return;
    int64_t *until = tarn_alloc(sizeof *until);
    *until = tarn_clock_mono_ms() + looked_ms * RESTING_FACTOR;
    free(tarn_map_set(m->resting, bucket_key, until));
}

static bool is_resting(struct tarn_maintain *m, struct tarn_slice bucket_key)
{
    int64_t *until = tarn_map_find(m->resting, bucket_key);
    if (until == NULL || *until > tarn_clock_mono_ms())
        return until != NULL;
    free(tarn_map_remove(m->resting, bucket_key));
    return false;
}

/* *again: the bucket must be looked at later. */
static struct tarn_status *check_bucket(struct tarn_op *op, struct tarn_maintain *m,
                                        struct tarn_table *table,
                                        const struct tarn_table_view *view,
                                        const struct tarn_touched_bucket *at, bool *again)
{
    TARN_OWN(tarn_op_fini) struct tarn_op part;
    tarn_op_init_child(&part, op);
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_maintain__bucket_key(table, at->partition, at->bucket, &key);
    *again = is_resting(m, tarn_buf_slice(&key));
    if (*again)
        return TARN_OK;
    int64_t begun = tarn_clock_mono_ms();
    bool unaware = tarn_schema_is_append(&view->schema) && view->options.bucket < 0;
    struct tarn_bucket_files bucket;
    struct tarn_pick pick;
    TARN_TRY(
        tarn_table_bucket_picture(&part, table, at->partition, at->bucket,
                                  unaware ? tarn_maintain__small_limit(&view->options) : INT64_MAX,
                                  unaware ? UNAWARE_FILES_MAX : SIZE_MAX, &bucket));
    bool picked =
        bucket.file_count > 0 && tarn_pick_compaction(&view->schema, &view->options, &bucket, false,
                                                      tarn_maintain__local_ms(), part.arena, &pick);
    rest(m, tarn_buf_slice(&key), tarn_clock_mono_ms() - begun);
    if (!picked)
        return TARN_OK;
    pthread_mutex_lock(&m->lock);
    *again = is_cooling(m, table, at->partition, at->bucket) ||
             tarn_maintain__enqueue(m, table, &view->schema, &bucket, &pick, false) == 0;
    pthread_mutex_unlock(&m->lock);
    return TARN_OK;
}

/* Only the buckets that commits touched; all where that isn't known, options changed, or time alone may call for
 * work. */
static struct tarn_status *check_table(struct tarn_op *op, struct tarn_maintain *m,
                                       struct tarn_table *table, bool *postponed)
{
    if (!tarn_table_is_compacted(table))
        return TARN_OK; /* its writers do it: of two compactions one would fail */
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(op, table, &view));
    if (view->options.refuse_merge.data != NULL || view->options.refuse_write.data != NULL)
        return TARN_OK; /* listed only: wrong rows are worse than many files */
    if (tarn_maintain_is_of_writers(&view->schema, &view->options))
        return TARN_OK;
    struct followed *f = followed_of(m, table);
    struct tarn_touched touched;
    int64_t begun = tarn_clock_mono_ms();
    tarn_table_take_touched(op, table, &touched);
    bool all = touched.all || f->schema_id != view->schema.id ||
               (view->options.optimization_interval_ms >= 0 && begun >= f->full_look_ms);
    if (all) {
        struct tarn_touched_bucket *list;
        TARN_TRY(tarn_table_bucket_list(op, table, &list, &touched.count));
        touched.buckets = list;
    }
    f->schema_id = view->schema.id;
    for (size_t i = 0; i < touched.count; i++) {
        bool again = false;
        struct tarn_status *s = check_bucket(op, m, table, view, &touched.buckets[i], &again);
        if (s != TARN_OK) {
            tarn_table_touch_all(table);
            return s;
        }
        if (again)
            tarn_table_touch(table, touched.buckets[i].partition, touched.buckets[i].bucket);
        *postponed |= again;
    }
    int64_t now = tarn_clock_mono_ms();
    if (all)
        f->full_look_ms = now + TARN_MAX((now - begun) * RESTING_FACTOR, FULL_LOOK_MIN_MS);
    return TARN_OK;
}

static struct tarn_table *take_dirty(struct tarn_maintain *m)
{
    pthread_mutex_lock(&m->lock);
    size_t cursor = 0;
    struct tarn_slice uuid;
    void *table = NULL;
    if (tarn_map_next(m->dirty, &cursor, &uuid, &table))
        tarn_map_remove(m->dirty, uuid);
    pthread_mutex_unlock(&m->lock);
    return table;
}

void tarn_maintain__check(struct tarn_maintain *m)
{
    struct tarn_table **later = NULL; /* with buckets that rest */
    size_t later_count = 0, later_capacity = 0;
    for (;;) {
        struct tarn_table *table = take_dirty(m);
        if (table == NULL)
            break;
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        tarn_op_init(&op);
        bool postponed = false;
        struct tarn_status *s = check_table(&op, m, table, &postponed);
        if (tarn_status_reason(s) == TARN_TABLE_NOT_FOUND) { /* dropped meanwhile */
            free(tarn_map_remove(m->followed, tarn_slice_str(tarn_table_uuid(table))));
            tarn_status_free(s);
            s = TARN_OK;
        }
        tarn_log_status(&op, TARN_WARN, "maintain.check_failed", s);
        TARN_GROW(later, later_count, later_capacity);
        later[later_count++] = table;
        if (!postponed)
            tarn_table_drop_ref(&later[--later_count]);
    }
    for (size_t i = 0; i < later_count; i++) {
        tarn_maintain_notice(m, later[i]);
        tarn_table_unref(later[i]);
    }
    free(later);
}

/* --- tarn compact --- */

static bool has_prefix(const struct tarn_schema *schema, struct tarn_slice partition,
                       const struct tarn_compact_order *order, struct tarn_arena *arena)
{
    if (order->prefix_count == 0)
        return true;
    const struct tarn_type **types = tarn_partition_types(schema, arena);
    struct tarn_value *values =
        tarn_arena_calloc(arena, schema->partition_key_count, sizeof *values);
    struct tarn_status *s =
        tarn_row_deserialize(partition, types, schema->partition_key_count, values);
    bool same = s == TARN_OK;
    tarn_status_free(s);
    for (size_t i = 0; same && i < order->prefix_count; i++)
        same = tarn_value_compare(types[i], &values[i], &order->prefix[i]) == 0;
    return same;
}

static void describe_pick(struct tarn_op *op, struct tarn_table *table,
                          const struct tarn_schema *schema, const struct tarn_bucket_files *bucket,
                          const struct tarn_pick *pick, int64_t id, struct tarn_job_info *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_status_free(tarn_partition_print(schema, bucket->partition, &text));
    *out = (struct tarn_job_info){.id = id,
                                  .bucket = bucket->bucket,
                                  .file_count = (int32_t)pick->file_count,
                                  .output_level = pick->output_level,
                                  .why = pick->why,
                                  .state = id == 0 ? "planned" : "queued",
                                  .worker = "",
                                  .failure = ""};
    out->table = tarn_arena_str(op->arena, tarn_slice_str(tarn_table_name(table)));
    out->partition = tarn_arena_str(op->arena, tarn_buf_slice(&text));
    out->created_ms = tarn_clock_wall_ms();
    for (size_t i = 0; i < pick->file_count; i++)
        out->bytes += pick->files[i]->file.size;
}

struct tarn_status *tarn_maintain_compact(struct tarn_op *op, struct tarn_maintain *m,
                                          const struct tarn_compact_order *order,
                                          struct tarn_job_info **picks, size_t *count)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(op, order->table, &view));
    TARN_TRY(tarn_options_check_write(&view->options));
    TARN_TRY(tarn_options_check_merge(&view->options));
    if (order->prefix_count > view->schema.partition_key_count)
        return tarn_status_new(
            TARN_INVALID_ARGUMENT, "table %s has %zu partition keys, %zu values were given",
            tarn_table_name(order->table), view->schema.partition_key_count, order->prefix_count);
    struct tarn_bucket_files *buckets;
    size_t bucket_count;
    TARN_TRY(tarn_table_buckets(op, order->table, tarn_slice_str(NULL), &buckets, &bucket_count));
    *picks = tarn_arena_calloc(op->arena, bucket_count + 1, sizeof **picks);
    *count = 0;
    for (size_t i = 0; i < bucket_count; i++) {
        struct tarn_pick pick;
        if (!has_prefix(&view->schema, buckets[i].partition, order, op->arena) ||
            !tarn_pick_compaction(&view->schema, &view->options, &buckets[i], order->full,
                                  tarn_maintain__local_ms(), op->arena, &pick))
            continue;
        int64_t id = 0;
        if (!order->dry_run) {
            pthread_mutex_lock(&m->lock);
            id = tarn_maintain__enqueue(m, order->table, &view->schema, &buckets[i], &pick,
                                        order->full);
            if (id != 0) /* who orders it needn't wait for what was put off */
                tarn_maintain__open_task(m, order->table, buckets[i].partition, buckets[i].bucket)
                    ->not_before_ms = 0;
            pthread_mutex_unlock(&m->lock);
            if (id == 0)
                return tarn_status_new(TARN_BUSY, "%d tasks are waiting already", TARN_QUEUE_MAX);
        }
        describe_pick(op, order->table, &view->schema, &buckets[i], &pick, id,
                      &(*picks)[(*count)++]);
    }
    return TARN_OK;
}
