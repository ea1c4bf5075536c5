/*
 * http - the HTTP/1.1 door: requests parsed on loop threads, carried out on exec's pool, answered in order.
 *
 *   socket ── loop: head, route ──> pool: admit ──> loop: body ──> pool: handler, answer ──> loop: bytes out
 *
 * Shape    a door is a table of routes, "GET" "/v1/{prefix}/databases/{database}" -> a function that may wait. It gets a
 *          request that was read whole and whose sender is known, and fills an answer or returns a status, which the
 *          door's `print_error` turns into a body. The server adds what every answer has: Date, Content-Length,
 *          x-request-id, Cache-Control: no-store, gzip where it is taken and worth it, Retry-After to 429 and 503,
 *          WWW-Authenticate to 401, Allow to 405. A HEAD is answered by the GET route, without the body.
 * Strict   what two readers might frame or split differently is refused with 400 and the connection closed: bare LF or
 *          CR, folded lines, blanks before a colon, NUL, Content-Length twice or beside Transfer-Encoding, codings other
 *          than one "chunked", Host twice or missing (docs/decisions/012-http-by-our-own-head-parser.md). Paths are split
 *          on '/' first, then each segment is decoded once: '+' is a blank, as Java's clients write it.
 * Order    a connection's requests are carried out one after the other; those sent ahead wait in its buffer.
 * Bodies   are read only from senders who were let in: POST with a wrong token is answered before its body is read.
 * Slow     a head has `head_ms` to come; bodies and answers must move at TARN_HTTP_RATE_MIN bytes a second, after
 *          `stall_ms` of grace; between requests a connection may be idle for `idle_ms`.
 * Limits   the constants below. Too many connections: the longest idle one goes, else 503. Too many requests at the
 *          pool, or too many bytes of bodies and answers in memory: 503. The op's deadline is TARN_HTTP_OP_MS.
 * Gone     a connection that is reset cancels its op. The end of what a client sends is not the end of the client: it
 *          gets its answer.
 * Drain    tarn_http_drain: the port is closed, idle connections too, answers say Connection: close.
 * Signals  SIGPIPE must be ignored where there is TLS: tarn_signals_block sees to that.
 * Threads  start, drain, reload, stop: one that may wait. Route functions: any of the pool. print_error: also a loop
 *          thread, so it must not wait.
 * Errors   a request that can't be understood or has no route is refused by a status of the reasons INVALID_ARGUMENT,
 *          TOO_LARGE, UNIMPLEMENTED, DEADLINE_EXCEEDED or UNAVAILABLE, with the HTTP status already in the answer.
 */
#ifndef TARN_HTTP_H
#define TARN_HTTP_H

#include "exec/exec.h"
#include "service/service.h"

#define TARN_HTTP_HEAD_MAX                                                                         \
    (32 << 10) /* bytes of request line and headers; 431, of the target alone 414 */
#define TARN_HTTP_TARGET_MAX (8 << 10) /* bytes of path and query */
#define TARN_HTTP_HEADERS_MAX 100      /* 431 */
#define TARN_HTTP_SEGMENTS_MAX 32      /* of a path; 414 */
#define TARN_HTTP_QUERY_MAX 64         /* parameters; 414 */
#define TARN_HTTP_BODY_MAX                                                                         \
    (16 << 20)                  /* bytes, also once gunzipped, where a route says nothing; 413 */
#define TARN_HTTP_RATE_MIN 8192 /* bytes a second */
#define TARN_HTTP_OP_MS 170000  /* less than Java's clients wait: they get an answer */
#define TARN_HTTP_GZIP_MIN 1400 /* smaller answers fit one packet anyhow */
#define TARN_HTTP_ANSWER_HEADERS_MAX 8 /* that a route function may add */
#define TARN_HTTP_CONNECTIONS_MAX 4096
#define TARN_HTTP_JOBS_MAX 512 /* requests at the pool at once: each may hold one of its threads */
#define TARN_HTTP_MEMORY_MAX (512 << 20) /* bodies and answers that are in memory at once */
#define TARN_HTTP_IDLE_MS 75000
#define TARN_HTTP_HEAD_MS 10000
#define TARN_HTTP_STALL_MS 20000

