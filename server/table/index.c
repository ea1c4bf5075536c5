#include "table/index.h"

#include "table/internal.h"

#include "format/avro.h"

/*
 * The file index: which entries are live, which were removed and by which snapshot, and what each snapshot changed.
 *
 *   LIVE      uuid | partition | bucket | level | made | name | hash of identity -> added_by | entry without statistics
 *   STATS     the LIVE key                                                   -> entry with statistics
 *   NAMES     uuid | partition | bucket | level | name | hash of identity    -> made
 *   REMOVED   uuid | partition | bucket | removed_by | level | made | name | hash | added_by
 *                                                       -> added_by | entry with statistics
 *   CHANGES   uuid | snapshot | 'a', 'c' or 'r' | the LIVE key's rest [| added_by]  -> as REMOVED
 *   SNAPSHOTS uuid | 's' | id -> the snapshot's JSON;  uuid | 'h' -> id and hash of the newest indexed one, layout
 *   RECEIPTS  receipts.c
 *   SEQUENCES uuid | partition | bucket -> next number
 *   PINS      pins.c
 *
 * `made` is the file's creation time: files that were written together lie together, in order of keys or of arrival,
 * so that what is known of a stretch of them rules out many at once. Who has only a name finds it through NAMES.
 * STATS has what LIVE has, in the same order, so that who wants both walks them in step; what is removed takes its
 * statistics along. A plan at snapshot N is: LIVE with added_by <= N, and REMOVED with removed_by > N and added_by <= N.
 */

/* --- keys --- */

static void add_uuid(struct tarn_buf *key, const char *uuid)
{
    tarn_buf_add(key, uuid, TARN_INDEX_UUID_SIZE);
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

static void add_identity(const struct tarn_manifest_entry *entry, struct tarn_buf *key)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    tarn_key_add_bytes(key, entry->file.name);
    tarn_manifest_identity(entry, &identity);
    tarn_key_add_u64(key, tarn_xxh64(tarn_buf_slice(&identity), 0));
}

/* Level and what follows it. */
static void add_rest(const struct tarn_manifest_entry *entry, struct tarn_buf *key)
{
    tarn_key_add_i64(key, entry->file.level);
    tarn_key_add_i64(key, entry->file.creation_time_ms);
    add_identity(entry, key);
}

void tarn_table__live_key(const char *uuid, const struct tarn_manifest_entry *entry,
                          struct tarn_buf *key)
{
    tarn_table__bucket_prefix(uuid, entry->partition, &entry->bucket, key);
    add_rest(entry, key);
}

void tarn_table__name_key(const char *uuid, const struct tarn_manifest_entry *entry,
                          struct tarn_buf *key)
{
    tarn_table__bucket_prefix(uuid, entry->partition, &entry->bucket, key);
    tarn_key_add_i64(key, entry->file.level);
    add_identity(entry, key);
}

static void removed_key(const char *uuid, const struct tarn_manifest_entry *entry,
                        int64_t removed_by, int64_t added_by, struct tarn_buf *key)
{
    tarn_table__bucket_prefix(uuid, entry->partition, &entry->bucket, key);
    tarn_key_add_i64(key, removed_by);
    add_rest(entry, key);
    tarn_key_add_i64(key, added_by);
}

void tarn_table__removed_from(const char *uuid, struct tarn_slice bucket_key, int64_t removed_by,
                              struct tarn_buf *key)
{
    add_uuid(key, uuid);
    tarn_buf_add_slice(key, bucket_key);
    tarn_key_add_i64(key, removed_by);
}

void tarn_table__change_prefix(const char *uuid, int64_t snapshot_id, enum tarn_change what,
                               struct tarn_buf *key)
{
    add_uuid(key, uuid);
    tarn_key_add_i64(key, snapshot_id);
    tarn_buf_add_byte(key, (uint8_t)what);
}

static void change_key(const char *uuid, int64_t snapshot_id, enum tarn_change what,
                       const struct tarn_manifest_entry *entry, struct tarn_buf *key)
{
    tarn_table__change_prefix(uuid, snapshot_id, what, key);
    tarn_key_add_bytes(key, entry->partition);
    tarn_key_add_i64(key, entry->bucket);
    add_rest(entry, key);
}

void tarn_table__tagged_key(const char *uuid, char tag, struct tarn_buf *key)
{
    add_uuid(key, uuid);
    tarn_buf_add_byte(key, (uint8_t)tag);
}

