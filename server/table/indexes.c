#include "table/internal.h"

/*
 * Index files: what the index manifest of a snapshot holds, and whether those of a commit were made from what is
 * there now. A hash index, or the deletion vectors of a bucket, are one file that replaces the bucket's last one,
 * and Paimon lets the last writer win; here a commit says which one it was made from.
 */

#define CACHE_SLOTS 2 /* the newest, and the one it was made from: an attempt may be made again */

struct cached {
    struct tarn_arena *arena; /* NULL: free */
    struct tarn_slice name;
    struct tarn_index_file *files;
    size_t count;
    struct tarn_map *by_bucket; /* type, partition, bucket -> its file; made when asked for */
    struct tarn_map *by_row; /* partition, bucket, data file -> the file with its deletion vector */
};

struct tarn_index_cache {
    struct cached slots[CACHE_SLOTS]; /* last used first */
};

/* --- copies --- */

static struct tarn_slice keep(struct tarn_arena *arena, struct tarn_slice s)
{
    return s.data == NULL ? s : tarn_arena_copy(arena, s);
}

void tarn_table__keep_index_file(struct tarn_arena *arena, const struct tarn_index_file *in,
                                 struct tarn_index_file *out)
{
    *out = *in;
    out->partition = keep(arena, in->partition);
    out->type = keep(arena, in->type);
    out->name = keep(arena, in->name);
    out->external_path = keep(arena, in->external_path);
    struct tarn_vector_range *vectors =
        tarn_arena_calloc(arena, in->vector_count + 1, sizeof *vectors);
    for (size_t i = 0; i < in->vector_count; i++) {
        vectors[i] = in->vectors[i];
        vectors[i].data_file = keep(arena, in->vectors[i].data_file);
    }
    out->vectors = vectors;
    int32_t *fields = tarn_arena_calloc(arena, in->global.extra_field_count + 1, sizeof *fields);
    if (in->global.extra_field_count > 0)
        memcpy(fields, in->global.extra_fields, in->global.extra_field_count * sizeof *fields);
    out->global.extra_fields = fields;
    out->global.meta = keep(arena, in->global.meta);
    out->global.source_meta = keep(arena, in->global.source_meta);
}

/* --- the cache --- */

static void cached_fini(struct cached *slot)
{
    tarn_map_free(slot->by_bucket);
    tarn_map_free(slot->by_row);
    tarn_arena_free(slot->arena);
    *slot = (struct cached){0};
}

void tarn_table__index_files_end(struct tarn_table *table)
{
    struct tarn_index_cache *cache = table->indexes;
    table->indexes = NULL;
    if (cache == NULL)
        return;
    for (size_t i = 0; i < CACHE_SLOTS; i++)
        cached_fini(&cache->slots[i]);
    free(cache);
}

/* A free slot in front of the others. */
static struct cached *open_slot(struct tarn_table *table)
{
    if (table->indexes == NULL)
        table->indexes = tarn_calloc(1, sizeof *table->indexes);
    struct cached *slots = table->indexes->slots;
    cached_fini(&slots[CACHE_SLOTS - 1]);
    memmove(slots + 1, slots, (CACHE_SLOTS - 1) * sizeof *slots);
    slots[0] = (struct cached){.arena = tarn_arena_new()};
    return slots;
}

static struct cached *find_slot(struct tarn_table *table, struct tarn_slice name)
{
    struct cached *slots = table->indexes == NULL ? NULL : table->indexes->slots;
    for (size_t i = 0; slots != NULL && i < CACHE_SLOTS; i++) {
        if (slots[i].arena == NULL || !tarn_slice_equal(slots[i].name, name))
            continue;
        struct cached found = slots[i];
        memmove(slots + 1, slots, i * sizeof *slots);
        slots[0] = found;
        return slots;
    }
    return NULL;
}

struct tarn_status *tarn_table__read_index_manifest(struct tarn_op *op, struct tarn_table *table,
                                                    struct tarn_slice name,
                                                    struct tarn_arena *arena,
                                                    struct tarn_index_file **out, size_t *count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    const char *key = tarn_table__key(op, table, "manifest/%.*s", TARN_SLICE_ARG(name));
    TARN_TRY(tarn_store_get(table->env->store, op, key, &bytes));
    return tarn_index_manifest_decode(tarn_arena_copy(arena, tarn_buf_slice(&bytes)), arena, out,
                                      count);
}

