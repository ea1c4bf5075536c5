#include "table/internal.h"
#include "table/load.h"

#define LOAD_ENTRIES_MIN 5000 /* fewer go through the log: a file of RocksDB's own costs a sync */

struct tarn_load_record {
    uint64_t head; /* eight bytes of the key as a number: what is sorted by */
    size_t at;     /* of chunk.bytes: LIVE's key, its value, its statistics */
    uint32_t key_size, value_size, stats_size;
    uint32_t made_at; /* in the key: when the file was made, which NAMES have as value instead */
};

#define MADE_SIZE 8

void tarn_load_chunk_fini(struct tarn_load_chunk *c)
{
    free(c->records);
    tarn_buf_drop(&c->bytes);
    *c = (struct tarn_load_chunk){0};
}

void tarn_load_chunk_add(struct tarn_load_chunk *c, const char *uuid,
                         const struct tarn_manifest_entry *entry)
{
    struct tarn_buf *bytes = &c->bytes;
    TARN_GROW(c->records, c->count, c->capacity);
    struct tarn_load_record *r = &c->records[c->count++];
    *r = (struct tarn_load_record){.at = bytes->size};
    tarn_table__live_key(uuid, entry, bytes);
    r->key_size = (uint32_t)(bytes->size - r->at);
    size_t uuid_end = r->at + TARN_INDEX_UUID_SIZE;
    struct tarn_slice rest = {bytes->data + uuid_end, bytes->size - uuid_end};
    r->made_at = (uint32_t)(TARN_INDEX_UUID_SIZE + tarn_table__bucket_size(rest) + sizeof(int64_t));
    tarn_table__live_value(entry, 0, bytes);
    r->value_size = (uint32_t)(bytes->size - r->at) - r->key_size;
    tarn_manifest_stats_pack(&entry->file, bytes);
    r->stats_size = (uint32_t)(bytes->size - r->at) - r->key_size - r->value_size;
}

/* --- what the families have of an entry --- */

struct pair {
    struct tarn_slice key, value;
};

typedef struct pair pair_fn(const struct tarn_load_chunk *c, const struct tarn_load_record *r);

static struct pair live_pair(const struct tarn_load_chunk *c, const struct tarn_load_record *r)
{
    const uint8_t *at = c->bytes.data + r->at;
    return (struct pair){{at, r->key_size}, {at + r->key_size, r->value_size}};
}

static struct pair stats_pair(const struct tarn_load_chunk *c, const struct tarn_load_record *r)
{
    const uint8_t *at = c->bytes.data + r->at;
    return (struct pair){{at, r->key_size}, {at + r->key_size + r->value_size, r->stats_size}};
}

/* While the key is turned. */
static struct pair name_pair(const struct tarn_load_chunk *c, const struct tarn_load_record *r)
{
    const uint8_t *at = c->bytes.data + r->at;
    return (struct pair){{at + MADE_SIZE, r->key_size - MADE_SIZE}, {at, MADE_SIZE}};
}

/* The time goes from the middle of each key to its front, so that the rest is a key of NAMES. */
static void turn_keys(struct tarn_load_chunk *c)
{
    for (size_t i = 0; i < c->count; i++) {
        uint8_t made[MADE_SIZE], *at = c->bytes.data + c->records[i].at;
        memcpy(made, at + c->records[i].made_at, MADE_SIZE);
        memmove(at + MADE_SIZE, at, c->records[i].made_at);
        memcpy(at, made, MADE_SIZE);
    }
}

static void turn_keys_back(struct tarn_load_chunk *c)
{
    for (size_t i = 0; i < c->count; i++) {
        uint8_t made[MADE_SIZE], *at = c->bytes.data + c->records[i].at;
        memcpy(made, at, MADE_SIZE);
        memmove(at, at + MADE_SIZE, c->records[i].made_at);
        memcpy(at + c->records[i].made_at, made, MADE_SIZE);
    }
}

/* --- in order of keys --- */

/* Keys that differ late are compared as numbers: those of eight bytes where they begin to differ, then, among equal
 * ones, those of the next eight. */
#define SORT_DEPTH_MAX 64 /* deeper, keys are compared whole */

struct sorting {
    const struct tarn_load_chunk *chunk;
    pair_fn *pair_of;
};

static int by_head(const void *a, const void *b)
{
    const struct tarn_load_record *left = a, *right = b;
    return (left->head > right->head) - (left->head < right->head);
}

static int by_key(const void *a, const void *b, void *arg)
{
    const struct sorting *s = arg;
    return tarn_slice_compare(s->pair_of(s->chunk, a).key, s->pair_of(s->chunk, b).key);
}

