#include "rpc/table.h"

/* Plans, streamed: a message holds the splits of one batch. */

#define MESSAGE_SIZE                                                                               \
    ((size_t)64                                                                                    \
     << 10) /* a message is sent when it is larger: such a one stays in a processor's cache */
#define SPLITS_FIELD 1 /* of PlanResponse */
#define SUMMARY_FIELD 2

static struct tarn_status *take_request(const Tarn__V1__PlanRequest *q,
                                        struct tarn_plan_request *out)
{
    *out = (struct tarn_plan_request){.where = tarn_slice_str(q->where),
                                      .with_stats = q->with_stats && !q->summary_only,
                                      .as_bytes = true};
    TARN_TRY(tarn_rpc__version(q->version, &out->version));
    if (q->pin_ms < 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "pin_ms is negative");
    if (q->_limit_case == TARN__V1__PLAN_REQUEST___LIMIT_LIMIT) {
        if (q->limit < 0)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "limit is negative");
        out->has_limit = true;
        out->limit = q->limit;
    }
    if (q->changes == NULL)
        return TARN_OK;
    int how;
    TARN_TRY(tarn_rpc__how((int)q->changes->how, &how));
    out->changes = (enum tarn_changes)how;
    out->changes_from = q->changes->from_snapshot;
    return TARN_OK;
}

static Tarn__V1__PlanSummary *put_summary(struct tarn_op *op, const struct tarn_plan_stream *stream)
{
    const struct tarn_plan *plan = tarn_plan_stream_head(stream);
    const struct tarn_pin *pin = tarn_plan_stream_pin(stream);
    Tarn__V1__PlanSummary *out = TARN_RPC_NEW(op, Tarn__V1__PlanSummary, plan_summary);
    out->snapshot_id = plan->has_snapshot ? plan->snapshot.id : 0;
    out->schema_id = plan->schema->id;
    out->files_seen = plan->files_seen;
    out->pruned_by_partition = plan->pruned_by_partition;
    out->pruned_by_bucket = plan->pruned_by_bucket;
    out->pruned_by_key = plan->pruned_by_key;
    out->pruned_by_stats = plan->pruned_by_stats;
    out->pruned_by_index = plan->pruned_by_index;
    out->pruned_by_limit = plan->pruned_by_limit;
    out->splits = plan->splits_left;
    out->files_left = plan->files_left;
    out->rows = plan->rows;
    out->micros = tarn_plan_stream_micros(stream);
    if (plan->has_snapshot)
        out->snapshot_proof = tarn_rpc__text(op, tarn_snapshot_proof(&plan->snapshot));
    if (pin != NULL) {
        out->pin = TARN_RPC_NEW(op, Tarn__V1__Pin, pin);
        out->pin->id = tarn_rpc__str(pin->id);
        out->pin->expires_ms = pin->expires_ms;
    }
    return out;
}

struct writing {
    struct tarn_call *call;
    struct tarn_buf message;
    struct tarn_buf head; /* of the splits of one bucket */
    struct tarn_slice partition;
    int32_t bucket;
};

static void writing_fini(struct writing *w)
{
    tarn_buf_drop(&w->message);
    tarn_buf_drop(&w->head);
}

static struct tarn_status *send(struct writing *w)
{
    if (w->message.size > TARN_WIRE_MESSAGE_MAX)
        return tarn_status_new(TARN_TOO_LARGE,
                               "a split of %zu bytes, at most %d: compact the table",
                               w->message.size, TARN_WIRE_MESSAGE_MAX);
    return tarn_call_write(w->call, tarn_message_take(&w->message));
}

/* The splits of a bucket come one after the other. */
static struct tarn_status *begin_bucket(struct writing *w, struct tarn_plan_stream *stream,
                                        const struct tarn_split *split)
{
    struct tarn_slice path;
    TARN_TRY(tarn_plan_stream_path(stream, split->partition, split->bucket, &path));
    tarn_rpc__split_head(split, path, tarn_plan_stream_head(stream)->snapshot.id, &w->head);
    w->partition = split->partition;
    w->bucket = split->bucket;
    return TARN_OK;
}

static struct tarn_status *write_batch(struct writing *w, struct tarn_plan_stream *stream,
                                       const struct tarn_plan_batch *batch)
{
    const struct tarn_plan_bytes *files = batch->bytes;
    for (size_t i = 0; i < batch->split_count; i++) {
        const struct tarn_split *split = &batch->splits[i];
        if (i == 0 || split->bucket != w->bucket || split->partition.data != w->partition.data)
            TARN_TRY(begin_bucket(w, stream, split));
        tarn_rpc__add_split(&w->message, SPLITS_FIELD, tarn_buf_slice(&w->head), split, files);
        files += split->file_count + split->before_count;
        if (w->message.size >= MESSAGE_SIZE)
            TARN_TRY(send(w));
    }
    return TARN_OK;
}

/* The last message has the summary. */
static struct tarn_status *write_summary(struct tarn_op *op, struct writing *w,
                                         struct tarn_plan_stream *stream)
{
    Tarn__V1__PlanSummary *summary = put_summary(op, stream);
    size_t size = protobuf_c_message_get_packed_size(&summary->base);
    uint8_t *bytes = tarn_arena_alloc(op->arena, size + 1);
    protobuf_c_message_pack(&summary->base, bytes);
    tarn_rpc__add_bytes_field(&w->message, SUMMARY_FIELD, tarn_slice_of(bytes, size));
    return send(w);
}

static struct tarn_status *plan(struct tarn_op *op, struct tarn_service *service,
                                struct tarn_call *call, const Tarn__V1__PlanRequest *q)
{
    TARN_OWN(tarn_plan_stream_drop) struct tarn_plan_stream *stream = NULL;
    TARN_OWN(writing_fini) struct writing w = {.call = call};
    struct tarn_plan_request request;
    struct tarn_plan_batch batch;
    TARN_TRY(take_request(q, &request));
    TARN_TRY(tarn_service_plan_begin(op, service, tarn_rpc__ref(q->table), &request, q->pin_ms,
                                     &stream));
    do {
        TARN_TRY(tarn_plan_stream_next(stream, &batch));
        if (!q->summary_only)
            TARN_TRY(write_batch(&w, stream, &batch));
    } while (batch.file_count > 0);
    return write_summary(op, &w, stream);
}

struct tarn_status *tarn_rpc__plan(struct tarn_op *op, struct tarn_rpc *rpc, struct tarn_call *call)
{
    void *request;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__plan_request__descriptor, &request));
    return plan(op, tarn_rpc__service(rpc), call, request);
}

struct tarn_status *tarn_rpc__renew_pin(struct tarn_op *op, struct tarn_service *service,
                                        const void *request, void *response)
{
    const Tarn__V1__RenewPinRequest *q = request;
    Tarn__V1__RenewPinResponse *r = response;
    struct tarn_pin pin;
    TARN_TRY(tarn_service_renew_pin(op, service, tarn_rpc__ref(q->table), tarn_slice_str(q->pin_id),
                                    q->keep_ms, &pin));
    r->expires_ms = pin.expires_ms;
    return TARN_OK;
}
