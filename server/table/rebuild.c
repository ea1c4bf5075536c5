#include "table/index.h"

#include "table/internal.h"

/* The index from the folder: what the earliest snapshot was made from as a whole (load.c), then what each one changed. */

/* --- one snapshot after the other --- */

/* One answer "not there" isn't enough to leave rows out of streams for good. */
#define LOOKS_AGREED 3
#define LOOKS_MAX 8

static bool is_listed(const struct tarn_object *objects, size_t count, struct tarn_slice folder,
                      struct tarn_slice name)
{
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
        struct tarn_slice key = objects[i].key;
        found = key.size == folder.size + 1 + name.size &&
                memcmp(key.data + folder.size + 1, name.data, name.size) == 0;
    }
    return found;
}

/* Is one of them missing in the list of their folder, too? */
static struct tarn_status *is_gone(struct tarn_op *op, struct tarn_table *table,
                                   const struct tarn_snapshot *snapshot, struct tarn_arena *arena,
                                   bool *out)
{
    const char *folder = tarn_table__key(op, table, "manifest");
    struct tarn_slice in = tarn_slice_str(folder);
    struct tarn_object *objects;
    struct tarn_manifest_file *files;
    size_t object_count, count;
    TARN_TRY(tarn_store_list(table->env->store, op, folder, false, &objects, &object_count));
    *out = !is_listed(objects, object_count, in, snapshot->changelog_list);
    if (*out)
        return TARN_OK;
    TARN_TRY(
        tarn_table__read_list(op, table, snapshot, TARN_LIST_CHANGELOG, arena, &files, &count));
    for (size_t i = 0; i < count && !*out; i++)
        *out = !is_listed(objects, object_count, in, files[i].name);
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

struct following { /* a delta on its way into the index: it may have millions of entries */
    struct tarn_index_batch *batch;
    int64_t id;
    bool lenient;
    struct tarn_delta *delta;
    struct tarn_slice manifest; /* being walked */
    bool disagrees;             /* with the index, which may be the one that is wrong */
};

static struct tarn_status *follow(void *arg, struct tarn_manifest_entry *entries, size_t count)
{
    struct following *f = arg;
    f->delta->entries = entries;
    f->delta->count = count;
    struct tarn_status *s =
        tarn_table__index_batch_entries(f->batch, f->id, entries, count, f->lenient);
    f->disagrees = s != TARN_OK;
    if (s != TARN_OK)
        return tarn_status_wrap(s, "manifest %.*s", TARN_SLICE_ARG(f->manifest));
    tarn_table__delta_let_go(f->delta);
    return TARN_OK;
}

static struct tarn_status *follow_changelog(void *arg, struct tarn_manifest_entry *entries,
                                            size_t count)
{
    struct following *f = arg;
    f->delta->changelog = entries;
    f->delta->changelog_count = count;
    TARN_TRY(tarn_table__index_batch_changelog(f->batch, f->id, entries, count));
    tarn_table__delta_let_go(f->delta);
    return TARN_OK;
}

static struct tarn_status *walk_changelog(struct tarn_op *op, struct tarn_table *table,
                                          const struct tarn_snapshot *snapshot,
                                          struct tarn_arena *arena, struct following *f)
{
    struct tarn_manifest_file *files;
    size_t count;
    TARN_TRY(
        tarn_table__read_list(op, table, snapshot, TARN_LIST_CHANGELOG, arena, &files, &count));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(tarn_table__walk_manifest(op, table, &files[i], follow_changelog, f));
    return TARN_OK;
}

/* Changelog files go on their own where they are kept apart from snapshots, or were expired by hand: then an
 * incremental plan of them finds none. */
static struct tarn_status *index_changelog(struct tarn_op *op, struct tarn_table *table,
                                           const struct tarn_snapshot *snapshot,
                                           struct tarn_arena *arena, struct following *f)
{
    uint64_t content = f->delta->content;
    if (snapshot->changelog_list.size == 0)
        return TARN_OK;
    struct tarn_status *s = TARN_OK;
    for (int looks = 0, agreed = 0; looks < LOOKS_MAX && agreed < LOOKS_AGREED; looks++) {
        bool gone;
        tarn_status_free(s);
        s = walk_changelog(op, table, snapshot, arena, f);
        if (tarn_status_reason(s) != TARN_OBJECT_NOT_FOUND)
            return s;
        tarn_table__index_batch_no_changelog(f->batch, f->id);
        f->delta->content = content;
        struct tarn_status *asked = is_gone(op, table, snapshot, arena, &gone);
        if (asked != TARN_OK) {
            tarn_status_free(s);
            return asked;
        }
        agreed = gone ? agreed + 1 : 0;
        if (agreed == LOOKS_AGREED)
            tarn_status_free(tarn_move(s));
    }
    return s;
}

static struct tarn_status *index_delta(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_manifests *m, struct following *f)
{
    for (size_t i = m->base_count; i < m->count; i++) {
        f->manifest = m->files[i].name;
        TARN_TRY(tarn_table__walk_manifest(op, table, &m->files[i], follow, f));
    }
    return TARN_OK;
}

struct ground { /* what the next snapshot should stand on: the indexed one */
    struct tarn_manifests manifests;
    bool left;      /* it doesn't: nothing was indexed */
    bool disagrees; /* what it deletes isn't there */
};

static void ground_fini(struct ground *ground)
{
    tarn_table__manifests_fini(&ground->manifests);
}

/* That of the indexed snapshot, where it isn't known from the turn before. */
static struct tarn_status *read_ground(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                       struct tarn_manifests *out)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_snapshot snapshot;
    bool found;
    if (out->arena != NULL)
        return TARN_OK;
    TARN_TRY(tarn_table__indexed_snapshot(table, id, &found, &json));
    if (!found)
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "table %s: snapshot %" PRId64 " is gone",
                               table->name, id);
    TARN_TRY(tarn_snapshot_decode(tarn_buf_slice(&json), arena, &snapshot));
    return tarn_table__read_manifests(op, table, &snapshot, out);
}

