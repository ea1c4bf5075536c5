#include "rpc/table.h"

#include "service/subscribe.h"

/*
 * TableService.Subscribe and the consumers.
 *
 * A subscription hands its call over (wire.h) and holds no thread. Its events are encoded once and shared by all
 * streams that ask for the same.
 */

/* --- the door of service/subscribe.h: a stream is a call --- */

struct stream {
    struct tarn_call *call;
    struct tarn_subscriber *subscriber;
};

static Tarn__V1__DataFile **put_files(struct tarn_op *op, const struct tarn_plan_file *files,
                                      size_t count)
{
    Tarn__V1__DataFile **out = TARN_RPC_ARRAY(op, count, *out);
    for (size_t i = 0; i < count; i++)
        out[i] = tarn_rpc__put_file(op, &files[i].entry.file);
    return out;
}

static Tarn__V1__Split *put_split(struct tarn_op *op, const struct tarn_subscribe_event *event,
                                  size_t i)
{
    const struct tarn_split *split = &event->splits[i];
    Tarn__V1__Split *out = TARN_RPC_NEW(op, Tarn__V1__Split, split);
    out->partition = tarn_rpc__bytes(split->partition);
    out->bucket = split->bucket;
    out->total_buckets = split->total_buckets;
    out->raw = split->raw;
    out->is_changelog = split->is_changelog;
    out->path = tarn_rpc__str(event->paths[i]);
    out->n_files = split->file_count;
    out->files = put_files(op, split->files, split->file_count);
    out->differs = event->differs;
    out->n_before_files = split->before_count;
    out->before_files = put_files(op, split->before_files, split->before_count);
    out->snapshot_id = event->snapshot->id;
    return out;
}

static struct tarn_status *encode_event(struct tarn_op *op,
                                        const struct tarn_subscribe_event *event, void **encoded,
                                        size_t *size)
{
    Tarn__V1__SubscribeResponse *r =
        TARN_RPC_NEW(op, Tarn__V1__SubscribeResponse, subscribe_response);
    struct tarn_message *message;
    r->snapshot = tarn_rpc__put_snapshot(op, event->snapshot);
    r->splits = TARN_RPC_ARRAY(op, event->split_count, *r->splits);
    r->n_splits = event->split_count;
    for (size_t i = 0; i < event->split_count; i++)
        r->splits[i] = put_split(op, event, i);
    r->last_of_snapshot = event->last;
    r->whole = event->whole;
    r->resume_token = tarn_rpc__bytes(event->token);
    TARN_TRY(tarn_rpc__pack(&r->base, TARN_WIRE_MESSAGE_MAX, &message));
    *size = tarn_message_size(message);
    *encoded = message;
    return TARN_OK;
}

static void free_encoded(void *encoded)
{
    tarn_message_free(encoded);
}

static void write_event(void *stream, const void *encoded)
{
    struct stream *s = stream;
    /* False: the call is over, and `ended` follows. */
    (void)tarn_call_write_async(s->call, tarn_message_share(encoded));
}

static void end_stream(void *stream, struct tarn_status *consumed, bool stuck)
{
    struct stream *s = stream;
    if (stuck)
        tarn_call_abort(s->call, consumed);
    else
        tarn_call_end(s->call, consumed);
}

static void release_stream(void *stream)
{
    struct stream *s = stream;
    tarn_call_release(s->call);
    free(s);
}

static const struct tarn_subscribe_door door = {
    .encode = encode_event,
    .free_encoded = free_encoded,
    .write = write_event,
    .end = end_stream,
    .release = release_stream,
};

static void on_written(void *arg)
{
    struct stream *s = arg;
    tarn_subscriber_written(s->subscriber);
}

static void on_ended(void *arg)
{
    struct stream *s = arg;
    tarn_subscriber_ended(s->subscriber);
}

static const struct tarn_call_events events = {on_written, on_ended};

/* --- the method --- */

