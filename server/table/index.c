#include "table/index.h"

#include "table/internal.h"

/*
 * The file index: which entries are live, which were removed and by which snapshot, and what each snapshot changed.
 *
 *   LIVE      uuid | partition | bucket | level | made | name | hash of identity -> added_by | entry without statistics
 *   STATS     the LIVE key                                                   -> statistics
 *   NAMES     uuid | partition | bucket | level | name | hash of identity    -> made
 *   REMOVED   uuid | partition | bucket | removed_by | level | made | name | hash | added_by
 *                                                       -> added_by | entry with statistics
 *   CHANGES   uuid | snapshot | 'a', 'c' or 'r' | the LIVE key's rest [| added_by]  -> as REMOVED
 *   SNAPSHOTS uuid | 's' | id -> the snapshot's JSON;  uuid | 'h' -> id and hash of the newest indexed one, layout
 *   RECEIPTS  receipts.c
 *   SEQUENCES uuid | partition | bucket -> next number
 *   PINS      pins.c
 *   PAGES     page_records.c
 *   SNAPSHOTS uuid | 't' or 'p'   totals.c
 *
 * `made` is the file's creation time: files that were written together lie together, in order of keys or of arrival,
 * so that what is known of a stretch of them rules out many at once. Who has only a name finds it through NAMES.
 * STATS has what LIVE has, in the same order, so that who wants both walks them in step: the two values, one behind the
 * other, are the entry with its statistics, which is what REMOVED and CHANGES keep. A plan at snapshot N is: LIVE with added_by <= N, and REMOVED with removed_by > N and added_by <= N.
 */

/* --- finding --- */

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

#define FIND_MANY 50 /* so many looks pay for a walk */

struct placed { /* an entry of a delta, and where it says it lies */
    struct tarn_slice key;
    const struct tarn_manifest_entry *entry;
    struct tarn_slice value; /* what was found there: LIVE's value, and STATS' behind it */
};

struct touched { /* an identity in the batch: the state doesn't show it yet */
    bool live;
    int64_t added_by, made;
};
struct live_change { /* for the pages */
    struct tarn_slice key;
    int count;
    struct tarn_file_change file;
};

struct tarn_index_batch {
    struct tarn_table *table;
    struct tarn_state_batch *batch;
    struct tarn_map *touched; /* NAMES key -> struct touched */
    struct tarn_map *totals;  /* partition -> sums (totals.c) */
    struct live_change *changes;
    size_t change_count, change_capacity, entry_count;
    int64_t snapshot_id; /* whose delta this is; 0: none */
    int64_t reached_id;  /* whose record this batch has; 0: none */
    struct tarn_arena *arena;
};

struct tarn_index_batch *tarn_table__index_batch_new(struct tarn_table *table)
{
    struct tarn_index_batch *b = tarn_calloc(1, sizeof *b);
    b->table = table;
    b->batch = tarn_state_batch_new();
    b->touched = tarn_map_new();
    b->totals = tarn_map_new();
    b->arena = tarn_arena_new();
    return b;
}

void tarn_table__index_batch_free(struct tarn_index_batch *b)
{
    if (b == NULL)
        return;
    tarn_state_batch_free(b->batch);
    tarn_map_free(b->touched);
    tarn_map_free(b->totals);
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

static void note_change(struct tarn_index_batch *b, struct tarn_slice live_key, int count,
                        const struct tarn_data_file *f)
{
    TARN_GROW(b->changes, b->change_count, b->change_capacity);
    struct live_change *c = &b->changes[b->change_count++];
    *c = (struct live_change){.key = tarn_arena_copy(b->arena, live_key), .count = count};
    c->file = tarn_file_change_of(f, count > 0);
}

static void batch_add(struct tarn_index_batch *b, const struct tarn_manifest_entry *entry,
                      int64_t added_by)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf change = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf stats = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf made = {0};
    const char *uuid = b->table->uuid;
    tarn_table__live_key(uuid, entry, &key);
    tarn_table__name_key(uuid, entry, &name);
    tarn_table__live_value(entry, added_by, &value);
    tarn_manifest_stats_pack(&entry->file, &stats);
    tarn_key_add_i64(&made, entry->file.creation_time_ms);
    tarn_table__change_key(uuid, added_by, TARN_CHANGE_ADDED, entry, &change);
    note_change(b, tarn_buf_slice(&key), 1, &entry->file);
    tarn_table__totals_note(b->totals, b->arena, entry->partition, entry, 1, added_by);
    touch(b, tarn_buf_slice(&name), (struct touched){true, added_by, entry->file.creation_time_ms});
    put(b, TARN_FAMILY_LIVE, &key, &value);
    put(b, TARN_FAMILY_NAMES, &name, &made);
    put(b, TARN_FAMILY_STATS, &key, &stats);
    tarn_buf_add_slice(&value, tarn_buf_slice(&stats));
    put(b, TARN_FAMILY_CHANGES, &change, &value);
}

