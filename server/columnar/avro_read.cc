/*
 * avro_read - rows of an Avro data file, whoever wrote it (docs/format.md "Avro data files").
 *
 * Shape    block by block: blocks before the wanted rows are passed over unread, one is expanded at a time, and
 *          what nobody wants of a record is skipped. The file's own schema says what lies where; the type
 *          that the table's schema gave a column says what it means.
 * Bounds   a block is at most kBlockMax when expanded; counts are held against the bytes that are left; a
 *          value may take many times its bytes (a null row of many columns), so what a batch has grown to is
 *          held against kBatchBytesMax.
 */
#include "columnar/data_file.h"
#include "columnar/text.h"

#include <algorithm>
#include <arrow/buffer.h>
#include <map>

extern "C" {
#include "format/avro.h"
}

namespace tarn
{

namespace
{

using Node = struct tarn_avro_node;

const int kBatchRows = 8192, kBatchRowsMax = 1 << 20;
const size_t kBlockMax = 128 << 20;
const int64_t kBatchBytes = 16 << 20;     /* a batch ends here, though it has few rows */
const int64_t kBatchBytesMax = 256 << 20; /* one row more must not take it so far */
const int64_t kWindow = 1 << 20;          /* bytes of the file at once, unless a block needs more */
const int64_t kHeaderMax = 4 << 20;

/* Bytes that a null of the type takes in a column. */
int64_t null_size(const struct tarn_type *type)
{
    int64_t size = 17;
    for (size_t i = 0; i < type->field_count; i++)
        size += null_size(type->fields[i].type);
    return size;
}

class AvroReader : public FileReader
{
  public:
    AvroReader(FilePtr file, std::string what, int batch_row_count);
    ~AvroReader() override
    {
        tarn_buf_drop(&block_);
        tarn_arena_free(arena_);
    }
    SchemaPtr schema() override
    {
        return schema_;
    }
    void select(const std::vector<int> &fields, const std::vector<const struct tarn_type *> &types,
                int64_t row_begin, int64_t row_end) override;
    RecordBatchPtr next() override;

  private:
    /* the file's bytes */
    [[noreturn]] void bad(const char *format, ...) const TARN_PRINTF(2, 3);
    void window(int64_t size);
    bool next_block();

    /* values in the block */
    int64_t take_long();
    struct tarn_slice take_bytes();
    const uint8_t *take(size_t size);
    int64_t take_count();
    const Node *branch(const Node *node);
    void skip(const Node *node, int depth);
    void record();
    void value(const Node *node, Column &column);
    void integer(const Node *node, Column &column);
    void real(const Node *node, Column &column);
    void decimal(const Node *node, Column &column);
    void time(const Node *node, Column &column);
    void items(const Node *node, Column &column);
    void pairs(const Node *node, Column &column);
    void row(const Node *node, Column &column);
    void null(Column &column);
    void grow(int64_t bytes)
    {
        if ((grown_ += bytes) > kBatchBytesMax)
            fail(TARN_MEMORY_EXHAUSTED, "%s: one batch of rows takes more than %d MiB",
                 what_.c_str(), (int)(kBatchBytesMax >> 20));
    }
    [[noreturn]] void mismatch(const struct tarn_type *type) const
    {
        bad("a value is not %s", type_text(type).c_str());
    }

    FilePtr file_;
    std::string what_;
    int batch_rows_;
    struct tarn_arena *arena_;
    struct tarn_avro_reader container_ = {};
    SchemaPtr schema_;
    int64_t size_ = 0, at_ = 0; /* of the file; of the next block in it */
    std::shared_ptr<arrow::Buffer> window_;
    int64_t window_at_ = 0;