static struct tarn_status *read_manifest(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_slice name, struct cached *slot)
{
    struct tarn_status *s =
        tarn_table__read_index_manifest(op, table, name, slot->arena, &slot->files, &slot->count);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "table %s, index manifest %.*s", table->name,
                                TARN_SLICE_ARG(name));
    slot->name = tarn_arena_copy(slot->arena, name);
    return TARN_OK;
}

/* The slot of a manifest; name absent: an empty one that isn't cached. */
static struct tarn_status *load(struct tarn_op *op, struct tarn_table *table,
                                struct tarn_slice name, struct cached **out)
{
    static struct cached empty;
    *out = name.data == NULL ? &empty : find_slot(table, name);
    if (*out != NULL)
        return TARN_OK;
    *out = open_slot(table);
    struct tarn_status *s = read_manifest(op, table, name, *out);
    if (s != TARN_OK)
        cached_fini(*out);
    return s;
}

struct tarn_status *tarn_table__index_files(struct tarn_op *op, struct tarn_table *table,
                                            struct tarn_slice manifest,
                                            const struct tarn_index_file **out, size_t *count)
{
    struct cached *slot;
    TARN_TRY(load(op, table, manifest, &slot));
    *out = slot->files;
    *count = slot->count;
    return TARN_OK;
}

/* --- who is replaced --- */

static bool is_vectors(const struct tarn_index_file *f)
{
    return tarn_slice_is(f->type, TARN_INDEX_DELETION_VECTORS);
}

/* Do files lie in buckets, so that one has at most one hash index and one file of deletion vectors? */
static bool is_bucketed(const struct tarn_table *table)
{
    const struct tarn_table_view *view = &table->view->view;
    return !tarn_schema_is_append(&view->schema) || view->options.bucket != -1;
}

/* Is it the only one of its kind in its bucket? */
static bool is_of_bucket(const struct tarn_table *table, const struct tarn_index_file *f)
{
    return tarn_slice_is(f->type, TARN_INDEX_HASH) || (is_vectors(f) && is_bucketed(table));
}

static void place_key(struct tarn_slice what, struct tarn_slice partition, int32_t bucket,
                      struct tarn_buf *out)
{
    tarn_buf_clear(out);
    tarn_key_add_bytes(out, what);
    tarn_key_add_bytes(out, partition);
    tarn_key_add_i64(out, bucket);
}

static void make_maps(const struct tarn_table *table, struct cached *slot)
{
    if (slot->by_bucket != NULL || slot->count == 0)
        return;
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    slot->by_bucket = tarn_map_new();
    slot->by_row = tarn_map_new();
    for (size_t i = 0; i < slot->count; i++) {
        struct tarn_index_file *f = &slot->files[i];
        if (is_of_bucket(table, f)) {
            place_key(f->type, f->partition, f->bucket, &key);
            tarn_map_set(slot->by_bucket, tarn_buf_slice(&key), f);
        }
        for (size_t v = 0; is_vectors(f) && v < f->vector_count; v++) {
            place_key(f->vectors[v].data_file, f->partition, f->bucket, &key);
            tarn_map_set(slot->by_row, tarn_buf_slice(&key), f);
        }
    }
}

static const struct tarn_index_file *find_place(const struct tarn_map *map, struct tarn_slice what,
                                                struct tarn_slice partition, int32_t bucket)
{
    if (map == NULL)
        return NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    place_key(what, partition, bucket, &key);
    return tarn_map_find(map, tarn_buf_slice(&key));
}

static struct tarn_slice name_of(const struct tarn_index_file *f)
{
    return f == NULL ? tarn_slice_str("") : f->name;
}

/* --- is it made from what is there? --- */

struct base { /* what the request was made from, read when the first file asks */
    int64_t id;
    struct tarn_slice proof;
    bool known, gone; /* gone: not there any more, or another one of that id */
    struct tarn_slice manifest;
};

