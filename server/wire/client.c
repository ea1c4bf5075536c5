/*
 * The client: channels and calls. Each call has a queue of its own that its callers poll themselves
 * (as gRPC's synchronous interfaces do), so an answer costs no hop from thread to thread.
 */
#include "internal.h"

#include <ctype.h>

#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

struct tarn_channel {
    grpc_channel *handle;
    char *address;
    char *authorization; /* "Bearer ...", NULL: none */
    int64_t message_max;
};

/* One side of a call: at most one batch in flight. Its address is the batch's tag. */
struct side {
    bool running;
};

struct tarn_client_call {
    struct tarn_channel *channel; /* borrowed */
    struct tarn_op *op;           /* borrowed */
    grpc_call *handle;
    grpc_completion_queue *queue;
    struct side start, write, read, end; /* write, read: their threads'; start, end: see lock */

    grpc_metadata_array head;
    struct tarn_message *writing; /* owned, in flight */
    bool write_failed, writes_done;
    grpc_byte_buffer *incoming;

    pthread_mutex_t lock; /* guards `end` and what it brings, as both threads may ask */
    bool ended;
    grpc_metadata_array trailing;
    grpc_status_code code;
    grpc_slice text;
    struct tarn_status *outcome; /* owned, once ended */
};

/* --- channels --- */

static grpc_arg int_arg(const char *key, int64_t value)
{
    grpc_arg arg = {.type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)key};
    arg.value.integer = (int)TARN_MIN(value, (int64_t)INT32_MAX);
    return arg;
}

static grpc_channel *make_handle(const char *address, grpc_channel_credentials *credentials,
                                 int64_t message_max)
{
    grpc_arg args[] = {
        int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, message_max),
        int_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, message_max),
        int_arg(GRPC_ARG_MAX_METADATA_SIZE, TARN_WIRE_METADATA_MAX),
        /* A daemon that is started again is found again soon. */
        int_arg(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200),
        int_arg(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000),
        int_arg(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000),
        /* A peer whose machine is gone is noticed by long calls; above what the server allows. */
        int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, 3 * TARN_WIRE_PING_MIN_MS),
        int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000),
        int_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
        /* Whether to try again is the caller's to know; a proxy was never asked for. */
        int_arg("grpc.enable_retries", 0),
        int_arg("grpc.enable_http_proxy", 0),
        int_arg(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1),
        int_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
        int_arg(GRPC_ARG_ENABLE_CHANNELZ, 0),
    };
    grpc_channel_args all = {TARN_COUNT_OF(args), args};
    return grpc_channel_create(address, credentials, &all);
}

static struct tarn_status *make_credentials(const struct tarn_channel_options *options,
                                            grpc_channel_credentials **out)
{
    TARN_OWN(tarn_free_drop) char *ca = NULL;
    TARN_OWN(tarn_free_drop) char *cert = NULL;
    TARN_OWN(tarn_free_drop) char *key = NULL;
    grpc_ssl_pem_key_cert_pair pair;

    if (options->ca_file == NULL) {
        *out = grpc_insecure_credentials_create();
        return TARN_OK;
    }
    TARN_TRY(tarn_wire__read_pem(options->ca_file, &ca));
    if ((options->cert_file == NULL) != (options->key_file == NULL))
        return tarn_status_new(TARN_CONFIG_INVALID, "certificate and key go together");
    if (options->cert_file != NULL) {
        TARN_TRY(tarn_wire__read_pem(options->cert_file, &cert));
        TARN_TRY(tarn_wire__read_pem(options->key_file, &key));
    }
    pair = (grpc_ssl_pem_key_cert_pair){.private_key = key, .cert_chain = cert};
    *out = grpc_ssl_credentials_create_ex(ca, cert != NULL ? &pair : NULL, NULL, NULL);
    if (*out == NULL)
        return tarn_status_new(TARN_CONFIG_INVALID, "%s: cannot be used for TLS", options->ca_file);
    return TARN_OK;
}

