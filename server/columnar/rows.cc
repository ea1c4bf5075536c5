/* rows - what text formats share: the window over the stream, and rows taken or taken back. */
#include "columnar/text.h"

#include <algorithm>

namespace tarn
{

/* --- the stream --- */

bool TextStream::fill(struct tarn_op *op, int64_t line)
{
    const size_t kStep = 1 << 20;
    if (eof_)
        return false;
    size_t held = end_ - start_;
    if ((int64_t)held > kRecordSizeMax)
        fail(TARN_INPUT_MALFORMED,
             "%s:%" PRId64 ": the record is longer than %d MiB; is a quote left open?",
             name_.c_str(), line, (int)(kRecordSizeMax >> 20));
    if (start_ > 0) {
        memmove(&buffer_[0], &buffer_[start_], held);
        start_ = 0;
        end_ = held;
    }
    size_t want = std::max(kStep, held); /* doubles: what was looked at before is looked at again */
    if (buffer_.size() < held + want)
        buffer_.resize(held + want);
    size_t got = 0;
    must(pull_(arg_, op, (uint8_t *)&buffer_[end_], want, &got));
    end_ += got;
    eof_ = got == 0;
    return got > 0;
}

void TextStream::skip_bom(struct tarn_op *op)
{
    while (end_ - start_ < 3 && fill(op, 1)) {}
    if (end_ - start_ >= 3 && memcmp(begin(), "\xEF\xBB\xBF", 3) == 0)
        consume(3);
}

/* --- rows --- */

int parse_kind(std::string_view text, const bool *refused, std::string *why)
{
    int kind = text == "+I" ? 0 : text == "-U" ? 1 : text == "+U" ? 2 : text == "-D" ? 3 : -1;
    if (kind < 0)
        *why = "expected +I, -U, +U or -D";
    if (kind < 0 || !refused[kind])
        return kind;
    *why = std::string(text) + " takes a row away: the table has no primary key to find it by";
    return -1;
}

SchemaPtr input_schema(const struct tarn_field *fields, size_t count)
{
    arrow::FieldVector all = arrow_schema(fields, count)->fields();
    all.push_back(arrow::field("rowkind", arrow::int8(), false));
    return arrow::schema(all);
}

RowBuilder::RowBuilder(const struct tarn_input_options *options, struct tarn_arena *arena)
    : fields(copy_fields(options->fields, options->field_count, arena)),
      field_count(options->field_count), has_op(options->op_column != NULL),
      op_column(options->op_column == NULL ? "" : options->op_column),
      only_keys_required(options->only_keys_required)
{
    memcpy(refused_kinds_, options->refused_kinds, sizeof refused_kinds_);
    for (size_t i = 0; i < field_count; i++) {
        columns_.emplace_back(new Column(fields[i].type));
        names_.emplace_back(string_of(fields[i].name), (int)i);
    }
    std::sort(names_.begin(), names_.end());
}

int RowBuilder::find(std::string_view name) const
{
    auto it = std::lower_bound(
        names_.begin(), names_.end(), name,
        [](const std::pair<std::string, int> &a, std::string_view b) { return a.first < b; });
    return it != names_.end() && it->first == name ? it->second : -1;
}

std::string RowBuilder::unknown_text(std::string_view name) const
{
    std::vector<const char *> all;
    for (const std::pair<std::string, int> &n : names_)
        all.push_back(n.first.c_str());
    std::string wanted(name.substr(0, 200));
    const char *nearest = tarn_nearest(wanted.c_str(), all.data(), all.size());
    return "the table has no column " + wanted +
           (nearest == NULL ? "" : std::string("; did you mean ") + nearest + "?");
}

void RowBuilder::unknown(std::string_view name, const std::string &where) const
{
    fail(TARN_COLUMN_NOT_FOUND, "%s: %s", where.c_str(), unknown_text(name).c_str());
}

bool RowBuilder::set_op(std::string_view text, std::string *why)
{
    int kind = parse_kind(text, refused_kinds_, why);
    kind_ = (int8_t)kind;
    return kind >= 0;
}

void RowBuilder::commit()
{
    kinds_.push_back(kind_);
    kind_ = 0;
    for (std::unique_ptr<Column> &column : columns_)
        if (column->length() < row_count())
            column->append_null();
}

void RowBuilder::rollback()
{
    kind_ = 0;
    for (std::unique_ptr<Column> &column : columns_)
        column->truncate(row_count());
}

bool RowBuilder::full() const
{
    if (row_count() >= kInputRows)
        return true;
    if (row_count() % 64 != 0)
        return false;
    int64_t bytes = 0;
    for (const std::unique_ptr<Column> &column : columns_)
        bytes += column->bytes();
    return bytes >= kInputBytes;
}

struct tarn_batch *RowBuilder::take()
{
    int64_t rows = row_count();
    if (rows == 0)
        return NULL;
    arrow::ArrayVector out;
    for (std::unique_ptr<Column> &column : columns_)
        out.push_back(column->finish());
    out.push_back(arrow::MakeArray(arrow::ArrayData::Make(
        arrow::int8(), rows, {nullptr, arrow::Buffer::FromVector(std::exchange(kinds_, {}))}, 0)));
    kinds_.clear();
    return export_batch(*arrow::RecordBatch::Make(input_schema(fields, field_count), rows, out));
}

/* --- JSON lines --- */

namespace
{

class JsonLines : public Input
{
  public:
    JsonLines(const struct tarn_input_options *options, tarn_pull_fn pull, void *arg, BadRows &bad,
              struct tarn_arena *arena)
        : rows_(options, arena), json_(json_row_new()), stream_(pull, arg, options->name), bad_(bad)
    {
    }
    void open(struct tarn_op *op)
    {
        stream_.skip_bom(op);
    }
    struct tarn_batch *next(struct tarn_op *op) override;

