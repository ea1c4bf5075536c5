/* What the files of room http share. */
#ifndef TARN_HTTP_INTERNAL_H
#define TARN_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/http.h"

struct bufferevent;
struct event;
struct event_base;
struct evconnlistener;

/* --- head.c: request line and headers ---
 *
 * Decoders of this room return a status and may set *http to the HTTP status to answer with; 0 stands for the
 * one that the reason implies. */
struct tarn_http__head {
    const char *method;
    struct tarn_slice target;
    int minor; /* of HTTP/1.x */
    const struct tarn_pair *headers;
    size_t header_count;
    bool has_body, is_chunked;
    uint64_t length; /* of a body that isn't chunked */
    bool keep_alive, expects_continue, is_gzipped, takes_gzip;
    struct tarn_slice bearer, request_id; /* absent: none that is usable */
};
/* Is there a whole head in `text`? Looks at bytes from *scanned on and moves it. *size is 0 as long as it isn't whole. */
TARN_MUST struct tarn_status *tarn_http__head_find(struct tarn_slice text, size_t *scanned,
                                                   size_t *size, int *http);
/* `text` lies in the arena; names become lower case in place. */
TARN_MUST struct tarn_status *tarn_http__head_parse(uint8_t *text, size_t size,
                                                    struct tarn_arena *arena,
                                                    struct tarn_http__head *out, int *http);

/* --- target.c: path and query of a request --- */
TARN_MUST struct tarn_status *tarn_http__target_parse(struct tarn_slice target,
                                                      struct tarn_arena *arena,
                                                      struct tarn_http_request *out, int *http);

/* --- body.c: where a body ends --- */
struct tarn_http__body {
    int state;
    uint64_t left;   /* bytes of the body or of the running chunk */
    size_t line;     /* bytes of chunk lines and trailers that may still come */
    size_t size_max; /* of the body */
};
void tarn_http__body_init(struct tarn_http__body *body, const struct tarn_http__head *head,
                          size_t size_max);
/* Appends to `out` what of `in` belongs to the body. *taken: bytes of `in` that are dealt with; all, unless *done. */
TARN_MUST struct tarn_status *tarn_http__body_take(struct tarn_http__body *body,
                                                   struct tarn_slice in, struct tarn_buf *out,
                                                   size_t *taken, bool *done);

/* --- routes.c --- */
struct tarn_http__routes;
struct tarn_http__route {
    struct tarn_http_route given;
    struct tarn_slice segments[TARN_HTTP_SEGMENTS_MAX]; /* without braces */
    bool is_argument[TARN_HTTP_SEGMENTS_MAX];
    size_t segment_count;
};
struct tarn_http__routes *tarn_http__routes_new(void);
void tarn_http__routes_add(struct tarn_http__routes *routes, const struct tarn_http_route *route);
void tarn_http__routes_sort(struct tarn_http__routes *routes); /* after the last add */
void tarn_http__routes_free(struct tarn_http__routes *routes);
/* Sets the request's arguments. An error: *http is 404, or 405 and *allow (in the arena) names the methods. */
TARN_MUST struct tarn_status *tarn_http__routes_find(const struct tarn_http__routes *routes,
                                                     struct tarn_arena *arena,
                                                     struct tarn_http_request *request,
                                                     const struct tarn_http__route **out,
                                                     const char **allow, int *http);

/* --- health.c --- */
void tarn_http__health_routes(struct tarn_http__routes *routes, struct tarn_service *service,
                              bool metrics);

/* --- exchange.c: one request and its answer ---
 *
 * Belongs to one thread at a time: the loop, while it is read and written; a job, between tarn_http__exchange_post and
 * its return in the loop's inbox. Only its op may be cancelled from elsewhere. */
struct tarn_http__connection;
struct tarn_http__exchange {
    struct tarn_http__exchange *next; /* in the inbox */
    struct tarn_http *http;
    struct tarn_http__loop *loop;
    struct tarn_http__connection *connection; /* loop thread only; NULL: gone */
    struct tarn_op op;
    int64_t begun_ns;
    struct tarn_http__head head;
    struct tarn_http_request request;
    const struct tarn_http__route *route; /* NULL: none was found */
    struct tarn_status *refusal;          /* owned; what the loop found wrong */
    int refusal_http;                     /* 0: as the refusal's reason says */
    const char *allow;                    /* of a 405 */
    struct tarn_buf body;                 /* as sent */
    struct tarn_buf plain;                /* gunzipped */
    size_t charged;                       /* bytes counted in http->memory */
    bool is_admitted, is_answered;
    bool is_posted; /* counted among the jobs */
    bool closes;    /* the connection ends with this answer */
    struct tarn_http_response response;
    struct tarn_buf answer_head;
    bool has_answer_body;
};
struct tarn_http__exchange *tarn_http__exchange_new(struct tarn_http__connection *connection);
void tarn_http__exchange_free(struct tarn_http__exchange *x);
/* False: too much is in memory already. */
bool tarn_http__exchange_charge(struct tarn_http__exchange *x, size_t size);
/* Jobs: lets the sender in, or answers with the refusal; and then carries the request out. */
void tarn_http__exchange_admit(void *x);
void tarn_http__exchange_run(void *x);
/* Without a job and a log line, on the loop thread: there is no room for them. */
void tarn_http__exchange_turn_away(struct tarn_http__exchange *x, const char *limit);

