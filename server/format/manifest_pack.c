#include "format/manifest.h"

#include "format/avro.h"
#include "format/ddl.h"

/* ---- summary */

struct span {
    int64_t min, max;
};

static void widen(struct span *span, int64_t value)
{
    span->min = span->min == TARN_FILE_NONE ? value : TARN_MIN(span->min, value);
    span->max = span->max == TARN_FILE_NONE ? value : TARN_MAX(span->max, value);
}

static struct tarn_status *summarize_partitions(const struct tarn_manifest_entry *entries,
                                                size_t count, const struct tarn_type *const *types,
                                                size_t type_count, struct tarn_arena *arena,
                                                struct tarn_stats *out)
{
    struct tarn_value *min = tarn_arena_calloc(arena, type_count, sizeof *min);
    struct tarn_value *max = tarn_arena_calloc(arena, type_count, sizeof *max);
    struct tarn_value *row = tarn_arena_calloc(arena, type_count, sizeof *row);
    int64_t *nulls = tarn_arena_calloc(arena, type_count, sizeof *nulls);
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    for (size_t j = 0; j < type_count; j++)
        min[j].is_null = max[j].is_null = true;
    for (size_t i = 0; i < count; i++) {
        /* Entries of one partition follow each other: its bounds need a look only once. */
        bool same = i > 0 && tarn_slice_equal(entries[i].partition, entries[i - 1].partition);
        if (!same)
            TARN_TRY(tarn_row_deserialize(entries[i].partition, types, type_count, row));
        for (size_t j = 0; j < type_count; j++) {
            nulls[j] += row[j].is_null;
            if (same || row[j].is_null)
                continue;
            if (min[j].is_null || tarn_value_compare(types[j], &row[j], &min[j]) < 0)
                min[j] = row[j];
            if (max[j].is_null || tarn_value_compare(types[j], &row[j], &max[j]) > 0)
                max[j] = row[j];
        }
    }
    tarn_row_serialize(types, min, type_count, &bytes);
    out->min = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    tarn_buf_clear(&bytes);
    tarn_row_serialize(types, max, type_count, &bytes);
    out->max = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    out->null_counts = nulls;
    out->count = type_count;
    return TARN_OK;
}

struct tarn_status *tarn_manifest_summarize(const struct tarn_manifest_entry *entries, size_t count,
                                            const struct tarn_type *const *partition_types,
                                            size_t partition_count, int64_t latest_schema_id,
                                            struct tarn_arena *arena,
                                            struct tarn_manifest_file *out)
{
    struct tarn_manifest_file f = {.schema_id = count == 0 ? latest_schema_id : 0};
    struct span bucket = {TARN_FILE_NONE, TARN_FILE_NONE}, level = bucket, row_id = bucket;
    bool all_have_row_ids = true;
    for (size_t i = 0; i < count; i++) {
        const struct tarn_data_file *file = &entries[i].file;
        int64_t last = 0;
        f.added_count += entries[i].kind == TARN_ENTRY_ADD;
        f.deleted_count += entries[i].kind == TARN_ENTRY_DELETE;
        f.schema_id = TARN_MAX(f.schema_id, file->schema_id);
        widen(&bucket, entries[i].bucket);
        widen(&level, file->level);
        all_have_row_ids = all_have_row_ids && file->first_row_id != TARN_FILE_NONE &&
                           !__builtin_add_overflow(file->first_row_id, file->row_count - 1, &last);
        if (all_have_row_ids) {
            widen(&row_id, file->first_row_id);
            widen(&row_id, last);
        }
    }
    f.min_bucket = bucket.min;
    f.max_bucket = bucket.max;
    f.min_level = level.min;
    f.max_level = level.max;
    f.min_row_id = all_have_row_ids ? row_id.min : TARN_FILE_NONE;
    f.max_row_id = all_have_row_ids ? row_id.max : TARN_FILE_NONE;
    TARN_TRY(summarize_partitions(entries, count, partition_types, partition_count, arena,
                                  &f.partition_stats));
    *out = f;
    return TARN_OK;
}