/* --- what a delta deletes --- */

/* Many are found by a walk over LIVE and STATS in step, for a fraction of what a look for each would cost. */
static struct tarn_status *find_many(struct tarn_index_batch *b, struct placed *list, size_t count)
{
    struct tarn_state *state = b->table->env->state;
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    /* From the first on: what batches before removed lies below, and would be stepped over. */
    tarn_table__range_end(b->table->uuid, tarn_slice_str(NULL), &to);
    struct tarn_state_range range = {.from = list[0].key, .to = tarn_buf_slice(&to)};
    struct tarn_slice live, stats;
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *lives = tarn_state_iterator_open(state, TARN_FAMILY_LIVE, &range);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *all_stats =
        tarn_state_iterator_open(state, TARN_FAMILY_STATS, &range);
    for (size_t i = 0; i < count; i++) {
        if (!tarn_state_iterator_find(lives, list[i].key, &live) ||
            !tarn_state_iterator_find(all_stats, list[i].key, &stats))
            continue;
        tarn_buf_clear(&value);
        tarn_buf_add_slice(&value, live);
        tarn_buf_add_slice(&value, stats);
        list[i].value = tarn_arena_copy(b->arena, tarn_buf_slice(&value));
    }
    TARN_TRY(tarn_state_iterator_error(lives));
    return tarn_state_iterator_error(all_stats);
}

/* Is it where its entry says? Then *value is LIVE's and STATS' one behind the other. */
static struct tarn_status *find_there(struct tarn_index_batch *b,
                                      const struct tarn_manifest_entry *entry, bool *found,
                                      struct tarn_buf *value)
{
    struct tarn_state *state = b->table->env->state;
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__live_key(b->table->uuid, entry, &key);
    TARN_TRY(tarn_state_get(state, TARN_FAMILY_LIVE, tarn_buf_slice(&key), found, value));
    if (!*found)
        return TARN_OK;
    bool has_stats;
    TARN_TRY(tarn_state_get(state, TARN_FAMILY_STATS, tarn_buf_slice(&key), &has_stats, value));
    return has_stats ? TARN_OK
                     : tarn_status_new(TARN_STATE_DAMAGED,
                                       "table %s: the index lacks the statistics of %.*s",
                                       b->table->name, TARN_SLICE_ARG(entry->file.name));
}

/* What is live under this identity: *made, and *value as above. A DELETE needn't know when its file was made. */
static struct tarn_status *find_live(struct tarn_index_batch *b,
                                     const struct tarn_manifest_entry *entry,
                                     struct tarn_slice name_key, struct tarn_slice hit, bool *found,
                                     int64_t *made, struct tarn_buf *value)
{
    struct tarn_manifest_entry there = *entry;
    *made = entry->file.creation_time_ms;
    *found = hit.data != NULL;
    if (*found)
        tarn_buf_add_slice(value, hit);
    else
        TARN_TRY(find_there(b, entry, found, value));
    if (*found)
        return TARN_OK;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    TARN_TRY(tarn_state_get(b->table->env->state, TARN_FAMILY_NAMES, name_key, found, &bytes));
    struct tarn_slice rest = tarn_buf_slice(&bytes);
    if (!*found)
        return TARN_OK;
    if (!tarn_key_take_i64(&rest, made))
        return tarn_table__damaged_value(rest);
    there.file.creation_time_ms = *made;
    return find_there(b, &there, found, value);
}

/* It was added by the same snapshot: none ever shows it. */
static void forget_added(struct tarn_index_batch *b, const struct tarn_manifest_entry *live,
                         const struct tarn_buf *live_key, int64_t snapshot_id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf change = {0};
    tarn_table__change_key(b->table->uuid, snapshot_id, TARN_CHANGE_ADDED, live, &change);
    take_away(b, TARN_FAMILY_CHANGES, &change);
    take_away(b, TARN_FAMILY_STATS, live_key);
}

/* packed: what the index has of it; absent: it came with the same batch, and its entry says the same. */
static struct tarn_status *note_removed(struct tarn_index_batch *b, struct tarn_slice packed,
                                        const struct tarn_manifest_entry *entry,
                                        struct tarn_slice live_key)
{
    struct tarn_manifest_entry there = *entry;
    if (packed.data != NULL)
        TARN_TRY(tarn_manifest_entry_view(packed, NULL, &there));
    tarn_table__totals_note(b->totals, b->arena, entry->partition, &there, -1, 0);
    note_change(b, live_key, -1, &there.file);
    return TARN_OK;
}

