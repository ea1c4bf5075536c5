/*
 * Promise: the three paths answer as http.h says, everything else is refused without a thread or
 * memory being lost to it, and stopping waits for nobody but running answers.
 */
#include "http/http.h"
#include "test/lib/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    struct tarn_exec *exec;
    struct tarn_service service;
    struct tarn_http *http;
};

static void fixture_init(struct fixture *f, bool metrics)
{
    memset(f, 0, sizeof *f);
    f->exec = tarn_exec_new(2, 8);
    struct tarn_http_options options = {"127.0.0.1:0", f->exec, &f->service, metrics};
    expect_ok(tarn_http_start(&options, &f->http));
}

static void fixture_fini(struct fixture *f)
{
    tarn_http_stop(f->http);
    tarn_exec_free(f->exec);
}

static int dial(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    expect_int(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* All that comes back until the other side closes. */
static const char *ask(struct tarn_test *t, struct fixture *f, struct tarn_slice request)
{
    int fd = dial(tarn_http_address(f->http));
    size_t sent = 0;
    while (sent < request.size) {
        ssize_t n = send(fd, request.data + sent, request.size - sent, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    TARN_OWN(tarn_buf_drop) struct tarn_buf answer = {0};
    char chunk[4096];
    ssize_t n;
    while ((n = recv(fd, chunk, sizeof chunk, 0)) > 0)
        tarn_buf_add(&answer, chunk, (size_t)n);
    close(fd);
    return tarn_arena_str(t->arena, tarn_buf_slice(&answer));
}

static const char *request(struct tarn_test *t, struct fixture *f, const char *method,
                           const char *path)
{
    return ask(
        t, f,
        tarn_slice_str(tarn_arena_printf(
            t->arena, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, path)));
}

static void expect_answer(struct tarn_test *t, struct fixture *f, const char *method,
                          const char *path, int status, const char *body)
{
    const char *answer = request(t, f, method, path);
    expect_contains(answer, tarn_arena_printf(t->arena, "HTTP/1.1 %d ", status));
    expect_contains(answer, body);
}

TARN_TEST(http, answers_its_paths)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, true);
    expect_answer(t, &f, "GET", "/healthz", 200, "\r\n\r\nok\n");
    expect_answer(t, &f, "GET", "/healthz?verbose=1", 200, "ok\n");
    expect_answer(t, &f, "GET", "/readyz", 200, "ready\n");
    expect_answer(t, &f, "GET", "/metrics", 200, "# TYPE tarn_http_requests_total counter");
    expect_answer(t, &f, "GET", "/metrics", 200, "version=0.0.4");
    expect_answer(t, &f, "HEAD", "/healthz", 200, "");
    expect_null(strstr(request(t, &f, "HEAD", "/healthz"), "ok\n"));
    expect_answer(t, &f, "GET", "/", 404, "");
    expect_answer(t, &f, "GET", "/metrics/", 404, "");
    expect_answer(t, &f, "GET", "/../healthz", 404, "");
    expect_answer(t, &f, "POST", "/healthz", 405, "Allow: GET, HEAD");
}

TARN_TEST(http, is_not_ready_while_it_drains)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, false);
    atomic_store(&f.service.draining, true);
    expect_answer(t, &f, "GET", "/readyz", 503, "draining");
    expect_answer(t, &f, "GET", "/healthz", 200, "ok");
    expect_answer(t, &f, "GET", "/metrics", 404, "");
}

TARN_TEST(http, refuses_what_is_too_large_or_no_http)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, true);
    TARN_OWN(tarn_buf_drop) struct tarn_buf big = {0};
    tarn_buf_add_str(&big, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: ");
    for (int i = 0; i < 4 * TARN_HTTP_HEADERS_MAX; i++)
        tarn_buf_add_byte(&big, 'x');
    tarn_buf_add_str(&big, "\r\n\r\n");
    expect_null(strstr(ask(t, &f, tarn_buf_slice(&big)), " 200 "));
    tarn_buf_clear(&big);
    tarn_buf_printf(&big, "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
                    100 * TARN_HTTP_BODY_MAX);
    expect_contains(ask(t, &f, tarn_buf_slice(&big)), " 413 ");
    expect_null(
        strstr(ask(t, &f, tarn_slice_str("\x16\x03\x01 this is no HTTP\r\n\r\n")), " 200 "));
    expect_answer(t, &f, "GET", "/healthz", 200, "ok");
}

/* Clients that go away before their answer; the address sanitizer looks on. */
TARN_TEST(http, outlives_clients_that_hang_up)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, true);
    for (int i = 0; i < 200; i++) {
        int fd = dial(tarn_http_address(f.http));
        static const char text[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        expect_int(send(fd, text, sizeof text - 1, MSG_NOSIGNAL), sizeof text - 1);
        struct linger hard = {1, 0};
        if (i % 2 == 0)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fd);
    }
    int idle = dial(tarn_http_address(f.http)); /* says nothing, and doesn't hold up the stop */
    expect_answer(t, &f, "GET", "/healthz", 200, "ok");
    int64_t begun = tarn_clock_mono_ms();
    tarn_http_stop(tarn_move(f.http));
    expect_true(tarn_clock_mono_ms() - begun < 2000);
    close(idle);
}

TARN_TEST(http, names_an_address_it_can_not_have)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, true);
    struct tarn_http *second = NULL;
    struct tarn_http_options options = {tarn_http_address(f.http), f.exec, &f.service, true};
    expect_status(tarn_http_start(&options, &second), TARN_ADDRESS_IN_USE,
                  tarn_http_address(f.http));
    options.listen = "nonsense";
    expect_status(tarn_http_start(&options, &second), TARN_CONFIG_INVALID, "HOST:PORT");
    options.listen = "no.such.host.invalid:1";
    expect_status(tarn_http_start(&options, &second), TARN_CONFIG_INVALID, "no.such.host");
}
