#include "format/manifest.h"

#include "format/avro.h"
#include "format/ddl.h"

/*
 * Entries as bytes of our own. Of a data file they hold what message DataFile of proto/tarn/v1/table.proto holds, as
 * its fields: a plan passes them on as they are, without reading them.
 *
 *   version 2 | flags | kind, bucket, total_buckets | partition | columns that were written | fields [| statistics]
 *
 * `fields` are all but statistics, `statistics` those; each has its size in front. What says statistics alone
 * (tarn_manifest_stats_pack) can be put behind an entry without them, and that is one with them. Numbers and sizes of the
 * head are Avro's varints.
 */

#define PACK_VERSION 2

enum pack_flag {
    PACK_COLUMNS = 1 << 0,
    PACK_SEQUENCES = 1 << 1,
    PACK_UNKNOWN = 1 << 2,
    PACK_ALL = (1 << 3) - 1,
};

enum file_field { /* of DataFile */
                  NAME = 1,
                  SIZE = 2,
                  ROW_COUNT = 3,
                  MIN_KEY = 4,
                  MAX_KEY = 5,
                  KEY_STATS = 6,
                  VALUE_STATS = 7,
                  MIN_SEQUENCE = 8,
                  MAX_SEQUENCE = 9,
                  SCHEMA_ID = 10,
                  LEVEL = 11,
                  EXTRA_FILES = 12,
                  CREATION_TIME = 13,
                  DELETE_ROW_COUNT = 14,
                  EMBEDDED_INDEX = 15,
                  SOURCE = 16,
                  HAS_STATS_COLUMNS = 17,
                  STATS_COLUMNS = 18,
                  EXTERNAL_PATH = 19,
                  FIRST_ROW_ID = 20,
                  DELETION_VECTOR = 21
};
enum vector_field { /* of DeletionVector */
                    VECTOR_PATH = 1,
                    VECTOR_OFFSET = 2,
                    VECTOR_LENGTH = 3,
                    VECTOR_CARDINALITY = 4
};
enum stats_field { /* of Stats */ STATS_MIN = 1, STATS_MAX = 2, STATS_NULL_COUNTS = 3 };

/* ---- writing */

static size_t list_size(const struct tarn_slice *list, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += list[i].size + TARN_FIELD_ROOM;
    return size;
}

static uint8_t *put_list(uint8_t *to, uint32_t field, const struct tarn_slice *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to = tarn_put_bytes(to, field, list[i]);
    return to;
}

/* What may be 0 and there. */
static uint8_t *put_optional(uint8_t *to, uint32_t field, int64_t value)
{
    return value == TARN_FILE_NONE ? to : tarn_put_number(to, field, value);
}

static uint8_t *put_vector(uint8_t *to, const struct tarn_vector_ref *v)
{
    uint8_t own[TARN_FIELD_ROOM * 3];
    uint8_t *end = tarn_put_number(own, VECTOR_OFFSET, v->offset);
    end = put_optional(tarn_put_number(end, VECTOR_LENGTH, v->length), VECTOR_CARDINALITY,
                       v->cardinality);
    size_t numbers = (size_t)(end - own);
    size_t size = 1 + tarn_varint_size(v->path.size) + v->path.size + numbers;
    to = tarn_put_varint(tarn_put_key(to, DELETION_VECTOR, TARN_FORM_BYTES), size);
    to = tarn_put_bytes(to, VECTOR_PATH, v->path);
    memcpy(to, own, numbers);
    return to + numbers;
}

void tarn_manifest_vector_fields(const struct tarn_vector_ref *vector, struct tarn_buf *out)
{
    tarn_buf_reserve(out, vector->path.size + TARN_FIELD_ROOM * 5);
    out->size = (size_t)(put_vector(out->data + out->size, vector) - out->data);
}

