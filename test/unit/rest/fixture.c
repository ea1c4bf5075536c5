#include "fixture.h"

#include "../service/fixture.c" /* the same service */

void rest_init(struct rest_fixture *f, struct tarn_test *t)
{
    fixture_init(&f->service, t);
    f->rest = tarn_rest_new(&f->service.service);
    f->routes = tarn_http__routes_new();
    f->agent = NULL;
    size_t count;
    const struct tarn_http_route *routes = tarn_rest_routes(f->rest, &count);
    for (size_t i = 0; i < count; i++)
        tarn_http__routes_add(f->routes, &routes[i]);
    tarn_http__routes_sort(f->routes);
}

void rest_fini(struct rest_fixture *f)
{
    tarn_http__routes_free(f->routes);
    tarn_rest_free(f->rest);
    fixture_fini(&f->service);
}

static struct tarn_status *carry_out(struct rest_fixture *f, struct tarn_op *op,
                                     struct tarn_http_request *request, const char *target,
                                     int *http, struct tarn_http_response *response)
{
    const struct tarn_http__route *route;
    const char *allow;
    TARN_TRY(tarn_http__target_parse(tarn_slice_str(target), op->arena, request, http));
    TARN_TRY(tarn_http__routes_find(f->routes, op->arena, request, &route, &allow, http));
    return route->given.fn(route->given.self, op, request, response);
}

const char *rest_ask_in(struct rest_fixture *f, struct tarn_op *op, const char *method,
                        const char *target, const char *body)
{
    int http = 0;
    struct tarn_http_response response = {.status = 200, .type = "application/json"};
    struct tarn_pair agent = {tarn_slice_str("user-agent"),
                              tarn_slice_str(f->agent != NULL ? f->agent : "")};
    struct tarn_http_request request = {
        .method = method, .body = tarn_slice_str(body), .headers = &agent, .header_count = 1};
    if (strncmp(target, "/v1/", 4) != 0)
        target = tarn_arena_printf(op->arena, "/v1/w%s", target);
    struct tarn_status *s = carry_out(f, op, &request, target, &http, &response);
    if (s != TARN_OK) {
        tarn_buf_clear(&response.body);
        response.status = http != 0 ? http : tarn_status_http(s);
        tarn_rest_print_error(NULL, &request, s, &response);
    }
    tarn_status_free(s);
    const char *text = tarn_arena_printf(op->arena, "%d %.*s", response.status,
                                         TARN_SLICE_ARG(tarn_buf_slice(&response.body)));
    tarn_buf_drop(&response.body);
    return text;
}

const char *rest_ask(struct rest_fixture *f, const char *method, const char *target,
                     const char *body)
{
    return rest_ask_in(f, f->service.t->op, method, target, body);
}

const char *rest_create(struct rest_fixture *f, const char *name, const char *schema)
{
    return rest_ask(f, "POST", "/databases/db/tables",
                    tarn_arena_printf(f->service.t->arena,
                                      "{\"identifier\":{\"database\":\"db\",\"object\":\"%s\"},"
                                      "\"schema\":%s}",
                                      name, schema));
}

void rest_expect(const char *answer, int status, const char *part)
{
    if (atoi(answer) != status)
        expect_unreachable("want %d, got %s", status, answer);
    expect_contains(answer, part);
}
