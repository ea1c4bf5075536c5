#include "service/intent.h"

/*
 * The bytes of an intent: a commit to several tables that is to happen as a whole.
 *
 *   "TARNINT" 1 | u32 tables | each: uuid, name, user | i64 identifier | i64 watermark | operation |
 *   u32 properties | each: key, value | u32 files | each: entry | u32 changelog files | each: entry | … | u32 crc
 *
 * Numbers are big endian, texts and entries (tarn_manifest_entry_pack) have a u32 size in front. The checksum is
 * of everything before it.
 */

#define MAGIC "TARNINT\x01"
#define MAGIC_SIZE 8
#define CRC_SIZE 4

/* --- writing --- */

static void add_u32(struct tarn_buf *out, size_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        tarn_buf_add_byte(out, (uint8_t)(value >> shift));
}

static void add_i64(struct tarn_buf *out, int64_t value)
{
    add_u32(out, (size_t)((uint64_t)value >> 32));
    add_u32(out, (size_t)((uint64_t)value & UINT32_MAX));
}

static void add_bytes(struct tarn_buf *out, struct tarn_slice s)
{
    add_u32(out, s.size);
    tarn_buf_add_slice(out, s);
}

static void add_entries(struct tarn_buf *out, const struct tarn_manifest_entry *entries,
                        size_t count)
{
    add_u32(out, count);
    TARN_OWN(tarn_buf_drop) struct tarn_buf packed = {0};
    for (size_t i = 0; i < count; i++) {
        tarn_buf_clear(&packed);
        tarn_manifest_entry_pack(&entries[i], true, &packed);
        add_bytes(out, tarn_buf_slice(&packed));
    }
}

void tarn_intent_encode(const struct tarn_intent_part *parts, size_t count, struct tarn_buf *out)
{
    tarn_buf_add(out, MAGIC, MAGIC_SIZE);
    add_u32(out, count);
    for (size_t i = 0; i < count; i++) {
        const struct tarn_commit *c = &parts[i].commit;
        add_bytes(out, parts[i].uuid);
        add_bytes(out, parts[i].name);
        add_bytes(out, c->user);
        add_i64(out, c->identifier);
        add_i64(out, c->watermark);
        add_bytes(out, c->operation);
        add_u32(out, c->property_count);
        for (size_t p = 0; p < c->property_count; p++) {
            add_bytes(out, c->properties[p].key);
            add_bytes(out, c->properties[p].value);
        }
        add_entries(out, c->append.entries, c->append.count);
        add_entries(out, c->append.changelog, c->append.changelog_count);
    }
    add_u32(out, tarn_crc32(tarn_buf_slice(out)));
}

/* --- reading --- */

struct reader {
    struct tarn_slice rest;
    struct tarn_arena *arena;
    bool bad;
};

static size_t take_u32(struct reader *r)
{
    if (r->rest.size < 4) {
        r->bad = true;
        return 0;
    }
    const uint8_t *p = r->rest.data;
    r->rest = tarn_slice_of(p + 4, r->rest.size - 4);
    return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

static int64_t take_i64(struct reader *r)
{
    uint64_t high = take_u32(r);
    return (int64_t)(high << 32 | take_u32(r));
}

static struct tarn_slice take_bytes(struct reader *r)
{
    size_t size = take_u32(r);
    if (size > r->rest.size) {
        r->bad = true;
        size = 0;
    }
    struct tarn_slice s = tarn_slice_of(r->rest.data, size);
    r->rest = tarn_slice_of(r->rest.data + size, r->rest.size - size);
    return s;
}

/* How many elements follow: each takes at least `size` bytes, so a count can't ask for more than there is. */
static size_t take_count(struct reader *r, size_t size)
{
    size_t count = take_u32(r);
    if (count > r->rest.size / size) {
        r->bad = true;
        return 0;
    }
    return count;
}

static struct tarn_status *take_entries(struct reader *r, const struct tarn_manifest_entry **out,
                                        size_t *count)
{
    *count = take_count(r, 4);
    struct tarn_manifest_entry *list = tarn_arena_calloc(r->arena, *count + 1, sizeof *list);
    for (size_t i = 0; i < *count && !r->bad; i++) {
        struct tarn_slice packed = take_bytes(r);
        if (!r->bad)
            TARN_TRY(tarn_manifest_entry_unpack(packed, r->arena, &list[i]));
    }
    *out = list;
    return TARN_OK;
}

static struct tarn_status *take_part(struct reader *r, struct tarn_intent_part *out)
{
    struct tarn_commit *c = &out->commit;
    out->uuid = take_bytes(r);
    out->name = take_bytes(r);
    c->user = take_bytes(r);
    c->identifier = take_i64(r);
    c->watermark = take_i64(r);
    c->operation = take_bytes(r);
    if (c->operation.size == 0)
        c->operation = tarn_slice_str(NULL);
    c->property_count = take_count(r, 8);
    struct tarn_pair *pairs = tarn_arena_calloc(r->arena, c->property_count + 1, sizeof *pairs);
    for (size_t i = 0; i < c->property_count; i++) {
        pairs[i].key = take_bytes(r);
        pairs[i].value = take_bytes(r);
    }
    c->properties = pairs;
    c->kind = TARN_COMMIT_APPEND;
    c->base_snapshot_id = TARN_SNAPSHOT_NONE;
    c->check_files = true;
    TARN_TRY(take_entries(r, &c->append.entries, &c->append.count));
    return take_entries(r, &c->append.changelog, &c->append.changelog_count);
}

static struct tarn_status *damaged(const char *what)
{
    return tarn_status_new(TARN_STATE_DAMAGED, "the intent of a commit to several tables %s", what);
}

struct tarn_status *tarn_intent_decode(struct tarn_slice bytes, struct tarn_arena *arena,
                                       struct tarn_intent_part **out, size_t *count)
{
    if (bytes.size < MAGIC_SIZE + CRC_SIZE || memcmp(bytes.data, MAGIC, MAGIC_SIZE) != 0)
        return damaged("does not begin as one, or is of a newer version");
    struct tarn_slice body = tarn_slice_of(bytes.data, bytes.size - CRC_SIZE);
    struct reader crc = {tarn_slice_of(bytes.data + body.size, CRC_SIZE), arena, false};
    if (take_u32(&crc) != tarn_crc32(body))
        return damaged("doesn't match its checksum");
    struct reader r = {tarn_slice_of(body.data + MAGIC_SIZE, body.size - MAGIC_SIZE), arena, false};
    *count = take_count(&r, 1);
    if (*count > TARN_COMMIT_TABLES_MAX)
        return damaged("names too many tables");
    *out = tarn_arena_calloc(arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count && !r.bad; i++)
        TARN_TRY(take_part(&r, &(*out)[i]));
    if (r.bad || r.rest.size != 0)
        return damaged("ends where it shouldn't");
    return TARN_OK;
}
