/* The server: ports, queues and their threads, the table of methods, drain. */
#include "internal.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <grpc/grpc_security.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>

#define QUEUE_THREADS_MAX 16
#define STREAM_MAX_DEFAULT 1000
#define QUOTA_MIN ((size_t)512 << 20) /* what gRPC may hold for all connections */
#define DRAIN_NAG_MS 5000

/* --- the library --- */

static void log_library_line(gpr_log_func_args *args)
{
    enum tarn_log_level level = args->severity == GPR_LOG_SEVERITY_ERROR ? TARN_WARN : TARN_DEBUG;
    tarn_log(NULL, level, "grpc.log", "text=%s", tarn_log_quote(NULL, args->message));
}

static void init_once(void)
{
    gpr_set_log_function(log_library_line);
    grpc_init();
}

void tarn_wire_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_once);
}

#if defined(__SANITIZE_THREAD__)
void __tsan_acquire(void *address);
void __tsan_release(void *address);
void tarn_wire__give(void *tag)
{
    __tsan_release(tag);
}
void tarn_wire__take(void *tag)
{
    __tsan_acquire(tag);
}
#else
void tarn_wire__give(void *tag TARN_UNUSED)
{
}
void tarn_wire__take(void *tag TARN_UNUSED)
{
}
#endif

void tarn_wire__start_batch(grpc_call *call, const grpc_op *ops, size_t count, void *tag)
{
    tarn_wire__give(tag);
    tarn_assert(grpc_call_start_batch(call, ops, count, tag, NULL) == GRPC_CALL_OK);
}

/* Handling one may begin the next batch, which completes at once too: then it is the outermost that goes on with it. */
static _Thread_local struct tarn_wire__tag *here_first, **here_last;

void tarn_wire__run_batch(grpc_completion_queue *queue, grpc_call *call, const grpc_op *ops,
                          size_t count, struct tarn_wire__tag *tag)
{
    void *done;
    int ok;
    grpc_completion_queue_thread_local_cache_init(queue);
    tarn_wire__start_batch(call, ops, count, tag);
    if (!grpc_completion_queue_thread_local_cache_flush(queue, &done, &ok))
        return;
    tag = done;
    tarn_wire__take(tag);
    tag->ok = ok != 0;
    tag->next = NULL;
    if (here_last != NULL) {
        *here_last = tag;
        here_last = &tag->next;
        return;
    }
    here_first = tag;
    here_last = &tag->next;
    while ((tag = here_first) != NULL) {
        here_first = tag->next;
        if (here_first == NULL)
            here_last = &here_first;
        tag->fn(tag, tag->ok);
    }
    here_last = NULL;
}

/* --- queues --- */

static void *run_queue(void *arg)
{
    grpc_completion_queue *queue = arg;
    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN)
            return NULL;
        struct tarn_wire__tag *tag = event.tag;
        tarn_wire__take(tag);
        tag->fn(tag, event.success != 0);
    }
}

static void make_queues(struct tarn_wire_server *server, int count)
{
    server->queue_count = count < 1 ? 1 : TARN_MIN(count, QUEUE_THREADS_MAX);
    server->queues = tarn_calloc((size_t)server->queue_count, sizeof *server->queues);
    server->threads = tarn_calloc((size_t)server->queue_count, sizeof *server->threads);
    for (int i = 0; i < server->queue_count; i++) {
        server->queues[i] = grpc_completion_queue_create_for_next(NULL);
        grpc_server_register_completion_queue(server->handle, server->queues[i], NULL);
    }
    server->drain_queue = grpc_completion_queue_create_for_next(NULL);
    grpc_server_register_completion_queue(server->handle, server->drain_queue, NULL);
}

static void start_queues(struct tarn_wire_server *server)
{
    grpc_server_start(server->handle);
    for (int i = 0; i < server->queue_count; i++) {
        for (int n = 0; n < TARN_WIRE_ARMED_COUNT; n++)
            tarn_wire__call_arm(server, server->queues[i]);
        tarn_assert(pthread_create(&server->threads[i], NULL, run_queue, server->queues[i]) == 0);
    }
}

