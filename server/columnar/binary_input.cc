/*
 * binary_input - rows out of Parquet files and Arrow streams that users bring.
 *
 * Every value is converted exactly (convert.cc); the rows of those that can't be are bad rows. An Arrow
 * file is read as the stream that it contains, so both come through a pipe.
 */
#include "columnar/text.h"

#include <map>

#include <arrow/compute/api_vector.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>

namespace tarn
{

namespace
{

const char kFileMagic[] = "ARROW1\0\0"; /* before the stream in a file */
const int64_t kSliceRows = 65536;

/* The first fault of each row of a batch. */
class RowFaults : public BadValues
{
  public:
    std::map<int64_t, std::pair<std::string, std::string>> rows;
    std::string column;
    void bad(int64_t row, const std::string &reason) override
    {
        rows.emplace(row, std::make_pair(column, reason));
    }
};

class BatchInput : public Input
{
  public:
    BatchInput(const struct tarn_input_options *options, BadRows &bad, struct tarn_arena *arena)
        : name_(options->name), fields_(copy_fields(options->fields, options->field_count, arena)),
          field_count_(options->field_count),
          op_column_(options->op_column == NULL ? "" : options->op_column),
          only_keys_(options->only_keys_required), bad_(bad),
          schema_(input_schema(fields_, field_count_))
    {
        memcpy(refused_kinds_, options->refused_kinds, sizeof refused_kinds_);
    }
    struct tarn_batch *next(struct tarn_op *op) override;

  protected:
    /* Which column of the source each of the table's comes from; -1: none. */
    void match(const arrow::Schema &source);
    virtual RecordBatchPtr read(struct tarn_op *op) = 0; /* NULL at the end */

  private:
    int find(std::string_view name) const;
    RecordBatchPtr shape(const RecordBatchPtr &batch, RowFaults &faults);
    ArrayPtr kinds(const RecordBatchPtr &batch, RowFaults &faults);
    RecordBatchPtr without(const RecordBatchPtr &batch, const RowFaults &faults);

