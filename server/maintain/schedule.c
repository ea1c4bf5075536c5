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

struct task *tarn_maintain__open_task(struct tarn_maintain *m, struct tarn_table *table,
                                      struct tarn_slice partition, int32_t bucket)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_maintain__bucket_key(table, partition, bucket, &key);
    return tarn_map_find(m->open_buckets, tarn_buf_slice(&key));
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

void tarn_maintain__check_backlog(struct tarn_maintain *m, struct tarn_table *table,
                                  struct tarn_backlog *backlog)
{
    if (backlog->advice != TARN_BACKLOG_WAIT)
        return;
    pthread_mutex_lock(&m->lock);
    struct task *t = tarn_maintain__open_task(m, table, backlog->partition, backlog->bucket);
    bool held = t == NULL ? is_cooling(m, table, backlog->partition, backlog->bucket)
                          : t->state == TASK_QUEUED &&
                                tarn_maintain__held_by(m, t, NULL, tarn_clock_mono_ms()) != NULL;
    if (held || m->workers == NULL)
        backlog->advice = TARN_BACKLOG_BEHIND;
    pthread_mutex_unlock(&m->lock);
}

/* What is known of a queued task, made anew when its bucket was looked at again. */
static void describe_wish(struct task *t, const struct wish *wish)
{
    int64_t now = tarn_clock_mono_ms();
    t->why = wish->pick->why;
    t->output_level = wish->pick->output_level;
    t->file_count = wish->file_count;
    t->bytes = wish->inputs.pick_size;
    t->inputs = wish->inputs;
    t->oldest_ms = now - wish->inputs.lag_ms;
}

struct task *tarn_maintain__new_task(struct tarn_maintain *m, struct tarn_table *table,
                                     const struct tarn_schema *schema, struct tarn_slice partition,
                                     int32_t bucket)
{
    struct task *t = tarn_calloc(1, sizeof *t);
    t->id = m->next_id++;
    t->table = tarn_table_ref(table);
    tarn_buf_add_slice(&t->partition, partition);
    tarn_status_free(tarn_partition_print(schema, partition, &t->partition_text));
    t->bucket = bucket;
    t->created_ms = tarn_clock_wall_ms();
    t->since_ms = tarn_clock_mono_ms();
    tarn_maintain__join_tenants(m, t);
    return t;
}

int64_t tarn_maintain__enqueue(struct tarn_maintain *m, struct tarn_table *table,
                               const struct tarn_schema *schema, const struct wish *wish)
{
    struct task *t =
        tarn_maintain__open_task(m, table, wish->bucket->partition, wish->bucket->bucket);
    if (t !=
        NULL) { /* M1: a queued one becomes what is wanted now; a running one goes on in full afterwards */
        if (wish->full && t->state == TASK_LEASED && !t->full)
            t->full_next = true;
        if (t->state == TASK_QUEUED && (wish->full || !t->full)) {
            t->full |= wish->full;
            describe_wish(t, wish);
        }
        t->ordered |= wish->ordered;
        return t->id;
    }
    if (m->open_count >= TARN_QUEUE_MAX)
        return 0;
    t = tarn_maintain__new_task(m, table, schema, wish->bucket->partition, wish->bucket->bucket);
    t->full = wish->full;
    t->ordered = wish->ordered;
    describe_wish(t, wish);
    tarn_maintain__open(m, t);
    pthread_cond_broadcast(&m->changed);
    return t->id;
}

/* --- tables that changed --- */

#define RESTING_MIN_MS 5       /* a look at a bucket that took at least so long … */
#define RESTING_FACTOR 20      /* … isn't repeated before so many times that */
#define FULL_LOOK_MIN_MS 10000 /* between looks at all buckets, where time alone calls for work */

/* A bucket that was found to need compaction, or not: lies in the op's arena. */
struct finding {
    bool needs, again; /* again: it must be looked at later */
    struct tarn_bucket_files bucket;
    struct tarn_pick pick;
    struct wish wish;
};

