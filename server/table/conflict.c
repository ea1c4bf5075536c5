#include "table/internal.h"

/*
 * May these entries be committed on top of the indexed snapshot? Time goes with the request and the buckets it
 * touches, never with the table (docs/format.md, "Conflict checks").
 */

/* 2: the delta adds no file twice, and doesn't both add and delete one. */
static struct tarn_status *check_delta(struct tarn_table *table,
                                       const struct tarn_manifest_entry *entries, size_t count)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    for (size_t i = 0; i < count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
        tarn_manifest_identity(&entries[i], &identity);
        if (tarn_map_set(seen, tarn_buf_slice(&identity), table) != NULL)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "the commit names file %.*s twice",
                                   TARN_SLICE_ARG(entries[i].file.name));
    }
    return TARN_OK;
}

/* 3: what is deleted must be live, what is added must not be. discard: such ADDs are dropped instead. */
static struct tarn_status *check_live(struct tarn_op *op, struct tarn_table *table,
                                      struct tarn_manifest_entry *entries, size_t *count,
                                      bool discard)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        bool live;
        struct tarn_live found;
        TARN_TRY(tarn_table__live_find(table, &entries[i], op->arena, &live, &found));
        if (entries[i].kind == TARN_ENTRY_DELETE && !live)
            return tarn_status_new(TARN_COMMIT_CONFLICT, "file %.*s is no longer live in table %s",
                                   TARN_SLICE_ARG(entries[i].file.name), table->name);
        if (entries[i].kind == TARN_ENTRY_ADD && live) {
            if (discard)
                continue;
            return tarn_status_new(TARN_COMMIT_CONFLICT, "file %.*s is already live in table %s",
                                   TARN_SLICE_ARG(entries[i].file.name), table->name);
        }
        entries[kept++] = entries[i];
    }
    *count = kept;
    return TARN_OK;
}

/* The bucket count that the live files of a partition have; 0: there are none, or they don't say. */
static struct tarn_status *live_bucket_count(struct tarn_op *op, struct tarn_table *table,
                                             struct tarn_slice partition, int32_t *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__bucket_prefix(table->uuid, partition, NULL, &prefix);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_LIVE, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    *out = 0;
    if (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_live live;
        TARN_TRY(tarn_table__live_decode(value, op->arena, &live));
        *out = TARN_MAX(live.entry.total_buckets, 0);
    }
    return tarn_state_iterator_error(it);
}

/* 1: within a partition all entries agree on the bucket count. */
static struct tarn_status *check_bucket_counts(struct tarn_op *op, struct tarn_table *table,
                                               const struct tarn_manifest_entry *entries,
                                               size_t count)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    for (size_t i = 0; i < count; i++) {
        int32_t total = entries[i].total_buckets;
        if (total <= 0 || entries[i].kind == TARN_ENTRY_DELETE)
            continue;
        intptr_t known = (intptr_t)tarn_map_find(seen, entries[i].partition);
        if (known == 0) {
            int32_t live;
            TARN_TRY(live_bucket_count(op, table, entries[i].partition, &live));
            known = live > 0 ? live : total;
            tarn_map_set(seen, entries[i].partition, (void *)known);
        }
        if (known != total)
            return tarn_status_new(
                TARN_BUCKET_MISMATCH,
                "table %s has %d buckets there, the commit's files were written for %d",
                table->name, (int)known, total);
        if (entries[i].bucket < 0 || entries[i].bucket >= total)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "file %.*s is of bucket %d of %d",
                                   TARN_SLICE_ARG(entries[i].file.name), entries[i].bucket, total);
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

/* The files that one level of a bucket would have: `added` (count of them, all of that level) and what stays live. */
static struct tarn_status *check_level(struct tarn_table *table, const struct key_types *k,
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
    struct range *ranges = tarn_arena_calloc(arena, live_count + count, sizeof *ranges);
    for (size_t i = 0; i < live_count; i++)
        if (!is_deleted(deleted, &live[i].entry))
            TARN_TRY(decode_range(arena, k, &live[i].entry, &ranges[n++]));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(decode_range(arena, k, added[i], &ranges[n++]));
    qsort_r(ranges, n, sizeof *ranges, by_min_key, (void *)k);
    for (size_t i = 1; i < n; i++)
        if (compare_keys(k, ranges[i - 1].max, ranges[i].min) >= 0)
            return tarn_status_new(
                TARN_COMMIT_CONFLICT, "files %.*s and %.*s would overlap in level %d of table %s",
                TARN_SLICE_ARG(ranges[i - 1].entry->file.name),
                TARN_SLICE_ARG(ranges[i].entry->file.name), added[0]->file.level, table->name);
    return TARN_OK;
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
                                         const struct tarn_manifest_entry *entries, size_t count)
{
    const struct tarn_schema *schema = &table->view->view.schema;
    if (schema->primary_key_count == 0)
        return TARN_OK;
    const struct tarn_manifest_entry **added =
        tarn_arena_calloc(op->arena, count + 1, sizeof *added);
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (entries[i].kind == TARN_ENTRY_ADD && entries[i].file.level > 0)
            added[n++] = &entries[i];
    if (n == 0)
        return TARN_OK;
    struct key_types k = trimmed_key(schema, op->arena);
    TARN_OWN(tarn_map_drop) struct tarn_map *deleted = deleted_identities(entries, count);
    qsort(added, n, sizeof *added, by_level);
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && by_level(&added[begin], &added[end]) == 0;)
            end++;
        TARN_TRY(check_level(table, &k, added + begin, end - begin, deleted));
    }
    return TARN_OK;
}

struct tarn_status *tarn_table__check_conflicts(struct tarn_op *op, struct tarn_table *table,
                                                enum tarn_commit_kind kind,
                                                struct tarn_manifest_entry *entries, size_t *count)
{
    bool discard = kind == TARN_COMMIT_APPEND && table->view->view.options.discard_duplicate_files;
    if (!discard)
        TARN_TRY(check_delta(table, entries, *count));
    TARN_TRY(check_live(op, table, entries, count, discard));
    if (kind != TARN_COMMIT_OVERWRITE)
        TARN_TRY(check_bucket_counts(op, table, entries, *count));
    return check_overlap(op, table, entries, *count);
}
