/* orc_tail - the tail of an ORC file, as if an enemy wrote it. */
#include "columnar/orc_tail.h"

#include <arrow/buffer.h>

namespace tarn
{

namespace
{

const uint64_t kBlockMax = 16 << 20; /* of compression; the format has at most 8 MiB */
const size_t kFooterMax = 64 << 20;  /* expanded */
const size_t kColumnsMax = 100000;
const int kDepthMax = 2 * TARN_TYPE_DEPTH_MAX; /* a map is two nodes in Arrow's tree */

/* One message of Protocol Buffers, field by field. */
class Proto
{
  public:
    Proto(std::string_view bytes, const std::string &what)
        : at_((const uint8_t *)bytes.data()), end_(at_ + bytes.size()), what_(what)
    {
    }
    uint64_t number = 0;    /* of a varint field; also of fixed ones */
    std::string_view bytes; /* of a field with a length */
    int field = 0;

    bool next()
    {
        if (at_ == end_)
            return false;
        uint64_t tag = varint();
        field = (int)std::min<uint64_t>(tag >> 3, INT32_MAX);
        bytes = {};
        number = 0;
        switch (tag & 7) {
        case 0:
            number = varint();
            break;
        case 1:
            take(8);
            break;
        case 2:
            bytes = take(varint());
            break;
        case 5:
            take(4);
            break;
        default:
            bad("a field of no known kind");
        }
        return true;
    }
    int64_t signed_number() const /* a field of type sint64 */
    {
        return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
    }
    /* A field of repeated whole numbers, packed or not. */
    template <typename Each> void each_number(Each each)
    {
        if (bytes.data() == NULL)
            return each(number);
        Proto inner(bytes, what_);
        while (inner.at_ != inner.end_)
            each(inner.varint());
    }
    [[noreturn]] void bad(const char *why) const
    {
        fail(TARN_DATA_FILE_MALFORMED, "%s: the ORC tail: %s", what_.c_str(), why);
    }

  private:
    uint64_t varint()
    {
        uint64_t v = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (at_ == end_)
                bad("it ends early");
            uint8_t byte = *at_++;
            v |= (uint64_t)(byte & 0x7F) << shift;
            if (byte < 0x80)
                return v;
        }
        bad("a number is damaged");
    }
    std::string_view take(uint64_t size)
    {
        if (size > (uint64_t)(end_ - at_))
            bad("a length goes beyond it");
        std::string_view out((const char *)at_, (size_t)size);
        at_ += size;
        return out;
    }
    const uint8_t *at_, *end_;
    const std::string &what_;
};

struct Postscript {
    uint64_t footer_size = 0, block_size = 256 << 10, metadata_size = 0, compression = 0;
};

/* Chunks behind a header of three bytes each: length * 2 + (1 where it is stored as it is). */
std::string expand(std::string_view in, uint64_t compression, const std::string &what)
{
    static const enum tarn_zip kZips[] = {TARN_ZIP_NONE, TARN_ZIP_DEFLATE, TARN_ZIP_SNAPPY,
                                          TARN_ZIP_NONE, TARN_ZIP_NONE,    TARN_ZIP_ZSTD};
    if (compression == 0)
        return std::string(in);
    struct tarn_buf out = {};
    std::unique_ptr<struct tarn_buf, void (*)(struct tarn_buf *)> drop(&out, tarn_buf_drop);
    while (!in.empty()) {
        if (in.size() < 3)
            fail(TARN_DATA_FILE_MALFORMED, "%s: the ORC footer ends early", what.c_str());
        uint32_t header = (uint32_t)(uint8_t)in[0] | (uint32_t)(uint8_t)in[1] << 8 |
                          (uint32_t)(uint8_t)in[2] << 16;
        size_t size = header >> 1;
        in.remove_prefix(3);
        if (size > in.size())
            fail(TARN_DATA_FILE_MALFORMED, "%s: the ORC footer ends early", what.c_str());
        std::string_view chunk = in.substr(0, size);
        in.remove_prefix(size);
        if (out.size + size > kFooterMax)
            fail(TARN_DATA_FILE_MALFORMED, "%s: the ORC footer is too large", what.c_str());
        if ((header & 1) != 0)
            tarn_buf_add_slice(&out, slice_of(chunk));
        else
            must(
                tarn_status_wrap(tarn_status_as(tarn_zip_expand(kZips[compression], slice_of(chunk),
                                                                kFooterMax - out.size, &out),
                                                TARN_DATA_FILE_MALFORMED),
                                 "%s: the ORC footer", what.c_str()));
    }
    return string_of(tarn_buf_slice(&out));
}

void read_type(Proto p, OrcColumn &column)
{
    while (p.next()) {
        if (p.field == 2)
            p.each_number([&](uint64_t id) { column.children.push_back((size_t)id); });
    }
}

/* Statistics of a column: those of times. */
void read_times(Proto p, const std::string &what, OrcColumn &column)
{
    while (p.next()) {
        if (p.field != 9)
            continue;
        Proto times(p.bytes, what);
        bool min = false, max = false;
        while (
            times
                .next()) { /* 1, 2: as the writer's clock had it; 3, 4: UTC, which counts where it is there */
            if (times.field == 3 || (times.field == 1 && !min))
                column.min_ms = times.signed_number(), min = true;
            else if (times.field == 4 || (times.field == 2 && !max))
                column.max_ms = times.signed_number(), max = true;
        }
        column.has_times = min && max;
    }
}

int64_t read_stripe(Proto p, uint64_t file_size)
{
    uint64_t parts[6] = {};
    while (p.next())
        if (p.field >= 1 && p.field <= 5)
            parts[p.field] = p.number;
    uint64_t end = 0;
    for (int i = 1; i <= 4; i++)
        if (parts[i] > file_size || (end += parts[i]) > file_size)
            p.bad("a stripe lies beyond the file");
    if (parts[5] > (uint64_t)INT64_MAX / 2)
        p.bad("a stripe has too many rows");
    return (int64_t)parts[5];
}

/* Each node but the first is the child of one before it. */
void check_tree(const std::vector<OrcColumn> &columns, const Proto &p)
{
    std::vector<int> depth(columns.size(), -1);
    if (columns.empty() || columns.size() > kColumnsMax)
        p.bad("it has no columns, or too many");
    depth[0] = 0;
    for (size_t i = 0; i < columns.size(); i++) {
        if (depth[i] < 0 || depth[i] > kDepthMax)
            p.bad("its types are no tree, or nested too deep");
        for (size_t child : columns[i].children) {
            if (child <= i || child >= columns.size() || depth[child] >= 0)
                p.bad("its types are no tree");
            depth[child] = depth[i] + 1;
        }
    }
}

void read_footer(const std::string &footer, uint64_t file_size, const std::string &what,
                 OrcTail &out)
{
    Proto p(footer, what);
    size_t seen = 0;
    int64_t stripe_rows = 0;
    std::vector<std::string_view> statistics;
    while (p.next()) {
        if (p.field == 3) {
            if (__builtin_add_overflow(stripe_rows, read_stripe(Proto(p.bytes, what), file_size),
                                       &stripe_rows))
                p.bad("it has too many rows");
        } else if (p.field == 4 && out.columns.size() <= kColumnsMax) {
            out.columns.emplace_back();
            read_type(Proto(p.bytes, what), out.columns.back());
        } else if (p.field == 6) {
            out.row_count = (int64_t)p.number;
        } else if (p.field == 7 && statistics.size() <= kColumnsMax) {
            statistics.push_back(p.bytes);
        }
    }
    check_tree(out.columns, p);
    if (out.row_count != stripe_rows)
        p.bad("the stripes have another count of rows than the file");
    for (; seen < statistics.size() && seen < out.columns.size(); seen++)
        read_times(Proto(statistics[seen], what), what, out.columns[seen]);
}

std::string_view view(const arrow::Buffer &buffer)
{
    return {(const char *)buffer.data(), (size_t)buffer.size()};
}

} // namespace

