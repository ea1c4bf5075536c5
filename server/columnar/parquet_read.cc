/*
 * parquet_read - rows of a Parquet file, whoever wrote it.
 *
 * One row group at a time, buffered streams, no threads: memory is a few pages a column. Columns are
 * found by name, never by field id (format.md 2.3).
 */
#include "columnar/data_file.h"

#include <algorithm>
#include <parquet/api/reader.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>

namespace tarn
{

namespace
{

const int kBatchRows = 8192;
const int kBatchRowsMax = 1 << 20;
const int64_t kStreamBuffer = 1 << 20;        /* a column, at most */
const int64_t kStreamBuffersTotal = 16 << 20; /* all columns together, about */
const int64_t kStreamBufferMin = 64 << 10;
const int64_t kJulianEpoch = 2440588;

void leaves_of(const parquet::arrow::SchemaField &field, std::vector<int> &out)
{
    if (field.is_leaf())
        out.push_back(field.column_index);
    for (const parquet::arrow::SchemaField &child : field.children)
        leaves_of(child, out);
}

} // namespace

class ParquetFile
{
  public:
    std::unique_ptr<parquet::arrow::FileReader> reader;
    std::unique_ptr<arrow::RecordBatchReader>
        group; /* of the row group being read; goes before reader */
    enum tarn_reason reason;
    std::string what;
    int batch_rows;
    std::vector<int> fields;    /* as asked for */
    std::vector<int> leaves;    /* of all of them, ascending: what Arrow is asked for */
    std::vector<int> positions; /* of each of `fields` in Arrow's batches */
    int next_group = 0;
    int64_t row = 0; /* of the file: where the next batch starts */
    int64_t row_begin = 0, row_end = 0;
    int64_t group_end = 0;

    void check_int96(int group_index);
    bool open_group();
    RecordBatchPtr next_of_group();
    RecordBatchPtr cut(const RecordBatchPtr &batch, int64_t start);
};

void ParquetFileDrop::operator()(ParquetFile *file) const
{
    if (file != NULL)
        file->group.reset();
    delete file;
}

ParquetFilePtr parquet_open(std::shared_ptr<arrow::io::RandomAccessFile> source,
                            enum tarn_reason reason, const std::string &what, int batch_row_count)
{
    ParquetFilePtr file(new ParquetFile);
    file->reason = reason;
    file->what = what;
    file->batch_rows = batch_row_count <= 0 ? kBatchRows : std::min(batch_row_count, kBatchRowsMax);

    parquet::ReaderProperties properties(memory_pool());
    properties.enable_buffered_stream();
    properties.set_buffer_size(kStreamBufferMin);
    parquet::ArrowReaderProperties arrow_properties = parquet::default_arrow_reader_properties();
    arrow_properties.set_use_threads(false);
    arrow_properties.set_pre_buffer(false);
    arrow_properties.set_batch_size(file->batch_rows);

