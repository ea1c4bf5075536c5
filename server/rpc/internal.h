/*
 * internal - what the files of room `rpc` share: methods, and pieces of messages.
 *
 * Messages that are unpacked or built lie in the op's arena.
 */
#ifndef TARN_RPC_INTERNAL_H
#define TARN_RPC_INTERNAL_H

#include <protobuf-c/protobuf-c.h>

#include "rpc/rpc.h"
#include "tarn/v1/common.pb-c.h"
#include "tarn/v1/maintenance.pb-c.h"

/* Between daemon and worker: plans and lists of files are larger than what clients send. */
#define TARN_RPC_WORKER_MESSAGE_MAX (64 << 20)
/* Requests larger than this are unpacked by few calls at once: unpacked they take many times more. */
#define TARN_RPC_LARGE_SIZE (1 << 20)
#define TARN_RPC_LARGE_MAX 8

/* --- methods --- */
typedef struct tarn_status *(*tarn_rpc_unary_fn)(struct tarn_op *op, struct tarn_service *service,
                                                 const void *request, void *response);
typedef struct tarn_status *(*tarn_rpc_stream_fn)(struct tarn_op *op, struct tarn_rpc *rpc,
                                                  struct tarn_call *call);
/* A unary one that holds no thread while it waits: ends with tarn_rpc__finish, once, from any thread. No request_id. */
struct tarn_rpc__run;
typedef void (*tarn_rpc_start_fn)(struct tarn_op *op, struct tarn_service *service,
                                  const void *request, struct tarn_rpc__run *run);
void tarn_rpc__finish(struct tarn_rpc__run *run, const ProtobufCMessage *response);
void tarn_rpc__refuse(struct tarn_rpc__run *run, struct tarn_status *consumed);
struct tarn_rpc__method {
    const char *path;
    const ProtobufCMessageDescriptor *request, *response; /* unary */
    tarn_rpc_unary_fn unary;                              /* or */
    tarn_rpc_start_fn start;                              /* or */
    tarn_rpc_stream_fn stream;
};
struct tarn_service *tarn_rpc__service(struct tarn_rpc *rpc);
extern const struct tarn_rpc__method tarn_rpc__catalog_methods[], tarn_rpc__table_methods[],
    tarn_rpc__maintenance_methods[], tarn_rpc__worker_methods[], tarn_rpc__data_methods[];

/* A line of such a table. M(CatalogService, GetTable, get_table_request, table, get_table) */
#define TARN_RPC_UNARY(service, method, request_name, response_name, fn)                           \
    {                                                                                              \
        "/tarn.v1." #service "/" #method, &tarn__v1__##request_name##__descriptor,                 \
            &tarn__v1__##response_name##__descriptor, fn, NULL, NULL                               \
    }
#define TARN_RPC_STARTED(service, method, request_name, response_name, fn)                         \
    {                                                                                              \
        "/tarn.v1." #service "/" #method, &tarn__v1__##request_name##__descriptor,                 \
            &tarn__v1__##response_name##__descriptor, NULL, fn, NULL                               \
    }
#define TARN_RPC_STREAM(service, method, fn)                                                       \
    {                                                                                              \
        "/tarn.v1." #service "/" #method, NULL, NULL, NULL, NULL, fn                               \
    }
#define TARN_RPC_END                                                                               \
    {                                                                                              \
        NULL, NULL, NULL, NULL, NULL, NULL                                                         \
    }

/* --- messages --- */
/* Unpacks and checks; the message lies in the arena. INVALID_ARGUMENT, TOO_LARGE. */
TARN_MUST struct tarn_status *tarn_rpc__unpack(struct tarn_op *op,
                                               const ProtobufCMessageDescriptor *type,
                                               struct tarn_slice bytes, void **out);
/* TOO_LARGE where the message has more than size_max bytes. */
TARN_MUST struct tarn_status *tarn_rpc__pack(const ProtobufCMessage *message, size_t size_max,
                                             struct tarn_message **out);
/* Reads the one request of a call. */
TARN_MUST struct tarn_status *tarn_rpc__read(struct tarn_op *op, struct tarn_call *call,
                                             const ProtobufCMessageDescriptor *type, void **out);
TARN_MUST struct tarn_status *tarn_rpc__write(struct tarn_call *call,
                                              const ProtobufCMessage *message);

/* A new message of type tarn__v1__<name>, in the arena. */
#define TARN_RPC_NEW(op, type, name)                                                               \
    ({                                                                                             \
        type *tarn_rpc_new_message = tarn_arena_alloc((op)->arena, sizeof(type));                  \
        tarn__v1__##name##__init(tarn_rpc_new_message);                                            \
        tarn_rpc_new_message;                                                                      \
    })
#define TARN_RPC_ARRAY(op, count, type) tarn_arena_calloc((op)->arena, (count) + 1, sizeof(type))

static inline struct tarn_slice tarn_rpc__slice(ProtobufCBinaryData bytes)
{
    return (struct tarn_slice){bytes.data, bytes.len};
}
static inline ProtobufCBinaryData tarn_rpc__bytes(struct tarn_slice s)
{
    return (ProtobufCBinaryData){s.size, (uint8_t *)(uintptr_t)s.data};
}
static inline char *tarn_rpc__str(const char *text) /* borrowed; NULL: "" */
{
    return (char *)(uintptr_t)(text == NULL ? "" : text);
}
/* Copies, since a slice has no NUL. */
static inline char *tarn_rpc__text(struct tarn_op *op, struct tarn_slice s)
{
    return tarn_arena_str(op->arena, s);
}

struct tarn_table_ref tarn_rpc__ref(const Tarn__V1__TableRef *ref); /* NULL: an empty one */
struct tarn_page tarn_rpc__page(const Tarn__V1__Page *page);
TARN_MUST struct tarn_status *tarn_rpc__version(const Tarn__V1__Version *version,
                                                struct tarn_version *out);
/* Changes.How as enum tarn_changes (subscribe.c). */
TARN_MUST struct tarn_status *tarn_rpc__how(int how, int *out);
struct tarn_pair *tarn_rpc__pairs(struct tarn_op *op, Tarn__V1__Option *const *options,
                                  size_t count);
Tarn__V1__Option **tarn_rpc__options(struct tarn_op *op, const struct tarn_pair *pairs,
                                     size_t count);
struct tarn_slice *tarn_rpc__slices(struct tarn_op *op, const ProtobufCBinaryData *list,
                                    size_t count);
ProtobufCBinaryData *tarn_rpc__bytes_list(struct tarn_op *op, const struct tarn_slice *list,
                                          size_t count);
Tarn__V1__Field **tarn_rpc__fields(struct tarn_op *op, const struct tarn_field *fields,
                                   size_t count);
/* A column without its type, which is text still. */
struct tarn_field tarn_rpc__field(const Tarn__V1__Field *field);
struct tarn_partition_value *tarn_rpc__partition(struct tarn_op *op,
                                                 Tarn__V1__PartitionValue *const *values,
                                                 size_t count);

/* --- decision.c --- */
Tarn__V1__Decision *tarn_rpc__decision(struct tarn_op *op, const struct tarn_decision *in);

#endif
