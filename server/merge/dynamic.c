/*
 * dynamic - buckets of keys that have theirs written down: the HASH index of a partition (docs/format.md, "Dynamic
 * buckets").
 *
 * An index file lists the hashes of a bucket's keys. A hash that is known goes where it is; a new one into the first bucket
 * that isn't full, else into a new one. One assigner sees all keys of a partition: the commit holds its index files
 * against those that were read here (INDEX_STALE).
 */
#include "merge/internal.h"

#define BUCKETS_MAX 32767 /* Paimon keeps a bucket's number in 16 bits */

struct place { /* of a hash */
    int32_t hash;
    int32_t bucket; /* plus 1; 0: free */
};

struct held { /* a bucket, by its number */
    int64_t count;
    bool is_there, is_changed;
};

struct tarn_merge_dynamic {
    const struct tarn_merge_layout *layout;
    struct tarn_slice partition; /* borrowed */
    struct place *places;        /* open addressing; a power of two */
    size_t place_count, used;
    struct held *buckets;
    int32_t bucket_count; /* numbers below it were looked at */
    int32_t first_open;   /* below it all buckets are full */
};

void tarn_merge__dynamic_free(struct tarn_merge_dynamic *dynamic)
{
    if (dynamic == NULL)
        return;
    free(dynamic->places);
    free(dynamic->buckets);
    free(dynamic);
}

static struct held *bucket_at(struct tarn_merge_dynamic *dynamic, int32_t number)
{
    if (number >= dynamic->bucket_count) {
        int32_t count = number + 8;
        dynamic->buckets = tarn_realloc(dynamic->buckets, (size_t)count * sizeof *dynamic->buckets);
        memset(dynamic->buckets + dynamic->bucket_count, 0,
               (size_t)(count - dynamic->bucket_count) * sizeof *dynamic->buckets);
        dynamic->bucket_count = count;
    }
    return &dynamic->buckets[number];
}

/* --- the hashes --- */

static struct place *find_place(struct place *places, size_t count, int32_t hash)
{
    size_t at = (uint32_t)hash & (count - 1); /* it is a good hash already */
    while (places[at].bucket != 0 && places[at].hash != hash)
        at = (at + 1) & (count - 1);
    return &places[at];
}

static void grow_places(struct tarn_merge_dynamic *dynamic, size_t needed)
{
    size_t count = TARN_MAX(dynamic->place_count, (size_t)1024);
    while (count * 2 < needed * 3)
        count *= 2;
    if (count == dynamic->place_count)
        return;
    struct place *places = tarn_calloc(count, sizeof *places);
    for (size_t i = 0; i < dynamic->place_count; i++)
        if (dynamic->places[i].bucket != 0)
            *find_place(places, count, dynamic->places[i].hash) = dynamic->places[i];
    free(dynamic->places);
    dynamic->places = places;
    dynamic->place_count = count;
}

static void remember(struct tarn_merge_dynamic *dynamic, struct place *place, int32_t hash,
                     int32_t bucket)
{
    dynamic->used += place->bucket == 0;
    *place = (struct place){hash, bucket + 1};
}

/* --- the index files --- */

static int32_t read_hash(const uint8_t *bytes)
{
    return (int32_t)((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
                     (uint32_t)bytes[3]);
}

static struct tarn_status *read_index(struct tarn_merge_dynamic *dynamic, struct tarn_op *op,
                                      const struct tarn_index_file *file)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    const char *key;

    if (file->bucket < 0 || file->bucket >= BUCKETS_MAX)
        return tarn_status_new(TARN_DATA_FILE_MALFORMED, "index file %.*s is of bucket %" PRId32,
                               TARN_SLICE_ARG(file->name), file->bucket);
    TARN_TRY(tarn_merge__index_file_key(dynamic->layout->table, file, op->arena, &key));
    TARN_TRY(tarn_store_get(dynamic->layout->table->store, op, key, &bytes));
    if (bytes.size % 4 != 0)
        return tarn_status_new(TARN_DATA_FILE_MALFORMED,
                               "index file %s has %zu bytes; hashes have 4 each", key, bytes.size);
    size_t count = bytes.size / 4;
    struct held *bucket = bucket_at(dynamic, file->bucket);
    bucket->is_there = true;
    bucket->count += (int64_t)count;
    grow_places(dynamic, dynamic->used + count);
    for (size_t i = 0; i < count; i++) {
        int32_t hash = read_hash(bytes.data + i * 4);
        remember(dynamic, find_place(dynamic->places, dynamic->place_count, hash), hash,
                 file->bucket);
    }
    return TARN_OK;
}

struct tarn_status *tarn_merge__dynamic_open(struct tarn_op *op,
                                             const struct tarn_merge_layout *layout,
                                             const struct tarn_index_file *files, size_t count,
                                             struct tarn_slice partition,
                                             struct tarn_merge_dynamic **out)
{
    struct tarn_merge_dynamic *dynamic = tarn_calloc(1, sizeof *dynamic);
    struct tarn_status *s = TARN_OK;

    dynamic->layout = layout;
    dynamic->partition = partition;
    grow_places(dynamic, 1);
    for (size_t i = 0; i < count && s == TARN_OK; i++)
        if (tarn_slice_is(files[i].type, TARN_INDEX_HASH) &&
            tarn_slice_equal(files[i].partition, partition))
            s = read_index(dynamic, op, &files[i]);
    if (s != TARN_OK) {
        tarn_merge__dynamic_free(dynamic);
        return s;
    }
    *out = dynamic;
    return TARN_OK;
}

/* --- assigning --- */

static int32_t first_unused(struct tarn_merge_dynamic *dynamic, int32_t most)
{
    for (int32_t i = 0; i < most; i++)
        if (!bucket_at(dynamic, i)->is_there)
            return i;
    return -1;
}

