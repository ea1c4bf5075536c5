/*
 * internal - what the files of this room share.
 *
 * layout   what is derived of a table once: columns, keys, types.
 * array    Arrow arrays of our own: owned buffers, shared views, batches made of columns.
 * gather   rows picked from several arrays into a new one.
 * key      normalized keys: compared as integers first, as bytes where that doesn't decide.
 * filter   a predicate over a batch.
 * section  files into sections of overlapping sorted runs.
 * pieces   a section into what is merged and row groups that one file alone has.
 * deletions deletion vectors: read, applied to batches.
 * vector_files  index files of them, made anew.
 * lookup   rows of higher levels that level 0 takes the place of.
 * run      the files of one sorted run, as batches.
 * tree     many sorted runs into one, one record a key.
 * engine   what the versions of a key become, where they don't just follow each other (engine.h).
 * same     are two values equal?
 * changelog  what a compaction changes, told record by record.
 * roll     batches into data files of about the target size.
 * assign   partition and bucket of rows.
 * dynamic  buckets that a partition's index says.
 * cross    the partition and bucket of keys, over all partitions.
 * again    rows of files that couldn't be committed.
 * buffer   rows of a bucket, sorted.
 * spill    sorted runs on local disk.
 */
#ifndef TARN_MERGE_INTERNAL_H
#define TARN_MERGE_INTERNAL_H

#include "merge/merge.h"

#define TARN_MERGE_BATCH_ROWS 8192
/* A batch of wide rows is cut earlier, so that a few batches a run fit into any worker's memory. */
#define TARN_MERGE_BATCH_BYTES ((int64_t)16 << 20)

#define TARN_MERGE_KIND_DELETE 3
/* _VALUE_KIND */
static inline bool tarn_merge__is_retract(int8_t kind)
{
    return (kind & 1) != 0; /* 1 -U, 3 -D */
}

/* --- array.c --- */
/* A new array that owns what is put into it: release frees buffers set by array_buffer and
 * releases the children. Children start released (zeroed) and are filled by the caller. */
void tarn_merge__array_init(struct ArrowArray *out, int64_t length, int buffer_count,
                            int child_count);
/* Memory for buffer `index`, owned by the array; zeroed where asked. At least one byte. */
void *tarn_merge__array_buffer(struct ArrowArray *array, int index, size_t size, bool zeroed);
void tarn_merge__array_drop(struct ArrowArray *array);
/* A view of rows [begin, begin + count) of `from`, which lies in `holder` (a ref is taken). */
void tarn_merge__array_share(const struct ArrowArray *from, struct tarn_batch *holder,
                             int64_t begin, int64_t count, struct ArrowArray *out);
/* A batch of these columns, which are moved into it. */
struct tarn_batch *tarn_merge__batch_of(struct ArrowArray *columns, int column_count,
                                        int64_t row_count);
/* A view of some rows of some columns (indices; NULL: all). */
struct tarn_batch *tarn_merge__batch_view(struct tarn_batch *batch, const int *columns,
                                          int column_count, int64_t begin, int64_t count);
/* UNSUPPORTED_FEATURE for types that have no canonical layout here. */
TARN_MUST struct tarn_status *tarn_merge__check_type(const struct tarn_type *type,
                                                     struct tarn_slice name);
/* Bytes of a value of a fixed-width type; 0 for others (BOOLEAN: bits). */
int tarn_merge__type_width(const struct tarn_type *type);
/* Does the array hold a null? Counts where null_count isn't known. */
bool tarn_merge__has_nulls(const struct ArrowArray *array);

/* --- same.c --- */
/* Layouts are canonical, so equal values have equal bytes (a NaN is what its bits are); maps whatever their order. */
bool tarn_merge__same_value(const struct ArrowArray *a, int64_t i, const struct ArrowArray *b,
                            int64_t j, const struct tarn_type *type);

/* An array of one value. (run.c) */
void tarn_merge__array_of_value(const struct tarn_type *type, const struct tarn_value *value,
                                struct ArrowArray *out);

