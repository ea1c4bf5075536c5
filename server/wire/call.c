/* A call on the server: its arrival, its messages, its outcome. The diagram is in internal.h. */
#include "internal.h"

#include <stdio.h>
#include <strings.h>

#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#define REQUEST_ID_MAX 36
#define DEADLINE_SLACK_MS 5 /* gRPC's timer and our clock may differ by a little */

static void arrived(struct tarn_wire__tag *tag, bool ok);
static void read_done(struct tarn_wire__tag *tag, bool ok);
static void write_done(struct tarn_wire__tag *tag, bool ok);
static void finished(struct tarn_wire__tag *tag, bool ok);
static void closed(struct tarn_wire__tag *tag, bool ok);

/* --- memory --- */

void tarn_wire__call_ref(struct tarn_call *call)
{
    atomic_fetch_add(&call->refs, 1);
}

void tarn_wire__call_unref(struct tarn_call *call)
{
    struct tarn_wire_server *server = call->server;

    if (atomic_fetch_sub(&call->refs, 1) != 1)
        return;
    if (call->read_buffer != NULL)
        grpc_byte_buffer_destroy(call->read_buffer);
    tarn_message_free(call->writing);
    tarn_message_free(call->held);
    tarn_status_free(call->outcome);
    if (call->op_made)
        tarn_op_fini(&call->op);
    grpc_metadata_array_destroy(&call->metadata);
    grpc_call_details_destroy(&call->details);
    if (call->handle != NULL)
        grpc_call_unref(call->handle);
    pthread_cond_destroy(&call->changed);
    pthread_mutex_destroy(&call->lock);
    free(call->watch_service);
    free(call->peer);
    free(call);
    atomic_fetch_sub(&server->call_count, 1); /* the last touch: free waits for it */
}

void tarn_wire__call_arm(struct tarn_wire_server *server, grpc_completion_queue *queue)
{
    struct tarn_call *call = tarn_calloc(1, sizeof *call);
    pthread_condattr_t monotonic;

    call->server = server;
    call->queue = queue;
    atomic_store(&call->refs, 1); /* whoever handles arrive_tag */
    call->arrive_tag.fn = arrived;
    call->read_tag.fn = read_done;
    call->write_tag.fn = write_done;
    call->finish_tag.fn = finished;
    call->close_tag.fn = closed;
    call->watch_sent = -1;
    grpc_metadata_array_init(&call->metadata);
    grpc_call_details_init(&call->details);
    pthread_mutex_init(&call->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&call->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    atomic_fetch_add(&server->call_count, 1);

    tarn_wire__give(&call->arrive_tag);
    if (grpc_server_request_call(server->handle, &call->handle, &call->details, &call->metadata,
                                 queue, queue, &call->arrive_tag) != GRPC_CALL_OK)
        tarn_wire__call_unref(call); /* the server is going away */
}

/* --- arrival --- */

static int64_t deadline_ms(gpr_timespec deadline)
{
    deadline = gpr_convert_clock_type(deadline, GPR_CLOCK_MONOTONIC);
    if (gpr_time_cmp(deadline, gpr_inf_future(GPR_CLOCK_MONOTONIC)) == 0)
        return INT64_MAX;
    int64_t left = gpr_time_to_millis(gpr_time_sub(deadline, gpr_now(GPR_CLOCK_MONOTONIC)));
    return tarn_clock_mono_ms() + TARN_MAX(left, (int64_t)0);
}

static bool request_id_valid(struct tarn_slice id)
{
    if (id.size == 0 || id.size > REQUEST_ID_MAX)
        return false;
    for (size_t i = 0; i < id.size; i++) {
        uint8_t c = id.data[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '_' || c == '-';
        if (!good)
            return false;
    }
    return true;
}

static void make_op(struct tarn_call *call)
{
    struct tarn_slice id = tarn_call_metadata(call, "x-request-id");

    tarn_op_init(&call->op);
    call->op_made = true;
    call->op.deadline_mono_ms = deadline_ms(call->details.deadline);
    if (request_id_valid(id)) {
        memcpy(call->op.request_id, id.data, id.size);
        call->op.request_id[id.size] = '\0';
    }
}

static void start_read(struct tarn_call *call)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
    op.data.recv_message.recv_message = &call->read_buffer;
    tarn_wire__call_ref(call);
    tarn_wire__start_batch(call->handle, &op, 1, &call->read_tag);
}

static struct tarn_slice slice_of(const grpc_slice *slice)
{
    return tarn_slice_of(GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice));
}