static void snapshot_key(const char *uuid, int64_t id, struct tarn_buf *key)
{
    tarn_table__tagged_key(uuid, 's', key);
    tarn_key_add_i64(key, id);
}

size_t tarn_table__bucket_size(struct tarn_slice rest)
{
    for (size_t i = 0; i + 1 < rest.size;) {
        const uint8_t *zero = memchr(rest.data + i, 0, rest.size - 1 - i);
        if (zero == NULL)
            return 0;
        i = (size_t)(zero - rest.data) + 2;
        if (zero[1] == 0)
            return i + 8 <= rest.size ? i + 8 : 0;
    }
    return 0;
}

bool tarn_table__parse_bucket(struct tarn_slice bucket_key, struct tarn_arena *arena,
                              struct tarn_slice *partition, int32_t *bucket)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    int64_t number;
    if (!tarn_key_take_bytes(&bucket_key, &bytes) || !tarn_key_take_i64(&bucket_key, &number) ||
        number < INT32_MIN || number > INT32_MAX)
        return false;
    *partition = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    *bucket = (int32_t)number;
    return true;
}

void tarn_table__range_end(const char *uuid, struct tarn_slice bucket_key, struct tarn_buf *to)
{
    add_uuid(to, uuid);
    tarn_buf_add_slice(to, bucket_key);
    tarn_buf_add_byte(
        to, 0xff); /* above every key: parts begin with a sign byte, an arity or a letter */
}

/* --- values --- */

void tarn_table__live_value(const struct tarn_manifest_entry *entry, int64_t added_by,
                            struct tarn_buf *value)
{
    tarn_key_add_i64(value, added_by);
    tarn_manifest_entry_pack(entry, false, value);
}

bool tarn_table__split_value(struct tarn_slice value, int64_t *added_by, struct tarn_slice *packed)
{
    *packed = value;
    return tarn_key_take_i64(packed, added_by);
}

int32_t tarn_table__peek_total_buckets(struct tarn_slice value)
{
    const uint8_t *cursor = value.data + 10, *end = value.data + value.size;
    int64_t kind, bucket, total; /* as tarn_manifest_entry_pack begins */
    if (value.size < 10 || !tarn_avro_take_long(&cursor, end, &kind) ||
        !tarn_avro_take_long(&cursor, end, &bucket) || !tarn_avro_take_long(&cursor, end, &total))
        return 0;
    return total > 0 && total <= INT32_MAX ? (int32_t)total : 0;
}

static struct tarn_status *damaged_value(struct tarn_slice value)
{
    return tarn_status_new(TARN_STATE_DAMAGED, "an entry of the file index is %zu bytes",
                           value.size);
}

struct tarn_status *tarn_table__live_decode(struct tarn_slice value, struct tarn_arena *arena,
                                            struct tarn_live *out)
{
    struct tarn_slice packed;
    if (!tarn_table__split_value(value, &out->added_by, &packed))
        return damaged_value(value);
    out->removed_by = 0;
    return tarn_manifest_entry_view(tarn_arena_copy(arena, packed), arena, &out->entry);
}

/* --- finding --- */

/* When the live file of this identity was made; *found false: there is none. */
static struct tarn_status *find_made(struct tarn_table *table, struct tarn_slice name_key,
                                     bool *found, int64_t *made)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_NAMES, name_key, found, &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    return *found && !tarn_key_take_i64(&rest, made) ? damaged_value(rest) : TARN_OK;
}

struct tarn_status *tarn_table__live_find(struct tarn_table *table,
                                          const struct tarn_manifest_entry *entry,
                                          struct tarn_arena *arena, bool *found,
                                          struct tarn_live *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    struct tarn_manifest_entry there = *entry;
    tarn_table__name_key(table->uuid, entry, &key);
    TARN_TRY(find_made(table, tarn_buf_slice(&key), found, &there.file.creation_time_ms));
    if (!*found)
        return TARN_OK;
    tarn_buf_clear(&key);
    tarn_table__live_key(table->uuid, &there, &key);
    TARN_TRY(
        tarn_state_get(table->env->state, TARN_FAMILY_LIVE, tarn_buf_slice(&key), found, &value));
    return *found ? tarn_table__live_decode(tarn_buf_slice(&value), arena, out) : TARN_OK;
}

