/*
 * parquet_write - rows to a Parquet file as Paimon writes it.
 *
 * Shape    the schema is made by hand (parquet_schema.cc); Arrow's writer follows the physical type it finds
 *          there, also INT96 and decimals as integers. Row groups are filled encoded, not as Arrow data:
 *          memory is about one compressed row group.
 * Choices  the first rows are held back until it is clear which columns repeat their values: a
 *          dictionary of unique values doubles the time and grows the file.
 */
#include "columnar/data_file.h"
#include "columnar/parquet_copy.h"
#include "columnar/parquet_schema.h"
#include "columnar/parquet_stats.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <parquet/arrow/writer.h>
#include <parquet/file_writer.h>

namespace tarn
{

namespace
{

const int64_t kSampleRows = 32768;
const double kDictionaryShareMax = 0.7;  /* distinct values of the sample; above: no dictionary */
const int64_t kGroupRowsMin = 128 << 10; /* a row group closes at so many rows, if it has … */
const int64_t kGroupBytesDefault = 16 << 20; /* … so many bytes, about, when encoded; or at … */
const int64_t kGroupRowsMax = 1 << 20;       /* … so many rows anyhow */
const double kRatioGuess = 0.4; /* encoded size of Arrow data before anything is known */

/* About how many different values the sample of a column has: linear counting in a bitmap. */
class DistinctCounter
{
  public:
    DistinctCounter() : bits_(kBits / 64)
    {
    }
    void add(uint64_t hash)
    {
        hash *= 0x9E3779B97F4A7C15ULL;
        hash ^= hash >> 32;
        bits_[(hash % kBits) >> 6] |= 1ULL << (hash & 63);
    }
    double estimate() const
    {
        int64_t zeros = 0;
        for (uint64_t word : bits_)
            zeros += 64 - __builtin_popcountll(word);
        return zeros == 0 ? (double)kBits : -(double)kBits * std::log((double)zeros / kBits);
    }

  private:
    static const int64_t kBits = 1 << 18;
    std::vector<uint64_t> bits_;
};

template <typename C> void count_fixed(const arrow::Array &a, DistinctCounter &counter)
{
    const C *values = a.data()->GetValues<C>(1);
    for (int64_t i = 0; i < a.length(); i++)
        counter.add((uint64_t)values[i] + 1);
}

/* False: a type that is not counted. */
bool count_values(const arrow::Array &a, DistinctCounter &counter)
{
    if (arrow::is_base_binary_like(a.type_id())) {
        const arrow::BinaryArray &bytes = static_cast<const arrow::BinaryArray &>(a);
        for (int64_t i = 0; i < a.length(); i++)
            counter.add(std::hash<std::string_view>()(bytes.GetView(i)));
        return true;
    }
    switch (arrow::is_fixed_width(a.type_id()) ? a.type()->byte_width() : 0) {
    case 4:
        count_fixed<uint32_t>(a, counter);
        return true;
    case 8:
        count_fixed<uint64_t>(a, counter);
        return true;
    case 16: {
        const uint64_t *words = a.data()->GetValues<uint64_t>(1, a.offset() * 2);
        for (int64_t i = 0; i < a.length(); i++)
            counter.add(words[2 * i] ^ (words[2 * i + 1] * 31));
        return true;
    }
    default:
        return false;
    }
}

/* Ends with its scope, however that is left: Arrow's writer writes once more when it goes. */
class Diverted
{
  public:
    Diverted(Sink &sink, std::string *to) : sink_(sink)
    {
        sink_.divert(to);
    }
    ~Diverted()
    {
        sink_.divert(NULL);
    }

