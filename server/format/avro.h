/*
 * avro - Avro object containers: read by the schema in the file, written by a fixed one.
 *
 * Shape    a reader walks blocks and records; the caller walks the fields of a record in the writer's
 *          order (tarn_avro_bind says which of its own names each one is) and reads or skips each.
 *          Int and long, string and bytes, and unions with null in any place are read alike.
 * Bounds   a block expands to at most 16 MiB + 256 times the file, the whole file to
 *          TARN_AVRO_EXPANDED_MAX; counts are held against the bytes that are left; values visited are
 *          held against the size of their block, so that no schema makes work out of nothing.
 * Memory   what is read points into the arena.
 * Errors   AVRO_MALFORMED names the offset in the file of the block.
 * Source   Avro 1.11 specification, "Object Container Files", "Binary Encoding".
 */
#ifndef TARN_FORMAT_AVRO_H
#define TARN_FORMAT_AVRO_H

#include "base/base.h"

#define TARN_AVRO_EXPANDED_MAX (INT64_C(512) << 20)
#define TARN_AVRO_SCHEMA_SIZE_MAX (1 << 20)
#define TARN_AVRO_NODES_MAX 10000
#define TARN_AVRO_DEPTH_MAX 32
#define TARN_AVRO_SYNC_SIZE 16

enum tarn_avro_kind {
    TARN_AVRO_NULL,
    TARN_AVRO_BOOLEAN,
    TARN_AVRO_INT,
    TARN_AVRO_LONG,
    TARN_AVRO_FLOAT,
    TARN_AVRO_DOUBLE,
    TARN_AVRO_BYTES,
    TARN_AVRO_STRING,
    TARN_AVRO_FIXED,
    TARN_AVRO_ENUM,
    TARN_AVRO_ARRAY,
    TARN_AVRO_MAP,
    TARN_AVRO_UNION,
    TARN_AVRO_RECORD,
};

struct tarn_avro_node { /* one type of the writer's schema */
    enum tarn_avro_kind kind;
    int64_t size;                           /* FIXED: bytes; ENUM: symbols */
    const struct tarn_avro_node **children; /* fields, branches, or the one item */
    struct tarn_slice *names;               /* RECORD: of the fields */
    size_t child_count;
    struct tarn_slice logical; /* its logicalType; absent: it has none */
    int64_t scale;             /* of a logical decimal */
};

struct tarn_avro_reader {
    struct tarn_slice file;
    struct tarn_arena *arena;            /* borrowed */
    const struct tarn_avro_node *schema; /* of the records */
    const struct tarn_avro_node
        *top; /* the same, or a union with it: pypaimon-rust's files have one */
    int codec;
    uint8_t sync[TARN_AVRO_SYNC_SIZE];
    size_t at;                   /* of the next block, in file */
    size_t block_at;             /* of this one */
    int64_t records_left;        /* in this block */
    const uint8_t *cursor, *end; /* in this block, expanded */
    int64_t steps_left;          /* values that may still be visited in this block */
    int64_t expanded_left;
};

/* Parses header and schema. The reader needs no close. */
TARN_MUST struct tarn_status *tarn_avro_open(struct tarn_slice file, struct tarn_arena *arena,
                                             struct tarn_avro_reader *out);
/* *more true: the next record is to be read now, all of its fields. */
TARN_MUST struct tarn_status *tarn_avro_next(struct tarn_avro_reader *r, bool *more);
/* Maps the fields of a record to indices in `names`, -1 for those not in it; in the arena. */
TARN_MUST struct tarn_status *tarn_avro_bind(struct tarn_avro_reader *r,
                                             const struct tarn_avro_node *record,
                                             const char *const *names, size_t name_count,
                                             const int16_t **out);
/* The schema of a record's field, a union with null looked through; NULL: no such field. */
const struct tarn_avro_node *tarn_avro_find(const struct tarn_avro_node *record, const char *name);

TARN_MUST struct tarn_status *tarn_avro_skip(struct tarn_avro_reader *r,
                                             const struct tarn_avro_node *node);