/* --- gather.c --- */
struct tarn_merge_pick { /* rows [row, row + count) of source */
    uint32_t source, row, count;
};
struct tarn_merge_picks {
    struct tarn_merge_pick *items;
    size_t count, capacity;
    int64_t row_count;
};
void tarn_merge__picks_drop(struct tarn_merge_picks *picks);
static inline void tarn_merge__picks_clear(struct tarn_merge_picks *picks)
{
    picks->count = 0;
    picks->row_count = 0;
}
static inline void tarn_merge__picks_add(struct tarn_merge_picks *picks, uint32_t source,
                                         uint32_t row, uint32_t count)
{
    picks->row_count += count;
    if (picks->count > 0) {
        struct tarn_merge_pick *last = &picks->items[picks->count - 1];
        if (last->source == source && last->row + last->count == row) {
            last->count += count;
            return;
        }
    }
    TARN_GROW(picks->items, picks->count, picks->capacity);
    picks->items[picks->count++] = (struct tarn_merge_pick){source, row, count};
}
/* One column: rows of `sources` (all of `type`) into *out. TOO_LARGE beyond what 32-bit offsets hold. */
TARN_MUST struct tarn_status *tarn_merge__gather(const struct tarn_type *type,
                                                 const struct ArrowArray *const *sources,
                                                 size_t source_count,
                                                 const struct tarn_merge_picks *picks,
                                                 struct ArrowArray *out);
/* Some columns of batches. One pick of a whole batch, or of a range, shares instead of copying. */
TARN_MUST struct tarn_status *tarn_merge__gather_batch(struct tarn_batch *const *sources,
                                                       size_t source_count, const int *columns,
                                                       const struct tarn_type *const *types,
                                                       int column_count,
                                                       const struct tarn_merge_picks *picks,
                                                       struct tarn_batch **out);

/* --- key.c --- */
struct tarn_merge_key_column {
    int column; /* of the batches */
    const struct tarn_type *type;
    bool descending; /* by value; null stays first */
};
struct tarn_merge_key_spec {
    const struct tarn_merge_key_column *columns;
    size_t column_count;
    bool exact;          /* 8 bytes hold a whole key: there are no bytes behind the prefix */
    bool borrowed;       /* one NOT NULL text or binary: the batch's own bytes are the key */
    uint32_t fixed_size; /* of every key; 0: it varies */
};
void tarn_merge__key_spec_init(struct tarn_merge_key_spec *spec,
                               const struct tarn_merge_key_column *columns, size_t count);
/* The keys of a batch, which must outlive them. */
struct tarn_merge_keys {
    uint64_t *prefix;        /* the first bytes as a number: orders unless equal */
    const uint8_t *bytes;    /* NULL: prefixes decide */
    const uint32_t *offsets; /* row_count + 1 into bytes */
    void *owned_bytes, *owned_offsets;
};
/* DATA_FILE_MALFORMED for a null where the type says NOT NULL. */
TARN_MUST struct tarn_status *tarn_merge__keys_build(const struct tarn_merge_key_spec *spec,
                                                     const struct tarn_batch *batch,
                                                     struct tarn_merge_keys *out);
void tarn_merge__keys_drop(struct tarn_merge_keys *keys);
/* What the prefixes, which are equal, leave open. */
static inline int tarn_merge__keys_compare_rest(const struct tarn_merge_keys *a, uint32_t i,
                                                const struct tarn_merge_keys *b, uint32_t j)
{
    if (a->bytes == NULL)
        return 0;
    return tarn_slice_compare(
        tarn_slice_of(a->bytes + a->offsets[i], a->offsets[i + 1] - a->offsets[i]),
        tarn_slice_of(b->bytes + b->offsets[j], b->offsets[j + 1] - b->offsets[j]));
}
static inline int tarn_merge__keys_compare(const struct tarn_merge_keys *a, uint32_t i,
                                           const struct tarn_merge_keys *b, uint32_t j)
{
    if (a->prefix[i] != b->prefix[j])
        return a->prefix[i] < b->prefix[j] ? -1 : 1;
    return tarn_merge__keys_compare_rest(a, i, b, j);
}

