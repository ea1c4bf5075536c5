#include "http/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

/*
 * One client's bytes.
 *
 *   SHAKING --TLS--> IDLE --byte--> HEAD --whole--+------- no body, or it is here -------> RUNNING --answer--> WRITING
 *                     ^                           |                                          ^                 |
 *                     |                           +--> ADMITTING --let in--> BODY --whole ---+                 |
 *                     |                                    `-------- refused ------------------------------> + |
 *                     +-------------------------------- keep-alive ------------------------------------------+-+
 *                                                                         the last one: LINGERING <------------+
 *
 * Whatever may close the connection is called last: `c` is not looked at after it.
 */

#define INPUT_MAX (64 << 10) /* bytes that wait to be read; more stay in the socket */
#define LINGER_MS 2000
#define LINGER_SIZE_MAX (1 << 20)
#define COPY_SIZE_MAX (4 << 10) /* a smaller rest of an answer is copied into the output buffer */

_Static_assert(INPUT_MAX > TARN_HTTP_HEAD_MAX, "a head fits");

static void read_head(struct tarn_http__connection *c);

static void enter(struct tarn_http__connection *c, enum tarn_http__state state)
{
    c->state = state;
    c->since_ms = c->seen_ms = tarn_clock_mono_ms();
    c->moved = c->seen = 0;
}

static struct tarn_slice front_of(struct evbuffer *buffer, size_t size)
{
    uint8_t *data = evbuffer_pullup(buffer, (ssize_t)size);
    tarn_assert(data != NULL || size == 0);
    return tarn_slice_of(data, size);
}

/* --- to the pool --- */

static void post(struct tarn_http__connection *c, enum tarn_http__state state, tarn_job_fn fn)
{
    enter(c, state);
    if (tarn_http__loop_post(c->exchange, fn))
        return;
    c->exchange->closes = state == TARN_HTTP_ADMITTING; /* its body is not read */
    tarn_http__exchange_turn_away(c->exchange, "jobs");
    tarn_http__loop_give_back(
        c->exchange); /* not at once: thousands of pipelined ones would nest */
}

static void refuse(struct tarn_http__connection *c, struct tarn_status *consumed, int http_status)
{
    struct tarn_http__exchange *x = c->exchange;
    x->refusal = consumed;
    x->refusal_http = http_status;
    post(c, TARN_HTTP_RUNNING, tarn_http__exchange_run);
}

/* --- body --- */

static struct tarn_status *take_body(struct tarn_http__connection *c, bool *done)
{
    struct tarn_http__exchange *x = c->exchange;
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t size, taken;
    *done = false;
    while (!*done && (size = evbuffer_get_contiguous_space(in)) > 0) {
        if (!tarn_http__exchange_charge(x, size)) {
            tarn_metric_add(TARN_M_HTTP_REFUSED, "memory", 1);
            return tarn_status_new(TARN_UNAVAILABLE, "too many large requests at once");
        }
        TARN_TRY(tarn_http__body_take(&c->body, front_of(in, size), &x->body, &taken, done));
        evbuffer_drain(in, taken);
        c->moved += taken;
    }
    return TARN_OK;
}

static void read_body(struct tarn_http__connection *c)
{
    bool done;
    struct tarn_status *s = take_body(c, &done);
    if (s != TARN_OK) {
        c->exchange->closes = true;
        refuse(c, s, 0);
    } else if (done) {
        post(c, TARN_HTTP_RUNNING, tarn_http__exchange_run);
    } else if (c->input_ended) {
        tarn_http__connection_close(c);
    }
}

/* A body that is here already is taken; one that must be waited for is read when its sender was let in. */
static void begin_body(struct tarn_http__connection *c)
{
    bool done;
    struct tarn_http__exchange *x = c->exchange;
    tarn_http__body_init(&c->body, &x->head, x->route->given.body_max);
    struct tarn_status *s = take_body(c, &done);
    x->closes = s != TARN_OK;
    if (s != TARN_OK)
        refuse(c, s, 0);
    else if (done)
        post(c, TARN_HTTP_RUNNING, tarn_http__exchange_run);
    else
        post(c, TARN_HTTP_ADMITTING, tarn_http__exchange_admit);
}

