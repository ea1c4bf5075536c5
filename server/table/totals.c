#include "table/index.h"

/*
 * Sums over live files, of the table and of each partition: what catalogs tell of a table without planning it.
 *
 *   SNAPSHOTS uuid | 't'             -> snapshot id, sums of the table
 *             uuid | 'p' | partition -> sums, number of buckets, the snapshot since which it has files
 *
 * They are there once somebody asked: then a walk over LIVE made them, and every batch that changes LIVE changes them with it. A rebuild
 * of the index clears them. An id that isn't the indexed one is of a program that didn't keep them: they are made anew.
 */

#define TABLE_TAG 't'
#define PARTITION_TAG 'p'

enum tarn_totals_state { TOTALS_UNKNOWN, TOTALS_ABSENT, TOTALS_KEPT };

/* --- records --- */

static void add_record(const struct tarn_totals *t, struct tarn_buf *value)
{
    tarn_key_add_i64(value, t->file_count);
    tarn_key_add_i64(value, t->record_count);
    tarn_key_add_i64(value, t->size);
    tarn_key_add_i64(value, t->last_file_local_ms);
    tarn_key_add_i64(value, t->total_buckets);
}

static bool take_record(struct tarn_slice *rest, struct tarn_totals *out)
{
    int64_t buckets;
    bool good =
        tarn_key_take_i64(rest, &out->file_count) && tarn_key_take_i64(rest, &out->record_count) &&
        tarn_key_take_i64(rest, &out->size) && tarn_key_take_i64(rest, &out->last_file_local_ms) &&
        tarn_key_take_i64(rest, &buckets);
    out->total_buckets = good ? (int32_t)buckets : 0;
    return good;
}

/* Records of before have no snapshot. */
static bool take_partition(struct tarn_slice *rest, struct tarn_totals *out)
{
    out->since_id = 0;
    return take_record(rest, out) && (rest->size == 0 || tarn_key_take_i64(rest, &out->since_id));
}

static void partition_key(const struct tarn_table *table, struct tarn_slice partition,
                          struct tarn_buf *key)
{
    tarn_table__tagged_key(table->uuid, PARTITION_TAG, key);
    tarn_key_add_bytes(key, partition);
}

static void put(struct tarn_state_batch *batch, struct tarn_table *table,
                const struct tarn_buf *key, const struct tarn_buf *value)
{
    tarn_state_batch_put(batch, table->env->state, TARN_FAMILY_SNAPSHOTS, tarn_buf_slice(key),
                         tarn_buf_slice(value));
}

static void put_table(struct tarn_state_batch *batch, struct tarn_table *table, int64_t id,
                      const struct tarn_totals *totals)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__tagged_key(table->uuid, TABLE_TAG, &key);
    tarn_key_add_i64(&value, id);
    add_record(totals, &value);
    put(batch, table, &key, &value);
}

static void put_partition(struct tarn_state_batch *batch, struct tarn_table *table,
                          struct tarn_slice partition, const struct tarn_totals *totals)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    partition_key(table, partition, &key);
    add_record(totals, &value);
    tarn_key_add_i64(&value, totals->since_id);
    if (totals->file_count != 0)
        put(batch, table, &key, &value);
    else
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_SNAPSHOTS,
                                tarn_buf_slice(&key));
}

static const struct tarn_totals nothing = {.last_file_local_ms = TARN_FILE_NONE};

/* *id 0: they aren't there. */
static struct tarn_status *get_table(struct tarn_table *table, int64_t *id, struct tarn_totals *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    bool found;
    *id = 0;
    *out = nothing;
    tarn_table__tagged_key(table->uuid, TABLE_TAG, &key);
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_SNAPSHOTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    if (found && (!tarn_key_take_i64(&rest, id) || !take_record(&rest, out)))
        return tarn_table__damaged_value(rest);
    return TARN_OK;
}

static struct tarn_status *get_partition(struct tarn_table *table, struct tarn_slice partition,
                                         struct tarn_totals *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    bool found;
    *out = nothing;
    partition_key(table, partition, &key);
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_SNAPSHOTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    return found && !take_partition(&rest, out) ? tarn_table__damaged_value(rest) : TARN_OK;
}

/* --- with a batch --- */

/* Counts add, the time is the largest there ever was: a file that goes leaves it. */
static void add(struct tarn_totals *sum, const struct tarn_totals *more)
{
    sum->file_count += more->file_count;
    sum->record_count += more->record_count;
    sum->size += more->size;
    sum->last_file_local_ms = TARN_MAX(sum->last_file_local_ms, more->last_file_local_ms);
    if (more->total_buckets != 0)
        sum->total_buckets = more->total_buckets;
}

