#include "table/index.h"

#include "table/internal.h"

/*
 * The index from the folder: what the earliest snapshot was made from as a whole, then what each one changed. Memory is
 * bounded: so many entries at a time are packed, sorted and loaded past the log.
 */

#define LOAD_ENTRIES 50000    /* at a time: some 50 MiB */
#define LOAD_ENTRIES_MIN 5000 /* fewer go through the log */

/* --- loading --- */

struct record {
    uint64_t
        head; /* the first bytes in which keys differ, as a number: most comparisons end there */
    struct tarn_slice key, value, other; /* other: what a second family has under the same key */
};

static int by_key(const void *a, const void *b)
{
    const struct record *left = a, *right = b;
    if (left->head != right->head)
        return left->head < right->head ? -1 : 1;
    return tarn_slice_compare(left->key, right->key);
}

static size_t common_size(const struct record *records, size_t count)
{
    size_t common = count == 0 ? 0 : records[0].key.size;
    for (size_t i = 1; i < count; i++) {
        size_t size = TARN_MIN(common, records[i].key.size), n = 0;
        while (n < size && records[i].key.data[n] == records[0].key.data[n])
            n++;
        common = n;
    }
    return common;
}

static void sort_records(struct record *records, size_t count)
{
    size_t common = common_size(records, count);
    for (size_t i = 0; i < count; i++) {
        struct tarn_slice key = records[i].key;
        records[i].head = 0;
        for (size_t n = 0; n < 8; n++) /* a key that ends counts as zeros: then the bytes decide */
            records[i].head =
                records[i].head << 8 | (common + n < key.size ? key.data[common + n] : (uint8_t)0);
    }
    qsort(records, count, sizeof *records, by_key);
}

/* Few are as soon written as any batch; a file of RocksDB's own would cost a sync each. */
static void batch_records(struct tarn_state_batch *batch, struct tarn_table *table,
                          enum tarn_family family, const struct record *records, size_t count,
                          bool other)
{
    for (size_t i = 0; i < count; i++)
        tarn_state_batch_put(batch, table->env->state, family, records[i].key,
                             other ? records[i].other : records[i].value);
}

/* In order already. */
static struct tarn_status *load_records(struct tarn_table *table, enum tarn_family family,
                                        const struct record *records, size_t count, bool other)
{
    TARN_OWN(tarn_state_loader_drop) struct tarn_state_loader *loader = NULL;
    TARN_TRY(tarn_state_loader_new(table->env->state, family, &loader));
    for (size_t i = 0; i < count;
         i++) /* twice the same: a file that is named twice is there once */
        if (i == 0 || !tarn_slice_equal(records[i].key, records[i - 1].key))
            TARN_TRY(tarn_state_loader_put(loader, records[i].key,
                                           other ? records[i].other : records[i].value));
    return tarn_state_loader_finish(loader);
}

/* The end of buf is a piece in the arena from now on. */
static struct tarn_slice settle(struct tarn_arena *arena, struct tarn_buf *buf)
{
    struct tarn_slice copy = tarn_arena_copy(arena, tarn_buf_slice(buf));
    tarn_buf_clear(buf);
    return copy;
}

struct tarn_status *tarn_table__index_load(struct tarn_table *table,
                                           const struct tarn_manifest_entry *const *entries,
                                           size_t count)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    struct record *live = tarn_arena_alloc(arena, (count + 1) * sizeof *live);
    struct record *names = tarn_arena_alloc(arena, (count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++) {
        tarn_table__live_key(table->uuid, entries[i], &buf);
        live[i].key = settle(arena, &buf);
        tarn_table__live_value(entries[i], 0, &buf);
        live[i].value = settle(arena, &buf);
        tarn_manifest_stats_pack(&entries[i]->file, &buf);
        live[i].other = settle(arena, &buf);
        tarn_table__name_key(table->uuid, entries[i], &buf);
        names[i].key = settle(arena, &buf);
        tarn_key_add_i64(&buf, entries[i]->file.creation_time_ms);
        names[i].value = settle(arena, &buf);
    }
    if (count < LOAD_ENTRIES_MIN) {
        TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
        batch_records(batch, table, TARN_FAMILY_LIVE, live, count, false);
        batch_records(batch, table, TARN_FAMILY_STATS, live, count, true);
        batch_records(batch, table, TARN_FAMILY_NAMES, names, count, false);
        return tarn_state_write(table->env->state, batch, false);
    }
    sort_records(live, count);
    sort_records(names, count);
    TARN_TRY(load_records(table, TARN_FAMILY_STATS, live, count, true));
    TARN_TRY(load_records(table, TARN_FAMILY_NAMES, names, count, false));
    return load_records(table, TARN_FAMILY_LIVE, live, count, false);
}

