/*
 * assign - the partition and bucket of each row of a batch.
 *
 * Partitions are looked up once per stretch of equal rows. Buckets of one INT, BIGINT or VARCHAR
 * column, which most bucket keys are, are hashed from the row's bytes built in place; others go through
 * format's tarn_bucket_of.
 */
#include "merge/internal.h"

struct partition {
    struct tarn_slice row; /* serialized; in the arena */
    uint32_t *targets;     /* by bucket, plus 1; 0: not met. In the arena */
};

struct target {
    const struct partition *partition;
    int32_t bucket;
};

struct tarn_merge_assign {
    const struct tarn_merge_layout *layout;
    struct tarn_arena *arena;
    struct tarn_map *partitions; /* by serialized row */
    struct partition *single;    /* of a table without partitions */
    struct target *targets;
    size_t target_count, target_capacity;
    int32_t bucket_count; /* 1 for unaware tables */
    const struct tarn_type **bucket_types;
    struct tarn_merge_key_column *partition_key_columns;
    struct tarn_merge_key_spec partition_keys;
    struct tarn_buf row;
};

static struct partition *partition_new(struct tarn_merge_assign *assign, struct tarn_slice row)
{
    struct partition *partition = tarn_arena_calloc(assign->arena, 1, sizeof *partition);

    partition->row = tarn_arena_copy(assign->arena, row);
    partition->targets =
        tarn_arena_calloc(assign->arena, (size_t)assign->bucket_count, sizeof *partition->targets);
    tarn_map_set(assign->partitions, row, partition);
    return partition;
}

struct tarn_merge_assign *tarn_merge__assign_new(const struct tarn_merge_layout *layout)
{
    const struct tarn_options *options = layout->table->options;
    struct tarn_merge_assign *assign = tarn_calloc(1, sizeof *assign);

    assign->layout = layout;
    assign->arena = tarn_arena_new();
    assign->partitions = tarn_map_new();
    assign->bucket_count = options->bucket > 0 ? options->bucket : 1;
    assign->bucket_types = tarn_arena_calloc(assign->arena, options->bucket_key_count + 1,
                                             sizeof *assign->bucket_types);
    for (size_t i = 0; i < options->bucket_key_count; i++)
        assign->bucket_types[i] = layout->types[options->bucket_key_columns[i]];
    assign->partition_key_columns = tarn_arena_calloc(assign->arena, layout->partition_count + 1,
                                                      sizeof *assign->partition_key_columns);
    for (size_t i = 0; i < layout->partition_count; i++)
        assign->partition_key_columns[i] = (struct tarn_merge_key_column){
            layout->partition_columns[i], layout->partition_types[i], false};
    tarn_merge__key_spec_init(&assign->partition_keys, assign->partition_key_columns,
                              layout->partition_count);
    if (layout->partition_count == 0)
        assign->single = partition_new(assign, tarn_row_empty());
    return assign;
}

void tarn_merge__assign_free(struct tarn_merge_assign *assign)
{
    if (assign == NULL)
        return;
    tarn_map_free(assign->partitions);
    tarn_arena_free(assign->arena);
    tarn_buf_drop(&assign->row);
    free(assign->targets);
    free(assign);
}

size_t tarn_merge__assign_count(const struct tarn_merge_assign *assign)
{
    return assign->target_count;
}

void tarn_merge__assign_get(const struct tarn_merge_assign *assign, uint32_t target,
                            struct tarn_slice *partition, int32_t *bucket)
{
    *partition = assign->targets[target].partition->row;
    *bucket = assign->targets[target].bucket;
}

static inline uint32_t target_of(struct tarn_merge_assign *assign, struct partition *partition,
                                 int32_t bucket)
{
    uint32_t *known = &partition->targets[bucket];

    if (*known == 0) {
        TARN_GROW(assign->targets, assign->target_count, assign->target_capacity);
        assign->targets[assign->target_count++] = (struct target){partition, bucket};
        *known = (uint32_t)assign->target_count;
    }
    return *known - 1;
}

/* --- buckets --- */

static inline int32_t bucket_of_hash(int32_t hash, int32_t count)
{
    int32_t rest = hash % count; /* the sign is the hash's: not floorMod (format.md 6.2) */
    return rest < 0 ? -rest : rest;
}

/* One NOT NULL number: a row of 8 bytes of header and its slot. */
static void hash_numbers(const struct ArrowArray *a, bool wide, int32_t count, int32_t *buckets)
{
    const int32_t *narrow = (const int32_t *)a->buffers[1] + a->offset;
    const int64_t *full = (const int64_t *)a->buffers[1] + a->offset;
    uint64_t row[2] = {0, 0};

    for (int64_t i = 0; i < a->length; i++) {
        row[1] = wide ? (uint64_t)full[i] : (uint64_t)(uint32_t)narrow[i];
        buckets[i] = bucket_of_hash(tarn_row_hash(tarn_slice_of(row, sizeof row)), count);
    }
}