static bool is_address(const char *address)
{
    const char *colon = address == NULL ? NULL : strrchr(address, ':');
    int64_t port = 0;
    if (colon == NULL || colon == address || strlen(address) > 300 || strchr(address, '/') != NULL)
        return false;
    struct tarn_status *status = tarn_parse_i64(tarn_slice_str(colon + 1), &port);
    bool good = status == NULL && port > 0 && port < 65536;
    tarn_status_free(status);
    return good;
}

static bool is_header_value(const char *text)
{
    grpc_slice slice = grpc_slice_from_static_string(text);
    return grpc_header_nonbin_value_is_legal(slice) != 0;
}

struct tarn_status *tarn_channel_open(const struct tarn_channel_options *options,
                                      struct tarn_channel **out)
{
    grpc_channel_credentials *credentials = NULL;

    tarn_wire_init();
    if (!is_address(options->address))
        return tarn_status_new(TARN_CONFIG_INVALID, "server address \"%.300s\": expected HOST:PORT",
                               options->address == NULL ? "" : options->address);
    if (options->token != NULL && !is_header_value(options->token))
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "the token has characters that no token has (a line break?)");
    TARN_TRY(make_credentials(options, &credentials));
    struct tarn_channel *channel = tarn_calloc(1, sizeof *channel);
    channel->address = tarn_strdup(options->address);
    channel->message_max =
        options->message_max_bytes > 0 ? options->message_max_bytes : TARN_WIRE_MESSAGE_MAX;
    if (options->token != NULL)
        channel->authorization = tarn_format("Bearer %s", options->token);
    channel->handle = make_handle(options->address, credentials, channel->message_max);
    grpc_channel_credentials_release(credentials);
    *out = channel;
    return TARN_OK;
}

void tarn_channel_pause(struct tarn_channel *channel, int64_t ms)
{
    gpr_timespec until =
        gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_millis(ms, GPR_TIMESPAN));
    grpc_connectivity_state state = grpc_channel_check_connectivity_state(channel->handle, 1);
    if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_SHUTDOWN) {
        gpr_sleep_until(until);
        return;
    }
    grpc_completion_queue *queue = grpc_completion_queue_create_for_next(NULL);
    bool in_time = true;
    while (in_time && state != GRPC_CHANNEL_READY) {
        grpc_channel_watch_connectivity_state(channel->handle, state, until, queue, NULL);
        grpc_event event =
            grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        in_time = event.success != 0;
        state = grpc_channel_check_connectivity_state(channel->handle, 1);
    }
    grpc_completion_queue_shutdown(queue);
    grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    grpc_completion_queue_destroy(queue);
}

void tarn_channel_close(struct tarn_channel *channel)
{
    if (channel == NULL)
        return;
    grpc_channel_destroy(channel->handle);
    free(channel->address);
    free(channel->authorization);
    free(channel);
}

void tarn_channel_drop(struct tarn_channel **channel)
{
    tarn_channel_close(*channel);
    *channel = NULL;
}

/* --- outcomes --- */

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* Past gRPC's "UNAVAILABLE: " and "ipv4:127.0.0.1:7420: ". */
static const char *skip_wrapping(const char *text)
{
    size_t word = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    if (word > 2 && strncmp(text + word, ": ", 2) == 0)
        text += word + 2;
    if (strncmp(text, "ipv4:", 5) == 0 || strncmp(text, "ipv6:", 5) == 0) {
        const char *end = strstr(text, ": ");
        if (end != NULL)
            text = end + 2;
    }
    return text;
}

