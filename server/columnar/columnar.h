/*
 * columnar - the C face of the columnar codecs: Parquet, Arrow IPC, CSV and JSON lines to and from
 * batches of columns. The one door to Arrow C++ and RapidJSON; no other room includes a C++ header.
 *
 * Batches  a batch is rows of a known list of columns, in the Arrow C data interface, counted and
 *          immutable. Every Paimon type has ONE canonical Arrow layout here, whatever the file had:
 *            CHAR VARCHAR "u" · BINARY VARBINARY "z" · BOOLEAN "b" · TINYINT "c" · SMALLINT "s" · INT "i" ·
 *            BIGINT "l" · FLOAT "f" · DOUBLE "g" · DATE "tdD" · TIME "ttm" · DECIMAL(p,s) "d:p,s" (128 bit) ·
 *            TIMESTAMP(0-3) "tsm:" (4-6) "tsu:" (7-9) "tsn:" · TIMESTAMP_LTZ the same with "UTC" ·
 *            ARRAY "+l" · MAP "+m" · MULTISET "+m" to INT · ROW "+s"
 *          No dictionaries, no large or view layouts. Arrays may have an offset: use the accessors.
 *          TIMESTAMP(7-9) outside 1677..2262 can't be held: VALUE_INVALID, never a wrapped value.
 * Linking  the room is a shared library; what it uses of base, format and store it finds in the program.
 * Memory   specs, fields and types given to an open call are borrowed for that call; what is kept is
 *          copied. A batch keeps its memory alive by itself, whatever it came from.
 * Threads  a reader, writer, input or output belongs to one thread at a time; batches: any.
 * Errors   DATA_FILE_MALFORMED for files that don't decode, with key and what is wrong;
 *          MEMORY_EXHAUSTED; no C++ exception leaves the room.
 */
#ifndef TARN_COLUMNAR_H
#define TARN_COLUMNAR_H

#include "base/base.h"
#include "format/format.h"
#include "store/store.h"

#include "columnar/arrow_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- batches --- */
struct tarn_batch {
    atomic_int ref_count;    /* private */
    struct ArrowArray array; /* a struct array: children are the columns; offset 0 at the top */
    int64_t row_count;
    int column_count;
};
/* Takes over `array` (moved; release is called with the last ref). */
struct tarn_batch *tarn_batch_take(struct ArrowArray *array);
struct tarn_batch *tarn_batch_ref(struct tarn_batch *batch);
void tarn_batch_unref(struct tarn_batch *batch);
void tarn_batch_drop(struct tarn_batch **batch);
/* Bytes of all buffers, about: for memory budgets. */
int64_t tarn_batch_size(const struct tarn_batch *batch);

static inline const struct ArrowArray *tarn_batch_column(const struct tarn_batch *batch, int column)
{
    return batch->array.children[column];
}
static inline bool tarn_column_is_null(const struct ArrowArray *a, int64_t row)
{
    const uint8_t *bits = (const uint8_t *)a->buffers[0];
    int64_t i = row + a->offset;
    return a->null_count != 0 && bits != NULL && (bits[i >> 3] >> (i & 7) & 1) == 0;
}
/* One value as format's value; bytes are borrowed from the batch. Atomic types. */
void tarn_column_value(const struct ArrowArray *column, const struct tarn_type *type, int64_t row,
                       struct tarn_value *out);
/* The canonical ArrowSchema of columns; the caller releases it. No field ids in it. */
TARN_MUST struct tarn_status *tarn_arrow_schema(const struct tarn_field *fields, size_t count,
                                                struct ArrowSchema *out);

/* A stream of batches: what readers, merges, filters and inputs all are. */
struct tarn_source {
    /* The next batch, owned, never empty; NULL at the end. */
    struct tarn_status *(*next)(struct tarn_source *self, struct tarn_op *op,
                                struct tarn_batch **out);
    void (*close)(struct tarn_source *self); /* frees self */
};
static inline void tarn_source_drop(struct tarn_source **source)
{
    if (*source != NULL)
        (*source)->close(*source);
    *source = NULL;
}

/* --- reading a data file --- */
struct tarn_column_read {
    struct tarn_slice file_name; /* name in the file; absent: not there, every value is null */
    const struct tarn_type
        *file_type; /* of the file's schema; what the file really has is cast to it.
                                          NULL: the same as `type` */
    const struct tarn_type
        *type; /* wanted; widening casts (format.md 2.3) where they differ, subfields
                                          of rows by id; UNSUPPORTED_FEATURE for others */
};
struct tarn_file_read {
    const struct tarn_column_read *columns;
    size_t column_count;
    int batch_row_count;        /* 0: 8192 */
    int64_t row_begin, row_end; /* row_end 0: all; else only these rows of the file */
};
/* Format by the key's extension (format.md 7.1): Parquet, ORC, Avro; UNSUPPORTED_FEATURE for others.
 * Holds its own reference to the store. Batches don't span row groups, so they may be short. A file without
 * any of the columns still gives its count of rows. */
