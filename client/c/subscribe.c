#include "tarn/client.h"

#include "tarn/v1/catalog.pb-c.h"

/*
 * A subscription that outlives its connection: begun again with the token of the last message that was taken, or where
 * it began if there was none. "Latest" is therefore asked for once, and is a snapshot's id from then on.
 */

#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 2000
#define STOOD_MS 10000 /* a stream that lasted longer than any try to connect had a connection */

struct tarn_client_subscription {
    struct tarn_client *client;
    struct tarn_client_stream *stream;   /* NULL: to be opened */
    Tarn__V1__SubscribeRequest *request; /* owned */
    struct tarn_buf token;
    bool begun; /* the server was there and knew the table; where to begin is fixed */
    int64_t opened_ms, pause_ms;
    int reconnect_count;
    tarn_client_lost_fn lost;
    void *lost_arg;
};

/* A copy that owns all it points at. */
static Tarn__V1__SubscribeRequest *copy_request(const Tarn__V1__SubscribeRequest *request)
{
    size_t size = protobuf_c_message_get_packed_size(&request->base);
    TARN_OWN(tarn_free_drop) uint8_t *bytes = tarn_alloc(size + 1);
    protobuf_c_message_pack(&request->base, bytes);
    ProtobufCMessage *copy =
        protobuf_c_message_unpack(&tarn__v1__subscribe_request__descriptor, NULL, size, bytes);
    tarn_assert(copy != NULL);
    return (Tarn__V1__SubscribeRequest *)copy;
}

void tarn_client_subscribe(struct tarn_client *client, const Tarn__V1__SubscribeRequest *request,
                           struct tarn_client_subscription **out)
{
    struct tarn_client_subscription *s = tarn_calloc(1, sizeof *s);
    s->client = client;
    s->request = copy_request(request);
    *out = s;
}

void tarn_client_subscription_on_loss(struct tarn_client_subscription *s, tarn_client_lost_fn fn,
                                      void *arg)
{
    s->lost = fn;
    s->lost_arg = arg;
}

static struct tarn_status *begin(struct tarn_client_subscription *s, struct tarn_op *op)
{
    Tarn__V1__GetTableRequest request = TARN__V1__GET_TABLE_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    request.table = s->request->table;
    TARN_TRY(tarn_client_call(s->client, op, "CatalogService/GetTable", &request.base,
                              &tarn__v1__table__descriptor, &answer));
    if (s->request->from_case == TARN__V1__SUBSCRIBE_REQUEST__FROM__NOT_SET) {
        s->request->from_case = TARN__V1__SUBSCRIBE_REQUEST__FROM_SNAPSHOT_ID;
        s->request->snapshot_id = ((Tarn__V1__Table *)answer)->snapshot_id + 1;
    }
    protobuf_c_message_free_unpacked(answer, NULL);
    s->begun = true;
    return TARN_OK;
}

/* Would it begin where the first one did? Where a consumer has no position that is the latest of then, unless the
 * server keeps the position. */
static bool can_begin_again(const struct tarn_client_subscription *s)
{
    return s->token.size > 0 ||
           (s->begun && (s->request->from_case != TARN__V1__SUBSCRIBE_REQUEST__FROM_CONSUMER ||
                         s->request->keep_consumer[0] != '\0'));
}

static struct tarn_status *open_stream(struct tarn_client_subscription *s, struct tarn_op *op)
{
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    if (!s->begun)
        TARN_TRY(begin(s, op));
    Tarn__V1__SubscribeRequest request = *s->request; /* borrows */
    if (s->token.size > 0) {
        request.from_case = TARN__V1__SUBSCRIBE_REQUEST__FROM_RESUME_TOKEN;
        request.resume_token = (ProtobufCBinaryData){s->token.size, s->token.data};
    }
    s->opened_ms = tarn_clock_mono_ms();
    TARN_TRY(tarn_client_stream_open(s->client, op, "TableService/Subscribe", &stream));
    TARN_TRY(tarn_client_stream_send(stream, &request.base));
    TARN_TRY(tarn_client_stream_done(stream));
    s->stream = tarn_move(stream);
    return TARN_OK;
}