static int32_t least_filled(const struct tarn_merge_dynamic *dynamic)
{
    int32_t least = -1;
    for (int32_t i = 0; i < dynamic->bucket_count; i++)
        if (dynamic->buckets[i].is_there &&
            (least < 0 || dynamic->buckets[i].count < dynamic->buckets[least].count))
            least = i;
    return least;
}

/* Where a new key goes. -1: nowhere. */
static int32_t place_new(struct tarn_merge_dynamic *dynamic)
{
    const struct tarn_options *options = dynamic->layout->table->options;
    int32_t most =
        options->dynamic_bucket_max < 0 ? BUCKETS_MAX : (int32_t)options->dynamic_bucket_max;

    for (; dynamic->first_open < dynamic->bucket_count; dynamic->first_open++) {
        const struct held *bucket = &dynamic->buckets[dynamic->first_open];
        if (bucket->is_there && bucket->count < options->dynamic_bucket_rows)
            return dynamic->first_open;
    }
    int32_t unused = first_unused(dynamic, most);
    if (unused < 0)
        return options->dynamic_bucket_max < 0 ? -1 : least_filled(dynamic);
    dynamic->first_open = unused;
    return unused;
}

static struct tarn_status *all_are_full(void)
{
    return tarn_status_new(TARN_TOO_LARGE,
                           "all %d buckets are full: raise dynamic-bucket.target-row-num",
                           BUCKETS_MAX);
}

struct tarn_status *tarn_merge__dynamic_assign(struct tarn_merge_dynamic *dynamic, int32_t hash,
                                               int32_t *out)
{
    struct place *place = find_place(dynamic->places, dynamic->place_count, hash);
    if (place->bucket != 0) {
        *out = place->bucket - 1;
        return TARN_OK;
    }
    *out = place_new(dynamic);
    if (*out < 0)
        return all_are_full();
    struct held *bucket = bucket_at(dynamic, *out);
    bucket->is_there = bucket->is_changed = true;
    bucket->count++;
    remember(dynamic, place, hash, *out);
    grow_places(dynamic, dynamic->used + 1);
    return TARN_OK;
}

struct tarn_status *tarn_merge__dynamic_place(struct tarn_merge_dynamic *dynamic, int32_t *out)
{
    *out = place_new(dynamic);
    if (*out < 0)
        return all_are_full();
    tarn_merge__dynamic_count(dynamic, *out, 1);
    return TARN_OK;
}

void tarn_merge__dynamic_count(struct tarn_merge_dynamic *dynamic, int32_t bucket, int64_t more)
{
    struct held *held = bucket_at(dynamic, bucket);
    held->is_there = true;
    held->count += more;
    if (more < 0)
        dynamic->first_open = TARN_MIN(dynamic->first_open, bucket);
}

/* --- the new index files --- */

static void add_hash(struct tarn_buf *out, int32_t hash)
{
    uint32_t h = (uint32_t)hash;
    uint8_t bytes[4] = {(uint8_t)(h >> 24), (uint8_t)(h >> 16), (uint8_t)(h >> 8), (uint8_t)h};
    tarn_buf_add(out, bytes, sizeof bytes);
}

/* The hashes of each changed bucket, by its number. */
static struct tarn_buf *collect_hashes(const struct tarn_merge_dynamic *dynamic)
{
    struct tarn_buf *hashes = tarn_calloc((size_t)dynamic->bucket_count + 1, sizeof *hashes);
    for (size_t i = 0; i < dynamic->place_count; i++) {
        int32_t bucket = dynamic->places[i].bucket - 1;
        if (bucket >= 0 && dynamic->buckets[bucket].is_changed)
            add_hash(&hashes[bucket], dynamic->places[i].hash);
    }
    return hashes;
}

static struct tarn_status *put_index(const struct tarn_merge_dynamic *dynamic, struct tarn_op *op,
                                     int32_t bucket, const struct tarn_buf *hashes,
                                     struct tarn_arena *arena, struct tarn_merge_index_files *out)
{
    const struct tarn_merge_table *table = dynamic->layout->table;
    char uuid[TARN_UUID_SIZE];
    const char *key;

    tarn_uuid_random(uuid);
    TARN_GROW(out->items, out->count, out->capacity);
    struct tarn_index_file *file = &out->items[out->count];
    *file = (struct tarn_index_file){
        .kind = TARN_ENTRY_ADD,
        .partition = tarn_arena_copy(arena, dynamic->partition),
        .bucket = bucket,
        .type = tarn_slice_str(TARN_INDEX_HASH),
        .name = tarn_slice_str(tarn_arena_printf(arena, "index-%s-0", uuid)),
        .size = (int64_t)hashes->size,
        .row_count = (int64_t)hashes->size / 4,
    };
    TARN_TRY(tarn_merge__index_file_key(table, file, op->arena, &key));
    TARN_TRY(tarn_store_put(table->store, op, key, tarn_buf_slice(hashes)));
    out->count++;
    return TARN_OK;
}

struct tarn_status *tarn_merge__dynamic_write(const struct tarn_merge_dynamic *dynamic,
                                              struct tarn_op *op, struct tarn_arena *arena,
                                              struct tarn_merge_index_files *out)
{
    struct tarn_buf *hashes = collect_hashes(dynamic);
    struct tarn_status *s = TARN_OK;

    for (int32_t i = 0; i < dynamic->bucket_count; i++) {
        if (s == TARN_OK && dynamic->buckets[i].is_changed)
            s = put_index(dynamic, op, i, &hashes[i], arena, out);
        tarn_buf_drop(&hashes[i]);
    }
    free(hashes);
    return s;
}