/* *found false: the entry isn't live, so the index and the table disagree. */
static struct tarn_status *batch_remove(struct tarn_index_batch *b, const struct placed *placed,
                                        int64_t removed_by, bool *found)
{
    const struct tarn_manifest_entry *entry = placed->entry;
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf gone = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf change = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    const char *uuid = b->table->uuid;
    struct tarn_manifest_entry live = *entry;
    int64_t added_by = removed_by;
    tarn_table__name_key(uuid, entry, &name);
    const struct touched *t = tarn_map_find(b->touched, tarn_buf_slice(&name));
    if (t != NULL) {
        *found = t->live;
        live.file.creation_time_ms = t->made;
        added_by = t->added_by;
    } else {
        TARN_TRY(find_live(b, entry, tarn_buf_slice(&name), placed->value, found,
                           &live.file.creation_time_ms, &value));
    }
    if (!*found)
        return TARN_OK;
    struct tarn_slice packed = {0};
    if (t == NULL && !tarn_table__split_value(tarn_buf_slice(&value), &added_by, &packed))
        return tarn_table__damaged_value(tarn_buf_slice(&value));
    tarn_table__live_key(uuid, &live, &key);
    TARN_TRY(
        note_removed(b, t == NULL ? packed : tarn_slice_str(NULL), entry, tarn_buf_slice(&key)));
    touch(b, tarn_buf_slice(&name), (struct touched){.live = false});
    take_away(b, TARN_FAMILY_LIVE, &key);
    take_away(b, TARN_FAMILY_NAMES, &name);
    if (added_by == removed_by) {
        forget_added(b, &live, &key, removed_by);
        return TARN_OK;
    }
    take_away(b, TARN_FAMILY_STATS, &key);
    tarn_table__removed_key(uuid, &live, removed_by, added_by, &gone);
    tarn_table__change_key(uuid, removed_by, TARN_CHANGE_REMOVED, &live, &change);
    tarn_key_add_i64(&change, added_by);
    put(b, TARN_FAMILY_REMOVED, &gone, &value);
    put(b, TARN_FAMILY_CHANGES, &change, &value);
    return TARN_OK;
}

struct tarn_status *tarn_table__index_batch_write(struct tarn_index_batch *b)
{
    struct tarn_table *table = b->table;
    if (b->change_count > 0)
        TARN_TRY(tarn_table__pages_need(table));
    TARN_TRY(tarn_table__totals_apply(table, b->batch, b->totals, b->reached_id));
    pthread_mutex_lock(&table->index_lock);
    for (size_t i = 0; i < b->change_count; i++)
        tarn_table__pages_changing(table, b->batch, b->changes[i].key);
    struct tarn_status *s = tarn_state_write(table->env->state, b->batch, false);
    tarn_table__pages_reached(table, b->snapshot_id);
    int64_t stamp = tarn_table__pages_stamp(table);
    for (size_t i = 0; i < b->change_count;
         i++) { /* after a failure too: who knows what is written */
        struct live_change *c = &b->changes[i];
        c->file.stamp = stamp;
        tarn_table__pages_changed(table, c->key, c->count, &c->file, s == TARN_OK);
    }
    pthread_mutex_unlock(&table->index_lock);
    tarn_state_batch_free(b->batch);
    tarn_map_free(b->touched);
    tarn_map_free(b->totals);
    tarn_arena_free(b->arena);
    b->batch = tarn_state_batch_new();
    b->touched = tarn_map_new();
    b->totals = tarn_map_new();
    b->reached_id = 0;
    b->arena = tarn_arena_new();
    b->change_count = b->entry_count = 0;
    return s;
}

/* How far the index is. */
static void put_mark(struct tarn_index_batch *b, int64_t id, uint64_t json_hash, uint64_t layout)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__tagged_key(b->table->uuid, 'h', &key);
    tarn_key_add_i64(&value, id);
    tarn_key_add_u64(&value, json_hash);
    tarn_key_add_u64(&value, layout);
    put(b, TARN_FAMILY_SNAPSHOTS, &key, &value);
}

/* A large delta is written in several batches. Until the last of them the index stands for no snapshot: where the end
 * doesn't come, it is built anew. */
static struct tarn_status *mark_unfinished(struct tarn_index_batch *b)
{
    int64_t id;
    uint64_t hash = 0;
    TARN_TRY(tarn_table__indexed_id(b->table, &id, &hash));
    if (id != 0)
        put_mark(b, id, 0, TARN_INDEX_UNFINISHED);
    return TARN_OK;
}