/* Is it worth another connection? Not where the server says that it can't go on. */
static bool passes(const struct tarn_status *status)
{
    switch (tarn_status_reason(status)) {
    case TARN_UNAVAILABLE:
    case TARN_SHUTTING_DOWN:
    case TARN_CANCELLED: /* not by us: the caller looks */
    case TARN_STORE_UNAVAILABLE:
    case TARN_SUBSCRIBER_SLOW:
    case TARN_BUSY:
        return true;
    default:
        return false;
    }
}

/* It is told of an outage once: pause_ms is 0 until the first pause of one. */
static void tell_loss(struct tarn_client_subscription *s, const struct tarn_status *why)
{
    if (tarn_clock_mono_ms() - s->opened_ms > STOOD_MS)
        s->pause_ms = 0;
    if (s->pause_ms == 0 && s->lost != NULL)
        s->lost(s->lost_arg, why);
    s->reconnect_count++;
}

static struct tarn_status *pause_before_retry(struct tarn_client_subscription *s,
                                              struct tarn_op *op)
{
    s->pause_ms =
        s->pause_ms == 0 ? PAUSE_MIN_MS : TARN_MIN(s->pause_ms * 2, (int64_t)PAUSE_MAX_MS);
    int64_t until = tarn_clock_mono_ms() + s->pause_ms;
    for (int64_t left = s->pause_ms; left > 0; left = until - tarn_clock_mono_ms()) {
        TARN_TRY(tarn_op_check(op));
        tarn_client_pause(s->client, TARN_MIN(left, (int64_t)50));
    }
    return tarn_op_check(op);
}

static struct tarn_status *receive(struct tarn_client_subscription *s, struct tarn_op *op,
                                   Tarn__V1__SubscribeResponse **out)
{
    ProtobufCMessage *message = NULL;
    if (s->stream == NULL)
        TARN_TRY(open_stream(s, op));
    TARN_TRY(
        tarn_client_stream_receive(s->stream, &tarn__v1__subscribe_response__descriptor, &message));
    if (message == NULL) /* no server of ours ends it without a reason */
        return tarn_status_new(TARN_UNAVAILABLE, "the subscription ended");
    *out = (Tarn__V1__SubscribeResponse *)message;
    return TARN_OK;
}

struct tarn_status *tarn_client_subscription_next(struct tarn_client_subscription *s,
                                                  struct tarn_op *op,
                                                  Tarn__V1__SubscribeResponse **out)
{
    for (;;) {
        struct tarn_status *status = receive(s, op, out);
        if (status == TARN_OK)
            break;
        tarn_client_stream_drop(&s->stream);
        if (!passes(status) || tarn_op_is_cancelled(op) || !can_begin_again(s))
            return status;
        tell_loss(s, status);
        tarn_status_free(status);
        TARN_TRY(pause_before_retry(s, op));
    }
    s->pause_ms = 0;
    tarn_buf_clear(&s->token);
    tarn_buf_add(&s->token, (*out)->resume_token.data, (*out)->resume_token.len);
    return TARN_OK;
}

struct tarn_slice tarn_client_subscription_token(const struct tarn_client_subscription *s)
{
    return tarn_buf_slice(&s->token);
}

int tarn_client_subscription_reconnects(const struct tarn_client_subscription *s)
{
    return s->reconnect_count;
}

void tarn_client_subscription_free(struct tarn_client_subscription *s)
{
    if (s == NULL)
        return;
    tarn_client_stream_drop(&s->stream);
    tarn__v1__subscribe_request__free_unpacked(s->request, NULL);
    tarn_buf_drop(&s->token);
    free(s);
}

void tarn_client_subscription_drop(struct tarn_client_subscription **s)
{
    tarn_client_subscription_free(*s);
    *s = NULL;
}