static void finish_queue(grpc_completion_queue *queue)
{
    grpc_completion_queue_shutdown(queue);
    while (grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
           GRPC_QUEUE_SHUTDOWN)
        ;
    grpc_completion_queue_destroy(queue);
}

/* --- the library's server --- */

static grpc_arg int_arg(const char *key, int64_t value)
{
    grpc_arg arg = {.type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)key};
    arg.value.integer = (int)TARN_MIN(value, (int64_t)INT32_MAX);
    return arg;
}

static grpc_server *make_handle(const struct tarn_wire_server_options *options, int64_t message_max)
{
    grpc_resource_quota *quota = grpc_resource_quota_create("tarn");
    grpc_resource_quota_resize(quota, TARN_MAX(QUOTA_MIN, (size_t)message_max * 16));
    grpc_arg quota_arg = {.type = GRPC_ARG_POINTER, .key = GRPC_ARG_RESOURCE_QUOTA};
    quota_arg.value.pointer.p = quota;
    quota_arg.value.pointer.vtable = grpc_resource_quota_arg_vtable();

    grpc_arg args[] = {
        int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, message_max),
        int_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, message_max),
        int_arg(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                options->stream_max > 0 ? options->stream_max : STREAM_MAX_DEFAULT),
        int_arg(GRPC_ARG_MAX_METADATA_SIZE, TARN_WIRE_METADATA_MAX),
        /* Otherwise a second daemon binds the same port without an error. */
        int_arg(GRPC_ARG_ALLOW_REUSEPORT, 0),
        int_arg(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, TARN_WIRE_PING_MIN_MS),
        int_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
        /* A client whose machine is gone is noticed, and its subscriptions end. */
        int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, 60000),
        int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000),
        int_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
        int_arg(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 20000),
        int_arg(GRPC_ARG_ENABLE_CHANNELZ, 0),
        quota_arg,
    };
    grpc_channel_args all = {TARN_COUNT_OF(args), args};
    grpc_server *handle = grpc_server_create(&all, NULL);
    grpc_resource_quota_unref(quota);
    return handle;
}

/* --- listening --- */

/* "host:port", "[::1]:port", ":port"; the host may be empty. */
static struct tarn_status *split_address(const char *address, char **host, int64_t *port)
{
    const char *colon = strrchr(address, ':');
    struct tarn_status *status = NULL;

    if (colon == NULL || strlen(address) > 300)
        return tarn_status_new(TARN_CONFIG_INVALID, "listen address \"%.300s\": expected HOST:PORT",
                               address);
    status = tarn_parse_i64(tarn_slice_str(colon + 1), port);
    if (status != NULL || *port < 0 || *port > 65535) {
        tarn_status_free(status);
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "listen address \"%s\": expected a port from 0 to 65535", address);
    }
    *host = tarn_slice_dup(tarn_slice_of(address, (size_t)(colon - address)));
    return TARN_OK;
}

/* gRPC says only that it could not listen; trying ourselves tells why. */
static struct tarn_status *explain_listen(const char *address, const char *host, int64_t port)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char service[16];
    char *bare = tarn_strdup(host);
    size_t size = strlen(bare);
    int error = 0;

    if (size > 1 && bare[0] == '[' && bare[size - 1] == ']') {
        memmove(bare, bare + 1, size - 2);
        bare[size - 2] = '\0';
    }
    snprintf(service, sizeof service, "%" PRId64, port);
    int failed = getaddrinfo(bare[0] == '\0' ? NULL : bare, service, &hints, &found);
    free(bare);
    if (failed != 0)
        return tarn_status_new(TARN_CONFIG_INVALID, "cannot listen on %s: %s", address,
                               gai_strerror(failed));
    for (struct addrinfo *a = found; a != NULL && error == 0; a = a->ai_next) {
        int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
        int on = 1;
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, 1) != 0)
            error = errno;
        close(fd);
    }
    freeaddrinfo(found);
    if (error == EADDRINUSE)
        return tarn_status_new(TARN_ADDRESS_IN_USE,
                               "cannot listen on %s: another program listens there", address);
    return tarn_status_new(TARN_CONFIG_INVALID, "cannot listen on %s: %s", address,
                           error == 0 ? "the address cannot be used" : strerror(error));
}

