#include "table/internal.h"

/*
 * Do new files of a bucket start above the sequence numbers that are there? Where they don't, two writers were open on
 * the bucket at once: each counts on from what it held when it opened it, and which version of a key wins is not the
 * order of their commits. The largest number of a bucket is read from the index once and kept while it can be.
 */

#define SCRATCH_SIZE_MAX (1 << 20)
#define CACHED_BUCKETS_MAX 50000 /* then all is forgotten and read again */

struct tarn_sequence_cache {
    uint64_t head_hash;       /* of the JSON of the head that it is true for */
    struct tarn_map *buckets; /* prefix of the bucket's keys -> struct known */
    struct tarn_arena *arena;
};

struct known {
    int64_t largest;
    int64_t added; /* by the snapshot that is being noted */
};

static uint64_t hash_of(const struct tarn_head *head)
{
    return head == NULL ? 0 : tarn_xxh64(head->json, 0);
}

void tarn_table__sequences_end(struct tarn_table *table)
{
    struct tarn_sequence_cache *cache = table->sequences;
    table->sequences = NULL;
    if (cache == NULL)
        return;
    tarn_map_free(cache->buckets);
    tarn_arena_free(cache->arena);
    free(cache);
}

/* The cache as it is true for the head. */
static struct tarn_sequence_cache *cache_of(struct tarn_table *table)
{
    struct tarn_sequence_cache *cache = table->sequences;
    uint64_t hash = hash_of(table->head);
    if (cache != NULL && cache->head_hash == hash &&
        tarn_map_count(cache->buckets) < CACHED_BUCKETS_MAX)
        return cache;
    tarn_table__sequences_end(table);
    cache = tarn_calloc(1, sizeof *cache);
    cache->head_hash = hash;
    cache->buckets = tarn_map_new();
    cache->arena = tarn_arena_new();
    table->sequences = cache;
    return cache;
}

static struct tarn_status *read_largest(struct tarn_table *table, struct tarn_slice prefix,
                                        int64_t *out)
{
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_LIVE, prefix);
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_slice key, value;
    *out = INT64_MIN;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_live live;
        if (tarn_arena_size(arena) > SCRATCH_SIZE_MAX) {
            tarn_arena_free(arena);
            arena = tarn_arena_new();
        }
        TARN_TRY(tarn_table__live_decode(value, arena, &live));
        *out = TARN_MAX(*out, live.entry.file.max_sequence);
    }
    return tarn_state_iterator_error(it);
}

static struct tarn_status *largest_of(struct tarn_table *table, struct tarn_slice prefix,
                                      int64_t *out)
{
    struct tarn_sequence_cache *cache = cache_of(table);
    struct known *known = tarn_map_find(cache->buckets, prefix);
    if (known == NULL) {
        int64_t largest;
        TARN_TRY(read_largest(table, prefix, &largest));
        known = tarn_arena_calloc(cache->arena, 1, sizeof *known);
        *known = (struct known){largest, INT64_MIN};
        tarn_map_set(cache->buckets, prefix, known);
    }
    *out = known->largest;
    return TARN_OK;
}

/* Numbers that a reader compares: elsewhere a sequence field or the snapshot decides. */
static bool matters(const struct tarn_table *table)
{
    const struct tarn_options *options = &table->view->view.options;
    return !tarn_schema_is_append(&table->view->view.schema) &&
           options->sequence_column_count == 0 && !options->snapshot_ordering;
}

static bool is_new(const struct tarn_manifest_entry *entry)
{
    return entry->kind == TARN_ENTRY_ADD && entry->file.level == 0 && entry->bucket >= 0;
}

static void note_highest(struct tarn_op *op, struct tarn_map *highest, struct tarn_slice bucket,
                         int64_t number)
{
    int64_t *known = tarn_map_find(highest, bucket);
    if (known == NULL) {
        known = tarn_arena_alloc(op->arena, sizeof *known);
        *known = number;
        tarn_map_set(highest, bucket, known);
    }
    *known = TARN_MAX(*known, number);
}

