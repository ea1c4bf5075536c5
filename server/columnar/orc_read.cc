/*
 * orc_read - rows of an ORC file, whoever wrote it.
 *
 * One stripe at a time. Arrow makes nanoseconds since 1970 of every time, so one outside 1677..2262 is refused, though
 * its column is of a type that could hold it: VALUE_INVALID, from the file's statistics before a row is read, or else
 * where it is met.
 */
#include "columnar/data_file.h"
#include "columnar/orc_tail.h"

#include <algorithm>
#include <arrow/adapters/orc/adapter.h>

namespace tarn
{

namespace
{

using arrow::adapters::orc::ORCFileReader;

const int kBatchRows = 8192, kBatchRowsMax = 1 << 20;
const int64_t kNanosMaxMs = INT64_MAX / 1000000 - 1;

class OrcReader : public FileReader
{
  public:
    OrcReader(FilePtr file, std::string what, int batch_row_count)
        : what_(std::move(what)), tail_(orc_tail(*file, what_)),
          batch_rows_(batch_row_count <= 0 ? kBatchRows : std::min(batch_row_count, kBatchRowsMax)),
          reader_(must(ORCFileReader::Open(file, memory_pool()), TARN_DATA_FILE_MALFORMED, what_)),
          schema_(must(reader_->ReadSchema(), TARN_DATA_FILE_MALFORMED, what_))
    {
        row_end_ = reader_->NumberOfRows();
        if (tail_.known && (tail_.row_count != row_end_ ||
                            tail_.columns[0].children.size() != (size_t)schema_->num_fields()))
            fail(TARN_DATA_FILE_MALFORMED, "%s: the ORC tail contradicts itself", what_.c_str());
    }
    SchemaPtr schema() override
    {
        return schema_;
    }
    void select(const std::vector<int> &fields, const std::vector<const struct tarn_type *> &types,
                int64_t row_begin, int64_t row_end) override;
    RecordBatchPtr next() override;

  private:
    bool open_stripe();
    bool leaves_nanos(size_t column) const;
    void must_read(const arrow::Status &status) const;
    RecordBatchPtr shape(const RecordBatchPtr &batch) const;

    std::string what_;
    OrcTail tail_;
    int batch_rows_;
    std::unique_ptr<ORCFileReader> reader_;
    std::shared_ptr<arrow::RecordBatchReader> stripe_; /* goes before reader_ */
    SchemaPtr schema_;
    std::vector<int> wanted_;    /* without doubles, ascending: what Arrow is asked for */
    std::vector<int> positions_; /* of each column in Arrow's batches */
    int64_t row_ = 0, row_end_ = 0, stripe_end_ = 0, stripe_number_ = 0, stripe_first_ = 0;
};

/* Do the statistics say that a column holds times that Arrow doesn't read? */
bool OrcReader::leaves_nanos(size_t column) const
{
    const OrcColumn &c = tail_.columns[column];
    bool leaves = c.has_times && (c.min_ms < -kNanosMaxMs || c.max_ms > kNanosMaxMs);
    for (size_t child : c.children)
        leaves = leaves || leaves_nanos(child);
    return leaves;
}

void OrcReader::must_read(const arrow::Status &status) const
{
    if (!status.ok() && status.message().find("for nanosecond resolution") != std::string::npos)
        fail(TARN_VALUE_INVALID,
             "%s: it holds a time outside 1677..2262, which Tarn can't read from ORC",
             what_.c_str());
    must(status, TARN_DATA_FILE_MALFORMED, what_);
}

void OrcReader::select(const std::vector<int> &fields,
                       const std::vector<const struct tarn_type *> &types, int64_t row_begin,
                       int64_t row_end)
{
    (void)types;
    wanted_ = fields;
    std::sort(wanted_.begin(), wanted_.end());
    wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());
    for (size_t i = 0; i < fields.size(); i++) {
        positions_.push_back(
            (int)(std::lower_bound(wanted_.begin(), wanted_.end(), fields[i]) - wanted_.begin()));
        if (tail_.known && leaves_nanos(tail_.columns[0].children[(size_t)fields[i]]))
            fail(TARN_VALUE_INVALID,
                 "%s: column %s holds a time outside 1677..2262, which Tarn can't read from ORC",
                 what_.c_str(), schema_->field(fields[i])->name().c_str());
    }
    row_end_ = row_end <= 0 ? row_end_ : std::min(row_end, row_end_);
    row_ = std::min(std::max<int64_t>(0, row_begin), row_end_);
    if (!wanted_.empty() && row_ < row_end_)
        must(reader_->Seek(row_), TARN_DATA_FILE_MALFORMED, what_);
}

/* The stripe of row_, from that row on; false at the end. */
bool OrcReader::open_stripe()
{
    for (; stripe_number_ < reader_->NumberOfStripes(); stripe_number_++) {
        int64_t rows = reader_->GetStripeInformation(stripe_number_).num_rows;
        if (rows < 0 || __builtin_add_overflow(stripe_first_, rows, &stripe_end_))
            break;
        stripe_first_ = stripe_end_;
        if (stripe_end_ > row_) {
            stripe_number_++;
            stripe_ = must(reader_->NextStripeReader(batch_rows_, wanted_),
                           TARN_DATA_FILE_MALFORMED, what_);
            return stripe_ != nullptr;
        }
    }
    return false;
}

RecordBatchPtr OrcReader::shape(const RecordBatchPtr &batch) const
{
    arrow::ArrayVector columns;
    arrow::FieldVector names;
    for (size_t i = 0; i < positions_.size(); i++) {
        if (positions_[i] >= batch->num_columns())
            fail(TARN_DATA_FILE_MALFORMED, "%s: a stripe has too few columns", what_.c_str());
        columns.push_back(batch->column(positions_[i]));
        names.push_back(batch->schema()->field(positions_[i]));
    }
    return arrow::RecordBatch::Make(arrow::schema(names), batch->num_rows(), columns);
}

RecordBatchPtr OrcReader::next()
{
    for (;;) {
        if (row_ >= row_end_)
            return nullptr;
        if (wanted_.empty()) { /* only the count of rows matters */
            int64_t n = std::min<int64_t>(batch_rows_, row_end_ - row_);
            row_ += n;
            return arrow::RecordBatch::Make(arrow::schema({}), n, arrow::ArrayVector());
        }
        RecordBatchPtr batch;
        if (stripe_ != nullptr)
            must_read(stripe_->ReadNext(&batch));
        if (batch == nullptr || batch->num_rows() == 0) {
            if (row_ < stripe_end_)
                fail(TARN_DATA_FILE_MALFORMED, "%s: a stripe ends %" PRId64 " rows early",
                     what_.c_str(), stripe_end_ - row_);
            if (!open_stripe())
                fail(TARN_DATA_FILE_MALFORMED, "%s: it ends %" PRId64 " rows early", what_.c_str(),
                     row_end_ - row_);
            continue;
        }
        if (batch->num_rows() > stripe_end_ - row_)
            fail(TARN_DATA_FILE_MALFORMED, "%s: a stripe has too many rows", what_.c_str());
        int64_t n = std::min(batch->num_rows(), row_end_ - row_);
        row_ += n;
        return shape(n == batch->num_rows() ? batch : batch->Slice(0, n));
    }
}

} // namespace

FileReaderPtr orc_file_reader(FilePtr file, const std::string &what, int batch_row_count)
{
    return FileReaderPtr(new OrcReader(std::move(file), what, batch_row_count));
}

} // namespace tarn