/* A plan of the snapshot before sees the same through half a delta: what is added it skips, what is removed it
 * finds among the removed. So a large one needn't be one batch. */
static struct tarn_status *write_if_large(struct tarn_index_batch *b)
{
    if (b->entry_count < TARN_INDEX_BATCH_ENTRIES)
        return TARN_OK;
    TARN_TRY(mark_unfinished(b));
    return tarn_table__index_batch_write(b);
}

static int by_key(const void *a, const void *b)
{
    const struct placed *left = a, *right = b;
    int c = tarn_slice_compare(left->key, right->key);
    return c != 0 ? c : (left->entry > right->entry) - (left->entry < right->entry);
}

/* Entries of one kind, whose order doesn't matter: in that of the index they are found, and written, far faster. */
static struct tarn_status *batch_run(struct tarn_index_batch *b, int64_t snapshot_id,
                                     const struct tarn_manifest_entry *entries, size_t count,
                                     bool lenient)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    struct placed *list = tarn_arena_calloc(b->arena, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        tarn_buf_clear(&key);
        tarn_table__live_key(b->table->uuid, &entries[i], &key);
        list[i].key = tarn_arena_copy(b->arena, tarn_buf_slice(&key));
        list[i].entry = &entries[i];
    }
    qsort(list, count, sizeof *list, by_key);
    if (entries->kind == TARN_ENTRY_DELETE && count >= FIND_MANY)
        TARN_TRY(find_many(b, list, count));
    for (size_t i = 0; i < count; i++) {
        bool found = true;
        if (entries->kind == TARN_ENTRY_ADD)
            batch_add(b, list[i].entry, snapshot_id);
        else
            TARN_TRY(batch_remove(b, &list[i], snapshot_id, &found));
        if (!found && !lenient)
            return tarn_status_new(TARN_MANIFEST_MALFORMED,
                                   "table %s: snapshot %" PRId64 " deletes %.*s, which is not live",
                                   b->table->name, snapshot_id,
                                   TARN_SLICE_ARG(list[i].entry->file.name));
    }
    return TARN_OK;
}

/* As many as fill the batch. */
static struct tarn_status *batch_some(struct tarn_index_batch *b, int64_t snapshot_id,
                                      const struct tarn_manifest_entry *entries, size_t count,
                                      bool lenient)
{
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && entries[end].kind == entries[begin].kind;)
            end++;
        TARN_TRY(batch_run(b, snapshot_id, entries + begin, end - begin, lenient));
    }
    b->entry_count += count;
    return write_if_large(b);
}

struct tarn_status *tarn_table__index_batch_entries(struct tarn_index_batch *b, int64_t snapshot_id,
                                                    const struct tarn_manifest_entry *entries,
                                                    size_t count, bool lenient)
{
    b->snapshot_id = snapshot_id;
    for (size_t done = 0; done < count;) {
        size_t some = TARN_MIN(count - done, TARN_INDEX_BATCH_ENTRIES - b->entry_count);
        TARN_TRY(batch_some(b, snapshot_id, entries + done, some, lenient));
        done += some;
    }
    return TARN_OK;
}

struct tarn_status *tarn_table__index_batch_changelog(struct tarn_index_batch *b,
                                                      int64_t snapshot_id,
                                                      const struct tarn_manifest_entry *entries,
                                                      size_t count)
{
    b->snapshot_id = snapshot_id;
    for (size_t i = 0; i < count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
        tarn_table__change_key(b->table->uuid, snapshot_id, TARN_CHANGE_CHANGELOG, &entries[i],
                               &key);
        tarn_key_add_i64(&value, snapshot_id);
        tarn_manifest_entry_pack(&entries[i], true, &value);
        put(b, TARN_FAMILY_CHANGES, &key, &value);
        b->entry_count++;
        TARN_TRY(write_if_large(b));
    }
    return TARN_OK;
}

void tarn_table__index_batch_no_changelog(struct tarn_index_batch *b, int64_t snapshot_id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_table__change_prefix(b->table->uuid, snapshot_id, TARN_CHANGE_CHANGELOG, &from);
    tarn_table__change_prefix(b->table->uuid, snapshot_id, TARN_CHANGE_CHANGELOG + 1, &to);
    tarn_state_batch_remove_range(b->batch, b->table->env->state, TARN_FAMILY_CHANGES,
                                  tarn_buf_slice(&from), tarn_buf_slice(&to));
}

