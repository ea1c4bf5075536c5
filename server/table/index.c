#include "table/internal.h"

/*
 * The file index: which entries are live, which were removed and by which snapshot.
 *
 *   LIVE      uuid | partition | bucket | level | name | hash of identity -> added_by | entry without statistics
 *   STATS     the LIVE key | added_by                                     -> entry with statistics
 *   REMOVED   uuid | removed_by | the rest of the LIVE key | added_by     -> added_by | entry without statistics
 *   SNAPSHOTS uuid | 's' | id -> the snapshot's JSON;  uuid | 'h' -> id and hash of the newest indexed one
 *   RECEIPTS  receipts.c
 *   SEQUENCES uuid | partition | bucket -> next number
 *
 * A plan at snapshot N is: LIVE with added_by <= N, and REMOVED with removed_by > N and added_by <= N.
 */

#define UUID_TEXT_SIZE (TARN_UUID_SIZE - 1)
#define REBUILD_BATCH_ENTRIES 5000

static void add_uuid(struct tarn_buf *key, const char *uuid)
{
    tarn_buf_add(key, uuid, UUID_TEXT_SIZE);
}

void tarn_table__bucket_prefix(const char *uuid, struct tarn_slice partition, const int32_t *bucket,
                               struct tarn_buf *key)
{
    add_uuid(key, uuid);
    if (partition.data == NULL)
        return;
    tarn_key_add_bytes(key, partition);
    if (bucket != NULL)
        tarn_key_add_i64(key, *bucket);
}

void tarn_table__live_key(const char *uuid, const struct tarn_manifest_entry *entry,
                          struct tarn_buf *key)
{
    tarn_table__bucket_prefix(uuid, entry->partition, &entry->bucket, key);
    tarn_key_add_i64(key, entry->file.level);
    tarn_key_add_bytes(key, entry->file.name);
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    tarn_manifest_identity(entry, &identity);
    tarn_key_add_u64(key, tarn_xxh64(tarn_buf_slice(&identity), 0));
}

static void stats_key(struct tarn_slice live_key, int64_t added_by, struct tarn_buf *key)
{
    tarn_buf_add_slice(key, live_key);
    tarn_key_add_i64(key, added_by);
}

static void removed_key(struct tarn_slice live_key, int64_t removed_by, int64_t added_by,
                        struct tarn_buf *key)
{
    tarn_buf_add(key, live_key.data, UUID_TEXT_SIZE);
    tarn_key_add_i64(key, removed_by);
    tarn_buf_add(key, live_key.data + UUID_TEXT_SIZE, live_key.size - UUID_TEXT_SIZE);
    tarn_key_add_i64(key, added_by);
}

static void tagged_key(const char *uuid, char tag, struct tarn_buf *key)
{
    add_uuid(key, uuid);
    tarn_buf_add_byte(key, (uint8_t)tag);
}

static void snapshot_key(const char *uuid, int64_t id, struct tarn_buf *key)
{
    tagged_key(uuid, 's', key);
    tarn_key_add_i64(key, id);
}

static void live_value(const struct tarn_manifest_entry *entry, int64_t added_by,
                       struct tarn_buf *value)
{
    tarn_key_add_i64(value, added_by);
    tarn_manifest_entry_pack(entry, false, value);
}

struct tarn_status *tarn_table__live_decode(struct tarn_slice value, struct tarn_arena *arena,
                                            struct tarn_live *out)
{
    if (!tarn_key_take_i64(&value, &out->added_by))
        return tarn_status_new(TARN_STATE_DAMAGED, "an entry of the file index is %zu bytes",
                               value.size);
    out->removed_by = 0;
    return tarn_manifest_entry_unpack(tarn_arena_copy(arena, value), arena, &out->entry);
}

