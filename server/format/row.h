/*
 * row - Paimon's BinaryRow, its serialized form in metadata, its hash and the bucket of a row.
 *
 * Shape    the row proper is little-endian, padded with zeros to 8; "serialized" puts its arity
 *          before it as 4 bytes big-endian (partition, min/max key, statistics).
 * Errors   ROW_MALFORMED: lengths, offsets or arity that don't fit.
 * Source   docs/format.md, "BinaryRow"; vectors: at its end, held by test/unit/format/row_test.c.
 */
#ifndef TARN_FORMAT_ROW_H
#define TARN_FORMAT_ROW_H

#include "format/value.h"

#define TARN_ROW_EMPTY_SIZE 12 /* the serialized row without fields */

/* Appends the row proper. All types, nested ones included. A row is less than 2 GiB: who lets values in
 * holds their sizes against a limit. */
void tarn_row_encode(const struct tarn_type *const *types, const struct tarn_value *values,
                     size_t count, struct tarn_buf *out);
/* Appends arity and row. */
void tarn_row_serialize(const struct tarn_type *const *types, const struct tarn_value *values,
                        size_t count, struct tarn_buf *out);
/* Reads a serialized row of `count` atomic fields (arity must match); bytes are borrowed from `in`.
 * Nested types: ROW_MALFORMED is not raised; the value is left null (statistics never hold them). */
TARN_MUST struct tarn_status *tarn_row_deserialize(struct tarn_slice in,
                                                   const struct tarn_type *const *types,
                                                   size_t count, struct tarn_value *values);
struct tarn_slice tarn_row_empty(void); /* the serialized empty row */
/* Bytes that a value takes among an array's elements: 1, 2, 4 or 8, where it may stand elsewhere as an offset and a size. */
size_t tarn_row_element_size(const struct tarn_type *type);

int32_t tarn_row_hash(struct tarn_slice row);     /* of the row proper, size a multiple of 8 */
int32_t tarn_bytes_hash(struct tarn_slice bytes); /* Paimon's variant for any size */

enum tarn_bucket_function { TARN_BUCKET_DEFAULT, TARN_BUCKET_MOD, TARN_BUCKET_HIVE };
/* May the function hash columns of these types? mod: one INT or BIGINT; hive: no timestamps. Whoever
 * takes a bucket key from a user or a file asks first. */
bool tarn_bucket_takes(enum tarn_bucket_function function, const struct tarn_type *const *types,
                       size_t count);
/* The bucket of a row of bucket key values, 0 .. bucket_count - 1 (bucket_count > 0). */
int32_t tarn_bucket_of(enum tarn_bucket_function function, const struct tarn_type *const *types,
                       const struct tarn_value *values, size_t count, int32_t bucket_count);

#endif
