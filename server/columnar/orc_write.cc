/*
 * orc_write - rows to an ORC file as Paimon writes it.
 *
 * Shape    every type has the attribute paimon.id (docs/format.md "ORC"); TIME is an int, CHAR and VARCHAR are
 *          strings: Arrow's writer knows no others, and readers take them for what the table's schema says.
 *          Zone UTC, in which a local time and an instant are the same number.
 */
#include "columnar/data_file.h"
#include "columnar/parquet_stats.h"

#include <arrow/adapters/orc/adapter.h>
#include <arrow/util/key_value_metadata.h>

namespace tarn
{

namespace
{

using arrow::adapters::orc::ORCFileWriter;

const int64_t kStripeDefault = 16 << 20; /* encoded bytes that are held until they are written */
const int64_t kStripeMin = 64 << 10, kStripeMax = 256 << 20;
const int64_t kBatchRows = 1024;
const double kRatioGuess = 0.4; /* encoded size of Arrow data before anything is known */

arrow::Compression::type codec_of(const char *name)
{
    std::string_view n = name == NULL ? "" : name;
    if (n == "zstd")
        return arrow::Compression::ZSTD;
    if (n == "snappy")
        return arrow::Compression::SNAPPY;
    if (n == "zlib" || n == "gzip")
        return arrow::Compression::GZIP;
    if (n == "lz4")
        return arrow::Compression::LZ4;
    if (n == "none" || n == "uncompressed" || n.empty())
        return arrow::Compression::UNCOMPRESSED;
    fail(TARN_UNSUPPORTED_FEATURE,
         "compression %s is not known for ORC; use zstd, snappy, zlib, lz4 or none", name);
}

std::shared_ptr<arrow::Field> orc_field(const std::string &name, const struct tarn_type *type,
                                        int32_t id, int32_t around, int depth);

TypePtr orc_type(const std::string &name, const struct tarn_type *type, int32_t around, int depth)
{
    switch (type->id) {
    case TARN_TYPE_TIME:
        return arrow::int32();
    case TARN_TYPE_ARRAY:
        return arrow::list(
            orc_field("element", type->element, element_id(around, depth + 1), around, depth + 1));
    case TARN_TYPE_MAP:
        return std::make_shared<arrow::MapType>(
            orc_field("key", type->key, key_id(around, depth + 1), around, depth + 1)
                ->WithNullable(false),
            orc_field("value", type->element, element_id(around, depth + 1), around, depth + 1));
    case TARN_TYPE_ROW: {
        arrow::FieldVector fields;
        for (size_t i = 0; i < type->field_count; i++) {
            const struct tarn_field *f = &type->fields[i];
            fields.push_back(orc_field(string_of(f->name), f->type, f->id, f->id, 0));
        }
        return arrow::struct_(fields);
    }
    case TARN_TYPE_MULTISET:
    case TARN_TYPE_VECTOR:
    case TARN_TYPE_VARIANT:
    case TARN_TYPE_GEOMETRY:
    case TARN_TYPE_GEOGRAPHY:
        fail(TARN_UNSUPPORTED_FEATURE, "column %s: ORC has no %s; use file.format = parquet",
             name.c_str(), type_text(type).c_str());
    default:
        return arrow_type(type);
    }
}

std::shared_ptr<arrow::Field> orc_field(const std::string &name, const struct tarn_type *type,
                                        int32_t id, int32_t around, int depth)
{
    return arrow::field(name, orc_type(name, type, around, depth), true,
                        arrow::key_value_metadata({"paimon.id"}, {std::to_string(id)}));
}

/* The same buffers under the type that Arrow's writer is given. */
std::shared_ptr<arrow::ArrayData> relabel(const std::shared_ptr<arrow::ArrayData> &in,
                                          const TypePtr &type)
{
    std::shared_ptr<arrow::ArrayData> out = in->Copy();
    out->type = type;
    for (size_t i = 0; i < out->child_data.size(); i++)
        out->child_data[i] = relabel(in->child_data[i], type->field((int)i)->type());
    return out;
}

/*
 * Times that Arrow can't write so that others read them: it reads none outside 1677..2262 (orc_read.cc), and before 1970 it
 * gives the part of a second a sign, which Java's reader takes for damage.
 */
void check_times(const arrow::ArrayData &in, const std::string &name)
{
    if (in.type->id() == arrow::Type::TIMESTAMP && in.length > 0) {
        static const int64_t kPerSecond[] = {1, 1000, 1000000, 1000000000};
        const int64_t *values = in.GetValues<int64_t>(1);
        int64_t second =
            kPerSecond[(int)static_cast<const arrow::TimestampType &>(*in.type).unit()];
        int64_t nanos;
        for (int64_t i = 0; i < in.length; i++) {
            bool far = __builtin_mul_overflow(values[i], 1000000000 / second, &nanos);
            if ((!far && (values[i] >= 0 || values[i] % second == 0)) || in.IsNull(i))
                continue;
            fail(TARN_VALUE_INVALID,
                 "column %s: a time %s is not written to ORC; use file.format = parquet",
                 name.c_str(), far ? "outside 1677..2262" : "before 1970 with a part of a second");
        }
    }
    for (const std::shared_ptr<arrow::ArrayData> &child : in.child_data)
        check_times(*child, name);
}

/* Nothing can be bad: the layouts are canonical before and after. */
class NoFaults : public BadValues
{
  public:
    void bad(int64_t row, const std::string &reason) override
    {
        fail(TARN_INTERNAL, "row %" PRId64 ": %s", row, reason.c_str());
    }
};

class OrcWriter : public FileWriter
{
  public:
    OrcWriter(std::shared_ptr<Sink> sink, const struct tarn_file_write *spec)
        : sink_(std::move(sink)), columns_(spec)
    {
        arrow::FieldVector fields;
        for (size_t i = 0; i < columns_.count; i++) {
            const struct tarn_field *f = &columns_.fields[i];
            fields.push_back(orc_field(string_of(f->name), f->type, f->id, f->id, 0));
        }
        schema_ = arrow::schema(fields);
        arrow::adapters::orc::WriteOptions options;
        options.batch_size = kBatchRows;
        options.compression = codec_of(spec->compression);
        options.compression_block_size = 256 << 10;
        options.stripe_size = spec->row_group_size > 0
                                  ? std::clamp(spec->row_group_size, kStripeMin, kStripeMax)
                                  : kStripeDefault;
        options.dictionary_key_size_threshold = 0.8;
        writer_ =
            must(ORCFileWriter::Open(sink_.get(), options), TARN_UNSUPPORTED_FEATURE, "orc writer");
    }
    void add(const struct tarn_batch *batch) override
    {
        if (batch->row_count > 0)
            write(*columns_.take(batch));
    }
    int64_t size() const override
    {
        double ratio =
            written_arrow_ == 0 ? kRatioGuess : (double)written_ / (double)written_arrow_;
        return written_ + (int64_t)((double)(arrow_bytes_ - written_arrow_) * ratio);
    }
    void finish(struct tarn_arena *arena, struct tarn_file_result *out) override;

