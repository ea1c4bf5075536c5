/*
 * http_load - what a call over HTTP costs, and how long it takes.
 *
 *   http_load serve                                            prints its address; until standard input ends
 *   http_load load ADDRESS TARGET CONNECTIONS SECONDS RATE     RATE 0: as fast as the connections go
 *
 * serve is a server of room http with one trivial route, shaped like those of the REST catalog: a token, three arguments,
 * 2 kB of JSON, one access log line a call on standard error. load keeps its connections open and has one call at a time on
 * each. With a rate, calls are due at fixed times and a latency counts from then, also where no connection was free. Prints
 * one line "RESULT http key=value ...".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http.h"

#define SAMPLES_MAX 4000000
#define CONNECTIONS_MAX 4096

static void fail(const char *what)
{
    fprintf(stderr, "http_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- serve --- */

static struct tarn_status *get_table(void *self, struct tarn_op *op,
                                     const struct tarn_http_request *request,
                                     struct tarn_http_response *response)
{
    struct tarn_slice name = tarn_http_argument(request, "table");
    tarn_buf_printf(&response->body, "{\"name\":\"%.*s\",\"fields\":[", TARN_SLICE_ARG(name));
    for (int i = 0; i < 40; i++)
        tarn_buf_printf(&response->body, "{\"id\":%d,\"name\":\"column_%d\",\"type\":\"BIGINT\"},",
                        i, i);
    tarn_buf_add_str(&response->body, "{}]}");
    return TARN_OK;
}

static struct tarn_status *admit(void *self, struct tarn_op *op, const char *path,
                                 struct tarn_slice token)
{
    op->principal = "bench";
    return tarn_slice_is(token, "sesame-sesame") ? TARN_OK
                                                 : tarn_status_new(TARN_UNAUTHENTICATED, "no");
}

static int serve(void)
{
    struct tarn_exec *exec = tarn_exec_new(2, 64);
    const struct tarn_http_route route = {
        .method = "GET",
        .pattern = "/v1/{prefix}/databases/{database}/tables/{table}",
        .fn = get_table,
    };
    struct tarn_http_options options = {.listen = "127.0.0.1:0",
                                        .exec = exec,
                                        .metrics = true,
                                        .routes = &route,
                                        .route_count = 1,
                                        .admit = admit};
    struct tarn_http *http;
    struct tarn_status *s = tarn_http_start(&options, &http);
    if (s != TARN_OK) {
        fprintf(stderr, "http_load: %s\n", tarn_status_message(s));
        return 1;
    }
    printf("%s\n", tarn_http_address(http));
    fflush(stdout);
    while (getchar() != EOF)
        ;
    tarn_http_drain(http, 5000);
    tarn_http_stop(http);
    tarn_exec_free(exec);
    return 0;
}

/* --- load --- */

struct connection {
    int fd;
    int64_t due_ns;
    size_t got, want; /* bytes of the answer; want 0: its head is not whole */
    char head[2048];
};

struct load {
    struct connection connections[CONNECTIONS_MAX];
    int count, free[CONNECTIONS_MAX], free_count;
    int epoll;
    char request[1024];
    size_t request_size;
    int64_t begun_ns, end_ns, interval_ns, next_due_ns;
    int64_t *samples;
    size_t sample_count;
    int64_t bytes;
};

static void dial(struct load *l, int i, const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    int one = 1;
    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        fail(address);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
    l->connections[i].fd = fd;
    l->free[l->free_count++] = i;
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        fail("epoll");
}

static void send_due(struct load *l)
{
    int64_t now = tarn_clock_mono_ns();
    while (l->free_count > 0 && l->next_due_ns <= now && now < l->end_ns) {
        struct connection *c = &l->connections[l->free[--l->free_count]];
        c->due_ns = l->interval_ns == 0 ? now : l->next_due_ns;
        c->got = c->want = 0;
        l->next_due_ns += l->interval_ns;
        if (send(c->fd, l->request, l->request_size, MSG_NOSIGNAL) != (ssize_t)l->request_size)
            fail("send");
    }
}