/* Follows a union to its branch; *out is a NULL node where the value is null. */
TARN_MUST struct tarn_status *tarn_avro_branch(struct tarn_avro_reader *r,
                                               const struct tarn_avro_node *node,
                                               const struct tarn_avro_node **out);
/* null gives `null_value` where allowed (may_be_null), else an error. */
TARN_MUST struct tarn_status *tarn_avro_read_long(struct tarn_avro_reader *r,
                                                  const struct tarn_avro_node *node,
                                                  bool may_be_null, int64_t null_value,
                                                  int64_t *out);
TARN_MUST struct tarn_status *tarn_avro_read_int(struct tarn_avro_reader *r,
                                                 const struct tarn_avro_node *node, int32_t *out);
/* null: the absent slice, where allowed. An empty value is never absent. */
TARN_MUST struct tarn_status *tarn_avro_read_bytes(struct tarn_avro_reader *r,
                                                   const struct tarn_avro_node *node,
                                                   bool may_be_null, struct tarn_slice *out);
/* Arrays; null: *present false. Null items: an error for strings, null_value for longs. */
TARN_MUST struct tarn_status *tarn_avro_read_strings(struct tarn_avro_reader *r,
                                                     const struct tarn_avro_node *node,
                                                     bool *present, const struct tarn_slice **out,
                                                     size_t *count);
TARN_MUST struct tarn_status *tarn_avro_read_longs(struct tarn_avro_reader *r,
                                                   const struct tarn_avro_node *node,
                                                   int64_t null_value, bool *present,
                                                   const int64_t **out, size_t *count);
/* Arrays of anything else: enters one (*item is the schema of its items, a NULL node where the array
 * is null); then each call says how many items come now, 0 at the end. */
TARN_MUST struct tarn_status *tarn_avro_begin_array(struct tarn_avro_reader *r,
                                                    const struct tarn_avro_node *node,
                                                    const struct tarn_avro_node **item);
TARN_MUST struct tarn_status *tarn_avro_next_items(struct tarn_avro_reader *r, size_t *count);
/* For those who read a file piece by piece, a data file: what one block holds, at most `max` bytes, behind
 * what is in `out`. */
TARN_MUST struct tarn_status *tarn_avro_expand(const struct tarn_avro_reader *r,
                                               struct tarn_slice stored, size_t max,
                                               struct tarn_buf *out);
TARN_MUST struct tarn_status *tarn_avro_error(const struct tarn_avro_reader *r, const char *format,
                                              ...) TARN_PRINTF(2, 3);

/* --- primitives on bare bytes, also for our own packed entries --- */
bool tarn_avro_take_long(const uint8_t **cursor, const uint8_t *end, int64_t *out);
bool tarn_avro_take_bytes(const uint8_t **cursor, const uint8_t *end, struct tarn_slice *out);
void tarn_avro_add_long(struct tarn_buf *out, int64_t value);
void tarn_avro_add_bytes(struct tarn_buf *out, struct tarn_slice bytes);
/* ["null", T] with null first: the branch, then, unless null, the value. */
void tarn_avro_add_optional_long(struct tarn_buf *out, bool present, int64_t value);
void tarn_avro_add_optional_bytes(struct tarn_buf *out, struct tarn_slice bytes);

/* --- writing --- */
struct tarn_avro_writer {
    struct tarn_buf *out;  /* borrowed */
    struct tarn_buf block; /* add a record's values here, then end the record */
    struct tarn_buf zipped;
    int64_t record_count;
    int codec, level;
    uint8_t sync[TARN_AVRO_SYNC_SIZE];
};

/* codec: zstd, zstandard, deflate, snappy, none, null; others are INVALID_ARGUMENT. */
TARN_MUST struct tarn_status *tarn_avro_begin(struct tarn_avro_writer *w, const char *schema,
                                              struct tarn_slice codec, int level,
                                              const uint8_t sync[TARN_AVRO_SYNC_SIZE],
                                              struct tarn_buf *out);
TARN_MUST struct tarn_status *tarn_avro_end_record(struct tarn_avro_writer *w);
TARN_MUST struct tarn_status *tarn_avro_end(struct tarn_avro_writer *w);
void tarn_avro_writer_drop(struct tarn_avro_writer *w);

#endif
