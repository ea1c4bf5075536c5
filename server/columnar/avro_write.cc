/*
 * avro_write - rows to an Avro data file as Paimon writes it (docs/format.md "Avro data files").
 */
#include "columnar/data_file.h"

#include <algorithm>
#include <set>

extern "C" {
#include "format/avro.h"
}

namespace tarn
{

namespace
{

const size_t kBlockSize = 64000; /* as Java's */
const double kRatioGuess = 0.4;  /* written size of encoded bytes before anything is known */

/* --- the schema --- */

class SchemaText
{
  public:
    explicit SchemaText(const Columns &columns)
    {
        names_.insert("record");
        text_ = "{\"type\":\"record\",\"name\":\"record\",\"namespace\":\"org.apache.paimon.avro."
                "generated\",\"fields\":[";
        for (size_t i = 0; i < columns.count; i++)
            field(columns.fields[i], "record", i == 0);
        text_ += "]}";
    }
    const std::string &text() const
    {
        return text_;
    }

  private:
    void field(const struct tarn_field &f, const std::string &around, bool first)
    {
        std::string name = string_of(f.name);
        bool good = !name.empty() && !(name[0] >= '0' && name[0] <= '9');
        for (char c : name)
            good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                            (c >= '0' && c <= '9'));
        if (!good)
            fail(TARN_UNSUPPORTED_FEATURE,
                 "column %s: names in Avro have letters, digits and _ only; use file.format = "
                 "parquet or orc",
                 name.c_str());
        text_ += (first ? "{\"name\":\"" : ",{\"name\":\"") + name + "\",\"type\":";
        type(f.type, around + "_" + name);
        text_ += f.type->nullable ? ",\"default\":null}" : "}";
    }
    void type(const struct tarn_type *type, const std::string &name)
    {
        text_ += type->nullable ? "[\"null\"," : "";
        plain(type, name);
        text_ += type->nullable ? "]" : "";
    }
    void logical(const char *primitive, const std::string &meaning)
    {
        text_ +=
            std::string("{\"type\":\"") + primitive + "\",\"logicalType\":\"" + meaning + "\"}";
    }
    void plain(const struct tarn_type *type, const std::string &name);
    void map(const struct tarn_type *type, const std::string &name);
    void open_record(const std::string &name)
    {
        std::string unique = name;
        for (int i = 2; !names_.insert(unique).second; i++) /* r_a.b and r.a_b */
            unique = name + "_" + std::to_string(i);
        text_ += "{\"type\":\"record\",\"name\":\"" + unique + "\",\"fields\":[";
    }

    std::string text_;
    std::set<std::string> names_;
};

void SchemaText::map(const struct tarn_type *type, const std::string &name)
{
    bool multiset = type->id == TARN_TYPE_MULTISET;
    const struct tarn_type *key = multiset ? type->element : type->key;
    bool texts = is_text(key);
    if (texts) {
        text_ += "{\"type\":\"map\",\"values\":";
    } else {
        text_ += "{\"type\":\"array\",\"items\":";
        open_record(name);
        text_ += "{\"name\":\"key\",\"type\":";
        this->type(key, name + "_key");
        text_ += "},{\"name\":\"value\",\"type\":";
    }
    if (multiset)
        text_ += "[\"null\",\"int\"]";
    else
        this->type(type->element, name + (texts ? "" : "_value"));
    if (!texts)
        text_ += std::string(multiset || type->element->nullable ? ",\"default\":null" : "") +
                 "}]},\"logicalType\":\"map\"";
    text_ += "}";
}

void SchemaText::plain(const struct tarn_type *type, const std::string &name)
{
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        text_ += "\"boolean\"";
        return;
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
        text_ += "\"int\"";
        return;
    case TARN_TYPE_BIGINT:
        text_ += "\"long\"";
        return;
    case TARN_TYPE_FLOAT:
        text_ += "\"float\"";
        return;
    case TARN_TYPE_DOUBLE:
        text_ += "\"double\"";
        return;
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
        text_ += "\"string\"";
        return;
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        text_ += "\"bytes\"";
        return;
    case TARN_TYPE_DECIMAL:
        text_ += "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":" +
                 std::to_string(type->precision) + ",\"scale\":" + std::to_string(type->scale) +
                 "}";
        return;
    case TARN_TYPE_DATE:
        return logical("int", "date");
    case TARN_TYPE_TIME:
        return logical("int", "time-millis");
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        if (type->precision > 6)
            break;
        return logical("long",
                       std::string(type->id == TARN_TYPE_TIMESTAMP_LTZ ? "local-" : "") +
                           (type->precision <= 3 ? "timestamp-millis" : "timestamp-micros"));
    case TARN_TYPE_ARRAY:
        text_ += "{\"type\":\"array\",\"items\":";
        this->type(type->element, name);
        text_ += "}";
        return;
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET:
        return map(type, name);
    case TARN_TYPE_ROW:
        open_record(name);
        for (size_t i = 0; i < type->field_count; i++)
            field(type->fields[i], name, i == 0);
        text_ += "]}";
        return;
    default:
        break;
    }
    fail(TARN_UNSUPPORTED_FEATURE, "%s: Avro has no %s; use file.format = parquet or orc",
         name.c_str(), type_text(type).c_str());
}

