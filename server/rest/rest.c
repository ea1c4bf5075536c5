#include "rest/internal.h"

/*
 * Endpoints, and what each request begins with: is it of this warehouse, and what does it say?
 *
 *   http route ──> serve: prefix, body ──> an endpoint's function ──> service
 */

#define PREFIX "/v1/{prefix}"

struct served {
    struct tarn_rest *rest;
    const struct tarn_rest__endpoint *endpoint;
    char *pattern;
};

struct tarn_rest {
    struct tarn_service *service;
    struct served *served;
    struct tarn_http_route *routes;
    size_t count;
};

static const struct tarn_rest__endpoint *const all_endpoints[] = {
    tarn_rest__database_endpoints,   tarn_rest__table_endpoints,    tarn_rest__snapshot_endpoints,
    tarn_rest__tag_endpoints,        tarn_rest__branch_endpoints,   tarn_rest__partition_endpoints,
    tarn_rest__view_endpoints,       tarn_rest__function_endpoints, tarn_rest__consumer_endpoints,
    tarn_rest__permission_endpoints,
};

/* --- config --- */

/* Clients before 2.0 encode it twice; what a name may hold needs no encoding, so both are told apart. */
static bool is_warehouse(struct tarn_op *op, struct tarn_slice asked, const char *name)
{
    struct tarn_slice again;
    return tarn_slice_is(asked, name) ||
           (tarn_url_decode(asked, op->arena, &again) && tarn_slice_is(again, name));
}

/* Clients before 1.2 are those that name no warehouse and bring OkHttp: they know databases, and hardly anything of tables. */
static bool is_too_old(const struct tarn_http_request *request, struct tarn_slice warehouse)
{
    return warehouse.size == 0 && tarn_slice_starts_with(tarn_http_header(request, "user-agent"),
                                                         tarn_slice_str("okhttp/"));
}

static struct tarn_status *get_config(void *self, struct tarn_op *op,
                                      const struct tarn_http_request *request,
                                      struct tarn_http_response *response)
{
    const struct tarn_rest *rest = self;
    const char *name = rest->service->warehouse_name;
    struct tarn_slice asked = tarn_http_query(request, "warehouse");
    if (asked.size > 0 && !is_warehouse(op, asked, name))
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "there is no warehouse %.*s here; the catalog option warehouse is "
                               "to be %s",
                               TARN_SLICE_ARG(asked), name);
    if (is_too_old(request, asked))
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "clients of Paimon before 1.2 know too little of the REST catalog; "
                               "versions 1.2 to 2.1 work, with the catalog option warehouse = %s",
                               name);
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    struct tarn_json *defaults = tarn_json_object(), *overrides = tarn_json_object();
    tarn_json_set_str(defaults, "prefix", name);
    /* Other writers change schemas, and a client would not know for half an hour. */
    tarn_json_set_str(overrides, "cache-enabled", "false");
    tarn_json_set_str(overrides, "data-token.enabled", "false");
    tarn_json_set(json, "defaults", defaults);
    tarn_json_set(json, "overrides", overrides);
    tarn_json_print(json, 0, &response->body);
    return TARN_OK;
}

/* --- all else --- */

static struct tarn_status *serve(void *self, struct tarn_op *op,
                                 const struct tarn_http_request *request,
                                 struct tarn_http_response *response)
{
    const struct served *served = self;
    struct tarn_service *service = served->rest->service;
    struct tarn_slice prefix = tarn_http_argument(request, "prefix");
    if (!tarn_slice_is(prefix, service->warehouse_name))
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "there is no warehouse of prefix %.*s here; ask /v1/config for it",
                               TARN_SLICE_ARG(prefix));
    TARN_OWN(tarn_json_drop) struct tarn_json *body = NULL;
    TARN_TRY(tarn_rest__parse(request->body, &body));
    struct tarn_rest__call call = {
        .op = op, .service = service, .request = request, .response = response, .body = body};
    return served->endpoint->fn(&call);
}

static size_t count_endpoints(void)
{
    size_t count = 0;
    for (size_t i = 0; i < TARN_COUNT_OF(all_endpoints); i++)
        for (const struct tarn_rest__endpoint *e = all_endpoints[i]; e->method != NULL; e++)
            count++;
    return count;
}

static void add_endpoint(struct tarn_rest *rest, const struct tarn_rest__endpoint *endpoint)
{
    struct served *served = &rest->served[rest->count];
    *served = (struct served){rest, endpoint, tarn_format(PREFIX "%s", endpoint->path)};
    rest->routes[rest->count++] = (struct tarn_http_route){
        .method = endpoint->method, .pattern = served->pattern, .fn = serve, .self = served};
}

struct tarn_rest *tarn_rest_new(struct tarn_service *service)
{
    struct tarn_rest *rest = tarn_calloc(1, sizeof *rest);
    size_t most = count_endpoints() + 1;
    rest->service = service;
    rest->served = tarn_calloc(most, sizeof *rest->served);
    rest->routes = tarn_calloc(most, sizeof *rest->routes);
    for (size_t i = 0; i < TARN_COUNT_OF(all_endpoints); i++)
        for (const struct tarn_rest__endpoint *e = all_endpoints[i]; e->method != NULL; e++)
            add_endpoint(rest, e);
    rest->routes[rest->count++] = (struct tarn_http_route){
        .method = "GET", .pattern = "/v1/config", .fn = get_config, .self = rest};
    return rest;
}

void tarn_rest_free(struct tarn_rest *rest)
{
    if (rest == NULL)
        return;
    for (size_t i = 0; i < rest->count; i++)
        free(rest->served[i].pattern);
    free(rest->served);
    free(rest->routes);
    free(rest);
}

const struct tarn_http_route *tarn_rest_routes(const struct tarn_rest *rest, size_t *count)
{
    *count = rest->count;
    return rest->routes;
}
