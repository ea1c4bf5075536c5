#include "http/http.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/listener.h>
#include <event2/thread.h>

/*
 * An exchange goes loop thread -> job -> loop thread. The job knows nothing of libevent: it fills
 * status and body, and puts the exchange on the list `ready`. A connection that closes meanwhile
 * takes its request with it (on_closed), and the answer is thrown away.
 */

struct exchange {
    struct exchange *next;
    struct tarn_http *http;
    struct evhttp_request *request; /* loop thread only; NULL: its connection has closed */
    struct evhttp_connection *connection;
    const char *path; /* static: one of the routes */
    int status;
    const char *type;
    struct tarn_buf body;
};

struct tarn_http {
    struct tarn_http_options options;
    char *address;
    struct event_base *base;
    struct evhttp *server;
    struct event *wake;
    int pipe[2];
    pthread_t thread;
    int exchange_count; /* loop thread only */

    pthread_mutex_t lock; /* guards what follows */
    struct exchange *ready;
    bool stopping;
};

/* --- answers: jobs --- */

static void answer_ready(struct exchange *x)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    const char *why;
    x->status = tarn_service_is_ready(&op, x->http->options.service, &why) ? 200 : 503;
    tarn_buf_printf(&x->body, "%s\n", why);
}

static void make_answer(void *arg)
{
    struct exchange *x = arg;
    struct tarn_http *http = x->http;
    x->status = 200;
    x->type = "text/plain; charset=utf-8";
    if (strcmp(x->path, "/healthz") == 0) {
        tarn_buf_add_str(&x->body, "ok\n");
    } else if (strcmp(x->path, "/readyz") == 0) {
        answer_ready(x);
    } else {
        x->type = "text/plain; version=0.0.4; charset=utf-8";
        tarn_metrics_print(&x->body);
    }
    pthread_mutex_lock(&http->lock);
    x->next = http->ready;
    http->ready = x;
    ssize_t ignored TARN_UNUSED = write(http->pipe[1], "", 1); /* full: awake already */
    pthread_mutex_unlock(&http->lock);
}

/* --- the loop thread --- */

static void count_request(int status)
{
    char text[16];
    snprintf(text, sizeof text, "%d", status);
    tarn_metric_add(TARN_M_HTTP_REQUESTS, text, 1);
}

static void send_text(struct evhttp_request *request, int status, const char *type,
                      struct tarn_slice body)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    evhttp_add_header(headers, "Content-Type", type);
    evhttp_add_header(headers, "Cache-Control", "no-store");
    struct evbuffer *out = evbuffer_new();
    if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
        evbuffer_add(out, body.data, body.size);
    evhttp_send_reply(request, status, NULL, out);
    evbuffer_free(out);
    count_request(status);
}

static void send_error(struct evhttp_request *request, int status, const char *text)
{
    send_text(request, status, "text/plain; charset=utf-8", tarn_slice_str(text));
}

static void on_closed(struct evhttp_connection *connection TARN_UNUSED, void *arg)
{
    struct exchange *x = arg;
    x->request = NULL;
    x->connection = NULL;
}

static void finish(struct exchange *x)
{
    if (x->request != NULL) {
        evhttp_connection_set_closecb(x->connection, NULL, NULL);
        send_text(x->request, x->status, x->type, tarn_buf_slice(&x->body));
    }
    x->http->exchange_count--;
    tarn_buf_drop(&x->body);
    free(x);
}

static void on_wake(evutil_socket_t fd, short what TARN_UNUSED, void *arg)
{
    struct tarn_http *http = arg;
    char bytes[64];
    while (read(fd, bytes, sizeof bytes) > 0)
        ;
    pthread_mutex_lock(&http->lock);
    struct exchange *ready = http->ready;
    http->ready = NULL;
    bool stopping = http->stopping;
    pthread_mutex_unlock(&http->lock);
    while (ready != NULL) {
        struct exchange *next = ready->next;
        finish(ready);
        ready = next;
    }
    if (stopping && http->exchange_count == 0)
        event_base_loopbreak(http->base);
}

static const char *find_route(const struct tarn_http *http, const char *path)
{
    static const char *const routes[] = {"/healthz", "/readyz", "/metrics"};
    size_t count = TARN_COUNT_OF(routes) - (http->options.metrics ? 0 : 1);
    for (size_t i = 0; i < count; i++)
        if (path != NULL && strcmp(path, routes[i]) == 0)
            return routes[i];
    return NULL;
}