  private:
    Sink &sink_;
};

} // namespace

parquet::Compression::type parquet_codec(const char *name)
{
    std::string_view n = name == NULL ? "" : name;
    if (n == "zstd")
        return parquet::Compression::ZSTD;
    if (n == "snappy")
        return parquet::Compression::SNAPPY;
    if (n == "gzip")
        return parquet::Compression::GZIP;
    if (n == "lz4") /* what parquet-mr calls so */
        return parquet::Compression::LZ4_HADOOP;
    if (n == "lz4_raw")
        return parquet::Compression::LZ4;
    if (n == "none" || n == "uncompressed" || n.empty())
        return parquet::Compression::UNCOMPRESSED;
    fail(TARN_UNSUPPORTED_FEATURE,
         "compression %s is not known for Parquet; use zstd, snappy, lz4, gzip or none", name);
}

int64_t parquet_group_bytes(int64_t option)
{
    return option > 0 ? option : kGroupBytesDefault;
}

int64_t parquet_group_worth(int64_t option)
{
    return std::min(parquet_group_bytes(option), kGroupBytesDefault) / 2;
}

class ParquetWriter
{
  public:
    std::shared_ptr<Sink> sink;
    std::shared_ptr<parquet::schema::GroupNode> parquet;
    SchemaPtr schema;
    std::vector<std::string> names;
    std::vector<ColumnFacts> facts;
    parquet::Compression::type codec;
    int zstd_level;
    int64_t group_bytes_max;

    std::vector<RecordBatchPtr> held; /* until the writer is open */
    int64_t held_rows = 0;
    std::unique_ptr<parquet::arrow::FileWriter> writer;
    int64_t row_count = 0;
    int64_t group_rows = 0, group_arrow_bytes = 0; /* of the row group being filled */
    int64_t closed_arrow_bytes = 0;                /* of those before */

    struct Copied { /* a row group of another file */
        std::string raw;
        std::vector<int64_t> begins; /* of its chunks, in this file */
        size_t behind;               /* so many row groups of the writer */
    };
    std::vector<Copied> copied;
    int64_t copied_bytes = 0;
    size_t group_count = 0;                          /* the writer's, with rows */
    bool group_ended = false;                        /* rows that come belong behind a copy */
    std::shared_ptr<parquet::FileMetaData> metadata; /* once it is finished */