/* --- order.c --- */
struct tarn_merge_order {     /* zeroes to begin with */
    bool broken;              /* some key did not rise above the one before: for good */
    struct tarn_batch *batch; /* the last one */
    struct tarn_merge_keys keys;
};
/* Takes the next batch into account. */
TARN_MUST struct tarn_status *tarn_merge__order_follow(struct tarn_merge_order *order,
                                                       const struct tarn_merge_key_spec *spec,
                                                       struct tarn_batch *batch);
void tarn_merge__order_drop(struct tarn_merge_order *order);

/* --- filter.c --- */
struct tarn_merge_filter;
/* `columns[i]` is the place of schema column i in the batches (-1: not there, and not looked at). */
struct tarn_merge_filter *tarn_merge__filter_new(const struct tarn_predicate *predicate,
                                                 const struct tarn_schema *schema,
                                                 const int *columns);
void tarn_merge__filter_free(struct tarn_merge_filter *filter);
/* Adds picks (source 0) of the rows that pass; at most `limit` of them. */
void tarn_merge__filter_select(struct tarn_merge_filter *filter, const struct tarn_batch *batch,
                               int64_t limit, struct tarn_merge_picks *out);

/* --- section.c --- */
struct tarn_merge_rows { /* of a file; end 0: all */
    int64_t begin, end;
};
struct tarn_merge_run { /* files in key order, none overlapping another */
    const struct tarn_manifest_entry **files;
    const struct tarn_merge_rows *rows; /* of each file; NULL: all */
    size_t file_count;
};
struct tarn_merge_section { /* overlaps no other section */
    struct tarn_merge_run *runs;
    size_t run_count;
};
/* Sections in key order, in the arena. ROW_MALFORMED for bounds that aren't keys of the table. */
TARN_MUST struct tarn_status *tarn_merge__sections(const struct tarn_type *const *key_types,
                                                   size_t key_count,
                                                   const struct tarn_manifest_entry *files,
                                                   size_t file_count, struct tarn_arena *arena,
                                                   struct tarn_merge_section **out, size_t *count);
/* Of `files` those whose keys overlap the section's; in the arena. */
TARN_MUST struct tarn_status *tarn_merge__overlapping(const struct tarn_type *const *key_types,
                                                      size_t key_count,
                                                      const struct tarn_merge_section *section,
                                                      const struct tarn_manifest_entry *files,
                                                      size_t file_count, struct tarn_arena *arena,
                                                      const struct tarn_manifest_entry ***out,
                                                      size_t *count);
/* -1 where `a` is older than `b`: what decides between records that are equal in all else. Levels
 * first (the lower is newer), then the larger sequence number, the later creation, the larger name. */
int tarn_merge__file_age_compare(const struct tarn_manifest_entry *a,
                                 const struct tarn_manifest_entry *b);

/* --- deletions.c --- */
/* What lies in an index file at a vector's place, for tarn_deletions_decode and tarn_deletions_find. */
TARN_MUST struct tarn_status *tarn_merge__vector_read(struct tarn_op *op,
                                                      const struct tarn_merge_table *table,
                                                      const struct tarn_vector_ref *ref,
                                                      struct tarn_buf *out);
/* Which rows of the file are deleted; *out stays as it is where it has no deletion vector. */
TARN_MUST struct tarn_status *tarn_merge__deletions_read(struct tarn_op *op,
                                                         const struct tarn_merge_table *table,
                                                         const struct tarn_data_file *file,
                                                         struct tarn_deletions *out);
/* Leaves the deleted rows out of a batch that begins at row `first` of its file. *batch is NULL where nothing stays. */
TARN_MUST struct tarn_status *tarn_merge__deletions_apply(const struct tarn_deletions *deletions,
                                                          int64_t first,
                                                          const struct tarn_type *const *types,
                                                          int column_count,
                                                          struct tarn_batch **batch);

/* The store's key of what a plan says of an index file's place, in the arena. */
TARN_MUST struct tarn_status *tarn_merge__index_key(const struct tarn_merge_table *table,
                                                    struct tarn_slice path,
                                                    struct tarn_arena *arena, const char **out);
/* The same of an index file. */
TARN_MUST struct tarn_status *tarn_merge__index_file_key(const struct tarn_merge_table *table,
                                                         const struct tarn_index_file *file,
                                                         struct tarn_arena *arena,
                                                         const char **out);

