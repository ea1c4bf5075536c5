#include "table/internal.h"

/*
 * May these entries be committed on top of the indexed snapshot? Time goes with the request and the buckets it
 * touches, never with the table (docs/format.md, "Conflict checks").
 */

/* 2: the delta adds no file twice, and doesn't both add and delete one. */
static struct tarn_status *check_delta(struct tarn_table *table, const struct tarn_manifest_entry *entries,
                                       size_t count)
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
                                      struct tarn_manifest_entry *entries, size_t *count, bool discard)
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
                                               const struct tarn_manifest_entry *entries, size_t count)
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
            return tarn_status_new(TARN_BUCKET_MISMATCH,
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

static struct tarn_status *compare_keys(struct tarn_op *op, struct key_types k, struct tarn_slice a,
                                        struct tarn_slice b, int *out)
{
    struct tarn_value *left = tarn_arena_calloc(op->arena, k.count * 2 + 1, sizeof *left);
    struct tarn_value *right = left + k.count;
    TARN_TRY(tarn_row_deserialize(a, k.types, k.count, left));
    TARN_TRY(tarn_row_deserialize(b, k.types, k.count, right));
    *out = 0;
    for (size_t i = 0; i < k.count && *out == 0; i++)
        *out = tarn_value_compare(k.types[i], &left[i], &right[i]);
    return TARN_OK;
}

static bool deleted_by(const struct tarn_manifest_entry *entries, size_t count, const struct tarn_manifest_entry *file)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf wanted = {0};
    tarn_manifest_identity(file, &wanted);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind != TARN_ENTRY_DELETE || !tarn_slice_equal(entries[i].file.name, file->file.name))
            continue;
        TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
        tarn_manifest_identity(&entries[i], &identity);
        if (tarn_slice_equal(tarn_buf_slice(&identity), tarn_buf_slice(&wanted)))
            return true;
    }
    return false;
}

static bool same_level(const struct tarn_manifest_entry *a, const struct tarn_manifest_entry *b)
{
    return a->bucket == b->bucket && a->file.level == b->file.level && tarn_slice_equal(a->partition, b->partition);
}

/* The added file against one other file of its level. */
static struct tarn_status *check_pair(struct tarn_op *op, struct tarn_table *table, struct key_types k,
                                      const struct tarn_manifest_entry *added, const struct tarn_manifest_entry *other)
{
    int before, after;
    TARN_TRY(compare_keys(op, k, added->file.max_key, other->file.min_key, &before));
    TARN_TRY(compare_keys(op, k, other->file.max_key, added->file.min_key, &after));
    if (before < 0 || after < 0)
        return TARN_OK;
    return tarn_status_new(TARN_COMMIT_CONFLICT, "files %.*s and %.*s would overlap in level %d of table %s",
                           TARN_SLICE_ARG(added->file.name), TARN_SLICE_ARG(other->file.name), added->file.level,
                           table->name);
}

static struct tarn_status *check_overlap(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_manifest_entry *entries, size_t count)
{
    const struct tarn_schema *schema = &table->view->view.schema;
    if (schema->primary_key_count == 0)
        return TARN_OK;
    struct key_types k = trimmed_key(schema, op->arena);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind != TARN_ENTRY_ADD || entries[i].file.level == 0)
            continue;
        TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
        TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
        tarn_table__bucket_prefix(table->uuid, entries[i].partition, &entries[i].bucket, &prefix);
        tarn_key_add_i64(&prefix, entries[i].file.level);
        struct tarn_live *live;
        size_t live_count;
        TARN_TRY(tarn_table__live_list(table, tarn_buf_slice(&prefix), arena, &live, &live_count));
        for (size_t l = 0; l < live_count; l++)
            if (!deleted_by(entries, count, &live[l].entry))
                TARN_TRY(check_pair(op, table, k, &entries[i], &live[l].entry));
        for (size_t e = 0; e < i; e++)
            if (entries[e].kind == TARN_ENTRY_ADD && same_level(&entries[e], &entries[i]))
                TARN_TRY(check_pair(op, table, k, &entries[i], &entries[e]));
    }
    return TARN_OK;
}

struct tarn_status *tarn_table__check_conflicts(struct tarn_op *op, struct tarn_table *table,
                                                enum tarn_commit_kind kind, struct tarn_manifest_entry *entries,
                                                size_t *count)
{
    bool discard = kind == TARN_COMMIT_APPEND && table->view->view.options.discard_duplicate_files;
    if (!discard)
        TARN_TRY(check_delta(table, entries, *count));
    TARN_TRY(check_live(op, table, entries, count, discard));
    if (kind != TARN_COMMIT_OVERWRITE)
        TARN_TRY(check_bucket_counts(op, table, entries, *count));
    return check_overlap(op, table, entries, *count);
}
