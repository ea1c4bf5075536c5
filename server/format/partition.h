/*
 * partition - partition rows as directory names and as text, and where a bucket's files lie.
 *
 * Source   docs/format.md, "Partition directory names"; the manifest's row is the truth, the
 *          directory name only its place.
 */
#ifndef TARN_FORMAT_PARTITION_H
#define TARN_FORMAT_PARTITION_H

#include "format/manifest.h"
#include "format/options.h"
#include "format/row.h"
#include "format/schema.h"

/* Appends "dt=2024-05-14/hour=3/" ("" where unpartitioned) for a serialized partition row. */
TARN_MUST struct tarn_status *tarn_partition_path(const struct tarn_schema *schema,
                                                  const struct tarn_options *options,
                                                  struct tarn_slice partition,
                                                  struct tarn_buf *out);
/* Appends "[data dir/]partition/bucket-N" relative to the table, no slash at the end. */
TARN_MUST struct tarn_status *tarn_bucket_path(const struct tarn_schema *schema,
                                               const struct tarn_options *options,
                                               struct tarn_slice partition, int32_t bucket,
                                               struct tarn_buf *out);
/* Where an index file lies: in the table's folder, or a URI; in the arena. */
TARN_MUST struct tarn_status *tarn_index_file_path(const struct tarn_schema *schema,
                                                   const struct tarn_options *options,
                                                   const struct tarn_index_file *file,
                                                   struct tarn_arena *arena,
                                                   struct tarn_slice *out);
/* For people: dt=2024-05-14,hour=3 with values as tarn_value_print. Appends. */
TARN_MUST struct tarn_status *tarn_partition_print(const struct tarn_schema *schema,
                                                   struct tarn_slice partition,
                                                   struct tarn_buf *out);
/* Types of the partition columns, in partition key order, in the arena. */
const struct tarn_type **tarn_partition_types(const struct tarn_schema *schema,
                                              struct tarn_arena *arena);
void tarn_path_escape(struct tarn_slice text, struct tarn_buf *out);
void tarn_path_unescape(struct tarn_slice text, struct tarn_buf *out);

#endif
