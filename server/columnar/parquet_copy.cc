/* parquet_copy - footers taken apart and put together again; pages followed without being read. */
#include "columnar/parquet_copy.h"
#include "columnar/parquet_schema.h"
#include "columnar/thrift.h"

#include <algorithm>
#include <arrow/util/crc32.h>

namespace tarn
{

namespace
{

const int64_t kTailSize = 8;         /* length of the footer, magic */
const int64_t kFooterMax = 16 << 20; /* above, a file is rewritten: Arrow reads it as it can */
const int64_t kWindow = 1 << 20;
const size_t kPageHeaderMax = 16 << 20; /* what Arrow takes */

/* parquet.thrift: the fields that are looked at or changed. */
enum FileField { kFileRowCount = 3, kFileGroups = 4 };
enum GroupField {
    kGroupColumns = 1,
    kGroupRowCount = 3,
    kGroupSorting = 4,
    kGroupOffset = 5,
    kGroupOrdinal = 7
};
enum ChunkField {
    kChunkPath = 1,
    kChunkOffset = 2,
    kChunkMeta = 3,
    kChunkCrypto = 8,
    kChunkCryptoMeta = 9
};
enum MetaField {
    kMetaValueCount = 5,
    kMetaSize = 7,
    kMetaDataOffset = 9,
    kMetaIndexOffset = 10,
    kMetaDictionaryOffset = 11,
    kMetaStatistics = 12,
    kMetaBloomOffset = 14,
    kMetaBloomSize = 15
};
enum StatisticsField { kStatisticsNullCount = 3 };
enum PageField { kPageType = 1, kPageSize = 3, kPageCrc = 4, kPageData = 5, kPageDataV2 = 8 };

bool is_integer(uint8_t type)
{
    return type == kThriftI16 || type == kThriftI32 || type == kThriftI64;
}

/* Calls f(field, value's bytes) for each field of a struct. One that is there twice would be read one way here
 * and another way elsewhere. */
template <typename F
> void each_field(std::string_view bytes, F f)
{
    ThriftReader in(bytes);
    uint64_t seen = 0;
    for (ThriftField field; in.next(field);) {
        uint64_t bit = field.id >= 0 && field.id < 64 ? 1ULL << field.id : 0;
        if ((seen & bit) != 0)
            throw ThriftMalformed("metadata has a field twice");
        seen |= bit;
        f(field, in.value(field.type));
    }
}

int64_t integer_of(const ThriftField &field, std::string_view value)
{
    if (!is_integer(field.type))
        throw ThriftMalformed("metadata has a number of another type");
    return ThriftReader(value).integer();
}

/* Calls f(struct's bytes) for each element of a list of structs. */
template <typename F
> void each_struct(const ThriftField &field, std::string_view list, F f)
{
    if (field.type != kThriftList)
        throw ThriftMalformed("metadata has no list where one belongs");
    ThriftReader in(list);
    uint8_t type = 0;
    uint64_t count = in.list(type);
    if (count > 0 && type != kThriftStruct)
        throw ThriftMalformed("metadata has a list of another type");
    for (uint64_t i = 0; i < count; i++)
        f(in.value(kThriftStruct));
}

CopyChunk chunk_of_meta(std::string_view meta, int64_t limit)
{
    CopyChunk chunk;
    int64_t dictionary = 0;
    each_field(meta, [&](const ThriftField &field, std::string_view value) {
        if (field.id == kMetaValueCount)
            chunk.value_count = integer_of(field, value);
        else if (field.id == kMetaSize)
            chunk.size = integer_of(field, value);
        else if (field.id == kMetaDataOffset)
            chunk.begin = integer_of(field, value);
        else if (field.id == kMetaDictionaryOffset)
            dictionary = integer_of(field, value);
        else if (field.id == kMetaStatistics && field.type == kThriftStruct)
            each_field(value, [&](const ThriftField &part, std::string_view number) {
                if (part.id == kStatisticsNullCount)
                    chunk.null_count = integer_of(part, number);
            });
    });
    if (dictionary > 0 && dictionary < chunk.begin)
        chunk.begin = dictionary;
    if (chunk.size < 0 || (chunk.size > 0 && (chunk.begin < 4 || chunk.begin > limit ||
                                              chunk.size > limit - chunk.begin)))
        throw ThriftMalformed("a column chunk lies outside of the file");
    if (chunk.value_count < 0 || chunk.null_count > chunk.value_count || chunk.null_count < -1)
        throw ThriftMalformed("a column chunk has a count that can't be");
    return chunk;
}

CopyGroup group_of(std::string_view raw, int64_t limit)
{
    CopyGroup group;
    group.raw = raw;
    each_field(raw, [&](const ThriftField &field, std::string_view value) {
        if (field.id == kGroupRowCount)
            group.row_count = integer_of(field, value);
        if (field.id != kGroupColumns)
            return;
        each_struct(field, value, [&](std::string_view column) {
            size_t before = group.chunks.size();
            each_field(column, [&](const ThriftField &part, std::string_view meta) {
                group.elsewhere = group.elsewhere || part.id == kChunkPath ||
                                  part.id == kChunkCrypto || part.id == kChunkCryptoMeta;
                if (part.id == kChunkMeta && part.type == kThriftStruct)
                    group.chunks.push_back(chunk_of_meta(meta, limit));
            });
            if (group.chunks.size() == before)
                throw ThriftMalformed("a column chunk has no metadata");
            if (__builtin_add_overflow(group.size, group.chunks.back().size, &group.size))
                throw ThriftMalformed("a row group is too large");
        });
    });
    if (group.row_count < 0)
        throw ThriftMalformed("a row group has less than no rows");
    return group;
}

void write_meta(std::string_view meta, int64_t shift, std::string &out)
{
    ThriftStruct to(out);
    each_field(meta, [&](const ThriftField &field, std::string_view value) {
        if (field.id == kMetaDataOffset)
            to.integer(field.id, kThriftI64, integer_of(field, value) + shift);
        else if (field.id == kMetaDictionaryOffset && integer_of(field, value) > 0)
            to.integer(field.id, kThriftI64, integer_of(field, value) + shift);
        else if (field.id != kMetaDictionaryOffset && field.id != kMetaIndexOffset &&
                 field.id != kMetaBloomOffset && field.id != kMetaBloomSize)
            to.raw(field, value);
    });
    to.end();
}

void write_chunk(std::string_view column, int64_t shift, std::string &out)
{
    ThriftStruct to(out);
    to.integer(kChunkOffset, kThriftI64, 0);
    each_field(column, [&](const ThriftField &field, std::string_view value) {
        if (field.id != kChunkMeta) /* offsets of page indexes, which stay behind */
            return;
        to.begin(kChunkMeta, kThriftStruct);
        write_meta(value, shift, out);
    });
    to.end();
}

} // namespace

std::vector<CopyGroup> copy_groups(std::string_view footer, int64_t limit, size_t most)
{
    std::vector<CopyGroup> groups;
    each_field(footer, [&](const ThriftField &field, std::string_view value) {
        if (field.id != kFileGroups)
            return;
        each_struct(field, value, [&](std::string_view raw) {
            if (groups.size() < most)
                groups.push_back(group_of(raw, limit));
        });
    });
    return groups;
}

CopyGroup copy_group(std::string_view raw)
{
    return group_of(raw, INT64_MAX);
}

void copy_group_write(const CopyGroup &group, const std::vector<int64_t> &begins, size_t ordinal,
                      std::string &out)
{
    ThriftStruct to(out);
    each_field(group.raw, [&](const ThriftField &field, std::string_view value) {
        if (field.id == kGroupColumns) {
            size_t i = 0;
            to.begin_list(kGroupColumns, kThriftStruct, group.chunks.size());
            each_struct(field, value, [&](std::string_view column) {
                write_chunk(column, begins[i] - group.chunks[i].begin, out);
                i++;
            });
        } else if (field.id == kGroupOffset) {
            to.integer(kGroupOffset, kThriftI64, begins.empty() ? 0 : begins[0]);
        } else if (field.id != kGroupOrdinal && field.id != kGroupSorting) {
            to.raw(field, value);
        }
    });
    if (ordinal <= INT16_MAX)
        to.integer(kGroupOrdinal, kThriftI16, (int64_t)ordinal);
    to.end();
}

std::string copy_footer(std::string_view footer, const std::vector<std::string> &groups,
                        int64_t row_count)
{
    std::string out;
    ThriftStruct to(out);
    each_field(footer, [&](const ThriftField &field, std::string_view value) {
        if (field.id == kFileRowCount) {
            to.integer(kFileRowCount, kThriftI64, row_count);
        } else if (field.id == kFileGroups) {
            to.begin_list(kFileGroups, kThriftStruct, groups.size());
            for (const std::string &group : groups)
                out.append(group);
        } else {
            to.raw(field, value);
        }
    });
    to.end();
    return out;
}

/* --- pages --- */

namespace
{

/* Follows the pages of a chunk, given in pieces of any size. */
class PageWalk
{
  public:
    explicit PageWalk(const CopyChunk &chunk) : left_(chunk.size), values_left_(chunk.value_count)
    {
    }
    void feed(const uint8_t *bytes, int64_t size);
    void end();