static void go_on_with_body(struct tarn_http__connection *c)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct tarn_http__exchange *x = c->exchange;
    enter(c, TARN_HTTP_BODY);
    if (x->head.expects_continue && x->body.size == 0 &&
        evbuffer_get_length(bufferevent_get_input(c->bev)) == 0)
        bufferevent_write(c->bev, go_on, sizeof go_on - 1);
    read_body(c);
}

/* --- head --- */

static struct tarn_status *understand(struct tarn_http__exchange *x, uint8_t *text, size_t size,
                                      int *http)
{
    struct tarn_http__head *head = &x->head;
    struct tarn_http_request *request = &x->request;
    struct tarn_arena *arena = x->op.arena;
    x->closes = true; /* where the body ends isn't known */
    struct tarn_status *s = tarn_http__head_parse(text, size, arena, head, http);
    if (head->request_id.size > 0) {
        memcpy(x->op.request_id, head->request_id.data, head->request_id.size);
        x->op.request_id[head->request_id.size] = '\0';
    }
    request->method = head->method;
    const uint8_t *query =
        head->target.size == 0 ? NULL : memchr(head->target.data, '?', head->target.size);
    request->path = head->target; /* until it is understood */
    if (query != NULL)
        request->path.size = (size_t)(query - head->target.data);
    request->headers = head->headers;
    request->header_count = head->header_count;
    TARN_TRY(s);
    TARN_TRY(tarn_http__target_parse(head->target, arena, request, http));
    x->closes = head->has_body;
    TARN_TRY(tarn_http__routes_find(x->http->routes, arena, request, &x->route, &x->allow, http));
    if (!head->is_chunked && head->length > x->route->given.body_max)
        return tarn_status_new(TARN_TOO_LARGE, "the body exceeds %zu bytes",
                               x->route->given.body_max);
    x->closes = false;
    return TARN_OK;
}

static void begin_exchange(struct tarn_http__connection *c, struct tarn_status *s, size_t size,
                           int http)
{
    struct tarn_http__exchange *x = tarn_http__exchange_new(c);
    struct evbuffer *in = bufferevent_get_input(c->bev);
    c->exchange = x;
    c->scanned = 0;
    if (s == TARN_OK) {
        uint8_t *text = tarn_arena_alloc(x->op.arena, size);
        evbuffer_remove(in, text, size);
        s = understand(x, text, size, &http);
    } else {
        x->closes = true;
    }
    if (s != TARN_OK)
        refuse(c, s, http);
    else if (x->head.has_body)
        begin_body(c);
    else
        post(c, TARN_HTTP_RUNNING, tarn_http__exchange_run);
}

static void read_head(struct tarn_http__connection *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t have = evbuffer_get_length(in), size = 0;
    if (have > 0 && c->state == TARN_HTTP_IDLE)
        enter(c, TARN_HTTP_HEAD);
    int http = 0;
    struct tarn_slice text = front_of(in, TARN_MIN(have, (size_t)TARN_HTTP_HEAD_MAX + 1));
    struct tarn_status *s = tarn_http__head_find(text, &c->scanned, &size, &http);
    if (s != TARN_OK || size > 0)
        begin_exchange(c, s, size, http);
    else if (c->input_ended)
        tarn_http__connection_close(c);
}

/* --- answer --- */

static void linger(struct tarn_http__connection *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    if (c->is_tls)
        tarn_http__tls_say_goodbye(c->bev);
    shutdown(bufferevent_getfd(c->bev), SHUT_WR);
    enter(c, TARN_HTTP_LINGERING);
    evbuffer_drain(in, evbuffer_get_length(in));
}

static void answered(struct tarn_http__connection *c)
{
    struct tarn_http__exchange *x = tarn_move(c->exchange);
    bool closes = x->closes;
    bool is_last = c->loop->is_draining && evbuffer_get_length(bufferevent_get_input(c->bev)) == 0;
    tarn_http__exchange_free(x);
    enter(c, TARN_HTTP_IDLE);
    if (closes && !c->input_ended)
        linger(c);
    else if (closes || is_last)
        tarn_http__connection_close(c);
    else
        read_head(c);
}

static void free_body(const void *data TARN_UNUSED, size_t size TARN_UNUSED, void *arg)
{
    free(arg);
}

static void queue(struct evbuffer *out, struct tarn_buf *bytes, size_t sent)
{
    if (bytes->size - sent <= COPY_SIZE_MAX) {
        evbuffer_add(out, bytes->data + sent, bytes->size - sent);
        return;
    }
    evbuffer_add_reference(out, bytes->data + sent, bytes->size - sent, free_body, bytes->data);
    *bytes = (struct tarn_buf){0};
}