/* --- answer.c --- */
void tarn_http__answer_status(struct tarn_http__exchange *x, const struct tarn_status *status,
                              int http_status);
/* Compresses the body where that is worth it (not on a loop thread), and prints the head. */
void tarn_http__answer_print(struct tarn_http__exchange *x, bool may_compress);

/* --- connection.c: bytes of one client; the diagram is there. Loop thread only. --- */
enum tarn_http__state {
    TARN_HTTP_SHAKING, /* hands, over TLS */
    TARN_HTTP_IDLE,    /* not a byte of the next head */
    TARN_HTTP_HEAD,
    TARN_HTTP_ADMITTING, /* the exchange is with a job */
    TARN_HTTP_BODY,
    TARN_HTTP_RUNNING, /* likewise */
    TARN_HTTP_WRITING,
    TARN_HTTP_LINGERING, /* answered; what still comes is thrown away, lest a reset overtake the answer */
};
struct tarn_http__connection {
    struct tarn_http__connection *previous, *next; /* in the loop's list */
    struct tarn_http__loop *loop;
    struct bufferevent *bev;
    bool is_tls;
    enum tarn_http__state state;
    int64_t since_ms; /* when the state began */
    uint64_t moved;   /* bytes of the body so far */
    uint64_t seen;    /* of body or answer at the last tick that saw them move, */
    int64_t seen_ms;  /* which was then */
    size_t scanned;   /* bytes of the next head that were looked at */
    size_t unsent;    /* of the answer, when it was put into the output buffer */
    bool input_ended;
    struct tarn_http__body body;
    struct tarn_http__exchange *exchange;
    char peer[64];
};
/* Consumes the descriptor. */
void tarn_http__connection_open(struct tarn_http__loop *loop, int fd, const char *peer);
void tarn_http__connection_close(struct tarn_http__connection *c);
void tarn_http__connection_tick(struct tarn_http__connection *c, int64_t now_ms); /* may close it */
void tarn_http__connection_returned(struct tarn_http__exchange *x);

/* --- loop.c: a thread, its connections and what others hand to it --- */
struct tarn_http__accepted {
    int fd;
    char peer[64];
};
struct tarn_http__loop {
    struct tarn_http *http;
    struct event_base *base;
    struct event *wake, *tick;
    int wake_fd;
    pthread_t thread;
    struct tarn_http__connection *connections; /* the newest first */
    int connection_count;
    int job_count;                   /* exchanges that are with jobs */
    bool is_draining;                /* has closed its idle connections */
    struct evconnlistener *listener; /* of the first loop, until it drains */
    bool listener_paused;            /* descriptors ran out */

    pthread_mutex_t lock; /* guards what follows: the inbox */
    struct tarn_http__exchange *returned;
    struct tarn_http__accepted *accepted;
    size_t accepted_count, accepted_capacity;
    bool is_stopping;
};
void tarn_http__loop_init(struct tarn_http *http, struct tarn_http__loop *loop);
void tarn_http__loop_start(struct tarn_http__loop *loop);
void tarn_http__loop_listen(struct tarn_http__loop *loop, int fd); /* before start */
void tarn_http__loop_wake(struct tarn_http__loop *loop);           /* any thread */
void tarn_http__loop_stop(struct tarn_http__loop *loop);           /* waits, frees */
void tarn_http__loop_add(struct tarn_http__loop *loop, struct tarn_http__connection *c);
void tarn_http__loop_remove(struct tarn_http__loop *loop, struct tarn_http__connection *c);
void tarn_http__loop_give_back(struct tarn_http__exchange *x); /* any thread */
/* Hands it to a job; false: there are too many. */
bool tarn_http__loop_post(struct tarn_http__exchange *x, tarn_job_fn fn);

/* --- tls.c --- */
struct tarn_http__tls;
TARN_MUST struct tarn_status *tarn_http__tls_open(const struct tarn_http_options *options,
                                                  struct tarn_http__tls **out); /* NULL: no TLS */
void tarn_http__tls_free(struct tarn_http__tls *tls);
TARN_MUST struct tarn_status *tarn_http__tls_reload(struct tarn_http__tls *tls);
/* Consumes fd; NULL: it is closed. */
struct bufferevent *tarn_http__tls_accept(struct tarn_http__tls *tls, struct event_base *base,
                                          int fd);
void tarn_http__tls_say_goodbye(struct bufferevent *bev);

/* --- server.c --- */
#define TARN_HTTP_LOOPS_MAX 8
struct tarn_http {
    struct tarn_http_options options; /* with the defaults filled in */
    char *address;
    struct tarn_http__routes *routes;
    struct tarn_http__tls *tls;
    struct tarn_http__loop loops[TARN_HTTP_LOOPS_MAX];
    int loop_count;
    int next_loop; /* that a connection goes to; first loop's thread only */
    atomic_int job_count;
    atomic_size_t memory; /* bytes of bodies and answers */
    atomic_bool is_draining;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int connection_count;
    bool is_listening;
};
void tarn_http__count_connections(struct tarn_http *http, int more);
void tarn_http__port_closed(struct tarn_http *http);

#endif