static void find_size(struct connection *c)
{
    c->head[TARN_MIN(c->got, sizeof c->head - 1)] = '\0';
    const char *end = strstr(c->head, "\r\n\r\n");
    const char *length = strstr(c->head, "Content-Length: ");
    if (end == NULL)
        return;
    if (strncmp(c->head, "HTTP/1.1 200 ", 13) != 0 || length == NULL) {
        fprintf(stderr, "http_load: %.200s\n", c->head);
        exit(1);
    }
    c->want = (size_t)(end + 4 - c->head) + strtoul(length + 16, NULL, 10);
}

static void receive(struct load *l, int i)
{
    static char bytes[65536];
    struct connection *c = &l->connections[i];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
    if (n <= 0)
        fail("the server closed a connection");
    if (c->got < sizeof c->head - 1)
        memcpy(c->head + c->got, bytes, TARN_MIN((size_t)n, sizeof c->head - 1 - c->got));
    c->got += (size_t)n;
    if (c->want == 0)
        find_size(c);
    if (c->want == 0 || c->got < c->want)
        return;
    l->bytes += (int64_t)c->got;
    if (l->sample_count < SAMPLES_MAX)
        l->samples[l->sample_count++] = tarn_clock_mono_ns() - c->due_ns;
    l->free[l->free_count++] = i;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double quantile_ms(const struct load *l, double q)
{
    return (double)l->samples[(size_t)((double)(l->sample_count - 1) * q)] / 1e6;
}

static int load(char **argv)
{
    static struct load l;
    double seconds = atof(argv[3]), rate = atof(argv[4]);
    l.count = atoi(argv[2]);
    l.samples = tarn_calloc(SAMPLES_MAX, sizeof *l.samples);
    l.epoll = epoll_create1(0);
    l.request_size =
        (size_t)snprintf(l.request, sizeof l.request,
                         "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer sesame-sesame\r\n"
                         "Accept: application/json\r\nUser-Agent: http_load\r\n\r\n",
                         argv[1], argv[0]);
    for (int i = 0; i < TARN_MIN(l.count, CONNECTIONS_MAX); i++)
        dial(&l, i, argv[0]);
    l.begun_ns = l.next_due_ns = tarn_clock_mono_ns();
    l.end_ns = l.begun_ns + (int64_t)(seconds * 1e9);
    l.interval_ns = rate == 0 ? 0 : (int64_t)(1e9 / rate);
    while (tarn_clock_mono_ns() < l.end_ns) {
        send_due(&l);
        struct epoll_event events[256];
        int64_t wait_ns = l.free_count > 0 ? l.next_due_ns - tarn_clock_mono_ns() : 100000000;
        struct timespec wait = {0, TARN_MIN(TARN_MAX(wait_ns, INT64_C(0)), INT64_C(100000000))};
        int n = epoll_pwait2(l.epoll, events, 256, &wait, NULL);
        for (int i = 0; i < n; i++)
            receive(&l, (int)events[i].data.u32);
    }
    double took = (double)(tarn_clock_mono_ns() - l.begun_ns) / 1e9;
    if (l.sample_count == 0)
        fail("no answer");
    qsort(l.samples, l.sample_count, sizeof *l.samples, compare);
    printf(
        "RESULT http calls=%zu calls_per_s=%.0f mb_per_s=%.1f p50_ms=%.3f p99_ms=%.3f max_ms=%.3f own_cpu_s=%.2f\n",
        l.sample_count, (double)l.sample_count / took, (double)l.bytes / took / 1e6,
        quantile_ms(&l, 0.5), quantile_ms(&l, 0.99), quantile_ms(&l, 1),
        (double)tarn_clock_cpu_ns() / 1e9);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return serve();
    if (argc == 7 && strcmp(argv[1], "load") == 0)
        return load(argv + 2);
    fprintf(stderr, "usage: http_load serve | load ADDRESS TARGET CONNECTIONS SECONDS RATE\n");
    return 2;
}