/* How many bytes all keys have in common, `known` or more. */
static size_t common_size(const struct sorting *s, const struct tarn_load_record *list,
                          size_t count, size_t known)
{
    struct tarn_slice first = s->pair_of(s->chunk, &list[0]).key;
    size_t common = first.size;
    for (size_t i = 1; i < count && common > known; i++) {
        struct tarn_slice key = s->pair_of(s->chunk, &list[i]).key;
        size_t size = TARN_MIN(common, key.size), n = known;
        while (n < size && key.data[n] == first.data[n])
            n++;
        common = n;
    }
    return common;
}

/* Eight bytes from `at` on; a key that ends counts as zeros. */
static uint64_t head_of(struct tarn_slice key, size_t at)
{
    uint8_t bytes[8] = {0};
    uint64_t head;
    if (at < key.size)
        memcpy(bytes, key.data + at, TARN_MIN(key.size - at, sizeof bytes));
    memcpy(&head, bytes, sizeof head);
    return be64toh(head);
}

static void sort_from(const struct sorting *s, struct tarn_load_record *list, size_t count,
                      size_t known, int depth)
{
    size_t common = common_size(s, list, count, known);
    bool in_order = true, ends = false;
    for (size_t i = 0; i < count; i++) {
        struct tarn_slice key = s->pair_of(s->chunk, &list[i]).key;
        list[i].head = head_of(key, common);
        in_order = in_order && (i == 0 || list[i - 1].head <= list[i].head);
        ends = ends || key.size < common + sizeof list[i].head;
    }
    if (ends || depth == SORT_DEPTH_MAX) {
        qsort_r(list, count, sizeof *list, by_key, (void *)(uintptr_t)s);
        return;
    }
    if (!in_order)
        qsort(list, count, sizeof *list, by_head);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && list[end].head == list[begin].head;)
            end++;
        if (end - begin > 1)
            sort_from(s, list + begin, end - begin, common + sizeof list->head, depth + 1);
    }
}

static void sort_records(struct tarn_load_chunk *c, pair_fn *pair_of)
{
    struct sorting s = {c, pair_of};
    if (c->count > 1)
        sort_from(&s, c->records, c->count, 0, 0);
}

/* --- into the state --- */

static void batch_records(const struct tarn_load_chunk *c, struct tarn_state_batch *batch,
                          struct tarn_state *state, enum tarn_family family, pair_fn *pair_of)
{
    for (size_t i = 0; i < c->count; i++) {
        struct pair pair = pair_of(c, &c->records[i]);
        tarn_state_batch_put(batch, state, family, pair.key, pair.value);
    }
}

static struct tarn_status *write_few(struct tarn_load_chunk *c, struct tarn_state *state)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    batch_records(c, batch, state, TARN_FAMILY_LIVE, live_pair);
    batch_records(c, batch, state, TARN_FAMILY_STATS, stats_pair);
    turn_keys(c);
    batch_records(c, batch, state, TARN_FAMILY_NAMES, name_pair);
    return tarn_state_write(state, batch, false);
}

/* In order already. */
static struct tarn_status *load_records(const struct tarn_load_chunk *c, struct tarn_state *state,
                                        enum tarn_family family, pair_fn *pair_of)
{
    TARN_OWN(tarn_state_loader_drop) struct tarn_state_loader *loader = NULL;
    struct tarn_slice last = {0};
    TARN_TRY(tarn_state_loader_new(state, family, &loader));
    for (size_t i = 0; i < c->count; i++) {
        struct pair pair = pair_of(c, &c->records[i]);
        if (!tarn_slice_equal(pair.key, last)) /* a file that is named twice is there once */
            TARN_TRY(tarn_state_loader_put(loader, pair.key, pair.value));
        last = pair.key;
    }
    return tarn_state_loader_finish(loader);
}

/* LIVE is last: what it shows has a name and statistics. */
static struct tarn_status *write_many(struct tarn_load_chunk *c, struct tarn_state *state)
{
    turn_keys(c);
    sort_records(c, name_pair);
    TARN_TRY(load_records(c, state, TARN_FAMILY_NAMES, name_pair));
    turn_keys_back(c);
    sort_records(c, live_pair);
    TARN_TRY(load_records(c, state, TARN_FAMILY_STATS, stats_pair));
    return load_records(c, state, TARN_FAMILY_LIVE, live_pair);
}

struct tarn_status *tarn_load_chunk_write(struct tarn_load_chunk *c, struct tarn_state *state)
{
    struct tarn_status *s =
        c->count < LOAD_ENTRIES_MIN ? write_few(c, state) : write_many(c, state);
    tarn_buf_clear(&c->bytes);
    c->count = 0;
    return s;
}