/* "connection refused" out of gRPC's chain of wrappings; owned. */
static char *plain_cause(const char *text)
{
    static const char *const before[] = {"Failed to connect to remote host: ", "last error: "};
    const char *from = text;
    char *out;

    if (has(text, "DNS resolution failed"))
        return tarn_strdup("the name cannot be resolved");
    for (size_t i = 0; i < TARN_COUNT_OF(before); i++) {
        const char *found = strstr(text, before[i]);
        if (found != NULL) {
            from = found + strlen(before[i]);
            break;
        }
    }
    out = tarn_strdup(skip_wrapping(from));
    if (isupper((unsigned char)out[0]) && !isupper((unsigned char)out[1]))
        out[0] = (char)tolower((unsigned char)out[0]);
    return out;
}

static struct tarn_status *explain_unavailable(const struct tarn_channel *channel, const char *text)
{
    TARN_OWN(tarn_free_drop) char *cause = plain_cause(text);
    bool never = has(text, "failed to connect") || has(text, "Failed to connect") ||
                 has(text, "DNS resolution") || has(text, "last error");
    /* Something listens, but does not speak as we do. */
    bool stranger = has(text, "Socket closed") || has(text, "reset by peer") ||
                    has(text, "SETTINGS") || has(text, "http1") || has(text, "andshake");

    if (never)
        return tarn_status_new(TARN_UNAVAILABLE, "cannot reach %s: %s%s", channel->address, cause,
                               stranger ? " (is it the gRPC port, and do both sides use TLS?)"
                                        : "");
    return tarn_status_new(TARN_UNAVAILABLE, "lost the connection to %s: %s", channel->address,
                           cause);
}

static struct tarn_slice slice_of(const grpc_slice *slice)
{
    return tarn_slice_of(GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice));
}

static struct tarn_slice find_value(const grpc_metadata_array *pairs, const char *key)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (tarn_slice_is(slice_of(&pairs->metadata[i].key), key))
            return slice_of(&pairs->metadata[i].value);
    return (struct tarn_slice){NULL, 0};
}

static struct tarn_status *make_outcome(const struct tarn_channel *channel,
                                        const struct tarn_op *op, grpc_status_code code,
                                        const grpc_slice *text, const grpc_metadata_array *trailing)
{
    struct tarn_slice details = find_value(trailing, "grpc-status-details-bin");

    if (code == GRPC_STATUS_OK)
        return TARN_OK;
    if (details.data != NULL)
        return tarn_wire__status_restore((int)code, slice_of(text), details);
    if (code == GRPC_STATUS_DEADLINE_EXCEEDED)
        return tarn_status_new(TARN_DEADLINE_EXCEEDED, "no answer from %s in time",
                               channel->address);
    if (code == GRPC_STATUS_CANCELLED && tarn_op_is_cancelled(op))
        return tarn_status_new(TARN_CANCELLED, "cancelled");
    if (code == GRPC_STATUS_UNAVAILABLE) {
        TARN_OWN(tarn_free_drop) char *plain = tarn_slice_dup(slice_of(text));
        return explain_unavailable(channel, plain);
    }
    return tarn_wire__status_restore((int)code, slice_of(text), details);
}

/* How old the answer is, where the server couldn't ask its store. */
static void take_stale(struct tarn_op *op, const grpc_metadata_array *trailing)
{
    int64_t stale_ms;
    struct tarn_slice text = find_value(trailing, TARN_WIRE_STALE);
    if (text.data == NULL)
        return;
    struct tarn_status *s = tarn_parse_i64(text, &stale_ms);
    if (s == TARN_OK && stale_ms > 0)
        op->stale_ms = stale_ms;
    tarn_status_free(s);
}

/* --- calls --- */

static gpr_timespec deadline_of(const struct tarn_op *op)
{
    if (op->deadline_mono_ms == INT64_MAX)
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    int64_t left = TARN_MAX(op->deadline_mono_ms - tarn_clock_mono_ms(), (int64_t)0);
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(left, GPR_TIMESPAN));
}

static grpc_call *make_call(struct tarn_channel *channel, struct tarn_op *op, const char *path,
                            grpc_completion_queue *queue)
{
    grpc_slice method = grpc_slice_from_copied_string(path);
    grpc_call *call = grpc_channel_create_call(channel->handle, NULL, GRPC_PROPAGATE_DEFAULTS,
                                               queue, method, NULL, deadline_of(op), NULL);
    grpc_slice_unref(method);
    return call;
}