static void arrived(struct tarn_wire__tag *tag, bool ok)
{
    struct tarn_call *call = TARN_CONTAINER_OF(tag, struct tarn_call, arrive_tag);
    struct tarn_wire_server *server = call->server;
    struct tarn_slice path;

    if (!ok) { /* the server drains: nobody came */
        tarn_wire__call_unref(call);
        return;
    }
    tarn_wire__call_arm(server, call->queue);
    call->start_ns = tarn_clock_mono_ns();
    path = slice_of(&call->details.method);
    call->method = tarn_map_find(server->methods, path);
    make_op(call);

    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    op.data.recv_close_on_server.cancelled = &call->cancelled_by_peer;
    tarn_wire__call_ref(call);
    tarn_wire__start_batch(call->handle, &op, 1, &call->close_tag);

    if (call->method == NULL) {
        tarn_wire__call_finish(
            call, tarn_status_new(TARN_UNIMPLEMENTED, "this server has no method %.*s",
                                  (int)TARN_MIN(path.size, (size_t)200), (const char *)path.data));
    } else if (atomic_load(&server->call_count) > TARN_WIRE_CALLS_MAX) {
        tarn_wire__call_finish(
            call, tarn_status_new(TARN_BUSY, "more than %d calls at once", TARN_WIRE_CALLS_MAX));
    } else {
        call->read_state = READ_RUNNING;
        start_read(call);
    }
    tarn_wire__call_unref(call);
}

/* --- the method, on a thread of the pool --- */

static struct tarn_slice bearer_token(const struct tarn_call *call)
{
    struct tarn_slice value = tarn_call_metadata(call, "authorization");
    static const char scheme[] = "bearer ";
    size_t size = sizeof scheme - 1;

    if (value.size < size || strncasecmp((const char *)value.data, scheme, size) != 0)
        return (struct tarn_slice){NULL, 0};
    return tarn_slice_of(value.data + size, value.size - size);
}

/* Detached or deferred: somebody else ends it. */
static bool is_handed_over(struct tarn_call *call)
{
    pthread_mutex_lock(&call->lock);
    bool handed_over = call->events != NULL || call->deferred;
    pthread_mutex_unlock(&call->lock);
    return handed_over;
}

static void run_call(void *arg)
{
    struct tarn_call *call = arg;
    struct tarn_wire_server *server = call->server;
    struct tarn_status *status = tarn_op_check(&call->op);

    if (status == NULL && server->admit != NULL)
        status =
            server->admit(server->admit_self, &call->op, call->method->path, bearer_token(call));
    if (status == NULL)
        status = call->method->fn(call->method->self, &call->op, call);
    if (status != NULL || !is_handed_over(call))
        tarn_wire__call_finish(call, status);
    tarn_wire__call_unref(call);
}

/* --- built-in methods, on the queue thread --- */

static struct tarn_status *answer_builtin(struct tarn_call *call, struct tarn_message *request,
                                          bool *stay)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf reply = {0};
    TARN_TRY(call->method->builtin(call, tarn_message_bytes(request), &reply, stay));
    if (*stay)
        return TARN_OK; /* it sends when there is something to say */
    tarn_wire__call_try_write(call, tarn_message_copy(tarn_buf_slice(&reply)));
    return TARN_OK;
}

