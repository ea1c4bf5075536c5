/* input - rows that users bring, whatever the format: opening, bad rows, inference. */
#include "columnar/text.h"

#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>

namespace tarn
{

BadRows::~BadRows()
{
    for (struct tarn_bad_row &row : kept_) {
        free((void *)row.column.data);
        free((void *)row.reason.data);
    }
}

static struct tarn_slice own(std::string_view text)
{
    struct tarn_slice s = slice_of(text.substr(0, 1000));
    return tarn_slice_of(tarn_slice_dup(s), s.size);
}

void BadRows::add(int64_t line, std::string_view column, std::string_view reason)
{
    count_++;
    if (kept_.size() < TARN_BAD_ROWS_KEPT)
        kept_.push_back({line, own(column), own(reason)});
    if (count_ <= skip_max_)
        return;
    std::string named(column.substr(0, 200)), why(reason.substr(0, 700));
    fail(TARN_ROW_INVALID, "%s:%" PRId64 ": %s%s%s%s", name_.c_str(), line, named.c_str(),
         named.empty() ? "" : ": ", why.c_str(),
         skip_max_ > 0 ? " (more bad rows than --skip-bad allows)" : "");
}

static struct tarn_status *pull_file(void *arg, struct tarn_op *op, uint8_t *out, size_t size,
                                     size_t *got)
{
    arrow::Result<int64_t> result = ((arrow::io::ReadableFile *)arg)->Read((int64_t)size, out);
    if (!result.ok())
        return tarn_status_new(TARN_IO_ERROR, "%s", result.status().message().c_str());
    *got = (size_t)*result;
    return TARN_OK;
}

} // namespace tarn

struct tarn_input {
    struct tarn_arena *arena;
    std::string name;
    std::unique_ptr<tarn::BadRows> bad;
    std::shared_ptr<arrow::io::ReadableFile> file; /* where a path was given */
    std::unique_ptr<tarn::Input> input;            /* goes before the others */

    tarn_input() : arena(tarn_arena_new())
    {
    }
    ~tarn_input()
    {
        input.reset();
        tarn_arena_free(arena);
    }
};

bool tarn_input_needs_file(enum tarn_data_format format)
{
    return format == TARN_DATA_PARQUET || format == TARN_DATA_ORC;
}

static void open_input(struct tarn_input *in, struct tarn_op *op,
                       const struct tarn_input_options *options, const char *path,
                       tarn_pull_fn pull, void *arg)
{
    using namespace tarn;
    if (path != NULL && options->format != TARN_DATA_PARQUET && options->format != TARN_DATA_ORC) {
        in->file = must(arrow::io::ReadableFile::Open(path), TARN_IO_ERROR, path);
        pull = pull_file;
        arg = in->file.get();
    }
    if (pull == NULL && path == NULL)
        fail(TARN_INVALID_ARGUMENT, "%s: neither a path nor a stream to read", in->name.c_str());
    switch (options->format) {
    case TARN_DATA_CSV:
        in->input = csv_open(op, options, pull, arg, *in->bad, in->arena);
        return;
    case TARN_DATA_JSONL:
        in->input = jsonl_open(op, options, pull, arg, *in->bad, in->arena);
        return;
    case TARN_DATA_ARROW:
        in->input = arrow_open(op, options, pull, arg, *in->bad, in->arena);
        return;
    case TARN_DATA_PARQUET:
        if (path == NULL)
            fail(TARN_INVALID_ARGUMENT, "%s: Parquet is read from a file, not from a stream",
                 in->name.c_str());
        in->input = parquet_input_open(op, options, path, *in->bad, in->arena);
        return;
    case TARN_DATA_ORC:
        break;
    }
    fail(TARN_UNIMPLEMENTED, "%s: ORC input is not read yet", in->name.c_str());
}

struct tarn_status *tarn_input_open(struct tarn_op *op, const struct tarn_input_options *options,
                                    const char *path, tarn_pull_fn pull, void *arg,
                                    struct tarn_input **out)
{
    std::string name = options->name != NULL ? options->name : path != NULL ? path : "input";
    return tarn::guarded(TARN_INPUT_MALFORMED, name, [&] {
        struct tarn_input_options named = *options;
        named.name = name.c_str();
        std::unique_ptr<tarn_input> in(new tarn_input);
        in->name = name;
        in->bad.reset(new tarn::BadRows(name, options->skip_bad_max));
        open_input(in.get(), op, &named, path, pull, arg);
        *out = in.release();
    });
}

struct tarn_status *tarn_input_next(struct tarn_input *input, struct tarn_op *op,
                                    struct tarn_batch **out)
{
    return tarn::guarded(TARN_INPUT_MALFORMED, input->name, [&] { *out = input->input->next(op); });
}

int64_t tarn_input_bad_rows(const struct tarn_input *input, const struct tarn_bad_row **rows,
                            size_t *count)
{
    if (rows != NULL)
        *rows = input->bad->kept().data();
    if (count != NULL)
        *count = input->bad->kept().size();
    return input->bad->count();
}

void tarn_input_close(struct tarn_input *input)
{
    delete input;
}

/* --- inference --- */

namespace tarn
{

static void infer_fields(const arrow::Schema &schema, struct tarn_arena *arena,
                         const struct tarn_field **out, size_t *count)
{
    if (schema.num_fields() > TARN_COLUMNS_MAX)
        fail(TARN_TOO_LARGE, "the file has %d columns", schema.num_fields());
    struct tarn_field *fields = (struct tarn_field *)tarn_arena_calloc(
        arena, (size_t)schema.num_fields() + 1, sizeof *fields);
    for (int i = 0; i < schema.num_fields(); i++) {
        const arrow::Field &f = *schema.field(i);
        fields[i].id = i;
        fields[i].name = tarn_arena_copy(arena, slice_of(f.name()));
        fields[i].type = infer_type(*f.type(), f.nullable(), arena, 0);
    }
    *out = fields;
    *count = (size_t)schema.num_fields();
}

} // namespace tarn

struct tarn_status *tarn_input_infer(struct tarn_op *op, enum tarn_data_format format,
                                     const char *path, struct tarn_arena *arena,
                                     const struct tarn_field **fields, size_t *count)
{
    using namespace tarn;
    if (format != TARN_DATA_PARQUET && format != TARN_DATA_ARROW)
        return tarn_status_new(
            TARN_UNIMPLEMENTED,
            "%s: columns are taken from Parquet and Arrow files only; use --columns", path);
    return guarded(TARN_INPUT_MALFORMED, path, [&] {
        std::shared_ptr<arrow::io::ReadableFile> file =
            must(arrow::io::ReadableFile::Open(path), TARN_IO_ERROR, path);
        if (format == TARN_DATA_PARQUET) {
            ParquetFilePtr parquet = parquet_open(file, TARN_INPUT_MALFORMED, path, 0);
            infer_fields(*parquet_arrow_schema(*parquet), arena, fields, count);
            return;
        }
        ArrowStream stream(pull_file, file.get(), path);
        stream.open(op);
        infer_fields(*stream.reader->schema(), arena, fields, count);
    });
}