void tarn_maintain__make_wish(const struct tarn_maintain *m, const struct tarn_table_view *view,
                              const struct tarn_picture *picture,
                              const struct tarn_bucket_files *bucket, const struct tarn_pick *pick,
                              int64_t local_ms, struct wish *out)
{
    *out = (struct wish){.bucket = bucket, .pick = pick, .file_count = (int32_t)pick->file_count};
    tarn_picture_inputs(picture, &view->schema, &view->options, pick, tarn_clock_mono_ms(),
                        local_ms, &out->inputs);
    if (tarn_maintain_is_waited_for(&view->schema, &view->options))
        out->inputs.freshness_ms = m->options.freshness_ms;
}

static void find_need(struct tarn_arena *arena, const struct tarn_maintain *m,
                      const struct tarn_table_view *view, const struct tarn_picture *picture,
                      struct finding *out)
{
    int64_t local = tarn_maintain__local_ms();
    out->needs = out->bucket.file_count > 0 &&
                 tarn_pick_compaction(&view->schema, &view->options, &out->bucket, false, local,
                                      arena, &out->pick);
    if (out->needs)
        tarn_maintain__make_wish(m, view, picture, &out->bucket, &out->pick, local, &out->wish);
}

/* Of runs, each of which stands for some. */
static int32_t picked_files(const struct tarn_picture *picture,
                            const struct tarn_bucket_files *bucket, const struct tarn_pick *pick)
{
    int64_t count = 0;
    for (size_t i = 0; i < pick->file_count; i++)
        count += picture->runs[pick->files[i] - bucket->files].file_count;
    return (int32_t)TARN_MIN(count, INT32_MAX);
}

/* From memory. *known false: it isn't, or its sums say that each of its files must be seen. */
static void find_in_picture(struct tarn_op *op, struct tarn_maintain *m, struct tarn_table *table,
                            const struct tarn_table_view *view,
                            const struct tarn_touched_bucket *at, bool *known, struct finding *out)
{
    pthread_mutex_lock(&m->pictures_lock);
    struct followed *f = tarn_maintain__followed(m, table);
    struct pictured *p = f == NULL ? NULL : tarn_maintain__pictured(f, at->partition, at->bucket);
    *known = p == NULL || (p->known && !tarn_picture_may_need(&p->picture, &view->options));
    if (p != NULL && *known && p->picture.file_count == 0 && p->picture.kind != TARN_PICTURE_SMALL)
        tarn_maintain__drop_picture(m, f, p);
    if (p != NULL && !*known && p->known && p->picture.kind == TARN_PICTURE_RUNS) {
        *known = true;
        tarn_picture_as_bucket(&p->picture, at->partition, at->bucket, op->arena, &out->bucket);
        find_need(op->arena, m, view, &p->picture, out);
        out->wish.file_count = out->needs ? picked_files(&p->picture, &out->bucket, &out->pick) : 0;
        if (!out->needs && m->picture_count > TARN_PICTURES_MAX)
            tarn_maintain__drop_picture(m, f, p);
    }
    if (p != NULL && !*known && p->rest_until_ms > tarn_clock_mono_ms())
        out->again = *known = true;
    pthread_mutex_unlock(&m->pictures_lock);
}

/* From the index. */
static struct tarn_status *find_by_reading(struct tarn_op *op, struct tarn_maintain *m,
                                           struct tarn_table *table,
                                           const struct tarn_table_view *view,
                                           const struct tarn_touched_bucket *at,
                                           struct finding *out)
{
    int64_t begun = tarn_clock_mono_ms();
    struct read_picture read;
    struct tarn_status *s = tarn_maintain__read_picture(op, table, view, at, &read);
    if (s == TARN_OK) {
        out->bucket = read.files;
        find_need(op->arena, m, view, &read.picture, out);
    }
    int64_t now = tarn_clock_mono_ms(), looked = now - begun;
    pthread_mutex_lock(&m->pictures_lock);
    struct followed *f = tarn_maintain__followed(m, table);
    struct pictured *p = f == NULL ? NULL : tarn_maintain__pictured(f, at->partition, at->bucket);
    if (p != NULL && s == TARN_OK) {
        p->rest_until_ms = looked < RESTING_MIN_MS ? 0 : now + looked * RESTING_FACTOR;
        out->again = !tarn_maintain__keep_picture(p, &read);
        if (!out->again && !out->needs && m->picture_count > TARN_PICTURES_MAX)
            tarn_maintain__drop_picture(m, f, p);
    }
    pthread_mutex_unlock(&m->pictures_lock);
    tarn_picture_fini(&read.picture);
    return s;
}

