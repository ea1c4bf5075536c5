#include "http/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/listener.h>

/*
 * A loop is a thread with the connections that were given to it. Others reach it through its inbox: a list under a
 * lock, and an eventfd that is written when the list was empty. The first loop accepts for all of them.
 */

#define TICK_MS 100 /* how late a time-out may be noticed */

/* --- inbox: from other threads --- */

void tarn_http__loop_wake(struct tarn_http__loop *loop)
{
    ssize_t ignored TARN_UNUSED = write(loop->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
}

void tarn_http__loop_give_back(struct tarn_http__exchange *x)
{
    struct tarn_http__loop *loop = x->loop;
    pthread_mutex_lock(&loop->lock);
    bool was_empty = loop->returned == NULL;
    x->next = loop->returned;
    loop->returned = x;
    if (was_empty) /* under the lock: the loop may end, and close it, as soon as it has this exchange */
        tarn_http__loop_wake(loop);
    pthread_mutex_unlock(&loop->lock);
}

bool tarn_http__loop_post(struct tarn_http__exchange *x, tarn_job_fn fn)
{
    struct tarn_http *http = x->http;
    if (atomic_load(&http->job_count) >= http->options.job_max)
        return false;
    atomic_fetch_add(&http->job_count, 1);
    x->loop->job_count++;
    x->is_posted = true;
    tarn_exec_post(http->options.exec, fn, x);
    return true;
}

/* --- the thread --- */

static void start_ticks(struct tarn_http__loop *loop)
{
    struct timeval tick = {0, TICK_MS * 1000};
    event_add(loop->tick, &tick);
}

void tarn_http__loop_add(struct tarn_http__loop *loop, struct tarn_http__connection *c)
{
    c->next = loop->connections;
    if (c->next != NULL)
        c->next->previous = c;
    loop->connections = c;
    if (loop->connection_count++ == 0)
        start_ticks(loop);
    tarn_http__count_connections(loop->http, 1);
}

void tarn_http__loop_remove(struct tarn_http__loop *loop, struct tarn_http__connection *c)
{
    if (c->next != NULL)
        c->next->previous = c->previous;
    *(c->previous == NULL ? &loop->connections : &c->previous->next) = c->next;
    loop->connection_count--;
    tarn_http__count_connections(loop->http, -1);
}

static void take_returned(struct tarn_http__loop *loop, struct tarn_http__exchange *x)
{
    while (x != NULL) {
        struct tarn_http__exchange *next = x->next;
        x->next = NULL;
        if (x->is_posted) {
            x->is_posted = false;
            loop->job_count--;
            atomic_fetch_sub(&loop->http->job_count, 1);
        }
        if (x->connection == NULL)
            tarn_http__exchange_free(x);
        else
            tarn_http__connection_returned(x);
        x = next;
    }
}

static void close_connections(struct tarn_http__loop *loop, bool only_idle)
{
    for (struct tarn_http__connection *c = loop->connections, *next; c != NULL; c = next) {
        next = c->next;
        if (!only_idle || c->state == TARN_HTTP_IDLE || c->state == TARN_HTTP_SHAKING)
            tarn_http__connection_close(c);
    }
}

static void open_accepted(struct tarn_http__loop *loop, struct tarn_http__accepted *list,
                          size_t count, bool is_stopping)
{
    for (size_t i = 0; i < count; i++) {
        if (is_stopping)
            close(list[i].fd);
        else
            tarn_http__connection_open(loop, list[i].fd, list[i].peer);
    }
    free(list);
}

static void begin_drain(struct tarn_http__loop *loop)
{
    loop->is_draining = true;
    if (loop->listener != NULL) {
        evconnlistener_free(loop->listener);
        loop->listener = NULL;
        tarn_http__port_closed(loop->http);
    }
    close_connections(loop, true);
}

static void on_wake(evutil_socket_t fd, short what TARN_UNUSED, void *arg)
{
    struct tarn_http__loop *loop = arg;
    uint64_t ignored_count;
    ssize_t ignored TARN_UNUSED = read(fd, &ignored_count, sizeof ignored_count);
    pthread_mutex_lock(&loop->lock);
    struct tarn_http__exchange *returned = loop->returned;
    struct tarn_http__accepted *accepted = loop->accepted;
    size_t accepted_count = loop->accepted_count;
    bool is_stopping = loop->is_stopping;
    loop->returned = NULL;
    loop->accepted = NULL;
    loop->accepted_count = loop->accepted_capacity = 0;
    pthread_mutex_unlock(&loop->lock);

    take_returned(loop, returned);
    open_accepted(loop, accepted, accepted_count, is_stopping);
    if (atomic_load(&loop->http->is_draining) && !loop->is_draining)
        begin_drain(loop);
    if (is_stopping)
        close_connections(loop, false);
    if (is_stopping && loop->job_count == 0)
        event_base_loopbreak(loop->base);
}

static void on_tick(evutil_socket_t fd TARN_UNUSED, short what TARN_UNUSED, void *arg)
{
    struct tarn_http__loop *loop = arg;
    int64_t now = tarn_clock_mono_ms();
    for (struct tarn_http__connection *c = loop->connections, *next; c != NULL; c = next) {
        next = c->next;
        tarn_http__connection_tick(c, now);
    }
    if (loop->listener_paused && loop->listener != NULL)
        evconnlistener_enable(loop->listener);
    loop->listener_paused = false;
    if (loop->connection_count == 0)
        event_del(loop->tick);
}

static void *run_loop(void *arg)
{
    struct tarn_http__loop *loop = arg;
    pthread_setname_np(pthread_self(), "tarn-http");
    tarn_exec_mark_loop_thread();
    event_base_dispatch(loop->base);
    return NULL;
}

/* --- accepting --- */

static void print_peer(const struct sockaddr *address, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(out, size, "%s:%u", host, (unsigned)ntohs(v4->sin_port));
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)address;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(out, size, "[%s]:%u", host, (unsigned)ntohs(v6->sin6_port));
    } else {
        snprintf(out, size, "%s", host);
    }
}

