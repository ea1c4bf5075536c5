/*
 * wire - gRPC, server and client, on the core library's completion queues. Knows no service.
 *
 * A server has methods by path. Every method, whatever its kind, is one function that reads
 * messages from its call and writes messages to it; it runs on a thread of `exec` and may wait. A
 * unary method reads one and writes one. It starts when the client's first message, or its end, has
 * come: a client that opens a call and says nothing costs no thread. What it returns is the call's
 * outcome: a status travels as its gRPC code, its message (1 kB of it), and google.rpc.Status
 * details (ErrorInfo: reason, domain "tarn", metadata; RetryInfo where trying again helps), and is
 * the same status again in a client of this room.
 *
 * Health (grpc.health.v1, Check and Watch) and reflection (v1 and v1alpha) are served by the room
 * itself, to everybody, on the queue's thread; unknown methods answer UNIMPLEMENTED. A method holds a
 * thread of `exec` for as long as it runs; one that waits for hours (a subscription) hands its call
 * over instead: tarn_call_detach; so does a unary one that waits among many: tarn_call_defer.
 *
 * Back-pressure   write returns when the previous message was handed to the transport; a slow
 *                 reader stops its writer, and costs one message of memory.
 * Threads         a call's reads belong to one thread at a time, its writes to one, maybe another.
 * Errors          CANCELLED / DEADLINE_EXCEEDED when the other side went away or time is up: the op
 *                 of the call is cancelled then. TOO_LARGE for messages over the limit. UNAVAILABLE
 *                 when no connection can be made, with the address.
 */
#ifndef TARN_WIRE_H
#define TARN_WIRE_H

#include "base/base.h"
#include "exec/exec.h"

#define TARN_WIRE_MESSAGE_MAX (16 << 20)
#define TARN_WIRE_CHUNK_SIZE (256 << 10) /* streams of bytes are cut into messages of about this */

/* --- messages: counted bytes; passed from one call to another without a copy --- */
struct tarn_message;
struct tarn_message *tarn_message_new(size_t size,
                                      uint8_t **bytes); /* to be filled by the caller */
struct tarn_message *tarn_message_copy(struct tarn_slice bytes);
struct tarn_message *tarn_message_take(
    struct tarn_buf *bytes); /* their memory; leaves an empty one */
/* `head` is copied, `body` borrowed until release(arg) is called: zero copy for large bodies. */
struct tarn_message *tarn_message_wrap(struct tarn_slice head, struct tarn_slice body,
                                       void (*release)(void *arg), void *arg);
struct tarn_slice tarn_message_bytes(struct tarn_message *message); /* in one piece; borrowed */
/* Another message of the same bytes, which are counted, not copied: one encoded message for a thousand streams. Only
 * of a message made by _new or _copy that is never sent itself; then from any number of threads at once. */
struct tarn_message *tarn_message_share(const struct tarn_message *message);
size_t tarn_message_size(const struct tarn_message *message);
void tarn_message_free(struct tarn_message *message);
void tarn_message_drop(struct tarn_message **message);

/* --- server --- */
struct tarn_wire_server;
struct tarn_call;
typedef struct tarn_status *(*tarn_wire_fn)(void *self, struct tarn_op *op, struct tarn_call *call);
/* Before the method runs: who is it? Sets op->principal (in op->arena) or refuses. */
typedef struct tarn_status *(*tarn_wire_admit_fn)(void *self, struct tarn_op *op, const char *path,
                                                  struct tarn_slice bearer_token);

struct tarn_wire_method {
    const char *path; /* "/tarn.v1.TableService/Commit" */
    tarn_wire_fn fn;
    void *self;
    /* Writes exactly one message: it then travels with the outcome, which is cheaper. Set by itself
     * for methods that `descriptors` describe as such. */
    bool one_response;
};

struct tarn_wire_server_options {
    const char *listen; /* "127.0.0.1:7420"; port 0 takes a free one */
    struct tarn_exec *exec;
    int queue_threads;         /* 0: one */
    int64_t message_max_bytes; /* 0: TARN_WIRE_MESSAGE_MAX */
    int stream_max;            /* concurrent calls a connection; 0: 1000 */
    tarn_wire_admit_fn admit;  /* NULL: everybody */
    void *admit_self;
    struct tarn_slice descriptors; /* a FileDescriptorSet for reflection; may be empty */
    const char *const *services;   /* names that health and reflection list; NULL terminated */
    /* PEM files; TLS where cert_file is set. With client_ca_file clients must show one too. */
    const char *cert_file, *key_file, *client_ca_file;
};

/* Errors: ADDRESS_IN_USE, CONFIG_INVALID. Methods are copied. */
TARN_MUST struct tarn_status *tarn_wire_server_start(const struct tarn_wire_server_options *options,
                                                     const struct tarn_wire_method *methods,
                                                     size_t method_count,
                                                     struct tarn_wire_server **out);