/* --- vector_files.c --- */
struct tarn_vector_mark { /* a data file's vector from now on */
    struct tarn_slice data_file;
    struct tarn_deletions deletions;
};
struct tarn_vector_changes { /* of one bucket; borrowed */
    struct tarn_slice partition;
    int32_t bucket;
    const struct tarn_index_file
        *indexes; /* all of the bucket with vectors of data files named below */
    size_t index_count;
    const struct tarn_slice *gone; /* data files that are no more */
    size_t gone_count;
    const struct tarn_vector_mark *marks;
    size_t mark_count;
};
/* Writes the index files anew that have vectors of these data files; *out: DELETEs of those, ADDs of new ones, in the arena. On
 * failure none is left. */
TARN_MUST struct tarn_status *tarn_merge__vectors_rewrite(struct tarn_op *op,
                                                          const struct tarn_merge_table *table,
                                                          const struct tarn_vector_changes *changes,
                                                          struct tarn_arena *arena,
                                                          struct tarn_index_file **out,
                                                          size_t *count);

/* --- inputs of a merge: runs as batches --- */
struct tarn_merge_input {
    /* As tarn_source's next. *place: how new the records are; the larger wins what is otherwise equal. */
    struct tarn_status *(*next)(struct tarn_merge_input *self, struct tarn_op *op,
                                struct tarn_batch **out, uint32_t *place);
    void (*close)(struct tarn_merge_input *self); /* frees self */
};
static inline void tarn_merge__input_drop(struct tarn_merge_input **input)
{
    if (*input != NULL)
        (*input)->close(*input);
    *input = NULL;
}

/* --- engine.c: what versions of a key become, other than the last one; engine.h --- */
struct tarn_merge_engine_spec { /* borrowed as long as the tree lives */
    const struct tarn_merge_layout *layout;
    const int
        *columns; /* of the schema: those of the inputs' batches, before the two of the system */
    int column_count;
    const struct tarn_merge_key_spec
        *groups; /* of the options' sequence groups, over these batches */
};
/* In the arena; NULL: the last version it is (deduplicate), or the first, for which there is a flag. `columns` has
 * what tarn_merge__engine_columns asks for, and lives as long. */
const struct tarn_merge_engine_spec *tarn_merge__engine_spec(const struct tarn_merge_layout *layout,
                                                             const int *columns, int column_count,
                                                             struct tarn_arena *arena);
/* Columns of the schema that the engine looks at whatever is wanted, in the arena. */
size_t tarn_merge__engine_columns(const struct tarn_merge_layout *layout, struct tarn_arena *arena,
                                  const int **out);
/* VALUE_INVALID where the engine can't take a row of that kind; says what to do. */
TARN_MUST struct tarn_status *tarn_merge__check_kind(const struct tarn_merge_layout *layout,
                                                     int8_t kind, int64_t row);
struct tarn_merge_combiner;

/* --- tree.c --- */
struct tarn_merge_tree_spec { /* borrowed as long as the tree lives */
    const struct tarn_merge_key_spec *key;
    const struct tarn_merge_key_spec *order;     /* sequence fields; column_count 0: none */
    int sequence_column, kind_column;            /* of the inputs' batches */
    bool ignore_delete;                          /* retracts are skipped before merging */
    bool drop_retract;                           /* results that are retracts are left out */
    bool keep_first;                             /* first-row: the oldest version stays */
    const struct tarn_merge_engine_spec *engine; /* NULL: one version stays as it is */
    const int *columns;                          /* of the inputs' batches, in output order */
    const struct tarn_type *const *types;
    int column_count;
};
/* One record a key: the last (what the engine says of all of them, in this order) by sequence fields, sequence number, retract before add, place. Consumes
 * the inputs, also on failure. */
TARN_MUST struct tarn_status *tarn_merge__tree_open(struct tarn_op *op,
                                                    const struct tarn_merge_tree_spec *spec,
                                                    struct tarn_merge_input **inputs,
                                                    size_t input_count, struct tarn_source **out);

