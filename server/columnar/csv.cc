/*
 * csv - rows of CSV text (RFC 4180) with a header line.
 *
 * Own tokenizer, since every bad row is named with the physical line it starts on, also behind fields
 * with line breaks. A quote inside an unquoted field is a character like any other.
 */
#include "columnar/text.h"

namespace tarn
{

namespace
{

struct Field {
    const char *data; /* NULL: `begin` of the scratch text */
    size_t begin, size;
    bool quoted;
};

enum class Scan {
    Record,
    More,
    Open,
    Stray
}; /* Open: a quote never closed; Stray: text behind a closing one */

/* One record at the start of [p, end). */
class Record
{
  public:
    std::vector<Field> fields;
    size_t size;   /* with its line end */
    int64_t lines; /* physical ones */
    Scan scan(const char *begin, const char *end, bool at_end, char delimiter);
    std::string_view text(const Field &f) const
    {
        return f.data != NULL ? std::string_view(f.data, f.size)
                              : std::string_view(scratch_).substr(f.begin, f.size);
    }
    bool empty_line() const
    {
        return fields.size() == 1 && fields[0].size == 0 && !fields[0].quoted;
    }

  private:
    const char *quoted(const char *p, const char *end, bool at_end, Scan *state);
    Scan finish(const char *begin, const char *after);
    std::string scratch_; /* fields whose quotes were doubled */
};

/* p is behind the opening quote; the result is behind the closing one. */
const char *Record::quoted(const char *p, const char *end, bool at_end, Scan *state)
{
    const char *start = p;
    size_t kept = scratch_.size();
    bool doubled = false;
    for (;;) {
        const char *quote = p < end ? (const char *)memchr(p, '"', (size_t)(end - p)) : NULL;
        const char *stop = quote == NULL ? end : quote;
        for (const char *nl = p;
             (nl = nl < stop ? (const char *)memchr(nl, '\n', (size_t)(stop - nl)) : NULL) != NULL;
             nl++)
            lines++;
        if (quote == NULL || (quote + 1 == end && !at_end)) {
            *state = quote == NULL && at_end ? Scan::Open : Scan::More;
            return NULL;
        }
        if (quote + 1 < end && quote[1] == '"') { /* keeps one of the two */
            doubled = true;
            scratch_.append(p, quote + 1);
            p = quote + 2;
            continue;
        }
        if (doubled) {
            scratch_.append(p, quote);
            fields.push_back({NULL, kept, scratch_.size() - kept, true});
        } else {
            fields.push_back({start, 0, (size_t)(quote - start), true});
        }
        return quote + 1;
    }
}

Scan Record::finish(const char *begin, const char *after)
{
    size = (size_t)(after - begin);
    return Scan::Record;
}

Scan Record::scan(const char *begin, const char *end, bool at_end, char delimiter)
{
    const char *p = begin;
    bool stray = false;
    fields.clear();
    scratch_.clear();
    lines = 1;
    for (;;) {
        if (p < end && *p == '"' && !stray) {
            Scan state = Scan::Record;
            p = quoted(p + 1, end, at_end, &state);
            if (p == NULL)
                return state;
            if (p < end && *p == '\r' && (p + 1 < end || !at_end)) {
                if (p + 1 == end)
                    return Scan::More;
                if (p[1] == '\n')
                    p++;
            }
            stray = p < end && *p != delimiter && *p != '\n';
            if (stray) /* bad, but it ends with its line */
                continue;
        } else {
            const char *start = p;
            while (p < end && *p != delimiter && *p != '\n')
                p++;
            size_t length = (size_t)(p - start);
            bool line_end = p == end || *p == '\n';
            if (line_end && length > 0 && start[length - 1] == '\r')
                length--;
            if (!stray)
                fields.push_back({start, 0, length, false});
        }
        if (p == end && !at_end)
            return Scan::More;
        if (p == end || *p == '\n') {
            finish(begin, p == end ? p : p + 1);
            return stray ? Scan::Stray : Scan::Record;
        }
        p++; /* the delimiter */
    }
}

class Csv : public Input
{
  public:
    Csv(const struct tarn_input_options *options, tarn_pull_fn pull, void *arg, BadRows &bad,
        struct tarn_arena *arena)
        : rows_(options, arena), json_(json_row_new()), stream_(pull, arg, options->name),
          bad_(bad), delimiter_(options->delimiter == 0 ? ',' : options->delimiter)
    {
        for (size_t i = 0; i < options->null_text_count; i++)
            nulls_.push_back(string_of(options->null_texts[i]));
        if (delimiter_ == '"' || delimiter_ == '\n' || delimiter_ == '\r')
            fail(TARN_INVALID_ARGUMENT, "a quote or a line end can't be the delimiter");
    }
    void open(struct tarn_op *op);
    struct tarn_batch *next(struct tarn_op *op) override;

  private:
    bool next_record(struct tarn_op *op, Scan *state);
    void read_header();
    bool take_row(std::string *column, std::string *why);
    bool take_field(size_t i, std::string *why);
    bool is_null(const Field &f) const;