static struct tarn_status *find_base(struct tarn_op *op, struct tarn_table *table,
                                     const struct tarn_head *head, struct base *base)
{
    if (base->known)
        return TARN_OK;
    base->known = true;
    if (base->id == 0) /* an empty table has no index files */
        return TARN_OK;
    struct tarn_snapshot snapshot = head->snapshot;
    bool found = base->id == head->id;
    if (base->id > 0 && base->id < head->id)
        TARN_TRY(tarn_table__past(table, base->id, op->arena, &found, &snapshot));
    base->gone = !found || (base->proof.size != 0 && !tarn_snapshot_is(&snapshot, base->proof));
    if (!base->gone)
        base->manifest = snapshot.index_manifest;
    return TARN_OK;
}

static struct tarn_status *stale(const struct tarn_table *table, const struct tarn_index_file *f,
                                 const struct tarn_index_file *now)
{
    if (now == NULL && f->kind == TARN_ENTRY_ADD)
        return tarn_status_new(TARN_INDEX_STALE,
                               "bucket %d of table %s has no index file of type %.*s any more, and "
                               "%.*s was made from one that is gone, or can't be known",
                               f->bucket, table->name, TARN_SLICE_ARG(f->type),
                               TARN_SLICE_ARG(f->name));
    if (now == NULL)
        return tarn_status_new(TARN_INDEX_STALE,
                               "index file %.*s of type %.*s is no longer that of bucket %d of "
                               "table %s, which has none",
                               TARN_SLICE_ARG(f->name), TARN_SLICE_ARG(f->type), f->bucket,
                               table->name);
    return tarn_status_new(TARN_INDEX_STALE,
                           "bucket %d of table %s has index file %.*s of type %.*s by now, which "
                           "the commit was not made from",
                           f->bucket, table->name, TARN_SLICE_ARG(now->name),
                           TARN_SLICE_ARG(now->type));
}

/* Does the commit remove exactly the bucket's present file? *other: it removes one that isn't. */
static bool names_present(const struct tarn_candidate *c, const struct tarn_index_file *f,
                          const struct tarn_index_file *now, bool *other)
{
    bool named = false;
    *other = false;
    for (size_t i = 0; i < c->index_count; i++) {
        const struct tarn_index_file *d = &c->index[i];
        if (c->index[i].kind != TARN_ENTRY_DELETE || d->bucket != f->bucket ||
            !tarn_slice_equal(d->type, f->type) || !tarn_slice_equal(d->partition, f->partition))
            continue;
        if (now != NULL && tarn_slice_equal(d->name, now->name))
            named = true;
        else
            *other = true;
    }
    return named;
}

/* Is the bucket's file (NULL: none) what it was at the base snapshot? Not where that is gone. */
static struct tarn_status *same_at_base(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_head *head, struct base *base,
                                        const struct tarn_index_file *f,
                                        const struct tarn_index_file *now, bool *same)
{
    *same = base->id == TARN_SNAPSHOT_NONE && now == NULL; /* from nothing, and nothing is there */
    if (base->id == TARN_SNAPSHOT_NONE)
        return TARN_OK;
    TARN_TRY(find_base(op, table, head, base));
    if (base->gone)
        return TARN_OK;
    *same = tarn_slice_equal(base->manifest, head->snapshot.index_manifest);
    if (*same)
        return TARN_OK;
    struct tarn_slice now_name = tarn_arena_copy(op->arena, name_of(now));
    struct cached *slot;
    TARN_TRY(load(op, table, base->manifest, &slot));
    make_maps(table, slot);
    *same = tarn_slice_equal(name_of(find_place(slot->by_bucket, f->type, f->partition, f->bucket)),
                             now_name);
    return TARN_OK;
}

/* The present one of the bucket, from a slot that other calls may have pushed out meanwhile. */
static struct tarn_status *find_present(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_head *head,
                                        const struct tarn_index_file *f,
                                        const struct tarn_index_file **out)
{
    struct cached *slot;
    TARN_TRY(load(op, table, head->snapshot.index_manifest, &slot));
    make_maps(table, slot);
    *out = find_place(slot->by_bucket, f->type, f->partition, f->bucket);
    return TARN_OK;
}

static struct tarn_status *check_fresh(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_head *head, const struct tarn_candidate *c,
                                       const struct tarn_index_file *f, struct base *base)
{
    const struct tarn_index_file *now;
    TARN_TRY(find_present(op, table, head, f, &now));
    bool other, same;
    bool named = names_present(c, f, now, &other);
    if (other)
        return stale(table, f, now);
    if (named)
        return TARN_OK;
    TARN_TRY(same_at_base(op, table, head, base, f, now, &same));
    if (same)
        return TARN_OK;
    TARN_TRY(find_present(op, table, head, f, &now));
    return stale(table, f, now);
}

