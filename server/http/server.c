#include "http/internal.h"

#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- the port --- */

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
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, 1024) == 0)
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

/* --- beginning --- */

static void fill_in_defaults(struct tarn_http_options *options)
{
    if (options->connection_max == 0)
        options->connection_max = TARN_HTTP_CONNECTIONS_MAX;
    if (options->job_max == 0)
        options->job_max = TARN_HTTP_JOBS_MAX;
    if (options->memory_max == 0)
        options->memory_max = TARN_HTTP_MEMORY_MAX;
    if (options->idle_ms == 0)
        options->idle_ms = TARN_HTTP_IDLE_MS;
    if (options->head_ms == 0)
        options->head_ms = TARN_HTTP_HEAD_MS;
    if (options->stall_ms == 0)
        options->stall_ms = TARN_HTTP_STALL_MS;
}

/* One moves some ten thousand small answers a second; the cores are for those who make them. */
static int choose_loop_count(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return (int)TARN_MIN(TARN_MAX(cores / 4, 1L), (long)TARN_HTTP_LOOPS_MAX);
}

static void make_routes(struct tarn_http *http)
{
    const struct tarn_http_options *options = &http->options;
    http->routes = tarn_http__routes_new();
    tarn_http__health_routes(http->routes, options->service, options->metrics);
    for (size_t i = 0; i < options->route_count; i++)
        tarn_http__routes_add(http->routes, &options->routes[i]);
    tarn_http__routes_sort(http->routes);
    http->options.routes = NULL; /* the caller's */
}

static void init_locks(struct tarn_http *http)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&http->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&http->lock, NULL);
}

struct tarn_status *tarn_http_check_tls(const struct tarn_http_options *options)
{
    struct tarn_http__tls *tls;
    TARN_TRY(tarn_http__tls_open(options, &tls));
    tarn_http__tls_free(tls);
    return TARN_OK;
}

struct tarn_status *tarn_http_start(const struct tarn_http_options *options, struct tarn_http **out)
{
    int fd;
    struct tarn_http__tls *tls;
    TARN_TRY(tarn_http__tls_open(options, &tls));
    struct tarn_status *s = listen_at(options->listen, &fd);
    if (s != TARN_OK) {
        tarn_http__tls_free(tls);
        return s;
    }
    struct tarn_http *http = tarn_calloc(1, sizeof *http);
    http->options = *options;
    http->tls = tls;
    http->address = real_address(fd);
    http->loop_count = choose_loop_count();
    http->is_listening = true;
    fill_in_defaults(&http->options);
    make_routes(http);
    init_locks(http);
    for (int i = 0; i < http->loop_count; i++)
        tarn_http__loop_init(http, &http->loops[i]);
    tarn_http__loop_listen(&http->loops[0], fd);
    for (int i = 0; i < http->loop_count; i++)
        tarn_http__loop_start(&http->loops[i]);
    *out = http;
    return TARN_OK;
}

const char *tarn_http_address(const struct tarn_http *http)
{
    return http->address;
}

struct tarn_status *tarn_http_reload_tls(struct tarn_http *http)
{
    return http->tls == NULL ? TARN_OK : tarn_http__tls_reload(http->tls);
}

void tarn_http__count_connections(struct tarn_http *http, int more)
{
    pthread_mutex_lock(&http->lock);
    http->connection_count += more;
    tarn_metric_set(TARN_M_HTTP_CONNECTIONS, NULL, http->connection_count);
    pthread_cond_broadcast(&http->changed);
    pthread_mutex_unlock(&http->lock);
}

void tarn_http__port_closed(struct tarn_http *http)
{
    pthread_mutex_lock(&http->lock);
    http->is_listening = false;
    pthread_cond_broadcast(&http->changed);
    pthread_mutex_unlock(&http->lock);
}

/* --- end --- */

void tarn_http_drain(struct tarn_http *http, int64_t grace_ms)
{
    if (http == NULL)
        return;
    tarn_assert_may_wait();
    atomic_store(&http->is_draining, true);
    for (int i = 0; i < http->loop_count; i++)
        tarn_http__loop_wake(&http->loops[i]);
    int64_t until_ns = tarn_clock_mono_ns() + grace_ms * 1000000;
    struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    tarn_exec_wait_begin();
    pthread_mutex_lock(&http->lock);
    while ((http->is_listening || http->connection_count > 0) && grace_ms > 0)
        if (pthread_cond_timedwait(&http->changed, &http->lock, &until) != 0)
            break;
    pthread_mutex_unlock(&http->lock);
    tarn_exec_wait_end();
}

void tarn_http_stop(struct tarn_http *http)
{
    if (http == NULL)
        return;
    tarn_http_drain(http, 0);
    for (int i = 0; i < http->loop_count; i++)
        tarn_http__loop_stop(&http->loops[i]);
    tarn_http__tls_free(http->tls);
    tarn_http__routes_free(http->routes);
    pthread_cond_destroy(&http->changed);
    pthread_mutex_destroy(&http->lock);
    free(http->address);
    free(http);
}