const char *tarn_wire_server_address(const struct tarn_wire_server *server); /* host:port, real */
void tarn_wire_server_set_serving(struct tarn_wire_server *server, bool serving); /* health */
/* Health to NOT_SERVING, no new calls, waits for running ones up to grace_ms, cancels the rest. */
void tarn_wire_server_drain(struct tarn_wire_server *server, int64_t grace_ms);
void tarn_wire_server_free(struct tarn_wire_server *server);
/* Reads certificate and key anew, for handshakes from now on; a bad file changes nothing and is
 * CONFIG_INVALID. OK without TLS. */
TARN_MUST struct tarn_status *tarn_wire_server_reload_tls(struct tarn_wire_server *server);

/* The next message, owned; NULL when the client has sent its last. */
TARN_MUST struct tarn_status *tarn_call_read(struct tarn_call *call, struct tarn_message **out);
/* Consumes the message. */
TARN_MUST struct tarn_status *tarn_call_write(struct tarn_call *call, struct tarn_message *message);
/* First value of a request metadata key (lower case), or absent; borrowed. */
struct tarn_slice tarn_call_metadata(const struct tarn_call *call, const char *key);
const char *tarn_call_peer(const struct tarn_call *call);

/* --- a server stream that holds no thread ---
 *
 * A method that has read its request may detach its call and return OK: the call stays open, and whoever detached it
 * writes and ends it from any thread. When the server drains, it is ended with SHUTTING_DOWN.
 * Events come on a gRPC thread, or on any that writes, ends or detaches a call, from within that function: hold no lock
 * there that they take, and don't wait in them. */
struct tarn_call_events {
    void (*written)(void *arg); /* the message was taken by the transport: the next may follow */
    void (*ended)(void *arg);   /* once, and the last: the call is over, whoever ended it */
};
/* Takes a reference for the caller: tarn_call_release. The op of the call lives as long. */
void tarn_call_detach(struct tarn_call *call, const struct tarn_call_events *events, void *arg);
/* Consumes the message. False: one is still under way, or the call is over or ending. */
bool tarn_call_write_async(struct tarn_call *call, struct tarn_message *message);
/* The outcome, behind the message under way. Consumes it; the first one counts. */
void tarn_call_end(struct tarn_call *call, struct tarn_status *consumed);
/* The outcome, at once: what is under way is dropped. The client sees code and message, no details. */
void tarn_call_abort(struct tarn_call *call, struct tarn_status *consumed);
void tarn_call_release(struct tarn_call *call);

/* --- a unary method that holds no thread ---
 * It may defer its call and return OK: then the answer comes later, from any thread. The op of the call lives until
 * then. A server that drains waits for it. */
void tarn_call_defer(struct tarn_call *call);
/* Once for each defer: the message (consumed) with OK, or NULL and why not (consumed). */
void tarn_call_answer(struct tarn_call *call, struct tarn_message *message,
                      struct tarn_status *status);

/* --- client --- */
struct tarn_channel;
struct tarn_client_call;

struct tarn_channel_options {
    const char *address;                        /* host:port */
    const char *token;                          /* sent as bearer; NULL: none */
    const char *ca_file, *cert_file, *key_file; /* TLS where ca_file is set */
    int64_t message_max_bytes;
};
/* Connects lazily; never fails for an address that doesn't answer. */
TARN_MUST struct tarn_status *tarn_channel_open(const struct tarn_channel_options *options,
                                                struct tarn_channel **out);
/* Sleeps, until there is a connection where there was none. A thread has to stand here, or in a call, for one to be made:
 * who sleeps elsewhere finds the server's address tried every 5 s only. */
void tarn_channel_pause(struct tarn_channel *channel, int64_t ms);
void tarn_channel_close(struct tarn_channel *channel); /* after its calls */
void tarn_channel_drop(struct tarn_channel **channel);

/* One message out, one in. Deadline and cancellation are the op's; the request id travels. */
TARN_MUST struct tarn_status *tarn_channel_unary(struct tarn_channel *channel, struct tarn_op *op,
                                                 const char *path, struct tarn_message *consumed,
                                                 struct tarn_message **response);
TARN_MUST struct tarn_status *tarn_channel_call(struct tarn_channel *channel, struct tarn_op *op,
                                                const char *path, struct tarn_client_call **out);
TARN_MUST struct tarn_status *tarn_client_call_write(struct tarn_client_call *call,
                                                     struct tarn_message *consumed);
TARN_MUST struct tarn_status *tarn_client_call_writes_done(struct tarn_client_call *call);
/* NULL message: the stream ended; ask finish. */
TARN_MUST struct tarn_status *tarn_client_call_read(struct tarn_client_call *call,
                                                    struct tarn_message **out);
/* The server's outcome; waits for it. A failed write or read is explained by this. */
TARN_MUST struct tarn_status *tarn_client_call_finish(struct tarn_client_call *call);
/* Cancels if not finished; frees. */
void tarn_client_call_free(struct tarn_client_call *call);
void tarn_client_call_drop(struct tarn_client_call **call);

/* Call once in main before anything here, after tarn_signals_block. */
void tarn_wire_init(void);

#endif
