#include "table/index.h"

/*
 * May a commit stand on top of the indexed snapshot? Time goes with the request and the levels it writes to, never
 * with the table (docs/format.md, "Conflict checks"). Rule 5 is in indexes.c.
 */

#define BUCKET_COUNT_STEPS_MAX                                                                     \
    8 /* entries of old writers that don't say how many buckets there are */

/* 2: the delta adds no file twice, and doesn't both add and delete one. */
static struct tarn_status *check_delta(struct tarn_table *table, const struct tarn_candidate *c)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    for (size_t i = 0; i < c->count; i++) {
        tarn_buf_clear(&identity);
        tarn_manifest_identity(&c->entries[i], &identity);
        if (tarn_map_set(seen, tarn_buf_slice(&identity), table) != NULL)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "the commit names file %.*s twice",
                                   TARN_SLICE_ARG(c->entries[i].file.name));
    }
    return TARN_OK;
}

static struct tarn_status *is_live(struct tarn_table *table,
                                   const struct tarn_manifest_entry *entry, bool *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf made = {0};
    tarn_table__name_key(table->uuid, entry, &key); /* whenever it says it was made */
    return tarn_state_get(table->env->state, TARN_FAMILY_NAMES, tarn_buf_slice(&key), out, &made);
}

/* 3: what is deleted must be live, what is added must not be. discard: such ADDs are dropped instead. */
static struct tarn_status *check_live(struct tarn_table *table, struct tarn_candidate *c,
                                      bool discard)
{
    size_t kept = c->known_count;
    for (size_t i = c->known_count; i < c->count; i++) {
        const struct tarn_manifest_entry *e = &c->entries[i];
        bool live;
        TARN_TRY(is_live(table, e, &live));
        if (e->kind == TARN_ENTRY_DELETE && !live)
            return tarn_status_new(TARN_COMMIT_CONFLICT,
                                   "file %.*s (bucket %d, level %d) is no longer live in table %s",
                                   TARN_SLICE_ARG(e->file.name), e->bucket, e->file.level,
                                   table->name);
        if (e->kind == TARN_ENTRY_ADD && live) {
            if (discard)
                continue;
            return tarn_status_new(TARN_COMMIT_CONFLICT, "file %.*s is already live in table %s",
                                   TARN_SLICE_ARG(e->file.name), table->name);
        }
        c->entries[kept++] = c->entries[i];
    }
    c->count = kept;
    return TARN_OK;
}

/* The identities that the commit deletes. */
static struct tarn_map *deleted_identities(const struct tarn_manifest_entry *entries, size_t count)
{
    struct tarn_map *deleted = tarn_map_new();
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind != TARN_ENTRY_DELETE)
            continue;
        TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
        tarn_manifest_identity(&entries[i], &identity);
        tarn_map_set(deleted, tarn_buf_slice(&identity), (void *)&entries[i]);
    }
    return deleted;
}

static bool is_deleted(const struct tarn_map *deleted, const struct tarn_manifest_entry *entry)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    tarn_manifest_identity(entry, &identity);
    return tarn_map_find(deleted, tarn_buf_slice(&identity)) != NULL;
}

/* --- 1: the bucket count --- */

/* The live files of a partition that are in a bucket: postponed files say nothing about their number. */
static struct tarn_state_iterator *in_buckets(struct tarn_table *table, struct tarn_slice partition)
{
    static const int32_t first_bucket;
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf start = {0};
    tarn_table__bucket_prefix(table->uuid, partition, NULL, &prefix);
    tarn_table__bucket_prefix(table->uuid, partition, &first_bucket, &start);
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_LIVE, tarn_buf_slice(&prefix));
    tarn_state_iterator_seek(it, tarn_buf_slice(&start));
    return it;
}

