/*
 * options - the table options Tarn understands, parsed and judged.
 *
 * Shape    what exists is one table, options.def: O(key, kind, default, effect). An option that changes
 *          rows and isn't implemented makes the table "listed only": refuse_write stops loads and
 *          compaction, refuse_merge also reads; a compaction asks both. refuse_commit stops commits of files
 *          that other writers made: it is set only where the committer itself lacks something. Keys not known
 *          are passive.
 * Source   docs/format.md, "Options" and "Compatibility checklist".
 */
#ifndef TARN_FORMAT_OPTIONS_H
#define TARN_FORMAT_OPTIONS_H

#include "format/row.h"
#include "format/schema.h"

enum tarn_merge_engine {
    TARN_MERGE_DEDUPLICATE,
    TARN_MERGE_PARTIAL_UPDATE,
    TARN_MERGE_AGGREGATION,
    TARN_MERGE_FIRST_ROW
};
enum tarn_changelog_producer {
    TARN_CHANGELOG_NONE,
    TARN_CHANGELOG_INPUT,
    TARN_CHANGELOG_FULL_COMPACTION,
    TARN_CHANGELOG_LOOKUP
};
enum tarn_group_commit {
    TARN_GROUP_BATCH,
    TARN_GROUP_ALL,
    TARN_GROUP_NONE
}; /* tarn.group-commit */
enum tarn_stats_mode { TARN_STATS_NONE, TARN_STATS_COUNTS, TARN_STATS_TRUNCATE, TARN_STATS_FULL };

enum tarn_aggregate { /* what the versions of one column become; format.md 8.5 */
                      TARN_AGGREGATE_NONE, /* partial-update: the last value that is not null */
                      TARN_AGGREGATE_KEY,  /* a primary key column: all versions have the same */
                      TARN_AGGREGATE_LAST,
                      TARN_AGGREGATE_LAST_NON_NULL,
                      TARN_AGGREGATE_FIRST,
                      TARN_AGGREGATE_FIRST_NON_NULL,
                      TARN_AGGREGATE_SUM,
                      TARN_AGGREGATE_PRODUCT,
                      TARN_AGGREGATE_MIN,
                      TARN_AGGREGATE_MAX,
                      TARN_AGGREGATE_BOOL_AND,
                      TARN_AGGREGATE_BOOL_OR,
                      TARN_AGGREGATE_LISTAGG,
                      TARN_AGGREGATE_COLLECT,
                      TARN_AGGREGATE_MERGE_MAP,
                      TARN_AGGREGATE_MERGE_MAP_BY_TIME,
                      TARN_AGGREGATE_NESTED_UPDATE,
                      TARN_AGGREGATE_NESTED_PARTIAL_UPDATE,
                      TARN_AGGREGATE_BITMAP
};
enum tarn_nested_null { TARN_NESTED_NULL_MERGE, TARN_NESTED_NULL_IGNORE, TARN_NESTED_NULL_ERROR };

/* How one column is merged by partial-update and aggregation: options fields.COLUMN.*. */
struct tarn_column_rule {
    enum tarn_aggregate aggregate;
    int group;                   /* of the options' sequence groups; -1: none */
    bool orders;                 /* one of the columns that order its group */
    bool ignore_retract;         /* retracts leave the column as it is */
    bool distinct;               /* listagg, collect */
    struct tarn_slice delimiter; /* listagg */
    const int *nested_keys; /* nested_*: subfields that make a row's key; none: rows are appended */
    size_t nested_key_count;
    const int
        *nested_sequence; /* nested_update: a row is replaced by one that isn't below it in these */
    size_t nested_sequence_count;
    enum tarn_nested_null nested_null; /* rows with a null in their key */
    int32_t count_limit;               /* nested_update: of rows that are kept */
    int time_field;                    /* merge_map_with_keytime: of the values */
};
struct tarn_sequence_group {
    const int *columns; /* that order it */
    size_t column_count;
    bool removes_record; /* a -D that is not below it removes the row */
};