/* --- the whole of one state --- */

/* What the manifests delete: an ADD of the same identity is no live file (docs/format.md, "Merging entries"). */
static struct tarn_status *find_deleted(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_manifest_file *files, size_t count,
                                        struct tarn_map *deleted)
{
    for (size_t i = 0; i < count; i++) {
        if (files[i].deleted_count == 0)
            continue;
        TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
        TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
        struct tarn_manifest_entry *entries;
        size_t n;
        TARN_TRY(tarn_table__read_manifest(op, table, files[i].name, arena, &entries, &n));
        for (size_t e = 0; e < n; e++) {
            if (entries[e].kind != TARN_ENTRY_DELETE)
                continue;
            tarn_buf_clear(&identity);
            tarn_manifest_identity(&entries[e], &identity);
            tarn_map_set(deleted, tarn_buf_slice(&identity), table);
        }
    }
    return TARN_OK;
}

/* Entries that wait to be loaded together, with the arenas they lie in. */
struct pending {
    const struct tarn_manifest_entry **list;
    size_t count, capacity;
    struct tarn_arena **arenas;
    size_t arena_count, arena_capacity;
};

static void pending_clear(struct pending *p)
{
    for (size_t i = 0; i < p->arena_count; i++)
        tarn_arena_free(p->arenas[i]);
    p->count = p->arena_count = 0;
}

static void pending_fini(struct pending *p)
{
    pending_clear(p);
    free(p->list);
    free(p->arenas);
}

static struct tarn_status *load_pending(struct tarn_table *table, struct pending *p)
{
    struct tarn_status *s = TARN_OK;
    for (size_t i = 0; i < p->count && s == TARN_OK; i += LOAD_ENTRIES)
        s = tarn_table__index_load(table, p->list + i,
                                   TARN_MIN(p->count - i, (size_t)LOAD_ENTRIES));
    pending_clear(p);
    return s;
}

static struct tarn_status *index_whole(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_manifest_file *files, size_t count)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *deleted = tarn_map_new();
    TARN_OWN(pending_fini) struct pending pending = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    TARN_TRY(find_deleted(op, table, files, count, deleted));
    for (size_t i = 0; i < count; i++) {
        TARN_TRY(tarn_op_check(op));
        TARN_GROW(pending.arenas, pending.arena_count, pending.arena_capacity);
        struct tarn_arena *arena = pending.arenas[pending.arena_count++] = tarn_arena_new();
        struct tarn_manifest_entry *entries;
        size_t n;
        TARN_TRY(tarn_table__read_manifest(op, table, files[i].name, arena, &entries, &n));
        for (size_t e = 0; e < n; e++) {
            if (entries[e].kind != TARN_ENTRY_ADD)
                continue;
            if (tarn_map_count(deleted) > 0) {
                tarn_buf_clear(&identity);
                tarn_manifest_identity(&entries[e], &identity);
                if (tarn_map_find(deleted, tarn_buf_slice(&identity)) != NULL)
                    continue;
            }
            TARN_GROW(pending.list, pending.count, pending.capacity);
            pending.list[pending.count++] = &entries[e];
        }
        if (pending.count >= LOAD_ENTRIES)
            TARN_TRY(load_pending(table, &pending));
    }
    return load_pending(table, &pending);
}