struct tarn_merge_choice { /* borrowed */
    struct tarn_slice data_file;
    const struct tarn_deletions *rows; /* these alone; whatever a vector says */
};
/* --- layout.c: what scan, write and compact derive of a table; lies in an arena --- */
struct tarn_merge_layout {
    const struct tarn_merge_table *table;
    bool keyed; /* has a primary key */
    int column_count;
    const struct tarn_type **types; /* of all columns, then _SEQUENCE_NUMBER, _VALUE_KIND */
    const int *key_columns;         /* trimmed primary key; none for append tables */
    size_t key_count;
    const struct tarn_type **key_types;
    const int *partition_columns;
    size_t partition_count;
    const struct tarn_type **partition_types;
    const int *partition_place;              /* a column's place in the partition row, or -1 */
    const struct tarn_merge_choice *choices; /* of files of which only some rows are read */
    size_t choice_count;
};
extern const struct tarn_type tarn_merge__sequence_type, tarn_merge__kind_type;

TARN_MUST struct tarn_status *tarn_merge__layout_make(const struct tarn_merge_table *table,
                                                      struct tarn_arena *arena,
                                                      struct tarn_merge_layout *out);
/* Key and sequence-field specs over batches in which schema column i lies at columns[i]. */
void tarn_merge__layout_keys(const struct tarn_merge_layout *layout, const int *columns,
                             struct tarn_arena *arena, struct tarn_merge_key_spec *key,
                             struct tarn_merge_key_spec *order);
/* The store's key of a data file, in the arena. */
TARN_MUST struct tarn_status *tarn_merge__file_key(const struct tarn_merge_layout *layout,
                                                   struct tarn_slice partition, int32_t bucket,
                                                   const struct tarn_data_file *file,
                                                   struct tarn_arena *arena, const char **out);

/* --- lookup.c --- */
struct tarn_merge_lookup {
    const struct tarn_manifest_entry
        *upper; /* the bucket's files above level 0 that aren't compacted; borrowed */
    size_t upper_count;
    struct tarn_deletions *old; /* of each: what its vector marks, where it was looked at */
    struct tarn_deletions
        *found; /* … and rows besides that have a key of level 0; rows NULL: not looked at */
};
/* What of the upper files the files of level 0 among `files` take the place of. */
TARN_MUST struct tarn_status *tarn_merge__look_up(struct tarn_op *op,
                                                  struct tarn_merge_layout *layout,
                                                  const struct tarn_manifest_entry *files,
                                                  size_t count, struct tarn_arena *arena,
                                                  struct tarn_merge_lookup *lookup);
void tarn_merge__lookup_fini(struct tarn_merge_lookup *lookup);

/* --- run.c --- */
struct tarn_merge_run_spec { /* borrowed as long as the input lives */
    const struct tarn_merge_layout *layout;
    const struct tarn_manifest_entry *const *files; /* read one after the other */
    const struct tarn_merge_rows *rows; /* of each, not where it has a deletion vector; NULL: all */
    const uint32_t *places;             /* of the files; NULL: all 0 */
    size_t file_count;
    const int
        *columns; /* of the schema, in output order; partition columns come from the entries */
    size_t column_count;
    bool with_system; /* _SEQUENCE_NUMBER and _VALUE_KIND behind the columns */
    bool
        with_tracking; /* instead: _ROW_ID and _SEQUENCE_NUMBER, of whole files of a table that tracks rows */
    int batch_rows; /* 0: TARN_MERGE_BATCH_ROWS */
};
/* The schema of that id; NULL: not known. */
const struct tarn_schema *tarn_merge__schema_of(const struct tarn_merge_table *table, int64_t id);
/* Rows that the files' deletion vectors mark are left out. */
struct tarn_merge_input *tarn_merge__run_new(const struct tarn_merge_run_spec *spec);
/* The runs of a section with system columns, their files' places being their age; in the arena, which
 * they need as long as they live. */
struct tarn_merge_input **tarn_merge__section_inputs(const struct tarn_merge_layout *layout,
                                                     const struct tarn_merge_section *section,
                                                     const int *columns, size_t column_count,
                                                     struct tarn_arena *arena);