void tarn_table__index_batch_snapshot(struct tarn_index_batch *b,
                                      const struct tarn_snapshot *snapshot, struct tarn_slice json,
                                      const struct tarn_delta *delta)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__snapshot_key(b->table->uuid, snapshot->id, &key);
    tarn_state_batch_put(b->batch, b->table->env->state, TARN_FAMILY_SNAPSHOTS,
                         tarn_buf_slice(&key), json);
    put_mark(b, snapshot->id, tarn_xxh64(json, 0), TARN_INDEX_LAYOUT);
    b->snapshot_id = b->reached_id = snapshot->id; /* also where it changed nothing */
    tarn_table__receipts_add(b->batch, b->table, snapshot, delta);
}

struct tarn_status *tarn_table__index_add(struct tarn_op *op, struct tarn_table *table,
                                          const struct tarn_snapshot *snapshot,
                                          struct tarn_slice json, const struct tarn_delta *delta)
{
    TARN_OWN(tarn_table__index_batch_drop)
    struct tarn_index_batch *b = tarn_table__index_batch_new(table);
    TARN_TRY(tarn_table__index_batch_entries(b, snapshot->id, delta->entries, delta->count, false));
    TARN_TRY(tarn_table__index_batch_changelog(b, snapshot->id, delta->changelog,
                                               delta->changelog_count));
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

struct tarn_status *tarn_table__indexed_first(struct tarn_table *table, int64_t *id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__tagged_key(table->uuid, 's', &prefix);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_SNAPSHOTS, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    *id = 0;
    if (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_slice rest = tarn_slice_of(key.data + prefix.size, key.size - prefix.size);
        if (!tarn_key_take_i64(&rest, id))
            return tarn_table__damaged_value(value);
    }
    return tarn_state_iterator_error(it);
}

struct tarn_status *tarn_table__indexed_snapshot(struct tarn_table *table, int64_t id, bool *found,
                                                 struct tarn_buf *json)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__snapshot_key(table->uuid, id, &key);
    return tarn_state_get(table->env->state, TARN_FAMILY_SNAPSHOTS, tarn_buf_slice(&key), found,
                          json);
}

/* --- the end of entries --- */

static void remove_all(struct tarn_index_batch *b, enum tarn_family family)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_buf_add(&from, b->table->uuid, TARN_INDEX_UUID_SIZE);
    tarn_table__range_end(b->table->uuid, tarn_slice_str(NULL), &to);
    tarn_state_batch_remove_range(b->batch, b->table->env->state, family, tarn_buf_slice(&from),
                                  tarn_buf_slice(&to));
}

struct tarn_status *tarn_table__index_clear(struct tarn_table *table, bool receipts_too)
{
    TARN_OWN(tarn_table__index_batch_drop)
    struct tarn_index_batch *b = tarn_table__index_batch_new(table);
    static const enum tarn_family always[] = {
        TARN_FAMILY_LIVE,    TARN_FAMILY_STATS,     TARN_FAMILY_NAMES, TARN_FAMILY_REMOVED,
        TARN_FAMILY_CHANGES, TARN_FAMILY_SNAPSHOTS, TARN_FAMILY_PAGES};
    static const enum tarn_family else_kept[] = {TARN_FAMILY_RECEIPTS, TARN_FAMILY_SEQUENCES,
                                                 TARN_FAMILY_PINS};
    for (size_t i = 0; i < TARN_COUNT_OF(always); i++)
        remove_all(b, always[i]);
    for (size_t i = 0; receipts_too && i < TARN_COUNT_OF(else_kept); i++)
        remove_all(b, else_kept[i]);
    tarn_table__set_whole(table, false); /* before: no plan may take what is left for all */
    pthread_mutex_lock(&table->index_lock);
    struct tarn_status *s = tarn_state_write(table->env->state, b->batch, false);
    tarn_table__totals_forget(table);
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
        return tarn_table__damaged_value(value);
    TARN_TRY(tarn_table__live_decode(value, arena, &live));
    tarn_table__removed_key(b->table->uuid, &live.entry, removed_by, live.added_by, &gone);
    take_away(b, TARN_FAMILY_REMOVED, &gone);
    tarn_state_batch_remove(b->batch, b->table->env->state, TARN_FAMILY_CHANGES, key);
    b->entry_count++;
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
    tarn_table__snapshot_key(table->uuid, 0, &from);
    tarn_table__snapshot_key(table->uuid, earliest - 1,
                             &to); /* which one `earliest` was put upon stays known */
    tarn_state_batch_remove_range(b->batch, table->env->state, TARN_FAMILY_SNAPSHOTS,
                                  tarn_buf_slice(&from), tarn_buf_slice(&to));
    return tarn_table__index_batch_write(b);
}