/* --- values --- */

/* A canonical column, with what is asked of it for every row at hand. */
class Encoder
{
  public:
    Encoder(const arrow::ArrayData &in, const struct tarn_type *type)
        : type_(type), in_(in),
          bits_(in.buffers[0] == nullptr || in.null_count == 0 ? NULL : in.buffers[0]->data())
    {
        bool multiset = type->id == TARN_TYPE_MULTISET;
        if (type->id == TARN_TYPE_ROW) {
            for (size_t i = 0; i < type->field_count; i++)
                children_.emplace_back(new Encoder(*in.child_data[i], type->fields[i].type));
        } else if (type->id == TARN_TYPE_ARRAY) {
            children_.emplace_back(new Encoder(*in.child_data[0], type->element));
        } else if (type->id == TARN_TYPE_MAP || multiset) {
            pairs_ = in.child_data[0]->offset;
            const std::vector<std::shared_ptr<arrow::ArrayData>> &pair =
                in.child_data[0]->child_data;
            children_.emplace_back(new Encoder(*pair[0], multiset ? type->element : type->key));
            children_.emplace_back(new Encoder(*pair[1], multiset ? &kCount : type->element));
        }
    }
    void add(int64_t row, struct tarn_buf *out, bool bare = false) const;

  private:
    static const struct tarn_type kCount;
    template <typename C> C fixed(int64_t row) const
    {
        C v;
        memcpy(&v, in_.buffers[1]->data() + (row + in_.offset) * (int64_t)sizeof v, sizeof v);
        return v;
    }
    struct tarn_slice bytes(int64_t row) const
    {
        const int32_t *offsets = in_.GetValues<int32_t>(1);
        const uint8_t *data = in_.buffers[2] == nullptr ? NULL : in_.buffers[2]->data();
        return tarn_slice_of(data == NULL ? "" : (const char *)data + offsets[row],
                             (size_t)(offsets[row + 1] - offsets[row]));
    }
    void decimal(int64_t row, struct tarn_buf *out) const;
    void list(int64_t row, struct tarn_buf *out) const;

    const struct tarn_type *type_;
    const arrow::ArrayData &in_;
    const uint8_t *bits_;
    int64_t pairs_ = 0; /* of a map: the offset of its entries */
    std::vector<std::unique_ptr<Encoder>> children_;
};

const struct tarn_type Encoder::kCount = {TARN_TYPE_INT, true, 0,    0, 0, {}, {},
                                          NULL,          NULL, NULL, 0};

/* Big-endian, as few bytes as it takes. */
void Encoder::decimal(int64_t row, struct tarn_buf *out) const
{
    __int128 v = fixed<__int128>(row);
    int size = 1;
    while (size < 16 && v >> (8 * size - 1) != 0 && v >> (8 * size - 1) != -1)
        size++;
    tarn_avro_add_long(out, size);
    for (int i = size - 1; i >= 0; i--)
        tarn_buf_add_byte(out, (uint8_t)(v >> (8 * i)));
}

void Encoder::list(int64_t row, struct tarn_buf *out) const
{
    const int32_t *offsets = in_.GetValues<int32_t>(1);
    int64_t begin = offsets[row], end = offsets[row + 1];
    bool texts = type_->id != TARN_TYPE_ARRAY && is_text(children_[0]->type_);
    if (end > begin)
        tarn_avro_add_long(out, end - begin);
    for (int64_t i = begin; i < end; i++) {
        if (type_->id == TARN_TYPE_ARRAY) {
            children_[0]->add(i, out);
            continue;
        }
        children_[0]->add(pairs_ + i, out, texts);
        children_[1]->add(pairs_ + i, out);
    }
    tarn_avro_add_long(out, 0);
}

