#include "maintain/internal.h"

/*
 * Pictures of buckets, kept up by what commits say of themselves (tarn_table_take_touched). A bucket is read only where its picture isn't
 * known: when a table is followed for the first time, where its schema changed, and where what happened wasn't said. What changed while a
 * picture was being read is told by stamps: at or below `from` it is in the picture, above `to` it isn't, between them nobody knows.
 */

static void pictured_free(struct tarn_maintain *m, struct pictured *p)
{
    m->picture_count--;
    tarn_picture_fini(&p->picture);
    tarn_buf_drop(&p->partition);
    free(p);
}

static void followed_free(struct tarn_maintain *m, struct followed *f)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *p;
    while (tarn_map_next(f->buckets, &cursor, &key, &p))
        pictured_free(m, p);
    tarn_map_free(f->buckets);
    tarn_map_free(f->changed);
    free(f);
}

void tarn_maintain__follow_end(struct tarn_maintain *m)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *f;
    while (tarn_map_next(m->followed, &cursor, &key, &f))
        followed_free(m, f);
    tarn_map_free(m->followed);
}

struct followed *tarn_maintain__followed(struct tarn_maintain *m, struct tarn_table *table)
{
    return tarn_map_find(m->followed, tarn_slice_str(tarn_table_uuid(table)));
}

static struct followed *follow(struct tarn_maintain *m, struct tarn_table *table)
{
    struct followed *f = tarn_maintain__followed(m, table);
    if (f != NULL)
        return f;
    f = tarn_calloc(1, sizeof *f);
    snprintf(f->main_uuid, sizeof f->main_uuid, "%s", tarn_table_main_uuid(table));
    f->schema_id = -1;
    f->all = true;
    f->buckets = tarn_map_new();
    f->changed = tarn_map_new();
    tarn_map_set(m->followed, tarn_slice_str(tarn_table_uuid(table)), f);
    return f;
}

void tarn_maintain_forget(struct tarn_maintain *m, struct tarn_table *table)
{
    pthread_mutex_lock(&m->pictures_lock);
    struct followed *f = tarn_map_remove(m->followed, tarn_slice_str(tarn_table_uuid(table)));
    if (f != NULL)
        followed_free(m, f);
    pthread_mutex_unlock(&m->pictures_lock);
}

void tarn_maintain__sweep_followed(struct tarn_maintain *m)
{
    size_t cursor = 0;
    struct tarn_slice uuid;
    void *value;
    pthread_mutex_lock(&m->pictures_lock);
    while (tarn_map_next(m->followed, &cursor, &uuid, &value)) {
        struct followed *f = value;
        if (tarn_catalog_has_table(m->options.catalog, tarn_slice_str(f->main_uuid)))
            continue;
        tarn_map_remove(m->followed, uuid);
        followed_free(m, f);
    }
    pthread_mutex_unlock(&m->pictures_lock);
}

/* --- buckets; pictures_lock held --- */

static void bucket_key(struct tarn_slice partition, int32_t bucket, struct tarn_buf *key)
{
    tarn_key_add_bytes(key, partition);
    tarn_key_add_i64(key, bucket);
}

struct pictured *tarn_maintain__pictured(struct followed *f, struct tarn_slice partition,
                                         int32_t bucket)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    bucket_key(partition, bucket, &key);
    return tarn_map_find(f->buckets, tarn_buf_slice(&key));
}

void tarn_maintain__look_later(struct tarn_maintain *m, struct followed *f,
                               struct tarn_slice partition, int32_t bucket)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    bucket_key(partition, bucket, &key);
    struct pictured *p = tarn_map_find(f->buckets, tarn_buf_slice(&key));
    if (p == NULL) {
        p = tarn_calloc(1, sizeof *p);
        tarn_buf_add_slice(&p->partition, partition);
        p->bucket = bucket;
        m->picture_count++;
        tarn_map_set(f->buckets, tarn_buf_slice(&key), p);
    }
    tarn_map_set(f->changed, tarn_buf_slice(&key), p);
}

