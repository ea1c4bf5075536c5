/*
 * fetch: one request gives one answer, whatever its status; no answer is an error that says whether the
 * request may have arrived; what changes something is never sent twice; sizes, times and the op's end hold.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/fetch.h"
#include "test.h"

/* A server that answers the n-th request, over all connections, with the n-th text: NULL hangs until the
 * end of the test, "" closes the connection. */
#define REQUESTS_MAX 64

struct server {
    int listener, port;
    const char *const *answers;
    size_t answer_count;
    int delay_ms;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    size_t request_count, connection_count;
    int running, running_max;
    char *requests[REQUESTS_MAX]; /* raw; owned */
    pthread_t threads[REQUESTS_MAX];
    int sockets[REQUESTS_MAX];
    char url[64];
    struct tarn_fetch *fetch;
};

/* Reads one request whole; false at the end of the connection. */
static bool read_request(int fd, struct tarn_buf *in)
{
    for (;;) {
        const char *text = tarn_buf_cstr(in), *end = strstr(text, "\r\n\r\n");
        const char *length = strcasestr(text, "content-length:");
        size_t body =
            length != NULL && end != NULL && length < end ? strtoul(length + 15, NULL, 10) : 0;
        if (end != NULL && in->size >= (size_t)(end + 4 - text) + body)
            return true;
        char bytes[65536];
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n <= 0)
            return false;
        tarn_buf_add(in, bytes, (size_t)n);
    }
}

static void keep_request(struct server *server, struct tarn_buf *in, size_t *index)
{
    pthread_mutex_lock(&server->lock);
    *index = server->request_count++;
    if (*index < REQUESTS_MAX)
        server->requests[*index] = tarn_slice_dup(tarn_buf_slice(in));
    server->running++;
    server->running_max = TARN_MAX(server->running_max, server->running);
    pthread_mutex_unlock(&server->lock);
    usleep((useconds_t)server->delay_ms * 1000);
    pthread_mutex_lock(&server->lock);
    server->running--;
    pthread_mutex_unlock(&server->lock);
}

struct connection {
    struct server *server;
    int fd;
};

static void *serve_connection(void *arg)
{
    struct connection *connection = arg;
    struct server *server = connection->server;
    struct tarn_buf in = {0};
    size_t index;
    while (read_request(connection->fd, &in)) {
        keep_request(server, &in, &index);
        tarn_buf_clear(&in);
        const char *answer = index < server->answer_count ? server->answers[index] : NULL;
        if (answer == NULL) {
            char byte;
            while (recv(connection->fd, &byte, 1, 0) > 0)
                ;
            break;
        }
        if (answer[0] == '\0')
            break;
        if (send(connection->fd, answer, strlen(answer), MSG_NOSIGNAL) < 0 ||
            strstr(answer, "onnection: close") != NULL)
            break;
    }
    shutdown(connection->fd, SHUT_RDWR);
    tarn_buf_drop(&in);
    free(connection);
    return NULL;
}

static void *serve(void *arg)
{
    struct server *server = arg;
    for (int fd; (fd = accept(server->listener, NULL, NULL)) >= 0;) {
        struct connection *connection = tarn_calloc(1, sizeof *connection);
        *connection = (struct connection){server, fd};
        pthread_mutex_lock(&server->lock);
        server->sockets[server->connection_count] = fd;
        pthread_create(&server->threads[server->connection_count++], NULL, serve_connection,
                       connection);
        pthread_mutex_unlock(&server->lock);
    }
    return NULL;
}

static void server_start(struct server *server, const struct tarn_fetch_options *options,
                         const char *const *answers, size_t answer_count)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    server->answers = answers;
    server->answer_count = answer_count;
    pthread_mutex_init(&server->lock, NULL);
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    expect_int(bind(server->listener, (struct sockaddr *)&address, sizeof address), 0);
    expect_int(listen(server->listener, 64), 0);
    expect_int(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d/a?secret=1", server->port);
    expect_int(pthread_create(&server->thread, NULL, serve, server), 0);
    expect_ok(tarn_fetch_new(options, &server->fetch));
}

static void server_stop(struct server *server)
{
    tarn_fetch_free(server->fetch);
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
    for (size_t i = 0; i < server->connection_count; i++) {
        shutdown(server->sockets[i], SHUT_RDWR);
        pthread_join(server->threads[i], NULL);
        close(server->sockets[i]);
    }
    for (size_t i = 0; i < REQUESTS_MAX; i++)
        free(server->requests[i]);
    pthread_mutex_destroy(&server->lock);
}

