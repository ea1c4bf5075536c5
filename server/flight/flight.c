#include "internal.h"

/* Messages in and out, and what the three methods share. */

#define UNPACK_BASE ((size_t)1 << 20)
#define UNPACK_FACTOR                                                                              \
    16 /* what a message may become in memory: a flood of empty parts is refused */
#define TEXT_MAX 4096

struct tarn_flight *tarn_flight_new(const struct tarn_flight_options *options)
{
    struct tarn_flight *flight = tarn_calloc(1, sizeof *flight);
    flight->options = *options;
    return flight;
}

void tarn_flight_free(struct tarn_flight *flight)
{
    free(flight);
}

void tarn_flight_methods(struct tarn_flight *flight,
                         struct tarn_wire_method out[TARN_FLIGHT_METHOD_COUNT])
{
    out[0] =
        (struct tarn_wire_method){"/tarn.v1.DataService/Ingest", tarn_flight__ingest, flight, true};
    out[1] =
        (struct tarn_wire_method){"/tarn.v1.DataService/Scan", tarn_flight__scan, flight, false};
    out[2] =
        (struct tarn_wire_method){"/tarn.v1.DataService/Infer", tarn_flight__infer, flight, true};
    out[3] = (struct tarn_wire_method){"/tarn.v1.DataService/Delete", tarn_flight__delete, flight,
                                       false};
}

/* --- messages --- */

struct budget {
    struct tarn_arena *arena;
    size_t left;
};

static void *budget_alloc(void *data, size_t size)
{
    struct budget *budget = data;
    if (size > budget->left)
        return NULL;
    budget->left -= size;
    return tarn_arena_alloc(budget->arena, size);
}

static void budget_free(void *data TARN_UNUSED, void *memory TARN_UNUSED)
{
}

struct tarn_status *tarn_flight_unpack(const ProtobufCMessageDescriptor *type,
                                       struct tarn_slice bytes, struct tarn_arena *arena,
                                       const void **out)
{
    struct budget budget = {arena, UNPACK_BASE + UNPACK_FACTOR * bytes.size};
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
    static const uint8_t nothing;

    *out = protobuf_c_message_unpack(type, &allocator, bytes.size,
                                     bytes.size == 0 ? &nothing : bytes.data);
    if (*out == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%zu bytes are no %s", bytes.size,
                               type->short_name);
    return TARN_OK;
}

struct tarn_message *tarn_flight_pack(const ProtobufCMessage *message)
{
    uint8_t *bytes;
    size_t size = protobuf_c_message_get_packed_size(message);
    struct tarn_message *out = tarn_message_new(size, &bytes);

    protobuf_c_message_pack(message, bytes);
    return out;
}

struct tarn_status *tarn_flight_ask(struct tarn_channel *daemon, struct tarn_op *op,
                                    const char *path, const ProtobufCMessage *request,
                                    const ProtobufCMessageDescriptor *type, const void **out)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *answer = NULL;

    TARN_TRY(tarn_channel_unary(daemon, op, path, tarn_flight_pack(request), &answer));
    return tarn_flight_unpack(type, tarn_message_bytes(answer), op->arena, out);
}

struct tarn_status *tarn_flight__text(struct tarn_slice bytes, const char *what,
                                      struct tarn_arena *arena, const char **out)
{
    if (bytes.size > TEXT_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%s has %zu bytes; at most %d", what,
                               bytes.size, TEXT_MAX);
    if (!tarn_utf8_valid(bytes) || (bytes.size > 0 && memchr(bytes.data, '\0', bytes.size) != NULL))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%s is not UTF-8 text", what);
    *out = tarn_arena_str(arena, bytes);
    return TARN_OK;
}

struct tarn_status *tarn_flight__format(int format, enum tarn_data_format *out)
{
    switch (format) {
    case TARN__V1__DATA_FORMAT__PARQUET:
        *out = TARN_DATA_PARQUET;
        return TARN_OK;
    case TARN__V1__DATA_FORMAT__CSV:
        *out = TARN_DATA_CSV;
        return TARN_OK;
    case TARN__V1__DATA_FORMAT__JSONL:
        *out = TARN_DATA_JSONL;
        return TARN_OK;
    case TARN__V1__DATA_FORMAT__ARROW:
        *out = TARN_DATA_ARROW;
        return TARN_OK;
    case TARN__V1__DATA_FORMAT__ORC:
        *out = TARN_DATA_ORC;
        return TARN_OK;
    default:
        return tarn_status_new(TARN_INVALID_ARGUMENT, "there is no data format %d", format);
    }
}

Tarn__V1__Field **tarn_flight__fields(const struct tarn_field *fields, size_t count,
                                      struct tarn_arena *arena)
{
    Tarn__V1__Field *items = tarn_arena_calloc(arena, count + 1, sizeof *items);
    Tarn__V1__Field **out = tarn_arena_calloc(arena, count + 1, sizeof *out);

    for (size_t i = 0; i < count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf type = {0};
        tarn__v1__field__init(&items[i]);
        tarn_type_print(fields[i].type, &type);
        items[i].id = fields[i].id;
        items[i].name = tarn_flight_data(fields[i].name);
        items[i].type = tarn_arena_str(arena, tarn_buf_slice(&type));
        items[i].description = tarn_flight_data(fields[i].description);
        items[i].default_value = tarn_flight_data(fields[i].default_value);
        out[i] = &items[i];
    }
    return out;
}