/* Borrows from op and channel: the pairs are for the batch that is started now. */
static size_t make_head(const struct tarn_channel *channel, const struct tarn_op *op,
                        grpc_metadata pairs[2])
{
    size_t count = 0;
    if (op->request_id[0] != '\0' && is_header_value(op->request_id))
        pairs[count++] = (grpc_metadata){.key = grpc_slice_from_static_string("x-request-id"),
                                         .value = grpc_slice_from_copied_string(op->request_id)};
    if (channel->authorization != NULL)
        pairs[count++] =
            (grpc_metadata){.key = grpc_slice_from_static_string("authorization"),
                            .value = grpc_slice_from_copied_string(channel->authorization)};
    return count;
}

static void free_head(grpc_metadata *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        grpc_slice_unref(pairs[i].value);
}

#define EXPLAIN_WRITE_MS 1000

/* Waits for the batch of `tag`, cancelling the call when the op is cancelled (time is gRPC's). */
static bool wait_batch(grpc_call *call, grpc_completion_queue *queue, void *tag,
                       const struct tarn_op *op)
{
    bool cancelled = op == NULL;
    int64_t poll_ms = TARN_WIRE_POLL_MIN_MS;
    grpc_event event;

    tarn_exec_wait_begin();
    for (;;) {
        gpr_timespec until = gpr_inf_future(GPR_CLOCK_MONOTONIC);
        if (!cancelled && tarn_op_is_cancelled(op)) {
            grpc_call_cancel(call, NULL);
            cancelled = true;
        }
        if (!cancelled)
            until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                 gpr_time_from_millis(poll_ms, GPR_TIMESPAN));
        event = grpc_completion_queue_pluck(queue, tag, until, NULL);
        if (event.type != GRPC_QUEUE_TIMEOUT)
            break;
        poll_ms = TARN_MIN(poll_ms * 2, (int64_t)TARN_WIRE_POLL_MAX_MS);
    }
    tarn_exec_wait_end();
    tarn_assert(event.type == GRPC_OP_COMPLETE);
    tarn_wire__take(tag);
    return event.success != 0;
}

static void close_queue(grpc_completion_queue *queue)
{
    grpc_completion_queue_shutdown(queue);
    while (
        grpc_completion_queue_pluck(queue, NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
        GRPC_QUEUE_SHUTDOWN)
        ;
    grpc_completion_queue_destroy(queue);
}

static struct tarn_status *check_size(const struct tarn_channel *channel,
                                      const struct tarn_message *message)
{
    size_t size = tarn_wire__message_size(message);
    if (size > (size_t)channel->message_max)
        return tarn_status_new(TARN_TOO_LARGE, "a message of %zu bytes; at most %" PRId64, size,
                               channel->message_max);
    return TARN_OK;
}

struct tarn_status *tarn_channel_unary(struct tarn_channel *channel, struct tarn_op *op,
                                       const char *path, struct tarn_message *consumed,
                                       struct tarn_message **response)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = consumed;
    grpc_metadata_array head, trailing;
    grpc_metadata pairs[2];
    grpc_status_code code = GRPC_STATUS_UNKNOWN;
    grpc_slice text = grpc_empty_slice();
    grpc_byte_buffer *incoming = NULL;
    grpc_op ops[6] = {{0}};

    tarn_assert_may_wait();
    TARN_TRY(tarn_op_check(op));
    TARN_TRY(check_size(channel, message));
    grpc_completion_queue *queue = grpc_completion_queue_create_for_pluck(NULL);
    grpc_call *call = make_call(channel, op, path, queue);
    grpc_metadata_array_init(&head);
    grpc_metadata_array_init(&trailing);
    size_t pair_count = make_head(channel, op, pairs);
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[0].data.send_initial_metadata.count = pair_count;
    ops[0].data.send_initial_metadata.metadata = pairs;
    ops[1].op = GRPC_OP_SEND_MESSAGE;
    ops[1].data.send_message.send_message = tarn_wire__message_buffer(message);
    ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &head;
    ops[4].op = GRPC_OP_RECV_MESSAGE;
    ops[4].data.recv_message.recv_message = &incoming;
    ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[5].data.recv_status_on_client.status = &code;
    ops[5].data.recv_status_on_client.status_details = &text;
    ops[5].data.recv_status_on_client.trailing_metadata = &trailing;
    tarn_wire__start_batch(call, ops, TARN_COUNT_OF(ops), &incoming);
    wait_batch(call, queue, &incoming, op);
    free_head(pairs, pair_count);

    struct tarn_status *status = make_outcome(channel, op, code, &text, &trailing);
    take_stale(op, &trailing);
    if (status == NULL && incoming == NULL)
        status =
            tarn_status_new(TARN_INTERNAL, "%s answered %s with nothing", channel->address, path);
    if (status == NULL)
        *response = tarn_wire__message_received(tarn_move(incoming));
    if (incoming != NULL)
        grpc_byte_buffer_destroy(incoming);
    grpc_slice_unref(text);
    grpc_metadata_array_destroy(&head);
    grpc_metadata_array_destroy(&trailing);
    grpc_call_unref(call);
    close_queue(queue);
    return status;
}