static struct tarn_status *check_stands(struct tarn_op *op, struct tarn_table *table, int64_t below,
                                        const struct tarn_manifests *next, struct ground *ground)
{
    bool stands;
    TARN_TRY(read_ground(op, table, below, &ground->manifests));
    TARN_TRY(tarn_table__stands_on(op, table, &ground->manifests, next, &stands));
    ground->left = !stands;
    return TARN_OK;
}

/* The snapshot behind the indexed one, or the first: then `first` is the hash of the bytes whose base was loaded (0: it
 * isn't the first). Others may roll back and fill up between any two reads: what is read now stands on what
 * was read before only if that is still there. */
static struct tarn_status *index_next(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                      uint64_t first, struct ground *ground)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_table__manifests_fini) struct tarn_manifests manifests = {0};
    TARN_OWN(tarn_table__index_batch_drop)
    struct tarn_index_batch *b = tarn_table__index_batch_new(table);
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    struct tarn_delta delta = {0};
    bool found;
    int64_t below;
    uint64_t below_hash = 0;
    ground->left = ground->disagrees = false;
    TARN_TRY(tarn_table__indexed_id(table, &below, &below_hash));
    TARN_TRY(tarn_table__read_snapshot(op, table, id, arena, &found, &json, &snapshot));
    if (!found)
        return tarn_status_new(TARN_SNAPSHOT_NOT_FOUND,
                               "table %s: snapshot %" PRId64 " is missing between others",
                               table->name, id);
    TARN_TRY(tarn_table__read_manifests(op, table, &snapshot, &manifests));
    if (first == 0)
        TARN_TRY(check_stands(op, table, below, &manifests, ground));
    if (ground->left)
        return check_is(op, table, below, below_hash);
    struct following f = {b, id, first != 0, &delta, {0}, false};
    struct tarn_status *s = index_delta(op, table, &manifests, &f);
    ground->disagrees = f.disagrees;
    TARN_TRY(s);
    TARN_TRY(index_changelog(op, table, &snapshot, arena, &f));
    if (first != 0 && tarn_xxh64(json, 0) != first)
        return tarn_status_new(TARN_SNAPSHOT_ROLLED_BACK,
                               "table %s: snapshot %" PRId64 " is another since it was read",
                               table->name, id);
    if (first == 0)
        TARN_TRY(check_is(op, table, below, below_hash));
    tarn_table__index_batch_snapshot(b, &snapshot, json, &delta);
    TARN_TRY(tarn_table__index_batch_write(b));
    tarn_table__manifests_fini(&ground->manifests);
    ground->manifests = manifests;
    manifests = (struct tarn_manifests){0};
    return TARN_OK;
}

/* History begins with this snapshot: all that it is made of. */
static struct tarn_status *begin_at(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                    struct ground *ground)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    struct tarn_manifest_file *files;
    size_t count;
    bool found;
    TARN_TRY(tarn_table__index_clear(table, false));
    TARN_TRY(tarn_table__read_snapshot(op, table, id, arena, &found, &json, &snapshot));
    if (!found)
        return tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                               "table %s: snapshot %" PRId64 " expired meanwhile", table->name, id);
    TARN_TRY(tarn_table__read_list(op, table, &snapshot, TARN_LIST_BASE, arena, &files, &count));
    TARN_TRY(tarn_table__index_load(op, table, files, count));
    pthread_mutex_lock(&table->index_lock); /* nobody may have pages of the half of it */
    tarn_table__pages_forget(table);
    pthread_mutex_unlock(&table->index_lock);
    return index_next(op, table, id, tarn_xxh64(json, 0), ground);
}