struct tarn_status *tarn_table__live_find(struct tarn_table *table,
                                          const struct tarn_manifest_entry *entry,
                                          struct tarn_arena *arena, bool *found,
                                          struct tarn_live *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__live_key(table->uuid, entry, &key);
    TARN_TRY(
        tarn_state_get(table->env->state, TARN_FAMILY_LIVE, tarn_buf_slice(&key), found, &value));
    return *found ? tarn_table__live_decode(tarn_buf_slice(&value), arena, out) : TARN_OK;
}

struct tarn_status *tarn_table__stats_find(struct tarn_table *table, const struct tarn_live *live,
                                           struct tarn_arena *arena,
                                           struct tarn_manifest_entry *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf live_key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__live_key(table->uuid, &live->entry, &live_key);
    stats_key(tarn_buf_slice(&live_key), live->added_by, &key);
    bool found;
    TARN_TRY(
        tarn_state_get(table->env->state, TARN_FAMILY_STATS, tarn_buf_slice(&key), &found, &value));
    if (!found)
        return tarn_status_new(TARN_STATE_DAMAGED,
                               "table %s: the index lacks the statistics of %.*s", table->name,
                               TARN_SLICE_ARG(live->entry.file.name));
    return tarn_manifest_entry_unpack(tarn_arena_copy(arena, tarn_buf_slice(&value)), arena, out);
}

struct tarn_status *tarn_table__live_list(struct tarn_table *table, struct tarn_slice prefix,
                                          struct tarn_arena *arena, struct tarn_live **out,
                                          size_t *count)
{
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_LIVE, prefix);
    TARN_OWN(tarn_free_drop) struct tarn_live *list = NULL;
    size_t n = 0, capacity = 0;
    struct tarn_slice key, value;
    while (tarn_state_iterator_next(it, &key, &value)) {
        TARN_GROW(list, n, capacity);
        TARN_TRY(tarn_table__live_decode(value, arena, &list[n]));
        n++;
    }
    TARN_TRY(tarn_state_iterator_error(it));
    *out = tarn_arena_calloc(arena, n + 1, sizeof **out);
    if (n > 0)
        memcpy(*out, list, n * sizeof **out);
    *count = n;
    return TARN_OK;
}

/* --- one snapshot as one batch --- */

/* A batch in the making, with the LIVE keys it has touched: the state doesn't show them yet. */
struct index_batch {
    struct tarn_table *table;
    struct tarn_state_batch *batch;
    struct tarn_map *touched; /* LIVE key -> struct touched */
    struct tarn_arena *arena;
};
struct touched {
    bool live;
    int64_t added_by;
};

static void index_batch_init(struct index_batch *b, struct tarn_table *table)
{
    *b = (struct index_batch){table, tarn_state_batch_new(), tarn_map_new(), tarn_arena_new()};
}

static void index_batch_fini(struct index_batch *b)
{
    tarn_state_batch_free(b->batch);
    tarn_map_free(b->touched);
    tarn_arena_free(b->arena);
}

static void touch(struct index_batch *b, struct tarn_slice key, bool live, int64_t added_by)
{
    struct touched *t = tarn_arena_alloc(b->arena, sizeof *t);
    *t = (struct touched){live, added_by};
    tarn_map_set(b->touched, key, t);
}

static void batch_add(struct index_batch *b, const struct tarn_manifest_entry *entry,
                      int64_t added_by)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf full_key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf full = {0};
    tarn_table__live_key(b->table->uuid, entry, &key);
    live_value(entry, added_by, &value);
    stats_key(tarn_buf_slice(&key), added_by, &full_key);
    tarn_manifest_entry_pack(entry, true, &full);
    struct tarn_state *state = b->table->env->state;
    tarn_state_batch_put(b->batch, state, TARN_FAMILY_LIVE, tarn_buf_slice(&key),
                         tarn_buf_slice(&value));
    tarn_state_batch_put(b->batch, state, TARN_FAMILY_STATS, tarn_buf_slice(&full_key),
                         tarn_buf_slice(&full));
    touch(b, tarn_buf_slice(&key), true, added_by);
}