static struct tarn_status *check_bucket(struct tarn_op *op, struct tarn_maintain *m,
                                        struct tarn_table *table,
                                        const struct tarn_table_view *view,
                                        const struct tarn_touched_bucket *at, bool *again)
{
    TARN_OWN(tarn_op_fini) struct tarn_op part;
    tarn_op_init_child(&part, op);
    struct finding found = {0};
    bool known;
    find_in_picture(&part, m, table, view, at, &known, &found);
    if (!known)
        TARN_TRY(find_by_reading(&part, m, table, view, at, &found));
    *again = found.again;
    if (!found.needs)
        return TARN_OK;
    pthread_mutex_lock(&m->lock);
    *again |= is_cooling(m, table, at->partition, at->bucket) ||
              tarn_maintain__enqueue(m, table, &view->schema, &found.wish) == 0;
    pthread_mutex_unlock(&m->lock);
    return TARN_OK;
}

/* Takes the buckets that changed; *all: every one is to be looked at, and *out empty. */
static void take_changed(struct tarn_op *op, struct tarn_maintain *m, struct tarn_table *table,
                         const struct tarn_table_view *view, struct tarn_touched *out)
{
    *out = (struct tarn_touched){0};
    pthread_mutex_lock(&m->pictures_lock);
    struct followed *f = tarn_maintain__followed(m, table); /* view_of took in what commits said */
    if (f == NULL || f->all)
        f = tarn_maintain__absorb(op, m, table);
    out->all = f->all || f->schema_id != view->schema.id;
    f->all = false;
    f->schema_id = view->schema.id;
    f->is_ours = true;
    f->is_waited_for = tarn_maintain_is_waited_for(&view->schema, &view->options);
    f->run_trigger = view->options.run_trigger;
    f->run_stop_trigger = view->options.run_stop_trigger;
    int64_t now = tarn_clock_mono_ms();
    if (out->all)
        tarn_maintain__forget_pictures(m, f);
    else if (view->options.optimization_interval_ms >= 0 && now >= f->full_look_ms) {
        tarn_maintain__all_changed(f);
        f->full_look_ms = now + FULL_LOOK_MIN_MS;
    }
    size_t n = tarn_map_count(f->changed), cursor = 0;
    struct tarn_touched_bucket *list = tarn_arena_calloc(op->arena, n + 1, sizeof *list);
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(f->changed, &cursor, &key, &value)) {
        const struct pictured *p = value;
        list[out->count++] = (struct tarn_touched_bucket){
            .partition = tarn_arena_copy(op->arena, tarn_buf_slice(&p->partition)),
            .bucket = p->bucket};
    }
    tarn_map_free(f->changed);
    f->changed = tarn_map_new();
    out->buckets = list;
    pthread_mutex_unlock(&m->pictures_lock);
}

static void put_back(struct tarn_maintain *m, struct tarn_table *table,
                     const struct tarn_touched_bucket *list, size_t count)
{
    pthread_mutex_lock(&m->pictures_lock);
    struct followed *f = tarn_maintain__followed(m, table);
    for (size_t i = 0; i < count && f != NULL; i++)
        tarn_maintain__look_later(m, f, list[i].partition, list[i].bucket);
    pthread_mutex_unlock(&m->pictures_lock);
}

