#include "rpc/internal.h"

/*
 * Messages into the op's arena and out of it. The library allocates as it reads: two bytes on the
 * wire may ask for a struct of hundreds, so what one request may take is bounded by its size.
 */

#define BUDGET_BASE ((size_t)1 << 20)
#define BUDGET_PER_BYTE 12
#define DEPTH_MAX 16 /* our messages don't nest deeper */

struct budget {
    struct tarn_arena *arena;
    size_t left;
    bool exceeded;
};

static void *take(void *arg, size_t size)
{
    struct budget *budget = arg;
    if (size > budget->left) {
        budget->exceeded = true;
        return NULL;
    }
    budget->left -= size;
    return tarn_arena_alloc(budget->arena, size);
}

static void give(void *arg TARN_UNUSED, void *memory TARN_UNUSED)
{
    /* the arena goes as a whole */
}

/* --- strings must be UTF-8, as proto3 says; the library doesn't look --- */

static struct tarn_status *check_message(const ProtobufCMessage *message, int depth);

static struct tarn_status *check_value(const ProtobufCFieldDescriptor *field, const void *value,
                                       int depth)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(const char *const *)value;
        if (text != NULL && !tarn_utf8_valid(tarn_slice_str(text)))
            return tarn_status_new(TARN_INVALID_ARGUMENT, "%s is not UTF-8", field->name);
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessage *inner = *(const ProtobufCMessage *const *)value;
        if (inner != NULL)
            return check_message(inner, depth + 1);
    }
    return TARN_OK;
}

static struct tarn_status *check_field(const ProtobufCMessage *message,
                                       const ProtobufCFieldDescriptor *field, int depth)
{
    if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
        return TARN_OK;
    const char *base = (const char *)message;
    const void *value = base + field->offset;
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        bool one_of = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
        if (one_of && *(const uint32_t *)(base + field->quantifier_offset) != field->id)
            return TARN_OK; /* another member lies there */
        return check_value(field, value, depth);
    }
    size_t count = *(const size_t *)(base + field->quantifier_offset);
    const void *const *list = *(const void *const *const *)value;
    for (size_t i = 0; i < count; i++)
        TARN_TRY(check_value(field, &list[i], depth));
    return TARN_OK;
}

static struct tarn_status *check_message(const ProtobufCMessage *message, int depth)
{
    if (depth > DEPTH_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the request nests too deep");
    for (unsigned i = 0; i < message->descriptor->n_fields; i++)
        TARN_TRY(check_field(message, &message->descriptor->fields[i], depth));
    return TARN_OK;
}

/* --- in --- */

struct tarn_status *tarn_rpc__unpack(struct tarn_op *op, const ProtobufCMessageDescriptor *type,
                                     struct tarn_slice bytes, void **out)
{
    struct budget budget = {op->arena, BUDGET_BASE + bytes.size * BUDGET_PER_BYTE, false};
    ProtobufCAllocator allocator = {take, give, &budget};
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, bytes.size, bytes.data);
    if (message == NULL && budget.exceeded)
        return tarn_status_new(TARN_TOO_LARGE, "the request holds too many parts for its size");
    if (message == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the request is no %s", type->name);
    TARN_TRY(check_message(message, 0));
    *out = message;
    return TARN_OK;
}

struct tarn_status *tarn_rpc__read(struct tarn_op *op, struct tarn_call *call,
                                   const ProtobufCMessageDescriptor *type, void **out)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    TARN_TRY(tarn_call_read(call, &message));
    if (message == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the call ended without a request");
    return tarn_rpc__unpack(op, type, tarn_message_bytes(message), out);
}

/* --- out --- */

struct tarn_status *tarn_rpc__pack(const ProtobufCMessage *message, size_t size_max,
                                   struct tarn_message **out)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size > size_max)
        return tarn_status_new(TARN_TOO_LARGE,
                               "a message of %zu bytes, at most %zu: ask for less at once", size,
                               size_max);
    uint8_t *bytes;
    *out = tarn_message_new(size, &bytes);
    protobuf_c_message_pack(message, bytes);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__write(struct tarn_call *call, const ProtobufCMessage *message)
{
    struct tarn_message *packed;
    TARN_TRY(tarn_rpc__pack(message, TARN_WIRE_MESSAGE_MAX, &packed));
    return tarn_call_write(call, packed);
}