static uint8_t *put_fields(uint8_t *to, const struct tarn_data_file *f)
{
    to = tarn_put_some_bytes(to, NAME, f->name);
    to = tarn_put_some_number(to, SIZE, f->size);
    to = tarn_put_some_number(to, ROW_COUNT, f->row_count);
    to = tarn_put_some_bytes(to, MIN_KEY, f->min_key);
    to = tarn_put_some_bytes(to, MAX_KEY, f->max_key);
    to = tarn_put_some_number(to, MIN_SEQUENCE, f->min_sequence);
    to = tarn_put_some_number(to, MAX_SEQUENCE, f->max_sequence);
    to = tarn_put_some_number(to, SCHEMA_ID, f->schema_id);
    to = tarn_put_some_number(to, LEVEL, f->level);
    to = put_list(to, EXTRA_FILES, f->extra_files, f->extra_file_count);
    to = put_optional(to, CREATION_TIME, f->creation_time_ms);
    to = put_optional(to, DELETE_ROW_COUNT, f->delete_row_count);
    if (f->embedded_index.data != NULL)
        to = tarn_put_bytes(to, EMBEDDED_INDEX, f->embedded_index);
    to = tarn_put_some_number(to, SOURCE, f->source);
    if (f->external_path.data != NULL)
        to = tarn_put_bytes(to, EXTERNAL_PATH, f->external_path);
    to = put_optional(to, FIRST_ROW_ID, f->first_row_id);
    return f->vector.path.data == NULL ? to : put_vector(to, &f->vector);
}

/* The size of what was written behind `at` goes in front of it. */
static void close_sized(struct tarn_buf *out, size_t at)
{
    size_t size = out->size - at, head_size = tarn_varint_size(size);
    tarn_buf_reserve(out, head_size);
    memmove(out->data + at + head_size, out->data + at, size);
    tarn_put_varint(out->data + at, size);
    out->size += head_size;
}

static void add_fields(const struct tarn_data_file *f, struct tarn_buf *out)
{
    size_t at = out->size;
    tarn_buf_reserve(out, f->name.size + f->min_key.size + f->max_key.size +
                              f->embedded_index.size + f->external_path.size + f->vector.path.size +
                              list_size(f->extra_files, f->extra_file_count) +
                              TARN_FIELD_ROOM * 25);
    out->size = (size_t)(put_fields(out->data + at, f) - out->data);
    close_sized(out, at);
}

static uint8_t *put_stats(uint8_t *to, uint32_t field, const struct tarn_stats *stats)
{
    uint8_t head[TARN_FIELD_ROOM];
    size_t counts_size = 0, size = 0;
    for (size_t i = 0; i < stats->count; i++)
        counts_size += tarn_varint_size((uint64_t)stats->null_counts[i]);
    if (stats->min.size > 0)
        size += 1 + tarn_varint_size(stats->min.size) + stats->min.size;
    if (stats->max.size > 0)
        size += 1 + tarn_varint_size(stats->max.size) + stats->max.size;
    if (counts_size > 0)
        size += (size_t)(tarn_put_varint(head, counts_size) - head) + 1 + counts_size;
    to = tarn_put_varint(tarn_put_key(to, field, TARN_FORM_BYTES), size);
    to = tarn_put_some_bytes(to, STATS_MIN, stats->min);
    to = tarn_put_some_bytes(to, STATS_MAX, stats->max);
    if (counts_size > 0) {
        to = tarn_put_varint(tarn_put_key(to, STATS_NULL_COUNTS, TARN_FORM_BYTES), counts_size);
        for (size_t i = 0; i < stats->count; i++)
            to = tarn_put_varint(to, (uint64_t)stats->null_counts[i]);
    }
    return to;
}

static size_t stats_room(const struct tarn_stats *stats)
{
    return stats->min.size + stats->max.size + stats->count * 10 + TARN_FIELD_ROOM * 4;
}

void tarn_manifest_stats_pack(const struct tarn_data_file *f, struct tarn_buf *out)
{
    size_t at = out->size;
    tarn_buf_reserve(out, stats_room(&f->key_stats) + stats_room(&f->value_stats) +
                              list_size(f->value_stats_columns, f->value_stats_column_count) +
                              TARN_FIELD_ROOM);
    uint8_t *to = put_stats(out->data + at, KEY_STATS, &f->key_stats);
    to = put_stats(to, VALUE_STATS, &f->value_stats);
    to = tarn_put_some_number(to, HAS_STATS_COLUMNS, f->has_value_stats_columns);
    if (f->has_value_stats_columns)
        to = put_list(to, STATS_COLUMNS, f->value_stats_columns, f->value_stats_column_count);
    out->size = (size_t)(to - out->data);
    close_sized(out, at);
}

