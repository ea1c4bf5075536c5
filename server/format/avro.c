#include "format/avro.h"

#include "base/fields.h"
#include "format/avro_schema.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#define MAGIC "Obj\x01"

enum codec { CODEC_NULL, CODEC_DEFLATE, CODEC_SNAPPY, CODEC_ZSTANDARD };
static const char *const codec_names[] = {"null", "deflate", "snappy", "zstandard"};

struct tarn_status *tarn_avro_error(const struct tarn_avro_reader *r, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return tarn_status_new(TARN_AVRO_MALFORMED, "block at byte %zu: %s", r->block_at, what);
}

/* ---- primitives */

bool tarn_avro_take_long(const uint8_t **cursor, const uint8_t *end, int64_t *out)
{
    uint64_t n;
    const uint8_t *at = *cursor;
    if (!tarn_take_varint(&at, end, &n) || (at - *cursor == 10 && at[-1] > 1)) /* beyond 64 bits */
        return false;
    *out = (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
    *cursor = at;
    return true;
}

bool tarn_avro_take_bytes(const uint8_t **cursor, const uint8_t *end, struct tarn_slice *out)
{
    int64_t size;
    const uint8_t *at = *cursor;
    if (!tarn_avro_take_long(&at, end, &size) || size < 0 || size > end - at)
        return false;
    *out = tarn_slice_of(at, (size_t)size);
    *cursor = at + size;
    return true;
}

/* ---- opening */

static bool find_codec(struct tarn_slice name, int *out)
{
    for (size_t i = 0; i < TARN_COUNT_OF(codec_names); i++) {
        if (tarn_slice_is(name, codec_names[i])) {
            *out = (int)i;
            return true;
        }
    }
    return false;
}

static struct tarn_status *read_metadata(struct tarn_avro_reader *r, struct tarn_slice *schema,
                                         struct tarn_slice *codec)
{
    const uint8_t *cursor = r->file.data + 4, *end = r->file.data + r->file.size;
    int64_t count = 0, size = 0;
    do {
        if (!tarn_avro_take_long(&cursor, end, &count) || count == INT64_MIN)
            return tarn_avro_error(r, "the header ends early");
        if (count < 0 && !tarn_avro_take_long(&cursor, end, &size))
            return tarn_avro_error(r, "the header ends early");
        for (int64_t left = count < 0 ? -count : count; left > 0; left--) {
            struct tarn_slice key, value;
            if (!tarn_avro_take_bytes(&cursor, end, &key) ||
                !tarn_avro_take_bytes(&cursor, end, &value))
                return tarn_avro_error(r, "the header ends early");
            if (tarn_slice_is(key, "avro.schema"))
                *schema = value;
            else if (tarn_slice_is(key, "avro.codec"))
                *codec = value;
        }
    } while (count != 0);
    if (end - cursor < TARN_AVRO_SYNC_SIZE)
        return tarn_avro_error(r, "the header ends early");
    memcpy(r->sync, cursor, TARN_AVRO_SYNC_SIZE);
    r->at = (size_t)(cursor - r->file.data) + TARN_AVRO_SYNC_SIZE;
    return TARN_OK;
}

struct tarn_status *tarn_avro_open(struct tarn_slice file, struct tarn_arena *arena,
                                   struct tarn_avro_reader *out)
{
    struct tarn_avro_reader r = {.file = file, .arena = arena};
    struct tarn_slice schema = {0}, codec = tarn_slice_str("null");
    if (!tarn_slice_starts_with(file, tarn_slice_str(MAGIC)))
        return tarn_avro_error(&r, "no Avro container: the first bytes are not \"Obj\" and 1");
    TARN_TRY(read_metadata(&r, &schema, &codec));
    if (schema.data == NULL)
        return tarn_avro_error(&r, "the header has no avro.schema");
    if (!find_codec(codec, &r.codec))
        return tarn_avro_error(&r, "unknown codec \"%.*s\"", (int)TARN_MIN(codec.size, (size_t)40),
                               (const char *)codec.data);
    TARN_TRY(tarn_avro__parse_schema(schema, arena, &r.top));
    r.schema = tarn_avro__record_of(r.top);
    int64_t bound = (16 << 20) + (int64_t)TARN_MIN(file.size, (size_t)1 << 40) * 256;
    r.expanded_left = TARN_MIN(bound, TARN_AVRO_EXPANDED_MAX);
    *out = r;
    return TARN_OK;
}

/* ---- blocks */

struct tarn_status *tarn_avro_expand(const struct tarn_avro_reader *r, struct tarn_slice stored,
                                     size_t max, struct tarn_buf *out)
{
    static const enum tarn_zip zips[] = {TARN_ZIP_NONE, TARN_ZIP_DEFLATE, TARN_ZIP_SNAPPY,
                                         TARN_ZIP_ZSTD};
    size_t before = out->size;
    uint32_t sum = 0;
    if (r->codec == CODEC_NULL) {
        if (stored.size > max)
            return tarn_avro_error(r, "the file is too large");
        tarn_buf_add_slice(out, stored);
        return TARN_OK;
    }
    if (r->codec == CODEC_SNAPPY) { /* Avro adds a checksum of the plain bytes, big-endian */
        if (stored.size < 4)
            return tarn_avro_error(r, "a snappy block is too short");
        const uint8_t *tail = stored.data + stored.size - 4;
        sum = (uint32_t)tail[0] << 24 | (uint32_t)tail[1] << 16 | (uint32_t)tail[2] << 8 | tail[3];
        stored.size -= 4;
    }
    struct tarn_status *s = tarn_zip_expand(zips[r->codec], stored, max, out);
    if (s != NULL) {
        struct tarn_status *better = tarn_avro_error(r, "%s", tarn_status_message(s));
        tarn_status_free(s);
        return better;
    }
    if (r->codec == CODEC_SNAPPY &&
        tarn_crc32(tarn_slice_of(out->data + before, out->size - before)) != sum)
        return tarn_avro_error(r, "the checksum of a snappy block doesn't match");
    return TARN_OK;
}

static struct tarn_status *expand(struct tarn_avro_reader *r, struct tarn_slice stored,
                                  struct tarn_slice *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf plain = {0};
    TARN_TRY(tarn_avro_expand(r, stored, (size_t)r->expanded_left, &plain));
    *out = tarn_arena_copy(r->arena, tarn_buf_slice(&plain));
    r->expanded_left -= (int64_t)plain.size;
    return TARN_OK;
}

static struct tarn_status *next_block(struct tarn_avro_reader *r)
{
    const uint8_t *cursor = r->file.data + r->at, *end = r->file.data + r->file.size;
    int64_t count;
    struct tarn_slice stored, plain;
    r->block_at = r->at;
    if (!tarn_avro_take_long(&cursor, end, &count) || count < 0 ||
        !tarn_avro_take_bytes(&cursor, end, &stored) || end - cursor < TARN_AVRO_SYNC_SIZE)
        return tarn_avro_error(r, "the block is cut short");
    if (memcmp(cursor, r->sync, TARN_AVRO_SYNC_SIZE) != 0)
        return tarn_avro_error(r, "the mark behind the block is not the file's");
    TARN_TRY(expand(r, stored, &plain));
    if (count > (int64_t)plain.size)
        return tarn_avro_error(r, "%lld records in %zu bytes", (long long)count, plain.size);
    r->at = (size_t)(cursor - r->file.data) + TARN_AVRO_SYNC_SIZE;
    r->records_left = count;
    r->cursor = plain.data;
    r->end = plain.data + plain.size;
    r->steps_left = 4096 + 16 * (int64_t)plain.size;
    return TARN_OK;
}

struct tarn_status *tarn_avro_next(struct tarn_avro_reader *r, bool *more)
{
    while (r->records_left == 0) {
        if (r->cursor != r->end)
            return tarn_avro_error(r, "%zu bytes are left after the last record",
                                   (size_t)(r->end - r->cursor));
        *more = r->at < r->file.size;
        if (!*more)
            return TARN_OK;
        TARN_TRY(next_block(r));
    }
    r->records_left--;
    *more = true;
    const struct tarn_avro_node *branch;
    TARN_TRY(tarn_avro_branch(r, r->top, &branch));
    return branch == r->schema ? TARN_OK : tarn_avro_error(r, "a record is null");
}

/* ---- values */

static struct tarn_status *step(struct tarn_avro_reader *r)
{
    return --r->steps_left >= 0 ? TARN_OK : tarn_avro_error(r, "more values than bytes");
}

static struct tarn_status *take_long(struct tarn_avro_reader *r, int64_t *out)
{
    return tarn_avro_take_long(&r->cursor, r->end, out) ? TARN_OK
                                                        : tarn_avro_error(r, "a number is damaged");
}

static struct tarn_status *take_bytes(struct tarn_avro_reader *r, struct tarn_slice *out)
{
    return tarn_avro_take_bytes(&r->cursor, r->end, out)
               ? TARN_OK
               : tarn_avro_error(r, "a length goes beyond the block");
}

static struct tarn_status *take_fixed(struct tarn_avro_reader *r, int64_t size,
                                      struct tarn_slice *out)
{
    if (size > r->end - r->cursor)
        return tarn_avro_error(r, "a value goes beyond the block");
    *out = tarn_slice_of(r->cursor, (size_t)size);
    r->cursor += size;
    return TARN_OK;
}

/* The next block of an array or map: its count of items, 0 at the end. Each item of those we take
 * has at least a byte, and what has none (nulls) nobody writes. */
static struct tarn_status *take_count(struct tarn_avro_reader *r, int64_t *count)
{
    int64_t size = 0;
    TARN_TRY(step(r));
    TARN_TRY(take_long(r, count));
    if (*count < 0) {
        if (*count == INT64_MIN)
            return tarn_avro_error(r, "a count is out of range");
        *count = -*count;
        TARN_TRY(take_long(r, &size));
        if (size < 0 || size > r->end - r->cursor)
            return tarn_avro_error(r, "a size goes beyond the block");
    }
    if (*count > r->end - r->cursor)
        return tarn_avro_error(r, "%lld items in %zu bytes", (long long)*count,
                               (size_t)(r->end - r->cursor));
    return TARN_OK;
}

struct tarn_status *tarn_avro_branch(struct tarn_avro_reader *r, const struct tarn_avro_node *node,
                                     const struct tarn_avro_node **out)
{
    int64_t branch;
    TARN_TRY(step(r));
    *out = node;
    if (node->kind != TARN_AVRO_UNION)
        return TARN_OK;
    TARN_TRY(take_long(r, &branch));
    if (branch < 0 || (uint64_t)branch >= node->child_count)
        return tarn_avro_error(r, "a union has no branch %lld", (long long)branch);
    *out = node->children[branch];
    return TARN_OK;
}

static struct tarn_status *skip(struct tarn_avro_reader *r, const struct tarn_avro_node *node,
                                int depth);

static struct tarn_status *skip_items(struct tarn_avro_reader *r, const struct tarn_avro_node *node,
                                      int depth)
{
    int64_t count;
    struct tarn_slice key;
    for (;;) {
        TARN_TRY(take_count(r, &count));
        if (count == 0)
            return TARN_OK;
        for (; count > 0; count--) {
            if (node->kind == TARN_AVRO_MAP)
                TARN_TRY(take_bytes(r, &key));
            TARN_TRY(skip(r, node->children[0], depth + 1));
        }
    }
}

static struct tarn_status *skip(struct tarn_avro_reader *r, const struct tarn_avro_node *node,
                                int depth)
{
    int64_t number;
    struct tarn_slice bytes;
    if (depth > 2 * TARN_AVRO_DEPTH_MAX)
        return tarn_avro_error(r, "values are nested too deep");
    TARN_TRY(tarn_avro_branch(r, node, &node));
    switch (node->kind) {
    case TARN_AVRO_NULL:
    case TARN_AVRO_UNION:
        return TARN_OK;
    case TARN_AVRO_BOOLEAN:
        return take_fixed(r, 1, &bytes);
    case TARN_AVRO_INT:
    case TARN_AVRO_LONG:
    case TARN_AVRO_ENUM:
        return take_long(r, &number);
    case TARN_AVRO_FLOAT:
        return take_fixed(r, 4, &bytes);
    case TARN_AVRO_DOUBLE:
        return take_fixed(r, 8, &bytes);
    case TARN_AVRO_FIXED:
        return take_fixed(r, node->size, &bytes);
    case TARN_AVRO_BYTES:
    case TARN_AVRO_STRING:
        return take_bytes(r, &bytes);
    case TARN_AVRO_ARRAY:
    case TARN_AVRO_MAP:
        return skip_items(r, node, depth);
    case TARN_AVRO_RECORD:
        for (size_t i = 0; i < node->child_count; i++)
            TARN_TRY(skip(r, node->children[i], depth + 1));
        return TARN_OK;
    }
    return TARN_OK;
}

struct tarn_status *tarn_avro_skip(struct tarn_avro_reader *r, const struct tarn_avro_node *node)
{
    return skip(r, node, 0);
}

struct tarn_status *tarn_avro_read_long(struct tarn_avro_reader *r,
                                        const struct tarn_avro_node *node, bool may_be_null,
                                        int64_t null_value, int64_t *out)
{
    TARN_TRY(tarn_avro_branch(r, node, &node));
    if (node->kind == TARN_AVRO_NULL && may_be_null) {
        *out = null_value;
        return TARN_OK;
    }
    if (node->kind != TARN_AVRO_LONG && node->kind != TARN_AVRO_INT)
        return tarn_avro_error(r, "a value is no number");
    TARN_TRY(take_long(r, out));
    if (node->kind == TARN_AVRO_INT && (*out < INT32_MIN || *out > INT32_MAX))
        return tarn_avro_error(r, "an int has more than 32 bits");
    return TARN_OK;
}

struct tarn_status *tarn_avro_read_int(struct tarn_avro_reader *r,
                                       const struct tarn_avro_node *node, int32_t *out)
{
    int64_t value = 0;
    TARN_TRY(tarn_avro_read_long(r, node, false, 0, &value));
    if (value < INT32_MIN || value > INT32_MAX)
        return tarn_avro_error(r, "a number has more than 32 bits");
    *out = (int32_t)value;
    return TARN_OK;
}

struct tarn_status *tarn_avro_read_bytes(struct tarn_avro_reader *r,
                                         const struct tarn_avro_node *node, bool may_be_null,
                                         struct tarn_slice *out)
{
    TARN_TRY(tarn_avro_branch(r, node, &node));
    if (node->kind == TARN_AVRO_NULL && may_be_null) {
        *out = (struct tarn_slice){0};
        return TARN_OK;
    }
    if (node->kind == TARN_AVRO_FIXED)
        return take_fixed(r, node->size, out);
    if (node->kind != TARN_AVRO_STRING && node->kind != TARN_AVRO_BYTES)
        return tarn_avro_error(r, "a value is neither text nor bytes");
    return take_bytes(r, out);
}

/* The array behind `node`; NULL in *array where it is null. */
static struct tarn_status *begin_array(struct tarn_avro_reader *r,
                                       const struct tarn_avro_node *node,
                                       const struct tarn_avro_node **array)
{
    TARN_TRY(tarn_avro_branch(r, node, &node));
    if (node->kind != TARN_AVRO_ARRAY && node->kind != TARN_AVRO_NULL)
        return tarn_avro_error(r, "a value is no array");
    *array = node->kind == TARN_AVRO_ARRAY ? node : NULL;
    return TARN_OK;
}

/* Room for `more` further items behind `used`, in the arena; nearly always there is one block. */
static void *grow(struct tarn_arena *arena, const void *items, size_t used, size_t more,
                  size_t size)
{
    char *grown = tarn_arena_calloc(arena, used + more, size);
    if (used > 0)
        memcpy(grown, items, used * size);
    return grown;
}

struct tarn_status *tarn_avro_read_strings(struct tarn_avro_reader *r,
                                           const struct tarn_avro_node *node, bool *present,
                                           const struct tarn_slice **out, size_t *count)
{
    struct tarn_slice *items = NULL;
    size_t n = 0, room = 0;
    int64_t more;
    TARN_TRY(begin_array(r, node, &node));
    *present = node != NULL;
    while (node != NULL) {
        TARN_TRY(take_count(r, &more));
        if (more == 0)
            break;
        if (n + (size_t)more > room) {
            size_t want = TARN_MAX((size_t)more, n); /* doubles, so many blocks stay linear */
            items = grow(r->arena, items, n, want, sizeof *items);
            room = n + want;
        }
        for (; more > 0; more--)
            TARN_TRY(tarn_avro_read_bytes(r, node->children[0], false, &items[n++]));
    }
    *out = items;
    *count = n;
    return TARN_OK;
}

struct tarn_status *tarn_avro_read_longs(struct tarn_avro_reader *r,
                                         const struct tarn_avro_node *node, int64_t null_value,
                                         bool *present, const int64_t **out, size_t *count)
{
    int64_t *items = NULL;
    size_t n = 0, room = 0;
    int64_t more;
    TARN_TRY(begin_array(r, node, &node));
    *present = node != NULL;
    while (node != NULL) {
        TARN_TRY(take_count(r, &more));
        if (more == 0)
            break;
        if (n + (size_t)more > room) {
            size_t want = TARN_MAX((size_t)more, n);
            items = grow(r->arena, items, n, want, sizeof *items);
            room = n + want;
        }
        for (; more > 0; more--)
            TARN_TRY(tarn_avro_read_long(r, node->children[0], true, null_value, &items[n++]));
    }
    *out = items;
    *count = n;
    return TARN_OK;
}

struct tarn_status *tarn_avro_begin_array(struct tarn_avro_reader *r,
                                          const struct tarn_avro_node *node,
                                          const struct tarn_avro_node **item)
{
    TARN_TRY(begin_array(r, node, &node));
    *item = node == NULL ? NULL : node->children[0];
    return TARN_OK;
}

struct tarn_status *tarn_avro_next_items(struct tarn_avro_reader *r, size_t *count)
{
    int64_t more = 0;
    TARN_TRY(take_count(r, &more));
    *count = (size_t)more;
    return TARN_OK;
}

/* ---- names */

struct tarn_status *tarn_avro_bind(struct tarn_avro_reader *r, const struct tarn_avro_node *record,
                                   const char *const *names, size_t name_count, const int16_t **out)
{
    if (record->kind != TARN_AVRO_RECORD)
        return tarn_avro_error(r, "a type is no record");
    int16_t *map = tarn_arena_calloc(r->arena, record->child_count, sizeof *map);
    for (size_t i = 0; i < record->child_count; i++) {
        map[i] = -1;
        for (size_t j = 0; j < name_count; j++)
            if (tarn_slice_is(record->names[i], names[j]))
                map[i] = (int16_t)j;
    }
    *out = map;
    return TARN_OK;
}

const struct tarn_avro_node *tarn_avro_find(const struct tarn_avro_node *record, const char *name)
{
    for (size_t i = 0; i < record->child_count && record->kind == TARN_AVRO_RECORD; i++) {
        if (!tarn_slice_is(record->names[i], name))
            continue;
        const struct tarn_avro_node *node = record->children[i];
        for (size_t b = 0; node->kind == TARN_AVRO_UNION && b < record->children[i]->child_count;
             b++)
            if (record->children[i]->children[b]->kind != TARN_AVRO_NULL)
                node = record->children[i]->children[b];
        return node;
    }
    return NULL;
}