/* *found false: the entry isn't live, so the index and the table disagree. */
static struct tarn_status *batch_remove(struct index_batch *b,
                                        const struct tarn_manifest_entry *entry, int64_t removed_by,
                                        bool *found)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf gone_key = {0};
    tarn_table__live_key(b->table->uuid, entry, &key);
    int64_t added_by;
    struct touched *t = tarn_map_find(b->touched, tarn_buf_slice(&key));
    if (t != NULL) {
        *found = t->live;
        added_by = t->added_by;
    } else {
        TARN_OWN(tarn_buf_drop) struct tarn_buf old = {0};
        TARN_TRY(tarn_state_get(b->table->env->state, TARN_FAMILY_LIVE, tarn_buf_slice(&key), found,
                                &old));
        struct tarn_slice rest = tarn_buf_slice(&old);
        if (*found && !tarn_key_take_i64(&rest, &added_by))
            return tarn_status_new(TARN_STATE_DAMAGED, "an entry of the file index is %zu bytes",
                                   rest.size);
    }
    if (!*found)
        return TARN_OK;
    live_value(entry, added_by, &value);
    removed_key(tarn_buf_slice(&key), removed_by, added_by, &gone_key);
    struct tarn_state *state = b->table->env->state;
    tarn_state_batch_remove(b->batch, state, TARN_FAMILY_LIVE, tarn_buf_slice(&key));
    tarn_state_batch_put(b->batch, state, TARN_FAMILY_REMOVED, tarn_buf_slice(&gone_key),
                         tarn_buf_slice(&value));
    touch(b, tarn_buf_slice(&key), false, added_by);
    return TARN_OK;
}

/* The snapshot's own records, and the mark that the index has reached it. */
static void batch_snapshot(struct index_batch *b, const struct tarn_snapshot *snapshot,
                           struct tarn_slice json, const struct tarn_delta *delta)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf head_key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf head = {0};
    snapshot_key(b->table->uuid, snapshot->id, &key);
    tagged_key(b->table->uuid, 'h', &head_key);
    tarn_key_add_i64(&head, snapshot->id);
    tarn_key_add_u64(&head, tarn_xxh64(json, 0));
    struct tarn_state *state = b->table->env->state;
    tarn_state_batch_put(b->batch, state, TARN_FAMILY_SNAPSHOTS, tarn_buf_slice(&key), json);
    tarn_state_batch_put(b->batch, state, TARN_FAMILY_SNAPSHOTS, tarn_buf_slice(&head_key),
                         tarn_buf_slice(&head));
    tarn_table__receipts_add(b->batch, b->table, snapshot, delta);
}

static struct tarn_status *write_batch(struct index_batch *b)
{
    pthread_rwlock_wrlock(&b->table->index_lock);
    struct tarn_status *s = tarn_state_write(b->table->env->state, b->batch, false);
    pthread_rwlock_unlock(&b->table->index_lock);
    return s;
}

/* The entries of a delta, in order. One that deletes what isn't live: index and table disagree. */
static struct tarn_status *batch_entries(struct index_batch *b, int64_t snapshot_id,
                                         const struct tarn_manifest_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool found = true;
        if (entries[i].kind == TARN_ENTRY_ADD)
            batch_add(b, &entries[i], snapshot_id);
        else
            TARN_TRY(batch_remove(b, &entries[i], snapshot_id, &found));
        if (!found)
            return tarn_status_new(TARN_MANIFEST_MALFORMED,
                                   "table %s: snapshot %" PRId64 " deletes %.*s, which is not live",
                                   b->table->name, snapshot_id,
                                   TARN_SLICE_ARG(entries[i].file.name));
    }
    return TARN_OK;
}

struct tarn_status *tarn_table__index_add(struct tarn_op *op, struct tarn_table *table,
                                          const struct tarn_snapshot *snapshot,
                                          struct tarn_slice json, const struct tarn_delta *delta)
{
    TARN_OWN(index_batch_fini) struct index_batch b;
    index_batch_init(&b, table);
    TARN_TRY(batch_entries(&b, snapshot->id, delta->entries, delta->count));
    batch_snapshot(&b, snapshot, json, delta);
    return write_batch(&b);
}