struct tarn_status *tarn_table__stats_find(struct tarn_table *table, const struct tarn_live *live,
                                           struct tarn_arena *arena,
                                           struct tarn_manifest_entry *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__live_key(table->uuid, &live->entry, &key);
    bool found;
    TARN_TRY(
        tarn_state_get(table->env->state, TARN_FAMILY_STATS, tarn_buf_slice(&key), &found, &value));
    if (!found)
        return tarn_status_new(TARN_STATE_DAMAGED,
                               "table %s: the index lacks the statistics of %.*s", table->name,
                               TARN_SLICE_ARG(live->entry.file.name));
    return tarn_manifest_entry_view(tarn_arena_copy(arena, tarn_buf_slice(&value)), arena, out);
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

/* --- one snapshot as a batch --- */

struct touched { /* an identity in the batch: the state doesn't show it yet */
    bool live;
    int64_t added_by, made;
};
struct live_change { /* for the pages */
    struct tarn_slice key;
    int count;
};

struct tarn_index_batch {
    struct tarn_table *table;
    struct tarn_state_batch *batch;
    struct tarn_map *touched; /* NAMES key -> struct touched */
    struct live_change *changes;
    size_t change_count, change_capacity, entry_count;
    int64_t snapshot_id; /* whose delta this is; 0: none */
    struct tarn_arena *arena;
};

struct tarn_index_batch *tarn_table__index_batch_new(struct tarn_table *table)
{
    struct tarn_index_batch *b = tarn_calloc(1, sizeof *b);
    b->table = table;
    b->batch = tarn_state_batch_new();
    b->touched = tarn_map_new();
    b->arena = tarn_arena_new();
    return b;
}

void tarn_table__index_batch_free(struct tarn_index_batch *b)
{
    if (b == NULL)
        return;
    tarn_state_batch_free(b->batch);
    tarn_map_free(b->touched);
    free(b->changes);
    tarn_arena_free(b->arena);
    free(b);
}

void tarn_table__index_batch_drop(struct tarn_index_batch **batch)
{
    tarn_table__index_batch_free(*batch);
    *batch = NULL;
}

static void put(struct tarn_index_batch *b, enum tarn_family family, const struct tarn_buf *key,
                const struct tarn_buf *value)
{
    tarn_state_batch_put(b->batch, b->table->env->state, family, tarn_buf_slice(key),
                         tarn_buf_slice(value));
}

static void take_away(struct tarn_index_batch *b, enum tarn_family family,
                      const struct tarn_buf *key)
{
    tarn_state_batch_remove(b->batch, b->table->env->state, family, tarn_buf_slice(key));
}

static void touch(struct tarn_index_batch *b, struct tarn_slice name_key, struct touched now)
{
    struct touched *t = tarn_arena_alloc(b->arena, sizeof *t);
    *t = now;
    tarn_map_set(b->touched, name_key, t);
}

static void note_change(struct tarn_index_batch *b, struct tarn_slice live_key, int count)
{
    TARN_GROW(b->changes, b->change_count, b->change_capacity);
    b->changes[b->change_count++] =
        (struct live_change){tarn_arena_copy(b->arena, live_key), count};
}

static void full_value(int64_t added_by, struct tarn_slice packed, struct tarn_buf *value)
{
    tarn_key_add_i64(value, added_by);
    tarn_buf_add_slice(value, packed);
}

static void batch_add(struct tarn_index_batch *b, const struct tarn_manifest_entry *entry,
                      int64_t added_by)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf change = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf full = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf made = {0};
    const char *uuid = b->table->uuid;
    tarn_table__live_key(uuid, entry, &key);
    tarn_table__name_key(uuid, entry, &name);
    tarn_table__live_value(entry, added_by, &value);
    tarn_manifest_entry_pack(entry, true, &full);
    tarn_key_add_i64(&made, entry->file.creation_time_ms);
    change_key(uuid, added_by, TARN_CHANGE_ADDED, entry, &change);
    note_change(b, tarn_buf_slice(&key), 1);
    touch(b, tarn_buf_slice(&name), (struct touched){true, added_by, entry->file.creation_time_ms});
    put(b, TARN_FAMILY_LIVE, &key, &value);
    put(b, TARN_FAMILY_NAMES, &name, &made);
    put(b, TARN_FAMILY_STATS, &key, &full);
    tarn_buf_clear(&value);
    full_value(added_by, tarn_buf_slice(&full), &value);
    put(b, TARN_FAMILY_CHANGES, &change, &value);
}

