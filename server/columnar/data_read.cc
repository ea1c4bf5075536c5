/*
 * data_read - data files of a table, of whatever format: the wanted columns, as the table's schema has them.
 *
 * Columns are found by name, never by field id (format.md 2.3); what the file has becomes the type that the
 * schema of the time gave it (convert.cc), and that the type of today (cast.cc).
 */
#include "columnar/data_file.h"

namespace tarn
{

namespace
{

/* A data file's value that can't be held is a failure of the read. */
class NoBadValues : public BadValues
{
  public:
    explicit NoBadValues(std::string what) : what_(std::move(what))
    {
    }
    void bad(int64_t row, const std::string &reason) override
    {
        fail(TARN_VALUE_INVALID, "%s: %s", what_.c_str(), reason.c_str());
    }

  private:
    std::string what_;
};

struct WantedColumn {
    std::string name;
    const struct tarn_type *file_type, *type;
    int position; /* in the reader's batches, or -1 */
};

} // namespace

struct DataFileSource {
    struct tarn_source source; /* first */
    std::string what;
    struct tarn_arena *arena;
    std::vector<WantedColumn> columns;
    SchemaPtr schema; /* of what comes out */
    std::shared_ptr<StoreFile> file;
    FileReaderPtr reader; /* goes before file */

    DataFileSource() : source(), arena(tarn_arena_new())
    {
    }
    ~DataFileSource()
    {
        reader.reset();
        file.reset();
        tarn_arena_free(arena);
    }
    void plan(const struct tarn_file_read *spec);
    RecordBatchPtr shape(const RecordBatchPtr &batch);
};

void DataFileSource::plan(const struct tarn_file_read *spec)
{
    SchemaPtr physical = reader->schema();
    std::vector<int> fields;
    std::vector<const struct tarn_type *> types;
    arrow::FieldVector out;
    for (size_t i = 0; i < spec->column_count; i++) {
        const struct tarn_column_read *c = &spec->columns[i];
        WantedColumn wanted = {string_of(c->file_name), copy_type(c->file_type, arena),
                               copy_type(c->type, arena), -1};
        out.push_back(arrow::field(wanted.name, arrow_type(wanted.type), wanted.type->nullable));
        if (c->file_name.data != NULL) {
            std::vector<int> found = physical->GetAllFieldIndices(wanted.name);
            if (found.size() > 1)
                fail(TARN_DATA_FILE_MALFORMED, "%s: two columns are named %s", what.c_str(),
                     wanted.name.c_str());
            if (found.size() == 1) {
                if (wanted.file_type != NULL && !cast_known(wanted.file_type, wanted.type))
                    fail(TARN_UNSUPPORTED_FEATURE,
                         "%s: column %s was written as %s; reading it as %s is not done yet",
                         what.c_str(), wanted.name.c_str(), type_text(wanted.file_type).c_str(),
                         type_text(wanted.type).c_str());
                wanted.position = (int)fields.size();
                fields.push_back(found[0]);
                types.push_back(wanted.file_type == NULL ? wanted.type : wanted.file_type);
            }
        }
        columns.push_back(wanted);
    }
    schema = arrow::schema(out);
    reader->select(fields, types, spec->row_begin, spec->row_end);
}

RecordBatchPtr DataFileSource::shape(const RecordBatchPtr &batch)
{
    arrow::ArrayVector out;
    for (const WantedColumn &c : columns) {
        if (c.position < 0) {
            out.push_back(null_array(c.type, batch->num_rows()));
            continue;
        }
        const struct tarn_type *file_type = c.file_type == NULL ? c.type : c.file_type;
        ConvertRules rules = {false, TARN_DATA_FILE_MALFORMED, what + ": column " + c.name};
        NoBadValues bad(rules.what);
        out.push_back(
            cast(convert(batch->column(c.position), file_type, rules, bad), file_type, c.type));
    }
    return arrow::RecordBatch::Make(schema, batch->num_rows(), out);
}

static struct tarn_status *data_file_next(struct tarn_source *self, struct tarn_op *op,
                                          struct tarn_batch **out)
{
    DataFileSource *source = (DataFileSource *)self;
    TARN_TRY(tarn_op_check(op));
    struct tarn_status *status = guarded(TARN_DATA_FILE_MALFORMED, source->what, [&] {
        source->file->op = op;
        RecordBatchPtr batch = source->reader->next();
        *out = batch == nullptr ? NULL : export_batch(*source->shape(batch));
    });
    return told_by(source->file, status);
}

static void data_file_close(struct tarn_source *self)
{
    delete (DataFileSource *)self;
}

/* format.md 7.1: the last extension, or the one before if that names a compression. */
static std::string extension_of(const char *key)
{
    std::string name = key;
    name = name.substr(name.rfind('/') + 1);
    for (int i = 0; i < 2; i++) {
        size_t dot = name.rfind('.');
        if (dot == std::string::npos)
            return "";
        std::string extension = name.substr(dot + 1);
        if (extension != "gz" && extension != "zst" && extension != "lz4" &&
            extension != "snappy" && extension != "bz2")
            return extension;
        name.resize(dot);
    }
    return "";
}

static struct tarn_status *open_store_file(struct tarn_store *store, struct tarn_op *op,
                                           const char *key, std::shared_ptr<StoreFile> *out)
{
    struct tarn_store_reader *reader = NULL;
    TARN_TRY(tarn_store_reader_open(store, op, key, &reader));
    *out = std::make_shared<StoreFile>(reader);
    (*out)->op = op;
    return TARN_OK;
}

} // namespace tarn

struct tarn_status *tarn_file_reader_open(struct tarn_store *store, struct tarn_op *op,
                                          const char *key, const struct tarn_file_read *spec,
                                          struct tarn_source **out)
{
    using namespace tarn;
    std::string extension = extension_of(key);
    FileReaderPtr (*open)(FilePtr, const std::string &, int) =
        extension == "parquet" ? parquet_file_reader
        : extension == "orc"   ? orc_file_reader
        : extension == "avro"  ? avro_file_reader
                               : NULL;
    if (open == NULL)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "%s: data files of format %s are not read yet", key,
                               extension.empty() ? "unknown" : extension.c_str());
    std::shared_ptr<StoreFile> file;
    TARN_TRY(open_store_file(store, op, key, &file));
    struct tarn_status *status = guarded(TARN_DATA_FILE_MALFORMED, key, [&] {
        std::unique_ptr<DataFileSource> source(new DataFileSource);
        source->source.next = data_file_next;
        source->source.close = data_file_close;
        source->what = key;
        source->file = file;
        source->reader = open(file, key, spec->batch_row_count);
        source->plan(spec);
        *out = &source.release()->source;
    });
    return told_by(file, status);
}
