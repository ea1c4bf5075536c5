/* Messages: slices of our own, or a byte buffer that gRPC received; turned into each other late. */
#include "internal.h"

struct tarn_message {
    grpc_slice slices[2]; /* of a message made here: owned until `buffer` is made of them */
    int slice_count;
    grpc_byte_buffer *buffer; /* owned; of a received message, or made for sending */
    grpc_slice flat;          /* owned; all bytes in one piece, where asked for */
    bool has_flat;
};

struct tarn_message *tarn_message_new(size_t size, uint8_t **bytes)
{
    struct tarn_message *message = tarn_calloc(1, sizeof *message);
    message->slices[0] = grpc_slice_malloc(size);
    message->slice_count = 1;
    /* Small slices lie inside the struct itself, which stays where it is. */
    *bytes = GRPC_SLICE_START_PTR(message->slices[0]);
    return message;
}

struct tarn_message *tarn_message_copy(struct tarn_slice bytes)
{
    uint8_t *to;
    struct tarn_message *message = tarn_message_new(bytes.size, &to);
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    return message;
}

struct tarn_message *tarn_message_take(struct tarn_buf *bytes)
{
    struct tarn_message *message = tarn_calloc(1, sizeof *message);
    message->slices[0] =
        bytes->data == NULL
            ? grpc_empty_slice()
            : grpc_slice_new_with_user_data(bytes->data, bytes->size, free, bytes->data);
    message->slice_count = 1;
    *bytes = (struct tarn_buf){0};
    return message;
}

struct tarn_message *tarn_message_wrap(struct tarn_slice head, struct tarn_slice body,
                                       void (*release)(void *arg), void *arg)
{
    struct tarn_message *message = tarn_calloc(1, sizeof *message);
    message->slices[0] = grpc_slice_from_copied_buffer((const char *)head.data, head.size);
    message->slices[1] =
        grpc_slice_new_with_user_data((void *)(uintptr_t)body.data, body.size, release, arg);
    message->slice_count = 2;
    return message;
}

struct tarn_message *tarn_wire__message_received(grpc_byte_buffer *consumed)
{
    struct tarn_message *message = tarn_calloc(1, sizeof *message);
    message->buffer = consumed;
    return message;
}

size_t tarn_wire__message_size(const struct tarn_message *message)
{
    size_t size = 0;
    if (message->buffer != NULL)
        return grpc_byte_buffer_length(message->buffer);
    for (int i = 0; i < message->slice_count; i++)
        size += GRPC_SLICE_LENGTH(message->slices[i]);
    return size;
}

size_t tarn_message_size(const struct tarn_message *message)
{
    return tarn_wire__message_size(message);
}

struct tarn_message *tarn_message_share(const struct tarn_message *message)
{
    struct tarn_message *other = tarn_calloc(1, sizeof *other);
    tarn_assert(message->buffer == NULL && message->slice_count == 1);
    other->slices[0] = grpc_slice_ref(message->slices[0]);
    other->slice_count = 1;
    return other;
}

static void flatten(struct tarn_message *message)
{
    if (message->buffer != NULL) {
        grpc_byte_buffer_reader reader;
        tarn_assert(grpc_byte_buffer_reader_init(&reader, message->buffer));
        message->flat = grpc_byte_buffer_reader_readall(&reader);
        grpc_byte_buffer_reader_destroy(&reader);
    } else {
        uint8_t *to;
        message->flat = grpc_slice_malloc(tarn_wire__message_size(message));
        to = GRPC_SLICE_START_PTR(message->flat);
        for (int i = 0; i < message->slice_count; i++) {
            size_t size = GRPC_SLICE_LENGTH(message->slices[i]);
            if (size > 0)
                memcpy(to, GRPC_SLICE_START_PTR(message->slices[i]), size);
            to += size;
        }
    }
    message->has_flat = true;
}

static struct tarn_slice slice_bytes(const grpc_slice *slice)
{
    return tarn_slice_of(GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice));
}

struct tarn_slice tarn_message_bytes(struct tarn_message *message)
{
    if (!message->has_flat) {
        if (message->buffer == NULL && message->slice_count == 1)
            return slice_bytes(&message->slices[0]);
        /* Most received messages are one slice: no copy then. */
        if (message->buffer != NULL && message->buffer->type == GRPC_BB_RAW &&
            message->buffer->data.raw.slice_buffer.count == 1)
            return slice_bytes(&message->buffer->data.raw.slice_buffer.slices[0]);
        flatten(message);
    }
    return slice_bytes(&message->flat);
}

grpc_byte_buffer *tarn_wire__message_buffer(struct tarn_message *message)
{
    if (message->buffer == NULL) {
        message->buffer =
            grpc_raw_byte_buffer_create(message->slices, (size_t)message->slice_count);
        for (int i = 0; i < message->slice_count; i++)
            grpc_slice_unref(message->slices[i]);
        message->slice_count = 0;
    }
    return message->buffer;
}

void tarn_message_free(struct tarn_message *message)
{
    if (message == NULL)
        return;
    for (int i = 0; i < message->slice_count; i++)
        grpc_slice_unref(message->slices[i]);
    if (message->buffer != NULL)
        grpc_byte_buffer_destroy(message->buffer);
    if (message->has_flat)
        grpc_slice_unref(message->flat);
    free(message);
}

void tarn_message_drop(struct tarn_message **message)
{
    tarn_message_free(*message);
    *message = NULL;
}