  private:
    int64_t left_; /* of the chunk, behind what was fed */
    int64_t values_left_;
    int64_t page_left_ = 0; /* of the page's body */
    std::string header_;    /* the beginning of a header that is not there whole yet */
    bool has_crc_ = false;
    uint32_t crc_ = 0, crc_wanted_ = 0;

    void page_begins(std::string_view header, int64_t room);
    void page_ends();
    int64_t header(const uint8_t *bytes, int64_t size);
    int64_t body(const uint8_t *bytes, int64_t size);
};

int64_t values_of_page(std::string_view header)
{
    int64_t count = 0;
    each_field(header, [&](const ThriftField &field, std::string_view value) {
        if (field.id == 1)
            count = integer_of(field, value);
    });
    return count;
}

/* `room`: bytes of the chunk behind the header. */
void PageWalk::page_begins(std::string_view header, int64_t room)
{
    int64_t size = -1, values = 0;
    has_crc_ = false;
    crc_ = 0;
    each_field(header, [&](const ThriftField &field, std::string_view value) {
        if (field.id == kPageSize)
            size = integer_of(field, value);
        if (field.id == kPageCrc) {
            has_crc_ = true;
            crc_wanted_ = (uint32_t)integer_of(field, value);
        }
        if ((field.id == kPageData || field.id == kPageDataV2) && field.type == kThriftStruct)
            values = values_of_page(value);
    });
    if (size < 0 || size > room)
        throw ThriftMalformed("a page reaches beyond its column chunk");
    if (values < 0 || values > values_left_)
        throw ThriftMalformed("the pages hold more values than the footer says");
    values_left_ -= values;
    page_left_ = size;
    if (size == 0)
        page_ends();
}

void PageWalk::page_ends()
{
    if (has_crc_ && crc_ != crc_wanted_)
        throw ThriftMalformed("a page's checksum is wrong: its bytes are damaged");
}

/* How many of the bytes belong to the header that is being gathered. */
int64_t PageWalk::header(const uint8_t *bytes, int64_t size)
{
    size_t before = header_.size();
    std::string_view view((const char *)bytes, (size_t)size);
    if (before > 0) {
        header_.append(view);
        view = header_;
    }
    try {
        ThriftReader in(view);
        size_t length = in.value(kThriftStruct).size();
        page_begins(view.substr(0, length), left_ - (int64_t)(length - before));
        header_.clear();
        return (int64_t)(length - before);
    } catch (const ThriftShort &) {
        if (view.size() > kPageHeaderMax)
            throw ThriftMalformed("a page's header is too large");
        if (before == 0)
            header_ = view;
        return size;
    }
}

int64_t PageWalk::body(const uint8_t *bytes, int64_t size)
{
    int64_t n = std::min(size, page_left_);
    if (has_crc_)
        crc_ = arrow::internal::crc32(crc_, bytes, (size_t)n);
    page_left_ -= n;
    if (page_left_ == 0)
        page_ends();
    return n;
}

void PageWalk::feed(const uint8_t *bytes, int64_t size)
{
    while (size > 0) {
        int64_t n = page_left_ > 0 ? body(bytes, size) : header(bytes, size);
        bytes += n;
        size -= n;
        left_ -= n;
    }
}

void PageWalk::end()
{
    if (page_left_ > 0 || !header_.empty())
        throw ThriftMalformed("the last page is cut off");
    if (values_left_ > 0)
        throw ThriftMalformed("the pages hold fewer values than the footer says");
}

} // namespace

} // namespace tarn