/* --- roll.c --- */
struct tarn_merge_entries {
    struct tarn_manifest_entry *items;
    size_t count, capacity;
};
struct tarn_merge_roll;
struct tarn_merge_roll_spec {
    const struct tarn_merge_layout *layout; /* borrowed, like arena and entries */
    struct tarn_slice partition;
    int32_t bucket, total_buckets, level;
    enum tarn_file_source source;
    bool is_changelog;                  /* named, compressed and described as those are */
    struct tarn_arena *arena;           /* of what the entries point to */
    struct tarn_merge_entries *entries; /* finished files are added (kind ADD) */
    const char *file_uuid;              /* as of struct tarn_compact_spec */
};
struct tarn_merge_roll *tarn_merge__roll_new(const struct tarn_merge_roll_spec *spec);
/* Batches of all columns; keyed tables: then _SEQUENCE_NUMBER and _VALUE_KIND, rows in key order; compactions of tables
 * that track rows: then _ROW_ID and _SEQUENCE_NUMBER.
 * first_sequence: append tables, the number of the batch's first row. */
TARN_MUST struct tarn_status *tarn_merge__roll_add(struct tarn_merge_roll *roll, struct tarn_op *op,
                                                   struct tarn_batch *batch,
                                                   int64_t first_sequence);
/* Opens a file for copying; *copy NULL where its rows written anew would be other ones (docs/decisions/017). */
TARN_MUST struct tarn_status *tarn_merge__copy_open(const struct tarn_merge_roll *roll,
                                                    struct tarn_op *op,
                                                    const struct tarn_manifest_entry *entry,
                                                    struct tarn_file_copy **copy);
/* The file's column that has a column of the key. */
size_t tarn_merge__key_place(const struct tarn_merge_roll *roll, size_t key);
size_t tarn_merge__sequence_place(const struct tarn_merge_roll *roll);
struct tarn_merge_group {        /* a row group of a file with one key column */
    struct tarn_file_copy *copy; /* borrowed */
    size_t index;
    int64_t row_count, size;
    int64_t min_sequence, max_sequence;
    struct tarn_value min, max; /* of the key */
};
TARN_MUST struct tarn_status *tarn_merge__roll_copy_group(struct tarn_merge_roll *roll,
                                                          struct tarn_op *op,
                                                          const struct tarn_merge_group *group);
/* A whole file behind the rows so far, unread, if that gives what its rows written anew would (docs/decisions/017);
 * else *copied is false and nothing was done. `first_sequence` as in roll_add. */
TARN_MUST struct tarn_status *tarn_merge__roll_copy(struct tarn_merge_roll *roll,
                                                    struct tarn_op *op,
                                                    const struct tarn_manifest_entry *entry,
                                                    int64_t first_sequence, bool *copied);
/* Finishes the file begun, if any; the roll can go on with a new one. */
TARN_MUST struct tarn_status *tarn_merge__roll_cut(struct tarn_merge_roll *roll,
                                                   struct tarn_op *op);
void tarn_merge__roll_free(struct tarn_merge_roll *roll); /* aborts the file begun */

/* --- pieces.c --- */
struct tarn_merge_piece {              /* rows of a section, above those of the pieces before */
    struct tarn_merge_section section; /* merged; no runs: */
    struct tarn_merge_group group;     /* … this row group is all */
};
struct tarn_merge_pieces {
    struct tarn_merge_piece *items;
    size_t count;
    struct tarn_file_copy **copies; /* open while the pieces are in use */
    size_t copy_count;
};
/* In key order, in the arena; one piece where nothing can be copied. */
TARN_MUST struct tarn_status *tarn_merge__pieces_find(const struct tarn_merge_roll *roll,
                                                      const struct tarn_merge_layout *layout,
                                                      struct tarn_op *op,
                                                      const struct tarn_merge_section *section,
                                                      struct tarn_arena *arena,
                                                      struct tarn_merge_pieces *out);
void tarn_merge__pieces_drop(struct tarn_merge_pieces *pieces);