struct tarn_status *tarn_table__indexed_id(struct tarn_table *table, int64_t *id,
                                           uint64_t *json_hash)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tagged_key(table->uuid, 'h', &key);
    bool found;
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_SNAPSHOTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    *id = 0;
    if (found && (!tarn_key_take_i64(&rest, id) || !tarn_key_take_u64(&rest, json_hash)))
        return tarn_status_new(TARN_STATE_DAMAGED, "table %s: the index's mark is %zu bytes",
                               table->name, value.size);
    return TARN_OK;
}

static void remove_all(struct tarn_state_batch *batch, struct tarn_table *table,
                       enum tarn_family family)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    add_uuid(&from, table->uuid);
    add_uuid(&to, table->uuid);
    tarn_buf_add_byte(
        &to, 0xff); /* above every key: parts begin with a sign byte, an arity or a letter */
    tarn_state_batch_remove_range(batch, table->env->state, family, tarn_buf_slice(&from),
                                  tarn_buf_slice(&to));
    tarn_state_batch_remove(batch, table->env->state, family, tarn_buf_slice(&from));
}

struct tarn_status *tarn_table__index_clear(struct tarn_table *table, bool receipts_too)
{
    TARN_OWN(index_batch_fini) struct index_batch b;
    index_batch_init(&b, table);
    remove_all(b.batch, table, TARN_FAMILY_LIVE);
    remove_all(b.batch, table, TARN_FAMILY_STATS);
    remove_all(b.batch, table, TARN_FAMILY_REMOVED);
    remove_all(b.batch, table, TARN_FAMILY_SNAPSHOTS);
    if (receipts_too) {
        remove_all(b.batch, table, TARN_FAMILY_RECEIPTS);
        remove_all(b.batch, table, TARN_FAMILY_SEQUENCES);
    }
    return write_batch(&b);
}

/* --- rebuilding --- */

/* All entries of a snapshot, ADD and DELETE resolved: what is live there (docs/format.md, "Merging entries"). */
static struct tarn_status *index_whole(struct tarn_op *op, struct tarn_table *table,
                                       struct tarn_head *head)
{
    TARN_TRY(tarn_table__head_manifests(op, table, head));
    TARN_OWN(tarn_map_drop) struct tarn_map *deleted = tarn_map_new();
    for (size_t i = 0; i < head->manifest_count; i++) {
        if (head->manifests[i].deleted_count == 0)
            continue;
        TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
        struct tarn_manifest_entry *entries;
        size_t count;
        TARN_TRY(
            tarn_table__read_manifest(op, table, head->manifests[i].name, arena, &entries, &count));
        for (size_t e = 0; e < count; e++) {
            if (entries[e].kind != TARN_ENTRY_DELETE)
                continue;
            TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
            tarn_manifest_identity(&entries[e], &identity);
            tarn_map_set(deleted, tarn_buf_slice(&identity), table);
        }
    }
    for (size_t i = 0; i < head->manifest_count; i++) {
        TARN_TRY(tarn_op_check(op));
        TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
        struct tarn_manifest_entry *entries;
        size_t count;
        TARN_TRY(
            tarn_table__read_manifest(op, table, head->manifests[i].name, arena, &entries, &count));
        for (size_t e = 0; e < count;) {
            TARN_OWN(index_batch_fini) struct index_batch b;
            index_batch_init(&b, table);
            for (size_t end = TARN_MIN(count, e + REBUILD_BATCH_ENTRIES); e < end; e++) {
                TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
                tarn_manifest_identity(&entries[e], &identity);
                if (entries[e].kind == TARN_ENTRY_ADD &&
                    tarn_map_find(deleted, tarn_buf_slice(&identity)) == NULL)
                    batch_add(&b, &entries[e], 0);
            }
            TARN_TRY(write_batch(&b));
        }
    }
    TARN_OWN(index_batch_fini) struct index_batch b;
    index_batch_init(&b, table);
    batch_snapshot(&b, &head->snapshot, head->json, NULL);
    return write_batch(&b);
}

