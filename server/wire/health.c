/* grpc.health.v1: Check answers at once; Watch sends the state whenever it changes. */
#include "internal.h"

enum { HEALTH_SERVING = 1, HEALTH_NOT_SERVING = 2, HEALTH_SERVICE_UNKNOWN = 3 };

#define SERVICE_NAME_MAX 200

static bool is_served(const struct tarn_wire_server *server, struct tarn_slice service)
{
    if (service.size == 0) /* the server as a whole */
        return true;
    for (size_t i = 0; i < server->service_count; i++)
        if (tarn_slice_is(service, server->services[i]))
            return true;
    return false;
}

static int health_of(const struct tarn_wire_server *server, struct tarn_slice service)
{
    if (!is_served(server, service))
        return HEALTH_SERVICE_UNKNOWN;
    return atomic_load(&server->serving) ? HEALTH_SERVING : HEALTH_NOT_SERVING;
}

static struct tarn_status *read_service(struct tarn_slice request, struct tarn_slice *out)
{
    struct tarn_wire__pb reader = tarn_wire__pb_of(request);
    struct tarn_wire__field field;

    *out = (struct tarn_slice){NULL, 0};
    while (tarn_wire__pb_next(&reader, &field))
        if (field.number == 1 && field.type == PB_BYTES)
            *out = field.bytes;
    if (reader.bad || out->size > SERVICE_NAME_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "not a grpc.health.v1.HealthCheckRequest");
    return TARN_OK;
}

struct tarn_status *tarn_wire__health_check(struct tarn_call *call, struct tarn_slice request,
                                            struct tarn_buf *reply, bool *stay TARN_UNUSED)
{
    struct tarn_slice service;
    TARN_TRY(read_service(request, &service));
    int health = health_of(call->server, service);
    if (health == HEALTH_SERVICE_UNKNOWN)
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "no service %.*s here",
                               TARN_SLICE_ARG(service));
    tarn_wire__pb_put_number(reply, 1, (uint64_t)health);
    return TARN_OK;
}

/* --- Watch: the call is kept in the server's list until it closes --- */

static void link_watch(struct tarn_call *call)
{
    struct tarn_wire_server *server = call->server;

    pthread_mutex_lock(&server->watch_lock);
    pthread_mutex_lock(&call->lock);
    call->watching = !call->closed;
    pthread_mutex_unlock(&call->lock);
    if (call->watching) {
        call->watch_next = server->watchers;
        call->watch_link = &server->watchers;
        if (call->watch_next != NULL)
            call->watch_next->watch_link = &call->watch_next;
        server->watchers = call;
    }
    pthread_mutex_unlock(&server->watch_lock);
}

struct tarn_status *tarn_wire__health_watch(struct tarn_call *call, struct tarn_slice request,
                                            struct tarn_buf *reply TARN_UNUSED, bool *stay)
{
    struct tarn_slice service;
    TARN_TRY(read_service(request, &service));
    call->watch_service = tarn_slice_dup(service);
    link_watch(call);
    if (!call->watching)
        return tarn_status_new(TARN_CANCELLED, "the client went away");
    *stay = true;
    tarn_wire__watch_wake(call);
    return TARN_OK;
}

void tarn_wire__watch_end(struct tarn_call *call)
{
    struct tarn_wire_server *server = call->server;

    pthread_mutex_lock(&server->watch_lock);
    if (call->watch_link != NULL) {
        *call->watch_link = call->watch_next;
        if (call->watch_next != NULL)
            call->watch_next->watch_link = call->watch_link;
        call->watch_link = NULL;
    }
    pthread_mutex_unlock(&server->watch_lock);
}

/* With watch_lock held, so that the newest state is the last one sent. */
static void wake(struct tarn_call *call)
{
    struct tarn_wire_server *server = call->server;
    int health = health_of(server, tarn_slice_str(call->watch_service));
    bool news;

    pthread_mutex_lock(&call->lock);
    news = health != call->watch_sent && !call->write_running && !call->finishing;
    if (news)
        call->watch_sent = health;
    bool ends = !news && !call->write_running && atomic_load(&server->draining);
    pthread_mutex_unlock(&call->lock);
    if (news) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf reply = {0};
        tarn_wire__pb_put_number(&reply, 1, (uint64_t)health);
        tarn_wire__call_try_write(call, tarn_message_copy(tarn_buf_slice(&reply)));
    } else if (ends) {
        tarn_wire__call_finish(call, tarn_status_new(TARN_SHUTTING_DOWN, "the server is stopping"));
    }
}

void tarn_wire__watch_wake(struct tarn_call *call)
{
    pthread_mutex_lock(&call->server->watch_lock);
    wake(call);
    pthread_mutex_unlock(&call->server->watch_lock);
}

void tarn_wire__watch_wake_all(struct tarn_wire_server *server)
{
    /* A call leaves the list before it goes, so those in it are alive while the lock is held. */
    pthread_mutex_lock(&server->watch_lock);
    for (struct tarn_call *call = server->watchers; call != NULL; call = call->watch_next)
        wake(call);
    pthread_mutex_unlock(&server->watch_lock);
}