/* --- one snapshot after the other --- */

static struct tarn_status *read_entries(struct tarn_op *op, struct tarn_table *table,
                                        struct tarn_slice list, struct tarn_arena *arena,
                                        struct tarn_manifest_entry **out, size_t *count)
{
    TARN_OWN(tarn_free_drop) struct tarn_manifest_entry *all = NULL;
    struct tarn_manifest_file *files;
    size_t file_count;
    *count = 0;
    TARN_TRY(tarn_table__read_list(op, table, list, arena, &files, &file_count));
    for (size_t i = 0; i < file_count; i++) {
        struct tarn_manifest_entry *entries;
        size_t n;
        TARN_TRY(tarn_table__read_manifest(op, table, files[i].name, arena, &entries, &n));
        all = tarn_realloc(all, (*count + n + 1) * sizeof *all);
        if (n > 0)
            memcpy(all + *count, entries, n * sizeof *all);
        *count += n;
    }
    *out = tarn_move(all);
    return TARN_OK;
}

/* Changelog files go on their own where they are kept apart from snapshots, or were expired by hand: then an
 * incremental plan of them finds none. */
static struct tarn_status *read_changelog(struct tarn_op *op, struct tarn_table *table,
                                          const struct tarn_snapshot *snapshot,
                                          struct tarn_arena *arena,
                                          struct tarn_manifest_entry **out, size_t *count)
{
    *out = NULL;
    *count = 0;
    if (snapshot->changelog_list.size == 0)
        return TARN_OK;
    struct tarn_status *s = read_entries(op, table, snapshot->changelog_list, arena, out, count);
    if (tarn_status_reason(s) != TARN_OBJECT_NOT_FOUND)
        return s;
    tarn_status_free(s);
    return TARN_OK;
}

/* Is snapshot `id` still the one with this hash? */
static struct tarn_status *check_is(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                    uint64_t hash)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    bool found;
    TARN_TRY(tarn_table__read_snapshot(op, table, id, arena, &found, &json, &snapshot));
    return found && tarn_xxh64(json, 0) == hash
               ? TARN_OK
               : tarn_status_new(TARN_SNAPSHOT_ROLLED_BACK,
                                 "table %s: snapshot %" PRId64 " is gone since it was read",
                                 table->name, id);
}

/* The snapshot behind the indexed one, or the first: then `first` is the hash of the bytes whose base was loaded (0: it
 * isn't the first). Others may roll back and fill up between any two reads: what is read now stands on what
 * was read before only if that is still there. */
static struct tarn_status *index_next(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                      uint64_t first)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_free_drop) struct tarn_manifest_entry *entries = NULL;
    TARN_OWN(tarn_free_drop) struct tarn_manifest_entry *changelog = NULL;
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    struct tarn_delta delta = {0};
    bool found;
    TARN_TRY(tarn_table__read_snapshot(op, table, id, arena, &found, &json, &snapshot));
    if (!found)
        return tarn_status_new(TARN_SNAPSHOT_NOT_FOUND,
                               "table %s: snapshot %" PRId64 " is missing between others",
                               table->name, id);
    TARN_TRY(read_entries(op, table, snapshot.delta_list, arena, &entries, &delta.count));
    TARN_TRY(read_changelog(op, table, &snapshot, arena, &changelog, &delta.changelog_count));
    delta.entries = entries;
    delta.changelog = changelog;
    if (first != 0 && tarn_xxh64(json, 0) != first)
        return tarn_status_new(TARN_SNAPSHOT_ROLLED_BACK,
                               "table %s: snapshot %" PRId64 " is another since it was read",
                               table->name, id);
    if (first == 0) {
        int64_t indexed;
        uint64_t hash = 0;
        TARN_TRY(tarn_table__indexed_id(table, &indexed, &hash));
        TARN_TRY(check_is(op, table, indexed, hash));
    }
    TARN_OWN(tarn_table__index_batch_drop)
    struct tarn_index_batch *b = tarn_table__index_batch_new(table);
    TARN_TRY(tarn_table__index_batch_entries(b, id, entries, delta.count, first != 0));
    tarn_table__index_batch_changelog(b, id, changelog, delta.changelog_count);
    tarn_table__index_batch_snapshot(b, &snapshot, json, &delta);
    return tarn_table__index_batch_write(b);
}