/* One request was read, or the last one. */
static void continue_builtin(struct tarn_call *call)
{
    struct tarn_message *request = NULL;
    bool failed, stay = false;

    pthread_mutex_lock(&call->lock);
    failed = call->read_state == READ_FAILED;
    if (call->read_state == READ_DONE) {
        request = tarn_wire__message_received(call->read_buffer);
        call->read_buffer = NULL;
        call->read_state = READ_IDLE;
    }
    pthread_mutex_unlock(&call->lock);
    if (request == NULL) {
        tarn_wire__call_finish(
            call, failed ? tarn_status_new(TARN_CANCELLED, "the client went away") : TARN_OK);
        return;
    }
    struct tarn_status *status = answer_builtin(call, request, &stay);
    tarn_message_free(request);
    if (status != NULL || (call->method->one_response && !stay))
        tarn_wire__call_finish(call, status);
}

/* --- reading --- */

static void post_first(struct tarn_call *call, bool failed)
{
    if (failed) {
        tarn_wire__call_finish(call, tarn_status_new(TARN_CANCELLED, "the client went away"));
        return;
    }
    tarn_wire__call_ref(call);
    tarn_exec_post(call->server->exec, run_call, call);
}

static void read_done(struct tarn_wire__tag *tag, bool ok)
{
    struct tarn_call *call = TARN_CONTAINER_OF(tag, struct tarn_call, read_tag);
    bool first;

    /* No message: the end, or a call that broke. One must not be taken for the other. */
    bool failed = call->read_buffer == NULL &&
                  (!ok || grpc_call_failed_before_recv_message(call->handle) != 0);
    if (failed)
        tarn_op_cancel(&call->op);
    pthread_mutex_lock(&call->lock);
    call->read_state = call->read_buffer != NULL ? READ_DONE : failed ? READ_FAILED : READ_ENDED;
    first = !call->started;
    call->started = true;
    pthread_cond_broadcast(&call->changed);
    pthread_mutex_unlock(&call->lock);
    if (call->method->builtin != NULL)
        continue_builtin(call);
    else if (first)
        post_first(call, failed);
    tarn_wire__call_unref(call);
}

/* Why a call that is over is over. */
static struct tarn_status *gone(const struct tarn_call *call)
{
    if (call->op.deadline_mono_ms != INT64_MAX &&
        tarn_clock_mono_ms() + DEADLINE_SLACK_MS >= call->op.deadline_mono_ms)
        return tarn_status_new(TARN_DEADLINE_EXCEEDED, "the caller's time is up");
    if (atomic_load(&call->server->draining))
        return tarn_status_new(TARN_SHUTTING_DOWN, "the server is stopping");
    return tarn_status_new(TARN_CANCELLED, "the client went away");
}

static bool is_over(const struct tarn_call *call)
{
    return call->gone || tarn_op_is_cancelled(&call->op);
}

/* A while with the lock given up; also looks at the op, which others may cancel. */
static void wait_changed(struct tarn_call *call)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TARN_WIRE_POLL_MAX_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    tarn_exec_wait_begin();
    pthread_cond_timedwait(&call->changed, &call->lock, &until);
    tarn_exec_wait_end();
}

struct tarn_status *tarn_call_read(struct tarn_call *call, struct tarn_message **out)
{
    struct tarn_status *status = NULL;
    grpc_byte_buffer *buffer = NULL;
    bool start;

    tarn_assert_may_wait();
    pthread_mutex_lock(&call->lock);
    start = call->read_state == READ_IDLE && !is_over(call);
    if (start)
        call->read_state = READ_RUNNING;
    pthread_mutex_unlock(&call->lock);
    if (start)
        start_read(call);

    pthread_mutex_lock(&call->lock);
    while (call->read_state == READ_RUNNING && !is_over(call))
        wait_changed(call);
    if (call->read_state == READ_DONE) {
        buffer = call->read_buffer;
        call->read_buffer = NULL;
        call->read_state = READ_IDLE;
    } else if (call->read_state != READ_ENDED) {
        status = gone(call);
    }
    pthread_mutex_unlock(&call->lock);
    if (status == NULL)
        *out = buffer == NULL ? NULL : tarn_wire__message_received(buffer);
    return status;
}

