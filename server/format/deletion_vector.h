/*
 * deletion_vector - which rows of a data file are deleted, as index files of type DELETION_VECTORS hold it.
 *
 * Shape    a set of row positions, from 0 in the order of the data file. In the index file, behind its version byte, vectors
 *          lie at the offsets that the index manifest names, in any order, in one of two forms which a magic number tells apart:
 *          32 bits (a roaring bitmap) or, with deletion-vectors.bitmap64, 64 bits (one for each 2^32 rows).
 * Memory   one bit for each row of the data file, of which only what is touched takes memory.
 * Errors   DELETION_VECTOR_MALFORMED says what is wrong with the bytes: any of them may come from an enemy. TOO_LARGE: more
 *          rows than TARN_DELETIONS_ROWS_MAX.
 * Source   docs/format.md, "Deletion vectors"; org.apache.paimon.deletionvectors; bytes: test/golden/deletion_vector/.
 */
#ifndef TARN_FORMAT_DELETION_VECTOR_H
#define TARN_FORMAT_DELETION_VECTOR_H

#include "base/base.h"

#define TARN_DELETIONS_ROWS_MAX (INT64_C(1) << 32) /* of a data file */
#define TARN_DELETION_INDEX_VERSION 1              /* the first byte of an index file */
#define TARN_DELETION_FRAME_SIZE 8 /* a vector may take so much more than the index manifest says */

struct tarn_deletions { /* zeroes: none, of no file */
    uint64_t *rows;     /* one bit a row; owned */
    int64_t row_count;  /* of the data file */
    int64_t count;      /* of deleted rows */
};
TARN_MUST struct tarn_status *tarn_deletions_init(struct tarn_deletions *deletions,
                                                  int64_t row_count);
void tarn_deletions_fini(struct tarn_deletions *deletions);
/* row lies within row_count. */
static inline bool tarn_deletions_has(const struct tarn_deletions *deletions, int64_t row)
{
    return (deletions->rows[row / 64] >> (row % 64) & 1) != 0;
}
void tarn_deletions_add(struct tarn_deletions *deletions, int64_t row);
/* The first deleted row at `row` or behind it; row_count where there is none. */
int64_t tarn_deletions_next(const struct tarn_deletions *deletions, int64_t row);

/* bytes: what lies in the index file from the vector's offset on, `length` + TARN_DELETION_FRAME_SIZE of them or all that there
 * are; `length` as the index manifest says. *out is written on success and untouched on failure. */
TARN_MUST struct tarn_status *tarn_deletions_decode(struct tarn_slice bytes, int64_t length,
                                                    int64_t row_count, struct tarn_deletions *out);
/* The bytes of one vector alone, as they lie, to be copied: its frame and checksum are right. */
TARN_MUST struct tarn_status *tarn_deletions_find(struct tarn_slice bytes, int64_t length,
                                                  struct tarn_slice *out);
/* Appends a vector; returns its length as the index manifest wants it. wide: the form of 64 bits. */
int64_t tarn_deletions_encode(const struct tarn_deletions *deletions, bool wide,
                              struct tarn_buf *out);

#endif