/* --- streams --- */

static void start_call(struct tarn_client_call *call)
{
    grpc_metadata pairs[2];
    size_t pair_count = make_head(call->channel, call->op, pairs);
    grpc_op first[2] = {{0}}, last = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};

    last.data.recv_status_on_client.status = &call->code;
    last.data.recv_status_on_client.status_details = &call->text;
    last.data.recv_status_on_client.trailing_metadata = &call->trailing;
    call->end.running = true;
    tarn_wire__start_batch(call->handle, &last, 1, &call->end);

    first[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    first[0].data.send_initial_metadata.count = pair_count;
    first[0].data.send_initial_metadata.metadata = pairs;
    first[1].op = GRPC_OP_RECV_INITIAL_METADATA;
    first[1].data.recv_initial_metadata.recv_initial_metadata = &call->head;
    call->start.running = true;
    tarn_wire__start_batch(call->handle, first, 2, &call->start);
    free_head(pairs, pair_count);
}

struct tarn_status *tarn_channel_call(struct tarn_channel *channel, struct tarn_op *op,
                                      const char *path, struct tarn_client_call **out)
{
    struct tarn_client_call *call;

    TARN_TRY(tarn_op_check(op));
    call = tarn_calloc(1, sizeof *call);
    call->channel = channel;
    call->op = op;
    call->text = grpc_empty_slice();
    grpc_metadata_array_init(&call->head);
    grpc_metadata_array_init(&call->trailing);
    pthread_mutex_init(&call->lock, NULL);
    call->queue = grpc_completion_queue_create_for_pluck(NULL);
    call->handle = make_call(channel, op, path, call->queue);
    start_call(call);
    *out = call;
    return TARN_OK;
}

static bool wait_side(struct tarn_client_call *call, struct side *side, const struct tarn_op *op)
{
    bool ok = wait_batch(call->handle, call->queue, side, op);
    side->running = false;
    return ok;
}

/* The batch before, if one runs. */
static void wait_write(struct tarn_client_call *call)
{
    if (!call->write.running)
        return;
    call->write_failed |= !wait_side(call, &call->write, call->op);
    tarn_message_drop(&call->writing);
}

/* The end of the call has come; its lock is held. */
static void note_end(struct tarn_client_call *call)
{
    call->end.running = false;
    call->outcome = make_outcome(call->channel, call->op, call->code, &call->text, &call->trailing);
    call->ended = true;
}