enum tarn_file_index_kind { /* in the order in which Java's maps have them */
                            TARN_FILE_INDEX_BLOOM,
                            TARN_FILE_INDEX_BITMAP,
                            TARN_FILE_INDEX_BSI,
                            TARN_FILE_INDEX_KINDS
};
struct tarn_file_index_spec { /* an index of each data file, on a column */
    int column;
    enum tarn_file_index_kind kind;
    int version; /* of a bitmap: 1 or 2 */
    int64_t block_size;
    int32_t items; /* that a bloom filter is made for, with fpp false positives */
    double fpp;
};

struct tarn_refusal { /* one thing that isn't implemented, and what it stands in the way of */
    struct tarn_slice reason; /* "merge-engine = aggregation" */
    bool write, merge, commit;
};
#define TARN_REFUSALS_MAX 16 /* more are not told */

#define TARN_BUCKET_POSTPONE (-2) /* of files that wait for a bucket; as option: all do at first */

struct tarn_options {
    int32_t bucket; /* > 0 fixed, -1, TARN_BUCKET_POSTPONE */
    enum tarn_bucket_function bucket_function;
    const int *bucket_key_columns; /* column indices in option order; trimmed key by default */
    size_t bucket_key_count;
    int64_t dynamic_bucket_rows; /* dynamic-bucket.target-row-num: keys that fill a bucket */
    bool keys_cross_partitions;  /* a partition column is no part of the primary key */
    int dynamic_bucket_max;      /* buckets of a partition; -1: any number */
    int postpone_bucket_count;   /* postpone.default-bucket-num; -1: not said */
    int64_t postpone_rows;       /* of a bucket, postpone.target-row-num-per-bucket; -1: not said */
    int64_t postpone_size;       /* postpone.target-size-per-bucket */
    bool bucket_append_ordered;  /* append tables: compact only neighbours, in order */
    enum tarn_merge_engine merge_engine;
    bool ignore_delete, ignore_update_before;
    bool remove_on_delete;                /* partial-update, aggregation: -D removes the row */
    const struct tarn_column_rule *rules; /* of each column; NULL for the other engines */
    const struct tarn_sequence_group *groups;
    size_t group_count;
    const int *sequence_columns; /* sequence.field */
    size_t sequence_column_count;
    bool sequence_descending;
    int rowkind_column; /* -1: none */
    enum tarn_changelog_producer changelog_producer;
    int full_compaction_commits; /* after so many a bucket is compacted in full for its changelog; -1: not by number */
    bool row_deduplicate;           /* an update that changes no value isn't told … */
    const bool *row_deduplicate_of; /* … by column: does it count? */
    /* as the options have them: ask tarn_options_file_format and _compression */
    struct tarn_slice file_format, file_format_per_level, file_compression,
        file_compression_per_level, avro_codec;
    int zstd_level;
    bool thin_mode; /* no _KEY_ columns in data files */
    int64_t target_file_size;
    int64_t target_file_row_count;
    int64_t write_buffer_size;
    int64_t row_group_size;  /* file.block-size; 0: the writer's own choice */
    int64_t orc_stripe_size; /* where file.block-size is not set; 0: the writer's own choice */
    struct tarn_slice data_file_prefix;
    /* format and compression absent: as data files */
    struct tarn_slice changelog_file_prefix, changelog_file_format, changelog_file_compression;
    struct tarn_slice partition_default_name;
    bool partition_legacy_name;
    struct tarn_slice data_dir;      /* data-file.path-directory; absent: none */
    enum tarn_stats_mode stats_mode; /* per column overrides: tarn_options_stats_mode */
    int32_t stats_length;            /* of TRUNCATE */
    enum tarn_stats_mode changelog_stats_mode;
    int32_t changelog_stats_length;
    int stats_keep_first; /* columns from here on have none; -1: all have */
    int64_t manifest_target_size, manifest_full_threshold;
    int manifest_merge_min_count;
    struct tarn_slice manifest_compression;
    int run_trigger, run_stop_trigger, level_count;
    int size_amplification_percent, size_ratio_percent;
    double small_file_ratio;
    bool force_up_level_0;
    int64_t optimization_interval_ms, total_size_threshold,
        incremental_size_threshold; /* -1: unset */
    int offpeak_start_hour, offpeak_end_hour, offpeak_ratio;
    int append_min_file_count;
    double delete_ratio; /* append tables: a file of whose rows more are deleted is rewritten */
    bool write_only;     /* engines leave compaction to us: the daemon still compacts */
    int64_t split_target_size, split_open_cost;
    bool file_index_read; /* plans may leave out files by their indexes */
    const struct tarn_file_index_spec *file_indexes; /* that new data files get */
    size_t file_index_count;
    int64_t file_index_threshold; /* larger ones lie in a file of their own */
    bool discard_duplicate_files;
    int commit_retries;
    bool dynamic_partition_overwrite;
    enum tarn_group_commit group_commit;
    bool sequence_overlap_refused; /* tarn.sequence-overlap = refuse */
    bool overwrite_upgrade;     /* new files of an overwrite go to the last level where they fit */
    int64_t last_safe_snapshot; /* commit.strict-mode.last-safe-snapshot; -1: unset */
    bool row_tracking, row_tracking_by_partition;
    bool
        deletion_vectors; /* readers of a primary-key table see what was compacted, and merge nothing … */
    bool vectors_merge_on_read;       /* … unless this is set */
    bool vectors_wide;                /* new ones have the form of 64 bits */
    int64_t vectors_target_size;      /* of index files of tables without buckets */
    bool index_beside_data;           /* index files lie in the buckets' folders */
    bool skip_level_0;                /* readers see what was compacted only: first-row */
    bool pk_clustering;               /* files of a level aren't apart by key */
    bool snapshot_ordering;           /* sequence numbers are the snapshot's id */
    bool sequence_init_from_snapshot; /* write.sequence-number-init-mode = snapshot */
    /* Absent: everything is implemented. Else e.g. "merge-engine = aggregation". */
    struct tarn_slice refuse_write, refuse_merge, refuse_commit; /* the first reason of each kind */
    struct tarn_refusal refusals[TARN_REFUSALS_MAX];             /* all of them */
    size_t refusal_count;
};

