/*
 * internal - what the files of this room share. C++; nobody else includes it.
 *
 * Errors   inside the room failures travel as exceptions (class Failure, which holds the status, and
 *          what Arrow throws); every extern "C" entry point runs its body under guarded(), which turns
 *          whatever arrives into a status. Callbacks that Arrow makes into us return arrow::Status.
 * Linking  functions of base, format and store are undefined here: the executable that links
 *          libcolumnar.so has them, and the linker exports what a shared library asks for.
 */
#ifndef TARN_COLUMNAR_INTERNAL_H
#define TARN_COLUMNAR_INTERNAL_H

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <inttypes.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/* The house's headers are C: they say atomic_int, which C++20 has in a namespace. Same layout. */
using std::atomic_bool;
using std::atomic_int;

extern "C" {
#include "base/base.h"
#include "format/format.h"
#include "store/store.h"
}
#include "columnar/columnar.h"

#include <arrow/api.h>
#include <arrow/io/interfaces.h>

namespace tarn
{

/* --- families of types --- */
inline bool is_integer(const struct tarn_type *t)
{
    return t->id >= TARN_TYPE_TINYINT && t->id <= TARN_TYPE_BIGINT;
}
inline bool is_real(const struct tarn_type *t)
{
    return t->id == TARN_TYPE_FLOAT || t->id == TARN_TYPE_DOUBLE;
}
inline bool is_text(const struct tarn_type *t)
{
    return t->id == TARN_TYPE_CHAR || t->id == TARN_TYPE_VARCHAR;
}
inline bool is_stamp(const struct tarn_type *t)
{
    return t->id == TARN_TYPE_TIMESTAMP || t->id == TARN_TYPE_TIMESTAMP_LTZ;
}

using ArrayPtr = std::shared_ptr<arrow::Array>;
using TypePtr = std::shared_ptr<arrow::DataType>;
using SchemaPtr = std::shared_ptr<arrow::Schema>;
using RecordBatchPtr = std::shared_ptr<arrow::RecordBatch>;

/* --- errors --- */
class Failure
{
  public:
    explicit Failure(struct tarn_status *owned) : status_(owned, tarn_status_free)
    {
    }
    /* A copy, since an exception may be held more than once. */
    struct tarn_status *take() const
    {
        return tarn_status_copy(status_.get());
    }