/* --- rows that were assigned by hash indexes --- */

#define SNAPSHOTS_LOOKED_AT_MAX 1000

/* The hash indexes of these partitions, by bucket and name. */
static struct tarn_map *hash_indexes(const struct cached *slot, const struct tarn_map *partitions)
{
    struct tarn_map *found = tarn_map_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    for (size_t i = 0; i < slot->count; i++) {
        struct tarn_index_file *f = &slot->files[i];
        if (!tarn_slice_is(f->type, TARN_INDEX_HASH) ||
            tarn_map_find(partitions, f->partition) == NULL)
            continue;
        place_key(f->name, f->partition, f->bucket, &key);
        tarn_map_set(found, tarn_buf_slice(&key), f);
    }
    return found;
}

static struct tarn_status *stale_assignment(const struct tarn_table *table, int64_t base_id)
{
    return tarn_status_new(
        TARN_INDEX_STALE,
        "the hash index of a partition of table %s is no longer that of snapshot "
        "%" PRId64 ", by which rows were given their buckets",
        table->name, base_id);
}

static struct tarn_status *same_hashes(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_head *head, const struct tarn_candidate *c,
                                       const struct base *base)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *partitions = tarn_map_new();
    for (size_t i = 0; i < c->count; i++)
        if (c->entries[i].kind == TARN_ENTRY_ADD)
            tarn_map_set(partitions, c->entries[i].partition, table);
    struct cached *slot;
    TARN_TRY(load(op, table, base->manifest, &slot));
    TARN_OWN(tarn_map_drop) struct tarn_map *then = hash_indexes(slot, partitions);
    TARN_TRY(load(op, table, head->snapshot.index_manifest, &slot));
    TARN_OWN(tarn_map_drop) struct tarn_map *now = hash_indexes(slot, partitions);
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    bool same = tarn_map_count(then) == tarn_map_count(now);
    while (same && tarn_map_next(now, &cursor, &key, &value))
        same = tarn_map_find(then, key) != NULL;
    return same ? TARN_OK : stale_assignment(table, base->id);
}

/* Where no index says where keys are: nobody has brought any since. */
static struct tarn_status *check_keys(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_head *head, const struct base *base)
{
    bool same = !base->gone && head->id - base->id <= SNAPSHOTS_LOOKED_AT_MAX;
    for (int64_t id = base->id + 1; id <= head->id && same; id++) {
        struct tarn_snapshot snapshot = head->snapshot;
        bool found = true;
        if (id < head->id)
            TARN_TRY(tarn_table__past(table, id, op->arena, &found, &snapshot));
        same =
            found && (snapshot.kind == TARN_COMMIT_COMPACT || snapshot.kind == TARN_COMMIT_ANALYZE);
    }
    if (same)
        return TARN_OK;
    return tarn_status_new(TARN_INDEX_STALE,
                           "others changed table %s after snapshot %" PRId64
                           ", by which the partitions of keys were looked up: load again",
                           table->name, base->id);
}

/* All hash indexes of a partition count, also those that the commit brings no new one of: a key that it knew may be in another
 * bucket by now. */
static struct tarn_status *check_assignment(struct tarn_op *op, struct tarn_table *table,
                                            const struct tarn_head *head,
                                            const struct tarn_candidate *c, struct base *base)
{
    if (!c->assigned || c->kind == TARN_COMMIT_COMPACT)
        return TARN_OK;
    TARN_TRY(find_base(op, table, head, base));
    if (table->view->view.options.keys_cross_partitions)
        return check_keys(op, table, head, base);
    if (!base->known || base->gone)
        return stale_assignment(table, base->id);
    if (tarn_slice_equal(base->manifest, head->snapshot.index_manifest))
        return TARN_OK;
    return same_hashes(op, table, head, c, base);
}

/* --- deletion vectors and the files they are about --- */

static bool is_removed(const struct tarn_candidate *c, const struct tarn_table *table,
                       const struct tarn_index_file *now)
{
    for (size_t i = 0; i < c->index_count; i++) {
        const struct tarn_index_file *f = &c->index[i];
        if (!is_vectors(f) || f->bucket != now->bucket ||
            !tarn_slice_equal(f->partition, now->partition))
            continue;
        bool replaces = c->index[i].kind == TARN_ENTRY_ADD && is_of_bucket(table, f);
        if (replaces ||
            (c->index[i].kind == TARN_ENTRY_DELETE && tarn_slice_equal(f->name, now->name)))
            return true;
    }
    return false;
}