/* What the socket takes at once; the rest goes the long way, through the loop. -1: it is broken. */
static ssize_t send_at_once(struct tarn_http__connection *c, const struct tarn_http__exchange *x)
{
    struct iovec pieces[2] = {
        {x->answer_head.data, x->answer_head.size},
        {x->response.body.data, x->response.body.size},
    };
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = x->has_answer_body ? 2 : 1};
    ssize_t sent = sendmsg(bufferevent_getfd(c->bev), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}

static void write_answer(struct tarn_http__connection *c)
{
    struct tarn_http__exchange *x = c->exchange;
    struct evbuffer *out = bufferevent_get_output(c->bev);
    size_t body_size = x->has_answer_body ? x->response.body.size : 0;
    ssize_t sent = 0;
    enter(c, TARN_HTTP_WRITING);
    if (!c->is_tls && evbuffer_get_length(out) == 0)
        sent = send_at_once(c, x);
    if (sent < 0) {
        tarn_http__connection_close(c);
        return;
    }
    size_t head_sent = TARN_MIN((size_t)sent, x->answer_head.size);
    size_t body_sent = (size_t)sent - head_sent;
    if (head_sent + body_sent == x->answer_head.size + body_size) {
        answered(c);
        return;
    }
    tarn_op_fini(&x->op); /* a slow client holds up its answer, and nothing else */
    if (head_sent < x->answer_head.size)
        queue(out, &x->answer_head, head_sent);
    if (body_sent < body_size)
        queue(out, &x->response.body, body_sent);
    c->unsent = evbuffer_get_length(out);
}

void tarn_http__connection_returned(struct tarn_http__exchange *x)
{
    if (x->is_answered)
        write_answer(x->connection);
    else
        go_on_with_body(x->connection);
}

/* --- what libevent tells --- */

static void on_read(struct bufferevent *bev, void *arg)
{
    struct tarn_http__connection *c = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    if (c->state == TARN_HTTP_IDLE || c->state == TARN_HTTP_HEAD) {
        read_head(c);
    } else if (c->state == TARN_HTTP_BODY) {
        read_body(c);
    } else if (c->state == TARN_HTTP_LINGERING) {
        c->moved += evbuffer_get_length(in);
        evbuffer_drain(in, evbuffer_get_length(in));
        if (c->moved > LINGER_SIZE_MAX)
            tarn_http__connection_close(c);
    }
}

static void on_written(struct bufferevent *bev TARN_UNUSED, void *arg)
{
    struct tarn_http__connection *c = arg;
    if (c->state == TARN_HTTP_WRITING)
        answered(c);
}

static bool is_with_job(const struct tarn_http__connection *c)
{
    return c->state == TARN_HTTP_ADMITTING || c->state == TARN_HTTP_RUNNING;
}

static void on_event(struct bufferevent *bev TARN_UNUSED, short what, void *arg)
{
    struct tarn_http__connection *c = arg;
    if (what & BEV_EVENT_CONNECTED) {
        enter(c, TARN_HTTP_IDLE);
        return;
    }
    if (c->state == TARN_HTTP_SHAKING)
        tarn_metric_add(TARN_M_HTTP_REFUSED, "tls", 1);
    c->input_ended = true;
    bool waits = is_with_job(c) || c->state == TARN_HTTP_WRITING;
    if (!(what & BEV_EVENT_EOF) || !waits)
        tarn_http__connection_close(c);
}

/* --- time --- */

/* Of body or answer. */
static uint64_t bytes_moved(const struct tarn_http__connection *c)
{
    return c->state == TARN_HTTP_WRITING
               ? c->unsent - evbuffer_get_length(bufferevent_get_output(c->bev))
               : c->moved;
}

/* Nothing moves for long, or all of it too slowly. */
static int64_t pace_deadline(struct tarn_http__connection *c, int64_t now_ms)
{
    uint64_t moved = bytes_moved(c);
    int64_t stall_ms = c->loop->http->options.stall_ms;
    if (moved != c->seen) {
        c->seen = moved;
        c->seen_ms = now_ms;
    }
    int64_t at_least = c->since_ms + stall_ms + (int64_t)(moved * 1000 / TARN_HTTP_RATE_MIN);
    return TARN_MIN(at_least, c->seen_ms + stall_ms);
}

