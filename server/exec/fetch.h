/*
 * fetch - HTTP requests of our own, to object stores and the services that hand out their credentials.
 * The one door to libcurl.
 *
 * A `tarn_fetch` keeps connections between requests. One request, one answer; no redirect is followed
 * and nothing is tried again here: who asks knows what may be sent twice and where to. (One exception:
 * a GET, HEAD or DELETE that met a kept connection which the other side had just closed.)
 *
 * Shape    HTTP/1.1 over http and https; no proxy, cookies or passwords of the environment.
 * Threads  any that may wait; requests of one tarn_fetch run at the same time.
 * Errors   STORE_UNAVAILABLE when no answer came, in whole or in part: refused, reset, time-out, TLS; and
 *          DEADLINE_EXCEEDED, CANCELLED of the op, noticed within TARN_FETCH_TICK_MS. `sent` says whether the
 *          request may have reached the other side. TOO_LARGE when the answer is larger than the request
 *          allows. INVALID_ARGUMENT for a header with a line break. Any HTTP status is an answer, not an error.
 */
#ifndef TARN_EXEC_FETCH_H
#define TARN_EXEC_FETCH_H

#include "base/base.h"

struct tarn_fetch;

struct tarn_fetch_options {
    const char *ca_file;        /* PEM; NULL: the system's */
    int64_t connect_timeout_ms; /* 0: 5 s */
    int64_t idle_timeout_ms;    /* no byte for so long ends a request; 0: 30 s */
    int connection_max;         /* requests at once; more wait; 0: 256 */
};
TARN_MUST struct tarn_status *tarn_fetch_new(const struct tarn_fetch_options *options,
                                             struct tarn_fetch **out);
void tarn_fetch_free(struct tarn_fetch *fetch); /* NULL is fine; no request may be running */

struct tarn_fetch_request {
    const char *method;         /* "GET" */
    const char *url;            /* absolute, encoded */
    const char *const *headers; /* "name: value" */
    size_t header_count;
    struct tarn_slice body; /* absent: none */
    size_t answer_max;      /* bytes of the answer's body; 0: TARN_FETCH_ANSWER_MAX */
};
#define TARN_FETCH_ANSWER_MAX ((size_t)1 << 20) /* where a request doesn't say */
#define TARN_FETCH_HEADERS_MAX 128              /* of an answer; more is no answer */
#define TARN_FETCH_HEADER_BYTES_MAX ((size_t)64 << 10)
#define TARN_FETCH_TICK_MS 50

/* In the op's arena, but for the body, which is appended to the caller's buffer. */
struct tarn_fetch_answer {
    int status;                /* 0: no answer */
    bool sent;                 /* false: the request surely didn't reach the other side */
    struct tarn_pair *headers; /* names in lower case */
    size_t header_count;
};
TARN_MUST struct tarn_status *tarn_fetch(struct tarn_fetch *fetch, struct tarn_op *op,
                                         const struct tarn_fetch_request *request,
                                         struct tarn_buf *body, struct tarn_fetch_answer *out);

/* Several requests for the time of the slowest: at most TARN_FETCH_LANES_MAX of them run at once, in
 * the order given. Each has its own outcome; the calls' statuses are the caller's to free. */
#define TARN_FETCH_LANES_MAX 16
struct tarn_fetch_call {
    struct tarn_fetch_request request;
    struct tarn_buf *body;           /* borrowed: where the answer's body goes */
    struct tarn_fetch_answer answer; /* out */
    struct tarn_status *status;      /* out, owned */
};
void tarn_fetch_all(struct tarn_fetch *fetch, struct tarn_op *op, struct tarn_fetch_call *calls,
                    size_t count);

/* First header of that (lower case) name, or absent. */
struct tarn_slice tarn_fetch_header(const struct tarn_fetch_answer *answer, const char *name);

/* Percent-encodes all but letters, digits, "-._~" and the characters in `keep` ("" or "/"). */
void tarn_url_encode(struct tarn_buf *out, struct tarn_slice text, const char *keep);

#endif