static struct tarn_status *live_bucket_count(struct tarn_table *table, struct tarn_slice partition,
                                             int32_t *out)
{
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it = in_buckets(table, partition);
    struct tarn_slice key, value;
    *out = 0;
    for (int i = 0; i < BUCKET_COUNT_STEPS_MAX && *out == 0; i++) {
        if (!tarn_state_iterator_next(it, &key, &value))
            break;
        *out = tarn_table__peek_total_buckets(value);
    }
    return tarn_state_iterator_error(it);
}

struct tarn_status *tarn_table_bucket_count(struct tarn_table *table, struct tarn_slice partition,
                                            int32_t *out)
{
    TARN_TRY(tarn_table__check_here(table));
    return live_bucket_count(table, partition, out);
}

/* An overwrite may bring another bucket count if it takes away all that is there, also what came since it was made. */
static struct tarn_status *check_replaced(struct tarn_table *table, const struct tarn_candidate *c,
                                          const struct tarn_manifest_entry *e, int32_t live)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *deleted = deleted_identities(c->entries, c->count);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it = in_buckets(table, e->partition);
    struct tarn_slice key, value, packed;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_manifest_entry entry;
        int64_t added_by;
        if (!tarn_table__split_value(value, &added_by, &packed))
            return tarn_status_new(TARN_STATE_DAMAGED, "table %s: an entry of the index is damaged",
                                   table->name);
        TARN_TRY(tarn_manifest_entry_view(packed, NULL, &entry));
        if (!is_deleted(deleted, &entry))
            return tarn_status_new(
                TARN_COMMIT_CONFLICT,
                "the commit brings %d buckets where there are %d, but leaves file %.*s of table %s, "
                "which came in the meantime",
                e->total_buckets, live, TARN_SLICE_ARG(entry.file.name), table->name);
    }
    return tarn_state_iterator_error(it);
}

static struct tarn_status *bucket_mismatch(const struct tarn_table *table,
                                           const struct tarn_manifest_entry *e, int32_t known)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf where = {0};
    if (table->view->view.schema.partition_key_count > 0) {
        tarn_buf_add_str(&where, " in partition ");
        struct tarn_status *s =
            tarn_partition_print(&table->view->view.schema, e->partition, &where);
        if (s != TARN_OK) {
            tarn_status_free(s);
            tarn_buf_clear(&where);
        }
    }
    bool is_altered = table->view->view.options.bucket == e->total_buckets;
    return tarn_status_new(
        TARN_BUCKET_MISMATCH, "table %s has %d buckets%s, the commit's files were written for %d%s",
        table->name, known, tarn_buf_cstr(&where), e->total_buckets,
        is_altered ? ", as option bucket says now: rescale or overwrite what is there, or "
                     "set the option back"
                   : "");
}

static struct tarn_status *check_bucket_counts(struct tarn_table *table,
                                               const struct tarn_candidate *c)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    for (size_t i = 0; i < c->count; i++) {
        const struct tarn_manifest_entry *e = &c->entries[i];
        if (e->total_buckets <= 0 || e->kind == TARN_ENTRY_DELETE)
            continue;
        intptr_t known = (intptr_t)tarn_map_find(seen, e->partition);
        if (known == 0) {
            int32_t live = 0;
            TARN_TRY(live_bucket_count(table, e->partition, &live));
            if (c->kind == TARN_COMMIT_OVERWRITE && live > 0 && live != e->total_buckets) {
                TARN_TRY(check_replaced(table, c, e, live));
                live = 0;
            }
            known = live > 0 ? live : e->total_buckets;
            tarn_map_set(seen, e->partition, (void *)known);
        }
        if (known != e->total_buckets)
            return bucket_mismatch(table, e, (int32_t)known);
        if (e->bucket < 0 || e->bucket >= e->total_buckets)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "file %.*s is of bucket %d of %d",
                                   TARN_SLICE_ARG(e->file.name), e->bucket, e->total_buckets);
    }
    return TARN_OK;
}