/* Who rewrites a file must have seen which of its rows are deleted: what the commit removes has no deletion vector
 * unless the commit removes that, too. */
static struct tarn_status *check_removed_files(struct tarn_op *op, struct tarn_table *table,
                                               const struct tarn_head *head,
                                               const struct tarn_candidate *c)
{
    struct cached *slot;
    TARN_TRY(load(op, table, head->snapshot.index_manifest, &slot));
    make_maps(table, slot);
    for (size_t i = c->known_count; i < c->count && slot->count > 0; i++) {
        const struct tarn_manifest_entry *e = &c->entries[i];
        if (e->kind != TARN_ENTRY_DELETE)
            continue;
        const struct tarn_index_file *now =
            find_place(slot->by_row, e->file.name, e->partition, e->bucket);
        if (now != NULL && !is_removed(c, table, now))
            return tarn_status_new(TARN_COMMIT_CONFLICT,
                                   "rows of file %.*s of table %s were deleted meanwhile (deletion "
                                   "vector in %.*s)",
                                   TARN_SLICE_ARG(e->file.name), table->name,
                                   TARN_SLICE_ARG(now->name));
    }
    return TARN_OK;
}

/* What the commit adds and removes by name, in one bucket. */
static struct tarn_map *files_by_name(const struct tarn_candidate *c, enum tarn_entry_kind kind)
{
    struct tarn_map *files = tarn_map_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    for (size_t i = 0; i < c->count; i++) {
        const struct tarn_manifest_entry *e = &c->entries[i];
        if (e->kind != kind)
            continue;
        place_key(e->file.name, e->partition, e->bucket, &key);
        tarn_map_set(files, tarn_buf_slice(&key), (void *)e);
    }
    return files;
}

/* A live file of that name in level 0 of the bucket, where all files of tables without a primary key are. */
static struct tarn_status *is_live(struct tarn_table *table, const struct tarn_index_file *f,
                                   struct tarn_slice name, bool *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__bucket_prefix(table->uuid, f->partition, &f->bucket, &prefix);
    tarn_key_add_i64(&prefix, 0);
    tarn_key_add_bytes(&prefix, name);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_NAMES, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    *out = tarn_state_iterator_next(it, &key, &value);
    return tarn_state_iterator_error(it);
}

static bool has_vector(const struct tarn_index_file *f, struct tarn_slice data_file)
{
    for (size_t i = 0; f != NULL && i < f->vector_count; i++)
        if (tarn_slice_equal(f->vectors[i].data_file, data_file))
            return true;
    return false;
}

/* A new deletion vector is of a file that is there and stays: one that was rewritten meanwhile would get its deleted rows back. Not
 * asked of tables with a primary key, whose files of any level may have one. */
static struct tarn_status *check_vectors(struct tarn_table *table, const struct tarn_index_file *f,
                                         const struct tarn_index_file *now,
                                         const struct tarn_map *added,
                                         const struct tarn_map *removed)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    for (size_t i = 0; i < f->vector_count; i++) {
        struct tarn_slice name = f->vectors[i].data_file;
        if (has_vector(
                now,
                name)) /* its bucket's file had one before, and is what this one was made from */
            continue;
        place_key(name, f->partition, f->bucket, &key);
        bool live = tarn_map_find(added, tarn_buf_slice(&key)) != NULL;
        if (!live && tarn_map_find(removed, tarn_buf_slice(&key)) == NULL)
            TARN_TRY(is_live(table, f, name, &live));
        if (!live)
            return tarn_status_new(TARN_COMMIT_CONFLICT,
                                   "index file %.*s has a deletion vector for file %.*s, which is "
                                   "not live in table %s",
                                   TARN_SLICE_ARG(f->name), TARN_SLICE_ARG(name), table->name);
    }
    return TARN_OK;
}

