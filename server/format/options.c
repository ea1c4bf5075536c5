#include "format/options.h"

#include "format/ddl.h"
#include "format/options_judge.h"

#include <limits.h>
#include <stdlib.h>
#include <strings.h>

static struct tarn_status *invalid(const char *key, struct tarn_slice value, const char *expected)
{
    return tarn_status_new(TARN_SCHEMA_INVALID, "option %s = \"%.*s\": expected %s", key,
                           (int)TARN_MIN(value.size, (size_t)200), (const char *)value.data,
                           expected);
}

/* ---- values */

/* The value of an option, or its default; absent where both are. */
static struct tarn_slice value_of(const struct tarn_schema *schema, const char *key)
{
    struct tarn_slice value = tarn_schema_option(schema, key);
    if (value.data != NULL)
        return value;
    const char *option = tarn_format__option_default(key);
    return option[0] == 0 ? (struct tarn_slice){0} : tarn_slice_str(option);
}

static struct tarn_status *reword(struct tarn_status *s, const char *key, struct tarn_slice value,
                                  const char *expected)
{
    tarn_status_free(s);
    return invalid(key, value, expected);
}

static struct tarn_status *take_i64(const struct tarn_schema *schema, const char *key, int64_t min,
                                    int64_t max, int64_t fallback, int64_t *out)
{
    struct tarn_slice value = value_of(schema, key);
    *out = fallback;
    if (value.data == NULL)
        return TARN_OK;
    struct tarn_status *s = tarn_parse_i64(tarn_format__trim(value), out);
    if (s != NULL)
        return reword(s, key, value, "a whole number");
    return *out >= min && *out <= max ? TARN_OK : invalid(key, value, "a number within its range");
}

static struct tarn_status *take_int(const struct tarn_schema *schema, const char *key, int min,
                                    int max, int fallback, int *out)
{
    int64_t value;
    TARN_TRY(take_i64(schema, key, min, max, fallback, &value));
    *out = (int)value;
    return TARN_OK;
}

static struct tarn_status *take_size(const struct tarn_schema *schema, const char *key,
                                     int64_t fallback, int64_t *out)
{
    struct tarn_slice value = value_of(schema, key);
    *out = fallback;
    if (value.data == NULL)
        return TARN_OK;
    struct tarn_status *s = tarn_parse_size(tarn_format__trim(value), out);
    if (s != NULL)
        return reword(s, key, value, "a size such as 128 mb");
    return *out >= 0 ? TARN_OK : invalid(key, value, "a size such as 128 mb");
}

static struct tarn_status *take_duration(const struct tarn_schema *schema, const char *key,
                                         int64_t *out)
{
    struct tarn_slice value = value_of(schema, key);
    *out = -1;
    if (value.data == NULL)
        return TARN_OK;
    struct tarn_status *s = tarn_parse_duration(tarn_format__trim(value), out);
    return s == NULL ? TARN_OK : reword(s, key, value, "a duration such as 1 h");
}

static struct tarn_status *take_bool(const struct tarn_schema *schema, const char *key, bool *out)
{
    struct tarn_slice value = value_of(schema, key);
    *out = tarn_format__is_word(tarn_format__trim(value), "true");
    return *out || tarn_format__is_word(tarn_format__trim(value), "false")
               ? TARN_OK
               : invalid(key, value, "true or false");
}

static struct tarn_status *take_ratio(const struct tarn_schema *schema, const char *key,
                                      double *out)
{
    struct tarn_slice value = value_of(schema, key);
    TARN_OWN(tarn_free_drop) char *text = tarn_slice_dup(tarn_format__trim(value));
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && *end == 0 && *out >= 0 && *out <= 1 ? TARN_OK
                                                              : invalid(key, value, "0.0 to 1.0");
}

/* none, counts, full, truncate(n) */
static bool parse_stats_mode(struct tarn_slice value, enum tarn_stats_mode *mode, int32_t *length)
{
    static const char *const words[] = {"none", "counts", NULL, "full"};
    value = tarn_format__trim(value);
    for (int i = 0; i < 4; i++) {
        if (words[i] != NULL && tarn_format__is_word(value, words[i])) {
            *mode = (enum tarn_stats_mode)i;
            return true;
        }
    }
    int64_t n = 0;
    if (value.size < 11 || strncasecmp((const char *)value.data, "truncate(", 9) != 0 ||
        value.data[value.size - 1] != ')')
        return false;
    struct tarn_status *s =
        tarn_parse_i64(tarn_format__trim(tarn_slice_of(value.data + 9, value.size - 10)), &n);
    bool fine = s == NULL && n > 0 && n <= INT32_MAX;
    tarn_status_free(s);
    *mode = TARN_STATS_TRUNCATE;
    *length = fine ? (int32_t)n : *length;
    return fine;
}