  private:
    bool next_line(struct tarn_op *op, std::string_view *line);
    RowBuilder rows_;
    JsonRowPtr json_;
    TextStream stream_;
    BadRows &bad_;
    int64_t line_ = 0;
};

/* *line is good until the next call. */
bool JsonLines::next_line(struct tarn_op *op, std::string_view *line)
{
    size_t searched = 0;
    for (;;) {
        size_t held = (size_t)(stream_.end() - stream_.begin());
        const char *end = held > searched ? (const char *)memchr(stream_.begin() + searched, '\n',
                                                                 held - searched)
                                          : NULL;
        if (end != NULL || (stream_.at_end() && held > 0)) {
            size_t size = end == NULL ? held : (size_t)(end - stream_.begin());
            *line = std::string_view(stream_.begin(), size);
            stream_.consume(size + (end != NULL));
            line_++;
            return true;
        }
        searched = held;
        if (!stream_.fill(op, line_ + 1) && held == 0)
            return false;
    }
}

struct tarn_batch *JsonLines::next(struct tarn_op *op)
{
    std::string_view line;
    std::string column, why;
    must(tarn_op_check(op));
    while (!rows_.full() && next_line(op, &line)) {
        if (line.find_first_not_of(" \t\r") == std::string_view::npos)
            continue;
        if (append_json_row(*json_, rows_, line, &column, &why)) {
            rows_.commit();
            continue;
        }
        rows_.rollback();
        bad_.add(line_, column, why);
    }
    return rows_.take();
}

} // namespace

std::unique_ptr<Input> jsonl_open(struct tarn_op *op, const struct tarn_input_options *options,
                                  tarn_pull_fn pull, void *arg, BadRows &bad,
                                  struct tarn_arena *arena)
{
    std::unique_ptr<JsonLines> input(new JsonLines(options, pull, arg, bad, arena));
    input->open(op);
    return input;
}

} // namespace tarn