    RowBuilder rows_;
    JsonRowPtr json_;
    TextStream stream_;
    BadRows &bad_;
    char delimiter_;
    std::vector<std::string> nulls_;
    Record record_;
    size_t record_size_ = 0; /* still in the window */
    int64_t line_ = 0;       /* the record starts there */
    int64_t next_line_ = 1;
    std::vector<std::string> header_;
    std::vector<int> targets_; /* of each CSV column: the table's, or -1 for the row kinds */
    static const int kOp = -1;
};

bool Csv::next_record(struct tarn_op *op, Scan *state)
{
    stream_.consume(record_size_);
    record_size_ = 0;
    for (;;) {
        if (stream_.begin() == stream_.end() && !stream_.fill(op, next_line_))
            return false;
        *state = record_.scan(stream_.begin(), stream_.end(), stream_.at_end(), delimiter_);
        if (*state == Scan::Open)
            fail(TARN_INPUT_MALFORMED,
                 "%s:%" PRId64 ": a quoted field opens in this record and is never closed",
                 stream_.name().c_str(), next_line_);
        if (*state != Scan::More)
            break;
        stream_.fill(op, next_line_);
    }
    record_size_ = record_.size;
    line_ = next_line_;
    next_line_ += record_.lines;
    return true;
}

void Csv::open(struct tarn_op *op)
{
    Scan state;
    stream_.skip_bom(op);
    if (!next_record(op, &state))
        fail(TARN_INPUT_MALFORMED, "%s: empty; CSV begins with a header line",
             stream_.name().c_str());
    if (state == Scan::Stray)
        fail(TARN_INPUT_MALFORMED, "%s:1: text behind a closing quote in the header line",
             stream_.name().c_str());
    read_header();
}

void Csv::read_header()
{
    std::vector<uint8_t> seen(rows_.field_count, 0);
    bool op_seen = false;
    for (const Field &f : record_.fields) {
        std::string name(record_.text(f));
        for (const std::string &before : header_)
            if (before == name)
                fail(TARN_INPUT_MALFORMED, "%s: the header names column %s twice",
                     stream_.name().c_str(), name.c_str());
        header_.push_back(name);
        int target = rows_.find(name);
        bool op = rows_.has_op && name == rows_.op_column;
        if (target < 0 && !op)
            rows_.unknown(name, stream_.name());
        op_seen = op_seen || op;
        if (op)
            target = kOp;
        else
            seen[(size_t)target] = 1;
        targets_.push_back(target);
    }
    if (rows_.has_op && !op_seen)
        fail(TARN_COLUMN_NOT_FOUND, "%s: the header has no column %s with the row kinds",
             stream_.name().c_str(), rows_.op_column.c_str());
    for (size_t i = 0; i < rows_.field_count; i++)
        if (!seen[i] && !rows_.fields[i].type->nullable && !rows_.only_keys_required &&
            string_of(rows_.fields[i].name) != rows_.op_column)
            fail(TARN_COLUMN_NOT_FOUND, "%s: the header has no column %s, which is NOT NULL",
                 stream_.name().c_str(), string_of(rows_.fields[i].name).c_str());
}

bool Csv::is_null(const Field &f) const
{
    if (f.quoted)
        return false;
    if (f.size == 0)
        return true;
    for (const std::string &text : nulls_)
        if (text == record_.text(f))
            return true;
    return false;
}

bool Csv::take_field(size_t i, std::string *why)
{
    const Field &f = record_.fields[i];
    std::string_view text = record_.text(f);
    if (targets_[i] == kOp) {
        if (!rows_.set_op(text, why))
            return false;
        int also = rows_.find(header_[i]); /* the table may have the column too */
        return also < 0 || append_text(rows_.column((size_t)also), text, why);
    }
    Column &column = rows_.column((size_t)targets_[i]);
    if (is_null(f)) {
        if (!column.type->nullable) {
            *why = "NOT NULL, and the field is empty";
            return false;
        }
        column.append_null();
        return true;
    }
    if (tarn_type_is_nested(column.type))
        return append_json(*json_, column, text, why);
    return append_text(column, text, why);
}

bool Csv::take_row(std::string *column, std::string *why)
{
    column->clear();
    if (record_.fields.size() != targets_.size()) {
        *why = "the row has " + std::to_string(record_.fields.size()) + " fields, the header " +
               std::to_string(targets_.size());
        return false;
    }
    for (size_t i = 0; i < targets_.size(); i++)
        if (!take_field(i, why)) {
            *column = header_[i];
            return false;
        }
    return true;
}

struct tarn_batch *Csv::next(struct tarn_op *op)
{
    std::string column, why;
    Scan state;
    must(tarn_op_check(op));
    while (!rows_.full() && next_record(op, &state)) {
        if (state == Scan::Stray) {
            bad_.add(line_, "", "text behind a closing quote");
            continue;
        }
        if (record_.empty_line() && targets_.size() > 1) {
            bad_.add(line_, "", "the line is empty");
            continue;
        }
        if (take_row(&column, &why)) {
            rows_.commit();
            continue;
        }
        rows_.rollback();
        bad_.add(line_, column, why);
    }
    return rows_.take();
}

} // namespace

std::unique_ptr<Input> csv_open(struct tarn_op *op, const struct tarn_input_options *options,
                                tarn_pull_fn pull, void *arg, BadRows &bad,
                                struct tarn_arena *arena)
{
    std::unique_ptr<Csv> input(new Csv(options, pull, arg, bad, arena));
    input->open(op);
    return input;
}

} // namespace tarn