/* --- 4: no overlap of key ranges within a level above 0 --- */

struct key_types {
    const struct tarn_type **types;
    size_t count;
};

static struct key_types trimmed_key(const struct tarn_schema *schema, struct tarn_arena *arena)
{
    int *columns;
    struct key_types k = {.count = tarn_schema_trimmed_key_columns(schema, arena, &columns)};
    k.types = tarn_arena_calloc(arena, k.count + 1, sizeof *k.types);
    for (size_t i = 0; i < k.count; i++)
        k.types[i] = schema->fields[columns[i]].type;
    return k;
}

/* One file of a level, its key range decoded. */
struct range {
    const struct tarn_manifest_entry *entry;
    struct tarn_value *min, *max;
};

static int compare_keys(const struct key_types *k, const struct tarn_value *a,
                        const struct tarn_value *b)
{
    int c = 0;
    for (size_t i = 0; i < k->count && c == 0; i++)
        c = tarn_value_compare(k->types[i], &a[i], &b[i]);
    return c;
}

static int by_min_key(const void *a, const void *b, void *types)
{
    return compare_keys(types, ((const struct range *)a)->min, ((const struct range *)b)->min);
}

static struct tarn_status *decode_range(struct tarn_arena *arena, const struct key_types *k,
                                        const struct tarn_manifest_entry *entry, struct range *out)
{
    out->entry = entry;
    out->min = tarn_arena_calloc(arena, k->count * 2 + 1, sizeof *out->min);
    out->max = out->min + k->count;
    TARN_TRY(tarn_row_deserialize(entry->file.min_key, k->types, k->count, out->min));
    return tarn_row_deserialize(entry->file.max_key, k->types, k->count, out->max);
}

struct tarn_status *tarn_table__find_overlap(struct tarn_arena *arena,
                                             const struct tarn_schema *schema,
                                             const struct tarn_manifest_entry *const *files,
                                             size_t count, const struct tarn_manifest_entry **one,
                                             const struct tarn_manifest_entry **other)
{
    struct key_types k = trimmed_key(schema, arena);
    struct range *ranges = tarn_arena_calloc(arena, count + 1, sizeof *ranges);
    *one = *other = NULL;
    for (size_t i = 0; i < count; i++) {
        struct tarn_status *s = decode_range(arena, &k, files[i], &ranges[i]);
        if (s != TARN_OK)
            return tarn_status_wrap(s, "keys of file %.*s", TARN_SLICE_ARG(files[i]->file.name));
    }
    qsort_r(ranges, count, sizeof *ranges, by_min_key, &k);
    for (size_t i = 1; i < count; i++) {
        if (compare_keys(&k, ranges[i - 1].max, ranges[i].min) < 0)
            continue;
        *one = ranges[i - 1].entry;
        *other = ranges[i].entry;
        break;
    }
    return TARN_OK;
}

/* The files that one level of a bucket would have: `added` (count of them, all of that level) and what stays live. */
static struct tarn_status *check_level(struct tarn_table *table,
                                       const struct tarn_manifest_entry *const *added, size_t count,
                                       const struct tarn_map *deleted)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__bucket_prefix(table->uuid, added[0]->partition, &added[0]->bucket, &prefix);
    tarn_key_add_i64(&prefix, added[0]->file.level);
    struct tarn_live *live;
    size_t live_count, n = 0;
    TARN_TRY(tarn_table__live_list(table, tarn_buf_slice(&prefix), arena, &live, &live_count));
    const struct tarn_manifest_entry **files =
        tarn_arena_calloc(arena, live_count + count, sizeof *files);
    for (size_t i = 0; i < live_count; i++)
        if (!is_deleted(deleted, &live[i].entry))
            files[n++] = &live[i].entry;
    for (size_t i = 0; i < count; i++)
        files[n++] = added[i];
    const struct tarn_manifest_entry *one, *other;
    TARN_TRY(tarn_table__find_overlap(arena, &table->view->view.schema, files, n, &one, &other));
    if (one == NULL)
        return TARN_OK;
    return tarn_status_new(TARN_COMMIT_CONFLICT,
                           "files %.*s and %.*s would overlap in bucket %d, level %d of table %s",
                           TARN_SLICE_ARG(one->file.name), TARN_SLICE_ARG(other->file.name),
                           added[0]->bucket, added[0]->file.level, table->name);
}