/* bare: without the branch of a union, as keys of a map of texts are. */
void Encoder::add(int64_t row, struct tarn_buf *out, bool bare) const
{
    int64_t at = row + in_.offset;
    bool null = bits_ != NULL && (bits_[at >> 3] >> (at & 7) & 1) == 0;
    if (type_->nullable && !bare)
        tarn_buf_add_byte(out, null ? 0 : 2);
    else if (null)
        fail(TARN_VALUE_INVALID, "a part that is NOT NULL is null");
    if (null)
        return;
    switch (type_->id) {
    case TARN_TYPE_BOOLEAN:
        tarn_buf_add_byte(out, in_.buffers[1]->data()[at >> 3] >> (at & 7) & 1);
        return;
    case TARN_TYPE_TINYINT:
        return tarn_avro_add_long(out, fixed<int8_t>(row));
    case TARN_TYPE_SMALLINT:
        return tarn_avro_add_long(out, fixed<int16_t>(row));
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        return tarn_avro_add_long(out, fixed<int32_t>(row));
    case TARN_TYPE_BIGINT:
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return tarn_avro_add_long(out, fixed<int64_t>(row));
    case TARN_TYPE_FLOAT: {
        float v = fixed<float>(row);
        return tarn_buf_add(out, &v, sizeof v);
    }
    case TARN_TYPE_DOUBLE: {
        double v = fixed<double>(row);
        return tarn_buf_add(out, &v, sizeof v);
    }
    case TARN_TYPE_DECIMAL:
        return decimal(row, out);
    case TARN_TYPE_ROW:
        for (const std::unique_ptr<Encoder> &child : children_)
            child->add(row + in_.offset, out);
        return;
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET:
        return list(row, out);
    default:
        return tarn_avro_add_bytes(out, bytes(row));
    }
}

class AvroWriter : public FileWriter
{
  public:
    AvroWriter(std::shared_ptr<Sink> sink, const struct tarn_file_write *spec)
        : sink_(std::move(sink)), columns_(spec)
    {
        uint8_t sync[TARN_AVRO_SYNC_SIZE];
        std::string codec = spec->compression == NULL ? "none" : spec->compression;
        if (codec == "uncompressed")
            codec = "none";
        tarn_random_bytes(sync, sizeof sync);
        must(tarn_status_as(tarn_avro_begin(&writer_, SchemaText(columns_).text().c_str(),
                                            slice_of(codec), spec->zstd_level, sync, &out_),
                            TARN_UNSUPPORTED_FEATURE));
    }
    ~AvroWriter() override
    {
        tarn_avro_writer_drop(&writer_);
        tarn_buf_drop(&out_);
    }
    void add(const struct tarn_batch *batch) override;
    int64_t size() const override
    {
        int64_t written = sink_->Tell().ValueOr(0);
        double ratio = encoded_ == 0 ? kRatioGuess : (double)written / (double)encoded_;
        return written + (int64_t)((double)writer_.block.size * ratio);
    }
    void finish(struct tarn_arena *arena, struct tarn_file_result *out) override
    {
        flush();
        must(sink_->flush(), TARN_IO_ERROR, "avro");
        out->size = sink_->Tell().ValueOr(0);
        out->row_count = columns_.row_count;
        out->columns = arena == NULL ? NULL : columns_.stats(arena);
    }

  private:
    void flush()
    {
        encoded_ += (int64_t)writer_.block.size;
        must(tarn_avro_end(&writer_));
        must(sink_->Write(out_.data, (int64_t)out_.size), TARN_IO_ERROR, "avro");
        tarn_buf_clear(&out_);
    }
    std::shared_ptr<Sink> sink_;
    Columns columns_;
    struct tarn_avro_writer writer_ = {};
    struct tarn_buf out_ = {}; /* what goes to the sink next */
    int64_t encoded_ = 0;      /* bytes of the blocks before they were compressed */
};

void AvroWriter::add(const struct tarn_batch *in)
{
    if (in->row_count == 0)
        return;
    RecordBatchPtr batch = columns_.take(in);
    std::vector<std::unique_ptr<Encoder>> encoders;
    for (size_t i = 0; i < columns_.count; i++)
        encoders.emplace_back(new Encoder(*batch->column_data((int)i), columns_.fields[i].type));
    for (int64_t row = 0; row < batch->num_rows(); row++) {
        for (size_t i = 0; i < columns_.count; i++) {
            try {
                encoders[i]->add(row, &writer_.block);
            } catch (const Failure &failure) {
                must(tarn_status_wrap(failure.take(), "column %.*s",
                                      TARN_SLICE_ARG(columns_.fields[i].name)));
            }
        }
        writer_.record_count++;
        if (writer_.block.size >= kBlockSize)
            flush();
    }
}

} // namespace

FileWriterPtr avro_file_writer(std::shared_ptr<Sink> sink, const struct tarn_file_write *spec)
{
    return FileWriterPtr(new AvroWriter(std::move(sink), spec));
}

} // namespace tarn
