#include "fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct tarn_status *answer_of(void *self, struct tarn_op *op,
                                     const struct tarn_http_request *request,
                                     struct tarn_http_response *response)
{
    struct tarn_slice a = tarn_http_argument(request, "a"), b = tarn_http_argument(request, "b");
    response->type = "text/plain";
    tarn_buf_printf(&response->body, "a=[%.*s] b=[%.*s] q=[", TARN_SLICE_ARG(a), TARN_SLICE_ARG(b));
    for (size_t i = 0; i < request->query_count; i++)
        tarn_buf_printf(&response->body, "%.*s=%.*s,", TARN_SLICE_ARG(request->query[i].key),
                        TARN_SLICE_ARG(request->query[i].value));
    tarn_buf_printf(&response->body, "] %zu segments of %.*s", request->segment_count,
                    TARN_SLICE_ARG(request->path));
    tarn_http_add_header(op, response, "x-b", b);
    return TARN_OK;
}

static struct tarn_status *answer_fixed(void *self, struct tarn_op *op,
                                        const struct tarn_http_request *request,
                                        struct tarn_http_response *response)
{
    tarn_buf_add_str(&response->body, "fixed");
    return TARN_OK;
}

static struct tarn_status *answer_echo(void *self, struct tarn_op *op,
                                       const struct tarn_http_request *request,
                                       struct tarn_http_response *response)
{
    struct http_fixture *f = self;
    atomic_fetch_add(&f->handled, 1);
    response->type = "text/plain";
    tarn_buf_add_slice(&response->body, request->body);
    return TARN_OK;
}

static struct tarn_status *answer_big(void *self, struct tarn_op *op,
                                      const struct tarn_http_request *request,
                                      struct tarn_http_response *response)
{
    int64_t size;
    TARN_TRY(tarn_parse_i64(tarn_http_query(request, "n"), &size));
    for (int64_t i = 0; i < size; i++)
        tarn_buf_add_byte(&response->body, (uint8_t)("0123456789abcdef"[i * i / 7 % 16]));
    return TARN_OK;
}

static struct tarn_status *answer_wait(void *self, struct tarn_op *op,
                                       const struct tarn_http_request *request,
                                       struct tarn_http_response *response)
{
    struct http_fixture *f = self;
    atomic_fetch_add(&f->waiting, 1);
    while (!tarn_gate_wait(f->gate, op)) {
        atomic_fetch_add(&f->cancelled, 1);
        return tarn_status_new(TARN_CANCELLED, "nobody waits any more");
    }
    tarn_buf_add_str(&response->body, "waited");
    return TARN_OK;
}

static struct tarn_status *answer_fail(void *self, struct tarn_op *op,
                                       const struct tarn_http_request *request,
                                       struct tarn_http_response *response)
{
    char *name = tarn_arena_str(op->arena, tarn_http_query(request, "reason"));
    tarn_buf_add_str(&response->body, "half an answer");
    return tarn_status_new(tarn_reason_find(name), "it failed: \"%s\"", name);
}

static struct tarn_status *answer_who(void *self, struct tarn_op *op,
                                      const struct tarn_http_request *request,
                                      struct tarn_http_response *response)
{
    tarn_buf_printf(&response->body, "principal=%s", op->principal);
    return TARN_OK;
}

static struct tarn_status *admit(void *self, struct tarn_op *op, const char *path,
                                 struct tarn_slice token)
{
    struct http_fixture *f = self;
    op->principal = "somebody";
    return !f->wants_token || tarn_slice_is(token, "sesame")
               ? TARN_OK
               : tarn_status_new(TARN_UNAUTHENTICATED, "this server wants a token");
}

void http_init(struct http_fixture *f)
{
    memset(f, 0, sizeof *f);
    f->exec = tarn_exec_new(2, 40);
    f->gate = tarn_gate_new();
    f->options = (struct tarn_http_options){
        .listen = "127.0.0.1:0",
        .exec = f->exec,
        .service = &f->service,
        .metrics = true,
        .quiet = true,
        .admit = admit,
        .admit_self = f,
    };
    tarn_log_set_level(TARN_ERROR);
}

