/* A server of room http with routes made for tests, and a client that sends what it is told to, byte by byte. */
#ifndef TARN_TEST_HTTP_FIXTURE_H
#define TARN_TEST_HTTP_FIXTURE_H

#include "http/http.h"
#include "test/lib/test.h"

/*
 * GET  /t/{a}/of/{b}   "a=[..] b=[..] q=[k=v,..]"          GET  /t/fixed/of/{b}   "fixed"
 * POST /echo           the body (at most 1 MB)             GET  /big?n=           n bytes of text
 * GET  /wait           waits for http_open_gate; 499 when it was cancelled
 * GET  /fail?reason=   that status                         GET  /who              the principal
 * /echo and /who ask for the token "sesame" where `f.wants_token` is set.
 */
struct http_fixture {
    struct tarn_exec *exec;
    struct tarn_service service;
    struct tarn_http_options options; /* changed before http_start */
    struct tarn_http *http;
    bool wants_token;
    struct tarn_gate *gate;
    atomic_int waiting, cancelled, handled;
};
void http_init(struct http_fixture *f); /* fills options */
void http_start(struct http_fixture *f);
void http_fini(struct http_fixture *f);

int http_dial(struct http_fixture *f);
void http_send(int fd, struct tarn_slice bytes);
void http_send_str(int fd, const char *text);
/* One answer with its body, as text; "" where the connection was closed before. HEAD: `no_body`. */
const char *http_receive(struct tarn_test *t, int fd, bool no_body);
const char *http_receive_all(struct tarn_test *t, int fd); /* until the other side closes */
/* On a connection of its own: sends, receives one answer. */
const char *http_ask(struct tarn_test *t, struct http_fixture *f, const char *request);
const char *http_get(struct tarn_test *t, struct http_fixture *f, const char *target);
const char *http_body(const char *answer);
bool http_is_closed(int fd); /* within ten seconds */
void http_await(atomic_int *counter, int at_least);
void http_expect(const char *answer, int status, const char *part);

#endif
