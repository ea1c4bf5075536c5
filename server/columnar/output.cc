/* output - rows for users: CSV, JSON lines, Parquet, Arrow IPC streams. */
#include "columnar/text.h"

#include <arrow/ipc/writer.h>

namespace tarn
{

namespace
{

const size_t kPushSize = 256 << 10; /* text is handed over in pieces of about this size */

class Output
{
  public:
    Output(const struct tarn_field *fields, size_t count, tarn_push_fn push, void *arg)
        : arena_(tarn_arena_new()), fields_(copy_fields(fields, count, arena_)), count_(count),
          sink_(std::make_shared<Sink>([push, arg](struct tarn_op *op, struct tarn_slice bytes) {
              return push(arg, op, bytes);
          }))
    {
    }
    virtual ~Output()
    {
        tarn_arena_free(arena_);
    }
    virtual void open() = 0;
    virtual void add(const struct tarn_batch *batch) = 0;
    virtual void finish() = 0;
    Sink &sink()
    {
        return *sink_;
    }

  protected:
    struct tarn_arena *arena_;
    const struct tarn_field *fields_;
    size_t count_;
    std::shared_ptr<Sink> sink_;
};

class TextOutput : public Output
{
  public:
    using Output::Output;
    ~TextOutput() override
    {
        tarn_buf_drop(&text_);
    }
    void finish() override
    {
        flush();
        must(sink_->flush(), TARN_IO_ERROR, "output");
    }

  protected:
    void flush()
    {
        must(sink_->Write(text_.data, (int64_t)text_.size), TARN_IO_ERROR, "output");
        tarn_buf_clear(&text_);
    }
    void put(std::string_view s)
    {
        tarn_buf_add(&text_, s.data(), s.size());
    }
    struct tarn_buf text_ = {};
};

class CsvOutput : public TextOutput
{
  public:
    using TextOutput::TextOutput;
    void open() override
    {
        for (size_t i = 0; i < count_; i++) {
            put(i > 0 ? "," : "");
            put_field(view_of(fields_[i].name));
        }
        put("\n");
    }
    void add(const struct tarn_batch *batch) override;

  private:
    void put_field(std::string_view s);
    struct tarn_buf value_ = {};

  public:
    ~CsvOutput() override
    {
        tarn_buf_drop(&value_);
    }
};

/* Quotes where a reader would see something else: also the empty text and "null". */
void CsvOutput::put_field(std::string_view s)
{
    if (!s.empty() && s != "null" && s.find_first_of(",\"\r\n") == std::string_view::npos) {
        put(s);
        return;
    }
    put("\"");
    for (size_t at = 0; at < s.size();) {
        size_t quote = std::min(s.find('"', at), s.size());
        put(s.substr(at, quote - at));
        put(quote < s.size() ? "\"\"" : "");
        at = quote + 1;
    }
    put("\"");
}

void CsvOutput::add(const struct tarn_batch *batch)
{
    for (int64_t row = 0; row < batch->row_count; row++) {
        for (size_t i = 0; i < count_; i++) {
            const struct ArrowArray *column = tarn_batch_column(batch, (int)i);
            enum tarn_type_id id = fields_[i].type->id;
            if (i > 0)
                tarn_buf_add_byte(&text_, ',');
            if (tarn_column_is_null(column, row))
                continue;
            if (id >= TARN_TYPE_DECIMAL &&
                id <= TARN_TYPE_TIMESTAMP_LTZ) { /* nothing in it needs a quote */
                print_value(column, fields_[i].type, row, &text_);
                continue;
            }
            tarn_buf_clear(&value_);
            print_value(column, fields_[i].type, row, &value_);
            put_field(view_of(tarn_buf_slice(&value_)));
        }
        tarn_buf_add_byte(&text_, '\n');
        if (text_.size >= kPushSize)
            flush();
    }
}

class JsonOutput : public TextOutput
{
  public:
    using TextOutput::TextOutput;
    void open() override
    {
        for (size_t i = 0; i < count_; i++) {
            struct tarn_buf name = {};
            print_json_text(view_of(fields_[i].name), &name);
            names_.push_back(std::string(i == 0 ? "{" : ", ") + string_of(tarn_buf_slice(&name)) +
                             ": ");
            tarn_buf_drop(&name);
        }
    }
    void add(const struct tarn_batch *batch) override
    {
        for (int64_t row = 0; row < batch->row_count; row++) {
            put(count_ == 0 ? "{" : "");
            for (size_t i = 0; i < count_; i++) {
                put(names_[i]);
                print_json(tarn_batch_column(batch, (int)i), fields_[i].type, row, &text_);
            }
            put("}\n");
            if (text_.size >= kPushSize)
                flush();
        }
    }

