/*
 * Promise: nothing a client sends, or doesn't, costs more than http.h says: sizes, counts, connections, requests at once,
 * memory and time have limits, those within them are answered meanwhile, and who was turned away may come again.
 */
#include "fixture.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *repeat(struct tarn_test *t, const char *front, const char *piece, int count,
                          const char *back)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_buf_add_str(&text, front);
    for (int i = 0; i < count; i++)
        tarn_buf_add_str(&text, piece);
    tarn_buf_add_str(&text, back);
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}

static void expect_limit(struct tarn_test *t, struct http_fixture *f, const char *front,
                         const char *piece, int fit, int status, const char *part)
{
    const char *end =
        strstr(front, "HTTP/1.1") == NULL ? " HTTP/1.1\r\nHost: x\r\n\r\n" : "\r\n\r\n";
    const char *good = http_ask(t, f, repeat(t, front, piece, fit, end));
    expect_null(strstr(good, "HTTP/1.1 4"));
    expect_not_null(strstr(good, "HTTP/1.1 200"));
    int fd = http_dial(f);
    http_send_str(fd, repeat(t, front, piece, fit + 1, end));
    http_expect(http_receive(t, fd, false), status, part);
    close(fd);
}

TARN_TEST(http_limits, heads)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    expect_limit(t, &f, "GET /healthz HTTP/1.1\r\nHost: x", "\r\nX: y", TARN_HTTP_HEADERS_MAX - 1,
                 431, "more than 100 headers");
    /* "GET /healthz?" and the rest of the line are not part of the target's 8 kB */
    expect_limit(t, &f, "GET /healthz?", "x", TARN_HTTP_TARGET_MAX - 9, 414, "exceed 8192 bytes");
    expect_limit(t, &f, "GET /t/fixed/of/", "x", TARN_HTTP_TARGET_MAX - 12, 414, "exceed 8192");
    expect_limit(t, &f, "GET /healthz?a", "&a", TARN_HTTP_QUERY_MAX - 1, 414, "64 parameters");
    int fd = http_dial(&f);
    http_send_str(fd, repeat(t, "GET ", "/x", 33, " HTTP/1.1\r\nHost: x\r\n\r\n"));
    http_expect(http_receive(t, fd, false), 414, "32 segments");
    close(fd);
    /* whole and endless heads */
    int size = TARN_HTTP_HEAD_MAX - (int)strlen("GET /healthz HTTP/1.1\r\nHost: x\r\nX: \r\n\r\n");
    expect_limit(t, &f, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: ", "x", size, 431, "exceed 32768");
    fd = http_dial(&f);
    http_send_str(fd, repeat(t, "GET /healthz HTTP/1.1\r\n", "Host: x\r\n", 100000, ""));
    http_expect(http_receive_all(t, fd), 431, "");
    close(fd);
    fd = http_dial(&f);
    http_send_str(fd, repeat(t, "", "x", 1 << 20, ""));
    http_expect(http_receive_all(t, fd), 431, "");
    close(fd);
}

TARN_TEST(http_limits, bodies)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    const char *half = repeat(t, "", "0123456789abcdef", 1 << 15, "");
    const char *head = "POST /echo HTTP/1.1\r\nHost: x\r\n";
    const char *good = http_ask(
        t, &f,
        tarn_arena_printf(t->arena, "%sContent-Length: 1048576\r\n\r\n%s%s", head, half, half));
    expect_int(strlen(http_body(good)), 1 << 20);
    good = http_ask(
        t, &f,
        tarn_arena_printf(
            t->arena, "%sTransfer-Encoding: chunked\r\n\r\n80000\r\n%s\r\n80000\r\n%s\r\n0\r\n\r\n",
            head, half, half));
    expect_int(strlen(http_body(good)), 1 << 20);
    int fd = http_dial(&f);
    http_send_str(fd,
                  tarn_arena_printf(t->arena, "%sContent-Length: 1048577\r\n\r\n%s", head, half));
    http_expect(http_receive_all(t, fd), 413, "exceeds 1048576 bytes");
    close(fd);
    fd = http_dial(&f);
    http_send_str(fd, tarn_arena_printf(t->arena,
                                        "%sTransfer-Encoding: chunked\r\n\r\n"
                                        "80000\r\n%s\r\n80000\r\n%s\r\n1\r\n",
                                        head, half, half));
    http_expect(http_receive_all(t, fd), 413, "exceeds 1048576 bytes");
    close(fd);
    fd = http_dial(&f); /* said at once, before any of it has come */
    http_send_str(
        fd, tarn_arena_printf(t->arena, "%sTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", head));
    http_expect(http_receive(t, fd, false), 413, "");
    close(fd);
    const char *trailers = repeat(t, "", "X: y\r\n", 2000, "\r\n");
    http_expect(http_ask(t, &f,
                         tarn_arena_printf(t->arena, "%sTransfer-Encoding: chunked\r\n\r\n0\r\n%s",
                                           head, trailers)),
                400, "trailers are too long");
    expect_int(atomic_load(&f.handled), 2);
}

TARN_TEST(http_limits, large_answers_arrive_whole)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    int fd = http_dial(&f);
    for (int i = 0; i < 3; i++) {
        http_send_str(fd, "GET /big?n=9000000 HTTP/1.1\r\nHost: x\r\n\r\n");
        usleep(20000); /* the socket is full */
        const char *body = http_body(http_receive(t, fd, false));
        expect_int(strlen(body), 9000000);
        for (int64_t at = 0; at < 9000000; at += 99733)
            expect_int(body[at], "0123456789abcdef"[at * at / 7 % 16]);
    }
    http_send_str(fd, "HEAD /big?n=9000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    http_expect(http_receive(t, fd, true), 200, "Content-Length: 9000000\r\n");
    close(fd);
}