static struct tarn_status *take_request(const Tarn__V1__SubscribeRequest *q,
                                        struct tarn_subscribe_request *out)
{
    *out = (struct tarn_subscribe_request){
        .table = tarn_rpc__ref(q->table),
        .changes = q->what == TARN__V1__SUBSCRIBE_REQUEST__WHAT__CHANGES,
        .keep_consumer = tarn_slice_str(q->keep_consumer),
        .where = tarn_slice_str(q->where),
        .full_first = q->full_first != 0,
    };
    if (!out->changes && q->what != TARN__V1__SUBSCRIBE_REQUEST__WHAT__SNAPSHOTS)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "there is no what %d", (int)q->what);
    TARN_TRY(tarn_rpc__how(q->how, &out->how));
    switch (q->from_case) {
    case TARN__V1__SUBSCRIBE_REQUEST__FROM_EARLIEST:
        out->from = q->earliest ? TARN_FROM_EARLIEST : TARN_FROM_LATEST;
        return TARN_OK;
    case TARN__V1__SUBSCRIBE_REQUEST__FROM_SNAPSHOT_ID:
        out->from = TARN_FROM_SNAPSHOT;
        out->snapshot_id = q->snapshot_id;
        if (out->snapshot_id < 1)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "snapshot_id is %" PRId64,
                                   out->snapshot_id);
        return TARN_OK;
    case TARN__V1__SUBSCRIBE_REQUEST__FROM_TIME_MS:
        out->from = TARN_FROM_TIME;
        out->time_ms = q->time_ms;
        return TARN_OK;
    case TARN__V1__SUBSCRIBE_REQUEST__FROM_RESUME_TOKEN:
        out->from = TARN_FROM_TOKEN;
        out->token = tarn_rpc__slice(q->resume_token);
        return TARN_OK;
    case TARN__V1__SUBSCRIBE_REQUEST__FROM_CONSUMER:
        out->from = TARN_FROM_CONSUMER;
        out->consumer = tarn_slice_str(q->consumer);
        return TARN_OK;
    default:
        out->from = TARN_FROM_LATEST;
        return TARN_OK;
    }
}

struct tarn_status *tarn_rpc__how(int how, int *out)
{
    static const enum tarn_changes hows[] = {TARN_CHANGES_AUTO, TARN_CHANGES_DELTA,
                                             TARN_CHANGES_CHANGELOG, TARN_CHANGES_DIFF};
    if (how < 0 || (size_t)how >= TARN_COUNT_OF(hows))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "there is no way %d to say what changed",
                               how);
    *out = hows[how];
    return TARN_OK;
}

struct tarn_status *tarn_rpc__subscribe(struct tarn_op *op, struct tarn_rpc *rpc,
                                        struct tarn_call *call)
{
    struct tarn_subscribe_request request;
    struct tarn_subscriber *subscriber;
    void *read;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__subscribe_request__descriptor, &read));
    TARN_TRY(take_request(read, &request));
    struct stream *s = tarn_calloc(1, sizeof *s);
    s->call = call;
    struct tarn_status *status =
        tarn_service_subscribe(op, tarn_rpc__service(rpc), &request, &door, s, &s->subscriber);
    if (status != TARN_OK) {
        free(s);
        return status;
    }
    subscriber = s->subscriber;
    tarn_call_detach(call, &events, s); /* from here on it may be gone at any time */
    tarn_subscriber_start(subscriber);
    return TARN_OK;
}

/* --- consumers --- */

static Tarn__V1__Consumer *put_consumer(struct tarn_op *op, const struct tarn_consumer *consumer)
{
    Tarn__V1__Consumer *out = TARN_RPC_NEW(op, Tarn__V1__Consumer, consumer);
    out->id = tarn_rpc__text(op, consumer->id);
    out->next_snapshot = consumer->next_snapshot;
    out->time_ms = consumer->time_ms;
    return out;
}

struct tarn_status *tarn_rpc__list_consumers(struct tarn_op *op, struct tarn_service *service,
                                             const void *request, void *response)
{
    const Tarn__V1__ListConsumersRequest *q = request;
    Tarn__V1__ListConsumersResponse *r = response;
    struct tarn_consumer *list;
    size_t count;
    TARN_TRY(tarn_service_list_consumers(op, service, tarn_rpc__ref(q->table), &list, &count));
    r->consumers = TARN_RPC_ARRAY(op, count, *r->consumers);
    r->n_consumers = count;
    for (size_t i = 0; i < count; i++)
        r->consumers[i] = put_consumer(op, &list[i]);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__set_consumer(struct tarn_op *op, struct tarn_service *service,
                                           const void *request, void *response)
{
    const Tarn__V1__SetConsumerRequest *q = request;
    Tarn__V1__SetConsumerResponse *r = response;
    struct tarn_consumer consumer;
    TARN_TRY(tarn_service_set_consumer(op, service, tarn_rpc__ref(q->table), tarn_slice_str(q->id),
                                       q->next_snapshot, &consumer));
    r->consumer = put_consumer(op, &consumer);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__drop_consumer(struct tarn_op *op, struct tarn_service *service,
                                            const void *request, void *response TARN_UNUSED)
{
    const Tarn__V1__DropConsumerRequest *q = request;
    return tarn_service_drop_consumer(op, service, tarn_rpc__ref(q->table), tarn_slice_str(q->id));
}