/* "a, b" as column indices, in that order. */
static struct tarn_status *take_columns(const struct tarn_schema *schema, const char *key,
                                        struct tarn_arena *arena, const int **out, size_t *count)
{
    struct tarn_slice value = value_of(schema, key);
    *out = NULL;
    *count = 0;
    if (value.data == NULL)
        return TARN_OK;
    size_t n = 1, start = 0;
    for (size_t i = 0; i < value.size; i++)
        n += value.data[i] == ',';
    int *columns = tarn_arena_calloc(arena, n, sizeof *columns);
    n = 0;
    for (size_t i = 0; i <= value.size; i++) {
        if (i < value.size && value.data[i] != ',')
            continue;
        int column = tarn_schema_find(
            schema, tarn_format__trim(tarn_slice_of(value.data + start, i - start)));
        if (column < 0)
            return invalid(key, value, "names of columns");
        for (size_t j = 0; j < n; j++)
            if (columns[j] == column)
                return invalid(key, value, "each column once");
        if (!tarn_type_is_ordered(schema->fields[column].type))
            return invalid(key, value, "columns that can be compared");
        columns[n++] = column;
        start = i + 1;
    }
    *out = columns;
    *count = n;
    return TARN_OK;
}

/* ---- parsing, group by group */

static void default_bucket_key(const struct tarn_schema *schema, struct tarn_arena *arena,
                               struct tarn_options *o)
{
    int *columns = NULL;
    o->bucket_key_count = tarn_schema_trimmed_key_columns(schema, arena, &columns);
    o->bucket_key_columns = columns;
}

static bool is_key(const struct tarn_slice *keys, size_t count, struct tarn_slice name)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_equal(keys[i], name))
            return true;
    return false;
}

static struct tarn_status *check_bucket_key(const struct tarn_schema *schema,
                                            const struct tarn_options *o)
{
    struct tarn_slice value = tarn_schema_option(schema, "bucket-key");
    if (value.data != NULL && o->bucket == -1)
        return invalid("bucket-key", value, "none, since bucket is -1");
    if (value.data == NULL && o->bucket > 0 && tarn_schema_is_append(schema))
        return tarn_status_new(
            TARN_SCHEMA_INVALID,
            "a table without primary key needs option bucket-key for bucket = %d", o->bucket);
    for (size_t i = 0; value.data != NULL && i < o->bucket_key_count; i++) {
        struct tarn_slice name = schema->fields[o->bucket_key_columns[i]].name;
        if (is_key(schema->partition_keys, schema->partition_key_count, name))
            return invalid("bucket-key", value, "no partition columns");
        if (schema->primary_key_count > 0 &&
            !is_key(schema->primary_keys, schema->primary_key_count, name))
            return invalid("bucket-key", value, "columns of the primary key");
    }
    return TARN_OK;
}

