/*
 * merge - rows in, rows out: reading splits, writing sorted files, compacting sorted runs.
 *
 * One ordering of versions serves write buffer, merge read and compaction: by key; then user sequence
 * fields (sequence.field, its sort order); then _SEQUENCE_NUMBER; then retract before add. Ties beyond that
 * are broken by the run's place: the newer run wins (docs/compatibility.md, "Ties").
 *
 * Keys     compared as normalized bytes (key.c): null first, integers by value, text and binary unsigned
 *          bytewise, floats in total order.
 * Memory   bounded: reads hold one batch per input run, writes spill sorted runs to scratch once the buffer is
 *          full, outputs one row group.
 * Threads  an object belongs to one thread at a time.
 * Errors   UNSUPPORTED_FEATURE names the option of a table that can't be merged here; DATA_FILE_MALFORMED the
 *          file; nothing half done is left: files of a failed writer or compaction are removed.
 */
#ifndef TARN_MERGE_H
#define TARN_MERGE_H

#include "columnar/columnar.h"

/* What a worker knows of a table. Immutable; everything lies in `arena`, owned by the caller. */
struct tarn_merge_table {
    struct tarn_store *store;         /* borrowed */
    const char *path;                 /* the table's folder, a key of the store */
    const struct tarn_schema *schema; /* rows are read and written by this one */
    const struct tarn_options *options;
    const struct tarn_schema *const *old_schemas; /* those the files were written by; by id */
    size_t old_schema_count;
};

/* Files of one (partition, bucket) that are read together. */
struct tarn_merge_split {
    struct tarn_slice partition;
    int32_t bucket;
    bool raw; /* rows can be taken as they lie: no merge needed */
    const struct tarn_manifest_entry *files;
    size_t file_count;
    bool differs; /* of changes: the difference between the files before and these */
    const struct tarn_manifest_entry *before_files;
    size_t before_count;
};

/* --- scan --- */
struct tarn_scan_spec {
    const int *columns; /* of the schema, in output order */
    size_t column_count;
    const struct tarn_predicate *where; /* NULL: all rows */
    int64_t limit;                      /* -1: none */
    const char *scratch_dir;
};
/* Batches with the spec's columns. Splits are read in order; they and the table are borrowed. */
TARN_MUST struct tarn_status *tarn_scan_open(struct tarn_op *op,
                                             const struct tarn_merge_table *table,
                                             const struct tarn_merge_split *splits,
                                             size_t split_count, const struct tarn_scan_spec *spec,
                                             struct tarn_source **out);

/* What changed, as rows with their kind: a STRING column +I, -U, +U, -D in front of the spec's columns. Files of changes
 * (deltas and changelogs) as they lie, in the order they are given in; splits that `differ`: the difference between
 * two states of a bucket, whose files are all there, by key; without a primary key all rows of one, then the other. */
TARN_MUST struct tarn_status *tarn_changes_open(
    struct tarn_op *op, const struct tarn_merge_table *table, const struct tarn_merge_split *splits,
    size_t split_count, const struct tarn_scan_spec *spec, struct tarn_source **out);

/* --- write --- */
/* Hands out `count` sequence numbers of a bucket, contiguous, above everything live or handed out before. */
typedef struct tarn_status *(*tarn_sequence_fn)(void *arg, struct tarn_op *op,
                                                struct tarn_slice partition, int32_t bucket,
                                                int64_t count, int64_t *first);
/* The bucket count that a partition has; *count 0: none yet, then it is the table's. */
typedef struct tarn_status *(*tarn_bucket_count_fn)(void *arg, struct tarn_op *op,
                                                    struct tarn_slice partition, int32_t *count);
struct tarn_write_spec {
    tarn_sequence_fn sequence; /* not asked for unaware-bucket append tables */
    void *sequence_arg;        /* of bucket_count, too */
    tarn_bucket_count_fn
        bucket_count; /* asked once a partition of a table with fixed buckets; NULL: all have the table's */
    int64_t buffer_size;     /* bytes of rows kept in memory, over all buckets */
    const char *scratch_dir; /* spills; removed again */
    bool
        no_changelog; /* of an overwrite: its snapshot has none, whatever changelog-producer says */
    /* Tables with dynamic buckets: the table's index files (of other types, too), borrowed as long as the writer lives.
     * None of what an overwrite takes away. */
    const struct tarn_index_file *indexes;
    size_t index_count;
    /* Tables whose keys cross partitions: all of the table, borrowed likewise. */
    const struct tarn_merge_split *known;
    size_t known_count;
};
struct tarn_table_writer;
TARN_MUST struct tarn_status *tarn_table_writer_open(struct tarn_op *op,
                                                     const struct tarn_merge_table *table,
                                                     const struct tarn_write_spec *spec,
                                                     struct tarn_table_writer **out);
/* A batch as tarn_input_next gives it: all columns of the schema, then the INT8 row kinds. NOT NULL is checked
 * (VALUE_INVALID names column and row). */
TARN_MUST struct tarn_status *tarn_table_writer_add(struct tarn_table_writer *writer,
                                                    struct tarn_op *op, struct tarn_batch *batch);
/* Writes what is left; entries (kind ADD) lie in the arena. After an error nothing is left in the table. */
TARN_MUST struct tarn_status *tarn_table_writer_finish(struct tarn_table_writer *writer,
                                                       struct tarn_op *op, struct tarn_arena *arena,
                                                       struct tarn_manifest_entry **entries,
                                                       size_t *count);