void tarn_file_copy::chunk(size_t group, size_t leaf,
                           const std::function<void(const uint8_t *, int64_t)> &push)
{
    const tarn::CopyChunk &chunk = groups[group].chunks[leaf];
    std::shared_ptr<arrow::Buffer> window =
        tarn::new_buffer(std::min(chunk.size, tarn::kWindow) + 1);
    try {
        tarn::PageWalk walk(chunk);
        for (int64_t done = 0, n; done < chunk.size; done += n) {
            n = std::min(chunk.size - done, tarn::kWindow);
            uint8_t *bytes = window->mutable_data();
            int64_t got = tarn::must(file->ReadAt(chunk.begin + done, n, bytes),
                                     TARN_DATA_FILE_MALFORMED, what);
            if (got < n)
                throw tarn::ThriftMalformed("the file is shorter than it was");
            walk.feed(bytes, n);
            push(bytes, n);
        }
        walk.end();
    } catch (const tarn::ThriftShort &) {
        tarn::fail(TARN_DATA_FILE_MALFORMED, "%s: row group %zu, column %s: a page is cut off",
                   what.c_str(), group,
                   metadata->schema()->Column((int)leaf)->path()->ToDotString().c_str());
    } catch (const tarn::ThriftMalformed &x) {
        tarn::fail(TARN_DATA_FILE_MALFORMED, "%s: row group %zu, column %s: %s", what.c_str(),
                   group, metadata->schema()->Column((int)leaf)->path()->ToDotString().c_str(),
                   x.what());
    }
}

