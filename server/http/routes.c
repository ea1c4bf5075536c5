#include "http/internal.h"

/* Patterns that begin alike lie side by side, those with text before those with a name in the same place: the first
 * one that matches is the one that says most. */

struct tarn_http__routes {
    struct tarn_http__route *items;
    size_t count, capacity;
};

struct tarn_http__routes *tarn_http__routes_new(void)
{
    return tarn_calloc(1, sizeof(struct tarn_http__routes));
}

void tarn_http__routes_free(struct tarn_http__routes *routes)
{
    if (routes == NULL)
        return;
    free(routes->items);
    free(routes);
}

static void split_pattern(struct tarn_http__route *route, const char *pattern)
{
    tarn_assert(pattern[0] == '/');
    while (*pattern == '/') {
        size_t size = strcspn(++pattern, "/");
        bool is_argument = size > 2 && pattern[0] == '{' && pattern[size - 1] == '}';
        tarn_assert(route->segment_count < TARN_HTTP_SEGMENTS_MAX);
        route->is_argument[route->segment_count] = is_argument;
        route->segments[route->segment_count++] =
            is_argument ? tarn_slice_of(pattern + 1, size - 2) : tarn_slice_of(pattern, size);
        pattern += size;
    }
}

void tarn_http__routes_add(struct tarn_http__routes *routes, const struct tarn_http_route *given)
{
    TARN_GROW(routes->items, routes->count, routes->capacity);
    struct tarn_http__route *route = &routes->items[routes->count++];
    *route = (struct tarn_http__route){.given = *given};
    if (route->given.body_max == 0)
        route->given.body_max = TARN_HTTP_BODY_MAX;
    split_pattern(route, given->pattern);
}

static int compare(const void *left, const void *right)
{
    const struct tarn_http__route *a = left, *b = right;
    if (a->segment_count != b->segment_count)
        return a->segment_count < b->segment_count ? -1 : 1;
    for (size_t i = 0; i < a->segment_count; i++) {
        if (a->is_argument[i] != b->is_argument[i])
            return a->is_argument[i] ? 1 : -1;
        int c = a->is_argument[i] ? 0 : tarn_slice_compare(a->segments[i], b->segments[i]);
        if (c != 0)
            return c;
    }
    return strcmp(a->given.method, b->given.method);
}

void tarn_http__routes_sort(struct tarn_http__routes *routes)
{
    if (routes->count > 0)
        qsort(routes->items, routes->count, sizeof *routes->items, compare);
    for (size_t i = 1; i < routes->count; i++)
        tarn_assert(compare(&routes->items[i - 1], &routes->items[i]) != 0); /* a route twice */
}

static bool matches(const struct tarn_http__route *route, const struct tarn_http_request *request)
{
    if (route->segment_count != request->segment_count)
        return false;
    for (size_t i = 0; i < route->segment_count; i++) {
        if (route->is_argument[i] ? request->segments[i].size == 0
                                  : !tarn_slice_equal(route->segments[i], request->segments[i]))
            return false;
    }
    return true;
}

static bool takes_method(const struct tarn_http__route *route, const char *method)
{
    return strcmp(route->given.method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->given.method, "GET") == 0);
}

static void set_arguments(const struct tarn_http__route *route, struct tarn_arena *arena,
                          struct tarn_http_request *request)
{
    struct tarn_pair *pairs = tarn_arena_alloc(arena, route->segment_count * sizeof *pairs);
    size_t count = 0;
    for (size_t i = 0; i < route->segment_count; i++)
        if (route->is_argument[i])
            pairs[count++] = (struct tarn_pair){route->segments[i], request->segments[i]};
    request->arguments = pairs;
    request->argument_count = count;
}

static struct tarn_status *refuse(struct tarn_arena *arena, const struct tarn_http_request *request,
                                  const struct tarn_buf *methods, const char **allow, int *http)
{
    *http = methods->size == 0 ? 404 : 405;
    if (methods->size == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "there is nothing at %.*s",
                               (int)TARN_MIN(request->path.size, (size_t)512), request->path.data);
    *allow = tarn_arena_str(arena, tarn_buf_slice(methods));
    return tarn_status_new(TARN_INVALID_ARGUMENT, "%s is not allowed there, but %s",
                           request->method, *allow);
}

struct tarn_status *tarn_http__routes_find(const struct tarn_http__routes *routes,
                                           struct tarn_arena *arena,
                                           struct tarn_http_request *request,
                                           const struct tarn_http__route **out, const char **allow,
                                           int *http)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf methods = {0};
    for (size_t i = 0; i < routes->count; i++) {
        const struct tarn_http__route *route = &routes->items[i];
        if (!matches(route, request))
            continue;
        if (takes_method(route, request->method)) {
            set_arguments(route, arena, request);
            *out = route;
            return TARN_OK;
        }
        const char *method = route->given.method;
        tarn_buf_printf(&methods, "%s%s", methods.size == 0 ? "" : ", ",
                        strcmp(method, "GET") == 0 ? "GET, HEAD" : method);
    }
    return refuse(arena, request, &methods, allow, http);
}

/* --- what route functions ask --- */

static struct tarn_slice find(const struct tarn_pair *pairs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_is(pairs[i].key, name))
            return pairs[i].value.data == NULL ? tarn_slice_of("", 0) : pairs[i].value;
    return (struct tarn_slice){NULL, 0};
}

struct tarn_slice tarn_http_argument(const struct tarn_http_request *request, const char *name)
{
    struct tarn_slice value = find(request->arguments, request->argument_count, name);
    tarn_assert(value.data != NULL);
    return value;
}

struct tarn_slice tarn_http_query(const struct tarn_http_request *request, const char *name)
{
    return find(request->query, request->query_count, name);
}

struct tarn_slice tarn_http_header(const struct tarn_http_request *request, const char *name)
{
    return find(request->headers, request->header_count, name);
}