static struct tarn_status *find_live(struct tarn_index_batch *b,
                                     const struct tarn_manifest_entry *entry,
                                     struct tarn_slice name_key, bool *found, struct tarn_live *out)
{
    struct touched *t = tarn_map_find(b->touched, name_key);
    if (t == NULL)
        return tarn_table__live_find(b->table, entry, b->arena, found, out);
    *found = t->live;
    out->entry = *entry;
    out->entry.file.creation_time_ms = t->made;
    out->added_by = t->added_by;
    return TARN_OK;
}

/* added_by | the entry with statistics, of what was live before the batch. */
static struct tarn_status *stats_value(struct tarn_index_batch *b, const struct tarn_live *live,
                                       struct tarn_slice live_key, struct tarn_buf *value)
{
    bool found;
    tarn_key_add_i64(value, live->added_by);
    TARN_TRY(tarn_state_get(b->table->env->state, TARN_FAMILY_STATS, live_key, &found, value));
    return found ? TARN_OK
                 : tarn_status_new(TARN_STATE_DAMAGED,
                                   "table %s: the index lacks the statistics of %.*s",
                                   b->table->name, TARN_SLICE_ARG(live->entry.file.name));
}

/* *found false: the entry isn't live, so the index and the table disagree. */
static struct tarn_status *batch_remove(struct tarn_index_batch *b,
                                        const struct tarn_manifest_entry *entry, int64_t removed_by,
                                        bool *found)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf gone = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf change = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    const char *uuid = b->table->uuid;
    struct tarn_live live;
    tarn_table__name_key(uuid, entry, &name);
    TARN_TRY(find_live(b, entry, tarn_buf_slice(&name), found, &live));
    if (!*found)
        return TARN_OK;
    tarn_table__live_key(uuid, &live.entry, &key);
    note_change(b, tarn_buf_slice(&key), -1);
    touch(b, tarn_buf_slice(&name), (struct touched){.live = false});
    take_away(b, TARN_FAMILY_LIVE, &key);
    take_away(b, TARN_FAMILY_NAMES, &name);
    if (live.added_by == removed_by) { /* no snapshot ever shows it */
        change_key(uuid, removed_by, TARN_CHANGE_ADDED, &live.entry, &change);
        take_away(b, TARN_FAMILY_CHANGES, &change);
        take_away(b, TARN_FAMILY_STATS, &key);
        return TARN_OK;
    }
    TARN_TRY(stats_value(b, &live, tarn_buf_slice(&key), &value));
    take_away(b, TARN_FAMILY_STATS, &key);
    removed_key(uuid, &live.entry, removed_by, live.added_by, &gone);
    change_key(uuid, removed_by, TARN_CHANGE_REMOVED, &live.entry, &change);
    tarn_key_add_i64(&change, live.added_by);
    put(b, TARN_FAMILY_REMOVED, &gone, &value);
    put(b, TARN_FAMILY_CHANGES, &change, &value);
    return TARN_OK;
}

struct tarn_status *tarn_table__index_batch_write(struct tarn_index_batch *b)
{
    struct tarn_table *table = b->table;
    pthread_mutex_lock(&table->index_lock);
    struct tarn_status *s = tarn_state_write(table->env->state, b->batch, false);
    tarn_table__pages_reached(table, b->snapshot_id);
    for (size_t i = 0; i < b->change_count;
         i++) /* after a failure too: who knows what is written */
        tarn_table__pages_changed(table, b->changes[i].key, b->changes[i].count);
    pthread_mutex_unlock(&table->index_lock);
    tarn_state_batch_free(b->batch);
    tarn_map_free(b->touched);
    tarn_arena_free(b->arena);
    b->batch = tarn_state_batch_new();
    b->touched = tarn_map_new();
    b->arena = tarn_arena_new();
    b->change_count = b->entry_count = 0;
    return s;
}

/* A plan of the snapshot before sees the same through half a delta: what is added it skips, what is removed it
 * finds among the removed. So a large one needn't be one batch. */
static struct tarn_status *write_if_large(struct tarn_index_batch *b)
{
    return ++b->entry_count < TARN_INDEX_BATCH_ENTRIES ? TARN_OK : tarn_table__index_batch_write(b);
}

struct tarn_status *tarn_table__index_batch_entries(struct tarn_index_batch *b, int64_t snapshot_id,
                                                    const struct tarn_manifest_entry *entries,
                                                    size_t count, bool lenient)
{
    b->snapshot_id = snapshot_id;
    for (size_t i = 0; i < count; i++) {
        bool found = true;
        if (entries[i].kind == TARN_ENTRY_ADD)
            batch_add(b, &entries[i], snapshot_id);
        else
            TARN_TRY(batch_remove(b, &entries[i], snapshot_id, &found));
        if (!found && !lenient)
            return tarn_status_new(TARN_MANIFEST_MALFORMED,
                                   "table %s: snapshot %" PRId64 " deletes %.*s, which is not live",
                                   b->table->name, snapshot_id,
                                   TARN_SLICE_ARG(entries[i].file.name));
        TARN_TRY(write_if_large(b));
    }
    return TARN_OK;
}