static void add_strings(struct tarn_buf *out, const struct tarn_slice *items, size_t count)
{
    tarn_avro_add_long(out, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        tarn_avro_add_bytes(out, items[i]);
}

void tarn_manifest_entry_pack(const struct tarn_manifest_entry *entry, bool with_stats,
                              struct tarn_buf *out)
{
    const struct tarn_data_file *f = &entry->file;
    int flags = (f->has_write_columns ? PACK_COLUMNS : 0) |
                (f->has_write_column_sequences ? PACK_SEQUENCES : 0) |
                (f->unknown ? PACK_UNKNOWN : 0);
    tarn_buf_add_byte(out, PACK_VERSION);
    tarn_buf_add_byte(out, (uint8_t)flags);
    tarn_avro_add_long(out, entry->kind);
    tarn_avro_add_long(out, entry->bucket);
    tarn_avro_add_long(out, entry->total_buckets);
    tarn_avro_add_bytes(out, entry->partition);
    if (f->has_write_columns)
        add_strings(out, f->write_columns, f->write_column_count);
    if (f->has_write_column_sequences) {
        tarn_avro_add_long(out, (int64_t)f->write_column_sequence_count);
        for (size_t i = 0; i < f->write_column_sequence_count; i++)
            tarn_avro_add_long(out, f->write_column_sequences[i]);
    }
    add_fields(f, out);
    if (with_stats)
        tarn_manifest_stats_pack(f, out);
}

/* ---- reading */

struct unpacker {
    const uint8_t *cursor, *end;
    struct tarn_arena *arena;
    bool failed; /* once set, everything taken is empty */
};

static int64_t within(struct unpacker *u, int64_t value, int64_t min, int64_t max)
{
    u->failed = u->failed || value < min || value > max;
    return u->failed ? 0 : value;
}

static inline int64_t take_number(struct unpacker *u, int64_t min, int64_t max)
{
    uint64_t value = 0; /* zigzag */
    u->failed = u->failed || !tarn_take_varint(&u->cursor, u->end, &value);
    return within(u, (int64_t)(value >> 1) ^ -(int64_t)(value & 1), min, max);
}

static inline struct tarn_slice take_bytes(struct unpacker *u, uint64_t size)
{
    if (u->failed || size > (uint64_t)(u->end - u->cursor)) {
        u->failed = true;
        return (struct tarn_slice){0};
    }
    struct tarn_slice bytes = tarn_slice_of(u->cursor, (size_t)size);
    u->cursor += size;
    return bytes;
}

static inline struct tarn_slice take_slice(struct unpacker *u)
{
    return take_bytes(u, (uint64_t)take_number(u, 0, u->end - u->cursor));
}

static inline struct tarn_slice take_sized(struct unpacker *u)
{
    uint64_t size = 0;
    u->failed = u->failed || !tarn_take_varint(&u->cursor, u->end, &size);
    return take_bytes(u, size);
}

/* Every item takes a byte at least, which bounds the count by what is left. */
static size_t take_count(struct unpacker *u)
{
    return (size_t)take_number(u, 0, u->end - u->cursor);
}

static const struct tarn_slice *take_strings(struct unpacker *u, size_t *count)
{
    size_t n = take_count(u);
    bool kept = n > 0 && u->arena != NULL;
    struct tarn_slice *items = kept ? tarn_arena_calloc(u->arena, n, sizeof *items) : NULL;
    for (size_t i = 0; i < n && !u->failed; i++) {
        struct tarn_slice item = take_slice(u);
        if (kept)
            items[i] = item;
    }
    *count = kept ? n : 0;
    return items;
}

static const int64_t *take_longs(struct unpacker *u, size_t *count)
{
    size_t n = take_count(u);
    bool kept = n > 0 && u->arena != NULL;
    int64_t *items = kept ? tarn_arena_calloc(u->arena, n, sizeof *items) : NULL;
    for (size_t i = 0; i < n && !u->failed; i++) {
        int64_t item = take_number(u, INT64_MIN, INT64_MAX);
        if (kept)
            items[i] = item;
    }
    *count = kept ? n : 0;
    return items;
}

static void take_head(struct unpacker *u, int flags, struct tarn_manifest_entry *e)
{
    struct tarn_data_file *f = &e->file;
    e->kind = (enum tarn_entry_kind)take_number(u, TARN_ENTRY_ADD, TARN_ENTRY_DELETE);
    e->bucket = (int32_t)take_number(u, INT32_MIN, INT32_MAX);
    e->total_buckets = (int32_t)take_number(u, INT32_MIN, INT32_MAX);
    e->partition = take_slice(u);
    f->unknown = flags & PACK_UNKNOWN;
    f->has_write_columns = flags & PACK_COLUMNS;
    if (f->has_write_columns)
        f->write_columns = take_strings(u, &f->write_column_count);
    f->has_write_column_sequences = flags & PACK_SEQUENCES;
    if (f->has_write_column_sequences)
        f->write_column_sequences = take_longs(u, &f->write_column_sequence_count);
}

/* A list whose items are fields of `number` among others: counted, then taken. */
static const struct tarn_slice *gather_list(struct unpacker *u, struct tarn_slice fields,
                                            uint32_t number, size_t *count)
{
    const uint8_t *at = fields.data, *end = at + fields.size;
    struct tarn_taken_field field;
    size_t n, none;
    *count = 0;
    if (u->arena == NULL || !tarn_count_fields(fields, number, 0, &n, &none))
        return NULL;
    struct tarn_slice *list = tarn_arena_alloc(u->arena, (n + 1) * sizeof *list);
    while (tarn_take_field(&at, end, &field))
        if (field.number == number && field.form == TARN_FORM_BYTES)
            list[(*count)++] = field.bytes;
    return list;
}

static void set_number(struct unpacker *u, uint32_t number, int64_t n, struct tarn_data_file *f)
{
    switch (number) {
    case SIZE:
        f->size = within(u, n, 0, INT64_MAX);
        return;
    case ROW_COUNT:
        f->row_count = within(u, n, 0, INT64_MAX);
        return;
    case MIN_SEQUENCE:
        f->min_sequence = n;
        return;
    case MAX_SEQUENCE:
        f->max_sequence = n;
        return;
    case SCHEMA_ID:
        f->schema_id = within(u, n, 0, INT64_MAX);
        return;
    case LEVEL:
        f->level = (int32_t)within(u, n, 0, INT32_MAX);
        return;
    case CREATION_TIME:
        f->creation_time_ms = n;
        return;
    case DELETE_ROW_COUNT:
        f->delete_row_count = n;
        return;
    case SOURCE:
        f->source = (enum tarn_file_source)within(u, n, TARN_SOURCE_UNKNOWN, TARN_SOURCE_COMPACT);
        return;
    case FIRST_ROW_ID:
        f->first_row_id = n;
        return;
    default:
        u->failed = true; /* we pack no others */
    }
}

static void take_vector(struct unpacker *u, struct tarn_slice fields, struct tarn_vector_ref *out)
{
    const uint8_t *at = fields.data, *end = at + fields.size;
    struct tarn_taken_field field;
    *out = (struct tarn_vector_ref){.path = tarn_slice_of(at, 0), .cardinality = TARN_FILE_NONE};
    while (at < end && !u->failed) {
        if (!tarn_take_field(&at, end, &field))
            u->failed = true;
        else if (field.number == VECTOR_PATH && field.form == TARN_FORM_BYTES)
            out->path = field.bytes;
        else if (field.number == VECTOR_OFFSET)
            out->offset = within(u, (int64_t)field.value, 0, INT64_MAX);
        else if (field.number == VECTOR_LENGTH)
            out->length = within(u, (int64_t)field.value, 0, INT64_MAX);
        else if (field.number == VECTOR_CARDINALITY)
            out->cardinality = within(u, (int64_t)field.value, 0, INT64_MAX);
        else
            u->failed = true;
    }
}

static void set_bytes(struct unpacker *u, uint32_t number, struct tarn_slice bytes, bool *has_list,
                      struct tarn_data_file *f)
{
    switch (number) {
    case NAME:
        f->name = bytes;
        return;
    case MIN_KEY:
        f->min_key = bytes;
        return;
    case MAX_KEY:
        f->max_key = bytes;
        return;
    case EXTRA_FILES:
        *has_list = true;
        return;
    case EMBEDDED_INDEX:
        f->embedded_index = bytes;
        return;
    case EXTERNAL_PATH:
        f->external_path = bytes;
        return;
    case DELETION_VECTOR:
        take_vector(u, bytes, &f->vector);
        return;
    default:
        u->failed = true;
    }
}

static void take_fields(struct unpacker *u, struct tarn_data_file *f)
{
    struct tarn_slice fields = take_sized(u);
    const uint8_t *at = fields.data, *end = at + fields.size;
    struct tarn_taken_field field;
    bool has_list = false;
    f->name = f->min_key = f->max_key = tarn_slice_of(at, 0);
    f->creation_time_ms = f->delete_row_count = f->first_row_id = TARN_FILE_NONE;
    while (at < end && !u->failed) {
        if (!tarn_take_field(&at, end, &field))
            u->failed = true;
        else if (field.form == TARN_FORM_VARINT)
            set_number(u, field.number, (int64_t)field.value, f);
        else
            set_bytes(u, field.number, field.bytes, &has_list, f);
    }
    if (has_list)
        f->extra_files = gather_list(u, fields, EXTRA_FILES, &f->extra_file_count);
}

static void take_stats(struct unpacker *u, struct tarn_slice fields, struct tarn_stats *out)
{
    const uint8_t *at = fields.data, *end = at + fields.size;
    struct tarn_taken_field field;
    *out = (struct tarn_stats){tarn_slice_of(at, 0), tarn_slice_of(at, 0), NULL, 0};
    while (at < end && !u->failed) {
        if (!tarn_take_field(&at, end, &field) || field.form != TARN_FORM_BYTES)
            u->failed = true;
        else if (field.number == STATS_MIN)
            out->min = field.bytes;
        else if (field.number == STATS_MAX)
            out->max = field.bytes;
        else if (field.number == STATS_NULL_COUNTS && u->arena != NULL) {
            const uint8_t *number = field.bytes.data, *last = number + field.bytes.size;
            int64_t *counts = tarn_arena_alloc(u->arena, (field.bytes.size + 1) * sizeof *counts);
            uint64_t value;
            out->count = 0;
            for (; number < last && !u->failed; out->count++) {
                u->failed = !tarn_take_varint(&number, last, &value);
                counts[out->count] = u->failed ? 0 : (int64_t)value;
            }
            out->null_counts = counts;
        }
    }
}

static void take_statistics(struct unpacker *u, struct tarn_data_file *f)
{
    struct tarn_slice fields = take_sized(u);
    const uint8_t *at = fields.data, *end = at + fields.size;
    struct tarn_taken_field field;
    bool has_list = false;
    f->has_value_stats_columns = false;
    while (at < end && !u->failed) {
        if (!tarn_take_field(&at, end, &field))
            u->failed = true;
        else if (field.number == KEY_STATS && field.form == TARN_FORM_BYTES)
            take_stats(u, field.bytes, &f->key_stats);
        else if (field.number == VALUE_STATS && field.form == TARN_FORM_BYTES)
            take_stats(u, field.bytes, &f->value_stats);
        else if (field.number == HAS_STATS_COLUMNS && field.form == TARN_FORM_VARINT)
            f->has_value_stats_columns = field.value != 0;
        else if (field.number == STATS_COLUMNS && field.form == TARN_FORM_BYTES)
            has_list = true;
        else
            u->failed = true;
    }
    if (has_list)
        f->value_stats_columns =
            gather_list(u, fields, STATS_COLUMNS, &f->value_stats_column_count);
}

static struct tarn_status *damaged(void)
{
    return tarn_status_new(TARN_MANIFEST_MALFORMED, "a packed entry is damaged");
}

static bool begin(struct tarn_slice bytes, struct tarn_arena *arena, struct unpacker *out)
{
    if (bytes.size < 2 || bytes.data[0] != PACK_VERSION || (bytes.data[1] & ~PACK_ALL) != 0)
        return false;
    *out =
        (struct unpacker){.cursor = bytes.data + 2, .end = bytes.data + bytes.size, .arena = arena};
    return true;
}

struct tarn_status *tarn_manifest_entry_view(struct tarn_slice bytes, struct tarn_arena *arena,
                                             struct tarn_manifest_entry *out)
{
    struct unpacker u;
    if (!begin(bytes, arena, &u))
        return tarn_status_new(TARN_MANIFEST_MALFORMED,
                               "a packed entry has an unknown version or flags");
    memset(out, 0, sizeof *out);
    take_head(&u, bytes.data[1], out);
    take_fields(&u, &out->file);
    /* Empty statistics must say that they cover no column, or they would seem to cover all. */
    out->file.key_stats = out->file.value_stats = tarn_stats_empty();
    out->file.has_value_stats_columns = true;
    if (!u.failed && u.cursor < u.end)
        take_statistics(&u, &out->file);
    return u.failed || u.cursor != u.end ? damaged() : TARN_OK;
}

struct tarn_status *tarn_manifest_stats_view(struct tarn_slice bytes, struct tarn_arena *arena,
                                             struct tarn_data_file *file)
{
    struct unpacker u = {.cursor = bytes.data, .end = bytes.data + bytes.size, .arena = arena};
    take_statistics(&u, file);
    return u.failed || u.cursor != u.end ? damaged() : TARN_OK;
}

struct tarn_status *tarn_manifest_entry_fields(struct tarn_slice bytes, struct tarn_slice *fields,
                                               struct tarn_slice *stats)
{
    struct unpacker u;
    struct tarn_manifest_entry head;
    *stats = (struct tarn_slice){0};
    if (!begin(bytes, NULL, &u))
        return damaged();
    take_head(&u, bytes.data[1], &head);
    *fields = take_sized(&u);
    if (!u.failed && u.cursor < u.end)
        *stats = take_sized(&u);
    return u.failed ? damaged() : TARN_OK;
}

struct tarn_status *tarn_manifest_stats_fields(struct tarn_slice bytes, struct tarn_slice *stats)
{
    struct unpacker u = {.cursor = bytes.data, .end = bytes.data + bytes.size};
    *stats = take_sized(&u);
    return u.failed ? damaged() : TARN_OK;
}

static struct tarn_status *check_name(struct tarn_slice name)
{
    if (tarn_format__is_file_name(name))
        return TARN_OK;
    struct tarn_slice shown = tarn_slice_of(name.data, TARN_MIN(name.size, (size_t)100));
    return tarn_status_new(
        TARN_MANIFEST_MALFORMED,
        "a packed entry names the file '%.*s': no folders, control characters or "
        "more than 1024 bytes are allowed",
        TARN_SLICE_ARG(shown));
}

static struct tarn_status *check_names(const struct tarn_data_file *f)
{
    TARN_TRY(check_name(f->name));
    for (size_t i = 0; i < f->extra_file_count; i++)
        TARN_TRY(check_name(f->extra_files[i]));
    return TARN_OK;
}

struct tarn_status *tarn_manifest_entry_unpack(struct tarn_slice bytes, struct tarn_arena *arena,
                                               struct tarn_manifest_entry *out)
{
    struct tarn_manifest_entry entry;
    TARN_TRY(tarn_manifest_entry_view(tarn_arena_copy(arena, bytes), arena, &entry));
    TARN_TRY(check_names(&entry.file));
    *out = entry;
    return TARN_OK;
}