void tarn_table__totals_note(struct tarn_map *partitions, struct tarn_arena *arena,
                             struct tarn_slice partition, const struct tarn_manifest_entry *entry,
                             int sign, int64_t added_by)
{
    struct tarn_totals *sum = tarn_map_find(partitions, partition);
    if (sum == NULL) {
        sum = tarn_arena_alloc(arena, sizeof *sum);
        *sum = nothing;
        tarn_map_set(partitions, partition, sum);
    }
    const struct tarn_data_file *f = &entry->file;
    struct tarn_totals one = {.file_count = sign,
                              .record_count = sign * f->row_count,
                              .size = sign * f->size,
                              .last_file_local_ms = sign > 0 ? f->creation_time_ms : TARN_FILE_NONE,
                              .total_buckets = sign > 0 ? entry->total_buckets : 0};
    add(sum, &one);
    if (sign > 0)
        sum->since_id = added_by;
}

/* Does the state keep them? Asked of it once. */
static struct tarn_status *is_kept(struct tarn_table *table, bool *out)
{
    if (table->totals_state == TOTALS_UNKNOWN) {
        int64_t id, indexed;
        uint64_t hash;
        struct tarn_totals totals;
        TARN_TRY(get_table(table, &id, &totals));
        TARN_TRY(tarn_table__indexed_id(table, &indexed, &hash));
        table->totals_state = id != 0 && id == indexed ? TOTALS_KEPT : TOTALS_ABSENT;
    }
    *out = table->totals_state == TOTALS_KEPT;
    return TARN_OK;
}

struct tarn_status *tarn_table__totals_apply(struct tarn_table *table,
                                             struct tarn_state_batch *batch,
                                             const struct tarn_map *partitions, int64_t snapshot_id)
{
    bool kept;
    int64_t id;
    struct tarn_totals table_sum, sum;
    struct tarn_slice partition;
    size_t cursor = 0;
    void *more;
    TARN_TRY(is_kept(table, &kept));
    if (!kept || (tarn_map_count(partitions) == 0 && snapshot_id == 0))
        return TARN_OK;
    TARN_TRY(get_table(table, &id, &table_sum));
    while (tarn_map_next(partitions, &cursor, &partition, &more)) {
        TARN_TRY(get_partition(table, partition, &sum));
        if (sum.file_count == 0)
            sum.since_id = ((const struct tarn_totals *)more)->since_id;
        add(&sum, more);
        add(&table_sum, more);
        put_partition(batch, table, partition, &sum);
    }
    put_table(batch, table, snapshot_id, &table_sum); /* half of a delta is no snapshot's */
    return TARN_OK;
}

void tarn_table__totals_forget(struct tarn_table *table)
{
    table->totals_state = TOTALS_UNKNOWN;
}

/* --- made anew, in the mailbox --- */

static void remove_all(struct tarn_state_batch *batch, struct tarn_table *table)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_table__tagged_key(table->uuid, PARTITION_TAG, &from);
    tarn_table__tagged_key(table->uuid, PARTITION_TAG + 1, &to);
    tarn_state_batch_remove_range(batch, table->env->state, TARN_FAMILY_SNAPSHOTS,
                                  tarn_buf_slice(&from), tarn_buf_slice(&to));
}

/* The sums of one partition, which the walk has left. */
struct walk {
    struct tarn_table *table;
    struct tarn_state_batch *batch;
    struct tarn_buf partition; /* as in the key; "": none yet */
    struct tarn_totals sum, table_sum;
};

static struct tarn_status *end_partition(struct walk *w)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf partition = {0};
    struct tarn_slice rest = tarn_buf_slice(&w->partition);
    if (w->partition.size == 0)
        return TARN_OK;
    if (!tarn_key_take_bytes(&rest, &partition))
        return tarn_table__damaged_value(rest);
    put_partition(w->batch, w->table, tarn_buf_slice(&partition), &w->sum);
    add(&w->table_sum, &w->sum);
    w->sum = nothing;
    return TARN_OK;
}

static struct tarn_status *walk_file(struct walk *w, struct tarn_slice key, struct tarn_slice value)
{
    struct tarn_slice rest =
        tarn_slice_of(key.data + TARN_INDEX_UUID_SIZE, key.size - TARN_INDEX_UUID_SIZE);
    size_t bucket_size = tarn_table__bucket_size(rest);
    struct tarn_slice packed;
    struct tarn_manifest_entry entry;
    int64_t added_by;
    if (bucket_size <= sizeof(int64_t) || !tarn_table__split_value(value, &added_by, &packed))
        return tarn_table__damaged_value(value);
    rest.size = bucket_size - sizeof(int64_t); /* the partition alone */
    if (!tarn_slice_equal(rest, tarn_buf_slice(&w->partition))) {
        TARN_TRY(end_partition(w));
        tarn_buf_clear(&w->partition);
        tarn_buf_add_slice(&w->partition, rest);
    }
    TARN_TRY(tarn_manifest_entry_view(packed, NULL, &entry));
    struct tarn_totals one = {.file_count = 1,
                              .record_count = entry.file.row_count,
                              .size = entry.file.size,
                              .last_file_local_ms = entry.file.creation_time_ms,
                              .total_buckets = entry.total_buckets};
    add(&w->sum, &one);
    return TARN_OK;
}