TARN_MUST struct tarn_status *tarn_file_reader_open(struct tarn_store *store, struct tarn_op *op,
                                                    const char *key,
                                                    const struct tarn_file_read *spec,
                                                    struct tarn_source **out);

/* --- writing a data file --- */
struct tarn_column_write {
    struct tarn_slice name;
    int32_t field_id; /* nested ids follow format.md 7.7 */
    const struct tarn_type *type;
};
struct tarn_file_write {
    const char *format; /* "parquet", "orc", "avro" */
    const char *
        compression; /* zstd, snappy, none; Parquet: also lz4, gzip; ORC: lz4, zlib; Avro: deflate */
    int zstd_level;  /* ORC has none */
    int64_t row_group_size; /* bytes, about; ORC: of a stripe; 0: a choice that keeps memory low */
    const struct tarn_column_write *columns;
    size_t column_count;
};
struct tarn_file_result {
    int64_t size, row_count;
    struct tarn_column_stats *columns; /* in the arena, one a column of the spec */
};
struct tarn_file_writer;
/* Files as Paimon writes them, format.md 7.7-7.9. Parquet: TIMESTAMP(7-9) as INT96, decimals as INT32/INT64 up
 * to 18 digits, message name paimon_schema. UNSUPPORTED_FEATURE for types that ORC or Avro doesn't have.
 * The object appears when finish succeeds.
 * Batches have exactly the spec's columns, canonical; null in a NOT NULL column is VALUE_INVALID. Of a Parquet
 * file the first 32768 rows are held back (references to their batches) to choose dictionaries.
 * Statistics: no bounds for TIMESTAMP(7-9), for columns with a NaN, for texts over 4 kB; nested columns have
 * none in Parquet, and a count of nulls in the others. */
TARN_MUST struct tarn_status *tarn_file_writer_open(struct tarn_store *store, struct tarn_op *op,
                                                    const char *key,
                                                    const struct tarn_file_write *spec,
                                                    struct tarn_file_writer **out);
TARN_MUST struct tarn_status *tarn_file_writer_add(struct tarn_file_writer *writer,
                                                   struct tarn_op *op,
                                                   const struct tarn_batch *batch);
int64_t tarn_file_writer_size(const struct tarn_file_writer *writer); /* bytes so far, about */
TARN_MUST struct tarn_status *tarn_file_writer_finish(struct tarn_file_writer *consumed,
                                                      struct tarn_op *op, struct tarn_arena *arena,
                                                      struct tarn_file_result *out);
void tarn_file_writer_abort(struct tarn_file_writer *consumed); /* leaves nothing; NULL is fine */

/* --- row groups of a data file that go into another one unread --- */
struct tarn_file_copy;
struct tarn_row_group {
    int64_t row_count, size; /* size: bytes of its columns in the file */
};
/* Opens a data file whose row groups can go into files of `spec` as the bytes that they are, and be to every reader
 * what their rows written anew would be. *out NULL: they can't. It takes a Parquet file with the very columns of the
 * spec (names, field ids, types, NOT NULL), the same compression, counts of nulls and bounds of an order that readers
 * trust, and row groups that on average have half of what a writer fills them up to: smaller ones belong merged.
 * bounded[i]: column i is known to hold no NaN (footers don't tell); NULL: of none. The file stays open. */
TARN_MUST struct tarn_status *tarn_file_copy_open(struct tarn_store *store, struct tarn_op *op,
                                                  const char *key,
                                                  const struct tarn_file_write *spec,
                                                  const bool *bounded, struct tarn_file_copy **out);
/* Borrowed from it. */
size_t tarn_file_copy_groups(const struct tarn_file_copy *copy,
                             const struct tarn_row_group **groups);
int64_t tarn_file_copy_row_count(const struct tarn_file_copy *copy);
const char *tarn_file_copy_key(const struct tarn_file_copy *copy);
/* Bounds of a column of the spec in a row group, in the arena; false: none are known that hold (no value but null, a
 * type without bounds, a real that may be NaN). */
TARN_MUST struct tarn_status *tarn_file_copy_bounds(const struct tarn_file_copy *copy, size_t group,
                                                    size_t column, struct tarn_arena *arena,
                                                    bool *known, struct tarn_value *min,
                                                    struct tarn_value *max);
void tarn_file_copy_close(struct tarn_file_copy *copy); /* NULL is fine */
/* Row group `group` behind all rows so far; the writer's spec is the one the file was opened with. Damage that shows
 * without decoding (pages that don't fill their chunk, counts, checksums where there are any) is
 * DATA_FILE_MALFORMED; after an error the writer can only be aborted. */