/* Everything lies in the op's arena, or is the route's own text. */
struct tarn_http_request {
    const char *method;                /* "GET"; a HEAD that came to a GET route says HEAD */
    struct tarn_slice path;            /* as sent, without the query */
    const struct tarn_slice *segments; /* decoded UTF-8 without NUL; '/' and ".." may be in them */
    size_t segment_count;
    const struct tarn_pair *arguments; /* {name} of the route's pattern -> segment, never empty */
    size_t argument_count;
    const struct tarn_pair *query; /* decoded UTF-8, in order */
    size_t query_count;
    const struct tarn_pair *headers; /* names in lower case, values trimmed, otherwise as sent */
    size_t header_count;
    struct tarn_slice body; /* whole, gunzipped */
    const char *peer;       /* its address */
};
/* Of the route's pattern: a name that isn't in it is a fault of ours. */
struct tarn_slice tarn_http_argument(const struct tarn_http_request *request, const char *name);
/* The first of that name, or absent. */
struct tarn_slice tarn_http_query(const struct tarn_http_request *request, const char *name);
struct tarn_slice tarn_http_header(const struct tarn_http_request *request, const char *name);

struct tarn_http_response {
    int status;           /* 200 unless set */
    const char *type;     /* "application/json" unless set */
    struct tarn_buf body; /* owned by the server, also after an error */
    struct tarn_pair headers[TARN_HTTP_ANSWER_HEADERS_MAX];
    size_t header_count;
};
/* Copied into the op's arena; bytes that may not stand in a header become '?'. */
void tarn_http_add_header(struct tarn_op *op, struct tarn_http_response *response, const char *name,
                          struct tarn_slice value);

/* An error discards what the answer held so far. */
typedef struct tarn_status *(*tarn_http_fn)(void *self, struct tarn_op *op,
                                            const struct tarn_http_request *request,
                                            struct tarn_http_response *response);
struct tarn_http_route {
    const char *method; /* in capitals */
    const char *
        pattern; /* "/v1/{prefix}/tables/{table}"; where several match, the one with text in front wins */
    tarn_http_fn fn;
    void *self;
    size_t body_max; /* 0: TARN_HTTP_BODY_MAX */
    bool is_open;    /* asks for no token */
    bool is_probe;   /* logged at debug */
};

struct tarn_http_options {
    const char *listen; /* "127.0.0.1:7421"; port 0 takes a free one */
    struct tarn_exec *exec;
    struct tarn_service *service; /* for /healthz and /readyz; NULL: these aren't there */
    bool metrics;                 /* serve /metrics */
    bool quiet;                   /* requests that went well are logged at debug, not info */
    const struct tarn_http_route *routes; /* copied; the text of patterns is borrowed */
    size_t route_count;
    /* Who is it? Sets op->principal (in op->arena) or refuses; runs on the pool. NULL: everybody is let in. */
    struct tarn_status *(*admit)(void *self, struct tarn_op *op, const char *path,
                                 struct tarn_slice bearer_token);
    /* Fills type and body for a status that a route function or the server itself answers with; response->status
     * is set already and may be changed. NULL: one line of text. */
    void (*print_error)(void *self, const struct tarn_http_request *request,
                        const struct tarn_status *status, struct tarn_http_response *response);
    void *admit_self, *print_error_self;
    const char *cert_file, *key_file,
        *client_ca_file; /* PEM; TLS where cert_file is set. NULL or "": none */
    /* 0: the constants above */
    int connection_max, job_max;
    size_t memory_max;
    int64_t idle_ms, head_ms, stall_ms;
};

struct tarn_http;
/* Errors: ADDRESS_IN_USE, CONFIG_INVALID. */
TARN_MUST struct tarn_status *tarn_http_start(const struct tarn_http_options *options,
                                              struct tarn_http **out);
/* Are the files of TLS there and a pair? Nothing but these of `options` is looked at. */
TARN_MUST struct tarn_status *tarn_http_check_tls(const struct tarn_http_options *options);
const char *tarn_http_address(const struct tarn_http *http); /* host:port, real */
/* Reads certificate, key and client CA anew, for handshakes from now on; connections keep what they have. A bad file
 * changes nothing and is CONFIG_INVALID. OK without TLS. */
TARN_MUST struct tarn_status *tarn_http_reload_tls(struct tarn_http *http);
/* Closes the port and idle connections, answers what runs, waits for that up to grace_ms; may be called again. */
void tarn_http_drain(struct tarn_http *http, int64_t grace_ms);
/* Closes what is left, cancels what runs and waits for its end, frees. NULL is fine. */
void tarn_http_stop(struct tarn_http *http);

#endif