static struct tarn_status *parse_buckets(const struct tarn_schema *schema, struct tarn_arena *arena,
                                         struct tarn_options *o)
{
    struct tarn_slice value = value_of(schema, "bucket"), function;
    TARN_TRY(take_int(schema, "bucket", -2, INT32_MAX, -1, &o->bucket));
    if (o->bucket == 0)
        return invalid("bucket", value, "a number above 0, -1 or -2");
    TARN_TRY(
        take_columns(schema, "bucket-key", arena, &o->bucket_key_columns, &o->bucket_key_count));
    TARN_TRY(check_bucket_key(schema, o));
    if (o->bucket_key_count == 0)
        default_bucket_key(schema, arena, o);
    function = value_of(schema, "bucket-function.type");
    if (tarn_format__is_word(function, "mod"))
        o->bucket_function = TARN_BUCKET_MOD;
    else if (tarn_format__is_word(function, "hive"))
        o->bucket_function = TARN_BUCKET_HIVE;
    else if (!tarn_format__is_word(function, "default"))
        return invalid("bucket-function.type", function, "default, mod or hive");
    if (o->bucket_function == TARN_BUCKET_MOD && o->bucket > 0) {
        enum tarn_type_id id = o->bucket_key_count == 0
                                   ? TARN_TYPE_ROW
                                   : schema->fields[o->bucket_key_columns[0]].type->id;
        if (o->bucket_key_count != 1 || (id != TARN_TYPE_INT && id != TARN_TYPE_BIGINT))
            return invalid("bucket-function.type", function,
                           "default: mod takes one INT or BIGINT");
    }
    TARN_TRY(take_int(schema, "postpone.default-bucket-num", 1, INT32_MAX, -1,
                      &o->postpone_bucket_count));
    TARN_TRY(take_i64(schema, "postpone.target-row-num-per-bucket", 1, INT64_MAX, -1,
                      &o->postpone_rows));
    TARN_TRY(
        take_size(schema, "postpone.target-size-per-bucket", INT64_C(1) << 30, &o->postpone_size));
    TARN_TRY(take_i64(schema, "dynamic-bucket.target-row-num", 1, INT64_MAX, 2000000,
                      &o->dynamic_bucket_rows));
    TARN_TRY(take_int(schema, "dynamic-bucket.max-buckets", -1, 32767, -1, &o->dynamic_bucket_max));
    if (o->dynamic_bucket_max == 0)
        return invalid("dynamic-bucket.max-buckets", value_of(schema, "dynamic-bucket.max-buckets"),
                       "a number above 0, or -1");
    return take_bool(schema, "bucket-append-ordered", &o->bucket_append_ordered);
}

static struct tarn_status *parse_merging(const struct tarn_schema *schema, struct tarn_arena *arena,
                                         struct tarn_options *o)
{
    static const char *const engines[] = {"deduplicate", "partial-update", "aggregation",
                                          "first-row"};
    static const char *const ignore_keys[] = {"ignore-delete", "first-row.ignore-delete",
                                              "deduplicate.ignore-delete",
                                              "partial-update.ignore-delete"};
    struct tarn_slice engine = value_of(schema, "merge-engine"), order, kind;
    size_t i = 0;
    while (i < TARN_COUNT_OF(engines) &&
           !tarn_format__is_word(tarn_format__trim(engine), engines[i]))
        i++;
    if (i == TARN_COUNT_OF(engines)) /* an engine of a later version: refused, not unreadable */
        tarn_format__refuse(
            o, true, tarn_arena_printf(arena, "merge-engine = %.*s", TARN_SLICE_ARG(engine)));
    o->merge_engine = i < TARN_COUNT_OF(engines) ? (enum tarn_merge_engine)i : 0;
    for (size_t k = 0; k < TARN_COUNT_OF(ignore_keys); k++) {
        bool on = false;
        TARN_TRY(take_bool(schema, ignore_keys[k], &on));
        o->ignore_delete = o->ignore_delete || on;
        if (k == 0 && tarn_schema_option(schema, ignore_keys[0]).data != NULL)
            break; /* the others are what it was called before */
    }
    TARN_TRY(take_bool(schema, "ignore-update-before", &o->ignore_update_before));
    TARN_TRY(take_columns(schema, "sequence.field", arena, &o->sequence_columns,
                          &o->sequence_column_count));
    order = value_of(schema, "sequence.field.sort-order");
    o->sequence_descending = tarn_format__is_word(tarn_format__trim(order), "descending");
    if (!o->sequence_descending && !tarn_format__is_word(tarn_format__trim(order), "ascending"))
        return invalid("sequence.field.sort-order", order, "ascending or descending");
    kind = tarn_schema_option(schema, "rowkind.field");
    o->rowkind_column = kind.data == NULL ? -1 : tarn_schema_find(schema, kind);
    if (!tarn_schema_is_append(schema))
        TARN_TRY(tarn_format__parse_engine(schema, arena, o));
    if (kind.data == NULL)
        return TARN_OK;
    enum tarn_type_id id =
        o->rowkind_column < 0 ? TARN_TYPE_ROW : schema->fields[o->rowkind_column].type->id;
    return id == TARN_TYPE_VARCHAR || id == TARN_TYPE_CHAR
               ? TARN_OK
               : invalid("rowkind.field", kind, "the name of a column of type STRING");
}