void tarn_maintain__drop_picture(struct tarn_maintain *m, struct followed *f, struct pictured *p)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    bucket_key(tarn_buf_slice(&p->partition), p->bucket, &key);
    tarn_map_remove(f->buckets, tarn_buf_slice(&key));
    tarn_map_remove(f->changed, tarn_buf_slice(&key));
    pictured_free(m, p);
}

static void unknown(struct pictured *p)
{
    p->known = false;
    tarn_picture_fini(&p->picture);
}

/* stamp: not below any change of this bucket that was taken. */
static void apply(struct pictured *p, const struct tarn_touched_bucket *t, int64_t stamp)
{
    if (t->unknown || t->change_count > 0)
        p->missed_stamp = stamp; /* minded where it isn't known */
    if (!p->known)
        return;
    size_t from = 0;
    while (from < t->change_count && t->changes[from].stamp <= p->from_stamp)
        from++;
    bool told = !t->unknown && (from == t->change_count || t->changes[from].stamp > p->to_stamp) &&
                tarn_picture_change(&p->picture, t->changes + from, t->change_count - from,
                                    tarn_clock_mono_ms());
    if (!told)
        unknown(p);
}

struct followed *tarn_maintain__absorb(struct tarn_op *op, struct tarn_maintain *m,
                                       struct tarn_table *table)
{
    struct followed *f = follow(m, table);
    struct tarn_touched touched;
    tarn_table_take_touched(op, table, &touched);
    f->all |= touched.all;
    int64_t stamp = touched.count > 0 ? tarn_table_change_stamp(table) : 0;
    for (size_t i = 0; i < touched.count && !f->all; i++) {
        const struct tarn_touched_bucket *t = &touched.buckets[i];
        tarn_maintain__look_later(m, f, t->partition, t->bucket);
        apply(tarn_maintain__pictured(f, t->partition, t->bucket), t, stamp);
    }
    return f;
}

void tarn_maintain__forget_pictures(struct tarn_maintain *m, struct followed *f)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *p;
    while (tarn_map_next(f->buckets, &cursor, &key, &p)) {
        tarn_map_remove(f->buckets, key);
        pictured_free(m, p);
    }
    tarn_map_free(f->changed);
    f->changed = tarn_map_new();
}

void tarn_maintain__all_changed(struct followed *f)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *p;
    while (tarn_map_next(f->buckets, &cursor, &key, &p))
        tarn_map_set(f->changed, key, p);
}

/* --- reading one --- */

struct tarn_status *tarn_maintain__read_picture(struct tarn_op *op, struct tarn_table *table,
                                                const struct tarn_table_view *view,
                                                const struct tarn_touched_bucket *at,
                                                struct read_picture *out)
{
    tarn_picture_init(&out->picture, &view->schema, &view->options);
    bool some = out->picture.kind == TARN_PICTURE_SMALL;
    bool marked = out->picture.is_marked; /* large files may have to go, too */
    struct tarn_index_file *indexes;
    size_t index_count;
    out->from_stamp = tarn_table_change_stamp(table);
    TARN_TRY(tarn_table_bucket_picture(op, table, at->partition, at->bucket,
                                       some && !marked ? out->picture.small_limit : INT64_MAX,
                                       some ? TARN_UNAWARE_FILES_MAX : SIZE_MAX, &out->files));
    if (marked)
        TARN_TRY(tarn_table_bucket_vectors(op, table, view, &out->files, &indexes, &index_count));
    out->to_stamp = tarn_table_change_stamp(table);
    tarn_picture_add_files(&out->picture, out->files.files, out->files.file_count,
                           tarn_clock_mono_ms());
    return TARN_OK;
}

bool tarn_maintain__keep_picture(struct pictured *p, struct read_picture *consumed)
{
    unknown(p);
    p->picture = consumed->picture;
    consumed->picture = (struct tarn_picture){0};
    p->from_stamp = consumed->from_stamp;
    p->to_stamp = consumed->to_stamp;
    p->known = p->missed_stamp <= p->from_stamp;
    if (!p->known) /* something came while it was read: it is read again */
        unknown(p);
    p->missed_stamp = 0;
    return p->known;
}

