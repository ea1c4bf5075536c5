/*
 * Promise: where a request ends is never guessed. What two readers might split differently is refused and nothing behind
 * it is looked at; what RFC 9112 allows is understood however its bytes arrive, and answered in order.
 */
#include "fixture.h"

#include <sys/socket.h>
#include <unistd.h>

#define HEAD "GET /healthz HTTP/1.1\r\nHost: x\r\n"
#define POST "POST /echo HTTP/1.1\r\nHost: x\r\n"
#define SECOND "GET /t/fixed/of/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

struct bad {
    const char *bytes;
    int status;
};

static const struct bad bad_heads[] = {
    /* the request line */
    {"\r\n\r\n", 400},
    {"GET\r\n\r\n", 400},
    {"GET /healthz\r\n\r\n", 400},
    {"GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"GET /healthz  HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"GET /healthz HTTP/1.1 \r\nHost: x\r\n\r\n", 400},
    {"GET /heal thz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"GET\t/healthz\tHTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"G@T /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"GETGETGETGETGETGETGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"GET /healthz http/1.1\r\nHost: x\r\n\r\n", 400},
    {"GET /healthz HTTP/1\r\nHost: x\r\n\r\n", 400},
    {"GET /healthz HTTP/1.1x\r\nHost: x\r\n\r\n", 400},
    {"GET /healthz HTTP/11\r\nHost: x\r\n\r\n", 400},
    {"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n", 505},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
    {"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"GET /\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"\x16\x03\x01 this is no HTTP", 400}, /* at once: nobody ends its line */
    {" GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    /* lines */
    {"GET /healthz HTTP/1.1\nHost: x\n\n", 400},
    {"GET /healthz HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", 400},
    {HEAD "\n", 400},
    {HEAD "X: a\rb\r\n\r\n", 400},
    {HEAD "X: a\r\r\n\r\n", 400},
    {HEAD "X: a\r\n b\r\n\r\n", 400},
    {HEAD "X: a\r\n\tTransfer-Encoding: chunked\r\n\r\n", 400},
    {"GET /healthz HTTP/1.1\r\n Host: x\r\n\r\n", 400},
    /* headers */
    {HEAD "nonsense\r\n\r\n", 400},
    {HEAD ": x\r\n\r\n", 400},
    {HEAD "X : y\r\n\r\n", 400},
    {HEAD "Content-Length : 5\r\n\r\n", 400},
    {HEAD "X y: z\r\n\r\n", 400},
    {HEAD "X\"y: z\r\n\r\n", 400},
    {HEAD "X: \x01\r\n\r\n", 400},
    {HEAD "X: \x7f\r\n\r\n", 400},
    /* host */
    {"GET /healthz HTTP/1.1\r\n\r\n", 400},
    {HEAD "Host: y\r\n\r\n", 400},
    {HEAD "host: x\r\n\r\n", 400},
    {"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
    {"GET /healthz HTTP/1.1\r\nHost: a,b\r\n\r\n", 400},
    {"GET /healthz HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
    /* framing */
    {POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400},
    {POST "Content-Length: 5\r\ncontent-length: 5\r\n\r\nhello", 400},
    {POST "Content-Length: 5, 5\r\n\r\nhello", 400},
    {POST "Content-Length: +5\r\n\r\nhello", 400},
    {POST "Content-Length: -5\r\n\r\nhello", 400},
    {POST "Content-Length: 0x5\r\n\r\nhello", 400},
    {POST "Content-Length: 5 5\r\n\r\nhello", 400},
    {POST "Content-Length: five\r\n\r\nhello", 400},
    {POST "Content-Length:\r\n\r\nhello", 400},
    {POST "Content-Length: 18446744073709551621\r\n\r\nhello", 400},
    {POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501},
    {POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
    {POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
    {POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", 501},
    {POST "Transfer-Encoding: identity\r\n\r\n", 501},
    {POST "Transfer-Encoding:\r\n\r\n", 501},
    {POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 501},
    {POST "Transfer-Encoding: \x0b"
          "chunked\r\n\r\n0\r\n\r\n",
     400},
    {"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {POST "Content-Encoding: br\r\nContent-Length: 5\r\n\r\nhello", 415},
    {POST "Content-Encoding: gzip, gzip\r\nContent-Length: 5\r\n\r\nhello", 415},
    {POST "Expect: the-unexpected\r\nContent-Length: 5\r\n\r\nhello", 417},
    {HEAD "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400},
    /* chunks */
    {POST "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n-1\r\nhello\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n000000005\r\nhello\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n5;a\x01\r\nhello\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n0\r\n X: y\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n0\r\n\rx", 400},
};

/* One answer, and then the end: what came behind was not taken for a request. */
TARN_TEST(http_framing, refuses_what_may_be_read_in_two_ways)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    for (size_t i = 0; i < TARN_COUNT_OF(bad_heads); i++) {
        int fd = http_dial(&f);
        http_send_str(fd, tarn_arena_printf(t->arena, "%s" SECOND, bad_heads[i].bytes));
        shutdown(fd, SHUT_WR);
        const char *answers = http_receive_all(t, fd);
        char status[32];
        snprintf(status, sizeof status, "HTTP/1.1 %d ", bad_heads[i].status);
        if (strncmp(answers, status, strlen(status)) != 0 ||
            strstr(strstr(answers, "Date: ") + 1, "Date: ") != NULL ||
            strstr(answers, "Connection: close\r\n") == NULL)
            expect_unreachable("%s\nwas answered with\n%s", bad_heads[i].bytes, answers);
        close(fd);
    }
    expect_int(atomic_load(&f.handled), 0);
}

TARN_TEST(http_framing, a_nul_anywhere_is_refused)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    static const char text[] = "GET /healthz HTTP/1.1\r\nHost: x\r\nX: y\r\n\r\n";
    for (size_t i = 0; i < sizeof text - 1; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
        tarn_buf_add(&bytes, text, i);
        tarn_buf_add_byte(&bytes, 0);
        tarn_buf_add(&bytes, text + i, sizeof text - 1 - i);
        int fd = http_dial(&f);
        http_send(fd, tarn_buf_slice(&bytes));
        http_send_str(fd, "\r\n\r\n");
        shutdown(fd, SHUT_WR);
        http_expect(http_receive_all(t, fd), 400, "");
        close(fd);
    }
}

TARN_TEST(http_framing, understands_what_is_allowed)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    static const struct {
        const char *request, *body;
    } good[] = {
        {"\r\nGET /healthz HTTP/1.1\r\nHost:\r\n\r\n", "ok\n"}, /* an older client's stray line */
        {"GET /healthz HTTP/1.1\r\nHOST:x\r\nX:\r\nY: \t z \t\r\nZ: \xff\r\n\r\n", "ok\n"},
        {"GET /healthz HTTP/1.7\r\nHost: [::1]:7421\r\n\r\n", "ok\n"},
        {"GET /healthz HTTP/1.0\r\n\r\n", "ok\n"},
        {POST "Content-Length: 0\r\n\r\n", ""},
        {POST "\r\n", ""},
        {POST "Content-Length: 5\r\n\r\nhello", "hello"},
        {POST "Content-Length: 000005\r\n\r\nhello", "hello"},
        {POST "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", ""},
        {POST "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n02\r\nlo\r\n000\r\n\r\n", "hello"},
        {POST
         "Transfer-Encoding: chunked\r\n\r\nA;x=\"y\"\r\n0123456789\r\n0;z\r\nX: y\r\nZ:\r\n\r\n",
         "0123456789"},
        {POST "Expect: 100-Continue\r\nContent-Length: 5\r\n\r\nhello", "hello"},
        {POST "Content-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", "hello"},
        {"GET /t/fixed/of/b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "fixed"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(good); i++) {
        int fd = http_dial(&f); /* byte by byte, and then in one piece */
        bool stays = strstr(good[i].request, "HTTP/1.0") == NULL;
        for (const char *c = good[i].request; stays && *c != '\0'; c++)
            http_send(fd, tarn_slice_of(c, 1));
        const char *answer = stays ? http_receive(t, fd, false) : NULL;
        if (answer != NULL && strstr(answer, " 100 ") != NULL)
            answer = http_receive(t, fd, false); /* it was slow enough to be told to go on */
        if (stays)
            http_expect(answer, 200, "");
        if (stays)
            expect_str(http_body(answer), good[i].body);
        http_send_str(fd, good[i].request);
        answer = http_receive(t, fd, false);
        http_expect(answer, 200, stays ? "" : "Connection: close\r\n");
        expect_str(http_body(answer), good[i].body);
        close(fd);
    }
}

TARN_TEST(http_framing, answers_in_order_what_was_sent_ahead)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    int fd = http_dial(&f);
    TARN_OWN(tarn_buf_drop) struct tarn_buf all = {0};
    tarn_buf_add_str(&all, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 2000; i++) {
        tarn_buf_printf(&all, POST "Content-Length: 5\r\n\r\n%05d", i);
        if (i % 10 == 0)
            tarn_buf_printf(&all, "GET /nothing/%d HTTP/1.1\r\nHost: x\r\n\r\n", i);
    }
    tarn_buf_add_str(&all, HEAD "Connection: close\r\n\r\n" SECOND);
    struct tarn_slice rest = tarn_buf_slice(&all);
    http_send(fd, tarn_slice_of(rest.data, 40000)); /* more than it reads ahead comes below */
    rest.data += 40000, rest.size -= 40000;
    http_await(&f.waiting, 1);
    expect_int(atomic_load(&f.handled), 0);
    tarn_gate_open(f.gate);
    http_expect(http_receive(t, fd, false), 200, "waited");
    for (int i = 0; i < 2000; i++) {
        size_t piece = TARN_MIN(rest.size, (size_t)150);
        http_send(fd, tarn_slice_of(rest.data, piece));
        rest.data += piece, rest.size -= piece;
        char body[16];
        snprintf(body, sizeof body, "%05d", i);
        expect_str(http_body(http_receive(t, fd, false)), body);
        if (i % 10 == 0)
            http_expect(http_receive(t, fd, false), 404, tarn_arena_printf(t->arena, "/%d\n", i));
    }
    http_send(fd, rest);
    http_expect(http_receive_all(t, fd), 200, "\r\n\r\nok\n");
    close(fd);
}

TARN_TEST(http_framing, keeps_a_connection_as_its_version_says)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    int fd = http_dial(&f);
    http_send_str(fd, "GET /healthz HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
    http_expect(http_receive(t, fd, false), 200, "Connection: keep-alive\r\n");
    http_send_str(fd, HEAD "\r\n");
    expect_null(strstr(http_receive(t, fd, false), "Connection:"));
    http_send_str(fd, HEAD "Connection: foo, Close\r\n\r\n");
    http_expect(http_receive_all(t, fd), 200, "Connection: close\r\n");
    close(fd);
    fd = http_dial(&f);
    http_send_str(fd, "GET /healthz HTTP/1.0\r\n\r\n" HEAD "\r\n");
    expect_str(http_body(http_receive_all(t, fd)), "ok\n");
    close(fd);
}

TARN_TEST(http_framing, a_body_is_asked_for_with_100_continue)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    f.wants_token = true;
    http_start(&f);
    int fd = http_dial(&f);
    http_send_str(fd, POST "Authorization: Bearer sesame\r\nExpect: 100-continue\r\n"
                           "Content-Length: 5\r\n\r\n");
    expect_str(http_receive(t, fd, false), "HTTP/1.1 100 Continue\r\n\r\n");
    http_send_str(fd, "hello");
    http_expect(http_receive(t, fd, false), 200, "\r\n\r\nhello");
    http_send_str(fd, POST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    http_expect(http_receive_all(t, fd), 401, "");
    close(fd);
    fd = http_dial(&f);
    http_send_str(fd, POST "Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n");
    http_expect(http_receive_all(t, fd), 413, "");
    close(fd);
}

/* --- gzip --- */

static void gzip(struct tarn_slice in, struct tarn_buf *out)
{
    expect_ok(tarn_zip_compress(TARN_ZIP_GZIP, 9, in, out));
}

static const char *send_gzipped(struct tarn_test *t, struct http_fixture *f, struct tarn_slice body)
{
    int fd = http_dial(f);
    http_send_str(
        fd, tarn_arena_printf(
                t->arena, POST "Content-Encoding: GZIP\r\nContent-Length: %zu\r\n\r\n", body.size));
    http_send(fd, body);
    const char *answer = http_receive(t, fd, false);
    close(fd);
    return answer;
}

TARN_TEST(http_framing, takes_gzip_up_to_what_it_unzips_to)
{
    TARN_OWN(http_fini) struct http_fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf plain = {0}, small = {0}, bomb = {0};
    http_init(&f);
    http_start(&f);
    for (int i = 0; i < 1 << 20; i++)
        tarn_buf_add_byte(&plain, 'x');
    gzip(tarn_buf_slice(&plain), &small);
    expect_int(strlen(http_body(send_gzipped(t, &f, tarn_buf_slice(&small)))), 1 << 20);
    tarn_buf_add_byte(&plain, 'x');
    gzip(tarn_buf_slice(&plain), &bomb);
    http_expect(send_gzipped(t, &f, tarn_buf_slice(&bomb)), 413, "once it is unzipped");
    http_expect(send_gzipped(t, &f, tarn_slice_of(small.data, small.size - 1)), 400, "the body: ");
    http_expect(send_gzipped(t, &f, tarn_slice_str("hello")), 400, "the body: ");
    tarn_buf_add_byte(&small, 0);
    http_expect(send_gzipped(t, &f, tarn_buf_slice(&small)), 400, "follow the end");
    expect_int(atomic_load(&f.handled), 1);
}

static struct tarn_slice get_raw(struct tarn_test *t, struct http_fixture *f, const char *accept,
                                 const char *target, const char **head)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf answer = {0};
    int fd = http_dial(f);
    http_send_str(fd, tarn_arena_printf(t->arena, "GET %s HTTP/1.0\r\n%s\r\n", target, accept));
    char chunk[4096];
    ssize_t n;
    while ((n = recv(fd, chunk, sizeof chunk, 0)) > 0)
        tarn_buf_add(&answer, chunk, (size_t)n);
    close(fd);
    *head = tarn_arena_str(t->arena, tarn_buf_slice(&answer)); /* to the first NUL */
    size_t size = (size_t)(http_body(*head) - *head);
    return tarn_arena_copy(t->arena, tarn_slice_of(answer.data + size, answer.size - size));
}

TARN_TEST(http_framing, gives_gzip_where_it_is_taken_and_worth_it)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    http_start(&f);
    static const struct {
        const char *accept, *target;
        bool zipped;
    } cases[] = {
        {"Accept-Encoding: gzip\r\n", "/big?n=5000", true},
        {"Accept-Encoding: deflate, X-GZIP;q=0.5 , br\r\n", "/big?n=5000", true},
        {"Accept-Encoding: br\r\nAccept-Encoding: *\r\n", "/big?n=5000", true},
        {"Accept-Encoding: gzip;q=0\r\n", "/big?n=5000", false},
        {"Accept-Encoding: *, gzip;Q=0.000\r\n", "/big?n=5000", false},
        {"Accept-Encoding: identity\r\n", "/big?n=5000", false},
        {"Accept-Encoding:\r\n", "/big?n=5000", false},
        {"", "/big?n=5000", false},
        {"Accept-Encoding: gzip\r\n", "/big?n=1000", false},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        const char *head;
        struct tarn_slice body = get_raw(t, &f, cases[i].accept, cases[i].target, &head);
        TARN_OWN(tarn_buf_drop) struct tarn_buf plain = {0};
        expect_int(strstr(head, "\r\nContent-Encoding: gzip\r\n") != NULL, cases[i].zipped);
        expect_int(strstr(head, "\r\nVary: Accept-Encoding\r\n") != NULL, i < 8);
        expect_ok(tarn_zip_expand(cases[i].zipped ? TARN_ZIP_GZIP : TARN_ZIP_NONE, body, 1 << 20,
                                  &plain));
        expect_int(plain.size, i < 8 ? 5000 : 1000);
    }
}
