#include "http/internal.h"

#include <stdio.h>

struct tarn_http__exchange *tarn_http__exchange_new(struct tarn_http__connection *connection)
{
    struct tarn_http__exchange *x = tarn_calloc(1, sizeof *x);
    x->loop = connection->loop;
    x->http = x->loop->http;
    x->connection = connection;
    x->begun_ns = tarn_clock_mono_ns();
    x->head.method = x->request.method = "";
    tarn_op_init(&x->op);
    x->request.peer = tarn_arena_str(x->op.arena, tarn_slice_str(connection->peer));
    return x;
}

void tarn_http__exchange_free(struct tarn_http__exchange *x)
{
    if (x == NULL)
        return;
    atomic_fetch_sub(&x->http->memory, x->charged);
    tarn_status_free(x->refusal);
    tarn_buf_drop(&x->body);
    tarn_buf_drop(&x->plain);
    tarn_buf_drop(&x->response.body);
    tarn_buf_drop(&x->answer_head);
    tarn_op_fini(&x->op);
    free(x);
}

static void charge(struct tarn_http__exchange *x, size_t size)
{
    x->charged += size;
    atomic_fetch_add(&x->http->memory, size);
}

bool tarn_http__exchange_charge(struct tarn_http__exchange *x, size_t size)
{
    if (atomic_load(&x->http->memory) + size > x->http->options.memory_max)
        return false;
    charge(x, size);
    return true;
}

/* --- on the pool --- */

static const char *pattern_of(const struct tarn_http__exchange *x)
{
    return x->route == NULL ? "none" : x->route->given.pattern;
}

static void count(const struct tarn_http__exchange *x, double seconds)
{
    char status[16];
    snprintf(status, sizeof status, "%d", x->response.status);
    tarn_metric_add(TARN_M_HTTP_REQUESTS, status, 1);
    tarn_metric_observe(TARN_M_HTTP_SECONDS, pattern_of(x), seconds);
}

/* The access log. Path only: a query may hold what belongs in no log. */
static void log_request(const struct tarn_http__exchange *x, double seconds)
{
    bool is_probe = x->route != NULL && x->route->given.is_probe;
    enum tarn_log_level level = x->http->options.quiet || is_probe ? TARN_DEBUG : TARN_INFO;
    if (x->response.status >= 500 && !is_probe)
        level = TARN_WARN;
    const char *path = tarn_arena_str(x->op.arena, x->request.path);
    tarn_log(&x->op, level, "http.request",
             "method=%s path=%s status=%d bytes=%zu ms=%.3f principal=%s peer=%s%s%s",
             tarn_log_quote(&x->op, x->head.method), tarn_log_quote(&x->op, path),
             x->response.status, x->has_answer_body ? x->response.body.size : 0, seconds * 1e3,
             tarn_log_quote(&x->op, x->op.principal), x->request.peer,
             x->refusal == NULL ? "" : " error=",
             x->refusal == NULL ? "" : tarn_log_quote(&x->op, tarn_status_message(x->refusal)));
}

static void finish(struct tarn_http__exchange *x)
{
    if (x->refusal != NULL)
        tarn_http__answer_status(x, x->refusal, x->refusal_http);
    tarn_http__answer_print(x, true);
    double seconds = (double)(tarn_clock_mono_ns() - x->begun_ns) / 1e9;
    count(x, seconds);
    log_request(x, seconds);
    charge(x, x->response.body.size);
    tarn_buf_drop(&x->body);
    tarn_buf_drop(&x->plain);
    x->is_answered = true;
}

static struct tarn_status *admit(struct tarn_http__exchange *x)
{
    const struct tarn_http_options *options = &x->http->options;
    x->op.deadline_mono_ms = tarn_clock_mono_ms() + TARN_HTTP_OP_MS;
    if (options->admit != NULL && !x->route->given.is_open)
        TARN_TRY(
            options->admit(options->admit_self, &x->op, x->route->given.pattern, x->head.bearer));
    x->is_admitted = true;
    return TARN_OK;
}

static struct tarn_status *gunzip(struct tarn_http__exchange *x)
{
    TARN_OWN(tarn_status_drop)
    struct tarn_status *s = tarn_zip_expand(TARN_ZIP_GZIP, tarn_buf_slice(&x->body),
                                            x->route->given.body_max, &x->plain);
    tarn_buf_drop(&x->body);
    x->request.body = tarn_buf_slice(&x->plain);
    if (s == TARN_OK)
        return tarn_http__exchange_charge(x, x->plain.size)
                   ? TARN_OK
                   : tarn_status_new(TARN_UNAVAILABLE, "too many large requests at once");
    if (tarn_status_reason(s) == TARN_TOO_LARGE)
        return tarn_status_new(TARN_TOO_LARGE, "the body exceeds %zu bytes, once it is unzipped",
                               x->route->given.body_max);
    return tarn_status_new(TARN_INVALID_ARGUMENT, "the body: %s", tarn_status_message(s));
}

static struct tarn_status *carry_out(struct tarn_http__exchange *x)
{
    if (!x->is_admitted)
        TARN_TRY(admit(x));
    x->op.deadline_mono_ms = tarn_clock_mono_ms() + TARN_HTTP_OP_MS;
    x->request.body = tarn_buf_slice(&x->body);
    if (x->head.is_gzipped && x->body.size > 0)
        TARN_TRY(gunzip(x));
    x->response.status = 200;
    x->response.type = "application/json";
    return x->route->given.fn(x->route->given.self, &x->op, &x->request, &x->response);
}

void tarn_http__exchange_admit(void *arg)
{
    struct tarn_http__exchange *x = arg;
    if (x->refusal == NULL)
        x->refusal = admit(x);
    if (x->refusal != NULL) {
        x->closes = true; /* its body is not read */
        finish(x);
    }
    tarn_http__loop_give_back(x);
}

void tarn_http__exchange_run(void *arg)
{
    struct tarn_http__exchange *x = arg;
    if (x->refusal == NULL)
        x->refusal = carry_out(x);
    finish(x);
    tarn_http__loop_give_back(x);
}

/* --- on the loop --- */

void tarn_http__exchange_turn_away(struct tarn_http__exchange *x, const char *limit)
{
    TARN_OWN(tarn_status_drop)
    struct tarn_status *s = tarn_status_new(TARN_UNAVAILABLE, "too many requests at once");
    tarn_metric_add(TARN_M_HTTP_REFUSED, limit, 1);
    tarn_metric_add(TARN_M_HTTP_REQUESTS, "503", 1);
    tarn_http__answer_status(x, s, 503);
    tarn_http__answer_print(x, false);
    x->is_answered = true;
}