OrcTail orc_tail(arrow::io::RandomAccessFile &file, const std::string &what)
{
    OrcTail tail;
    auto refuse = [&](const char *why) {
        fail(TARN_DATA_FILE_MALFORMED, "%s: no ORC file: %s", what.c_str(), why);
    };
    int64_t size = must(file.GetSize(), TARN_DATA_FILE_MALFORMED, what);
    int64_t near = std::min<int64_t>(size, 256);
    std::shared_ptr<arrow::Buffer> last =
        must(file.ReadAt(size - near, near), TARN_DATA_FILE_MALFORMED, what);
    if (size < 16 || last->size() != near)
        refuse("it is too short");
    int64_t ps_size = last->data()[near - 1];
    if (ps_size + 1 > near)
        refuse("its postscript is longer than it");
    Proto p(view(*last).substr((size_t)(near - 1 - ps_size), (size_t)ps_size), what);
    Postscript ps;
    bool magic = false;
    while (p.next()) {
        if (p.field == 1)
            ps.footer_size = p.number;
        else if (p.field == 2)
            ps.compression = p.number;
        else if (p.field == 3)
            ps.block_size = p.number;
        else if (p.field == 5)
            ps.metadata_size = p.number;
        else if (p.field == 8000)
            magic = p.bytes == "ORC";
    }
    uint64_t rest = (uint64_t)(size - 1 - ps_size);
    if (!magic)
        refuse("its last bytes don't say so");
    if (ps.compression > 5 || ps.block_size > kBlockMax)
        refuse("its compression is unknown, or has blocks beyond 16 MiB");
    if (ps.footer_size > rest || ps.metadata_size > rest - ps.footer_size)
        refuse("its footer is longer than it");
    if (ps.compression == 3 || ps.compression == 4)
        return tail;
    std::shared_ptr<arrow::Buffer> footer =
        must(file.ReadAt((int64_t)(rest - ps.footer_size), (int64_t)ps.footer_size),
             TARN_DATA_FILE_MALFORMED, what);
    tail.known = true;
    read_footer(expand(view(*footer), ps.compression, what), (uint64_t)size, what, tail);
    return tail;
}

} // namespace tarn