/* Which columns count where rows are compared: all but those that are named. Names of no column say nothing. */
static const bool *counted_columns(const struct tarn_schema *schema, struct tarn_slice ignored,
                                   struct tarn_arena *arena)
{
    bool *counts = tarn_arena_calloc(arena, schema->field_count + 1, sizeof *counts);
    memset(counts, true, schema->field_count);
    size_t start = 0;
    for (size_t i = 0; ignored.data != NULL && i <= ignored.size; i++) {
        if (i < ignored.size && ignored.data[i] != ',')
            continue;
        int column = tarn_schema_find(
            schema, tarn_format__trim(tarn_slice_of(ignored.data + start, i - start)));
        if (column >= 0)
            counts[column] = false;
        start = i + 1;
    }
    return counts;
}

static struct tarn_status *parse_changelog(const struct tarn_schema *schema,
                                           struct tarn_arena *arena, struct tarn_options *o)
{
    static const char *const producers[] = {"none", "input", "full-compaction", "lookup"};
    struct tarn_slice producer = tarn_format__trim(value_of(schema, "changelog-producer"));
    size_t i = 0;
    while (i < TARN_COUNT_OF(producers) && !tarn_format__is_word(producer, producers[i]))
        i++;
    if (i == TARN_COUNT_OF(producers)) /* one of a later version */
        tarn_format__refuse(
            o, false,
            tarn_arena_printf(arena, "changelog-producer = %.*s", TARN_SLICE_ARG(producer)));
    else
        o->changelog_producer = (enum tarn_changelog_producer)i;
    TARN_TRY(take_int(schema, "full-compaction.delta-commits", 1, INT32_MAX, -1,
                      &o->full_compaction_commits));
    o->row_deduplicate_of = counted_columns(
        schema, value_of(schema, "changelog-producer.row-deduplicate-ignore-fields"), arena);
    return take_bool(schema, "changelog-producer.row-deduplicate", &o->row_deduplicate);
}

/* A value that becomes part of a file's name must be able to. */
static struct tarn_status *take_name(const struct tarn_schema *schema, const char *key,
                                     struct tarn_slice *out)
{
    *out = value_of(schema, key);
    return out->size == 0 || tarn_format__is_file_name(*out)
               ? TARN_OK
               : invalid(key, *out, "text that can be part of a file's name");
}

/* A relative folder: no way up and out, no empty steps. */
static struct tarn_status *take_folder(const struct tarn_schema *schema, const char *key,
                                       struct tarn_slice *out)
{
    struct tarn_slice value = value_of(schema, key);
    size_t start = 0;
    while (value.size > 0 && value.data[value.size - 1] == '/')
        value.size--;
    for (size_t i = 0; value.data != NULL && i <= value.size; i++) {
        if (i < value.size && value.data[i] != '/')
            continue;
        if (!tarn_format__is_file_name(tarn_slice_of(value.data + start, i - start)))
            return invalid(key, value, "a folder inside the table's");
        start = i + 1;
    }
    *out = value;
    return TARN_OK;
}

static struct tarn_status *parse_files(const struct tarn_schema *schema, struct tarn_options *o)
{
    bool append = tarn_schema_is_append(schema);
    struct tarn_slice mode = value_of(schema, "metadata.stats-mode");
    o->file_format = tarn_format__trim(value_of(schema, "file.format"));
    o->file_compression = value_of(schema, "file.compression");
    o->avro_codec = value_of(schema, "avro.codec");
    if (!append) { /* a level is one of a merge tree */
        o->file_format_per_level = value_of(schema, "file.format.per.level");
        o->file_compression_per_level = value_of(schema, "file.compression.per.level");
    }
    TARN_TRY(take_int(schema, "file.compression.zstd-level", -7, 22, 1, &o->zstd_level));
    TARN_TRY(take_bool(schema, "data-file.thin-mode", &o->thin_mode));
    TARN_TRY(take_size(schema, "target-file-size", INT64_C(1) << (append ? 28 : 27),
                       &o->target_file_size));
    TARN_TRY(take_i64(schema, "target-file-row-num", 1, INT64_MAX, INT64_MAX,
                      &o->target_file_row_count));
    TARN_TRY(take_size(schema, "write-buffer-size", 0, &o->write_buffer_size));
    TARN_TRY(take_size(schema, "file.block-size", 0, &o->row_group_size));
    TARN_TRY(take_i64(schema, "orc.stripe.size", 0, INT64_MAX, 0, &o->orc_stripe_size));
    TARN_TRY(take_name(schema, "data-file.prefix", &o->data_file_prefix));
    TARN_TRY(take_name(schema, "partition.default-name", &o->partition_default_name));
    TARN_TRY(take_bool(schema, "partition.legacy-name", &o->partition_legacy_name));
    TARN_TRY(take_folder(schema, "data-file.path-directory", &o->data_dir));
    o->stats_length = 16;
    if (!parse_stats_mode(mode, &o->stats_mode, &o->stats_length))
        return invalid("metadata.stats-mode", mode, "none, counts, truncate(n) or full");
    return take_int(schema, "metadata.stats-keep-first-n-columns", -1, INT32_MAX, -1,
                    &o->stats_keep_first);
}