static struct tarn_status *index_next(struct tarn_op *op, struct tarn_table *table, int64_t id)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    bool found;
    TARN_TRY(tarn_table__read_snapshot(op, table, id, arena, &found, &json, &snapshot));
    if (!found)
        return tarn_status_new(TARN_SNAPSHOT_NOT_FOUND,
                               "table %s: snapshot %" PRId64 " is missing between others",
                               table->name, id);
    struct tarn_manifest_file *files;
    size_t file_count;
    TARN_TRY(tarn_table__read_list(op, table, snapshot.delta_list, arena, &files, &file_count));
    TARN_OWN(tarn_free_drop) struct tarn_manifest_entry *all = NULL;
    size_t all_count = 0;
    for (size_t i = 0; i < file_count; i++) {
        struct tarn_manifest_entry *entries;
        size_t count;
        TARN_TRY(tarn_table__read_manifest(op, table, files[i].name, arena, &entries, &count));
        all = tarn_realloc(all, (all_count + count + 1) * sizeof *all);
        if (count > 0)
            memcpy(all + all_count, entries, count * sizeof *all);
        all_count += count;
    }
    return tarn_table__index_add(op, table, &snapshot, json,
                                 &(struct tarn_delta){.entries = all, .count = all_count});
}

static struct tarn_status *rebuild(struct tarn_op *op, struct tarn_table *table,
                                   struct tarn_range range)
{
    TARN_TRY(tarn_table__index_clear(table, false));
    TARN_TRY(tarn_table__receipts_void(table, range.earliest));
    if (range.latest == 0)
        return TARN_OK;
    bool found;
    TARN_OWN(tarn_head_drop) struct tarn_head *head = NULL;
    TARN_TRY(tarn_table__load_head(op, table, range.earliest, &found, &head));
    if (!found)
        return tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                               "table %s: snapshot %" PRId64 " expired meanwhile", table->name,
                               range.earliest);
    TARN_TRY(index_whole(op, table, head));
    for (int64_t id = range.earliest + 1; id <= range.latest; id++)
        TARN_TRY(index_next(op, table, id));
    return TARN_OK;
}

/* Is the snapshot that the index has reached still the one of that id in the folder? */
static struct tarn_status *stands(struct tarn_op *op, struct tarn_table *table,
                                  struct tarn_range range, int64_t indexed, uint64_t hash,
                                  bool *out)
{
    *out = false;
    if (indexed == 0 || indexed > range.latest || indexed < range.earliest)
        return TARN_OK;
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    bool found;
    TARN_TRY(tarn_table__read_snapshot(op, table, indexed, op->arena, &found, &json, &snapshot));
    *out = found && tarn_xxh64(json, 0) == hash;
    return TARN_OK;
}

struct tarn_status *tarn_table__index_catch_up(struct tarn_op *op, struct tarn_table *table,
                                               struct tarn_range range)
{
    int64_t indexed;
    uint64_t hash = 0;
    TARN_TRY(tarn_table__indexed_id(table, &indexed, &hash));
    if (indexed == 0 && range.latest == 0)
        return TARN_OK;
    bool same;
    TARN_TRY(stands(op, table, range, indexed, hash, &same));
    if (!same) {
        if (indexed != 0)
            tarn_log(op, TARN_WARN, "table.index_rebuilt",
                     "table=%s indexed=%" PRId64 " latest=%" PRId64, table->name, indexed,
                     range.latest);
        return rebuild(op, table, range);
    }
    for (int64_t id = indexed + 1; id <= range.latest; id++) {
        struct tarn_status *s = index_next(op, table, id);
        if (tarn_status_reason(s) == TARN_MANIFEST_MALFORMED) {
            /* The index may be the one that is wrong: the folder decides. */
            tarn_log_status(op, TARN_WARN, "table.index_disagrees", s);
            return rebuild(op, table, range);
        }
        if (s != TARN_OK)
            return s;
        tarn_metric_add(TARN_M_SNAPSHOTS_ADOPTED, NULL, 1);
    }
    return TARN_OK;
}

