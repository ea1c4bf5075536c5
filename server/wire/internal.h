/*
 * internal - what the files of this room share.
 *
 * Life of a server call (who runs it, and what it holds a reference for):
 *
 *   armed --arrived(cq)--> first message --read_done(cq)--> job --run_call(pool)--> outcome
 *                                                                      |
 *     closed(cq): once, however the call ends                 send_status --finished(cq)--> gone
 *
 *   cq    a queue thread: takes events and posts, never waits
 *   pool  a thread of exec: runs admit and the method, may wait in tarn_call_read and _write
 *
 * A detached call is in the server's list until it is over, with what its events are told to
 * (detach.c). `ended` comes when it is closed and no write runs, so that nothing comes after.
 *
 * Health and reflection (`builtin` methods) are answered by the queue thread itself from memory, so
 * that a client that keeps such a stream open costs no thread.
 *
 * Lock order: server->watch_lock, then call->lock.
 */
#ifndef TARN_WIRE_INTERNAL_H
#define TARN_WIRE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>

#include "wire/wire.h"

#define TARN_WIRE_ARMED_COUNT 64 /* calls asked for in advance, per queue */
#define TARN_WIRE_STALE                                                                            \
    "x-tarn-stale-ms"             /* trailing metadata: op.stale_ms, where it says something */
#define TARN_WIRE_CALLS_MAX 20000 /* calls in the server at once; more are answered BUSY */
#define TARN_WIRE_METADATA_MAX (16 << 10) /* bytes of headers; gRPC refuses more */
#define TARN_WIRE_STATUS_TEXT_MAX 1024 /* of a message on the wire: clients allow 8 kB of headers */
#define TARN_WIRE_DETAILS_MAX (16 << 10) /* google.rpc.Status bytes we are willing to decode */
/* How soon a wait notices that its op was cancelled from elsewhere; what gRPC tells wakes at once. */
#define TARN_WIRE_POLL_MIN_MS 20
#define TARN_WIRE_POLL_MAX_MS 250
#define TARN_WIRE_PING_MIN_MS 10000 /* clients may ping this often (docs: keepalive) */

