/*
 * file_index_write - the indexes of a data file being written, as the table's options ask for them.
 *
 * Shape    bloom-filter and bitmap (versions 1 and 2), which file_index.h reads, and bsi, which others read, in one container. Options
 *          that ask for what isn't written (range-bitmap, keys of maps, types that an index doesn't take) are a refusal, by name.
 * Bytes    those that Java writes for the same rows: it goes through hash maps, whose order is taken over. Not where eight or
 *          more values (or columns) fall into one bin of such a map, which Java makes a tree.
 * Bounds   bitmaps and bsi hold at most TARN_FILE_INDEX_MEMORY_MAX bytes together; those that would need more are left out of that file, as
 *          are those of files with more than 2147483647 rows. Bloom filters have a fixed size, held against it by the options.
 * Threads  a writer belongs to one thread at a time; nothing here waits.
 * Source   docs/format.md, "File indexes"; org.apache.paimon.io.DataFileIndexWriter; bytes: test/golden/file_index/.
 */
#ifndef TARN_FORMAT_FILE_INDEX_WRITE_H
#define TARN_FORMAT_FILE_INDEX_WRITE_H

#include "format/options.h"
#include "format/value.h"

#define TARN_FILE_INDEX_MEMORY_MAX ((int64_t)64 << 20)

struct tarn_file_index_writer;
/* The schema and the options are borrowed as long as it lives. NULL: no index is asked for. */
struct tarn_file_index_writer *tarn_file_index_writer_new(const struct tarn_schema *schema,
                                                          const struct tarn_options *options);
void tarn_file_index_writer_free(struct tarn_file_index_writer *writer); /* NULL is fine */
/* The next row's value of the column that options->file_indexes[index] is on. */
void tarn_file_index_writer_add(struct tarn_file_index_writer *writer, size_t index,
                                const struct tarn_value *value);
/* Appends the container of all rows so far; nothing where no index is left. */
void tarn_file_index_writer_finish(struct tarn_file_index_writer *writer, struct tarn_buf *out);
/* Bytes of such a bloom filter; -1: more than there can be. *hash_count may be NULL. */
int64_t tarn_file_index_bloom_size(int32_t items, double fpp, int32_t *hash_count);

#endif