void tarn_table__index_batch_changelog(struct tarn_index_batch *b, int64_t snapshot_id,
                                       const struct tarn_manifest_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
        change_key(b->table->uuid, snapshot_id, TARN_CHANGE_CHANGELOG, &entries[i], &key);
        tarn_key_add_i64(&value, snapshot_id);
        tarn_manifest_entry_pack(&entries[i], true, &value);
        put(b, TARN_FAMILY_CHANGES, &key, &value);
    }
}

void tarn_table__index_batch_snapshot(struct tarn_index_batch *b,
                                      const struct tarn_snapshot *snapshot, struct tarn_slice json,
                                      const struct tarn_delta *delta)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf head_key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf head = {0};
    snapshot_key(b->table->uuid, snapshot->id, &key);
    tarn_table__tagged_key(b->table->uuid, 'h', &head_key);
    tarn_key_add_i64(&head, snapshot->id);
    tarn_key_add_u64(&head, tarn_xxh64(json, 0));
    tarn_key_add_u64(&head, TARN_INDEX_LAYOUT);
    tarn_state_batch_put(b->batch, b->table->env->state, TARN_FAMILY_SNAPSHOTS,
                         tarn_buf_slice(&key), json);
    put(b, TARN_FAMILY_SNAPSHOTS, &head_key, &head);
    tarn_table__receipts_add(b->batch, b->table, snapshot, delta);
}

struct tarn_status *tarn_table__index_add(struct tarn_op *op, struct tarn_table *table,
                                          const struct tarn_snapshot *snapshot,
                                          struct tarn_slice json, const struct tarn_delta *delta)
{
    TARN_OWN(tarn_table__index_batch_drop)
    struct tarn_index_batch *b = tarn_table__index_batch_new(table);
    TARN_TRY(tarn_table__index_batch_entries(b, snapshot->id, delta->entries, delta->count, false));
    tarn_table__index_batch_changelog(b, snapshot->id, delta->changelog, delta->changelog_count);
    tarn_table__index_batch_snapshot(b, snapshot, json, delta);
    return tarn_table__index_batch_write(b);
}

struct tarn_status *tarn_table__indexed_id(struct tarn_table *table, int64_t *id,
                                           uint64_t *json_hash)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__tagged_key(table->uuid, 'h', &key);
    bool found;
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_SNAPSHOTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    uint64_t layout = 0;
    *id = 0;
    if (found && (!tarn_key_take_i64(&rest, id) || !tarn_key_take_u64(&rest, json_hash)))
        return tarn_status_new(TARN_STATE_DAMAGED, "table %s: the index's mark is %zu bytes",
                               table->name, value.size);
    if (found && (!tarn_key_take_u64(&rest, &layout) || layout != TARN_INDEX_LAYOUT))
        *json_hash = ~*json_hash; /* of another program: it stands for nothing, and is built anew */
    return TARN_OK;
}

struct tarn_status *tarn_table__indexed_snapshot(struct tarn_table *table, int64_t id, bool *found,
                                                 struct tarn_buf *json)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    snapshot_key(table->uuid, id, &key);
    return tarn_state_get(table->env->state, TARN_FAMILY_SNAPSHOTS, tarn_buf_slice(&key), found,
                          json);
}

/* --- the end of entries --- */

static void remove_all(struct tarn_index_batch *b, enum tarn_family family)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    add_uuid(&from, b->table->uuid);
    tarn_table__range_end(b->table->uuid, tarn_slice_str(NULL), &to);
    tarn_state_batch_remove_range(b->batch, b->table->env->state, family, tarn_buf_slice(&from),
                                  tarn_buf_slice(&to));
}