static struct tarn_status *add_port(struct tarn_wire_server *server, const char *address)
{
    TARN_OWN(tarn_free_drop) char *host = NULL;
    TARN_OWN(tarn_free_drop) char *target = NULL;
    int64_t port = 0;

    TARN_TRY(split_address(address, &host, &port));
    target = tarn_format("%s:%" PRId64, host[0] == '\0' ? "0.0.0.0" : host, port);
    int real = grpc_server_add_http2_port(server->handle, target, server->credentials);
    if (real <= 0)
        return explain_listen(address, host, port);
    server->address = tarn_format("%s:%d", host[0] == '\0' ? "0.0.0.0" : host, real);
    return TARN_OK;
}

/* --- methods --- */

static void free_method(struct tarn_wire__method *method)
{
    free(method->path);
    free(method->label);
    free(method);
}

static struct tarn_wire__method *add_method(struct tarn_wire_server *server, const char *path)
{
    struct tarn_wire__method *method = tarn_calloc(1, sizeof *method);
    method->path = tarn_strdup(path);
    method->label = tarn_strdup(path[0] == '/' ? path + 1 : path);
    struct tarn_wire__method *old = tarn_map_set(server->methods, tarn_slice_str(path), method);
    tarn_assert(old == NULL); /* two methods of one path */
    return method;
}

static void add_builtin(struct tarn_wire_server *server, const char *path, tarn_wire__builtin_fn fn,
                        bool one_response)
{
    if (tarn_map_find(server->methods, tarn_slice_str(path)) != NULL)
        return; /* the caller brings its own */
    struct tarn_wire__method *method = add_method(server, path);
    method->builtin = fn;
    method->one_response = one_response;
}

static void add_methods(struct tarn_wire_server *server, const struct tarn_wire_method *methods,
                        size_t method_count)
{
    for (size_t i = 0; i < method_count; i++) {
        struct tarn_wire__method *method = add_method(server, methods[i].path);
        method->fn = methods[i].fn;
        method->self = methods[i].self;
        method->one_response = methods[i].one_response || tarn_wire__reflection_one_response(
                                                              server->reflection, methods[i].path);
    }
    add_builtin(server, "/grpc.health.v1.Health/Check", tarn_wire__health_check, true);
    add_builtin(server, "/grpc.health.v1.Health/Watch", tarn_wire__health_watch, false);
    add_builtin(server, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                tarn_wire__reflect, false);
    add_builtin(server, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                tarn_wire__reflect, false);
}

static void copy_services(struct tarn_wire_server *server, const char *const *services)
{
    while (services != NULL && services[server->service_count] != NULL)
        server->service_count++;
    server->services = tarn_calloc(server->service_count + 1, sizeof *server->services);
    for (size_t i = 0; i < server->service_count; i++)
        server->services[i] = tarn_strdup(services[i]);
}

/* --- life --- */

static void release_server(struct tarn_wire_server *server)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *method;

    while (tarn_map_next(server->methods, &cursor, &key, &method))
        free_method(method);
    tarn_map_free(server->methods);
    for (size_t i = 0; i < server->service_count; i++)
        free(server->services[i]);
    free(server->services);
    tarn_wire__reflection_free(server->reflection);
    if (server->credentials != NULL)
        grpc_server_credentials_release(server->credentials);
    tarn_wire__tls_free(server->tls);
    pthread_mutex_destroy(&server->watch_lock);
    free(server->address);
    free(server->queues);
    free(server->threads);
    free(server);
}