static struct tarn_status *walk_files(struct walk *w, const struct tarn_op *op)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_buf_add(&prefix, w->table->uuid, TARN_INDEX_UUID_SIZE);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(w->table->env->state, TARN_FAMILY_LIVE, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    for (size_t n = 0; tarn_state_iterator_next(it, &key, &value); n++) {
        TARN_TRY(walk_file(w, key, value));
        if (n % 10000 == 0)
            TARN_TRY(tarn_op_check(op));
    }
    TARN_TRY(tarn_state_iterator_error(it));
    return end_partition(w);
}

struct totals_job {
    struct tarn_op *op;
    struct tarn_table *table;
    struct tarn_status *status;
};

static struct tarn_status *make(struct totals_job *job)
{
    struct tarn_table *table = job->table;
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    bool kept;
    int64_t indexed;
    uint64_t hash;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(is_kept(table, &kept));
    TARN_TRY(tarn_table__indexed_id(table, &indexed, &hash));
    if (kept || indexed == 0 ||
        !tarn_table__is_whole(table)) /* made meanwhile; or there is nothing to sum up */
        return TARN_OK;
    struct walk w = {.table = table, .batch = batch, .sum = nothing, .table_sum = nothing};
    remove_all(batch, table);
    struct tarn_status *s = walk_files(&w, job->op);
    tarn_buf_drop(&w.partition);
    TARN_TRY(s);
    put_table(batch, table, indexed, &w.table_sum);
    TARN_TRY(tarn_state_write(table->env->state, batch, false));
    table->totals_state = TOTALS_KEPT;
    return TARN_OK;
}

static void run_make(void *arg)
{
    struct totals_job *job = arg;
    job->status = make(job);
}

struct tarn_status *tarn_table__live_rows(struct tarn_op *op, struct tarn_table *table,
                                          int64_t *out)
{
    struct totals_job job = {.op = op, .table = table};
    struct tarn_totals totals;
    bool kept;
    int64_t id;
    TARN_TRY(make(&job));
    TARN_TRY(is_kept(table, &kept));
    if (!kept)
        return tarn_status_new(TARN_STORE_UNAVAILABLE,
                               "the file index of table %s is being built anew", table->name);
    TARN_TRY(get_table(table, &id, &totals));
    *out = totals.record_count;
    return TARN_OK;
}

/* --- asking --- */

#define TRIES_MAX 10 /* at a history that goes on while it is read; then the sums of this moment */

static struct tarn_status *make_if_behind(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                          int64_t wanted)
{
    struct totals_job job = {.op = op, .table = table};
    if (id != 0 && id > wanted) /* a commit is about to show itself */
        return TARN_OK;
    tarn_mailbox_call(table->mailbox, run_make, &job);
    return job.status;
}

struct tarn_status *tarn_table_totals(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_table_view **view, struct tarn_totals *out)
{
    for (int tries = 1;; tries++) {
        TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *now = NULL;
        int64_t id = 0;
        TARN_TRY(tarn_table_look_or_last(op, table, &now));
        *out = nothing;
        if (now->has_snapshot)
            TARN_TRY(get_table(table, &id, out));
        bool fits = !now->has_snapshot || id == now->snapshot.id;
        if (fits || (id != 0 && tries == TRIES_MAX)) {
            *view = tarn_move(now);
            return TARN_OK;
        }
        if (tries == TRIES_MAX)
            return tarn_status_new(TARN_STORE_UNAVAILABLE,
                                   "the file index of table %s is being built anew", table->name);
        TARN_TRY(make_if_behind(op, table, id, now->snapshot.id));
    }
}

struct tarn_status *tarn_table_partition_totals(struct tarn_op *op, struct tarn_table *table,
                                                const struct tarn_table_view **view,
                                                struct tarn_partition_totals **out, size_t *count)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *now = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf partition = {0};
    TARN_OWN(tarn_free_drop) struct tarn_partition_totals *list = NULL;
    size_t capacity = 0, n = 0;
    struct tarn_totals all;
    TARN_TRY(tarn_table_totals(op, table, &now, &all)); /* they are there now */
    tarn_table__tagged_key(table->uuid, PARTITION_TAG, &prefix);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_SNAPSHOTS, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_slice rest = tarn_slice_of(key.data + prefix.size, key.size - prefix.size);
        struct tarn_partition_totals one;
        tarn_buf_clear(&partition);
        if (!tarn_key_take_bytes(&rest, &partition) || !take_partition(&value, &one.totals))
            return tarn_table__damaged_value(value);
        one.partition = tarn_arena_copy(op->arena, tarn_buf_slice(&partition));
        TARN_GROW(list, n, capacity);
        list[n++] = one;
    }
    TARN_TRY(tarn_state_iterator_error(it));
    *out = tarn_arena_calloc(op->arena, n + 1, sizeof **out);
    if (n > 0)
        memcpy(*out, list, n * sizeof **out);
    *count = n;
    *view = tarn_move(now);
    return TARN_OK;
}