struct tarn_status *tarn_table__index_forget_below(struct tarn_op *op, struct tarn_table *table,
                                                   int64_t earliest)
{
    TARN_OWN(index_batch_fini) struct index_batch b;
    index_batch_init(&b, table);
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    add_uuid(&prefix, table->uuid);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_REMOVED, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_slice rest =
            tarn_slice_of(key.data + UUID_TEXT_SIZE, key.size - UUID_TEXT_SIZE);
        int64_t removed_by;
        if (!tarn_key_take_i64(&rest, &removed_by))
            return tarn_status_new(TARN_STATE_DAMAGED, "table %s: a key of the index is damaged",
                                   table->name);
        if (removed_by > earliest)
            break; /* a snapshot that is retained still sees it */
        TARN_OWN(tarn_buf_drop) struct tarn_buf full = {0};
        add_uuid(&full, table->uuid);
        tarn_buf_add_slice(&full, rest); /* the LIVE key and added_by: the key of STATS */
        tarn_state_batch_remove(b.batch, table->env->state, TARN_FAMILY_STATS,
                                tarn_buf_slice(&full));
        tarn_state_batch_remove(b.batch, table->env->state, TARN_FAMILY_REMOVED, key);
    }
    TARN_TRY(tarn_state_iterator_error(it));
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    snapshot_key(table->uuid, 0, &from);
    snapshot_key(table->uuid, earliest, &to);
    tarn_state_batch_remove_range(b.batch, table->env->state, TARN_FAMILY_SNAPSHOTS,
                                  tarn_buf_slice(&from), tarn_buf_slice(&to));
    return write_batch(&b);
}

/* --- sequence numbers --- */

struct tarn_status *tarn_table_reserve_sequences(struct tarn_op *op, struct tarn_table *table,
                                                 struct tarn_slice partition, int32_t bucket,
                                                 int64_t count, int64_t *first)
{
    TARN_TRY(tarn_table__check_here(table));
    if (count <= 0 || partition.data == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a block of %" PRId64 " sequence numbers",
                               count);
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__bucket_prefix(table->uuid, partition, &bucket, &key);
    struct tarn_live *live;
    size_t live_count;
    TARN_TRY(tarn_table__live_list(table, tarn_buf_slice(&key), op->arena, &live, &live_count));
    int64_t next = 0;
    for (size_t i = 0; i < live_count; i++)
        next = TARN_MAX(next, live[i].entry.file.max_sequence + 1);
    pthread_mutex_lock(&table->sequence_lock);
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    bool found;
    int64_t handed_out = 0;
    struct tarn_status *s = tarn_state_get(table->env->state, TARN_FAMILY_SEQUENCES,
                                           tarn_buf_slice(&key), &found, &value);
    struct tarn_slice rest = tarn_buf_slice(&value);
    if (s == TARN_OK && found && !tarn_key_take_i64(&rest, &handed_out))
        s = tarn_status_new(TARN_STATE_DAMAGED, "table %s: a sequence block is damaged",
                            table->name);
    next = TARN_MAX(next, handed_out);
    int64_t end = 0;
    if (s == TARN_OK && __builtin_add_overflow(next, count, &end))
        s = tarn_status_new(TARN_INVALID_ARGUMENT,
                            "table %s has no sequence numbers left in this bucket", table->name);
    if (s == TARN_OK) {
        tarn_buf_clear(&value);
        tarn_key_add_i64(&value, end);
        tarn_state_batch_put(batch, table->env->state, TARN_FAMILY_SEQUENCES, tarn_buf_slice(&key),
                             tarn_buf_slice(&value));
        s = tarn_state_write(table->env->state, batch, false);
    }
    pthread_mutex_unlock(&table->sequence_lock);
    *first = next;
    return s;
}
