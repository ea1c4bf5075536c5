/*
 * http - /metrics, /healthz and /readyz for whoever watches the daemon.
 *
 *   /healthz  200 as long as the process answers
 *   /readyz   200 when clients may be sent here: the catalog is open, and a worker has registered
 *             unless the daemon is to have none; else 503 and why
 *   /metrics  Prometheus' text format, where metrics.enabled; 404 otherwise
 *
 * All else is 404; methods other than GET and HEAD are 405.
 *
 * Threads  one loop thread of its own, which never waits: answers are made by jobs of `exec`.
 * Limits   TARN_HTTP_HEADERS_MAX, TARN_HTTP_BODY_MAX, TARN_HTTP_IDLE_S, TARN_HTTP_EXCHANGES_MAX:
 *          a request beyond one of them is answered 4xx or 503, or its connection closed.
 */
#ifndef TARN_HTTP_H
#define TARN_HTTP_H

#include "service/service.h"

#define TARN_HTTP_HEADERS_MAX (16 << 10)
#define TARN_HTTP_BODY_MAX (64 << 10)
#define TARN_HTTP_IDLE_S 30
#define TARN_HTTP_EXCHANGES_MAX 256 /* requests being answered at once */

struct tarn_http;
struct tarn_http_options {
    const char *listen; /* "127.0.0.1:7421"; port 0 takes a free one */
    struct tarn_exec *exec;
    struct tarn_service *service;
    bool metrics;
};
/* Errors: ADDRESS_IN_USE, CONFIG_INVALID. */
TARN_MUST struct tarn_status *tarn_http_start(const struct tarn_http_options *options,
                                              struct tarn_http **out);
const char *tarn_http_address(const struct tarn_http *http); /* host:port, real */
/* Closes the port, lets running jobs end, frees. NULL is fine. */
void tarn_http_stop(struct tarn_http *http);

#endif
