/*
 * Promise: requests reach their route with every part of them decoded once, answers have what http.h says, errors get
 * the door's own body, nobody passes without a token where one is asked for, and stopping waits for running answers only.
 */
#include "fixture.h"

#include <sys/socket.h>
#include <unistd.h>

TARN_TEST(http, answers_its_paths)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    http_expect(http_get(t, &f, "/healthz"), 200, "\r\n\r\nok\n");
    http_expect(http_get(t, &f, "/healthz?verbose=1"), 200, "ok\n");
    http_expect(http_get(t, &f, "/readyz"), 200, "ready\n");
    http_expect(http_get(t, &f, "/metrics"), 200, "# TYPE tarn_http_requests_total counter");
    http_expect(http_get(t, &f, "/metrics"), 200, "version=0.0.4");
    http_expect(http_get(t, &f, "/"), 404, "there is nothing at /");
    http_expect(http_get(t, &f, "/metrics/"), 404, "");
    http_expect(http_get(t, &f, "/../healthz"), 404, "");
    http_expect(http_ask(t, &f, "POST /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), 405,
                "Allow: GET, HEAD\r\n");
    const char *head = http_ask(t, &f, "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    http_expect(head, 200, "Content-Length: 3\r\n");
    expect_str(http_body(head), "");
}

TARN_TEST(http, is_not_ready_while_the_daemon_drains)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    f.options.metrics = false;
    http_start(&f);
    atomic_store(&f.service.draining, true);
    http_expect(http_get(t, &f, "/readyz"), 503, "draining");
    http_expect(http_get(t, &f, "/readyz"), 503, "Retry-After: 1\r\n");
    http_expect(http_get(t, &f, "/healthz"), 200, "ok");
    http_expect(http_get(t, &f, "/metrics"), 404, "");
}

/* The rules of Paimon's clients: '+' and escapes in paths, '$' as %24, '/' in a name as %2F. */
TARN_TEST(http, decodes_each_part_once)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    http_expect(http_get(t, &f, "/t/t+a%2Bb/of/x%20y"), 200, "a=[t a+b] b=[x y] q=[]");
    http_expect(http_get(t, &f, "/t/t%24branch_dev/of/a%2Fb"), 200, "a=[t$branch_dev] b=[a/b]");
    http_expect(http_get(t, &f, "/t/%2e%2e/of/%2525"), 200, "a=[..] b=[%25]");
    http_expect(http_get(t, &f, "/t/%e4%b8%ad/of/~*-._"), 200, "a=[\xe4\xb8\xad] b=[~*-._]");
    http_expect(http_get(t, &f, "/t/a/of/b?warehouse=my%2Bwh%252Fa&x=1+2&&flag&e="), 200,
                "q=[warehouse=my+wh%2Fa,x=1 2,flag=,e=,]");
    http_expect(http_get(t, &f, "/t/a/of/b"), 200, "4 segments of /t/a/of/b");
    http_expect(http_get(t, &f, "http://elsewhere:80/t/a/of/b?c=d"), 200, "of /t/a/of/b");
    http_expect(http_get(t, &f, "http://elsewhere:80?c=/t/a/of/b"), 404, "nothing at /\n");
    http_expect(http_get(t, &f, "/t/a/of/b%0d%0aX-Evil:1"), 200, "\r\nx-b: b??X-Evil:1\r\n");
    http_expect(http_get(t, &f, "/t/fixed/of/b"), 200, "fixed");
    http_expect(http_get(t, &f, "/t//of/b"), 404, "");
    http_expect(http_get(t, &f, "/t/a/of/"), 404, "");
    http_expect(http_ask(t, &f, "PUT /t/a/of/b HTTP/1.1\r\nHost: x\r\n\r\n"), 405,
                "Allow: DELETE, GET, HEAD\r\n");
    static const char *const refused[] = {"/t/%/of/b",
                                          "/t/%4/of/b",
                                          "/t/%zz/of/b",
                                          "/t/a%00/of/b",
                                          "/t/%ff/of/b",
                                          "/t/%c0%80/of/b",
                                          "/t/a/of/b?x=%0",
                                          "/t/a/of/b?%00=",
                                          "/t/a/of/b#c",
                                          "t/a/of/b",
                                          "*"};
    for (size_t i = 0; i < TARN_COUNT_OF(refused); i++)
        http_expect(http_get(t, &f, refused[i]), 400, "malformed URL");
}

