/*
 * assign - the partition and bucket of each row of a batch.
 *
 * Partitions are looked up once per stretch of equal rows. Buckets of one INT, BIGINT or VARCHAR
 * column, which most bucket keys are, are hashed from the row's bytes built in place; others go through
 * format's tarn_bucket_of. Dynamic buckets are looked up by the same hash (dynamic.c); where keys cross partitions, by
 * the key alone (cross.c).
 */
#include "merge/internal.h"

struct partition {
    struct tarn_slice row;              /* serialized; in the arena */
    uint32_t *targets;                  /* by bucket, plus 1; 0: not met. In the arena */
    int32_t target_count;               /* buckets that there is room for */
    struct tarn_merge_dynamic *dynamic; /* NULL: not met yet, or buckets are fixed */
    int32_t bucket_count;               /* 0: not asked yet */
};

struct target {
    const struct partition *partition;
    int32_t bucket;
};

struct tarn_merge_assign {
    const struct tarn_merge_layout *layout;
    const struct tarn_write_spec *spec;
    struct tarn_arena *arena;
    struct tarn_map *partitions; /* by serialized row */
    struct partition *single;    /* of a table without partitions */
    struct target *targets;
    size_t target_count, target_capacity;
    int32_t bucket_count;           /* 1 for unaware tables */
    bool is_dynamic;                /* by a hash index of the partition */
    bool asks;                      /* partitions may have bucket counts of their own */
    struct tarn_merge_cross *cross; /* NULL: keys stay in their partition */
    struct tarn_merge_leave *leaves;
    size_t leave_count, leave_capacity;
    const struct tarn_type **bucket_types;
    struct tarn_merge_key_column *partition_key_columns;
    struct tarn_merge_key_spec partition_keys;
    struct tarn_buf row;
};

static struct partition *partition_new(struct tarn_merge_assign *assign, struct tarn_slice row)
{
    struct partition *partition = tarn_arena_calloc(assign->arena, 1, sizeof *partition);

    partition->row = tarn_arena_copy(assign->arena, row);
    partition->target_count = assign->bucket_count;
    partition->targets =
        tarn_arena_calloc(assign->arena, (size_t)assign->bucket_count, sizeof *partition->targets);
    tarn_map_set(assign->partitions, row, partition);
    return partition;
}

struct tarn_merge_assign *tarn_merge__assign_new(const struct tarn_merge_layout *layout,
                                                 const struct tarn_write_spec *spec)
{
    const struct tarn_options *options = layout->table->options;
    struct tarn_merge_assign *assign = tarn_calloc(1, sizeof *assign);

    assign->layout = layout;
    assign->spec = spec;
    bool dynamic = layout->keyed && options->bucket == -1;
    assign->is_dynamic = dynamic && !options->keys_cross_partitions;
    if (dynamic && options->keys_cross_partitions)
        assign->cross = tarn_merge__cross_new(layout);
    assign->arena = tarn_arena_new();
    assign->partitions = tarn_map_new();
    assign->bucket_count = options->bucket > 0 ? options->bucket : 1;
    assign->asks = options->bucket > 0 && spec->bucket_count != NULL;
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
    size_t cursor = 0;
    struct tarn_slice row;
    void *partition;

    if (assign == NULL)
        return;
    while (tarn_map_next(assign->partitions, &cursor, &row, &partition))
        tarn_merge__dynamic_free(((struct partition *)partition)->dynamic);
    tarn_map_free(assign->partitions);
    tarn_merge__cross_free(assign->cross);
    free(assign->leaves);
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
    bool postponed =
        assign->layout->keyed && assign->layout->table->options->bucket == TARN_BUCKET_POSTPONE;
    *bucket = postponed ? TARN_BUCKET_POSTPONE : assign->targets[target].bucket;
}

int32_t tarn_merge__assign_total(const struct tarn_merge_assign *assign, uint32_t target)
{
    return assign->asks ? assign->targets[target].partition->bucket_count
                        : assign->layout->table->options->bucket;
}