/* Changelog files are as data files are, unless options say otherwise; after parse_files. */
static struct tarn_status *parse_changelog_files(const struct tarn_schema *schema,
                                                 struct tarn_options *o)
{
    struct tarn_slice mode = value_of(schema, "changelog-file.stats-mode");
    o->changelog_file_format = tarn_format__trim(value_of(schema, "changelog-file.format"));
    o->changelog_file_compression = value_of(schema, "changelog-file.compression");
    o->changelog_stats_mode = o->stats_mode;
    o->changelog_stats_length = o->stats_length;
    if (mode.data != NULL &&
        !parse_stats_mode(mode, &o->changelog_stats_mode, &o->changelog_stats_length))
        return invalid("changelog-file.stats-mode", mode, "none, counts, truncate(n) or full");
    return take_name(schema, "changelog-file.prefix", &o->changelog_file_prefix);
}

static struct tarn_status *parse_commit(const struct tarn_schema *schema, struct tarn_options *o)
{
    struct tarn_slice group = value_of(schema, "tarn.group-commit");
    struct tarn_slice overlap = value_of(schema, "tarn.sequence-overlap");
    TARN_TRY(take_size(schema, "manifest.target-file-size", 0, &o->manifest_target_size));
    TARN_TRY(take_size(schema, "manifest.full-compaction-threshold-size", 0,
                       &o->manifest_full_threshold));
    TARN_TRY(take_int(schema, "manifest.merge-min-count", 1, INT32_MAX, 30,
                      &o->manifest_merge_min_count));
    /* Readers go by what the file says, so a word that we don't write is no reason to refuse the table.
     * snappy is one: Java 2.0.0 writes no such manifest and doesn't read one ("Unrecognized codec"). */
    o->manifest_compression = value_of(schema, "manifest.compression");
    static const char *const codecs[] = {"zstd", "zstandard", "deflate", "none", "null"};
    bool known = false;
    for (size_t i = 0; i < TARN_COUNT_OF(codecs); i++)
        known = known || tarn_slice_is(o->manifest_compression, codecs[i]);
    if (!known)
        o->manifest_compression = tarn_slice_str("zstd");
    TARN_TRY(take_bool(schema, "commit.discard-duplicate-files", &o->discard_duplicate_files));
    TARN_TRY(take_int(schema, "commit.max-retries", 0, INT32_MAX, 10, &o->commit_retries));
    TARN_TRY(take_bool(schema, "dynamic-partition-overwrite", &o->dynamic_partition_overwrite));
    if (tarn_format__is_word(group, "all"))
        o->group_commit = TARN_GROUP_ALL;
    else if (tarn_format__is_word(group, "none"))
        o->group_commit = TARN_GROUP_NONE;
    else if (!tarn_format__is_word(group, "batch"))
        return invalid("tarn.group-commit", group, "batch, all or none");
    TARN_TRY(take_bool(schema, "overwrite-upgrade", &o->overwrite_upgrade));
    TARN_TRY(take_i64(schema, "commit.strict-mode.last-safe-snapshot", 0, INT64_MAX, -1,
                      &o->last_safe_snapshot));
    o->sequence_overlap_refused = tarn_format__is_word(overlap, "refuse");
    return o->sequence_overlap_refused || tarn_format__is_word(overlap, "allow")
               ? TARN_OK
               : invalid("tarn.sequence-overlap", overlap, "allow or refuse");
}