TARN_MUST struct tarn_status *tarn_file_writer_copy(struct tarn_file_writer *writer,
                                                    struct tarn_op *op, struct tarn_file_copy *copy,
                                                    size_t group);

/* --- rows that users bring: `tarn load` --- */
enum tarn_data_format {
    TARN_DATA_PARQUET,
    TARN_DATA_CSV,
    TARN_DATA_JSONL,
    TARN_DATA_ARROW,
    TARN_DATA_ORC
};

struct tarn_bad_row {
    int64_t line;             /* 1-based line of the text, or row number for binary formats */
    struct tarn_slice column; /* empty: the whole line */
    struct tarn_slice reason;
};
struct tarn_input_options {
    enum tarn_data_format format;
    const char *name; /* the file's name, for messages */
    const struct tarn_field
        *fields; /* the table's columns; matched by name, missing nullable: null */
    size_t field_count;
    const struct tarn_slice *null_texts;
    size_t null_text_count;  /* CSV: besides nothing unquoted */
    char delimiter;          /* CSV; 0: comma */
    const char *op_column;   /* column with +I -U +U -D; NULL: none, all +I */
    bool refused_kinds[4];   /* row kinds of op_column that the table can't take: bad rows */
    bool only_keys_required; /* deletes: columns not in the input may be absent though NOT NULL */
    int64_t skip_bad_max;    /* 0: the first bad row is an error (ROW_INVALID file:line:column) */
};
/* Bytes for streaming formats: fills up to size, *got 0 at the end. */
typedef struct tarn_status *(*tarn_pull_fn)(void *arg, struct tarn_op *op, uint8_t *out,
                                            size_t size, size_t *got);
struct tarn_input;
/* CSV, JSONL and ARROW stream through `pull` (an Arrow file too: it contains a stream), or come from the local
 * file `path` where that is not NULL. PARQUET needs a path (needs_file says so). Errors: INPUT_MALFORMED,
 * COLUMN_NOT_FOUND (a column the table lacks, with the nearest name; a NOT NULL one the input lacks),
 * duplicate names. In JSON lines an unknown or doubled name is that line's fault. Values of Parquet and Arrow
 * are converted exactly or their row is bad; kinds of types that don't go together: INPUT_MALFORMED.
 * A quote left open in CSV is INPUT_MALFORMED whatever skip_bad_max says. UNIMPLEMENTED for ORC. */
bool tarn_input_needs_file(enum tarn_data_format format);
TARN_MUST struct tarn_status *tarn_input_open(struct tarn_op *op,
                                              const struct tarn_input_options *options,
                                              const char *path, tarn_pull_fn pull, void *arg,
                                              struct tarn_input **out);
/* The next batch, columns in the table's order and canonical types, and an INT8 column of row kinds
 * (0 +I, 1 -U, 2 +U, 3 -D) behind them; NULL at the end. */
TARN_MUST struct tarn_status *tarn_input_next(struct tarn_input *input, struct tarn_op *op,
                                              struct tarn_batch **out);
/* Rows skipped so far, the first TARN_BAD_ROWS_KEPT of them in detail; borrowed. */
#define TARN_BAD_ROWS_KEPT 100
int64_t tarn_input_bad_rows(const struct tarn_input *input, const struct tarn_bad_row **rows,
                            size_t *count);
void tarn_input_close(struct tarn_input *input);
/* The columns of a Parquet/Arrow file as Paimon fields (ids 0, 1, …; 0 inside rows), for `table create
 * --from-file`. UNIMPLEMENTED for other formats. */
TARN_MUST struct tarn_status *tarn_input_infer(struct tarn_op *op, enum tarn_data_format format,
                                               const char *path, struct tarn_arena *arena,
                                               const struct tarn_field **fields, size_t *count);

/* --- rows for users: `tarn scan` --- */
typedef struct tarn_status *(*tarn_push_fn)(void *arg, struct tarn_op *op, struct tarn_slice bytes);
struct tarn_output;
/* CSV has a header line (RFC 4180; a text that is empty or "null" is quoted, null is nothing), JSONL exact
 * decimals as numbers; values: docs/compatibility.md. Parquet and Arrow (IPC stream) as a reader expects them. */
TARN_MUST struct tarn_status *tarn_output_open(struct tarn_op *op, enum tarn_data_format format,
                                               const struct tarn_field *fields, size_t field_count,
                                               tarn_push_fn push, void *arg,
                                               struct tarn_output **out);
TARN_MUST struct tarn_status *tarn_output_add(struct tarn_output *output, struct tarn_op *op,
                                              const struct tarn_batch *batch);
TARN_MUST struct tarn_status *tarn_output_finish(struct tarn_output *output, struct tarn_op *op);
void tarn_output_close(struct tarn_output *output);

#ifdef __cplusplus
}
#endif

#endif