/* --- which files can be copied --- */

namespace tarn
{

namespace
{

using parquet::schema::GroupNode;
using parquet::schema::Node;
using parquet::schema::PrimitiveNode;

bool same_logical(const Node &a, const Node &b)
{
    const std::shared_ptr<const parquet::LogicalType> &x = a.logical_type(), &y = b.logical_type();
    bool none_x = x == nullptr || x->is_none(), none_y = y == nullptr || y->is_none();
    return none_x || none_y ? none_x == none_y : x->Equals(*y);
}

bool same_node(const Node &a, const Node &b)
{
    if (a.name() != b.name() || a.field_id() != b.field_id() || a.repetition() != b.repetition() ||
        a.is_group() != b.is_group() || !same_logical(a, b))
        return false;
    if (a.is_primitive()) {
        const PrimitiveNode &x = static_cast<const PrimitiveNode &>(a);
        const PrimitiveNode &y = static_cast<const PrimitiveNode &>(b);
        return x.physical_type() == y.physical_type() &&
               (x.physical_type() != parquet::Type::FIXED_LEN_BYTE_ARRAY ||
                x.type_length() == y.type_length());
    }
    const GroupNode &x = static_cast<const GroupNode &>(a);
    const GroupNode &y = static_cast<const GroupNode &>(b);
    bool same = x.field_count() == y.field_count();
    for (int i = 0; i < x.field_count() && same; i++)
        same = same_node(*x.field(i), *y.field(i));
    return same;
}

/* The message's own name and id are nobody's business. */
bool same_columns(const GroupNode &a, const GroupNode &b)
{
    bool same = a.field_count() == b.field_count();
    for (int i = 0; i < a.field_count() && same; i++)
        same = same_node(*a.field(i), *b.field(i));
    return same;
}

/* What a rewrite would know of a column must be known of its chunks. */
bool facts_there(const tarn_file_copy &copy, const parquet::ColumnChunkMetaData &chunk,
                 const CopyChunk &found, int leaf, bool nested)
{
    const parquet::ColumnDescriptor *column = copy.metadata->schema()->Column(leaf);
    if (column->column_order().get_order() != parquet::ColumnOrder::TYPE_DEFINED_ORDER)
        return false; /* bounds of another order would become bounds of ours */
    if (nested)
        return true;
    if (column->max_definition_level() > 0 && found.null_count < 0)
        return false;
    if (column->physical_type() == parquet::Type::INT96)
        return true;
    return chunk.is_stats_set() &&
           chunk.statistics() != nullptr; /* which throws where they are malformed */
}

bool group_fits(const tarn_file_copy &copy, size_t g, parquet::Compression::type codec)
{
    const CopyGroup &group = copy.groups[g];
    std::unique_ptr<parquet::RowGroupMetaData> metadata = copy.metadata->RowGroup((int)g);
    size_t leaf = 0;
    if (group.elsewhere || (int)group.chunks.size() != copy.metadata->num_columns())
        return false;
    for (const ColumnFacts &fact : copy.facts) {
        for (int i = 0; i < fact.leaf_count; i++, leaf++) {
            std::unique_ptr<parquet::ColumnChunkMetaData> chunk = metadata->ColumnChunk((int)leaf);
            if (chunk->compression() != codec ||
                !facts_there(copy, *chunk, group.chunks[leaf], (int)leaf, fact.nested))
                return false;
        }
    }
    return true;
}

bool file_fits(tarn_file_copy &copy, const struct tarn_file_write *spec)
{
    std::shared_ptr<GroupNode> wanted = parquet_schema(spec->columns, spec->column_count);
    int64_t size = 0;
    if (copy.metadata->is_encryption_algorithm_set() || copy.groups.empty() ||
        !same_columns(*wanted, *copy.metadata->schema()->group_node()))
        return false;
    for (size_t i = 0; i < spec->column_count; i++)
        copy.facts.push_back(column_facts(spec->columns[i].type));
    for (size_t g = 0; g < copy.groups.size(); g++) {
        size += copy.groups[g].size;
        if (!group_fits(copy, g, parquet_codec(spec->compression)))
            return false;
    }
    return size / (int64_t)copy.groups.size() >= parquet_group_worth(spec->row_group_size);
}

/* The footer's bytes; false: there is none that could be copied from. */
bool read_footer(tarn_file_copy &copy, int64_t *begin)
{
    uint8_t tail[kTailSize];
    int64_t size = must(copy.file->GetSize(), TARN_DATA_FILE_MALFORMED, copy.what);
    if (size < kTailSize + 4)
        return false;
    int64_t got = must(copy.file->ReadAt(size - kTailSize, kTailSize, tail),
                       TARN_DATA_FILE_MALFORMED, copy.what);
    if (got != kTailSize || memcmp(tail + 4, "PAR1", 4) != 0)
        return false;
    int64_t length =
        (int64_t)tail[0] | (int64_t)tail[1] << 8 | (int64_t)tail[2] << 16 | (int64_t)tail[3] << 24;
    *begin = size - kTailSize - length;
    if (length > kFooterMax || *begin < 4)
        return false;
    copy.footer.resize((size_t)length);
    got = must(copy.file->ReadAt(*begin, length, copy.footer.data()), TARN_DATA_FILE_MALFORMED,
               copy.what);
    return got == length;
}

/* Reads what the file says of itself; false: not a file to copy from. */
bool understand(tarn_file_copy &copy)
{
    int64_t begin = 0, rows = 0;
    if (!read_footer(copy, &begin))
        return false;
    copy.metadata = parquet::FileMetaData::Make(copy.footer.data(), (int64_t)copy.footer.size());
    copy.groups = copy_groups(copy.footer, begin, SIZE_MAX);
    if ((int)copy.groups.size() != copy.metadata->num_row_groups())
        return false;
    for (const CopyGroup &group : copy.groups) {
        if (__builtin_add_overflow(rows, group.row_count, &rows))
            return false;
        copy.sizes.push_back({group.row_count, group.size});
    }
    copy.row_count = rows;
    return rows == copy.metadata->num_rows();
}

} // namespace

} // namespace tarn