/* There may be more than before: dynamic buckets, or a partition that has more than the table. */
static void make_room(struct tarn_merge_assign *assign, struct partition *partition, int32_t bucket)
{
    int32_t count = TARN_MAX(bucket + 1, partition->target_count * 2);
    uint32_t *targets = tarn_arena_calloc(assign->arena, (size_t)count, sizeof *targets);

    memcpy(targets, partition->targets, (size_t)partition->target_count * sizeof *targets);
    partition->targets = targets;
    partition->target_count = count;
}

static inline uint32_t target_of(struct tarn_merge_assign *assign, struct partition *partition,
                                 int32_t bucket)
{
    if (bucket >= partition->target_count)
        make_room(assign, partition, bucket);
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
static void hash_numbers(const struct ArrowArray *a, bool wide, int32_t *hashes)
{
    const int32_t *narrow = (const int32_t *)a->buffers[1] + a->offset;
    const int64_t *full = (const int64_t *)a->buffers[1] + a->offset;
    uint64_t row[2] = {0, 0};

    for (int64_t i = 0; i < a->length; i++) {
        row[1] = wide ? (uint64_t)full[i] : (uint64_t)(uint32_t)narrow[i];
        hashes[i] = tarn_row_hash(tarn_slice_of(row, sizeof row));
    }
}

/* One NOT NULL text: up to 7 bytes in the slot, more behind it (format.md 5.2). */
static void hash_texts(const struct ArrowArray *a, struct tarn_buf *row, int32_t *hashes)
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
        hashes[i] = tarn_row_hash(tarn_buf_slice(row));
    }
}

static void hash_values(struct tarn_merge_assign *assign, const struct tarn_batch *batch,
                        struct tarn_value *values, int32_t *hashes)
{
    const struct tarn_options *options = assign->layout->table->options;
    size_t n = options->bucket_key_count;
    bool is_default = options->bucket_function == TARN_BUCKET_DEFAULT;

    for (int64_t row = 0; row < batch->row_count; row++) {
        for (size_t i = 0; i < n; i++)
            tarn_column_value(tarn_batch_column(batch, options->bucket_key_columns[i]),
                              assign->bucket_types[i], row, &values[i]);
        if (!is_default) { /* other functions know no hash behind the bucket */
            hashes[row] = tarn_bucket_of(options->bucket_function, assign->bucket_types, values, n,
                                         assign->bucket_count);
            continue;
        }
        tarn_buf_clear(&assign->row);
        tarn_row_encode(assign->bucket_types, values, n, &assign->row);
        hashes[row] = tarn_row_hash(tarn_buf_slice(&assign->row));
    }
}

/* Hashes of the bucket key; the buckets themselves where the bucket function isn't the default one. */
static void hash_keys(struct tarn_merge_assign *assign, const struct tarn_batch *batch,
                      int32_t *hashes)
{
    const struct tarn_options *options = assign->layout->table->options;

    if (options->bucket_key_count == 1 && options->bucket_function == TARN_BUCKET_DEFAULT) {
        const struct ArrowArray *a = tarn_batch_column(batch, options->bucket_key_columns[0]);
        enum tarn_type_id id = assign->bucket_types[0]->id;
        if (!tarn_merge__has_nulls(a)) {
            if (id == TARN_TYPE_INT || id == TARN_TYPE_BIGINT) {
                hash_numbers(a, id == TARN_TYPE_BIGINT, hashes);
                return;
            }
            if (id == TARN_TYPE_VARCHAR) {
                hash_texts(a, &assign->row, hashes);
                return;
            }
        }
    }
    struct tarn_value *values = tarn_calloc(options->bucket_key_count + 1, sizeof *values);
    hash_values(assign, batch, values, hashes);
    free(values);
}

/* Dynamic buckets: the hashes by which they are looked up, as where partitions have counts of their own; else the buckets. */
static void assign_buckets(struct tarn_merge_assign *assign, const struct tarn_batch *batch,
                           int32_t *out)
{
    if (assign->bucket_count == 1 && !assign->is_dynamic &&
        !assign->asks) { /* keys across partitions as well */
        memset(out, 0, (size_t)batch->row_count * sizeof *out);
        return;
    }
    hash_keys(assign, batch, out);
    if (assign->is_dynamic || assign->asks ||
        assign->layout->table->options->bucket_function != TARN_BUCKET_DEFAULT)
        return;
    for (int64_t i = 0; i < batch->row_count; i++)
        out[i] = bucket_of_hash(out[i], assign->bucket_count);
}