/* Can the function take a value back? */
bool tarn_aggregate_retracts(enum tarn_aggregate aggregate);
const char *tarn_aggregate_name(enum tarn_aggregate aggregate);

/* Errors: SCHEMA_INVALID names the option, its value and what was expected. */
TARN_MUST struct tarn_status *tarn_options_parse(const struct tarn_schema *schema,
                                                 struct tarn_arena *arena,
                                                 struct tarn_options *out);
/* The statistics mode of one column after per-column, keep-first-n and thin-mode rules (the mode per
 * level only makes bounds looser or tighter, and isn't looked at). */
void tarn_options_stats_mode(const struct tarn_options *options, const struct tarn_schema *schema,
                             int column, enum tarn_stats_mode *mode, int32_t *length);
/* Of new files of a level (append tables: 0): "parquet", "orc" or "avro", NULL for one that isn't written; what it
 * is compressed with; bytes of a row group or stripe, 0: the writer's own choice. */
const char *tarn_options_file_format(const struct tarn_options *options, int level);
struct tarn_slice tarn_options_file_compression(const struct tarn_options *options, int level);
/* Likewise of a changelog's. */
const char *tarn_options_changelog_format(const struct tarn_options *options, int level);
struct tarn_slice tarn_options_changelog_compression(const struct tarn_options *options, int level);
int64_t tarn_options_block_size(const struct tarn_options *options, int level);
/* UNSUPPORTED_FEATURE naming the option, or OK. */
TARN_MUST struct tarn_status *tarn_options_check_write(const struct tarn_options *options);
TARN_MUST struct tarn_status *tarn_options_check_merge(const struct tarn_options *options);
TARN_MUST struct tarn_status *tarn_options_check_commit(const struct tarn_options *options);

#endif