static int64_t deadline(struct tarn_http__connection *c, int64_t now_ms)
{
    const struct tarn_http_options *options = &c->loop->http->options;
    switch (c->state) {
    case TARN_HTTP_SHAKING:
    case TARN_HTTP_HEAD:
        return c->since_ms + options->head_ms;
    case TARN_HTTP_IDLE:
        return c->since_ms + options->idle_ms;
    case TARN_HTTP_BODY:
    case TARN_HTTP_WRITING:
        return pace_deadline(c, now_ms);
    case TARN_HTTP_LINGERING:
        return c->since_ms + LINGER_MS;
    default: /* the op has its own */
        return INT64_MAX;
    }
}

static void too_slow(struct tarn_http__connection *c)
{
    if (c->exchange == NULL)
        c->exchange = tarn_http__exchange_new(c);
    c->exchange->closes = true;
    refuse(c, tarn_status_new(TARN_DEADLINE_EXCEEDED, "the request came too slowly"), 408);
}

void tarn_http__connection_tick(struct tarn_http__connection *c, int64_t now_ms)
{
    if (now_ms < deadline(c, now_ms))
        return;
    if (c->state != TARN_HTTP_IDLE && c->state != TARN_HTTP_LINGERING)
        tarn_metric_add(TARN_M_HTTP_REFUSED, "time", 1);
    if (c->state == TARN_HTTP_HEAD || c->state == TARN_HTTP_BODY)
        too_slow(c);
    else
        tarn_http__connection_close(c);
}

/* --- beginning and end --- */

/* Without reading what it asks: a client that knows 503 tries again. */
static void turn_away(struct tarn_http__loop *loop, int fd)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
                               "Content-Length: 0\r\nConnection: close\r\n\r\n";
    tarn_metric_add(TARN_M_HTTP_REFUSED, "connections", 1);
    if (loop->http->tls == NULL) {
        ssize_t ignored TARN_UNUSED = send(fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        shutdown(fd, SHUT_WR);
    }
    close(fd);
}

/* Closes the one that has been idle for longest; false: none is. */
static bool make_room(struct tarn_http__loop *loop)
{
    struct tarn_http__connection *idlest = NULL;
    for (struct tarn_http__connection *c = loop->connections; c != NULL; c = c->next)
        if (c->state == TARN_HTTP_IDLE && (idlest == NULL || c->since_ms < idlest->since_ms))
            idlest = c;
    if (idlest != NULL)
        tarn_http__connection_close(idlest);
    return idlest != NULL;
}

static struct bufferevent *open_bufferevent(struct tarn_http__loop *loop, int fd)
{
    if (loop->http->tls != NULL)
        return tarn_http__tls_accept(loop->http->tls, loop->base, fd);
    return bufferevent_socket_new(loop->base, fd, BEV_OPT_CLOSE_ON_FREE);
}

void tarn_http__connection_open(struct tarn_http__loop *loop, int fd, const char *peer)
{
    struct tarn_http *http = loop->http;
    int max = TARN_MAX(http->options.connection_max / http->loop_count, 1);
    if (loop->connection_count >= max && !make_room(loop)) {
        turn_away(loop, fd);
        return;
    }
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct bufferevent *bev = open_bufferevent(loop, fd);
    if (bev == NULL)
        return;
    struct tarn_http__connection *c = tarn_calloc(1, sizeof *c);
    c->loop = loop;
    c->bev = bev;
    c->is_tls = http->tls != NULL;
    memcpy(c->peer, peer, sizeof c->peer);
    enter(c, c->is_tls ? TARN_HTTP_SHAKING : TARN_HTTP_IDLE);
    tarn_http__loop_add(loop, c);
    bufferevent_setcb(bev, on_read, on_written, on_event, c);
    bufferevent_setwatermark(bev, EV_READ, 0, INPUT_MAX);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

void tarn_http__connection_close(struct tarn_http__connection *c)
{
    struct tarn_http__exchange *x = c->exchange;
    if (x != NULL && is_with_job(c)) {
        x->connection = NULL;
        tarn_op_cancel(&x->op);
    } else {
        tarn_http__exchange_free(x);
    }
    if (c->is_tls && c->state != TARN_HTTP_SHAKING && c->state != TARN_HTTP_LINGERING)
        tarn_http__tls_say_goodbye(c->bev);
    tarn_http__loop_remove(c->loop, c);
    bufferevent_free(c->bev);
    free(c);
}