static struct tarn_status *check_new_vectors(struct tarn_op *op, struct tarn_table *table,
                                             const struct tarn_head *head,
                                             const struct tarn_candidate *c)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *added = files_by_name(c, TARN_ENTRY_ADD);
    TARN_OWN(tarn_map_drop) struct tarn_map *removed = files_by_name(c, TARN_ENTRY_DELETE);
    for (size_t i = 0; i < c->index_count; i++) {
        const struct tarn_index_file *f = &c->index[i], *now = NULL;
        if (f->kind != TARN_ENTRY_ADD || !is_vectors(f))
            continue;
        if (is_of_bucket(table, f))
            TARN_TRY(find_present(op, table, head, f, &now));
        TARN_TRY(check_vectors(table, f, now, added, removed));
    }
    return TARN_OK;
}

static bool needs_reading(const struct tarn_table *table, const struct tarn_candidate *c)
{
    if (c->index_count > 0)
        return true;
    if (!table->view->view.options.deletion_vectors)
        return false;
    for (size_t i = c->known_count; i < c->count; i++)
        if (c->entries[i].kind == TARN_ENTRY_DELETE)
            return true;
    return false;
}

/* Can they be combined with what is there at all? What goes by name conflicts here. */
static struct tarn_status *check_combination(struct tarn_op *op, struct tarn_table *table,
                                             const struct tarn_head *head,
                                             const struct tarn_candidate *c)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct cached *slot;
    struct tarn_index_file *combined;
    size_t count;
    TARN_TRY(load(op, table, head->snapshot.index_manifest, &slot));
    return tarn_index_combine(slot->files, slot->count, c->index, c->index_count,
                              is_bucketed(table), arena, &combined, &count);
}

struct tarn_status *tarn_table__check_indexes(struct tarn_op *op, struct tarn_table *table,
                                              const struct tarn_head *head,
                                              const struct tarn_candidate *c)
{
    static const struct tarn_head nothing;
    struct base base = {.id = c->base_snapshot_id, .proof = c->base_snapshot_proof};
    TARN_TRY(check_assignment(op, table, head == NULL ? &nothing : head, c, &base));
    if (!needs_reading(table, c))
        return TARN_OK;
    head = head == NULL ? &nothing : head;
    for (size_t i = 0; i < c->index_count; i++)
        if (is_of_bucket(table, &c->index[i]))
            TARN_TRY(check_fresh(op, table, head, c, &c->index[i], &base));
    TARN_TRY(check_removed_files(op, table, head, c));
    if (c->index_count == 0)
        return TARN_OK;
    if (!is_bucketed(table) || tarn_schema_is_append(&table->view->view.schema))
        TARN_TRY(check_new_vectors(op, table, head, c));
    return check_combination(op, table, head, c);
}

/* --- the new index manifest --- */

struct tarn_status *tarn_table__combine_indexes(struct tarn_op *op, struct tarn_table *table,
                                                struct tarn_slice previous,
                                                const struct tarn_index_file *changes, size_t count,
                                                struct tarn_objects *objects,
                                                struct tarn_slice *name)
{
    *name = previous;
    if (count == 0)
        return TARN_OK;
    struct cached *slot;
    struct tarn_index_file *files;
    size_t file_count;
    TARN_TRY(load(op, table, previous, &slot));
    TARN_TRY(tarn_index_combine(slot->files, slot->count, changes, count, is_bucketed(table),
                                op->arena, &files, &file_count));
    *name = tarn_slice_str(NULL);
    if (file_count == 0)
        return TARN_OK;
    const struct tarn_options *options = &table->view->view.options;
    uint8_t sync[16];
    tarn_random_bytes(sync, sizeof sync);
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_status *s = tarn_index_manifest_encode(
        files, file_count, options->manifest_compression, options->zstd_level, sync, &bytes);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "table %s", table->name);
    *name = tarn_table__add_object(op, table, "index-manifest", tarn_buf_slice(&bytes), objects);
    /* The copies are made before the slot they may come from can go. */
    struct cached made = {.arena = tarn_arena_new()};
    made.files = tarn_arena_calloc(made.arena, file_count + 1, sizeof *made.files);
    made.count = file_count;
    made.name = tarn_arena_copy(made.arena, *name);
    for (size_t i = 0; i < file_count; i++)
        tarn_table__keep_index_file(made.arena, &files[i], &made.files[i]);
    struct cached *opened = open_slot(table);
    tarn_arena_free(opened->arena);
    *opened = made;
    return TARN_OK;
}