  private:
    std::shared_ptr<struct tarn_status> status_;
};
[[noreturn]] void fail(enum tarn_reason reason, const char *format, ...) TARN_PRINTF(2, 3);
inline void must(struct tarn_status *status) /* a status of the C side */
{
    if (status != TARN_OK)
        throw Failure(status);
}
/* What Arrow answered; `reason` for all that isn't a lack of memory. */
void must(const arrow::Status &status, enum tarn_reason reason, const std::string &what);
template <typename T>
T must(arrow::Result<T> result, enum tarn_reason reason, const std::string &what)
{
    must(result.status(), reason, what);
    return result.MoveValueUnsafe();
}
/* The status of the exception being handled: call in a catch (...) block. */
struct tarn_status *caught(enum tarn_reason reason, const std::string &what);
template <typename F
> struct tarn_status *guarded(enum tarn_reason reason, const std::string &what, F body)
{
    try {
        body();
        return TARN_OK;
    } catch (...) {
        return caught(reason, what);
    }
}

/* --- small words --- */
inline std::string_view view_of(struct tarn_slice s)
{
    return {(const char *)s.data, s.size};
}
inline std::string string_of(struct tarn_slice s)
{
    return s.size == 0 ? std::string() : std::string((const char *)s.data, s.size);
}
inline struct tarn_slice slice_of(std::string_view s)
{
    return tarn_slice_of(s.data(), s.size());
}
/* Deep copies into `arena`. */
const struct tarn_type *copy_type(const struct tarn_type *type, struct tarn_arena *arena);
const struct tarn_field *copy_fields(const struct tarn_field *fields, size_t count,
                                     struct tarn_arena *arena);
std::string type_text(const struct tarn_type *type); /* as SQL */
inline int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
inline int64_t floor_mod(int64_t a, int64_t b)
{
    return a % b != 0 && (a % b < 0) != (b < 0)
               ? a % b + b
               : a % b; /* never a * b: near the ends it overflows */
}
extern const __int128 kPow10[39];
/* Nested parts that have no id of their own get one from the field around them and their depth. */
inline int32_t element_id(int32_t field_id, int depth)
{
    return (int32_t)(uint32_t)(536870911 + (int64_t)1024 * field_id + depth);
}
inline int32_t key_id(int32_t field_id, int depth)
{
    return (int32_t)(uint32_t)(536870911 - (int64_t)1024 * field_id - depth);
}
/* Ticks a second of the canonical unit of TIMESTAMP(precision). */
inline int64_t ticks_of(int precision)
{
    return precision <= 3 ? 1000 : precision <= 6 ? 1000000 : 1000000000;
}
/* Milliseconds and nanoseconds as ticks; false: TIMESTAMP(7-9) outside 1677..2262. */
bool ticks_from_time(int64_t ms, int32_t ns, int precision, int64_t *out);
void time_from_ticks(int64_t ticks, int precision, int64_t *ms, int32_t *ns);

/* --- types.cc --- */
TypePtr arrow_type(const struct tarn_type *type);
SchemaPtr arrow_schema(const struct tarn_field *fields, size_t count);
/* A Paimon type that holds every value of `type`; UNSUPPORTED_FEATURE where there is none. */
const struct tarn_type *infer_type(const arrow::DataType &type, bool nullable,
                                   struct tarn_arena *arena, int depth);

/* --- batch.cc --- */
/* `batch` keeps being what it was: the result holds a reference. */
RecordBatchPtr import_batch(const struct tarn_batch *batch, const SchemaPtr &schema);
struct tarn_batch *export_batch(const arrow::RecordBatch &batch);
ArrayPtr null_array(const struct tarn_type *type, int64_t length);

/* --- convert.cc: whatever a file had, to the canonical layout of a type --- */
class BadValues
{ /* hears of values that can't be held */
  public:
    virtual ~BadValues() = default;
    virtual void bad(int64_t row, const std::string &reason) = 0;
};
struct ConvertRules {
    bool exact;              /* rows of users: nothing is rounded, lengths and UTF-8 are checked */
    enum tarn_reason reason; /* for types that don't go together */
    std::string what;        /* column, for messages */
};
ArrayPtr convert(const ArrayPtr &in, const struct tarn_type *to, const ConvertRules &rules,
                 BadValues &bad);
/* --- cast.cc: schema evolution, between canonical layouts (format.md 2.3) --- */
bool cast_known(const struct tarn_type *from, const struct tarn_type *to);
ArrayPtr cast(const ArrayPtr &in, const struct tarn_type *from, const struct tarn_type *to);
/* cast_value.cc: those that may lose something, a value at a time; VALUE_INVALID for a text that spells no such value. */
bool cast_value_known(const struct tarn_type *from, const struct tarn_type *to);
ArrayPtr cast_values(const arrow::Array &in, const struct tarn_type *from,
                     const struct tarn_type *to);

/* The bitmap of `in` as one that starts at bit 0, or NULL where nothing is null. */
std::shared_ptr<arrow::Buffer> validity_of(const arrow::Array &in);
std::shared_ptr<arrow::Buffer> new_buffer(int64_t size);

/* --- files.cc: bytes of ours as Arrow's files. Arrow is given an arrow::Status; the real one is kept
 *     here and goes first when the failure surfaces (rethrow). --- */
class Pending
{
  public:
    ~Pending()
    {
        tarn_status_free(status_);
    }
    arrow::Status keep(struct tarn_status *owned);
    void rethrow(); /* throws the kept status, if there is one */

  private:
    struct tarn_status *status_ = NULL;
};
class StoreFile : public arrow::io::RandomAccessFile
{
  public:
    explicit StoreFile(struct tarn_store_reader *owned) : reader_(owned)
    {
    }
    ~StoreFile() override
    {
        tarn_store_reader_close(reader_);
    }
    arrow::Status Close() override
    {
        return arrow::Status::OK();
    }
    bool closed() const override
    {
        return false;
    }
    arrow::Result<int64_t> Tell() const override
    {
        return position_;
    }
    arrow::Status Seek(int64_t position) override;
    arrow::Result<int64_t> GetSize() override
    {
        return tarn_store_reader_size(reader_);
    }
    arrow::Result<int64_t> Read(int64_t size, void *out) override;
    arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override;
    arrow::Result<int64_t> ReadAt(int64_t position, int64_t size, void *out) override;
    arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t size) override;

    struct tarn_op *op = NULL; /* of the call under way */
    Pending pending;

  private:
    struct tarn_store_reader *reader_;
    int64_t position_ = 0;
};
/* The store's own word goes first, where the fault was there. Consumes `status`; no file: as it is. */
struct tarn_status *told_by(const std::shared_ptr<StoreFile> &file, struct tarn_status *status);
/* What files are decoded and encoded in: memory.cc. */
arrow::MemoryPool *memory_pool();