static const char ok[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-One:  1 \r\nETag: \"e\"\r\n\r\nok";

static size_t request_count(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    size_t count = server->request_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

static const char *request_text(struct server *server, size_t index)
{
    pthread_mutex_lock(&server->lock);
    const char *text = server->requests[index];
    pthread_mutex_unlock(&server->lock);
    return text;
}

static struct tarn_status *ask(struct tarn_test *t, struct server *server, const char *method,
                               const char *body, struct tarn_buf *answer_body,
                               struct tarn_fetch_answer *answer)
{
    static const char *const headers[] = {"X-Asked: yes", "Content-Type: text/plain"};
    struct tarn_fetch_request request = {
        .method = method,
        .url = server->url,
        .headers = headers,
        .header_count = 2,
        .body = tarn_slice_str(body),
        .answer_max = 1000,
    };
    return tarn_fetch(server->fetch, t->op, &request, answer_body, answer);
}

TARN_TEST(fetch, sends_a_request_and_gives_the_answer)
{
    const char *const answers[] = {ok, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone",
                                   "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Slow\r\n"
                                   "Content-Length: 0\r\nRetry-After: 7\r\n\r\n"};
    struct server server = {0};
    struct tarn_buf body = {0};
    struct tarn_fetch_answer answer;
    server_start(&server, &(struct tarn_fetch_options){0}, answers, 3);

    tarn_buf_add_str(&body, "before ");
    expect_ok(ask(t, &server, "PUT", "12345", &body, &answer));
    expect_int(answer.status, 200);
    expect_true(answer.sent);
    expect_slice(tarn_buf_slice(&body), "before ok");
    expect_slice(tarn_fetch_header(&answer, "x-one"), "1");
    expect_slice(tarn_fetch_header(&answer, "etag"), "\"e\"");
    expect_null(tarn_fetch_header(&answer, "x-two").data);
    expect_contains(request_text(&server, 0), "PUT /a?secret=1 HTTP/1.1\r\n");
    expect_contains(request_text(&server, 0), "X-Asked: yes\r\n");
    expect_contains(request_text(&server, 0), "\r\nContent-Length: 5\r\n");
    expect_contains(request_text(&server, 0), "\r\n\r\n12345");
    expect_null(strstr(request_text(&server, 0), "Expect"));

    expect_ok(ask(t, &server, "GET", NULL, &body, &answer));
    expect_int(answer.status, 404);
    expect_slice(tarn_buf_slice(&body), "before okgone");

    /* No body still has a length; an interim answer is none. */
    expect_ok(ask(t, &server, "POST", NULL, &body, &answer));
    expect_int(answer.status, 503);
    expect_slice(tarn_fetch_header(&answer, "retry-after"), "7");
    expect_contains(request_text(&server, 2), "\r\nContent-Length: 0\r\n");
    expect_int(server.connection_count, 1); /* kept */
    tarn_buf_drop(&body);
    server_stop(&server);
}

TARN_TEST(fetch, a_head_has_no_body)
{
    const char *const answers[] = {"HTTP/1.1 200 OK\r\nContent-Length: 123456\r\n\r\n", ok};
    struct server server = {0};
    struct tarn_buf body = {0};
    struct tarn_fetch_answer answer;
    server_start(&server, &(struct tarn_fetch_options){0}, answers, 2);
    expect_ok(ask(t, &server, "HEAD", NULL, &body, &answer));
    expect_slice(tarn_fetch_header(&answer, "content-length"), "123456");
    expect_int(body.size, 0);
    expect_ok(ask(t, &server, "DELETE", NULL, &body, &answer));
    expect_contains(request_text(&server, 1), "DELETE /a");
    tarn_buf_drop(&body);
    server_stop(&server);
}

TARN_TEST(fetch, what_surely_did_not_arrive_says_so)
{
    struct server server = {0};
    struct tarn_buf body = {0};
    struct tarn_fetch_answer answer;
    server_start(&server, &(struct tarn_fetch_options){0}, NULL, 0);
    shutdown(server.listener, SHUT_RDWR); /* nobody listens any more */
    struct tarn_status *status = ask(t, &server, "PUT", "x", &body, &answer);
    expect_null(strstr(tarn_status_message(status), "secret"));
    expect_status(status, TARN_STORE_UNAVAILABLE, "PUT http://127.0.0.1:");
    expect_false(answer.sent);
    expect_int(answer.status, 0);
    tarn_buf_drop(&body);
    server_stop(&server);
}

TARN_TEST(fetch, a_broken_answer_is_none_and_leaves_no_bytes)
{
    const char *const answers[] = {
        "", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nhalf",
        "nonsense\r\n\r\n"};
    struct server server = {0};
    struct tarn_buf body = {0};
    struct tarn_fetch_answer answer;
    server_start(&server, &(struct tarn_fetch_options){0}, answers, 3);
    for (int i = 0; i < 3; i++) {
        expect_status(ask(t, &server, "PUT", "x", &body, &answer), TARN_STORE_UNAVAILABLE, "PUT");
        expect_true(answer.sent);
        expect_int(answer.status, 0);
        expect_int(body.size, 0);
    }
    tarn_buf_drop(&body);
    server_stop(&server);
}

/* The connection is closed just when the second request comes. */
TARN_TEST(fetch, what_changes_something_is_not_sent_twice)
{
    const char *const answers[] = {ok, "", ok, "", ok};
    struct server server = {0};
    struct tarn_buf body = {0};
    struct tarn_fetch_answer answer;
    server_start(&server, &(struct tarn_fetch_options){0}, answers, 5);
    expect_ok(ask(t, &server, "PUT", "x", &body, &answer));
    expect_status(ask(t, &server, "PUT", NULL, &body, &answer), TARN_STORE_UNAVAILABLE, "closed");
    expect_true(answer.sent);
    expect_int(request_count(&server), 2);
    expect_ok(ask(t, &server, "GET", NULL, &body, &answer));
    expect_ok(ask(t, &server, "GET", NULL, &body, &answer)); /* a read may be */
    expect_int(request_count(&server), 5);
    tarn_buf_drop(&body);
    server_stop(&server);
}

TARN_TEST(fetch, a_large_answer_is_refused)
{
    struct server server = {0};
    struct tarn_buf body = {0}, large = {0};
    struct tarn_fetch_answer answer;
    tarn_buf_add_str(&large, "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n");
    for (int i = 0; i < 1001; i++)
        tarn_buf_add_byte(&large, 'x');
    const char *answers[] = {tarn_buf_cstr(&large)};
    server_start(&server, &(struct tarn_fetch_options){0}, answers, 1);
    expect_status(ask(t, &server, "GET", NULL, &body, &answer), TARN_TOO_LARGE, "1000 bytes");
    expect_int(answer.status, 200);
    expect_int(body.size, 0);
    tarn_buf_drop(&body);
    server_stop(&server);
    tarn_buf_drop(&large);
}

TARN_TEST(fetch, endless_headers_are_refused)
{
    struct server server = {0};
    struct tarn_buf body = {0}, large = {0};
    struct tarn_fetch_answer answer;
    tarn_buf_add_str(&large, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < TARN_FETCH_HEADERS_MAX + 1; i++)
        tarn_buf_printf(&large, "X-%d: y\r\n", i);
    tarn_buf_add_str(&large, "\r\n");
    const char *answers[] = {tarn_buf_cstr(&large)};
    server_start(&server, &(struct tarn_fetch_options){0}, answers, 1);
    expect_status(ask(t, &server, "GET", NULL, &body, &answer), TARN_STORE_UNAVAILABLE, "headers");
    tarn_buf_drop(&body);
    server_stop(&server);
    tarn_buf_drop(&large);
}

TARN_TEST(fetch, a_header_with_a_line_break_is_refused)
{
    static const char *const headers[] = {"X-A: b\r\nX-Injected: c"};
    struct server server = {0};
    struct tarn_buf body = {0};
    struct tarn_fetch_answer answer;
    server_start(&server, &(struct tarn_fetch_options){0}, NULL, 0);
    struct tarn_fetch_request request = {
        .method = "GET", .url = server.url, .headers = headers, .header_count = 1};
    expect_status(tarn_fetch(server.fetch, t->op, &request, &body, &answer), TARN_INVALID_ARGUMENT,
                  "line break");
    expect_false(answer.sent);
    tarn_buf_drop(&body);
    server_stop(&server);
}

TARN_TEST(fetch, no_byte_for_too_long_ends_a_request)
{
    struct server server = {0};
    struct tarn_buf body = {0};
    struct tarn_fetch_answer answer;
    server_start(&server, &(struct tarn_fetch_options){.idle_timeout_ms = 120}, NULL, 0);
    expect_status(ask(t, &server, "PUT", "x", &body, &answer), TARN_STORE_UNAVAILABLE, "no byte");
    expect_true(answer.sent);
    tarn_buf_drop(&body);
    server_stop(&server);
}

static void *cancel_soon(void *op)
{
    usleep(60000);
    tarn_op_cancel(op);
    return NULL;
}

TARN_TEST(fetch, the_ops_end_ends_a_request)
{
    struct server server = {0};
    struct tarn_buf body = {0};
    struct tarn_fetch_answer answer;
    pthread_t canceller;
    server_start(&server, &(struct tarn_fetch_options){0}, NULL, 0);
    t->op->deadline_mono_ms = tarn_clock_mono_ms() + 80;
    expect_status(ask(t, &server, "PUT", "x", &body, &answer), TARN_DEADLINE_EXCEEDED, "");
    expect_true(answer.sent);
    expect_status(ask(t, &server, "PUT", "x", &body, &answer), TARN_DEADLINE_EXCEEDED, "");
    expect_false(answer.sent); /* it was over before it began */

    t->op->deadline_mono_ms = INT64_MAX;
    pthread_create(&canceller, NULL, cancel_soon, t->op);
    struct tarn_status *status = ask(t, &server, "PUT", "x", &body, &answer);
    pthread_join(canceller, NULL);
    expect_status(status, TARN_CANCELLED, "");
    tarn_buf_drop(&body);
    server_stop(&server);
}

TARN_TEST(fetch, many_at_once_each_with_its_own_outcome)
{
    enum { COUNT = 40 };
    const char *answers[COUNT];
    struct tarn_fetch_call calls[COUNT] = {0};
    struct tarn_buf bodies[COUNT] = {0};
    struct server server = {.delay_ms = 20};
    int failed = 0;
    for (int i = 0; i < COUNT; i++)
        answers[i] = i == 7 ? "" : ok;
    server_start(&server, &(struct tarn_fetch_options){0}, answers, COUNT);
    for (int i = 0; i < COUNT; i++) {
        calls[i].request = (struct tarn_fetch_request){
            .method = "PUT", .url = server.url, .body = tarn_slice_str("x")};
        calls[i].body = &bodies[i];
    }
    tarn_fetch_all(server.fetch, t->op, calls, COUNT);
    for (int i = 0; i < COUNT; i++) {
        if (calls[i].status != TARN_OK) {
            expect_status(calls[i].status, TARN_STORE_UNAVAILABLE, "PUT");
            failed++;
            continue;
        }
        expect_int(calls[i].answer.status, 200);
        expect_slice(tarn_buf_slice(&bodies[i]), "ok");
        tarn_buf_drop(&bodies[i]);
    }
    expect_int(failed, 1);
    expect_true(server.running_max > 4);
    expect_true(server.running_max <= TARN_FETCH_LANES_MAX);
    server_stop(&server);
}

struct asker {
    struct server *server;
    int failed;
};

static void *ask_twice(void *arg)
{
    struct asker *asker = arg;
    struct tarn_op op;
    struct tarn_buf body = {0};
    struct tarn_fetch_answer answer;
    tarn_op_init(&op);
    for (int i = 0; i < 2; i++) {
        struct tarn_fetch_request request = {.method = "GET", .url = asker->server->url};
        struct tarn_status *status =
            tarn_fetch(asker->server->fetch, &op, &request, &body, &answer);
        asker->failed += status != TARN_OK || answer.status != 200;
        tarn_status_free(status);
    }
    tarn_buf_drop(&body);
    tarn_op_fini(&op);
    return NULL;
}

TARN_TEST(fetch, threads_share_the_allowed_connections)
{
    enum { COUNT = 12 };
    const char *answers[2 * COUNT];
    struct asker askers[COUNT];
    pthread_t threads[COUNT];
    struct server server = {.delay_ms = 5};
    for (int i = 0; i < 2 * COUNT; i++)
        answers[i] = ok;
    server_start(&server, &(struct tarn_fetch_options){.connection_max = 3}, answers, 2 * COUNT);
    for (int i = 0; i < COUNT; i++) {
        askers[i] = (struct asker){&server, 0};
        pthread_create(&threads[i], NULL, ask_twice, &askers[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
        expect_int(askers[i].failed, 0);
    }
    expect_true(server.running_max <= 3);
    server_stop(&server);
}

TARN_TEST(fetch, other_protocols_are_refused)
{
    struct tarn_fetch *fetch;
    struct tarn_buf body = {0};
    struct tarn_fetch_answer answer;
    struct tarn_fetch_request request = {.method = "GET", .url = "file:///etc/hostname"};
    expect_ok(tarn_fetch_new(&(struct tarn_fetch_options){0}, &fetch));
    expect_status(tarn_fetch(fetch, t->op, &request, &body, &answer), TARN_STORE_UNAVAILABLE,
                  "rotocol");
    expect_false(answer.sent);
    tarn_fetch_free(fetch);
}

TARN_TEST(fetch, urls_are_encoded)
{
    struct tarn_buf out = {0};
    tarn_url_encode(&out, tarn_slice_str("a/b c+d=\xc3\xa9~-._%"), "/");
    expect_slice(tarn_buf_slice(&out), "a/b%20c%2Bd%3D%C3%A9~-._%25");
    tarn_buf_clear(&out);
    tarn_url_encode(&out, tarn_slice_of("a/\0", 3), "");
    expect_slice(tarn_buf_slice(&out), "a%2F%00");
    tarn_buf_drop(&out);
}