/* What the committer adds to entries and snapshots. */
static struct tarn_status *parse_stamps(const struct tarn_schema *schema, struct tarn_options *o)
{
    struct tarn_slice mode = tarn_format__trim(value_of(schema, "write.sequence-number-init-mode"));
    TARN_TRY(take_bool(schema, "row-tracking.enabled", &o->row_tracking));
    TARN_TRY(
        take_bool(schema, "row-tracking.partition-group-on-commit", &o->row_tracking_by_partition));
    TARN_TRY(take_bool(schema, "deletion-vectors.enabled", &o->deletion_vectors));
    TARN_TRY(take_bool(schema, "deletion-vectors.merge-on-read", &o->vectors_merge_on_read));
    TARN_TRY(take_bool(schema, "deletion-vectors.bitmap64", &o->vectors_wide));
    TARN_TRY(
        take_size(schema, "deletion-vector.index-file.target-size", 0, &o->vectors_target_size));
    TARN_TRY(take_bool(schema, "index-file-in-data-file-dir", &o->index_beside_data));
    TARN_TRY(take_bool(schema, "pk-clustering-override", &o->pk_clustering));
    TARN_TRY(take_bool(schema, "sequence.snapshot-ordering", &o->snapshot_ordering));
    o->sequence_init_from_snapshot = tarn_format__is_word(mode, "snapshot");
    if (!o->sequence_init_from_snapshot && !tarn_format__is_word(mode, "scan")) {
        static const char unknown[] = "write.sequence-number-init-mode of a later version";
        tarn_format__refuse(o, false, unknown);
        tarn_format__refuse_commit(o, unknown);
    }
    return TARN_OK;
}

static struct tarn_status *parse_compaction(const struct tarn_schema *schema,
                                            struct tarn_options *o)
{
    bool write_only = false;
    TARN_TRY(take_int(schema, "num-sorted-run.compaction-trigger", 1, INT32_MAX - 3, 5,
                      &o->run_trigger));
    TARN_TRY(take_int(schema, "num-sorted-run.stop-trigger", 1, INT32_MAX, o->run_trigger + 3,
                      &o->run_stop_trigger));
    o->run_stop_trigger = TARN_MAX(o->run_stop_trigger, o->run_trigger);
    TARN_TRY(take_int(schema, "num-levels", 2, INT32_MAX, o->run_trigger + 1, &o->level_count));
    TARN_TRY(take_int(schema, "compaction.max-size-amplification-percent", 0, INT32_MAX, 200,
                      &o->size_amplification_percent));
    TARN_TRY(take_int(schema, "compaction.size-ratio", 0, INT32_MAX, 1, &o->size_ratio_percent));
    TARN_TRY(take_ratio(schema, "compaction.small-file-ratio", &o->small_file_ratio));
    TARN_TRY(take_bool(schema, "compaction.force-up-level-0", &o->force_up_level_0));
    o->force_up_level_0 = o->force_up_level_0 || o->skip_level_0;
    TARN_TRY(
        take_duration(schema, "compaction.optimization-interval", &o->optimization_interval_ms));
    TARN_TRY(take_size(schema, "compaction.total-size-threshold", -1, &o->total_size_threshold));
    TARN_TRY(take_size(schema, "compaction.incremental-size-threshold", -1,
                       &o->incremental_size_threshold));
    TARN_TRY(take_int(schema, "compaction.offpeak.start.hour", -1, 23, -1, &o->offpeak_start_hour));
    TARN_TRY(take_int(schema, "compaction.offpeak.end.hour", -1, 23, -1, &o->offpeak_end_hour));
    TARN_TRY(take_int(schema, "compaction.offpeak-ratio", 0, 100, 0, &o->offpeak_ratio));
    TARN_TRY(
        take_int(schema, "compaction.min.file-num", 2, INT32_MAX, 5, &o->append_min_file_count));
    TARN_TRY(take_ratio(schema, "compaction.delete-ratio-threshold", &o->delete_ratio));
    TARN_TRY(take_bool(schema, "write-only", &o->write_only));
    TARN_TRY(take_bool(schema, "write.compaction-skip", &write_only));
    o->write_only = o->write_only || write_only;
    TARN_TRY(take_size(schema, "source.split.target-size", 0, &o->split_target_size));
    TARN_TRY(take_bool(schema, "file-index.read.enabled", &o->file_index_read));
    TARN_TRY(take_size(schema, "file-index.in-manifest-threshold", 0, &o->file_index_threshold));
    return take_size(schema, "source.split.open-file-cost", 0, &o->split_open_cost);
}