  private:
    std::vector<std::string> names_;
};

class ParquetOutput : public Output
{
  public:
    using Output::Output;
    void open() override
    {
        std::vector<struct tarn_column_write> columns;
        for (size_t i = 0; i < count_; i++)
            columns.push_back({fields_[i].name, fields_[i].id, fields_[i].type});
        struct tarn_file_write spec = {"parquet", "zstd", 1, 0, columns.data(), count_};
        writer_ = parquet_writer_new(sink_, &spec);
    }
    ~ParquetOutput() override
    {
        sink_->mute();
        writer_.reset();
    }
    void add(const struct tarn_batch *batch) override
    {
        parquet_writer_add(*writer_, batch);
    }
    void finish() override
    {
        struct tarn_file_result result = {};
        parquet_writer_finish(*writer_, NULL, &result);
    }

  private:
    ParquetWriterPtr writer_;
};

class ArrowOutput : public Output
{
  public:
    using Output::Output;
    ~ArrowOutput() override
    {
        sink_->mute();
    }
    void open() override
    {
        schema_ = arrow_schema(fields_, count_);
        arrow::ipc::IpcWriteOptions options = arrow::ipc::IpcWriteOptions::Defaults();
        options.memory_pool = memory_pool();
        options.use_threads = false;
        writer_ =
            must(arrow::ipc::MakeStreamWriter(sink_, schema_, options), TARN_INTERNAL, "arrow");
    }
    void add(const struct tarn_batch *batch) override
    {
        must(writer_->WriteRecordBatch(*import_batch(batch, schema_)), TARN_INTERNAL, "arrow");
    }
    void finish() override
    {
        must(writer_->Close(), TARN_INTERNAL, "arrow");
        must(sink_->flush(), TARN_IO_ERROR, "output");
    }

  private:
    SchemaPtr schema_;
    std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
};

std::unique_ptr<Output> make_output(enum tarn_data_format format, const struct tarn_field *fields,
                                    size_t count, tarn_push_fn push, void *arg)
{
    switch (format) {
    case TARN_DATA_CSV:
        return std::unique_ptr<Output>(new CsvOutput(fields, count, push, arg));
    case TARN_DATA_JSONL:
        return std::unique_ptr<Output>(new JsonOutput(fields, count, push, arg));
    case TARN_DATA_PARQUET:
        return std::unique_ptr<Output>(new ParquetOutput(fields, count, push, arg));
    case TARN_DATA_ARROW:
        return std::unique_ptr<Output>(new ArrowOutput(fields, count, push, arg));
    case TARN_DATA_ORC:
        break;
    }
    fail(TARN_UNIMPLEMENTED, "ORC output is not written yet");
}

} // namespace

} // namespace tarn

struct tarn_output {
    std::unique_ptr<tarn::Output> output;
    size_t column_count;
    bool failed;
};

template <typename F
> static struct tarn_status *step(struct tarn_output *o, struct tarn_op *op, F body)
{
    if (o->failed)
        return tarn_status_new(TARN_INTERNAL, "the output failed before");
    o->output->sink().op = op;
    struct tarn_status *status = tarn::guarded(TARN_INTERNAL, "output", body);
    if (status == TARN_OK)
        return TARN_OK;
    o->failed = true;
    struct tarn_status *told =
        tarn::guarded(TARN_INTERNAL, "", [&] { o->output->sink().pending.rethrow(); });
    if (told == TARN_OK)
        return status;
    tarn_status_free(status);
    return told;
}

struct tarn_status *tarn_output_open(struct tarn_op *op, enum tarn_data_format format,
                                     const struct tarn_field *fields, size_t field_count,
                                     tarn_push_fn push, void *arg, struct tarn_output **out)
{
    std::unique_ptr<tarn_output> o(new tarn_output{nullptr, field_count, false});
    TARN_TRY(tarn::guarded(TARN_INTERNAL, "output", [&] {
        o->output = tarn::make_output(format, fields, field_count, push, arg);
    }));
    TARN_TRY(step(o.get(), op, [&] { o->output->open(); }));
    *out = o.release();
    return TARN_OK;
}

struct tarn_status *tarn_output_add(struct tarn_output *output, struct tarn_op *op,
                                    const struct tarn_batch *batch)
{
    if ((size_t)batch->column_count != output->column_count)
        return tarn_status_new(TARN_INTERNAL, "a batch has %d columns, the output %zu",
                               batch->column_count, output->column_count);
    return step(output, op, [&] { output->output->add(batch); });
}

struct tarn_status *tarn_output_finish(struct tarn_output *output, struct tarn_op *op)
{
    return step(output, op, [&] { output->output->finish(); });
}

void tarn_output_close(struct tarn_output *output)
{
    delete output;
}
