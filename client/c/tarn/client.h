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

#include "tarn/v1/table.pb-c.h"

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
/* Before another try: sleeps, until there is a connection where there was none. */
void tarn_client_pause(struct tarn_client *client, int64_t ms);

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

/* --- subscriptions (TableService.Subscribe) ---
 * A stream of a table's snapshots, or of what they changed, that survives lost connections and restarts of the server:
 * once the server has answered, it is begun again behind the last message, or where it began, with pauses that grow to
 * 2 s. No message comes twice and none is left out, of what came after the first answer. (A consumer without a position
 * that the server does not keep, keep_consumer, is begun again only once a message has come.) What ends it is what can't be continued: SNAPSHOT_EXPIRED, SNAPSHOT_ROLLED_BACK (facts
 * "earliest_snapshot", "earliest_token"), a table that is gone, a request that is wrong. */
struct tarn_client_subscription;
/* The request is copied; nothing is sent yet. The client outlives it. */
void tarn_client_subscribe(struct tarn_client *client, const Tarn__V1__SubscribeRequest *request,
                           struct tarn_client_subscription **out);
/* Told once of each outage, within _next and before the next try; `why` is borrowed. */
typedef void (*tarn_client_lost_fn)(void *arg, const struct tarn_status *why);
void tarn_client_subscription_on_loss(struct tarn_client_subscription *s, tarn_client_lost_fn fn,
                                      void *arg);
/* Waits for the next message, as long as the op allows. */
TARN_MUST struct tarn_status *tarn_client_subscription_next(struct tarn_client_subscription *s,
                                                            struct tarn_op *op,
                                                            Tarn__V1__SubscribeResponse **out);
/* Of the last message; empty before the first. Borrowed until the next one. */
struct tarn_slice tarn_client_subscription_token(const struct tarn_client_subscription *s);
int tarn_client_subscription_reconnects(const struct tarn_client_subscription *s);
void tarn_client_subscription_free(struct tarn_client_subscription *s);
void tarn_client_subscription_drop(struct tarn_client_subscription **s);

#endif