/* --- writing --- */

static void send_batch(struct tarn_call *call, const grpc_op *ops, size_t count,
                       struct tarn_wire__tag *tag)
{
    if (call->watching) /* its list is locked */
        tarn_wire__start_batch(call->handle, ops, count, tag);
    else
        tarn_wire__run_batch(call->queue, call->handle, ops, count, tag);
}

/* The caller has set write_running, writing and read head_sent's old value under the lock. */
static void start_write(struct tarn_call *call, struct tarn_message *message, bool head)
{
    grpc_op ops[2] = {{0}};
    size_t count = 0;

    if (head)
        ops[count++].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[count].op = GRPC_OP_SEND_MESSAGE;
    ops[count++].data.send_message.send_message = tarn_wire__message_buffer(message);
    send_batch(call, ops, count, &call->write_tag);
}

/* With the lock held; takes the message. True: call start_write once the lock is given up. */
static bool begin_write(struct tarn_call *call, struct tarn_message *message, bool *head)
{
    call->write_running = true;
    call->writing = message;
    *head = !call->head_sent;
    call->head_sent = true;
    tarn_wire__call_ref(call);
    return true;
}

bool tarn_wire__call_try_write(struct tarn_call *call, struct tarn_message *consumed)
{
    bool sends, head = false;

    pthread_mutex_lock(&call->lock);
    sends = !call->write_running && !call->finishing && !call->write_failed && !call->closed;
    if (sends && call->method->one_response) {
        call->held = consumed;
        pthread_mutex_unlock(&call->lock);
        return true;
    }
    if (sends)
        begin_write(call, consumed, &head);
    pthread_mutex_unlock(&call->lock);
    if (sends)
        start_write(call, consumed, head);
    else
        tarn_message_free(consumed);
    return sends;
}

/* Waits for the write before; the lock is held before and after. */
static bool wait_write(struct tarn_call *call)
{
    while (call->write_running && !is_over(call))
        wait_changed(call);
    return !call->write_running && !call->write_failed && !is_over(call);
}

struct tarn_status *tarn_call_write(struct tarn_call *call, struct tarn_message *message)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *owned = message;
    struct tarn_message *first;
    size_t size = tarn_wire__message_size(message);
    bool head;

    tarn_assert_may_wait();
    if (size > (size_t)call->server->message_max)
        return tarn_status_new(TARN_TOO_LARGE, "an answer of %zu bytes; at most %" PRId64, size,
                               call->server->message_max);
    pthread_mutex_lock(&call->lock);
    if (call->method->one_response && call->held == NULL && !call->head_sent && !is_over(call)) {
        call->held = tarn_move(owned);
        pthread_mutex_unlock(&call->lock);
        return TARN_OK;
    }
    /* It said one and writes more: then they go as any stream does. */
    first = tarn_move(call->held);
    if (first != NULL) {
        begin_write(call, first, &head);
        pthread_mutex_unlock(&call->lock);
        start_write(call, first, head);
        pthread_mutex_lock(&call->lock);
    }
    if (!wait_write(call)) {
        struct tarn_status *status = gone(call);
        pthread_mutex_unlock(&call->lock);
        return status;
    }
    message = tarn_move(owned);
    begin_write(call, message, &head);
    pthread_mutex_unlock(&call->lock);
    start_write(call, message, head);
    return TARN_OK;
}

/* --- the end --- */

static grpc_metadata pair_of(const char *key, grpc_slice value)
{
    grpc_metadata pair = {.key = grpc_slice_from_static_string(key), .value = value};
    return pair;
}