static void on_request(struct evhttp_request *request, void *arg)
{
    struct tarn_http *http = arg;
    enum evhttp_cmd_type command = evhttp_request_get_command(request);
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *route = find_route(http, uri == NULL ? NULL : evhttp_uri_get_path(uri));
    if (route == NULL) {
        send_error(request, 404, "there is nothing here; see /metrics, /healthz, /readyz\n");
    } else if (command != EVHTTP_REQ_GET && command != EVHTTP_REQ_HEAD) {
        evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET, HEAD");
        send_error(request, 405, "GET it\n");
    } else if (http->exchange_count >= TARN_HTTP_EXCHANGES_MAX) {
        send_error(request, 503, "too many requests at once\n");
    } else {
        struct exchange *x = tarn_calloc(1, sizeof *x);
        x->http = http;
        x->request = request;
        x->connection = evhttp_request_get_connection(request);
        x->path = route;
        evhttp_connection_set_closecb(x->connection, on_closed, x);
        http->exchange_count++;
        tarn_exec_post(http->options.exec, make_answer, x);
    }
}

static void *run_loop(void *arg)
{
    struct tarn_http *http = arg;
    tarn_exec_mark_loop_thread();
    event_base_dispatch(http->base);
    return NULL;
}

/* --- starting --- */

static struct tarn_status *split_address(const char *listen, struct tarn_arena *arena,
                                         const char **host, const char **port)
{
    const char *colon = strrchr(listen, ':');
    if (colon == NULL || colon == listen || colon[1] == '\0')
        return tarn_status_new(TARN_CONFIG_INVALID, "server.http_listen = %s; want HOST:PORT",
                               listen);
    struct tarn_slice name = tarn_slice_of(listen, (size_t)(colon - listen));
    if (name.size > 2 && name.data[0] == '[' && name.data[name.size - 1] == ']')
        name = tarn_slice_of(name.data + 1, name.size - 2);
    *host = tarn_arena_str(arena, name);
    *port = colon + 1;
    return TARN_OK;
}

static int open_socket(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, 128) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static struct tarn_status *listen_at(const char *listen, int *out)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    const char *host = NULL, *port = NULL;
    TARN_TRY(split_address(listen, arena, &host, &port));
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    int error = getaddrinfo(host, port, &hints, &found);
    if (error != 0)
        return tarn_status_new(TARN_CONFIG_INVALID, "server.http_listen = %s: %s", listen,
                               gai_strerror(error));
    int fd = open_socket(found);
    error = errno;
    freeaddrinfo(found);
    *out = fd;
    if (fd >= 0)
        return TARN_OK;
    return error == EADDRINUSE
               ? tarn_status_new(TARN_ADDRESS_IN_USE, "another process listens at %s", listen)
               : tarn_status_new(TARN_CONFIG_INVALID, "can't listen at %s: %s", listen,
                                 strerror(error));
}

static char *real_address(int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0 ||
        getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return tarn_strdup("");
    return tarn_format(strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

static void make_loop(struct tarn_http *http, int fd)
{
    evthread_use_pthreads();
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    http->base = event_base_new_with_config(config);
    event_config_free(config);
    tarn_assert(http->base != NULL && pipe2(http->pipe, O_CLOEXEC | O_NONBLOCK) == 0);
    http->wake = event_new(http->base, http->pipe[0], EV_READ | EV_PERSIST, on_wake, http);
    event_add(http->wake, NULL);
    http->server = evhttp_new(http->base);
    evhttp_set_max_headers_size(http->server, TARN_HTTP_HEADERS_MAX);
    evhttp_set_max_body_size(http->server, TARN_HTTP_BODY_MAX);
    evhttp_set_timeout(http->server, TARN_HTTP_IDLE_S);
    evhttp_set_gencb(http->server, on_request, http);
    tarn_assert(evhttp_accept_socket(http->server, fd) == 0);
}

struct tarn_status *tarn_http_start(const struct tarn_http_options *options, struct tarn_http **out)
{
    int fd;
    TARN_TRY(listen_at(options->listen, &fd));
    struct tarn_http *http = tarn_calloc(1, sizeof *http);
    http->options = *options;
    http->address = real_address(fd);
    pthread_mutex_init(&http->lock, NULL);
    make_loop(http, fd);
    tarn_assert(pthread_create(&http->thread, NULL, run_loop, http) == 0);
    *out = http;
    return TARN_OK;
}

const char *tarn_http_address(const struct tarn_http *http)
{
    return http->address;
}

void tarn_http_stop(struct tarn_http *http)
{
    if (http == NULL)
        return;
    pthread_mutex_lock(&http->lock);
    http->stopping = true;
    ssize_t ignored TARN_UNUSED = write(http->pipe[1], "", 1);
    pthread_mutex_unlock(&http->lock);
    pthread_join(http->thread, NULL);
    evhttp_free(http->server);
    event_free(http->wake);
    event_base_free(http->base);
    close(http->pipe[0]);
    close(http->pipe[1]);
    pthread_mutex_destroy(&http->lock);
    free(http->address);
    free(http);
}