static struct tarn_status *copy_outcome(const struct tarn_client_call *call)
{
    return call->outcome == NULL ? NULL : tarn_status_copy(call->outcome);
}

struct tarn_status *tarn_client_call_finish(struct tarn_client_call *call)
{
    struct tarn_status *copy;

    tarn_assert_may_wait();
    pthread_mutex_lock(&call->lock);
    if (!call->ended) {
        wait_batch(call->handle, call->queue, &call->end, call->op);
        note_end(call);
    }
    copy = copy_outcome(call);
    pthread_mutex_unlock(&call->lock);
    return copy;
}

/*
 * A write that failed: the call has ended, and how it did is the reason. gRPC withholds the end while an
 * answer lies unread, and it is not ours to read here: then the caller is told to look for it.
 */
static struct tarn_status *explain_write(struct tarn_client_call *call)
{
    struct tarn_status *status;
    bool known = true;

    pthread_mutex_lock(&call->lock);
    if (!call->ended) {
        gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                          gpr_time_from_millis(EXPLAIN_WRITE_MS, GPR_TIMESPAN));
        grpc_event event = grpc_completion_queue_pluck(call->queue, &call->end, until, NULL);
        known = event.type == GRPC_OP_COMPLETE;
        if (known) {
            tarn_wire__take(&call->end);
            note_end(call);
        }
    }
    status = known ? copy_outcome(call) : NULL;
    pthread_mutex_unlock(&call->lock);
    if (status == NULL)
        status = tarn_status_new(TARN_CANCELLED, "the server ended the call and wants no more");
    return status;
}

static struct tarn_status *start_write(struct tarn_client_call *call, grpc_op *op)
{
    wait_write(call);
    if (call->write_failed)
        return explain_write(call);
    call->write.running = true;
    tarn_wire__start_batch(call->handle, op, 1, &call->write);
    return TARN_OK;
}

struct tarn_status *tarn_client_call_write(struct tarn_client_call *call,
                                           struct tarn_message *consumed)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = consumed;
    grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};

    tarn_assert_may_wait();
    tarn_assert(!call->writes_done);
    TARN_TRY(check_size(call->channel, message));
    op.data.send_message.send_message = tarn_wire__message_buffer(message);
    TARN_TRY(start_write(call, &op));
    call->writing = tarn_move(message);
    return TARN_OK;
}

struct tarn_status *tarn_client_call_writes_done(struct tarn_client_call *call)
{
    grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};

    tarn_assert_may_wait();
    if (call->writes_done)
        return TARN_OK;
    call->writes_done = true;
    return start_write(call, &op);
}

struct tarn_status *tarn_client_call_read(struct tarn_client_call *call, struct tarn_message **out)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};

    tarn_assert_may_wait();
    op.data.recv_message.recv_message = &call->incoming;
    call->read.running = true;
    tarn_wire__start_batch(call->handle, &op, 1, &call->read);
    wait_side(call, &call->read, call->op);
    *out = call->incoming == NULL ? NULL : tarn_wire__message_received(tarn_move(call->incoming));
    return TARN_OK;
}

void tarn_client_call_free(struct tarn_client_call *call)
{
    if (call == NULL)
        return;
    if (!call->ended)
        grpc_call_cancel(call->handle, NULL);
    if (call->write.running)
        wait_side(call, &call->write, NULL);
    if (call->start.running)
        wait_side(call, &call->start, NULL);
    if (!call->ended)
        wait_side(call, &call->end, NULL);
    tarn_message_free(call->writing);
    tarn_status_free(call->outcome);
    grpc_slice_unref(call->text);
    grpc_metadata_array_destroy(&call->head);
    grpc_metadata_array_destroy(&call->trailing);
    grpc_call_unref(call->handle);
    close_queue(call->queue);
    pthread_mutex_destroy(&call->lock);
    free(call);
}

void tarn_client_call_drop(struct tarn_client_call **call)
{
    tarn_client_call_free(*call);
    *call = NULL;
}
