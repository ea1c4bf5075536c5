#include "rpc/internal.h"

#include "rpc/channels.h"

/* The table of methods, and what all unary ones have in common. */

const char *const tarn_rpc_services[] = {
    "tarn.v1.CatalogService",
    "tarn.v1.TableService",
    "tarn.v1.MaintenanceService",
    "tarn.v1.WorkerService",
    "tarn.v1.DataService",
    "tarn.v1.AdminService",
    NULL,
};

static const struct tarn_rpc__method *const tables[] = {
    tarn_rpc__catalog_methods,     tarn_rpc__table_methods,  tarn_rpc__data_methods,
    tarn_rpc__maintenance_methods, tarn_rpc__worker_methods,
};

/* --- unary --- */

/* The request's request_id, or "". */
static const char *request_id_of(const struct tarn_rpc__method *method, const void *request)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(method->request, "request_id");
    if (field == NULL)
        return "";
    const char *text = *(const char *const *)((const char *)request + field->offset);
    return text == NULL ? "" : text;
}

static struct tarn_status *answer(struct tarn_op *op, struct tarn_service *service,
                                  const struct tarn_rpc__method *method, const void *request,
                                  struct tarn_message **out)
{
    ProtobufCMessage *response = tarn_arena_alloc(op->arena, method->response->sizeof_message);
    protobuf_c_message_init(method->response, response);
    TARN_TRY(method->unary(op, service, request, response));
    return tarn_rpc__pack(response, TARN_WIRE_MESSAGE_MAX, out);
}

/* A mutation with a request_id: carried out once, however often it comes. */
static struct tarn_status *answer_once(struct tarn_op *op, struct tarn_service *service,
                                       const struct tarn_rpc__method *method,
                                       const char *request_id, struct tarn_slice bytes,
                                       const void *request, struct tarn_message **out)
{
    struct tarn_answer *ticket;
    struct tarn_slice before;
    TARN_TRY(tarn_answers_begin(op, service->answers, method->path, tarn_slice_str(request_id),
                                bytes, &ticket, &before));
    if (ticket == NULL) {
        *out = tarn_message_copy(before);
        return TARN_OK;
    }
    struct tarn_status *s = answer(op, service, method, request, out);
    if (s == TARN_OK)
        tarn_answers_keep(ticket, tarn_message_bytes(*out));
    else
        tarn_answers_forget(ticket);
    return s;
}

static struct tarn_status *carry_out(struct tarn_op *op, struct tarn_service *service,
                                     const struct tarn_rpc__method *method, struct tarn_slice bytes,
                                     struct tarn_message **out)
{
    void *request;
    TARN_TRY(tarn_rpc__unpack(op, method->request, bytes, &request));
    const char *request_id = request_id_of(method, request);
    if (request_id[0] == '\0')
        return answer(op, service, method, request, out);
    return answer_once(op, service, method, request_id, bytes, request, out);
}

static struct tarn_status *read_one(struct tarn_call *call, struct tarn_message **out)
{
    TARN_TRY(tarn_call_read(call, out));
    return *out != NULL
               ? TARN_OK
               : tarn_status_new(TARN_INVALID_ARGUMENT, "the call ended without a request");
}

static struct tarn_status *serve_unary(struct tarn_op *op, struct tarn_rpc *rpc,
                                       const struct tarn_rpc__method *method,
                                       struct tarn_call *call)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    TARN_TRY(read_one(call, &message));
    struct tarn_slice bytes = tarn_message_bytes(message);
    bool large = bytes.size > TARN_RPC_LARGE_SIZE;
    struct tarn_message *response = NULL;
    struct tarn_status *s;
    if (large && atomic_fetch_add(&rpc->large_count, 1) >= TARN_RPC_LARGE_MAX)
        s = tarn_status_new(TARN_BUSY, "%d large requests are being carried out",
                            TARN_RPC_LARGE_MAX);
    else
        s = carry_out(op, rpc->service, method, bytes, &response);
    if (large)
        atomic_fetch_sub(&rpc->large_count, 1);
    TARN_TRY(s);
    return tarn_call_write(call, response);
}

/* --- unary, without a thread while it waits --- */

struct tarn_rpc__run { /* in the op's arena */
    struct tarn_rpc *rpc;
    struct tarn_call *call;
    bool large;
};

static void end_run(struct tarn_rpc__run *run, struct tarn_message *message,
                    struct tarn_status *consumed)
{
    if (run->large)
        atomic_fetch_sub(&run->rpc->large_count, 1);
    atomic_fetch_sub(&run->rpc->call_count, 1);
    tarn_call_answer(run->call, message, consumed); /* from here on it is gone */
}