/* --- changelog.c --- */
struct tarn_merge_log_spec { /* borrowed */
    const struct tarn_merge_layout *layout;
    const struct tarn_merge_tree_spec
        *tree; /* of the output: all columns, then those of the system */
    enum tarn_changelog_producer producer;    /* LOOKUP or FULL_COMPACTION */
    int top_level;                            /* the bucket's last */
    const struct tarn_merge_section *section; /* of the files that were picked */
    const struct tarn_manifest_entry *above; /* LOOKUP: the bucket's files above the output level */
    size_t above_count;
    struct tarn_merge_roll *data; /* the output; NULL: none is written */
    struct tarn_merge_roll *log;
};
TARN_MUST struct tarn_status *tarn_merge__log_section(struct tarn_op *op,
                                                      const struct tarn_merge_log_spec *spec);

/* --- spill.c: sorted runs on local disk; the file has no name and goes with the last close --- */
struct tarn_merge_spill;
struct tarn_merge_segment { /* one sorted run in it */
    int64_t offset;
    int64_t size;
};
TARN_MUST struct tarn_status *tarn_merge__spill_open(const char *scratch_dir,
                                                     const struct tarn_type *const *types,
                                                     int column_count,
                                                     struct tarn_merge_spill **out);
void tarn_merge__spill_close(struct tarn_merge_spill *spill);
void tarn_merge__spill_clear(
    struct tarn_merge_spill *spill); /* its segments are not wanted any more */
/* Writes all batches of the input, which stays the caller's. */
TARN_MUST struct tarn_status *tarn_merge__spill_write(struct tarn_merge_spill *spill,
                                                      struct tarn_op *op,
                                                      struct tarn_merge_input *input,
                                                      struct tarn_merge_segment *out);
/* One batch of columns as spill.c lays them out. IO_ERROR where the bytes aren't that. */
TARN_MUST struct tarn_status *tarn_merge__spill_decode(struct tarn_slice bytes, int64_t row_count,
                                                       const struct tarn_type *const *types,
                                                       int column_count, struct tarn_batch **out);
struct tarn_merge_input *tarn_merge__spill_read(const struct tarn_merge_spill *spill,
                                                struct tarn_merge_segment segment, uint32_t place);

/* --- buffer.c: rows of one bucket, sorted by key, one a key --- */
struct tarn_merge_buffer_spec { /* borrowed as long as the input lives */
    const struct tarn_merge_layout *layout;
    struct tarn_batch *const *chunks; /* all columns, then INT8 row kinds */
    size_t chunk_count;
    const struct tarn_merge_keys *keys;   /* of each chunk */
    const struct tarn_merge_keys *orders; /* sequence fields of each; NULL: none */
    const uint64_t *rows;                 /* chunk << 32 | row, in order of arrival */
    size_t row_count;                     /* below 2^32 */
    int64_t first_sequence;               /* of rows[0] */
    int64_t batch_rows;
    uint32_t place;
    bool keep_all; /* every row, those of a key by sequence fields and arrival: not only the last */
};
/* Batches of all columns, _SEQUENCE_NUMBER and _VALUE_KIND. */
struct tarn_merge_input *tarn_merge__buffer_sort(const struct tarn_merge_buffer_spec *spec);

/* --- dynamic.c: buckets of one partition by its HASH index --- */
struct tarn_merge_index_files { /* items on the heap, what they point to in an arena */
    struct tarn_index_file *items;
    size_t count, capacity;
};
struct tarn_merge_dynamic;
/* Reads those of the files that are the partition's; it and the layout are borrowed. */
TARN_MUST struct tarn_status *tarn_merge__dynamic_open(struct tarn_op *op,
                                                       const struct tarn_merge_layout *layout,
                                                       const struct tarn_index_file *files,
                                                       size_t count, struct tarn_slice partition,
                                                       struct tarn_merge_dynamic **out);
void tarn_merge__dynamic_free(struct tarn_merge_dynamic *dynamic);
/* The bucket of a key with this hash (tarn_row_hash of the trimmed primary key). */
TARN_MUST struct tarn_status *tarn_merge__dynamic_assign(struct tarn_merge_dynamic *dynamic,
                                                         int32_t hash, int32_t *out);