/* --- partitions --- */

static struct partition *partition_of(struct tarn_merge_assign *assign, struct tarn_slice row)
{
    struct partition *known = tarn_map_find(assign->partitions, row);
    return known != NULL ? known : partition_new(assign, row);
}

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
    return partition_of(assign, tarn_buf_slice(&assign->row));
}

/* --- keys across partitions --- */

static struct tarn_status *open_counts(struct tarn_merge_assign *assign, struct tarn_op *op,
                                       struct partition *partition)
{
    if (partition->dynamic != NULL)
        return TARN_OK;
    return tarn_merge__dynamic_open(op, assign->layout, NULL, 0, partition->row,
                                    &partition->dynamic);
}

static struct tarn_status *learn_split(struct tarn_merge_assign *assign, struct tarn_op *op,
                                       const struct tarn_merge_split *split, const int *columns)
{
    struct partition *partition = partition_of(assign, split->partition);
    TARN_OWN(tarn_source_drop) struct tarn_source *source = NULL;

    TARN_TRY(open_counts(assign, op, partition));
    TARN_TRY(
        tarn_merge__cross_open_split(assign->cross, op, split, assign->spec->scratch_dir, &source));
    for (;;) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        TARN_TRY(source->next(source, op, &batch));
        if (batch == NULL)
            return TARN_OK;
        for (int64_t i = 0; i < batch->row_count; i++) {
            struct tarn_merge_home *home;
            TARN_TRY(tarn_merge__cross_find(assign->cross, batch, columns, i, &home));
            home->partition = partition;
            home->bucket = split->bucket;
        }
        tarn_merge__dynamic_count(partition->dynamic, split->bucket, batch->row_count);
    }
}

/* All keys that the table has. */
struct tarn_status *tarn_merge__assign_learn(struct tarn_merge_assign *assign, struct tarn_op *op)
{
    struct tarn_status *s = TARN_OK;
    size_t n = assign->layout->table->schema->primary_key_count;

    if (assign->cross == NULL)
        return TARN_OK;
    int *columns = tarn_calloc(n + 1, sizeof *columns);
    for (size_t i = 0; i < n; i++)
        columns[i] = (int)i;
    for (size_t i = 0; i < assign->spec->known_count && s == TARN_OK; i++)
        if (assign->spec->known[i].bucket >= 0)
            s = learn_split(assign, op, &assign->spec->known[i], columns);
    free(columns);
    return s;
}

static struct tarn_status *assign_key(struct tarn_merge_assign *assign, struct tarn_op *op,
                                      const struct tarn_batch *batch, struct partition *partition,
                                      uint32_t row, uint32_t *target)
{
    struct tarn_merge_home *home;
    TARN_TRY(tarn_merge__cross_find(assign->cross, batch, NULL, row, &home));
    struct partition *old = home->partition;
    if (old != NULL && old != partition) { /* it leaves */
        TARN_GROW(assign->leaves, assign->leave_count, assign->leave_capacity);
        assign->leaves[assign->leave_count++] = (struct tarn_merge_leave){
            .row = row, .target = target_of(assign, old, home->bucket), .partition = old->row};
        tarn_merge__dynamic_count(old->dynamic, home->bucket, -1);
    }
    if (old != partition) {
        TARN_TRY(open_counts(assign, op, partition));
        TARN_TRY(tarn_merge__dynamic_place(partition->dynamic, &home->bucket));
        home->partition = partition;
    }
    *target = target_of(assign, partition, home->bucket);
    return TARN_OK;
}

const struct tarn_merge_leave *tarn_merge__assign_leaves(const struct tarn_merge_assign *assign,
                                                         size_t *count)
{
    *count = assign->leave_count;
    return assign->leaves;
}

/* --- counts of their own --- */

static struct tarn_status *ask_count(const struct tarn_merge_assign *assign, struct tarn_op *op,
                                     struct partition *partition)
{
    const struct tarn_write_spec *spec = assign->spec;
    int32_t count;