static void join_bounds(const struct tarn_manifest_file *other, bool first,
                        struct tarn_manifest_file *into)
{
    struct {
        int64_t other_min, other_max, *min, *max;
    } spans[] = {
        {other->min_bucket, other->max_bucket, &into->min_bucket, &into->max_bucket},
        {other->min_level, other->max_level, &into->min_level, &into->max_level},
        {other->min_row_id, other->max_row_id, &into->min_row_id, &into->max_row_id},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(spans); i++) {
        bool known =
            spans[i].other_min != TARN_FILE_NONE && spans[i].other_max != TARN_FILE_NONE &&
            (first || (*spans[i].min != TARN_FILE_NONE && *spans[i].max != TARN_FILE_NONE));
        *spans[i].min = !known  ? TARN_FILE_NONE
                        : first ? spans[i].other_min
                                : TARN_MIN(*spans[i].min, spans[i].other_min);
        *spans[i].max = !known  ? TARN_FILE_NONE
                        : first ? spans[i].other_max
                                : TARN_MAX(*spans[i].max, spans[i].other_max);
    }
}

/* first: nothing was there, and *into is as `other`. */
static struct tarn_status *join_partitions(const struct tarn_type *const *types, size_t count,
                                           const struct tarn_stats *other, bool first,
                                           struct tarn_arena *arena, struct tarn_stats *into)
{
    struct tarn_value *rows = tarn_arena_calloc(arena, count * 4 + 1, sizeof *rows);
    struct tarn_value *min = rows, *max = rows + count, *low = max + count, *high = low + count;
    int64_t *nulls = tarn_arena_calloc(arena, count + 1, sizeof *nulls);
    TARN_TRY(tarn_row_deserialize(into->min, types, count, min));
    TARN_TRY(tarn_row_deserialize(into->max, types, count, max));
    TARN_TRY(tarn_row_deserialize(other->min, types, count, low));
    TARN_TRY(tarn_row_deserialize(other->max, types, count, high));
    for (size_t j = 0; j < count; j++) {
        int64_t mine = first ? 0 : j < into->count ? into->null_counts[j] : TARN_STATS_UNKNOWN;
        int64_t its = j < other->count ? other->null_counts[j] : TARN_STATS_UNKNOWN;
        nulls[j] = mine < 0 || its < 0 || mine > INT64_MAX - its ? TARN_STATS_UNKNOWN : mine + its;
        if (!low[j].is_null &&
            (min[j].is_null || tarn_value_compare(types[j], &low[j], &min[j]) < 0))
            min[j] = low[j];
        if (!high[j].is_null &&
            (max[j].is_null || tarn_value_compare(types[j], &high[j], &max[j]) > 0))
            max[j] = high[j];
    }
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_row_serialize(types, min, count, &bytes);
    into->min = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    tarn_buf_clear(&bytes);
    tarn_row_serialize(types, max, count, &bytes);
    into->max = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    into->null_counts = nulls;
    into->count = count;
    return TARN_OK;
}

static bool is_nothing(const struct tarn_manifest_file *f)
{
    return f->added_count == 0 && f->deleted_count == 0;
}

struct tarn_status *tarn_manifest_summary_join(const struct tarn_type *const *partition_types,
                                               size_t partition_count,
                                               const struct tarn_manifest_file *other,
                                               struct tarn_arena *arena,
                                               struct tarn_manifest_file *into)
{
    struct tarn_manifest_file joined = *into;
    if (is_nothing(other))
        return TARN_OK;
    bool first = is_nothing(into);
    if (first)
        joined.partition_stats = other->partition_stats;
    TARN_TRY(join_partitions(partition_types, partition_count, &other->partition_stats, first,
                             arena, &joined.partition_stats));
    join_bounds(other, first, &joined);
    joined.added_count += other->added_count;
    joined.deleted_count += other->deleted_count;
    joined.schema_id = first ? other->schema_id : TARN_MAX(joined.schema_id, other->schema_id);
    *into = joined;
    return TARN_OK;
}

/* ---- identity */

void tarn_manifest_identity(const struct tarn_manifest_entry *entry, struct tarn_buf *out)
{
    const struct tarn_data_file *f = &entry->file;
    tarn_avro_add_bytes(out, entry->partition);
    tarn_avro_add_long(out, entry->bucket);
    tarn_avro_add_long(out, f->level);
    tarn_avro_add_bytes(out, f->name);
    tarn_avro_add_long(out, (int64_t)f->extra_file_count);
    for (size_t i = 0; i < f->extra_file_count; i++)
        tarn_avro_add_bytes(out, f->extra_files[i]);
    tarn_avro_add_optional_bytes(out, f->embedded_index);
    tarn_avro_add_optional_bytes(out, f->external_path);
}