/* Puts the index files of buckets that got new keys; those that were put are added also when it fails. */
TARN_MUST struct tarn_status *tarn_merge__dynamic_write(const struct tarn_merge_dynamic *dynamic,
                                                        struct tarn_op *op,
                                                        struct tarn_arena *arena,
                                                        struct tarn_merge_index_files *out);

/* The bucket of one more key that no hash is kept of. */
TARN_MUST struct tarn_status *tarn_merge__dynamic_place(struct tarn_merge_dynamic *dynamic,
                                                        int32_t *out);
/* A bucket has this many more keys, or fewer. */
void tarn_merge__dynamic_count(struct tarn_merge_dynamic *dynamic, int32_t bucket, int64_t more);

/* --- cross.c: keys over all partitions --- */
struct tarn_merge_cross;
struct tarn_merge_home { /* of a key */
    uint64_t low, high;  /* its hash */
    void *partition;     /* the caller's; NULL: it isn't known yet */
    int32_t bucket;
};
struct tarn_merge_leave { /* a row of a batch, whose key was in another partition before */
    uint32_t row;
    uint32_t target;
    struct tarn_slice partition; /* the one that it leaves; borrowed */
};
struct tarn_merge_cross *tarn_merge__cross_new(const struct tarn_merge_layout *layout);
void tarn_merge__cross_free(struct tarn_merge_cross *cross);
/* The home of the row's key, a new one without partition where it is unknown: the caller sets one. Until the next call.
 * columns: where the primary key lies in the batch; NULL: it has all columns of the schema. */
TARN_MUST struct tarn_status *tarn_merge__cross_find(struct tarn_merge_cross *cross,
                                                     const struct tarn_batch *batch,
                                                     const int *columns, int64_t row,
                                                     struct tarn_merge_home **out);
/* The primary keys of a split, as it shows them. */
TARN_MUST struct tarn_status *tarn_merge__cross_open_split(struct tarn_merge_cross *cross,
                                                           struct tarn_op *op,
                                                           const struct tarn_merge_split *split,
                                                           const char *scratch_dir,
                                                           struct tarn_source **out);
/* A batch of deletes, in the partitions that they leave. */
TARN_MUST struct tarn_status *tarn_merge__cross_deletes(const struct tarn_merge_layout *layout,
                                                        const struct tarn_batch *batch,
                                                        const struct tarn_merge_leave *leaves,
                                                        size_t count, struct tarn_batch **out);

/* --- assign.c: the partition and bucket of rows --- */
struct tarn_merge_assign;
/* Both are borrowed. */
struct tarn_merge_assign *tarn_merge__assign_new(const struct tarn_merge_layout *layout,
                                                 const struct tarn_write_spec *spec);
/* Before the first row: where keys cross partitions, reads those that the table has. */
TARN_MUST struct tarn_status *tarn_merge__assign_learn(struct tarn_merge_assign *assign,
                                                       struct tarn_op *op);
void tarn_merge__assign_free(struct tarn_merge_assign *assign);
/* targets[i]: number of row i's bucket among all met so far, from 0 in order of appearance. */
TARN_MUST struct tarn_status *tarn_merge__assign_rows(struct tarn_merge_assign *assign,
                                                      struct tarn_op *op,
                                                      const struct tarn_batch *batch,
                                                      uint32_t *targets);
/* Those rows of the last batch, in order, whose keys leave another partition. NULL: none can. */
const struct tarn_merge_leave *tarn_merge__assign_leaves(const struct tarn_merge_assign *assign,
                                                         size_t *count);
size_t tarn_merge__assign_count(const struct tarn_merge_assign *assign);
/* Borrowed. */
/* How many buckets its partition has; -1: they are not fixed. */
int32_t tarn_merge__assign_total(const struct tarn_merge_assign *assign, uint32_t target);
void tarn_merge__assign_get(const struct tarn_merge_assign *assign, uint32_t target,
                            struct tarn_slice *partition, int32_t *bucket);
/* As dynamic_write, of all partitions. */
TARN_MUST struct tarn_status *tarn_merge__assign_write(const struct tarn_merge_assign *assign,
                                                       struct tarn_op *op, struct tarn_arena *arena,
                                                       struct tarn_merge_index_files *out);

#endif