static void on_accept(struct evconnlistener *listener TARN_UNUSED, evutil_socket_t fd,
                      struct sockaddr *address, int size TARN_UNUSED, void *arg)
{
    struct tarn_http__loop *mine = arg;
    struct tarn_http *http = mine->http;
    struct tarn_http__loop *loop = &http->loops[http->next_loop++ % http->loop_count];
    struct tarn_http__accepted accepted = {.fd = fd};
    print_peer(address, accepted.peer, sizeof accepted.peer);
    if (loop == mine) {
        tarn_http__connection_open(loop, fd, accepted.peer);
        return;
    }
    pthread_mutex_lock(&loop->lock);
    TARN_GROW(loop->accepted, loop->accepted_count, loop->accepted_capacity);
    loop->accepted[loop->accepted_count++] = accepted;
    tarn_http__loop_wake(loop);
    pthread_mutex_unlock(&loop->lock);
}

/* Descriptors ran out: those who wait are taken when a tick has passed, instead of at once and again. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
    struct tarn_http__loop *loop = arg;
    tarn_metric_add(TARN_M_HTTP_REFUSED, "descriptors", 1);
    evconnlistener_disable(listener);
    loop->listener_paused = true;
    start_ticks(loop);
}

void tarn_http__loop_listen(struct tarn_http__loop *loop, int fd)
{
    loop->listener = evconnlistener_new(loop->base, on_accept, loop,
                                        LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    tarn_assert(loop->listener != NULL);
    evconnlistener_set_error_cb(loop->listener, on_accept_error);
}

/* --- beginning and end: the server's thread --- */

static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK); /* others only write to the eventfd */
    event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    tarn_assert(base != NULL);
    return base;
}

void tarn_http__loop_init(struct tarn_http *http, struct tarn_http__loop *loop)
{
    loop->http = http;
    loop->base = new_base();
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tarn_assert(loop->wake_fd >= 0);
    pthread_mutex_init(&loop->lock, NULL);
    loop->wake = event_new(loop->base, loop->wake_fd, EV_READ | EV_PERSIST, on_wake, loop);
    loop->tick = event_new(loop->base, -1, EV_PERSIST, on_tick, loop);
    event_add(loop->wake, NULL);
}

void tarn_http__loop_start(struct tarn_http__loop *loop)
{
    tarn_assert(pthread_create(&loop->thread, NULL, run_loop, loop) == 0);
}

void tarn_http__loop_stop(struct tarn_http__loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    loop->is_stopping = true;
    tarn_http__loop_wake(loop);
    pthread_mutex_unlock(&loop->lock);
    pthread_join(loop->thread, NULL);
    event_free(loop->wake);
    event_free(loop->tick);
    if (loop->listener != NULL)
        evconnlistener_free(loop->listener);
    event_base_free(loop->base);
    close(loop->wake_fd);
    pthread_mutex_destroy(&loop->lock);
}
