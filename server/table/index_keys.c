#include "table/index.h"

#include "table/internal.h"

#include "format/avro.h"

/* Keys and values of the file index (index.c says what they mean). */

/* --- keys --- */

static void add_uuid(struct tarn_buf *key, const char *uuid)
{
    tarn_buf_add(key, uuid, TARN_INDEX_UUID_SIZE);
}

void tarn_table__bucket_prefix(const char *uuid, struct tarn_slice partition, const int32_t *bucket,
                               struct tarn_buf *key)
{
    add_uuid(key, uuid);
    if (partition.data == NULL)
        return;
    tarn_key_add_bytes(key, partition);
    if (bucket != NULL)
        tarn_key_add_i64(key, *bucket);
}

/* The name, and a hash of the identity, which is written behind it for a moment. */
static void add_identity(const struct tarn_manifest_entry *entry, struct tarn_buf *key)
{
    tarn_key_add_bytes(key, entry->file.name);
    size_t at = key->size;
    tarn_manifest_identity(entry, key);
    uint64_t hash = tarn_xxh64(tarn_slice_of(key->data + at, key->size - at), 0);
    key->size = at;
    tarn_key_add_u64(key, hash);
}

/* Level and what follows it. */
static void add_rest(const struct tarn_manifest_entry *entry, struct tarn_buf *key)
{
    tarn_key_add_i64(key, entry->file.level);
    tarn_key_add_i64(key, entry->file.creation_time_ms);
    add_identity(entry, key);
}

void tarn_table__live_key(const char *uuid, const struct tarn_manifest_entry *entry,
                          struct tarn_buf *key)
{
    tarn_table__bucket_prefix(uuid, entry->partition, &entry->bucket, key);
    add_rest(entry, key);
}

void tarn_table__live_key_in(const char *uuid, struct tarn_slice bucket_key,
                             const struct tarn_live_name *name, struct tarn_buf *key)
{
    add_uuid(key, uuid);
    tarn_buf_add_slice(key, bucket_key);
    tarn_key_add_i64(key, name->level);
    tarn_key_add_i64(key, name->made);
    tarn_key_add_bytes(key, name->name);
    tarn_key_add_u64(key, name->hash);
}

void tarn_table__name_key(const char *uuid, const struct tarn_manifest_entry *entry,
                          struct tarn_buf *key)
{
    tarn_table__bucket_prefix(uuid, entry->partition, &entry->bucket, key);
    tarn_key_add_i64(key, entry->file.level);
    add_identity(entry, key);
}

void tarn_table__removed_key(const char *uuid, const struct tarn_manifest_entry *entry,
                             int64_t removed_by, int64_t added_by, struct tarn_buf *key)
{
    tarn_table__bucket_prefix(uuid, entry->partition, &entry->bucket, key);
    tarn_key_add_i64(key, removed_by);
    add_rest(entry, key);
    tarn_key_add_i64(key, added_by);
}

void tarn_table__removed_from(const char *uuid, struct tarn_slice bucket_key, int64_t removed_by,
                              struct tarn_buf *key)
{
    add_uuid(key, uuid);
    tarn_buf_add_slice(key, bucket_key);
    tarn_key_add_i64(key, removed_by);
}

void tarn_table__change_prefix(const char *uuid, int64_t snapshot_id, enum tarn_change what,
                               struct tarn_buf *key)
{
    add_uuid(key, uuid);
    tarn_key_add_i64(key, snapshot_id);
    tarn_buf_add_byte(key, (uint8_t)what);
}

void tarn_table__change_key(const char *uuid, int64_t snapshot_id, enum tarn_change what,
                            const struct tarn_manifest_entry *entry, struct tarn_buf *key)
{
    tarn_table__change_prefix(uuid, snapshot_id, what, key);
    tarn_key_add_bytes(key, entry->partition);
    tarn_key_add_i64(key, entry->bucket);
    add_rest(entry, key);
}

void tarn_table__tagged_key(const char *uuid, char tag, struct tarn_buf *key)
{
    add_uuid(key, uuid);
    tarn_buf_add_byte(key, (uint8_t)tag);
}

void tarn_table__snapshot_key(const char *uuid, int64_t id, struct tarn_buf *key)
{
    tarn_table__tagged_key(uuid, 's', key);
    tarn_key_add_i64(key, id);
}

size_t tarn_table__bucket_size(struct tarn_slice rest)
{
    for (size_t i = 0; i + 1 < rest.size;) {
        if (rest.data[i] != 0) {
            const uint8_t *zero = memchr(rest.data + i, 0, rest.size - 1 - i);
            if (zero == NULL)
                return 0;
            i = (size_t)(zero - rest.data);
        }
        i += 2; /* 00 ff: a zero; 00 00: the end */
        if (rest.data[i - 1] == 0)
            return i + 8 <= rest.size ? i + 8 : 0;
    }
    return 0;
}

bool tarn_table__parse_bucket(struct tarn_slice bucket_key, struct tarn_arena *arena,
                              struct tarn_slice *partition, int32_t *bucket)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    int64_t number;
    if (!tarn_key_take_bytes(&bucket_key, &bytes) || !tarn_key_take_i64(&bucket_key, &number) ||
        number < INT32_MIN || number > INT32_MAX)
        return false;
    *partition = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    *bucket = (int32_t)number;
    return true;
}

void tarn_table__range_end(const char *uuid, struct tarn_slice bucket_key, struct tarn_buf *to)
{
    add_uuid(to, uuid);
    tarn_buf_add_slice(to, bucket_key);
    tarn_buf_add_byte(
        to, 0xff); /* above every key: parts begin with a sign byte, an arity or a letter */
}

/* --- values --- */

void tarn_table__live_value(const struct tarn_manifest_entry *entry, int64_t added_by,
                            struct tarn_buf *value)
{
    tarn_key_add_i64(value, added_by);
    tarn_manifest_entry_pack(entry, false, value);
}

bool tarn_table__split_value(struct tarn_slice value, int64_t *added_by, struct tarn_slice *packed)
{
    *packed = value;
    return tarn_key_take_i64(packed, added_by);
}

int32_t tarn_table__peek_total_buckets(struct tarn_slice value)
{
    const uint8_t *cursor = value.data + 10, *end = value.data + value.size;
    int64_t kind, bucket, total; /* as tarn_manifest_entry_pack begins */
    if (value.size < 10 || !tarn_avro_take_long(&cursor, end, &kind) ||
        !tarn_avro_take_long(&cursor, end, &bucket) || !tarn_avro_take_long(&cursor, end, &total))
        return 0;
    return total > 0 && total <= INT32_MAX ? (int32_t)total : 0;
}

struct tarn_status *tarn_table__damaged_value(struct tarn_slice value)
{
    return tarn_status_new(TARN_STATE_DAMAGED, "an entry of the file index is %zu bytes",
                           value.size);
}

struct tarn_status *tarn_table__live_decode(struct tarn_slice value, struct tarn_arena *arena,
                                            struct tarn_live *out)
{
    struct tarn_slice packed;
    if (!tarn_table__split_value(value, &out->added_by, &packed))
        return tarn_table__damaged_value(value);
    out->removed_by = 0;
    return tarn_manifest_entry_view(tarn_arena_copy(arena, packed), arena, &out->entry);
}
