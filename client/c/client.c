#include "tarn/client.h"

#include "receive.h"

#include <stdlib.h>

/* A thin layer over room `wire`: messages are packed and unpacked here, with memory bounded by the message. */

struct tarn_client {
    struct tarn_channel *channel;
    char *server;
};

struct tarn_client_stream {
    struct tarn_client_call *call;
};

#define DEFAULT_SERVER "127.0.0.1:7420"

struct tarn_status *tarn_client_open(const struct tarn_client_options *options,
                                     struct tarn_client **out)
{
    const char *server = options->server != NULL ? options->server : getenv("TARN_SERVER");
    const char *token = options->token != NULL ? options->token : getenv("TARN_TOKEN");
    TARN_OWN(tarn_client_drop) struct tarn_client *client = tarn_calloc(1, sizeof *client);
    client->server = tarn_strdup(server != NULL && server[0] != '\0' ? server : DEFAULT_SERVER);
    struct tarn_channel_options channel = {
        .address = client->server,
        .token = token != NULL && token[0] != '\0' ? token : NULL,
        .ca_file = options->ca_file,
        .cert_file = options->cert_file,
        .key_file = options->key_file,
    };
    TARN_TRY(tarn_channel_open(&channel, &client->channel));
    *out = tarn_move(client);
    return TARN_OK;
}

void tarn_client_close(struct tarn_client *client)
{
    if (client == NULL)
        return;
    tarn_channel_close(client->channel);
    free(client->server);
    free(client);
}

void tarn_client_drop(struct tarn_client **client)
{
    tarn_client_close(*client);
    *client = NULL;
}

void tarn_client_pause(struct tarn_client *client, int64_t ms)
{
    tarn_channel_pause(client->channel, ms);
}

const char *tarn_client_server(const struct tarn_client *client)
{
    return client->server;
}

static const char *full_path(struct tarn_op *op, const char *method)
{
    return tarn_arena_printf(op->arena, "/tarn.v1.%s", method);
}

static struct tarn_message *pack(const ProtobufCMessage *message)
{
    uint8_t *bytes;
    struct tarn_message *packed =
        tarn_message_new(protobuf_c_message_get_packed_size(message), &bytes);
    protobuf_c_message_pack(message, bytes);
    return packed;
}

static struct tarn_status *unpack(const ProtobufCMessageDescriptor *type,
                                  struct tarn_message *message, ProtobufCMessage **out)
{
    struct tarn_slice bytes = tarn_message_bytes(message);
    *out = protobuf_c_message_unpack(type, NULL, bytes.size, bytes.data);
    if (*out == NULL)
        return tarn_status_new(
            TARN_INTERNAL, "the server's answer is no %s; are client and server of one version?",
            type->name);
    return TARN_OK;
}

struct tarn_status *tarn_client_call(struct tarn_client *client, struct tarn_op *op,
                                     const char *method, const ProtobufCMessage *request,
                                     const ProtobufCMessageDescriptor *type,
                                     ProtobufCMessage **response)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *answer = NULL;
    TARN_TRY(
        tarn_channel_unary(client->channel, op, full_path(op, method), pack(request), &answer));
    return unpack(type, answer, response);
}

struct tarn_status *tarn_client_stream_open(struct tarn_client *client, struct tarn_op *op,
                                            const char *method, struct tarn_client_stream **out)
{
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream =
        tarn_calloc(1, sizeof *stream);
    TARN_TRY(tarn_channel_call(client->channel, op, full_path(op, method), &stream->call));
    *out = tarn_move(stream);
    return TARN_OK;
}

struct tarn_status *tarn_client_stream_send(struct tarn_client_stream *stream,
                                            const ProtobufCMessage *message)
{
    return tarn_client_call_write(stream->call, pack(message));
}

static size_t put_varint(uint8_t *out, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        out[n++] = (uint8_t)(value | 0x80);
    out[n++] = (uint8_t)value;
    return n;
}

struct tarn_status *tarn_client_stream_send_bytes(struct tarn_client_stream *stream, uint32_t field,
                                                  struct tarn_slice bytes)
{
    uint8_t head[16];
    size_t n = put_varint(head, (uint64_t)field << 3 | 2); /* wire type 2: length-delimited */
    n += put_varint(head + n, bytes.size);
    uint8_t *out;
    struct tarn_message *message = tarn_message_new(n + bytes.size, &out);
    memcpy(out, head, n);
    if (bytes.size > 0)
        memcpy(out + n, bytes.data, bytes.size);
    return tarn_client_call_write(stream->call, message);
}

struct tarn_status *tarn_client_stream_done(struct tarn_client_stream *stream)
{
    return tarn_client_call_writes_done(stream->call);
}

struct tarn_status *tarn_client__receive(struct tarn_client_stream *stream,
                                         struct tarn_message **out)
{
    TARN_TRY(tarn_client_call_read(stream->call, out));
    return *out == NULL ? tarn_client_call_finish(stream->call) : TARN_OK;
}

struct tarn_status *tarn_client_stream_receive(struct tarn_client_stream *stream,
                                               const ProtobufCMessageDescriptor *type,
                                               ProtobufCMessage **out)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    *out = NULL;
    TARN_TRY(tarn_client__receive(stream, &message));
    return message == NULL ? TARN_OK : unpack(type, message, out);
}

void tarn_client_stream_free(struct tarn_client_stream *stream)
{
    if (stream == NULL)
        return;
    tarn_client_call_free(stream->call);
    free(stream);
}

void tarn_client_stream_drop(struct tarn_client_stream **stream)
{
    tarn_client_stream_free(*stream);
    *stream = NULL;
}