/* --- protobuf by hand (pb.c): bounded, no recursion --- */
enum tarn_wire__pb_type { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct tarn_wire__pb {
    const uint8_t *at;
    const uint8_t *end;
    bool bad; /* set where the bytes are not a message */
};
struct tarn_wire__field {
    uint32_t number;
    enum tarn_wire__pb_type type;
    uint64_t value;          /* of a number */
    struct tarn_slice bytes; /* of a string, message or bytes; borrowed */
};
struct tarn_wire__pb tarn_wire__pb_of(struct tarn_slice bytes);
/* False at the end, and where the bytes are bad. */
bool tarn_wire__pb_next(struct tarn_wire__pb *reader, struct tarn_wire__field *out);
void tarn_wire__pb_put_number(struct tarn_buf *out, uint32_t field, uint64_t value);
void tarn_wire__pb_put_bytes(struct tarn_buf *out, uint32_t field, struct tarn_slice bytes);
void tarn_wire__pb_put_str(struct tarn_buf *out, uint32_t field, const char *text);
/* The last value of a field of that type, as protobuf has it; absent if none. */
struct tarn_slice tarn_wire__pb_find(struct tarn_slice message, uint32_t field);

/* --- status.c --- */
/* What the status says, fit for a header: valid UTF-8, at most TARN_WIRE_STATUS_TEXT_MAX bytes. */
void tarn_wire__status_text(const struct tarn_status *status, struct tarn_buf *out);
/* google.rpc.Status. */
void tarn_wire__status_encode(const struct tarn_status *status, const char *request_id,
                              struct tarn_buf *out);
/* Decodes `details` if they are ours, else makes the best of code and message. NULL for code 0. */
TARN_MUST struct tarn_status *tarn_wire__status_restore(int code, struct tarn_slice message,
                                                        struct tarn_slice details);

/* --- message.c --- */
struct tarn_message *tarn_wire__message_received(grpc_byte_buffer *consumed);
size_t tarn_wire__message_size(const struct tarn_message *message);
/* The message as a byte buffer, owned by the message. */
grpc_byte_buffer *tarn_wire__message_buffer(struct tarn_message *message);

/* --- tags: what a completion queue gives back --- */
struct tarn_wire__tag {
    void (*fn)(struct tarn_wire__tag *tag, bool ok);
    struct tarn_wire__tag *next; /* of those that run_batch has yet to handle, in its thread */
    bool ok;
};
/* Asserts that gRPC took the batch: it refuses only our own bugs. */
void tarn_wire__start_batch(grpc_call *call, const grpc_op *ops, size_t count, void *tag);
/* The same for a batch that mostly completes at once, as writes do: what does is handled in this thread, and no thread of
 * `queue`, the call's, is woken for it. No lock is held; what comes back may be another call's. */
void tarn_wire__run_batch(grpc_completion_queue *queue, grpc_call *call, const grpc_op *ops,
                          size_t count, struct tarn_wire__tag *tag);
/* TSan does not see the hand-over inside gRPC; these tell it. Nothing in other builds. */
void tarn_wire__give(void *tag);
void tarn_wire__take(void *tag);

/* --- server --- */
struct tarn_wire__reflection;

/* Answers one request of a built-in method on the queue thread. *stay: expect no further request,
 * but keep the call open (Watch). */
typedef struct tarn_status *(*tarn_wire__builtin_fn)(struct tarn_call *call,
                                                     struct tarn_slice request,
                                                     struct tarn_buf *reply, bool *stay);
struct tarn_wire__method {
    char *path;  /* owned */
    char *label; /* owned: the path as metrics and logs have it */
    tarn_wire_fn fn;
    void *self;
    tarn_wire__builtin_fn builtin; /* instead of fn */
    bool one_response;
};

struct tarn_wire_server {
    grpc_server *handle;
    grpc_completion_queue **queues;
    pthread_t *threads;
    int queue_count;
    grpc_completion_queue *drain_queue;
    struct tarn_exec *exec;
    char *address;
    int64_t message_max;
    tarn_wire_admit_fn admit;
    void *admit_self;
    struct tarn_map *methods; /* path -> struct tarn_wire__method; immutable after start */
    struct tarn_wire__reflection *reflection;
    struct tarn_wire__tls *tls;           /* NULL: plaintext */
    grpc_server_credentials *credentials; /* owned */
    char **services;                      /* owned, service_count of them */
    size_t service_count;
    atomic_int call_count;
    atomic_bool draining;
    bool drained;

    atomic_bool serving;
    pthread_mutex_t watch_lock; /* guards watchers, detached and their links */
    struct tarn_call *watchers;
    struct tarn_call *detached;
};

struct tarn_call {
    struct tarn_wire_server *server;
    grpc_completion_queue *queue;
    grpc_call *handle;
    grpc_call_details details;
    grpc_metadata_array metadata;
    const struct tarn_wire__method *method; /* NULL: unknown */
    struct tarn_op op;
    bool op_made;
    int64_t start_ns;
    atomic_int refs;
    struct tarn_wire__tag arrive_tag, read_tag, write_tag, finish_tag, close_tag;
    int cancelled_by_peer; /* gRPC writes it, before close_tag comes */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    enum { READ_IDLE, READ_RUNNING, READ_DONE, READ_ENDED, READ_FAILED } read_state;
    grpc_byte_buffer *read_buffer; /* gRPC writes it while READ_RUNNING; owned when READ_DONE */
    bool started;                  /* the first message came, or its end */
    bool write_running, write_failed, head_sent;
    struct tarn_message *writing; /* in flight; owned */
    struct tarn_message *held;    /* the one response, to travel with the status; owned */
    bool closed, gone;            /* closed_tag came; ... and the client did not see our status */
    bool finishing;               /* outcome is set; send_status when no write runs */
    struct tarn_status *outcome;
    char *peer;