    std::shared_ptr<parquet::WriterProperties> properties();
    void open();
    void write(const RecordBatchPtr &batch);
    void copy(tarn_file_copy &from, size_t group);
    void note_copied(const tarn_file_copy &from, size_t group);
    std::string close();
    void close_with_copies();
    double ratio() const;
    int64_t group_bytes() const
    {
        return (int64_t)((double)group_arrow_bytes * ratio());
    }
};

void ParquetWriterDrop::operator()(ParquetWriter *writer) const
{
    delete writer;
}

ParquetWriterPtr parquet_writer_new(std::shared_ptr<Sink> sink, const struct tarn_file_write *spec)
{
    ParquetWriterPtr w(new ParquetWriter);
    w->sink = std::move(sink);
    w->codec = parquet_codec(spec->compression);
    w->zstd_level = spec->zstd_level;
    w->group_bytes_max = parquet_group_bytes(spec->row_group_size);
    w->parquet = parquet_schema(spec->columns, spec->column_count);
    arrow::FieldVector fields;
    for (size_t i = 0; i < spec->column_count; i++) {
        const struct tarn_column_write *c = &spec->columns[i];
        w->names.push_back(string_of(c->name));
        w->facts.push_back(column_facts(c->type));
        fields.push_back(arrow::field(string_of(c->name), arrow_type(c->type), c->type->nullable));
    }
    w->schema = arrow::schema(fields);
    return w;
}

std::shared_ptr<parquet::WriterProperties> ParquetWriter::properties()
{
    parquet::WriterProperties::Builder builder;
    builder.memory_pool(memory_pool())
        ->version(parquet::ParquetVersion::PARQUET_2_6)
        ->data_page_version(parquet::ParquetDataPageVersion::V1)
        ->compression(codec)
        ->max_row_group_length(INT64_MAX)                               /* decided here */
        ->set_size_statistics_level(parquet::SizeStatisticsLevel::None) /* nobody reads them yet */
        ->enable_statistics();
    if (codec == parquet::Compression::ZSTD)
        builder.compression_level(std::clamp(zstd_level, 1, 22));
    for (size_t i = 0; i < names.size(); i++) {
        DistinctCounter counter;
        bool counted = true;
        for (size_t b = 0; b < held.size() && counted; b++)
            counted = count_values(*held[b]->column((int)i), counter);
        if (counted && held_rows > 0 &&
            counter.estimate() > kDictionaryShareMax * (double)held_rows)
            builder.disable_dictionary(
                std::make_shared<parquet::schema::ColumnPath>(std::vector<std::string>{names[i]}));
    }
    return builder.build();
}

void ParquetWriter::open()
{
    std::unique_ptr<parquet::ParquetFileWriter> raw;
    {
        std::string magic;
        Diverted diverted(*sink, copied.empty() ? NULL : &magic); /* else it is there already */
        raw = parquet::ParquetFileWriter::Open(sink, parquet, properties());
    }
    parquet::ArrowWriterProperties::Builder arrow_properties;
    arrow_properties.set_use_threads(false);
    must(parquet::arrow::FileWriter::Make(memory_pool(), std::move(raw), schema,
                                          arrow_properties.build(), &writer),
         TARN_INTERNAL, "parquet writer");
    for (RecordBatchPtr &batch : std::exchange(held, {}))
        write(batch);
}

double ParquetWriter::ratio() const
{
    return closed_arrow_bytes == 0
               ? kRatioGuess
               : (double)(sink->Tell().ValueOr(0) - copied_bytes) / (double)closed_arrow_bytes;
}

void ParquetWriter::write(const RecordBatchPtr &batch)
{
    if ((group_ended && group_rows > 0) || group_rows >= kGroupRowsMax ||
        group_bytes() >= group_bytes_max * 4 ||
        (group_rows >= kGroupRowsMin && group_bytes() >= group_bytes_max)) {
        must(writer->NewBufferedRowGroup(), TARN_IO_ERROR, "parquet");
        closed_arrow_bytes += group_arrow_bytes;
        group_rows = group_arrow_bytes = 0;
    }
    must(writer->WriteRecordBatch(*batch), TARN_INTERNAL, "parquet");
    if (group_rows == 0)
        group_count++;
    group_ended = false;
    group_rows += batch->num_rows();
    for (const ArrayPtr &column : batch->columns())
        group_arrow_bytes += array_bytes(*column);
}

void parquet_writer_add(ParquetWriter &w, const struct tarn_batch *in)
{
    if (in->row_count == 0)
        return;
    if ((size_t)in->column_count != w.names.size())
        fail(TARN_INTERNAL, "a batch has %d columns, the file %zu", in->column_count,
             w.names.size());
    RecordBatchPtr batch = import_batch(in, w.schema);
    for (int i = 0; i < batch->num_columns(); i++) {
        if (!w.schema->field(i)->nullable() && batch->column(i)->null_count() != 0)
            fail(TARN_VALUE_INVALID, "column %s is NOT NULL, and a value is null",
                 w.names[(size_t)i].c_str());
        w.facts[(size_t)i].see(*batch->column(i));
    }
    w.row_count += batch->num_rows();
    if (w.writer != nullptr) {
        w.write(batch);
        return;
    }
    w.held.push_back(batch);
    w.held_rows += batch->num_rows();
    if (w.held_rows >= kSampleRows)
        w.open();
}

int64_t parquet_writer_size(const ParquetWriter &w)
{
    int64_t held = 0;
    for (const RecordBatchPtr &batch : w.held)
        for (const ArrayPtr &column : batch->columns())
            held += array_bytes(*column);
    return w.sink->Tell().ValueOr(0) + w.group_bytes() + (int64_t)((double)held * kRatioGuess);
}

/* --- row groups of other files: copied between those of Arrow's writer, in a footer of our own --- */

/* Arrow asks the sink where it is, so what it writes later lies right. */
void ParquetWriter::copy(tarn_file_copy &from, size_t g)
{
    const CopyGroup &group = from.groups[g];
    Copied added = {std::string(group.raw), {}, 0};
    if (writer == nullptr && !held.empty())
        open();
    if (writer == nullptr && copied.empty())
        must(sink->Write("PAR1", 4), TARN_IO_ERROR, "parquet");
    for (size_t leaf = 0; leaf < group.chunks.size(); leaf++) {
        added.begins.push_back(sink->Tell().ValueOr(0));
        from.chunk(g, leaf, [&](const uint8_t *bytes, int64_t size) {
            must(sink->Write(bytes, size), TARN_IO_ERROR, "parquet");
        });
    }
    added.behind = group_count;
    copied.push_back(std::move(added));
    copied_bytes += group.size;
    group_ended = true;
    note_copied(from, g);
}

void ParquetWriter::note_copied(const tarn_file_copy &from, size_t g)
{
    size_t leaf = 0;
    for (size_t i = 0; i < facts.size(); i++) {
        ColumnFacts &f = facts[i];
        if (!f.nested)
            f.null_count += std::max<int64_t>(0, from.groups[g].chunks[leaf].null_count);
        if (!from.bounded[i] && (f.id == TARN_TYPE_FLOAT || f.id == TARN_TYPE_DOUBLE))
            f.has_nan = true;
        leaf += (size_t)f.leaf_count;
    }
    row_count += from.groups[g].row_count;
}

/* Closes Arrow's writer; the footer that it would have written. */
std::string ParquetWriter::close()
{
    std::string end;
    if (writer == nullptr)
        open();
    must(writer->NewBufferedRowGroup(), TARN_IO_ERROR, "parquet"); /* writes the one before */
    {
        Diverted diverted(*sink, &end);
        must(writer->Close(), TARN_IO_ERROR, "parquet");
    }
    tarn_assert(end.size() > 8);
    uint32_t length; /* little-endian, as the machine is */
    memcpy(&length, end.data() + end.size() - 8, 4);
    tarn_assert(length <= end.size() - 8);
    return end.substr(end.size() - 8 - length, length);
}

void ParquetWriter::close_with_copies()
{
    std::string footer = close();
    /* Without the last one, which has no rows. */
    std::vector<CopyGroup> own = copy_groups(footer, INT64_MAX, group_count);
    tarn_assert(own.size() == group_count);
    std::vector<std::string> groups;
    size_t next = 0;
    for (size_t i = 0; i <= group_count; i++) {
        for (; next < copied.size() && copied[next].behind == i; next++) {
            CopyGroup group = copy_group(copied[next].raw);
            groups.emplace_back();
            copy_group_write(group, copied[next].begins, groups.size() - 1, groups.back());
        }
        if (i == group_count)
            break;
        std::vector<int64_t> begins;
        for (const CopyChunk &chunk : own[i].chunks)
            begins.push_back(chunk.begin);
        groups.emplace_back();
        copy_group_write(own[i], begins, groups.size() - 1, groups.back());
    }
    footer = copy_footer(footer, groups, row_count);
    metadata = parquet::FileMetaData::Make(footer.data(), (int64_t)footer.size());
    tarn_assert(metadata->num_row_groups() == (int)groups.size());
    uint32_t length = (uint32_t)footer.size();
    footer.append((const char *)&length, 4).append("PAR1");
    must(sink->Write(footer.data(), (int64_t)footer.size()), TARN_IO_ERROR, "parquet");
}

void parquet_writer_finish(ParquetWriter &w, struct tarn_arena *arena, struct tarn_file_result *out)
{
    if (w.copied.empty()) {
        if (w.writer == nullptr)
            w.open();
        must(w.writer->Close(), TARN_IO_ERROR, "parquet");
        w.metadata = w.writer->metadata();
    } else {
        w.close_with_copies();
    }
    must(w.sink->flush(), TARN_IO_ERROR, "parquet");
    out->size = w.sink->Tell().ValueOr(0);
    out->row_count = w.row_count;
    out->columns = NULL;
    if (arena != NULL)
        out->columns = file_stats(*w.metadata, w.facts, w.row_count, arena);
}

namespace
{

class ParquetFileWriter : public FileWriter
{
  public:
    ParquetFileWriter(std::shared_ptr<Sink> sink, const struct tarn_file_write *spec)
        : writer_(parquet_writer_new(std::move(sink), spec))
    {
    }
    void add(const struct tarn_batch *batch) override
    {
        parquet_writer_add(*writer_, batch);
    }
    int64_t size() const override
    {
        return parquet_writer_size(*writer_);
    }
    void copy(struct tarn_file_copy &from, size_t group) override
    {
        writer_->copy(from, group);
    }
    void finish(struct tarn_arena *arena, struct tarn_file_result *out) override
    {
        parquet_writer_finish(*writer_, arena, out);
    }

  private:
    ParquetWriterPtr writer_;
};

} // namespace

FileWriterPtr parquet_file_writer(std::shared_ptr<Sink> sink, const struct tarn_file_write *spec)
{
    return FileWriterPtr(new ParquetFileWriter(std::move(sink), spec));
}

} // namespace tarn