    std::unique_ptr<parquet::ParquetFileReader> raw =
        parquet::ParquetFileReader::Open(source, properties);
    int columns = std::max(1, raw->metadata()->num_columns());
    properties.set_buffer_size(
        std::clamp(kStreamBuffersTotal / columns, kStreamBufferMin, kStreamBuffer));
    raw = parquet::ParquetFileReader::Open(source, properties, raw->metadata());
    file->reader =
        must(parquet::arrow::FileReader::Make(memory_pool(), std::move(raw), arrow_properties),
             reason, what);
    return file;
}

SchemaPtr parquet_arrow_schema(ParquetFile &file)
{
    SchemaPtr schema;
    must(file.reader->GetSchema(&schema), file.reason, file.what);
    return schema;
}

void parquet_select(ParquetFile &file, const std::vector<int> &fields, int64_t row_begin,
                    int64_t row_end)
{
    const std::vector<parquet::arrow::SchemaField> &all = file.reader->manifest().schema_fields;
    std::vector<int> sorted = fields;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (int field : sorted)
        leaves_of(all[(size_t)field], file.leaves);
    for (int field : fields)
        file.positions.push_back(
            (int)(std::lower_bound(sorted.begin(), sorted.end(), field) - sorted.begin()));
    file.fields = fields;
    int64_t rows = file.reader->parquet_reader()->metadata()->num_rows();
    file.row_begin = std::max<int64_t>(0, row_begin);
    file.row_end = row_end <= 0 ? rows : std::min(row_end, rows);
}

/* Arrow wraps an INT96 that nanoseconds since 1970 can't hold; so look first. */
void ParquetFile::check_int96(int group_index)
{
    parquet::ParquetFileReader *raw = reader->parquet_reader();
    std::shared_ptr<parquet::RowGroupReader> row_group;
    for (int leaf : leaves) {
        if (raw->metadata()->schema()->Column(leaf)->physical_type() != parquet::Type::INT96)
            continue;
        if (row_group == nullptr)
            row_group = raw->RowGroup(group_index);
        std::shared_ptr<parquet::ColumnReader> column = row_group->Column(leaf);
        parquet::Int96Reader *values = static_cast<parquet::Int96Reader *>(column.get());
        std::vector<parquet::Int96> chunk(4096);
        std::vector<int16_t> def(chunk.size()), rep(chunk.size());
        while (values->HasNext()) {
            int64_t got = 0;
            int64_t levels = values->ReadBatch((int64_t)chunk.size(), def.data(), rep.data(),
                                               chunk.data(), &got);
            for (int64_t i = 0; i < got; i++) {
                int64_t nanos;
                memcpy(&nanos, &chunk[(size_t)i], 8);
                __int128 ns = ((__int128)(int32_t)chunk[(size_t)i].value[2] - kJulianEpoch) *
                                  86400000000000LL +
                              nanos;
                if (ns < INT64_MIN || ns > INT64_MAX)
                    fail(TARN_VALUE_INVALID,
                         "%s: column %s holds a time outside 1677..2262, which Tarn can't hold",
                         what.c_str(),
                         raw->metadata()->schema()->Column(leaf)->path()->ToDotString().c_str());
            }
            if (levels == 0 && got == 0)
                fail(reason, "%s: an INT96 column ends early", what.c_str());
        }
    }
}

/* Steps to the next row group with wanted rows; false at the end. */
bool ParquetFile::open_group()
{
    std::shared_ptr<parquet::FileMetaData> metadata = reader->parquet_reader()->metadata();
    for (; next_group < metadata->num_row_groups(); next_group++) {
        int64_t rows = metadata->RowGroup(next_group)->num_rows();
        if (rows < 0 || __builtin_add_overflow(row, rows, &group_end))
            fail(reason, "%s: row group %d has %" PRId64 " rows", what.c_str(), next_group, rows);
        if (row >= row_end)
            return false;
        if (group_end <= row_begin || rows == 0) {
            row = group_end;
            continue;
        }
        check_int96(next_group);
        if (!leaves.empty())
            group = must(reader->GetRecordBatchReader({next_group}, leaves), reason, what);
        next_group++;
        return true;
    }
    return false;
}

/* Keeps the wanted rows of a batch whose first row is row `start` of the file. NULL: none. */
RecordBatchPtr ParquetFile::cut(const RecordBatchPtr &batch, int64_t start)
{
    int64_t from = std::max<int64_t>(0, row_begin - start);
    int64_t to = std::min(batch->num_rows(), row_end - start);
    if (from >= to)
        return nullptr;
    return from == 0 && to == batch->num_rows() ? batch : batch->Slice(from, to - from);
}

RecordBatchPtr ParquetFile::next_of_group()
{
    RecordBatchPtr batch;
    if (leaves.empty()) { /* none of the columns is in the file: only the count of rows matters */
        int64_t n = std::min<int64_t>(batch_rows, group_end - row);
        return n == 0 ? nullptr
                      : arrow::RecordBatch::Make(arrow::schema({}), n, arrow::ArrayVector());
    }
    if (group == nullptr)
        return nullptr;
    must(group->ReadNext(&batch), reason, what);
    if (batch == nullptr)
        return nullptr;
    arrow::ArrayVector columns;
    arrow::FieldVector names;
    for (int position : positions) {
        if (position >= batch->num_columns() ||
            batch->column(position)->length() != batch->num_rows())
            fail(reason, "%s: columns have different counts of rows", what.c_str());
        columns.push_back(batch->column(position));
        names.push_back(batch->schema()->field(position));
    }
    return arrow::RecordBatch::Make(arrow::schema(names), batch->num_rows(), columns);
}

RecordBatchPtr parquet_next(ParquetFile &file)
{
    for (;;) {
        if (file.row >= file.row_end)
            return nullptr;
        RecordBatchPtr batch = file.row < file.group_end ? file.next_of_group() : nullptr;
        if (batch == nullptr || batch->num_rows() == 0) {
            if (file.row < file.group_end)
                fail(file.reason, "%s: row group %d ends %" PRId64 " rows early", file.what.c_str(),
                     file.next_group - 1, file.group_end - file.row);
            file.group.reset();
            if (!file.open_group())
                return nullptr;
            continue;
        }
        int64_t start = file.row;
        file.row += batch->num_rows();
        if (file.row > file.group_end)
            fail(file.reason, "%s: row group %d has too many rows", file.what.c_str(),
                 file.next_group - 1);
        batch = file.cut(batch, start);
        if (batch != nullptr)
            return batch;
    }
}

namespace
{

class ParquetFileReader : public FileReader
{
  public:
    explicit ParquetFileReader(ParquetFilePtr file) : file_(std::move(file))
    {
    }
    SchemaPtr schema() override
    {
        return parquet_arrow_schema(*file_);
    }
    void select(const std::vector<int> &fields, const std::vector<const struct tarn_type *> &types,
                int64_t row_begin, int64_t row_end) override
    {
        (void)types;
        parquet_select(*file_, fields, row_begin, row_end);
    }
    RecordBatchPtr next() override
    {
        return parquet_next(*file_);
    }

  private:
    ParquetFilePtr file_;
};

} // namespace

FileReaderPtr parquet_file_reader(FilePtr file, const std::string &what, int batch_row_count)
{
    return FileReaderPtr(new ParquetFileReader(
        parquet_open(std::move(file), TARN_DATA_FILE_MALFORMED, what, batch_row_count)));
}

} // namespace tarn