/* Bytes that go to a function, gathered into pieces of about 1 MB. */
class Sink : public arrow::io::OutputStream
{
  public:
    using Push = std::function<struct tarn_status *(struct tarn_op *, struct tarn_slice)>;
    explicit Sink(Push push) : push_(std::move(push))
    {
    }
    arrow::Status Close() override
    {
        return flush();
    }
    bool closed() const override
    {
        return false;
    }
    arrow::Result<int64_t> Tell() const override
    {
        return diverted_ != NULL ? (int64_t)diverted_->size() : written_;
    }
    arrow::Status Write(const void *data, int64_t size) override;
    arrow::Status flush();
    /* What is written goes to a string instead, which is then what has a position; NULL: to where it went before. */
    void divert(std::string *to)
    {
        diverted_ = to;
    }
    /* What comes from now on leads nowhere. */
    void mute()
    {
        push_ = [](struct tarn_op *, struct tarn_slice) { return TARN_OK; };
    }

    struct tarn_op *op = NULL;
    Pending pending;

  private:
    Push push_;
    std::string *diverted_ = NULL;
    std::string gathered_;
    int64_t written_ = 0;
};
/* Bytes that come from a function. */
class PullStream : public arrow::io::InputStream
{
  public:
    PullStream(tarn_pull_fn pull, void *arg) : pull_(pull), arg_(arg)
    {
    }
    arrow::Status Close() override
    {
        return arrow::Status::OK();
    }
    bool closed() const override
    {
        return false;
    }
    arrow::Result<int64_t> Tell() const override
    {
        return position_;
    }
    arrow::Result<int64_t> Read(int64_t size, void *out) override;
    arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override;
    void unread(std::string bytes)
    {
        head_ = std::move(bytes);
    }

    struct tarn_op *op = NULL;
    Pending pending;

  private:
    std::string head_; /* comes first */
    tarn_pull_fn pull_;
    void *arg_;
    int64_t position_ = 0;
};

/* --- parquet_read.cc --- */
class ParquetFile;
struct ParquetFileDrop {
    void operator()(ParquetFile *file) const;
};
using ParquetFilePtr = std::unique_ptr<ParquetFile, ParquetFileDrop>;
ParquetFilePtr parquet_open(std::shared_ptr<arrow::io::RandomAccessFile> file,
                            enum tarn_reason reason, const std::string &what, int batch_row_count);
SchemaPtr parquet_arrow_schema(ParquetFile &file);
/* Which top-level columns batches will hold, by position in the file's schema; rows of the file. */
void parquet_select(ParquetFile &file, const std::vector<int> &fields, int64_t row_begin,
                    int64_t row_end);
RecordBatchPtr parquet_next(ParquetFile &file); /* NULL at the end; columns as selected */

/* --- parquet_schema.cc, parquet_write.cc --- */
class ParquetWriter;
struct ParquetWriterDrop {
    void operator()(ParquetWriter *writer) const;
};
using ParquetWriterPtr = std::unique_ptr<ParquetWriter, ParquetWriterDrop>;
ParquetWriterPtr parquet_writer_new(std::shared_ptr<Sink> sink, const struct tarn_file_write *spec);
void parquet_writer_add(ParquetWriter &writer, const struct tarn_batch *batch);
int64_t parquet_writer_size(const ParquetWriter &writer);
void parquet_writer_finish(ParquetWriter &writer, struct tarn_arena *arena,
                           struct tarn_file_result *out);

/* --- input: what each format's reader is to input.cc --- */
class Input
{
  public:
    virtual ~Input() = default;
    virtual struct tarn_batch *next(struct tarn_op *op) = 0; /* NULL at the end */
};
/* Bad rows: keeps the first, counts all, throws ROW_INVALID at the one too many. */
class BadRows
{
  public:
    BadRows(std::string name, int64_t skip_max) : name_(std::move(name)), skip_max_(skip_max)
    {
    }
    ~BadRows();
    BadRows(const BadRows &) = delete;
    void add(int64_t line, std::string_view column, std::string_view reason);
    int64_t count() const
    {
        return count_;
    }
    const std::vector<struct tarn_bad_row> &kept() const
    {
        return kept_;
    }

  private:
    std::string name_;
    int64_t skip_max_;
    int64_t count_ = 0;
    std::vector<struct tarn_bad_row> kept_; /* column and reason owned */
};

} // namespace tarn

#endif