struct tarn_status *tarn_table__check_sequences(struct tarn_op *op, struct tarn_table *table,
                                                struct tarn_map *highest,
                                                const struct tarn_manifest_entry *entries,
                                                size_t count, int64_t *overlap_count)
{
    *overlap_count = 0;
    if (!matters(table))
        return TARN_OK;
    bool refused = table->view->view.options.sequence_overlap_refused;
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    for (size_t i = 0; i < count; i++) {
        if (!is_new(&entries[i]))
            continue;
        tarn_buf_clear(&prefix);
        tarn_table__bucket_prefix(table->uuid, entries[i].partition, &entries[i].bucket, &prefix);
        int64_t largest;
        TARN_TRY(largest_of(table, tarn_buf_slice(&prefix), &largest));
        const int64_t *before =
            highest == NULL ? NULL : tarn_map_find(highest, tarn_buf_slice(&prefix));
        largest = before == NULL ? largest : TARN_MAX(largest, *before);
        if (entries[i].file.min_sequence > largest)
            continue;
        ++*overlap_count;
        if (refused)
            return tarn_status_new(TARN_SEQUENCE_OVERLAP,
                                   "file %.*s starts at sequence number %" PRId64
                                   ", but bucket %d of table %s has %" PRId64 " already",
                                   TARN_SLICE_ARG(entries[i].file.name),
                                   entries[i].file.min_sequence, entries[i].bucket, table->name,
                                   largest);
    }
    for (size_t i = 0; i < count && highest != NULL; i++) {
        if (!is_new(&entries[i]))
            continue;
        tarn_buf_clear(&prefix);
        tarn_table__bucket_prefix(table->uuid, entries[i].partition, &entries[i].bucket, &prefix);
        note_highest(op, highest, tarn_buf_slice(&prefix), entries[i].file.max_sequence);
    }
    return TARN_OK;
}

static struct known *find_known(struct tarn_table *table, const struct tarn_manifest_entry *entry,
                                struct tarn_buf *prefix)
{
    tarn_buf_clear(prefix);
    tarn_table__bucket_prefix(table->uuid, entry->partition, &entry->bucket, prefix);
    return tarn_map_find(table->sequences->buckets, tarn_buf_slice(prefix));
}

void tarn_table__note_sequences(struct tarn_table *table, struct tarn_slice json,
                                const struct tarn_manifest_entry *entries, size_t count)
{
    if (table->sequences == NULL)
        return;
    if (table->sequences->head_hash != hash_of(table->head)) {
        tarn_table__sequences_end(table);
        return;
    }
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    for (size_t i = 0; i < count; i++) {
        struct known *known = find_known(table, &entries[i], &prefix);
        if (known != NULL && entries[i].kind == TARN_ENTRY_ADD) {
            known->added = TARN_MAX(known->added, entries[i].file.max_sequence);
            known->largest = TARN_MAX(known->largest, known->added);
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct known *known = find_known(table, &entries[i], &prefix);
        if (known != NULL && entries[i].kind == TARN_ENTRY_DELETE &&
            entries[i].file.max_sequence >= known->largest && known->added < known->largest)
            tarn_map_remove(table->sequences->buckets, tarn_buf_slice(&prefix));
    }
    for (size_t i = 0; i < count; i++) {
        struct known *known = find_known(table, &entries[i], &prefix);
        if (known != NULL)
            known->added = INT64_MIN;
    }
    table->sequences->head_hash = tarn_xxh64(json, 0);
}

/* --- blocks of numbers for writers --- */

static struct tarn_status *no_numbers_left(const struct tarn_table *table)
{
    return tarn_status_new(TARN_INVALID_ARGUMENT,
                           "table %s has no sequence numbers left in this bucket", table->name);
}

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
    int64_t next, largest = -1;
    for (size_t i = 0; i < live_count; i++)
        largest = TARN_MAX(largest, live[i].entry.file.max_sequence);
    if (__builtin_add_overflow(largest, 1, &next))
        return no_numbers_left(table);
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
        s = no_numbers_left(table);
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
