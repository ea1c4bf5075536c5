#include "http/internal.h"

/* For whoever watches the daemon:
 *
 *   /healthz  200 as long as the process answers
 *   /readyz   200 when clients may be sent here; else 503 and why
 *   /metrics  Prometheus' text format
 */

#define PLAIN_TEXT "text/plain; charset=utf-8"

static struct tarn_status *answer_health(void *self TARN_UNUSED, struct tarn_op *op TARN_UNUSED,
                                         const struct tarn_http_request *request TARN_UNUSED,
                                         struct tarn_http_response *response)
{
    response->type = PLAIN_TEXT;
    tarn_buf_add_str(&response->body, "ok\n");
    return TARN_OK;
}

static struct tarn_status *answer_ready(void *self, struct tarn_op *op,
                                        const struct tarn_http_request *request TARN_UNUSED,
                                        struct tarn_http_response *response)
{
    const char *why;
    response->type = PLAIN_TEXT;
    response->status = tarn_service_is_ready(op, self, &why) ? 200 : 503;
    tarn_buf_printf(&response->body, "%s\n", why);
    return TARN_OK;
}

static struct tarn_status *answer_metrics(void *self, struct tarn_op *op TARN_UNUSED,
                                          const struct tarn_http_request *request TARN_UNUSED,
                                          struct tarn_http_response *response)
{
    response->type = "text/plain; version=0.0.4; charset=utf-8";
    if (self != NULL)
        tarn_service_measure_memory(self);
    tarn_metrics_print(&response->body);
    return TARN_OK;
}

static void add(struct tarn_http__routes *routes, const char *pattern, tarn_http_fn fn, void *self)
{
    struct tarn_http_route route = {
        .method = "GET",
        .pattern = pattern,
        .fn = fn,
        .self = self,
        .is_open = true,
        .is_probe = true,
    };
    tarn_http__routes_add(routes, &route);
}

void tarn_http__health_routes(struct tarn_http__routes *routes, struct tarn_service *service,
                              bool metrics)
{
    if (service != NULL) {
        add(routes, "/healthz", answer_health, NULL);
        add(routes, "/readyz", answer_ready, service);
    }
    if (metrics)
        add(routes, "/metrics", answer_metrics, service);
}
