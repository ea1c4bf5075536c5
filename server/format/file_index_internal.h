/*
 * file_index_internal - what the files that judge by file indexes share: reading big-endian bytes, the
 * limits of one call, and what a leaf of the predicate can be.
 */
#ifndef TARN_FORMAT_FILE_INDEX_INTERNAL_H
#define TARN_FORMAT_FILE_INDEX_INTERNAL_H

#include "format/file_index.h"
#include "format/options.h"
#include "format/roaring.h"

struct tarn_index__reader { /* over bytes whose beginning has been read */
    const uint8_t *cursor, *end;
    bool failed; /* once set, everything read is 0 or empty */
};

struct tarn_index__budget {
    int64_t steps; /* below 0: used up, and the file may match */
    int64_t rows;  /* that sets may still hold */
};

/* Which index said it, for people. */
struct tarn_index__why {
    int column;
    const char *index; /* NULL: none */
};

/* Can a node be true for a row, can it be false? Whatever isn't known answers yes. The sets narrow a
 * yes: one bit a row, owned; NULL: any row. */
struct tarn_index__chance {
    bool yes, no;
    uint64_t *yes_rows, *no_rows;
    struct tarn_index__why why_yes, why_no;
};

uint64_t tarn_index__take(struct tarn_index__reader *r, size_t size); /* big-endian, at most 8 */
int32_t tarn_index__take_int(struct tarn_index__reader *r);
struct tarn_slice tarn_index__take_bytes(struct tarn_index__reader *r, int64_t size);

void tarn_index__spell(struct tarn_slice name, struct tarn_buf *out); /* in Java's modified UTF-8 */
/* What indexes make of a value: the bits of a real, with one NaN; milliseconds or microseconds of a time. */
int64_t tarn_index__real_bits(const struct tarn_type *type, double real);
int64_t tarn_index__time_number(const struct tarn_type *type, const struct tarn_value *v);
void tarn_index__put(struct tarn_buf *out, uint64_t value, size_t size); /* big-endian */
struct tarn_index__rows_writer {
    struct tarn_roaring bitmap;
    uint16_t lows[TARN_ROARING_CONTAINER]; /* of one container */
};
/* "bloom-filter": as options and containers name it. */
const char *tarn_index__kind_name(enum tarn_file_index_kind kind);
/* May values of this type be in a bit-slice index (bsi)? */
bool tarn_index__bsi_takes(const struct tarn_type *type);
/* Appends one. Of each row an int64_t, above the smallest there is, and a byte: 0 where it is null. */
void tarn_index__put_slices(struct tarn_slice numbers, struct tarn_slice present,
                            struct tarn_buf *out);
/* May values of this type be in a bloom filter? Their hash, and the bit that its hash function i >= 1 gives. */
bool tarn_index__bloom_takes(const struct tarn_type *type);
uint64_t tarn_index__bloom_hash(const struct tarn_type *type, const struct tarn_value *v);
uint32_t tarn_index__bloom_bit(uint64_t hash, int32_t i, uint32_t bit_count);

/* The values of one column: bytes of a bitmap index. */
struct tarn_index__bitmap {
    struct tarn_slice bytes;
    const struct tarn_type *type;      /* as the predicate sees the values */
    const struct tarn_type *file_type; /* as the index holds them */
    int64_t row_count;
};
/* May values of this type have a bitmap index? */
bool tarn_index__bitmap_takes(const struct tarn_type *type);
/* What the values in the index make of one leaf; with_rows: and in which rows. */
TARN_MUST struct tarn_status *tarn_index__bitmap_judge(const struct tarn_index__bitmap *bitmap,
                                                       const struct tarn_predicate_node *leaf,
                                                       bool with_rows,
                                                       struct tarn_index__budget *budget,
                                                       struct tarn_index__chance *out);

/* Sets of rows. new: NULL where the budget doesn't allow it. */
uint64_t *tarn_index__rows_new(int64_t row_count, struct tarn_index__budget *budget);
void tarn_index__rows_free(uint64_t **rows, int64_t row_count, struct tarn_index__budget *budget);
/* Adds the rows of a serialised 32-bit roaring bitmap; false: it is damaged or names rows beyond. */
bool tarn_index__rows_add(uint64_t *rows, int64_t row_count, struct tarn_slice roaring,
                          struct tarn_index__budget *budget);
/* The same from the front of `roaring`, which is what is behind it afterwards; its row 0 is row `first`, a multiple of 65536. */
bool tarn_index__rows_take(uint64_t *rows, int64_t row_count, int64_t first,
                           struct tarn_slice *roaring, struct tarn_index__budget *budget);

TARN_MUST struct tarn_status *tarn_index__malformed(const char *format, ...) TARN_PRINTF(1, 2);

#endif
