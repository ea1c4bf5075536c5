/*
 * client - talks to a Tarn daemon over gRPC. What `tarn` is built on.
 *
 * Shape    a client is one connection. Calls with a generated message (pb-c.h of tarn/v1) in and out; streams
 *          of bytes for load and scan. Messages returned are owned: free them with their own
 *          tarn__v1__..._free_unpacked(message, NULL).
 * Threads  a client may be used by several threads; a stream by one at a time.
 * Errors   the server's status, restored with its reason; UNAVAILABLE names the address.
 */
#ifndef TARN_CLIENT_H
#define TARN_CLIENT_H

#include <protobuf-c/protobuf-c.h>

#include "base/base.h"
#include "wire/wire.h"

struct tarn_client;

struct tarn_client_options {
    const char *server; /* host:port; NULL: $TARN_SERVER, else 127.0.0.1:7420 */
    const char *token;  /* NULL: $TARN_TOKEN, else none */
    const char *ca_file, *cert_file, *key_file;
};

TARN_MUST struct tarn_status *tarn_client_open(const struct tarn_client_options *options,
                                               struct tarn_client **out);
void tarn_client_close(struct tarn_client *client);
void tarn_client_drop(struct tarn_client **client);
const char *tarn_client_server(const struct tarn_client *client);

/* One message out, one in: method "CatalogService/GetTable"; `type` is the descriptor of the answer. */
TARN_MUST struct tarn_status *tarn_client_call(struct tarn_client *client, struct tarn_op *op,
                                               const char *method, const ProtobufCMessage *request,
                                               const ProtobufCMessageDescriptor *type,
                                               ProtobufCMessage **response);

/* --- streams --- */
struct tarn_client_stream;
TARN_MUST struct tarn_status *tarn_client_stream_open(struct tarn_client *client,
                                                      struct tarn_op *op, const char *method,
                                                      struct tarn_client_stream **out);
TARN_MUST struct tarn_status *tarn_client_stream_send(struct tarn_client_stream *stream,
                                                      const ProtobufCMessage *message);
/* The fields `data` (number `field`, bytes) of a message, without copying it into one first. */
TARN_MUST struct tarn_status *tarn_client_stream_send_bytes(struct tarn_client_stream *stream,
                                                            uint32_t field,
                                                            struct tarn_slice bytes);
TARN_MUST struct tarn_status *tarn_client_stream_done(
    struct tarn_client_stream *stream); /* nothing more to send */
/* NULL at the end of a stream that succeeded. */
TARN_MUST struct tarn_status *tarn_client_stream_receive(struct tarn_client_stream *stream,
                                                         const ProtobufCMessageDescriptor *type,
                                                         ProtobufCMessage **out);
void tarn_client_stream_free(struct tarn_client_stream *stream); /* cancels what is unfinished */
void tarn_client_stream_drop(struct tarn_client_stream **stream);

#endif