static struct tarn_status *read_json(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                     struct tarn_slice *json)
{
    struct tarn_snapshot snapshot;
    bool found;
    TARN_TRY(tarn_table__read_snapshot(op, table, id, op->arena, &found, json, &snapshot));
    return found ? TARN_OK
                 : tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                                   "table %s: snapshot %" PRId64 " expired meanwhile", table->name,
                                   id);
}

/* The last snapshot that the folder and the index have in common, by halves: history is the same up to some id and another
 * from there on. *anchor below range.earliest: none that is retained. */
static struct tarn_status *find_anchor(struct tarn_op *op, struct tarn_table *table,
                                       struct tarn_range range, int64_t indexed, int64_t *anchor,
                                       uint64_t *hash)
{
    int64_t low = range.earliest, high = TARN_MIN(indexed, range.latest) + 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        TARN_OWN(tarn_buf_drop) struct tarn_buf known = {0};
        struct tarn_slice json;
        bool found;
        TARN_TRY(read_json(op, table, middle, &json));
        TARN_TRY(tarn_table__indexed_snapshot(table, middle, &found, &known));
        if (!found || !tarn_slice_equal(json, tarn_buf_slice(&known))) {
            high = middle;
            continue;
        }
        low = middle + 1;
        *hash = tarn_xxh64(json, 0);
    }
    *anchor = low - 1;
    return TARN_OK;
}

static struct tarn_status *keep_anchor(struct tarn_table *table, int64_t anchor, uint64_t hash)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    if (anchor != 0)
        tarn_table__anchor_put(batch, table, anchor, hash);
    else
        tarn_table__anchor_remove(batch, table);
    return tarn_state_write(table->env->state, batch, false);
}

/* Receipts that no snapshot brings back are as true as the anchor is: is it still part of history? Otherwise that forks
 * somewhere below it, where the index, which would know, was cleared. */
static struct tarn_status *anchor_stands(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_range range, bool *out)
{
    int64_t anchor;
    uint64_t hash;
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    *out = false;
    TARN_TRY(tarn_table__anchor(table, &anchor, &hash));
    if (anchor < range.earliest || anchor > range.latest || anchor == 0)
        return TARN_OK;
    TARN_TRY(tarn_table__read_snapshot(op, table, anchor, op->arena, out, &json, &snapshot));
    *out = *out && tarn_xxh64(json, 0) == hash;
    return TARN_OK;
}

/* The index was cleared, and building it anew was cut off: what it knew of the past is the anchor. Receipts above that
 * go, for the snapshots that are there to bring back. */
static struct tarn_status *void_again(struct tarn_op *op, struct tarn_table *table,
                                      struct tarn_range range)
{
    int64_t anchor;
    uint64_t hash;
    bool stands;
    TARN_TRY(tarn_table__anchor(table, &anchor, &hash));
    TARN_TRY(anchor_stands(op, table, range, &stands));
    if (stands)
        return tarn_table__receipts_void(table, anchor + 1, false);
    if (anchor == 0) /* they went before */
        return tarn_table__receipts_void(table, range.earliest, false);
    TARN_TRY(tarn_table__receipts_doubt(table, range));
    return keep_anchor(table, 0, 0);
}