    TARN_TRY(spec->bucket_count(spec->sequence_arg, op, partition->row, &count));
    if (count > 0 && count != assign->bucket_count &&
        assign->layout->table->options->bucket_function != TARN_BUCKET_DEFAULT)
        return tarn_status_new(TARN_BUCKET_MISMATCH,
                               "a partition has %" PRId32 " buckets, the table %" PRId32
                               ", and its bucket function is not the default one: rescale it first",
                               count, assign->bucket_count);
    partition->bucket_count = count > 0 ? count : assign->bucket_count;
    return TARN_OK;
}

/* `bucket`: the hash, but for other bucket functions, which have given the bucket. */
static struct tarn_status *settle_bucket(struct tarn_merge_assign *assign, struct tarn_op *op,
                                         struct partition *partition, int32_t *bucket)
{
    if (partition->bucket_count == 0)
        TARN_TRY(ask_count(assign, op, partition));
    if (assign->layout->table->options->bucket_function == TARN_BUCKET_DEFAULT)
        *bucket = bucket_of_hash(*bucket, partition->bucket_count);
    return TARN_OK;
}

/* Where the row goes; `bucket`: its hash where buckets are dynamic, or partitions have counts of their own. */
static struct tarn_status *assign_row(struct tarn_merge_assign *assign, struct tarn_op *op,
                                      const struct tarn_batch *batch, uint32_t row,
                                      struct partition *partition, int32_t bucket, uint32_t *target)
{
    if (assign->cross != NULL)
        return assign_key(assign, op, batch, partition, row, target);
    if (assign->is_dynamic) {
        if (partition->dynamic == NULL)
            TARN_TRY(tarn_merge__dynamic_open(op, assign->layout, assign->spec->indexes,
                                              assign->spec->index_count, partition->row,
                                              &partition->dynamic));
        TARN_TRY(tarn_merge__dynamic_assign(partition->dynamic, bucket, &bucket));
    }
    if (assign->asks)
        TARN_TRY(settle_bucket(assign, op, partition, &bucket));
    *target = target_of(assign, partition, bucket);
    return TARN_OK;
}

static struct tarn_status *assign_partitioned(struct tarn_merge_assign *assign, struct tarn_op *op,
                                              const struct tarn_batch *batch,
                                              const int32_t *buckets, uint32_t *targets)
{
    struct tarn_merge_keys keys;
    struct tarn_status *s = TARN_OK;
    TARN_TRY(tarn_merge__keys_build(&assign->partition_keys, batch, &keys));

    struct tarn_value *values = tarn_calloc(assign->layout->partition_count + 1, sizeof *values);
    struct partition *partition = NULL;
    for (uint32_t i = 0; i < (uint32_t)batch->row_count && s == TARN_OK; i++) {
        if (i == 0 || tarn_merge__keys_compare(&keys, i - 1, &keys, i) != 0)
            partition = find_partition(assign, batch, i, values);
        s = assign_row(assign, op, batch, i, partition, buckets[i], &targets[i]);
    }
    free(values);
    tarn_merge__keys_drop(&keys);
    return s;
}

struct tarn_status *tarn_merge__assign_rows(struct tarn_merge_assign *assign, struct tarn_op *op,
                                            const struct tarn_batch *batch, uint32_t *targets)
{
    int32_t *buckets = tarn_alloc(((size_t)batch->row_count + 1) * sizeof *buckets);
    struct tarn_status *s = TARN_OK;

    assign->leave_count = 0;
    assign_buckets(assign, batch, buckets);
    if (assign->single == NULL) {
        s = assign_partitioned(assign, op, batch, buckets, targets);
    } else {
        for (int64_t i = 0; i < batch->row_count && s == TARN_OK; i++)
            s = assign_row(assign, op, batch, (uint32_t)i, assign->single, buckets[i], &targets[i]);
    }
    free(buckets);
    return s;
}

struct tarn_status *tarn_merge__assign_write(const struct tarn_merge_assign *assign,
                                             struct tarn_op *op, struct tarn_arena *arena,
                                             struct tarn_merge_index_files *out)
{
    size_t cursor = 0;
    struct tarn_slice row;
    void *found;

    while (tarn_map_next(assign->partitions, &cursor, &row, &found)) {
        const struct partition *partition = found;
        if (partition->dynamic != NULL)
            TARN_TRY(tarn_merge__dynamic_write(partition->dynamic, op, arena, out));
    }
    return TARN_OK;
}