/* Once it has finished: the files of its changelog (changelog-producer = input; kind ADD), in the arena, in the order in which they
 * are to be read. */
void tarn_table_writer_changelog(struct tarn_table_writer *writer, struct tarn_arena *arena,
                                 struct tarn_manifest_entry **entries, size_t *count);
/* The index files that a finished writer has written (kind ADD): to be committed with its entries. Borrowed. */
void tarn_table_writer_indexes(const struct tarn_table_writer *writer,
                               const struct tarn_index_file **files, size_t *count);
/* The rows of files of this table with a primary key that were finished but can't be committed, as they were given before. Files of
 * one bucket in the order in which they were written. */
TARN_MUST struct tarn_status *tarn_table_writer_add_files(struct tarn_table_writer *writer,
                                                          struct tarn_op *op,
                                                          const struct tarn_merge_table *table,
                                                          const struct tarn_manifest_entry *files,
                                                          size_t count);
/* Frees; removes the files of a writer that was not finished. */
void tarn_table_writer_free(struct tarn_table_writer *writer);
/* Removes files that were finished but can't be committed any more. */
void tarn_merge_remove_files(struct tarn_op *op, const struct tarn_merge_table *table,
                             const struct tarn_manifest_entry *entries, size_t count);
/* The same of index files; DELETEs are passed over. */
void tarn_merge_remove_index_files(struct tarn_op *op, const struct tarn_merge_table *table,
                                   const struct tarn_index_file *files, size_t count);

/* --- deletes in append tables --- */
struct tarn_mark_spec {
    const struct tarn_predicate *where;
    const struct tarn_index_file *indexes; /* all with deletion vectors of the splits' files */
    size_t index_count;
};
struct tarn_mark_result {
    struct tarn_index_file
        *indexes; /* DELETEs, then ADDs, bucket by bucket, for the commit; in the arena */
    size_t index_count;
    int64_t row_count, file_count; /* rows that weren't deleted before, and their files */
};
/* Marks the rows of the splits' files of which the predicate is true. Splits of a bucket come one after the other. On failure no index
 * file is left. */
TARN_MUST struct tarn_status *tarn_mark_rows(struct tarn_op *op,
                                             const struct tarn_merge_table *table,
                                             const struct tarn_merge_split *splits,
                                             size_t split_count, const struct tarn_mark_spec *spec,
                                             struct tarn_arena *arena,
                                             struct tarn_mark_result *out);

/* --- compaction --- */
struct tarn_compact_spec {
    const struct tarn_manifest_entry *files; /* of one bucket, as picked */
    size_t file_count;
    int output_level; /* 0: an append table's rewrite */
    bool drop_delete;
    const struct tarn_manifest_entry
        *upper; /* with deletion vectors: the bucket's other files, all above level 0 */
    size_t upper_count;
    const struct tarn_index_file *indexes; /* those with deletion vectors of the bucket's files */
    size_t index_count;
    const char *scratch_dir;
    int top_level; /* the bucket's last */
    const struct tarn_manifest_entry
        *above; /* changelog-producer = lookup: its files above the output level */
    size_t above_count;
    const char *
        file_uuid; /* names of outputs begin, behind their prefix, with its first TARN_FILE_UUID_SHARED characters; NULL: anyhow */
};
struct tarn_compact_result {
    struct tarn_manifest_entry *entries; /* DELETEs of inputs, then ADDs of outputs and upgrades */
    size_t entry_count;
    struct tarn_manifest_entry
        *changelog; /* ADDs: what it changed, where changelog-producer asks compactions for that */
    size_t changelog_count;
    struct tarn_index_file *indexes; /* DELETEs and ADDs that the commit needs beside */
    size_t index_count;
    int64_t rows_in, rows_out, bytes_in, bytes_out;
    int64_t rows_copied, bytes_copied; /* of those in: passed on without being decoded */
    int upgraded_count;
};
/* Sections, upgrades without rewrite and rolling output as format.md 9.3; append tables as 9.5. On failure no
 * output is left. */
TARN_MUST struct tarn_status *tarn_compact_run(struct tarn_op *op,
                                               const struct tarn_merge_table *table,
                                               const struct tarn_compact_spec *spec,
                                               struct tarn_arena *arena,
                                               struct tarn_compact_result *out);

/* --- another bucket count --- */
struct tarn_rescale_spec {                   /* borrowed */
    const struct tarn_manifest_entry *files; /* all that a partition has in buckets */
    size_t file_count;
    const struct tarn_write_spec *write; /* bucket_count NULL; no_changelog unless `postponed` */
    bool
        postponed; /* the files wait for buckets: their rows are passed on as they were given, oldest file first */
};
/* The partition's rows in as many buckets as the table's option says: what readers know of merged, in the last level; what they don't know of
 * yet, because compaction brings it to them, as it was given, in level 0. Entries as of a compaction. UNSUPPORTED_FEATURE where that
 * can't be kept apart. On failure no output is left. */
TARN_MUST struct tarn_status *tarn_rescale_run(struct tarn_op *op,
                                               const struct tarn_merge_table *table,
                                               const struct tarn_rescale_spec *spec,
                                               struct tarn_arena *arena,
                                               struct tarn_compact_result *out);

#endif
