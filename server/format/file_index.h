/*
 * file_index - what the index of a data file proves: that none of its rows can pass a predicate.
 *
 * Shape    a container of indexes by column name and type, whole in a manifest entry (embedded_index) or
 *          in a file beside the data file (tarn_file_index_side). Read are bloom-filter (=, <=>, IN) and
 *          bitmap, versions 1 and 2 (every comparison, IN, LIKE, IS NULL; AND and OR row by row); other
 *          indexes, columns the file hasn't got, and columns whose type has changed since, other than
 *          grown wider, prove nothing.
 * Logic    of an index only "no row" is believed, and three-valued: a row passes where the predicate is
 *          true. What is not known, too large, or beyond the work limit below may match.
 * Primary  an index is about all rows a file holds, also those a newer file overrides or deletes: as with
 * keys     statistics, files that are merged with others may be left out only all together.
 * Bounds   lengths, counts and offsets are held against the bytes; a call looks at no more than
 *          TARN_FILE_INDEX_STEPS_MAX values and holds TARN_FILE_INDEX_ROWS_MAX rows of sets of rows.
 * Threads  any; nothing here waits. Memory it takes it gives back.
 * Errors   FILE_INDEX_MALFORMED names what is wrong. Whoever gets it may read the file as if it had no
 *          index: the rows are not in doubt.
 * Source   docs/format.md, "File indexes"; org.apache.paimon.fileindex; bytes: test/golden/file_index/.
 */
#ifndef TARN_FORMAT_FILE_INDEX_H
#define TARN_FORMAT_FILE_INDEX_H

#include "format/manifest.h"
#include "format/predicate.h"

#define TARN_FILE_INDEX_STEPS_MAX (8 << 20)
#define TARN_FILE_INDEX_ROWS_MAX (256 << 20) /* in all sets together: 32 MiB */

struct tarn_file_index_verdict {
    bool may_match;    /* false: proven that no row passes; then, for who asks why: */
    int column;        /* a column of the predicate's schema */
    const char *index; /* and the index on it that ruled the file out: "bloom-filter", "bitmap" */
};

/* May an index say anything about this predicate? False: an index needn't be fetched at all. */
bool tarn_file_index_helps(const struct tarn_predicate *where);
/* The one file beside the data file that holds its index; absent: there is none, or it is embedded, or
 * there is more than one, which nobody writes. */
struct tarn_slice tarn_file_index_side(const struct tarn_data_file *file);
/* Judges `where`, bound to `schema`, by the bytes of a container. file_schema: the one the file was
 * written by; columns are matched by field id. row_count: of the file. */
TARN_MUST struct tarn_status *tarn_file_index_may_match(
    struct tarn_slice bytes, const struct tarn_predicate *where, const struct tarn_schema *schema,
    const struct tarn_schema *file_schema, int64_t row_count, struct tarn_file_index_verdict *out);

#endif