struct tarn_status *tarn_table__index_clear(struct tarn_table *table, bool receipts_too)
{
    TARN_OWN(tarn_table__index_batch_drop)
    struct tarn_index_batch *b = tarn_table__index_batch_new(table);
    static const enum tarn_family always[] = {TARN_FAMILY_LIVE,    TARN_FAMILY_STATS,
                                              TARN_FAMILY_NAMES,   TARN_FAMILY_REMOVED,
                                              TARN_FAMILY_CHANGES, TARN_FAMILY_SNAPSHOTS};
    static const enum tarn_family else_kept[] = {TARN_FAMILY_RECEIPTS, TARN_FAMILY_SEQUENCES,
                                                 TARN_FAMILY_PINS};
    for (size_t i = 0; i < TARN_COUNT_OF(always); i++)
        remove_all(b, always[i]);
    for (size_t i = 0; receipts_too && i < TARN_COUNT_OF(else_kept); i++)
        remove_all(b, else_kept[i]);
    tarn_table__set_whole(table, false); /* before: no plan may take what is left for all */
    pthread_mutex_lock(&table->index_lock);
    struct tarn_status *s = tarn_state_write(table->env->state, b->batch, false);
    tarn_table__pages_forget(table);
    pthread_mutex_unlock(&table->index_lock);
    return s;
}

/* What `removed_by` took away: no snapshot that is retained sees it any more. */
static struct tarn_status *forget_removed_by(struct tarn_index_batch *b, struct tarn_slice key,
                                             struct tarn_slice value)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf gone = {0};
    struct tarn_slice rest =
        tarn_slice_of(key.data + TARN_INDEX_UUID_SIZE, key.size - TARN_INDEX_UUID_SIZE);
    int64_t removed_by;
    struct tarn_live live;
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    if (!tarn_key_take_i64(&rest, &removed_by))
        return damaged_value(value);
    TARN_TRY(tarn_table__live_decode(value, arena, &live));
    removed_key(b->table->uuid, &live.entry, removed_by, live.added_by, &gone);
    take_away(b, TARN_FAMILY_REMOVED, &gone);
    tarn_state_batch_remove(b->batch, b->table->env->state, TARN_FAMILY_CHANGES, key);
    return write_if_large(b);
}

/* Walks CHANGES from snapshot 0 to the removals of `earliest`; what `earliest` itself added stays. */
static struct tarn_status *forget_changes(struct tarn_index_batch *b, int64_t earliest)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf kept = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf removals = {0};
    tarn_table__change_prefix(b->table->uuid, 0, TARN_CHANGE_ADDED, &from);
    tarn_table__change_prefix(b->table->uuid, earliest, TARN_CHANGE_ADDED, &kept);
    tarn_table__change_prefix(b->table->uuid, earliest, TARN_CHANGE_REMOVED, &removals);
    tarn_table__change_prefix(b->table->uuid, earliest, TARN_CHANGE_REMOVED + 1, &to);
    struct tarn_state_range range = {.from = tarn_buf_slice(&from), .to = tarn_buf_slice(&to)};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(b->table->env->state, TARN_FAMILY_CHANGES, &range);
    struct tarn_slice key, value;
    bool skipped = false;
    while (tarn_state_iterator_next(it, &key, &value)) {
        if (!skipped && tarn_slice_compare(key, tarn_buf_slice(&kept)) >= 0 &&
            tarn_slice_compare(key, tarn_buf_slice(&removals)) < 0) {
            tarn_state_iterator_seek(it, tarn_buf_slice(&removals));
            skipped = true;
            continue;
        }
        if (key.data[TARN_INDEX_UUID_SIZE + 8] == TARN_CHANGE_REMOVED)
            TARN_TRY(forget_removed_by(b, key, value));
    }
    tarn_state_batch_remove_range(b->batch, b->table->env->state, TARN_FAMILY_CHANGES,
                                  tarn_buf_slice(&from), tarn_buf_slice(&kept));
    return tarn_state_iterator_error(it);
}

struct tarn_status *tarn_table__index_forget_below(struct tarn_op *op, struct tarn_table *table,
                                                   int64_t earliest)
{
    TARN_OWN(tarn_table__index_batch_drop)
    struct tarn_index_batch *b = tarn_table__index_batch_new(table);
    pthread_mutex_lock(&table->index_lock); /* before: plans of them must not find half */
    tarn_table__pages_expire(table, earliest);
    pthread_mutex_unlock(&table->index_lock);
    TARN_TRY(forget_changes(b, earliest));
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    snapshot_key(table->uuid, 0, &from);
    snapshot_key(table->uuid, earliest - 1,
                 &to); /* which one `earliest` was put upon stays known */
    tarn_state_batch_remove_range(b->batch, table->env->state, TARN_FAMILY_SNAPSHOTS,
                                  tarn_buf_slice(&from), tarn_buf_slice(&to));
    return tarn_table__index_batch_write(b);
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
