/* data_write - a data file of a table, of whatever format, into its store. */
#include "columnar/data_file.h"
#include "columnar/parquet_copy.h"

struct tarn_file_writer {
    std::string key;
    struct tarn_store_writer *object; /* owned until finish */
    std::shared_ptr<tarn::Sink> sink;
    tarn::FileWriterPtr writer; /* goes before sink */
    bool failed;

    ~tarn_file_writer()
    {
        if (sink !=
            nullptr) /* Arrow's writer closes itself when it goes: its last bytes lead nowhere */
            sink->mute();
        writer.reset();
        tarn_store_writer_abort(object);
    }
};

/* Runs a step; the store's own word goes first where the fault was there. */
template <typename F
> static struct tarn_status *step(struct tarn_file_writer *w, struct tarn_op *op, F body)
{
    w->sink->op = op;
    struct tarn_status *status = tarn::guarded(TARN_INTERNAL, w->key, body);
    w->sink->op = NULL;
    if (status == TARN_OK)
        return TARN_OK;
    w->failed = true;
    struct tarn_status *told =
        tarn::guarded(TARN_INTERNAL, "", [&] { w->sink->pending.rethrow(); });
    if (told == TARN_OK)
        return status;
    tarn_status_free(status);
    return told;
}

struct tarn_status *tarn_file_writer_open(struct tarn_store *store, struct tarn_op *op,
                                          const char *key, const struct tarn_file_write *spec,
                                          struct tarn_file_writer **out)
{
    std::string_view format = spec->format == NULL ? "parquet" : spec->format;
    tarn::FileWriterPtr (*begin)(std::shared_ptr<tarn::Sink>, const struct tarn_file_write *) =
        format == "parquet" ? tarn::parquet_file_writer
        : format == "orc"   ? tarn::orc_file_writer
        : format == "avro"  ? tarn::avro_file_writer
                            : NULL;
    if (begin == NULL)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "%s: data files of format %s are not written yet", key,
                               spec->format);
    struct tarn_store_writer *object = NULL;
    TARN_TRY(tarn_store_writer_open(store, op, key, &object));
    return tarn::guarded(TARN_INTERNAL, key, [&] {
        std::unique_ptr<tarn_file_writer> w(
            new tarn_file_writer{key, object, nullptr, nullptr, false});
        w->sink =
            std::make_shared<tarn::Sink>([object](struct tarn_op *by, struct tarn_slice bytes) {
                return tarn_store_writer_append(object, by, bytes);
            });
        w->writer = begin(w->sink, spec);
        *out = w.release();
    });
}

struct tarn_status *tarn_file_writer_add(struct tarn_file_writer *w, struct tarn_op *op,
                                         const struct tarn_batch *batch)
{
    if (w->failed)
        return tarn_status_new(TARN_INTERNAL, "%s: a write failed before", w->key.c_str());
    return step(w, op, [&] { w->writer->add(batch); });
}

struct tarn_status *tarn_file_writer_copy(struct tarn_file_writer *w, struct tarn_op *op,
                                          struct tarn_file_copy *copy, size_t group)
{
    if (w->failed)
        return tarn_status_new(TARN_INTERNAL, "%s: a write failed before", w->key.c_str());
    copy->file->op = op;
    struct tarn_status *status = step(w, op, [&] { w->writer->copy(*copy, group); });
    copy->file->op = NULL;
    return tarn::told_by(copy->file, status);
}

int64_t tarn_file_writer_size(const struct tarn_file_writer *w)
{
    return w->writer->size();
}

struct tarn_status *tarn_file_writer_finish(struct tarn_file_writer *consumed, struct tarn_op *op,
                                            struct tarn_arena *arena, struct tarn_file_result *out)
{
    std::unique_ptr<tarn_file_writer> w(consumed);
    if (w->failed)
        return tarn_status_new(TARN_INTERNAL, "%s: a write failed before", w->key.c_str());
    struct tarn_file_result result = {};
    TARN_TRY(step(w.get(), op, [&] { w->writer->finish(arena, &result); }));
    struct tarn_store_writer *object = w->object;
    w->object = NULL;
    TARN_TRY(tarn_store_writer_finish(object, op));
    *out = result;
    return TARN_OK;
}

void tarn_file_writer_abort(struct tarn_file_writer *consumed)
{
    delete consumed;
}
