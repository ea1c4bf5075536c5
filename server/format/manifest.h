/*
 * manifest - manifest lists, manifests and index manifests: Avro object containers.
 *
 * Shape    readers resolve by field name with the writer's schema in the file, skip what they don't
 *          know and remember that they did (unknown: such an entry is never rewritten by us). Codecs
 *          null, deflate, snappy, zstandard. Any _VERSION other than 2 (index: 1) is refused.
 * Memory   decoded entries point into the arena given.
 * Errors   MANIFEST_MALFORMED / AVRO_MALFORMED name the field and the block's offset.
 * Source   docs/format.md, "Manifests"; bytes: test/golden/manifest/.
 */
#ifndef TARN_FORMAT_MANIFEST_H
#define TARN_FORMAT_MANIFEST_H

#include "format/stats.h"

enum tarn_entry_kind { TARN_ENTRY_ADD = 0, TARN_ENTRY_DELETE = 1 };
enum tarn_file_source { TARN_SOURCE_UNKNOWN = -1, TARN_SOURCE_APPEND = 0, TARN_SOURCE_COMPACT = 1 };
#define TARN_FILE_NONE INT64_MIN /* of optional numbers below */

struct tarn_vector_ref { /* where a data file's deletion vector is: plans say it, manifests don't */
    struct tarn_slice
        path; /* of the index file, in the table's folder, or a URI; absent: the file has none */
    int64_t offset, length;
    int64_t cardinality; /* rows it marks; or NONE: unknown */
};

#define TARN_FILE_UUID_SHARED                                                                      \
    18 /* characters of a UUID that the files of one compaction have in their names */
struct tarn_data_file {
    struct tarn_slice name;
    int64_t size;
    int64_t row_count;
    struct tarn_slice min_key, max_key; /* serialized rows; append tables: the empty row */
    struct tarn_stats key_stats, value_stats;
    int64_t min_sequence, max_sequence;
    int64_t schema_id;
    int32_t level;
    const struct tarn_slice *extra_files;
    size_t extra_file_count;
    int64_t creation_time_ms;         /* local wall clock as if UTC; or NONE */
    int64_t delete_row_count;         /* or NONE: unknown */
    struct tarn_slice embedded_index; /* absent: none */
    enum tarn_file_source source;
    bool has_value_stats_columns; /* false: all value columns */
    const struct tarn_slice *value_stats_columns;
    size_t value_stats_column_count;
    struct tarn_slice external_path; /* absent: none */
    int64_t first_row_id;            /* or NONE */
    bool has_write_columns;
    const struct tarn_slice *write_columns;
    size_t write_column_count;
    bool has_write_column_sequences;
    const int64_t *write_column_sequences;
    size_t write_column_sequence_count;
    bool unknown; /* the file's record held fields not known here */
    struct tarn_vector_ref vector;
};

struct tarn_manifest_entry {
    enum tarn_entry_kind kind;
    struct tarn_slice partition; /* serialized row */
    int32_t bucket;
    int32_t total_buckets;
    struct tarn_data_file file;
};

struct tarn_manifest_file { /* one record of a manifest list */
    struct tarn_slice name;
    int64_t size;
    int64_t added_count, deleted_count;
    struct tarn_stats partition_stats;
    int64_t schema_id;
    int64_t min_bucket, max_bucket, min_level, max_level; /* or NONE */
    int64_t min_row_id, max_row_id;                       /* or NONE */
    bool unknown;
};

struct tarn_vector_range { /* where one data file's deletion vector lies in an index file */
    struct tarn_slice data_file;
    int32_t offset, length;
    int64_t cardinality; /* rows it marks; or NONE: unknown */
};

struct tarn_global_index {      /* what an index of no bucket covers */
    int64_t row_start, row_end; /* row ids, both inclusive */
    int32_t field_id;
    bool has_extra_fields;
    const int32_t *extra_fields; /* ids of further columns */
    size_t extra_field_count;
    struct tarn_slice meta, source_meta; /* absent: none */
};

#define TARN_INDEX_HASH "HASH"
#define TARN_INDEX_DELETION_VECTORS "DELETION_VECTORS" /* other types are global indexes */

struct tarn_index_file {       /* one record of an index manifest, or of a commit's changes to it */
    enum tarn_entry_kind kind; /* in a stored index manifest always ADD */
    struct tarn_slice partition;
    int32_t bucket;
    struct tarn_slice type, name;
    int64_t size, row_count;
    bool has_vectors; /* _DELETIONS_VECTORS_RANGES is set */
    const struct tarn_vector_range *vectors;
    size_t vector_count;
    struct tarn_slice external_path; /* absent: none */
    bool has_global;
    struct tarn_global_index global;
    bool unknown; /* the record held fields not known here: it can't be written again */
};

TARN_MUST struct tarn_status *tarn_manifest_list_decode(struct tarn_slice bytes,
                                                        struct tarn_arena *arena,
                                                        struct tarn_manifest_file **out,
                                                        size_t *count);
TARN_MUST struct tarn_status *tarn_manifest_decode(struct tarn_slice bytes,
                                                   struct tarn_arena *arena,
                                                   struct tarn_manifest_entry **out, size_t *count);
TARN_MUST struct tarn_status *tarn_index_manifest_decode(struct tarn_slice bytes,
                                                         struct tarn_arena *arena,
                                                         struct tarn_index_file **out,
                                                         size_t *count);

/* codec: "zstd" (the option's word) or "none"; appends a whole container. sync: 16 random bytes. */
TARN_MUST struct tarn_status *tarn_manifest_list_encode(const struct tarn_manifest_file *files,
                                                        size_t count, struct tarn_slice codec,
                                                        int zstd_level, const uint8_t sync[16],
                                                        struct tarn_buf *out);