/* ---- packing: Avro's varints without its container */

#define TARN_PACK_VERSION 1

enum pack_flag {
    PACK_STATS = 1 << 0,
    PACK_STATS_COLUMNS = 1 << 1,
    PACK_COLUMNS = 1 << 2,
    PACK_SEQUENCES = 1 << 3,
    PACK_UNKNOWN = 1 << 4,
    PACK_ALL = (1 << 5) - 1,
};

static void pack_strings(struct tarn_buf *out, const struct tarn_slice *items, size_t count)
{
    tarn_avro_add_long(out, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        tarn_avro_add_bytes(out, items[i]);
}

static void pack_longs(struct tarn_buf *out, const int64_t *items, size_t count)
{
    tarn_avro_add_long(out, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        tarn_avro_add_long(out, items[i]);
}

static void pack_stats(struct tarn_buf *out, const struct tarn_stats *stats)
{
    tarn_avro_add_bytes(out, stats->min);
    tarn_avro_add_bytes(out, stats->max);
    pack_longs(out, stats->null_counts, stats->count);
}

void tarn_manifest_entry_pack(const struct tarn_manifest_entry *entry, bool with_stats,
                              struct tarn_buf *out)
{
    const struct tarn_data_file *f = &entry->file;
    int flags = (with_stats ? PACK_STATS : 0) |
                (with_stats && f->has_value_stats_columns ? PACK_STATS_COLUMNS : 0) |
                (f->has_write_columns ? PACK_COLUMNS : 0) |
                (f->has_write_column_sequences ? PACK_SEQUENCES : 0) |
                (f->unknown ? PACK_UNKNOWN : 0);
    tarn_buf_add_byte(out, TARN_PACK_VERSION);
    tarn_buf_add_byte(out, (uint8_t)flags);
    const int64_t numbers[] = {
        entry->kind,         entry->bucket,   entry->total_buckets, f->size,  f->row_count,
        f->min_sequence,     f->max_sequence, f->schema_id,         f->level, f->creation_time_ms,
        f->delete_row_count, f->source,       f->first_row_id};
    for (size_t i = 0; i < TARN_COUNT_OF(numbers); i++)
        tarn_avro_add_long(out, numbers[i]);
    tarn_avro_add_bytes(out, entry->partition);
    tarn_avro_add_bytes(out, f->name);
    tarn_avro_add_bytes(out, f->min_key);
    tarn_avro_add_bytes(out, f->max_key);
    pack_strings(out, f->extra_files, f->extra_file_count);
    tarn_avro_add_optional_bytes(out, f->embedded_index);
    tarn_avro_add_optional_bytes(out, f->external_path);
    if (with_stats) {
        pack_stats(out, &f->key_stats);
        pack_stats(out, &f->value_stats);
    }
    if (with_stats && f->has_value_stats_columns)
        pack_strings(out, f->value_stats_columns, f->value_stats_column_count);
    if (f->has_write_columns)
        pack_strings(out, f->write_columns, f->write_column_count);
    if (f->has_write_column_sequences)
        pack_longs(out, f->write_column_sequences, f->write_column_sequence_count);
}

struct unpacker {
    const uint8_t *cursor, *end;
    struct tarn_arena *arena;
    bool failed; /* once set, everything taken is empty */
};

/* Most numbers are one byte or few, and a plan takes a dozen of each of a million entries: in line. */
static inline bool take_varint(struct unpacker *u, int64_t *out)
{
    uint64_t value = 0;
    const uint8_t *at = u->cursor;
    for (int shift = 0; at < u->end && shift < 63; shift += 7) {
        uint8_t byte = *at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            u->cursor = at;
            *out = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
            return true;
        }
    }
    return tarn_avro_take_long(&u->cursor, u->end, out); /* ten bytes, or malformed */
}

static inline int64_t take_number(struct unpacker *u, int64_t min, int64_t max)
{
    int64_t value = 0;
    u->failed = u->failed || !take_varint(u, &value) || value < min || value > max;
    return u->failed ? 0 : value;
}

static inline struct tarn_slice take_slice(struct unpacker *u)
{
    int64_t size = take_number(u, 0, u->end - u->cursor);
    if (u->failed || size > u->end - u->cursor) {
        u->failed = true;
        return (struct tarn_slice){0};
    }
    struct tarn_slice bytes = tarn_slice_of(u->cursor, (size_t)size);
    u->cursor += size;
    return bytes;
}

static inline struct tarn_slice take_optional(struct unpacker *u)
{
    return take_number(u, 0, 1) == 1 ? take_slice(u) : (struct tarn_slice){0};
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

static void take_stats(struct unpacker *u, struct tarn_stats *out)
{
    out->min = take_slice(u);
    out->max = take_slice(u);
    out->null_counts = take_longs(u, &out->count);
}

static void unpack_numbers(struct unpacker *u, struct tarn_manifest_entry *e)
{
    struct tarn_data_file *f = &e->file;
    e->kind = (enum tarn_entry_kind)take_number(u, TARN_ENTRY_ADD, TARN_ENTRY_DELETE);
    e->bucket = (int32_t)take_number(u, INT32_MIN, INT32_MAX);
    e->total_buckets = (int32_t)take_number(u, INT32_MIN, INT32_MAX);
    f->size = take_number(u, 0, INT64_MAX);
    f->row_count = take_number(u, 0, INT64_MAX);
    f->min_sequence = take_number(u, INT64_MIN, INT64_MAX);
    f->max_sequence = take_number(u, INT64_MIN, INT64_MAX);
    f->schema_id = take_number(u, 0, INT64_MAX);
    f->level = (int32_t)take_number(u, 0, INT32_MAX);
    f->creation_time_ms = take_number(u, INT64_MIN, INT64_MAX);
    f->delete_row_count = take_number(u, INT64_MIN, INT64_MAX);
    f->source = (enum tarn_file_source)take_number(u, TARN_SOURCE_UNKNOWN, TARN_SOURCE_COMPACT);
    f->first_row_id = take_number(u, INT64_MIN, INT64_MAX);
}

static void unpack_rest(struct unpacker *u, int flags, struct tarn_manifest_entry *e)
{
    struct tarn_data_file *f = &e->file;
    e->partition = take_slice(u);
    f->name = take_slice(u);
    f->min_key = take_slice(u);
    f->max_key = take_slice(u);
    f->extra_files = take_strings(u, &f->extra_file_count);
    f->embedded_index = take_optional(u);
    f->external_path = take_optional(u);
    f->unknown = flags & PACK_UNKNOWN;
    f->key_stats = f->value_stats = tarn_stats_empty();
    /* Empty statistics must say that they cover no column, or they would seem to cover all. */
    f->has_value_stats_columns = !(flags & PACK_STATS) || (flags & PACK_STATS_COLUMNS);
    if (flags & PACK_STATS) {
        take_stats(u, &f->key_stats);
        take_stats(u, &f->value_stats);
    }
    if (flags & PACK_STATS_COLUMNS)
        f->value_stats_columns = take_strings(u, &f->value_stats_column_count);
    f->has_write_columns = flags & PACK_COLUMNS;
    if (f->has_write_columns)
        f->write_columns = take_strings(u, &f->write_column_count);
    f->has_write_column_sequences = flags & PACK_SEQUENCES;
    if (f->has_write_column_sequences)
        f->write_column_sequences = take_longs(u, &f->write_column_sequence_count);
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

struct tarn_status *tarn_manifest_entry_view(struct tarn_slice bytes, struct tarn_arena *arena,
                                             struct tarn_manifest_entry *out)
{
    if (bytes.size < 2 || bytes.data[0] != TARN_PACK_VERSION || (bytes.data[1] & ~PACK_ALL) != 0)
        return tarn_status_new(TARN_MANIFEST_MALFORMED,
                               "a packed entry has an unknown version or flags");
    struct unpacker u = {.cursor = bytes.data + 2, .end = bytes.data + bytes.size, .arena = arena};
    memset(out, 0, sizeof *out);
    unpack_numbers(&u, out);
    unpack_rest(&u, bytes.data[1], out);
    if (u.failed || u.cursor != u.end)
        return tarn_status_new(TARN_MANIFEST_MALFORMED, "a packed entry is damaged");
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