void http_start(struct http_fixture *f)
{
    const struct tarn_http_route routes[] = {
        {.method = "GET", .pattern = "/t/{a}/of/{b}", .fn = answer_of, .is_open = true},
        {.method = "GET", .pattern = "/t/fixed/of/{b}", .fn = answer_fixed, .is_open = true},
        {.method = "DELETE", .pattern = "/t/{a}/of/{b}", .fn = answer_fixed, .is_open = true},
        {.method = "POST", .pattern = "/echo", .fn = answer_echo, .body_max = 1 << 20},
        {.method = "GET", .pattern = "/big", .fn = answer_big, .is_open = true},
        {.method = "GET", .pattern = "/wait", .fn = answer_wait, .is_open = true},
        {.method = "GET", .pattern = "/fail", .fn = answer_fail, .is_open = true},
        {.method = "GET", .pattern = "/who", .fn = answer_who},
    };
    struct tarn_http_route mine[TARN_COUNT_OF(routes)];
    memcpy(mine, routes, sizeof routes);
    for (size_t i = 0; i < TARN_COUNT_OF(mine); i++)
        mine[i].self = f;
    f->options.routes = mine;
    f->options.route_count = TARN_COUNT_OF(mine);
    expect_ok(tarn_http_start(&f->options, &f->http));
}

void http_fini(struct http_fixture *f)
{
    tarn_http_stop(f->http);
    tarn_exec_free(f->exec);
    tarn_gate_free(f->gate);
}

int http_dial(struct http_fixture *f)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    to.sin_port = htons((uint16_t)atoi(strrchr(tarn_http_address(f->http), ':') + 1));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {10, 0};
    int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    expect_int(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void http_send(int fd, struct tarn_slice bytes)
{
    while (bytes.size > 0) {
        ssize_t n = send(fd, bytes.data, bytes.size, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* refused meanwhile: what came back says so */
        bytes.data += n;
        bytes.size -= (size_t)n;
    }
}

void http_send_str(int fd, const char *text)
{
    http_send(fd, tarn_slice_str(text));
}

/* The size of the whole answer, once its head is there; 0 before. */
static size_t answer_size(struct tarn_buf *answer, bool no_body)
{
    const char *text = tarn_buf_cstr(answer), *end = strstr(text, "\r\n\r\n");
    if (end == NULL)
        return 0;
    const char *length = strcasestr(text, "\r\ncontent-length: ");
    size_t head = (size_t)(end + 4 - text);
    return head + (no_body || length == NULL || length > end ? 0 : strtoul(length + 18, NULL, 10));
}

const char *http_receive(struct tarn_test *t, int fd, bool no_body)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf answer = {0};
    for (size_t whole = 0;;) {
        if (whole == 0)
            whole = answer_size(&answer, no_body);
        if (whole > 0 && answer.size >= whole)
            return tarn_arena_str(t->arena, tarn_buf_slice(&answer));
        char chunk[4096];
        size_t want = whole > 0 ? TARN_MIN(sizeof chunk, whole - answer.size) : 1;
        ssize_t n = recv(fd, chunk, want, 0);
        if (n <= 0)
            return "";
        tarn_buf_add(&answer, chunk, (size_t)n);
    }
}

const char *http_receive_all(struct tarn_test *t, int fd)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf answer = {0};
    char chunk[4096];
    ssize_t n;
    while ((n = recv(fd, chunk, sizeof chunk, 0)) > 0)
        tarn_buf_add(&answer, chunk, (size_t)n);
    expect_int(n, 0); /* closed, neither reset nor silent for ten seconds */
    return tarn_arena_str(t->arena, tarn_buf_slice(&answer));
}

const char *http_ask(struct tarn_test *t, struct http_fixture *f, const char *request)
{
    int fd = http_dial(f);
    http_send_str(fd, request);
    const char *answer = http_receive(t, fd, strncmp(request, "HEAD", 4) == 0);
    close(fd);
    return answer;
}

const char *http_get(struct tarn_test *t, struct http_fixture *f, const char *target)
{
    return http_ask(t, f,
                    tarn_arena_printf(t->arena, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target));
}

const char *http_body(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");
    return end == NULL ? "" : end + 4;
}

bool http_is_closed(int fd)
{
    char chunk[4096];
    ssize_t n;
    while ((n = recv(fd, chunk, sizeof chunk, 0)) > 0)
        ;
    return n == 0;
}

void http_await(atomic_int *counter, int at_least)
{
    for (int i = 0; i < 10000 && atomic_load(counter) < at_least; i++)
        usleep(1000);
    expect_true(atomic_load(counter) >= at_least);
}

void http_expect(const char *answer, int status, const char *part)
{
    char line[32];
    snprintf(line, sizeof line, "HTTP/1.1 %d ", status);
    if (strncmp(answer, line, strlen(line)) != 0)
        expect_unreachable("want %s\"%s\", got \"%s\"", line, part, answer);
    expect_contains(answer, part);
}