static int by_level(const void *a, const void *b)
{
    const struct tarn_manifest_entry *left = *(const struct tarn_manifest_entry *const *)a;
    const struct tarn_manifest_entry *right = *(const struct tarn_manifest_entry *const *)b;
    int c = tarn_slice_compare(left->partition, right->partition);
    if (c == 0)
        c = (left->bucket > right->bucket) - (left->bucket < right->bucket);
    return c != 0 ? c
                  : (left->file.level > right->file.level) - (left->file.level < right->file.level);
}

static struct tarn_status *check_overlap(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_candidate *c)
{
    const struct tarn_table_view *view = &table->view->view;
    if (tarn_schema_is_append(&view->schema) || view->options.pk_clustering)
        return TARN_OK;
    const struct tarn_manifest_entry **added =
        tarn_arena_calloc(op->arena, c->count + 1, sizeof *added);
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->entries[i].kind == TARN_ENTRY_ADD && c->entries[i].file.level > 0)
            added[n++] = &c->entries[i];
    if (n == 0)
        return TARN_OK;
    TARN_OWN(tarn_map_drop)
    struct tarn_map *deleted = deleted_identities(c->entries, c->count);
    qsort(added, n, sizeof *added, by_level);
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && by_level(&added[begin], &added[end]) == 0;)
            end++;
        TARN_TRY(check_level(table, added + begin, end - begin, deleted));
    }
    return TARN_OK;
}

/* --- commit.strict-mode.last-safe-snapshot --- */

static struct tarn_map *touched_partitions(const struct tarn_candidate *c)
{
    struct tarn_map *partitions = tarn_map_new();
    for (size_t i = 0; i < c->count; i++)
        tarn_map_set(partitions, c->entries[i].partition, partitions);
    for (size_t i = 0; i < c->index_count; i++)
        tarn_map_set(partitions, c->index[i].partition, partitions);
    return partitions;
}

static struct tarn_status *touches_files(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_snapshot *snapshot,
                                         const struct tarn_map *partitions, bool real_buckets,
                                         bool *out)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_manifest_file *files;
    size_t file_count;
    *out = false;
    TARN_TRY(
        tarn_table__read_list(op, table, snapshot, TARN_LIST_DELTA, arena, &files, &file_count));
    for (size_t i = 0; i < file_count && !*out; i++) {
        struct tarn_manifest_entry *entries;
        size_t count;
        TARN_TRY(tarn_table__read_manifest(op, table, &files[i], arena, &entries, &count));
        for (size_t e = 0; e < count && !*out; e++)
            *out = (!real_buckets || entries[e].bucket >= 0) &&
                   tarn_map_find(partitions, entries[e].partition) != NULL;
    }
    return TARN_OK;
}

/* `before` is the snapshot before it, where there is one: an index manifest that is carried on says nothing. */
static struct tarn_status *touches_indexes(struct tarn_op *op, struct tarn_table *table,
                                           const struct tarn_snapshot *snapshot,
                                           const struct tarn_snapshot *before,
                                           const struct tarn_map *partitions, bool *out)
{
    *out = false;
    if (snapshot->index_manifest.data == NULL ||
        (before != NULL && tarn_slice_equal(snapshot->index_manifest, before->index_manifest)))
        return TARN_OK;
    const struct tarn_index_file *files;
    size_t count;
    TARN_TRY(tarn_table__index_files(op, table, snapshot->index_manifest, &files, &count));
    for (size_t i = 0; i < count && !*out; i++)
        *out = tarn_map_find(partitions, files[i].partition) != NULL;
    return TARN_OK;
}