/* The view that there is where nothing but commits happened: for those nothing is asked of the store. */
static struct tarn_status *view_of(struct tarn_op *op, struct tarn_maintain *m,
                                   struct tarn_table *table, const struct tarn_table_view **out)
{
    pthread_mutex_lock(&m->pictures_lock);
    struct followed *f = tarn_maintain__absorb(op, m, table);
    bool all = f->all;
    f->is_ours = false; /* until that is seen */
    pthread_mutex_unlock(&m->pictures_lock);
    if (all)
        return tarn_table_look(op, table, out);
    *out = tarn_table_last_view(table);
    return TARN_OK;
}

/* Looks at one bucket at least, and at no further one from until_ms on. Only those that commits touched; all where that isn't known, options changed, or time alone may call for
 * work. */
static struct tarn_status *check_table(struct tarn_op *op, struct tarn_maintain *m,
                                       struct tarn_table *table, int64_t until_ms, bool *postponed)
{
    if (!tarn_table_is_compacted(table))
        return TARN_OK; /* its writers do it: of two compactions one would fail */
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(view_of(op, m, table, &view));
    if (view->options.refuse_merge.data != NULL || view->options.refuse_write.data != NULL)
        return TARN_OK; /* listed only: wrong rows are worse than many files */
    if (tarn_maintain_is_of_writers(&view->schema, &view->options))
        return TARN_OK;
    struct tarn_touched touched;
    take_changed(op, m, table, view, &touched);
    while (touched.all) {
        struct tarn_touched_bucket *list;
        struct tarn_status *s = tarn_table_bucket_list(op, table, &list, &touched.count);
        if (s != TARN_OK) {
            tarn_table_touch_all(table);
            return s;
        }
        touched.buckets = list;
        put_back(m, table, list, touched.count);
        take_changed(op, m, table, view, &touched);
    }
    for (size_t i = 0; i < touched.count; i++) {
        bool again = false;
        if (i > 0 && tarn_clock_mono_ms() >= until_ms) { /* the rest when it is its turn again */
            put_back(m, table, touched.buckets + i, touched.count - i);
            *postponed = true;
            break;
        }
        struct tarn_status *s = check_bucket(op, m, table, view, &touched.buckets[i], &again);
        if (s != TARN_OK) {
            tarn_table_touch_all(table);
            return s;
        }
        if (again)
            put_back(m, table, &touched.buckets[i], 1);
        *postponed |= again;
    }
    return TARN_OK;
}

void tarn_maintain__mark_dirty(struct tarn_maintain *m, struct tarn_table *table)
{
    struct tarn_slice uuid = tarn_slice_str(tarn_table_uuid(table));
    if (tarn_map_find(m->dirty, uuid) == NULL)
        tarn_map_set(m->dirty, uuid, tarn_table_ref(table));
}

/* The next table to be looked at, a ref; NULL: all that were noticed before the tick have been. Those of one tick come before those
 * that are noticed meanwhile: a table with work all the time doesn't keep others waiting. */
static struct tarn_table *next_table(struct tarn_maintain *m)
{
    void *table = NULL;
    pthread_mutex_lock(&m->lock);
    tarn_map_next(m->checking, &m->checking_at, NULL, &table);
    pthread_mutex_unlock(&m->lock);
    return table;
}

static void begin_round(struct tarn_maintain *m)
{
    pthread_mutex_lock(&m->lock);
    size_t cursor = m->checking_at;
    if (!tarn_map_next(m->checking, &cursor, NULL, NULL)) { /* else it goes on where it was */
        tarn_map_free(m->checking);
        m->checking = m->dirty;
        m->checking_at = 0;
        m->dirty = tarn_map_new();
    }
    pthread_mutex_unlock(&m->lock);
}