static void print_json(void *self, const struct tarn_http_request *request,
                       const struct tarn_status *status, struct tarn_http_response *response)
{
    tarn_buf_printf(&response->body, "{\"message\":\"%s\",\"code\":%d,\"path\":\"%.*s\"}",
                    tarn_status_message(status)[0] == 'i' ? "it" : "other", response->status,
                    TARN_SLICE_ARG(request->path));
}

TARN_TEST(http, errors_have_the_doors_body)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    f.options.print_error = print_json;
    http_start(&f);
    http_expect(http_get(t, &f, "/fail?reason=TABLE_NOT_FOUND"), 404,
                "\r\n\r\n{\"message\":\"it\",\"code\":404,\"path\":\"/fail\"}");
    http_expect(http_get(t, &f, "/fail?reason=TABLE_EXISTS"), 409,
                "Content-Type: application/json");
    http_expect(http_get(t, &f, "/fail?reason=BUSY"), 429, "Retry-After: 1\r\n");
    http_expect(http_get(t, &f, "/nothing"), 404, "{\"message\":\"other\",\"code\":404");
    http_expect(http_ask(t, &f, "nonsense\r\n\r\n"), 400, "\"code\":400,\"path\":\"\"}");
}

TARN_TEST(http, lets_in_who_has_a_token)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    f.wants_token = true;
    http_start(&f);
    http_expect(http_get(t, &f, "/who"), 401, "WWW-Authenticate: Bearer\r\n");
    http_expect(
        http_ask(t, &f, "GET /who HTTP/1.1\r\nHost: x\r\nauthorization: bearer  sesame \r\n\r\n"),
        200, "principal=somebody");
    http_expect(
        http_ask(t, &f, "GET /who HTTP/1.1\r\nHost: x\r\nAuthorization: Basic sesame\r\n\r\n"), 401,
        "wants a token");
    http_expect(http_get(t, &f, "/healthz"), 200, "");

    /* Its body is not even read: the answer comes before it. */
    int fd = http_dial(&f);
    http_send_str(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
    http_expect(http_receive(t, fd, false), 401, "Connection: close\r\n");
    http_send_str(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_true(http_is_closed(fd));
    close(fd);
    expect_int(atomic_load(&f.handled), 0);
}

TARN_TEST(http, every_answer_has_a_request_id)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    http_expect(http_ask(t, &f, "GET /who HTTP/1.1\r\nHost: x\r\nX-Request-Id: abc-1.2_3\r\n\r\n"),
                200, "\r\nx-request-id: abc-1.2_3\r\n");
    static const char *const others[] = {"a b", "a\"b", "",
                                         "0123456789012345678901234567890123456"};
    for (size_t i = 0; i < TARN_COUNT_OF(others); i++) {
        const char *answer = http_ask(
            t, &f,
            tarn_arena_printf(t->arena, "GET /who HTTP/1.1\r\nHost: x\r\nx-request-id: %s\r\n\r\n",
                              others[i]));
        const char *id = strstr(answer, "\r\nx-request-id: ");
        expect_not_null(id);
        expect_true(tarn_uuid_valid(tarn_slice_of(id + 16, 36)));
    }
    http_expect(http_ask(t, &f, "nonsense\r\n\r\n"), 400, "\r\nx-request-id: ");
    http_expect(http_get(t, &f, "/nothing"), 404, "\r\nCache-Control: no-store\r\n");
}