/* Receipts of the snapshots that are no more are void. What expires while we look was never rolled back. */
static struct tarn_status *void_receipts(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_range range, int64_t indexed)
{
    int64_t anchor;
    uint64_t hash = 0;
    if (range.latest == 0) {
        TARN_TRY(tarn_table__receipts_void(table, 0, true));
        return keep_anchor(table, 0, 0);
    }
    TARN_TRY(tarn_table__anchor(table, &anchor, &hash));
    if (indexed == 0 || (indexed < range.earliest && anchor != 0))
        return void_again(op, table, range);
    TARN_TRY(find_anchor(op, table, range, indexed, &anchor, &hash));
    if (anchor < range.earliest) {
        TARN_TRY(tarn_table__receipts_doubt(table, range));
        return keep_anchor(table, 0, 0);
    }
    TARN_TRY(keep_anchor(table, anchor, hash));
    return tarn_table__receipts_void(table, anchor + 1, true);
}

/* It is whole. While it was built others may have rolled back below the anchor, when nothing above was read yet. */
static struct tarn_status *drop_anchor(struct tarn_op *op, struct tarn_table *table,
                                       struct tarn_range range)
{
    int64_t anchor;
    uint64_t hash;
    bool stands;
    TARN_TRY(tarn_table__anchor(table, &anchor, &hash));
    if (anchor == 0)
        return TARN_OK;
    TARN_TRY(anchor_stands(op, table, range, &stands));
    if (stands)
        return keep_anchor(table, 0, 0);
    TARN_TRY(tarn_table__index_clear(table, false)); /* its snapshots bring back their receipts */
    return tarn_status_new(TARN_SNAPSHOT_ROLLED_BACK,
                           "table %s: snapshot %" PRId64 " is gone since it was read", table->name,
                           anchor);
}

static struct tarn_status *rebuild(struct tarn_op *op, struct tarn_table *table,
                                   struct tarn_range range, int64_t indexed)
{
    TARN_TRY(void_receipts(op, table, range, indexed));
    TARN_TRY(tarn_table__index_clear(table, false));
    if (range.latest == 0)
        return TARN_OK;
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_snapshot earliest;
    struct tarn_slice json;
    struct tarn_manifest_file *files;
    size_t count;
    bool found;
    TARN_TRY(tarn_table__read_snapshot(op, table, range.earliest, arena, &found, &json, &earliest));
    if (!found)
        return tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                               "table %s: snapshot %" PRId64 " expired meanwhile", table->name,
                               range.earliest);
    TARN_TRY(tarn_table__read_list(op, table, earliest.base_list, arena, &files, &count));
    TARN_TRY(index_whole(op, table, files, count));
    pthread_mutex_lock(&table->index_lock); /* nobody may have pages of the half of it */
    tarn_table__pages_forget(table);
    pthread_mutex_unlock(&table->index_lock);
    for (int64_t id = range.earliest; id <= range.latest; id++)
        TARN_TRY(index_next(op, table, id, id == range.earliest ? tarn_xxh64(json, 0) : 0));
    return drop_anchor(op, table, range);
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
    pthread_mutex_lock(&table->index_lock);
    tarn_table__pages_reached(table, indexed);
    pthread_mutex_unlock(&table->index_lock);
    if (indexed == 0 && range.latest == 0)
        return TARN_OK;
    bool same;
    TARN_TRY(stands(op, table, range, indexed, hash, &same));
    if (!same) {
        if (indexed != 0)
            tarn_log(op, TARN_WARN, "table.index_rebuilt",
                     "table=%s indexed=%" PRId64 " latest=%" PRId64, table->name, indexed,
                     range.latest);
        return rebuild(op, table, range, indexed);
    }
    for (int64_t id = indexed + 1; id <= range.latest; id++) {
        struct tarn_status *s = index_next(op, table, id, 0);
        if (tarn_status_reason(s) == TARN_MANIFEST_MALFORMED) {
            /* The index may be the one that is wrong: the folder decides. */
            tarn_log_status(op, TARN_WARN, "table.index_disagrees", s);
            return rebuild(op, table, range, indexed);
        }
        if (s != TARN_OK)
            return s;
        tarn_metric_add(TARN_M_SNAPSHOTS_ADOPTED, NULL, 1);
    }
    return drop_anchor(op, table, range);
}