    std::vector<int> wanted_;    /* of each field of a record: its place among columns_, or -1 */
    std::vector<int> positions_; /* of each selected column among columns_ */
    std::vector<std::unique_ptr<Column>> columns_;
    std::vector<std::string> names_;
    std::map<std::pair<const Node *, const Column *>, std::vector<int>>
        rows_; /* of a record's fields: places in the ROW */
    int64_t row_ = 0, row_begin_ = 0, row_end_ = INT64_MAX;

    struct tarn_buf block_ = {};
    int64_t block_at_ = 0, records_left_ = 0;
    const uint8_t *cursor_ = NULL, *end_ = NULL;
    int64_t grown_ = 0;
};

/* --- the container --- */

void AvroReader::bad(const char *format, ...) const
{
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    fail(TARN_DATA_FILE_MALFORMED, "%s: block at byte %" PRId64 ": %s", what_.c_str(), block_at_,
         why);
}

/* Makes window_ begin at at_ and hold `size` bytes, if the file has so many. */
void AvroReader::window(int64_t size)
{
    int64_t have = window_ == nullptr ? 0 : window_at_ + window_->size() - at_;
    if (window_ != nullptr && at_ >= window_at_ && have >= std::min(size, size_ - at_))
        return;
    window_ = must(file_->ReadAt(at_, std::min(std::max(size, kWindow), size_ - at_)),
                   TARN_DATA_FILE_MALFORMED, what_);
    window_at_ = at_;
}

AvroReader::AvroReader(FilePtr file, std::string what, int batch_row_count)
    : file_(std::move(file)), what_(std::move(what)),
      batch_rows_(batch_row_count <= 0 ? kBatchRows : std::min(batch_row_count, kBatchRowsMax)),
      arena_(tarn_arena_new())
{
    std::unique_ptr<struct tarn_arena, void (*)(struct tarn_arena *)> arena(arena_,
                                                                            tarn_arena_free);
    size_ = must(file_->GetSize(), TARN_DATA_FILE_MALFORMED, what_);
    for (int64_t head = 64 << 10;; head = kHeaderMax) { /* nearly always the first is enough */
        window_ = must(file_->ReadAt(0, std::min(head, size_)), TARN_DATA_FILE_MALFORMED, what_);
        struct tarn_status *s = tarn_avro_open(
            tarn_slice_of(window_->data(), (size_t)window_->size()), arena_, &container_);
        if (s != TARN_OK && head < std::min(kHeaderMax, size_)) {
            tarn_status_free(s);
            continue;
        }
        must(tarn_status_wrap(tarn_status_as(s, TARN_DATA_FILE_MALFORMED), "%s", what_.c_str()));
        break;
    }
    at_ = (int64_t)container_.at;
    arrow::FieldVector fields;
    for (size_t i = 0; i < container_.schema->child_count; i++)
        fields.push_back(arrow::field(string_of(container_.schema->names[i]), arrow::null()));
    schema_ = arrow::schema(fields);
    arena.release();
}

void AvroReader::select(const std::vector<int> &fields,
                        const std::vector<const struct tarn_type *> &types, int64_t row_begin,
                        int64_t row_end)
{
    wanted_.assign(container_.schema->child_count, -1);
    for (size_t i = 0; i < fields.size(); i++) {
        int &place = wanted_[(size_t)fields[i]];
        if (place < 0) {
            place = (int)columns_.size();
            columns_.emplace_back(new Column(types[i]));
        }
        positions_.push_back(place);
        names_.push_back(string_of(container_.schema->names[fields[i]]));
    }
    row_begin_ = std::max<int64_t>(0, row_begin);
    row_end_ = row_end <= 0 ? INT64_MAX : row_end;
}

/* The next block with wanted rows, expanded (unless nobody wants a column); false at the end of the file. */
bool AvroReader::next_block()
{
    for (;;) {
        int64_t count = 0, stored = 0;
        if (cursor_ != end_)
            bad("%zu bytes are left after the last record", (size_t)(end_ - cursor_));
        block_at_ = at_;
        if (at_ >= size_)
            return false;
        window(32);
        const uint8_t *base = window_->data() + (at_ - window_at_), *cursor = base;
        const uint8_t *end = window_->data() + window_->size();
        if (!tarn_avro_take_long(&cursor, end, &count) || count < 0 ||
            !tarn_avro_take_long(&cursor, end, &stored) || stored < 0 ||
            stored > size_ - at_ - (cursor - base) - TARN_AVRO_SYNC_SIZE)
            bad("it is cut short");
        int64_t head = cursor - base;
        if (__builtin_add_overflow(row_, count, &records_left_))
            bad("it has too many records");
        records_left_ = count;
        int64_t next = at_ + head + stored + TARN_AVRO_SYNC_SIZE;
        bool unread = row_ + count <= row_begin_ || columns_.empty();
        if (!unread) {
            window(head + stored + TARN_AVRO_SYNC_SIZE);
            base = window_->data() + (at_ - window_at_);
            if (window_->size() - (at_ - window_at_) < head + stored + TARN_AVRO_SYNC_SIZE ||
                memcmp(base + head + stored, container_.sync, TARN_AVRO_SYNC_SIZE) != 0)
                bad("the mark behind it is not the file's");
            tarn_buf_clear(&block_);
            must(tarn_status_wrap(
                tarn_status_as(tarn_avro_expand(&container_,
                                                tarn_slice_of(base + head, (size_t)stored),
                                                kBlockMax, &block_),
                               TARN_DATA_FILE_MALFORMED),
                "%s: block at byte %" PRId64, what_.c_str(), at_));
            cursor_ = block_.data;
            end_ = cursor_ + block_.size;
            if (count > (int64_t)block_.size)
                bad("%" PRId64 " records in %zu bytes", count, block_.size);
        }
        at_ = next;
        if (count > 0 && (!unread || row_ + count > row_begin_))
            return true;
        row_ += count;
        records_left_ = 0;
    }
}

/* --- values --- */

int64_t AvroReader::take_long()
{
    uint64_t n = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (cursor_ == end_)
            bad("a number is damaged");
        uint8_t byte = *cursor_++;
        if (shift == 63 && byte > 1)
            bad("a number has more than 64 bits");
        n |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
    }
    bad("a number is damaged");
}

const uint8_t *AvroReader::take(size_t size)
{
    if (size > (size_t)(end_ - cursor_))
        bad("a value goes beyond it");
    const uint8_t *at = cursor_;
    cursor_ += size;
    return at;
}

struct tarn_slice AvroReader::take_bytes()
{
    int64_t size = take_long();
    if (size < 0)
        bad("a length is negative");
    return tarn_slice_of(take((size_t)size), (size_t)size);
}

/* The next run of an array or map: its count of items, 0 at the end; each has at least a byte. */
int64_t AvroReader::take_count()
{
    int64_t count = take_long();
    if (count < 0) {
        int64_t size = take_long();
        if (count == INT64_MIN || size < 0 || size > end_ - cursor_)
            bad("the size of an array goes beyond it");
        count = -count;
    }
    if (count > end_ - cursor_)
        bad("%" PRId64 " items in %zu bytes", count, (size_t)(end_ - cursor_));
    return count;
}

const Node *AvroReader::branch(const Node *node)
{
    if (node->kind != TARN_AVRO_UNION)
        return node;
    int64_t i = take_long();
    if (i < 0 || (uint64_t)i >= node->child_count)
        bad("a union has no branch %" PRId64, i);
    return node->children[i];
}

void AvroReader::skip(const Node *node, int depth)
{
    if (depth > 2 * TARN_AVRO_DEPTH_MAX)
        bad("values are nested too deep");
    node = branch(node);
    switch (node->kind) {
    case TARN_AVRO_NULL:
    case TARN_AVRO_UNION:
        return;
    case TARN_AVRO_BOOLEAN:
        take(1);
        return;
    case TARN_AVRO_INT:
    case TARN_AVRO_LONG:
    case TARN_AVRO_ENUM:
        take_long();
        return;
    case TARN_AVRO_FLOAT:
        take(4);
        return;
    case TARN_AVRO_DOUBLE:
        take(8);
        return;
    case TARN_AVRO_FIXED:
        take((size_t)node->size);
        return;
    case TARN_AVRO_BYTES:
    case TARN_AVRO_STRING:
        take_bytes();
        return;
    case TARN_AVRO_ARRAY:
    case TARN_AVRO_MAP:
        for (int64_t count; (count = take_count()) != 0;) {
            for (; count > 0; count--) {
                const uint8_t *before = cursor_;
                if (node->kind == TARN_AVRO_MAP)
                    take_bytes();
                skip(node->children[0], depth + 1);
                if (cursor_ == before) /* so that a count makes no work out of nothing */
                    bad("an array has items without bytes");
            }
        }
        return;
    case TARN_AVRO_RECORD:
        for (size_t i = 0; i < node->child_count; i++)
            skip(node->children[i], depth + 1);
        return;
    }
}

void AvroReader::record()
{
    if (branch(container_.top) != container_.schema)
        bad("a record is null");
    bool skipped = row_ < row_begin_;
    const Node *schema = container_.schema;
    for (size_t i = 0; i < schema->child_count; i++) {
        if (skipped || wanted_[i] < 0)
            skip(schema->children[i], 0);
        else
            value(schema->children[i], *columns_[(size_t)wanted_[i]]);
    }
}

void AvroReader::null(Column &column)
{
    grow(column.type->id == TARN_TYPE_ROW ? null_size(column.type) : 17);
    column.append_null();
}

void AvroReader::value(const Node *node, Column &column)
{
    node = branch(node);
    if (node->kind == TARN_AVRO_NULL)
        return null(column);
    grow(17);
    switch (column.type->id) {
    case TARN_TYPE_BOOLEAN: {
        if (node->kind != TARN_AVRO_BOOLEAN)
            mismatch(column.type);
        column.append_fixed((int8_t)(*take(1) != 0));
        return;
    }
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_BIGINT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        return integer(node, column);
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        return real(node, column);
    case TARN_TYPE_DECIMAL:
        return decimal(node, column);
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return time(node, column);
    case TARN_TYPE_ARRAY:
        return items(node, column);
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET:
        return pairs(node, column);
    case TARN_TYPE_ROW:
        return row(node, column);
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY: {
        if (node->kind != TARN_AVRO_STRING && node->kind != TARN_AVRO_BYTES &&
            node->kind != TARN_AVRO_FIXED)
            mismatch(column.type);
        struct tarn_slice bytes = node->kind == TARN_AVRO_FIXED
                                      ? tarn_slice_of(take((size_t)node->size), (size_t)node->size)
                                      : take_bytes();
        grow((int64_t)bytes.size);
        column.append_bytes(view_of(bytes));
        return;
    }
    default:
        fail(TARN_UNSUPPORTED_FEATURE, "%s: %s is not read from Avro", what_.c_str(),
             type_text(column.type).c_str());
    }
}

void AvroReader::integer(const Node *node, Column &column)
{
    if (node->kind != TARN_AVRO_INT && node->kind != TARN_AVRO_LONG)
        mismatch(column.type);
    int64_t v = take_long();
    int bits = column.type->id == TARN_TYPE_TINYINT    ? 7
               : column.type->id == TARN_TYPE_SMALLINT ? 15
               : column.type->id == TARN_TYPE_BIGINT   ? 63
                                                       : 31;
    if (v >> bits != 0 && v >> bits != -1)
        bad("%" PRId64 " is out of the range of %s", v, type_text(column.type).c_str());
    if (column.type->id == TARN_TYPE_TIME && (v < 0 || v >= 86400000))
        bad("the time of day is outside 00:00:00..23:59:59.999");
    if (bits == 7)
        column.append_fixed((int8_t)v);
    else if (bits == 15)
        column.append_fixed((int16_t)v);
    else if (bits == 31)
        column.append_fixed((int32_t)v);
    else
        column.append_fixed(v);
}

void AvroReader::real(const Node *node, Column &column)
{
    float single = 0;
    double both = 0;
    if (node->kind == TARN_AVRO_FLOAT) {
        memcpy(&single, take(4), 4);
        both = single;
    } else if (node->kind == TARN_AVRO_DOUBLE && column.type->id == TARN_TYPE_DOUBLE) {
        memcpy(&both, take(8), 8);
    } else {
        mismatch(column.type);
    }
    if (column.type->id == TARN_TYPE_FLOAT)
        column.append_fixed(single);
    else
        column.append_fixed(both);
}

void AvroReader::decimal(const Node *node, Column &column)
{
    const struct tarn_type *type = column.type;
    if ((node->kind != TARN_AVRO_BYTES && node->kind != TARN_AVRO_FIXED) ||
        node->scale != type->scale)
        mismatch(type);
    struct tarn_slice bytes = node->kind == TARN_AVRO_FIXED
                                  ? tarn_slice_of(take((size_t)node->size), (size_t)node->size)
                                  : take_bytes();
    bool negative = bytes.size > 0 && (bytes.data[0] & 0x80) != 0;
    while (bytes.size > 16 && bytes.data[0] == (negative ? 0xFF : 0))
        bytes = tarn_slice_of(bytes.data + 1, bytes.size - 1);
    unsigned __int128 v = negative ? ~(unsigned __int128)0 : 0;
    for (size_t i = 0; i < std::min<size_t>(bytes.size, 16); i++)
        v = v << 8 | bytes.data[i];
    __int128 whole = (__int128)v;
    if (bytes.size > 16 || (bytes.size == 16 && (whole < 0) != negative) ||
        whole >= kPow10[type->precision] || whole <= -kPow10[type->precision])
        bad("a number has more digits than %s", type_text(type).c_str());
    column.append_fixed(whole);
}

/* Java writes milliseconds up to TIMESTAMP(3) and microseconds up to (6), and says so. */
void AvroReader::time(const Node *node, Column &column)
{
    const struct tarn_type *type = column.type;
    if (node->kind != TARN_AVRO_LONG)
        mismatch(type);
    std::string_view logical = view_of(node->logical);
    int64_t from = logical.size() >= 6 && logical.substr(logical.size() - 6) == "micros"   ? 1000000
                   : logical.size() >= 6 && logical.substr(logical.size() - 6) == "millis" ? 1000
                   : logical.size() >= 5 && logical.substr(logical.size() - 5) == "nanos"
                       ? 1000000000
                   : type->precision <= 3 ? 1000
                                          : 1000000;
    int64_t to = ticks_of(type->precision), v = take_long();
    if (from > to)
        v = floor_div(v, from / to);
    else if (__builtin_mul_overflow(v, to / from, &v))
        fail(TARN_VALUE_INVALID, "%s: a time is outside what %s holds here", what_.c_str(),
             type_text(type).c_str());
    column.append_fixed(v);
}

void AvroReader::items(const Node *node, Column &column)
{
    if (node->kind != TARN_AVRO_ARRAY)
        mismatch(column.type);
    for (int64_t count; (count = take_count()) != 0;)
        for (; count > 0; count--)
            value(node->children[0], column.child(0));
    column.append_list();
}

/* A map of texts, or the array of records that stands for any other. */
void AvroReader::pairs(const Node *node, Column &column)
{
    Column &keys = column.child(0), &values = column.child(1);
    bool text = keys.type->id == TARN_TYPE_CHAR || keys.type->id == TARN_TYPE_VARCHAR;
    const Node *pair = node->child_count == 1 ? node->children[0] : NULL;
    if (pair != NULL && node->kind == TARN_AVRO_ARRAY && pair->kind == TARN_AVRO_UNION)
        for (size_t i = 0; i < node->children[0]->child_count; i++)
            if (node->children[0]->children[i]->kind == TARN_AVRO_RECORD)
                pair = node->children[0]->children[i];
    if (!(node->kind == TARN_AVRO_MAP && text) &&
        !(node->kind == TARN_AVRO_ARRAY && pair->kind == TARN_AVRO_RECORD &&
          pair->child_count == 2))
        mismatch(column.type);
    bool swapped = node->kind == TARN_AVRO_ARRAY && tarn_slice_is(pair->names[0], "value");
    for (int64_t count; (count = take_count()) != 0;) {
        for (; count > 0; count--) {
            int64_t before = keys.length();
            if (node->kind == TARN_AVRO_MAP) {
                struct tarn_slice key = take_bytes();
                grow((int64_t)key.size + 17);
                keys.append_bytes(view_of(key));
                value(node->children[0], values);
            } else {
                if (branch(node->children[0]) != pair)
                    bad("an entry of a map is null");
                const uint8_t *begin = cursor_;
                value(pair->children[0], swapped ? values : keys);
                value(pair->children[1], swapped ? keys : values);
                if (cursor_ == begin)
                    bad("an array has items without bytes");
            }
            if (keys.is_null(before))
                bad("a map has a null key");
        }
    }
    column.append_list();
}

void AvroReader::row(const Node *node, Column &column)
{
    if (node->kind != TARN_AVRO_RECORD)
        mismatch(column.type);
    const struct tarn_type *type = column.type;
    std::vector<int> &places = rows_[{node, &column}];
    if (places.empty())
        for (size_t i = 0; i < node->child_count; i++) {
            places.push_back(-1);
            for (size_t f = 0; f < type->field_count; f++)
                if (tarn_slice_equal(node->names[i], type->fields[f].name))
                    places[i] = (int)f;
        }
    int64_t before = column.length();
    for (size_t i = 0; i < node->child_count; i++) {
        if (places[i] < 0)
            skip(node->children[i], 0);
        else
            value(node->children[i], column.child((size_t)places[i]));
    }
    column.append_row();
    for (size_t f = 0; f < type->field_count; f++)
        if (column.child(f).length() == before) /* the file's record lacks it */
            null(column.child(f));
}

RecordBatchPtr AvroReader::next()
{
    int64_t rows = 0;
    grown_ = 0;
    while (row_ < row_end_ && rows < batch_rows_ && grown_ < kBatchBytes) {
        if (records_left_ == 0 && !next_block())
            break;
        if (columns_.empty()) { /* only the count of rows matters */
            int64_t n = std::min({records_left_, row_end_ - row_, batch_rows_ - rows});
            int64_t passed = std::min(std::max<int64_t>(0, row_begin_ - row_), records_left_);
            n = passed > 0 ? passed : n;
            row_ += n;
            records_left_ -= n;
            rows += passed > 0 ? 0 : n;
            continue;
        }
        record();
        rows += row_ >= row_begin_;
        row_++;
        records_left_--;
    }
    if (rows == 0)
        return nullptr;
    arrow::ArrayVector made, columns;
    arrow::FieldVector fields;
    for (std::unique_ptr<Column> &column : columns_)
        made.push_back(column->finish());
    for (size_t i = 0; i < positions_.size(); i++) {
        columns.push_back(made[(size_t)positions_[i]]);
        fields.push_back(arrow::field(names_[i], columns.back()->type()));
    }
    return arrow::RecordBatch::Make(arrow::schema(fields), rows, columns);
}

} // namespace

FileReaderPtr avro_file_reader(FilePtr file, const std::string &what, int batch_row_count)
{
    return FileReaderPtr(new AvroReader(std::move(file), what, batch_row_count));
}

} // namespace tarn