TARN_TEST(http_limits, connections)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    f.options.connection_max = 3;
    http_start(&f);
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = http_dial(&f);
        http_send_str(fds[i], "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    http_await(&f.waiting, 3);
    int fd = http_dial(&f);
    http_expect(http_receive_all(t, fd), 503, "Retry-After: 1\r\n");
    close(fd);
    tarn_gate_open(f.gate);
    for (int i = 0; i < 3; i++)
        http_expect(http_receive(t, fds[i], false), 200, "waited");
    /* Now they are idle: whoever comes takes the place of the one that is so for longest. */
    http_expect(http_get(t, &f, "/healthz"), 200, "ok");
    int closed = 0;
    for (int i = 0; i < 3; i++) {
        char byte;
        closed += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
    }
    expect_int(closed, 1);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

TARN_TEST(http_limits, requests_at_once)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    f.options.job_max = 2;
    http_start(&f);
    int fds[2];
    for (int i = 0; i < 2; i++) {
        fds[i] = http_dial(&f);
        http_send_str(fds[i], "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    http_await(&f.waiting, 2);
    int fd = http_dial(&f);
    for (int i = 0; i < 3; i++) { /* the connection may stay */
        http_send_str(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        http_expect(http_receive(t, fd, false), 503, "Retry-After: 1\r\n");
    }
    for (int i = 0; i < 3000; i++) /* sent ahead, more than is read ahead: one after the other */
        http_send_str(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 3000; i++)
        http_expect(http_receive(t, fd, false), 503, "too many requests at once");
    http_send_str(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
    http_expect(http_receive(t, fd, false), 503, "");
    tarn_gate_open(f.gate);
    for (int i = 0; i < 2; i++)
        http_expect(http_receive(t, fds[i], false), 200, "waited");
    http_send_str(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    http_expect(http_receive(t, fd, false), 200, "ok");
    close(fd), close(fds[0]), close(fds[1]);
}

/* Bodies that are being read and answers that are being taken count together. */
TARN_TEST(http_limits, memory)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    f.options.memory_max = 8 << 20;
    http_start(&f);
    int slow = http_dial(&f);
    http_send_str(slow, "GET /big?n=16000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_int(recv(slow, &(char){0}, 1, MSG_PEEK),
               1); /* it is there, and larger than sockets are */
    const char *post = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    http_expect(http_ask(t, &f, post), 503, "Retry-After: 1\r\n");
    http_expect(http_get(t, &f, "/healthz"), 200, "ok");
    close(slow);
    for (int i = 0; i < 1000 && strstr(http_ask(t, &f, post), " 200 ") == NULL; i++)
        usleep(10000);
    http_expect(http_ask(t, &f, post), 200, "hello");
}

/* --- time --- */

static int64_t closed_after_ms(int fd)
{
    int64_t begun = tarn_clock_mono_ms();
    return http_is_closed(fd) ? tarn_clock_mono_ms() - begun : -1;
}

TARN_TEST(http_limits, slow_heads_and_idle_connections)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    f.options.head_ms = 300;
    f.options.idle_ms = 900;
    http_start(&f);
    int fresh = http_dial(&f), served = http_dial(&f), drip = http_dial(&f);
    http_send_str(served, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    http_expect(http_receive(t, served, false), 200, "ok");
    int64_t begun = tarn_clock_mono_ms();
    char answer[16] = "";
    http_send_str(drip, "GET /healthz HTTP/1.1\r\nX: ");
    while (recv(drip, answer, 12, MSG_DONTWAIT | MSG_PEEK) < 12 &&
           tarn_clock_mono_ms() - begun < 5000) {
        http_send_str(drip, "x"); /* always something new, and never an end */
        usleep(10000);
    }
    http_expect(http_receive(t, drip, false), 408, "Connection: close\r\n");
    int64_t took = tarn_clock_mono_ms() - begun;
    expect_true(took >= 300 && took < 3000);
    int64_t idle = closed_after_ms(fresh);
    expect_true(idle >= 0 && tarn_clock_mono_ms() - begun >= 800);
    expect_true(closed_after_ms(served) >= 0);
    close(fresh), close(served), close(drip);
}

TARN_TEST(http_limits, slow_bodies)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    f.options.stall_ms = 400;
    http_start(&f);
    int slow = http_dial(&f), steady = http_dial(&f);
    http_send_str(slow, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
    http_send_str(steady, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 24000\r\n\r\n");
    char piece[1200];
    memset(piece, 'x', sizeof piece);
    for (int i = 0; i < 20;
         i++) { /* 24 kB/s for a second: longer than the grace, and fast enough */
        http_send(steady, tarn_slice_of(piece, sizeof piece));
        http_send_str(slow, "y");
        usleep(50000);
    }
    http_expect(http_receive(t, steady, false), 200, "xxxx");
    http_expect(http_receive(t, slow, false), 408, "too slowly");
    close(slow), close(steady);
}

TARN_TEST(http_limits, answers_nobody_takes)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    f.options.stall_ms = 300;
    http_start(&f);
    int fd = http_dial(&f);
    http_send_str(fd, "GET /big?n=16000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    usleep(100000);
    int64_t begun = tarn_clock_mono_ms();
    const char *metrics = "";
    for (int i = 0; i < 3000; i++) {
        metrics = http_get(t, &f, "/metrics");
        if (strstr(metrics, "\ntarn_http_connections 1\n") != NULL)
            break;
        usleep(10000);
    }
    expect_contains(metrics, "\ntarn_http_connections 1\n");
    expect_contains(metrics, "tarn_http_refused_total{limit=\"time\"}");
    expect_true(tarn_clock_mono_ms() - begun < 20000);
    close(fd);
}
