/* text - internal: columns built value by value, and values read from and printed as text. */
#ifndef TARN_COLUMNAR_TEXT_H
#define TARN_COLUMNAR_TEXT_H

#include "columnar/internal.h"

#include <arrow/buffer.h>

namespace tarn
{

/*
 * A column being built. Unlike Arrow's builders it can be cut back to an earlier length, which is
 * how the half of a bad row that was already taken goes away again.
 */
class Column
{
  public:
    explicit Column(const struct tarn_type *type);
    const struct tarn_type *type;

    int64_t length() const
    {
        return (int64_t)valid_.size();
    }
    bool is_null(int64_t row) const
    {
        return valid_[(size_t)row] == 0;
    }
    int64_t bytes() const; /* held, about */
    void append_null();
    template <typename C> void append_fixed(C value)
    {
        size_t at = values_.size();
        values_.resize(at + sizeof value);
        memcpy(&values_[at], &value, sizeof value);
        valid_.push_back(1);
    }
    void append_bytes(std::string_view value);
    /* False: what the value is can't be held (a time outside the canonical range). */
    bool append_value(const struct tarn_value &value);
    /* A list or map ends here: the children hold its items already. A ROW: its children have one more. */
    void append_list();
    void append_row()
    {
        valid_.push_back(1);
    }
    Column &child(size_t i)
    {
        return *children_[i];
    }

    /* Appends bytes that are the same for two values of this column only where the values are. */
    void add_identity(int64_t row, std::string *out) const;
    void truncate(int64_t length);
    ArrayPtr finish(); /* empties */

  private:
    bool is_bytes() const;
    bool is_list() const;
    int width_; /* of fixed ones; 0 for others */
    std::vector<uint8_t> valid_, values_;
    std::vector<int32_t> offsets_;
    std::vector<std::unique_ptr<Column>> children_;
};

/* Appends the value that `text` spells; the rules are tarn_value_parse's. False: nothing appended, *why set. */
bool append_text(Column &column, std::string_view text, std::string *why);

/* One value as docs/compatibility.md spells it; null is "null". */
void print_value(const struct ArrowArray *column, const struct tarn_type *type, int64_t row,
                 struct tarn_buf *out);
/* The same as JSON: texts quoted, nested values as objects and arrays. */
void print_json(const struct ArrowArray *column, const struct tarn_type *type, int64_t row,
                struct tarn_buf *out);
void print_json_text(std::string_view text, struct tarn_buf *out);

/* What text formats share: one row at a time, taken or taken back. */
class RowBuilder
{
  public:
    RowBuilder(const struct tarn_input_options *options, struct tarn_arena *arena);
    const struct tarn_field *fields;
    size_t field_count;
    bool has_op; /* rows say +I -U +U -D */
    std::string op_column;
    bool only_keys_required;

    int find(std::string_view name) const; /* index of the column, -1: the table lacks it */
    [[noreturn]] void unknown(std::string_view name, const std::string &where) const;
    std::string unknown_text(std::string_view name) const;
    Column &column(size_t i)
    {
        return *columns_[i];
    }
    /* False: not one of the four, or one that is refused; *why says so. */
    bool set_op(std::string_view text, std::string *why);
    void commit(); /* the row is good; columns that got nothing get null */
    void rollback();
    int64_t row_count() const
    {
        return (int64_t)kinds_.size();
    }
    bool full() const;
    struct tarn_batch *take(); /* NULL where there is no row */

  private:
    std::vector<std::unique_ptr<Column>> columns_;
    std::vector<int8_t> kinds_;
    bool refused_kinds_[4];
    int8_t kind_ = 0;
    int64_t committed_ = 0;
    std::vector<std::pair<std::string, int>> names_; /* sorted */
};
/* -1: not a kind. */
int parse_kind(std::string_view text, const bool *refused, std::string *why); /* -1: *why */
/* The canonical columns and the INT8 column of kinds behind them. */
SchemaPtr input_schema(const struct tarn_field *fields, size_t count);

const int64_t kInputRows = 8192;
const int64_t kInputBytes = 16 << 20;
const int64_t kRecordSizeMax = 64 << 20; /* a line or record of text; longer: INPUT_MALFORMED */

/* Text as it comes: a window over the stream that grows to hold one record. */
class TextStream
{
  public:
    TextStream(tarn_pull_fn pull, void *arg, std::string name)
        : pull_(pull), arg_(arg), name_(std::move(name))
    {
    }
    const char *begin() const
    {
        return buffer_.data() + start_;
    }
    const char *end() const
    {
        return buffer_.data() + end_;
    }
    bool at_end() const
    {
        return eof_;
    }
    /* More bytes behind end(); false at the end of the stream. Pointers into the window move. */
    bool fill(struct tarn_op *op, int64_t line);
    void consume(size_t size)
    {
        start_ += size;
    }
    void skip_bom(struct tarn_op *op);
    const std::string &name() const
    {
        return name_;
    }

  private:
    tarn_pull_fn pull_;
    void *arg_;
    std::string name_;
    std::string buffer_;
    size_t start_ = 0, end_ = 0;
    bool eof_ = false;
};

/* --- json.cc --- */
/* Parses one JSON text and appends it to a column, or an object's members to a row. */
class JsonRow;
struct JsonRowDrop {
    void operator()(JsonRow *row) const;
};
using JsonRowPtr = std::unique_ptr<JsonRow, JsonRowDrop>;
JsonRowPtr json_row_new();
bool append_json(JsonRow &json, Column &column, std::string_view text, std::string *why);
/* A line's object into rows; false: *column and *why say what is wrong. */
bool append_json_row(JsonRow &json, RowBuilder &rows, std::string_view line, std::string *column,
                     std::string *why);

/* --- binary_input.cc --- */
/* An Arrow IPC stream, or a file, which contains one. */
class ArrowStream
{
  public:
    ArrowStream(tarn_pull_fn pull, void *arg, std::string name);
    void open(struct tarn_op *op);
    RecordBatchPtr next(struct tarn_op *op); /* checked; NULL at the end */
    std::shared_ptr<arrow::RecordBatchReader> reader;

  private:
    void must_read(const arrow::Status &status);
    std::string name_;
    std::shared_ptr<PullStream> bytes_;
};

std::unique_ptr<Input> csv_open(struct tarn_op *op, const struct tarn_input_options *options,
                                tarn_pull_fn pull, void *arg, BadRows &bad,
                                struct tarn_arena *arena);
std::unique_ptr<Input> jsonl_open(struct tarn_op *op, const struct tarn_input_options *options,
                                  tarn_pull_fn pull, void *arg, BadRows &bad,
                                  struct tarn_arena *arena);
std::unique_ptr<Input> arrow_open(struct tarn_op *op, const struct tarn_input_options *options,
                                  tarn_pull_fn pull, void *arg, BadRows &bad,
                                  struct tarn_arena *arena);
std::unique_ptr<Input> parquet_input_open(struct tarn_op *op,
                                          const struct tarn_input_options *options,
                                          const char *path, BadRows &bad, struct tarn_arena *arena);

} // namespace tarn

#endif