/* A client that ends its sending still gets its answer; one that is reset cancels its op. */
TARN_TEST(http, tells_a_half_closed_client_from_one_that_is_gone)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    int half = http_dial(&f);
    http_send_str(half, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    shutdown(half, SHUT_WR);
    int gone = http_dial(&f);
    http_send_str(gone, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    http_await(&f.waiting, 2);
    struct linger hard = {1, 0};
    setsockopt(gone, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(gone);
    http_await(&f.cancelled, 1);
    tarn_gate_open(f.gate);
    http_expect(http_receive_all(t, half), 200, "waited");
    close(half);
    expect_int(atomic_load(&f.cancelled), 1);
}

/* Clients that go away before their answer; the address sanitizer looks on. */
TARN_TEST(http, outlives_clients_that_hang_up)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    for (int i = 0; i < 200; i++) {
        int fd = http_dial(&f);
        http_send_str(fd, i % 3 == 0
                              ? "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab"
                              : "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        struct linger hard = {1, 0};
        if (i % 2 == 0)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fd);
    }
    int idle = http_dial(&f); /* says nothing, and doesn't hold up the stop */
    http_expect(http_get(t, &f, "/healthz"), 200, "ok");
    int64_t begun = tarn_clock_mono_ms();
    tarn_http_stop(tarn_move(f.http));
    expect_true(tarn_clock_mono_ms() - begun < 2000);
    close(idle);
}

static void drain(void *arg)
{
    struct http_fixture *f = arg;
    tarn_http_drain(f->http, 10000);
    atomic_fetch_add(&f->handled, 1);
}

TARN_TEST(http, drains)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    int idle = http_dial(&f), running = http_dial(&f), begun = http_dial(&f);
    http_send_str(idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    http_expect(http_receive(t, idle, false), 200, "ok");
    http_send_str(begun, "GET /healthz HTTP/1.1\r\nHo");
    http_send_str(running, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    http_await(&f.waiting, 1);
    usleep(50000); /* `begun` is being read */
    tarn_exec_post(f.exec, drain, &f);
    expect_true(http_is_closed(idle));
    http_send_str(begun, "st: x\r\n\r\n");
    http_expect(http_receive_all(t, begun), 200, "Connection: close\r\n");
    expect_int(atomic_load(&f.handled), 0); /* `running` still does */
    tarn_gate_open(f.gate);
    http_expect(http_receive_all(t, running), 200, "Connection: close\r\n");
    http_await(&f.handled, 1);
    close(idle), close(running), close(begun);
}

TARN_TEST(http, a_drain_ends_with_its_grace_and_a_stop_cancels)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    int fd = http_dial(&f);
    http_send_str(fd, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    http_await(&f.waiting, 1);
    int64_t begun = tarn_clock_mono_ms();
    tarn_http_drain(f.http, 200);
    expect_true(tarn_clock_mono_ms() - begun >= 200);
    expect_int(atomic_load(&f.cancelled), 0);
    tarn_http_stop(tarn_move(f.http));
    expect_int(atomic_load(&f.cancelled), 1);
    expect_str(http_receive_all(t, fd), "");
    close(fd);
}

TARN_TEST(http, names_an_address_it_can_not_have)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    struct tarn_http *second = NULL;
    struct tarn_http_options options = f.options;
    options.routes = NULL;
    options.route_count = 0;
    options.listen = tarn_http_address(f.http);
    expect_status(tarn_http_start(&options, &second), TARN_ADDRESS_IN_USE, options.listen);
    options.listen = "nonsense";
    expect_status(tarn_http_start(&options, &second), TARN_CONFIG_INVALID, "HOST:PORT");
    options.listen = "no.such.host.invalid:1";
    expect_status(tarn_http_start(&options, &second), TARN_CONFIG_INVALID, "no.such.host");
}

/* The access log: whoever reads it can tell requests from what clients wrote into them. */
TARN_TEST(http, logs_a_line_for_each_request)
{
    TARN_OWN(http_fini) struct http_fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf log = {0};
    const char *path = tarn_arena_printf(t->arena, "%s/log", tarn_test_dir(t));
    http_init(&f);
    f.options.quiet = false;
    http_start(&f);
    fflush(stderr);
    int real = dup(STDERR_FILENO);
    expect_not_null(freopen(path, "w", stderr));
    tarn_log_set_level(TARN_INFO);
    http_ask(t, &f, "GET /who?secret=1 HTTP/1.1\r\nHost: x\r\nx-request-id: mine\r\n\r\n");
    http_ask(t, &f, "GET /n%0aothing\"?secret=2 HTTP/1.1\r\nHost: x\r\n\r\n");
    http_ask(t, &f, "GET /%zz?secret=3 HTTP/1.1\r\nHost: x\r\n\r\n");
    http_ask(t, &f, "GE\x01T / HTTP/1.1\r\n\r\n");
    http_get(t, &f, "/fail?reason=INTERNAL");
    http_get(t, &f, "/healthz");
    tarn_log_set_level(TARN_ERROR);
    fflush(stderr);
    dup2(real, STDERR_FILENO);
    close(real);
    tarn_test_read_file(path, &log);
    const char *text = tarn_buf_cstr(&log);
    expect_contains(
        text, "info http.request req=mine method=\"GET\" path=\"/who\" status=200 bytes=18 ms=");
    expect_contains(text, "principal=\"somebody\" peer=127.0.0.1:");
    expect_contains(text, "path=\"/n%0aothing\\\"\" status=404 ");
    expect_contains(text, "path=\"/%zz\" status=400 ");
    expect_contains(text, "method=\"\" path=\"\" status=400 ");
    expect_contains(text, "warn http.request ");
    expect_null(strstr(text, "secret"));
    expect_null(strstr(text, "healthz"));
}
