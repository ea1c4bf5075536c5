/* infer - the columns of a file that a client sends, for `table create --from-file`. */
#include "internal.h"

/* The message speaks of the file by the path it was read from: by its name, rather. */
static struct tarn_status *named(struct tarn_status *consumed, const char *path, const char *name)
{
    TARN_OWN(tarn_status_drop) struct tarn_status *s = consumed;
    const char *message = tarn_status_message(s);
    size_t size = strlen(path);

    if (strncmp(message, path, size) != 0)
        return tarn_status_wrap(tarn_move(s), "%s", name);
    return tarn_status_new(tarn_status_reason(s), "%s%s", name, message + size);
}

static struct tarn_status *infer(struct tarn_flight *flight, struct tarn_op *op,
                                 struct tarn_call *call, struct tarn_flight__parts *parts)
{
    TARN_OWN(tarn_flight__spool_drop) struct tarn_flight__spool spool = {.fd = -1};
    Tarn__V1__InferResponse response = TARN__V1__INFER_RESPONSE__INIT;
    const struct tarn_field *fields;
    enum tarn_data_format format;
    const char *name;
    bool found;

    TARN_TRY(tarn_flight__parts_open(parts, op, call));
    TARN_TRY(tarn_flight__parts_next_file(parts, op, &name, &format, &found));
    if (!found)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "no file was sent");
    if (format != TARN_DATA_PARQUET && format != TARN_DATA_ARROW)
        return tarn_status_new(
            TARN_UNIMPLEMENTED,
            "%s: columns are taken from Parquet and Arrow files only; use --columns", name);
    TARN_TRY(tarn_flight__spool_fill(&spool, flight->options.scratch_dir, parts, op));
    struct tarn_status *s =
        tarn_input_infer(op, format, spool.path, op->arena, &fields, &response.n_fields);
    if (s != TARN_OK)
        return named(s, spool.path, name);
    response.fields = tarn_flight__fields(fields, response.n_fields, op->arena);
    return tarn_call_write(call, tarn_flight_pack(&response.base));
}

struct tarn_status *tarn_flight__infer(void *self, struct tarn_op *op, struct tarn_call *call)
{
    struct tarn_flight__parts parts = {0};
    struct tarn_status *s = infer(self, op, call, &parts);

    tarn_flight__parts_drop(&parts);
    return s;
}
