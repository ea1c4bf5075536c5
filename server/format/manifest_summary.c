#include "format/manifest.h"

#include "format/avro.h"

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