/* Once: by whoever finds that the outcome is there and no write runs. No lock is held. */
static void send_status(struct tarn_call *call)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf details = {0};
    grpc_metadata trailing[3];
    grpc_slice text_slice = grpc_empty_slice();
    grpc_op ops[3] = {{0}};
    size_t count = 0, trailing_count = 0;
    char stale_text[24];
    grpc_op *last;

    snprintf(stale_text, sizeof stale_text, "%" PRId64, call->op.stale_ms);

    if (!call->head_sent)
        ops[count++].op = GRPC_OP_SEND_INITIAL_METADATA;
    call->head_sent = true;
    if (call->held != NULL && call->outcome == NULL) {
        ops[count].op = GRPC_OP_SEND_MESSAGE;
        ops[count++].data.send_message.send_message = tarn_wire__message_buffer(call->held);
    }
    if (call->outcome != NULL) {
        tarn_wire__status_text(call->outcome, &text);
        tarn_wire__status_encode(call->outcome, call->op.request_id, &details);
        text_slice = grpc_slice_from_copied_buffer((const char *)text.data, text.size);
        trailing[trailing_count++] =
            pair_of("grpc-status-details-bin",
                    grpc_slice_from_copied_buffer((const char *)details.data, details.size));
        trailing[trailing_count++] =
            pair_of("x-request-id", grpc_slice_from_copied_string(call->op.request_id));
    }
    if (call->op.stale_ms > 0)
        trailing[trailing_count++] =
            pair_of(TARN_WIRE_STALE, grpc_slice_from_copied_string(stale_text));
    last = &ops[count++];
    last->op = GRPC_OP_SEND_STATUS_FROM_SERVER;
    last->data.send_status_from_server.status = (grpc_status_code)tarn_status_code(call->outcome);
    last->data.send_status_from_server.status_details = &text_slice;
    last->data.send_status_from_server.trailing_metadata = trailing;
    last->data.send_status_from_server.trailing_metadata_count = trailing_count;
    tarn_wire__call_ref(call);
    send_batch(call, ops, count, &call->finish_tag);
    grpc_slice_unref(text_slice);
    for (size_t i = 0; i < trailing_count; i++)
        grpc_slice_unref(trailing[i].value);
}

static void count_outcome(const struct tarn_call *call)
{
    const struct tarn_status *status = call->outcome;
    enum tarn_code code = tarn_status_code(status);
    const char *method = call->method == NULL ? "unknown" : call->method->label;
    double seconds = (double)(tarn_clock_mono_ns() - call->start_ns) / 1e9;
    enum tarn_log_level level = TARN_INFO;

    tarn_metric_add(TARN_M_RPC_CALLS, tarn_code_name(code), 1);
    tarn_metric_observe(TARN_M_RPC_SECONDS, method, seconds);
    if (code == TARN_CODE_OK || code == TARN_CODE_CANCELLED) {
        tarn_log(&call->op, TARN_DEBUG, "rpc.call", "method=%s code=%s ms=%.3f", method,
                 tarn_code_name(code), seconds * 1e3);
        return;
    }
    if (code == TARN_CODE_INTERNAL || code == TARN_CODE_UNKNOWN || code == TARN_CODE_DATA_LOSS)
        level = TARN_WARN;
    tarn_log(&call->op, level, "rpc.failed", "method=%s peer=%s code=%s reason=%s ms=%.3f error=%s",
             method, tarn_call_peer(call), tarn_code_name(code),
             tarn_reason_name(tarn_status_reason(status)), seconds * 1e3,
             tarn_log_quote(NULL, tarn_status_message(status)));
}

void tarn_wire__call_finish(struct tarn_call *call, struct tarn_status *consumed)
{
    bool first, send;

    pthread_mutex_lock(&call->lock);
    first = !call->finishing;
    if (first) {
        call->outcome = consumed;
        call->finishing = true;
        tarn_wire__call_ref(call); /* the outcome is read below, when all may be over */
    }
    send = first && !call->write_running; /* else the write's end sends it */
    pthread_mutex_unlock(&call->lock);
    if (send)
        send_status(call);
    if (!first) {
        tarn_status_free(consumed);
        return;
    }
    count_outcome(call);
    tarn_wire__call_unref(call);
}

