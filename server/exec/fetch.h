/*
 * fetch - HTTP requests of our own, to object stores and the services that hand out their credentials.
 * The one door to libcurl.
 *
 * A `tarn_fetch` keeps connections between requests. One request, one answer; nothing is tried again
 * and no redirect is followed here: who asks knows what may be sent twice and where to.
 *
 * Threads  any that may wait; requests of one tarn_fetch run at the same time.
 * Errors   STORE_UNAVAILABLE when no answer came, in whole or in part: the op's deadline (DEADLINE_EXCEEDED, CANCELLED),
 *          refused, reset, time-out, TLS. `sent` says whether the request may have reached the other side.
 *          TOO_LARGE when the answer is larger than the request allows. Any HTTP status is an answer, not an error.
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
void tarn_fetch_free(struct tarn_fetch *fetch); /* NULL is fine */

struct tarn_fetch_request {
    const char *method;         /* "GET" */
    const char *url;            /* absolute, encoded */
    const char *const *headers; /* "name: value" */
    size_t header_count;
    struct tarn_slice body; /* absent: none */
    size_t answer_max;      /* bytes of the answer's body; 0: TARN_FETCH_ANSWER_MAX */
};
#define TARN_FETCH_ANSWER_MAX ((size_t)1 << 20) /* where a request doesn't say */

struct
    tarn_fetch_answer { /* in the op's arena, but for `body`, which is appended to the caller's */
    int status;         /* 0: no answer */
    bool sent;          /* false: the request surely didn't reach the other side */
    const struct tarn_pair *headers; /* names in lower case */
    size_t header_count;
};
TARN_MUST struct tarn_status *tarn_fetch(struct tarn_fetch *fetch, struct tarn_op *op,
                                         const struct tarn_fetch_request *request,
                                         struct tarn_buf *body, struct tarn_fetch_answer *out);
/* First header of that (lower case) name, or absent. */
struct tarn_slice tarn_fetch_header(const struct tarn_fetch_answer *answer, const char *name);

#endif