/* changelog-producer = full-compaction, after parse_compaction: each commit is compacted in full unless options say when. */
static struct tarn_status *parse_full_compaction(const struct tarn_schema *schema,
                                                 struct tarn_options *o)
{
    int64_t interval_ms;
    TARN_TRY(take_duration(schema, "changelog-producer.compaction-interval", &interval_ms));
    if (o->changelog_producer != TARN_CHANGELOG_FULL_COMPACTION || o->full_compaction_commits > 0)
        return TARN_OK;
    if (interval_ms <= 0)
        o->full_compaction_commits = 1;
    else if (o->optimization_interval_ms < 0 || interval_ms < o->optimization_interval_ms)
        o->optimization_interval_ms = interval_ms;
    return TARN_OK;
}

static struct tarn_status *check_column_stats(const struct tarn_schema *schema)
{
    enum tarn_stats_mode mode;
    int32_t length = 0;
    for (size_t i = 0; i < schema->option_count; i++)
        if (tarn_format__is_column_stats(schema->options[i].key) &&
            !parse_stats_mode(schema->options[i].value, &mode, &length))
            return invalid("fields.*.stats-mode", schema->options[i].value,
                           "none, counts, truncate(n) or full");
    return TARN_OK;
}

struct tarn_status *tarn_options_parse(const struct tarn_schema *schema, struct tarn_arena *arena,
                                       struct tarn_options *out)
{
    struct tarn_options o = {0};
    TARN_TRY(parse_buckets(schema, arena, &o));
    TARN_TRY(parse_merging(schema, arena, &o));
    TARN_TRY(parse_changelog(schema, arena, &o));
    TARN_TRY(parse_files(schema, &o));
    TARN_TRY(parse_changelog_files(schema, &o));
    TARN_TRY(parse_commit(schema, &o));
    TARN_TRY(parse_stamps(schema, &o));
    TARN_TRY(parse_compaction(schema, &o));
    TARN_TRY(parse_full_compaction(schema, &o));
    TARN_TRY(check_column_stats(schema));
    tarn_format__parse_indexes(schema, arena, &o);
    tarn_format__judge(schema, arena, &o);
    *out = o;
    return TARN_OK;
}

struct tarn_status *tarn_format__check_options(const struct tarn_schema *schema,
                                               struct tarn_arena *arena)
{
    struct tarn_options o;
    TARN_TRY(tarn_options_parse(schema, arena, &o));
    return tarn_format__check_rules(schema, &o);
}

static bool is_thin_key(const struct tarn_options *o, const struct tarn_schema *schema, int column)
{
    return o->thin_mode &&
           is_key(schema->primary_keys, schema->primary_key_count, schema->fields[column].name);
}

void tarn_options_stats_mode(const struct tarn_options *options, const struct tarn_schema *schema,
                             int column, enum tarn_stats_mode *mode, int32_t *length)
{
    *mode = options->stats_mode;
    *length = options->stats_length;
    if (is_thin_key(options, schema, column)) {
        *mode = TARN_STATS_TRUNCATE;
        *length = 128;
        return;
    }
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_buf_printf(&key, "fields.%.*s.stats-mode", TARN_SLICE_ARG(schema->fields[column].name));
    struct tarn_slice value = tarn_schema_option(schema, tarn_buf_cstr(&key));
    if (value.data != NULL && parse_stats_mode(value, mode, length))
        return;
    if (options->stats_keep_first >= 0 && column >= options->stats_keep_first)
        *mode = TARN_STATS_NONE;
}

struct tarn_status *tarn_options_check_write(const struct tarn_options *options)
{
    if (options->refuse_write.data == NULL)
        return TARN_OK;
    return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                           "the table is not written by this version of Tarn: %.*s",
                           TARN_SLICE_ARG(options->refuse_write));
}

struct tarn_status *tarn_options_check_merge(const struct tarn_options *options)
{
    if (options->refuse_merge.data == NULL)
        return TARN_OK;
    return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                           "the rows of the table are not read by this version of Tarn: %.*s",
                           TARN_SLICE_ARG(options->refuse_merge));
}

struct tarn_status *tarn_options_check_commit(const struct tarn_options *options)
{
    if (options->refuse_commit.data == NULL)
        return TARN_OK;
    return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                           "this version of Tarn can't commit to the table: %.*s",
                           TARN_SLICE_ARG(options->refuse_commit));
}