static void write_done(struct tarn_wire__tag *tag, bool ok)
{
    struct tarn_call *call = TARN_CONTAINER_OF(tag, struct tarn_call, write_tag);
    struct tarn_message *sent;
    bool send, again, written;

    pthread_mutex_lock(&call->lock);
    call->write_running = false;
    call->write_failed |= !ok;
    sent = tarn_move(call->writing);
    send = call->finishing;
    again = !send && ok && call->method->builtin != NULL && !call->watching &&
            call->read_state == READ_IDLE;
    if (again)
        call->read_state = READ_RUNNING;
    written = call->events != NULL && ok && !send && !call->closed;
    call->telling_count += written;
    pthread_cond_broadcast(&call->changed);
    pthread_mutex_unlock(&call->lock);
    tarn_message_free(sent);
    if (send)
        send_status(call);
    else if (again)
        start_read(call);
    else if (call->watching)
        tarn_wire__watch_wake(call);
    else if (call->method->builtin != NULL && !ok)
        tarn_wire__call_finish(call, tarn_status_new(TARN_CANCELLED, "the client went away"));
    if (written)
        tarn_wire__detached_tell(call);
    tarn_wire__detached_check(call);
    tarn_wire__call_unref(call);
}

static void finished(struct tarn_wire__tag *tag, bool ok TARN_UNUSED)
{
    tarn_wire__call_unref(TARN_CONTAINER_OF(tag, struct tarn_call, finish_tag));
}

/* Once a call, however it ends. */
static void closed(struct tarn_wire__tag *tag, bool ok TARN_UNUSED)
{
    struct tarn_call *call = TARN_CONTAINER_OF(tag, struct tarn_call, close_tag);
    bool end_watch;

    if (call->cancelled_by_peer != 0)
        tarn_op_cancel(&call->op);
    pthread_mutex_lock(&call->lock);
    call->closed = true;
    call->gone = call->cancelled_by_peer != 0;
    end_watch = (call->watching || call->events != NULL) && !call->finishing;
    pthread_cond_broadcast(&call->changed);
    pthread_mutex_unlock(&call->lock);
    tarn_wire__watch_end(call); /* now nobody links it any more */
    if (end_watch)
        tarn_wire__call_finish(call, tarn_status_new(TARN_CANCELLED, "the client went away"));
    tarn_wire__detached_check(call);
    tarn_wire__call_unref(call);
}

/* --- who and what --- */

struct tarn_slice tarn_call_metadata(const struct tarn_call *call, const char *key)
{
    struct tarn_slice wanted = tarn_slice_str(key);
    for (size_t i = 0; i < call->metadata.count; i++)
        if (tarn_slice_equal(slice_of(&call->metadata.metadata[i].key), wanted))
            return slice_of(&call->metadata.metadata[i].value);
    return (struct tarn_slice){NULL, 0};
}

/* "ipv4:127.0.0.1:1234" and "ipv6:%5B::1%5D:1234" as people write them. */
static char *plain_peer(const char *uri)
{
    const char *colon = strchr(uri, ':');
    char *out = tarn_strdup(strncmp(uri, "ipv", 3) == 0 && colon != NULL ? colon + 1 : uri);
    size_t to = 0;

    for (size_t from = 0; out[from] != '\0'; to++) {
        bool open = strncmp(out + from, "%5B", 3) == 0;
        if (open || strncmp(out + from, "%5D", 3) == 0) {
            out[to] = open ? '[' : ']';
            from += 3;
        } else {
            out[to] = out[from++];
        }
    }
    out[to] = '\0';
    return out;
}

const char *tarn_call_peer(const struct tarn_call *asked)
{
    struct tarn_call *call = (struct tarn_call *)(uintptr_t)asked; /* found once, kept */

    pthread_mutex_lock(&call->lock);
    if (call->peer == NULL) {
        char *uri = grpc_call_get_peer(call->handle);
        call->peer = plain_peer(uri);
        gpr_free(uri);
    }
    pthread_mutex_unlock(&call->lock);
    return call->peer;
}
