/* thrift - the compact protocol, read with bounds and written as it was read. */
#include "columnar/thrift.h"

namespace tarn
{

static int64_t unzigzag(uint64_t n)
{
    return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

static void put_varint(std::string &out, uint64_t n)
{
    for (; n >= 0x80; n >>= 7)
        out.push_back((char)(n | 0x80));
    out.push_back((char)n);
}

static void put_zigzag(std::string &out, int64_t n)
{
    put_varint(out, ((uint64_t)n << 1) ^ (uint64_t)(n >> 63));
}

/* --- reading --- */

uint8_t ThriftReader::byte()
{
    if (at_ == end_)
        throw ThriftShort();
    return *at_++;
}

uint64_t ThriftReader::varint()
{
    uint64_t n = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t b = byte();
        n |= (uint64_t)(b & 0x7f) << shift;
        if ((b & 0x80) == 0)
            return n;
    }
    throw ThriftMalformed("metadata holds a number of more than 64 bits");
}

int64_t ThriftReader::integer()
{
    return unzigzag(varint());
}

bool ThriftReader::next(ThriftField &field)
{
    uint8_t head = byte();
    if (head == kThriftStop)
        return false;
    int64_t id = (head >> 4) != 0 ? field.id + (head >> 4) : integer();
    if (id < INT16_MIN || id > INT16_MAX)
        throw ThriftMalformed("metadata holds a field id beyond 16 bits");
    field.id = (int16_t)id;
    field.type = head & 0x0f;
    return true;
}

uint64_t ThriftReader::list(uint8_t &element_type)
{
    uint8_t head = byte();
    uint64_t count = (head >> 4) != 15 ? head >> 4 : varint();
    element_type = head & 0x0f;
    if (count > (uint64_t)(end_ - at_)) /* an element is a byte at least */
        throw ThriftShort();
    return count;
}

void ThriftReader::skip_many(uint8_t type, uint64_t count, int depth)
{
    for (uint64_t i = 0; i < count; i++)
        skip(type, true, depth);
}

void ThriftReader::skip(uint8_t type, bool element, int depth)
{
    if (depth > kThriftDepthMax)
        throw ThriftMalformed("metadata is nested too deeply");
    switch (type) {
    case kThriftTrue:
    case kThriftFalse:
        if (element) /* a field's value lies in its head */
            byte();
        return;
    case kThriftByte:
        byte();
        return;
    case kThriftI16:
    case kThriftI32:
    case kThriftI64:
        varint();
        return;
    case kThriftDouble:
        for (int i = 0; i < 8; i++)
            byte();
        return;
    case kThriftBinary: {
        uint64_t size = varint();
        if (size > (uint64_t)(end_ - at_))
            throw ThriftShort();
        at_ += size;
        return;
    }
    case kThriftList:
    case kThriftSet: {
        uint8_t element_type = 0;
        uint64_t count = list(element_type);
        skip_many(element_type, count, depth + 1);
        return;
    }
    case kThriftMap: {
        uint64_t count = varint();
        if (count == 0)
            return;
        uint8_t types = byte();
        if (count > (uint64_t)(end_ - at_))
            throw ThriftShort();
        for (uint64_t i = 0; i < count; i++) {
            skip(types >> 4, true, depth + 1);
            skip(types & 0x0f, true, depth + 1);
        }
        return;
    }
    case kThriftStruct:
        for (ThriftField field; next(field);)
            skip(field.type, false, depth + 1);
        return;
    default:
        throw ThriftMalformed("metadata holds a type that is none");
    }
}

std::string_view ThriftReader::value(uint8_t type)
{
    const uint8_t *from = at_;
    skip(type, false, 0);
    return {(const char *)from, (size_t)(at_ - from)};
}

/* --- writing --- */

void ThriftStruct::begin(int16_t id, uint8_t type)
{
    int delta = id - last_;
    if (delta > 0 && delta <= 15) {
        out_.push_back((char)(delta << 4 | type));
    } else {
        out_.push_back((char)type);
        put_zigzag(out_, id);
    }
    last_ = id;
}

void ThriftStruct::raw(const ThriftField &field, std::string_view value)
{
    begin(field.id, field.type);
    out_.append(value);
}

void ThriftStruct::integer(int16_t id, uint8_t type, int64_t value)
{
    begin(id, type);
    put_zigzag(out_, value);
}

void ThriftStruct::begin_list(int16_t id, uint8_t element_type, uint64_t count)
{
    begin(id, kThriftList);
    if (count < 15) {
        out_.push_back((char)(count << 4 | element_type));
    } else {
        out_.push_back((char)(0xf0 | element_type));
        put_varint(out_, count);
    }
}

void ThriftStruct::end()
{
    out_.push_back((char)kThriftStop);
}

} // namespace tarn