    /* Watch */
    bool watching;
    char *watch_service;
    int watch_sent; /* last state sent, -1 none */
    struct tarn_call *watch_next, **watch_link;

    bool deferred; /* whoever deferred it answers it */

    /* detached: set once, under the lock */
    const struct tarn_call_events *events; /* NULL: not detached */
    void *events_arg;
    int telling_count; /* threads that are about to tell of a write, or do: the end waits for them */
    bool ended_told;
    struct tarn_call *detached_next, **detached_link;
};

void tarn_wire__call_ref(struct tarn_call *call);
void tarn_wire__call_unref(struct tarn_call *call);

void tarn_wire__call_arm(struct tarn_wire_server *server, grpc_completion_queue *queue);
/* Consumes the status; the first one counts. */
void tarn_wire__call_finish(struct tarn_call *call, struct tarn_status *consumed);
/* Sends unless a write runs or the call is over; false then, and the message is freed. */
bool tarn_wire__call_try_write(struct tarn_call *call, struct tarn_message *consumed);

/* --- detach.c --- */
/* Tells a detached call's owner that its message was taken; counted in telling_count before, and a check follows. */
void tarn_wire__detached_tell(struct tarn_call *call);
/* Tells a detached call's owner that it is over, once that is so; any number of times. */
void tarn_wire__detached_check(struct tarn_call *call);
void tarn_wire__detached_end_all(struct tarn_wire_server *server); /* the server stops */

/* --- health.c --- */
struct tarn_status *tarn_wire__health_check(struct tarn_call *call, struct tarn_slice request,
                                            struct tarn_buf *reply, bool *stay);
struct tarn_status *tarn_wire__health_watch(struct tarn_call *call, struct tarn_slice request,
                                            struct tarn_buf *reply, bool *stay);
void tarn_wire__watch_wake(struct tarn_call *call); /* sends the state if it is news */
void tarn_wire__watch_end(struct tarn_call *call);  /* unlinks; any number of times */
void tarn_wire__watch_wake_all(struct tarn_wire_server *server);

/* --- reflection.c --- */
/* `descriptors` is borrowed while the index lives. Bad bytes: INTERNAL, naming the file. */
TARN_MUST struct tarn_status *tarn_wire__reflection_new(struct tarn_slice descriptors,
                                                        struct tarn_wire__reflection **out);
void tarn_wire__reflection_free(struct tarn_wire__reflection *reflection);
void tarn_wire__reflection_drop(struct tarn_wire__reflection **reflection);
/* A FileDescriptorSet of health and reflection (descriptors.c). */
struct tarn_slice tarn_wire__own_descriptors(void);
/* A ServerReflectionRequest answered with a ServerReflectionResponse. */
TARN_MUST struct tarn_status *tarn_wire__reflection_answer(
    const struct tarn_wire__reflection *reflection, const char *const *services,
    size_t service_count, struct tarn_slice request, struct tarn_buf *reply);
/* Does the method answer with exactly one message? False also where it isn't known. */
bool tarn_wire__reflection_one_response(const struct tarn_wire__reflection *reflection,
                                        const char *path);
struct tarn_status *tarn_wire__reflect(struct tarn_call *call, struct tarn_slice request,
                                       struct tarn_buf *reply, bool *stay);

/* --- tls.c --- */
/* A PEM file, at most 1 MiB; owned text. CONFIG_INVALID names the file. */
TARN_MUST struct tarn_status *tarn_wire__read_pem(const char *path, char **out);
struct tarn_wire__tls;
/* Without a certificate: *tls NULL and plaintext credentials. */
TARN_MUST struct tarn_status *tarn_wire__tls_open(const struct tarn_wire_server_options *options,
                                                  struct tarn_wire__tls **tls,
                                                  grpc_server_credentials **credentials);
/* After the server's handle is destroyed. */
void tarn_wire__tls_free(struct tarn_wire__tls *tls);

#endif