/* --- what others want to know --- */

void tarn_maintain__measure_lag(struct tarn_maintain *m)
{
    int64_t oldest = 0, now = tarn_clock_mono_ms();
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    pthread_mutex_lock(&m->pictures_lock);
    while (tarn_map_next(m->followed, &cursor, &key, &value)) {
        struct followed *f = value;
        size_t at = 0;
        void *p;
        while (f->is_waited_for && tarn_map_next(f->buckets, &at, &key, &p)) {
            int64_t ms = tarn_picture_oldest_ms(&((struct pictured *)p)->picture);
            oldest = ms > 0 && (oldest == 0 || ms < oldest) ? ms : oldest;
        }
    }
    pthread_mutex_unlock(&m->pictures_lock);
    tarn_metric_set(TARN_M_COMPACTION_LAG, NULL, oldest == 0 ? 0 : (double)(now - oldest) / 1000);
}

static void judge(const struct followed *f, const struct pictured *p, struct tarn_backlog *out)
{
    int32_t runs = (int32_t)TARN_MIN(p->picture.run_count, (size_t)INT32_MAX);
    if (!p->known || p->picture.kind != TARN_PICTURE_RUNS || runs <= f->run_trigger ||
        runs <= out->runs || p->bucket == TARN_BUCKET_POSTPONE) /* no reader merges those */
        return;
    *out = (struct tarn_backlog){.advice = runs > f->run_stop_trigger ? TARN_BACKLOG_WAIT
                                                                      : TARN_BACKLOG_BEHIND,
                                 .bucket = p->bucket,
                                 .runs = runs,
                                 .run_trigger = f->run_trigger,
                                 .run_stop_trigger = f->run_stop_trigger,
                                 .retry_after_ms = TARN_BACKLOG_RETRY_MS};
    out->partition = tarn_buf_slice(&p->partition);
}

void tarn_maintain_backlog(struct tarn_op *op, struct tarn_maintain *m, struct tarn_table *table,
                           const struct tarn_manifest_entry *entries, size_t count,
                           struct tarn_backlog *out)
{
    *out = (struct tarn_backlog){0};
    if (!m->options.automatic)
        return;
    pthread_mutex_lock(&m->pictures_lock);
    struct followed *f = tarn_maintain__followed(m, table);
    if (f != NULL && f->is_ours) {
        tarn_maintain__absorb(op, m, table);
        for (size_t i = 0; i < count; i++) {
            bool again = i > 0 && entries[i].bucket == entries[i - 1].bucket &&
                         tarn_slice_equal(entries[i].partition, entries[i - 1].partition);
            const struct pictured *p =
                again ? NULL : tarn_maintain__pictured(f, entries[i].partition, entries[i].bucket);
            if (p != NULL)
                judge(f, p, out);
        }
        out->partition = tarn_arena_copy(op->arena, out->partition);
    }
    pthread_mutex_unlock(&m->pictures_lock);
    tarn_maintain__check_backlog(m, table, out);
}

void tarn_maintain_table_backlog(struct tarn_op *op, struct tarn_maintain *m,
                                 struct tarn_table *table, struct tarn_backlog *out)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *p;
    *out = (struct tarn_backlog){0};
    pthread_mutex_lock(&m->pictures_lock);
    struct followed *f = m->options.automatic ? tarn_maintain__followed(m, table) : NULL;
    if (f != NULL && f->is_ours) {
        tarn_maintain__absorb(op, m, table);
        while (tarn_map_next(f->buckets, &cursor, &key, &p))
            judge(f, p, out);
        out->partition = tarn_arena_copy(op->arena, out->partition);
    }
    pthread_mutex_unlock(&m->pictures_lock);
    tarn_maintain__check_backlog(m, table, out);
}