/* A server that never started: gRPC wants it shut down all the same. */
static void abandon_server(struct tarn_wire_server *server)
{
    if (server->handle != NULL) {
        grpc_server_shutdown_and_notify(server->handle, server->drain_queue, NULL);
        grpc_completion_queue_next(server->drain_queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        grpc_server_destroy(server->handle);
        for (int i = 0; i < server->queue_count; i++)
            finish_queue(server->queues[i]);
        finish_queue(server->drain_queue);
    }
    release_server(server);
}

static struct tarn_status *open_server(struct tarn_wire_server *server,
                                       const struct tarn_wire_server_options *options)
{
    TARN_TRY(tarn_wire__reflection_new(options->descriptors, &server->reflection));
    TARN_TRY(tarn_wire__tls_open(options, &server->tls, &server->credentials));
    server->handle = make_handle(options, server->message_max);
    make_queues(server, options->queue_threads);
    return add_port(server, options->listen);
}

struct tarn_status *tarn_wire_server_start(const struct tarn_wire_server_options *options,
                                           const struct tarn_wire_method *methods,
                                           size_t method_count, struct tarn_wire_server **out)
{
    tarn_wire_init();
    struct tarn_wire_server *server = tarn_calloc(1, sizeof *server);
    server->exec = options->exec;
    server->message_max =
        options->message_max_bytes > 0 ? options->message_max_bytes : TARN_WIRE_MESSAGE_MAX;
    server->admit = options->admit;
    server->admit_self = options->admit_self;
    server->methods = tarn_map_new();
    pthread_mutex_init(&server->watch_lock, NULL);
    atomic_store(&server->serving, true);
    copy_services(server, options->services);

    struct tarn_status *status = open_server(server, options);
    if (status != NULL) {
        abandon_server(server);
        return status;
    }
    add_methods(server, methods, method_count);
    start_queues(server);
    *out = server;
    return TARN_OK;
}

const char *tarn_wire_server_address(const struct tarn_wire_server *server)
{
    return server->address;
}

void tarn_wire_server_set_serving(struct tarn_wire_server *server, bool serving)
{
    atomic_store(&server->serving, serving);
    tarn_wire__watch_wake_all(server);
}

static bool wait_drained(struct tarn_wire_server *server, int64_t ms)
{
    gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                      gpr_time_from_millis(ms < 0 ? 0 : ms, GPR_TIMESPAN));
    return grpc_completion_queue_next(server->drain_queue, until, NULL).type == GRPC_OP_COMPLETE;
}

/* gRPC is done when the connections are; methods may still run, and need the queues to the end. */
static void wait_calls(struct tarn_wire_server *server)
{
    int64_t nag_ms = tarn_clock_mono_ms() + DRAIN_NAG_MS;
    while (atomic_load(&server->call_count) != 0) {
        usleep(500);
        if (tarn_clock_mono_ms() < nag_ms)
            continue;
        tarn_log(NULL, TARN_WARN, "server.drain", "calls_running=%d",
                 atomic_load(&server->call_count));
        nag_ms += DRAIN_NAG_MS;
    }
}

void tarn_wire_server_drain(struct tarn_wire_server *server, int64_t grace_ms)
{
    if (server->drained)
        return;
    server->drained = true;
    atomic_store(&server->serving, false);
    atomic_store(&server->draining, true); /* Watch streams end with this */
    tarn_wire__watch_wake_all(server);
    tarn_wire__detached_end_all(server);
    grpc_server_shutdown_and_notify(server->handle, server->drain_queue, NULL);

    tarn_exec_wait_begin();
    if (!wait_drained(server, grace_ms)) {
        grpc_server_cancel_all_calls(server->handle); /* their ops are cancelled with that */
        while (!wait_drained(server, DRAIN_NAG_MS))
            tarn_log(NULL, TARN_WARN, "server.drain", "connections=open");
    }
    wait_calls(server);
    tarn_exec_wait_end();
}

void tarn_wire_server_free(struct tarn_wire_server *server)
{
    if (server == NULL)
        return;
    tarn_wire_server_drain(server, 0);
    for (int i = 0; i < server->queue_count; i++)
        grpc_completion_queue_shutdown(server->queues[i]);
    for (int i = 0; i < server->queue_count; i++)
        pthread_join(server->threads[i], NULL);
    grpc_server_destroy(server->handle);
    for (int i = 0; i < server->queue_count; i++)
        grpc_completion_queue_destroy(server->queues[i]);
    finish_queue(server->drain_queue);
    release_server(server);
}
