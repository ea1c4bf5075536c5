/*
 * parquet_read - rows of a Parquet file, whoever wrote it; and data files of a table by extension.
 *
 * One row group at a time, buffered streams, no threads: memory is a few pages a column. Columns are
 * found by name, never by field id (format.md 2.3).
 */
#include "columnar/internal.h"

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

/* --- data files of a table --- */

namespace
{

/* A data file's value that can't be held is a failure of the read. */
class NoBadValues : public BadValues
{
  public:
    explicit NoBadValues(std::string what) : what_(std::move(what))
    {
    }
    void bad(int64_t row, const std::string &reason) override
    {
        fail(TARN_VALUE_INVALID, "%s: %s", what_.c_str(), reason.c_str());
    }

  private:
    std::string what_;
};

struct WantedColumn {
    std::string name;
    const struct tarn_type *file_type, *type;
    int position; /* in the batches of parquet_next, or -1 */
};

} // namespace

struct DataFileSource {
    struct tarn_source source; /* first */
    std::string what;
    struct tarn_arena *arena;
    std::vector<WantedColumn> columns;
    SchemaPtr schema; /* of what comes out */
    std::shared_ptr<StoreFile> file;
    ParquetFilePtr parquet; /* goes before file */

    DataFileSource() : source(), arena(tarn_arena_new())
    {
    }
    ~DataFileSource()
    {
        parquet.reset();
        file.reset();
        tarn_arena_free(arena);
    }
    void plan(const struct tarn_file_read *spec);
    RecordBatchPtr shape(const RecordBatchPtr &batch);
};

void DataFileSource::plan(const struct tarn_file_read *spec)
{
    SchemaPtr physical = parquet_arrow_schema(*parquet);
    std::vector<int> fields;
    arrow::FieldVector out;
    for (size_t i = 0; i < spec->column_count; i++) {
        const struct tarn_column_read *c = &spec->columns[i];
        WantedColumn wanted = {string_of(c->file_name), copy_type(c->file_type, arena),
                               copy_type(c->type, arena), -1};
        out.push_back(arrow::field(wanted.name, arrow_type(wanted.type), wanted.type->nullable));
        if (c->file_name.data != NULL) {
            std::vector<int> found = physical->GetAllFieldIndices(wanted.name);
            if (found.size() > 1)
                fail(TARN_DATA_FILE_MALFORMED, "%s: two columns are named %s", what.c_str(),
                     wanted.name.c_str());
            if (found.size() == 1) {
                if (wanted.file_type != NULL && !cast_known(wanted.file_type, wanted.type))
                    fail(TARN_UNSUPPORTED_FEATURE,
                         "%s: column %s was written as %s; reading it as %s is not done yet",
                         what.c_str(), wanted.name.c_str(), type_text(wanted.file_type).c_str(),
                         type_text(wanted.type).c_str());
                wanted.position = (int)fields.size();
                fields.push_back(found[0]);
            }
        }
        columns.push_back(wanted);
    }
    schema = arrow::schema(out);
    parquet_select(*parquet, fields, spec->row_begin, spec->row_end);
}

RecordBatchPtr DataFileSource::shape(const RecordBatchPtr &batch)
{
    arrow::ArrayVector out;
    for (const WantedColumn &c : columns) {
        if (c.position < 0) {
            out.push_back(null_array(c.type, batch->num_rows()));
            continue;
        }
        const struct tarn_type *file_type = c.file_type == NULL ? c.type : c.file_type;
        ConvertRules rules = {false, TARN_DATA_FILE_MALFORMED, what + ": column " + c.name};
        NoBadValues bad(rules.what);
        out.push_back(
            cast(convert(batch->column(c.position), file_type, rules, bad), file_type, c.type));
    }
    return arrow::RecordBatch::Make(schema, batch->num_rows(), out);
}

static struct tarn_status *data_file_next(struct tarn_source *self, struct tarn_op *op,
                                          struct tarn_batch **out)
{
    DataFileSource *source = (DataFileSource *)self;
    TARN_TRY(tarn_op_check(op));
    struct tarn_status *status = guarded(TARN_DATA_FILE_MALFORMED, source->what, [&] {
        source->file->op = op;
        RecordBatchPtr batch = parquet_next(*source->parquet);
        *out = batch == nullptr ? NULL : export_batch(*source->shape(batch));
    });
    return told_by(source->file, status);
}

static void data_file_close(struct tarn_source *self)
{
    delete (DataFileSource *)self;
}

/* format.md 7.1: the last extension, or the one before if that names a compression. */
static std::string extension_of(const char *key)
{
    std::string name = key;
    name = name.substr(name.rfind('/') + 1);
    for (int i = 0; i < 2; i++) {
        size_t dot = name.rfind('.');
        if (dot == std::string::npos)
            return "";
        std::string extension = name.substr(dot + 1);
        if (extension != "gz" && extension != "zst" && extension != "lz4" &&
            extension != "snappy" && extension != "bz2")
            return extension;
        name.resize(dot);
    }
    return "";
}

static struct tarn_status *open_store_file(struct tarn_store *store, struct tarn_op *op,
                                           const char *key, std::shared_ptr<StoreFile> *out)
{
    struct tarn_store_reader *reader = NULL;
    TARN_TRY(tarn_store_reader_open(store, op, key, &reader));
    *out = std::make_shared<StoreFile>(reader);
    (*out)->op = op;
    return TARN_OK;
}

} // namespace tarn

struct tarn_status *tarn_file_reader_open(struct tarn_store *store, struct tarn_op *op,
                                          const char *key, const struct tarn_file_read *spec,
                                          struct tarn_source **out)
{
    using namespace tarn;
    std::string extension = extension_of(key);
    if (extension != "parquet")
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "%s: data files of format %s are not read yet", key,
                               extension.empty() ? "unknown" : extension.c_str());
    std::shared_ptr<StoreFile> file;
    TARN_TRY(open_store_file(store, op, key, &file));
    struct tarn_status *status = guarded(TARN_DATA_FILE_MALFORMED, key, [&] {
        std::unique_ptr<DataFileSource> source(new DataFileSource);
        source->source.next = data_file_next;
        source->source.close = data_file_close;
        source->what = key;
        source->file = file;
        source->parquet = parquet_open(file, TARN_DATA_FILE_MALFORMED, key, spec->batch_row_count);
        source->plan(spec);
        *out = &source.release()->source;
    });
    if (status == TARN_OK)
        return TARN_OK;
    struct tarn_status *told = guarded(TARN_INTERNAL, "", [&] { file->pending.rethrow(); });
    if (told == TARN_OK)
        return status;
    tarn_status_free(status);
    return told;
}