  private:
    void write(const arrow::RecordBatch &batch);

    std::shared_ptr<Sink> sink_;
    Columns columns_;
    SchemaPtr schema_;
    std::unique_ptr<ORCFileWriter> writer_;
    int64_t arrow_bytes_ = 0; /* given to the writer */
    int64_t written_ = 0,
            written_arrow_ = 0; /* what came out when a stripe was last full, of how much */
};

void OrcWriter::write(const arrow::RecordBatch &batch)
{
    arrow::ArrayVector columns;
    NoFaults faults;
    for (size_t i = 0; i < columns_.count; i++) {
        ArrayPtr column = batch.column((int)i);
        arrow_bytes_ += array_bytes(*column);
        if (tarn_type_is_nested(columns_.fields[i].type) && column->offset() != 0)
            column = convert(column, columns_.fields[i].type,
                             {false, TARN_INTERNAL, string_of(columns_.fields[i].name)}, faults);
        check_times(*column->data(), string_of(columns_.fields[i].name));
        columns.push_back(
            arrow::MakeArray(relabel(column->data(), schema_->field((int)i)->type())));
    }
    must(writer_->Write(*arrow::RecordBatch::Make(schema_, batch.num_rows(), columns)),
         TARN_INTERNAL, "orc");
    int64_t now = sink_->Tell().ValueOr(0);
    if (now > written_ + 16) /* more than the magic at the file's begin */
        written_ = now, written_arrow_ = arrow_bytes_;
}

void OrcWriter::finish(struct tarn_arena *arena, struct tarn_file_result *out)
{
    if (columns_.row_count == 0) { /* the schema is told with the first batch */
        arrow::ArrayVector none;
        for (const std::shared_ptr<arrow::Field> &field : schema_->fields())
            none.push_back(
                must(arrow::MakeEmptyArray(field->type(), memory_pool()), TARN_INTERNAL, "orc"));
        must(writer_->Write(*arrow::RecordBatch::Make(schema_, 0, none)), TARN_INTERNAL, "orc");
    }
    must(writer_->Close(), TARN_IO_ERROR, "orc");
    must(sink_->flush(), TARN_IO_ERROR, "orc");
    out->size = sink_->Tell().ValueOr(0);
    out->row_count = columns_.row_count;
    out->columns = arena == NULL ? NULL : columns_.stats(arena);
}

} // namespace

FileWriterPtr orc_file_writer(std::shared_ptr<Sink> sink, const struct tarn_file_write *spec)
{
    return FileWriterPtr(new OrcWriter(std::move(sink), spec));
}

} // namespace tarn