struct tarn_status *tarn_file_copy_open(struct tarn_store *store, struct tarn_op *op,
                                        const char *key, const struct tarn_file_write *spec,
                                        const bool *bounded, struct tarn_file_copy **out)
{
    struct tarn_store_reader *reader = NULL;
    *out = NULL;
    if ((spec->format != NULL && strcmp(spec->format, "parquet") != 0) ||
        !std::string_view(key).ends_with(".parquet"))
        return TARN_OK;
    TARN_TRY(tarn_store_reader_open(store, op, key, &reader));
    std::shared_ptr<tarn::StoreFile> file;
    struct tarn_status *status = tarn::guarded(TARN_DATA_FILE_MALFORMED, key, [&] {
        std::unique_ptr<tarn_file_copy> copy(new tarn_file_copy);
        file = copy->file = std::make_shared<tarn::StoreFile>(reader);
        copy->file->op = op;
        copy->what = key;
        if (bounded != NULL)
            copy->bounded.assign(bounded, bounded + spec->column_count);
        else
            copy->bounded.assign(spec->column_count, false);
        if (tarn::understand(*copy) && tarn::file_fits(*copy, spec))
            *out = copy.release();
    });
    if (file != nullptr)
        file->op = NULL;
    return tarn::told_by(file, status);
}

size_t tarn_file_copy_groups(const struct tarn_file_copy *copy,
                             const struct tarn_row_group **groups)
{
    *groups = copy->sizes.data();
    return copy->sizes.size();
}

const char *tarn_file_copy_key(const struct tarn_file_copy *copy)
{
    return copy->what.c_str();
}

int64_t tarn_file_copy_row_count(const struct tarn_file_copy *copy)
{
    return copy->row_count;
}

struct tarn_status *tarn_file_copy_bounds(const struct tarn_file_copy *copy, size_t group,
                                          size_t column, struct tarn_arena *arena, bool *known,
                                          struct tarn_value *min, struct tarn_value *max)
{
    return tarn::guarded(TARN_DATA_FILE_MALFORMED, copy->what, [&] {
        const tarn::ColumnFacts &facts = copy->facts[column];
        bool real = facts.id == TARN_TYPE_FLOAT || facts.id == TARN_TYPE_DOUBLE;
        int leaf = 0;
        for (size_t i = 0; i < column; i++)
            leaf += copy->facts[i].leaf_count;
        *known = (!real || copy->bounded[column]) &&
                 tarn::group_bounds(*copy->metadata, (int)group, leaf, facts, arena, min, max);
    });
}

void tarn_file_copy_close(struct tarn_file_copy *copy)
{
    delete copy;
}
