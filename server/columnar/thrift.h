/*
 * thrift - internal: the compact protocol of Parquet's footers and page headers, as far as copying needs it.
 *
 * Shape    a value is copied as the bytes that it is; only structs on the way to a changed field are opened.
 * Errors   ThriftShort where the bytes end inside a value (there may be more), ThriftMalformed for what no
 *          bytes behind it could mend: nesting beyond kThriftDepthMax, a type that is none, a number too large.
 * Source   the Thrift project, "Thrift Compact protocol encoding".
 */
#ifndef TARN_COLUMNAR_THRIFT_H
#define TARN_COLUMNAR_THRIFT_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tarn
{

const int kThriftDepthMax = 32;

struct ThriftShort : std::runtime_error {
    ThriftShort() : std::runtime_error("metadata ends inside a value")
    {
    }
};
struct ThriftMalformed : std::runtime_error {
    explicit ThriftMalformed(const char *what) : std::runtime_error(what)
    {
    }
};

enum ThriftType : uint8_t {
    kThriftStop = 0,
    kThriftTrue = 1,
    kThriftFalse = 2,
    kThriftByte = 3,
    kThriftI16 = 4,
    kThriftI32 = 5,
    kThriftI64 = 6,
    kThriftDouble = 7,
    kThriftBinary = 8,
    kThriftList = 9,
    kThriftSet = 10,
    kThriftMap = 11,
    kThriftStruct = 12
};

struct ThriftField {
    int16_t id = 0;
    uint8_t type = kThriftStop;
};

class ThriftReader
{
  public:
    explicit ThriftReader(std::string_view bytes)
        : begin_((const uint8_t *)bytes.data()), at_(begin_), end_(begin_ + bytes.size())
    {
    }
    size_t position() const
    {
        return (size_t)(at_ - begin_);
    }
    /* The next field of the struct that is being read; false at its end. `field` is the one before, or empty. */
    bool next(ThriftField &field);
    int64_t integer(); /* of a field of type i16, i32 or i64 */
    /* The value of a field, or of a list's element, as bytes. */
    std::string_view value(uint8_t type);
    /* Opens a list; its elements follow. The count is not above the bytes that are left. */
    uint64_t list(uint8_t &element_type);

  private:
    const uint8_t *begin_, *at_, *end_;

    uint8_t byte();
    uint64_t varint();
    void skip(uint8_t type, bool element, int depth);
    void skip_many(uint8_t type, uint64_t count, int depth);
};

/* A struct being written at the end of a string; structs inside it are written between its fields. */
class ThriftStruct
{
  public:
    explicit ThriftStruct(std::string &out) : out_(out)
    {
    }
    void raw(const ThriftField &field, std::string_view value);
    void integer(int16_t id, uint8_t type, int64_t value);
    /* What follows is the field's value. */
    void begin(int16_t id, uint8_t type);
    void begin_list(int16_t id, uint8_t element_type, uint64_t count);
    void end();

  private:
    std::string &out_;
    int16_t last_ = 0;
};

} // namespace tarn

#endif
