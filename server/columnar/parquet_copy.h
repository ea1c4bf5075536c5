/*
 * parquet_copy - internal: row groups that go from one Parquet file into another as the bytes that they are.
 *
 * Shape    a column chunk keeps its pages; of its metadata only offsets change. What lies outside of chunks
 *          (bloom filters, page indexes) stays behind, and nothing points to it any more: readers can do without.
 * Checked  chunks lie within the file; page headers lead from a chunk's first byte to its last and count its
 *          values; a page that has a checksum has the right one. Else DATA_FILE_MALFORMED: file, row group, column.
 * Source   parquet.thrift of parquet-format 2.10.
 */
#ifndef TARN_COLUMNAR_PARQUET_COPY_H
#define TARN_COLUMNAR_PARQUET_COPY_H

#include "columnar/internal.h"
#include "columnar/parquet_stats.h"

#include <parquet/metadata.h>

namespace tarn
{

struct CopyChunk {
    int64_t begin = 0, size = 0; /* of its pages */
    int64_t value_count = 0;
    int64_t null_count = -1; /* -1: not said */
};

struct CopyGroup {
    int64_t row_count = 0, size = 0; /* size: of all chunks */
    bool elsewhere = false;          /* a chunk lies in another file, or is encrypted */
    std::vector<CopyChunk> chunks;
    std::string_view raw; /* the RowGroup as it lies in the footer */
};

/* The first row groups of a footer, without its length and magic; `raw` points into it. Chunks lie in front of `limit`. */
std::vector<CopyGroup> copy_groups(std::string_view footer, int64_t limit, size_t most);
CopyGroup copy_group(std::string_view raw); /* one of them again, checked before */
/* A RowGroup whose chunks begin at `begins`. */
void copy_group_write(const CopyGroup &group, const std::vector<int64_t> &begins, size_t ordinal,
                      std::string &out);
/* `footer` with other row groups, each written by copy_group_write. */
std::string copy_footer(std::string_view footer, const std::vector<std::string> &groups,
                        int64_t row_count);

} // namespace tarn

/* A file that is open for copying. */
struct tarn_file_copy {
    std::string what; /* its key, for messages */
    std::shared_ptr<tarn::StoreFile> file;
    std::string footer;
    std::shared_ptr<parquet::FileMetaData> metadata;
    std::vector<tarn::CopyGroup> groups;
    std::vector<struct tarn_row_group> sizes; /* of groups, for the caller */
    std::vector<bool> bounded;                /* columns without NaN, as the caller knows */
    std::vector<tarn::ColumnFacts> facts;     /* of the spec's columns: their types */
    int64_t row_count = 0;

    /* Passes on the bytes of a chunk, checked. */
    void chunk(size_t group, size_t leaf,
               const std::function<void(const uint8_t *, int64_t)> &push);
};

#endif