    std::string name_;
    const struct tarn_field *fields_;
    size_t field_count_;
    std::string op_column_;
    bool refused_kinds_[4];
    bool only_keys_;
    BadRows &bad_;
    SchemaPtr schema_;
    std::vector<int> source_;
    int op_source_ = -1;
    RecordBatchPtr pending_; /* of a large batch: what is still to come */
    int64_t row_ = 0;        /* of the file */
};

int BatchInput::find(std::string_view name) const
{
    for (size_t i = 0; i < field_count_; i++)
        if (view_of(fields_[i].name) == name)
            return (int)i;
    return -1;
}

void BatchInput::match(const arrow::Schema &source)
{
    source_.assign(field_count_, -1);
    for (int i = 0; i < source.num_fields(); i++) {
        const std::string &name = source.field(i)->name();
        int target = find(name);
        bool op = !op_column_.empty() && name == op_column_;
        if (target < 0 && !op) {
            std::vector<std::string> names;
            std::vector<const char *> all;
            for (size_t f = 0; f < field_count_; f++)
                names.push_back(string_of(fields_[f].name));
            for (const std::string &n : names)
                all.push_back(n.c_str());
            const char *nearest = tarn_nearest(name.c_str(), all.data(), all.size());
            fail(TARN_COLUMN_NOT_FOUND, "%s: the table has no column %s%s%s%s", name_.c_str(),
                 name.c_str(), nearest == NULL ? "" : "; did you mean ",
                 nearest == NULL ? "" : nearest, nearest == NULL ? "" : "?");
        }
        if ((target >= 0 && source_[(size_t)target] >= 0) || (op && op_source_ >= 0))
            fail(TARN_INPUT_MALFORMED, "%s: two columns are named %s", name_.c_str(), name.c_str());
        if (op)
            op_source_ = i;
        if (target >= 0)
            source_[(size_t)target] = i;
    }
    if (!op_column_.empty() && op_source_ < 0)
        fail(TARN_COLUMN_NOT_FOUND, "%s: there is no column %s with the row kinds", name_.c_str(),
             op_column_.c_str());
    for (size_t f = 0; f < field_count_; f++)
        if (source_[f] < 0 && !fields_[f].type->nullable && !only_keys_)
            fail(TARN_COLUMN_NOT_FOUND, "%s: there is no column %s, which is NOT NULL",
                 name_.c_str(), string_of(fields_[f].name).c_str());
}

ArrayPtr BatchInput::kinds(const RecordBatchPtr &batch, RowFaults &faults)
{
    int64_t n = batch->num_rows();
    std::vector<int8_t> out((size_t)n, 0);
    if (op_source_ >= 0) {
        static const struct tarn_type kText = {
            TARN_TYPE_VARCHAR, true, TARN_TYPE_LENGTH_MAX, 0, 0, {}, {}, NULL, NULL, NULL, 0};
        ConvertRules rules = {true, TARN_INPUT_MALFORMED, name_ + ": column " + op_column_};
        faults.column = op_column_;
        ArrayPtr text = convert(batch->column(op_source_), &kText, rules, faults);
        const arrow::BinaryArray &values = static_cast<const arrow::BinaryArray &>(*text);
        for (int64_t i = 0; i < n; i++) {
            std::string why;
            int kind = parse_kind(values.IsNull(i) ? "" : values.GetView(i), refused_kinds_, &why);
            if (kind < 0)
                faults.bad(i, why);
            out[(size_t)i] = (int8_t)kind;
        }
    }
    return arrow::MakeArray(arrow::ArrayData::Make(
        arrow::int8(), n, {nullptr, arrow::Buffer::FromVector(std::move(out))}, 0));
}

RecordBatchPtr BatchInput::shape(const RecordBatchPtr &batch, RowFaults &faults)
{
    arrow::ArrayVector out;
    for (size_t f = 0; f < field_count_; f++) {
        const struct tarn_type *type = fields_[f].type;
        faults.column = string_of(fields_[f].name);
        if (source_[f] < 0) {
            out.push_back(null_array(type, batch->num_rows()));
            continue;
        }
        ConvertRules rules = {true, TARN_INPUT_MALFORMED, name_ + ": column " + faults.column};
        ArrayPtr column = convert(batch->column(source_[f]), type, rules, faults);
        if (!type->nullable && column->null_count() != 0)
            for (int64_t i = 0; i < column->length(); i++)
                if (column->IsNull(i))
                    faults.bad(i, "NOT NULL, and the value is null");
        out.push_back(column);
    }
    out.push_back(kinds(batch, faults));
    return arrow::RecordBatch::Make(schema_, batch->num_rows(), out);
}

RecordBatchPtr BatchInput::without(const RecordBatchPtr &batch, const RowFaults &faults)
{
    arrow::Int64Builder good;
    for (int64_t i = 0; i < batch->num_rows(); i++)
        if (faults.rows.count(i) == 0)
            must(good.Append(i), TARN_MEMORY_EXHAUSTED, name_);
    ArrayPtr indices = must(good.Finish(), TARN_MEMORY_EXHAUSTED, name_);
    arrow::ArrayVector out;
    for (const ArrayPtr &column : batch->columns())
        out.push_back(must(
            arrow::compute::Take(*column, *indices, arrow::compute::TakeOptions::NoBoundsCheck()),
            TARN_INTERNAL, name_));
    return arrow::RecordBatch::Make(schema_, indices->length(), out);
}

struct tarn_batch *BatchInput::next(struct tarn_op *op)
{
    for (;;) {
        must(tarn_op_check(op));
        RecordBatchPtr batch = pending_ != nullptr ? std::move(pending_) : read(op);
        pending_ = nullptr;
        if (batch == nullptr)
            return NULL;
        if (batch->num_rows() > kSliceRows) {
            pending_ = batch->Slice(kSliceRows);
            batch = batch->Slice(0, kSliceRows);
        }
        RowFaults faults;
        RecordBatchPtr shaped = shape(batch, faults);
        for (const auto &fault : faults.rows)
            bad_.add(row_ + fault.first + 1, fault.second.first, fault.second.second);
        row_ += batch->num_rows();
        if (!faults.rows.empty())
            shaped = without(shaped, faults);
        if (shaped->num_rows() > 0)
            return export_batch(*shaped);
    }
}

class ParquetInput : public BatchInput
{
  public:
    ParquetInput(const struct tarn_input_options *options, const char *path, BadRows &bad,
                 struct tarn_arena *arena)
        : BatchInput(options, bad, arena)
    {
        std::shared_ptr<arrow::io::ReadableFile> file =
            must(arrow::io::ReadableFile::Open(path), TARN_IO_ERROR, options->name);
        file_ = parquet_open(file, TARN_INPUT_MALFORMED, options->name, 0);
        SchemaPtr schema = parquet_arrow_schema(*file_);
        match(*schema);
        std::vector<int> all;
        for (int i = 0; i < schema->num_fields(); i++)
            all.push_back(i);
        parquet_select(*file_, all, 0, 0);
    }

