/*
 * data_file - internal: what each format's reader and writer of data files is to data_read.cc and data_write.cc.
 *
 * A reader gives batches of the wanted top-level columns as the file has them (convert.cc makes them
 * canonical); a writer takes canonical ones. No batch is empty.
 */
#ifndef TARN_COLUMNAR_DATA_FILE_H
#define TARN_COLUMNAR_DATA_FILE_H

#include "columnar/internal.h"

#include <memory>

namespace tarn
{

class FileReader
{
  public:
    virtual ~FileReader() = default;
    virtual SchemaPtr schema() = 0; /* of the file; only the names of its columns are certain */
    /* By position in the schema; types: those that the table's schema of the time gave them, which outlive the
     * reader. row_end 0: all. */
    virtual void select(const std::vector<int> &fields,
                        const std::vector<const struct tarn_type *> &types, int64_t row_begin,
                        int64_t row_end) = 0;
    virtual RecordBatchPtr next() = 0; /* NULL at the end; columns as selected */
};
using FileReaderPtr = std::unique_ptr<FileReader>;
using FilePtr = std::shared_ptr<arrow::io::RandomAccessFile>;

FileReaderPtr parquet_file_reader(FilePtr file, const std::string &what, int batch_row_count);
FileReaderPtr orc_file_reader(FilePtr file, const std::string &what, int batch_row_count);
FileReaderPtr avro_file_reader(FilePtr file, const std::string &what, int batch_row_count);

class FileWriter
{
  public:
    virtual ~FileWriter() = default;
    virtual void add(const struct tarn_batch *batch) = 0;
    /* A row group of another file, of a format where row groups are copied. */
    virtual void copy(struct tarn_file_copy &from, size_t group)
    {
        (void)from;
        fail(TARN_INTERNAL, "row group %zu is not of this format", group);
    }
    virtual int64_t size() const = 0; /* bytes so far, about */
    virtual void finish(struct tarn_arena *arena, struct tarn_file_result *out) = 0;
};
using FileWriterPtr = std::unique_ptr<FileWriter>;

FileWriterPtr parquet_file_writer(std::shared_ptr<Sink> sink, const struct tarn_file_write *spec);
FileWriterPtr orc_file_writer(std::shared_ptr<Sink> sink, const struct tarn_file_write *spec);
FileWriterPtr avro_file_writer(std::shared_ptr<Sink> sink, const struct tarn_file_write *spec);

/* The columns of a file being written: their names and canonical types, and what becomes known of them. */
class Columns
{
  public:
    explicit Columns(const struct tarn_file_write *spec);
    ~Columns()
    {
        tarn_arena_free(arena_);
    }
    Columns(const Columns &) = delete;
    /* The batch under the canonical schema, with its nulls checked and its values looked at for bounds. */
    RecordBatchPtr take(const struct tarn_batch *batch);
    struct tarn_column_stats *stats(struct tarn_arena *arena) const;
    SchemaPtr schema;
    const struct tarn_field *fields; /* names, ids, types */
    size_t count;
    int64_t row_count = 0;

  private:
    struct Bounds {
        bool any = false, unknown = false; /* a value was seen; no bounds can be given */
        __int128 min = 0, max = 0;         /* whatever is ordered as whole numbers */
        double real_min = 0, real_max = 0;
        std::string text_min, text_max;
        int64_t null_count = 0;
    };
    static void see(const arrow::Array &column, const struct tarn_type *type, Bounds &bounds);
    std::vector<Bounds> bounds_;
    struct tarn_arena *arena_;
};

} // namespace tarn

#endif