/* One NOT NULL text: up to 7 bytes in the slot, more behind it (format.md 5.2). */
static void hash_texts(const struct ArrowArray *a, int32_t count, struct tarn_buf *row,
                       int32_t *buckets)
{
    const int32_t *offsets = (const int32_t *)a->buffers[1] + a->offset;
    const uint8_t *data = a->buffers[2];

    for (int64_t i = 0; i < a->length; i++) {
        const uint8_t *text = data + offsets[i];
        size_t size = (size_t)(offsets[i + 1] - offsets[i]);
        uint64_t slot = 0;

        tarn_buf_clear(row);
        tarn_buf_add_zeros(row, 8);
        if (size <= 7) {
            if (size > 0)
                memcpy(&slot, text, size);
            slot |= (uint64_t)(0x80 | size) << 56;
            tarn_buf_add(row, &slot, 8);
        } else {
            slot = UINT64_C(16) << 32 | size;
            tarn_buf_add(row, &slot, 8);
            tarn_buf_add(row, text, size);
            tarn_buf_add_zeros(row, (8 - size % 8) % 8);
        }
        buckets[i] = bucket_of_hash(tarn_row_hash(tarn_buf_slice(row)), count);
    }
}

static void hash_values(struct tarn_merge_assign *assign, const struct tarn_batch *batch,
                        int32_t *buckets)
{
    const struct tarn_options *options = assign->layout->table->options;
    size_t n = options->bucket_key_count;
    struct tarn_value *values = tarn_calloc(n + 1, sizeof *values);

    for (int64_t row = 0; row < batch->row_count; row++) {
        for (size_t i = 0; i < n; i++)
            tarn_column_value(tarn_batch_column(batch, options->bucket_key_columns[i]),
                              assign->bucket_types[i], row, &values[i]);
        buckets[row] = tarn_bucket_of(options->bucket_function, assign->bucket_types, values, n,
                                      assign->bucket_count);
    }
    free(values);
}

static void assign_buckets(struct tarn_merge_assign *assign, const struct tarn_batch *batch,
                           int32_t *buckets)
{
    const struct tarn_options *options = assign->layout->table->options;

    if (assign->bucket_count == 1) {
        memset(buckets, 0, (size_t)batch->row_count * sizeof *buckets);
        return;
    }
    if (options->bucket_key_count == 1 && options->bucket_function == TARN_BUCKET_DEFAULT) {
        const struct ArrowArray *a = tarn_batch_column(batch, options->bucket_key_columns[0]);
        enum tarn_type_id id = assign->bucket_types[0]->id;
        if (!tarn_merge__has_nulls(a)) {
            if (id == TARN_TYPE_INT || id == TARN_TYPE_BIGINT) {
                hash_numbers(a, id == TARN_TYPE_BIGINT, assign->bucket_count, buckets);
                return;
            }
            if (id == TARN_TYPE_VARCHAR) {
                hash_texts(a, assign->bucket_count, &assign->row, buckets);
                return;
            }
        }
    }
    hash_values(assign, batch, buckets);
}

/* --- partitions --- */

static struct partition *find_partition(struct tarn_merge_assign *assign,
                                        const struct tarn_batch *batch, int64_t row,
                                        struct tarn_value *values)
{
    const struct tarn_merge_layout *layout = assign->layout;

    for (size_t i = 0; i < layout->partition_count; i++)
        tarn_column_value(tarn_batch_column(batch, layout->partition_columns[i]),
                          layout->partition_types[i], row, &values[i]);
    tarn_buf_clear(&assign->row);
    tarn_row_serialize(layout->partition_types, values, layout->partition_count, &assign->row);
    struct partition *known = tarn_map_find(assign->partitions, tarn_buf_slice(&assign->row));
    return known != NULL ? known : partition_new(assign, tarn_buf_slice(&assign->row));
}

static struct tarn_status *assign_partitioned(struct tarn_merge_assign *assign,
                                              const struct tarn_batch *batch,
                                              const int32_t *buckets, uint32_t *targets)
{
    struct tarn_merge_keys keys;
    TARN_TRY(tarn_merge__keys_build(&assign->partition_keys, batch, &keys));

    struct tarn_value *values = tarn_calloc(assign->layout->partition_count + 1, sizeof *values);
    struct partition *partition = NULL;
    for (uint32_t i = 0; i < (uint32_t)batch->row_count; i++) {
        if (i == 0 || tarn_merge__keys_compare(&keys, i - 1, &keys, i) != 0)
            partition = find_partition(assign, batch, i, values);
        targets[i] = target_of(assign, partition, buckets[i]);
    }
    free(values);
    tarn_merge__keys_drop(&keys);
    return TARN_OK;
}

struct tarn_status *tarn_merge__assign_rows(struct tarn_merge_assign *assign,
                                            const struct tarn_batch *batch, uint32_t *targets)
{
    int32_t *buckets = tarn_alloc(((size_t)batch->row_count + 1) * sizeof *buckets);
    struct tarn_status *s = TARN_OK;

    assign_buckets(assign, batch, buckets);
    if (assign->single == NULL) {
        s = assign_partitioned(assign, batch, buckets, targets);
    } else {
        for (int64_t i = 0; i < batch->row_count; i++)
            targets[i] = target_of(assign, assign->single, buckets[i]);
    }
    free(buckets);
    return s;
}