/* Where it doesn't stand on what is indexed, what is below it is another history. */
static struct tarn_status *index_next_or_begin(struct tarn_op *op, struct tarn_table *table,
                                               int64_t id, struct ground *ground)
{
    TARN_TRY(index_next(op, table, id, 0, ground));
    if (!ground->left)
        return TARN_OK;
    tarn_log(op, TARN_WARN, "table.history_begins", "table=%s snapshot=%" PRId64,
             tarn_log_quote(op, table->name), id);
    return begin_at(op, table, id, ground);
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
 * are in doubt until their snapshots bring them back, or the index is whole without them. */
static struct tarn_status *void_again(struct tarn_op *op, struct tarn_table *table,
                                      struct tarn_range range)
{
    int64_t anchor;
    uint64_t hash;
    bool stands;
    TARN_TRY(tarn_table__anchor(table, &anchor, &hash));
    TARN_TRY(anchor_stands(op, table, range, &stands));
    if (stands)
        return tarn_table__receipts_doubt(table, anchor + 1);
    if (anchor == 0) /* the others were doubted before */
        return tarn_table__receipts_doubt(table, range.earliest);
    TARN_TRY(tarn_table__receipts_doubt_retained(table, range));
    return keep_anchor(table, 0, 0);
}

/* Receipts of the snapshots that are no more are void. What expires while we look was never rolled back. */
static struct tarn_status *void_receipts(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_range range, int64_t indexed)
{
    int64_t anchor;
    uint64_t hash = 0;
    if (range.latest == 0) {
        TARN_TRY(tarn_table__receipts_void(table, 0));
        return keep_anchor(table, 0, 0);
    }
    TARN_TRY(tarn_table__anchor(table, &anchor, &hash));
    if (indexed == 0 || (indexed < range.earliest && anchor != 0))
        return void_again(op, table, range);
    TARN_TRY(find_anchor(op, table, range, indexed, &anchor, &hash));
    if (anchor < range.earliest) {
        TARN_TRY(tarn_table__receipts_doubt_retained(table, range));
        return keep_anchor(table, 0, 0);
    }
    TARN_TRY(keep_anchor(table, anchor, hash));
    return tarn_table__receipts_void(table, anchor + 1);
}

/* It is whole: the anchor goes, and doubt ends. While it was built others may have rolled back below the anchor, when nothing above
 * was read yet. */
static struct tarn_status *be_whole(struct tarn_op *op, struct tarn_table *table,
                                    struct tarn_range range)
{
    int64_t anchor;
    uint64_t hash;
    bool stands;
    TARN_TRY(tarn_table__anchor(table, &anchor, &hash));
    if (anchor == 0)
        return tarn_table__receipts_end_doubt(table, range.earliest);
    TARN_TRY(anchor_stands(op, table, range, &stands));
    if (stands) {
        TARN_TRY(keep_anchor(table, 0, 0));
        return tarn_table__receipts_end_doubt(table, range.earliest);
    }
    TARN_TRY(tarn_table__index_clear(table, false)); /* its snapshots bring back their receipts */
    return tarn_status_new(TARN_SNAPSHOT_ROLLED_BACK,
                           "table %s: snapshot %" PRId64 " is gone since it was read", table->name,
                           anchor);
}

static struct tarn_status *rebuild(struct tarn_op *op, struct tarn_table *table,
                                   struct tarn_range range, int64_t indexed)
{
    TARN_OWN(ground_fini) struct ground ground = {0};
    TARN_TRY(void_receipts(op, table, range, indexed));
    if (range.latest == 0)
        return tarn_table__index_clear(table, false);
    TARN_TRY(begin_at(op, table, range.earliest, &ground));
    for (int64_t id = range.earliest + 1; id <= range.latest; id++)
        TARN_TRY(index_next_or_begin(op, table, id, &ground));
    return be_whole(op, table, range);
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
                     "table=%s indexed=%" PRId64 " latest=%" PRId64,
                     tarn_log_quote(op, table->name), indexed, range.latest);
        return rebuild(op, table, range, indexed);
    }
    TARN_OWN(ground_fini) struct ground ground = {0};
    for (int64_t id = indexed + 1; id <= range.latest; id++) {
        struct tarn_status *s = index_next_or_begin(op, table, id, &ground);
        if (s != TARN_OK && ground.disagrees) { /* the folder decides */
            tarn_log_status(op, TARN_WARN, "table.index_disagrees", s);
            return rebuild(op, table, range, indexed);
        }
        if (s != TARN_OK)
            return s;
    }
    return be_whole(op, table, range);
}
