/* Calls that hold no thread: a method handed them over, and their owner writes to them, or answers, from anywhere. */
#include "internal.h"

static void unlink_call(struct tarn_call *call)
{
    struct tarn_wire_server *server = call->server;

    pthread_mutex_lock(&server->watch_lock);
    if (call->detached_link != NULL) {
        *call->detached_link = call->detached_next;
        if (call->detached_next != NULL)
            call->detached_next->detached_link = call->detached_link;
        call->detached_link = NULL;
    }
    pthread_mutex_unlock(&server->watch_lock);
}

void tarn_wire__detached_check(struct tarn_call *call)
{
    pthread_mutex_lock(&call->lock);
    bool tell = call->events != NULL && call->closed && !call->write_running &&
                call->telling_count == 0 && !call->ended_told;
    call->ended_told |= tell;
    pthread_mutex_unlock(&call->lock);
    if (!tell)
        return;
    unlink_call(call);
    call->events->ended(call->events_arg);
}

void tarn_wire__detached_tell(struct tarn_call *call)
{
    call->events->written(call->events_arg);
    pthread_mutex_lock(&call->lock);
    call->telling_count--;
    pthread_mutex_unlock(&call->lock);
}

void tarn_call_detach(struct tarn_call *call, const struct tarn_call_events *events, void *arg)
{
    struct tarn_wire_server *server = call->server;
    bool gone;

    tarn_wire__call_ref(call);
    pthread_mutex_lock(&server->watch_lock);
    call->detached_next = server->detached;
    call->detached_link = &server->detached;
    if (call->detached_next != NULL)
        call->detached_next->detached_link = &call->detached_next;
    server->detached = call;
    pthread_mutex_lock(&call->lock);
    tarn_assert(call->events == NULL && !call->method->one_response);
    call->events_arg = arg;
    call->events = events;
    gone = call->closed && !call->finishing;
    pthread_mutex_unlock(&call->lock);
    pthread_mutex_unlock(&server->watch_lock);
    if (gone) /* before anybody could be told */
        tarn_wire__call_finish(call, tarn_status_new(TARN_CANCELLED, "the client went away"));
    else if (atomic_load(&server->draining))
        tarn_wire__call_finish(call, tarn_status_new(TARN_SHUTTING_DOWN, "the server is stopping"));
    tarn_wire__detached_check(call);
}

bool tarn_call_write_async(struct tarn_call *call, struct tarn_message *message)
{
    size_t size = tarn_wire__message_size(message);
    if (size > (size_t)call->server->message_max) {
        tarn_message_free(message);
        tarn_call_end(call,
                      tarn_status_new(TARN_TOO_LARGE, "an answer of %zu bytes; at most %" PRId64,
                                      size, call->server->message_max));
        return false;
    }
    return tarn_wire__call_try_write(call, message);
}

void tarn_call_end(struct tarn_call *call, struct tarn_status *consumed)
{
    tarn_wire__call_finish(call, consumed);
}

void tarn_call_abort(struct tarn_call *call, struct tarn_status *consumed)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    grpc_status_code code = (grpc_status_code)tarn_status_code(consumed);

    tarn_assert(consumed != NULL);
    tarn_wire__status_text(consumed, &text);
    tarn_wire__call_finish(call, consumed); /* waits for the message under way, so that: */
    grpc_call_cancel_with_status(call->handle, code, tarn_buf_cstr(&text), NULL);
}

void tarn_call_release(struct tarn_call *call)
{
    tarn_wire__call_unref(call);
}

void tarn_call_defer(struct tarn_call *call)
{
    tarn_wire__call_ref(call);
    pthread_mutex_lock(&call->lock);
    tarn_assert(!call->deferred && call->events == NULL && call->method->one_response);
    call->deferred = true;
    pthread_mutex_unlock(&call->lock);
}

void tarn_call_answer(struct tarn_call *call, struct tarn_message *message,
                      struct tarn_status *status)
{
    if (message != NULL)
        tarn_call_write_async(call, message); /* one that is too large ends the call with that */
    tarn_wire__call_finish(call, status);
    tarn_wire__call_unref(call);
}

void tarn_wire__detached_end_all(struct tarn_wire_server *server)
{
    struct tarn_call **calls = NULL;
    size_t count = 0, capacity = 0;

    /* A call leaves the list before it goes, so those in it are alive while the lock is held. */
    pthread_mutex_lock(&server->watch_lock);
    for (struct tarn_call *call = server->detached; call != NULL; call = call->detached_next) {
        TARN_GROW(calls, count, capacity);
        tarn_wire__call_ref(call);
        calls[count++] = call;
    }
    pthread_mutex_unlock(&server->watch_lock);
    for (size_t i = 0; i < count; i++) {
        tarn_wire__call_finish(calls[i],
                               tarn_status_new(TARN_SHUTTING_DOWN, "the server is stopping"));
        tarn_wire__call_unref(calls[i]);
    }
    free(calls);
}