static struct tarn_status *check_against(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_candidate *c,
                                         const struct tarn_snapshot *snapshot,
                                         const struct tarn_snapshot *before,
                                         const struct tarn_map *partitions)
{
    bool rewrites =
        snapshot->kind == TARN_COMMIT_COMPACT || snapshot->kind == TARN_COMMIT_OVERWRITE;
    bool adds = snapshot->kind == TARN_COMMIT_APPEND && c->kind == TARN_COMMIT_OVERWRITE;
    if (!rewrites && !adds)
        return TARN_OK;
    bool touched;
    TARN_TRY(touches_files(op, table, snapshot, partitions, adds, &touched));
    if (!touched && rewrites)
        TARN_TRY(touches_indexes(op, table, snapshot, before, partitions, &touched));
    if (!touched)
        return TARN_OK;
    return tarn_status_new(TARN_COMMIT_CONFLICT,
                           "snapshot %" PRId64 " (%s by user %.*s) changed a partition of this "
                           "commit to table %s, where commit.strict-mode.last-safe-snapshot is "
                           "%" PRId64,
                           snapshot->id, tarn_commit_kind_name(snapshot->kind),
                           TARN_SLICE_ARG(snapshot->commit_user), table->name,
                           table->view->view.options.last_safe_snapshot);
}

/* The snapshot of the table's history, from the index; *found false: it expired. */
struct tarn_status *tarn_table__past(struct tarn_table *table, int64_t id, struct tarn_arena *arena,
                                     bool *found, struct tarn_snapshot *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    *found = false;
    if (id >= table->view->view.earliest_id) /* below, what it names is gone */
        TARN_TRY(tarn_table__indexed_snapshot(table, id, found, &json));
    if (!*found)
        return TARN_OK;
    struct tarn_slice text = tarn_arena_copy(arena, tarn_buf_slice(&json));
    TARN_TRY(tarn_snapshot_decode(text, arena, out));
    out->json = text;
    return TARN_OK;
}

/* From the head back to the last safe snapshot, or to the user's own last one, which was held against those before
 * it. Those that expired can't be asked. */
static struct tarn_status *check_strict(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_head *head,
                                        const struct tarn_candidate *c)
{
    int64_t safe = table->view->view.options.last_safe_snapshot;
    if (safe < 0 || head == NULL || head->id <= safe)
        return TARN_OK;
    TARN_OWN(tarn_map_drop) struct tarn_map *partitions = touched_partitions(c);
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_snapshot snapshot = head->snapshot, before;
    for (int64_t id = head->id; id > safe; id--) {
        TARN_TRY(tarn_op_check(op));
        if (tarn_slice_equal(snapshot.commit_user, c->user))
            return TARN_OK;
        bool found = false;
        if (id > 1)
            TARN_TRY(tarn_table__past(table, id - 1, arena, &found, &before));
        TARN_TRY(check_against(op, table, c, &snapshot, found ? &before : NULL, partitions));
        if (!found)
            return TARN_OK;
        snapshot = before;
    }
    return TARN_OK;
}

/* --- all of it --- */

struct tarn_status *tarn_table__check_conflicts(struct tarn_op *op, struct tarn_table *table,
                                                const struct tarn_head *head,
                                                struct tarn_candidate *c)
{
    bool discard =
        c->kind == TARN_COMMIT_APPEND && table->view->view.options.discard_duplicate_files;
    TARN_TRY(check_strict(op, table, head, c));
    TARN_TRY(check_live(table, c, discard));
    TARN_TRY(check_delta(table, c));
    TARN_TRY(check_bucket_counts(table, c));
    TARN_TRY(check_overlap(op, table, c));
    return tarn_table__check_indexes(op, table, head, c);
}