TARN_MUST struct tarn_status *tarn_manifest_encode(const struct tarn_manifest_entry *entries,
                                                   size_t count, struct tarn_slice codec,
                                                   int zstd_level, const uint8_t sync[16],
                                                   struct tarn_buf *out);
/* The same block by block, for manifests with more entries than should lie in memory at once. The reader
 * lies in the arena given to open, borrows `bytes`, and needs no close. */
struct tarn_manifest_reader;
TARN_MUST struct tarn_status *tarn_manifest_open(struct tarn_slice bytes, struct tarn_arena *arena,
                                                 struct tarn_manifest_reader **out);
/* The entries of the next block, in this arena; *count 0: there are no more. */
TARN_MUST struct tarn_status *tarn_manifest_next(struct tarn_manifest_reader *reader,
                                                 struct tarn_arena *arena,
                                                 struct tarn_manifest_entry **out, size_t *count);
struct tarn_manifest_writer;
/* Codec and sync as above; `out` is borrowed until free, and what it has by now is its size. */
TARN_MUST struct tarn_status *tarn_manifest_writer_new(struct tarn_slice codec, int zstd_level,
                                                       const uint8_t sync[16], struct tarn_buf *out,
                                                       struct tarn_manifest_writer **writer);
TARN_MUST struct tarn_status *tarn_manifest_writer_add(struct tarn_manifest_writer *writer,
                                                       const struct tarn_manifest_entry *entries,
                                                       size_t count);
TARN_MUST struct tarn_status *tarn_manifest_writer_end(struct tarn_manifest_writer *writer);
void tarn_manifest_writer_free(struct tarn_manifest_writer *writer);
/* Codec and sync as above. A file that is unknown is UNSUPPORTED_FEATURE and names it. */
TARN_MUST struct tarn_status *tarn_index_manifest_encode(const struct tarn_index_file *files,
                                                         size_t count, struct tarn_slice codec,
                                                         int zstd_level, const uint8_t sync[16],
                                                         struct tarn_buf *out);
/* What an index manifest holds after a commit: previous (all ADD) and the commit's changes. bucketed:
 * the table has buckets, so that HASH and DELETION_VECTORS files replace the bucket's last one; without,
 * DELETION_VECTORS files go by name, and one data file has one vector. Global indexes go by name, and
 * files of one field don't overlap. COMMIT_CONFLICT names the files. The result borrows from both
 * arrays' memory and lies in the arena; previous ones that stay come first, each in its old order. */
TARN_MUST struct tarn_status *tarn_index_combine(const struct tarn_index_file *previous,
                                                 size_t previous_count,
                                                 const struct tarn_index_file *changes,
                                                 size_t change_count, bool bucketed,
                                                 struct tarn_arena *arena,
                                                 struct tarn_index_file **out, size_t *out_count);
/* The list record of a manifest with these entries: counts, partition statistics, bounds. */
TARN_MUST struct tarn_status *tarn_manifest_summarize(
    const struct tarn_manifest_entry *entries, size_t count,
    const struct tarn_type *const *partition_types, size_t partition_count,
    int64_t latest_schema_id, struct tarn_arena *arena, struct tarn_manifest_file *out);
/* Makes *into the summary of two manifests' entries together; name and size stay. */
TARN_MUST struct tarn_status *tarn_manifest_summary_join(
    const struct tarn_type *const *partition_types, size_t partition_count,
    const struct tarn_manifest_file *other, struct tarn_arena *arena,
    struct tarn_manifest_file *into);
/* The identity of a file within a table: partition, bucket, level, name, extra files, embedded index,
 * external path, as bytes that are equal exactly when the identities are. Appends. */
void tarn_manifest_identity(const struct tarn_manifest_entry *entry, struct tarn_buf *out);
/* One entry as bytes of our own and back: for the state and for the wire between our processes.
 * with_stats false leaves key_stats and value_stats empty. Versioned; unknown versions are refused. */
void tarn_manifest_entry_pack(const struct tarn_manifest_entry *entry, bool with_stats,
                              struct tarn_buf *out);
/* Appends a file's deletion vector as fields of message DataFile; an entry that has one is packed with it. */
void tarn_manifest_vector_fields(const struct tarn_vector_ref *vector, struct tarn_buf *out);
/* Statistics alone: behind an entry that was packed without, they make it one with them. Appends. */
void tarn_manifest_stats_pack(const struct tarn_data_file *file, struct tarn_buf *out);
TARN_MUST struct tarn_status *tarn_manifest_entry_unpack(struct tarn_slice bytes,
                                                         struct tarn_arena *arena,
                                                         struct tarn_manifest_entry *out);
/* As unpack, of bytes that this process packed or unpacked before: borrows them, and takes their names on trust.
 * arena: for lists; NULL: lists stay empty. */
TARN_MUST struct tarn_status *tarn_manifest_entry_view(struct tarn_slice bytes,
                                                       struct tarn_arena *arena,
                                                       struct tarn_manifest_entry *out);
/* The file gets the statistics that are packed alone. */
TARN_MUST struct tarn_status *tarn_manifest_stats_view(struct tarn_slice bytes,
                                                       struct tarn_arena *arena,
                                                       struct tarn_data_file *file);
/* What a packed entry, or packed statistics, hold as fields of message DataFile (proto/tarn/v1/table.proto): both together are
 * the message. stats: empty where the entry has none. */
TARN_MUST struct tarn_status *tarn_manifest_entry_fields(struct tarn_slice bytes,
                                                         struct tarn_slice *fields,
                                                         struct tarn_slice *stats);
TARN_MUST struct tarn_status *tarn_manifest_stats_fields(struct tarn_slice bytes,
                                                         struct tarn_slice *stats);

#endif