void tarn_rpc__refuse(struct tarn_rpc__run *run, struct tarn_status *consumed)
{
    end_run(run, NULL, consumed);
}

void tarn_rpc__finish(struct tarn_rpc__run *run, const ProtobufCMessage *response)
{
    struct tarn_message *message = NULL;
    struct tarn_status *s = tarn_rpc__pack(response, TARN_WIRE_MESSAGE_MAX, &message);
    end_run(run, message, s);
}

/* An error: it never started. */
static struct tarn_status *serve_started(struct tarn_op *op, struct tarn_rpc *rpc,
                                         const struct tarn_rpc__method *method,
                                         struct tarn_call *call)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    TARN_TRY(read_one(call, &message));
    struct tarn_slice bytes = tarn_message_bytes(message);
    struct tarn_rpc__run *run = tarn_arena_calloc(op->arena, 1, sizeof *run);
    *run = (struct tarn_rpc__run){rpc, call, bytes.size > TARN_RPC_LARGE_SIZE};
    void *request;
    struct tarn_status *s = TARN_OK;
    if (run->large && atomic_fetch_add(&rpc->large_count, 1) >= TARN_RPC_LARGE_MAX)
        s = tarn_status_new(TARN_BUSY, "%d large requests are being carried out",
                            TARN_RPC_LARGE_MAX);
    else
        s = tarn_rpc__unpack(op, method->request, bytes, &request);
    if (s != TARN_OK) {
        if (run->large)
            atomic_fetch_sub(&rpc->large_count, 1);
        return s;
    }
    tarn_call_defer(call);
    method->start(op, rpc->service, request, run);
    return TARN_OK;
}

/* --- all --- */

struct tarn_service *tarn_rpc__service(struct tarn_rpc *rpc)
{
    return rpc->service;
}

static struct tarn_status *serve(void *self, struct tarn_op *op, struct tarn_call *call)
{
    const struct tarn_rpc__bound *bound = self;
    struct tarn_rpc *rpc = bound->rpc;
    struct tarn_status *s;
    if (atomic_fetch_add(&rpc->call_count, 1) >= rpc->call_max)
        s = tarn_status_new(TARN_BUSY, "%d calls are being carried out", rpc->call_max);
    else if (bound->method->start != NULL) {
        s = serve_started(op, rpc, bound->method, call);
        if (s == TARN_OK) /* counted until it is answered */
            return TARN_OK;
    } else if (bound->method->unary != NULL)
        s = serve_unary(op, rpc, bound->method, call);
    else
        s = bound->method->stream(op, rpc, call);
    atomic_fetch_sub(&rpc->call_count, 1);
    return s;
}

static void bind(struct tarn_rpc *rpc, const struct tarn_rpc__method *method)
{
    struct tarn_rpc__bound *bound = &rpc->bound[rpc->method_count];
    *bound = (struct tarn_rpc__bound){rpc, method};
    rpc->methods[rpc->method_count++] = (struct tarn_wire_method){
        .path = method->path, .fn = serve, .self = bound, .one_response = method->stream == NULL};
}

struct tarn_rpc *tarn_rpc_new(struct tarn_service *service, int call_max)
{
    struct tarn_rpc *rpc = tarn_calloc(1, sizeof *rpc);
    rpc->service = service;
    rpc->call_max = call_max;
    tarn_rpc__channels_init(&rpc->channels);
    size_t count = 0;
    for (size_t t = 0; t < TARN_COUNT_OF(tables); t++)
        for (size_t i = 0; tables[t][i].path != NULL; i++)
            count++;
    rpc->bound = tarn_calloc(count, sizeof *rpc->bound);
    rpc->methods = tarn_calloc(count, sizeof *rpc->methods);
    for (size_t t = 0; t < TARN_COUNT_OF(tables); t++)
        for (size_t i = 0; tables[t][i].path != NULL; i++)
            bind(rpc, &tables[t][i]);
    return rpc;
}

void tarn_rpc_free(struct tarn_rpc *rpc)
{
    if (rpc == NULL)
        return;
    tarn_rpc__channels_fini(&rpc->channels);
    free(rpc->bound);
    free(rpc->methods);
    free(rpc);
}

const struct tarn_wire_method *tarn_rpc_methods(const struct tarn_rpc *rpc, size_t *count)
{
    *count = rpc->method_count;
    return rpc->methods;
}