  protected:
    RecordBatchPtr read(struct tarn_op *op) override
    {
        return parquet_next(*file_);
    }

  private:
    ParquetFilePtr file_;
};

class ArrowInput : public BatchInput
{
  public:
    ArrowInput(struct tarn_op *op, const struct tarn_input_options *options, tarn_pull_fn pull,
               void *arg, BadRows &bad, struct tarn_arena *arena)
        : BatchInput(options, bad, arena), stream_(pull, arg, options->name)
    {
        stream_.open(op);
        match(*stream_.reader->schema());
    }

  protected:
    RecordBatchPtr read(struct tarn_op *op) override
    {
        return stream_.next(op);
    }

  private:
    ArrowStream stream_;
};

} // namespace

/* --- Arrow IPC --- */

ArrowStream::ArrowStream(tarn_pull_fn pull, void *arg, std::string name)
    : name_(std::move(name)), bytes_(std::make_shared<PullStream>(pull, arg))
{
}

void ArrowStream::must_read(const arrow::Status &status)
{
    if (!status.ok())
        bytes_->pending.rethrow();
    must(status, TARN_INPUT_MALFORMED, name_);
}

void ArrowStream::open(struct tarn_op *op)
{
    bytes_->op = op;
    arrow::Result<std::shared_ptr<arrow::Buffer>> head = bytes_->Read(8);
    must_read(head.status());
    if ((*head)->size() < 8)
        fail(TARN_INPUT_MALFORMED, "%s: too short for an Arrow stream", name_.c_str());
    if (memcmp((*head)->data(), kFileMagic, 8) != 0)
        bytes_->unread(std::string((const char *)(*head)->data(), 8));
    arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
    options.memory_pool = memory_pool();
    options.use_threads = false;
    options.max_recursion_depth = TARN_TYPE_DEPTH_MAX * 2;
    arrow::Result<std::shared_ptr<arrow::ipc::RecordBatchStreamReader>> opened =
        arrow::ipc::RecordBatchStreamReader::Open(bytes_, options);
    must_read(opened.status());
    reader = *opened;
}

RecordBatchPtr ArrowStream::next(struct tarn_op *op)
{
    RecordBatchPtr batch;
    bytes_->op = op;
    do
        must_read(reader->ReadNext(&batch));
    while (batch != nullptr && batch->num_rows() == 0);
    if (batch != nullptr)
        must_read(batch->ValidateFull()); /* offsets and sizes in it are somebody else's word */
    return batch;
}

std::unique_ptr<Input> arrow_open(struct tarn_op *op, const struct tarn_input_options *options,
                                  tarn_pull_fn pull, void *arg, BadRows &bad,
                                  struct tarn_arena *arena)
{
    return std::unique_ptr<Input>(new ArrowInput(op, options, pull, arg, bad, arena));
}

std::unique_ptr<Input> parquet_input_open(struct tarn_op *op,
                                          const struct tarn_input_options *options,
                                          const char *path, BadRows &bad, struct tarn_arena *arena)
{
    return std::unique_ptr<Input>(new ParquetInput(options, path, bad, arena));
}

} // namespace tarn