bool tarn_maintain__check(struct tarn_maintain *m, int64_t for_ms)
{
    int64_t until_ms = tarn_clock_mono_ms() + for_ms;
    TARN_OWN(tarn_op_fini) struct tarn_op all;
    tarn_op_init(&all);
    begin_round(m);
    do {
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = next_table(m);
        if (table == NULL)
            return false;
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        tarn_op_init_child(&op, &all);
        bool postponed = false;
        struct tarn_status *s = check_table(&op, m, table, until_ms, &postponed);
        if (tarn_status_reason(s) == TARN_TABLE_NOT_FOUND) { /* dropped meanwhile */
            tarn_maintain_forget(m, table);
            tarn_status_free(s);
            s = TARN_OK;
        }
        tarn_log_status(&op, TARN_WARN, "maintain.check_failed", s);
        if (postponed) {
            pthread_mutex_lock(&m->lock);
            tarn_maintain__mark_dirty(m, table);
            pthread_mutex_unlock(&m->lock);
        }
    } while (tarn_clock_mono_ms() < until_ms);
    return true;
}

/* --- tarn compact --- */

bool tarn_maintain__has_prefix(const struct tarn_schema *schema, struct tarn_slice partition,
                               const struct tarn_value *prefix, size_t count,
                               struct tarn_arena *arena)
{
    if (count == 0)
        return true;
    const struct tarn_type **types = tarn_partition_types(schema, arena);
    struct tarn_value *values =
        tarn_arena_calloc(arena, schema->partition_key_count, sizeof *values);
    struct tarn_status *s =
        tarn_row_deserialize(partition, types, schema->partition_key_count, values);
    bool same = s == TARN_OK;
    tarn_status_free(s);
    for (size_t i = 0; same && i < count; i++)
        same = tarn_value_compare(types[i], &values[i], &prefix[i]) == 0;
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
                                  .kind = "compact",
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

static struct tarn_status *order_bucket(struct tarn_op *op, struct tarn_maintain *m,
                                        const struct tarn_compact_order *order,
                                        const struct tarn_table_view *view,
                                        const struct tarn_bucket_files *bucket,
                                        struct tarn_job_info *out, bool *picked)
{
    struct tarn_pick pick;
    int64_t local = tarn_maintain__local_ms(), id = 0;
    *picked = tarn_pick_compaction(&view->schema, &view->options, bucket, order->full, local,
                                   op->arena, &pick);
    if (!*picked)
        return TARN_OK;
    struct wish wish;
    TARN_OWN(tarn_picture_fini) struct tarn_picture picture;
    tarn_picture_init(&picture, &view->schema, &view->options);
    tarn_picture_add_files(&picture, bucket->files, bucket->file_count, tarn_clock_mono_ms());
    tarn_maintain__make_wish(m, view, &picture, bucket, &pick, local, &wish);
    wish.full = order->full;
    wish.ordered = wish.inputs.ordered = true;
    pthread_mutex_lock(&m->lock);
    if (!order->dry_run)
        id = tarn_maintain__enqueue(m, order->table, &view->schema, &wish);
    if (id != 0) /* who orders it needn't wait for what was put off */
        tarn_maintain__open_task(m, order->table, bucket->partition, bucket->bucket)
            ->not_before_ms = 0;
    describe_pick(op, order->table, &view->schema, bucket, &pick, id, out);
    tarn_maintain__explain_wish(op, m, order->table, &wish, out);
    pthread_mutex_unlock(&m->lock);
    if (id == 0 && !order->dry_run)
        return tarn_status_new(TARN_BUSY, "%d tasks are waiting already", TARN_QUEUE_MAX);
    out->decision->pick = tarn_maintain__explain_pick(op->arena, view, bucket, order->full, local);
    return TARN_OK;
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
        bool picked;
        struct tarn_index_file *indexes;
        size_t index_count;
        if (!tarn_maintain__has_prefix(&view->schema, buckets[i].partition, order->prefix,
                                       order->prefix_count, op->arena))
            continue;
        TARN_TRY(
            tarn_table_bucket_vectors(op, order->table, view, &buckets[i], &indexes, &index_count));
        TARN_TRY(order_bucket(op, m, order, view, &buckets[i], &(*picks)[*count], &picked));
        *count += picked;
    }
    return TARN_OK;
}
